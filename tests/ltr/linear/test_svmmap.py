"""The most violated ranking beside all rankings."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

import ltr
from ltr.data.queries import canonical
from ltr.linear.linear_ranker import products, transposed
from ltr.linear.svmmap import most_violated, solve_dual
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


@pytest.mark.parametrize("largest", [0.01, 1.0, 100.0])
def test_the_dual_is_solved_as_scipy_solves_it(largest):
    """On random planes, more of them than features and some twice; from nothing and from a start."""
    rng = np.random.default_rng(6)
    for n in (1, 3, 8, 20):
        normals = rng.normal(size=(n, 5))
        normals[n // 2 :] = normals[: n - n // 2]
        gram, heights = normals @ normals.T, rng.random(n)

        def loss(a, gram=gram, heights=heights):
            return 0.5 * a @ gram @ a - heights @ a

        room = {"type": "ineq", "fun": lambda a: largest - a.sum()}
        found = optimize.minimize(
            loss, np.zeros(n), method="SLSQP", bounds=[(0, None)] * n, constraints=room, options={"ftol": 1e-14}
        )
        for start in (np.zeros(n), np.full(n, largest / n)):
            alphas = start.copy()
            solve_dual(gram, heights, largest, 1e-12, alphas)
            assert (alphas >= 0).all()
            assert alphas.sum() <= largest * (1 + 1e-12)
            assert loss(alphas) <= found.fun + 1e-8 * max(1.0, abs(found.fun))


@pytest.mark.parametrize("label", [0.0, 2.0])
def test_labels_that_are_all_alike_are_refused(label):
    queries = make_queries(5, seed=1)
    with pytest.raises(ValueError, match="no query has both a relevant and another document by the labels of 'label'"):
        ltr.SVMmap().fit(replace(queries, labels=np.full(queries.n_documents, label)))


def test_a_cutoff_is_refused():
    """The loss is one of the whole ranking."""
    assert ltr.SVMmap(measure="map:binary").trained_for[0].source == "binary"
    for measure in ("map@3", "ndcg"):
        with pytest.raises(ValueError, match=r"SVMmap optimises average precision over the whole ranking; use map or map:SOURCE"):
            ltr.SVMmap(measure=measure)


@pytest.mark.parametrize("tolerance", [0.0001, 0.01])
def test_no_plane_is_left_that_is_violated_by_more_than_the_tolerance(tolerance):
    queries = canonical(make_queries(30, seed=3))
    model = ltr.SVMmap(C=10.0, tolerance=tolerance, standardise=False).fit(queries)
    relevant, factors, losses = (queries.labels >= 2).astype(float), np.empty(queries.n_documents), []
    scores = products(queries.features, model.weights)
    for a, b in itertools.pairwise(queries.offsets):
        losses.append(most_violated(scores[a:b], relevant[a:b], factors[a:b]))
    normal = transposed(queries.features, factors) / queries.n_queries
    slack = float(model.remarks[0].split()[-1])
    assert np.mean(losses) - normal @ model.weights <= slack + tolerance + 5e-5
    early = replace(model, planes=2).fit(queries)
    assert early.remarks[0].startswith("2 planes; slack ")
    assert early.remarks[0].endswith(f"; stopped by planes=2, not by tolerance={tolerance:g}")


def test_relevant_is_what_the_conventions_say():
    queries = make_queries(30, seed=3)
    by_rule = ltr.SVMmap(conventions=ltr.Conventions(threshold=3)).fit(queries)
    by_source = ltr.SVMmap(measure="map:good").fit(replace(queries, sources={"good": (queries.labels >= 3) * 1.0}))
    assert np.array_equal(by_rule.weights, by_source.weights)
    assert not np.array_equal(by_rule.weights, ltr.SVMmap().fit(queries).weights)
