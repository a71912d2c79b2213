"""All mixtures of two rankers against a fine grid, and a hand-made case."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import canonical
from ltr.rankers.column import LAST
from ltr.rankers.combination import combine, mix_scores
from tests.conftest import make_queries


@pytest.mark.parametrize("measure", ["ndcg@5", "map", "mrr", "err", "errors"])
def test_steps_are_those_of_a_grid(measure):
    queries = make_queries(12, seed=3)
    rng = np.random.default_rng(0)
    a, b = queries.labels + rng.normal(size=queries.n_documents), rng.normal(size=queries.n_documents)
    a[:4] = a[0]
    found = combine(queries.labels, a, b, queries.offsets, measure)
    key = ltr.Measure.of(measure).key

    def mean(alpha):
        return np.nanmean(ltr.evaluate(queries.labels, mix_scores(a, b, alpha), queries.offsets, [measure])[key])

    for alpha in np.linspace(0.001, 0.999, 300):
        assert found.values[np.searchsorted(found.alphas, alpha)] == pytest.approx(mean(alpha), abs=1e-12)
    assert found.ends == (mean(0), mean(1))
    low, high, value = found.best
    assert mean(0.5 * (low + high)) == pytest.approx(value)
    assert value == pytest.approx(found.values.min() if measure == "errors" else found.values.max())


def test_two_documents_cross_once():
    found = combine([1, 0], [0.0, 3.0], [1.0, 0.0], [0, 2], "mrr", ltr.Conventions(threshold=1))
    assert found.alphas.tolist() == [0.75]
    assert found.values.tolist() == [0.5, 1.0]
    assert found.best == (0.75, 1.0, 1.0)
    same = combine([1, 0], [2.0, 1.0], [4.0, 2.0], [0, 2], "mrr", ltr.Conventions(threshold=1))
    assert len(same.alphas) == 0
    assert same.best == (0.0, 1.0, 1.0)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"combine: \(2,\) labels, and scores of shapes \(2,\) and \(3,\)"):
        combine([1, 0], [1, 2], [1, 2, 3], [0, 2], "ndcg")
    with pytest.raises(ValueError, match="undefined on every query"):
        combine([0, 0], [1, 2], [1, 2], [0, 2], "ndcg")


def test_the_model_of_a_mixture(tmp_path):
    queries = make_queries(40, n_features=2, seed=5)
    rng = np.random.default_rng(1)
    scores = queries.labels[:, None] + np.array([1.5, 1.0]) * rng.normal(size=(queries.n_documents, 2))
    queries = canonical(replace(queries, features=scores.astype(np.float32), names=("a", "b")))
    model = ltr.Combination("map").fit(queries)
    found = combine(queries.labels, *queries.features.T, queries.offsets, "map")
    low, high, value = found.best
    assert low < model.alpha < high
    assert np.nanmean(
        ltr.evaluate(queries.labels, model.predict(queries.features), queries.offsets, ["map"])["map"]
    ) == pytest.approx(value)
    assert value > max(found.ends)
    ltr.save(model, tmp_path / "m")
    opened = ltr.load(tmp_path / "m")
    assert (opened.digest, opened.alpha, opened.names) == (model.digest, model.alpha, ("a", "b"))
    surface = model.surface(queries.features)
    assert surface.weights == pytest.approx([1 - model.alpha, model.alpha])
    perfect = replace(queries, features=np.column_stack((queries.labels, -queries.labels)))
    assert ltr.Combination().fit(perfect).alpha < 0.5
    with pytest.raises(ValueError, match="two finite columns"):
        ltr.Combination().fit(make_queries(5, n_features=3))


def test_what_is_told_is_what_the_chosen_mixture_reaches():
    """In exact numbers every α below 1 ranks by the second score where the first is constant; beside 1e10 it is rounded away."""
    queries = make_queries(10, n_features=2)
    queries = replace(
        queries, features=np.column_stack((np.full(queries.n_documents, 1e10), queries.labels * 1e-7)).astype(np.float32)
    )
    found = ltr.Combination().fit(queries)
    reached = np.nanmean(ltr.evaluate(queries.labels, found.predict(queries.features), queries.offsets, ["ndcg_10"])["ndcg_10"])
    assert found.alpha == 1
    assert reached == pytest.approx(1)
    assert "α 1.0000: ndcg@10 1.0000" in found.remarks[0] or "α 1.0000: ndcg_10 1.0000" in found.remarks[0]
    missing = replace(queries, features=np.where(queries.features > 1e9, np.nan, queries.features))
    with pytest.raises(ValueError, match="mixes two finite columns of scores; given two with missing or infinite scores"):
        ltr.Combination().fit(missing)


@pytest.mark.parametrize("measure", ["ndcg@10", "map"])
def test_documents_that_one_ranker_has_at_no_rank_are_in_the_order_of_the_other(measure):
    """Against documents ordered by hand: both have it, then by how much the ranker that lacks it counts, then by the other's score."""
    queries = make_queries(60, n_features=2, seed=4)
    rng = np.random.default_rng(2)
    scores = (queries.labels[:, None] + rng.normal(scale=(1.0, 1.5), size=(queries.n_documents, 2))).astype(np.float32)
    scores[rng.random(scores.shape) < 0.35] = LAST
    queries = canonical(replace(queries, features=scores))
    scores = queries.features
    a, b = scores.T.astype(np.float64)
    low, high, promised = combine(queries.labels, a, b, queries.offsets, measure).best
    alpha = 0.5 * (low + high)
    found = replace(ltr.Combination(measure).fit(queries), alpha=alpha)
    lacks_a, lacks_b = a == LAST, b == LAST
    lost = lacks_a * (1 - alpha) + lacks_b * alpha
    within = np.where(lacks_a & lacks_b, 0, np.where(lacks_a, b, np.where(lacks_b, a, (1 - alpha) * a + alpha * b)))
    by_hand = np.empty(len(a))
    by_hand[np.lexsort((within, -lost))] = np.arange(len(a))
    by_hand[lacks_a & lacks_b] = -1
    value = [
        np.nanmean(ltr.evaluate(queries.labels, s, queries.offsets, [measure])[ltr.Measure.of(measure).key])
        for s in (found.predict(scores), by_hand)
    ]
    assert value[0] == pytest.approx(value[1], abs=1e-15)
    assert value[0] == pytest.approx(promised, abs=1e-12)
    chosen = ltr.Combination(measure).fit(queries)
    reached = np.nanmean(
        ltr.evaluate(queries.labels, chosen.predict(scores), queries.offsets, [measure])[ltr.Measure.of(measure).key]
    )
    assert f": {ltr.Measure.of(measure).key} {reached:.4f}," in chosen.remarks[0], "what is told is what it reaches"
    plain = np.nanmean(
        ltr.evaluate(queries.labels, mix_scores(a, b, alpha), queries.offsets, [measure])[ltr.Measure.of(measure).key]
    )
    assert plain < value[0] - 0.001


def test_of_errors_the_mixture_with_the_fewest_is_taken():
    q = ltr.Queries(np.array([[3, 0], [2, 1], [1, 2.5]], np.float32), [2, 1, 0], [0, 3])
    model = ltr.Combination(measure="errors").fit(q)
    assert ltr.evaluate(q.labels, model.predict(q.features), q.offsets, "errors")["errors"].tolist() == [0]


@pytest.mark.parametrize("alpha", [np.array([1.5]), np.array([-0.1]), np.array([np.nan]), np.array([0.2, 0.3]), np.array([1])])
def test_a_mixture_outside_of_its_line_is_refused(alpha):
    fitted = ltr.Combination("map").fit(make_queries(10, n_features=2))
    with pytest.raises(ValueError, match=r"one number in \[0, 1\] mixes two"):
        type(fitted).restored(fitted.parameters, {"alpha": alpha}, fitted.names)


def test_what_evaluate_refuses_has_no_mixture():
    """A label of −1 made an NDCG of its own: the ideal knows no gain below 0, and the ranking counted it."""
    for labels, rules, said in (
        ([-1.0, 0, 2], None, "labels: a label of -1; labels must be 0 or more"),
        ([1.0, 0, 2], "letor3", "conventions: 'letor3' is not an ltr.Conventions"),
    ):
        with pytest.raises(ValueError, match=said):
            ltr.combine(labels, [3, 1, 2], [1, 2, 5], [0, 3], "ndcg", rules)
