"""The mean of several rankers: copies of one with other seeds or on other draws of the queries (bagging, Breiman 1996), or several kinds.

scikit-learn's VotingRegressor and BaggingRegressor average predictions as they are. Scores of rankers have no common scale, so each member's
are divided by their standard deviation within training queries first; the number is kept, and prediction needs no other documents.

Which of several kinds suits data only validation queries tell: `selection` counts the one that helps there most once more, again and again
(ensemble selection, Caruana, Niculescu-Mizil, Crew & Ksikes 2004; auto-sklearn and AutoGluon weigh their models so).

With `folds` there need be no validation queries: each query stops the members that do not learn from it (AutoGluon's bagging, `num_bag_folds`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from ltr.data.arrays import plain_number
from ltr.data.digests import chosen, equal_parts
from ltr.data.queries import Queries, canonical, select, without_features
from ltr.kernels.kernel import Bools, Floats, Floats32, Ints
from ltr.metrics.measure import Measure
from ltr.objectives.unbiased import Unbiased
from ltr.rankers.base import Arrays, Ranker, Tick, check_data, learned
from ltr.rankers.column import Column
from ltr.rankers.fair_pages import are_pages, largest, ways_of
from ltr.rankers.features import Features
from ltr.rankers.parameters import PENALTY, SEED, SHARE, Span, whole
from ltr.rankers.surface import Surface
from ltr.rankers.training import UndefinedMeasureError, mean_measure


@dataclass(frozen=True)
class Average(Ranker):
    """Averages the scores of several rankers, trained one after another.

    Args:
        of: the rankers, which all use the conventions of the average; in a configuration, sections like those of `rankers`.
        copies: number of copies of each ranker, trained with the seeds `seed`, `seed` + 1, …. A ranker without a seed is trained once and counted
            this many times, unless `query_share` samples other queries for each copy. A ranker's own seed is combined with the average's.
        query_share: share of the training queries that each copy learns from, sampled anew for each.
        seed: random seed of the first copies.
        weights: weight of each ranker of `of`, at least 0 (as in VotingRegressor); None: equal weights, or those that `selection` finds.
        selection: number of steps of greedy ensemble selection: all rankers start with weight 1, and each step adds 1 to the weight of the ranker
            that raises `select_on` most on the validation queries (on the training queries if all rankers are columns, which learn nothing from
            them). Without validation queries, `folds` lets the training queries select, each with the members that have not learned from it;
            without `folds` too, all weights stay equal.
        select_on: the measure that `selection` maximises.
        folds: number of equal parts, at least 2, that the training queries are split into, anew for each copy. Each copy then has as many members,
            each of which learns from all parts but one and stops early on that one; validation queries serve `selection` only. None: no
            parts, and members stop early on the validation queries.
        members: all fitted copies.
        deviations: ``float64 [members]``, standard deviation of each member's scores within training queries.
        counts: weight of each ranker of `of` after `selection`, ``int64 [of]``.
    """

    kind: ClassVar[str] = "average"
    has_weights: ClassVar[bool] = False
    query_weights: ClassVar[bool] = True
    document_weights: ClassVar[bool] = True
    of: Sequence[Ranker]
    copies: int = 1
    query_share: float = 1.0
    seed: int = 1
    weights: Sequence[float] | None = None
    selection: int = 0
    select_on: str = "ndcg_10"
    folds: int | None = None
    members: tuple[Ranker, ...] = learned(())
    deviations: Floats | None = learned(None)
    counts: Ints | None = learned(None)
    spans: ClassVar[Mapping[str, Span]] = {
        "copies": whole(1, 10_000), "query_share": SHARE, "seed": SEED, "selection": whole(0, 1_000),
        "folds": replace(whole(2, 1_000), or_none=True),
    }  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.of, Ranker):
            object.__setattr__(self, "of", (self.of,))
        object.__setattr__(self, "of", tuple(self.of) if isinstance(self.of, Iterable) else (self.of,))
        strange = [member for member in self.of if not isinstance(member, Ranker) or isinstance(member, Average)]
        if not self.of or strange:
            raise ValueError(f"average: of={strange[0] if strange else ()!r}; must be one or more rankers, none an average")
        object.__setattr__(self, "of", tuple(replace(member, conventions=self.conventions) for member in self.of))
        Measure.maximised(self.select_on)
        if self.weights is not None:
            object.__setattr__(self, "weights", self._read_weights(self.weights))
        if self.selection and (self.weights is not None or len(self.of) == 1):
            said = (
                f"selection={self.selection} has nothing to select from one ranker"
                if len(self.of) == 1
                else "selection and weights exclude each other; give one"
            )
            raise ValueError(f"average: {said}")

    def _read_weights(self, given: Any) -> tuple[float, ...]:
        """Raises ValueError for what are not as many numbers from 0 on as there are rankers, one of them above."""
        read = (
            [plain_number(weight) for weight in given]
            if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
            else []
        )
        found = tuple(float(weight) for weight in read if isinstance(weight, int | float) and not isinstance(weight, bool))
        if (
            len(found) != len(self.of)
            or len(found) != len(read)
            or not all(weight in PENALTY for weight in found)
            or not any(found)
        ):
            raise ValueError(
                f"average: weights={given!r}; must be a number, 0 or more, for each of the {len(self.of)} of `of`, not all 0"
            )
        return found

    def check(self, queries: Queries) -> None:
        """What any of the rankers would refuse.

        Raises:
            ValueError: saying what is wrong with the queries; for weights of queries or documents where one of the rankers has no use for them;
                for a column with missing values, which have no place on a common scale; for copies that nothing tells apart; for fewer queries
                than `folds`, and for a part of them on which what would stop a member is undefined.
        """
        super().check(queries)
        if self.folds and queries.n_queries < self.folds:
            raise ValueError(f"average: folds={self.folds} of {queries.n_queries} training queries leaves a part without any")
        if self.copies > 1 and self.query_share == 1 and not self.folds and not any(map(_has_seed, self.of)):
            kinds = ", ".join(dict.fromkeys(member.kind for member in self.of))
            raise ValueError(
                f"average: copies={self.copies} of {kinds}, without a seed, would all be the same; query_share below 1 draws other queries for each"
            )
        for member in self.of:
            if queries.weights is not None and not member.query_weights:
                raise ValueError(f"average: {member.kind} does not support weights of queries")
            if queries.document_weights is not None and not member.document_weights:
                raise ValueError(f"average: {member.kind} does not support weights of documents")
            member.check(queries)
            if isinstance(member, Column) and (missing := member.n_missing(queries)):
                raise ValueError(
                    f"average: {member.feature!r} is missing for {missing:,} of {queries.n_documents:,} documents, and a column ranks these "
                    "last without a score, so there is nothing to average; data.run_forms: [min-max] gives such documents of a run 0"
                )
        if self.folds:
            self._check_parts(queries)

    def _check_parts(self, queries: Queries) -> None:
        stopping = [str(measure) for member in self.of for measure in _stopping(member)]
        watched, labels = dict.fromkeys(stopping), without_features(queries)
        for copy in range(self._n_copies):
            part = select(labels, np.flatnonzero(self._held_out(queries, copy)))
            for measure in watched:
                try:
                    mean_measure(measure, part, np.zeros(part.n_documents), self.conventions)
                except UndefinedMeasureError as error:
                    raise ValueError(
                        f"average: folds={self.folds} makes a part of {part.n_queries} training queries, of which {error}; fewer folds make larger parts"
                    ) from None

    def fit(self, queries: Queries, valid: Queries | None = None, tick: Tick | None = None, kept: Kept | None = None) -> Self:
        """A fitted copy.

        Args:
            queries, valid: the data.
            tick: called after every iteration of a member.
            kept: called with a member's number and a function that trains it, and returns the member, for reusing earlier ones; None: all are trained.

        Raises:
            ValueError: as each of the rankers does.
        """
        check_data(self, queries, valid)
        self.check(queries)
        of_columns = all(isinstance(member, Column) for member in self.of)
        by_parts = self.folds is not None and valid is None
        judging, why = queries if of_columns or by_parts else valid, "there are no validation queries"
        if self.selection and judging is not None:
            try:
                mean_measure(self.select_on, judging, np.zeros(judging.n_documents), self.conventions)
            except UndefinedMeasureError as error:
                if not of_columns:
                    raise
                judging, why = None, f"{error}, of those to learn from"
        queries = canonical(queries)
        members: list[Ranker] = []
        for k in range(self._n_copies):
            members += self._fitted_copy(k, members[: len(self.of)], queries, valid, (tick, kept))
        deviations = np.array([_deviation(member.predict(queries.features), queries) for member in members])
        counts = self._selected(members, deviations, judging, by_parts) if self.selection and judging is not None else None
        remarks = tuple(f"{member.kind} {k}: {remark}" for k, member in enumerate(members, 1) for remark in member.remarks)
        if self.selection:
            remarks += (f"selection: {why}, so that all count alike" if counts is None else f"selection: {self._told(counts)}",)
            source, ways = Measure.of(self.select_on).source, (Unbiased("ipw"),) if of_columns else ways_of(self)
            learned = queries.labels if source == "label" else queries.sources.get(source, ())
            if judging is not None and any(are_pages(judging, way, source, largest(learned)) for way in ways):
                remarks += (AS_THEY_ARE,)
        return replace(self, members=tuple(members), deviations=deviations, counts=counts, names=queries.names, remarks=remarks)

    def _fitted_copy(
        self,
        copy: int,
        first: Sequence[Ranker],
        queries: Queries,
        valid: Queries | None,
        watching: tuple[Tick | None, Kept | None],
    ) -> list[Ranker]:
        """The members of one copy, those of the `first` where nothing tells them apart. Its parts of the queries are gone before the next are made."""
        held_out = self._held_out(queries, copy) if self.folds else None
        learned_from, stops_it = (
            (queries, valid) if held_out is None else (select(queries, np.flatnonzero(part)) for part in (~held_out, held_out))
        )
        drawn, (tick, kept) = self._drawn(learned_from, copy), watching
        del learned_from
        members: list[Ranker] = []
        for place, member in enumerate(self.of):
            if copy > 0 and drawn is queries and not _has_seed(member):
                members.append(first[place])
                continue
            train = partial(self._fitted, member, copy, drawn, stops_it, tick)
            members.append(kept(copy * len(self.of) + place, train) if kept else train())
        return members

    def _fitted(self, member: Ranker, copy: int, queries: Queries, valid: Queries | None, tick: Tick | None) -> Ranker:
        try:
            return _seeded(member, self._seed_of(member, copy)).fit(queries, valid, tick)
        except ValueError as error:
            if self.folds is None:
                raise
            raise ValueError(f"average: without part {copy % self.folds + 1} of folds={self.folds}: {error}") from error

    def _selected(self, members: Sequence[Ranker], deviations: Floats, judging: Queries, by_parts: bool) -> Ints:
        """How often each of `of` counts: once, and once more wherever that was best on these queries, each part of them `by_parts` scored by the
        members that it was held out from; of equals the first is taken."""
        judging = canonical(judging)
        of_each = np.zeros((len(self.of), judging.n_documents))
        for k, (member, deviation) in enumerate(zip(members, deviations.tolist(), strict=True)):
            copy, place = divmod(k, len(self.of))
            held_out = self._held_out(judging, copy) if by_parts else None
            rows = slice(None) if held_out is None else np.repeat(held_out, np.diff(judging.offsets))
            of_each[place, rows] += member.predict(judging.features[rows]) / deviation
        counts, total = np.ones(len(self.of), np.int64), of_each.sum(axis=0)
        for _ in range(self.selection):
            with_one = [mean_measure(self.select_on, judging, total + scores, self.conventions) for scores in of_each]
            taken = int(np.argmax(with_one))
            counts[taken] += 1
            total += of_each[taken]
        return counts

    def _told(self, counts: Ints) -> str:
        """What selection came to, in words."""
        each = (
            f"{member.feature if isinstance(member, Column) else member.kind} {n}/{counts.sum()}"
            for member, n in zip(self.of, counts, strict=True)
        )
        return f"weights {', '.join(each)}"

    @property
    def scales(self) -> Floats:
        """What the scores of each member are divided by before their mean is taken, ``float64 [members]``: their deviation, by how much of a mean
        weight the member has; infinite for one that does not count."""
        assert self.deviations is not None
        given = self.counts if self.counts is not None and self.selection else self.weights
        if given is None:
            return self.deviations
        weights = np.asarray(given, np.float64)
        with np.errstate(divide="ignore"):
            scales: Floats = self.deviations / np.tile(weights / weights.sum() * len(weights), self._n_copies)
        return scales

    @property
    def _n_copies(self) -> int:
        """How many members there are of each of `of`."""
        return self.copies * (self.folds or 1)

    def _held_out(self, queries: Queries, copy: int) -> Bools:
        """The queries that a copy does not learn from and stops by, ``bool [queries]``."""
        assert self.folds is not None
        cut, part = divmod(copy, self.folds)
        held_out: Bools = equal_parts(queries.keys, self.folds, (self.seed, cut, _OF_FOLDS)) == part
        return held_out

    def _seed_of(self, member: Ranker, copy: int) -> int:
        """A copy's seed: the average's own, counted on, for rankers that have that one, or the one that they come with."""
        own, usual = getattr(member, "seed", self.seed), {f.name: f.default for f in fields(member)}.get("seed")
        alike = [one for one in self.of if type(one) is type(member) and _seeded(one, self.seed) == _seeded(member, self.seed)]
        if own == self.seed or (own == usual and all(getattr(one, "seed", own) == own for one in alike)):
            return self.seed + copy
        return int(np.random.SeedSequence((own, self.seed, copy)).generate_state(1, np.uint64)[0] >> np.uint64(1))

    def _drawn(self, queries: Queries, copy: int) -> Queries:
        """The queries that a copy learns from, drawn by their keys."""
        if self.query_share == 1:
            return queries
        rows = np.flatnonzero(chosen(queries.keys, self.query_share, (self.seed, copy, _OF_COPIES)))
        if not len(rows):
            raise ValueError(
                f"average: query_share={self.query_share:g} of {queries.n_queries} queries leaves none for copy {copy + 1}"
            )
        return select(queries, rows)

    def _scores(self, features: Floats32) -> Floats:
        scores = np.zeros(len(features))
        for member, scale in zip(self.members, self.scales.tolist(), strict=True):
            if scale < np.inf:
                scores += member.predict(features) / scale
        return scores / len(self.members)

    def attributions(self, features: Features) -> Floats | None:
        """The mean of the members' own, where all of them have some."""
        counted = [(member, scale) for member, scale in zip(self.members, self.scales.tolist(), strict=True) if scale < np.inf]
        found = [(member.attributions(features), scale) for member, scale in counted]
        if any(one is None for one, _ in found):
            return None
        total: Floats = np.sum([np.asarray(one) / scale for one, scale in found], axis=0)
        return total / len(self.members)

    @property
    def attributed(self) -> str:
        """As those of the members are."""
        return f"mean of {' and '.join(dict.fromkeys(member.attributed for member in self.members))}"

    def _surface(self, features: Floats32) -> Surface:
        raise ValueError("an average has no weights of its own, and so no certificate of local optimality; certify its members")

    def _learned_arrays(self) -> Arrays:
        assert self.deviations is not None
        own = {f"{k}:{name}": array for k, member in enumerate(self.members) for name, array in member.arrays.items()}
        counts = {} if self.counts is None or not self.selection else {"counts": self.counts}
        weights = {} if self.weights is None else {"weights": np.array(self.weights)}
        settled = {
            f"{k}/parameters": np.frombuffer(json.dumps(member.parameters, sort_keys=True).encode(), np.uint8)
            for k, member in enumerate(self.members)
            if member.parameters != self._unfitted(k).parameters
        }
        return {"deviations": self.deviations, **counts, **weights, **own, **settled}

    def _unfitted(self, k: int) -> Ranker:
        """What member `k` was before `fit`, which may have settled some of its parameters."""
        copy, place = divmod(k, len(self.of))
        return _seeded(self.of[place], self._seed_of(self.of[place], copy))

    def _with_arrays(self, arrays: Arrays) -> Self:
        deviations = arrays["deviations"]
        if deviations.shape != (len(self.of) * self._n_copies,) or deviations.dtype != np.float64 or not (deviations > 0).all():
            raise ValueError(f"deviations {deviations}; {len(self.of) * self._n_copies} positive numbers were expected")
        members = []
        for k in range(len(deviations)):
            own = {name.removeprefix(f"{k}:"): array for name, array in arrays.items() if name.startswith(f"{k}:")}
            member = self._unfitted(k)
            settled = arrays.get(f"{k}/parameters")
            parameters = member.parameters if settled is None else json.loads(settled.tobytes())
            members.append(type(member).restored(parameters, own, self.names))
        if (counts := arrays.get("counts")) is not None and (
            counts.shape != (len(self.of),) or counts.dtype != np.int64 or counts.min() < 1
        ):
            raise ValueError(f"counts {counts}; {len(self.of)} whole numbers from 1 on were expected")
        if self.weights is not None and not np.array_equal(arrays.get("weights", ()), self.weights):
            raise ValueError(f"weights {arrays.get('weights')}, and {self.weights} among the parameters")
        return replace(self, members=tuple(members), deviations=deviations, counts=counts)

    @property
    def needs_complete(self) -> bool:
        """Whether one of the rankers cannot handle missing values."""
        return any(member.needs_complete for member in self.of)

    @property
    def trained_for(self) -> tuple[Measure, ...]:
        """The measures that its rankers learn to improve."""
        return tuple(dict.fromkeys(measure for member in self.of for measure in member.trained_for))

    @property
    def features_read(self) -> tuple[str, ...]:
        """Features that its rankers name."""
        return tuple(dict.fromkeys(name for member in self.of for name in member.features_read))

    @property
    def importances(self) -> dict[str, Floats]:
        """Mean importance over the members, each by its weight, where all have the same kinds of it."""
        found = [member.importances for member in self.members]
        ways = found[0].keys() if found and all(each.keys() == found[0].keys() for each in found) else ()
        if not ways or self.deviations is None:
            return {}
        weights = (self.deviations / self.scales).tolist()
        shares = {
            way: [each[way] / max(each[way].sum(), 1e-300) * weight for each, weight in zip(found, weights, strict=True)]
            for way in ways
        }
        return {way: np.mean(own, axis=0) for way, own in shares.items()}

    @property
    def linear_weights(self) -> Floats | None:
        """The mean weights, where every member is linear; otherwise None."""
        weights = [member.linear_weights for member in self.members]
        if not weights or self.deviations is None or any(one is None for one in weights):
            return None
        mean: Floats = np.mean([np.asarray(one) / scale for one, scale in zip(weights, self.scales, strict=True)], axis=0)
        return mean

    @property
    def split_by_categories(self) -> frozenset[str]:
        """Those of any of its rankers."""
        return frozenset().union(*(one.split_by_categories for one in self.members))

    @property
    def export_form(self) -> str | None:
        """Linear where all members are; trees where all are, and none has a base."""
        forms = {member.export_form for member in self.members}
        based = any(getattr(member, "base_feature", None) is not None for member in self.members)
        if forms and forms <= {"trees", "trees of categories"} and not based:
            return max((form for form in forms if form), key=len)
        return "linear" if forms == {"linear"} else None


Kept = Callable[[int, Callable[[], Ranker]], Ranker]
"""Gives a member of an average by its number, which the function trains where that was not done before."""
AS_THEY_ARE = "selection uses uncorrected clicks, which favour the order that pages were shown in"
"""What is said where it does."""
_OF_COPIES, _OF_FOLDS = 1, 2
"""Behind a seed, so that a copy's queries are not drawn as the first member draws those of a tree."""


def _has_seed(member: Ranker) -> bool:
    return "seed" in member.parameters


def _stopping(member: Ranker) -> tuple[Measure, ...]:
    """The measures that stop a ranker, which may be several where it is LambdaMART; functions are asked where they are needed."""
    several = getattr(member, "stopping", (member.watched,))
    return tuple(Measure.of(measure) for measure in several if isinstance(measure, str | Measure))


def _seeded(member: Ranker, seed: int) -> Ranker:
    """The ranker with a seed, if it has any."""
    changed: Any = {"seed": seed} if _has_seed(member) else {}
    return replace(member, **changed)


def _deviation(scores: Floats, queries: Queries) -> float:
    """Standard deviation of scores around their query's mean; 1 where those of each query are equal, which their mean may miss by a rounding."""
    sizes = np.diff(queries.offsets)
    starts, sizes = queries.offsets[:-1][sizes > 0], sizes[sizes > 0]
    lowest, highest = (np.repeat(of.reduceat(scores, starts), sizes) for of in (np.minimum, np.maximum))
    around = np.where(lowest < highest, scores - np.repeat(np.add.reduceat(scores, starts) / sizes, sizes), 0.0)
    return float(np.sqrt(np.mean(around * around))) or 1.0
