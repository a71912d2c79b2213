"""An objective that is a function: what it gives is what trees take, by hand, beside LightGBM's, and after a model was saved."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.plain_function import PlainFunction
from ltr.objectives.plain_objective import PlainObjective
from ltr.objectives.preferences import Preferences
from tests.conftest import make_queries, share_of_random_weights
from tests.ltr.data.test_queries import shuffled

SMALL = {"n_trees": 6, "n_leaves": 5, "min_docs_in_leaf": 4, "query_share": 0.8, "stop_on": None}


def towards_labels(scores, queries):
    """Least squares within queries, whose mean does not count."""
    starts, sizes = queries.offsets[:-1], np.diff(queries.offsets)
    residual = np.nan_to_num(queries.labels) - scores
    return residual - np.repeat(np.add.reduceat(residual, starts) / sizes, sizes), np.ones(len(scores))


def softmax(scores, queries):
    """ListNet's top-one cross entropy, query by query."""
    force, curvature = np.zeros(len(scores)), np.zeros(len(scores))
    for first, last in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        own, labels = np.exp(scores[first:last] - scores[first:last].max()), np.exp2(queries.labels[first:last]) - 1
        share = own / own.sum()
        force[first:last] = labels / max(labels.sum(), 1e-12) - share
        curvature[first:last] = share * (1 - share) + 1e-6
    return force, curvature


def test_trees_go_where_the_function_says():
    queries = make_queries(60, seed=1)
    one = ltr.LambdaMART(objective=towards_labels, n_trees=1, n_leaves=2, min_docs_in_leaf=5, query_share=1.0, feature_share=1.0)
    model = one.fit(queries)
    force, _ = towards_labels(np.zeros(queries.n_documents), queries)
    left = queries.features[:, model.trees.feature[0]] <= model.trees.threshold[0]
    expected = 0.05 * np.where(left, force[left].mean(), force[~left].mean())
    assert model.predict(queries.features) == pytest.approx(expected, rel=1e-6)


def test_it_improves_ndcg_and_has_one_digest_for_any_order_of_rows():
    train, valid = make_queries(150, seed=1), make_queries(60, seed=2)
    model = ltr.LambdaMART(objective=softmax, n_trees=30, learning_rate=0.2, min_docs_in_leaf=5)
    fitted = model.fit(train, valid)
    assert share_of_random_weights(valid, fitted.curve.valid.max()) < 0.1
    assert fitted.digest == model.fit(shuffled(train), valid).digest


def test_weights_of_queries_multiply_what_the_function_gives():
    queries = make_queries(8, seed=3)
    weighted = replace(queries, weights=np.arange(1.0, 9.0))
    scores = np.linspace(0, 1, queries.n_documents)
    factor = np.repeat(weighted.weights, np.diff(queries.offsets))
    for ours, plain in zip(PlainObjective(weighted, PlainFunction.of(softmax))(scores, 0), softmax(scores, queries), strict=True):
        assert np.array_equal(ours, factor * plain)


def level(scores, queries):
    """`softmax` with equal curvatures, from which LightGBM's counts of documents are exact."""
    return softmax(scores, queries)[0], np.ones(len(scores))


def test_lightgbm_grows_the_same_trees_by_the_same_function():
    lightgbm = pytest.importorskip("lightgbm")
    queries = make_queries(40, n_features=3, seed=4)
    assert queries.n_documents <= 255, "every value is a bin of its own in both"
    ours = ltr.LambdaMART(
        objective=level, n_trees=5, n_leaves=6, min_docs_in_leaf=10, learning_rate=0.3, query_share=1.0, feature_share=1.0,
        stop_on=None,
    ).fit(queries)  # fmt: skip
    settings = {"num_leaves": 6, "min_data_in_leaf": 10, "learning_rate": 0.3, "min_sum_hessian_in_leaf": 0, "min_data_in_bin": 1,
                "max_bin": 1000, "verbose": -1, "num_threads": 1}  # fmt: skip

    def objective(scores, data):
        force, curvature = level(scores, queries)
        return -force, curvature

    data = lightgbm.Dataset(queries.features.astype(np.float64), queries.labels, params=settings)
    theirs = lightgbm.train({**settings, "objective": objective}, data, 5)
    assert ours.predict(queries.features) == pytest.approx(theirs.predict(queries.features), abs=1e-5)


def test_a_saved_model_knows_the_name_predicts_and_asks_for_the_function_to_train_on(tmp_path):
    queries = make_queries(60, seed=1)
    model = ltr.LambdaMART(**{**SMALL, "stop_on": ["ndcg_10", mean_gap]}, objective=softmax).fit(queries)
    ltr.save(model, tmp_path)
    loaded = ltr.load(tmp_path)
    assert loaded.objective == PlainFunction("tests.ltr.objectives.test_plain_objective.softmax")
    assert loaded.stop_on == ("ndcg_10", PlainFunction("tests.ltr.objectives.test_plain_objective.mean_gap"))
    assert loaded.digest == model.digest
    assert np.array_equal(loaded.predict(queries.features), model.predict(queries.features))
    assert (loaded.terms, loaded.trained_for) == ((), ())
    ltr.save(loaded, tmp_path / "again")
    assert (tmp_path / "again/model.json").read_text() == (tmp_path / "model.json").read_text()
    with pytest.raises(ValueError, match=r"test_plain_objective.softmax is a function, of which a model's file keeps the name"):
        replace(loaded, n_trees=9).fit(queries, start=loaded)
    whole = replace(model, n_trees=9).fit(queries)
    assert replace(loaded, n_trees=9, objective=softmax, stop_on="ndcg_10").fit(queries, start=loaded).digest == whole.digest


def mean_gap(scores, queries):
    return float(scores.max() - scores.min())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (lambda s, q: s, "gave ndarray; expected .force, curvature., 6 numbers each, one for each document"),
        (lambda s, q: (s, "flat"), "gave str; expected .force, curvature."),
        (lambda s, q: (s, 1.0), r"gave a curvature of shape \(\); expected"),
        (lambda s, q: (s / 0, s), r"gave the force nan for document 0; it has to be from -1e\+100 to 1e\+100"),
        (lambda s, q: (s + 1e300, s), r"gave the force 1e\+300 for document 0; it has to be from -1e\+100 to 1e\+100"),
        (lambda s, q: (s, s - 1), r"gave the curvature -1 for document 0; it has to be from 0 to 1e\+100"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_a_function_gives_is_checked(given, says):
    queries = ltr.Queries(np.zeros((6, 1)), np.zeros(6), [0, 6])
    with pytest.raises(ValueError, match=says):
        PlainObjective(queries, PlainFunction.of(given))(np.zeros(6), 0)


def test_a_function_is_alone_and_in_one_place():
    queries = make_queries(10)
    with pytest.raises(ValueError, match="loss='balanced' is an objective of its own"):
        ltr.LambdaMART(objective=softmax, loss="balanced")
    with pytest.raises(ValueError, match="preferences are an objective of their own"):
        ltr.LambdaMART(objective=softmax).fit(queries, preferences=Preferences([0], [1]))
    for model in (ltr.LambdaMART(objective=softmax), ltr.LambdaMART(stop_on=mean_gap)):
        with pytest.raises(ValueError, match="is a function, which is not sent to several parts; train it in one"):
            model.fit_shards(lambda *question: [])


def test_functions_see_features_names_and_rows_of_queries():
    train, valid = shuffled(make_queries(30, seed=1)), make_queries(20, seed=2)
    seen = []

    def spying(scores, queries):
        seen.append((queries.names, queries.features.shape, queries.n_queries))
        assert queries.labels[np.argmin(queries.features[:, 0])] == train.labels[np.argmin(train.features[:, 0])]
        return towards_labels(scores, queries)

    def watching(scores, queries):
        seen.append((queries.names, queries.features.shape, queries.n_queries))
        return mean_gap(scores, queries)

    ltr.LambdaMART(**{**SMALL, "n_trees": 10, "stop_on": watching}, objective=spying).fit(train, valid)
    names = ("f1", "f2", "f3", "f4")
    assert set(seen) == {(names, train.features.shape, 30), (names, valid.features.shape, 20)}
