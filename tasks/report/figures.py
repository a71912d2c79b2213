"""Figures of a run: what was swept, curves, effective pairs, importances and objectives. Those of its evidence stand with the evidence."""

import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ltr.objectives.pair_costs import COSTS
from tasks.evidence.drawing import COLOURS, INK, colour, legend, line, log_ticks, name_bars, svg, title_of, titled, whole_ticks
from tasks.records import Trained
from tasks.report.outcome import ObjectiveShape
from tasks.store.cells import CellFolder, read_curve, read_importance, read_position_bias


def objective_figures(objectives: Mapping[str, ObjectiveShape]) -> list[str]:
    """How scheduled weights grow (S figure 6), and what several pair costs pull with at every distance (S figure 5)."""
    scheduled = {label: shape.weights for label, shape in objectives.items() if shape.weights}
    distinct = {weights: label for label, weights in reversed(scheduled.items())}
    costs = sorted({cost for shape in objectives.values() for cost in shape.costs})
    distance = np.linspace(-8, 8, 321)

    def draw_weights(axes: Any) -> None:
        for k, (weights, label) in enumerate(reversed(distinct.items())):
            last = [row[-1] for row in weights]
            axes.plot(range(len(last)), last, color=colour(k), linewidth=1.1, label=label)
        axes.set(xlabel="iteration", ylabel="weight of the last term")
        whole_ticks(axes.xaxis)
        if len(distinct) <= 10:
            legend(axes)

    def draw_costs(axes: Any) -> None:
        for k, cost in enumerate(costs):
            slope, bend = np.empty(len(distance)), np.empty(len(distance))
            COSTS[cost](0, 1.0, float(np.ptp(distance)), distance, slope, bend)
            axes.plot(distance, slope, color=colour(k), linewidth=1.2, label=cost)
        axes.set(xlabel="score of the better document minus that of the other", ylabel="pull of a pair, |ΔM| = 1")
        legend(axes)

    return [*([svg(draw_weights)] if distinct else []), *([svg(draw_costs)] if len(costs) > 1 else [])]


def swept_figures(drawn: Sequence[Trained], path: str | None, measures: Sequence[str]) -> list[str]:
    """Each test measure against a swept parameter, mean over the folds (S figure 7, C figures 4–6). Values that are no numbers stand side by side.

    Args:
        drawn: each ranker's cell at each value and fold (`RunOutcome.drawn`).
    """
    rankers = list(dict.fromkeys(trained.ranker for trained in drawn))
    of_all = [t.cell.point[str(path)] for t in drawn]
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in of_all)

    def shown(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value)

    def draw(axes: Any, measure: str) -> None:
        for k, ranker in enumerate(rankers):
            values = [*{repr(value): value for t in drawn if t.ranker == ranker for value in [t.cell.point[str(path)]]}.values()]
            if numbers:
                values.sort()  # in the order of a grid or a search the line would run to and fro
            means = [
                _mean(
                    [
                        t.result.metrics.get(f"test_{measure}")
                        for t in drawn
                        if t.ranker == ranker and t.cell.point[str(path)] == value
                    ]
                )
                for value in values
            ]
            axes.plot(
                values if numbers else [shown(value) for value in values],
                means,
                **line(k),
                marker="o",
                markersize=3,
                linewidth=1.1,
                label=ranker,
            )
        axes.set(xlabel=str(path), ylabel=f"{title_of(measure)}, test")
        if numbers and min(of_all) > 0 and max(of_all) > 20 * min(of_all):
            axes.set(xscale="log")
            log_ticks(axes.xaxis, min(of_all), max(of_all))
        legend(axes)

    return [svg(partial(draw, measure=measure)) for measure in measures] if drawn else []


def _mean(values: Sequence[float | None]) -> float:
    """Over the folds where the measure is defined; NaN, which is not drawn, where it is on none."""
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else math.nan


def pairs_figures(cells: Sequence[Trained], measures: Sequence[str]) -> list[str]:
    """Effective pairs of a cell, mean over its epochs, against each test measure (D figure 5); none where fewer than two counted."""
    counted = [trained for trained in cells if "effective_pairs" in trained.result.metrics]
    rankers = list(dict.fromkeys(trained.ranker for trained in counted))
    pairs = [trained.result.metrics["effective_pairs"] for trained in counted]

    def draw(axes: Any, measure: str) -> None:
        for k, ranker in enumerate(rankers):
            own = [t.result.metrics for t in counted if t.ranker == ranker and f"test_{measure}" in t.result.metrics]
            points = sorted((m["effective_pairs"], m[f"test_{measure}"]) for m in own)
            axes.plot(*zip(*points, strict=True), **line(k), marker="o", markersize=4, linewidth=1, label=ranker)
        axes.set(xscale="log", xlabel="effective pairs per epoch", ylabel=f"{title_of(measure)}, test")
        log_ticks(axes.xaxis, min(pairs), max(pairs))
        legend(axes)

    if len(counted) < 2:
        return []
    return [svg(partial(draw, measure=measure)) for measure in measures]


def curve_figure(name: str, folders: Sequence[CellFolder]) -> str | None:
    """The measure that training stops on, a line a fold."""
    found = {fold: read_curve(folder.curve) for fold, folder in enumerate(folders)}
    curves = {fold: curve for fold, curve in found.items() if curve is not None and curve.iteration}
    if not curves:
        return None

    def draw(axes: Any) -> None:
        drawn: dict[str, dict[str, str]] = {}
        for fold, curve in curves.items():
            for title, values, style in (("training", curve.train, "-"), ("validation", curve.valid, "--")):
                points = [(i, v) for i, v in zip(curve.iteration, values, strict=True) if v is not None]
                if points:
                    axes.plot(*zip(*points, strict=True), style, marker=".", markersize=3, color=colour(fold), linewidth=1.2)
                    drawn[title] = {"linestyle": style, "color": INK}
        measures = {fold: title_of(str(curve.measure)) for fold, curve in curves.items()}
        axes.set(xlabel="iteration", ylabel=" and ".join(dict.fromkeys(measures.values())))
        whole_ticks(axes.xaxis)
        titled(axes, f"{name}: curves")
        legend(axes, {**drawn, **(_of_folds(measures) if len(folders) > 1 else {})})

    return svg(draw)


def _of_folds(shown: Mapping[int, str]) -> dict[str, dict[str, str]]:
    """Folds in a legend; with what their lines show, where that is not the same of all: a sweep may choose another in each."""
    one = len(set(shown.values())) == 1
    return {f"fold {fold + 1}{'' if one else f', {what}'}": {"color": colour(fold)} for fold, what in shown.items()}


_BIASES = {
    "propensity": "examination probability (propensity)",
    "t_plus": "t⁺",
    "t_minus": "t⁻",
    "bias": "bias of a rank, in scores",
}


def position_bias_figure(name: str, folders: Sequence[CellFolder]) -> str | None:
    """What was learned of each rank from clicks, a line a fold."""
    read = {fold: read_position_bias(folder.position_bias) for fold, folder in enumerate(folders)}
    found = {fold: one.by_rank for fold, one in read.items() if one is not None}
    if not found:
        return None

    def draw(axes: Any) -> None:
        drawn: dict[str, dict[str, str]] = {}
        shown = {}
        for fold, sides in found.items():
            named = [(side, sides[side]) for side in _BIASES if side in sides]
            for (side, values), style in zip(named, ("-", "--"), strict=False):
                axes.plot(range(1, len(values) + 1), values, style, marker=".", markersize=4, color=colour(fold), linewidth=1.2)
                drawn[_BIASES[side]] = {"linestyle": style, "color": INK}
            shown[fold] = " and ".join(_BIASES[side] for side, _ in named)
        axes.set(xlabel="rank", ylabel=textwrap.fill(" and ".join(drawn), 40))
        whole_ticks(axes.xaxis)
        titled(axes, f"{name}: position bias taken out of clicks")
        legend(axes, {**(drawn if len(drawn) > 1 else {}), **(_of_folds(shown) if len(folders) > 1 else {})})

    return svg(draw)


def position_bias_lines(folders: Mapping[str, Sequence[CellFolder]]) -> dict[str, list[float]]:
    """What chosen cells of each ranker learned of ranks, mean over its folds, as MLflow has it: ``position_bias/trees/propensity``."""
    lines = {}
    for ranker, own in folders.items():
        found = [one.by_rank for folder in own if (one := read_position_bias(folder.position_bias)) is not None]
        for side in dict.fromkeys(side for one in found for side in one):
            sides = [one[side] for one in found if side in one]
            lines[f"position_bias/{ranker}/{side}"] = [float(np.mean(of_rank)) for of_rank in zip(*sides, strict=False)]
    return lines


def importance_figure(name: str, folders: Sequence[CellFolder], most: int = 15) -> str | None:
    """The features that trees gained most by: shares of the gain, mean over the folds."""
    found = [one for folder in folders if (one := read_importance(folder.importance)) is not None]
    shares = [{f: g / sum(one.gain) for f, g in zip(one.features, one.gain, strict=True) if g > 0} for one in found]
    means = {f: sum(share.get(f, 0.0) for share in shares) / len(shares) for f in sorted({f for share in shares for f in share})}
    if not means:
        return None
    top = sorted(means, key=lambda f: -means[f])[:most][::-1]

    def draw(axes: Any) -> None:
        axes.barh(range(len(top)), [means[f] for f in top], color=COLOURS[0], height=0.6)
        name_bars(axes, top)
        axes.set(xlabel="share of the gain")
        titled(axes, f"{name}: features")

    return svg(draw)
