"""What lands in MLflow at the end of a run, and the table that Prefect shows."""

import json
from dataclasses import replace

from tasks.evidence.significance import Mean, Standing, Standings
from tasks.report.publish import _metrics, _tags, markdown_table, report_page
from tests.tasks.evidence.samples import CERTIFICATES, CHALLENGE, GUARANTEES
from tests.tasks.report.test_outcome import outcome  # noqa: F401  (a fixture)

ROWS = {"a": Standing("a", {"map": Mean(0.5, 0.1, 9, {})}), "b": Standing("b", {"map": Mean(None, None, 0, {})})}
TABLE = Standings(("map",), ROWS, ())


def test_the_parent_run_has_the_best_rankers_numbers_and_every_rankers_means(outcome):  # noqa: F811
    made = replace(outcome, standings=TABLE, evidence=(CHALLENGE, GUARANTEES, CERTIFICATES))
    assert _metrics(made) == {**made.models["a"].metrics, "a/test_map": 0.5}
    tags = _tags(made)
    assert tags["best"] == "a"
    assert json.loads(tags["chosen"]) == made.keys
    assert tags["champion"] == "search 2: better"
    assert tags["guarantee.graded"] == "yes"
    assert tags["optimality.linear"] == "optimum"
    assert str(report_page(made)).endswith("reports/r-01234567/report.html")


def test_the_table_in_markdown():
    assert markdown_table(TABLE) == "| ranker | MAP |\n|---|---|\n| a | 0.5000 |\n| b | – |"
