"""From ingested data to labels: runs, click labels, cleaning, binary labels."""

from dataclasses import replace
from functools import reduce
from operator import or_

import numpy as np
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.data.queries import Queries, keep, select
from tasks.config.click_labels import ClickLog
from tasks.config.data_section import Data
from tasks.data import clicks
from tasks.data.files import located
from tasks.data.trec import attach_runs
from tasks.records import RETRIEVED, Fold, Prepared, number_of
from tasks.store.datasets import keep_queries, open_queries
from tasks.store.seal import digest_of_file, unchanged
from tasks.store.state import Noted, made_once, remember, remembered


@task(cache_policy=NO_CACHE, name="labels", task_run_name="labels {label}")
def prepare(name: str, data: Data, label: str = "data") -> Prepared:
    """Runs and click labels joined, conflicts cleaned, binary labels derived."""
    if not (data.runs or data.clicks or data.clean or data.binarise is not None):
        return Prepared(name)
    log = data.clicks
    files = [*([log.log] if log else []), *(path for paths in data.runs.values() for path in paths)]
    digests = {path: digest_of_file(path) for path in map(located, files)}
    recipe = {
        "prepare": 11,
        "data": name,
        "clean": data.clean,
        "binarise": [data.binarise, data.binarise_into],
        "clicks": log and log.decides(digests[located(log.log)]),
    }
    if data.runs:
        recipe["runs"] = [[run, [digests[located(path)] for path in paths]] for run, paths in data.runs.items()]
        if data.run_forms != ("score",):
            recipe["run_forms"] = data.run_forms
    if noted := remembered(recipe):
        return Prepared(noted.data[0], noted.notes)
    queries, notes = open_queries(name), []
    with unchanged(digests):
        if data.runs:
            queries, added = attach_runs(queries, data.runs, label, data.run_forms)
            notes += added
        if log:
            queries, added = clicks.attach_all(queries, log, label)
            notes += added
    if data.clean:
        queries, dropped = cleaned(queries, 1.0 if data.binarise is None else data.binarise)
        notes.append(
            f"cleaning dropped {number_of(dropped[0], 'document')} with conflicting labels and {number_of(dropped[1], 'query')} without a relevant document"
        )
    if data.binarise is not None:
        binary = np.where(np.isnan(queries.labels), np.nan, queries.labels >= data.binarise)
        into = data.binarise_into
        queries = (
            replace(queries, labels=binary) if into == "label" else replace(queries, sources={**queries.sources, into: binary})
        )
        notes.append(
            f"binary labels: {int(np.nansum(binary)):,} of {number_of(queries.n_documents, 'document')} with a label of at least {data.binarise:g}"
        )
    made = Prepared(keep_queries(queries), tuple(notes))
    remember(recipe, Noted((made.data,), notes=made.notes))
    return made


@task(cache_policy=NO_CACHE, name="similar queries", task_run_name="similar queries")
def pooled_apart(fold: Fold, log: ClickLog) -> tuple[Fold, tuple[str, ...]]:
    """The fold with labels of similar queries, where the clicks of a query count in one of its data sets only, and sentences about what that changed."""
    digests = {located(log.log): digest_of_file(located(log.log))}
    recipe = {
        "pooled apart": 2,
        "fold": fold.roles,
        "clicks": log.decides(digests[located(log.log)]),
    }

    def made() -> Noted:
        with unchanged(digests):
            parts, notes = clicks.attach_apart([open_queries(name) for name in fold.roles.values()], log)
        names = [keep_queries(part) for part in parts] if notes else [*fold.roles.values()]
        return Noted(tuple(names), notes=tuple(notes))

    noted = made_once(recipe, made)
    return Fold(*noted.data), noted.notes


def cleaned(queries: Queries, threshold: float) -> tuple[Queries, tuple[int, int]]:
    """Without documents of a query that appear with different labels, be it by their features or by their ids, then without queries that
    have no relevant document (Dubey 2009 section 5); what was dropped of each."""
    conflicting = reduce(or_, (in_conflict(queries, content) for content in identities(queries).values()))
    consistent = keep(queries, ~conflicting)
    relevant = np.maximum.reduceat(np.nan_to_num(consistent.labels), consistent.offsets[:-1]) >= threshold
    kept = select(consistent, np.flatnonzero(relevant))
    return kept, (int(conflicting.sum()), queries.n_queries - kept.n_queries)


def identities(queries: Queries) -> dict[str, NDArray[np.uint64]]:
    """What can make two documents of a query the same one, ``uint64 [documents]`` by its name: the features, and the id where there is one.
    The features of a document that no run retrieved say nothing: it is like no other."""
    digests = queries.row_digests
    if RETRIEVED in queries.sources:
        digests = np.where(queries.sources[RETRIEVED] > 0, digests, np.arange(queries.n_documents, dtype=np.uint64))
    by_features = {"feature vector": digests}
    if queries.documents is None:
        return by_features
    return {**by_features, "document id": np.unique(queries.documents, return_inverse=True)[1].astype(np.uint64)}


def in_conflict(queries: Queries, content: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which documents have another label than one of the same content in their query, ``bool [documents]``."""
    order, starts = alike(queries, content)
    labels = queries.labels[order]  # one that nobody judged contradicts none
    apart = np.fmin.reduceat(labels, starts) < np.fmax.reduceat(labels, starts)
    found = np.empty(len(order), np.bool_)
    found[order] = np.repeat(apart, np.diff(np.append(starts, len(order))))
    return found


def alike(queries: Queries, content: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Documents ordered so that those of one query and one content stand together, and where each such group starts."""
    of_query = queries.of_query
    order = np.lexsort((content, of_query))
    new = (np.diff(of_query[order], prepend=-1) != 0) | np.append(True, content[order][1:] != content[order][:-1])
    return order, np.flatnonzero(new)
