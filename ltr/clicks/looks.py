"""Click models in which a look depends on the rank, and perhaps on the last click above it.

A result is clicked if it is examined, with probability γ, and attracts, with probability α of its query and document:

    RCTR   γ of the rank, α = 1                    DCTR   γ = 1
    PBM    γ of the rank                           UBM    γ of the rank and the rank of the last click above (0: none)

(Craswell et al. 2008; Richardson et al. 2007; Dupret & Piwowarski 2008; Chuklin, Markov & de Rijke 2015 for all of them.) Results with the
same α and the same γ are alike, so all work is over the distinct ones with their impressions and clicks, of which there are many times fewer
than impressions; PyClick walks every session in every round of EM.

EM of γ and α together, as others have it, takes ranks for looked at more than they are where a document has few impressions: each new
document brings an α of its own, of which there are never enough data. `ltr.data.propensities` has no such bias, for γ of a rank and, since a
click on one result is drawn whatever the clicks above are, for γ of a rank and a last click too. Given γ, each α is the maximum of its own
likelihood with its prior; what is known of it is Fisher's information Σ nγ / (α(1 − γα)), that of (1 − α)·Σ nγ / (1 − γα) certain looks.
α and γ are known up to a factor, by which the largest γ of a rank that is often shown, without a click above it, is 1.
"""

from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from ltr.clicks.ascent import MARGIN
from ltr.clicks.click_model import STEADY, ClickModel, Settings, drawn_to, draws, no_draws, sums, within
from ltr.clicks.pages import DEEPEST, Pages
from ltr.data.offsets import group_of_rows
from ltr.data.propensities import propensities, ties
from ltr.kernels.kernel import Array, Bools, Floats, Ints


@dataclass(frozen=True)
class Looks(ClickModel):
    """RCTR, DCTR, PBM or UBM.

    Attributes:
        gamma: ``float64 [ranks, ranks]``: how likely rank r is examined where the last click above it was at rank k (0: none), at
            ``[r − 1, k]``.
    """

    gamma: Floats

    @property
    def n_ranks(self) -> int:
        return len(self.gamma)

    def given(self, pages: Pages) -> Floats:
        found = np.empty(len(pages.pair))
        _given(pages.offsets, pages.pair, pages.rank, pages.click, self.attraction, self._reaching(pages), found, *no_draws())
        return found

    def expected(self, pages: Pages) -> Floats:
        found = np.empty(len(pages.pair))
        _expected(pages.offsets, pages.pair, pages.rank, self.attraction, self._reaching(pages), found)
        return found

    def simulate(self, pages: Pages, seed: int) -> Pages:
        click, found = np.zeros(len(pages.pair), np.bool_), np.empty(len(pages.pair))
        _given(
            pages.offsets, pages.pair, pages.rank, click, self.attraction, self._reaching(pages), found, draws(pages, seed), click
        )
        return pages.clicked(click)

    def _reaching(self, pages: Pages) -> Floats:
        if pages.n_ranks > len(self.gamma):
            raise ValueError(f"rank: {pages.n_ranks}; the model covers ranks 1 to {len(self.gamma)}")
        return self.gamma


def _states(pages: Pages, name: str, width: int) -> Ints:
    """What γ depends on, ``int64 [results]`` from 1: the rank, and, where a model knows it, the rank of the last click above."""
    if name != "ubm":
        return pages.rank
    state = np.empty(len(pages.pair), np.int64)
    _last_clicks(pages.offsets, pages.rank, pages.click, state)
    return (pages.rank - 1) * width + state + 1


@dataclass(frozen=True)
class _Cells:
    """The distinct results, ordered by pair and state: ``starts [pairs + 1]``, and of each its state, impressions and clicks."""

    starts: Ints
    state: Ints
    shown: Ints
    clicked: Ints

    @property
    def pair(self) -> Ints:
        """Of each distinct result, its pair."""
        return group_of_rows(self.starts)

    @property
    def pair_numbers(self) -> Ints:
        """As `pair`, without numbers of pairs that were never shown."""
        sizes = np.diff(self.starts)
        return np.repeat(np.cumsum(sizes > 0) - 1, sizes)


def tied_ranks(pages: Pages) -> Bools:
    """Which ranks are tied to each other by documents clicked at one and shown at the other, ``bool [ranks]``: of several such groups the
    one that drew most clicks (`ltr.data.propensities.ties`)."""
    cells = _cells(pages, pages.rank, pages.n_ranks + 1)
    tied: Bools = ties(cells.pair_numbers, cells.state, cells.clicked) == 0
    return tied


def _cells(pages: Pages, state: Ints, n_states: int) -> _Cells:
    key = (pages.pair * n_states + state) * 2 + pages.click
    key.sort()
    first = np.flatnonzero(np.concatenate((np.ones(1, np.bool_), (key[1:] >> 1) != (key[:-1] >> 1))))
    shown = np.diff(np.append(first, len(key)))
    clicked = np.add.reduceat(key & 1, first)
    kinds = key[first] >> 1
    starts = np.searchsorted(kinds // n_states, np.arange(len(pages.query) + 1))
    return _Cells(starts, kinds % n_states, shown, clicked)


def fit(pages: Pages, name: str, settings: Settings, n_ranks: int) -> Looks:
    """The model `name` (rctr, dctr, pbm or ubm) of these pages, for ranks up to `n_ranks`."""
    n_pairs = len(pages.query)
    state = _states(pages, name, n_ranks)
    cells = _cells(pages, state, n_ranks * n_ranks + 1)
    if name == "rctr":
        shown, clicked = (np.bincount(cells.state - 1, column, n_ranks) for column in (cells.shown, cells.clicked))
        rates = (clicked + STEADY * clicked.sum() / shown.sum()) / (shown + STEADY)
        gamma, alpha = np.repeat(rates[:, None], n_ranks, axis=1), np.ones(n_pairs)
        looks = sums(cells.pair, cells.shown, n_pairs)
        return Looks(name, alpha, looks, looks, STEADY, gamma)
    table = np.ones((n_ranks, n_ranks))
    if name == "ubm":
        table = _after_clicks(_told_after_clicks(cells, n_ranks * n_ranks), n_ranks)
    elif name == "pbm":
        table = np.repeat(_by_rank(_told(cells, n_ranks))[:, None], n_ranks, axis=1)
    gamma = table.ravel() if name == "ubm" else np.ascontiguousarray(table[:, 0])
    look = cells.shown * gamma[cells.state - 1]
    clicks, looks = (sums(cells.pair, values, n_pairs) for values in (cells.clicked, look))
    squares = sums(cells.pair, look * gamma[cells.state - 1], n_pairs)
    alpha, prior = drawn_to(clicks, looks, squares, pages.query, settings.prior)
    _attract(cells.starts, cells.state, cells.shown, cells.clicked, gamma, prior, alpha)
    at = alpha[cells.pair]
    certain = sums(cells.pair, look * (1 - at) / (1 - gamma[cells.state - 1] * at), n_pairs)
    return Looks(name, alpha, looks, certain, prior, table)


PARTS = 40
"""Of a log, without each of which in turn looks are learned again: the spread of what comes out is the error (jackknife, Quenouille 1956;
Tukey 1958)."""


@dataclass(frozen=True)
class Seen:
    """The distinct results of a log, in the order of pair and rank.

    Attributes:
        pair, rank: of each.
        shown, clicked: how often each was.
        of_result: of each result of the log, which it is; `click`: whether it was clicked.
        n_ranks: of the log.
    """

    pair: Ints
    rank: Ints
    shown: Ints
    clicked: Ints
    of_result: Ints
    click: Bools
    n_ranks: int

    @classmethod
    def of(cls, pages: Pages) -> "Seen":
        """Those of these pages."""
        found, of_result = np.unique(pages.pair * (DEEPEST + 1) + pages.rank, return_inverse=True)
        pair, rank = np.divmod(found, DEEPEST + 1)
        shown, clicked = np.bincount(of_result), np.bincount(of_result[pages.click], minlength=len(found))
        return cls(pair, rank, shown, clicked, of_result, pages.click, pages.n_ranks)

    def without(self, rows: Bools) -> "Seen":
        """How often each was without some results of the log, ``bool [results]``."""
        n = len(self.pair)
        shown = self.shown - np.bincount(self.of_result[rows], minlength=n)
        clicked = self.clicked - np.bincount(self.of_result[rows & self.click], minlength=n)
        return replace(self, shown=shown, clicked=clicked)

    def looks(self) -> Floats:
        """γ of a PBM by rank, ``float64 [ranks]``.

        Raises:
            ValueError: where clicks do not tell how often ranks are looked at (`ltr.data.propensities`).
        """
        there = self.shown > 0
        if not there.any():
            raise ValueError("nothing was shown: there is nothing to estimate propensities from")
        pair = self.pair[there]
        starts = np.searchsorted(pair, np.arange(pair[-1] + 2))
        return _by_rank(_told(_Cells(starts, self.rank[there], self.shown[there], self.clicked[there]), self.n_ranks, rounds=100))


def spread(without: Floats) -> Floats:
    """The jackknife's standard error, of what comes out without each of some equal parts, ``float64 [parts, …]``."""
    error: Floats = np.sqrt((len(without) - 1) * without.var(axis=0))
    return error


def looks_errors(pages: Pages, part: Ints) -> Floats:
    """Standard errors of a PBM's γ by rank, ``float64 [ranks]``; infinite where one part of the log alone tells how often ranks are looked at.

    Args:
        part: ``int64 [pages]``, which of some `PARTS` parts each page is in, whole sessions.
    """
    seen, of_result = Seen.of(pages), np.repeat(part, np.diff(pages.offsets))
    try:
        return spread(np.array([seen.without(of_result == one).looks() for one in np.unique(part)]))
    except ValueError:
        return np.full(pages.n_ranks, np.inf)


@dataclass(frozen=True)
class _Told:
    """What clicks tell of looks by state: those there were, ``clicked [states]``, and those there would have been had everybody looked."""

    clicked: Floats
    expected: Floats


def _told(cells: _Cells, n_states: int, rounds: int = 10_000) -> _Told:
    found = propensities(cells.pair_numbers, cells.state, cells.shown, cells.clicked, rounds)
    gamma = np.zeros(n_states)
    gamma[: len(found)] = np.nan_to_num(found)
    looks = np.bincount(cells.pair, cells.shown * gamma[cells.state - 1])
    with np.errstate(invalid="ignore"):
        alpha = np.nan_to_num(np.bincount(cells.pair, cells.clicked) / looks)
    return _Told(sums(cells.state - 1, cells.clicked, n_states), sums(cells.state - 1, cells.shown * alpha[cells.pair], n_states))


def _told_after_clicks(cells: _Cells, n_states: int) -> _Told:
    try:
        return _told(cells, n_states, rounds=1000)
    except ValueError:
        raise ValueError(
            "ubm: no two ranks, each with the rank of the last click above it, are tied by documents clicked at one and shown at the other, so position "
            "bias cannot be separated from relevance"
        ) from None


def _by_rank(told: _Told) -> Floats:
    """γ of each rank, ``float64 [ranks]``, drawn to that of the rank above as if `STEADY` more clicks had been expected there."""
    gamma, above = np.empty(len(told.clicked)), told.clicked.sum() / told.expected.sum()
    for rank in range(len(gamma)):
        above = gamma[rank] = (told.clicked[rank] + STEADY * above) / (told.expected[rank] + STEADY)
    return within(gamma / _largest(gamma, told.expected))


def _largest(gamma: Floats, expected: Floats) -> float:
    """The largest γ of a rank that clicks tell at least half as much of as of the average one: a deep rank with three clicks is no scale."""
    return float(gamma[expected >= expected.mean() / 2].max())


def _after_clicks(told: _Told, n_ranks: int) -> Floats:
    """γ of each rank and rank of the last click above, ``float64 [ranks, ranks]``, drawn to the rank's own."""
    clicked, expected = (values.reshape(n_ranks, n_ranks) for values in (told.clicked, told.expected))
    of_rank = _by_rank(_Told(clicked.sum(axis=1), expected.sum(axis=1)))
    scale = clicked.sum() / (expected * of_rank[:, None]).sum()  # what is expected is by γ whose largest, of all states, is 1
    table = (clicked + STEADY * scale * of_rank[:, None]) / (expected + STEADY)
    return np.ascontiguousarray(within(table / _largest(table[:, 0], expected[:, 0])))


@njit(cache=True)
def _last_clicks(offsets: Ints, rank: Ints, click: Bools, state: Ints) -> None:
    for page in range(len(offsets) - 1):
        last = 0
        for i in range(offsets[page], offsets[page + 1]):
            state[i] = last
            if click[i]:
                last = rank[i]


@njit(cache=True, error_model="numpy")
def _attract(starts: Ints, state: Ints, shown: Ints, clicked: Ints, gamma: Floats, prior: float, alpha: Floats) -> None:
    """From what each pair is drawn to its α, the largest of Σ c·log γα + (n − c)·log(1 − γα) + prior·(m·log α + (1 − m)·log(1 − α)), which
    is concave: Newton's steps, halved where they would leave what is known to hold it."""
    for pair in range(len(starts) - 1):
        first, end, m = starts[pair], starts[pair + 1], alpha[pair]
        if first == end:
            continue
        up = prior * m
        for i in range(first, end):
            up += clicked[i]
        low, high, a = 0.0, 1.0, m
        for _ in range(100):
            slope = up / a - prior * (1.0 - m) / (1.0 - a)
            bend = up / a**2 + prior * (1.0 - m) / (1.0 - a) ** 2
            for i in range(first, end):
                g = gamma[state[i] - 1]
                missed = (shown[i] - clicked[i]) * g / (1.0 - g * a)
                slope -= missed
                bend += missed * g / (1.0 - g * a)
            if slope > 0:
                low = a
            else:
                high = a
            step = slope / bend
            if abs(step) < 1e-13:
                break
            a = a + step if low < a + step < high else (low + high) / 2.0
        alpha[pair] = min(max(a, MARGIN), 1.0 - MARGIN)


@njit(cache=True)
def _given(
    offsets: Ints, pair: Ints, rank: Ints, click: Bools, alpha: Floats, gamma: Floats, found: Floats, drawn: Floats, drew: Array
) -> None:
    """Probabilities of clicks given those above; where numbers are `drawn`, `click` is `drew` and is filled on the way."""
    for page in range(len(offsets) - 1):
        last = 0
        for i in range(offsets[page], offsets[page + 1]):
            found[i] = alpha[pair[i]] * gamma[rank[i] - 1, last]
            if len(drawn):
                drew[i] = drawn[i] < found[i]
            if click[i]:
                last = rank[i]


@njit(cache=True)
def _expected(offsets: Ints, pair: Ints, rank: Ints, alpha: Floats, gamma: Floats, found: Floats) -> None:
    """Sums over where the last click was: ``at[k]``, how likely it was at rank k."""
    at = np.zeros(len(gamma) + 1)
    for page in range(len(offsets) - 1):
        at[:] = 0.0
        at[0] = 1.0
        for i in range(offsets[page], offsets[page + 1]):
            p = 0.0
            for k in range(rank[i]):
                clicks = at[k] * alpha[pair[i]] * gamma[rank[i] - 1, k]
                at[k] -= clicks
                p += clicks
            at[rank[i]] = p
            found[i] = p
