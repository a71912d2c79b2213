"""Results that hold arrays are shown in one line."""

import numpy as np

import ltr
from ltr.clicks.models import fit
from ltr.clicks.pages import Pages
from tests.conftest import make_queries


def test_what_holds_arrays_is_shown_in_one_line():
    queries = make_queries(30)
    trees = ltr.LambdaMART(n_trees=20, min_docs_in_leaf=3).fit(queries, queries)
    linear = ltr.LeastSquares().fit(queries)
    scores = [model.predict(queries.features) for model in (linear, trees)]
    people = np.where(np.arange(queries.n_documents) % 2, queries.labels, np.nan)
    rng = np.random.default_rng(1)
    pages = Pages(np.arange(0, 901, 3), rng.permuted(np.arange(900).reshape(-1, 3) % 3, axis=1).ravel(), np.tile([1, 2, 3], 300),
                  rng.random(900) < 0.4, np.zeros(3, np.int64))  # fmt: skip
    for given, told in (
        (ltr.permutation_importance(trees, queries), "n_queries=28, repetitions=5, level=0.95)"),
        (ltr.polish(linear, queries, steps=1), "Polished(ranker=LeastSquares() fitted on "),
        (ltr.calibrate(people, queries.labels), "Confusion(machine=float64 [5], people=float64 [5], shares=float64 [1, 5, 5], "),
        (ltr.combine(queries.labels, *scores, queries.offsets, "ndcg_10"), "Mixtures(alphas=float64 ["),
        (ltr.ledger(queries, (ltr.Term(),), scores[0]), "counts=int64 [5, 5, "),
        (
            ltr.Preferences(np.arange(99), np.arange(99) + 1),
            "Preferences(upper=int64 [99], lower=int64 [99], probability=float64 [99])",
        ),
        (trees.surface(queries.features), "Surface(weights=float64 ["),
        (trees.curve, "Curve(iteration=int64 [20], train=float64 [20], valid=float64 [20])"),
        (pages, "Pages(offsets=int64 [301], pair=int64 [900], rank=int64 [900], click=bool [900], query=int64 [3])"),
        (fit(pages, "pbm"), "Looks(name='pbm', attraction=float64 [3], "),
        (fit(pages, "dcm"), "Chain(name='dcm', attraction=float64 [3], "),
    ):
        assert told in repr(given)
        assert "\n" not in repr(given)
