"""One page a run, self-contained: who is better and by how much, with what certainty, at an optimum or not, from which data."""

import html
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE
from scipy import stats

import ltr
from ltr.measures import fewer_is_better
from tasks.significance import marks

_COLOURS = ("#22577a", "#d1603d", "#38a3a5", "#8d6a9f", "#6b705c", "#c9a227")


@task(cache_policy=NO_CACHE, name="report", task_run_name="report")
def write_report(run: dict[str, Any], path: Path) -> Path:
    """Writes the page of a run; see `flows.pipeline` for what a run holds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    template = jinja2.Environment(autoescape=True, trim_blocks=True).from_string(
        Path(__file__).with_name("report.html").read_text()
    )
    path.write_text(template.render(**page(run)))
    return path


def page(run: Mapping[str, Any]) -> dict[str, Any]:
    """What the template shows, formatted."""
    standings = run["standings"]
    best = {m: best_mean(m, [row["cells"][m]["mean"] for row in standings["rows"].values()]) for m in standings["measures"]}
    verdicts = {c["ranker"]: c["verdict"] for c in run["certificates"]}
    return {
        "name": run["name"],
        "facts": run["facts"],
        "summary": run["summary"],
        "measures": [label_of(m) for m in standings["measures"]],
        "rows": [
            {
                "name": name,
                "letter": row["letter"],
                "verdict": verdicts.get(name),
                "cells": [_cell(row["cells"][m], best[m]) for m in standings["measures"]],
            }
            for name, row in standings["rows"].items()
        ],
        "n_folds": run["n_folds"],
        "conventions": "Conventions: " + ", ".join(f"{k} {v}" for k, v in run["conventions"].items()) + ".",
        "certificates": [
            {**c, "label": c["ranker"], "text": certificate_text(c), "figure": optimality_figure(c)} for c in run["certificates"]
        ],
        "optimality_measure": label_of(run["certificates"][0]["measure"]) if run["certificates"] else "",
        "promises": [{**p, "text": promise_text(p), "figure": frontier_figure(p)} for p in run["promises"]],
        "looks": [
            *filter(None, [measure_figure(run["looks"])]),
            *(figure for seen in run["looks"] for figure in look_figures(seen).values()),
        ],
        "lost": [
            {"ranker": seen["ranker"], "rows": seen["lost"][:20], "n": len(seen["lost"])} for seen in run["looks"] if seen["lost"]
        ],
        "curves": [
            *(figure for name, files in run["curves"].items() if (figure := curve_figure(name, files))),
            *pairs_figures(run["cells"], standings["measures"]),
            *(figure for name, files in run["curves"].items() if (figure := importance_figure(name, files))),
        ],
        "cells": [_row(cell, run["select"]) for cell in run["cells"]],
        "select": label_of(run["select"]),
        "pairs": standings["pairs"],
        "findings": run["findings"],
        "config": run["config"],
    }


def write_certificates(certificates: Sequence[Mapping[str, Any]], title: str, path: Path) -> Path:
    """A page of certificates alone: verdicts and figures."""
    parts = [
        f"<h2>{html.escape(c['ranker'])}: {c['verdict']}</h2><p>{html.escape(certificate_text(c))}</p>{optimality_figure(c)}"
        for c in certificates
    ]
    style = "body { font: 15px/1.5 system-ui, sans-serif; max-width: 760px; margin: 2rem auto; padding: 0 1rem } svg { max-width: 100% }"
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Local optimality</title><style>{style}</style>'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{head}<h1>Local optimality</h1><p>{html.escape(title)}</p>{''.join(parts)}</html>\n")
    return path


def write_plots(run: Mapping[str, Any], folder: Path) -> list[Path]:
    """The page's figures as files of their own: a training curve for each ranker, a plot for each certificate."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {f"curve-{name}": curve_figure(name, files) for name, files in run["curves"].items()}
    figures |= {f"importance-{name}": importance_figure(name, files) for name, files in run["curves"].items()}
    figures |= {f"{name}-{seen['ranker']}": figure for seen in run["looks"] for name, figure in look_figures(seen).items()}
    figures["measure-by-iteration"] = measure_figure(run["looks"])
    figures |= {f"frontier-{p['ranker']}": frontier_figure(p) for p in run["promises"]}
    figures |= {f"optimality-{re.sub(r'[^a-zA-Z0-9.]+', '-', c['ranker'])}": optimality_figure(c) for c in run["certificates"]}
    paths = []
    for name, figure in figures.items():
        if figure:
            paths.append(folder / f"{name}.svg")
            paths[-1].write_text(figure)
    return paths


def label_of(key: str) -> str:
    """``ndcg_10`` → ``NDCG@10``, as people write it."""
    name, _, rest = key.rpartition("_") if key[-1].isdigit() else (key, "", "")
    return f"{name.upper()}@{rest}" if rest else key.upper()


def certificate_text(certificate: Mapping[str, Any]) -> str:
    """What the test found, in one sentence."""
    c = certificate
    steps = f"{len(c['steps'])} steps of η from {c['steps'][0]:g} to {c['steps'][-1]:g} (‖w‖ = {c['norm']:.3g})"
    found = {
        "optimum": f"no direction rises: with confidence {1 - c['delta']:.0%} fewer than {c['epsilon']:.0%} do",
        "not": f"{c['rising']} {'direction rises' if c['rising'] == 1 else 'directions rise'}; at most {c['upper_bound']:.1%} of all do (confidence {1 - c['delta']:.0%})",
        "inconclusive": f"{c['tie_share']:.1%} of the evaluations tie, so that nothing rises says little",
    }[c["verdict"]]
    escape = ""
    if c.get("escape"):
        e = c["escape"]
        rises = "rises" if e["best"] > c["value"] else "does not rise"
        escape = f" Trained on for {e['epochs']} epochs it {rises}: {e['best']:.4f} at best (learning rate {e['rate']:g})."
    return f"{found}. {c['directions']} directions, {steps}; {label_of(c['measure'])} {c['value']:.4f} on the training queries.{escape}"


def promise_text(entry: Mapping[str, Any]) -> str:
    """What a promise came to, as the report and the terminal say it."""
    *protected, last = entry["tiers"]
    promised = [p["promised"] for p in entry["promises"]]
    folds = f" in {sum(promised)} of {len(promised)} folds" if len(promised) > 1 else ""
    made = f"promised{folds}" if any(promised) else "not promised, no cell is shown to be harmless on validation queries"
    held = {"yes": "shown on test queries", "no": "broken on test queries", "open": "neither shown nor broken on test queries"}
    bounds = "; ".join(f"{label_of(t['measure'])} {t['difference']:+.4f}, at least {t['lower_bound']:+.4f}" for t in protected)
    harm = f"no loss above {entry['margin']:g} on {' and '.join(label_of(t['measure']) for t in protected)} ({entry['level']:.0%})"
    return f"{harm}: {made}; {held[entry['held']]} ({bounds}). {label_of(last['measure'])} {last['difference']:+.4f}: {last['verdict']}."


def best_mean(key: str, means: Sequence[float | None]) -> float | None:
    """The highest of the means that are there, or the lowest where fewer is better."""
    given = [mean for mean in means if mean is not None]
    best = min if fewer_is_better(key) else max
    return best(given) if given else None


def _cell(cell: Mapping[str, Any], best: float | None) -> dict[str, Any]:
    if cell["mean"] is None:
        return {"mean": "–", "se": "–", "marks": "", "best": False}
    se = "–" if cell["se"] is None else f"{cell['se']:.4f}"
    return {"mean": f"{cell['mean']:.4f}", "se": se, "marks": marks(cell["beats"]), "best": cell["mean"] == best}


def _row(cell: Mapping[str, Any], select: str) -> dict[str, Any]:
    def shown(split: str) -> str:
        value = cell["metrics"].get(f"{split}_{select}")
        return "–" if value is None else f"{value:.4f}"

    return {
        "label": cell["label"],
        "chosen": cell["chosen"],
        "valid": shown("valid"),
        "test": shown("test"),
        "seconds": f"{cell['seconds']:.1f}",
        "digest": cell["digest"][:12],
        "remarks": "; ".join(cell.get("remarks", [])),
    }


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
