"""Forms of a system's scores, worked out by hand."""

import numpy as np
import pytest

from ltr.data.runs import column_of, formed, runs_with

SCORES, OFFSETS = np.array([10.0, 7.0, 4.0, 3.0, 3.0]), np.array([0, 3, 5])


@pytest.mark.parametrize(
    ("form", "values"),
    [
        ("score", [10, 7, 4, 3, 3]),
        ("rank", [1, 2, 3, 1, 2]),
        ("min-max", [1, 0.5, 0, 1, 1]),
        ("borda", [1, 2 / 3, 1 / 3, 1, 1 / 2]),
        ("z-score", [3 / 6**0.5, 0, -3 / 6**0.5, 0, 0]),
    ],
)
def test_forms(form, values):
    assert formed(form, SCORES, OFFSETS) == pytest.approx(values)


def test_names():
    assert (column_of("score", "bm25"), column_of("rank", "bm25")) == ("bm25", "rank of bm25")
    assert runs_with("rank", ("bm25", "rank of bm25", "rank of the dense", "borda of bm25")) == ("bm25", "the dense")
