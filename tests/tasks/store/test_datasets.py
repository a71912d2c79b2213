"""Data sets on disk."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.records import DataError
from tasks.store import state
from tasks.store.datasets import about_queries, keep_queries, open_queries
from tests.conftest import make_queries


def test_stored_queries_come_back(workplace):
    queries = make_queries(10)
    name = keep_queries(queries)
    opened = open_queries(name)
    assert opened.digest == queries.digest == about_queries(name).content
    assert isinstance(opened.features.base, np.memmap) or isinstance(opened.features, np.memmap)
    opened.features[0, 0] = 99
    assert open_queries(name).digest == queries.digest


def test_documents_of_other_ids_are_another_data_set(workplace):
    """They have the same content digest and train the same models, but runs and click logs are joined by id."""
    queries = make_queries(10)
    ids = [np.array([f"{letter}{k}".encode() for k in range(queries.n_documents)]) for letter in "de"]
    names = [keep_queries(queries), *(keep_queries(replace(queries, documents=documents)) for documents in ids)]
    assert len(set(names)) == 3
    assert [open_queries(name).documents is None for name in names] == [True, False, False]
    assert {document[:1] for document in open_queries(names[2]).documents} == {b"e"}
    assert len({about_queries(name).content for name in names}) == 1


def test_a_damaged_data_set_is_refused_and_stored_again(workplace):
    queries = make_queries(10)
    name = keep_queries(queries)
    features = state.root() / "data" / name / "features.npy"
    with open(features, "r+b") as file:
        file.truncate(200)
    with pytest.raises(DataError, match=r"features.npy has 200 bytes and was written with .*: remove .* and run the same command"):
        open_queries(name)
    assert keep_queries(queries) == name
    assert open_queries(name).digest == queries.digest


def test_counts_of_a_damaged_data_set_are_refused(workplace):
    name = keep_queries(make_queries(10))
    about = state.root() / "data" / name / "about.json"
    for damaged in ("", "[]", "{}"):
        about.write_text(damaged)
        with pytest.raises(DataError, match=r"about.json has other bytes than were written: remove .*, which creates it again"):
            about_queries(name)
