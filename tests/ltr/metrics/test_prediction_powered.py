"""Intervals against simulated truth and real labels of both kinds; what the estimate is by hand; and when it closes."""

from dataclasses import replace

import numpy as np
import pytest

from ltr.metrics.prediction_powered import FEWEST, _calibrated, _tuned, corrected


def labels(n=2000, seed=0):
    """People's labels 0–3, and a machine that errs by one upwards more often than not."""
    rng = np.random.default_rng(seed)
    people = rng.choice(4, n, p=[0.5, 0.2, 0.2, 0.1])
    machine = np.clip(people + rng.choice([-1, 0, 1], n, p=[0.1, 0.5, 0.4]), 0, 3)
    return people.astype(np.float64), machine.astype(np.float64), rng


def sampled(people, share, rng):
    some = np.full(len(people), np.nan)
    chosen = rng.permutation(len(people))[: int(share * len(people))]
    some[chosen] = people[chosen]
    return some


@pytest.mark.parametrize("share", [0.05, 0.2])
@pytest.mark.parametrize("discounted", [False, True])
def test_intervals_hold_what_they_say_and_are_narrower(share, discounted):
    people, machine, rng = labels()
    weights = (1 / np.log2(2 + rng.permutation(len(people))) if discounted else np.ones(len(people))) / len(people)
    truth = float(weights @ people)
    found = [corrected(weights, sampled(people, share, rng), machine, seed=k) for k in range(400)]
    held = np.mean([one.interval[0] <= truth <= one.interval[1] for one in found])
    assert 0.92 <= held <= 0.98
    widths = np.array([[one.interval[1] - one.interval[0], one.people_interval[1] - one.people_interval[0]] for one in found])
    assert widths[:, 0].mean() < 0.8 * widths[:, 1].mean()
    assert abs(np.mean([one.value for one in found]) - truth) < 0.1 * widths[:, 0].mean()
    assert abs(found[0].machine - truth) > widths[:, 0].mean() / 2, "the machine alone is wrong"


def test_a_machine_that_knows_nothing_costs_nothing():
    people, _, rng = labels()
    noise = rng.integers(0, 4, len(people)).astype(np.float64)
    found = corrected(np.ones(len(people)), sampled(people, 0.2, rng), noise)
    widths = [high - low for low, high in (found.interval, found.people_interval)]
    assert widths[0] == pytest.approx(widths[1], rel=0.03)


def test_everything_judged_leaves_no_doubt():
    people, machine, rng = labels(300)
    weights = rng.random(300)
    found = corrected(weights, people, machine)
    assert found.value == pytest.approx(weights @ people)
    assert found.interval == pytest.approx((found.value, found.value))
    assert found.sampled == found.documents == 300


def test_so_many_labels_settle_a_difference():
    """With as many labels as are said to be needed, half the width of the interval is what was asked for."""
    people, machine, rng = labels(5000)
    weights = np.ones(5000) / 5000
    first = corrected(weights, sampled(people, 0.1, rng), machine)
    n = first.needed(0.02)
    then = corrected(weights, sampled(people, n / 5000, rng), machine)
    assert (then.interval[1] - then.interval[0]) / 2 == pytest.approx(0.02, rel=0.1)
    with pytest.raises(ValueError, match="half_width=0 must be above 0"):
        first.needed(0)


@pytest.mark.parametrize("n", [20, 30, 60])
def test_few_sampled_documents_that_matter_leave_values_that_can_be(n):
    """A measure of gains from 0 to 3 lies between 0 and three times its weights, is no less sure than it says, and the machine's labels do not make it
    worse (two slopes fitted to two documents did)."""
    people, machine, rng = labels(1000)
    weights = np.zeros(1000)
    weights[rng.permutation(1000)[:200]] = 1 / np.log2(2 + np.arange(200) % 10) / 20
    truth = float(weights @ people)
    found = [corrected(weights, sampled(people, n / 1000, rng), machine, seed=k) for k in range(300)]
    judged = [one for one in found if one.sampled > 1]
    assert all(0 <= one.value <= 4 * weights.sum() for one in judged)
    assert all(0 <= one.tuned <= 1 and (one.interval[1] > one.interval[0] or one.foretold) for one in judged)
    assert np.mean([one.interval[0] <= truth <= one.interval[1] for one in judged]) > 0.85
    assert np.std([one.value for one in judged]) < np.std([one.people for one in judged])


def test_few_documents_with_a_weight_are_not_trusted():
    people, machine, rng = labels()
    weights = (np.arange(len(people)) < 100).astype(np.float64)
    found = corrected(weights, sampled(people, 0.1, rng), machine)
    assert found.sampled < FEWEST
    assert not found.trusted


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"machine": np.array([1.0, np.nan, 0])}, "a document has no gain of the machine's, or no weight"),
        ({"people": np.array([1.0, np.nan, np.nan])}, "people judged 1 document; an interval needs 4"),
        ({"people": np.array([1.0, np.inf, 0])}, "a gain of people's is infinite"),
        ({"level": 2.0}, "level: 2.0; must be between 0 and 1"),
        ({"level": np.nan}, "level: nan; must be between 0 and 1"),
        ({"weights": np.ones(2)}, r"of shapes \(2,\), \(3,\) and \(3,\)"),
    ],
)
def test_what_is_wrong_is_named(change, says):
    with pytest.raises(ValueError, match=says):
        corrected(**{"weights": np.ones(3), "people": np.array([1.0, 0, np.nan]), "machine": np.array([1.0, 0, 1]), **change})


def test_as_many_documents_as_are_fitted_leave_nothing_for_an_interval():
    people, machine, weights = np.full(20, np.nan), np.tile([1.0, 0.0], 10), np.linspace(1, 2, 20)
    people[:3] = 1, 0, 1
    with pytest.raises(ValueError, match="people judged 3 documents; an interval needs 4"):
        corrected(weights, people, machine)
    people[3] = 1
    low, high = corrected(weights, people, machine).interval
    assert high > low


@pytest.mark.parametrize("queries", [30, 50, 97])
def test_equal_weights_that_are_no_binary_fractions_are_equal(queries):
    """P@10 of runs judged to depth 10: their mean misses a weight of 1/(10 · 30) by a rounding, which is no slope."""
    people, machine, rng = labels(10 * queries)
    weights, some = np.full(10 * queries, 1 / (10 * queries)), sampled(people, 0.3, rng)
    found = corrected(weights, some, machine)
    plain = corrected(np.ones(10 * queries), some, machine)
    assert found.people == pytest.approx(np.nanmean(some))
    for mine, want in (
        (found.value, plain.value),
        (found.interval, plain.interval),
        (found.people_interval, plain.people_interval),
    ):
        assert np.array(mine) * 10 * queries == pytest.approx(np.array(want))


def test_a_machine_that_nearly_always_agrees_leaves_too_little_to_go_by():
    rng = np.random.default_rng(3)
    people = rng.choice(5, 5000, p=[0.9, 0.05, 0.03, 0.01, 0.01]).astype(float)
    weights = 1 / np.log2(2 + np.arange(5000) % 50)
    held = {}
    for agree in (0.5, 0.97):
        machine = np.where(rng.random(5000) < agree, people, rng.integers(0, 5, 5000))
        found = [corrected(weights, sampled(people, 0.2, rng), machine, seed=k) for k in range(40)]
        held[agree] = np.mean([one.trusted for one in found])
    assert held[0.5] > 0.9
    few = [corrected(np.where(np.arange(5000) % 50 < 5, weights, 0), sampled(people, 0.2, rng), machine, seed=k) for k in range(40)]
    assert min(one.sampled for one in few) > FEWEST
    assert not any(one.trusted and one.surprises < 5 for one in few)
    assert np.mean([one.trusted for one in few]) < 0.1


def test_so_many_labels_settle_a_difference_with_that_power():
    people, machine, rng = labels(4000)
    weights = np.where(rng.random(4000) < 0.5, 1, -1) * (people > 1) / 4000 + 0.001 * rng.normal(size=4000) / 4000
    weights += 0.05 / 4000
    truth = weights @ people
    pilot = corrected(weights, sampled(people, 0.1, rng), machine)
    asked = replace(pilot, value=truth).needed_to_settle(0.8) / 4000
    assert 0.02 < asked < 0.9
    found = [corrected(weights, sampled(people, asked, rng), machine, seed=k) for k in range(300)]
    assert 0.7 < np.mean([np.sign(one.interval[0]) == np.sign(one.interval[1]) for one in found]) < 0.9
    with pytest.raises(ValueError, match="needed_to_settle: power=1"):
        pilot.needed_to_settle(1.0)


@pytest.mark.long
@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_real_labels_of_people_and_a_machine(real_data, share):
    """Of 10,284 pairs judged by both: the mean gain, and DCG of a ranking."""
    files = [real_data / "rag25" / f"{who}.qrels" for who in ("human", "machine")]
    if not all(file.is_file() for file in files):
        pytest.skip("no rag25/human.qrels and machine.qrels")
    read = [{tuple(line.split()[::2]): float(line.split()[3]) for line in file.read_text().splitlines()} for file in files]
    pairs = sorted(set(read[0]) & set(read[1]))
    people, machine = (np.array([one[pair] for pair in pairs]) for one in read)
    rng = np.random.default_rng(1)
    order = np.lexsort((-people - 2 * rng.normal(size=len(people)), [query for query, _ in pairs]))
    first = np.flatnonzero([k == 0 or pairs[order[k]][0] != pairs[order[k - 1]][0] for k in range(len(pairs))])
    rank = np.empty(len(pairs))
    rank[order] = np.arange(len(pairs)) - np.repeat(first, np.diff(np.append(first, len(pairs))))
    for weights in (np.ones(len(pairs)) / len(pairs), 1 / np.log2(rank + 2) / len(first)):
        truth = float(weights @ people)
        found = [corrected(weights, sampled(people, share, rng), machine, seed=k) for k in range(600)]
        held = np.mean([one.interval[0] <= truth <= one.interval[1] for one in found])
        assert 0.93 <= held <= 0.97
        widths = np.array([[high - low for low, high in (one.interval, one.people_interval)] for one in found])
        assert widths[:, 0].mean() < 0.95 * widths[:, 1].mean()


def test_where_people_judged_all_that_matters_the_measure_is_known():
    rng = np.random.default_rng(4)
    gains = rng.integers(0, 4, 1000).astype(float)
    weights = np.where(np.arange(1000) < 30, rng.random(1000), 0.0)
    people = np.where((np.arange(1000) < 30) | (rng.random(1000) < 0.1), gains, np.nan)
    found = corrected(weights, people, np.clip(gains + rng.integers(0, 2, 1000), 0, 3))
    assert found.value == found.people == pytest.approx(weights @ gains)
    assert found.interval == found.people_interval == (found.value, found.value)
    assert found.trusted
    assert found.complete


def test_documents_judged_because_a_ranking_had_them_high_are_no_random_sample():
    rng = np.random.default_rng(5)
    gains = rng.integers(0, 4, 2000).astype(float)
    machine = np.clip(gains + rng.integers(0, 2, 2000), 0, 3)
    weights = np.where(np.arange(2000) < 300, 1.0, 0.0)
    high = corrected(
        weights, np.where(np.arange(2000) % 300 < 200, gains, np.nan) * np.where(np.arange(2000) < 600, 1, np.nan), machine
    )
    assert (high.sampled, high.documents, high.judged) == (200, 300, 400)
    assert high.expected == pytest.approx(60)
    assert not high.random
    assert not high.trusted
    low = corrected(weights, np.where(np.arange(2000) > 298, gains, np.nan), machine)
    assert not low.random, "hardly one of those that matter"
    drawn = [corrected(weights, np.where(rng.permutation(2000) < 400, gains, np.nan), machine).random for _ in range(300)]
    assert sum(drawn) >= 299


def test_three_documents_that_are_all_judged_are_enough():
    for weights, people in (([1.0, 2, 3], [0.0, 1, 2]), ([1.0, 2, 3, 0, 0], [0.0, 1, 2, np.nan, np.nan])):
        found = corrected(weights, people, np.ones(len(weights)))
        assert (found.value, found.interval) == (8, (8, 8))


def test_a_scale_of_the_machine_s_is_calibrated_by_its_parts():
    """Every score was a label of its own, from which nothing was learned and no interval trusted, however many people had judged."""
    held, trusted = [], []
    for k in range(100):
        people, machine, rng = labels(seed=k)
        scale = machine + 0.3 * rng.normal(size=len(machine))
        weights = np.where(rng.random(len(people)) < 0.3, rng.normal(size=len(people)), 0) / 100
        found = corrected(weights, sampled(people, 0.2, rng), scale, seed=k)
        held.append(found.interval[0] <= weights @ people <= found.interval[1])
        trusted.append(found.trusted)
        assert found.interval[1] - found.interval[0] < found.people_interval[1] - found.people_interval[0]
    assert np.mean(held) >= 0.9
    assert np.mean(trusted) > 0.95


@pytest.mark.parametrize("step", [1.0, 0.5])
def test_a_machine_s_label_that_nobody_judged_is_on_the_scale_of_people(step):
    """Of labels up to 10 the gains are up to 1,023, and people's up to 15: a label without one of theirs was worth its own."""
    held = []
    for k in range(150):
        rng = np.random.default_rng(k)
        people = rng.choice(5, 3000, p=[0.5, 0.2, 0.15, 0.1, 0.05]).astype(float)
        machine = np.round(np.clip(2 * people + rng.normal(0, 1.2, 3000) + 0.4, 0, 10) / step) * step
        weights = np.where(rng.random(3000) < 0.2, rng.random(3000), 0) / 60
        gains = 2.0**people - 1
        found = corrected(weights, sampled(gains, 0.2, rng), 2.0**machine - 1, machine, seed=k)
        if found.trusted:
            held.append(found.interval[0] <= weights @ gains <= found.interval[1])
    assert len(held) > 100
    assert np.mean(held) >= 0.9


def test_only_documents_with_a_weight_decide_how_far_the_machine_is_trusted():
    rng = np.random.default_rng(0)
    w = np.where(np.arange(200) < 10, 1.0, 0.0)
    f = rng.normal(size=200)
    assert _tuned(w * 0.0 * f, w * f, w) == pytest.approx(10 / 20)  # of 10 with a weight, slope 0: half way to 1


def test_with_one_missing_the_measure_is_not_known():
    g = np.arange(20.0) % 3
    found = corrected(np.where(np.arange(20) < 10, 1.0, 0.0), np.where(np.arange(20) > 0, g, np.nan), g + 1)
    assert (found.sampled, found.documents, found.complete, found.trusted) == (9, 10, False, False)


def test_a_label_that_nobody_judged_is_worth_what_the_next_one_is():
    """A lowest label that nobody judged is worth what the next one is."""
    kinds = np.repeat([0, 1, 2, 3], 20)
    g = np.where((kinds == 0) | (kinds == 3), np.nan, kinds * 2.0)
    everywhere, _ = _calibrated(g, kinds, ~np.isnan(g), 1)
    assert everywhere[kinds == 0] == pytest.approx(2.0)
    assert everywhere[kinds == 3] == pytest.approx(4.0)
