"""Training queries in one part or in several: what boosting asks of them, and the same answers added up over parts.

Forces belong to queries and stay with their documents; between the parts and the one who decides go only numbers of which the
whole's are maxima or exact integer sums: the largest force, the scales' sums, histograms in packed 64-bit integers, counts, leaf
sums. So a model trained on parts has the digest of the model trained on all queries at once, whatever the parts.

    decides: LambdaMART, `grow_over`      ask(question, …)  →      answers: one `Part` per machine
             edges, splits, leaf values   ←  a list, one a part    rows, forces, scores, histograms

Who carries questions to where the parts are is not known here: `ask` is a function. In one process it is a loop.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data.queries import Queries, canonical, chosen
from ltr.metrics.measure import Measure
from ltr.objectives.preferences import Preferences
from ltr.objectives.two_class import classes
from ltr.rankers.training import mean_measure, query_values
from ltr.trees import binning
from ltr.trees.binning import MISSING, Bins
from ltr.trees.ensemble import Trees
from ltr.trees.grower import Field, Nodes, Pulled, best_first
from ltr.trees.partition import Ground

Ask = Callable[..., list[Any]]
"""``ask(question, *arguments)``: the `Part.answer` of every part, in the order of the parts."""


class PartLost(RuntimeError):
    """A part does not answer any more.

    Attributes:
        so_far: the model of the trees grown before, to go on from (``start``); None where there was none yet.
    """

    so_far: Any = None


class Part:
    """Training queries that lie on one machine: all there are, or a part of them.

    Args:
        model: the `ltr.LambdaMART` to be trained.
        queries: brought into canonical order here.
        preferences: pairs of rows of `queries`, instead of the model's objective.
    """

    def __init__(self, model: Any, queries: Queries, preferences: Preferences | None = None) -> None:
        self.model = model
        self.preferences = preferences and preferences.in_canonical_order(queries)
        self.queries = canonical(queries)
        self.names, self.n_documents = self.queries.names, self.queries.n_documents
        self.sorted: tuple[int, list[NDArray[np.float32]]] = (-1, [])

    def begin(self, trees: Trees, bins: Bins | None = None, sizes: tuple[int, int] | None = None) -> None:
        """Bins the features, by their own edges where none are given, and stands where `trees` end.

        Raises:
            ValueError: for infinite features, or an objective that does not fit the data.
        """
        model, queries = self.model, self.queries
        self.objective = model.objective_over(queries, self.preferences, sizes)
        self.ground = (
            Ground.of(queries.features, model.max_bins, model.n_leaves)
            if bins is None
            else Ground.binned_by(queries.features, bins, model.n_leaves)
        )
        self.scores = model.offset(queries.features, queries.names)
        if trees.n_trees:
            self.scores = self.scores + trees.scores(queries.features)
        self.moved = False

    def pull(self, iteration: int) -> Pulled:
        """The documents under the forces of an iteration, and those of its draw."""
        sample = None
        if self.model.query_share < 1:
            drawn = chosen(self.queries.keys, self.model.query_share, (self.model.seed, iteration))
            sample = np.repeat(drawn, np.diff(self.queries.offsets))
        self.pulled = Pulled.by(self.ground, self.objective(self.scores, iteration), sample)
        return self.pulled

    def move(self, values: NDArray[np.float64]) -> None:
        """Adds to each score the value of its document's leaf in the tree just grown, and lets go of the forces it was grown on; rows lie
        by the first tree's leaves from then on."""
        self.pulled.move(self.scores, values)
        leaf = self.pulled.leaf
        del self.pulled
        if not self.moved:
            self.ground.lie_by(leaf)
            self.moved = True

    def mean(self, measure: str) -> float:
        """Mean of a measure at the current scores.

        Raises:
            ValueError: where it is defined on no query.
        """
        return mean_measure(measure, self.queries, self.scores, self.model.conventions)

    def answer(self, question: str, *arguments: Any) -> Any:
        """The answer to one of `ANSWERS`."""
        return ANSWERS[question](self, *arguments)


def _about(part: Part) -> tuple[tuple[str, ...], int, NDArray[np.uint64], tuple[int, int] | None]:
    """Feature names, documents, keys, and documents of both classes where the loss asks for them."""
    model, queries = part.model, part.queries
    by_classes = model.loss != "ranking"
    sizes = classes(queries, Measure.of(model.objective[0].measure), model.conventions) if by_classes else None
    return queries.names, queries.n_documents, queries.keys, sizes


def _block(part: Part, first: int) -> list[NDArray[np.float32]]:
    """Features from `first` on, sorted; those asked for last are kept, as they are asked for again and again."""
    if part.sorted[0] != first:
        part.sorted = first, binning.sorted_block(part.queries.features, first)
    return part.sorted[1]


def _begin(part: Part, *arguments: Any) -> NDArray[np.bool_]:
    part.begin(*arguments)
    part.sorted = (-1, [])
    return part.ground.has_missing


def _root(part: Part, scales: tuple[float, float], newton: bool) -> tuple[int, NDArray[np.int64]]:
    return part.pulled.root(scales, newton), part.ground.histograms[0][in_use(part.ground.bins)]


def _settle(part: Part, leaf: int, new: int, left_is_smaller: bool, searched: bool) -> NDArray[np.int64]:
    part.ground.memory.settle(leaf, new, left_is_smaller, searched)
    return part.ground.histograms[new][in_use(part.ground.bins)] if searched else np.zeros(0, np.int64)


ANSWERS: dict[str, Callable[..., Any]] = {
    "about": _about,
    "few": lambda part, first, max_bins: binning.few(_block(part, first), max_bins),
    "not_above": lambda part, first, thresholds: binning.not_above(_block(part, first), thresholds),
    "next_below": lambda part, first, values: binning.next_below(_block(part, first), values),
    "begin": _begin,
    "pull": lambda part, iteration: part.pull(iteration).largest(),
    "sizes": lambda part, coarse: part.pulled.sizes(coarse),
    "root": _root,
    "divide": lambda part, *arguments: part.ground.memory.divide(*arguments),
    "settle": _settle,
    "in_bins": lambda part, leaf, feature: part.ground.memory.in_bins(leaf, feature),
    "totals": lambda part, scales, order, nodes: part.pulled.totals(scales, order, Nodes(*nodes)),
    "move": Part.move,
    "values": lambda part, measure: query_values(measure, part.queries, part.scores, part.model.conventions),
}
"""What may be asked of a part: numbers and small arrays, never rows."""


def in_use(bins: Bins) -> NDArray[np.bool_]:
    """Which bins of a histogram can hold something, ``bool [columns, bins]``: the others are not sent."""
    k, used = np.arange(MISSING + 1), bins.used[:, None]
    return (k < used) | ((k == MISSING) & (used > 0))


def asking(parts: Sequence[Part]) -> Ask:
    """`Ask` over parts of this process."""
    return lambda question, *arguments: [part.answer(question, *arguments) for part in parts]


class Parts:
    """Queries in several parts, with the questions that `Part` answers for its own.

    Args:
        model: the `ltr.LambdaMART` to be trained, as the parts have it.

    Raises:
        ValueError: for parts of different features, a query that is in two of them, or more documents than 32 bits count.
    """

    def __init__(self, model: Any, ask: Ask) -> None:
        names, documents, keys, sizes = zip(*ask("about"), strict=True)
        self.model, self.ask = model, ask
        self.names, self.n_documents = names[0], sum(documents)
        self.order = np.argsort(np.concatenate(keys), kind="stable")
        self.sizes = tuple(map(sum, zip(*sizes, strict=True))) if model.loss != "ranking" else None
        if len(set(names)) > 1:
            raise ValueError("the parts have different features")
        if len(np.unique(np.concatenate(keys))) < len(self.order):
            raise ValueError("a query is in two of the parts")
        if self.n_documents > np.iinfo(np.uint32).max:
            raise ValueError(f"{self.n_documents:,} documents; histograms count them in 32 bits, 4,294,967,295 at most")

    def begin(self, trees: Trees) -> None:
        """`Part.begin`, by edges that are the whole's."""
        self.bins = binning.find_bins_by(self.ask, len(self.names), self.model.max_bins)
        has_missing = np.logical_or.reduce(self.ask("begin", trees, self.bins, self.sizes))
        used = in_use(self.bins)
        self.ground = has_missing, np.zeros((self.model.n_leaves, *used.shape), np.int64), used

    def pull(self, iteration: int) -> Field:
        """`Part.pull`."""
        force, curvature = zip(*self.ask("pull", iteration), strict=True)
        return Summed(self.ask, self.bins, *self.ground, self.n_documents, (max(force), max(curvature)))

    def move(self, values: NDArray[np.float64]) -> None:
        """`Part.move`."""
        self.ask("move", values)

    def mean(self, measure: str) -> float:
        """`Part.mean`: the mean of all queries in canonical order, so that its bits are the whole's."""
        values = np.concatenate(self.ask("values", measure))[self.order]
        if np.isnan(values).all():
            raise ValueError(f"{Measure.of(measure).key} is undefined on every query of all parts")
        return float(np.nanmean(values))


@dataclass(frozen=True)
class Summed:
    """The `Field` of parts: their answers, added up.

    Attributes:
        used: `in_use`.
        most: largest |force| and |curvature|.
    """

    ask: Ask
    bins: Bins
    has_missing: NDArray[np.bool_]
    histograms: NDArray[np.int64]
    used: NDArray[np.bool_]
    n_documents: int
    most: tuple[float, float]

    def largest(self) -> tuple[float, float]:
        return self.most

    def sizes(self, coarse: tuple[float, float]) -> tuple[int, int]:
        force, curvature = zip(*self.ask("sizes", coarse), strict=True)
        return sum(force), sum(curvature)

    def root(self, scales: tuple[float, float], newton: bool) -> int:
        documents, histograms = zip(*self.ask("root", scales, newton), strict=True)
        self.histograms[0][self.used] = _sum(histograms)
        return sum(documents)

    def grown(self, *rules: Any) -> Any:
        return best_first(self, *rules)

    def divide(self, leaf: int, new: int, feature: int, split: int, missing_left: bool) -> int:
        return sum(self.ask("divide", int(leaf), int(new), int(feature), int(split), bool(missing_left)))

    def settle(self, leaf: int, new: int, left_is_smaller: bool, searched: bool) -> None:
        smaller = _sum(self.ask("settle", int(leaf), int(new), bool(left_is_smaller), bool(searched)))
        if searched:
            self.histograms[leaf][self.used] -= smaller
            self.histograms[new][self.used] = smaller

    def in_bins(self, leaf: int, feature: int) -> NDArray[np.int64]:
        return _sum(self.ask("in_bins", int(leaf), int(feature)))

    def totals(self, scales: tuple[float, float], order: NDArray[np.int64], nodes: Nodes) -> NDArray[np.int64]:
        return _sum(self.ask("totals", scales, order, tuple(nodes)))


def _sum(arrays: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return reduce(np.add, arrays)
