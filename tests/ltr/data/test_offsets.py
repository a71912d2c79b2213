"""Offsets of groups from their sizes, and back to a group of each row."""

import numpy as np

from ltr.data.offsets import group_of_rows, offsets_from_sizes
from tests.conftest import make_queries


def test_offsets_and_groups_of_rows_say_the_same():
    sizes = np.random.default_rng(1).integers(0, 5, 50)
    offsets = offsets_from_sizes(sizes)
    assert (offsets.dtype, offsets[0], offsets[-1], len(offsets)) == (np.int64, 0, sizes.sum(), 51)
    assert np.array_equal(np.bincount(group_of_rows(offsets), minlength=50), sizes)
    assert group_of_rows(offsets).tolist() == [group for group, size in enumerate(sizes) for _ in range(size)]


def test_kinds_of_sizes_that_numpy_s_sums_would_make_floats_or_overflow_in():
    for sizes in ([200] * 3, np.array([200] * 3, np.uint8), np.array([200] * 3, np.uint64), np.ones(600, np.bool_)):
        offsets = offsets_from_sizes(sizes)
        assert (offsets.dtype, offsets[-1]) == (np.int64, 600)
    assert offsets_from_sizes([]).tolist() == [0]


def test_of_query_is_the_query_whose_rows_a_document_is_among():
    queries = make_queries(20)
    for q, (first, last) in enumerate(zip(queries.offsets[:-1], queries.offsets[1:], strict=True)):
        assert set(queries.of_query[first:last].tolist()) <= {q}
    assert len(queries.of_query) == queries.n_documents
