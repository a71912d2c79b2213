"""Judgments, runs and feature logs as one data set."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from tasks.config.data_section import Data
from tasks.data.ingest import ingest
from tasks.data.pool import pool
from tasks.records import RETRIEVED, DataError
from tasks.store.datasets import open_queries
from tasks.training.scoring import retrieved_only, scores_of


def test_judgments_and_runs_are_a_data_set(workplace):
    (workplace / "qrels").write_text("q1 0 a 2\nq1 0 b -2\nq1 0 n 1\nq2 0 a 1\nq9 0 a 1\n")
    (workplace / "r").write_text("q1 Q0 a 1 3 t\nq1 Q0 b 2 2 t\nq1 Q0 u 3 1 t\nq2 Q0 a 1 1 t\nq3 Q0 a 1 1 t\n")
    (workplace / "s").write_text("q1 Q0 b 1 9 t\n")
    noted = data, notes = pool.fn(Data(qrels=["qrels"], runs={"bm25": ["r"], "dense": ["s"]}, query="qid", folds=3))
    assert (data.query, data.folds, data.qrels) == ("qid", 3, [])
    assert pl.read_parquet(data.files[0]).rows() == [
        ("q1", "a", 2.0, 3.0, None, 1.0),
        ("q1", "b", 0.0, 2.0, 9.0, 1.0),
        ("q1", "n", 1.0, None, None, 0.0),
        ("q1", "u", None, 1.0, None, 1.0),
        ("q2", "a", 1.0, 1.0, None, 1.0),
    ]
    assert notes == [
        "1 query judged but in no run: left out",
        "1 query in a run but not judged: left out",
        "1 document judged but in no run: unranked, as in trec_eval, and not learned from",
        "1 document retrieved but not judged: kept, without a label",
        "1 judgment below 0: read as 0",
        "1 document not in run 'bm25'",
        "4 documents not in run 'dense'",
    ]
    queries = open_queries(ingest.fn(data.files, data).data)
    assert (queries.names, queries.n_queries, queries.n_documents) == (("bm25", "dense"), 2, 5)
    assert data.sources == [RETRIEVED]
    assert sorted(retrieved_only(queries).documents.tolist()) == [b"a", b"a", b"b", b"u"]
    missing_first = SimpleNamespace(
        names=queries.names, ranking_scores=lambda features: np.isnan(features).sum(axis=1).astype(np.float64)
    )
    assert queries.documents[scores_of(missing_first, queries) == -np.inf].tolist() == [b"n"]
    assert pool.fn(Data(qrels=["qrels"], runs={"bm25": ["r"], "dense": ["s"]}, query="qid", folds=3)) == noted
    (workplace / "s").write_text("q7 Q0 b 1 9 t\n")
    with pytest.raises(DataError, match="no judged query is in a run; queries there: q7; judged: q1, q2, q9"):
        pool.fn(Data(qrels=["qrels"], runs={"dense": ["s"]}))


@pytest.mark.parametrize("name", ["qrels", "feature logs", "query features", "bm25"])
@pytest.mark.parametrize("changed", ["j", "r", "q.csv"])
def test_a_file_that_changes_is_read_again_whatever_a_run_is_called(workplace, name, changed):
    def files(label, score, words):
        return {"j": f"q1 0 a {label}\n", "r": f"q1 Q0 a 1 {score} t\n", "q.csv": f"query,words\nq1,{words}\n"}

    first, second = files(1, 3, 5), files(2, 4, 6)
    for file, text in first.items():
        (workplace / file).write_text(text)
    data = Data(qrels=["j"], runs={name: ["r"]}, query_features=["q.csv"])
    assert pl.read_parquet(pool.fn(data)[0].files[0]).row(0) == ("q1", "a", 1.0, 3.0, 5.0)
    (workplace / changed).write_text(second[changed])
    expected = {"j": ("q1", "a", 2.0, 3.0, 5.0), "r": ("q1", "a", 1.0, 4.0, 5.0), "q.csv": ("q1", "a", 1.0, 3.0, 6.0)}
    assert pl.read_parquet(pool.fn(data)[0].files[0]).row(0) == expected[changed]


def test_judgments_and_forms(workplace):
    (workplace / "qrels").write_text("q1 0 a 2\nq1 0 n 1\n")
    (workplace / "r").write_text("q1 Q0 a 1 3 t\nq1 Q0 u 2 1 t\n")
    data, _ = pool.fn(Data(qrels=["qrels"], runs={"bm25": ["r"]}, run_forms=["rank", "z-score"]))
    assert pl.read_parquet(data.files[0]).rows() == [
        ("q1", "a", 2.0, 1.0, 1.0, 1.0),
        ("q1", "n", 1.0, None, -1.0, 0.0),
        ("q1", "u", None, 2.0, -1.0, 1.0),
    ]


@pytest.mark.parametrize("given", [{"label": "grade"}, {"query": "qid"}, {"document": "doc"}])
def test_no_run_is_called_as_a_column_of_the_pool_is(given):
    (name,) = given
    with pytest.raises(ValueError, match=f"runs.{name}: a run has at least one file, and a name that is not"):
        Data(qrels=["j"], runs={name: ["r"]}, **given)
