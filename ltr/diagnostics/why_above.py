"""Why one document stands above another: what each feature contributes to the difference of their scores, and the smallest change of one
feature after which they would have changed places.

The contributions sum to the difference. They are

- of linear models, weight × difference of the feature;
- of trees, differences of exact Shapley values (`ltr.trees.attribution`), which LightGBM's and SHAP's ``pred_contrib`` are for one document;
- of anything else, Shapley values of the game that turns the lower document into the upper one, feature by feature (baseline Shapley,
  Sundararajan & Najmi 2020): exact of up to `EXACT` features in which they differ, otherwise the mean over random orders and their reverses
  (Mitchell 2022), with its standard error. The lower document is the baseline, so that no third one has a say.

A change is to a value that occurs in the data (a counterfactual of one feature), measured in the feature's standard deviations there. To be
missing is such a value too, where the ranker scores documents that lack it; how far that is from a number, or one category from another, no
number says, and such changes come last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from ltr.data.queries import Queries
from ltr.data.sparse import is_sparse
from ltr.kernels.kernel import Bools, Floats, Floats32, Ints
from ltr.rankers.base import Ranker, require_features_of
from ltr.rankers.features import checked_features

EXACT = 10
"""Features in which two documents may differ for all 2^10 mixtures of them to be scored."""
MOST_VALUES = 512
"""Values of a feature that are tried; of more, so many quantiles."""


@dataclass(frozen=True)
class Reason:
    """What a feature contributes to the difference of two scores.

    Attributes:
        feature: its name.
        above, below: its values, NaN where missing.
        contribution: to score of the upper document less that of the lower one.
        error: standard error of the contribution; 0 where it is exact.
    """

    feature: str
    above: float
    below: float
    contribution: float
    error: float


@dataclass(frozen=True)
class Change:
    """A change of one feature of one document after which the two have changed places.

    Attributes:
        feature: its name; `above`: whether it is the upper document's.
        value, to: what it is, and the nearest value in the data that swaps the two; NaN is missing.
        deviations: the change in standard deviations of the feature; infinite where there is no distance: from and to missing, and between categories.
    """

    feature: str
    above: bool
    value: float
    to: float
    deviations: float


@dataclass(frozen=True)
class WhyAbove:
    """Why one document stands above another.

    Attributes:
        above, below: their rows in the queries.
        scores: of both.
        method: how contributions were found: ``linear``, ``tree Shapley``, a mean of these, ``Shapley, exact`` or ``Shapley, sampled``.
        reasons: of every feature that contributes or differs, the largest contribution first.
        changes: of each document and feature the smallest one that swaps them, the smallest first; none where no single one does.
    """

    above: int
    below: int
    scores: tuple[float, float]
    method: str
    reasons: tuple[Reason, ...]
    changes: tuple[Change, ...]

    @property
    def difference(self) -> float:
        """Score of the upper document less that of the lower one: the sum of the contributions."""
        return self.scores[0] - self.scores[1]


@dataclass(frozen=True, eq=False)
class Tried:
    """What a feature is changed to: its place, the values to try, rising (``float32 [values]``, NaN last), and its standard deviation."""

    feature: int
    values: Floats32
    deviation: float


def why_above(
    model: Ranker, queries: Queries, above: int, below: int, orders: int = 200, seed: int = 1, tried: Sequence[Tried] | None = None
) -> WhyAbove:
    """Why row `above` of some queries has a higher score than row `below`.

    Args:
        model: a fitted ranker.
        queries: with the model's features, which are read by name; changes are to values that occur in them.
        orders: random orders of the features, where contributions are sampled.
        seed: of these.
        tried: `values_to_try` of the model and the queries, for whoever asks of many pairs; found where it is left out.

    Raises:
        ValueError: for a feature that the queries lack, rows that are none, the same, or not in this order by the model's scores; as
            `Ranker.predict`.
    """
    require_features_of(model, queries, "why_above")
    for name, row in (("above", above), ("below", below)):
        if not isinstance(row, int | np.integer) or isinstance(row, bool) or not 0 <= row < queries.n_documents:
            raise ValueError(f"{name}={row!r} is not a row; there are {queries.n_documents}, from 0")
    pair = np.ascontiguousarray(checked_features(queries.features[[above, below]][:, _places(model, queries)], model.names))
    scores = model.predict(pair)
    if not scores[0] > scores[1]:
        raise ValueError(f"row {above} with score {scores[0]:.6g} does not rank above row {below} with {scores[1]:.6g}")
    method, contributions, errors = contributions_of(model, pair, orders, seed)
    differ = _differ(pair)
    shown = [k for k in np.argsort(-np.abs(contributions), kind="stable").tolist() if differ[k] or contributions[k] != 0]
    upper, lower = pair.astype(np.float64).tolist()
    reasons = tuple(Reason(model.names[k], upper[k], lower[k], float(contributions[k]), float(errors[k])) for k in shown)
    tried = values_to_try(model, queries) if tried is None else tried
    return WhyAbove(above, below, (float(scores[0]), float(scores[1])), method, reasons, changes(model, tried, pair))


def contributions_of(model: Ranker, pair: Floats32, orders: int, seed: int) -> tuple[str, Floats, Floats]:
    """How contributions were found, and contributions and standard errors, ``float64 [features]`` each, to the score of the first of two
    documents ``float32 [2, features]`` less that of the second."""
    own = model.attributions(pair)
    if own is not None:
        return model.attributed, own[0, :-1] - own[1, :-1], np.zeros(pair.shape[1])
    players = np.flatnonzero(_differ(pair))
    contributions, errors = np.zeros(pair.shape[1]), np.zeros(pair.shape[1])
    if len(players) <= EXACT:
        contributions[players] = _exact(model, pair, players)
        return "Shapley, exact", contributions, errors
    contributions[players], errors[players] = _sampled(model, pair, players, orders, seed)
    return "Shapley, sampled", contributions, errors


def _differ(pair: Floats32) -> Bools:
    differ: Bools = (pair[0] != pair[1]) & ~(np.isnan(pair[0]) & np.isnan(pair[1]))
    return differ


def _mixed(pair: Floats32, players: Ints, known: Bools) -> Floats32:
    """The lower document with the upper one's features where ``known bool [mixtures, players]``."""
    mixed = np.repeat(pair[1:], len(known), axis=0)
    mixed[:, players] = np.where(known, pair[0, players], pair[1, players])
    return mixed


def _exact(model: Ranker, pair: Floats32, players: Ints) -> Floats:
    """Shapley values ``float64 [players]`` from the scores of all mixtures."""
    n = len(players)
    numbers = np.arange(1 << n)
    known = (numbers[:, None] >> np.arange(n) & 1).astype(bool)
    scores = model.predict(_mixed(pair, players, known))
    sizes = known.sum(axis=1)
    weights = np.array([1 / (n * comb(n - 1, size)) for size in range(n)])
    values = np.empty(n)
    for k in range(n):
        without = numbers[~known[:, k]]
        values[k] = (weights[sizes[without]] * (scores[without | 1 << k] - scores[without])).sum()
    return values


def _sampled(model: Ranker, pair: Floats32, players: Ints, orders: int, seed: int) -> tuple[Floats, Floats]:
    """Means over random orders of what each player adds, and their standard errors, ``float64 [players]``; an order and its reverse are
    one draw."""
    rng = np.random.default_rng([seed, len(players)])
    n, draws = len(players), max(2, orders // 2)
    added = np.empty((draws, n))
    for draw in range(draws):
        order = rng.permutation(n)
        both = [_added(model, pair, players, one) for one in (order, order[::-1])]
        added[draw] = (both[0] + both[1]) / 2
    return added.mean(axis=0), added.std(axis=0, ddof=1) / np.sqrt(draws)


def _added(model: Ranker, pair: Floats32, players: Ints, order: Ints) -> Floats:
    """What each player adds in one order, ``float64 [players]``."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    scores = model.predict(_mixed(pair, players, rank < np.arange(len(order) + 1)[:, None]))
    added = np.empty(len(order))
    added[order] = np.diff(scores)
    return added


def changes(model: Ranker, tried: Sequence[Tried], pair: Floats32) -> tuple[Change, ...]:
    """The smallest change of each feature of the first, or of the second, of two documents ``float32 [2, features]`` after which the second
    has the higher score, the smallest first."""
    scores, categories = model.predict(pair), model.split_by_categories
    found = []
    for one in tried:
        k, values, deviation = one.feature, one.values, one.deviation
        for row, sign in ((0, -1.0), (1, 1.0)):
            changed = np.repeat(pair[row : row + 1], len(values), axis=0)
            changed[:, k] = values
            predicted = model.predict(changed)
            swaps = values[np.isfinite(predicted) & (sign * (predicted - scores[1 - row]) > 0)]
            if len(swaps):
                gaps = np.abs(swaps.astype(np.float64) - float(pair[row, k]))
                nearest = 0 if np.isnan(gaps).all() else int(np.nanargmin(gaps))
                far = np.isfinite(gaps[nearest]) and deviation > 0 and model.names[k] not in categories
                steps = float(gaps[nearest] / deviation) if far else np.inf
                found.append(Change(model.names[k], row == 0, float(pair[row, k]), float(swaps[nearest]), steps))
    return tuple(sorted(found, key=lambda change: change.deviations))


def values_to_try(model: Ranker, queries: Queries) -> tuple[Tried, ...]:
    """Of each of the model's features that varies in these queries the values that occur, of one with more than `MOST_VALUES` so many quantiles;
    to be missing is one of them where it occurs and the ranker scores documents that lack the feature.

    Raises:
        ValueError: for a feature that the queries lack.
    """
    require_features_of(model, queries, "why_above")
    features, places = queries.features, _places(model, queries)
    if is_sparse(features):
        features, places = checked_features(features[:, places], model.names), np.arange(len(places))
    return tuple(_values(features, places, not model.needs_complete))


def _places(model: Ranker, queries: Queries) -> Ints:
    """The columns of the model's features in those of some queries, ``int64 [features]``.

    Raises:
        ValueError: before `fit`.
    """
    if not model.names:
        raise ValueError("this model is not fitted")
    place = {name: k for k, name in enumerate(queries.names)}
    return np.array([place[name] for name in model.names])


def _values(features: Floats32, places: Ints, missing: bool) -> Iterator[Tried]:
    for k, column in enumerate(features[:, place] for place in places.tolist()):
        present = column[np.isfinite(column)]
        values = np.unique(present)
        some_missing = bool(np.isnan(column).any())
        if len(values) + some_missing < 2:
            continue
        if len(values) > MOST_VALUES:
            values = np.unique(np.quantile(present, np.linspace(0, 1, MOST_VALUES), method="inverted_cdf"))
        values = np.append(values, np.float32(np.nan)) if some_missing and missing else values
        yield Tried(k, values, float(present.std(dtype=np.float64)) if len(present) else 0.0)
