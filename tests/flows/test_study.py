"""A study of two small data sets end to end."""

import json
import re

import mlflow
import numpy as np
import polars as pl
import pytest

import ltr
from flows.cli import main
from tasks.tracking.store import tracking_uri

pytestmark = pytest.mark.usefixtures("undrawn")

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
    found = json.loads(printed.out)
    assert set(found["models"]) == {f"{d}/{r}" for d in ("one", "two") for r in ("RankSVM", "ListNet")}
    assert "micro-average" in printed.err
    assert [run["names"]["ListNet"] for run in found["runs"].values()] == [
        [f"{run['run_id'][:8]}:ListNet:1"] for run in found["runs"].values()
    ]
    run = mlflow.tracking.MlflowClient(tracking_uri()).get_run(found["run_id"])
    assert run.info.status == "FINISHED"
    assert {"ListNet/map", "RankSVM/ndcg_3"} <= set(run.data.metrics)
    assert {"run.one", "run.two"} <= set(run.data.tags)
    assert main(["run", "s.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["models"] == found["models"]
    (page,) = workplace.glob(".lambdaflow/reports/small-*/study.html")
    linked = re.findall(r'<td><a href="([^"]+)">(.*?)</a></td><td><code>(.*?)</code>', page.read_text())
    assert [name for _, name, _ in linked] == [*found["runs"]]
    for place, name, called in linked:
        assert (page.parent / place).is_file()
        assert called == ", ".join(f"{found['runs'][name]['run_id'][:8]}:{ranker}" for ranker in ("RankSVM", "ListNet"))
        assert f"  {name}: {called}\n" in printed.err


@pytest.mark.usefixtures("prefect_server")
def test_other_data_are_another_study(workplace, capsys):
    """The numbers of the first stay with it, and so does its page; so they do where a data set fails the next time."""
    table = pl.DataFrame({"query": np.repeat(np.arange(40), 5), "a": np.random.default_rng(0).random(200)})
    told = []
    for labels in (np.arange(200) % 5 % 3, (table["a"] > 0.5).to_numpy().astype(int), np.zeros(200)):
        table.with_columns(label=labels).write_parquet("two.parquet")
        (workplace / "s.yaml").write_text(
            STUDY.replace(
                "{generate: {queries: [30, 15, 25], documents: 10, features: 8, sessions: 5, seed: 2}}", "{files: two.parquet}"
            )
        )
        main(["run", "s.yaml", "--json"])
        told.append(json.loads(capsys.readouterr().out)["run_id"])
        if len(told) == 1:
            (page,) = workplace.glob(f".lambdaflow/reports/small-{told[0][:8]}/study.html")
            first = page.read_bytes()
    client = mlflow.tracking.MlflowClient(tracking_uri())
    found = [client.get_run(run_id) for run_id in told]
    assert len(set(told)) == 3
    assert [run.info.status for run in found] == ["FINISHED", "FINISHED", "FAILED"]
    assert found[0].data.tags["run.one"] == found[1].data.tags["run.one"]
    assert found[0].data.tags["run.two"] != found[1].data.tags["run.two"]
    assert page.read_bytes() == first


@pytest.mark.usefixtures("prefect_server")
def test_mlflow_has_the_marks_against_the_baselines_of_now(workplace, capsys):
    with_noise = STUDY.replace("rankers:", "rankers:\n  noise: {kind: column, feature: f8}").replace("20]", "120]")
    notes = []
    for baselines in ("[RankSVM]", "[noise]"):
        (workplace / "s.yaml").write_text(with_noise.replace("[RankSVM]", baselines))
        main(["run", "s.yaml", "--json"])
        run = mlflow.tracking.MlflowClient(tracking_uri()).get_run(json.loads(capsys.readouterr().out)["run_id"])
        notes.append((run.info.run_id, run.data.tags["mlflow.note.content"]))
    (first, told), (second, now) = notes
    assert first == second
    assert "−" in told
    assert "−" not in now
    assert "+" in now.partition("ListNet")[2]


@pytest.mark.usefixtures("prefect_server")
def test_what_is_repeated_is_one_column(workplace, capsys):
    repeated = STUDY.replace("name: small", "name: small\nrepeat: {data.clicked_pages.seed: [1, 2]}")
    (workplace / "s.yaml").write_text(repeated.replace("sessions: 5}}}", "sessions: 5}, clicked_pages: {per_query: 2}}}"))
    assert main(["run", "s.yaml", "--json"]) == 0
    printed = capsys.readouterr()
    names = {model.partition("/")[0] for model in json.loads(printed.out)["models"]}
    assert names == {"one-1", "one-2", "two"}
    (page,) = workplace.glob(".lambdaflow/reports/small-*/study.html")
    assert "<th>one</th><th>two</th>" in page.read_text()


@pytest.mark.usefixtures("prefect_server")
def test_a_data_set_that_cannot_be_used_leaves_the_others(workplace, capsys):
    (workplace / "s.yaml").write_text(STUDY.replace("two: {data", "lost: {data: {files: nowhere.txt}}\n  two: {data"))
    assert main(["run", "s.yaml", "--json"]) == 1
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert set(found["models"]) == {f"{d}/{r}" for d in ("one", "two") for r in ("RankSVM", "ListNet")}
    assert found["failed"] == [{"what": "lost", "why": "nowhere.txt: no such file"}]
    assert "error: lost: nowhere.txt: no such file" in printed.err
    assert "micro-average" in printed.err
    assert mlflow.tracking.MlflowClient(tracking_uri()).get_run(found["run_id"]).info.status == "FAILED"


@pytest.mark.usefixtures("prefect_server")
def test_a_ranker_that_fails_on_one_data_set_is_missing_there_alone(workplace, capsys, monkeypatch):
    fit = ltr.Listwise.fit

    def fails_on_two(self, queries, *more):
        if queries.n_queries == 31:
            raise ValueError("nothing to learn")
        return fit(self, queries, *more)

    monkeypatch.setattr(ltr.Listwise, "fit", fails_on_two)
    (workplace / "s.yaml").write_text(STUDY.replace("[30, 15, 25]", "[31, 15, 25]"))
    assert main(["run", "s.yaml", "--json"]) == 1
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert set(found["models"]) == {"one/RankSVM", "two/RankSVM", "one/ListNet"}
    assert "error: two: ListNet: nothing to learn" in printed.err
    metrics = mlflow.tracking.MlflowClient(tracking_uri()).get_run(found["run_id"]).data.metrics
    assert "RankSVM/map" in metrics
    assert "ListNet/map" not in metrics
    (page,) = workplace.glob(".lambdaflow/reports/small-*/study.html")
    assert "<td>–</td>" in page.read_text()


@pytest.mark.usefixtures("prefect_server")
def test_where_nothing_came_of_any_the_first_error_is_told(workplace, capsys):
    lost = "datasets: {a: {data: {files: x.txt}}, b: {data: {files: y.txt}}}\nrankers: {r: {kind: ranksvm}}\n"
    (workplace / "s.yaml").write_text(lost)
    assert main(["run", "s.yaml"]) == 1
    assert "error: x.txt: no such file" in capsys.readouterr().err
