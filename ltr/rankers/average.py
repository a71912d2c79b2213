"""The mean of several rankers: copies of one with other seeds or on other draws of the queries (bagging, Breiman 1996), or several kinds.

scikit-learn's VotingRegressor and BaggingRegressor average predictions as they are. Scores of rankers have no common scale, so each member's
are divided by their standard deviation within training queries first; the number is kept, and prediction needs no other documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from ltr.data.queries import Queries, canonical, chosen, select
from ltr.kernels.kernel import Floats, Floats32
from ltr.metrics.measure import Measure
from ltr.rankers.base import Arrays, Features, Ranker, Tick, check_data, learned
from ltr.rankers.column import Column
from ltr.rankers.parameters import SEED, SHARE, Span, whole
from ltr.rankers.surface import Surface


@dataclass(frozen=True)
class Average(Ranker):
    """Averages the scores of several rankers, trained one after another.

    Args:
        of: the rankers, all under the conventions of the average; in a configuration, sections like those of `rankers`.
        copies: of each of them, with the seeds `seed`, `seed` + 1, …, where they have one; where not, one is trained and counts so often,
            unless `query_share` draws other queries for each. A ranker that has a seed of its own gets one that is made of that and the average's.
        query_share: share of the training queries that each copy learns from, a new draw for each.
        seed: of the first copies.
        members: once fitted, every copy.
        deviations: ``float64 [members]``, standard deviation of each one's scores within training queries.
    """

    kind: ClassVar[str] = "average"
    has_weights: ClassVar[bool] = False
    query_weights: ClassVar[bool] = True
    document_weights: ClassVar[bool] = True
    of: Sequence[Ranker]
    copies: int = 1
    query_share: float = 1.0
    seed: int = 1
    members: tuple[Ranker, ...] = learned(())
    deviations: Floats | None = learned(None)
    spans: ClassVar[Mapping[str, Span]] = {"copies": whole(1, 10_000), "query_share": SHARE, "seed": SEED}

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.of, Ranker):
            object.__setattr__(self, "of", (self.of,))
        object.__setattr__(self, "of", tuple(self.of))
        strange = [member for member in self.of if not isinstance(member, Ranker) or isinstance(member, Average)]
        if not self.of or strange:
            raise ValueError(f"average: of={strange[0] if strange else ()!r}; it takes one ranker or several, and no averages")
        object.__setattr__(self, "of", tuple(replace(member, conventions=self.conventions) for member in self.of))

    def check(self, queries: Queries) -> None:
        """What any of the rankers would refuse.

        Raises:
            ValueError: saying what is wrong with the queries; for weights of queries where one of the rankers has no use for them; for a
                column with missing values, which have no place on a common scale; for copies that nothing tells apart.
        """
        super().check(queries)
        if self.copies > 1 and self.query_share == 1 and not any(map(_has_seed, self.of)):
            kinds = ", ".join(dict.fromkeys(member.kind for member in self.of))
            raise ValueError(
                f"average: copies={self.copies} of {kinds}, without a seed, would all be the same; query_share below 1 draws other queries for each"
            )
        for member in self.of:
            if queries.weights is not None and not member.query_weights:
                raise ValueError(f"average: {member.kind} does not obey weights of queries")
            member.check(queries)
            if isinstance(member, Column) and (missing := member.n_missing(queries)):
                raise ValueError(
                    f"average: {member.feature!r} is missing for {missing:,} of {queries.n_documents:,} documents, and a column puts these "
                    "last, which is no number to average; data.run_forms: [min-max] gives such documents of a run 0"
                )

    def fit(self, queries: Queries, valid: Queries | None = None, tick: Tick | None = None) -> Self:
        """A fitted copy.

        Raises:
            ValueError: as each of the rankers does.
        """
        check_data(self, queries, valid)
        self.check(queries)
        queries = canonical(queries)
        members: list[Ranker] = []
        for k in range(self.copies):
            drawn = self._drawn(queries, k)
            for place, member in enumerate(self.of):
                same = k > 0 and drawn is queries and not _has_seed(member)
                members.append(members[place] if same else _seeded(member, self._seed_of(member, k)).fit(drawn, valid, tick))
        deviations = np.array([_deviation(member.predict(queries.features), queries) for member in members])
        remarks = tuple(f"{member.kind} {k}: {remark}" for k, member in enumerate(members, 1) for remark in member.remarks)
        return replace(self, members=tuple(members), deviations=deviations, names=queries.names, remarks=remarks)

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
        assert self.deviations is not None
        scores = np.zeros(len(features))
        for member, deviation in zip(self.members, self.deviations.tolist(), strict=True):
            scores += member.predict(features) / deviation
        return scores / len(self.members)

    def attributions(self, features: Features) -> Floats | None:
        """The mean of the members' own, where all of them have some."""
        assert self.deviations is not None
        found = [member.attributions(features) for member in self.members]
        if any(one is None for one in found):
            return None
        mean: Floats = np.mean([np.asarray(one) / deviation for one, deviation in zip(found, self.deviations, strict=True)], axis=0)
        return mean

    @property
    def attributed(self) -> str:
        """As those of the members are."""
        return f"mean of {' and '.join(dict.fromkeys(member.attributed for member in self.members))}"

    def _surface(self, features: Floats32) -> Surface:
        raise ValueError("an average has no weights of its own, and so no certificate of local optimality; certify its members")

    def _learned_arrays(self) -> Arrays:
        assert self.deviations is not None
        own = {f"{k}:{name}": array for k, member in enumerate(self.members) for name, array in member.arrays.items()}
        return {"deviations": self.deviations, **own}

    def _with_arrays(self, arrays: Arrays) -> Self:
        deviations = arrays["deviations"]
        if deviations.shape != (len(self.of) * self.copies,) or deviations.dtype != np.float64 or not (deviations > 0).all():
            raise ValueError(f"deviations {deviations}; {len(self.of) * self.copies} positive numbers were expected")
        members = []
        for k in range(len(deviations)):
            own = {name.removeprefix(f"{k}:"): array for name, array in arrays.items() if name.startswith(f"{k}:")}
            member = self.of[k % len(self.of)]
            members.append(
                type(member).restored(_seeded(member, self._seed_of(member, k // len(self.of))).parameters, own, self.names)
            )
        return replace(self, members=tuple(members), deviations=deviations)

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
        """Mean importance over the members, where all have the same kinds of it."""
        found = [member.importances for member in self.members]
        ways = found[0].keys() if found and all(each.keys() == found[0].keys() for each in found) else ()
        return {way: np.mean([each[way] / max(each[way].sum(), 1e-300) for each in found], axis=0) for way in ways}

    @property
    def linear_weights(self) -> Floats | None:
        """The mean weights, where every member is linear; otherwise None."""
        weights = [member.linear_weights for member in self.members]
        if not weights or self.deviations is None or any(one is None for one in weights):
            return None
        mean: Floats = np.mean(
            [np.asarray(one) / deviation for one, deviation in zip(weights, self.deviations, strict=True)], axis=0
        )
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


_OF_COPIES = 1
"""Behind a seed, so that a copy's queries are not drawn as the first member draws those of a tree."""


def _has_seed(member: Ranker) -> bool:
    return "seed" in member.parameters


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
