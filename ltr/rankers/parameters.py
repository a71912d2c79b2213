"""What a ranker's parameters may be. It is checked when the ranker is made, before anything is trained, and said in words.

Spans end where numbers no longer mean anything: beyond, scores overflow or every model is constant.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ltr.data.arrays import plain_number, shown


@dataclass(frozen=True)
class Span:
    """Numbers from `least` to `most`.

    Args:
        whole: whole numbers only.
        above: above `least`, which is not one of them.
        below: below `most`, which is not one of them.
        or_none: None is allowed too.
    """

    least: float
    most: float
    whole: bool = False
    above: bool = False
    below: bool = False
    or_none: bool = False

    def __contains__(self, value: object) -> bool:
        value = plain_number(value)
        if value is None:
            return self.or_none
        if isinstance(value, bool) or not isinstance(value, int if self.whole else int | float):
            return False
        inside = self.least <= value <= self.most
        return inside and not (self.above and value == self.least) and not (self.below and value == self.most)

    def __str__(self) -> str:
        least, most = (f"{end:,}" if isinstance(end, int) else f"{end:g}" for end in (self.least, self.most))
        kind = "a whole number" if self.whole else "a number"
        ends = f"{'above' if self.above else 'from'} {least} {'and below' if self.below else 'to'} {most}"
        return f"{kind} {ends}{' or None' if self.or_none else ''}"


def whole(least: int, most: int = 1_000_000) -> Span:
    """Whole numbers from `least` to `most`, both included."""
    return Span(least, most, whole=True)


FACTOR = Span(0, 1e6, above=True)
"""Learning rates and what else scores are multiplied by."""
SHARE = Span(0, 1, above=True)
"""Of something, not nothing."""
PART = Span(0, 1)
"""Of something, or nothing of it."""
WEIGHT = Span(0, 1e18, above=True)
"""C, by which a loss is weighed against ‖w‖²."""
PENALTY = Span(0, 1e18)
"""Of large weights or leaves; 0 is none."""
SEED = whole(0, (1 << 63) - 1)
"""Of random numbers."""


def names_in(ranker: object, parameter: str) -> tuple[str, ...]:
    """Names that a parameter lists, or the one that it is.

    Raises:
        ValueError: for what is no text, nor several.
    """
    given = getattr(ranker, parameter)
    several = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(name, str) for name in several):
        raise ValueError(f"{type(ranker).__name__}: {parameter}={shown(given)}; give names, such as ['bm25', 'dense']")
    return several


@cache
def _words(ranker: type[Any]) -> dict[str, tuple[object, ...]]:
    """The parameters that are one of a few words, or True or False, and what they may be."""
    hints = get_type_hints(ranker)
    found: dict[str, tuple[object, ...]] = {}
    for field in fields(ranker):
        hint = hints[field.name]
        if get_origin(hint) is Literal or hint is bool:
            found[field.name] = get_args(hint) or (False, True)
    return found


def check_parameters(ranker: object, spans: Mapping[str, Span]) -> None:
    """Checks a dataclass's numbers against `spans` by their names, and words against its type hints. Numbers and words of numpy become
    Python's, which JSON can hold.

    Raises:
        ValueError: naming the parameter, its value and the rule.
    """
    for name, span in spans.items():
        value = plain_number(getattr(ranker, name))
        object.__setattr__(ranker, name, value)
        if value not in span:
            raise ValueError(f"{type(ranker).__name__}: {name}={shown(value)} is out of range; it is {span}")
    kind: Any = type(ranker)
    for name, known in _words(kind).items():
        value = plain_number(getattr(ranker, name))
        object.__setattr__(ranker, name, value)
        if not any(value is one or (isinstance(one, str) and value == one) for one in known):
            raise ValueError(
                f"{type(ranker).__name__}: {name}={shown(value)} is out of range; choose from: {', '.join(map(str, known))}"
            )
