"""What a run's searches came to, in sentences and figures: the best so far, all draws as parallel coordinates, and which parameters counted;
and where several rankers were searched, how high each was after how much training.

Optuna draws its figures with plotly; these are drawn as all of the page's are. Importances are PED-ANOVA's (Watanabe 2023), as Optuna
computes it: how far the draws of the best third differ from all in one parameter, as a share of that over all parameters. Optuna's own
choice is the best tenth, which are two or three of 27 draws: where one of five parameters counts, and values have a standard deviation of a tenth
of what it comes to, it was on top in 28 of 40 searches by the best tenth, and in 38 by the best third.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from tasks.config.search_section import Dimension, Space
from tasks.evidence.drawing import colour, legend, line, name_bars, svg, title_of, titled, whole_ticks
from tasks.evidence.guarantee import Guarantee
from tasks.records import Budget, Searched, Trial, number_of, point_title, time_of
from tasks.report.outcome import RunOutcome
from tasks.training.search import distribution_of, name_of

FEWEST = 20
"""Draws of which importances are told."""
BEST = 1 / 3
"""Share of the draws that are held against all."""


def search_sentences(outcome: RunOutcome) -> list[str]:
    """What was drawn, how much of it was trained to its end, and what time did."""
    told = [_sentence(outcome, ranker) for ranker in _rankers(outcome)]
    return told + ([_of_time(outcome.budget)] if outcome.budget else [])


def _sentence(outcome: RunOutcome, ranker: str) -> str:
    own = _of(outcome, ranker)
    trials = [trial for one in own for trial in one.trials]
    whole, faults = sum(trial.whole for trial in trials), [trial.fault for trial in trials if trial.fault]
    parts = [
        f"{ranker}: {number_of(len(trials), 'trial')}",
        f"{whole:,} trained to the end",
        f"{sum(t.seconds for t in trials):.0f} s of training",
    ]
    if faults:
        parts.append(f"{len(faults):,} could not be trained (the first: {faults[0]})")
    folds = {f"fold {one.fold + 1}: " if len(own) > 1 else "": best for one in own if (best := best_of(one))}
    best_ones = "; ".join(f"{fold}trial {best.number}{_how(outcome, ranker, best)}" for fold, best in folds.items())
    return f"{', '.join(parts)}. Best on validation: {best_ones}.{_as_written(outcome, ranker)}"


def _as_written(outcome: RunOutcome, ranker: str) -> str:
    """Where the ranker as written was chosen though another draw was better."""
    chosen = {trained.fold: trained.result.key for trained in outcome.chosen if trained.ranker == ranker}
    kept = [
        one.fold
        for one in _of(outcome, ranker)
        if (best := best_of(one)) and best.number > 1 and best.key != chosen.get(one.fold) == one.trials[0].key
    ]
    search = outcome.config.rankers[ranker].search
    guaranteed = [name for one in outcome.config.evidence if isinstance(one, Guarantee) for name in one.guaranteed(outcome.config)]
    if not kept or search is None or ranker in guaranteed:
        return ""
    on = f" on fold{'s' if len(kept) > 1 else ''} {', '.join(str(fold + 1) for fold in kept)}" if len(outcome.folds) > 1 else ""
    errors = f"{search.standard_errors:g} standard error{'' if search.standard_errors == 1 else 's'}"
    return f" The ranker as written (trial 1) was kept{on}: the best trial beats it by less than {errors}."


def _how(outcome: RunOutcome, ranker: str, best: Trial) -> str:
    settings = "as written" if best.number == 1 else point_title(best.settings)
    lengths = outcome.config.lengths(ranker)
    cut = "" if best.whole else f", after {best.looks[-1].iterations} of {lengths[-1]} iterations"
    return f" ({settings}{cut})"


def _of_time(budget: Budget) -> str:
    used = f"{time_of(budget.used)} of {time_of(budget.seconds)} used"
    if not budget.ended:
        return f"Searches: {used}; all trials were made."
    return f"Searches ended after {number_of(budget.cells, 'cell')}: {used}; the best of each was trained to its end. A repeated run stops at the same point."


def best_of(one: Searched) -> Trial | None:
    """The draw with the highest value, the first of equals; None where none could be trained."""
    return max((trial for trial in one.trials if trial.looks), key=lambda trial: trial.looks[-1].value, default=None)


def best_so_far(one: Searched) -> list[float]:
    """The highest value of the draws up to each one, ``[draws]``; NaN before the first."""
    values = np.array([np.nan if trial.value is None else trial.value for trial in one.trials])
    return [float(value) for value in np.fmax.accumulate(values)]


def by_time(own: Sequence[Searched]) -> tuple[list[float], list[float]]:
    """Seconds of training up to each draw of a ranker, and the highest value until then, both means over the folds."""
    draws = min(len(one.trials) for one in own)
    seconds = np.mean([np.cumsum([trial.seconds for trial in one.trials[:draws]]) for one in own], axis=0)
    values = np.mean([best_so_far(one)[:draws] for one in own], axis=0)
    return seconds.tolist(), values.tolist()


def importances(searches: Sequence[Searched], space: Space) -> dict[str, float]:
    """How much each parameter that is always drawn counted, shares that sum to 1, means over the folds; empty of too few draws, and where two
    thirds of them share the lowest value.

    Draws are compared after the shortest training, which all of them had but the ranker as written.
    """
    import optuna
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
    from optuna.trial import create_trial

    found: list[dict[str, float]] = []
    always = {path: dimension for path, dimension in space.items() if not dimension.when}
    for one in searches:
        looked_at = [trial for trial in one.trials if trial.looks]
        shortest = min((trial.looks[0].iterations for trial in looked_at), default=0)
        usable = [trial for trial in looked_at if trial.looks[0].iterations == shortest and _inside(trial, always)]
        if len(usable) < FEWEST or len(always) < 2:
            return {}
        study = optuna.create_study(direction="maximize")
        for trial in usable:
            names = {path: name_of(always[path], trial.settings[path]) for path in always}
            kinds = {path: distribution_of(dimension) for path, dimension in always.items()}
            study.add_trial(create_trial(params=names, distributions=kinds, value=trial.looks[0].value))
        values = sorted(trial.looks[0].value for trial in usable)
        if values[-math.ceil(BEST * len(values))] > values[0]:  # otherwise all are among the best
            found.append(get_param_importances(study, evaluator=PedAnovaImportanceEvaluator(target_quantile=BEST)))
    means = {path: float(np.mean([one[path] for one in found])) for path in always} if found else {}
    total = sum(means.values())
    return {path: mean / total for path, mean in sorted(means.items(), key=lambda item: -item[1])} if total > 0 else {}


def _inside(trial: Trial, space: Space) -> bool:
    return all(path in trial.settings and dimension.holds(trial.settings[path]) for path, dimension in space.items())


def search_figures(outcome: RunOutcome) -> dict[str, str]:
    """Figures of each search, SVG by name."""
    drawn: dict[str, str] = {}
    for ranker in _rankers(outcome):
        own, select = _of(outcome, ranker), title_of(outcome.config.select_of(ranker))
        space = outcome.config.rankers[ranker].space
        drawn[f"search-best-{ranker}"] = svg(partial(_draw_best, own, ranker, select))
        drawn[f"search-draws-{ranker}"] = svg(partial(_draw_draws, own, space, ranker, select))
        if counted := importances(own, space):
            drawn[f"search-importance-{ranker}"] = svg(partial(_draw_importance, counted, ranker))
    for select, rankers in _together(outcome).items():
        lines = {ranker: by_time(_of(outcome, ranker)) for ranker in rankers}
        drawn[f"searches-{select}"] = svg(partial(_draw_race, lines, title_of(select)))
    return drawn


def _together(outcome: RunOutcome) -> dict[str, list[str]]:
    """Measures by which several rankers were searched, and those rankers."""
    found: dict[str, list[str]] = {}
    for ranker in _rankers(outcome):
        found.setdefault(outcome.config.select_of(ranker), []).append(ranker)
    return {select: rankers for select, rankers in found.items() if len(rankers) > 1}


def search_metrics(outcome: RunOutcome) -> dict[str, float]:
    """Importances, as MLflow has them: ``search/trees/importance/learning_rate``."""
    return {
        f"search/{ranker}/importance/{path}": share
        for ranker in _rankers(outcome)
        for path, share in importances(_of(outcome, ranker), outcome.config.rankers[ranker].space).items()
    }


def search_curves(outcome: RunOutcome) -> dict[str, list[float]]:
    """The best validation value after each draw, mean over the folds, as MLflow has it: ``search/trees/best``."""
    curves = {}
    for ranker in _rankers(outcome):
        _, curves[f"search/{ranker}/best"] = by_time(_of(outcome, ranker))
    return curves


def _rankers(outcome: RunOutcome) -> list[str]:
    """Rankers of the run that were searched."""
    return [name for name in outcome.config.rankers if any(one.ranker == name for one in outcome.searches)]


def _of(outcome: RunOutcome, ranker: str) -> list[Searched]:
    return [one for one in outcome.searches if one.ranker == ranker]


def _draw_best(own: Sequence[Searched], ranker: str, select: str, axes: Any) -> None:
    for k, one in enumerate(own):
        numbers = [trial.number for trial in one.trials]
        axes.step(numbers, best_so_far(one), where="post", color=colour(k), linewidth=1.3, label=f"fold {one.fold + 1}")
        looked = [(trial.number, trial.value, trial.whole) for trial in one.trials if trial.value is not None]
        for whole, size in ((True, 10), (False, 3)):
            points = [(number, value) for number, value, is_whole in looked if is_whole is whole]
            if points:
                axes.scatter(*zip(*points, strict=True), s=size, color=colour(k), alpha=0.6, linewidths=0)
    axes.set(xlabel="trial; small: stopped early", ylabel=f"{select}, validation")
    whole_ticks(axes.xaxis)
    titled(axes, f"{ranker}: best so far")
    if len(own) > 1:
        legend(axes)


def _draw_race(lines: Mapping[str, tuple[Sequence[float], Sequence[float]]], select: str, axes: Any) -> None:
    for k, (ranker, (seconds, values)) in enumerate(lines.items()):
        axes.step(seconds, values, where="post", **line(k), linewidth=1.3, label=ranker)
    axes.set(xlabel="seconds of training per fold", ylabel=f"{select}, validation")
    titled(axes, "searches: best so far")
    legend(axes)


def _draw_draws(own: Sequence[Searched], space: Space, ranker: str, select: str, axes: Any) -> None:
    from matplotlib import colormaps

    trials = [trial for one in own for trial in one.trials if trial.value is not None]
    values = np.array([trial.value for trial in trials], np.float64)
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    heights = (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
    for k in np.argsort(heights, kind="stable"):
        places = np.array([*(_place(space[path], trials[k].settings.get(path)) for path in space), heights[k]])
        look = {"color": colormaps["viridis_r"](float(heights[k])), "alpha": 0.85 if trials[k].whole else 0.5}
        there = np.flatnonzero(~np.isnan(places))
        for a, b in pairwise(there.tolist()):
            axes.plot((a, b), places[[a, b]], "-" if b == a + 1 else ":", linewidth=1.2 if trials[k].whole else 0.6, **look)
    for k, dimension in enumerate(space.values()):
        axes.axvline(k, color="#c4ccd4", linewidth=0.8, zorder=0)
        for place, text in _marks(dimension):
            axes.text(k + 0.03, place, text, fontsize=7, va="center")
    axes.axvline(len(space), color="#c4ccd4", linewidth=0.8, zorder=0)
    for place, value in ((0.0, low), (1.0, high)):
        axes.text(len(space) + 0.03, place, f"{value:.4f}", fontsize=7, va="center")
    names = [path.replace("_", "_\u200b").replace(".", ".\u200b") for path in space]
    axes.set_xticks(range(len(space) + 1), [*names, f"{select},\nvalidation"], fontsize=7, rotation=20)
    axes.set(xlim=(-0.1, len(space) + 0.45), ylim=(-0.06, 1.06), yticks=[])
    axes.spines["left"].set_visible(False)
    titled(axes, f"{ranker}: trials; thin: stopped early")


def _place(dimension: Dimension, value: Any) -> float:
    """Where a value stands on its axis; NaN where it was not drawn, and at the nearest end where it lies beyond (of what was written)."""
    if value is None or (dimension.choice is not None and value not in dimension.choice):
        return float("nan")
    if dimension.choice is None and dimension.log and value <= 0:
        return 0.0
    return min(max(dimension.position(value), 0.0), 1.0)


def _marks(dimension: Dimension) -> list[tuple[float, str]]:
    """Places on an axis with what stands there."""
    if dimension.choice is not None:
        return [(dimension.position(value), str(value)) for value in dimension.choice]
    low, high = dimension.bounds
    return [(0.0, f"{low:g}"), (1.0, f"{high:g}")]


def _draw_importance(counted: dict[str, float], ranker: str, axes: Any) -> None:
    paths = list(counted)[::-1]
    axes.barh(range(len(paths)), [counted[path] for path in paths], color=colour(0), height=0.6)
    name_bars(axes, paths)
    axes.set(xlabel="share of importance (PED-ANOVA);\nshares sum to 1 even for noise")
    titled(axes, f"{ranker}: which parameters mattered")
