"""LambdaRank nets: one layer (linear) or two (tanh units), moved along λ's (Burges 2010 section 4; Donmez 2009).

A net's scores of one query's documents get gradients from the objective; the weights move by rate · Σ gradient · ∂score/∂weight, after
every query or once an epoch. The training recipe is Donmez 2009 section 7: the weights returned are those of the best epoch on
validation over all restarts; a restart with new random weights where validation was flat for some epochs; where training accuracy
falls, the rate shrinks with a probability.

Features are standardised by means and deviations of the training data, which are part of the model; a missing value becomes the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self, cast

import numpy as np
from numba import types

from ltr.data.arrays import plain_number
from ltr.data.queries import Queries, canonical, canonical_order, reordered
from ltr.kernels.kernel import F4_2D, F8, F8_1D, F8_2D, I8, I8_1D, Array, Floats, Floats32, Ints, ready
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import Measure
from ltr.nets.network import Weights, backward_all, epoch_by_query, forward_all, random_weights, surface_of
from ltr.objectives.debiased import Debiased, debiased
from ltr.objectives.effective_pairs import Ledger, ledger
from ltr.objectives.lambda_objective import Objective
from ltr.objectives.preferences import PreferenceObjective, Preferences
from ltr.objectives.seam import QueryObjective
from ltr.objectives.shown import ONLY_FEATURES, Shown, looks, shown_once
from ltr.objectives.terms import Term, saturations, terms_of
from ltr.objectives.unbiased import InverseObjective, Kind, Unbiased, by_rank, in_words
from ltr.rankers.base import Arrays, Ranker, Tick, check_data, learned
from ltr.rankers.chosen_way import Auto, chosen_way
from ltr.rankers.fair_pages import FairPages, largest
from ltr.rankers.features import Features, blocks_of, by_rows, checked_features
from ltr.rankers.parameters import FACTOR, SEED, SHARE, Span, whole
from ltr.rankers.surface import Surface
from ltr.rankers.training import Callback, Curve, Progress, UndefinedMeasureError, checked_callbacks, mean_measure
from ltr.rankers.training import judged as judged_documents

AT_REST = 0.001
"""By how much the training measure may rise on after the epoch that was kept."""
WAYS: tuple[Kind, ...] = ("ipw", "pairwise", "additive", "dla")
"""To take position bias out of clicks."""
STEP = 0.1
"""Of additive biases of ranks, once an epoch."""


@dataclass(frozen=True)
class State:
    """Training between two epochs: all that the next one depends on.

    Attributes:
        weights: to go on with; `best`: of the best epoch so far.
        rate: learning rate; `epoch`: epochs done; `restarts`: of them with new random weights.
        before: training measure of the last epoch; `best_value`, `best_epoch`, `flat_value`, `flat_since`: of the recipe.
        rows: ``float64 [epochs, 3]``: epoch, training and validation measure.
        biases: what was learned of ranks before each epoch so far and after the last (`ltr.objectives.unbiased`), ``float64 [epochs + 1, sides,
            ranks]``; of no ranks where position bias is not taken out.
    """

    weights: Weights
    best: Weights
    rate: float
    epoch: int = 0
    restarts: int = 0
    before: float = -np.inf
    best_value: float = -np.inf
    best_epoch: int = 0
    flat_value: float = -np.inf
    flat_since: int = 0
    rows: Floats = field(default_factory=lambda: np.empty((0, 3)))
    biases: Floats = field(default_factory=lambda: np.empty((1, 1, 0)))

    @property
    def arrays(self) -> dict[str, Array]:
        """The whole state by name; weights of the best epoch are called ``best_…``."""
        both = {f"best_{name}": array for name, array in self.best.arrays.items()} | self.weights.arrays
        learned = {"biases": self.biases} if self.biases.size else {}
        return {**both, **learned, "rows": self.rows, **{name: np.array(getattr(self, name)) for name in _NUMBERS}}

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], hidden: int) -> Self:
        """The state of these `arrays`, for a net with this number of hidden units.

        Raises:
            ValueError: for weights of other shapes, or biases that are not finite.
        """
        best = {name.removeprefix("best_"): array for name, array in arrays.items() if name.startswith("best_")}
        numbers = {name: arrays[name].item() for name in _NUMBERS}
        state = cls(Weights.restored(arrays, hidden), Weights.restored(best, hidden), rows=arrays["rows"], **numbers)
        if (biases := arrays.get("biases")) is None:
            return state
        if biases.dtype != np.float64 or biases.ndim != 3 or not biases.size or not np.isfinite(biases).all():
            raise ValueError(f"biases of ranks that are not finite numbers [epochs, sides, ranks], but of shape {biases.shape}")
        return replace(state, biases=biases)

    def curve(self, validated: bool) -> Curve:
        """The measure epoch by epoch; of validation queries only where there were any."""
        iteration, train, valid = self.rows.T.copy()
        return Curve(iteration.astype(np.int64), train, valid if validated else np.full_like(train, np.nan))


_NUMBERS = ("rate", "epoch", "restarts", "before", "best_value", "best_epoch", "flat_value", "flat_since")


@dataclass(frozen=True)
class _Inputs:
    """Queries in canonical order with their features as a net sees them; without validation queries, training ones stand in their place.

    Attributes:
        features, valid_features: ``float32 [documents, features]``.
        scaling: by which they are standardised (`_scaling`).
    """

    queries: Queries
    valid: Queries
    features: Floats32
    valid_features: Floats32
    scaling: Floats

    @classmethod
    def of(cls, queries: Queries, valid: Queries | None, known: Queries) -> Self:
        """Of canonical training queries, standardised by the documents of `known`.

        Raises:
            ValueError: for a feature that is infinite, or would be once it is standardised.
        """
        valid = canonical(valid) if valid is not None else queries
        _require_finite(queries.features, queries.names)
        scaling = _scaling(known.features)
        features, valid_features = _standardised(queries.features, scaling), _standardised(valid.features, scaling)
        far = np.flatnonzero(np.isinf(valid_features).any(axis=0))
        if len(far):
            raise ValueError(
                f"LambdaRank: feature {queries.names[far[0]]!r} of the validation queries is infinite, or too far from those of the training queries"
            )
        return cls(queries, valid, features, valid_features, scaling)

    @property
    def validates(self) -> bool:
        """Whether there are validation queries."""
        return self.valid is not self.queries


@dataclass(frozen=True)
class LambdaRank(Ranker):
    """LambdaRank: a linear or two-layer neural net trained with λ gradients.

    Args:
        hidden: 0 for the linear net, otherwise the number of tanh units.
        epochs: passes over the training queries (D section 7: 700); 0 keeps the random initial weights.
        learning_rate: initial learning rate.
        update: weights are updated after every ``query``, or by ``full`` batch (the sum over all queries).
        flat_epochs: training restarts with new random weights after this many epochs without a better validation value; 0: never.
        shrink, shrink_probability: whenever the training value of `stop_on` falls, the learning rate is multiplied by `shrink` with this
            probability (D: 0.8, 30 %).
        objective, sigma, normalise, conventions: see `Objective`; an objective may be a measure's name.
        unbiased: how position bias is removed from clicks: an `ltr.Unbiased`, or the name of its kind (``ipw``, ``pairwise``, ``additive``,
            ``dla``, or ``auto``, which chooses on validation queries). Position bias is re-estimated after every epoch. None uses the labels
            as they are.
        stop_on: the measure that decides which epoch is best, when to restart (`flat_epochs`) and when to lower the rate (`shrink`).
        keep: the epoch that is best on ``valid`` (if there are validation queries), or on ``train``, where a local optimum is to be
            expected.
        count_pairs: the effective pairs are counted every so many epochs; 0: never.
        keep_epochs: epochs whose states are kept with the model, besides the last one's, for inspection and for resuming.
        seed: random seed for initial weights, the order of queries and shrinking.
    """

    kind: ClassVar[str] = "lambdarank"
    stepwise: ClassVar[bool] = True
    certified: ClassVar[bool] = True
    query_weights: ClassVar[bool] = True
    iterations_from: ClassVar[str | None] = "epochs"
    snapshots_from: ClassVar[str | None] = "keep_epochs"
    hidden: int = 0
    epochs: int = 100
    learning_rate: float = 0.001
    update: Literal["query", "full"] = "query"
    flat_epochs: int = 50
    shrink: float = 0.8
    shrink_probability: float = 0.3
    objective: Sequence[Term] = (Term(),)
    sigma: float = 1.0
    normalise: Literal["none", "query", "term"] = "none"
    unbiased: Unbiased | str | None = None
    stop_on: str = "ndcg_10"
    keep: Literal["valid", "train"] = "valid"
    keep_epochs: tuple[int, ...] = ()
    count_pairs: int = 0
    seed: int = 1
    spans: ClassVar[Mapping[str, Span]] = {
        "hidden": whole(0, 10_000), "epochs": whole(0), "learning_rate": FACTOR, "flat_epochs": whole(0, 1_000_000_000), "shrink": SHARE,
        "shrink_probability": Span(0, 1), "sigma": FACTOR, "count_pairs": whole(0, 1_000_000_000), "seed": SEED,
    }  # fmt: skip
    weights: Weights | None = learned(None)
    scaling: Floats | None = learned(None)
    states: Mapping[int, State] = field(default_factory=dict, repr=False, metadata={"learned": True})
    pairs: tuple[tuple[int, list[Ledger]], ...] = learned(())

    def __post_init__(self) -> None:
        several = self.keep_epochs if isinstance(self.keep_epochs, Iterable) else (self.keep_epochs,)
        object.__setattr__(self, "keep_epochs", tuple(map(plain_number, several)))
        super().__post_init__()
        object.__setattr__(self, "objective", terms_of(self.objective, self.epochs))
        if not all(epoch in whole(1) for epoch in self.keep_epochs):
            raise ValueError(f"LambdaRank: keep_epochs={self.keep_epochs!r} is out of range; each is {whole(1)}")
        Measure.maximised(self.stop_on)
        if self.unbiased is not None:
            how = Unbiased.of(self.unbiased)
            object.__setattr__(self, "unbiased", how)
            if how.estimate == "regression_em":
                raise ValueError("LambdaRank: estimate=regression_em grows trees (kind: lambdamart); give propensities, or use dla")
            how.check(self.terms, self.normalise)
            if how.kind == "dla" and self.count_pairs:
                raise ValueError(f"LambdaRank: count_pairs={self.count_pairs}, but dla does not learn from pairs; set it to 0")

    def check(self, queries: Queries) -> None:
        """Raises ValueError for clicks without a rank, or propensities that do not reach as deep as documents were shown."""
        super().check(queries)
        if self._way:
            self._way.check_pages(queries, self.terms[0])

    def fit(
        self,
        queries: Queries,
        valid: Queries | None = None,
        tick: Tick | None = None,
        start: State | Weights | None = None,
        preferences: Preferences | None = None,
        callbacks: Callback | Sequence[Callback] = (),
    ) -> Self:
        """A fitted copy of this model. Without validation queries, the training queries decide which epoch is best. An `unbiased` net
        keeps the last epoch then, and with ``keep: train``, because biased clicks cannot show which epoch is best.

        Args:
            queries, valid: the data.
            tick: called after every epoch; an exception that it raises ends the training.
            start: a state of an earlier training, which continues as if it had never stopped (same data, same parameters except `epochs`);
                or initial weights instead of random ones.
            preferences: pairs of rows of `queries` to learn from instead of the objective's measures (RankNet).
            callbacks: called after every epoch with the `Progress`; training ends if one returns a true value.

        Raises:
            ValueError: for an infinite feature, an objective that does not fit the data, or a state that does not fit the net.
        """
        check_data(self, queries, valid)
        callbacks = checked_callbacks(callbacks)
        if self.unbiased is not None and preferences is not None:
            raise ValueError("LambdaRank: preferences have no positions; leave unbiased out")
        if self._way and self._way.kind == "auto":
            if start is not None:
                raise ValueError("LambdaRank: unbiased: auto starts again; to go on, set the method that it kept")
            return self._chosen_way(self._way, queries, valid, tick, callbacks)
        order = canonical_order(queries)
        preferences, queries = preferences and preferences.reordered(queries, order), reordered(queries, order)
        known = queries if preferences is not None else judged_documents(queries, self.trained_for, self.conventions)
        data = _Inputs.of(queries, valid, known)
        state = self._start(queries.n_features, start)
        objective = self._objective(queries, preferences, state)
        ranks = objective if isinstance(objective, Debiased) else None
        fair, told = self._fair(queries, (data.valid,) if data.validates else ())
        validation = self._validation(data.valid, fair)
        by_last = ranks is not None and (not data.validates or self.keep == "train")
        states: dict[int, State] = {}
        pairs: list[tuple[int, list[Ledger]]] = []

        def so_far() -> LambdaRank:
            best = f"best epoch {state.best_epoch} of {self.epochs}, {state.restarts} restart{'' if state.restarts == 1 else 's'}"
            last = f"kept the last epoch ({state.epoch}): biased clicks cannot show which epoch is best"
            return replace(
                self,
                weights=state.best,
                scaling=data.scaling,
                names=queries.names,
                curve=state.curve(data.validates),
                remarks=(last if by_last else best, *self._remarks(queries, preferences, state), *told),
                states={**states, state.epoch: state},
                pairs=tuple(pairs),
            )

        for epoch in range(state.epoch, self.epochs):
            rng = np.random.default_rng([self.seed, state.restarts, epoch + 1])
            visits = rng.permutation(queries.n_queries)
            weights = self.epoch(state.weights, data.features, queries, objective, epoch, state.rate, visits)
            scores = weights.scores(data.features)
            if not np.isfinite(scores).all():
                raise ValueError(
                    f"LambdaRank: scores are no longer finite in epoch {epoch + 1}; learning_rate={self.learning_rate:g} is too large"
                )
            train = self._of_training(queries, scores)
            value = validation(weights.scores(data.valid_features)) if data.validates else train
            if tick is not None:
                tick()
            if ranks is not None:
                if self.update == "query" and not isinstance(ranks, InverseObjective):
                    ranks(scores, epoch)
                state = replace(state, biases=np.array(ranks.biases))
            judged = epoch + 1 if by_last else train if self.keep == "train" else value
            state = self._after(state, weights, (train, value, judged), rng)
            if ranks is not None:
                ranks.biases[:] = state.biases
            if epoch + 1 in self.keep_epochs:
                states[epoch + 1] = state
            if self.count_pairs and (epoch + 1) % self.count_pairs == 0:
                pairs.append((epoch + 1, ledger(queries, self.objective, scores, self.conventions)))
            values = {"train": {str(self.watched): train}, **({"valid": {str(self.watched): value}} if data.validates else {})}
            answers = [callback(Progress(epoch + 1, self.epochs, values, so_far)) for callback in callbacks]
            if any(answers):
                break
        return cast(Self, so_far())

    def _remarks(self, queries: Queries, preferences: Preferences | None, state: State) -> Iterator[str]:
        """What is to be said of what was learned from."""
        if preferences is not None and (cyclic := preferences.in_cycles(queries.n_documents)):
            yield f"on cycles of preferences: {cyclic} document{'' if cyclic == 1 else 's'}"
        yield from saturations(self.objective, self.epochs)
        if self._way and state.biases.size:
            yield in_words(self._way, state.biases[min(state.best_epoch, len(state.biases) - 1)])
            if self._way.kind != "ipw" and shown_once(Shown.on(queries, self._way, self.terms[0]).ask):
                yield ONLY_FEATURES

    def fit_watched(
        self,
        queries: Queries,
        valid: Sequence[Queries] = (),
        tick: Tick | None = None,
        callbacks: Sequence[Callback] = (),
        start: Ranker | None = None,
    ) -> Self:
        """`fit` with callbacks.

        Raises:
            ValueError: as `fit`, and naming what nets do not know.
        """
        if len(valid) > 1 or start is not None:
            return super().fit_watched(queries, valid, tick, (), start)
        return self.fit(queries, valid[0] if valid else None, tick, callbacks=callbacks)

    @property
    def goes_on(self) -> bool:
        """Not where effective pairs are counted, as a model does not keep earlier counts, nor where ``unbiased: auto`` may choose otherwise."""
        return not self.count_pairs and (self._way is None or self._way.kind != "auto")

    def go_on(
        self,
        begun: Self,
        queries: Queries,
        valid: Queries | None = None,
        tick: Tick | None = None,
        callbacks: Callback | Sequence[Callback] = (),
    ) -> Self:
        """`fit` from the last state of `begun`."""
        if not (self.goes_on and begun.states):
            return self.fit(queries, valid, tick, callbacks=callbacks)
        kept = {epoch: state for epoch, state in begun.states.items() if epoch in self.keep_epochs}

        def with_kept(fitted: Self) -> Self:
            return replace(fitted, states={**kept, **fitted.states})

        def told(callback: Callback) -> Callback:
            return lambda progress: callback(replace(progress, so_far=lambda: with_kept(progress.so_far())))

        last, several = begun.states[max(begun.states)], [told(callback) for callback in checked_callbacks(callbacks)]
        return with_kept(self.fit(queries, valid, tick, start=last, callbacks=several))

    def _chosen_way(
        self, how: Unbiased, queries: Queries, valid: Queries | None, tick: Tick | None, callbacks: tuple[Callback, ...]
    ) -> Self:
        """`fit` in every way that ``unbiased: auto`` knows, and the one that validation queries choose."""
        ways = WAYS[:-1] if self.count_pairs else WAYS
        auto = Auto(how, self.terms, self.normalise, self.conventions, str(self.watched), ways, self._largest(queries))
        shown = Shown.on(queries, how, self.terms[0])
        return chosen_way(
            auto,
            valid,
            lambda way: looks(way, shown.ask),
            lambda way: replace(self, unbiased=way).fit(queries, valid, tick, callbacks=callbacks),
        )

    @property
    def _way(self) -> Unbiased | None:
        """`unbiased`, which has been read."""
        return cast(Unbiased | None, self.unbiased)

    def _fair(self, queries: Queries, valid: tuple[Queries, ...]) -> tuple[FairPages | None, tuple[str, ...]]:
        """How clicks on validation pages are counted, and what is said of it."""
        how = self._way
        if how is None:
            return None, ()
        term = self.terms[0]
        most = self._largest(queries)
        return FairPages.watching(how, term, (self.stop_on,), valid, lambda way: looks(way, Shown.on(queries, way, term).ask), most)

    def _largest(self, queries: Queries) -> float:
        """Of the labels that are learned from."""
        return largest(queries.source(Measure.of(self.terms[0].measure).source))

    def _validation(self, valid: Queries, fair: FairPages | None) -> Callable[[Floats], float]:
        """What scores of validation queries are judged by."""
        if fair is not None and (pages := fair.mean(self.stop_on, valid, self.conventions)):
            return pages
        return lambda scores: mean_measure(self.stop_on, valid, scores, self.conventions)

    def _of_training(self, queries: Queries, scores: Floats) -> float:
        """What the learning rate follows.

        Raises:
            UndefinedMeasureError: where the measure is defined on none of the training queries.
        """
        try:
            return mean_measure(self.stop_on, queries, scores, self.conventions)
        except UndefinedMeasureError as error:
            raise UndefinedMeasureError(
                f"LambdaRank: stop_on: {error}, of the training queries, whose values the learning rate follows"
            ) from None

    def _objective(self, queries: Queries, preferences: Preferences | None, state: State) -> QueryObjective:
        """What is learned from, of canonical queries, from this state on."""
        if preferences is not None:
            return PreferenceObjective(queries, preferences, self.sigma)
        plain, how = Objective(queries, self.objective, self.conventions, self.sigma, self.normalise), self._way
        if how is None:
            return plain
        begun = state.biases if state.biases.size else None
        if begun is not None and begun.shape[1] != how.sides:
            raise ValueError(f"LambdaRank: the state learned {begun.shape[1]} numbers of a rank, and {how.kind} learns {how.sides}")
        if how.kind == "ipw":
            begun = looks(how, Shown.on(queries, how, self.terms[0]).ask)[None, None]
        return debiased(plain, how, self.conventions, STEP, begun)

    def _start(self, n_features: int, start: State | Weights | None) -> State:
        if not isinstance(start, State | Weights | None):
            raise ValueError(
                f"LambdaRank: start is a {type(start).__name__}; give a state of one (net.states[epoch]) or its weights (net.weights)"
            )
        if isinstance(start, State) and start.epoch > self.epochs:
            raise ValueError(f"LambdaRank: the state is of epoch {start.epoch}, beyond epochs={self.epochs}")
        weights = start.weights if isinstance(start, State) else start or self._random(n_features, 0)
        if weights.hidden != self.hidden or weights.inner.shape[1] != n_features:
            raise ValueError(
                f"LambdaRank: weights of {weights.hidden} units over {weights.inner.shape[1]} features do not fit "
                f"hidden={self.hidden} over {n_features}"
            )
        return start if isinstance(start, State) else State(weights, weights, rate=self.learning_rate)

    def _random(self, n_features: int, restarts: int) -> Weights:
        return random_weights(n_features, self.hidden, np.random.default_rng([self.seed, restarts]))

    def _after(self, state: State, weights: Weights, found: tuple[float, float, float], rng: np.random.Generator) -> State:
        """The recipe (D section 7): keep the best, shrink the rate where training accuracy fell, restart where it is flat. What was
        `found` are the measure on training and on validation queries, and by what the epoch is judged."""
        epoch, (train, value, judged) = state.epoch + 1, found
        rows = np.vstack((state.rows, (epoch, train, value)))
        after = replace(state, weights=weights, epoch=epoch, before=train, rows=rows)
        if judged > state.best_value:
            after = replace(after, best=weights, best_value=judged, best_epoch=epoch)
        if judged > state.flat_value:
            after = replace(after, flat_since=epoch, flat_value=judged)
        if train < state.before and rng.random() < self.shrink_probability:
            after = replace(after, rate=state.rate * self.shrink)
        if 0 < self.flat_epochs <= epoch - after.flat_since:
            restarts = state.restarts + 1
            fresh = self._random(weights.inner.shape[1], restarts)
            after = replace(after, weights=fresh, restarts=restarts, rate=self.learning_rate, before=-np.inf, flat_since=epoch)
            after = replace(after, flat_value=-np.inf, biases=np.concatenate((after.biases[:-1], after.biases[:1])))
        return after

    def epoch(
        self, weights: Weights, features: Floats32, queries: Queries, objective: QueryObjective, epoch: int, rate: float,
        visits: Ints,
    ) -> Weights:  # fmt: skip
        """Weights after one pass over the queries in the order `visits`; ``features`` as the net sees them."""
        inner, bias, outer = weights.inner.copy(), weights.bias.copy(), weights.outer.copy()
        if self.update == "full":
            units, scores = np.empty((len(outer), len(features))), np.empty(len(features))
            forward_all(features, inner, bias, outer, self.hidden > 0, units, scores)
            gradient, _ = objective(scores, epoch)
            backward_all(features, gradient, inner, bias, outer, self.hidden > 0, units, rate)
        else:
            parts = (F4_2D, I8_1D, I8_1D, objective.plan_type, I8, F8_2D, F8_1D, F8_1D, types.boolean, F8)
            step = ready(epoch_by_query, types.void(*parts))
            plan = objective.plan(epoch)
            step(features, queries.offsets, visits, plan, objective.gradients, inner, bias, outer, self.hidden > 0, rate)
        return Weights(inner, bias, outer, self.hidden)

    def standardised(self, features: Features) -> Floats32:
        """Features as the net sees them, ``float32 [documents, features]``."""
        return self._standardised(checked_features(features, self.names))

    def _standardised(self, features: Floats32) -> Floats32:
        assert self.scaling is not None
        return _standardised(features, self.scaling)

    def _scores(self, features: Floats32) -> Floats:
        assert self.weights is not None
        scores = self.weights.scores(self._standardised(features))
        if self.hidden:  # a hidden unit makes ±1 of what is infinite
            scores[np.isinf(features).any(axis=1)] = np.nan
        return scores

    def stages(self, features: Features, every: int) -> Iterator[tuple[int, Floats]]:
        """Epochs and scores ``float64 [documents]`` after them: kept ones (`keep_epochs`) that `every` divides, and the last."""
        standardised = self.standardised(features)
        for epoch, state in sorted(self.states.items()):
            if epoch % every == 0 or epoch == max(self.states):
                yield epoch, state.weights.scores(standardised)

    def _surface(self, features: Floats32) -> Surface:
        assert self.weights is not None
        return surface_of(self.weights, self._standardised(features))

    def moved(self, weights: Floats) -> Self:
        """The net with other weights, as `Weights.flat` has them."""
        own = self._in_place_of(self.weights.flat if self.weights else None, weights)
        assert self.weights is not None
        return replace(self, weights=self.weights.moved(own), states={})

    def _learned_arrays(self) -> Arrays:
        """Weights and scaling, and the states of kept epochs."""
        assert self.weights is not None
        assert self.scaling is not None
        states = {f"{epoch}/{name}": array for epoch, state in self.states.items() for name, array in state.arrays.items()}
        return {**self.weights.arrays, "scaling": self.scaling, **states}

    def _with_arrays(self, arrays: Arrays) -> Self:
        epochs = sorted({int(name.split("/")[0]) for name in arrays if "/" in name})
        states = {
            epoch: State.restored({n.split("/")[1]: a for n, a in arrays.items() if n.startswith(f"{epoch}/")}, self.hidden)
            for epoch in epochs
        }
        weights, width = Weights.restored(arrays, self.hidden), len(self.names)
        if weights.inner.shape[1] != width or arrays["scaling"].shape != (2, width):
            raise ValueError(f"weights of shape {weights.inner.shape} and scaling {arrays['scaling'].shape} for {width} features")
        sides = self._way.sides if self._way else 0
        if any(state.biases.size and state.biases.shape[1] != sides for state in states.values()):
            raise ValueError(f"biases of ranks whose shape does not go with unbiased={self.unbiased}")
        scaling = arrays["scaling"]
        if scaling.dtype != np.float64 or not np.isfinite(scaling[0]).all() or not (scaling[1] > 0).all():
            raise ValueError("a scaling that is not finite means and deviations above 0")
        return replace(self, weights=weights, scaling=scaling, states=states)

    def snapshot(self, iteration: int) -> Self | None:
        """The net with the weights after an epoch of `keep_epochs` or the last one; None for other epochs."""
        return replace(self, weights=self.states[iteration].weights) if iteration in self.states else None

    def escape(self, queries: Queries, measure: str, iterations: int, conventions: Conventions) -> tuple[float, float] | None:
        """Tries the net's learning rate, a tenth and a hundredth of it: close to an optimum the first would only jump away."""
        onwards = replace(
            self, objective=(Term(measure),), unbiased=None, stop_on=measure, epochs=iterations, keep="train", flat_epochs=0, keep_epochs=(),
            conventions=conventions,
        )  # fmt: skip
        rates = [self.learning_rate * share for share in (1.0, 0.1, 0.01)]
        curves = [replace(onwards, learning_rate=rate).fit(queries, start=self.weights).curve for rate in rates]
        best = [float(curve.train.max()) for curve in curves if curve is not None]
        return rates[int(np.argmax(best))], max(best)

    @property
    def unfinished(self) -> str | None:
        """It came to rest if the training measure rises by no more than `AT_REST` within `flat_epochs` epochs (50 where that is 0) after
        the one that was kept; where training ended sooner, within so many epochs up to its end."""
        if not self.states or not (last := self.states[max(self.states)]).epoch:
            return None
        needed, kept, name = self.flat_epochs or 50, last.best_epoch, Measure.of(self.stop_on).key
        start, end = self._run_around(kept, last.rows) if last.restarts else (0, len(last.rows))
        end = min(end, kept + needed)
        train = last.rows[:end, 1]
        if (rise := float(train[kept - 1 :].max() - train[kept - 1])) > AT_REST:
            return f"training had not converged: {name} rose by {rise:.4f} in the {end - kept} epochs after the one that was kept ({kept})"
        if end < kept + needed and end - start <= needed:
            return f"training may not have converged: it ran for {end - start} epochs, and convergence needs {needed} without improvement"
        if end < kept + needed and (rise := float(train[kept - 1] - train[start : end - needed].max())) > AT_REST:
            return f"training had not converged: {name} rose by {rise:.4f} in its last {needed} epochs"
        return None

    def _run_around(self, kept: int, rows: Floats) -> tuple[int, int]:
        """The epochs between two restarts that an epoch lies in: those done before, and those done at the end (`_after`)."""
        judged = rows[:, 1 if self.keep == "train" else 2]
        start, best, since = 0, -np.inf, 0
        for epoch, value in enumerate(judged, 1):
            if value > best:
                best, since = value, epoch
            if 0 < self.flat_epochs <= epoch - since:
                if kept <= epoch:
                    return start, epoch
                start, best, since = epoch, -np.inf, epoch
        return start, len(rows)

    @property
    def biases(self) -> Floats | None:
        """What was learned of ranks before each epoch, and after the last (`ltr.objectives.unbiased`), ``float64 [epochs + 1, sides, ranks]``;
        of ``ipw`` the propensities."""
        last = self.states[max(self.states)] if self.states else None
        return last.biases if last is not None and last.biases.size else None

    @property
    def position_bias(self) -> dict[str, Floats]:
        """As it was at the epoch that was kept."""
        if self._way is None or self.biases is None or self.best_iteration is None:
            return {}
        return by_rank(self._way, self.biases[min(self.best_iteration, len(self.biases) - 1)])

    @property
    def best_iteration(self) -> int | None:
        """The epoch whose weights were kept."""
        return self.states[max(self.states)].best_epoch if self.states else None

    @property
    def export_form(self) -> str | None:
        """One layer is a linear model of standardised features."""
        return "linear net" if self.hidden == 0 else "two-layer net"

    @property
    def linear_weights(self) -> Floats | None:
        """Weights on features as given, of a linear net; the constant that standardising adds changes no ranking and is left out."""
        if self.hidden or self.weights is None or self.scaling is None:
            return None
        weights: Floats = self.weights.outer[0] * self.weights.inner[0] / self.scaling[1]
        return weights

    def attributions(self, features: Features) -> Floats | None:
        """Of the linear net, with a missing feature at its mean: contributions are against the training documents' mean."""
        if self.hidden or self.weights is None:
            return None
        inputs = self.standardised(features).astype(np.float64)
        constant = self.weights.scores(np.zeros((1, len(self.names)), np.float32))
        return np.column_stack((inputs * (self.weights.outer[0] * self.weights.inner[0]), np.repeat(constant, len(inputs))))

    @property
    def counted_pairs(self) -> tuple[tuple[int, list[Ledger]], ...]:
        """`pairs`, counted every `count_pairs` epochs."""
        return self.pairs

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of `objective`."""
        return tuple(self.objective)

    @property
    def trained_for(self) -> tuple[Measure, ...]:
        """The measures of the terms."""
        return tuple(Measure.of(term.measure) for term in self.objective)

    @property
    def watched(self) -> Measure | None:
        """The measure that chooses the epoch, `stop_on`."""
        return Measure.of(self.stop_on)


def _require_finite(features: Floats32, names: tuple[str, ...]) -> None:
    """Raises ValueError naming the first feature with an infinite value."""
    infinite = np.flatnonzero(np.isinf(features).any(axis=0))
    if len(infinite):
        raise ValueError(f"feature {names[infinite[0]]!r} has an infinite value; nets need finite or missing (NaN) ones")


def _scaling(features: Floats32) -> Floats:
    """Mean and standard deviation of each feature, ``float64 [2, features]``; a constant one gets an infinite deviation: nothing was learned of
    its weight, and no value of it, whenever it comes, says anything."""
    return np.hstack([_scaling_of(features[:, block]) for block in blocks_of(features.shape[1])])


def _scaling_of(features: Floats32) -> Floats:
    present = ~np.isnan(features)
    counts = np.maximum(present.sum(axis=0), 1)
    mean = np.where(present, features, 0).sum(axis=0, dtype=np.float64) / counts
    deviation = np.sqrt((np.where(present, features - mean, 0.0) ** 2).sum(axis=0) / counts)
    return np.stack((mean, np.where(deviation > 0, deviation, np.inf)))


def _standardised(features: Floats32, scaling: Floats) -> Floats32:
    with np.errstate(over="ignore"):  # what is so far from all training queries is infinite
        return by_rows(
            lambda rows: np.nan_to_num((rows - scaling[0]) / scaling[1], nan=0.0, posinf=np.inf, neginf=-np.inf), features
        )
