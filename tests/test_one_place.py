"""A measure, a ranker, a way of counting clicks and a kind of evidence that are added in one place each, from outside, are everywhere:
in the configuration, in training and evaluation, in MLflow, on the terminal and on the page."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from mlflow.tracking import MlflowClient

import ltr
from ltr.metrics import measure
from ltr.metrics.measure import MEASURES
from tasks.config.click_labels import register_clicks
from tasks.config.run_config import register_evidence, register_ranker
from tasks.evidence import Segments
from tests.conftest import own_environment, server_of_the_session

ROOT = Path(__file__).parents[1]
MAIN = "import sys, tests.toys; from flows.cli import main; sys.exit(main(sys.argv[1:]))"
CONFIG = """
name: toys
data:
  files: data.txt
  folds: 3
  clicks: {log: log.csv, clicks: first}
rankers:
  near: {kind: centroid, sweep: {share: [0.5, 1.0]}}
  trees: {kind: lambdamart, n_trees: 5, n_leaves: 4, min_docs_in_leaf: 2, objective: [{measure: rbp}]}
measures: [ndcg_3, rbp@3]
select: rbp
wins: {measure: ndcg}
"""
PROFILE = "session,interaction,query,document,rank,click\n"


def python(folder, code, *arguments, server=None):
    environment = {**own_environment(), **(server or {}), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def ran(prefect_server, tmp_path_factory):
    """The folder of a finished run, and what it printed."""
    folder = tmp_path_factory.mktemp("toys")
    rng = np.random.default_rng(0)
    rows, shown = [], [PROFILE]
    for query in range(1, 31):
        values = rng.normal(size=(8, 3))
        for rank, (first, second, third) in enumerate(values, start=1):
            label = int(np.clip(first + 0.3 * rng.normal() + 1, 0, 3))
            rows.append(f"{label} qid:{query} 1:{first:.4f} 2:{second:.4f} 3:{third:.4f} #docid = d{rank}\n")
            shown.append(f"s{query},1,{query},d{rank},{rank},{'1' if rank == 2 else '2' if rank == 5 else ''}\n")
    (folder / "data.txt").write_text("".join(rows))
    (folder / "log.csv").write_text("".join(shown))
    (folder / "toys.yaml").write_text(CONFIG)
    done = python(folder, MAIN, "run", "toys.yaml", "--json", server=server_of_the_session())
    assert done.returncode == 0, done.stderr
    return folder, done, json.loads(done.stdout)


def test_numbers_tags_and_tables_have_them(ran):
    folder, done, printed = ran
    assert set(printed["models"]) == {"near", "trees"}
    client = MlflowClient(f"sqlite:///{folder / 'mlruns' / 'mlflow.db'}")
    (experiment,) = (one for one in client.search_experiments() if one.name != "Default")
    runs = client.search_runs([experiment.experiment_id])
    (parent,) = (run for run in runs if "mlflow.parentRunId" not in run.data.tags)
    wins = {name: int(parent.data.tags[f"wins.{name}"]) for name in ("near", "trees")}
    assert sum(wins.values()) == 30
    assert all({"test_rbp", "test_rbp_3", "test_ndcg"} <= set(run.data.metrics) for run in runs if run is not parent)
    assert {run.data.params.get("share") for run in runs} >= {"0.5", "1.0"}
    for name, count in wins.items():
        assert f"{name} is best on {count} queries." in done.stdout + done.stderr


def test_the_page_has_a_section_and_a_column(ran):
    (page,) = ran[0].glob(".lambdaflow/reports/*/report.html")
    html = page.read_text()
    assert "<h2>Wins</h2>" in html
    assert "<th>wins</th>" in html
    assert "RBP" in html


def test_clicks_are_counted_in_the_new_way(ran):
    code = """
import tests.toys
from tasks.config.click_labels import ClickLog
from tasks.data.clicks import click_tables
log = ClickLog(log="log.csv", interaction="interaction", clicks="first", more={"last": {"clicks": "last"}})
for name, table in click_tables(log)[0].items():
    print(name, *sorted(set(table.filter(table["clicks"] > 0)["document"])))
"""
    done = python(ran[0], code)
    assert done.stdout.splitlines() == ["click d2", "last d5"], done.stderr


def test_a_saved_model_is_loaded_and_scored(ran):
    folder = ran[0]
    model = next(path for path in sorted(folder.glob(".lambdaflow/**/model.json")) if '"kind": "centroid"' in path.read_text())
    done = python(folder, MAIN, "evaluate", "--model", str(model.parent), "--data", "data.txt", "--measure", "rbp@5")
    assert done.returncode == 0, done.stderr
    assert "rbp_5" in done.stdout


def test_the_schema_of_deployments_knows_them():
    code = (
        "import json, tests.toys; from tasks.config.run_config import RunConfig; print(json.dumps(RunConfig.model_json_schema()))"
    )
    schema = json.loads(python(ROOT, code).stdout)
    assert "wins" in schema["properties"]
    assert "Centroid" in json.dumps(schema["properties"]["rankers"])
    assert "first" in schema["$defs"]["ClickLog"]["properties"]["clicks"]["enum"]


@pytest.mark.parametrize(
    ("register", "taken", "message"),
    [
        (measure.register, [MEASURES["map"]], "a measure 'map' already"),
        (register_ranker, [ltr.RankSVM], "there is a kind of ranker 'ranksvm' already"),
        (register_clicks, ["last", pl.col("order") > 0], "named 'last' already"),
        (register_evidence, [Segments], "a run has a key 'segments' already"),
    ],
)
def test_a_name_that_is_taken_is_refused(register, taken, message):
    with pytest.raises(ValueError, match=message):
        register(*taken)
