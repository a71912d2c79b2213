"""The log doctor by hand, and of simulated users."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import polars as pl
import pytest

from ltr.data.queries import Queries
from tasks.config.click_labels import ClickLog
from tasks.data.check_log import check_log, log_findings
from tasks.records import DataError
from tasks.store.datasets import keep_queries

JUDGED = Queries(
    np.zeros((4, 1)), np.array([1.0, 0, 2, 0]), np.array([0, 3, 4]),
    ids=np.array([b"shoes", b"hats"]), documents=np.array([b"a", b"b", b"z", b"h"]),
)  # fmt: skip


def page(session, query, shown, clicked="", **more):
    """A result page: a letter a document, from rank 1 on; `clicked` in the order of the clicks."""
    return [
        {"session": session, "query": query, "document": d, "rank": r, "click": clicked.find(d) + 1, **more}
        for r, d in enumerate(shown, 1)
    ]


@pytest.fixture
def said(tmp_path):
    """What the doctor says of some rows."""

    def look(rows, sets=(JUDGED,), **keys):
        pl.DataFrame(rows).write_parquet(tmp_path / "log.parquet")
        found = log_findings(ClickLog(log=tmp_path / "log.parquet", **keys), sets)
        assert {finding.subject for finding in found} == {"log.parquet"}
        return {level: [f.text for f in found if f.level == level] for level in ("note", "warning", "error")}

    return look


GOOD = [*page(1, "Shoes", "abc", "ab"), *page(2, "shoes", "bac", "b"), *page(3, "shoes", "abc", "b"), *page(4, "coats", "xy", "x")]


def test_a_good_log(said):
    found = said(GOOD)
    assert not found["warning"]
    assert found["note"][0] == "4 sessions, 4 pages, 11 impressions, 5 clicks (4 the last of their page), ranks 1–3"
    assert found["note"][1] == "click-through rate by rank, 1: 75.0%, 2: 50.0%, 3: 0.0%"
    assert found["note"][2].startswith(
        "2 of 3 clicked documents shown at several ranks: position bias can be separated from relevance at ranks 1–2"
    )
    assert found["note"][3] == (
        "1 of 2 judged queries in the log; 2 of 4 judged documents shown (50.0%); 2 of 5 shown documents judged (40.0%), "
        "or 2 of 3 (66.7%) of judged queries"
    )


def test_several_data_sets_are_covered_together(said):
    other = replace(JUDGED, ids=np.array([b"coats", b"caps"]), documents=np.array([b"x", b"y", b"z", b"h"]))
    assert said(GOOD, (JUDGED, other))["note"][-1].startswith("2 of 4 judged queries in the log; 4 of 8 judged documents shown")


def test_positions_that_cannot_be_told(said):
    fixed = [*page(1, "shoes", "ab", "a"), *page(2, "shoes", "ab", "b")]
    assert said(fixed)["warning"] == [
        "0 of 2 clicked documents shown at several ranks: position bias cannot be separated from relevance (all clicks): "
        "click labels stay biased, and debias cannot correct them"
    ]
    below = [*GOOD, *page(9, "shoes", "lmnop", "p")]
    assert any("at ranks 1–2, not with rank 5 (all clicks)" in text for text in said(below)["note"])
    bare = [{k: v for k, v in row.items() if k != "rank"} for row in GOOD]
    found = said(bare)
    assert "no column 'rank' (clicks.rank): position bias cannot be estimated" in found["note"]
    assert found["note"][0].endswith("(4 the last of their page)")
    wrong = [{**row, "rank": row["rank"] - 1} for row in GOOD]
    assert (
        "row 1: rank '0': must be the rank a result was shown at, 1 to 999999: position bias cannot be estimated"
        in said(wrong)["warning"][0]
    )


def test_repeated_rows_and_pages_in_one(said):
    found = said([*GOOD, *GOOD[:2]])
    assert found["warning"] == [
        "2 of 13 rows repeat a document on the same page: it counts as shown once, at its first rank, and as clicked if any of its rows is"
    ]
    again = [*GOOD, *page(1, "Shoes", "de", "d")]
    assert found["note"] == said(GOOD)["note"]
    assert said(again)["warning"] == [
        "1 page of 4 with several documents at one rank: a session that asks a query twice needs clicks.interaction"
    ]
    numbered = [{**row, "interaction": k >= len(GOOD)} for k, row in enumerate(again)]
    assert said(numbered)["warning"][0] == (
        "column 'interaction' is ignored: a page is identified by session and query only (clicks.interaction: interaction reads it)"
    )
    assert not said(numbered, interaction="interaction")["warning"]


def test_clicks_without_an_order(said):
    marked = [{**row, "click": int(row["click"] > 0)} for row in GOOD]
    assert "on 1 of 4 pages several results share the last click; each counts as the last" in said(marked)["note"]
    none = [{**row, "click": 0} for row in GOOD]
    assert said(none)["warning"] == ["no result is clicked: every label is 0 (clicks.click names the column 'click')"]


def test_clicks_on_what_was_not_shown(said):
    """Each is an impression to a label that counts; where no row has a rank, the log is one without ranks."""
    unshown = [{**row, "rank": None} for row in page(9, "shoes", "c", "c")]
    for rows, every in (([*GOOD, *unshown], 6), ([*({**row, "click": 0} for row in GOOD), *unshown], 1)):
        warned = [text for text in said(rows)["warning"] if "nothing says" in text]
        assert len(warned) == 1
        number = f"1 of {every} clicked result{'s' if every > 1 else ''}"
        assert warned[0].startswith(f"{number} without a rank, so nothing says that the result was shown: ")
    for rows in (GOOD, [{**row, "rank": None} for row in GOOD], [*GOOD, {**unshown[0], "click": 0}]):
        assert not any("nothing says" in text for text in said(rows)["warning"])


def test_a_click_whose_row_has_no_rank_is_on_what_another_row_shows(said):
    """Tools write a row for what was shown and another for the click on it."""
    clicks = [{**row, "rank": None} for row in GOOD if row["click"]]
    assert not any("nothing says" in text for text in said([*GOOD, *clicks])["warning"])


@pytest.mark.parametrize("ranks", [[1, 2], b"\xff", timedelta(seconds=7)])
def test_a_column_of_ranks_that_holds_something_else_is_told_of(said, ranks):
    assert any("position bias cannot be estimated" in text for text in said([{**row, "rank": ranks} for row in GOOD])["warning"])


def test_bots(said):
    letters = [chr(0x4E00 + k) for k in range(400)]
    busy = [{**row, "click": row["rank"]} for row in page("crawler", "shoes", letters[:60])]
    found = said([{**row, "session": str(row["session"])} for row in [*GOOD, *busy]])
    assert found["warning"][0] == (
        "1 session with implausibly many results or clicks, 92.3% of all clicks (session 'crawler': 60 results, 60 clicks; "
        "the median session has 3 and 1): leave programs out of the log"
    )
    idle = page(7, "shoes", letters)
    assert said([*GOOD, *idle])["warning"][0].startswith("1 session with implausibly many results or clicks, 0.0% of all clicks")


def test_data_without_ids_and_a_log_that_is_not_there(said, tmp_path):
    with pytest.raises(DataError, match="have no id"):
        said(GOOD, (replace(JUDGED, documents=None),))
    with pytest.raises(DataError, match="no such file"):
        log_findings(ClickLog(log=tmp_path / "none.tsv"), [JUDGED])


def test_a_log_is_looked_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(GOOD).write_csv("log.csv")
    log, name = ClickLog(log="log.csv"), keep_queries(JUDGED)
    found = check_log.fn(log, [name])
    assert found == log_findings(log, [JUDGED])
    monkeypatch.setattr("tasks.data.check_log.log_findings", None)
    assert check_log.fn(log, [name]) == found


def test_an_empty_log(tmp_path):
    (tmp_path / "log.csv").write_text("session,query,document,click\n")
    (found,) = log_findings(ClickLog(log=tmp_path / "log.csv"), [JUDGED])
    assert (found.level, found.text) == ("error", "it has no rows")


def test_documents_without_a_label_are_not_judged(said):
    unjudged = replace(JUDGED, labels=np.array([1.0, np.nan, 2, 0]))
    assert said(GOOD, (unjudged,))["note"][3].startswith("1 of 2 judged queries in the log; 1 of 3 judged documents shown (33.3%)")


def test_judged_queries_that_a_log_cannot_tell_apart_are_named(said):
    hashed = replace(JUDGED, ids=np.array([b"aB1", b"Ab1"]))
    assert said(GOOD, (hashed,))["warning"] == [
        "2 of 2 judged queries differ from another only in letter case, spaces or Unicode's form (such as 'Ab1' and 'aB1'), so each gets the "
        "clicks of both, even if one is used for training and the other for testing: ids of different queries must differ in more than that"
    ]
    other = replace(JUDGED, ids=np.array([b"Shoes", b"caps"]))  # in another part of the data
    assert said(GOOD, (JUDGED, other))["warning"][0].startswith("2 of 4 judged queries differ")
    assert not said(GOOD, (JUDGED, JUDGED))["warning"]  # the same query is one
