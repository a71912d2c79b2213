"""A user's own function as a parameter: it is called as it is, and known by its name wherever parameters are written down.

A model's file holds no code. What is read back from one knows the name and nothing else, and says so where it is called. LightGBM keeps
the word ``custom`` for such an objective, XGBoost the name of the default one; which function it was has to be remembered elsewhere.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data.masked import unmasked
from ltr.data.queries import Queries
from ltr.data.sparse import is_sparse

AnyFunction = Callable[..., Any]
"""What it takes and gives is said where it is used."""


@dataclass(frozen=True)
class PlainFunction:
    """A function and its name.

    Attributes:
        name: of its module and its own, ``mine.smooth_loss``.
        function: None where only the name is known, as in a model that was loaded.
    """

    name: str
    function: AnyFunction | None = field(default=None, repr=False)

    @staticmethod
    def of(function: AnyFunction) -> "PlainFunction":
        """A function by its qualified name; of a `functools.partial`, by the name of what is called."""
        inner = function
        while isinstance(inner, partial):
            inner = inner.func
        named: Any = inner if hasattr(inner, "__qualname__") else type(inner)
        return PlainFunction(f"{named.__module__}.{named.__qualname__}", function)

    def __str__(self) -> str:
        return self.name

    def __call__(self, scores: NDArray[np.float64], queries: Queries) -> Any:
        """What the function gives for ``scores float64 [documents]`` and their queries, neither of which it can change.

        Raises:
            ValueError: where only its name is known.
            Exception: what the function raises, with a note of what it was given.
        """
        if self.function is None:
            raise ValueError(
                f"{self.name} is a function, of which a model's file keeps the name; to train on, give the function again"
            )
        try:
            return self.function(_read_only(scores), _shown(queries))
        except Exception as error:
            error.add_note(f"{self.name} was called with the scores, float64 ({len(scores)},), and {queries!r}")
            raise


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    view = values.view()
    view.flags.writeable = False
    return view


def _shown(queries: Queries) -> Queries:
    """The same arrays, which nobody can write to through this object; nothing is checked or copied."""
    shown = copy(queries)
    for name, value in vars(queries).items():
        if isinstance(value, np.ndarray):
            object.__setattr__(shown, name, _read_only(value))
        elif is_sparse(value):
            features = copy(value)
            features.data = _read_only(value.data)
            object.__setattr__(shown, name, features)
    object.__setattr__(shown, "sources", {name: _read_only(values) for name, values in queries.sources.items()})
    return shown


def numbers_from(name: str, given: object, what: str) -> NDArray[np.float64]:
    """What a function gave as ``float64``.

    Raises:
        ValueError: saying what was expected, for what are no numbers.
    """
    try:
        values = np.asarray(unmasked(given))
        if values.dtype.kind in "cSU":
            raise TypeError
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} gave {type(given).__name__}; expected {what}") from None
