"""LambdaMART: boosted regression trees on gradients (Svore 2011 section 3; Burges 2010 section 7).

At each iteration the objective gives gradient and hessian of every document at the current scores, one tree is grown along the
gradient, and the scores move by its leaves. Trees know nothing of measures; a measure is evaluated only to decide when to stop.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from ltr.data.queries import Queries, canonical
from ltr.kernels.kernel import Bools, Floats
from ltr.metrics.measure import Measure
from ltr.objectives.lambda_objective import Objective
from ltr.objectives.preferences import PreferenceObjective, Preferences
from ltr.objectives.seam import ObjectiveFunction
from ltr.objectives.terms import WITHOUT_HESSIAN, Term, saturations, terms_of
from ltr.objectives.two_class import TwoClassObjective
from ltr.rankers.base import Features, Tick, check_data, checked_features
from ltr.rankers.parameters import FACTOR, PENALTY, SEED, SHARE, Span, whole
from ltr.rankers.training import Curve, mean_measure
from ltr.trees.attribution import importance
from ltr.trees.ensemble import Trees, join
from ltr.trees.fixed_point import VANISHED
from ltr.trees.grower import TreeOptions, grow_from
from ltr.trees.shards import Ask, Shard, ShardLost, Shards
from ltr.trees.tree_ranker import TreeRanker

MIN_DOCS_IN_LEAF = 50
"""Where nothing else is asked for and there are documents enough."""


@dataclass(frozen=True)
class LambdaMART(TreeRanker):
    """Gradient boosted trees on λ's. Defaults were chosen on validation queries of seven data sets (`docs/results.md`).

    Args:
        n_trees: trees to grow at most.
        n_leaves: leaves of a tree at most, 2 and up.
        learning_rate: factor on every leaf.
        min_docs_in_leaf: documents in a leaf at least, exact; None is 50, or a fortieth of the training documents where that is less.
        objective: the terms (default: NDCG, all pairs), or a measure's name for one of it.
        gain: ``newton`` or ``least_squares`` (the papers' rule).
        leaf: ``newton`` (Σ gradient/Σ hessian) or ``gradient`` (Σ gradient/count).
        largest_leaf: bound on |leaf| before the learning rate; on σ·|leaf| where leaves are Newton's, so that no ranking depends on σ.
        l2: added to Σ hessian/σ² of every leaf, or to its count where leaves are not Newton's, in its gain and in its value.
        max_bins: bins of a feature at most, 2–255.
        loss: ``ranking``: the objective's terms; ``two_class`` and ``balanced``: each document on its own is relevant or not, by the
            first term's measure (`ltr.objectives.two_class`).
        sigma, normalise: see `Objective`.
        query_share: share of the training queries that each tree is grown on, a new draw for each.
        feature_share: share of the features that each tree may split by, a new draw for each.
        monotone: by feature name, 1 where the score may only rise with the feature, −1 where it may only fall.
        base: name of a feature that holds the scores of another model; training starts from them, prediction adds them.
        seed: of the draws.
        conventions: label rules.
        stop_on: measure on validation queries whose best iteration is kept; None keeps all trees.
        patience: iterations without a new best before stopping; 0 never stops early.
    """

    kind: ClassVar[str] = "lambdamart"
    stepwise: ClassVar[bool] = True
    sharded: ClassVar[bool] = True
    query_weights: ClassVar[bool] = True
    iterations_from: ClassVar[str | None] = "n_trees"
    n_trees: int = 500
    n_leaves: int = 31
    learning_rate: float = 0.05
    min_docs_in_leaf: int | None = None
    objective: Sequence[Term] = (Term(),)
    gain: Literal["newton", "least_squares"] = "newton"
    leaf: Literal["newton", "gradient"] = "newton"
    largest_leaf: float = 10.0
    l2: float = 0.0
    max_bins: int = 255
    loss: Literal["ranking", "two_class", "balanced"] = "ranking"
    sigma: float = 1.0
    normalise: Literal["none", "query", "term"] = "none"
    query_share: float = 0.8
    feature_share: float = 0.5
    monotone: Mapping[str, int] = field(default_factory=dict)
    base: str | None = None
    seed: int = 1
    stop_on: str | None = "ndcg_10"
    patience: int = 50
    spans: ClassVar[Mapping[str, Span]] = {
        "n_trees": whole(1), "n_leaves": whole(2, 131_072), "learning_rate": FACTOR, "min_docs_in_leaf": replace(whole(1, 1_000_000_000), or_none=True),
        "largest_leaf": FACTOR, "l2": PENALTY, "max_bins": whole(2, 255), "sigma": FACTOR, "query_share": SHARE, "feature_share": SHARE, "seed": SEED,
        "patience": whole(0, 1_000_000_000),
    }  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "objective", terms_of(self.objective, self.n_trees))
        if not isinstance(self.monotone, Mapping) or not {*self.monotone.values()} <= {-1, 0, 1}:
            raise ValueError(
                f"LambdaMART: monotone={self.monotone!r} is no mapping of feature names to 1 (rising), -1 (falling) or 0"
            )
        if self.stop_on is not None:
            Measure.maximised(self.stop_on)
        flat = [name for term in self.objective for name in (term.cost, term.construction) if name in WITHOUT_HESSIAN]
        if flat and "newton" in (self.gain, self.leaf):
            raise ValueError(f"LambdaMART: {flat[0]!r} has no hessian; take gain: least_squares and leaf: gradient with it")
        if any(self.monotone.values()) and (self.gain == "newton") != (self.leaf == "newton"):
            raise ValueError(
                "LambdaMART: monotone features need leaves of the gain's kind: both newton, or least_squares and gradient"
            )

    @property
    def features_read(self) -> tuple[str, ...]:
        """The base, and the monotone features."""
        return (*([self.base] if self.base else []), *self.monotone)

    def check(self, queries: Queries) -> None:
        """Raises ValueError for fewer documents than two leaves need."""
        super().check(queries)
        self._least_docs(queries.n_documents)

    def _least_docs(self, n_documents: int) -> int:
        """Documents in a leaf at least, of so many to learn from."""
        least = min(MIN_DOCS_IN_LEAF, max(n_documents // 40, 1)) if self.min_docs_in_leaf is None else self.min_docs_in_leaf
        if n_documents < 2 * least:
            raise ValueError(
                f"{n_documents} document{'' if n_documents == 1 else 's'} cannot make two leaves of min_docs_in_leaf={least}"
            )
        return least

    def fit(
        self,
        queries: Queries,
        valid: Queries | None = None,
        tick: Tick | None = None,
        preferences: Preferences | None = None,
        start: "LambdaMART | None" = None,
    ) -> "LambdaMART":
        """A fitted copy of this model.

        Args:
            tick: called after every tree; what it raises ends the training.
            preferences: pairs of rows of `queries` to learn from instead of the objective's measures (RankNet on trees, B2).
            start: a fitted model whose trees come first. With the same data and the same parameters, except for more trees, the
                result is that of never having stopped, byte for byte; with others, the model is adapted to them (B section 7).

        Raises:
            ValueError: for fewer documents than two leaves need, infinite features, an unknown feature, a start on other
                features, or an objective that does not fit the data.
        """
        check_data(self, queries, valid)
        return self._boosted(Shard(self, queries, preferences), valid, tick, start)

    def go_on(self, begun: "LambdaMART", queries: Queries, valid: Queries | None = None, tick: Tick | None = None) -> "LambdaMART":
        """`fit` from the trees of `begun`; those after its best iteration are grown again where it has no `rest`, and with a base, whose
        scores would be added in another order."""
        if begun.rest is not None and self.base is None:
            begun = replace(begun, trees=join([begun.ensemble, begun.rest]))
        return self.fit(queries, valid, tick, start=begun)

    def fit_shards(
        self,
        ask: Ask,
        valid: Queries | None = None,
        tick: Tick | None = None,
        start: "LambdaMART | None" = None,
    ) -> "LambdaMART":
        """`fit` on queries in several parts, which are reached through `ask` (`ltr.trees.shards`): the same model, byte for byte.

        Raises:
            ValueError: as `fit`, and for parts that do not belong together.
            ShardLost: when `ask` raises it; it carries the model of the trees so far.
        """
        return self._boosted(Shards(self, ask), valid, tick, start)

    def _boosted(self, data: Shard | Shards, valid: Queries | None, tick: Tick | None, start: "LambdaMART | None") -> "LambdaMART":
        least_docs = self._least_docs(data.n_documents)
        begun = self._begun(start, data.names)
        data.begin(begun)
        newton = self.leaf == "newton"
        options = TreeOptions(
            self.n_leaves, least_docs, self.gain == "newton", newton, self.learning_rate,
            self.largest_leaf / self.sigma if newton else self.largest_leaf, self.l2 * self.sigma**2 if newton else self.l2,
            np.array([self.monotone.get(name, 0) for name in data.names], np.int8),
        )  # fmt: skip
        watch = _Watch(self, data, canonical(valid) if valid is not None else None, begun, start.curve if start else None)
        trees, judged, remarks = [begun], 1, tuple(saturations(self.objective, self.n_trees))
        try:
            for iteration in range(begun.n_trees, self.n_trees):
                gradients = data.gradients_at(iteration)
                tree = grow_from(gradients, options, self._drawn(len(data.names), iteration))
                if tree is None:
                    why = "all gradients are zero" if gradients.largest()[0] < VANISHED else "no split is admissible"
                    remarks = (*remarks, f"stopped after {iteration} tree{'' if iteration == 1 else 's'}: {why}")
                    break
                del gradients
                trees.append(tree)
                data.move(tree.value)
                if tick is not None:
                    tick()
                if watch.seen(iteration + 1, tree):
                    break
                judged = len(trees)
        except ShardLost as lost:
            lost.so_far = replace(self, trees=join(trees[:judged]), names=data.names, curve=watch.curve(), remarks=remarks)
            raise
        ensemble = join(trees)
        kept = ensemble.first(watch.best) if self.stop_on and valid is not None else ensemble
        rest = ensemble.between(kept.n_trees, ensemble.n_trees)
        return replace(self, trees=kept, rest=rest, names=data.names, curve=watch.curve(), remarks=remarks)

    def stages(self, features: Features, every: int) -> Iterator[tuple[int, Floats]]:
        """Numbers of trees, the multiples of `every` and all, and the scores ``float64 [documents]`` of that many."""
        array = checked_features(features, self.names)
        trees = self.ensemble
        scores, before = self.offset(array, self.names), 0
        for n_trees in sorted({*range(every, trees.n_trees, every), trees.n_trees} - {0}):
            scores = scores + trees.between(before, n_trees).scores(array)
            before = n_trees
            yield n_trees, scores

    def importance(self, by: Literal["gain", "splits"] = "gain") -> Floats:
        """How much each feature was split by, ``float64 [features]``: Σ gain, or the number of splits."""
        return importance(self.ensemble, len(self.names), by)

    def explain(self, features: Features) -> Floats:
        """`attributions`: exact Shapley values ``float64 [documents, features + 1]``."""
        return self.attributions(features)

    def objective_over(
        self, queries: Queries, preferences: Preferences | None = None, sizes: tuple[int, int] | None = None
    ) -> ObjectiveFunction:
        """The objective over these queries, or over `preferences` where there are any; `sizes`: see `TwoClassObjective`."""
        if preferences is not None:
            return PreferenceObjective(queries, preferences, self.sigma)
        if self.loss == "ranking":
            return Objective(queries, self.objective, self.conventions, self.sigma, self.normalise)
        measure = Measure.of(self.objective[0].measure)
        return TwoClassObjective(queries, measure, self.conventions, self.sigma, self.loss == "balanced", sizes)

    def _begun(self, start: "LambdaMART | None", names: tuple[str, ...]) -> Trees:
        """The trees to go on from."""
        unknown = [name for name in (*self.monotone, *([self.base] if self.base else [])) if name not in names]
        if unknown:
            raise ValueError(f"LambdaMART: no feature {unknown[0]!r} in this data set; it has {', '.join(names[:5])} …")
        if start is None:
            return join([])
        if start.trees is None or start.names != names or start.base != self.base:
            raise ValueError("LambdaMART: a start must be a fitted model on the same features and base")
        return start.trees.first(min(start.trees.n_trees, self.n_trees))

    @property
    def base_feature(self) -> str | None:
        """`base`."""
        return self.base

    def _drawn(self, n_features: int, iteration: int) -> Bools | None:
        """Features of one tree, None for all: keyed by seed and iteration, so that an interruption does not matter."""
        if self.feature_share == 1:
            return None
        n = max(round(self.feature_share * n_features), 1)
        rng = np.random.default_rng([self.seed, iteration])
        return np.isin(np.arange(n_features), rng.choice(n_features, n, replace=False))

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of `objective`."""
        return tuple(self.objective)

    @property
    def trained_for(self) -> tuple[Measure, ...]:
        """The measures of the terms."""
        return tuple(Measure.of(term.measure) for term in self.objective)

    @property
    def watched(self) -> Measure | None:
        """The measure that chooses the number of trees, `stop_on`."""
        return None if self.stop_on is None else Measure.of(self.stop_on)

    @property
    def why_fixed(self) -> str | None:
        """Leaves of trees that are monotone in a feature have to stay in their order."""
        return "leaves that move freely do not stay monotone in a feature" if any(self.monotone.values()) else None

    @property
    def importances(self) -> dict[str, Floats]:
        """`importance` by gain and by splits."""
        return {"gain": self.importance("gain"), "splits": self.importance("splits")}


class _Watch:
    """The measure along training: on validation queries after every tree, on training queries after every tenth."""

    def __init__(self, model: LambdaMART, data: Shard | Shards, valid: Queries | None, begun: Trees, curve: Curve | None) -> None:
        self.model, self.data, self.valid = model, data, valid
        self.rows: list[tuple[int, float, float]] = []
        self.best, self.best_value = 0, -np.inf
        if curve is not None:
            before = curve.iteration <= begun.n_trees
            columns = (curve.iteration[before].tolist(), curve.train[before].tolist(), curve.valid[before].tolist())
            self.rows = list(zip(*columns, strict=True))
        if valid is not None:
            self.valid_scores = model.offset(valid.features, valid.names) + begun.scores(valid.features)
            if begun.n_trees and model.stop_on is not None:
                value = mean_measure(model.stop_on, valid, self.valid_scores, model.conventions)
                self.best, self.best_value = begun.n_trees, value
                if self.rows and (self.rows[-1][0], self.rows[-1][2]) == (begun.n_trees, value):
                    # The curve ends where this begins: the training was interrupted, and its best may be further back.
                    self.best, _, self.best_value = max(self.rows, key=lambda row: row[2])

    def seen(self, n_trees: int, tree: Trees) -> bool:
        """Measures the scores after a tree; True when it is time to stop."""
        measure = self.model.stop_on
        if measure is None:
            return False
        train = self.data.mean(measure) if n_trees % 10 == 0 else np.nan
        value = np.nan
        if self.valid is not None:
            self.valid_scores += tree.scores(self.valid.features)
            value = mean_measure(measure, self.valid, self.valid_scores, self.model.conventions)
            if value > self.best_value:
                self.best, self.best_value = n_trees, value
        self.rows.append((n_trees, train, value))
        return self.valid is not None and 0 < self.model.patience <= n_trees - self.best

    def curve(self) -> Curve:
        """The measure after each tree so far."""
        iteration, train, valid = zip(*self.rows, strict=True) if self.rows else ((), (), ())
        return Curve(np.array(iteration, np.int64), np.array(train, np.float64), np.array(valid, np.float64))
