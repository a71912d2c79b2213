import pytest

from tasks.data.plain_number import plain_number


@pytest.mark.parametrize(
    ("written", "number"), [("3", 3), ("-.5", -0.5), (" 2. ", 2), ("1E-2", 0.01), ("+7", 7), (4, 4), (2.5, 2.5), ("00", 0)]
)
def test_numbers(written, number):
    assert plain_number(written) == number


@pytest.mark.parametrize(
    "written",
    ["1_0", "١٢", "inf", "nan", "0x10", "", " ", "1e", ".", "1 2", "1e999", True, None, [1], float("inf"), float("nan"), 10**400],
)
def test_what_is_none(written):
    with pytest.raises(ValueError, match=r"is not a number|is not finite"):
        plain_number(written)
