"""Every pair of models compared on the same test queries, and the standings as one table."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from string import ascii_letters
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.metrics import significance
from ltr.metrics.measure import fewer_is_better, lowest_of
from tasks.records import number_of
from tasks.store.values import pooled, read_values


@dataclass(frozen=True)
class Mean:
    """A ranker's mean of a measure.

    Attributes:
        mean: of the folds' means, None where the measure is undefined everywhere.
        se: standard error over all queries, None for fewer than two.
        n: queries where it is defined.
        beats: rankers that it is significantly better than, by letter: 95 or 90 (%).
    """

    mean: float | None
    se: float | None
    n: int
    beats: dict[str, int]


@dataclass(frozen=True)
class Standing:
    """A ranker's row: its letter, and its means by measure."""

    letter: str
    cells: dict[str, Mean]


@dataclass(frozen=True)
class PairTest:
    """Paired tests of two rankers on one measure.

    Attributes:
        difference: mean of a − b over the `n` queries where both are defined; `se`: its standard error.
        z, p: of the paired t test; z is None where it is infinite. `holm_p`: corrected over the pairs of the measure.
        level: 95 or 90 where the difference is significant there, otherwise 0.
        randomisation_p, interval, not_worse: of stored runs (`compare_stored`); `few`: that too few queries differ to show either not worse.
    """

    measure: str
    a: str
    b: str
    difference: float
    se: float
    z: float | None
    p: float
    n: int
    level: int
    holm_p: float = 1.0
    randomisation_p: float | None = None
    interval: tuple[float, float] | None = None
    not_worse: tuple[str, ...] | None = None
    few: str | None = None

    def winner(self) -> tuple[str, str]:
        """The better and the worse of the two."""
        a_is_better = (self.difference > 0) != fewer_is_better(self.measure)
        return (self.a, self.b) if a_is_better else (self.b, self.a)


@dataclass(frozen=True)
class Standings:
    """All rankers on all measures: a row a ranker, and every pair's tests."""

    measures: tuple[str, ...]
    rows: dict[str, Standing]
    pairs: tuple[PairTest, ...]

    def as_json(self) -> Any:
        """Plain values, without what was not asked for."""
        optional = ("randomisation_p", "interval", "not_worse", "few")
        pairs = [{k: v for k, v in asdict(pair).items() if k not in optional or v is not None} for pair in self.pairs]
        return {**asdict(self), "pairs": pairs}


@task(cache_policy=NO_CACHE, name="significance", task_run_name="significance")
def standings(paths: Mapping[str, Sequence[str]], measures: Sequence[str]) -> Standings:
    """Means, standard errors and paired tests of several rankers.

    Args:
        paths: for each ranker the per-query value files of its chosen cells, one a fold.
        measures: keys.
    """
    values = {name: [read_values(Path(path), "test") for path in files] for name, files in paths.items()}
    letters = {name: ascii_letters[k] if k < len(ascii_letters) else f"[{k + 1}]" for k, name in enumerate(paths)}
    cells: dict[str, dict[str, Mean]] = {name: {} for name in paths}
    pairs: list[PairTest] = []
    for measure in measures:
        taken = {name: pooled(frames, measure) for name, frames in values.items()}
        tests = [_pair(a, b, measure, taken[a], taken[b]) for k, a in enumerate(paths) for b in list(paths)[k + 1 :]]
        compared = _corrected([pair for pair in tests if pair is not None])
        for name, frames in values.items():
            winners = {letters[pair.winner()[1]]: pair.level for pair in compared if pair.level and pair.winner()[0] == name}
            cells[name][measure] = _mean([frame[measure] for frame in frames], taken[name], winners)
        pairs += compared
    rows = {name: Standing(letters[name], cells[name]) for name in paths}
    return Standings(tuple(measures), rows, tuple(pairs))


def _mean(folds: Sequence[pl.Series], values: NDArray[np.float64], beats: dict[str, int]) -> Mean:
    defined = values[~np.isnan(values)]
    means = [float(fold.cast(pl.Float64).drop_nulls().to_numpy().mean()) for fold in folds if fold.count()]
    se = float(defined.std(ddof=1) / np.sqrt(len(defined))) if len(defined) > 1 else None
    return Mean(float(np.mean(means)) if means else None, se, len(defined), beats)


def _pair(a: str, b: str, measure: str, of_a: NDArray[np.float64], of_b: NDArray[np.float64]) -> PairTest | None:
    try:
        found = significance.paired_t(of_a, of_b, lowest_of(measure))
    except ValueError:
        return None
    z = found.z if np.isfinite(found.z) else None
    return PairTest(measure, a, b, found.difference, found.standard_error, z, found.p_value, found.n_queries, found.level)


def _corrected(pairs: Sequence[PairTest]) -> list[PairTest]:
    if not pairs:
        return []
    adjusted = significance.holm([pair.p for pair in pairs])
    return [replace(pair, holm_p=float(p)) for pair, p in zip(pairs, adjusted, strict=True)]


def marks(beats: Mapping[str, int]) -> str:
    """Letters of the rankers that are beaten: plain at 95 %, in brackets at 90 %."""
    return "".join(letter if level == 95 else f"({letter})" for letter, level in sorted(beats.items()))


def best_mean(key: str, means: Sequence[float | None]) -> float | None:
    """The highest of the means that are there, or the lowest where fewer is better."""
    given = [mean for mean in means if mean is not None]
    best = min if fewer_is_better(key) else max
    return best(given) if given else None


# --- of stored runs -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TierResult:
    """One tier of a graded comparison; see `ltr.metrics.significance.Tier`."""

    measure: str
    difference: float
    lower_bound: float
    upper_bound: float
    margin: float
    verdict: str

    @property
    def meaning(self) -> str:
        """The verdict, and where a word alone says too little what it stands for."""
        means = {
            "equal": "equal within the margin",
            "not worse": "not worse by more than the margin",
            "open": "open, shown neither better nor worse",
        }
        return means.get(self.verdict, self.verdict)


def tier_results(measures: Sequence[str], tiers: Sequence[significance.Tier]) -> tuple[TierResult, ...]:
    """The tiers of a lexicographic comparison with the keys of their measures."""
    return tuple(TierResult(measure, **asdict(tier)) for measure, tier in zip(measures, tiers, strict=True))


def too_few_differ(measure: str, paired: NDArray[np.float64], split: str = "test") -> str:
    """That too few of these test or validation queries differ for a test to show anything, in words; empty where enough do."""
    if significance.enough_differ(paired):
        return ""
    differ = f"{np.count_nonzero(paired)} of {number_of(len(paired), f'{split} query')}"
    return f"{measure} differs on {differ}; a test needs 30, or 20 if these are at least half"
