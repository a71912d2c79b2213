"""Pages: what is refused, and selections of them."""

import numpy as np
import pytest

from ltr.clicks.pages import Pages

GOOD = {
    "offsets": np.array([0, 2, 5]), "pair": np.array([0, 1, 2, 1, 0]), "rank": np.array([1, 2, 1, 3, 4]),
    "click": np.array([0, 1, 0, 0, 1]), "query": np.array([0, 0, 1]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rank": np.array([1, 2, 1, 3, 3])}, "rank: 3 follows 3 in one page"),
        ({"rank": np.array([0, 2, 1, 3, 4])}, "rank: 0, expected 1 to 100"),
        ({"pair": np.array([0, 1, 3, 1, 0])}, "pair: 3, expected 0 to 2"),
        ({"offsets": np.array([0, 0, 5])}, "offsets: must rise from 0 to the 5 results"),
        ({"offsets": np.array([0, 2, 4])}, "offsets: must rise"),
        ({"click": np.array([0, 1])}, r"click: shape \(2,\), but pair has 5 results"),
        ({"query": np.array([0.0, 1.0, 2.0])}, "query: whole numbers"),
        ({"query": np.array([0, -1, 0])}, "query: -1"),
    ],
)
def test_what_does_not_fit_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        Pages(**{**GOOD, **wrong})


def test_sizes_and_selection():
    pages = Pages(**GOOD)
    assert (pages.n_pages, pages.n_ranks, pages.n_queries) == (2, 4, 2)
    assert pages.of_page().tolist() == [0, 0, 1, 1, 1]
    second = pages.select(np.array([False, True]))
    assert (second.offsets.tolist(), second.pair.tolist(), second.click.tolist()) == ([0, 3], [2, 1, 0], [False, False, True])
    with pytest.raises(ValueError, match="no page is left"):
        pages.select(np.zeros(2, bool))
