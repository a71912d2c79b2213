"""The end of a run on the terminal: models × measures with standard errors, marks and verdicts, and where to look further."""

import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tasks.champion import champion_text
from tasks.figures import label_of
from tasks.report import best_mean, changed_text, promise_text, segments_text
from tasks.significance import marks
from tasks.study import MICRO, lines


def _short(value: float) -> str:
    """``.7555``: measures lie in [0, 1], and eighty columns are few."""
    return f"{value:.4f}".removeprefix("0")


MOST_COLUMNS = 9
"""With more measures they are the rows, and the rankers the columns."""


def show(outcome: dict[str, Any], name: str) -> None:
    """Prints the table to standard error, which leaves standard output to ``--json``."""
    console = Console(stderr=True) if sys.stderr.isatty() else Console(stderr=True, width=110)
    standings, certificates = outcome["standings"], outcome["certificates"]
    measures, rows = standings["measures"], standings["rows"]
    highest = {m: best_mean(m, [row["cells"][m]["mean"] for row in rows.values()]) for m in measures}

    def cell(ranker: str, measure: str) -> str:
        found = rows[ranker]["cells"][measure]
        if found["mean"] is None:
            return "–"
        mean = f"[bold]{_short(found['mean'])}[/bold]" if found["mean"] == highest[measure] else _short(found["mean"])
        return "\n".join((mean, f"±{_short(found['se'] or 0.0)}", marks(found["beats"])))

    named = {ranker: escape(f"{row['letter']}  {ranker}") for ranker, row in rows.items()}
    turned = len(measures) > MOST_COLUMNS
    table = Table(title=f"{escape(name)}: test queries", title_justify="left", title_style="bold", caption_justify="left")
    table.add_column("measure" if turned else "ranker")
    for column in named.values() if turned else map(label_of, measures):
        table.add_column(column, justify="right")
    if turned:
        for measure in measures:
            table.add_row(label_of(measure), *(cell(ranker, measure).replace("\n", " ") for ranker in rows))
    else:
        colour = {"optimum": "green", "not": "red", "inconclusive": "yellow"}
        verdicts = {c["ranker"]: f"[{colour[c['verdict']]}]{c['verdict']}[/]" for c in certificates}
        if certificates:
            table.add_column(f"optimum of {label_of(certificates[0]['measure'])}")
        for ranker in rows:
            cells = [cell(ranker, measure) for measure in measures]
            table.add_row(named[ranker], *cells, *([verdicts.get(ranker, "–")] if certificates else []))
    table.caption = "A letter: significantly better than that ranker, paired t at 95 %; in brackets at 90 %."
    console.print(table)
    for entry in outcome["promises"]:
        console.print(f"{entry['ranker']} against {entry['baseline']}: {promise_text(entry)}", highlight=False)
    if found := outcome["champion"]:
        console.print(champion_text(found, found["ranker"]), highlight=False)
    if found := outcome["segments"]:
        lines = [segments_text(found), *map(changed_text, found["changed"])]
        console.print(*map(escape, lines), sep="\n", highlight=False)
    console.print(outcome["summary"], f"Report: {outcome['report']}", sep="\n", highlight=False)
    console.print(f"To see it in MLflow and Prefect: [bold]lambdaflow ui[/bold]   (run {outcome['run_id'][:8]})", highlight=False)


def show_study(outcome: dict[str, Any], name: str) -> None:
    """Prints the table of several data sets, a part a measure."""
    console = Console(stderr=True) if sys.stderr.isatty() else Console(stderr=True, width=110)
    table = outcome["table"]
    for measure in table["measures"]:
        part = Table(title=f"{escape(name)}: {label_of(measure)}", title_justify="left", title_style="bold")
        for column in ("ranker", *table["datasets"], MICRO):
            part.add_column(column, justify="left" if column == "ranker" else "right")
        for ranker, cells in zip(table["rows"], lines(table, measure), strict=True):
            shown = (f"{_short(c['mean'])}{c['mark']}" for c in cells)
            colours = {1: "bold green", 2: "yellow", 3: "cyan"}
            styled = (
                f"[{colours[c['place']]}]{text}[/]" if c["place"] in colours else text for c, text in zip(cells, shown, strict=True)
            )
            part.add_row(escape(ranker), *styled)
        console.print(part)
    wins = ", ".join(f"{ranker} {row['wins']}" for ranker, row in table["rows"].items() if row["wins"])
    console.print(f"Best in a column: {wins}.\n+ − against the best baseline at 95 %, in brackets at 90 %.", highlight=False)
    console.print(f"Report: {outcome['report']}", highlight=False)


def show_scorecards(cards: Sequence[dict[str, Any]]) -> None:
    """Prints graded comparisons, a table each: tier by tier down to the one that decides."""
    console = Console(stderr=True) if sys.stderr.isatty() else Console(stderr=True, width=110)
    for card in cards:
        names = f"{card['challenger']} against {card['baseline']}"
        table = Table(
            "tier", "measure", "mean difference", "margin", "bounds", "verdict", title=escape(names), title_justify="left", title_style="bold"
        )  # fmt: skip
        for k, tier in enumerate(card["tiers"], 1):
            bounds = f"{tier['lower_bound']:+.4f} … {tier['upper_bound']:+.4f}"
            table.add_row(
                str(k), label_of(tier["measure"]), f"{tier['difference']:+.4f}", f"{tier['margin']:g}", bounds, tier["verdict"]
            )
        amounts = {"better": "is better", "worse": "is worse", "open": "is not told apart"}[card["comparison"]]
        table.caption = f"By tiers {escape(card['challenger'])} {amounts}. Bounds are one-sided, each at {card['level']:.0%}."
        console.print(table)


def show_changed(found: Sequence[dict[str, Any]]) -> None:
    """Prints the queries that one run harms and helps most against another, a table a pair."""
    console = Console(stderr=True) if sys.stderr.isatty() else Console(stderr=True, width=110)
    for entry in found:
        console.print(escape(changed_text(entry)), highlight=False)
        table = Table("", "query")
        for name in (entry["ranker"], entry["baseline"], "difference"):
            table.add_column(escape(name), justify="right")
        for effect in ("harmed", "helped"):
            for row in entry[effect]:
                values = (f"{row['value']:.4f}", f"{row['baseline']:.4f}", f"{row['difference']:+.4f}")
                table.add_row(effect, escape(row["query"]), *values)
            table.add_section()
        console.print(table)


def show_comparison(table: dict[str, Any]) -> None:
    """Prints the standings of stored runs, and every pair with its tests."""
    console = Console(stderr=True) if sys.stderr.isatty() else Console(stderr=True, width=110)
    means = Table(title="Test queries", title_justify="left", title_style="bold")
    means.add_column("run")
    for measure in table["measures"]:
        means.add_column(label_of(measure), justify="right")
    for name, row in table["rows"].items():
        cells = [row["cells"][measure] for measure in table["measures"]]
        means.add_row(
            escape(f"{row['letter']}  {name}"),
            *("–" if c["mean"] is None else f"{_short(c['mean'])} {marks(c['beats'])}\n±{_short(c['se'] or 0.0)}" for c in cells),
        )
    console.print(means)
    tests = Table(
        "measure",
        "difference of",
        "mean",
        "SE",
        "z",
        "p",
        "Holm p",
        "randomisation p",
        "bootstrap 95 %",
        *(["not worse"] if any("not_worse" in pair for pair in table["pairs"]) else []),
        title="Paired tests",
        title_justify="left",
        title_style="bold",
    )
    for p in table["pairs"]:
        z = "∞" if p["z"] is None else f"{p['z']:.2f}"
        tests.add_row(
            label_of(p["measure"]),
            f"{p['a']} − {p['b']}",
            f"{p['difference']:+.4f}",
            f"{p['se']:.4f}",
            z,
            f"{p['p']:.2g}",
            f"{p['holm_p']:.2g}",
            f"{p['randomisation_p']:.2g}",
            "{:+.4f} … {:+.4f}".format(*p["interval"]),
            *([" and ".join(p["not_worse"]) or "neither"] if "not_worse" in p else []),
        )
    console.print(tests)
