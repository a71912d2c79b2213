"""A query is known again by its id or by its documents, whatever the order of these."""

from dataclasses import replace

import numpy as np

from ltr.data.queries import canonical, concatenate, in_order, select
from tasks.data.known_again import marks
from tests.conftest import make_queries


def test_documents_are_known_under_other_ids_and_in_another_order():
    queries = make_queries(40, largest=6, seed=2)
    renamed = canonical(replace(queries, keys=queries.keys[::-1] ^ np.uint64(1)))
    own, other = marks(queries), marks(renamed)
    assert own[:, 0].tolist() == queries.keys.tolist()
    assert not np.isin(other[:, 0], own).any()
    several = np.diff(renamed.offsets) > 1
    assert np.isin(other[:, 1], own).tolist() == several.tolist()
    turned = in_order(renamed, renamed.names[::-1])
    assert not np.isin(marks(turned)[several, 1], own).any(), "the features as the model reads them, in its order"
    assert np.isin(marks(in_order(turned, queries.names))[several, 1], own).all()


def test_features_that_queries_share_tell_none_apart():
    """As pages of one query do, in one set or in two."""
    queries = make_queries(60, largest=6, seed=4)
    again = canonical(replace(queries, keys=queries.keys ^ np.uint64(1)))
    for sets in ((concatenate([queries, again]),), (queries, again)):
        keys = np.concatenate([one.keys for one in sets])
        assert np.array_equal(marks(*sets), np.repeat(keys[:, None], 2, axis=1))


def test_two_of_many_queries_that_are_alike_tell_nothing_of_the_others():
    queries = make_queries(200, largest=6, seed=4)
    queries = canonical(replace(queries, keys=queries.keys ^ np.uint64(2)))
    one = int(np.argmax(np.diff(queries.offsets) > 1))
    twin = select(queries, np.array([one]))
    twin = replace(twin, keys=twin.keys ^ np.uint64(1))
    found, alone = marks(queries, twin)[:, 1], marks(queries)[:, 1]
    assert (found[one], found[-1]) == (queries.keys[one], twin.keys[0])
    assert np.array_equal(np.delete(found[:-1], one), np.delete(alone, one))
    assert (alone != queries.keys).mean() > 0.5


def test_documents_that_are_all_alike_tell_no_query_apart():
    queries = make_queries(6, largest=4, seed=1)
    flat = replace(queries, features=np.zeros_like(queries.features))
    assert np.array_equal(marks(flat), np.repeat(flat.keys[:, None], 2, axis=1))
    changed = replace(queries, labels=queries.labels[::-1].copy())
    assert np.array_equal(marks(changed), marks(queries)), "judged again it is the same query"
