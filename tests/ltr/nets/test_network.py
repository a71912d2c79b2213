"""The net by itself: its scores by numpy, its step by differences, its weights as one vector."""

import numpy as np
import pytest

import ltr
from ltr.nets.network import BLOCK, GROUPS, Weights, backward_all, forward_all, random_weights, surface_of


def by_numpy(weights, features):
    inner = features.astype(float) @ weights.inner.T
    return (np.tanh(inner + weights.bias) if weights.hidden else inner) @ weights.outer


@pytest.mark.parametrize("hidden", [0, 1, 3])
@pytest.mark.parametrize("n_documents", [1, 3, 4, 600])
def test_scores_are_those_of_the_formula(hidden, n_documents):
    rng = np.random.default_rng(hidden)
    weights = random_weights(5, hidden, rng, size=2.0)
    features = rng.normal(size=(n_documents, 5)).astype(np.float32)
    assert weights.scores(features) == pytest.approx(by_numpy(weights, features), abs=1e-5)
    scores, units = np.empty(n_documents), np.empty((max(hidden, 1), n_documents))
    forward_all(features, weights.inner, weights.bias, weights.outer, hidden > 0, units, scores)
    assert np.array_equal(scores, weights.scores(features))
    assert weights.outer @ units == pytest.approx(scores)


@pytest.mark.parametrize("hidden", [0, 3])
def test_an_update_is_rate_times_gradient_times_the_slope_of_the_scores(hidden):
    rng = np.random.default_rng(0)
    features, gradient, h = rng.normal(size=(7, 4)).astype(np.float32), rng.normal(size=7), 1e-2
    weights = random_weights(4, hidden, rng)
    start = weights.flat
    slope = np.empty(len(start))
    for k in range(len(start)):
        step = np.zeros(len(start))
        step[k] = h
        slope[k] = (
            gradient @ (weights.moved(start + step).scores(features) - weights.moved(start - step).scores(features)) / (2 * h)
        )
    moved = weights.moved(start)
    units = np.tanh(features @ moved.inner.T + moved.bias) if hidden else features @ moved.inner.T.astype(np.float64)
    units = np.ascontiguousarray(units.T, np.float64)
    backward_all(features, gradient, moved.inner, moved.bias, moved.outer, hidden > 0, units, 0.01)
    assert moved.flat - start == pytest.approx(0.01 * slope, abs=1e-5)


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize("hidden", [0, 3])
@pytest.mark.parametrize("n", [1, BLOCK + 3, BLOCK * GROUPS * 2 + 5])
def test_an_update_of_many_documents_is_their_sum_for_any_number_of_threads(n, hidden):
    rng = np.random.default_rng(n)
    features, gradient, weights = rng.normal(size=(n, 4)).astype(np.float32), rng.normal(size=n), random_weights(4, hidden, rng)
    units = features @ weights.inner.T + weights.bias
    units = np.ascontiguousarray((np.tanh(units) if hidden else units).T, np.float64)
    slopes = gradient * (weights.outer[:, None] * (1 - units**2)) if hidden else gradient[None]
    moved = []
    for threads in (1, None):
        with ltr.threads(threads):
            moved.append(one := weights.moved(weights.flat))
            backward_all(features, gradient, one.inner, one.bias, one.outer, hidden > 0, units, 0.5)
    assert np.array_equal(moved[0].flat, moved[1].flat)
    assert moved[0].inner - weights.inner == pytest.approx(0.5 * slopes @ features, abs=2e-3)
    if hidden:
        assert moved[0].bias - weights.bias == pytest.approx(0.5 * slopes.sum(axis=1))
        assert moved[0].outer - weights.outer == pytest.approx(0.5 * units @ gradient)


@pytest.mark.parametrize("hidden", [0, 3])
def test_weights_are_a_vector_and_back(hidden):
    weights = random_weights(4, hidden, np.random.default_rng(1))
    assert len(weights.flat) == (4 if hidden == 0 else 3 * 4 + 3 + 3)
    other = weights.moved(2 * weights.flat)
    assert np.array_equal(other.flat, 2 * weights.flat)
    assert other.inner == pytest.approx(2 * weights.inner)
    if hidden == 0:
        assert (other.bias.tolist(), other.outer.tolist()) == ([0.0], [1.0]), "a linear net has no others that are free"
    other.inner[:] = 0
    assert weights.inner.all(), "a copy"
    again = Weights.restored(weights.arrays, hidden)
    assert np.array_equal(again.flat, weights.flat)


def test_arrays_of_another_net_are_refused():
    arrays = random_weights(4, 3, np.random.default_rng(1)).arrays
    for hidden in (0, 2):
        with pytest.raises(ValueError, match=rf"weights of shapes \(3, 4\), \(3,\) and \(3,\) for {hidden} hidden units"):
            Weights.restored(arrays, hidden)


@pytest.mark.parametrize("hidden", [0, 1, 10])
def test_random_weights_spread_scores_as_told(hidden):
    rng = np.random.default_rng(2)
    features = rng.normal(size=(2000, 20)).astype(np.float32)
    for size in (0.1, 0.5):
        spread = np.mean([random_weights(20, hidden, rng, size).scores(features).std() for _ in range(200)])
        assert 0.4 * size < spread < 1.2 * size


@pytest.mark.parametrize("hidden", [0, 1, 3])
def test_its_surface_is_its_scores_at_moved_weights(hidden):
    rng = np.random.default_rng(3)
    weights, features = random_weights(5, hidden, rng, size=1.0), rng.normal(size=(300, 5)).astype(np.float32)
    surface = surface_of(weights, features)
    assert np.array_equal(surface.weights, weights.flat)
    alone = np.eye(len(weights.flat))  # turns one unit, or none where it is an outer weight
    directions, steps = (
        np.concatenate((rng.normal(size=(3, len(weights.flat))), alone, alone[:1] - alone[-5:-4])),
        np.array([0.0, 0.2, -0.7]),
    )
    for k, direction in enumerate(directions):
        for e, step in enumerate(steps):
            moved = weights.flat + step * direction
            found = surface.slopes(10, 290, moved[None])[0] if hidden == 0 else surface.scores(10, 290, directions, steps)[k, e]
            assert found == pytest.approx(by_numpy(weights.moved(moved), features)[10:290], abs=1e-5)


@pytest.mark.parametrize("hidden", [0, 3])
def test_a_document_has_one_score_wherever_it_stands(hidden):
    rng = np.random.default_rng(5)
    for n_features in (15, 16, 17, 31, 46, 64, 136):
        weights, features = random_weights(n_features, hidden, rng), rng.normal(size=(BLOCK + 7, n_features)).astype(np.float32)
        scores, order = weights.scores(features), rng.permutation(len(features))
        assert np.array_equal(weights.scores(features[order]), scores[order])
        assert [float(weights.scores(row[None])[0]) for row in features] == scores.tolist()
