"""Cuts by query, rotated parts, and features that fit together."""

from dataclasses import replace

import numpy as np
import pytest

from ltr.data.queries import in_order, select
from tasks.config.data_section import Data
from tasks.data.folds import fit_together, rotate, split, validation_cut
from tasks.records import DataError, Fold
from tasks.store.datasets import about_queries, keep_queries, open_queries
from tests.conftest import make_queries
from tests.ltr.data.test_queries import shuffled

FILES = {"files": ["x"]}


def test_a_split_is_by_query_complete_and_independent_of_order(workplace):
    queries = make_queries(40)
    name, other = keep_queries(queries), keep_queries(shuffled(queries))
    fold = split.fn(name, Data(**FILES), seed=1)[0]
    parts = {role: open_queries(stored) for role, stored in fold.roles.items()}
    assert [parts[role].n_queries for role in ("train", "valid", "test")] == [24, 8, 8]
    assert sorted(np.concatenate([part.keys for part in parts.values()]).tolist()) == sorted(queries.keys.tolist())
    assert split.fn(name, Data(**FILES), seed=2)[0] != fold
    same = split.fn(other, Data(**FILES), seed=1)[0]
    assert [about_queries(n).content for n in same.roles.values()] == [about_queries(n).content for n in fold.roles.values()]


def test_folds_test_every_query_once(workplace):
    queries = make_queries(23)
    folds = split.fn(keep_queries(queries), Data(**FILES, folds=5), seed=1)
    tested = np.concatenate([open_queries(fold.test).keys for fold in folds])
    assert sorted(tested.tolist()) == sorted(queries.keys.tolist())
    for fold in folds:
        keys = [set(open_queries(part).keys.tolist()) for part in fold.roles.values()]
        assert not keys[0] & keys[1]
        assert not (keys[0] | keys[1]) & keys[2]
        assert sum(map(len, keys)) == 23


def test_letor_folds_rotate(workplace):
    queries = make_queries(10)
    parts = [keep_queries(select(queries, np.array([2 * k, 2 * k + 1]))) for k in range(5)]
    folds = rotate.fn(parts)
    assert [fold.valid for fold in folds] == [parts[3], parts[4], parts[0], parts[1], parts[2]]
    assert [fold.test for fold in folds] == [parts[4], parts[0], parts[1], parts[2], parts[3]]
    assert set(open_queries(folds[1].train).keys.tolist()) == set(queries.keys[2:8].tolist())


def test_parts_that_are_tables_may_order_their_features_differently(workplace):
    queries = make_queries(10, n_features=3)
    own = [select(queries, np.array([2 * k, 2 * k + 1])) for k in range(5)]
    turned = in_order(own[1], ("f3", "f1", "f2"))
    parts = [keep_queries(part) for part in own]
    expected = rotate.fn(parts, sparse=False)
    assert rotate.fn([parts[0], keep_queries(turned), *parts[2:]], sparse=False) == expected == rotate.fn(parts)
    short = keep_queries(in_order(own[1], ("f1", "f2")))
    with pytest.raises(DataError, match="part 2: lacks the feature 'f3', unlike part 1"):
        rotate.fn([parts[0], short, *parts[2:]], sparse=False)
    with pytest.raises(DataError, match="part 2: has the feature 'f3', unlike part 1"):
        rotate.fn([short, parts[0], *parts[2:]], sparse=False)


def test_too_few_queries(workplace):
    with pytest.raises(DataError, match="2 queries cannot be cut into 3 parts"):
        split.fn(keep_queries(make_queries(2)), Data(**FILES), seed=1)


def test_sets_of_a_fold_get_one_width_and_a_share(workplace):
    wide, narrow = make_queries(20, n_features=4, seed=1), make_queries(20, n_features=3, seed=2)
    fold = Fold(keep_queries(wide), keep_queries(narrow), keep_queries(wide))
    fitted, _ = fit_together.fn(fold, 1.0, 1)
    assert fitted.train == fold.train
    assert open_queries(fitted.valid).n_features == 4
    assert open_queries(fit_together.fn(fold, 0.25, 1)[0].train).n_queries == 5


def test_tables_name_their_features(workplace):
    queries = make_queries(20, n_features=3, seed=1)
    turned = replace(make_queries(20, n_features=3, seed=2), names=("f3", "f1", "f2"))
    short = replace(make_queries(20, n_features=2, seed=3), names=("f1", "f2"))
    strange = replace(make_queries(20, n_features=3, seed=4), names=("f1", "f2", "z"))
    train = keep_queries(queries)

    def fitted(other):
        return fit_together.fn(Fold(train, train, keep_queries(other)), 1.0, 1, sparse=False)[0]

    opened = open_queries(fitted(turned).test)
    assert opened.names == ("f1", "f2", "f3")
    assert set(opened.features[:, 0].tolist()) == set(turned.features[:, 1].tolist())
    with pytest.raises(DataError, match="test: lacks the feature 'f3'"):
        fitted(short)
    with pytest.raises(DataError, match="test: lacks the feature 'f3', unlike"):
        fitted(strange)


def test_features_that_tell_a_label_are_left_out_of_all_sets_and_listed(workplace):
    sets = {role: make_queries(20, n_features=3, seed=k) for k, role in enumerate(("train", "valid", "test"))}
    leaking = sets["train"].features.copy()
    leaking[:, 1] = 3 - 2 * sets["train"].sources["click"]
    leaking[:, 2] = np.exp(sets["train"].labels)
    fold = Fold(**{role: keep_queries(queries) for role, queries in sets.items()})
    fold = replace(fold, train=keep_queries(replace(sets["train"], features=leaking)))
    fitted, notes = fit_together.fn(fold, 1.0, 1)
    assert [open_queries(name).names for name in fitted.roles.values()] == [("f1",)] * 3
    assert notes == ["dropped, as they (nearly) equal the label: f3", "dropped, as they (nearly) equal the click: f2"]
    assert fit_together.fn(fold, 1.0, 1, drop_leaking=False) == (fold, [])
    leaking[:, 0] = sets["train"].labels
    with pytest.raises(DataError, match="every feature encodes a label"):
        fit_together.fn(replace(fold, train=keep_queries(replace(sets["train"], features=leaking))), 1.0, 1)


def sizes_of(fold):
    return [open_queries(name).n_queries for name in fold.roles.values()]


def test_shares_are_rounded_to_the_nearest_query(workplace):
    """.6 and .8 of 11 are 6.6 and 8.8."""
    (fold,) = split.fn(keep_queries(make_queries(11)), Data(files=["x"]), 1)
    assert sizes_of(fold) == [7, 2, 2]


def test_validation_queries_are_cut_in_their_share_of_both(workplace):
    """.6 to .2 of 11."""
    name = keep_queries(make_queries(11))
    assert sizes_of(validation_cut.fn(name, name, Data(files=["x"]), 1))[:2] == [8, 3]
