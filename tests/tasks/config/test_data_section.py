"""The section of data: one way to name them, and what goes with it."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from tasks.config.data_section import Data, Generate
from tasks.config.reading import parse
from tasks.records import ConfigError


def test_one_file_is_a_list_of_one():
    assert Data(files="a.txt").files == [Path("a.txt")]
    assert Data(files=["a.txt"], runs={"bm25": "b.run"}).runs == {"bm25": [Path("b.run")]}
    assert Data(files="a.txt", clicks="log.csv").clicks == Data(files="a.txt", clicks={"log": "log.csv"}).clicks


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        ({"files": ["a"], "shares": (0.5, 0.5, 0.5)}, "sum to 1"),
        ({"train": ["a"], "valid": ["b"], "test": ["c"], "folds": 3}, "folds needs files or qrels"),
        ({"generate": Generate(), "runs": {"a": ["b"]}}, "runs cannot be combined with generated data"),
        ({"qrels": ["a"]}, "qrels needs runs"),
        ({"files": ["a"], "runs": {"query": ["b"]}}, "a name that is not the query's"),
        ({"files": ["a"], "sources": ["binary"], "binarise": 1}, "two label sources are named 'binary'"),
        ({"files": ["a"], "sources": ["x/y"]}, "label source 'x/y': 1 to 100 letters, digits and '_'"),
        ({"files": ["a"], "clicks": {"log": "l", "more": {"a b": {}}}}, "label source 'a b'"),
        ({"generate": Generate(more={"a:b": {}})}, "label source 'a:b'"),
        ({"generate": Generate(more={"label": {}})}, "two label sources are named 'label'"),
        ({"generate": Generate(more={"click": {}})}, "two label sources are named 'click'"),
        (
            {"generate": Generate(), "clicks": {"log": "l"}},
            "clicks cannot be combined with generated data, which have their own click log",
        ),
        ({"generate": Generate(), "sources": ["fresh"]}, "sources cannot be combined with generated data"),
        ({"files": ["a"], "folds": 5, "shares": (0.8, 0.1, 0.1)}, "folds: 5 cuts them into equal parts; give one"),
        ({"files": ["a"], "run_forms": ["rank"]}, "run_forms needs runs"),
        ({"files": ["a"], "binarise_into": "label"}, "binarise_into: label needs binarise"),
    ],
)
def test_what_does_not_go_together(written, rule):
    with pytest.raises(ValidationError, match=rule):
        Data(**written)


def test_attributes_that_queries_can_be_told_apart_by():
    assert Data(files=["a"]).known == ["documents"]
    assert Data(files=["a"], attributes=["site", "text"]).known == ["site", "documents", "length"]
    assert Data(files=["a"], clicks={"log": "l"}).known == ["documents", "length", "popularity"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"files": "a.csv", "categorical": ["label"]}, "the column 'label' is the query, document, label"),
        ({"files": "a.csv", "attributes": ["site"], "categorical": ["site"]}, "the column 'site' is the query"),
        ({"files": "a.csv", "categories": {"site": ["a", "a"]}}, "categories.site: a category occurs twice"),
        (
            {"files": "a.csv", "categories": {"zip": [1234]}},
            "1234 is a number to YAML; write categories in quotes, as they are in the file",
        ),
        ({"generate": {}, "categorical": ["f1"]}, "columns of categories are in tables"),
    ],
)
def test_what_cannot_be_a_column_of_categories_is_refused(data, says):
    with pytest.raises(ConfigError, match=says):
        parse({"data": data})
