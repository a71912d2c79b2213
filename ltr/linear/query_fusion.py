"""One ranking from several systems' lists with weights that depend on the query: a lexical list may be worth more where few words were typed.

The weight of a run is linear in what is known of the query, w_r(q) = a_r + Σ_j b_rj·z_j(q), z_j standardised over training queries. First the a are
found, the weights that are best for all queries alike, as `ltr.linear.listwise` learns any linear ranker, by ListNet; then the b beside them, by the
same loss, with a ridge penalty of their own, so that the less is known the nearer the weights stay to those of all queries. Elasticsearch's
and OpenSearch's hybrid queries have one weight a run; ranx has none that depend on the query.

What is known of a query are features that all its documents have alike. One that is missing counts as the mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from ltr.data.arrays import few_of
from ltr.data.queries import Queries, canonical
from ltr.data.runs import column_of
from ltr.kernels.kernel import Floats, Floats32, Ints
from ltr.linear.linear_ranker import minimise, standardised
from ltr.linear.listwise import Listwise, listwise_cost
from ltr.rankers.base import Arrays, Tick, check_data, learned
from ltr.rankers.fusion import Fused, weighed
from ltr.rankers.parameters import WEIGHT, Span, names_in, whole
from ltr.rankers.surface import Surface, linear_surface
from ltr.rankers.training import judged


@dataclass(frozen=True, kw_only=True)
class QueryFusion(Fused):
    """Adds up what several systems say of a document, each with a weight that is linear in features of the query.

    Args:
        by: features that say something of a query, alike in all its documents; without any the weights are the same for all queries.
        C: of ‖a‖²/C, on standardised scores.
        variation: of ‖b‖²/variation, on standardised products; the lower, the more alike the weights of all queries.
        iterations: of L-BFGS at most, of each of the two.
        weights: once fitted, ``float64 [runs · (1 + by)]``: a_r of every run, then b_rj run by run for each j.
        centre, scale: of each `by` over training queries, ``float64 [by]``.
    """

    kind: ClassVar[str] = "query_fusion"
    certified: ClassVar[bool] = True
    by: tuple[str, ...] = ()
    C: float = 1.0
    variation: float = 0.1
    iterations: int = 200
    weights: Floats | None = learned(None)
    centre: Floats | None = learned(None)
    scale: Floats | None = learned(None)

    spans: ClassVar[Mapping[str, Span]] = {**Fused.spans, "C": WEIGHT, "variation": WEIGHT, "iterations": whole(1)}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "by", names_in(self, "by"))

    @property
    def features_read(self) -> tuple[str, ...]:
        """The form of each system that is named, and what queries are told apart by."""
        return (*super().features_read, *self.by)

    def check(self, queries: Queries) -> None:
        """Whether the data have two systems' scores in this form, and features of queries that are such.

        Raises:
            ValueError: naming what is not there, or a feature that differs within a query.
        """
        super().check(queries)
        for name in self.by:
            if name not in queries.names:
                raise ValueError(f"{self.kind}: by: no feature {name!r}; there are: {few_of(queries.names)}")
            values = queries.features[:, queries.names.index(name)].astype(np.float64)
            if np.isinf(values).any():
                raise ValueError(f"{self.kind}: by: {name!r} is infinite in row {int(np.isinf(values).argmax())}")
            firsts = np.repeat(values[queries.offsets[:-1]], np.diff(queries.offsets))
            if (apart := (values != firsts) & ~(np.isnan(values) & np.isnan(firsts))).any():
                row = int(apart.argmax())
                raise ValueError(
                    f"{self.kind}: by: {name!r} is {firsts[row]:g} and {values[row]:g} in one query (row {row}); a query "
                    "feature must be equal for all documents of a query"
                )

    def fit(self, queries: Queries, valid: Queries | None = None, tick: Tick | None = None) -> Self:
        """A fitted copy; validation queries are not used.

        Raises:
            ValueError: as `check`, and for labels above 1,000.
        """
        check_data(self, queries, valid)
        self.check(queries)
        queries = canonical(judged(queries, self.trained_for, self.conventions))
        begun = replace(self, names=queries.names)
        about = queries.features[queries.offsets[:-1]][:, begun._columns].astype(np.float64)
        known = ~np.isnan(about)
        counts = np.maximum(known.sum(axis=0), 1)
        centre = np.where(known, about, 0.0).sum(axis=0) / counts
        scale = np.sqrt((np.where(known, about - centre, 0.0) ** 2).sum(axis=0) / counts)
        begun = replace(begun, centre=centre, scale=np.where(scale > 0, scale, 1.0))

        shared = replace(queries, features=begun.inputs(queries.features), names=begun._read_names)
        alike = Listwise(C=self.C, iterations=self.iterations, conventions=self.conventions).fit(shared, tick=tick)
        assert alike.weights is not None
        weights = alike.weights
        if self.by:
            moves, scale = standardised(begun._products(queries.features)[:, len(weights) :])
            cost, base = listwise_cost("listnet", queries), weighed(shared.features, weights)
            watch = None if tick is None else lambda _: tick()
            start = np.zeros(moves.shape[1])
            found, _ = minimise(lambda scores: cost(base + scores), moves, self.variation, start, self.iterations, watch)
            weights = np.concatenate((weights, found * scale))
        return replace(begun, weights=weights, remarks=(begun._told(weights),))

    def _products(self, features: Floats32) -> Floats32:
        """The scores of the runs and their products with what is known of the query, ``float32 [documents, runs · (1 + by)]``."""
        inputs = self.inputs(features)
        parts = [inputs, *(inputs * column[:, None] for column in self._about(features).T)]
        return np.ascontiguousarray(np.column_stack(parts), np.float32)

    def _about(self, features: Floats32) -> Floats:
        """What is known of each document's query, standardised, 0 where it is missing; ``float64 [documents, by]``."""
        assert self.centre is not None
        assert self.scale is not None
        standard: Floats = (features[:, self._columns].astype(np.float64) - self.centre) / self.scale
        return np.nan_to_num(standard)

    @property
    def _columns(self) -> Ints:
        return np.array([self.names.index(name) for name in self.by], np.int64)

    @property
    def _read_names(self) -> tuple[str, ...]:
        return tuple(column_of(self._read, run) for run in self.fused)

    def _told(self, weights: Floats) -> str:
        of_runs = weights.reshape(1 + len(self.by), -1)
        told = [", ".join(f"{run} {weight:.3f}" for run, weight in zip(self.fused, of_runs[0], strict=True))]
        for name, moves in zip(self.by, of_runs[1:], strict=True):
            told.append(
                f"a deviation of {name}: {', '.join(f'{run} {move:+.3f}' for run, move in zip(self.fused, moves, strict=True))}"
            )
        return "; ".join(told)

    def weights_of(self, features: Floats32) -> Floats:
        """The weight that each run has for each document's query, ``float64 [documents, runs]``."""
        assert self.weights is not None
        of_runs = self.weights.reshape(1 + len(self.by), -1)
        found: Floats = of_runs[0] + self._about(features) @ of_runs[1:]
        return found

    def _scores(self, features: Floats32) -> Floats:
        assert self.weights is not None
        return weighed(self._products(features), self.weights)

    def _surface(self, features: Floats32) -> Surface:
        assert self.weights is not None
        return linear_surface(self.weights, self._products(features))

    def moved(self, weights: Floats) -> Self:
        """The ranker with other weights, ``float64 [runs · (1 + by)]``."""
        return replace(self, weights=self._in_place_of(self.weights, weights), curve=None)

    def _learned_arrays(self) -> Arrays:
        learned = {name: getattr(self, name) for name in ("weights", "centre", "scale")}
        return {**learned, "columns": self._places(self._read), "by": self._columns, "k": np.array([self.k])}

    def _with_arrays(self, arrays: Arrays) -> Self:
        self._require_runs()
        if missing := [name for name in self.by if name not in self.names]:
            raise ValueError(f"no feature {missing[0]!r} among {few_of(self.names)}")
        sizes = {"weights": len(self.fused) * (1 + len(self.by)), "centre": len(self.by), "scale": len(self.by)}
        for name, size in sizes.items():
            array = arrays[name]
            if array.shape != (size,) or array.dtype != np.float64 or not np.isfinite(array).all():
                raise ValueError(f"{name}: {array.shape} of {array.dtype}; {size} finite numbers of float64")
        if not (arrays["scale"] > 0).all():
            raise ValueError("scale: a number above 0 for each feature of queries")
        return replace(self, weights=arrays["weights"], centre=arrays["centre"], scale=arrays["scale"])
