"""What the page says of searches."""

from dataclasses import replace

import numpy as np
import pytest

import tasks.evidence  # noqa: F401  (keys of a configuration)
from tasks.config.reading import parse
from tasks.config.search_section import Dimension
from tasks.records import Budget, Cell, CellResult, Fold, Look, Searched, Trained, Trial
from tasks.report.outcome import RunOutcome
from tasks.report.searches import (
    best_of,
    best_so_far,
    by_time,
    importances,
    search_curves,
    search_figures,
    search_metrics,
    search_sentences,
)

SPACE = {
    "learning_rate": {"low": 0.01, "high": 1, "log": True},
    "n_leaves": {"low": 2, "high": 31},
    "leaf": ["newton", "gradient"],
    "largest_leaf": {"low": 1, "high": 9, "when": {"leaf": "gradient"}},
}
CONFIG = parse(
    {
        "data": {"files": "x"},
        "rankers": {
            "trees": {"kind": "lambdamart", "n_trees": 300, "search": {"space": SPACE}},
            "ridge": {"kind": "least_squares"},
        },
    }
)


def trial(number, rate, value, whole=True, fault=""):
    settings = {"learning_rate": rate, "n_leaves": 2 + number * 7 % 30, "leaf": "newton"}
    if number % 2:
        settings |= {"leaf": "gradient", "largest_leaf": 3.0}
    looks = () if fault else (Look(33, value), Look(300, value + 0.1)) if whole else (Look(33, value),)
    return Trial(number, settings, looks, whole, 2.0, "k", fault)


def outcome(*searches, budget=None):
    return RunOutcome(CONFIG, "id", (), (), (), (), None, searches=searches, budget=budget)


RATES = [10 ** (-2 + 2 * k / 29) for k in range(30)]
FOLD = Searched("trees", 0, tuple(trial(k + 1, rate, 0.5 - abs(k - 15) / 100, whole=k % 3 == 0) for k, rate in enumerate(RATES)))
FEW = Searched("trees", 1, (trial(1, 0.1, 0.4, whole=False), trial(2, 0.2, 0.3, fault="too few"), trial(3, 0.3, 0.5)))


def test_the_best_so_far_and_the_best_of_all():
    assert best_so_far(FEW) == pytest.approx([0.4, 0.4, 0.6])
    assert best_of(FEW).number == 3
    assert best_of(Searched("trees", 0, (trial(1, 0.1, 0.4, fault="none"),))) is None
    (curve,) = search_curves(outcome(FOLD, FEW)).values()
    assert curve == pytest.approx([(0.45 + 0.4) / 2, (0.45 + 0.4) / 2, (0.45 + 0.6) / 2], abs=0.02)


def test_the_parameter_that_decides_counts_most():
    counted = importances([FOLD], CONFIG.rankers["trees"].space)
    assert next(iter(counted)) == "learning_rate"
    assert counted["learning_rate"] > 0.5
    assert sum(counted.values()) == pytest.approx(1)
    assert "largest_leaf" not in counted, "it is not always drawn"
    assert importances([FEW], CONFIG.rankers["trees"].space) == {}
    assert search_metrics(outcome(FOLD)) == {f"search/trees/importance/{path}": share for path, share in counted.items()}


def test_the_parameter_that_decides_counts_most_though_values_are_noisy():
    """Of five, where noise is a tenth of what it comes to; the best tenth of 27 draws told it from the others in 32 of 40 searches."""
    space = {name: Dimension(low=0.0, high=1.0) for name in "abcde"}
    on_top = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        draws = []
        for number in range(1, 28):
            drawn = dict(zip(space, np.round(rng.beta([2, 1, 1, 1, 1], 1), 4).tolist(), strict=True))
            draws.append(Trial(number, drawn, (Look(33, 0.02 * drawn["a"] + 0.002 * rng.normal()),), False, 0.0))
        on_top += next(iter(importances([Searched("trees", 0, tuple(draws))], space))) == "a"
    assert on_top >= 38


@pytest.mark.parametrize(("lowest", "told"), [(17, True), (19, False), (27, False)])
def test_nothing_is_told_where_the_best_third_has_the_lowest_value_too(lowest, told):
    rng, space = np.random.default_rng(2), {name: Dimension(low=0.0, high=1.0) for name in "ab"}
    a = np.sort(rng.random(27))
    values = np.where(np.arange(27) < lowest, 0.0, a)
    draws = (Trial(k + 1, {"a": a[k], "b": rng.random()}, (Look(33, values[k]),), False, 0.0) for k in range(27))
    counted = importances([Searched("trees", 0, tuple(draws))], space)
    assert (next(iter(counted), None) == "a") is told
    assert bool(counted) is told


def test_a_draw_that_was_trained_to_its_end_at_once_is_compared_with_none_by_its_first_look():
    counted = importances([FOLD], CONFIG.rankers["trees"].space)
    at_once = replace(FOLD.trials[0], looks=(Look(300, 0.99),))
    without = replace(FOLD, trials=FOLD.trials[1:])
    assert importances([replace(FOLD, trials=(at_once, *FOLD.trials[1:]))], CONFIG.rankers["trees"].space) == importances(
        [without], CONFIG.rankers["trees"].space
    )
    assert counted != importances(
        [replace(FOLD, trials=(replace(at_once, looks=(Look(33, 0.99),)), *FOLD.trials[1:]))], CONFIG.rankers["trees"].space
    )


def test_it_is_said_where_the_ranker_as_written_was_chosen_though_another_draw_is_better():
    draws = tuple(replace(one, key=f"k{one.number}") for one in (trial(1, 0.1, 0.4), trial(2, 0.2, 0.5)))
    searched = outcome(Searched("trees", 0, draws))
    for key, said in (
        ("k1", " The ranker as written (trial 1) was kept: the best trial beats it by less than 1 standard error."),
        ("k2", ""),
    ):
        chosen = Trained(Cell("x", "trees", 0, {}, {}, Fold("a", "b", "c"), (), {}), CellResult(key, "d", {}, 0.0))
        (sentence,) = search_sentences(replace(searched, chosen=(chosen,)))
        assert sentence.partition("Best on validation: ")[2] == f"trial 2 (learning_rate=0.2, n_leaves=16, leaf=newton).{said}"


def test_sentences_say_what_was_drawn_and_what_time_did():
    (first,) = search_sentences(outcome(FEW))
    assert first.startswith(
        "trees: 3 trials, 2 trained to the end, 6 s of training, 1 could not be trained (the first: too few). Best on validation: trial 3"
    )
    short = Searched("trees", 0, (trial(1, 0.1, 0.4, whole=False),))
    both = search_sentences(outcome(short, budget=Budget(600.0, 601.0, 64, True)))
    assert both[0].endswith("trial 1 (as written, after 33 of 300 iterations).")
    assert (
        both[1]
        == "Searches ended after 64 cells: 10m 1s of 10m used; the best of each was trained to its end. A repeated run stops at the same point."
    )
    assert search_sentences(outcome(short, budget=Budget(600.0, 30.0, 64)))[1] == "Searches: 30s of 10m used; all trials were made."
    assert search_sentences(outcome()) == []


def test_figures_of_every_search_the_same_bytes_each_time():
    drawn = search_figures(outcome(FOLD, FEW))
    assert list(drawn) == ["search-best-trees", "search-draws-trees"], "too few draws on the second fold for importances"
    assert list(search_figures(outcome(FOLD))) == ["search-best-trees", "search-draws-trees", "search-importance-trees"]
    assert drawn == search_figures(outcome(FOLD, FEW))
    for text in ("trees: best so far", "fold 2"):
        assert f">{text}<" in drawn["search-best-trees"]
    for text in ("newton", "gradient", "0.01", "31"):
        assert f">{text}<" in drawn["search-draws-trees"]
    assert search_figures(outcome(Searched("trees", 0, (trial(1, 0.1, 0.4, fault="none"),))))


def test_searches_side_by_side_by_the_time_they_took():
    """The same ranker drawn by TPE and by chance: what the sampler is worth."""
    search = {"space": SPACE}
    config = parse({
        "data": {"files": "x"},
        "rankers": {
            "trees": {"kind": "lambdamart", "search": search},
            "chance": {"kind": "lambdamart", "search": {**search, "sampler": "random"}},
            "by-map": {"kind": "lambdamart", "select": "map", "search": search},
        },
    })  # fmt: skip
    rankers = [replace(FEW, ranker=name) for name in ("trees", "chance", "by-map")]
    drawn = search_figures(RunOutcome(config, "id", (), (), (), (), None, searches=tuple(rankers)))
    assert [name for name in drawn if name.startswith("searches")] == ["searches-ndcg_10"]
    for text in ("trees", "chance", "seconds of training per fold"):
        assert f">{text}<" in drawn["searches-ndcg_10"]
    assert ">by-map<" not in drawn["searches-ndcg_10"]
    slower = replace(FEW, trials=tuple(replace(one, seconds=4.0) for one in FEW.trials))
    assert by_time([FEW, slower]) == ([3, 6, 9], pytest.approx([0.4, 0.4, 0.6]))
