"""Generated data: shares as stated, the same for a seed, and a log whose bias is the one put in."""

import numpy as np
import pytest

from ltr.data.synthetic import LABEL_SHARES, World, simulate_sessions


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
    log = simulate_sessions(queries.offsets, queries.labels, constant, per_query=200, bias=1.0, noise=0.0)
    rates = [(log.click[log.rank == r] > 0).mean() for r in (1, 2, 5, 10)]
    assert rates == pytest.approx([1, 1 / 2, 1 / 5, 1 / 10], abs=0.02)
    unbiased = simulate_sessions(queries.offsets, queries.labels, constant, per_query=20, bias=0.0, noise=0.0)
    assert (unbiased.click > 0).all()


def test_a_page_shows_each_document_once_and_counts_clicks_in_order():
    queries, users = World(n_features=30).queries(10, 20, 1)
    log = simulate_sessions(queries.offsets, queries.labels, users, per_query=5, shown=8)
    for session in np.unique(log.session):
        page = log.session == session
        assert len(set(log.document[page])) == page.sum() == 8
        assert log.rank[page].tolist() == list(range(1, 9))
        clicks = log.click[page][log.click[page] > 0]
        assert clicks.tolist() == list(range(1, len(clicks) + 1))
        assert len(set(log.query[page])) == 1
