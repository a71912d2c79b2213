"""What ensembles of trees share as rankers: a base is added, leaves are the weights, arrays are those of the trees."""

from dataclasses import fields, replace

import numpy as np
import polars as pl
import pytest
from scipy.sparse import coo_array, csc_array

import ltr
from tests.conftest import make_queries

SMALL = {"n_trees": 4, "n_leaves": 5, "min_docs_in_leaf": 3, "stop_on": None}
MODELS = [ltr.LambdaMART(**SMALL), ltr.LambdaMART(**SMALL, base="f2"), ltr.RankBoost(rounds=6)]


def named(model):
    return f"{model.kind}{model.base_feature or ''}"


@pytest.mark.parametrize("model", MODELS, ids=named)
def test_the_score_is_the_base_and_a_leaf_of_each_tree(model):
    queries = make_queries(40, seed=3)
    fitted = model.fit(queries)
    base = queries.features[:, 1].astype(float) if model.base_feature else np.zeros(queries.n_documents)
    leaves = fitted.trees.value[fitted.trees.leaves(queries.features)]
    assert fitted.predict(queries.features) == pytest.approx(base + leaves.sum(axis=1))
    assert np.array_equal(fitted.offset(queries.features, queries.names), base)
    assert fitted.ensemble is fitted.trees
    assert fitted.export_form == "trees"


@pytest.mark.parametrize("model", MODELS, ids=named)
def test_its_weights_are_its_leaves(model):
    queries = make_queries(40, seed=3)
    fitted = model.fit(queries)
    surface, rng = fitted.surface(queries.features), np.random.default_rng(0)
    assert np.array_equal(surface.weights, fitted.trees.value)
    moved = fitted.trees.value + rng.normal(size=len(fitted.trees.value))
    want = replace(fitted, trees=replace(fitted.trees, value=moved)).predict(queries.features)
    if surface.slopes is not None:
        assert model.base_feature is None
        found = surface.slopes(0, queries.n_documents, moved[None])[0]
    else:
        found = surface.scores(0, queries.n_documents, (moved - fitted.trees.value)[None], np.ones(1))[0, 0]
    assert found == pytest.approx(want)


@pytest.mark.parametrize("model", MODELS, ids=named)
def test_what_it_learned_are_the_arrays_of_its_trees(model):
    queries = make_queries(40, seed=3)
    fitted = model.fit(queries)
    assert set(fitted.arrays) | {"n_codes", "codes"} == {field.name for field in fields(fitted.trees)}
    other = type(model).restored(fitted.parameters, fitted.arrays, fitted.names)
    assert other.digest == fitted.digest
    assert np.array_equal(other.predict(queries.features), fitted.predict(queries.features))


def test_before_the_fit_and_with_a_broken_base_there_is_no_score():
    queries = make_queries(40, seed=3)
    for ask in (lambda m: m.ensemble, lambda m: m.predict(queries.features), lambda m: m.surface(queries.features)):
        with pytest.raises(ValueError, match="not fitted"):
            ask(ltr.LambdaMART())
    fitted = ltr.LambdaMART(**SMALL, base="f2").fit(queries)
    for wrong in (np.nan, np.inf):
        features = queries.features.copy()
        features[5, 1] = wrong
        with pytest.raises(ValueError, match="base 'f2' has a missing or infinite value in row 5"):
            fitted.predict(features)


def test_whatever_reads_an_infinite_feature_names_it():
    queries = make_queries(40, seed=3)
    fitted = ltr.LambdaMART(**SMALL).fit(queries)
    features = queries.features.copy()
    features[5, 1] = np.inf
    far = replace(queries, features=features)
    for ask in (
        lambda: fitted.predict(features),
        lambda: fitted.attributions(features),
        lambda: fitted.leaves(features),
        lambda: fitted.surface(features),
        lambda: fitted.refit_leaves(far),
    ):
        with pytest.raises(ValueError, match=r"feature 'f2' is infinite \(inf\)"):
            ask()


def test_leaves_are_of_features_as_predict_reads_them():
    queries = make_queries(40, seed=3)
    fitted = ltr.LambdaMART(**SMALL).fit(queries)
    leaves, frame = fitted.leaves(queries.features), pl.DataFrame(queries.features, schema=list(queries.names))
    assert fitted.trees.value[leaves].sum(axis=1) == pytest.approx(fitted.predict(queries.features))
    forms = (
        frame[:, ::-1],
        frame.with_columns(qid=pl.lit(1)),
        csc_array(queries.features),
        coo_array(queries.features),
        queries.features.tolist(),
    )
    assert all(np.array_equal(fitted.leaves(form), leaves) for form in forms)
    with pytest.raises(ValueError, match="features"):
        fitted.leaves(queries.features[:, :2])


def test_the_first_trees_score_alone():
    queries = make_queries(40, seed=1)
    model = ltr.LambdaMART(n_trees=6, min_docs_in_leaf=5, stop_on=None).fit(queries)
    stages = dict(model.stages(queries.features, 1))
    for n in (1, 4, 6):
        assert np.array_equal(model.predict(queries.features, n_trees=n), stages[n])
        assert model.first(n).trees.n_trees == n
        assert model.first(n).digest == ltr.LambdaMART(n_trees=n, min_docs_in_leaf=5, stop_on=None).fit(queries).digest
    assert model.predict(queries.features, n_trees=0).tolist() == [0.0] * queries.n_documents
    for wrong in (7, -1, 2.5):
        with pytest.raises(ValueError, match=f"lambdamart: no first {wrong} trees; it has 6"):
            model.predict(queries.features, n_trees=wrong)


def test_what_was_grown_after_the_best_tree_goes_where_fewer_are_taken():
    train, valid = make_queries(40, seed=1), make_queries(20, seed=2)
    fitted = ltr.LambdaMART(n_trees=30, n_leaves=8, min_docs_in_leaf=3, learning_rate=0.5).fit(train, valid)
    assert fitted.rest.n_trees
    assert fitted.first(fitted.trees.n_trees).rest is None


def test_a_base_is_one_of_the_features():
    fitted = ltr.LambdaMART(**SMALL, base="f2").fit(make_queries(40, seed=3))
    with pytest.raises(ValueError, match="the base 'f9' is not one of its features"):
        type(fitted).restored({**fitted.parameters, "base": "f9"}, fitted.arrays, fitted.names)
