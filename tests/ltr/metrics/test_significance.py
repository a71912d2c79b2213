"""Tests of the tests: hand values, scipy, and p-values that are uniform under the null."""

import tracemalloc

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from ltr.metrics import significance
from ltr.metrics.measure import lowest_of
from ltr.metrics.significance import (
    bootstrap,
    holm,
    interval_of_equals,
    lexicographic,
    non_inferior,
    p_of_equals,
    paired_t,
    randomisation,
    student_quantile,
)


def test_paired_t_by_hand_and_by_scipy():
    a, b = np.array([0.5, 0.7, 0.9, 0.4]), np.array([0.4, 0.7, 0.6, 0.2])
    found = paired_t(a, b)
    assert found.difference == pytest.approx(0.15)
    assert found.standard_error == pytest.approx(np.std([0.1, 0, 0.3, 0.2], ddof=1) / 2)
    assert found.p_value == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert found.z == pytest.approx(0.15 / found.standard_error)
    assert found.level == 0


@pytest.mark.parametrize("n", [3, 10, 43])
def test_marks_are_as_rare_as_they_say(n):
    """With 1.96 standard errors at any n, 9.3 % of equal rankers were told apart at n = 10."""
    rng = np.random.default_rng(n)
    levels = np.array([paired_t(rng.normal(size=n), rng.normal(size=n)).level for _ in range(4000)])
    assert (levels == 95).mean() == pytest.approx(0.05, abs=0.011)
    assert (levels > 0).mean() == pytest.approx(0.1, abs=0.015)


def test_levels_of_many_queries_are_those_of_the_papers():
    rng = np.random.default_rng(0)
    base = rng.random(400)
    noise = rng.normal(size=400)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    for z, level in ((1.5, 0), (1.7, 90), (1.9, 90), (2.0, 95), (-2.0, 95)):
        assert paired_t(base + noise + z / 20, base).level == level


def test_undefined_queries_are_left_out_and_identical_rankers_are_equal():
    found = paired_t([0.5, np.nan, 0.7, 0.1], [0.5, 0.2, 0.7, np.nan])
    assert (found.n_queries, found.z, found.level) == (2, 0.0, 0)
    with pytest.raises(ValueError, match="needs two queries"):
        paired_t([0.5, np.nan], [0.5, 0.2])
    with pytest.raises(ValueError, match="cannot pair"):
        paired_t([0.5], [0.5, 0.2])


def test_what_rounding_leaves_is_no_difference():
    """Two rankings of documents with one label have equal measures, of sums in another order."""
    ones = np.ones(24)
    found = paired_t(ones, ones - 2.0**-52)
    assert (found.difference, found.z, found.p_value) == (0.0, 0.0, 1.0)
    assert randomisation(ones, ones - 2.0**-52) == 1.0
    assert bootstrap(ones, ones - 2.0**-52) == interval_of_equals(0.0, 24, 0.95)
    assert paired_t(ones, ones - 1e-9).difference > 0, "equal everywhere, and more than rounding"


def test_p_values_are_uniform_under_the_null():
    rng = np.random.default_rng(1)
    t, r = [], []
    for k in range(200):
        a, b = rng.random(40), rng.random(40)
        t.append(paired_t(a, b).p_value)
        r.append(randomisation(a, b, draws=200, seed=k))
    assert stats.kstest(t, "uniform").pvalue > 0.01
    assert stats.kstest(r, "uniform").pvalue > 0.01


def test_randomisation_is_exact_on_few_queries_and_repeats_with_its_seed():
    a, b = np.array([0.3, 0.5, 0.9]), np.zeros(3)
    exact = 2 / 8
    assert randomisation(a, b, draws=20_000) == pytest.approx(exact, abs=0.01)
    assert randomisation(a, b, seed=3) == randomisation(a, b, seed=3)
    assert randomisation(b, b) == 1.0


@pytest.mark.parametrize(("n", "least"), [(5, 0.88), pytest.param(20, 0.92, marks=pytest.mark.long), (60, 0.92)])
def test_bootstrap_covers(n, least):
    """Plain percentiles come to .85, .93 and .94 with normal differences, and expanded ones to .90, .95 and .95."""
    rng = np.random.default_rng(2)
    inside = 0
    for k in range(600):
        low, high = bootstrap(rng.normal(0.1, 1, n), np.zeros(n), draws=400, seed=k)
        inside += low <= 0.1 <= high
    assert least <= inside / 600 <= 0.985


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
    assert holm([]).shape == (0,)


def likeliest(value, edge):
    """The largest probability of `value` where values lie from −1 to 1 and their mean is `edge` or less: by linear programming."""
    places = np.append(np.linspace(-1, 1, 401), value)
    found = linprog(np.append(np.zeros(401), -1.0), A_ub=places[None], b_ub=[edge], A_eq=np.ones((1, 402)), b_eq=[1], bounds=(0, 1))
    return -found.fun


@pytest.mark.parametrize("value", [0.2, 1.0, -0.6])
@pytest.mark.parametrize("n", [2, 8, 25])
def test_differences_that_are_all_one_number_are_as_certain_as_their_number_allows(n, value):
    """A standard error of 0 would make any of them certain: two queries were enough for a letter of significance. What is said of them is what
    holds for every distribution."""
    base = np.linspace(0.1, 0.7, n) * (value < 1)
    found = paired_t(base + value, base)
    assert found.p_value == pytest.approx(min(1, 2 * likeliest(abs(value), 0) ** n))
    assert (found.standard_error, found.z, found.difference) == (0, np.copysign(np.inf, value), pytest.approx(value))
    low, high = bootstrap(base + value, base)
    assert likeliest(value, low) ** n == pytest.approx(0.025)
    assert high == 1 == value or likeliest(-value, -high) ** n == pytest.approx(0.025)
    assert (low > 0 or high < 0) == (found.level == 95)
    promised = non_inferior(base + value, base, 0.3)
    if n == 25:
        assert promised.p_value == pytest.approx(likeliest(value, -0.3) ** n if value > -0.3 else 1)
        assert likeliest(value, promised.lower_bound) ** n == pytest.approx(0.05)
    (one,), _ = lexicographic([base + value], [base], [0.3])
    assert one.lower_bound == promised.lower_bound
    assert (one.upper_bound < 0) <= (value < 0)
    assert (one.lower_bound > 0) <= (value > 0)


def test_a_loss_beyond_what_can_be_lost_is_none():
    assert non_inferior(np.zeros(30), np.full(30, 3.0), 5.0).p_value == 0
    assert non_inferior(np.zeros(30), np.full(30, 3.0), 2.0).p_value == 1


def test_wins_alone_are_those_of_the_sign_test_and_equal_rankers_are_equal():
    base = np.linspace(0.1, 0.7, 9)
    assert paired_t(np.ones(9), np.zeros(9)).p_value == stats.binomtest(9, 9).pvalue
    assert paired_t(base, base).p_value == 1
    low, high = bootstrap(base, base)
    assert -low == high == pytest.approx(1 - 0.025 ** (1 / 9)), "nine queries of one difference may miss a third of others"


@pytest.mark.parametrize(("n", "share"), [(5, 0.2), (20, 0.05), (50, 0.02)])
def test_intervals_hold_where_few_queries_differ(n, share):
    """Where no query of the sample does, 0 to 0 was said to be sure: two of three of these intervals held where 19 of 20 are asked for."""
    rng = np.random.default_rng(0)
    found = [bootstrap((rng.random(n) < share) * 1.0, np.zeros(n), draws=200, seed=k) for k in range(200)]
    assert np.mean([low <= share <= high for low, high in found]) >= 0.93


def test_differences_of_which_most_are_0_or_one_value_is_huge_have_a_spread():
    base = np.append(np.ones(19), 1e-3)
    one = base.copy()
    one[-1] += 1e-14
    assert paired_t(one, base).p_value == pytest.approx(0.33, abs=0.01)
    huge = np.append(1e9, np.ones(19))
    noise = np.append(0, np.random.default_rng(0).normal(0, 1e-4, 19))
    assert paired_t(huge + noise, huge).p_value == pytest.approx(stats.ttest_1samp(noise, 0).pvalue, rel=1e-2)


def test_equal_rankers_of_few_queries_are_rarely_told_apart():
    """Each finds the one relevant document first or not: at n = 2 one in eight pairs had p < .05."""
    rng = np.random.default_rng(5)
    for n in (2, 3, 5):
        told = [paired_t(*rng.integers(0, 2, (2, n)).astype(float)).p_value < 0.05 for _ in range(1000)]
        assert np.mean(told) < 0.06


def test_non_inferiority_keeps_its_level():
    rng = np.random.default_rng(3)
    broken = sum(non_inferior(rng.normal(-0.1, 1, 100), np.zeros(100), margin=0.1).holds for _ in range(400))
    assert broken / 400 < 0.09
    assert non_inferior(np.full(10, 0.5), np.full(10, 0.5), margin=0.0).holds, "no loss at all, nothing asked for"
    with pytest.raises(ValueError, match="must not be negative"):
        non_inferior([0.1, 0.2], [0.1, 0.2], margin=-1)
    for margin in (np.nan, np.inf):
        with pytest.raises(ValueError, match="margin"):
            non_inferior([0.1, 0.2], [0.1, 0.2], margin=margin)


@pytest.mark.parametrize(
    ("n", "share", "change"),
    [
        (60, 0.02, lambda draws: -draws.uniform(0, 0.5, 60)),
        (150, 0.05, lambda draws: draws.uniform(-0.3, 0.1, 150)),
        (400, 0.1, lambda draws: draws.uniform(-0.3, 0.2, 400)),
        (60, 1.0, lambda draws: 0.1 - draws.exponential(0.15, 60)),
        (150, 0.35, lambda draws: 0.1 - draws.exponential(0.15, 150)),
        (20, 0.75, lambda draws: draws.uniform(-0.3, 0.2, 20)),
    ],
)
@pytest.mark.parametrize(("level", "at_most"), [(0.95, 0.075), (0.99, 0.02)])
def test_non_inferiority_keeps_its_level_where_few_queries_differ_or_losses_are_rare_and_large(n, share, change, level, at_most):
    draws = np.random.default_rng(7)
    edge = -share * np.mean([change(draws).mean() for _ in range(2000)])
    changed = [np.where(draws.random(n) < share, change(draws), 0) for _ in range(3000)]
    assert np.mean([non_inferior(one, np.zeros(n), edge, level).holds for one in changed]) < at_most


def test_of_equal_values_the_number_of_queries_says_how_much_may_be_lost():
    """None of n queries differs: with 95 % confidence fewer than 1 − .05^(1/n) of all do."""
    for n in (2, 20, 598, 599):
        values = np.random.default_rng(n).random(n)
        found = non_inferior(values, values, margin=0.005)
        assert found.lower_bound == pytest.approx(0.05 ** (1 / n) - 1)
        assert found.p_value == pytest.approx(0.995**n)
        assert found.holds == (found.p_value < 0.05) == (n == 598 or n == 599)


def test_non_inferiority_p_is_that_of_a_shifted_t_test_where_nothing_is_skewed():
    half = np.random.default_rng(4).random(15)
    a, b = np.concatenate([half, -half]) + 0.02, np.zeros(30)
    found = non_inferior(a, b, margin=0.1)
    assert found.p_value == pytest.approx(stats.ttest_1samp(a - b + 0.1, 0, alternative="greater").pvalue)
    assert found.lower_bound == pytest.approx(stats.ttest_1samp(a, 0).confidence_interval(0.9).low)


def test_small_p_values_of_losses_are_as_rare_as_they_say():
    """Symmetric differences of heavy tails, three fifths of them 0, that lose exactly the margin: by Hall's transformation alone, p-values below .0042 came
    in 1.1 % of draws."""
    rng, n, draws = np.random.default_rng(1), 100, 3000
    paired = np.where(rng.random((draws, n)) < 0.6, 0, rng.choice([-1, 1], (draws, n)) * rng.beta(0.5, 3, (draws, n)))
    found = np.array([non_inferior(own, np.zeros(n), 0.0).p_value for own in paired])
    assert (found < 0.05).mean() == pytest.approx(0.05, abs=0.01)
    assert (found < 0.0042).mean() < 0.006


def test_bound_and_p_value_agree():
    draws = np.random.default_rng(8)
    for _ in range(200):
        n = int(draws.integers(2, 120))
        paired = np.where(draws.random(n) < draws.random(), 0.1 - draws.exponential(0.1, n), 0)
        margin, level = draws.uniform(0.001, 0.2), draws.uniform(0.8, 0.99)
        found = non_inferior(paired, np.zeros(n), margin, level)
        assert found.holds == (found.p_value < 1 - level)


def tier(mean, spread=0.1, n=100):
    """Differences of that mean and standard error spread / √n."""
    noise = np.random.default_rng(5).normal(size=n)
    return mean + spread * (noise - noise.mean()) / noise.std(ddof=1)


@pytest.mark.parametrize(
    ("first", "second", "verdicts", "comparison"),
    [
        (tier(0.0), tier(0.05), ["equal", "better"], "better"),
        (tier(0.0), tier(-0.05), ["equal", "worse"], "worse"),
        (tier(0.0), tier(0.001), ["equal", "open"], "open"),
        (tier(0.08), tier(-0.05), ["better", "worse"], "better"),
        (tier(-0.08), tier(0.05), ["worse", "better"], "worse"),
        (tier(0.005, 0.12), tier(0.05), ["not worse", "better"], "better"),
        (tier(-0.015), tier(0.05), ["open", "better"], "open"),
    ],
)
def test_the_first_tier_that_is_not_equal_decides(first, second, verdicts, comparison):
    zero = np.zeros(100)
    tiers, found = lexicographic([first, second], [zero, zero], [0.02, 0.0])
    assert ([t.verdict for t in tiers], found) == (verdicts, comparison)
    assert tiers[0].lower_bound == non_inferior(first, zero, 0.02).lower_bound
    assert tiers[0].upper_bound == -non_inferior(-first, zero, 0.02).lower_bound


@pytest.mark.parametrize(
    ("margin", "level"), [(0.02, 95.0), (0.02, float("nan")), (0.02, 0.0), (-0.02, 0.95), (float("nan"), 0.95)]
)
def test_a_graded_comparison_refuses_a_level_or_margin_that_is_none(margin, level):
    values = np.random.default_rng(6).random(40)
    with pytest.raises(ValueError, match=f"margin {margin} must not be negative and level {level} lie in"):
        lexicographic([values, values], [values[::-1], values], [margin, 0.0], level)


def test_a_model_and_itself_are_not_told_apart():
    values = np.random.default_rng(6).random(20)
    tiers, found = lexicographic([values, values], [values, values], [0.0, 0.0])
    assert ([t.verdict for t in tiers], found) == (["equal", "equal"], "open")


def test_no_interval_is_narrower_than_students_on_either_side():
    rng = np.random.default_rng(3)
    for n in (5, 8, 30):
        differences = np.exp(1.3 * rng.normal(size=n)) - np.exp(1.3 * rng.normal(size=n))
        low, high = bootstrap(differences, np.zeros(n), draws=500)
        tested = paired_t(differences, np.zeros(n))
        reach = student_quantile(0.975, n - 1) * tested.standard_error
        assert low <= tested.difference - reach
        assert high >= tested.difference + reach


def test_measures_beyond_1_may_differ_by_more_than_1_where_none_was_seen_to():
    """Forty queries with 60 errors each in both rankings said that others differ by at most .09 errors in the mean."""
    errors = np.full(40, 60.0)
    low, high = bootstrap(errors, errors)
    assert -low == high == pytest.approx(60 * (1 - 0.025 ** (1 / 40)))
    assert not non_inferior(errors, errors, 0.5).holds
    assert non_inferior(errors, errors, 5.0).holds
    (tier,), _ = lexicographic([errors], [errors], [0.5])
    assert tier.lower_bound == pytest.approx(-60 * (1 - 0.05 ** (1 / 40)))


@pytest.mark.parametrize("measured", [1.0, 0.2])
def test_bounds_of_measures_up_to_1_are_those_of_differences_of_1(measured):
    values = np.full(40, measured)
    assert bootstrap(values, values)[1] == pytest.approx(1 - 0.025 ** (1 / 40))


def test_of_equals_that_are_not_signed_the_interval_has_two_sides():
    """Two-sided Clopper–Pearson."""
    low, _ = interval_of_equals(0.5, 10, 0.95, 1.0, signed=False)
    assert low == pytest.approx(0.025 ** (1 / 10) * 0.5)


def test_the_most_that_others_may_be_apart_is_what_is_seen():
    assert p_of_equals(3.0, 10) == pytest.approx(2 * (3 / 6) ** 10)


def test_one_value_beyond_the_most_may_be_as_far_to_the_other_side():
    low, high = interval_of_equals(3.0, 10, 0.95)
    seen = 0.025 ** (1 / 10)
    assert (low, high) == pytest.approx((3 * seen - 3 * (1 - seen), 3 * seen + 3 * (1 - seen)))


def test_a_randomisation_counts_the_signs_that_were_seen():
    """It is never 0: they are one of the draws."""
    assert randomisation(np.ones(40), np.zeros(40), draws=1000) == pytest.approx(1 / 1001)


def test_signs_of_many_queries_are_drawn_in_little_memory(monkeypatch):
    """A thousand draws at a time took 2.3 GB of 100,000 queries. The numbers are the same however many are drawn at a time."""
    rng, before = np.random.default_rng(4), significance._AT_ONCE
    a, b = rng.random((2, 30_001))
    tracemalloc.start()
    found = randomisation(a, b, draws=150)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3.5 * 8 * before
    monkeypatch.setattr(significance, "_AT_ONCE", 1 << 40)
    assert randomisation(a, b, draws=150) == found


def test_values_from_minus_1_may_lie_2_apart():
    """Kendall's τ of 60 queries, of which one in 40 falls from 1 to −1: a mean loss of .05, which is not within a margin of .05."""
    rng, baseline, wrong, seen = np.random.default_rng(2), np.ones(60), [0, 0], 0
    for _ in range(400):
        challenger = np.where(rng.random(60) < 1 / 40, -1.0, 1.0)
        wrong = [w + non_inferior(challenger, baseline, 0.05, lowest=low).holds for w, low in zip(wrong, (0.0, -1.0), strict=True)]
        seen += (challenger < 0).any()
    assert 0.6 < seen / 400 < 0.9
    assert wrong[0] / 400 > 0.15
    assert wrong[1] / 400 <= 0.05
    assert paired_t(np.full(6, 0.5), np.zeros(6), -1.0).p_value == pytest.approx(2 * (2 / 2.5) ** 6)
    low, high = bootstrap(np.full(6, 0.5), np.zeros(6), lowest=-1.0)
    assert low < bootstrap(np.full(6, 0.5), np.zeros(6))[0] < 0.5 < high
    assert lowest_of("tau") == -1
    assert lowest_of("ndcg_10") == lowest_of("unheard_of") == 0
