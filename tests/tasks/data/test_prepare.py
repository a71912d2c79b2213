"""Cleaning and binary labels."""

from dataclasses import replace

import numpy as np
import polars as pl

import ltr
from ltr.data.queries import Queries
from tasks.config.click_labels import CLICKS
from tasks.config.data_section import Data
from tasks.data.prepare import cleaned, in_conflict, prepare
from tasks.records import RETRIEVED
from tasks.store.datasets import keep_queries, open_queries
from tests.conftest import make_queries

FILES = {"files": ["x"]}


def test_cleaning_drops_conflicts_then_queries_without_a_relevant_document():
    features = np.array([[1.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    queries = Queries(features, np.array([2.0, 0, 0, 1, 0, 2]), np.array([0, 3, 5, 6]))
    kept, dropped = cleaned(queries, 1)
    assert dropped == (2, 1)
    assert sorted(kept.labels.tolist()) == [0, 1, 2]


def test_conflicts_are_of_equal_features_and_of_equal_ids():
    """OHSUMED's documents have ids that differ and features that do not: by id alone nothing was dropped there."""
    features = np.array([[1.0], [1.0], [2.0], [3.0], [4.0], [1.0], [5.0]])
    labels = np.array([2.0, 0, 1, 0, 2, 1, 2])
    ids = np.array([b"a", b"b", b"c", b"c", b"d", b"a", b"e"])
    queries = Queries(features, labels, np.array([0, 5, 7]), documents=ids)
    kept, dropped = cleaned(queries, 1)
    assert dropped == (4, 0)
    assert sorted(kept.features[:, 0].tolist()) == [1, 4, 5]


def test_documents_that_no_run_retrieved_are_not_alike():
    """They have no scores, that is equal features, and count for the ideal ranking with whatever label they have."""
    queries = Queries(
        np.array([[1.0], [np.nan], [np.nan], [np.nan]]), np.array([0.0, 2, 0, 1]), np.array([0, 4]),
        sources={RETRIEVED: np.array([1.0, 0, 0, 0])}, documents=np.array([b"a", b"b", b"c", b"d"]),
    )  # fmt: skip
    kept, dropped = cleaned(queries, 1)
    assert (kept.n_documents, dropped) == (4, (0, 0))


def test_a_document_that_nobody_judged_contradicts_none():
    queries = ltr.Queries(np.ones((4, 1), np.float32), [0, np.nan, 0, 2], [0, 4])
    assert in_conflict(queries, np.array([1, 1, 2, 2], np.uint64)).tolist() == [False, False, True, True]


def test_queries_that_conflicts_leave_empty_are_counted():
    queries = Queries(np.array([[1.0], [1.0], [2.0]]), np.array([2.0, 0, 1]), np.array([0, 2, 3]))
    kept, dropped = cleaned(queries, 1)
    assert (kept.n_queries, dropped) == (1, (2, 1))


def test_cleaning_by_a_threshold_of_0_keeps_queries_without_a_label_above_it(workplace):
    """`binarise: 0` was taken for none, and cleaning went by 1."""
    queries = Queries(np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([0.0, 0, 2, 0]), np.array([0, 2, 4]))
    for binarise, kept in ((0, 2), (1, 1), (None, 1)):
        noted = prepare.fn(keep_queries(queries), Data(**FILES, clean=True, binarise=binarise))
        assert open_queries(noted.data).n_queries == kept


def test_binary_labels_are_a_source(workplace):
    queries = make_queries(10, clicks=False)
    noted = prepare.fn(keep_queries(queries), Data(**FILES, binarise=2))
    prepared = open_queries(noted.data)
    assert np.array_equal(prepared.sources["binary"], (queries.labels >= 2).astype(float))
    assert np.array_equal(prepared.labels, queries.labels)
    assert prepare.fn(keep_queries(queries), Data(**FILES, binarise=2)) == noted


def _prepared(labels, **asked):
    q = ltr.Queries(np.arange(len(labels), dtype=np.float32)[:, None], labels, [0, len(labels)])
    name = keep_queries(q)
    return [
        open_queries(prepare.fn(name, Data(files=["x"], **{**asked, **more})).data) for more in ({}, {"binarise_into": "label"})
    ]


def test_what_nobody_judged_is_not_binarised(workplace):
    found = _prepared([2, np.nan, 0], binarise=1)[0]
    np.testing.assert_array_equal(found.sources["binary"][np.argsort(found.features[:, 0])], [1, np.nan, 0])


def test_binary_labels_beside_and_instead_are_two_data_sets(workplace):
    as_source, as_label = _prepared([2, 1, 0], binarise=2)
    assert (sorted(as_source.labels), sorted(as_label.labels)) == ([0, 1, 2], [0, 0, 1])


def test_clicks_that_are_counted_otherwise_are_other_data(workplace, monkeypatch):
    """A way of counting from outside that was edited gave the labels of before."""
    queries = make_queries(20, seed=1)
    documents = np.array([f"d{k}".encode() for k in range(queries.n_documents)])
    queries = replace(queries, documents=documents, ids=np.array([f"q{k}".encode() for k in range(20)]))
    places = np.repeat(np.arange(20), np.diff(queries.offsets)).tolist()
    shown = [f"s{k},q{place},d{k},1,{1 + k % 2}" for k, place in enumerate(places)]
    (workplace / "log.csv").write_text("session,query,document,rank,click\n" + "\n".join(shown) + "\n")
    name, found = keep_queries(queries), []
    for order in (1, 2, 1):
        monkeypatch.setitem(CLICKS, "own", pl.col("order") == order)
        data = Data(files=["x"], clicks={"log": "log.csv", "clicks": "own"})
        found.append(prepare.fn(name, data).data)
    assert found[0] == found[2] != found[1]
