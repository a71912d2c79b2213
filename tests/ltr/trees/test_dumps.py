"""Dumps against those that the tools themselves make of the models that are written for them."""

import json

import lightgbm
import numpy as np
import pytest
import xgboost

from ltr.trees import dumps, formats
from ltr.trees.ensemble import join
from tests.ltr.trees.test_formats import LIGHTGBM, fitted, stump

NAMES = ("a", "b", "c", "d")


def trees(missing=0.15):
    return join([fitted(n_trees=4, missing=missing).trees, stump(0.25, True), stump(-3.0)])


def test_xgboost_dumps_the_same(tmp_path):
    ours = trees()
    (tmp_path / "m.json").write_text(json.dumps(formats.xgboost_document(ours, NAMES)))
    theirs = [json.loads(tree) for tree in xgboost.Booster(model_file=tmp_path / "m.json").get_dump(dump_format="json")]

    def rounded(node):
        """XGBoost writes nine digits of a float32."""
        return {key: np.float32(value) if key in ("leaf", "split_condition") else value for key, value in node.items()} | (
            {"children": [rounded(child) for child in node["children"]]} if "children" in node else {}
        )

    assert [rounded(tree) for tree in dumps.xgboost_dump(ours, NAMES)] == [rounded(tree) for tree in theirs]


def test_lightgbm_dumps_the_same():
    ours = trees()
    theirs = lightgbm.Booster(model_str=formats.lightgbm_text(ours, NAMES)).dump_model()
    written = dumps.lightgbm_dump(ours, NAMES)

    def assert_alike(mine, other):
        for key, value in mine.items():
            if isinstance(value, dict):
                assert_alike(value, other[key])
            elif key == "threshold":
                assert value == np.nextafter(other[key], np.inf), "for Vespa"
            elif key not in ("leaf_weight", "split_gain"):
                assert value == other[key], key
        assert mine.get("split_gain", 0) == pytest.approx(other.get("split_gain", 0), rel=1e-5)

    assert {key: value for key, value in written.items() if key != "tree_info"}.items() <= theirs.items()
    assert len(written["tree_info"]) == len(theirs["tree_info"]) == ours.n_trees
    for mine, other in zip(written["tree_info"], theirs["tree_info"], strict=True):
        assert_alike(mine, other)


def test_neighbouring_numbers_fall_to_the_same_side_in_lightgbm_and_vespa():
    """Vespa reads ``<=`` as ``<`` and rounds the edge to float32 (its `LightGBMParser` and `fast_forest`); where values are seconds of an epoch,
    thresholds are values."""
    rng = np.random.default_rng(0)
    thresholds = np.concatenate((
        rng.normal(size=50), np.arange(1.7e9, 1.7e9 + 6400, 128), [0.0, -0.0, 1e-45, -1e-45, 1e-38, -3e38, 16777216.0],
    )).astype(np.float32)  # fmt: skip
    for threshold in thresholds:
        (tree,) = dumps.lightgbm_dump(join([stump(threshold)]), ("a",))["tree_info"]
        edge = tree["tree_structure"]["threshold"]
        for value in (np.nextafter(threshold, np.float32(-np.inf)), threshold, np.nextafter(threshold, np.float32(np.inf))):
            in_lightgbm, in_vespa = float(value) <= edge, value < np.float32(edge)
            assert in_lightgbm == in_vespa == (value <= threshold), (threshold, value)
        (xgboost_tree,) = dumps.xgboost_dump(join([stump(threshold)]), ("a",))
        condition = xgboost_tree["split_condition"]
        for value in (threshold, np.nextafter(threshold, np.float32(np.inf))):
            assert (float(value) < condition) == (value < np.float32(condition)) == (value <= threshold)


def test_infinite_thresholds_are_json():
    for dump in (dumps.xgboost_dump, dumps.lightgbm_dump):
        json.dumps(dump(join([stump(np.inf), stump(-np.inf, True)]), ("a",)), allow_nan=False)


def test_single_leaves_and_names():
    leaf = join([formats.read_lightgbm(formats.lightgbm_text(stump(0.5), ("a",))).trees])
    assert dumps.xgboost_dump(leaf, ("a",))[0]["children"][0] == {"nodeid": 1, "leaf": 1.0}
    with pytest.raises(ValueError, match="XGBoost does not support feature names"):
        dumps.xgboost_dump(leaf, ("a<b",))
    with pytest.raises(ValueError, match="LightGBM does not support feature names"):
        dumps.lightgbm_dump(leaf, ("a b",))


def test_a_tree_of_one_leaf_is_its_value():
    alone = formats.read_lightgbm(LIGHTGBM).trees.between(1, 2)
    assert dumps.xgboost_dump(alone, ("a", "b")) == [{"nodeid": 0, "leaf": 0.5}]
    assert dumps.lightgbm_dump(alone, ("a", "b"))["tree_info"][0]["tree_structure"] == {"leaf_value": 0.5}
