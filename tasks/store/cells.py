"""The folder of a trained cell: every file name in it stands here."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tasks.records import Cell, CellResult, Columns, DataError
from tasks.store import state
from tasks.store.seal import digest_of_file, is_whole
from tasks.store.state import core_digest, digest_of, read_json, write_json


@dataclass(frozen=True)
class CellFolder:
    """Where a cell is kept, by its key.

    Attributes:
        path: the folder, which may still be in the making.
    """

    path: Path

    @classmethod
    def of(cls, key: str) -> "CellFolder":
        """The folder of a cell's key."""
        return cls(state.root() / "cells" / key)

    @property
    def model(self) -> Path:
        """Folder of the model's own files."""
        return self.path / "model"

    @property
    def rest(self) -> Path:
        """Trees that were grown after those that the model keeps, where its training may go on."""
        return self.path / "rest.npz"

    @property
    def values(self) -> Path:
        """Per-query values on validation and test queries (`tasks.store.values`)."""
        return self.path / "values.parquet"

    @property
    def curve(self) -> Path:
        """The measure along training, where there is a curve (`CurveFile`)."""
        return self.path / "curve.json"

    @property
    def importance(self) -> Path:
        """Feature importances, where the ranker has some (`ImportanceFile`)."""
        return self.path / "importance.json"

    @property
    def pairs(self) -> Path:
        """Effective pairs along training, where they were counted (`PairsEntry`)."""
        return self.path / "pairs.json"

    @property
    def position_bias(self) -> Path:
        """What was learned of ranks from clicks, where position bias was taken out of them (`PositionBiasFile`)."""
        return self.path / "position-bias.json"

    @property
    def result_file(self) -> Path:
        """The result, which is written last."""
        return self.path / "result.json"

    @property
    def is_finished(self) -> bool:
        """Whether the cell was trained to its end, and nothing of it was damaged since."""
        return is_whole(self.path) and isinstance(read_json(self.result_file), dict)

    def result(self) -> CellResult:
        """The result of a finished cell."""
        return CellResult(**json.loads(self.result_file.read_text(encoding="utf-8")))

    def certificates(self, digest: str) -> Path:
        """Certificates of local optimality, by the digest of how they were made."""
        return self.path / f"optimality-{digest[:16]}.json"

    def inspection(self, digest: str) -> Path:
        """Folder of what the microscope saw, by the digest of how it was set."""
        return self.path / f"microscope-{digest[:16]}"

    def trace(self, digest: str) -> Path:
        """The trace of a conditional model, by the digest of how it was taken."""
        return self.path / f"trace-{digest[:16]}.json"


@dataclass(frozen=True)
class CurveFile:
    """A measure along training, None where it was not taken; `measure` is its key."""

    measure: str | None
    iteration: list[int]
    train: list[float | None]
    valid: list[float | None]


@dataclass(frozen=True)
class ImportanceFile:
    """How much each feature counts, by its share in all gains and by the number of splits."""

    features: list[str]
    gain: list[float]
    splits: list[float]


@dataclass(frozen=True)
class PositionBiasFile:
    """What was learned of ranks, from the first: lists by what it is (``propensity``, ``t_plus``, ``t_minus``, ``bias``)."""

    by_rank: dict[str, list[float]]


@dataclass(frozen=True)
class PairsEntry:
    """Effective pairs of one term at one iteration (`ltr.Ledger`); `bands` of ranks are named by where they end."""

    measure: str
    construction: str
    labels: list[float]
    counts: list[list[list[int]]]
    multilevel: int
    binary: int
    bands: list[int | None]
    total: int
    iteration: int


def columns_file(model: Path) -> Path:
    """Where a model's folder says how its data's files were read."""
    return model / "columns.json"


def read_columns(model: Path) -> Columns | None:
    """How the files of a model's data were read; None where its folder does not say.

    Raises:
        DataError: for a file of another form, one that was changed, or another model's. Releases before 0.2 wrote no digest.
    """
    path = columns_file(model)
    if not path.is_file():
        return None
    try:
        written = json.loads(path.read_bytes())
        digest = written.pop("digest", None) if isinstance(written, dict) else None
        found: Columns = TypeAdapter(Columns).validate_python(written)
    except ValueError as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": str(error)}
        where = "".join(f"{name}: " for name in first["loc"])
        raise DataError(f"{path}: {where}{first['msg']}; the file was changed or is damaged") from None
    if digest is not None and digest != _digest_beside(model, written):
        raise DataError(f"{path}: does not match this model's digest: the file was changed or belongs to another model")
    return found


def write_columns(model: Path, columns: Columns) -> None:
    """Says in a model's folder, which has its other files, how its data's files were read."""
    written = asdict(columns)
    write_json(columns_file(model), {**written, "digest": _digest_beside(model, written)})


def _digest_beside(model: Path, written: Any) -> str:
    """Of what a model remembers, as it is written, and of the model that does."""
    return digest_of([written, digest_of_file(model / "model.json")])


def read_curve(path: Path) -> CurveFile | None:
    """The curve in a file; None where there is none."""
    return CurveFile(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def read_importance(path: Path) -> ImportanceFile | None:
    """The importances in a file; None where there are none."""
    return ImportanceFile(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def read_position_bias(path: Path) -> PositionBiasFile | None:
    """What a file says of ranks; None where there is none."""
    return PositionBiasFile(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def read_pairs(path: Path) -> list[PairsEntry]:
    """The counts in a file; none where there is none."""
    return [PairsEntry(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))] if path.is_file() else []


def write_record(path: Path, record: CurveFile | ImportanceFile | PositionBiasFile | CellResult) -> None:
    """Writes one of the records above."""
    write_json(path, asdict(record))


def write_pairs(path: Path, entries: list[PairsEntry]) -> None:
    """Writes counts of effective pairs."""
    write_json(path, [asdict(entry) for entry in entries])


def cell_key(cell: Cell) -> str:
    """Key of a cell: the digest of everything that decides its outcome, and not of its name and place in a sweep."""
    decides = {
        "section": cell.section,
        **cell.data.roles,
        "measures": list(cell.measures),
        "conventions": cell.conventions,
        "columns": asdict(cell.columns),
    }
    return digest_of({"cell": 2, "core": core_digest(), **decides})[:32]
