"""Masked arrays, of which numpy otherwise takes what lies below the mask."""

from typing import Any

import numpy as np


def unmasked(values: Any) -> Any:
    """Masked entries as missing ones, NaN; whatever is no masked array as it is."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    return np.ma.filled(values.astype(np.float64), np.nan) if np.ma.is_masked(values) else values.data
