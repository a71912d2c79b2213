"""A query is known again by its id or by its documents, whatever the order of these."""

from dataclasses import replace

import numpy as np

from ltr.data.queries import canonical, in_order
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


def test_documents_that_are_all_alike_tell_no_query_apart():
    queries = make_queries(6, largest=4, seed=1)
    flat = replace(queries, features=np.zeros_like(queries.features))
    assert np.array_equal(marks(flat), np.repeat(flat.keys[:, None], 2, axis=1))
    changed = replace(queries, labels=queries.labels[::-1].copy())
    assert np.array_equal(marks(changed), marks(queries)), "judged again it is the same query"
