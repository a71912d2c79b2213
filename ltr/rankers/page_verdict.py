"""Whether taking position bias out of clicks helps here, where there are no judgments: what other pages' clicks say.

Two questions are asked of each way to train, on validation pages: how well its scores foretell clicks beside the rank that they were shown
at (`ltr.clicks.scored_looks`, fitted to one half of the queries, asked of the other, and the other way round), and how many clicks a page
would draw in its order (`ltr.clicks.off_policy.reordered`), for which the log has to tell how often ranks are looked at. Pages that share
a document are of one query; queries are what differs at random.
"""

from collections.abc import Mapping

import numpy as np

from ltr.clicks import scored_looks
from ltr.clicks.off_policy import reordered
from ltr.clicks.pages import DEEPEST, Pages
from ltr.data.digests import chosen
from ltr.data.queries import Queries, canonical
from ltr.kernels.kernel import Bools, Floats, Ints, Words
from ltr.metrics.measure import Measure
from ltr.metrics.significance import Comparison, holm, paired_t
from ltr.objectives.terms import Term
from ltr.objectives.unbiased import Unbiased
from ltr.rankers.verdict import NAIVE, Verdict

SEED = 8
"""Of the halves of queries."""
_ROUNDING = 1e-9
"""Of a standard error: one query alone that differs is just one."""


class PageVerdict:
    """What validation pages say of ways to train.

    Args:
        queries: the pages, whose results down to rank `DEEPEST` are asked, as of a log.
        how: says where positions are.
        term: whose measure's source holds the clicks.
        looks: propensities of ranks 1, 2, …, as far as they are known; deeper ranks are looked at like the last.

    Attributes:
        queries: in the order that scores are to be in.

    Raises:
        ValueError: for fewer than four queries with clicks, of which two are in each half, or two documents at one rank of a page.
    """

    def __init__(self, queries: Queries, how: Unbiased, term: Term, looks: Floats) -> None:
        self.queries = canonical(queries)
        place = how.shown_at(self.queries, term)
        page = self.queries.of_query
        order = np.lexsort((place, page))
        self._order = order[(place[order] >= 0) & (place[order] < DEEPEST)]
        place, page = place[self._order], page[self._order]
        clicked = (self.queries.source(Measure.of(term.measure).source) > 0)[self._order]
        digests, document = np.unique(self.queries.row_digests[self._order], return_inverse=True)
        _, page = np.unique(page, return_inverse=True)
        query, self._half = _of_documents(page, document, digests)
        self._pages = Pages(np.append(np.flatnonzero(np.diff(page, prepend=-1)), len(page)), document, place + 1, clicked, query)
        self._query = query[self._pages.pair[self._pages.offsets[:-1]]]
        if min(len(np.unique(self._query[self._half == side])) for side in (False, True)) < 2:
            raise ValueError(f"validation pages of {len(np.unique(self._query))} queries are too few to be halved")
        self._looks = np.append(looks, np.full(max(self._pages.n_ranks - len(looks), 0), looks[-1]))

    def likelihood(self, scores: Floats) -> Floats:
        """Of clicks on pages that were held out, nats a page, mean of each query, ``float64 [queries]``; `scores` in the order of
        `queries`."""
        own = scores[self._order]
        own = (own - own.mean()) / max(float(own.std()), 1e-12)
        rows, found = np.repeat(self._half, np.diff(self._pages.offsets)), np.empty(self._pages.n_pages)
        for side in (False, True):
            model = scored_looks.fit(self._pages.select(self._half == side), own[rows == side], self._pages.n_ranks)
            found[self._half != side] = model.likelihood(self._pages.select(self._half != side), own[rows != side])
        return self._by_query(found)

    def clicks(self, scores: Floats) -> Floats:
        """That a page would draw in the order of `scores`, mean of each query, ``float64 [queries]``."""
        return self._by_query(reordered(self._pages, scores[self._order], self._looks))

    def _by_query(self, values: Floats) -> Floats:
        return np.bincount(self._query, values) / np.bincount(self._query)

    def verdict(self, scores: Mapping[str, Floats]) -> Verdict:
        """A way is kept that foretells held-out clicks better than `NAIVE` by more than a standard error, and would draw more of them: of
        several the one that foretells them best; otherwise `NAIVE`.

        Args:
            scores: by way ``float64 [documents]`` in the order of `queries`; `NAIVE` among them.
        """
        ways = [name for name in scores if name != NAIVE]
        likely, drawn = ({name: of(own) for name, own in scores.items()} for of in (self.likelihood, self.clicks))
        ahead, more = ({name: paired_t(values[name], values[NAIVE]) for name in ways} for values in (likely, drawn))
        ps = dict(zip(ways, holm([ahead[name].p_value for name in ways]).tolist(), strict=True))
        better = [name for name in ways if ahead[name].z > 1 + _ROUNDING and more[name].difference > 0]
        kept = max(better, key=lambda name: ahead[name].difference, default=NAIVE)
        first = max(better or ways, key=lambda name: ahead[name].difference)
        told = [_told(name, ahead[name], more[name], ps[name]) for name in (first, *(name for name in ways if name != first))]
        n_pages, n_queries = self._pages.n_pages, len(likely[NAIVE])
        return Verdict(
            kept,
            f"unbiased: auto keeps {kept}, by clicks and not by judgments ({n_pages:,} validation pages of {n_queries:,} queries); log-likelihood of "
            f"held-out clicks per page, and clicks per page (off-policy estimate, examination probabilities taken as known), compared with {NAIVE}: "
            f"{'; '.join(told)}" + (f"; Holm over {len(ways)}" if len(ways) > 1 else ""),
        )


def unsupported(why: str) -> str:
    """What is said where the log cannot tell how often ranks are looked at."""
    return f"unbiased: auto keeps {NAIVE}: the validation queries have no judgments, and the log does not say how many clicks a new order would get ({why})"


def _told(name: str, ahead: Comparison, more: Comparison, p: float) -> str:
    sure = "at 95 %" if p < 0.05 else "at 90 %" if p < 0.1 else "not significant"
    return f"{name} {ahead.difference:+.4f} ±{ahead.standard_error:.4f} (p = {p:.2g}, {sure}) and {more.difference:+.4f} ±{more.standard_error:.4f}"


def _of_documents(page: Ints, document: Ints, digests: Words) -> tuple[Ints, Bools]:
    """Queries of documents, ``int64 [documents]``, and the half of each page, ``bool [pages]``: what is linked by pages is of one query."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_pages, n = int(page.max()) + 1, int(page.max()) + 1 + len(digests)
    links = coo_array((np.ones(len(page)), (page, document + n_pages)), (n, n))
    _, query = connected_components(links, directed=False)
    _, query = np.unique(query, return_inverse=True)
    least = np.full(query.max() + 1, np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(least, query[n_pages:], digests)
    return query[n_pages:], chosen(least, 0.5, (SEED,))[query[:n_pages]]
