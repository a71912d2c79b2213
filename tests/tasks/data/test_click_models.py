"""Click models of a log: compared, chosen, and as labels."""

import re

import numpy as np
import polars as pl
import pytest

from ltr.clicks.click_model import Settings
from ltr.clicks.models import MODELS, fit
from tasks.config.click_labels import ClickLog
from tasks.data.click_models import compare_models, fit_model, model_tables, position_notes, written_models
from tasks.data.clicks import click_tables
from tasks.data.log_pages import log_pages
from tasks.records import DataError
from tests.click_logs import layout, users


def written(path, pages):
    """The pages as a log."""
    pl.DataFrame({
        "session": pages.of_page(),
        "query": [f"q{q}" for q in pages.query[pages.pair]],
        "document": [f"d{p:04}" for p in pages.pair],
        "rank": pages.rank,
        "click": pages.click.astype(int),
    }).write_parquet(path)  # fmt: skip
    return path


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    pages = layout(6, 8, 3000, 5)
    return ClickLog(
        log=written(tmp_path_factory.mktemp("log") / "log.parquet", users("pbm", pages).simulate(pages, 1)), model="pbm"
    )


def test_models_are_compared_on_sessions_that_are_held_out(log):
    read = log_pages(log)
    compared = compare_models(read, 4.0, 0.2, 1)
    assert compared.sessions + compared.held_out == 3000
    assert 480 < compared.held_out < 720
    assert {one.name for one in compared.models} == set(MODELS)
    assert compared.winner in ("pbm", "ubm")
    assert compared.sentence().startswith(f"{compared.winner} predicts clicks best: log-likelihood -0.")
    found = written_models(compared, fit_model(read, "pbm", 4.0), read.notes)
    assert found["winner"] == compared.winner
    assert found["models"]["rctr"]["worse"]
    assert len(found["models"]["dcm"]["perplexity_by_rank"]) == 5


def test_the_table_is_the_models(log):
    read = log_pages(log)
    fitted, model = fit_model(read, "dcm", 2.0), fit(read.pages, "dcm", Settings(prior=2.0))
    assert fitted.table["attraction"].to_list() == model.attraction.tolist()
    assert fitted.table["deviation"].to_list() == model.deviation.tolist()
    assert fitted.table["impressions"].sum() == 15_000
    assert fitted.table["clicks"].sum() == read.pages.click.sum()
    assert fitted.looks == pytest.approx(model.examination(read.pages).tolist())
    assert fitted.sentence().startswith("dcm, examination probability at ranks 1, 2, …: 1.00 ")


def test_one_ranking_a_query(tmp_path):
    pages = layout(6, 8, 3000, 5)
    fixed = pages.select(np.arange(3000) < 1)
    same = type(pages)(pages.offsets, np.tile(fixed.pair, 3000), pages.rank, pages.click, pages.query)
    log = ClickLog(log=written(tmp_path / "log.parquet", users("pbm", pages).simulate(same, 1)), model="ubm")
    compared = compare_models(log_pages(log), 4.0, 0.2, 1)
    assert [text.partition(":")[0] for text in compared.left_out] == ["pbm", "ubm"]
    assert position_notes(log_pages(log).pages) == []
    with pytest.raises(DataError, match=r"log\.parquet: ubm: no two ranks are tied"):
        model_tables(log)


def test_a_rank_of_its_own_is_told(tmp_path):
    rows = [("s1", "a", 1, 1), ("s1", "b", 2, 0), ("s2", "b", 1, 0), ("s2", "a", 2, 1), ("s3", "c", 5, 1)]
    frame = pl.DataFrame(rows, schema=["session", "document", "rank", "click"], orient="row").with_columns(query=pl.lit("q"))
    frame.write_parquet(tmp_path / "log.parquet")
    (note,) = position_notes(log_pages(ClickLog(log=tmp_path / "log.parquet")).pages)
    assert note.startswith(
        "no tie between rank 5 and the others (documents clicked at one and shown at the other, in both directions); there, pbm"
    )


def test_too_few_sessions(tmp_path):
    pl.DataFrame({"session": ["s"], "query": ["q"], "document": ["a"], "rank": [1], "click": [1]}).write_parquet(
        tmp_path / "l.parquet"
    )
    with pytest.raises(DataError, match=r"1 session cannot be split into a held-out share of 0\.2 and others to fit to"):
        compare_models(log_pages(ClickLog(log=tmp_path / "l.parquet")), 4.0, 0.2, 1)


def test_labels_that_models_give_stand_beside_those_that_are_counted(log):
    more = {"best": {"model": "best"}, "counted": {"clicks": "all"}, "rare": {"model": "pbm", "min_impressions": 2000}}
    tables, notes = click_tables(ClickLog(log=log.log, model="pbm", more=more))
    assert set(tables) == {"click", "best", "counted", "rare"}
    read = log_pages(log)
    assert tables["click"].columns == tables["counted"].columns
    assert tables["click"]["rate"].to_list() == fit(read.pages, "pbm").attraction.tolist()
    assert tables["rare"].height == 0
    assert any(
        re.match(
            r"pbm, examination probability at ranks 1, 2, …: 1\.00 ±0\.0\d, 0\.\d\d ±0\.0\d, .*; attractiveness is shrunk", note
        )
        for note in notes
    )
    assert any("predicts clicks best" in note for note in notes)


def test_attractiveness_comes_nearer_to_the_truth_than_rates(log):
    pages = layout(6, 8, 3000, 5)
    truth = pl.DataFrame({"document": [f"d{p:04}" for p in range(48)], "truth": users("pbm", pages).attraction})
    tables, _ = click_tables(ClickLog(log=log.log, more={"pbm": {"model": "pbm"}}))
    found = {name: table.join(truth, on="document") for name, table in tables.items()}
    of = {name: np.corrcoef(both["rate"], both["truth"])[0, 1] for name, both in found.items()}
    assert of["pbm"] > of["click"] + 0.05
