"""Learning from clicks by the field's protocol (Ai et al. 2018): every way beside clicks as they are, over ten click seeds."""

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.block import Block, Judged, Runs, graded, head, number
from benchmarks.results import line
from ltr.metrics.significance import student_quantile

SEEDS = range(10)
TITLES = {"mq2008": "MQ2008", "ohsumed": "OHSUMED", "artificial": "artificial"}
KEY = "ndcg_10"
PLAIN = ("LambdaMART", "net")
"""Rankers that take clicks as they are; the ways of each begin with its name."""


def by_seed(runs: Runs, data: str) -> dict[str, NDArray[np.float64]]:
    """NDCG@10 of each ranker over the click seeds, ``float64 [seeds]``."""
    found: dict[str, list[float]] = {}
    for title, run in runs:
        if title.startswith(f"{data}, ") and not title.endswith("judged"):
            for name, one in run["rankers"].items():
                found.setdefault(name, []).append(one["test"][KEY][0])
    return {name: np.array(values) for name, values in found.items()}


def plain_of(name: str) -> str:
    """The ranker of its kind that takes clicks as they are."""
    return next(plain for plain in PLAIN if name.startswith(plain))


def gap(values: dict[str, NDArray[np.float64]], name: str) -> tuple[float, float]:
    """How far a ranker is from clicks as they are, seed by seed: the mean and its standard error."""
    own = values[name] - values[plain_of(name)]
    return float(own.mean()), float(own.std(ddof=1) / np.sqrt(len(own))) if len(own) > 1 else float("nan")


def of_data(runs: Runs) -> list[str]:
    return [data for data in TITLES if by_seed(runs, data)]


def table(runs: Runs) -> list[str]:
    values = {data: by_seed(runs, data) for data in of_data(runs)}
    judged = {data: run["rankers"] for title, run in runs for data in values if title == f"{data}, judged"}
    rows = head(["", *(TITLES[data] for data in values)])
    for plain in PLAIN:
        rows.append(
            line([f"{plain} on judgments", *(number(judged[d][plain]["test"][KEY][0]) if d in judged else "" for d in values)])
        )
        for name in (name for name in next(iter(values.values())) if plain_of(name) == plain):
            cells = []
            for own in values.values():
                mean, error = gap(own, name)
                cells.append(number(own[name].mean()) + ("" if name == plain else f" ({mean:+.4f} ±{error:.4f})"))
            rows.append(line([f"{name} on clicks as they are" if name == plain else name, *cells]))
    return rows


def judge(runs: Runs) -> Judged:
    """Ai et al. 2018: what takes the position out of clicks learns better from them."""
    better, worse, asked = 0, 0, 0
    for data in of_data(runs):
        values = by_seed(runs, data)
        for name in (name for name in values if name not in PLAIN):
            mean, error = gap(values, name)
            sure = abs(mean) > student_quantile(0.975, len(values[name]) - 1) * error
            asked, better, worse = asked + 1, better + (sure and mean > 0), worse + (sure and mean < 0)
    told = f"of {asked} ways and data sets {better} are better than clicks as they are at 95 % over the click seeds, {worse} worse"
    return graded([better], asked), told


def whence(runs: Runs) -> str:
    found: dict[str, list[str]] = {}
    for title, run in runs:
        found.setdefault(title.partition(", ")[0], []).append(run["run"][:8])
    shown = "; ".join(f"{TITLES[data]}: {', '.join(f'`{one}`' for one in own)}" for data, own in found.items())
    return (
        f"*Runs {shown}.* NDCG@10 on judged test queries, means over folds and click seeds; in brackets how far from the same ranker on clicks "
        "as they are, ± the standard error over click seeds."
    )


BLOCKS = {
    "unbiased learning": Block(
        tuple(f"unbiased-{data}" for data in TITLES),
        table,
        judge,
        sets={**{f"-clicks-{seed}": str(seed) for seed in SEEDS}, "-judged": "judged"},
        whence=whence,
    )
}
