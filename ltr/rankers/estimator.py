"""Any ranker with scikit-learn's interface, without importing scikit-learn.

A ranker is frozen and its `fit` returns a copy; scikit-learn's searches want an object that `fit` and `set_params` change in place and
that `clone` can recreate from `get_params`. So one thin `Estimator` holds a ranker, as XGBRanker and LGBMRanker hold a booster, and the
rankers stay as they are. A ranker's parameters are named as scikit-learn names nested ones, ``model__learning_rate``.

The queries reach `fit` and `score` in three ways. A frame has them in a column (``qid``, as for XGBRanker), which every split keeps. The
argument ``qid`` is routed by scikit-learn where metadata routing is on; `fit` and `score` request it on their own. ``group``, the sizes
of consecutive queries as for LGBMRanker, is for direct calls: no split can cut it.

`fit` takes what LGBMRanker's and XGBRanker's take, by their names. Where these differ, both ways work: ``sample_weight`` counts documents in
LightGBM and queries in XGBoost, and its length tells which; ``eval_metric`` is an argument of `fit` in one and of the ranker in the other
(here `stop_on`). ``docs/coming-from.md`` has the rest.
"""

from __future__ import annotations

import difflib
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from ltr.data.named import Named
from ltr.data.queries import canonical
from ltr.kernels.kernel import Floats
from ltr.kernels.threads import threads
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import Measure
from ltr.rankers.average import Average
from ltr.rankers.base import OF_ESTIMATORS, Ranker, Tick
from ltr.rankers.column import Column
from ltr.rankers.features import Features, Frame, columns_of
from ltr.rankers.parameters import whole
from ltr.rankers.tables import Reading, are_numbers, categories_of, values_in, weighed
from ltr.rankers.training import Callback, checked_callbacks, mean_measure


@dataclass(eq=False)
class Estimator(Named):
    """A ranker as a scikit-learn estimator, for `clone`, searches over parameters, and the end of a pipeline.

    ``X`` is an array ``[documents, features]`` or a frame of polars or pandas. In frames to be
    scored, features are found by their names in `fit`, in any order and among other columns. A category is encoded by its position among
    those that its column had in `fit`; an unknown category counts as missing. `ltr.LambdaMART` splits on sets of categories unless its
    `categorical` names other features; rankers of numbers take the codes for amounts, with a warning. Rows of one query need not be adjacent. ``y`` is the judged relevance ``[documents]``, 0 and up; NaN is a document without a judgement.

    Args:
        model: a ranker, of any kind in `ltr.KINDS`.
        measure: the measure whose mean `score` returns; greater must be better.
        query: column of a frame that holds the query of each row and is not a feature.
        n_jobs: maximum number of threads of `fit`, `predict` and `score`; None or -1: all. Scores do not depend on it.
        verbose: a function that `fit` calls with a line of text after every iteration, such as ``print``; None, 0 or False: no output.

    Attributes:
        model_: the fitted ranker.
        best_iteration_: the iteration that was kept; None for rankers that do not choose one.
        evals_result_: measures per iteration, ``{"train": {"ndcg@10": […]}, "valid": …}``; NaN where a measure was not computed, and no entry
            if it never was. With several `eval_set`, they are called ``valid_0``, ``valid_1``, ….
        feature_importances_: ``float64 [features]``; for trees, the total gain of each feature's splits.
        n_features_in_: number of features.
        feature_names_in_: their names ``[features]``; only if `fit` was given a frame.
        categories_: the categories of each categorical column, in the order of their codes; columns in `themselves_` are not encoded.
        themselves_: columns whose categories are whole numbers from 0 to 65,535, which serve as their own codes.
    """

    model: Ranker
    measure: str = "ndcg_10"
    query: str = "qid"
    n_jobs: int | None = None
    verbose: Callable[[str], object] | int | None = None

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """The parameters by name; with `deep` the ranker's own too, as ``model__…``."""
        own: dict[str, object] = {field.name: getattr(self, field.name) for field in fields(self)}
        inner = self.model.parameters if deep and isinstance(self.model, Ranker) else ()
        return own | {f"model__{name}": getattr(self.model, name) for name in inner}

    def set_params(self, **parameters: Any) -> Self:
        """Sets parameters in place: a new `model` first, then its ``model__…``.

        Raises:
            ValueError: for a name that is not a parameter, suggesting similar ones, or a value that the ranker refuses.
        """
        model = parameters.pop("model", self.model)
        theirs = model.parameters if isinstance(model, Ranker) else ()
        known = [*(field.name for field in fields(self)), *(f"model__{name}" for name in theirs)]
        for name in parameters:
            if name not in known:
                plain = name.removeprefix("model__")
                elsewhere: Mapping[str, str] = getattr(type(model), "elsewhere", {})
                ours = elsewhere.get(plain, OF_ESTIMATORS.get(plain))
                if ours == "":
                    raise ValueError(f"Estimator: no parameter {name!r}; it has no equivalent here")
                meant = OF_ESTIMATORS.get(plain, f"model__{ours}")
                near: list[str] = [meant] if ours else difflib.get_close_matches(name, known, n=2) or known
                raise ValueError(f"Estimator: no parameter {name!r}; did you mean {' or '.join(near)}?")
        inner = {name.removeprefix("model__"): value for name, value in parameters.items() if name.startswith("model__")}
        self.model = replace(model, **inner) if inner else model
        for name in parameters.keys() & {field.name for field in fields(self)}:
            setattr(self, name, parameters[name])
        return self

    def fit(
        self,
        X: Features,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        valid: Sequence[Any] | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        eval_set: Sequence[Sequence[Any]] | None = None,
        eval_group: Sequence[ArrayLike] | None = None,
        eval_qid: Sequence[ArrayLike] | None = None,
        eval_metric: Any = None,
        callbacks: Callback | Sequence[Callback] | None = None,
        init_model: Ranker | Estimator | None = None,
    ) -> Self:
        """Fits the ranker to queries.

        Args:
            qid: the query of each row ``[documents]``, numbers or text; for arrays, and frames without the column.
            group: or the sizes of the queries ``int [queries]``, whose rows are adjacent.
            valid: ``(X, y)`` or ``(X, y, qid)``, the validation queries on which the best iteration is chosen; `eval_set` of one.
            sample_weight: how much each document counts ``[documents]``, 0 and up, or each query ``[queries]``, above 0 and in the order
                in which they first appear. Measures ignore both.
            eval_set: one or several such pairs or triples. With several, or several measures, training stops by any of them.
            eval_group: for pairs without a query, the sizes of the queries of each set.
            eval_qid: or the query of each row of each set.
            eval_metric: what chooses the best iteration, in place of the ranker's `stop_on`: a measure, a function of (scores, queries)
                of which more is better, or several.
            callbacks: called after every iteration with an `ltr.rankers.training.Progress`; where one returns something true, training ends.
            init_model: a fitted ranker or estimator, whose trees come first and count among the ranker's `n_trees`.

        Raises:
            ValueError: for features that are not numbers, shapes that differ, queries given twice or not at all, an `init_model` that is a
                ranker where there are columns of categories, which an estimator alone knows, and whatever else the ranker refuses.
        """
        if not isinstance(self.model, Ranker):
            raise ValueError(f"Estimator: model={self.model!r} is not a ranker, such as ltr.LambdaMART()")
        Measure.maximised(self.measure)
        categories, themselves = _after(init_model, X, self.query)
        sparse = self.model.sparse_features
        queries = Reading(self.query, categories=categories, sparse=sparse, themselves=themselves).queries(X, y, qid, group)
        queries = queries if sample_weight is None else weighed(queries, sample_weight)
        if queries.weights is not None and not self.model.query_weights:
            raise ValueError(f"sample_weight: {type(self.model).__name__} does not support weights of queries")
        reading = Reading(self.query, queries.names, categories, sparse, themselves)
        held_out = [reading.queries(*one) for one in _sets(valid, eval_set, eval_group, eval_qid)]
        start = init_model._fitted if isinstance(init_model, Estimator) else init_model
        _warn_of_amounts(self.model, X, categories)
        with self._threads():
            fitted = _split_by_categories(self._stopped_by(eval_metric), tuple(categories)).fit_watched(
                queries, held_out, self._ticks(), checked_callbacks(callbacks), start
            )
        # All of it at once: a fit that is refused or interrupted leaves what there was, and its trees read their own categories.
        self.model_, self.categories_, self.themselves_ = fitted, categories, themselves
        self.best_iteration_ = self.model_.best_iteration
        self.evals_result_ = _watched(self.model_)
        self.n_features_in_ = queries.n_features
        vars(self).pop("feature_names_in_", None)
        if columns_of(X):
            self.feature_names_in_ = np.array(queries.names, object)
        return self

    def predict(self, X: Features, n_trees: int | None = None) -> Floats:
        """Scores ``float64 [documents]`` in the order of the rows, higher is better; the queries do not matter.

        Args:
            n_trees: of the first so many trees, where the ranker has any.

        Raises:
            ValueError: before `fit`; for missing features, which it names, or a different number of them; for more trees than there are.
        """
        ranker = self._fitted if n_trees is None else self._fitted.first(n_trees)
        with self._threads():
            return ranker.predict(self._reading.features(X)[0])

    def score(self, X: Features, y: ArrayLike, qid: ArrayLike | None = None, group: ArrayLike | None = None) -> float:
        """Mean of the measure over the queries where it is defined, under the conventions of the ranker.

        Raises:
            ValueError: as `fit` and `predict`; for a measure of which less is better, or that is defined on no query.
        """
        measure = Measure.maximised(self.measure)
        queries = canonical(self._reading.queries(X, y, qid, group))
        with self._threads():
            scores = self._fitted.ranking_scores(queries.features)
            return mean_measure(str(measure), queries, scores, getattr(self.model, "conventions", Conventions()))

    @property
    def feature_importances_(self) -> Floats:
        """By gain.

        Raises:
            AttributeError: before `fit`, and for rankers without any.
        """
        found = vars(self)["model_"].importances if "model_" in vars(self) else {}
        if "gain" not in found:
            raise AttributeError(
                f"Estimator: {self.model!r} has no feature importances{'' if 'model_' in vars(self) else ' before fit'}"
            )
        gains: Floats = found["gain"]
        return gains

    @contextmanager
    def _threads(self) -> Iterator[None]:
        """At most `n_jobs` threads for what is compiled."""
        n_jobs = int(self.n_jobs) if isinstance(self.n_jobs, np.integer) else self.n_jobs
        if n_jobs is not None and n_jobs not in whole(1) and n_jobs != -1:
            raise ValueError(f"Estimator: n_jobs={n_jobs!r} is neither a number of threads nor -1 or None for all")
        with threads(n_jobs):
            yield

    def _ticks(self) -> Tick | None:
        """What the ranker calls after every iteration."""
        if not self.verbose:
            return None
        if not callable(self.verbose):
            raise ValueError(
                f"Estimator: verbose={self.verbose!r}: pass a function that accepts a line of text, such as print (not a number, as in LightGBM)"
            )
        say, numbers = self.verbose, itertools.count(1)
        of_all = f" of at most {self.model.n_iterations}" if self.model.n_iterations else ""
        return lambda: cast(None, say(f"{self.model.kind}: iteration {next(numbers)}{of_all}"))

    @property
    def _fitted(self) -> Ranker:
        if "model_" not in vars(self):
            raise _unfitted("Estimator: call fit before predict or score")
        return self.model_

    @property
    def _reading(self) -> Reading:
        themselves = getattr(self, "themselves_", ())  # those of 0.1.0 know categories by their places
        return Reading(self.query, self._fitted.names, self.categories_, self._fitted.sparse_features, themselves)

    def _stopped_by(self, metric: object) -> Ranker:
        """The ranker, with another measure to choose its best iteration by."""
        if metric is None:
            return self.model
        if "stop_on" not in self.model.parameters:
            raise ValueError(f"eval_metric: {type(self.model).__name__} chooses no iteration by a measure")
        single = metric[0] if isinstance(metric, list | tuple) and len(metric) == 1 else metric
        changed: dict[str, Any] = {"stop_on": single}
        return replace(self.model, **changed)

    def get_metadata_routing(self) -> object:
        """The metadata that scikit-learn routes to `fit` and `score` where routing is on: ``qid``, and ``sample_weight`` to `fit`. What else
        `fit` is to be given, `set_fit_request` says; of a search with weights, `set_score_request` that `score` has none."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.fit.add_request(param="qid", alias=True)
        request.fit.add_request(param="sample_weight", alias=True)
        for name in _ASKED_FOR:
            request.fit.add_request(param=name, alias=None)
        request.score.add_request(param="qid", alias=True)
        # None is asked about where weights are given, and known: a pipeline's score always names it.
        request.score.add_request(param="sample_weight", alias=None)
        return getattr(self, "_metadata_request", request)  # by this name scikit-learn's `clone` takes it along

    def set_fit_request(self, **asked: bool | None) -> Self:
        """Says what else `fit` is given where scikit-learn routes metadata: ``eval_set=True``, and so each other argument of `fit`.

        Raises:
            TypeError: for what is none.
        """
        request: Any = self.get_metadata_routing()
        for name, alias in asked.items():
            if name not in (known := ("qid", "sample_weight", *_ASKED_FOR)):
                raise TypeError(f"set_fit_request: fit has no argument {name!r} to be routed; there are {', '.join(known)}")
            request.fit.add_request(param=name, alias=alias)
        self._metadata_request = request
        return self

    def set_score_request(self, *, sample_weight: Literal[False]) -> Self:
        """Says that `score`, which weighs no query, is called without the weights that `fit` gets in a search."""
        if sample_weight is not False:
            raise ValueError(f"sample_weight: {sample_weight!r}; score does not use weights; only False is accepted")
        request: Any = self.get_metadata_routing()
        request.score.add_request(param="sample_weight", alias=False)
        self._metadata_request = request
        return self

    def __sklearn_tags__(self) -> object:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=True), input_tags=InputTags(allow_nan=True))


def _unfitted(sentence: str) -> ValueError:
    """A ValueError; where scikit-learn is installed, its own kind of it, which its tools and their users wait for."""
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return ValueError(sentence)
    return cast(ValueError, NotFittedError(sentence))


_ASKED_FOR = ("group", "valid", "eval_set", "eval_group", "eval_qid", "eval_metric", "callbacks", "init_model")
"""Arguments of `fit` that scikit-learn routes where that is asked for."""


def _after(start: Ranker | Estimator | None, X: Features, query: str) -> tuple[dict[str, list[object]], tuple[str, ...]]:
    """The categories of columns, those of what training starts from first: its trees know them by their places, whatever type the columns have
    now; and the columns whose categories count as themselves, to its trees too."""
    found = categories_of(X, query)
    if isinstance(start, Estimator):
        known, numbers = getattr(start, "categories_", {}), getattr(start, "themselves_", ())
        found = {name: values_in(cast(Frame, X)[name]) for name in columns_of(X) if name in known} | found
        for name, own in found.items():
            kinds = [{isinstance(one, str) for one in of} for of in (own, known.get(name, ()))]
            if all(kinds) and kinds[0].isdisjoint(kinds[1]):
                raise ValueError(
                    f"init_model: its categories of {name!r} are such as {known[name][0]!r}, and here they are such as {own[0]!r}"
                )
            if name in getattr(start, "feature_names_in_", ()) and name not in known and own and not are_numbers(own):
                raise ValueError(
                    f"init_model: it read {name!r} as numbers, and here it holds categories; give the numbers, as in its fit"
                )
        both = {
            name: [*known.get(name, ()), *(one for one in own if one not in known.get(name, ()))] for name, own in found.items()
        }
        for name in numbers:
            if name in both and not are_numbers(both[name]):
                other = next(one for one in both[name] if not are_numbers([one]))
                raise ValueError(
                    f"init_model: it learned categories of {name!r} that are whole numbers up to 65,535, and {other!r} is not one"
                )
        return both, tuple(name for name, own in both.items() if name in numbers or (not known.get(name) and are_numbers(own)))
    if start is not None and found:
        raise ValueError(
            f"init_model: a {type(start).__name__} does not know the categories of {next(iter(found))!r}; give the ltr.Estimator that learned it"
        )
    return found, tuple(name for name, own in found.items() if are_numbers(own))


def _split_by_categories(ranker: Ranker, names: tuple[str, ...]) -> Ranker:
    """The ranker with these columns as its `categorical` features, where it has such and none are named (LightGBM's ``auto``); of an average
    each member."""
    changed: dict[str, Any] = {}
    if names and getattr(ranker, "categorical", None) == ():
        changed["categorical"] = names
    if isinstance(ranker, Average):
        changed["of"] = tuple(_split_by_categories(member, names) for member in ranker.of)
    return replace(ranker, **changed)


def _warn_of_amounts(ranker: Ranker, X: Features, categories: Mapping[str, Sequence[object]]) -> None:
    """Warns where a ranker of numbers takes the places of categories for amounts: of three or more, which pandas does not say to be ordered."""
    members = ranker.of if isinstance(ranker, Average) else (ranker,)
    kinds = [type(one).__name__ for one in members if not hasattr(one, "categorical") and not isinstance(one, Column)]
    for name, own in categories.items() if kinds else ():
        if len(own) > 2 and not getattr(cast(Any, X)[name].dtype, "ordered", False):
            warnings.warn(
                f"column {name!r}: {' and '.join(dict.fromkeys(kinds))} reads numbers, and takes the places of these {len(own):,} categories "
                "for amounts; ltr.LambdaMART splits by them; leave the column out, or make a column of each category",
                stacklevel=3,
            )


def _watched(model: Ranker) -> dict[str, dict[str, list[float]]]:
    if model.curve is None:
        return {}
    history = getattr(model, "history", None) or {}
    first = str(model.watched) if model.watched else next((key for own in history.values() for key in own), None)
    if first is None:
        return {}
    taken = {"train": {first: model.curve.train}, **(history or {"valid": {first: model.curve.valid}})}
    return {
        name: {key: values.tolist() for key, values in own.items()} for name, own in taken.items() if not np.isnan(own[first]).all()
    }


def _sets(
    valid: Sequence[Any] | None,
    eval_set: Sequence[Sequence[Any]] | None,
    eval_group: Sequence[ArrayLike] | None,
    eval_qid: Sequence[ArrayLike] | None,
) -> list[tuple[Any, Any, Any, Any]]:
    """``(X, y, qid, group)`` of every set of validation queries."""
    if valid is not None and eval_set is not None:
        raise ValueError("valid and eval_set: both are validation queries; give one of them")
    if valid is None and eval_set is None:
        for name, given in (("eval_group", eval_group), ("eval_qid", eval_qid)):
            if given is not None:
                raise ValueError(f"{name} needs eval_set")
        return []
    name, several = ("valid", [valid]) if eval_set is None else ("eval_set", [eval_set] if _is_set(eval_set) else eval_set)
    sets = list(several) if isinstance(several, list | tuple) else [several]
    if not sets or not all(map(_is_set, sets)):
        shown = type(sets[0]).__name__ if sets else "an empty list"
        raise ValueError(f"{name}: {shown} is neither (X, y) nor (X, y, qid)")
    sets = [(*one, *[None] * (4 - len(one))) for one in sets]
    for other, of_sets, place in (("eval_qid", eval_qid, 2), ("eval_group", eval_group, 3)):
        if of_sets is None:
            continue
        if not isinstance(of_sets, list | tuple) or len(of_sets) != len(sets):
            raise ValueError(f"{other}: a list with one entry for each of the {len(sets)} sets of validation queries")
        sets = [(*one[:place], given, *one[place + 1 :]) for one, given in zip(sets, of_sets, strict=True)]
    return cast(list[tuple[Any, Any, Any, Any]], sets)


def _is_set(given: object) -> bool:
    """Whether this is ``(X, y)``, ``(X, y, qid)`` or ``(X, y, None, group)``, and no list of them."""
    if not isinstance(given, list | tuple) or not 2 <= len(given) <= 4:
        return False
    first = given[0]
    return not isinstance(first, tuple) and not (isinstance(first, list) and len(first) > 0 and _is_table(first[0]))


def _is_table(given: object) -> bool:
    """Whether this has two axes: an array, a frame, or rows that are lists or tuples."""
    if isinstance(given, list | tuple):
        return np.ndim(given[:1]) == 2
    return len(getattr(given, "shape", ())) == 2
