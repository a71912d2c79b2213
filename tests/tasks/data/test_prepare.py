"""Cleaning and binary labels."""

import numpy as np

from ltr.data.queries import Queries
from tasks.config.data_section import Data
from tasks.data.prepare import cleaned, prepare
from tasks.store.datasets import keep_queries, open_queries
from tests.conftest import make_queries

FILES = {"files": ["x"]}


def test_cleaning_drops_conflicts_then_queries_without_a_relevant_document():
    features = np.array([[1.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    queries = Queries(features, np.array([2.0, 0, 0, 1, 0, 2]), np.array([0, 3, 5, 6]))
    kept, dropped = cleaned(queries, 1)
    assert dropped == (2, 1)
    assert sorted(kept.labels.tolist()) == [0, 1, 2]


def test_binary_labels_are_a_source(workplace):
    queries = make_queries(10, clicks=False)
    noted = prepare.fn(keep_queries(queries), Data(**FILES, binarise=2))
    prepared = open_queries(noted.data)
    assert np.array_equal(prepared.sources["binary"], (queries.labels >= 2).astype(float))
    assert np.array_equal(prepared.labels, queries.labels)
    assert prepare.fn(keep_queries(queries), Data(**FILES, binarise=2)) == noted
