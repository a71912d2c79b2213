"""What people would say of the rankers of a run whose labels are a machine's (`data.calibrate`), and how many labels of theirs would settle
which of them is better.

People's labels are taken to be a random sample of the documents that the machine labelled (`tasks.evidence.machine_labels`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

import ltr
from ltr.data.queries import Queries
from ltr.kernels.kernel import Floats
from ltr.metrics.evaluation import tie_breaker
from ltr.metrics.prediction_powered import NEEDED
from tasks.config.run_config import RunConfig, register_evidence
from tasks.evidence.machine_labels import CorrectedRun, compared, sums_of
from tasks.evidence.protocol import Evidence, Found, Gathering, render
from tasks.records import DataError, Fold, Trained, number_of, percent
from tasks.store.cells import CellFolder
from tasks.store.datasets import open_queries
from tasks.training.scoring import scores_of

TEMPLATE = """<h2>As people would judge</h2>
<p>{{ found.measure }} on test queries, estimated from machine labels and a random sample of human labels, with {{ level }} intervals. Differences are
from {{ found.rows[0].run }}, with intervals that hold simultaneously for all pairs of rankers. They are
estimated from what the two rankers do not share, so they can differ a little from the differences of the values.</p>
<table><tr><th>ranker</th><th>as people would judge</th><th>interval</th><th>human labels alone</th><th>interval</th><th>machine labels alone</th><th>settled</th></tr>
{% for row in found.rows %}<tr><td>{{ row.run }}{{ ' − ' ~ row.against if row.against }}</td><td>{{ '%.4f' | format(row.found.value) }}</td>
<td>{{ '%.4f … %.4f' | format(*row.found.interval) }}</td><td>{{ '%.4f' | format(row.found.people) }}</td>
<td>{{ '%.4f … %.4f' | format(*row.found.people_interval) }}</td><td>{{ '%.4f' | format(row.found.machine) }}</td>
<td>{{ row.verdict }}</td></tr>
{% endfor %}</table>
"""


@dataclass(frozen=True)
class AsPeopleWould(Found):
    """Every ranker's measure as people would have it, and differences from the best.

    Attributes:
        rows: the rankers, the best first, then the differences.
    """

    place: ClassVar[int] = 6
    measure: str
    level: float
    rows: tuple[CorrectedRun, ...]

    def sentences(self) -> list[str]:
        return [
            f"{self.measure} as people would judge, with {percent(self.level)} intervals:",
            *(f"  {row.text()}" for row in self.rows),
        ]

    def numbers(self) -> Mapping[str, Any]:
        return {"corrected": [row.as_json() for row in self.rows]}

    def section(self) -> str:
        return render(TEMPLATE, found=self, level=percent(self.level))


class Corrected(Evidence):
    """Measures every ranker by `measure`, ``p@k`` or ``dcg@k``, as people would."""

    key: ClassVar[str] = "corrected"
    measure: str = "dcg@10"
    level: float = Field(0.95, gt=0, lt=1)

    def check(self, config: RunConfig) -> None:
        if not config.data.calibrate:
            raise ValueError("corrected: data.calibrate, which names the human labels, is missing")
        try:
            sums_of(self.measure, config.core_conventions)
        except DataError as error:
            raise ValueError(f"corrected: {error}") from None
        if config.core_conventions.unlabelled == "condensed":
            raise ValueError("corrected: every document must be ranked, and conventions.unlabelled: condensed leaves some out")
        if config.core_conventions.short == "size" and not self.measure.lower().startswith("dcg"):
            raise ValueError(
                "corrected: p@k must be divided by k, and conventions.short: size divides by the query's number of documents where that is smaller"
            )

    def check_data(self, config: RunConfig, folds: tuple[Fold, ...]) -> None:
        judged = sum(int((~np.isnan(_labels(config, open_queries(fold.test))[0])).sum()) for fold in folds)
        if judged < NEEDED:
            raise DataError(
                f"corrected: people judged {number_of(judged, 'test document')} that the machine labelled; an interval needs {NEEDED}"
            )

    def gather(self, run: Gathering) -> AsPeopleWould:
        curve, ties = sums_of(self.measure, run.config.core_conventions)[1], run.config.core_conventions.ties
        tests = [open_queries(fold.test) for fold in run.folds]
        n_queries = sum(queries.n_queries for queries in tests)
        chosen = {name: [trained for trained in run.chosen if trained.ranker == name] for name in run.config.rankers}
        weights = {
            name: np.concatenate([_counts(one, test, curve, ties) for one, test in zip(of_folds, tests, strict=True)]) / n_queries
            for name, of_folds in chosen.items()
        }
        labels = [_labels(run.config, queries) for queries in tests]
        people, machine = (np.concatenate([pair[k] for pair in labels]) for k in (0, 1))
        known = ~np.isnan(machine)
        starts = np.cumsum([0, *(queries.n_queries for queries in tests)])
        query = np.concatenate([queries.of_query + start for queries, start in zip(tests, starts[:-1], strict=True)])
        rows = compared(
            {name: own[known] for name, own in weights.items()},
            people[known],
            machine[known],
            (self.measure, run.config.core_conventions),
            self.level,
            query[known],
        )
        return AsPeopleWould(self.measure, self.level, tuple(rows))


register_evidence(Corrected)


def _labels(config: RunConfig, queries: Queries) -> tuple[Floats, Floats]:
    """People's and the machine's labels ``float64 [documents]``; people's of documents that the machine did not label are left out."""
    assert config.data.calibrate is not None
    machine, people = (queries.sources[name] for name in ("machine", config.data.calibrate.people))
    return np.where(np.isnan(machine), np.nan, people), machine


def _counts(trained: Trained, test: Queries, curve: Callable[[Floats], Floats], ties: str) -> Floats:
    """What each test document's gain counts in a ranker's measure, ``float64 [documents]``: `curve` at its rank, the mean over those of equal
    scores where these are tied, 0 at no rank. In the order of `test`; the data of a ranker upon others are those of the fold in another."""
    queries = open_queries(trained.cell.data.test)
    scores, query = scores_of(ltr.load(CellFolder.of(trained.result.key).model), queries), queries.of_query
    breaker = tie_breaker(ties, queries.labels, queries.position, queries.documents)
    order = np.lexsort((*([breaker] if len(breaker) else []), -scores, query))
    sorted_scores, sorted_query = scores[order], query[order]
    own = curve((np.arange(len(scores)) - queries.offsets[sorted_query] + 1).astype(np.float64))
    if ties == "expected":
        first = np.append(True, (sorted_query[1:] != sorted_query[:-1]) | (sorted_scores[1:] != sorted_scores[:-1]))
        starts = np.flatnonzero(first)
        own = (np.add.reduceat(own, starts) / np.diff(np.append(starts, len(own))))[np.cumsum(first) - 1]
    counts = np.empty(len(scores))
    counts[order] = np.where(np.isfinite(sorted_scores), own, 0.0)
    found = np.empty(len(scores))
    found[np.lexsort((test.position, test.of_query))] = counts[np.lexsort((queries.position, query))]
    return found
