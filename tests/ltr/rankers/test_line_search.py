"""A whole line of mixtures against the measure of each of them, taken anew."""

import itertools

import numpy as np
import pytest

import ltr
from ltr.metrics.evaluation import NOT_RANKED
from ltr.metrics.many import Judged
from ltr.rankers.line_search import Mixtures, _highest, between, mean_of, mix_scores
from tests.conftest import make_queries


def naive_crossings(a, b, offsets):
    """Every α in (0, 1) at which two documents of a query change places."""
    found = set()
    for first, last in itertools.pairwise(offsets.tolist()):
        for i, j in itertools.combinations(first + np.flatnonzero(np.isfinite(a[first:last])), 2):
            da, db = a[i] - a[j], b[i] - b[j]
            if da * db < 0:
                found.add(da / (da - db))
    return np.array([0.0, *sorted(found), 1.0])


@pytest.mark.parametrize(
    "rules", [{}, {"ties": "stable"}, {"ties": "worst", "empty": "zero"}, {"unlabelled": "condensed"}, {"short": "zero"}]
)
@pytest.mark.parametrize("measure", ["ndcg_3", "ndcg", "map", "mrr", "err", "p_2", "map_3"])
@pytest.mark.parametrize("levels", [None, 6])
@pytest.mark.parametrize("at_no_rank", [None, 3])
def test_every_mixture_has_its_value(measure, rules, levels, at_no_rank):
    """With few levels of scores many documents tie all the way, and many lines meet in one point; one document in so many is in neither
    ranking."""
    queries, conventions = make_queries(7, seed=4, largest=14), ltr.Conventions(threshold=1, **rules)
    queries.labels[::6] = queries.labels[: queries.offsets[1]] = np.nan
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, queries.n_documents)) if levels is None else rng.integers(0, levels, (2, queries.n_documents)) / 1.0
    if at_no_rank is not None:
        absent = rng.random(queries.n_documents) < 1 / at_no_rank
        absent[queries.offsets[2]] = absent[queries.offsets[3]] = False
        a[absent] = b[absent] = NOT_RANKED
    judged, key = Judged.of(queries, ltr.Measure.of(measure), conventions), ltr.Measure.of(measure).key
    found = between(judged, a, b)

    def mean(scores):
        return np.nanmean(ltr.evaluate(queries.labels, scores, queries.offsets, [measure], conventions, queries.position)[key])

    edges = naive_crossings(a, b, queries.offsets)
    for alpha in 0.5 * (edges[1:] + edges[:-1]):
        mixed = mix_scores(a, b, alpha)
        assert found.values[np.searchsorted(found.alphas, alpha)] == pytest.approx(mean(mixed), abs=1e-12)
        assert mean_of(judged, mixed) == pytest.approx(mean(mixed), abs=1e-12)
    assert found.ends == pytest.approx((mean(a), mean(b)), abs=1e-12)
    assert set(found.alphas) <= set(edges.tolist())


def test_documents_below_a_cutoff_all_the_way_are_left_out_and_nothing_changes():
    rng = np.random.default_rng(0)
    labels, offsets = rng.integers(0, 4, 400).astype(np.float64), np.array([0, 250, 400])
    a, b = rng.normal(size=(2, 400)) + 0.3 * labels
    judged = Judged.of_labels(labels, offsets, ltr.Measure.of("ndcg_5"), ltr.Conventions())
    found = between(judged, a, b)
    assert len(found.alphas) < len(naive_crossings(a, b, offsets)) / 20
    for alpha in np.linspace(0.0013, 0.9987, 200):
        value = ltr.evaluate(labels, mix_scores(a, b, alpha), offsets, ["ndcg_5"])["ndcg_5"].mean()
        assert found.values[np.searchsorted(found.alphas, alpha)] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("tied", [False, True])
def test_a_sum_over_ranks_is_followed_through_many_thousand_crossings(tied):
    rng = np.random.default_rng(2)
    labels, offsets = rng.integers(0, 5, 400).astype(np.float64), np.array([0, 1, 400])
    a, b = rng.normal(size=(2, 400)) + 0.3 * labels
    if tied:
        a[100:150], b[100:150] = a[50:100], b[50:100]
    found = between(Judged.of_labels(labels, offsets, ltr.Measure.of("ndcg"), ltr.Conventions()), a, b)
    assert len(found.alphas) > 10_000
    for alpha in np.linspace(0.0013, 0.9987, 200):
        value = np.nanmean(ltr.evaluate(labels, mix_scores(a, b, alpha), offsets, ["ndcg"])["ndcg"])
        assert found.values[np.searchsorted(found.alphas, alpha)] == pytest.approx(value, abs=1e-12)


def test_an_interval_of_rounding_is_not_the_best_one():
    found = Mixtures(np.array([0.3, 0.3 + 1e-12, 0.9]), np.array([0.1, 0.9, 0.2, 0.2]), (0.0, 0.0), "ndcg_10")
    assert found.best == (0.3 + 1e-12, 0.9, 0.2)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused(wrong):
    """The kernels would write outside their arrays."""
    queries = make_queries(5)
    scores = np.arange(queries.n_documents, dtype=float)
    broken = scores.copy()
    broken[3] = wrong
    judged = Judged.of(queries, ltr.Measure.of("ndcg_3"), ltr.Conventions())
    for refused in (
        lambda: between(judged, scores, broken),
        lambda: between(judged, broken, scores),
        *([] if wrong == -np.inf else [lambda: mean_of(judged, broken)]),
    ):
        with pytest.raises(ValueError, match="of document 3: scores that are mixed must be finite"):
            refused()


def test_two_rankers_scores_are_of_the_same_documents():
    assert ltr.mix_scores([1, 2], [3, 5], 0.25).tolist() == [1.5, 2.75]
    with pytest.raises(ValueError, match="mix_scores: first has 3 scores and second 1; both are of the same documents"):
        ltr.mix_scores([1, 2, 3], [1], 0.5)


def test_the_kth_highest_is_the_one_of_a_sorted_list():
    rng = np.random.default_rng(0)
    for n in [*range(1, 30), 1000]:
        for values in (rng.normal(size=n), rng.integers(0, 4, n) * 1.0, np.arange(n) * 1.0, np.append(rng.normal(size=n), np.inf)):
            for k in {1, len(values), int(rng.integers(1, len(values) + 1))}:
                assert _highest(values, k) == np.sort(values)[-k]
