"""Features as users give them: frames by name, arrays of any order in memory, and what holds no numbers."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ltr
from ltr.linear.linear_ranker import standardised
from ltr.nets.lambdarank import _scaling, _standardised
from ltr.rankers.base import digest_of
from ltr.rankers.features import blocks_of
from tests.conftest import make_queries


def test_frames_are_read_by_feature_name():
    queries = make_queries(20)
    model = ltr.LeastSquares().fit(queries)
    frame = pl.DataFrame(queries.features, schema=list(queries.names))
    assert np.array_equal(model.predict(frame.select(reversed(frame.columns))), model.predict(queries.features))
    with pytest.raises(ValueError, match="features missing in the data: f2"):
        model.predict(frame.drop("f2"))
    with pytest.raises(ValueError, match="features: column 'f2' holds no numbers"):
        model.predict(frame.with_columns(f2=pl.lit("shop")))


def test_what_holds_no_rows_or_no_numbers_is_told_as_the_estimator_tells_it():
    model = ltr.LeastSquares().fit(make_queries(10))
    frame = pl.DataFrame(make_queries(5).features, schema=list(model.names))
    with pytest.raises(ValueError, match=r"a LazyFrame holds no rows yet; collect\(\) it first"):
        model.predict(frame.lazy())
    with pytest.raises(ValueError, match=r"a Table of Arrow; give polars\.from_arrow"):
        model.predict(frame.to_arrow())
    for text in (np.array([["1.5", "0", "1", "2"]], object), np.array([[10**400, 0, 1, 2]], object)):
        with pytest.raises(ValueError, match=r"expected numbers \[documents, 4\]"):
            model.predict(text)
        with pytest.raises(ValueError, match=r"features: .* is not an array of numbers"):
            ltr.Queries(text, [1], [0, 1])
    numbered = frame.to_pandas().set_axis(range(4), axis=1)
    assert np.array_equal(model.predict(numbered), model.predict(frame))
    with pytest.raises(ValueError, match="X: column 2 holds categories, which are known by the name of their column"):
        model.predict(numbered.astype({2: "category"}))


def test_categories_of_numbered_columns_are_not_taken_for_numbers():
    """By the names of text that its columns had, the same frame is learned from by sets of categories."""
    frame = pd.DataFrame({0: [0.5, 1.0, 2.0, 0.0] * 5, 1: pd.Categorical([3, 1, 2, 1] * 5)})
    labels, sizes = [0, 1, 2, 0] * 5, [4] * 5
    for read in (
        lambda table: ltr.queries_from(table, labels, group=sizes),
        lambda table: on_categories().fit(table, labels, group=sizes),
    ):
        with pytest.raises(ValueError, match="X: column 1 holds categories"):
            read(frame)
        read(frame.set_axis(["a", "b"], axis=1))
    assert on_categories().fit(frame.astype({1: int}), labels, group=sizes).predict(frame.astype({1: int})).shape == (20,)


def on_categories():
    return ltr.Estimator(ltr.LambdaMART(n_trees=1, min_docs_in_leaf=1))


def test_arrays_of_another_shape_or_order_in_memory():
    """The shape is part of the digest, the order is not."""
    square = np.arange(4.0).reshape(2, 2)
    assert digest_of("kind", {"a": square}) != digest_of("kind", {"a": square.ravel()})
    assert digest_of("kind", {"a": square}) == digest_of("kind", {"a": np.asfortranarray(square)})


@pytest.mark.parametrize("n_features", [0, 1, 2, 16, 17, 33, 136])
def test_blocks_are_all_features_and_none_stands_alone(n_features):
    blocks = [range(n_features)[block] for block in blocks_of(n_features)]
    assert [k for block in blocks for k in block] == list(range(n_features))
    assert n_features <= 1 or min(map(len, blocks)) > 1
    assert max(map(len, blocks)) < 32


@pytest.mark.parametrize("n_features", [1, 5, 33])
def test_what_is_standardised_in_blocks_has_the_bits_of_what_is_at_once(n_features):
    rng = np.random.default_rng(n_features)
    assert [one.shape for one in standardised(np.empty((5, 0), np.float32))] == [(5, 0), (0,)]
    features = (rng.normal(size=(9000, n_features)) * 10 ** rng.uniform(-3, 4, n_features)).astype(np.float32)
    mean, deviation = features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)
    linear, scale = standardised(features)
    assert np.array_equal(scale, 1 / deviation)
    assert np.array_equal(linear, ((features - mean) * scale).astype(np.float32))
    features[rng.random(features.shape) < 0.1] = np.nan
    present = ~np.isnan(features)
    mean = np.where(present, features, 0).sum(axis=0, dtype=np.float64) / present.sum(axis=0)
    deviation = np.sqrt((np.where(present, features - mean, 0.0) ** 2).sum(axis=0) / present.sum(axis=0))
    scaling = _scaling(features)
    assert np.array_equal(scaling, [mean, deviation])
    assert np.array_equal(_standardised(features, scaling), np.nan_to_num(((features - mean) / deviation).astype(np.float32)))


def test_standardising_takes_no_more_memory_than_what_comes_of_it():
    """Four times as much was taken, in float64."""
    features = np.random.default_rng(0).normal(size=(40_000, 64)).astype(np.float32)
    scaling, peaks = _scaling(features), []
    for standardise in (lambda: _scaling(features), lambda: _standardised(features, scaling), lambda: standardised(features)):
        tracemalloc.start()
        try:
            standardise()
            peaks.append(tracemalloc.get_traced_memory()[1] / features.nbytes)
        finally:
            tracemalloc.stop()
    assert max(peaks) < 1.5, peaks
