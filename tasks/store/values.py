"""Per-query values of measures as tables: taken once, kept with a cell, averaged and compared later without scoring again.

What the numbers rest on, conventions and labels, is in the file's own metadata, so that whoever compares two files can tell whether they
may be compared.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltr.data.queries import Queries
from tasks.records import DataError


def table(values: Mapping[str, NDArray[np.float64]], queries: Queries, split: str) -> pl.DataFrame:
    """One row a query: split, query id and the measures; an undefined value is null."""
    columns = {key: pl.Series(array).fill_nan(None) for key, array in values.items()}
    return pl.DataFrame({"split": [split] * queries.n_queries, "query": names_of(queries), **columns})


@dataclass(frozen=True)
class Basis:
    """What per-query values rest on.

    Attributes:
        conventions: label rules, as a configuration has them.
        labels: of test queries, by source, a digest of every query's labels above 0, whatever the documents, their order and features; where
            documents have ids also of whose labels they are (`by_document`).
    """

    conventions: Mapping[str, str | float]
    labels: Mapping[str, str]


def by_document(source: str) -> str:
    """Under which name the digest of a source's labels and of the ids of their documents is kept."""
    return f"{source} by document"


def digest_of_labels(queries: Queries, source: str, condensed: bool = False, documents: bool = False) -> str:
    """The same for data sets whose queries have the same labels above 0 in this source, with `documents` of the documents of the same ids; with
    `condensed` the same labels, where a document without one holds no rank."""
    labels = queries.source(source)
    above = ~np.isnan(labels) if condensed else labels > 0
    names = np.array(names_of(queries))
    of_query = np.repeat(np.argsort(np.argsort(names)), np.diff(queries.offsets))[above]
    ids = queries.documents[above] if documents and queries.documents is not None else np.zeros(len(of_query), "S1")
    order = np.lexsort((labels[above], ids, of_query))
    hasher = sha256("\0".join(sorted(names.tolist())).encode())
    if documents:
        hasher.update(b"\0".join(ids[order].tolist()))
    for array in (of_query[order].astype(np.int64), labels[above][order]):
        hasher.update(array.tobytes())
    return hasher.hexdigest()[:32]


def write_values(path: Path, frames: Sequence[pl.DataFrame], conventions: Mapping[str, str | float], test: Queries) -> None:
    """Writes tables of values as one, with what they rest on."""
    condensed = conventions.get("unlabelled") == "condensed"
    sources = ("label", *test.sources)
    labels = {source: digest_of_labels(test, source, condensed) for source in sources}
    if test.documents is not None:
        labels |= {by_document(source): digest_of_labels(test, source, condensed, documents=True) for source in sources}
    values, basis = pl.concat(frames), json.dumps(asdict(Basis(conventions, labels)))
    values.write_parquet(path, metadata={"basis": basis, "digest": _digest(values, basis)})


def _digest(values: pl.DataFrame, basis: str) -> str:
    """sha256 of a table of values and of what they rest on."""
    hasher = sha256(basis.encode())
    for column in values:
        plain = (
            "\0".join(column)
            if column.dtype == pl.String
            else column.cast(pl.Float64).fill_null(float("nan")).to_numpy().tobytes().hex()
        )
        hasher.update(f"\0{column.name}\0{plain}".encode())
    return hasher.hexdigest()


def read_basis(path: str | Path) -> Basis | None:
    """What the values of a file rest on; None where it does not say (files of 0.1.0)."""
    with open(path, "rb") as file:
        written = pl.read_parquet_metadata(file).get("basis")
    return Basis(**json.loads(written)) if written else None


def names_of(queries: Queries) -> list[str]:
    """What each query is called in a table of values: its id as written, or its key where it has none."""
    if queries.ids is None:
        return [f"{key:016x}" for key in queries.keys]
    return [key.decode("utf-8", "backslashreplace") for key in queries.ids.tolist()]


def means(frame: pl.DataFrame) -> dict[str, float]:
    """``{split}_{measure}`` → mean over the queries where it is defined; left out where there is none."""
    values = {
        f"{split}_{key}": own[key].drop_nulls().to_numpy()
        for (split,), own in frame.group_by("split", maintain_order=True)
        for key in frame.columns
        if key not in ("split", "query")
    }
    return {name: float(own.mean()) for name, own in values.items() if len(own)}


def read_values(path: str | Path, split: str) -> pl.DataFrame:
    """The stored per-query values of one split, by query.

    Raises:
        DataError: where they were changed since they were written.
    """
    changed = DataError(f"{path}: these per-query values were changed after they were written; run the configuration again")
    try:
        values, written = pl.read_parquet(path, glob=False), pl.read_parquet_metadata(path)
        if "digest" in written and written["digest"] != _digest(values, written["basis"]):
            raise changed
        return values.filter(pl.col("split") == split).sort("query")
    except (pl.exceptions.PolarsError, KeyError, TypeError):
        raise changed from None


def values_of(frame: pl.DataFrame, measure: str) -> NDArray[np.float64]:
    """A measure's values ``float64 [queries]``; NaN where undefined."""
    return frame[measure].cast(pl.Float64).fill_null(float("nan")).to_numpy()


def pooled(frames: Sequence[pl.DataFrame], measure: str) -> NDArray[np.float64]:
    """A measure's values of all folds behind one another, each fold by query id; NaN where undefined."""
    return values_of(pl.concat([frame.select(pl.col(measure).cast(pl.Float64)) for frame in frames]), measure)
