"""Data whose truth is known: judged queries from a random sparse cubic, and search sessions with position bias.

Donmez 2009 section 6 draws a dense random cubic in 300 variables, which nothing can learn (a linear model explains .004 of its
variance). Here the value of a document is a sum of sparse random monomials of degree 1–3 over i.i.d. features, and labels 0–4
are fixed shares of the value plus noise.

Sessions show each query's documents as an old ranker orders them; a simulated user examines rank r with probability r^−η and
clicks what satisfies, with noise. What satisfies is not quite what judges value, so that there is something to learn from clicks.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data.queries import Queries

LABEL_SHARES = (0.52, 0.23, 0.13, 0.08, 0.04)
"""Shares of labels 0–4, about those of public data sets from web search."""
SIMILAR = 0.8
"""Correlation of what users of a query value with what users of a similar one do, in the mean over worlds (see `World`)."""
HISTORY = ("shown_before", "clicks_before", "last_clicks_before", "rank_before")
"""What `history` tells of each document."""


@dataclass(frozen=True)
class World:
    """The truth: a value function for judges and one for users.

    Features are i.i.d. uniform with mean 0 and variance 1, so monomials of every degree weigh alike and about two thirds of the
    value are not linear. Five of the features occur in it: trained on 1,000 queries of the default world, a two-layer net reaches a
    test NDCG@10 of .66 where a linear one stays at .49 (how far they differ depends on the seed; of 1 to 5, with 5 they do not). Of ten or
    twenty that occur alone a net of ten units learns no more than a linear one.

    Args:
        n_features: features of a document.
        n_monomials: terms of each value function.
        active: variables that occur in any term, the same ones for judges and users: features, or with `mixed` sums of so many of
            them each, so that no single feature tells much and a net has to find the sums.
        noise: standard deviation of the judges' noise, in standard deviations of the value.
        agreement: correlation of what users value with what judges value, in the mean over worlds. Both are drawn alone, of few monomials that
            they have in common: of seeds 1 to 20 with .7 the correlation is .51 to .82, and the deviation of what users value .74 to 1.17.
        shares: of labels 0–4.
        seed: of everything that is drawn.
    """

    n_features: int = 300
    n_monomials: int = 100
    active: int = 5
    mixed: int = 1
    noise: float = 0.3
    agreement: float = 0.7
    shares: tuple[float, ...] = LABEL_SHARES
    seed: int = 1

    def features(self, n_documents: int, stream: int) -> NDArray[np.float32]:
        """Features ``float32 [documents, features]``; each `stream` is another sample."""
        rng = np.random.default_rng([self.seed, 1, stream])
        return rng.uniform(-np.sqrt(3), np.sqrt(3), (n_documents, self.n_features)).astype(np.float32)

    def values(self, features: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What judges and what users value, ``float64 [documents]`` each, in standard deviations: the judges' exactly, the users' about."""
        judges, other = self._polynomial(features, 0), self._polynomial(features, 1)
        return judges, self.agreement * judges + np.sqrt(1 - self.agreement**2) * other

    def similar(self, features: NDArray[np.float32], users: NDArray[np.float64]) -> NDArray[np.float64]:
        """What users of a similar query value in these documents, ``float64 [documents]``."""
        theirs: NDArray[np.float64] = SIMILAR * users + np.sqrt(1 - SIMILAR**2) * self._polynomial(features, 2)
        return theirs

    def _polynomial(self, features: NDArray[np.float32], which: int) -> NDArray[np.float64]:
        order = np.random.default_rng([self.seed, 2]).permutation(self.n_features)[: self.active * self.mixed]
        rng = np.random.default_rng([self.seed, 3, which])
        sample = np.random.default_rng([self.seed, 4]).uniform(-np.sqrt(3), np.sqrt(3), (20_000, self.n_features))
        known, reference_known = (self._variables(x, order) for x in (features, sample))
        value, reference = np.zeros(len(features)), np.zeros(len(sample))
        for _ in range(self.n_monomials):
            chosen = rng.choice(self.active, int(rng.integers(1, 4)))
            weight = rng.normal()
            value += weight * known[:, chosen].prod(axis=1)
            reference += weight * reference_known[:, chosen].prod(axis=1)
        return (value - float(reference.mean())) / float(reference.std())

    def _variables(self, features: NDArray[Any], order: NDArray[np.int64]) -> NDArray[np.float64]:
        """What monomials are products of, ``float64 [documents, active]``."""
        taken = features[:, order].astype(np.float64)
        return taken if self.mixed == 1 else taken.reshape(len(taken), self.active, self.mixed).sum(axis=2) / np.sqrt(self.mixed)

    def queries(self, n_queries: int, documents: int, stream: int) -> tuple[Queries, NDArray[np.float64]]:
        """Judged queries with as many documents each, and what users value in them (``float64 [documents]``)."""
        features = self.features(n_queries * documents, stream)
        judges, users = self.values(features)
        seen = judges + self.noise * np.random.default_rng([self.seed, 5, stream]).normal(size=len(judges))
        cuts = np.quantile(seen, np.cumsum(self.shares)[:-1])
        offsets = np.arange(0, n_queries * documents + 1, documents)
        return Queries(features, np.searchsorted(cuts, seen).astype(np.float64), offsets), users


@dataclass(frozen=True)
class Sessions:
    """Shown results, one row an impression, ordered by session and rank."""

    session: NDArray[np.int64]
    query: NDArray[np.int64]
    rank: NDArray[np.int64]
    document: NDArray[np.int64]
    """Row of the document in the data set."""
    click: NDArray[np.int64]
    """1, 2, … in the order of the session's clicks, 0 where not clicked."""


@dataclass(frozen=True)
class Browsing:
    """What users of a simulated page see and do.

    Attributes:
        shown: results on a page.
        bias: η of the position bias; 0 is none.
        noise: clicks that mean nothing, and satisfying documents left alone.
    """

    shown: int = 10
    bias: float = 1.0
    noise: float = 0.05


def attraction(users: NDArray[np.float64]) -> NDArray[np.float64]:
    """How often those who look at a document want it, by what they value in it (``float64 [documents]`` both): the logistic of
    3·(value − 1)."""
    wanted: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-3.0 * (users - 1.0)))
    return wanted


def simulate_sessions(
    offsets: NDArray[np.int64],
    judged: NDArray[np.float64],
    users: NDArray[np.float64],
    per_query: int,
    browsing: Browsing | None = None,
    seed: int = 1,
) -> Sessions:
    """Search sessions over a judged data set.

    The old ranker orders by the judged label plus noise that differs a little from session to session. A user examines rank r
    with probability r^−bias and clicks with probability noise + (1 − 2·noise)·attraction (`Browsing`, `attraction`).

    Args:
        offsets: ``[queries + 1]``.
        judged: judged labels ``[documents]``, which the old ranker knows roughly.
        users: what users value ``[documents]``.
        per_query: sessions of each query.
        browsing: what users see and do.
        seed: of everything that is drawn.
    """
    browsing = browsing or Browsing()
    noise = browsing.noise
    attractive, parts = attraction(users), []
    for q in range(len(offsets) - 1):
        rng = np.random.default_rng([seed, 6, q])
        first, last = offsets[q], offsets[q + 1]
        size = min(browsing.shown, int(last - first))
        old = judged[first:last] + 1.5 * rng.normal(size=last - first)
        order = np.argsort(-(old + 0.7 * rng.normal(size=(per_query, last - first))), axis=1)[:, :size]
        examined = rng.random((per_query, size)) < np.arange(1.0, size + 1.0) ** -browsing.bias
        clicks = examined & (rng.random((per_query, size)) < noise + (1 - 2 * noise) * attractive[first + order])
        parts.append((np.full(order.size, q), first + order.ravel(), (np.cumsum(clicks, axis=1) * clicks).ravel(), size))
    return Sessions(
        session=np.concatenate([k * per_query + np.repeat(np.arange(per_query), size) for k, (*_, size) in enumerate(parts)]),
        query=np.concatenate([query for query, *_ in parts]),
        rank=np.concatenate([np.tile(np.arange(1, size + 1), per_query) for *_, size in parts]),
        document=np.concatenate([document for _, document, _, _ in parts]),
        click=np.concatenate([click for *_, click, _ in parts]),
    )


def clicked_pages(
    queries: Queries,
    scores: NDArray[np.float64],
    per_query: int,
    looks: NDArray[np.float64],
    noise: float = 0.1,
    jitter: float = 0.0,
    seed: int = 1,
) -> Queries:
    """Judged queries as users of the position-based model see them: every page is a query, a click its label, and the source ``position``
    says where each document was shown, from 1 (ULTRA's simulation of unbiased learning, Ai et al. 2018 section 5).

    Args:
        scores: ``float64 [documents]`` of the ranker that made the pages, plus a normal draw of standard deviation `jitter` for each page.
        per_query: pages of each query.
        looks: how often ranks 1, 2, … are looked at; there are no others on a page.
        noise: how often what is looked at and judged 0 is clicked; the best label always is, and between these clicks go by 2^label − 1.
    """
    worth = np.exp2(np.nan_to_num(queries.labels)) - 1
    attraction = noise + (1 - noise) * worth / max(worth.max(initial=0.0), np.finfo(np.float64).tiny)
    rows, ranks, clicks = [], [], []
    for q in range(queries.n_queries):
        rng = np.random.default_rng([seed, 7, q])
        first, last = queries.offsets[q], queries.offsets[q + 1]
        seen = scores[first:last] + jitter * rng.normal(size=(per_query, last - first))
        shown = first + np.argsort(-seen, axis=1, kind="stable")[:, : len(looks)]
        chance = looks[: shown.shape[1]] * attraction[shown]
        rows.append(shown.ravel())
        ranks.append(np.tile(np.arange(1.0, shown.shape[1] + 1), per_query))
        clicks.append((rng.random(shown.shape) < chance).ravel().astype(np.float64))
    row, position = np.concatenate(rows), np.concatenate(ranks)
    return Queries(
        queries.features[row],
        np.concatenate(clicks),
        np.append(np.flatnonzero(position == 1), len(row)),
        sources={"position": position},
        names=queries.names,
    )


def history(log: Sessions, n_documents: int) -> NDArray[np.float32]:
    """What a log tells of each document, ``float32 [documents, HISTORY]``: log(1 + times shown), clicks and last clicks over times shown,
    and mean rank (0 where it was not shown). A ranker may use the clicks of an earlier time as features (Svore 2011 section 6)."""
    shown = np.bincount(log.document, minlength=n_documents)
    last_of_session = np.zeros(int(log.session.max(initial=-1)) + 1, np.int64)
    np.maximum.at(last_of_session, log.session, log.click)
    last = (log.click > 0) & (log.click == last_of_session[log.session])
    sums = [np.bincount(log.document, values, n_documents) for values in (log.click > 0, last, log.rank)]
    return np.column_stack((np.log1p(shown), *(total / np.maximum(shown, 1) for total in sums))).astype(np.float32)
