"""Values with a mask, numpy's and those of pandas' nullable columns: numpy otherwise takes what lies below the mask, or objects."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def unmasked(values: Any) -> Any:
    """Masked entries as missing ones, NaN, as is pandas' NA among objects; whatever has neither as it is."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.float64), np.nan) if np.ma.is_masked(values) else values.data
    if is_table(values):
        kinds = list(values.dtypes)  # of dates pandas would make numbers
        of_numbers = all(getattr(kind, "kind", "O") in "biuf" for kind in kinds)
    else:
        kinds, of_numbers = [getattr(values, "dtype", None)], True
    if of_numbers and any(map(_may_miss, kinds)):
        return values.to_numpy(np.float64, na_value=np.nan)
    return _without_na(np.asarray(values)) if object in kinds else values


def _without_na(objects: NDArray[Any]) -> NDArray[Any]:
    plain = objects.copy()
    plain[np.array([type(value).__name__ == "NAType" for value in objects.flat], bool).reshape(objects.shape)] = np.nan
    return plain


def _may_miss(kind: Any) -> bool:
    """Whether a type is of pandas' numbers that may be missing; numpy's have the same names, in small letters."""
    return hasattr(kind, "na_value") and f"{kind}".lower() in _NULLABLE


def whole_numbers(values: Any) -> Any:
    """The entries that are not missing, where they are whole numbers under a mask, which `unmasked` makes floats of; other values as they are."""
    if isinstance(values, np.ma.MaskedArray):
        return values.compressed()
    present = getattr(values, "dropna", None) or getattr(values, "drop_nulls", None)  # of pandas, of polars
    if present and f"{getattr(values, 'dtype', '')}".lower().removesuffix("[pyarrow]") in _WHOLE:
        return present().to_numpy()
    return values


def is_table(values: Any) -> bool:
    """Whether it is a frame of pandas, whose columns have a type each."""
    return hasattr(values, "iloc") and bool(values.ndim == 2)


_WHOLE = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_NULLABLE = {
    "boolean",
    *_WHOLE,
    "float32",
    "float64",
    *(f"{name}[pyarrow]" for name in ("bool", *_WHOLE, "halffloat", "float", "double")),
}
"""Pandas' types of numbers that may be missing, in small letters, its own and those of Arrow."""
