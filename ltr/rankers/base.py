"""What every ranker is: a frozen dataclass of its parameters and of what it learned; saved, loaded and identified by a digest.

A ranker subclasses `Ranker` and defines how it learns (`fit`), how it scores (`_scores`), how its scores depend on its weights
(`_surface`) and how what it learned is written as arrays (`_learned_arrays`, `_with_arrays`). Parameters, digest, saving and loading
follow from its fields; class traits say what else it can do. What is given as features is read by `ltr.rankers.features`; models are kept on
disk by `ltr.rankers.saved`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from hashlib import sha256
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np

from ltr.data.arrays import few_of, floats_of
from ltr.data.named import Named
from ltr.data.plain_function import PlainFunction
from ltr.data.queries import WEIGHTS, Queries, in_order
from ltr.data.sparse import is_sparse
from ltr.kernels.kernel import Array, Bools, Floats, Floats32
from ltr.metrics.conventions import Conventions
from ltr.metrics.evaluation import NOT_RANKED
from ltr.metrics.measure import Measure
from ltr.objectives.effective_pairs import Ledger
from ltr.objectives.terms import Term, Written, terms_from
from ltr.objectives.unbiased import Unbiased
from ltr.rankers.features import Features, checked_features, type_of
from ltr.rankers.features import columns_of as columns_of  # where models that are in MLflow already look for it
from ltr.rankers.parameters import Span, check_parameters
from ltr.rankers.surface import Surface
from ltr.rankers.training import Callback, Curve

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
"""Values that JSON can hold."""
Arrays = dict[str, Array]
"""What a ranker learned, by name."""
Tick = Callable[[], None]
"""Called after every tree, epoch or iteration of a training; what it raises ends the training."""


_Value = TypeVar("_Value")


def learned(default: _Value) -> _Value:
    """A field that `Ranker.fit` sets: not a parameter, and in no configuration."""
    return field(default=default, repr=False, metadata={"learned": True})


def parameters_of(ranker: type[Ranker] | Ranker) -> list[str]:
    """Names of a ranker's parameters: all its fields but the learned ones."""
    return [f.name for f in fields(ranker) if not f.metadata.get("learned")]


class UndefinedScoreError(ValueError):
    """A document has no score: missing features with a ranker that needs them all, or infinite ones.

    Attributes:
        row: of the document, from 0.
        why: the feature, and the rule.
    """

    def __init__(self, row: int, why: str) -> None:
        super().__init__(f"row {row}: {why}")
        self.row, self.why = row, why


OF_ESTIMATORS = {
    **dict.fromkeys(("n_jobs", "num_threads", "nthread", "thread_count"), "n_jobs"),
    **dict.fromkeys(("verbose", "verbosity", "verbose_eval"), "verbose"),
}
"""What other tools ask of a ranker and here an estimator does, by their names and by its own."""


@dataclass(frozen=True, kw_only=True)
class Ranker(Named, ABC):
    """A ranker, fitted or not. `fit` returns a fitted copy.

    Attributes:
        kind: its name in configurations and model files.
        complete_features: it cannot handle missing values.
        stepwise: it learns in steps along λ's, and `stages` gives the scores after each: it can be inspected and resumed.
        certified: it gets a certificate of local optimality unless other rankers are named.
        has_weights: it has weights that can be moved, without which there is no certificate.
        query_weights: it obeys `ltr.Queries.weights`, or learns nothing that they could change.
        document_weights: it obeys `ltr.Queries.document_weights`, or learns nothing that they could change; the others refuse them.
        sparse_features: it learns from features of scipy.sparse as they are; the others refuse them.
        sharded: it can be trained on queries held by several machines (`fit_shards`).
        n_inputs: the number of features it needs, where only one number is possible.
        iterations_from: the parameter that sets the number of iterations.
        snapshots_from: the parameter that lists iterations whose state is kept, where there is one.
        spans: the numbers that each numeric parameter may be.
        conventions: label rules.
        names: of the features it was fitted on; empty before `fit`.
        curve: a measure during training, where there is one.
        remarks: sentences about the training.
    """

    kind: ClassVar[str]
    complete_features: ClassVar[bool] = False
    stepwise: ClassVar[bool] = False
    certified: ClassVar[bool] = False
    has_weights: ClassVar[bool] = True
    query_weights: ClassVar[bool] = False
    document_weights: ClassVar[bool] = False
    sparse_features: ClassVar[bool] = False
    sharded: ClassVar[bool] = False
    n_inputs: ClassVar[int | None] = None
    iterations_from: ClassVar[str | None] = None
    snapshots_from: ClassVar[str | None] = None
    spans: ClassVar[Mapping[str, Span]] = {}
    elsewhere: ClassVar[Mapping[str, str]] = {theirs: f"ltr.Estimator(…, {own}=…)" for theirs, own in OF_ESTIMATORS.items()}
    conventions: Conventions = Conventions()
    names: tuple[str, ...] = learned(())
    curve: Curve | None = learned(None)
    remarks: tuple[str, ...] = learned(())

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        # Or `dataclass` would write its own: a longer line, and comparisons of arrays.
        for name in ("__repr__", "__eq__", "__hash__"):
            if name not in vars(cls):
                setattr(cls, name, getattr(Ranker, name))

    def __post_init__(self) -> None:
        check_parameters(self, self.spans)
        if not isinstance(self.conventions, Conventions):
            raise ValueError(f"{type(self).__name__}: conventions={self.conventions!r} is not an ltr.Conventions")

    def __repr__(self) -> str:
        """The parameters that are not their defaults, and whether it is fitted."""
        told = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)
            if f.name in parameters_of(self) and not _is_default(self, f)
        ]
        fitted = f" fitted on {len(self.names)} features" if self.names else ""
        return f"{type(self).__name__}({', '.join(told)}){fitted}"

    def __eq__(self, other: object) -> bool:
        """Whether both are of one kind and have the same parameters, features and digest."""
        if type(self) is not type(other) or not isinstance(other, Ranker):
            return NotImplemented
        alike = self.names == other.names and all(getattr(self, name) == getattr(other, name) for name in parameters_of(self))
        return alike and (not self.names or self.digest == other.digest)

    def __hash__(self) -> int:
        return hash((type(self), self.names, self.digest if self.names else ""))

    @abstractmethod
    def fit(self, queries: Queries, valid: Queries | None = None, tick: Tick | None = None) -> Self:
        """A fitted copy of this ranker.

        Args:
            queries: to learn from.
            valid: to choose the best iteration on, where there is a choice.
            tick: called after every iteration.

        Raises:
            ValueError: for data that it cannot learn from.
        """

    @property
    def goes_on(self) -> bool:
        """Whether `go_on` does nothing again."""
        return False

    def go_on(
        self,
        begun: Self,
        queries: Queries,
        valid: Queries | None = None,
        tick: Tick | None = None,
        callbacks: Callback | Sequence[Callback] = (),
    ) -> Self:
        """What `fit` gives, byte for byte, without doing again what `begun` did: a ranker fitted to the same queries with fewer iterations
        and otherwise the same parameters. Where it does not `goes_on`, that is `fit`.

        Raises:
            ValueError: as `fit`; for a ranker that does not learn step by step.
        """
        raise ValueError(f"{self.kind} does not learn step by step")

    def fit_watched(
        self,
        queries: Queries,
        valid: Sequence[Queries] = (),
        tick: Tick | None = None,
        callbacks: Sequence[Callback] = (),
        start: Ranker | None = None,
    ) -> Self:
        """`fit` with several sets of validation queries, callbacks, and a fitted ranker to go on from, as far as this kind knows them.

        Raises:
            ValueError: as `fit`, and naming what this kind does not know.
        """
        for what, given in (("several eval_set", len(valid) > 1), ("callbacks", callbacks), ("an init_model", start)):
            if given:
                raise ValueError(f"{type(self).__name__}: does not support {what}; LambdaMART does")
        return self.fit(queries, valid[0] if valid else None, tick)

    def first(self, iterations: int) -> Self:
        """The ranker of the first so many iterations, for one whose scores are a sum over them.

        Raises:
            ValueError: for more than there are, or a ranker whose scores are no such sum.
        """
        raise ValueError(f"{self.kind}: its scores are not a sum over trees, so the first cannot be taken")

    def check(self, queries: Queries) -> None:
        """Whether these queries can be learned from: what `fit` would refuse, told without learning anything.

        Raises:
            ValueError: saying what is wrong with them.
        """
        if not queries.n_features:
            raise ValueError(f"{self.kind}: the documents have no feature")

    def predict(self, features: Features) -> Floats:
        """Scores ``float64 [documents]``, higher is better.

        Raises:
            ValueError: before `fit`, for another number of features, or a named one that is missing; `UndefinedScoreError` for a document
                whose missing or infinite features leave it without a score.
        """
        return self._defined(checked_features(features, self.names))

    def _defined(self, checked: Floats32) -> Floats:
        """`_scores`, or the error that names what leaves a document without one."""
        scores = self._scores(checked)
        undefined = ~np.isfinite(scores)
        if undefined.any():
            row = int(undefined.argmax())
            raise UndefinedScoreError(row, self._why_undefined(checked[row]))
        return scores

    def _why_undefined(self, features: Floats32) -> str:
        wrong = np.isinf(features) if np.isinf(features).any() else np.isnan(features)
        for name, value, this in zip(self.names, features.tolist(), wrong, strict=True):
            if this:
                return f"feature {name!r} is {'missing' if math.isnan(value) else value}, and {self.kind} has no score for that"
        return f"the features are too large: the score of {self.kind} overflows"

    def moved(self, weights: Floats) -> Self:
        """The ranker with other weights, ``float64 [weights]`` as those of its `surface`; what training left of its states is gone.

        Raises:
            ValueError: before `fit`, for a ranker whose weights cannot be set freely, and for another number of weights, or one that is not finite.
        """
        raise ValueError(f"{self.kind}: {self.why_fixed}")

    def _in_place_of(self, weights: Floats | None, given: Floats) -> Floats:
        """What is `given` to `moved`, as many numbers as its own `weights`: kernels would read, and write, beyond fewer."""
        if weights is None:
            raise ValueError("this model is not fitted")
        found = floats_of("weights", given)
        if found.shape != weights.shape or not np.isfinite(found).all():
            raise ValueError(
                f"{self.kind}: moved to weights of shape {found.shape}; expected {len(weights):,} finite numbers, as its surface has"
            )
        return found.copy()

    @property
    def why_fixed(self) -> str | None:
        """Why its weights cannot be moved, in words; None where they can."""
        return "it has no weights that can be moved freely" if type(self).moved is Ranker.moved else None

    def surface(self, features: Features) -> Surface:
        """The scores of these documents as a function of the weights, which `ltr.certify` explores.

        Raises:
            ValueError: as `predict`; for a ranker without weights.
        """
        checked = checked_features(features, self.names)
        if self.has_weights:
            self._defined(checked)
        return self._surface(checked)

    @abstractmethod
    def _scores(self, features: Floats32) -> Floats:
        """`predict` for ``features float32 [documents, features]`` in the order of `names`."""

    @abstractmethod
    def _surface(self, features: Floats32) -> Surface:
        """`surface` for ``features float32 [documents, features]`` in the order of `names`."""

    @abstractmethod
    def _learned_arrays(self) -> Arrays:
        """What scores depend on, as arrays; those whose names have a slash are saved too, but are not part of the digest."""

    @abstractmethod
    def _with_arrays(self, arrays: Arrays) -> Self:
        """A copy that has learned these arrays, as `_learned_arrays` returns them, on the features `names`.

        Raises:
            ValueError: where they do not fit together, or not the features.
        """

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of its objective, where it learns by λ's."""
        return ()

    @property
    def trained_for(self) -> tuple[Measure, ...]:
        """The measures it learns to improve."""
        return ()

    @property
    def needs_complete(self) -> bool:
        """Whether it cannot handle missing values as its parameters are."""
        return self.complete_features

    @property
    def split_by_categories(self) -> frozenset[str]:
        """The features whose values it reads as categories, which have no order and no distance."""
        return frozenset()

    @property
    def export_form(self) -> str | None:
        """The form in which other tools can read it: ``trees``, ``linear``, ``linear with imputation``, ``linear net``, ``two-layer net``; None where there is none."""
        return None

    @property
    def linear_weights(self) -> Floats | None:
        """Weights ``float64 [features]`` on the features as given, where the score is linear up to a constant; otherwise None."""
        return None

    def attributions(self, features: Features) -> Floats | None:
        """What each feature contributes to each score, exactly: ``float64 [documents, features + 1]``, with what is the same for all
        documents in the last column, so that a row sums to the score up to rounding; None where that is not known in closed form."""
        weights = self.linear_weights
        if weights is None:
            return None
        array = checked_features(features, self.names)
        read = weights != 0  # others may be missing
        return np.column_stack((np.multiply(array, weights, out=np.zeros(array.shape), where=read), np.zeros(len(array))))

    def ranked(self, features: Floats32) -> Bools | None:
        """Which documents are in its ranking, ``bool [documents]``, of ``features float32 [documents, features]`` in the order of `names`; None:
        all. The others, such as those that a run did not retrieve, have the lowest scores and are at no rank (`ltr.evaluate`)."""
        return None

    def ranking_scores(self, features: Floats32) -> Floats:
        """`predict`, and −∞ for what is not `ranked`, as `ltr.evaluate` takes it; ``float64 [documents]``."""
        scores, ranked = self.predict(features), self.ranked(features)
        return scores if ranked is None else np.where(ranked, scores, NOT_RANKED)

    @property
    def attributed(self) -> str:
        """How `attributions` are found, in words."""
        return "linear"

    def stages(self, features: Features, every: int) -> Iterator[tuple[int, Floats]]:
        """Numbers of iterations, those that `every` divides and the last, and the scores ``float64 [documents]`` after that many.

        Raises:
            ValueError: for a ranker that does not learn step by step.
        """
        raise ValueError(f"{self.kind} does not learn step by step")

    def snapshot(self, iteration: int) -> Self | None:
        """The ranker as it was after this many iterations; None where that was not kept."""
        return None

    def escape(self, queries: Queries, measure: str, iterations: int, conventions: Conventions) -> tuple[float, float] | None:
        """How far training for a measure gets from here (Donmez 2009 section 8): the learning rate that reached the best training value
        within this many iterations, and that value; None for a ranker that cannot be trained further."""
        return None

    @property
    def counted_pairs(self) -> tuple[tuple[int, list[Ledger]], ...]:
        """Effective pairs of each term after some iterations, where they were counted."""
        return ()

    @property
    def unfinished(self) -> str | None:
        """Why its training cannot be taken to have come to rest, in words; None where it can, or where there is none that could."""
        return None

    @property
    def features_read(self) -> tuple[str, ...]:
        """Features that its parameters name, which must be in the data."""
        return ()

    @property
    def watched(self) -> Measure | None:
        """The measure of its curve, by which the best iteration is chosen."""
        return None

    @property
    def n_iterations(self) -> int:
        """How many iterations it learns for; 0 where that has no meaning."""
        return int(getattr(self, self.iterations_from)) if self.iterations_from else 0

    @property
    def best_iteration(self) -> int | None:
        """The iteration whose scores the fitted ranker gives, where it is chosen among several; otherwise None."""
        return None

    @property
    def importances(self) -> dict[str, Floats]:
        """How important each feature is, ``float64 [features]`` by the name of each way to count that; empty where there is none."""
        return {}

    @property
    def position_bias(self) -> dict[str, Floats]:
        """What it learned of ranks from clicks, ``float64 [ranks]`` from the first, by the name of each number that it learned of a rank
        (`ltr.objectives.unbiased.by_rank`); empty where it took labels as they are."""
        return {}

    @property
    def arrays(self) -> Arrays:
        """What it learned, by name.

        Raises:
            ValueError: before `fit`.
        """
        if not self.names:
            raise ValueError("this model is not fitted")
        return self._learned_arrays()

    @property
    def digest(self) -> str:
        """sha256 of kind and arrays: two rankers with one digest, on the same features and from the same `base`, give the same scores to the bit."""
        return digest_of(self.kind, {name: array for name, array in self.arrays.items() if "/" not in name})

    @property
    def parameters(self) -> dict[str, Json]:
        """The parameters as plain values."""
        return {name: _plain(getattr(self, name)) for name in parameters_of(self)}

    @classmethod
    def restored(cls, parameters: Written, arrays: Arrays, names: tuple[str, ...]) -> Self:
        """The ranker that a model's file describes by its `parameters`, arrays and feature names.

        Raises:
            ValueError: where they do not fit together.
        """
        if not parameters:
            raise ValueError("it has no parameters")
        return replace(cls(**_read(parameters)), names=names)._with_arrays(arrays)


def _is_default(ranker: Ranker, field: Field[Any]) -> bool:
    default = field.default_factory() if field.default_factory is not MISSING else field.default
    return bool(getattr(ranker, field.name) == default)


def _rankers_from(written: Sequence[Written]) -> tuple[Ranker, ...]:
    """Unfitted rankers, each written as its kind and its parameters."""
    known = {ranker.kind: ranker for ranker in _kinds(Ranker)}
    return tuple(known[one["kind"]](**_read({name: value for name, value in one.items() if name != "kind"})) for one in written)


def _kinds(base: type[Any]) -> Iterator[type[Ranker]]:
    for ranker in base.__subclasses__():
        if "kind" in vars(ranker):
            yield ranker
        yield from _kinds(ranker)


_READ: dict[str, Callable[[Any], Any]] = {
    "conventions": lambda written: Conventions(**written), "objective": terms_from, "of": _rankers_from,
    "unbiased": lambda written: written and Unbiased(**written),
}  # fmt: skip
"""How parameters that are more than plain values are read."""


def _read(parameters: Written) -> dict[str, Any]:
    def read(name: str, value: Any) -> Any:
        if isinstance(value, list | tuple) and any(map(_is_function, value)):
            return tuple(PlainFunction(one["function"]) if _is_function(one) else one for one in value)
        if _is_function(value):
            return PlainFunction(value["function"])
        return _READ[name](value) if name in _READ else value

    return {name: read(name, value) for name, value in parameters.items()}


def _is_function(written: object) -> bool:
    """Whether this is how `_plain` writes a function; of another mapping from names the values are numbers."""
    return isinstance(written, Mapping) and [*written] == ["function"] and isinstance(written["function"], str)


def _plain(value: Any) -> Json:
    if isinstance(value, PlainFunction):
        return {"function": value.name}
    if isinstance(value, Ranker):
        return {"kind": value.kind, **value.parameters}
    if isinstance(value, Measure):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, np.generic):
        return cast(Json, value.item())
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def digest_of(kind: str, arrays: Mapping[str, Array]) -> str:
    """sha256 of a kind of ranker and of arrays: their names, sorted, and types, shapes and bytes."""
    hasher = sha256(kind.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        hasher.update(f"{name}{array.dtype.str}{array.shape}".encode())
        hasher.update(array.tobytes())
    return hasher.hexdigest()


def with_features_of(ranker: Ranker, queries: Queries, caller: str) -> Queries:
    """The queries with the features that a fitted ranker reads, by name and in its order.

    Raises:
        ValueError: as `require_features_of`.
    """
    require_features_of(ranker, queries, caller)
    return in_order(queries, ranker.names)


def require_features_of(ranker: Ranker, queries: Queries, caller: str) -> None:
    """Checks that queries have the features that a fitted ranker reads.

    Raises:
        ValueError: where they lack one, and for anything but these two; `caller` is what the user called.
    """
    if not isinstance(ranker, Ranker) or not isinstance(queries, Queries):
        inner = "; of an estimator, its model_" if hasattr(ranker, "get_params") else ""
        raise ValueError(
            f"{caller}: given {type(ranker).__name__} and {type(queries).__name__}; give a fitted ranker and ltr.Queries{inner}"
        )
    missing = [name for name in ranker.names if name not in queries.names]
    if missing:
        raise ValueError(f"{caller}: the queries have no feature {missing[0]!r}, which the model reads")


def check_data(ranker: Ranker, queries: Queries, valid: Queries | None) -> None:
    """Checks what a ranker is to be fitted to.

    Raises:
        ValueError: for what are no `ltr.Queries`, for none of them, for sparse features or weights that the ranker has no use for, and for
            validation queries with other features.
    """
    for name, given in (("queries", queries), ("valid", valid)):
        if given is None and name == "valid":
            continue
        if not isinstance(given, Queries):
            raise ValueError(
                f"{type(ranker).__name__}.fit: {name} is {type_of(given)}; give ltr.Queries(features, labels, offsets), "
                "or use ltr.Estimator(model).fit(X, y, qid) for arrays"
            )
        if not given.n_documents or not given.n_features:
            raise ValueError(
                f"{type(ranker).__name__}.fit: {name} has {given.n_documents} documents and {given.n_features} features; both are needed"
            )
        if is_sparse(given.features) and not ranker.sparse_features:
            raise ValueError(
                f"{type(ranker).__name__}.fit: the features of {name} are sparse, and {ranker.kind} needs dense ones (features.toarray()); "
                "ltr.LambdaMART supports sparse ones"
            )
    if queries.document_weights is not None and not queries.document_weights.any():
        raise ValueError(
            f"{type(ranker).__name__}.fit: document_weights: must be one number, 0 or {WEIGHTS}, for each of the {queries.n_documents} documents, and not all 0"
        )
    if queries.document_weights is not None and not ranker.document_weights:
        raise ValueError(f"{type(ranker).__name__}.fit: it does not support weights of documents; ltr.LambdaMART does")
    if queries.weights is not None and not ranker.query_weights:
        raise ValueError(f"{type(ranker).__name__}.fit: queries have weights, and {ranker.kind} does not support them")
    if valid is not None and valid.names != queries.names:
        raise ValueError(
            f"{type(ranker).__name__}.fit: valid has the features {few_of(valid.names)}, and queries {few_of(queries.names)}"
        )
