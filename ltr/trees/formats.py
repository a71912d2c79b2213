"""Ensembles of trees as other tools write them: LightGBM's text, XGBoost's JSON, RankLib's XML, Solr's JSON; the first two also read.

A tree here goes left where x ≤ threshold in float32 and adds its leaves in float64 (`ltr.trees.ensemble`). The formats say that differently:

- LightGBM compares float64(x) ≤ threshold in float64, so a float32 threshold means the same there, and a float64 threshold means the
  largest float32 that is not above it. Every node has its own rule for missing values, and leaves are float64: nothing is lost. Features
  up to 1e-35 in size are zero to LightGBM.
- XGBoost tests x < threshold in float32: the threshold is the next float32 above ours, ours the next below. Leaves and their sum are
  float32.
- RankLib (also ``model/ranklib`` of the Elasticsearch and OpenSearch plugins) tests x ≤ threshold in float32, with features numbered from
  1 and sums in float32. So does Solr, with features by name, but first it adds 1e-6 to every threshold, which is subtracted here. Neither
  has missing values: their readers put 0 for a feature that is absent.

References: ``src/io/tree.cpp`` of LightGBM 4; ``doc/model.schema`` of XGBoost 3; ``ciir.umass.edu.learning.tree.Ensemble`` of RankLib
2.10; ``org.apache.solr.ltr.model.MultipleAdditiveTreesModel`` of Solr 9.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ltr.kernels.kernel import Array, Floats, Floats32, Ints
from ltr.rankers.base import Json
from ltr.trees.ensemble import Trees, join

Document = Mapping[str, Any]
"""What `json.loads` makes of another tool's file."""
_Node = TypeVar("_Node")
"""What a node or a leaf is written as."""

_LEFT, _NAN = 2, 8
"""LightGBM's decision_type of a numerical split: bit 1, missing values go left; bits 2 and 3, which values are missing."""
_MISSING = {0: "none", 4: "zero", 8: "nan"}
_CATEGORICAL = 1
_ROOT = 2147483647
_SLACK = np.float32(1e-6)
_LARGEST = np.finfo(np.float32).max
_MARGINS = ("rank:", "reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror")
"""Objectives of XGBoost whose base score is a score; that of others is a probability or a rate."""


# --- written ------------------------------------------------------------------------------------------------------------


def lightgbm_text(trees: Trees, names: Sequence[str]) -> str:
    """A LightGBM model, version 4, that ``lightgbm.Booster(model_file=…)`` opens; its raw scores are the ensemble's, to the bit.

    Raises:
        ValueError: for a feature name with a space, which LightGBM separates names by.
    """
    _check_names(names, r"\s", "LightGBM separates feature names by spaces")
    blocks = [_lightgbm_tree(k, trees.between(k, k + 1)) for k in range(trees.n_trees)]
    header = {
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": len(names) - 1,
        "objective": "lambdarank",
        "feature_names": " ".join(names),
        "feature_infos": " ".join("none" for _ in names),
        "tree_sizes": " ".join(str(len(block)) for block in blocks),
    }
    lines = [f"{key}={value}" for key, value in header.items()]
    return "\n".join(("tree", "version=v4", *lines, "", "".join(blocks))) + "end of trees\n"


def _lightgbm_tree(number: int, tree: Trees) -> str:
    below = _below(tree)
    missing = np.where(tree.missing_left, _LEFT | _NAN, _NAN)
    # A threshold of infinity separates all values from missing ones; LightGBM itself writes the largest number for it.
    thresholds = np.where(np.isinf(tree.threshold), 1e300, tree.threshold.astype(np.float64))
    lists: dict[str, Array] = {
        "split_feature": tree.feature,
        "split_gain": tree.gain,
        "threshold": thresholds,
        "decision_type": missing,
        "left_child": tree.left,
        "right_child": tree.right,
        "leaf_value": tree.value,
        "leaf_weight": tree.documents.astype(np.float64),
        "leaf_count": tree.documents,
        "internal_value": np.zeros(len(tree.feature)),
        "internal_weight": below.astype(np.float64),
        "internal_count": below,
    }
    rows = [f"{key}={' '.join(map(repr, array.tolist()))}" for key, array in lists.items()]
    return "\n".join(
        (f"Tree={number}", f"num_leaves={len(tree.value)}", "num_cat=0", *rows, "is_linear=0", "shrinkage=1", "", "", "")
    )


def xgboost_document(trees: Trees, names: Sequence[str]) -> dict[str, Json]:
    """What, as JSON, ``xgboost.Booster(model_file=…)`` opens; scores are those of leaves and sums in float32.

    Raises:
        ValueError: for a feature name with ``[``, ``]`` or ``<``, which XGBoost does not take.
    """
    _check_names(names, r"[\[\]<]", "XGBoost takes no feature names with [, ] or <")
    written = [_xgboost_tree(k, trees.between(k, k + 1), len(names)) for k in range(trees.n_trees)]
    model: Json = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(trees.n_trees)},
        "iteration_indptr": list(range(trees.n_trees + 1)),
        "tree_info": [0] * trees.n_trees,
        "trees": written,
    }
    learner: Json = {
        "attributes": {},
        "feature_names": list(names),
        "feature_types": ["float"] * len(names),
        "gradient_booster": {"model": model, "name": "gbtree"},
        "learner_model_param": {
            "base_score": "0E0",
            "boost_from_average": "1",
            "num_class": "0",
            "num_feature": str(len(names)),
            "num_target": "1",
        },
        "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
    }
    return {"learner": learner, "version": [2, 1, 0]}


def _xgboost_tree(number: int, tree: Trees, n_features: int) -> dict[str, Json]:
    """Nodes and leaves under one numbering; a leaf has its value where a node has its threshold. The children of node k have the numbers
    2k + 1 and 2k + 2: XGBoost's kernels expect the right one to follow the left."""
    n, n_leaves = len(tree.feature), len(tree.value)
    node, leaf = np.zeros(n, np.int64), np.zeros(n_leaves, np.int64)
    left, right, parents = np.full(n + n_leaves, -1), np.full(n + n_leaves, -1), np.full(n + n_leaves, _ROOT)
    for k in range(n):
        for child, place in ((tree.left[k], 2 * k + 1), (tree.right[k], 2 * k + 2)):
            of_kind, number_of_kind = (node, child) if child >= 0 else (leaf, ~child)
            of_kind[number_of_kind] = place
            parents[place] = node[k]
        left[node[k]], right[node[k]] = 2 * k + 1, 2 * k + 2
    with np.errstate(over="ignore"):
        above = np.nextafter(tree.threshold, np.float32(np.inf))

    def placed(of_nodes: Array, of_leaves: Array) -> Array:
        both = np.empty(n + n_leaves, of_nodes.dtype)
        both[node], both[leaf] = of_nodes, of_leaves
        return both

    zeros, none = np.zeros(n), np.zeros(n_leaves, np.int64)
    return {
        "base_weights": _shortest(placed(zeros, tree.value)),
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": placed(tree.missing_left.astype(np.int64), none).tolist(),
        "id": number,
        "left_children": left.tolist(),
        "loss_changes": _shortest(placed(tree.gain, none)),
        "parents": parents.tolist(),
        "right_children": right.tolist(),
        "split_conditions": _shortest(placed(above, tree.value.astype(np.float32))),
        "split_indices": placed(tree.feature, none).tolist(),
        "split_type": [0] * (n + n_leaves),
        "sum_hessian": _shortest(placed(_below(tree), tree.documents)),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": str(n + n_leaves),
            "size_leaf_vector": "1",
        },
    }


def ranklib_text(trees: Trees, names: Sequence[str]) -> str:
    """A LambdaMART ensemble of RankLib; feature k is the k-th of `names`, from 1, as in a feature set of Elasticsearch."""
    # RankLib's reader takes a tag's first child for its content: there must be no space between the tags of a tree.
    listed = (f"## {k}: {' '.join(name.split())}\n" for k, name in enumerate(names, 1))

    def split(feature: int, threshold: np.float32, left: str, right: str) -> str:
        sides = f'<split pos="left">{left}</split><split pos="right">{right}</split>'
        return f"<feature>{feature + 1}</feature><threshold>{float(str(threshold))!r}</threshold>{sides}"

    def leaf(value: float) -> str:
        return f"<output>{_shortest([value])[0]!r}</output>"

    rows = (
        f'<tree id="{k + 1}" weight="1.0"><split>{_folded(trees.between(k, k + 1), leaf, split)}</split></tree>\n'
        for k in range(trees.n_trees)
    )
    return f"## LambdaMART\n## No. of trees = {trees.n_trees}\n{''.join(listed)}\n<ensemble>\n{''.join(rows)}</ensemble>\n"


def solr_trees(trees: Trees, names: Sequence[str], name: str) -> dict[str, Json]:
    """A ``MultipleAdditiveTreesModel`` called `name`, for Solr's model store."""

    def split(feature: int, threshold: np.float32, left: Json, right: Json) -> Json:
        return {"feature": names[feature], "threshold": str(solr_threshold(threshold)), "left": left, "right": right}

    def leaf(value: float) -> Json:
        return {"value": str(np.float32(value))}

    roots: list[Json] = [{"weight": "1", "root": _folded(trees.between(k, k + 1), leaf, split)} for k in range(trees.n_trees)]
    return _solr("MultipleAdditiveTreesModel", names, name, {"trees": roots})


def solr_linear(weights: Mapping[str, float], name: str) -> dict[str, Json]:
    """A ``LinearModel`` called `name`, for Solr's model store."""
    return _solr("LinearModel", list(weights), name, {"weights": {feature: float(weight) for feature, weight in weights.items()}})


def _solr(kind: str, names: Sequence[str], name: str, params: Json) -> dict[str, Json]:
    return {"class": f"org.apache.solr.ltr.model.{kind}", "name": name, "features": [{"name": n} for n in names], "params": params}


def solr_threshold(threshold: np.float32) -> np.float32:
    """The float32 that becomes `threshold`, or comes nearest to it, when Solr adds 1e-6: thresholds below 1e-6 in size cannot all be
    reached."""
    middle = np.float32(threshold - _SLACK)
    near = (middle, np.nextafter(middle, np.float32(-np.inf)), np.nextafter(middle, np.float32(np.inf)))
    return min(near, key=lambda one: abs(float(one + _SLACK) - float(threshold)))


def solr_shift(trees: Trees) -> float:
    """The largest difference between a threshold of the ensemble and what Solr will compare with."""
    finite = trees.threshold[np.isfinite(trees.threshold)]
    return max((abs(float(solr_threshold(edge) + _SLACK) - float(edge)) for edge in finite), default=0.0)


def check_complete(trees: Trees, names: Sequence[str], where: str) -> None:
    """Checks that a format without missing values can hold the ensemble: no node sends them left, and none separates them from values.

    A node that was grown without missing values sends them right, and so may one that was grown with them: the two cannot be
    distinguished, and both pass. On complete features the scores are the same either way.

    Raises:
        ValueError: naming the first such node's tree and feature.
    """
    known = trees.missing_left | np.isinf(trees.threshold)
    if known.any():
        node = int(np.argmax(known))
        tree = int(np.searchsorted(trees.node_starts, node, side="right"))
        raise ValueError(
            f"{where} knows no missing values, and tree {tree} has a rule for those of {names[trees.feature[node]]!r} "
            f"({int(known.sum())} of {len(known)} splits have one); export it as for complete features if there will be none"
        )


def _folded(tree: Trees, leaf: Callable[[float], _Node], split: Callable[[int, np.float32, _Node, _Node], _Node]) -> _Node:
    """One tree in nested form, built from the bottom up: children have higher numbers than their parents."""
    leaves = [leaf(value) for value in tree.value]
    edges = np.clip(tree.threshold, -_LARGEST, _LARGEST)
    nodes: dict[int, _Node] = {}
    for k in range(len(tree.feature) - 1, -1, -1):
        left, right = (nodes[child] if child >= 0 else leaves[~child] for child in (tree.left[k], tree.right[k]))
        nodes[k] = split(int(tree.feature[k]), edges[k], left, right)
    return nodes[0] if nodes else leaves[0]


def _below(tree: Trees) -> Ints:
    """Documents below each node of one tree."""
    below = np.zeros(len(tree.feature), np.int64)
    for k in range(len(below) - 1, -1, -1):
        below[k] = sum(below[child] if child >= 0 else tree.documents[~child] for child in (tree.left[k], tree.right[k]))
    return below


def _shortest(values: ArrayLike) -> list[float]:
    """The float64 with the fewest digits that round to the same float32."""
    return [float(str(value)) for value in np.asarray(values).astype(np.float32)]


def _check_names(names: Sequence[str], forbidden: str, rule: str) -> None:
    wrong = [name for name in names if re.search(forbidden, name)]
    if wrong:
        raise ValueError(f"{rule}; rename {wrong[0]!r}")


# --- read ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ensemble:
    """The contents of a file: trees, and the names of their features; ``f1``, ``f2``, … where the file has none (`named` is False)."""

    trees: Trees
    names: tuple[str, ...]
    named: bool


def _ensemble(trees: list[Trees], names: Sequence[str], n_features: int) -> Ensemble:
    return Ensemble(join(trees), tuple(names) or tuple(f"f{k + 1}" for k in range(n_features)), bool(names))


def read_lightgbm(text: str) -> Ensemble:
    """Reads a LightGBM model, version 3 or 4; names that LightGBM made up (``Column_0`` …) count as none.

    Missing values go where LightGBM sends them: by the node's rule, or where 0 goes if the node was grown without any. The scores are
    LightGBM's raw ones, whatever its objective makes of them.

    Raises:
        ValueError: for several classes, averaged trees, categorical splits, linear leaves, zeros that count as missing, another
            version, or a file that ends early or contradicts itself.
    """
    head, *blocks = re.split(r"^Tree=\d+$", text.split("\nend of trees")[0], flags=re.MULTILINE)
    header = _pairs(head)
    if header.get("version") not in ("v3", "v4"):
        raise ValueError(f"version {header.get('version')!r} of LightGBM's format; v3 and v4 are read")
    if "\nend of trees" not in text or len(blocks) != len(header.get("tree_sizes", "").split()):
        raise ValueError("the LightGBM model ends before its last tree")
    for key in ("num_class", "num_tree_per_iteration"):
        if header.get(key) != "1":
            raise ValueError(f"{key}={header.get(key)}; a ranker has one score a document")
    if "average_output" in head.split():
        raise ValueError("average_output: a random forest's score is a mean of its trees, not their sum")
    names = tuple(header.get("feature_names", "").split())
    trees = [_read_lightgbm_tree(k, _pairs(block), len(names)) for k, block in enumerate(blocks)]
    made_up = names == tuple(f"Column_{k}" for k in range(len(names)))
    # Where LightGBM read a LETOR file, column 0 does not exist in it: positions then do not match features.
    shifted = header.get("feature_infos", "").split()[:1] == ["none"]
    return _ensemble(trees, () if made_up and not shifted else names, len(names))


def _pairs(block: str) -> dict[str, str]:
    return {key: value for key, sign, value in (line.partition("=") for line in block.splitlines()) if sign}


class _Given(NamedTuple):
    """A tree as another tool has it: a split a row, then a leaf a row; a child below 0 is the leaf ``~child``."""

    feature: Array
    threshold: Array
    missing_left: Array
    left: Ints
    right: Ints
    value: Floats
    documents: Array
    gain: Array
    root: int | None = None


def _read_lightgbm_tree(number: int, given: Mapping[str, str], n_features: int) -> Trees:
    if given.get("is_linear", "0") != "0":
        raise ValueError(f"tree {number} has linear leaves; a leaf must be one value")

    def listed(key: str, dtype: type, default: str | None = None) -> Array:
        try:
            return np.array((given[key] if default is None else given.get(key, default)).split(), dtype)
        except KeyError:
            raise ValueError(f"tree {number} has no {key}") from None
        except ValueError as error:
            raise ValueError(f"tree {number}, {key}: {error}") from None

    values = listed("leaf_value", np.float64)
    inner = {"default": "" if len(values) == 1 else None}
    decision, edges = listed("decision_type", np.int64, **inner), listed("threshold", np.float64, **inner)
    feature = listed("split_feature", np.int64, **inner)
    kind = np.array([_MISSING.get(int(one) & 12, "?") for one in decision], "U4")
    for wrong, why in (
        (decision & _CATEGORICAL > 0, "is categorical; only numerical splits are read"),
        (kind == "zero", "counts zeros as missing (zero_as_missing), which here are values like others"),
        (kind == "?", "has an unknown decision_type"),
    ):
        if wrong.any():
            raise ValueError(f"tree {number}, split {int(np.argmax(wrong))} {why}")
    if len(edges) != len(decision):
        raise ValueError(f"tree {number} has {len(edges)} thresholds and {len(decision)} decision types")
    tree = _Given(
        feature, _not_above(edges), np.where(kind == "nan", decision & _LEFT > 0, edges >= 0),
        listed("left_child", np.int64, **inner), listed("right_child", np.int64, **inner), values,
        np.maximum(listed("leaf_count", np.int64, " ".join("1" for _ in values)), 1),
        listed("split_gain", np.float64, " ".join("0" for _ in edges)),
    )  # fmt: skip
    return _ordered(number, n_features, tree)


def _not_above(edges: Floats) -> Floats32:
    """The largest float32 that is not above each edge: for every float32 x, x ≤ edge gives the same answer."""
    with np.errstate(over="ignore"):
        narrow = edges.astype(np.float32)
    return np.where(narrow > edges, np.nextafter(narrow, np.float32(-np.inf)), narrow).astype(np.float32)


def read_xgboost(document: Document) -> Ensemble:
    """Reads a model of XGBoost's JSON: ``gbtree`` or ``dart``, all its trees.

    The base score comes first, as a tree of one leaf. XGBoost does not count documents; the sums of second derivatives take their place,
    as they are where they are whole numbers, otherwise scaled to a million in all.

    Raises:
        ValueError: for a linear booster, several classes or targets, an objective whose base score is no score, categorical splits,
            leaves that are vectors, or a document that contradicts itself.
    """
    try:
        return _read_xgboost(document["learner"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no XGBoost model: {type(error).__name__} {error}") from None


def _read_xgboost(learner: Document) -> Ensemble:
    booster, parameters, objective = learner["gradient_booster"], learner["learner_model_param"], learner["objective"]["name"]
    if booster["name"] not in ("gbtree", "dart"):
        raise ValueError(f"XGBoost's booster {booster['name']!r}; read are gbtree and dart")
    if not objective.startswith(_MARGINS):
        raise ValueError(f"objective {objective!r}: its base score is no score; read are rank:… and {', '.join(_MARGINS[1:])}")
    base = parameters["base_score"].strip("[]").split(",")
    if int(parameters["num_class"]) > 1 or int(parameters.get("num_target", "1")) > 1 or len(base) > 1:
        raise ValueError("several classes or targets; a ranker has one score a document")
    model = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    weights = booster["weight_drop"] if booster["name"] == "dart" else [1.0] * len(model["trees"])
    n_features = int(parameters["num_feature"])
    names = tuple(learner["feature_names"])
    if len(weights) != len(model["trees"]) or (names and len(names) != n_features):
        raise ValueError(f"{len(weights)} weights of {len(model['trees'])} trees, {len(names)} names of {n_features} features")
    constant = [_constant(float(np.float32(base[0])))] if float(base[0]) else []
    trees = [_read_xgboost_tree(k, *one, n_features) for k, one in enumerate(zip(model["trees"], weights, strict=True))]
    return _ensemble([*constant, *trees], names, n_features)


def _constant(value: float) -> Trees:
    none = np.empty(0, np.int64)
    return _ordered(0, 0, _Given(none, none, none, none, none, np.array([value]), np.ones(1, np.int64), none))


def _read_xgboost_tree(number: int, given: Document, weight: float, n_features: int) -> Trees:
    if any(given.get("split_type", ())) or given.get("categories_nodes"):
        raise ValueError(f"tree {number} has categorical splits; only numerical ones are read")
    if int(given["tree_param"].get("size_leaf_vector", "1")) > 1:
        raise ValueError(f"tree {number} has vectors for leaves; a ranker has one score a document")
    left, right, feature = (np.array(given[key], np.int64) for key in ("left_children", "right_children", "split_indices"))
    condition, hessian = (np.array(given[key], np.float64).astype(np.float32) for key in ("split_conditions", "sum_hessian"))
    defaults, gain = np.array(given["default_left"], np.int64) > 0, np.array(given["loss_changes"], np.float64)
    if len({len(a) for a in (left, right, feature, condition, hessian, defaults, gain)}) > 1 or len(left) == 0:
        raise ValueError(f"tree {number} has arrays of different lengths, or empty ones")
    leaf = left == -1
    place = np.where(leaf, ~(np.cumsum(leaf) - 1), np.cumsum(~leaf) - 1)
    if (right[leaf] != -1).any() or not all(((side >= 0) & (side < len(left)))[~leaf].all() for side in (left, right)):
        raise ValueError(f"tree {number} has a child that is not there")
    below = np.nextafter(condition[~leaf], np.float32(-np.inf))
    values = (np.float32(weight) * condition[leaf]).astype(np.float64)
    counts = hessian[leaf].astype(np.float64)
    if (counts % 1).any():
        counts *= 1e6 / counts.sum()
    tree = _Given(
        feature[~leaf], below, defaults[~leaf], place[left[~leaf]], place[right[~leaf]], values,
        np.maximum(np.rint(counts), 1), gain[~leaf], int(place[0]),
    )  # fmt: skip
    return _ordered(number, n_features, tree)


def _ordered(number: int, n_features: int, given: _Given) -> Trees:
    """One tree with its nodes from the root down and its leaves from left to right, which scoring by bits relies on. Nodes that cannot be
    reached from the root (XGBoost keeps what it pruned) are left out.

    Raises:
        ValueError: for arrays of different lengths, a feature or child that does not exist, a node that is reached twice, or a value
            that is not finite.
    """
    feature, threshold, missing_left, left, right, value, documents, gain, root = given
    n, n_leaves = len(feature), len(value)
    lengths = {len(array) for array in (feature, threshold, missing_left, left, right, gain)}
    children = np.concatenate((left, right))
    if lengths != {n} or len(documents) != n_leaves or n_leaves == 0:
        raise ValueError(f"tree {number} has arrays of different lengths, or no leaf")
    if ((children >= n) | (children < -n_leaves)).any() or ((feature < 0) | (feature >= n_features)).any():
        raise ValueError(f"tree {number} has a child or a feature that is not there")
    if not np.isfinite(value).all() or np.isnan(np.asarray(threshold, np.float32)).any():
        raise ValueError(f"tree {number} has a leaf or a threshold that is not a number")
    nodes: list[int] = []
    leaves: list[int] = []
    open_ends = [root if root is not None else 0 if n else -1]
    while open_ends:
        child = open_ends.pop()
        if child < 0:
            leaves.append(~child)
        else:
            nodes.append(child)
            open_ends += [int(right[child]), int(left[child])]
        if len(nodes) > n or len(leaves) > n_leaves:
            raise ValueError(f"tree {number} meets a node twice")
    if len({*nodes}) < len(nodes) or len({*leaves}) < len(leaves):
        raise ValueError(f"tree {number} meets a node twice")
    renamed = {node: k for k, node in enumerate(nodes)} | {~leaf: ~k for k, leaf in enumerate(leaves)}
    return Trees(
        feature=np.asarray(feature)[nodes].astype(np.int32),
        threshold=np.asarray(threshold)[nodes].astype(np.float32),
        missing_left=np.asarray(missing_left)[nodes].astype(np.bool_),
        left=np.array([renamed[int(left[node])] for node in nodes], np.int32),
        right=np.array([renamed[int(right[node])] for node in nodes], np.int32),
        value=np.asarray(value, np.float64)[leaves],
        documents=np.asarray(documents)[leaves].astype(np.int64),
        node_starts=np.array([0, len(nodes)]),
        leaf_starts=np.array([0, len(leaves)]),
        gain=np.asarray(gain)[nodes].astype(np.float64),
    )
