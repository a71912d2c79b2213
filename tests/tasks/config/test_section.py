"""Sections made of the core's dataclasses, near misses of a key, and dotted paths."""

from dataclasses import dataclass, field

import pytest
from pydantic import ValidationError

from tasks.config.reading import parse
from tasks.config.section import Section, add_fields, has, near, near_path, parameters_from, put
from tasks.records import ConfigError


@dataclass(frozen=True)
class Core:
    size: int
    names: tuple[str, ...] = field(default_factory=tuple)
    hidden: float = 0.5

    def __post_init__(self):
        if self.size < 1:
            raise ValueError("size must be at least 1")


class Made(Section):
    core = Core
    extra: str = "x"


add_fields(Made, parameters_from(Core, frozenset({"hidden"})))


def test_a_section_has_the_parameters_and_defaults_and_checks_of_its_core():
    assert list(Made.model_fields) == ["extra", "size", "names"]
    assert Made(size=3).build() == Core(3)
    assert Made(size=3, names=["a"]).build() == Core(3, ("a",))
    with pytest.raises(ValidationError, match="size must be at least 1"):
        Made(size=0)
    with pytest.raises(ValidationError, match="Field required"):
        Made()
    with pytest.raises(ValidationError, match="Extra inputs"):
        Made(size=1, hidden=2.0)


def test_its_own_fields_stay_as_they_are():
    class Own(Section):
        core = Core
        names: tuple[str, ...] = ("own",)

    add_fields(Own, parameters_from(Core), first=True)
    assert list(Own.model_fields) == ["size", "hidden", "names"]
    assert Own(size=1).names == ("own",)


def test_near_misses():
    assert near("learnin_rate") == "; did you mean learning_rate?"
    assert near("validation") == "; did you mean valid?"
    assert near("train_files") == "; did you mean train?"
    assert near("learning") == near("eta") == "; did you mean learning_rate?"
    assert near("n_estimators") == "; did you mean n_trees?"
    assert near("zzzzz") == ""


def test_a_parameter_of_a_term_is_named_where_it_is():
    written = {"objective": [{"cost": "logistic", "weight": 1}, {"cost": "sigmoid"}], "rate": 0.1}
    assert near_path("cost", written) == near_path("cots", written) == "; did you mean objective.0.cost?"
    assert near_path("rat", written) == "; did you mean rate?"
    assert near_path("learnin_rate", written) == near("learnin_rate")
    with pytest.raises(ValueError, match=r"^rankers.a.sweep.cost: there is no such parameter; did you mean objective.0.cost\?$"):
        put(written, "cost", "sigmoid", "rankers.a.sweep")
    with pytest.raises(ValueError, match=r"did you mean objective.1.cost\?$"):
        put(written, "objective.1.costs", "sigmoid", "rankers.a.sweep")


@pytest.mark.parametrize(
    ("path", "given"), [("n_trees", True), ("learning_rate", False), ("max_bins_by_feature", {"price": True}), ("n_leaves", [True])]
)
def test_true_and_false_are_no_numbers(path, given):
    written = {"data": {"generate": {"queries": [20, 10, 10]}}, "rankers": {"a": {"kind": "lambdamart", path: given}}}
    with pytest.raises(ConfigError, match=f"^c: rankers.a: {path}: true and false are not numbers$"):
        parse(written, "c")


def test_true_and_false_where_they_may_stand():
    data = {"generate": {"queries": [20, 10, 10]}}
    found = parse({"data": data, "rankers": {"a": {"kind": "lambdamart", "polish": True}}, "refit": False}, "c")
    assert found.rankers["a"].polish.steps == 1000
    for key in ("scale", "seed", "budget"):
        with pytest.raises(ConfigError, match=f"^c: {key}: true and false are not numbers$"):
            parse({"data": data, "rankers": {"a": {"kind": "lambdamart"}}, key: True}, "c")


def test_paths_reach_into_written_sections():
    written = {"objective": [{"weight": 1}, {"weight": 2}], "rate": 0.1}
    put(written, "objective.1.weight", 5, "rankers.a.sweep")
    put(written, "rate", 0.2, "rankers.a.sweep")
    assert written == {"objective": [{"weight": 1}, {"weight": 5}], "rate": 0.2}
    with pytest.raises(ValueError, match=r"rankers.a.sweep.objective.2.weight: there is no rankers.a.objective.2; .* has 2"):
        put(written, "objective.2.weight", 0, "rankers.a.sweep")
    with pytest.raises(ValueError, match=r"rate.more: rankers.a.rate is 0.2"):
        put(written, "rate.more", 0, "rankers.a.sweep")
    assert has(Made(size=1), "names.0")
    assert not has(Made(size=1), "name")
