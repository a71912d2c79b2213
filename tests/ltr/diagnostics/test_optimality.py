"""The certificate: its counts, its three verdicts, and its curves against plain evaluation."""

import numpy as np
import pytest

import ltr
from ltr.data.queries import canonical
from ltr.diagnostics import optimality
from ltr.diagnostics.optimality import COARSE, certify, n_directions, normalised, random_directions
from ltr.nets.network import random_weights, surface_of
from ltr.rankers.surface import Surface, linear_surface
from tests.conftest import JIT, make_queries

QUICK = {"epsilon": 0.1, "delta": 0.1}


def test_number_of_directions():
    assert n_directions(0.01, 0.01) == 459
    assert n_directions(0.1, 0.1) == 22
    with pytest.raises(ValueError, match="must lie in"):
        n_directions(0, 0.1)
    with pytest.raises(ValueError, match=r"epsilon 1e-300 and delta 0.1 would need 2.3e\+300 directions; the limit is 1,000,000"):
        n_directions(1e-300, 0.1)


def test_directions_are_unit_vectors():
    assert (random_directions(20, 7, 1) ** 2).sum(axis=1) == pytest.approx(np.ones(20))


@pytest.mark.parametrize("hidden", [0, 3])
@pytest.mark.parametrize("measure", ["ndcg", "map", "mrr", "ndcg_3"])
def test_curves_are_the_measure_at_the_moved_weights(hidden, measure):
    queries = make_queries(40, seed=3)
    weights = random_weights(4, hidden, np.random.default_rng(1))
    found = certify(surface_of(weights, queries.features), queries, measure, steps=(0.1, 0.5), relative=False, seed=9, **QUICK)
    directions = random_directions(22, len(weights.flat), 9)
    unit = weights if hidden else weights.moved(weights.flat / np.linalg.norm(weights.flat))
    for k in (0, 11, 21):
        for e, eta in enumerate((0.1, 0.5)):
            scores = unit.moved(unit.flat + eta * directions[k]).scores(queries.features)
            want = np.nanmean(ltr.evaluate(queries.labels, scores, queries.offsets, [measure])[measure])
            assert found.curves[k, e] == pytest.approx(want, abs=1e-9)
    start = np.nanmean(ltr.evaluate(queries.labels, weights.scores(queries.features), queries.offsets, [measure])[measure])
    assert found.value == pytest.approx(start, abs=1e-12)


def test_random_weights_are_not_an_optimum_and_the_bound_covers_the_share():
    queries = make_queries(100, seed=1)
    found = certify(surface_of(random_weights(4, 0, np.random.default_rng(5)), queries.features), queries, "ndcg", **QUICK)
    assert found.verdict == "not"
    assert found.rising / len(found.curves) < found.upper_bound <= 1


def test_the_true_direction_is_an_optimum():
    """Labels are a function of w·x: every move away loses."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(3000, 3)).astype(np.float32)
    labels = np.searchsorted([-1.0, 0.0, 1.0, 2.0], features[:, 0] - features[:, 1]).astype(float)
    queries = canonical(ltr.Queries(features, labels, np.arange(0, 3001, 15)))
    truth = random_weights(3, 0, rng).moved(np.array([1.0, -1.0, 0.0]))
    found = certify(surface_of(truth, queries.features), queries, "ndcg", steps=COARSE, **QUICK)
    assert found.verdict == "optimum"
    assert found.rising == 0
    assert found.upper_bound == pytest.approx(0.1, abs=0.01)
    assert found.norm == pytest.approx(1)


@pytest.mark.parametrize("relative", [True, False])
def test_the_verdict_on_a_linear_model_depends_on_its_rankings_alone(relative):
    """One net with equal rankings had 0 rising directions at weights × .001 and 60, 292, 396 at × 1, 10, 100."""
    queries = make_queries(60, seed=1)
    weights = random_weights(4, 0, np.random.default_rng(5))
    found = [
        certify(surface_of(weights.moved(scale * weights.flat), queries.features), queries, "ndcg", relative=relative, **QUICK)
        for scale in (0.001, 1, 10, 1024)
    ]
    assert {(one.verdict, one.rising) for one in found} == {(found[0].verdict, found[0].rising)}
    assert all(np.allclose(one.curves, found[0].curves) for one in found)


def test_a_surface_is_normalised_once():
    """Else a climb and the certificate of its place would look at weights that differ by a rounding."""
    queries = make_queries(5, seed=1)
    for seed in range(20):
        once = normalised(surface_of(random_weights(4, 0, np.random.default_rng(seed)), queries.features), queries.offsets)
        assert normalised(once, queries.offsets) is once


@pytest.mark.parametrize("relative", [True, False])
def test_documents_that_tie_tie_at_any_length_of_the_weights(relative):
    """Sums of whole numbers are equal often: divided by ‖w‖ they are so no more, and the value was that of another ranking."""
    rng = np.random.default_rng(0)
    features, labels = rng.integers(0, 4, (140, 3)).astype(np.float32), rng.integers(0, 5, 140).astype(float)
    queries = ltr.Queries(features, labels, np.arange(0, 141, 7))
    for whole in ([0.0, 3.0, 1.0], [1.0, 2.0, 3.0], [-1.0, 3.0, 2.0]):
        start = np.nanmean(ltr.evaluate(labels, features @ np.array(whole), queries.offsets, ["ndcg"])["ndcg"])
        found = [
            certify(linear_surface(times * np.array(whole), features), queries, "ndcg", relative=relative, **QUICK)
            for times in (1, 2, 1024)
        ]
        assert [one.value for one in found] == pytest.approx([start] * 3, abs=1e-12)
        assert [one.rising for one in found] == [found[0].rising] * 3
        assert [one.norm for one in found] == [1] * 3
        moved = features @ (np.array(whole) / np.linalg.norm(whole) + found[0].steps[0] * random_directions(22, 3, 1)[4])
        want = np.nanmean(ltr.evaluate(labels, moved, queries.offsets, ["ndcg"])["ndcg"])
        assert found[0].curves[4, 0] == pytest.approx(want, abs=1e-12)


def test_a_step_as_long_as_the_weights_counts():
    queries = make_queries(30, seed=1)
    for seed in range(10):
        weights = random_weights(4, 0, np.random.default_rng(seed))
        found = certify(surface_of(weights, queries.features), queries, "ndcg", steps=(1.0,), relative=False, **QUICK)
        assert found.why != "every step is longer than the weights (‖w‖ = 1)"


def test_steps_that_change_no_order_are_inconclusive_not_optimal():
    queries = make_queries(30, seed=1)
    weights = random_weights(4, 0, np.random.default_rng(5))
    found = certify(surface_of(weights, queries.features), queries, "ndcg", steps=(1e-12, 2e-12), **QUICK)
    assert (found.verdict, found.tie_share, found.rising, found.rising_or_tied) == ("inconclusive", 1.0, 0, 22)
    assert found.why == "100.0% of the evaluations are ties, so finding no improvement proves little"


def test_what_one_query_gains_and_another_loses_is_no_rise():
    """Their sums differ by a rounding; counted in fractions, the mean is the same. By roundings seed 1204 had 5 rising directions."""
    rules, steps = ltr.Conventions(threshold=1), (0.02, 0.05, 0.1)
    directions = random_directions(n_directions(0.3, 0.1), 2, 1)
    for seed in (1204, *range(30)):
        rng = np.random.default_rng(seed)
        features = rng.normal(size=(180, 2)).astype(np.float32)
        labels = (features[:, 0] + 0.3 * features[:, 1] + 0.3 * rng.normal(size=180) > 0.2) * 1.0
        queries = ltr.Queries(features, labels, np.arange(0, 181, 6))
        model = ltr.LeastSquares(conventions=rules).fit(queries)
        weights = model.weights / np.linalg.norm(model.weights)

        def relevant_on_top(weights, features=features, labels=labels):
            scores = (features.astype(float) @ weights).reshape(-1, 6)
            return int(np.take_along_axis(labels.reshape(-1, 6), np.argsort(-scores, kind="stable")[:, :3], axis=1).sum())

        found = certify(model.surface(features), queries, "p@3", rules, steps=steps, epsilon=0.3, delta=0.1)
        counts = np.array([[relevant_on_top(weights + step * way) for step in steps] for way in directions])
        here = relevant_on_top(weights)
        assert found.rising == (counts > here).any(axis=1).sum()
        assert found.tie_share == pytest.approx((counts == here).mean())


def test_steps_longer_than_the_weights_do_not_count():
    queries = make_queries(30, seed=1)
    small = random_weights(4, 3, np.random.default_rng(5))
    small = small.moved(0.05 * small.flat / np.linalg.norm(small.flat))
    surface = surface_of(small, queries.features)
    found = certify(surface, queries, "ndcg", relative=False, **QUICK)
    assert (found.verdict, found.rising) == ("inconclusive", 0)
    assert found.why == "every step is longer than the weights (‖w‖ = 0.05)"
    both = certify(surface, queries, "ndcg", steps=(0.02, 1.0), relative=False, **QUICK)
    near = certify(surface, queries, "ndcg", steps=(0.02,), relative=False, **QUICK)
    assert (both.rising, both.verdict) == (near.rising, near.verdict)
    zero = certify(surface_of(small.moved(0 * small.flat), queries.features), queries, "ndcg", **QUICK)
    assert (zero.verdict, zero.why) == ("inconclusive", "all weights are 0")


RULES = [
    {"ties": "stable"}, {"ties": "worst"}, {"ties": "docid"}, {"empty": "zero"}, {"empty": "one"}, {"unlabelled": "condensed"},
    {"short": "zero"}, {"short": "zero", "empty": "one"}, {"short": "size"}, {"gain": "linear"}, {"threshold": 3},
    {"ties": "worst", "unlabelled": "condensed", "empty": "zero"},
]  # fmt: skip


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("measure", ["ndcg_5", "map", "p_5"])
def test_the_certificate_obeys_the_conventions(rules, measure):
    """Coarse features tie, some labels are missing, of two queries all; some queries have fewer documents than the cutoff or nothing relevant."""
    queries = make_queries(40, seed=3)
    rng = np.random.default_rng(2)
    features, labels = np.round(queries.features).astype(np.float32), queries.labels.copy()
    labels[: queries.offsets[4]] = 0
    labels[rng.random(len(labels)) < 0.1] = np.nan
    labels[queries.offsets[5] : queries.offsets[7]] = np.nan
    names = np.array([b"d%d" % k for k in rng.permutation(len(labels))])
    data = canonical(ltr.Queries(features, labels, queries.offsets, documents=names))
    conventions = ltr.Conventions(**{"threshold": 1, **rules})
    unit = random_weights(4, 0, rng).moved(np.array([0.5, -0.5, 0.5, 0.5]))
    surface = surface_of(unit, data.features)
    found = certify(surface, data, measure, conventions, steps=(0.125,), one_at_a_time=True, **QUICK)
    for flat, got in ((unit.flat, found.value), (unit.flat + 0.125 * np.eye(4)[2], found.curves[2, 0])):
        scores = surface.slopes(0, data.n_documents, flat[None])[0]
        want = ltr.evaluate(data.labels, scores, data.offsets, [measure], conventions, data.position, data.documents)
        assert got == pytest.approx(np.nanmean(*want.values()), abs=1e-12)


@pytest.mark.skipif(not JIT, reason="600 directions are for compiled code")
@pytest.mark.parametrize("one_at_a_time", [False, True])
def test_the_share_that_is_done_is_told(one_at_a_time, monkeypatch):
    """Some queries at a time, and of single weights some weights."""
    monkeypatch.setattr(optimality, "_AT_ONCE", 500)
    queries, told = make_queries(200, seed=3), []
    surface = linear_surface(np.arange(1.0, 301.0), np.random.default_rng(1).random((queries.n_documents, 300)))
    options = {"one_at_a_time": one_at_a_time, "epsilon": 0.1, "delta": 0.1}
    certify(surface, queries, "ndcg", tick=told.append, **options)
    assert told == sorted(set(told))
    assert len(told) > 10
    assert told[0] < 0.2
    assert told[-1] == pytest.approx(1)


@pytest.mark.usefixtures("all_threads")
@pytest.mark.skipif(not JIT, reason="459 directions are for compiled code")
def test_same_certificate_for_any_number_of_threads():
    queries = make_queries(150, seed=1)
    weights = random_weights(4, 0, np.random.default_rng(5))
    reference = certify(surface_of(weights, queries.features), queries)
    with ltr.threads(1):
        assert np.array_equal(certify(surface_of(weights, queries.features), queries).curves, reference.curves)


def test_nothing_to_measure_is_an_error():
    queries = ltr.Queries(np.zeros((4, 2), np.float32), np.zeros(4), np.array([0, 4]))
    surface = surface_of(random_weights(2, 0, np.random.default_rng(0)), queries.features)
    with pytest.raises(ValueError, match="undefined on every query: all labels are 0"):
        certify(surface, queries, **QUICK)
    for steps in ((float("nan"),), (0.01, -0.1), (float("inf"),)):
        with pytest.raises(ValueError, match=r"certify: steps=.*; give lengths above 0"):
            certify(surface, queries, steps=steps)
    with pytest.raises(ValueError, match="largest_tie_share=-1; give a share"):
        certify(surface, queries, largest_tie_share=-1)
    with pytest.raises(ValueError, match="rows of features"):
        certify(surface_of(random_weights(2, 0, np.random.default_rng(0)), queries.features[:2]), queries, **QUICK)


def test_one_weight_at_a_time_moves_each_up_and_down():
    queries = make_queries(30, seed=3)
    weights = random_weights(4, 0, np.random.default_rng(1))
    found = certify(
        surface_of(weights, queries.features), queries, "ndcg", steps=(0.5,), one_at_a_time=True, relative=False, **QUICK
    )
    assert len(found.curves) == 8
    moved = weights.flat / np.linalg.norm(weights.flat)
    moved[2] -= 0.5
    want = np.nanmean(
        ltr.evaluate(queries.labels, weights.moved(moved).scores(queries.features), queries.offsets, ["ndcg"])["ndcg"]
    )
    assert found.curves[4 + 2, 0] == pytest.approx(want, abs=1e-9)


def test_many_weights_are_moved_one_at_a_time_in_little_memory():
    """Trees have ten thousands of leaves; all ways to move one of them at once take the square of that."""
    rng, n_weights, asked = np.random.default_rng(2), 1500, []
    queries = make_queries(4, seed=3)
    leaf = rng.integers(0, n_weights, (queries.n_documents, 5))

    def slopes(first, last, points):
        asked.append(points.size)
        return np.stack([points[:, own].sum(axis=1) for own in leaf[first:last]], axis=1)

    weights = rng.normal(size=n_weights)
    found = certify(
        Surface(weights, queries.n_documents, slopes=slopes), queries, "ndcg", steps=(0.5,), one_at_a_time=True, **QUICK
    )
    assert found.curves.shape == (2 * n_weights, 1)
    assert max(asked) <= 4_000_000 < 2 * n_weights * n_weights
    moves = np.isin(np.arange(n_weights), leaf)
    assert (found.curves[~np.tile(moves, 2)] == found.value).all()
    norm = np.linalg.norm(weights)
    for k in (leaf[0, 0], n_weights + leaf[-1, 2]):
        moved = weights / norm
        moved[k % n_weights] += 0.5 if k < n_weights else -0.5
        scores = np.array([moved[own].sum() for own in leaf])
        want = np.nanmean(ltr.evaluate(queries.labels, scores, queries.offsets, ["ndcg"])["ndcg"])
        assert found.curves[k, 0] == pytest.approx(want, abs=1e-9)


@pytest.mark.parametrize("hidden", [0, 3])
def test_directions_along_long_queries_are_looked_at_in_little_memory(hidden, monkeypatch):
    """Eight queries at least are scored together: of a thousand documents each, all directions and steps at once took half a gigabyte."""
    queries, asked = make_queries(16, seed=3, largest=100), []
    surface = surface_of(random_weights(4, hidden, np.random.default_rng(1)), queries.features)

    def told(made):
        asked.append(made.size)
        return made

    ways = {name: getattr(surface, name) for name in ("slopes", "scores") if getattr(surface, name)}
    watched = Surface(
        surface.weights, queries.n_documents, **{name: (lambda *given, of=of: told(of(*given))) for name, of in ways.items()}
    )
    whole = certify(watched, queries, "ndcg", **QUICK)
    at_once, asked[:] = max(asked) // 10, []
    monkeypatch.setattr(optimality, "_AT_ONCE", at_once)
    parts = certify(watched, queries, "ndcg", **QUICK)
    assert max(asked) <= at_once
    assert parts.curves == pytest.approx(whole.curves, abs=1e-12)
    assert parts.value == pytest.approx(whole.value, abs=1e-12)


def test_documents_with_equal_scores_are_ranked_exactly():
    """Rows that are twice there tie at every step; ties count in expectation."""
    queries = make_queries(30, seed=3)
    features = np.repeat(queries.features, 2, axis=0)
    doubled = ltr.Queries(features, np.repeat(queries.labels, 2), 2 * queries.offsets)
    weights = random_weights(4, 0, np.random.default_rng(1))
    weights = weights.moved(weights.flat / np.linalg.norm(weights.flat))
    found = certify(surface_of(weights, features), doubled, "map", steps=(0.5,), seed=9, **QUICK)
    scores = weights.moved(weights.flat + 0.5 * random_directions(22, 4, 9)[5]).scores(features)
    want = np.nanmean(ltr.evaluate(doubled.labels, scores, doubled.offsets, ["map"])["map"])
    assert found.curves[5, 0] == pytest.approx(want, abs=1e-9)


def test_where_no_weight_alone_rises_several_may():
    """Two weights, found by climbing along the axes: none of four ways rises, and nearly a fifth of all directions do."""
    rng = np.random.default_rng(83)
    features, labels = rng.normal(size=(60, 2)), rng.integers(0, 3, 60).astype(float)
    queries = ltr.Queries(features, labels, np.arange(0, 61, 6))
    weights = rng.normal(size=2)
    while (alone := certify(plane(weights, features), queries, "ndcg", one_at_a_time=True)).rising:
        k, s = np.unravel_index(np.argmax(alone.curves), alone.curves.shape)
        weights = weights / np.linalg.norm(weights)
        weights[k % 2] += (1 if k < 2 else -1) * alone.steps[s]
    assert alone.one_at_a_time
    found = certify(plane(weights, features), queries, "ndcg")
    assert not found.one_at_a_time
    assert found.rising / len(found.curves) > 0.1


def plane(weights, features):
    """The surface of a linear model."""
    return Surface(weights, len(features), slopes=lambda first, last, points: points @ features[first:last].T)


def test_steps_and_seeds_that_are_none_are_refused_and_arrays_of_steps_are_steps():
    queries = make_queries(4, seed=1)
    surface = surface_of(random_weights(4, 0, np.random.default_rng(1)), queries.features)
    given = certify(surface, queries, "ndcg", steps=np.array([0.1, 0.5]), **QUICK)
    assert given.steps == (0.1, 0.5)
    assert np.array_equal(given.curves, certify(surface, queries, "ndcg", steps=(0.1, 0.5), **QUICK).curves)
    for wrong, said in (
        ({"steps": (0.1, "far")}, "certify: steps: .* is not an array of numbers"),
        ({"steps": (0.1, 0.0)}, "certify: steps=.*; give lengths above 0"),
        ({"seed": -1}, "certify: seed=-1 is out of range; it is a whole number from 0"),
        ({"conventions": "letor3"}, "conventions: 'letor3' is not an ltr.Conventions"),
    ):
        with pytest.raises(ValueError, match=said):
            certify(surface, queries, "ndcg", **{**QUICK, **wrong})
