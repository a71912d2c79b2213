"""Ways to train that pages with clicks choose: both questions by hand, and how often the answer is right."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.clicks import scored_looks
from ltr.data.queries import Queries
from ltr.data.synthetic import World, clicked_pages
from ltr.metrics.significance import paired_t
from ltr.objectives.terms import Term
from ltr.objectives.unbiased import Unbiased
from ltr.rankers.page_verdict import PageVerdict
from ltr.rankers.verdict import NAIVE
from tests.ltr.data.test_queries import shuffled
from tests.ltr.objectives.test_unbiased import LOOKS, needs_jit, pages

AUTO = Unbiased("auto")


def judge(queries, looks=LOOKS):
    return PageVerdict(queries, AUTO, Term(), looks)


def test_clicks_in_another_order_by_hand():
    """Two pages of one query, of documents 1 and 2, and ten of others, each of two documents of its own; the ranker likes 1 and even ones."""
    document = np.array([1, 2, 2, 1, *range(3, 23)])
    clicks = np.array([1.0, 0, 1, 1, *[1.0, 0.0] * 10])
    queries = Queries(document[:, None], clicks, np.arange(0, 25, 2), sources={"position": np.tile([1.0, 2], 12)})
    found = judge(queries, np.array([1.0, 0.4]))
    likes = found.queries.features[:, 0] * (-1.0) ** found.queries.features[:, 0]
    likes[found.queries.features[:, 0] == 1] = 5
    first, second = 1.0, 0.4 + 1 / 0.4
    assert sorted(found.clicks(likes)) == pytest.approx([*[0.4] * 10, (first + second) / 2])


def test_results_below_the_rank_that_logs_are_read_to_are_left_out():
    rng = np.random.default_rng(0)
    rank = np.argsort(rng.random((8, 120)), axis=1).ravel() + 1.0
    queries = Queries(rng.normal(size=(960, 2)), (rank < 20) * 1.0, np.arange(0, 961, 120), sources={"position": rank})
    found = judge(queries)
    assert found._pages.n_ranks == 100
    assert found.clicks(rng.normal(size=960)).shape == (8,)


def test_likelihood_is_that_of_the_other_half():
    queries = pages(n_queries=30, per_query=3)
    found = judge(queries)
    scores = np.random.default_rng(0).normal(size=queries.n_documents) + found.queries.features[:, 0]
    by_query = found.likelihood(scores)
    own = scores[found._order]
    own = (own - own.mean()) / own.std()
    expected, size = np.zeros(len(by_query)), np.zeros(len(by_query))
    for page in range(found._pages.n_pages):
        rest = found._half != found._half[page]
        model = scored_looks.fit(found._pages.select(rest), own[np.repeat(rest, np.diff(found._pages.offsets))], 8)
        rows = slice(*found._pages.offsets[page : page + 2])
        odds = model.looks[found._pages.rank[rows] - 1] * np.exp(model.slope * own[rows])
        expected[found._query[page]] += np.log(odds / odds.sum())[found._pages.click[rows]].sum()
        size[found._query[page]] += 1
    np.testing.assert_allclose(by_query, expected / size, rtol=1e-9)
    assert (size == 3).all(), "pages that share documents are of one query"


def test_what_attracts_foretells_clicks_and_draws_them():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 8, 2))[np.repeat(np.arange(60), 6)]
    ranks = rng.permuted(np.tile(np.arange(1.0, 9), (360, 1)), axis=1)
    clicks = rng.random((360, 8)) < LOOKS[ranks.astype(int) - 1] * np.minimum(np.exp(features[..., 0] - 1.5), 1)
    queries = Queries(features.reshape(-1, 2), clicks.ravel(), np.arange(0, 2881, 8), sources={"position": ranks.ravel()})
    found = judge(queries)
    (attracts, noise), shown = found.queries.features.T.astype(float), -found.queries.sources["position"]
    chosen = found.verdict({NAIVE: noise, "additive": attracts, "pairwise": shown})
    assert chosen.kept == "additive"
    likely = paired_t(found.likelihood(attracts), found.likelihood(noise))
    drawn = paired_t(found.clicks(attracts), found.clicks(noise))
    said = f"additive {likely.difference:+.4f} ±{likely.standard_error:.4f} (p = "
    assert "(360 validation pages of 60 queries)" in chosen.sentence
    assert f"compared with {NAIVE}: {said}" in chosen.sentence
    assert f") and {drawn.difference:+.4f} ±{drawn.standard_error:.4f}; pairwise" in chosen.sentence
    worse = found.verdict({NAIVE: attracts, "additive": noise})
    assert worse.kept == NAIVE
    assert f"keeps {NAIVE}, by clicks and not by judgments" in worse.sentence
    assert found.verdict({NAIVE: noise, "additive": noise}).kept == NAIVE


def test_the_order_of_rows_does_not_matter():
    queries = pages(n_queries=20, per_query=3)
    one, other = judge(queries), judge(shuffled(queries, 5))
    assert np.array_equal(one.queries.features, other.queries.features)
    scores = np.random.default_rng(0).normal(size=queries.n_documents)
    assert np.array_equal(one.likelihood(scores), other.likelihood(scores))
    assert np.array_equal(one.clicks(scores), other.clicks(scores))


def test_pages_that_nothing_can_be_chosen_by():
    queries = pages(n_queries=2, per_query=3)
    with pytest.raises(ValueError, match="validation pages of 2 queries are too few"):
        judge(queries)
    queries = pages(n_queries=20, per_query=3)
    with pytest.raises(ValueError, match="rank: 1 follows 1 in one page"):
        judge(replace(queries, sources={"position": np.ones(queries.n_documents)}))


def test_documents_without_a_label_and_ranks_that_are_not_known():
    queries = pages(n_queries=20, per_query=3)
    labels, ranks = queries.labels.copy(), queries.sources["position"].copy()
    labels[::8] = ranks[::8] = np.nan
    found = judge(replace(queries, labels=labels, sources={"position": ranks}), LOOKS[:3])
    scores = np.random.default_rng(0).normal(size=queries.n_documents)
    assert np.isfinite(found.likelihood(scores)).all()
    assert np.isfinite(found.clicks(scores)).all()


def simulated(seed, eta, jitter):
    """Pages to learn from and to choose by, of users who look at rank r with θ_r^η, and judged queries."""
    world = World(n_features=8, n_monomials=10, active=4, seed=seed)
    sets = [world.queries(n, 12, stream)[0] for n, stream in ((100, 1), (60, 2), (200, 3))]
    old = [queries.features[:, 0].astype(float) + 0.3 * queries.labels for queries in sets[:2]]
    train, valid = (
        clicked_pages(queries, scores, 12, LOOKS**eta, jitter=jitter, seed=seed + shift)
        for queries, scores, shift in zip(sets[:2], old, (0, 1000), strict=True)
    )
    return train, valid, sets[2]


@needs_jit
@pytest.mark.long
@pytest.mark.parametrize("kind", ["trees", "net"])
def test_what_is_kept_is_better_on_judgments(kind):
    """Twenty logs with strong, weak and no bias: at least three of four debiased rankers that are kept are better than clicks as they are, and
    none is much worse."""
    trees = {"n_leaves": 8, "query_share": 1.0, "feature_share": 1.0, "min_docs_in_leaf": 10, "n_trees": 40, "learning_rate": 0.15}
    gains = []
    for eta, jitter in ((1, 1.0), (1, 3.0), (0.5, 1.0), (0, 1.0)):
        for seed in range(1, 6):
            train, valid, test = simulated(seed, eta, jitter)
            naive = ltr.LambdaMART(**trees) if kind == "trees" else ltr.LambdaRank(hidden=8, epochs=15, learning_rate=0.006)
            means = []
            for model in (replace(naive, unbiased="auto").fit(train, valid), naive.fit(train, valid)):
                values = ltr.evaluate(test.labels, model.predict(test.features), test.offsets, ["ndcg_10"])
                means.append(float(np.nanmean(values["ndcg_10"])))
            gains.append(means[0] - means[1])
    kept = np.array([gain for gain in gains if gain != 0])
    assert len(kept) >= 8
    assert (kept > 0).mean() > 0.75
    assert min(gains) > -0.04
    assert np.mean(gains) > 0.005


@pytest.mark.parametrize(
    ("likely", "drawn", "kept"),
    [
        ({"additive": (0.1, 0.05), "pairwise": (0.2, 0.05)}, {"additive": 0.1, "pairwise": -0.1}, "additive"),
        ({"additive": (0.1, 0.05), "pairwise": (0.2, 0.05)}, {"additive": 0.1, "pairwise": 0.01}, "pairwise"),
        ({"additive": (0.001, 0.5), "pairwise": (0.002, 0.5)}, {"additive": 0.1, "pairwise": 0.1}, NAIVE),
        ({"additive": (-0.1, 0.05), "pairwise": (-0.2, 0.05)}, {"additive": 0.1, "pairwise": 0.1}, NAIVE),
    ],
    ids=["it draws fewer clicks", "the likelier of two", "within a standard error", "less likely"],
)
def test_a_way_is_kept_that_is_better_by_both(monkeypatch, likely, drawn, kept):
    found = judge(pages(n_queries=20, per_query=3))
    n, rng = 20, np.random.default_rng(0)
    noise = rng.normal(size=n)
    noise = (noise - noise.mean()) / noise.std()
    values = {NAIVE: np.zeros(n)} | {way: mean + spread * noise for way, (mean, spread) in likely.items()}
    clicks = {NAIVE: np.zeros(n)} | {way: mean + 0.01 * noise for way, mean in drawn.items()}
    monkeypatch.setattr(PageVerdict, "likelihood", lambda self, name: values[name])
    monkeypatch.setattr(PageVerdict, "clicks", lambda self, name: clicks[name])
    assert found.verdict({name: name for name in values}).kept == kept
