"""Dataclasses of arrays that show themselves in one line, where notebooks and logs show them."""

from dataclasses import fields
from typing import Any

import numpy as np


class Brief:
    """A base of dataclasses. Of an array its type and shape are shown, as ``float64 [459, 10]``."""

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        # Or `dataclass` would write its own.
        if (name := "__repr__") not in vars(cls):
            setattr(cls, name, getattr(Brief, name))

    def __repr__(self) -> str:
        own: Any = self
        told = ((field.name, getattr(own, field.name)) for field in fields(own) if field.repr)
        return f"{type(self).__name__}({', '.join(f'{name}={_shown(value)}' for name, value in told)})"


def _shown(value: object) -> str:
    return f"{value.dtype} {[*value.shape]}" if isinstance(value, np.ndarray) else repr(value)
