"""Confusion by hand and by a slow twin; what is chosen where truth is known; expected gains; what is refused."""

import itertools

import numpy as np
import pytest

from ltr.metrics.calibration import STRENGTHS, _parts, calibrate, confidence, expected_gains, expected_labels
from ltr.metrics.conventions import Conventions
from ltr.metrics.gains import graded, label_worth

HARSH = np.array([[0.9, 0.1, 0.0], [0.5, 0.4, 0.1], [0.1, 0.6, 0.3]])
KIND = np.array([[0.4, 0.4, 0.2], [0.1, 0.3, 0.6], [0.0, 0.1, 0.9]])
"""P(the machine says | people say)."""


def drawn(tables, share, n=6000, queries=60, seed=0):
    """Labels of people, few of them known, of a machine, and the group of each document's query."""
    rng = np.random.default_rng(seed)
    people = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    query = np.repeat(np.arange(queries), n // queries)
    group = query % len(tables)
    machine = (rng.random(n)[:, None] > np.cumsum(np.array(tables)[group, people], axis=1)).sum(axis=1)
    few = np.where(rng.random(n) < share, people, np.nan)
    return few, machine.astype(np.float64), {"market": np.array(["de", "fr"])[group % 2]}, query


def posterior(table):
    """P(people say | the machine says), from the true table."""
    joint = np.array([0.6, 0.3, 0.1])[:, None] * np.array(table)
    return (joint / joint.sum(axis=0)).T


def slow_shares(kinds, levels, groups, sizes, strengths):
    """Shares of every group, one document after another."""
    plain, group = strengths
    at_large = [(sum(y == level for y in levels) + 1 / sizes[1]) / (len(levels) + 1) for level in range(sizes[1])]
    table = {}
    for m, level in itertools.product(range(sizes[0]), range(sizes[1])):
        of_kind = [y for k, y in zip(kinds, levels, strict=True) if k == m]
        table[None, m, level] = (of_kind.count(level) + plain * at_large[level]) / (len(of_kind) + plain)
        for name in set(groups):
            own = [y for k, y, g in zip(kinds, levels, groups, strict=True) if (k, g) == (m, name)]
            table[name, m, level] = (own.count(level) + group * table[None, m, level]) / (len(own) + group)
    return table


def test_shares_and_likelihood_by_a_slow_twin():
    people, machine, attributes, query = drawn([HARSH, KIND], 0.02, n=3000)
    found = calibrate(people, machine, attributes, query)
    judged = ~np.isnan(people)
    kinds, levels, groups = machine[judged].astype(int), people[judged].astype(int), attributes["market"][judged]
    part = _parts(judged, query, 1)
    heldout = {}
    for plain in STRENGTHS:
        heldout[plain] = 0.0
        for k in range(10):
            left = part != k
            table = slow_shares(kinds[left], levels[left], groups[left], (3, 3), (plain, 1.0))
            heldout[plain] += sum(np.log(table[None, m, y]) for m, y in zip(kinds[~left], levels[~left], strict=True))
    assert found.plain == max(heldout, key=heldout.get)
    assert found.likelihood[""] == pytest.approx(max(heldout.values()) / len(kinds))
    table = slow_shares(kinds, levels, groups, (3, 3), (found.plain, found.group))
    assert found.by == "market"
    assert found.judged == len(kinds)
    for name, number in [(None, 0), *((name, found.groups[name]) for name in ("de", "fr"))]:
        expected = [[table[name, m, y] for y in range(3)] for m in range(3)]
        np.testing.assert_allclose(found.shares[number], expected)
    np.testing.assert_allclose(found.shares.sum(axis=2), 1)


def test_the_truth_is_found_by_group_where_groups_differ():
    people, machine, attributes, query = drawn([HARSH, KIND], 0.5, n=18000)
    found = calibrate(people, machine, {**attributes, "noise": np.array(["a", "b", "c"])[query % 3]}, query)
    assert found.by == "market"
    assert found.likelihood["market"] - found.likelihood[""] > 0.05
    for name, table in zip(("de", "fr"), (HARSH, KIND), strict=True):
        np.testing.assert_allclose(found.shares[found.groups[name]], posterior(table), atol=0.05)
    rows = found.of([0.0, 2.0, 2.0], {"market": np.array(["de", "fr", "??"])})
    for given, says in (({}, "given: none"), ({"market": np.array(["de"])}, "given: that of 1")):
        with pytest.raises(
            ValueError, match=f"shares differ by 'market': attributes says that of each of 3 documents' queries; {says}"
        ):
            found.of([0.0, 2.0, 2.0], given)
    np.testing.assert_allclose(rows[0], found.shares[found.groups["de"], 0])
    np.testing.assert_allclose(rows[1], found.shares[found.groups["fr"], 2])
    np.testing.assert_allclose(rows[2], found.shares[0, 2], err_msg="a group that was not seen is as all are")


def test_groups_that_tell_nothing_cost_nothing():
    taken = 0
    for seed in range(20):
        people, machine, _, query = drawn([HARSH], 0.2, seed=seed)
        found = calibrate(people, machine, {"market": np.array(["de", "fr"])[query % 2]}, query)
        taken += bool(found.by)
        np.testing.assert_allclose(found.shares[-1], posterior(HARSH), atol=0.15)
        assert found.likelihood["market"] < found.likelihood[""] + 0.01
    assert taken < 10


def test_whole_queries_are_held_out_where_people_judged_whole_queries():
    """A table for each query pays where some documents of each are judged, and foretells nothing of queries that nobody judged."""
    rng = np.random.default_rng(0)
    tables = [KIND if rng.random() < 0.5 else HARSH for _ in range(60)]
    people, machine, _, query = drawn(tables, 1.0)
    name = {"query": query.astype(str)}
    some = np.where(rng.random(len(people)) < 0.5, people, np.nan)
    assert calibrate(some, machine, name, query).by == "query"
    whole = np.where(query < 20, people, np.nan)
    assert calibrate(whole, machine, name, query).by == ""
    assert calibrate(whole, machine, name).by == "query", "who does not say what the queries are has documents held out"


def test_a_likelihood_that_is_higher_by_a_rounding_is_not_higher():
    """Queries were taken for groups in 59 of 300 such draws: a table for each foretells whole queries that are held out as all queries do."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        query = np.repeat(np.arange(40), 10)
        machine = rng.integers(0, 4, 400).astype(float)
        people = np.clip(machine + rng.integers(-1, 2, 400), 0, 3).astype(float)
        judged = np.isin(query, rng.permutation(40)[13:]) & (rng.random(400) < 0.7)
        people[~judged] = np.nan
        found = calibrate(people, machine, {"query": query.astype(str)}, query)
        held = np.isin(query[~judged], query[judged]).mean() < 0.5
        assert found.by == "" or not held


def test_expected_gains_are_not_gains_of_expected_labels():
    shares = np.array([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
    for rules, expected in ((Conventions(), (1.5, 1.0)), (Conventions(gain="linear"), (1.0, 1.0))):
        gains = graded(np.array([0.0, 1.0, 2.0]), rules)
        mean, variance = expected_gains(shares, gains)
        np.testing.assert_allclose(mean, expected)
        np.testing.assert_allclose(variance, [0.5 * ((gains - expected[0]) ** 2)[[0, 2]].sum(), 0.0])
        np.testing.assert_allclose(graded(label_worth(mean, rules), rules), mean)


def test_gains_of_rare_labels_are_not_drawn_down():
    """Where relevance is rare, the drawing that makes labels likeliest takes most of a high label's worth away."""
    at_large, scale = np.array([0.97, 0.015, 0.008, 0.005, 0.002]), np.arange(5)
    says = np.exp(-1.2 * np.abs(scale[:, None] - scale))  # P(the machine says | people say)
    says /= says.sum(axis=1, keepdims=True)
    joint, rules = at_large[:, None] * says, Conventions()
    gains = graded(scale.astype(np.float64), rules)
    true, shares = gains @ joint / joint.sum(axis=0), joint.sum(axis=0)
    off: dict[bool, list[float]] = {False: [], True: []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        people = rng.choice(5, 3000, p=at_large)
        machine = (rng.random(3000)[:, None] > np.cumsum(says[people], axis=1)).sum(axis=1).clip(max=4)
        for by_gain in off:
            found = calibrate(people, machine, gain=(lambda labels: graded(labels, rules)) if by_gain else None)
            expected = expected_gains(found.of(scale, {}), graded(found.people, rules))[0]
            off[by_gain].append(float((expected - true) @ shares))
    mean = float(true @ shares)
    assert np.mean(off[False]) < -0.15 * mean, "by likelihood a fifth of what documents are worth is lost"
    assert abs(np.mean(off[True])) < 0.1 * mean


def test_the_drawing_by_gains_by_a_slow_twin():
    people, machine, _, query = drawn([HARSH], 0.02, n=3000)
    gains = np.array([0.0, 1.0, 3.0])
    found = calibrate(people, machine, None, query, gain=lambda labels: gains[labels.astype(int)])
    judged = ~np.isnan(people)
    kinds, levels, part = machine[judged].astype(int), people[judged].astype(int), _parts(judged, query, 1)
    squares, likely = dict.fromkeys(STRENGTHS, 0.0), dict.fromkeys(STRENGTHS, 0.0)
    for plain, k in itertools.product(STRENGTHS, range(10)):
        left = part != k
        table = slow_shares(kinds[left], levels[left], np.zeros(left.sum(), int), (3, 3), (plain, 1.0))
        for m, y in zip(kinds[~left], levels[~left], strict=True):
            squares[plain] += (gains[y] - sum(table[None, m, level] * gains[level] for level in range(3))) ** 2
            likely[plain] += np.log(table[None, m, y])
    assert found.plain == min(squares, key=squares.get) != calibrate(people, machine, None, query).plain
    assert found.likelihood[""] == pytest.approx(likely[found.plain] / len(kinds))


def test_labels_and_weights_together():
    people, machine, _, _ = drawn([HARSH], 0.5)
    found, rules = calibrate(people, machine), Conventions()
    labels, weights = expected_labels(found, found.of(machine, {}), rules)
    gains = graded(found.people, rules)
    for m in range(3):
        row = found.shares[0, m]
        assert labels[machine == m] == pytest.approx(np.log2(1 + row @ gains))
        variance = row @ (gains - row @ gains) ** 2
        assert weights[machine == m] == pytest.approx(confidence(np.array([variance]), found, gains)[0])


def test_sure_gains_count_wholly_and_unknown_ones_half():
    people, machine, _, _ = drawn([HARSH], 0.5)
    found, gains = calibrate(people, machine), np.array([0.0, 1.0, 3.0])
    overall = expected_gains(found.at_large[None], gains)[1]
    np.testing.assert_allclose(confidence(np.array([0.0, overall[0]]), found, gains), [1.0, 0.5])
    always = calibrate([1.0, 1.0, np.nan], [0.0, 1.0, 1.0])
    np.testing.assert_allclose(confidence(np.zeros(2), always, np.ones(1)), 1.0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"machine": [1.0, np.nan, 0.0]}, "a label of the machine's is missing"),
        ({"people": [np.inf, 1.0, np.nan]}, "or a label is infinite"),
        ({"people": [np.nan, 1.0, np.nan]}, "people judged 1 document that the machine labelled; two are needed"),
        ({"people": [1.0, 0.0]}, r"of shapes \(2,\) and \(3,\)"),
        ({"attributes": {"a": np.array(["x"])}}, "all are"),
        ({"query": [1, 1]}, r"query of shape \(2,\) for 3 documents"),
        ({"gain": lambda labels: 1.0}, "gain gave array.* expected a finite number for each of 2 labels"),
        ({"gain": lambda labels: np.full_like(labels, np.nan)}, "gain gave array.* expected a finite number for each of 2 labels"),
    ],
)
def test_what_is_wrong_is_named(change, says):
    with pytest.raises(ValueError, match=says):
        calibrate(**{"people": [1.0, 0.0, np.nan], "machine": [1.0, 0.0, 1.0], **change})


def test_labels_that_are_no_scale_are_refused():
    with pytest.raises(ValueError, match="60 different labels; up to 50 are a scale: round them"):
        calibrate(np.zeros(60), np.arange(60.0))
    with pytest.raises(ValueError, match="the machine's label 3 was not among those that it was calibrated on"):
        calibrate([1.0, 0.0], [1.0, 0.0]).of([0.0, 3.0], {})
