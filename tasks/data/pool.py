"""Judgments beside what there is to rank by, runs and feature logs, as a data set: everything judged, retrieved or logged is in it."""

import json
from collections.abc import Mapping, Sequence

import polars as pl
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.data.runs import Form
from tasks.config.data_section import Data
from tasks.data.feature_logs import read_feature_logs
from tasks.data.files import located
from tasks.data.judgments import read_judgments
from tasks.data.query_features import read_query_features
from tasks.data.trec import PAIR, RUN, read_trec, with_run
from tasks.records import RETRIEVED, DataError, number_of
from tasks.store import state
from tasks.store.seal import digest_of_file, is_whole, unchanged
from tasks.store.state import digest_of, made_whole, write_json


@task(cache_policy=NO_CACHE, name="pool", task_run_name="pool")
def pool(data: Data) -> tuple[Data, list[str]]:
    """Writes the judged and the retrieved documents as one table, whose features are the scores of the runs, or other forms of them, and
    what feature logs say. "Retrieved" is what a run has or a feature log.

    A retrieved document that nobody judged has no label, a judged one that a run has not has no score there. One that is nowhere retrieved
    counts for what an ideal ranking has, and no more: the source `RETRIEVED` is 0 there, nothing is learned from it, and it is
    at no rank. Queries that only the judgments or only the runs have are left out, as trec_eval does. Judgments below 0 are read as 0.

    Returns:
        The section that reads the table, and sentences about what was left out and what is missing.

    Raises:
        DataError: for what is wrong in a file, or where no judged query is in a run.
    """
    given = [("qrels", data.qrels), ("feature logs", data.feature_logs), ("query features", data.query_features)]
    given += [(f"run {name}", own) for name, own in data.runs.items()]
    digests = {path: digest_of_file(path) for _, own in given for path in map(located, own)}
    files = [[name, [[path.name, digests[path]] for path in map(located, own)]] for name, own in given]
    columns = dict(zip([*PAIR, "label"], (data.query, data.document, data.label), strict=True))
    folder = state.root() / "pooled" / digest_of({"pool": 9, "files": files, "columns": columns, "forms": data.run_forms})[:32]
    if not is_whole(folder):
        with unchanged(digests):
            (judged, said), runs = read_judgments(data.qrels), {name: read_trec(own, RUN) for name, own in data.runs.items()}
            logged = read_feature_logs(data.feature_logs) if data.feature_logs else None
            table, notes = pooled(judged, runs, data.run_forms, logged)
            if data.query_features:
                table, about = with_query_features(table, read_query_features(data.query_features, data.query))
                notes += about
        for name in set(columns.values()) & set(table.columns[3:]):
            raise DataError(
                f"data.{'feature_logs' if logged is not None and name in logged.columns else 'query_features'}: a feature is named {name!r}, as a column of the data is"
            )
        with made_whole(folder) as partial:
            table.rename(columns).write_parquet(partial / "pool.parquet")
            write_json(partial / "notes.json", said + notes)
    section = data.model_copy(
        update={
            "qrels": [],
            "feature_logs": [],
            "query_features": [],
            "runs": {},
            "run_forms": ("score",),
            "files": [folder / "pool.parquet"],
            "sources": [*data.sources, *([RETRIEVED] if RETRIEVED in pl.read_parquet_schema(folder / "pool.parquet") else [])],
        }
    )
    return section, json.loads((folder / "notes.json").read_text(encoding="utf-8"))


def pooled(
    judged: pl.DataFrame,
    runs: Mapping[str, pl.DataFrame],
    forms: Sequence[Form] = ("score",),
    logged: pl.DataFrame | None = None,
) -> tuple[pl.DataFrame, list[str]]:
    """Judged and retrieved documents side by side, by query and document: ``query``, ``document``, ``label``, a column a form of a run, those
    of a feature log (`read_feature_logs`); and sentences about what was left out or is missing."""
    lists = {**{f"run {name!r}": run for name, run in runs.items()}, **({} if logged is None else {"the feature logs": logged})}
    retrieved = pl.concat([one.select(PAIR) for one in lists.values()]).unique()
    documents = pl.concat((judged.select(PAIR), retrieved)).unique().sort(PAIR)
    both = documents.join(judged, on="query", how="semi").join(retrieved, on="query", how="semi")
    if not both.height:
        theirs, ours = (", ".join(side["query"].unique().sort().head(3)) for side in (retrieved, judged))
        place = "a run" if runs else "a feature log"
        raise DataError(f"data.qrels: no judged query is in {place}; queries there: {theirs}; judged: {ours}")
    table = both.join(judged.with_columns(pl.col("label").clip(lower_bound=0)), on=PAIR, how="left", maintain_order="left")
    nowhere = both.join(retrieved, on=PAIR, how="anti").height
    for name, run in runs.items():
        table = with_run(table, run, name, forms)
    if logged is not None:
        if shared := set(table.columns) & set(logged.columns) - set(PAIR):
            raise DataError(
                f"data.feature_logs: {min(shared)!r} is the name of a run, or of a form of one, as well; rename the run"
            )
        table = table.join(logged, on=PAIR, how="left", maintain_order="left")
    if nowhere:
        found = retrieved.with_columns(pl.lit(1.0).alias(RETRIEVED))
        table = table.join(found, on=PAIR, how="left", maintain_order="left").with_columns(pl.col(RETRIEVED).fill_null(0.0))
    counts = [
        (judged.join(retrieved, on="query", how="anti")["query"].n_unique(), "query", "judged but in no run: left out"),
        (retrieved.join(judged, on="query", how="anti")["query"].n_unique(), "query", "in a run but not judged: left out"),
        (nowhere, "document", "judged but in no run: unranked, as in trec_eval, and not learned from"),
        (both.join(judged, on=PAIR, how="anti").height, "document", "retrieved but not judged: kept, without a label"),
        (int((judged["label"] < 0).sum()), "judgment", "below 0: read as 0"),
        *((both.join(one, on=PAIR, how="anti").height, "document", f"not in {name}") for name, one in lists.items()),
    ]
    return table, [f"{number_of(count, noun)} {what}" for count, noun, what in counts if count]


def with_query_features(table: pl.DataFrame, about: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """A table of ``query`` and other columns with those of `read_query_features`, missing for queries of which nothing is known; and a
    sentence about these."""
    if shared := set(table.columns) & set(about.columns) - {"query"}:
        raise DataError(f"data.query_features: {min(shared)!r} is the name of another feature; rename the column")
    unknown = table.join(about, on="query", how="anti")["query"].n_unique()
    notes = [f"{number_of(unknown, 'query')} without a row in data.query_features: features missing"] if unknown else []
    return table.join(about, on="query", how="left", maintain_order="left"), notes
