"""What the doctor says of files that hold no rows to learn from, but what rows are made of: judgments, runs, feature logs, logs of users."""

from itertools import islice
from pathlib import Path

import polars as pl

from tasks.data.feature_logs import read_feature_logs
from tasks.data.files import located
from tasks.data.json_lines import SUFFIXES, object_at, objects
from tasks.data.judgments import has_features, is_judgments, is_qrels, read_judgments
from tasks.data.tables import is_table
from tasks.data.trec import PAIR, RUN, is_run, read_trec
from tasks.data.ubi import ubi_log
from tasks.records import DataError, Finding, number_of

_LOOKED_AT = 20
"""Objects at the beginning of a file that say what it is."""


def about_file(path: Path, label: str = "label") -> list[Finding] | None:
    """What there is to say of a file of one of these kinds; None for data to learn from, which have a column `label` where they are a table.

    Raises:
        DataError: where there is no such file.
    """
    found = located(path)
    kind = _kind(found, label)
    try:
        return None if kind is None else [Finding("note", str(path), text) for text in _SAYS[kind](path)]
    except DataError as error:
        return [Finding("error", str(path), str(error).removeprefix(f"{path}, ").removeprefix(f"{path}: "))]


def _kind(path: Path, label: str) -> str | None:
    if path.suffix.lower() not in SUFFIXES:
        if is_judgments(path, label):
            return "judgments"
        if is_table(path) or has_features(path):
            return None
        return "judgments" if is_qrels(path) else "run" if is_run(path) else None
    try:
        first = [one for _, one in islice(objects(path), _LOOKED_AT)]
    except DataError:
        return "judgments" if path.suffix.lower() == ".json" else "ubi"
    if any("judgmentRatings" in one for one in first):
        return "judgments"
    return "features" if any("hits" in object_at(one, "hits") or "response" in one for one in first) else "ubi"


def _judgments(path: Path) -> list[str]:
    table, notes = read_judgments([path])
    labels = ", ".join(f"{label:g}: {count:,}" for label, count in sorted(table["label"].value_counts().rows()))
    return [*notes, f"judgments by rating: {labels}", "judgments are named by data.qrels, beside data.runs or data.feature_logs"]


def _run(path: Path) -> list[str]:
    run = read_trec([path], RUN)
    queries, documents = run["query"].n_unique(), run.height
    tied = int(run.select(pl.struct("query", "score").is_duplicated().sum()).item())
    told = f"{number_of(queries, 'query')}, {number_of(documents, 'document')}, {documents / queries:.1f} a query, {tied:,} of equal scores"
    return [f"run of TREC: {told}", "runs are named by data.runs, beside judgments in data.qrels"]


def _features(path: Path) -> list[str]:
    table = read_feature_logs([path])
    names = [name for name in table.columns if name not in PAIR]
    size = f"{number_of(table['query'].n_unique(), 'query')}, {number_of(table.height, 'document')}, {number_of(len(names), 'feature')}"
    missing = ", ".join(f"{name} {count:,}" for name in names if (count := table[name].null_count()))
    notes = [f"feature log: {size}", *([f"not logged for some documents: {missing}"] if missing else [])]
    return [*notes, "feature logs are named by data.feature_logs, beside judgments in data.qrels"]


def _ubi(path: Path) -> list[str]:
    return [*ubi_log(located(path))[1], "a log of users is named by data.clicks.log"]


_SAYS = {"judgments": _judgments, "run": _run, "features": _features, "ubi": _ubi}
