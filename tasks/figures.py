"""Figures of a run as inline SVG, the same bytes for the same numbers; matplotlib is imported when the first one is drawn."""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import ltr
from ltr.objectives.pair_costs import COSTS

_COLOURS = ("#22577a", "#d1603d", "#38a3a5", "#8d6a9f", "#6b705c", "#c9a227")


def label_of(key: str) -> str:
    """``ndcg_10`` → ``NDCG@10``, as people write it."""
    name, _, rest = key.rpartition("_") if key[-1].isdigit() else (key, "", "")
    return f"{name.upper()}@{rest}" if rest else key.upper()


def _svg(draw: Any) -> str:
    """A figure as inline SVG, the same bytes for the same numbers."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib.figure import Figure

    with matplotlib.rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "lambdaflow", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    ):
        figure = Figure(figsize=(5.6, 3.3), layout="constrained")
        draw(figure.add_subplot())
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()[out.getvalue().index("<svg") :]


def optimality_figure(certificate: Mapping[str, Any]) -> str:
    """The measure against η: four directions drawn, the envelope of all (D figures 1–4)."""

    def draw(axes: Any) -> None:
        eta = [0.0, *certificate["steps"]]
        low, high = ([certificate["value"], *line] for line in certificate["envelope"])
        axes.fill_between(
            eta, low, high, color="#22577a", alpha=0.13, linewidth=0, label=f"all {certificate['directions']} directions"
        )
        for k, line in enumerate(certificate["curves"]):
            axes.plot(eta, [certificate["value"], *line], color=_COLOURS[k], linewidth=1.1, marker=".", markersize=3)
        axes.axhline(certificate["value"], color="#1b2430", linewidth=0.7, linestyle=":")
        axes.set(xlabel="step η along a unit direction", ylabel=f"{label_of(certificate['measure'])}, training")
        axes.set_title(certificate["ranker"], loc="left", fontweight="bold")
        axes.legend(frameon=False, loc="lower left")

    return _svg(draw)


def frontier_figure(entry: Mapping[str, Any]) -> str:
    """The first tier against the last over a ranker's grid: means on validation queries, with the ellipses that hold the true paired
    difference to the baseline at the level, and the margin that must not be crossed."""
    found = entry["frontier"]
    radius = np.sqrt(stats.chi2.ppf(found["level"], 2))
    angle = np.linspace(0, 2 * np.pi, 121)
    circle = radius * np.array([np.cos(angle), np.sin(angle)])

    def draw(axes: Any) -> None:
        points = found["points"]
        for k, point in enumerate(points):
            values, vectors = np.linalg.eigh(np.array(point["covariance"]))
            x, y = np.array(point["mean"])[:, None] + vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * circle)
            colour = _COLOURS[k % len(_COLOURS)]
            axes.plot(x, y, color=colour, linewidth=0.8, alpha=0.7)
            axes.plot(*point["mean"], marker="o" if point["taken"] else ".", color=colour)
            if len(points) <= 12:
                axes.annotate(point["label"], point["mean"], textcoords="offset points", xytext=(4, 4), fontsize=7, color=colour)
        axes.plot(*found["baseline"], marker="+", markersize=9, color="#1b2430", linestyle="none", label=entry["baseline"])
        axes.axvline(found["baseline"][0] - found["margin"], color="#1b2430", linewidth=0.7, linestyle=":", label="margin")
        axes.set(xlabel=f"{label_of(found['tiers'][0])}, validation", ylabel=f"{label_of(found['tiers'][1])}, validation")
        axes.set_title(entry["ranker"], loc="left", fontweight="bold")
        axes.legend(frameon=False)

    return _svg(draw)


def measure_figure(looks: Sequence[Mapping[str, Any]]) -> str | None:
    """The selecting measure on test queries against the number of trees or epochs, a line a ranker."""

    def draw(axes: Any) -> None:
        for k, seen in enumerate(looks):
            axes.plot(seen["iteration"], seen["test"], color=_COLOURS[k % len(_COLOURS)], linewidth=1.2, label=seen["ranker"])
        axes.set(xlabel="trees or epochs", ylabel=f"{label_of(ltr.Measure.of(looks[0]['measure']).key)}, test")
        axes.legend(frameon=False, loc="lower right")

    return _svg(draw) if looks else None


def look_figures(seen: Mapping[str, Any]) -> dict[str, str]:
    """What the microscope saw of a ranker, by name (S figures 2, 3a, 3b and 4)."""
    levels = [f"label {level:g}" for level in seen["labels"]]
    agreement = {"all": "all click pairs", "same_label": "same label, both clicked"}
    figures: dict[str, tuple[str, dict[str, Any]]] = {
        "partners": ("share of λ by partner's label", dict(zip(levels, zip(*seen["partners"], strict=True), strict=True))),
        "top-labels": (f"share of the top {seen['top']}", dict(zip(levels, zip(*seen["top_labels"], strict=True), strict=True))),
        "moves": ("moved since the look before", {"all ranks": seen["moved"], f"top {seen['top']}": seen["moved_top"]}),
    }
    if seen["agreement"]:
        lines = {agreement[name]: shares for name, shares in seen["agreement"].items()}
        figures = {"agreement": ("documents whose λ's agree", lines), **figures}

    def draw(axes: Any, ylabel: str, lines: Mapping[str, Sequence[float | None]]) -> None:
        for k, (label, values) in enumerate(lines.items()):
            points = [(i, v) for i, v in zip(seen["iteration"], values, strict=True) if v is not None]
            if points:
                axes.plot(*zip(*points, strict=True), color=_COLOURS[k % len(_COLOURS)], linewidth=1.2, label=label)
        axes.set(xlabel="trees or epochs", ylabel=ylabel)
        axes.set_title(seen["ranker"], loc="left", fontweight="bold")
        axes.legend(frameon=False)

    return {name: _svg(lambda axes, about=about: draw(axes, *about)) for name, about in figures.items()}


def objective_figures(objectives: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """How scheduled weights grow (S figure 6), and what several pair costs pull with at every distance (S figure 5)."""
    scheduled = {label: about["weights"] for label, about in objectives.items() if about["weights"]}
    distinct = {json.dumps(weights): label for label, weights in reversed(scheduled.items())}
    costs = sorted({cost for about in objectives.values() for cost in about["costs"]})
    distance = np.linspace(-8, 8, 321)

    def draw_weights(axes: Any) -> None:
        for k, (weights, label) in enumerate(reversed(distinct.items())):
            last = [row[-1] for row in json.loads(weights)]
            axes.plot(range(len(last)), last, color=_COLOURS[k % len(_COLOURS)], linewidth=1.1, label=label)
        axes.set(xlabel="iteration", ylabel="weight of the last term")
        if len(distinct) <= 10:
            axes.legend(frameon=False, fontsize=7)

    def draw_costs(axes: Any) -> None:
        for k, cost in enumerate(costs):
            slope, bend = np.empty(len(distance)), np.empty(len(distance))
            COSTS[cost](0, 1.0, distance, slope, bend)
            axes.plot(distance, slope, color=_COLOURS[k % len(_COLOURS)], linewidth=1.2, label=cost)
        axes.set(xlabel="score of the better document less that of the other", ylabel="pull of a pair, |ΔM| = 1")
        axes.legend(frameon=False)

    return [*([_svg(draw_weights)] if distinct else []), *([_svg(draw_costs)] if len(costs) > 1 else [])]


def trace_figures(seen: Mapping[str, Any]) -> dict[str, str]:
    """Of a conditional model by name: the smear of Δ (C figure 7), w·φ against Δ (8), and the objective along its iterations."""

    def smear(axes: Any) -> None:
        for k, (begin, losses) in enumerate(seen["smear"].items()):
            axes.hist(
                losses,
                bins=25,
                range=(0, 1),
                histtype="step",
                density=True,
                color=_COLOURS[k],
                label=f"begun at {float(begin):.0%} bad on top",
            )
        axes.set(xlabel="Δ of the rankings drawn", ylabel="density")

    def scatter(axes: Any) -> None:
        axes.plot(seen["losses"], seen["products"], ".", color=_COLOURS[0], markersize=4)
        axes.set(xlabel="Δ", ylabel="w·φ, first ten iterations")

    def objective(axes: Any) -> None:
        axes.plot(range(1, len(seen["sampled"]) + 1), seen["sampled"], color=_COLOURS[0], linewidth=1.2, label="over the sample")
        if seen["closed"]:
            axes.plot(range(1, len(seen["closed"]) + 1), seen["closed"], color=_COLOURS[1], linewidth=1.2, label="closed form")
        axes.set(xlabel="iteration", ylabel="objective")

    def titled(draw: Any) -> Any:
        def drawn(axes: Any) -> None:
            draw(axes)
            axes.set_title(seen["ranker"], loc="left", fontweight="bold")
            if axes.get_legend_handles_labels()[0]:
                axes.legend(frameon=False)

        return drawn

    return {name: _svg(titled(draw)) for name, draw in (("smear", smear), ("products", scatter), ("objective", objective))}


def swept_figures(cells: Sequence[Mapping[str, Any]], path: str | None, measures: Sequence[str], select: str) -> list[str]:
    """Each test measure against a swept parameter, of each ranker's cell that is best on validation queries at that value, mean over the
    folds (S figure 7, C figures 4–6)."""
    swept = [cell for cell in cells if path in cell["point"]]
    rankers = list(dict.fromkeys(cell["ranker"] for cell in swept))

    def best(ranker: str, value: Any) -> Sequence[Mapping[str, float]]:
        own = [c for c in swept if c["ranker"] == ranker and c["point"][path] == value]
        folds = {c["fold"] for c in own}
        return [max((c["metrics"] for c in own if c["fold"] == fold), key=lambda m: m[f"valid_{select}"]) for fold in sorted(folds)]

    def draw(axes: Any, measure: str) -> None:
        for k, ranker in enumerate(rankers):
            values = list(dict.fromkeys(c["point"][path] for c in swept if c["ranker"] == ranker))
            means = [float(np.mean([m[f"test_{measure}"] for m in best(ranker, value)])) for value in values]
            axes.plot(values, means, color=_COLOURS[k % len(_COLOURS)], marker="o", markersize=3, linewidth=1.1, label=ranker)
        axes.set(xlabel=str(path), ylabel=f"{label_of(measure)}, test")
        axes.legend(frameon=False)

    return [_svg(lambda axes, m=measure: draw(axes, m)) for measure in measures] if swept else []


def pairs_figures(cells: Sequence[Mapping[str, Any]], measures: Sequence[str]) -> list[str]:
    """Effective pairs of a cell, mean over its epochs, against each test measure (D figure 5); none where fewer than two counted."""
    counted = [cell for cell in cells if "effective_pairs" in cell["metrics"]]
    rankers = list(dict.fromkeys(cell["ranker"] for cell in counted))

    def draw(axes: Any, measure: str) -> None:
        for k, ranker in enumerate(rankers):
            own = [c["metrics"] for c in counted if c["ranker"] == ranker and f"test_{measure}" in c["metrics"]]
            points = sorted((m["effective_pairs"], m[f"test_{measure}"]) for m in own)
            axes.plot(
                *zip(*points, strict=True), color=_COLOURS[k % len(_COLOURS)], marker="o", markersize=4, linewidth=1, label=ranker
            )
        axes.set(xscale="log", xlabel="effective pairs per epoch", ylabel=f"{label_of(measure)}, test")
        axes.legend(frameon=False)

    if len(counted) < 2:
        return []
    return [_svg(lambda axes, m=measure: draw(axes, m)) for measure in measures]


def curve_figure(name: str, files: Sequence[str]) -> str | None:
    """The selecting measure along training, a line a fold."""
    curves = [json.loads(Path(file).read_text()) for file in files if Path(file).is_file()]
    curves = [curve for curve in curves if curve["iteration"]]
    if not curves:
        return None

    def draw(axes: Any) -> None:
        for k, curve in enumerate(curves):
            for split, style in (("train", "-"), ("valid", "--")):
                points = [(i, v) for i, v in zip(curve["iteration"], curve[split], strict=True) if v is not None]
                if points:
                    label = {"train": "training", "valid": "validation"}[split] if k == 0 else None
                    axes.plot(*zip(*points, strict=True), style, color=_COLOURS[k % len(_COLOURS)], linewidth=1.2, label=label)
        axes.set(xlabel="iteration", ylabel=label_of(curves[0]["measure"]))
        axes.set_title(name, loc="left", fontweight="bold")
        axes.legend(frameon=False, loc="lower right")

    return _svg(draw)


def importance_figure(name: str, files: Sequence[str], most: int = 15) -> str | None:
    """The features that trees gained most by: shares of the gain, mean over the folds, whose curves lie beside."""
    beside = [Path(file).with_name("importance.json") for file in files]
    found = [json.loads(path.read_text()) for path in beside if path.is_file()]
    shares = [{f: g / sum(one["gain"]) for f, g in zip(one["features"], one["gain"], strict=True) if g > 0} for one in found]
    means = {f: sum(share.get(f, 0.0) for share in shares) / len(shares) for f in sorted({f for share in shares for f in share})}
    if not means:
        return None
    top = sorted(means, key=lambda f: -means[f])[:most][::-1]

    def draw(axes: Any) -> None:
        axes.barh(top, [means[f] for f in top], color=_COLOURS[0], height=0.6)
        axes.set(xlabel="share of the gain")
        axes.set_title(name, loc="left", fontweight="bold")

    return _svg(draw)
