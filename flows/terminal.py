"""The end of a run on the terminal: models × measures with standard errors, marks and verdicts, and where to look further."""

import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from tasks.report import label_of
from tasks.significance import marks


def _short(value: float) -> str:
    """``.7555``: measures lie in [0, 1], and eighty columns are few."""
    return f"{value:.4f}".removeprefix("0")


def show(outcome: dict[str, Any], name: str) -> None:
    """Prints the table to standard error, which leaves standard output to ``--json``."""
    console = Console(stderr=True) if sys.stderr.isatty() else Console(stderr=True, width=110)
    standings = outcome["standings"]
    verdicts = {c["ranker"]: c["verdict"] for c in outcome["certificates"]}
    table = Table(title=f"{name}: test queries", title_justify="left", title_style="bold", caption_justify="left")
    table.add_column("ranker")
    for measure in standings["measures"]:
        table.add_column(label_of(measure), justify="right")
    if verdicts:
        table.add_column(f"optimum of {label_of(outcome['certificates'][0]['measure'])}")
    highest = {m: max((row["cells"][m]["mean"] or 0.0) for row in standings["rows"].values()) for m in standings["measures"]}
    for ranker, row in standings["rows"].items():
        cells = []
        for measure in standings["measures"]:
            cell = row["cells"][measure]
            if cell["mean"] is None:
                cells.append("–")
                continue
            mean = f"[bold]{_short(cell['mean'])}[/bold]" if cell["mean"] == highest[measure] else _short(cell["mean"])
            cells.append("\n".join((mean, f"±{_short(cell['se'] or 0.0)}", marks(cell["beats"]))))
        colour = {"optimum": "green", "not": "red", "inconclusive": "yellow"}
        verdict = verdicts.get(ranker)
        table.add_row(
            f"{row['letter']}  {ranker}", *cells, *([f"[{colour[verdict]}]{verdict}[/]" if verdict else "–"] if verdicts else [])
        )
    table.caption = "A letter: significantly better than that ranker, paired t at 95 %; in brackets at 90 %."
    console.print(table)
    console.print(outcome["summary"], f"Report: {outcome['report']}", sep="\n", highlight=False)
    console.print(f"To see it in MLflow and Prefect: [bold]lambdaflow ui[/bold]   (run {outcome['run_id'][:8]})", highlight=False)
