"""Learning from clicks that depend on where a result was shown: ways to take the position out of them, behind the one seam.

A page is a query: what was shown, with its click as the label and its rank in a label source of its own. Of documents u and l with gains
g_u > g_l, shown at ranks p and r:

- ``ipw``: λ's of the estimate Σ c/θ·D of DCG, whose mean over users is that of what attracts them (Joachims, Swaminathan & Schnabel 2017;
  Agarwal et al. 2019): gains are divided by θ, how often a rank is looked at, not below a least one, times what makes the mean weight of
  clicks 1. Pages are not divided by their ideal: of a page with one click that would take the weight out again.
- ``pairwise``: the pair counts 1/(t⁺_p·t⁻_r). Both are learned: after each iteration t⁺_p is what the pairs clicked at p cost, each divided
  by its t⁻, for each time that p was shown, over the same of the first rank, to the power 1/(1 + regularisation); t⁻ likewise (Hu et al.
  2019, eq. 30 and 31, where every page shows every rank: sums alone would take a rank that few pages have for one that is hardly looked at).
- ``additive``: λ's are taken at scores to which a bias b_p of the rank is added; after each iteration b_p makes a step of Newton along the
  sum of the λ's of what was shown there, times the learning rate, with a penalty on b².

- ``dla``: propensities and ranker are learned together (`ltr.objectives.dual`).

The second is XGBoost's ``lambdarank_unbiased``, the third what LightGBM does where a dataset has positions. As their sources have it,
XGBoost takes ranks from the order of rows and the cost of a pair at the negative of its difference of scores (log(1 + e^o), where the paper
and its authors' program have log(1 + e^−o)); neither keeps what it learned to go on from. Here ranks are data, and what was learned after
each tree or epoch is saved with it. Sums by rank are those of `ltr.objectives.rank_sums`, of the pages of all machines.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from numba import njit, prange

from ltr.data.arrays import plain_number
from ltr.data.named import Named
from ltr.data.queries import Queries
from ltr.kernels.exponential import exp
from ltr.kernels.kernel import F8, F8_1D, I8, I8_1D, Address, Floats, Ints, NumbaType, address, record_type
from ltr.kernels.machines import ALONE, Machines
from ltr.kernels.ranking import by_score
from ltr.metrics.conventions import Conventions
from ltr.metrics.dcg import dcg_share_prepare
from ltr.metrics.measure import N_AUX, PREPARE, ROW, Measure, curve_of, prepare_kernel, ranking_gains, row_kernel
from ltr.objectives.lambda_objective import Objective
from ltr.objectives.pair_costs import NEAR
from ltr.objectives.rank_sums import VANISHED, RankSums
from ltr.objectives.seam import QueryObjective, gradients_kernel, gradients_signature
from ltr.objectives.terms import Term, pair_groups, settled

Kind = Literal["ipw", "pairwise", "additive", "dla", "auto"]
Estimate = Literal["interventions", "regression_em"]
MOST_POSITIONS = 1000
"""Ranks that a page may have."""
LEAST_SHARE = 0.01
"""No t⁺ or t⁻ is less: what was shown where next to nothing is known does not count hundredfold."""
CALM = 0.001
"""Added to the curvature that a step of Newton divides by, as in LightGBM."""


@dataclass(frozen=True)
class Unbiased(Named):
    """How position bias is removed from clicks (`ltr.objectives.unbiased`).

    Args:
        kind: ``ipw``, ``pairwise`` or ``additive``; for nets also ``dla``; ``auto`` trains each of them and one without correction, and chooses on
            validation queries (`ltr.rankers.chosen_way`).
        positions: label source that holds the rank of each shown document, from 1; NaN only for documents without a label.
        regularisation: for ``pairwise`` the p of 1/(1 + p) (default: 1): with 0 bias is estimated freely, with large values all ranks count alike;
            for ``additive`` the penalty on b² per shown document (default: 0.01; LightGBM's is 0).
        propensities: examination probabilities of ranks 1, 2, …, each in (0, 1]. ``ipw`` divides clicks by them in training, and `stop_on` does on
            validation pages, whatever the kind. By default they are estimated, as `estimate` says.
        estimate: ``interventions``: from documents that were shown at several ranks (`ltr.data.propensities`), where equal features make the same
            document; ``regression_em`` (trees only): from documents with similar features (`ltr.trees.regression_em`), even if each was shown
            at one rank only.
        least: lower bound on the propensities that ``ipw`` and ``dla`` divide by; for ``dla`` also on relevance, relative to the first result's.

    Raises:
        ValueError: naming the parameter, its value and the rule.
    """

    kind: Kind
    positions: str = "position"
    regularisation: float | None = None
    propensities: tuple[float, ...] = ()
    least: float = 0.1
    estimate: Estimate = "interventions"
    usual: ClassVar[dict[str, float]] = {"pairwise": 1.0, "additive": 0.01}

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"unbiased: kind={self.kind!r} is out of range; choose from: {', '.join(get_args(Kind))}")
        for name in ("least", "regularisation"):
            object.__setattr__(self, name, plain_number(getattr(self, name)))
        if isinstance(self.propensities, str | Mapping) or not isinstance(self.propensities, Iterable):
            raise ValueError(f"unbiased: propensities={self.propensities!r}; it is a list of numbers, of rank 1, 2, …")
        object.__setattr__(self, "propensities", tuple(map(plain_number, self.propensities)))
        if not isinstance(self.positions, str) or not self.positions:
            raise ValueError(f"unbiased: positions={self.positions!r}; it names the label source that holds the ranks")
        given = self.regularisation
        if given is not None and not (isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= 1e6):
            raise ValueError(f"unbiased: regularisation={given!r} is out of range; it is a number from 0 to 1e+06")
        if given is not None and self.kind not in self.usual:
            why = "its ways are taken as they come" if self.kind == "auto" else "`least` bounds its weights"
            raise ValueError(f"unbiased: {self.kind} has no regularisation; {why}")
        if isinstance(self.least, bool) or not isinstance(self.least, int | float) or not 0 < self.least <= 1:
            raise ValueError(f"unbiased: least={self.least!r} is out of range; it is a number above 0 to 1")
        if self.estimate not in get_args(Estimate):
            raise ValueError(f"unbiased: estimate={self.estimate!r} is out of range; choose from: {', '.join(get_args(Estimate))}")
        if self.estimate != "interventions" and self.propensities:
            raise ValueError(
                f"unbiased: estimate={self.estimate!r} is how they are found, and propensities are given; leave one out"
            )
        for rank, value in enumerate(self.propensities, 1):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
                raise ValueError(f"unbiased: the propensity of rank {rank} is {value!r}; it is a number above 0 to 1")

    @staticmethod
    def of(given: "Unbiased | str") -> "Unbiased":
        """A kind's name stands for it as it comes.

        Raises:
            ValueError: for what is neither.
        """
        if isinstance(given, Unbiased):
            return given
        if not isinstance(given, str):
            raise ValueError(f"unbiased: {given!r} is not an ltr.Unbiased; give one, a name ({', '.join(get_args(Kind))}) or None")
        return Unbiased(given)  # type: ignore[arg-type]  # what is no kind is refused there

    @property
    def strength(self) -> float:
        """The regularisation, or what is usual."""
        return self.usual[self.kind] if self.regularisation is None else self.regularisation

    @property
    def sides(self) -> int:
        """Numbers that are learned of each rank."""
        return 2 if self.kind == "pairwise" else 1

    def check(self, terms: Sequence[Term], normalise: str) -> None:
        """Whether an objective of these terms can be debiased.

        Raises:
            ValueError: saying why not.
        """
        if len(terms) != 1:
            raise ValueError(f"unbiased: clicks are one term, and the objective has {len(terms)}; debias one at a time")
        (term,) = settled(terms)
        if self.kind == "ipw" and Measure.of(term.measure).definition.prepare is not dcg_share_prepare:
            raise ValueError(
                f"unbiased: ipw weighs gains, which {term.measure} does not have; ndcg, jk_ndcg, linear_ndcg and cndcg do"
            )
        if self.kind == "dla" and (term,) != settled([Term(term.measure, term.weight)]):
            raise ValueError("unbiased: dla has its own loss; remove cost, construction and pairs")
        if self.kind == "dla" and Measure.of(term.measure).definition.prepare is not dcg_share_prepare:
            raise ValueError(f"unbiased: dla has its own loss, not one for {term.measure}; set the objective to ndcg")
        if self.kind == "pairwise" and (term.construction != "ranknet_weighted" or not term.cost.startswith("logistic")):
            raise ValueError(
                f"unbiased: pairwise weighs pairs of the construction ranknet_weighted with the cost logistic or logistic_near, not "
                f"{term.construction} with {term.cost}"
            )
        if self.kind in ("ipw", "pairwise", "dla") and normalise != "none":
            raise ValueError(f"unbiased: {self.kind} weighs pages, which normalise={normalise!r} would undo; set normalise: none")

    def ways(
        self, terms: Sequence[Term], normalise: str, kinds: Sequence[Kind], looks: "Callable[[Unbiased], Floats]"
    ) -> "list[Unbiased]":
        """What ``auto`` tries beside clicks as they are: those of `kinds` that this objective and the pages allow, of which `looks` says how
        often ranks are looked at; ValueError where that is not known."""
        able = []
        for kind in kinds:
            with suppress(ValueError):
                way = replace(self, kind=kind)
                way.check(terms, normalise)
                if kind == "ipw" and self.estimate == "interventions":
                    looks(way)
                able.append(way)
        return able

    def require_looks(self, n_ranks: int) -> None:
        """Raises ValueError where propensities are given, and not of all ranks that were shown."""
        if self.propensities and len(self.propensities) < n_ranks:
            raise ValueError(
                f"unbiased: a document was shown at rank {n_ranks}, and propensities end at rank {len(self.propensities)}"
            )

    def check_pages(self, queries: Queries, term: Term) -> None:
        """That there is a rank for every label (`shown_at`), and `require_looks` of what these pages show."""
        shown_at = self.shown_at(queries, term)
        if self.propensities:
            self.require_looks(int(shown_at.max(initial=-1)) + 1)

    def shown_at(self, queries: Queries, term: Term) -> Ints:
        """Ranks from 0, ``int64 [documents]``; −1 for documents without a label.

        Raises:
            ValueError: for a label without a rank, a rank that is no whole number from 1, or one beyond `MOST_POSITIONS`.
        """
        ranks, labels = queries.source(self.positions), queries.source(Measure.of(term.measure).source)
        wrong = ~np.isnan(labels) & ~((ranks >= 1) & (ranks <= MOST_POSITIONS) & (ranks == np.floor(ranks)))
        if wrong.any():
            at = int(np.flatnonzero(wrong)[np.argmin(queries.position[wrong])])
            rule = f"where a document was shown is a whole number from 1 to {MOST_POSITIONS:,}"
            raise ValueError(f"unbiased: {queries.called(at)} has the {self.positions} {ranks[at]:g}; {rule}")
        return np.where(np.isnan(labels), 0.0, ranks).astype(np.int64) - 1


class _Pages(NamedTuple):
    """All that λ's of pairs on pages are computed from.

    Attributes:
        offsets, shares: of the queries.
        gains, groups: ``float64 [documents]``; a gain is NaN where a document holds no rank.
        curve, cutoff: of the measure.
        near: see `ltr.objectives.dcg_pairs.add_pairs`.
        prepare, row: addresses of the measure's kernels.
        upper, lower: ``float64 [documents]``, what a pair is divided by for its upper and for its lower document.
    """

    offsets: Ints
    shares: Floats
    gains: Floats
    groups: Floats
    curve: Floats
    cutoff: int
    sigma: float
    near: float
    prepare: Address
    row: Address
    upper: Floats
    lower: Floats


@njit(cache=True, error_model="numpy")
def page_gradients(q: int, scores: Floats, pages: _Pages, found: Floats) -> None:
    """Writes ``found [4, documents of q]``: gradients, hessians, and what the pairs cost that each document is the upper one of, each
    divided as the other document says, and that it is the lower one of."""
    first, last = pages.offsets[q], pages.offsets[q + 1]
    gains, groups = pages.gains[first:last], pages.groups[first:last]
    upper, lower = pages.upper[first:last], pages.lower[first:last]
    found[:] = 0.0
    order = by_score(scores)
    order = order[~np.isnan(gains[order])]
    n = len(order)
    if n == 0:
        return
    aux, change, ranked = np.empty((N_AUX, n + 1)), np.zeros(n), gains[order]
    measured = prepare_kernel(pages.prepare)(ranked, pages.curve, pages.cutoff, aux)
    near = pages.near if scores[order[0]] > scores[order[n - 1]] else 0.0
    for t in range(min(measured, n - 1)):
        row_kernel(pages.row)(t, ranked, pages.curve, pages.cutoff, aux, change)
        for b in range(t + 1, n):
            if ranked[t] == ranked[b] or groups[order[t]] != groups[order[b]]:
                continue
            u, l = (order[t], order[b]) if ranked[t] > ranked[b] else (order[b], order[t])
            o = scores[u] - scores[l]
            size = pages.shares[q] * change[b] / (near + abs(o) if near > 0.0 else 1.0)
            e = exp(-abs(pages.sigma * o))
            share = 1.0 / (1.0 + e)
            force = size * pages.sigma * share * (e if o > 0.0 else 1.0) / (upper[u] * lower[l])
            bend = size * pages.sigma * pages.sigma * e * share * share / (upper[u] * lower[l])
            cost = size * (np.log1p(e) + max(-pages.sigma * o, 0.0))
            found[0, u] += force
            found[0, l] -= force
            found[1, u] += bend
            found[1, l] += bend
            found[2, u] += cost / lower[l]
            found[3, l] += cost / upper[u]


@njit(cache=True)
def pair_gradients(q: int, scores: Floats, pages: _Pages, gradient: Floats, hessian: Floats) -> int:
    """`page_gradients` as nets read it: gradients and hessians ``[documents of q]``."""
    found = np.empty((4, len(scores)))[:, :]  # in rows that need not touch, as `_all_pages` has it: one compilation serves both
    page_gradients(q, scores, pages, found)
    gradient[:], hessian[:] = found[0], found[1]
    return 0


_PAGES = record_type(_Pages, I8_1D, F8_1D, F8_1D, F8_1D, F8_1D, I8, F8, F8, I8, I8, F8_1D, F8_1D)


@njit(cache=True, parallel=True)
def _all_pages(scores: Floats, pages: _Pages, found: Floats) -> None:
    """`page_gradients` of every query: ``found [4, documents]``."""
    for q in prange(len(pages.offsets) - 1):
        first, last = pages.offsets[q], pages.offsets[q + 1]
        page_gradients(np.int64(q), scores[first:last], pages, found[:, first:last])


class PairwiseObjective:
    """``objective(scores, iteration) → (gradient, hessian)`` over pages, each pair divided by its t⁺ and t⁻; a `QueryObjective`.

    Args:
        begun: t⁺ and t⁻ at each iteration so far, ``float64 [iterations, 2, ranks]``.
        machines: which have the other pages.

    Attributes:
        biases: as `begun`, with a row more after each iteration.
    """

    plan_type: NumbaType = _PAGES

    def __init__(
        self,
        queries: Queries,
        term: Term,
        how: Unbiased,
        conventions: Conventions,
        sigma: float,
        begun: Floats | None = None,
        machines: Machines = ALONE,
    ) -> None:
        measure = Measure.of(term.measure)
        labels = queries.source(measure.source)
        longest = max(int(np.diff(queries.offsets).max(initial=0)), 1)
        curve, cutoff = curve_of(measure, longest, conventions)
        self.how, self.shown_at = how, how.shown_at(queries, term)
        self._sums = RankSums(self.shown_at, ranks_of(begun), machines)
        (self._pages_with,) = self._sums([np.repeat(queries.shares, np.diff(queries.offsets))])
        self.biases = [*widened(begun, len(self._sums.documents), 1.0, 2)]
        gains = ranking_gains(measure, labels, conventions)
        ones, definition = np.ones(queries.n_documents), measure.definition
        self._pages = _Pages(
            queries.offsets, queries.shares, gains, pair_groups(term, labels, queries.labels), curve, cutoff, float(sigma),
            NEAR if term.cost == "logistic_near" else 0.0, address(definition.prepare, PREPARE), address(definition.row, ROW), ones, ones,
        )  # fmt: skip

    @property
    def gradients(self) -> Address:
        """Of a kernel that writes a query's gradient and hessian."""
        return address(pair_gradients, gradients_signature(_PAGES))

    def plan(self, iteration: int) -> _Pages:
        """What ``gradients(query, scores, plan, gradient, hessian)`` reads."""
        upper, lower = learned_at(self.biases, iteration)
        return self._pages._replace(upper=upper[self.shown_at], lower=lower[self.shown_at])

    def __call__(self, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        """Gradient and hessian ``float64 [documents]`` at `scores`; scores move along the gradient."""
        pages, found = self.plan(iteration), np.empty((4, len(scores)))
        _all_pages(scores, pages, found)
        self.biases.append(self._learned(found[2:], self.biases[-1]))
        return found[0].copy(), found[1].copy()

    def _learned(self, costs: Floats, before: Floats) -> Floats:
        """t⁺ and t⁻ of what the pairs cost, ``float64 [2, documents]``, on a page that shows the rank; relative to the first rank that has any, and as
        they were where no pair costs anything, and of ranks that no page shows."""
        after = before.copy()
        for side, own in zip(after, self._sums(costs), strict=True):
            if (own > 0).any():
                first = np.flatnonzero(own)[0]
                shown = self._pages_with[first] / np.maximum(self._pages_with, VANISHED)
                learned = np.maximum((own / own[first] * shown) ** (1.0 / (1.0 + self.how.strength)), LEAST_SHARE)
                side[:] = np.where(self._pages_with > 0, learned, side)
        return after


class InverseObjective:
    """``objective(scores, iteration) → (gradient, hessian)``: another objective's, with gains divided by propensities; a `QueryObjective`.

    Args:
        inner: whose gains they are.
        given: propensities, ``float64 [1, 1, ranks]``, or once for each iteration so far and once more, ``float64 [iterations + 1, 1, ranks]``.
        machines: which have the other pages.

    Attributes:
        biases: the propensities, once for each iteration so far and once more.
    """

    def __init__(
        self, inner: Objective, queries: Queries, term: Term, how: Unbiased, given: Floats, machines: Machines = ALONE
    ) -> None:
        shown_at = how.shown_at(queries, term)
        sums, weights = RankSums(shown_at, ranks_of(given), machines), 1.0 / given[0, 0]
        (clicks,) = sums([np.where(queries.source(Measure.of(term.measure).source) > 0, queries.impressions, 0.0)])
        mean = (weights * clicks).sum() / clicks.sum() if clicks.any() else 0.0
        self.inner = inner.weighing((weights / mean if mean > 0 else weights)[shown_at])
        self.biases = [*given]
        self.plan_type, self.plan = self.inner.plan_type, self.inner.plan

    @property
    def gradients(self) -> Address:
        """Of the other objective's kernel."""
        return self.inner.gradients

    def __call__(self, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        """Gradient and hessian ``float64 [documents]`` at `scores`."""
        self.biases.append(learned_at(self.biases, iteration))
        return self.inner(scores, iteration)


class _Shifted(NamedTuple):
    """Another objective's plan and the address of its kernel, for scores to which the biases of ranks are added."""

    offsets: Ints
    shown_at: Ints
    bias: Floats
    inner: Any
    gradients: Address


@njit(cache=True)
def shifted_gradients(q: int, scores: Floats, plan: _Shifted, gradient: Floats, hessian: Floats) -> int:
    """Writes gradients and hessians ``[documents of q]`` at scores with their biases; returns how many pairs are effective."""
    first, shifted = plan.offsets[q], scores.copy()
    for i in range(len(scores)):
        if plan.shown_at[first + i] >= 0:
            shifted[i] += plan.bias[plan.shown_at[first + i]]
    effective: int = gradients_kernel(plan.gradients, plan.inner)(q, shifted, plan.inner, gradient, hessian)
    return effective


class AdditiveObjective:
    """``objective(scores, iteration) → (gradient, hessian)``: another objective's, at scores to which the biases of ranks are added; a
    `QueryObjective`.

    Args:
        inner: whose gradients they are.
        step: of each step of Newton, the trees' learning rate.
        begun: b at each iteration so far, ``float64 [iterations, 1, ranks]``.
        machines: which have the other pages.

    Attributes:
        biases: as `begun`, with a row more after each iteration.
    """

    def __init__(
        self,
        inner: QueryObjective,
        queries: Queries,
        term: Term,
        how: Unbiased,
        step: float,
        begun: Floats | None = None,
        machines: Machines = ALONE,
    ) -> None:
        self.inner, self.how, self.step, self.shown_at = inner, how, step, how.shown_at(queries, term)
        self.offsets, self.weights = queries.offsets, queries.document_weights
        self._sums = RankSums(self.shown_at, ranks_of(begun), machines)
        self.biases = [*widened(begun, len(self._sums.documents), 0.0, 1)]

    @property
    def plan_type(self) -> NumbaType:
        """Of what `plan` returns."""
        return record_type(_Shifted, I8_1D, I8_1D, F8_1D, self.inner.plan_type, I8)

    @property
    def gradients(self) -> Address:
        """Of a kernel that writes a query's gradient and hessian."""
        return address(shifted_gradients, gradients_signature(self.plan_type))

    def plan(self, iteration: int) -> _Shifted:
        """What ``gradients(query, scores, plan, gradient, hessian)`` reads."""
        (bias,) = learned_at(self.biases, iteration)
        return _Shifted(self.offsets, self.shown_at, bias, self.inner.plan(iteration), self.inner.gradients)

    def __call__(self, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        """Gradient and hessian ``float64 [documents]`` at `scores`."""
        (bias,), shown = learned_at(self.biases, iteration), self.shown_at >= 0
        gradient, hessian = self.inner(scores + np.where(shown, bias[self.shown_at], 0.0), iteration)
        weight = 1.0 if self.weights is None else self.weights
        slope, bend = self._sums([gradient * weight, hessian * weight])
        penalty = self.how.strength * self._sums.documents
        self.biases.append((bias + self.step * (slope - penalty * bias) / (bend + penalty + CALM))[None])
        return gradient, hessian


def learned_at(biases: list[Floats], iteration: int) -> Floats:
    """What was learned before an iteration; it is then the last that is known. Iterations that nothing was learned in change nothing."""
    biases += [biases[-1]] * (iteration + 1 - len(biases))
    del biases[iteration + 1 :]
    return biases[iteration]


def ranks_of(begun: Floats | None) -> int:
    """How many ranks something was learned of so far, ``[iterations, sides, ranks]``."""
    return 0 if begun is None else begun.shape[2]


def widened(begun: Floats | None, n_ranks: int, start: float, sides: int) -> Floats:
    """What was learned so far, for so many ranks: those that were not there before are at `start`, as all are at the beginning."""
    if begun is None:
        return np.full((1, sides, n_ranks), start)
    return np.pad(begun, ((0, 0), (0, 0), (0, max(n_ranks - begun.shape[2], 0))), constant_values=start)


def by_rank(how: Unbiased, bias: Floats) -> dict[str, Floats]:
    """What was learned of ranks 1, 2, …, ``bias float64 [sides, ranks]``, by what it is: ``propensity``, ``t_plus`` and ``t_minus``, or
    ``bias``, in scores beside the first rank's; each ``float64 [ranks]``."""
    if how.kind == "additive":
        return {"bias": bias[0] - bias[0, 0]}
    return dict(zip(("t_plus", "t_minus") if how.kind == "pairwise" else ("propensity",), bias, strict=True))


def in_words(how: Unbiased, bias: Floats) -> str:
    """What was learned of the first ten ranks, ``bias float64 [sides, ranks]``, as a sentence."""
    shown = [" ".join(f"{value:.2f}" for value in side[:10]) for side in by_rank(how, bias).values()]
    if how.kind == "additive":
        return f"position bias of ranks 1, 2, … (additive, in scores): {shown[0]}"
    if how.kind == "ipw":
        by = " by regression_em" if how.estimate == "regression_em" else ""
        return f"position bias of ranks 1, 2, … (ipw, propensities{by} of at least {how.least:g}): {shown[0]}"
    if how.kind == "dla":
        return f"position bias of ranks 1, 2, … (dla, propensities beside the first rank's): {shown[0]}"
    return f"position bias of ranks 1, 2, … (pairwise): t+ {shown[0]}; t- {shown[1]}"
