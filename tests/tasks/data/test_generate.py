"""Generated files go through the same door as a user's own."""

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from ltr.data.synthetic import HISTORY
from tasks.config.data_section import Generate
from tasks.data.generate import generate
from tasks.data.ingest import ingest
from tasks.data.prepare import prepare
from tasks.store.datasets import open_queries

SMALL = Generate(queries=(10, 5, 6), documents=12, features=8, sessions=20)


def test_tables_and_log_are_written_once_and_read_back(workplace):
    data = generate.fn(SMALL)
    stamp = data.train[0].stat().st_mtime_ns
    again = generate.fn(SMALL)
    assert again == data
    assert data.train[0].stat().st_mtime_ns == stamp
    noted = ingest.fn(data.train, data)
    queries = open_queries(prepare.fn(noted.data, data).data)
    assert (queries.n_queries, queries.n_documents, queries.n_features) == (10, 120, 8)
    clicks = queries.sources["click"]
    assert ((clicks >= 0) & (clicks <= 1))[~(clicks != clicks)].all()
    assert (clicks > 0).any()
    log = pl.read_parquet(data.clicks.log)
    assert log.height == (10 + 5 + 6) * 20 * 10
    assert log["session"].n_unique() == 21 * 20


def test_scale_shrinks_queries(workplace):
    data = generate.fn(SMALL, 0.5)
    assert pl.read_parquet(data.train[0])["query"].n_unique() == 5


def test_clicks_of_an_earlier_time_are_features(workplace):
    data = generate.fn(SMALL.model_copy(update={"earlier": 50}))
    table, without = pl.read_parquet(data.train[0]), pl.read_parquet(generate.fn(SMALL).train[0])
    added = [name for name in table.columns if name not in without.columns]
    assert added == list(HISTORY)
    assert table.select(without.columns).equals(without)
    assert 0 < table["clicks_before"].mean() < 1


def test_how_much_users_want_each_document_is_a_label_source(workplace):
    data = generate.fn(SMALL.model_copy(update={"attraction": True, "sessions": 2000}))
    queries = open_queries(prepare.fn(ingest.fn(data.train, data).data, data).data)
    wanted, clicks = queries.sources["attraction"], queries.sources["click"]
    assert ((wanted > 0) & (wanted < 1)).all()
    assert "attraction" not in queries.names
    shown = ~np.isnan(clicks)
    assert np.corrcoef(wanted[shown], clicks[shown])[0, 1] > 0.5


def test_worlds_that_cannot_be():
    for wrong, told in (
        ({"active": 9, "features": 8}, "active: 9 variables of 1 feature each, of 8 features"),
        ({"shares": [0.9, 0.2, 0, 0, 0]}, "sum to 1"),
    ):
        with pytest.raises(ValidationError, match=told):
            Generate(**wrong)
