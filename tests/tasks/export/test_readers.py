"""Models of LightGBM and XGBoost as rankers: their scores are the tools' own."""

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import lightgbm
import numpy as np
import pandas
import polars as pl
import pytest
import xgboost

import ltr
from ltr.trees.ensemble import join
from ltr.trees.formats import lightgbm_text
from tasks.config.data_section import Data
from tasks.export.formats import export, export_to, verify
from tasks.export.predict import predict
from tasks.export.readers import read_model
from tasks.records import DataError
from tasks.tracking.lookup import find_columns, find_model
from tests.ltr.trees.test_formats import LIGHTGBM, sized, stump
from tests.mutations import check_sentence, mutations
from tests.tasks.export.test_formats import data, grown, on_thresholds

TREE_FORMATS = ("lightgbm", "xgboost", "onnx")
TOLERANCE = {"lightgbm": 0.0, "xgboost": 1e-5, "onnx": 1e-5}
LIGHTGBM_ZERO = np.float32(1e-35)
"""Sizes up to this are zero to LightGBM."""


def trained_lightgbm(queries, **parameters):
    given = {"objective": "lambdarank", "num_leaves": 9, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1, **parameters}
    sizes = np.diff(queries.offsets)
    return lightgbm.train(
        given, lightgbm.Dataset(queries.features, queries.labels, group=sizes, feature_name=list(queries.names)), 15
    )


def trained_xgboost(queries, **parameters):
    query = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))
    matrix = xgboost.DMatrix(queries.features, queries.labels, qid=query, feature_names=list(queries.names))
    return xgboost.train({"objective": "rank:ndcg", "max_depth": 4, "nthread": 1, **parameters}, matrix, 15)


CATEGORIES = {
    "whole numbers": [5, 1, 3, 10], "text": ["zeta", "mid", "10", "a b"], "fractions": [0.5, 2.0, 1.5, 3.0], "two": [7, 6],
}  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "kind"),
    [(tool, kind) for tool in ("lightgbm", "xgboost") for kind in CATEGORIES if (tool, kind) != ("xgboost", "fractions")],
)
def test_categories_of_a_data_frame_are_read_by_their_names(workplace, tool, kind):
    """The file lists them; a table then holds them as themselves, in any form that a file of numbers or text has, and any order."""
    rng, own = np.random.default_rng(1), CATEGORIES[kind]
    frame = pandas.DataFrame(rng.normal(size=(400, 2)), columns=["a", "b"]).astype(np.float32)
    site, color = rng.integers(0, len(own), 400), rng.integers(0, 3, 400)
    frame.insert(1, "site", pandas.Categorical([own[k] for k in site], categories=own))
    frame["color"] = pandas.Categorical(np.array(["red", "green", "blue"])[color])
    frame.loc[::17, "site"] = None
    labels, query = np.clip(frame.a + 2 * (site % 2) + (color == 1), 0, 3).round().to_numpy(), np.repeat(np.arange(40), 10)
    if tool == "lightgbm":
        given = {"objective": "lambdarank", "num_leaves": 8, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1}
        given |= {"min_data_per_group": 5, "cat_smooth": 1}
        booster = lightgbm.train(given, lightgbm.Dataset(frame, labels, group=[10] * 40), 10)
        theirs = booster.predict(frame, raw_score=True)
        paths = ["m.txt"]
    else:
        matrix = xgboost.DMatrix(frame, labels, qid=query, enable_categorical=True)
        booster = xgboost.train({"objective": "rank:ndcg", "max_depth": 4, "nthread": 1}, matrix, 10)
        theirs = booster.predict(matrix, output_margin=True)
        paths = ["m.json", "m.ubj"]
    table = frame.astype({"site": object, "color": object}).assign(query=query)[["color", "query", "b", "a", "site"]]
    table.to_csv("d.csv", index=False)
    pl.DataFrame({name: table[name].tolist() for name in table}, strict=False).write_parquet("d.parquet")
    for path in paths:
        booster.save_model(path)
        model, columns = find_model(path), find_columns(path)
        assert (model.trees.n_codes > 0).any()
        assert columns.categories.keys() == {"site", "color"}
        for file in ("d.csv", "d.parquet"):
            written = Data(files=[file], **asdict(columns))
            predict(model, Path(file), Path("s.parquet"), written)
            assert np.abs(pl.read_parquet("s.parquet")["score"].to_numpy() - theirs).max() <= TOLERANCE[tool]


def test_letters_that_xgboost_loses_are_no_category(workplace):
    own = ["ä b", "c"]
    frame = pandas.DataFrame({"a": np.arange(60.0), "site": pandas.Categorical([own[k % 2] for k in range(60)])})
    matrix = xgboost.DMatrix(frame, np.arange(60) % 3, enable_categorical=True)
    xgboost.train({"objective": "rank:ndcg", "nthread": 1}, matrix, 3).save_model("m.json")
    assert find_columns("m.json").categories == {}


def test_an_ordered_column_of_pandas_is_not_taken_for_one_of_whole_numbers(workplace):
    """LightGBM describes it as a range; the other one, named to it as categories, as a set, and lists the categories of the first."""
    rng = np.random.default_rng(0)
    stars, kind = rng.integers(1, 6, 400), rng.integers(1, 4, 400)
    frame = pandas.DataFrame({"stars": pandas.Categorical(stars, categories=[1, 2, 3, 4, 5], ordered=True), "kind": kind})
    given = {"objective": "lambdarank", "min_data_in_leaf": 5, "min_data_per_group": 5, "verbose": -1, "num_threads": 1}
    labels = (kind == 2) * 2 + (stars > 3)
    data = lightgbm.Dataset(frame, labels, group=[20] * 20, categorical_feature=["kind"])
    lightgbm.train(given, data, 3).save_model("m.txt")
    with pytest.raises(DataError, match=r"lists \[1, 2, 3, 4, 5\], and whether these are the categories of kind is unknown"):
        find_columns("m.txt")


def test_categories_of_many_digits_are_told_apart(workplace):
    own = [12345.67, 12345.71, 0.1, 2.0]
    frame = pandas.DataFrame({"a": np.arange(80.0) % 7, "site": pandas.Categorical([own[k % 4] for k in range(80)])})
    given = {"objective": "lambdarank", "min_data_in_leaf": 2, "min_data_per_group": 2, "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(given, lightgbm.Dataset(frame, np.arange(80) % 4, group=[10] * 8), 3)
    booster.save_model("m.txt")
    columns = find_columns("m.txt")
    assert columns.categories["site"] == ("0.1", "2", "12345.67", "12345.71")
    frame.astype({"site": float}).assign(query=1).to_csv("d.csv", index=False)
    predict(find_model("m.txt"), Path("d.csv"), Path("s.parquet"), Data(files=["d.csv"], **asdict(columns)))
    theirs = booster.predict(frame, raw_score=True)
    assert np.abs(pl.read_parquet("s.parquet")["score"].to_numpy() - theirs).max() <= TOLERANCE["lightgbm"]


def test_categories_that_are_nobodys_are_refused(workplace):
    frame = pandas.DataFrame({"a": np.arange(60.0), "site": pandas.Categorical(np.arange(60) % 3)})
    given = {"objective": "lambdarank", "min_data_in_leaf": 2, "verbose": -1, "num_threads": 1}
    lightgbm.train(given, lightgbm.Dataset(frame, np.arange(60) % 4, group=[10] * 6), 3).save_model("m.txt")
    text = Path("m.txt").read_text()
    for before, after, says in (
        (
            "[[0, 1, 2]]",
            "[[0, 1, 2], [5]]",
            "lists the categories of 2 columns, and the features that have some are site: which belong to which is unknown",
        ),
        ("[[0, 1, 2]]", "[[0, 1]]", r"lists \[0, 1\], and whether these are the categories of site is unknown"),
        ("[[0, 1, 2]]", "[[0, 1, [2]]]", r"\[2\] is not a category: a text, a number, true or false"),
        ("[[0, 1, 2]]", "[[0, 1", "pandas_categorical is not a list of lists of categories"),
    ):
        assert before in text
        Path("w.txt").write_text(text.replace(f"pandas_categorical:{before}", f"pandas_categorical:{after}"))
        with pytest.raises(DataError, match=rf"w\.txt: .*{says}"):
            find_columns("w.txt")
    Path("n.txt").write_text(text.replace("pandas_categorical:[[0, 1, 2]]", "pandas_categorical:null"))
    assert find_columns("n.txt").categories == {}
    Path("d.csv").write_text("query,a,site\n1,2,x\n")
    with pytest.raises(DataError, match=r"is unknown; data\.categories: \{site: \[\.\.\.\]\} lists them in its order"):
        predict(find_model("n.txt"), Path("d.csv"), Path("s.csv"), Data(files=["d.csv"], categorical=["site"]))


def test_a_constant_column_of_categories_has_its_list_too(workplace):
    one, site = pandas.Categorical(["x"] * 60), pandas.Categorical(np.arange(60) % 3 + 5)
    frame = pandas.DataFrame({"one": one, "a": np.arange(60.0), "site": site})
    given = {"objective": "lambdarank", "min_data_in_leaf": 2, "verbose": -1, "num_threads": 1}
    lightgbm.train(given, lightgbm.Dataset(frame, np.arange(60) % 4, group=[10] * 6), 3).save_model("m.txt")
    assert find_columns("m.txt").categories == {"one": ("x",), "site": ("5", "6", "7")}


def test_numbers_that_may_be_of_an_ordered_column_are_refused(workplace):
    """LightGBM takes an ordered column of categories for numbers, and lists its categories all the same; a column of whole numbers that was named
    to it has none."""
    rng = np.random.default_rng(1)
    size = pandas.Categorical(rng.choice([0, 1, 2], 300), categories=[2, 0, 1], ordered=True)
    frame = pandas.DataFrame({"size": size, "site": rng.integers(0, 3, 300), "a": rng.normal(size=300)})
    ranker = lightgbm.LGBMRanker(n_estimators=3, verbose=-1, n_jobs=1)
    ranker.fit(frame, rng.integers(0, 3, 300), group=[10] * 30, categorical_feature=["site"])
    ranker.booster_.save_model("m.txt")
    with pytest.raises(DataError, match=r"lists \[2, 0, 1\], and whether these are the categories of site is unknown"):
        find_columns("m.txt")


@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize(
    "parameters", [{}, {"objective": "regression"}, {"objective": "binary", "boosting": "dart"}, {"num_leaves": 90}]
)
def test_lightgbm_is_read(workplace, parameters, missing):
    """To the bit, on thresholds too; missing values may come where there were none in training."""
    queries = data(missing)
    if parameters.get("objective") == "binary":
        queries = replace(queries, labels=(queries.labels > 1).astype(float))
    booster = trained_lightgbm(queries, **parameters)
    booster.save_model("theirs.txt")
    model = find_model("theirs.txt", queries.names)
    features = on_thresholds(model.trees, np.concatenate((queries.features, data(0.3, seed=5).features)))
    features[np.abs(features) <= LIGHTGBM_ZERO] = 0.0
    assert np.array_equal(model.predict(features), booster.predict(features, raw_score=True))
    assert not verify(model, "theirs.txt", "lightgbm", features).reordered


@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"objective": "reg:squarederror", "base_score": 1.5},
        {"booster": "dart", "rate_drop": 0.5},
        {"gamma": 1.0, "max_depth": 8},
    ],
)
def test_xgboost_is_read(workplace, parameters, missing):
    """With its base score, dart's weights and what it pruned."""
    queries = data(missing)
    booster = trained_xgboost(queries, **parameters)
    booster.save_model("theirs.json")
    model = find_model("theirs.json", queries.names)
    features = on_thresholds(model.trees, np.concatenate((queries.features, data(0.3, seed=5).features)))
    theirs = booster.predict(xgboost.DMatrix(features, feature_names=list(queries.names)), output_margin=True)
    assert np.abs(model.predict(features) - theirs).max() < 1e-5
    explained = model.explain(queries.features)
    assert explained.sum(axis=1) == pytest.approx(model.predict(queries.features))


def test_rounds_after_the_best_one_are_told(workplace):
    """XGBRanker predicts by the best round where training stopped early, the booster by all."""
    booster = trained_xgboost(data(0.0))
    booster.set_attr(best_iteration="2")
    booster.save_model("theirs.json")
    rounds = booster.num_boosted_rounds()
    model = find_model("theirs.json", data(0.0).names)
    assert f"its best round was 3 of {rounds}; its scores are those of all rounds" in model.remarks[1]
    booster.set_attr(best_iteration=str(rounds - 1))
    booster.save_model("theirs.json")
    assert len(find_model("theirs.json", data(0.0).names).remarks) == 1


def test_a_forest_of_xgboost_1_has_as_many_rounds_as_it_trained(workplace):
    """It writes no iteration_indptr, and the last round for the best one where nothing stopped early."""
    booster = trained_xgboost(data(0.0), num_parallel_tree=3)
    rounds = booster.num_boosted_rounds()
    for best, told in ((rounds, False), (2, True)):
        booster.set_attr(best_iteration=str(best - 1))
        booster.save_model("theirs.json")
        document = json.loads((workplace / "theirs.json").read_text())
        del document["learner"]["gradient_booster"]["model"]["iteration_indptr"]
        (workplace / "theirs.json").write_text(json.dumps(document))
        remarks = find_model("theirs.json", data(0.0).names).remarks[1:]
        assert any(f"its best round was 2 of {rounds};" in remark for remark in remarks) == told == bool(remarks)


def test_a_tree_without_splits_of_lightgbm_3_has_no_count(workplace):
    booster = trained_lightgbm(data(0.0), min_data_in_leaf=100_000)
    text = booster.model_to_string()
    counts = next(line for line in text.split("\n") if line.startswith("leaf_count="))
    size = next(line for line in text.split("\n") if line.startswith("tree_sizes="))
    old = f"tree_sizes={int(size.partition('=')[2]) - len(counts) + len('leaf_count=')}"
    (workplace / "theirs.txt").write_text(text.replace(counts, "leaf_count=").replace(size, old))
    assert (find_model("theirs.txt", data(0.0).names).predict(data(0.0).features) == 0).all()


def test_an_imported_ranker_is_one_like_any_other(workplace):
    """Saved, loaded, resumed, certified, and exported again."""
    queries = data()
    trained_lightgbm(queries).save_model("theirs.txt")
    model = read_model("theirs.txt")
    ltr.save(model, "saved")
    assert find_model("saved").digest == model.digest
    more = replace(model, n_trees=20, min_docs_in_leaf=5).fit(queries, start=model)
    assert np.array_equal(more.trees.first(15).value, model.trees.value)
    certificate = ltr.certify(model.surface(queries.features), queries, "ndcg_10", epsilon=0.5, delta=0.1, steps=(1e-3,))
    assert certificate.verdict
    export(model, "again.json", "xgboost")
    assert verify(model, "again.json", "xgboost", queries.features).largest_difference < 1e-5


def test_features_are_found_by_name_or_by_place(workplace):
    queries = data()
    named = replace(queries, names=("a", "b", "c", "d"))
    trained_lightgbm(named).save_model("named.txt")
    model = find_model("named.txt", ("z", "d", "c", "b", "a"))
    turned = np.column_stack((np.zeros(len(queries.features)), queries.features[:, ::-1])).astype(np.float32)
    assert model.names == ("z", "d", "c", "b", "a")
    assert model.remarks == ("read from a model of lightgbm",)
    assert np.array_equal(model.predict(turned), read_model("named.txt").predict(queries.features))
    with pytest.raises(DataError, match=r"named.txt: trees on features that the data do not have: d"):
        find_model("named.txt", ("a", "b", "c"))
    nameless = xgboost.train({"objective": "reg:squarederror"}, xgboost.DMatrix(queries.features, queries.labels), 2)
    nameless.save_model("nameless.json")
    assert read_model("nameless.json").names == ("f1", "f2", "f3", "f4")
    assert find_model("nameless.json", named.names).names == named.names
    told = "nameless.json: it names no features, which are taken by their places, from 'a' to 'd'"
    assert find_model("nameless.json", named.names).remarks[1:] == (told,)
    assert find_model("nameless.json", ("f1", "f2", "f3", "f4")).remarks[1:] == find_model("named.txt").remarks[1:] == ()
    with pytest.raises(DataError, match=r"nameless.json: the file names no features and has 4 of them; the data have 3"):
        find_model("nameless.json", ("a", "b", "c"))


@pytest.mark.parametrize(
    "parameters", [{}, {"booster": "dart", "rate_drop": 0.5}, {"base_score": 0.25}, {"objective": "rank:pairwise"}]
)
def test_xgboosts_binary_form_is_the_same_model(workplace, parameters):
    queries = data(0.1)
    booster = trained_xgboost(queries, **parameters)
    booster.save_model("m.ubj")
    booster.save_model("m.json")
    binary, text = find_model("m.ubj", queries.names), find_model("m.json", queries.names)
    assert np.array_equal(binary.predict(queries.features), text.predict(queries.features))
    assert binary.digest == text.digest
    Path("no-suffix").write_bytes(Path("m.ubj").read_bytes())
    assert find_model("no-suffix", queries.names).digest == text.digest


def test_files_that_are_no_model(workplace):
    queries = data()
    trained_xgboost(queries).save_model("m.ubj")
    (workplace / "cut.ubj").write_bytes((workplace / "m.ubj").read_bytes()[:-1])
    (workplace / "text.ubj").write_text("{")
    (workplace / "weights").write_text("1:0.5\n")
    (workplace / "broken.json").write_text('{"learner": {}}')
    (workplace / "cut.json").write_text('{"learner": {')
    for name, rule in (
        ("cut.ubj", r"byte \d+: 1 bytes are announced and 0 are left"),
        ("text.ubj", "neither LightGBM's text nor XGBoost's .json or .ubj"),
        ("weights", "neither LightGBM's text nor XGBoost's .json or .ubj"),
        ("nowhere", "No such file"),
        ("broken.json", "not an XGBoost model: KeyError 'gradient_booster'"),
        ("cut.json", "Expecting"),
    ):
        with pytest.raises(DataError, match=f"{name}: .*{rule}"):
            read_model(name)
    with pytest.raises(DataError, match=r"neither LightGBM's text"):
        find_model("text.ubj")
    trained_lightgbm(queries, zero_as_missing=True).save_model("z.txt")
    with pytest.raises(DataError, match=r"z.txt: tree 0, split \d counts zeros as missing"):
        find_model("z.txt")


THEIRS = """
import sys
from pathlib import Path
import numpy as np
features = np.load("rows.npy")
for path in map(Path, sys.stdin.read().split()):
    Path("last").write_text(path.name)
    try:
        if path.suffix in (".json", ".ubj"):
            import xgboost
            booster = xgboost.Booster(model_file=path)
            rows = xgboost.DMatrix(features, feature_names=booster.feature_names)
            scores = booster.predict(rows, output_margin=True)
        else:
            import lightgbm
            scores = lightgbm.Booster(model_file=path).predict(features, raw_score=True, predict_disable_shape_check=True)
    except Exception:
        continue
    np.save(path.with_suffix(".npy"), scores)
Path("last").write_text("")
"""


def in_their_hands(paths, may_die=False):
    """The tool's own scores of each file, None where it refuses it; in a process of its own, which a broken file may kill."""
    left = list(paths)
    while left:
        subprocess.run([sys.executable, "-c", THEIRS], input=" ".join(map(str, left)), text=True, check=False, capture_output=True)
        died_of = Path("last").read_text()
        assert may_die or not died_of, f"{died_of} is read here and kills the tool"
        left = left[[path.name for path in left].index(died_of) + 1 :] if died_of else []
    saved = [path.with_suffix(".npy") for path in paths]
    return [np.load(path) if path.exists() else None for path in saved]


@pytest.mark.parametrize("n", [100, pytest.param(10_000, marks=pytest.mark.long)])
@pytest.mark.parametrize(("tool", "suffix"), [("lightgbm", "txt"), ("xgboost", "json"), ("xgboost", "ubj")])
def test_a_changed_file_is_refused_or_read_as_the_tool_reads_it(workplace, tool, suffix, n):
    queries = data(0.1)
    trained = trained_lightgbm if tool == "lightgbm" else trained_xgboost
    trained(queries).save_model(f"theirs.{suffix}")
    before = find_model(f"theirs.{suffix}", queries.names).predict(queries.features)
    np.save("rows.npy", queries.features)
    different, alike = {}, []
    for k, changed in enumerate(mutations(Path(f"theirs.{suffix}").read_bytes(), n, 7, most=1)):
        path = Path(f"{k}.{suffix}")
        path.write_bytes(changed)
        try:
            scores = find_model(str(path), queries.names).predict(queries.features)
        except ValueError as error:
            check_sentence(error)
            continue
        if np.array_equal(scores, before):
            alike.append(path)
        else:
            different[path] = scores
    for path, theirs in zip(different, in_their_hands(list(different)), strict=True):
        assert theirs is not None, f"{path} is read here and refused there"
        room = 0.0 if tool == "lightgbm" else 1e-5 * max(1.0, np.abs(theirs).max())
        assert np.abs(different[path] - theirs).max() <= room, path
    assert different
    for path, theirs in zip(alike, in_their_hands(alike, may_die=True), strict=True):
        room = 0.0 if tool == "lightgbm" else 1e-5 * max(1.0, np.abs(before).max())
        assert theirs is None or np.abs(before - theirs).max() <= room, f"{path} changes nothing here"
    print(f"{n:,} changed files of {tool}.{suffix}: {len(different):,} read with other scores, {len(alike):,} with the same")


@pytest.mark.parametrize("n", [100, pytest.param(10_000, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "written", [b"f1,0.5\nf2,-1e-3\n# no\nf3,2\n", b"1:0.5 2:-1e-3 3:2 # no\n", b'{"f1": 0.5, "f2": -0.001, "f3": 2}']
)
def test_changed_weights_are_weights_or_refused(workplace, written, n):
    rows = np.random.default_rng(1).normal(size=(20, 3)).astype(np.float32)
    read = 0
    for changed in mutations(written, n, 11):
        (workplace / "w.txt").write_bytes(changed)
        try:
            scores = find_model("w.txt", ("f1", "f2", "f3")).predict(rows)
        except ValueError as error:
            check_sentence(error)
            continue
        read += 1
        assert np.isfinite(scores).all()
    assert 0 < read < n


def test_a_file_without_weights_is_no_model(workplace):
    for name, content, rule in (
        ("empty", b"", "no weights in it"),
        ("blank.txt", b" \n# f1,2\n", "no weights in it"),
        ("object.json", b"{}", "no weights in it"),
        ("twice.txt", b"f1,1\nf1,2\n", "line 2: feature 'f1' has a weight already"),
        ("twice.json", b'{"f1": 1, "f1": 2}', "feature 'f1' has a weight already"),
        ("list.json", b'{"f1": [1]}', r"'f1': \[1\] is not a weight"),
        ("deep.json", b'{"f1": ' + b"[" * 100_000, "too deep to read"),
        ("nan.txt", b"1:nan\n", "line 1: the weight of 'f1' is nan, which is not finite"),
        ("grouped.txt", b"1:1_0\n", "line 1: '1:1_0' is not a weight"),
        ("bytes", b"\xff\xfe", "byte 0 is not UTF-8"),
    ):
        (workplace / name).write_bytes(content)
        with pytest.raises(DataError, match=f"{name}: .*{rule}"):
            find_model(name, ("f1", "f2"))


def by_category(n=800):
    """Ten documents a query, a number and a category of nine."""
    rng = np.random.default_rng(5)
    features = np.column_stack([rng.normal(size=n), rng.integers(0, 9, n)]).astype(np.float32)
    labels = np.clip(np.round(features[:, 0] + (features[:, 1] % 4 == 1) * 2), 0, 4)
    features[rng.random(n) < 0.1, 1] = np.nan
    return ltr.Queries(features, labels, np.arange(0, n + 1, 10), names=("number", "site"))


LATER = np.array([[0.3, k] for k in (*range(9), 77, np.nan)], np.float32)


def test_lightgbms_splits_by_categories_are_read(workplace):
    queries = by_category()
    given = {"objective": "lambdarank", "verbose": -1, "num_threads": 1, "min_data_per_group": 5, "cat_smooth": 1, "num_leaves": 9}
    dataset = lightgbm.Dataset(queries.features, queries.labels, group=np.diff(queries.offsets), categorical_feature=[1])
    booster = lightgbm.train(given, dataset, 15)
    booster.save_model("theirs.txt")
    model = find_model("theirs.txt", queries.names)
    assert len(model.trees.codes)
    features = np.concatenate((queries.features, LATER))
    assert np.array_equal(model.predict(features), booster.predict(features))


@pytest.mark.parametrize("most", [1, 50], ids=["sets", "one against all"])
def test_xgboosts_splits_by_categories_are_read(workplace, most):
    queries = by_category()
    matrix = xgboost.DMatrix(queries.features, queries.labels, qid=np.repeat(np.arange(80), 10), feature_types=["q", "c"])
    booster = xgboost.train({"objective": "rank:ndcg", "nthread": 1, "max_cat_to_onehot": most}, matrix, 15)
    features = np.concatenate((queries.features, LATER[[*range(9), 10]]))
    theirs = booster.predict(xgboost.DMatrix(features, feature_types=["q", "c"]), output_margin=True)
    for name in ("theirs.json", "theirs.ubj"):
        booster.save_model(name)
        model = find_model(name, queries.names)
        assert len(model.trees.codes)
        assert model.predict(features) == pytest.approx(theirs, abs=1e-5)


def test_xgboosts_leaves_that_were_splits_by_categories_before_it_pruned_them_are_read(workplace):
    queries = by_category()
    matrix = xgboost.DMatrix(queries.features, queries.labels, qid=np.repeat(np.arange(80), 10), feature_types=["q", "c"])
    grown = {"objective": "rank:ndcg", "nthread": 1, "max_depth": 4}
    booster = xgboost.train(grown, matrix, 8)
    booster = xgboost.train({**grown, "process_type": "update", "updater": "prune", "gamma": 3.0}, matrix, 8, xgb_model=booster)
    theirs = booster.predict(matrix, output_margin=True)
    for name in ("theirs.json", "theirs.ubj"):
        booster.save_model(name)
        assert find_model(name, queries.names).predict(queries.features) == pytest.approx(theirs, abs=1e-5)
    trees = json.loads(Path("theirs.json").read_text())["learner"]["gradient_booster"]["model"]["trees"]
    assert any(tree["left_children"][node] == -1 for tree in trees for node in tree["categories_nodes"])


@pytest.mark.parametrize(("to", "name"), [("lightgbm", "m.txt"), ("xgboost", "m.json"), ("xgboost-ubj", "m.ubj")])
def test_ours_are_written_for_both_and_read_again(workplace, to, name):
    queries = by_category()
    model = ltr.LambdaMART(
        n_trees=12,
        n_leaves=8,
        min_docs_in_leaf=5,
        stop_on=None,
        categorical=["site"],
        cat_smooth=0.1,
        cat_l2=0.1,
        feature_share=1.0,
    ).fit(queries)
    assert len(model.trees.codes)
    export(model, name, to)
    features = np.concatenate((queries.features, LATER))
    found = verify(model, name, to, features)
    assert found.largest_difference <= TOLERANCE[to.removesuffix("-ubj")]
    again = find_model(name, queries.names)
    assert again.predict(features) == pytest.approx(model.predict(features), abs=1e-6)
    assert sorted(again.trees.n_codes) == sorted(model.trees.n_codes)


@pytest.mark.parametrize("to", ["ranklib", "solr", "onnx", "elastic", "opensearch", "xgboost-dump", "lightgbm-dump", "linear"])
def test_formats_without_categories_say_so(workplace, to):
    model = ltr.LambdaMART(n_trees=2, n_leaves=4, min_docs_in_leaf=5, stop_on=None, categorical=["site"], cat_l2=0.1).fit(
        by_category()
    )
    with pytest.raises(DataError, match=r": trees of categories\); choose from: lightgbm, xgboost, xgboost-ubj"):
        export(model, "m.out", to)
    with pytest.raises(DataError, match="choose from: lightgbm"):  # and not a word of the values that are missing
        export_to(model, "m.out", to, by_category())


def test_a_name_of_two_features_is_refused(workplace):
    Path("m.txt").write_text(sized(LIGHTGBM.replace("feature_names=a b", "feature_names=a a")))
    for names in ((), ("a", "b")):
        with pytest.raises(DataError, match=r"m\.txt: two features have the name 'a'"):
            read_model("m.txt", names)


def test_an_imported_ranker_has_as_many_leaves_as_its_largest_tree(workplace):
    trees = join([stump(0.5), *(grown(data(), n_leaves=6, n_trees=2).trees.between(k, k + 1) for k in range(2)), stump(0.1)])
    Path("m.txt").write_text(lightgbm_text(trees, ("f1", "f2", "f3", "f4")))
    model = read_model("m.txt")
    assert (model.n_trees, model.n_leaves) == (4, 6)


def test_a_model_without_trees_is_none(workplace):
    head = LIGHTGBM.split("Tree=0")[0].replace("tree_sizes=211 47", "tree_sizes=")
    Path("m.txt").write_text(f"{head}end of trees\n")
    with pytest.raises(DataError, match=r"m\.txt: no trees"):
        read_model("m.txt")
