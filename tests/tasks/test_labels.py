"""Cleaning, binary labels and cuts by query."""

from dataclasses import replace

import numpy as np
import pytest

from ltr.data.queries import Queries, select
from tasks import store
from tasks.config import Data
from tasks.ingest import DataError
from tasks.labels import cleaned, fit_together, prepare, rotate, split
from tests.conftest import make_queries
from tests.ltr.data.test_queries import shuffled

FILES = {"files": ["x"]}


def test_cleaning_drops_conflicts_then_queries_without_a_relevant_document():
    features = np.array([[1.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    queries = Queries(features, np.array([2.0, 0, 0, 1, 0, 2]), np.array([0, 3, 5, 6]))
    kept, dropped = cleaned(queries, 1)
    assert dropped == (2, 1)
    assert sorted(kept.labels.tolist()) == [0, 1, 2]


def test_binary_labels_are_a_source(workplace):
    queries = make_queries(10, clicks=False)
    noted = prepare.fn(store.keep_queries(queries), Data(**FILES, binarise=2))
    prepared = store.open_queries(noted["data"][0])
    assert np.array_equal(prepared.sources["binary"], (queries.labels >= 2).astype(float))
    assert np.array_equal(prepared.labels, queries.labels)
    assert prepare.fn(store.keep_queries(queries), Data(**FILES, binarise=2)) == noted


def test_a_split_is_by_query_complete_and_independent_of_order(workplace):
    queries = make_queries(40)
    name, other = store.keep_queries(queries), store.keep_queries(shuffled(queries))
    fold = split.fn(name, Data(**FILES), seed=1)[0]
    parts = {role: store.open_queries(stored) for role, stored in fold.items()}
    assert [parts[role].n_queries for role in ("train", "valid", "test")] == [24, 8, 8]
    assert sorted(np.concatenate([part.keys for part in parts.values()]).tolist()) == sorted(queries.keys.tolist())
    assert split.fn(name, Data(**FILES), seed=2)[0] != fold
    same = split.fn(other, Data(**FILES), seed=1)[0]
    assert [store.about_queries(same[role])["content"] for role in fold] == [
        store.about_queries(fold[role])["content"] for role in fold
    ]


def test_folds_test_every_query_once(workplace):
    queries = make_queries(23)
    folds = split.fn(store.keep_queries(queries), Data(**FILES, folds=5), seed=1)
    tested = np.concatenate([store.open_queries(fold["test"]).keys for fold in folds])
    assert sorted(tested.tolist()) == sorted(queries.keys.tolist())
    for fold in folds:
        keys = [set(store.open_queries(fold[role]).keys.tolist()) for role in ("train", "valid", "test")]
        assert not keys[0] & keys[1]
        assert not (keys[0] | keys[1]) & keys[2]
        assert sum(map(len, keys)) == 23


def test_letor_folds_rotate(workplace):
    queries = make_queries(10)
    parts = [store.keep_queries(select(queries, np.array([2 * k, 2 * k + 1]))) for k in range(5)]
    folds = rotate.fn(parts)
    assert [fold["valid"] for fold in folds] == [parts[3], parts[4], parts[0], parts[1], parts[2]]
    assert [fold["test"] for fold in folds] == [parts[4], parts[0], parts[1], parts[2], parts[3]]
    assert set(store.open_queries(folds[1]["train"]).keys.tolist()) == set(queries.keys[2:8].tolist())


def test_too_few_queries(workplace):
    with pytest.raises(DataError, match="2 queries cannot be cut into 3 parts"):
        split.fn(store.keep_queries(make_queries(2)), Data(**FILES), seed=1)


def test_sets_of_a_fold_get_one_width_and_a_share(workplace):
    wide, narrow = make_queries(20, n_features=4, seed=1), make_queries(20, n_features=3, seed=2)
    fold = {"train": store.keep_queries(wide), "valid": store.keep_queries(narrow), "test": store.keep_queries(wide)}
    fitted, _ = fit_together.fn(fold, 1.0, 1)
    assert fitted["train"] == fold["train"]
    assert store.open_queries(fitted["valid"]).n_features == 4
    assert store.open_queries(fit_together.fn(fold, 0.25, 1)[0]["train"]).n_queries == 5


def test_tables_name_their_features(workplace):
    queries = make_queries(20, n_features=3, seed=1)
    turned = replace(make_queries(20, n_features=3, seed=2), names=("f3", "f1", "f2"))
    short = replace(make_queries(20, n_features=2, seed=3), names=("f1", "f2"))
    strange = replace(make_queries(20, n_features=3, seed=4), names=("f1", "f2", "z"))
    train = store.keep_queries(queries)

    def fitted(other):
        return fit_together.fn({"train": train, "valid": train, "test": store.keep_queries(other)}, 1.0, 1, sparse=False)[0]

    opened = store.open_queries(fitted(turned)["test"])
    assert opened.names == ("f1", "f2", "f3")
    assert set(opened.features[:, 0].tolist()) == set(turned.features[:, 1].tolist())
    with pytest.raises(DataError, match="test: misses the feature 'f3'"):
        fitted(short)
    with pytest.raises(DataError, match="test: misses the feature 'f3', unlike"):
        fitted(strange)


def test_features_that_tell_a_label_are_left_out_of_all_sets_and_listed(workplace):
    sets = {role: make_queries(20, n_features=3, seed=k) for k, role in enumerate(("train", "valid", "test"))}
    told = sets["train"].features.copy()
    told[:, 1] = 3 - 2 * sets["train"].sources["click"]
    told[:, 2] = np.exp(sets["train"].labels)
    fold = {role: store.keep_queries(queries) for role, queries in sets.items()}
    fold["train"] = store.keep_queries(replace(sets["train"], features=told))
    fitted, notes = fit_together.fn(fold, 1.0, 1)
    assert [store.open_queries(name).names for name in fitted.values()] == [("f1",)] * 3
    assert notes == ["dropped, as they (nearly) equal the label: f3", "dropped, as they (nearly) equal the click: f2"]
    assert fit_together.fn(fold, 1.0, 1, drop_telling=False) == (fold, [])
    told[:, 0] = sets["train"].labels
    with pytest.raises(DataError, match="every feature encodes a label"):
        fit_together.fn({**fold, "train": store.keep_queries(replace(sets["train"], features=told))}, 1.0, 1)
