"""What lands in MLflow at the end of a run, and the table that Prefect shows."""

import json
from dataclasses import replace
from pathlib import Path

from tasks.evidence.significance import Mean, Standing, Standings
from tasks.report.publish import _metrics, _tags, best_keys, description, markdown_table, report_page
from tasks.tracking.store import REFIT
from tests.tasks.evidence.samples import CERTIFICATES, CHALLENGE, GUARANTEES
from tests.tasks.report.test_outcome import outcome  # noqa: F401  (a fixture)

ROWS = {"a": Standing("a", {"map": Mean(0.5, 0.1, 9, {})}), "b": Standing("b", {"map": Mean(None, None, 0, {})})}
TABLE = Standings(("map",), ROWS, ())


def test_the_parent_run_has_the_best_rankers_numbers_and_every_rankers_means(outcome):  # noqa: F811
    made = replace(outcome, standings=TABLE, evidence=(CHALLENGE, GUARANTEES, CERTIFICATES))
    assert _metrics(made) == {**made.models["a"].metrics, "a/test_map": 0.5}
    tags = _tags(made)
    assert tags["best"] == "a"
    assert json.loads(tags["lambdaflow.chosen"]) == made.keys
    assert tags["champion"] == "search 2: better"
    assert tags["guarantee.graded"] == "yes"
    assert tags["optimality.linear"] == "optimum"
    assert str(report_page(made)).endswith("reports/r-01234567/report.html")


def test_what_the_evidence_says_has_a_digest_but_for_what_a_first_time_changed(outcome):  # noqa: F811
    found, same = (_tags(replace(outcome, evidence=(CHALLENGE, one)))["lambdaflow.found"] for one in (GUARANTEES, GUARANTEES))
    other = _tags(replace(outcome, evidence=(replace(CHALLENGE, verdict="same"), GUARANTEES)))["lambdaflow.found"]
    assert found == same == other
    assert _tags(replace(outcome, evidence=(CERTIFICATES,)))["lambdaflow.found"] != found
    assert "lambdaflow.found" not in _tags(replace(outcome, evidence=(CHALLENGE,)))


def test_the_description_has_table_verdicts_and_page(outcome):  # noqa: F811
    told = description(replace(outcome, standings=TABLE, evidence=(CERTIFICATES, CHALLENGE)), Path("p/report.html"))
    assert told.startswith("Best on validation MAP: a.\n\n| ranker | MAP |")
    assert "\n- optimum of NDCG: linear optimum\n- graded, version 2" in told
    assert "better than the champion (version 1)\n\nReport: `p/report.html`" in told


def test_the_best_model_is_the_one_of_all_data_or_one_a_fold(outcome):  # noqa: F811
    assert best_keys(outcome, {}) == ["a0", "a1"]
    assert best_keys(outcome, {REFIT: json.dumps({"b": "rb"})}) == ["a0", "a1"]
    assert best_keys(outcome, {REFIT: json.dumps({"a": "ra"})}) == ["ra"]


def test_the_table_in_markdown():
    assert markdown_table(TABLE) == "| ranker | MAP |\n|---|---|\n| a | 0.5000 |\n| b | – |"
