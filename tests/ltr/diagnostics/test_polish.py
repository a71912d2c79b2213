"""Climbs: they rise at every step, end at an optimum that fresh directions confirm, and are the same whatever the threads."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import canonical, in_order, select
from tests.conftest import make_queries

QUICK = {"epsilon": 0.1, "delta": 0.1}
RANKERS = {
    "least_squares": ltr.LeastSquares(),
    "linear net": ltr.LambdaRank(epochs=2, learning_rate=0.001),
    "two-layer net": ltr.LambdaRank(hidden=3, epochs=2, learning_rate=0.001),
    "trees": ltr.LambdaMART(n_trees=3, n_leaves=4, min_docs_in_leaf=3, stop_on=None),
}


def mean(ranker, queries, measure):
    labels = {"label": queries.labels, **queries.sources}
    values = ltr.evaluate(
        labels,
        ranker.predict(queries.features),
        queries.offsets,
        [measure],
        ranker.conventions,
        queries.position,
        queries.documents,
    )
    return np.nanmean(values[measure])


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("measure", ["map", "ndcg_3", "mrr"])
def test_it_ends_at_an_optimum_of_the_measure_itself(name, measure):
    queries = canonical(make_queries(40, seed=2))
    fitted = RANKERS[name].fit(queries)
    found = ltr.polish(fitted, queries, measure, **QUICK)
    assert found.values[0] == pytest.approx(mean(fitted, queries, measure), abs=1e-9)
    assert found.values[-1] == pytest.approx(mean(found.ranker, queries, measure), abs=1e-9)
    assert (np.diff(found.values) > 0).all()
    assert found.certificate.rising == 0
    assert found.certificate.verdict == "optimum" or found.certificate.tie_share > 0.05
    if measure == "map" and name != "trees":
        assert found.values[-1] > found.values[0]


def test_it_obeys_the_conventions_of_its_ranker():
    queries = canonical(make_queries(40, seed=2))
    ranker = replace(RANKERS["least_squares"], conventions=ltr.Conventions(threshold=3, empty="zero", ties="worst"))
    found = ltr.polish(ranker.fit(queries), queries, "map", **QUICK)
    assert found.values[-1] == pytest.approx(mean(found.ranker, queries, "map"), abs=1e-9)


def test_it_begins_with_the_ranking_it_was_given():
    """Documents of whole numbers tie; weights divided by their length would part them."""
    rng = np.random.default_rng(0)
    features, labels = rng.integers(0, 4, (140, 3)).astype(np.float32), rng.integers(0, 5, 140).astype(float)
    queries = canonical(ltr.Queries(features, labels, np.arange(0, 141, 7)))
    ranker = RANKERS["least_squares"].fit(queries).moved(np.array([0.0, 3.0, 1.0]))
    found = ltr.polish(ranker, queries, "ndcg", steps=0, **QUICK)
    assert found.values == pytest.approx([mean(ranker, queries, "ndcg")], abs=1e-12)
    assert mean(found.ranker, queries, "ndcg") == pytest.approx(found.values[0], abs=1e-12)


def test_steps_are_bounded_and_the_certificate_says_what_still_rises():
    queries = canonical(make_queries(60, seed=2))
    net = ltr.LambdaRank(epochs=0).fit(queries)
    found = ltr.polish(net, queries, "ndcg", steps=1, **QUICK)
    assert len(found.values) == 2
    assert found.certificate.verdict == "not"
    assert found.text.startswith(f"ndcg {found.values[0]:.4f} → {found.values[1]:.4f} in 1 step: not (")
    whole = ltr.polish(net, queries, "ndcg", **QUICK)
    assert whole.values[:2] == pytest.approx(found.values)
    assert len(whole.values) > 2


@pytest.mark.usefixtures("all_threads")
def test_the_same_bytes_for_any_number_of_threads():
    queries = canonical(make_queries(60, seed=2))
    fitted = RANKERS["two-layer net"].fit(queries)
    reference = ltr.polish(fitted, queries, "map", steps=5, **QUICK)
    with ltr.threads(1):
        again = ltr.polish(fitted, queries, "map", steps=5, **QUICK)
    assert again.ranker.digest == reference.ranker.digest
    assert np.array_equal(again.values, reference.values)


def test_weights_that_cannot_be_moved():
    queries = make_queries(20)
    for ranker, why in (
        (ltr.Column(feature="f1"), "column .* has no weights"),
        (ltr.LambdaMART(n_trees=2, min_docs_in_leaf=3, monotone={"f1": 1}), "lambdamart: leaves that move freely"),
    ):
        with pytest.raises(ValueError, match=why):
            ltr.polish(ranker.fit(queries), queries, "map")


@pytest.mark.parametrize("name", RANKERS)
def test_features_are_read_by_name(name):
    queries = canonical(make_queries(40, seed=2))
    fitted, turned = RANKERS[name].fit(queries), tuple(reversed(queries.names))
    found, again = ltr.polish(fitted, queries, "map", **QUICK), ltr.polish(fitted, in_order(queries, turned), "map", **QUICK)
    assert again.ranker.names == queries.names
    assert again.ranker.digest == found.ranker.digest
    with pytest.raises(ValueError, match=f"polish: the queries have no feature '{queries.names[0]}', which the model reads"):
        ltr.polish(fitted, in_order(queries, queries.names[1:]), "map", **QUICK)


@pytest.mark.parametrize("kind", RANKERS)
def test_a_climb_is_the_same_for_any_order_of_the_queries(kind):
    queries = make_queries(20)
    fitted = RANKERS[kind].fit(queries)
    turned = select(queries, np.arange(queries.n_queries)[::-1])
    found = [ltr.polish(fitted, one, "ndcg", steps=20, **QUICK).ranker.digest for one in (queries, turned)]
    assert found[0] == found[1]
