"""A number as files write it."""

import re
from typing import Any

_PLAIN = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)


def plain_number(value: Any) -> float:
    """The number that a text or a field of JSON holds.

    Raises:
        ValueError: for anything else, also for what only Python reads as a number (``1_0``, digits of other scripts, ``inf``), for true and
            false, and for a number that is not finite.

    >>> plain_number("1e3"), plain_number(2)
    (1000.0, 2.0)
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | str)
        or (isinstance(value, str) and not _PLAIN.fullmatch(value))
    ):
        raise ValueError(f"{value!r} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not abs(number) < float("inf"):
        raise ValueError(f"{value!r} is not finite")
    return number
