"""Click models in which users walk down the page and may stop.

A user examines the first result, and clicks on what is examined with probability α of query and document. After no click the next result is
examined with probability τ, after a click with one that each model has its own way to write:

    cascade   τ = 1; 0                             (Craswell et al. 2008)
    DCM       τ = 1; λ of the rank                 (Guo, Liu & Wang 2009)
    SDBN      τ = 1; 1 − σ of query and document   (Chapelle & Zhang 2009, section 3.1)
    CCM       τ; τ′·(1 − α) + τ″·α                 (Guo et al. 2009)

What is hidden is where the user stopped behind the last click, of which there is one chain of probabilities a page, so that EM needs one walk
down and one up. PyClick fits DCM and SDBN by counting, as if the last click always were where the user stopped; that is a bound of the
likelihood, and loses users who looked on and found nothing. The cascade knows one click: a page is read to its first. Sums are whole
numbers, 2⁻³⁰ each, so that they do not depend on the order of pages.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from ltr.clicks.ascent import ascend
from ltr.clicks.click_model import STEADY, ClickModel, Settings, drawn_to, draws, no_draws, sums, within
from ltr.clicks.pages import DEEPEST, Pages
from ltr.data.offsets import offsets_from_sizes
from ltr.kernels.kernel import Array, Bools, Floats, Ints

ONE = 2.0**30
"""Units of a whole look in sums."""
LOGARITHM = 2.0**20
"""Units of a nat in sums."""


@dataclass(frozen=True)
class Chain(ClickModel):
    """Cascade, DCM, SDBN or CCM.

    Attributes:
        skipped: how likely the user goes on after no click.
        after_pair: ``float64 [pairs]``, and
        after_rank: ``float64 [ranks]``: the product of the two is how likely the user goes on after a click.
        rounds, rested: of EM, and whether it had come to rest.
    """

    skipped: float
    after_pair: Floats
    after_rank: Floats
    rounds: int
    rested: bool

    @property
    def n_ranks(self) -> int:
        return len(self.after_rank)

    def given(self, pages: Pages) -> Floats:
        found = np.empty(len(pages.pair))
        _given(*self._on(pages), pages.click, found, *no_draws())
        return found

    def expected(self, pages: Pages) -> Floats:
        found = np.empty(len(pages.pair))
        _expected(*self._on(pages), found)
        return found

    def simulate(self, pages: Pages, seed: int) -> Pages:
        click, found = np.zeros(len(pages.pair), np.bool_), np.empty(len(pages.pair))
        _given(*self._on(pages), click, found, draws(pages, seed), click)
        return pages.clicked(click)

    def _on(self, pages: Pages) -> tuple[Ints, Ints, Ints, Floats, float, Floats, Floats]:
        if pages.n_ranks > len(self.after_rank):
            raise ValueError(f"rank: {pages.n_ranks}; the model covers ranks 1 to {len(self.after_rank)}")
        return pages.offsets, pages.pair, pages.rank, self.attraction, self.skipped, self.after_pair, self.after_rank


def after_relevance(alpha: Floats, bored: float, pleased: float) -> Floats:
    """CCM's going on after a click: `bored` where it did not please, `pleased` where it did, which has probability α."""
    return bored * (1 - alpha) + pleased * alpha


def fit(pages: Pages, name: str, settings: Settings, n_ranks: int) -> Chain:
    """The model `name` (cascade, dcm, sdbn or ccm) of these pages, for ranks up to `n_ranks`."""
    n_pairs = len(pages.query)
    read = _to_first_click(pages) if name == "cascade" else pages
    clicks = sums(read.pair, read.click, n_pairs)
    inner = read.click.copy()
    inner[read.offsets[1:] - 1] = False
    clicks_inner, clicks_end = np.bincount(read.pair, inner, n_pairs), np.bincount(read.pair, read.click & ~inner, n_pairs)
    inner_of_rank = np.bincount(read.rank - 1, inner, n_ranks)
    examined, went_on, on_by_rank = np.empty(n_pairs, np.int64), np.empty(n_pairs, np.int64), np.empty(n_ranks, np.int64)
    passing = np.empty(2, np.int64)

    def parts(x: Floats) -> tuple[Floats, float, Floats, Floats]:
        """α, τ, and the two factors of going on after a click."""
        alpha, rest = np.ascontiguousarray(x[:n_pairs]), x[n_pairs:]
        if name == "dcm":
            return alpha, 1.0, np.ones(n_pairs), np.ascontiguousarray(rest)
        if name == "sdbn":
            return alpha, 1.0, np.ascontiguousarray(rest), np.ones(n_ranks)
        if name == "ccm":
            return alpha, float(rest[0]), after_relevance(alpha, rest[1], rest[2]), np.ones(n_ranks)
        return alpha, 1.0, np.zeros(n_pairs), np.ones(n_ranks)

    def once(x: Floats) -> tuple[Floats, float]:
        alpha, skipped, after_pair, after_rank = parts(x)
        total = _round(
            read.offsets, read.pair, read.rank, alpha, skipped, after_pair, after_rank, read.click,
            examined, went_on, on_by_rank, passing,
        )  # fmt: skip
        looks, on, by_rank = examined / ONE, went_on / ONE, on_by_rank / ONE
        means, prior = drawn_to(clicks, looks, looks, pages.query, settings.prior)
        better, seen = clicks + prior * means, looks + prior
        mean_on = (by_rank.sum() + 0.5) / (inner_of_rank.sum() + 1.0)
        rest = np.empty(0)
        if name == "dcm":
            rest = (by_rank + STEADY * mean_on) / (inner_of_rank + STEADY)
        elif name == "sdbn":
            rest = (on + STEADY * mean_on) / (clicks_inner + STEADY)
        elif name == "ccm":
            pleased = x[n_pairs + 2]
            pleases_on = alpha * pleased / after_pair
            pleases_off = alpha * (1 - pleased) / np.maximum(1 - after_pair, 1e-300)
            off = clicks_inner - on
            better = better + on * pleases_on + off * pleases_off + clicks_end * alpha
            seen = seen + clicks
            pleased_on, pleased_off = (on * pleases_on).sum(), (off * pleases_off).sum()
            bored_on, bored_off = on.sum() - pleased_on, off.sum() - pleased_off
            rest = np.array([
                (passing[1] / ONE + 0.5) / (passing[0] / ONE + 1.0),
                (bored_on + 0.5) / (bored_on + bored_off + 1.0),
                (pleased_on + 0.5) / (pleased_on + pleased_off + 1.0),
            ])  # fmt: skip
        return within(np.concatenate((better / seen, rest))), total / LOGARITHM / len(read.pair)

    start = np.full(n_pairs + {"dcm": n_ranks, "sdbn": n_pairs, "ccm": 3}.get(name, 0), 0.5)
    start[:n_pairs] = 0.3
    climb = ascend(once, start, settings.tolerance, settings.rounds)
    alpha, skipped, after_pair, after_rank = parts(climb.at)
    looks = examined / ONE
    _, prior = drawn_to(clicks, looks, looks, pages.query, settings.prior)
    return Chain(name, alpha, looks, looks, prior, skipped, after_pair, after_rank, climb.rounds, climb.rested)


def _to_first_click(pages: Pages) -> Pages:
    """Each page down to its first click."""
    before: Ints = np.cumsum(pages.click) - pages.click
    kept: Bools = before == np.repeat(before[pages.offsets[:-1]], np.diff(pages.offsets))
    offsets = offsets_from_sizes(np.add.reduceat(kept, pages.offsets[:-1], dtype=np.int64))
    return Pages(offsets, pages.pair[kept], pages.rank[kept], pages.click[kept], pages.query)


@njit(cache=True, error_model="numpy")
def _round(
    offsets: Ints, pair: Ints, rank: Ints, alpha: Floats, skipped: float, after_pair: Floats, after_rank: Floats, click: Bools,
    examined: Ints, went_on: Ints, on_by_rank: Ints, passing: Ints,
) -> float:  # fmt: skip
    """Expected looks and goings-on after clicks by pair, the latter by rank too, and how many results were passed without a click
    (the last of a page apart) and how often the user then went on; the log-likelihood.

        e   how likely the result behind the last click is examined, before one sees that nothing was clicked there
        below[k]   how likely nothing is clicked from k on, if k is examined
        here = P(k is examined | all clicks of the page)
    """
    examined[:], went_on[:], on_by_rank[:], passing[:] = 0, 0, 0, 0
    total, below = np.int64(0), np.empty(DEEPEST + 1)
    for page in range(len(offsets) - 1):
        first, end = offsets[page], offsets[page + 1]
        last = end - 1
        while last >= first and not click[last]:
            last -= 1
        product, logarithm, e = 1.0, 0.0, 1.0
        for i in range(first, last + 1):
            a = alpha[pair[i]]
            examined[pair[i]] += np.int64(ONE)
            if click[i]:
                product *= a
                e = after_pair[pair[i]] * after_rank[rank[i] - 1]
                if i < last:
                    product *= e
                    went_on[pair[i]] += np.int64(ONE)
                    on_by_rank[rank[i] - 1] += np.int64(ONE)
            else:
                product *= (1.0 - a) * skipped
                passing[0] += np.int64(ONE)
                passing[1] += np.int64(ONE)
            if product < 1e-200:
                logarithm += np.log(product)
                product = 1.0
        if last < end - 1:
            none = 1.0
            for i in range(end - 1, last, -1):
                none = (1.0 - alpha[pair[i]]) * ((1.0 - skipped) + skipped * none if i < end - 1 else 1.0)
                below[i - last] = none
            quiet = (1.0 - e) + e * none
            product *= quiet
            reach = e / quiet
            for i in range(last + 1, end):
                here = np.int64(reach * below[i - last] * ONE + 0.5)
                examined[pair[i]] += here
                if i > last + 1:
                    passing[1] += here
                elif last >= first:
                    went_on[pair[last]] += here
                    on_by_rank[rank[last] - 1] += here
                if i < end - 1:
                    passing[0] += here
                reach *= (1.0 - alpha[pair[i]]) * skipped
        total += np.int64(np.floor((logarithm + np.log(product)) * LOGARITHM + 0.5))
    return float(total)


@njit(cache=True, error_model="numpy")
def _given(
    offsets: Ints, pair: Ints, rank: Ints, alpha: Floats, skipped: float, after_pair: Floats, after_rank: Floats, click: Bools,
    found: Floats, drawn: Floats, drew: Array,
) -> None:  # fmt: skip
    """Probabilities of clicks given those above; where numbers are `drawn`, `click` is `drew` and is filled on the way."""
    for page in range(len(offsets) - 1):
        reach = 1.0
        for i in range(offsets[page], offsets[page + 1]):
            a = alpha[pair[i]]
            found[i] = reach * a
            if len(drawn):
                drew[i] = drawn[i] < found[i]
            if click[i]:
                reach = after_pair[pair[i]] * after_rank[rank[i] - 1]
            else:
                reach *= skipped * (1.0 - a) / (1.0 - found[i])


@njit(cache=True)
def _expected(
    offsets: Ints, pair: Ints, rank: Ints, alpha: Floats, skipped: float, after_pair: Floats, after_rank: Floats, found: Floats
) -> None:
    for page in range(len(offsets) - 1):
        reach = 1.0
        for i in range(offsets[page], offsets[page + 1]):
            a = alpha[pair[i]]
            found[i] = reach * a
            reach *= a * after_pair[pair[i]] * after_rank[rank[i] - 1] + (1.0 - a) * skipped
