"""A model and a file → scores. The file is read part by part and may be larger than memory; only ids and scores are kept."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

import ltr
from ltr.data import letor
from ltr.data.arrays import rows_of
from ltr.data.runs import FORMS, Form, column_of
from ltr.metrics.evaluation import NOT_RANKED
from ltr.rankers.base import UndefinedScoreError
from tasks.config.data_section import Data
from tasks.data.files import located
from tasks.data.tables import (
    SEPARATORS,
    id_texts,
    is_table,
    known_codes,
    numbers,
    reading,
    refuse_uneven_lines,
    require_plain,
    scan,
    told_unknown,
    unknown_categories,
)
from tasks.data.text import BYTES, read_names, require_counted_alike, require_sum, sidecar, sizes_beside, text_blocks
from tasks.data.trec import PAIR, RUN, read_trec, with_run
from tasks.records import DataError
from tasks.store.state import require_output, written_whole

ROWS = 100_000
"""Of a table and of a text that are read at a time."""
FORMATS = (".parquet", ".csv", ".tsv", ".trec")


@dataclass(frozen=True)
class Predicted:
    """What was written: so many rows, and what there is to say of them, in sentences."""

    rows: int
    notes: tuple[str, ...]


def predict(
    model: ltr.Ranker, path: Path, output: Path, data: Data, named: Sequence[str] = (), by_place: bool = False
) -> Predicted:
    """Scores every row of a file, in its order: columns ``query`` and ``document`` where the file has them, and ``score``, empty
    for what is at no rank (`Ranker.ranked`). A ``.trec`` file is a run of the others: ``query Q0 document rank score lambdaflow``, by query
    and falling score, equal ones as they stand.

    Args:
        data: names the columns of tables and the first feature of text; a label is not needed. Features of the names of its `runs` are
            read from them, by query and document id.
        named: columns that a table must have, because somebody asked for them; others that it has not are left out.
        by_place: the model names no features, and reads all of a text by their places.

    Raises:
        DataError: for another suffix of `output`, one that is a file it reads, a missing column or feature, a wrong line, runs of other documents; nothing is written
            then.
    """
    if output.suffix not in FORMATS:
        raise DataError(f"{output}: scores can be written as {', '.join(FORMATS)}")
    found = located(path)
    require_output(output, found, *(located(run) for paths in data.runs.values() for run in paths))
    forms = {name: [form for form in FORMS if column_of(form, name) in model.names] for name in data.runs}
    runs = {name: (read_trec(data.runs[name], RUN), own) for name, own in forms.items() if own}
    joined = {column_of(form, name) for name, own in forms.items() for form in own}
    own = tuple(name for name in model.names if name not in joined)
    unknown: dict[str, tuple[int, str]] = {}
    parts = _table(own, found, data, named, unknown) if is_table(found) else _text(own, found, data, by_place)
    if runs:
        parts = ((ids, _joined(found, ids, dict(zip(own, features.T, strict=True)), runs, model.names)) for ids, features in parts)
    scored, before = [], 0
    for ids, features in parts:
        scored.append(_scored(model, found, ids, features, before))
        before += len(features)
    if not before:
        raise DataError(f"{found}: no rows")
    named = [name for name in scored[0].columns if all(name in part.columns for part in scored)]
    scores = pl.concat([part.select(named) for part in scored])
    for name, (run, _) in runs.items():
        if not scores.join(run, on=PAIR, how="semi").height:
            raise DataError(f"{found}: no document of run {name!r} is in it")
    with written_whole(output) as partial:
        if output.suffix == ".trec":
            trec_run(scores, path).write_csv(partial, separator=" ", include_header=False, quote_style="never")
        elif output.suffix == ".parquet":
            scores.write_parquet(partial)
        else:
            scores.write_csv(partial, separator="\t" if output.suffix == ".tsv" else ",")
    notes = [told_unknown(path, name, count, scores.height, example) for name, (count, example) in unknown.items()]
    if is_table(found) and "query" not in scores.columns:
        notes.append(
            f"{path}: no column {data.query!r}, so scores are written without query ids; --set query=NAME names the column"
        )
    return Predicted(scores.height, tuple(notes))


def _scored(model: ltr.Ranker, path: Path, ids: pl.DataFrame, features: NDArray[np.float32], before: int) -> pl.DataFrame:
    try:
        scores = pl.Series("score", model.ranking_scores(features)).replace(NOT_RANKED, None)
        return pl.DataFrame({**ids.to_dict(), "score": scores})
    except UndefinedScoreError as error:
        raise DataError(f"{path}, row {before + error.row + 1}: {error.why}") from None
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None


def _refuse_twice(path: Path, columns: list[str], data: Data) -> None:
    for name in data.runs:
        if name in columns:
            raise DataError(f"{path}: data.runs: the data have a feature {name!r}; rename the run")


def _joined(
    path: Path,
    ids: pl.DataFrame,
    columns: dict[str, NDArray[np.float32]],
    runs: Mapping[str, tuple[pl.DataFrame, Sequence[Form]]],
    names: tuple[str, ...],
) -> NDArray[np.float32]:
    """The features `names`: columns of the file, and forms of runs (`with_run`)."""
    if not set(PAIR) <= set(ids.columns):
        raise DataError(f"{path}: runs are joined by query and document id, and the documents have no id")
    for name, (run, forms) in runs.items():
        found = with_run(ids.select(PAIR), run, name, forms).drop(PAIR).fill_null(float("nan"))
        columns |= {column.name: column.to_numpy().astype(np.float32) for column in found}
    return np.column_stack([columns[name] for name in names])


def _table(
    names: tuple[str, ...], path: Path, data: Data, named: Sequence[str], unknown: dict[str, tuple[int, str]]
) -> Iterator[tuple[pl.DataFrame, NDArray[np.float32]]]:
    """Ids and features of a table, some rows at a time; to `unknown` is added how many values of a column are no known category, with an
    example."""
    with reading(path):
        lazy = scan(path)
        columns = lazy.collect_schema().names()
    _refuse_twice(path, columns, data)
    for name in names:
        if name not in columns:
            near = difflib.get_close_matches(name, columns, n=2)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            missing = sum(other not in columns for other in names)
            raise DataError(f"{path}: the model's feature {name!r} is not a column{hint} ({missing} of {len(names)} are missing)")
    for name in named:
        if name not in columns:
            raise DataError(f"{path}: no column {name!r}; choose from: {', '.join(columns[:8])}{' …' if len(columns) > 8 else ''}")
    ids = {kind: name for kind, name in (("query", data.query), ("document", data.document)) if name in columns}
    if not (names or ids):
        raise DataError(f"{path}: runs are joined by query and document id, and the documents have no id")
    before, is_text = 0, path.suffix.lower() in SEPARATORS
    uneven = is_text  # whether it may be
    with reading(path):
        for frame in lazy.select(columns if is_text else [*names, *ids.values()]).collect_batches(
            chunk_size=ROWS, maintain_order=True
        ):
            if uneven and frame.to_series(-1).null_count():
                refuse_uneven_lines(path)
                uneven = False
            columns_of_names = (_feature(path, frame, name, data, before, unknown) for name in names)
            features = rows_of(columns_of_names, frame.height, len(names))
            found = pl.DataFrame({kind: id_texts(path, frame[name], before) for kind, name in ids.items()})
            for kind in ids:
                if (empty := found[kind].is_null() | (found[kind] == "")).any():
                    row = before + (empty.arg_true()[0] or 0) + 1
                    raise DataError(f"{path}, row {row}: column {ids[kind]!r} is empty: every row must name its {kind}")
            before += frame.height
            yield found, features


def _feature(
    path: Path, frame: pl.DataFrame, name: str, data: Data, before: int, unknown: dict[str, tuple[int, str]]
) -> NDArray[np.float64]:
    """A column of a table as a feature's values; `before` are the rows before these. `unknown`: as in `_table`."""
    if not (own := data.categories.get(name)):
        return numbers(path, frame, name, data, before, wanted=True)
    places = known_codes(path, frame, name, own)
    if len(strange := unknown_categories(frame[name], places)):
        count, example = unknown.get(name, (0, strange[0]))
        unknown[name] = (count + len(strange), example)
    return places


def _text(names: tuple[str, ...], path: Path, data: Data, by_place: bool) -> Iterator[tuple[pl.DataFrame, NDArray[np.float32]]]:
    """Ids and features of LETOR text, some megabytes of whole lines at a time."""
    require_plain(path)
    _refuse_twice(path, [name for name in data.runs if name[:1] == "f" and name[1:].isdigit()], data)
    given = read_names(located(data.names)) if data.names else ()
    strange = [name for name in names if (name not in given if given else not (name[:1] == "f" and name[1:].isdigit()))]
    if strange:
        has = (
            f"{given[0]}, {given[-1]} and what {data.names} names"
            if given
            else f"f{data.first_feature}, f{data.first_feature + 1}, …"
        )
        hint = "" if given else " (data.names: FILE gives other names)"
        raise DataError(f"{path}: text has the features {has}, and the model reads {strange[0]!r}{hint}")
    place = {name: k for k, name in enumerate(given)}
    columns = np.array([place[name] if given else int(name[1:]) - data.first_feature for name in names], np.int64)
    if columns.min(initial=0) < 0:
        raise DataError(
            f"{path}: the model's features start at f0, the text's at f{data.first_feature}; set data.first_feature: 0 if the text counts from 0"
        )
    last, first_is_empty, read = -1, True, 0
    sizes, beside = None, None
    for text, lines in text_blocks(path, data.first_feature, BYTES):
        last, first_is_empty = max(last, lines.features.shape[1] - 1), first_is_empty and not lines.features[:, 0].any()
        wide = np.zeros((len(lines.labels), max(int(columns.max(initial=-1)) + 1, lines.features.shape[1])), np.float32)
        wide[:, : lines.features.shape[1]] = lines.features
        ids = {"query": lines.query_spans} if lines.query_keys is not None else {}
        if (lines.document_spans[:, 1] > lines.document_spans[:, 0]).all():
            ids["document"] = lines.document_spans
        found = {kind: np.char.decode(letor.cut(text, spans), "utf-8", "backslashreplace") for kind, spans in ids.items()}
        if lines.query_keys is None and beside is None and (sizes := sizes_beside(path)) is not None:
            beside = np.repeat(np.arange(1, len(sizes) + 1), sizes)
        if beside is not None:
            own = beside[read : read + len(wide)]
            if len(own) < len(wide):
                raise DataError(f"{sidecar(path)}: the sizes sum to {len(beside)}, and {path.name} has more documents")
            found = {"query": np.array([f"{path.name}:{k}" for k in own.tolist()]), **found}
        read += len(wide)
        yield pl.DataFrame(found), wide[:, columns]
    if sizes is not None:
        require_sum(path, sizes, read)
    if by_place and last + 1 != len(names):
        raise DataError(f"{path}: the model names no features and has {len(names)} of them; the data have {last + 1}")
    if data.first_feature == 0 and not given:
        require_counted_alike(path, names, last, first_is_empty)


def trec_run(scores: pl.DataFrame, path: Path) -> pl.DataFrame:
    """The lines of a TREC run, of ``query``, ``document`` and ``score``; `path` is named in errors.

    Raises:
        DataError: where there is no id, or one with a space in it.
    """
    for kind in ("query", "document"):
        if kind not in scores.columns:
            raise DataError(
                f"{path}: a TREC run names queries and documents, and there is no {kind} id here (data.{kind} names the column)"
            )
        spaced = scores.filter(pl.col(kind).str.contains(r"\s"))
        if spaced.height:
            raise DataError(
                f"{path}: a TREC run is separated by spaces, and the {kind} id {spaced[kind][0]!r} has one; write .csv instead"
            )
    if (twice := scores.filter(scores.select("query", "document").is_duplicated())).height:
        query, document = twice.select("query", "document").row(0)
        raise DataError(
            f"{path}: a TREC run names each document once, and document {document!r} of query {query!r} is in several rows; write .csv instead"
        )
    ranked = (
        scores.filter(pl.col("score").is_not_null())
        .with_row_index("row")
        .sort(["query", "score", "row"], descending=[False, True, False])
    )
    return ranked.select(
        "query", pl.lit("Q0").alias("q0"), "document", pl.int_range(1, pl.len() + 1).over("query").alias("rank"), "score",
        pl.lit("lambdaflow").alias("run"),
    )  # fmt: skip
