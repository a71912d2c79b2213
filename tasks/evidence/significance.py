"""Every pair of models compared on the same test queries, and the standings as one table."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from string import ascii_letters
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.metrics import significance
from ltr.metrics.measure import Measure, fewer_is_better, lowest_of
from tasks.records import DataError
from tasks.store.values import by_document, pooled, read_basis, read_values

if TYPE_CHECKING:
    from tasks.tracking.runs import Stored


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
        randomisation_p, interval, not_worse: of stored runs (`compare_stored`).
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
        optional = ("randomisation_p", "interval", "not_worse")
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
            "open": "open, neither better nor worse is shown",
        }
        return means.get(self.verdict, self.verdict)


def tier_results(measures: Sequence[str], tiers: Sequence[significance.Tier]) -> tuple[TierResult, ...]:
    """The tiers of a lexicographic comparison with the keys of their measures."""
    return tuple(TierResult(measure, **asdict(tier)) for measure, tier in zip(measures, tiers, strict=True))


@dataclass(frozen=True)
class Scorecard:
    """A challenger against a baseline, tier by tier, the most important first."""

    challenger: str
    baseline: str
    level: float
    tiers: tuple[TierResult, ...]
    comparison: str


def _shared(wanted: Sequence[str], runs: Sequence[Sequence[pl.DataFrame]]) -> list[str]:
    """The measures asked for, which all runs have; all that they share where none is asked for."""
    shared = [c for c in runs[0][0].columns if c not in ("split", "query") and all(c in parts[0].columns for parts in runs)]
    for measure in wanted:
        if measure not in shared:
            raise DataError(f"not all of these runs have {measure}; they share: {', '.join(shared)}")
    return list(wanted) or shared


def scorecards(stored: Sequence["Stored"], tiers: Sequence[str], margin: float, level: float) -> list[Scorecard]:
    """The graded comparison (`ltr.metrics.significance.lexicographic`) of every pair of finished runs, the later one as the challenger.

    Args:
        tiers: measures, the most important first. `margin`: of all but the last, which decides by any difference.

    Raises:
        DataError: for fewer than two tiers, or one that not all runs have; as `require_one_basis`.
        ValueError: for a measure of which less is better, a negative margin or a level outside (0, 1).
    """
    if len(tiers) < 2:
        raise DataError("a scorecard needs two or more tiers: name each with --tier, the most important first")
    frames = {s.name: [read_values(path, "test") for path in s.paths] for s in stored}
    keys = _shared([Measure.maximised(tier).key for tier in tiers], list(frames.values()))
    require_one_basis(stored, keys)
    values = {name: [pooled(parts, key) for key in keys] for name, parts in frames.items()}
    margins, lowest, cards = [margin] * (len(keys) - 1) + [0.0], [lowest_of(key) for key in keys], []
    for k, baseline in enumerate(values):
        for challenger in list(values)[k + 1 :]:
            found, comparison = significance.lexicographic(values[challenger], values[baseline], margins, level, lowest)
            cards.append(Scorecard(challenger, baseline, level, tier_results(keys, found), comparison))
    return cards


def compare_stored(stored: Sequence["Stored"], measures: Sequence[str], margin: float | None = None) -> Standings:
    """`standings` of finished runs from their stored values; for each pair a randomisation test and the bootstrap's 95 % interval,
    and with a `margin`, which of the two is not worse than the other by more (``not_worse``, one-sided at 95 %).

    Raises:
        DataError: for fewer than two runs, one named twice, different test queries, or a measure that not all have; as
            `require_one_basis`.
    """
    if len(stored) < 2 or len({s.name for s in stored}) < len(stored):
        raise DataError("compare needs two or more different runs")
    frames = {s.name: [read_values(path, "test") for path in s.paths] for s in stored}
    tested = {name: [frame["query"].to_list() for frame in parts] for name, parts in frames.items()}
    first = stored[0].name
    for name, queries in tested.items():
        if queries != tested[first]:
            common = len({q for part in queries for q in part} & {q for part in tested[first] for q in part})
            raise DataError(f"{name} and {first} were not tested on the same queries in the same folds ({common} in common)")
    wanted = _shared([Measure.of(m).key for m in measures], list(frames.values()))
    require_one_basis(stored, wanted)
    table = standings.fn({s.name: s.paths for s in stored}, wanted)
    return replace(table, pairs=tuple(_more_tests(pair, frames, margin) for pair in table.pairs))


def require_one_basis(stored: Sequence["Stored"], keys: Sequence[str]) -> None:
    """Checks that the values of several runs were taken by the same conventions and from the same labels. Files of 0.1.0 do not say.

    Raises:
        DataError: naming the runs and what differs.
    """
    sources = {Measure.of_key(key).source for key in keys}
    known = [(s.name, [basis for path in s.paths if (basis := read_basis(path))]) for s in stored]
    known = [(name, found) for name, found in known if found]
    for name, found in known[1:]:
        first, theirs = known[0]
        differ = [
            f"{rule} {found[0].conventions.get(rule)} and {value}"
            for rule, value in theirs[0].conventions.items()
            if found[0].conventions.get(rule) != value
        ]
        if differ:
            raise DataError(
                f"{name} and {first} were measured by different conventions ({', '.join(differ)}), so their numbers are of different "
                "measures; run one of them again with the conventions of the other"
            )
        for source in sorted(sources):
            both = [name for name in (by_document(source),) if all(name in one.labels for one in (*found, *theirs))]
            if any([one.labels.get(at) for one in found] != [one.labels.get(at) for one in theirs] for at in (source, *both)):
                raise DataError(
                    f"{name} and {first} were measured on different labels of the same queries (label source {source!r}); "
                    "run one of them again on the data of the other"
                )


def _more_tests(pair: PairTest, frames: Mapping[str, Sequence[pl.DataFrame]], margin: float | None) -> PairTest:
    a, b = (pooled(frames[name], pair.measure) for name in (pair.a, pair.b))
    lowest = lowest_of(pair.measure)
    tested = replace(pair, randomisation_p=significance.randomisation(a, b), interval=significance.bootstrap(a, b, lowest=lowest))
    if margin is None:
        return tested
    a, b = (b, a) if fewer_is_better(pair.measure) else (a, b)
    held = {
        pair.a: significance.non_inferior(a, b, margin, lowest=lowest),
        pair.b: significance.non_inferior(b, a, margin, lowest=lowest),
    }
    return replace(tested, not_worse=tuple(name for name, found in held.items() if found.holds))
