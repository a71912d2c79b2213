"""Cells of a grid, and the choice among them."""

import pytest

from flows.sweep import cells_of, choose
from tasks.config.reading import parse
from tasks.records import CellResult, Fold, Trained
from tasks.store.cells import cell_key

CONFIG = parse({
    "data": {"files": "x"},
    "rankers": {"a": {"kind": "lambdamart", "sweep": {"learning_rate": [0.1, 0.2]}}, "b": {"kind": "least_squares"}},
})  # fmt: skip
FOLDS = tuple(Fold(f"t{k}", f"v{k}", f"e{k}") for k in range(3))


def test_a_cell_for_each_ranker_point_and_fold():
    cells = cells_of(CONFIG, list(CONFIG.rankers), FOLDS)
    assert len(cells) == 9
    assert cells[0].label == "a · learning_rate=0.1 · fold 1"
    assert cells_of(CONFIG, list(CONFIG.rankers), FOLDS[:1])[2].label == "b"
    assert len({cell_key(cell) for cell in cells}) == 9


def test_the_best_on_validation_and_the_first_of_equals():
    cells = cells_of(CONFIG, list(CONFIG.rankers), FOLDS[:1])
    trained = [
        Trained(cell, CellResult(str(k), "digest", {"valid_map": value}, 1.0))
        for k, (cell, value) in enumerate(zip(cells, (0.5, 0.5, 0.1), strict=True))
    ]
    assert [(one.ranker, one.result.key) for one in choose(trained, "map")] == [("a", "0"), ("b", "2")]
    with pytest.raises(ValueError, match="ndcg is undefined on every validation query"):
        list(choose(trained, "ndcg"))
