"""The most violated ranking beside all rankings."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.linear.svmmap import most_violated
from tests.conftest import make_queries


def test_svmmap_finds_the_most_violated_ranking():
    rng = np.random.default_rng(4)
    for _ in range(60):
        n = int(rng.integers(2, 7))
        relevant = (np.arange(n) < rng.integers(1, n)).astype(float)
        scores, factors = 2 * rng.normal(size=n), np.empty(n)
        loss = most_violated(scores, relevant, factors)
        good, bad = np.flatnonzero(relevant), np.flatnonzero(relevant == 0)

        def worth(order, good=good, bad=bad, scores=scores, relevant=relevant, n=n):
            place = np.argsort(order)
            psi = sum((1 if place[g] < place[b] else -1) * (scores[g] - scores[b]) for g in good for b in bad) / (
                len(good) * len(bad)
            )
            hits = relevant[list(order)]
            precision = (np.cumsum(hits) / np.arange(1, n + 1))[hits > 0].mean()
            return 1 - precision + psi

        perfect = sum(scores[g] - scores[b] for g in good for b in bad) / (len(good) * len(bad))
        assert loss + perfect - (factors * scores).sum() == pytest.approx(max(worth(p) for p in itertools.permutations(range(n))))


@pytest.mark.parametrize("label", [0.0, 2.0])
def test_labels_that_are_all_alike_are_refused(label):
    queries = make_queries(5, seed=1)
    with pytest.raises(ValueError, match="no query has both a relevant and another document by the labels of 'label'"):
        ltr.SVMmap().fit(replace(queries, labels=np.full(queries.n_documents, label)))
