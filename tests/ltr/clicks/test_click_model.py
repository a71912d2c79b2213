"""What all click models share: settings, means of queries, uncertainty."""

import numpy as np
import pytest

from ltr.clicks.click_model import Settings, query_means
from ltr.clicks.models import fit
from tests.click_logs import layout, users


@pytest.mark.parametrize("wrong", [{"prior": 0.0}, {"prior": float("inf")}, {"rounds": 0}])
def test_settings_out_of_range(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Settings(**wrong)


def test_pairs_are_drawn_to_their_query_and_queries_to_the_log():
    clicks, looks, query = np.array([8.0, 0.0, 1.0]), np.array([10.0, 0.0, 10.0]), np.array([0, 0, 1])
    of_log = (9 + 0.5) / (20 + 1)
    assert query_means(clicks, looks, query, 2.0) == pytest.approx(
        [(8 + 2 * of_log) / 12, (8 + 2 * of_log) / 12, (1 + 2 * of_log) / 12]
    )


def test_deviations_are_as_large_as_errors_are():
    pages = layout(100, 12, 10_000, 6)
    for name in ("dctr", "pbm", "dcm"):
        truth = users(name, pages)
        found = fit(truth.simulate(pages, 1), name)
        shown = np.bincount(pages.pair, minlength=len(pages.query)) > 0
        scores = ((found.attraction - truth.attraction) / found.deviation)[shown]
        assert scores.std() == pytest.approx(1.0, abs=0.12)
        assert abs(scores.mean()) < 0.15


def test_examination_is_the_mean_look_at_each_rank():
    pages = layout(5, 8, 2000, 4)
    truth = users("dcm", pages)
    alpha = truth.attraction[pages.pair].reshape(-1, 4)
    reach = np.cumprod(1 - alpha + alpha * truth.after_rank, axis=1)[:, :-1]
    assert truth.examination(pages) == pytest.approx([1.0, *reach.mean(axis=0)])
