"""Measures from many labels of a machine and few of people: what all people's labels would say, with an interval that holds.

A measure that is a sum over documents, Σ w_d · g(label_d) with weights by rank (precision, DCG, and differences of them between two rankings), is
a total of a finite population of documents, of which people judged a random sample. The machine's labels predict that total; the people's
correct it, and by how much they had to is what the interval comes of (prediction-powered inference: Angelopoulos et al. 2023; the λ that
makes the variance least: Angelopoulos, Duchi & Zrnic 2023). The sum is the difference estimator of survey sampling (Cassel, Särndal & Wretman
1976), and the sample is drawn without replacement, so that the interval closes when everything is judged:

    Σ_all w·λf  +  N/n · Σ_sampled w·(g − λf),        variance  N² (1 − n/N) s² / n

The machine's gains f are calibrated first: those of each of its labels are the mean gain of what people judged among them, learned on other parts
of the sample than those that they are held against (cross-fitting: Zrnic & Candès 2024). So λ is near 1 where people judged enough to calibrate
by, and it is drawn towards 1 where few sampled documents matter: fitted to a handful, it can be anything. The package ``ppi_py`` has the means
without calibration and without an end to the population.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ltr.data.arrays import floats_of
from ltr.kernels.kernel import Bools, Floats, Ints
from ltr.metrics.calibration import MOST_KINDS

PARTS = 10
"""Of the sample, for cross-fitting."""
BANDS = 20
"""Parts, of as many documents, that a machine's labels are cut into where they are a scale of more than `MOST_KINDS`."""
FEWEST = 50
"""Sampled documents with a weight without which intervals of skewed gains hold less often than they say."""

FEWEST_SURPRISES = 5
"""Sampled documents that a spread comes of, effectively, without which intervals hold less often than they say: where people and the machine nearly
always agree, what is not seen of the rest is most of it."""
NEEDED = 4
"""Judged documents that leave something to tell an interval from: a mean and two slopes are fitted to them."""
_AS_MANY = 10
"""Sampled documents with a weight whose word on λ weighs as much as that it is 1. Where it was not drawn there, intervals of 8 documents held in .88
of 250 draws for .94, and of 4 in .77 for .86 (differences of DCG@10 of 1,000 pairs, .95 asked for)."""
BY_CHANCE = 1e-4
"""What is less likely than this of a random sample is taken for another kind of sample."""
_NOTHING = 1e-9
"""What rounding leaves, of a measure or of 1."""


@dataclass(frozen=True)
class Corrected:
    """A measure as people's labels would have it.

    Attributes:
        value, interval: from people's and machine's labels.
        people, people_interval: from people's labels alone, where the weights of all documents are known.
        machine: from the machine's labels alone, as they are.
        tuned: λ, how much the machine's labels count, from 0, not at all, to 1, wholly.
        documents, sampled: with a weight other than 0, and judged by people among them.
        judged: by people, with a weight or not.
        level: of the intervals.
        spread: s of w·(g − λf) over documents, from which `needed` is computed.
        population: all documents that the sample is of.
        surprises: how many sampled documents the spread comes of: as if they had equal shares of it, (Σr²)² / Σr⁴ of residuals r (Kish 1965), and
            no more than those with a weight of which people say something else than of most with the machine's label.
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
    surprises: float
    judged: int

    @property
    def trusted(self) -> bool:
        """Whether enough documents with a weight were sampled for the interval to hold, and enough of them say what the machine does not."""
        return self.enough and (self.complete or self.random)

    @property
    def enough(self) -> bool:
        """Whether so many documents were sampled that an interval of a random sample holds."""
        return self.complete or (self.sampled >= FEWEST and self.surprises >= FEWEST_SURPRISES)

    @property
    def complete(self) -> bool:
        """Whether people judged all documents with a weight: their labels are the measure then."""
        return self.sampled == self.documents

    @property
    def expected(self) -> float:
        """How many documents with a weight a random sample of this size has on average."""
        return self.documents * self.judged / self.population

    @property
    def random(self) -> bool:
        """Whether a random sample may well have so many documents with a weight, or so few. Documents that people judged because rankings had
        them high are no random sample, and no interval holds."""
        return self.chance > BY_CHANCE

    @property
    def chance(self) -> float:
        """How likely a random sample has so many documents with a weight or more, or so many or fewer, whichever is less likely."""
        from scipy import stats

        drawn = stats.hypergeom(self.population, self.documents, self.judged)
        return float(min(drawn.cdf(self.sampled), drawn.sf(self.sampled - 1)))

    @property
    def foretold(self) -> bool:
        """Whether people's labels follow from the machine's on the whole sample, which makes an interval of no width."""
        return self.spread * self.population < _NOTHING

    def needed(self, half_width: float) -> int:
        """How many of the population's documents people would have to judge for an interval that reaches so far to either side.

        Raises:
            ValueError: unless the width is above 0.
        """
        if not half_width > 0:
            raise ValueError(f"needed: half_width={half_width} must be above 0")
        from scipy import stats

        squared = (half_width / float(stats.norm.ppf(0.5 + self.level / 2))) ** 2
        n, s = self.population, self.spread**2
        return int(np.ceil(n * n * s / (squared + n * s))) if s else 0

    def needed_to_settle(self, power: float = 0.8) -> int:
        """How many it takes for the interval to leave out 0, with probability `power`, if the value is what it seems.

        Raises:
            ValueError: for a value of 0, and a power that is not between 0 and 1.
        """
        if not 0 < power < 1:
            raise ValueError(f"needed_to_settle: power={power}; must be between 0 and 1")
        from scipy import stats

        certain, likely = stats.norm.ppf([0.5 + self.level / 2, power])
        return self.needed(abs(self.value) * certain / (certain + likely)) if certain + likely > 0 else NEEDED


def corrected(
    weights: ArrayLike, people: ArrayLike, machine: ArrayLike, labels: ArrayLike | None = None, level: float = 0.95, seed: int = 1
) -> Corrected:
    """A measure Σ weight · gain, corrected from a random sample of people's labels.

    Args:
        weights: ``[documents]``, of every document that could have been sampled, 0 for one that the measure does not see.
        people: gains of people's labels ``[documents]``, NaN where they did not judge; a simple random sample of the documents, or all that
            have a weight, of which the measure is then known.
        machine: gains of the machine's labels ``[documents]``, of every document.
        labels: the machine's labels ``[documents]``, by which its gains are calibrated; the gains themselves where left out. More than
            `MOST_KINDS` different ones are taken for a scale, and go by its twentieths.
        level: of the intervals.
        seed: of the parts for cross-fitting.

    Raises:
        ValueError: for shapes that differ, a gain that is infinite, a machine's that is missing, fewer than four sampled documents, or a
            level that is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level: {level}; must be between 0 and 1")
    w, g, f = (floats_of(name, array) for name, array in (("weights", weights), ("people", people), ("machine", machine)))
    said = f if labels is None else floats_of("labels", labels)
    kinds = _kinds(said)
    if not (w.ndim == 1 and w.shape == g.shape == f.shape == kinds.shape):
        raise ValueError(
            f"corrected: weights, people and machine of shapes {w.shape}, {g.shape} and {f.shape}; all are [documents]"
        )
    if not (np.isfinite(f).all() and np.isfinite(w).all()):
        raise ValueError("corrected: a document has no gain of the machine's, or no weight")
    if np.isnan(said).any():
        raise ValueError("corrected: a document has no label of the machine's")
    if np.isinf(g).any():
        raise ValueError("corrected: a gain of people's is infinite")
    judged = ~np.isnan(g)
    n, population = int(judged.sum()), len(w)
    own, matters = w[judged], w != 0
    if n and judged[matters].all():
        known, m = _sum_without_roundings(w[matters] * g[matters]), int(matters.sum())
        return Corrected(known, (known, known), known, (known, known), float(w @ f), 1.0, m, m, level, 0.0, population, 0.0, n)
    if n < NEEDED:
        raise ValueError(f"corrected: people judged {n} document{'' if n == 1 else 's'}; an interval needs {NEEDED}")
    everywhere, held_out = _calibrated(g, kinds, judged, seed)
    tuned = _tuned(own * g[judged], own * held_out, own)
    rest = _total(own * (g[judged] - tuned * held_out), own, float(w.sum()), population, level)
    alone = _total(own * g[judged], own, float(w.sum()), population, level)
    value = float(tuned * (w @ everywhere) + rest.value)
    return Corrected(
        value, (value - rest.reach, value + rest.reach), alone.value, (alone.value - alone.reach, alone.value + alone.reach),
        float(w @ f), tuned, int(matters.sum()), int((matters & judged).sum()), level, rest.spread, population,
        min(rest.effective, _unforeseen(g[judged & matters], kinds[judged & matters])), n,
    )  # fmt: skip


def _kinds(labels: Floats) -> Ints:
    """Which label each document has, ``int64 [documents]``; which of `BANDS` parts of as many documents where they are a scale."""
    levels, kinds = np.unique(labels, return_inverse=True)
    if len(levels) <= MOST_KINDS:
        return kinds
    band = np.searchsorted(np.quantile(labels, np.arange(1, BANDS) / BANDS), labels, side="left")
    return np.unique(band, return_inverse=True)[1]


def _sum_without_roundings(values: Floats) -> float:
    """Their sum; 0 where they cancel but for roundings."""
    total = math.fsum(values)
    return total if abs(total) > _NOTHING * float(np.abs(values).sum()) else 0.0


def _unforeseen(gains: Floats, kinds: Ints) -> int:
    """How many have not the commonest gain of their kind."""
    several = np.unique(np.column_stack((kinds, gains)), axis=0, return_counts=True)
    commonest = [several[1][several[0][:, 0] == kind].max() for kind in np.unique(kinds)]
    return len(gains) - int(np.sum(commonest))


def _tuned(sampled: Floats, predicted: Floats, weights: Floats) -> float:
    """λ with which predictions leave the least variance beside the weights, drawn towards 1 and from 0 to 1."""
    beside = np.column_stack((_centred(predicted), _centred(weights)))
    slope = float((np.linalg.pinv(beside.T @ beside) @ beside.T @ (sampled - sampled.mean()))[0])
    m = np.count_nonzero(weights)
    return min(1.0, max(0.0, (m * slope + _AS_MANY) / (m + _AS_MANY)))


def _centred(values: Floats) -> Floats:
    """Less their mean; nothing where they are one number, whose mean misses it by a rounding."""
    found: Floats = values - values.mean()
    return np.where(np.abs(found).max() > _NOTHING * np.abs(values).max(), found, 0.0)


@dataclass(frozen=True)
class _Total:
    value: float
    reach: float
    spread: float
    effective: float


def _total(sampled: Floats, weights: Floats, total: float, population: int, level: float) -> _Total:
    """A total from a simple random sample without replacement and from weights whose total is known (survey sampling's regression estimator).
    Residuals are those of a document left out of the fit, and Student's degrees of freedom those of the documents with a weight, so that few
    of them do not seem to fit too well.

    Args:
        sampled, weights: ``float64 [sampled]``; `total`: of the weights over the population.
    """
    n = len(sampled)
    mean, centred = sampled.mean(), _centred(weights)
    square = float(centred @ centred)
    slope = float(centred @ sampled) / square if square else 0.0
    kept = 1 - 1 / n - (centred**2 / square if square else 0.0)
    alone = kept < _NOTHING  # without such a document there is no slope
    left = np.where(alone, (sampled - mean) / (1 - 1 / n), (sampled - mean - slope * centred) / np.where(alone, 1, kept))
    s = float(np.sqrt((left**2).sum() / (n - 1)))
    from scipy import stats

    degrees = max(min(int(np.count_nonzero(weights)), n - 1) - 1, 1)
    reach = float(stats.t.ppf(0.5 + level / 2, degrees)) * population * s * np.sqrt(max(1 - n / population, 0) / n)
    fourth = float((left**4).sum())
    effective = float((left**2).sum()) ** 2 / fourth if fourth else 0.0
    return _Total(float(total * slope + population * (mean - slope * weights.mean())), float(reach), s, effective)


def _calibrated(g: Floats, kinds: Ints, judged: Bools, seed: int) -> tuple[Floats, Floats]:
    """The machine's gains as people's, of every document and of the judged ones: by all of the sample's parts on average, and for those by
    the parts that they are not in. A label of the machine's that people judged nowhere there lies between its neighbours, or is as the last one
    that they judged: its own gain may be on quite another scale."""
    n = int(judged.sum())
    part = np.random.default_rng(seed).permutation(n) % min(PARTS, n)
    of_judged, count = kinds[judged], int(kinds.max()) + 1
    sums, sizes = (np.bincount(of_judged, values, count) for values in (g[judged], np.ones(n)))
    everywhere, held_out = np.zeros(len(g)), np.empty(n)
    for k in range(min(PARTS, n)):
        own = part == k
        left = sizes - np.bincount(of_judged[own], minlength=count)
        rest = sums - np.bincount(of_judged[own], g[judged][own], count)
        there = np.flatnonzero(left)
        means = np.interp(np.arange(count), there, rest[there] / left[there])
        held_out[own] = means[of_judged[own]]
        everywhere += means[kinds] * own.mean()
    everywhere[judged] = held_out  # so that nothing is left to predict where everything is judged
    return everywhere, held_out
