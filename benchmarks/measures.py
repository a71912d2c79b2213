"""Evaluating rankings: our measures beside ranx and pytrec_eval (through ir_measures' provider), values compared first.

python benchmarks/measures.py
"""

import sys
from pathlib import Path

import numba
import numpy as np

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


if __name__ == "__main__":
    main()
