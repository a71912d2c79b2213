"""TREC runs as features, by query and document id; runs and judgments (qrels) alone as a data set.

A line of a run is ``query Q0 document rank score tag``. The score ranks, as in trec_eval; its place in the file says nothing, and the rank
that is written there tells documents of equal scores apart, which have their ids beyond that.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from ltr.data.queries import Queries
from ltr.data.runs import Form, column_of, formed
from tasks.data.files import located
from tasks.data.tables import require_plain
from tasks.records import DataError, number_of

RUN, QRELS = "query Q0 document rank score tag", "query 0 document label"
"""What a line of each holds."""
PAIR = ["query", "document"]


def read_trec(paths: Sequence[Path], form: str) -> pl.DataFrame:
    """The files of one run, or of one set of judgments: ``query``, ``document`` and the number ``score`` or ``label``; of a run its
    ``rank`` too, 1, 2, … for each query, in that order.

    Args:
        form: `RUN` or `QRELS`.

    Raises:
        DataError: naming file, line, text and rule, for a line of another form, a number that is none, a document that a query has twice.
    """
    names = form.split()
    value = names[4 if form == RUN else 3]
    parts = []
    for path in paths:
        require_plain(located(path))
        lines = pl.DataFrame({"text": located(path).read_text(encoding="utf-8-sig", errors="backslashreplace").split("\n")})
        lines = lines.with_row_index("line", offset=1).with_columns(words=pl.col("text").str.extract_all(r"\S+"))
        lines = lines.filter(pl.col("words").list.len() > 0).with_columns(path=pl.lit(str(path)))
        if not lines.height:
            raise DataError(f"{path}: no document in it")
        _refuse(lines.filter(pl.col("words").list.len() != len(names)), f"a line must be {form!r}, separated by spaces or tabs")
        number = pl.col("words").list.get(names.index(value)).cast(pl.Float64, strict=False)
        _refuse(lines.filter(~number.is_finite().fill_null(False)), f"the {value} must be a finite number")
        parts.append(lines.with_columns(number.alias(value), *(pl.col("words").list.get(names.index(n)).alias(n) for n in PAIR)))
    joined = pl.concat(parts)
    _refuse(
        joined.filter(~pl.struct(PAIR).is_first_distinct()), "this document of the query was named before; it must have one line"
    )
    if form == QRELS:
        return joined.select(*PAIR, value)
    written = pl.col("words").list.get(names.index("rank")).cast(pl.Float64, strict=False)
    ranked = joined.with_columns(written.alias("rank")).sort(
        "query", "score", "rank", "document", descending=[False, True, False, False], nulls_last=True
    )
    return ranked.select(*PAIR, value, pl.int_range(1, pl.len() + 1).over("query").alias("rank"))


def first_line(path: Path) -> str:
    """The first line of a text that holds more than a comment, without the spaces around it; empty where there is none."""
    with open(path, encoding="utf-8-sig", errors="backslashreplace") as file:
        return next((line.strip() for line in file if line.strip() and not line.lstrip().startswith("#")), "")


def is_run(path: Path) -> bool:
    """Whether a text begins as a run does."""
    return re.fullmatch(r"\S+\s+(?!qid:)\S+\s+\S+\s+\d+\s+[-+]?[\d.]+([eE][-+]?\d+)?\s+\S+", first_line(path)) is not None


def with_run(table: pl.DataFrame, run: pl.DataFrame, name: str, forms: Sequence[Form] = ("score",)) -> pl.DataFrame:
    """A table of ``query`` and ``document`` with a column for each form of a run, as `read_trec` read it.

    A document that the run has not has no score and no rank there, 0 where scores end at 0, and the lowest z-score of the query's list.
    """
    offsets = np.append(np.flatnonzero(run["rank"].to_numpy() == 1), run.height)
    scores = run["score"].to_numpy()
    columns = {column_of(form, name): formed(form, scores, offsets) for form in forms}
    found = table.join(
        run.select(PAIR).with_columns(pl.Series(k, v) for k, v in columns.items()), on=PAIR, how="left", maintain_order="left"
    )
    for form in set(forms) & {"min-max", "borda"}:
        found = found.with_columns(pl.col(column_of(form, name)).fill_null(0.0))
    if "z-score" in forms:
        column = column_of("z-score", name)
        lowest = run.select("query").with_columns(lowest=columns[column]).group_by("query").min()
        of_query = found.select("query").join(lowest, on="query", how="left", maintain_order="left")["lowest"]
        found = found.with_columns(pl.col(column).fill_null(of_query).fill_null(0.0))
    return found


def _refuse(wrong: pl.DataFrame, rule: str) -> None:
    if wrong.height:
        first = wrong.row(0, named=True)
        raise DataError(f"{first['path']}, line {first['line']}: {first['text'].strip()[:60]!r}: {rule}")


def attach_runs(
    queries: Queries, runs: Mapping[str, Sequence[Path]], label: str = "the data", forms: Sequence[Form] = ("score",)
) -> tuple[Queries, list[str]]:
    """The data set with the forms of each run as features (`with_run`), the score by the run's name; and a sentence about each.

    Raises:
        DataError: for what is wrong in a file, a feature of that name, data without document ids, or where a run has nothing of the data
            (with three examples of each side).
    """
    if queries.documents is None or queries.ids is None:
        raise DataError(f"{label}: runs are joined by query and document id, and the documents have no id")
    known = pl.DataFrame({
        "query": np.char.decode(np.repeat(queries.ids, np.diff(queries.offsets)), "utf-8", "backslashreplace"),
        "document": np.char.decode(queries.documents, "utf-8", "backslashreplace"),
    })  # fmt: skip
    joined, notes = known, []
    for name, paths in runs.items():
        for column in (column_of(form, name) for form in forms):
            if column in queries.names:
                raise DataError(f"{label}: data.runs: the data have a feature {column!r}; rename the run")
        run = read_trec(paths, RUN)
        scores = known.join(run, on=PAIR, how="left", maintain_order="left")["score"]
        if scores.null_count() == len(scores):
            theirs, ours = (", ".join(f"{q}/{d}" for q, d in side.select(PAIR).head(3).rows()) for side in (run, known))
            raise DataError(f"{label}: no document of run {name!r} is in the data; query/document there: {theirs}; here: {ours}")
        joined = with_run(joined, run, name, forms)
        notes.append(f"run {name!r}: {_about(run, known, scores)}")
    added = joined.drop(PAIR)
    features = np.column_stack((added.fill_null(float("nan")).to_numpy(), queries.features)).astype(np.float32)
    # Runs come first: LETOR text may end early, and parts of other widths are matched by their first features.
    return replace(queries, features=features, names=(*added.columns, *queries.names)), notes


def _about(run: pl.DataFrame, known: pl.DataFrame, scores: pl.Series) -> str:
    told = [f"{len(scores) - scores.null_count():,} of {number_of(len(scores), 'document')} with a score"]
    strange = run.join(known, on=PAIR, how="anti")
    here = strange.join(known, on="query", how="semi")
    elsewhere = strange.join(known, on="query", how="anti")
    for of, noun, where in ((here, "query", " here"), (elsewhere, "other query", "")):
        if of.height:
            queries = number_of(of["query"].n_unique(), noun)
            told.append(f"not in these data: {number_of(of.height, 'document')} of the run, of {queries}{where}")
    rounded = run.select("query", pl.col("score").cast(pl.Float32)).n_unique()
    if merged := run.select("query", "score").n_unique() - rounded:
        told.append(f"{number_of(merged, 'score')} too close to another of the query for float32: tied")
    return "; ".join(told)
