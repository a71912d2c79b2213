"""The section of data: one way to name them, and what goes with it."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from tasks.config.data_section import Data, Generate


def test_one_file_is_a_list_of_one():
    assert Data(files="a.txt").files == [Path("a.txt")]
    assert Data(files=["a.txt"], runs={"bm25": "b.run"}).runs == {"bm25": [Path("b.run")]}
    assert Data(files="a.txt", clicks="log.csv").clicks == Data(files="a.txt", clicks={"log": "log.csv"}).clicks


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        ({"files": ["a"], "shares": (0.5, 0.5, 0.5)}, "sum to 1"),
        ({"train": ["a"], "valid": ["b"], "test": ["c"], "folds": 3}, "folds goes with files or qrels"),
        ({"generate": Generate(), "runs": {"a": ["b"]}}, "runs goes with files of data"),
        ({"qrels": ["a"]}, "qrels needs runs"),
        ({"files": ["a"], "runs": {"query": ["b"]}}, "a name that is not the query's"),
        ({"files": ["a"], "sources": ["binary"], "binarise": 1}, "two label sources are named 'binary'"),
        ({"files": ["a"], "sources": ["x/y"]}, "label source 'x/y': 1 to 100 letters, digits and '_'"),
        ({"files": ["a"], "clicks": {"log": "l", "more": {"a b": {}}}}, "label source 'a b'"),
        ({"generate": Generate(more={"a:b": {}})}, "label source 'a:b'"),
    ],
)
def test_what_does_not_go_together(written, rule):
    with pytest.raises(ValidationError, match=rule):
        Data(**written)


def test_attributes_that_queries_can_be_told_apart_by():
    assert Data(files=["a"]).known == ["documents"]
    assert Data(files=["a"], attributes=["site", "text"]).known == ["site", "documents", "length"]
    assert Data(files=["a"], clicks={"log": "l"}).known == ["documents", "length", "popularity"]
