"""Dubey 2009: conditional models beside the baselines, and how their sampler is set."""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from benchmarks.papers.block import Block, Entry, Judged, Runs, drawn_cells, graded, head, number, shown, whence
from benchmarks.results import line

DUBEY = ("jk_ndcg_1", "jk_ndcg_5", "jk_ndcg_10", "map")


CONDITIONAL = ("MLE", "ExpGain", "L2", "L3", "ConvexLoss")


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
    return graded([ahead], columns), told


def log_loss_judged(runs: Runs) -> Judged:
    """C5 beside C11; the paper prints neither's numbers."""
    pairs = [[run["rankers"][name]["test"][key][0] for name in ("LogLoss-NDCG", "L2-NDCG")] for _, run in runs for key in DUBEY]
    ahead = sum(log > expected for log, expected in pairs)
    return (
        "cannot be compared",
        f"the log is ahead of the expected loss itself in {ahead} of {len(pairs)} columns; the paper has no number",
    )


def curves(path: str, runs: Runs) -> dict[str, list[dict[float, dict[str, float]]]]:
    """By data set, one for each seed: at each value of what is plotted the means over the folds of its cells."""
    found: dict[str, list[dict[float, dict[str, float]]]] = {}
    for title, run in runs:
        folds: dict[float, list[Entry]] = {}
        for (_, value, _), cell in drawn_cells(run, path).items():
            folds.setdefault(value, []).append(cell)
        means = {value: {key: sum(c[key] for c in of) / len(of) for key in PLOTTED} for value, of in folds.items()}
        found.setdefault(title.split(",")[0], []).append(means)
    return found


PLOTTED = ("test_ndcg_10", "test_map")


def over_seeds(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and standard error."""
    return mean(values), stdev(values) / len(values) ** 0.5 if len(values) > 1 else None


def series(path: str, paper: Mapping[float, tuple[str, str]] | None = None) -> Callable[[Runs], list[str]]:
    def table(runs: Runs) -> list[str]:
        found = curves(path, runs)
        columns = [f"{title}: {m}" for title in found for m in ("NDCG@10", "MAP")]
        rows = head([path, *(["the paper: NDCG@10", "MAP"] if paper else []), *columns])
        for value in dict.fromkeys(value for seeds in found.values() for one in seeds for value in one):
            ours = [shown(over_seeds([one[value][key] for one in seeds])) for seeds in found.values() for key in PLOTTED]
            rows.append(line([f"{value:g}", *(paper or {}).get(value, ()), *ours]))
        return rows

    return table


def rises(path: str) -> Callable[[Runs], Judged]:
    """C figure 4: accuracy rises with the rankings drawn, and less and less."""

    def judge(runs: Runs) -> Judged:
        yes, told = 0, []
        found = curves(path, runs)
        for title, seeds in found.items():
            values = [[one["test_map"] for one in curve.values()] for curve in seeds]
            (whole, error), (last, _) = (over_seeds([one[-1] - one[k] for one in values]) for k in (0, -2))
            yes += whole > 0.005 and abs(last) < whole / 2
            over = f" (SE {error:.4f} over {len(seeds)} seeds)" if error is not None else ""
            told.append(f"{title}: MAP {whole:+.4f}{over} from the fewest to the most, {last:+.4f} in the last step")
        return graded([yes], len(found)), "; ".join(told)

    return judge


def best_at(path: str, value: float, least: float) -> Callable[[Runs], Judged]:
    """The best value is the paper's, ahead of the others by more than the standard error over seeds, and better than the worst by at least so
    much MAP."""

    def judge(runs: Runs) -> Judged:
        held, told = [], []
        for title, seeds in curves(path, runs).items():
            means = {v: mean(one[v]["test_map"] for one in seeds) for v in seeds[0]}
            best, spread = max(means, key=lambda v: means[v]), max(means.values()) - min(means.values())
            leads = [over_seeds([one[value]["test_map"] - one[v]["test_map"] for one in seeds]) for v in means if v != value]
            surely = all(ahead > (error or 0.0) for ahead, error in leads)
            held.append(surely + (surely and spread >= least))
            unsure = " (within an error)" if best == value and not surely else ""
            told.append(f"{title}: best at {best:g}{unsure}, {spread:.4f} MAP between best and worst")
        return graded(held, 2), "; ".join(told)

    return judge


def traces(runs: Runs) -> dict[str, list[Entry]]:
    """What was traced, by data set and ranker, one for each seed."""
    found: dict[str, list[Entry]] = {}
    for title, run in runs:
        for name, one in run["trace"].items():
            found.setdefault(f"{title.split(',')[0]}: {name}", []).append(one)
    return found


def smear(runs: Runs) -> list[str]:
    rows = head(["", "mean Δ, begun at the best", "in the middle", "at the worst", "correlation of w·φ and Δ"])
    for name, seeds in traces(runs).items():
        losses = [shown(over_seeds([one["mean loss"][begin] for one in seeds])) for begin in ("0", "0.5", "1")]
        rows.append(line([name, *losses, f"{mean(one['correlation'] for one in seeds):.2f}"]))
    return rows


def smear_judged(runs: Runs) -> Judged:
    """C figure 7: walks from Δ = 1 stay closer to where they begin than walks from Δ = 0."""
    found = [(name, one["mean loss"]["0"], 1 - one["mean loss"]["1"]) for _, run in runs for name, one in run["trace"].items()]
    yes = sum(worst < best for _, best, worst in found)
    told = f"{yes} of {len(found)} walks from the worst stay closer to where they begin than walks from the best"
    return graded([yes], len(found)), told


def objectives(runs: Runs) -> list[str]:
    rows = head(["", "sampled objective, first iteration", "last", "closed form, first", "last", "correlation of w·φ and Δ"])
    for name, seeds in traces(runs).items():
        ends = [f"{mean(one[of][k] for one in seeds):,.1f}" if seeds[0][of] else "" for of in ("sampled", "closed") for k in (0, 1)]
        rows.append(line([name, *ends, f"{mean(one['correlation'] for one in seeds):.2f}"]))
    return rows


def objectives_judged(runs: Runs) -> Judged:
    """C figure 8: the sampled and the exact objective both improve."""
    traces = [one for _, run in runs for one in run["trace"].values()]
    sampled = sum(one["sampled"][1] < one["sampled"][0] for one in traces)
    closed = [one["closed"][1] < one["closed"][0] for one in traces if one["closed"]]
    told = f"the sampled objective falls in {sampled} of {len(traces)} fits, the closed form in {sum(closed)} of {len(closed)}"
    return graded([sampled + sum(closed)], len(traces) + len(closed)), told


PUBLISHED = {
    "RankSVM": (0.4334, 0.4958, 0.4140), "RankBoost": (0.4411, 0.4632, 0.4302), "ListNet": (0.4457, 0.5326, 0.4410), "AdaRank-MAP": (0.4487, 0.5388, 0.4429),
}  # fmt: skip
"""LETOR 3.0's MAP, NDCG@1 and NDCG@10 on OHSUMED."""
GRADED = ("map", "ndcg_1", "ndcg_10")


def beside_letor(runs: Runs) -> list[str]:
    """Baselines and conditional models on graded labels, beside what LETOR publishes for OHSUMED."""
    columns = [f"{title}: {key}" for title, _ in runs for key in GRADED]
    rows = head(["", *columns, *(f"published, OHSUMED: {key}" for key in GRADED)])
    for name in dict.fromkeys(name for _, run in runs for name in run["rankers"]):
        ours = [number(run["rankers"][name]["test"][key][0]) for _, run in runs for key in GRADED]
        rows.append(line([name, *ours, *map(number, PUBLISHED.get(name, (None, None, None)))]))
    return rows


def beside_letor_judged(runs: Runs) -> Judged:
    """Baselines are within .02 of the published MAP and NDCG@10, or better."""
    if "OHSUMED" not in runs.found:
        return "not run", "OHSUMED is not recorded"
    of = {name: one["test"] for name, one in runs.found["OHSUMED"]["rankers"].items()}
    gaps = {name: (of[name]["map"][0] - best[0], of[name]["ndcg_10"][0] - best[2]) for name, best in PUBLISHED.items()}
    near, better = (
        [name for name, gap in gaps.items() if max(map(abs, gap)) <= 0.02],
        [n for n, gap in gaps.items() if min(gap) >= -0.02 and max(gap) > 0.02],
    )
    told = f"{len(near)} of {len(gaps)} are within .02 of the published MAP and NDCG@10{', ' + ', '.join(better) + ' better' if better else ''}"
    held = sum(min(gap) >= -0.02 for gap in gaps.values())
    return ("holds" if held == len(gaps) else "holds in part" if held else "does not hold"), told


SKEW = {5: (".041", ".033"), 0: (".124", ".089"), -5: (".815", ".706"), -10: (".905", ".774"), -20: (".918", ".827")}
FEW = {"-few": "few relevant", "-few-2": "few relevant, world 2", "-few-3": "few relevant, world 3"}
SETS = {
    f"{run}-{of}": f"{of}{seed}"
    for of in ("MQ2008", "OHSUMED")
    for run, seed in {"": "", "-seed-2": ", seed 2", "-seed-3": ", seed 3"}.items()
} | FEW
STUDY = {"-OHSUMED": "OHSUMED", "-MQ2008": "MQ2008"}


BLOCKS = {
    "dubey figure 4": Block(("dubey2009-figure4",), series("samples"), rises("samples"), "[figure 4](#dubey-figure-4-rankings-drawn", SETS),
    "dubey figure 5": Block(("dubey2009-figure5",), series("restart"), best_at("restart", 0.9, 0.005), "[figure 5](#dubey-figure-5-where", SETS),
    "dubey figure 6": Block(("dubey2009-figure6",), series("skew", SKEW), best_at("skew", -20, 0.1), "[figure 6](#dubey-figure-6-skew", SETS),
    "dubey figure 7": Block(("dubey2009-figure7",), smear, smear_judged, "[figure 7](#dubey-figure-7-smear", SETS),
    "dubey figure 8": Block(("dubey2009-figure7",), objectives, objectives_judged, "[figure 8](#dubey-figure-8", SETS),
    "dubey beside LETOR": Block(("dubey2009-table-graded",), beside_letor, beside_letor_judged, sets=STUDY, whence=lambda runs: whence(runs).removesuffix(" SE in brackets; bold: the highest.")),
    "dubey equation 5": Block(("dubey2009-equation5",), dubey_3, log_loss_judged, "[eq. 5](#dubey-equation-5", STUDY),
    "dubey figure 3": Block(("dubey2009-table",), dubey_3, dubey_3_judged, "[figure 3](#dubey-figure-3", STUDY),
}  # fmt: skip
