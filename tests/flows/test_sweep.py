"""The choice among the cells of a sweep."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from flows.cells import cells_of
from flows.sweep import _bases, _Training, choose
from tasks.config.reading import parse
from tasks.evidence.protocol import Gathering
from tasks.records import CellResult, Fold, Trained
from tasks.store.cells import cell_key

CONFIG_WRITTEN = {
    "data": {"files": "x"},
    "rankers": {"a": {"kind": "lambdamart", "sweep": {"learning_rate": [0.1, 0.2]}}, "b": {"kind": "least_squares"}},
}
CONFIG = parse(CONFIG_WRITTEN)
FOLDS = tuple(Fold(f"t{k}", f"v{k}", f"e{k}") for k in range(3))


def test_what_goes_on_from_where_it_broke_off_is_said(monkeypatch):
    cells, said = cells_of(CONFIG, list(CONFIG.rankers), FOLDS[:1]), []
    monkeypatch.setattr("flows.cells.is_begun", lambda key: key == cell_key(cells[1]))
    progress = SimpleNamespace(begin=lambda text, steps: None, say=said.append)
    for fresh, parts in ((False, 1), (True, 1), (False, 2)):
        _Training(CONFIG.model_copy(update={"parts": parts}), None, fresh, progress).begin("training", cells)
    assert said == ["a · learning_rate=0.2: goes on from where its training broke off"]


def test_the_best_on_validation_and_the_first_of_equals():
    cells = cells_of(CONFIG, list(CONFIG.rankers), FOLDS[:1])
    trained = [
        Trained(cell, CellResult(str(k), "digest", {"valid_map": value}, 1.0))
        for k, (cell, value) in enumerate(zip(cells, (0.5, 0.5, 0.1), strict=True))
    ]
    by_map = CONFIG.model_copy(update={"select": "map"})
    assert [(one.ranker, one.result.key) for one in choose(trained, by_map)] == [("a", "0"), ("b", "2")]
    with pytest.raises(ValueError, match="ndcg is undefined on every validation query"):
        list(choose(trained, CONFIG.model_copy(update={"select": "ndcg"})))


def test_folds_stay_in_order_where_a_point_cannot_be_trained_on_an_early_one():
    """Test queries and names of models are paired by place: the choice of such a fold came last, and everything after it was another fold's."""
    cells = [
        cell
        for cell in cells_of(CONFIG, list(CONFIG.rankers), FOLDS)
        if (cell.ranker, cell.fold, cell.point.get("learning_rate")) != ("a", 1, 0.1)
    ]
    trained = [Trained(cell, CellResult(str(k), "digest", {"valid_map": 0.5}, 1.0)) for k, cell in enumerate(cells)]
    assert [one.fold for one in trained if one.ranker == "a"][:2] == [0, 2]
    taken = list(choose(trained, CONFIG.model_copy(update={"select": "map"})))
    assert [(one.ranker, one.fold) for one in taken] == [(name, fold) for name in ("a", "b") for fold in range(3)]


def test_a_ranker_may_be_chosen_by_a_measure_of_its_own():
    written = {"kind": "lambdamart", "select": "err", "sweep": {"learning_rate": [0.1, 0.2]}}
    config = parse({"data": {"files": "x"}, "select": "map", "rankers": {"a": written, "b": {**written, "select": "map"}}})
    assert config.all_measures[-1] == "err"
    cells = cells_of(config, ["a", "b"], FOLDS[:1])
    assert [cell.section["stop_on"] for cell in cells] == ["err", "err", "map", "map"]
    assert cell_key(cells[0]) != cell_key(cells[2]), "they stop by different measures"
    values = [{"valid_map": 0.1 * k, "valid_err": -0.1 * k} for k in (1, 2, 1, 2)]
    trained = [Trained(cell, CellResult(str(k), "d", v, 1.0)) for k, (cell, v) in enumerate(zip(cells, values, strict=True))]
    assert [(one.ranker, one.result.key) for one in choose(trained, config)] == [("a", "0"), ("b", "3")]


def test_where_fewer_cells_are_there_than_asked_for_the_best_count_again():
    config = parse(
        {
            "data": {"files": "a.txt"},
            "rankers": {"a": {"kind": "least_squares", "search": "auto"}, "b": {"kind": "average", "on": ["a"], "best": 5}},
        }
    )
    (cell,) = cells_of(config, ["a"], FOLDS[:1])
    values = [{"valid_ndcg_10": value} for value in (0.1, 0.3, 0.2)]
    cells = [Trained(cell, CellResult(str(k), "d", value, 1.0)) for k, value in enumerate(values)]
    drawn_twice = replace(cells[1], cell=replace(cell, label="another draw"))
    taken = Gathering(config, FOLDS[:1], (*cells, drawn_twice), tuple(choose(cells, config)), None, None)
    assert [one.result.metrics["valid_ndcg_10"] for one in _bases(taken, "b", 0)] == [0.3, 0.2, 0.1, 0.3, 0.2]


def test_a_ranker_on_another_s_scores_is_on_the_cell_that_was_chosen():
    config = parse({**CONFIG_WRITTEN, "rankers": {**CONFIG_WRITTEN["rankers"], "c": {"kind": "average", "on": ["a"]}}})
    cells = cells_of(config, ["a", "b"], FOLDS[:1])
    trained = [
        Trained(cell, CellResult(str(k), "d", {"valid_ndcg_10": v}, 1.0))
        for k, (cell, v) in enumerate(zip(cells, (0.5, 0.4, 0.1), strict=True))
    ]
    by_evidence = Gathering(config, FOLDS[:1], tuple(trained), tuple(trained[1:]), None, None)
    assert [one.result.key for one in _bases(by_evidence, "c", 0)] == ["1"], (
        "evidence took another than the best on validation queries"
    )
