"""Features as users give them: frames by name, arrays of any order in memory, and what holds no numbers."""

import numpy as np
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


def test_arrays_of_another_shape_or_order_in_memory():
    """The shape is part of the digest, the order is not."""
    square = np.arange(4.0).reshape(2, 2)
    assert digest_of("kind", {"a": square}) != digest_of("kind", {"a": square.ravel()})
    assert digest_of("kind", {"a": square}) == digest_of("kind", {"a": np.asfortranarray(square)})
