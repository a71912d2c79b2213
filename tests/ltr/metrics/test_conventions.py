"""Conventions: what is not among the choices is refused, and those of other tools are about measures that exist."""

from dataclasses import fields
from typing import get_args, get_type_hints

import pytest

from ltr.metrics.conventions import PRESETS, Conventions
from ltr.metrics.measure import MEASURES


def test_a_choice_that_is_none_lists_those_there_are():
    with pytest.raises(ValueError, match="ties 'random' is unknown; choose from: expected, stable"):
        Conventions(ties="random")
    named = {name: get_args(hint) for name, hint in get_type_hints(Conventions).items() if get_args(hint)}
    assert set(named) == {"ties", "empty", "gain", "unlabelled", "short", "ap_base"}
    for name, known in named.items():
        for choice in known:
            assert getattr(Conventions(**{name: choice}), name) == choice
        with pytest.raises(ValueError, match=f"conventions: {name} 'x' is unknown; choose from: {', '.join(known)}"):
            Conventions(**{name: "x"})


def test_the_defaults_are_the_papers():
    """Expected ties, undefined queries left out, relevant from 2 of 0–4, exponential gains, and R below AP."""
    assert {field.name: field.default for field in fields(Conventions)} == {
        "ties": "expected", "empty": "skip", "threshold": 2, "max_label": 4, "gain": "exp2", "unlabelled": "zero", "short": "plain",
        "ap_base": "relevant",
    }  # fmt: skip


def test_presets_differ_from_the_defaults_and_from_one_another():
    assert all({tool.ndcg, *tool.uncut, *tool.of_measure} <= set(MEASURES) for tool in PRESETS.values())
    assert Conventions() not in [tool.conventions for tool in PRESETS.values()]
    assert len({str(tool) for tool in PRESETS.values()}) == len(PRESETS)


@pytest.mark.parametrize(
    ("tool", "rule", "choice"),
    [
        ("trec", "ties", "docid"), ("trec", "gain", "linear"), ("sklearn", "ties", "expected"), ("sklearn", "gain", "linear"),
        ("lightgbm", "empty", "one"), ("lightgbm", "ap_base", "cutoff"), ("xgboost", "short", "size"), ("letor4", "short", "zero"),
        ("letor3", "short", "plain"), ("ranklib", "empty", "zero"), ("ranklib", "short", "size"),
    ],
)  # fmt: skip
def test_what_the_tools_are_known_for(tool, rule, choice):
    assert getattr(PRESETS[tool].conventions, rule) == choice
