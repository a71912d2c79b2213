"""Ranking measures by name: what each is, and how a name with cutoff and label source is read.

A measure is one `Definition`, registered beside its kernels (`ltr.metrics.dcg`, `ltr.metrics.err`, …). A *kernel* sees one query in
ranked order, as gains: ``value(gains, ends, curve, cutoff)``, where ``ends`` are the ends of the groups of tied documents, and what comes
after the last of them is at no rank: it counts in what an ideal ranking has. ``prepare``
and ``row`` write ``|ΔM(t, b)|``, the change when two documents trade places, for one upper rank t and all lower ranks b. Brute force
over every pair is in the tests, for every registered measure. `ltr.metrics.evaluation` drives the kernels over all queries.

A query on which a measure is undefined (no relevant document) yields NaN inside and what `Conventions.empty` says outside.
"""

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import currentframe

import numpy as np
from numba import types

from ltr.kernels.kernel import F8, F8_1D, F8_2D, I8, I8_1D, Floats, Kernel, kernel_at
from ltr.metrics.conventions import Conventions
from ltr.metrics.gains import binary

VALUE = F8(F8_1D, I8_1D, F8_1D, I8)
"""``value(gains, ends, curve, cutoff)``: the measure of one ranked query."""
PREPARE = I8(F8_1D, F8_1D, I8, F8_2D)
"""``prepare(gains, curve, cutoff, aux)``: fills `aux` for `row` and returns how many upper ranks can matter; 0 where undefined."""
ROW = types.void(I8, F8_1D, F8_1D, I8, F8_2D, F8_1D)
"""``row(t, gains, curve, cutoff, aux, out)``: ``out[b] = |ΔM(t, b)|`` for every b > t."""
value_kernel, prepare_kernel, row_kernel = kernel_at(VALUE), kernel_at(PREPARE), kernel_at(ROW)
"""What compiled code calls at the address of such a kernel."""
N_AUX = 3
"""Rows of the scratch array ``aux [N_AUX, documents + 1]`` that `prepare` fills for `row`."""

Gain = Callable[[Floats, Conventions], Floats]
"""``gain(labels, conventions) → gains``, ``float64 [documents]`` both; no label is missing."""
Discount = Callable[[int, int, Conventions], Floats]
"""``discount(longest, cutoff, conventions) → float64 [longest]``, one weight a rank."""


@dataclass(frozen=True)
class Definition:
    """What a measure's name stands for.

    Attributes:
        name: as it is written, without a cutoff.
        title, formula, paper: for people; `docs/measures.md` is made of them.
        gain, curve: labels → gains, ranks → discounts (`ltr.metrics.gains`).
        value, prepare, row: kernels of the signatures `VALUE`, `PREPARE` and `ROW`.
        labels: what it reads, for people: ``graded``, ``binary`` or ``click``.
        source: the label source it reads unless another one is named.
        whole: it is defined on whole rankings only and takes no cutoff.
        needs_cutoff: it is not defined without one.
        fewer_is_better: a lower value is a better one.
        lowest: the lowest value that there can be.
        short_rules: which of `Conventions.short`'s rules change it on a query shorter than the cutoff.
    """

    name: str
    title: str
    formula: str
    paper: str
    gain: Gain
    curve: Discount
    value: Kernel
    prepare: Kernel
    row: Kernel
    labels: str = "graded"
    source: str = "label"
    whole: bool = False
    needs_cutoff: bool = False
    fewer_is_better: bool = False
    short_rules: frozenset[str] = frozenset()
    lowest: float = 0.0


LARGEST_CUTOFF = 1_000_000_000
"""No query is longer."""
MEASURES: dict[str, Definition] = {}
"""Every measure by its name, to which a cutoff is added: ``ndcg_10`` or ``ndcg@10``."""
REGISTERED_BY: dict[str, str] = {}
"""Of every measure the name of the module that registered it."""


def register(definition: Definition) -> Definition:
    """Makes a measure known to everything that reads a measure's name: objectives, evaluation, configurations.

    Raises:
        ValueError: for a name that is taken, or that is not letters and underscores.
    """
    if definition.name in MEASURES:
        raise ValueError(f"a measure {definition.name!r} already exists")
    if not re.fullmatch(r"[a-z]+(_[a-z]+)*", definition.name):
        raise ValueError(f"measure {definition.name!r}: a name is lower-case letters and underscores; a cutoff is added behind it")
    MEASURES[definition.name] = definition
    here = currentframe()
    caller = here.f_back if here else None
    REGISTERED_BY[definition.name] = caller.f_globals["__name__"] if caller else ""
    return definition


@dataclass(frozen=True)
class Measure:
    """A measure with its cutoff and label source: ``Measure.of("ndcg@10")`` has the key ``ndcg_10``."""

    name: str
    cutoff: int | None = None
    other_source: str | None = None

    def __str__(self) -> str:
        """``ndcg@10:click``: the form that `of` reads."""
        cutoff, source = "" if self.cutoff is None else f"@{self.cutoff}", f":{self.other_source}" if self.other_source else ""
        return f"{self.name}{cutoff}{source}"

    @property
    def key(self) -> str:
        """``ndcg_10_click``: its name in results and in the store."""
        return "_".join(str(part) for part in (self.name, self.cutoff, self.other_source) if part is not None)

    @property
    def definition(self) -> Definition:
        """What its name stands for."""
        return MEASURES[self.name]

    @property
    def source(self) -> str:
        """The label source it reads: its definition's own unless another one is named."""
        return self.other_source or self.definition.source

    @staticmethod
    def of(text: "str | Measure") -> "Measure":
        """Reads ``ndcg``, ``ndcg_10``, ``NDCG@10``, and ``ndcg@10:freshness`` for labels of another source.

        Raises:
            ValueError: listing the known names.
        """
        if isinstance(text, Measure):
            return text
        if not isinstance(text, str):
            raise ValueError(f"measure {text!r}: a measure is named in text, such as 'ndcg@10' or 'map'")
        match = re.fullmatch(r"([a-zA-Z_]+?)(?:[@_]([0-9]+))?(?::(\w+))?", text.strip())
        if match is None or match[1].lower() not in MEASURES:
            near = difflib.get_close_matches(re.split(r"[@:\d]", text.strip().lower())[0].rstrip("_"), MEASURES, n=2)
            meant = f"did you mean {' or '.join(near)}? " if near else ""
            if match is None and near[:1] == [re.split(r"[@:_\d-]", text.strip().lower())[0]]:
                definition = MEASURES[near[0]]
                plain = near[0] if not definition.needs_cutoff else f"{near[0]}@10"
                cut_off = "" if definition.whole or definition.needs_cutoff else f" {near[0]}@10 for a cutoff,"
                raise ValueError(f"measure {text[:60]!r}: expected {plain},{cut_off} or {plain}:SOURCE for other labels")
            cut = [name for name, definition in MEASURES.items() if not definition.whole]
            raise ValueError(
                f"unknown measure {text[:60]!r}; {meant}choose from: {', '.join(MEASURES)}; @K or _K for a cutoff can follow {', '.join(cut)}"
            )
        if match[2] is not None and (len(match[2]) > 10 or not 1 <= int(match[2]) <= LARGEST_CUTOFF):
            raise ValueError(f"measure {text[:60]!r}: the cutoff must be at least 1, and at most {LARGEST_CUTOFF:,}")
        cutoff = None if match[2] is None else int(match[2])
        measure = Measure(match[1].lower(), cutoff, match[3])
        if cutoff is None and measure.definition.needs_cutoff:
            title = measure.definition.title.lower()
            raise ValueError(f"measure {text!r}: {title} needs a cutoff, such as {measure.name}@10")
        if cutoff is not None and measure.definition.whole:
            raise ValueError(f"measure {text!r}: {measure.name} has no cutoff")
        if Measure.of_key(measure.key) != measure:
            raise ValueError(
                f"measure {text!r}: its name in results, {measure.key}, is that of {Measure.of_key(measure.key)}; give the source another name"
            )
        return measure

    @staticmethod
    def of_key(key: str) -> "Measure":
        """The measure of a key (`Measure.key`): the longest name that there is, then a number, which is its cutoff, then the source.

        Raises:
            ValueError: where it begins with no name of a measure.
        """
        name = _name_in(key)
        if not name:
            raise ValueError(f"{key!r} is not the key of a measure; choose from: {', '.join(MEASURES)}")
        cutoff, source = re.findall(r"^(?:_([0-9]+)(?![^_]))?(?:_(.*))?$", key[len(name) :])[0]
        return Measure(name, int(cutoff) if cutoff else None, source or None)

    @staticmethod
    def maximised(text: "str | Measure") -> "Measure":
        """`of` for a measure that something is chosen by, such as the best iteration.

        Raises:
            ValueError: for a measure of which less is better.
        """
        measure = Measure.of(text)
        if measure.definition.fewer_is_better:
            better = ", ".join(name for name, definition in MEASURES.items() if not definition.fewer_is_better)
            raise ValueError(
                f"measure {text!r}: lower {measure.name!r} is better, but this measure must be maximised; choose from: {better}"
            )
        return measure


def _name_in(key: str) -> str:
    """The longest name that a key begins with; empty where there is none."""
    return max((name for name in MEASURES if f"{key}_".startswith(f"{name}_")), key=len, default="")


def fewer_is_better(key: str) -> bool:
    """Whether lower values are better, for a measure by its `Measure.key`; not of one that nobody registered."""
    name = _name_in(key)
    return name in MEASURES and MEASURES[name].fewer_is_better


def lowest_of(key: str) -> float:
    """The lowest value of a measure by its `Measure.key`, as far as it is registered: 0, but of Kendall's τ, which goes down to −1."""
    name = _name_in(key)
    return MEASURES[name].lowest if name in MEASURES else 0.0


def gains_of(measure: Measure, labels: Floats, conventions: Conventions) -> Floats:
    """Gains ``float64 [documents]`` of a measure; a document without a label gains nothing."""
    if measure.source != "label":
        conventions = replace(conventions, threshold=float(np.finfo(np.float64).tiny))
    missing = np.isnan(labels)
    given = np.where(missing, 0.0, labels) if missing.any() else labels
    return np.ascontiguousarray(measure.definition.gain(given, conventions), np.float64)


def ranking_gains(measure: Measure, labels: Floats, conventions: Conventions) -> Floats:
    """`gains_of` the documents that hold a rank; NaN of the others, which nobody has judged and the conventions leave out."""
    gains = gains_of(measure, labels, conventions)
    return np.where(np.isnan(labels), np.nan, gains) if conventions.unlabelled == "condensed" else gains


def why_undefined(measure: Measure, labels: Floats, conventions: Conventions) -> str:
    """Why a measure is undefined on every query of these labels, in words."""
    given = np.unique(labels[~np.isnan(labels)])
    shown = ", ".join(f"{label:g}" for label in given[:6]) + (", …" if len(given) > 6 else "")
    if not len(given):
        rule = "no document has a label"
    elif len(given if conventions.unlabelled == "condensed" else np.unique(np.nan_to_num(labels))) == 1:
        rule = f"all labels are {shown}: there is nothing to rank"
    elif measure.definition.gain is binary and measure.source == "label" and not (given >= conventions.threshold).any():
        rule = f"no label reaches conventions.threshold={conventions.threshold:g}; the labels are {shown}"
    else:
        rule = f"within each query all documents are alike to it; the labels are {shown}"
    return f"{measure.key} is undefined on every query: {rule}"


def curve_of(measure: Measure, longest: int, conventions: Conventions) -> tuple[Floats, int]:
    """Discount by rank ``float64 [longest]`` and the cutoff as a number (`longest` where there is none)."""
    cutoff = longest if measure.cutoff is None else measure.cutoff
    return measure.definition.curve(longest, cutoff, conventions), cutoff
