"""What a user means by a run: its id or the beginning of it, one ranker of a run, or one of its folds."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import ltr
from tasks.config.reading import from_stored
from tasks.records import DataError
from tasks.store.cells import CellFolder
from tasks.tracking.store import BELOW, CELL_KEY, CHOSEN, EXPERIMENT, PARENT, REFIT, RUN_KEY
from tasks.tracking.tracked import Tracked, other_experiment, tracked, tracked_by_id

_OF_STUDY = "run."
"""Tags of a study begin so: its runs, by their names."""


@dataclass(frozen=True)
class Stored:
    """Per-query test values of one ranker of a finished run, and the key of the measure that the run selected by, where it is known."""

    name: str
    paths: tuple[str, ...]
    select: str | None = None


def find_cell(reference: str) -> Tracked:
    """The run of a model: a cell's own, or ``RUN``, ``RUN:RANKER`` or ``RUN:RANKER:FOLD`` (folds from 1) of a whole run: the cell that it
    chose of that ranker, or of its best one, on that fold; without a fold the one that was trained on all data, where there is one.

    Raises:
        DataError: where there is none, or one a fold and no fold is named.
    """
    run_id, _, rest = reference.partition(":")
    ranker, _, fold = rest.partition(":")
    run = find_run(run_id)
    if RUN_KEY not in run.tags:
        if rest:
            raise DataError(f"{reference}: run {run.id[:8]} is one model and has no rankers to choose from")
        return run
    ranker, keys = _chosen(reference, run, ranker)
    refitted: dict[str, str] = _noted(run, REFIT)
    if ranker in refitted and not fold:
        keys = [refitted[ranker]]
    if fold and not (fold.isdecimal() and 1 <= int(fold) <= len(keys)):
        raise DataError(f"{reference}: fold {fold!r}; {ranker} has {_folds(len(keys))}")
    if not fold and len(keys) > 1:
        again = f", or train it on all data, as a run of its own: lambdaflow refit {run.id[:8]}:{ranker}"
        raise DataError(
            f"{reference}: {ranker} is one model per fold; name one, {run.id[:8]}:{ranker}:1 to {run.id[:8]}:{ranker}:{len(keys)}"
            f"{'' if _learns_from_scores(run, ranker) else again}"
        )
    return _of_key(reference, run.children(), keys[int(fold or 1) - 1])


def _learns_from_scores(run: Tracked, ranker: str) -> bool:
    """Whether a ranker learned from the scores of others, which all data do not have."""
    with suppress(ValueError):
        written = from_stored(run.download("config.yaml").read_text(encoding="utf-8"), run.id[:8])
        return bool(written["rankers"][ranker].get("on")) if isinstance(written.get("rankers"), dict) else False
    return False


def _of_key(reference: str, cells: Sequence[Tracked], key: str) -> Tracked:
    found = next((cell for cell in cells if cell.tags.get(CELL_KEY) == key), None)
    if found is None:
        raise DataError(
            f"{reference}: the run of this model is no longer in MLflow; run the same configuration again, which creates it again"
        )
    return found


def bases_of(cell: Tracked, names: Sequence[str]) -> list[Tracked]:
    """The cells whose scores a cell's ranker learned from, in the order of its features; none where it learned from the data's own.

    Args:
        names: of its features, which are those of rankers of its run where it did.
    """
    parent = next(iter(tracked_by_id(cell.tags.get(PARENT, ""))), None)
    if parent is not None and (below := cell.noted(BELOW)):
        cells = parent.children()
        return [_of_key(f"{parent.id[:8]}:{name}", cells, key) for name, key in zip(names, json.loads(below), strict=True)]
    chosen = _noted(parent, CHOSEN) if parent else {}
    if parent is None or not set(names) <= set(chosen):
        return []
    written = from_stored(parent.download("config.yaml").read_text(encoding="utf-8"), parent.id[:8])
    if list(names) != written["rankers"][cell.params["ranker"]].get("on", []):
        return []
    cells, fold = parent.children(), int(cell.params["fold"])
    return [_of_key(f"{parent.id[:8]}:{name}:{fold}", cells, chosen[name][fold - 1]) for name in names]


def key_of(cell: Tracked) -> str:
    """The key by which the store knows a cell."""
    return cell.tags[CELL_KEY]


def _is_keys(found: Any) -> bool:
    return isinstance(found, list) and bool(found) and all(isinstance(key, str) for key in found)


def _noted(run: Tracked, tag: str) -> dict[str, Any]:
    """What a run noted in one of its tags, by name.

    Raises:
        DataError: where the tag holds something else by now.
    """
    try:
        found: dict[str, Any] = json.loads(run.noted(tag) or "{}")
        if not all(_is_keys([one] if tag == REFIT else one) for one in found.values()):
            raise ValueError("no keys of cells")
    except (ValueError, TypeError, AttributeError):
        raise DataError(
            f"run {run.id[:8]}: its tag {tag} was changed and no longer names what was chosen; run the same configuration again, which writes it again"
        ) from None
    return found


def _folds(n: int) -> str:
    return f"the folds 1 to {n}" if n > 1 else "one fold, 1"


def _chosen(reference: str, run: Tracked, ranker: str) -> tuple[str, list[str]]:
    """A ranker of a whole run, its best one where none is named, and the keys of its chosen cells, by fold."""
    chosen: dict[str, list[str]] = _noted(run, CHOSEN)
    ranker = ranker or run.tags.get("best", "")
    if ranker not in chosen:
        raise DataError(f"{reference}: run {run.id[:8]} has no finished ranker {ranker!r}; it has: {', '.join(chosen) or 'none'}")
    return ranker, chosen[ranker]


def chosen_cells(run: Tracked) -> dict[str, list[Tracked]]:
    """What a run chose: of each ranker its cells, fold by fold; only rankers all of whose cells are still in MLflow."""
    cells = {key_of(cell): cell for cell in run.children() if CELL_KEY in cell.tags}
    chosen: dict[str, list[str]] = _noted(run, CHOSEN)
    return {ranker: [cells[key] for key in keys] for ranker, keys in chosen.items() if set(keys) <= set(cells)}


def find_values(reference: str) -> Stored:
    """``RUN`` (a cell, or the best ranker of a run), ``RUN:RANKER`` (over its folds) or ``RUN:RANKER:FOLD``.

    Raises:
        DataError: where there is no such run, ranker or fold.
    """
    run_id, _, ranker = reference.partition(":")
    run = find_run(run_id)
    if RUN_KEY not in run.tags or ":" in ranker:
        cell = find_cell(reference)
        parent = next(iter(tracked_by_id(cell.tags.get(PARENT, ""))), run)
        return Stored(f"{cell.name} {run.id[:6]}", (str(cell.download_values()),), _select(parent))
    ranker, keys = _chosen(reference, run, ranker)
    cells = run.children()
    return Stored(f"{ranker} {run.id[:6]}", tuple(_values(reference, cells, key) for key in keys), _select(run))


def _select(run: Tracked) -> str | None:
    return ltr.Measure.of(run.params["select"]).key if "select" in run.params else None


def _values(reference: str, cells: Sequence[Tracked], key: str) -> str:
    cell = CellFolder.of(key)
    return str(cell.values if cell.is_finished else _of_key(reference, cells, key).download_values())


def find_run(reference: str) -> Tracked:
    """The one run whose id begins with `reference`.

    Raises:
        DataError: where there is none, or several, or it is a study, which has runs and no model, or another program's.
    """
    found = tracked_by_id(reference)
    if len(found) > 1:
        raise DataError(f"{reference}: {len(found)} run ids start with {reference!r}")
    if not found and (deleted := [run.id for run in tracked_by_id(reference, deleted=True)]):
        raise DataError(
            f"{reference}: this run was deleted in MLflow; restore it there, or by mlflow runs restore --run-id {deleted[0]}"
        )
    if not found and (elsewhere := other_experiment(reference)):
        raise DataError(
            f"{reference}: this run is in MLflow's experiment {elsewhere!r}, and runs are looked up in {EXPERIMENT!r}; if that was renamed, "
            "restore its name (and rename the new one first)"
        )
    if not found:
        raise DataError(f"{reference}: not a model folder, and no run id starts with {reference!r}{_meant(reference)}")
    if found[0].tags.keys().isdisjoint((RUN_KEY, CELL_KEY)):
        raise DataError(f"{reference}: this run was not written by lambdaflow, whose commands read only its own")
    if parts := {name.removeprefix(_OF_STUDY): run_id for name, run_id in found[0].tags.items() if name.startswith(_OF_STUDY)}:
        named = ", ".join(f"{name} {run_id[:8]}" for name, run_id in sorted(parts.items()))
        raise DataError(f"{reference}: this is a study; name one of its runs: {named}")
    return found[0]


def _meant(reference: str) -> str:
    """The latest run of this name, or with a ranker of this name, or of any."""
    whole = tracked(f"tags.`{RUN_KEY}` != ''")
    for run in whole:
        if run.name == reference:
            return f"; the latest run {run.name} is {run.id[:8]}"
    for run in whole:
        with suppress(DataError):
            if reference in _noted(run, CHOSEN):
                return f"; the latest ranker of this name is {run.id[:8]}:{reference}"
    return f"; the latest is {whole[0].id[:8]}" if whole else ""
