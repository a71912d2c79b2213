"""Cells of a grid, and the choice among them."""

import pytest

from flows.sweep import cells_of, choose
from tasks.config.reading import parse
from tasks.store.cells import cell_key

CONFIG = parse({
    "data": {"files": "x"},
    "rankers": {"a": {"kind": "lambdamart", "sweep": {"learning_rate": [0.1, 0.2]}}, "b": {"kind": "least_squares"}},
})  # fmt: skip
FOLDS = [{"train": f"t{k}", "valid": f"v{k}", "test": f"e{k}"} for k in range(3)]


def test_a_cell_for_each_ranker_point_and_fold():
    cells = cells_of(CONFIG, list(CONFIG.rankers), FOLDS)
    assert len(cells) == 9
    assert cells[0]["label"] == "a · learning_rate=0.1 · fold 1"
    assert cells_of(CONFIG, list(CONFIG.rankers), FOLDS[:1])[2]["label"] == "b"
    assert len({cell_key(cell) for cell in cells}) == 9


def test_the_best_on_validation_and_the_first_of_equals():
    cells = cells_of(CONFIG, list(CONFIG.rankers), FOLDS[:1])
    results = [
        (cell, {"key": str(k), "metrics": {"valid_map": value}})
        for k, (cell, value) in enumerate(zip(cells, (0.5, 0.5, 0.1), strict=True))
    ]
    assert [(ranker, result["key"]) for ranker, _, _, result in choose(results, "map")] == [("a", "0"), ("b", "2")]
    with pytest.raises(ValueError, match="ndcg is undefined on every validation query"):
        list(choose(results, "ndcg"))
