"""The guarantee: a ranker that gains on clicks is taken only where judged relevance is shown to be unharmed.

Promised on validation queries, where the cell is chosen; held against test queries, which no choice has seen.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE
from pydantic import Field

import ltr
from ltr.metrics import significance
from ltr.metrics.measure import Measure, lowest_of
from tasks.config.run_config import RunConfig, register_evidence
from tasks.evidence.drawing import INK, colour, legend, svg, title_of, titled
from tasks.evidence.protocol import Evidence, Found, Gathering, render, require_pairs, values_path
from tasks.evidence.significance import TierResult, tier_results, too_few_differ
from tasks.records import Fold, Trained, percent, point_title
from tasks.store.values import read_values, values_of

Values = list[NDArray[np.float64]]
"""Per-query values of each tier."""


@dataclass(frozen=True)
class Candidate:
    """A cell as the guarantee sees it.

    Attributes:
        label: of the cell.
        differences: to the baseline on validation queries, by tier.
        p: of harm, the largest of the protected tiers'; `holm_p`: corrected over the cells.
        admissible: shown to be harmless.
    """

    label: str
    differences: tuple[float, ...]
    p: float
    holm_p: float = 1.0
    admissible: bool = False


@dataclass(frozen=True)
class Promise:
    """Which of a fold's cells was taken (without an admissible one, the one nearest to it), and whether harmlessness is promised; `few`: that too
    few validation queries differ for it to be, in words."""

    chosen: str
    promised: bool
    cells: tuple[Candidate, ...]
    few: str = ""


@dataclass(frozen=True)
class Held:
    """Whether a promise held on test queries: ``yes`` where all protected tiers are shown to lose no more than the margin, ``no`` where
    one is shown to lose more, ``open`` otherwise; `few`: on which of them too few queries differ to show either, in words."""

    held: Literal["yes", "no", "open"]
    comparison: str
    tiers: tuple[TierResult, ...]
    few: str = ""


@dataclass(frozen=True)
class FrontierPoint:
    """A point of a grid on the first and the last tier: mean ``[2]``, and covariance ``[2, 2]`` of the mean paired difference over so many
    queries."""

    label: str
    taken: bool
    mean: list[float]
    covariance: list[list[float]]
    queries: int


@dataclass(frozen=True)
class Frontier:
    """Where the points of a grid and the baseline stand on validation queries of all folds; `tiers` are keys of the first and last."""

    baseline: list[float]
    points: tuple[FrontierPoint, ...]
    margin: float
    level: float
    tiers: tuple[str, str]


@dataclass(frozen=True)
class RankerGuarantee:
    """What came of the promises about one ranker, fold by fold."""

    ranker: str
    baseline: str
    margin: float
    level: float
    promises: tuple[Promise, ...]
    outcome: Held
    frontier: Frontier

    @property
    def is_promised(self) -> bool:
        """Whether harmlessness was promised in any fold."""
        return any(promise.promised for promise in self.promises)

    def as_json(self) -> dict[str, Any]:
        """What the promises came to, in numbers."""
        return {
            "baseline": self.baseline,
            "margin": self.margin,
            "level": self.level,
            "folds": [{"chosen": promise.chosen, "promised": promise.promised, "few": promise.few} for promise in self.promises],
            "held": self.outcome.held if self.is_promised else None,
            "few": self.outcome.few,
            "tiers": [asdict(tier) for tier in self.outcome.tiers],
        }

    def text(self) -> str:
        """What the promises came to, in words."""
        *protected, last = self.outcome.tiers
        n = sum(promise.promised for promise in self.promises)
        several = len(self.promises) > 1
        folds = f" in {n} of {len(self.promises)} folds" if several else ""
        told = [f" ({f'in fold {k}, ' if several else ''}{made.few})" for k, made in enumerate(self.promises, 1) if made.few]
        unshown = told[0] if told else ""
        made = f"promised{folds}" if n else f"not promised: no cell was shown to be harmless on validation queries{unshown}"
        held = {
            "yes": "confirmed on the test queries" if n else "the test queries show no such loss",
            "no": "broken on the test queries" if n else "the test queries show such a loss",
            "open": f"{'neither confirmed nor broken: ' if n else ''}the test queries do not decide it",
        }
        bounds = "; ".join(f"{title_of(t.measure)} {t.difference:+.4f}, at least {t.lower_bound:+.4f}" for t in protected)
        harm = f"no loss above {self.margin:g} on {' and '.join(title_of(t.measure) for t in protected)} ({percent(self.level)})"
        gain = f"{title_of(last.measure)} {last.difference:+.4f}: {last.meaning}"
        few = f": {self.outcome.few}" if self.outcome.few else ""
        return f"{harm}: {made}; {held[self.outcome.held]} ({bounds}{few}). {gain}."


TEMPLATE = """<h2>Guarantee</h2>
{% for g in guarantees %}<p><b>{{ g.ranker }}</b> against {{ g.baseline }}: {{ g.text() }}</p>{% endfor %}
<p class="soft"><b>Promised</b>: on the fold's validation queries some cell is shown to lose no more than the margin on any tier but the last,
and of such cells the one that gains most on the last tier was chosen; if there is none, the nearest one was. <b>Confirmed</b>: on the test
queries of all folds together, the lower bound of each of these tiers is above minus the margin; <b>broken</b>: a larger loss is shown on one.</p>
<div class="plots">{% for figure in figures %}<figure>{{ figure | safe }}</figure>{% endfor %}</div>
{% if figures %}<p class="soft">Means on validation queries; chosen cells are large. Ellipses are confidence regions of the true difference from the baseline (+). Left
of the dotted line the loss exceeds the margin.</p>{% endif %}
"""


@dataclass(frozen=True)
class Guarantees(Found):
    """What came of the promises about every ranker."""

    place: ClassVar[int] = 20
    rankers: tuple[RankerGuarantee, ...]

    def tags(self) -> dict[str, str]:
        return {f"guarantee.{g.ranker}": g.outcome.held if g.is_promised else "not promised" for g in self.rankers}

    def sentences(self) -> list[str]:
        return [f"{g.ranker} against {g.baseline}: {g.text()}" for g in self.rankers]

    def numbers(self) -> Mapping[str, Any]:
        return {"guarantee": {g.ranker: {"baseline": g.baseline, "said": g.text()} for g in self.rankers}}

    def printed(self) -> Mapping[str, Any]:
        """Of each ranker, the cells that were taken and whether harmlessness was promised fold by fold, and the bounds on test queries."""
        return {"guarantee": {g.ranker: g.as_json() for g in self.rankers}}

    @cached_property
    def figures(self) -> dict[str, str]:
        return {f"frontier-{g.ranker}": frontier_figure(g) for g in self.rankers}

    def section(self) -> str:
        return render(TEMPLATE, guarantees=self.rankers, figures=self.figures.values())


class Guarantee(Evidence):
    """What a ranker may not harm, and what it is to improve (S sections 1 and 4; SPEC's "tier one unharmed").

    `tiers` are measures, the most important first. Of each ranker's cells the one is chosen that gains most on the last tier over the
    chosen `baseline`, among those shown on validation queries to lose no more than `margin` on any other tier, at `level`
    (Holm's correction over the cells).
    """

    key: ClassVar[str] = "guarantee"
    baseline: str
    rankers: list[str] = []
    tiers: list[str] = Field(["ndcg_3", "cndcg_3"], min_length=2)
    margin: float = Field(0.005, ge=0)
    level: float = Field(0.95, gt=0.5, lt=1)

    def guaranteed(self, config: RunConfig) -> list[str]:
        """Rankers that are held against the baseline."""
        return [name for name in dict.fromkeys(self.rankers or config.alone) if name != self.baseline]

    def check(self, config: RunConfig) -> None:
        for measure in self.tiers:
            Measure.maximised(measure)
        config.require_ranker("guarantee.baseline", self.baseline)
        config.require_ranker("guarantee.rankers", *self.rankers)
        for name in (self.baseline, *self.guaranteed(config)):
            if config.rankers[name].on:
                raise ValueError(
                    f"guarantee: {name!r} is chosen on half of the validation queries and cannot be paired with others"
                )
        if not self.guaranteed(config):
            raise ValueError(f"guarantee: no ranker besides the baseline {self.baseline!r}")

    def measures(self) -> list[str]:
        return self.tiers

    def check_data(self, config: RunConfig, folds: tuple[Fold, ...]) -> None:
        """Each fold's validation queries, and the test queries of all folds, have to have two or more on which every tier is defined."""
        sets = [("validation", [fold.valid]) for fold in folds] + [("test", [fold.test for fold in folds])]
        for role, names in sets:
            require_pairs(self.key, self.tiers, role, names, config.core_conventions)

    def choose(self, run: Gathering) -> tuple[Trained, ...]:
        """The chosen cells, those of the guarantee's rankers by its rule."""
        taken = {
            (name, fold): made.chosen for name in self.guaranteed(run.config) for fold, made in self.promises(run, name).items()
        }
        by_rule = [t for t in run.cells if taken.get((t.ranker, t.fold)) == t.cell.label]
        others = [t for t in run.chosen if (t.ranker, t.fold) not in taken]
        order = {name: k for k, name in enumerate(run.config.rankers)}
        return tuple(sorted([*others, *by_rule], key=lambda t: (order[t.ranker], t.fold)))

    def promises(self, run: Gathering, name: str) -> dict[int, Promise]:
        """What is promised of a ranker, by fold."""
        return {fold: promise(self._files(run, name, fold), path, self) for fold, path in self._baseline_files(run).items()}

    def gather(self, run: Gathering) -> Guarantees:
        return Guarantees(tuple(self._of_ranker(run, name) for name in self.guaranteed(run.config)))

    def _of_ranker(self, run: Gathering, name: str) -> RankerGuarantee:
        baseline = self._baseline_files(run)
        promises = tuple(promise_task(self._files(run, name, fold), path, self) for fold, path in baseline.items())
        own = {t.cell.label: t for t in run.cells if t.ranker == name}
        chosen = [own[made.chosen] for made in promises]
        points: dict[str, dict[int, str]] = {}
        for trained in own.values():
            points.setdefault(point_title(trained.cell.point), {}).setdefault(trained.fold, values_path(trained))
        outcome = kept([values_path(trained) for trained in chosen], list(baseline.values()), self)
        drawn = frontier(points, {point_title(trained.cell.point) for trained in chosen}, baseline, self)
        return RankerGuarantee(name, self.baseline, self.margin, self.level, promises, outcome, drawn)

    def _baseline_files(self, run: Gathering) -> dict[int, str]:
        return {trained.fold: values_path(trained) for trained in run.chosen if trained.ranker == self.baseline}

    def _files(self, run: Gathering, name: str, fold: int) -> dict[str, str]:
        """Per-query values of a ranker's cells on one fold, by label; of those that a search drew twice once."""
        own = [t for t in run.cells if t.ranker == name and t.fold == fold]
        once = {t.result.key: t for t in reversed(own)}
        return {t.cell.label: values_path(t) for t in own if once[t.result.key] is t}


register_evidence(Guarantee)


def promise(paths: Mapping[str, str], baseline: str, rule: Guarantee) -> Promise:
    """`choice` among a ranker's cells by their per-query values on validation queries.

    Args:
        paths: for each cell's label its values; `baseline`: those it is held against.
    """
    return choice(
        {label: tier_values(path, "valid", rule) for label, path in paths.items()}, tier_values(baseline, "valid", rule), rule
    )


promise_task = task(cache_policy=NO_CACHE, name="guarantee", task_run_name="guarantee")(promise)


def choice(values: Mapping[str, Values], baseline: Values, rule: Guarantee) -> Promise:
    """Which cell gains most on the last tier without harm to the others."""
    found: list[Candidate] = []
    for label, own in values.items():
        tests = _tests(own, baseline, rule)
        gain = significance.paired_t(own[-1], baseline[-1]).difference
        harm = max(test.p_value for test in tests)
        found.append(Candidate(label, (*(test.difference for test in tests), gain), harm))
    adjusted = significance.holm([cell.p for cell in found])
    cells = tuple(replace(c, holm_p=float(p), admissible=bool(p < 1 - rule.level)) for c, p in zip(found, adjusted, strict=True))
    admissible = [cell for cell in cells if cell.admissible]
    best = max(admissible, key=lambda cell: cell.differences[-1]) if admissible else min(cells, key=_harm)
    return Promise(best.label, bool(admissible), cells, "" if admissible else _few(values[best.label], baseline, rule))


def _tests(own: Values, baseline: Values, rule: Guarantee) -> list[significance.NonInferiority]:
    """Whether a cell is shown to be harmless, on each of the protected tiers."""
    return [
        significance.non_inferior(a, b, rule.margin, rule.level, lowest)
        for a, b, lowest in zip(own[:-1], baseline[:-1], _lowest(rule)[:-1], strict=True)
    ]


def _few(own: Values, baseline: Values, rule: Guarantee) -> str:
    """That too few validation queries differ on the first tier where a cell is not shown to be harmless, in words; empty where enough do on one of
    these."""
    told = [
        too_few_differ(key, significance.differences(a, b), "validation")
        for key, a, b, test in zip(_keys(rule), own, baseline, _tests(own, baseline, rule), strict=False)
        if not test.holds
    ]
    return told[0] if told and all(told) else ""


def _harm(cell: Candidate) -> tuple[float, float]:
    """How far a cell is from being harmless: by its p, and where that says nothing of it, by what it loses on the tier that loses most. With few
    queries that differ p is of their number alone."""
    return min(cell.p, 0.5), -min(cell.differences[:-1])


@task(cache_policy=NO_CACHE, name="promise kept", task_run_name="promise kept")
def kept(challenger: Sequence[str], baseline: Sequence[str], rule: Guarantee) -> Held:
    """Whether a promise held on test queries, those of all folds together."""
    ours, theirs = (
        [np.concatenate(parts) for parts in zip(*(tier_values(path, "test", rule) for path in files), strict=True)]
        for files in (challenger, baseline)
    )
    tiers, comparison = significance.lexicographic(
        ours, theirs, [rule.margin] * (len(rule.tiers) - 1) + [0.0], rule.level, _lowest(rule)
    )
    protected = tiers[:-1]
    broken = any(tier.upper_bound < -rule.margin for tier in protected)
    shown = all(tier.lower_bound > -rule.margin or tier.verdict == "equal" for tier in protected)
    held: Literal["yes", "no", "open"] = "no" if broken else "yes" if shown else "open"
    undecided = [
        too_few_differ(key, significance.differences(a, b))
        for key, a, b, tier in zip(_keys(rule)[:-1], ours, theirs, protected, strict=False)
        if held == "open" and tier.lower_bound <= -rule.margin and tier.verdict != "equal"
    ]
    return Held(held, comparison, tier_results(_keys(rule), tiers), next(filter(None, undecided), ""))


def _keys(rule: Guarantee) -> list[str]:
    return [ltr.Measure.of(measure).key for measure in rule.tiers]


def _lowest(rule: Guarantee) -> list[float]:
    return [lowest_of(key) for key in _keys(rule)]


def tier_values(path: str, split: str, rule: Guarantee) -> Values:
    """Per-query values of each tier on one split of a cell."""
    frame = read_values(Path(path), split)
    return [values_of(frame, key) for key in _keys(rule)]


def frontier(
    points: Mapping[str, Mapping[int, str]], taken: Collection[str], baseline: Mapping[int, str], rule: Guarantee
) -> Frontier:
    """Where each point of a grid or a search stands on the first and the last tier, on validation queries of the folds that have it.

    Args:
        points: for each point's title the per-query values of its cells by fold.
        taken: titles of the chosen ones.
        baseline: its values by fold, of all folds.
    """

    def ends(paths: Sequence[str]) -> NDArray[np.float64]:
        return np.hstack([np.array([values[0], values[-1]]) for values in (tier_values(path, "valid", rule) for path in paths)])

    origin = np.nanmean(ends([*baseline.values()]), axis=1)
    found = []
    for label, paths in points.items():
        paired = ends([*paths.values()]) - ends([baseline[fold] for fold in paths])
        paired = paired[:, ~np.isnan(paired).any(axis=0)]
        n = paired.shape[1]
        mean = origin + (paired.mean(axis=1) if paired.size else np.nan)
        covariance = np.cov(paired) / n if n > 2 else np.full((2, 2), np.nan)  # of fewer, no ellipse
        found.append(FrontierPoint(label, label in taken, mean.tolist(), covariance.tolist(), n))
    keys = _keys(rule)
    return Frontier(origin.tolist(), tuple(found), rule.margin, rule.level, (keys[0], keys[-1]))


def _radius(n: int, level: float) -> float:
    """Of the ellipse of a mean difference of n queries, in standard errors (Hotelling 1931)."""
    from scipy import stats

    return float(np.sqrt(2 * (n - 1) / (n - 2) * stats.f.ppf(level, 2, n - 2)))


def frontier_figure(entry: RankerGuarantee) -> str:
    """The first tier against the last over a ranker's grid: means on validation queries, with the ellipses that hold the true paired
    difference to the baseline at the level, and the margin that must not be crossed."""
    found = entry.frontier
    angle = np.linspace(0, 2 * np.pi, 121)
    circle = np.array([np.cos(angle), np.sin(angle)])

    def draw(axes: Any) -> None:
        for k, point in enumerate(found.points):
            if np.isfinite(point.covariance).all():
                values, vectors = np.linalg.eigh(np.array(point.covariance))
                x, y = np.array(point.mean)[:, None] + vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * circle) * _radius(
                    point.queries, found.level
                )
                axes.plot(x, y, color=colour(k), linewidth=0.8, alpha=0.7)
            label = f"{point.label or entry.ranker}{', chosen' if point.taken else ''}" if len(found.points) <= 12 else None
            axes.plot(*point.mean, marker="o" if point.taken else ".", color=colour(k), linestyle="none", label=label)
        axes.plot(*found.baseline, marker="+", markersize=9, color=INK, linestyle="none", label=f"{entry.baseline}, the baseline")
        axes.axvline(found.baseline[0] - found.margin, color=INK, linewidth=0.7, linestyle=":", label="margin")
        axes.set(xlabel=f"{title_of(found.tiers[0])}, validation", ylabel=f"{title_of(found.tiers[1])}, validation")
        titled(axes, entry.ranker)
        legend(axes)

    return svg(draw)
