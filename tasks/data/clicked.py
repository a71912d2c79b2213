"""Training queries of each fold as pages that simulated users clicked (`tasks.config.clicked_pages`)."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

import ltr
from ltr.data.queries import Queries, select, with_pairs
from ltr.data.synthetic import clicked_pages
from ltr.metrics.gains import label_worth
from ltr.metrics.measure import gains_of
from tasks.config.clicked_pages import ClickedPages
from tasks.records import DataError, Fold, number_of
from tasks.store.datasets import keep_queries, open_queries
from tasks.store.state import Noted, core_digest, made_once

FOLDS = 10
"""By so much the draws of one seed are ahead of those of the next, so that folds have draws of their own."""


@task(cache_policy=NO_CACHE, name="clicked pages", task_run_name="clicked pages")
def clicked(fold: Fold, index: int, section: ClickedPages, rules: ltr.Conventions) -> tuple[Fold, str]:
    """The fold with clicked pages to learn from, and a sentence about them.

    Args:
        index: of the fold, from 0, for draws of its own.

    Raises:
        DataError: where there is no query that a first ranker could learn from, or it cannot learn from these.
    """
    recipe = {
        "clicked pages": 1,
        "core": core_digest(),
        "train": fold.train,
        "index": index,
        "rules": vars(rules),
        **section.model_dump(mode="json"),
    }

    def made() -> Noted:
        pages, note = _made(open_queries(fold.train), FOLDS * section.seed + index, section, rules)
        return Noted((keep_queries(pages),), notes=(note,))

    noted = made_once(recipe, made)
    return Fold(noted.data[0], fold.valid, fold.test), noted.notes[0]


def _made(train: Queries, seed: int, section: ClickedPages, rules: ltr.Conventions) -> tuple[Queries, str]:
    drawn = some_with_pairs(train, section.share, seed)
    if not len(drawn):
        raise DataError(
            "data.clicked_pages: no training query has documents with different labels, so the first ranker cannot learn"
        )
    try:
        first = ltr.RankSVM(conventions=rules).fit(select(train, drawn))
    except ValueError as error:
        raise DataError(f"data.clicked_pages: the first ranker cannot learn: {error}") from None
    looks = np.array(section.looks) ** section.eta
    gains = gains_of(ltr.Measure.of("ndcg"), train.labels, rules)
    as_they_gain = replace(train, labels=label_worth(gains, ltr.Conventions()))
    scores = first.predict(train.features)
    pages = clicked_pages(as_they_gain, scores, section.per_query, looks, section.noise, section.jitter, seed)
    return pages, (
        f"{number_of(train.n_queries, 'query')} became {number_of(pages.n_queries, 'page')}, ordered by a RankSVM of "
        f"{number_of(len(drawn), 'query')}, with {number_of(int(pages.labels.sum()), 'click')} on {number_of(pages.n_documents, 'result')}"
    )


def some_with_pairs(queries: Queries, share: float, seed: int) -> NDArray[np.intp]:
    """A share of all queries, one at least, drawn from those with documents of two labels; none where there are none."""
    able = np.flatnonzero(with_pairs(queries))
    n = min(max(round(share * queries.n_queries), 1), len(able))
    return np.sort(np.random.default_rng([seed, 1]).choice(able, n, replace=False)) if len(able) else able
