"""Finished runs held against each other by their stored values: pair by pair, and tier by tier."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from ltr.metrics import significance
from ltr.metrics.measure import Measure, fewer_is_better, lowest_of
from tasks.records import DataError
from tasks.store.values import by_document, pooled, read_basis, read_values

if TYPE_CHECKING:
    from tasks.tracking.runs import Stored
from tasks.evidence.significance import PairTest, Standings, TierResult, standings, tier_results, too_few_differ


@dataclass(frozen=True)
class Scorecard:
    """A challenger against a baseline, tier by tier, the most important first; `few`: that too few queries differ on the one that leaves it open."""

    challenger: str
    baseline: str
    level: float
    tiers: tuple[TierResult, ...]
    comparison: str
    few: str = ""


def _shared(wanted: Sequence[str], runs: Sequence[Sequence[pl.DataFrame]]) -> list[str]:
    """The measures asked for, which all runs have; all that they share where none is asked for."""
    shared = [c for c in runs[0][0].columns if c not in ("split", "query") and all(c in parts[0].columns for parts in runs)]
    for measure in wanted:
        if measure not in shared:
            raise DataError(f"not all of these runs have {measure}; they share: {', '.join(shared)}")
    return list(dict.fromkeys(wanted)) or shared


def scorecards(stored: Sequence["Stored"], tiers: Sequence[str], margin: float, level: float) -> list[Scorecard]:
    """The graded comparison (`ltr.metrics.significance.lexicographic`) of every pair of finished runs, the later one as the challenger.

    Args:
        tiers: measures, the most important first. `margin`: of all but the last, which decides by any difference.

    Raises:
        DataError: for fewer than two tiers, one that is named twice, or that not all runs have; as `require_one_basis`.
        ValueError: for a measure of which less is better, a negative margin or a level outside (0, 1).
    """
    if len(tiers) < 2:
        raise DataError("a scorecard needs two or more tiers: name each with --tier, the most important first")
    frames = {s.name: [read_values(path, "test") for path in s.paths] for s in stored}
    named = [Measure.maximised(tier).key for tier in tiers]
    if twice := next((key for k, key in enumerate(named) if key in named[:k]), None):
        raise DataError(f"--tier {twice}: named twice; each tier decides where those above it leave the decision open")
    keys = _shared(named, list(frames.values()))
    require_one_basis(stored, keys)
    values = {name: [pooled(parts, key) for key in keys] for name, parts in frames.items()}
    margins, lowest, cards = [margin] * (len(keys) - 1) + [0.0], [lowest_of(key) for key in keys], []
    for k, baseline in enumerate(values):
        for challenger in list(values)[k + 1 :]:
            ours, theirs = values[challenger], values[baseline]
            found, comparison = significance.lexicographic(ours, theirs, margins, level, lowest)
            verdicts = [tier.verdict for tier in found]
            at = verdicts.index("open") if comparison == "open" and "open" in verdicts else None
            few = "" if at is None else too_few_differ(keys[at], significance.differences(ours[at], theirs[at]))
            cards.append(Scorecard(challenger, baseline, level, tier_results(keys, found), comparison, few))
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
    shown = tuple(name for name, found in held.items() if found.holds)
    few = "" if len(shown) == 2 else too_few_differ(pair.measure, significance.differences(a, b))
    return replace(tested, not_worse=shown, few=few)
