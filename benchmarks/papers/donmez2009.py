"""Donmez 2009: constructions, optima, what nets are trained for and measured by."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from benchmarks.papers.block import (
    MEASURE_BY_TITLE,
    Block,
    Entry,
    Judged,
    Runs,
    drawn_cells,
    graded,
    head,
    measure_by_title,
    number,
    shown,
)
from benchmarks.results import line


def random_beaten(runs: Runs) -> str | None:
    """Rankers that do not beat random weights by the measure that they are trained for, in words; None where all do."""
    for title, run in runs:
        for name, one in run["rankers"].items():
            own = measure_by_title(name, run["select"])
            if "untrained" in run["rankers"] and name != "untrained" and one["beats"].get(own, {}).get("untrained") != 95:
                return f"{name} on {title}"
    return None


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
        told = "; ".join(
            f"{title}: {('behind ' + best, 'nominally best', 'best, significantly')[level]}" for level, title, best in levels
        )
        return graded([level for level, *_ in levels], 2), told

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


WORLDS = {
    "": "artificial",
    **{f"-world-{k}": f"world {k}" for k in (2, 3)},
    "-158-documents": "158 documents",
    "-whole": "the paper's size",
    **{f"-whole-world-{k}": f"the paper's size (world {k})" for k in (2, 3)},
    "-whole-158-documents": "the paper's size with 158 documents",
}
"""Endings of runs' names, and the artificial data that they stand for: of three seeds of the generator, of the first one with as many documents
a query as the paper's web data, of all with as many queries, and of the first one with as many of both."""
LARGER = (WORLDS["-158-documents"], WORLDS["-whole"], WORLDS["-whole-158-documents"])


def by_figure(runs: Runs) -> dict[str, list[Entry]]:
    """The runs of each configuration and size, one a world."""
    found: dict[str, list[Entry]] = {}
    for title, run in runs:
        figure, _, data = title.rpartition(", ")
        size = data.partition(" (")[0]
        size = size if size in LARGER else "" if figure else "artificial"
        found.setdefault(", ".join(filter(None, (figure, size))), []).append(run)
    return found


def of_most_queries(runs: Runs) -> Runs:
    """Of each configuration the runs at the paper's size, where there is one: the others are beside them and decide nothing."""
    whole = {title: run for title, run in runs if title.rpartition(", ")[2].startswith(WORLDS["-whole"])}
    figures = {title.rpartition(", ")[0] for title in whole}
    return Runs({**{title: run for title, run in runs if title.rpartition(", ")[0] not in figures}, **whole})


def certificates(runs: Runs, ways: Sequence[str] = WAYS) -> list[str]:
    """A row a certificate: what rises in each world, as a share of all too with its standard error over the worlds, and the verdicts."""

    def asked(worlds: Iterable[Entry]) -> list[str]:
        names = dict.fromkeys(c["ranker"] for run in worlds for c in run["optimality"])
        return [name for name in names if name[name.find(", ") :] in ways or (", " not in name and "" in ways)]

    figures = {figure: worlds for figure, worlds in by_figure(runs).items() if asked(worlds)}
    rows = head(["", *(f"{figure}: {what}" for what in ("rise", "verdict") for figure in figures)])
    for name in asked(run for _, run in runs):
        found = [[c for run in worlds for c in run["optimality"] if c["ranker"] == name] for worlds in figures.values()]
        rows.append(line([name, *map(_rise, found), *map(_verdicts, found)]))
    return rows


def _rise(found: Sequence[Entry]) -> str:
    if not found:
        return ""
    told = f"{', '.join(str(c['rising']) for c in found)} of {found[0]['directions']}"
    if len(found) == 1:
        return told
    shares = np.array([c["rising"] / c["directions"] for c in found])
    return f"{told} ({shares.mean():.2f} ± {shares.std(ddof=1) / np.sqrt(len(shares)):.2f})"


def _verdicts(found: Sequence[Entry]) -> str:
    return found[0]["verdict"] if len(found) == 1 else _counted(found)


def _counted(found: Sequence[Entry]) -> str:
    """Verdicts, each with how often it was found."""
    verdicts = [c["verdict"] for c in found]
    return ", ".join(f"{verdicts.count(one)} {one}" for one in ("optimum", "not", "inconclusive") if one in verdicts)


def optimum(way: str = "", rankers: Sequence[str] = ("single-layer", "two-layer")) -> Callable[[Runs], Judged]:
    """Whether nets are at an optimum, looked at in one of `WAYS`."""

    def judge(runs: Runs) -> Judged:
        own = {title: [c for c in run["optimality"] if c["ranker"] in [f"{name}{way}" for name in rankers]] for title, run in runs}
        found = [c for title, _ in of_most_queries(Runs({t: run for t, run in runs if own[t]})) for c in own[title]]
        verdicts, told = [c["verdict"] for c in found], f"{_counted(found)} of {len(found)}"
        if {*verdicts} <= {"inconclusive"}:
            return "inconclusive", told
        if {*verdicts} == {"optimum"}:
            return "holds", told
        return ("holds in part" if "optimum" in verdicts else "does not hold"), told

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
    """What training on from each place reaches, in each world."""
    rows = head(["measured on", "from", "the measure there", "at best within ten epochs", "learning rate"])
    for figure, worlds in by_figure(runs).items():
        trained_on = [c for run in worlds for c in run["optimality"] if c["escape"]]
        for name in dict.fromkeys(c["ranker"] for c in trained_on):
            found = [c for c in trained_on if c["ranker"] == name]
            cells = (
                [number(c["value"]) for c in found],
                [number(c["escape"]["best"]) for c in found],
                [f"{c['escape']['rate']:g}" if c["escape"]["rate"] else "below 1e-06" for c in found],
            )
            rows.append(line([figure, name, *(", ".join(one) for one in cells)]))
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
    """D section 7.2: matching is best for NDCG and MAP; training for MRR is worst everywhere. Of MRR the exact rule counts, as by eq. 11 weights
    shrink (table 2), and what that loses is not what the paper saw."""
    if weak := random_beaten(runs):
        return "refused", f"{weak} does not beat random weights by its own measure"
    held, told = 0, []
    for title, run in runs:
        trained = {name: one["test"] for name, one in run["rankers"].items() if name in PAPER_3 and name != "trained-mrr"}
        exact, mrr = (run["rankers"][name]["test"] for name in ("trained-mrr-exact", "trained-mrr"))
        best = {key: max(trained, key=lambda name: trained[name][key][0]) for key in MEASURED}
        own = [MEASURE_BY_TITLE[best[key].removeprefix("trained-")] == key for key in ("ndcg", "map")]
        last = all(exact[key][0] < min(test[key][0] for test in trained.values()) for key in MEASURED)
        held += sum(own) + last
        yes = [what for what, is_so in (("NDCG", own[0]), ("MAP", own[1])) if is_so]
        behind = [trained[best["mrr"]]["mrr"][0] - test["mrr"][0] for test in (exact, mrr)]
        told.append(
            f"{title}: matching is best for {' and '.join(yes) or 'neither'}, MRR by its exact rule {'is' if last else 'is not'} worst everywhere"
            f" (in MRR {behind[0]:.3f} behind the best, by eq. 11 {behind[1]:.3f})"
        )
    return graded([held], 3 * len(told)), "; ".join(told)


def pairs_table(runs: Runs) -> list[str]:
    """Pairs an epoch and what comes of them, at each share of the training queries."""
    rows = head(["measured on", "trained for", "share of the queries", "learning rate", "pairs an epoch", "MRR", "NDCG@10"])
    for title, run in runs:
        for (ranker, share, _), cell in at_shares(run).items():
            name, settings = ranker.removeprefix("trained-"), (f"{share:g}", f"{cell['point']['learning_rate']:g}")
            taken = [number(cell[f"test_{key}"]) for key in ("mrr", "ndcg_10")]
            rows.append(line([title, name, *settings, f"{cell['effective_pairs']:,.0f}", *taken]))
        random = run["rankers"]["untrained"]["test"]
        rows.append(line([title, "random weights", "", "", "", *(shown(random[key]) for key in ("mrr", "ndcg_10"))]))
    return rows


def at_shares(run: Entry) -> dict[tuple[str, float, int], Entry]:
    """The best cells on validation queries of what is trained, at each share of the training queries."""
    return {place: cell for place, cell in drawn_cells(run, "train_share").items() if place[0] != "untrained"}


def pairs_judged(runs: Runs) -> Judged:
    """D figure 5: at similar numbers of pairs, training for MRR gives the better MRR. Only nets count that beat random weights in MRR by two
    standard errors."""
    told, held, met = [], 0, 0
    for title, run in runs:
        mean, se = run["rankers"]["untrained"]["test"]["mrr"]
        cells = [cell for cell in at_shares(run).values() if cell["test_mrr"] > mean + 2 * se]
        for mine in (cell for cell in cells if cell["ranker"].startswith("trained-mrr")):
            others = [c for c in cells if not c["ranker"].startswith("trained-mrr")]
            near = [c for c in others if 0.5 <= c["effective_pairs"] / mine["effective_pairs"] <= 2]
            met += len(near)
            held += sum(mine["test_mrr"] > c["test_mrr"] for c in near)
        weak = len(at_shares(run)) - len(cells)
        told.append(f"{title}{f'; left out, as they do not beat random weights: {weak}' if weak else ''}")
    if not met:
        return "cannot be compared", "numbers of pairs do not meet"
    return (
        graded([held], met),
        f"MRR is better by training for it in {held} of {met} comparisons at half to twice as many pairs ({', '.join(told)})",
    )


PAIRS_72 = {
    "ndcg": ("NDCG: all pairs of different label", "73 million, about", "162 million"),
    "ndcg-10": ("NDCG@10", "below NDCG, above MAP", ""),
    "map": ("MAP: pairs of a relevant and another document", "27 million, about", "60 million"),
    "mrr": ("MRR", "1–2 magnitudes below MAP", ""),
}


def pairs_of_all(run: Entry) -> dict[str, float]:
    """Pairs an epoch on all training queries, by what was trained for."""
    return {
        name.removeprefix("trained-"): cell["effective_pairs"] for (name, share, _), cell in at_shares(run).items() if share == 1
    }


def orders_of_pairs(runs: Runs) -> list[str]:
    """Pairs an epoch by what is trained for, beside the paper's."""
    rows = head(["pairs an epoch", "paper, 10K web", "paper, 22K web", *(title for title, _ in runs)])
    found = [pairs_of_all(run) for _, run in runs]
    return rows + [line([*said, *(f"{pairs[key]:,.0f}" for pairs in found)]) for key, said in PAIRS_72.items()]


def pairs_in_order(runs: Runs) -> Judged:
    """D section 7.2: NDCG > NDCG@10 > MAP > MRR, and MRR has one or two magnitudes less than MAP."""
    held, told = [], []
    for title, run in runs:
        pairs = pairs_of_all(run)
        ordered = sorted(PAIRS_72, key=lambda key: -pairs[key])
        share = pairs["mrr"] / pairs["map"]
        held.append((ordered == list(PAIRS_72)) + (0.01 <= share <= 0.1))
        told.append(f"{title}: {' > '.join(NAMES_72[key] for key in ordered)}, and MRR has {share:.2f} of MAP's pairs")
    return graded(held, 2), "; ".join(told)


CLIMB = re.compile(r"polished, \w+ \S+ → \S+ in (\d+) steps?: (\w+).*; validation (\S+) → (\S+): (taken|left)")
POLISHED = "-polished"


def climbs_of(run: Entry) -> dict[str, list[tuple[str, str, float, bool]]]:
    """Of each ranker that was polished, fold by fold: steps, verdict, what validation gains, and whether it was taken.

    Raises:
        ValueError: for a fold that says nothing of a climb.
    """
    found = {}
    for name, one in run["rankers"].items():
        if name.endswith(POLISHED):
            said = [m for remark in one["remarks"] if (m := CLIMB.search(remark))]
            if len(said) < len(one["chosen"]):
                raise ValueError(f"{name}: {len(one['chosen']) - len(said)} of {len(one['chosen'])} folds say nothing of a climb")
            found[name] = [(m[1], m[2], float(m[4]) - float(m[3]), m[5] == "taken") for m in said]
    return found


def climbs(runs: Runs) -> list[str]:
    rows = head(["", "rise before, first fold", "steps", "verdict", "validation MAP", "taken", "test MAP", "polished where taken"])
    for title, run in runs:
        for name, of in climbs_of(run).items():
            plain = name.removesuffix(POLISHED)
            before = [c for c in run["optimality"] if c["ranker"].split(", ")[0] == plain]
            gains = [gain for _, _, gain, _ in of]
            told = [
                ", ".join(str(c["rising"]) for c in before) + f" of {before[0]['directions']}",
                ", ".join(steps for steps, *_ in of),
                _counted([{"verdict": verdict} for _, verdict, *_ in of]),
                f"{np.mean(gains):+.4f}",
                f"{sum(taken for *_, taken in of)} of {len(of)}",
                *(shown(run["rankers"][one]["test"]["map"]) for one in (plain, name)),
            ]
            rows.append(line([f"{title}: {plain}", *told]))
    return rows


def climbed(runs: Runs) -> Judged:
    """Every climb ends at a certified optimum."""
    of_all = [one for _, run in runs for of in climbs_of(run).values() for one in of]
    ended, taken = sum(verdict == "optimum" for _, verdict, *_ in of_all), sum(taken for *_, taken in of_all)
    said = f"{ended} of {len(of_all)} climbs end at an optimum; validation queries take {taken} of them"
    return graded([ended], len(of_all)), said


NAMES_72 = {"ndcg": "NDCG", "ndcg-10": "NDCG@10", "map": "MAP", "mrr": "MRR"}
FIVE = ("ranknet_weighted", "local_gradient", "local_cost", "spring_smooth", "discrete_bounded")
MAP_1 = dict(zip(FIVE, (".462 (.0048)", ".435 (.0048)", ".427 (.0049)", ".424 (.0048)", ".401 (.0049)"), strict=True))
MRR_2 = dict(zip(FIVE, (".524 (.0059)", ".512 (.0059)", ".515 (.0060)", ".498 (.0058)", ".471 (.0059)"), strict=True))
MRR_RULES = ("", "-exact", "-full-batch", "-exact-full-batch")
FIGURES = tuple(f"donmez2009-figure{k}" for k in range(1, 5))


def of_figures(runs: Runs) -> str:
    return f"*The runs of figures 1 to 4{', in each of the worlds' if len({title.rpartition(', ')[2] for title, _ in runs}) > 1 else ''}.*"


BLOCKS = {
    "donmez table 1": Block(("donmez2009-table1",), means("map", MAP_1), winner(FIVE[0], "map", FIVE[1:]), "[table 1](#donmez-table-1", WORLDS),
    "donmez table 2": Block(("donmez2009-table2",), means("mrr", MRR_2), winner(FIVE[0], "mrr", FIVE[1:]), "[table 2](#donmez-table-2", WORLDS),
    "donmez figure 1": Block(("donmez2009-figure1",), in_ways("", ", absolute steps"), optimum(), "[figure 1](#donmez-figures", WORLDS),
    "donmez figure 2": Block(("donmez2009-figure2",), in_ways("", ", absolute steps"), optimum(), "[figure 2](#donmez-figures", WORLDS),
    "donmez figure 3": Block(("donmez2009-figure3",), in_ways("", ", absolute steps"), optimum(), "[figure 3](#donmez-figures", WORLDS),
    "donmez figure 4": Block(("donmez2009-figure4",), in_ways("", ", absolute steps"), optimum(rankers=[f"{net}{rule}" for net in ("single-layer", "two-layer") for rule in MRR_RULES]),
        "[figure 4](#donmez-figures", WORLDS,
    ),
    "donmez polish": Block(("donmez2009-polish",), climbs, climbed, sets={"": "OHSUMED"}),
    "donmez footnote 4": Block(FIGURES, in_ways(", steps from 0.001", ", absolute steps from 0.001"), several(
        optimum(", steps from 0.001"), optimum(", absolute steps from 0.001")), "[footnote 4](#donmez-footnote-4", WORLDS, of_figures),
    "donmez section 7.1": Block(FIGURES, in_ways(", one weight at a time"), optimum(", one weight at a time"), "[section 7.1](#donmez-section-71", WORLDS, of_figures),
    "donmez section 8": Block(FIGURES, escapes, escaped, "[section 8](#donmez-section-8", WORLDS, of_figures),
    "donmez figure 6": Block(("donmez2009-figure6",), certificates, no_optimum, "[figure 6](#donmez-figure-6"),
    "donmez table 3": Block(("donmez2009-table3",), matrix(PAPER_3, "paper, 10K web"), matching, "[table 3](#donmez-table-3"),
    "donmez section 7.2": Block(("donmez2009-figure5",), orders_of_pairs, pairs_in_order, "[section 7.2](#donmez-section-72",
        whence=lambda runs: "*The run of figure 5, on all of its training queries.*"),
    "donmez table 4": Block(("donmez2009-table4",), matrix(PAPER_4, "paper, 22K web"), matching, "[table 4](#donmez-table-4"),
    "donmez figure 5": Block(("donmez2009-figure5",), pairs_table, pairs_judged, "[figure 5](#donmez-figure-5"),
}  # fmt: skip
