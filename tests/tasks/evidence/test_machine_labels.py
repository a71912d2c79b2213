"""Runs measured as people would: weights by rank by hand, what settles a difference, what is refused."""

import json

import numpy as np
import polars as pl
import pytest

import ltr
from flows.cli import main
from tasks.evidence.machine_labels import _weights, by_whole_queries, compared, corrected_runs
from tasks.records import DataError

RULES = ltr.Conventions(gain="linear", threshold=2, ties="docid", empty="zero")


@pytest.fixture
def folder(workplace):
    """Thirty queries of 40 documents, two systems, a machine that is too kind, and people for a third of it all."""
    rng = np.random.default_rng(0)
    people = rng.choice(4, (30, 40), p=[0.5, 0.2, 0.2, 0.1])
    machine = np.clip(people + rng.choice([0, 1], people.shape), 0, 3)
    for name, noise in (("good", 1.0), ("poor", 4.0)):
        scores = people + noise * rng.normal(size=people.shape)
        lines = [f"q{q} Q0 d{d} 0 {scores[q, d]} t\n" for q in range(30) for d in range(40)] + ["q1 Q0 unknown 0 99 t\n"]
        (workplace / f"{name}.run").write_text("".join(lines))
    pairs = [(q, d) for q in range(30) for d in range(40)]
    few = set(rng.permutation(len(pairs))[:400].tolist())
    (workplace / "machine").write_text("".join(f"q{q} 0 d{d} {machine[q, d]}\n" for q, d in pairs))
    (workplace / "all").write_text("".join(f"q{q} 0 d{d} {people[q, d]}\n" for q, d in pairs))
    (workplace / "few").write_text("".join(f"q{q} 0 d{d} {people[q, d]}\n" for k, (q, d) in enumerate(pairs) if k in few))
    return workplace


@pytest.mark.parametrize("measure", ["p@5", "dcg@10", "dcg"])
def test_all_labels_of_people_give_the_measure(folder, measure):
    runs = {name: [folder / f"{name}.run"] for name in ("good", "poor")}
    found = corrected_runs(runs, [folder / "all"], [folder / "machine"], measure, RULES)
    assert [(one.run, one.against) for one in found] == [("good", None), ("poor", None), ("poor", "good")]
    people = {tuple(line.split()[::2]): int(line.split()[3]) for line in (folder / "all").read_text().splitlines()}
    for one in found[:2]:
        rows = [line.split() for line in (folder / f"{one.run}.run").read_text().splitlines()]
        total = 0.0
        for q in range(30):
            ranked = sorted((row for row in rows if row[0] == f"q{q}"), key=lambda row: -float(row[4]))
            for rank, row in enumerate(ranked[: int(measure.partition("@")[2] or 99)], 1):
                label = people.get((row[0], row[2]), 0)
                total += (label >= 2) / 5 if measure == "p@5" else label / np.log2(rank + 1)
        assert one.found.value == pytest.approx(total / 30)
    assert found[2].found.value == pytest.approx(found[1].found.value - found[0].found.value)


def test_a_few_labels_correct_a_kind_machine(folder):
    runs = {name: [folder / f"{name}.run"] for name in ("good", "poor")}
    few, whole = (corrected_runs(runs, [folder / who], [folder / "machine"], "dcg@20", RULES) for who in ("few", "all"))
    for one, truth in zip(few, whole, strict=True):
        assert one.found.interval[0] <= truth.found.value <= one.found.interval[1]
    assert few[0].found.machine > few[0].found.interval[1]
    assert few[2].settled
    assert "people alone" in few[2].text()
    narrow, other, *_ = corrected_runs(runs, [folder / "few"], [folder / "machine"], "p@1", RULES)
    assert narrow.found.interval[1] - narrow.found.interval[0] > 0.05
    assert "with fewer than 50, intervals cover less often than stated" in narrow.text()
    assert "with fewer than 50, intervals cover less often than stated" in other.text()


def test_the_command(folder, capsys):
    asked = ["correct", "good.run", "worse=poor.run", "--people", "few", "--machine", "machine", "--json"]
    assert main([*asked, "--measure", "dcg@20"]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines()[2].startswith("worse − good: -")
    assert [row["run"] for row in json.loads(said.out)] == ["good", "worse", "worse"]
    assert main([*asked, "--measure", "ndcg@10"]) == 1
    assert "measure 'ndcg@10': p@k and dcg@k are sums over documents" in capsys.readouterr().err
    for wrong in ("dcg@0", "dcg@x", "dcg@²", "dcg@1000000"):
        assert main([*asked, "--measure", wrong]) == 1
        assert f"measure '{wrong}': the cutoff of dcg must be a whole number from 1 to 999999" in capsys.readouterr().err


def test_pairs_that_the_machine_did_not_judge_are_refused(folder):
    (folder / "few").write_text("q1 0 d1 2\nq1 0 other 1\n")
    with pytest.raises(DataError, match="query 'q1', document 'other': people judged it and the machine did not"):
        corrected_runs({"a": [folder / "good.run"]}, [folder / "few"], [folder / "machine"], "p@5", RULES)


def test_an_interval_without_width_says_why(folder):
    found = corrected_runs({"a": [folder / "good.run"]}, [folder / "few"], [folder / "all"], "dcg@20", RULES)
    assert found[0].found.interval[1] - found[0].found.interval[0] < 1e-9
    assert "the machine's label determines people's on all of the 196 sampled pairs that count in it" in found[0].text()
    whole = corrected_runs({"a": [folder / "good.run"]}, [folder / "all"], [folder / "all"], "dcg@20", RULES)
    assert "people's labels follow" not in whole[0].text()


def test_what_the_machine_did_not_judge_and_what_a_run_lacks_is_counted(folder):
    lines = (folder / "good.run").read_text().splitlines()
    new = [f"q0 Q0 new{k} 0 {100 + k} t" for k in range(30)]
    (folder / "other.run").write_text("\n".join([*new, *(line for line in lines if not line.startswith(("q1 ", "q2 ")))]))
    (other,) = corrected_runs({"other": [folder / "other.run"]}, [folder / "few"], [folder / "machine"], "dcg@20", RULES)
    assert (other.unjudged, other.absent) == (20, 2)
    assert "(20 documents that the machine did not judge gain nothing)   (2 judged queries not in it count as 0)" in other.text()
    assert other.as_json()["absent"] == 2


def test_people_who_judged_what_a_run_has_high_are_no_random_sample(folder):
    run = sorted(
        (line.split() for line in (folder / "poor.run").read_text().splitlines()), key=lambda row: (row[0], -float(row[4]))
    )
    top = {(row[0], row[2]) for k, row in enumerate(run) if sum(other[0] == row[0] for other in run[:k]) < 10}
    lines = [line for line in (folder / "all").read_text().splitlines() if tuple(line.split()[::2]) in top]
    (folder / "pool").write_text("\n".join(lines))
    runs = {name: [folder / f"{name}.run"] for name in ("good", "poor")}
    good, poor, difference = sorted(
        corrected_runs(runs, [folder / "pool"], [folder / "machine"], "dcg@10", RULES),
        key=lambda one: (one.against is not None, one.run),
    )
    truth = {one.run: one.found.value for one in corrected_runs(runs, [folder / "all"], [folder / "machine"], "dcg@10", RULES)[:2]}
    assert poor.found.value == pytest.approx(truth["poor"])
    assert poor.found.interval == (poor.found.value, poor.found.value)
    for one in (good, difference):
        assert "it is not a random sample, and the interval does not hold" in one.text()
        assert one.as_json()["verdict"] == one.verdict
        assert not one.settled


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--set", "conventions.ties=docid"], "correct: --set conventions.ties: correct accepts only conventions.gain and"),
        (["--set", "measures=[map]"], "correct: --set measures: correct accepts only"),
        (
            ["--measure", "p@5:people"],
            "measure 'p@5:people': correct compares people's labels with the machine's, and no measure has a source here: p@5",
        ),
        (["--level", "95"], "correct: --level 95: must be between 0 and 1, such as 0.95"),
    ],
)
def test_what_has_no_say_is_refused(folder, capsys, asked, said):
    assert main(["correct", "good.run", "poor.run", "--people", "few", "--machine", "machine", *asked]) == 1
    assert said in capsys.readouterr().err


def test_runs_that_swap_equal_labels_are_level_and_nothing_is_settled(folder):
    """Gains that cancel but for a rounding are no difference."""
    lines = [line.split() for line in (folder / "good.run").read_text().splitlines()]
    labels = {tuple(line.split()[::2]): line.split()[3] for line in (folder / "all").read_text().splitlines()}
    ranked = sorted((line for line in lines if line[2] != "unknown"), key=lambda line: (line[0], -float(line[4])))
    swapped = [list(line) for line in ranked]
    for q in range(30):
        own = [line for line in swapped if line[0] == f"q{q}"][:10]
        same = [line for line in own if labels[line[0], line[2]] == labels[own[0][0], own[0][2]]]
        same[0][2], same[-1][2] = same[-1][2], same[0][2]
    (folder / "a.run").write_text("\n".join(" ".join(line) for line in ranked))
    (folder / "b.run").write_text("\n".join(" ".join(line) for line in swapped))
    runs = {name: [folder / f"{name}.run"] for name in ("a", "b")}
    for measure in ("dcg@10", "p@7"):
        difference = corrected_runs(runs, [folder / "all"], [folder / "machine"], measure, RULES)[2]
        assert difference.found.value == 0
        assert not difference.settled
        assert "people judged every document that counts" in difference.text()


def test_more_judged_where_two_runs_differ_is_no_random_sample_either():
    """Both have what a random sample has; what is in one of them alone has twice that."""
    rng = np.random.default_rng(0)
    people, machine = rng.integers(0, 3, 10_000).astype(float), rng.integers(0, 3, 10_000).astype(float)
    place = np.arange(10_000)
    runs = {"a": (place < 2000) * 1.0, "b": ((place >= 200) & (place < 2200)) * 1.0}
    judged = np.zeros(10_000, bool)
    judged[rng.permutation(200)[:40]] = judged[2000 + rng.permutation(200)[:40]] = True
    judged[200 + rng.permutation(1800)[:165]] = judged[2200 + rng.permutation(7800)[:755]] = True
    rows = compared(runs, np.where(judged, people, np.nan), machine, ("dcg", RULES), 0.95, place // 10)
    assert all(one.found.random for one in rows if not one.against)
    for one in rows:
        assert "people judged 80 of the 400 pairs that matter to " in one.text()
        assert "it is not a random sample" in one.text()
        assert not one.settled


def test_people_who_judged_whole_queries_are_no_random_sample(folder):
    """Pairs of eleven queries of thirty, or half of the pairs of twenty; ranks tell nothing of it."""
    lines = (folder / "all").read_text().splitlines()
    some = np.random.default_rng(1).permutation(30).tolist()
    designs = {
        "11 queries": [line for line in lines if int(line.split()[0][1:]) in some[:11]],
        "20 queries": [line for line in lines if int(line.split()[0][1:]) in some[:20] and int(line.split()[2][1:]) % 2],
    }
    runs = {name: [folder / f"{name}.run"] for name in ("good", "poor")}
    for number, own in designs.items():
        (folder / "people").write_text("\n".join(own))
        for one in corrected_runs(runs, [folder / "people"], [folder / "machine"], "dcg@10", RULES):
            assert (
                f"people judged pairs of {number}, where a random sample of {len(own)} of 1,200 pairs has pairs of about 30"
                in one.text()
            )
            assert "it is not a random sample, and the interval does not hold" in one.text()
            assert not one.settled


def test_a_random_sample_of_pairs_is_not_taken_for_whole_queries():
    """Of queries of any size, of few pairs and of many."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        query = np.repeat(np.arange(40), rng.integers(1, 2 + 60 * rng.integers(0, 2, 40)))
        judged = np.zeros(len(query), bool)
        judged[rng.permutation(len(query))[: rng.integers(1, len(query) + 1)]] = True
        assert by_whole_queries(judged, query) == ""
    assert by_whole_queries(np.arange(500) < 50, np.repeat(np.arange(50), 10)).startswith(
        "people judged pairs of 5 queries, where a random"
    )
    assert (
        by_whole_queries(np.arange(100) < 50, np.repeat([0, 1], 50))
        == "people judged pairs of 1 query, where a random sample of 50 of 100 pairs has pairs of about 2"
    )


def test_a_query_that_a_run_has_nothing_for_counts_with_nothing():
    table = pl.DataFrame({"query": ["a", "b"], "document": ["x", "x"]})
    run = pl.DataFrame({"query": ["a"], "document": ["x"], "rank": [1]})
    assert _weights(table, run, lambda ranks: np.ones(len(ranks))).tolist() == [0.5, 0.0]


def test_differences_have_intervals_of_the_level_that_is_asked_for():
    rng = np.random.default_rng(0)
    machine = rng.integers(0, 3, 400).astype(float)
    people = np.where(rng.random(400) < 0.5, np.minimum(machine + rng.integers(0, 2, 400), 2), np.nan)
    w = {"a": np.where(rng.random(400) < 0.4, 0.01, 0), "b": np.where(rng.random(400) < 0.4, 0.01, 0)}
    rules, query = ("dcg@10", ltr.Conventions()), np.arange(400) // 10
    wide, narrow = (compared(w, people, machine, rules, level, query)[-1].found.interval for level in (0.95, 0.5))
    assert narrow[1] - narrow[0] < wide[1] - wide[0]


def test_differences_from_the_best_hold_together():
    """Of rankings of one quality the best of a sample is the best by chance."""
    rng = np.random.default_rng(5)
    people = rng.choice(4, size=3000, p=[0.5, 0.25, 0.15, 0.1]).astype(float)
    machine = np.where(rng.random(3000) < 0.6, people, rng.integers(0, 4, 3000)).astype(float)

    rules, query = ("dcg@10", ltr.Conventions(gain="linear")), np.arange(3000) // 10

    def settled(n, draws):
        wrong, levels = 0, set()
        for _ in range(draws):
            weights = {f"r{k}": np.where(rng.random(3000) < 0.2, 1 / 60, 0.0) for k in range(n)}
            judged = np.full(3000, np.nan)
            sample = rng.choice(3000, 400, replace=False)
            judged[sample] = people[sample]
            rows = [one for one in compared(weights, judged, machine, rules, 0.95, query) if one.against]
            levels |= {one.found.level for one in rows}
            wrong += any(one.settled and float((weights[one.run] - weights[one.against]) @ people) > 0 for one in rows)
        return wrong, levels

    assert settled(2, 1)[1] == {0.95}
    wrong, levels = settled(12, 10)
    assert levels == {1 - 0.05 / 66}
    assert wrong <= 1
