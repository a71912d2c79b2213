"""What every ranker says and refuses: its parameters, its data, and itself in a line."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.rankers.base import with_features_of
from tests.conftest import make_queries


@pytest.mark.parametrize("core", [core for core in ltr.KINDS.values() if not core.query_weights])
def test_weights_that_a_ranker_does_not_obey_are_refused(queries, core):
    with pytest.raises(ValueError, match=rf"queries have weights, and {core.kind} does not support them"):
        core().fit(replace(queries, weights=np.ones(queries.n_queries)))


def test_repr_is_a_line_of_what_is_not_default(queries):
    model = ltr.LambdaMART(n_trees=2, min_docs_in_leaf=3, objective="map")
    assert repr(ltr.LambdaRank()) == "LambdaRank()"
    assert repr(ltr.Column(feature="f2")) == "Column(feature='f2')"
    assert repr(model).startswith("LambdaMART(n_trees=2, min_docs_in_leaf=3, objective=(Term(measure='map'")
    fitted = model.fit(queries)
    assert repr(fitted) == f"{replace(model, objective=fitted.objective)!r} fitted on 4 features"
    assert "objective=(Term(measure='map', cost='logistic'),)" in repr(fitted)
    assert repr(fitted.trees) == f"Trees({fitted.trees.n_trees} trees, {len(fitted.trees.value)} leaves)"
    assert repr(ltr.Estimator(ltr.LeastSquares())).startswith("Estimator(model=LeastSquares(), measure='ndcg_10'")


def test_an_objective_may_be_a_measures_name(queries):
    for kind in (ltr.LambdaMART, ltr.LambdaRank):
        for given in ("map", ["map"], ltr.Measure.of("map"), ltr.Term("map")):
            assert kind(objective=given).objective == (ltr.Term("map"),)
        assert kind(objective="NDCG@10").trained_for == (ltr.Measure.of("ndcg_10"),)
        for wrong in (None, 3, [], [None]):
            with pytest.raises(ValueError, match=r"objective: .* is not an ltr.Term or measure; .* such as 'ndcg'"):
                kind(objective=wrong)
        with pytest.raises(ValueError, match="unknown measure 'mpa'; did you mean map"):
            kind(objective="mpa")


def test_misspelt_parameters_get_near_misses():
    with pytest.raises(TypeError, match=r"LambdaMART: no parameter 'n_leafs'; did you mean n_leaves"):
        ltr.LambdaMART(n_leafs=3)
    with pytest.raises(
        TypeError, match=r"LeastSquares: no parameter 'zzz'; there are conventions, standardise, impute, stop_on, ridge"
    ):
        ltr.LeastSquares(zzz=1)


def test_wrong_types_are_named_with_what_is_expected(queries, tmp_path):
    X, y = queries.features, queries.labels
    with pytest.raises(
        ValueError, match=r"LambdaMART.fit: queries is a numpy ndarray \(.*, 4\); give ltr.Queries.* ltr.Estimator\(model\)"
    ):
        ltr.LambdaMART().fit(X, y)
    with pytest.raises(ValueError, match=r"RankSVM.fit: valid is a Python tuple; give ltr.Queries"):
        ltr.RankSVM().fit(queries, (X, y))
    with pytest.raises(ValueError, match=r"save: model is a ltr Estimator; give a fitted ranker; of an estimator, save its model_"):
        ltr.save(ltr.Estimator(ltr.LeastSquares()), tmp_path)
    with pytest.raises(ValueError, match=r"save: model is a Python str; give a fitted ranker$"):
        ltr.save("model", tmp_path)
    model = ltr.LeastSquares().fit(queries)
    for given in ((model, queries), (model.surface(X), X)):
        with pytest.raises(ValueError, match=r"certify: given .*; give model.surface\(queries.features\) and ltr.Queries"):
            ltr.certify(*given)
    for given, says in (
        (queries, r"features: a ltr Queries; expected numbers \[documents, 4\]; of ltr.Queries, give their features"),
        ("rows", r"features: a Python str; expected numbers \[documents, 4\]$"),
        ([["a"] * 4], "features: a Python list; expected numbers"),
        ([["1"] * 4], "features: a Python list; expected numbers"),
        (np.ones((1, 4), complex), r"features: .*; expected numbers \[documents, 4\]$"),
        (X[0], r"features have shape \(4,\); expected \[documents, 4\], a row for each document"),
        (X[:, :3], r"features have shape \(\d+, 3\); the model was fitted on 4 features"),
    ):
        with pytest.raises(ValueError, match=says):
            model.predict(given)


def test_models_are_equal_by_what_they_are_and_have_learned():
    queries, other = make_queries(20), make_queries(20, seed=1)
    for model in (
        ltr.LambdaMART(n_trees=4, n_leaves=4, min_docs_in_leaf=3),
        ltr.LambdaRank(hidden=3, epochs=2),
        ltr.LeastSquares(ridge=0.5),
    ):
        one, same = model.fit(queries), model.fit(queries)
        assert one == same
        assert hash(one) == hash(same)
        assert one in [model, same]
        assert one != model
        assert one != model.fit(other)
    assert ltr.RankSVM(C=1) == ltr.RankSVM(C=1) != ltr.RankSVM(C=2)
    assert {ltr.LambdaMART(learning_rate=1): 1}[ltr.LambdaMART(learning_rate=1.0)] == 1
    assert ltr.LeastSquares() != ltr.RankSVM()
    assert queries == queries
    assert queries != other


def test_numbers_of_numpy_are_numbers():
    assert ltr.LambdaRank(epochs=9, keep_epochs=np.array([5, 7])).keep_epochs == (5, 7)
    debiased = ltr.Unbiased("ipw", propensities=np.array([1, 0.5], np.float32), least=np.float32(0.25))
    assert (debiased.propensities, debiased.least) == ((1.0, 0.5), 0.25)
    with ltr.threads(np.int64(1)) as n:
        assert n == 1
    for alone in (ltr.Listwise, ltr.ConditionalModel):
        with pytest.raises(ValueError, match="samples=1 is out of range; it is a whole number from 2"):
            alone(samples=1)


def test_what_looks_at_a_model_on_queries_takes_these_two():
    queries = make_queries(10, seed=1)
    model, estimator = ltr.LeastSquares().fit(queries), ltr.Estimator(ltr.LeastSquares())
    with pytest.raises(
        ValueError,
        match=r"polish: given Estimator and Queries; give a fitted ranker and ltr\.Queries; of an estimator, its model_",
    ):
        with_features_of(estimator, queries, "polish")
    for ask in (ltr.polish, ltr.permutation_importance, lambda *given: ltr.why_above(*given, 0, 1)):
        with pytest.raises(ValueError, match=r"given LeastSquares and ndarray; give a fitted ranker and ltr\.Queries$"):
            ask(model, queries.features)
        with pytest.raises(ValueError, match="of an estimator, its model_"):
            ask(estimator, queries)


@pytest.mark.parametrize(
    "model",
    [
        ltr.LeastSquares(),
        ltr.LambdaRank(epochs=1),
        ltr.LambdaRank(epochs=1, hidden=3),
        ltr.LambdaMART(n_trees=2, min_docs_in_leaf=2),
        ltr.WeightedFusion(form="min-max", restarts=0, directions=0),
        ltr.QueryFusion(form="min-max", iterations=2),
    ],
    ids=repr,
)
def test_other_weights_are_as_many_as_there_are(queries, model):
    """Kernels read and wrote beyond fewer: scores were of whatever lies there in memory, and processes aborted."""
    queries = replace(queries, names=("min-max of a", "min-max of b", "c", "d"))
    fitted = model.fit(queries)
    weights = fitted.surface(queries.features).weights
    moved = fitted.moved(weights.tolist())
    assert moved.surface(queries.features).weights.tobytes() == weights.tobytes()
    for wrong in (weights[:0], weights[:-1], np.append(weights, 0.0)):
        with pytest.raises(
            ValueError, match=rf"{model.kind}: moved to weights of shape .*; expected {len(weights)} finite numbers"
        ):
            fitted.moved(wrong)
    for wrong in (weights * np.nan, weights[:, None], None):
        with pytest.raises(ValueError, match="weights"):
            fitted.moved(wrong)
    with pytest.raises(ValueError, match="this model is not fitted"):
        model.moved(weights)
