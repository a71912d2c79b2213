"""The dual learning algorithm: both losses by brute force, what was put into clicks is found again, and one model for one set of pages."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.objectives.dual import STEP, DualObjective
from ltr.objectives.preferences import Preferences
from ltr.objectives.shown import ONLY_FEATURES
from ltr.objectives.terms import Term
from ltr.objectives.unbiased import CALM, Unbiased, by_rank, in_words
from tests.ltr.data.test_queries import shuffled
from tests.ltr.objectives.test_unbiased import LOOKS, judged, needs_jit, pages, value

NET = {"hidden": 8, "epochs": 15, "learning_rate": 0.003, "stop_on": "ndcg@3"}
FEW = {"epochs": 6, "learning_rate": 0.03, "flat_epochs": 1, "stop_on": "ndcg@3"}
KINDS = ("dla", "pairwise", "additive", "ipw")


def softmax(values):
    return np.exp(values) / np.exp(values).sum()


def losses(queries, scores, logits, held_scores, held_logits, least, sigma):
    """Both losses, page by page, each with weights of the other that are held fixed."""
    of_ranker = of_looks = 0.0
    clicked = queries.labels > 0
    place = queries.sources["position"].astype(int) - 1
    looks = np.exp(held_logits - held_logits[0])
    mean = np.mean(1 / np.maximum(looks[place[clicked]], least))
    for first, last in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        own = np.arange(first, last)
        shares, seen = softmax(sigma * scores[own]), softmax(logits[place[own]])
        top = own[place[own] == place[own].min()][0]
        for k, i in enumerate(own):
            if clicked[i]:
                of_ranker -= np.log(shares[k]) / max(looks[place[i]], least) / mean
                of_looks -= np.log(seen[k]) * min(np.exp(sigma * (held_scores[top] - held_scores[i])), 1 / least)
    return of_ranker, of_looks


def test_gradients_are_those_of_the_losses():
    queries, rng = pages(n_queries=4, per_query=2), np.random.default_rng(0)
    how, sigma, logits = Unbiased("dla", least=0.3), 1.4, np.append(0.0, rng.normal(0, 1.0, 7))
    scores = rng.normal(size=queries.n_documents)
    objective = DualObjective(queries, Term(), how, sigma, np.exp(logits)[None, None])
    gradient, hessian = objective(scores, 0)

    def at(moved, turned):
        return losses(queries, moved, turned, scores, logits, how.least, sigma)

    step = 1e-4
    for d in range(queries.n_documents):
        move = step * (np.arange(queries.n_documents) == d)
        up, here, down = (at(scores + sign * move, logits)[0] for sign in (1, 0, -1))
        assert gradient[d] == pytest.approx((down - up) / (2 * step), abs=1e-6)
        assert hessian[d] == pytest.approx((up - 2 * here + down) / step**2, abs=1e-5)
    moved = np.empty(8)
    for rank in range(8):
        move = step * (np.arange(8) == rank)
        up, here, down = (at(scores, logits + sign * move)[1] for sign in (1, 0, -1))
        bend = (up - 2 * here + down) / step**2
        moved[rank] = logits[rank] + STEP * (down - up) / (2 * step) / (bend + CALM)
    np.testing.assert_allclose(objective.biases[1][0], np.exp(moved - moved[0]), rtol=1e-5)
    again = objective(scores, 0)
    assert len(objective.biases) == 2
    assert np.array_equal(again[0], gradient)


def test_a_page_without_a_click_teaches_nothing():
    queries = pages(n_queries=4, per_query=1)
    labels = np.zeros(queries.n_documents)
    objective = DualObjective(replace(queries, labels=labels), Term(), Unbiased("dla"), 1.0)
    gradient, hessian = objective(np.random.default_rng(0).normal(size=queries.n_documents), 0)
    assert not gradient.any()
    assert not hessian.any()
    assert (objective.biases[1] == 1).all()


@needs_jit
@pytest.mark.parametrize("update", ["query", "full"])
def test_the_bias_put_into_clicks_is_found_again(update):
    """Of pages with a little chance in their order, which need a net that can tell documents from ranks; and of any order."""
    given = {**NET, "hidden": 8} if update == "query" else {**NET, "hidden": 0, "learning_rate": 0.0005}
    shown = pages(jitter=1.0 if update == "query" else 100.0, per_query=40)
    model = ltr.LambdaRank(**given, update=update, unbiased="dla").fit(shown)
    np.testing.assert_allclose(model.biases[-1, 0], LOOKS, atol=0.06)


@needs_jit
def test_debiased_is_better_where_clicks_are_biased_and_no_worse_where_they_are_not():
    biased, unbiased = (pages(bias=bias, per_query=24) for bias in (True, False))
    naive, fair = (value(ltr.LambdaRank(**NET).fit(shown)) for shown in (biased, unbiased))
    for kind in KINDS:
        assert value(ltr.LambdaRank(**NET, unbiased=kind).fit(biased)) > naive + 0.03, kind
        assert value(ltr.LambdaRank(**NET, unbiased=kind).fit(unbiased)) > fair - 0.02, kind


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize("kind", KINDS)
def test_one_model_for_any_order_of_rows_and_any_threads(kind):
    queries = pages(n_queries=20, per_query=3)
    for update in ("query", "full"):
        net = ltr.LambdaRank(**FEW, update=update, unbiased=kind)
        model = net.fit(queries)
        with ltr.threads(1):
            others = [net.fit(own) for own in (queries, shuffled(queries, 4))]
        for other in others:
            assert other.digest == model.digest
            assert np.array_equal(other.biases, model.biases)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("update", ["query", "full"])
def test_stopped_saved_and_resumed_is_never_stopped(kind, update, tmp_path):
    queries, valid = pages(n_queries=20, per_query=3), judged(2)
    whole = ltr.LambdaRank(**{**FEW, "epochs": 12}, update=update, hidden=2, unbiased=kind)
    reference = whole.fit(queries, valid)
    ltr.save(replace(whole, epochs=5).fit(queries, valid), tmp_path / "begun")
    resumed = whole.go_on(ltr.load(tmp_path / "begun"), queries, valid)
    assert "0 restarts" not in reference.remarks[0]
    for name, model in (("whole", reference), ("resumed", resumed)):
        ltr.save(model, tmp_path / name)
    for file in ("model.json", "model.npz"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "resumed" / file).read_bytes()
    assert resumed.remarks == reference.remarks
    best = reference.biases[min(reference.best_iteration, len(reference.biases) - 1)]
    assert in_words(whole.unbiased, best) in reference.remarks
    for line, expected in zip(reference.position_bias.values(), by_rank(whole.unbiased, best).values(), strict=True):
        assert np.array_equal(line, expected), "as it was at the epoch that is kept"
    assert ltr.load(tmp_path / "whole").unbiased == whole.unbiased


def test_a_restart_begins_with_ranks_that_are_alike():
    queries, valid = pages(n_queries=20, per_query=3), judged(2)
    model = ltr.LambdaRank(**FEW, unbiased="dla").fit(queries, valid)
    rows, restarts = model.states[6].rows, model.states[6].restarts
    assert restarts
    assert sum((model.biases[epoch] == 1).all() for epoch in range(1, 7)) == restarts
    assert len(rows) == len(model.biases) - 1


def test_without_other_queries_the_last_epoch_is_kept():
    queries = pages(n_queries=20, per_query=3)
    net = ltr.LambdaRank(**FEW, unbiased="pairwise")
    for model in (net.fit(queries), replace(net, keep="train").fit(queries, judged(2))):
        assert (model.best_iteration, model.states[6].restarts) == (6, 0)
        assert np.array_equal(model.weights.flat, model.states[6].weights.flat)
        assert model.remarks[0] == "kept the last epoch (6): biased clicks cannot show which epoch is best"
    resumed = replace(net, epochs=8).go_on(net.fit(queries), queries)
    assert resumed.digest == replace(net, epochs=8).fit(queries).digest
    assert ltr.LambdaRank(**FEW).fit(queries).remarks[0].startswith("best epoch")


def test_it_is_said_where_features_alone_tell_documents_from_ranks():
    fixed, mixed = (pages(jitter=jitter, n_queries=8, per_query=2) for jitter in (0.0, 1.0))
    net = ltr.LambdaRank(epochs=2, unbiased="dla")
    assert net.fit(fixed).remarks[-1] == ONLY_FEATURES
    given = replace(net, unbiased=Unbiased("ipw", propensities=tuple(LOOKS)))
    assert ONLY_FEATURES not in given.fit(fixed).remarks
    assert (
        net.fit(mixed).remarks[-1].startswith("position bias of ranks 1, 2, … (dla, propensities beside the first rank's): 1.00 ")
    )


def test_a_polished_or_certified_net_is_one_of_judgments():
    model = ltr.LambdaRank(**FEW, unbiased="dla").fit(pages(n_queries=8, per_query=2))
    assert model.moved(model.weights.flat).biases is None
    assert model.escape(judged(2), "ndcg_10", 2, model.conventions) is not None


def test_states_and_biases_that_do_not_go_together():
    queries = pages(n_queries=8, per_query=2)
    model = ltr.LambdaRank(**FEW, unbiased="dla").fit(queries)
    with pytest.raises(ValueError, match="the state learned 1 numbers of a rank, and pairwise learns 2"):
        ltr.LambdaRank(**FEW, unbiased="pairwise").fit(queries, start=model.states[6])
    plain = ltr.LambdaRank(**FEW)
    with pytest.raises(ValueError, match="shape does not go with unbiased=None"):
        ltr.LambdaRank.restored(plain.parameters, model.arrays, model.names)
    unborn = ltr.LambdaRank(epochs=0, unbiased="pairwise").fit(queries)
    assert unborn.restored(unborn.parameters, unborn.arrays, unborn.names).biases is None
    for biases, rule in (
        (np.ones((3, 2, 8)), "shape does not go with"),
        (np.full((3, 1, 8), np.nan), "not finite"),
        (np.ones(3), "finite"),
    ):
        with pytest.raises(ValueError, match=rule):
            type(model).restored(model.parameters, {**model.arrays, "6/biases": biases}, model.names)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"objective": "map"}, "not one for map; set the objective to ndcg"),
        ({"objective": Term(cost="logistic_near")}, "has its own loss; remove cost, construction and pairs"),
        ({"objective": ("ndcg", "map")}, "the objective has 2"),
        ({"normalise": "query"}, "dla weighs pages"),
        ({"count_pairs": 3}, "dla does not learn from pairs"),
        ({"unbiased": Unbiased("ipw", estimate="regression_em")}, "grows trees .*give propensities, or use dla"),
        ({"unbiased": Unbiased("pairwise"), "normalise": "term"}, "set normalise: none"),
    ],
)  # fmt: skip
def test_nets_that_cannot_be_debiased(given, rule):
    with pytest.raises(ValueError, match=rule):
        ltr.LambdaRank(**{"unbiased": "dla", **given})


def test_what_dla_does_not_know():
    with pytest.raises(ValueError, match="dla has no regularisation; `least` bounds its weights"):
        Unbiased("dla", regularisation=1.0)
    with pytest.raises(ValueError, match="preferences have no positions"):
        ltr.LambdaRank(unbiased="dla").fit(pages(n_queries=8, per_query=2), preferences=Preferences([0], [1]))
