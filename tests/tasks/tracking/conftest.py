"""A finished cell, of which runs in MLflow are made."""

import json

import pytest

import ltr
from tasks.records import Cell, CellResult, Fold, LoggedDataset
from tasks.store.cells import CellFolder
from tasks.store.values import table
from tests.conftest import make_queries

DATA = [LoggedDataset("train", "train", "ab" * 32, "{}", "{}")]


@pytest.fixture
def cell(workplace):
    queries = make_queries(10)
    folder = CellFolder.of("k1")
    model = ltr.LeastSquares().fit(queries)
    ltr.save(model, folder.model)
    table({"map": queries.labels[: queries.n_queries]}, queries, "test").write_parquet(folder.values)
    points = {"measure": "map", "iteration": list(range(1000)), "train": [None] * 1000, "valid": [0.5] * 1000}
    folder.curve.write_text(json.dumps(points))
    folder.position_bias.write_text(json.dumps({"by_rank": {"propensity": [1 / rank for rank in range(1, 41)]}}))
    cell = Cell("cell", "ridge", 0, {}, {"a": 1}, Fold("", "", ""), ("map",), {})
    return cell, CellResult("k1", model.digest, {"test_map": 0.5}, 1.0), DATA, {}
