"""Generated data: shares as stated, the same for a seed, and a log whose bias is the one put in."""

import numpy as np
import pytest

from ltr.data.synthetic import LABEL_SHARES, SIMILAR, Browsing, World, clicked_pages, history, simulate_sessions


def test_labels_have_their_shares_and_values_their_scale():
    queries, users = World(n_features=30).queries(200, 50, 1)
    assert np.bincount(queries.labels.astype(int)) / queries.n_documents == pytest.approx(LABEL_SHARES, abs=1e-3)
    judges, _ = World(n_features=30).values(queries.features)
    assert judges.mean() == pytest.approx(0, abs=0.05)
    assert judges.std() == pytest.approx(1, abs=0.05)
    assert np.corrcoef(judges, users)[0, 1] == pytest.approx(0.7, abs=0.1)


def test_a_seed_is_a_world_and_a_stream_a_sample():
    world = World(n_features=30)
    a, _ = world.queries(5, 10, 1)
    assert a.digest == world.queries(5, 10, 1)[0].digest
    assert a.digest != world.queries(5, 10, 2)[0].digest
    assert a.digest != World(n_features=30, seed=2).queries(5, 10, 1)[0].digest


def test_clicks_fall_with_rank_as_the_bias_says():
    queries, users = World(n_features=30).queries(60, 20, 1)
    constant = np.full(len(users), 50.0)  # everybody clicks what they look at
    log = simulate_sessions(queries.offsets, queries.labels, constant, 200, Browsing(bias=1.0, noise=0.0))
    rates = [(log.click[log.rank == r] > 0).mean() for r in (1, 2, 5, 10)]
    assert rates == pytest.approx([1, 1 / 2, 1 / 5, 1 / 10], abs=0.02)
    unbiased = simulate_sessions(queries.offsets, queries.labels, constant, 20, Browsing(bias=0.0, noise=0.0))
    assert (unbiased.click > 0).all()


def test_a_page_shows_each_document_once_and_counts_clicks_in_order():
    queries, users = World(n_features=30).queries(10, 20, 1)
    log = simulate_sessions(queries.offsets, queries.labels, users, 5, Browsing(shown=8))
    for session in np.unique(log.session):
        page = log.session == session
        assert len(set(log.document[page])) == page.sum() == 8
        assert log.rank[page].tolist() == list(range(1, 9))
        clicks = log.click[page][log.click[page] > 0]
        assert clicks.tolist() == list(range(1, len(clicks) + 1))
        assert len(set(log.query[page])) == 1


@pytest.mark.parametrize(("active", "mixed"), [(12, 1), (4, 3)])
def test_the_truth_is_in_the_active_features_and_labels_have_the_shares_asked_for(active, mixed):
    world = World(n_features=30, active=active, mixed=mixed, shares=(0.8, 0.1, 0.05, 0.03, 0.02))
    queries, _ = world.queries(100, 50, 1)
    assert np.bincount(queries.labels.astype(int)) / queries.n_documents == pytest.approx(world.shares, abs=1e-3)
    moving = []
    for k in range(30):
        moved = queries.features.copy()
        moved[:, k] += 1
        moving.append(not np.array_equal(world.values(moved)[0], world.values(queries.features)[0]))
    assert sum(moving) == 12


def test_users_of_a_similar_query_value_much_the_same_but_not_the_same():
    world = World(n_features=30)
    queries, users = world.queries(200, 50, 1)
    assert np.corrcoef(world.similar(queries.features, users), users)[0, 1] == pytest.approx(SIMILAR, abs=0.1)


def test_history_counts_what_was_shown_and_clicked():
    queries, users = World(n_features=30).queries(10, 20, 1)
    log = simulate_sessions(queries.offsets, queries.labels, users, 30, Browsing(shown=8))
    told = history(log, queries.n_documents)
    for d in range(0, 200, 17):
        rows = np.flatnonzero(log.document == d)
        last = [k for k in rows if log.click[k] and log.click[k] == log.click[log.session == log.session[k]].max()]
        shown = max(len(rows), 1)
        want = [np.log1p(len(rows)), (log.click[rows] > 0).sum() / shown, len(last) / shown, log.rank[rows].sum() / shown]
        assert told[d] == pytest.approx(want, abs=1e-6)


def test_pages_show_the_best_scored_and_are_clicked_as_users_look():
    queries, _ = World(n_features=5).queries(20, 6, 1)
    looks = np.array([1.0, 0.5, 0.25])
    scores = np.random.default_rng(0).normal(size=queries.n_documents)
    pages = clicked_pages(queries, scores, 400, looks, noise=0.2)
    assert pages.n_queries == 20 * 400
    np.testing.assert_array_equal(pages.sources["position"][:6], [1, 2, 3, 1, 2, 3])
    top = queries.features[:6][np.argsort(-scores[:6], kind="stable")[:3]]
    np.testing.assert_array_equal(pages.features[:3], top)
    attraction = 0.2 + 0.8 * (2**queries.labels - 1) / (2 ** queries.labels.max() - 1)
    for rank in (1, 2, 3):
        best = [first + np.argsort(-scores[first : first + 6], kind="stable")[rank - 1] for first in queries.offsets[:-1]]
        expected = looks[rank - 1] * attraction[best].mean()
        assert pages.labels[pages.sources["position"] == rank].mean() == pytest.approx(expected, abs=0.02)
    mixed = clicked_pages(queries, scores, 50, looks, jitter=10.0)
    assert len(np.unique(mixed.features[mixed.sources["position"] == 1], axis=0)) > 100
