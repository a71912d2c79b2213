"""The guarantee: by hand, by draws whose truth is known, and by models of simulated users (long)."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import ltr
from ltr.data.synthetic import World, simulate_sessions
from ltr.metrics.significance import non_inferior
from ltr.objectives.terms import Term
from tasks.config.reading import parse
from tasks.evidence.best_single import BestSingle
from tasks.evidence.champion import Champion
from tasks.evidence.guarantee import (
    Candidate,
    Guarantee,
    Guarantees,
    _harm,
    _radius,
    choice,
    frontier,
    frontier_figure,
    kept,
    promise,
)
from tasks.evidence.segments import Segments
from tasks.records import DataError, Fold
from tasks.store.datasets import keep_queries
from tests.conftest import make_queries
from tests.tasks.evidence.samples import GUARANTEE, GUARANTEES, PROMISE

RULE = Guarantee(baseline="b", margin=0.02)


def values(first, second, n=200, seed=0, spread=0.05):
    noise = np.random.default_rng(seed).normal(size=(2, n))
    return [mean + spread * (row - row.mean()) for mean, row in zip((first, second), noise, strict=True)]


def test_the_harmless_cell_that_gains_most():
    base = [np.full(200, 0.5), np.full(200, 0.5)]
    cells = {"low": values(0.5, 0.51), "high": values(0.495, 0.55, seed=1), "harmful": values(0.45, 0.7, seed=2)}
    found = choice(cells, base, RULE)
    assert (found.chosen, found.promised) == ("high", True)
    assert [cell.admissible for cell in found.cells] == [True, True, False]
    assert found.cells[1].differences == pytest.approx([-0.005, 0.05])
    found = choice({"harmful": cells["harmful"], "worse": values(0.3, 0.9, seed=3)}, base, RULE)
    assert (found.chosen, found.promised) == ("harmful", False)


def test_where_p_says_how_many_queries_differ_the_nearest_is_the_one_that_loses_least():
    """Of 29 queries 13 and 11 differ: fewer of them are no less harm."""
    zero, gain, loss = np.zeros(29), np.zeros(29), np.zeros(29)
    gain[:13], loss[:11] = 0.12, -0.04
    found = choice({"gains": [gain, zero], "loses": [loss, zero]}, [zero, zero], RULE.model_copy(update={"margin": 0.1}))
    assert [cell.p > 0.5 for cell in found.cells] == [True, True]
    assert found.cells[1].p < found.cells[0].p
    assert (found.chosen, found.promised) == ("gains", False)


def test_where_no_query_differs_a_margin_of_0_is_kept(tmp_path):
    """A cell that ranks as the baseline does on the protected tier, by whichever function."""
    same, gain = np.linspace(0.1, 0.9, 40), np.linspace(0.2, 0.3, 40)
    rule = RULE.model_copy(update={"margin": 0.0})
    assert choice({"own": [same, same + gain]}, [same, same], rule).promised
    assert non_inferior(same, same, 0.0).holds
    own, base = (stored(tmp_path / name, {"test": both}) for name, both in (("own", [same, same + gain]), ("base", [same, same])))
    assert kept.fn([own], [base], rule).held == "yes"


def test_a_promise_that_too_few_queries_decide_says_so(tmp_path):
    """By 24 of 80 queries the bound is that of what was not seen; 40 are half of them."""
    base, gain = np.full(80, 0.5), np.linspace(0.2, 0.3, 80)

    def held(differ):
        own = stored(
            tmp_path / "own", {"test": [base + np.where(np.arange(80) < differ, 0.3 * (-1.0) ** np.arange(80), 0.0), gain]}
        )
        return kept.fn([own], [stored(tmp_path / "base", {"test": [base, gain]})], RULE)

    few, enough = held(24), held(40)
    assert (few.held, enough.held) == ("open", "open")
    said = "ndcg_3 differs on 24 of 80 test queries; a test needs 30, or 20 if these are at least half"
    assert (few.few, enough.few) == (said, "")
    told = replace(GUARANTEE, outcome=few)
    assert f"at least {few.tiers[0].lower_bound:+.4f}: {said}). " in told.text()
    assert told.as_json()["few"] == said


def test_where_too_few_validation_queries_differ_for_a_promise_it_says_so():
    base, gain, turn = np.full(80, 0.5), np.linspace(0.2, 0.3, 80), 0.3 * (-1.0) ** np.arange(80)
    few, enough = (choice({"own": [base + np.where(np.arange(80) < n, turn, 0.0), gain]}, [base, gain], RULE) for n in (24, 40))
    said = "ndcg_3 differs on 24 of 80 validation queries; a test needs 30, or 20 if these are at least half"
    assert (few.promised, few.few, enough.promised, enough.few) == (False, said, False, "")
    told = replace(GUARANTEE, promises=(few,))
    assert f"not promised: no cell was shown to be harmless on validation queries ({said}); the test queries" in told.text()
    assert told.as_json()["folds"][0]["few"] == said
    assert f"validation queries (in fold 2, {said}); the" in replace(GUARANTEE, promises=(enough, few)).text()


def test_too_few_queries_are_told_only_of_tiers_that_they_leave_open():
    """Of 2,000 queries none differs on the first tier, which shows that nothing is lost there."""
    base, gain = np.linspace(0.5, 0.9, 2000), np.linspace(0.2, 0.3, 2000)
    rule = RULE.model_copy(update={"tiers": ["ndcg_3", "map", "cndcg_3"], "margin": 0.005})
    loses, few = (base - np.linspace(0.0, loss, 2000) * (np.arange(2000) < n) for n, loss in ((2000, 0.1), (20, 0.5)))
    told = [choice({"own": [first, second, gain]}, [base, base, gain], rule) for first, second in ((base, loses), (few, loses))]
    assert [(made.promised, made.few) for made in told] == [(False, ""), (False, "")]
    said = "map differs on 19 of 2,000 validation queries; a test needs 30, or 20 if these are at least half"
    assert choice({"own": [base, few, gain]}, [base, base, gain], rule).few == said


def test_all_tiers_but_the_last_are_protected():
    base, three = [np.full(200, 0.5)] * 3, RULE.model_copy(update={"tiers": ["ndcg_1", "ndcg_3", "cndcg_3"]})
    harmless, harmful = values(0.5, 0.5)[0], values(0.4, 0.5)[0]
    found = choice({"a": [harmless, harmful, harmless + 0.2], "b": [harmless, harmless, harmless + 0.1]}, base, three)
    assert found.chosen == "b"


@pytest.mark.parametrize(("share", "least"), [(1.0, 5), (0.5, 5), (0.1, 0), (0.02, 0)])
def test_promises_are_broken_no_more_often_than_stated(share, least):
    """At the edge, where every cell truly loses the margin and gain goes with harm; the share of the queries that differ at all."""
    rng = np.random.default_rng(1)
    broken, zero = 0, np.zeros(60)
    for _ in range(600):
        shared = rng.normal(size=60)
        harm = 0.1 * (shared + rng.normal(size=(6, 60)))
        cells = {str(k): [np.where(rng.random(60) < share, -0.02 / share + harm[k], 0), -harm[k]] for k in range(6)}
        broken += choice(cells, [zero, zero], RULE).promised
    assert least <= broken <= stats.binom.ppf(0.999, 600, 0.05)


def test_fewer_than_two_defined_queries_are_refused_before_training(workplace):
    def kept_queries(n, seed, relevant):
        queries = make_queries(n, seed=seed)
        labels = queries.labels.copy()
        labels[queries.offsets[relevant] :] = 0
        return keep_queries(replace(queries, labels=labels))

    config = parse({"data": {"files": "x"}, "rankers": {"a": {"kind": "ranksvm"}, "b": {"kind": "least_squares"}}})
    rule = Guarantee(baseline="a", tiers=["ndcg_3", "map"])
    good, one, none = (kept_queries(6, k, n) for k, n in enumerate((6, 1, 0)))
    rule.check_data(config, (Fold(good, good, good),))
    with pytest.raises(
        DataError, match="guarantee: ndcg_3 is defined on 1 of 6 validation queries, and a paired test needs 2 or more"
    ):
        rule.check_data(config, (Fold(good, good, good), Fold(good, one, good)))
    with pytest.raises(DataError, match="guarantee: ndcg_3 is defined on 1 of 12 test queries"):
        rule.check_data(config, (Fold(good, good, none), Fold(good, good, one)))
    with pytest.raises(DataError, match="guarantee: test queries: ndcg_3 is undefined on every query: all labels are 0"):
        rule.check_data(config, (Fold(good, good, none),))
    rule.check_data(config, (Fold(good, good, good), Fold(good, good, none)))
    for asked, few, why in (
        (BestSingle(measure="map"), one, "map is defined on 1 of 6 test queries, and a paired test needs 2"),
        (Segments(baseline="a", measure="map"), one, "map is defined on 1 of 6 test queries, and a paired test needs 2"),
        (Champion(name="m", tiers=["map", "map"]), none, "test queries: map is undefined on every query: all labels are 0"),
    ):
        asked.check_data(config, (Fold(none, none, good),))
        with pytest.raises(DataError, match=f"{asked.key}: {why}"):
            asked.check_data(config, (Fold(good, good, few),))


def test_a_frontier_of_clicks_on_one_query_has_no_ellipse(workplace):
    nan = np.nan
    base = stored(workplace / "base.parquet", {"valid": [np.array([0.5, 0.4, 0.3]), np.array([0.5, nan, nan])]})
    cell = stored(workplace / "cell.parquet", {"valid": [np.array([0.6, 0.4, 0.2]), np.array([0.6, nan, nan])]})
    found = frontier({"": {0: cell}}, {""}, {0: base}, RULE)
    assert np.isnan(found.points[0].covariance).all()
    assert "the baseline" in frontier_figure(replace(GUARANTEE, frontier=found))


def stored(path, arrays):
    import polars as pl

    frames = []
    for split, (first, second) in arrays.items():
        n = len(first)
        frames.append(
            pl.DataFrame({"split": [split] * n, "query": [f"q{k}" for k in range(n)], "ndcg_3": first, "cndcg_3": second})
        )
    pl.concat(frames).write_parquet(path)
    return str(path)


def test_kept_on_test_queries_of_all_folds_and_the_frontier(tmp_path):
    base = stored(tmp_path / "base.parquet", {s: [np.full(200, 0.5)] * 2 for s in ("valid", "test")})
    cell = stored(tmp_path / "cell.parquet", {"valid": values(0.495, 0.55), "test": values(0.47, 0.6)})
    good = stored(tmp_path / "good.parquet", {"valid": values(0.495, 0.55), "test": values(0.5, 0.6)})
    assert promise({"cell": cell}, base, RULE).promised
    assert kept.fn([good, good], [base, base], RULE).held == "yes"
    broken = kept.fn([cell, cell], [base, base], RULE)
    assert (broken.held, broken.comparison, broken.tiers[0].measure) == ("no", "worse", "ndcg_3")
    edge = stored(tmp_path / "edge.parquet", {"valid": values(0.5, 0.5), "test": values(0.48, 0.6)})
    assert kept.fn([edge], [base], RULE).held == "open"
    found = frontier({"w=1": {0: cell, 1: cell}}, {"w=1"}, {0: base, 1: base}, RULE)
    assert found.points[0].mean == pytest.approx([0.495, 0.55])
    assert np.array(found.points[0].covariance) == pytest.approx(np.cov(np.hstack([values(0, 0)] * 2)) / 400)
    assert (found.tiers, found.points[0].taken) == (("ndcg_3", "cndcg_3"), True)


def test_a_point_that_a_search_drew_on_one_fold_is_held_against_that_folds_baseline(tmp_path):
    base = [
        stored(tmp_path / f"base{k}.parquet", {"valid": [np.full(n, level)] * 2})
        for k, (n, level) in enumerate(((30, 0.2), (50, 0.6)))
    ]
    cell = stored(tmp_path / "cell.parquet", {"valid": values(0.7, 0.5, 50)})
    found = frontier({"w=1": {1: cell}}, set(), dict(enumerate(base)), RULE)
    whole = (30 * 0.2 + 50 * 0.6) / 80
    assert found.baseline == pytest.approx([whole, whole])
    assert found.points[0].mean == pytest.approx([whole + 0.1, whole - 0.1])


def test_a_ranker_that_is_named_twice_is_held_against_the_baseline_once():
    """Its sentence, section and figure stood there twice."""
    rankers = {name: {"kind": "least_squares"} for name in "abc"}
    config = parse({
        "data": {"files": "x"}, "rankers": rankers, "guarantee": {"baseline": "a", "rankers": ["c", "b", "c", "a"]}
    })  # fmt: skip
    assert config.guarantee.guaranteed(config) == ["c", "b"]


def test_a_cell_that_a_search_drew_twice_is_one():
    cells = [
        SimpleNamespace(ranker="r", fold=fold, cell=SimpleNamespace(label=label), result=SimpleNamespace(key=key))
        for label, fold, key in (("a", 0, "1"), ("b", 0, "2"), ("c", 0, "1"), ("d", 1, "1"))
    ]
    found = [list(RULE._files(SimpleNamespace(cells=cells), "r", fold)) for fold in (0, 1)]
    assert found == [["a", "b"], ["d"]]


def test_what_a_promise_came_to():
    assert GUARANTEE.text() == (
        "no loss above 0.01 on NDCG@3 (95%): promised; confirmed on the test queries (NDCG@3 -0.0010, at least -0.0040). CNDCG@3 +0.0200: better."
    )
    no = replace(PROMISE, promised=False)
    assert "promised in 1 of 2 folds" in replace(GUARANTEE, promises=(PROMISE, no)).text()
    *protected, last = GUARANTEE.outcome.tiers
    unsure = replace(GUARANTEE.outcome, held="open", tiers=(*protected, replace(last, verdict="open")))
    told = replace(GUARANTEE, outcome=unsure).text()
    assert "neither confirmed nor broken: the test queries do not decide it (" in told
    assert told.endswith(": open, shown neither better nor worse.")
    page = Guarantees((GUARANTEE,)).section()
    assert all(f"<b>{word}</b>" in page for word in ("Promised", "Confirmed", "broken"))
    unpromised = replace(GUARANTEE, promises=(no,)).text()
    assert "not promised: no cell was shown" in unpromised
    assert not re.search("confirmed|broken", unpromised), "what nobody promised"
    broken = replace(GUARANTEE, outcome=replace(GUARANTEE.outcome, held="no"))
    assert "broken on the test queries" in broken.text()
    assert Guarantees((broken,)).tags() == {"guarantee.graded": "no"}
    assert Guarantees((replace(broken, promises=(no,)),)).tags() == {"guarantee.graded": "not promised"}


def test_the_frontier_is_drawn_the_same_twice():
    assert "w=1" in frontier_figure(GUARANTEE)
    assert GUARANTEES.figures == {"frontier-graded": frontier_figure(GUARANTEE)}
    assert GUARANTEES.figures is GUARANTEES.figures, "for its file and for the page"


@pytest.mark.long
def test_models_of_simulated_users_keep_their_promises():
    """Fifty times: train with several w on clicks of sessions, promise on validation queries, and see the truth on many test queries."""
    weights = (0.0, 0.3, 0.6, 0.8, 0.9, 1.0)
    made = broken = 0
    for seed in range(50):
        world = World(n_features=20, active=10, seed=seed)
        sets = {}
        for stream, (role, n) in enumerate({"train": 100, "valid": 600, "test": 2000}.items()):
            data, users = world.queries(n, 20, stream)
            log = simulate_sessions(data.offsets, data.labels, users, 30, seed=100 * seed + stream)
            shown, clicked = (np.bincount(rows, minlength=data.n_documents) for rows in (log.document, log.document[log.click > 0]))
            sets[role] = replace(data, sources={"click": clicked / np.maximum(shown, 1)})
        rule = Guarantee(baseline="b", margin=0.02)

        def measured(w, sets=sets, rule=rule):
            terms = [Term("ndcg"), Term("cndcg", weight=w, pairs="same_label")]
            model = ltr.LambdaMART(n_trees=30, n_leaves=7, objective=terms, stop_on=None).fit(sets["train"])
            found = {}
            for role in ("valid", "test"):
                queries = sets[role]
                labels = {"label": queries.labels, **queries.sources}
                taken = ltr.evaluate(labels, model.predict(queries.features), queries.offsets, rule.tiers)
                found[role] = [taken[m] for m in rule.tiers]
            return found

        cells = {w: measured(w) for w in weights}
        found = choice({str(w): cells[w]["valid"] for w in weights[1:]}, cells[0.0]["valid"], rule)
        loss = np.nanmean(cells[0.0]["test"][0] - cells[float(found.chosen)]["test"][0])
        made += found.promised
        broken += found.promised and loss > rule.margin
    assert made >= 25, made
    assert broken <= stats.binom.ppf(0.99, 50, 0.05), broken


def test_of_cells_that_may_harm_the_gain_says_nothing_of_the_harm():
    a, b = Candidate("a", (-0.01, -0.5), 0.7), Candidate("b", (-0.02, 0.5), 0.7)
    assert min((a, b), key=_harm) is a


def test_a_loss_of_tau_may_be_twice_as_large_as_one_of_ndcg():
    """Of 60 queries none differs: a loss of one in twenty may have been missed, of 1 each, or of 2 where values go down to −1."""
    same, more = np.ones(60), np.linspace(0, 0.1, 60)
    for first, promised in (("ndcg_1", True), ("tau", False)):
        rule = Guarantee(baseline="b", margin=0.06, tiers=[first, "ndcg_3"])
        assert choice({"a": [same, same + more]}, [same, same], rule).promised == promised


def test_ellipses_hold_the_true_difference_as_often_as_they_say():
    rng, inside = np.random.default_rng(2), 0
    for _ in range(1000):
        paired = rng.normal(size=(2, 6))
        whitened = np.linalg.solve(np.linalg.cholesky(np.cov(paired) / 6), paired.mean(axis=1))
        inside += np.sqrt((whitened**2).sum()) <= _radius(6, 0.95)
    assert 930 <= inside <= 968
