"""Drift: the index is its formula, and what came or went is named."""

import json

import numpy as np
import pytest

from ltr.data.queries import Queries
from tasks.evidence.drift import SHIFTED, Profile, drift, profile, shifted


def data(features, labels=None, names=("a", "b")):
    n = len(features)
    labels = np.zeros(n) if labels is None else labels
    return Queries(np.asarray(features, np.float32), np.asarray(labels, float), np.array([0, n]), names=names)


def test_the_index_is_its_formula():
    """Deciles of 1 … 10 have a document in each bin; the newer data stand in two of the bins."""
    before = data(np.column_stack([np.arange(1, 11), np.zeros(10)]))
    now = data(np.column_stack([np.r_[np.ones(5), np.full(5, 10.0)], np.zeros(10)]))
    (first, second, *_) = drift(profile(before), now)
    q, p = np.full(10, 1.5) / 15, np.r_[5.5, np.full(8, 0.5), 5.5] / 15
    assert first.name == "a"
    assert first.index == pytest.approx(((p - q) * np.log(p / q)).sum())
    assert second.index == 0


def test_missing_values_and_labels_are_seen_and_the_same_data_have_not_moved():
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(500, 2)), rng.integers(0, 5, 500).astype(float)
    older = profile(data(features, labels))
    assert not shifted(drift(older, data(features, labels)))
    assert not shifted(drift(older, data(rng.normal(size=(500, 2)), rng.integers(0, 5, 500))))
    gone = features.copy()
    gone[:250, 0] = np.nan
    moved = drift(older, data(gone, np.minimum(labels, 1)))
    assert {entry.name for entry in moved if entry.index >= SHIFTED} == {"a", "label"}


def test_what_leaves_the_range_of_the_older_data_has_moved():
    rng = np.random.default_rng(1)
    features, labels = np.column_stack([np.exp(rng.normal(size=500)), np.full(500, 5.0)]), rng.integers(0, 4, 500).astype(float)
    older = profile(data(features, labels))

    def moved(features, labels=labels):
        return {entry.name for entry in drift(older, data(features, labels)) if entry.index >= SHIFTED}

    longer_tail = np.where(features[:, 0] > np.quantile(features[:, 0], 0.9), 1000 * features[:, 0], features[:, 0])
    assert moved(np.column_stack([longer_tail, features[:, 1]])) == {"a"}
    assert moved(features - [100, 0]) == {"a"}
    assert moved(features - [0, 1]) == moved(features - [0, -1]) == {"b"}
    assert moved(features, np.where(labels == 3, 9, labels)) == {"label"}
    assert not moved(np.column_stack([np.exp(rng.normal(size=500)), features[:, 1]]))


def test_features_that_come_and_go_are_named():
    older = profile(data(np.zeros((4, 2))))
    assert shifted(drift(older, data(np.zeros((4, 2)), names=("a", "c")))) == ["b is gone", "c is new"]


def test_a_profile_is_read_as_it_was_written():
    kept = profile(data(np.arange(8.0).reshape(4, 2), [0, 1, 2, np.nan]))
    assert Profile.read(kept.as_json()) == kept


@pytest.mark.parametrize(
    "change",
    [
        {"features": []}, {"labels": None}, {"documents": "many"}, {"labels": {"label": {"edges": ["a"], "counts": [1, 2, 3]}}},
        {"labels": {"label": {"edges": [1.0, 2.0], "counts": [1, 2, 3]}}}, {"labels": {"label": {"edges": [1.0], "counts": None}}},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_profile_is_a_value_error(change):
    """Which a champion's is then as none; other errors ended the night's run."""
    written = profile(data(np.zeros((3, 2)))).as_json()
    for text in (json.dumps({**json.loads(written), **change}), written[:40], "[]", "", "\ufffd{"):
        with pytest.raises(ValueError, match=r"."):
            Profile.read(text)


def test_labels_of_many_values_move_anywhere_in_their_range():
    """Beyond the fifty smallest ones they were one bin."""
    rng = np.random.default_rng(0)
    uniform, higher = rng.random(2000), rng.random(2000) ** 0.25
    features = np.zeros((2000, 2), np.float32)
    (moved,) = [one for one in drift(profile(data(features, uniform)), data(features, higher)) if one.kind == "labels"]
    edges = np.quantile(uniform, np.arange(1, 10) / 10)
    before, now = (np.bincount(np.searchsorted(edges, values), minlength=10) for values in (uniform, higher))
    p, q = ((counts + 0.5) / (counts + 0.5).sum() for counts in (now, before))
    assert moved.index == pytest.approx(np.sum((p - q) * np.log(p / q)), rel=0.02)
    assert moved.index > 1
    same = [one.index for one in drift(profile(data(features, uniform)), data(features, rng.random(2000))) if one.kind == "labels"]
    assert max(same) < 0.05


def test_what_few_queries_make_by_chance_is_no_shift():
    """A feature that is one number in all documents of a query: there are as many draws as queries, not as many as documents."""
    rng = np.random.default_rng(1)

    def made(n, shift=0.0):
        own = np.repeat(rng.normal(size=n) + shift, 20)
        return Queries(
            np.column_stack((own, rng.normal(size=20 * n))).astype(np.float32),
            np.zeros(20 * n),
            20 * np.arange(n + 1),
            names=("a", "b"),
        )

    for n, least in ((30, 3.0), (100, 1.5), (500, 0.7)):
        found = [entry for _ in range(60) for entry in drift(profile(made(n)), made(n))]
        assert n == 500 or sum(entry.name == "a" and entry.index >= SHIFTED for entry in found) >= 15
        assert sum(entry.shifted for entry in found) <= 1
        (told,) = shifted(drift(profile(made(n)), made(n, least)))
        assert told.startswith("a: stability index")


@pytest.mark.parametrize("n", [5, 20])
@pytest.mark.parametrize("values", [2, 3, 1000])
def test_few_queries_of_any_number_of_values_are_rarely_called_moved(n, values):
    rng, called = np.random.default_rng(7), 0

    def made(n):
        own = np.repeat(rng.integers(0, values, n), 10)
        return Queries(own[:, None].astype(np.float32), np.zeros(10 * n), 10 * np.arange(n + 1), names=("a",))

    for _ in range(200):
        called += any(entry.name == "a" and entry.shifted for entry in drift(profile(made(100)), made(n)))
    assert called <= 4
    assert not shifted(drift(profile(made(100)), made(1)))


def test_a_feature_that_is_one_number_from_now_on_has_moved():
    rng = np.random.default_rng(3)

    def made(values):
        return Queries(values[:, None].astype(np.float32), np.zeros(1000), 10 * np.arange(101), names=("a",))

    broken = drift(profile(made(rng.normal(size=1000))), made(np.zeros(1000)))
    assert [text.partition(":")[0] for text in shifted(broken)] == ["a"]


def test_a_sparse_feature_that_is_dead_has_moved_unless_few_queries_have_it():
    """A tenth of the documents of every query has clicks, or all documents of a tenth of the queries: 76 others may lack the latter by chance."""
    rng, dead = np.random.default_rng(5), np.zeros((760, 2), np.float32)

    def made(features):
        return Queries(features, np.zeros(760), 10 * np.arange(77), names=("clicks", "season"))

    some = np.column_stack((rng.random(760) < 0.1, np.repeat(np.arange(76) % 10 == 0, 10))).astype(np.float32)
    kept = profile(made(some))
    assert [text.partition(":")[0] for text in shifted(drift(kept, made(dead)))] == ["clicks"]
    written = json.loads(kept.as_json())
    del written["features"]["clicks"]["scatter"]
    assert not shifted(drift(Profile.read(json.dumps(written)), made(dead))), "of earlier releases nothing is known of it"


@pytest.mark.parametrize(("before", "now"), [(2, 1000), (1000, 2), (5, 5)])
def test_what_is_the_same_in_few_documents_and_in_many_has_not_moved(before, now):
    """One number everywhere, nothing but missing values, and a pattern that every query has."""

    def made(n):
        columns = [np.full(10, 3.0), np.full(10, np.nan), np.arange(10) % 2, np.arange(10)]
        labels = np.tile([0.0, 1.0, *np.zeros(8)], n)
        return Queries(np.tile(np.column_stack(columns), (n, 1)).astype(np.float32), labels, 10 * np.arange(n + 1))

    found = drift(profile(made(before)), made(now))
    assert not shifted(found)
    assert max(entry.index for entry in found) < 0.1
    assert [entry.index for entry in found if entry.name in ("f1", "f2")] == [0, 0]
