"""Binned features on disk."""

import errno
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import ltr
from ltr.trees import binned as binning
from tasks.store import binned, state
from tasks.store.datasets import keep_queries, open_queries
from tasks.store.seal import SEAL
from tests.conftest import make_queries


@pytest.fixture
def name(workplace, monkeypatch):
    monkeypatch.setattr(binned, "LEAST_VALUES", 0)
    return keep_queries(make_queries(30))


@pytest.fixture
def counted(monkeypatch):
    """How often features were binned."""
    times = []
    monkeypatch.setattr(binning, "find_bins", lambda *given, find=binning.find_bins: times.append(1) or find(*given))
    return times


def folders():
    return sorted((state.root() / "binned").iterdir())


def test_features_are_binned_once_for_all_that_ask_for_the_same_bins(name, counted):
    first, again = (binned.open_for(ltr.LambdaMART(n_trees=n), name) for n in (3, 5))
    assert len(counted) == len(folders()) == 1
    np.testing.assert_array_equal(first.binned, again.binned)
    np.testing.assert_array_equal(first.bins.edges, again.bins.edges)
    assert isinstance(again.binned.base, np.memmap)
    few = binned.open_for(ltr.LambdaMART(max_bins=4), name)
    assert len(counted) == len(folders()) == 2
    assert few.bins.edges.size < first.bins.edges.size
    other = keep_queries(make_queries(31))
    binned.open_for(ltr.LambdaMART(), other)
    assert len(counted) == len(folders()) == 3


@pytest.mark.parametrize(
    "options", [{}, {"max_bins": 5}, {"categorical": ["f2"]}, {"max_bins_by_feature": {"f3": 2}}, {"query_share": 0.5}]
)
def test_trees_are_those_of_the_queries_themselves(name, options):
    ranker = ltr.LambdaMART(n_trees=6, n_leaves=4, min_docs_in_leaf=5, **options)
    queries = open_queries(name)
    if "categorical" in options:
        queries.features[:, 1] = np.arange(queries.n_documents) % 4
        name = keep_queries(queries)
    alone = ranker.fit(queries)
    assert ranker.fit(binned.open_for(ranker, name)).digest == ranker.fit(binned.open_for(ranker, name)).digest == alone.digest
    begun = ltr.LambdaMART(**{**vars(ranker), "n_trees": 2}).fit(queries)
    assert ranker.go_on(begun, binned.open_for(ranker, name)).digest == alone.digest


def test_what_was_damaged_is_binned_again(name, counted):
    ranker = ltr.LambdaMART(n_trees=3, min_docs_in_leaf=5)
    whole = ranker.fit(binned.open_for(ranker, name)).digest
    (folder,) = folders()
    written = np.load(folder / "binned.npy")
    np.save(folder / "binned.npy", written[:, ::-1])
    assert ranker.fit(binned.open_for(ranker, name)).digest == whole
    assert len(counted) == 2
    assert [path.name for path in folders()] == [folder.name]


def test_a_folder_that_nobody_sealed_is_not_believed(name, counted):
    ranker = ltr.LambdaMART(n_trees=3, min_docs_in_leaf=5)
    whole = ranker.fit(binned.open_for(ranker, name)).digest
    (folder,) = folders()
    (folder / SEAL).unlink()
    written = np.load(folder / "binned.npy")
    np.save(folder / "binned.npy", written[:, ::-1])
    assert state.damaged()[1] == 1
    assert ranker.fit(binned.open_for(ranker, name)).digest == whole
    assert ranker.fit(binned.open_for(ranker, name)).digest == whole
    assert len(counted) == 2
    (folder / SEAL).unlink()
    for path in folder.iterdir():
        path.unlink()
    assert ranker.fit(binned.open_for(ranker, name)).digest == whole


def test_other_mathematics_bin_anew(name, counted, monkeypatch):
    binned.open_for(ltr.LambdaMART(), name)
    monkeypatch.setattr(binned, "core_digest", lambda: "another")
    binned.open_for(ltr.LambdaMART(), name)
    assert len(counted) == len(folders()) == 2


def test_a_full_disk_stops_no_training(name, counted, monkeypatch):
    ranker = ltr.LambdaMART(n_trees=3, min_docs_in_leaf=5)
    with monkeypatch.context() as full:
        full.setattr(np, "save", lambda *_, **__: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
        digest = ranker.fit(binned.open_for(ranker, name)).digest
    assert folders() == []
    assert ranker.fit(binned.open_for(ranker, name)).digest == digest
    assert len(folders()) == 1


def test_cells_that_begin_together_bin_once(name, counted):
    ranker = ltr.LambdaMART(n_trees=3, min_docs_in_leaf=5)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: binned.open_for(ranker, name), range(4)))
    assert len(counted) == 1
    assert len({ranker.fit(one).digest for one in found}) == 1


def test_other_rankers_and_few_values_take_the_queries(name, monkeypatch):
    assert isinstance(binned.open_for(ltr.LambdaRank(), name), ltr.Queries)
    monkeypatch.setattr(binned, "LEAST_VALUES", 10**6)
    assert isinstance(binned.open_for(ltr.LambdaMART(), name), ltr.Queries)
    assert not (state.root() / "binned").exists()


def test_categories_of_unknown_features_are_refused(name):
    with pytest.raises(ValueError, match="no feature 'site' in this data set"):
        binned.open_for(ltr.LambdaMART(categorical=["site"]), name)
    assert folders() == []
