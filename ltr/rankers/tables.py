"""Tables as queries: arrays and frames of rows, of which each says its query, by the names that LightGBM and XGBoost have for that.

A frame has the query in a column, as XGBRanker's does; arrays have it beside them, as ``qid`` with one entry a row, or as ``group``, the
sizes of queries whose rows are adjacent. LightGBM's ``weight`` has an entry for each row, XGBoost's for each query; the length tells which.
Categorical columns count as the place of each category, as in both; both also remember the categories, and so does a `Reading`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time
from decimal import Decimal
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.data.arrays import rows_of
from ltr.data.letor import key_of
from ltr.data.masked import is_table, unmasked, whole_numbers
from ltr.data.offsets import offsets_from_sizes
from ltr.data.queries import LEFT_OUT, FarValueError, Queries, as_float32, warn_of_lost_digits
from ltr.data.sparse import is_sparse, require_places, sparse_features
from ltr.kernels.kernel import Floats, Floats32, Ints
from ltr.rankers.features import Features, Frame, columns_of


def queries_from(
    X: Features,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    query: str = "qid",
) -> Queries:
    """Makes the `ltr.Queries` that rankers' `fit` takes from a table. Categorical columns are encoded by their type's categories, so training and
    validation tables need the same type (``X_valid.astype(X.dtypes)``; pandas' ``astype("category")`` makes a new one for every table). Only
    `ltr.LambdaMART` with these columns in `categorical` splits by them; other rankers take the codes for amounts.

    Args:
        X: an array ``[documents, features]``, a sparse matrix, or a frame of polars or pandas, whose columns name the features.
        y: judged relevance ``[documents]``, at least 0; NaN for a document without a judgement.
        qid: the query of each row ``[documents]``, numbers or text; rows of one query need not be adjacent.
        group: instead of `qid`, the sizes of the queries ``int [queries]``, whose rows are adjacent.
        sample_weight: weights of documents ``[documents]``, at least 0, or of queries ``[queries]``, above 0 and in the order in which they
            first appear; see `weighed`.
        query: instead of `qid`, the column of a frame that holds the query of each row; it is not a feature.

    Raises:
        ValueError: for features that are not numbers, shapes that differ, queries given twice or not at all, and a column of polars'
            Categorical, whose type has no categories: those of its rows would be numbered otherwise in another table.
    """
    for name in columns_of(X):
        column: Any = cast(Frame, X)[name]
        if name != query and _kind(column) in _OF_ITS_ROWS:
            raise ValueError(
                f"column {name!r}: {_kind(column).capitalize()} numbers only the categories in its own rows, so other tables would be numbered differently; "
                "cast it to polars.Enum with all of them (pandas.CategoricalDtype), or use ltr.Estimator, which remembers them"
            )
    queries = Reading(query, categories=categories_of(X, query), sparse=True).queries(X, y, qid, group)
    return queries if sample_weight is None else weighed(queries, sample_weight)


def weighed(queries: Queries, sample_weight: ArrayLike) -> Queries:
    """The queries of a table with a weight for each of its rows, or for each query. Where all documents of every query weigh alike, and
    something, the weights are the queries'.

    Raises:
        ValueError: for what are not so many numbers from 0.
    """
    given = np.asarray(unmasked(sample_weight))
    numbers = given.dtype.kind in "biuf" and given.shape in ((queries.n_documents,), (queries.n_queries,))
    if not numbers or not (np.isfinite(given) & (given >= 0)).all():
        raise ValueError(
            f"sample_weight: {given.dtype} of shape {given.shape}; expected a finite number, 0 or more, for each of "
            f"{queries.n_documents} documents, or for each of {queries.n_queries} queries"
        )
    weights = given.astype(np.float64)
    by_query = len(given) == queries.n_queries
    of_rows = np.repeat(weights, np.diff(queries.offsets)) if by_query else weights[queries.position]
    first = of_rows[queries.offsets[:-1]]
    alike = (first > 0).all() and np.array_equal(np.repeat(first, np.diff(queries.offsets)), of_rows)
    changed: dict[str, Any] = {"weights": first} if alike else {"document_weights": of_rows}
    # Keys of queries without ids are of what they hold, weights too: those that are alike otherwise may come in any order.
    return replace(queries, **changed, **({} if queries.ids is not None else {"keys": LEFT_OUT}))


@dataclass(frozen=True)
class Reading:
    """How the columns of tables are read, so that what is scored is read as what was learned from.

    Attributes:
        query: column of a frame that holds the query of each row.
        names: of the features, where they are known; then they are looked for, whatever else there is.
        categories: of each categorical column, in order; another category is a missing value.
        sparse: whether features of scipy.sparse stay what they are.
        themselves: columns whose categories are whole numbers and count as these; those of other columns count as their places.
    """

    query: str
    names: tuple[str, ...] = ()
    categories: Mapping[str, Sequence[object]] = field(default_factory=dict)
    sparse: bool = False
    themselves: Collection[str] = ()

    def features(self, X: Features) -> tuple[Floats32, tuple[str, ...]]:
        """``float32 [documents, features]`` and the names a frame gives them: `names`, or where these are empty all columns but `query`.

        Raises:
            ValueError: for what are no numbers, missing features, which are named, another number of them, an array where a column
                holds categories, and numbers where the categories are text, or the other way round.
        """
        columns = columns_of(X)
        if not columns:
            if self.categories:
                raise ValueError(
                    f"X: column {next(iter(self.categories))!r} was learned as categories, by their names; give a table, as in fit"
                )
            sparse = self.sparse and is_sparse(X)
            array = sparse_features(X) if sparse else _numbers(X, "X")
            if sparse and cast(Any, X).dtype != np.float32:
                warn_of_lost_digits(cast(Any, X).tocsr().data, "X")
            if array.ndim != 2 or (self.names and array.shape[1] != len(self.names)):
                known = f"{len(self.names)} features, as in fit" if self.names else "features"
                rule = known if self.names and array.ndim == 2 else f"rows of documents, columns of {known}"
                raise ValueError(f"X: shape {array.shape}; expected {rule}")
            return array, ()
        missing = [name for name in self.names if name not in columns]
        if missing:
            raise ValueError(f"features missing in the data: {', '.join(missing[:5])}{' …' if len(missing) > 5 else ''}")
        frame, taken = cast(Frame, X), self.names or tuple(name for name in columns if name != self.query)
        return rows_of((self._column(frame[name], name) for name in taken), len(frame), len(taken)), taken

    def _column(self, column: Any, name: str) -> Floats32:
        if name not in self.categories:
            numbers = _numbers(column, f"column {name!r}")
            if numbers.ndim != 1:
                raise ValueError(f"column {name!r}: {column.dtype}; features are numbers")
            return numbers
        places: dict[object, float] = {
            category: float(cast(float, category) if name in self.themselves else place)
            for place, category in enumerate(self.categories[name])
        }
        values = column.to_list()
        text = {isinstance(value, str) for value in values if not _is_missing(value)}
        if places and text and text.isdisjoint(isinstance(category, str) for category in places):
            known = ", ".join(map(repr, list(places)[:3]))
            raise ValueError(
                f"column {name!r}: {column.dtype}; its categories are {'text' if text == {False} else 'no text'}, such as {known}"
            )
        found = np.array([places.get(value, np.nan) for value in values], np.float32)
        unknown = [value for value, place in zip(values, found, strict=True) if place != place and not _is_missing(value)]
        if unknown:
            warnings.warn(
                f"column {name!r}: {len(unknown):,} of {len(values):,} values are not categories of fit, such as {unknown[0]!r}; they count as missing",
                stacklevel=2,
            )
        return found

    def queries(self, X: Features, y: ArrayLike, qid: ArrayLike | None = None, group: ArrayLike | None = None) -> Queries:
        """The rows as queries, in order of first appearance.

        Raises:
            ValueError: as `queries_from`.
        """
        features, given = self.features(X)
        labels, (n, n_features) = _labels(y), features.shape
        if not n or not n_features:
            raise ValueError(f"X: shape {features.shape}, {n} rows and {n_features} features: there is nothing to rank by")
        if labels.shape != (n,):
            raise ValueError(f"y: shape {labels.shape} for {n} rows of X")
        column = cast(Frame, X)[self.query] if self.query in columns_of(X) else None
        ways = {f"column {self.query!r}": column, "qid": qid, "group": group}
        used = [name for name, value in ways.items() if value is not None]
        if len(used) != 1:
            raise ValueError(
                f"give the query of each row by exactly one of {', '.join(ways)}; given: {' and '.join(used) or 'none'}"
            )
        if group is not None:
            sizes = np.asarray(unmasked(group))
            if sizes.dtype.kind == "f" and ((sizes >= 1) & (sizes <= n) & (sizes == np.floor(sizes))).all():
                sizes = sizes.astype(np.int64)
            if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any() or (sizes > n).any() or sizes.sum() != n:
                raise ValueError(f"group: sizes of the queries, whole numbers from 1 that sum to {n}, the rows of X")
            return Queries(features, labels, offsets_from_sizes(sizes), names=given or self.names)
        of_rows = column if qid is None else qid
        assert of_rows is not None
        of_row, ids = _by_appearance(of_rows, n)
        order = np.argsort(of_row, kind="stable")
        return Queries(
            features=features[order],
            labels=labels[order],
            offsets=offsets_from_sizes(np.bincount(of_row)),
            keys=np.array([key_of(query) for query in ids], np.uint64),
            position=order,
            names=given or self.names,
            ids=np.array(ids),
        )


def categories_of(X: Features, query: str) -> dict[str, list[object]]:
    """The categories of each categorical column of a frame of pandas or polars but `query`, in order."""
    found = {name: _own_categories(cast(Frame, X)[name]) for name in columns_of(X) if name != query}
    return {name: categories for name, categories in found.items() if categories is not None}


def _is_missing(value: object) -> bool:
    """None, NaN, and what pandas has in their place."""
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float | np.generic | Decimal) and value != value)
    )


_LARGEST_CODE = 65_535
"""Larger numbers make large files of other tools, which have a bit for each up to the largest."""


def are_numbers(categories: Sequence[object]) -> bool:
    """Whether categories are whole numbers that can count as themselves, so that a ranker that is kept without its estimator reads them alike."""
    whole = (isinstance(one, int | float) and one == one and 0 <= one <= _LARGEST_CODE and one % 1 == 0 for one in categories)
    return len(categories) > 0 and all(whole)


def _own_categories(column: Any) -> list[object] | None:
    """Those that the column's type has, in its order; of polars' Categorical and Arrow's dictionaries, whose types have none, those of its rows
    by the alphabet."""
    kind = _kind(column)
    if kind not in ("category", "enum", *_OF_ITS_ROWS):
        return None
    if kind in _OF_ITS_ROWS:
        return values_in(column)
    return [one.item() if isinstance(one, np.generic) and one.dtype.kind in "biuf" else one for one in column.dtype.categories]


def values_in(column: Any) -> list[object]:
    """Those of a column that are not missing, in order."""
    found: set[Any] = {value for value in column.to_list() if not _is_missing(value)}
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=repr)


_OF_ITS_ROWS = ("categorical", "dictionary")
"""Types of polars and Arrow that say no categories."""


def _kind(column: Any) -> str:
    """The name of a column's type in small letters, without what it is of."""
    return re.split(r"[(<]", f"{column.dtype}")[0].lower()


def _labels(y: ArrayLike) -> Floats:
    """``float64 [documents]``; of a table with one column, that column."""
    try:
        plain: NDArray[Any] = unmasked(np.asarray(_plain(y)))
        if plain.dtype.kind in "cmMSV":
            raise ValueError
        labels = plain.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"y: {np.asarray(y).dtype}; labels are numbers, 0 and up") from None
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def _plain(values: Any) -> Any:
    """A sparse matrix with all its numbers; missing values as NaN."""
    if hasattr(values, "toarray"):
        require_places(values)
        return values.toarray()
    return unmasked(values)


def _numbers(values: Any, what: str) -> Floats32:
    if is_table(values):  # whose columns are numbered
        columns = (_numbers(values.iloc[:, k], f"column {name!r}") for k, name in enumerate(values.columns))
        return rows_of(columns, *values.shape)
    plain = _plain(values)
    try:
        array = unmasked(np.asarray(plain))
    except ValueError:
        raise ValueError(f"{what}: rows of different lengths; features are a table of numbers, [documents, features]") from None
    try:
        warn_of_lost_digits(array if (whole := whole_numbers(values)) is values else np.asarray(whole), what)
        return as_float32(array, what)
    except FarValueError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{what}: {getattr(values, 'dtype', array.dtype)}; features are numbers") from None


def _by_appearance(qid: ArrayLike, n: int) -> tuple[Ints, list[bytes]]:
    """The number of each row's query, counted as they appear, and the ids as they would be written in a file."""
    values = np.asarray(qid)
    if isinstance(qid, list | tuple):  # of which NumPy makes numbers of one type, or text
        values = np.fromiter(qid, object, len(qid))
    if values.shape != (n,):
        raise ValueError(f"qid: shape {values.shape} for {n} rows of X")
    if np.ma.is_masked(qid):
        raise ValueError(f"qid: row {int(np.ma.getmaskarray(cast(Any, qid)).argmax())} is missing; every row must name its query")
    numbers: dict[tuple[bool, object], int] = {}
    of_row = np.empty(n, np.int64)
    for row, value in enumerate(list(values) if values.dtype.kind == "M" or values.dtype == np.float32 else values.tolist()):
        if _is_missing(value):
            raise ValueError(f"qid: row {row} is missing; every row must name its query")
        try:
            of_row[row] = numbers.setdefault((isinstance(value, bool | np.bool_), value), len(numbers))  # True is no 1
        except TypeError:
            raise ValueError(f"qid: row {row} has a {type(value).__name__}; an id is a text or a number") from None
    ids: dict[bytes, object] = {}
    for _, query in numbers:
        if (other := ids.setdefault(_id(query), query)) is not query:
            raise ValueError(f"qid: {other!r} and {query!r} are written alike, and would be one query; give ids of one type")
    return of_row, list(ids)


def _id(query: object) -> bytes:
    """As files of `lambdaflow run` are read: whole numbers that pandas made floats of are what they were."""
    if isinstance(query, bytes):
        return query
    if isinstance(query, np.generic) and query.dtype.kind in "biuf" and query.dtype != np.float32:
        query = query.item()
    if isinstance(query, np.longdouble) and query == float(query):  # of which `item` makes nothing else
        query = float(query)
    if isinstance(query, Decimal) and query.is_finite() and abs(query) < 10**38 and query == query.to_integral_value():
        query = int(query)
    if isinstance(query, float | np.float32) and abs(exact := float(query)) < 2**63 and query == int(exact):
        query = int(exact)
    if isinstance(query, date | time | np.datetime64):
        return _instant(str(query)).encode()
    if isinstance(query, float | np.float32):
        return _real(query).encode()
    if isinstance(query, Decimal):
        return f"{query:f}".encode()
    try:
        return (str(query).lower() if isinstance(query, bool) else str(query)).encode()
    except UnicodeEncodeError:
        raise ValueError(f"qid: {query!r} is not text") from None


def _real(number: float | np.float32) -> str:
    """In the digits that it needs, with an exponent where polars writes one."""
    if (float(np.float32(1e-6)) if isinstance(number, np.float32) else 1e-5) <= abs(float(number)) < 1e16:
        return np.format_float_positional(number, trim="0")
    return re.sub(r"e-0+", "e-", str(number))


def _instant(written: str) -> str:
    """A day, or a moment in the digits that it needs: its type, which another library makes another, says nothing of it."""
    text = re.sub(r"(\.\d*?)0+$", r"\1", written.replace("T", " ", 1)).removesuffix(".")
    return text.removesuffix(" 00:00:00")
