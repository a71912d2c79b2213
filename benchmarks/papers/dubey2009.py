"""Dubey 2009: conditional models beside the baselines, and how their sampler is set."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.papers.block import Block, Entry, Judged, Runs, drawn_cells, graded, head, number, whence
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


def along(path: str, run: Entry) -> dict[float, dict[str, float]]:
    """At each value of what is plotted: means over the folds of the cells that are best on validation MAP."""
    best = {(value, fold): cell for (_, value, fold), cell in drawn_cells(run, path).items()}
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
        return graded([yes], len(gains)), told

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
        return graded(held, 2), "; ".join(told)

    return judge


def smear(runs: Runs) -> list[str]:
    rows = head(["", "mean Δ, begun at the best", "in the middle", "at the worst", "correlation of w·φ and Δ"])
    for title, run in runs:
        for name, one in run["trace"].items():
            rows.append(
                line(
                    [
                        f"{title}: {name}",
                        *(number(one["mean loss"][begin]) for begin in ("0", "0.5", "1")),
                        f"{one['correlation']:.2f}",
                    ]
                )
            )
    return rows


def smear_judged(runs: Runs) -> Judged:
    """C figure 7: walks from Δ = 1 stay closer to where they begin than walks from Δ = 0."""
    found = [(name, one["mean loss"]["0"], 1 - one["mean loss"]["1"]) for _, run in runs for name, one in run["trace"].items()]
    yes = sum(worst < best for _, best, worst in found)
    told = f"{yes} of {len(found)} walks from the worst stay closer to where they begin than walks from the best"
    return graded([yes], len(found)), told


def objectives(runs: Runs) -> list[str]:
    rows = head(["", "sampled objective, first iteration", "last", "closed form, first", "last", "correlation of w·φ and Δ"])
    for title, run in runs:
        for name, one in run["trace"].items():
            ends = [f"{value:,.1f}" for value in one["sampled"]] + ([f"{v:,.1f}" for v in one["closed"]] or ["", ""])
            rows.append(line([f"{title}: {name}", *ends, f"{one['correlation']:.2f}"]))
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
SETS = {"-MQ2008": "MQ2008", "-OHSUMED": "OHSUMED", **FEW}
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
