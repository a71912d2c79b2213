"""Data sets on disk."""

import numpy as np

from tasks.store.datasets import about_queries, keep_queries, open_queries
from tests.conftest import make_queries


def test_stored_queries_come_back(workplace):
    queries = make_queries(10)
    name = keep_queries(queries)
    opened = open_queries(name)
    assert opened.digest == queries.digest == about_queries(name).content
    assert isinstance(opened.features.base, np.memmap) or isinstance(opened.features, np.memmap)
    opened.features[0, 0] = 99
    assert open_queries(name).digest == queries.digest
