"""Logs as pages: by hand, with all that is no page left out and counted."""

from pathlib import Path

import polars as pl
import pytest

from tasks.config.click_labels import ClickLog
from tasks.data.log_pages import log_pages
from tasks.data.similar_queries import spellings
from tasks.records import DataError


def page(session, query, shown, clicked="", **more):
    """A result page: a letter a document, from rank 1 on; `clicked` in the order of the clicks."""
    return [
        {"session": session, "query": query, "document": d, "rank": r, "click": clicked.find(d) + 1, **more}
        for r, d in enumerate(shown, 1)
    ]


GOOD = [*page("s1", "Shoes", "abc", "ba"), *page("s2", "shoes ", "bac", "b"), *page("s2", "hats", "ax")]


@pytest.fixture
def of(tmp_path):
    def read(rows, **keys):
        pl.DataFrame(rows).write_parquet(tmp_path / "log.parquet")
        return log_pages(ClickLog(log=tmp_path / "log.parquet", **keys))

    return read


def as_read(found):
    """Pages by session: query, documents and clicks in the order of ranks."""
    names, pages = found.pairs.rows(), found.pages
    return sorted(
        (
            int(found.session[k]),
            names[pages.pair[a]][0],
            "".join(names[p][1] for p in pages.pair[a:b]),
            pages.rank[a:b].tolist(),
            pages.click[a:b].tolist(),
        )
        for k, (a, b) in enumerate(zip(pages.offsets[:-1], pages.offsets[1:], strict=True))
    )


def test_a_good_log(of):
    found = of(GOOD)
    assert found.notes == ()
    assert found.pairs.rows() == [("hats", "a"), ("hats", "x"), ("shoes", "a"), ("shoes", "b"), ("shoes", "c")]
    assert found.pages.query.tolist() == [0, 0, 1, 1, 1]
    assert as_read(found) == [
        (0, "shoes", "abc", [1, 2, 3], [True, True, False]),
        (1, "hats", "ax", [1, 2], [False, False]),
        (1, "shoes", "bac", [1, 2, 3], [True, False, False]),
    ]


def test_queries_are_written_as_in_the_log(of):
    found = of(GOOD)
    assert spellings(found.written).rows() == [("hats", ["hats"]), ("shoes", ["Shoes", "shoes "])]
    assert found.as_written(found.pairs)["query"].to_list() == ["hats", "hats", "Shoes", "Shoes", "Shoes"]


def test_rows_in_another_order_are_the_same_pages(of):
    one, other = of(GOOD), of(GOOD[::-1])
    assert as_read(one) == as_read(other)
    assert one.keys.tolist() == other.keys.tolist()


def test_a_page_of_an_interaction(of):
    rows = [*page("s", "q", "ab", "a", turn=1), *page("s", "q", "ba", "b", turn=2)]
    assert of(rows, interaction="turn").pages.n_pages == 2


def test_sessions_are_held_out_by_their_own_ids(of):
    rows = [row for k in range(400) for row in page(f"s{k}", "q", "ab", "a")]
    found, part = of(rows), of(rows[:200])
    held = found.held_out(0.25, 1)
    assert 60 < held.sum() < 140
    by_key = dict(zip(found.keys[found.session].tolist(), held.tolist(), strict=True))
    assert [by_key[key] for key in part.keys[part.session].tolist()] == part.held_out(0.25, 1).tolist()
    assert (found.held_out(0.25, 2) != held).any()


def test_what_is_no_page_is_left_out_and_counted(of):
    odd = [
        *page("s3", "shoes", "aba", "b"),
        {"session": "s4", "query": "shoes", "document": "z", "rank": None, "click": 1},
        {"session": "s4", "query": "shoes", "document": "y", "rank": None, "click": 0},
        {"session": "s5", "query": "shoes", "document": None, "rank": 1, "click": 0},
        {"session": "s6", "query": "shoes", "document": "a", "rank": 1, "click": 1},
        {"session": "s6", "query": "shoes", "document": "b", "rank": 1, "click": 0},
        {"session": "s7", "query": "shoes", "document": "a", "rank": 101, "click": 0},
    ]
    found = of([*GOOD, *odd])
    assert found.notes == (
        "1 row that repeat a document on the same page: it counts as shown once, at its first rank, and as clicked if any of its rows is",
        "1 result without query or document left out",
        "1 result clicked and not shown (no rank) left out",
        "1 result without a rank left out",
        "1 result below rank 100 left out",
        "1 page of 5 with several documents at one rank left out: a session that asks a query twice needs clicks.interaction",
    )
    assert found.pages.n_pages == 4


def test_rows_of_a_page_without_a_document_repeat_none(of):
    empty = [{**row, "document": None} for row in page("s1", "Shoes", "def")]
    nobody = [{**row, "query": None, "document": "a"} for row in page("s2", "Shoes", "gh")]
    assert of([*GOOD, *empty, *nobody]).notes == ("5 results without query or document left out",)


def test_programs_are_left_out_by_a_rule(of):
    bot = [row for k in range(60) for row in page("bot", f"q{k}", "abcdef", "abcdef")]
    found = of([*GOOD, *page("s8", "q1", "ab", "a"), *bot])
    assert found.notes == (
        "1 session with implausibly many results or clicks left out, with 98.9% of all clicks (session 'bot': 360 results, 360 clicks)",
    )
    assert found.pages.n_pages == 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: {k: v for k, v in row.items() if k != "rank"}, "no column 'rank'"),
        (lambda row: {**row, "rank": row["rank"] - 1}, "rank '0': must be the rank a result was shown at, 1 to 999999"),
        (lambda row: {**row, "click": 0}, "no result is clicked"),
        (lambda row: {**row, "rank": 1}, "no page is left to fit click models to; 3 pages of 3 with several documents at one rank"),
    ],
)
def test_logs_that_tell_nothing(of, change, said):
    with pytest.raises(DataError, match=said):
        of([change(row) for row in GOOD])


def test_clicked_in_one_of_the_rows_that_show_it_is_clicked(workplace):
    pl.DataFrame(
        {"session": ["s"] * 3, "query": ["q"] * 3, "document": ["a", "a", "b"], "rank": [1, 3, 2], "click": [0, 1, 0]}
    ).write_parquet("l.parquet")
    assert log_pages(ClickLog(log=Path("l.parquet"))).pages.click.tolist() == [True, False]
