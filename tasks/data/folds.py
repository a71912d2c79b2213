"""Training, validation and test queries: cuts by query, rotated parts, shares, and features that fit together."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.data.digests import mix
from ltr.data.queries import Queries, concatenate, in_order, select, widen
from tasks.config.data_section import Data
from tasks.data.check import leaking_features
from tasks.data.ingest import without
from tasks.records import DataError, Fold, number_of
from tasks.store.datasets import keep_part, keep_queries, open_queries
from tasks.store.state import Noted, made_once, remember, remembered


@task(cache_policy=NO_CACHE, name="split", task_run_name="split")
def split(name: str, data: Data, seed: int) -> list[Fold]:
    """Folds of one data set, cut by query: `data.folds` of them, or one by `data.shares`."""
    recipe = {"split": 1, "data": name, "folds": data.folds, "shares": data.shares, "seed": seed}
    if noted := remembered(recipe):
        return list(noted.folds)
    queries = open_queries(name)
    needed = max(data.folds, 3)
    if queries.n_queries < needed:
        raise DataError(f"{number_of(queries.n_queries, 'query')} cannot be cut into {needed} parts")
    order = shuffled(queries, seed)
    if data.folds == 1:
        ends = np.maximum(1, np.round(np.cumsum(data.shares) * len(order))).astype(int)
        cut = np.split(order, [min(ends[0], len(order) - 2), min(max(ends[1], ends[0] + 1), len(order) - 1)])
        folds = [Fold(*(keep_part(name, part) for part in cut))]
    else:
        parts = [keep_part(name, part) for part in np.array_split(order, data.folds)]
        folds = _rotate(parts)
    remember(recipe, Noted(tuple(name for fold in folds for name in fold.roles.values()), folds=tuple(folds)))
    return folds


@task(cache_policy=NO_CACHE, name="cut validation", task_run_name="cut validation")
def validation_cut(train: str, test: str, data: Data, seed: int) -> Fold:
    """A fold whose validation queries are cut from the training ones, in the proportion of `data.shares`."""
    recipe = {"validation": 1, "train": train, "test": test, "shares": data.shares, "seed": seed}
    if noted := remembered(recipe):
        return noted.folds[0]
    queries = open_queries(train)
    if queries.n_queries < 2:
        raise DataError(f"train: {number_of(queries.n_queries, 'query')} cannot be cut into training and validation queries")
    order = shuffled(queries, seed)
    kept = min(max(1, round(len(order) * data.shares[0] / sum(data.shares[:2]))), len(order) - 1)
    own, held_out = (keep_part(train, part) for part in (order[:kept], order[kept:]))
    fold = Fold(own, held_out, test)
    remember(recipe, Noted((fold.train, fold.valid), folds=(fold,)))
    return fold


def share(name: str, part: float, seed: int) -> str:
    """A share of a data set's queries; a smaller one is part of every larger one."""
    if part == 1:
        return name

    def drawn() -> Noted:
        queries = open_queries(name)
        chosen = shuffled(queries, seed)[: max(2, round(part * queries.n_queries))]
        return Noted((keep_part(name, chosen),))

    return made_once({"share": 1, "data": name, "part": part, "seed": seed}, drawn).data[0]


def shuffled(queries: Queries, seed: int) -> NDArray[np.intp]:
    """Indices of the queries in an order that depends on their ids and the seed alone."""
    return np.argsort(mix(queries.keys ^ mix(np.array([seed + 1], np.uint64))[0]), kind="stable")


@task(cache_policy=NO_CACHE, name="rotate", task_run_name="rotate")
def rotate(parts: Sequence[str], sparse: bool = True) -> list[Fold]:
    """Folds as LETOR makes them: fold i trains on all parts from i on but two, validates on the next, tests on the last.

    Args:
        sparse: a part may have fewer features than another (LETOR text); tables must name all of them, in any order.

    Raises:
        DataError: where features of tables are missing or unknown.
    """
    return _rotate(parts if sparse else _of_one_order(parts))


def _of_one_order(parts: Sequence[str]) -> list[str]:
    """The parts with the features of the first one, in its order."""
    sets = [open_queries(part) for part in parts]
    ordered = [_with_features(queries, sets[0].names, f"part {k}", "part 1") for k, queries in enumerate(sets, 1)]
    return [part if one is own else keep_queries(one) for part, own, one in zip(parts, sets, ordered, strict=True)]


def _rotate(parts: Sequence[str]) -> list[Fold]:
    turns = [[*parts[i:], *parts[:i]] for i in range(len(parts))]
    return [Fold(_joined(train), valid, test) for *train, valid, test in turns]


def _joined(parts: Sequence[str]) -> str:
    return made_once(
        {"join": 1, "parts": list(parts)}, lambda: Noted((keep_queries(concatenate([open_queries(part) for part in parts])),))
    ).data[0]


@task(cache_policy=NO_CACHE, name="fit together", task_run_name="fit together")
def fit_together(fold: Fold, scale: float, seed: int, sparse: bool = True, drop_leaking: bool = True) -> tuple[Fold, list[str]]:
    """The three data sets of a fold with the same features in the same order, cut down to a share of the queries.

    Args:
        sparse: a set may have fewer features than another, which are 0 there (LETOR text); tables must name all of them.
        drop_leaking: leave out features that encode a label on the training queries (S section 6).

    Returns:
        The data sets, and a sentence for each label that features encode.

    Raises:
        DataError: where features are missing or unknown, or all of them encode labels.
    """
    sets = {role: open_queries(name) for role, name in fold.roles.items()}
    names = max(sets.values(), key=lambda queries: queries.n_features).names if sparse else sets["train"].names
    result, dropped = {}, _leaking(sets["train"]) if drop_leaking else {}
    strangers = {name for leaking in dropped.values() for name in leaking}
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
        result[role] = fold.roles[role] if changed is queries else keep_queries(changed)
    notes = [f"dropped, as they (nearly) equal the {source}: {', '.join(leaking)}" for source, leaking in dropped.items()]
    return Fold(**result), notes


def _leaking(queries: Queries) -> dict[str, list[str]]:
    """Names of the features that encode each label source."""
    return {source: [queries.names[k] for k in np.flatnonzero(which)] for source, which in leaking_features(queries).items()}


def _with_features(queries: Queries, names: tuple[str, ...], role: str, model: str = "the training data") -> Queries:
    if queries.names == names:
        return queries
    for what, strange in (
        ("lacks the feature", [name for name in names if name not in queries.names]),
        ("has the feature", [name for name in queries.names if name not in names]),
    ):
        if strange:
            more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
            raise DataError(f"{role}: {what} {strange[0]!r}{more}, unlike {model}")
    return in_order(queries, names)
