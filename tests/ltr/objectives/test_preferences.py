"""RankNet from pairs and probabilities: its cost by finite differences, per-pair steps, cycles, and refusals."""

import numpy as np
import pytest

import ltr
from ltr.data.queries import canonical
from ltr.objectives.preferences import PreferenceObjective, Preferences
from tests.conftest import make_queries
from tests.ltr.data.test_queries import shuffled


def pairs_by_label(queries, probability=None):
    pairs = [
        (i, j)
        for a, b in zip(queries.offsets[:-1], queries.offsets[1:], strict=True)
        for i in range(a, b)
        for j in range(a, b)
        if queries.labels[i] > queries.labels[j]
    ]
    upper, lower = np.array(pairs).T
    return Preferences(upper, lower, probability if probability is None else np.full(len(upper), probability))


def test_lambda_is_minus_the_derivative_of_the_cross_entropy_and_hessian_its_second():
    queries, sigma, h = make_queries(5, seed=1), 1.3, 1e-5
    rng = np.random.default_rng(0)
    pairs = pairs_by_label(queries)
    pairs = Preferences(pairs.upper, pairs.lower, rng.random(len(pairs.upper)))
    scores = rng.normal(size=queries.n_documents)

    def cost(s):
        p = 1 / (1 + np.exp(-sigma * (s[pairs.upper] - s[pairs.lower])))
        return -(pairs.probability * np.log(p) + (1 - pairs.probability) * np.log(1 - p)).sum()

    objective = PreferenceObjective(queries, pairs, sigma)
    gradient, hessian = objective(scores, 0)
    for d in range(queries.n_documents):
        step = np.zeros(len(scores))
        step[d] = h
        assert gradient[d] == pytest.approx(-(cost(scores + step) - cost(scores - step)) / (2 * h), abs=1e-6)
        bend = -(objective(scores + step, 0)[0][d] - objective(scores - step, 0)[0][d]) / (2 * h)
        assert hessian[d] == pytest.approx(bend, abs=1e-6)


def test_an_epoch_on_pairs_of_labels_is_ranknet_and_the_sum_of_its_per_pair_steps():
    """B section 2.1: the factored update, one a query, is the sum of the stochastic steps of all pairs at the same weights."""
    queries = canonical(make_queries(1, seed=4, largest=9))
    pairs = pairs_by_label(queries)
    start = ltr.LambdaRank(epochs=0, seed=3).fit(queries)
    rate = 0.01
    model = ltr.LambdaRank(epochs=1, learning_rate=rate, keep="train", flat_epochs=0)
    x, w = start.standardised(queries.features).astype(float), start.weights.flat
    want = w.copy()
    for i, j in zip(pairs.upper, pairs.lower, strict=True):
        want += rate / (1 + np.exp((x[i] - x[j]) @ w)) * (x[i] - x[j])
    explicit = model.fit(queries, start=start.weights, preferences=pairs)
    by_label = ltr.LambdaRank(
        epochs=1, learning_rate=rate, keep="train", flat_epochs=0, objective=(ltr.Term(construction="ranknet"),)
    ).fit(queries, start=start.weights)
    assert explicit.weights.flat == pytest.approx(want, abs=1e-6)
    assert by_label.weights.flat == pytest.approx(want, abs=1e-6)


@pytest.mark.parametrize("model", [ltr.LambdaRank(epochs=8, learning_rate=0.02), ltr.LambdaMART(n_trees=8, min_docs_in_leaf=3)])
def test_models_learn_from_pairs_of_rows_in_any_order(model):
    queries = make_queries(60, seed=1)
    fitted = model.fit(queries, preferences=pairs_by_label(queries))
    values = ltr.evaluate(queries.labels, fitted.predict(queries.features), queries.offsets, ["tau"])["tau"]
    assert np.nanmean(values) > 0.3
    mixed = shuffled(queries)
    assert model.fit(mixed, preferences=pairs_by_label(mixed)).digest == fitted.digest


def test_even_odds_pull_nothing_at_equal_scores():
    queries = make_queries(5, seed=1)
    gradient, _ = PreferenceObjective(queries, pairs_by_label(queries, 0.5))(np.zeros(queries.n_documents), 0)
    assert np.abs(gradient).max() == 0


def test_cycles_are_found_and_reported():
    queries = ltr.Queries(np.random.default_rng(0).normal(size=(5, 2)), [1, 0, 0, 2, 0], [0, 5])
    pairs = Preferences([0, 1, 2, 3], [1, 2, 0, 0])
    assert pairs.in_cycles(5) == 3
    assert ltr.LambdaRank(epochs=1).fit(queries, preferences=pairs).remarks[1] == "on cycles of preferences: 3 documents"
    assert Preferences([0, 1, 2], [1, 2, 0], [1, 1, 0]).in_cycles(5) == 0


def test_pairs_that_cannot_be_are_refused():
    queries = make_queries(3, seed=1)
    for build, rule in (
        (lambda: Preferences([1], [1]), "document 1 is paired with itself"),
        (lambda: Preferences([1], [2], [1.5]), r"1.5 is outside \[0, 1\]"),
        (lambda: Preferences([1, 2], [2]), "2 upper, 1 lower"),
        (lambda: Preferences([0.5], [1]), r"upper: \[0.5\] is not an array of whole numbers"),
        (lambda: Preferences([0], [np.nan]), r"lower: \[nan\] is not an array of whole numbers"),
        (lambda: PreferenceObjective(queries, Preferences([0], [queries.n_documents])), f"there is row {queries.n_documents}"),
        (lambda: PreferenceObjective(queries, Preferences([], [])), "there are 0 pairs"),
        (lambda: PreferenceObjective(queries, Preferences([0], [queries.n_documents - 1])), "different queries"),
    ):
        with pytest.raises(ValueError, match=rule):
            build()


@pytest.mark.parametrize("model", [ltr.LambdaRank(epochs=1), ltr.LambdaMART(n_trees=1, min_docs_in_leaf=1)], ids=repr)
def test_rows_of_different_queries_are_told_as_they_were_given(model):
    """They were told by their places in canonical order, which nobody gave."""
    queries = ltr.Queries(np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 3.0, np.arange(0, 41, 8))
    assert not np.array_equal(canonical(queries).position, np.arange(40))
    with pytest.raises(ValueError, match="preferences: documents 0 and 20 belong to different queries"):
        model.fit(queries, preferences=Preferences([0], [20]))
