"""UBI as it lies: places from 0 and from 1, times of both kinds, nulls, answers in place of impressions; and what is wrong in words."""

import json
from pathlib import Path

import polars as pl
import pytest

from tasks.config.click_labels import ClickLog
from tasks.data import ubi
from tasks.data.click_log import open_log, shown_results
from tasks.data.ubi import IMPRESSIONS, is_ubi, ubi_log
from tasks.records import DataError


def event(action, query, document, place, time, **more):
    about = {"object": {"object_id": document}, "position": {"ordinal": place}}
    return {"action_name": action, "query_id": query, "timestamp": time, "session_id": "s", "event_attributes": about, **more}


LINES = [
    {"index": {"_index": "ubi_queries"}},
    {"query_id": "1", "client_id": "c", "user_query": "TV", "query_response_hit_ids": None, "timestamp": "2024-12-10T00:00:00Z"},
    event("impression", "1", "a", 0, "2024-12-10T00:00:01.5Z", application="shop"),
    event("impression", "1", "b", 1, "2024-12-10T00:00:01Z", application="shop"),
    event("click", "1", "b", 1, 1733788805000, application="shop"),
    event("add_to_cart", "1", "a", 0, "2024-12-10T00:00:03Z", application="shop"),
    # places from 1, which only the answer tells; a session that attributes name
    {"query_id": "2", "client_id": "c2", "user_query": "tv", "query_response_hit_ids": ["x", "y", 7]},
    {**event("click", "2", "y", 2, "1733788806000", application="other"), "session_id": None, "client_id": "c2"},
    # an answer that nobody did anything with; a search; null attributes; no text
    {"query_id": "3", "client_id": "c3", "user_query": "radio", "query_response_hit_ids": ["r"]},
    {"action_name": "search", "query_id": "3", "timestamp": 1, "event_attributes": None},
    {"action_name": "click", "query_id": "3", "timestamp": None, "event_attributes": None},
    event("click", "9", "z", 4, 1, application="other"),
    {**event("click", "1", "z", None, 2, application="shop"), "query_id": None},
]  # fmt: skip


@pytest.fixture
def log(workplace):
    def write(lines=LINES):
        (workplace / "ubi.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return workplace / "ubi.ndjson"

    return write


def test_queries_and_events_are_a_session_log(log):
    path, notes = ubi_log(log())
    assert pl.read_parquet(path).rows() == [
        ("2", "2", "tv", "x", 0, 1),
        ("2", "2", "tv", "y", 1, 2),
        ("2", "2", "tv", "7", 0, 3),
        ("3", "3", "radio", "r", 0, 1),
        ("s", "1", "TV", "a", 1, 1),
        ("s", "1", "TV", "b", 2, 2),
    ]
    assert notes == [
        "UBI: 3 queries, 9 events; read: click 5, impression 2, add_to_cart 1",
        "other actions, not read: search 1",
        "2 pages without impressions: its query's answer (query_response_hit_ids) is what it showed",
        "ranks count from 0 in 'shop'",
        "ranks count from 1 in 'other'",
        "1 event without a query_id: left out",
        "1 event without an object_id: left out",
        "1 event of queries whose text no line gives: left out",
    ]
    assert ubi_log(log()) == (path, notes)


def test_a_page_is_of_one_session_however_its_events_name_it(log):
    """Impressions by a server that knows the session, a click by a browser that knows the client; and a page that nobody acted on is not of
    all the years of its client."""
    lines = [
        {"query_id": "1", "client_id": "c", "user_query": "tv", "query_response_hit_ids": ["a", "b"]},
        {"query_id": "2", "client_id": "c", "user_query": "radio", "query_response_hit_ids": ["r"]},
        event("impression", "1", "a", 0, 1, client_id="c"),
        event("impression", "1", "b", 1, 1, client_id="c"),
        event("click", "1", "b", 1, 2, client_id="c"),
    ]
    del lines[-1]["session_id"]
    assert pl.read_parquet(ubi_log(log(lines))[0]).rows() == [
        ("2", "2", "radio", "r", 0, 1), ("s", "1", "tv", "a", 0, 1), ("s", "1", "tv", "b", 1, 2),
    ]  # fmt: skip
    clients_alone = [{name: value for name, value in line.items() if name != "session_id"} for line in lines]
    assert pl.read_parquet(ubi_log(log(clients_alone))[0])["session"].unique().to_list() == ["c"]


def test_answers_say_where_places_begin_whatever_strays(log):
    """One place 0 among many from 1; a document that stands twice in an answer is where it first stood, and a null is none."""
    answer = ["a", "a", None, "b", "c"]
    asked = [{"query_id": str(k), "client_id": "c", "user_query": f"q{k}", "query_response_hit_ids": answer} for k in range(5)]
    clicks = [event("click", str(k), "b", 4, 10 + k, application="shop") for k in range(4)]
    rows = pl.read_parquet(ubi_log(log([*asked, *clicks, event("click", "4", "c", 0, 99, application="shop")]))[0])
    assert rows.filter(query="q0").select("document", "click", "rank").rows() == [("a", 0, 1), ("b", 1, 4), ("c", 0, 5)]
    assert rows.filter(query="q4", click=1).select("document", "rank").rows() == [("c", 5)]


def test_a_second_page_of_results_is_counted_whichever_id_it_has(log):
    """Under the id of its query the second answer is left out; under its own, its first result is taken for the first of all."""
    asked = {"query_id": "1", "user_query": "q", "query_response_hit_ids": ["a", "b"]}
    following = {**asked, "query_response_hit_ids": ["c", "d"]}
    clicks = [event("click", "1", "b", 1, 1, application="shop"), event("click", "1", "d", 3, 2, application="shop")]
    path, notes = ubi_log(log([asked, asked, following, *clicks]))
    assert pl.read_parquet(path).select("document", "rank", "click").rows() == [("a", 1, 0), ("b", 2, 1), ("d", 4, 2)]
    assert notes[-2:] == [
        "1 line with a different answer to a query than before, such as its next page of results: left out",
        "1 result named by clicks alone, by no impression and no answer: counted as shown only where clicked, so that every showing is a click",
    ]
    clicks[1]["query_id"] = "2"
    path, notes = ubi_log(log([asked, {**following, "query_id": "2"}, *clicks]))
    assert pl.read_parquet(path).filter(document="d").select("rank", "click").rows() == [(2, 1)]
    assert notes[-1] == (
        "1 event at another rank than the document has in its query's answer, which counts as the first page of results: the answer's is taken"
    )
    shown = [event("impression", "2", document, place, 1, application="shop") for place, document in enumerate("cd", 2)]
    path, notes = ubi_log(log([asked, {**following, "query_id": "2"}, *shown, *clicks]))
    assert pl.read_parquet(path).filter(document="d").select("rank", "click").rows() == [(4, 1)]
    assert notes[-1] == "ranks count from 0 in 'shop'"


def test_an_event_without_a_time_stays_where_it_is(log):
    asked = {"query_id": "1", "client_id": "c", "user_query": "q", "query_response_hit_ids": ["a", "b"]}
    events = [event("click", "1", "a", 1, 5000, application="shop"), event("click", "1", "b", 2, None, application="shop")]
    rows = pl.read_parquet(ubi_log(log([asked, *events]))[0])
    assert rows.select("document", "click").rows() == [("a", 1), ("b", 2)]


def test_clicks_are_counted_as_those_of_any_log(log):
    written = ClickLog(log=log())
    frame, page = open_log(written, ranks=True)
    assert page == ["session", "interaction", "query"]
    shown = {
        (q, d): (r, n, last)
        for q, d, r, n, last in shown_results(written, frame, page)
        .select("query", "document", "rank", "impressions", "last")
        .rows()
    }
    assert shown["tv", "b"] == (2, 1, 1)
    assert shown["tv", "a"] == (1, 1, 0)
    assert is_ubi(written.log)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (event("click", "1", "a", 0, "yesterday"), 'timestamp "yesterday": a time must be ISO 8601, or milliseconds since 1970'),
        (event("click", "1", "a", 0, True), "timestamp true: a time must be"),
        (event("click", "1", "a", 0, float("nan")), "timestamp NaN: a time must be"),
        (event("click", "1", "a", 0, float("inf")), "timestamp Infinity: a time must be"),
        (event("click", "1", "a", -1, 1), "position.ordinal -1: a rank must be a whole number, 0 or more"),
        (event("click", "1", "a", "first", 1), 'position.ordinal "first": a rank must be'),
        (event("click", "1", "a", 2**63, 1), "position.ordinal 9223372036854775808: a rank must be"),
        (
            {"query_id": "9", "user_query": "tv", "query_response_hit_ids": "a,b"},
            'query_response_hit_ids "a,b": it must be a list of ids',
        ),
        ({"query": "tv"}, "a line of UBI must have an action_name, or a query_id and a user_query"),
    ],
)
def test_a_wrong_line_is_named(log, line, says):
    with pytest.raises(DataError) as caught:
        ubi_log(log([*LINES, line]))
    assert f"ubi.ndjson, line {len(LINES) + 1}: " in str(caught.value)
    assert says in str(caught.value)


def test_a_log_without_results_is_refused(log):
    with pytest.raises(DataError, match=r"no event shows or clicks a document of a known query \(actions: search 1\)"):
        ubi_log(log([{"action_name": "search", "query_id": "3", "timestamp": 1}]))


def test_a_real_log(real_data, workplace):
    file = real_data / "esci-ubi" / "ubi_queries_events.ndjson"
    if not file.is_file():
        pytest.skip("no esci-ubi/ubi_queries_events.ndjson")
    path, notes = ubi_log(file)
    table = pl.read_parquet(path)
    assert (table.height, table.filter(pl.col("click") > 0).height, table["rank"].min()) == (2356, 186, 1)
    assert "ranks count from 0 in 'esci_ubi_sample'" in notes


def test_a_query_has_one_text(log):
    again = {"query_id": "1", "client_id": "c", "user_query": "radio"}
    path, notes = ubi_log(log([*LINES, again, again]))
    assert "radio" not in pl.read_parquet(path).filter(pl.col("interaction") == "1")["query"].to_list()
    assert "2 lines with a different text for a query than before: left out" in notes


def _ubi(lines):
    path = Path() / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return ubi._rows(path)[0]


def _event(query, action, document, ordinal, time, app="shop"):
    return {
        "query_id": query,
        "client_id": "c",
        "action_name": action,
        "application": app,
        "timestamp": time,
        "event_attributes": {"object": {"object_id": document}, "position": {"ordinal": ordinal}},
    }


def test_each_application_counts_places_from_its_own_first(workplace):
    """One application counts places from 0, the other from 1."""
    seen = sorted(IMPRESSIONS)[0]
    lines = [{"query_id": q, "user_query": q, "client_id": "c"} for q in ("a", "b")]
    lines += [_event("a", seen, d, k, k, "zero") for k, d in enumerate("xy")] + [
        _event("b", seen, d, k + 1, k, "one") for k, d in enumerate("xy")
    ]
    assert _ubi(lines)["rank"].to_list() == [1, 2, 1, 2]


@pytest.mark.parametrize("answered", [False, True])
def test_an_application_that_changes_how_it_counts_is_told_of(log, answered):
    """Ranks of two pages that count from 1 are wrong by one beside a third that counts from 0, or those of the third are."""
    seen = sorted(IMPRESSIONS)[0]
    lines = [{"query_id": q, "user_query": q, **({"query_response_hit_ids": ["x", "y"]} if answered else {})} for q in "abc"]
    lines += [_event(q, seen, d, k + (q != "c"), k, "shop") for q in "abc" for k, d in enumerate("xy")]
    said = [note for note in ubi_log(log(lines))[1] if "whose ranks are taken" in note]
    pages, other = ("1 page of 3 begins", 0) if answered else ("2 pages of 3 begin", 1)
    assert len(said) == 1
    assert said[0].startswith(f"{pages} at {other} in 'shop', whose ranks are taken to count from {1 - other}: ")
    assert not any("whose ranks are taken" in note for note in ubi_log(log(LINES))[1])


def test_what_is_shown_twice_stays_where_it_first_stood(workplace):
    seen = sorted(IMPRESSIONS)[0]
    lines = [{"query_id": "a", "user_query": "a", "client_id": "c"}]
    lines += [_event("a", seen, "x", 1, 1), _event("a", seen, "y", 2, 2), _event("a", seen, "x", 9, 3)]
    found = _ubi(lines)
    assert dict(zip(found["document"], found["rank"], strict=False)) == {"x": 1, "y": 2}
