"""What Elasticsearch reads and how it scores: a port of its parser's rules and of its trees, written from their sources' behaviour."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ltr
from flows.cli import main
from ltr.trees.ensemble import join
from tasks.export.formats import export, export_to
from tasks.records import DataError
from tests.ltr.trees.test_formats import stump
from tests.tasks.export.test_formats import data, grown, on_thresholds

SPLIT = {"node_index", "split_feature", "threshold", "decision_type", "default_left", "left_child", "right_child", "number_samples"}
LEAF = {"node_index", "leaf_value", "number_samples"}


def extractors(names, **more):
    return [{"query_extractor": {"feature_name": name, "query": {"match": {"title": "{{query}}"}}, **more}} for name in names]


@pytest.fixture(scope="module")
def model():
    trained = grown(data(0.15))
    odd = [stump(0.0), stump(-0.5, True), stump(np.inf), stump(-np.inf, True), stump(1e-45), stump(3.4028235e38), stump(16777216.0)]
    return replace(trained, trees=join([trained.trees, *odd]))


@pytest.fixture
def file(workplace, model):
    path = workplace / "extractors.json"
    path.write_text(json.dumps(extractors(reversed(model.names))))
    return path


def parsed(body):
    """The trees of a body, refused where Elasticsearch does: unknown fields, nodes out of their places, cycles, other numbers of features."""
    assert set(body) == {"description", "model_type", "inference_config", "definition"}
    assert body["model_type"] == "tree_ensemble"
    assert set(body["definition"]) == {"preprocessors", "trained_model"}
    (ensemble,) = body["definition"]["trained_model"].values()
    assert set(ensemble) == {"target_type", "feature_names", "trained_models", "aggregate_output"}
    assert ensemble["target_type"] == "regression"
    assert len(ensemble["aggregate_output"]["weighted_sum"]["weights"]) == len(ensemble["trained_models"])
    names = [one["query_extractor"]["feature_name"] for one in body["inference_config"]["learning_to_rank"]["feature_extractors"]]
    assert names == ensemble["feature_names"]
    trees = []
    for one in ensemble["trained_models"]:
        (tree,) = one.values()
        assert tree["feature_names"] == names
        nodes = tree["tree_structure"]
        seen = [0]
        for place in seen:
            node = nodes[place]
            assert node["node_index"] == place
            assert set(node) == (LEAF if "leaf_value" in node else SPLIT)
            if "leaf_value" not in node:
                assert 0 <= node["split_feature"] < len(names)
                seen += [node["left_child"], node["right_child"]]
        assert sorted(seen) == list(range(len(nodes))), "every node is reached once"
        trees.append(nodes)
    return trees, ensemble["aggregate_output"]["weighted_sum"]["weights"]


def score(trees, weights, row):
    """The score of one document; `row` holds floats of Lucene's, NaN where a query did not match."""
    total = 0.0
    for nodes, weight in zip(trees, weights, strict=True):
        node = nodes[0]
        while "leaf_value" not in node:
            value = float(row[node["split_feature"]])
            if math.isnan(value) or math.isinf(value):
                left = node["default_left"]
            else:
                assert node["decision_type"] == "lte"
                left = value <= node["threshold"]
            node = nodes[node["left_child" if left else "right_child"]]
        total += weight * node["leaf_value"]
    return total


def test_elasticsearch_scores_as_the_model_does(file, model):
    """On thresholds and beside them, missing values, the largest and the smallest numbers."""
    export(model, "m.json", "elastic", engine="elasticsearch-8.15", extractors=file)
    trees, weights = parsed(json.loads(Path("m.json").read_text()))
    rows = on_thresholds(model.trees, data(0.15).features)
    hostile = np.array([0.0, -0.0, 1e-45, -1e-45, 3.4028235e38, -3.4028235e38, np.nan, 16777216.0, 16777217.0], np.float32)
    rows = np.concatenate((rows, np.random.default_rng(0).choice(hostile, (200, rows.shape[1]))))
    assert [score(trees, weights, row) for row in rows] == pytest.approx(model.predict(rows), abs=1e-12)
    for nodes, k in zip(trees, range(model.trees.n_trees), strict=True):
        sizes = [node["number_samples"] for node in nodes]
        assert [size for node, size in zip(nodes, sizes, strict=True) if "leaf_value" in node] == (
            model.trees.between(k, k + 1).documents.tolist()
        )
        for node in nodes:
            if "leaf_value" not in node:
                assert node["number_samples"] == sizes[node["left_child"]] + sizes[node["right_child"]]
    alike = np.array([np.float32(score(trees, weights, row)) for row in rows])
    np.testing.assert_array_equal(alike, model.predict(rows).astype(np.float32))


def test_a_tree_of_one_leaf_and_one_tree(file, model):
    alone = replace(model, trees=model.trees.first(1))
    for kept in (alone, replace(grown(data(), n_leaves=2, n_trees=1), names=model.names)):
        export(kept, "m.json", "elastic", extractors=file)
        trees, weights = parsed(json.loads(Path("m.json").read_text()))
        rows = data(0.15).features
        assert [score(trees, weights, row) for row in rows] == pytest.approx(kept.predict(rows))


def test_what_is_said_of_it(file, model, capsys):
    found = export_to(model, "m.json", "elastic", extractors=file)
    assert found.about.startswith("PUT _ml/trained_models/NAME")
    assert any("lacks the feature where it has none; scores are rounded to float32" in remark for remark in found.remarks)
    assert not any("leaves" in remark for remark in found.remarks), "they are float64"
    body = json.loads(Path("m.json").read_text())
    assert body["inference_config"]["learning_to_rank"]["feature_extractors"] == extractors(model.names)
    ltr.save(model, "model")
    asked = ["export", "--model", "model", "--to", "elastic", "-o", "again.json"]
    assert main([*asked, "--extractors", "extractors.json", "--engine", "elasticsearch-9"]) == 0
    assert json.loads(Path("again.json").read_text())["definition"] == body["definition"]
    assert main(asked) == 1
    assert "elastic: Elasticsearch needs a query for each feature: pass --extractors FILE, JSON: [{" in capsys.readouterr().err
    assert main([*asked, "--extractors", "extractors.json", "--engine", "elasticsearch-8.14"]) == 1
    assert "elasticsearch-8.14 opens none of these formats, elastic from 8.15 on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ({"feature_extractors": []}, "it must be a list of extractors"),
        ([{"match": {}}], r"element 0: .*: an extractor is one of"),
        ([{"query_extractor": {"feature_name": "f1"}}], r"element 0: .*: an extractor is one of"),
        ([{**one, "weight": 2} for one in extractors(["f1", "f2", "f3", "f4"])], r"element 0: .*: an extractor is one of"),
        (extractors(["f1", "f1"]), "element 1: feature 'f1' has an extractor above; each feature must have one"),
        (extractors(["f9"]), "element 0: the model has no feature 'f9'; it has: f1, f2, f3, f4"),
        (extractors(["f2", "f3", "f4"]), r"feature 'f1' has no extractor \(1 of 4 features have none\)"),
    ],
)
def test_extractors_are_those_of_the_features(file, model, written, says):
    file.write_text(json.dumps(written))
    with pytest.raises(DataError, match=says):
        export(model, "m.json", "elastic", extractors=file)
    assert not Path("m.json").exists()


def test_extractors_of_another_format_and_rankers_without_trees(file, model):
    with pytest.raises(DataError, match=r"extractors\.json: extractors are of the format elastic, and this is xgboost"):
        export(model, "m.json", "xgboost", extractors=file)
    with pytest.raises(DataError, match="elastic can express trees, but not this ranker"):
        export(ltr.LeastSquares().fit(data()), "m.json", "elastic", extractors=file)
