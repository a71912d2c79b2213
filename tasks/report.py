"""One page a run, self-contained: who is better and by how much, with what certainty, at an optimum or not, from which data."""

import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.metrics.measure import fewer_is_better
from tasks.champion import champion_text, moved
from tasks.figures import (
    curve_figure,
    frontier_figure,
    importance_figure,
    label_of,
    look_figures,
    measure_figure,
    objective_figures,
    optimality_figure,
    pairs_figures,
    swept_figures,
    trace_figures,
)
from tasks.significance import marks


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
        "champion": run["champion"]
        and {
            "text": champion_text(run["champion"], run["champion"]["ranker"]),
            "tiers": [{**tier, "label": label_of(tier["measure"])} for tier in run["champion"]["tiers"]],
            "moved": moved(run["champion"]),
        },
        "segments": _segments(run["segments"]) if run["segments"] else None,
        "promises": [{**p, "text": promise_text(p), "figure": frontier_figure(p)} for p in run["promises"]],
        "looks": [
            *filter(None, [measure_figure(run["looks"])]),
            *(figure for seen in run["looks"] for figure in look_figures(seen).values()),
        ],
        "lost": [
            {"ranker": seen["ranker"], "rows": seen["lost"][:20], "n": len(seen["lost"])} for seen in run["looks"] if seen["lost"]
        ],
        "objectives": objective_figures(run["objectives"]),
        "traces": [figure for seen in run["traces"] for figure in trace_figures(seen).values()],
        "curves": [
            *swept_figures(run["cells"], run["plot_by"], standings["measures"], run["select"]),
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
    figures |= {f"{name}-{seen['ranker']}": figure for seen in run["traces"] for name, figure in trace_figures(seen).items()}
    figures["measure-by-iteration"] = measure_figure(run["looks"])
    figures |= {f"frontier-{p['ranker']}": frontier_figure(p) for p in run["promises"]}
    figures |= {f"optimality-{re.sub(r'[^a-zA-Z0-9.]+', '-', c['ranker'])}": optimality_figure(c) for c in run["certificates"]}
    paths = []
    for name, figure in figures.items():
        if figure:
            paths.append(folder / f"{name}.svg")
            paths[-1].write_text(figure)
    return paths


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


def segments_text(found: Mapping[str, Any]) -> str:
    """Which segments differ after Holm's correction, as the report and the terminal say it."""
    tested = [row for row in found["segments"] if row["holm_p"] is not None]
    sure = sorted((row for row in tested if row["holm_p"] < 0.05), key=lambda row: row["holm_p"])
    named = [f"{row['ranker']} on {row['attribute']} {row['value']} {row['difference']:+.4f}" for row in sure[:5]]
    named += [f"{len(sure) - 5} more"] if len(sure) > 5 else []
    shown = f": {', '.join(named)}" if named else ""
    return f"{label_of(found['measure'])} against {found['baseline']}: {len(sure)} of {len(tested)} tests by segment differ at 95 %{shown}."


def changed_text(entry: Mapping[str, Any]) -> str:
    """How many queries a ranker harms and helps."""
    return (
        f"{entry['ranker']} against {entry['baseline']}, {label_of(entry['measure'])}: {entry['n_helped']} queries helped, "
        f"{entry['n_harmed']} harmed, {entry['n_same']} the same."
    )


SEGMENTS_SHOWN = 30
"""Segments of an attribute in the report; the largest ones stand first, and all are in the table beside it."""


def _segments(found: Mapping[str, Any]) -> dict[str, Any]:
    by: dict[str, list[Any]] = {}
    for row in found["segments"]:
        sure = row["holm_p"] is not None and row["holm_p"] < 0.05
        better = row["difference"] is not None and (row["difference"] > 0) != fewer_is_better(found["measure"])
        by.setdefault(row["attribute"], []).append({**row, "mark": ("better" if better else "worse") if sure else ""})
    left_out = {name: len(rows) - SEGMENTS_SHOWN for name, rows in by.items() if len(rows) > SEGMENTS_SHOWN}
    return {
        "text": segments_text(found),
        "measure": label_of(found["measure"]),
        "baseline": found["baseline"],
        "fewest": found["fewest"],
        "attributes": {name: rows[:SEGMENTS_SHOWN] for name, rows in by.items()},
        "left_out": left_out,
        "changed": [{**entry, "summary": changed_text(entry)} for entry in found["changed"]],
    }


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
