"""A folder that was moved or copied is used where it is, and nothing is written where it was."""

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import mlflow
import pytest
import yaml

from tasks.tracking.moved import follow_move
from tasks.tracking.store import opened
from tasks.tracking.tracker import Tracker
from tests.conftest import own_environment

CONFIG = {
    "name": "moved",
    "data": {"files": "judged.csv"},
    "rankers": {"linear": {"kind": "least_squares"}},
    "measures": ["ndcg_10"],
    "champion": {"name": "search", "tiers": ["ndcg_10"]},
}


def test_addresses_follow_the_folder_and_stay_in_place_otherwise(workplace, monkeypatch, capsys):
    project = workplace / "a project"
    project.mkdir()
    monkeypatch.chdir(project)
    tracker = Tracker("x", "key")
    tracker.text("one", "one.txt")
    assert follow_move(project / "mlruns/mlflow.db") is None
    (workplace / "link").symlink_to(project)
    assert follow_move(workplace / "link/mlruns/mlflow.db") is None
    project.rename(workplace / "moved")
    monkeypatch.chdir(workplace / "moved")
    again = Tracker("x", "key")
    assert again.run_id == tracker.run_id
    assert "mlruns/ was in " in capsys.readouterr().err
    here = (workplace / "moved/mlruns/artifacts").as_uri()
    assert again.client.get_run(again.run_id).info.artifact_uri == f"{here}/{again.run_id}/artifacts"
    assert again.client.get_experiment(again.experiment_id).artifact_location == here
    opened()
    assert not capsys.readouterr().err


def test_a_store_that_is_copied_from_the_template_is_as_mlflow_makes_one(tmp_path, monkeypatch):
    """Up to what names the folder and the time."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = {}
    for name in ("made", "copied"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        client, experiment = opened()
        client.create_run(experiment)
        own = [(one.name, one.artifact_location) for one in client.search_experiments()]
        assert all(str(tmp_path / name / "mlruns") in location for _, location in own)
        with closing(sqlite3.connect("mlruns/mlflow.db")) as store:
            tables = store.execute("select name, sql from sqlite_master order by name").fetchall()
        made[name] = ([(kind, location.replace(f"/{name}/", "/")) for kind, location in own], tables)
        assert [path.name for path in (tmp_path / "cache" / "lambdaflow").iterdir()] == [f"mlflow-{mlflow.__version__}.db"]
    assert made["made"] == made["copied"]


def test_artifacts_that_lie_elsewhere_stay_there(workplace, monkeypatch, capsys):
    """Also where their folder is called as ours is."""
    store = (workplace / "shared/mlruns/artifacts").as_uri()
    monkeypatch.setenv("LAMBDAFLOW_ARTIFACTS", store)
    client, number = opened()
    assert follow_move(workplace / "mlruns/mlflow.db") is None
    assert client.get_experiment(number).artifact_location == store
    assert not capsys.readouterr().err
    monkeypatch.setenv("LAMBDAFLOW_ARTIFACTS", str(workplace / "other"))
    for _ in range(2):
        opened()
    told = (
        f"LAMBDAFLOW_ARTIFACTS={workplace / 'other'} is for a new store: artifacts of this one go to {store}, as when it was made\n"
    )
    assert capsys.readouterr().err == told


def test_a_folder_for_artifacts_may_be_a_relative_one(workplace, monkeypatch, capsys):
    monkeypatch.setenv("LAMBDAFLOW_ARTIFACTS", "ours/kept")
    client, number = opened()
    assert client.get_experiment(number).artifact_location == str(workplace / "ours/kept")
    opened()
    assert not capsys.readouterr().err


@pytest.mark.parametrize("without_mlflows_own", [False, True])
def test_a_move_is_followed_by_an_experiment_that_was_renamed(workplace, monkeypatch, without_mlflows_own):
    project = workplace / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    tracker = Tracker("x", "key")
    tracker.client.rename_experiment(tracker.experiment_id, "ours")
    if without_mlflows_own:
        with closing(sqlite3.connect("mlruns/mlflow.db")) as store, store:
            store.execute("delete from experiments where experiment_id = 0")
    project.rename(workplace / "moved")
    monkeypatch.chdir(workplace / "moved")
    client, number = opened()
    here = (workplace / "moved/mlruns/artifacts").as_uri()
    assert {client.get_experiment(one).artifact_location for one in (number, tracker.experiment_id)} == {here}
    assert client.get_run(tracker.run_id).info.artifact_uri.startswith(here)
    assert follow_move(workplace / "moved/mlruns/mlflow.db") is None


def files_in(folder):
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def command(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", *arguments],
        cwd=folder,
        env=own_environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.long
def test_a_moved_project_goes_on_and_a_copy_leaves_the_original_alone(tmp_path):
    """`test_addresses_follow_the_folder_and_stay_in_place_otherwise` stays in the normal suite."""
    first = tmp_path / "first"
    first.mkdir()
    rows = "\n".join(f"{q},{d},{(q * d) % 3},{(q * d) % 7},{d}" for q in range(30) for d in range(8))
    (first / "judged.csv").write_text(f"query,document,label,a,b\n{rows}\n")
    (first / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    run = json.loads(command(first, "run", "c.yaml", "--json").stdout)["run_id"]
    moved = first.rename(tmp_path / "moved")
    assert "mlruns/ was in" in command(moved, "run", "c.yaml", "--set", "seed=2").stderr
    for model in (run, "models:/search@champion"):
        command(moved, "predict", "--model", model, "--data", "judged.csv", "-o", "scores.csv")
    shutil.rmtree(moved / ".lambdaflow/cells")
    command(moved, "predict", "--model", run, "--data", "judged.csv", "-o", "scores.csv")
    command(moved, "run", "c.yaml")
    assert not first.exists()
    copy = shutil.copytree(moved, tmp_path / "copy")
    before = files_in(moved)
    command(copy, "run", "c.yaml", "--set", "seed=3")
    command(copy, "predict", "--model", run, "--data", "judged.csv", "-o", "scores.csv")
    assert files_in(moved) == before
    with sqlite3.connect(copy / "mlruns/mlflow.db") as store:
        assert store.execute("select count(*) from runs where artifact_uri not like ?", (f"%{copy}/%",)).fetchone() == (0,)


def test_an_empty_database_has_not_moved(workplace):
    (workplace / "mlruns").mkdir()
    with sqlite3.connect(workplace / "mlruns/mlflow.db") as store:
        store.execute("create table experiments (name text, artifact_location text)")
    assert follow_move(workplace / "mlruns/mlflow.db") is None
