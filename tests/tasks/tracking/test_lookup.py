"""Models are found by folder, file or run; what is not there is said."""

import pytest

import ltr
from tasks.records import DataError
from tasks.tracking.lookup import find_model
from tests.conftest import make_queries


def test_a_folder_is_a_model(workplace):
    fitted = ltr.LeastSquares().fit(make_queries(10))
    ltr.save(fitted, "m")
    assert find_model("m", fitted.names).digest == fitted.digest


def test_what_is_not_there_is_said(workplace):
    with pytest.raises(DataError, match=r"nowhere: not a model folder, and no run id starts with 'nowhere'$"):
        find_model("nowhere", ())
    assert not (workplace / "mlruns").exists()


def test_linear_weights_of_a_file(workplace):
    queries = make_queries(10)
    for text in ('{"f2": -1, "f3": 0.5}', "f2,-1\n# nothing\nf3,0.5\n", "## Coordinate Ascent\n2:-1.0 3:0.5 # end\n"):
        (workplace / "w").write_text(text)
        model = find_model("w", queries.names)
        assert model.predict(queries.features) == pytest.approx(-queries.features[:, 1] + 0.5 * queries.features[:, 2])
        assert find_model("w").names == ("f2", "f3") == find_model("w", queries.names[::-1], named_only=True).names[::-1]
    for text, rule in (
        ("f9,1", "do not have: f9"),
        ("f1", "line 1: 'f1' is not a weight"),
        ("1:nan", "the weight of 'f1' is nan, which is not finite"),
    ):
        (workplace / "w").write_text(text)
        for named_only in (False, True):
            with pytest.raises(DataError, match=f"w: .*{rule}"):
                find_model("w", queries.names, named_only)
