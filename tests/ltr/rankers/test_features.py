"""Features as users give them: frames by name, arrays of any order in memory, and what holds no numbers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ltr
from ltr.rankers.base import digest_of
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
