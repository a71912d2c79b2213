"""Forms of a system's scores, worked out by hand."""

import numpy as np
import pytest

from ltr.data.runs import column_of, formed, listing, runs_with

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


def test_what_says_that_a_run_has_a_document():
    names = ("bm25", "rank of bm25", "borda of bm25", "dense", "min-max of dense", "z-score of other")
    listed = ["bm25", "rank of bm25", "rank of bm25", "dense", "dense", "z-score of other"]
    assert [listing(name, names) for name in names] == listed


@pytest.mark.parametrize("value", [0.1, 12.3, 1e-300, 3e15])
def test_equal_scores_are_at_their_mean_and_at_the_top_of_their_range(value):
    """The mean of some equal numbers is another number by a rounding: z-scores of 1 and -1 came of that."""
    for n in range(1, 40):
        offsets = np.array([0, n, n + 2])
        scores = np.append(np.full(n, value), [2.0, 1.0])
        assert formed("z-score", scores, offsets).tolist() == [0.0] * n + [1.0, -1.0]
        assert formed("min-max", scores, offsets).tolist() == [1.0] * n + [1.0, 0.0]
