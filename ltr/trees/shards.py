"""Training queries in one shard or in several: the questions that boosting asks of them, and how the answers of shards are combined.

Gradients belong to queries and stay with their documents; shards only send numbers that combine by a maximum or an exact sum of
integers: the largest gradient, the sums that scales follow from, histograms in packed 64-bit integers, counts, leaf sums. So a model
trained on shards has the digest of the model trained on all queries at once, however they are divided.

    decides: LambdaMART, `grow_from`      ask(question, …)  →      answers: one `Shard` per machine
             edges, splits, leaf values   ←  a list, one a shard    rows, gradients, scores, histograms

How questions reach the shards does not matter here: `ask` is a function. In one process it is a loop.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np

from ltr.data.plain_function import PlainFunction
from ltr.data.queries import Queries, canonical_order, chosen, reordered, without_features
from ltr.kernels.kernel import Bools, Floats, Floats32, Ints, Words
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import Measure
from ltr.objectives.preferences import Preferences
from ltr.objectives.seam import ObjectiveFunction
from ltr.objectives.two_class import classes
from ltr.rankers.training import mean_measure, query_values
from ltr.trees import binning
from ltr.trees.binned import Binned
from ltr.trees.binning import MISSING, Bins
from ltr.trees.ensemble import Trees
from ltr.trees.grower import Gradients, GradientSource, Growth, Nodes, best_first
from ltr.trees.partition import BinnedDataset, splitting
from ltr.trees.splits import SplitSearch

Ask = binning.Ask
"""``ask(question, *arguments)``: the `Shard.answer` of every shard, in the order of the shards."""


class Boosted(Protocol):
    """What a shard reads of the ranker that is trained on it, an `ltr.LambdaMART`."""

    @property
    def max_bins(self) -> int:
        """Bins of a feature at most."""
        ...

    @property
    def n_leaves(self) -> int:
        """Leaves of a tree at most."""
        ...

    @property
    def seed(self) -> int:
        """Of the draws."""
        ...

    @property
    def query_share(self) -> float:
        """Share of the queries that each tree is grown on."""
        ...

    @property
    def functions(self) -> tuple[PlainFunction, ...]:
        """Functions of users that it learns from or stops by."""
        ...

    @property
    def loss(self) -> str:
        """``ranking``, ``two_class`` or ``balanced``."""
        ...

    @property
    def conventions(self) -> Conventions:
        """Label rules."""
        ...

    @property
    def trained_for(self) -> tuple[Measure, ...]:
        """The measures of its terms."""
        ...

    def objective_over(
        self, queries: Queries, preferences: Preferences | None = None, sizes: tuple[int, int] | None = None
    ) -> ObjectiveFunction:
        """The objective over these queries; `sizes`: the classes of all shards."""
        ...

    def offset(self, features: Floats32, names: tuple[str, ...]) -> Floats:
        """Scores before the first tree, ``float64 [documents]``."""
        ...


class ShardLost(RuntimeError):
    """A shard no longer answers.

    Attributes:
        so_far: the model of the trees grown before, from which to continue (``start``); None where training had not begun.
    """

    so_far: Any = None


class Shard:
    """Training queries in this process: all there are, or one shard of them.

    Args:
        model: the `ltr.LambdaMART` to be trained.
        queries: brought into canonical order here, but for the features: these stay where they are, and `order` says which row is
            which document's. Functions of users are given the features too, in a copy.
        preferences: pairs of rows of `queries`, instead of the model's objective.
        binned: the same queries, where they are binned already.
    """

    def __init__(
        self, model: Boosted, queries: Queries, preferences: Preferences | None = None, binned: Binned | None = None
    ) -> None:
        self.model, self.binned = model, binned
        self.features, self.names, self.n_documents = queries.features, queries.names, queries.n_documents
        self.order = binned.order if binned else canonical_order(queries)
        self.preferences = preferences and preferences.reordered(self.order)
        self.queries = reordered(queries if model.functions else without_features(queries), self.order)
        self.sorted: tuple[int, list[Floats32]] = (-1, [])

    def begin(self, trees: Trees, bins: Bins | None = None, sizes: tuple[int, int] | None = None) -> None:
        """Bins the features, by their own edges where none are given, and starts from the scores of `trees`.

        Raises:
            ValueError: for infinite features, or an objective that does not fit the data.
        """
        model, queries = self.model, self.queries
        self.objective = model.objective_over(queries, self.preferences, sizes)
        if bins is not None:
            self.data = BinnedDataset.with_bins(self.features, bins, model.n_leaves, self.order)
        elif self.binned is not None:
            self.data = BinnedDataset.from_binned(self.binned.binned.copy(), self.binned.bins, model.n_leaves, self.order)
        else:
            self.data = BinnedDataset.of(self.features, model.max_bins, model.n_leaves, self.order)
        scores = model.offset(self.features, self.names)
        if trees.n_trees:
            scores = scores + trees.scores(self.features)
        self.scores = scores if self.order is None else scores[self.order]
        self.moved = False

    def gradients_at(self, iteration: int) -> Gradients:
        """The documents with the gradients of an iteration and its draw of queries."""
        sample = None
        if self.model.query_share < 1:
            drawn = chosen(self.queries.keys, self.model.query_share, (self.model.seed, iteration))
            sample = np.repeat(drawn, np.diff(self.queries.offsets))
        self.gradients = Gradients.by(self.data, weighted(self.objective(self.scores, iteration), self.queries), sample)
        return self.gradients

    def move(self, values: Floats) -> None:
        """Adds to each score the value of its document's leaf in the tree just grown, and drops that tree's gradients; after the first tree,
        rows are reordered by its leaves."""
        self.gradients.move(self.scores, values)
        leaf = self.gradients.leaf
        del self.gradients
        if not self.moved:
            self.data.reorder_rows(leaf)
            self.moved = True

    def mean(self, measure: str | PlainFunction) -> float:
        """Mean of a measure at the current scores.

        Raises:
            ValueError: where it is defined on no query.
        """
        return mean_measure(measure, self.queries, self.scores, self.model.conventions)

    def answer(self, question: str, *arguments: object) -> object:
        """The answer to one of `ANSWERS`."""
        return ANSWERS[question](self, *arguments)


def weighted(gradients: tuple[Floats, Floats], queries: Queries) -> tuple[Floats, Floats]:
    """Gradient and hessian ``float64 [documents]``, each times its document's own weight, as in LightGBM: in sums over a leaf a document
    counts as if it were there so often, whatever it is paired with."""
    weights = queries.document_weights
    return gradients if weights is None else (gradients[0] * weights, gradients[1] * weights)


def _about(shard: Shard) -> tuple[tuple[str, ...], int, Words, tuple[int, int] | None]:
    """Feature names, documents, keys, and `classes` for a loss that needs them."""
    model, queries = shard.model, shard.queries
    by_classes = model.loss != "ranking"
    sizes = classes(queries, model.trained_for[0], model.conventions) if by_classes else None
    return shard.names, shard.n_documents, queries.keys, sizes


def _block(shard: Shard, first: int) -> list[Floats32]:
    """`binning.sorted_block`; the last one is remembered, as many questions about it follow."""
    if shard.sorted[0] != first:
        shard.sorted = first, binning.sorted_block(shard.features, first)
    return shard.sorted[1]


def _begin(shard: Shard, trees: Trees, bins: Bins | None, sizes: tuple[int, int] | None) -> Bools:
    shard.begin(trees, bins, sizes)
    shard.sorted = (-1, [])
    return shard.data.has_missing


def _root(shard: Shard, scales: tuple[float, float], newton: bool) -> tuple[int, Ints]:
    return shard.gradients.root(scales, newton), shard.data.histograms[0][in_use(shard.data.bins)]


def _subtract(shard: Shard, leaf: int, new: int, left_is_smaller: bool, searched: bool) -> Ints:
    splitting()[1](shard.data.compiled, leaf, new, left_is_smaller, searched)
    return shard.data.histograms[new][in_use(shard.data.bins)] if searched else np.zeros(0, np.int64)


ANSWERS: dict[str, Callable[..., Any]] = {
    "about": _about,
    "few": lambda shard, first, max_bins: binning.few(_block(shard, first), max_bins),
    "not_above": lambda shard, first, thresholds: binning.not_above(_block(shard, first), thresholds),
    "next_below": lambda shard, first, values: binning.next_below(_block(shard, first), values),
    "begin": _begin,
    "gradients": lambda shard, iteration: shard.gradients_at(iteration).largest(),
    "sizes": lambda shard, coarse: shard.gradients.sizes(coarse),
    "root": _root,
    "split": lambda shard, *arguments: int(splitting()[0](shard.data.compiled, *arguments)),
    "subtract": _subtract,
    "in_bins": lambda shard, leaf, feature: splitting()[2](shard.data.compiled, leaf, feature),
    "totals": lambda shard, scales, order, nodes: shard.gradients.totals(scales, order, Nodes(*nodes)),
    "move": Shard.move,
    "values": lambda shard, measure: query_values(measure, shard.queries, shard.scores, shard.model.conventions),
}
"""How a shard answers each question: by numbers and small arrays, never by rows."""


def in_use(bins: Bins) -> Bools:
    """Which bins of a histogram can be other than zero, ``bool [columns, bins]``; the others are not sent."""
    k, used = np.arange(MISSING + 1), bins.used[:, None]
    holds: Bools = (k < used) | ((k == MISSING) & (used > 0))
    return holds


def asking(shards: Sequence[Shard]) -> Ask:
    """`Ask` over shards of this process."""
    return lambda question, *arguments: [shard.answer(question, *arguments) for shard in shards]


class Shards:
    """Queries in several shards, with the methods that `Shard` has for its own.

    Args:
        model: the `ltr.LambdaMART` to be trained, as the shards have it.
        ask: how to reach them.

    Raises:
        ValueError: for shards of different features, a query that is in two of them, or more documents than 32 bits can count.
    """

    def __init__(self, model: Boosted, ask: Ask) -> None:
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
        """`Shard.begin`, by edges of all shards together."""
        self.bins = binning.find_bins_by(self.ask, len(self.names), self.model.max_bins)
        has_missing = np.logical_or.reduce(self.ask("begin", trees, self.bins, self.sizes))
        used = in_use(self.bins)
        self.data = has_missing, np.zeros((self.model.n_leaves, *used.shape), np.int64), used

    def gradients_at(self, iteration: int) -> GradientSource:
        """`Shard.gradients_at`."""
        gradient, hessian = zip(*self.ask("gradients", iteration), strict=True)
        return SummedGradients(self.ask, self.bins, *self.data, self.n_documents, (max(gradient), max(hessian)))

    def move(self, values: Floats) -> None:
        """`Shard.move`."""
        self.ask("move", values)

    def mean(self, measure: str | PlainFunction) -> float:
        """`Shard.mean` over the queries of all shards in canonical order, so that it is the same to the last bit."""
        assert isinstance(measure, str)
        values = np.concatenate(self.ask("values", measure))[self.order]
        if np.isnan(values).all():
            raise ValueError(f"{Measure.of(measure).key} is undefined on every query of all parts")
        return float(np.nanmean(values))


@dataclass(frozen=True)
class SummedGradients:
    """The `GradientSource` of shards, which also answers the questions of `best_first`: their answers, combined.

    Attributes:
        ask: how to reach the shards.
        used: `in_use`.
        most: largest |gradient| and |hessian|.
    """

    ask: Ask
    bins: Bins
    has_missing: Bools
    histograms: Ints
    used: Bools
    n_documents: int
    most: tuple[float, float]

    def largest(self) -> tuple[float, float]:
        """Of all shards; they sent it when they were asked for gradients."""
        return self.most

    def sizes(self, coarse: tuple[float, float]) -> tuple[int, int]:
        """The sums of `Gradients.sizes`."""
        gradient, hessian = zip(*self.ask("sizes", coarse), strict=True)
        return sum(gradient), sum(hessian)

    def root(self, scales: tuple[float, float], newton: bool) -> int:
        """The sum of `Gradients.root`, and of the histograms of leaf 0."""
        documents, histograms = zip(*self.ask("root", scales, newton), strict=True)
        self.histograms[0][self.used] = _sum(histograms)
        return sum(documents)

    def grow(self, n_rows: int, n_leaves: int, space: SplitSearch) -> Growth:
        """`best_first` over the rows of all shards, interpreted."""
        own = SummedGradients
        return best_first(self, own.split, own.subtract, own.in_bins, n_rows, self.histograms[:n_leaves], space)

    def split(self, leaf: int, new: int, feature: int, split: int, missing_left: bool) -> int:
        """The sum of `split_leaf`."""
        return sum(self.ask("split", int(leaf), int(new), int(feature), int(split), bool(missing_left)))

    def subtract(self, leaf: int, new: int, left_is_smaller: bool, searched: bool) -> None:
        """`subtract_sibling`, with the sum of the smaller side's histograms."""
        smaller = _sum(self.ask("subtract", int(leaf), int(new), bool(left_is_smaller), bool(searched)))
        if searched:
            self.histograms[leaf][self.used] -= smaller
            self.histograms[new][self.used] = smaller

    def in_bins(self, leaf: int, feature: int) -> Ints:
        """The sum of `leaf_in_bins`."""
        return _sum(self.ask("in_bins", int(leaf), int(feature)))

    def totals(self, scales: tuple[float, float], order: Ints, nodes: Nodes) -> Ints:
        """The sum of `Gradients.totals`."""
        return _sum(self.ask("totals", scales, order, tuple(nodes)))


def _sum(arrays: Sequence[Ints]) -> Ints:
    return reduce(np.add, arrays)
