"""What the λ's of a trained model did while it learned, and the documents that stayed lost: kept beside its cell."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE
from pydantic import Field

import ltr
from ltr.data.queries import Queries
from ltr.diagnostics.microscope import Snapshots, look
from ltr.kernels.kernel import Floats
from ltr.rankers.training import mean_measure
from tasks.config.ranker_section import read_conventions
from tasks.config.run_config import RunConfig, register_evidence
from tasks.config.section import Written
from tasks.evidence.drawing import colour, legend, line, svg, title_of, titled, whole_ticks
from tasks.evidence.protocol import Artifact, Evidence, Found, Gathering, render
from tasks.records import Trained, number_of
from tasks.store.cells import CellFolder
from tasks.store.datasets import open_queries
from tasks.store.seal import is_whole
from tasks.store.state import core_digest, digest_of, made_whole, write_json
from tasks.training.scoring import ranked, retrieved_only

LOST, SNAPSHOTS = "lost-causes.csv", "looks.json"
"""Files in the folder of an inspection."""
SHOWN = 20
"""Lost causes on the page; all are in the table beside it."""

Series = list[float | None]


@dataclass(frozen=True)
class LostCause:
    """A document that is still pushed hard at the end: its rank then, its λ, and the smallest |λ| of the later snapshots."""

    query: str
    document: str
    label: float
    rank: int
    force: float
    smallest: float


@dataclass(frozen=True)
class Inspection:
    """What the microscope saw of a ranker (`ltr.diagnostics.microscope.Snapshots`), one entry a snapshot.

    Attributes:
        iteration: trees or epochs.
        labels: levels of the judged label.
        partners, top_labels: shares by label; `moved`, `moved_top`: shares of documents, None for the first.
        agreement: by kind of click pairs, the share of documents whose λ's agree.
        measure, train, test: the selecting measure, and its means on training and test queries.
        top: ranks that count as the top.
        lost: the hardest pushed documents.
        folder: where all of this lies.
    """

    ranker: str
    iteration: list[int]
    labels: list[float]
    partners: list[Series]
    top_labels: list[Series]
    moved: Series
    moved_top: Series
    agreement: dict[str, Series]
    measure: str
    top: int
    train: list[float]
    test: list[float]
    lost: tuple[LostCause, ...]
    folder: str


TEMPLATE = """<h2>λ microscope</h2>
<div class="plots">{% for figure in figures %}<figure>{{ figure | safe }}</figure>{% endfor %}</div>
{% for seen in inspections if seen.lost %}<details><summary>Lost causes of {{ seen.ranker }}: the training documents still pushed hardest; often their label is wrong</summary>
<div class="scroll"><table>
  <tr><th>query</th><th>document</th><th>label</th><th>rank</th><th>λ at the end</th></tr>
  {% for row in seen.lost[:shown] %}<tr><td>{{ row.query }}</td><td>{{ row.document }}</td><td>{{ row.label }}</td><td>{{ row.rank }}</td><td>{{ "%+.4f" | format(row.force) }}</td></tr>{% endfor %}
</table></div><p class="soft">The first {{ seen.lost[:shown] | length }} of {{ seen.lost | length }}; the rest are in MLflow's artifacts.</p></details>{% endfor %}"""


@dataclass(frozen=True)
class Inspections(Found):
    """What the microscope saw of every ranker."""

    place: ClassVar[int] = 50
    of_first_fold: ClassVar[bool] = True
    rankers: tuple[Inspection, ...]

    def numbers(self) -> Mapping[str, Any]:
        left_out = ("lost", "folder", "ranker")
        return {"microscope": {r.ranker: {k: v for k, v in asdict(r).items() if k not in left_out} for r in self.rankers}}

    def printed(self) -> Mapping[str, Any]:
        """Nothing: they are curves, a number an iteration."""
        return {}

    @cached_property
    def figures(self) -> dict[str, str]:
        own = {f"{name}-{seen.ranker}": figure for seen in self.rankers for name, figure in inspection_figures(seen).items()}
        return {"measure-by-iteration": measure_figure(self.rankers), **own} if self.rankers else {}

    def artifacts(self, folder: Path) -> list[Artifact]:
        return [Artifact(Path(seen.folder) / LOST, f"lost-causes-{seen.ranker}.csv") for seen in self.rankers]

    def section(self) -> str:
        if not self.rankers:
            return ""
        return render(TEMPLATE, inspections=self.rankers, figures=self.figures.values(), shown=SHOWN)


class Microscope(Evidence):
    """What the λ's do while rankers learn (S figures 2–4), and the documents that stay lost; `rankers` empty: all trees and nets.

    After every so many trees or epochs: how λ of the measure `first` agrees with that of `second`, whence the forces on highly
    relevant documents come, which labels stand in the `top` ranks and how much moves there. `lost`: documents listed at the end.
    """

    key: ClassVar[str] = "microscope"
    rankers: list[str] = []
    every: int = Field(10, ge=1)
    first: str = "ndcg"
    second: str = "cndcg"
    top: int = Field(3, ge=1)
    lost: int = Field(100, ge=0)

    def inspected(self, config: RunConfig) -> list[str]:
        """Rankers that are looked at."""
        return self.rankers or [name for name, ranker in config.rankers.items() if ranker.core.stepwise]

    def check(self, config: RunConfig) -> None:
        ltr.Measure.of(self.first), ltr.Measure.of(self.second)
        config.require_ranker("microscope.rankers", *self.rankers)
        able = [kind for kind, core in ltr.KINDS.items() if core.stepwise]
        for name in self.rankers:
            if not config.rankers[name].core.stepwise:
                raise ValueError(f"microscope.rankers: {name!r} does not learn step by step; choose from: {', '.join(able)}")

    def adapt(self, config: RunConfig, ranker: str, written: Written) -> None:
        core = config.rankers[ranker].core
        if core.snapshots_from and core.iterations_from and ranker in self.inspected(config):
            snapshots = range(self.every, written[core.iterations_from], self.every)
            written[core.snapshots_from] = sorted({*written[core.snapshots_from], *snapshots})

    def gather(self, run: Gathering) -> Inspections:
        wanted = self.inspected(run.config)
        run.progress.begin("microscope", len(wanted))
        found = []
        for trained in run.on_first_fold(wanted):
            seen = inspect(trained, self, str(ltr.Measure.of(run.config.select)))
            found.append(seen)
            run.progress.done(
                f"{seen.ranker}: {number_of(len(seen.iteration), 'snapshot')}; {number_of(len(seen.lost), 'lost cause')} in {seen.folder}/{LOST}"
            )
        return Inspections(tuple(found))


register_evidence(Microscope)


@task(cache_policy=NO_CACHE, name="microscope", task_run_name="microscope {trained.ranker}")
def inspect(trained: Trained, config: Microscope, measure: str) -> Inspection:
    """Looks at the model of a cell along its training."""
    cell = trained.cell
    about = {
        "microscope": 1,
        "core": core_digest(),
        "train": cell.data.train,
        "test": cell.data.test,
        "conventions": cell.conventions,
        "measure": measure,
        "label": cell.ranker,
    }
    written = config.model_dump(mode="json", exclude={"rankers"})
    kept = CellFolder.of(trained.result.key)
    folder = kept.inspection(digest_of({**about, **written}))
    if not is_whole(folder):
        rules, train, test = (
            read_conventions(cell.conventions),
            retrieved_only(open_queries(cell.data.train)),
            open_queries(cell.data.test),
        )
        with made_whole(folder) as partial:
            found, lost = _inspected(ltr.load(kept.model), train, test, config, measure, rules)
            lost.write_csv(partial / LOST)
            write_json(partial / SNAPSHOTS, {**found, "ranker": cell.ranker, "lost": lost.rows(named=True)})
    read = json.loads((folder / SNAPSHOTS).read_text(encoding="utf-8"))
    return Inspection(**{**read, "lost": tuple(LostCause(**row) for row in read["lost"])}, folder=str(folder))


def _inspected(
    model: ltr.Ranker, train: Queries, test: Queries, config: Microscope, measure: str, rules: ltr.Conventions
) -> tuple[Mapping[str, Any], pl.DataFrame]:
    on_train: list[float] = []

    def measured() -> Iterator[tuple[int, Floats]]:
        """The stages, one in memory at a time."""
        for iteration, scores in model.stages(train.features, config.every):
            on_train.append(mean_measure(measure, train, scores, rules))
            yield iteration, scores

    seen = look(measured(), train, ltr.Term(config.first), config.second, config.top, rules)
    means = {
        "train": on_train,
        "test": [mean_measure(measure, test, ranked(own, test), rules) for _, own in model.stages(test.features, config.every)],
    }
    arrays = {name: _plain(getattr(seen, name)) for name in ("iteration", "labels", "partners", "top_labels", "moved", "moved_top")}
    agreement = {name: _plain(shares) for name, shares in seen.agreement.items()}
    return {**arrays, "agreement": agreement, "measure": measure, "top": config.top, **means}, _lost(seen, train, config.lost)


def _plain(values: NDArray[Any]) -> list[Any]:
    """An array as lists, None for NaN."""
    plain = values.astype(object)
    plain[np.isnan(values)] = None
    listed: list[Any] = plain.tolist()
    return listed


def _lost(seen: Snapshots, train: Queries, n: int) -> pl.DataFrame:
    """The hardest pushed documents, a `LostCause` a row."""
    rows = seen.lost_causes(n)
    of_query = train.of_query[rows]
    ids = train.ids[of_query] if train.ids is not None else np.array([f"{key:016x}".encode() for key in train.keys[of_query]])
    documents = (
        train.documents[rows] if train.documents is not None else np.array([str(p + 1).encode() for p in train.position[rows]])
    )
    return pl.DataFrame({
        "query": np.char.decode(ids, "utf-8", "backslashreplace"),
        "document": np.char.decode(documents, "utf-8", "backslashreplace"),
        "label": train.labels[rows],
        "rank": seen.rank[rows],
        "force": seen.gradient[rows],
        "smallest": seen.lost[rows],
    })  # fmt: skip


def measure_figure(inspections: Sequence[Inspection]) -> str:
    """The selecting measure on test queries against the number of trees or epochs, a line a ranker."""

    def draw(axes: Any) -> None:
        for k, seen in enumerate(inspections):
            axes.plot(seen.iteration, seen.test, **line(k), marker=".", linewidth=1.2, label=seen.ranker)
        axes.set(xlabel="trees or epochs", ylabel=f"{title_of(ltr.Measure.of(inspections[0].measure).key)}, test")
        whole_ticks(axes.xaxis)
        legend(axes)

    return svg(draw)


def inspection_figures(seen: Inspection) -> dict[str, str]:
    """What the microscope saw of a ranker, by name (S figures 2, 3a, 3b and 4)."""
    levels = [f"label {level:g}" for level in seen.labels]
    agreement = {"all": "all click pairs", "same_label": "same label, both clicked"}

    def by_level(rows: Sequence[Series]) -> dict[str, Sequence[float | None]]:
        return dict(zip(levels, zip(*rows, strict=True), strict=True))

    figures: dict[str, tuple[str, Mapping[str, Sequence[float | None]]]] = {
        "partners": ("share of λ by partner's label", by_level(seen.partners)),
        "top-labels": (f"share of the top {seen.top}", by_level(seen.top_labels)),
        "moves": ("moved since the last snapshot", {"all ranks": seen.moved, f"top {seen.top}": seen.moved_top}),
    }
    if seen.agreement:
        lines = {agreement[name]: shares for name, shares in seen.agreement.items()}
        figures = {"agreement": ("documents whose λ's agree", lines), **figures}

    def draw(axes: Any, ylabel: str, lines: Mapping[str, Sequence[float | None]]) -> None:
        for k, (label, values) in enumerate(lines.items()):
            points = [(i, v) for i, v in zip(seen.iteration, values, strict=True) if v is not None]
            if points:
                axes.plot(*zip(*points, strict=True), color=colour(k), marker=".", linewidth=1.2, label=label)
        axes.set(xlabel="trees or epochs", ylabel=ylabel)
        titled(axes, seen.ranker)
        whole_ticks(axes.xaxis)
        legend(axes)

    return {
        name: svg(partial(draw, ylabel=ylabel, lines=lines))
        for name, (ylabel, lines) in figures.items()
        if any(value is not None for values in lines.values() for value in values)
    }
