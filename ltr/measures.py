"""Ranking measures: their values, and what they change by when two documents trade places.

Sources: Donmez 2009 eq. 1–3 (AP, RR, NDCG), Burges 2010 section 3 (ERR), Svore 2011 eq. 9 (CNDCG), Dubey 2009 section 1.6.3
(the Järvelin–Kekäläinen discount, LETOR's NDCG); ties by McSherry & Najork 2008.

A *kernel* sees one query in ranked order, as gains: ``value(gains, ends, curve, cutoff)``, where ``ends`` are the
ends of the groups of tied documents; ``prepare`` and ``row`` write ``|ΔM(t, b)|`` for one upper rank t and all lower ranks b
(brute force over every pair is in the tests). `Kind` names the kernels of a measure with the gain and the discount curve they
work on; `ltr.evaluation` drives the kernels over all queries.

A query on which a measure is undefined (no relevant document) yields NaN inside and what `Conventions.empty` says outside.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args, get_type_hints

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from ltr.jit import F8, F8_1D, F8_2D, I8, I8_1D, ready

VALUE = F8(F8_1D, I8_1D, F8_1D, I8)
PREPARE = I8(F8_1D, F8_1D, I8, F8_2D)
ROW = types.void(I8, F8_1D, F8_1D, I8, F8_2D, F8_1D)
N_AUX = 3
"""Rows of the scratch array ``aux [N_AUX, documents + 1]`` that `prepare` fills for `row`."""


@dataclass(frozen=True)
class Conventions:
    """The choices a number depends on beside its name (README, *conventions*).

    Args:
        ties: ``expected`` over random order within ties (McSherry & Najork 2008), ``stable`` (file order), ``worst``, or
            ``docid`` (by document id, descending, as trec_eval does).
        empty: a query on which the measure is undefined counts nothing (``skip``), 0 (``zero``) or 1 (``one``).
        threshold: for binary measures, the smallest relevant judged label; of other label sources all above 0 are relevant.
        max_label: top of the label scale (ERR).
        gain: ``exp2`` is 2^label − 1, ``linear`` the label itself (NDCG).
        unlabelled: a document nobody judged counts as label 0 (``zero``) or is left out (``condensed``).
        short: a query with fewer documents than the cutoff counts as it is (``plain``), 0 in NDCG (``zero``, LETOR 4.0's tool),
            or has its precision divided by its documents (``size``, XGBoost).
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

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(Conventions).items():
            known = get_args(hint)
            if known and getattr(self, name) not in known:
                raise ValueError(f"conventions: {name} {getattr(self, name)!r} is not one of {', '.join(known)}")


@dataclass(frozen=True)
class Kind:
    """What a measure is made of; `MEASURES` holds one for each name."""

    gain: Callable[[NDArray[np.float64], Conventions], NDArray[np.float64]]
    curve: Callable[[int, int, Conventions], NDArray[np.float64]]
    value: Any
    prepare: Any
    row: Any
    source: str = "label"
    whole: bool = False
    """It looks at the whole ranking and takes no cutoff."""
    fewer_is_better: bool = False


@dataclass(frozen=True)
class Measure:
    """A measure with its cutoff and label source: ``Measure.of("ndcg@10")`` has the key ``ndcg_10``."""

    name: str
    cutoff: int | None = None
    other_source: str | None = None

    def __str__(self) -> str:
        """The form that `of` reads."""
        cutoff, source = "" if self.cutoff is None else f"@{self.cutoff}", f":{self.other_source}" if self.other_source else ""
        return f"{self.name}{cutoff}{source}"

    @property
    def key(self) -> str:
        """Its name in the store."""
        return "_".join(str(part) for part in (self.name, self.cutoff, self.other_source) if part is not None)

    @property
    def kind(self) -> Kind:
        return MEASURES[self.name]

    @property
    def source(self) -> str:
        """The label source it reads: its kind's own unless another one is named."""
        return self.other_source or self.kind.source

    @staticmethod
    def of(text: "str | Measure") -> "Measure":
        """Reads ``ndcg``, ``ndcg_10``, ``NDCG@10``, and ``ndcg@10:freshness`` for labels of another source.

        Raises:
            ValueError: listing the known names.
        """
        if isinstance(text, Measure):
            return text
        match = re.fullmatch(r"([a-zA-Z_]+?)(?:[@_](\d+))?(?::(\w+))?", text.strip())
        if match is None or match[1].lower() not in MEASURES:
            raise ValueError(f"unknown measure {text!r}; known: {', '.join(MEASURES)}, each with @K or _K for a cutoff")
        cutoff = None if match[2] is None else int(match[2])
        if cutoff == 0:
            raise ValueError(f"measure {text!r}: the cutoff must be at least 1")
        if match[1].lower() == "p" and cutoff is None:
            raise ValueError(f"measure {text!r}: precision needs a cutoff, such as p@10")
        measure = Measure(match[1].lower(), cutoff, match[3])
        if cutoff is not None and measure.kind.whole:
            raise ValueError(f"measure {text!r}: {measure.name} has no cutoff")
        return measure

    @staticmethod
    def maximised(text: "str | Measure") -> "Measure":
        """`of`, for choosing the best by.

        Raises:
            ValueError: for a measure of which less is better.
        """
        measure = Measure.of(text)
        if measure.kind.fewer_is_better:
            better = ", ".join(name for name, kind in MEASURES.items() if not kind.fewer_is_better)
            raise ValueError(f"measure {text!r}: fewer {measure.name} are better; what is chosen by has to rise: {better}")
        return measure


# --- discounted gain: NDCG, its J–K and click forms, precision, WTA ------------------------------------------------------


@njit(cache=True)
def _gain_sum(gains, ends, curve):
    """Σ gain · curve, a tied document counting the mean gain of its group."""
    total, start = 0.0, 0
    for end in ends:
        if curve[start] == 0.0:
            return total
        if end == start + 1:
            total += gains[start] * curve[start]
        else:
            gain, weight = 0.0, 0.0
            for k in range(start, end):
                gain += gains[k]
                weight += curve[k]
            total += gain * weight / (end - start)
        start = end
    return total


_LEVELS = 12


@njit(cache=True)
def _ideal(gains, curve):
    """Σ gain · curve of the best ranking. Labels have few levels, so the highest gain left is looked for level by level; a query
    with many different gains is sorted. Floats ≥ 0 are ordered as their bits are, and integers have a maximum that runs in vector
    lanes."""
    bits = gains.view(np.int64)
    level = np.array([np.inf])
    highest = level.view(np.int64)
    total, rank = 0.0, 0
    for _ in range(_LEVELS):
        if rank == len(gains) or curve[rank] == 0.0:
            return total
        above, found, count = highest[0], np.int64(0), np.int32(0)
        for k in range(np.uint64(len(bits))):
            found = max(found, bits[k] if bits[k] < above else np.int64(0))
        if found == 0:
            return total
        for k in range(np.uint64(len(bits))):
            count += np.int32(1) if bits[k] == found else np.int32(0)
        highest[0] = found
        for k in range(rank, rank + count):
            total += level[0] * curve[k]
        rank += count
    best = np.sort(gains)[::-1]
    for k in range(rank, len(best)):
        total += best[k] * curve[k]
    return total


@njit(cache=True)
def _any(gains):
    for gain in gains:
        if gain > 0.0:
            return True
    return False


@njit(cache=True)
def dcg_share_value(gains, ends, curve, cutoff):
    """DCG over ideal DCG (D eq. 3, S eq. 1 and 9)."""
    ideal = _ideal(gains, curve)
    return _gain_sum(gains, ends, curve) / ideal if ideal > 0.0 else np.nan


@njit(cache=True)
def dcg_share_prepare(gains, curve, cutoff, aux):
    ideal = _ideal(gains, curve)
    aux[0, 0] = 1.0 / ideal if ideal > 0.0 else 0.0
    return min(cutoff, len(gains)) if ideal > 0.0 else 0


@njit(cache=True)
def gain_row(t, gains, curve, cutoff, aux, out):
    """|(g_t − g_b)(D_t − D_b)| / ideal (D eq. 7)."""
    for b in range(t + 1, len(gains)):
        out[b] = abs((gains[t] - gains[b]) * (curve[t] - curve[b])) * aux[0, 0]


@njit(cache=True)
def gain_mean_value(gains, ends, curve, cutoff):
    return _gain_sum(gains, ends, curve) if _any(gains) else np.nan


@njit(cache=True)
def gain_mean_prepare(gains, curve, cutoff, aux):
    aux[0, 0] = 1.0
    return min(cutoff, len(gains))


# --- average precision --------------------------------------------------------------------------------------------------


@njit(cache=True)
def ap_value(gains, ends, curve, cutoff):
    """(1/R) Σ_{r ≤ L} l(r)·P@r (D eq. 1); in a tied group a relevant document has a share of the others above it. What is divided
    by for R relevant documents stands in ``curve[R − 1]``."""
    total, found, start = 0.0, 0.0, 0
    if len(ends) == len(gains):  # no ties: no branches
        for k in range(min(cutoff, len(gains))):
            found += gains[k]
            total += gains[k] * found / (k + 1.0)
        for k in range(cutoff, len(gains)):
            found += gains[k]
        return total / curve[int(found) - 1] if found > 0.0 else np.nan
    for end in ends:
        if end == start + 1:
            if gains[start] > 0.0:
                found += 1.0
                total += found / end if start < cutoff else 0.0
            start = end
            continue
        relevant, size = 0.0, end - start
        for k in range(start, end):
            relevant += gains[k]
        others = (relevant - 1.0) / (size - 1.0)
        for k in range(start, min(end, cutoff)):
            total += relevant / size * (found + 1.0 + (k - start) * others) / (k + 1.0)
        found += relevant
        start = end
    return total / curve[int(found) - 1] if found > 0.0 else np.nan


@njit(cache=True)
def ap_prepare(gains, curve, cutoff, aux):
    """aux[0, k]: relevant in the top k. aux[1, k]: Σ l(r)/r over the top k, no further than the cutoff. aux[2, 0]: 1/R by the rules."""
    for k in range(len(gains)):
        aux[0, k + 1] = aux[0, k] + gains[k] if k else gains[0]
        before = aux[1, k] if k else 0.0
        aux[1, k + 1] = before + (gains[k] / (k + 1.0) if k < cutoff else 0.0)
    aux[0, 0] = aux[1, 0] = 0.0
    relevant = aux[0, len(gains)]
    aux[2, 0] = 1.0 / curve[int(relevant) - 1] if relevant > 0.0 else 0.0
    return min(cutoff, len(gains)) if 0.0 < relevant < len(gains) else 0


@njit(cache=True)
def ap_row(t, gains, curve, cutoff, aux, out):
    """(1/R)·[(n + 1)/t − m/b + Σ_{t<k<b} l(k)/k], either of the two on top (D eq. 9); b beyond the cutoff loses its own term."""
    for b in range(t + 1, len(gains)):
        if gains[t] == gains[b]:
            out[b] = 0.0
        else:
            change = (aux[0, t] + 1.0) / (t + 1.0) + aux[1, b] - aux[1, t + 1]
            if b < cutoff:
                change -= aux[0, b + 1] / (b + 1.0)
            out[b] = abs(change) * aux[2, 0]


# --- reciprocal rank ----------------------------------------------------------------------------------------------------


@njit(cache=True)
def rr_value(gains, ends, curve, cutoff):
    """1 / rank of the first relevant document (D eq. 2); in a tied group, its expectation."""
    start = 0
    for end in ends:
        relevant, size = 0.0, end - start
        for k in range(start, end):
            relevant += gains[k]
        if relevant > 0.0:
            total, none_yet = 0.0, 1.0
            for k in range(start, min(end, cutoff)):
                first = relevant / (size - (k - start))
                if first >= 1.0:
                    return total + none_yet / (k + 1.0)
                total += none_yet * first / (k + 1.0)
                none_yet *= 1.0 - first
            return total
        start = end
    return np.nan


@njit(cache=True)
def rr_prepare(gains, curve, cutoff, aux):
    """aux[0, 0] and aux[0, 1]: ranks (from 0) of the first two relevant documents, the number of documents where missing."""
    first = second = len(gains)
    for k in range(len(gains)):
        if gains[k] > 0.0:
            if first == len(gains):
                first = k
            else:
                second = k
                break
    aux[0, 0], aux[0, 1] = first, second
    return min(first + 1, cutoff, len(gains)) if first < len(gains) else 0


@njit(cache=True)
def rr_seed_row(t, gains, curve, cutoff, aux, out):
    """1/t − 1/r where a relevant document at b climbs over the first relevant rank r, t < r ≤ b (D eq. 11); else 0."""
    first = int(aux[0, 0])
    before = 1.0 / (first + 1.0) if first < cutoff else 0.0
    for b in range(t + 1, len(gains)):
        out[b] = 1.0 / (t + 1.0) - before if t < first and gains[b] > 0.0 else 0.0


@njit(cache=True)
def rr_exact_row(t, gains, curve, cutoff, aux, out):
    """`rr_seed_row`, and what D eq. 11 leaves out: the first relevant document itself sinks, to b or below the second."""
    rr_seed_row(t, gains, curve, cutoff, aux, out)
    if t == int(aux[0, 0]):
        for b in range(t + 1, len(gains)):
            if gains[b] == 0.0:
                rank = min(int(aux[0, 1]), b)
                out[b] = 1.0 / (t + 1.0) - (1.0 / (rank + 1.0) if rank < cutoff else 0.0)


# --- expected reciprocal rank -------------------------------------------------------------------------------------------


@njit(cache=True)
def err_value(gains, ends, curve, cutoff):
    """Σ_r (1/r) R_r Π_{i<r} (1 − R_i) (B section 3).

    In a tied group, E[Π of the first k factors 1 − R] is the mean over all k-subsets, built up one document at a time.
    """
    if not _any(gains):
        return np.nan
    total, passed, start = 0.0, 1.0, 0
    means = np.zeros(len(gains) + 1)
    for end in ends:
        size = end - start
        means[0] = 1.0
        for n in range(size):
            means[n + 1] = 0.0
            for k in range(n + 1, 0, -1):
                means[k] = ((n + 1 - k) * means[k] + k * (1.0 - gains[start + n]) * means[k - 1]) / (n + 1.0)
        for k in range(size):
            total += passed * curve[start + k] * (means[k] - means[k + 1])
        passed *= means[size]
        start = end
    return total


@njit(cache=True)
def err_prepare(gains, curve, cutoff, aux):
    """aux[0, k]: ERR down to rank k. aux[1, k]: Π over the top k of 1 − R."""
    aux[0, 0], aux[1, 0] = 0.0, 1.0
    for k in range(len(gains)):
        aux[0, k + 1] = aux[0, k] + curve[k] * gains[k] * aux[1, k]
        aux[1, k + 1] = aux[1, k] * (1.0 - gains[k])
    return min(cutoff, len(gains)) if _any(gains) else 0


@njit(cache=True)
def err_row(t, gains, curve, cutoff, aux, out):
    """The three places where ERR changes: at t, between the two by the factor (1 − R_b)/(1 − R_t), and at b (B section 3)."""
    for b in range(t + 1, len(gains)):
        factor = (1.0 - gains[b]) / (1.0 - gains[t])
        change = curve[t] * (gains[b] - gains[t]) * aux[1, t]
        change += (factor - 1.0) * (aux[0, b] - aux[0, t + 1])
        change += curve[b] * aux[1, b] * (factor * gains[t] - gains[b])
        out[b] = abs(change)


# --- area under the ROC curve -------------------------------------------------------------------------------------------


@njit(cache=True)
def auc_value(gains, ends, curve, cutoff):
    """Share of (relevant, not relevant) pairs in order; a tie is half a pair."""
    pairs, above, start = 0.0, 0.0, 0
    for end in ends:
        relevant = 0.0
        for k in range(start, end):
            relevant += gains[k]
        pairs += (end - start - relevant) * (above + 0.5 * relevant)
        above += relevant
        start = end
    total = above * (len(gains) - above)
    return pairs / total if total > 0.0 else np.nan


@njit(cache=True)
def auc_prepare(gains, curve, cutoff, aux):
    relevant = gains.sum()
    total = relevant * (len(gains) - relevant)
    aux[0, 0] = 1.0 / total if total > 0.0 else 0.0
    return len(gains) if total > 0.0 else 0


@njit(cache=True)
def auc_row(t, gains, curve, cutoff, aux, out):
    """(b − t)/(n⁺ n⁻)."""
    for b in range(t + 1, len(gains)):
        out[b] = (b - t) * aux[0, 0] if gains[t] != gains[b] else 0.0


# --- pairs of different label: errors and Kendall's τ --------------------------------------------------------------------


@njit(cache=True)
def _pairs(gains, ends):
    """Pairs of different gain, and how many of them are out of order; a tie is half an error. O(documents × levels)."""
    levels = np.unique(gains)
    level = np.searchsorted(levels, gains)
    above, group = np.zeros(len(levels)), np.zeros(len(levels))
    pairs, errors, start = 0.0, 0.0, 0
    for end in ends:
        group[:] = 0.0
        for k in range(start, end):
            group[level[k]] += 1.0
        lower_above, lower_beside, all_above = 0.0, 0.0, above.sum()
        for l in range(len(levels)):
            errors += group[l] * (lower_above + 0.5 * lower_beside)
            pairs += group[l] * (all_above - above[l] + lower_beside)
            lower_above += above[l]
            lower_beside += group[l]
        above += group
        start = end
    return pairs, errors


@njit(cache=True)
def errors_value(gains, ends, curve, cutoff):
    """Pairs of different label in the wrong order (B figure 1); fewer is better."""
    pairs, errors = _pairs(gains, ends)
    return errors if pairs > 0.0 else np.nan


@njit(cache=True)
def tau_value(gains, ends, curve, cutoff):
    """Kendall's τ over the pairs of different label: (pairs in order − pairs out of order) / pairs."""
    pairs, errors = _pairs(gains, ends)
    return 1.0 - 2.0 * errors / pairs if pairs > 0.0 else np.nan


@njit(cache=True)
def errors_prepare(gains, curve, cutoff, aux):
    """aux[0, k]: number of the gain's level, from the lowest. aux[1, 0]: levels. aux[2, 0]: what an error counts."""
    levels = np.unique(gains)
    aux[0, : len(gains)] = np.searchsorted(levels, gains)
    aux[1, 0], aux[2, 0] = len(levels), 1.0
    return len(gains) if len(levels) > 1 else 0


@njit(cache=True)
def tau_prepare(gains, curve, cutoff, aux):
    rows = errors_prepare(gains, curve, cutoff, aux)
    if rows > 0:
        aux[2, 0] = 2.0 / _pairs(gains, np.arange(1, len(gains) + 1))[0]
    return rows


@njit(cache=True)
def errors_row(t, gains, curve, cutoff, aux, out):
    """|2·[s(t, b) + Σ_{t<k<b} (s(t, k) + s(k, b))]| / 2 with s the sign of the difference in gain: the pairs that turn."""
    between = np.zeros(int(aux[1, 0]))
    lower = higher = 0
    for b in range(t + 1, len(gains)):
        turned = 0.0
        if gains[t] != gains[b]:
            turned = (1.0 if gains[t] > gains[b] else -1.0) + lower - higher
            level = int(aux[0, b])
            for l in range(len(between)):
                turned += between[l] if l > level else -between[l] if l < level else 0.0
        out[b] = abs(turned) * aux[2, 0]
        between[int(aux[0, b])] += 1.0
        lower += gains[b] < gains[t]
        higher += gains[b] > gains[t]


# --- the registry -------------------------------------------------------------------------------------------------------


def _graded(labels: NDArray[np.float64], conventions: Conventions) -> NDArray[np.float64]:
    return np.exp2(labels) - 1.0 if conventions.gain == "exp2" else labels


def _plain(labels: NDArray[np.float64], conventions: Conventions) -> NDArray[np.float64]:
    return labels


def _clicked(labels: NDArray[np.float64], conventions: Conventions) -> NDArray[np.float64]:
    if ((labels < 0) | (labels > 1)).any():
        raise ValueError(f"click labels are shares in [0, 1]; there is {labels[(labels < 0) | (labels > 1)][0]:g}")
    return np.exp2(4.0 * labels) - 1.0


def _binary(labels: NDArray[np.float64], conventions: Conventions) -> NDArray[np.float64]:
    return (labels >= conventions.threshold).astype(np.float64)


def _stop_probability(labels: NDArray[np.float64], conventions: Conventions) -> NDArray[np.float64]:
    if labels.max(initial=0.0) > conventions.max_label:
        raise ValueError(f"ERR: label {labels.max():g} is above max_label {conventions.max_label:g}, the top of the label scale")
    return (np.exp2(labels) - 1.0) / np.exp2(conventions.max_label)


def _ranks(longest: int) -> NDArray[np.float64]:
    return np.arange(1.0, longest + 1.0)


def _log_discount(longest: int, cutoff: int, conventions: Conventions) -> NDArray[np.float64]:
    return np.where(_ranks(longest) <= cutoff, 1.0 / np.log2(1.0 + _ranks(longest)), 0.0)


def _jk_discount(longest: int, cutoff: int, conventions: Conventions) -> NDArray[np.float64]:
    return np.where(_ranks(longest) <= cutoff, 1.0 / np.log2(np.maximum(_ranks(longest), 2.0)), 0.0)


def _share(longest: int, cutoff: int, conventions: Conventions) -> NDArray[np.float64]:
    return np.where(_ranks(longest) <= cutoff, 1.0 / cutoff, 0.0)


def _relevant(longest: int, cutoff: int, conventions: Conventions) -> NDArray[np.float64]:
    return _ranks(longest) if conventions.ap_base == "relevant" else np.minimum(_ranks(longest), cutoff)


def _first(longest: int, cutoff: int, conventions: Conventions) -> NDArray[np.float64]:
    return (_ranks(longest) == 1.0).astype(np.float64)


def _reciprocal(longest: int, cutoff: int, conventions: Conventions) -> NDArray[np.float64]:
    return np.where(_ranks(longest) <= cutoff, 1.0 / _ranks(longest), 0.0)


_DCG = (dcg_share_value, dcg_share_prepare, gain_row)
_MEAN = (gain_mean_value, gain_mean_prepare, gain_row)

MEASURES: dict[str, Kind] = {
    "ndcg": Kind(_graded, _log_discount, *_DCG),
    "jk_ndcg": Kind(_graded, _jk_discount, *_DCG),
    "cndcg": Kind(_clicked, _log_discount, *_DCG, source="click"),
    "map": Kind(_binary, _relevant, ap_value, ap_prepare, ap_row),
    "mrr": Kind(_binary, _reciprocal, rr_value, rr_prepare, rr_seed_row),
    "mrr_exact": Kind(_binary, _reciprocal, rr_value, rr_prepare, rr_exact_row),
    "err": Kind(_stop_probability, _reciprocal, err_value, err_prepare, err_row),
    "p": Kind(_binary, _share, *_MEAN),
    "wta": Kind(_binary, _first, *_MEAN, whole=True),
    "auc": Kind(_binary, _reciprocal, auc_value, auc_prepare, auc_row, whole=True),
    "tau": Kind(_plain, _reciprocal, tau_value, tau_prepare, errors_row, whole=True),
    "errors": Kind(_plain, _reciprocal, errors_value, errors_prepare, errors_row, whole=True, fewer_is_better=True),
}
"""Every measure by its name, to which a cutoff is added: ``ndcg_10`` or ``ndcg@10``."""


def fewer_is_better(key: str) -> bool:
    """Of a measure by its name in the store."""
    return any(kind.fewer_is_better and f"{key}_".startswith(f"{name}_") for name, kind in MEASURES.items())


def gains_of(measure: Measure, labels: NDArray[np.float64], conventions: Conventions) -> NDArray[np.float64]:
    """Gains ``float64 [documents]`` of a measure; a document without a label gains nothing."""
    if measure.source != "label":
        conventions = replace(conventions, threshold=float(np.finfo(np.float64).tiny))
    missing = np.isnan(labels)
    given = np.where(missing, 0.0, labels) if missing.any() else labels
    return np.ascontiguousarray(measure.kind.gain(given, conventions), np.float64)


def why_undefined(measure: Measure, labels: NDArray[np.float64], conventions: Conventions) -> str:
    """Why a measure is undefined on every query of these labels, in words."""
    given = np.unique(labels[~np.isnan(labels)])
    shown = ", ".join(f"{label:g}" for label in given[:6]) + (", …" if len(given) > 6 else "")
    if not len(given):
        rule = "no document has a label"
    elif len(given) == 1:
        rule = f"all labels are {shown}: there is nothing to rank"
    elif measure.kind.gain is _binary and measure.source == "label" and not (given >= conventions.threshold).any():
        rule = f"no label reaches conventions.threshold={conventions.threshold:g}; the labels are {shown}"
    else:
        rule = f"within each query all documents are alike to it; the labels are {shown}"
    return f"{measure.key} is undefined on every query: {rule}"


def steady(
    measure: Measure, gains: NDArray[np.float64], offsets: NDArray[np.int64], curve: NDArray[np.float64]
) -> tuple[NDArray[np.float64], Any]:
    """Gains and value kernel for many rankings of the same queries: what no ranking changes, the ideal of an NDCG, is taken once
    and divided into the gains."""
    if measure.kind.value is not dcg_share_value:
        return gains, ready(measure.kind.value, VALUE)
    scaled = gains.copy()
    _divide_by_ideal(scaled, offsets, curve)
    return scaled, ready(gain_mean_value, VALUE)


@njit(cache=True)
def _divide_by_ideal(gains, offsets, curve):
    for q in range(len(offsets) - 1):
        own = gains[offsets[q] : offsets[q + 1]]
        ideal = _ideal(own, curve)
        own /= ideal if ideal > 0.0 else 1.0


def curve_of(measure: Measure, longest: int, conventions: Conventions) -> tuple[NDArray[np.float64], int]:
    """Discount by rank ``float64 [longest]`` and the cutoff as a number (`longest` where there is none)."""
    cutoff = longest if measure.cutoff is None else measure.cutoff
    return measure.kind.curve(longest, cutoff, conventions), cutoff
