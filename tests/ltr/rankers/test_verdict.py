"""What judged queries say of clicks with bias and without."""

import numpy as np

from ltr.metrics.significance import paired_t
from ltr.rankers.verdict import NAIVE, verdict


def test_the_best_mean_is_kept_and_how_sure_that_is_is_said():
    rng = np.random.default_rng(0)
    naive = rng.uniform(size=40)
    values = {NAIVE: naive, "pairwise": naive + rng.normal(0.1, 0.1, 40), "additive": naive - 0.05 + rng.normal(0, 0.01, 40)}
    values["pairwise"][3] = np.nan
    found = verdict(values, "ndcg_10")
    test = paired_t(values["pairwise"], naive)
    assert found.kept == "pairwise"
    assert (
        f"keeps pairwise; beside ndcg_10 {naive.mean():.4f} of {NAIVE} (39 judged queries): pairwise {test.difference:+.4f}"
        in found.sentence
    )
    assert "at 95 %" in found.sentence
    assert "additive -0.0" in found.sentence
    assert found.sentence.endswith("Holm over 2")
    worse = verdict({NAIVE: naive, "additive": values["additive"]}, "ndcg_10")
    assert worse.kept == NAIVE
    assert "at 95 %" in worse.sentence
    assert "Holm" not in worse.sentence
    alike = verdict({NAIVE: naive, "additive": naive + rng.normal(0, 0.2, 40)}, "ndcg_10")
    assert "not significant on these queries" in alike.sentence
    assert verdict({NAIVE: naive, "additive": naive}, "ndcg_10").kept == NAIVE


def test_p_values_are_holms():
    rng = np.random.default_rng(3)
    naive = rng.uniform(size=40)
    values = {NAIVE: naive, "pairwise": naive + rng.normal(0.05, 0.15, 40), "additive": naive + rng.normal(0.01, 0.15, 40)}
    first, second = (paired_t(values[name], naive).p_value for name in ("pairwise", "additive"))
    assert first < second
    said = verdict(values, "ndcg_10").sentence
    assert f"(p = {2 * first:.2g}, " in said
    assert f"(p = {max(2 * first, second):.2g})" in said


def test_differences_that_are_all_one_number_are_as_certain_as_the_measure_allows():
    """What was not seen may lie as far below as the measure goes: Kendall's τ to −1."""
    naive = np.full(5, 0.25)
    for measure, lowest in (("ndcg_10", 0.0), ("tau", -1.0)):
        p = paired_t(naive + 0.5, naive, lowest).p_value
        assert f"(p = {p:.2g}, " in verdict({NAIVE: naive, "additive": naive + 0.5}, measure).sentence
    assert p > paired_t(naive + 0.5, naive).p_value
