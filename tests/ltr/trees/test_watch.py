"""Training stops by LightGBM's rule, whatever is watched, and goes on as if it had never stopped."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import ltr
from tests.conftest import make_queries

SMALL = {"n_trees": 12, "n_leaves": 5, "min_docs_in_leaf": 5, "query_share": 1.0, "feature_share": 1.0}
WATCHING = {"n_trees": 60, "n_leaves": 8, "min_docs_in_leaf": 3, "learning_rate": 0.5, "patience": 5}


def gap(scores, queries):
    """Queries whose best document is a best one."""
    found = []
    for a, b in itertools.pairwise(queries.offsets):
        own = queries.labels[a:b]
        found.append(float(own[np.argmax(scores[a:b])] == own.max()))
    return np.array(found)


def stopped_by(histories, patience, n_trees):
    """LightGBM's rule, slowly: the first series, in order, that has not risen for so long; its best, and when."""
    for n in range(1, n_trees + 1):
        for series in histories:
            best = int(np.argmax(series[:n])) + 1
            if n - best >= patience:
                return best, n
    return int(np.argmax(histories[0])) + 1, n_trees


def test_any_measure_on_any_queries_stops_the_training():
    train, valids = make_queries(60, seed=1), [make_queries(30, seed=2), make_queries(25, seed=3)]
    several = ("ndcg_10", "map", gap)
    model = ltr.LambdaMART(**WATCHING, stop_on=several)
    everything = replace(model, patience=0).fit(train, valids)
    assert list(everything.history) == ["valid_0", "valid_1"]
    names = ["ndcg@10", "map", "tests.ltr.trees.test_watch.gap"]
    assert all(list(values) == names for values in everything.history.values())
    series = [values for own in everything.history.values() for values in own.values()]
    best, n = stopped_by(series, 5, 60)
    fitted = model.fit(train, valids)
    assert (fitted.trees.n_trees, len(fitted.curve.valid)) == (best, n)
    assert everything.trees.n_trees == int(np.argmax(series[0])) + 1
    for values, full in zip((v for own in fitted.history.values() for v in own.values()), series, strict=True):
        assert np.array_equal(values, full[:n])
    for queries, own in zip(valids, everything.history.values(), strict=True):
        part = everything.trees
        scores = part.scores(queries.features)
        labels = {"label": queries.labels}
        assert own["map"][part.n_trees - 1] == pytest.approx(
            np.nanmean(ltr.evaluate(labels, scores, queries.offsets, "map")["map"])
        )
        assert own[names[2]][part.n_trees - 1] == pytest.approx(gap(scores, queries).mean())


def test_one_of_each_is_as_ever():
    train, valid = make_queries(60, seed=1), make_queries(30, seed=2)
    plain = ltr.LambdaMART(**WATCHING).fit(train, valid)
    assert ltr.LambdaMART(**WATCHING, stop_on=["ndcg_10"]).fit(train, [valid]).digest == plain.digest
    assert np.array_equal(plain.history["valid"]["ndcg@10"], plain.curve.valid)
    by_hand = ltr.LambdaMART(**WATCHING, stop_on=ndcg_by_hand).fit(train, valid)
    assert by_hand.digest == plain.digest
    assert by_hand.watched is None


def ndcg_by_hand(scores, queries):
    return ltr.evaluate(queries.labels, scores, queries.offsets, "ndcg_10")["ndcg_10"]


def test_several_measures_and_a_training_that_goes_on(tmp_path):
    train, valids = make_queries(60, seed=1), [make_queries(30, seed=2), make_queries(25, seed=3)]
    whole = ltr.LambdaMART(**{**WATCHING, "n_trees": 20, "patience": 8}, stop_on=("ndcg_10", "map"))
    reference = whole.fit(train, valids)
    part = replace(whole, n_trees=4, patience=0).fit(train, valids)
    part = replace(part, trees=ltr.trees.ensemble.join([part.trees, part.rest]))
    resumed = whole.fit(train, valids, start=part)
    assert resumed.digest == reference.digest
    for name in ("valid_0", "valid_1"):
        for measure, values in reference.history[name].items():
            assert np.array_equal(resumed.history[name][measure], values)


@pytest.mark.parametrize(("seed", "n_trees"), [(14, 3), (9, 6)])
def test_a_loaded_ranker_goes_on_to_what_several_measures_stopped_at(tmp_path, seed, n_trees):
    """The second measure was best before the first, which a saved ranker does not say."""
    whole = ltr.LambdaMART(**{**WATCHING, "n_trees": 30, "patience": 4, "learning_rate": 0.1}, stop_on=("ndcg_10", "map"))
    train, valid = make_queries(20, seed=seed), make_queries(5, seed=100 + seed)
    begun = replace(whole, n_trees=n_trees).fit(train, valid)
    ltr.save(begun, tmp_path / "begun")
    reference = whole.fit(train, valid).digest
    assert whole.go_on(ltr.load(tmp_path / "begun"), train, valid).digest == reference
    assert whole.go_on(begun, train, valid).digest == reference
    start = ltr.LambdaMART(**{**WATCHING, "n_trees": 2}, seed=7).fit(train)
    begun = replace(whole, n_trees=n_trees).fit(train, valid, start=start)
    ltr.save(begun, tmp_path / "after a start")
    gone_on = whole.go_on(ltr.load(tmp_path / "after a start"), train, valid)
    assert gone_on.digest == whole.go_on(begun, train, valid).digest
    assert gone_on.trees.first(1).value.tolist() == start.trees.first(1).value.tolist()


def test_callbacks_are_told_and_may_end_the_training():
    train, valid = make_queries(40, seed=1), make_queries(30, seed=2)
    told = []
    model = ltr.LambdaMART(**SMALL).fit(train, valid, callbacks=[told.append])
    assert [one.iteration for one in told] == [*range(1, 13)]
    assert {one.n_iterations for one in told} == {12}
    assert [one.values["valid"]["ndcg@10"] for one in told] == model.curve.valid.tolist()
    ended = replace(model, stop_on=None).fit(train, callbacks=[lambda now: now.iteration == 3, told.append])
    assert ended.trees.n_trees == 3
    assert told[-1].values == {}


def test_what_cannot_stop_a_training_is_named():
    for stop_on, says in (
        ([], r"stop_on=\[\]; give a measure, several different ones, or None"),
        (["map", "MAP"], "several different ones"),
        ([lambda s, q: 0.0, lambda s, q: 1.0], "two functions have the name .*<lambda>, by which their values are kept"),
        (["ndcg", "errors"], "lower 'errors' is better, but this measure must be maximised"),
        (3, "measure 3: a measure is named in text"),
    ):
        with pytest.raises(ValueError, match=says):
            ltr.LambdaMART(stop_on=stop_on)
    train, valid = make_queries(40, seed=1), make_queries(30, seed=2)
    for function, says in (
        (lambda s, q: s[:2], r"gave an array of shape \(2,\); expected a number, or one for each of the 30 queries"),
        (lambda s, q: np.nan, "gave NaN; expected a number, or one for each of the 30 queries, finite"),
        (lambda s, q: "good", "gave str; expected a number"),
    ):
        with pytest.raises(ValueError, match=says):
            ltr.LambdaMART(**SMALL, stop_on=function).fit(train, valid)


def lightgbm_stops(lightgbm, histories, patience, n_trees):
    """The best iteration, and the last one, by LightGBM's own callback, which is shown these values."""
    from lightgbm.callback import CallbackEnv, EarlyStopException

    stopping = lightgbm.early_stopping(patience, verbose=False)
    for k in range(n_trees):
        told = [
            lightgbm.basic.EvalResult(dataset_name=name, metric_name=key, metric_value=values[k], maximize=True)
            for name, own in histories.items()
            for key, values in own.items()
        ]
        try:
            stopping(CallbackEnv(None, {}, k, 0, n_trees, told))
        except EarlyStopException as stopped:
            return stopped.best_iteration + 1, k + 1
    return None


def test_the_rule_is_lightgbms():
    lightgbm = pytest.importorskip("lightgbm")
    train, valids = make_queries(60, seed=1), [make_queries(30, seed=2), make_queries(25, seed=3)]
    for measures, patience in ((("ndcg_10", "map"), 5), (("map", "ndcg_3"), 3), (("mrr", "ndcg"), 60)):
        model = ltr.LambdaMART(**{**WATCHING, "patience": patience}, stop_on=measures)
        everything = replace(model, patience=0).fit(train, valids)
        fitted = model.fit(train, valids)
        assert (fitted.trees.n_trees, len(fitted.curve.valid)) == lightgbm_stops(lightgbm, everything.history, patience, 60)
        last = len(
            fitted.curve.valid
        )  # the tree at which a measure stops the training, which now is the last one that there may be
        shorter = replace(model, n_trees=last).fit(train, valids)
        assert (shorter.trees.n_trees, last) == lightgbm_stops(lightgbm, everything.history, patience, last)
        begun = replace(model, n_trees=last).fit(train, valids[0])
        assert model.go_on(begun, train, valids[0]).digest == model.fit(train, valids[0]).digest


def test_validation_scores_begin_at_the_base():
    """Alone, and where measures of which a curve says nothing are taken again."""
    train, valid = make_queries(60, seed=1), make_queries(30, seed=2)
    model = ltr.LambdaMART(**SMALL, base="f1", stop_on=("ndcg_10", "map"), patience=0)
    whole = model.fit(train, valid)
    kept = whole.first(3)
    for measure, values in whole.history["valid"].items():
        found = ltr.evaluate(valid.labels, kept.predict(valid.features), valid.offsets, measure)
        assert values[2] == pytest.approx(np.nanmean(next(iter(found.values()))))
    part = replace(model, n_trees=5).fit(train, valid)
    part = replace(part, trees=ltr.trees.ensemble.join([part.trees, part.rest]))
    resumed = model.fit(train, valid, start=part)
    for measure, values in whole.history["valid"].items():
        assert np.array_equal(resumed.history["valid"][measure], values)


def test_the_curve_of_training_queries_is_that_of_the_first_measure():
    train, valid = make_queries(60, seed=1), make_queries(30, seed=2)
    model = ltr.LambdaMART(**SMALL, stop_on=("ndcg_10", "map"), patience=0).fit(train, valid)
    assert np.flatnonzero(~np.isnan(model.curve.train)).tolist() == [9]
    ten = model.trees if model.trees.n_trees >= 10 else ltr.trees.ensemble.join([model.trees, model.rest])
    found = ltr.evaluate(train.labels, ten.first(10).scores(train.features), train.offsets, "ndcg_10")["ndcg_10"]
    assert model.curve.train[9] == pytest.approx(np.nanmean(found))
