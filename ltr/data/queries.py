"""A judged data set in memory: queries, their documents, features and label sources.

The documents of a query are adjacent: rows ``offsets[q]:offsets[q + 1]``. Whatever is computed from a `Queries` in *canonical order*
does not depend on the order of rows in the file it came from: queries are sorted by the digest of their id, the documents of a query by
the digest of their features. That digest leaves labels out, so that documents with equal scores, which keep this order, are not sorted
by relevance by accident (at the first iteration all scores are equal).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import chain
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ltr.data.arrays import array_of, ids_of, shown, taken_for_sizes
from ltr.data.digests import GOLDEN, mix, row_digests
from ltr.data.masked import unmasked
from ltr.data.named import Named
from ltr.data.offsets import group_of_rows, offsets_from_sizes
from ltr.data.sparse import ROWS, SparseFeatures, dense_blocks, is_sparse, sparse_features, stacked, widened

LARGEST_WHOLE = 1 << 24
"""Whole numbers up to here are what they are in float32."""
WEIGHTS = "from 1e-15 to 1e15"
"""What a weight may be: the gradients of a query, times its weight and a document's, neither vanish nor overflow."""


def is_weight(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which numbers are `WEIGHTS`."""
    return (values >= 1e-15) & (values <= 1e15)


LEFT_OUT: Any = None
"""Default of an array that is computed where the caller gives none: on an instance it is never None."""


@dataclass(frozen=True, eq=False)
class Queries(Named):
    """Queries with their documents. Arrays of the types below are not copied: later changes to them take effect here too, except that `keys` are
    not computed again.

    Args:
        features: ``float32 [documents, features]``; NaN is a missing value. Or a scipy.sparse matrix, which `ltr.LambdaMART` supports
            without making it dense and other rankers refuse; entries that are not stored are 0.
        labels: ``float64 [documents]``, judged relevance, at least 0; NaN for a document without a judgement.
        offsets: ``int64 [queries + 1]``, first document of each query, then the number of documents.
        keys: ``uint64 [queries]``, digest of each query's id, which seeds its random numbers. By default it is computed from
            the documents' features.
        sources: further label sources by name, each ``float64 [documents]`` with NaN for "no label" (``click``: the
            click label in [0, 1]).
        position: ``int64 [documents]``, the row in the original file, for the ``stable`` tie rule.
        names: feature names (default: ``f1, f2, …``).
        ids: ``bytes [queries]``, query ids as written.
        documents: ``bytes [documents]``, document ids as written.
        weights: ``float64 [queries]``, weight of each query in training, above 0 (default: 1). Measures
            ignore them.
        document_weights: ``float64 [documents]``, at least 0 (default: 1): factors of the gradient and hessian of each document when trees are
            grown. Measures ignore them.
        attributes: further facts about each query by name, such as its language, ``str [queries]`` each, empty for "unknown". They are
            not features.

    Raises:
        ValueError: naming the array, the value and the rule, when shapes or values do not fit.
    """

    features: NDArray[np.float32]
    labels: NDArray[np.float64]
    offsets: NDArray[np.int64]
    keys: NDArray[np.uint64] = LEFT_OUT
    sources: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    position: NDArray[np.int64] = LEFT_OUT
    names: tuple[str, ...] = ()
    ids: NDArray[np.bytes_] | None = None
    documents: NDArray[np.bytes_] | None = None
    weights: NDArray[np.float64] | None = None
    document_weights: NDArray[np.float64] | None = None
    attributes: Mapping[str, NDArray[np.str_]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put(
            "features",
            _sparse(self.features) if is_sparse(self.features) else _features(self.features),
        )
        labels = array_of("labels", self.labels, np.float64)
        put("labels", labels + 0.0 if np.signbit(labels).any() else labels)  # −0 is 0
        put("offsets", array_of("offsets", self.offsets, np.int64))
        for name in ("sources", "attributes"):
            if not isinstance(getattr(self, name), Mapping):
                raise ValueError(f"{name}: a mapping of names to arrays, not {type(getattr(self, name)).__name__}")
        put("sources", {name: array_of(f"source {name!r}", values, np.float64) for name, values in self.sources.items()})
        n_documents = len(self.labels)
        if self.features.shape[0] != n_documents:
            raise ValueError(f"features: shape {self.features.shape}, but there are {n_documents} labels: one row per document")
        if len(self.offsets) < 1 or self.offsets[0] != 0 or self.offsets[-1] != n_documents or (np.diff(self.offsets) < 1).any():
            meant = taken_for_sizes(self.offsets, n_documents)
            raise ValueError(
                f"offsets: must rise from 0 to {n_documents} (the number of documents), at least one document per query{meant}"
            )
        for name, values in self.sources.items():
            if values.shape != (n_documents,):
                raise ValueError(f"source {name!r}: shape {values.shape}, expected ({n_documents},)")
        put("position", np.arange(n_documents) if self.position is None else array_of("position", self.position, np.int64))
        if self.position.shape != (n_documents,):
            raise ValueError(f"position: shape {self.position.shape}, expected ({n_documents},)")
        if isinstance(self.names, str) or not all(isinstance(name, str) for name in self.names):
            raise ValueError(f"names: must be a name for each feature, not {self.names!r}")
        put("names", tuple(str(name) for name in self.names) or tuple(f"f{k + 1}" for k in range(self.features.shape[1])))
        if len(self.names) != self.features.shape[1]:
            raise ValueError(f"names: {len(self.names)} names for {self.features.shape[1]} features")
        if len({*self.names}) < len(self.names):
            raise ValueError(f"names: two features are called {next(n for n in self.names if self.names.count(n) > 1)!r}")
        for name, expected in (("ids", self.n_queries), ("documents", n_documents)):
            if getattr(self, name) is not None:
                put(name, ids_of(name, getattr(self, name), expected))
        if self.weights is not None:
            put("weights", array_of("weights", self.weights, np.float64))
            if self.weights.shape != (self.n_queries,) or not is_weight(self.weights).all():
                raise ValueError(f"weights: must be one number {WEIGHTS} for each of the {self.n_queries} queries")
        if self.document_weights is not None:
            put("document_weights", array_of("document_weights", self.document_weights, np.float64))
            given = self.document_weights
            if given.shape != (n_documents,) or not (is_weight(given) | (given == 0)).all():
                raise ValueError(f"document_weights: must be one number, 0 or {WEIGHTS}, for each of the {n_documents} documents")
        put("keys", _keys_of(self) if self.keys is None else _given_keys(self.keys))
        if len(self.keys) != self.n_queries:
            raise ValueError(f"keys: {len(self.keys)} keys for {self.n_queries} queries")
        if len(np.unique(self.keys)) < self.n_queries:
            raise ValueError("keys: two queries have the same key")
        put("attributes", {name: np.asarray(values, np.str_) for name, values in self.attributes.items()})
        for name, said in self.attributes.items():
            if said.shape != (self.n_queries,):
                raise ValueError(f"attribute {name!r}: shape {said.shape}, expected ({self.n_queries},)")
        for name, given in (("labels", self.labels), *((f"source {name!r}", values) for name, values in self.sources.items())):
            wrong = (given < 0) | np.isinf(given)
            if wrong.any():
                row = int(wrong.argmax())
                raise ValueError(
                    f"{name}: {given[row]:g} of document {row}; a label must be a finite number, 0 or more, or NaN for none"
                )

    def __repr__(self) -> str:
        """How much there is of everything, in a line."""
        beside = [f"source {name}" for name in self.sources] + [f"attribute {name}" for name in self.attributes]
        return f"Queries({', '.join((f'{self.n_queries} queries', f'{self.n_documents} documents', f'{self.n_features} features', *beside))})"

    @property
    def n_queries(self) -> int:
        """How many queries there are, one less than `offsets`."""
        return len(self.offsets) - 1

    @property
    def n_documents(self) -> int:
        """Rows of `features`, over all queries."""
        return len(self.labels)

    @property
    def of_query(self) -> NDArray[np.int64]:
        """Which query each document is of, ``int64 [documents]``."""
        return group_of_rows(self.offsets)

    @property
    def n_features(self) -> int:
        """Columns of `features`."""
        return int(self.features.shape[1])

    @property
    def digest(self) -> str:
        """sha256 of the content in canonical order: the same for any order of the same rows; 0 equals -0, all NaN are equal."""
        queries = canonical(self)
        hasher = sha256(repr((queries.names, sorted(queries.sources), queries.features.shape)).encode())
        arrays = (queries.offsets, queries.keys, queries.labels, *(queries.sources[name] for name in sorted(queries.sources)))
        arrays += tuple(weights for weights in (queries.weights, queries.document_weights) if weights is not None)
        for array in chain[NDArray[Any]](arrays, _blocks(queries.features)):
            hasher.update(_of_equal_bytes(array).view(np.uint8).data)
        for name in sorted(queries.attributes):
            hasher.update(repr((name, queries.attributes[name].tolist())).encode())
        return hasher.hexdigest()

    @cached_property
    def row_digests(self) -> NDArray[np.uint64]:
        """`row_digests` of the features, ``uint64 [documents]``."""
        return row_digests(self.features)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The weights ``float64 [queries]``, ones where there are none."""
        return np.ones(self.n_queries) if self.weights is None else self.weights

    @property
    def impressions(self) -> NDArray[np.float64]:
        """How often each document was seen where its weight is a number of times, that of its query times its own: ``float64 [documents]``."""
        of_query = np.repeat(self.shares, np.diff(self.offsets))
        return of_query if self.document_weights is None else of_query * self.document_weights

    def source(self, name: str) -> NDArray[np.float64]:
        """Labels of one source; ``label`` is the judged relevance.

        Raises:
            ValueError: naming the sources there are.
        """
        if name == "label":
            return self.labels
        if name not in self.sources:
            raise ValueError(
                f"no label source {name!r} in this data set; choose from: label{''.join(', ' + s for s in self.sources)}"
            )
        return self.sources[name]

    def called(self, document: int) -> str:
        """A document in words: by its id and that of its query where they are known, otherwise by its row in the original file, from 0."""
        if self.ids is None or self.documents is None:
            return f"document {self.position[document]}"
        own, query = (
            name.decode("utf-8", "backslashreplace") for name in (self.documents[document], self.ids[self.of_query[document]])
        )
        return f"document {own!r} of query {query!r}"


def _features(given: object) -> NDArray[np.float32]:
    try:
        array = np.asarray(unmasked(given))
        warn_of_lost_digits(array, "features", 5)
        array = as_float32(array, "features")
    except FarValueError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"features: {shown(given)} is not an array of numbers") from None
    return array_of("features", array, np.float32, 2)


def _sparse(given: Any) -> SparseFeatures:
    found = sparse_features(given)
    if given.dtype != np.float32:
        warn_of_lost_digits(given.tocsr().data, "features", 5)
    return found


def _blocks(features: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
    """All rows of features, some at a time."""
    if is_sparse(features):
        return dense_blocks(features)
    return (features[first : first + ROWS] for first in range(0, len(features), ROWS))


def _of_equal_bytes(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers of which equal ones have equal bytes: 0 has no sign, and NaN is one."""
    if array.dtype.kind == "f":
        array = array + array.dtype.type(0)
        array[np.isnan(array)] = np.nan
    return np.ascontiguousarray(array)


def _given_keys(given: object) -> NDArray[np.uint64]:
    keys = given if isinstance(given, np.ndarray) else np.array(given, object)  # numpy makes floats of large whole numbers
    if keys.ndim == 1 and keys.dtype.kind in "iu":
        return np.ascontiguousarray(keys).astype(np.uint64, copy=False)
    if keys.ndim != 1 or not all(isinstance(key, int | np.integer) and -(1 << 63) <= key < 1 << 64 for key in keys.tolist()):
        raise ValueError(f"keys: {shown(given)}, expected a whole number of 64 bits for each query")
    return np.array([int(key) % (1 << 64) for key in keys.tolist()], np.uint64)


class FarValueError(ValueError):
    """A number that float32 does not reach."""


def as_float32(array: NDArray[Any], name: str) -> NDArray[np.float32]:
    """Features as float32.

    Raises:
        FarValueError: for a number beyond 3.4e38, which would be infinite.
        TypeError, ValueError, OverflowError: for what are no numbers, text of numbers included.
    """
    if array.dtype.kind not in "biufO" or (array.dtype.kind == "O" and any(isinstance(value, str | bytes) for value in array.flat)):
        raise TypeError(f"{name}: {array.dtype} is not a type of numbers")
    try:
        with np.errstate(over="raise"):
            return np.ascontiguousarray(array, np.float32)
    except FloatingPointError:
        exact = array if array.dtype.kind == "f" else array.astype(np.float64)
        place = np.argwhere(np.isfinite(exact) & (np.abs(exact) > np.finfo(np.float32).max))[0].tolist()
        raise FarValueError(f"{name}: {exact[tuple(place)]:g} at {place}; features must be float32 numbers, up to 3.4e38") from None


def warn_of_lost_digits(array: NDArray[Any], name: str, level: int = 4) -> None:
    """Warns of whole numbers, such as ids or times, that are too large for the 24 bits that a feature has, of float64 too: pandas makes floats of
    whole numbers where one of a column is missing, or objects. `level`: of the caller's line."""
    if array.dtype.kind == "O":
        array = array.astype(np.float64)
    if array.dtype.kind not in "iuf" or array.dtype.itemsize < 4 or array.dtype == np.float32 or not array.size:
        return
    columns = array.reshape(len(array) if array.ndim > 1 else array.size, -1)
    with np.errstate(over="ignore"):  # numbers beyond float32 are refused, by name
        far = np.fmax.reduce(columns, axis=0) > LARGEST_WHOLE
        far |= np.fmin.reduce(columns, axis=0) < -LARGEST_WHOLE
        lost = [one[_loses_digits(one)] for one in columns[:, far].T]
    if found := sum(map(len, lost)):
        example = next(one[0] for one in lost if len(one))
        warnings.warn(
            f"{name}: whole numbers above 16,777,216 lose their last digits in float32, {found:,} here, such as {int(example)}",
            stacklevel=level,
        )


def _loses_digits(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Which whole numbers float32 does not hold."""
    kept = column.astype(np.float32)
    large = np.isfinite(kept) & (np.abs(column) > LARGEST_WHOLE)
    lost: NDArray[np.bool_] = large & (kept.astype(np.float64) != column) & (column == np.floor(column))
    return lost


def _keys_of(queries: Queries) -> NDArray[np.uint64]:
    """Digests of the features of each query's documents. Of queries with equal ones the second and later have their number mixed in, in
    the order of a digest of all else that they hold, so that keys differ and do not depend on the order of the queries."""
    rows, starts = queries.row_digests, queries.offsets[:-1]
    keys = np.add.reduceat(rows, starts) if len(rows) else rows
    order = np.argsort(keys, kind="stable")
    firsts = np.flatnonzero(np.concatenate(([True], keys[order][1:] != keys[order][:-1])))
    if len(firsts) < len(keys):
        held: NDArray[np.uint64] = np.add.reduceat(mix(rows + _label_digests(queries) * GOLDEN), starts)
        order = np.lexsort((held if queries.weights is None else mix(held ^ queries.weights.view(np.uint64)), keys))
    number = np.empty(len(keys), np.uint64)
    number[order] = np.arange(len(keys)) - np.repeat(firsts, np.diff(np.append(firsts, len(keys))))
    return mix(keys + number * GOLDEN)


def _label_digests(queries: Queries) -> NDArray[np.uint64]:
    """64-bit digest of each document's labels of all sources, and of its weight: of them alone, whatever other documents have."""
    held = np.column_stack(
        [queries.labels, *(queries.sources[name] for name in sorted(queries.sources))]
        + ([queries.document_weights] if queries.document_weights is not None else [])
    )
    with np.errstate(over="ignore"):
        rounded = held.astype(np.float32)
    digests = row_digests(rounded)
    finer = np.flatnonzero(((rounded != held) & ~np.isnan(held)).any(axis=1))
    for values in (held[finer] + 0.0).T:
        bits = np.where(np.isnan(values), np.nan, values).view(np.uint64)
        digests[finer] = mix(digests[finer] * GOLDEN + bits)
    return digests


def _rows(queries: Queries, rows: NDArray[np.intp]) -> dict[str, Any]:
    """Every array with one entry per document, at `rows`."""
    return {
        "features": queries.features[rows],
        "labels": queries.labels[rows],
        "sources": {name: values[rows] for name, values in queries.sources.items()},
        "position": rows if np.array_equal(queries.position, np.arange(queries.n_documents)) else queries.position[rows],
        **{name: None if (own := getattr(queries, name)) is None else own[rows] for name in ("documents", "document_weights")},
    }


def _queries(queries: Queries, selected: NDArray[Any]) -> dict[str, Any]:
    """Every array with one entry per query, except the offsets, at the `selected` ones."""
    arrays = {name: getattr(queries, name) for name in ("keys", "ids", "weights")}
    known = {name: values[selected] for name, values in queries.attributes.items()}
    return {"attributes": known, **{name: None if array is None else array[selected] for name, array in arrays.items()}}


def canonical_order(queries: Queries) -> NDArray[np.intp] | None:
    """The rows in canonical order, ``[documents]``: by key of the query, by digest of the features, by that of the labels, as they lie; None where
    they are in it.

    They are sorted by one number, the query's place and the first bits of the digest, and where that is equal by all. Training seldom needs the
    digests again: they are not held any longer."""
    sizes, digests, of_labels = np.diff(queries.offsets), queries.row_digests, _label_digests(queries)
    vars(queries).pop("row_digests", None)
    if _in_order(np.repeat(queries.keys, sizes), digests, of_labels):
        return None
    place = np.empty(queries.n_queries, np.uint64)
    place[np.argsort(queries.keys, kind="stable")] = np.arange(queries.n_queries, dtype=np.uint64)
    bits = np.uint64(max(queries.n_queries - 1, 1).bit_length())
    both = np.repeat(place << (np.uint64(64) - bits), sizes) | (digests >> bits)
    order = np.argsort(both)
    equal = np.flatnonzero(np.diff(both[order]) == 0)
    tied = np.union1d(equal, equal + 1)
    rows = order[tied]
    order[tied] = rows[np.lexsort((rows, of_labels[rows], digests[rows], both[rows]))]
    return order


def reordered(queries: Queries, order: NDArray[np.intp] | None) -> Queries:
    """`queries` in their canonical order, which `canonical_order` has found; the same object for None."""
    if order is None:
        return queries
    by_key = np.argsort(queries.keys, kind="stable")
    return replace(
        queries,
        **_rows(queries, order),
        **_queries(queries, by_key),
        offsets=offsets_from_sizes(np.diff(queries.offsets)[by_key]),
    )


def canonical(queries: Queries) -> Queries:
    """`queries` in canonical order; the same object where it already is."""
    return reordered(queries, canonical_order(queries))


def without_features(queries: Queries) -> Queries:
    """`queries` with their labels and all, but no feature."""
    return replace(queries, features=np.empty((queries.n_documents, 0), np.float32), names=())


@njit(cache=True)
def _in_order(first: NDArray[np.uint64], second: NDArray[np.uint64], third: NDArray[np.uint64]) -> bool:
    for k in range(1, len(first)):
        if first[k] != first[k - 1]:
            rising = first[k] > first[k - 1]
        elif second[k] != second[k - 1]:
            rising = second[k] > second[k - 1]
        else:
            rising = third[k] >= third[k - 1]
        if not rising:
            return False
    return True


def rows_within(queries: Queries, selected: NDArray[np.intp]) -> NDArray[np.intp]:
    """The rows of the `selected` queries (indices), in their order."""
    spans = [np.arange(queries.offsets[q], queries.offsets[q + 1]) for q in selected]
    return np.concatenate(spans) if spans else np.empty(0, np.intp)


def select(queries: Queries, selected: NDArray[np.intp]) -> Queries:
    """The data set of the `selected` queries (indices), in their order."""
    return replace(
        queries,
        **_rows(queries, rows_within(queries, selected)),
        **_queries(queries, selected),
        offsets=offsets_from_sizes(np.diff(queries.offsets)[selected]),
    )


def keep(queries: Queries, documents: NDArray[np.bool_]) -> Queries:
    """The data set without the documents where the mask ``bool [documents]`` is False, and without queries that this leaves empty."""
    sizes = np.add.reduceat(documents.astype(np.int64), queries.offsets[:-1]) if queries.n_queries else np.empty(0, np.int64)
    alive = sizes > 0
    return replace(
        queries,
        **_rows(queries, np.flatnonzero(documents)),
        **_queries(queries, alive),
        offsets=offsets_from_sizes(sizes[alive]),
    )


def concatenate(parts: Sequence[Queries]) -> Queries:
    """The queries of all parts, in canonical order. Sparse parts may differ in width: missing columns are zero.

    Raises:
        ValueError: when a query is in two parts, or a label source, an attribute or weights are missing in one of them.
    """
    widest = max(parts, key=lambda part: part.n_features)
    for kind in ("weights", "document_weights"):
        if 0 < sum(getattr(part, kind) is None for part in parts) < len(parts):
            raise ValueError(f"some of the parts have {kind}, others have none: give those weights of 1")
    for part in parts:
        if part.names != widest.names[: part.n_features]:
            raise ValueError(
                f"feature names differ between the parts: {', '.join(part.names[:3])}, … and {', '.join(widest.names[:3])}, …"
            )
        if set(part.sources) != set(widest.sources):
            raise ValueError(f"label sources differ between the parts: {sorted(part.sources)} and {sorted(widest.sources)}")
        if set(part.attributes) != set(widest.attributes):
            raise ValueError(f"attributes differ between the parts: {sorted(part.attributes)} and {sorted(widest.attributes)}")
    keys = np.concatenate([part.keys for part in parts])
    if len(np.unique(keys)) < len(keys):
        raise ValueError("a query is in two of the parts to be joined")

    def joined(arrays: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
        present = [array for array in arrays if array is not None]
        return np.concatenate(present) if len(present) == len(arrays) else None

    before = offsets_from_sizes(np.array([part.n_documents for part in parts]))
    return canonical(
        Queries(
            features=stacked([widen(part, widest.names).features for part in parts]),
            labels=np.concatenate([part.labels for part in parts]),
            offsets=offsets_from_sizes(np.concatenate([np.diff(part.offsets) for part in parts])),
            keys=keys,
            sources={name: np.concatenate([part.sources[name] for part in parts]) for name in widest.sources},
            position=np.concatenate([part.position + start for part, start in zip(parts, before, strict=False)]),
            names=widest.names,
            ids=joined([part.ids for part in parts]),
            weights=joined([part.weights for part in parts]),
            document_weights=joined([part.document_weights for part in parts]),
            documents=joined([part.documents for part in parts]),
            attributes={name: np.concatenate([part.attributes[name] for part in parts]) for name in widest.attributes},
        )
    )


def with_pairs(queries: Queries) -> NDArray[np.bool_]:
    """Which queries have judged documents of different labels, ``bool [queries]``."""
    low, high = (np.nan_to_num(queries.labels, nan=missing) for missing in (np.inf, -np.inf))
    starts = queries.offsets[:-1]
    found: NDArray[np.bool_] = np.maximum.reduceat(high, starts) > np.minimum.reduceat(low, starts)
    return found


def has_pairs(queries: Queries) -> bool:
    """Whether some query has judged documents of different labels."""
    return bool(with_pairs(queries).any())


def in_order(queries: Queries, names: tuple[str, ...]) -> Queries:
    """The data set with these of its features, in this order; the same object where they are its own."""
    if names == queries.names:
        return queries
    place = {name: k for k, name in enumerate(queries.names)}
    return replace(queries, features=queries.features[:, [place[name] for name in names]], names=names)


def widen(queries: Queries, names: tuple[str, ...]) -> Queries:
    """`queries` widened to the features `names`, of which they have the first ones; the others are 0, which is what a sparse file means
    by leaving them out."""
    missing = len(names) - queries.n_features
    if missing <= 0:
        return queries
    return replace(queries, features=widened(queries.features, len(names)), names=names)
