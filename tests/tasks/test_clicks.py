"""Click labels by hand, and their join with judged documents."""

import numpy as np
import polars as pl
import pytest

from ltr.queries import Queries
from tasks.clicks import attach, click_table
from tasks.config import ClickLog
from tasks.ingest import DataError

LOG = """session	topic	interaction	doc	click_orders
1	7	1	a	1
1	7	1	b	2,3
1	7	1	c	
1	7	2	a	
1	7	2	b	1
2	7	1	a	1
2	7	1	d	
3	8	1	x	2
3	8	1	y	1
"""
COLUMNS = {"query": "topic", "document": "doc", "interaction": "interaction", "click": "click_orders"}


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log.tsv").write_text(LOG)
    return ClickLog(log=tmp_path / "log.tsv", **COLUMNS)


def judged():
    return Queries(
        np.arange(10).reshape(5, 2), np.array([1.0, 1, 1, 0, 2]), np.array([0, 4, 5]),
        ids=np.array([b"7", b"8"]), documents=np.array([b"a", b"b", b"c", b"z", b"x"]),
    )  # fmt: skip


def test_last_click_over_impressions(log):
    table = {(q, d): (n, k, rate) for q, d, n, k, rate in click_table(log).rows()}
    assert table == {
        ("7", "a"): (3, 1, 1 / 3),  # clicked twice, the last of its page once
        ("7", "b"): (2, 2, 1.0),
        ("7", "c"): (1, 0, 0.0),
        ("7", "d"): (1, 0, 0.0),
        ("8", "x"): (1, 1, 1.0),
        ("8", "y"): (1, 0, 0.0),
    }


def test_a_whole_session_as_one_page_and_fewest_impressions(log):
    whole = click_table(log.model_copy(update={"interaction": None}))
    assert whole.filter(pl.col("document") == "a")["impressions"].item() == 2
    assert click_table(log.model_copy(update={"min_impressions": 2})).height == 2


def test_a_prior_draws_rare_pairs_to_the_mean(log):
    plain, drawn = (click_table(log.model_copy(update={"prior": prior})) for prior in (0.0, 3.0))
    mean = plain["last_clicks"].sum() / plain["impressions"].sum()
    want = (plain["last_clicks"] + 3 * mean) / (plain["impressions"] + 3)
    assert drawn["click"].to_list() == pytest.approx(want.to_list())
    assert (drawn["click"] - mean).abs().max() < (plain["click"] - mean).abs().max()


def test_numbers_as_clicks(tmp_path):
    pl.DataFrame({"session": [1, 1], "query": [7, 7], "document": ["a", "b"], "click": [1, 2]}).write_parquet(
        tmp_path / "l.parquet"
    )
    assert click_table(ClickLog(log=tmp_path / "l.parquet"))["click"].to_list() == [0.0, 1.0]


def test_never_shown_is_missing_and_shown_without_click_is_zero(log):
    queries, facts = attach(judged(), click_table(log))
    assert queries.sources["click"][[0, 1, 2, 4]].tolist() == pytest.approx([1 / 3, 1, 0, 1])
    assert np.isnan(queries.sources["click"][3])
    assert (facts.labelled, facts.above_zero, facts.pairs, facts.impressions, facts.last_clicks) == (4, 3, 1, 7, 4)


def test_nothing_matches(log):
    table = click_table(log).with_columns(pl.lit("elsewhere").alias("query"))
    with pytest.raises(DataError, match=r"no document of the click log is in the data.*there: elsewhere/a.*here: 7/a, 7/b, 7/c"):
        attach(judged(), table)
    with pytest.raises(DataError, match="have no id"):
        attach(Queries(np.zeros((1, 1)), np.ones(1), np.array([0, 1])), table)


def test_wrong_logs(log, tmp_path):
    with pytest.raises(DataError, match="no column 'interacton'; did you mean interaction"):
        click_table(log.model_copy(update={"interaction": "interacton"}))
    with pytest.raises(DataError, match="no such file"):
        click_table(log.model_copy(update={"log": tmp_path / "none.tsv"}))
    (tmp_path / "bad.tsv").write_text(LOG.replace("2,3", "yes"))
    with pytest.raises(DataError, match=r"bad.tsv, line 3: click 'yes'"):
        click_table(log.model_copy(update={"log": tmp_path / "bad.tsv"}))


def test_missing_boolean_and_quoted_clicks(tmp_path):
    def rates(frame, name="l.parquet"):
        (frame.write_csv if name.endswith("csv") else frame.write_parquet)(tmp_path / name)
        return click_table(ClickLog(log=tmp_path / name))["click"].to_list()

    page = {"session": [1, 1], "query": ["q, x", "q, x"], "document": ["a", "b"]}
    assert rates(pl.DataFrame({**page, "click": [float("nan"), float("nan")]})) == [0.0, 0.0]
    assert rates(pl.DataFrame({**page, "click": [True, False]})) == [1.0, 0.0]
    assert rates(pl.DataFrame({**page, "click": [0, 1]}), "l.csv") == [0.0, 1.0]


def test_two_queries_of_a_session_are_two_pages(tmp_path):
    pl.DataFrame({"session": [1, 1], "query": ["p", "q"], "document": ["a", "a"], "click": [1, 2]}).write_parquet(
        tmp_path / "l.parquet"
    )
    assert click_table(ClickLog(log=tmp_path / "l.parquet"))["click"].to_list() == [1.0, 1.0]


def test_ids_in_any_script_join():
    data = Queries(
        np.zeros((1, 1)), np.ones(1), np.array([0, 1]), ids=np.array(["q é".encode()]), documents=np.array(["д".encode()])
    )
    table = pl.DataFrame({"query": ["q é"], "document": ["д"], "impressions": [2], "last_clicks": [1], "click": [0.5]})
    assert attach(data, table)[0].sources["click"].tolist() == [0.5]
