"""The ranking of a run's chosen models over the lists that they fuse, as a TREC run.

A query that was tested in some fold is ranked by the model of that fold, which did not learn from it, so that the written run may be
measured; another one, of which nothing is known, by the mean of all folds' models.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl

import ltr
from ltr.data.runs import FORMS, Form, column_of
from ltr.metrics.evaluation import NOT_RANKED
from tasks.data.files import located
from tasks.data.pool import with_query_features
from tasks.data.trec import PAIR, RUN, read_trec, with_run
from tasks.export.predict import trec_run
from tasks.records import Trained
from tasks.store.cells import CellFolder
from tasks.store.datasets import open_queries
from tasks.store.seal import unchanged
from tasks.store.state import require_output, written_whole
from tasks.store.values import names_of


def write_fused(
    chosen: Sequence[Trained],
    runs: Mapping[str, Sequence[Path]],
    output: Path,
    about: pl.DataFrame | None = None,
    digests: Mapping[Path, str] = MappingProxyType({}),
) -> int:
    """Writes the retrieved documents of all queries of the runs, ranked by one ranker's chosen cells, one a fold; returns how many
    queries.

    Args:
        chosen: on data that hold forms of these runs.
        runs: TREC runs by name.
        about: what is known of queries (`read_query_features`), where the models read that.
        digests: of the files when the models began to be trained on them.

    Raises:
        DataError: as `read_trec`; for an output that is one of the files that are read, and a file that has changed since.
    """
    require_output(output, *(located(path) for paths in runs.values() for path in paths))
    models = [ltr.load(CellFolder.of(trained.result.key).model) for trained in chosen]
    with unchanged(digests):
        lists = {name: read_trec(paths, RUN) for name, paths in runs.items()}
    table = retrieved(lists, models[0].names, about)
    features = table.drop(PAIR).fill_null(float("nan")).to_numpy().astype(np.float32)
    by_fold = np.array([model.ranking_scores(features) for model in models])
    of_query = {name: k for k, trained in enumerate(chosen) for name in names_of(open_queries(trained.cell.data.test))}
    fold = np.array([of_query.get(name, -1) for name in table["query"].to_list()])
    scores = np.where(fold < 0, by_fold.mean(axis=0), by_fold[fold, np.arange(len(fold))])
    with written_whole(output) as partial:
        scored = table.select(PAIR).with_columns(pl.Series("score", scores).replace(NOT_RANKED, None))
        trec_run(scored, output).write_csv(partial, separator=" ", include_header=False, quote_style="never")
    return table["query"].n_unique()


def retrieved(runs: Mapping[str, pl.DataFrame], names: Sequence[str], about: pl.DataFrame | None = None) -> pl.DataFrame:
    """Every document of the runs (`read_trec`) by query and document, and the features of these names: forms of the runs, and what is known
    of queries."""
    table = pl.concat([run.select(PAIR) for run in runs.values()]).unique().sort(PAIR)
    for name, run in runs.items():
        forms: list[Form] = [form for form in FORMS if column_of(form, name) in names]
        table = with_run(table, run, name, forms) if forms else table
    table = table if about is None else with_query_features(table, about)[0]
    return table.select(*PAIR, *names)
