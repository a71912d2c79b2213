"""What rankers that are ensembles of trees share: how they score, how scores depend on their leaves, and how they are saved."""

from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np

from ltr.data.sparse import dense_columns, is_sparse
from ltr.kernels.kernel import Floats, Floats32, Ints32
from ltr.rankers.base import Arrays, Ranker, UndefinedScoreError, learned
from ltr.rankers.features import Features, checked_features, checked_sparse
from ltr.rankers.parameters import whole
from ltr.rankers.surface import Surface
from ltr.trees.attribution import shapley
from ltr.trees.ensemble import Trees


@dataclass(frozen=True, kw_only=True)
class TreeRanker(Ranker):
    """A ranker whose score is a sum over trees, plus a feature where it has a base.

    Attributes:
        trees: the ensemble, None before `fit`.
        rest: trees that were grown after those that are kept, for `Ranker.go_on`; they are no part of the model and are not saved.
    """

    trees: Trees | None = learned(None)
    rest: Trees | None = learned(None)

    @property
    def base_feature(self) -> str | None:
        """The feature whose value is added to the score of the trees, where there is one."""
        return None

    @property
    def ensemble(self) -> Trees:
        """The trees of a fitted ranker.

        Raises:
            ValueError: before `fit`.
        """
        if self.trees is None:
            raise ValueError("this model is not fitted")
        return self.trees

    @property
    def rest_arrays(self) -> Arrays:
        """What `Ranker.go_on` needs besides the model: the arrays of `rest`; none where there is none."""
        return {} if self.rest is None else self.rest.arrays

    def with_rest(self, arrays: Arrays) -> Self:
        """The ranker with `rest_arrays` that were kept.

        Raises:
            ValueError: for arrays that are no trees on its features.
        """
        return replace(self, rest=Trees.restored(arrays, len(self.names)))

    def first(self, iterations: int) -> Self:
        """The ranker with its first trees only.

        Raises:
            ValueError: before `fit`, or for a number that is not from 0 to that of its trees.
        """
        n_trees = self.ensemble.n_trees
        if iterations not in whole(0, n_trees):
            raise ValueError(f"{self.kind}: no first {iterations!r} trees; it has {n_trees}")
        return replace(self, trees=self.ensemble.first(int(iterations)), rest=None)

    def predict(self, features: Features, n_trees: int | None = None) -> Floats:
        """Scores ``float64 [documents]``, higher is better; of the first `n_trees` trees, where that is given.

        Raises:
            ValueError: as `Ranker.predict`, and as `first`.
        """
        if n_trees is not None:
            return self.first(n_trees).predict(features)
        if is_sparse(features):
            return self._scores(checked_sparse(features, self.names))
        return super().predict(features)

    def leaves(self, features: Features) -> Ints32:
        """Which leaf of each tree a document falls into, ``int32 [documents, trees]``: places in ``trees.value``.

        Raises:
            ValueError: as `predict`.
        """
        rows = checked_sparse(features, self.names) if is_sparse(features) else checked_features(features, self.names)
        self._require_no_infinite(rows)
        return self.ensemble.leaves(rows)

    def offset(self, features: Floats32, names: tuple[str, ...]) -> Floats:
        """Scores before the first tree ``float64 [documents]``; `names` are those of ``features float32 [documents, features]``.

        Raises:
            ValueError: for a base with a missing or infinite value.
        """
        if self.base_feature is None:
            return np.zeros(features.shape[0])
        place = names.index(self.base_feature)
        column = dense_columns(features, np.array([place]))[:, 0] if is_sparse(features) else features[:, place]
        scores = column.astype(np.float64)
        if not np.isfinite(scores).all():
            row = int(np.argmin(np.isfinite(scores)))
            raise ValueError(f"base {self.base_feature!r} has a missing or infinite value in row {row}")
        return scores

    def attributions(self, features: Features) -> Floats:
        """Exact Shapley values ``float64 [documents, features + 1]``, with the expected score in the last column: a row sums to the score.
        The scores of a base count as those of its feature.

        Raises:
            ValueError: as `predict`.
        """
        array = checked_features(features, self.names)
        self._require_no_infinite(array)
        values = shapley(self.ensemble, array)
        if self.base_feature is not None:
            values[:, self.names.index(self.base_feature)] += self.offset(array, self.names)
        return values

    @property
    def attributed(self) -> str:
        """By the shares of the training documents that went each way."""
        return "tree Shapley"

    def _scores(self, features: Floats32) -> Floats:
        offset = self.offset(features, self.names)
        try:
            return offset + self.ensemble.scores(features)
        except ValueError:
            self._require_no_infinite(features)
            raise

    def _require_no_infinite(self, features: Floats32) -> None:
        if is_sparse(features):
            stored = cast(Any, features).tocoo()
            infinite = np.transpose(stored.coords)[np.isinf(stored.data)]
        else:
            infinite = np.argwhere(np.isinf(features))
        if len(infinite):
            row, feature = infinite[0].tolist()
            why = (
                f"feature {self.names[feature]!r} is infinite ({features[row, feature]}), or beyond 3.4e38 (float32); "
                "trees read finite or missing (NaN) values"
            )
            raise UndefinedScoreError(row, why) from None

    def _surface(self, features: Floats32) -> Surface:
        """The values of all leaves are the weights; splits stay as they are."""
        self._require_no_infinite(features)
        return self.ensemble.surface(features, self.offset(features, self.names))

    def moved(self, weights: Floats) -> Self:
        """The ranker with other leaf values ``float64 [leaves of all trees]``."""
        if self.why_fixed:
            raise ValueError(f"{self.kind}: {self.why_fixed}")
        return replace(self, trees=replace(self.ensemble, value=self._in_place_of(self.ensemble.value, weights)))

    def _learned_arrays(self) -> Arrays:
        return self.ensemble.arrays

    def _with_arrays(self, arrays: Arrays) -> Self:
        if self.base_feature is not None and self.base_feature not in self.names:
            raise ValueError(f"the base {self.base_feature!r} is not one of its features")
        return replace(self, trees=Trees.restored(arrays, len(self.names)))

    @property
    def best_iteration(self) -> int | None:
        """How many trees were kept."""
        return self.ensemble.n_trees

    @property
    def split_by_categories(self) -> frozenset[str]:
        """Those that a tree splits by categories of."""
        of_codes = self.ensemble.feature[self.ensemble.n_codes > 0]
        return frozenset(self.names[f] for f in np.unique(of_codes))

    @property
    def export_form(self) -> str | None:
        """Every tool that reads ensembles of trees can read it; those of categories, where it splits by some."""
        return "trees of categories" if self.trees is not None and len(self.trees.codes) else "trees"
