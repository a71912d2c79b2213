"""A small file of results that stands beside configurations in a repository: what runs gave and from what, and whether they give it again.

JSON, one entry a run by its name; numbers are rounded, as the file is for people and for differences in a review. Everything else about a
run is in MLflow, under the run's id.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ltr
from tasks.config.run_config import RunConfig
from tasks.records import DataError, Trained, point_title
from tasks.report.outcome import RunOutcome
from tasks.store.datasets import about_queries
from tasks.store.state import alone, core_digest, written_whole

DIGITS = 6
"""Behind the point."""
EXACT = ("point", "configuration")
"""Parts of an entry whose numbers are settings, and are not rounded."""
WHENCE = ("run", "commit", "core")
"""Parts of an entry that differ from run to run."""

_SHOWN = 80
"""Letters of each side of a difference."""

Entry = Mapping[str, Any]


def entry(outcome: RunOutcome, commit: str | None) -> Entry:
    """What the file keeps of a run.

    Args:
        commit: of the code that ran, where that is known.
    """
    config = outcome.asked or outcome.config
    roles = [[about_queries(name).queries for name in fold.roles.values()] for fold in outcome.folds]
    return _rounded({
        "run": outcome.run_id,
        "commit": commit,
        "core": core_digest()[:12],
        "config": config.digest[:12],
        "configuration": _asked(config),
        "data": {"queries": roles, "digests": [[name[:12] for name in fold.roles.values()] for fold in outcome.folds]},
        "seed": config.seed,
        "cut": config.cut,
        "conventions": {k: v for k, v in config.conventions.model_dump(mode="json").items() if v != _DEFAULTS[k]},
        "select": config.select_key,
        "rankers": {name: _ranker(outcome, name) for name in outcome.config.rankers},
        "cells": [_cell(outcome, trained) for trained in outcome.drawn],
        "failed": [str(failure) for failure in outcome.failures],
        **{key: found for one in outcome.evidence for key, found in one.numbers().items()},
    })  # fmt: skip


def _asked(config: RunConfig) -> Entry:
    """What was asked of the run where it is not what a configuration has by itself, but for where files lie."""
    written, plain = (
        config.model_dump(mode=mode, exclude_defaults=True, exclude={"name", "workers"}) for mode in ("python", "json")
    )
    return _without_paths(written, plain)


def _without_paths(written: Mapping[str, Any], plain: Mapping[str, Any]) -> Entry:
    """Of a section, as it is and as plain values, the latter but for paths."""
    return {
        key: _without_paths(one, plain[key]) if isinstance(one, Mapping) and one else plain[key]
        for key, one in written.items()
        if not _is_path(one)
    }


def _is_path(value: Any) -> bool:
    if isinstance(value, Mapping | list | tuple):
        return bool(value) and all(map(_is_path, value.values() if isinstance(value, Mapping) else value))
    return isinstance(value, Path) or (isinstance(value, str) and os.path.isabs(value))


_DEFAULTS = vars(ltr.Conventions())


def _ranker(outcome: RunOutcome, name: str) -> Entry:
    row, chosen = outcome.standings.rows[name], outcome.chosen_of(name)
    letters = {standing.letter: other for other, standing in outcome.standings.rows.items()}
    return {
        "chosen": [point_title(trained.cell.point) for trained in chosen],
        "at an end": sorted({note for trained in chosen for note in outcome.ends_of(trained)}),
        "remarks": ["; ".join(trained.result.remarks) for trained in chosen if trained.result.remarks],
        "models": [trained.result.digest[:12] for trained in chosen],
        "test": {key: [mean.mean, mean.se] for key, mean in row.cells.items()},
        "beats": {key: {letters[a]: level for a, level in mean.beats.items()} for key, mean in row.cells.items() if mean.beats},
    }


def _cell(outcome: RunOutcome, trained: Trained) -> Entry:
    """What was taken of a cell that a figure draws."""
    whence = {"ranker": trained.ranker, "fold": trained.fold, "point": dict(trained.cell.point)}
    return {**whence, "at an end": outcome.ends_of(trained), **trained.result.metrics}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS) if math.isfinite(value) else None  # JSON has no NaN, which differs from itself besides
    if isinstance(value, Mapping):
        return {str(key): one if key in EXACT else _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value


def read_results(file: Path) -> dict[str, Entry]:
    """The entries of a file by the names of their runs; none where there is no file.

    Raises:
        DataError: for what is no such file, or in no folder that is there.
    """
    if not file.parent.is_dir():
        raise DataError(f"{file}: there is no folder {file.parent}")
    if file.is_dir():
        raise DataError(f"{file}: this is a folder; name a file in it")
    if not file.exists():
        return {}
    if not file.is_file():
        raise DataError(f"{file}: this is a pipe or a device; name a file")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(found, dict) or not all(isinstance(one, dict) and "rankers" in one for one in found.values()):
            raise ValueError("no entry of a run for every name")
    except ValueError:
        raise DataError(f"{file}: not written by --record, left unchanged; choose another name") from None
    return found


def keep_results(outcome: RunOutcome, commit: str | None, file: Path) -> list[str]:
    """Puts a run into the file, in place of an entry of its name; and how it stands to that one, in sentences.

    Raises:
        DataError: for a file that holds something else.
    """
    name, new = outcome.config.name, entry(outcome, commit)
    with alone(file.absolute().parent):  # so that no run is kept in the place of another
        before = read_results(file)
        write_results({**before, name: new}, file)
    if name not in before:
        return [f"recorded in {file}: {name}"]
    return list(differences(before[name], new)) or [f"as recorded in {file}: {name}"]


def write_results(entries: Mapping[str, Entry], file: Path) -> None:
    """Writes entries into a file, in the order of their names; it is there whole or as it was."""
    with written_whole(file) as partial:
        partial.write_text(_written(entries), encoding="utf-8")


def _written(entries: Mapping[str, Entry]) -> str:
    """JSON whose lists, innermost objects and objects in lists stand on one line each."""

    def text(value: Any, indent: str) -> str:
        inside = indent + " "
        if isinstance(value, dict) and any(isinstance(one, dict | list) and one for one in value.values()):
            rows = [f"{inside}{json.dumps(key, ensure_ascii=False)}: {text(one, inside)}" for key, one in value.items()]
            return "{\n" + ",\n".join(rows) + f"\n{indent}" + "}"
        if isinstance(value, list) and any(isinstance(one, dict) for one in value):
            return "[\n" + ",\n".join(inside + json.dumps(one, ensure_ascii=False) for one in value) + f"\n{indent}]"
        return json.dumps(value, ensure_ascii=False)

    return text({name: entries[name] for name in sorted(entries)}, "") + "\n"


def _where_they_differ(a: str, b: str) -> list[str]:
    """Two texts, of long ones some letters before they differ and what follows."""
    same = next((k for k, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))
    start = same - 20 if same > 60 else 0
    return [f"{'…' if start else ''}{one[start:][:_SHOWN]}" for one in (a, b)]


def differences(old: Entry, new: Entry) -> Iterator[str]:
    """What differs between two entries of one run, by path: ``rankers.net.test.map: [0.41, 0.01] → [0.42, 0.01]``."""

    def walk(path: str, a: Any, b: Any) -> Iterator[str]:
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            for key in dict.fromkeys([*a, *b]):
                yield from walk(f"{path}.{key}" if path else key, a.get(key), b.get(key))
        elif a != b:
            both = [json.dumps(one, ensure_ascii=False) for one in (a, b)]
            if isinstance(a, list) and isinstance(b, list) and len(a) == len(b) and max(map(len, both)) > _SHOWN:
                for k, (one, other) in enumerate(zip(a, b, strict=True), 1):
                    yield from walk(f"{path}[{k}]", one, other)
            else:
                yield f"{path}: {' → '.join(_where_they_differ(*both))}"

    for part in dict.fromkeys([*old, *new]):
        if part not in WHENCE and (part != "configuration" or part in old):  # older files have the digest alone
            yield from walk(part, old.get(part), new.get(part))
