"""Tables of per-query values: undefined is null, means leave it out, folds stand behind one another."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from ltr.data.queries import select
from tasks.records import DataError
from tasks.store.values import (
    Basis,
    digest_of_labels,
    means,
    names_of,
    pooled,
    read_basis,
    read_values,
    table,
    values_of,
    write_values,
)
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


def test_what_values_rest_on_is_kept_with_them(tmp_path):
    queries = make_queries(10)
    frame = table({"map": np.linspace(0, 1, 10)}, queries, "test")
    write_values(tmp_path / "v.parquet", [frame], {"threshold": 2.0}, queries)
    found = read_basis(tmp_path / "v.parquet")
    assert found == Basis({"threshold": 2.0}, {source: digest_of_labels(queries, source) for source in ("label", "click")})
    assert found.labels["label"] != found.labels["click"]
    frame.write_parquet(tmp_path / "old.parquet")
    assert read_basis(tmp_path / "old.parquet") is None


def test_values_that_were_changed_are_none(tmp_path):
    path, queries = tmp_path / "v.parquet", make_queries(30)
    write_values(path, [table({"map": np.linspace(0, 1, 30)}, queries, "test")], {"threshold": 2.0}, queries)
    said = pl.read_parquet_metadata(path)
    other = pl.read_parquet(path).with_columns(map=pl.col("map") / 2)
    for metadata in (said, {**said, "basis": said["basis"].replace("2.0", "1.0")}, {"digest": "x"}):
        other.write_parquet(path, metadata=metadata)
        with pytest.raises(DataError, match=r"v\.parquet: these per-query values were changed after they were written"):
            read_values(path, "test")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"v\.parquet: these per-query values were changed after they were written"):
        read_values(path, "test")


def test_labels_have_one_digest_whatever_the_features_the_order_and_the_documents_without_one(tmp_path):
    queries = make_queries(20)
    digest = digest_of_labels(queries, "label")
    order = np.random.default_rng(1).permutation(20)
    assert digest_of_labels(replace(queries, features=queries.features * 2), "label") == digest
    assert digest_of_labels(select(queries, order), "label") == digest
    changed = queries.labels.copy()
    changed[np.argmax(changed > 0)] += 1
    assert digest_of_labels(replace(queries, labels=changed), "label") != digest
    unjudged = np.where(queries.labels > 0, queries.labels, np.nan)
    assert digest_of_labels(replace(queries, labels=unjudged), "label") == digest
    condensed = digest_of_labels(queries, "label", condensed=True)
    assert digest_of_labels(select(queries, order), "label", condensed=True) == condensed
    assert digest_of_labels(replace(queries, labels=unjudged), "label", condensed=True) != condensed, (
        "0 holds a rank, and no label none"
    )
    named = replace(queries, documents=np.array([f"d{k}".encode() for k in range(queries.n_documents)]))
    assert digest_of_labels(named, "label") == digest
    whose = digest_of_labels(named, "label", documents=True)
    assert digest_of_labels(select(named, order), "label", documents=True) == whose
    (first, last), permuted = queries.offsets[:2], queries.labels.copy()
    permuted[first:last] = permuted[first:last][::-1]
    assert (permuted != queries.labels).any()
    assert digest_of_labels(replace(named, labels=permuted), "label") == digest
    assert digest_of_labels(replace(named, labels=permuted), "label", documents=True) != whose
    for rules, of_labels in (({"unlabelled": "condensed"}, condensed), ({"unlabelled": "zero"}, digest)):
        write_values(tmp_path / "v.parquet", [table({"map": np.ones(20)}, queries, "test")], rules, queries)
        basis = read_basis(tmp_path / "v.parquet")
        assert basis is not None
        assert basis.labels["label"] == of_labels
