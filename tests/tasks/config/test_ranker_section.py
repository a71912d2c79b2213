"""A section for every kind of ranker: its parameters and defaults are the core's."""

from dataclasses import replace

import pytest

import ltr
from ltr.objectives.terms import settled
from ltr.rankers.base import parameters_of
from tasks.config.ranker_section import SECTIONS, Conventions, Polish, read_conventions, read_ranker

REQUIRED = {"column": {"feature": "f1"}}
MEMBERS = {"of": [{"kind": "lambdamart", "n_trees": 7}, {"kind": "ranksvm"}]}


@pytest.mark.parametrize("kind", [kind for kind in ltr.KINDS if kind != "average"])
def test_a_section_builds_the_ranker_that_its_defaults_are(kind):
    core, given = ltr.KINDS[kind], REQUIRED.get(kind, {})
    section = SECTIONS[kind](kind=kind, **given)
    assert section.build() == core(**given)
    own = {"kind", "train_share", "polish", "sweep", "search", "select", "on", "best"}
    assert set(type(section).model_fields) - own == set(parameters_of(core)) - {"conventions"}
    rules = ltr.Conventions(threshold=1)
    assert section.model(rules) == replace(core(**given), conventions=rules)
    assert read_ranker(section.model_dump(mode="json")) == section


def test_conventions_are_read_as_they_are_written():
    rules = Conventions(ties="stable", threshold=1)
    assert read_conventions(rules.model_dump(mode="json")) == ltr.Conventions(ties="stable", threshold=1)


def test_terms_and_schedules():
    term = {"measure": "cndcg", "weight": {"start": 0.1, "kind": "linear", "eta": 0.01}, "pairs": "same_label"}
    built = SECTIONS["lambdamart"](kind="lambdamart", objective=[{"measure": "ndcg"}, term]).build()
    assert built.objective == (ltr.Term(), ltr.Term("cndcg", ltr.Schedule(0.1, "linear", 0.01), "same_label"))


@pytest.mark.parametrize("kind", ["lambdamart", "lambdarank"])
@pytest.mark.parametrize("written", ["map", ["map"], [{"measure": "map"}]])
def test_a_measures_name_is_an_objective(kind, written):
    assert settled(SECTIONS[kind](kind=kind, objective=written).build().objective) == settled([ltr.Term("map")])


def test_what_can_be_polished():
    assert SECTIONS["lambdamart"](kind="lambdamart", polish=True).polish == Polish()
    for kind, given, rule in (
        ("column", {"feature": "f1"}, "polish: column: it has no weights that can be moved freely"),
        ("combination", {}, "polish: combination: it has no weights"),
        ("lambdamart", {"monotone": {"f": 1}}, "polish: lambdamart: leaves that move freely do not stay monotone"),
        ("ranksvm", {"polish": {"measure": "errors"}}, "lower 'errors' is better, but this measure must be maximised"),
        ("ranksvm", {"polish": {"epsilon": 1e-9}}, "the limit is 1,000,000; raise epsilon or delta"),
    ):
        with pytest.raises(ValueError, match=rule):
            SECTIONS[kind](**{"kind": kind, "polish": True, **given})


def test_the_members_of_an_average_are_sections_too():
    section = read_ranker({"kind": "average", **MEMBERS, "copies": 2})
    assert section.build() == ltr.Average((ltr.LambdaMART(n_trees=7), ltr.RankSVM()), copies=2)
    assert read_ranker(section.model_dump(mode="json")) == section
    assert read_ranker({"kind": "average", "of": {"kind": "ranksvm"}}).build() == ltr.Average(ltr.RankSVM())
    weighed = read_ranker({"kind": "average", **MEMBERS, "weights": [2, 0.5]})
    assert weighed.build() == ltr.Average((ltr.LambdaMART(n_trees=7), ltr.RankSVM()), weights=(2, 0.5))
    assert read_ranker(weighed.model_dump(mode="json")) == weighed
    assert read_ranker({"kind": "average", **MEMBERS, "selection": 16, "select_on": "map"}).build().selection == 16
    with pytest.raises(ValueError, match=r"weights=.*must be a number, 0 or more, for each of the 2"):
        read_ranker({"kind": "average", **MEMBERS, "weights": [2]})
    for told in ({"sweep": {"C": [1]}}, {"polish": True}, {"train_share": 0.5}):
        with pytest.raises(ValueError, match=f"{next(iter(told))} of a ranksvm: it belongs beside `of`"):
            read_ranker({"kind": "average", "of": {"kind": "ranksvm", **told}})
    with pytest.raises(ValueError, match="of"):
        read_ranker({"kind": "average"})
    with pytest.raises(ValueError, match="'average' found using 'kind' does not match"):
        read_ranker({"kind": "average", "of": {"kind": "average", "of": {"kind": "ranksvm"}}})


def test_ways_to_take_position_bias_out_of_clicks():
    written = {"kind": "lambdamart", "unbiased": {"kind": "ipw", "propensities": [1, 0.5], "positions": "rank"}}
    assert read_ranker(written).build() == ltr.LambdaMART(unbiased=ltr.Unbiased("ipw", "rank", propensities=(1, 0.5)))
    assert read_ranker({"kind": "lambdamart", "unbiased": "pairwise"}).build() == ltr.LambdaMART(unbiased="pairwise")
    assert read_ranker({"kind": "lambdamart", "unbiased": None}) == read_ranker({"kind": "lambdamart"})
    assert read_ranker(read_ranker(written).written()) == read_ranker(written)
    assert read_ranker({"kind": "lambdarank", "unbiased": "dla"}).build() == ltr.LambdaRank(unbiased="dla")
    for wrong, rule in (
        ("cascade", "unbiased.kind"),
        ("dla", "learns together with a net"),
        ({"kind": "ipw", "regularisation": 1}, "ipw has no regularisation"),
    ):
        with pytest.raises(ValueError, match=rule):
            read_ranker({"kind": "lambdamart", "unbiased": wrong})


def test_several_measures_to_stop_by_and_features_that_may_meet():
    section = SECTIONS["lambdamart"](kind="lambdamart", stop_on=["ndcg_10", "map"], interactions=[["f1", "f2"], ["f3"]])
    assert section.build() == ltr.LambdaMART(stop_on=("ndcg_10", "map"), interactions=(("f1", "f2"), ("f3",)))
    assert read_ranker(section.model_dump(mode="json")) == section
    with pytest.raises(ValueError, match="lower 'errors' is better, but this measure must be maximised"):
        SECTIONS["lambdamart"](kind="lambdamart", stop_on=["ndcg_10", "errors"])


def test_a_kind_that_another_process_registered_is_told():
    """A worker of ``--runner processes`` ended with ``KeyError: 'centroids'``."""
    with pytest.raises(
        ValueError, match="the process that trains it knows no kind of ranker 'centroids'; the file that registers it"
    ):
        read_ranker({"kind": "centroids"})
