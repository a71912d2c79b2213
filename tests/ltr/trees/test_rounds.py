"""Growth in rounds: the order found afterwards is that of growing leaf by leaf, and what several machines send each other."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.trees.rounds import _Leaf, replayed
from tests.conftest import JIT, make_queries
from tests.ltr.trees.test_shards import asking, parts_of


def tree(rng, size, depth):
    """All splits that there could be."""
    gain = float(rng.integers(0, 9)) if depth and size > 1 else 0.0
    leaf = _Leaf(0, 0, 0, 0, size, 0, np.zeros(2), np.ones(0, np.bool_), gain)
    if gain:
        n_left = int(rng.integers(1, size))
        leaf.sides = tree(rng, n_left, depth - 1), tree(rng, size - n_left, depth - 1)
    return leaf


def one_by_one(root, n_leaves):
    """What is split, leaf after leaf: the first of the highest gain, whose larger side keeps its number."""
    leaves, splits = [root], []
    while len(leaves) < n_leaves:
        k = int(np.argmax([leaf.gain for leaf in leaves]))
        if leaves[k].gain == 0:
            break
        splits.append(leaves[k])
        left, right = leaves[k].sides
        larger, smaller = (left, right) if left.size > right.size else (right, left)
        leaves[k] = larger
        leaves.append(smaller)
    return splits, leaves


def known(leaf, rng, share):
    """A copy of the tree of which only some splits are known."""
    sides = None
    if leaf.sides and rng.random() < share:
        sides = known(leaf.sides[0], rng, share), known(leaf.sides[1], rng, share)
    copy = replace(leaf, sides=sides)
    copy.whole = leaf
    return copy


@pytest.mark.parametrize("seed", range(30))
def test_the_order_of_splits_is_that_of_growing_one_by_one(seed):
    rng = np.random.default_rng(seed)
    root, n_leaves = tree(rng, 10_000, 7), int(rng.integers(2, 30))
    splits, leaves = one_by_one(root, n_leaves)
    found, found_leaves, candidates = replayed(root, n_leaves)
    assert [id(leaf) for leaf in found] == [id(leaf) for leaf in splits]
    assert {id(leaf) for leaf in found_leaves} == {id(leaf) for leaf in leaves}
    assert candidates == []


@pytest.mark.parametrize("seed", range(30))
def test_candidates_hold_what_will_be_split_next_and_the_first_surely(seed):
    rng = np.random.default_rng(seed)
    root, n_leaves = tree(rng, 10_000, 7), int(rng.integers(2, 30))
    wanted = {id(leaf) for leaf in one_by_one(root, n_leaves)[0]}
    partly = known(root, rng, 0.7)
    _, _, candidates = replayed(partly, n_leaves)
    assert all(leaf.sides is None for leaf in candidates)
    if candidates:
        assert id(candidates[0].whole) in wanted
    of_candidates = {id(leaf.whole) for leaf in candidates}
    open_leaves, stack = set(), [partly]
    while stack:
        leaf = stack.pop()
        if leaf.sides is None:
            open_leaves.add(id(leaf.whole))
        else:
            stack += leaf.sides
    assert open_leaves & wanted <= of_candidates


@pytest.mark.skipif(not JIT, reason="too large to be interpreted")
def test_a_tree_of_31_leaves_takes_few_rounds_and_little_is_sent():
    train = make_queries(400, n_features=20, seed=3)
    model = ltr.LambdaMART(n_trees=6, n_leaves=31, min_docs_in_leaf=3, feature_share=1.0, stop_on=None)
    exchanged = []
    found = model.fit_shards(asking(parts_of(model, train, 2), exchanged))
    assert found.digest == model.fit(train).digest
    histogram = 8 * 20 * 256
    assert len(exchanged) / 6 < 30
    assert sum(exchanged) / 6 < 31 / 3 * histogram
