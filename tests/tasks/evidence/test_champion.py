"""Three runs and one registered model: the first is champion, a better one takes its place, a worse one remains challenger."""

import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import mlflow
import numpy as np
import polars as pl
import pytest
from mlflow.tracking import MlflowClient

from flows.cli import main
from flows.pipeline import run
from tasks.config.reading import parse
from tasks.evidence import champion as champion_module
from tasks.records import ConfigError
from tasks.report.publish import report_page
from tasks.tracking import registry
from tasks.tracking.lookup import find_columns, find_model
from tasks.tracking.registry import version_of
from tasks.tracking.runs import find_run
from tasks.tracking.store import fluent, tracking_uri

pytestmark = pytest.mark.usefixtures("undrawn")

CONFIG = {
    "name": "nightly",
    "data": {"generate": {"queries": [60, 30, 120], "documents": 15, "features": 8, "sessions": 5}},
    "measures": ["ndcg_10", "map"],
    "champion": {"name": "search", "tiers": ["ndcg_10"]},
}
GOOD = {"trees": {"kind": "lambdamart", "n_trees": 30, "n_leaves": 8, "min_docs_in_leaf": 5, "learning_rate": 0.1}}
POOR = {"trees": {"kind": "lambdamart", "n_trees": 1, "n_leaves": 2, "learning_rate": 0.1, "query_share": 1, "feature_share": 1}}


def configured(rankers, **changes):
    return parse({**CONFIG, "rankers": rankers, **changes})


def challenge(rankers, **changes):
    """What became of the best model of a run."""
    (found,) = run(configured(rankers, **changes)).evidence
    return found


def test_only_a_better_model_becomes_champion(prefect_server, workplace):
    first = challenge(POOR)
    assert (first.verdict, first.promoted, first.champion, first.version) == ("first", True, None, "1")
    better = run(configured(GOOD))
    (found,) = better.evidence
    assert found.verdict == "better"
    assert found.promoted
    (tier,) = found.tiers
    assert tier.lower_bound > 0
    assert tier.margin == 0, "the last measure has to rise"
    worse = challenge(POOR, seed=2)
    assert (worse.verdict, worse.promoted) == ("worse", False)
    client = MlflowClient(tracking_uri())
    assert client.get_model_version_by_alias("search", "champion").version == 2
    assert client.get_model_version_by_alias("search", "challenger").version == 1
    noted = client.get_model_version("search", "2")
    assert noted.tags["verdict"] == "better"
    assert "ndcg_10 +" in noted.description
    assert "is the new champion: better than the champion (version 1)" in (workplace / report_page(better)).read_text()
    assert find_model("models:/search@champion").digest == better.models["trees"].digest
    again = challenge(GOOD)
    assert (again.verdict, again.version) == ("same", "2")
    client.delete_model_version("search", "2")
    alone = challenge(POOR, seed=2)
    assert (alone.verdict, alone.promoted, alone.version) == ("first", True, "1")
    assert list(client.get_registered_model("search").aliases) == ["champion"], "it is challenger no longer"


def test_a_finished_run_that_is_repeated_later_says_the_same_everywhere(prefect_server, workplace):
    """It is held against the champion of today; what made its model champion once stands below, and today's challenger stays it."""
    first, latest = run(configured(POOR)), run(configured(GOOD))
    worse = challenge(POOR, seed=2)
    client = MlflowClient(tracking_uri())
    client.set_registered_model_alias("search", "challenger", latest.evidence[0].version)
    again = run(configured(POOR))
    assert again.run_id == first.run_id
    (found,) = again.evidence
    assert (found.verdict, worse.verdict) == ("worse", "worse")
    stored = client.get_run(first.run_id)
    assert stored.data.tags["champion"] == "search 1: worse"
    assert found.why in stored.data.tags["mlflow.note.content"]
    kept = Path(client.download_artifacts(first.run_id, "report.html")).read_text("utf-8")
    assert kept == (workplace / report_page(again)).read_text("utf-8")
    assert f"version 1 of search, was not promoted (version {latest.evidence[0].version} remains challenger): worse" in kept
    version = client.get_model_version("search", "1")
    assert version.tags["verdict"] == "worse"
    assert version.description.endswith("Before: there was no champion")
    same = run(configured(GOOD))
    assert same.evidence[0].verdict == "same"
    assert client.get_run(same.run_id).data.tags["champion"] == "search 2: better", "how it became champion stays"
    for said in ("worse", "open", "worse"):
        version_of("search", "challenger").note({"verdict": said}, said)
    described = client.get_model_version("search", latest.evidence[0].version).description
    assert described.startswith("worse\n\nBefore: open\n\nBefore: ")
    for k in range(10):
        version_of("search", "challenger").note({}, f"{k} {'x' * 500}")
    assert len(client.get_model_version("search", latest.evidence[0].version).description) <= 4000
    assert client.get_model_version_by_alias("search", "challenger").version == int(latest.evidence[0].version)


def test_a_model_that_another_run_made_champion_meanwhile_is_the_one_to_beat(prefect_server, workplace, monkeypatch):
    run(configured(POOR))
    run(configured({"trees": {**GOOD["trees"], "n_trees": 60}}))
    client, met = MlflowClient(tracking_uri()), []
    client.set_registered_model_alias("search", "champion", "1")

    def held_against(champion, *rest):
        found = original(champion, *rest)
        met.append((champion.number, found.verdict))
        client.set_registered_model_alias("search", "champion", "2")  # as if the other run had ended just now
        return found

    original = champion_module._held_against
    monkeypatch.setattr(champion_module, "_held_against", held_against)
    found = challenge(GOOD)
    assert met[0] == ("1", "better")
    assert (met[1][0], found.champion, found.promoted) == ("2", "2", False)
    assert client.get_model_version_by_alias("search", "champion").version == 2


def test_of_several_tiers_the_candidate_is_the_best_by_their_rule():
    """By what selects, the ranker that gains on clicks and harms nothing was not held against the champion in ten of twelve nights."""

    def trained(name, **metrics):
        return SimpleNamespace(
            ranker=name, result=SimpleNamespace(metrics={f"valid_{key}": value for key, value in metrics.items()})
        )

    judged = trained("judged", ndcg_3=0.810, cndcg_3=0.50, ndcg_10=0.90)
    graded = trained("graded", ndcg_3=0.795, cndcg_3=0.60, ndcg_10=0.89)
    harmful = trained("harmful", ndcg_3=0.780, cndcg_3=0.90, ndcg_10=0.89)
    undefined = trained("undefined", ndcg_10=0.95)
    rankers = [judged, graded, harmful, undefined]

    def candidate(tiers, of=rankers):
        return champion_module.Champion(name="search", tiers=tiers, margin=0.02).candidate(of, "valid_ndcg_10").ranker

    assert candidate(["ndcg_3", "cndcg_3"]) == "graded"
    assert candidate(["ndcg_10"]) == candidate(["ndcg_3"]) == "undefined", "of one tier, by what selects"
    assert candidate(["ndcg_3", "cndcg_3"], [judged, harmful]) == "judged"
    assert candidate(["map", "ndcg_3"]) == "judged", "a tier that is undefined for all decides nothing"


def test_what_ranks_today_may_be_the_champion_to_beat(prefect_server, workplace):
    today = challenge({"today": {"kind": "column", "feature": "f2"}})
    assert (today.verdict, today.promoted) == ("first", True)
    new = challenge({"today": {"kind": "column", "feature": "f2"}, **GOOD})
    assert (new.verdict, new.champion, new.promoted) == ("better", "1", True)
    assert find_model("models:/search@champion").kind == "lambdamart"


def test_data_that_have_moved_are_reported_and_a_model_that_cannot_read_them_is_not_compared(prefect_server, workplace):
    rng = np.random.default_rng(0)

    def write(folder, shift, width):
        folder.mkdir(exist_ok=True)
        for role in ("train", "valid", "test"):
            rows = [
                f"{rng.integers(0, 3)} qid:{role}{q} " + " ".join(f"{k + 1}:{rng.normal() + shift:.4f}" for k in range(width))
                for q in range(20)
                for _ in range(8)
            ]
            (folder / f"{role}.txt").write_text("\n".join(rows) + "\n")
        return {role: [str(folder / f"{role}.txt")] for role in ("train", "valid", "test")}

    run(configured(POOR, data=write(workplace / "a", 0.0, 3)))
    moved = challenge(POOR, data=write(workplace / "b", 5.0, 3))
    assert {entry.name for entry in moved.drift[:3]} == {"f1", "f2", "f3"}
    assert moved.drift[2].index > 1
    narrow = challenge(POOR, data=write(workplace / "c", 0.0, 2))
    assert narrow.verdict == "not comparable"
    assert not narrow.promoted
    assert "reads 'f3', which these data do not have; if this lasts, move the alias champion to another version" in narrow.why


def test_a_champion_reads_categories_by_their_names(prefect_server, workplace):
    rng = np.random.default_rng(3)
    worth = dict(zip("abcdefgh", (3, 0, 4, 1, 3, 0, 2, 4), strict=True))
    trees = {"trees": {"kind": "lambdamart", "n_trees": 15, "n_leaves": 8, "min_docs_in_leaf": 5, "cat_l2": 0.1, "cat_smooth": 0.1}}

    def night(sites, kind=str, **changes):
        shares = np.where(np.array(list(sites)) == "a", 0.01, 1.0)
        rows = [(q, s, rng.normal()) for q in range(120) for s in rng.choice(list(sites), 10, p=shares / shares.sum())]
        lines = [f"q{q},{round(np.clip(worth[s] + 0.5 * x, 0, 4))},{kind(s)},{x:.4f}" for q, s, x in rows]
        (workplace / "now.csv").write_text("\n".join(["query,label,site,x", *lines]) + "\n")
        return challenge(trees, data={"files": "now.csv", "categorical": ["site"], **changes})

    assert night("bcdefgh").verdict == "first"
    found = night("abcdefgh")  # a rare site that comes first, so that every other one has another place
    (tier,) = found.tiers
    assert abs(tier.difference) < 0.05
    assert next(entry.index for entry in found.drift if entry.name == "site") < 0.25
    numbers = night("abcdefgh", ord, categorical=[])
    assert numbers.verdict == "not comparable"
    assert "reads 'site' as categories, which holds numbers here (data.categorical)" in numbers.why


def test_the_same_trees_over_other_categories_are_another_version(prefect_server, workplace):
    rng = np.random.default_rng(3)
    rows = [(q, k, rng.normal()) for q in range(60) for k in rng.integers(0, 5, 8)]
    trees = {"trees": {"kind": "lambdamart", "n_trees": 9, "min_docs_in_leaf": 3, "cat_l2": 0.1, "cat_smooth": 0.1}}
    found = []
    for sites in ("abcde", "vwxyz", "vwxyz"):
        lines = [f"q{q},{(k * 2) % 5},{sites[k]},{x:.4f}" for q, k, x in rows]
        (workplace / "now.csv").write_text("\n".join(["query,label,site,x", *lines]) + "\n")
        found.append(challenge(trees, data={"files": "now.csv", "categorical": ["site"]}))
    assert [one.version for one in found] == ["1", "2", "2"]
    assert find_columns("models:/search/2").categories == {"site": tuple("vwxyz")}


def test_the_same_trees_over_features_of_other_names_are_another_version(prefect_server, workplace):
    """Two headers exchanged, and one renamed: the arrays of the model are the same, and what it reads is not."""
    rng = np.random.default_rng(3)
    rows = [(q, rng.integers(0, 5), *rng.normal(size=3)) for q in range(60) for _ in range(8)]
    rows = [(q, label, a + label, b, c) for q, label, a, b, c in rows]
    trees = {"trees": {"kind": "lambdamart", "n_trees": 9, "min_docs_in_leaf": 3}}
    found = []
    for names in ("a,b,c", "b,a,c", "a,z,c", "b,a,c", "a,b,c"):
        lines = [",".join(map(str, row)) for row in rows]
        (workplace / "now.csv").write_text("\n".join([f"query,label,{names}", *lines]) + "\n")
        found.append(challenge(trees, data={"files": "now.csv"}))
    assert [one.version for one in found] == ["1", "2", "3", "2", "1"]
    assert [one.verdict == "same" for one in found] == [False] * 4 + [True]
    assert "reads 'b', which these data do not have" in found[2].why
    for version, names in (("1", ("a", "b", "c")), ("2", ("b", "a", "c")), ("3", ("a", "z", "c"))):
        assert find_model(f"models:/search/{version}").names == names


def test_a_champion_is_one_model(prefect_server, workplace):
    parts = [workplace / f"S{k}.txt" for k in range(1, 6)]
    for k, part in enumerate(parts):
        part.write_text("".join(f"{d % 2} qid:{k}{q} 1:{d} 2:{q}\n" for q in range(6) for d in range(6)))
    with pytest.raises(ValueError, match="5 folds"):
        run(configured(POOR, data={"parts": [str(part) for part in parts]}))
    with pytest.raises(ConfigError, match=r"champion\.name"):
        configured(POOR, champion={"name": "../search"})


def test_one_defined_test_query_compares_nothing(prefect_server, workplace):
    rng = np.random.default_rng(1)
    for name, first, n, relevant in (("train", 0, 30, 30), ("valid", 100, 10, 10), ("test", 200, 3, 1)):
        lines = []
        for query in range(first, first + n):
            for label in rng.integers(0, 4, 6) if query < first + relevant else np.zeros(6, int):
                lines.append(f"{label} qid:{query} 1:{label + rng.normal():.3f} 2:{rng.normal():.3f}")
        (workplace / f"{name}.txt").write_text("\n".join(lines) + "\n")
    data = {role: f"{role}.txt" for role in ("train", "valid", "test")}
    assert challenge(POOR, data=data).verdict == "first"
    found = challenge({"today": {"kind": "column", "feature": "f1"}}, data=data)
    assert (found.verdict, found.promoted) == ("not comparable", False)
    assert "ndcg_10 is defined on 1 of 3 test queries, and a paired test needs 2" in found.text()


def test_a_champion_is_not_met_on_queries_that_it_learned_from(prefect_server, workplace):
    """The second run cuts the same queries anew, so that the first learned from most of its test queries; a refitted one from all."""
    rng = np.random.default_rng(3)
    lines = ["query,label,a,b"]
    for query in range(180):
        a, b, noise = rng.normal(size=(3, 8))
        lines += [f"q{query},{int(np.clip(x + n + 1, 0, 3))},{x:.3f},{y:.3f}" for x, y, n in zip(a, b, noise, strict=True)]
    (workplace / "judged.csv").write_text("\n".join(lines) + "\n")
    overfitted = {"trees": {**GOOD["trees"], "min_docs_in_leaf": 1, "n_leaves": 31, "stop_on": None}}
    files = {"data": {"files": "judged.csv"}}
    assert challenge(overfitted, **files).verdict == "first"
    found = challenge(GOOD, **files, seed=2)
    assert found.verdict in ("open", "better")
    too_few = r"; their ndcg_10 differs on \d of \d test queries; a test needs 30, or 20 if these are at least half"
    left_out = r"version 1\); left out: \d+ of 36 test queries, which the champion learned from or was chosen on"
    assert re.search(left_out + (too_few if found.verdict == "open" else "") + "$", found.why)
    MlflowClient(tracking_uri()).set_registered_model_alias("search", "champion", "1")
    refitted = run(configured(GOOD, **files, seed=2, champion=None, refit={"name": "search"}))
    version = refitted.evidence[0].versions["trees"].split()[0]
    MlflowClient(tracking_uri()).set_registered_model_alias("search", "champion", version)
    found = challenge(GOOD, **files, seed=3)
    assert found.verdict == "not comparable"
    assert f"version {version}) learned from, or was chosen on, all 36 test queries; keep some test queries unseen" in found.why


def test_a_champion_is_not_met_on_queries_that_it_learned_from_under_other_ids(prefect_server, workplace):
    """Queries of files with sizes are called by the file and their place in it: with another date in the file's name, or one query more in front, a
    champion that knew three quarters of the test queries by heart was better than any challenger, every night."""
    rng = np.random.default_rng(3)
    lines = []
    for _ in range(181):
        x, other = rng.normal(size=(2, 8))
        labels = np.clip(x + rng.normal(size=8) + 1, 0, 3).astype(int)
        lines.append([f"{label} 1:{a:.3f} 2:{b:.3f}\n" for label, a, b in zip(labels, x, other, strict=True)])

    def night(name, queries):
        (workplace / name).write_text("".join(line for query in queries for line in query))
        (workplace / f"{name}.query").write_text("8\n" * len(queries))
        return {"data": {"files": name}}

    overfitted = {"trees": {**GOOD["trees"], "n_trees": 100, "min_docs_in_leaf": 1, "n_leaves": 31, "stop_on": None, "patience": 0}}
    better = {"linear": {"kind": "least_squares"}}
    assert challenge(overfitted, **night("first.txt", lines[1:])).verdict == "first"
    for name in ("second.txt", "first.txt"):
        found = challenge(better, **night(name, lines))
        assert found.verdict in ("open", "better"), name
        assert int(re.search(r"left out: (\d+) of \d+ test queries", found.why)[1]) > 15, name
        MlflowClient(tracking_uri()).set_registered_model_alias("search", "champion", "1")


def test_a_champion_that_may_have_learned_from_the_test_queries_is_not_met(prefect_server, workplace):
    """Its run lost the file that says so, was deleted for good, or never was: with the first it met all test queries, with others no run ended."""
    run(configured(POOR))
    client = MlflowClient(tracking_uri())
    first = client.get_model_version("search", "1").run_id

    def lose_file():
        (workplace / client.get_run(first).info.artifact_uri.removeprefix("file://") / registry.LEARNED).unlink()

    def delete_run():
        client.delete_run(first)
        client._tracking_client.store._hard_delete_run(first)  # as `mlflow gc` does

    def register_otherwise():
        with fluent():
            folder = mlflow.artifacts.download_artifacts("models:/search/1", dst_path=str(workplace / "copy"))
            other = client.create_model_version("search", Path(folder).as_uri())
        assert not client.get_model_version("search", other.version).run_id
        client.set_registered_model_alias("search", "champion", other.version)

    for happens in (lose_file, delete_run, register_otherwise):
        happens()
        found = challenge(GOOD)
        assert (found.verdict, found.promoted) == ("not comparable", False)
        assert (
            f"version {found.champion}) may have learned from these test queries: its run in MLflow does not record its own, or was deleted"
            in found.why
        )
    client.set_registered_model_alias("search", "champion", found.version)
    assert challenge(GOOD).verdict == "same"


def test_refitting_a_run_leaves_the_champion_alone(prefect_server, workplace, capsys):
    run(configured(POOR))
    better = run(configured(GOOD))
    client = MlflowClient(tracking_uri())
    client.set_registered_model_alias("search", "champion", "1")  # the owner went back to it
    capsys.readouterr()
    assert main(["refit", better.run_id, "--register", "whole"]) == 0
    assert "champion" not in capsys.readouterr().err
    assert client.get_model_version_by_alias("search", "champion").version == 1
    assert len(client.search_model_versions("name = 'whole'")) == 1


def test_a_run_that_was_killed_once_its_model_was_champion_says_so_when_it_goes_on(prefect_server, workplace, monkeypatch):
    client = MlflowClient(tracking_uri())
    for version, rankers, said in (("1", POOR, "there was no champion"), ("2", GOOD, "better than the champion (version 1)")):
        with monkeypatch.context() as killed:
            killed.setattr(registry, "remove_alias", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
            with pytest.raises(RuntimeError, match="killed"):
                run(configured(rankers))
        assert client.get_model_version_by_alias("search", "champion").version == int(version)
        outcome = run(configured(rankers))
        (found,) = outcome.evidence
        assert (found.version, found.promoted, found.why) == (version, True, said)
        assert len(found.tiers) == (version == "2")
        stored = client.get_run(outcome.run_id)
        assert stored.data.tags["champion"] == f"search {version}: {found.verdict}"
        assert "is the new champion" in (workplace / report_page(outcome)).read_text()
        evidence = Path(client.download_artifacts(outcome.run_id, "champion.json")).read_text()
        assert f'"verdict": "{found.verdict}"' in evidence
        assert client.get_model_version("search", version).description.count(said) == 1
    client.set_registered_model_alias("search", "challenger", "1")
    (again,) = run(configured(GOOD)).evidence
    assert again.verdict == "same"
    assert challenge(GOOD, measures=["ndcg_10"]).verdict == "same", "another run came to the same model"
    assert Path(client.download_artifacts(outcome.run_id, "champion.json")).read_text() == evidence, "how it became champion stays"


@pytest.mark.long
def test_a_promotion_that_is_told_again_leaves_the_challenger_of_today(prefect_server, workplace, monkeypatch):
    run(configured(POOR))
    with monkeypatch.context() as killed:
        killed.setattr(registry, "remove_alias", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
        with pytest.raises(RuntimeError, match="killed"):
            run(configured(GOOD))
    later = challenge({"trees": {**POOR["trees"], "n_leaves": 3}})
    assert (later.version, later.promoted) == ("3", False)
    (found,) = run(configured(GOOD)).evidence
    assert (found.verdict, found.version) == ("better", "2")
    client = MlflowClient(tracking_uri())
    assert client.get_model_version_by_alias("search", "challenger").version == 3
    assert client.get_model_version_by_alias("search", "champion").version == 2


def test_a_champion_that_has_no_score_for_missing_values_stops_no_night(prefect_server, workplace):
    rng = np.random.default_rng(1)
    files = {}
    for k, (role, missing) in enumerate(
        (("train", 0.0), ("valid", 0.0), ("test", 0.0), ("train", 0.2), ("valid", 0.2), ("test", 0.2))
    ):
        x = rng.normal(size=(200, 2))
        y = np.clip(np.round(x[:, 0] + 1.5 + 0.3 * rng.normal(size=200)), 0, 3)
        x[rng.random(x.shape) < missing] = np.nan
        table = pl.DataFrame({"query": [f"{k}-{row // 10}" for row in range(200)], "label": y, "x1": x[:, 0], "x2": x[:, 1]})
        table.write_parquet(f"{k}.parquet")
        files.setdefault(bool(missing), {})[role] = f"{k}.parquet"
    first = challenge({"linear": {"kind": "ranksvm"}}, data=files[False])
    assert first.promoted
    tonight = challenge({"trees": {**GOOD["trees"], "n_trees": 5}}, data=files[True])
    assert (tonight.verdict, tonight.promoted, tonight.version) == ("not comparable", False, "2")
    assert tonight.why == (
        "the champion (version 1) cannot score these data: feature 'x1' is missing, and ranksvm has no score for that; to go on, move the alias "
        "champion to another version"
    )
    assert version_of("search", "challenger").number == "2"


@pytest.mark.long
def test_a_champion_whose_files_are_damaged_stops_no_night(prefect_server, workplace):
    challenge(POOR)
    (profile,) = Path("mlruns").rglob("profile.json")
    profile.write_text(profile.read_text()[:100])
    assert challenge(GOOD).drift == ()
    for damaged, told in (("{", "model.json"), ('{"format": 99}', "")):
        number = version_of("search", "champion").number
        for file in Path("mlruns").rglob("artifacts/model/model.json"):
            file.write_text(damaged)
        found = challenge(GOOD, seed=4 + len(damaged))
        assert (found.verdict, found.promoted) == ("not comparable", False)
        assert f"the champion (version {number}) cannot be read: models:/search/{number}: " in found.why
        assert told in found.why
        assert "/tmp" not in found.why


def test_a_champion_whose_files_are_gone_stops_no_night_and_is_registered_anew(prefect_server, workplace):
    first = challenge(GOOD)
    assert first.version == "1"
    shutil.rmtree(workplace / "mlruns" / "artifacts")
    other = challenge(POOR)
    assert (other.verdict, other.promoted) == ("not comparable", False)
    assert "(version 1) cannot be read: models:/search/1: " in other.why
    assert "move the alias champion to another version" in other.why
    again = run(configured(GOOD))
    assert again.evidence[0].version == "3", "what was lost is made anew from the cells that are kept"
    assert find_model("models:/search/3").digest == again.models["trees"].digest
    assert find_run(again.run_id).download("config.yaml").is_file()
    assert find_model(f"{again.run_id}:trees").digest == again.models["trees"].digest
