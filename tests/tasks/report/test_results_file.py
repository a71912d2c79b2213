"""Files of results: what is kept of a run, and what a later one is told of the difference."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tasks.config.reading import parse
from tasks.evidence.significance import Mean, Standing, Standings
from tasks.evidence.trace import TraceRecord, Traces
from tasks.records import Cell, CellResult, DataError, Failure, Fold, Trained
from tasks.report.outcome import RunOutcome
from tasks.report.results_file import differences, entry, keep_results, read_results
from tasks.store.datasets import keep_queries
from tests.conftest import make_queries
from tests.tasks.evidence.samples import CERTIFICATES, GUARANTEES, INSPECTIONS

CONFIG = parse({
    "name": "r", "data": {"files": "x"}, "select": "map", "scale": 0.5, "conventions": {"threshold": 1},
    "rankers": {"a": {"kind": "ranksvm", "sweep": {"C": [0.1, 1, 10]}}, "b": {"kind": "least_squares"}},
})  # fmt: skip


@pytest.fixture
def outcome(workplace):
    fold = Fold(*(keep_queries(make_queries(n, seed=n)) for n in (6, 3, 4)))

    def trained(ranker, value, **point):
        result = CellResult(
            f"{ranker}{value}", 12 * f"{ranker}", {"valid_map": value, "test_map": value / 3, "test_err": 1}, 1.0, ("slow", "sure")
        )
        return Trained(Cell(ranker, ranker, 0, point, {}, fold, (), {}), result)

    cells = (trained("a", 0.2, C=0.1), trained("a", 0.4, C=10), trained("b", 0.1))
    rows = {"a": Standing("a", {"map": Mean(1 / 3, 0.01, 4, {"b": 95})}), "b": Standing("b", {"map": Mean(0.2, None, 1, {})})}
    return RunOutcome(
        CONFIG, "0123", (fold,), (), cells, cells[1:], Standings(("map",), rows, ()), (CERTIFICATES, GUARANTEES, INSPECTIONS)
    )


def test_small_settings_are_kept(outcome):
    """C 1e-08 and 1e-07 are two, and a rate of 2.5e-9 is no 0."""
    tried = {"sweep": {"C": [1e-8, 1e-7, 1]}}
    config = CONFIG.model_copy(
        update={"rankers": parse({"name": "r", "data": {"files": "x"}, "rankers": {"a": {"kind": "ranksvm", **tried}}}).rankers}
    )
    drawn = config.model_copy(update={"plot_by": "C"})
    first = replace(outcome.cells[0], cell=replace(outcome.cells[0].cell, point={"C": 2.5000004e-9}))
    kept = entry(replace(outcome, config=drawn, cells=(first, *outcome.cells[1:]), asked=drawn), None)
    assert kept["configuration"]["rankers"]["a"]["sweep"]["C"] == [1e-8, 1e-7, 1]
    assert kept["cells"][0]["point"] == {"C": 2.5000004e-9}
    assert kept["cells"][0]["at an end"] == [], "C is what is drawn against"
    noise = replace(first, result=replace(first.result, metrics={"valid_map": 1e-17}))
    assert entry(replace(outcome, config=drawn, cells=(noise,)), None)["cells"][0]["valid_map"] == 0, "what is measured is rounded"


def test_a_number_that_is_none_differs_from_nothing(outcome, tmp_path):
    """NaN, such as a correlation with what does not vary, is no JSON, and each repetition was told NaN → NaN."""
    trace = Traces((TraceRecord("a", [1.0], [], [0.0, 0.0], [0.1, 0.9], {"0": [0.0]}),))
    file = tmp_path / "results.json"
    told = [keep_results(replace(outcome, evidence=(trace,)), None, file) for _ in range(2)]
    assert told == [[f"recorded in {file}: r"], [f"as recorded in {file}: r"]]
    kept = json.loads(file.read_text(), parse_constant=pytest.fail)
    assert kept["r"]["trace"]["a"]["correlation"] is None


def test_a_file_of_an_older_version_has_the_digest_of_a_configuration_alone(outcome):
    new = entry(outcome, None)
    old = {key: value for key, value in new.items() if key != "configuration"}
    assert list(differences(old, new)) == []
    assert [*differences(new, {**new, "configuration": {**new["configuration"], "select": "ndcg"}})] == [
        'configuration.select: "map" → "ndcg"'
    ]


def test_what_is_kept_of_a_run(outcome):
    kept = entry(outcome, "c0ffee")
    assert (kept["run"], kept["commit"], kept["cut"], kept["select"]) == ("0123", "c0ffee", "cut to 0.5 of the queries", "map")
    assert kept["conventions"] == {"threshold": 1}
    assert kept["configuration"] == {
        "select": "map",
        "scale": 0.5,
        "conventions": {"threshold": 1},
        "rankers": {"a": {"kind": "ranksvm", "sweep": {"C": [0.1, 1, 10]}}, "b": {"kind": "least_squares"}},
    }, "and nothing of where data lie"
    data = {
        "files": "/home/me/x",
        "label": "grade",
        "query": "qid",
        "categorical": ["site"],
        "clicks": {"log": "/home/me/log.parquet", "rank": "place"},
    }
    fuller = parse({"name": "r", "data": data, "rankers": {"a": {"kind": "least_squares"}}, "workers": 2})
    asked = entry(replace(outcome, asked=fuller), None)["configuration"]
    assert asked["data"] == {"clicks": {"rank": "place"}, "label": "grade", "query": "qid", "categorical": ["site"]}
    assert "workers" not in asked
    assert kept["data"]["queries"] == [[6, 3, 4]]
    assert kept["rankers"]["a"] == {
        "chosen": ["C=10"], "at an end": ["C 10 is the largest tried"], "remarks": ["slow; sure"], "models": [12 * "a"],
        "test": {"map": [0.333333, 0.01]}, "beats": {"map": {"b": 95}},
    }  # fmt: skip
    assert kept["cells"] == []
    plotted = replace(outcome, config=CONFIG.model_copy(update={"plot_by": "C"}))
    point = {"ranker": "a", "fold": 0, "point": {"C": 0.1}, "at an end": [], "valid_map": 0.2, "test_map": 0.066667, "test_err": 1}
    assert entry(plotted, None)["cells"][0] == point
    by_rate = CONFIG.model_copy(update={"plot_by": "rate"})
    tried = [replace(one, cell=replace(one.cell, point={**one.cell.point, "rate": 1})) for one in outcome.cells[:2]]
    (drawn,) = entry(replace(outcome, config=by_rate, cells=tuple(tried)), None)["cells"]
    assert (drawn["point"], drawn["at an end"]) == ({"C": 10, "rate": 1}, ["C 10 is the largest tried"])
    assert kept["optimality"][0]["verdict"] == "optimum"
    assert kept["guarantee"]["graded"]["baseline"] == "judged"
    assert kept["microscope"]["graded"]["top"] == 3
    assert outcome.at_ends == ["a: C 10 is the largest tried"]


def test_an_end_where_the_next_value_does_as_well_is_none(outcome):
    largest = outcome.cells[1]
    below = replace(largest, cell=replace(largest.cell, point={"C": 1.0}))
    assert replace(outcome, cells=(below, *outcome.cells)).at_ends == []
    better = replace(below, result=replace(below.result, metrics={"valid_map": 0.9}))
    assert replace(outcome, cells=(better, *outcome.cells)).at_ends == [], "better, and not surely"
    worse = replace(below, result=replace(below.result, metrics={"valid_map": 0.1}))
    assert replace(outcome, cells=(worse, *outcome.cells)).at_ends != []
    in_another_fold = replace(below, cell=replace(below.cell, fold=1))
    assert replace(outcome, cells=(in_another_fold, *outcome.cells)).at_ends != []


def test_a_later_run_is_compared_with_what_is_kept(outcome, tmp_path):
    file = tmp_path / "results.json"
    assert keep_results(outcome, None, file) == [f"recorded in {file}: r"]
    named = [replace(outcome, config=outcome.config.model_copy(update={"name": f"n{k}"})) for k in range(16)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: keep_results(one, None, tmp_path / "together.json"), named))
    assert len(read_results(tmp_path / "together.json")) == 16, "none took another's place"
    other = replace(outcome, run_id="4567")
    assert keep_results(other, "c0ffee", file) == [f"as recorded in {file}: r"]
    assert read_results(file)["r"]["run"] == "4567"
    worse = replace(outcome, failures=(Failure("a", "no"),), standings=replace(outcome.standings, rows={
        **outcome.standings.rows, "b": Standing("b", {"map": Mean(0.1, None, 1, {})}),
    }))  # fmt: skip
    assert keep_results(worse, None, file) == ["rankers.b.test.map: [0.2, null] → [0.1, null]", 'failed: [] → ["a: no"]']
    keep_results(replace(outcome, config=outcome.config.model_copy(update={"name": "aa"})), None, file)
    assert list(json.loads(file.read_text())) == ["aa", "r"]
    assert not list(tmp_path.glob(".*partial"))


def test_of_long_lists_the_parts_that_differ_are_told():
    one, other = (["learning_rate=0.05, n_leaves=20, min_docs_in_leaf=20"] * 3 for _ in range(2))
    other[2] = "learning_rate=0.1"
    old, new = ({"rankers": {"trees": {"chosen": chosen}}} for chosen in (one, other))
    assert list(differences(old, new)) == [f'rankers.trees.chosen[3]: "{one[2]}" → "learning_rate=0.1"']


def test_of_long_texts_what_differs_is_shown():
    """The first 80 letters of both were, which may be the same."""
    old = [f"ndcg_{k}" for k in range(10, 20)]
    (line,) = differences({"measures": old}, {"measures": [*old, "map"]})
    assert line == 'measures: …"ndcg_18", "ndcg_19"] → …"ndcg_18", "ndcg_19", "map"]'
    (line,) = differences({"remarks": "a" * 200}, {"remarks": "b" * 200})
    assert line == f'remarks: "{79 * "a"} → "{79 * "b"}'


def test_a_folder_that_is_not_there_is_told_before_anything_runs(tmp_path):
    with pytest.raises(DataError, match=r"results\.json: there is no folder .*none"):
        read_results(tmp_path / "none" / "results.json")


def test_results_are_kept_in_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    for name, said in (("pipe.json", "this is a pipe or a device"), (".", "this is a folder")):
        with pytest.raises(DataError, match=said):
            read_results(tmp_path / name)


@pytest.mark.parametrize("text", ["", "[]", '{"r": 3}', '{"r": {}}'])
def test_another_file_is_not_overwritten(outcome, tmp_path, text):
    file = tmp_path / "mine.json"
    file.write_text(text)
    with pytest.raises(DataError, match=r"mine\.json: not written by --record, left unchanged; choose another name"):
        keep_results(outcome, None, file)
    assert file.read_text() == text
