"""ONNX graphs by another reader than onnxruntime: onnx's own reference evaluator."""

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import ltr
from tasks.export.onnx_graphs import imputing_nodes, linear_nodes, net_nodes, onnx_writer, package, tree_nodes
from tasks.records import DataError
from tests.conftest import make_queries
from tests.ltr.rankers.test_fusion import NAMES, ROWS

CASES = [
    (ltr.LambdaMART(n_trees=5, min_docs_in_leaf=3, stop_on=None), tree_nodes, 1e-5),
    (ltr.LambdaMART(n_trees=2, min_docs_in_leaf=3, stop_on=None, base="f1"), tree_nodes, 1e-5),
    (ltr.LeastSquares(), linear_nodes, 1e-12),
    (ltr.LambdaRank(epochs=2), net_nodes, 1e-4),
    (ltr.LambdaRank(hidden=3, epochs=2), net_nodes, 1e-4),
]


@pytest.mark.parametrize(("ranker", "nodes", "tolerance"), CASES, ids=["trees", "base", "linear", "net", "two layers"])
def test_a_graph_scores_like_the_ranker(ranker, nodes, tolerance):
    queries = make_queries(20)
    fitted = ranker.fit(queries)
    graph = onnx.load_from_string(onnx_writer(nodes)(fitted, "m", False))
    (scores,) = ReferenceEvaluator(graph).run(None, {"features": queries.features})
    assert scores.ravel() == pytest.approx(fitted.predict(queries.features), abs=tolerance)
    kept = {entry.key: entry.value for entry in graph.metadata_props}
    assert kept["digest"] == fitted.digest
    assert json.loads(kept["feature_names"]) == list(queries.names)


@pytest.mark.parametrize("impute", ["median", "zero", "query-mean"])
def test_a_graph_imputes_like_the_ranker(impute):
    queries = make_queries(20)
    queries.features[::3, 1] = np.nan
    fitted = ltr.RankSVM(impute=impute).fit(queries)
    queries.features[::4, 2] = np.nan
    graph = onnx.load_from_string(onnx_writer(imputing_nodes)(fitted, "m", False))
    (scores,) = ReferenceEvaluator(graph).run(None, {"features": queries.features})
    assert scores.ravel() == pytest.approx(fitted.predict(queries.features), abs=1e-12)


def test_features_without_a_weight_may_be_missing():
    """Of a document that a run has not, its score and rank are; their product with a weight of 0 made the whole score NaN."""
    fitted = ltr.WeightedFusion(form="min-max", weights=np.array([0.25, 0.75]), names=NAMES)
    graph = onnx.load_from_string(onnx_writer(linear_nodes)(fitted, "m", False))
    (scores,) = ReferenceEvaluator(graph).run(None, {"features": ROWS})
    assert np.isnan(ROWS).any()
    assert scores.ravel() == pytest.approx(fitted.predict(ROWS), abs=1e-12)
    assert fitted.attributions(ROWS).sum(axis=1) == pytest.approx(fitted.predict(ROWS), abs=1e-12)
    nothing = replace(fitted, weights=np.zeros(2))
    graph = onnx.load_from_string(onnx_writer(linear_nodes)(nothing, "m", False))
    assert not ReferenceEvaluator(graph).run(None, {"features": np.ones((3, len(NAMES)), np.float32)})[0].any()


def test_a_package_that_is_missing_is_said_with_how_to_get_it():
    with pytest.raises(DataError, match="the package no_such_package is not installed: pip install no_such_package"):
        package("no_such_package")


def test_trees_that_never_split_are_no_graph():
    queries = make_queries(20)
    constant = replace(queries, features=np.ones_like(queries.features))
    fitted = ltr.LambdaMART(n_trees=3, stop_on=None).fit(constant)
    assert fitted.ensemble.n_trees == 0
    with pytest.raises(DataError, match="onnx: the model has no trees"):
        onnx_writer(tree_nodes)(fitted, "m", False)
