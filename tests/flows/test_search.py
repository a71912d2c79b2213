"""Searches of a run: the same trials for any number of workers, interrupted or not, within a time or without."""

import json
import re
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from prefect import flow

import ltr
from flows.pipeline import run
from flows.search import Clock, search
from flows.sweep import choose
from tasks.config.reading import parse
from tasks.records import Budget, CellResult, Fold
from tasks.store.budgets import budget_file, read_budget, write_budget
from tasks.store.cells import CellFolder, cell_key
from tasks.store.datasets import keep_queries
from tasks.store.values import read_values
from tasks.tracking.store import BUDGET, SEARCHED
from tasks.training.cell import train
from tests.conftest import make_queries

SPACE = {
    "learning_rate": {"low": 0.05, "high": 0.5, "log": True},
    "n_leaves": {"low": 2, "high": 8},
    "leaf": ["newton", "gradient"],
    "largest_leaf": {"low": 1, "high": 20, "log": True, "when": {"leaf": "gradient"}},
}
pytestmark = pytest.mark.usefixtures("undrawn")

CONFIG = {
    "data": {"files": "x"},
    "rankers": {
        "trees": {
            "kind": "lambdamart", "n_trees": 9, "min_docs_in_leaf": 5, "patience": 3,
            "search": {"space": SPACE, "trials": 8, "batch": 4},
        },
        "linear": {"kind": "lambdarank", "epochs": 6, "search": {"trials": 3, "batch": 3, "rungs": 2}},
    },
    "measures": ["map"],
}  # fmt: skip


@dataclass
class Notes:
    """In place of MLflow and the terminal."""

    cells: dict = field(default_factory=dict)
    """Labels of cells, and whether they have a model."""
    lines: list = field(default_factory=list)
    tags: dict = field(default_factory=dict)

    def say(self, tags):
        self.tags |= tags

    def budget(self, key, of_this_run):
        return Budget(**json.loads(self.tags[BUDGET])) if self.tags.get(SEARCHED) == key else None

    def cell(self, cell, result, data, tags, model):
        self.cells[cell.label] = model or self.cells.get(cell.label, False)

    def begin(self, text, steps=None):
        pass

    def done(self, text):
        self.lines.append(text)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A working directory for all tests of this file: what they train is told apart by `no_folder_of_cells`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("searches"))
        yield


@pytest.fixture(scope="module")
def both(prefect_server, here):
    return tuple(Fold(*(keep_queries(make_queries(30, seed=10 * k + part)) for part in range(3))) for k in range(2))


@pytest.fixture
def folds(both):
    """One fold is enough for most."""
    return both[:1]


@contextmanager
def no_folder_of_cells():
    """Cells of another folder are not found."""
    with pytest.MonkeyPatch.context() as patch:
        salt = uuid.uuid4().hex
        patch.setattr("tasks.store.cells.core_digest", lambda: salt)
        yield


def searched(folds, notes=None, fresh=False, **changes):
    notes = notes or Notes()

    @flow
    def once():
        return search(parse({**CONFIG, **changes}), folds, notes, fresh, notes)

    return once()


def plain(found):
    """What a search came to, without seconds and keys."""
    return [[replace(trial, seconds=0, key="") for trial in one.trials] for one in found.searches], [
        (one.cell.label, one.result.digest, one.result.metrics) for one in found.cells
    ]


@pytest.fixture(scope="module")
def found(both):
    return searched(both[:1])


def test_every_ranker_is_searched_on_every_fold_beginning_as_written(both, found):
    of_both = searched(both)
    assert [(one.ranker, one.fold, len(one.trials)) for one in of_both.searches] == [
        ("trees", 0, 8), ("trees", 1, 8), ("linear", 0, 3), ("linear", 1, 3),
    ]  # fmt: skip
    assert [plain(of_both)[0][k] for k in (0, 2)] == plain(found)[0], "a fold hears nothing of another"
    trees = found.searches[0].trials
    assert trees[0].settings == {"learning_rate": 0.05, "n_leaves": 31, "leaf": "newton"}
    assert 0 < sum(trial.whole for trial in trees) < 8
    assert all(trial.looks[-1].iterations in (1, 3, 9) for trial in trees)
    assert found.budget is None
    assert found.failures == ()


def by_standard_errors(n):
    """The configuration whose searches choose another draw than the first where it is better by so many."""
    rankers = {name: {**ranker, "search": {**ranker["search"], "standard_errors": n}} for name, ranker in CONFIG["rankers"].items()}
    return parse({**CONFIG, "rankers": rankers})


def test_the_best_draw_is_chosen_as_a_cell_of_a_grid_is(found):
    for one in choose(found.cells, by_standard_errors(0)):
        (own,) = [s for s in found.searches if (s.ranker, s.fold) == (one.ranker, one.fold)]
        assert one.result.metrics["valid_ndcg_10"] == max(trial.value for trial in own.trials)


def test_the_ranker_as_written_is_chosen_where_no_draw_is_surely_better(found):
    (best, _), (written, _) = (list(choose(found.cells, by_standard_errors(n))) for n in (0, 10))
    assert "trial 1: as written" in written.cell.label
    assert written.result.metrics["valid_ndcg_10"] < best.result.metrics["valid_ndcg_10"]
    own, first = (read_values(CellFolder.of(one.result.key).values, "valid")["ndcg_10"].to_numpy() for one in (best, written))
    errors = np.nanmean(own - first) / (np.nanstd(own - first, ddof=1) / np.sqrt(np.isfinite(own - first).sum()))
    for n, taken in ((0.99 * errors, best), (1.01 * errors, written)):
        assert next(iter(choose(found.cells, by_standard_errors(n)))) == taken


def test_workers_change_nothing(folds, found):
    with no_folder_of_cells():
        again = searched(folds, workers=2)
    assert plain(again) == plain(found)
    assert [a.result.key for a in again.cells] != [b.result.key for b in found.cells], "all were trained anew"


@pytest.mark.parametrize("after", [1, 9])
def test_interrupted_and_begun_again_is_never_interrupted(folds, found, after):
    fit, begun = ltr.LambdaMART.fit, []

    def interrupted(self, *sets, **more):
        begun.append(1)
        if len(begun) > after:
            raise OSError("the lights went out")
        return fit(self, *sets, **more)

    with no_folder_of_cells():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ltr.LambdaMART, "fit", interrupted)
            with pytest.raises(OSError, match="the lights went out"):
                searched(folds)
        notes = Notes()
        assert plain(searched(folds, notes)) == plain(found)
    assert sum("(found" in line for line in notes.lines) >= after


def test_who_went_on_is_byte_for_byte_who_never_stopped(found):
    gone_on = [one.cell for one in found.cells if one.cell.start]
    assert {one.ranker for one in gone_on} == {"trees", "linear"}
    for cell in gone_on:
        folder = CellFolder.of(cell_key(cell))
        before = {path.name: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}
        train.fn(replace(cell, start=""), fresh=True)
        after = {path.name: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}
        for told in ("result.json", "seal.json"):
            before.pop(told), after.pop(told)
        assert before == after
        assert {"model.npz", "model.json", "values.parquet", "curve.json"} <= set(after)


def test_mlflow_has_each_draw_once_and_models_of_those_that_may_be_chosen(folds):
    notes = Notes()
    found = searched(folds, notes)
    assert sorted(notes.cells) == sorted(one.cell.label for one in found.cells)
    models = {label for label, model in notes.cells.items() if model}
    assert {one.cell.label for one in choose(found.cells, parse(CONFIG))} <= models
    assert len(models) < len(notes.cells)


def test_a_draw_that_was_given_up_and_wins_as_those_that_went_on_get_worse_has_a_model(folds, monkeypatch):
    """Nets with `keep: train` get worse as they train longer, and what was decided in the first wave was final."""
    config = parse(CONFIG)

    def trained(_, cells, fresh, finished, *more):
        for cell in cells:
            number, longer = int(re.search(r"trial (\d+)", cell.label)[1]), bool(cell.start)
            value = 0.1 if longer else 0.5 + 0.01 * number
            finished(cell, CellResult(cell.label, "digest", {f"valid_{config.select_of(cell.ranker)}": value}, 1.0))

    monkeypatch.setattr("flows.search.train_all", trained)
    notes = Notes()
    found = searched(folds, notes)
    chosen = list(choose(found.cells, by_standard_errors(0)))
    assert not any(one.cell.start for one in chosen), "given up at the first length"
    assert all(notes.cells[one.cell.label] for one in chosen)
    assert sum(notes.cells.values()) < len(notes.cells)


def test_a_draw_that_cannot_be_trained_is_told_and_others_go_on(folds):
    rankers = {
        "trees": {**CONFIG["rankers"]["trees"], "search": {"space": {"min_docs_in_leaf": {"low": 2, "high": 400}}, "trials": 6}}
    }
    notes = Notes()
    found = searched(folds, notes, rankers=rankers)
    trials = found.searches[0].trials
    failed = [trial for trial in trials if trial.fault]
    assert failed
    assert all(trial.value is None and "cannot make two leaves" in trial.fault for trial in failed)
    assert len(found.cells) == sum(len(one.trials) - sum(bool(t.fault) for t in one.trials) for one in found.searches)
    assert found.failures == ()
    none = {
        "trees": {
            **rankers["trees"],
            "min_docs_in_leaf": 400,
            "search": {"space": {"min_docs_in_leaf": {"low": 399, "high": 400}}, "trials": 2},
        }
    }
    gone = searched(folds, notes, rankers=none)
    assert [str(failure).split(":")[0] for failure in gone.failures] == ["trees"]
    assert gone.cells == ()


def choosing(found):
    """The best draw of each search."""
    return [max(one.trials, key=lambda trial: trial.value) for one in found.searches]


def test_time_ends_a_search_at_a_cell_and_the_same_run_ends_there_again(folds, found, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("flows.search.monotonic", lambda: now[0])
    fit = ltr.LambdaRank.fit
    monkeypatch.setattr(ltr.LambdaRank, "fit", lambda *sets, **more: (now.__setitem__(0, now[0] + 10), fit(*sets, **more))[1])
    notes = Notes()
    with no_folder_of_cells():
        first = searched(folds, notes, budget="15s")
    assert first.budget.ended
    assert first.budget.used >= 15
    assert any("5s of 15s left" in line for line in notes.lines)
    assert 2 <= len(first.cells) < len(found.cells)
    assert all(one.whole for one in choosing(first)), "the best of each search is trained to its end"
    assert sum(one.whole for search in first.searches for one in search.trials) == 4, "and so was the ranker as written"
    monkeypatch.setattr("flows.search.monotonic", lambda: now.__setitem__(0, now[0] + 1000) or now[0])
    again = searched(folds, notes, budget="15s")
    assert plain(again) == plain(first)
    assert again.budget == first.budget
    for more in ({"refit": True}, {"name": "other", "optimality": {"measure": "ndcg"}}):
        assert plain(searched(folds, notes, budget="15s", **more)) == plain(first), "what is asked of its models is no other search"
    budget_file(Clock(parse({**CONFIG, "budget": "15s"}), folds, False, 1).key).unlink()
    now[0] = -1e9
    monkeypatch.setattr("flows.search.monotonic", lambda: now[0])
    with no_folder_of_cells():
        elsewhere = searched(folds, notes, budget="15s")
    assert plain(elsewhere) == plain(first), "another folder has MLflow's word on where the time ended"
    monkeypatch.setattr("flows.search.monotonic", lambda: 0.0)
    config = parse({**CONFIG, "budget": "15s"})
    mine, own, other = (Budget(15.0, 15.0, cells, ended=True) for cells in (7, 8, 9))
    begun = Budget(15.0, 4.0, 3)
    for here, of_run, of_others, taken in (
        (mine, own, other, own), (mine, None, other, other), (begun, None, other, begun), (begun, own, other, own), (mine, None, None, mine),
    ):  # fmt: skip
        write_budget(Clock(config, folds, False, 1).key, here)
        word = {True: of_run, False: of_others}
        assert Clock(config, folds, False, 1, lambda key, of_this_run, word=word: word[of_this_run]).before == taken
    budget_file(Clock(config, folds, False, 1).key).unlink()
    monkeypatch.undo()
    longer = searched(folds, budget="1h")
    assert plain(longer) == plain(found)
    assert not longer.budget.ended
    assert searched(folds, budget="1h").budget == longer.budget, "what is found again takes none of the time"


def test_a_search_that_is_killed_within_its_time_finds_all_that_it_had_trained(folds, monkeypatch):
    """Time goes on by 10 seconds a cell; at the kill the best draw is trained to its end, which takes 30 where it is not."""
    now, cells, killed_at = [0.0], [0], [0]
    fit = ltr.LambdaMART.fit

    def timed(*sets, **more):
        cells[0] += 1
        if cells[0] == killed_at[0]:
            raise KeyboardInterrupt
        now[0] += 10
        return fit(*sets, **more)

    monkeypatch.setattr("flows.search.monotonic", lambda: now[0])
    monkeypatch.setattr(ltr.LambdaMART, "fit", timed)
    monkeypatch.setattr("flows.search._Search.to_finish", property(lambda one: 30.0 * (one.unfinished is not None)))
    asked = {"rankers": {"trees": CONFIG["rankers"]["trees"]}, "budget": "100s"}
    with no_folder_of_cells():
        monkeypatch.setattr("flows.search.core_digest", lambda: "whole")
        whole = searched(folds, **asked)
    assert len(whole.cells) >= 4
    with no_folder_of_cells():
        monkeypatch.setattr("flows.search.core_digest", lambda: "killed")
        cells[0], killed_at[0] = 0, 9
        with pytest.raises(KeyboardInterrupt):
            searched(folds, **asked)
        again = searched(folds, **asked)
    assert plain(again) == plain(whole)
    assert cells[0] <= 9 + 2


def test_what_is_left_of_a_time_is_known_to_the_run_that_goes_on(folds, monkeypatch):
    config = parse({**CONFIG, "budget": "100s"})
    now = [0.0]
    monkeypatch.setattr("flows.search.monotonic", lambda: now[0])
    killed = Clock(config, folds, False, 1)
    assert killed.more()
    now[0] = 60.0
    killed.note()
    assert read_budget(killed.key).used == 60
    later = Clock(config, folds, False, 1)
    assert later.left == "; 40s of 1m 40s left"
    now[0] = 101.0
    assert later.more(), "one a search, whatever the time"
    assert not later.more()
    later = Clock(config, folds, False, 0)
    later.reserve["trees"] = 50.0
    now[0] = 102.0
    assert later.more(), "what the killed run had begun"
    later.note()
    assert read_budget(later.key).cells == 1
    assert not later.more(), "what is left is needed to finish the best"
    later.reserve = None
    assert later.more(), "which is under way now"
    assert Clock(config, folds, True, 1).used == 0, "--fresh begins anew"


@pytest.mark.long
def test_auto_gives_three_searched_rankers_and_their_average(prefect_server, workplace):
    written = {"data": {"generate": {"queries": [60, 40, 30], "documents": 12, "features": 12}}, "rankers": "auto", "budget": "5s"}
    outcome = run(parse(written))
    assert list(outcome.models) == ["trees", "linear", "net", "average"]
    assert outcome.failures == ()
    assert {one.ranker for one in outcome.searches} == {"trees", "linear", "net"}
    assert all(one.whole for one in choosing(outcome)) or not outcome.budget.ended
    again = run(parse(written))
    assert {name: model.digest for name, model in again.models.items()} == {name: m.digest for name, m in outcome.models.items()}
    assert [one.trials for one in again.searches] == [one.trials for one in outcome.searches]


def test_a_draw_of_a_length_is_trained_for_it(folds):
    """Without halving nothing else says how long."""
    rankers = {
        "trees": {
            "kind": "lambdamart", "n_trees": 5, "min_docs_in_leaf": 5, "patience": 0,
            "search": {"space": {"n_trees": {"low": 2, "high": 9}}, "trials": 4, "batch": 4, "halving": 0},
        }
    }  # fmt: skip
    found = searched(folds, rankers=rankers)
    drawn = {trial.settings.get("n_trees", 5) for trial in found.searches[0].trials}
    trained = {ltr.load(CellFolder.of(trial.key).model).n_trees for trial in found.searches[0].trials}
    assert len(drawn) > 2
    assert trained == drawn
