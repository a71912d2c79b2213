"""Expected reciprocal rank by hand, and as what it is the expectation of: 1 over the rank where a reader stops."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from tests.conftest import make_queries
from tests.ltr.metrics.brute_force import cases, check_swaps, check_values, one

NAMES = ("err",)


@pytest.mark.parametrize(("name", "cutoff"), cases(*NAMES))
def test_values(name, cutoff):
    check_values(name, cutoff)


@pytest.mark.parametrize(("name", "cutoff"), cases(*NAMES))
def test_swaps(name, cutoff):
    check_swaps(name, cutoff)


def test_by_hand():
    """Stop probabilities 1/16, 0 and 15/16."""
    labels, scores = np.array([1.0, 0, 4]), -np.arange(3.0)
    assert one("err", None, labels, scores) == pytest.approx(1 / 16 + 15 / 16 * 15 / 16 / 3)
    assert one("err", 2, labels, scores) == pytest.approx(1 / 16)
    assert one("err", None, labels, scores, max_label=5) == pytest.approx(1 / 32 + 31 / 32 * 15 / 32 / 3)
    assert np.isnan(one("err", None, np.zeros(3), scores))


def test_it_is_the_mean_over_readers_who_stop_where_they_are_satisfied():
    labels, readers = np.array([2.0, 0, 3, 1, 4]), 400_000
    satisfied = np.random.default_rng(0).random((readers, 5)) < (2**labels - 1) / 16
    stops = np.where(satisfied.any(axis=1), 1 / (1.0 + satisfied.argmax(axis=1)), 0.0)
    assert one("err", None, labels, -np.arange(5.0)) == pytest.approx(stops.mean(), abs=0.003)


@pytest.mark.parametrize("top", [53, 54, 60, 1000])
def test_a_scale_whose_top_rounds_to_certainty_can_be_learned_from(top):
    queries = replace(make_queries(8), labels=make_queries(8).labels / 4 * top)
    conventions = ltr.Conventions(max_label=top)
    for ranker in (
        ltr.LambdaMART(n_trees=2, min_docs_in_leaf=1, objective="err", stop_on="err", conventions=conventions),
        ltr.LambdaRank(epochs=2, objective="err", stop_on="err", conventions=conventions),
    ):
        assert np.isfinite(ranker.fit(queries).predict(queries.features)).all()
