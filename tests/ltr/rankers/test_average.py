"""An average is what its members say, added up by hand; saved, loaded, and the same whatever the order of the data."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import canonical, chosen, select
from ltr.rankers.column import Column
from tests.conftest import make_queries

TREES = ltr.LambdaMART(n_trees=4, n_leaves=4, min_docs_in_leaf=2, feature_share=0.5)


def spread(scores, offsets):
    """Standard deviation within queries, the slow way."""
    around = [part - part.mean() for part in np.split(scores, offsets[1:-1])]
    return np.sqrt(np.mean(np.concatenate(around) ** 2))


def test_it_is_the_mean_of_members_on_one_scale():
    queries = canonical(make_queries(30, seed=1))
    linear = ltr.LambdaRank(epochs=3)
    model = ltr.Average([TREES, linear]).fit(queries, queries)
    alone = [member.fit(queries, queries).predict(queries.features) for member in (TREES, linear)]
    want = np.mean([scores / spread(scores, queries.offsets) for scores in alone], axis=0)
    assert model.predict(queries.features) == pytest.approx(want, rel=1e-12)
    assert model.trained_for == (ltr.Measure.of("ndcg"),)
    assert model.export_form is None


def test_a_member_without_an_opinion_within_queries_has_no_part():
    """Popularity of the query, alike for all its documents: their mean misses it by a rounding, which was taken for its scale."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(3, 9, 100)
    offsets = np.append(0, np.cumsum(sizes))
    popularity, bm25 = np.repeat(rng.normal(size=100), sizes), rng.normal(size=offsets[-1])
    labels = np.clip(np.round(0.7 * bm25 + popularity + 1), 0, 4)
    queries = ltr.Queries(np.column_stack([popularity, bm25]), labels, offsets, names=("popularity", "bm25"))
    whole = {"stop_on": None, "feature_share": 1.0, "query_share": 1.0, "min_docs_in_leaf": 5}
    flat = ltr.LambdaMART(loss="two_class", objective="map", n_trees=1, n_leaves=2, **whole)
    model = ltr.Average([flat, Column(feature="bm25")]).fit(queries)
    scores = model.predict(queries.features)
    assert flat.fit(queries).trees.feature.tolist() == [0]
    assert model.deviations[0] == 1
    for part, own in zip(np.split(scores, offsets[1:-1]), np.split(queries.features[:, 1], offsets[1:-1]), strict=True):
        assert np.array_equal(np.argsort(part), np.argsort(own))


def test_each_copy_has_its_seed_and_its_draw_of_queries():
    queries = canonical(make_queries(40, seed=2))
    model = ltr.Average(TREES, copies=3, query_share=0.6, seed=7).fit(queries)
    for k, member in enumerate(model.members):
        drawn = select(queries, np.flatnonzero(chosen(queries.keys, 0.6, (7, k, 1))))
        assert 10 < drawn.n_queries < 40
        assert member.digest == replace(TREES, seed=7 + k).fit(drawn).digest
    assert len({member.digest for member in model.members}) == 3
    assert model.importances["gain"].sum() == pytest.approx(1)


def test_the_same_bytes_from_shuffled_queries_and_from_disk(tmp_path):
    queries = make_queries(25, seed=3)
    model = ltr.Average(
        (TREES, ltr.RankSVM(), ltr.LambdaRank(epochs=2)), copies=2, query_share=0.8, conventions=ltr.Conventions(threshold=1)
    )
    fitted = model.fit(queries)
    order = np.random.default_rng(0).permutation(queries.n_queries)
    assert model.fit(select(queries, order)).digest == fitted.digest
    ltr.save(fitted, tmp_path / "m")
    opened = ltr.load(tmp_path / "m")
    assert opened.digest == fitted.digest
    assert opened.parameters == fitted.parameters
    assert [member.conventions.threshold for member in opened.members] == [1] * 6
    assert np.array_equal(opened.predict(queries.features), fitted.predict(queries.features))


def test_linear_members_are_one_linear_model():
    queries = canonical(make_queries(30, seed=4))
    model = ltr.Average([ltr.RankSVM(), ltr.LeastSquares()]).fit(queries)
    by_weights = queries.features @ model.linear_weights
    difference = model.predict(queries.features) - by_weights
    assert model.export_form == "linear"
    assert difference == pytest.approx(np.full(queries.n_documents, difference.mean()), abs=1e-5)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"of": ()}, r"of=\(\); it takes one ranker or several"),
        ({"of": [ltr.Average([TREES])]}, "no averages"),
        ({"of": "lambdamart"}, "of='l'"),
        ({"of": [TREES], "copies": 0}, "copies=0"),
    ],
)
def test_what_cannot_be_averaged_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        ltr.Average(**given)


def test_what_a_member_cannot_learn_from_is_told_before_training():
    queries = make_queries(20, seed=5)
    weighted = replace(queries, weights=np.ones(queries.n_queries))
    with pytest.raises(ValueError, match="adarank does not obey weights of queries"):
        ltr.Average([TREES, ltr.AdaRank()]).check(weighted)
    with pytest.raises(ValueError, match="cannot make two leaves"):
        ltr.Average([replace(TREES, min_docs_in_leaf=10_000)]).check(queries)
    with pytest.raises(ValueError, match="leaves none for copy"):
        ltr.Average(TREES, query_share=1e-9).fit(queries)
    assert ltr.Average([TREES, ltr.RankSVM()]).needs_complete
    assert not ltr.Average([TREES]).needs_complete


def test_a_column_with_gaps_has_no_scale():
    queries = make_queries(20, seed=7)
    features = queries.features.copy()
    features[[3, 5], 1] = np.nan
    gaps = replace(queries, features=features)
    column = ltr.Column(feature=queries.names[1])
    with pytest.raises(
        ValueError, match=rf"'{column.feature}' is missing for 2 of {queries.n_documents} documents.* no number to average"
    ):
        ltr.Average([TREES, column]).fit(gaps)
    with pytest.raises(ValueError, match="column: no feature 'z'"):
        ltr.Average([ltr.Column(feature="z")]).fit(queries)
    scores = ltr.Average([column]).fit(queries).predict(queries.features)
    assert np.array_equal(np.argsort(scores), np.argsort(queries.features[:, 1].astype(float)))


def test_copies_without_a_seed_are_trained_once_or_refused():
    queries = make_queries(20, seed=8)
    mixed = ltr.Average([TREES, ltr.RankSVM()], copies=3).fit(queries)
    assert mixed.members[1] is mixed.members[3] is mixed.members[5]
    assert len({member.digest for member in mixed.members}) == 4
    with pytest.raises(ValueError, match="copies=2 of ranksvm, least_squares, without a seed, would all be the same"):
        ltr.Average([ltr.RankSVM(), ltr.LeastSquares()], copies=2).fit(queries)
    bagged = ltr.Average([ltr.RankSVM()], copies=2, query_share=0.5).fit(queries)
    assert len({member.digest for member in bagged.members}) == 2


def test_members_disagree_with_damaged_files(tmp_path):
    fitted = ltr.Average([TREES], copies=2).fit(make_queries(20, seed=6))
    arrays = fitted.arrays
    with pytest.raises(ValueError, match="2 positive numbers were expected"):
        type(fitted).restored(fitted.parameters, {**arrays, "deviations": np.array([1.0])}, fitted.names)
    with pytest.raises(ValueError, match="2 positive numbers were expected"):
        type(fitted).restored(fitted.parameters, {**arrays, "deviations": np.array([1.0, -1.0])}, fitted.names)


def test_weights_of_documents_reach_members_that_obey_them():
    queries = make_queries(30)
    weighted = replace(queries, document_weights=np.linspace(0.2, 3, queries.n_documents))
    trees = ltr.LambdaMART(n_trees=3, min_docs_in_leaf=3)
    model = ltr.Average(of=trees, copies=2)
    assert model.fit(weighted).digest != model.fit(queries).digest
    assert model.fit(weighted).members[0].digest == trees.fit(weighted).digest
    with pytest.raises(ValueError, match=r"LeastSquares.fit: it does not obey weights of documents"):
        ltr.Average(of=(trees, ltr.LeastSquares())).fit(weighted)


def test_the_first_copy_draws_its_trees_queries_anew():
    """The draw of the copies and that of a member's first tree had one salt: this tree was grown on all that the copy had drawn."""
    queries = make_queries(200, n_features=4, seed=6)
    fitted = ltr.Average(ltr.LambdaMART(n_trees=6, query_share=0.5, min_docs_in_leaf=2), copies=2, query_share=0.5).fit(queries)
    for member in fitted.members:
        trees = member.ensemble
        grown_on = [trees.between(k, k + 1).documents.sum() for k in range(trees.n_trees)]
        assert max(grown_on) < 0.4 * queries.n_documents


def test_rankers_that_differ_by_their_seeds_stay_different():
    """They had the average's seed, one and all."""
    queries = make_queries(30, n_features=3, seed=1)
    small = ltr.LambdaMART(n_trees=2, n_leaves=4, min_docs_in_leaf=5, stop_on=None)

    def seeds(of, **more):
        return [member.seed for member in ltr.Average(of, **more).fit(queries).members]

    assert seeds(small, copies=3) == [1, 2, 3]
    assert seeds(small, copies=2, seed=5) == [5, 6]
    assert seeds(replace(small, seed=5), copies=2, seed=5) == [5, 6]
    own = seeds([replace(small, seed=s) for s in (1, 2, 3)], copies=2)
    assert len(set(own)) == 6
    assert own[0] == 1
    assert seeds([replace(small, seed=s) for s in (1, 2, 3)], copies=2) == own
    fitted = ltr.Average([replace(small, seed=s) for s in (1, 2, 3)], copies=2).fit(queries)
    assert [member.seed for member in fitted._with_arrays(fitted.arrays).members] == own, "and a loaded one knows them"
    moved = seeds([replace(small, seed=s) for s in (1, 2, 3)], copies=2, seed=4)
    assert len({*moved, *own}) == 12


def test_contributions_are_on_the_scale_of_the_scores():
    queries = canonical(make_queries(30, seed=4))
    for of in ([ltr.RankSVM(), ltr.LeastSquares()], [TREES, ltr.LeastSquares(ridge=9.0)]):
        model = ltr.Average(of).fit(queries)
        assert model.attributions(queries.features).sum(axis=1) == pytest.approx(model.predict(queries.features))


def test_an_average_of_trees_of_categories_is_one_of_categories():
    queries = make_queries(30, seed=4)
    queries = replace(queries, features=np.abs(np.round(2 * queries.features)))
    by_category = replace(TREES, categorical=["f1"], feature_share=1.0, cat_smooth=0.1, cat_l2=0.1)
    model = ltr.Average([TREES, by_category]).fit(queries)
    assert model.export_form == "trees of categories"
    assert model.split_by_categories == {"f1"}
    assert ltr.Average([TREES]).fit(queries).export_form == "trees"
