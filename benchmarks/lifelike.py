"""Ranking data shaped like those of a search engine, for measuring: nothing about them is friendly.

Query lengths are log-normal from 1 to 1,000; shares of labels 0–4 are .52, .32, .13, .02 and .01. A third of the features' values are zero or
more; there are heavy tails, counts, ids, features of the query alone, missing values, copies, near-copies and constants.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SHARES = (0.52, 0.32, 0.13, 0.02, 0.01)
"""Of labels 0 to 4."""
_HIDDEN = 12
"""Unseen properties of a document that features and labels depend on."""


@dataclass(frozen=True)
class Lifelike:
    """Raw arrays, as a user has them: ``features float32 [documents, features]``, ``labels float64 [documents]``, ``offsets [queries + 1]``."""

    features: NDArray[np.float32]
    labels: NDArray[np.float64]
    offsets: NDArray[np.int64]


def lifelike(
    n_queries: int, n_features: int = 136, median: int = 60, seed: int = 1, zeros: float = 0.6, noise: float = 1.0
) -> Lifelike:
    """Draws a data set.

    Args:
        median: documents of the median query.
        zeros: least share of zeros in a sparse feature; they have up to .95.
        noise: of labels, in standard deviations of what decides them.
    """
    rng = np.random.default_rng([seed, n_queries, n_features])
    lengths = np.clip(np.rint(rng.lognormal(np.log(median), 0.9, n_queries)), 1, 1000).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n = int(offsets[-1])
    query = np.repeat(np.arange(n_queries), lengths)
    hidden = rng.standard_normal((n, _HIDDEN)).astype(np.float32)
    of_query = rng.standard_normal((n_queries, 4)).astype(np.float32)[query]
    value = _value(np.random.default_rng(seed), hidden, of_query)
    seen = value + noise * rng.standard_normal(n)
    labels = np.searchsorted(np.quantile(seen, np.cumsum(SHARES)[:-1]), seen).astype(np.float64)
    features = np.empty((n, n_features), np.float32)
    world = np.random.default_rng([seed, 2])
    for f in range(n_features):
        features[:, f] = _column(f, world, rng, hidden, of_query, features, zeros)
    return Lifelike(features, labels, offsets)


def _value(rng: np.random.Generator, hidden: NDArray[np.float32], of_query: NDArray[np.float32]) -> NDArray[np.float64]:
    """What decides the labels, with standard deviation 1: sums, products, thresholds, and what matters only to some queries."""
    value = np.zeros(len(hidden))
    for _ in range(12):
        i, j = rng.choice(_HIDDEN, 2, replace=False)
        weight = rng.standard_normal()
        part = (
            hidden[:, i],
            hidden[:, i] * hidden[:, j],
            np.maximum(hidden[:, i] - 0.5, 0),
            hidden[:, i] * (of_query[:, j % 4] > 0),
        )
        value += weight * part[rng.integers(4)]
    return value / value.std()


def _column(
    f: int,
    world: np.random.Generator,
    rng: np.random.Generator,
    hidden: NDArray[np.float32],
    of_query: NDArray[np.float32],
    before: NDArray[np.float32],
    zeros: float,
) -> NDArray[np.float64]:
    """One feature; its kind follows from its number."""
    n = len(hidden)
    about = hidden @ (world.standard_normal(_HIDDEN) * (world.random(_HIDDEN) < 0.25)) + world.uniform(
        0.3, 2
    ) * rng.standard_normal(n)
    kind = f % 10
    if kind in (0, 1, 2):
        empty = rng.random(n) < world.uniform(zeros, 0.95)
        return np.where(empty, 0.0, np.exp(about))
    if kind == 3:
        return rng.poisson(np.exp(np.clip(about, -3, 6))).astype(float)
    if kind == 4:
        return np.where(rng.random(n) < 0.2, np.nan, 50 + 20 * about)
    if kind == 5 and f >= 10:
        copied = before[:, int(world.integers(f - 5))].astype(float)
        return copied if f % 20 == 5 else copied * (1 + 1e-3 * rng.standard_normal(n))
    if kind == 6 and f % 30 == 6:
        return np.full(n, 3.0) if f % 60 == 6 else rng.integers(0, 1 << 22, n).astype(float)
    if kind == 7:
        return of_query[:, f // 10 % 4] * 10.0
    return np.asarray(np.exp(2 * about) if kind == 8 else 1 / (1 + np.exp(-about)), float)
