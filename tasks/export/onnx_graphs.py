"""ONNX graphs of rankers: ``TreeEnsembleRegressor`` of ai.onnx.ml 3 and ``Gemm`` of ai.onnx 13, read by onnxruntime."""

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ltr
from ltr.linear.linear_ranker import LinearRanker
from tasks.export.ensembles import Writer, base_of, trees_of
from tasks.export.weights import weights_of
from tasks.records import DataError

Graph = tuple[list[Any], dict[str, NDArray[Any]], Any]
"""Nodes of a graph, its constants, and the type of the score."""
Nodes = Callable[[ltr.Ranker, Any], Graph]
_EXTRA = {"onnx": "lambdaflow[export]", "onnxruntime": "lambdaflow[export]", "xgboost": "xgboost-cpu"}


def package(name: str) -> Any:
    """A package that only some formats need.

    Raises:
        DataError: saying how it is installed, where it is not.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise DataError(f"the package {name} is not installed: pip install {_EXTRA.get(name, name)}") from None


def onnx_writer(nodes: Nodes) -> Writer:
    """A writer of the graph whose nodes ``nodes(ranker, helper)`` lists with their constants and the type of the score."""

    def write(ranker: ltr.Ranker, name: str, complete: bool) -> bytes:
        onnx = package("onnx")
        helper = onnx.helper
        listed, constants, dtype = nodes(ranker, helper)
        taken = helper.make_tensor_value_info("features", onnx.TensorProto.FLOAT, ["documents", len(ranker.names)])
        given = helper.make_tensor_value_info("score", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), ["documents", 1])
        tensors = [onnx.numpy_helper.from_array(array, key) for key, array in constants.items()]
        graph = helper.make_graph(listed, name, [taken], [given], tensors)
        versions = [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 3)]
        made = helper.make_model(graph, opset_imports=versions, producer_name="lambdaflow", ir_version=8)
        helper.set_model_props(made, {"feature_names": json.dumps(list(ranker.names)), "digest": ranker.digest})
        onnx.checker.check_model(made)
        return bytes(made.SerializeToString())

    return write


def tree_nodes(ranker: ltr.Ranker, helper: Any) -> Graph:
    """A tree's leaves are numbered behind its nodes. Without a base the ensemble is the score."""
    trees, base = trees_of(ranker), base_of(ranker)
    if trees.n_trees == 0:
        raise DataError(
            "onnx: the model has no trees (no split gained anything in training), and ONNX does not support an empty ensemble"
        )
    n_nodes, n_leaves = np.diff(trees.node_starts), np.diff(trees.leaf_starts)
    tree_of_node, tree_of_leaf = (np.repeat(np.arange(trees.n_trees), sizes) for sizes in (n_nodes, n_leaves))
    node = np.arange(len(trees.feature)) - trees.node_starts[tree_of_node]
    leaf = np.arange(len(trees.value)) - trees.leaf_starts[tree_of_leaf] + n_nodes[tree_of_leaf]
    left, right = (np.where(c >= 0, c, n_nodes[tree_of_node] + ~c) for c in (trees.left, trees.right))
    tree_of_place = np.concatenate((tree_of_node, tree_of_leaf))
    # onnxruntime takes every change of the tree for a root: a tree's nodes and leaves must stand together.
    order = np.argsort(tree_of_place, kind="stable")

    def of_all(of_nodes: NDArray[Any], of_leaves: Any = 0) -> list[Any]:
        return np.concatenate((of_nodes, np.broadcast_to(of_leaves, len(leaf))))[order].tolist()

    ensemble = helper.make_node(
        "TreeEnsembleRegressor",
        ["features"],
        ["score" if base is None else "trees"],
        domain="ai.onnx.ml",
        aggregate_function="SUM",
        n_targets=1,
        nodes_treeids=tree_of_place[order].tolist(),
        nodes_nodeids=of_all(node, leaf),
        nodes_modes=of_all(np.full(len(node), "BRANCH_LEQ"), "LEAF"),
        nodes_featureids=of_all(trees.feature),
        nodes_values=of_all(trees.threshold.astype(np.float64)),
        nodes_missing_value_tracks_true=of_all(trees.missing_left.astype(np.int64)),
        nodes_truenodeids=of_all(left),
        nodes_falsenodeids=of_all(right),
        target_ids=[0] * len(leaf),
        target_treeids=tree_of_leaf.tolist(),
        target_nodeids=leaf.tolist(),
        target_weights=trees.value.tolist(),
    )
    if base is None:
        return [ensemble], {}, np.float32
    added = [
        helper.make_node("Gather", ["features", "base"], ["start"], axis=1),
        helper.make_node("Add", ["start", "trees"], ["score"]),
    ]
    return [ensemble, *added], {"base": np.array([ranker.names.index(base)])}, np.float32


def linear_nodes(ranker: ltr.Ranker, helper: Any) -> Graph:
    """In float64, as here; where features may be missing, of those that have a weight, which the others must not make NaN."""
    weights = np.array(list(weights_of(ranker).values()), np.float64)
    read = np.arange(len(weights)) if ranker.needs_complete or not weights.any() else np.flatnonzero(weights)
    nodes = [
        helper.make_node("Gather", ["features", "read"], ["own"], axis=1),
        helper.make_node("Cast", ["own"], ["wide"], to=helper.np_dtype_to_tensor_dtype(np.dtype(np.float64))),
        helper.make_node("Gemm", ["wide", "weights"], ["score"]),
    ]
    return nodes, {"weights": weights[read, None], "read": read}, np.float64


def imputing_nodes(ranker: ltr.Ranker, helper: Any) -> Graph:
    """Missing features filled in, indicators behind them, then in float64, as here."""
    assert isinstance(ranker, LinearRanker)
    assert ranker.weights is not None
    assert ranker.imputation is not None
    float64 = helper.np_dtype_to_tensor_dtype(np.dtype(np.float64))
    constants: dict[str, NDArray[Any]] = {
        "values": ranker.imputation.values,
        "indicated": ranker.imputation.indicated,
        "weights": ranker.weights[:, None].copy(),
    }
    nodes = [
        helper.make_node("IsNaN", ["features"], ["missing"]),
        helper.make_node("Where", ["missing", "values", "features"], ["filled"]),
        helper.make_node("Gather", ["missing", "indicated"], ["asked"], axis=1),
        helper.make_node("Cast", ["asked"], ["indicators"], to=float64),
        helper.make_node("Cast", ["filled"], ["complete"], to=float64),
        helper.make_node("Concat", ["complete", "indicators"], ["wide"], axis=1),
        helper.make_node("Gemm", ["wide", "weights"], ["score"]),
    ]
    return nodes, constants, np.float64


def net_nodes(ranker: ltr.Ranker, helper: Any) -> Graph:
    """Standardised as here, a missing value being the mean; then in float64, where the net sums its inputs in float32."""
    assert isinstance(ranker, ltr.LambdaRank)
    assert ranker.weights is not None
    assert ranker.scaling is not None
    float32, float64 = (helper.np_dtype_to_tensor_dtype(np.dtype(dtype)) for dtype in (np.float32, np.float64))
    inner = ranker.weights.inner.astype(np.float32).astype(np.float64)
    constants = {
        "mean": ranker.scaling[0],
        "deviation": ranker.scaling[1],
        "zero": np.zeros(1, np.float32),
        "inner": inner.T.copy(),
    }
    nodes = [
        helper.make_node("Cast", ["features"], ["wide"], to=float64),
        helper.make_node("Sub", ["wide", "mean"], ["centred"]),
        helper.make_node("Div", ["centred", "deviation"], ["scaled"]),
        helper.make_node("Cast", ["scaled"], ["narrow"], to=float32),
        helper.make_node("IsNaN", ["narrow"], ["missing"]),
        helper.make_node("Where", ["missing", "zero", "narrow"], ["filled"]),
        helper.make_node("Cast", ["filled"], ["standardised"], to=float64),
    ]
    if ranker.hidden == 0:
        return [*nodes, helper.make_node("Gemm", ["standardised", "inner"], ["score"])], constants, np.float64
    layers = [
        helper.make_node("Gemm", ["standardised", "inner", "bias"], ["sums"]),
        helper.make_node("Tanh", ["sums"], ["units"]),
        helper.make_node("Gemm", ["units", "outer"], ["score"]),
    ]
    return [*nodes, *layers], {**constants, "bias": ranker.weights.bias, "outer": ranker.weights.outer[:, None].copy()}, np.float64


def onnx_scores(path: Path, features: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[Any]:
    """Scores of a file ``[documents, 1]`` by onnxruntime."""
    session = package("onnxruntime").InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["score"], {"features": features})[0])
