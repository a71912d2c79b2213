"""The choices that a measure's value depends on besides its name, and those of other tools (README, *conventions*)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, get_args, get_type_hints

import numpy as np

from ltr.data.named import Named

LARGEST_LABEL = 1000
"""Gains are 2^label − 1, and the sum over a long query must be a number."""


@dataclass(frozen=True)
class Conventions(Named):
    """The choices that a measure's value depends on besides its name (README, *conventions*).

    Args:
        ties: ``expected`` over random order within ties (McSherry & Najork 2008), ``stable`` (file order), ``worst``, or
            ``docid`` (by document id, descending, as trec_eval does).
        empty: a query on which the measure is undefined counts nothing (``skip``), 0 (``zero``) or 1 (``one``). A query of which nobody
            judged a document counts nothing under any rule.
        threshold: for binary measures, the smallest relevant judged label; of other label sources all above 0 are relevant.
        max_label: top of the label scale (ERR).
        gain: ``exp2`` is 2^label − 1, ``linear`` the label itself (NDCG).
        unlabelled: a document without a judgement counts as label 0 (``zero``) or is left out (``condensed``).
        short: a query with fewer documents than the cutoff counts as it is (``plain``), 0 in NDCG (``zero``, LETOR 4.0's tool),
            or has its precision divided by its documents (``size``, XGBoost and RankLib).
        ap_base: AP@k is a mean over the relevant documents (``relevant``, D eq. 1), or over k of them where there are more
            (``cutoff``, LightGBM and XGBoost).
    """

    ties: Literal["expected", "stable", "worst", "docid"] = "expected"
    empty: Literal["skip", "zero", "one"] = "skip"
    threshold: float = 2
    max_label: float = 4
    gain: Literal["exp2", "linear"] = "exp2"
    unlabelled: Literal["zero", "condensed"] = "zero"
    short: Literal["plain", "zero", "size"] = "plain"
    ap_base: Literal["relevant", "cutoff"] = "relevant"

    @classmethod
    def of(cls, given: "Conventions | None") -> "Conventions":
        """What is given, or the usual ones.

        Raises:
            ValueError: for what are no conventions.
        """
        if given is not None and not isinstance(given, Conventions):
            raise ValueError(f"conventions: {given!r} is not an ltr.Conventions")
        return given or cls()

    def __post_init__(self) -> None:
        for name, known in _words().items():
            if getattr(self, name) not in known:
                raise ValueError(f"conventions: {name} {getattr(self, name)!r} is unknown; choose from: {', '.join(known)}")
        for name in ("threshold", "max_label"):
            value = getattr(self, name)
            if isinstance(value, np.generic):
                value = value.item()
                object.__setattr__(self, name, value)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST_LABEL:
                raise ValueError(f"conventions: {name} {value!r} must be a label: a number from 0 to {LARGEST_LABEL:,}")


@cache
def _words() -> dict[str, tuple[str, ...]]:
    """The conventions that are one of a few words, and what they may be."""
    return {name: get_args(hint) for name, hint in get_type_hints(Conventions).items() if get_args(hint)}


@dataclass(frozen=True)
class Tool:
    """What another tool's numbers are by.

    Attributes:
        conventions: its rules.
        ndcg: which of our measures is its NDCG.
        uncut: measures whose cutoff it ignores.
        of_measure: rules that it has for single measures, in place of those above.
    """

    conventions: Conventions
    ndcg: str = "ndcg"
    uncut: frozenset[str] = frozenset()
    of_measure: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def rules_of(self, measure: str) -> Conventions:
        """For one measure, by its name without a cutoff."""
        return replace(self.conventions, **self.of_measure.get(measure, {}))


PRESETS: Mapping[str, Tool] = {
    "lightgbm": Tool(Conventions(ties="stable", empty="one", threshold=1, ap_base="cutoff")),
    "xgboost": Tool(
        Conventions(ties="stable", empty="one", threshold=1, ap_base="cutoff", short="size"), of_measure={"p": {"empty": "zero"}}
    ),
    "sklearn": Tool(Conventions(empty="zero", threshold=1, gain="linear")),
    "ranklib": Tool(Conventions(ties="stable", empty="zero", threshold=1, short="size"), uncut=frozenset({"map"})),
    "letor3": Tool(Conventions(ties="stable", empty="zero", threshold=1), "jk_ndcg"),
    "letor4": Tool(Conventions(ties="stable", empty="zero", threshold=1, short="zero"), "jk_ndcg"),
    "trec": Tool(Conventions(ties="docid", empty="zero", threshold=1, gain="linear")),
}
"""Other tools, by the names that `ltr.metrics.evaluation.explain` takes."""
