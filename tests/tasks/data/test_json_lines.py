"""Objects of every way in which engines write them, and what is none."""

import pytest

from tasks.data.json_lines import object_at, objects, read_json_file, text_of
from tasks.records import DataError


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}\n\n{"a": 2}\n', [(1, {"a": 1}), (3, {"a": 2})]),
        ('{"index": {"_index": "x"}}\n{"a": 1}\n{"create": {}}\n{"a": 2}\n', [(2, {"a": 1}), (4, {"a": 2})]),
        ('{"_index": "x", "_source": {"a": 1}}\n', [(1, {"a": 1})]),
        ('[{"a": 1}, {"a": 2}]', [(1, {"a": 1}), (1, {"a": 2})]),
        ('{\n "a":\n 1\n}\n', [(1, {"a": 1})]),
        ('\ufeff{"a": 1}\r\n', [(1, {"a": 1})]),
    ],
)
def test_objects(tmp_path, text, found):
    (tmp_path / "x").write_text(text, encoding="utf-8")
    assert list(objects(tmp_path / "x")) == found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1}\n{"a": \n', "x, line 2: '{\"a\":': not a JSON object: Expecting value"),
        ("rambo\n", "x, line 1: 'rambo': not a JSON object"),
        ("1\n", "x, line 1: '1': not a JSON object: a line must be an object"),
        ("[" * 100_000 + "\n", "not a JSON object: lists within lists, too deep to read"),
        ('{"a": ' + "1" * 5000 + "}\n", "not a JSON object: a number has too many digits"),
        ('{"a": "\\uD83D"}\n', 'x, line 1: \'{"a": "\\\\uD83D"}\': not a JSON object: half of a surrogate pair is not a character'),
        ('{"a": 1, "b": {"c": 1, "d": 2, "c": 3}}\n', "not a JSON object: the key 'c' is given twice"),
        ('{"index": {}}\n', None),
        ("", "x: the file is empty"),
    ],
)
def test_what_is_no_object_is_named(tmp_path, text, says):
    (tmp_path / "x").write_text(text)
    if says is None:
        assert list(objects(tmp_path / "x")) == []
        return
    with pytest.raises(DataError) as caught:
        list(objects(tmp_path / "x"))
    assert says in str(caught.value)


def test_a_file_that_is_no_json(tmp_path):
    (tmp_path / "x.json").write_text('{\n"a": ]\n}')
    with pytest.raises(DataError, match=r"x\.json, line 2: not JSON: Expecting value"):
        read_json_file(tmp_path / "x.json")


def test_texts_and_objects():
    assert [text_of(value) for value in (None, " a ", 7, True, [1])] == ["", "a", "7", "", ""]
    assert [text_of(value) for value in (7.0, -0.0, 1.5, 2.0**63, float("nan"), "7.0")] == [
        "7",
        "0",
        "1.5",
        "9.223372036854776e+18",
        "",
        "7.0",
    ]
    assert (object_at({"a": None}, "a"), object_at({"a": {"b": 1}}, "a")) == ({}, {"b": 1})
