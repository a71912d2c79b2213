"""Logs as tables: pages, ranks, ways of counting clicks, and what was typed."""

import re
from datetime import timedelta

import numpy as np
import polars as pl
import pytest

from ltr.data.queries import Queries
from tasks.config.click_labels import ClickLog
from tasks.data.check_log import log_findings
from tasks.data.click_log import implausible, open_log, results_in, shown_results, typed_queries, why_crowded
from tasks.data.clicks import click_tables
from tasks.records import DataError


def write(path, rows, columns=("session", "query", "document", "click", "rank")):
    pl.DataFrame(rows, schema=list(columns), orient="row").write_csv(path)
    return path


def test_a_document_shown_twice_on_a_page_was_shown_once_where_it_first_stood(tmp_path):
    rows = [("s", "q", "a", "2", 1), ("s", "q", "b", "1,3", 2), ("s", "q", "a", "", 3), ("t", "q", "a", "", 1)]
    log = ClickLog(log=write(tmp_path / "l.csv", rows), more={"debiased": {"debias": True}})
    shown = shown_results(log, *open_log(log)).sort("document")
    assert shown.select("document", "rank", "impressions", "last", "all").rows() == [("a", 1, 2, 0, 1), ("b", 2, 1, 1, 1)]


def test_a_page_without_a_result_is_no_impression(tmp_path):
    """Neither an empty document nor one that polars wrote as an empty text."""
    text = 'session,query,document,click\ns,q,a,1\ns,q,b,\nt,q,,\nu,q,"",\nv," ",a,1\n'
    (tmp_path / "l.csv").write_text(text)
    log = ClickLog(log=tmp_path / "l.csv")
    frame, page = open_log(log)
    frame, notes = results_in(log, frame, page)
    assert notes == ["3 rows without query or document left out"]
    assert shown_results(log, frame, page).sort("document").select("query", "document", "impressions", "last").rows() == [
        ("q", "a", 1, 1),
        ("q", "b", 1, 0),
    ]
    tables, told = click_tables(log)
    assert (tables["click"]["impressions"].sum(), told) == (2, notes)
    judged = Queries(np.zeros((2, 1)), np.zeros(2), np.array([0, 2]), ids=np.array([b"q"]), documents=np.array([b"a", b"b"]))
    said = [finding.text for finding in log_findings(log, [judged])]
    assert "1 session, 1 page, 2 impressions, 1 click (1 the last of their page)" in said
    assert notes[0] in said
    (tmp_path / "l.csv").write_text("session,query,document,click\nt,q,,\n")
    assert [f.text for f in log_findings(log, [judged])] == ["no row of it has a query and a document"]


def test_a_page_without_a_result_has_no_rank(tmp_path):
    text = "session,query,document,click,rank\ns,q,a,1,1\ns,q,b,,2\nt,z,,,\n"
    (tmp_path / "l.csv").write_text(text)
    log = ClickLog(log=tmp_path / "l.csv")
    frame, page = open_log(log, ranks=True)
    assert shown_results(log, results_in(log, frame, page)[0], page)["rank"].sort().to_list() == [1, 2]
    (tmp_path / "l.csv").write_text(text.replace("s,q,b,,2", "s,q,b,,"))
    with pytest.raises(DataError, match=r"l\.csv, line 3: rank is empty"):
        open_log(log, ranks=True)
    (tmp_path / "l.csv").write_text("session,query,document,click\nt,z,,\n")
    with pytest.raises(DataError, match=r"l\.csv: no row of it has a query and a document"):
        click_tables(log)


def test_ids_that_pandas_made_floats_join_as_whole_numbers(tmp_path):
    """It does as soon as one page has no result."""
    ids = {"session": [1.0, 1.0, 2.0], "query": ["q", "q", "z"], "document": [7.0, 8.0, float("nan")], "click": [1, 0, 0]}
    pl.DataFrame(ids).write_parquet(tmp_path / "l.parquet")
    log = ClickLog(log=tmp_path / "l.parquet")
    frame, notes = results_in(log, *open_log(log))
    assert (frame.collect()["document"].to_list(), notes) == (["7", "8"], ["1 row without query or document left out"])
    pl.DataFrame({**ids, "session": [1.0, float("nan"), 2.0]}).write_parquet(tmp_path / "l.parquet")
    with pytest.raises(DataError, match=r"l\.parquet, row 2: session is empty"):
        open_log(log)


def test_clicks_of_a_log_are_the_same_with_tabs_and_with_commas(tmp_path):
    rows = [("s", '7" tv', "a", "1", 1), ("s", '7" tv', "b", None, 2), ("t", '"exact"', 'say "x"', "1", 1), ("t", "", "", "", None)]
    frames = []
    for suffix, mark in (("csv", ","), ("tsv", "\t")):
        frame = pl.DataFrame(rows, schema=["session", "query", "document", "click", "rank"], orient="row")
        frame.write_csv(tmp_path / f"l.{suffix}", separator=mark)
        frames.append(open_log(ClickLog(log=tmp_path / f"l.{suffix}"))[0].collect())
    assert frames[0].equals(frames[1])
    assert frames[1]["query"].to_list() == ['7" tv', '7" tv', '"exact"', None]


def test_columns_may_have_the_names_that_are_used_inside(tmp_path):
    rows = [("s", "q", "a", 2), ("s", "q", "b", 1)]
    path = write(tmp_path / "l.csv", rows, ("last_of_page", "rank", "order", "clicked"))
    log = ClickLog(log=path, session="last_of_page", query="rank", document="order", click="clicked")
    shown = shown_results(log, *open_log(log)).sort("document")
    assert shown.select("query", "document", "last", "all").rows() == [("q", "a", 1, 1), ("q", "b", 0, 1)]


def test_what_was_typed_most_often(tmp_path):
    rows = [("1", "Q", "cheap"), ("2", "q ", "cheap"), ("3", "q", "dear")]
    shown = [(*row, document, 0) for row in rows for document in "ab"]
    log = ClickLog(log=write(tmp_path / "l.csv", shown, ("session", "query", "text", "document", "click")), text="text")
    assert typed_queries(log).rows() == [("q", "cheap", 3)]


def test_pages_with_a_rank_twice_are_traced_to_what_tells_pages_apart(tmp_path):
    log = ClickLog(log=tmp_path / "l.csv")
    assert why_crowded(log) == "a session that asks a query twice needs clicks.interaction"
    assert "each page has a query_id of its own" in why_crowded(log.model_copy(update={"log": tmp_path / "ubi_events.ndjson"}))
    assert "clicks.interaction is another for each page" in why_crowded(log.model_copy(update={"interaction": "page"}))


def test_a_missing_column_is_named_with_what_is_near(tmp_path):
    log = ClickLog(log=write(tmp_path / "l.csv", [("s", "q", "a", 0)], ("session", "query", "documnt", "click")))
    with pytest.raises(DataError, match="no column 'document'; did you mean documnt"):
        open_log(log)


@pytest.mark.parametrize(("wrong", "shown"), [(-1, "-1"), (0.5, "0.5"), (float("inf"), "inf")])
def test_a_number_that_is_no_order_of_a_click_is_refused(tmp_path, wrong, shown):
    """A CSV's is refused by its form; a Parquet column of numbers could be taken for no click."""
    path = tmp_path / "l.parquet"
    rows = {"session": ["s", "s", "s"], "query": ["q"] * 3, "document": ["a", "b", "c"], "click": [1.0, None, wrong]}
    pl.DataFrame(rows).write_parquet(path)
    with pytest.raises(
        DataError, match=rf"l\.parquet, row 3: click {shown}: must be the order of a click, 1 or more, or 0 for none"
    ):
        open_log(ClickLog(log=path))
    pl.DataFrame(rows | {"click": [1.0, None, 0.0]}).write_parquet(path)
    assert open_log(ClickLog(log=path))[0].collect()["_order"].to_list() == [1, 0, 0]


def test_a_decimal_that_is_no_order_of_a_click_is_refused(tmp_path):
    """As databases write numbers."""
    path, rows = tmp_path / "l.parquet", {"session": ["s", "s"], "query": ["q"] * 2, "document": ["a", "b"]}
    for wrong in ("-1.00", "0.50"):
        clicks = pl.Series(["1.00", wrong]).cast(pl.Decimal(10, 2))
        pl.DataFrame({**rows, "click": clicks}).write_parquet(path)
        with pytest.raises(DataError, match=rf"l\.parquet, row 2: click {float(wrong):g}: must be the order of a click"):
            open_log(ClickLog(log=path))


@pytest.mark.parametrize("session", [None, ""])
def test_a_row_without_a_session_is_refused_and_no_page_is_made_of_such_rows(tmp_path, session):
    rows = [("s", "q", "a", 1, 1), (session, "q", "a", 1, 1), (session, "q", "a", 0, 2)]
    with pytest.raises(DataError, match=r"l\.csv, line 3: session is empty: every row must name its session"):
        open_log(ClickLog(log=write(tmp_path / "l.csv", rows)))
    pl.DataFrame(rows, schema=["session", "query", "document", "click", "rank"], orient="row").write_parquet(tmp_path / "l.parquet")
    with pytest.raises(DataError, match=r"l\.parquet, row 2: session is empty"):
        open_log(ClickLog(log=tmp_path / "l.parquet"))


def test_whole_numbers_are_read_as_tools_write_them_among_missing_ones(tmp_path):
    rows = [("s", "q", "a", "1.0", "1.0"), ("s", "q", "b", None, "2.0"), ("s", "q", "c", "2", "3")]
    read = open_log(ClickLog(log=write(tmp_path / "l.csv", rows)), ranks=True)[0].collect()
    assert read.select("_order", "_rank").rows() == [(1, 1), (0, 2), (2, 3)]
    numbers = pl.read_csv(tmp_path / "l.csv").with_columns(pl.col("rank").cast(pl.Float64))
    numbers.write_parquet(tmp_path / "l.parquet")
    assert open_log(ClickLog(log=tmp_path / "l.parquet"), ranks=True)[0].collect()["_rank"].to_list() == [1, 2, 3]
    numbers.with_columns(rank=pl.lit(1.5)).write_parquet(tmp_path / "l.parquet")
    with pytest.raises(DataError, match=r"l\.parquet, row 1: rank '1.5': must be the rank a result was shown at"):
        open_log(ClickLog(log=tmp_path / "l.parquet"), ranks=True)


def test_a_column_of_lists_is_refused(tmp_path):
    rows = {"session": ["s"], "query": ["q"], "document": ["a"], "click": [[1, 3]]}
    pl.DataFrame(rows).write_parquet(tmp_path / "l.parquet")
    with pytest.raises(DataError, match=r"l\.parquet: column 'click' holds List\(Int64\): a log must hold texts and numbers"):
        open_log(ClickLog(log=tmp_path / "l.parquet"))


@pytest.mark.parametrize("column", ["session", "interaction", "query", "document", "click", "rank"])
def test_a_column_of_durations_is_refused(tmp_path, column):
    rows = {"session": ["s"], "interaction": ["i"], "query": ["q"], "document": ["a"], "click": [1], "rank": [1]}
    pl.DataFrame(rows | {column: [timedelta(seconds=7)]}).write_parquet(tmp_path / "l.parquet")
    with pytest.raises(DataError, match=rf"l\.parquet: column '{column}' holds Duration\(.*\): a log must hold texts and numbers"):
        open_log(ClickLog(log=tmp_path / "l.parquet", interaction="interaction"), ranks=True)


@pytest.mark.parametrize(("line", "said"), [
    (b"s,q,c", "line 3: 3 fields; the header has 5"),
    (b"s,q,c,0,3,1", "line 3: 6 fields; the header has 5"),
    (b"s,q\xfc,c,0,3", "line 3: 's,q\ufffd,c,0,3': not UTF-8; convert the file to UTF-8"),
    (b"s,q,c,99999999999999999999,3", "line 3: click '99999999999999999999': must be the order of the clicks"),
    (b"s,q,c,\xd9\xa3,3", "line 3: click '\u0663': must be the order of the clicks"),
])  # fmt: skip
def test_a_line_that_is_none_is_refused(tmp_path, line, said):
    """A line that was cut short is no result without a click, and one with a comma too many no other columns."""
    path = tmp_path / "l.csv"
    path.write_bytes(b"session,query,document,click,rank\ns,q,a,1,1\n" + line + b"\ns,q,b,,2\n")
    with pytest.raises(DataError, match=re.escape(f"l.csv, {said}")):
        open_log(ClickLog(log=path))


def test_a_quote_is_a_letter_in_a_log_of_tabs(tmp_path):
    path = tmp_path / "l.tsv"
    path.write_text('session\tquery\tdocument\tclick\ns\t5" pipe\ta\t1\ns\t"\tb\t\n')
    assert open_log(ClickLog(log=path))[0].collect()["query"].to_list() == ['5" pipe', '"']
    path.write_text('session\tquery\tdocument\tclick\ns\t5" pipe\ta\t1\ns\t"\tb\n')
    with pytest.raises(DataError, match=r"l\.tsv, line 3: 3 fields; the header has 4"):
        open_log(ClickLog(log=path))


def test_the_last_click_of_a_page_may_be_on_what_is_no_document(tmp_path):
    (tmp_path / "l.csv").write_text("session,query,document,click\ns,q,a,1\ns,q,,2\nt,q,a,1\nt,q,b,\n")
    log = ClickLog(log=tmp_path / "l.csv")
    frame, page = open_log(log)
    shown = shown_results(log, results_in(log, frame, page)[0], page).sort("document")
    assert shown.select("document", "impressions", "last", "all").rows() == [("a", 2, 1, 2), ("b", 1, 0, 0)]


def test_sessions_that_pandas_made_floats_are_the_same(tmp_path):
    rows = {"query": ["q"] * 2, "document": ["a", "b"], "click": [1, 0]}
    read = []
    for kind in (pl.Int64, pl.Float64):
        pl.DataFrame({"session": pl.Series([12, 13], dtype=kind), **rows}).write_parquet(tmp_path / "l.parquet")
        read.append(
            open_log(ClickLog(log=tmp_path / "l.parquet"))[0]
            .select(pl.col("session").cast(pl.String))
            .collect()
            .to_series()
            .to_list()
        )
    assert read == [["12", "13"]] * 2


def test_three_clicks_where_others_have_none_are_a_persons():
    assert not implausible(pl.DataFrame({"results": [10] * 9, "clicks": [0] * 8 + [3]})).any()
