"""The certificate: its counts, its three verdicts, and its curves against plain evaluation."""

import numpy as np
import pytest

import ltr
from ltr.data.queries import canonical
from ltr.diagnostics.optimality import certify, n_directions, random_directions
from ltr.nets.network import random_weights, surface_of
from tests.conftest import JIT, make_queries

QUICK = {"epsilon": 0.1, "delta": 0.1}


def test_number_of_directions():
    assert n_directions(0.01, 0.01) == 459
    assert n_directions(0.1, 0.1) == 22
    with pytest.raises(ValueError, match="must lie in"):
        n_directions(0, 0.1)
    with pytest.raises(ValueError, match=r"epsilon 1e-300 and delta 0.1 ask for 2.3e\+300 directions; at most 1,000,000"):
        n_directions(1e-300, 0.1)


def test_directions_are_unit_vectors():
    assert (random_directions(20, 7, 1) ** 2).sum(axis=1) == pytest.approx(np.ones(20))


@pytest.mark.parametrize("hidden", [0, 3])
@pytest.mark.parametrize("measure", ["ndcg", "map", "mrr", "ndcg_3"])
def test_curves_are_the_measure_at_the_moved_weights(hidden, measure):
    queries = make_queries(40, seed=3)
    weights = random_weights(4, hidden, np.random.default_rng(1))
    found = certify(surface_of(weights, queries.features), queries, measure, steps=(0.1, 0.5), seed=9, **QUICK)
    directions = random_directions(22, len(weights.flat), 9)
    for k in (0, 11, 21):
        for e, eta in enumerate((0.1, 0.5)):
            scores = weights.moved(weights.flat + eta * directions[k]).scores(queries.features)
            want = np.nanmean(ltr.evaluate(queries.labels, scores, queries.offsets, [measure])[measure])
            assert found.curves[k, e] == pytest.approx(want, abs=1e-9)
    start = np.nanmean(ltr.evaluate(queries.labels, weights.scores(queries.features), queries.offsets, [measure])[measure])
    assert found.value == pytest.approx(start, abs=1e-12)


def test_random_weights_are_not_an_optimum_and_the_bound_covers_the_share():
    queries = make_queries(100, seed=1)
    found = certify(surface_of(random_weights(4, 0, np.random.default_rng(5)), queries.features), queries, "ndcg", **QUICK)
    assert found.verdict == "not"
    assert found.rising / len(found.curves) < found.upper_bound <= 1


def test_the_true_direction_is_an_optimum():
    """Labels are a function of w·x: every move away loses."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(3000, 3)).astype(np.float32)
    labels = np.searchsorted([-1.0, 0.0, 1.0, 2.0], features[:, 0] - features[:, 1]).astype(float)
    queries = canonical(ltr.Queries(features, labels, np.arange(0, 3001, 15)))
    truth = random_weights(3, 0, rng).moved(np.array([1.0, -1.0, 0.0]))
    found = certify(surface_of(truth, queries.features), queries, "ndcg", **QUICK)
    assert found.verdict == "optimum"
    assert found.rising == 0
    assert found.upper_bound == pytest.approx(0.1, abs=0.01)
    assert found.norm == pytest.approx(np.sqrt(2))


def test_huge_weights_are_inconclusive_not_optimal():
    queries = make_queries(30, seed=1)
    huge = random_weights(4, 0, np.random.default_rng(5))
    found = certify(surface_of(huge.moved(1e9 * huge.flat), queries.features), queries, "ndcg", steps=(0.1, 0.2), **QUICK)
    assert found.verdict == "inconclusive"
    assert found.tie_share == 1.0
    assert found.rising_or_tied == 22
    assert found.rising == 0


@pytest.mark.skipif(not JIT, reason="459 directions are for compiled code")
def test_same_certificate_for_any_number_of_threads():
    import numba

    queries = make_queries(150, seed=1)
    weights = random_weights(4, 0, np.random.default_rng(5))
    reference = certify(surface_of(weights, queries.features), queries)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        assert np.array_equal(certify(surface_of(weights, queries.features), queries).curves, reference.curves)
    finally:
        numba.set_num_threads(before)


def test_nothing_to_measure_is_an_error():
    queries = ltr.Queries(np.zeros((4, 2), np.float32), np.zeros(4), np.array([0, 4]))
    with pytest.raises(ValueError, match="undefined on every query: all labels are 0"):
        certify(surface_of(random_weights(2, 0, np.random.default_rng(0)), queries.features), queries, **QUICK)
    with pytest.raises(ValueError, match="rows of features"):
        certify(surface_of(random_weights(2, 0, np.random.default_rng(0)), queries.features[:2]), queries, **QUICK)


def test_one_weight_at_a_time_moves_each_up_and_down():
    queries = make_queries(30, seed=3)
    weights = random_weights(4, 0, np.random.default_rng(1))
    found = certify(surface_of(weights, queries.features), queries, "ndcg", steps=(0.5,), one_at_a_time=True, **QUICK)
    assert len(found.curves) == 8
    moved = weights.flat
    moved[2] -= 0.5
    want = np.nanmean(
        ltr.evaluate(queries.labels, weights.moved(moved).scores(queries.features), queries.offsets, ["ndcg"])["ndcg"]
    )
    assert found.curves[4 + 2, 0] == pytest.approx(want, abs=1e-9)


def test_documents_with_equal_scores_are_ranked_exactly():
    """Rows that are twice there tie at every step; ties count in expectation."""
    queries = make_queries(30, seed=3)
    features = np.repeat(queries.features, 2, axis=0)
    doubled = ltr.Queries(features, np.repeat(queries.labels, 2), 2 * queries.offsets)
    weights = random_weights(4, 0, np.random.default_rng(1))
    found = certify(surface_of(weights, features), doubled, "map", steps=(0.5,), seed=9, **QUICK)
    scores = weights.moved(weights.flat + 0.5 * random_directions(22, 4, 9)[5]).scores(features)
    want = np.nanmean(ltr.evaluate(doubled.labels, scores, doubled.offsets, ["map"])["map"])
    assert found.curves[5, 0] == pytest.approx(want, abs=1e-9)
