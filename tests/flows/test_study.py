"""A study of two small data sets end to end."""

import json

import mlflow
import pytest

from flows.cli import main
from tasks.tracking.tracker import tracking_uri

STUDY = """
name: small
datasets:
  one: {data: {generate: {queries: [30, 15, 20], documents: 10, features: 8, sessions: 5}}}
  two: {data: {generate: {queries: [30, 15, 25], documents: 10, features: 8, sessions: 5, seed: 2}}}
baselines: [RankSVM]
rankers:
  RankSVM: {kind: ranksvm}
  ListNet: {kind: listwise}
measures: [ndcg_3, map]
"""


@pytest.mark.usefixtures("prefect_server")
def test_a_study_is_a_table_of_runs(workplace, capsys):
    (workplace / "s.yaml").write_text(STUDY)
    assert main(["run", "s.yaml", "--json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out.splitlines()[-1])
    assert set(found["models"]) == {f"{d}/{r}" for d in ("one", "two") for r in ("RankSVM", "ListNet")}
    assert "micro-average" in printed.err
    run = mlflow.tracking.MlflowClient(tracking_uri()).get_run(found["run_id"])
    assert run.info.status == "FINISHED"
    assert {"ListNet/map", "RankSVM/ndcg_3"} <= set(run.data.metrics)
    assert {"run.one", "run.two"} <= set(run.data.tags)
    assert main(["run", "s.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["models"] == found["models"]
