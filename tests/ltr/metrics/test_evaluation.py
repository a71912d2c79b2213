"""Driving the measures: conventions of every tool against the tools themselves, ties, arguments."""

import math

import numpy as np
import pytest

import ltr
from ltr.metrics.conventions import Conventions
from ltr.metrics.evaluation import PRESETS, evaluate, explain
from ltr.metrics.measure import Measure


def one(name, cutoff, labels, scores, **conventions):
    measure = Measure(name, cutoff)
    values = evaluate({measure.source: labels}, scores, [0, len(labels)], [measure], Conventions(**conventions))
    return values[measure.key][0]


def test_empty_rule_single_document_and_missing_labels():
    assert math.isnan(one("ndcg", None, [0.0, 0.0], [1.0, 2.0]))
    assert one("ndcg", None, [0.0, 0.0], [1.0, 2.0], empty="zero") == 0
    assert one("ndcg", None, [0.0, 0.0], [1.0, 2.0], empty="one") == 1
    assert one("map", None, [3.0], [0.0]) == 1
    assert one("ndcg", None, [np.nan, 1.0], [2.0, 1.0]) == pytest.approx(1 / math.log2(3))
    assert one("ndcg", None, [np.nan, 1.0], [2.0, 1.0], unlabelled="condensed") == 1


@pytest.mark.parametrize(
    "rules", [{}, {"empty": "zero"}, {"empty": "one"}, {"short": "zero"}, {"unlabelled": "condensed", "empty": "zero"}], ids=str
)
def test_a_query_that_nobody_judged_counts_nothing(rules):
    """ir_measures and trec_eval average over the queries of the judgments."""
    for measure, cutoff in (("ndcg", 3), ("map", None), ("p", 1), ("mrr", None)):
        assert math.isnan(one(measure, cutoff, [np.nan, np.nan], [1.0, 2.0], **rules)), measure


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
    ours = evaluate(labels.ravel(), scores.ravel(), offsets, ["ndcg@5"], PRESETS["sklearn"].conventions)["ndcg_5"]
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
    mine = evaluate(labels.ravel(), predicted, offsets, ["ndcg@5", "map@5"], PRESETS["lightgbm"].conventions)
    assert recorded["d"]["ndcg@5"][0] == pytest.approx(mine["ndcg_5"].mean(), abs=1e-6)
    assert recorded["d"]["map@5"][0] == pytest.approx(mine["map_5"].mean(), abs=1e-6)


@pytest.mark.parametrize("levels", [2, 5])
@pytest.mark.parametrize("digits", [0, 6])
def test_parity_with_xgboost_ties_empty_and_short_queries_too(levels, digits):
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(3)
    sizes = rng.integers(2, 30, 40)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    labels = rng.integers(0, levels, offsets[-1]).astype(float)
    labels[offsets[3] : offsets[4]] = 0
    scores = np.round(rng.normal(size=offsets[-1]), digits).astype(np.float32)
    names = ["ndcg@5", "ndcg", *(["map", "map@5", "pre@5"] if levels == 2 else [])]
    data = xgboost.DMatrix(np.zeros((offsets[-1], 1)), label=labels, base_margin=scores)
    data.set_group(sizes)
    booster = xgboost.train({"objective": "rank:ndcg", "eval_metric": names, "base_score": 0}, data, num_boost_round=0)
    theirs = dict(pair.rsplit(":", 1) for pair in booster.eval(data).split("\t")[1:])
    for name in names:
        measure = Measure.of(name.replace("pre", "p"))
        value = evaluate(labels, scores, offsets, [measure], PRESETS["xgboost"].rules_of(measure.name))[measure.key]
        assert float(theirs[f"eval-{name}"]) == pytest.approx(value.mean(), abs=1e-6), name


def test_an_explanation_ends_at_the_other_tools_number():
    rng = np.random.default_rng(1)
    labels, scores, offsets = rng.integers(0, 3, 200).astype(float), rng.integers(0, 9, 200).astype(float), np.arange(0, 201, 8)
    labels[:8] = 0

    def mean(measure, rules):
        documents = np.array([f"d{k}".encode() for k in range(200)])
        return float(np.nanmean(evaluate(labels, scores, offsets, [measure], rules, documents=documents)[measure.key]))

    for name, other in PRESETS.items():
        for asked, meant in (
            ("ndcg@10", f"{other.ndcg}@10"),
            ("map", "map"),
            ("map@5", "map" if name == "ranklib" else "map@5"),
            ("p@10", "p@10"),
        ):
            start, shifts = explain(asked, Conventions(), name, mean)
            measure = Measure.of(meant)
            assert start == mean(Measure.of(asked), Conventions())
            assert shifts[-1].value == pytest.approx(mean(measure, other.rules_of(measure.name)))
            assert len({shift.rule for shift in shifts}) == len(shifts)
    assert next(s for s in explain("ndcg@10", Conventions(), "letor4", mean)[1] if s.rule == "short").alone < 0
    with pytest.raises(ValueError, match="unknown convention 'x'; choose from: lightgbm"):
        explain("map", Conventions(), "x", mean)


def test_ranklibs_precision_and_average_precision():
    """`PrecisionScorer` divides by min(k, documents), `APScorer` takes no notice of k: by hand from RankLib's sources."""
    labels, scores = np.array([0.0, 2.0, 1.0, 0.0, 0.0, 1.0]), np.array([3.0, 2.0, 1.0, 0.3, 0.2, 0.1])
    rules = PRESETS["ranklib"].rules_of("p")
    assert evaluate(labels, scores, [0, 6], "p@10", rules)["p_10"] == pytest.approx(3 / 6)
    assert evaluate(labels, scores, [0, 6], "p@3", rules)["p_3"] == pytest.approx(2 / 3)

    def mean(measure, rules):
        return float(evaluate(labels, scores, [0, 6], [measure], rules)[measure.key].mean())

    _, shifts = explain("map@2", Conventions(threshold=1), "ranklib", mean)
    assert shifts[-1].value == pytest.approx((1 / 2 + 2 / 3 + 3 / 6) / 3)
    assert ("cutoff", "2", "none") in [(shift.rule, shift.ours, shift.theirs) for shift in shifts]


def test_documents_at_no_rank_count_as_trec_eval_counts_them():
    """ir_measures over runs that retrieved some of the judged documents, one query with none of them, and of another nobody judged a document."""
    ir_measures = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(5)
    offsets = np.append(0, np.cumsum(rng.integers(1, 40, 30)))
    labels, scores = rng.integers(0, 4, offsets[-1]), rng.normal(size=offsets[-1])
    scores[rng.random(offsets[-1]) < 0.5] = -np.inf
    scores[offsets[2] : offsets[3]] = -np.inf
    labels = np.where(np.arange(offsets[-1]) < offsets[1], np.nan, labels)
    query = np.repeat(np.arange(30), np.diff(offsets))
    names = [f"d{k:04}" for k in range(offsets[-1])]
    qrels = [ir_measures.Qrel(str(q), name, int(label)) for q, name, label in zip(query, names, labels, strict=True) if label >= 0]
    run = [
        ir_measures.ScoredDoc(str(q), name, score)
        for q, name, score in zip(query, names, scores, strict=True)
        if np.isfinite(score)
    ]
    theirs = {"ndcg": "nDCG", "ndcg@10": "nDCG@10", "map": "AP", "map@5": "AP@5", "mrr": "RR", "p@10": "P@10"}
    read = {name: ir_measures.parse_measure(other) for name, other in theirs.items()}
    means = ir_measures.calc_aggregate(list(read.values()), qrels, run)
    documents = np.array([name.encode() for name in names])
    ours = evaluate(labels, scores, offsets, list(theirs), PRESETS["trec"].conventions, documents=documents)
    for name, other in read.items():
        mine = ours[Measure.of(name).key]
        assert mine[2] == 0
        assert means[other] == pytest.approx(np.nanmean(mine)), name


@pytest.mark.parametrize("ties", ["expected", "stable", "worst"])
@pytest.mark.parametrize("name", ["ndcg@20", "jk_ndcg@3", "map", "mrr", "err", "p@3", "wta", "map@2", "mrr@1"])
def test_a_document_at_no_rank_is_as_one_below_countless_others(name, ties):
    """Below 20,000 documents without a gain, where it counts less than .0005 in all of these."""
    rng = np.random.default_rng(2)
    rules, others = Conventions(ties=ties, threshold=1), np.arange(1, 20_001) / 20_000
    for n in (1, 2, 5, 8, 8, 8):
        labels, scores = rng.integers(0, 3, n).astype(float), rng.integers(2, 5, n).astype(float)
        lost = rng.random(n) < 0.4
        (ours,) = evaluate(labels, np.where(lost, -np.inf, scores), [0, n], name, rules).values()
        all_labels, all_scores = np.append(labels, np.zeros(20_000)), np.append(np.where(lost, 0.0, scores), others)
        (below,) = evaluate(all_labels, all_scores, [0, n + 20_000], name, rules).values()
        assert ours == pytest.approx(below, abs=5e-4, nan_ok=True)


def test_pairs_with_documents_at_no_rank_are_ties_below_the_others():
    labels, scores = [2.0, 0.0, 1.0, 0.0], [1.0, 2.0, -np.inf, -np.inf]
    tied = [1.0, 2.0, 0.0, 0.0]
    for name in ("auc", "tau", "errors"):
        rules = Conventions(threshold=1)
        assert evaluate(labels, scores, [0, 4], name, rules)[name] == evaluate(labels, tied, [0, 4], name, rules)[name]


def test_other_label_sources_are_relevant_above_zero():
    values = evaluate({"label": [3.0, 0.0], "binary": [0.0, 1.0]}, [2.0, 1.0], [0, 2], ["mrr", "mrr:binary"])
    assert (values["mrr"][0], values["mrr_binary"][0]) == (1.0, 0.5)


def test_one_measure_is_enough_and_wrong_arguments_are_named():
    labels, scores, offsets = [2, 0, 1], [0.1, 0.3, 0.2], [0, 3]
    for one in ("ndcg@10", "ndcg_10", "NDCG@10", Measure.of("ndcg_10")):
        assert evaluate(labels, scores, offsets, one).keys() == {"ndcg_10"}
    for given, says in (
        ((labels, scores, [2, 1], "map"), r"offsets must rise from 0 to 3.*; these are sizes of queries"),
        ((labels, [scores], offsets, "map"), r"scores: shape \(1, 3\), expected one dimension"),
        ((labels, "high", offsets, "map"), "scores: 'high' is not an array of numbers"),
        ((labels[:2], scores, offsets, "map"), r"label: labels of shape \(2,\) for 3 scores"),
        ((labels, scores, offsets, [3]), "measure 3: a measure is named in text"),
        ((labels, scores, offsets, 3), "measure 3: a measure is named in text"),
        ((labels, scores, offsets, None), "measure None: a measure is named in text"),
        ((labels, scores, offsets, "map", "trec"), "conventions: 'trec' is not an ltr.Conventions"),
    ):
        with pytest.raises(ValueError, match=says):
            evaluate(*given)


def test_arrays_that_can_only_be_read_are_measured_too():
    arrays = [np.array(given) for given in ([2.0, 0.0, 1.0], [0.1, 0.3, 0.2], [0, 3])]
    want = evaluate(*arrays, ["ndcg@10", "p@1"])
    for array in arrays:
        array.setflags(write=False)
    got = evaluate(*arrays, ["ndcg@10", "p@1"], position=arrays[0])
    assert {key: value.tolist() for key, value in got.items()} == {key: value.tolist() for key, value in want.items()}


def test_labels_below_0_are_refused():
    with pytest.raises(ValueError, match=r"label: a label of -1; labels must be 0 or more, or NaN for not judged"):
        ltr.evaluate([-1.0, 2.0, np.nan], [0.0, 1.0, 2.0], [0, 3], ["ndcg_10"])
