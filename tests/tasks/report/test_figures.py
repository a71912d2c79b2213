"""Figures: what they show of their numbers, and when there is none."""

import json
from dataclasses import replace

from tasks.evidence.drawing import COLOURS
from tasks.records import Cell, CellResult, Fold, Trained
from tasks.report.figures import (
    curve_figure,
    importance_figure,
    objective_figures,
    pairs_figures,
    position_bias_figure,
    position_bias_lines,
    swept_figures,
)
from tasks.report.outcome import ObjectiveShape, drawn_cells
from tasks.store.cells import CellFolder


def trained(ranker, point, metrics, fold=0):
    return Trained(Cell("x", ranker, fold, point, {}, Fold("", "", ""), (), {}), CellResult("k", "", metrics, 0.0))


def test_features_by_their_mean_share_of_the_gain(tmp_path):
    folders = [CellFolder(tmp_path / k) for k in "01"]
    for folder, gain in zip(folders, ([1.0, 3.0, 0.0], [0.0, 0.0, 0.0]), strict=True):
        folder.path.mkdir()
        written = {"features": ["slope", "bm25", "unused"], "gain": gain, "splits": gain}
        folder.importance.write_text(json.dumps(written))
    figure = importance_figure("trees", folders)
    assert figure.index("slope") < figure.index("bm25")
    assert "unused" not in figure
    assert "trees: features" in figure
    assert importance_figure("trees", folders[1:]) is None
    assert importance_figure("net", [CellFolder(tmp_path)]) is None


def test_features_of_any_name_are_drawn(tmp_path):
    folder, long = CellFolder(tmp_path), "a name of many words " * 12
    names = ["$x^{$", "b\x1b[31m", "日本", long]
    folder.importance.write_text(json.dumps({"features": names, "gain": [4.0, 3.0, 2.0, 1.0], "splits": [1, 1, 1, 1]}))
    figure = importance_figure("trees", [folder])
    for text in ("$x^{$", r"b\x1b[31m", "日本", "a name of many words"):
        assert text in figure
    assert long not in figure


def test_a_curve_has_a_line_a_split_and_none_where_nothing_was_taken(tmp_path):
    folder = CellFolder(tmp_path)
    assert curve_figure("trees", [folder]) is None
    folder.curve.write_text(json.dumps({"measure": "map", "iteration": [1, 2], "train": [None, None], "valid": [0.1, 0.2]}))
    figure = curve_figure("trees", [folder])
    assert "validation" in figure
    assert "training" not in figure
    assert "MAP" in figure
    assert "fold 1" not in figure


def test_a_curve_says_which_colour_is_which_fold(tmp_path):
    folders = [CellFolder(tmp_path / k) for k in "012"]
    for folder in folders:
        folder.path.mkdir()
        folder.curve.write_text(json.dumps({"measure": "map", "iteration": [1, 2], "train": [0.2, 0.3], "valid": [0.1, 0.2]}))
    figure = curve_figure("trees", folders)
    for text in ("trees: curves", "fold 1", "fold 2", "fold 3", "training", "validation"):
        assert f">{text}<" in figure
    assert ">1.5<" not in figure


def test_a_curve_of_another_measure_or_of_some_folds_is_called_so(tmp_path):
    folders = [CellFolder(tmp_path / k) for k in "012"]
    for folder, measure in zip(folders, (None, "ndcg", "map"), strict=True):
        folder.path.mkdir()
        if measure:
            folder.curve.write_text(json.dumps({"measure": measure, "iteration": [1, 2], "train": [0.2, 0.3], "valid": [0.1, 0.2]}))
    figure = curve_figure("trees", folders)
    for text in ("NDCG and MAP", "fold 2, NDCG", "fold 3, MAP"):
        assert f">{text}<" in figure
    assert COLOURS[0] not in figure, "the colour of the fold that has none"
    assert ">fold 2<" in curve_figure("trees", folders[:2])


def test_what_was_learned_of_ranks_in_some_folds_is_called_so(tmp_path):
    folders = [CellFolder(tmp_path / k) for k in "012"]
    for folder, sides in zip(folders, ({}, {"propensity": [1.0, 0.5]}, {"bias": [0.0, -0.5]}), strict=True):
        folder.path.mkdir()
        if sides:
            folder.position_bias.write_text(json.dumps({"by_rank": sides}))
    figure = position_bias_figure("trees", folders)
    assert ">fold 2, examination probability (propensity)<" in figure
    assert ">fold 3, bias of a rank, in scores<" in figure
    assert COLOURS[0] not in figure, "the colour of the fold that has none"
    assert ">fold 2<" in position_bias_figure("trees", folders[:2])


def test_what_was_learned_of_ranks_has_a_line_a_fold(tmp_path):
    folders = [CellFolder(tmp_path / k) for k in "012"]
    for folder, last in zip(folders[:2], (0.25, 0.5), strict=True):
        folder.path.mkdir()
        folder.position_bias.write_text(json.dumps({"by_rank": {"propensity": [1.0, last]}}))
    figure = position_bias_figure("trees", folders)
    for text in ("trees: position bias taken out of clicks", "examination probability (propensity)", "rank", "fold 1", "fold 2"):
        assert f">{text}<" in figure
    assert "fold 3" not in figure
    assert position_bias_figure("trees", folders[2:]) is None
    folders[2].path.mkdir()
    folders[2].position_bias.write_text(json.dumps({"by_rank": {"t_plus": [1.0, 0.5, 0.2], "t_minus": [1.0, 0.9, 0.8]}}))
    pairs = position_bias_figure("pairs", folders[2:])
    assert ">t⁺ and t⁻<" in pairs
    assert position_bias_lines({"trees": folders[:2], "pairs": folders[2:], "linear": [CellFolder(tmp_path)]}) == {
        "position_bias/trees/propensity": [1.0, 0.375],
        "position_bias/pairs/t_plus": [1.0, 0.5, 0.2],
        "position_bias/pairs/t_minus": [1.0, 0.9, 0.8],
    }


def test_effective_pairs_are_drawn_where_two_cells_counted():
    counted = [trained("net", {}, {"effective_pairs": n, "test_map": 0.5}) for n in (10.0, 100.0)]
    assert pairs_figures(counted[:1], ["map"]) == []
    (figure,) = pairs_figures(counted, ["map"])
    assert "effective pairs per epoch" in figure
    near = [trained("net", {}, {"effective_pairs": n, "test_map": 0.5}) for n in (1200.0, 4000.0)]
    assert ">2,000<" in pairs_figures(near, ["map"])[0], "no power of ten is between them"


def test_schedules_and_costs_are_drawn_where_there_are_several():
    one = ObjectiveShape(("logistic",), ())
    two = ObjectiveShape(("logistic", "sigmoid"), ((0.9, 0.1), (0.8, 0.2)))
    assert objective_figures({"plain": one}) == []
    weights, costs = objective_figures({"plain": one, "growing, objective.1.weight.eta=0.1": two})
    assert "growing, objective.1.weight.eta=0.1" in weights
    assert "sigmoid" in costs


def test_a_line_through_swept_numbers_runs_in_their_order():
    def figure(values):
        cells = [trained("a", {"rate": value}, {"valid_map": 0.5, "test_map": 1 - value}) for value in values]
        return swept_figures(drawn_cells(cells, "rate", lambda ranker: "map"), "rate", ["map"])

    assert figure([0.2, 0.05, 0.1]) == figure([0.05, 0.1, 0.2])
    assert ">0.0001<" in figure([0.00001, 0.001, 0.1, 1])[0], "all but one are beside 0 otherwise"
    assert ">−0.4<" in figure([-0.5, 0, 0.5])[0]


def test_more_rankers_than_colours_are_told_apart():
    cells = [trained(f"r{k}", {"rate": rate}, {"valid_map": 0.5, "test_map": 0.1}) for k in range(11) for rate in (1, 2)]
    (figure,) = swept_figures(drawn_cells(cells, "rate", lambda ranker: "map"), "rate", ["map"])
    assert figure.count("stroke-dasharray") == 2, "of the eleventh, in the axes and in the legend"


def test_measures_by_a_swept_parameter():
    def cell(share, valid, test):
        return trained("a", {"train_share": share}, {"valid_map": valid, "test_map": test})

    cells = [cell(0.1, 0.3, 0.2), cell(0.1, 0.2, 0.9), cell(1.0, 0.5, 0.4)]
    drawn = drawn_cells(cells, "train_share", lambda ranker: "map")
    assert drawn == [cells[0], cells[2]], "each value has its own best"
    (figure,) = swept_figures(drawn, "train_share", ["map"])
    assert "train_share" in figure
    assert ">0.9<" not in figure
    assert drawn_cells([trained("a", {}, {})], "train_share", lambda ranker: "map") == []
    assert swept_figures([], "train_share", ["map"]) == []


def test_a_swept_parameter_of_any_kind_and_a_measure_that_a_fold_has_not():
    def cell(value, valid, test, fold=0):
        metrics = {"valid_map": valid, "valid_err": -valid} | ({} if test is None else {"test_map": test})
        one = trained("a", {"p": value}, metrics)
        return replace(one, cell=replace(one.cell, fold=fold))

    for values in ([{}, {"f1": 1}], [None, "pairwise"], [[], [["f1"]]], [True, False], [1, 2]):
        cells = [cell(value, 0.3, test, fold) for value in values for fold, test in ((0, None), (1, 0.25))]
        (figure,) = swept_figures(drawn_cells(cells, "p", lambda ranker: "map"), "p", ["map"])
        assert "<svg" in figure
    cells = [cell(1, 0.3, 0.11), cell(1, 0.2, 0.99), cell(2, 0.2, 0.5)]
    by_own, by_run = (drawn_cells(cells, "p", lambda ranker, by=by: by) for by in ("err", "map"))
    assert (by_own, by_run) == ([cells[1], cells[2]], [cells[0], cells[2]])
    undefined = trained("a", {"p": 1}, {"test_map": 0.9})
    assert drawn_cells([undefined, *cells], "p", lambda ranker: "map") == by_run, "what has no validation value is not chosen"
