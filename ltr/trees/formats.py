"""Ensembles of trees as other tools write them: LightGBM's text, XGBoost's JSON, RankLib's XML, Solr's JSON; the first two also read.

A tree here goes left where x ≤ threshold in float32 and adds its leaves in float64 (`ltr.trees.ensemble`). The formats say that differently:

- LightGBM compares x ≤ threshold in float64: the threshold is the largest float64 that float32 rounds to ours, so that x falls to the same
  side whether or not it was rounded before; a float64 threshold means the largest float32 that is not above it. Every node has its own rule for missing values, and leaves are float64: nothing is lost. Features
  up to 1e-35 in size are zero to LightGBM.
- XGBoost tests x < threshold in float32: the threshold is the next float32 above ours, ours the next below. Leaves and their sum are
  float32.
- Both know splits by categories. LightGBM's set goes left, and missing and unknown ones right, as ours; XGBoost's set goes right, so that
  the sides are exchanged. The other formats have none.
- RankLib (also ``model/ranklib`` of the Elasticsearch and OpenSearch plugins) tests x ≤ threshold in float32, with features numbered from
  1 and sums in float32. So does Solr, with features by name, but first it adds 1e-6 to every threshold, which is subtracted here. Neither
  has missing values: their readers put 0 for a feature that is absent.

References: ``src/io/tree.cpp`` of LightGBM 4; ``doc/model.schema`` of XGBoost 3; ``ciir.umass.edu.learning.tree.Ensemble`` of RankLib
2.10; ``org.apache.solr.ltr.model.MultipleAdditiveTreesModel`` of Solr 9.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ltr.kernels.kernel import Array, Floats, Floats32, Ints, Words32
from ltr.rankers.base import Json
from ltr.trees.binning import MOST_CATEGORIES
from ltr.trees.ensemble import Trees, documents_below, join

Document = Mapping[str, Any]
"""What `json.loads` makes of another tool's file."""
_Node = TypeVar("_Node")
"""What a node or a leaf is written as."""

_LEFT, _NAN = 2, 8
"""LightGBM's decision_type of a numerical split: bit 1, missing values go left; bits 2 and 3, which values are missing."""
_MISSING = {0: "none", 4: "zero", 8: "nan"}
_CATEGORICAL = 1
_ENTRIES = {
    "num_leaves", "num_cat", "split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child", "leaf_value",
    "leaf_weight", "leaf_count", "internal_value", "internal_weight", "internal_count", "cat_boundaries", "cat_threshold", "is_linear",
    "leaf_const", "num_features", "leaf_features", "leaf_coeff", "shrinkage",
}  # fmt: skip
"""What LightGBM writes of a tree, an entry a line."""
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_REAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|nan)")
_MOST_FEATURES = 1 << 22
"""Of a file that names none: so many names are made up at most."""
_ROOT = 2147483647
_NO_CODES = np.empty(0, np.float32)
_SLACK = np.float32(1e-6)
LARGEST = np.finfo(np.float32).max
"""Of float32: what stands for an infinite threshold where a format has none."""
_LAMBDARANK: dict[str, Json] = {
    "lambdarank_bias_norm": "1", "lambdarank_normalization": "1", "lambdarank_num_pair_per_sample": "4294967295",
    "lambdarank_pair_method": "topk", "lambdarank_score_normalization": "1", "lambdarank_unbiased": "0", "ndcg_exp_gain": "1",
}  # fmt: skip
"""XGBoost's own defaults. They decide nothing about scores; OpenSearch's reader takes rank:ndcg and no other objective that XGBoost 3 has for
scores as they are."""
_MARGINS = ("rank:", "reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror")
"""Objectives of XGBoost whose base score is a score; that of others is a probability or a rate."""


# --- written ------------------------------------------------------------------------------------------------------------


_LIGHTGBM_ZERO = np.float32(1e-35)
"""LightGBM's kZeroThreshold, on both sides of 0."""


def lightgbm_text(trees: Trees, names: Sequence[str]) -> str:
    """A LightGBM model, version 4, that ``lightgbm.Booster(model_file=…)`` opens; its raw scores are the ensemble's, to the bit,
    where no feature is 1e-35 or less from 0, and not 0: LightGBM takes that for 0, and a split at 0, or just below it (XGBoost's x < 0), then
    may send it to the other side.

    Raises:
        ValueError: for a feature name with a space, which LightGBM separates names by, for a split between values that are all 0 to it, and for one that
            sends missing values where its categories go.
    """
    check_names(names, r"\s", "LightGBM separates feature names by spaces")
    below_zero = np.nextafter(np.float32(0), np.float32(-1))
    at_zero = (trees.threshold == 0) | (trees.threshold == below_zero)
    lost = (trees.n_codes == 0) & ~at_zero & (np.abs(trees.threshold) < _LIGHTGBM_ZERO)
    for node in np.flatnonzero(lost)[:1]:
        raise ValueError(
            f"LightGBM reads values up to {_LIGHTGBM_ZERO:g} as 0, and the trees split {names[trees.feature[node]]!r} at "
            f"{trees.threshold[node]:g}; multiply the feature by a power of 10, and train again"
        )
    for node in np.flatnonzero((trees.n_codes > 0) & trees.missing_left)[:1]:
        raise ValueError(
            f"a split by categories of {names[trees.feature[node]]!r} sends missing values to the listed categories' side, which LightGBM cannot express; "
            "XGBoost's format holds it"
        )
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


def in_float64(threshold: Floats32) -> Floats:
    """The largest float64 that float32 rounds to each threshold, for tools that compare values which were not rounded; 0, the largest float32
    and infinity stay."""
    own = threshold.astype(np.float64)
    with np.errstate(over="ignore"):
        middle = 0.5 * (own + np.nextafter(threshold, np.float32(np.inf)))  # exact
        largest = np.where(middle.astype(np.float32) == threshold, middle, np.nextafter(middle, -np.inf))
    found: Floats = np.where((own != 0) & np.isfinite(middle), largest, own)
    return found


def _lightgbm_tree(number: int, tree: Trees) -> str:
    below, categorical = documents_below(tree), tree.n_codes > 0
    missing = np.where(tree.missing_left, _LEFT | _NAN, _NAN) | np.where(categorical, _CATEGORICAL, 0)
    sets = [_words(codes) for codes in tree.codes_of.values()]
    # An infinite threshold separates all values from missing ones; LightGBM itself writes the largest number for it, or the smallest.
    thresholds = np.where(
        np.isinf(tree.threshold), np.copysign(1e300, tree.threshold.astype(np.float64)), in_float64(tree.threshold)
    )
    thresholds[categorical] = np.arange(len(sets))
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
    if sets:
        lists["cat_boundaries"] = np.cumsum([0, *map(len, sets)])
        lists["cat_threshold"] = np.concatenate(sets)
    rows = [f"{key}={' '.join(map(repr, array.tolist()))}" for key, array in lists.items()]
    return "\n".join(
        (f"Tree={number}", f"num_leaves={len(tree.value)}", f"num_cat={len(sets)}", *rows, "is_linear=0", "shrinkage=1", "", "", "")
    )


def _words(codes: Floats32) -> Words32:
    """Categories as the bits of words, the lowest first."""
    whole = codes.astype(np.int64)
    words = np.zeros(whole[-1] // 32 + 1, np.uint32)
    np.bitwise_or.at(words, whole // 32, np.uint32(1) << (whole % 32).astype(np.uint32))
    return words


def xgboost_document(trees: Trees, names: Sequence[str]) -> dict[str, Json]:
    """What, as JSON, ``xgboost.Booster(model_file=…)`` opens; scores are those of leaves and sums in float32.

    Raises:
        ValueError: for a feature name with ``[``, ``]`` or ``<``, which XGBoost does not take.
    """
    check_names(names, r"[\[\]<]", "XGBoost does not support feature names with [, ] or <")
    written = [_xgboost_tree(k, trees.between(k, k + 1), len(names)) for k in range(trees.n_trees)]
    categorical = {*trees.feature[trees.n_codes > 0].tolist()}
    model: Json = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(trees.n_trees)},
        "iteration_indptr": list(range(trees.n_trees + 1)),
        "tree_info": [0] * trees.n_trees,
        "trees": written,
    }
    learner: Json = {
        "attributes": {},
        "feature_names": list(names),
        "feature_types": ["c" if k in categorical else "float" for k in range(len(names))],
        "gradient_booster": {"model": model, "name": "gbtree"},
        "learner_model_param": {
            "base_score": "0E0",
            "boost_from_average": "1",
            "num_class": "0",
            "num_feature": str(len(names)),
            "num_target": "1",
        },
        "objective": {"name": "rank:ndcg", "lambdarank_param": _LAMBDARANK},
    }
    return {"learner": learner, "version": [2, 1, 0]}


def _xgboost_tree(number: int, tree: Trees, n_features: int) -> dict[str, Json]:
    """Nodes and leaves under one numbering; a leaf has its value where a node has its threshold. The children of node k have the numbers
    2k + 1 and 2k + 2: XGBoost's kernels expect the right one to follow the left. Those of categories change places."""
    n, n_leaves, sets = len(tree.feature), len(tree.value), tree.codes_of
    node, leaf = np.zeros(n, np.int64), np.zeros(n_leaves, np.int64)
    left, right, parents = np.full(n + n_leaves, -1), np.full(n + n_leaves, -1), np.full(n + n_leaves, _ROOT)
    for k in range(n):
        first, second = (tree.right, tree.left) if k in sets else (tree.left, tree.right)
        for child, place in ((first[k], 2 * k + 1), (second[k], 2 * k + 2)):
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

    zeros, none, categorical = np.zeros(n), np.zeros(n_leaves, np.int64), tree.n_codes > 0
    by_place = sorted((int(node[k]), codes.astype(np.int64).tolist()) for k, codes in sets.items())
    sizes = [len(codes) for _, codes in by_place]
    return {
        "base_weights": shortest(placed(zeros, tree.value)),
        "categories": [code for _, codes in by_place for code in codes],
        "categories_nodes": [place for place, _ in by_place],
        "categories_segments": np.cumsum([0, *sizes])[:-1].tolist(),
        "categories_sizes": sizes,
        "default_left": placed((tree.missing_left != categorical).astype(np.int64), none).tolist(),
        "id": number,
        "left_children": left.tolist(),
        "loss_changes": shortest(placed(tree.gain, none)),
        "parents": parents.tolist(),
        "right_children": right.tolist(),
        "split_conditions": shortest(placed(above, tree.value.astype(np.float32))),
        "split_indices": placed(tree.feature, none).tolist(),
        "split_type": placed(categorical.astype(np.int64), none).tolist(),
        "sum_hessian": shortest(placed(documents_below(tree), tree.documents)),
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
        return f"<output>{shortest([value])[0]!r}</output>"

    rows = (
        f'<tree id="{k + 1}" weight="1.0"><split>{_folded(trees.between(k, k + 1), leaf, split)}</split></tree>\n'
        for k in range(trees.n_trees)
    )
    return f"## LambdaMART\n## No. of trees = {trees.n_trees}\n{''.join(listed)}\n<ensemble>\n{''.join(rows)}</ensemble>\n"


_SOLR_MISSES = 0.01
"""The share of a threshold by which Solr may miss it."""
_AT_ZERO = np.array([0, _LIGHTGBM_ZERO, np.finfo(np.float32).smallest_subnormal], np.float32)
"""Thresholds of these sizes stand beside 0: LightGBM's, and the float next to it, which has XGBoost's x < 0."""


def _check_solr(trees: Trees, names: Sequence[str]) -> None:
    """Raises ValueError where Solr misses a threshold by far, or two of a feature become one: values would go to the wrong side."""
    for feature in np.unique(trees.feature):
        own = np.unique(trees.threshold[(trees.feature == feature) & np.isfinite(trees.threshold)])
        met = np.array([solr_threshold(edge) for edge in own], np.float32) + _SLACK
        at_zero = np.isin(np.abs(own), _AT_ZERO)
        far = (np.abs(met - own) > _SOLR_MISSES * np.abs(own)) & ~at_zero
        for k in np.flatnonzero(far)[:1]:
            raise ValueError(
                f"solr: Solr adds 1e-6 to thresholds, in float32, so that {own[k]:.9g} of {names[feature]!r} would be {met[k]:.2g}; learn from "
                "it in larger units"
            )
        one = (np.diff(met) == 0) & ~(at_zero[:-1] & at_zero[1:])
        for k in np.flatnonzero(one)[:1]:
            raise ValueError(
                f"solr: Solr adds 1e-6 to thresholds, in float32, so that {own[k]:.9g} and {own[k + 1]:.9g} of {names[feature]!r} would be one "
                "and values between them on the wrong side; learn from it in larger units"
            )


def solr_trees(trees: Trees, names: Sequence[str], name: str) -> dict[str, Json]:
    """A ``MultipleAdditiveTreesModel`` called `name`, for Solr's model store.

    Raises:
        ValueError: where two thresholds of a feature become one in Solr.
    """
    _check_solr(trees, names)

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
    reached. One below 0 stays below 0, which goes to its right."""
    middle = np.float32(threshold - _SLACK)
    with np.errstate(over="ignore"):  # beyond the largest float32 is infinity
        near = (middle, np.nextafter(middle, np.float32(-np.inf)), np.nextafter(middle, np.float32(np.inf)))
    sided = [one for one in near if (one + _SLACK < 0) == (threshold < 0)]
    return min(sided, key=lambda one: abs(float(one + _SLACK) - float(threshold)))


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
            f"{where} does not support missing values, and tree {tree} has a rule for those of {names[trees.feature[node]]!r} "
            f"({int(known.sum())} of {len(known)} splits have one); pass complete=True if no feature will ever be missing"
        )


def _folded(tree: Trees, leaf: Callable[[float], _Node], split: Callable[[int, np.float32, _Node, _Node], _Node]) -> _Node:
    """One tree in nested form, built from the bottom up: children have higher numbers than their parents."""
    leaves = [leaf(value) for value in tree.value]
    edges = np.clip(tree.threshold, -LARGEST, LARGEST)
    nodes: dict[int, _Node] = {}
    for k in range(len(tree.feature) - 1, -1, -1):
        left, right = (nodes[child] if child >= 0 else leaves[~child] for child in (tree.left[k], tree.right[k]))
        nodes[k] = split(int(tree.feature[k]), edges[k], left, right)
    return nodes[0] if nodes else leaves[0]


def shortest(values: ArrayLike) -> list[float]:
    """The float64 with the fewest digits that round to the same float32."""
    return [float(str(value)) for value in np.asarray(values).astype(np.float32)]


def check_names(names: Sequence[str], forbidden: str, rule: str) -> None:
    """Raises ValueError, with the rule, for the first name in which the pattern `forbidden` is found."""
    wrong = [name for name in names if re.search(forbidden, name)]
    if wrong:
        raise ValueError(f"{rule}; rename {wrong[0]!r}")


# --- read ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ensemble:
    """The contents of a file: trees, and the names of their features; ``f1``, ``f2``, … where the file has none (`named` is False).
    `best_of`: the best round of its training and the rounds that it has, where these are more. `categories`: of each feature that was a column
    of categories, their names, whose places are its values."""

    trees: Trees
    names: tuple[str, ...]
    named: bool
    best_of: tuple[int, int] | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _ensemble(trees: list[Trees], names: Sequence[str], n_features: int) -> Ensemble:
    return Ensemble(join(trees), tuple(names) or tuple(f"f{k + 1}" for k in range(n_features)), bool(names))


def read_lightgbm(text: str) -> Ensemble:
    """Reads a LightGBM model, version 3 or 4; names that LightGBM made up (``Column_0`` …) count as none.

    Missing values go where LightGBM sends them: by the node's rule, or where 0 goes if the node was grown without any. The scores are
    LightGBM's raw ones, whatever its objective makes of them.

    Raises:
        ValueError: for several classes, averaged trees, linear leaves, zeros that count as missing, another
            version, categories of pandas' columns that are not those of the trees', or a file that ends early or contradicts itself.
    """
    end = text.find("\nend of trees") + 1
    if not end:
        raise ValueError("the LightGBM model ends before its last tree")
    head, *blocks = re.split(r"^(?=Tree=)", text[:end], flags=re.MULTILINE)
    header = {key: value for key, _, value in (line.partition("=") for line in head.split("\n"))}
    if header.get("version") not in ("v3", "v4"):
        raise ValueError(f"version {header.get('version')!r} of LightGBM's format; v3 and v4 are read")
    sizes = header.get("tree_sizes", "").split()
    if len(blocks) != len(sizes):
        raise ValueError(
            f"tree_sizes has {len(sizes)} of {len(blocks)} trees; the LightGBM model ends before its last tree, or has others"
        )
    for k, (block, size) in enumerate(zip(blocks, sizes, strict=True)):
        if str(len(block.encode())) != size:
            raise ValueError(f"tree {k} has {len(block.encode())} bytes, and {size} in tree_sizes, which LightGBM finds it by")
    for key in ("num_class", "num_tree_per_iteration"):
        if header.get(key) != "1":
            raise ValueError(f"{key}={header.get(key)}; a ranker must have one score per document")
    if "average_output" in header:
        raise ValueError("average_output: a random forest's score is a mean of its trees, not their sum")
    told = text[end:].partition("\nparameters:")[2].partition("\nend of parameters")[0].split("\n")
    if strange := [line for line in told if line and not re.fullmatch(r"\[\w+: .*\]", line)]:
        raise ValueError(f"parameters: {strange[0][:40]!r} is not one; each must be a line [name: value]")
    names = tuple(filter(None, header.get("feature_names", "").split(" ")))
    if header.get("max_feature_idx") != str(len(names) - 1):
        raise ValueError(f"max_feature_idx={header.get('max_feature_idx')} and {len(names)} feature_names")
    trees = [_read_lightgbm_tree(k, _entries(k, block), len(names)) for k, block in enumerate(blocks)]
    made_up = names == tuple(f"Column_{k}" for k in range(len(names)))
    # Where LightGBM read a LETOR file, column 0 does not exist in it: positions then do not match features.
    infos = header.get("feature_infos", "").split()
    found = _ensemble(trees, () if made_up and infos[:1] != ["none"] else names, len(names))
    return replace(found, categories=_categories_of_pandas(text[end:], names, infos))


def _categories_of_pandas(end: str, names: Sequence[str], infos: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """The categories of the columns that were pandas' categories, which LightGBM lists in the order of the columns and without their
    names: those of the features whose values it describes as a set, ``1:0:2``, and not as a range, ``[0:2]``."""
    written = re.search(r"^pandas_categorical:(.*)$", end, re.MULTILINE)
    try:
        lists = json.loads(written[1]) if written else None
    except ValueError:
        lists = "no JSON"
    if not lists:
        return {}
    if not isinstance(lists, list) or not all(isinstance(own, list) for own in lists):
        raise ValueError("pandas_categorical is not a list of lists of categories")
    sets = [name for name, info in zip(names, infos, strict=False) if not info.startswith("[") and info != "none"]
    with_constant = [name for name, info in zip(names, infos, strict=False) if not info.startswith("[")]
    if len(sets) != len(lists) == len(with_constant):
        sets = with_constant
    if len(sets) != len(lists):
        raise ValueError(
            f"pandas_categorical lists the categories of {len(lists)} columns, and the features that have some are {', '.join(sets) or 'none'}: "
            "which belong to which is unknown"
        )
    described = dict(zip(names, infos, strict=False))
    for name, own in zip(sets, lists, strict=True):
        # A column of whole numbers that was named to LightGBM looks like one of pandas' categories, and an ordered one of these like numbers.
        unsorted = all(isinstance(value, int | float) for value in own) and own != sorted(own)
        there = [] if described[name] == "none" else list(map(int, described[name].split(":")))
        doubtful = unsorted or {*there} != {*range(len(own))}
        if (doubtful and f"[0:{len(own) - 1}]" in infos) or max(there, default=-1) >= len(own):
            raise ValueError(
                f"pandas_categorical lists {json.dumps(own)[:60]}, and whether these are the categories of {name} is unknown"
            )
    return {name: _category_names(own) for name, own in zip(sets, lists, strict=True)}


def _category_names(values: Sequence[object]) -> tuple[str, ...]:
    """What categories of pandas are called in other files: whole numbers without a point."""
    for value in values:
        if not isinstance(value, str | int | float):
            raise ValueError(f"{json.dumps(value)[:40]} is not a category: a text, a number, true or false")
    return tuple(
        f"{value!r}" if isinstance(value, float) and value % 1 else f"{value:.0f}" if isinstance(value, float) else str(value)
        for value in values
    )


def _entries(number: int, block: str) -> dict[str, str]:
    """The entries of one tree of LightGBM's, which reads none behind an empty line."""
    found: dict[str, str] = {}
    for place, line in enumerate(block.rstrip("\n").split("\n")[1:], 2):
        key, sign, value = line.partition("=")
        if not sign or key not in _ENTRIES or key in found:
            raise ValueError(f"tree {number}, its line {place}: {line[:40]!r} is not an entry of a tree, or occurs twice")
        wrong = [one for one in value.split(" ") if one and not _REAL.fullmatch(one)]
        if wrong:
            raise ValueError(f"tree {number}, {key}: could not convert {wrong[0][:40]!r} to a number")
        found[key] = value
    return found


class _Given(NamedTuple):
    """A tree as another tool has it: a split a row, then a leaf a row; a child below 0 is the leaf ``~child``. `codes`: the categories that go
    left, of splits by some."""

    feature: Array
    threshold: Array
    missing_left: Array
    left: Ints
    right: Ints
    value: Floats
    documents: Array
    gain: Array
    root: int | None = None
    codes: Mapping[int, Floats32] = {}


def _read_lightgbm_tree(number: int, given: Mapping[str, str], n_features: int) -> Trees:
    if given.get("is_linear", "0") != "0":
        raise ValueError(f"tree {number} has linear leaves; a leaf must be one value")

    def listed(key: str, dtype: type, default: str | None = None) -> Array:
        if default is None and key not in given:
            raise ValueError(f"tree {number} has no {key}")
        written = [one for one in given.get(key, default or "").split(" ") if one]
        for one in written if dtype is np.int64 else ():
            if not _WHOLE.fullmatch(one) or abs(int(one)) >= 1 << 31:
                raise ValueError(f"tree {number}, {key}: could not convert {one[:40]!r} to a whole number of 32 bits")
        return np.array(written, dtype)

    values = listed("leaf_value", np.float64)
    inner = {"default": "" if len(values) == 1 else None}
    decision, edges = listed("decision_type", np.int64, **inner), listed("threshold", np.float64, **inner)
    feature = listed("split_feature", np.int64, **inner)
    kind = np.array([_MISSING.get(int(one) & ~3, "?") for one in decision], "U4")
    categorical = decision & _CATEGORICAL > 0
    for wrong, why in (
        (kind == "zero", "counts zeros as missing (zero_as_missing), which here are values like others"),
        (kind == "?", "has an unknown decision_type"),
    ):
        if wrong.any():
            raise ValueError(f"tree {number}, split {int(np.argmax(wrong))} {why}")
    if len(edges) != len(decision):
        raise ValueError(f"tree {number} has {len(edges)} thresholds and {len(decision)} decision types")
    if given.get("num_cat") != str(int(categorical.sum())):
        raise ValueError(f"tree {number} has num_cat={given.get('num_cat')} and {int(categorical.sum())} categorical splits")
    sets = _read_sets(number, edges[categorical], listed("cat_boundaries", np.int64, "0"), listed("cat_threshold", np.uint32, ""))
    if given.get("num_leaves") != str(len(values)) or len(values) != len(decision) + 1:
        raise ValueError(
            f"tree {number} has num_leaves={given.get('num_leaves')}, values of {len(values)} leaves and {len(decision)} splits"
        )
    counts = listed("leaf_count", np.int64, " ".join("1" for _ in values))
    if len(values) == 1 and not len(counts):  # LightGBM 3 counts no documents of a tree without splits
        counts = np.ones(1, np.int64)
    tree = _Given(
        feature, np.where(categorical, np.float32(0), _not_above(edges)),
        ~categorical & np.where(kind == "nan", decision & _LEFT > 0, edges >= 0),
        listed("left_child", np.int64, **inner), listed("right_child", np.int64, **inner), values,
        np.maximum(counts, 1),
        listed("split_gain", np.float64, " ".join("0" for _ in edges)),
        codes=dict(zip(np.flatnonzero(categorical).tolist(), sets, strict=True)),
    )  # fmt: skip
    return _ordered(number, n_features, tree)


def _read_sets(number: int, which: Floats, boundaries: Ints, words: Words32) -> list[Floats32]:
    """The categories of LightGBM's sets, in the order of the splits that name them."""
    if boundaries[0] != 0 or (np.diff(boundaries) < 1).any() or boundaries[-1] != len(words):
        raise ValueError(f"tree {number}: cat_boundaries do not rise from 0 to the {len(words)} words of cat_threshold")
    if len(words) > MOST_CATEGORIES // 32:
        raise ValueError(f"tree {number} has categories above {MOST_CATEGORIES:,}")
    found = []
    for one in which.tolist():
        if one not in range(len(boundaries) - 1):
            raise ValueError(f"tree {number}: a split names the set {one:g}, and there are {len(boundaries) - 1}")
        own = words[boundaries[int(one)] : boundaries[int(one) + 1]]
        if not own.any():
            raise ValueError(f"tree {number}: the set {one:g} holds no category")
        found.append(np.flatnonzero(np.unpackbits(own.astype("<u4").view(np.uint8), bitorder="little")).astype(np.float32))
    return found


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
        ValueError: for a linear booster, several classes or targets, an objective whose base score is no score, leaves that are
            vectors, or a document that contradicts itself.
    """
    try:
        return _read_xgboost(document["learner"])
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"not an XGBoost model: {type(error).__name__} {error}") from None


def _read_xgboost(learner: Document) -> Ensemble:
    booster, parameters, objective = learner["gradient_booster"], learner["learner_model_param"], learner["objective"]["name"]
    if booster["name"] not in ("gbtree", "dart"):
        raise ValueError(f"XGBoost's booster {booster['name']!r}; read are gbtree and dart")
    if not objective.startswith(_MARGINS):
        raise ValueError(
            f"objective {objective!r}: its base score is not a score; supported are rank:… and {', '.join(_MARGINS[1:])}"
        )
    base = parameters["base_score"].removeprefix("[").removesuffix("]").split(",")
    if (
        _count("num_class", parameters["num_class"]) > 1
        or _count("num_target", parameters.get("num_target", "1")) > 1
        or len(base) > 1
    ):
        raise ValueError("several classes or targets; a ranker must have one score per document")
    if not _REAL.fullmatch(base[0]) or not np.isfinite(constant := _narrow(float(base[0]))):
        raise ValueError(f"base_score {parameters['base_score']!r} is not a finite number")
    model = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    n_trees, n_features = len(model["trees"]), _count("num_feature", parameters["num_feature"])
    weights = _reals("weight_drop", booster["weight_drop"]) if booster["name"] == "dart" else np.ones(n_trees, np.float32)
    names = tuple(learner["feature_names"])
    if not isinstance(learner["feature_names"], list) or not all(isinstance(name, str) for name in names):
        raise ValueError("feature_names is not a list of text")
    if len(weights) != n_trees or (names and len(names) != n_features):
        raise ValueError(f"{len(weights)} weights of {n_trees} trees, {len(names)} names of {n_features} features")
    if n_features > _MOST_FEATURES:
        raise ValueError(f"num_feature={n_features}; at most {_MOST_FEATURES} are read")
    _check_all_trees(model, n_trees)
    trees = [_read_xgboost_tree(k, *one, n_features) for k, one in enumerate(zip(model["trees"], weights, strict=True))]
    constants = [_constant(float(constant))] if constant else []
    forest = max(_count("num_parallel_tree", model["gbtree_model_param"].get("num_parallel_tree", "1")), 1)
    starts = model.get("iteration_indptr", range(0, n_trees + 1, forest))  # XGBoost 1 does not write it
    best, rounds = learner.get("attributes", {}).get("best_iteration", ""), len(starts) - 1
    earlier = re.fullmatch("[0-9]{1,10}", best) and int(best) + 1 < rounds
    categories = _categories_of_xgboost(model.get("cats") or {}, names)
    found = _ensemble([*constants, *trees], names, n_features)
    return replace(found, best_of=(int(best) + 1, rounds) if earlier else None, categories=categories)


def _categories_of_xgboost(cats: Document, names: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """The categories of the columns that were those of a data frame: an entry a feature, of numbers, or of the bytes of texts one behind the
    other with the offset that each begins at. Texts with other letters than ASCII's are left out: XGBoost 3 cuts them short in its file."""
    entries, found = cats.get("enc", []), {}
    if any(entry["values"] for entry in entries) and len(entries) != len(names):
        raise ValueError(f"cats has {len(entries)} features, and there are {len(names)} feature_names")
    for name, entry in zip(names, entries, strict=False):
        values, offsets = entry["values"], entry.get("offsets")
        if values and offsets is None:
            found[name] = _category_names(values)
        elif values:
            ends = _wholes(f"cats, offsets of {name!r}", offsets)
            letters = _wholes(f"cats, values of {name!r}", values)
            if not len(ends) or ends[0] != 0 or ends[-1] != len(letters) or (np.diff(ends) < 0).any():
                raise ValueError(f"cats, offsets of {name!r} do not rise from 0 to {len(letters)}, the number of its letters")
            if ((letters > 0) & (letters < 128)).all():
                found[name] = tuple(bytes(letters[a:b].tolist()).decode() for a, b in pairwise(ends.tolist()))
    return found


def _check_all_trees(model: Document, n_trees: int) -> None:
    """XGBoost adds up the trees that these three count."""
    groups, counted = _wholes("tree_info", model["tree_info"]), _count("num_trees", model["gbtree_model_param"]["num_trees"])
    rounds = _wholes("iteration_indptr", model.get("iteration_indptr", [0, n_trees]))
    if groups.any() or len(groups) != n_trees:
        raise ValueError(
            f"tree_info has {len(groups)} of {n_trees} trees, and not all of group 0; a ranker must have one score per document"
        )
    if counted != n_trees or not len(rounds) or rounds[0] != 0 or rounds[-1] != n_trees or (np.diff(rounds) < 0).any():
        raise ValueError(f"num_trees={counted} and iteration_indptr, which rises from 0 to it, for {n_trees} trees")


def _count(name: str, written: str) -> int:
    """XGBoost writes counts as text."""
    if not re.fullmatch("[0-9]{1,10}", written):
        raise ValueError(f"{name}={written[:40]!r} is not a count")
    return int(written)


def _wholes(name: str, given: object) -> Ints:
    if not isinstance(given, list) or not all(type(one) is int and abs(one) < 1 << 31 for one in given):
        raise ValueError(f"{name} is not a list of whole numbers of 32 bits")
    return np.array(given, np.int64)


def _reals(name: str, given: object) -> Floats32:
    if not isinstance(given, list) or not all(type(one) is float for one in given):
        raise ValueError(f"{name} is not a list of numbers, written with a point or an exponent as XGBoost does")
    return _narrow(np.array(given, np.float64))


def _narrow(values: ArrayLike) -> Floats32:
    """float32; infinite where that is too narrow."""
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float64).astype(np.float32)


def _constant(value: float) -> Trees:
    none = np.empty(0, np.int64)
    return _ordered(0, 0, _Given(none, none, none, none, none, np.array([value]), np.ones(1, np.int64), none))


def _read_xgboost_tree(number: int, given: Document, weight: float, n_features: int) -> Trees:
    _count("num_feature", given["tree_param"]["num_feature"])
    if _count("size_leaf_vector", given["tree_param"].get("size_leaf_vector", "1")) > 1:
        raise ValueError(f"tree {number} has vectors for leaves; a ranker must have one score per document")
    whole, real = (
        ("left_children", "right_children", "split_indices", "parents"),
        ("split_conditions", "sum_hessian", "loss_changes"),
    )
    left, right, feature, parents = (_wholes(f"tree {number}, {key}", given[key]) for key in whole)
    default = _wholes(f"tree {number}, default_left", [int(one) if isinstance(one, bool) else one for one in given["default_left"]])
    condition, hessian, gain, base = (_reals(f"tree {number}, {key}", given[key]) for key in (*real, "base_weights"))
    if len({len(a) for a in (left, right, feature, parents, condition, hessian, default, gain, base)}) > 1 or len(left) == 0:
        raise ValueError(f"tree {number} has arrays of different lengths, or empty ones")
    if _count("num_nodes", given["tree_param"]["num_nodes"]) != len(left) or not ((default == 0) | (default == 1)).all():
        raise ValueError(f"tree {number} has another num_nodes than nodes, or a default_left that is not 0 or 1")
    leaf = left == -1
    place = np.where(leaf, ~(np.cumsum(leaf) - 1), np.cumsum(~leaf) - 1)
    if (right[leaf] != -1).any() or not all(((side >= 0) & (side < len(left)))[~leaf].all() for side in (left, right)):
        raise ValueError(f"tree {number} has a child that is not there")
    if (right[~leaf] != left[~leaf] + 1).any():
        node = int(np.flatnonzero(~leaf)[np.argmax(right[~leaf] != left[~leaf] + 1)])
        raise ValueError(
            f"tree {number}, node {node}: the right child is not the node after the left one, where XGBoost looks for it"
        )
    _check_parents(number, left, right, parents)
    sets = {node: codes for node, codes in _read_segments(number, given, len(left)).items() if not leaf[node]}
    by_category = np.isin(np.arange(len(left)), [*sets])
    left, right = np.where(by_category, right, left), np.where(by_category, left, right)
    default = np.where(by_category, 1 - default, default)
    below = np.where(by_category[~leaf], np.float32(0), np.nextafter(condition[~leaf], np.float32(-np.inf)))
    with np.errstate(over="ignore", invalid="ignore"):
        values = (np.float32(weight) * condition[leaf]).astype(np.float64)
    counts = np.clip(np.nan_to_num(hessian[leaf]).astype(np.float64), 0, 1e18)
    if (counts % 1).any() or counts.sum() > 1 << 53:
        counts *= 1e6 / counts.sum()
    tree = _Given(
        feature[~leaf], below, default[~leaf] == 1, place[left[~leaf]], place[right[~leaf]], values,
        np.maximum(np.rint(counts), 1), gain[~leaf], int(place[0]), {int(place[node]): codes for node, codes in sets.items()},
    )  # fmt: skip
    return _ordered(number, n_features, tree)


def _read_segments(number: int, given: Document, n_nodes: int) -> dict[int, Floats32]:
    """The categories of XGBoost's nodes that have some, by node."""
    keys = ("categories", "categories_nodes", "categories_segments", "categories_sizes", "split_type")
    categories, nodes, begins, sizes, kinds = (_wholes(f"tree {number}, {key}", given.get(key, [])) for key in keys)
    of_categories = np.flatnonzero(kinds)
    if len(kinds) not in (0, n_nodes) or not ((kinds == 0) | (kinds == 1)).all() or not np.array_equal(of_categories, nodes):
        raise ValueError(f"tree {number} has a split_type other than its categories_nodes")
    if not len(nodes) == len(begins) == len(sizes) or (sizes < 1).any() or not np.array_equal(begins, np.cumsum(sizes) - sizes):
        raise ValueError(f"tree {number}: categories_segments and categories_sizes do not follow each other, node by node")
    if sizes.sum() != len(categories) or (categories < 0).any() or (categories > MOST_CATEGORIES).any():
        raise ValueError(f"tree {number} has other categories than {int(sizes.sum())} whole numbers from 0 to {MOST_CATEGORIES:,}")
    split = np.split(categories.astype(np.float32), np.cumsum(sizes)[:-1])
    return {node: np.unique(own) for node, own in zip(nodes.tolist(), split, strict=False)}


def _check_parents(number: int, left: Ints, right: Ints, parents: Ints) -> None:
    """XGBoost follows these without looking; children are there."""
    inner, expected = np.flatnonzero(left != -1), np.where((parents >= 0) & (parents < len(left)), parents, _ROOT)
    expected[left[inner]] = expected[right[inner]] = inner
    if (wrong := np.flatnonzero(expected != parents)).size:
        node = int(wrong[0])
        raise ValueError(
            f"tree {number}, node {node}: its parent is {parents[node]} by parents, and {expected[node]} by the children"
        )


def _ordered(number: int, n_features: int, given: _Given) -> Trees:
    """One tree with its nodes from the root down and its leaves from left to right, which scoring by bits relies on. Nodes that cannot be
    reached from the root (XGBoost keeps what it pruned) are left out.

    Raises:
        ValueError: for arrays of different lengths, a feature or child that does not exist, a node that is reached twice, or a value
            that is not finite.
    """
    feature, threshold, missing_left, left, right, value, documents, gain, root, codes = given
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
        n_codes=np.array([len(codes.get(node, ())) for node in nodes], np.int32),
        codes=np.concatenate([codes.get(node, _NO_CODES) for node in nodes] or [_NO_CODES]),
    )
