"""Click models by name, and logs that do not bear them."""

import numpy as np
import pytest

from ltr.clicks.models import MODELS, NEED_TIES, fit
from ltr.clicks.pages import Pages
from tests.click_logs import layout, users
from tests.conftest import JIT

many = pytest.mark.skipif(not JIT, reason="thousands of pages are for compiled code")

FIXED = Pages(
    np.arange(5) * 2,
    np.array([0, 1] * 2 + [2, 3] * 2),
    np.array([1, 2] * 4),
    np.array([1, 0, 0, 1, 1, 0, 0, 1]),
    np.array([0, 0, 1, 1]),
)
"""One ranking a query."""


@pytest.mark.parametrize("name", MODELS)
def test_one_ranking_a_query_tells_no_position_from_its_document(name):
    if name in NEED_TIES:
        with pytest.raises(ValueError, match=f"{name}: no two ranks are tied .* position bias cannot be separated from relevance"):
            fit(FIXED, name)
    else:
        assert fit(FIXED, name).name == name


def test_ranks_that_only_the_user_browsing_model_cannot_tie():
    """It was refused as if no two ranks were tied, which pbm's were; and without its name."""
    pages = Pages(np.array([0, 2, 4]), np.array([0, 1, 1, 0]), np.array([1, 2] * 2), np.array([1, 1, 0, 0]), np.zeros(2, int))
    assert fit(pages, "pbm").name == "pbm"
    with pytest.raises(ValueError, match="ubm: no two ranks, each with the rank of the last click above it, are tied"):
        fit(pages, "ubm")


def test_unknown_names_and_pages_without_a_click():
    with pytest.raises(ValueError, match="'pmb' is unknown; choose from: rctr, dctr, cascade, pbm"):
        fit(FIXED, "pmb")
    with pytest.raises(ValueError, match="no click in the log"):
        fit(FIXED.clicked(np.zeros(8, bool)), "dctr")


def test_one_document_one_page():
    page = Pages(np.array([0, 1]), np.array([0]), np.array([1]), np.array([1]), np.array([0]))
    for name in set(MODELS) - set(NEED_TIES):
        assert 0 < fit(page, name).attraction[0] <= 1


@many
@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_fitted_to_users_of_every_other(name):
    pages = layout(8, 8, 800, 5)
    for other in MODELS:
        model = fit(users(other, pages).simulate(pages, 3), name)
        given, expected = model.given(pages), model.expected(pages)
        assert ((given >= 0) & (given <= 1) & (expected >= 0) & (expected <= 1)).all()
