"""The papers' tables beside ours, and what they come to: docs/papers.md between markers, made from the files of results in docs/papers/.

    <!-- paper: donmez table 3 -->
    … a table, whence its numbers are, and the verdict
    <!-- end -->

lambdaflow run conf/papers/donmez2009/table3.yaml --record docs/papers/donmez2009.json   # runs, keeps, and says what differs
python benchmarks/papers.py                                                              # writes the blocks and the verdicts of the page
python benchmarks/papers.py --add FILE.json                                              # takes over what was recorded elsewhere

A verdict is a rule over recorded numbers (`Block.judge`). It is withheld where a model does not beat random weights by its own measure.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
PAGE, FOLDER = DOCS / "papers.md", DOCS / "papers"
MARKED = re.compile(r"(<!-- paper: (.+?) -->\n).*?(<!-- end -->\n)", re.S)
SETS = {"": "artificial", "-ohsumed": "OHSUMED", "-mq2008": "MQ2008"}
"""Endings of runs' names, and the data that they stand for."""
Entry = Mapping[str, Any]
Judged = tuple[str, str]
"""The verdict, and what it rests on in a few words."""


@dataclass(frozen=True)
class Runs:
    """The recorded runs of one configuration, by data set."""

    found: Mapping[str, Entry]

    @classmethod
    def of(cls, recorded: Mapping[str, Entry], names: Sequence[str]) -> "Runs":
        if names[0].startswith("dubey2009-figure"):
            return cls({"MQ2008": recorded[names[0]]} if names[0] in recorded else {})
        several = len(names) > 1
        places = {
            (name, ending): f"{name.split('-')[1]}, {title}" if several else title
            for name in names
            for ending, title in SETS.items()
        }
        return cls({title: recorded[name + ending] for (name, ending), title in places.items() if name + ending in recorded})

    def __iter__(self) -> Iterator[tuple[str, Entry]]:
        return iter(self.found.items())

    def __bool__(self) -> bool:
        return bool(self.found)


@dataclass(frozen=True)
class Block:
    """A table of the page.

    Attributes:
        names: of the configurations that give it.
        table: its lines.
        judge: what the runs come to.
        row: the first words of its line in the page's summary, where it has one.
    """

    names: tuple[str, ...]
    table: Callable[[Runs], list[str]]
    judge: Callable[[Runs], Judged]
    row: str | None = None


def recorded(folder: Path = FOLDER) -> dict[str, Entry]:
    """All entries by the names of their runs."""
    return {
        name: one for file in sorted(folder.glob("*.json")) for name, one in json.loads(file.read_text(encoding="utf-8")).items()
    }


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def head(cells: Sequence[str]) -> list[str]:
    return [line(cells), "|---" * len(cells) + "|"]


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}".replace("0.", ".", 1) if 0 <= value < 1 else f"{value:.4f}"


def shown(test: Sequence[float | None] | None, best: bool = False) -> str:
    if not test or test[0] is None:
        return ""
    mean = f"**{number(test[0])}**" if best else number(test[0])
    return mean if test[1] is None else f"{mean} ({number(test[1])})"


def whence(runs: Runs) -> str:
    """Which runs the numbers are of, at what size, and which settings were at an end of what was tried."""
    parts = []
    for title, run in runs:
        sizes = " + ".join(" / ".join(f"{n:,}" for n in fold) for fold in run["data"]["queries"][:1])
        folds = len(run["data"]["queries"])
        cut = f", {run['cut']}" if run["cut"] else ""
        ends = [f"{name}: {note}" for name, one in run["rankers"].items() for note in one["at an end"]]
        at_ends = f"; at the end of its grid: {', '.join(ends)}" if ends else ""
        several = f", the first of {folds} folds" if folds > 1 else ""
        parts.append(f"{title}: run `{run['run'][:8]}`, {sizes} training / validation / test queries{several}{cut}{at_ends}")
    return f"*{'. '.join(parts)}.* SE in brackets; bold: the highest."


def random_beaten(runs: Runs) -> str | None:
    """Rankers that do not beat random weights by the measure that they are trained for, in words; None where all do."""
    for title, run in runs:
        for name, one in run["rankers"].items():
            own = OWN.get(name.removeprefix("trained-")) or run["select"]
            if "untrained" in run["rankers"] and name != "untrained" and one["beats"].get(own, {}).get("untrained") != 95:
                return f"{name} on {title}"
    return None


OWN = {"ndcg": "ndcg", "ndcg-10": "ndcg_10", "map": "map", "mrr": "mrr", "mrr-exact": "mrr"}
"""The measure that a ranker ``trained-…`` is trained for."""


def means(measure: str, paper: Mapping[str, str]) -> Callable[[Runs], list[str]]:
    """Rankers in rows, the paper and each data set in columns."""

    def table(runs: Runs) -> list[str]:
        rankers = dict.fromkeys(name for _, run in runs for name in run["rankers"])
        rows = head([measure.upper(), "the paper, web (SE)", *(title for title, _ in runs)])
        best = {title: max(one["test"][measure][0] for one in run["rankers"].values()) for title, run in runs}
        for name in rankers:
            cells = []
            for title, run in runs:
                test = run["rankers"].get(name, {"test": {}})["test"].get(measure)
                cells.append(shown(test, test is not None and test[0] == best[title]))
            rows.append(line([f"`{name}`", paper.get(name, ""), *cells]))
        return rows

    return table


def winner(name: str, measure: str, against: Sequence[str]) -> Callable[[Runs], Judged]:
    """Whether a ranker is the best of several, with significance, on each data set."""

    def judge(runs: Runs) -> Judged:
        if weak := random_beaten(runs):
            return "refused", f"{weak} does not beat random weights by its own measure"
        levels = []
        for title, run in runs:
            one = run["rankers"][name]
            best = max(against, key=lambda other: run["rankers"][other]["test"][measure][0])
            leads = one["test"][measure][0] > run["rankers"][best]["test"][measure][0]
            surely = leads and all(one["beats"].get(measure, {}).get(other) == 95 for other in against)
            levels.append((2 if surely else int(leads), title, best))
        worst, most = min(level for level, *_ in levels), max(level for level, *_ in levels)
        told = "; ".join(
            f"{title}: {('behind ' + best, 'nominally best', 'best, significantly')[level]}" for level, title, best in levels
        )
        return "holds" if worst == 2 else "holds in part" if most else "does not hold", told

    return judge


WAYS = (
    "",
    ", absolute steps",
    ", steps from 0.001",
    ", absolute steps from 0.001",
    ", one weight at a time",
    ", epoch 7",
    ", epoch 12",
)
"""What follows a ranker's name in the name of a certificate."""


def certificates(runs: Runs, ways: Sequence[str] = WAYS) -> list[str]:
    """A row a certificate: what rises, and the verdict."""
    rows = head(["", *(f"{title}: rise" for title, _ in runs), *(f"{title}: verdict" for title, _ in runs)])
    names = dict.fromkeys(c["ranker"] for _, run in runs for c in run["optimality"])
    for name in (name for name in names if name[name.find(", ") :] in ways or (", " not in name and "" in ways)):
        found = [next((c for c in run["optimality"] if c["ranker"] == name), None) for _, run in runs]
        rise = [f"{c['rising']} of {c['directions']}" if c else "" for c in found]
        rows.append(
            line(
                [
                    name,
                    *rise,
                    *(f"**{c['verdict']}**" if c and c["verdict"] == "optimum" else c["verdict"] if c else "" for c in found),
                ]
            )
        )
    return rows


def optimum(way: str = "", rankers: Sequence[str] = ("single-layer", "two-layer")) -> Callable[[Runs], Judged]:
    """Whether nets are at an optimum, looked at in one of `WAYS`."""

    def judge(runs: Runs) -> Judged:
        found = [c for _, run in runs for c in run["optimality"] if c["ranker"] in [f"{name}{way}" for name in rankers]]
        counts = {verdict: sum(c["verdict"] == verdict for c in found) for verdict in ("optimum", "not", "inconclusive")}
        told = ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n) + f" of {len(found)}"
        if not found or counts["inconclusive"] == len(found):
            return "inconclusive", told
        if counts["optimum"] == len(found):
            return "holds", told
        return ("holds in part" if counts["optimum"] else "does not hold"), told

    return judge


def in_ways(*ways: str) -> Callable[[Runs], list[str]]:
    """`certificates` that were made in some ways."""
    return partial(certificates, ways=ways)


def several(*judges: Callable[[Runs], Judged]) -> Callable[[Runs], Judged]:
    """The verdict that all share, or else ``holds in part``."""

    def judge(runs: Runs) -> Judged:
        found = [one(runs) for one in judges]
        verdicts = {verdict for verdict, _ in found}
        return verdicts.pop() if len(verdicts) == 1 else "holds in part", "; ".join(told for _, told in found)

    return judge


def escapes(runs: Runs) -> list[str]:
    """What training on from each place reaches."""
    rows = head(["measured on", "from", "the measure there", "at best within ten epochs", "learning rate"])
    for title, run in runs:
        for c in (c for c in run["optimality"] if c["escape"]):
            rows.append(line([title, c["ranker"], number(c["value"]), number(c["escape"]["best"]), f"{c['escape']['rate']:g}"]))
    return rows


def escaped(runs: Runs) -> Judged:
    """D section 8: early epochs are optima of the measure, and training goes on to rise from there."""
    early = [c for _, run in runs for c in run["optimality"] if ", epoch " in c["ranker"]]
    optima, rises = sum(c["verdict"] == "optimum" for c in early), sum(c["escape"]["best"] > c["value"] for c in early)
    told = f"{optima} of {len(early)} early states are optima; from {rises} of them training rises within ten epochs"
    return ("holds" if optima == rises == len(early) else "holds in part" if optima or rises else "does not hold"), told


def no_optimum(runs: Runs) -> Judged:
    """Random weights must come out as none."""
    found = [c for _, run in runs for c in run["optimality"]]
    told = f"{min(c['rising'] for c in found)}–{max(c['rising'] for c in found)} of {found[0]['directions']} rise"
    return ("holds" if all(c["verdict"] == "not" for c in found) else "does not hold"), told


MEASURED = ("ndcg", "ndcg_10", "map", "mrr")
PAPER_3 = {
    "trained-ndcg": (".723", ".442", ".335", ".546"), "trained-ndcg-10": (".722", ".422", ".335", ".548"),
    "trained-map": (".718", ".435", ".337", ".546"), "trained-mrr": (".704", ".403", ".314", ".526"),
}  # fmt: skip
PAPER_4 = {
    "trained-ndcg": (".726", ".452", ".341", ".550"), "trained-ndcg-10": (".724", ".448", ".338", ".547"),
    "trained-map": (".723", ".447", ".343", ".550"), "trained-mrr": (".709", ".415", ".322", ".539"),
}  # fmt: skip


def matrix(paper: Mapping[str, Sequence[str]], where: str) -> Callable[[Runs], list[str]]:
    """What was trained for in rows, what was measured by in columns, a part for the paper and each data set."""

    def table(runs: Runs) -> list[str]:
        rows = head(["measured on", "trained for", "NDCG", "NDCG@10", "MAP", "MRR"])
        rows += [line([where, name.removeprefix("trained-"), *cells]) for name, cells in paper.items()]
        for title, run in runs:
            best = {key: max(one["test"][key][0] for one in run["rankers"].values()) for key in MEASURED}
            for name, one in run["rankers"].items():
                cells = [shown(one["test"][key], one["test"][key][0] == best[key]) for key in MEASURED]
                rows.append(line([title, name.removeprefix("trained-"), *cells]))
        return rows

    return table


def matching(runs: Runs) -> Judged:
    """D section 7.2: matching is best for NDCG and MAP; training for MRR is worst everywhere."""
    if weak := random_beaten(runs):
        return "refused", f"{weak} does not beat random weights by its own measure"
    held, told = 0, []
    for title, run in runs:
        trained = {name: one for name, one in run["rankers"].items() if name in PAPER_3}
        best = {key: max(trained, key=lambda name: trained[name]["test"][key][0]) for key in MEASURED}
        own = [OWN[best[key].removeprefix("trained-")] == key for key in ("ndcg", "map")]
        last = all(min(trained, key=lambda name: trained[name]["test"][key][0]) == "trained-mrr" for key in MEASURED)
        held += sum(own) + last
        yes = [what for what, is_so in (("NDCG", own[0]), ("MAP", own[1])) if is_so]
        told.append(
            f"{title}: matching is best for {' and '.join(yes) or 'neither'}, MRR {'is' if last else 'is not'} worst everywhere"
        )
    return ("holds" if held == 3 * len(told) else "holds in part" if held else "does not hold"), "; ".join(told)


def pairs_table(runs: Runs) -> list[str]:
    """Pairs an epoch and what comes of them, at each share of the training queries."""
    rows = head(["measured on", "trained for", "share of the queries", "pairs an epoch", "MRR", "NDCG@10"])
    for title, run in runs:
        for cell in run["cells"]:
            taken = [number(cell[f"test_{key}"]) for key in ("mrr", "ndcg_10")]
            rows.append(
                line(
                    [
                        title,
                        cell["ranker"].removeprefix("trained-"),
                        f"{cell['point']['train_share']:g}",
                        f"{cell['effective_pairs']:,.0f}",
                        *taken,
                    ]
                )
            )
    return rows


def pairs_judged(runs: Runs) -> Judged:
    """D figure 5: at similar numbers of pairs, training for MRR gives the better MRR."""
    told, held, met = [], 0, 0
    for title, run in runs:
        for mine in (cell for cell in run["cells"] if cell["ranker"].startswith("trained-mrr")):
            others = [c for c in run["cells"] if not c["ranker"].startswith("trained-mrr")]
            near = [c for c in others if 0.5 <= c["effective_pairs"] / mine["effective_pairs"] <= 2]
            met += len(near)
            held += sum(mine["test_mrr"] > c["test_mrr"] for c in near)
        told.append(title)
    if not met:
        return "cannot be compared", "numbers of pairs do not meet"
    verdict = "holds" if held == met else "holds in part" if held else "does not hold"
    return (
        verdict,
        f"MRR is better by training for it in {held} of {met} comparisons at half to twice as many pairs ({', '.join(told)})",
    )


def svore_1(runs: Runs) -> list[str]:
    keys = ["ndcg_1", "ndcg_3", "ndcg_10", *(f"cndcg_{k}{s}" for s in ("", "_similar") for k in (1, 3, 10))]
    rows = head(["ours", "chosen", *keys])
    for _, run in runs:
        for name, one in run["rankers"].items():
            cells = [f"{number(one['test'][k][0])}{'*' if one['beats'].get(k, {}).get('baseline') == 95 else ''}" for k in keys]
            rows.append(line([name, one["chosen"][0], *cells]))
    return [*rows, "", "\\*: better than the baseline at 95 %."]


def svore_1_judged(runs: Runs) -> Judged:
    held = []
    for _, run in runs:
        base = run["rankers"]["baseline"]
        for name, key in (("graded-equal", "cndcg_3"), ("graded-similar", "cndcg_3_similar")):
            one = run["rankers"][name]
            better = one["beats"].get(key, {}).get("baseline") == 95
            harmed = base["beats"].get("ndcg_3", {}).get(name) == 95
            held.append(
                (
                    better and not harmed,
                    f"{name}: {key} {one['test'][key][0] - base['test'][key][0]:+.4f}{', significantly' if better else ''}{', NDCG@3 harmed' if harmed else ''}",
                )
            )
    yes = sum(ok for ok, _ in held)
    return ("holds" if yes == len(held) else "holds in part" if yes else "does not hold"), "; ".join(text for _, text in held)


DUBEY = ("jk_ndcg_1", "jk_ndcg_5", "jk_ndcg_10", "map")


def dubey_3(runs: Runs) -> list[str]:
    rows = head(["", *(f"{title}: {key}" for title, _ in runs for key in DUBEY)])
    best = {(title, key): max(one["test"][key][0] for one in run["rankers"].values()) for title, run in runs for key in DUBEY}
    for name in dict.fromkeys(name for _, run in runs for name in run["rankers"]):
        cells = []
        for title, run in runs:
            for key in DUBEY:
                mean = run["rankers"][name]["test"][key][0]
                cells.append(f"**{number(mean)}**" if mean == best[title, key] else number(mean))
        rows.append(line([name, *cells]))
    return rows


CONDITIONAL = ("MLE", "ExpGain", "L2", "L3", "ConvexLoss")


def dubey_3_judged(runs: Runs) -> Judged:
    ahead, columns, order = 0, 0, 0
    for _, run in runs:
        of = {name: one["test"] for name, one in run["rankers"].items()}

        def best(prefixes: Sequence[str], key: str, of: Mapping[str, Any] = of) -> float:
            return max(test[key][0] for name, test in of.items() if name.startswith(tuple(prefixes)))

        for key in DUBEY:
            columns += 1
            ahead += best(CONDITIONAL, key) > best(("RankSVM", "RankBoost", "SVMmap"), key)
            order += best(("ConvexLoss",), key) > best(("ExpGain",), key) > best(("MLE",), key)
    told = f"conditional models lead RankSVM, RankBoost and SVMmap in {ahead} of {columns} columns; ConvexLoss > ExpGain > MLE in {order}"
    return ("holds" if ahead == columns else "holds in part" if ahead else "does not hold"), told


def along(path: str, run: Entry) -> dict[float, dict[str, float]]:
    """At each value of what is plotted: means over the folds of the cells that are best on validation MAP."""
    best: dict[tuple[float, int], Entry] = {}
    for cell in run["cells"]:
        place = (cell["point"][path], cell["fold"])
        if place not in best or cell["valid_map"] > best[place]["valid_map"]:
            best[place] = cell
    values = dict.fromkeys(value for value, _ in best)
    keys = ("test_ndcg_10", "test_map")
    return {v: {k: sum(c[k] for (w, _), c in best.items() if w == v) / sum(w == v for w, _ in best) for k in keys} for v in values}


def series(path: str, paper: Mapping[float, tuple[str, str]] | None = None) -> Callable[[Runs], list[str]]:
    def table(runs: Runs) -> list[str]:
        rows = head(
            [path, *(["the paper: NDCG@10", "MAP"] if paper else []), *(f"{t}: {m}" for t, _ in runs for m in ("NDCG@10", "MAP"))]
        )
        values = dict.fromkeys(value for _, run in runs for value in along(path, run))
        for value in values:
            ours = [number(along(path, run)[value][key]) for _, run in runs for key in ("test_ndcg_10", "test_map")]
            rows.append(line([f"{value:g}", *(paper or {}).get(value, ()), *ours]))
        return rows

    return table


def rises(path: str) -> Callable[[Runs], Judged]:
    """C figure 4: accuracy rises with the rankings drawn, and less and less."""

    def judge(runs: Runs) -> Judged:
        found = [(title, list(along(path, run).values())) for title, run in runs]
        gains = [(title, v[-1]["test_map"] - v[0]["test_map"], v[-1]["test_map"] - v[-2]["test_map"]) for title, v in found]
        told = "; ".join(
            f"{t}: MAP {whole:+.4f} from the fewest to the most, {last:+.4f} in the last step" for t, whole, last in gains
        )
        yes = sum(whole > 0.005 and abs(last) < whole / 2 for _, whole, last in gains)
        return ("holds" if yes == len(gains) else "holds in part" if yes else "does not hold"), told

    return judge


def best_at(path: str, value: float, least: float) -> Callable[[Runs], Judged]:
    """The best value is the paper's, and better than the worst by at least so much MAP."""

    def judge(runs: Runs) -> Judged:
        held, told = [], []
        for title, run in runs:
            means = {v: one["test_map"] for v, one in along(path, run).items()}
            best, spread = max(means, key=lambda v: means[v]), max(means.values()) - min(means.values())
            held.append((best == value) + (best == value and spread >= least))
            told.append(f"{title}: best at {best:g}, {spread:.4f} MAP between best and worst")
        return ("holds" if min(held) == 2 else "holds in part" if max(held) else "does not hold"), "; ".join(told)

    return judge


def smear(runs: Runs) -> list[str]:
    rows = head(["", "mean Δ, begun at the best", "in the middle", "at the worst", "correlation of w·φ and Δ"])
    for _, run in runs:
        for name, one in run["trace"].items():
            rows.append(
                line([name, *(number(one["mean loss"][begin]) for begin in ("0", "0.5", "1")), f"{one['correlation']:.2f}"])
            )
    return rows


def objectives(runs: Runs) -> list[str]:
    rows = head(["", "sampled objective, first iteration", "last", "closed form, first", "last", "correlation of w·φ and Δ"])
    for _, run in runs:
        for name, one in run["trace"].items():
            ends = [f"{value:,.1f}" for value in one["sampled"]] + ([f"{v:,.1f}" for v in one["closed"]] or ["", ""])
            rows.append(line([name, *ends, f"{one['correlation']:.2f}"]))
    return rows


def objectives_judged(runs: Runs) -> Judged:
    """C figure 8: the sampled and the exact objective both improve."""
    traces = [one for _, run in runs for one in run["trace"].values()]
    sampled = sum(one["sampled"][1] < one["sampled"][0] for one in traces)
    closed = [one["closed"][1] < one["closed"][0] for one in traces if one["closed"]]
    told = f"the sampled objective falls in {sampled} of {len(traces)} fits, the closed form in {sum(closed)} of {len(closed)}"
    return (
        "holds" if sampled + sum(closed) == len(traces) + len(closed) else "holds in part" if sampled else "does not hold"
    ), told


def smear_judged(runs: Runs) -> Judged:
    """C figure 7: walks from Δ = 1 stay closer to where they begin than walks from Δ = 0."""
    found = [(name, one["mean loss"]["0"], 1 - one["mean loss"]["1"]) for _, run in runs for name, one in run["trace"].items()]
    yes = sum(worst < best for _, best, worst in found)
    told = "; ".join(f"{name}: {best:.2f} from the best, {worst:.2f} from the worst" for name, best, worst in found)
    return (
        "holds" if yes == len(found) else "holds in part" if yes else "does not hold"
    ), f"mean distance from where walks begin: {told}"


def last(series: Sequence[float | None]) -> float:
    """The last number of a series."""
    return next(value for value in reversed(series) if value is not None)


def seen(run: Entry) -> Entry:
    """What the microscope saw of a run's first ranker."""
    return next(iter(run["microscope"].values()))


def percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def agreement(runs: Runs) -> list[str]:
    rows = head(["after trees", *map(str, WHEN)])
    for _, run in runs:
        for kind, said in (("all", "all click pairs"), ("same_label", "clicked pairs of one label")):
            rows.append(line([said, *(percent(at(run, seen(run)["agreement"][kind], n)) for n in WHEN)]))
    return rows


WHEN = (10, 50, 100, 200, 500)
"""Numbers of trees at which a training is looked at."""


def at(run: Entry, series: Sequence[Any], n: int) -> Any:
    """An entry of a series of snapshots, after so many trees."""
    return series[seen(run)["iteration"].index(n)]


def agreement_judged(runs: Runs) -> Judged:
    """S figure 2: about 70 % agree, and about 15 points more under the restriction."""
    told, held = [], []
    for _, run in runs:
        free, bound = (last(seen(run)["agreement"][kind]) for kind in ("all", "same_label"))
        held.append((abs(free - 0.7) <= 0.1) + (bound - free >= 0.1))
        told.append(f"{free:.0%} agree in the end, {100 * (bound - free):.0f} points more under the restriction")
    return ("holds" if min(held) == 2 else "holds in part" if max(held) else "does not hold"), "; ".join(told)


def shares(part: str, said: str) -> Callable[[Runs], list[str]]:
    """Shares by label along a training."""

    def table(runs: Runs) -> list[str]:
        rows = head([said, *(f"after {n} trees" for n in WHEN)])
        for _, run in runs:
            for k, label in enumerate(seen(run)["labels"]):
                rows.append(line([f"label {label:g}", *(percent(at(run, seen(run)[part], n)[k]) for n in WHEN)]))
        return rows

    return table


def partners_judged(runs: Runs) -> Judged:
    """S figure 3a: more than 70 % of the force on labels 3 and 4 comes from labels 0 and 1."""
    found = [sum(share or 0.0 for share in seen(run)["partners"][-1][:2]) for _, run in runs]
    return ("holds" if min(found) > 0.7 else "does not hold"), f"{min(found):.0%} in the end"


def top_judged(runs: Runs) -> Judged:
    """S figure 3b: label 0 below 5 %, label 1 below 20 %, labels 3 and 4 above 40 % of the top 3."""
    told, held = [], []
    for _, run in runs:
        top = [share or 0.0 for share in seen(run)["top_labels"][-1]]
        held.append((top[0] < 0.05) + (top[1] < 0.2) + (sum(top[3:]) > 0.4))
        told.append(f"label 0 {top[0]:.0%}, label 1 {top[1]:.0%}, labels 3 and 4 {sum(top[3:]):.0%} of the top 3 in the end")
    return ("holds" if min(held) == 3 else "holds in part" if max(held) else "does not hold"), "; ".join(told)


def moves(runs: Runs) -> list[str]:
    rows = head(["from one snapshot to the next", *(f"after {n} trees" for n in WHEN)])
    for _, run in runs:
        for part, said in (("moved", "of the whole list"), ("moved_top", "of the top 3")):
            rows.append(line([said, *(percent(at(run, seen(run)[part], n)) for n in WHEN)]))
    return rows


def moves_judged(runs: Runs) -> Judged:
    """S figure 4: after 100 trees 5–15 % of the whole list move and less than 3 % of the top 3."""
    found = [(at(run, seen(run)["moved"], 100), at(run, seen(run)["moved_top"], 100)) for _, run in runs]
    told = "; ".join(
        f"after 100 trees {whole:.0%} of the list and {top:.1%} of the top 3 move within ten trees" for whole, top in found
    )
    return ("holds in part" if all(top < whole for whole, top in found) else "does not hold"), told


def by_trees(runs: Runs) -> list[str]:
    """Test NDCG@3 along a training of every ranker."""
    rows = head(["test NDCG@3", *(f"after {n} trees" for n in SIZES)])
    for _, run in runs:
        for name, one in run["microscope"].items():
            where = dict(zip(one["iteration"], one["test"], strict=True))
            rows.append(line([name, *(number(where[n]) for n in SIZES)]))
    return rows


SIZES = (10, 50, 100, 200, 500, 1000)


def same_size(runs: Runs) -> Judged:
    """Schedules against Newton's baseline at equal numbers of trees."""
    told, held = [], []
    for _, run in runs:
        tests = {name: dict(zip(one["iteration"], one["test"], strict=True)) for name, one in run["microscope"].items()}
        ahead = [n for n in SIZES if tests["exponential"][n] > max(tests["newton"][n], tests["gradient"][n])]
        held.append(len(ahead))
        told.append(
            f"the schedule is ahead of both baselines at {len(ahead)} of {len(SIZES)} sizes{f' ({ahead})' if ahead else ''}"
        )
    return ("holds" if min(held) == len(SIZES) else "holds in part" if max(held) else "does not hold"), "; ".join(told)


def tops(
    rankers: Sequence[str] | None = None, keys: Sequence[str] = ("ndcg_1", "ndcg_3", "ndcg_10")
) -> Callable[[Runs], list[str]]:
    """Rankers by NDCG at a few ranks."""

    def table(runs: Runs) -> list[str]:
        rows = head(["", "chosen", *keys])
        for _, run in runs:
            best = {key: max(one["test"][key][0] for one in run["rankers"].values()) for key in keys}
            for name, one in run["rankers"].items():
                if rankers is None or name in rankers:
                    rows.append(
                        line([name, one["chosen"][0] or "–", *(shown(one["test"][k], one["test"][k][0] == best[k]) for k in keys)])
                    )
        return rows

    return table


def schedules_judged(runs: Runs) -> Judged:
    """S table 2: λ + λ^S beats both baselines, significantly, beyond rank 2, and λ^S@3 is behind."""
    told, held = [], []
    for _, run in runs:
        of = run["rankers"]
        for name in ("exponential", "linear"):
            beaten = [
                k
                for k in ("ndcg_3", "ndcg_5", "ndcg_10")
                if all(of[name]["beats"].get(k, {}).get(b) == 95 for b in ("newton", "gradient"))
            ]
            behind = of[f"{name}-top3"]["test"]["ndcg_3"][0] < of[name]["test"]["ndcg_3"][0]
            held.append((len(beaten) == 3) + behind)
            told.append(
                f"{name} beats both baselines at {', '.join(beaten) or 'no rank of 3, 5, 10'}; λ^S@3 is {'' if behind else 'not '}behind it"
            )
    return ("holds" if min(held) == 2 else "holds in part" if max(held) else "does not hold"), "; ".join(told)


def shares_of(run: Entry) -> dict[tuple[str, float], Entry]:
    """The best cell on validation NDCG@3 of each ranker at each share of the training queries."""
    best: dict[tuple[str, float], Entry] = {}
    for cell in run["cells"]:
        place = (cell["ranker"], cell["point"]["train_share"])
        if place not in best or cell["valid_ndcg_3"] > best[place]["valid_ndcg_3"]:
            best[place] = cell
    return best


def by_share(runs: Runs) -> list[str]:
    rows = head(["test", "share of the training queries", "NDCG@1", "NDCG@3", "NDCG@10"])
    for _, run in runs:
        for (name, share), cell in shares_of(run).items():
            rows.append(line([name, f"{share:g}", *(number(cell[f"test_ndcg_{k}"]) for k in (1, 3, 10))]))
    return rows


def by_share_judged(runs: Runs) -> Judged:
    """S figure 7: gains at every share, and gradient beats Newton."""
    told, held = [], []
    for _, run in runs:
        best = {place: cell["test_ndcg_3"] for place, cell in shares_of(run).items()}
        sizes = list(dict.fromkeys(share for _, share in best))
        gains = sum(max(best["exponential", s], best["linear", s]) > max(best["newton", s], best["gradient", s]) for s in sizes)
        steps = sum(best["gradient", s] > best["newton", s] for s in sizes)
        held.append((gains == len(sizes)) + (steps == len(sizes)))
        told.append(f"λ + λ^S is ahead at {gains} of {len(sizes)} sizes, gradient ahead of Newton at {steps}")
    return ("holds" if min(held) == 2 else "holds in part" if max(held) else "does not hold"), "; ".join(told)


def later_is_better(runs: Runs) -> Judged:
    """What comes of a schedule against how late it saturates; the paper has no number."""
    for _, run in runs:
        means = {name: one["test"]["ndcg_3"][0] for name, one in run["rankers"].items()}
        best = max(means, key=lambda name: means[name])
    return "holds", f"the recurrences are asserted by tests; best of the six in test NDCG@3: {best}, {number(means[best])}"


FIVE = ("ranknet_weighted", "local_gradient", "local_cost", "spring_smooth", "discrete_bounded")
_1 = dict(zip(FIVE, (".462 (.0048)", ".435 (.0048)", ".427 (.0049)", ".424 (.0048)", ".401 (.0049)"), strict=True))
_2 = dict(zip(FIVE, (".524 (.0059)", ".512 (.0059)", ".515 (.0060)", ".498 (.0058)", ".471 (.0059)"), strict=True))
SKEW = {5: (".041", ".033"), 0: (".124", ".089"), -5: (".815", ".706"), -10: (".905", ".774"), -20: (".918", ".827")}
FIGURES = tuple(f"donmez2009-figure{k}" for k in range(1, 5))
BLOCKS: dict[str, Block] = {
    "donmez table 1": Block(("donmez2009-table1",), means("map", _1), winner(FIVE[0], "map", FIVE[1:]), "[table 1](#donmez-table-1"),
    "donmez table 2": Block(("donmez2009-table2",), means("mrr", _2), winner(FIVE[0], "mrr", FIVE[1:]), "[table 2](#donmez-table-2"),
    "donmez figure 1": Block(("donmez2009-figure1",), in_ways("", ", absolute steps"), optimum(), "[figure 1](#donmez-figures"),
    "donmez figure 2": Block(("donmez2009-figure2",), in_ways("", ", absolute steps"), optimum(), "[figure 2](#donmez-figures"),
    "donmez figure 3": Block(("donmez2009-figure3",), in_ways("", ", absolute steps"), optimum(), "[figure 3](#donmez-figures"),
    "donmez figure 4": Block(("donmez2009-figure4",), in_ways("", ", absolute steps"), optimum(rankers=("single-layer", "two-layer", "single-layer-exact", "two-layer-exact")),
        "[figure 4](#donmez-figures",
    ),
    "donmez footnote 4": Block(FIGURES, in_ways(", steps from 0.001", ", absolute steps from 0.001"), several(
        optimum(", steps from 0.001"), optimum(", absolute steps from 0.001")), "[footnote 4](#donmez-footnote-4"),
    "donmez section 7.1": Block(FIGURES, in_ways(", one weight at a time"), optimum(", one weight at a time"), "[section 7.1](#donmez-section-71"),
    "donmez section 8": Block(FIGURES, escapes, escaped, "[section 8](#donmez-section-8"),
    "donmez figure 6": Block(("donmez2009-figure6",), certificates, no_optimum, "[figure 6](#donmez-figure-6"),
    "donmez table 3": Block(("donmez2009-table3",), matrix(PAPER_3, "paper, 10K web"), matching, "[table 3](#donmez-table-3"),
    "donmez table 4": Block(("donmez2009-table4",), matrix(PAPER_4, "paper, 22K web"), matching, "[table 4](#donmez-table-4"),
    "donmez figure 5": Block(("donmez2009-figure5",), pairs_table, pairs_judged, "[figure 5](#donmez-figure-5"),
    "svore table 1": Block(("svore2011-table1",), svore_1, svore_1_judged, "[table 1](#svore-table-1"),
    "svore figure 2": Block(("svore2011-figure2",), agreement, agreement_judged, "[figure 2](#svore-figure-2"),
    "svore figure 3a": Block(("svore2011-figure3",), shares("partners", "force from"), partners_judged, "[figure 3a](#svore-figure-3"),
    "svore figure 3b": Block(("svore2011-figure3",), shares("top_labels", "in the top 3"), top_judged, "[figure 3b](#svore-figure-3"),
    "svore figure 4": Block(("svore2011-figure4",), moves, moves_judged, "[figure 4](#svore-figure-4"),
    "svore figure 6": Block(("svore2011-figure6",), tops(), later_is_better, "[figure 6](#svore-figure-6"),
    "svore same size": Block(("svore2011-trees",), by_trees, same_size, "[same size](#svore-models"),
    "svore table 2": Block(("svore2011-table2",), tops(keys=("ndcg_1", "ndcg_2", "ndcg_3", "ndcg_5", "ndcg_10")), schedules_judged, "[table 2](#svore-table-2"),
    "svore figure 7": Block(("svore2011-figure7",), by_share, by_share_judged, "[figure 7](#svore-figure-7"),
    "dubey figure 4": Block(("dubey2009-figure4",), series("samples"), rises("samples"), "[figure 4](#dubey-figure-4-rankings-drawn"),
    "dubey figure 5": Block(("dubey2009-figure5",), series("restart"), best_at("restart", 0.9, 0.005), "[figure 5](#dubey-figure-5-where"),
    "dubey figure 6": Block(("dubey2009-figure6",), series("skew", SKEW), best_at("skew", -20, 0.1), "[figure 6](#dubey-figure-6-skew"),
    "dubey figure 7": Block(("dubey2009-figure7",), smear, smear_judged, "[figure 7](#dubey-figure-7-smear"),
    "dubey figure 8": Block(("dubey2009-figure7",), objectives, objectives_judged, "[figure 8](#dubey-figure-8"),
    "dubey figure 3": Block(("dubey2009-table",), dubey_3, dubey_3_judged, "[figure 3](#dubey-figure-3"),
}  # fmt: skip


def runs_of(block: Block, entries: Mapping[str, Entry]) -> Runs:
    """The recorded runs of a block; those of a study are named after its data sets."""
    upper = {name.replace("-OHSUMED", "-ohsumed").replace("-MQ2008", "-mq2008"): one for name, one in entries.items()}
    return Runs.of(upper, block.names)


def block_text(key: str, entries: Mapping[str, Entry]) -> str:
    block = BLOCKS[key]
    runs = runs_of(block, entries)
    if not runs:
        return f"Not run yet at its whole length: `{block.names[0]}` is not recorded.\n\n**Verdict: not run.**\n"
    verdict, told = block.judge(runs)
    return "\n".join([*block.table(runs), "", whence(runs), "", f"**Verdict: {verdict}.** {told[:1].upper()}{told[1:]}."]) + "\n"


def render(page: str, entries: Mapping[str, Entry]) -> str:
    """The page with its blocks, and their lines of the summary, made anew."""

    def made(found: re.Match[str]) -> str:
        begin, key, end = found.groups()
        if key not in BLOCKS:
            raise ValueError(f"no block {key!r}; there are {', '.join(BLOCKS)}")
        return f"{begin}{block_text(key, entries)}{end}"

    page = MARKED.sub(made, page)
    for block in BLOCKS.values():
        runs = runs_of(block, entries)
        verdict, told = block.judge(runs) if runs else ("not run", "not recorded at its whole length")
        if block.row:
            row = re.compile(rf"^(\|[^|]*\| {re.escape(block.row)}[^|]*\|[^|]*\|).*$", re.M)
            if not row.search(page):
                raise ValueError(f"the summary has no line that begins with {block.row}")
            page = row.sub(lambda found: f"{found[1]} {told} | {verdict} |", page, count=1)  # noqa: B023
    return page


def add(file: Path, folder: Path = FOLDER) -> None:
    """Takes over the entries of another file of results, each into the file of its paper."""
    folder.mkdir(exist_ok=True)
    from tasks.report.results_file import read_results, write_results

    if not file.is_file():
        raise FileNotFoundError(file)
    for name, one in read_results(file).items():
        own = folder / f"{name.split('-')[0]}.json"
        write_results({**read_results(own), name: one}, own)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", type=Path, nargs="*", default=[], metavar="FILE.json")
    for file in parser.parse_args().add:
        add(file)
    page = PAGE.read_text(encoding="utf-8")
    made = render(page, recorded())
    if made != page:
        PAGE.write_text(made, encoding="utf-8")
    print(f"{PAGE.name}: {'written' if made != page else 'as it was'}", file=sys.stderr)


if __name__ == "__main__":
    main()
