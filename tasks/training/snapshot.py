"""What is kept of a cell's training while it is under way, so that a run that was killed or interrupted goes on from there, to the same bytes.

LightGBM writes a model every so many trees (``snapshot_freq``), XGBoost too, CatBoost every ten minutes (``snapshot_file``), and whoever
wants to go on says so. Here it is every minute, and in threads once more when a run is interrupted; the same command goes on by itself.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

import ltr
from ltr.rankers.training import Curve, Progress
from ltr.trees.tree_ranker import TreeRanker
from tasks.store import state
from tasks.store.cells import CellFolder, CurveFile, read_curve, write_record
from tasks.store.seal import SEAL, faults
from tasks.store.state import read_json, write_json

EVERY, AT_LEAST = 60.0, 1.0
"""Seconds of training after which it is written again; that there must be at an interruption."""


class Snapshot:
    """The ranker of a cell as it was a while ago, in a folder of its own until the cell is finished: a callback of its training. Of an average the
    members that are trained."""

    def __init__(self, key: str, seconds: Callable[[], float], is_interrupted: Callable[[], bool]) -> None:
        """`seconds`: how long this process has trained it."""
        self.folder = _folder(key)
        self._own_seconds, self._is_interrupted = seconds, is_interrupted
        self._before, self._written = 0.0, 0.0

    @property
    def seconds(self) -> float:
        """How long the ranker was trained, by whomever."""
        return self._before + self._own_seconds()

    def read(self) -> ltr.Ranker | None:
        """The ranker, where there is one; another command that trains the same may take it away meanwhile."""
        with suppress(OSError, TypeError):
            if (begun := begun_in(self.folder)) is not None:
                self._before = self._written = float(read_json(self.folder.result_file)["seconds"])
            return begun
        return None

    def __call__(self, progress: Progress) -> None:
        """Writes it now and then.

        Raises:
            InterruptedError: once the training was interrupted.
        """
        interrupted = self._is_interrupted()
        if self.seconds - self._written >= (AT_LEAST if interrupted else EVERY):
            with suppress(OSError):  # the cell itself will tell that there is no room
                self._write(progress.so_far())
            self._written = self.seconds
        if interrupted:
            raise InterruptedError("training was interrupted")

    def _write(self, ranker: ltr.Ranker) -> None:
        with state.made_whole(self.folder.path, replace=True) as partial:
            folder = CellFolder(partial)
            ltr.save(ranker, folder.model)
            write_curve(folder, ranker)
            write_rest(folder, ranker)
            write_json(folder.result_file, {"seconds": self.seconds})

    def member(self, k: int, train: Callable[[], ltr.Ranker]) -> ltr.Ranker:
        """A member of an average, which is kept as soon as it is trained."""
        folder, began = CellFolder(self.folder.path / str(k)), self.seconds
        with suppress(OSError, ValueError, TypeError):
            if folder.is_finished:
                kept = read_json(folder.result_file)
                found = replace(ltr.load(folder.model), remarks=tuple(kept["remarks"]))
                self._before += float(kept["seconds"])
                return found
        ranker = train()
        if (seconds := self.seconds - began) >= AT_LEAST:
            with suppress(OSError), state.made_whole(folder.path) as partial:
                ltr.save(ranker, CellFolder(partial).model)
                write_json(CellFolder(partial).result_file, {"seconds": seconds, "remarks": list(ranker.remarks)})
        return ranker

    def clear(self) -> None:
        """Removes it, where that may be done: the cell is there."""
        with suppress(OSError):
            state.remove(self.folder.path)


def is_begun(key: str) -> bool:
    """Whether a cell that is to be trained goes on from a snapshot."""
    folder = _folder(key)
    return _is_unharmed(folder) or any(_is_unharmed(CellFolder(member)) for member in folder.path.glob("[0-9]*"))


def _folder(key: str) -> CellFolder:
    return CellFolder(state.root() / "snapshots" / key)


def begun_in(folder: CellFolder) -> ltr.Ranker | None:
    """The ranker in a folder, with its curve, to go on from; None where there is none that has every byte it was written with, or where another
    command took it away or put a later one in its place while it was read: the trees of one do not go with the curve of another."""
    with suppress(OSError, ValueError, TypeError, BadZipFile):
        seal = (folder.path / SEAL).read_bytes()
        if _is_unharmed(folder):
            begun = _read(folder)
            return begun if (folder.path / SEAL).read_bytes() == seal else None
    return None


def _is_unharmed(folder: CellFolder) -> bool:
    """Whether what is in a folder is finished and has every byte it was written with: what goes on from it is not looked at again."""
    return folder.is_finished and not faults(folder.path, fully=True)


def _read(folder: CellFolder) -> ltr.Ranker:
    curve = read_curve(folder.curve)
    ranker = replace(ltr.load(folder.model), curve=_curve(curve) if curve else None)
    if isinstance(ranker, TreeRanker) and folder.rest.is_file():
        with np.load(folder.rest) as arrays:
            return ranker.with_rest(dict(arrays))
    return ranker


def write_rest(folder: CellFolder, ranker: ltr.Ranker) -> None:
    """What it takes to go on from a ranker, beside its model and its curve."""
    if isinstance(ranker, TreeRanker) and (rest := ranker.rest_arrays):
        np.savez(folder.rest, allow_pickle=False, **rest)


def write_curve(folder: CellFolder, ranker: ltr.Ranker) -> None:
    """The curve of a ranker, where it has one."""
    if ranker.curve is not None:
        write_record(folder.curve, _curve_file(ranker.curve, ranker.watched))


def _curve(file: CurveFile) -> Curve:
    def values(written: list[float | None]) -> NDArray[np.float64]:
        return np.array([np.nan if value is None else value for value in written], np.float64)

    return Curve(np.array(file.iteration, np.int64), values(file.train), values(file.valid))


def _curve_file(curve: Curve, watched: ltr.Measure | None) -> CurveFile:
    def plain(values: NDArray[np.float64]) -> list[float | None]:
        return [None if np.isnan(value) else value for value in values.tolist()]

    return CurveFile(watched.key if watched else None, curve.iteration.tolist(), plain(curve.train), plain(curve.valid))
