"""Fusion by hand, weights against a fine grid, and what a fitted one keeps."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import canonical
from ltr.data.runs import formed
from ltr.metrics.conventions import Conventions
from ltr.metrics.many import Judged
from ltr.metrics.measure import Measure
from ltr.rankers.fusion import _Search
from tests.conftest import make_queries

NAMES = (
    "a",
    "rank of a",
    "min-max of a",
    "z-score of a",
    "borda of a",
    "b",
    "rank of b",
    "min-max of b",
    "z-score of b",
    "borda of b",
)
ROWS = np.array([
    [9.0, 1, 1.0, 1.2, 1.0, 0.5, 2, 0.5, 0.0, 0.5],
    [7.0, 2, 0.5, 0.0, 0.5, np.nan, np.nan, 0.0, -1.0, 0.0],
    [np.nan, np.nan, 0.0, -1.2, 0.0, 0.7, 1, 1.0, 1.0, 1.0],
    [np.nan, np.nan, 0.0, -1.2, 0.0, np.nan, np.nan, 0.0, -1.0, 0.0],
], np.float32)  # fmt: skip


def two_lists():
    return ltr.Queries(ROWS, np.array([2.0, 0, 1, 0]), np.array([0, 4]), names=NAMES)


def three_systems(n_queries=25, seed=0):
    """Queries with three systems of different worth in one form, scores and ranks."""
    queries = canonical(make_queries(n_queries, seed=seed, largest=12))
    rng = np.random.default_rng(seed)
    columns, names = [], []
    for k, noise in enumerate((1.0, 1.5, 4.0)):
        scores = queries.labels + noise * rng.normal(size=queries.n_documents)
        scaled = np.empty(queries.n_documents)
        for a, b in itertools.pairwise(queries.offsets.tolist()):
            order = np.argsort(-scores[a:b])
            scaled[a:b][order] = formed("min-max", scores[a:b][order], np.array([0, b - a]))
        columns.append(scaled)
        names.append(f"min-max of s{k}")
    return replace(queries, features=np.column_stack(columns).astype(np.float32), names=tuple(names))


@pytest.mark.parametrize(
    ("ranker", "scores"),
    [
        (ltr.Fusion(), [1 / 61 + 1 / 62, 1 / 62, 1 / 61, 0]),
        (ltr.Fusion(k=0), [1 + 1 / 2, 1 / 2, 1, 0]),
        (ltr.Fusion(form="min-max"), [1.5, 0.5, 1, 0]),
        (ltr.Fusion(form="min-max", by="mnz"), [3, 0.5, 1, 0]),
        (ltr.Fusion(form="z-score"), [1.2, -1, -0.2, -2.2]),
        (ltr.Fusion(form="borda", runs=("b", "a")), [1.5, 0.5, 1, 0]),
        (ltr.WeightedFusion(form="min-max", weights=np.array([0.25, 0.75]), names=NAMES), [0.625, 0.125, 0.75, 0]),
    ],
)
def test_scores_by_hand(ranker, scores):
    fitted = ranker if ranker.names else ranker.fit(two_lists())
    assert fitted.predict(ROWS) == pytest.approx(scores, rel=1e-6)


@pytest.mark.parametrize("form", ["reciprocal-rank", "min-max", "z-score", "borda"])
def test_what_none_of_its_systems_has_is_at_no_rank_whatever_is_added_up(form):
    queries = two_lists()
    assert ltr.Fusion(form=form).fit(queries).ranked(ROWS).tolist() == [True, True, True, False]
    of_c = [name[:-1] + "c" for name in NAMES[5:]]
    with_c = replace(queries, names=(*NAMES, *of_c), features=np.hstack((ROWS, ROWS[::-1, 5:])))
    assert ltr.Fusion(form=form, runs=("a", "c")).fit(with_c).ranked(with_c.features).tolist() == [True, True, False, True]
    assert ltr.Fusion(form=form, runs=("a", "b")).fit(with_c).ranked(with_c.features).tolist() == [True, True, True, False]
    if form != "reciprocal-rank":
        column = ltr.Column(f"{form} of b").fit(with_c)
        assert column.ranked(with_c.features).tolist() == [True, False, True, False]
        assert column.remarks == ("2 of 4 training documents have no rank of b and are unranked (not retrieved)",)


@pytest.mark.parametrize("ranker", [ltr.Fusion(form="min-max", by="mnz"), ltr.WeightedFusion(form="min-max", directions=1)])
def test_what_leaves_a_document_without_a_score_is_named(ranker):
    """And not what it lacks besides, which is not added up."""
    fitted, rows = ranker.fit(two_lists()), ROWS.copy()
    rows[1, 7] = np.nan
    with pytest.raises(ValueError, match="row 1: feature 'min-max of b' is missing"):
        fitted.predict(rows)
    rows[1, 0] = np.inf
    with pytest.raises(ValueError, match="row 1: feature 'min-max of b' is missing"):
        fitted.predict(rows)


def test_equal_sums_of_reciprocal_ranks_tie():
    """Ranks (1, 2, 3) in any order add up to one score, whatever the order of the additions."""
    rows = np.array(list(itertools.permutations((1.0, 7.0, 40.0))), np.float32)
    names = ("rank of a", "rank of b", "rank of c")
    queries = ltr.Queries(rows, np.arange(6.0), np.array([0, 6]), names=names)
    assert len(set(ltr.Fusion().fit(queries).predict(rows).tolist())) == 1


@pytest.mark.parametrize("measure", ["ndcg_3", "map"])
def test_no_weights_of_a_fine_grid_are_better(measure):
    queries = three_systems()
    fitted = ltr.WeightedFusion(form="min-max", measure=measure, restarts=3).fit(queries)
    key = ltr.Measure.of(measure).key

    def mean(weights):
        scores = queries.features.astype(np.float64) @ weights
        return np.nanmean(ltr.evaluate(queries.labels, scores, queries.offsets, [measure])[key])

    grid = [np.array([i, j, 30 - i - j]) / 30 for i in range(31) for j in range(31 - i)]
    reached = mean(fitted.weights)
    assert reached >= max(map(mean, grid)) - 1e-12
    assert f"{key} {reached:.4f}, with equal weights {mean(np.full(3, 1 / 3)):.4f}" in fitted.remarks[0]
    assert (fitted.weights >= 0).all()
    assert fitted.weights.sum() == pytest.approx(1)


def test_the_place_is_a_local_optimum():
    queries = three_systems(60, seed=3)
    fitted = ltr.WeightedFusion(form="min-max").fit(queries)
    assert ltr.certify(fitted.surface(queries.features), queries, "ndcg_10").verdict == "optimum"
    lazy = ltr.WeightedFusion(form="min-max", restarts=0, directions=0).fit(queries)
    assert ltr.certify(lazy.surface(queries.features), queries, "ndcg_10").value <= fitted_value(fitted, queries)


def fitted_value(fitted, queries):
    return np.nanmean(ltr.evaluate(queries.labels, fitted.predict(queries.features), queries.offsets, ["ndcg_10"])["ndcg_10"])


def test_a_system_that_says_nothing_is_left_out_of_the_surface():
    queries = three_systems()
    fitted = replace(ltr.WeightedFusion(form="min-max").fit(queries), weights=np.array([0.5, 0.0, 0.5]))
    surface = fitted.surface(queries.features)
    assert surface.weights.tolist() == [0.5, 0.5]
    moved = fitted.moved(np.array([0.2, -0.1]))
    assert moved.weights.tolist() == [0.2, 0.0, -0.1]
    assert surface.slopes(0, queries.n_documents, np.array([[0.2, -0.1]]))[0] == pytest.approx(moved.predict(queries.features))
    assert fitted.linear_weights.tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize(
    "ranker", [ltr.Fusion(k=10, runs=("b", "a")), ltr.Fusion(form="z-score", by="mnz"), ltr.WeightedFusion(restarts=1)]
)
def test_a_saved_one_is_the_same(ranker, tmp_path):
    fitted = ranker.fit(two_lists())
    ltr.save(fitted, tmp_path / "m")
    opened = ltr.load(tmp_path / "m")
    assert opened.digest == fitted.digest
    assert opened.predict(ROWS).tolist() == fitted.predict(ROWS).tolist()


def test_the_order_of_the_rows_decides_nothing():
    queries = three_systems()
    order = np.random.default_rng(5).permutation(queries.n_queries)
    rows = np.concatenate([np.arange(queries.offsets[q], queries.offsets[q + 1])[::-1] for q in order])
    sizes = np.diff(queries.offsets)[order]
    shuffled = ltr.Queries(
        queries.features[rows], queries.labels[rows], np.append(0, np.cumsum(sizes)), keys=queries.keys[order], names=queries.names
    )
    assert ltr.WeightedFusion(form="min-max").fit(shuffled).digest == ltr.WeightedFusion(form="min-max").fit(queries).digest


def test_what_cannot_be_fused_is_named():
    queries = make_queries(4)
    with pytest.raises(
        ValueError, match=r"fusion: it fuses two runs or more, and the data have 0 as 'rank': features named 'rank of NAME', which"
    ):
        ltr.Fusion().fit(queries)
    with pytest.raises(ValueError, match=r"fusion: no feature 'rank of c'; there are: a, rank of a"):
        ltr.Fusion(runs=("a", "c")).fit(two_lists())
    with pytest.raises(ValueError, match="weighted_fusion: it fuses two runs or more, and the data have 1"):
        ltr.WeightedFusion(runs=("a",)).fit(two_lists())
    with pytest.raises(ValueError, match="lower 'errors' is better, but this measure must be maximised"):
        ltr.WeightedFusion(measure="errors")
    with pytest.raises(ValueError, match="form='log' is out of range"):
        ltr.Fusion(form="log")
    with pytest.raises(ValueError, match="fusion: runs: 'a' is there twice"):
        ltr.Fusion(runs=("a", "b", "a"))
    assert ltr.QueryFusion(by="length", runs=["a", "b"]).by == ("length",)


@pytest.mark.parametrize("by", ["sum", "mnz"])
def test_equal_sums_of_bordas_shares_tie(by):
    """(n − rank + 1)/n of two lists of ten, as the float32 that features are: 0.9 + 0.9 was less than 1 + 0.8."""
    shares = (1 - np.arange(10) / 10).astype(np.float32)
    first, second = (grid.ravel() for grid in np.meshgrid(shares, shares))
    rows = np.column_stack((first, second, np.ones(100), np.ones(100))).astype(np.float32)
    names = ("borda of a", "borda of b", "rank of a", "rank of b")
    queries = ltr.Queries(rows, np.arange(100.0) % 5, np.array([0, 100]), names=names)
    scores = ltr.Fusion(form="borda", by=by).fit(queries).predict(rows)
    for total in range(2, 21):
        assert len(set(scores[np.isclose(first + second, total / 10)].tolist())) == 1


def test_an_end_of_a_line_is_its_own_weights():
    """Of b the least bit is too much: it turns the two that a has right, from the beginning."""
    labels, a, b = np.array([2.0, 0.0]), np.array([1e-12, 0.0]), np.array([0.0, 1.0])
    search = _Search(
        Judged.of_labels(labels, np.array([0, 2]), Measure.of("ndcg"), Conventions()),
        np.column_stack((a, b)),
        np.ones(2, bool),
        None,
    )
    weights, value = search._best_between(
        np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([0.0, 1.0]), search.value_of(np.array([0.0, 1.0]))
    )
    assert (weights.tolist(), value) == ([1.0, 0.0], 1.0)


def test_what_a_weighted_fusion_says_is_what_is_measured():
    """Documents that no run has are at no rank, and count in the ideal ranking."""
    rng, n = np.random.default_rng(1), 240
    labels = rng.integers(0, 3, n).astype(float)
    ranks = np.full((n, 2), np.nan)
    for run in range(2):
        for first in range(0, n, 12):
            rows = first + np.argsort(-(labels[first : first + 12] + rng.normal(size=12)))[:4]
            ranks[rows, run] = np.arange(1, 5)
    names = ("rank of a", "rank of b")
    queries = ltr.Queries(ranks.astype(np.float32), labels, np.arange(0, n + 1, 12), names=names)
    for measure in ("map", "ndcg_10", "ndcg_3"):
        fitted = ltr.WeightedFusion(measure=measure, directions=20).fit(queries)

        def mean(weights, fitted=fitted, measure=measure):
            scores = replace(fitted, weights=weights).ranking_scores(queries.features)
            return np.nanmean(ltr.evaluate(labels, scores, queries.offsets, measure)[measure])

        reached = mean(fitted.weights)
        assert f": {measure} {reached:.4f}, with equal weights {mean(np.full(2, 0.5)):.4f}" in fitted.remarks[0]
        assert reached >= max(mean(np.array([k, 50 - k]) / 50) for k in range(51)) - 1e-12


def test_starts_are_drawn_by_the_seed(monkeypatch):
    starts, climbed = [], _Search.climbed
    monkeypatch.setattr(_Search, "climbed", lambda search, weights: (starts.append(weights), climbed(search, weights))[1])
    for seed in (1, 2):
        ltr.WeightedFusion(form="min-max", restarts=2, directions=0, seed=seed).fit(three_systems())
    first, second = starts[:6], starts[6:]
    assert [start.tolist() for start in first[:4]] == [[1 / 3] * 3, [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert np.array_equal(first[:4], second[:4])
    assert not np.isclose(first[4:], second[4:]).any()


def test_finds_are_not_counted_without_ranks():
    scores = [k for k, name in enumerate(NAMES) if "rank" not in name]
    queries = replace(two_lists(), features=ROWS[:, scores], names=tuple(NAMES[k] for k in scores))
    assert ltr.Fusion(form="min-max").fit(queries).names == queries.names
    with pytest.raises(ValueError, match="fusion: it fuses two runs or more, and the data have 0 as 'rank'"):
        ltr.Fusion(form="min-max", by="mnz").fit(queries)
