"""Two rankers or more on one page: how lists are interleaved, which ranker a click speaks for, and how many sessions tell them apart.

    team draft      rankers pick in turn, in an order drawn for each round; a click is for the team that picked (Radlinski et al. 2008);
                    of several rankers this is team-draft multileaving (Schuth et al. 2014)
    balanced        lists are merged from the top, one of them first by lot; clicks count for a list as far as both were shown down to
                    the lowest click (Joachims 2003)
    probabilistic   each result is drawn from one ranker's softmax 1/rank³; a click is for a ranker as far as it was likely to have
                    put the document there, which needs no record of teams (Hofmann et al. 2011)

A session prefers the ranker with more credit: 1, −1, or 0 for a tie; a probabilistic one has the mean of that over all teams that could have
made the page (Hofmann et al. 2011). The sign of the mean credit will not do there: it is biased towards a ranker where users click
at random. Balanced pages are biased in that way whatever is counted (Chapelle et al. 2012).

The mean preference has Student's interval, or where all people are alike what their number tells (`ltr.metrics.significance`). A p-value is
that of the exact sign test over sessions that are no tie, or Student's where preferences are means. How many sessions it takes is the
sample size of a mean of such numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isqrt

import numpy as np
from numpy.typing import ArrayLike

from ltr.clicks.click_model import mean_error, sums
from ltr.kernels.kernel import Array, Floats, Ints
from ltr.metrics.significance import holm, interval_of_equals, p_of_equals

METHODS = ("team-draft", "balanced", "probabilistic")
"""Ways to interleave."""
STEEPNESS = 3.0
"""Of the softmax over ranks."""
_ROUNDING = 1e-12
_SMOOTH = 50
"""Sessions that are ties, of which power is no saw any more: how many are decided differs by more than a tooth."""
_MOST = 10**10
"""Sessions that are planned: with more, the search takes long (23 s for 8 · 10¹⁰ without ties), and beyond 2⁵³ numbers are no longer exact."""


@dataclass(frozen=True)
class Interleaved:
    """One page: documents from the first rank on, and which ranker each was taken from (−1: a balanced page does not say)."""

    document: Array
    team: Ints


def interleave(rankings: Sequence[ArrayLike], shown: int, method: str, rng: np.random.Generator) -> Interleaved:
    """A page of several rankings of the same documents.

    Args:
        rankings: of each ranker its documents, the best first, by number or by id: ``int64 [any]``, or text. The page has them as they are given.
        shown: results on the page, fewer where there are no more documents.
        method: one of `METHODS`; balanced takes two rankings.
        rng: what is drawn.

    Raises:
        ValueError: for another method, one ranking alone, three for ``balanced``, a document that a ranking has twice, documents that are neither
            whole numbers of 64 bits with a sign nor text, and rankings of which one has numbers and another has text.
    """
    _check(method, len(rankings))
    given = [_documents(k, ranking) for k, ranking in enumerate(rankings)]
    kinds = {ranking.dtype.kind for ranking in given if len(ranking)}
    if len(kinds) > 1:
        raise ValueError("rankings: the documents of one are numbers and those of another are text")
    for k, ranking in enumerate(given):
        if len(np.unique(ranking)) < len(ranking):
            raise ValueError(f"ranking {k}: it has a document twice")
    kind = np.str_ if "U" in kinds else np.int64
    left = [ranking.tolist() for ranking in given]
    if method == "balanced":
        return _balanced(left, shown, rng, kind)
    document: list[int | str] = []
    team: list[int] = []
    turn: list[int] = []
    while len(document) < shown and any(left):
        if method == "probabilistic":
            ranker = int(rng.integers(len(left)))
            if not left[ranker]:
                continue
            chance = _softmax(len(left[ranker]))
            picked = left[ranker][int(rng.choice(len(chance), p=chance))]
        else:
            turn = turn or [int(k) for k in rng.permutation(len(left))]
            ranker = turn.pop(0)
            if not left[ranker]:
                continue
            picked = left[ranker][0]
        document.append(picked)
        team.append(ranker)
        for one in left:
            if picked in one:
                one.remove(picked)
    return Interleaved(np.array(document, kind), np.array(team, np.int64))


def _documents(k: int, ranking: ArrayLike) -> Array:
    """A ranking's documents, ``int64`` or text."""
    found = np.asarray(ranking)
    if found.dtype.kind == "O" and all(isinstance(one, str) for one in found.tolist()):
        found = found.astype(np.str_)
    if found.ndim != 1 or (len(found) and found.dtype.kind not in "iuU"):
        raise ValueError(f"ranking {k}: documents must be whole numbers or text, not {found.dtype} {found.shape}")
    if found.dtype.kind == "u" and len(found) and found.max() > np.iinfo(np.int64).max:
        raise ValueError(f"ranking {k}: document {found.max()} is beyond int64; give such ids as text")
    return found if found.dtype.kind == "U" else found.astype(np.int64)


def _check(method: str, n: int) -> None:
    if method not in METHODS:
        raise ValueError(f"{method!r} is unknown; choose from: {', '.join(METHODS)}")
    if n < 2 or (method == "balanced" and n > 2):
        raise ValueError(f"{method}: {n} rankings; {'two are needed' if method == 'balanced' else 'two or more are needed'}")


def _softmax(n: int) -> Floats:
    weights = np.arange(1, n + 1) ** -STEEPNESS
    chances: Floats = weights / weights.sum()
    return chances


def _balanced(rankings: list[list[int | str]], shown: int, rng: np.random.Generator, kind: type) -> Interleaved:
    first = int(rng.integers(2))
    order, at = [rankings[first], rankings[1 - first]], [0, 0]
    document: list[int | str] = []
    while len(document) < shown and (at[0] < len(order[0]) or at[1] < len(order[1])):
        own = 0 if (at[0] <= at[1] and at[0] < len(order[0])) or at[1] >= len(order[1]) else 1
        if order[own][at[own]] not in document:
            document.append(order[own][at[own]])
        at[own] += 1
    return Interleaved(np.array(document, kind), np.full(len(document), -1, np.int64))


@dataclass(frozen=True)
class Sessions:
    """Interleaved pages that were shown, a row a result, rows of a session together and by rank.

    Attributes:
        session: ``int64 [results]`` from 0, rising.
        click: ``bool [results]``.
        team: ``int64 [results]``, the ranker that a result was taken from, −1 for none.
        rank: ``int64 [results, rankers]``, where each ranker had it, from 1; 0 where it did not have it. Without columns where only teams
            are known.
        n_rankers: how many there are.
        length: ``int64 [results, rankers]``, how many documents each ranker's list had on that page, where that is known. Without it all are
            taken to be long, or equally long.
    """

    session: Ints
    click: Array
    team: Ints
    rank: Ints
    n_rankers: int
    length: Ints | None = None


def credits(sessions: Sessions, method: str) -> Floats:
    """What each session's clicks give to each ranker, ``float64 [sessions, rankers]``.

    Raises:
        ValueError: for another method, and where teams, or ranks, are not known that it needs.
    """
    _check(method, sessions.n_rankers)
    n, k = int(sessions.session.max()) + 1, sessions.n_rankers
    if method == "team-draft":
        if ((sessions.team < 0) | (sessions.team >= k))[sessions.click].any():
            raise ValueError("team-draft: a clicked result without a team")
        found = np.zeros((n, k))
        np.add.at(found, (sessions.session[sessions.click], sessions.team[sessions.click]), 1.0)
        return found
    if sessions.rank.shape != (len(sessions.session), k):
        raise ValueError(f"{method}: it needs the rank of each result in each of the {k} rankings")
    if method == "balanced":
        return _balanced_credits(sessions, n)
    chance = _chances(sessions)
    return np.column_stack([sums(sessions.session, sessions.click * chance[:, j], n) for j in range(k)])


def _balanced_credits(sessions: Sessions, n: int) -> Floats:
    """Clicks of each list's first k results, k being how deep the list that had the lowest click higher has to be read for it. What stands in neither list,
    such as an advertisement, counts for none and is not the lowest click."""
    clicked = sessions.click & (sessions.rank > 0).any(axis=1)
    rank = np.where(sessions.rank > 0, sessions.rank, np.iinfo(np.int64).max)
    place = np.arange(len(rank))
    lowest = np.full(n, -1)
    np.maximum.at(lowest, sessions.session[clicked], place[clicked])
    depth = np.where(lowest >= 0, rank.min(axis=1)[lowest], 0)
    counted = clicked[:, None] & (rank <= depth[sessions.session][:, None])
    return np.column_stack([sums(sessions.session, counted[:, j], n) for j in range(2)])


def _chances(sessions: Sessions) -> Floats:
    """How likely each result was drawn from each ranker, ``float64 [results, rankers]``, given what stood above it: documents that a
    ranker had above it and that were shown already are gone from its softmax, which is divided by its sum over what is left of the list."""
    starts = np.flatnonzero(np.diff(sessions.session, prepend=-1))
    sizes = np.diff(np.append(starts, len(sessions.session)))
    weight = np.zeros(sessions.rank.shape)
    whole = np.cumsum(np.arange(1, 2 + (0 if sessions.length is None else int(sessions.length.max()))) ** -STEEPNESS)
    for size in np.unique(sizes):
        rows = (starts[sizes == size][:, None] + np.arange(size)).astype(np.int64)
        rank = sessions.rank[rows]
        for at in range(size):
            here, above = rank[:, at], rank[:, :at]
            gone = ((above > 0) & (above < here[:, None])).sum(axis=1)
            left = np.where(here > 0, here - gone, 1)
            weight[rows[:, at]] = np.where(here > 0, left**-STEEPNESS, 0.0)
            if sessions.length is not None:
                weight[rows[:, at]] /= whole[np.maximum(sessions.length[rows[:, at]] - (above > 0).sum(axis=1), 1) - 1]
    total = weight.sum(axis=1, keepdims=True)
    chances: Floats = weight / np.where(total > 0, total, 1.0)
    return chances


def preferences(sessions: Sessions, method: str) -> Floats:
    """Which of every two rankers each session prefers, ``float64 [sessions, pairs]``, pairs as `itertools.combinations` has them: 1 for the
    first, −1 for the second, 0 for a tie; of probabilistic pages the mean over the teams that could have made the page.

    Raises:
        ValueError: as `credits` does.
    """
    pairs = list(combinations(range(sessions.n_rankers), 2))
    credit = credits(sessions, method)
    if method != "probabilistic":
        return np.column_stack([np.sign(credit[:, a] - credit[:, b]) for a, b in pairs])
    clicked = np.flatnonzero(sessions.click)
    chance, session = _chances(sessions)[clicked], sessions.session[clicked]
    found = np.zeros((len(credit), len(pairs)))
    starts = np.flatnonzero(np.diff(session, prepend=-1))
    sizes = np.diff(np.append(starts, len(session)))
    for size in np.unique(sizes):
        own = starts[sizes == size]
        of_clicks = chance[own[:, None] + np.arange(size)]
        for j, (a, b) in enumerate(pairs):
            found[session[own], j] = _mean_sign(of_clicks[:, :, a], of_clicks[:, :, b])
    return found


def _mean_sign(first: Floats, second: Floats) -> Floats:
    """The mean of the sign of first's clicks less second's, where each click is the first's or the second's with these chances
    ``float64 [sessions, clicks]``."""
    n = first.shape[1]
    lead = np.zeros((len(first), 2 * n + 1))
    lead[:, n] = 1.0
    for at in range(n):
        up, down = first[:, at, None], second[:, at, None]
        moved = lead * (1 - up - down)
        moved[:, 1:] += up * lead[:, :-1]
        moved[:, :-1] += down * lead[:, 1:]
        lead = moved
    means: Floats = np.round(lead[:, n + 1 :].sum(axis=1) - lead[:, :n].sum(axis=1), 12)
    return means


@dataclass(frozen=True)
class Duel:
    """Two rankers beside each other.

    Attributes:
        first, second: their numbers.
        wins, losses, ties: sessions that prefer the first, the second, neither.
        preference: mean over sessions, with its standard `error`, and the interval `low` to `high`.
        p: of the exact sign test, or of Student's where preferences are not 1, −1 and 0 alone or some people have several sessions; `holm_p` by Holm's correction over all duels.
    """

    first: int
    second: int
    wins: int
    losses: int
    ties: int
    preference: float
    error: float
    low: float
    high: float
    p: float
    holm_p: float


def duels(preference: Floats, level: float = 0.95, whose: Ints | None = None) -> list[Duel]:
    """Every two rankers beside each other, from `preferences`.

    Args:
        preference: ``float64 [sessions, pairs]`` of rankers, above 0 for the first.
        level: of the intervals.
        whose: ``int64 [sessions]``, whose each session is: those of one person resemble each other, and error and p are those over people.

    Raises:
        ValueError: for fewer than two sessions, or people.
    """
    from scipy import stats

    n, n_pairs = preference.shape
    if n < 2:
        raise ValueError(f"{n} session; two or more")
    if whose is not None and len(np.unique(whose)) < 2:
        raise ValueError("all pages are of one session; intervals need two or more sessions")
    rankers = (1 + isqrt(1 + 8 * n_pairs)) // 2
    found = []
    for (a, b), own in zip(combinations(range(rankers), 2), preference.T, strict=True):
        wins, losses = int((own > 0).sum()), int((own < 0).sum())
        mean, (error, independent) = float(own.mean()), mean_error(own, whose)
        if error <= _ROUNDING * abs(mean):
            (low, high), p = interval_of_equals(mean, independent, level), p_of_equals(mean, independent)
        else:
            degrees = max(independent - 1, 1.0)
            width = float(stats.t.ppf(0.5 + level / 2, degrees)) * error
            low, high = mean - width, mean + width
            exact = independent == n and np.isin(own, (-1, 0, 1)).all()
            p = float(stats.binomtest(wins, wins + losses).pvalue if exact else 2 * stats.t.sf(abs(mean) / error, degrees))
        found.append((a, b, wins, losses, n - wins - losses, mean, error, low, high, p))
    return [Duel(*one, float(corrected)) for one, corrected in zip(found, holm([one[-1] for one in found]), strict=True)]


def sessions_needed(preference: float, ties: float = 0.5, power: float = 0.8, level: float = 0.95, rankers: int = 2) -> int:
    """How many sessions it takes for the exact sign test to tell two rankers apart, these or more: with few ties or none its power is a saw,
    as whole numbers of losses are allowed.

    Args:
        preference: the mean preference to be seen, wins less losses over all sessions, ties among them: between 0 and 1 − `ties`.
        ties: share of sessions that prefer none.
        power: how likely it is to be seen.
        level: 1 less how likely equal rankers are told apart by chance.
        rankers: with more than two, every two of them are compared and the level is Bonferroni's.

    Raises:
        ValueError: for numbers out of range, and for a preference that takes more than `_MOST` sessions.
    """
    from scipy.stats import norm

    for name, value in (("ties", ties), ("power", power), ("level", level)):
        if not 0 <= value < 1 or (name != "ties" and value == 0):
            raise ValueError(f"{name}: {value}; must be between 0 and 1")
    if not 0 < preference <= (1 - ties) * (1 + _ROUNDING):  # 1 - 0.9 is a rounding less than 0.1
        raise ValueError(
            f"preference: {preference}; must be above 0 and at most {1 - ties:g}, the share of sessions that are not ties"
        )
    preference = min(preference, 1 - ties)
    if rankers < 2:
        raise ValueError(f"rankers: {rankers}; must be two or more")
    tail = (1 - level) / (rankers * (rankers - 1))
    about = max(float(norm.isf(tail) + norm.ppf(power)), 0.0) ** 2 * (1 - ties) / preference / preference
    if about > _MOST:
        raise ValueError(f"preference: {preference}; seeing it takes about {about:.2g} sessions, and at most {_MOST:,} are planned")
    few, many = 0, 16
    while _power(many, preference, ties, tail) < power:
        few, many = many, 2 * many
    while many - few > 1:
        between = (few + many) // 2
        few, many = (few, between) if _power(between, preference, ties, tail) >= power else (between, many)
    while True:
        more = np.arange(many + 1, many + 2 * isqrt(many))
        if ties == 0:
            less = more[_seen(more, preference, tail) < power]
        elif ties * many < _SMOOTH:
            less = more[_powers(more, preference, ties, tail) < power]
        else:
            return many
        if not len(less):
            return many
        many = int(less[-1]) + 1


def _power(n: int, preference: float, ties: float, tail: float) -> float:
    """How likely the sign test of `n` sessions prefers the ranker that is preferred, where either tail may have this probability: the mean
    over how many of the sessions are no ties, of which 4,001 stand for all where there are more."""
    from scipy.stats import binom

    first, last = binom.ppf([1e-9, 1 - 1e-9], n, 1 - ties)
    decided = np.unique(np.linspace(first, last, 4001).astype(np.int64))
    chance = binom.pmf(decided, n, 1 - ties)
    return float(chance @ _seen(decided, preference / (1 - ties), tail) / chance.sum())


def _powers(n: Ints, preference: float, ties: float, tail: float) -> Floats:
    """`_power` of rising numbers of sessions of which few are ties, ``float64 [numbers]``."""
    from scipy.stats import binom

    tied = np.arange(binom.ppf(1 - 1e-9, n[-1], ties) + 1, dtype=np.int64)
    chance = binom.pmf(tied, n[:, None], ties)
    decided = np.maximum(n[:, None] - tied, 0)
    first = decided.min()
    seen = _seen(np.arange(first, decided.max() + 1), preference / (1 - ties), tail)
    powers: Floats = (chance * seen[decided - first]).sum(axis=1) / chance.sum(axis=1)
    return powers


def _seen(decided: Ints, preference: float, tail: float) -> Floats:
    """`_power` of so many sessions of which none is a tie, ``float64 [numbers]``."""
    from scipy.stats import binom

    losses = binom.ppf(tail, decided, 0.5)
    losses -= binom.cdf(losses, decided, 0.5) > tail
    seen: Floats = binom.cdf(losses, decided, (1 - preference) / 2)
    return seen
