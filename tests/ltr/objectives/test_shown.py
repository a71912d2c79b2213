"""What pages say of ranks: counted by hand, over parts as over all of them, and what cannot be known."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.propensities import propensities
from ltr.data.queries import select
from ltr.objectives.shown import ONLY_FEATURES, UNITS, Shown, looks, shown_once
from ltr.objectives.terms import Term
from ltr.objectives.unbiased import MOST_POSITIONS, Unbiased
from tests.ltr.objectives.test_unbiased import LOOKS, SMALL, pages

IPW = Unbiased("ipw")
WHOLE = 1 << (UNITS - 1)
"""Units of a page of weight 1 where no page weighs more."""


def asking(queries, n, how=IPW):
    """`AskShown` over n parts of very different sizes."""
    rng = np.random.default_rng(n)
    cuts = np.sort(rng.choice(np.arange(1, queries.n_queries), n - 1, replace=False))
    parts = [Shown.on(select(queries, own), how, Term()) for own in np.split(rng.permutation(queries.n_queries), cuts)]
    return lambda *asked: [part.answer(*asked) for part in parts]


def test_looks_are_found_in_pages_that_show_documents_at_several_ranks():
    found = looks(IPW, Shown.on(pages(jitter=3.0, per_query=40), IPW, Term()).ask)
    np.testing.assert_allclose(found / found[0], LOOKS, atol=0.05)


def test_impressions_by_hand():
    queries = pages(n_queries=6, per_query=5)
    shown = Shown.on(queries, IPW, Term())
    clicked = shown.answer("clicked")
    found = shown.answer("impressions", clicked, shown.answer("largest"))
    rows = list(zip(queries.row_digests.tolist(), queries.sources["position"].astype(int) - 1, queries.labels > 0, strict=True))
    drew = sorted({digest for digest, _, click in rows if click})
    assert clicked.tolist() == drew
    impressions = Counter((drew.index(digest), rank) for digest, rank, _ in rows if digest in drew)
    clicks = Counter((drew.index(digest), rank) for digest, rank, click in rows if click)
    assert [divmod(pair, MOST_POSITIONS) for pair in found.pairs.tolist()] == sorted(impressions)
    assert found.shown.tolist() == [impressions[pair] * WHOLE for pair in sorted(impressions)]
    assert found.clicked.tolist() == [clicks[pair] * WHOLE for pair in sorted(impressions)]
    others = Counter(rank for digest, rank, _ in rows if digest not in drew)
    assert found.others.tolist() == [others[rank] * WHOLE for rank in range(8)]


def test_what_was_never_clicked_may_be_one_document():
    """Propensities of every document and rank are those of clicked ones, with the others together."""
    queries = pages(n_queries=40, per_query=3)
    _, document = np.unique(queries.row_digests, return_inverse=True)
    rank = queries.sources["position"].astype(int)
    every = propensities(document, rank, np.ones(len(rank), np.int64), (queries.labels > 0).astype(np.int64))
    found = looks(replace(IPW, least=1e-9), Shown.on(queries, IPW, Term()).ask)
    np.testing.assert_allclose(found, np.maximum(every, 1e-9), rtol=1e-7)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("jitter", [0.0, 0.3, 1.0])
def test_parts_say_what_all_pages_say(n, jitter):
    queries = pages(jitter=jitter, n_queries=30, per_query=4)
    whole, parts = Shown.on(queries, IPW, Term()).ask, asking(queries, n)
    assert shown_once(parts) == shown_once(whole) == (jitter == 0)
    given = replace(IPW, propensities=tuple(LOOKS))
    assert np.array_equal(looks(given, parts), looks(given, whole))
    if jitter:
        assert np.array_equal(looks(IPW, parts), looks(IPW, whole))


@pytest.mark.parametrize("of_documents", [False, True])
def test_a_page_of_weight_3_was_shown_three_times(of_documents):
    queries = pages(n_queries=60, per_query=3)
    times = np.arange(queries.n_queries) % 3 + 1
    of_row = np.repeat(times, np.diff(queries.offsets))
    if of_documents:
        of_row = np.where(np.arange(queries.n_documents) % 7 == 0, 0, of_row)
        weighed = replace(queries, document_weights=of_row.astype(np.float64))
    else:
        weighed = replace(queries, weights=times.astype(np.float64))
    rows = np.repeat(np.arange(queries.n_documents), of_row)
    again = Shown(
        queries.row_digests[rows], queries.sources["position"][rows].astype(int) - 1, queries.labels[rows] > 0, np.ones(len(rows))
    )
    expected, found = looks(IPW, again.ask), looks(IPW, Shown.on(weighed, IPW, Term()).ask)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert not np.allclose(looks(IPW, Shown.on(queries, IPW, Term()).ask), expected, rtol=0.01)
    assert np.array_equal(looks(IPW, asking(weighed, 3)), found)


def test_a_page_that_outweighs_all_others_hides_none_of_them():
    queries = pages(n_queries=40, per_query=3)
    weights = np.ones(queries.n_queries)
    weights[0] = 2.0**40
    found = Shown.on(replace(queries, weights=weights), IPW, Term())
    impressions = found.answer("impressions", found.answer("clicked"), found.answer("largest"))
    assert (impressions.shown > 0).all()
    assert looks(IPW, found.ask).shape == (8,)


def test_a_document_that_each_part_shows_at_another_rank_was_shown_at_two():
    queries = pages(jitter=0.0, n_queries=6, per_query=2)
    ranks = queries.sources["position"].copy()
    pair = queries.row_digests[: queries.offsets[1]]
    second = next(q for q in range(1, 12) if np.isin(queries.row_digests[queries.offsets[q] : queries.offsets[q + 1]], pair).all())
    own = slice(*queries.offsets[second : second + 2])
    ranks[own] = ranks[own][::-1]
    turned = replace(queries, sources={"position": ranks})
    halves = [np.array([0]), np.arange(1, 12)]
    parts = [Shown.on(select(turned, half), IPW, Term()) for half in halves]
    assert all(part.answer("once") for part in parts)
    assert not shown_once(lambda *asked: [part.answer(*asked) for part in parts])
    assert not shown_once(Shown.on(turned, IPW, Term()).ask)


def test_it_is_said_where_features_alone_tell_documents_from_ranks():
    fixed, mixed = (pages(jitter=jitter, n_queries=8, per_query=2) for jitter in (0.0, 1.0))
    for kind in ("pairwise", "additive"):
        model = ltr.LambdaMART(**{**SMALL, "min_docs_in_leaf": 5, "n_trees": 2}, unbiased=kind)
        assert model.fit(fixed).remarks[-1] == ONLY_FEATURES
        assert ONLY_FEATURES not in model.fit(mixed).remarks
    given = ltr.LambdaMART(**SMALL, n_trees=2, unbiased=replace(IPW, propensities=tuple(LOOKS)))
    assert ONLY_FEATURES not in given.fit(fixed).remarks


def test_propensities_that_cannot_be_known():
    fixed = pages(jitter=0.0, n_queries=6, per_query=2)
    for ask in (Shown.on(fixed, IPW, Term()).ask, asking(fixed, 3)):
        with pytest.raises(ValueError, match=r"no clicked document was shown at two ranks.*give propensities"):
            looks(IPW, ask)
        with pytest.raises(ValueError, match="shown at rank 8, and propensities end at rank 2"):
            looks(replace(IPW, propensities=(1.0, 0.5)), ask)
        with pytest.raises(ValueError, match="shown at rank 8, and propensities end at rank 7"):
            looks(replace(IPW, propensities=tuple(LOOKS[:7])), ask)
        assert looks(replace(IPW, propensities=tuple(LOOKS)), ask).shape == (8,)
    with pytest.raises(ValueError, match="no label source 'shown'"):
        Shown.on(fixed, replace(IPW, positions="shown"), Term())
    unclicked = replace(fixed, labels=np.zeros(fixed.n_documents))
    with pytest.raises(ValueError, match="no click in the log"):
        looks(IPW, asking(unclicked, 2))
