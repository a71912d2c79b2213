"""Tables of per-query values: undefined is null, means leave it out, folds stand behind one another."""

import numpy as np
import polars as pl
import pytest

from tasks.store.values import means, names_of, pooled, read_values, table, values_of
from tests.conftest import make_queries


def test_undefined_values_are_null_and_left_out_of_means(tmp_path):
    queries = make_queries(4)
    frame = pl.concat([
        table({"map": np.array([0.5, np.nan, 1.0, 0.0]), "err": np.full(4, np.nan)}, queries, split) for split in ("valid", "test")
    ])  # fmt: skip
    assert frame["map"].null_count() == 2
    assert means(frame) == {"valid_map": pytest.approx(0.5), "test_map": pytest.approx(0.5)}
    frame.write_parquet(tmp_path / "v.parquet")
    read = read_values(tmp_path / "v.parquet", "test")
    assert read["query"].to_list() == sorted(names_of(queries))
    assert np.isnan(values_of(read, "map")).sum() == 1


def test_queries_without_ids_are_called_by_their_keys():
    queries = make_queries(3)
    assert names_of(queries) == [f"{key:016x}" for key in queries.keys]


def test_folds_stand_behind_one_another():
    frames = [pl.DataFrame({"map": [0.1, None]}), pl.DataFrame({"map": pl.Series([None, None], dtype=pl.Float64)})]
    assert pooled(frames, "map") == pytest.approx([0.1, np.nan, np.nan, np.nan], nan_ok=True)
