"""LambdaMART: boosted regression trees on forces (Svore 2011 section 3; Burges 2010 section 7).

At each iteration the objective gives force and curvature of every document at the current scores, one tree is grown along the
force, and the scores move by its leaves. The trees never hear of a measure; a measure is looked at only to stop.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ltr.binning import apply_bins, find_bins
from ltr.lambdas import NORMALISE, WITHOUT_CURVATURE, Term
from ltr.measures import Conventions, Measure
from ltr.models import checked_features, digest_of
from ltr.optimality import Surface
from ltr.preferences import Preferences
from ltr.queries import Queries, canonical
from ltr.training import Curve, mean_measure, objective_of, written_objective
from ltr.trees import VANISHED, Trees, grow, join


@dataclass(frozen=True)
class LambdaMART:
    """Gradient boosted trees on λ's.

    Args:
        n_trees: trees to grow at most.
        n_leaves: leaves of a tree at most, 2 and up.
        learning_rate: factor on every leaf.
        min_docs_in_leaf: documents in a leaf at least, exact.
        objective: the terms (default: NDCG, all pairs).
        gain: ``newton`` or ``least_squares`` (the papers' rule).
        leaf: ``newton`` (Σforce/Σcurvature) or ``gradient`` (Σforce/count).
        largest_leaf: bound on |leaf| before the learning rate.
        max_bins: bins of a feature at most, 2–255.
        sigma, normalise: see `Objective`.
        conventions: label rules.
        stop_on: measure on validation queries whose best iteration is kept; None keeps all trees.
        patience: iterations without a new best before stopping; 0 never stops early.
    """

    kind: ClassVar[str] = "lambdamart"
    n_trees: int = 300
    n_leaves: int = 31
    learning_rate: float = 0.1
    min_docs_in_leaf: int = 20
    objective: Sequence[Term] = (Term(),)
    gain: Literal["newton", "least_squares"] = "newton"
    leaf: Literal["newton", "gradient"] = "newton"
    largest_leaf: float = 10.0
    max_bins: int = 255
    sigma: float = 1.0
    normalise: Literal["none", "query", "term"] = "none"
    conventions: Conventions = Conventions()
    stop_on: str | None = "ndcg_10"
    patience: int = 50
    trees: Trees | None = field(default=None, repr=False)
    names: tuple[str, ...] = field(default=(), repr=False)
    curve: Curve | None = field(default=None, repr=False, compare=False)
    remarks: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        rules = {
            "n_trees": self.n_trees >= 1,
            "n_leaves": self.n_leaves >= 2,
            "learning_rate": self.learning_rate > 0,
            "min_docs_in_leaf": self.min_docs_in_leaf >= 1,
            "largest_leaf": self.largest_leaf > 0,
            "gain": self.gain in ("newton", "least_squares"),
            "leaf": self.leaf in ("newton", "gradient"),
            "patience": self.patience >= 0,
            "max_bins": 2 <= self.max_bins <= 255,
            "sigma": self.sigma > 0,
            "normalise": self.normalise in NORMALISE,
        }
        if self.stop_on is not None:
            Measure.maximised(self.stop_on)
        flat = [name for term in self.objective for name in (term.cost, term.construction) if name in WITHOUT_CURVATURE]
        if flat and "newton" in (self.gain, self.leaf):
            raise ValueError(f"LambdaMART: {flat[0]!r} has no curvature; take gain: least_squares and leaf: gradient with it")
        for name, holds in rules.items():
            if not holds:
                raise ValueError(f"LambdaMART: {name}={getattr(self, name)!r} is out of range")

    def fit(
        self,
        queries: Queries,
        valid: Queries | None = None,
        tick: Callable[[], None] | None = None,
        preferences: Preferences | None = None,
    ) -> "LambdaMART":
        """A fitted copy of this model. `tick` is called after every tree; what it raises ends the training. With `preferences`,
        pairs of rows of `queries`, it learns from these instead of the objective's measures (RankNet on trees, B2).

        Raises:
            ValueError: for fewer documents than two leaves need, infinite features, or an objective that does not fit the data.
        """
        preferences = preferences and preferences.in_canonical_order(queries)
        queries = canonical(queries)
        if queries.n_documents < 2 * self.min_docs_in_leaf:
            raise ValueError(f"{queries.n_documents} documents cannot make two leaves of min_docs_in_leaf={self.min_docs_in_leaf}")
        objective = objective_of(self, queries, preferences)
        bins = find_bins(queries.features, self.max_bins)
        binned = apply_bins(queries.features, bins)
        has_missing = np.asarray(np.isnan(queries.features).any(axis=0))
        watch = _Watch(self, queries, canonical(valid) if valid is not None else None)
        scores = np.zeros(queries.n_documents)
        trees: list[Trees] = []
        remarks: tuple[str, ...] = ()
        for iteration in range(self.n_trees):
            force, curvature = objective(scores, iteration)
            grown = grow(
                binned, bins, has_missing, force, curvature, self.n_leaves, self.min_docs_in_leaf,
                self.gain == "newton", self.leaf == "newton", self.learning_rate, self.largest_leaf,
            )  # fmt: skip
            if grown is None:
                why = "all forces are zero" if np.abs(force).max(initial=0.0) < VANISHED else "no split is admissible"
                remarks = (f"stopped after {iteration} trees: {why}",)
                break
            trees.append(grown.tree)
            scores += grown.tree.value[grown.leaf]
            if tick is not None:
                tick()
            if watch.seen(iteration + 1, scores, grown.tree):
                break
        ensemble = join(trees)
        kept = ensemble.first(watch.best) if self.stop_on and valid is not None else ensemble
        return replace(self, trees=kept, names=queries.names, curve=watch.curve(), remarks=remarks)

    def predict(self, features: Any) -> NDArray[np.float64]:
        """Scores ``float64 [documents]``, higher is better."""
        array = checked_features(features, self.names)
        if np.isinf(array).any():
            raise ValueError("a feature is infinite; trees read finite or missing (NaN) values")
        assert self.trees is not None
        return self.trees.scores(array)

    def surface(self, features: Any) -> Surface:
        """What `ltr.certify` walks on: the values of all leaves."""
        assert self.trees is not None
        return self.trees.surface(checked_features(features, self.names))

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.arrays)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        if self.trees is None:
            raise ValueError("this model is not fitted")
        return vars(self.trees)

    @property
    def parameters(self) -> dict[str, Any]:
        fitted = ("trees", "names", "curve", "remarks")
        return {name: value for name, value in asdict(replace(self, trees=None, curve=None)).items() if name not in fitted}

    @classmethod
    def restored(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> "LambdaMART":
        return cls(**{**parameters, **written_objective(parameters)}, trees=Trees(**arrays), names=names)


class _Watch:
    """The measure along training: on validation queries after every tree, on training queries after every tenth."""

    def __init__(self, model: LambdaMART, queries: Queries, valid: Queries | None) -> None:
        self.model, self.queries, self.valid = model, queries, valid
        self.valid_scores = np.zeros(valid.n_documents if valid else 0)
        self.rows: list[tuple[int, float, float]] = []
        self.best, self.best_value = 0, -np.inf

    def seen(self, n_trees: int, scores: NDArray[np.float64], tree: Trees) -> bool:
        """Notes the state after a tree; True when it is time to stop."""
        measure = self.model.stop_on
        if measure is None:
            return False
        train = mean_measure(measure, self.queries, scores, self.model.conventions) if n_trees % 10 == 0 else np.nan
        value = np.nan
        if self.valid is not None:
            self.valid_scores += tree.scores(self.valid.features)
            value = mean_measure(measure, self.valid, self.valid_scores, self.model.conventions)
            if value > self.best_value:
                self.best, self.best_value = n_trees, value
        self.rows.append((n_trees, train, value))
        return self.valid is not None and 0 < self.model.patience <= n_trees - self.best

    def curve(self) -> Curve:
        iteration, train, valid = zip(*self.rows, strict=True) if self.rows else ((), (), ())
        return Curve(np.array(iteration, np.int64), np.array(train, np.float64), np.array(valid, np.float64))
