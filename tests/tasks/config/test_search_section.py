"""Spaces: what may be drawn, and what is told before anything is trained."""

import pytest

import ltr
from tasks.config.ranker_section import SECTIONS, read_ranker
from tasks.config.reading import parse
from tasks.config.search_section import SPACES, Dimension, Search
from tasks.records import ConfigError

RATE = {"low": 0.01, "high": 1, "log": True}


def of(kind="lambdamart", **given):
    return {"data": {"files": "x"}, "rankers": {"t": {"kind": kind, **given}}}


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ({"learning_rate": {"low": 0, "high": 1, "log": True}}, "learning_rate: low 0 with log: true; a logarithmic range must begin above 0"),
        ({"learning_rate": {"low": 2, "high": 1}}, "learning_rate: low 2 must be below high 1"),
        ({"learning_rate": {"low": 1}}, "learning_rate: a range must have low and high; a choice must be a list of values"),
        ({"learning_rat": RATE}, "search.space.learning_rat: there is no such parameter; did you mean learning_rate"),
        ({"learning_rate": {**RATE, "hihg": 2}}, "unknown key 'rankers.t.search.space.learning_rate.hihg'; did you mean high?"),
        ({"n_leaves": {"low": 1, "high": 9}}, "search.space.n_leaves: LambdaMART: n_leaves=1 is out of range"),
        ({"n_leaves": {"low": 2.5, "high": 9}}, "search.space.n_leaves: 2.5 to 9; n_leaves is a whole number from 2"),
        ({"leaf": ["newton", "gradiant"]}, "search.space.leaf: input should be 'newton' or 'gradient'"),
        ({"leaf": ["newton"]}, "at least 2 items"),
        ({"leaf": ["newton", "newton"]}, "has a value twice"),
        ({"leaf": {"choice": ["newton", "gradient"], "low": 1}}, "choice and low exclude each other; give one"),
        ({"n_trees": {"low": 2, "high": 9}}, "search.space.n_trees: halving decides how long a trial is trained"),
        ({"learning_rate": {**RATE, "when": {"leaf": "newton"}}}, "'leaf' must be a choice listed before it; choose from: none"),
        ({"leaf": ["newton", "gradient"], "sigma": {**RATE, "when": {"leaf": "x"}}}, "space.sigma.when: leaf is never 'x'"),
    ],
)  # fmt: skip
def test_a_bad_space_is_told_in_one_line(space, said):
    with pytest.raises(ConfigError) as error:
        parse(of(search={"space": space}))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (of(search="aut"), "'aut' is not a search; write auto, or a mapping of space, trials"),
        (of(search={"halving": 1}), "halving: 1 would keep every trial"),
        (of(search={"sampler": "cma"}), "input should be 'tpe', 'random' or 'cmaes'"),
        (of(search={"sampler": "cmaes", "space": {"leaf": ["newton", "gradient"]}}), "cmaes draws numbers, and this is a choice"),
        (of(search={"sampler": "cmaes", "space": {"learning_rate": RATE}}), "cmaes needs two or more parameters"),
        (of("lambdarank", search={"sampler": "cmaes"}), "cmaes draws numbers, and this is a choice"),
        (of("least_squares", search={"sampler": "cmaes"}), "cmaes needs two or more parameters"),
        (of("adarank", search={"sampler": "cmaes"}), "rankers.t: search: adarank has no space of its own; write search.space"),
        (of(search="auto", sweep={"n_leaves": [4, 8]}), "search: a ranker with sweep cannot be searched"),
        (of(search={"halving": 3}, polish=True), "lambdamart cannot go on from where it was, as it is polished"),
        (of("ranksvm", search={"halving": 3}), "ranksvm cannot go on from where it was, as it does not learn step by step"),
        (of("column", feature="f", search="auto"), "column has no space of its own; write search.space"),
        ({**of(), "budget": "10m"}, "budget: 600 s is set but no ranker is searched"),
        ({**of(search="auto"), "budget": "ten"}, "budget: 'ten' is not a time; write it as 90s, 10m or 1h30m"),
        ({**of(search="auto"), "budget": 0}, "budget: input should be greater than 0"),
        ({**of(search="auto"), "expect": {"values": {"t": {"test_map": 1}}}}, "expect.values: t is searched"),
        ({**of(search={"trials": 10_000}), "rankers": {n: {"kind": "lambdamart", "search": {"trials": 6000}} for n in "ab"}}, "12,000 cells"),
    ],
)  # fmt: skip
def test_a_bad_search_is_told_in_one_line(written, said):
    with pytest.raises(ConfigError) as error:
        parse(written)
    assert said in str(error.value)


@pytest.mark.parametrize(("written", "seconds"), [("10m", 600), ("90s", 90), ("1h30m", 5400), ("1.5h", 5400), (7, 7)])
def test_a_budget_is_a_time(written, seconds):
    config = parse({**of(search="auto"), "budget": written})
    assert config.budget == seconds
    assert parse(config.model_dump(mode="json")) == config


def test_auto_is_trees_a_linear_net_one_of_two_layers_and_their_average():
    config = parse({"data": {"files": "x"}, "rankers": "auto"})
    kinds = {"trees": "lambdamart", "linear": "lambdarank", "net": "lambdarank", "average": "average"}
    assert {name: ranker.kind for name, ranker in config.rankers.items()} == kinds
    assert config.searched == config.alone == ["trees", "linear", "net"]
    assert config.rankers["average"].on == ("trees", "linear", "net")
    assert config.rankers["trees"].build().n_trees == ltr.LambdaMART().n_trees
    assert "hidden" in config.rankers["net"].space
    assert "hidden" not in config.rankers["linear"].space
    assert config.lengths("linear") == [11, 33, 100]
    assert [point.settings for point in config.cells("net")] == [{}]
    assert parse(config.model_dump(mode="json")) == config


@pytest.mark.parametrize("kind", SPACES)
def test_the_space_of_a_kind_fits_the_kind_and_holds_what_is_written(kind):
    section = SECTIONS[kind](kind=kind, search="auto")
    assert section.space
    inside = {path for path, value in section.settings.items() if section.space[path].holds(value)}
    left_out = {"ridge", "min_docs_in_leaf"}
    assert inside == set(section.space) - left_out, "all but ridge 0, which no logarithmic range has, and what is left to the data"


def test_what_is_drawn_only_where_a_choice_was_made():
    space = {"leaf": ["newton", "gradient"], "largest_leaf": {**RATE, "when": {"leaf": "gradient"}}}
    section = SECTIONS["lambdamart"](kind="lambdamart", search={"space": space})
    assert section.settings == {"leaf": "newton"}
    assert section.space["largest_leaf"].when == {"leaf": ["gradient"]}


def test_whole_numbers_where_the_parameter_is_one():
    space = {"n_leaves": {"low": 2, "high": 9}, "sigma": {"low": 1, "high": 2}}
    section = SECTIONS["lambdamart"](kind="lambdamart", search={"space": space})
    assert [dimension.whole for dimension in section.space.values()] == [True, False]


def test_whole_numbers_where_what_lies_deeper_is_one():
    """They were drawn as fractions, with which nothing could be trained."""
    members = [{"kind": "lambdamart"}, {"kind": "lambdarank", "hidden": 4}]
    space = {
        "of.0.n_leaves": {"low": 3, "high": 15}, "of.1.hidden": {"low": 2.0, "high": 8, "log": True}, "of.0.learning_rate": {"low": 1, "high": 2},
        "of.0.max_bins_by_feature": [{}, {"f0": 9}], "seed": {"low": 1, "high": 9},
    }  # fmt: skip
    found = read_ranker({"kind": "average", "of": members, "search": {"space": space}}).space
    assert [name for name, dimension in found.items() if dimension.whole] == ["of.0.n_leaves", "of.1.hidden", "seed"]
    bins = {"learning_rate": {"low": 1, "high": 2}, "max_bins_by_feature.f0": {"low": 4, "high": 60}}
    trees = {"kind": "lambdamart", "max_bins_by_feature": {"f0": 9}, "search": {"space": bins}}
    assert [dimension.whole for dimension in read_ranker(trees).space.values()] == [False, True]


def test_draws_that_are_polished_are_trained_to_their_end():
    """Halved ones went on from polished leaves, under the key of the plain training."""
    space = {"polish": [None, {"measure": "ndcg_10"}], "learning_rate": {"low": 0.03, "high": 0.5}}
    config = parse({"data": {"files": "x"}, "rankers": {"t": {"kind": "lambdamart", "search": {"space": space}}}})
    assert config.lengths("t") == [None]
    assert config.resolved()["rankers"]["t"]["search"]["halving"] == 0
    with pytest.raises(ValueError, match="lambdamart cannot go on from where it was, as it is polished; set halving: 0"):
        parse({"data": {"files": "x"}, "rankers": {"t": {"kind": "lambdamart", "search": {"space": space, "halving": 2}}}})


def test_lengths_are_shares_of_the_whole():
    assert Search().lengths(300) == [33, 100, 300]
    assert Search(halving=2, rungs=2).lengths(9) == [4, 9]
    assert Search().lengths(2) == [1, 2]
    assert Search(halving=0).lengths(300) == [300]
    config = parse({**of(search="auto"), "length": 0.1})
    assert config.lengths("t") == [6, 17, 50]
    assert parse(of(search="auto", polish=True)).lengths("t") == [None]


def test_settings_near_an_end_of_their_range_are_told():
    config = parse(of(search={"space": {"learning_rate": RATE, "n_leaves": {"low": 2, "high": 9}, "leaf": ["newton", "gradient"]}}))
    assert config.at_ends("t", {"learning_rate": 0.0101, "n_leaves": 9, "leaf": "newton"}) == [
        "learning_rate 0.0101 is at the smallest value of its range, 0.01", "n_leaves 9 is at the largest value of its range, 9",
    ]  # fmt: skip
    assert config.at_ends("t", {"learning_rate": 0.1}) == []
    lowest = {"learning_rate": 0.01, "n_leaves": 5}
    assert config.at_ends("t", lowest, [lowest, {"learning_rate": 0.05, "n_leaves": 5}]) == [], "a draw from within does as well"
    assert config.at_ends("t", lowest, [lowest, {**lowest, "learning_rate": 0.0101}]) != []
    shares = parse(of(search={"space": {"query_share": {"low": 0.5, "high": 1.0}}}))
    assert shares.at_ends("t", {"query_share": 1.0}) == [], "there is no larger share"
    assert shares.at_ends("t", {"query_share": 0.5}) != []
    drawn = parse({"data": {"files": "x"}, "rankers": {"t": {"kind": "ranksvm"}}, "sweep": {"C": [1, 2, 3]}, "plot_by": "C"})
    assert drawn.at_ends("t", {"C": 1}) == []
    assert drawn.model_copy(update={"plot_by": None}).at_ends("t", {"C": 1}) == ["C 1 is the smallest tried"]
    whole = parse({"data": {"files": "x"}, "rankers": {"t": {"kind": "least_squares"}}, "sweep": {"ridge": [0, 1, 100]}})
    assert whole.at_ends("t", {"ridge": 0}) == [], "there is no smaller one"
    assert whole.at_ends("t", {"ridge": 100}) == ["ridge 100 is the largest tried"]


def test_positions():
    assert Dimension(low=0.01, high=1, log=True).position(0.1) == pytest.approx(0.5)
    assert Dimension(low=1, high=3).position(2) == 0.5
    assert Dimension(choice=["a", "b", "c"]).position("b") == 0.5


@pytest.mark.parametrize(
    ("objective", "drawn"),
    [
        ([{}], False),
        ([{"cost": "logistic"}], True),
        ([{"cost": "logistic_near", "measure": "map"}], True),
        ([{"cost": "sigmoid"}], False),
        ([{"cost": "logistic", "construction": "ranknet"}], False),
        ([{"cost": "logistic"}, {"measure": "map", "weight": 0.1}], False),
    ],
)
def test_a_pair_cost_is_drawn_where_one_is_written(objective, drawn):
    """What the data settle is not drawn beside what it would come to."""
    trees = {"kind": "lambdamart", "objective": objective, "search": "auto", "gain": "least_squares", "leaf": "gradient"}
    section = parse({"data": {"files": "x"}, "rankers": {"t": trees}}).rankers["t"]
    assert ("objective.0.cost" in section.space) == drawn
