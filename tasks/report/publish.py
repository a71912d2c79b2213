"""The end of a run: the page, the parent run's numbers in MLflow, and the artifact in Prefect that links them."""

import html
import json
from collections.abc import Mapping
from pathlib import Path

from prefect.artifacts import create_markdown_artifact

from tasks.evidence.drawing import title_of
from tasks.evidence.protocol import Artifact
from tasks.evidence.significance import Standings
from tasks.report.figures import position_bias_lines
from tasks.report.outcome import RunOutcome
from tasks.report.page import Figures, table_columns, write_plots, write_report
from tasks.report.searches import search_curves, search_metrics
from tasks.store import state
from tasks.store.state import digest_of
from tasks.tracking.pages import run_page, shown_at
from tasks.tracking.store import CHOSEN, DIGEST, FOUND, REFIT
from tasks.tracking.tracker import Tracker


def publish(outcome: RunOutcome, tracker: Tracker) -> Path:
    """Writes the report, the parent run's numbers and the Prefect artifact; the report's page."""
    path = report_page(outcome)
    figures = Figures.of(outcome)
    write_report(outcome, figures, path)
    found = [artifact for evidence in outcome.evidence for artifact in evidence.artifacts(path.parent)]
    tags = _tags(outcome)
    said = {name: tags[name] for name in (CHOSEN, REFIT, FOUND) if name in tags}
    for evidence in outcome.evidence:
        said |= evidence.lasting_tags()
    written = tracker.was_finished and tracker.says(said, "config.yaml")
    if not written:
        plots = [Artifact(plot, f"plots/{plot.name}") for plot in write_plots(outcome, figures, path.parent / "plots")]
        tracker.summary(_metrics(outcome), [(a.path, a.name) for a in (Artifact(path, path.name), *plots, *found)])
        tracker.show_models(best_keys(outcome, tags))
        tracker.lines(search_curves(outcome) | position_bias_lines(outcome.folders))
        tracker.text(outcome.config_text, "config.yaml")
    told = description(outcome, path)
    if not written:
        tracker.note(told)
        tracker.say(tags)
    report = run_page(shown_at(), tracker.experiment_id, tracker.run_id, path.name)
    name = outcome.config.name
    markdown = f"# {name}\n\n{told}\n\n[Run in MLflow]({outcome.link}) · [report]({report})\n"
    create_markdown_artifact(key="report", description=f"Report of {name}", markdown=markdown)
    return path


def description(outcome: RunOutcome, path: Path) -> str:
    """A run in Markdown: which ranker is best, the table, what the evidence says, and where the page is."""
    said = [f"{column.title}: {ranker} {word}" for column in table_columns(outcome) for ranker, word in column.words.items()]
    said += [sentence.strip() for found in outcome.evidence for sentence in found.sentences()]
    verdicts = "\n".join(f"- {html.escape(sentence, quote=False)}" for sentence in said)
    parts = (outcome.summary, markdown_table(outcome.standings), verdicts, f"Report: `{path}`")
    return "\n\n".join(part for part in parts if part)


def best_keys(outcome: RunOutcome, tags: Mapping[str, str]) -> list[str]:
    """Keys of the best ranker's cells: of the one that was trained on all data where there is one, otherwise one a fold."""
    refitted = json.loads(tags.get(REFIT, "{}"))
    return [refitted[outcome.best]] if outcome.best in refitted else outcome.keys[outcome.best]


def report_page(outcome: RunOutcome) -> Path:
    """Where the page of a run is."""
    return state.root() / "reports" / f"{outcome.config.name}-{outcome.run_id[:8]}" / "report.html"


def _metrics(outcome: RunOutcome) -> dict[str, float]:
    metrics = dict(outcome.models[outcome.best].metrics)
    for name, row in outcome.standings.rows.items():
        metrics |= {f"{name}/test_{measure}": cell.mean for measure, cell in row.cells.items() if cell.mean is not None}
    return metrics | search_metrics(outcome)


def _tags(outcome: RunOutcome) -> dict[str, str]:
    found = [[one.printed(), one.sentences()] for one in outcome.evidence if one.repeatable]
    tags = {"best": outcome.best, DIGEST: outcome.models[outcome.best].digest, CHOSEN: json.dumps(outcome.keys)}
    if found:
        tags[FOUND] = digest_of(found)
    if outcome.budget:
        tags["lambdaflow.budget"] = json.dumps(vars(outcome.budget))
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
