"""Result pages, users of each click model, and all that may happen on a page, for tests of click models and of what uses them."""

from itertools import product

import numpy as np

from ltr.clicks.chains import Chain, after_relevance
from ltr.clicks.looks import Looks
from ltr.clicks.off_policy import new_pages
from ltr.clicks.pages import Pages

LOOKS, CHAINS = ("rctr", "dctr", "pbm", "ubm"), ("cascade", "dcm", "sdbn", "ccm")


def layout(n_queries, documents, n_pages, shown=10, seed=0):
    """Pages of a ranker that orders each query's documents a little differently every time; nothing is clicked."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, n_queries, n_pages)
    usual = np.argsort(rng.random((n_queries, documents)), axis=1)
    places = np.argsort(np.arange(documents) + documents * rng.random((n_pages, documents)), axis=1)[:, :shown]
    pair = query[:, None] * documents + np.take_along_axis(usual[query], places, axis=1)
    return Pages(
        np.arange(n_pages + 1) * shown,
        pair.ravel(),
        np.tile(np.arange(1, shown + 1), n_pages),
        np.zeros(n_pages * shown, bool),
        np.repeat(np.arange(n_queries), documents),
    )


def users(name, pages, seed=1):
    """A model of known users."""
    rng, ranks, n = np.random.default_rng([seed, 3]), pages.n_ranks, len(pages.query)
    alpha, one = rng.beta(1, 3, n), np.ones(n)
    if name in LOOKS:
        rank, last = np.arange(1, ranks + 1)[:, None], np.arange(ranks)[None, :]
        gamma = {
            "rctr": np.repeat(0.4 * rank**-0.7, ranks, axis=1),
            "dctr": np.ones((ranks, ranks)),
            "pbm": np.repeat(rank**-0.7, ranks, axis=1),
            "ubm": np.where(last < rank, np.where(last == 0, 1.0, 0.9) * np.maximum(rank - last, 1) ** -0.5, 0.0),
        }[name]
        return Looks(name, one if name == "rctr" else alpha, one, one, 4.0, np.ascontiguousarray(gamma))
    after_pair = {"cascade": 0 * one, "dcm": one, "sdbn": rng.beta(3, 3, n), "ccm": after_relevance(alpha, 0.8, 0.3)}[name]
    after_rank = np.linspace(0.8, 0.4, ranks) if name == "dcm" else np.ones(ranks)
    return Chain(name, alpha, one, one, 4.0, 0.9 if name == "ccm" else 1.0, after_pair, after_rank, 0, True)


def one_page(rng, ranks=(1, 2, 3, 5)):
    """A page of as many documents."""
    n = len(ranks)
    return Pages(np.array([0, n]), rng.permutation(n), np.array(ranks), np.zeros(n, bool), np.zeros(n, int))


def all_clicks(page):
    """The page with every set of clicks that there is."""
    for clicks in product((False, True), repeat=len(page.pair)):
        yield page.clicked(np.array(clicks))


def walks(model, page):
    """Every walk of a user of a chain: its probability, clicks, and what was examined."""
    alpha = model.attraction[page.pair]
    after = model.after_pair[page.pair] * model.after_rank[page.rank - 1]
    found = [(1.0, (), (), True)]
    for a, go in zip(alpha, after, strict=True):
        longer = []
        for p, clicks, seen, on in found:
            if not on:
                longer.append((p, (*clicks, 0), (*seen, 0), False))
                continue
            for click, chance, forth in ((1, a, go), (0, 1 - a, model.skipped)):
                longer.append((p * chance * forth, (*clicks, click), (*seen, 1), True))
                longer.append((p * chance * (1 - forth), (*clicks, click), (*seen, 1), False))
        found = longer
    return [(p, np.array(clicks, bool), np.array(seen)) for p, clicks, seen, _ in found]


def glances(model, page):
    """Every way to look at a page and to be attracted, of a model of looks that knows no last click: probability and clicks."""
    alpha, gamma = model.attraction[page.pair], model.gamma[page.rank - 1, 0]
    n = len(alpha)
    for seen in product((0, 1), repeat=n):
        for drawn in product((0, 1), repeat=n):
            seen_, drawn_ = np.array(seen), np.array(drawn)
            p = np.prod(np.where(seen_, gamma, 1 - gamma) * np.where(drawn_, alpha, 1 - alpha))
            yield float(p), (seen_ * drawn_).astype(bool)


def shuffled_pages(n_queries, documents, n_pages, shown, rng, spread=1.0):
    """Pages of a ranker that draws its order by lot: documents of smaller numbers tend to stand higher; earlier queries are asked more."""
    often = np.arange(n_queries, 0, -1) / np.arange(1, n_queries + 1).sum()
    query = rng.choice(n_queries, n_pages, p=often)
    order = np.argsort(-(spread * np.linspace(1, 0, documents) + rng.gumbel(size=(n_pages, documents))), axis=1)[:, :shown]
    return Pages(
        np.arange(n_pages + 1) * shown,
        (query[:, None] * documents + order).ravel(),
        np.tile(np.arange(1, shown + 1), n_pages),
        np.zeros(n_pages * shown, bool),
        np.repeat(np.arange(n_queries), documents),
    )


def worth(model, rank, query, top):
    """Clicks a page that users make on a new ranker's first results, where queries are asked as in `shuffled_pages`."""
    pages, whose = new_pages(rank, query, top)
    n = int(query.max()) + 1
    of_query = np.bincount(whose[pages.of_page()], model.expected(pages), n)
    return float((of_query * np.arange(n, 0, -1)).sum() / np.arange(1, n + 1).sum())


def in_another_order(clicked):
    """The same pages in another order."""
    order = np.random.default_rng(0).permutation(clicked.n_pages)
    rows = np.concatenate([np.arange(clicked.offsets[page], clicked.offsets[page + 1]) for page in order])
    offsets = np.append(0, np.cumsum(np.diff(clicked.offsets)[order]))
    return Pages(offsets, clicked.pair[rows], clicked.rank[rows], clicked.click[rows], clicked.query)


def three_a_page(n=4000, seed=0):
    """Pages of three results, in every order, of twenty queries; looked at and clicked as a position-based model says."""
    rng = np.random.default_rng(seed)
    pair = np.concatenate([3 * rng.integers(0, 20) + rng.permutation(3) for _ in range(n)])
    rank, attraction, looks = np.tile([1, 2, 3], n), np.tile([0.7, 0.4, 0.2], 20), np.array([1.0, 0.5, 0.3])
    click = rng.random(3 * n) < attraction[pair] * looks[rank - 1]
    return Pages(np.arange(0, 3 * n + 1, 3), pair, rank, click, np.repeat(np.arange(20), 3))
