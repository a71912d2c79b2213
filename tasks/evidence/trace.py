"""How a conditional model's sample and its fit went: kept beside its cell."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE
from pydantic import model_serializer, model_validator

import ltr
from ltr.linear.conditional import ConditionalModel, trace
from tasks.config.run_config import RunConfig, register_evidence
from tasks.evidence.drawing import COLOURS, Draw, legend, svg, titled, whole_ticks
from tasks.evidence.protocol import Evidence, Found, Gathering, render
from tasks.records import Trained
from tasks.store.cells import CellFolder
from tasks.store.datasets import open_queries
from tasks.store.state import core_digest, digest_of, keep_json, kept_json
from tasks.training.scoring import retrieved_only


@dataclass(frozen=True)
class TraceRecord:
    """`ltr.linear.conditional.Trace` of a ranker as plain values."""

    ranker: str
    sampled: list[float]
    closed: list[float]
    products: list[float]
    losses: list[float]
    smear: dict[str, list[float]]

    @property
    def summary(self) -> Mapping[str, Any]:
        """Means of Δ by where walks begin, the correlation of w·φ and Δ (NaN where one of them does not vary), and the objectives at their first and
        last iteration."""
        vary = all(np.ptp(values) > 0 for values in (self.products, self.losses))
        return {
            "mean loss": {begin: float(np.mean(losses)) for begin, losses in self.smear.items()},
            "correlation": float(np.corrcoef(self.products, self.losses)[0, 1]) if vary else float("nan"),
            "sampled": [*self.sampled[:1], *self.sampled[-1:]],
            "closed": [*self.closed[:1], *self.closed[-1:]],
        }


TEMPLATE = """<h2>Samples and fits</h2>
<div class="plots">{% for figure in figures %}<figure>{{ figure | safe }}</figure>{% endfor %}</div>"""


@dataclass(frozen=True)
class Traces(Found):
    """The traces of a run."""

    place: ClassVar[int] = 60
    of_first_fold: ClassVar[bool] = True
    rankers: tuple[TraceRecord, ...]

    def numbers(self) -> Mapping[str, Any]:
        return {"trace": {seen.ranker: seen.summary for seen in self.rankers}}

    @cached_property
    def figures(self) -> dict[str, str]:
        return {f"{name}-{seen.ranker}": figure for seen in self.rankers for name, figure in trace_figures(seen).items()}

    def section(self) -> str:
        return render(TEMPLATE, figures=self.figures.values()) if self.rankers else ""


class Trace(Evidence):
    """Conditional models whose sample and fit are drawn; in a configuration a list of rankers."""

    key: ClassVar[str] = "trace"
    rankers: list[str] = []

    @model_validator(mode="before")
    @classmethod
    def _read_list(cls, written: Any) -> Any:
        return {"rankers": written} if isinstance(written, list) else written

    @model_serializer
    def _write_list(self) -> list[str]:
        return self.rankers

    def check(self, config: RunConfig) -> None:
        config.require_ranker("trace", *self.rankers)
        for name in self.rankers:
            if not issubclass(config.rankers[name].core, ConditionalModel):
                raise ValueError(f"trace: {name!r} is not a conditional model")

    def gather(self, run: Gathering) -> Traces:
        return Traces(tuple(traced(trained) for trained in run.on_first_fold(self.rankers)))


register_evidence(Trace)


@task(cache_policy=NO_CACHE, name="trace", task_run_name="trace {trained.ranker}")
def traced(trained: Trained) -> TraceRecord:
    """The trace of the model of a cell."""
    train, label, folder = trained.cell.data.train, trained.ranker, CellFolder.of(trained.result.key)
    path = folder.trace(digest_of([core_digest(), train, label]))
    kept = kept_json(path)
    if kept is None:
        model = ltr.load(folder.model)
        assert isinstance(model, ConditionalModel)
        seen = trace(model, retrieved_only(open_queries(train)))
        plain = {name: getattr(seen, name).tolist() for name in ("sampled", "closed", "products", "losses")}
        smear = {f"{begin:g}": losses.tolist() for begin, losses in seen.smear.items()}
        keep_json(path, {**plain, "smear": smear, "ranker": label})
        kept = kept_json(path)
    return TraceRecord(**kept)


def trace_figures(seen: TraceRecord) -> dict[str, str]:
    """Of a conditional model by name: the smear of Δ (C figure 7), w·φ against Δ (8), and the objective along its iterations."""

    def smear(axes: Any) -> None:
        for k, (begin, losses) in enumerate(seen.smear.items()):
            label = f"started with {float(begin):.0%} bad on top"
            axes.hist(losses, bins=25, range=(0, 1), histtype="step", density=True, color=COLOURS[k], label=label)
        axes.set(xlabel="Δ of the sampled rankings", ylabel="density")

    def scatter(axes: Any) -> None:
        axes.plot(seen.losses, seen.products, ".", color=COLOURS[0], markersize=4)
        axes.set(xlabel="Δ", ylabel="w·φ, first ten iterations")

    def objective(axes: Any) -> None:
        axes.plot(range(1, len(seen.sampled) + 1), seen.sampled, color=COLOURS[0], linewidth=1.2, label="over the sample")
        if seen.closed:
            axes.plot(range(1, len(seen.closed) + 1), seen.closed, color=COLOURS[1], linewidth=1.2, label="closed form")
        axes.set(xlabel="iteration", ylabel="objective")
        whole_ticks(axes.xaxis)

    def framed(draw: Draw) -> Draw:
        def drawn(axes: Any) -> None:
            draw(axes)
            titled(axes, seen.ranker)
            legend(axes)

        return drawn

    return {name: svg(framed(draw)) for name, draw in (("smear", smear), ("products", scatter), ("objective", objective))}
