"""What commands print: at the end of a run models × measures with standard errors, marks and verdicts, and tables of comparisons, explanations,
click models and interleavings."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.own_server import asks_own_server
from tasks.data.click_models import Compared, Fitted
from tasks.data.interleaved import Duels
from tasks.data.new_rankers import Expected
from tasks.evidence.drawing import title_of
from tasks.evidence.reasons import SHOWN, ShownPair
from tasks.evidence.segments import Changes
from tasks.evidence.significance import Mean, Standings, best_mean, marks
from tasks.evidence.stored_runs import Scorecard
from tasks.evidence.wrong_order import Summary
from tasks.records import MICRO, percent, printable
from tasks.report.outcome import RunOutcome
from tasks.report.page import table_columns
from tasks.report.publish import report_page
from tasks.report.searches import search_sentences
from tasks.report.study import StudyCell, StudyTable
from tasks.tracking.pages import OWN_SERVER

if TYPE_CHECKING:
    from flows.study import StudyOutcome


def _plain(text: str) -> str:
    """A name or sentence as it is written: without markup of rich's, and control characters by their numbers."""
    return escape(printable(text))


def _short(value: float) -> str:
    """``.7555``: measures lie in [0, 1], and eighty columns are few."""
    return f"{value:.4f}".removeprefix("0")


def _error(mean: Mean) -> str:
    """A standard error; a dash of one query, which tells none."""
    return f"±{'–' if mean.se is None else _short(mean.se)}"


FEW_UNSEEN = 0.995
"""Of places that a log shows: what it does not show beyond that is told with what it might hold."""
MOST_COLUMNS = 9
"""With more measures, or data sets of a study, or where a terminal is too narrow for them, they are the rows, and the rankers the columns."""
WORDS = {"optimum": "green", "not": "red", "inconclusive": "yellow"}
"""Styles of the words in columns that evidence adds."""


LETTERS = "Letters: rankers that this one beats (paired t-test at 95 %, in brackets 90 %; not corrected for multiple comparisons)."


def _console(words: TextIO) -> Console:
    """Writes to `words`, as wide as a terminal is, or 110 columns where there is none."""
    return Console(file=words, emoji=False) if words.isatty() else Console(file=words, width=110, emoji=False)


def _print_table(console: Console, table: Table) -> None:
    """Prints a table; where a terminal is too narrow for it, cells are folded: rich cuts them otherwise, numbers too."""
    for column in table.columns:
        column.overflow = "fold"
    console.print(table)


def _print_either_way(console: Console, columns: int, made: Callable[[bool], Table]) -> None:
    """Prints a table, or the one that is `made` with its columns as rows, where there are many columns or the terminal is too narrow."""
    many = columns > MOST_COLUMNS
    tables = {_width(console, table): table for turned in (not many, many) for table in [made(turned)]}
    fitting = [width for width in tables if width <= console.width]
    _print_table(console, tables[fitting[-1] if fitting else min(tables)])


def _width(console: Console, table: Table) -> int:
    """Columns that a table takes where there is room."""
    return console.measure(table, options=console.options.update(width=10_000)).maximum


def show(outcome: RunOutcome, words: TextIO) -> None:
    """Prints the end of a run."""
    console = _console(words)
    _print_either_way(console, len(outcome.standings.measures), lambda turned: _rankers(outcome, turned))
    console.print(LETTERS, highlight=False)
    for found in outcome.evidence:
        for sentence in found.sentences():
            console.print(_plain(sentence), highlight=False)
    for sentence in search_sentences(outcome):
        console.print(_plain(sentence), highlight=False)
    for note in outcome.at_ends:
        console.print(_plain(f"{note}; values beyond it may be better."), style="yellow", highlight=False)
    console.print(_plain(outcome.summary), f"Report: {report_page(outcome)}", sep="\n", highlight=False)
    if outcome.models:
        console.print(_plain(f"Models, as named in commands: {outcome.called}"), highlight=False, soft_wrap=True)
    if pages := _own_pages(outcome):
        console.print(f"To view the run in {pages}: [bold]lambdaflow ui[/bold]   (run {outcome.run_id[:8]})", highlight=False)
    if outcome.link:
        console.print(_plain(outcome.link), highlight=False, soft_wrap=True)


def _own_pages(outcome: RunOutcome) -> str:
    """What `lambdaflow ui` has pages of: a server that somebody else keeps has its own."""
    ours = {"MLflow": outcome.link.startswith(f"{OWN_SERVER}/#"), "Prefect": asks_own_server()}
    return " and ".join(name for name, own in ours.items() if own)


def show_lines(lines: Sequence[str], words: TextIO) -> None:
    """Prints sentences as they are."""
    console = _console(words)
    for line in lines:
        console.print(_plain(line), highlight=False)


def _rankers(outcome: RunOutcome, turned: bool) -> Table:
    """Rankers × measures, or `turned` measures × rankers."""
    measures, rows = outcome.standings.measures, outcome.standings.rows
    highest = {m: best_mean(m, [row.cells[m].mean for row in rows.values()]) for m in measures}

    def shown(mean: Mean, measure: str) -> str:
        if mean.mean is None:
            return "–"
        number = f"[bold]{_short(mean.mean)}[/bold]" if mean.mean == highest[measure] else _short(mean.mean)
        return "\n".join((number, _error(mean), marks(mean.beats)))

    named = {ranker: _plain(f"{row.letter}  {ranker}") for ranker, row in rows.items()}
    title = f"{_plain(outcome.config.name)}: test queries{f', {outcome.config.cut}' if outcome.config.cut else ''}"
    table = Table(title=title, title_justify="left", title_style="bold", caption_justify="left")
    table.add_column("measure" if turned else "ranker")
    for column in named.values() if turned else (title_of(measure).replace(":", "\n:") for measure in measures):
        table.add_column(column, justify="right")
    if turned:
        for measure in measures:
            cells = (shown(row.cells[measure], measure).replace("\n", " ") for row in rows.values())
            table.add_row(title_of(measure), *cells)
    else:
        columns = table_columns(outcome)
        for added in columns:
            table.add_column(added.title)
        for ranker, row in rows.items():
            words = [column.words.get(ranker) for column in columns]
            styled = (f"[{WORDS.get(word, '')}]{word}[/]" if word in WORDS else word or "–" for word in words)
            table.add_row(named[ranker], *(shown(row.cells[measure], measure) for measure in measures), *styled)
    return table


def _placed(cell: StudyCell | None) -> str:
    """A mean in the colour of its place, its standard error below it."""
    if cell is None:
        return "–"
    colour = {1: "bold green", 2: "yellow", 3: "cyan"}.get(cell.place)
    below = "" if math.isnan(cell.se) else f"\n±{_short(cell.se)}"
    text = f"{_short(cell.mean)}{cell.mark}{below}"
    return f"[{colour}]{text}[/]" if colour else text


def _datasets(table: StudyTable, measure: str, title: str, turned: bool) -> Table:
    """Rankers × data sets by one measure, or `turned` data sets × rankers."""
    datasets, lines = (*table.datasets, MICRO), table.lines(measure)
    made = Table(title=title, title_justify="left", title_style="bold")
    made.add_column("data set" if turned else "ranker")
    for column in table.rankers if turned else datasets:
        made.add_column(_plain(column), justify="right")
    rows = zip(*lines, strict=True) if turned else lines
    for name, cells in zip(datasets if turned else table.rankers, rows, strict=True):
        made.add_row(_plain(name), *map(_placed, cells))
    return made


def show_study(outcome: "StudyOutcome", name: str, words: TextIO) -> None:
    """Prints the table of several data sets, a part a measure."""
    console, table = _console(words), outcome.table
    for measure in table.measures:
        title = f"{_plain(name)}: {title_of(measure)}"
        _print_either_way(console, len(table.datasets) + 1, partial(_datasets, table, measure, title))
    wins = ", ".join(f"{ranker} {n}" for ranker, n in table.wins.items() if n)
    console.print(
        f"Columns in which a ranker is best: {wins}.\n+ −: significantly better or worse than the best baseline (95 %; in brackets 90 %).",
        highlight=False,
    )
    console.print(f"Report: {outcome.report}", highlight=False)
    if called := [f"  {one.config.name}: {one.called}" for one in outcome.runs if one.models]:
        console.print(_plain("\n".join(["Models, as named in commands:", *called])), highlight=False, soft_wrap=True)


def show_scorecards(cards: Sequence[Scorecard], words: TextIO) -> None:
    """Prints graded comparisons, a table each: tier by tier down to the one that decides."""
    console = _console(words)
    for card in cards:
        names = f"{card.challenger} against {card.baseline}"
        table = Table(
            "tier", "measure", "mean difference", "margin", "bounds", "verdict", title=_plain(names), title_justify="left", title_style="bold"
        )  # fmt: skip
        for k, tier in enumerate(card.tiers, 1):
            bounds = f"{tier.lower_bound:+.4f} … {tier.upper_bound:+.4f}"
            table.add_row(str(k), title_of(tier.measure), f"{tier.difference:+.4f}", f"{tier.margin:g}", bounds, tier.verdict)
        amounts = {"better": "is better than", "worse": "is worse than", "open": ""}[card.comparison]
        verdict = (
            f"{card.challenger} {amounts} {card.baseline}"
            if amounts
            else f"{card.challenger} and {card.baseline} do not differ significantly"
        )
        few = f": {card.few}" if card.few else ""
        table.caption = f"Tier by tier, {_plain(verdict)}{few}. Bounds are one-sided, each at {percent(card.level)}."
        _print_table(console, table)


def show_changed(found: Sequence[Changes], words: TextIO) -> None:
    """Prints the queries that one run harms and helps most against another, a table a pair."""
    console = _console(words)
    for entry in found:
        console.print(_plain(entry.text()), highlight=False)
        table = Table("", "query")
        for name in (entry.ranker, entry.baseline, "difference"):
            table.add_column(_plain(name), justify="right")
        for effect, rows in (("harmed", entry.harmed), ("helped", entry.helped)):
            for row in rows:
                table.add_row(effect, _plain(row.query), f"{row.value:.4f}", f"{row.baseline:.4f}", f"{row.difference:+.4f}")
            table.add_section()
        _print_table(console, table)


def show_pair(pair: ShownPair, words: TextIO) -> None:
    """Prints why one document ranks above another: contributions, a table a feature, and the smallest changes that swap them."""
    console = _console(words)
    if pair.note:
        console.print(_plain(f"{pair.query}: {pair.note}"), highlight=False)
    console.print(_plain(f"{pair.query}: {pair.above} ranks above {pair.below} by {pair.why.difference:.4g}"), highlight=False)
    table = Table("feature", title_justify="left")
    for column in (pair.above.name, pair.below.name, "contribution", *(["SE"] if any(r.error for r in pair.why.reasons) else [])):
        table.add_column(_plain(column), justify="right")
    for reason in pair.why.reasons[:SHOWN]:
        values = ("–" if value != value else f"{value:.4g}" for value in (reason.above, reason.below))
        errors = (f"{reason.error:.2g}",) if any(r.error for r in pair.why.reasons) else ()
        table.add_row(_plain(reason.feature), *values, f"{reason.contribution:+.4g}", *errors)
    if rest := pair.why.reasons[SHOWN:]:
        table.add_row(f"{len(rest)} others", "", "", f"{sum(r.contribution for r in rest):+.4g}")
    table.caption = f"Contributions ({pair.why.method}) sum to the difference of the scores."
    _print_table(console, table)
    for change in pair.why.changes[:3]:
        console.print(_plain(pair.change_text(change)), highlight=False)
    if not pair.why.changes:
        console.print("no change of a single feature to a value found in these data would swap them", highlight=False)


def show_wrong_order(summary: Summary, words: TextIO) -> None:
    """Prints which features put documents in the wrong order."""
    console = _console(words)
    console.print(_plain(summary.text()), highlight=False)
    table = Table("feature", title_justify="left")
    for column in ("mean contribution", "mean size", "largest reason", "smallest change"):
        table.add_column(column, justify="right")
    for row in summary.features[:SHOWN]:
        table.add_row(_plain(row.feature), f"{row.contribution:+.4g}", f"{row.size:.4g}", f"{row.first:,}", f"{row.nearest:,}")
    table.caption = (
        f"Over the worst pair of each query ({summary.method}). Mean contribution: to the upper document's score minus the lower one's; mean "
        "size: its absolute value. Largest reason: number of pairs in which the feature contributes most. Smallest change: number of pairs in "
        "which changing this feature is the smallest change that corrects the order."
    )
    if summary.pairs:
        _print_table(console, table)


def show_click_models(compared: Compared, notes: Sequence[str], chosen: Fitted, words: TextIO) -> None:
    """Prints a log's click models, the best first, and what there is to say of the log."""
    console = _console(words)
    ranks = min(MOST_COLUMNS - 4, max(len(one.by_rank) for one in compared.models))
    title = f"Click models: fitted to {compared.sessions:,} sessions, judged on {compared.held_out:,} others"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("model")
    for name in ("log-likelihood per result", "difference from best", "perplexity", *(f"at {rank + 1}" for rank in range(ranks))):
        table.add_column(name, justify="right")
    for one in compared.models:
        behind = "" if one is compared.models[0] else f"{one.behind:.5f} ±{one.error:.5f}{'' if one.worse else ' ?'}"
        by_rank = ("–" if value != value else f"{value:.3f}" for value in one.by_rank[:ranks])
        table.add_row(one.name, f"{one.likelihood:.5f}", behind, f"{one.perplexity:.4f}", *by_rank)
    _print_table(console, table)
    if compared.near:
        console.print("? = no significant difference from the best (2 standard errors)", highlight=False)
    for sentence in (compared.sentence(), *compared.left_out, *notes, chosen.sentence()):
        console.print(_plain(sentence), highlight=False)


def show_expected(found: Sequence[Expected], level: float, notes: Sequence[str], words: TextIO) -> None:
    """Prints what new rankers would earn, and why the log cannot show it."""
    console = _console(words)
    columns = (
        "ranker",
        "estimator",
        "clicks per page",
        f"{percent(level)} interval",
        "against the log",
        "effective pages",
        "shown",
    )
    table = Table(*columns, title="New rankers, estimated from the log", title_justify="left", title_style="bold")
    for one in found:
        for e in one.estimates:
            table.add_row(
                _plain(one.ranker),
                e.estimator,
                f"{e.value:.4f}",
                f"{e.low:.4f} … {e.high:.4f}",
                f"{e.gain:+.4f} ±{e.gain_error:.4f}",
                f"{e.sessions:,.0f}",
                f"{e.supported:.1%}",
            )
    if table.row_count:
        _print_table(console, table)
    cut = [
        f"{one.ranker}, {e.estimator}: clipping removed {e.clipped:.0%} of the total weight; the intervals do not include the resulting bias, so more effective pages do not mean more certainty"
        for one in found
        for e in one.estimates
        if e.clipped >= 0.005
    ]
    unseen = [
        f"{one.ranker}, {e.estimator}: {1 - e.supported:.1%} of the new ranker's results ({max(e.unseen):.1%} at rank {1 + e.unseen.index(max(e.unseen))}) "
        f"never occur in the log in a way that this estimator can use; the estimate is {e.least:.4f} if none of them would be clicked and {e.most:.4f} if all would, and the interval does not cover this"
        for one in found
        for e in one.estimates
        if e.supported < FEW_UNSEEN
    ]
    for sentence in (*notes, *cut, *unseen, *(text for one in found for text in (*one.notes, *one.refused))):
        console.print(_plain(sentence), highlight=False)


def show_duels(found: Duels, level: float, words: TextIO) -> None:
    """Prints which of interleaved rankers clicks prefer."""
    console = _console(words)
    title = f"Interleaved rankers: {found.pages:,} pages, {found.clicked:,} with a click"
    columns = ("ranker", "against", "wins", "losses", "ties", "preference", f"{percent(level)} interval", "p", "Holm p")
    table = Table(*columns, title=title, title_justify="left", title_style="bold")
    for duel in found.duels:
        table.add_row(
            *(_plain(found.rankers[k]) for k in (duel.first, duel.second)),
            *(f"{count:,}" for count in (duel.wins, duel.losses, duel.ties)),
            f"{duel.preference:+.4f}",
            f"{duel.low:+.4f} … {duel.high:+.4f}",
            f"{duel.p:.2g}",
            f"{duel.holm_p:.2g}",
        )
    _print_table(console, table)
    for sentence in (*found.sentences(), *found.notes):
        console.print(_plain(sentence), highlight=False)


def _runs(table: Standings, turned: bool) -> Table:
    """Runs × measures, or `turned` measures × runs."""

    def shown(mean: Mean) -> str:
        if mean.mean is None:
            return "–"
        number, error, beats = _short(mean.mean), _error(mean), marks(mean.beats)
        return f"{number} {error} {beats}" if turned else f"{number} {beats}\n{error}"

    means = Table(title="Test queries", title_justify="left", title_style="bold")
    means.add_column("measure" if turned else "run")
    named = [_plain(f"{row.letter}  {name}") for name, row in table.rows.items()]
    for column in named if turned else map(title_of, table.measures):
        means.add_column(column, justify="right")
    if turned:
        for measure in table.measures:
            means.add_row(title_of(measure), *(shown(row.cells[measure]) for row in table.rows.values()))
    else:
        for name, row in zip(named, table.rows.values(), strict=True):
            means.add_row(name, *(shown(row.cells[measure]) for measure in table.measures))
    return means


def show_comparison(table: Standings, words: TextIO) -> None:
    """Prints the standings of stored runs, and every pair with its tests."""
    console = _console(words)
    _print_either_way(console, len(table.measures), lambda turned: _runs(table, turned))
    with_margin = any(pair.not_worse is not None for pair in table.pairs)
    columns = ("measure", "difference of", "mean", "SE", "t", "p", "Holm p", "randomisation p", "bootstrap 95 %")
    tests = Table(*columns, *(["not worse"] if with_margin else []), title="Paired tests", title_justify="left", title_style="bold")
    for p in table.pairs:
        low, high = p.interval or (float("nan"), float("nan"))
        tests.add_row(
            title_of(p.measure),
            _plain(f"{p.a} − {p.b}"),
            f"{p.difference:+.4f}",
            f"{p.se:.4f}",
            "∞" if p.z is None else f"{p.z:.2f}",
            f"{p.p:.2g}",
            f"{p.holm_p:.2g}",
            f"{p.randomisation_p:.2g}",
            f"{low:+.4f} … {high:+.4f}",
            *([_plain(" and ".join(p.not_worse)) or "neither"] if p.not_worse is not None else []),
        )
    _print_table(console, tests)
    for p in table.pairs:
        if p.few:
            console.print(_plain(f"neither of {p.a} and {p.b} is shown to be not worse: {p.few}"))
