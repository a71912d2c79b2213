"""Trees of other tools, read and written: what the text says, and what is refused."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.trees import formats
from ltr.trees.binning import MOST_CATEGORIES
from ltr.trees.ensemble import Trees, join
from tests.conftest import make_queries

LIGHTGBM = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=1
objective=lambdarank
feature_names=a b
feature_infos=[0:1] [0:1]
tree_sizes=211 47

Tree=0
num_leaves=3
num_cat=0
split_feature=0 1
split_gain=2 1
threshold=0.10000000000000001 -0.5
decision_type=0 10
left_child=1 -1
right_child=-2 -3
leaf_value=1 2 4
leaf_count=5 6 7
is_linear=0
shrinkage=1


Tree=1
num_leaves=1
num_cat=0
leaf_value=0.5


end of trees
"""


def fitted(n_trees=5, n_leaves=6, missing=0.0, seed=4) -> ltr.LambdaMART:
    queries = make_queries(60, seed=seed, largest=20)
    features = np.round(queries.features, 1)
    features[np.random.default_rng(seed).random(features.shape) < missing] = np.nan
    model = ltr.LambdaMART(n_trees=n_trees, n_leaves=n_leaves, min_docs_in_leaf=3, stop_on=None)
    return model.fit(replace(queries, features=features))


def stump(threshold: float, missing_left: bool = False) -> Trees:
    return Trees(
        feature=np.zeros(1, np.int32), threshold=np.array([threshold], np.float32), missing_left=np.array([missing_left]),
        left=np.array([~0], np.int32), right=np.array([~1], np.int32), value=np.array([1.0, 2.0]), documents=np.array([1, 1]),
        node_starts=np.array([0, 1]), leaf_starts=np.array([0, 2]), gain=np.zeros(1),
    )  # fmt: skip


def test_lightgbm_as_its_text_says():
    """The threshold 0.1 rounds up in float32, so that the largest float32 below it is taken; without missing values in its training a
    node sends them where 0 goes; leaves are counted from left to right."""
    found = formats.read_lightgbm(LIGHTGBM)
    trees = found.trees
    assert found.names == ("a", "b")
    assert found.named
    assert float(trees.threshold[0]) < 0.1 < float(np.nextafter(trees.threshold[0], np.float32(1)))
    assert trees.missing_left.tolist() == [True, True]
    assert trees.value.tolist() == [1, 4, 2, 0.5]
    assert trees.documents.tolist() == [5, 7, 6, 1]
    assert trees.gain.tolist() == [2, 1]
    rows = np.array([[0, -1], [0, 0], [1, 0], [np.nan, np.nan], [0.1, -0.5]], np.float32)
    assert trees.scores(rows).tolist() == [1.5, 4.5, 2.5, 1.5, 2.5]


def test_values_that_were_not_rounded_fall_to_the_same_side_in_lightgbm():
    """Exactly at, just below and just above the middle between a threshold and the next float32."""
    rng = np.random.default_rng(1)
    drawn = (rng.normal(size=500) * 10.0 ** rng.integers(-30, 30, 500)).astype(np.float32)
    thresholds = np.concatenate([drawn, np.float32([0, 1, -1, 1 - 2**-24, 2**20 + 0.125, -(2**-20), np.finfo(np.float32).max])])
    for threshold, written in zip(thresholds, formats.in_float64(thresholds), strict=True):
        with np.errstate(over="ignore"):
            above = float(np.nextafter(threshold, np.float32(np.inf)))
        middle = 0.5 * (float(threshold) + min(above, 1e300))
        around = np.array([threshold, written, middle, np.nextafter(middle, -np.inf), np.nextafter(middle, np.inf), above])
        if threshold not in (0, np.finfo(np.float32).max):
            assert ((around <= written) == (around.astype(np.float32) <= threshold)).all()
    assert formats.in_float64(np.float32([0, np.finfo(np.float32).max])).tolist() == [0.0, float(np.finfo(np.float32).max)]


def test_made_up_names_are_none():
    made_up = LIGHTGBM.replace("feature_names=a b", "feature_names=Column_0 Column_1")
    found = formats.read_lightgbm(made_up)
    assert (found.names, found.named) == (("f1", "f2"), False)
    shifted = formats.read_lightgbm(made_up.replace("feature_infos=[0:1]", "feature_infos=none"))
    assert (shifted.names, shifted.named) == (("Column_0", "Column_1"), True)


def sized(text):
    """The text with the sizes of its trees put right."""
    sizes = [len(block) for block in re.split(r"^(?=Tree=)", text.split("end of trees")[0], flags=re.M)[1:]]
    return re.sub("tree_sizes=211 47", f"tree_sizes={' '.join(map(str, sizes))}", text)


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        ("version=v4", "version=v2", "version 'v2'"),
        ("num_class=1", "num_class=3", "num_class=3; a ranker must have one score"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=3", "num_tree_per_iteration=3"),
        ("label_index", "average_output\nlabel_index", "a mean of its trees"),
        ("is_linear=0", "is_linear=1", "tree 0 has linear leaves"),
        ("decision_type=0 10", "decision_type=0 1", "tree 0 has num_cat=0 and 1 categorical splits"),
        ("decision_type=0 10", "decision_type=6 10", "tree 0, split 0 counts zeros as missing"),
        ("decision_type=0 10", "decision_type=12 10", "tree 0, split 0 has an unknown decision_type"),
        ("decision_type=0 10", "decision_type=0", "2 thresholds and 1 decision types"),
        ("\nend of trees", "", "ends before its last tree"),
        ("tree_sizes=211 47", "tree_sizes=211 47 0", "tree_sizes has 3 of 2 trees; the LightGBM model ends before"),
        ("tree_sizes=211 47", "tree_sizes=211", "tree_sizes has 1 of 2 trees"),
        ("tree_sizes=211 47", "tree_sizes=258 0", "tree 0 has 211 bytes, and 258 in tree_sizes"),
        ("max_feature_idx=1", "max_feature_idx=2", "max_feature_idx=2 and 2 feature_names"),
        ("num_leaves=3", "num_leaves=4", "tree 0 has num_leaves=4, values of 3 leaves and 2 splits"),
        ("num_cat=0", "num_cat=1", "tree 0 has num_cat=1 and 0 categorical splits"),
        ("leaf_value=1 2 4\n", "", "tree 0 has no leaf_value"),
        ("leaf_value=1 2 4", "leaf_value=1 2 4\nleaf_value=1 2 5", "tree 0, its line 11: 'leaf_value=1 2 5' is not an entry of a tree, or occurs twice"),
        ("leaf_value=1 2 4", "\nleaf_value=1 2 4", "tree 0, its line 10: '' is not an entry"),
        ("split_feature=0 1", "split_feature=0 1_0", "tree 0, split_feature: could not convert '1_0' to a number"),
        ("split_feature=0 1", "split_feature=0 99999999999", "could not convert '99999999999' to a whole number of 32 bits"),
        ("decision_type=0 10", "decision_type=0 26", "tree 0, split 1 has an unknown decision_type"),
        ("leaf_value=1 2 4", "leaf_value=1 x 4", "tree 0, leaf_value: could not convert"),
        ("leaf_value=1 2 4", "leaf_value=1 nan 4", "tree 0 has a leaf or a threshold that is not a number"),
        ("split_feature=0 1", "split_feature=0 2", "a child or a feature that is not there"),
        ("left_child=1 -1", "left_child=5 -1", "a child or a feature that is not there"),
        ("left_child=1 -1", "left_child=0 -1", "meets a node twice"),
        ("right_child=-2 -3", "right_child=-2 -2", "meets a node twice"),
        ("leaf_count=5 6 7", "leaf_count=5 6", "arrays of different lengths"),
    ],
)  # fmt: skip
def test_lightgbm_is_refused(before, after, rule):
    assert before in LIGHTGBM
    with pytest.raises(ValueError, match=rule):
        formats.read_lightgbm(sized(LIGHTGBM.replace(before, after, 1)))


def test_what_is_written_is_read_again():
    for missing in (0.0, 0.2):
        model = fitted(missing=missing)
        trees = join([model.trees, stump(np.inf, True), stump(0.0)])
        rows = np.random.default_rng(1).normal(size=(300, 4)).round(1).astype(np.float32)
        rows[::3, 1] = np.nan
        names = tuple("abcd")
        lightgbm = formats.read_lightgbm(formats.lightgbm_text(trees, names))
        xgboost = formats.read_xgboost(json.loads(json.dumps(formats.xgboost_document(trees, names))))
        assert lightgbm.names == xgboost.names == names
        assert np.array_equal(lightgbm.trees.scores(rows), trees.scores(rows))
        assert np.abs(xgboost.trees.scores(rows) - trees.scores(rows)).max() < 1e-6
        assert sorted(xgboost.trees.documents) == sorted(lightgbm.trees.documents) == sorted(trees.documents)


def changed(path, value):
    """A change of a document at ``a.b.0``, for the table below."""

    def change(document):
        *way, last = path.split(".")
        for key in way:
            document = document[int(key) if key.isdigit() else key]
        document[int(last) if last.isdigit() else last] = value

    return change


TREE = "learner.gradient_booster.model.trees.0"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (changed("learner", {}), "not an XGBoost model: KeyError 'gradient_booster'"),
        (changed("learner.gradient_booster.name", "gblinear"), "booster 'gblinear'; read are gbtree and dart"),
        (changed("learner.objective.name", "binary:logistic"), "objective 'binary:logistic': its base score is not a score"),
        (changed("learner.learner_model_param.num_class", "3"), "several classes or targets"),
        (changed("learner.learner_model_param.base_score", "[1E0,2E0]"), "several classes or targets"),
        (changed("learner.feature_names", "abcd"), "feature_names is not a list of text"),
        (changed("learner.feature_names.1", 2), "feature_names is not a list of text"),
        (changed("learner.learner_model_param.base_score", "1_0"), "base_score '1_0' is not a finite number"),
        (changed("learner.learner_model_param.base_score", "1e99"), "base_score '1e99' is not a finite number"),
        (changed("learner.learner_model_param.num_feature", "9999999999"), "9999999999 features"),
        (changed("learner.learner_model_param.num_feature", "-4"), "num_feature='-4' is not a count"),
        (changed("learner.gradient_booster.model.tree_info.1", -1), "tree_info has 5 of 5 trees, and not all of group 0"),
        (changed("learner.gradient_booster.model.tree_info", [0]), "tree_info has 1 of 5 trees"),
        (changed("learner.gradient_booster.model.iteration_indptr.5", 4), "num_trees=5 and iteration_indptr, which rises from 0 to it"),
        (changed("learner.gradient_booster.model.gbtree_model_param.num_trees", "4"), "num_trees=4"),
        (changed(f"{TREE}.right_children.0", 3), "tree 0, node 0: the right child is not the node after the left one"),
        (changed(f"{TREE}.parents.1", 50331652), "tree 0, node 1: its parent is 50331652 by parents, and 0 by the children"),
        (changed(f"{TREE}.parents.0", 1 << 30), "tree 0, node 0: its parent is 1073741824 by parents, and 2147483647 by the children"),
        (changed(f"{TREE}.split_indices.0", 1.5), "tree 0, split_indices is not a list of whole numbers"),
        (changed(f"{TREE}.split_conditions", [[0.5]]), "tree 0, split_conditions is not a list of numbers"),
        (changed(f"{TREE}.default_left.0", -1), "default_left that is not 0 or 1"),
        (changed(f"{TREE}.tree_param.num_nodes", "1"), "tree 0 has another num_nodes than nodes"),
        (changed("learner.feature_names", ["a"]), "1 names of 4 features"),
        (changed(f"{TREE}.split_type.0", 1), "tree 0 has a split_type other than its categories_nodes"),
        (changed(f"{TREE}.tree_param.size_leaf_vector", "2"), "tree 0 has vectors for leaves"),
        (changed(f"{TREE}.default_left", []), "tree 0 has arrays of different lengths"),
        (changed(f"{TREE}.left_children.0", 99), "tree 0 has a child that is not there"),
        (changed(f"{TREE}.left_children.0", 0), "tree 0, node 0: the right child"),
    ],
)  # fmt: skip
def test_xgboost_is_refused(change, rule):
    document = formats.xgboost_document(fitted().trees, tuple("abcd"))
    change(document)
    with pytest.raises(ValueError, match=re.escape(rule)):
        formats.read_xgboost(document)


def naive(split, row):
    """RankLib's walk down a parsed tree."""
    if split.find("output") is not None:
        return np.float32(split.findtext("output"))
    left, right = split.findall("split")
    assert (left.get("pos"), right.get("pos")) == ("left", "right")
    goes_left = row[int(split.findtext("feature")) - 1] <= np.float32(split.findtext("threshold"))
    return naive(left if goes_left else right, row)


def test_ranklib_by_a_naive_reader():
    """A row on every threshold, and next to it on both sides; features are numbered from 1; no space stands between a tree's tags."""
    model = fitted(n_trees=4)
    text = formats.ranklib_text(model.trees, ("a", "b <c>", "x\ny", "d"))
    assert text.startswith("## LambdaMART\n")
    body = "".join(line for line in text.splitlines() if not line.startswith("##"))
    assert not re.search(r">\s+<", re.sub(r"^<ensemble>|</ensemble>$", "", body))
    edges = model.trees.threshold
    rows = np.zeros((3 * len(edges), 4), np.float32)
    beside = [np.nextafter(edges, np.float32(to)) for to in (-np.inf, np.inf)]
    rows[np.arange(len(rows)), np.tile(model.trees.feature, 3)] = np.concatenate((edges, *beside))
    trees = ET.fromstring(body).findall("tree")
    assert [tree.get("weight") for tree in trees] == ["1.0"] * 4
    theirs = [sum(float(naive(tree.find("split"), row)) for tree in trees) for row in rows]
    assert theirs == pytest.approx(model.predict(rows), abs=1e-6)


def test_solr_meets_thresholds_once_it_has_added_its_slack():
    rng = np.random.default_rng(0)
    edges = np.concatenate((rng.normal(size=300), 10.0 ** rng.uniform(-5, 6, 300), [0.0, 1e-6, 2e-6, 16, 1e30])).astype(np.float32)
    reached = np.array([formats.solr_threshold(edge) + np.float32(1e-6) for edge in edges])
    assert (reached == edges).mean() > 0.99
    assert np.abs(reached - edges).max() <= np.spacing(np.abs(edges)).max()
    largest = np.finfo(np.float32).max
    with np.errstate(over="raise"):
        assert formats.solr_threshold(largest) == largest
    for below in (-1e-35, -1.0000000180025095e-35, -1e-14, -3e-14):
        assert -1.2e-13 < formats.solr_threshold(np.float32(below)) + np.float32(1e-6) < 0, "0 goes right of it there too"
    assert formats.solr_threshold(np.float32(1e-35)) + np.float32(1e-6) == 0
    tiny = join([stump(3e-10), stump(0.5)])
    assert 0 < formats.solr_shift(tiny) < 1e-13
    assert formats.solr_shift(stump(0.5)) == 0


def test_thresholds_that_would_be_one_in_solr_are_refused():
    """Two so near that Solr does not tell them apart, and features so small that all of their splits would be at 0."""
    for lost in ((1e-7, np.nextafter(np.float32(1e-7), np.float32(1))), (-2e-8, np.nextafter(np.float32(-2e-8), np.float32(0)))):
        trees = join([stump(0.5), stump(lost[0]), stump(lost[1])])
        with pytest.raises(
            ValueError, match=r"solr: Solr adds 1e-6 to thresholds, in float32, so that .* and .* of 'a' would be one"
        ):
            formats.solr_trees(trees, ("a",), "mine")
    for lost in (4e-14, 1e-12, -3e-13):
        with pytest.raises(
            ValueError,
            match=r"solr: Solr adds 1e-6 to thresholds, in float32, so that .* of 'a' would be .*; learn from it in larger",
        ):
            formats.solr_trees(stump(lost), ("a",), "mine")
    formats.solr_trees(join([stump(-1e-35), stump(1e-35), stump(1e-7), stump(1.01e-7), stump(0), stump(-1e-45)]), ("a",), "mine")
    for likelihood in (1e-40, 1e-34, 6.4e-34, 2e-35):
        with pytest.raises(ValueError, match=r"of 'a' would be .*; learn from it in larger"):
            formats.solr_trees(join([stump(0), stump(likelihood)]), ("a",), "mine")


def test_solr_trees_say_features_by_name():
    document = formats.solr_trees(join([stump(0.5), formats.read_lightgbm(LIGHTGBM).trees.between(1, 2)]), ("a", "b"), "mine")
    assert document["class"] == "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
    assert document["name"] == "mine"
    assert document["features"] == [{"name": "a"}, {"name": "b"}]
    first, second = (tree["root"] for tree in document["params"]["trees"])
    assert first == {"feature": "a", "threshold": "0.499999", "left": {"value": "1.0"}, "right": {"value": "2.0"}}
    assert second == {"value": "0.5"}


def test_rules_for_missing_values_do_not_fit_everywhere():
    formats.check_complete(join([stump(0.5), stump(1.0)]), ("a",), "ranklib")
    for ruled in (stump(0.5, True), stump(np.inf)):
        with pytest.raises(
            ValueError, match=r"ranklib does not support missing values, and tree 2 has a rule for those of 'a' \(1 of 2"
        ):
            formats.check_complete(join([stump(0.5), ruled]), ("a",), "ranklib")


def test_names_that_a_format_cannot_hold():
    with pytest.raises(ValueError, match=r"separates feature names by spaces; rename 'b c'"):
        formats.lightgbm_text(stump(0.5), ("a", "b c"))
    with pytest.raises(ValueError, match=r"does not support feature names with \[, \] or <; rename 'b\[1\]'"):
        formats.xgboost_document(stump(0.5), ("a", "b[1]"))


def test_splits_that_lightgbm_does_not_see_are_refused():
    """It reads values up to 1e-35 as 0 where it predicts, whatever a threshold says."""
    queries = make_queries(30)
    model = ltr.LambdaMART(n_trees=2, min_docs_in_leaf=5)
    tiny = replace(queries, features=queries.features * np.float32(1e-38))
    fitted = model.fit(tiny)
    with pytest.raises(
        ValueError, match=r"LightGBM reads values up to 1e-35 as 0, and the trees split 'f\d' at -?[\d.]+e-\d\d; multiply"
    ):
        formats.lightgbm_text(fitted.trees, fitted.names)
    lightgbm = pytest.importorskip("lightgbm")
    small = replace(queries, features=queries.features * np.float32(1e-30))
    fitted = model.fit(small)
    booster = lightgbm.Booster(model_str=formats.lightgbm_text(fitted.trees, fitted.names))
    assert booster.predict(small.features, raw_score=True).tolist() == fitted.predict(small.features).tolist()
    negative = formats.lightgbm_text(stump(-1e-45), ("a",))
    sides = np.array([[-1.0], [-1e-30], [0.0], [1e-30]])
    scores = lightgbm.Booster(model_str=negative).predict(sides, raw_score=True)
    assert scores.tolist() == stump(-1e-45).added_to(np.zeros(4), sides.astype(np.float32)).tolist()
    assert scores[0] == scores[1] != scores[2] == scores[3]


def test_a_split_below_all_numbers_keeps_its_sides():
    """LightGBM writes such ones of features that are log(0): −1.8e308."""
    lightgbm = pytest.importorskip("lightgbm")
    trees = stump(-np.inf, missing_left=True)
    rows = np.array([[-3e38], [-1], [0], [3e38], [np.nan]], np.float32)
    assert trees.scores(rows).tolist() == [2, 2, 2, 2, 1]
    text = formats.lightgbm_text(trees, ("f",))
    assert lightgbm.Booster(model_str=text).predict(rows).tolist() == [2, 2, 2, 2, 1]
    assert formats.read_lightgbm(text).trees.scores(rows).tolist() == [2, 2, 2, 2, 1]


def test_a_set_of_no_categories_is_refused():
    with pytest.raises(ValueError, match="tree 3: the set 0 holds no category"):
        formats._read_sets(3, np.array([0.0]), np.array([0, 1]), np.array([0], np.uint32))


def test_missing_values_that_go_with_categories_are_refused_for_lightgbm():
    trees = replace(stump(0, missing_left=True), n_codes=np.array([2], np.int32), codes=np.array([1, 3], np.float32))
    assert trees.scores(np.array([[1], [2], [np.nan]], np.float32)).tolist() == [1, 2, 1]
    with pytest.raises(
        ValueError,
        match="a split by categories of 'f' sends missing values to the listed categories' side, which LightGBM cannot express",
    ):
        formats.lightgbm_text(trees, ("f",))
    there_and_back = formats.read_xgboost(formats.xgboost_document(trees, ("f",))).trees
    assert there_and_back.scores(np.array([[1], [2], [np.nan]], np.float32)).tolist() == [1, 2, 1]


def test_documents_that_xgboost_does_not_count_are_shares_of_a_million():
    document = formats.xgboost_document(stump(0.5), ("a",))
    tree = document["learner"]["gradient_booster"]["model"]["trees"][0]
    for hessian, documents in (([2.0, 0.5, 1.5], [250_000, 750_000]), ([20.0, 5.0, 15.0], [5, 15]), ([4.0, 0.0, 4.0], [1, 4])):
        tree["sum_hessian"] = hessian
        assert formats.read_xgboost(document).trees.documents.tolist() == documents


@pytest.mark.parametrize(("threshold", "side"), [(np.inf, "left"), (-np.inf, "right")])
def test_all_values_go_to_one_side_of_an_infinite_threshold_where_none_are_missing(threshold, side):
    trees = stump(threshold)
    text = formats.ranklib_text(trees, ("a",))
    (tree,) = ET.fromstring("".join(line for line in text.splitlines() if not line.startswith("##"))).findall("tree")
    solr = formats.solr_trees(trees, ("a",), "m")["params"]["trees"][0]["root"]
    for value in (-3e38, 0.0, 3e38):
        row = np.array([value], np.float32)
        expected = {"left": 1.0, "right": 2.0}[side]
        assert naive(tree.find("split"), row) == expected
        found = "left" if row[0] <= np.float32(solr["threshold"]) + np.float32(1e-6) else "right"
        assert float(solr[found]["value"]) == expected
    for written in (tree.findtext("split/threshold"), solr["threshold"]):
        assert np.isfinite(float(written))


@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        ([{"values": [1, 2]}], "cats has 1 features, and there are 2 feature_names"),
        ([{"values": []}, {"values": [97, 98], "offsets": [0, 2, 1, 2]}], "cats, offsets of 'b' do not rise from 0 to 2"),
        ([{"values": []}, {"values": [97, 98], "offsets": [1, 2]}], "cats, offsets of 'b' do not rise from 0 to 2"),
        ([{"values": []}, {"values": [97, 98], "offsets": [0, 1]}], "cats, offsets of 'b' do not rise from 0 to 2"),
        ([{"values": [[1]]}, {"values": []}], r"\[1\] is not a category"),
    ],
)
def test_categories_of_xgboost_that_contradict_themselves_are_refused(entries, rule):
    document = formats.xgboost_document(stump(0.5), ("a", "b"))
    model = document["learner"]["gradient_booster"]["model"]
    model["cats"] = {"enc": [{"values": [3, 5]}, {"values": [97, 98, 99], "offsets": [0, 2, 3]}]}
    assert formats.read_xgboost(document).categories == {"a": ("3", "5"), "b": ("ab", "c")}
    model["cats"] = {"enc": entries}
    with pytest.raises(ValueError, match=rule):
        formats.read_xgboost(document)


def test_categories_above_all_that_are_known_are_refused():
    words = np.zeros(MOST_CATEGORIES // 32 + 1, np.uint32)
    words[0] = 2
    (found,) = formats._read_sets(3, np.array([0.0]), np.array([0, len(words) - 1]), words[:-1])
    assert found.tolist() == [1]
    with pytest.raises(ValueError, match="tree 3 has categories above 16,777,216"):
        formats._read_sets(3, np.array([0.0]), np.array([0, len(words)]), words)


def test_numbers_out_of_order_may_be_the_categories_of_an_ordered_column():
    """Pandas sorts whole numbers that become categories, and LightGBM takes an ordered column for numbers."""
    names, infos = ("size", "site"), ("[0:2]", "1:0:2")
    found = formats._categories_of_pandas("\npandas_categorical:[[0, 1, 2]]\n", names, infos)
    assert found == {"site": ("0", "1", "2")}
    with pytest.raises(ValueError, match=r"lists \[2, 0, 1\], and whether these are the categories of site is unknown"):
        formats._categories_of_pandas("\npandas_categorical:[[2, 0, 1]]\n", names, infos)
