"""What the microscope saw: figures, lost causes, and what is kept."""

from dataclasses import replace

from tasks.evidence.microscope import Inspections, inspection_figures
from tests.tasks.evidence.samples import INSPECTION, INSPECTIONS


def test_figures_of_a_ranker():
    assert set(inspection_figures(INSPECTION)) == {"agreement", "partners", "top-labels", "moves"}
    assert set(inspection_figures(replace(INSPECTION, agreement={}))) == {"partners", "top-labels", "moves"}
    assert "share of the top 3" in inspection_figures(INSPECTION)["top-labels"]


def test_lost_causes_are_escaped_counted_and_an_artifact(tmp_path):
    many = replace(INSPECTION, lost=INSPECTION.lost * 25)
    text = Inspections((many,)).section()
    assert text.count("q&lt;1&gt;") == 20
    assert "The first 20 of 25" in text
    (artifact,) = INSPECTIONS.artifacts(tmp_path)
    assert artifact.name == "lost-causes-graded.csv"
    assert Inspections(()).section() == ""
    assert Inspections(()).figures() == {}
