"""Training queries in one shard or in several: the questions that boosting asks of them, and how the answers of shards are combined.

Gradients belong to queries and stay with their documents; shards only send numbers that combine by a maximum or an exact sum of
integers: the largest gradient, the sums that scales follow from, histograms in packed 64-bit integers, counts, leaf sums, sums by the rank
that documents were shown at (`ltr.objectives.rank_sums`). So a model trained on shards has the digest of the model trained on all queries
at once, however they are divided.

    one place: edges, when to stop      ask(question, …)  →      one `Shard` per machine: rows, gradients, scores, histograms
                                        ←  a list, one a shard   every one grows the same tree (`ltr.trees.rounds`): they exchange sums

How questions reach the shards, and arrays other shards, does not matter here: `ask` and `Machines.exchange` are functions.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np

from ltr.data.digests import chosen
from ltr.data.plain_function import PlainFunction
from ltr.data.queries import Queries, canonical_order, reordered, without_features
from ltr.data.sparse import is_sparse
from ltr.kernels.kernel import Bools, Floats, Floats32, Ints, Words
from ltr.kernels.machines import ALONE, Machines
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import Measure
from ltr.objectives.preferences import Preferences
from ltr.objectives.seam import ObjectiveFunction
from ltr.objectives.shown import Shown
from ltr.objectives.terms import Term
from ltr.objectives.two_class import classes
from ltr.objectives.unbiased import Unbiased, learned_at
from ltr.rankers.training import UndefinedMeasureError, mean_measure, query_values
from ltr.trees import binning
from ltr.trees.binned import BINNING, Binned, Binning, bins_of, which
from ltr.trees.binning import Bins
from ltr.trees.ensemble import Trees
from ltr.trees.fixed_point import VANISHED
from ltr.trees.grower import Gradients, GradientSource, Growth, TreeOptions, grow_from
from ltr.trees.histograms import N_BINS
from ltr.trees.partition import BinnedDataset
from ltr.trees.rounds import Rounds, slots
from ltr.trees.sparse_dataset import SparseDataset
from ltr.trees.splits import Nodes, SplitSearch

Ask = binning.Ask
"""``ask(question, *arguments)``: the `Shard.answer` of every shard, in the order of the shards."""


class Boosted(Binning, Protocol):
    """What a shard reads of the ranker that is trained on it, an `ltr.LambdaMART`."""

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

    def learned_documents(self, queries: Queries) -> Bools | None:
        """Documents that trees are grown on; None for all."""
        ...

    def least_docs(self, n_documents: int) -> int:
        """Documents in a leaf at least, of so many to learn from."""
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
        self,
        queries: Queries,
        preferences: Preferences | None = None,
        sizes: tuple[int, int] | None = None,
        machines: Machines = ALONE,
    ) -> ObjectiveFunction:
        """The objective over these queries; `sizes`: the classes of all shards; `machines`: which have them."""
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

    Attributes:
        looks: propensities of ranks, ``float64 [ranks]`` each, that were estimated on these queries, by how.
        machines: those of all shards, set before `begin` where there are several.
    """

    def __init__(
        self, model: Boosted, queries: Queries, preferences: Preferences | None = None, binned: Binned | None = None
    ) -> None:
        self.model, self.given, self.binned = model, queries, binned
        self.features, self.names, self.n_documents = queries.features, queries.names, queries.n_documents
        self.order = binned.order if binned else canonical_order(queries)
        self.preferences = preferences and preferences.reordered(queries, self.order)
        self.queries = reordered(queries if model.functions else without_features(queries), self.order)
        self.sorted: tuple[int, list[Floats32]] = (-1, [])
        self.looks: dict[Unbiased, Floats] = {}
        self.machines: Machines | None = None
        self.whole: Whole | None = None

    def begin(self, trees: Trees, bins: Bins | None = None, sizes: tuple[int, int] | None = None) -> None:
        """Bins the features, by their own edges where none are given, and starts from the scores of `trees`.

        Raises:
            ValueError: for infinite features, or an objective that does not fit the data.
        """
        model, queries = self.model, self.queries
        n_labelled = self._of_all(self.n_labelled)
        self.learned_documents = self._learned_documents() if n_labelled else None
        n_leaves = most_leaves(model, n_labelled or self._of_all(self.n_documents))
        self.objective = model.objective_over(queries, self.preferences, sizes, self.machines or ALONE)
        self.data: BinnedDataset | SparseDataset
        if is_sparse(self.features):
            least_docs = model.least_docs(self.n_learned)
            self.data = SparseDataset.of(self.features, bins_of(model, self.names), n_leaves, self.order, least_docs)
        elif bins is not None:
            self.data = BinnedDataset.with_bins(self.features, bins, slots(n_leaves), self.order)
        elif self.binned is not None:
            self.data = BinnedDataset.from_binned(self.binned.binned.copy(), self.binned.bins, n_leaves, self.order)
        else:
            limits, categories = bins_of(model, self.names), which(model.categorical, self.names)
            self.data = BinnedDataset.of(self.features, limits, n_leaves, self.order, categories)
        scores = model.offset(self.features, self.names)
        if trees.n_trees:
            scores = trees.added_to(scores, self.features)
        self.scores = scores if self.order is None else scores[self.order]
        self.moved = False
        self.whole = Whole.of(self.data, self.machines) if self.machines else None

    def step(self, iteration: int, options: TreeOptions, allowed: Bools | None, every_query: bool = False) -> Trees | str:
        """Grows the tree of an iteration, one machine or all of them together, and moves the scores along it; or says why there is none.

        Args:
            allowed: features that it may split by, ``bool [features]``; None for all.
            every_query: on all queries, not on the iteration's draw of them.

        Raises:
            ValueError: where Newton's steps are asked for and no document has a second derivative.
        """
        gradients = self._gradients_at(iteration, every_query, None if self.whole else allowed)
        source: GradientSource = SummedGradients(gradients, self.whole) if self.whole else gradients
        tree = grow_from(source, options, allowed)
        if tree is None:
            gradient, hessian = source.largest()
            if gradient < VANISHED:
                return "all gradients are zero"
            if options.newton_gain and not hessian:
                raise ValueError("the objective's second derivatives are all 0; set gain: least_squares and leaf: gradient")
            return "no split is admissible"
        gradients.move(self.scores, tree.value)
        if not self.moved:
            self.data.reorder_rows(gradients.leaf)
            self.moved = True
        return tree

    def _gradients_at(self, iteration: int, every_query: bool, allowed: Bools | None) -> Gradients:
        """The documents with the gradients of an iteration and its draw of queries, or all of them. Where several machines grow a tree (`allowed`:
        None) every column is summed: they exchange sums of the first."""
        sample = self.learned_documents
        if self.model.query_share < 1 and not every_query:
            drawn = chosen(self.queries.keys, self.model.query_share, (self.model.seed, iteration))
            of_drawn = np.repeat(drawn, np.diff(self.queries.offsets))
            sample = of_drawn if sample is None else of_drawn & sample
        return Gradients.by(self.data, weighted(self.objective(self.scores, iteration), self.queries), sample, allowed)

    def _learned_documents(self) -> Bools | None:
        return self.model.learned_documents(self.queries) if self.preferences is None else None

    @property
    def n_learned(self) -> int:
        """How many documents trees are grown on, where these are all queries."""
        return self.n_labelled or self.n_documents

    @property
    def n_labelled(self) -> int:
        """How many documents there are that trees are grown on where any of all shards' is one."""
        learned = self._learned_documents()
        return self.n_documents if learned is None else int(learned.sum())

    def _of_all(self, n: int) -> int:
        """The sum over all shards, which all of them ask for."""
        return int(self.machines.summed(np.array([n], np.int64))[0]) if self.machines else n

    def mean(self, measure: str | PlainFunction) -> float:
        """Mean of a measure at the current scores.

        Raises:
            UndefinedMeasureError: where it is defined on no query.
        """
        return mean_measure(measure, self.queries, self.scores, self.model.conventions)

    @property
    def biases(self) -> list[Floats]:
        """What was learned of ranks before each tree so far and after the last, ``float64 [sides, ranks]`` each; nothing by most objectives."""
        learned: list[Floats] = getattr(self.objective, "biases", [])
        return learned

    @property
    def learned(self) -> Floats | None:
        """`biases` as an array, ``float64 [trees + 1, sides, ranks]``; None where nothing is learned of ranks."""
        return np.array(self.biases) if self.biases else None

    @property
    def graded(self) -> tuple[int, list[float]]:
        """Documents with a label that the first term reads, and of these labels the smallest, the largest, and one between where there is one."""
        terms = self.model.trained_for
        labels = self.queries.source(terms[0].source if terms else "label")
        known = labels[~np.isnan(labels)] if np.isnan(labels).any() else labels
        if not len(known):
            return 0, []
        ends = {float(known.min()), float(known.max())}
        between = known[(known > min(ends)) & (known < max(ends))][:1]
        return len(known), sorted(ends | set(between.tolist()))

    def learning(self, model: Boosted) -> "Shard":
        """The same queries for another model."""
        other = copy(self)
        other.model = model
        if other.binned is not None and any(getattr(other.binned, name) != getattr(model, name) for name in BINNING):
            other.binned = None
        return other

    def answer(self, question: str, *arguments: object) -> object:
        """The answer to one of `ANSWERS`."""
        return ANSWERS[question](self, *arguments)

    def ask(self, question: str, *arguments: object) -> list[Any]:
        """`Ask` where there is no other shard."""
        return [self.answer(question, *arguments)]


def most_leaves(model: Boosted, n_documents: int) -> int:
    """Leaves that a tree may have, of so many documents to learn from: no more than have enough documents each. Memory is held for all of them."""
    return min(model.n_leaves, n_documents // model.least_docs(n_documents))


def weighted(gradients: tuple[Floats, Floats], queries: Queries) -> tuple[Floats, Floats]:
    """Gradient and hessian ``float64 [documents]``, each times its document's own weight, as in LightGBM: in sums over a leaf a document
    counts as if it were there so often, whatever it is paired with."""
    weights = queries.document_weights
    return gradients if weights is None else (gradients[0] * weights, gradients[1] * weights)


def _about(shard: Shard) -> tuple[tuple[str, ...], tuple[int, int], Words, tuple[int, int] | None, tuple[int, list[float]]]:
    """Feature names, documents and `Shard.n_labelled`, keys, `classes` for a loss that needs them, and `Shard.graded`."""
    model, queries = shard.model, shard.queries
    if is_sparse(shard.features):
        raise ValueError("LambdaMART: sparse features are not yet learned from in several parts; train it in one")
    by_classes = model.loss != "ranking"
    sizes = classes(queries, model.trained_for[0], model.conventions) if by_classes else None
    return shard.names, (shard.n_documents, shard.n_labelled), queries.keys, sizes, shard.graded


def _block(shard: Shard, first: int) -> list[Floats32]:
    """`binning.sorted_block`; the last one is remembered, as many questions about it follow."""
    if shard.sorted[0] != first:
        shard.sorted = first, binning.sorted_block(shard.features, first)
    return shard.sorted[1]


def _begin(shard: Shard, model: Boosted, trees: Trees, bins: Bins | None, sizes: tuple[int, int] | None) -> list[Floats]:
    """Of a model, as it is known by now; what it learned of ranks up to here."""
    shard.model = model
    shard.begin(trees, bins, sizes)
    shard.sorted = (-1, [])
    return [*shard.biases]


def _step(
    shard: Shard, iteration: int, options: TreeOptions, allowed: Bools | None, every_query: bool
) -> tuple[Trees | str, list[Floats]]:
    """The tree, and what is learned of ranks with it."""
    tree = shard.step(iteration, options, allowed, every_query)
    return tree, shard.biases[-1:]


def _shown(shard: Shard, how: Unbiased, term: Term, question: str, *arguments: object) -> object:
    """`ltr.objectives.shown.Shown.answer`."""
    return Shown.on(shard.given, how, term).answer(question, *arguments)


ANSWERS: dict[str, Callable[..., Any]] = {
    "about": _about,
    "categories": lambda shard, feature: binning.counted_categories(shard.features[:, feature], feature),
    "few": lambda shard, first, limits: binning.few(_block(shard, first), limits),
    "own_quantiles": lambda shard, first, counts, limits: binning.own_quantiles(_block(shard, first), counts, limits),
    "not_above": lambda shard, first, thresholds: binning.not_above(_block(shard, first), thresholds),
    "next_below": lambda shard, first, values: binning.next_below(_block(shard, first), values),
    "shown": _shown,
    "begin": _begin,
    "step": _step,
    "values": lambda shard, measure: query_values(measure, shard.queries, shard.scores, shard.model.conventions),
}
"""How a shard answers each question: by numbers and small arrays, never by rows. Shards that begin or step exchange sums meanwhile, so all of
them have to be at work at once."""


class Shards:
    """Queries in several shards, with the methods that `Shard` has for its own.

    Args:
        model: the `ltr.LambdaMART` to be trained.
        ask: how to reach them.
        looks: as `Shard.looks`, where some are known; more are added.

    Attributes:
        biases: as `Shard.biases`.
        graded: as `Shard.graded`, of all shards.

    Raises:
        ValueError: for shards of different features, a query that is in two of them, or more documents than 32 bits can count.
    """

    def __init__(self, model: Boosted, ask: Ask, looks: dict[Unbiased, Floats] | None = None) -> None:
        names, documents, keys, sizes, graded = zip(*ask("about"), strict=True)
        self.model, self.ask, self.looks = model, ask, {} if looks is None else looks
        self.biases: list[Floats] = []
        self.names, (self.n_documents, n_labelled) = names[0], map(sum, zip(*documents, strict=True))
        self.n_learned = n_labelled or self.n_documents
        counts, values = zip(*graded, strict=True)
        known = sorted(set(chain(*values)))
        self.graded = sum(counts), known[:2] + known[2:][-1:]
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
        categorical = which(self.model.categorical, self.names)
        bins = binning.find_bins_by(self.ask, len(self.names), bins_of(self.model, self.names), categorical)
        self.biases = self.ask("begin", self.model, trees, bins, self.sizes)[0]

    def step(self, iteration: int, options: TreeOptions, allowed: Bools | None, every_query: bool = False) -> Trees | str:
        """`Shard.step`, by all shards together."""
        tree: Trees | str
        tree, learned = self.ask("step", iteration, options, allowed, every_query)[0]
        if learned:
            learned_at(self.biases, iteration)
            self.biases += learned
        return tree

    @property
    def learned(self) -> Floats | None:
        """As `Shard.learned`."""
        return np.array(self.biases) if self.biases else None

    def learning(self, model: Boosted) -> "Shards":
        """`Shard.learning`."""
        return Shards(model, self.ask, self.looks)

    def mean(self, measure: str | PlainFunction) -> float:
        """`Shard.mean` over the queries of all shards in canonical order, so that it is the same to the last bit."""
        assert isinstance(measure, str)
        values = np.concatenate(self.ask("values", measure))[self.order]
        if np.isnan(values).all():
            raise UndefinedMeasureError(f"{Measure.of(measure).key} is undefined on every query of all parts")
        return float(np.nanmean(values))


@dataclass(frozen=True)
class Whole:
    """What a shard knows of all of them.

    Attributes:
        machines: those of all shards.
        n_documents: on all machines.
        has_missing: ``bool [features]``, on any.
        sums: ``int64 [slots, columns, bins]``, memory for the features that this machine searches.
    """

    machines: Machines
    n_documents: int
    has_missing: Bools
    sums: Ints

    @classmethod
    def of(cls, data: BinnedDataset | SparseDataset, machines: Machines) -> "Whole":
        """What the shards tell each other; `data` are this one's."""
        documents, *missing = machines.summed(np.array([len(data.rows), *data.has_missing], np.int64))
        columns = -(-len(data.has_missing) // machines.n)
        return cls(machines, int(documents), np.array(missing) > 0, np.empty((len(data.histograms), columns, N_BINS), np.int64))


@dataclass(frozen=True)
class SummedGradients:
    """The `GradientSource` of all shards, on the machine of one: every machine is asked the same, and all answer together."""

    own: Gradients
    whole: Whole

    @property
    def bins(self) -> Bins:
        """Edges of all features."""
        return self.own.bins

    @property
    def has_missing(self) -> Bools:
        """``bool [features]``."""
        return self.whole.has_missing

    @property
    def n_documents(self) -> int:
        """Of all shards."""
        return self.whole.n_documents

    def largest(self) -> tuple[float, float]:
        """The maxima of `Gradients.largest`."""
        gradient, hessian = self.whole.machines.largest(np.array(self.own.largest()))
        return float(gradient), float(hessian)

    def sizes(self, coarse: tuple[float, float]) -> tuple[int, int]:
        """The sums of `Gradients.sizes`."""
        gradient, hessian = self.whole.machines.summed(np.array(self.own.sizes(coarse), np.int64))
        return int(gradient), int(hessian)

    def root(self, scales: tuple[float, float], newton: bool) -> int:
        """`Gradients.root`."""
        return self.own.root(scales, newton)

    def grow(self, n_rows: int, n_leaves: int, space: SplitSearch) -> Growth:
        """`Rounds.grow`."""
        return Rounds(self.own, self.whole.machines, self.whole.sums, space).grow(n_rows, n_leaves)

    def totals(self, scales: tuple[float, float], order: Ints, nodes: Nodes) -> Ints:
        """The sum of `Gradients.totals`."""
        own = self.own.totals(scales, order, nodes)
        return self.whole.machines.summed(own.ravel()).reshape(own.shape)
