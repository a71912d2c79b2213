"""Draws in batches, halving, and that nothing but the seed decides them."""

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest

from tasks.config.search_section import Dimension, Search
from tasks.training.search import Came, surely_better, waves

SPACE = {
    "rate": Dimension(low=0.001, high=1, log=True),
    "leaves": Dimension(low=2, high=64, log=True, whole=True),
    "leaf": Dimension(choice=["newton", ["gradient"]]),
    "bound": Dimension(low=1, high=9, when={"leaf": [["gradient"]]}),
}
NUMBERS = {path: SPACE[path] for path in ("rate", "leaves")}
WRITTEN = {"rate": 0.1, "leaves": 31, "leaf": "newton"}


def value_of(settings, rung=2):
    """A hill in the rate and the leaves that a longer training sees better."""
    return -((math.log10(settings["rate"]) + 1.5) ** 2) - (math.log2(settings["leaves"]) - 3) ** 2 / 4 + rung


def walk(search, space=SPACE, written=WRITTEN, rungs=3, seed=1, came=None):
    """All waves of a search and what they wanted."""
    steps, going = [], waves(search, space, written, rungs, seed)
    wanted = next(going)
    while True:
        steps.append(wanted)
        try:
            wanted = going.send({one.number: came(one) if came else Came(value_of(one.settings, one.rung)) for one in wanted})
        except StopIteration:
            return steps


def numbers(wave):
    return [one.number for one in wave]


def test_what_was_not_drawn_is_none_of_the_choices():
    """Not even one of None."""
    space = {
        "leaf": Dimension(choice=["newton", "gradient"]), "least": Dimension(choice=[None, 20], when={"leaf": ["gradient"]}),
        "l2": Dimension(low=0.5, high=5, when={"least": [None]}),
    }  # fmt: skip
    steps = walk(Search(trials=30, batch=10, halving=0), space, {"leaf": "newton"}, rungs=1, came=lambda one: Came(0.5))
    drawn = [one.settings for wave in steps for one in wave if one.number]
    assert {settings["leaf"] for settings in drawn} == {"newton", "gradient"}
    assert all(("l2" in settings) == ("least" in settings and settings["least"] is None) for settings in drawn)
    assert any("l2" in settings for settings in drawn)


def test_of_every_length_the_best_third_of_all_so_far_goes_on():
    values = {number: number / 100 for number in range(1, 19)}
    steps = walk(Search(trials=18, batch=9), came=lambda one: Came(values[one.number]))
    assert [(numbers(wave), wave[0].rung) for wave in steps] == [
        ([*range(1, 10)], 2), ([7, 8, 9], 1), ([9], 2),
        ([*range(10, 19)], 0), ([13, 14, 15, 16, 17, 18], 1), ([16, 17, 18], 2),
    ]  # fmt: skip
    falling = walk(Search(trials=18, batch=9), came=lambda one: Came(-values[one.number]))
    assert [numbers(wave) for wave in falling] == [[*range(1, 10)], [2, 3, 4], [2], [*range(10, 19)]], "none of the second batch"


@pytest.mark.parametrize("value", [0.0, 99.0])
def test_the_ranker_as_written_is_trained_to_its_end_at_once_and_compared_with_none(value):
    first, *later = walk(Search(trials=18, batch=9), came=lambda one: Came(value if one.number == 1 else one.number / 100))
    assert [(one.number, one.rung) for one in first] == [(1, 2), *((number, 0) for number in range(2, 10))]
    assert [numbers(wave) for wave in later[:2]] == [[7, 8, 9], [9]]
    assert [numbers(wave) for wave in walk(Search(trials=1))] == [[1]]


def test_the_first_draw_is_the_ranker_as_written_and_others_are_in_their_ranges():
    steps = walk(Search(trials=30, batch=10, halving=0), rungs=1)
    drawn = [one.settings for wave in steps for one in wave]
    assert drawn[0] == WRITTEN
    for settings in drawn:
        assert ("bound" in settings) == (settings["leaf"] == ["gradient"])
        assert all(SPACE[path].holds(value) for path, value in settings.items())
        assert type(settings["leaves"]) is int
        assert float(f"{settings['rate']:.4g}") == settings["rate"]
    assert {json.dumps(settings["leaf"]) for settings in drawn} == {'"newton"', '["gradient"]'}


@pytest.mark.parametrize(("sampler", "space"), [("tpe", SPACE), ("random", SPACE), ("cmaes", NUMBERS)])
def test_the_same_seed_draws_the_same_and_another_one_others(sampler, space):
    written = {path: WRITTEN[path] for path in space if path in WRITTEN}
    search = Search(trials=24, batch=6, sampler=sampler)
    assert walk(search, space, written) == walk(search, space, written)
    assert walk(search, space, written) != walk(search, space, written, seed=2)


@pytest.mark.parametrize("sampler", ["tpe", "cmaes"])
def test_what_was_told_is_learned_from(sampler):
    def mean_of_last(name):
        steps = walk(Search(trials=48, batch=6, sampler=name, halving=0), NUMBERS, {"rate": 0.1, "leaves": 31}, rungs=1)
        last = [value_of(one.settings) for wave in steps[-3:] for one in wave]
        return sum(last) / len(last)

    assert mean_of_last(sampler) > mean_of_last("random") + 0.5


def test_a_training_that_ended_is_not_asked_for_again_and_goes_on_by_its_value():
    def came(one):
        return Came(10.0 - one.number, ended=one.number in (1, 2, 5))

    steps = walk(Search(trials=9), came=came)
    assert [numbers(wave) for wave in steps] == [[*range(1, 10)], [3, 4]], "2 had ended, and is the best in the end"


def test_surely_better_is_by_so_many_standard_errors_of_the_paired_difference():
    written = np.array([0.1, 0.5, np.nan, 0.3])
    better = np.array([0.2, 0.5, np.nan, 0.5])
    errors = 0.1 / (0.1 / 3**0.5)
    assert surely_better(better, written, errors * 0.99)
    assert not surely_better(better, written, errors * 1.01)
    assert surely_better(better, written, 0)
    assert not surely_better(written, written, 0)
    assert surely_better(np.array([0.2]), np.array([0.1]), 5.0), "of one query nothing is known"


def test_what_cannot_be_trained_is_told_as_worse_than_all():
    def came(one):
        return Came(None) if one.settings["rate"] > 0.05 else Came(value_of(one.settings, one.rung))

    steps = walk(Search(trials=60, batch=6), came=came)
    rates = [one.settings["rate"] for wave in steps for one in wave if wave[-1].rung == 0]
    assert sum(rate > 0.05 for rate in rates[-20:]) < sum(rate > 0.05 for rate in rates[:20])
    assert [numbers(wave) for wave in walk(Search(trials=12, batch=6), came=lambda _: Came(None))] == [
        [*range(1, 7)],
        [*range(7, 13)],
    ]


IN_ANOTHER_PROCESS = """
import json
from tests.tasks.training.test_search import walk
from tasks.config.search_section import Search
print(json.dumps([[(one.number, one.settings) for one in wave] for wave in walk(Search(trials=24, batch=8))]))
"""


def test_another_process_draws_the_same():
    """Whatever the seed of its hashes."""
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", IN_ANOTHER_PROCESS], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    here = [[(one.number, one.settings) for one in wave] for wave in walk(Search(trials=24, batch=8))]
    assert json.loads(done.stdout) == json.loads(json.dumps(here))


@pytest.mark.parametrize("n", [20, 63, 64, 81, 100])
@pytest.mark.parametrize("rise", [0.1, 0.3, 0.7])
def test_one_query_that_differs_is_one_standard_error_and_not_above_it(n, rise):
    written = np.full(n, 0.5)
    better = written.copy()
    better[3] += rise
    assert not surely_better(better, written, 1)
    better[5] += rise
    assert surely_better(better, written, 1)
    assert not surely_better(written, written, 0)
