"""Every ranker against the best of the single rankings that are there already: is it worth having more than that one?

The single rankings are the rankers that learn nothing and read one column (`ltr.rankers.column`). Which of them is the best is seen on the
same test queries, which favours it: a ranker that is shown to be better is better. One that is shown to be worse may not be, the more
often the more single rankings there are.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

import ltr
from ltr.kernels.kernel import Floats
from ltr.metrics.measure import lowest_of
from ltr.metrics.significance import bootstrap, holm, interval_of_equals, paired_t, student_quantile
from tasks.config.run_config import RunConfig, register_evidence
from tasks.evidence.drawing import title_of
from tasks.evidence.protocol import Evidence, Found, Gathering, render, require_pairs
from tasks.records import Fold, number_of, percent
from tasks.store.values import pooled, read_values

TEMPLATE = """<h2>Against the best single ranking</h2>
<p>{{ found.baseline }} is the single ranking with the best {{ found.title }} on these test queries. Means weigh all {{ found.rows[0].n }} queries equally, whatever their fold.
Confidence intervals ({{ '%.6g' | format(100 * found.level) }} %) and p are by the paired t-test; Holm p is corrected over the fused or learned rankers.
{{ found.favoured ~ '.' if found.favoured }}</p>
<table><tr><th>ranker</th><th>{{ found.title }}</th><th>interval</th><th>difference</th><th>interval</th><th>p</th><th>Holm p</th></tr>
{% for row in found.rows %}<tr><td>{{ row.ranker }}</td><td>{{ '%.4f' | format(row.mean) }}</td>
<td>{{ '%.4f … %.4f' | format(*row.interval) }}</td>
{% if row.difference is none %}<td>–</td><td>–</td><td>–</td><td>–</td>{% else %}<td>{{ '%+.4f' | format(row.difference) }}</td>
<td>{{ '%+.4f … %+.4f' | format(*row.between) }}</td><td>{{ '%.2g' | format(row.p) }}</td><td>{{ '' if row.holm_p is none else '%.2g' | format(row.holm_p) }}</td>{% endif %}</tr>
{% endfor %}</table>
"""


@dataclass(frozen=True)
class Against:
    """A ranker against the best single ranking.

    Attributes:
        mean, interval: of the measure over the `n` test queries where it is defined.
        difference, between: mean of the ranker less the single one over the queries where both are defined, and its interval; with the
            p-values None for the single one itself.
        p, holm_p: of the paired t test; corrected over all rankers that are no single rankings, None for those.
    """

    ranker: str
    mean: float
    interval: tuple[float, float]
    n: int
    difference: float | None = None
    between: tuple[float, float] | None = None
    p: float | None = None
    holm_p: float | None = None


@dataclass(frozen=True)
class AgainstSingle(Found):
    """All rankers against the best single ranking.

    Attributes:
        measure: key.
        baseline: the best single ranking's name.
        rows: the best first.
        singles: how many single rankings there are.
    """

    place: ClassVar[int] = 5
    measure: str
    baseline: str
    level: float
    rows: tuple[Against, ...]
    singles: int

    @property
    def favoured(self) -> str:
        """What is to be said where the best was found among several on the queries that it is the baseline on: of ten equal ones, one of the others
        lies outside of the interval in two of three cases."""
        if self.singles < 2:
            return ""
        return (
            f"{self.baseline} was selected as the best of {self.singles} single rankings on these same queries, which favours it: a ranker shown to be "
            "better is better, but one below it may be just as good even if p is small and the interval excludes 0"
        )

    @property
    def title(self) -> str:
        """The measure, for people."""
        return title_of(self.measure)

    def tags(self) -> dict[str, str]:
        return {"best_single": self.baseline}

    def sentences(self) -> list[str]:
        width = max(len(row.ranker) for row in self.rows)
        head = f"{self.title} on {number_of(self.rows[0].n, 'test query')}, with {percent(self.level)} intervals, against the best single ranking, {self.baseline}:"
        told = [f"  {row.ranker:{width}}  {_told(row)}" for row in self.rows]
        return [head, *told, *([f"{self.favoured}."] if self.favoured else [])]

    def numbers(self) -> Mapping[str, Any]:
        return {"best_single": {"ranker": self.baseline, "rows": [asdict(row) for row in self.rows]}}

    def section(self) -> str:
        return render(TEMPLATE, found=self)


def _told(row: Against) -> str:
    own = f"{row.mean:.4f} [{row.interval[0]:.4f}, {row.interval[1]:.4f}]"
    if row.difference is None or row.between is None:
        return own
    holm_p = "" if row.holm_p is None else f", Holm {row.holm_p:.2g}"
    return f"{own}   {row.difference:+.4f} [{row.between[0]:+.4f}, {row.between[1]:+.4f}]  p {row.p:.2g}{holm_p}"


class BestSingle(Evidence):
    """Holds every ranker against the best of those of kind ``column`` by `measure`, by default the one that selects."""

    key: ClassVar[str] = "best_single"
    measure: str | None = None
    level: float = Field(0.95, gt=0, lt=1)

    def check(self, config: RunConfig) -> None:
        if not _single(config):
            raise ValueError("best_single: no ranker is a single ranking ({kind: column, feature: bm25})")
        if self.measure:
            ltr.Measure.maximised(self.measure)

    def measures(self) -> list[str]:
        return [self.measure] if self.measure else []

    def check_data(self, config: RunConfig, folds: tuple[Fold, ...]) -> None:
        require_pairs(self.key, [self.measure or config.select], "test", [fold.test for fold in folds], config.core_conventions)

    def gather(self, run: Gathering) -> AgainstSingle:
        measure = ltr.Measure.of(self.measure or run.config.select).key
        values = {name: pooled([read_values(path, "test") for path in run.values_of(name)], measure) for name in run.config.rankers}
        return against_single(values, _single(run.config), measure, self.level)


register_evidence(BestSingle)


def _single(config: RunConfig) -> list[str]:
    return [name for name, section in config.rankers.items() if section.core is ltr.Column]


def against_single(values: Mapping[str, Floats], single: list[str], measure: str, level: float) -> AgainstSingle:
    """The table of per-query values ``float64 [queries]`` of each ranker, NaN where undefined; `single` are single rankings."""
    means = {name: float(np.nanmean(own)) for name, own in values.items()}
    best = max(single, key=lambda name: means[name])
    others = [name for name in values if name != best]
    lowest = lowest_of(measure)
    tests = {name: paired_t(values[name], values[best], lowest) for name in others}
    fused = [name for name in others if name not in single]
    corrected = dict(zip(fused, holm([tests[name].p_value for name in fused]).tolist(), strict=True))
    rows = []
    for name, own in values.items():
        defined = own[~np.isnan(own)]
        se = float(defined.std(ddof=1) / np.sqrt(len(defined)))
        interval = (
            interval_of_equals(means[name], len(defined), level, max(1.0, means[name]), signed=lowest < 0)
            if (defined == defined[0]).all()
            else _interval(means[name], se, len(defined), level)
        )
        if name == best:
            rows.append(Against(name, means[name], interval, len(defined)))
            continue
        test = tests[name]
        between = (
            _interval(test.difference, test.standard_error, test.n_queries, level)
            if test.standard_error
            else bootstrap(own, values[best], level, lowest=lowest)
        )
        p = test.p_value
        rows.append(Against(name, means[name], interval, len(defined), test.difference, between, p, corrected.get(name)))
    return AgainstSingle(measure, best, level, tuple(sorted(rows, key=lambda row: -row.mean)), len(single))


def _interval(mean: float, se: float, n: int, level: float) -> tuple[float, float]:
    reach = student_quantile(0.5 + level / 2, n - 1) * se
    return mean - reach, mean + reach
