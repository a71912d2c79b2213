"""What people would say of some systems' rankings that a machine judged whole, from the few labels that people gave.

People's labels are taken to be a random sample of the pairs that the machine judged: then `ltr.metrics.prediction_powered` holds. Pairs that
people judged because a system had them high are no such sample.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ltr.kernels.kernel import Bools, Floats, Ints
from ltr.metrics.conventions import Conventions
from ltr.metrics.dcg import gain_mean_value
from ltr.metrics.gains import graded, log_discount
from ltr.metrics.measure import Measure
from ltr.metrics.prediction_powered import BY_CHANCE, FEWEST, FEWEST_SURPRISES, Corrected, corrected
from tasks.data.judgments import read_judgments
from tasks.data.trec import PAIR, RUN, read_trec
from tasks.records import DataError, number_of


@dataclass(frozen=True)
class CorrectedRun:
    """A run's measure as people would have it; with `against`, its difference from that run's.

    Attributes:
        unjudged: documents of the run, within the measure's depth, that the machine did not judge, and which gain nothing.
        absent: judged queries that the run does not have, whose measure is 0.
        no_sample: how it shows that people's labels are no random sample, which no interval of any run then survives; empty where nothing does.
    """

    run: str
    found: Corrected
    against: str | None = None
    unjudged: int = 0
    absent: int = 0
    no_sample: str = ""

    @property
    def settled(self) -> bool:
        """Whether the interval of a difference leaves out 0, and is of a random sample or of all."""
        found = self.found
        return (found.interval[0] > 0 or found.interval[1] < 0) and (found.complete or not self.no_sample)

    def text(self) -> str:
        """In words."""
        found = self.found
        name = f"{self.run} − {self.against}" if self.against else self.run
        if found.complete:
            return self._with_gaps(
                f"{name}: {found.value:.4f}, people judged every document that counts   machine alone {found.machine:.4f}"
            )
        shown = f"{found.value:.4f} [{found.interval[0]:.4f}, {found.interval[1]:.4f}]"
        alone = f"people alone {found.people:.4f} [{found.people_interval[0]:.4f}, {found.people_interval[1]:.4f}]"
        told = self._with_gaps(f"{name}: {shown}   {alone}   machine alone {found.machine:.4f}")
        return f"{told}   {self.verdict}" if self.verdict not in ("", "settled") else told

    def _with_gaps(self, told: str) -> str:
        if self.unjudged:
            told += f"   ({number_of(self.unjudged, 'document')} that the machine did not judge gain nothing)"
        if self.absent:
            told += f"   ({number_of(self.absent, 'judged query')} not in it count as 0)"
        return told

    @property
    def verdict(self) -> str:
        """Whether a difference is settled, or how many labels would settle it; empty for a measure that can be trusted."""
        found = self.found
        if self.no_sample and not found.complete:
            return f"({self.no_sample}: it is not a random sample, and the interval does not hold)"
        if found.foretold and not found.complete:
            return (
                f"(the machine's label determines people's on all of the {number_of(found.sampled, 'sampled pair')} that count in it, "
                "so the sample cannot show the error on other pairs)"
            )
        if not found.enough:
            few = f"only {found.sampled} sampled documents count in it; with fewer than {FEWEST},"
            alike = f"people's corrections rest on only {found.surprises:.1f} (effective) sampled documents; with fewer than {FEWEST_SURPRISES},"
            return f"({few if found.sampled < FEWEST else alike} intervals cover less often than stated)"
        if not self.against or self.settled or not found.value:
            return "settled" if self.against and self.settled else ""
        needed = found.needed_to_settle()
        return f"not settled; about {number_of(needed, 'human label')} would settle it with 80 % power, if the estimate is right"

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        own = {name: value for name, value in vars(self).items() if name != "found"}
        return {**asdict(self.found), **own, "verdict": self.verdict}


def corrected_runs(
    runs: Mapping[str, Sequence[Path]],
    people: Sequence[Path],
    machine: Sequence[Path],
    measure: str,
    conventions: Conventions,
    level: float = 0.95,
) -> list[CorrectedRun]:
    """`compared` runs.

    Args:
        runs: TREC runs by name; a document that the machine did not judge gains nothing, as in trec_eval.
        people, machine: judgments of any form that `data.qrels` takes.
        measure: ``p@k`` or ``dcg@k``, which are sums over documents.

    Raises:
        DataError: for wrong files, people's labels of pairs that the machine did not judge, or another measure.
    """
    judged, _ = read_judgments(machine)
    by_people, _ = read_judgments(people)
    strange = by_people.join(judged, on=PAIR, how="anti")
    if strange.height:
        query, document = strange.row(0)[:2]
        raise DataError(
            f"{', '.join(map(str, people))}: query {query!r}, document {document!r}: people judged it and the machine did not "
            f"({number_of(strange.height, 'such pair')}); the machine must label every pair that people could have judged"
        )
    table = judged.join(by_people.rename({"label": "people"}), on=PAIR, how="left", maintain_order="left").sort(PAIR)
    labels = table["label"].clip(lower_bound=0).to_numpy()
    few = table["people"].clip(lower_bound=0).fill_null(float("nan")).to_numpy()
    curve = sums_of(measure, conventions)[1]
    lists = {name: read_trec(paths, RUN) for name, paths in runs.items()}
    weights = {name: _weights(table, run, curve) for name, run in lists.items()}
    query = (table["query"].rank("dense").cast(pl.Int64) - 1).to_numpy()
    found = compared(weights, few, labels, (measure, conventions), level, query)
    covered = {name: _not_covered(table, run, curve) for name, run in lists.items()}
    return [one if one.against else replace(one, unjudged=covered[one.run][0], absent=covered[one.run][1]) for one in found]


def compared(
    weights: Mapping[str, Floats],
    people: Floats,
    machine: Floats,
    rules: tuple[str, Conventions],
    level: float,
    query: Ints,
) -> list[CorrectedRun]:
    """Every ranking's measure, and the difference of each from the best of them.

    Which one is the best is seen on the same labels, so that the intervals of differences are such that those of all pairs of rankings hold
    together at the level (Bonferroni).

    Args:
        weights: what each document's gain counts in a ranking's measure, ``float64 [documents]``.
        people, machine: labels ``float64 [documents]``; of people NaN where they did not judge.
        rules: the measure and its conventions.
        query: whose each document is, ``int64 [documents]`` from 0, by which it shows that people judged whole queries.
    """
    gain = sums_of(*rules)[0]
    gains, true = gain(machine), np.where(np.isnan(people), np.nan, gain(np.nan_to_num(people)))
    found = [CorrectedRun(name, corrected(own, true, gains, machine, level)) for name, own in weights.items()]
    found.sort(key=lambda one: -one.found.value)
    best, together = found[0].run, 1 - (1 - level) / max(math.comb(len(found), 2), 1)
    differences = [
        CorrectedRun(one.run, corrected(weights[one.run] - weights[best], true, gains, machine, together), best)
        for one in found[1:]
    ]
    every = [*found, *differences]
    odd = next((one for one in every if one.found.chance * len(every) <= BY_CHANCE), None)
    unlike = _unlike_a_sample(odd) if odd else by_whole_queries(~np.isnan(people), query)
    return [replace(one, no_sample=unlike) for one in every]


def by_whole_queries(judged: Bools, query: Ints) -> str:
    """How it shows that people judged some queries and not pairs of all of them, which random samples do not; empty where it does not. Queries
    differ in how far a machine is off, so that pairs of few queries tell much less than as many of all: of 100 queries of which people judged ten
    whole, intervals of 95 % held in 50 of 100 draws.

    How many queries a random sample has pairs of is a sum of indicators that are negatively associated (Joag-Dev & Proschan 1983), so that
    Chernoff's bound for independent ones holds.

    Args:
        judged: by people, ``bool [documents]``; `query`: whose each is, ``int64 [documents]`` from 0.
    """
    from scipy.special import gammaln

    population, n = len(query), int(judged.sum())
    sizes, queries = np.unique(np.bincount(query), return_counts=True)
    rest = np.maximum(population - sizes, n)  # where fewer are left than were judged, a sample has one of this query for certain
    none = np.where(
        population - sizes < n,
        0.0,
        np.exp(gammaln(rest + 1) - gammaln(rest - n + 1) - gammaln(population + 1) + gammaln(population - n + 1)),
    )
    none[sizes == 0] = 1.0
    there, expected = len(np.unique(query[judged])), float(((1 - none) * queries).sum())
    steps = np.geomspace(1e-3, 50, 200)[:, None]
    least = float((steps[:, 0] * there + np.log(none + (1 - none) * np.exp(-steps)) @ queries).min())
    if there >= expected or least > np.log(BY_CHANCE):
        return ""
    return f"people judged pairs of {number_of(there, 'query')}, where a random sample of {n:,} of {population:,} pairs has pairs of about {_rounded(expected)}"


def _unlike_a_sample(one: CorrectedRun) -> str:
    found, name = one.found, f"{one.run} − {one.against}" if one.against else one.run
    return (
        f"people judged {found.sampled:,} of the {found.documents:,} pairs that matter to {name}, where a random sample of "
        f"{found.judged:,} of {found.population:,} has about {_rounded(found.expected)}"
    )


def _rounded(count: float) -> str:
    return f"{count:,.0f}" if count >= 100 else f"{count:.3g}"


def sums_of(measure: str, conventions: Conventions) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
    """Gains of labels and discounts of ranks of a measure that is a sum over documents.

    Raises:
        DataError: for a measure that is none.
    """
    name, _, cutoff = measure.lower().replace("_", "@").partition("@")
    if name == "dcg":
        if cutoff and not (cutoff.isdecimal() and 0 < int(cutoff) < 1_000_000):
            raise DataError(f"measure {measure!r}: the cutoff of dcg must be a whole number from 1 to 999999, such as dcg@10")
        depth = int(cutoff or 1_000_000)
        return lambda labels: graded(labels, conventions), lambda ranks: _at(log_discount, ranks, depth, conventions)
    read = Measure.of(measure)
    if read.other_source is not None:
        raise DataError(
            f"measure {measure!r}: correct compares people's labels with the machine's, and no measure has a source here: {measure.partition(':')[0]}"
        )
    if read.definition.value is not gain_mean_value or read.cutoff is None:
        raise DataError(f"measure {measure!r}: p@k and dcg@k are sums over documents, which can be corrected from a sample of them")
    return lambda labels: read.definition.gain(labels, conventions), lambda ranks: _at(
        read.definition.curve, ranks, int(read.cutoff or 0), conventions
    )


def _at(curve: Any, ranks: Floats, cutoff: int, conventions: Conventions) -> Floats:
    longest = int(max(ranks.max(initial=1), cutoff if cutoff < 1_000_000 else 1))
    by_rank: Floats = curve(longest, cutoff, conventions)
    return by_rank[ranks.astype(np.int64) - 1]


def _not_covered(table: pl.DataFrame, run: pl.DataFrame, curve: Any) -> tuple[int, int]:
    """`CorrectedRun.unjudged` and `CorrectedRun.absent`."""
    unjudged = run.join(table, on="query", how="semi").join(table, on=PAIR, how="anti")["rank"].cast(pl.Float64).to_numpy()
    counted = int((curve(unjudged) > 0).sum()) if len(unjudged) else 0
    return counted, table.join(run, on="query", how="anti")["query"].n_unique()


def _weights(table: pl.DataFrame, run: pl.DataFrame, curve: Any) -> Floats:
    """What each judged pair's gain counts in the mean over the judged queries, ``float64 [pairs]``."""
    ranks = table.join(run, on=PAIR, how="left", maintain_order="left")["rank"].fill_null(0).cast(pl.Float64).to_numpy()
    weights = np.zeros(len(ranks))
    weights[ranks > 0] = curve(ranks[ranks > 0]) / table["query"].n_unique()
    return weights
