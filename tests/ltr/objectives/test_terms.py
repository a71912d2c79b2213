"""Terms and schedules: weights by their recurrence, groups by hand, and what is refused."""

from dataclasses import asdict

import numpy as np
import pytest

from ltr.objectives.terms import Schedule, Term, pair_groups, saturations, terms_from, terms_of, weights_at


def test_schedules_by_their_recurrence():
    linear, exponential = Schedule(0.1, "linear", 0.25), Schedule(0.1, "exponential", 100)
    assert [linear.at(m) for m in range(5)] == pytest.approx([0.1, 0.35, 0.6, 0.85, 1.0])
    weight = 0.1
    for m in range(1, 60):
        weight = min(1.0, weight + np.exp(-100 / m))
        assert exponential.at(m) == pytest.approx(weight)
    saturated = [Schedule(w, "exponential", eta).saturation(200) for eta in (100, 250) for w in (0.1, 0.25, 0.5)]
    assert (min(saturated[:3]), max(saturated[:3])) == (36, 41)
    assert (min(saturated[3:]), max(saturated[3:])) == (74, 84)
    assert weights_at([Term("ndcg"), Term("ndcg", weight=linear)], 2) == pytest.approx([0.4, 0.6])
    assert saturations([Term("ndcg"), Term("ndcg@3", weight=linear)], 9) == ["the weight of ndcg_3 is 1 from iteration 4 on"]
    assert saturations([Term("ndcg@3", weight=Schedule(0.5, "linear", -0.2))], 9) == [
        "the weight of ndcg_3 is 0 from iteration 3 on"
    ]
    assert saturations([Term("ndcg@3", weight=linear)], 4) == []


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ([None], [1.0]),
        ([0.3, None], [0.3, 0.7]),
        ([None, 0.2, None], [0.4, 0.2, 0.4]),
        ([0.3, 0.7, None], [0.3, 0.7, 0.0]),
        ([0.1, 0.1], [0.1, 0.1]),
        ([Schedule(0.0, "linear", 0.5), None], [0.5, 0.5]),
    ],
)
def test_terms_without_a_weight_share_what_the_others_leave(given, want):
    assert weights_at([Term("ndcg", weight=weight) for weight in given], 1) == pytest.approx(want)


def test_weights_that_sum_above_one_are_refused():
    rising, falling = Schedule(0.1, "linear", 0.1), Schedule(0.9, "linear", -0.1)
    assert len(terms_of([Term("map", weight=rising), Term("mrr", weight=falling)], 20)) == 2
    assert len(terms_of([Term("map", weight=rising), Term("mrr", weight=0.5)], 5)) == 2
    for given, iterations, told in (
        ([0.8, 0.7], 1, "sum to 1.5; at most 1"),
        ([rising, 0.5], 6, "sum to 1.1 at iteration 5; at most 1"),
        ([rising, 0.95, None], 6, "sum to 1.05 at iteration 0"),
    ):
        with pytest.raises(ValueError, match=told):
            terms_of([Term("map", weight=weight) for weight in given], iterations)


def test_a_billion_iterations_are_not_added_up():
    slow = Schedule(0.1, "linear", 0.0)
    assert len(terms_of([Term("map", weight=slow), Term("mrr", weight=0.5)], 10**9)) == 2


def test_groups():
    labels, judged = np.array([0.0, 0.5, 1.0, np.nan]), np.array([3.0, 3.0, 1.0, 2.0])
    assert np.array_equal(pair_groups(Term("cndcg"), labels, judged), [0, 0, 0, np.nan], equal_nan=True)
    same = pair_groups(Term("cndcg", pairs="same_label"), labels, judged)
    assert np.array_equal(same, [np.nan, 3, 1, np.nan], equal_nan=True)


def test_terms_are_read_back_from_plain_values():
    terms = (Term("ndcg@5", cost="logistic_near"), Term("map", weight=Schedule(0.1, "linear", 0.02), pairs="same_label"))
    assert terms_from([asdict(term) for term in terms]) == terms


def test_unknown_names_list_the_known_ones():
    for build, rule in (
        (lambda: Term("ndcg", cost="hinge"), "unknown cost 'hinge'; choose from: auto, logistic"),
        (lambda: Term("ndcg", construction="x"), "unknown construction 'x'"),
        (lambda: Term("ndgc"), "unknown measure 'ndgc'"),
        (lambda: Term("ndcg", weight=1.5), r"outside \[0, 1\]"),
        (lambda: Term("ndcg", pairs="some"), "pairs 'some'"),
        (lambda: Schedule(0.1, "quadratic", 1), "schedule kind 'quadratic'"),
        (lambda: Schedule(1.1, "linear", 1), r"schedule start 1.1 is outside \[0, 1\]"),
    ):
        with pytest.raises(ValueError, match=rule):
            build()


def test_a_weight_may_be_at_its_end_from_the_start_and_an_exponential_one_only_rises():
    assert Schedule(1.0, "linear", 0.1).saturation(5) == 0
    assert Schedule(0.0, "linear", -0.1).saturation(5) == 0
    assert Schedule(0.0, "linear", 0.1).saturation(5) is None
    assert Schedule(0.1, "exponential", -1.0).saturation(5) == 1
