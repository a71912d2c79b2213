"""Sparse features against the same ones made dense."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix

import ltr
from ltr.data.digests import row_digests
from ltr.data.queries import canonical, concatenate, in_order, keep, select
from ltr.data.sparse import dense_blocks, dense_columns, sparse_features


def drawn(n_documents=53, n_features=40, seed=0):
    """Dense features of which most are 0, some missing."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_documents, n_features)).astype(np.float32)
    features[rng.random(features.shape) < 0.8] = 0
    features[rng.random(features.shape) < 0.02] = np.nan
    return features


def pair(features, **more):
    labels, offsets = np.arange(len(features)) % 3.0, np.array([0, 5, 6, 30, len(features)])
    return [ltr.Queries(given, labels, offsets, **more) for given in (features, csr_array(features))]


@pytest.mark.parametrize("form", [csr_array, csc_array, coo_array, csr_matrix])
def test_every_form_is_read_and_stays_as_it_was(form):
    features = drawn()
    given = form(features.astype(np.float64))
    stored = given.nnz
    rows = sparse_features(given)
    assert rows.dtype == np.float32
    assert rows.has_canonical_format
    assert rows.data.all()
    assert np.array_equal(rows.toarray(), features, equal_nan=True)
    assert given.nnz == stored
    assert given.dtype == np.float64


def test_values_of_one_place_are_summed_and_zeros_left_out():
    given = csr_array((np.array([1.0, 2, 0, 3, -3]), np.array([2, 2, 0, 1, 1]), np.array([0, 3, 5])), shape=(2, 3))
    rows = sparse_features(given)
    assert rows.toarray().tolist() == [[0, 0, 3], [0, 0, 0]]
    assert rows.nnz == 1


@pytest.mark.parametrize("n_documents", [1, 30, 53])
def test_queries_of_sparse_features_have_the_digest_of_dense_ones(n_documents):
    features = drawn(n_documents)
    whole = np.array([0, n_documents])
    dense, sparse = (ltr.Queries(given, np.zeros(n_documents), whole) for given in (features, csr_array(features)))
    assert np.array_equal(dense.row_digests, sparse.row_digests)
    assert np.array_equal(dense.keys, sparse.keys)
    assert dense.digest == sparse.digest
    features[features == 0] = -0.0
    assert np.array_equal(row_digests(features), sparse.row_digests)


def test_queries_are_chosen_joined_and_put_in_order_alike():
    (dense, sparse), (narrow, narrow_sparse) = pair(drawn()), pair(drawn(40, 33, seed=1))
    chosen, kept, names = np.array([2, 0]), np.arange(dense.n_documents) % 2 == 0, dense.names[::-1]
    for make in (
        canonical, lambda queries: select(queries, chosen), lambda queries: keep(queries, kept), lambda queries: in_order(queries, names),
    ):  # fmt: skip
        assert make(sparse).digest == make(dense).digest
    joined = concatenate([sparse, narrow_sparse])
    assert joined.digest == concatenate([dense, narrow]).digest
    assert joined.n_features == 40


def test_columns_and_blocks_of_rows_are_made_dense(monkeypatch):
    features = drawn()
    rows = sparse_features(csr_array(features))
    for chosen in ([], [0], [3, 17, 39], [*range(40)]):
        assert np.array_equal(dense_columns(rows, np.array(chosen, np.int64)), features[:, chosen], equal_nan=True)
    monkeypatch.setattr("ltr.data.sparse.ROWS", 20)
    blocks = list(dense_blocks(rows))
    assert [len(block) for block in blocks] == [20, 20, 13]
    assert np.array_equal(np.concatenate(blocks), features, equal_nan=True)


def test_what_are_no_numbers_is_refused():
    with pytest.raises(ValueError, match=r"features: a sparse array of complex128 and shape \(2, 2\), expected numbers"):
        ltr.Queries(csr_array(np.eye(2, dtype=complex)), np.zeros(2), np.array([0, 2]))
    with pytest.raises(ValueError, match=r"features: shape \(3, 3\), but there are 2 labels"):
        ltr.Queries(csr_array(np.eye(3)), np.zeros(2), np.array([0, 2]))


def test_numbers_that_float32_does_not_reach_are_told_with_their_place():
    with pytest.raises(ValueError, match=r"features: 1e\+39 at \[1, 2\]; features must be float32 numbers, up to 3.4e38"):
        ltr.Queries(csr_array(np.array([[0, 1, 0], [0, 2, 1e39]])), [0, 1], [0, 2])
    assert np.isfinite(sparse_features(csr_array(np.array([[3.4028235e38]]))).data).all(), "which is the largest of them"


@pytest.mark.parametrize("form", [csr_array, csc_array, csr_matrix])
@pytest.mark.parametrize("damage", ["outside", "below 0", "backwards"])
def test_values_outside_the_array_are_refused(form, damage):
    stored = [np.array(part) for part in ((1.0, 2.0, 3.0), (0, 1, 0), (0, 1, 2, 3))]
    if damage == "backwards":
        stored[2][1] = 3
    else:
        stored[1][1] = 10**6 if damage == "outside" else -(10**6)
    damaged = form(tuple(stored), shape=(3, 3))
    with pytest.raises(ValueError, match=r"a sparse array of shape \(3, 3\) that is damaged: "):
        ltr.Queries(damaged, np.zeros(3), np.array([0, 3]))
    with pytest.raises(ValueError, match="that is damaged: "):
        ltr.queries_from(damaged, np.zeros(3), group=[3])
    with pytest.raises(ValueError, match="that is damaged: "):
        ltr.Estimator(ltr.LeastSquares()).fit(damaged, np.zeros(3), group=[3])


def test_values_of_one_place_are_summed_as_they_were_given():
    given = csr_array((np.array([1e8, 1.0, -1e8]), np.array([0, 0, 0]), np.array([0, 3])), shape=(1, 1))
    assert sparse_features(given).toarray().tolist() == given.toarray().tolist() == [[1.0]]
    assert given.data.tolist() == [1e8, 1.0, -1e8], "and what was given is as it was"


def test_whole_numbers_that_lose_digits_are_told():
    ids = csr_array(np.array([[20_000_001, 1], [0, 20_000_003]]))
    with pytest.warns(UserWarning, match=r"features: whole numbers above 16,777,216 lose their last digits in float32, 2 here"):
        ltr.Queries(ids, [1, 0], [0, 2])
