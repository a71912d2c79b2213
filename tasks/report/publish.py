"""The end of a run: the page, the parent run's numbers in MLflow, and the artifact in Prefect that links them."""

import json
from pathlib import Path

from prefect.artifacts import create_markdown_artifact

from tasks.evidence.drawing import title_of
from tasks.evidence.protocol import Artifact
from tasks.evidence.significance import Standings
from tasks.report.outcome import RunOutcome
from tasks.report.page import write_plots, write_report
from tasks.report.searches import search_curves, search_metrics
from tasks.store import state
from tasks.tracking.tracker import Tracker

MLFLOW_UI = "http://127.0.0.1:5000"
"""Where `lambdaflow ui` shows MLflow."""


def publish(outcome: RunOutcome, tracker: Tracker) -> Path:
    """Writes the report, the parent run's numbers and the Prefect artifact; the report's page."""
    path = report_page(outcome)
    write_report(outcome, path)
    found = [artifact for evidence in outcome.evidence for artifact in evidence.artifacts(path.parent)]
    if not tracker.was_finished:
        plots = [Artifact(plot, f"plots/{plot.name}") for plot in write_plots(outcome, path.parent / "plots")]
        tracker.summary(_metrics(outcome), _tags(outcome), [(a.path, a.name) for a in (Artifact(path, path.name), *plots, *found)])
        tracker.lines(search_curves(outcome))
        tracker.text(outcome.config_text, "config.yaml")
    link = f"{MLFLOW_UI}/#/experiments/{tracker.experiment_id}/runs/{tracker.run_id}"
    where = f"[Run in MLflow]({link}) · [report]({link}/artifacts/report.html), also in `{path}`"
    name = outcome.config.name
    markdown = f"# {name}\n\n{outcome.summary}\n\n{markdown_table(outcome.standings)}\n\n{where}\n"
    create_markdown_artifact(key="report", description=f"Report of {name}", markdown=markdown)
    return path


def report_page(outcome: RunOutcome) -> Path:
    """Where the page of a run is."""
    return state.STATE / "reports" / f"{outcome.config.name}-{outcome.run_id[:8]}" / "report.html"


def _metrics(outcome: RunOutcome) -> dict[str, float]:
    metrics = dict(outcome.models[outcome.best].metrics)
    for name, row in outcome.standings.rows.items():
        metrics |= {f"{name}/test_{measure}": cell.mean for measure, cell in row.cells.items() if cell.mean is not None}
    return metrics | search_metrics(outcome)


def _tags(outcome: RunOutcome) -> dict[str, str]:
    tags = {"best": outcome.best, "digest": outcome.models[outcome.best].digest, "chosen": json.dumps(outcome.keys)}
    if outcome.budget:
        tags["budget"] = json.dumps(vars(outcome.budget))
    for evidence in outcome.evidence:
        tags |= evidence.tags()
    return tags


def markdown_table(table: Standings) -> str:
    """Means of rankers as a table in Markdown."""
    head = "| ranker | " + " | ".join(map(title_of, table.measures)) + " |\n|---|" + "---|" * len(table.measures)
    rows = [
        f"| {name} | " + " | ".join("–" if (c := row.cells[m]).mean is None else f"{c.mean:.4f}" for m in table.measures) + " |"
        for name, row in table.rows.items()
    ]
    return "\n".join([head, *rows])
