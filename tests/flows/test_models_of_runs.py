"""A model of a run is named, found and used by what it remembers: its columns, and its features by name."""

import json
import os
import re
from pathlib import Path

import mlflow
import numpy as np
import polars as pl
import pytest

import ltr
from flows.cli import main
from tasks.config.data_section import Data
from tasks.data.ingest import ingest
from tasks.store.datasets import open_queries
from tasks.tracking.lookup import find_model
from tasks.tracking.runs import find_cell
from tasks.tracking.store import tracking_uri
from tasks.tracking.tracked import tracked
from tests.conftest import make_queries

pytestmark = pytest.mark.usefixtures("undrawn")


def table(seed=0, n=60) -> pl.DataFrame:
    """Judged documents whose columns have names of their own."""
    queries = make_queries(n, n_features=3, seed=seed, clicks=False)
    of_query = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))
    features = {name: queries.features[:, k] for k, name in enumerate("abc")}
    told = {"language": [["de", "en"][q % 2] for q in of_query], "note[1]": ["red shoes"] * len(of_query)}
    return pl.DataFrame({"qid": [f"q{q}" for q in of_query], "grade": queries.labels, **features, **told}).with_row_index("sku")


CONFIG = """
data: {files: train.csv, folds: 3, query: qid, label: grade, document: sku, attributes: [language], ignore: ["note*"]}
rankers: {ridge: {kind: least_squares}, trees: {kind: lambdamart, n_trees: 3, n_leaves: 3}, mix: {kind: least_squares, on: [trees, ridge]},
  swept: {kind: lambdamart, n_trees: 4, n_leaves: 4, stop_on: null, sweep: {learning_rate: [0.05, 0.1, 0.2, 0.4]}},
  best: {kind: average, on: [swept], best: 3}}
measures: [ndcg_10]
seed: 5
"""


@pytest.fixture(scope="module")
def run_id(prefect_server, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("folds")
        patch.chdir(folder)
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        table().write_csv("train.csv")
        (folder / "c.yaml").write_text(CONFIG)
        with pytest.MonkeyPatch.context() as quiet:
            printed = []
            quiet.setattr("builtins.print", lambda *said, **_: printed.append(said))
            assert main(["run", "c.yaml", "--json"]) == 0
        yield json.loads(printed[-1][0])["run_id"]


def answered(capsys, *arguments):
    """Exit code, standard output and standard error of a command, but for the words that say what a slow machine is at."""
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, "".join(line for line in err.splitlines(keepends=True) if not re.fullmatch(r"\s*[a-z ]+(, \d+ s)?\n", line))


def test_a_ranker_asked_for_without_its_run_is_told_with_it(run_id, capsys):
    code, _, err = answered(capsys, "evaluate", "--model", "mix", "--data", "train.csv")
    assert code == 1
    assert f"the latest ranker of this name is {run_id[:8]}:mix" in err


def test_a_ranker_on_the_scores_of_others_is_a_model_of_the_same_table(run_id, capsys):
    mixed, trees, ridge = (find_model(f"{run_id[:8]}:{name}:2") for name in ("mix", "trees", "ridge"))
    features = table().select("a", "b", "c").to_numpy()
    scores = np.column_stack([trees.predict(features), ridge.predict(features)]).astype(np.float32)
    assert np.array_equal(mixed.predict(features), mixed.top.predict(scores))
    code, _, err = answered(capsys, "predict", "--model", f"{run_id[:8]}:mix:2", "--data", "train.csv", "-o", "s.csv")
    assert (code, err) == (0, "")
    assert np.allclose(pl.read_csv("s.csv")["score"].to_numpy(), mixed.predict(features))
    assert answered(capsys, "evaluate", "--model", f"{run_id[:8]}:mix:2", "--data", "train.csv", "--measure", "map")[0] == 0
    code, _, err = answered(capsys, "export", "--model", f"{run_id[:8]}:mix:2", "--to", "lightgbm", "-o", "m.txt")
    assert (code, "but not this ranker (stacked: stacked); no format can" in err) == (1, True)


def test_the_best_cells_of_a_ranker_are_averaged(run_id, capsys):
    model = find_model(f"{run_id[:8]}:best:2")
    parent = next(run for run in tracked() if run.id.startswith(run_id))
    cells = [cell for cell in parent.children() if cell.params["ranker"] == "swept" and cell.params["fold"] == "2"]
    values = {cell.params["learning_rate"]: cell.client.get_run(cell.id).data.metrics["valid_ndcg_10"] for cell in cells}
    assert len(set(values.values())) == 4, "nothing ties"
    best = sorted(values, key=values.get, reverse=True)[:3]
    assert [str(base.learning_rate) for base in model.bases] == best
    features = table().select("a", "b", "c").to_numpy().astype(np.float32)
    scores = [
        base.predict(features).astype(np.float32).astype(float) / d
        for base, d in zip(model.bases, model.top.deviations, strict=True)
    ]
    assert np.allclose(model.predict(features), np.mean(scores, axis=0), rtol=1e-12)
    code, _, err = answered(
        capsys, "export", "--model", f"{run_id[:8]}:best:2", "--to", "lightgbm", "-o", "m.txt", "--data", "train.csv"
    )
    assert code == 0, err
    assert Path("m.txt").read_text().count("Tree=") == sum(base.ensemble.n_trees for base in model.bases)


def test_its_logged_model_reads_the_tables_own_features(run_id):
    cell = find_cell(f"{run_id[:8]}:mix:2")
    (output,) = mlflow.tracking.MlflowClient(tracking_uri()).get_run(cell.id).outputs.model_outputs
    mlflow.set_tracking_uri(tracking_uri())
    served = mlflow.pyfunc.load_model(f"models:/{output.model_id}")
    features = table().select("a", "b", "c").to_numpy()
    assert np.array_equal(served.predict(features), find_model(f"{run_id[:8]}:mix:2").predict(features))


def test_folds_are_models_of_their_own(run_id, capsys):
    scores = []
    for name in ("ridge:1", "ridge:2", "trees:3"):
        code, _, err = answered(capsys, "predict", "--model", f"{run_id[:8]}:{name}", "--data", "train.csv", "-o", "s.csv")
        assert (code, err) == (0, "")
        scores.append(pl.read_csv("s.csv")["score"].to_list())
    assert len({tuple(own) for own in scores}) == 3
    for name, said in (
        ("ridge", f"ridge is one model per fold; name one, {run_id[:8]}:ridge:1 to {run_id[:8]}:ridge:3"),
        ("ridge:4", "fold '4'; ridge has the folds 1 to 3"),
        ("ridge:x", "fold 'x'; ridge has"),
        ("ridge:²", "fold '²'; ridge has"),
        ("net", "no finished ranker 'net'; it has: ridge, trees, mix, swept, best"),
    ):
        code, _, err = answered(capsys, "predict", "--model", f"{run_id[:8]}:{name}", "--data", "train.csv", "-o", "s.csv")
        assert code == 1
        assert said in err
    for wrong in (["--queries", "0"], ["--tier", "ndcg_10"], ["--tier", "ndcg_10", "--tier", "map", "--level", "2"]):
        code, out, _ = answered(capsys, "compare", f"{run_id[:8]}:ridge:1", f"{run_id[:8]}:trees:1", *wrong)
        assert (code, out) == (1, ""), wrong
    code, shown, _ = answered(capsys, "compare", f"{run_id[:8]}:ridge:1", f"{run_id[:8]}:trees:1")
    assert (code, "ridge · fold 1" in shown) == (0, True)


def test_the_chosen_settings_are_trained_on_all_data(run_id, capsys):
    """By the command, and what it trains is what the core trains on all data with those settings."""
    cells = {path.name for path in Path(".lambdaflow/cells").iterdir()}
    code, out, err = answered(capsys, "refit", f"{run_id[:8]}:trees", "--register", "shop", "--json")
    assert code == 0, err
    assert len({path.name for path in Path(".lambdaflow/cells").iterdir()} - cells) == 1, (
        "the others are found, the run's seed and all"
    )
    refitted = json.loads(out)["run_id"]
    assert f"trees trained on all 60 queries: --model {refitted[:8]}:trees, version 1 of shop" in " ".join(err.split())
    scores = []
    for model in (f"{refitted[:8]}:trees", "models:/shop/1"):
        code, _, err = answered(capsys, "predict", "--model", model, "--data", "train.csv", "-o", "s.csv")
        assert (code, err) == (0, "")
        scores.append(pl.read_csv("s.csv")["score"].to_numpy())
    kept = []
    for fold in "123":
        found = find_model(f"{refitted[:8]}:trees:{fold}")
        kept.append(found.trees.n_trees)
    queries = read_all(table())
    plain = ltr.LambdaMART(n_trees=round(np.mean(kept)), n_leaves=3, stop_on=None, seed=5).fit(queries)
    assert np.array_equal(scores[0], plain.predict(table().select("a", "b", "c").to_numpy()))
    assert np.array_equal(scores[0], scores[1])
    code, _, err = answered(capsys, "refit", f"{run_id[:8]}:net")
    assert (code, "refit.rankers: no ranker 'net'; choose from: ridge, trees" in err) == (1, True)


def test_what_was_chosen_on_other_data_is_not_refitted(run_id, capsys):
    table().write_csv("kept.csv")
    runs = len(tracked())
    try:
        table(n=40).write_csv("train.csv")
        code, out, err = answered(capsys, "refit", f"{run_id[:8]}:trees", "--register", "moved")
    finally:
        os.replace("kept.csv", "train.csv")
    assert (code, out, len(tracked())) == (1, "", runs)
    assert f"refit: the data have changed since run {run_id[:8]} (train 1, valid 1, test 1)" in err


def read_all(frame):
    keep_columns = Data(files=["train.csv"], query="qid", label="grade", document="sku", ignore=["note*", "language"])
    return open_queries(ingest.fn([Path("train.csv")], keep_columns).data)


def test_columns_are_remembered_and_overridden(run_id, capsys):
    model = f"{run_id[:8]}:trees:1"
    code, _, err = answered(capsys, "predict", "--model", model, "--data", "train.csv", "-o", "s.csv")
    assert (code, err) == (0, "")
    assert pl.read_csv("s.csv").columns == ["query", "document", "score"]
    by_language = ["explain", "--set", "attributes=[language]", "--segment", "language=de"]
    for command in (["evaluate"], ["export", "--to", "lightgbm", "-o", "m.txt"], ["optimality"], ["explain"], by_language):
        code, _, err = answered(capsys, *command, "--model", model, "--data", "train.csv")
        assert code == 0, err
    Path("s.csv").unlink()
    code, _, err = answered(capsys, "predict", "--model", model, "--data", "train.csv", "-o", "s.csv", "--set", "document=id")
    assert (code, Path("s.csv").exists()) == (1, False)
    assert "train.csv: no column 'id'; choose from: sku, qid" in err
    table().rename({"qid": "session", "grade": "stars"}).write_csv("other.csv")
    code, _, err = answered(capsys, "evaluate", "--model", model, "--data", "other.csv")
    assert code == 1
    assert "no column 'qid'" in err
    for prefix in ("", "data."):
        given = [*("--set", f"{prefix}query=session"), *("--set", f"{prefix}label=stars")]
        assert answered(capsys, "evaluate", "--model", model, "--data", "other.csv", *given)[0] == 0
        assert answered(capsys, "predict", "--model", model, "--data", "other.csv", "-o", "s.csv", *given)[0] == 0
        more = ["--set", f"{prefix}document=sku", "--set", f"{prefix}ignore=[language, note*]"]
        assert answered(capsys, "check", "other.csv", *given, *more)[0] == 0


def test_features_are_found_by_name(run_id, capsys):
    """The same rows with columns in another order have the same value; renamed ones are refused."""
    model = f"{run_id[:8]}:trees:1"

    def value(path, *more):
        code, out, err = answered(capsys, "evaluate", "--model", model, "--data", path, "--measure", "map", "--json", *more)
        return json.loads(out) if code == 0 else err

    table().select("c", "qid", "b", "sku", "a", "grade").write_csv("turned.csv")
    table().with_columns(more=pl.lit(1)).write_csv("wider.csv")
    assert value("turned.csv") == value("train.csv") == value("wider.csv")
    table().rename({"b": "bb"}).write_csv("renamed.csv")
    assert "renamed.csv: no feature 'b', which the model reads; did you mean bb? (1 of 3 are missing)" in value("renamed.csv")
    code, _, err = answered(capsys, "optimality", "--model", model, "--data", "renamed.csv")
    assert (code, "no feature 'b', which the model reads" in err) == (1, True)
    code, _, err = answered(capsys, "export", "--model", model, "--to", "lightgbm", "-o", "e.txt", "--data", "renamed.csv")
    assert (code, "no feature 'b', which the model reads" in err) == (1, True)


def test_only_what_was_measured_alike_is_compared(run_id, capsys):
    """Other conventions or labels are other measures; other features, and other documents without a label above 0, are not."""

    def run_of(*settings):
        code, out, err = answered(capsys, "run", "one.yaml", "--json", *(part for s in settings for part in ("--set", s)))
        assert code == 0, err
        return json.loads(out)["run_id"][:8]

    frame = table()
    frame.write_csv("one.csv")
    frame.with_columns(grade=4 - pl.col("grade")).write_csv("reversed.csv")
    frame.with_columns(grade=pl.col("grade").reverse().over("qid")).write_csv("permuted.csv")
    zeros = frame.filter(pl.col("grade") == 0).with_columns(sku=pl.col("sku") + 10_000)
    pl.concat([frame, zeros]).with_columns(more=pl.col("a") * 2).write_csv("more.csv")
    Path("one.yaml").write_text(
        re.sub(r"(?s)rankers:.*?\nmeasures", "rankers: {ridge: {kind: least_squares}}\nmeasures", CONFIG).replace(
            "train.csv, folds: 3", "one.csv"
        )
    )
    first = run_of()
    for settings, said in (
        (["conventions.threshold=1"], "different conventions (threshold 1.0 and 2.0)"),
        (["conventions.gain=linear"], "different conventions (gain linear and exp2)"),
        (["data.files=reversed.csv"], "different labels of the same queries (label source 'label')"),
        (["data.files=permuted.csv"], "different labels of the same queries (label source 'label')"),
    ):
        other = run_of(*settings)
        for more in ([], ["--tier", "ndcg_10", "--tier", "map"]) if "threshold" in settings[0] else ([],):
            code, out, err = answered(capsys, "compare", first, other, *more)
            assert (code, out) == (1, "")
            assert said in err
            assert "Traceback" not in err
    assert answered(capsys, "compare", first, run_of("data.files=more.csv"))[0] == 0


def test_nothing_is_written_onto_what_is_read(run_id, capsys):
    before = table().write_csv()
    with open("input.csv", "w") as file:
        file.write(before)
    os.symlink("input.csv", "alias.csv")
    for output in ("input.csv", "alias.csv", "./input.csv"):
        code, _, err = answered(capsys, "predict", "--model", f"{run_id[:8]}:trees:1", "--data", "input.csv", "-o", output)
        assert (code, f"{output.removeprefix('./')}: this is input.csv itself" in err) == (1, True), err
    code, _, err = answered(
        capsys, "export", "--model", f"{run_id[:8]}:trees:1", "--to", "lightgbm", "-o", "input.csv", "--data", "input.csv"
    )
    assert (code, "this is input.csv itself" in err) == (1, True)
    with open("input.csv") as file:
        assert file.read() == before


@pytest.mark.usefixtures("prefect_server")
def test_a_model_of_categories_reads_their_names(workplace, capsys):
    n = table().height
    whole = table().with_columns(
        site=pl.Series([f"{k % 7}.com" for k in range(n)]), shelf=pl.Series([(3, 17, 250)[k % 3] for k in range(n)])
    )
    whole.drop("note[1]", "language").write_csv("train.csv")
    (workplace / "c.yaml").write_text(
        "data: {files: train.csv, query: qid, label: grade, document: sku, categorical: [site, shelf]}\n"
        "rankers: {trees: {kind: lambdamart, n_trees: 9, min_docs_in_leaf: 3, cat_l2: 0.01, cat_smooth: 0.01, feature_share: 1}}\nmeasures: [ndcg_10]\n"
    )
    assert main(["run", "c.yaml", "--json"]) == 0
    name = f"{json.loads(capsys.readouterr().out)['run_id'][:8]}:trees"
    model = find_model(name)
    assert len(model.trees.codes)
    shown = pl.DataFrame(
        {"site": ["3.com", "unknown.com", None], "a": [0.1] * 3, "b": [0.2] * 3, "c": [0.3] * 3, "shelf": [250] * 3}
    )
    shown.write_parquet("new.parquet")
    assert answered(capsys, "predict", "--model", name, "--data", "new.parquet", "-o", "s.csv")[0] == 0
    scores = pl.read_csv("s.csv")["score"].to_list()
    rows = np.array([[0.1, 0.2, 0.3, site, 1] for site in (3, np.nan, np.nan)], np.float32)  # shelves 17, 250, 3
    assert scores == model.predict(rows[:, [["a", "b", "c", "site", "shelf"].index(name) for name in model.names]]).tolist()
    assert scores[1] == scores[2]
    code, out, _ = answered(capsys, "evaluate", "--model", name, "--data", "train.csv", "--measure", "ndcg@10")
    assert (code, "ndcg_10" in out) == (0, True)
    sites = ", ".join(f"{k}.com" for k in range(7))
    for listed in (f"categories={{site: [{sites}]}}", 'data.categories={shelf: ["17", "250", "3"]}', f"categories.site=[{sites}]"):
        same = answered(capsys, "evaluate", "--model", name, "--data", "train.csv", "--measure", "ndcg@10", "--set", listed)
        assert same[:2] == (0, out), "columns that are not listed have the model's categories"
    none = answered(capsys, "evaluate", "--model", name, "--data", "train.csv", "--measure", "ndcg@10", "--set", "categories={}")
    assert (none[0], "column 'site' has '0.com'" in none[2]) == (1, True), "an empty list of them asks for numbers"
    assert answered(capsys, "export", "--model", name, "--to", "solr", "-o", "m.json")[0] == 1
    code, out, _ = answered(capsys, "export", "--model", name, "--to", "lightgbm", "-o", "m.txt", "--data", "train.csv")
    assert code == 0
    told = "0 for 0.com, 1 for 1.com, 2 for 2.com, 3 for 3.com, 4 for 4.com, … (in the order of the model's list)"
    assert f"the file expects 'site' as numbers: {told}" in out
