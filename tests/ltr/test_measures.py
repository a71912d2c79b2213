"""Values against written formulas, ties against enumeration, swap changes against brute force, parity with ir_measures."""

import math

import numpy as np
import pytest

import ltr
from ltr.jit import ready
from ltr.measures import MEASURES, N_AUX, PREPARE, PRESETS, ROW, Conventions, Measure, curve_of, evaluate, explain, gains_of
from ltr.ranking import COUNTED, by_score
from tests import naive

GRADED = [0, 1, 2, 3, 4]
CASES = [
    (name, cutoff)
    for name in MEASURES
    for cutoff in (None, 1, 3, 10)
    if not (name == "p" and cutoff is None) and not (name in ("auc", "wta") and cutoff)
]


def labels_for(name, rng, n):
    return rng.integers(0, 5, n) / 4 if name == "cndcg" else rng.integers(0, 5, n).astype(float)


def one(name, cutoff, labels, scores, **conventions):
    measure = Measure(name, cutoff)
    values = evaluate({measure.source: labels}, scores, [0, len(labels)], [measure], Conventions(**conventions))
    return values[measure.key][0]


@pytest.mark.parametrize(("name", "cutoff"), CASES)
def test_value_is_the_formula_and_ties_are_the_mean_over_their_orders(name, cutoff):
    rng = np.random.default_rng(7)
    for n in (1, 2, 3, 4, 5, 6):
        for levels in (2, 3, 50):
            labels, scores = labels_for(name, rng, n), rng.integers(0, levels, n).astype(float)
            want = naive.expected(name, labels, scores, cutoff=cutoff)
            got = one(name, cutoff, labels, scores)
            assert math.isnan(got) if want is None else got == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize(("name", "cutoff"), CASES)
def test_swap_change_is_value_after_less_value_before_for_every_pair(name, cutoff):
    rng = np.random.default_rng(3)
    for n in (2, 3, 5, 8):
        for _ in range(6):
            labels = labels_for(name, rng, n)
            measure, conventions = Measure(name, cutoff), Conventions()
            gains = gains_of(measure, labels, conventions)
            curve, limit = curve_of(measure, n)
            aux, change = np.empty((N_AUX, n + 1)), np.zeros((n, n))
            rows = ready(measure.kind.prepare, PREPARE)(gains, curve, limit, aux)
            for t in range(rows):
                ready(measure.kind.row, ROW)(t, gains, curve, limit, aux, change[t])
            before = naive.value(name, labels, cutoff)
            for t in range(n):
                for b in range(t + 1, n):
                    swapped = labels.copy()
                    swapped[[t, b]] = swapped[[b, t]]
                    after = naive.value(name, swapped, cutoff)
                    want = 0.0 if before is None else abs(after - before)
                    if name == "mrr" and before is not None and gains[t] > 0:
                        want = 0.0  # the seed rule of D eq. 11 sees only documents that climb
                    assert change[t, b] == pytest.approx(want, abs=1e-12), (name, cutoff, labels, t, b)


def test_rr_seed_rule_by_hand():
    gains, aux, out = np.array([0.0, 0, 1, 0, 1]), np.empty((N_AUX, 6)), np.zeros(5)
    row = ready(MEASURES["mrr"].row, ROW)
    ready(MEASURES["mrr"].prepare, PREPARE)(gains, np.ones(5), 5, aux)
    row(0, gains, np.ones(5), 5, aux, out)
    assert out[[2, 4]] == pytest.approx(1 - 1 / 3)
    assert out[[1, 3]] == pytest.approx(0)


def test_empty_rule_single_document_and_missing_labels():
    assert math.isnan(one("ndcg", None, [0.0, 0.0], [1.0, 2.0]))
    assert one("ndcg", None, [0.0, 0.0], [1.0, 2.0], empty="zero") == 0
    assert one("ndcg", None, [0.0, 0.0], [1.0, 2.0], empty="one") == 1
    assert one("map", None, [3.0], [0.0]) == 1
    assert one("ndcg", None, [np.nan, 1.0], [2.0, 1.0]) == pytest.approx(1 / math.log2(3))
    assert one("ndcg", None, [np.nan, 1.0], [2.0, 1.0], unlabelled="condensed") == 1


def test_tie_rules_of_other_tools():
    labels, scores = np.array([0.0, 2.0]), np.zeros(2)
    assert one("mrr", None, labels, scores) == 0.75
    assert one("mrr", None, labels, scores, ties="stable") == 0.5
    assert one("mrr", None, labels[::-1].copy(), scores, ties="stable") == 1.0
    assert one("mrr", None, labels[::-1].copy(), scores, ties="worst") == 0.5
    by_id = evaluate(labels, scores, [0, 2], ["mrr"], Conventions(ties="docid"), documents=np.array([b"a", b"b"]))
    assert by_id["mrr"][0] == 1.0


def test_expected_ties_do_not_see_the_order_of_rows():
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 5, 30).astype(float), rng.integers(0, 4, 30).astype(float)
    shuffled = rng.permutation(30)
    names = ["ndcg@10", "map", "mrr", "err", "p@5", "auc"]
    a = evaluate(labels, scores, [0, 30], names)
    b = evaluate(labels[shuffled], scores[shuffled], [0, 30], names)
    for key in a:
        assert a[key] == pytest.approx(b[key], abs=1e-12)


def test_long_ties_stay_finite():
    labels = np.tile([4.0, 0.0, 2.0], 300)
    for name in ("err", "mrr", "map", "ndcg"):
        assert 0 < one(name, None, labels, np.zeros(900)) <= 1


def test_parity_with_ir_measures():
    ir_measures = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(5)
    sizes = rng.integers(3, 40, 25)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    labels, scores = rng.integers(0, 4, offsets[-1]).astype(float), rng.normal(size=offsets[-1])
    qrels, run = [], []
    for q in range(25):
        for d in range(offsets[q], offsets[q + 1]):
            qrels.append(ir_measures.Qrel(str(q), str(d), int(labels[d])))
            run.append(ir_measures.ScoredDoc(str(q), str(d), float(scores[d])))
    ours = evaluate(
        labels, scores, offsets, ["ndcg@10", "map", "mrr", "p@5"], Conventions(threshold=1, gain="linear", empty="zero")
    )
    theirs = {"ndcg_10": "nDCG@10", "map": "AP", "mrr": "RR", "p_5": "P@5"}
    for key, name in theirs.items():
        measure = ir_measures.parse_measure(name)
        by_query = {m.query_id: m.value for m in ir_measures.iter_calc([measure], qrels, run)}
        assert ours[key] == pytest.approx([by_query[str(q)] for q in range(25)], abs=1e-5)


def test_names():
    assert Measure.of("NDCG@10").key == Measure.of("ndcg_10").key == "ndcg_10"
    assert str(Measure.of("ndcg@3:freshness")) == "ndcg@3:freshness"
    assert Measure.of("ndcg@3:freshness").key == "ndcg_3_freshness"
    for wrong, rule in (("ndgc", "unknown measure"), ("ndcg@0", "at least 1"), ("p", "needs a cutoff")):
        with pytest.raises(ValueError, match=rule):
            Measure.of(wrong)


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="must be finite"):
        evaluate([1.0, 0.0], [np.nan, 0.0], [0, 2], ["ndcg"])
    with pytest.raises(ValueError, match="offsets must rise"):
        evaluate([1.0, 0.0], [1.0, 0.0], [0, 3], ["ndcg"])
    with pytest.raises(ValueError, match="label source 'click'"):
        evaluate([1.0, 0.0], [1.0, 0.0], [0, 2], ["cndcg"])
    with pytest.raises(ValueError, match="above max_label"):
        evaluate([5.0, 0.0], [1.0, 0.0], [0, 2], ["err"])
    assert ltr.evaluate([], [], [0], ["ndcg"])["ndcg"].shape == (0,)


def test_conventions_of_other_tools_are_what_those_tools_say():
    """scikit-learn's and LightGBM's own NDCG on the same data, ties included."""
    sklearn = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(11)
    labels, scores = rng.integers(0, 4, (20, 8)).astype(float), rng.integers(0, 5, (20, 8)).astype(float)
    labels[3] = 0
    offsets = np.arange(0, 161, 8)
    ours = evaluate(labels.ravel(), scores.ravel(), offsets, ["ndcg@5"], PRESETS["sklearn"][0])["ndcg_5"]
    assert ours == pytest.approx([sklearn.ndcg_score(labels[[q]], scores[[q]], k=5) for q in range(20)])

    lightgbm = pytest.importorskip("lightgbm")
    features = scores.reshape(-1, 1)
    data = lightgbm.Dataset(features, labels.ravel(), group=[8] * 20, free_raw_data=False)
    recorded = {}
    options = {
        "objective": "lambdarank",
        "metric": ["ndcg", "map"],
        "eval_at": [5],
        "verbose": -1,
        "min_data_in_leaf": 1,
        "num_leaves": 4,
    }
    watch = [lightgbm.record_evaluation(recorded)]
    booster = lightgbm.train(options, data, 1, valid_sets=[data], valid_names=["d"], callbacks=watch)
    predicted = booster.predict(features)
    mine = evaluate(labels.ravel(), predicted, offsets, ["ndcg@5", "map@5"], PRESETS["lightgbm"][0])
    assert recorded["d"]["ndcg@5"][0] == pytest.approx(mine["ndcg_5"].mean(), abs=1e-6)


def test_an_explanation_ends_at_the_other_tools_number():
    rng = np.random.default_rng(1)
    labels, scores, offsets = rng.integers(0, 3, 200).astype(float), rng.integers(0, 9, 200).astype(float), np.arange(0, 201, 8)
    labels[:8] = 0

    def mean(measure, rules):
        documents = np.array([f"d{k}".encode() for k in range(200)])
        return float(np.nanmean(evaluate(labels, scores, offsets, [measure], rules, documents=documents)[measure.key]))

    for tool, (rules, ndcg) in PRESETS.items():
        for name in ("ndcg@10", "map"):
            start, shifts = explain(name, Conventions(), tool, mean)
            measure = Measure.of(name) if name == "map" else Measure(ndcg, 10)
            assert start == mean(Measure.of(name), Conventions())
            assert shifts[-1].value == pytest.approx(mean(measure, rules))
            assert len({shift.rule for shift in shifts}) == len(shifts)
    assert next(s for s in explain("ndcg@10", Conventions(), "letor4", mean)[1] if s.rule == "short").alone < 0
    with pytest.raises(ValueError, match="unknown convention 'x'; known: lightgbm"):
        explain("map", Conventions(), "x", mean)


def test_order_by_score_is_a_stable_sort():
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 50, COUNTED, COUNTED + 1, 2000):
        for levels in (1, 3, 10**9):
            scores = rng.integers(0, levels, n).astype(float)
            assert np.array_equal(by_score(scores), np.argsort(-scores, kind="stable"))


def test_other_label_sources_are_relevant_above_zero():
    values = evaluate({"label": [3.0, 0.0], "binary": [0.0, 1.0]}, [2.0, 1.0], [0, 2], ["mrr", "mrr:binary"])
    assert (values["mrr"][0], values["mrr_binary"][0]) == (1.0, 0.5)
