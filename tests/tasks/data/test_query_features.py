"""Tables of what is known of queries: how they are read and joined, and what is refused."""

from pathlib import Path

import polars as pl
import pytest

from tasks.config.reading import parse
from tasks.data.pool import pool
from tasks.data.query_features import read_query_features
from tasks.records import ConfigError, DataError


@pytest.fixture
def folder(workplace):
    (workplace / "q.csv").write_text("query,words,brand\n001,2,1\n1,,0\n2,3.5,nan\n")
    (workplace / "judged").write_text("001 0 a 2\n001 0 b 0\n1 0 a 1\n3 0 a 1\n")
    for name in "xy":
        (workplace / f"{name}.run").write_text(
            "".join(f"{q} Q0 {d} 0 {k} t\n" for q in ("001", "1", "3") for k, d in enumerate("ab"))
        )
    return workplace


def test_rows_are_read_by_the_text_of_their_query(folder):
    found = read_query_features([Path("q.csv")])
    assert found.rows() == [("001", 2.0, 1.0), ("1", None, 0.0), ("2", 3.5, None)]
    pl.DataFrame({"qid": ["3"], "words": [7], "brand": [True]}).write_parquet("more.parquet")
    assert read_query_features([Path("more.parquet")], "qid").rows() == [("3", 7.0, 1.0)]


def test_they_become_features_of_all_documents_of_a_query(folder):
    data = parse({"data": {"qrels": "judged", "runs": {"x": "x.run", "y": "y.run"}, "query_features": "q.csv"}}).data
    alone, notes = pool.fn(data)
    table = pl.read_parquet(alone.files[0])
    assert table.columns == ["query", "document", "label", "x", "y", "words", "brand"]
    assert table.select("query", "words", "brand").unique().sort("query").rows() == [
        ("001", 2.0, 1.0),
        ("1", None, 0.0),
        ("3", None, None),
    ]
    assert "1 query without a row in data.query_features: features missing" in notes
    assert alone.query_features == []
    without = pool.fn(data.model_copy(update={"query_features": []}))[0]
    assert without.files != alone.files


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("query,words\n1,two\n", r"q\.csv, row 1: column 'words' has 'two': features of queries must be numbers"),
        ("query,words\n1,2\n1,3\n", r"q\.csv: query '1' has two rows; each query must have one"),
        ("query,words\n1,2\n2,inf\n", r"q\.csv, row 2: column 'words' is infinite"),
        ("id,words\n1,2\n", r"q\.csv: columns id, words: 'query' and at least one feature are needed"),
        ("query\n1\n", "'query' and at least one feature are needed"),
        ('query,words\n1,2\n"",3\n', r"q\.csv, row 2: column 'query' is empty: every row must name its query"),
    ],
)
def test_what_is_wrong_is_named(folder, text, says):
    Path("q.csv").write_text(text)
    with pytest.raises(DataError, match=says):
        read_query_features([Path("q.csv")])


def test_files_that_differ_names_that_are_taken_and_data_of_another_kind(folder):
    Path("r.csv").write_text("query,other\n9,1\n")
    with pytest.raises(DataError, match=r"r\.csv: columns other; in q\.csv they are words, brand"):
        read_query_features([Path("q.csv"), Path("r.csv")])
    with pytest.raises(DataError, match="judged: features of queries are a table"):
        read_query_features([Path("judged")])
    Path("q.csv").write_text("query,x\n1,2\n")
    with pytest.raises(DataError, match=r"data\.query_features: 'x' is the name of another feature"):
        pool.fn(parse({"data": {"qrels": "judged", "runs": {"x": "x.run", "y": "y.run"}, "query_features": "q.csv"}}).data)
    with pytest.raises(ConfigError, match="query_features needs qrels; in files, query features are columns"):
        parse({"data": {"files": "a.csv", "query_features": "q.csv"}})
