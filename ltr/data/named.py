"""Dataclasses whose misspelt arguments are told with what may have been meant."""

import difflib
from dataclasses import fields, is_dataclass
from typing import Any, Self


class Named:
    """A base of dataclasses. Fields with ``learned`` in their metadata are set later, and nobody is told of them. What other tools call its
    parameters, a class may say by ``elsewhere``, a mapping of their names to its own, or to nothing where it has nothing like them."""

    def __new__(cls, *given: object, **named: object) -> Self:
        """Refuses unknown parameters.

        Raises:
            TypeError: as Python does for an unexpected keyword argument.
        """
        own: tuple[Any, ...] = fields(cls) if is_dataclass(cls) else ()
        known = [field.name for field in own]
        told = [field.name for field in own if not field.metadata.get("learned")]
        elsewhere = getattr(cls, "elsewhere", {})
        for name in named:
            if name not in known:
                near = [elsewhere[name]] if name in elsewhere else difflib.get_close_matches(name, told, n=2)
                if near == [""]:
                    raise TypeError(f"{cls.__name__}: no parameter {name!r}; it has no equivalent here")
                hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(told)}"
                raise TypeError(f"{cls.__name__}: no parameter {name!r}; {hint}")
        return super().__new__(cls)
