"""From ingested data to training, validation and test queries: runs, click labels, cleaning, binary labels, cuts by query."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.data.queries import Queries, concatenate, keep, mix, row_digests, select, widen
from tasks import clicks, store
from tasks.check import telling
from tasks.config import Data
from tasks.ingest import DataError, located, without
from tasks.runs import attach_runs


@task(cache_policy=NO_CACHE, name="labels", task_run_name="labels {label}")
def prepare(name: str, data: Data, label: str = "data") -> dict[str, Any]:
    """Runs and click labels joined, conflicts cleaned, binary labels derived.

    Returns:
        ``{"data": [name in the store], "notes": [what was done]}``.
    """
    if not (data.runs or data.clicks or data.clean or data.binarise is not None):
        return {"data": [name], "notes": []}
    log = data.clicks
    recipe = {
        "prepare": 2,
        "data": name,
        "clean": data.clean,
        "binarise": [data.binarise, data.binarise_into],
        "clicks": log and {**log.model_dump(mode="json"), "log": store.digest_of_file(located(log.log))},
    }
    if data.runs:
        recipe["runs"] = [[run, [store.digest_of_file(located(path)) for path in paths]] for run, paths in data.runs.items()]
    if noted := store.remembered(recipe):
        return dict(noted)
    queries, notes = store.open_queries(name), []
    if data.runs:
        queries, told = attach_runs(queries, data.runs, label)
        notes += told
    if log:
        queries, told = clicks.attach_all(queries, log, label)
        notes += told
    if data.clean:
        queries, dropped = cleaned(queries, data.binarise or 1.0)
        notes.append(
            f"cleaning dropped {dropped[0]:,} documents with conflicting labels and {dropped[1]:,} queries without a relevant document"
        )
    if data.binarise is not None:
        binary = np.where(np.isnan(queries.labels), np.nan, queries.labels >= data.binarise)
        into = data.binarise_into
        queries = (
            replace(queries, labels=binary) if into == "label" else replace(queries, sources={**queries.sources, into: binary})
        )
        notes.append(
            f"binary labels: {int(np.nansum(binary)):,} of {queries.n_documents:,} documents have a label of at least {data.binarise:g}"
        )
    noted = {"data": [store.keep_queries(queries)], "notes": notes}
    store.remember(recipe, noted)
    return noted


def cleaned(queries: Queries, threshold: float) -> tuple[Queries, tuple[int, int]]:
    """Without documents of a query that appear with different labels, then without queries that have no relevant document
    (Dubey 2009 section 5); what was dropped of each."""
    of_query = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))
    content = row_digests(queries.features) if queries.documents is None else np.unique(queries.documents, return_inverse=True)[1]
    _, group = np.unique(np.column_stack((of_query, content.astype(np.uint64).view(np.int64))), axis=0, return_inverse=True)
    labels = np.nan_to_num(queries.labels, nan=-1.0)
    low, high = np.full(group.max() + 1, np.inf), np.full(group.max() + 1, -np.inf)
    np.minimum.at(low, group, labels)
    np.maximum.at(high, group, labels)
    agreed = low[group] == high[group]
    consistent = keep(queries, agreed)
    relevant = np.maximum.reduceat(np.nan_to_num(consistent.labels), consistent.offsets[:-1]) >= threshold
    return select(consistent, np.flatnonzero(relevant)), (int((~agreed).sum()), int((~relevant).sum()))


@task(cache_policy=NO_CACHE, name="split", task_run_name="split")
def split(name: str, data: Data, seed: int) -> list[dict[str, str]]:
    """Folds ``[{"train", "valid", "test"}]`` of one data set, cut by query: `data.folds` of them, or one by `data.shares`."""
    recipe = {"split": 1, "data": name, "folds": data.folds, "shares": data.shares, "seed": seed}
    if noted := store.remembered(recipe):
        return list(noted["folds"])
    queries = store.open_queries(name)
    needed = max(data.folds, 3)
    if queries.n_queries < needed:
        raise DataError(f"{queries.n_queries} queries cannot be cut into {needed} parts")
    order = shuffled(queries, seed)
    if data.folds == 1:
        ends = np.maximum(1, np.round(np.cumsum(data.shares) * len(order))).astype(int)
        cut = np.split(order, [min(ends[0], len(order) - 2), min(max(ends[1], ends[0] + 1), len(order) - 1)])
        folds = [
            {
                role: store.keep_queries(select(queries, np.sort(part)))
                for role, part in zip(("train", "valid", "test"), cut, strict=True)
            }
        ]
    else:
        parts = [store.keep_queries(select(queries, np.sort(part))) for part in np.array_split(order, data.folds)]
        folds = _rotate(parts, len(parts))
    store.remember(recipe, {"folds": folds, "data": [name for fold in folds for name in fold.values()]})
    return folds


def share(name: str, part: float, seed: int) -> str:
    """A share of a data set's queries; a smaller one is part of every larger one."""
    if part == 1:
        return name
    recipe = {"share": 1, "data": name, "part": part, "seed": seed}
    noted = store.remembered(recipe)
    if noted is None:
        queries = store.open_queries(name)
        chosen = shuffled(queries, seed)[: max(2, round(part * queries.n_queries))]
        noted = {"data": [store.keep_queries(select(queries, np.sort(chosen)))]}
        store.remember(recipe, noted)
    return noted["data"][0]


def shuffled(queries: Queries, seed: int) -> NDArray[np.intp]:
    """Indices of the queries in an order that depends on their ids and the seed alone."""
    return np.argsort(mix(queries.keys ^ mix(np.array([seed + 1], np.uint64))[0]), kind="stable")


@task(cache_policy=NO_CACHE, name="rotate", task_run_name="rotate")
def rotate(parts: Sequence[str]) -> list[dict[str, str]]:
    """Folds as LETOR makes them: fold i trains on all parts from i on but two, validates on the next, tests on the last."""
    return _rotate(parts, len(parts))


def _rotate(parts: Sequence[str], n: int) -> list[dict[str, str]]:
    folds = []
    for i in range(n):
        turned = [parts[(i + k) % n] for k in range(n)]
        recipe = {"join": 1, "parts": turned[:-2]}
        noted = store.remembered(recipe)
        if noted is None:
            noted = {"data": [store.keep_queries(concatenate([store.open_queries(part) for part in turned[:-2]]))]}
            store.remember(recipe, noted)
        folds.append({"train": noted["data"][0], "valid": turned[-2], "test": turned[-1]})
    return folds


@task(cache_policy=NO_CACHE, name="fit together", task_run_name="fit together")
def fit_together(
    fold: dict[str, str], scale: float, seed: int, sparse: bool = True, drop_telling: bool = True
) -> tuple[dict[str, str], list[str]]:
    """The three data sets of a fold with the same features in the same order, cut down to a share of the queries.

    Args:
        sparse: a set may have fewer features than another, which are 0 there (LETOR text); tables must name all of them.
        drop_telling: leave out features that encode a label on the training queries (S section 6).

    Returns:
        The data sets, and a sentence for each label that features encode.

    Raises:
        DataError: where features are missing or unknown, or all of them encode labels.
    """
    sets = {role: store.open_queries(name) for role, name in fold.items()}
    names = max(sets.values(), key=lambda queries: queries.n_features).names if sparse else sets["train"].names
    result, dropped = {}, _telling(sets["train"]) if drop_telling else {}
    strangers = {name for told in dropped.values() for name in told}
    if strangers and strangers >= set(names):
        raise DataError("every feature encodes a label (data.drop_telling): there is nothing else to learn from")
    for role, queries in sets.items():
        changed = (
            widen(queries, names)
            if sparse and queries.names == names[: queries.n_features]
            else _with_features(queries, names, role)
        )
        changed = without(changed, strangers)
        if scale < 1:
            kept = max(2, round(scale * queries.n_queries))
            changed = select(changed, np.sort(shuffled(queries, seed)[:kept]))
        result[role] = fold[role] if changed is queries else store.keep_queries(changed)
    return result, [f"dropped, as they (nearly) equal the {source}: {', '.join(told)}" for source, told in dropped.items()]


def _telling(queries: Queries) -> dict[str, list[str]]:
    """Names of the features that encode each label source."""
    return {source: [queries.names[k] for k in np.flatnonzero(which)] for source, which in telling(queries).items()}


def _with_features(queries: Queries, names: tuple[str, ...], role: str) -> Queries:
    if queries.names == names:
        return queries
    for what, strange in (
        ("misses the feature", [name for name in names if name not in queries.names]),
        ("has the feature", [name for name in queries.names if name not in names]),
    ):
        if strange:
            more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
            raise DataError(f"{role}: {what} {strange[0]!r}{more}, unlike the training data")
    order = [queries.names.index(name) for name in names]
    return replace(queries, features=queries.features[:, order], names=names)
