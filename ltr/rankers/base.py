"""What every ranker is: a frozen dataclass of its parameters and of what it learned; saved, loaded and identified by a digest.

A ranker subclasses `Ranker` and defines how it learns (`fit`), how it scores (`_scores`), how its scores depend on its weights
(`_surface`) and how what it learned is written as arrays (`_learned_arrays`, `_with_arrays`). Parameters, digest, saving and loading
follow from its fields; class traits say what else it can do. On disk: JSON for people, npz for the arrays, no pickle.
"""

from __future__ import annotations

import json
import math
import warnings
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from ltr.data.arrays import rows_of
from ltr.data.masked import unmasked
from ltr.data.named import Named
from ltr.data.plain_function import PlainFunction
from ltr.data.queries import WEIGHTS, FarValueError, Queries, as_float32, in_order
from ltr.data.sparse import SparseFeatures, is_sparse, sparse_features
from ltr.kernels.kernel import Array, Bools, Floats, Floats32
from ltr.metrics.conventions import Conventions
from ltr.metrics.evaluation import NOT_RANKED
from ltr.metrics.measure import Measure
from ltr.objectives.effective_pairs import Ledger
from ltr.objectives.terms import Term, Written, terms_from
from ltr.objectives.unbiased import Unbiased
from ltr.rankers.parameters import Span, check_parameters
from ltr.rankers.surface import Surface
from ltr.rankers.training import Callback, Curve

FORMAT = 2
"""Version of ``model.json``; raised when older versions of the program cannot read what is written."""
MOST_DENSE = 1 << 28
"""Numbers of sparse features that are made dense at once."""

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
"""Values that JSON can hold."""
Arrays = dict[str, Array]
"""What a ranker learned, by name."""
Tick = Callable[[], None]
"""Called after every tree, epoch or iteration of a training; what it raises ends the training."""


class Frame(Protocol):
    """What is used of a frame of polars or pandas."""

    @property
    def columns(self) -> Iterable[str]:
        """Their names."""
        ...

    @overload
    def __getitem__(self, names: str) -> ArrayLike: ...

    @overload
    def __getitem__(self, names: list[str]) -> Frame: ...

    def __len__(self) -> int: ...

    def to_numpy(self) -> Array:
        """``[rows, columns]``."""
        ...


Features = ArrayLike | Frame
"""``[documents, features]``, or a frame whose columns have the features' names."""

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
        super().__init__(f"row {row + 1}: {why}")
        self.row, self.why = row, why


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
        traceable: its sample and fit can be drawn (`ltr.linear.conditional.trace`).
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
    traceable: ClassVar[bool] = False
    n_inputs: ClassVar[int | None] = None
    iterations_from: ClassVar[str | None] = None
    snapshots_from: ClassVar[str | None] = None
    spans: ClassVar[Mapping[str, Span]] = {}
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
            raise ValueError(f"{type(self).__name__}: conventions={self.conventions!r} is no ltr.Conventions")

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

    def go_on(self, begun: Self, queries: Queries, valid: Queries | None = None, tick: Tick | None = None) -> Self:
        """What `fit` gives, byte for byte, without doing again what `begun` did: a ranker fitted to the same queries with fewer iterations
        and otherwise the same parameters.

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
                raise ValueError(f"{type(self).__name__}: {what} cannot be given to it; LambdaMART takes them")
        return self.fit(queries, valid[0] if valid else None, tick)

    def first(self, iterations: int) -> Self:
        """The ranker of the first so many iterations, for one whose scores are a sum over them.

        Raises:
            ValueError: for more than there are, or a ranker whose scores are no such sum.
        """
        raise ValueError(f"{self.kind}: its scores are no sum over trees, of which the first could be taken")

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
        return f"{self.kind} has no score for its features: they are too large"

    def moved(self, weights: Floats) -> Self:
        """The ranker with other weights, ``float64 [weights]`` as those of its `surface`; what training left of its states is gone.

        Raises:
            ValueError: for a ranker whose weights cannot be set freely.
        """
        raise ValueError(f"{self.kind}: {self.why_fixed}")

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


def checked_features(features: Features, names: tuple[str, ...]) -> Floats32:
    """``float32 [documents, features]`` of an array, or of a frame whose columns have the model's feature names.

    Raises:
        ValueError: when the model is not fitted, the width differs, a named feature is missing or one is no number.
    """
    if not names:
        raise ValueError("this model is not fitted")
    if is_sparse(features):
        rows = checked_sparse(features, names)
        if rows.shape[0] * rows.shape[1] > MOST_DENSE:
            raise ValueError(
                f"features: {rows.shape[0]:,} × {rows.shape[1]:,} of them are too many to be made dense here; give fewer rows, or their toarray()"
            )
        dense: Floats32 = rows.toarray()
        return dense
    if columns := columns_of(features):
        if missing := [name for name in names if name not in columns]:
            raise ValueError(f"features missing in the data: {_few(missing)}")
        features = _numbers(cast(Frame, features)[list(names)], names)
    try:
        array = as_float32(np.asarray(unmasked(features)), "features")
    except FarValueError:
        raise
    except (TypeError, ValueError, OverflowError):
        meant = "; of ltr.Queries, give their features" if isinstance(features, Queries) else ""
        raise ValueError(f"features: {_named(features)}; expected numbers [documents, {len(names)}]{meant}") from None
    if array.ndim != 2 or array.shape[1] != len(names):
        raise ValueError(f"features have shape {array.shape}; the model was fitted on {len(names)} features")
    return array


def columns_of(X: Features) -> list[str]:
    """Columns of a frame; none of an array, or of a frame whose columns are numbered.

    Raises:
        ValueError: for a lazy frame or an Arrow table, for two columns of one name, and where some are named by text and others are not.
    """
    if hasattr(X, "collect") and not hasattr(X, "__len__"):
        raise ValueError(f"X: a {type(X).__name__} holds no rows yet; collect() it first")
    if hasattr(X, "column_names") and hasattr(X, "to_pandas"):
        raise ValueError(f"X: a {type(X).__name__} of Arrow; give polars.from_arrow(X), or its to_pandas()")
    columns = list(getattr(X, "columns", ()))
    require_distinct(columns, "X")
    if 0 < (text := sum(isinstance(name, str) for name in columns)) < len(columns):
        other = next(name for name in columns if not isinstance(name, str))
        raise ValueError(
            f"X: {text} of {len(columns)} columns are named by text, and one is {other!r}; give all of them names of text"
        )
    return columns if all(isinstance(name, str) for name in columns) else []


def require_distinct(columns: list[str], what: str) -> None:
    """Raises ValueError where two columns have one name, and nobody knows which is meant."""
    if len({*columns}) < len(columns):
        raise ValueError(f"{what}: two columns are called {next(name for name in columns if columns.count(name) > 1)!r}")


_NO_NUMBERS = ("category", "categorical", "enum", "date", "timedelta", "duration", "time", "period")
"""How the names of types begin, in pandas and polars, that hold numbers only as their own code."""


def _numbers(frame: Frame, names: tuple[str, ...]) -> Floats32:
    kinds = zip(names, getattr(frame, "dtypes", ()), strict=False)
    text = [name for name, kind in kinds if f"{kind}".lower().startswith(_NO_NUMBERS)]
    if not text:
        try:
            return as_float32(np.asarray(frame.to_numpy()), "features")
        except FarValueError:
            raise
        except (TypeError, ValueError):
            columns = [unmasked(frame[name]) for name in names]
            text = [name for name, column in zip(names, columns, strict=True) if not _is_numeric(column)]
            if not text:
                numbers = (as_float32(np.asarray(column), name) for name, column in zip(names, columns, strict=True))
                return rows_of(numbers, len(columns[0]), len(columns))
    raise ValueError(
        f"features: column {text[0]!r} holds no numbers; ltr.Estimator knows categories by the column that it was fitted to"
    )


def _is_numeric(column: object) -> bool:
    try:
        as_float32(np.asarray(column), "")
    except FarValueError:
        return True
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def checked_sparse(features: object, names: tuple[str, ...]) -> SparseFeatures:
    """`ltr.data.sparse.sparse_features`, as many columns as there are names.

    Raises:
        ValueError: when the model is not fitted or the width differs.
    """
    rows = sparse_features(features)
    if not names:
        raise ValueError("this model is not fitted")
    if rows.shape[1] != len(names):
        raise ValueError(f"features have shape {rows.shape}; the model was fitted on {len(names)} features")
    return rows


def with_features_of(ranker: Ranker, queries: Queries, caller: str) -> Queries:
    """The queries with the features that a fitted ranker reads, by name and in its order.

    Raises:
        ValueError: where they lack one, and for anything but these two; `caller` is what the user called.
    """
    if not isinstance(ranker, Ranker) or not isinstance(queries, Queries):
        inner = "; of an estimator, its model_" if hasattr(ranker, "get_params") else ""
        raise ValueError(
            f"{caller}: given {type(ranker).__name__} and {type(queries).__name__}; it takes a fitted ranker and ltr.Queries{inner}"
        )
    missing = [name for name in ranker.names if name not in queries.names]
    if missing:
        raise ValueError(f"{caller}: the queries have no feature {missing[0]!r}, which the model reads")
    return in_order(queries, ranker.names)


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
                f"{type(ranker).__name__}.fit: {name} is {_named(given)}; it takes ltr.Queries(features, labels, offsets), "
                "and ltr.Estimator(model).fit(X, y, qid) takes arrays"
            )
        if not given.n_documents or not given.n_features:
            raise ValueError(
                f"{type(ranker).__name__}.fit: {name} has {given.n_documents} documents and {given.n_features} features; both are needed"
            )
        if is_sparse(given.features) and not ranker.sparse_features:
            raise ValueError(
                f"{type(ranker).__name__}.fit: the features of {name} are sparse, and {ranker.kind} needs dense ones (features.toarray()); "
                "ltr.LambdaMART takes them as they are"
            )
    if queries.document_weights is not None and not queries.document_weights.any():
        raise ValueError(
            f"{type(ranker).__name__}.fit: document_weights: one number, 0 or {WEIGHTS}, for each of the {queries.n_documents} documents, and not all 0"
        )
    if queries.document_weights is not None and not ranker.document_weights:
        raise ValueError(f"{type(ranker).__name__}.fit: it does not obey weights of documents; ltr.LambdaMART does")
    if queries.weights is not None and not ranker.query_weights:
        raise ValueError(f"{type(ranker).__name__}.fit: queries have weights, and {ranker.kind} does not obey them")
    if valid is not None and valid.names != queries.names:
        raise ValueError(
            f"{type(ranker).__name__}.fit: valid has the features {_few(valid.names)}, and queries {_few(queries.names)}"
        )


def _named(given: object) -> str:
    """What something is, for people: its type, and an array's shape."""
    shape = getattr(given, "shape", None)
    return f"a {type(given).__module__.split('.')[0].replace('builtins', 'Python')} {type(given).__name__}{f' {shape}' if shape else ''}"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")


def save(model: Ranker, folder: str | Path) -> None:
    """Writes ``model.json`` and ``model.npz`` into `folder`, which is made where missing. A model that is there is replaced when both are written:
    whenever this is interrupted, killed too, `load` finds the one or the other.

    Raises:
        ValueError: for what is no ranker, or one that is not fitted.
    """
    if not isinstance(model, Ranker):
        inner = "; of an estimator, save its model_" if hasattr(model, "get_params") else ""
        raise ValueError(f"save: model is {_named(model)}; it takes a fitted ranker{inner}")
    about: dict[str, Json] = {
        "format": FORMAT,
        "kind": model.kind,
        "digest": model.digest,
        "parameters": model.parameters,
        "features": list(model.names),
    }
    arrays = model.arrays
    text = json.dumps({**about, "content": content_digest(about, arrays)}, indent=1) + "\n"
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    first, last = folder / "model.npz.partial", folder / "model.json.partial"
    _settle(first, last)  # of one that was killed
    try:
        with open(first, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        last.write_text(text, encoding="utf-8")
        first.replace(folder / "model.npz")
    finally:
        _settle(first, last)


def _settle(first: Path, last: Path) -> None:
    """Where the arrays are in their place, what is said of them follows; otherwise nothing is left of either."""
    if first.exists():
        last.unlink(missing_ok=True)
        first.unlink()
    elif last.exists():
        last.replace(last.with_suffix(""))


def _sayings(folder: Path) -> Path:
    """``model.json``, or what was to replace it where `save` was killed with the arrays in their place."""
    last = folder / "model.json.partial"
    return last if last.exists() and not (folder / "model.npz.partial").exists() else folder / "model.json"


def content_digest(about: Mapping[str, Json], arrays: Mapping[str, Array]) -> str:
    """sha256 of all that a saved model consists of: ``model.json`` without this digest itself, and every array. Models saved by 0.1.0
    have no such digest."""
    written = json.dumps({name: value for name, value in about.items() if name != "content"}, sort_keys=True)
    return sha256(f"{written}{digest_of('', arrays)}".encode()).hexdigest()


def _about(path: Path) -> dict[str, Any]:
    """What ``model.json`` says, each entry of its type."""
    about = json.loads(path.read_text("utf-8"))
    if not isinstance(about, dict):
        raise ValueError("model.json holds no JSON object")
    if about.get("format") != FORMAT:
        raise ValueError(f"model format {about.get('format')!r}, this version reads {FORMAT}")
    for name, kind in _ENTRIES.items():
        if not isinstance(about.get(name, "" if name == "content" else None), kind):
            raise ValueError(f"model.json: {name!r} is {'missing' if name not in about else f'no {_WORDS[kind]}'}")
    strange = [name for name in about if name not in _ENTRIES]
    if strange:
        raise ValueError(f"model.json: unknown entry {strange[0]!r}")
    if not all(isinstance(name, str) for name in about["features"]):
        raise ValueError("model.json: 'features' is no list of names")
    return about


_ENTRIES: dict[str, type] = {"format": int, "kind": str, "digest": str, "parameters": dict, "features": list, "content": str}
_WORDS: dict[type, str] = {int: "whole number", str: "text", dict: "JSON object", list: "list"}


def _arrays(path: Path) -> Arrays:
    """The arrays of an archive that `save` wrote. Nothing is allocated for an array that claims more than its entry in the file holds."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            if entry.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"array {name!r} is compressed")
            with archive.open(entry) as file:
                read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
                shape, by_columns, dtype = read[np.lib.format.read_magic(file)](file)
                if dtype.hasobject:
                    raise ValueError(f"array {name!r} holds objects")
                held = entry.file_size - file.tell()
                if math.prod(shape) * dtype.itemsize != held or min(shape, default=0) < 0:
                    raise ValueError(f"array {name!r} claims shape {shape} of {dtype} and holds {held} bytes")
                array = np.frombuffer(bytearray(file.read()), dtype)
                arrays[name] = array.reshape(shape, order="F").copy(order="C") if by_columns else array.reshape(shape)
    return arrays


def load(folder: str | Path, kinds: Mapping[str, type[Ranker]]) -> Ranker:
    """The model that `save` wrote into `folder`.

    Raises:
        ValueError: for a folder without a model, another format, an unknown kind, or files that do not match their digests.
    """
    folder = Path(folder)
    try:
        about, arrays = _about(_sayings(folder)), _arrays(folder / "model.npz")
    except Exception as error:  # of the parsers of JSON, zip and npy, which fail in a dozen ways on bytes that may be anything
        raise ValueError(f"{folder}: no readable model.json and model.npz ({_sentence(error)})") from error
    kind = about["kind"]
    if kind not in kinds:
        raise ValueError(f"{folder}: unknown kind of model {kind!r}; known: {', '.join(kinds)}")
    scored = {name: array for name, array in arrays.items() if "/" not in name}
    content = content_digest(about, arrays)
    if digest_of(kind, scored) != about["digest"] or about.get("content", content) != content:
        raise ValueError(
            f"{folder}: model.json and model.npz do not match the digest in model.json; they were changed or are damaged"
        )
    try:
        model = kinds[kind].restored(about["parameters"], arrays, tuple(about["features"]))
        same = model.digest == about["digest"]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{folder}: what is written there is no {kind} ({_sentence(error)})") from error
    if "content" not in about:
        warnings.warn(
            f"{folder}: version 0.1.0 saved it, without a digest of its parameters and features: nothing tells whether these were changed since "
            "(`ltr.save` writes one)",
            stacklevel=3,
        )
    if not same:
        raise ValueError(
            f"{folder}: parameters and arrays do not match the digest in model.json; the files were changed or are damaged"
        )
    return model


def _sentence(error: Exception) -> str:
    """An error in one short line; one that is no sentence begins with its type."""
    said = " ".join(str(error).split())
    said = said if isinstance(error, ValueError | OSError) and said else f"{type(error).__name__} {said}".strip()
    return said if len(said) <= 200 else f"{said[:200]} …"
