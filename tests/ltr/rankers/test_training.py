"""What is watched while training: defined somewhere, or an error instead of a silent nothing."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.rankers.training import checked_callbacks, mean_measure
from tests.conftest import make_queries


def test_the_mean_is_over_defined_queries():
    queries = ltr.Queries(np.zeros((4, 1)), np.array([0.0, 0, 3, 0]), np.array([0, 2, 4]))
    assert mean_measure("mrr", queries, np.array([1.0, 0, 2, 1]), ltr.Conventions()) == 1.0


@pytest.mark.parametrize(
    "model", [ltr.LambdaMART(n_trees=3, min_docs_in_leaf=3, stop_on="map"), ltr.LambdaRank(epochs=2, stop_on="map")]
)
def test_a_measure_that_no_query_defines_is_an_error(model):
    train, valid = make_queries(20, seed=1), make_queries(10, seed=2)
    below = replace(valid, labels=np.minimum(valid.labels, 1.0))
    with pytest.raises(ValueError, match="map is undefined on every query"):
        model.fit(train, below)


@pytest.mark.parametrize("model", [ltr.LambdaMART(n_trees=9, min_docs_in_leaf=3), ltr.LambdaRank(epochs=9)])
def test_a_tick_ends_the_training(model):
    ticks = []

    def tick():
        ticks.append(1)
        if len(ticks) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        model.fit(make_queries(20), None, tick)
    assert len(ticks) == 3


def test_docid_ties_reach_the_training():
    queries = make_queries(20)
    named = replace(queries, documents=np.array([f"d{k}".encode() for k in range(queries.n_documents)]))
    conventions = ltr.Conventions(ties="docid")
    ltr.LambdaMART(n_trees=2, min_docs_in_leaf=3, conventions=conventions).fit(named, named)
    ltr.LambdaRank(epochs=2, conventions=conventions).fit(named)


def test_callbacks_are_functions_of_the_progress():
    def told(now):
        return None

    assert checked_callbacks(None) == checked_callbacks(()) == ()
    assert checked_callbacks(told) == checked_callbacks([told]) == (told,)
    with pytest.raises(ValueError, match="callbacks: str of builtins is no function of the progress"):
        checked_callbacks("print")
    lightgbm = pytest.importorskip("lightgbm")
    with pytest.raises(
        ValueError, match=r"of lightgbm is no function of the progress .*patience=50 stops early, and of an estimator"
    ):
        checked_callbacks([lightgbm.early_stopping(50)])
