"""LambdaMART: boosted regression trees on gradients (Svore 2011 section 3; Burges 2010 section 7).

At each iteration the objective gives gradient and hessian of every document at the current scores, one tree is grown along the
gradient, and the scores move by its leaves. Trees know nothing of measures; a measure is evaluated only to decide when to stop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, cast

import numpy as np

from ltr.data.plain_function import AnyFunction, PlainFunction
from ltr.data.queries import Queries, canonical
from ltr.data.sparse import is_sparse
from ltr.kernels.kernel import Bools, Floats
from ltr.kernels.machines import ALONE, Machines
from ltr.metrics.measure import Measure
from ltr.objectives.debiased import debiased
from ltr.objectives.lambda_objective import Objective
from ltr.objectives.plain_objective import PlainObjective
from ltr.objectives.preferences import PreferenceObjective, Preferences
from ltr.objectives.seam import ObjectiveFunction
from ltr.objectives.shown import ONLY_FEATURES, looks, shown_once
from ltr.objectives.terms import AUTO, WITHOUT_HESSIAN, Term, in_pairs, saturations, settled, terms_of, weights_at
from ltr.objectives.two_class import TwoClassObjective
from ltr.objectives.unbiased import Unbiased, by_rank, in_words
from ltr.rankers.base import Arrays, Ranker, Tick, check_data, learned
from ltr.rankers.chosen_way import Auto, chosen_way
from ltr.rankers.fair_pages import FairPages, largest
from ltr.rankers.features import Features, checked_features
from ltr.rankers.parameters import FACTOR, PART, PENALTY, SEED, SHARE, Span, whole
from ltr.rankers.training import Callback, Progress, checked_callbacks
from ltr.rankers.verdict import NAIVE
from ltr.trees.attribution import importance
from ltr.trees.binned import Binned, which
from ltr.trees.binning import counted_categories, naming, require_valid_finite
from ltr.trees.by_name import check_by_name, groups_of, read_by, require_features, require_same_bins
from ltr.trees.ensemble import Trees, join
from ltr.trees.grower import TreeOptions, compile_beside, leaf_l2, leaves_again
from ltr.trees.regression_em import TREES, LooksObjective, found
from ltr.trees.shards import Ask, Shard, ShardLost, Shards, most_leaves, weighted
from ltr.trees.tree_ranker import TreeRanker
from ltr.trees.watch import Watch, is_function, read_stopping, untold
from ltr.trees.ways import WAYS, asking, check_biases, check_way

BIASES = "unbiased/biases"
"""Of a saved model: `LambdaMART.biases`."""
MIN_DOCS_IN_LEAF = 50
"""Where nothing else is asked for and there are documents enough."""
NEARNESS = "logistic_near"
"""The pair cost of many documents."""
NEAR_FROM = 50_000
"""Training documents with graded labels, of which more have pairs count by how near their scores are, where nothing else is asked for
(`docs/results.md`)."""


@dataclass(frozen=True)
class LambdaMART(TreeRanker):
    """Gradient boosted trees trained with LambdaRank gradients (λ's). Defaults were chosen on validation queries of seven data sets (`docs/results.md`).

    Args:
        n_trees: maximum number of trees.
        n_leaves: maximum number of leaves of a tree, at least 2.
        learning_rate: factor by which every leaf value is multiplied.
        min_docs_in_leaf: minimum number of documents in a leaf, exact; None is 50, or a fortieth of the training documents if that is less.
        objective: terms (default: NDCG, all pairs), the name of a measure for a single term, or a function of (scores, queries) that returns
            force and curvature (`ltr.objectives.plain_objective`). The pair cost ``auto`` means ``logistic_near`` if the first term's labels
            have three values or more on more than 50,000 training documents, leaves are ``newton`` and the construction is the default one;
            otherwise, as for clicks, ``logistic``. A fitted model names the cost that it was trained with.
        gain: ``newton`` or ``least_squares`` (the papers' rule).
        leaf: ``newton`` (Σ gradient/Σ hessian) or ``gradient`` (Σ gradient/count).
        largest_leaf: bound on the absolute leaf value before the learning rate; for ``newton`` leaves on σ·|leaf|, so that with the cost ``logistic`` no ranking
            depends on σ.
        l2: regularisation: added to Σ hessian/σ² of every leaf, or to its count if leaves are not ``newton``, in its gain and in its value.
        max_bins: maximum number of bins of a feature, 2–255.
        max_bins_by_feature: the same for single features, by name (LightGBM's ``max_bin_by_feature``); fewer bins make coarser splits.
        loss: ``ranking``: the objective's terms; ``two_class`` and ``balanced``: each document on its own is relevant or not, by the
            first term's measure (`ltr.objectives.two_class`).
        sigma, normalise: see `Objective`.
        unbiased: how position bias is removed from clicks: an `ltr.Unbiased`, or the name of its kind (``ipw``, ``pairwise``, ``additive``, or
            ``auto``, which chooses on validation queries); None uses the labels as they are.
        query_share: share of the training queries that each tree is grown on, sampled anew for each.
        feature_share: share of the features that each tree may split on, sampled anew for each. If a sample of queries and features has no
            admissible split, the tree is grown on all of them.
        monotone: by feature name: 1 if the score may only rise with the feature, −1 if it may only fall.
        categorical: names of features whose values are categories, whole numbers from 0 on. As in LightGBM, a split
            divides them into two sets, in the order of gradient/(hessian + cat_smooth). The 254 most frequent categories are distinguished; the
            others, and categories not seen in training, count as missing and go right.
        cat_smooth, cat_l2: as in LightGBM: added to Σ hessian/σ² of a category when categories are ordered, and of a leaf in the gain of a
            categorical split.
        interactions: groups of features, by name: a path from the root to a leaf splits on features of one group only. A feature in no
            group is a group by itself. By default, all features may interact.
        base: name of a feature that holds the scores of another model: training starts from them, and prediction adds them.
        seed: random seed for sampling queries and features.
        conventions: label rules.
        stop_on: measure on validation queries whose best iteration is kept; None keeps all trees. Also a function of (scores, queries) whose
            value is to be maximised, or several of either. As in LightGBM, training stops as soon as one of them has not improved for `patience`
            iterations on one set of validation queries, and its best iteration is kept; if none stops training, that of the first. For clicks
            with `unbiased`, see `ltr.rankers.fair_pages`.
        patience: number of iterations without improvement after which training stops; 0: never stop early.
        biases: position bias as estimated before each tree and after the last (`ltr.objectives.unbiased`), ``float64 [trees + 1, sides,
            ranks]``.
        history: values of `stop_on` on each set of validation queries, ``{"valid": {"ndcg@10": float64 [iterations]}}``, at the iterations of
            `curve`; not saved.
    """

    kind: ClassVar[str] = "lambdamart"
    stepwise: ClassVar[bool] = True
    sharded: ClassVar[bool] = True
    query_weights: ClassVar[bool] = True
    document_weights: ClassVar[bool] = True
    sparse_features: ClassVar[bool] = True
    iterations_from: ClassVar[str | None] = "n_trees"
    n_trees: int = 500
    n_leaves: int = 31
    learning_rate: float = 0.05
    min_docs_in_leaf: int | None = None
    objective: Sequence[Term] | PlainFunction | AnyFunction = (Term(),)
    gain: Literal["newton", "least_squares"] = "newton"
    leaf: Literal["newton", "gradient"] = "newton"
    largest_leaf: float = 10.0
    l2: float = 0.0
    max_bins: int = 255
    max_bins_by_feature: Mapping[str, int] = field(default_factory=dict)
    loss: Literal["ranking", "two_class", "balanced"] = "ranking"
    sigma: float = 1.0
    normalise: Literal["none", "query", "term"] = "none"
    unbiased: Unbiased | str | None = None
    query_share: float = 0.8
    feature_share: float = 0.5
    monotone: Mapping[str, int] = field(default_factory=dict)
    categorical: Sequence[str] = ()
    cat_smooth: float = 10.0
    cat_l2: float = 10.0
    interactions: Sequence[Sequence[str]] = ()
    base: str | None = None
    seed: int = 1
    stop_on: str | PlainFunction | AnyFunction | Sequence[str | PlainFunction | AnyFunction] | None = "ndcg_10"
    patience: int = 100
    biases: Floats | None = learned(None)
    history: Mapping[str, Mapping[str, Floats]] | None = learned(None)
    spans: ClassVar[Mapping[str, Span]] = {
        "n_trees": whole(1), "n_leaves": whole(2, 131_072), "learning_rate": FACTOR, "min_docs_in_leaf": replace(whole(1, 1_000_000_000), or_none=True),
        "largest_leaf": FACTOR, "l2": PENALTY, "cat_smooth": PENALTY, "cat_l2": PENALTY, "max_bins": whole(2, 255), "sigma": FACTOR, "query_share": SHARE, "feature_share": SHARE, "seed": SEED,
        "patience": whole(0, 1_000_000_000),
    }  # fmt: skip

    elsewhere: ClassVar[Mapping[str, str]] = {
        **Ranker.elsewhere,
        **dict.fromkeys(("n_estimators", "num_iterations", "num_boost_round", "num_trees"), "n_trees"),
        **dict.fromkeys(("num_leaves", "max_leaves"), "n_leaves"), **dict.fromkeys(("eta", "shrinkage", "shrinkage_rate"), "learning_rate"),
        **dict.fromkeys(("min_child_samples", "min_data_in_leaf"), "min_docs_in_leaf"), **dict.fromkeys(("reg_lambda", "lambda_l2"), "l2"),
        **dict.fromkeys(("colsample_bytree", "feature_fraction"), "feature_share"), "max_bin": "max_bins", "max_bin_by_feature": "max_bins_by_feature", "max_delta_step": "largest_leaf",
        **dict.fromkeys(("subsample", "bagging_fraction", "bagging_by_query"), "query_share"), "sigmoid": "sigma", "random_state": "seed",
        "monotone_constraints": "monotone", "categorical_feature": "categorical", "cat_features": "categorical", "interaction_constraints": "interactions", "lambdarank_norm": "normalise",
        "lambdarank_normalization": "normalise", "lambdarank_unbiased": "unbiased", "lambda": "l2", "early_stopping": "patience",
        **dict.fromkeys(("gamma", "min_split_gain", "min_split_loss", "min_child_weight", "max_depth", "alpha", "reg_alpha"), ""),
        **dict.fromkeys(("early_stopping_rounds", "early_stopping_round"), "patience"), **dict.fromkeys(("eval_metric", "metric"), "stop_on"),
        **dict.fromkeys(("init_score", "base_margin"), "base"), "eval_at": "stop_on", **dict.fromkeys(("label_gain", "ndcg_exp_gain"), "conventions"),
        **dict.fromkeys(("lambdarank_truncation_level", "lambdarank_pair_method", "lambdarank_num_pair_per_sample"), "objective"),
        "lambdarank_score_normalization": "normalise", **dict.fromkeys(("lambdarank_position_bias_regularization", "lambdarank_bias_norm"), "unbiased"),
        **dict.fromkeys(("enable_categorical", "feature_types"), "categorical"), **dict.fromkeys(("boosting", "boosting_type", "grow_policy", "tree_method"), ""),
        **dict.fromkeys(("colsample_bylevel", "colsample_bynode", "max_cat_threshold", "min_data_per_group", "max_cat_to_onehot", "deterministic", "force_row_wise"), ""),
    }  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.objective
        own = PlainFunction.of(given) if is_function(given) else given
        terms = own if isinstance(own, PlainFunction) else terms_of(cast(Sequence[Term], own), self.n_trees)
        object.__setattr__(self, "objective", terms)
        if isinstance(own, PlainFunction) and self.loss != "ranking":
            raise ValueError(f"LambdaMART: loss={self.loss!r} is an objective of its own, and so is {own.name}; one of them")
        object.__setattr__(self, "stop_on", read_stopping(self.stop_on))
        check_by_name(self)
        for name in ("monotone", "max_bins_by_feature"):  # the caller may go on with their own
            object.__setattr__(self, name, dict(getattr(self, name)))
        object.__setattr__(self, "categorical", tuple(self.categorical))
        object.__setattr__(self, "interactions", tuple(map(tuple, self.interactions)))
        if self.unbiased is not None:
            way = Unbiased.of(self.unbiased)
            object.__setattr__(self, "unbiased", way)
            check_way(way, self.terms, self.normalise, self.loss)
        flat = [name for term in self.terms for name in (term.cost, term.construction) if name in WITHOUT_HESSIAN]
        if flat and "newton" in (self.gain, self.leaf):
            raise ValueError(f"LambdaMART: {flat[0]!r} has no hessian; set gain: least_squares and leaf: gradient")
        if any(self.monotone.values()) and (self.gain == "newton") != (self.leaf == "newton"):
            raise ValueError(
                "LambdaMART: monotone features need leaves of the gain's kind: both newton, or least_squares and gradient"
            )

    @property
    def features_read(self) -> tuple[str, ...]:
        """The base, and the monotone and categorical features and those with bins of their own."""
        return read_by(self)

    def check(self, queries: Queries) -> None:
        """Raises ValueError for categories that are no whole numbers, for fewer documents than two leaves need, for clicks without a rank, and for
        propensities that do not reach as deep as documents were shown."""
        super().check(queries)
        if not is_sparse(queries.features):
            with naming(queries.names):
                for feature in np.flatnonzero(which(self.categorical, queries.names)).tolist():
                    counted_categories(queries.features[:, feature], feature)
        learned = self.learned_documents(queries)
        self.least_docs(queries.n_documents if learned is None or not learned.any() else int(learned.sum()))
        if self._way:
            self._way.check_pages(queries, self.terms[0])

    def learned_documents(self, queries: Queries) -> Bools | None:
        """Documents that trees are grown on, ``bool [documents]``, None for all: those that have a label. The others, which nobody judged, only
        have scores; two classes learn them as 0, unless `unlabelled` leaves them out. Where none at all has one, trees are grown on all."""
        as_zero = self.loss != "ranking" and self.conventions.unlabelled == "zero"
        if as_zero or isinstance(self.objective, PlainFunction):
            return None
        found = in_pairs(self.terms, queries)
        return None if found.all() else found

    def least_docs(self, n_documents: int) -> int:
        """Documents in a leaf at least, of so many to learn from.

        Raises:
            ValueError: where two leaves need more.
        """
        least = min(MIN_DOCS_IN_LEAF, max(n_documents // 40, 1)) if self.min_docs_in_leaf is None else self.min_docs_in_leaf
        if n_documents < 2 * least:
            raise ValueError(
                f"{n_documents} document{'' if n_documents == 1 else 's'} cannot make two leaves of min_docs_in_leaf={least}"
            )
        return least

    def fit(
        self,
        queries: Queries | Binned,
        valid: Queries | Sequence[Queries] | None = None,
        tick: Tick | None = None,
        preferences: Preferences | None = None,
        start: LambdaMART | None = None,
        callbacks: Callback | Sequence[Callback] = (),
    ) -> LambdaMART:
        """A fitted copy of this model.

        Args:
            queries: training queries; `ltr.Binned` ones save time if several models are trained on them.
            valid: validation queries that choose the best iteration: one set, or several, which are called ``valid_0``, ``valid_1``, ….
            tick: called after every tree; an exception that it raises ends the training.
            preferences: pairs of rows of `queries` to learn from instead of the objective's measures (RankNet on trees, B2).
            start: a fitted model to continue from. With the same data and parameters, except for more trees, the result is byte for byte that of
                uninterrupted training; otherwise the model is adapted to the new ones (B section 7). `n_trees` includes its trees.
            callbacks: called after every tree with the `Progress`; training ends if one returns a true value.

        Raises:
            ValueError: for fewer documents than two leaves need, infinite features, an unknown feature, a start on other
                features, an objective that does not fit the data, or bins of another number than `max_bins`.
        """
        if start is not None and not isinstance(start, LambdaMART):
            raise ValueError(f"LambdaMART: start must be a fitted LambdaMART, not of type {type(start).__name__}")
        binned, given = (queries, queries.queries) if isinstance(queries, Binned) else (None, queries)
        if binned is not None:
            require_same_bins(self, binned)
        if self.categorical and is_sparse(given.features):
            raise ValueError(
                "LambdaMART: categorical features are not yet read from sparse ones; give dense features, or leave them out"
            )
        several = valid if isinstance(valid, list | tuple) else () if valid is None else (valid,)
        for one in several or (None,):
            check_data(self, given, one)
        if not is_sparse(given.features):
            compile_beside()
        if self.terms == () and preferences is not None:
            raise ValueError("LambdaMART: preferences are an objective of their own, and so is a function; one of them")
        if self.unbiased is not None and preferences is not None:
            raise ValueError("LambdaMART: preferences have no positions; leave unbiased out")
        if self._way is None or self._way.kind != "auto":
            return self._trained(Shard(self, given, preferences, binned), tuple(several), tick, start, checked_callbacks(callbacks))
        if start is not None:
            return replace(self, unbiased=start.unbiased).fit(queries, valid, tick, start=start, callbacks=callbacks)
        binned = (
            binned
            if binned or is_sparse(given.features)
            else Binned(given, self.max_bins, self.max_bins_by_feature, self.categorical)
        )
        return self._chosen_way(Shard(self, given, None, binned), tuple(several), tick, None, {}, checked_callbacks(callbacks))

    def fit_watched(
        self,
        queries: Queries,
        valid: Sequence[Queries] = (),
        tick: Tick | None = None,
        callbacks: Sequence[Callback] = (),
        start: Ranker | None = None,
    ) -> LambdaMART:
        """`fit`, with all of it.

        Raises:
            ValueError: as `fit`; for a start that is no LambdaMART, or has as many trees as there shall be.
        """
        if start is not None and not isinstance(start, LambdaMART):
            raise ValueError(f"LambdaMART: start must be a fitted LambdaMART, not of type {type(start).__name__}")
        if start is not None and start.ensemble.n_trees >= self.n_trees:
            raise ValueError(
                f"LambdaMART: n_trees={self.n_trees} counts the {start.ensemble.n_trees} trees it goes on from; give more than these"
            )
        return self.fit(queries, tuple(valid), tick, start=start, callbacks=callbacks)

    @property
    def goes_on(self) -> bool:
        """Not where ``unbiased: auto`` may choose otherwise of more trees."""
        return self._way is None or self._way.kind != "auto"

    def go_on(
        self,
        begun: LambdaMART,
        queries: Queries | Binned,
        valid: Queries | None = None,
        tick: Tick | None = None,
        callbacks: Callback | Sequence[Callback] = (),
    ) -> LambdaMART:
        """`fit` from the trees of `begun`; those after its best iteration are grown again where it has no `rest`."""
        if not self.goes_on:
            return self.fit(queries, valid, tick, callbacks=callbacks)
        if begun.curve is None and valid is not None and len(self.stopping) > 1:
            begun = replace(begun, curve=untold(begun.ensemble.n_trees))
        if begun.rest is not None:
            begun = replace(begun, trees=join([begun.ensemble, begun.rest]))
        return self.fit(queries, valid, tick, start=begun, callbacks=callbacks)

    def fit_shards(
        self,
        ask: Ask,
        valid: Queries | None = None,
        tick: Tick | None = None,
        start: LambdaMART | None = None,
        finished: dict[str, LambdaMART] | None = None,
        looks: dict[Unbiased, Floats] | None = None,
    ) -> LambdaMART:
        """`fit` on queries in several parts, which are reached through `ask` (`ltr.trees.shards`): the same model, byte for byte.

        Args:
            start: of ``unbiased: auto`` a model of one of its ways, which that way goes on from.
            finished: of ``unbiased: auto`` the ways that were trained before a part was lost, by name; what is trained here is added.
            looks: propensities that were estimated on the same parts before, by how; what is estimated here is added.

        Raises:
            ValueError: as `fit`, for parts that do not belong together, and for functions, which stay where they are.
            ShardLost: when `ask` raises it; it carries the model of the trees so far.
        """
        for own in self.functions:
            raise ValueError(f"LambdaMART: {own.name} is a function, which is not sent to several parts; train it in one")
        data, judging = Shards(self, ask, looks), () if valid is None else (valid,)
        if self._way and self._way.kind == "auto":
            return self._chosen_way(data, judging, tick, start, {} if finished is None else finished)
        return self._trained(data, judging, tick, start)

    def _trained(
        self,
        data: Shard | Shards,
        valid: tuple[Queries, ...],
        tick: Tick | None,
        start: LambdaMART | None,
        callbacks: tuple[Callback, ...] = (),
    ) -> LambdaMART:
        own = self if isinstance(data, Shard) and data.preferences is not None else self._settled(data, start)
        data.model, way = replace(own, biases=own._biases_before(start, data)), own._way
        if own is not self and own.loss == "ranking" and start is None and own.terms and not any(weights_at(own.terms, 0)):
            raise ValueError("LambdaMART: objective: all term weights are 0 for the first tree; at least one must be positive")
        told: tuple[str, ...] = ()
        if own is not self and own.terms != settled(self.terms):
            of_data = own.terms == self._settled(data).terms
            why = f"for {data.graded[0]:,} documents with graded labels" if of_data else "as the trees that it goes on from"
            told = (f"pair cost {NEARNESS}, {why}",)
        if way is None:
            fitted = own._boosted(data, valid, tick, start, callbacks)
            return replace(fitted, remarks=(*fitted.remarks, *told))
        measures = [measure for measure in self.stopping if isinstance(measure, str)]
        fair, more = FairPages.watching(
            way, self.terms[0], measures, valid, lambda way: self._looks(way, data), largest(data.graded[1])
        )
        if way.kind != "ipw" and shown_once(asking(data, way, self.terms[0])):
            more = (*more, ONLY_FEATURES)
        fitted = own._boosted(data, valid, tick, start, callbacks, fair)
        return replace(fitted, remarks=(*fitted.remarks, *told, *more))

    def _settled(self, data: Shard | Shards, start: LambdaMART | None = None) -> LambdaMART:
        """The ranker with the pair costs that it learns by from these queries: that of the trees that it goes on from, where these say. Beside
        what the papers' leaves need, data alone decide, so that rankers on the same data learn by the same."""
        usual = self.loss == "ranking" and self.gain == self.leaf == "newton"
        usual &= all(term.construction == "ranknet_weighted" for term in self.terms)
        pairs = zip(self.terms, start.terms, strict=False) if start is not None else ()
        begun = {theirs.cost for own, theirs in pairs if own.cost == AUTO} & {"logistic", NEARNESS}
        if usual and len(begun) != 1:
            n_graded, values = data.graded
            begun = {NEARNESS} if n_graded > NEAR_FROM and len(values) > 2 else set()
        near = usual and NEARNESS in begun
        return replace(self, objective=settled(self.terms, NEARNESS if near else "logistic")) if self.terms else self

    def _chosen_way(
        self,
        data: Shard | Shards,
        valid: tuple[Queries, ...],
        tick: Tick | None,
        start: LambdaMART | None,
        finished: dict[str, LambdaMART],
        callbacks: tuple[Callback, ...] = (),
    ) -> LambdaMART:
        """The ranker in every way that ``unbiased: auto`` knows, and the one that the first validation queries choose."""
        assert self._way is not None
        measure = str(self.watched or Measure.of("ndcg_10"))
        auto = Auto(self._way, self.terms, self.normalise, self.conventions, measure, WAYS, largest(data.graded[1]))

        def fit(way: Unbiased | None) -> LambdaMART:
            name, own = way.kind if way else NAIVE, replace(self, unbiased=way)
            if name not in finished:
                begun = start if start is not None and start.unbiased == way else None
                finished[name] = own._trained(data.learning(own), valid, tick, begun, callbacks)
            return finished[name]

        asking(data, self._way, self.terms[0])("clicked")
        return chosen_way(auto, valid[0] if valid else None, lambda way: self._looks(way, data), fit)

    def _boosted(
        self,
        data: Shard | Shards,
        valid: tuple[Queries, ...],
        tick: Tick | None,
        start: LambdaMART | None,
        callbacks: tuple[Callback, ...] = (),
        fair: FairPages | None = None,
    ) -> LambdaMART:
        least_docs = self.least_docs(data.n_learned)
        begun = self._begun(start, data.names)
        with naming(data.names):
            for one in valid:
                require_valid_finite(one.features)
            data.begin(begun)
        options = replace(self._options(least_docs, data.names), n_leaves=most_leaves(self, data.n_learned))
        watch = Watch(self, data, tuple(map(canonical, valid)), begun, start.curve if start else None, fair)
        trees, judged, remarks = [begun], 1, tuple(saturations(self.terms, self.n_trees))

        def so_far() -> LambdaMART:
            ensemble, biases = join(trees), data.learned
            kept = ensemble.first(watch.kept.best) if watch.kept else ensemble
            of_ranks: tuple[str, ...] = ()
            if self._way and biases is not None:
                of_ranks = (in_words(self._way, biases[min(kept.n_trees, len(biases) - 1)]),)
            return replace(
                self,
                trees=kept,
                rest=ensemble.between(kept.n_trees, ensemble.n_trees),
                biases=biases,
                names=data.names,
                curve=watch.curve(),
                history=watch.history(),
                remarks=(*remarks, *of_ranks),
            )

        try:
            ended = watch.over(begun.n_trees)
            for iteration in () if ended else range(begun.n_trees, self.n_trees):
                drawn = self._drawn(len(data.names), iteration)
                tree = data.step(iteration, options, drawn)
                if isinstance(tree, str) and (drawn is not None or self.query_share < 1):
                    tree = data.step(iteration, options, None, True)
                if isinstance(tree, str):
                    remarks = (*remarks, f"stopped after {iteration} tree{'' if iteration == 1 else 's'}: {tree}")
                    break
                trees.append(tree)
                if tick is not None:
                    tick()
                stopped = watch.seen(iteration + 1, tree)
                progress = Progress(iteration + 1, self.n_trees, watch.last(), so_far)
                told = [callback(progress) for callback in callbacks]
                if stopped or any(told):
                    break
                judged = len(trees)
        except ShardLost as lost:
            lost.so_far = replace(
                self, trees=join(trees[:judged]), biases=data.learned, names=data.names, curve=watch.curve(), remarks=remarks
            )
            raise
        return so_far()

    def _options(self, least_docs: int, names: tuple[str, ...]) -> TreeOptions:
        newton = self.leaf == "newton"
        unit, of_gains = (self.sigma**2 if kind == "newton" else 1.0 for kind in (self.leaf, self.gain))
        return TreeOptions(
            self.n_leaves, least_docs, self.gain == "newton", newton, self.learning_rate,
            self.largest_leaf / self.sigma if newton else self.largest_leaf, self.l2 * unit,
            np.array([self.monotone.get(name, 0) for name in names], np.int8), groups_of(self, names), self.cat_smooth * unit, self.cat_l2 * unit,
            1.0 if self.gain == self.leaf or not unit else of_gains / unit,
        )  # fmt: skip

    def refit_leaves(self, queries: Queries, keep: float = 0.9) -> LambdaMART:
        """The same trees with leaf values from other queries (LightGBM's ``Booster.refit``): tree by tree, from the gradients at the scores
        of the trees before it, as `fit` would give them to a tree of these splits.

        Args:
            queries: with the same features; all of them are used, whatever `query_share` says.
            keep: the share of the old value in each new one (LightGBM's ``decay_rate``), from 0 to 1. A leaf that no judged document with
                a weight falls into keeps all of it.

        Raises:
            ValueError: before `fit`, for queries with other features or infinite ones, a share outside 0 to 1, or trees that are monotone in a
                feature.
        """
        check_data(self, queries, None)
        ensemble = self.ensemble
        if queries.names != self.names:
            raise ValueError("LambdaMART.refit_leaves: the queries have other features than the model")
        if keep not in PART:
            raise ValueError(f"LambdaMART.refit_leaves: keep={keep!r} is out of range; it is {PART}")
        if self.why_fixed:
            raise ValueError(f"LambdaMART.refit_leaves: {self.why_fixed}")
        self._require_no_infinite(queries.features)
        queries, options = canonical(queries), self._options(1, self.names)
        data = Shard(self, queries)
        learner = replace(self._settled(data), biases=self._biases_before(None, data))
        objective, scores = learner.objective_over(queries), self.offset(queries.features, queries.names)
        values = ensemble.value.copy()
        weighs = np.ones(queries.n_documents, np.bool_) if queries.document_weights is None else queries.document_weights > 0
        learned = self.learned_documents(queries)
        own_rows = slice(None) if learned is None or not learned.any() else np.flatnonzero(learned)
        for k in range(ensemble.n_trees):
            tree = ensemble.between(k, k + 1)
            leaf, l2 = tree.leaves(queries.features)[:, 0], leaf_l2(options, tree.n_codes, tree.left, tree.right)
            own = values[ensemble.leaf_starts[k] : ensemble.leaf_starts[k + 1]]
            gradient, hessian = weighted(objective(scores, k), queries)
            found = leaves_again((gradient[own_rows], hessian[own_rows]), leaf[own_rows], l2, options)
            filled = np.bincount(leaf[own_rows], weighs[own_rows], len(own)) > 0
            own[:] = np.where(filled, keep * own + (1 - keep) * found, own)
            scores += own[leaf]
        remarks = (f"leaves refitted to {queries.n_queries} queries, keeping {keep:g} of each",)
        return replace(self, trees=replace(ensemble, value=values), rest=None, curve=None, history=None, remarks=remarks)

    def stages(self, features: Features, every: int) -> Iterator[tuple[int, Floats]]:
        """Numbers of trees, the multiples of `every` and all, and the scores ``float64 [documents]`` of that many."""
        array = checked_features(features, self.names)
        trees = self.ensemble
        scores, before = self.offset(array, self.names), 0
        for n_trees in sorted({*range(every, trees.n_trees, every), trees.n_trees} - {0}):
            scores = scores + trees.between(before, n_trees).scores(array)
            before = n_trees
            yield n_trees, scores

    def importance(self, by: Literal["gain", "splits"] = "gain") -> Floats:
        """How much each feature was split by, ``float64 [features]``: Σ gain, or the number of splits."""
        return importance(self.ensemble, len(self.names), by)

    def explain(self, features: Features) -> Floats:
        """`attributions`: exact Shapley values ``float64 [documents, features + 1]``."""
        return self.attributions(features)

    def objective_over(
        self,
        queries: Queries,
        preferences: Preferences | None = None,
        sizes: tuple[int, int] | None = None,
        machines: Machines = ALONE,
    ) -> ObjectiveFunction:
        """The objective over these queries, or over `preferences` where there are any; `sizes`: see `TwoClassObjective`; `machines`: which have
        the other queries."""
        if preferences is not None:
            return PreferenceObjective(queries, preferences, self.sigma)
        if isinstance(self.objective, PlainFunction):
            return PlainObjective(queries, self.objective)
        if self.loss == "ranking":
            return self._ranking_objective(queries, machines)
        measure = Measure.of(self.terms[0].measure)
        return TwoClassObjective(queries, measure, self.conventions, self.sigma, self.loss == "balanced", sizes)

    def _ranking_objective(self, queries: Queries, machines: Machines) -> ObjectiveFunction:
        how = self._way
        if how is not None and how.kind == "ipw" and how.estimate == "regression_em" and self.biases is None:
            return LooksObjective(queries, self.terms[0], how, machines)
        objective = Objective(queries, self.terms, self.conventions, self.sigma, self.normalise)
        if how is None:
            return objective
        return debiased(objective, how, self.conventions, self.learning_rate, self.biases, machines)

    @property
    def _way(self) -> Unbiased | None:
        """`unbiased`, which has been read."""
        return cast(Unbiased | None, self.unbiased)

    def _biases_before(self, start: LambdaMART | None, data: Shard | Shards) -> Floats | None:
        """What is known of ranks before the first tree that is to be grown."""
        how, n_begun = self._way, min(start.ensemble.n_trees, self.n_trees) if start is not None else 0
        if how is not None and how.kind == "ipw":
            return np.repeat(self._looks(how, data)[None, None], n_begun + 1, axis=0)
        if how is None or start is None or start.biases is None or start._way is None or start._way.kind != how.kind:
            return None
        return start.biases[: n_begun + 1]

    def _looks(self, how: Unbiased, data: Shard | Shards) -> Floats:
        """Propensities of ranks, ``float64 [ranks]``; where `how` asks for it other trees find them."""
        if how not in data.looks:
            data.looks[how] = looks(self._by_trees(how, data), asking(data, how, self.terms[0]))
        return data.looks[how]

    def _by_trees(self, how: Unbiased, data: Shard | Shards) -> Unbiased:
        """`how`, with propensities where trees are to find them."""
        if how.estimate != "regression_em":
            return how
        seeker = LambdaMART(**TREES, objective=self.terms, unbiased=how)
        try:
            trees = seeker._boosted(data.learning(seeker), (), None, None)
        except ShardLost as lost:
            lost.so_far = None
            raise
        assert trees.biases is not None
        return found(how, trees.biases[-1, 0])

    def _begun(self, start: LambdaMART | None, names: tuple[str, ...]) -> Trees:
        """The trees to go on from."""
        require_features(self, names)
        if start is None:
            return join([])
        if start.trees is None or start.names != names or start.base != self.base:
            raise ValueError("LambdaMART: a start must be a fitted model on the same features and base")
        if any(sign and start.monotone.get(name, 0) != sign for name, sign in self.monotone.items()):
            raise ValueError("LambdaMART: monotone: the trees of the start were grown without it, and are kept as they are")
        if self.interactions and start.interactions != self.interactions:
            raise ValueError("LambdaMART: interactions: the trees of the start were grown with others, and are kept as they are")
        return start.trees.first(min(start.trees.n_trees, self.n_trees))

    def _learned_arrays(self) -> Arrays:
        """The trees, and what was learned of ranks up to the last of them, which scores do not depend on."""
        known = {} if self.biases is None else {BIASES: self.biases[: self.ensemble.n_trees + 1]}
        return {**super()._learned_arrays(), **known}

    @property
    def rest_arrays(self) -> Arrays:
        """Those of the trees, and what was learned of ranks up to the last of them."""
        arrays = super().rest_arrays
        return arrays if not arrays or self.biases is None else {**arrays, BIASES: self.biases}

    def with_rest(self, arrays: Arrays) -> LambdaMART:
        """The ranker with `rest_arrays` that were kept."""
        biases = arrays.get(BIASES, self.biases)
        check_biases(biases, self._way)
        return replace(super().with_rest({name: array for name, array in arrays.items() if name != BIASES}), biases=biases)

    def _with_arrays(self, arrays: Arrays) -> LambdaMART:
        biases = arrays.get(BIASES)
        check_biases(biases, self._way)
        trees = {name: array for name, array in arrays.items() if name != BIASES}
        return replace(super()._with_arrays(trees), biases=biases)

    @property
    def base_feature(self) -> str | None:
        """`base`."""
        return self.base

    def _drawn(self, n_features: int, iteration: int) -> Bools | None:
        """Features of one tree, None for all: keyed by seed and iteration, so that an interruption does not matter."""
        if self.feature_share == 1:
            return None
        n = max(round(self.feature_share * n_features), 1)
        rng = np.random.default_rng([self.seed, iteration])
        return np.isin(np.arange(n_features), rng.choice(n_features, n, replace=False))

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of `objective`; none of a function."""
        return () if isinstance(self.objective, PlainFunction) else tuple(cast(Sequence[Term], self.objective))

    @property
    def trained_for(self) -> tuple[Measure, ...]:
        """The measures of the terms."""
        return tuple(Measure.of(term.measure) for term in self.terms)

    @property
    def stopping(self) -> tuple[str | PlainFunction, ...]:
        """What `stop_on` names, one by one."""
        several = self.stop_on if isinstance(self.stop_on, tuple) else () if self.stop_on is None else (self.stop_on,)
        return cast(tuple[str | PlainFunction, ...], several)

    @property
    def functions(self) -> tuple[PlainFunction, ...]:
        """Functions of users that it learns from or stops by."""
        return tuple(own for own in (self.objective, *self.stopping) if isinstance(own, PlainFunction))

    @property
    def watched(self) -> Measure | None:
        """The measure that chooses the number of trees, the first of `stop_on`; None where that is a function."""
        first = self.stopping[0] if self.stopping else None
        return Measure.of(first) if isinstance(first, str) else None

    @property
    def why_fixed(self) -> str | None:
        """Leaves of trees that are monotone in a feature have to stay in their order."""
        return "leaves that move freely do not stay monotone in a feature" if any(self.monotone.values()) else None

    @property
    def position_bias(self) -> dict[str, Floats]:
        """As it was at the last tree that is kept."""
        if self._way is None or self.biases is None:
            return {}
        return by_rank(self._way, self.biases[min(self.ensemble.n_trees, len(self.biases) - 1)])

    @property
    def importances(self) -> dict[str, Floats]:
        """`importance` by gain and by splits."""
        return {"gain": self.importance("gain"), "splits": self.importance("splits")}
