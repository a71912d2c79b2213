"""Walks over rankings against rankings compared pair by pair, and samples against all rankings of tiny queries."""

import itertools
from dataclasses import replace
from time import process_time

import numpy as np
import pytest

import ltr
from ltr.data.queries import Queries, canonical, select
from ltr.linear.sampler import Walk, binary_labels, counts_of, draw, flip
from tests.conftest import JIT, make_queries


def pairs_of(order, good):
    """y_gb as a table: whether good g stands above bad b."""
    place = np.argsort(order)
    return place[:good, None] < place[None, good:]


def numbers(order, good):
    counts = np.empty(len(order), np.int32)
    counts_of(np.asarray(order), good, counts)
    return counts


def test_counts_pair_by_pair():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(2, 9))
        good = int(rng.integers(1, n))
        order = rng.permutation(n)
        y = pairs_of(order, good)
        want = np.concatenate((2 * (~y).sum(axis=1), -2 * (~y).sum(axis=0)))
        assert numbers(order, good).tolist() == want.tolist()


def test_a_flip_changes_one_pair_and_only_where_the_result_is_a_ranking():
    rng = np.random.default_rng(1)
    for _ in range(200):
        n = int(rng.integers(2, 8))
        good = int(rng.integers(1, n))
        order = rng.permutation(n)
        tables = {pairs_of(np.array(p), good).tobytes() for p in itertools.permutations(range(n))}
        before, place = pairs_of(order, good), np.argsort(order)
        for g, b in itertools.product(range(good), range(good, n)):
            wanted, moved = before.copy(), order.copy()
            wanted[g, b - good] ^= True
            done = flip(moved, good, *sorted((place[g], place[b])))
            assert done == (wanted.tobytes() in tables)
            assert np.array_equal(pairs_of(moved, good), wanted if done else before)


def tiny():
    rng = np.random.default_rng(2)
    labels = np.array([1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1.0])
    queries = Queries(rng.normal(size=(13, 3)), labels, np.array([0, 5, 9, 11, 13]))
    return canonical(replace(queries, sources={"binary": labels}))


def everything(queries, q):
    """All rankings of a query: δφ's numbers in the data's order, and their losses."""
    rows = np.arange(queries.offsets[q], queries.offsets[q + 1])
    labels = queries.labels[rows]
    order = np.concatenate((np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)))
    good, found = int(labels.sum()), {}
    for p in itertools.permutations(range(len(rows))):
        counts = np.empty(len(rows), np.int32)
        counts[order] = numbers(np.array(p), good)
        scores = np.empty(len(rows))
        scores[order[list(p)]] = -np.arange(len(rows))
        found[tuple(counts)] = 1 - ltr.evaluate(labels, scores, [0, len(rows)], ["map"], ltr.Conventions(threshold=1))["map"][0]
    return found


@pytest.mark.parametrize("options", [{}, {"restart": 0.1}, {"skew": -5.0}, {"length": 3}])
def test_long_walks_see_every_ranking_of_a_tiny_query_once(options):
    queries = tiny()
    sample = draw(queries, "map:binary", Walk(samples=3000, **options))
    both = [q for q in range(queries.n_queries) if queries.labels[queries.offsets[q] : queries.offsets[q + 1]].sum() > 0]
    assert sample.queries.tolist() == both
    at = 0
    for k, q in enumerate(both):
        n, begin, end = sample.sizes[k], sample.starts[k], sample.starts[k + 1]
        assert sample.documents[at : at + n].tolist() == list(range(queries.offsets[q], queries.offsets[q + 1]))
        at += n
        table = sample.counts[sample.cells[k] : sample.cells[k] + (end - begin) * n].reshape(-1, n)
        assert (table[0] == 0).all()
        drawn = {tuple(row): loss for row, loss in zip(table.tolist(), sample.losses[begin:end], strict=True)}
        want = everything(queries, q)
        assert len(table) == len(want)
        assert drawn == {counts: pytest.approx(loss) for counts, loss in want.items()}


def test_samples_do_not_depend_on_the_other_queries_and_skew_moves_them():
    queries = tiny()
    alone = select(queries, np.array([0]))
    whole, part = draw(queries, "map:binary", Walk(20)), draw(alone, "map:binary", Walk(20))
    assert np.array_equal(whole.counts[: len(part.counts)], part.counts)
    many = make_queries(40, largest=20, seed=3)
    many = canonical(replace(many, sources={"binary": (many.labels >= 3).astype(float)}))
    losses = [draw(many, "map:binary", Walk(50, skew=k)).losses.mean() for k in (-20.0, 0.0, 20.0)]
    assert losses[0] < losses[1] < losses[2]
    assert (
        draw(many, "map:binary", Walk(50, restart=1.0)).losses.mean()
        < draw(many, "map:binary", Walk(50, restart=0.0)).losses.mean()
    )
    assert draw(many, "map:binary", Walk(50)).counts.tobytes() != draw(many, "map:binary", Walk(50), seed=2).counts.tobytes()


def test_what_cannot_be_sampled():
    queries = make_queries(10)
    with pytest.raises(ValueError, match="have 5 levels, and conditional models need two: give 0 and 1, such as labels >= 2; in"):
        draw(queries, "map")
    with pytest.raises(ValueError, match="samples 0"):
        draw(tiny(), "map:binary", Walk(samples=0))
    with pytest.raises(ValueError, match="are all 1"):
        binary_labels(replace(queries, sources={"one": np.ones(queries.n_documents)}), "one")
    apart = Queries(np.zeros((4, 1)), np.array([1.0, 1, 0, 0]), np.array([0, 2, 4]))
    with pytest.raises(ValueError, match="no query has both"):
        draw(apart, "map")


def test_walks_begin_where_they_are_told_to():
    """One good document and ten bad ones: half of them stand above it, and a step moves it by one."""
    labels = np.array([0.0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    query = Queries(np.zeros((11, 1)), labels, np.array([0, 11]), sources={"binary": labels})
    for begin, above in ((0.0, {1}), (0.5, {4, 6}), (1.0, {9})):
        sample = draw(query, "map:binary", Walk(samples=60, length=1, begin=begin))
        table = sample.counts.reshape(-1, 11)
        assert {count // 2 for count in table[1:, 4].tolist()} == above


@pytest.mark.skipif(not JIT, reason="half a million drawings are for compiled code")
def test_a_long_query_is_drawn_from_in_seconds():
    """A drawing looked at every document, and as many drawings as documents make a step: two minutes of 8,000 documents."""

    def long(n):
        return ltr.Queries(np.random.default_rng(0).normal(size=(n, 1)), (np.arange(n) % 3 == 0) * 2.0, np.array([0, n]))

    draw(long(6), "map", Walk(samples=60))
    queries, begun = long(6000), process_time()
    assert len(draw(queries, "map", Walk(samples=60)).losses) > 30
    assert process_time() - begun < 6
