"""Files → data sets: LETOR/SVMlight text, Parquet and CSV, read once and kept by content.

Text goes through the core's parallel byte parser, tables through polars. Rows of one query that stand apart are brought
together, and that is reported. A second run with the same bytes reads nothing again.
"""

import difflib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from glob import escape
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.data import letor
from ltr.data.arrays import few_of, rows_of
from ltr.data.queries import LARGEST_WHOLE, WEIGHTS, Queries, concatenate, in_order, is_weight, widen
from ltr.rankers.base import Ranker, UndefinedScoreError
from tasks.config.data_section import Data
from tasks.data.files import expanded, located
from tasks.data.json_lines import SUFFIXES
from tasks.data.tables import (
    Table,
    categories_in,
    has_numbers,
    header_of,
    id_texts,
    is_table,
    known_codes,
    numbers,
    reading,
    require_plain,
    told_unknown,
    unknown_categories,
)
from tasks.data.text import read_names, require_counted_alike, require_sum, sidecar, sizes_beside, text_blocks
from tasks.records import DataError, Ingested, number_of
from tasks.store.datasets import keep_queries
from tasks.store.large import taken, zeros
from tasks.store.seal import digest_of_file, unchanged
from tasks.store.state import Noted, remember, remembered

CLICK = "click"
"""The label source that cndcg reads."""
_READER = 10
"""Raised when the readers change what they make of the same bytes."""


@dataclass(frozen=True)
class Rows:
    """What one file says, in file order."""

    features: NDArray[np.float32]
    labels: NDArray[np.float64]
    keys: NDArray[np.uint64]
    ids: NDArray[np.bytes_]
    documents: NDArray[np.bytes_] | None
    names: tuple[str, ...]
    weights: NDArray[np.float64] | None = None
    sources: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    attributes: Mapping[str, pl.Series] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@task(cache_policy=NO_CACHE, name="ingest", task_run_name="ingest {label}")
def ingest(paths: Sequence[Path], data: Data, label: str = "data") -> Ingested:
    """Reads files into one stored data set.

    Raises:
        DataError: for a file that is missing, empty or wrong, or is there twice.
    """
    paths = [located(Path(path)) for path in paths]
    if twice := [path for k, path in enumerate(paths) if path in paths[:k]]:
        raise DataError(f"{twice[0]}: the file is listed twice")
    sidecars = [side for path in paths if (side := sidecar(path))]
    digests = {path: digest_of_file(path) for path in (*paths, *sidecars)}
    recipe = {
        "reader": _READER,
        "files": [[_name_among(path, data), digest] for path, digest in digests.items()],
        "columns": [data.query, data.document, data.label, data.weight, data.sources],
        "first_feature": data.first_feature,
        "drop": sorted(data.drop),
        "ignore": sorted(data.ignore),
        **({"attributes": data.attributes} if data.attributes else {}),
        **({"categories": data.categories} if data.categories else {}),
        **({"names": read_names(located(data.names))} if data.names else {}),
        **({"unread": unread} if (unread := [side.name for path in paths for side in _unread(path)]) else {}),
    }
    if noted := remembered(recipe):
        return Ingested(noted.data[0], noted.split_queries, read=False, notes=noted.notes)
    parts, split = [], 0
    notes: list[str] = []
    for path in paths:
        with unchanged({path: digests[path]}):
            rows = _read(path, data)
        notes += rows.notes
        try:
            queries, apart = _regrouped(rows)
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
        parts.append(without(queries, data.drop))
        split += apart
    if any(map(is_table, paths)):
        parts = _of_one_order(paths, parts)
    _refuse_shared(paths, parts)
    nameless = [path.name for path, part in zip(paths, parts, strict=True) if part.documents is None]
    if 0 < len(nameless) < len(parts):
        notes.append(
            f"{', '.join(nameless)} {'has' if len(nameless) == 1 else 'have'} no document ids, so ids are dropped for all files"
        )
    try:
        joined = concatenate(parts) if len(parts) > 1 else parts[0]
    except ValueError as error:
        raise DataError(f"{', '.join(str(p) for p in paths)}: {error}") from None
    with unchanged({path: digests[path] for path in sidecars}):
        pass
    name = keep_queries(joined)
    remember(recipe, Noted((name,), split_queries=split, notes=tuple(notes)))
    return Ingested(name, split, read=True, notes=tuple(notes))


def with_categories(data: Data, paths: Sequence[Path]) -> Data:
    """The section with all categories that the tables have, where it does not list them.

    Raises:
        DataError: as `tasks.data.tables.categories_in`, and for more categories than features can tell apart.
    """
    files = [located(Path(path)) for path in paths]
    open_ones = [name for name in data.categorical if name not in data.categories] if all(map(is_table, files)) else []
    found = {name: categories_in(files, name) for name in open_ones}
    for name, own in found.items():
        if len(own) > LARGEST_WHOLE:
            raise DataError(f"data.categorical: {name!r} has {len(own):,} categories; at most {LARGEST_WHOLE:,} are supported")
    return data.model_copy(update={"categories": {**data.categories, **found}}) if found else data


def _of_one_order(paths: Sequence[Path], parts: Sequence[Queries]) -> list[Queries]:
    """The data sets of several tables with the features of the first one, in its order.

    Raises:
        DataError: for a feature that one of them has and the first one has not, or the other way round.
    """
    names = parts[0].names
    for path, part in zip(paths, parts, strict=True):
        for lacking, other, missing in (
            (path, paths[0], [name for name in names if name not in part.names]),
            (paths[0], path, [name for name in part.names if name not in names]),
        ):
            if missing:
                raise DataError(
                    f"{lacking}: no column {missing[0]!r}, which {other} has ({number_of(len(missing), 'such column')}); all tables of a data set "
                    "must have the same features"
                )
    return [in_order(part, names) for part in parts]


def _refuse_shared(paths: Sequence[Path], parts: Sequence[Queries]) -> None:
    """Raises DataError for a query that stands in two files: its documents could not be told from another query's of that id."""
    keys = np.concatenate([part.keys for part in parts])
    order = np.argsort(keys, kind="stable")
    again = order[1:][keys[order[1:]] == keys[order[:-1]]]
    if not len(again):
        return
    later = int(again.min())
    earlier = int(np.flatnonzero(keys == keys[later])[0])
    file = np.repeat(np.arange(len(parts)), [part.n_queries for part in parts])
    query = np.concatenate([part.ids for part in parts if part.ids is not None])[later].decode("utf-8", "backslashreplace")
    raise DataError(
        f"{paths[file[later]]}: query {query!r} is also in {paths[file[earlier]]}; all rows of a query must be in one file"
    )


def _unread(path: Path) -> list[Path]:
    """Files beside a text that LightGBM would read with it, and that nobody reads here: weights, positions and first scores of documents."""
    sides = [path.with_name(f"{path.name}.{kind}") for kind in ("weight", "position", "init")]
    return [side for side in sides if side.is_file()] if not is_table(path) else []


def _read(path: Path, data: Data) -> Rows:
    require_plain(path)
    if path.suffix.lower() in SUFFIXES:
        raise DataError(
            f"{path}: JSON holds no rows to learn from: judgments are named by data.qrels, an engine's features by data.feature_logs, a log of "
            "users by data.clicks.log"
        )
    if data.names and is_table(path):
        raise DataError(f"{path}: data.names names the features of LETOR text; a table's columns have names")
    if (data.weight or data.sources or data.attributes or data.of_categories) and not is_table(path):
        raise DataError(
            f"{path}: data.weight, data.sources, data.attributes and data.categorical name columns, and LETOR text has none; give a Parquet or "
            "CSV file"
        )
    return _of_table(path, data) if is_table(path) else _of_text(path, data)


def _of_text(path: Path, data: Data) -> Rows:
    parts, keys, ids, documents, n_named, digits_lost = [], [], [], [], 0, set[int]()
    for text, lines in text_blocks(path, data.first_feature):
        digits_lost.update(np.flatnonzero(lines.digits_lost).tolist())
        features = zeros(lines.features.shape, np.float32)
        features[:] = lines.features
        parts.append((features, lines.labels))
        if lines.query_keys is not None:
            keys.append(lines.query_keys)
            ids.append(letor.cut(text, lines.query_spans))
        spans = lines.document_spans
        has_name = spans[:, 1] > spans[:, 0]
        n_named += int(has_name.sum())
        documents.append(letor.cut(text, spans) if has_name.all() else None)
    labels = np.concatenate([part for _, part in parts])
    features = _joined([part for part, _ in parts])
    features, names, notes = _named(path, features, data)
    notes += tuple(_told_lost(path, [names[k] for k in sorted(digits_lost)], "drop"))
    notes += tuple(
        f"{path.name}: data.ignore: {pattern!r}: LETOR text has no columns, so nothing is left out; data.drop leaves out features by name"
        for pattern in data.ignore
    )
    notes += tuple(
        f"{side.name} beside {path.name} is not read; weights of queries are a column of a table (data.weight)"
        for side in _unread(path)
    )
    if 0 < n_named < len(labels):
        notes += (f"{path.name}: {len(labels) - n_named:,} of {len(labels):,} lines have no docid, so that no document has an id",)
    named = [part for part in documents if part is not None]
    named_all = np.concatenate(named) if len(named) == len(documents) else None
    if keys:
        return Rows(features, labels, np.concatenate(keys), np.concatenate(ids), named_all, names, notes=notes)
    sizes = sizes_beside(path)
    if sizes is None:
        raise DataError(f"{path}: no line has a qid and there is no {path.name}.query (or .group) with the sizes of the queries")
    require_sum(path, sizes, len(labels))
    own = np.repeat(np.array([f"{_name_among(path, data)}:{k + 1}".encode() for k in range(len(sizes))]), sizes)
    return Rows(features, labels, _keys(own), own, named_all, names, notes=notes)


def _joined(parts: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Blocks of sparse text below each other, narrower ones ending in zeros."""
    if len(parts) == 1:
        return parts[0]
    whole = zeros((sum(map(len, parts)), max(part.shape[1] for part in parts)), np.float32)
    at = 0
    for part in parts:
        whole[at : at + len(part), : part.shape[1]] = part
        at += len(part)
    return whole


def _named(path: Path, features: NDArray[np.float32], data: Data) -> tuple[NDArray[np.float32], tuple[str, ...], tuple[str, ...]]:
    """The features of a text, as many as there are names where these are given; the names, and what there is to say of them."""
    wide = features.shape[1]
    if data.names is None:
        return features, tuple(f"f{k + data.first_feature}" for k in range(wide)), ()
    names = read_names(located(data.names))
    if wide > len(names):
        raise DataError(f"{path}: feature {wide - 1 + data.first_feature}, and data.names {data.names} names {len(names)} features")
    if wide == len(names):
        return features, names, ()
    more = len(names) - wide
    always = "the last name of {} is a feature that is" if more == 1 else f"the last {more} names of {{}} are features that are"
    note = f"no line has a feature above {wide - 1 + data.first_feature}; {always.format(data.names)} always 0"
    return np.pad(features, ((0, 0), (0, len(names) - wide))), names, (note,)


def _name_among(path: Path, data: Data) -> str:
    """A file's name, with as many of the folders above it as tell it apart from the other files of the data."""
    files = (expanded(one).absolute() for one in (*data.train, *data.valid, *data.test, *data.parts, *data.files))
    own = path.absolute().parts
    others = {file.parts for file in files} - {own}
    depth = next((k for k in range(1, len(own)) if all(other[-k:] != own[-k:] for other in others)), len(own))
    return "/".join(own[-depth:])


_ROW_NUMBERS = ("", "Unnamed: 0", "__index_level_0__")
"""What pandas calls the numbers of rows in files that it writes."""


def _counts(column: pl.Series) -> bool:
    """Whether it is 0, 1, 2, …, in text too: what `reset_index` and `with_row_index` make."""
    if not (column.dtype.is_numeric() or column.dtype == pl.String) or len(column) < 2:
        return False
    return column.cast(pl.Float64, strict=False).eq_missing(pl.int_range(len(column), eager=True).cast(pl.Float64)).all()


def _require_column(path: Path, columns: Sequence[str], column: str) -> None:
    if column not in columns:
        near = difflib.get_close_matches(column, columns, n=3)
        there = (
            f"did you mean {' or '.join(near)}?"
            if near
            else f"choose from: {', '.join(columns[:8])}{' …' if len(columns) > 8 else ''}"
        )
        raise DataError(
            f"{path}: no column {column!r}; {there} (data.query, data.label, data.document, "
            "data.weight, data.sources and data.attributes name the columns)"
        )


def require_documents(data: Data, paths: Sequence[Path]) -> None:
    """Raises DataError for a table without the column of document ids that the section names; without a name of its own ids may be missing."""
    if data.document == Data.model_fields["document"].default:
        return
    for path in map(located, paths):
        if is_table(path):
            _require_column(path, _names_in(path), data.document)


def _names_in(path: Path) -> list[str]:
    """The columns of a table, of which nothing else is read."""
    with reading(path):
        return list(pl.read_parquet_schema(path)) if path.suffix.lower() == ".parquet" else header_of(path)


def _called(pattern: str, columns: Sequence[str]) -> list[str]:
    """The column of this name; where there is none, those that it is a pattern of."""
    return [pattern] if pattern in columns else [name for name in columns if fnmatchcase(name, pattern)]


def _no_features(data: Data) -> list[str]:
    """Columns of a table that the section names as something else."""
    return [data.query, data.label, data.document, *([data.weight] if data.weight else []), *data.sources, *data.attributes]


def _of_table(path: Path, data: Data) -> Rows:
    table = Table(path)
    columns = table.columns
    others = _no_features(data)
    for column in others:
        if column != data.document:
            _require_column(path, columns, column)
    for name in data.categories:
        if name not in columns:
            raise DataError(f"{path}: no column {name!r} (data.categorical)")
    ignored = {pattern: _called(pattern, columns) for pattern in data.ignore}
    left_out = {*others, *chain.from_iterable(ignored.values())}
    names = tuple(name for name in columns if name not in left_out)
    frame = table.read([name for name in columns if name in others])
    for name in names:
        if name in _ROW_NUMBERS or (name == "index" and _counts(table.read([name])[name])):
            raise DataError(
                f"{path}: a column is named {name!r}, as data frames name their row numbers, which are not a feature: write the file with index=False, or "
                f"leave the column out by data.ignore: [{name!r}]"
            )
    labels = _labels(path, frame, data.label, data)
    ids = _ids(path, frame, data.query)
    documents = _ids(path, frame, data.document) if data.document in frame.columns else None
    notes = [f"{path.name}: data.ignore: no column is named {pattern!r}" for pattern, called in ignored.items() if not called]
    notes += [
        note for column in (data.query, data.document) if column in frame.columns for note in _with_points(path, frame[column])
    ]

    lost: dict[str, float] = {}

    def feature(name: str, beside: pl.DataFrame) -> NDArray[np.float32]:
        if own := data.categories.get(name):
            exact = known_codes(path, beside, name, own)
            notes.extend(_unknown(path, beside[name], exact))
        else:
            exact = numbers(path, beside, name, data)
        with np.errstate(over="ignore"):  # infinite as a float32, which `check` refuses
            kept = exact.astype(np.float32)
        if (example := _lost_digits(exact, kept)) is not None:
            lost[name] = example
        return kept

    features = zeros((frame.height, len(names)), np.float32)
    rows_of((feature(*one) for one in table.each(names, frame)), frame.height, len(names), features)
    notes += _told_lost(path, list(lost), "ignore", next(iter(lost.values()), None))
    weights = numbers(path, frame, data.weight, data) if data.weight else None
    sources = {name: _labels(path, frame, name, data) for name in data.sources}
    attributes = {name: _attribute(path, frame, name, data) for name in data.attributes}
    return Rows(features, labels, _keys(ids), ids, documents, names, weights, sources, attributes, tuple(notes))


def _unknown(path: Path, column: pl.Series, places: NDArray[np.float64]) -> list[str]:
    """A sentence where values are no category that is listed."""
    strange = unknown_categories(column, places)
    return [told_unknown(path, column.name, len(strange), len(column), strange[0])] if len(strange) else []


def _lost_digits(exact: NDArray[np.float64], kept: NDArray[np.float32]) -> float | None:
    """The first whole number, such as an id or a time, that is too large for the 24 bits that a feature has."""
    if np.fmin.reduce(exact) >= -LARGEST_WHOLE and np.fmax.reduce(exact) <= LARGEST_WHOLE:
        return None
    lost = (np.abs(exact) > LARGEST_WHOLE) & (exact == np.floor(exact)) & (exact != kept) & np.isfinite(kept)
    return float(exact[lost.argmax()]) if lost.any() else None


def _with_points(path: Path, ids: pl.Series) -> list[str]:
    """A sentence where all ids are texts such as ``7.0``."""
    if ids.dtype != pl.String or not ids.str.contains(r"^\d+\.0$").all() or ids.is_null().all():
        return []
    example = ids.drop_nulls()[0]
    return [
        f"{path.name}: every {ids.name!r} is written like {example}, as pandas writes whole numbers where one of a column is missing; "
        f"{example.removesuffix('.0')} in another file is another {ids.name}"
    ]


def _told_lost(path: Path, names: Sequence[str], key: str, example: float | None = None) -> list[str]:
    """A sentence about the features in which whole numbers lose digits, if there are any; `key` of the data leaves them out."""
    if not names:
        return []
    which = f"{names[0]!r} has" if len(names) == 1 else f"{len(names)} features ({few_of(names)}) have"
    such_as = "" if example is None else f", such as {example:.0f}" + ("" if len(names) == 1 else f" in {names[0]!r}")
    way = f"leave the column out (data.{key}: [{names[0]}])" if len(names) == 1 else f"leave the columns out (data.{key})"
    return [
        f"{path.name}: {which} whole numbers above {LARGEST_WHOLE:,} that lose digits in float32{such_as}; if they are ids, {way}"
    ]


def _attribute(path: Path, frame: pl.DataFrame, name: str, data: Data) -> pl.Series:
    """A column of text that is constant within a query, empty where unknown."""
    column = frame[name]
    if column.dtype.is_nested() or column.dtype == pl.Binary:
        raise DataError(
            f"{path}: column {name!r} holds {column.dtype}: an attribute (data.attributes) must be a text, a number or a date"
        )
    values = id_texts(path, column).str.strip_chars().fill_null("")
    said = pl.DataFrame({"query": id_texts(path, frame[data.query]), "value": values}).unique(maintain_order=True)
    conflicting = said.filter(pl.col("query").is_duplicated())
    if conflicting.height:
        first, other = conflicting.filter(pl.col("query") == conflicting["query"][0])["value"][:2]
        raise DataError(
            f"{path}: query {conflicting['query'][0]}: {name} {first[:40]!r} and {other[:40]!r}: all rows of a query must have the same value of an attribute (data.attributes)"
        )
    return values


def _labels(path: Path, frame: pl.DataFrame, name: str, data: Data) -> NDArray[np.float64]:
    """A column of labels, missing ones NaN."""
    labels = numbers(path, frame, name, data) + 0.0  # -0 is 0
    wrong = np.flatnonzero((labels < 0) | np.isinf(labels))
    if len(wrong):
        raise DataError(f"{path}, row {wrong[0] + 1}: {name} {labels[wrong[0]]:g}: a label must be a finite number, 0 or more")
    if name == CLICK and name in data.sources and (more := np.flatnonzero(labels > 1)).size:
        raise DataError(
            f"{path}, row {more[0] + 1}: {name} {labels[more[0]]:g}: a click label must be a share from 0 to 1 (1 clicked, 0 not); give a column of "
            "counts another name"
        )
    return labels


def _ids(path: Path, frame: pl.DataFrame, name: str) -> NDArray[np.bytes_]:
    column = id_texts(path, frame[name])
    empty = column.is_null() | (column == "")
    if empty.any():
        raise DataError(f"{path}, row {empty.arg_true()[0] + 1}: column {name!r} is empty: every row must name its {name}")
    broken = column.str.contains("\0", literal=True)
    if broken.any():
        raise DataError(f"{path}, row {broken.arg_true()[0] + 1}: column {name!r} has a NUL character in an id")
    long = column.str.len_bytes() > letor.LONGEST_ID
    if long.any():
        row = int(long.arg_true()[0])
        raise DataError(
            f"{path}, row {row + 1}: column {name!r} holds {column[row][:40]!r}… of {len(column[row].encode()):,} bytes: {letor.RULES[10]}"
        )
    return np.array([value.encode() for value in column.to_list()])


def _keys(ids: NDArray[np.bytes_]) -> NDArray[np.uint64]:
    distinct, inverse = np.unique(ids, return_inverse=True)
    return np.array([letor.key_of(query) for query in distinct.tolist()], np.uint64)[inverse]


def _regrouped(rows: Rows) -> tuple[Queries, int]:
    """The rows as queries, and how many queries stood in several places."""
    starts = np.flatnonzero(np.concatenate(([True], rows.keys[1:] != rows.keys[:-1])))
    runs = np.unique(rows.keys[starts], return_counts=True)[1]
    apart = (runs > 1).any()
    order = np.argsort(rows.keys, kind="stable") if apart else np.arange(len(rows.keys))
    keys = rows.keys[order]
    offsets = np.append(np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1]))), len(keys))
    if len(np.unique(rows.ids)) != len(runs):
        raise DataError("two query ids have the same 64-bit digest; rename one of them")
    queries = Queries(
        features=taken(rows.features, order) if apart else rows.features,
        labels=rows.labels[order],
        offsets=offsets,
        keys=keys[offsets[:-1]],
        sources={name: values[order] for name, values in rows.sources.items()},
        position=order,
        names=rows.names,
        ids=rows.ids[order][offsets[:-1]],
        documents=None if rows.documents is None else rows.documents[order],
        weights=None if rows.weights is None else _weights(rows.weights[order], offsets, rows.ids[order]),
        attributes={name: np.array(values.gather(order[offsets[:-1]]).to_list()) for name, values in rows.attributes.items()},
    )
    return queries, int((runs > 1).sum())


def _weights(weights: NDArray[np.float64], offsets: NDArray[np.int64], ids: NDArray[np.bytes_]) -> NDArray[np.float64]:
    """The weight of each query, which all its rows name alike."""
    firsts = np.repeat(weights[offsets[:-1]], np.diff(offsets))
    wrong = np.flatnonzero(~((weights == firsts) & is_weight(weights)))
    if len(wrong):
        query = ids[wrong[0]].decode("utf-8", "backslashreplace")
        raise DataError(
            f"query {query}: weight {weights[wrong[0]]:g}: all rows of a query must have the same weight, a number {WEIGHTS}"
        )
    return weights[offsets[:-1]]


def without_unread(data: Data, named: Callable[[], Sequence[str]]) -> tuple[Data, list[str]]:
    """The section without those columns of tables that hold no numbers and that a model does not read, and a sentence for each.

    Args:
        named: gives the features that the model reads by name, if it does.

    Raises:
        DataError: for a damaged file.
    """
    tables = [path for path in map(located, data.files) if is_table(path)]
    names = named() if tables else ()
    read, unread = {*names, *_no_features(data)}, {}
    for path in tables if names else ():
        if not _others(_names_in(path), read, data):
            continue
        table = Table(path)
        for name in _others(table.columns, read, data):
            if not has_numbers(table, name):
                unread[name] = f"{path.name}: column {name!r} holds no numbers and the model does not read it, so it is left out"
    changed = {"ignore": [*data.ignore, *map(escape, unread)], "drop": [name for name in data.drop if name not in unread]}
    return data.model_copy(update=changed), list(unread.values())


def _others(columns: Sequence[str], read: Collection[str], data: Data) -> list[str]:
    """Those columns that are neither among what is read nor ignored."""
    ignored = {*chain.from_iterable(_called(pattern, columns) for pattern in data.ignore)}
    return [name for name in columns if name not in read and name not in ignored]


def read_for(names: tuple[str, ...], queries: Queries, paths: Sequence[Path]) -> Queries:
    """Data as a trained model reads them: the features `names`, found by name. Text may leave out its last ones, which are 0.

    Raises:
        DataError: for a feature that is not there, naming the files, and for text that is counted otherwise.
    """
    ends_early = not any(map(is_table, paths))
    missing = [name for name in names if name not in queries.names]
    strange = [name for name in missing if not (ends_early and re.fullmatch(r"f\d+", name))]
    if strange:
        near = difflib.get_close_matches(strange[0], queries.names, n=2)
        hint = f"; did you mean {' or '.join(near)}?" if near else f"; there are: {few_of(queries.names)}"
        if ends_early and len(missing) == len(names) and all(re.fullmatch(r"f\d+", name) for name in queries.names):
            hint += "; data.names: FILE gives other names"
        where = ", ".join(map(str, paths))
        raise DataError(
            f"{where}: no feature {strange[0]!r}, which the model reads{hint} ({len(strange)} of {len(names)} are missing)"
        )
    if ends_early and queries.names[:1] == ("f0",):
        require_counted_alike(", ".join(map(str, paths)), names, queries.n_features - 1, not queries.features[:, 0].any())
    return in_order(widen(queries, (*queries.names, *missing)), names)


def require_scores(model: Ranker, queries: Queries, paths: Sequence[Path]) -> None:
    """Looks at documents that miss a feature, or have an infinite one, before a model is asked about all of them.

    Raises:
        DataError: naming files, query, document and feature, for one that the model has no score for.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        incomplete = np.flatnonzero(~np.isfinite(queries.features.sum(axis=1)))
    if not len(incomplete):
        return
    try:
        model.predict(queries.features[incomplete])
    except UndefinedScoreError as error:
        row = incomplete[error.row]
        query = int(np.searchsorted(queries.offsets, row, side="right")) - 1
        named = [("query", queries.ids, query), ("document", queries.documents, row)]
        told = "".join(f", {kind} {ids[at].decode('utf-8', 'replace')!r}" for kind, ids, at in named if ids is not None)
        raise DataError(f"{', '.join(map(str, paths))}{told}: {error.why}") from None


def without(queries: Queries, drop: Collection[str]) -> Queries:
    """The data set without some features, the same object where there are none to drop.

    Raises:
        DataError: naming one that is not there.
    """
    unknown = [name for name in drop if name not in queries.names]
    if unknown:
        raise DataError(f"data.drop: no feature {unknown[0]!r}; there are: {few_of(queries.names)}")
    kept = [k for k, name in enumerate(queries.names) if name not in drop]
    if len(kept) == queries.n_features:
        return queries
    return replace(queries, features=queries.features[:, kept], names=tuple(queries.names[k] for k in kept))
