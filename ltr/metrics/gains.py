"""What a label is worth (gains) and what a rank is worth (discounts): most measures are made of the two.

A gain function maps ``labels float64 [documents]``, none of them missing, to gains of the same shape; a discount function maps the
length of the longest query and the cutoff to one weight a rank, ``float64 [longest]``.
"""

import math
from dataclasses import replace

import numpy as np

from ltr.kernels.exponential import exp2_of
from ltr.kernels.kernel import Floats
from ltr.metrics.conventions import LARGEST_LABEL, Conventions

_LARGEST_GAIN = 1e300
"""Beyond, the sum over a query may be no number."""


def graded(labels: Floats, conventions: Conventions) -> Floats:
    """2^label − 1, or the label itself with ``gain="linear"``; ``labels float64 [documents]``, none missing.

    Raises:
        ValueError: for a label whose gain is too large for a number.
    """
    if conventions.gain == "exp2" and labels.max(initial=0.0) > LARGEST_LABEL:
        raise ValueError(
            f"label {labels.max():g}: gains of 2^label - 1 need labels up to {LARGEST_LABEL:,}; set the convention gain: linear"
        )
    if labels.max(initial=0.0) > _LARGEST_GAIN:
        raise ValueError(f"label {labels.max():g}: gains up to {_LARGEST_GAIN:g} can be summed")
    if conventions.gain == "linear":
        return labels
    powers = exp2_of(labels)
    powers -= 1.0
    return powers


def label_worth(gains: Floats, conventions: Conventions) -> Floats:
    """The labels that are worth these gains: `graded` gives the gains back; ``gains float64 [documents]``, 0 or more."""
    return _log2(1.0 + gains) if conventions.gain == "exp2" else gains


def linear(labels: Floats, conventions: Conventions) -> Floats:
    """The label itself, as `graded` with ``gain="linear"`` has it.

    Raises:
        ValueError: as `graded`.
    """
    return graded(labels, replace(conventions, gain="linear"))


def plain(labels: Floats, conventions: Conventions) -> Floats:
    """The label itself."""
    return labels


def clicked(labels: Floats, conventions: Conventions) -> Floats:
    """2^(4·label) − 1 of a click label in [0, 1] (Svore 2011 eq. 9).

    Raises:
        ValueError: for a label outside [0, 1].
    """
    if ((labels < 0) | (labels > 1)).any():
        raise ValueError(f"click labels are shares in [0, 1]; there is {labels[(labels < 0) | (labels > 1)][0]:g}")
    return exp2_of(4.0 * labels) - 1.0


def binary(labels: Floats, conventions: Conventions) -> Floats:
    """1 for a label of at least the conventions' threshold, 0 otherwise."""
    return (labels >= conventions.threshold).astype(np.float64)


def stop_probability(labels: Floats, conventions: Conventions) -> Floats:
    """(2^label − 1)/2^max_label, the probability that a reader stops there (Burges 2010 section 3).

    Raises:
        ValueError: for a label above the top of the scale.
    """
    if labels.max(initial=0.0) > conventions.max_label:
        raise ValueError(f"ERR: label {labels.max():g} is above max_label {conventions.max_label:g}, the top of the label scale")
    # Of scales of 54 and more the top would round to 1, after which nobody reads on and no λ could be told.
    stops: Floats = np.minimum((exp2_of(labels) - 1.0) / 2.0**conventions.max_label, np.nextafter(1.0, 0.0))
    return stops


def ranks_to(longest: int) -> Floats:
    """1, 2, …, `longest`."""
    return np.arange(1.0, longest + 1.0)


def _log2(values: Floats) -> Floats:
    """By the C library: NumPy's own has other last digits, at some ranks beyond a thousand too, where the processor has AVX-512."""
    return np.array([math.log2(value) for value in values.tolist()], np.float64)


def log_discount(longest: int, cutoff: int, conventions: Conventions) -> Floats:
    """1/log₂(1 + rank) down to the cutoff, then 0; ``float64 [longest]``."""
    return np.where(ranks_to(longest) <= cutoff, 1.0 / _log2(1.0 + ranks_to(longest)), 0.0)


def jarvelin_kekalainen_discount(longest: int, cutoff: int, conventions: Conventions) -> Floats:
    """1/log₂ max(rank, 2) down to the cutoff, then 0: ranks 1 and 2 count alike (Dubey 2009 section 1.6.3)."""
    return np.where(ranks_to(longest) <= cutoff, 1.0 / _log2(np.maximum(ranks_to(longest), 2.0)), 0.0)


def share_of_cutoff(longest: int, cutoff: int, conventions: Conventions) -> Floats:
    """1/cutoff down to the cutoff, then 0: the mean of the top ranks."""
    return np.where(ranks_to(longest) <= cutoff, 1.0 / cutoff, 0.0)


def relevant_counted(longest: int, cutoff: int, conventions: Conventions) -> Floats:
    """No discount: entry R − 1 is what average precision is divided by when R documents are relevant."""
    return ranks_to(longest) if conventions.ap_base == "relevant" else np.minimum(ranks_to(longest), cutoff)


def first_rank(longest: int, cutoff: int, conventions: Conventions) -> Floats:
    """1 at the first rank, 0 below."""
    return np.equal(ranks_to(longest), 1.0).astype(np.float64)


def reciprocal_rank_discount(longest: int, cutoff: int, conventions: Conventions) -> Floats:
    """1/rank down to the cutoff, then 0."""
    return np.where(ranks_to(longest) <= cutoff, 1.0 / ranks_to(longest), 0.0)
