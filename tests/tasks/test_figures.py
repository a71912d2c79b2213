"""Figures: what they show of their numbers, and when there is none."""

import json

from tasks.figures import (
    frontier_figure,
    importance_figure,
    label_of,
    look_figures,
    objective_figures,
    optimality_figure,
    swept_figures,
    trace_figures,
)
from tests.tasks.test_report import CERTIFICATE, LOOKS, PROMISE


def test_labels_as_people_write_them():
    assert [label_of(key) for key in ("ndcg_10", "map", "cndcg_3")] == ["NDCG@10", "MAP", "CNDCG@3"]


def test_the_figures_of_certificates_and_promises():
    assert optimality_figure(CERTIFICATE).count("<path") > 5
    assert "w=1" in frontier_figure(PROMISE)
    assert frontier_figure(PROMISE) == frontier_figure(PROMISE)


def test_features_by_their_mean_share_of_the_gain(tmp_path):
    for k, gain in enumerate(([1.0, 3.0, 0.0], [0.0, 0.0, 0.0])):
        folder = tmp_path / str(k)
        folder.mkdir()
        (folder / "importance.json").write_text(json.dumps({"features": ["slope", "bm25", "unused"], "gain": gain}))
    figure = importance_figure("trees", [str(tmp_path / k / "curve.json") for k in "01"])
    assert figure.index("slope") < figure.index("bm25")
    assert "unused" not in figure
    assert importance_figure("trees", [str(tmp_path / "1" / "curve.json")]) is None
    assert importance_figure("net", [str(tmp_path / "curve.json")]) is None


def test_figures_of_the_microscope():
    assert set(look_figures(LOOKS)) == {"agreement", "partners", "top-labels", "moves"}
    assert set(look_figures({**LOOKS, "agreement": {}})) == {"partners", "top-labels", "moves"}
    assert "share of the top 3" in look_figures(LOOKS)["top-labels"]


def test_schedules_and_costs_are_drawn_where_there_are_several():
    one = {"terms": ["ndcg, logistic"], "costs": ["logistic"], "weights": []}
    two = {"terms": ["ndcg, logistic", "ndcg_3, sigmoid"], "costs": ["logistic", "sigmoid"], "weights": [[0.9, 0.1], [0.8, 0.2]]}
    assert objective_figures({"plain": one}) == []
    weights, costs = objective_figures({"plain": one, "growing, 1.weight.eta=0.1": two})
    assert "growing, 1.weight.eta=0.1" in weights
    assert "sigmoid" in costs


def test_measures_by_a_swept_parameter():
    def cell(ranker, share, valid, test):
        return {"ranker": ranker, "fold": 0, "point": {"train_share": share}, "metrics": {"valid_map": valid, "test_map": test}}

    cells = [cell("a", 0.1, 0.3, 0.2), cell("a", 0.1, 0.2, 0.9), cell("a", 1.0, 0.5, 0.4)]
    (figure,) = swept_figures(cells, "train_share", ["map"], "map")
    assert "train_share" in figure
    assert ">0.9<" not in figure
    assert swept_figures([{**cells[0], "point": {}}], "train_share", ["map"], "map") == []


def test_figures_of_a_conditional_models_fit():
    seen = {
        "ranker": "m",
        "sampled": [3.0, 2.0],
        "closed": [],
        "products": [1.0, -1.0],
        "losses": [0.1, 0.9],
        "smear": {"0": [0.0, 0.4], "1": [1.0]},
    }
    figures = trace_figures(seen)
    assert set(figures) == {"smear", "products", "objective"}
    assert "begun at 100% bad on top" in figures["smear"]
    assert "closed form" not in figures["objective"]
    assert "closed form" in trace_figures({**seen, "closed": [4.0, 3.0]})["objective"]
