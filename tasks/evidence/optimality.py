"""Certificates of local optimality for trained models: kept beside their cells, or made for any model on any data."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE
from pydantic import Field

import ltr
from ltr.data.queries import Queries
from ltr.diagnostics.optimality import COARSE, EQUAL, FINE, NEAR
from ltr.rankers.base import digest_of as digest_of_arrays
from tasks.config.ranker_section import read_conventions
from tasks.config.run_config import RunConfig, register_evidence
from tasks.config.section import Written
from tasks.evidence.drawing import COLOURS, INK, legend, svg, title_of, titled
from tasks.evidence.protocol import Evidence, Found, Gathering, TableColumn, render
from tasks.records import Progress, Trained, number_of, percent
from tasks.store import state
from tasks.store.cells import CellFolder
from tasks.store.datasets import open_queries
from tasks.store.state import core_digest, digest_of, keep_json, kept_json
from tasks.training.how_far import certifying
from tasks.training.scoring import retrieved_only


@dataclass(frozen=True)
class Escape:
    """How far training went on from a place: the best training measure within so many epochs, and the learning rate that reached it."""

    epochs: int
    rate: float
    best: float


@dataclass(frozen=True)
class CertificateRecord:
    """A certificate (`ltr.Certificate`) as plain values, with what it is of.

    Attributes:
        ranker: and where it was looked at, and how.
        escape: of training that went on from there, where it was asked for.
        curves: of four directions; `envelope`: lowest and highest of all `directions`.
        key: of the cell, where there is one.
    """

    ranker: str
    escape: Escape | None
    verdict: str
    measure: str
    value: float
    steps: tuple[float, ...]
    relative: bool
    norm: float
    curves: list[list[float]]
    rising: int
    rising_or_tied: int
    tie_share: float
    upper_bound: float
    epsilon: float
    delta: float
    why: str
    envelope: list[list[float]]
    directions: int
    key: str | None = None
    one_at_a_time: bool = False

    @classmethod
    def of(cls, found: ltr.Certificate, ranker: str, escape: Escape | None) -> "CertificateRecord":
        """The record of a certificate."""
        curves = found.curves
        plain = {**asdict(found), "curves": curves[:4].tolist(), "directions": len(curves)}
        envelope = [np.min(curves, axis=0).tolist(), np.max(curves, axis=0).tolist()]
        return cls(ranker=ranker, escape=escape, envelope=envelope, **plain)

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> "CertificateRecord":
        """The record of plain values, as `as_json` gives them."""
        escape = written.get("escape")
        return cls(**{**written, "steps": tuple(written["steps"]), "escape": Escape(**escape) if escape else None})

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {name: value for name, value in asdict(self).items() if name != "key" or value is not None}

    @property
    def brief(self) -> str:
        """The verdict, and why there is none."""
        return f"{self.ranker}: {self.verdict}{f' ({self.why})' if self.verdict == 'inconclusive' else ''}"

    def text(self) -> str:
        """What the test found, in one sentence."""
        how = f"to {self.steps[-1]:g} of ‖w‖" if self.relative else f"to {self.steps[-1]:g}, absolute (‖w‖ = {self.norm:.3g})"
        steps = f"{number_of(len(self.steps), 'step')} from {self.steps[0]:g} {how}"
        rise = "direction rises" if self.rising == 1 else "directions rise"
        share, all_ways = f"{percent(1 - self.delta)}", f"{self.directions} ways to move one weight"
        found = {
            "optimum": f"none of the {all_ways} raises it; that says nothing about moving several at once"
            if self.one_at_a_time
            else f"no direction rises: with confidence {share} fewer than {percent(self.epsilon)} do",
            "not": f"{self.rising} of the {all_ways} {'raises' if self.rising == 1 else 'raise'} it"
            if self.one_at_a_time
            else f"{self.rising} {rise}; at most {self.upper_bound:.1%} of all do (confidence {share})",
            "inconclusive": f"{self.why}; {self.rising} {rise}",
        }[self.verdict]
        escape = ""
        if e := self.escape:
            rises = "rises" if e.best > self.value + EQUAL else "does not rise"
            escape = (
                f" Trained for {number_of(e.epochs, 'more epoch')}, it {rises}: {e.best:.4f} at best (learning rate {e.rate:g})."
            )
        at = f"{title_of(self.measure)} {self.value:.4f} on these queries"
        return f"{found}. {number_of(self.directions, 'direction')}, {steps}; {at}.{escape}"


TEMPLATE = """<h2>Local optimality</h2>
{% for c in certificates %}
<p><b>{{ c.ranker }}</b>: <span class="verdict {{ c.verdict }}">{{ c.verdict }}</span> {{ c.text() }}</p>
{% endfor %}
<div class="plots">{% for figure in figures %}<figure>{{ figure | safe }}</figure>{% endfor %}</div>
"""


@dataclass(frozen=True)
class Certificates(Found):
    """The certificates of a run; `rankers` are all of the run's, by name."""

    place: ClassVar[int] = 40
    of_first_fold: ClassVar[bool] = True
    found: tuple[CertificateRecord, ...]
    rankers: tuple[str, ...]

    def tags(self) -> dict[str, str]:
        return {f"optimality.{c.ranker}": c.verdict for c in self.found if c.ranker in self.rankers}

    def column(self) -> TableColumn | None:
        if not self.found:
            return None
        return TableColumn(f"optimum of {title_of(self.found[0].measure)}", {c.ranker: c.verdict for c in self.found})

    def numbers(self) -> Mapping[str, Any]:
        kept = ("ranker", "verdict", "why", "measure", "value", "norm", "rising", "directions", "tie_share", "one_at_a_time")
        return {
            "optimality": [
                {name: getattr(c, name) for name in kept}
                | {"upper_bound": None if c.one_at_a_time else c.upper_bound, "escape": asdict(c.escape) if c.escape else None}
                for c in self.found
            ]
        }

    @cached_property
    def figures(self) -> dict[str, str]:
        figures: dict[str, str] = {}
        for certificate in self.found:
            name = f"optimality-{re.sub(r'[^a-zA-Z0-9.]+', '-', certificate.ranker)}"
            alike = sum(other == name or other.startswith(f"{name}--") for other in figures)
            figures[f"{name}--{alike + 1}" if alike else name] = optimality_figure(certificate)
        return figures

    def section(self) -> str:
        return render(TEMPLATE, certificates=self.found, figures=self.figures.values()) if self.found else ""


class Optimality(Evidence):
    """The certificate of local optimality; `rankers` empty: every net and linear model. A ranker trained for another measure is
    looked at with this one too.

    `steps` are shares of ‖w‖; `absolute` also takes the papers' own, η = 0.1, 0.2, …, 1 whatever ‖w‖ is. `fine` also takes steps from
    0.001, of both kinds; `one_at_a_time` also moves each weight alone; `early_epochs` are kept of every net and looked at too; `escape`
    goes on training for the measure, so many epochs, from every place looked at. A net whose training had not come to rest is
    ``inconclusive``, whatever its directions say.
    """

    key: ClassVar[str] = "optimality"
    measure: str = "ndcg"
    rankers: list[str] = []
    epsilon: float = Field(0.01, gt=0, lt=1)
    delta: float = Field(0.01, gt=0, lt=1)
    steps: Annotated[tuple[Annotated[float, Field(gt=0, le=1)], ...], Field(min_length=1)] = NEAR
    absolute: bool = False
    fine: bool = False
    one_at_a_time: bool = False
    early_epochs: tuple[Annotated[int, Field(ge=1)], ...] = ()
    escape: int = Field(0, ge=0)

    def check(self, config: RunConfig) -> None:
        ltr.Measure.maximised(self.measure)
        config.require_ranker("optimality.rankers", *self.rankers)
        for name in self.rankers:
            ranker = config.rankers[name]
            if not ranker.core.has_weights:
                raise ValueError(f"optimality.rankers: {name!r} ({ranker.kind}) has no weights to move, so it cannot be certified")

    def decisive(self) -> list[str]:
        return [self.measure]

    def adapt(self, config: RunConfig, ranker: str, written: Written) -> None:
        if kept := config.rankers[ranker].core.snapshots_from:
            written[kept] = sorted({*written[kept], *self.early_epochs})

    def gather(self, run: Gathering) -> Certificates:
        certified = [name for name, ranker in run.config.rankers.items() if ranker.core.certified]
        wanted = self.rankers or certified
        with_epochs = sum(bool(run.config.rankers[name].core.snapshots_from) for name in wanted)
        run.progress.begin("optimality", len(wanted) * len(ways_of(self)) + with_epochs * len(set(self.early_epochs)))
        found: list[CertificateRecord] = []
        for trained in run.on_first_fold(wanted):
            own = certify(trained, self, run.config.seed, run.progress.done)
            found += [replace(certificate, key=trained.result.key) for certificate in own]
        return Certificates(tuple(found), tuple(run.config.rankers))


register_evidence(Optimality)


@task(cache_policy=NO_CACHE, name="optimality", task_run_name="optimality {trained.ranker}")
def certify(trained: Trained, config: Optimality, seed: int, done: Callable[[str], None]) -> list[CertificateRecord]:
    """Tests the model of a cell on its training queries, in every way that `config` asks for; the model's own certificate comes first. Each is kept beside
    the model (`kept_one_by_one`).
    """
    cell, folder = trained.cell, CellFolder.of(trained.result.key)
    asked = _digest_of_all(config, train=cell.data.train, conventions=cell.conventions, seed=seed, label=cell.ranker)

    def others(known: int) -> Iterator[CertificateRecord]:
        model, queries = ltr.load(folder.model), retrieved_only(open_queries(cell.data.train))
        return examine(model, queries, config, read_conventions(cell.conventions), seed, cell.ranker, known)

    return kept_one_by_one(folder.certificates(asked), others, done)


def certify_on(
    queries: Queries, name: str, model: ltr.Ranker, config: Optimality, conventions: ltr.Conventions, seed: int, progress: Progress
) -> list[CertificateRecord]:
    """Tests any model, on queries that the store has under a name, in every way that `config` asks for, and keeps each certificate (`kept_one_by_one`)."""
    whole = [digest_of_arrays(model.kind, model.arrays), model.parameters, model.names]
    asked = _digest_of_all(config, model=whole, queries=name, conventions=asdict(conventions), seed=seed)
    path = state.root() / "certificates" / f"{asked}.json"
    progress.begin(
        "optimality", len(ways_of(config)) + sum(model.snapshot(epoch) is not None for epoch in set(config.early_epochs))
    )
    return kept_one_by_one(path, lambda known: examine(model, queries, config, conventions, seed, model.kind, known), progress.done)


def _digest_of_all(config: Optimality, **about: Any) -> str:
    """What certificates depend on: what is asked, of what, and by which code."""
    return digest_of({"certificate": 5, "core": core_digest(), **about, **config.model_dump(mode="json", exclude={"rankers"})})


def kept_one_by_one(
    path: Path, others: Callable[[int], Iterator[CertificateRecord]], done: Callable[[str], None]
) -> list[CertificateRecord]:
    """The certificates that are kept at `path`, and `others` after so many: each is kept as soon as it is found, so that whoever is interrupted goes
    on with the next, and `done` hears of each."""
    kept = kept_json(path)
    if not isinstance(kept, dict) or "whole" not in kept:
        kept = {"found": [], "whole": False}
    found = [CertificateRecord.read(entry) for entry in kept["found"]]
    for certificate in found:
        done(certificate.brief)
    if not kept["whole"]:
        for certificate in others(len(found)):
            found.append(certificate)
            keep_json(path, {"found": [one.as_json() for one in found], "whole": False})
            done(certificate.brief)
        keep_json(path, {"found": [one.as_json() for one in found], "whole": True})
    return found


@dataclass(frozen=True)
class Way:
    """How a model's weights are moved: arguments of `ltr.certify`."""

    steps: tuple[float, ...]
    relative: bool = True
    one_at_a_time: bool = False


def ways_of(config: Optimality) -> dict[str, Way]:
    """The ways that are asked for, by what follows a ranker's name."""
    ways = {"": Way(config.steps)}
    if config.absolute:
        ways[", absolute steps"] = Way(COARSE, relative=False)
    if config.fine:
        ways[", steps from 0.001"] = Way(FINE)
    if config.fine and config.absolute:
        ways[", absolute steps from 0.001"] = Way(FINE, relative=False)
    if config.one_at_a_time:
        ways[", one weight at a time"] = Way(config.steps, one_at_a_time=True)
    return ways


def examine(
    model: ltr.Ranker, queries: Queries, config: Optimality, conventions: ltr.Conventions, seed: int, label: str, known: int = 0
) -> Iterator[CertificateRecord]:
    """Certificates of a model: at its weights, and where asked for with fine steps, one weight at a time, and at its early epochs; without the first, of
    which so many are known.

    With `config.escape`, training for the measure goes on from each place, and the record says how far it got.
    """
    options: dict[str, Any] = {"epsilon": config.epsilon, "delta": config.delta, "seed": seed}
    ways = ways_of(config)
    early = {f"{label}, epoch {epoch}": model.snapshot(epoch) for epoch in config.early_epochs}
    sites = {place: site for place, site in {label: model, **early}.items() if site is not None}
    looks = [(place, way) for place in sites for way in (ways if place == label else [""])]
    surface = lru_cache(1)(lambda place: sites[place].surface(queries.features))  # of a net all features, standardised
    for place, way in looks[known:]:
        site = sites[place]
        reached = site.escape(queries, config.measure, config.escape, conventions) if config.escape and not way else None
        with certifying(f"{place}{way}") as tick:
            found = ltr.certify(surface(place), queries, config.measure, conventions, **asdict(ways[way]), **options, tick=tick)
        if place == label and (why := site.unfinished):
            found = replace(found, verdict="inconclusive", why=why)
        yield CertificateRecord.of(found, f"{place}{way}", Escape(config.escape, *reached) if reached else None)


def everything(measure: str, epsilon: float, delta: float, escape: int = 0) -> Optimality:
    """Every way to look at one model."""
    kept = (7, 12)
    return Optimality(
        measure=measure,
        epsilon=epsilon,
        delta=delta,
        absolute=True,
        fine=True,
        one_at_a_time=True,
        early_epochs=kept,
        escape=escape,
    )


def optimality_figure(certificate: CertificateRecord) -> str:
    """The measure against η: four directions drawn, the envelope of all (D figures 1–4)."""

    def draw(axes: Any) -> None:
        eta = [0.0, *certificate.steps]
        low, high = ([certificate.value, *line] for line in certificate.envelope)
        axes.fill_between(
            eta, low, high, color=COLOURS[0], alpha=0.13, linewidth=0, label=f"all {certificate.directions} directions"
        )
        for k, line in enumerate(certificate.curves):
            label = f"direction {k + 1}"
            axes.plot(eta, [certificate.value, *line], color=COLOURS[k], linewidth=1.1, marker=".", markersize=3, label=label)
        axes.axhline(certificate.value, color=INK, linewidth=0.7, linestyle=":", label="the model")
        unit = "step along a unit direction, as a share of ‖w‖" if certificate.relative else "step η along a unit direction"
        axes.set(xlabel=unit, ylabel=f"{title_of(certificate.measure)}, training")
        titled(axes, certificate.ranker)
        legend(axes)

    return svg(draw)


_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Local optimality</title><style>body { font: 15px/1.5 system-ui, sans-serif; max-width: 760px; margin: 2rem auto; padding: 0 1rem } svg { max-width: 100% }</style><h1>Local optimality</h1><p>{{ title }}</p>{% for c, figure in found %}<h2>{{ c.ranker }}: {{ c.verdict }}</h2><p>{{ c.text() }}</p>{{ figure | safe }}{% endfor %}</html>
"""


def write_certificates(certificates: Sequence[CertificateRecord], title: str, path: Path) -> Path:
    """A page of certificates alone: verdicts and figures."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(_PAGE, title=title, found=[(c, optimality_figure(c)) for c in certificates]) + "\n", encoding="utf-8")
    return path
