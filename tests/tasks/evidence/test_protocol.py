"""What every kind of evidence offers: nothing, until it says otherwise."""

from tasks.config.reading import parse
from tasks.evidence import Champion, Guarantee, Segments
from tasks.evidence.protocol import Evidence, Found, Gathering, asked_for, render
from tasks.records import Cell, CellResult, Fold, Trained

RANKERS = {"a": {"kind": "ranksvm"}, "b": {"kind": "least_squares"}}
ASKED = {"champion": {"name": "m"}, "segments": {"baseline": "a"}, "guarantee": {"baseline": "a"}}
CONFIG = parse({"data": {"files": "x"}, "rankers": RANKERS, **ASKED})


class Silent(Found):
    def section(self):
        return ""


def test_what_changes_the_model_in_use_comes_last():
    assert [type(evidence) for evidence in asked_for(CONFIG)] == [Guarantee, Segments, Champion]


def test_found_evidence_adds_nothing_by_itself(tmp_path):
    found = Silent()
    assert (found.tags(), found.sentences(), found.column(), found.figures, found.artifacts(tmp_path)) == ({}, [], None, {}, [])


def test_evidence_takes_the_choice_as_it_is_and_sees_the_first_fold():
    def trained(ranker, fold):
        return Trained(Cell("x", ranker, fold, {}, {}, Fold("", "", ""), (), {}), CellResult(f"{ranker}{fold}", "", {}, 0.0))

    chosen = tuple(trained(ranker, fold) for ranker in "ab" for fold in (0, 1))
    run = Gathering(CONFIG, (), chosen, chosen, None, None)
    assert Evidence.choose(CONFIG.segments, run) == chosen
    assert [t.result.key for t in run.on_first_fold(["b"])] == ["b0"]
    assert [path.split("/")[-2] for path in run.values_of("a")] == ["a0", "a1"]


def test_templates_escape():
    assert render("{{ name }}", name="<b>") == "&lt;b&gt;"
