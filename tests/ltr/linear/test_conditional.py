"""Conditional models against sums over all rankings, closed forms against sums over all sign vectors, gradients against differences."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import canonical, select
from ltr.linear.conditional import LOSSES, closed_cost, sampled_cost, trace
from ltr.linear.linear_ranker import minimise
from ltr.linear.sampler import Walk, draw
from tests.conftest import make_queries, share_of_random_weights
from tests.ltr.linear.test_sampler import everything, tiny


def costs(scores, table):
    """Every loss of one query by its definition, ``table``: δφ's numbers → Δ."""
    margins = np.array([-np.dot(counts, scores) for counts in table])
    losses = np.array(list(table.values()))
    shares = np.exp(margins) / np.exp(margins).sum()
    expected = (shares * losses).sum()
    mle = np.log(np.exp(margins).sum())
    return {
        "mle": mle, "l2": expected, "l3": mle + expected, "convex": np.log(np.exp(margins + losses).sum()), "exp_gain": -np.log(1 - expected),
        "log_loss": np.log(np.exp(margins + losses).sum()) - mle,
    }  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
def test_a_whole_sample_is_the_sum_over_all_rankings(loss):
    queries = tiny()
    sample = draw(queries, "map:binary", Walk(samples=3000))
    scores = 0.3 * np.random.default_rng(3).normal(size=queries.n_documents)
    want = sum(costs(scores[queries.offsets[q] : queries.offsets[q + 1]], everything(queries, q))[loss] for q in sample.queries)
    assert sampled_cost(loss, sample, queries.n_documents)(scores)[0] == pytest.approx(want)


def binary(n_queries=25, seed=5, **options):
    queries = make_queries(n_queries, seed=seed, largest=12, **options)
    return canonical(replace(queries, sources={"binary": (queries.labels >= 3).astype(float)}))


def differences(cost, scores, step=1e-6):
    moved = step * np.eye(len(scores))
    return np.array([(cost(scores + m)[0] - cost(scores - m)[0]) / (2 * step) for m in moved])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("measure", ["auc:binary", "map:binary", "ndcg:binary"])
def test_derivatives(loss, measure):
    queries = binary(6)
    cost = ltr.ConditionalModel(loss=loss, measure=measure, samples=30).cost(queries)
    scores = 0.2 * np.random.default_rng(4).normal(size=queries.n_documents)
    assert cost(scores)[1] == pytest.approx(differences(cost, scores), abs=1e-6)


def test_scaled_is_over_the_number_of_pairs():
    queries = tiny()
    sample, scores = draw(queries, "map:binary", Walk(samples=3000)), np.random.default_rng(3).normal(size=queries.n_documents)
    by_pairs = scores.copy()
    for q, pairs in zip(sample.queries, sample.pairs, strict=True):
        by_pairs[queries.offsets[q] : queries.offsets[q + 1]] /= pairs
    for loss in ("convex", "exp_gain"):
        scaled = sampled_cost(loss, sample, queries.n_documents, scaled=True)
        assert scaled(scores)[0] == pytest.approx(sampled_cost(loss, sample, queries.n_documents)(by_pairs)[0])
        assert scaled(scores)[1] == pytest.approx(differences(scaled, scores), abs=1e-6)
        closed = closed_cost(loss, queries, queries.labels, scaled=True)
        assert closed(scores)[1] == pytest.approx(differences(closed, scores), abs=1e-6)


@pytest.mark.parametrize("loss", ["mle", "convex", "exp_gain"])
def test_closed_forms_are_sums_over_all_sign_vectors(loss):
    queries = tiny()
    scores = 0.4 * np.random.default_rng(6).normal(size=queries.n_documents)
    want = 0.0
    for a, b in itertools.pairwise(queries.offsets):
        labels, own = queries.labels[a:b], scores[a:b]
        theta = [own[i] - own[j] for i in np.flatnonzero(labels == 1) for j in np.flatnonzero(labels == 0)]
        if theta:
            table = {}
            for signs in itertools.product((1, -1), repeat=len(theta)):
                table[tuple(signs)] = sum(s < 0 for s in signs) / len(theta)
            margins = np.array([np.dot(np.array(signs) - 1, theta) for signs in table])
            losses = np.array(list(table.values()))
            shares = np.exp(margins) / np.exp(margins).sum()
            want += {
                "mle": np.log(np.exp(margins).sum()), "convex": np.log(np.exp(margins + losses).sum()),
                "exp_gain": -np.log(1 - (shares * losses).sum()),
            }[loss]  # fmt: skip
    cost = closed_cost(loss, queries, queries.labels)
    assert cost(scores)[0] == pytest.approx(want)
    assert cost(scores)[1] == pytest.approx(differences(cost, scores), abs=1e-6)


def of_all_sizes(n):
    """Twenty draws of scores, from hundredths to tens."""
    return [np.random.default_rng(seed).normal(size=n) * 10.0 ** (seed % 4 - 2) for seed in range(20)]


@pytest.mark.parametrize("measure", ["auc:binary", "map:binary", "ndcg:binary"])
def test_convex_loss_is_an_upper_bound(measure):
    queries = binary()
    sample = draw(queries, measure, Walk(50))
    for scores in of_all_sizes(queries.n_documents):
        upper, lower = (sampled_cost(loss, sample, queries.n_documents)(scores)[0] for loss in ("convex", "l3"))
        assert upper >= lower - 1e-9


@pytest.mark.parametrize("measure", ["auc:binary", "map:binary", "ndcg:binary"])
def test_the_log_of_the_expected_loss_is_bounded_by_the_expected_loss_and_the_convex_one(measure):
    """C section 2: with f = exp, (4) is a lower bound of (5); and (5) is convex loss less the likelihood's."""
    queries = binary()
    sample = draw(queries, measure, Walk(50))
    for scores in of_all_sizes(queries.n_documents):
        of = {loss: sampled_cost(loss, sample, queries.n_documents)(scores)[0] for loss in ("log_loss", "l2", "convex", "mle")}
        assert of["log_loss"] >= of["l2"] - 1e-9
        assert of["log_loss"] == pytest.approx(of["convex"] - of["mle"], abs=1e-9)


def test_the_models_learn_and_come_back(tmp_path):
    train, valid = binary(60, seed=1), binary(40, seed=2)
    for loss in LOSSES:
        model = ltr.ConditionalModel(loss=loss, measure="ndcg:binary", samples=40).fit(train, valid)
        scores = model.predict(valid.features)
        value = np.nanmean(ltr.evaluate(valid.labels, scores, valid.offsets, ["ndcg_10"])["ndcg_10"])
        assert share_of_random_weights(valid, value) < 0.05, loss
        assert model.curve.valid[-1] > 0.8
        ltr.save(model, tmp_path / loss)
        loaded = ltr.load(tmp_path / loss)
        assert (loaded.digest, loaded.loss) == (model.digest, loss)
        assert np.array_equal(loaded.predict(valid.features), scores)
    closed = ltr.ConditionalModel(loss="convex", measure="auc:binary", closed=True).fit(train)
    assert np.corrcoef(closed.weights, model.weights)[0, 1] > 0.5


def test_shuffled_rows_give_the_same_model():
    train = binary(20, seed=1)
    order = np.random.default_rng(0).permutation(train.n_queries)
    shuffled = select(train, order)
    a, b = (ltr.ConditionalModel(measure="map:binary", samples=20).fit(queries) for queries in (train, shuffled))
    assert a.digest == b.digest


def test_what_cannot_be_fitted():
    for wrong in (
        {"C": 0.0},
        {"samples": 0},
        {"loss": "hinge"},
        {"closed": True},
        {"closed": True, "measure": "auc:binary", "loss": "l2"},
    ):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}=.* is out of range"):
            ltr.ConditionalModel(**wrong)
    with pytest.raises(ValueError, match="have 5 levels"):
        ltr.ConditionalModel().fit(make_queries(10))
    holes = binary(10)
    features = holes.features.copy()
    features[3, 1] = np.nan
    with pytest.raises(ValueError, match="conditional needs complete features; 'f2' has missing"):
        ltr.ConditionalModel(measure="map:binary").fit(replace(holes, features=features))


@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "mle"])
@pytest.mark.parametrize(
    ("low", "threshold", "measure"), [(0, 2, "map"), (0, 2, "auc"), (1, 1, "map"), (1, 1, "auc"), (0, 2, "p_3")]
)
def test_a_measure_that_is_the_same_for_every_ranking_teaches_nothing(loss, low, threshold, measure):
    """The cost was undefined, or flat: weights of 0 were reported as trained."""
    queries = binary(30)
    queries = replace(queries, labels=queries.source("binary") + low, sources={})
    rules = ltr.Conventions(threshold=threshold)
    told = f"conditional: {measure} is the same for every ranking of documents labelled {low} and {low + 1}, as conventions.threshold is"
    with pytest.raises(ValueError, match=told):
        ltr.ConditionalModel(loss=loss, measure=measure, conventions=rules).fit(queries)
    assert ltr.ConditionalModel(loss="mle", measure=measure, conventions=rules).fit(queries).weights.any()
    rules = ltr.Conventions(threshold=low + 1)
    assert ltr.ConditionalModel(loss=loss, measure=measure, conventions=rules).fit(queries).weights.any()


def test_a_trace_of_the_fit():
    train = binary(30, seed=1)
    model = ltr.ConditionalModel(measure="auc:binary", samples=40).fit(train)
    seen = trace(model, train)
    assert seen.sampled[-1] == pytest.approx(float(model.remarks[0].split()[1]), abs=1e-3)
    assert np.all(np.diff(seen.sampled) <= 1e-9)
    assert len(seen.closed) == len(seen.sampled)
    assert [seen.smear[begin].mean() for begin in (0.0, 0.5, 1.0)] == sorted(losses.mean() for losses in seen.smear.values())
    assert len(seen.products) == len(seen.losses) > 50
    assert np.corrcoef(seen.products, seen.losses)[0, 1] < 0
    assert not len(trace(ltr.ConditionalModel(measure="map:binary", samples=20).fit(train), train).closed)


def test_a_trace_is_of_the_documents_that_the_fit_learns_from():
    train = binary(30, seed=1)
    good, far = train.source("binary").copy(), train.features.copy()
    good[::4] = np.nan
    far[::4] *= 50
    train = replace(train, features=far, sources={**train.sources, "binary": good})
    rules = ltr.Conventions(unlabelled="condensed")
    model = ltr.ConditionalModel(measure="ndcg:binary", samples=40, conventions=rules).fit(train)
    assert trace(model, train).sampled[-1] == pytest.approx(float(model.remarks[0].split()[1]), abs=1e-3)


@pytest.mark.parametrize("scaled", [False, True])
def test_a_trace_is_of_the_models_own_features_of_rankings(scaled):
    """Σ ±(s_good − s_bad) over the pairs, or their mean: of the best ranking, and of any other less twice what its swaps turn round."""
    train = canonical(binary(30, seed=1))
    model = ltr.ConditionalModel(measure="ndcg:binary", samples=40, scaled=scaled, starts=1, iterations=1, standardise=False).fit(
        train
    )
    seen, scores, labels = trace(model, train), model.predict(train.features), train.source("binary")
    sample, possible = draw(train, "ndcg:binary", model.walk, model.seed), []
    starts = np.cumsum([0, *sample.sizes])
    for k in range(len(sample.queries)):
        own, is_good = (values[sample.documents[starts[k] : starts[k + 1]]] for values in (scores, labels))
        best = (own[is_good == 1][:, None] - own[is_good == 0]).sum()
        counts = sample.counts[sample.cells[k] :][: (sample.starts[k + 1] - sample.starts[k]) * len(own)].reshape(-1, len(own))
        pairs = (is_good == 1).sum() * (is_good == 0).sum()
        products = (best - counts @ own) / (pairs if scaled else 1)
        possible += zip(products, sample.losses[sample.starts[k] : sample.starts[k + 1]], strict=True)
    points = np.column_stack((seen.products, seen.losses))
    assert np.abs(points[:, None] - np.array(possible)).sum(axis=2).min(axis=1).max() < 1e-9
    assert len(points) > 50


def test_a_trace_of_a_fit_that_has_nothing_to_move():
    """L-BFGS makes no iteration where all features are constant."""
    train = binary(10)
    train = replace(train, features=np.ones_like(train.features))
    seen = trace(ltr.ConditionalModel(measure="ndcg:binary", samples=40).fit(train), train)
    assert len(seen.sampled) == 1
    assert not seen.products.any()


def test_rankings_of_a_sample_need_no_rule_of_ties():
    """They have none, so that trec_eval's rule is as any other."""
    queries = make_queries(10, seed=2)
    ids = np.array([b"d%04d" % k for k in range(queries.n_documents)])
    binary = replace(queries, labels=(queries.labels > 1).astype(float), documents=ids)
    by_rule = [ltr.ConditionalModel(conventions=ltr.Conventions(ties=ties)).fit(binary) for ties in ("docid", "expected")]
    assert by_rule[0].digest == by_rule[1].digest


def test_the_first_start_is_0_and_the_best_of_all_is_kept(monkeypatch):
    queries, found = binary(12), []

    def minimised(cost, features, C, start, iterations, watch):
        found.append((start, minimise(cost, features, C, start, iterations, watch)))
        return found[-1][1]

    monkeypatch.setattr("ltr.linear.linear_ranker.minimise", minimised)
    ranker = ltr.ConditionalModel(loss="l2", measure="map:binary", samples=10, iterations=3, starts=3, standardise=False)
    fitted = ranker.fit(queries)
    assert not found[0][0].any()
    assert found[1][0].any()
    assert not np.array_equal(found[1][0], found[2][0])
    weights, value = min((result for _, result in found), key=lambda result: result[1])
    assert np.array_equal(fitted.weights, weights)
    assert fitted.remarks == (f"objective {value:.4f}, the best of {', '.join(f'{result[1]:.4f}' for _, result in found)}",)
    before = [result[1] for _, result in found]
    found.clear()
    replace(ranker, seed=2).fit(queries)
    assert found[0][1][1] != before[0], "the sample is that of the seed"


def test_the_closed_form_reads_no_measure_of_rankings():
    queries = binary(20)
    queries = replace(queries, labels=queries.source("binary"), sources={})
    closed = ltr.ConditionalModel(measure="auc", closed=True, conventions=ltr.Conventions(threshold=2)).fit(queries)
    assert np.array_equal(closed.weights, ltr.ConditionalModel(measure="auc", closed=True).fit(queries).weights)
    assert closed.weights.any()


@pytest.mark.parametrize("loss", ["mle", "convex", "exp_gain"])
@pytest.mark.parametrize("closed", [True, False])
def test_queries_of_one_class_each_are_refused_before_anything_is_learned(loss, closed):
    """The closed forms said "need at least one array to concatenate"."""
    queries = binary(10)
    ranker = ltr.ConditionalModel(loss=loss, measure="auc:one", closed=closed)
    queries = replace(queries, sources={"one": queries.of_query % 2.0})
    for refuses in (ranker.check, ranker.fit):
        with pytest.raises(ValueError, match="no query has both a relevant and another document by the labels of 'one'"):
            refuses(queries)
