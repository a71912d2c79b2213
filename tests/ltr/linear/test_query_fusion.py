"""Weights that depend on the query: by hand, against the plain linear ranker, where truth is known; what is kept and what is refused."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import canonical, keep
from tests.conftest import make_queries
from tests.ltr.data.test_queries import shuffled


def two_systems(n_queries=120, seed=0, swap=1.0):
    """Two systems, one of which is good where `length` is below 0 and the other where it is above, and a feature of queries that says nothing."""
    queries = canonical(make_queries(n_queries, seed=seed, largest=12))
    rng = np.random.default_rng(seed)
    of_query = np.repeat(np.arange(n_queries), np.diff(queries.offsets))
    length, other = rng.normal(size=(2, n_queries))
    noise = np.exp(swap * 1.5 * np.sign(length))[of_query]
    systems = [queries.labels + worth * rng.normal(size=queries.n_documents) for worth in (noise, 1 / noise)]
    lowest, highest = (
        [at(scores, queries.offsets[:-1])[of_query] for scores in systems] for at in (np.minimum.reduceat, np.maximum.reduceat)
    )
    scaled = [(s - low) / np.maximum(high - low, 1e-9) for s, low, high in zip(systems, lowest, highest, strict=True)]
    features = np.column_stack((*scaled, length[of_query], other[of_query])).astype(np.float32)
    return replace(queries, features=features, names=("min-max of a", "min-max of b", "length", "other"))


def ndcg(model, queries):
    return float(np.nanmean(ltr.evaluate(queries.labels, model.predict(queries.features), queries.offsets, ["ndcg@5"])["ndcg_5"]))


def test_weights_follow_the_query_where_the_better_system_does():
    train, test = two_systems(), two_systems(seed=1)
    model = ltr.QueryFusion(form="min-max", by=("length", "other")).fit(train)
    constant = ltr.QueryFusion(form="min-max").fit(train)
    best = max(
        ndcg(one, test)
        for one in (constant, ltr.WeightedFusion(form="min-max", measure="ndcg_5", restarts=2, directions=20).fit(train))
    )
    assert ndcg(model, test) > max(best + 0.03, 0.95)
    a, b = model.weights_of(test.features).T
    length = test.features[:, 2]
    assert np.corrcoef(length, b - a)[0, 1] > 0.9
    assert "a deviation of length: a -" in model.remarks[0]


def test_where_nothing_depends_on_the_query_little_is_lost():
    train, test = two_systems(swap=0.0), two_systems(seed=1, swap=0.0)
    model, constant = (ltr.QueryFusion(form="min-max", by=by).fit(train) for by in (("length", "other"), ()))
    assert ndcg(model, test) > ndcg(constant, test) - 0.02


def test_scores_by_hand_and_as_a_linear_ranker_of_products():
    queries = two_systems(30)
    model = ltr.QueryFusion(form="min-max", by=("length",), C=2.0).fit(queries)
    z = (queries.features[:, 2] - model.centre[0]) / model.scale[0]
    _, starts = np.unique(np.repeat(np.arange(30), np.diff(queries.offsets)), return_index=True)
    assert z[starts].mean() == pytest.approx(0, abs=1e-6)
    assert z[starts].std() == pytest.approx(1)
    a, b = queries.features[:, :2].T
    by_hand = (model.weights[0] + model.weights[2] * z) * a + (model.weights[1] + model.weights[3] * z) * b
    np.testing.assert_allclose(model.predict(queries.features), by_hand, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        (model.weights_of(queries.features) * queries.features[:, :2]).sum(axis=1), by_hand, rtol=1e-5, atol=1e-5
    )
    shared = replace(queries, features=queries.features[:, :2], names=queries.names[:2])
    linear = ltr.Listwise(C=2.0).fit(shared)
    np.testing.assert_array_equal(linear.weights, model.weights[:2])
    np.testing.assert_array_equal(linear.weights, ltr.QueryFusion(form="min-max", C=2.0).fit(queries).weights)


def test_the_less_they_may_vary_the_nearer_weights_are_to_those_of_all_queries():
    queries = two_systems(40)
    far = [
        np.abs(ltr.QueryFusion(form="min-max", by=("length",), variation=v).fit(queries).weights[2:]).max()
        for v in (1e-6, 0.01, 1.0, 100.0)
    ]
    assert far == sorted(far)
    assert far[0] < 1e-3 < 0.5 < far[-1]


def test_the_moves_are_where_the_loss_and_the_penalty_are_least():
    queries = two_systems(25)
    model = ltr.QueryFusion(form="min-max", by=("length",), variation=0.5, iterations=1000).fit(queries)
    z = (queries.features[:, 2] - model.centre[0]) / model.scale[0]
    products = queries.features[:, :2] * z[:, None]
    deviation = products.std(axis=0)

    def objective(moves):
        scores = queries.features[:, :2] @ model.weights[:2] + products @ moves
        total = ((moves * deviation) ** 2).sum() / 0.5
        for a, b in itertools.pairwise(queries.offsets.tolist()):
            target, own = (np.exp(x[a:b] - x[a:b].max()) for x in (queries.labels, scores))
            total -= (target / target.sum()) @ np.log(own / own.sum())
        return total

    best = objective(model.weights[2:])
    for move in np.eye(2) * 0.02:
        assert best <= min(objective(model.weights[2:] + move), objective(model.weights[2:] - move))


def test_a_missing_feature_of_a_query_counts_as_the_mean():
    queries = two_systems(30)
    holes = queries.features.copy()
    holes[: queries.offsets[10], 2] = np.nan
    model = ltr.QueryFusion(form="min-max", by=("length",)).fit(replace(queries, features=holes))
    known = queries.features[queries.offsets[10:-1], 2]
    assert model.centre[0] == pytest.approx(known.mean())
    row = holes[:1]
    assert model.predict(row)[0] == pytest.approx(model.weights[0] * row[0, 0] + model.weights[1] * row[0, 1])


def test_it_is_saved_moved_and_certified(tmp_path):
    queries = two_systems(40)
    model = ltr.QueryFusion(form="min-max", by=("length",)).fit(queries)
    ltr.save(model, tmp_path / "m")
    again = ltr.load(tmp_path / "m")
    assert again.digest == model.digest
    np.testing.assert_array_equal(again.predict(queries.features), model.predict(queries.features))
    surface = model.surface(queries.features)
    moved = model.weights + 0.1
    there = surface.slopes(0, queries.n_documents, moved[None])[0]
    np.testing.assert_allclose(model.moved(moved).predict(queries.features), there, rtol=1e-9)
    assert ltr.certify(surface, queries, "ndcg_5", epsilon=0.2, delta=0.2).verdict


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"by": ("size",)}, r"query_fusion: by: no feature 'size'; there are: min-max of a"),
        (
            {"by": ("min-max of a",)},
            r"query_fusion: by: 'min-max of a' is .* in one query \(row 1\); a query feature must be equal for all",
        ),
        ({"runs": ("a", "c")}, "query_fusion: no feature 'min-max of c'"),
        ({"form": "borda"}, "query_fusion: it fuses two runs or more, and the data have 0 as 'borda'"),
    ],
)
def test_what_does_not_fit_is_refused(change, says):
    with pytest.raises(ValueError, match=says):
        ltr.QueryFusion(**{"form": "min-max", **change}).fit(two_systems(10))


def test_an_infinite_feature_of_a_query_is_refused():
    queries = two_systems(10)
    queries.features[: queries.offsets[1], 2] = np.inf
    with pytest.raises(ValueError, match="query_fusion: by: 'length' is infinite in row 0"):
        ltr.QueryFusion(form="min-max", by=("length",)).fit(queries)


def test_what_nobody_judged_is_left_out_of_both_steps():
    """Weights by the query were learned from such documents as irrelevant ones, while those of all queries were not."""
    queries = two_systems(60)
    known = np.random.default_rng(1).random(queries.n_documents) < 0.5
    queries = replace(queries, labels=np.where(known, queries.labels, np.nan))
    ranker = ltr.QueryFusion(form="min-max", by=("length",), conventions=ltr.Conventions(unlabelled="condensed"))
    assert ranker.fit(queries).weights == pytest.approx(ranker.fit(keep(queries, known)).weights, abs=1e-9)


def test_a_feature_that_all_queries_have_alike_changes_nothing(tmp_path):
    queries = two_systems(30)
    queries.features[:, 3] = 7
    model = ltr.QueryFusion(form="min-max", by=("other",)).fit(queries)
    assert model.scale.tolist() == [1]
    assert model.weights[2:].tolist() == [0, 0]
    ltr.save(model, tmp_path / "m")
    elsewhere = queries.features.copy()
    elsewhere[:, 3] = 100
    assert np.array_equal(ltr.load(tmp_path / "m").predict(elsewhere), model.predict(queries.features))


def test_the_order_of_the_rows_decides_nothing_and_damaged_arrays_are_refused():
    queries = two_systems(20)
    ranker = ltr.QueryFusion(form="min-max", by=("length",))
    fitted = ranker.fit(queries)
    assert ranker.fit(replace(shuffled(queries, 3), names=queries.names)).digest == fitted.digest
    for change, says in (
        ({"scale": np.array([0.0])}, "scale: a number above 0"),
        ({"centre": np.array([np.nan])}, "centre: .* 1 finite numbers of float64"),
        ({"weights": np.zeros(3)}, "weights: .* 4 finite numbers of float64"),
    ):
        with pytest.raises(ValueError, match=says):
            type(fitted).restored(fitted.parameters, {**fitted.arrays, **change}, fitted.names)
