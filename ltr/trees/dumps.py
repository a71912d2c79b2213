"""Ensembles of trees as XGBoost and LightGBM dump them: nested JSON for other programs to read, which those two do not read back themselves.

Vespa imports both, and the learning-to-rank plugins of OpenSearch and Elasticsearch take XGBoost's as ``model/xgboost+json``. A tree is
numbered as in the model that `ltr.trees.formats` writes, so that a dump made by the tool of that model is the same.
"""

from collections.abc import Sequence

import numpy as np

from ltr.kernels.kernel import Floats, Floats32
from ltr.rankers.base import Json
from ltr.trees.ensemble import Trees, documents_below
from ltr.trees.formats import LARGEST, check_names, in_float64, shortest


def xgboost_dump(trees: Trees, names: Sequence[str]) -> list[Json]:
    """What ``Booster.dump_model(…, dump_format="json")`` of XGBoost holds: a tree an entry; a row goes to ``yes`` where it is below
    ``split_condition`` in float32. Infinite conditions, which JSON has not, are the largest float32.

    Raises:
        ValueError: for a feature name that XGBoost does not take.
    """
    check_names(names, r"[\[\]<]", "XGBoost does not support feature names with [, ] or <")
    return [_xgboost_tree(trees.between(k, k + 1), names) for k in range(trees.n_trees)]


def _xgboost_tree(tree: Trees, names: Sequence[str]) -> Json:
    """The children of the k-th node have the numbers 2k + 1 and 2k + 2."""
    n = len(tree.feature)
    with np.errstate(over="ignore"):
        above = np.clip(np.nextafter(tree.threshold, np.float32(np.inf)), -LARGEST, LARGEST)
    conditions, values = above.astype(np.float64).tolist(), shortest(tree.value)  # exact, for readers in float64 too
    number, depth = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for k in range(n):
        for child, own in ((tree.left[k], 2 * k + 1), (tree.right[k], 2 * k + 2)):
            if child >= 0:
                number[child], depth[child] = own, depth[k] + 1
    written: dict[int, Json] = {}

    def child_of(k: int, child: int, own: int) -> Json:
        return written[child] if child >= 0 else {"nodeid": own, "leaf": values[~child]}

    for k in range(n - 1, -1, -1):
        yes, no = 2 * k + 1, 2 * k + 2
        written[k] = {
            "nodeid": int(number[k]),
            "depth": int(depth[k]),
            "split": names[tree.feature[k]],
            "split_condition": conditions[k],
            "yes": yes,
            "no": no,
            "missing": yes if tree.missing_left[k] else no,
            "children": [child_of(k, int(tree.left[k]), yes), child_of(k, int(tree.right[k]), no)],
        }
    return written[0] if n else {"nodeid": 0, "leaf": values[0]}


def lightgbm_dump(trees: Trees, names: Sequence[str]) -> dict[str, Json]:
    """What ``Booster.dump_model()`` of LightGBM holds, without importances: a row goes left where it is ``<=`` the threshold in float64 (`_edges`),
    and a missing value as ``default_left`` says.

    Raises:
        ValueError: for a feature name with a space or a character that JSON of LightGBM cannot hold.
    """
    check_names(names, r'[\s",:\[\]{}]', 'LightGBM does not support feature names with spaces or ",:[]{}')
    return {
        "name": "tree",
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": len(names) - 1,
        "objective": "lambdarank",
        "average_output": False,
        "feature_names": list(names),
        "monotone_constraints": [],
        "tree_info": [_lightgbm_tree(k, trees.between(k, k + 1)) for k in range(trees.n_trees)],
        "pandas_categorical": None,
    }


def _edges(threshold: Floats32) -> Floats:
    """The smallest float64 that float32 rounds to more than each threshold: values in float32 are ``<=`` it where they are ``<=`` the threshold, and
    so they are in Vespa, which reads ``<=`` as ``<`` and rounds the edge to float32."""
    edges: Floats = np.where(threshold == 0, _ABOVE_0, np.nextafter(in_float64(threshold), np.inf))
    return edges


_ABOVE_0 = 1e-45
"""Float32 rounds it to its smallest number."""


def _lightgbm_tree(number: int, tree: Trees) -> Json:
    below, edges = documents_below(tree), np.clip(_edges(tree.threshold), -LARGEST, LARGEST)
    leaves: list[Json] = [
        {"leaf_index": k, "leaf_value": float(value), "leaf_weight": float(count), "leaf_count": int(count)}
        for k, (value, count) in enumerate(zip(tree.value, tree.documents, strict=True))
    ]
    nodes: dict[int, Json] = {}
    for k in range(len(tree.feature) - 1, -1, -1):
        left, right = (nodes[child] if child >= 0 else leaves[~child] for child in (tree.left[k], tree.right[k]))
        nodes[k] = {
            "split_index": k,
            "split_feature": int(tree.feature[k]),
            "split_gain": float(tree.gain[k]),
            "threshold": float(edges[k]),
            "decision_type": "<=",
            "default_left": bool(tree.missing_left[k]),
            "missing_type": "NaN",
            "internal_count": int(below[k]),
            "left_child": left,
            "right_child": right,
        }
    root = nodes[0] if nodes else {"leaf_value": float(tree.value[0])}
    return {"tree_index": number, "num_leaves": len(tree.value), "num_cat": 0, "shrinkage": 1, "tree_structure": root}
