"""Gains and discounts: each by its formula."""

import math

import numpy as np
import pytest

import ltr
from ltr.metrics import gains
from ltr.metrics.conventions import Conventions

OURS = Conventions()
LABELS = np.array([0.0, 1.0, 2.0, 4.0])


@pytest.mark.parametrize(
    ("gain", "rules", "labels", "want"),
    [
        (gains.graded, {}, LABELS, [0, 1, 3, 15]),
        (gains.graded, {"gain": "linear"}, LABELS, [0, 1, 2, 4]),
        (gains.plain, {}, LABELS, [0, 1, 2, 4]),
        (gains.clicked, {}, LABELS / 4, [0, 1, 3, 15]),
        (gains.binary, {}, LABELS, [0, 0, 1, 1]),
        (gains.binary, {"threshold": 1}, LABELS, [0, 1, 1, 1]),
        (gains.stop_probability, {}, LABELS, [0, 1 / 16, 3 / 16, 15 / 16]),
        (gains.stop_probability, {"max_label": 5}, LABELS, [0, 1 / 32, 3 / 32, 15 / 32]),
    ],
)
def test_gains(gain, rules, labels, want):
    found = gain(labels, Conventions(**rules))
    assert found.dtype == np.float64
    assert found == pytest.approx(want)


@pytest.mark.parametrize(
    ("discount", "want"),
    [
        (gains.log_discount, lambda r: 1 / math.log2(1 + r) if r <= 3 else 0),
        (gains.jarvelin_kekalainen_discount, lambda r: (1 if r < 3 else 1 / math.log2(r)) if r <= 3 else 0),
        (gains.share_of_cutoff, lambda r: 1 / 3 if r <= 3 else 0),
        (gains.first_rank, lambda r: 1 if r == 1 else 0),
        (gains.reciprocal_rank_discount, lambda r: 1 / r if r <= 3 else 0),
        (gains.relevant_counted, lambda r: r),
    ],
)
def test_discounts_of_five_ranks_down_to_the_third(discount, want):
    found = discount(5, 3, OURS)
    assert found.dtype == np.float64
    assert found == pytest.approx([want(r) for r in range(1, 6)])


def test_relevant_documents_are_counted_up_to_the_cutoff_where_the_rules_say_so():
    assert gains.relevant_counted(5, 3, Conventions(ap_base="cutoff")).tolist() == [1, 2, 3, 3, 3]
    assert gains.ranks_to(3).tolist() == [1, 2, 3]


def test_labels_outside_a_scale_are_refused():
    for wrong in (-0.1, 1.5):
        with pytest.raises(ValueError, match=rf"click labels are shares in \[0, 1\]; there is {wrong:g}"):
            gains.clicked(np.array([0.5, wrong]), OURS)
    with pytest.raises(ValueError, match="label 5 is above max_label 4"):
        gains.stop_probability(np.array([5.0]), OURS)


def test_a_gain_that_a_sum_would_lose_is_refused():
    """Its NDCG would be undefined, and the query left out without a word."""
    linear = Conventions(gain="linear")
    with pytest.raises(ValueError, match=r"label 1\.5e\+308: gains up to 1e\+300 can be summed"):
        ltr.evaluate([1e308, 0, 1.5e308, 1e308], [4, 3, 2, 1], [0, 4], ["ndcg"], linear)
    assert np.isfinite(ltr.evaluate([1e300, 0, 1e299, 1e300], [4, 3, 2, 1], [0, 4], ["ndcg"], linear)["ndcg"]).all()
