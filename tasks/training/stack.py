"""Data sets whose features are the scores of trained rankers."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE

import ltr
from ltr.data.queries import Queries, select
from tasks.data.folds import shuffled
from tasks.records import Fold
from tasks.store.cells import CellFolder
from tasks.store.datasets import keep_queries, open_queries
from tasks.store.state import Noted, remember, remembered


@task(cache_policy=NO_CACHE, name="stack", task_run_name="stack")
def stack(fold: Fold, keys: Mapping[str, str], seed: int) -> Fold:
    """The data sets of a fold with the scores of trained cells as features, by name: two halves of the validation queries to learn from
    and to choose on, and the test queries.

    Args:
        keys: of the trained cells, by the name of their ranker.
    """
    recipe = {"stack": 1, "fold": fold.roles, "keys": list(keys.items()), "seed": seed}
    if noted := remembered(recipe):
        return noted.folds[0]
    rankers = {name: ltr.load(CellFolder.of(key).model) for name, key in keys.items()}

    def scored(queries: Queries) -> Queries:
        scores = np.column_stack([ranker.predict(queries.features) for ranker in rankers.values()])
        return replace(queries, features=scores.astype(np.float32), names=tuple(rankers))

    valid = open_queries(fold.valid)
    halves = [scored(select(valid, np.sort(half))) for half in np.array_split(shuffled(valid, seed), 2)]
    made = Fold(*(keep_queries(queries) for queries in (*halves, scored(open_queries(fold.test)))))
    remember(recipe, Noted(tuple(made.roles.values()), folds=(made,)))
    return made
