"""An average is what its members say, added up by hand; saved, loaded, and the same whatever the order of the data."""

import re
import weakref
from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.digests import chosen, equal_parts
from ltr.data.queries import canonical, select
from ltr.rankers.average import AS_THEY_ARE
from ltr.rankers.column import Column
from tests.conftest import make_queries
from tests.ltr.objectives.test_unbiased import judged, pages

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
        ({"of": ()}, r"of=\(\); must be one or more rankers, none an average"),
        ({"of": ltr.Estimator(ltr.LeastSquares())}, r"of=Estimator\(.*; must be one or more rankers, none an average"),
        ({"of": [ltr.Average([TREES])]}, "none an average"),
        ({"of": "lambdamart"}, "of='l'"),
        ({"of": [TREES], "copies": 0}, "copies=0"),
        ({"of": [TREES], "folds": 1}, "folds=1"),
        ({"of": [TREES], "selection": 4}, "selection=4 has nothing to select from one ranker"),
        ({"of": [TREES, TREES], "selection": 4, "weights": [1, 2]}, "selection and weights exclude each other; give one"),
        ({"of": [TREES, TREES], "selection": -1}, "selection=-1"),
        ({"of": [TREES, TREES], "select_on": "ndgc_10"}, "did you mean"),
        ({"of": [TREES, TREES], "select_on": "pfound"}, "pfound"),
        ({"of": [TREES], "weights": [1, 2]}, r"weights=\[1, 2\]; must be a number, 0 or more, for each of the 1"),
        ({"of": [TREES, TREES], "weights": [0, 0.0]}, "not all 0"),
        ({"of": [TREES, TREES], "weights": [1, -2]}, "weights="),
        ({"of": [TREES, TREES], "weights": [1, np.nan]}, "weights="),
        ({"of": [TREES, TREES], "weights": [1, True]}, "weights="),
        ({"of": [TREES, TREES], "weights": "12"}, "weights='12'"),
        ({"of": [TREES, TREES], "weights": {1: 2, 3: 4}}, "weights="),
        ({"of": [TREES, TREES], "weights": 2}, "weights=2"),
    ],
)
def test_what_cannot_be_averaged_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        ltr.Average(**given)


def test_what_a_member_cannot_learn_from_is_told_before_training():
    queries = make_queries(20, seed=5)
    weighted = replace(queries, weights=np.ones(queries.n_queries))
    with pytest.raises(ValueError, match="adarank does not support weights of queries"):
        ltr.Average([TREES, ltr.AdaRank()]).check(weighted)
    of_documents = replace(queries, document_weights=np.ones(queries.n_documents))
    with pytest.raises(ValueError, match="average: lambdarank does not support weights of documents"):
        ltr.Average([TREES, ltr.LambdaRank()]).check(of_documents)
    with pytest.raises(ValueError, match="cannot make two leaves"):
        ltr.Average([replace(TREES, min_docs_in_leaf=10_000)]).check(queries)
    with pytest.raises(ValueError, match="average: folds=21 of 20 training queries leaves a part without any"):
        ltr.Average(TREES, folds=21).fit(queries)
    rare = replace(queries, labels=np.where(np.arange(queries.n_documents) == 3, 1.0, 0.0))
    with pytest.raises(
        ValueError,
        match=r"folds=4 makes a part of 5 training queries, of which ndcg_10 is undefined on every query: .*; fewer folds",
    ):
        ltr.Average(TREES, folds=4).check(rare)
    ltr.Average(replace(TREES, stop_on=None), folds=4).check(rare)
    graded = replace(queries, labels=np.where(np.arange(queries.n_documents) == 3, 2.0, np.minimum(queries.labels, 1.0)))
    with pytest.raises(ValueError, match="folds=4 makes a part of 5 training queries, of which map is undefined"):
        ltr.Average(replace(TREES, stop_on=("ndcg_10", "map")), folds=4).check(graded)
    few = replace(queries, document_weights=np.where(np.arange(queries.n_documents) == 3, 1.0, 0.0))
    with pytest.raises(ValueError, match=r"average: without part \d+ of folds=20: LambdaMART.fit: document_weights"):
        ltr.Average(replace(TREES, stop_on=None), folds=20).fit(few)
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
        ValueError, match=rf"'{column.feature}' is missing for 2 of {queries.n_documents} documents.* nothing to average"
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
    with pytest.raises(ValueError, match="average: least_squares does not support weights of documents"):
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


KINDS = (TREES, ltr.LambdaRank(epochs=3), ltr.RankSVM())


def test_weights_are_those_of_a_weighted_mean():
    queries = canonical(make_queries(30, seed=1))
    alone = [member.predict(queries.features) for member in ltr.Average(KINDS).fit(queries).members]
    scaled = [scores / spread(scores, queries.offsets) for scores in alone]
    model = ltr.Average(KINDS, weights=[3, 0.5, 0]).fit(queries)
    assert model.predict(queries.features) == pytest.approx((3 * scaled[0] + 0.5 * scaled[1]) / 3.5, rel=1e-12)
    assert np.array_equal(
        ltr.Average(KINDS, weights=np.full(3, 2.0)).fit(queries).predict(queries.features),
        ltr.Average(KINDS).fit(queries).predict(queries.features),
    )
    assert model.remarks == ltr.Average(KINDS).fit(queries).remarks
    linear = ltr.Average([ltr.RankSVM(), ltr.LeastSquares()], weights=(2, 1)).fit(queries)
    difference = linear.predict(queries.features) - queries.features @ linear.linear_weights
    assert difference == pytest.approx(np.full(queries.n_documents, difference.mean()), abs=1e-5)
    assert linear.attributions(queries.features).sum(axis=1) == pytest.approx(linear.predict(queries.features))
    trees = ltr.Average([TREES, replace(TREES, n_leaves=2)], weights=[1, 3]).fit(queries)
    gains = [member.importances["gain"] / member.importances["gain"].sum() for member in trees.members]
    assert trees.importances["gain"] == pytest.approx((gains[0] + 3 * gains[1]) / 4)


def test_selection_counts_what_helps_on_validation_queries(tmp_path):
    """Against sums of all members' scores made anew for each that might be counted once more."""
    queries, valid = canonical(make_queries(40, seed=11)), make_queries(15, seed=16)
    found = ltr.Average(KINDS, copies=2, selection=7, select_on="map", seed=3).fit(queries, valid)
    members = ltr.Average(KINDS, copies=2, seed=3).fit(queries, valid).members
    scales = [spread(member.predict(queries.features), queries.offsets) for member in members]
    own = [member.predict(valid.features) / scale for member, scale in zip(members, scales, strict=True)]
    counts = [1, 1, 1]
    for _ in range(7):
        values = []
        for k in range(3):
            weights = np.tile([count + (j == k) for j, count in enumerate(counts)], 2)
            mean = sum(weight * scores for weight, scores in zip(weights, own, strict=True))
            values.append(np.nanmean(ltr.evaluate(valid.labels, mean, valid.offsets, ["map"])["map"]))
        counts[int(np.argmax(values))] += 1
    assert found.counts.tolist() == counts
    assert sorted(counts) != [3, 3, 4], "and not all of them alike"
    assert found.remarks[-1] == f"selection: weights lambdamart {counts[0]}/10, lambdarank {counts[1]}/10, ranksvm {counts[2]}/10"
    assert found.predict(valid.features) == pytest.approx(sum(w * s for w, s in zip(counts * 2, own, strict=True)) / 20, rel=1e-9)
    order = np.random.default_rng(0).permutation(valid.n_queries)
    assert (
        ltr.Average(KINDS, copies=2, selection=7, select_on="map", seed=3).fit(queries, select(valid, order)).digest == found.digest
    )
    ltr.save(found, tmp_path / "m")
    opened = ltr.load(tmp_path / "m")
    assert opened.digest == found.digest
    assert np.array_equal(opened.predict(valid.features), found.predict(valid.features))
    for wrong in ([0, 5, 5], [9, 1], [4.0, 3.0, 3.0]):
        with pytest.raises(ValueError, match=r"counts .*3 whole numbers from 1 on were expected"):
            type(found).restored(found.parameters, {**found.arrays, "counts": np.array(wrong)}, found.names)


def test_each_part_of_the_queries_stops_the_members_that_do_not_learn_from_it():
    queries, valid = canonical(make_queries(43, seed=3)), make_queries(15, seed=16)
    trees, rules = replace(TREES, n_trees=40), ltr.Conventions(threshold=1)
    model = ltr.Average([trees, ltr.RankSVM()], copies=2, folds=4, seed=3, conventions=rules).fit(queries)
    assert len(model.members) == 16
    parts = [equal_parts(queries.keys, 4, (3, cut, 2)) for cut in range(2)]
    assert not np.array_equal(*parts), "each copy cuts them anew"
    for k in range(8):
        held_out = parts[k // 4] == k % 4
        assert held_out.sum() in (10, 11)
        learned_from, stops_it = (select(queries, np.flatnonzero(part)) for part in (~held_out, held_out))
        alone = replace(trees, seed=3 + k, conventions=rules).fit(learned_from, stops_it)
        assert alone.digest == model.members[2 * k].digest
        assert ltr.RankSVM(conventions=rules).fit(learned_from).digest == model.members[2 * k + 1].digest
    assert min(member.best_iteration for member in model.members[::2]) < 40
    assert model.fit(queries, valid).digest == model.digest, "validation queries would only select"
    order = np.random.default_rng(0).permutation(queries.n_queries)
    assert model.fit(select(queries, order)).digest == model.digest


def test_the_parts_of_one_copy_are_gone_before_the_next_are_made(monkeypatch):
    """Those of two copies were held at once."""
    alive, most = weakref.WeakSet(), []

    def counted(queries, rows):
        part = select(queries, rows)
        if part.n_features:
            alive.add(part)
            most.append(len(alive))
        return part

    monkeypatch.setattr("ltr.rankers.average.select", counted)
    ltr.Average([TREES, ltr.RankSVM()], folds=4).fit(make_queries(30, seed=3))
    assert (len(most), max(most)) == (8, 2)


def test_members_are_selected_by_what_they_have_not_learned_from(tmp_path):
    """Against scores put together query by query."""
    queries = canonical(make_queries(40, seed=11))
    ranker = ltr.Average(KINDS, folds=3, selection=6, select_on="map", seed=5)
    found = ranker.fit(queries)
    parts = equal_parts(queries.keys, 3, (5, 0, 2))
    own = [[], [], []]
    for q in range(queries.n_queries):
        rows = slice(*queries.offsets[q : q + 2])
        for place in range(3):
            member = found.members[3 * parts[q] + place]
            scale = spread(member.predict(queries.features), queries.offsets)
            own[place].extend(member.predict(queries.features[rows]) / scale)
    counts = [1, 1, 1]
    for _ in range(6):
        values = []
        for k in range(3):
            mean = sum((count + (j == k)) * np.array(own[j]) for j, count in enumerate(counts))
            values.append(np.nanmean(ltr.evaluate(queries.labels, mean, queries.offsets, ["map"])["map"]))
        counts[int(np.argmax(values))] += 1
    assert found.counts.tolist() == counts
    by_learned = found._selected(found.members, found.deviations, queries, by_parts=False)
    assert by_learned.tolist() != counts, "which what was learned would select otherwise"
    ltr.save(found, tmp_path / "m")
    opened = ltr.load(tmp_path / "m")
    assert (opened.digest, opened.folds) == (found.digest, 3)
    assert np.array_equal(opened.predict(queries.features), found.predict(queries.features))
    by_valid = ranker.fit(queries, valid := make_queries(15, seed=16))
    assert [member.digest for member in by_valid.members] == [member.digest for member in found.members]
    scales = [spread(member.predict(queries.features), queries.offsets) for member in found.members]
    of_each = [sum(found.members[k].predict(valid.features) / scales[k] for k in range(place, 9, 3)) for place in range(3)]
    counts = [1, 1, 1]
    for _ in range(6):
        with_one = [sum((n + (j == k)) * of_each[j] for j, n in enumerate(counts)) for k in range(3)]
        values = [np.nanmean(ltr.evaluate(valid.labels, mean, valid.offsets, ["map"])["map"]) for mean in with_one]
        counts[int(np.argmax(values))] += 1
    assert by_valid.counts.tolist() == counts


def test_weights_are_part_of_a_digest(tmp_path):
    """Two averages of the same members had one digest, so that a registry took them for one model."""
    queries = make_queries(30, seed=1)
    fitted = [ltr.Average(KINDS, weights=weights).fit(queries) for weights in (None, (1, 1, 1), (1, 0, 0), (0, 1, 0))]
    assert len({model.digest for model in fitted}) == 4
    selected = ltr.Average(KINDS, selection=5).fit(queries, make_queries(10, seed=2))
    moved = replace(selected, weights=(1, 5, 1), selection=0)
    assert np.array_equal(
        moved.predict(queries.features), ltr.Average(KINDS, weights=(1, 5, 1)).fit(queries).predict(queries.features)
    )
    for k, model in enumerate((*fitted, moved, replace(selected, selection=8))):
        ltr.save(model, tmp_path / str(k))
        opened = ltr.load(tmp_path / str(k))
        assert np.array_equal(opened.predict(queries.features), model.predict(queries.features))
    with pytest.raises(ValueError, match=r"weights .*among the parameters"):
        ltr.Average.restored({**fitted[2].parameters, "weights": [0, 0, 1]}, fitted[2].arrays, queries.names)


def test_a_member_that_does_not_count_says_nothing_of_missing_values():
    queries = make_queries(30, seed=1)
    model = ltr.Average([ltr.RankSVM(), ltr.LambdaRank(epochs=2)], weights=(0, 1)).fit(queries)
    features = queries.features.copy()
    features[3, 1] = np.nan
    assert model.attributions(features).sum(axis=1) == pytest.approx(model.predict(features), abs=1e-5)


def test_selection_by_clicks_says_so():
    pair = [replace(TREES, stop_on=None, unbiased=way) for way in (None, "additive")]
    train, valid = pages(n_queries=30, per_query=3), pages(n_queries=20, per_query=2)
    said = AS_THEY_ARE
    assert said in ltr.Average(pair, selection=2).fit(train, valid).remarks
    assert said not in ltr.Average(pair, selection=2).fit(train, judged(2)).remarks


def test_columns_are_selected_on_the_queries_to_learn_from():
    """They learn nothing from these; validation queries are to choose among rankers by, and have no part in it."""
    queries, valid = canonical(make_queries(40, seed=1)), make_queries(15, seed=2)
    columns = [Column(feature=name) for name in queries.names[:3]]
    found = ltr.Average(columns, selection=6).fit(queries, valid)
    assert found.counts.tolist() == ltr.Average(columns, selection=6).fit(queries).counts.tolist()
    turned = replace(queries, labels=4 - queries.labels)
    assert found.counts.tolist() != ltr.Average(columns, selection=6).fit(turned, valid).counts.tolist()
    assert f"{queries.names[0]} {found.counts[0]}" in found.remarks[-1]
    nothing = ltr.Average(columns, selection=6).fit(replace(queries, labels=np.zeros(queries.n_documents)), valid)
    assert nothing.counts is None
    assert re.search("selection: ndcg_10 is undefined.*, of those to learn from, so that all count alike", nothing.remarks[-1])
    clicked = pages(n_queries=20, per_query=2)
    assert AS_THEY_ARE in ltr.Average([Column(feature=name) for name in clicked.names[:2]], selection=2).fit(clicked).remarks


def test_selection_without_queries_to_select_on():
    queries = make_queries(30, seed=1)
    alike = ltr.Average(KINDS, selection=3).fit(queries)
    assert alike.counts is None
    assert alike.remarks[-1] == "selection: there are no validation queries, so that all count alike"
    assert np.array_equal(alike.predict(queries.features), ltr.Average(KINDS).fit(queries).predict(queries.features))
    grown = []
    nothing = replace(make_queries(5, seed=2), labels=np.zeros(make_queries(5, seed=2).n_documents))
    with pytest.raises(ValueError, match="map is undefined"):
        ltr.Average([replace(TREES, stop_on=None), ltr.RankSVM()], selection=2, select_on="map").fit(
            queries, nothing, lambda *_: grown.append(1)
        )
    assert not grown, "told before anything is trained"


@pytest.mark.parametrize("ranker", [replace(TREES, stop_on=None), ltr.LambdaRank(epochs=3)], ids=["trees", "net"])
def test_members_are_loaded_as_they_were_fitted(ranker, tmp_path):
    """They were restored as they had been before `fit`, which may settle parameters: what `auto` had chosen could not be loaded."""
    queries = pages(n_queries=30, per_query=3)
    for way in ("pairwise", "additive", None):
        chosen = tuple(replace(ranker, unbiased=way, seed=seed).fit(queries) for seed in (1, 2))
        average = replace(
            ltr.Average(replace(ranker, unbiased="auto"), copies=2), members=chosen, deviations=np.ones(2), names=queries.names
        )
        ltr.save(average, tmp_path / str(way))
        opened = ltr.load(tmp_path / str(way))
        assert [member.parameters for member in opened.members] == [member.parameters for member in chosen]
        assert [[*member.position_bias] for member in opened.members] == [[*member.position_bias] for member in chosen]
        assert np.array_equal(opened.predict(queries.features), average.predict(queries.features))
        ltr.save(opened, tmp_path / "again")
        assert (tmp_path / "again" / "model.json").read_bytes() == (tmp_path / str(way) / "model.json").read_bytes()


def test_the_ensemble_of_four_kinds():
    queries, valid = make_queries(40, seed=1), make_queries(20, seed=2)
    model = ltr.ensemble(copies=1, seed=5, conventions=ltr.Conventions(threshold=1))
    assert [member.kind for member in model.of] == ["lambdamart", "lambdamart", "lambdarank", "lambdarank"]
    assert {member.conventions.threshold for member in model.of} == {1}
    fitted = replace(model, of=[replace(member, **{member.iterations_from: 4}) for member in model.of]).fit(queries, valid)
    assert fitted.counts.sum() == 20
    assert [member.seed for member in fitted.members] == [5, 5, 5, 5]


def test_the_ensemble_without_validation_queries():
    model = ltr.ensemble(folds=5)
    assert (model.copies, model.folds, ltr.ensemble().copies, ltr.ensemble(copies=2, folds=3).copies) == (1, 5, 3, 2)
    few = replace(model, of=[replace(member, **{member.iterations_from: 4}) for member in model.of]).fit(make_queries(40, seed=1))
    assert len(few.members) == 20
    assert few.counts.sum() == 20
    assert [member.seed for member in few.members[::4]] == [1, 2, 3, 4, 5]
