"""Tables of what is known of queries, a row a query and a column of numbers a feature, which becomes a feature of all its documents."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from tasks.data.files import located
from tasks.data.tables import TABLES, as_numbers, id_texts, is_table, read_table
from tasks.records import DataError


def read_query_features(paths: Sequence[Path], query: str = "query") -> pl.DataFrame:
    """``query`` and a column of float64 a feature, null where it is missing.

    Args:
        query: the column with the queries' ids.

    Raises:
        DataError: naming file, row or column, value and rule, for a file that is no table, without that column or any other, a value that is
            no number, a query that has two rows, and files with other columns.
    """
    parts = []
    for path in paths:
        if not is_table(path):
            raise DataError(f"{path}: features of queries are a table: {', '.join(sorted(TABLES))}")
        frame = read_table(located(path))
        names = [name for name in frame.columns if name != query]
        if query not in frame.columns or not names:
            raise DataError(f"{path}: columns {', '.join(frame.columns[:8])}: {query!r} and at least one feature are needed")
        ids = id_texts(path, frame[query]).alias("query")
        if (nameless := ids.is_null() | (ids.str.strip_chars() == "")).any():
            raise DataError(
                f"{path}, row {(nameless.arg_true()[0] or 0) + 1}: column {query!r} is empty: every row must name its query"
            )
        parts.append(frame.select(ids, *(_numbers(path, frame, name) for name in names)))
        if parts[-1].columns != parts[0].columns:
            raise DataError(f"{path}: columns {', '.join(names[:8])}; in {paths[0]} they are {', '.join(parts[0].columns[1:9])}")
    joined = pl.concat(parts)
    twice = joined.filter(~pl.col("query").is_first_distinct())
    if twice.height:
        raise DataError(f"{', '.join(map(str, paths))}: query {twice['query'][0]!r} has two rows; each query must have one")
    return joined


def _numbers(path: Path, frame: pl.DataFrame, name: str) -> pl.Series:
    column = as_numbers(path, frame[name], "features of queries must be numbers").fill_nan(None)
    if column.is_infinite().any():
        row = column.is_infinite().arg_true()[0] + 1
        raise DataError(f"{path}, row {row}: column {name!r} is infinite: features of queries must be finite")
    return column
