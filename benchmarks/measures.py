"""Evaluating rankings: our measures beside ranx and pytrec_eval (through ir_measures' provider), values compared first; from what each tool
reads (arrays here, its own objects there), and from the same dictionaries of judgments and of a run.

python benchmarks/measures.py
"""

import sys
from collections.abc import Mapping
from itertools import chain, repeat
from pathlib import Path

import numba
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.pairs import alternate, columns
from benchmarks.results import Table

QUERIES, DOCUMENTS = 10_000, 100
RULES = ltr.Conventions(threshold=1, gain="linear", empty="zero")


def main() -> None:
    import pytrec_eval
    import ranx

    rng = np.random.default_rng(1)
    labels = rng.integers(0, 5, QUERIES * DOCUMENTS)
    scores = rng.permutation(QUERIES * DOCUMENTS).astype(float)
    offsets = np.arange(0, QUERIES * DOCUMENTS + 1, DOCUMENTS)
    names = [f"d{k}" for k in range(DOCUMENTS)]
    qrels = {f"q{q}": dict(zip(names, labels[o : o + DOCUMENTS].tolist(), strict=True)) for q, o in enumerate(offsets[:-1])}
    run = {f"q{q}": dict(zip(names, scores[o : o + DOCUMENTS].tolist(), strict=True)) for q, o in enumerate(offsets[:-1])}
    ranx_qrels, ranx_run = ranx.Qrels(qrels), ranx.Run(run)
    floats = labels.astype(float)
    trec = {"ndcg@10": "ndcg_cut_10", "map": "map", "mrr": "recip_rank"}
    for threads in (1, numba.config.NUMBA_NUM_THREADS):
        numba.set_num_threads(threads)
        key, what = ("one_thread", "what, one thread") if threads == 1 else ("all_threads", "what, all threads")
        title = f"Evaluating {QUERIES:,} queries × {DOCUMENTS} documents"
        table = Table(f"measures.{key}", title, columns("peer", what), ("ranx", "pytrec_eval-terrier"), threads)
        for name, trec_name in trec.items():
            evaluator = pytrec_eval.RelevanceEvaluator(qrels, {trec_name.replace("_10", ".10")})

            def ours(name: str = name) -> float:
                (values,) = ltr.evaluate(floats, scores, offsets, [name], RULES).values()
                return float(values.mean())

            def by_ranx(name: str = name, threads: int = threads) -> float:
                return float(ranx.evaluate(ranx_qrels, ranx_run, name, threads=threads))

            def by_trec(evaluator: "pytrec_eval.RelevanceEvaluator" = evaluator, trec_name: str = trec_name) -> float:
                return float(np.mean([value[trec_name] for value in evaluator.evaluate(run).values()]))

            assert abs(ours() - by_ranx()) < 1e-9, (ours(), by_ranx())
            assert abs(ours() - by_trec()) < 1e-5, (ours(), by_trec())
            table.add(f"{name.upper()} and ranx", *alternate(ours, by_ranx).cells)
            if threads == 1:
                table.add(f"{name.upper()} and pytrec_eval", *alternate(ours, by_trec).cells)
        table.record()
    from_dictionaries(qrels, run, trec)


Ratings = dict[str, dict[str, int]]
Scores = dict[str, dict[str, float]]


def arrays_of(qrels: Ratings, run: Scores) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Labels and scores of a run's documents, and where queries begin."""
    lengths = [len(found) for found in run.values()]
    total = sum(lengths)
    scores = np.fromiter(chain.from_iterable(found.values() for found in run.values()), np.float64, total)
    judged = (map(qrels[query].get, found, repeat(0)) for query, found in run.items())
    labels = np.fromiter(chain.from_iterable(judged), np.float64, total)
    return labels, scores, np.append(0, np.cumsum(lengths))


def from_dictionaries(qrels: Ratings, run: Scores, trec: Mapping[str, str]) -> None:
    """The same dictionaries to every tool, whatever it makes of them on the way to a mean."""
    import pytrec_eval
    import ranx

    numba.set_num_threads(1)
    title = f"Evaluating {QUERIES:,} queries × {DOCUMENTS} documents from dictionaries"
    table = Table("measures.dictionaries", title, columns("peer", "what, one thread"), ("ranx", "pytrec_eval-terrier"), 1)
    for name, trec_name in trec.items():

        def ours(name: str = name) -> float:
            (values,) = ltr.evaluate(*arrays_of(qrels, run), [name], RULES).values()
            return float(values.mean())

        def by_ranx(name: str = name) -> float:
            return float(ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), name, threads=1))

        def by_trec(trec_name: str = trec_name) -> float:
            found = pytrec_eval.RelevanceEvaluator(qrels, {trec_name.replace("_10", ".10")}).evaluate(run)
            return float(np.mean([value[trec_name] for value in found.values()]))

        for peer, theirs in (("ranx", by_ranx), ("pytrec_eval", by_trec)):
            assert abs(ours() - theirs()) < 1e-5, (name, peer)
            table.add(f"{name.upper()} and {peer}", *alternate(ours, theirs).cells)
    table.record()


if __name__ == "__main__":
    main()
