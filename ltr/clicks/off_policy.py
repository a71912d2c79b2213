"""What a new ranker would earn, from the log of another: clicks on its first results, before anybody has seen them.

A new ranker puts each query's documents in one order. The log shows some of them at those places, by chance or because rankers changed, and
sessions in which it did stand for those in which it did not. How many stand for one is the weight n_q / n_qk: sessions of the query over
sessions of it that agree with the new ranker at rank k, which is the inverse of an estimated propensity and normalises itself.

    item-position    the document stands at the new rank itself: clicks depend on document and rank (Li et al. 2018)
    position-based   it stands anywhere: clicks at r count θ_new / θ_r; clicks are those of the position-based model
    cascade          all ranks from the first agree: clicks depend on what is above as well (McInerney et al. 2020)
    doubly robust    as cascade, of what a click model leaves unexplained: Σ_k Q_k + w_k (c_k − Q_k) (Kiyohara et al. 2022, to whose
                     recursion this amounts where the new ranker draws nothing by lot); Q of a session is fitted to the other half of them

Each session's part in an estimate gives its standard error. A place that the log never shows has no weight at all: its share of the traffic
is told, and an estimate with too much of it is refused. Open Bandit Pipeline and its kind take the probabilities of the logging policy for
known; search logs hardly ever have them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ltr.clicks.click_model import ClickModel, mean_error, sums
from ltr.clicks.looks import Looks, Seen, spread
from ltr.clicks.pages import Pages
from ltr.data.propensities import ties
from ltr.kernels.kernel import Array, Bools, Floats, Ints

ESTIMATORS = ("item-position", "position-based", "cascade", "doubly-robust")
"""Ways to estimate."""


class NoSupportError(ValueError):
    """A log that does not show what a new ranker would."""


@dataclass(frozen=True)
class Rules:
    """How an estimate is made.

    Attributes:
        top: results that count, from the first.
        clip: no page, by position-based no click, stands for more than so many.
        level: of intervals.
        support: the share of the traffic's places that the log has to show at least.
        sessions: effective pages that have to be behind every rank at least.

    Raises:
        ValueError: for a number out of range.
    """

    top: int = 10
    clip: float = 1000.0
    level: float = 0.95
    support: float = 0.9
    sessions: float = 30.0

    def __post_init__(self) -> None:
        if self.top < 1:
            raise ValueError(f"top: {self.top}; must be 1 or more")
        if not self.clip >= 1:
            raise ValueError(f"clip={self.clip}: the largest importance weight must be at least 1")
        for name in ("level", "support"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)}; must be between 0 and 1")


@dataclass(frozen=True)
class Estimate:
    """Clicks on the first results of a page, under a new ranker, on pages as long as those of the log. Of 95 % intervals 93 to 97 % cover the truth
    where a few hundred effective pages are behind the estimate, and some 92 % where there are 65; of position-based's some 90 % where documents hardly
    change places.

    Attributes:
        estimator: one of `ESTIMATORS`.
        value: clicks a page, with its standard `error`, and the interval `low` to `high`.
        gain: `value` less what the log's own pages drew there, with `gain_error`; pages are compared in pairs.
        sessions: effective number of pages behind the rank that has fewest, (Σw)² / Σw².
        supported: share of the traffic's places that the log shows.
        clipped: share of the weights' sum that clipping took.
        unseen: share of each rank's places that the log never shows, from the first, as deep as pages go.
        least, most: `value` if none of these places were clicked, and if all were; in between they are taken to draw what the others of their
            rank do, by doubly robust what a click model says.
    """

    estimator: str
    value: float
    error: float
    low: float
    high: float
    gain: float
    gain_error: float
    sessions: float
    supported: float
    clipped: float
    unseen: tuple[float, ...]
    least: float
    most: float


def new_ranks(scores: Floats, query: Ints, seed: int = 1) -> Ints:
    """Places that a new ranker gives to pairs, ``int64 [pairs]`` from 1; 0 for those without a score (NaN). Equal scores stand in an order
    that is drawn by lot.

    Args:
        scores: ``float64 [pairs]``.
        query: ``int64 [pairs]``, whose the pair is.
        seed: of the draw.
    """
    lot = np.random.default_rng(seed).permutation(len(scores))
    order = np.lexsort((lot, -scores, query))
    order = order[~np.isnan(scores[order])]
    starts = np.flatnonzero(np.diff(query[order], prepend=-1))
    rank = np.zeros(len(scores), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order)))) + 1
    return rank


def new_pages(rank: Ints, query: Ints, top: int) -> tuple[Pages, Ints]:
    """One page a query that a new ranker has documents for, of its first results, and of each which query's it is, ``int64 [pages]``.

    Args:
        rank: ``int64 [pairs]``, the new ranker's, from 1; 0 for none.
        query: ``int64 [pairs]``.
        top: results of a page at most.
    """
    chosen = np.flatnonzero((rank > 0) & (rank <= top))
    chosen = chosen[np.lexsort((rank[chosen], query[chosen]))]
    starts = np.flatnonzero(np.diff(query[chosen], prepend=-1))
    pages = Pages(np.append(starts, len(chosen)), chosen, rank[chosen], np.zeros(len(chosen), np.bool_), query)
    return pages, query[chosen[starts]]


def reordered(pages: Pages, scores: Floats, looks: Floats) -> Floats:
    """Clicks that each page would have drawn in the order of `scores`, ``float64 [pages]``: those it drew, each times how often its new rank
    is looked at for once that its old one is. Users are those of the position-based model; nothing is shown that was not there.

    Args:
        scores: ``float64 [results]``; equal ones have the mean of what their ranks are looked at.
        looks: ``float64 [ranks]``, above 0, as many as `pages` are deep.
    """
    page = pages.of_page()
    order = np.lexsort((-scores, page))
    new = (np.diff(page[order], prepend=-1) != 0) | (np.diff(scores[order], prepend=np.nan) != 0)
    starts = np.flatnonzero(new)  # of groups of equal scores; the page's own ranks are taken in the new order
    means = np.add.reduceat(looks[pages.rank - 1], starts) / np.diff(np.append(starts, len(order)))
    look = np.empty(len(order))
    look[order] = np.repeat(means, np.diff(np.append(starts, len(order))))
    return sums(page, pages.click * look / looks[pages.rank - 1], pages.n_pages)


def tied(scores: Floats, query: Ints, rank: Ints, top: int) -> int:
    """How many of the first `top` places are held by a pair that scores as another of its query does.

    Args:
        scores: ``float64 [pairs]``.
        query, rank: ``int64 [pairs]``; ranks are the new ranker's, from 1, 0 for none.
    """
    first = (rank > 0) & (rank <= top)
    there = np.flatnonzero(rank > 0)
    _, group, size = np.unique(np.column_stack((query[there], scores[there])), axis=0, return_inverse=True, return_counts=True)
    alike = np.zeros(len(rank), np.bool_)
    alike[there] = size[group.ravel()] > 1
    return int((first & alike).sum())


def estimate(
    pages: Pages,
    rank: Ints,
    estimator: str,
    rules: Rules | None = None,
    models: Sequence[ClickModel] = (),
    part: Array | None = None,
    session: Ints | None = None,
) -> Estimate:
    """What a new ranker would earn.

    Args:
        pages: the log's.
        rank: ``int64 [pairs]``, where the new ranker puts each document of its query, from 1; 0: nowhere (`new_ranks`).
        estimator: one of `ESTIMATORS`.
        rules: those of `Rules()` where none are given.
        models: position-based: a PBM whose looks are known; without one they are learned from the pages. Doubly robust: two models, the first
            fitted to pages that are not in the half `part`, the second to those that are.
        part: of each page, whole sessions. Doubly robust: whether it is in one half of them, ``bool [pages]``. Position-based, where looks are
            learned: which of some `PARTS` it is in, ``int64 [pages]``; errors are those of what comes out without each of them, so that they
            hold how surely the looks are known too.
        session: ``int64 [pages]``, whose each page is: pages of one session resemble each other, and errors are those over sessions.

    Raises:
        NoSupportError: where too few of the new ranker's places were ever shown, or the log hardly tells how often ranks are looked at.
        ValueError: for an unknown estimator, models or parts that it needs and that are not there, and documents among its first
            that were shown deeper than a PBM knows.
    """
    rules = rules or Rules()
    rules = replace(rules, top=min(rules.top, pages.n_ranks))  # no page has more, and tables have a column for each
    if estimator not in ESTIMATORS:
        raise ValueError(f"{estimator!r} is unknown; choose from: {', '.join(ESTIMATORS)}")
    wanted = 2 if estimator == "doubly-robust" else int(estimator == "position-based" and part is None)
    if len(models) != wanted or (wanted == 2 and part is None):
        raise ValueError(f"{estimator}: it needs {wanted} click models{' and a half' if wanted == 2 else ''}, not {len(models)}")
    apart, foretold = None, None
    if estimator == "position-based" and part is not None:
        seen = Seen.of(pages)
        group = ties(seen.pair, seen.rank, seen.clicked)
        table = _position_based(pages, rank, rules, _learned_looks(seen), group)
        apart = _without_each(pages, seen, rank, rules, part, _tell(seen.rank, rank[seen.pair], group))
    elif estimator == "position-based":
        table = _position_based(pages, rank, rules, _known_looks(models[0]))
    else:
        table = _agreeing(pages, rank, rules, estimator != "item-position")
        foretold = None if part is None or not models else _foretold(pages, rank, rules, models, part.astype(np.bool_))
    of_page = _parts(table, rules, foretold)
    logged = sums(pages.of_page(), pages.click & (pages.rank <= rules.top), pages.n_pages)
    return _summed_up(estimator, of_page, logged, table, rules, session, apart)


def _known_looks(model: ClickModel) -> Floats:
    if not isinstance(model, Looks) or model.name != "pbm":
        raise ValueError(f"position-based: it needs a PBM, not {model.name}")
    return model.gamma[:, 0]


def _learned_looks(seen: Seen) -> Floats:
    try:
        return seen.looks()
    except ValueError as error:
        raise NoSupportError(f"position-based: {error}") from None


def _without_each(pages: Pages, seen: Seen, rank: Ints, rules: Rules, part: Ints, tell: Bools) -> tuple[Floats, Floats]:
    """Value and gain, by position-based with looks of its own, of the log without each of its parts. `tell`: of `_tell`."""
    query = pages.query_of_page()
    of_result = np.repeat(part, np.diff(pages.offsets))
    counts, depth = pages.click & (pages.rank <= rules.top), pages.depth()
    found = []
    for one in np.unique(part):
        times = _pages_with(query[part != one], depth[part != one], pages.n_queries, rules.top)
        try:
            value = _value(seen.without(of_result == one), times, rank, pages.query, rules, tell)
        except ValueError as error:
            raise NoSupportError(
                f"position-based: without some of its sessions, examination probabilities cannot be estimated from the log ({error})"
            ) from None
        found.append((value, value - int(counts[of_result != one].sum()) / int((part != one).sum())))
    values, gains = np.array(found).T
    return values, gains


def _tell(old: Ints, new: Ints, group: Ints) -> Bools:
    """Whether what was shown at ranks `old` tells of clicks at ranks `new`, 0 for none: at the same rank, or at one that documents tie to it
    (`ltr.data.propensities.ties`, `group`). How often ranks without a tie are looked at is only known if their documents attract alike."""
    there = (new > 0) & (new <= len(group))
    of_new = np.where(there, group[np.where(there, new, 1) - 1], -1)
    tell: Bools = there & ((old == new) | ((of_new >= 0) & (group[old - 1] == of_new)))
    return tell


def _value(seen: Seen, times: Ints, rank: Ints, query: Ints, rules: Rules, tell: Bools) -> float:
    """Clicks a page under the new ranker, with looks learned from what was seen: what `_position_based` comes to, page by page. `times`: of
    `_pages_with`; `tell`: of `_tell`."""
    gamma, top = seen.looks(), rules.top
    looked = np.bincount(seen.pair, tell * seen.shown * gamma[seen.rank - 1], len(query))
    clicks = np.bincount(seen.pair, tell * seen.clicked, len(query))
    at = np.flatnonzero((rank > 0) & (rank <= min(top, len(gamma))) & (looked > 0))
    place = rank[at] - 1
    stands = np.minimum(gamma[place] * times[query[at], place] / np.maximum(looked[at], 1e-12), rules.clip)
    drawn, weight = (np.bincount(place, stands * own, top) for own in (clicks[at], looked[at] / gamma[place]))
    longest = _longest(query, rank, len(times))
    wanted = np.array([times[longest > k, k].sum() for k in range(top)])
    return float((wanted * drawn / np.maximum(weight, 1e-300)).sum() / times[:, 0].sum())


def _pages_with(query: Ints, depth: Ints, n_queries: int, top: int) -> Ints:
    """How many pages of each query have each rank, ``int64 [queries, top]``; `query`, `depth`: of each page."""
    return np.stack([np.bincount(query[depth > k], minlength=n_queries) for k in range(top)], axis=1)


def _wanted(pages: Pages, rank: Ints, top: int) -> Bools:
    """Which ranks of each page the new ranker has a document for, ``bool [pages, top]``: a page stays as long as it was."""
    ends = np.minimum(_longest(pages.query, rank, pages.n_queries)[pages.query_of_page()], pages.depth())
    wanted: Bools = np.arange(top) < ends[:, None]
    return wanted


def _longest(query: Ints, rank: Ints, n_queries: int) -> Ints:
    """The last rank that the new ranker has a document for, of each query."""
    longest = np.zeros(n_queries, np.int64)
    np.maximum.at(longest, query, rank)
    return longest


@dataclass(frozen=True)
class _Table:
    """What each page and rank of the new ranker contributes; all ``[pages, top]`` but the last two.

    Attributes:
        click: clicks, as they would be at the new rank, where the page agrees.
        agrees: whether the page says something of that rank.
        wanted: whether the page has that rank, and the new ranker a document for it.
        weight: how many pages it stands for, clipped; by position-based it is the clicks that are, which it multiplies.
        cell: which pages tell of the same thing.
        clipped: share of weights lost.
        query: of each page.
    """

    click: Floats
    agrees: Bools
    wanted: Bools
    weight: Floats
    cell: Ints
    clipped: float
    query: Ints


def _agreeing(pages: Pages, rank: Ints, rules: Rules, from_first: bool) -> _Table:
    """Pages that show the new ranker's document at its rank; with `from_first` at all ranks above as well."""
    n, top = pages.n_pages, rules.top
    query = pages.query_of_page()
    new = rank[pages.pair]
    hit = (new == pages.rank) & (new <= top)
    click, agrees = np.zeros((n, top)), np.zeros((n, top), np.bool_)
    page = pages.of_page()[hit]
    agrees[page, new[hit] - 1] = True
    click[page, new[hit] - 1] = pages.click[hit]
    if from_first:
        agrees = np.logical_and.accumulate(agrees, axis=1)
        click *= agrees
    return _weighed(click, agrees, _wanted(pages, rank, top), query, rules)


def _weighed(click: Floats, agrees: Bools, wanted: Bools, query: Ints, rules: Rules) -> _Table:
    n_queries, top = int(query.max()) + 1, agrees.shape[1]
    cell = query[:, None] * top + np.arange(top)
    times = np.bincount(cell.ravel(), wanted.ravel().astype(np.float64), n_queries * top)
    shown = np.bincount(cell.ravel(), agrees.ravel().astype(np.float64), n_queries * top)
    stands = times / np.maximum(shown, 1)
    weight = agrees * np.minimum(stands, rules.clip)[cell]
    lost = 1 - weight.sum() / max((agrees * stands[cell]).sum(), 1)
    return _Table(click, agrees, wanted, weight, cell, float(lost), query)


def _position_based(pages: Pages, rank: Ints, rules: Rules, gamma: Floats, group: Ints | None = None) -> _Table:
    """Every page that shows the document, where looks are learned at a rank with a tie to the new one (`group`): its click, times how often the
    new rank is looked at for once that the old one is."""
    n, top = pages.n_pages, rules.top
    query = pages.query_of_page()
    new = rank[pages.pair]
    hit = (new > 0) & (new <= min(top, len(gamma)))
    if group is not None:
        hit &= _tell(pages.rank, new, group)
    if (deepest := pages.rank[hit].max(initial=0)) > len(gamma):
        raise ValueError(f"rank: {deepest}; the model covers ranks 1 to {len(gamma)}")
    page, place = pages.of_page()[hit], new[hit] - 1
    click, look = np.zeros((n, top)), np.zeros((n, top))
    click[page, place] = pages.click[hit]
    look[page, place] = gamma[pages.rank[hit] - 1]
    wanted = _wanted(pages, rank, top)
    cell = query[:, None] * top + np.arange(top)
    n_cells = pages.n_queries * top
    seen = np.bincount(cell.ravel(), look.ravel(), n_cells)
    times = np.bincount(cell.ravel(), wanted.ravel().astype(np.float64), n_cells)
    of_new = np.tile(np.append(gamma, np.full(max(0, top - len(gamma)), gamma[-1]))[:top], pages.n_queries)
    stands = of_new * times / np.maximum(seen, 1e-12)
    clipped = np.minimum(stands, rules.clip)
    agrees = look > 0
    # Clicks are brought to the new rank, and looks to how many pages they stand for, so that weight · click adds up as elsewhere.
    scale = look / np.maximum(of_new[cell], 1e-12)
    weight = np.where(agrees, clipped[cell] * scale, 0.0)
    lost = 1 - (agrees * clipped[cell]).sum() / max((agrees * stands[cell]).sum(), 1e-12)
    return _Table(np.where(agrees, click / np.maximum(scale, 1e-12), 0.0), agrees, wanted, weight, cell, float(lost), query)


def _foretold(pages: Pages, rank: Ints, rules: Rules, models: Sequence[ClickModel], half: Bools) -> Floats:
    """Clicks that the model of the other half expects of the new ranker's page, ``float64 [pages, top]``."""
    shown, whose = new_pages(rank, pages.query, min(rules.top, _deepest(models)))
    of_query = np.zeros((2, pages.n_queries, rules.top))
    for k, model in enumerate(models):
        of_query[k, whose[shown.of_page()], shown.rank - 1] = model.expected(shown)
    query = pages.query_of_page()
    return np.ascontiguousarray(of_query[(~half).astype(np.int64), query])


def _deepest(models: Sequence[ClickModel]) -> int:
    return min(model.n_ranks for model in models)


def _parts(table: _Table, rules: Rules, foretold: Floats | None) -> tuple[Floats, float]:
    """What each page contributes, ``float64 [pages]``: their mean is the estimate and their spread its error. And how much of the mean is assumed of
    places that the log never shows."""
    n, n_cells = len(table.query), int(table.cell.max()) + 1
    left = table.click if foretold is None else np.where(table.agrees, table.click - foretold, 0.0)

    def by_cell(values: Array) -> Floats:
        return sums(table.cell.ravel(), values.ravel(), n_cells)

    weights, pages_of, agreeing = by_cell(table.weight), by_cell(table.wanted), by_cell(table.agrees)
    with np.errstate(invalid="ignore", divide="ignore"):
        of_cell = np.nan_to_num(by_cell(table.weight * left) / weights)
        of_page = np.nan_to_num(weights / pages_of)
    parts, assumed = np.zeros(n), 0.0
    for k in range(rules.top):
        wanted, cell, weight = table.wanted[:, k], table.cell[:, k], table.weight[:, k]
        unseen = wanted & (agreeing[cell] == 0)
        total = weight.sum()
        if not wanted.any():
            continue
        if foretold is not None:
            parts += np.where(wanted, foretold[:, k], 0.0)
            assumed += foretold[unseen, k].sum()
        if total == 0:
            continue
        mean = (weight * left[:, k]).sum() / total
        assumed += unseen.sum() * mean
        m = agreeing[cell]
        rest = np.where(m > 1, (left[:, k] - of_cell[cell]) * np.sqrt(m / np.maximum(m - 1, 1)), left[:, k] - mean)
        scale = wanted.sum() / total
        moved = np.where(wanted, of_page[cell] * (of_cell[cell] - mean), 0.0) + np.where(table.agrees[:, k], weight * rest, 0.0)
        moved *= scale
        parts += np.where(wanted, mean, 0.0) + moved - moved.mean()
    return parts, float(assumed / n)


def _summed_up(
    estimator: str,
    of_page: tuple[Floats, float],
    logged: Floats,
    table: _Table,
    rules: Rules,
    session: Ints | None,
    apart: tuple[Floats, Floats] | None,
) -> Estimate:
    """`of_page`: of `_parts`; `apart`: values and gains without each of some parts, where their spread is the error."""
    from scipy.special import stdtrit

    parts, assumed = of_page
    cells = sums(table.cell.ravel(), table.agrees.ravel(), int(table.cell.max()) + 1) > 0
    unseen = table.wanted & ~cells[table.cell]
    supported = float((table.wanted & ~unseen).sum() / max(table.wanted.sum(), 1))
    if supported < rules.support:
        raise NoSupportError(
            f"{estimator}: only {supported:.1%} of the new ranker's top-{rules.top} results occur in the log in a way that this estimator can use; "
            f"at least {rules.support:.0%} must"
        )
    error, independent = mean_error(parts, session)
    if not np.isfinite(error):
        raise NoSupportError(f"{estimator}: all pages are of one session; intervals need two or more sessions")
    value, gains = float(parts.mean()), parts - logged
    weights = table.weight[:, table.wanted.any(axis=0)]
    effective = float((weights.sum(axis=0) ** 2 / np.maximum((weights**2).sum(axis=0), 1e-300)).min())
    if effective < rules.sessions:
        raise NoSupportError(
            f"{estimator}: effective sample size at the least supported rank is {effective:.1f} pages; at least "
            f"{rules.sessions:g} are needed"
        )
    gain_error = mean_error(gains, session)[0]
    if apart is not None:
        (error, gain_error), independent = (float(spread(own)) for own in apart), min(independent, len(apart[0]))
    width = float(stdtrit(max(min(effective, independent) - 1, 1), 0.5 + rules.level / 2))
    return Estimate(
        estimator,
        value,
        error,
        value - width * error,
        value + width * error,
        float(gains.mean()),
        gain_error,
        effective,
        supported,
        max(0.0, table.clipped),
        tuple((unseen.sum(axis=0) / np.maximum(table.wanted.sum(axis=0), 1)).tolist()),
        value - assumed,
        value - assumed + float(unseen.sum() / len(parts)),
    )
