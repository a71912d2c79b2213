"""A cell is trained once, known by what decides it, and whole or not there."""

import json
import time
from contextvars import copy_context
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from numba.core.compiler_lock import global_compiler_lock
from prefect.utilities.callables import cloudpickle_wrapped_call

import ltr
from tasks.config.ranker_section import SECTIONS, Conventions
from tasks.records import RETRIEVED, Cell, Fold
from tasks.store import binned, state
from tasks.store.cells import CellFolder, PositionBiasFile, cell_key, read_position_bias
from tasks.store.datasets import keep_queries, open_queries
from tasks.store.values import read_values
from tasks.training.cell import _polished, polish_was_left, train
from tasks.training.how_far import how_far
from tasks.training.snapshot import Snapshot
from tests.conftest import make_queries
from tests.ltr.objectives.test_unbiased import judged, pages


@pytest.fixture
def cell(workplace):
    fold = Fold(*(keep_queries(make_queries(30, seed=seed)) for seed in range(3)))
    section = SECTIONS["lambdarank"](kind="lambdarank", epochs=3).model_dump(mode="json", exclude={"sweep"})
    conventions = Conventions().model_dump(mode="json")
    return Cell("x", "net", 0, {}, section, fold, ("ndcg@10", "map", "cndcg@3"), conventions)


def test_a_cell_leaves_model_values_and_curve(cell):
    result = train.fn(cell)
    folder = CellFolder.of(result.key)
    model = ltr.load(folder.model)
    assert model.digest == result.digest
    test = open_queries(cell.data.test)
    values = read_values(folder.values, "test")
    mine = ltr.evaluate({"label": test.labels, **test.sources}, model.predict(test.features), test.offsets, ["ndcg_10"])["ndcg_10"]
    assert values.height == test.n_queries
    assert result.metrics["test_ndcg_10"] == pytest.approx(np.nanmean(mine))
    assert set(result.metrics) == {f"{split}_{m}" for split in ("valid", "test") for m in ("ndcg_10", "map", "cndcg_3")}
    assert len(json.loads(folder.curve.read_text())["iteration"]) == 3


def test_a_cell_leaves_what_it_learned_of_ranks(cell):
    pages = make_queries(30, seed=0)
    ranks = np.concatenate([np.arange(1.0, n + 1) for n in np.diff(pages.offsets)])
    fold = replace(cell.data, train=keep_queries(replace(pages, sources={**pages.sources, "position": ranks})))
    result = train.fn(replace(cell, data=fold, section={**cell.section, "unbiased": {"kind": "dla"}}))
    folder = CellFolder.of(result.key)
    (looks,) = ltr.load(folder.model).position_bias.values()
    assert read_position_bias(folder.position_bias) == PositionBiasFile({"propensity": looks.tolist()})
    assert not CellFolder.of(train.fn(cell).key).position_bias.is_file()


def test_processes_and_other_machines_can_be_sent_the_training(cell):
    assert cloudpickle_wrapped_call(train, cell, 1)


def test_whether_a_cell_is_kept_is_looked_up_in_the_folder_of_its_run(cell, workplace, tmp_path):
    other = str(tmp_path / "of another run")
    key = train.fn(cell).key

    def of_a_worker():
        """Which was at work for another run before."""
        state.use_folder(other)
        return [train.cache_key_fn(None, {"cell": cell, "home": home}) for home in (str(workplace), other)]

    assert copy_context().run(of_a_worker) == [key, None]


def test_a_finished_cell_is_not_trained_again(cell, monkeypatch):
    first = train.fn(cell)
    monkeypatch.setattr(ltr.LambdaRank, "fit", lambda *_: pytest.fail("trained again"))
    assert train.fn(cell) == first
    assert train.fn(replace(cell, label="another name")) == first


def test_prefect_gets_a_name_that_its_indexes_in_postgresql_hold(cell):
    assert train.task_run_name.format(cell=cell) == "train x"
    name = train.task_run_name.format(cell=replace(cell, label=f"{'x' * 9000} · fold 2"))
    assert (len(name), name.endswith(" · fold 2")) == (256, True)


def test_while_it_is_trained_it_is_known_how_far_it_is(cell, monkeypatch):
    seen = []
    monkeypatch.setattr(Snapshot, "__call__", lambda *_: seen.append(how_far()))
    train.fn(cell)
    assert seen == [f"iteration {k} of 3 of x" for k in (1, 2, 3)]
    assert how_far() == ""


def test_fresh_gives_the_same_bytes_and_threads_do_not_matter(cell):
    first = train.fn(cell)
    for options in ({"fresh": True}, {"fresh": True, "threads": 1}):
        again = train.fn(cell, **options)
        assert replace(again, seconds=0) == replace(first, seconds=0)


def test_trees_of_many_values_grow_on_features_that_all_cells_share(cell, monkeypatch):
    """Those that go on too; each is what it is alone. What no run retrieved is none of them."""
    trees = {"kind": "lambdamart", "n_leaves": 4, "min_docs_in_leaf": 5, "stop_on": None}
    sections = [SECTIONS["lambdamart"](**trees, n_trees=n).model_dump(mode="json", exclude={"sweep"}) for n in (2, 5)]
    short, long = (replace(cell, section=section, goes_on=True) for section in sections)
    alone = [train.fn(one) for one in (short, long)]
    monkeypatch.setattr(binned, "LEAST_VALUES", 0)
    shared = [train.fn(short, fresh=True), train.fn(replace(long, start=cell_key(short)), fresh=True)]
    assert [one.digest for one in shared] == [one.digest for one in alone]
    assert len(list((state.root() / "binned").iterdir())) == 1
    retrieved = make_queries(30)
    retrieved = replace(retrieved, sources={**retrieved.sources, RETRIEVED: np.ones(retrieved.n_documents)})
    train.fn(replace(short, data=replace(cell.data, train=keep_queries(retrieved))))
    assert len(list((state.root() / "binned").iterdir())) == 1


def test_seconds_of_training_are_none_of_compiling(cell, monkeypatch):
    fit = ltr.LambdaRank.fit

    def compiles_first(*arguments, **named):
        with global_compiler_lock:
            time.sleep(0.5)
        return fit(*arguments, **named)

    first = train.fn(cell).seconds
    monkeypatch.setattr(ltr.LambdaRank, "fit", compiles_first)
    assert train.fn(cell, fresh=True).seconds < first + 0.4


def test_the_key_is_what_decides(cell, monkeypatch):
    key = cell_key(cell)
    assert cell_key(replace(cell, label="y", fold=3)) == key
    assert cell_key(replace(cell, data=replace(cell.data, train=cell.data.valid))) != key
    assert cell_key(replace(cell, measures=("map",))) != key
    monkeypatch.setattr("tasks.store.cells.core_digest", lambda: "another core")
    assert cell_key(cell) != key


def test_a_failed_cell_leaves_nothing(cell, monkeypatch):
    monkeypatch.setattr(pl.DataFrame, "write_parquet", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        train.fn(cell)
    assert not list((state.root() / "cells").iterdir())


def test_what_another_run_finished_meanwhile_stays_where_it_is(cell, monkeypatch):
    fit, nested = ltr.LambdaRank.fit, []

    def slower(self, *given, **named):
        if not nested:
            nested.append(True)
            nested.append(train.fn(cell))
        return fit(self, *given, **named)

    monkeypatch.setattr(ltr.LambdaRank, "fit", slower)
    own = train.fn(cell)
    folder = CellFolder.of(own.key)
    assert folder.result() == nested[1]
    assert not [one for one in folder.path.parent.iterdir() if one != folder.path]


def test_a_damaged_cell_is_trained_again(cell):
    first = train.fn(cell)
    folder = CellFolder.of(first.key)
    for file in (folder.model / "model.npz", folder.result_file):
        file.write_bytes(b"")
        assert not folder.is_finished
        assert train.fn(cell).digest == first.digest
        assert folder.is_finished
    (folder.path / "seal.json").unlink()  # as an earlier release left it
    folder.result_file.write_text("")
    assert train.fn(cell).digest == first.digest


def test_a_polished_ranker_is_an_optimum_where_validation_takes_it(cell):
    """Chosen by what validation says of the two places; the remark says which."""
    how = {"measure": "map", "steps": 1000, "epsilon": 0.1, "delta": 0.1}
    plain, polished = train.fn(cell), train.fn(replace(cell, section={**cell.section, "polish": how}))
    model = ltr.load(CellFolder.of(polished.key).model)
    valid, before = (result.metrics["valid_map"] for result in (polished, plain))
    said = polished.remarks[-1]
    assert said.startswith("polished, map 0.")
    assert (polish_was_left(polished), polish_was_left(plain)) == (said.endswith(": left"), False)
    assert f"; validation {before:.4f} → " in said
    assert ": not" not in said, "the few queries may tie too often for a verdict, but nothing rises"
    assert (said.endswith(": taken"), model.digest != plain.digest) == (
        (valid >= before, True) if "taken" in said else (False, False)
    )
    train_queries = open_queries(cell.data.train)
    found = ltr.certify(model.surface(train_queries.features), train_queries, "map", epsilon=0.1, delta=0.1, seed=123)
    assert found.rising <= 3 or said.endswith(": left")


def test_without_validation_queries_the_polished_ranker_is_taken(cell):
    data = Fold(cell.data.train)
    how = {"measure": "ndcg_10", "steps": 3, "epsilon": 0.1, "delta": 0.1}
    result = train.fn(replace(cell, data=data, section={**cell.section, "polish": how}))
    assert "in 3 steps" in result.remarks[-1]
    assert result.digest != train.fn(replace(cell, data=data)).digest


@pytest.mark.parametrize("kind", ["pairwise", "additive"])
def test_trees_that_go_on_know_what_was_learned_of_ranks_by_those_that_were_left_out(workplace, kind):
    """The model keeps biases up to its best tree; those behind it went on from the last one that it knew."""
    fold = Fold(*(keep_queries(part) for part in (pages(n_queries=40), judged(2, 20), judged(3, 20))))
    about = {
        "kind": "lambdamart",
        "n_leaves": 8,
        "min_docs_in_leaf": 10,
        "learning_rate": 0.3,
        "stop_on": "ndcg_3",
        "unbiased": kind,
    }
    left_out = 0
    for seed in range(1, 5):

        def cell_of(n_trees, seed=seed, **more):
            section = SECTIONS["lambdamart"](**about, n_trees=n_trees, seed=seed).model_dump(mode="json", exclude={"sweep"})
            return Cell("x", "trees", 0, {}, section, fold, ("ndcg_3",), Conventions().model_dump(mode="json"), **more)

        begun = train.fn(cell_of(20, goes_on=True))
        gone_on = train.fn(cell_of(40, start=begun.key))
        at_once = train.fn(cell_of(40), fresh=True)
        assert (gone_on.digest, gone_on.metrics) == (at_once.digest, at_once.metrics)
        left_out += ltr.load(CellFolder.of(begun.key).model).trees.n_trees < 20
    assert left_out


def taken(labels, before, after, rules):
    """Which ranking is taken, where polishing turns one column's into another's."""
    queries = ltr.Queries(np.column_stack((before, after)), labels, [0, len(labels)])
    first, second = (ltr.Column(name, conventions=rules).fit(queries) for name in ("f1", "f2"))
    how = SimpleNamespace(measure="ndcg_10", steps=1, epsilon=0.1, delta=0.1)
    with patch.object(ltr, "polish", lambda *_: SimpleNamespace(ranker=second, text="moved")):
        return _polished(first, how, {"train": queries, "valid": queries}).feature


def test_a_polished_ranker_is_taken_where_it_is_no_worse():
    assert taken([0, 1, 2], [3, 2, 1], [1, 2, 3], ltr.Conventions()) == "f2"
    assert taken([0, 1, 2], [1, 2, 3], [3, 2, 1], ltr.Conventions()) == "f1"


def test_whether_polishing_pays_is_measured_by_the_rankers_own_gains():
    """Linear gains prefer the order that 2^label − 1 does not."""
    labels, before, after = [5, 4, 4, 4, 0], [5, 1, 2, 3, 4], [2, 5, 4, 3, 1]
    for gain, better in (("exp2", "f1"), ("linear", "f2")):
        assert taken(labels, before, after, ltr.Conventions(gain=gain)) == better


def test_nothing_is_learned_from_what_no_run_retrieved(workplace):
    """Nothing is learned from what no run retrieved."""
    q = ltr.Queries(np.array([[3], [2], [1], [9]], np.float32), [2, 1, 0, 0], [0, 4], sources={RETRIEVED: [1, 1, 1, 0]})
    section = SECTIONS["least_squares"](kind="least_squares").model_dump(mode="json", exclude={"sweep"})
    name = keep_queries(q)
    cell = Cell("x", "a", 0, {}, section, Fold(name, name, name), ("ndcg@10",), Conventions().model_dump(mode="json"))
    assert train.fn(cell).metrics["test_ndcg_10"] == pytest.approx(1.0)
