"""The main flow end to end on small generated data, under Prefect's own server and a real MLflow store."""

import html
import itertools
import json
import re
import shutil
import sqlite3
from pathlib import Path

import mlflow
import numpy as np
import polars as pl
import pytest
from mlflow.tracking import MlflowClient

import ltr
from flows.cli import main
from flows.pipeline import run
from flows.sweep import choose
from ltr.linear.least_squares import LeastSquares
from tasks.config.reading import parse
from tasks.evidence.guarantee import Guarantees
from tasks.evidence.optimality import Certificates
from tasks.evidence.refit import Refit, Refitted
from tasks.evidence.stored_runs import compare_stored, scorecards
from tasks.records import DataError, ExpectationError
from tasks.report.outcome import RunOutcome
from tasks.report.publish import description, markdown_table, report_page
from tasks.store.cells import CellFolder
from tasks.store.values import read_values
from tasks.tracking.lookup import find_model
from tasks.tracking.runs import find_cell, find_values
from tasks.tracking.store import CELL_KEY, CHOSEN, DIGEST, EXPERIMENT, PARENT, fluent, tracking_uri
from tasks.tracking.tracked import tracked
from tasks.tracking.tracker import Tracker
from tests.conftest import make_queries

pytestmark = pytest.mark.usefixtures("undrawn")

CONFIG = {
    "name": "small",
    "data": {"generate": {"queries": [40, 20, 30], "documents": 12, "features": 12, "sessions": 30}},
    "rankers": {
        "trees": {"kind": "lambdamart", "n_trees": 6, "n_leaves": 6, "min_docs_in_leaf": 5, "sweep": {"learning_rate": [0.1, 0.3]}},
        "graded": {
            "kind": "lambdamart", "n_trees": 6, "n_leaves": 6, "min_docs_in_leaf": 5,
            "objective": [{}, {"measure": "cndcg", "pairs": "same_label"}], "sweep": {"objective.1.weight": [0.3, 0.9]},
        },
        "linear": {"kind": "lambdarank", "epochs": 5},
    },
    "measures": ["ndcg_3", "ndcg_10", "map", "cndcg_10"],
    "optimality": {"measure": "ndcg", "epsilon": 0.1, "delta": 0.1},
    "microscope": {"rankers": ["trees"], "every": 2, "lost": 7},
    "guarantee": {"baseline": "trees", "rankers": ["graded"], "tiers": ["ndcg_10", "cndcg_3"], "margin": 0.05},
}  # fmt: skip

FORTY_QUERIES = "".join(f"{(k * 7) % 3} qid:{k // 6} 1:{(k * 7) % 3 + k % 2} 2:{k % 5}\n" for k in range(240))


@pytest.fixture(scope="module")
def finished(prefect_server, tmp_path_factory):
    """One finished run; its folder and outcome."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("run")
        patch.chdir(folder)
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        outcome = run(parse(CONFIG))
        assert isinstance(outcome, RunOutcome)
        yield folder, outcome


def children(outcome):
    client = MlflowClient(tracking_uri())
    experiment = client.get_experiment_by_name(EXPERIMENT).experiment_id
    return client, client.search_runs([experiment], f"tags.`mlflow.parentRunId` = '{outcome.run_id}'")


def found(outcome, kind):
    """What the run's evidence of one kind found."""
    (one,) = [one for one in outcome.evidence if isinstance(one, kind)]
    return one


def test_every_cell_is_a_finished_child_with_numbers_curve_values_and_data(finished):
    client, runs = children(finished[1])
    assert len(runs) == 5
    for child in runs:
        assert child.info.status == "FINISHED"
        assert {"test_ndcg_10", "valid_ndcg_10", "test_cndcg_10", "train_seconds"} <= set(child.data.metrics)
        assert client.get_metric_history(child.info.run_id, "curve_valid_ndcg_10")
        assert [i.dataset.digest for i in child.inputs.dataset_inputs]
        values = pl.read_parquet(client.download_artifacts(child.info.run_id, "values.parquet"))
        defined = values.filter(pl.col("split") == "test")["ndcg_10"].drop_nulls()
        assert defined.mean() == pytest.approx(child.data.metrics["test_ndcg_10"])


def test_the_parent_has_the_best_cells_numbers_links_and_report(finished):
    client, _ = children(finished[1])
    outcome = finished[1]
    parent = client.get_run(outcome.run_id)
    best = outcome.models[parent.data.tags["best"]]
    assert parent.info.status == "FINISHED"
    assert parent.data.metrics["test_ndcg_10"] == pytest.approx(best.metrics["test_ndcg_10"])
    assert best.metrics["valid_ndcg_10"] == max(m.metrics["valid_ndcg_10"] for m in outcome.models.values())
    assert parent.data.tags["prefect.flow_run_url"]
    described = parent.data.tags["mlflow.note.content"]
    assert markdown_table(outcome.standings) in described
    assert f"Report: `{report_page(outcome)}`" in described
    for sentence in (sentence for one in outcome.evidence for sentence in one.sentences()):
        assert html.unescape(described).count(f"- {sentence.strip()}") == 1
    (shown,) = parent.outputs.model_outputs
    assert client.get_logged_model(shown.model_id).source_run_id == find_cell(outcome.run_id).id
    ours = {tag for tag in parent.data.tags if not tag.startswith(("mlflow.", "lambdaflow."))}
    assert ours == {"best", "prefect.flow_run_url", *(tag for one in outcome.evidence for tag in one.tags())}
    assert outcome.link.endswith(f"/runs/{outcome.run_id}?workflowType=machine_learning")
    assert {a.path for a in client.list_artifacts(outcome.run_id)} == {
        "report.html",
        "config.yaml",
        "plots",
        "lost-causes-trees.csv",
    }


def test_what_a_guarantee_took_is_what_others_are_on_and_what_is_refitted(finished):
    guarantee = {**CONFIG["guarantee"], "tiers": ["ndcg_10", "cndcg_10"], "margin": 1.0}
    on_one = {**CONFIG["rankers"], "only": {"kind": "average", "on": ["graded"]}}
    rules = {
        "name": "on guaranteed",
        "rankers": on_one,
        "guarantee": guarantee,
        "measures": CONFIG["measures"],
        "refit": {"rankers": ["graded"]},
    }
    done = run(parse({"data": CONFIG["data"], **rules}))
    (taken,), (only,) = done.chosen_of("graded"), done.chosen_of("only")
    (free,) = [one for one in choose(done.cells, done.config) if one.ranker == "graded"]
    assert taken.result.key != free.result.key, "of those that may lose anything the one that gains most clicks"
    refitted = found(done, Refitted)
    assert refitted.models["graded"].cell.point == taken.cell.point
    below = find_model(f"{done.run_id[:8]}:only").bases
    assert [base.digest for base in below] == [taken.result.digest]
    graded, same = (read_values(CellFolder.of(one.result.key).values, "test") for one in (taken, only))
    assert same["ndcg_10"].to_list() == pytest.approx(graded["ndcg_10"].to_list(), nan_ok=True)


def test_json_has_what_the_evidence_says_too(finished):
    outcome = finished[1]
    printed = json.loads(json.dumps(outcome.as_json(), allow_nan=False))
    assert set(printed) == {"run_id", "models", "names", "guarantee", "optimality"}
    (guarantee,) = found(outcome, Guarantees).rankers
    written = printed["guarantee"]["graded"]
    made = guarantee.promises[0]
    assert written["folds"] == [{"chosen": made.chosen, "promised": made.promised, "few": made.few}]
    assert [tier["measure"] for tier in written["tiers"]] == ["ndcg_10", "cndcg_3"]
    assert written["tiers"][0]["lower_bound"] == guarantee.outcome.tiers[0].lower_bound
    assert [record["ranker"] for record in printed["optimality"]] == ["linear"]


@pytest.mark.long
def test_stores_are_named_by_the_environment_alone(prefect_server, workplace, monkeypatch, capsys):
    small = {"linear": {"kind": "lambdarank", "epochs": 2, "sweep": {"learning_rate": [0.001, 0.002]}}}
    config = {"name": "team", "data": CONFIG["data"], "rankers": small, "measures": ["ndcg_10"]}
    at_home = run(parse(config))
    (workplace / "team").mkdir()
    monkeypatch.chdir(workplace / "team")
    database, kept = workplace / "shared.db", workplace / "kept"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{database}")
    monkeypatch.setenv("LAMBDAFLOW_ARTIFACTS", kept.as_uri())
    for verdict in ("first", "same"):
        outcome = run(parse({**config, "champion": {"name": "search"}}))
        assert outcome.models == at_home.models
        became = json.loads(json.dumps(outcome.as_json(), allow_nan=False))["champion"]
        assert [became[name] for name in ("ranker", "name", "version", "verdict")] == ["linear", "search", "1", verdict]
    with sqlite3.connect(database) as store:
        assert store.execute("select status from runs").fetchall() == [("FINISHED",)] * 3
    assert not Path("mlruns/mlflow.db").exists()
    assert list(kept.glob("*/artifacts/report.html"))
    assert len(list(kept.glob("**/model.npz"))) == 2
    assert not list(Path("mlruns").glob("**/report.html"))
    shutil.rmtree(".lambdaflow/cells")
    Path("new.txt").write_text("".join(f"0 qid:1 {' '.join(f'{f + 1}:{k * f}' for f in range(12))}\n" for k in range(5)))
    assert main(["predict", "--model", "models:/search@champion", "--data", "new.txt", "-o", "scores.csv"]) == 0
    assert len(Path("scores.csv").read_text().splitlines()) == 6


NAMES = (
    "frontier-graded",
    "curve-trees",
    "curve-graded",
    "curve-linear",
    "importance-trees",
    "importance-graded",
    "optimality-linear",
    "measure-by-iteration",
    *(f"{name}-trees" for name in ("agreement", "partners", "top-labels", "moves")),
)


def test_plots_are_artifacts(finished):
    client, _ = children(finished[1])
    names = {a.path for a in client.list_artifacts(finished[1].run_id, "plots")}
    assert names == {f"plots/{name}.svg" for name in NAMES}


def test_lost_causes_are_a_table_of_training_documents(finished):
    client, _ = children(finished[1])
    table = pl.read_csv(client.download_artifacts(finished[1].run_id, "lost-causes-trees.csv"))
    assert table.columns == ["query", "document", "label", "rank", "force", "smallest"]
    assert table.height == 7
    assert table["smallest"].is_sorted(descending=True)
    assert all(document.startswith(f"{query}-") for query, document in table.select("query", "document").rows())


def test_models_in_mlflow_are_code_and_arrays_and_score_the_same(finished):
    _, runs = children(finished[1])
    features = np.random.default_rng(0).normal(size=(5, 12)).astype(np.float32)
    for child in runs:
        (output,) = child.outputs.model_outputs
        with fluent():
            loaded = mlflow.pyfunc.load_model(f"models:/{output.model_id}")
        ours = ltr.load(CellFolder.of(child.data.tags[CELL_KEY]).model)
        assert np.array_equal(loaded.predict(features), ours.predict(features))
    assert not [p for p in Path("mlruns").glob("**/*") if p.suffix in (".pkl", ".pickle")]


def test_the_report_is_one_page_with_every_part(finished):
    page = report_page(finished[1]).read_text()
    for part in (
        "<h1>small</h1>",
        "NDCG@10",
        "CNDCG@10",
        "Guarantee",
        "no loss above 0.05 on NDCG@10",
        "λ microscope",
        "Lost causes of trees",
        "Local optimality",
        "<svg",
        "graded",
        "counted;",
        "Configuration as resolved",
    ):
        assert part in page
    assert 'src="http' not in page
    assert "href=" not in page.split("<body>")[0]


def test_running_again_finds_everything_and_adds_nothing(finished, monkeypatch):
    _, before = children(finished[1])
    for kind in (ltr.LambdaMART, ltr.LambdaRank):
        monkeypatch.setattr(kind, "fit", lambda *_: pytest.fail("trained again"))
    again = run(parse(CONFIG))
    _, after = children(again)
    assert again.run_id == finished[1].run_id
    assert again.models == finished[1].models
    assert {r.info.run_id for r in after} == {r.info.run_id for r in before}
    assert again == finished[1]


def test_stored_data_may_be_deleted_and_are_made_again(finished, monkeypatch):
    """A folder that is trained in every night has the data of every night."""
    for kind in (ltr.LambdaMART, ltr.LambdaRank):
        monkeypatch.setattr(kind, "fit", lambda *_: pytest.fail("trained again"))
    state_folder = finished[0] / ".lambdaflow"
    kept = {path.name for path in (state_folder / "data").iterdir()}
    for room in ("data", "generated", "pooled", "collections", "binned"):
        shutil.rmtree(state_folder / room, ignore_errors=True)
    assert main(["compare", f"{finished[1].run_id}:trees", f"{finished[1].run_id}:linear"]) == 0
    assert run(parse(CONFIG)) == finished[1]
    assert kept >= {path.name for path in (state_folder / "data").iterdir()} != set()


def test_what_evidence_says_of_a_log_that_grew_is_told_in_mlflow_too(prefect_server, workplace, monkeypatch):
    rng, pairs = np.random.default_rng(3), [(f"q{q}", f"d{d}") for q in range(40) for d in range(5)]
    table = pl.DataFrame(pairs, schema=["query", "document"], orient="row")
    table.with_columns(label=rng.integers(0, 3, 200), f=rng.normal(size=200), g=rng.normal(size=200)).write_parquet(
        "judged.parquet"
    )

    def keep_log(extra):
        seen = [(f"s{q}-{k}", f"q{q}", f"d{d}", d + 1, 0) for q in range(40) for k in range(q + 1) for d in range(5)]
        seen += [(f"x{k}", "q0", "d9", 1, 0) for k in range(extra)]
        pl.DataFrame(seen, schema=["session", "query", "document", "rank", "click"], orient="row").write_parquet("log.parquet")

    config = parse({
        "name": "grown", "data": {"files": "judged.parquet", "clicks": {"log": "log.parquet"}}, "measures": ["ndcg_10"],
        "rankers": {"one": {"kind": "least_squares"}, "f": {"kind": "column", "feature": "f"}},
        "segments": {"baseline": "f", "by": ["popularity"], "fewest": 2},
    })  # fmt: skip

    def told():
        outcome = run(config)
        note = MlflowClient(tracking_uri()).get_run(outcome.run_id).data.tags["mlflow.note.content"]
        file = Path(MlflowClient(tracking_uri()).download_artifacts(outcome.run_id, "segments.csv")).read_text()
        return outcome, note, file

    keep_log(0)
    first, note, file = told()
    assert told()[1:] == (note, file)
    keep_log(4000)
    grown, _, more = told()
    assert grown.run_id == first.run_id
    assert found(grown, type(first.evidence[0])) != first.evidence[0]
    assert more != file
    keep_log(9000)
    with monkeypatch.context() as patch:
        patch.setattr(Tracker, "summary", lambda *_: (_ for _ in ()).throw(OSError("the server is gone")))
        with pytest.raises(OSError, match="the server is gone"):
            run(config)
    repaired, last, most = told()
    assert most != more
    assert last == description(repaired, report_page(repaired))
    page = Path(MlflowClient(tracking_uri()).download_artifacts(first.run_id, "report.html")).read_text()
    assert page == next(Path(".lambdaflow/reports").glob("*/report.html")).read_text(), "and is told again where that broke off"
    assert told()[1:] == (last, most)


def test_an_interrupted_sweep_goes_on_where_it_was(prefect_server, workplace, monkeypatch):
    fit, calls = ltr.LambdaRank.fit, []

    def interrupted(self, *sets, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(ltr.LambdaRank, "fit", interrupted)
    with pytest.raises(BaseException):  # noqa: B017, PT011
        run(parse(CONFIG))
    client = MlflowClient(tracking_uri())
    experiment = client.get_experiment_by_name(EXPERIMENT).experiment_id
    assert not client.search_runs([experiment], "attributes.status = 'RUNNING'")
    monkeypatch.setattr(ltr.LambdaRank, "fit", lambda self, *sets, **more: calls.append(1) or fit(self, *sets, **more))
    monkeypatch.setattr(ltr.LambdaMART, "fit", lambda *_: pytest.fail("trained again"))
    outcome = run(parse(CONFIG))
    assert calls == [1]
    assert len(children(outcome)[1]) == 5


def test_numbers_are_the_same_with_two_workers(finished, workplace, prefect_server):
    from prefect.task_runners import ThreadPoolTaskRunner

    outcome = run.with_options(task_runner=ThreadPoolTaskRunner(max_workers=2))(parse({**CONFIG, "workers": 2}))
    assert outcome.models == finished[1].models


def test_expectations_fail_the_run_with_the_number(prefect_server, workplace, capsys):
    expected = {**CONFIG, "optimality": None, "expect": {"values": {"trees": {"test_ndcg_10": 0.1}}}}
    path = workplace / "c.yaml"
    path.write_text(json.dumps(expected))
    assert main(["run", str(path)]) == 1
    error = capsys.readouterr().err
    assert "error: trees: test_ndcg_10 is 0." in error
    assert "expected 0.1" in error
    assert "Traceback" not in error
    client = MlflowClient(tracking_uri())
    runs = client.search_runs([client.get_experiment_by_name(EXPERIMENT).experiment_id])
    assert not [r for r in runs if r.info.status == "RUNNING"]
    assert [r for r in runs if r.info.status == "FAILED" and "expected" in r.data.tags["lambdaflow.error"]]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("1 qid:1 1:1\n0 qid:1 1:x\n", "a.txt, line 2: '0 qid:1 1:x': a field must be FEATURE:VALUE"),
        ("".join(f"0 qid:{k} 1:1\n0 qid:{k} 1:2\n" for k in range(9)), "no document anywhere has a label above 0"),
        ("".join(f"31 qid:{k} 1:1\n0 qid:{k} 1:2\n" for k in range(9)), "label 31"),
        ("", "a.txt: the file is empty"),
        ("1 qid:1 1:1\n0 qid:1 1:2\n0 qid:2 1:1\n", "2 queries cannot be cut into 3 parts"),
    ],
)
def test_bad_data_end_a_run_with_one_clear_line(prefect_server, workplace, capsys, content, says):
    (workplace / "a.txt").write_text(content)
    (workplace / "c.yaml").write_text("data: {files: a.txt}\n")
    assert main(["run", "c.yaml"]) == 1
    error = capsys.readouterr().err
    assert says in error
    assert "Traceback" not in error
    assert not (workplace / "mlruns" / "mlflow.db").exists() or "RUNNING" not in error


def test_clicks_are_asked_for_where_a_measure_needs_them(prefect_server, workplace, capsys):
    (workplace / "a.txt").write_text("".join(f"{k % 3} qid:{k // 4} 1:{k}\n" for k in range(60)))
    (workplace / "c.yaml").write_text("data: {files: a.txt}\nmeasures: [cndcg_3]\n")
    assert main(["run", "c.yaml"]) == 1
    assert "cndcg_3 reads the label source 'click'" in capsys.readouterr().err


def test_models_are_found_by_run_even_without_their_cell_folder(finished):
    _, runs = children(finished[1])
    outcome = finished[1]
    best = find_model(outcome.run_id)
    assert best.digest == MlflowClient(tracking_uri()).get_run(outcome.run_id).data.tags[DIGEST]
    cell = runs[0]
    folder = CellFolder.of(cell.data.tags[CELL_KEY]).path
    moved = folder.with_name("moved")
    folder.rename(moved)
    try:
        assert find_model(cell.info.run_id[:12]).digest == cell.data.tags[DIGEST]
    finally:
        moved.rename(folder)


def test_compare_reads_stored_values_and_scores_nothing(finished, capsys, monkeypatch):
    monkeypatch.setattr(ltr, "evaluate", lambda *_, **__: pytest.fail("scored again"))
    run_id = finished[1].run_id
    assert main(["compare", f"{run_id}:trees", f"{run_id}:linear", "--measure", "ndcg@10", "--json"]) == 0
    out, err = capsys.readouterr()
    (pair,) = json.loads(out)["pairs"]
    known = next(p for p in finished[1].standings.pairs if (p.measure, p.a, p.b) == ("ndcg_10", "trees", "linear"))
    assert pair["p"] == pytest.approx(known.p)
    assert 0 < pair["randomisation_p"] <= 1
    assert "Paired tests" in err
    assert main(["compare", f"{run_id}:trees", f"{run_id}:trees"]) == 1
    assert main(["compare", f"{run_id}:trees", f"{run_id}:linear", "--measure", "p@5"]) == 1
    assert "not all of these runs have p_5; they share: ndcg_3, ndcg_10" in capsys.readouterr().err


def test_evaluate_gives_the_runs_number_and_explains_another_tools(finished, capsys):
    outcome = finished[1]
    (folder,) = Path(".lambdaflow/generated").iterdir()
    best = outcome.models[MlflowClient(tracking_uri()).get_run(outcome.run_id).data.tags["best"]]
    command = ["evaluate", "--model", outcome.run_id, "--data", str(folder / "test.parquet"), "--measure", "ndcg_10", "--json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["ndcg_10"]["value"] == pytest.approx(best.metrics["test_ndcg_10"])
    assert main([*command, "--convention", "sklearn"]) == 0
    row = json.loads(capsys.readouterr().out)["ndcg_10"]
    assert {shift["rule"] for shift in row["shifts"]} == {"gain", "empty", "threshold"}
    assert row["theirs"] == row["shifts"][-1]["value"] != row["value"]
    assert main([*command, "--convention", "excel"]) == 1
    assert "unknown convention 'excel'; choose from: lightgbm" in capsys.readouterr().err


def test_optimality_of_a_stored_net(finished, capsys):
    run_id = finished[1].run_id
    _, runs = children(finished[1])
    linear = next(r for r in runs if r.data.params["ranker"] == "linear").info.run_id
    (folder,) = Path(".lambdaflow/generated").iterdir()
    command = ["optimality", "--data", str(folder / "train.parquet"), "--epsilon", "0.1", "--delta", "0.1", "--measure", "ndcg"]
    assert main([*command, "--model", linear, "-o", "page.html", "--json"]) == 0
    certificates = json.loads(capsys.readouterr().out)
    assert [c["directions"] for c in certificates] == [22, 22, 22, 22, 24]
    own = found(finished[1], Certificates).found[0]
    assert certificates[0]["verdict"] == own.verdict
    assert certificates[0]["value"] == pytest.approx(own.value, abs=1e-12)
    assert Path("page.html").read_text().count("<svg") == 5
    Path("weights.csv").write_text("f1,0.5\nf2,-1  # two features\n")
    assert main([*command, "--model", "weights.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["verdict"] == "not"
    Path("weights.csv").write_text("f99:0.5\n")
    assert main([*command, "--model", "weights.csv"]) == 1
    assert "weights.csv: line 1: 'f99:0.5' is not a weight" in capsys.readouterr().err
    assert run_id


def test_labels_above_errs_scale_are_refused_before_training(prefect_server, workplace, capsys, monkeypatch):
    monkeypatch.setattr(ltr.LambdaMART, "fit", lambda *_: pytest.fail("trained"))
    (workplace / "a.txt").write_text("".join(f"{k % 5} qid:{k // 4} 1:{k}\n" for k in range(60)))
    (workplace / "c.yaml").write_text("data: {files: a.txt}\nmeasures: [err]\nconventions: {max_label: 2}\n")
    assert main(["run", "c.yaml"]) == 1
    assert "ERR: label 4 is above max_label 2" in capsys.readouterr().err


def test_rankers_on_the_scores_of_others(prefect_server, workplace):
    rankers = {
        "trees": CONFIG["rankers"]["trees"], "linear": CONFIG["rankers"]["linear"],
        "stacked": {"kind": "lambdarank", "epochs": 5, "on": ["trees", "linear"]},
        "mixed": {"kind": "combination", "on": ["linear", "trees"], "measure": "ndcg_3"},
    }  # fmt: skip
    outcome = run(parse({"name": "stack", "data": CONFIG["data"], "rankers": rankers, "measures": ["ndcg_3"], "seed": 3}))
    _, runs = children(outcome)
    cells = {child.data.params["ranker"]: child for child in runs}
    stacked, mixed = (find_model(cells[name].info.run_id, None) for name in ("stacked", "mixed"))
    assert stacked.names == mixed.names == tuple(f"f{k}" for k in range(1, 13))
    assert stacked.top.names == ("trees", "linear")
    assert mixed.top.names == ("linear", "trees")
    assert 0 <= mixed.top.alpha <= 1
    assert "crossings" in report_page(outcome).read_text()
    rows = outcome.standings.rows
    assert rows["mixed"].cells["ndcg_3"].n == rows["trees"].cells["ndcg_3"].n
    again = run(parse({"name": "stack", "data": CONFIG["data"], "rankers": rankers, "measures": ["ndcg_3"], "seed": 3}))
    assert again.models == outcome.models


def write_asked(path, n=90):
    """A table whose queries have a language, a text and from 2 to 9 documents; the feature tells good documents apart in German only."""
    rng = np.random.default_rng(1)
    rows = []
    for q in range(n):
        language = "de" if q % 2 else "en"
        for d in range(int(rng.integers(2, 10))):
            label = int(rng.integers(0, 3))
            good = label + 0.3 * rng.normal() if language == "de" else rng.normal()
            rows.append((f"q{q}", f"q{q}-{d}", label, language, f"{language} {q} <b>", good, rng.normal()))
    schema = ["query", "document", "label", "language", "text", "f1", "f2"]
    pl.DataFrame(rows, schema=schema, orient="row").write_csv(path)


def test_segments_of_the_test_queries_and_the_most_changed_ones(prefect_server, workplace, capsys):
    write_asked(workplace / "asked.csv")
    written = {
        "name": "asked",
        "data": {"files": "asked.csv", "attributes": ["language", "text"], "folds": 3},
        "rankers": {"flat": {"kind": "lambdarank", "epochs": 1, "learning_rate": 1e-9}, "squares": {"kind": "least_squares"}},
        "measures": ["ndcg_3"],
        "segments": {"baseline": "flat", "queries": 3},
    }
    (workplace / "c.yaml").write_text(json.dumps(written))
    assert main(["run", "c.yaml", "--json"]) == 0
    out, err = capsys.readouterr()
    printed = json.loads(out)
    run_id = printed["run_id"]
    assert "NDCG@10 against flat" in err
    client = MlflowClient(tracking_uri())
    segments = pl.read_csv(client.download_artifacts(run_id, "segments.csv"))
    by_language = segments.filter(pl.col("attribute") == "language").rows_by_key("value", named=True, unique=True)
    assert by_language["de"]["queries"] == by_language["en"]["queries"] == 45
    assert by_language["de"]["holm_p"] < 0.001
    told = {(row["attribute"], row["value"]): row["difference"] for row in printed["segments"]["rows"]}
    assert told["language", "de"] == pytest.approx(by_language["de"]["difference"])
    (changed,) = printed["segments"]["changed"]
    assert changed["ranker"] == "squares"
    assert changed["n_harmed"] + changed["n_helped"] + changed["n_same"] == sum(row["n"] for row in by_language.values())
    assert by_language["de"]["difference"] > 0.05
    assert by_language["de"]["holm_p"] == pytest.approx(2 * by_language["de"]["p"]), "two languages"
    assert segments.filter(pl.col("attribute") == "documents")["queries"].sum() == 90
    changed = pl.read_csv(client.download_artifacts(run_id, "changed-queries.csv"))
    assert changed["effect"].to_list() == ["harmed"] * 3 + ["helped"] * 3
    assert changed["text"][0].startswith(changed["attribute.language"][0])
    page = next(workplace.glob(".lambdaflow/reports/*/report.html")).read_text()
    for part in ("<h2>Segments</h2>", "squares on language=de +", "Most helped", "&lt;b&gt;", " ranks above "):
        assert part in page

    written["segments"]["measure"] = "cndcg_3"
    (workplace / "d.yaml").write_text(json.dumps(written))
    assert main(["run", "d.yaml"]) == 1
    assert "cndcg_3 reads the label source 'click'" in capsys.readouterr().err

    assert main(["compare", f"{run_id}:flat", f"{run_id}:squares", "--measure", "ndcg_10", "--queries", "2", "--json"]) == 0
    out, err = capsys.readouterr()
    (listed,) = json.loads(out)["changed"]
    assert [row["query"] for row in listed["harmed"]] == changed["query"][:2].to_list()
    assert listed["helped"][0]["difference"] == pytest.approx(changed["difference"][3])
    assert "queries helped" in err
    assert main(["compare", f"{run_id}:flat", f"{run_id}:squares", "--queries", "2"]) == 0
    assert re.search(r"squares \w+ against flat \w+, NDCG@10:", capsys.readouterr().out), "the run's own measure"
    assert main(["compare", f"{run_id}:flat", f"{run_id}:squares", "--queries", "0"]) == 1
    assert "--queries 0: the number of queries to list, 1 or more" in capsys.readouterr().err


def test_what_may_stand_on_what():
    data, trees = CONFIG["data"], CONFIG["rankers"]["trees"]
    for rankers, says in (
        (
            {"a": trees, "b": {"kind": "lambdarank", "on": ["c"]}},
            "rankers.b.on: 'c' is not a ranker on the data's own features; choose from: a",
        ),
        ({"a": trees, "b": {"kind": "combination", "on": ["a"]}}, "a combination mixes two rankers"),
        (
            {"a": trees, "b": {"kind": "combination", "on": ["a", "a"], "best": 2}},
            "best: a combination mixes two rankers, the best cell of each",
        ),
        ({"a": trees, "b": {"kind": "average", "on": ["a"], "best": "many"}}, "best: input should be a valid integer"),
        ({"a": trees, "b": {"kind": "average", "on": ["a"], "best": 10**9}}, "best: input should be less than or equal to 1000"),
        ({"a": trees, "b": {"kind": "average", "on": 5}}, "rankers.b"),
        ({"a": {**trees, "best": 2}}, "best: it counts cells of each ranker that `on` names, and there is no `on`"),
        ({"a": trees, "b": {"kind": "average", "on": ["a"], "best": 9}}, "rankers.b.best: 9 cells of a, which has"),
        (
            {"a": trees, "a 2": trees, "b": {"kind": "average", "on": ["a", "a 2"], "best": 2}},
            "rankers.b.(on: two of the scores|best: 2 cells)",
        ),
    ):
        with pytest.raises(ValueError, match=says):
            parse({"data": data, "rankers": rankers})
    swept = {**trees, "sweep": {"learning_rate": [0.1, 0.2, 0.3]}}
    config = parse({"data": data, "rankers": {"a": swept, "b": {"kind": "average", "on": ["a"], "best": 2}}})
    assert [column.feature for column in config.rankers["b"].of] == list(config.rankers["b"].inputs) == ["a", "a 2"]
    with pytest.raises(ValueError, match="two of the scores would have the same name; rename"):
        parse({"data": data, "rankers": {"a": swept, "a 2": swept, "b": {"kind": "average", "on": ["a", "a 2"], "best": 2}}})
    stacked = {"a": trees, "b": trees, "s": {"kind": "lambdarank", "on": ["a", "b"]}}
    config = parse({"data": data, "rankers": stacked, "guarantee": {"baseline": "a"}})
    assert config.guarantee.guaranteed(config) == ["b"]
    with pytest.raises(ValueError, match="guarantee: 's' is chosen on half of the validation queries"):
        parse({"data": data, "rankers": stacked, "guarantee": {"baseline": "a", "rankers": ["s"]}})


def test_a_run_is_a_row_a_baseline_and_comparable(prefect_server, workplace):
    queries = make_queries(80, seed=7)
    rng = np.random.default_rng(0)
    lines, judged, run_lines = [], [], []
    for q, (a, b) in enumerate(itertools.pairwise(queries.offsets.tolist())):
        for k in range(a, b):
            features = " ".join(f"{f + 1}:{value}" for f, value in enumerate(queries.features[k]))
            lines.append(f"{queries.labels[k]:g} qid:q{q} {features} #docid = d{k}")
            judged.append(f"q{q} 0 d{k} {queries.labels[k]:g}")
            if k % 7 or b - a == 1:
                run_lines.append(f"q{q} Q0 d{k} 1 {queries.labels[k] + 3 * rng.normal():.4f} bm25")
    Path("a.txt").write_text("\n".join(lines))
    Path("qrels").write_text("\n".join(judged))
    Path("bm25.run").write_text("\n".join(run_lines))
    rankers = {
        "bm25": {"kind": "column", "feature": "bm25"},
        "trees": {"kind": "lambdamart", "n_trees": 5, "n_leaves": 4, "min_docs_in_leaf": 5},
        "mixed": {"kind": "combination", "on": ["bm25", "trees"]},
    }
    guarantee = {"baseline": "bm25", "rankers": ["trees"], "tiers": ["ndcg_3", "map"], "margin": 0.1}
    common = {"rankers": rankers, "guarantee": guarantee, "measures": ["ndcg_3", "map"]}
    outcome = run(parse({"name": "beside", "data": {"files": "a.txt", "runs": {"bm25": "bm25.run"}}, **common}))
    assert set(outcome.standings.rows) == {"bm25", "trees", "mixed"}
    assert found(outcome, Guarantees).rankers[0].baseline == "bm25"
    assert "documents with a score" in report_page(outcome).read_text()
    champion, challenger = (find_values(f"{outcome.run_id[:8]}:{name}") for name in ("bm25", "trees"))
    assert compare_stored([champion, challenger], ["ndcg_3"], 0.05).rows
    assert scorecards([champion, challenger], ["ndcg_3", "map"], 0.05, 0.95)
    alone = run(parse({"name": "alone", "data": {"qrels": "qrels", "runs": {"bm25": "bm25.run"}}, **common}))
    assert "judged but in no run: unranked, as in trec_eval, and not learned from" in report_page(alone).read_text()
    beside, by_itself = (one.standings.rows["bm25"].cells for one in (outcome, alone))
    assert [beside[m].mean for m in ("ndcg_3", "map")] == [by_itself[m].mean for m in ("ndcg_3", "map")]
    with pytest.raises(DataError, match=r"rankers\.bm25: no feature 'bm25' in the data; choose from: f1, f2"):
        run(parse({"name": "without", "data": {"files": "a.txt"}, **common}))


def test_a_ranker_that_cannot_be_trained_takes_nothing_with_it(prefect_server, workplace, capsys, monkeypatch):
    """What there is is reported, what failed is named with what hung on it, the code is 1, and the next run tries it again."""
    learn = LeastSquares.learn

    def fails(self, queries, features, watch):
        if self.ridge == 7:
            raise ValueError("no such inverse")
        return learn(self, queries, features, watch)

    monkeypatch.setattr(LeastSquares, "learn", fails)
    (workplace / "a.txt").write_text(FORTY_QUERIES)
    (workplace / "c.yaml").write_text("""
data: {files: a.txt}
rankers:
  bad: {kind: least_squares, ridge: 7}
  good: {kind: least_squares, sweep: {ridge: [1, 7]}}
  mix: {kind: least_squares, on: [bad, good]}
segments: {baseline: bad}
measures: [ndcg_10]
""")
    assert main(["run", "c.yaml", "--json"]) == 1
    out, err = capsys.readouterr()
    written = json.loads(out)
    assert set(written["models"]) == {"good"}
    assert [failure["what"] for failure in written["failed"]] == ["bad", "good · ridge=7", "mix", "segments"]
    assert "error: bad: no such inverse" in err
    assert "error: mix: it learns from the scores of bad" in err
    assert "Report: " in err
    run = MlflowClient(tracking_uri()).get_run(written["run_id"])
    assert run.info.status == "FAILED"
    assert json.loads(run.data.tags[CHOSEN]).keys() == {"good"}
    page = next(workplace.glob(".lambdaflow/reports/*/report.html")).read_text()
    assert "no such inverse" in page
    monkeypatch.setattr(LeastSquares, "learn", learn)
    assert main(["run", "c.yaml", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["run_id"] == written["run_id"]
    assert set(again["models"]) == {"bad", "good", "mix"}
    run = MlflowClient(tracking_uri()).get_run(written["run_id"])
    assert run.info.status == "FINISHED"
    children = [child for child in tracked() if child.tags.get(PARENT) == run.info.run_id]
    assert len(children) == 3, "bad and good at 7 are one cell"
    monkeypatch.setattr(LeastSquares, "learn", lambda *_: (_ for _ in ()).throw(ValueError("nothing at all")))
    assert main(["run", "c.yaml", "--fresh"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "error: nothing at all"


def test_evidence_that_comes_to_nothing_takes_nothing_with_it(prefect_server, workplace, capsys, monkeypatch):
    learn = LeastSquares.learn

    def fails(self, queries, features, watch):
        if queries.n_queries == 40:
            raise ValueError("no such inverse")
        return learn(self, queries, features, watch)

    (workplace / "a.txt").write_text(FORTY_QUERIES)
    (workplace / "c.yaml").write_text("""
data: {files: a.txt}
rankers: {a: {kind: least_squares}, b: {kind: least_squares, ridge: 7}}
refit: true
segments: {baseline: a}
measures: [ndcg_10]
""")
    with monkeypatch.context() as patch:
        patch.setattr(LeastSquares, "learn", fails)
        assert main(["run", "c.yaml", "--json"]) == 1
    out, err = capsys.readouterr()
    written = json.loads(out)
    assert set(written["models"]) == {"a", "b"}
    assert written["failed"] == [{"what": "refit", "why": "no such inverse"}]
    assert "segments" in written
    assert "refit" not in written
    assert "error: refit: no such inverse" in err
    page = next(workplace.glob(".lambdaflow/reports/*/report.html")).read_text()
    assert "no such inverse" in page
    assert MlflowClient(tracking_uri()).get_run(written["run_id"]).info.status == "FAILED"
    assert main(["run", "c.yaml", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["run_id"] == written["run_id"]
    assert again["models"] == written["models"]
    assert "refit" in again
    assert "failed" not in again
    (page,) = workplace.glob(".lambdaflow/reports/*/report.html")
    before = page.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(Refit, "gather", lambda *_: (_ for _ in ()).throw(ValueError("refit: the registry forgot it")))
        assert main(["run", "c.yaml"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "error: refit: the registry forgot it"
    assert page.read_bytes() == before, "what a finished run says stays"
    assert MlflowClient(tracking_uri()).get_run(written["run_id"]).info.status == "FINISHED"


def test_expected_numbers_are_those_that_are_reported(prefect_server, workplace):
    """Of what a guarantee took, and of rankers on the scores of others; a measure of another source is compared; a fold may have no value."""
    rankers = {
        "plain": {"kind": "lambdamart", "n_trees": 6, "n_leaves": 6, "min_docs_in_leaf": 5},
        "graded": {**CONFIG["rankers"]["graded"], "sweep": {"objective.1.weight": [0.0, 0.9]}},
        "mix": {"kind": "combination", "on": ["plain", "graded"]},
    }
    written = {
        **CONFIG, "rankers": rankers, "optimality": None, "microscope": None, "measures": ["ndcg_10", "ndcg@10:click"],
        "guarantee": {**CONFIG["guarantee"], "baseline": "plain", "margin": 0.5},
    }  # fmt: skip
    first = run(parse(written))
    means = {name: row.cells["ndcg_10"].mean for name, row in first.standings.rows.items()}
    values = {name: {"test_ndcg_10": round(means[name], 6)} for name in ("graded", "mix")}
    again = run(parse({**written, "expect": {"values": values, "tolerance": 1e-5}}))
    assert again.standings.rows["mix"].cells["ndcg_10"].mean == means["mix"]
    with pytest.raises(ExpectationError, match=r"mix: test_ndcg_10 is 0\.\d+, expected 0\.1 ± 0"):
        run(parse({**written, "expect": {"values": {"mix": {"test_ndcg_10": 0.1}}}}))
    compared = compare_stored([find_values(f"{first.run_id}:{name}") for name in ("plain", "graded")], [])
    assert "ndcg_10_click" in compared.measures
    assert [pair.measure for pair in compared.pairs if "click" in pair.measure]
