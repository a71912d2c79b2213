"""What it costs to learn from a machine's labels, as they are and calibrated on the few that people gave (`ltr.metrics.calibration`).

Labels of MQ2008 (0–2) are redrawn as a machine would give them, by the confusion of people's and a language model's labels of RAG 2025 (0–4, taken
as 0, 1–2 and 3–4). People's labels of a random share of the training and validation documents are the true ones; all that is chosen is chosen by
labels of the same kind. Rankers are LambdaMART as it comes, and are tested on the true labels of LETOR's five folds. In the second table the
queries are of two kinds, known to the calibration: half have the confusion of those RAG queries that the model is kindest to, half that of the others.

python benchmarks/machine_labels.py [SEEDS]
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.defaults import FOLDER, RULES, Folds, folds, ids, parts_of
from benchmarks.results import Table
from ltr.data.queries import Queries
from ltr.metrics.calibration import calibrate, expected_labels
from ltr.metrics.gains import graded

SHARES, SEEDS, WORTH_DRAWS = (0.05, 0.1, 0.2), 5, 60
COARSE = np.array([0, 1, 1, 2, 2])
Labels = NDArray[np.float64]
Confused = NDArray[np.float64]
"""P(machine | people) ``[kinds of queries, people, machine]``."""
TRUE, PLAIN, MIXED = "people's labels of everything", "the machine's as they are", "the machine's, people's where they judged"
ALONE, EXPECTED, BY_KIND, WEIGHED = "people's alone", "calibrated", "calibrated by kind of query", "{}, with weights".format


def rag() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The query of each pair of RAG 2025 that both judged, and people's and the machine's labels (0–4)."""
    read = [
        {tuple(row.split()[::2]): int(row.split()[3]) for row in (FOLDER / "rag25" / f"{who}.qrels").read_text().splitlines()}
        for who in ("human", "machine")
    ]
    pairs = sorted(set(read[0]) & set(read[1]))
    people, machine = (np.array([one[pair] for pair in pairs]) for one in read)
    return np.unique([topic for topic, _ in pairs], return_inverse=True)[1], people, machine


def confusions() -> tuple[Confused, Confused]:
    """Of all RAG queries alike, and of those that the machine is kind to and the others."""
    of_topic, *labels = rag()
    people, machine = (COARSE[one] for one in labels)
    kindness = np.bincount(of_topic, machine - people) / np.bincount(of_topic)
    kind = (kindness > np.median(kindness))[of_topic].astype(int)

    def table(rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        counts = np.bincount(3 * people[rows] + machine[rows], minlength=9).reshape(3, 3).astype(np.float64)
        return counts / counts.sum(axis=1, keepdims=True)

    everything = np.ones(len(people), np.bool_)
    return table(everything)[None], np.stack([table(kind == k) for k in (0, 1)])


class Drawn:
    """A part of the data with a machine's labels, the kind of each query, and the order in which people judge."""

    def __init__(self, queries: Queries, confused: Confused, rng: np.random.Generator) -> None:
        self.queries, self.query = queries, ids(queries)
        self.kind = rng.integers(0, len(confused), queries.n_queries)[self.query]
        below = np.cumsum(confused[self.kind, queries.labels.astype(int)], axis=1)
        self.machine = (rng.random(queries.n_documents)[:, None] > below).sum(axis=1).clip(max=2).astype(np.float64)
        self.turn = rng.permutation(queries.n_documents) / queries.n_documents

    def people(self, share: float) -> Labels:
        return np.where(self.turn < share, self.queries.labels, np.nan)


def ways(parts: list[Drawn], share: float, grouped: bool) -> dict[str, list[Queries]]:
    """Training and validation queries with labels of each kind."""
    people = [part.people(share) for part in parts]
    found = {
        MIXED: [
            replace(one.queries, labels=np.where(np.isnan(own), one.machine, own)) for one, own in zip(parts, people, strict=True)
        ],
        ALONE: [replace(one.queries, labels=own) for one, own in zip(parts, people, strict=True)],
    }
    attributes = {"kind": np.concatenate([part.kind for part in parts]).astype(str)}
    known: dict[str, Mapping[str, NDArray[np.str_]]] = {EXPECTED: {}, **({BY_KIND: attributes} if grouped else {})}
    for name, by in known.items():
        machine = np.concatenate([part.machine for part in parts])
        confusion = calibrate(np.concatenate(people), machine, by, gain=lambda labels: graded(labels, RULES))
        for part, own, mixed in zip(parts, people, found[MIXED], strict=True):
            labels, sure = expected_labels(confusion, confusion.of(part.machine, {"kind": part.kind.astype(str)}), RULES)
            made = replace(part.queries, labels=np.where(np.isnan(own), labels, own))
            weights = np.where(np.isnan(own), sure, 1.0)
            found.setdefault(name, []).append(made)
            found.setdefault(WEIGHED(name), []).append(replace(made, document_weights=weights))
            if name == EXPECTED:
                found.setdefault(WEIGHED(MIXED), []).append(replace(mixed, document_weights=weights))
    return found


def ndcg(train: Queries, valid: Queries, test: Queries, seed: int) -> NDArray[np.float64]:
    """NDCG@10 of each test query ``[queries]`` by its true labels."""
    model = ltr.LambdaMART(conventions=RULES, seed=seed).fit(train, valid)
    return ltr.evaluate(test.labels, model.predict(test.features), test.offsets, ["ndcg@10"], RULES)["ndcg_10"]


Found = dict[tuple[str, float], list[NDArray[np.float64]]]
"""By labels and share of people's the values ``[queries]`` of each seed, the queries of all folds one after another."""


def measured(parts: Folds, confused: Confused, seeds: range) -> Found:
    found: Found = {}
    for seed in seeds:
        of_seed: dict[tuple[str, float], list[NDArray[np.float64]]] = {}

        def add(
            name: str, share: float, values: NDArray[np.float64], into: dict[tuple[str, float], list[NDArray[np.float64]]] = of_seed
        ) -> None:
            into.setdefault((name, share), []).append(values)

        for fold, (train, valid, test) in enumerate(parts):
            rng = np.random.default_rng([seed, fold])
            drawn = [Drawn(part, confused, rng) for part in (train, valid)]
            true = ndcg(train, valid, test, seed)
            plain = ndcg(*(replace(one.queries, labels=one.machine) for one in drawn), test, seed)
            for share in SHARES:
                add(TRUE, share, true)
                add(PLAIN, share, plain)
                for name, (first, second) in ways(drawn, share, len(confused) > 1).items():
                    add(name, share, ndcg(first, second, test, seed))
        for key, values in of_seed.items():
            found.setdefault(key, []).append(np.concatenate(values))
    return found


def cell(found: Found, name: str, share: float) -> str:
    """Mean NDCG@10, and how far it is from that of the machine's and people's labels as they are: with the standard error over test queries,
    each with its mean over the seeds."""
    values = np.mean(found[name, share], axis=0)
    if name == MIXED:
        return f"{np.nanmean(values):.4f}"
    gap = values - np.mean(found[MIXED, share], axis=0)
    gap = gap[~np.isnan(gap)]
    return f"{np.nanmean(values):.4f} ({gap.mean():+.4f} ±{gap.std(ddof=1) / np.sqrt(len(gap)):.4f})"


def worth() -> None:
    """How far the gains that a machine's labels are worth are from what they are over all pairs of RAG 2025, where people judged a few of them:
    by the drawing that makes held-out labels likeliest, and by the one that brings held-out gains nearest (`data.calibrate`)."""
    query, people, machine = rag()
    table = Table(
        "machine_labels.worth",
        "Gains that labels of a machine are worth, RAG 2025",
        ("pairs", "judged by people", "mean gain", "by likelihood: bias", "error a document", "by gains: bias", "error a document"),
        threads=1,
    )
    gains = graded(np.arange(5.0), RULES)
    for title, kept in (("all", 1.0), ("of labels 3 and 4 one in twenty", 0.05)):
        for judged in (100, 300, 1000):
            found: dict[bool, list[NDArray[np.float64]]] = {False: [], True: []}
            for seed in range(WORTH_DRAWS):
                rng = np.random.default_rng(seed)
                among = np.flatnonzero((people < 3) | (rng.random(len(people)) < kept))
                y, m = people[among], machine[among]
                asked = np.isin(np.arange(len(y)), rng.choice(len(y), judged, replace=False))
                shares = np.bincount(m, minlength=5) / len(m)
                true = np.bincount(m, gains[y], 5) / np.maximum(np.bincount(m, minlength=5), 1)
                for by_gains, errors in found.items():
                    rule = (lambda labels: graded(labels, RULES)) if by_gains else None
                    confusion = calibrate(np.where(asked, y, np.nan), m, None, query[among], gain=rule)
                    off = confusion.of(np.arange(5.0), {}) @ graded(confusion.people, RULES) - true
                    errors.append(np.array([off @ shares, off**2 @ shares, true @ shares]))
            means = {way: np.mean(errors, axis=0) for way, errors in found.items()}
            told = [text for mean in means.values() for text in (f"{mean[0]:+.3f}", f"{np.sqrt(mean[1]):.3f}")]
            table.add(title, f"{judged:,}", f"{means[True][2]:.3f}", *told)
    table.note(
        f"{WORTH_DRAWS} draws of the judged pairs; a gain is 2^label − 1, labels 0 to 4. Error: the root of the mean square."
    )
    table.record()


def main() -> None:
    worth()
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    parts = folds(parts_of("mq2008"))
    for key, title, confused in zip(
        ("machine_labels.one", "machine_labels.two"), ("one confusion", "two kinds of queries"), confusions(), strict=True
    ):
        found = measured(parts, confused, range(n_seeds))
        columns = ("labels to learn from", *(f"{100 * share:g} % by people: NDCG@10" for share in SHARES))
        table = Table(key, f"MQ2008 with labels of a machine, {title}", columns, threads=1, keep=n_seeds >= SEEDS)
        for name in dict.fromkeys(name for name, _ in found):
            table.add(name, *(cell(found, name, share) for share in SHARES))
        shown = "; ".join(f"of people's {k} {', '.join(f'{p:.2f}' for p in row)}" for k, row in enumerate(confused[0]))
        table.note(
            f"Means over five folds and {n_seeds} seeds. In brackets how far NDCG@10 is from that of the machine's labels with people's in place of "
            "those that they judged, ± the standard error over test queries, each with its mean over the seeds."
            + (f" The machine says 0, 1, 2: {shown}." if len(confused) == 1 else "")
        )
        table.record()


if __name__ == "__main__":
    main()
