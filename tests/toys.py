"""One of each thing a newcomer adds, added from outside: a measure, a ranker, a way of counting clicks and a kind of evidence.

In the house each of them would be a file of its own, or a line; `tests/test_one_place.py` runs a configuration with all four.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from ltr.linear.linear_ranker import LinearRanker
from ltr.metrics.dcg import gain_mean_prepare, gain_mean_value, gain_row
from ltr.metrics.gains import binary, ranks_to
from ltr.metrics.measure import Definition, register
from tasks.config.click_labels import register_clicks
from tasks.config.run_config import register_evidence, register_ranker
from tasks.evidence.protocol import Evidence, Found, Gathering, TableColumn, render
from tasks.store.values import read_values

PERSISTENCE = 0.8

register(
    Definition(
        name="rbp",
        title="Rank-biased precision",
        formula="(1 − p) Σ_r p^(r − 1) rel_r, p = 0.8",
        paper="Moffat & Zobel 2008",
        gain=binary,
        curve=lambda longest, cutoff, _: np.where(
            ranks_to(longest) <= cutoff, (1 - PERSISTENCE) * PERSISTENCE ** (ranks_to(longest) - 1), 0.0
        ),
        value=gain_mean_value,
        prepare=gain_mean_prepare,
        row=gain_row,
        labels="binary",
    )
)


@dataclass(frozen=True, kw_only=True)
class Centroid(LinearRanker):
    """From the mean of the documents of label 0 towards the mean of the others (Rocchio).

    Args:
        share: of the mean of label 0 that is taken away.
    """

    kind: ClassVar[str] = "centroid"
    share: float = 1.0

    def learn(self, queries, features, watch):
        weights = features[queries.labels > 0].mean(axis=0) - self.share * features[queries.labels == 0].mean(axis=0)
        watch(weights.astype(np.float64))
        return weights.astype(np.float64), ()


register_ranker(Centroid)
register_clicks("first", pl.col("order") == 1)


@dataclass(frozen=True)
class WinsFound(Found):
    """On how many test queries each ranker is the best one."""

    wins: Mapping[str, int]

    def tags(self):
        return {f"wins.{name}": str(count) for name, count in self.wins.items()}

    def sentences(self):
        return [f"{name} is best on {count} queries." for name, count in self.wins.items()]

    def column(self):
        return TableColumn("wins", {name: str(count) for name, count in self.wins.items()})

    def section(self):
        return render("<h2>Wins</h2><p>{{ found.sentences() | join(' ') }}</p>", found=self)


class Wins(Evidence):
    """On how many test queries each ranker is the best one by `measure`."""

    key: ClassVar[str] = "wins"
    measure: str = "rbp"

    def measures(self):
        return [self.measure]

    def gather(self, run: Gathering) -> WinsFound:
        values = {name: pl.concat(read_values(path, "test") for path in run.values_of(name)) for name in run.config.rankers}
        table = np.nan_to_num([frame[self.measure].to_numpy() for frame in values.values()])
        return WinsFound(dict(zip(values, np.bincount(table.argmax(axis=0), minlength=len(values)).tolist(), strict=True)))


register_evidence(Wins)
