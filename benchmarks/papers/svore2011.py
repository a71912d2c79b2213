"""Svore 2011: the graded objective, schedules, and what λ's do while trees learn."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from benchmarks.papers.block import Block, Entry, Judged, Runs, drawn_cells, graded, head, number, shown, whence
from benchmarks.results import line


def svore_1(runs: Runs) -> list[str]:
    """Rankers side by side, a truncation a row."""
    rows = []
    for _, run in runs:
        rankers = run["rankers"]
        rows += head(["ours", *rankers])
        rows.append(line(["chosen", *(one["chosen"][0] for one in rankers.values())]))
        for key in [
            f"{kind}_{k}{source}" for kind, source in (("ndcg", ""), ("cndcg", ""), ("cndcg", "_similar")) for k in range(1, 11)
        ]:
            better = ("*" if one["beats"].get(key, {}).get("baseline") == 95 else "" for one in rankers.values())
            rows.append(
                line([key, *(number(one["test"][key][0]) + mark for one, mark in zip(rankers.values(), better, strict=True))])
            )
        rows += ["", *(f"{name}, chosen by the guarantee: {one['said']}" for name, one in run["guarantee"].items())]
    return [*rows, "", "\\*: better than the baseline at 95 %."]


def svore_1_judged(runs: Runs) -> Judged:
    """S table 1: CNDCG@3 gains three points at least, significantly, and NDCG@3 loses nothing."""
    held = []
    for _, run in runs:
        base = run["rankers"]["baseline"]
        for name, key in (("graded-equal", "cndcg_3"), ("graded-similar", "cndcg_3_similar")):
            one = run["rankers"][name]
            better = one["beats"].get(key, {}).get("baseline") == 95
            harmed = base["beats"].get("ndcg_3", {}).get(name) == 95
            gain = one["test"][key][0] - base["test"][key][0]
            said = f"{name}: {key} {gain:+.4f}{', significantly' if better else ''}{', NDCG@3 harmed' if harmed else ''}"
            held.append(((better and not harmed) + (better and gain >= 0.03), said))
    return graded([n for n, _ in held], 2), "; ".join(text for _, text in held)


def last(series: Sequence[float | None]) -> float:
    """The last number of a series."""
    return next(value for value in reversed(series) if value is not None)


def seen(run: Entry) -> Entry:
    """What the microscope saw of a run's first ranker."""
    return next(iter(run["microscope"].values()))


def percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


WHEN = (10, 50, 100, 200, 500)
"""Numbers of trees at which a training is looked at."""


def at(run: Entry, series: Sequence[Any], n: int) -> Any:
    """An entry of a series of snapshots, after so many trees."""
    return series[seen(run)["iteration"].index(n)]


def agreement(runs: Runs) -> list[str]:
    rows = head(["after trees", *map(str, WHEN)])
    for _, run in runs:
        for kind, said in (("all", "all click pairs"), ("same_label", "clicked pairs of one label")):
            rows.append(line([said, *(percent(at(run, seen(run)["agreement"][kind], n)) for n in WHEN)]))
    return rows


def agreement_judged(runs: Runs) -> Judged:
    """S figure 2: about 70 % agree, and about 15 points more under the restriction."""
    told, held = [], []
    for _, run in runs:
        free, bound = (last(seen(run)["agreement"][kind]) for kind in ("all", "same_label"))
        held.append((abs(free - 0.7) <= 0.1) + (bound - free >= 0.1))
        told.append(f"{free:.0%} agree in the end, {100 * (bound - free):.0f} points more under the restriction")
    return graded(held, 2), "; ".join(told)


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
    return graded(held, 3), "; ".join(told)


def moves(runs: Runs) -> list[str]:
    rows = head(["from one tree to the next", *(f"after {n} trees" for n in WHEN)])
    for _, run in runs:
        for part, said in (("moved", "of the whole list"), ("moved_top", "of the top 3")):
            rows.append(line([said, *(percent(at(run, seen(run)[part], n)) for n in WHEN)]))
    return rows


def moves_judged(runs: Runs) -> Judged:
    """S figure 4: after 100 trees 5–15 % of the whole list move and less than 3 % of the top 3."""
    found = [(at(run, seen(run)["moved"], 100), at(run, seen(run)["moved_top"], 100)) for _, run in runs]
    told = "; ".join(
        f"after 100 trees {whole:.0%} of the list and {top:.1%} of the top 3 move from one tree to the next" for whole, top in found
    )
    return graded([(top < whole) + (0.05 <= whole <= 0.15) + (top < 0.03) for whole, top in found], 3), told


SIZES = (10, 50, 100, 200, 500, 1000)


def by_trees(runs: Runs) -> list[str]:
    """Test NDCG@3 along a training of every ranker."""
    rows = head(["test NDCG@3", *(f"after {n} trees" for n in SIZES)])
    for _, run in runs:
        for name, one in run["microscope"].items():
            where = dict(zip(one["iteration"], one["test"], strict=True))
            rows.append(line([name, *(number(where[n]) for n in SIZES)]))
    return rows


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
    return graded(held, len(SIZES)), "; ".join(told)


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
    return graded(held, 2), "; ".join(told)


def shares_of(run: Entry) -> dict[tuple[str, float], Entry]:
    """The best cell on validation NDCG@3 of each ranker at each share of the training queries."""
    return {(name, share): cell for (name, share, _), cell in drawn_cells(run, "train_share").items()}


def by_share(runs: Runs) -> list[str]:
    rows = head(["test", "share of the training queries", "NDCG@1", "NDCG@3", "NDCG@10"])
    for _, run in runs:
        for (name, share), cell in shares_of(run).items():
            rows.append(line([name, f"{share:g}", *(number(cell[f"test_ndcg_{k}"]) for k in (1, 3, 10))]))
    return rows


def by_share_judged(runs: Runs) -> Judged:
    """S figure 7: gains at every share and rank, and gradient beats Newton. Nominally: cells of one cut are not tested against each other."""
    told, held = [], []
    for _, run in runs:
        cells = shares_of(run)
        sizes = list(dict.fromkeys(share for _, share in cells))
        gains, steps = {}, {}
        for k in (1, 3, 10):
            best = {place: cell[f"test_ndcg_{k}"] for place, cell in cells.items()}
            gains[k] = sum(
                max(best["exponential", s], best["linear", s]) > max(best["newton", s], best["gradient", s]) for s in sizes
            )
            steps[k] = sum(best["gradient", s] > best["newton", s] for s in sizes)
        held.append(sum(n == len(sizes) for n in (*gains.values(), *steps.values())))
        ahead, beaten = (", ".join(f"{n} (@{k})" for k, n in of.items()) for of in (gains, steps))
        told.append(f"of {len(sizes)} sizes λ + λ^S is ahead at {ahead}, gradient ahead of Newton at {beaten}")
    return graded(held, 6), "; ".join(told)


def best_schedule(runs: Runs) -> Judged:
    """The paper draws schedules and has no number for what comes of them."""
    best = {title: max(run["rankers"], key=lambda name: run["rankers"][name]["test"]["ndcg_3"][0]) for title, run in runs}
    return "cannot be compared", f"best of the six in test NDCG@3: {', '.join(best.values())}; the paper has no such number"


OF_108K = partial(whence, of_training=108_000)


BLOCKS = {
    "svore table 1": Block(("svore2011-table1",), svore_1, svore_1_judged, "[table 1](#svore-table-1", whence=OF_108K),
    "svore figure 2": Block(("svore2011-figure2",), agreement, agreement_judged, "[figure 2](#svore-figure-2", whence=OF_108K),
    "svore figure 3a": Block(("svore2011-figure3",), shares("partners", "force from"), partners_judged, "[figure 3a](#svore-figure-3", whence=OF_108K),
    "svore figure 3b": Block(("svore2011-figure3",), shares("top_labels", "in the top 3"), top_judged, "[figure 3b](#svore-figure-3", whence=OF_108K),
    "svore figure 4": Block(("svore2011-figure4",), moves, moves_judged, "[figure 4](#svore-figure-4", whence=OF_108K),
    "svore figure 6": Block(("svore2011-figure6",), tops(), best_schedule, whence=OF_108K),
    "svore same size": Block(("svore2011-trees",), by_trees, same_size, "[same size](#svore-models", whence=OF_108K),
    "svore table 2": Block(("svore2011-table2",), tops(keys=[f"ndcg_{k}" for k in range(1, 11)]), schedules_judged, "[table 2](#svore-table-2", whence=OF_108K),
    "svore figure 7": Block(("svore2011-figure7",), by_share, by_share_judged, "[figure 7](#svore-figure-7", whence=OF_108K),
}  # fmt: skip
