"""Is one ranker better than another? Tests on paired per-query differences.

Donmez 2009 section 7.2 and Svore 2011 section 6: the mean difference over its standard error, at 95 % and 90 % confidence. They hold it
against 1.96 and 1.645, which is right for very many queries only: at n = 10 one in eleven equal rankers would be told apart. Here the
bounds are Student's, so that a mark says what its p-value says. Beside it a randomisation test (Fisher's sign flips; Smucker et al. 2007),
the bootstrap, Holm's correction for several comparisons, and non-inferiority ("tier one unharmed"), whose bounds hold for skewed differences
of which many are 0 too, as far as the queries show it: of a loss that no query showed they know nothing. Differences that are all one number
have no spread to hold their mean against: all of these but the randomisation test, whose p-value is small then however small the number, say what
their number tells (`p_of_equals`, `interval_of_equals`). The same seed gives the same p.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ltr.kernels.kernel import Floats


@dataclass(frozen=True)
class Comparison:
    """Challenger less baseline over the queries where both are defined."""

    difference: float
    standard_error: float
    n_queries: int
    z: float
    """difference / standard error; 0 where both are 0."""
    p_value: float
    """Two-sided, Student's t with n − 1 degrees of freedom; see `paired_t`."""

    @property
    def level(self) -> int:
        """95 or 90: the confidence at which the difference is not zero; 0 for neither."""
        return 95 if self.p_value < 0.05 else 90 if self.p_value < 0.1 else 0


_ROUNDING = 1e-12
"""Of a value: a sum over a ranking is rounded once a document."""
_AT_ONCE = 1 << 20
"""Signs that are held in memory, in three arrays of so many numbers."""
_NO_SKEW = 1e-6
"""A skewness that corrects nothing, and that is not divided by."""


def _most(challenger: ArrayLike, baseline: ArrayLike, lowest: float) -> float:
    """How far two values of a query may lie apart where that was not seen: from the lowest that there can be to 1, or to the largest value that
    either has, of measures such as `errors` and `dcg` that go beyond 1."""
    largest = (float(np.nanmax(np.abs(np.asarray(side, np.float64)), initial=0.0)) for side in (challenger, baseline))
    return max(1.0, *largest) - lowest


def differences(challenger: ArrayLike, baseline: ArrayLike) -> Floats:
    """Paired differences ``[queries]``; a query where either is NaN (undefined) is left out, and what rounding leaves of equal values is 0.

    Raises:
        ValueError: for arrays of different length, or fewer than two queries in common.
    """
    a, b = np.asarray(challenger, np.float64), np.asarray(baseline, np.float64)
    if a.shape != b.shape:
        raise ValueError(f"cannot pair {len(a)} queries with {len(b)}")
    paired = np.where(np.abs(a - b) <= _ROUNDING * np.abs(a), 0.0, a - b)
    paired = paired[~np.isnan(paired)]
    if len(paired) < 2:
        raise ValueError(f"a paired test needs two queries where both are defined; there are {len(paired)}")
    return paired


def student_quantile(p: float, degrees: float) -> float:
    """What Student's t with so many degrees of freedom stays below with probability `p`. `scipy.stats` says the same, by this function, and
    takes half a second to import."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, p))


def _beyond(t: float, degrees: float) -> float:
    """The probability that Student's t is above `t`."""
    from scipy.special import stdtr

    return float(stdtr(degrees, -t))


def paired_t(challenger: ArrayLike, baseline: ArrayLike, lowest: float = 0.0) -> Comparison:
    """Paired t-test of per-query values ``[queries]``; where all differences are one number other than 0, but for rounding, the p-value is
    `p_of_equals`.

    Args:
        lowest: the lowest value that there can be (`ltr.metrics.measure.lowest_of`).
    """
    paired = differences(challenger, baseline)
    n, mean = len(paired), float(paired.mean())
    if not paired.any():
        return Comparison(0.0, 0.0, n, 0.0, 1.0)
    a, b = (np.abs(np.asarray(side, np.float64)) for side in (challenger, baseline))
    noise = _ROUNDING * (a + b)[~np.isnan(a + b)]
    if (np.abs(paired - mean) <= noise).all() and ((paired > 0).all() or (paired < 0).all()):
        return Comparison(mean, 0.0, n, float(np.copysign(np.inf, mean)), p_of_equals(mean, n, _most(challenger, baseline, lowest)))
    error = float(paired.std(ddof=1) / np.sqrt(n))
    return Comparison(mean, error, n, mean / error, 2 * _beyond(abs(mean / error), n - 1))


def p_of_equals(value: float, n: float, most: float = 1.0) -> float:
    """Two-sided p-value that the mean is 0, where all of n values are one number, as `interval_of_equals` is of a level. Of wins alone, each 1,
    it is that of the sign test."""
    return min(1.0, 2 * _p_below_of_equals(abs(value), n, 0.0, most))


def interval_of_equals(value: float, n: float, level: float, most: float = 1.0, signed: bool = True) -> tuple[float, float]:
    """Of the mean, where all of n values are one number: a spread of 0 would be sure of it. The share of values that were not seen is as large
    as n draws may miss (Clopper and Pearson 1934), and they may lie as far from 0 as `most`, or the value itself, to either side; above it
    alone unless `signed`."""
    low, high = (sign * _bound_of_equals(sign * value, n, 0.5 + level / 2, most) for sign in (1, -1))
    return low if signed else float((0.5 - level / 2) ** (1 / n) * value), high


def _bound_of_equals(value: float, n: float, level: float, most: float) -> float:
    """What the mean is not below, at one-sided confidence `level`, where n values are all this one: with the share that they may have, at least,
    and the others as low as can be."""
    seen = (1 - level) ** (1 / n)
    return float(seen * value - (1 - seen) * max(most, abs(value)))


def _p_below_of_equals(value: float, n: float, edge: float, most: float) -> float:
    """How likely n values are all this one where their mean is `edge` or less, at most."""
    if value <= edge:
        return 1.0
    lowest = max(most, abs(value))
    return float(((lowest + edge) / (lowest + value)) ** n) if edge > -lowest else 0.0


def randomisation(challenger: ArrayLike, baseline: ArrayLike, draws: int = 10_000, seed: int = 1) -> float:
    """Two-sided p-value: the share of random sign flips whose mean is at least as far from 0, the observed signs included."""
    paired = differences(challenger, baseline)
    observed = abs(paired.sum())
    rng = np.random.default_rng(seed)
    extreme = 0
    together = min(max(_AT_ONCE // len(paired), 1), 1000)  # the numbers drawn are the same, whatever it is
    for start in range(0, draws, together):
        signs = rng.choice((-1.0, 1.0), (min(together, draws - start), len(paired)))
        extreme += int((np.abs((signs * paired).sum(axis=1)) >= observed - 1e-12 * np.abs(paired).sum()).sum())
    return (extreme + 1) / (draws + 1)


def bootstrap(
    challenger: ArrayLike, baseline: ArrayLike, level: float = 0.95, draws: int = 10_000, seed: int = 1, lowest: float = 0.0
) -> tuple[float, float]:
    """Expanded percentile interval of the mean difference (Hesterberg 2015, section 5.3): the percentiles lie so far out that with normal
    differences it is as wide as Student's. Plain percentiles cover 85 % of 95 with five queries, 93 % with twenty. Each end is Student's where
    that lies farther out: of eight queries with heavy tails the expanded percentiles alone cover 91 to 92 %. Of fewer than five, whose draws are never
    so far out, it is Student's itself.
    """
    from scipy.special import ndtr

    tested = paired_t(challenger, baseline)
    paired = differences(challenger, baseline)
    n, rng = len(paired), np.random.default_rng(seed)
    if tested.standard_error == 0:
        return interval_of_equals(tested.difference, n, level, _most(challenger, baseline, lowest))
    t = student_quantile((1 + level) / 2, n - 1)
    tail = ndtr(-np.sqrt(n / (n - 1)) * t)
    below, above = tested.difference - t * tested.standard_error, tested.difference + t * tested.standard_error
    if tail < float(n) ** -n:
        return below, above
    means = np.array([paired[rng.integers(0, n, n)].mean() for _ in range(draws)])
    low, high = np.quantile(means, [tail, 1 - tail])
    return min(float(low), below), max(float(high), above)


def holm(p_values: Sequence[float]) -> Floats:
    """Holm's (1979) step-down adjusted p-values ``float64 [tests]``, in the order given."""
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


@dataclass(frozen=True)
class NonInferiority:
    """Whether the challenger loses no more than `margin`, at one-sided confidence `level`."""

    holds: bool
    difference: float
    lower_bound: float
    margin: float
    level: float
    p_value: float
    """Of a loss of `margin` or more; `holds` where it is below 1 − level. Where no query differs and the margin is 0, nothing is lost: 0."""


def non_inferior(
    challenger: ArrayLike, baseline: ArrayLike, margin: float, level: float = 0.95, lowest: float = 0.0
) -> NonInferiority:
    """One-sided: the lower confidence bound of the mean difference lies above −margin. The bound is Student's, or Student's corrected for
    skewness where that is lower; where few queries differ it tells no more than how many may.

    Args:
        lowest: the lowest value that there can be (`ltr.metrics.measure.lowest_of`).

    Raises:
        ValueError: for a negative margin or a level outside (0, 1).
    """
    _require_rule(margin, level)
    paired = differences(challenger, baseline)
    most = _most(challenger, baseline, lowest)
    lower = _lower_bound(paired, level, most)
    if margin == 0 and not paired.any():
        return NonInferiority(True, 0.0, lower, margin, level, 0.0)
    return NonInferiority(lower > -margin, float(paired.mean()), lower, margin, level, _p_of_loss(paired, margin, most))


def _require_rule(margin: float, level: float) -> None:
    """Raises ValueError for a negative margin or a level outside (0, 1)."""
    if not 0 <= margin < np.inf or not 0 < level < 1:
        raise ValueError(f"margin {margin} must not be negative and level {level} lie in (0, 1)")


def enough_differ(paired: Floats) -> bool:
    """Whether Student's t, corrected for skewness, may be trusted: of 30 differences other than 0, or 20 that are half of all. Of fewer it is
    wrong several times as often as it says (where one query in ten loses .4 and the mean is a loss of the margin, .05: of 8 queries in
    43 of 100 cases for 5, of 15 in 21), and where none differs it would be sure of everything. Of 20 queries whose losses are log-normal it is
    still wrong in 10 of 100 cases where it says 5. Where one query in twenty loses .5 and the others gain a little, each another, few samples
    show it: of 20 queries it is wrong in 35 of 100, of 30 in 22, of 50 in 8."""
    differ = np.count_nonzero(paired)
    return bool(differ >= 30 or differ >= max(20, len(paired) / 2))


def _largest_share(paired: Floats, level: float, most: float) -> float:
    """How much the mean may be at most, either way, as far as the number of queries that differ tells (Clopper and Pearson 1934), each by `most`
    or the largest difference that there is."""
    from scipy.special import betaincinv

    n, differ = len(paired), int(np.count_nonzero(paired))
    share = betaincinv(differ + 1, n - differ, level) if differ < n else 1.0
    return float(share * max(most, np.abs(paired).max()))


def _deviation(paired: Floats) -> float:
    """Standard deviation; 0 of equal values, whose mean may miss them by a rounding."""
    found = float(paired.std(ddof=1))
    return found if found > _ROUNDING * np.abs(paired).max() else 0.0


def _skewness(paired: Floats, deviation: float) -> float:
    n = len(paired)
    return float(((paired - paired.mean()) ** 3).sum() * n / ((n - 1) * (n - 2)) / deviation**3)


def _lower_bound(paired: Floats, level: float, most: float) -> float:
    """One-sided bound of the mean: Student's, or that by Hall's transformation for skewed values (Hall 1992) where it is lower. The skewness of a sample
    whose tails are heavy is mostly chance, and by Hall's alone p-values of .002 came three times as often."""
    if not enough_differ(paired):
        return -_largest_share(paired, level, most)
    n, mean, deviation = len(paired), float(paired.mean()), _deviation(paired)
    if deviation == 0:
        return _bound_of_equals(mean, n, level, most)
    t, g = student_quantile(level, n - 1) / np.sqrt(n), _skewness(paired, deviation)
    corrected = 3 / g * (np.cbrt(1 + g * (t - g / (6 * n))) - 1) if abs(g) > _NO_SKEW else t
    return float(mean - deviation * max(corrected, t))


def _p_of_loss(paired: Floats, margin: float, most: float) -> float:
    """p-value of a mean loss of `margin` or more, as `_lower_bound` is of a level."""
    if not enough_differ(paired):
        from scipy.special import bdtr

        share = min(margin / max(most, np.abs(paired).max()), 1.0)
        return float(bdtr(int(np.count_nonzero(paired)), len(paired), share))
    n, deviation = len(paired), _deviation(paired)
    if deviation == 0:
        return _p_below_of_equals(float(paired.mean()), n, -margin, most)
    s, g = (float(paired.mean()) + margin) / deviation, _skewness(paired, deviation)
    corrected = s + g * s**2 / 3 + g**2 * s**3 / 27 + g / (6 * n)
    return _beyond(float(np.sqrt(n) * min(corrected, s)), n - 1)


@dataclass(frozen=True)
class Tier:
    """How a challenger compares with a baseline on one tier; both bounds are one-sided, at the confidence level."""

    difference: float
    lower_bound: float
    upper_bound: float
    margin: float
    verdict: str
    """``better``, ``worse``, ``equal`` (within the margin, either way), ``not worse`` (than by the margin), or ``open``."""


def lexicographic(
    challenger: Sequence[ArrayLike],
    baseline: Sequence[ArrayLike],
    margins: Sequence[float],
    level: float = 0.95,
    lowest: Sequence[float] | None = None,
) -> tuple[list[Tier], str]:
    """The graded comparison of two models (S section 1), tier by tier, with margins in place of ties, which real means never have.

    A tier within whose margin the two are equal, or the challenger is not worse, leaves the decision to the next one.

    Args:
        challenger, baseline: per-query values of each tier, the most important first.
        margins: of each tier; 0 for the last one leaves no room for equality there.
        lowest: the lowest value that there can be on each tier (`ltr.metrics.measure.lowest_of`); left out, 0.

    Returns:
        The tiers, and what they amount to: ``better``, ``worse``, or ``open`` where the deciding tier shows neither.

    Raises:
        ValueError: for a negative margin or a level outside (0, 1).
    """
    tiers = []
    for margin in margins:
        _require_rule(margin, level)
    for a, b, margin, least in zip(challenger, baseline, margins, lowest or [0.0] * len(margins), strict=True):
        paired, most = differences(a, b), _most(a, b, least)
        lower, upper = _lower_bound(paired, level, most), -_lower_bound(-paired, level, most)
        if -margin < lower <= upper < margin or (margin == 0 and not paired.any()):
            verdict = "equal"
        elif lower > 0 or upper < 0:
            verdict = "better" if lower > 0 else "worse"
        else:
            verdict = "not worse" if margin > 0 and lower > -margin else "open"
        tiers.append(Tier(float(paired.mean()), lower, upper, margin, verdict))
    deciding = next((tier.verdict for tier in tiers if tier.verdict not in ("equal", "not worse")), "open")
    return tiers, deciding
