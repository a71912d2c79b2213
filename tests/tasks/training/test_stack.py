"""Scores of trained rankers as a data set: halves of the validation queries, and the test queries."""

import numpy as np
import pytest

import ltr
import tasks.training.stack as st
from tasks.records import Fold
from tasks.store.cells import CellFolder
from tasks.store.datasets import keep_queries, open_queries
from tasks.training.stack import stack
from tests.conftest import make_queries

pytestmark = pytest.mark.usefixtures("prefect_server", "undrawn")


def test_features_are_scores_and_no_query_is_learned_from_and_chosen_on(workplace):
    fold = Fold(*(keep_queries(make_queries(20, seed=seed)) for seed in range(3)))
    rankers = {"ridge": ltr.LeastSquares(), "column": ltr.Column("f2")}
    fitted = {name: ranker.fit(open_queries(fold.train)) for name, ranker in rankers.items()}
    for name, ranker in fitted.items():
        ltr.save(ranker, CellFolder.of(name).model)
    made = stack.fn(fold, {name: name for name in rankers}, 1)
    train, valid, test = (open_queries(name) for name in made.roles.values())
    assert train.names == ("ridge", "column")
    keys = set(open_queries(fold.valid).keys.tolist())
    assert set(train.keys.tolist()) | set(valid.keys.tolist()) == keys
    assert not set(train.keys.tolist()) & set(valid.keys.tolist())
    whole = open_queries(fold.test)
    wanted = sorted(fitted["ridge"].predict(whole.features).astype(np.float32).tolist())
    assert sorted(test.features[:, 0].tolist()) == wanted
    assert stack.fn(fold, {name: name for name in rankers}, 1) == made


def test_another_seed_draws_another_half(workplace):
    train, valid, test = (make_queries(20, seed=k) for k in (1, 2, 3))
    fold = Fold(*(keep_queries(one) for one in (train, valid, test)))
    CellFolder.of("k").path.mkdir(parents=True)
    ltr.save(ltr.LeastSquares().fit(train), CellFolder.of("k").model)
    halves = [open_queries(st.stack.fn(fold, {"a": "k"}, seed).train).keys.tolist() for seed in (1, 2)]
    assert halves[0] != halves[1]
