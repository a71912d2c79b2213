"""Propensities of counts whose law is known, and of counts that cannot tell."""

import numpy as np
import pytest

from ltr.data.propensities import propensities


def rows(counts, clicks):
    document, place = np.nonzero(counts)
    return document, place + 1, counts[document, place], clicks[document, place]


def test_exact_where_clicks_are_what_is_expected():
    theta, attraction = np.array([1.0, 0.5, 0.2]), np.array([0.9, 0.3, 0.6])
    counts = np.array([[100, 100, 0], [0, 100, 100], [100, 0, 100]])
    found = propensities(*rows(counts, counts * theta * attraction[:, None]))
    assert found == pytest.approx(theta, abs=1e-8)


def test_few_impressions_a_document_do_not_bias():
    rng = np.random.default_rng(0)
    theta = 1 / np.arange(1, 7)
    counts = rng.poisson(0.5, (200_000, 6))
    clicks = rng.binomial(counts, theta * rng.beta(1, 3, (200_000, 1)))
    assert propensities(*rows(counts, clicks)) == pytest.approx(theta, rel=0.08)


def test_a_rank_without_a_clicked_document_is_unknown_and_one_without_clicks_is_never_looked_at():
    found = propensities(np.array([0, 0, 0, 1]), np.array([1, 2, 3, 5]), np.full(4, 10), np.array([6, 3, 0, 0]))
    assert found == pytest.approx([1.0, 0.5, 0.0])
    found = propensities(np.array([0, 0, 1]), np.array([1, 3, 1]), np.full(3, 10), np.array([6, 3, 1]))
    assert np.isnan(found[1])
    assert found[[0, 2]] == pytest.approx([1.0, 0.5])


def test_counts_that_cannot_tell():
    with pytest.raises(ValueError, match="no click"):
        propensities(np.zeros(2, int), np.array([1, 2]), np.ones(2, int), np.zeros(2, int))
    with pytest.raises(ValueError, match="at two ranks"):
        propensities(np.arange(2), np.array([1, 2]), np.ones(2, int), np.ones(2, int))
