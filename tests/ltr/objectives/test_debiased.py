"""What nets are given: the kernel of a single page says what the objective says of all."""

import numpy as np
import pytest

import ltr
from ltr.data.queries import Queries
from ltr.nets.network import Weights
from ltr.objectives.debiased import debiased
from ltr.objectives.dual import DualObjective
from ltr.objectives.lambda_objective import Objective
from ltr.objectives.unbiased import Unbiased

STARTS = {"ipw": (1, 1), "pairwise": (1, 2), "additive": (1, 1), "dla": (1, 1)}


@pytest.mark.parametrize("kind", STARTS)
def test_a_page_moves_a_net_along_the_gradient_of_the_objective(kind):
    """A net whose weights are the scores of a page: features are the identity."""
    rng = np.random.default_rng(3)
    clicks, ranks = np.array([0, 1, 0, 1, 1, 0.0, np.nan]), np.array([4, 2, 1, 6, 3, 5, np.nan])
    page = Queries(np.eye(7), clicks, np.array([0, 7]), sources={"position": ranks})
    begun, how = rng.uniform(0.2, 1.0, (1, *STARTS[kind][1:], 6)), Unbiased(kind)
    objective = debiased(Objective(page, sigma=1.3), how, ltr.Conventions(), 0.1, begun)
    before = Weights(rng.normal(size=(1, 7)), np.zeros(1), np.ones(1), 0)
    after = ltr.LambdaRank().epoch(before, page.features, page, objective, 0, 0.5, np.zeros(1, np.int64))
    gradient, _ = objective(before.inner[0].astype(np.float32).astype(np.float64), 0)
    assert np.abs(gradient).max() > 0.01
    assert gradient[6] == 0
    np.testing.assert_allclose(after.inner[0] - before.inner[0], 0.5 * gradient, rtol=1e-5, atol=1e-7)


def test_each_way_is_given_the_step_and_sigma_that_it_is_asked_for():
    clicks, ranks = np.array([0, 1, 0, 1.0]), np.array([2.0, 1, 4, 3])
    page = Queries(np.eye(4), clicks, np.array([0, 4]), sources={"position": ranks})
    plain, scores, begun = Objective(page, sigma=1.3), np.array([0.3, -0.2, 0.1, 0.0]), np.array([[[1.0, 0.7, 0.5, 0.4]]])
    moves = []
    for step in (0.1, 0.3):
        additive = debiased(plain, Unbiased("additive"), ltr.Conventions(), step, begun)
        additive(scores, 0)
        moves.append(additive.biases[1] - additive.biases[0])
    assert np.abs(moves[0]).max() > 1e-4
    assert moves[1] == pytest.approx(3 * moves[0])
    dual = debiased(plain, Unbiased("dla"), ltr.Conventions(), 0.1, begun)
    expected = DualObjective(page, plain.terms[0], Unbiased("dla"), 1.3, begun)
    for own, wanted in zip(dual(scores, 0), expected(scores, 0), strict=True):
        assert np.array_equal(own, wanted)
    assert not np.array_equal(dual(scores, 0)[0], DualObjective(page, plain.terms[0], Unbiased("dla"), 1.0, begun)(scores, 0)[0])
