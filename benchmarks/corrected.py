"""How often the intervals of measures that are corrected by few labels of people hold (`ltr.metrics.prediction_powered`).

First on the pairs of RAG 2025 that both people and a language model judged: people's labels of a random sample, the model's of all. Then on generated
populations in which the machine agrees with people from four fifths of the time to nearly always, where few surprises make intervals too short. A
ranking is a noisy copy of people's labels (of the machine's in the second table), gains are linear, and what an interval should hold is the
measure from all of people's labels.

python benchmarks/corrected.py [DRAWS]
"""

import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.machine_labels import rag
from benchmarks.results import Table
from ltr.metrics.prediction_powered import Corrected, corrected

DRAWS = 600
SHARES = (0.05, 0.1, 0.2)
QUERIES, DOCUMENTS, JUDGED = 100, 50, 400
AGREE, RELEVANT = (0.8, 0.9, 0.97, 0.99), (0.02, 0.1, 0.3)
A_SIXTH = 1 / 6
"""Of a population's draws, fewer of which say nothing of how often they hold."""
Floats = NDArray[np.float64]


def discounts(query: NDArray[np.int64], scores: Floats, cutoff: int | None = None) -> Floats:
    """What a gain counts in the mean DCG over queries, ``[documents]``."""
    order = np.lexsort((-scores, query))
    begins = np.searchsorted(query[order], np.arange(query.max() + 1))
    ranks = np.empty(len(query))
    ranks[order] = np.arange(len(query)) - begins[query[order]] + 1
    weights = 1 / np.log2(1 + ranks) / (query.max() + 1)
    return np.where(ranks <= (cutoff or len(query)), weights, 0.0)


def drawn(weights: Floats, people: Floats, machine: Floats, n: int, draws: int, seed: int) -> tuple[list[Corrected], Floats]:
    """The measure from each sample of so many of people's labels, and whether its interval holds the truth."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        judged = np.full(len(people), np.nan)
        of_sample = rng.permutation(len(people))[:n]
        judged[of_sample] = people[of_sample]
        found.append(corrected(weights, judged, machine, seed=seed))
    truth = float(weights @ people)
    return found, np.array([one.interval[0] <= truth <= one.interval[1] for one in found], np.float64)


def width(interval: tuple[float, float]) -> float:
    return interval[1] - interval[0]


def on_rag(draws: int) -> None:
    query, *labels = rag()
    people, machine = (one.astype(np.float64) for one in labels)
    rng = np.random.default_rng(1)
    first, second = (people + rng.normal(0, 2, len(people)) for _ in range(2))
    measures = {
        "mean gain": np.full(len(people), 1 / len(people)),
        "DCG of whole lists": discounts(query, first),
        "DCG@100": discounts(query, first, 100),
        "DCG@20": discounts(query, first, 20),
        "difference of two rankings' DCG": discounts(query, first) - discounts(query, second),
        "difference of two rankings' DCG@20": discounts(query, first, 20) - discounts(query, second, 20),
    }
    columns = ("95 % intervals of", *(f"{100 * share:g} % by people: holds" for share in SHARES), "width beside people's alone")
    table = Table("corrected.rag", "Intervals of corrected measures, RAG 2025", columns, threads=1, keep=draws >= DRAWS)
    for name, weights in measures.items():
        cells, widths = [], []
        for share in SHARES:
            found, holds = drawn(weights, people, machine, round(share * len(people)), draws, 1)
            cells.append(f"{holds.mean():.3f}")
            widths.append(np.mean([width(one.interval) for one in found]) / np.mean([width(one.people_interval) for one in found]))
        table.add(name, *cells, ends(widths))
    table.note(
        f"{len(people):,} pairs of {query.max() + 1} queries, in {100 * (people == machine).mean():.0f} % of which people and the model agree. {draws} samples each; "
        "rankings are people's labels with noise of standard deviation 2, gains are linear."
    )
    table.record()


def population(agree: float, relevant: float, seed: int) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Queries, people's labels, of which so many are above 0, and those of a machine that says any other label where it does not agree."""
    rng = np.random.default_rng(seed)
    n = QUERIES * DOCUMENTS
    people = np.where(rng.random(n) < relevant, rng.integers(1, 5, n), 0)
    machine = np.where(rng.random(n) < agree, people, (people + rng.integers(1, 5, n)) % 5)
    return np.repeat(np.arange(QUERIES), DOCUMENTS), people.astype(np.float64), machine.astype(np.float64)


def on_populations(draws: int) -> None:
    columns = ("the machine agrees in", "measure", "draws without a warning", "these hold", "draws with a warning", "these hold")
    table = Table("corrected.surprises", "Intervals where surprises are few", columns, threads=1, keep=draws >= DRAWS)
    for agree, measure in product(AGREE, ("mean gain", "DCG@20", "difference of two rankings' DCG@20")):
        of_all: dict[bool, list[tuple[int, float]]] = {True: [], False: []}
        for seed, relevant in enumerate(RELEVANT):
            query, people, machine = population(agree, relevant, seed)
            noise = np.random.default_rng([1, seed]).normal(0, 1, (2, len(people)))
            weights = (
                np.full(len(people), 1 / len(people))
                if measure == "mean gain"
                else discounts(query, machine + noise[0], 20)
                - (discounts(query, machine + noise[1], 20) if "difference" in measure else 0)
            )
            found, holds = drawn(weights, people, machine, JUDGED, draws, seed)
            trusted = np.array([one.trusted for one in found])
            for warned in (True, False):
                mine = trusted != warned
                of_all[warned].append((int(mine.sum()), float(holds[mine].mean()) if mine.any() else np.nan))
        table.add(f"{100 * agree:g} %", measure, *(cell for warned in (False, True) for cell in told(of_all[warned], draws)))
    table.note(
        f"{len(RELEVANT)} populations a row of {QUERIES * DOCUMENTS:,} pairs in {QUERIES} queries, with labels above 0 in "
        f"{', '.join(f'{100 * r:g} %' for r in RELEVANT)}; where the machine does not agree it says any other label. People judge {JUDGED}, {draws} draws "
        "each. A share that holds is of populations in which a sixth of the draws or more are of that kind; the range is over them."
    )
    table.record()


def told(of_populations: list[tuple[int, float]], draws: int) -> tuple[str, str]:
    """The share of draws over all populations, and the range of what holds among them."""
    share = sum(n for n, _ in of_populations) / (draws * len(of_populations))
    held = [holds for n, holds in of_populations if n >= A_SIXTH * draws]
    return f"{100 * share:.0f} %", ends(held) if held else "too few"


def ends(values: Sequence[float]) -> str:
    """The least and the largest."""
    low, high = (f"{end(values):.2f}" for end in (min, max))
    return low if low == high else f"{low}–{high}"


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS
    on_rag(draws)
    on_populations(draws)


if __name__ == "__main__":
    main()
