"""What engines open, and how OpenSearch scores it: a port of its parsers and of its trees, written from their rules."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import ltr
from ltr.trees.ensemble import join
from tasks.export.engines import Engine
from tasks.export.formats import export, export_to
from tasks.records import DataError
from tests.conftest import make_queries
from tests.ltr.trees.test_formats import stump
from tests.tasks.export.test_formats import data, grown, on_thresholds

OBJECTIVES = {"binary:logitraw", "rank:ndcg", "rank:map", "rank:pairwise", "reg:linear"}
"""That the plugin takes and leaves scores as they are for."""
FIELDS = {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "leaf", "children"}


def parse_dump(node, names):
    """``model/xgboost+json``: a node as (feature, threshold, missing left, left, right), or the value of a leaf."""
    assert set(node) <= FIELDS
    if "leaf" in node:
        assert isinstance(node["nodeid"], int)
        return np.float32(node["leaf"])
    assert FIELDS - {"leaf", "missing"} <= set(node)
    left, right = node["children"]
    assert (left["nodeid"], right["nodeid"]) == (node["yes"], node["no"])
    assert node.get("missing") in (node["yes"], node["no"])
    feature, threshold = names.index(node["split"]), np.float32(node["split_condition"])
    return feature, threshold, node["missing"] == node["yes"], parse_dump(left, names), parse_dump(right, names)


def parse_raw(tree, k=0):
    """``model/xgboost+json+raw``; a leaf's value is its base weight."""
    left, right = tree["left_children"][k], tree["right_children"][k]
    if left == -1 or right == -1:
        return np.float32(tree["base_weights"][k])
    feature, threshold = tree["split_indices"][k], np.float32(tree["split_conditions"][k])
    return feature, threshold, tree["default_left"][k] == 1, parse_raw(tree, left), parse_raw(tree, right)


def score(trees, row):
    """The plugin's sum in float32."""
    total = np.float32(0)
    for node in trees:
        while isinstance(node, tuple):
            feature, threshold, missing_left, left, right = node
            value = row[feature]
            node = (left if missing_left else right) if np.isnan(value) else left if threshold > value else right
        total += node
    return total


@pytest.fixture(scope="module")
def model():
    trained = grown(data(0.15))
    return replace(trained, trees=join([trained.trees, stump(0.0), stump(-0.5, True)]))


@pytest.mark.parametrize("to", ["xgboost", "opensearch", "xgboost-dump"])
def test_opensearch_scores_as_the_model_does(workplace, model, to):
    export(model, "m.json", to, engine="opensearch-3.8")
    written = json.loads((workplace / "m.json").read_text())
    if to == "xgboost":
        learner = written["learner"]
        assert learner["objective"]["name"] in OBJECTIVES
        assert (learner["feature_names"], learner["feature_types"]) == (list(model.names), ["float"] * len(model.names))
        trees = [parse_raw(tree) for tree in learner["gradient_booster"]["model"]["trees"]]
    else:
        splits = written
        if to == "opensearch":
            assert (written["model"]["name"], written["model"]["model"]["type"]) == ("m", "model/xgboost+json")
            definition = json.loads(written["model"]["model"]["definition"])
            assert set(definition) == {"objective", "splits"}
            assert definition["objective"] in OBJECTIVES
            splits = definition["splits"]
        trees = [parse_dump(tree, list(model.names)) for tree in splits]
    rows = on_thresholds(model.trees, data(0.15).features)
    assert [score(trees, row) for row in rows] == pytest.approx(model.predict(rows), abs=1e-5)


def test_linear_models_of_opensearch(workplace):
    queries = data()
    model = ltr.LeastSquares().fit(queries)
    found = export_to(model, "w.json", "opensearch", engine="opensearch-2.19")
    body = json.loads((workplace / "w.json").read_text())["model"]["model"]
    assert body["type"] == "model/linear"
    assert json.loads(body["definition"]) == dict(zip(queries.names, model.weights, strict=True))
    assert any("does not support missing values" in remark for remark in found.remarks)


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("opensearch-2.19", "opensearch-2.19 takes 0 for a feature that a document lacks"),
        ("opensearch-3.1", "opensearch-3.1 takes 0"),
        ("opensearch-3.5", "opensearch-3.5 sends a document that lacks a feature to the right of every split"),
        ("opensearch-3.8", ""),
        ("opensearch-4", ""),
    ],
)
def test_versions_that_do_not_obey_are_told_and_refused(workplace, model, engine, said):
    assert (said in Engine.of(engine).remark) if said else Engine.of(engine).remark == ""
    if said:
        with pytest.raises(
            DataError, match=rf"m: {engine} does not support missing values, and tree .* has a rule .*\(--complete\)"
        ):
            export(model, "m", "opensearch", engine=engine)
    found = export_to(model, "m", "opensearch", None, True, engine)
    assert any(said in remark for remark in found.remarks)


@pytest.mark.parametrize(
    ("engine", "to", "says"),
    [
        (
            "opensearch-2.19.1",
            "xgboost",
            r"opensearch-2\.19\.1 opens opensearch, xgboost-dump, ranklib, linear, xgboost from 2\.19\.2 on",
        ),
        ("opensearch-3.0", "lightgbm", r"opensearch-3\.0 opens opensearch, xgboost, xgboost-dump, ranklib, linear"),
        ("vespa", "xgboost", "vespa opens xgboost-dump, lightgbm-dump"),
        (
            "opensearch",
            "xgboost",
            r"engine 'opensearch' is unknown; choose from: elasticsearch-VERSION, opensearch-VERSION \(opensearch-2\.19\), solr, vespa",
        ),
        ("elastic-8", "xgboost", "engine 'elastic-8' is unknown; choose from"),
    ],
)
def test_what_an_engine_does_not_open(workplace, model, engine, to, says):
    with pytest.raises(DataError, match=says):
        export(model, "m", to, engine=engine)


def test_an_infinite_condition_is_no_json(workplace, model):
    odd = replace(model, trees=join([model.trees, stump(np.inf)]))
    for complete in (False, True):
        with pytest.raises(DataError, match=r"does not support infinite split conditions, which these trees have: use opensearch$"):
            export(odd, "m", "xgboost", complete, engine="opensearch-3.8")
        export(odd, "m", "opensearch", complete, engine="opensearch-3.8")
        json.loads((workplace / "m").read_text(), parse_constant=pytest.fail)


@pytest.mark.parametrize(
    "name",
    [
        "2",
        "1e5",
        "price-usd",
        "title bm25",
        "größe",
        "a\n",
        "bm25(title",
        "",
        "log(price)",
        "log10(price)",
        "max(price,1)",
        "isNan(a)",
        "true",
    ],
)
def test_names_that_are_expressions_to_vespa_are_refused(workplace, model, name):
    """Its importers write ``if (NAME < 0.5, …)``; ``2 < 0.5`` compares numbers, and ``price-usd < 9`` asks for a difference, and
    ``log(price) < 9`` for the logarithm of ``price``."""
    named = replace(model, names=(name, *model.names[1:]))
    with pytest.raises(DataError, match=r"vespa would read .* as an expression and not as a feature"):
        export(named, "m", "xgboost-dump", engine="vespa")
    export(named, "m", "xgboost-dump")


@pytest.mark.parametrize(
    ("name", "to"),
    [
        *product(
            ["price_usd", "bm25(title)", "fieldMatch(title).completeness", "max", "log_price", "logged(a)", "if", "truex"],
            ["xgboost-dump", "lightgbm-dump"],
        ),
        ("tensor(query(a),x).max", "xgboost-dump"),  # LightGBM takes no commas
    ],
)
def test_names_of_vespas_features_are_written(workplace, model, name, to):
    export(replace(model, names=(name, *(f"{other}_" for other in model.names[1:]))), "m", to, engine="vespa")


def test_no_engine_reads_splits_by_categories(workplace):
    """OpenSearch's parser of XGBoost's models throws on any feature_type but float."""
    queries = make_queries(40, n_features=2, seed=2)
    features = queries.features.copy()
    features[:, 1] = np.arange(len(features)) % 5
    queries = replace(queries, features=features, labels=(features[:, 1] == 2) * 2.0)
    fitted = ltr.LambdaMART(n_trees=3, min_docs_in_leaf=4, categorical=["f2"], feature_share=1.0, stop_on=None).fit(queries)
    with pytest.raises(DataError, match=r"opensearch-3\.8 reads no splits by categories"):
        export(fitted, workplace / "m.json", "xgboost", engine="opensearch-3.8")
    assert not (workplace / "m.json").exists()


def test_what_engines_make_of_a_missing_feature_is_said():
    assert Engine.of("solr").remark == "Solr takes 0 for a feature that a document lacks"
    assert Engine.of("vespa").remark == Engine.of("elasticsearch-8.15").remark == ""


def test_a_version_that_is_named_in_part_may_be_the_latest_of_them():
    Engine.of("opensearch-2.19").require("xgboost")
    Engine.of("opensearch-2").require("xgboost")
    assert Engine.of("opensearch-3").remark == ""
    for earlier in ("opensearch-2.19.1", "opensearch-2.18", "opensearch-1"):
        with pytest.raises(ValueError, match=rf"{earlier} opens .*xgboost from 2\.19\.2 on"):
            Engine.of(earlier).require("xgboost")
