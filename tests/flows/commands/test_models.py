"""What is done with models on the command line."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import ltr
from flows.cli import main
from tasks.records import Columns
from tasks.store.cells import write_columns
from tasks.tracking import lookup, registry
from tests.conftest import make_queries


def test_explain_says_why_a_document_stands_above_another(workplace, capsys):
    queries = make_queries(20, seed=4)
    rows = [
        ",".join(map(str, (q, f"d{k}", int(queries.labels[k]), *queries.features[k])))
        for q, (a, b) in enumerate(pairwise(queries.offsets))
        for k in range(a, b)
    ]
    Path("d.csv").write_text("\n".join(["query,document,label,f1,f2,f3,f4", *rows]) + "\n")
    ltr.save(ltr.LambdaMART(n_trees=5, min_docs_in_leaf=5).fit(queries), "m")
    common = ["explain", "--model", "m", "--data", "d.csv"]
    assert main([*common, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["queries"] == 20
    names = [str(q) for q in range(20) if np.diff(queries.offsets)[q] > 3]
    assert main([*common, "--query", names[0], "--above", "1", "-o", "why.svg", "--json"]) == 0
    pair = json.loads(capsys.readouterr().out)
    assert pair["above"]["rank"] == 1
    assert sum(reason["contribution"] for reason in pair["why"]["reasons"]) == pytest.approx(pair["difference"])
    assert Path("why.svg").read_text().startswith("<svg")
    assert main([*common, "--above", "1"]) == 1
    assert "--above, --below and -o need --query" in capsys.readouterr().err
    assert main([*common, "--query", "1", "--segment", "a=b"]) == 1


def test_evaluate_says_that_a_model_was_trained_by_other_rules(workplace, capsys):
    queries = make_queries(20, seed=4, clicks=False)
    lines = [
        f"{int(queries.labels[k])} qid:{q} " + " ".join(f"{j + 1}:{x}" for j, x in enumerate(queries.features[k]))
        for q, (a, b) in enumerate(pairwise(queries.offsets))
        for k in range(a, b)
    ]
    Path("d.txt").write_text("\n".join(lines) + "\n")
    rules = ltr.Conventions(gain="linear", threshold=1)
    ltr.save(ltr.LeastSquares(conventions=rules).fit(queries), "m")
    command = ["evaluate", "--model", "m", "--data", "d.txt", "--measure", "ndcg_10"]
    own = ["--set", "conventions.threshold=1", "--set", "conventions.gain=linear"]
    assert main(command) == 0
    told = "the model was trained with threshold 1, gain linear and is measured with threshold 2, gain exp2; to measure with its own conventions: "
    assert f"{told}{' '.join(own)}\n" in capsys.readouterr().err
    assert main([*command, *own]) == 0
    assert "its own conventions" not in capsys.readouterr().err
    assert main([*command, "--set", "measures=[map]"]) == 1
    assert "error: --set measures=[map]: nothing here reads measures" in capsys.readouterr().err
    assert main(["export", "--model", "m", "--to", "linear", "-o", "w.json", "--set", "label=grade"]) == 1
    assert "export: --set label=grade says how the files of --data are read, and there is no --data" in capsys.readouterr().err


def test_a_pair_is_wrong_by_the_models_rules_and_those_that_are_set(workplace, capsys):
    """Labels 3, 2, 0, 3, 2 in the order of the scores: by gains of 2^label − 1 the 2 above the 3 costs most, by the labels themselves the 0."""
    labels, xs = [3, 2, 0, 3, 2], [9, 8, 7, 6, 5]
    rows = [f"q,d{k + 1},{label},{x}" for k, (label, x) in enumerate(zip(labels, xs, strict=True))]
    Path("d.csv").write_text("\n".join(["query,document,label,x", *rows]))
    queries = ltr.Queries(np.array(xs, np.float32)[:, None], np.array(labels, float), [0, 5], names=("x",))
    for rule, ends in (("exp2", ("d2", "d4")), ("linear", ("d3", "d5"))):
        other = {"exp2": "linear", "linear": "exp2"}[rule]
        ltr.save(ltr.LeastSquares(conventions=ltr.Conventions(gain=other)).fit(queries).moved(np.array([1.0])), other)
        ltr.save(ltr.LeastSquares(conventions=ltr.Conventions(gain=rule)).fit(queries).moved(np.array([1.0])), rule)
        for asked in (["--model", rule], ["--model", other, "--set", f"conventions.gain={rule}"]):
            assert main(["explain", *asked, "--data", "d.csv", "--query", "q", "--json"]) == 0
            pair = json.loads(capsys.readouterr().out)
            assert (pair["above"]["name"], pair["below"]["name"]) == ends


def test_optimality_is_of_one_measure(workplace, capsys):
    assert main(["optimality", "--model", "m", "--data", "d.csv", "--measure", "ndcg_3", "--measure", "map"]) == 1
    assert (
        "error: optimality: --measure ndcg_3 and map: a model can be certified for only one measure at a time"
        in capsys.readouterr().err
    )


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize("given", ["--epsilon 2", "--epsilon 0", "--delta 1", "--delta nan", "--epsilon=-0.5"])
def test_optimality_needs_shares_between_0_and_1(workplace, capsys, given):
    """What stood there were pydantic's words, after the data had been read."""
    assert main(["optimality", "--model", "m", "--data", "d.txt", *given.split()]) == 1
    told = given.replace("=", " ")
    assert capsys.readouterr().err == f"error: optimality: {told}: must be between 0 and 1, such as 0.01\n"


def test_optimality_says_what_evaluate_says_of_files_and_rules(workplace, capsys):
    queries = make_queries(30, n_features=2, seed=1)
    rules = ltr.Conventions(gain="linear")
    ltr.save(ltr.LeastSquares(conventions=rules).fit(replace(queries, names=("a", "b"))), workplace / "m")
    of_query = np.repeat(np.arange(30), np.diff(queries.offsets))
    frame = pl.DataFrame({"query": of_query, "label": queries.labels, "a": queries.features[:, 0], "b": queries.features[:, 1]})
    pl.concat([frame[1:], frame[:1]]).write_csv("d.csv")
    said = []
    for command in (["evaluate", "--measure", "ndcg"], ["optimality", "--measure", "ndcg", "--epsilon", "0.1", "--delta", "0.1"]):
        assert main([*command, "--model", "m", "--data", "d.csv"]) == 0
        said.append([line for line in capsys.readouterr().err.splitlines() if line.startswith(("1 query", "the model"))])
    assert said[0] == said[1]
    assert said[0][0] == "1 query in several places of a file; the documents of each were brought together"
    assert said[0][1].startswith("the model was trained with gain linear and is measured with gain exp2;")


@pytest.mark.parametrize("command", ["predict", "evaluate", "export"])
def test_a_champion_is_one_version_however_often_a_command_asks(workplace, monkeypatch, capsys, command):
    """A night that promoted between two questions had documents scored by one version's trees with the places of the other's categories: what
    was relevant came out last."""
    rng = np.random.default_rng(0)
    versions, models = {}, {}
    for number, known in (("1", ("a", "c")), ("2", ("a", "b", "c"))):
        place = rng.integers(0, len(known), 300)
        labels = np.array([3.0 * (known[k] == "c") for k in place])
        queries = ltr.Queries(place[:, None].astype(np.float32), labels, np.arange(0, 301, 10), names=("site",))
        models[number] = ltr.LambdaMART(n_trees=3, min_docs_in_leaf=2, categorical=["site"], stop_on=None).fit(queries)
        folder = workplace / f"v{number}" / "artifacts" / "model"
        ltr.save(models[number], folder)
        write_columns(folder, Columns(categories={"site": known}))
        versions[number] = SimpleNamespace(name="search", version=number, run_id="", tags={})
    champion = ["1"]
    client = SimpleNamespace(
        get_model_version_by_alias=lambda *_: versions[champion[0]], get_model_version=lambda _, number: versions[number]
    )
    monkeypatch.setattr(registry, "opened", lambda: (client, None))
    monkeypatch.setattr("mlflow.artifacts.download_artifacts", lambda address, dst_path: str(workplace / f"v{address[-1]}"))

    def then_promoted(ask):
        def asked(*given, **how):
            found = ask(*given, **how)
            champion[0] = "2"
            return found

        return asked

    for name in ("find_columns", "find_model"):
        monkeypatch.setattr(lookup, name, then_promoted(getattr(lookup, name)))
    pl.DataFrame({"query": ["q"] * 3, "site": ["a", "b", "c"], "label": [0, 1, 2]}).write_csv("x.csv")
    more = {
        "predict": ["--data", "x.csv", "-o", "s.csv"],
        "evaluate": ["--data", "x.csv", "--measure", "ndcg", "--json"],
        "export": ["--to", "lightgbm", "-o", "m.txt"],
    }[command]
    assert main([command, "--model", "models:/search@champion", *more]) == 0
    out = capsys.readouterr().out
    scores = models["1"].predict(np.array([[0], [np.nan], [1]], np.float32))
    if command == "predict":
        assert pl.read_csv("s.csv")["score"].to_list() == scores.tolist()
    elif command == "evaluate":
        expected = ltr.evaluate([0, 1, 2], scores, [0, 3], "ndcg")["ndcg"][0]
        assert json.loads(out)["ndcg"]["value"] == pytest.approx(expected)
    else:
        assert "'site' as numbers: 0 for a, 1 for c" in out
