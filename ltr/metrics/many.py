"""A measure of many rankings of the same queries: what does not change between them is computed once."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ltr.data.offsets import group_of_rows, offsets_from_sizes
from ltr.data.queries import Queries
from ltr.kernels.kernel import F8_1D, I1, I8, Address, Floats, Ints, Kernel, address, record_type
from ltr.kernels.ranking import by_score
from ltr.metrics.conventions import Conventions
from ltr.metrics.dcg import gain_mean_value, steady
from ltr.metrics.evaluation import has_judgment, query_factors, tie_breaker, tie_groups
from ltr.metrics.measure import VALUE, Measure, curve_of, gains_of, value_kernel, why_undefined


class Reading(NamedTuple):
    """How compiled code reads a measure off the gains of one query.

    Attributes:
        curve, cutoff: of the measure.
        value: address of its kernel.
        in_expectation: whether equal scores count as tied, and not in the order given.
        cut: whether only ranks above the cutoff matter.
        additive: whether it is Σ gain · curve, so that documents that trade places change it by what they bring themselves.
    """

    curve: Floats
    cutoff: int
    value: Address
    in_expectation: bool
    cut: bool
    additive: bool


READING = record_type(Reading, F8_1D, I8, I8, I1, I1, I1)
"""The type of a `Reading`."""


@dataclass(frozen=True)
class Judged:
    """The judgments of some queries as a measure reads them.

    Attributes:
        measure, conventions: what is measured.
        labels: ``float64 [documents]``, those of the measure's source.
        rows: the documents that count, in the order in which equal scores rank, ``int64 [counted]``.
        offsets: of their queries, ``int64 [queries + 1]``.
        gains: ``float64 [counted]``, divided by what is the same for every ranking; `value` is the kernel for these.
        curve, cutoff: of the measure (`curve_of`).
        factor: by which each query's value is multiplied, ``float64 [queries]``; where it is 0 the value need not be defined, and where it
            is NaN nobody judged the query.
    """

    measure: Measure
    conventions: Conventions
    labels: Floats
    rows: Ints
    offsets: Ints
    gains: Floats
    value: Kernel
    curve: Floats
    cutoff: int
    factor: Floats

    @classmethod
    def of(cls, queries: Queries, measure: Measure, conventions: Conventions) -> Self:
        """The judgments of a data set."""
        labels = queries.source(measure.source)
        return cls.of_labels(labels, queries.offsets, measure, conventions, queries.position, queries.documents)

    @classmethod
    def of_labels(
        cls,
        labels: Floats,
        offsets: Ints,
        measure: Measure,
        conventions: Conventions,
        position: Ints | None = None,
        documents: NDArray[np.bytes_] | None = None,
    ) -> Self:
        """The judgments ``float64 [documents]`` of queries; `position` and `documents` rank equal scores where the conventions say so."""
        judged = ~np.isnan(labels) if conventions.unlabelled == "condensed" else np.ones(len(labels), np.bool_)
        of_query = group_of_rows(offsets)
        breaker = tie_breaker(conventions.ties, labels, position, documents)
        order = np.lexsort((breaker, of_query)) if len(breaker) else np.arange(len(labels))
        rows, counted = order[judged[order]], offsets_from_sizes(judged)[offsets]
        curve, cutoff = curve_of(measure, max(int(np.diff(counted).max(initial=0)), 1), conventions)
        gains, value = steady(measure, gains_of(measure, labels[rows], conventions), counted, curve)
        factor = query_factors(measure, np.diff(counted), has_judgment(labels[rows], counted), conventions)
        return cls(measure, conventions, labels, rows, counted, gains, value, curve, cutoff, factor)

    @property
    def reading(self) -> Reading:
        """How compiled code reads the measure."""
        in_expectation, cut = self.conventions.ties == "expected", self.measure.cutoff is not None
        return Reading(self.curve, self.cutoff, address(self.value, VALUE), in_expectation, cut, self.value is gain_mean_value)

    def mean(self, total: Floats, defined: int) -> Floats:
        """Means of rankings from the sums over `defined` queries, as the conventions count the others.

        Raises:
            ValueError: where it is defined on none.
        """
        if defined == 0:
            raise ValueError(why_undefined(self.measure, self.labels, self.conventions))
        if self.conventions.empty == "skip":
            return total / defined
        counted, worth = np.count_nonzero(~np.isnan(self.factor)), float(self.conventions.empty == "one")
        return (total + worth * (counted - defined)) / counted


@njit(cache=True)
def value_at(scores: Floats, gains: Floats, reading: Reading) -> float:
    """The measure of one query with ties in expectation, or in the order given."""
    order = by_score(scores)
    ends = np.arange(1, len(scores) + 1)
    groups = tie_groups(scores, order, ends) if reading.in_expectation else len(scores)
    found: float = value_kernel(reading.value)(gains[order], ends[:groups], reading.curve, reading.cutoff)
    return found
