"""Every format by its own reader, on thresholds and with missing values; ensembles of LightGBM and XGBoost as rankers; what is refused."""

import importlib
import json
from dataclasses import asdict, replace

import lightgbm
import numpy as np
import pytest
import xgboost

import ltr
from ltr.trees.ensemble import Trees, join
from tasks.export.formats import FORMATS, export, export_to, verify
from tasks.export.readers import READERS, read_model
from tasks.export.ubjson import XGBOOST_ARRAYS, read_ubjson
from tasks.export.weights import weights_of
from tasks.records import DataError
from tasks.tracking.lookup import find_model
from tests.conftest import make_queries
from tests.ltr.trees.test_formats import stump

TREE_FORMATS = ("lightgbm", "xgboost", "onnx")
TOLERANCE = {"lightgbm": 0.0, "xgboost": 1e-5, "onnx": 1e-5}
LIGHTGBM_ZERO = np.float32(1e-35)
"""Sizes up to this are zero to LightGBM."""


def data(missing=0.0, seed=4, n_features=4) -> ltr.Queries:
    """Whole tenths, so that values meet thresholds and each other; some of them missing."""
    queries = make_queries(80, seed=seed, largest=20, n_features=n_features)
    features = np.round(queries.features, 1)
    features[np.random.default_rng(seed).random(features.shape) < missing] = np.nan
    return replace(queries, features=features)


def grown(queries, **parameters) -> ltr.LambdaMART:
    return ltr.LambdaMART(**{"n_trees": 12, "n_leaves": 8, "min_docs_in_leaf": 4, "stop_on": None, **parameters}).fit(queries)


def on_thresholds(trees, features):
    """Rows with a feature on each threshold, and next to it on both sides."""
    edges = trees.threshold
    with np.errstate(over="ignore"):
        beside = [np.nextafter(edges, np.float32(to)) for to in (-np.inf, np.inf)]
    rows = features[np.arange(3 * len(edges)) % len(features)].copy()
    rows[np.arange(len(rows)), np.tile(trees.feature, 3)] = np.concatenate((edges, *beside))
    return np.concatenate((features, rows[np.isfinite(np.where(np.isnan(rows), 0, rows)).all(axis=1)]))


@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize("to", TREE_FORMATS)
def test_trees_score_alike_in_the_formats_own_reader(workplace, to, missing):
    """Splits at 0 and −0, between the smallest numbers, and of all values from the missing ones are among the nodes."""
    queries = data(missing)
    odd = [
        stump(0.0),
        stump(-0.0, True),
        stump(1e-35 if to == "lightgbm" else 1e-45),
        stump(np.inf),
        stump(np.inf, True),
        stump(3.4028235e38),
        stump(-1e-30),
    ]
    model = grown(queries)
    model = replace(model, trees=join([model.trees, *odd, model.trees.first(1)]))
    features = on_thresholds(model.trees, queries.features)
    if to == "lightgbm":
        features[np.abs(features) <= LIGHTGBM_ZERO] = 0.0
    export(model, "m.json", to)
    agreement = verify(model, "m.json", to, features)
    assert agreement.largest_difference <= TOLERANCE[to]
    assert agreement.documents == len(features)
    assert np.isnan(features).any() == (missing > 0)


@pytest.mark.parametrize("to", TREE_FORMATS)
def test_an_average_of_trees_is_one_ensemble(workplace, to):
    queries = data()
    of = [
        ltr.LambdaMART(n_trees=6, n_leaves=4, min_docs_in_leaf=4),
        ltr.LambdaMART(n_trees=3, objective="linear_ndcg", min_docs_in_leaf=4),
    ]
    average = ltr.Average(of, copies=2).fit(queries, queries)
    assert average.export_form == "trees"
    done = export_to(average, "m.json", to, queries)
    assert done.trees == sum(member.trees.n_trees for member in average.members)
    assert done.verified.largest_difference <= max(TOLERANCE[to], 1e-14)
    assert not done.verified.reordered
    for told in ({"selection": 5}, {"weights": [1, 3]}, {"weights": [0, 1]}):
        weighed = ltr.Average(of, copies=2, **told).fit(queries, queries)
        done = export_to(weighed, "w.json", to, queries)
        assert done.trees == sum(
            m.trees.n_trees for m, scale in zip(weighed.members, weighed.scales, strict=True) if scale < np.inf
        )
        assert done.verified.largest_difference <= max(TOLERANCE[to], 1e-14)
    based = ltr.Average([replace(of[0], base="f2"), of[1]]).fit(queries, queries)
    assert based.export_form is None


@pytest.mark.parametrize("to", ["lightgbm", "xgboost"])
def test_names_and_shapley_values_come_along(workplace, to):
    queries = replace(data(0.1), names=("alpha", "b", "ß", "d.4"))
    model = grown(queries)
    export(model, "m.json", to)
    booster = lightgbm.Booster(model_file="m.json") if to == "lightgbm" else xgboost.Booster(model_file="m.json")
    assert tuple(booster.feature_name() if to == "lightgbm" else booster.feature_names) == queries.names
    again = find_model("m.json", queries.names)
    assert again.names == read_model("m.json").names == queries.names
    assert again.explain(queries.features) == pytest.approx(model.explain(queries.features), abs=1e-6)
    if to == "lightgbm":
        theirs = booster.predict(queries.features, pred_contrib=True)
    else:
        theirs = booster.predict(xgboost.DMatrix(queries.features, feature_names=list(queries.names)), pred_contribs=True)
    assert theirs == pytest.approx(model.explain(queries.features), abs=1e-5)


def test_xgboosts_binary_form_is_read_and_written_as_xgboost_does(workplace):
    queries = replace(data(0.1), names=("alpha", "b", "ß", "d.4"))
    model = grown(queries)
    for path, to in (("m.ubj", "xgboost-ubj"), ("m.json", "xgboost")):
        export(model, path, to)
        assert verify(model, path, to, queries.features, queries.offsets).reordered == 0
    in_float32 = json.loads((workplace / "m.json").read_text(), parse_float=lambda text: float(np.float32(text)))
    assert read_ubjson((workplace / "m.ubj").read_bytes(), XGBOOST_ARRAYS) == in_float32
    binary, text = xgboost.Booster(model_file="m.ubj"), xgboost.Booster(model_file="m.json")
    matrix = xgboost.DMatrix(queries.features, feature_names=list(queries.names))
    assert np.array_equal(binary.predict(matrix), text.predict(matrix))
    assert binary.save_raw("ubj") == text.save_raw("ubj")
    again = find_model("m.ubj", queries.names)
    assert again.names == queries.names
    assert again.digest == find_model("m.json", queries.names).digest


@pytest.mark.parametrize(("to", "ending"), [("xgboost", ".json"), ("xgboost-ubj", ".ubj")])
def test_a_name_that_leaves_xgboost_guessing_is_told_in_our_words(workplace, recwarn, to, ending):
    queries = data()
    model = grown(queries, n_trees=2)
    said = f"XGBoost tells its formats apart by the end of a file's name: rename it to m{ending}"
    for name in ("m", "m.txt", "m.ubj" if ending == ".json" else "m.json"):
        done = export_to(model, name, to, queries)
        assert said in done.remarks
        assert done.verified.documents == len(queries.features)
    assert said not in export_to(model, f"m{ending}", to, queries).remarks
    assert not [warning for warning in recwarn if "Unknown file format" in str(warning.message)]


def test_linear_rankers(workplace):
    queries = data()
    for ranker in (ltr.LeastSquares(), ltr.AdaRank(rounds=5)):
        model = ranker.fit(queries)
        weights = np.array([weights_of(model)[name] for name in queries.names])
        assert queries.features.astype(np.float64) @ weights == pytest.approx(model.predict(queries.features))
        export(model, "w.json", "linear")
        assert json.loads((workplace / "w.json").read_text()) == dict(zip(queries.names, weights, strict=True))
        assert np.array_equal(find_model("w.json", queries.names).predict(queries.features), model.predict(queries.features))
        export(model, "solr.json", "solr")
        solr = json.loads((workplace / "solr.json").read_text())
        assert (solr["class"], solr["name"]) == ("org.apache.solr.ltr.model.LinearModel", "solr")
        assert solr["params"]["weights"] == weights_of(model)
        export(model, "m.onnx", "onnx")
        agreement = verify(model, "m.onnx", "onnx", queries.features, queries.offsets)
        assert agreement.largest_difference < 1e-12
        assert not agreement.reordered


def test_nets(workplace):
    """Missing values are the mean in the graph as here; a linear net's weights rank as the net does, its constant aside."""
    complete, broken = data(), data(0.15)
    for hidden in (0, 5):
        model = ltr.LambdaRank(hidden=hidden, epochs=3).fit(broken)
        export(model, "m.onnx", "onnx")
        assert verify(model, "m.onnx", "onnx", broken.features).largest_difference < 1e-5
    linear = ltr.LambdaRank(epochs=3).fit(complete)
    found = export_to(linear, "w.json", "linear")
    assert any("without a constant" in remark for remark in found.remarks)
    differences = find_model("w.json", complete.names).predict(complete.features) - linear.predict(complete.features)
    assert np.ptp(differences) < 1e-5
    with pytest.raises(
        DataError, match=r"m: linear can express linear, linear net, but not this ranker \(lambdarank: two-layer net\); .*: onnx"
    ):
        export(model, "m", "linear")


def test_a_combination_is_linear(workplace):
    rng = np.random.default_rng(0)
    queries = data(n_features=2)
    model = ltr.Combination().fit(replace(queries, features=rng.normal(size=(queries.n_documents, 2)).astype(np.float32)))
    assert list(weights_of(model).values()) == [1 - model.alpha, model.alpha]


def test_a_base_is_said_by_onnx_only(workplace):
    queries = data()
    model = grown(queries, base="f2")
    export(model, "m.onnx", "onnx")
    assert verify(model, "m.onnx", "onnx", queries.features).largest_difference < 1e-5
    for to in ("lightgbm", "xgboost", "ranklib", "solr"):
        with pytest.raises(DataError, match=rf"m: the scores of base 'f2' are added to the trees', which {to} cannot say"):
            export(model, "m", to)
    assert not list(workplace.glob("m"))


def test_missing_values_are_refused_where_they_cannot_be_said(workplace):
    broken, complete = grown(data(0.2)), grown(data())
    for to in ("ranklib", "solr"):
        with pytest.raises(
            DataError,
            match=rf"{to} does not support missing values, and tree \d+ has a rule for those of 'f\d'.*if no feature will ever be missing \(--complete\)",
        ):
            export(broken, "m", to)
        export(broken, "m", to, complete=True)
        export(complete, "m", to)
    assert [path.name for path in workplace.iterdir()] == ["m"]


def test_a_sample_with_missing_values_is_refused_where_the_format_knows_none(workplace):
    """A net takes the mean for them, and Solr 0: with features far from 0 other rankings."""
    queries = data(0.2)
    net = ltr.LambdaRank(epochs=2).fit(queries)
    row, column = np.argwhere(np.isnan(queries.features))[0]
    for to in ("solr", "linear", "opensearch"):
        with pytest.raises(
            DataError, match=rf"m: row {row + 1} of the data has no f{column + 1}, and {to} does not support missing values"
        ):
            export_to(net, "m", to, queries)
    assert not list(workplace.iterdir())
    assert any("if no feature is missing" in remark for remark in export_to(net, "m", "linear").remarks)
    export_to(net, "m", "solr", queries, complete=True)
    export_to(net, "n", "solr", data())


def test_bad_input_leaves_nothing_behind(workplace, monkeypatch):
    model = grown(data(), n_trees=1)
    for path, to, rule in (
        (
            "m",
            "pmml",
            "unknown format 'pmml'; choose from: lightgbm, xgboost, xgboost-ubj, xgboost-dump, lightgbm-dump, opensearch, elastic, ranklib, solr, linear, onnx",
        ),
        (
            "m",
            "linear",
            r"linear can express linear, linear net, but not this ranker \(lambdamart: trees\); choose from: li",
        ),
        ("no/m", "xgboost", "no such folder no"),
    ):
        with pytest.raises(DataError, match=f"{path}: {rule}"):
            export(model, path, to)
    with pytest.raises(DataError, match="m: this model is not fitted"):
        export(ltr.LambdaMART(), "m", "xgboost")
    (workplace / "cut").write_text("tree\nversion=v4\n")
    for to in TREE_FORMATS:
        with pytest.raises(DataError, match=f"cut: {to}'s reader does not score it: "):
            verify(model, "cut", to, data().features)
    (workplace / "cut").unlink()
    with pytest.raises(DataError, match=r"m: ranklib is read by .*no reader"):
        verify(model, "m", "ranklib", data().features)

    def absent(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(DataError, match=r"the package onnx is not installed: pip install lambdaflow\[export\]"):
        export(model, "m", "onnx")
    assert not list(workplace.iterdir())


def test_trees_too_deep_for_nested_nodes_are_refused_by_name(workplace):
    n = 1500
    chain = Trees(
        feature=np.zeros(n, np.int32), threshold=np.arange(n, dtype=np.float32), missing_left=np.zeros(n, np.bool_),
        left=~np.arange(n, dtype=np.int32), right=np.append(np.arange(1, n), ~n).astype(np.int32), value=np.arange(n + 1.0),
        documents=np.ones(n + 1, np.int64), node_starts=np.array([0, n]), leaf_starts=np.array([0, n + 1]), gain=np.ones(n),
    )  # fmt: skip
    model = replace(grown(data(), n_trees=1), trees=chain)
    for to in ("xgboost-dump", "lightgbm-dump", "opensearch", "solr"):
        with pytest.raises(DataError, match=f"m: {to} writes a node within its parent, and a tree of this model is too deep"):
            export(model, "m", to, complete=True)
    export(model, "m", "lightgbm")
    assert verify(model, "m", "lightgbm", data().features).largest_difference == 0


def test_what_the_command_prints(workplace):
    queries = data()
    model = grown(queries)
    found = export_to(model, "m.xml", "ranklib", queries)
    assert found.verified is None
    assert found.remarks[1] == "features are numbered: 1 = 'f1' … 4 = 'f4'"
    assert "not verified" in found.remarks[-1]
    found = export_to(model, "m.json", "xgboost", queries)
    assert (found.format, found.form, found.features, found.trees) == ("xgboost", "trees", 4, 12)
    assert found.verified.documents == queries.n_documents
    assert found.verified.largest_difference < 1e-5
    assert found.verified.reordered == 0
    assert found.bytes == (workplace / "m.json").stat().st_size
    json.dumps(asdict(found))


def test_a_file_of_another_model_does_not_agree(workplace):
    queries = data()
    export(grown(queries, n_trees=3), "m.txt", "lightgbm")
    agreement = verify(grown(queries), "m.txt", "lightgbm", queries.features, queries.offsets)
    assert agreement.largest_difference > 0.01
    assert 0 < agreement.reordered <= queries.n_queries
    assert set(READERS) == {"lightgbm", "xgboost"}


def test_float32_leaves_are_told_of_trees_of_categories_too(workplace):
    queries = data()
    features = queries.features.copy()
    features[:, 0] = np.arange(len(features)) % 4
    queries = replace(queries, features=features, labels=features[:, 0] % 3)
    model = ltr.LambdaMART(n_trees=2, n_leaves=4, min_docs_in_leaf=4, categorical=["f1"], feature_share=1, stop_on=None).fit(
        queries
    )
    assert len(model.trees.codes)
    told = "keeps leaves and sums them in float32"
    assert [told in " ".join(export_to(model, "m", to).remarks) for to in ("xgboost", "lightgbm")] == [True, False]


@pytest.mark.parametrize("to", [name for name, format in FORMATS.items() if "trees" in format.writers])
def test_a_model_without_trees_is_written_where_its_reader_takes_it(workplace, to):
    grew = grown(data(), n_trees=1)
    none = replace(grew, trees=grew.trees.first(0))
    if to in ("opensearch", "xgboost-dump", "lightgbm-dump", "elastic", "onnx"):
        with pytest.raises(DataError, match=r"m: .*the model has no trees .*does not support an empty ensemble"):
            export(none, "m", to)
        assert not (workplace / "m").exists()
    else:
        assert any("all documents score alike" in remark for remark in export_to(none, "m", to).remarks)


@pytest.mark.parametrize("to", [name for name, format in FORMATS.items() if "trees" in format.writers and name != "elastic"])
def test_a_leaf_or_weight_beyond_float32_is_refused_where_it_would_be_infinite(workplace, to):
    queries = data()
    small, linear = grown(queries, n_trees=2), ltr.LeastSquares().fit(queries)
    huge = replace(small, trees=replace(small.trees, value=small.trees.value * 1e300))
    if to.startswith("lightgbm"):
        export(huge, "m", to)
    else:
        with pytest.raises(
            DataError, match=rf"m: a leaf of the model is .*e\+29\d, and {to} keeps them in float32, up to 3\.40282e\+38"
        ):
            export(huge, "m", to)
    if to in ("solr", "opensearch"):
        with pytest.raises(DataError, match=rf"m: a weight of the model is .*, and {to} keeps them in float32"):
            export(replace(linear, weights=linear.weights * 1e300), "m", to)


def test_what_is_said_of_linear_rankers_is_true_of_the_format(workplace):
    queries = data()
    plain, net = ltr.LeastSquares().fit(queries), ltr.LambdaRank(epochs=2).fit(queries)
    for to, narrow in (("solr", True), ("opensearch", True), ("linear", False)):
        for model in (plain, net):
            said = " ".join(export_to(model, "m", to).remarks)
            assert ("keeps weights and sums in float32" in said) == narrow
            assert ("without a constant" in said) == (model is net)
            assert "versions of OpenSearch" not in said
    assert "versions of OpenSearch" in " ".join(export_to(grown(queries, n_trees=2), "m", "opensearch").remarks)


def test_a_score_that_the_file_lacks_is_no_agreement(workplace, monkeypatch):
    queries = data()
    model = ltr.LeastSquares().fit(queries)
    scores = model.predict(queries.features)
    scores[3] = np.nan
    monkeypatch.setitem(FORMATS, "linear", replace(FORMATS["linear"], scores=lambda *_: scores))
    assert verify(model, "m", "linear", queries.features).largest_difference == np.inf
