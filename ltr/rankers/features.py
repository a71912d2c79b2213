"""What users give as features: arrays, sparse matrices, and frames of pandas and polars whose columns are found by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from ltr.data.arrays import few_of, rows_of
from ltr.data.masked import is_table, unmasked
from ltr.data.queries import FarValueError, Queries, as_float32
from ltr.data.sparse import SparseFeatures, is_sparse, sparse_features
from ltr.kernels.kernel import Array, Floats32

MOST_DENSE = 1 << 28
"""Numbers of sparse features that are made dense at once."""
_COLUMNS, _ROWS = 16, 1024
"""Features, and documents, that are looked at together in float64, which all at once would take several times the memory of the features."""


class Frame(Protocol):
    """What is used of a frame of polars or pandas."""

    @property
    def columns(self) -> Iterable[str]:
        """Their names."""
        ...

    @overload
    def __getitem__(self, names: str) -> ArrayLike: ...

    @overload
    def __getitem__(self, names: list[str]) -> Frame: ...

    def __len__(self) -> int: ...

    def to_numpy(self) -> Array:
        """``[rows, columns]``."""
        ...


Features = ArrayLike | Frame
"""``[documents, features]``, or a frame whose columns have the features' names."""


def blocks_of(n_features: int) -> Iterator[slice]:
    """All features, 16 to 31 of them at a time, where there are so many: of a single one NumPy would add up the documents in another order."""
    n_blocks = max(n_features // _COLUMNS, 1)
    ends = [n_features * k // n_blocks for k in range(n_blocks + 1)]
    yield from map(slice, ends, ends[1:])


def by_rows(of: Callable[[Floats32], Array], features: Floats32) -> Floats32:
    """``of(features) float32 [documents, features]``, which makes each number of one number."""
    made = np.empty(features.shape, np.float32)
    for first in range(0, len(features), _ROWS):
        made[first : first + _ROWS] = of(features[first : first + _ROWS])
    return made


def checked_features(features: Features, names: tuple[str, ...]) -> Floats32:
    """``float32 [documents, features]`` of an array, or of a frame whose columns have the model's feature names.

    Raises:
        ValueError: when the model is not fitted, the width differs, a named feature is missing or one is no number.
    """
    if not names:
        raise ValueError("this model is not fitted")
    if is_sparse(features):
        rows = checked_sparse(features, names)
        if rows.shape[0] * rows.shape[1] > MOST_DENSE:
            raise ValueError(
                f"features: {rows.shape[0]:,} × {rows.shape[1]:,} of them are too many to be made dense here; give fewer rows, or their toarray()"
            )
        dense: Floats32 = rows.toarray()
        return dense
    if columns := columns_of(features):
        if missing := [name for name in names if name not in columns]:
            raise ValueError(f"features missing in the data: {few_of(missing)}")
        features = _numbers(cast(Frame, features)[list(names)], names)
    elif is_table(features):  # whose columns are numbered
        features = _numbers(cast(Frame, features), tuple(cast(Frame, features).columns))
    try:
        array = as_float32(np.asarray(unmasked(features)), "features")
    except FarValueError:
        raise
    except (TypeError, ValueError, OverflowError):
        meant = "; of ltr.Queries, give their features" if isinstance(features, Queries) else ""
        raise ValueError(f"features: {type_of(features)}; expected numbers [documents, {len(names)}]{meant}") from None
    if array.ndim != 2:
        raise ValueError(f"features have shape {array.shape}; expected [documents, {len(names)}], a row for each document")
    if array.shape[1] != len(names):
        raise ValueError(f"features have shape {array.shape}; the model was fitted on {len(names)} features")
    return array


def columns_of(X: Features) -> list[str]:
    """Columns of a frame; none of an array, or of a frame whose columns are numbered.

    Raises:
        ValueError: for a lazy frame or an Arrow table, for two columns of one name, where some are named by text and others are not, and for
            a column of categories where none is: they are known by its name.
    """
    if hasattr(X, "collect") and not hasattr(X, "__len__"):
        raise ValueError(f"X: a {type(X).__name__} holds no rows yet; collect() it first")
    if hasattr(X, "column_names") and hasattr(X, "to_pandas"):
        raise ValueError(f"X: a {type(X).__name__} of Arrow; give polars.from_arrow(X), or its to_pandas()")
    columns = list(getattr(X, "columns", ()))
    require_distinct(columns, "X")
    if 0 < (text := sum(isinstance(name, str) for name in columns)) < len(columns):
        other = next(name for name in columns if not isinstance(name, str))
        raise ValueError(
            f"X: {text} of {len(columns)} columns are named by text, and one is {other!r}; give all of them names of text"
        )
    if text == len(columns):
        return columns
    for name, kind in zip(columns, getattr(X, "dtypes", ()), strict=False):
        if f"{kind}".startswith(("category", "dictionary")):
            raise ValueError(
                f"X: column {name!r} holds categories, which are known by the name of their column; give all columns names of text, or the categories' numbers"
            )
    return []


def require_distinct(columns: list[str], what: str) -> None:
    """Raises ValueError where two columns have one name, and nobody knows which is meant."""
    if len({*columns}) < len(columns):
        raise ValueError(f"{what}: two columns are called {next(name for name in columns if columns.count(name) > 1)!r}")


_NO_NUMBERS = ("category", "categorical", "enum", "date", "timedelta", "duration", "time", "period")
"""How the names of types begin, in pandas and polars, that hold numbers only as their own code."""


def _numbers(frame: Frame, names: tuple[str, ...]) -> Floats32:
    kinds = zip(names, getattr(frame, "dtypes", ()), strict=False)
    text = [name for name, kind in kinds if f"{kind}".lower().startswith(_NO_NUMBERS)]
    if not text:
        try:
            return as_float32(np.asarray(frame.to_numpy()), "features")
        except FarValueError:
            raise
        except (TypeError, ValueError):
            columns = [unmasked(frame[name]) for name in names]
            text = [name for name, column in zip(names, columns, strict=True) if not _is_numeric(column)]
            if not text:
                numbers = (as_float32(np.asarray(column), name) for name, column in zip(names, columns, strict=True))
                return rows_of(numbers, len(columns[0]), len(columns))
    raise ValueError(
        f"features: column {text[0]!r} holds no numbers; ltr.Estimator knows categories by the column that it was fitted to"
    )


def _is_numeric(column: object) -> bool:
    try:
        as_float32(np.asarray(column), "")
    except FarValueError:
        return True
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def checked_sparse(features: object, names: tuple[str, ...]) -> SparseFeatures:
    """`ltr.data.sparse.sparse_features`, as many columns as there are names.

    Raises:
        ValueError: when the model is not fitted or the width differs.
    """
    rows = sparse_features(features)
    if not names:
        raise ValueError("this model is not fitted")
    if rows.shape[1] != len(names):
        raise ValueError(f"features have shape {rows.shape}; the model was fitted on {len(names)} features")
    return rows


def type_of(given: object) -> str:
    """What something is, for people: its type, and an array's shape."""
    shape = getattr(given, "shape", None)
    return f"a {type(given).__module__.split('.')[0].replace('builtins', 'Python')} {type(given).__name__}{f' {shape}' if shape else ''}"
