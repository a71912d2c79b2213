"""Measures from many labels of a machine and few of people: what all people's labels would say, with an interval that holds.

A measure that is a sum over documents, Σ w_d · g(label_d) with weights by rank (precision, DCG, and differences of them between two rankings), is
a total of a finite population of documents, of which people judged a random sample. The machine's labels predict that total; the people's
correct it, and by how much they had to is what the interval comes of (prediction-powered inference: Angelopoulos et al. 2023; the λ that
makes the variance least: Angelopoulos, Duchi & Zrnic 2023). The sum is the difference estimator of survey sampling (Cassel, Särndal & Wretman
1976), and the sample is drawn without replacement, so that the interval closes when everything is judged:

    Σ_all w·λf  +  N/n · Σ_sampled w·(g − λf),        variance  N² (1 − n/N) s² / n

The machine's gains f are calibrated first: those of each of its labels are the mean gain of what people judged among them, learned on other parts
of the sample than those that they are held against (cross-fitting: Zrnic & Candès 2024). The package ``ppi_py`` has the means without
calibration and without an end to the population.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ltr.kernels.kernel import Bools, Floats, Ints

PARTS = 10
"""Of the sample, for cross-fitting."""
FEWEST = 50
"""Sampled documents with a weight without which intervals of skewed gains hold less often than they say."""

NEEDED = 4
"""Judged documents that leave something to tell an interval from: a mean and two slopes are fitted to them."""
_NOTHING = 1e-9
"""Of a measure: what rounding leaves."""


@dataclass(frozen=True)
class Corrected:
    """A measure as people's labels would have it.

    Attributes:
        value, interval: from people's and machine's labels.
        people, people_interval: from people's labels alone, where the weights of all documents are known.
        machine: from the machine's labels alone, as they are.
        tuned: λ, how much the machine's labels count: 0 not at all, 1 wholly.
        documents, sampled: with a weight other than 0, and judged by people among them.
        level: of the intervals.
        spread: s of w·(g − λf) over documents, from which `needed` is computed.
        population: all documents that the sample is of.
    """

    value: float
    interval: tuple[float, float]
    people: float
    people_interval: tuple[float, float]
    machine: float
    tuned: float
    documents: int
    sampled: int
    level: float
    spread: float
    population: int

    @property
    def trusted(self) -> bool:
        """Whether enough documents with a weight were sampled for the interval to hold."""
        return self.sampled >= min(FEWEST, self.documents)

    @property
    def foretold(self) -> bool:
        """Whether the machine's labels left nothing to correct on the sample, which makes an interval of no width."""
        return self.spread * self.population < _NOTHING

    def needed(self, half_width: float) -> int:
        """How many of the population's documents people would have to judge for an interval that reaches so far to either side; for a
        difference, its own size settles its sign.

        Raises:
            ValueError: unless the width is above 0.
        """
        if not half_width > 0:
            raise ValueError(f"needed: half_width={half_width} is not above 0")
        from scipy import stats

        squared = (half_width / float(stats.norm.ppf(0.5 + self.level / 2))) ** 2
        n, s = self.population, self.spread**2
        return int(np.ceil(n * n * s / (squared + n * s))) if s else 0


def corrected(
    weights: ArrayLike, people: ArrayLike, machine: ArrayLike, labels: ArrayLike | None = None, level: float = 0.95, seed: int = 1
) -> Corrected:
    """A measure Σ weight · gain, corrected from a random sample of people's labels.

    Args:
        weights: ``[documents]``, of every document that could have been sampled, 0 for one that the measure does not see.
        people: gains of people's labels ``[documents]``, NaN where they did not judge; a simple random sample of the documents.
        machine: gains of the machine's labels ``[documents]``, of every document.
        labels: the machine's labels ``[documents]``, by which its gains are calibrated; the gains themselves where left out.
        level: of the intervals.
        seed: of the parts for cross-fitting.

    Raises:
        ValueError: for shapes that differ, a gain that is infinite, a machine's that is missing, fewer than four sampled documents, or a
            level that is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level: {level}; between 0 and 1")
    w, g, f = (np.asarray(array, np.float64) for array in (weights, people, machine))
    kinds = np.unique(f if labels is None else np.asarray(labels, np.float64), return_inverse=True)[1]
    if not (w.ndim == 1 and w.shape == g.shape == f.shape == kinds.shape):
        raise ValueError(
            f"corrected: weights, people and machine of shapes {w.shape}, {g.shape} and {f.shape}; all are [documents]"
        )
    if not (np.isfinite(f).all() and np.isfinite(w).all()):
        raise ValueError("corrected: a document has no gain of the machine's, or no weight")
    if np.isinf(g).any():
        raise ValueError("corrected: a gain of people's is infinite")
    judged = ~np.isnan(g)
    n, population = int(judged.sum()), len(w)
    if n < NEEDED:
        raise ValueError(f"corrected: people judged {n} document{'' if n == 1 else 's'}; an interval needs {NEEDED}")
    everywhere, held_out = _calibrated(g, f, kinds, judged, seed)
    own, matters = w[judged], w != 0
    fitted = _total(own * g[judged], np.column_stack((own * held_out, own)), np.array([w @ everywhere, w.sum()]), population, level)
    alone = _total(own * g[judged], own[:, None], np.array([w.sum()]), population, level)
    return Corrected(
        fitted.value, fitted.interval, alone.value, alone.interval, float(w @ f), float(fitted.slopes[0]),
        int(matters.sum()), int((matters & judged).sum()), level, fitted.spread, population,
    )  # fmt: skip


@dataclass(frozen=True)
class _Total:
    value: float
    interval: tuple[float, float]
    slopes: Floats
    spread: float


def _total(sampled: Floats, predictors: Floats, totals: Floats, population: int, level: float) -> _Total:
    """A total from a simple random sample without replacement and from predictors whose totals are known (survey sampling's regression
    estimator): each counts as much as leaves the least variance. Residuals are those of a document left out of the fit, so that few documents
    with a weight do not seem to fit too well.

    Args:
        sampled: ``float64 [sampled]``.
        predictors: of the same documents, ``float64 [sampled, predictors]``; `totals`: their sums over the population.
    """
    n = len(sampled)
    centred = predictors - predictors.mean(axis=0)
    inverse = np.linalg.pinv(centred.T @ centred)
    slopes = inverse @ centred.T @ (sampled - sampled.mean())
    left = sampled - sampled.mean() - centred @ slopes
    leverage = 1 / n + ((centred @ inverse) * centred).sum(axis=1)
    s = float(np.sqrt(((left / np.maximum(1 - leverage, 1 / n)) ** 2).sum() / (n - 1)))
    value = float(totals @ slopes + population * (sampled.mean() - predictors.mean(axis=0) @ slopes))
    from scipy import stats

    reach = (
        float(stats.t.ppf(0.5 + level / 2, n - 1 - predictors.shape[1])) * population * s * np.sqrt(max(1 - n / population, 0) / n)
    )
    return _Total(value, (value - reach, value + reach), slopes, s)


def _calibrated(g: Floats, f: Floats, kinds: Ints, judged: Bools, seed: int) -> tuple[Floats, Floats]:
    """The machine's gains as people's, of every document and of the judged ones: by all of the sample's parts on average, and for those by
    the parts that they are not in."""
    n = int(judged.sum())
    part = np.random.default_rng(seed).permutation(n) % min(PARTS, n)
    of_judged, count = kinds[judged], int(kinds.max()) + 1
    sums, sizes = (np.bincount(of_judged, values, count) for values in (g[judged], np.ones(n)))
    prior = np.bincount(kinds, f, count) / np.bincount(kinds, minlength=count)
    everywhere, held_out = np.zeros(len(g)), np.empty(n)
    for k in range(min(PARTS, n)):
        own = part == k
        left = sizes - np.bincount(of_judged[own], minlength=count)
        rest = sums - np.bincount(of_judged[own], g[judged][own], count)
        means = np.where(left > 0, rest / np.maximum(left, 1), prior)
        held_out[own] = means[of_judged[own]]
        everywhere += means[kinds] * own.mean()
    everywhere[judged] = held_out  # so that nothing is left to predict where everything is judged
    return everywhere, held_out
