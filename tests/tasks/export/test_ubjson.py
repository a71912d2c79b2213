"""UBJSON by hand, byte by byte; what is damaged is refused with the byte, and costs no memory."""

import math

import numpy as np
import pytest

from tasks.export.ubjson import read_ubjson, write_ubjson
from tests.mutations import check_sentence


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"Z", None), (b"T", True), (b"F", False), (b"i\xff", -1), (b"U\xff", 255), (b"I\xff\x00", -256), (b"l\0\0\1\0", 256),
        (b"L" + b"\xff" * 8, -1), (b"d\x3f\x80\0\0", 1.0), (b"D\xbf\xe0" + b"\0" * 6, -0.5), (b"Si\x02ab", "ab"), (b"SU\0", ""),
        ("Si\x02é".encode(), "é"), (b"[]", []), (b"[ZTi\x07]", [None, True, 7]), (b"[#i\x02TZ", [True, None]),
        (b"[$d#i\x02\x3f\x80\0\0\x7f\x80\0\0", [1.0, math.inf]), (b"[$U#i\0", []), (b"{}", {}), (b"{i\1ai\2i\1b[i\3]}", {"a": 2, "b": [3]}),
    ],
)  # fmt: skip
def test_values_by_hand(content, value):
    found = read_ubjson(content, {})
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", "byte 0: 1 bytes are announced and 0 are left"),
        (b"x", "byte 0: b'x' begins no value"),
        (b"ZZ", "byte 1: 1 bytes behind the end"),
        (b"[" * 10_000, "lists within lists, too deep to read"),
        (b"{i\1a" * 10_000, "lists within lists, too deep to read"),
        (b"[#L\x7f" + b"\xff" * 7 + b"Z", "items are announced"),
        (b"[$d#L\x7f" + b"\xff" * 7, "bytes are announced"),
        (b"[$Z#L\x7f" + b"\xff" * 7, "a list of one type is of numbers"),
        (b"[#i\xff", "-1 items are announced"),
        (b"SL" + b"\xff" * 8, "-1 bytes are announced"),
        (b"Sd\0\0\0\0", "b'd' is not a type of a count"),
        (b"Si\x01\xff", "is not UTF-8"),
        (b"{i\1aZi\1aZ}", "'a' is there twice"),
        (b"[Z", "bytes are announced"),
        (b"{i\1c[$U#i\0}", "byte 6: 'c' is a list of type 'U'; it is one of l or L"),
    ],
)
def test_what_is_damaged_is_refused_with_the_byte(content, rule):
    with pytest.raises(ValueError, match=rule) as refused:
        read_ubjson(content, {"c": "lL"})
    check_sentence(refused.value)


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (None, b"Z"), (True, b"T"), (False, b"F"), (-128, b"i\x80"), (128, b"I\x00\x80"), (40_000, b"l\0\0\x9c\x40"),
        (-(2**31) - 1, b"L\xff\xff\xff\xff\x7f\xff\xff\xff"), (-0.5, b"D\xbf\xe0" + b"\0" * 6),
        ("é", b"SL" + b"\0" * 7 + "\2é".encode()), ([1, None], b"[#L" + b"\0" * 7 + b"\2i\1Z"), ({}, b"{}"),
        ({"a": [1.5, math.inf]}, b"{L" + b"\0" * 7 + b"\1a[$d#L" + b"\0" * 7 + b"\2\x3f\xc0\0\0\x7f\x80\0\0}"),
        ({"b": {"u": []}}, b"{L" + b"\0" * 7 + b"\1b{L" + b"\0" * 7 + b"\1u[$U#L" + b"\0" * 8 + b"}}"),
    ],
)  # fmt: skip
def test_values_are_written_by_hand_and_read_again(value, content):
    assert write_ubjson(value, {"a": "d", "u": "U"}) == content
    assert read_ubjson(content, {"a": "d", "u": "U"}) == value


def test_any_bytes_are_read_or_refused():
    rng = np.random.default_rng(3)
    alphabet = np.frombuffer(b"ZTFiUIlLdDS[]{}#$\0\1\2\3a", np.uint8)
    for _ in range(20_000):
        try:
            read_ubjson(rng.choice(alphabet, int(rng.integers(1, 30))).tobytes(), {})
        except ValueError as error:
            check_sentence(error)
