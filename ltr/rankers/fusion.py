"""One ranking from several retrieval systems' lists: with fixed weights, or with weights found for a measure.

`Fusion` learns nothing: reciprocal rank fusion, Σ 1/(k + rank) (Cormack, Clarke & Büttcher 2009), CombSUM and CombMNZ, the sum of normalised
scores and that sum times the number of systems that found the document (Fox & Shaw 1994). `WeightedFusion` weighs the systems: for each in
turn the measure is known along the whole line from none of it to nothing else (`ltr.rankers.line_search`), and the best step of it is
taken until no system's weight can be changed for the better; then along random lines through the best place found, until so many in a row
show no rise. Elasticsearch and OpenSearch take such weights in their hybrid queries, ranx tries a grid of them.

Both read forms of the systems' scores (`ltr.data.runs`), a feature each; what a list does not have adds nothing, or its lowest z-score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from ltr.data.arrays import few_of
from ltr.data.queries import Queries, canonical
from ltr.data.runs import Form, column_of, listing, runs_with
from ltr.kernels.kernel import Bools, Floats, Floats32, Ints
from ltr.metrics.evaluation import NOT_RANKED
from ltr.metrics.many import Judged
from ltr.metrics.measure import Measure
from ltr.rankers.base import Arrays, Ranker, Tick, check_data, learned
from ltr.rankers.line_search import between, mean_of
from ltr.rankers.parameters import SEED, Span, names_in, whole
from ltr.rankers.surface import Surface, linear_surface

_BORDA = 6
"""Decimals of the sums of Borda's shares."""
Scale = Literal["reciprocal-rank", "min-max", "z-score", "borda"]
"""What is added up: 1/(k + rank), or a normalised score."""


@dataclass(frozen=True, kw_only=True)
class Fused(Ranker):
    """What both kinds share: which features they read, and what they add up.

    Attributes:
        form: what is added up.
        k: of the reciprocal rank; the higher, the less the first places differ.
        runs: the systems, by name; all that the data have this form of, where none is named.
    """

    form: Scale = "reciprocal-rank"
    k: float = 60
    runs: tuple[str, ...] = ()

    spans: ClassVar[Mapping[str, Span]] = {"k": Span(0, 1e9)}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "runs", names_in(self, "runs"))
        if twice := [run for run in self.runs if self.runs.count(run) > 1]:
            raise ValueError(f"{self.kind}: runs: {twice[0]!r} is there twice")

    @property
    def _read(self) -> Form:
        return "rank" if self.form == "reciprocal-rank" else self.form

    @property
    def features_read(self) -> tuple[str, ...]:
        """The form of each system that is named."""
        return tuple(column_of(self._read, run) for run in self.runs)

    @property
    def fused(self) -> tuple[str, ...]:
        """The systems that a fitted one adds up."""
        return self.runs or runs_with(self._read, self.names)

    def check(self, queries: Queries) -> None:
        """Whether the data have two systems' scores in this form.

        Raises:
            ValueError: naming the form, or a system that is not there.
        """
        super().check(queries)
        has = runs_with(self._read, queries.names)
        if strange := [run for run in self.runs if run not in has]:
            raise ValueError(f"{self.kind}: no feature {column_of(self._read, strange[0])!r}; there are: {few_of(queries.names)}")
        if len(self.runs or has) < 2:
            raise ValueError(
                f"{self.kind}: it fuses two runs or more, and the data have {len(self.runs or has)} as {self._read!r}: features named "
                f"{column_of(self._read, 'NAME')!r}, which a configuration makes by data.runs and data.run_forms: [score, {self._read}]"
            )

    def _places(self, form: Form) -> Ints:
        return np.array([self.names.index(column_of(form, run)) for run in self.fused], np.int64)

    def ranked(self, features: Floats32) -> Bools:
        """Those that one of the systems has."""
        listed = [self.names.index(listing(column_of(self._read, run), self.names)) for run in self.fused]
        has: Bools = np.logical_or.reduce(~np.isnan(features[:, listed]), axis=1)
        return has

    def inputs(self, features: Floats32) -> Floats32:
        """What is added up, ``float32 [documents, runs]``."""
        values = features[:, self._places(self._read)]
        if self.form == "reciprocal-rank":
            values = np.nan_to_num(1 / (self.k + values.astype(np.float64)), nan=0.0).astype(np.float32)
        return np.ascontiguousarray(values)

    def _why_undefined(self, features: Floats32) -> str:
        """Of what is added up; other features may be missing."""
        added = np.isin(np.arange(len(features)), self._places(self._read))
        added |= np.isinf(features) & np.isin(self.names, self.features_read)
        return super()._why_undefined(np.where(added, features, np.float32(0)))

    def _require_runs(self) -> None:
        missing = [name for name in (column_of(self._read, run) for run in self.fused) if name not in self.names]
        if missing or not self.fused:
            raise ValueError(f"no feature {missing[0] if missing else f'{self._read} of …'!r} among {few_of(self.names)}")


@dataclass(frozen=True, kw_only=True)
class Fusion(Fused):
    """Adds up what several systems say of a document; nothing is learned.

    Args:
        by: the ``sum`` (RRF of the reciprocal ranks, CombSUM of normalised scores), or the sum times the number of systems that have the
            document, ``mnz``, for which the data need its rank as well.
    """

    kind: ClassVar[str] = "fusion"
    has_weights: ClassVar[bool] = False
    query_weights: ClassVar[bool] = True
    document_weights: ClassVar[bool] = True
    by: Literal["sum", "mnz"] = "sum"

    @property
    def features_read(self) -> tuple[str, ...]:
        """The form of each system that is named, and its rank where finds are counted."""
        ranks = tuple(column_of("rank", run) for run in self.runs) if self.by == "mnz" else ()
        return tuple(dict.fromkeys((*super().features_read, *ranks)))

    def check(self, queries: Queries) -> None:
        super().check(queries)
        if self.by == "mnz":
            replace(self, form="reciprocal-rank", by="sum").check(queries)

    def fit(self, queries: Queries, valid: Queries | None = None, tick: Tick | None = None) -> Self:
        """A copy that knows the features' positions.

        Raises:
            ValueError: where the data have not two systems in this form.
        """
        check_data(self, queries, valid)
        self.check(queries)
        return replace(self, names=queries.names)

    def _scores(self, features: Floats32) -> Floats:
        sums: Floats = self.inputs(features).sum(axis=1, dtype=np.float64)
        if self.form == "borda":
            sums = sums.round(_BORDA)  # shares as float32 leave equal sums some 1e-8 apart, which no tie may hang on
        if self.by == "sum":
            return sums
        found = (~np.isnan(features[:, self._places("rank")])).sum(axis=1)
        times: Floats = sums * found
        return times

    def _surface(self, features: Floats32) -> Surface:
        raise ValueError("a fusion has no weights, and so no certificate of local optimality")

    def _learned_arrays(self) -> Arrays:
        return {"columns": self._places(self._read), "k": np.array([self.k]), "mnz": np.array([self.by == "mnz"])}

    def _with_arrays(self, arrays: Arrays) -> Self:
        self._require_runs()
        return self


@dataclass(frozen=True, kw_only=True)
class WeightedFusion(Fused):
    """Adds up what several systems say of a document, each with a weight of 0 or more; together they are 1.

    Args:
        measure: that the weights are found for, on the training queries.
        restarts: random weights that the search starts from, beside equal ones and each system alone.
        directions: random lines through the best of these places that have to show no rise, one after another; 459 are enough to find
            one if a hundredth of all lines rise (`ltr.diagnostics.optimality`).
        seed: of the random weights and lines.
        weights: once fitted, ``float64 [runs]``.
    """

    kind: ClassVar[str] = "weighted_fusion"
    certified: ClassVar[bool] = True
    measure: str = "ndcg_10"
    restarts: int = 10
    directions: int = 459
    seed: int = 1
    weights: Floats | None = learned(None)

    spans: ClassVar[Mapping[str, Span]] = {**Fused.spans, "restarts": whole(0, 10_000), "directions": whole(0), "seed": SEED}

    def __post_init__(self) -> None:
        super().__post_init__()
        Measure.maximised(self.measure)

    def fit(self, queries: Queries, valid: Queries | None = None, tick: Tick | None = None) -> Self:
        """A fitted copy; validation queries are not used.

        Args:
            tick: called before each line that is searched.

        Raises:
            ValueError: where the data have not two systems in this form, or no query defines the measure.
        """
        check_data(self, queries, valid)
        self.check(queries)
        queries, measure = canonical(queries), Measure.of(self.measure)
        fitted = replace(self, names=queries.names)
        inputs = fitted.inputs(queries.features).astype(np.float64)
        search = _Search(Judged.of(queries, measure, self.conventions), inputs, fitted.ranked(queries.features), tick)
        n = inputs.shape[1]
        rng = np.random.default_rng(self.seed)
        starts = np.vstack((np.full(n, 1 / n), np.eye(n), rng.dirichlet(np.ones(n), self.restarts)))
        found = [search.climbed(start) for start in starts]
        values = np.array([value for _, value in found])
        weights, value = search.settled(*found[int(values.argmax())], rng, self.directions)
        told = ", ".join(f"{run} {weight:.3f}" for run, weight in zip(fitted.fused, weights, strict=True))
        equal = search.value_of(starts[0])
        remark = f"{told}: {measure.key} {value:.4f}, with equal weights {equal:.4f}; none of {self.directions} random lines through it improves the measure"
        return replace(fitted, weights=weights, remarks=(remark,))

    def _scores(self, features: Floats32) -> Floats:
        assert self.weights is not None
        return weighed(self.inputs(features), self.weights)

    @property
    def _in_use(self) -> Ints:
        assert self.weights is not None
        return np.flatnonzero(self.weights)

    def _surface(self, features: Floats32) -> Surface:
        """Of the systems in use: one of weight 0 is left out, that it had better stay out was seen along its whole line."""
        assert self.weights is not None
        return linear_surface(self.weights[self._in_use], np.ascontiguousarray(self.inputs(features)[:, self._in_use]))

    def moved(self, weights: Floats) -> Self:
        """The ranker with other weights of the systems in use, ``float64 [in use]``; they may be negative."""
        own = self._in_place_of(self.weights if self.weights is None else self.weights[self._in_use], weights)
        everything = np.zeros(len(self.fused))
        everything[self._in_use] = own
        return replace(self, weights=everything)

    def _learned_arrays(self) -> Arrays:
        assert self.weights is not None
        return {"weights": self.weights, "columns": self._places(self._read), "k": np.array([self.k])}

    def _with_arrays(self, arrays: Arrays) -> Self:
        self._require_runs()
        weights = arrays["weights"]
        if weights.shape != (len(self.fused),) or weights.dtype != np.float64 or not np.isfinite(weights).all():
            raise ValueError(f"{weights.shape} weights of {weights.dtype} for {len(self.fused)} runs; finite numbers of float64")
        return replace(self, weights=weights)

    @property
    def export_form(self) -> str | None:
        """Weights of normalised scores; a reciprocal rank is no feature."""
        return None if self.form == "reciprocal-rank" else "linear"

    @property
    def linear_weights(self) -> Floats | None:
        """Weights on the features as given; None before `fit` and for reciprocal ranks."""
        if self.weights is None or self.export_form is None:
            return None
        weights = np.zeros(len(self.names))
        weights[self._places(self._read)] = self.weights
        return weights

    @property
    def trained_for(self) -> tuple[Measure, ...]:
        """The measure that the weights are found for."""
        return (Measure.of(self.measure),)


def weighed(inputs: Floats32 | Floats, weights: Floats) -> Floats:
    """Σ weight · input, ``float64 [documents]``, added up run by run in their order."""
    total = np.zeros(len(inputs))
    for column, weight in zip(inputs.T, weights, strict=True):
        total += weight * column
    return total


@dataclass(frozen=True, eq=False)
class _Search:
    """Weights that no line along one system can improve.

    Attributes:
        judged: the training queries.
        inputs: ``float64 [documents, runs]``.
        ranked: ``bool [documents]``; the others are at no rank, whatever the weights.
        tick: called before each line.
    """

    judged: Judged
    inputs: Floats
    ranked: Bools
    tick: Tick | None

    def scores_of(self, weights: Floats) -> Floats:
        return np.where(self.ranked, weighed(self.inputs, weights), NOT_RANKED)

    def value_of(self, weights: Floats) -> float:
        return mean_of(self.judged, self.scores_of(weights))

    def climbed(self, weights: Floats) -> tuple[Floats, float]:
        """The weights to which a start leads, and the measure there."""
        value = self.value_of(weights)
        while True:
            before = value
            for run in range(len(weights)):
                weights, value = self._along(run, weights, value)
            if value <= before + 1e-12:
                return weights, value

    def settled(self, weights: Floats, value: float, rng: np.random.Generator, directions: int) -> tuple[Floats, float]:
        """The weights through which that many random lines show no rise, reached from those given, and the measure there."""
        without = 0
        while without < directions:
            weights, after = self._through(rng.normal(size=len(weights)), weights, value)
            without += 1
            if after > value + 1e-12:
                weights, after = self.climbed(weights)
                without = 0
            value = after
        return weights, value

    def _through(self, direction: Floats, weights: Floats, value: float) -> tuple[Floats, float]:
        """The best weights on a line, as far as none of them is negative."""
        direction = np.where((weights == 0) & (direction < 0), -direction, direction)
        direction -= direction.sum() * weights  # the sum of the weights says nothing
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = np.where(direction < 0, -weights / direction, np.inf).min()
            behind = np.where(direction > 0, weights / direction, np.inf).min()
        first, second = (np.maximum(weights + step * direction, 0) for step in (-behind, ahead))
        return self._best_between(first, second, weights, value) if ahead > 0 else (weights, value)

    def _along(self, run: int, weights: Floats, value: float) -> tuple[Floats, float]:
        """The best weight of one system, all else being as it is; in the middle of the longest best step."""
        rest = weights.copy()
        rest[run] = 0.0
        if not rest.any():
            return weights, value
        return self._best_between(rest / rest.sum(), np.eye(len(weights))[run], weights, value)

    def _best_between(self, first: Floats, second: Floats, weights: Floats, value: float) -> tuple[Floats, float]:
        """The best of all mixtures of two sets of weights and the measure there; those given where none is as good."""
        if self.tick is not None:
            self.tick()
        found = between(self.judged, self.scores_of(first), self.scores_of(second))
        low, high, best = found.best
        middle = 0.5 * (low + high)
        options = [(best, (1 - middle) * first + middle * second), (found.ends[0], first), (found.ends[1], second)]
        promised, there = max(options, key=lambda option: option[0])
        if promised < value - 1e-12:
            return weights, value
        reached = self.value_of(there)  # a step of rounding's width may promise what no weights keep
        return (there, reached) if reached >= value - 1e-12 else (weights, value)
