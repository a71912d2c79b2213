"""A training that broke off at any moment goes on from where it was, to the bytes of one that never did."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import ltr
from tasks.config.ranker_section import SECTIONS, Conventions
from tasks.records import Cell, Fold
from tasks.store import seal
from tasks.store.cells import CellFolder, cell_key
from tasks.store.datasets import keep_queries
from tasks.training import snapshot
from tasks.training.cell import STOP, train
from tasks.training.snapshot import Snapshot, is_begun
from tests.conftest import make_queries

TREES = {"kind": "lambdamart", "n_trees": 12, "n_leaves": 4, "min_docs_in_leaf": 3, "stop_on": "ndcg_10", "patience": 4}
NET = {"kind": "lambdarank", "epochs": 9, "learning_rate": 0.05, "stop_on": "ndcg_10"}
LOOKS = [round(1 / rank, 3) for rank in range(1, 13)]
PAGES = {**TREES, "stop_on": None, "objective": [{"measure": "cndcg"}]}
SOME = {
    "trees": TREES,
    "trees of sampled rows": {**TREES, "query_share": 0.6, "feature_share": 0.5, "patience": 2},
    "trees without validation": {**TREES, "stop_on": None},
    "trees by two measures": {**TREES, "stop_on": ["ndcg_10", "map"]},
    "trees along a schedule": {
        **TREES,
        "objective": [
            {"measure": "ndcg", "weight": {"kind": "linear", "start": 1.0, "eta": -0.1}},
            {"measure": "map", "weight": {"kind": "linear", "start": 0.0, "eta": 0.1}},
        ],
    },
    "unbiased trees": {**PAGES, "unbiased": {"kind": "pairwise"}},
    "trees of inverse propensities, which regression EM finds": {**PAGES, "unbiased": {"kind": "ipw", "estimate": "regression_em"}},
    "net": {**NET, "keep_epochs": [2, 5]},
    "net of two layers": {**NET, "hidden": 3},
    "net of inverse propensities": {**NET, "objective": [{"measure": "cndcg"}], "unbiased": {"kind": "ipw", "propensities": LOOKS}},
    "net of inverse propensities, all queries at once": {
        **NET,
        "update": "full",
        "objective": [{"measure": "cndcg"}],
        "unbiased": {"kind": "ipw", "propensities": LOOKS},
    },
    "unbiased net": {**NET, "objective": [{"measure": "cndcg"}], "unbiased": {"kind": "dla"}},
}


class Killed(BaseException):
    """The process is gone."""


def with_ranks(queries):
    ranks = np.concatenate([np.arange(1.0, n + 1) for n in np.diff(queries.offsets)])
    return replace(queries, sources={**queries.sources, "position": ranks})


@pytest.fixture
def cell_of(workplace, monkeypatch):
    monkeypatch.setattr(snapshot, "AT_LEAST", 0.0)
    fold = Fold(*(keep_queries(with_ranks(make_queries(30, seed=seed))) for seed in range(3)))
    conventions = Conventions().model_dump(mode="json")

    def made(section):
        read = SECTIONS[section["kind"]](**section).model_dump(mode="json", exclude={"sweep"})
        return Cell("x", "it", 0, {}, read, fold, ("ndcg@10", "map"), conventions)

    return made


def files(key):
    """What a cell left, but for the time it took."""
    folder = CellFolder.of(key)
    left = {path.relative_to(folder.path): path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}
    result = json.loads(folder.result_file.read_bytes())
    sealed = [path for path in left if path.name == snapshot.state.SEAL]
    return {
        **{path: left[path] for path in left if path not in sealed},
        folder.result_file.relative_to(folder.path): {**result, "seconds": 0},
    }


def killed_at(iteration, cell, monkeypatch):
    """Every snapshot is written, and after this iteration there is nobody who trains."""
    written = Snapshot.__call__

    def call(self, progress):
        written(self, progress)
        if progress.iteration == iteration:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "EVERY", 0.0)
        patch.setattr(Snapshot, "__call__", call)
        with pytest.raises(Killed):
            train.fn(cell)


def interrupted_at(iteration, cell, monkeypatch):
    """Somebody ends the run while this iteration is under way."""
    asked = iter([False] * (iteration - 1) + [True] * 99)
    with monkeypatch.context() as patch:
        patch.setattr(STOP, "is_set", lambda: next(asked))
        with pytest.raises(InterruptedError):
            train.fn(cell)


def iterations(cell, monkeypatch, **options):
    """Trains the cell to its end; which iterations that took."""
    seen = []
    with monkeypatch.context() as patch:
        patch.setattr(Snapshot, "__call__", lambda self, progress: seen.append(progress.iteration))
        train.fn(cell, **options)
    return seen


@pytest.mark.parametrize("section", SOME.values(), ids=SOME)
def test_it_goes_on_from_any_iteration_to_the_same_bytes(cell_of, monkeypatch, section):
    cell = cell_of(section)
    key, last = cell_key(cell), iterations(cell, monkeypatch)[-1]
    whole = files(key)
    for kills in ([1], [3], [2, 5, 6], [last]):
        shutil.rmtree(CellFolder.of(key).path)
        for iteration in kills:
            killed_at(iteration, cell, monkeypatch)
            assert is_begun(key)
        assert iterations(cell, monkeypatch)[:1] in ([], [kills[-1] + 1])
        assert files(key) == whole
        assert not is_begun(key)


AVERAGES = {
    "copies": {"copies": 2, "query_share": 0.7},
    "folds": {"folds": 2, "selection": 3},
    "one that has no seed": {"copies": 2, "weights": [1, 2, 3]},
}


@pytest.mark.parametrize("how", AVERAGES.values(), ids=AVERAGES)
def test_an_average_goes_on_with_the_member_that_is_next(cell_of, monkeypatch, how):
    of = [{**TREES, "n_trees": 4}, {**NET, "epochs": 3}, {"kind": "least_squares"}]
    cell = cell_of({"kind": "average", "of": of, **how})
    key = train.fn(cell).key
    whole = files(key)
    shutil.rmtree(CellFolder.of(key).path)
    given, trained = Snapshot.member, []

    def member(self, k, train):
        if k == 4 and k not in trained:
            raise Killed
        return given(self, k, lambda: (trained.append(k), train())[1])

    with monkeypatch.context() as patch:
        patch.setattr(Snapshot, "member", member)
        with pytest.raises(Killed):
            train.fn(cell)
        assert is_begun(key)
        trained.append(4)
        train.fn(cell)
    assert trained == [0, 1, 2, 3, 4, 4, 5][: len(trained)]
    assert len(trained) == (6 if "weights" in how else 7)
    assert files(key) == whole
    assert not is_begun(key)


def test_an_interrupted_training_is_kept_as_far_as_it_got(cell_of, monkeypatch):
    cell = cell_of(TREES)
    key = train.fn(cell).key
    whole = files(key)
    shutil.rmtree(CellFolder.of(key).path)
    interrupted_at(4, cell, monkeypatch)
    assert Snapshot(key, float, bool).read().curve.iteration.tolist() == [1, 2, 3, 4]
    assert iterations(cell, monkeypatch)[0] == 5
    assert files(key) == whole


def test_trainings_of_less_than_a_second_are_not_worth_it(cell_of, monkeypatch):
    monkeypatch.setattr(snapshot, "AT_LEAST", 3600.0)
    cell = cell_of(TREES)
    interrupted_at(4, cell, monkeypatch)
    assert not is_begun(cell_key(cell))


def test_what_is_damaged_or_cannot_be_written_or_is_not_wanted_costs_time_and_nothing_else(cell_of, monkeypatch):
    cell = cell_of(TREES)
    key = train.fn(cell).key
    whole, own = files(key), CellFolder.of(key).path
    shutil.rmtree(own)
    killed_at(3, cell, monkeypatch)
    (Snapshot(key, float, bool).folder.model / "model.npz").write_bytes(b"")
    assert not is_begun(key)
    assert iterations(cell, monkeypatch)[0] == 1
    assert files(key) == whole
    shutil.rmtree(own)
    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "EVERY", 0.0)
        patch.setattr(Snapshot, "_write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        patch.setattr("tasks.store.state.remove", lambda *_: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
        train.fn(cell)
    assert files(key) == whole
    shutil.rmtree(own)
    killed_at(3, cell, monkeypatch)
    assert iterations(cell, monkeypatch, fresh=True)[0] == 1
    assert files(key) == whole
    assert not is_begun(key)


def test_a_snapshot_that_another_command_takes_away_meanwhile_is_none(cell_of, monkeypatch):
    cell = cell_of(TREES)
    key = train.fn(cell).key
    whole = files(key)
    shutil.rmtree(CellFolder.of(key).path)
    killed_at(3, cell, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "read_curve", lambda path: shutil.rmtree(path.parent))
        assert iterations(cell, monkeypatch)[0] == 1
    assert files(key) == whole


OVERFITTED = {**TREES, "n_leaves": 9, "learning_rate": 1.0, "patience": 0}
"""Its second tree is the best of three, its fourth of eight."""


@pytest.mark.parametrize("file", ["rest.npz", "curve.json", "model/model.npz"])
def test_a_byte_that_changed_where_no_block_is_looked_at_costs_time_and_nothing_else(cell_of, monkeypatch, file):
    sample = seal._sample
    monkeypatch.setattr(seal, "_sample", lambda path: "of blocks elsewhere" if "snapshots" in path.parts else sample(path))
    cell = cell_of(OVERFITTED)
    key = train.fn(cell).key
    whole = files(key)
    shutil.rmtree(CellFolder.of(key).path)
    killed_at(8, cell, monkeypatch)
    assert is_begun(key)
    damaged = Snapshot(key, float, bool).folder.path / file
    written = bytearray(damaged.read_bytes())
    place = written.rindex(b"1") if file == "curve.json" else len(written) // 2
    written[place] ^= 1
    damaged.write_bytes(written)
    assert not is_begun(key)
    assert iterations(cell, monkeypatch)[0] == 1
    assert files(key) == whole


@pytest.mark.parametrize("opened", ["read_curve", "ltr.load"])
def test_a_snapshot_that_another_command_replaces_while_it_is_read_is_none(cell_of, monkeypatch, tmp_path, opened):
    cell = cell_of(OVERFITTED)
    key = train.fn(cell).key
    whole = files(key)
    shutil.rmtree(CellFolder.of(key).path)
    own, later = Snapshot(key, float, bool).folder.path, tmp_path / "later"
    killed_at(8, cell, monkeypatch)
    own.rename(later)
    killed_at(3, cell, monkeypatch)
    place = ltr if opened == "ltr.load" else snapshot
    name = opened.rpartition(".")[2]
    given = getattr(place, name)

    def replaced_after(path):
        read = given(path)
        if later.is_dir() and own in path.parents:
            shutil.rmtree(own)
            later.rename(own)
        return read

    with monkeypatch.context() as patch:
        patch.setattr(place, name, replaced_after)
        train.fn(cell)
    assert not later.is_dir()
    assert files(key) == whole


def test_seconds_are_those_of_all_its_trainings(cell_of, monkeypatch):
    cell = cell_of(TREES)
    killed_at(3, cell, monkeypatch)
    assert json.loads(Snapshot(cell_key(cell), float, bool).folder.result_file.read_bytes())["seconds"] > 0
    monkeypatch.setattr(snapshot, "read_json", lambda path: {"seconds": 1000.0})
    assert 1000 < train.fn(cell).seconds < 1100
