"""Searches against the grids of conf/ohsumed.yaml and conf/mq2008.yaml, for as many seconds of the processor as the grid took on the fold; and
the average of each one's best five cells (`best` in a configuration).

Chosen by validation NDCG@10 under the default conventions, five folds, three seeds of a search; nothing of data or training is cut. Cells are
trained one after another by one thread, in the order in which a run trains them; seconds are those of training alone.

python benchmarks/searches.py
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
import tasks.evidence  # noqa: F401  (keys of a configuration)
from benchmarks.results import Table
from ltr.data.queries import Queries
from ltr.kernels.kernel import Floats
from tasks.config.reading import parse, read
from tasks.config.run_config import RunConfig
from tasks.config.search_section import Search
from tasks.data.ready import ready_data
from tasks.store.datasets import open_queries
from tasks.training.search import Came, surely_better, waves

MEASURE = "ndcg_10"
SETS = ("ohsumed", "mq2008")
RANKERS = {"trees": "lambdamart", "linear net": "linear"}
"""By their names in the two configurations."""
SEARCHES: Mapping[str, Mapping[str, Any]] = {
    "search: auto": {"trials": 5000},
    "the same, no halving": {"trials": 5000, "halving": 0},
    "random, no halving": {"trials": 5000, "halving": 0, "sampler": "random"},
}
BEST = "the {}'s best five, averaged"
SEEDS, MORE = (1, 2, 3), 4
"""Seeds of each search, and how many times longer one more of the first goes on."""
TOGETHER = 5
"""Of the best cells, averaged, beside the best alone."""


@dataclass(frozen=True)
class Point:
    """A trained cell: seconds of the processor so far, its measure on validation and test queries, and the ranker."""

    seconds: float
    valid: float
    test: float
    fitted: ltr.Ranker
    by_query: Floats
    """Its measure on each validation query."""


class Trainer:
    """Trains cells on one fold and counts seconds."""

    def __init__(self, sets: tuple[Queries, ...]) -> None:
        self.train, self.valid, self.test = sets
        self.seconds = 0.0

    def fit(self, ranker: ltr.Ranker, begun: ltr.Ranker | None = None) -> ltr.Ranker:
        started = time.process_time()
        try:
            return ranker.go_on(begun, self.train, self.valid) if begun else ranker.fit(self.train, self.valid)
        finally:
            self.seconds += time.process_time() - started

    def point(self, fitted: ltr.Ranker) -> Point:
        valid, test = (measured(queries, fitted.predict(queries.features)) for queries in (self.valid, self.test))
        return Point(self.seconds, mean(valid), mean(test), fitted, valid)

    def together(self, points: list[Point]) -> Point:
        """The mean of the best cells' scores, each divided by its standard deviation within training queries, as `ltr.Average` has it."""
        chosen = sorted(points, key=lambda point: -point.valid)[:TOGETHER]
        query = np.repeat(np.arange(self.train.n_queries), np.diff(self.train.offsets))
        valid, test = np.zeros(self.valid.n_documents), np.zeros(self.test.n_documents)
        for point in chosen:
            scores = point.fitted.predict(self.train.features)
            means = np.bincount(query, scores) / np.bincount(query)
            deviation = np.sqrt(np.mean((scores - means[query]) ** 2)) or 1.0
            valid += point.fitted.predict(self.valid.features) / deviation
            test += point.fitted.predict(self.test.features) / deviation
        by_query = measured(self.valid, valid)
        return Point(self.seconds, mean(by_query), mean(measured(self.test, test)), chosen[0].fitted, by_query)


def measured(queries: Queries, scores: Floats) -> Floats:
    return ltr.evaluate(queries.labels, scores, queries.offsets, [MEASURE])[MEASURE]


def mean(values: Floats) -> float:
    return float(np.nanmean(values))


def gridded(config: RunConfig, trainer: Trainer) -> Iterator[Point]:
    for point in config.cells("r"):
        yield trainer.point(trainer.fit(point.section.build()))


def searched(config: RunConfig, trainer: Trainer, seconds: float, seed: int) -> Iterator[Point]:
    """Cells of a search, the last one begun before its time is over."""
    section, lengths = config.rankers["r"], config.lengths("r")
    assert section.search is not None
    going = waves(section.search, section.space, section.settings, len(lengths), seed)
    wanted, fitted = next(going), {}
    while True:
        came = {}
        for one in wanted:
            if trainer.seconds >= seconds:
                return
            length = lengths[one.rung]
            try:
                ranker = config.point("r", one.settings, length).section.build()
                fitted[one.number] = trainer.fit(ranker, fitted.get(one.number))
            except (ValueError, ArithmeticError):
                came[one.number] = Came(None)
                continue
            point, curve = trainer.point(fitted[one.number]), fitted[one.number].curve
            stopped = curve is not None and length is not None and len(curve.iteration) > 0 and curve.iteration[-1] < length
            came[one.number] = Came(point.valid, stopped or one.rung == len(lengths) - 1)
            yield point
        wanted = going.send(came)


def configured(name: str, ranker: str, search: Mapping[str, Any] | None) -> RunConfig:
    """The ranker of a configuration alone, swept as there or searched."""
    written = (
        read(Path(__file__).parents[1] / "conf" / f"{name}.yaml")
        .rankers[RANKERS[ranker]]
        .model_dump(mode="json", exclude_unset=True)
    )
    if search is not None:
        written = {key: value for key, value in written.items() if key != "sweep"} | {"search": search}
    return parse({"data": {"files": "x"}, "select": MEASURE, "rankers": {"r": written}})


def folds_of(name: str) -> list[tuple[Queries, ...]]:
    data = ready_data(read(Path(__file__).parents[1] / "conf" / f"{name}.yaml"))
    return [tuple(open_queries(dataset) for dataset in (fold.train, fold.valid, fold.test)) for fold in data.folds]


def together(trainers: list[Trainer], runs: list[list[Point]]) -> list[list[Point]]:
    """Of each run its best cells, averaged; runs are those of the folds one seed after another."""
    return [[trainers[k % len(trainers)].together(run)] for k, run in enumerate(runs)]


def best(points: list[Point]) -> Point:
    return max(points, key=lambda point: point.valid)


def taken(points: list[Point], searched: bool) -> Point:
    """What a run chooses: the best of a grid; of a search the first, which is the ranker as written, unless another is surely better."""
    one = best(points)
    return one if not searched or surely_better(one.by_query, points[0].by_query, Search().standard_errors) else points[0]


def add(table: Table, words: tuple[str, ...], runs: list[list[Point]], grids: list[list[Point]], averaged: int = 0) -> None:
    """A row of `runs`, those of the folds one seed after another, against the grids of the folds; `averaged`: each is one average of so many."""
    against, searched = [grids[k % len(grids)] for k in range(len(runs))], runs is not grids and not averaged
    tests = [taken(run, searched).test for run in runs]
    differences = np.array([test - best(grid).test for test, grid in zip(tests, against, strict=True)])
    by_fold = differences.reshape(-1, len(grids)).mean(axis=0)
    shares = []
    for run, grid in zip(runs, against, strict=True):
        reached = [point.seconds for point in run if point.valid >= best(grid).valid]
        shares.append(reached[0] / grid[-1].seconds if reached else np.inf)
    table.add(
        *words,
        f"{averaged or np.mean([len(run) for run in runs]):.0f}",
        f"{np.mean([best(run).valid for run in runs]):.4f}",
        f"{np.mean(tests):.4f}",
        "" if runs is grids else f"{by_fold.mean():+.4f} ± {by_fold.std(ddof=1) / np.sqrt(len(by_fold)):.4f}",
        "" if averaged else f"{np.median(shares):.2f} ({np.isfinite(shares).sum()} of {len(shares)})" if np.isfinite(np.median(shares)) else f"– ({np.isfinite(shares).sum()} of {len(shares)})",
    )  # fmt: skip


def main() -> None:
    columns = ("data", "ranker", "drawn", "time", "cells", "validation", "test", "test less the grid's", "time to the grid's best")
    title = "Searches and grids, NDCG@10 of what validation queries choose; means over five folds and three seeds"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        data = {name: folds_of(name) for name in SETS}
        table = Table("searches.grids", title, columns, peers=("optuna",), threads=1)
        for ranker in RANKERS:
            for name in SETS:
                grid = configured(name, ranker, None)
                trainers = [Trainer(sets) for sets in data[name]]
                next(gridded(grid, Trainer(data[name][0])))
                grids = [list(gridded(grid, trainer)) for trainer in trainers]
                add(table, (name, ranker, "grid", "1"), grids, grids)
                add(table, (name, ranker, BEST.format("grid"), "1"), together(trainers, grids), grids, min(TOGETHER, len(grids[0])))
                for words, search in SEARCHES.items():
                    config = configured(name, ranker, search)

                    def runs(times: int, seeds: tuple[int, ...], name=name, config=config, trainers=trainers) -> list[list[Point]]:
                        return [
                            list(searched(config, Trainer(sets), times * grid.seconds, seed))
                            for seed in seeds
                            for sets, grid in zip(data[name], trainers, strict=True)
                        ]

                    drawn = runs(1, SEEDS)
                    add(table, (name, ranker, words, "1"), drawn, grids)
                    if search is next(iter(SEARCHES.values())):
                        add(
                            table,
                            (name, ranker, BEST.format("search"), "1"),
                            together(trainers, drawn),
                            grids,
                            min(TOGETHER, *map(len, drawn)),
                        )
                        add(table, (name, ranker, f"{words}, one seed", str(MORE)), runs(MORE, SEEDS[:1]), grids)
        table.note(
            "± is the standard error of the mean over the five folds. Of a search test is that of what a run chooses: the ranker as written unless another is better by a "
            "standard error on validation queries. The last column: after which share of the grid's time a search had a "
            "validation value as high as the grid's best, the median, and how many searches ever had."
        )
        table.record()


if __name__ == "__main__":
    main()
