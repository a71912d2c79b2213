"""One model over a real Dask cluster on this machine: its digest, what it cost, a worker that dies."""

import os
import signal
from dataclasses import replace

import distributed
import numpy as np
import pytest
from distributed.client import FutureCancelledError

import ltr
from ltr.data.queries import concatenate
from ltr.trees.shards import ShardLost
from tasks.store.datasets import keep_queries, open_queries
from tasks.training.cluster import Begun, TreeCosts, _actor_of, cut, fit_in_shards, fit_on
from tests.conftest import JIT
from tests.ltr.objectives.test_unbiased import judged, pages
from tests.ltr.trees.test_shards import TERMS, data, split

MODEL = ltr.LambdaMART(
    n_trees=8, n_leaves=6, min_docs_in_leaf=15, objective=TERMS, query_share=0.8, feature_share=0.7, patience=3, learning_rate=0.5
)  # fmt: skip


def killing(client):
    """A tick that ends the worker of the first part after the third tree."""
    seen = []

    def tick():
        seen.append(1)
        if len(seen) == 3:
            pids = client.run(os.getpid)
            os.kill(pids[min(pids)], signal.SIGKILL)

    return tick


@pytest.mark.skipif(not JIT, reason="workers are other processes, which compile")
def test_two_workers_train_the_model_of_one_machine_and_a_dead_one_is_named(workplace):
    train, valid = data(), data(30, seed=2)
    stored, held_out = [keep_queries(part) for part in split(train, 4)], keep_queries(valid)
    reference = MODEL.fit(train, valid)
    cluster = distributed.LocalCluster(processes=True, n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        fitted, cost = fit_on(client, stored, MODEL, held_out)
        assert fitted.digest == reference.digest
        assert fitted.remarks[-1] == cost.remark
        assert len(cost.moved) == len(reference.curve.valid)
        assert (cost.moved > 1000).all()
        assert (cost.seconds > 0).all()
        assert MODEL.n_leaves < np.median(cost.exchanges) < 3 * MODEL.n_leaves
        with pytest.raises(ValueError, match="a query is in two of the parts"):
            fit_on(client, [stored[0], stored[0]], MODEL)
        with pytest.raises(ShardLost, match=f"part '{stored[0]}' is lost: its worker no longer answers") as lost:
            fit_on(client, stored[:2], MODEL, held_out, tick=killing(client))
        client.wait_for_workers(2)
        both = concatenate([open_queries(name) for name in stored[:2]])
        resumed, _ = fit_on(client, stored[:2], MODEL, held_out, Begun(lost.value.so_far))
        assert lost.value.so_far.trees.n_trees == 3
        assert resumed.digest == MODEL.fit(both, valid).digest


def ending(process, trees):
    """A tick that ends another worker after so many trees."""
    seen = []

    def tick():
        seen.append(1)
        if len(seen) == trees:
            os.kill(process, signal.SIGKILL)

    return tick


OVERFITTED = replace(MODEL, n_trees=30, min_docs_in_leaf=2, patience=12, learning_rate=1.0)
"""Best on validation long before it stops."""
DEBIASED = ltr.LambdaMART(n_trees=6, n_leaves=6, min_docs_in_leaf=15, stop_on="ndcg@3", unbiased="auto")


@pytest.mark.long
@pytest.mark.skipif(not JIT, reason="workers are other processes, which compile")
def test_training_in_parts_outlives_a_worker(workplace):
    train, valid = keep_queries(data()), keep_queries(data(30, seed=2))
    cluster = distributed.LocalCluster(processes=True, n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        pids = client.run(os.getpid)
        task = client.submit(fit_in_shards, OVERFITTED, train, valid, 3, ending(pids[min(pids)], 9), workers=[max(pids)])
        fitted = task.result(timeout=120)
        client.wait_for_workers(2)
        pids, clicked = client.run(os.getpid), keep_queries(pages(n_queries=30, per_query=3))
        judging = keep_queries(judged(2, 20))
        task = client.submit(fit_in_shards, DEBIASED, clicked, judging, 3, ending(pids[min(pids)], 9), workers=[max(pids)])
        debiased = task.result(timeout=120)
    whole = DEBIASED.fit(pages(n_queries=30, per_query=3), judged(2, 20))
    assert debiased.digest == whole.digest
    assert debiased.unbiased == whole.unbiased
    assert debiased.remarks[:-1] == whole.remarks
    alone = OVERFITTED.fit(data(), data(30, seed=2))
    assert alone.trees.n_trees < 9 < len(alone.curve.valid)
    assert fitted.digest == alone.digest
    assert np.array_equal(fitted.curve.valid, alone.curve.valid)


def test_cut_parts_hold_every_query_once(workplace):
    name = keep_queries(data(10))
    parts = cut(name, 3)
    assert [open_queries(part).n_queries for part in parts] == [4, 3, 3]
    assert concatenate([open_queries(part) for part in parts]).digest == open_queries(name).digest
    assert cut(name, 3) == parts
    with pytest.raises(ValueError, match="parts: 11 of 10 training queries"):
        cut(name, 11)


@pytest.mark.skipif(not JIT, reason="needs a cluster")
def test_a_cluster_without_workers_is_refused(workplace):
    with (
        distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(ValueError, match="the cluster has no workers"),
    ):
        fit_on(client, ["a"], ltr.LambdaMART())


def test_a_cluster_that_encrypts_is_refused():
    class Encrypted:
        def scheduler_info(self, n_workers):
            return {"workers": {"tls://10.0.0.7:4411": {"nthreads": 1}}}

    with pytest.raises(ValueError, match=r"worker tls://10\.0\.0\.7:4411: parts send their sums unencrypted"):
        fit_on(Encrypted(), ["a"], ltr.LambdaMART())


def test_a_part_that_never_opened_is_named():
    class Gone:
        def result(self):
            raise FutureCancelledError("part", "lost dependencies")

    with pytest.raises(ShardLost, match="part 'a' is lost"):
        _actor_of("a", Gone())


def test_a_training_has_moved_where_there_are_more_trees_or_another_way():
    trees = ltr.LambdaMART(n_trees=2, min_docs_in_leaf=5, unbiased="additive").fit(pages(n_queries=8, per_query=2))
    assert not Begun().moved(None)
    assert Begun().moved(trees)
    assert not Begun(trees).moved(trees)
    assert not Begun(trees).moved(trees.first(1))
    assert Begun(trees.first(1)).moved(trees)
    assert Begun(trees).moved(replace(trees.first(1), unbiased="pairwise", biases=None))
    assert not Begun(trees).moved(replace(trees.first(0), unbiased="pairwise", biases=None))


def test_costs_are_told_in_words():
    cost = TreeCosts(np.array([9_000_000, 2_000_000, 1_000_000]), np.array([300, 60, 61]), np.array([2.0, 0.25, 0.125]))
    assert cost.remark == "each tree cost 2.00 MB, 61 exchanges and 0.250 s (medians)"
