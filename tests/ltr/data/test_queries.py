"""Canonical order: the same data set for any order of the rows, and a seeing eye on shapes."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import ltr
from ltr.data.queries import (
    Queries,
    canonical,
    canonical_order,
    concatenate,
    has_pairs,
    in_order,
    keep,
    reordered,
    select,
    widen,
    with_pairs,
    without_features,
)
from tests.conftest import make_queries


def shuffled(queries, seed=0):
    """The same rows: queries in another order, documents of each in another order."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(queries.n_queries)
    rows = np.concatenate([rng.permutation(np.arange(queries.offsets[q], queries.offsets[q + 1])) for q in order])
    return Queries(
        queries.features[rows],
        queries.labels[rows],
        np.concatenate(([0], np.cumsum(np.diff(queries.offsets)[order]))),
        keys=queries.keys[order],
        sources={name: values[rows] for name, values in queries.sources.items()},
        weights=None if queries.weights is None else queries.weights[order],
        document_weights=None if queries.document_weights is None else queries.document_weights[rows],
    )


def test_canonical_order_and_digest_do_not_depend_on_the_order_of_rows(queries):
    other = shuffled(queries)
    assert not np.array_equal(other.labels, queries.labels)
    assert other.digest == queries.digest
    for name in ("features", "labels", "offsets", "keys"):
        assert np.array_equal(getattr(canonical(other), name), getattr(queries, name))
    assert canonical(queries) is queries


def test_digest_sees_every_value(queries):
    changed = queries.labels.copy()
    changed[3] += 1
    assert replace(queries, labels=changed).digest != queries.digest
    assert replace(queries, sources={}).digest != queries.digest
    assert replace(queries, names=np.array(queries.names)).digest == queries.digest, "a name is its text"
    assert replace(queries, labels=np.where(queries.labels == 0, -0.0, queries.labels)).digest == queries.digest


@pytest.mark.parametrize("other", [np.float32(-0.0), -np.float32(np.nan)])
def test_zeros_of_both_signs_and_all_nan_are_one_value_to_the_digest(queries, other):
    features, labels = queries.features.copy(), queries.labels.copy()
    rows = slice(queries.offsets[1], queries.offsets[2])
    features[rows], labels[rows] = -other, np.float64(-other)
    alike = replace(queries, features=features, labels=labels)
    mixed, source = features.copy(), queries.sources | {"other": labels}
    mixed[queries.offsets[1]] = other
    assert alike.digest == replace(alike, features=mixed).digest == shuffled(replace(alike, features=mixed)).digest
    assert alike.digest == replace(alike, features=csr_array(mixed)).digest
    copied = labels.copy()
    copied[queries.offsets[1]] = np.float64(other)
    with_source = replace(alike, sources=source)
    assert with_source.digest == replace(with_source, sources=source | {"other": copied}, labels=copied).digest


def test_default_keys_come_from_the_content_of_a_query():
    queries = make_queries(6)
    bare = Queries(queries.features, queries.labels, queries.offsets)
    other = shuffled(replace(queries, keys=bare.keys), seed=3)
    assert set(Queries(other.features, other.labels, other.offsets).keys.tolist()) == set(bare.keys.tolist())


@pytest.mark.parametrize(
    ("n", "n_queries", "equal"), [(2000, 37, 0.5), (1000, 1, 0.9), (300, 300, 0.5), (5000, 2, 0.0), (1, 1, 0.0)]
)
def test_rows_are_in_the_order_of_all_that_counts(n, n_queries, equal):
    """By key, digest of the features and of the labels, and as they lie: rows of equal features and labels too."""
    rng = np.random.default_rng(n)
    features = rng.normal(size=(n, 4)).astype(np.float32)
    alike = rng.random(n) < equal
    features[alike] = features[rng.integers(0, min(n, 20), alike.sum())]
    offsets = np.concatenate(([0], np.sort(rng.choice(np.arange(1, n), n_queries - 1, replace=False)), [n])) if n > 1 else [0, 1]
    keys = rng.permutation(10**6)[:n_queries].astype(np.uint64) * np.uint64(18446744073709)
    given = Queries(features, rng.integers(0, 3, n).astype(float), offsets, keys=keys)
    label_of = {label: place for place, label in enumerate(np.unique(given.labels))}
    order = canonical_order(given)
    order = np.arange(n) if order is None else order
    by = [
        (keys[q], digest, row)
        for q, row, digest in zip(np.repeat(np.arange(n_queries), np.diff(given.offsets)), range(n), given.row_digests, strict=True)
    ]
    found = [by[row] for row in order]
    assert sorted(order) == list(range(n))
    assert [one[:2] for one in found] == sorted(one[:2] for one in by)
    runs = {}
    for key, digest, row in found:
        runs.setdefault((key, digest), []).append(row)
    for rows in runs.values():
        labels = [label_of[given.labels[row]] for row in rows]
        assert len([k for k in range(1, len(rows)) if labels[k] != labels[k - 1]]) < len(set(labels)), "equal labels are together"
        for label in set(labels):
            own = [row for row, one in zip(rows, labels, strict=True) if one == label]
            assert own == sorted(own)


def test_canonical_order_does_not_know_labels():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(2000, 3)).astype(np.float32)
    labels = (np.arange(2000) % 2).astype(float)
    ordered = canonical(Queries(features, labels, np.array([0, 2000])))
    assert abs(ordered.labels[:1000].mean() - 0.5) < 0.06


def test_select_keep_and_concatenate(queries):
    first, rest = select(queries, np.arange(4)), select(queries, np.arange(4, queries.n_queries))
    assert concatenate([rest, first]).digest == queries.digest
    mask = np.ones(queries.n_documents, bool)
    mask[queries.offsets[2] : queries.offsets[3]] = False
    assert keep(queries, mask).n_queries == queries.n_queries - 1
    with pytest.raises(ValueError, match="two of the parts"):
        concatenate([first, first])
    wide = widen(first, (*first.names, "x", "y"))
    assert wide.n_features == 6
    assert not wide.features[:, 4:].any()
    assert concatenate([wide, rest]).names == wide.names
    for kind, ones in (("weights", np.ones(first.n_queries)), ("document_weights", np.ones(first.n_documents))):
        with pytest.raises(ValueError, match=f"^some of the parts have {kind}, others have none: give those weights of 1$"):
            concatenate([replace(first, **{kind: ones}), rest])


def test_attributes_stay_with_their_queries_and_are_part_of_the_digest_where_there_are_any(queries):
    names = [f"name {key}" for key in queries.keys]
    known = replace(queries, attributes={"name": names})
    turned = select(known, np.arange(known.n_queries)[::-1])
    assert turned.attributes["name"].tolist() == names[::-1]
    assert canonical(turned).attributes["name"].tolist() == names
    first, rest = select(known, np.arange(4)), select(known, np.arange(4, known.n_queries))
    assert concatenate([rest, first]).attributes["name"].tolist() == names
    mask = np.ones(queries.n_documents, bool)
    mask[queries.offsets[2] : queries.offsets[3]] = False
    assert keep(known, mask).attributes["name"].tolist() == [*names[:2], *names[3:]]
    assert known.digest == turned.digest != queries.digest
    assert replace(known, attributes={"name": [*names[:-1], "x"]}).digest != known.digest
    assert replace(known, attributes={}).digest == queries.digest
    wide = np.array(names, "U99")
    assert replace(known, attributes={"name": wide}).digest == known.digest
    with pytest.raises(ValueError, match="attributes differ between the parts"):
        concatenate([first, replace(rest, attributes={})])


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"offsets": np.array([0, 3])}, "must rise"),
        ({"features": np.zeros((3, 2))}, "one row per document"),
        ({"sources": {"click": np.zeros(2)}}, "source 'click'"),
        ({"attributes": {"language": ["de"]}}, r"attribute 'language': shape \(1,\), expected \(2,\)"),
        ({"names": ("a",)}, "1 names"),
        ({"keys": np.zeros(5, np.uint64)}, "5 keys"),
    ],
)
def test_what_does_not_fit_is_refused(change, rule):
    good = {"features": np.zeros((4, 2)), "labels": np.zeros(4), "offsets": np.array([0, 2, 4])}
    with pytest.raises(ValueError, match=rule):
        Queries(**(good | change))


def test_queries_of_equal_content_stay_apart():
    twice = Queries(np.array([[1.0], [2.0], [1.0], [2.0]]), np.array([0.0, 1, 1, 0]), np.array([0, 2, 4]))
    ordered = canonical(twice)
    assert sorted(ordered.features[:2, 0].tolist()) == [1, 2]
    assert sorted(ordered.features[2:, 0].tolist()) == [1, 2]
    with pytest.raises(ValueError, match="two queries have the same key"):
        Queries(twice.features, twice.labels, twice.offsets, keys=np.array([3, 3], np.uint64))


def test_labels_are_finite_and_not_negative():
    for wrong in (-1.0, np.inf):
        with pytest.raises(ValueError, match="a label must be a finite number"):
            Queries(np.zeros((2, 1)), np.array([1.0, wrong]), np.array([0, 2]))
        with pytest.raises(
            ValueError, match=rf"source 'click': {wrong:g} of document 1; a label must be a finite number, 0 or more"
        ):
            Queries(np.zeros((2, 1)), np.array([1.0, 0.0]), np.array([0, 2]), sources={"click": np.array([np.nan, wrong])})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"offsets": [2, 1]}, r"offsets: must rise from 0 to 3 .*; these are sizes of queries, whose offsets are numpy.append\(0"),
        ({"offsets": [0, 4]}, r"offsets: must rise from 0 to 3 \(the number of documents\), at least one document per query$"),
        ({"offsets": [0, 1.5, 3]}, r"offsets: \[0, 1.5, 3\] is not an array of whole numbers"),
        ({"offsets": None}, "offsets: None is not an array of whole numbers"),
        ({"features": "text"}, "features: 'text' is not an array of numbers"),
        ({"features": [["a"], ["b"], ["c"]]}, "features: .* is not an array of numbers"),
        ({"features": [1.0, 2.0, 3.0]}, r"features: shape \(3,\), expected \[documents, features\]"),
        ({"labels": [[1], [2], [3]]}, r"labels: shape \(3, 1\), expected one dimension"),
        ({"labels": ["1", "2", "3"]}, "labels: .* is not an array of numbers"),
        ({"sources": [1, 2, 3]}, "sources: a mapping of names to arrays, not list"),
        ({"attributes": "de"}, "attributes: a mapping of names to arrays, not str"),
        ({"sources": {"click": "x"}}, "source 'click': 'x' is not an array of numbers"),
        ({"position": [0, 1]}, r"position: shape \(2,\), expected \(3,\)"),
        ({"names": ("a", "a"), "features": np.zeros((3, 2))}, "names: two features are called 'a'"),
        ({"names": "f1"}, "names: must be a name for each feature, not 'f1'"),
        ({"names": (1,)}, r"names: must be a name for each feature, not \(1,\)"),
        ({"ids": [1, 2]}, r"ids: \[1, 2\] of type int64 and shape \(2,\), expected bytes or text \(2,\)"),
        ({"documents": ["a", "b"]}, r"documents: .*, expected bytes or text \(3,\)"),
    ],
)
def test_wrong_types_and_shapes_are_named(given, says):
    with pytest.raises(ValueError, match=says):
        Queries(**{"features": np.arange(3.0)[:, None], "labels": [1, 0, 2], "offsets": [0, 2, 3]} | given)


def test_repr_is_a_line_and_text_ids_are_bytes():
    one = Queries([[0.5], [1.0]], [1, 0], [0, 2], ids=["käse"], sources={"click": [0, 1]})
    assert repr(one) == "Queries(1 queries, 2 documents, 1 features, source click)"
    assert one.ids.tolist() == ["käse".encode()]


def test_features_in_another_order_by_name():
    queries = make_queries(5, n_features=3)
    turned = in_order(queries, (queries.names[2], queries.names[0]))
    assert turned.names == (queries.names[2], queries.names[0])
    assert np.array_equal(turned.features, queries.features[:, [2, 0]])
    assert in_order(queries, queries.names) is queries


def test_the_order_alone_brings_labels_into_canonical_order():
    given = shuffled(make_queries(12, seed=4))
    order = canonical_order(given)
    assert order is not None
    bare, whole = reordered(without_features(given), order), canonical(given)
    assert np.array_equal(whole.features, given.features[order])
    assert bare.features.shape == (given.n_documents, 0)
    assert all(np.array_equal(getattr(bare, name), getattr(whole, name)) for name in ("labels", "offsets", "keys", "position"))
    assert canonical_order(whole) is None
    assert reordered(whole, None) is whole


def pages(order, labels, **more):
    """Pages of the same four documents, as clicks on them are kept: in this order, without ids."""
    rows = (4 * np.asarray(order)[:, None] + np.arange(4)).ravel()
    features = np.tile(np.arange(8, dtype=np.float32).reshape(4, 2), (len(order), 1))
    more = {name: values[rows if len(values) == len(rows) else order] for name, values in more.items()}
    return Queries(features, labels[rows], 4 * np.arange(len(order) + 1), **more)


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1 / 3])
def test_pages_of_the_same_documents_are_the_same_in_any_order(scale):
    rng = np.random.default_rng(0)
    labels = 1 + scale * rng.integers(0, 3, 48)
    for more in ({}, {"weights": rng.integers(1, 3, 12).astype(float)}, {"document_weights": rng.random(48)}):
        whole = pages(range(12), labels, **more)
        assert len(np.unique(whole.keys)) == 12
        for seed in range(5):
            other = pages(np.random.default_rng(seed).permutation(12), labels, **more)
            assert other.digest == whole.digest
        changed = pages(range(12), labels + np.eye(48)[0], **more)
        assert changed.digest != whole.digest


def test_rows_of_equal_features_are_in_the_order_of_labels_that_float32_cannot_tell_apart():
    features, labels = np.zeros((6, 2), np.float32), 1 + 1e-15 * np.arange(6)
    found = {Queries(features, np.random.default_rng(k).permutation(labels), [0, 6]).digest for k in range(10)}
    assert len(found) == 1


def test_the_order_of_a_query_is_its_own_whatever_labels_others_have():
    """Documents with equal features stand by their labels: where one elsewhere is no float32, as a click share is not, nothing moves."""

    def order(label):
        queries = ltr.Queries(np.ones((6, 1)), [0, 1, 2, 3, label, 0], [0, 4, 6], keys=np.array([1, 2], np.uint64))
        return canonical(queries).labels[:4].tolist()

    assert order(1.0) == order(0.1) == order(1e-300)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("label", [3.7e-31, 1e-38, 1e-45, 1e-300, 5e-324])
def test_labels_that_float32_cannot_tell_from_nothing_are_told_apart(label):
    features = np.zeros((4, 1))
    twins = ltr.Queries(features, [0, label, 0, 1], [0, 2, 4])  # keys of equal features are told apart by the labels
    queries = canonical(ltr.Queries(features, [label, 0, 1, 0], [0, 4]))
    turned = canonical(ltr.Queries(features, [0, 1, label, 0], [0, 4]))
    assert queries.labels.tolist() == turned.labels.tolist()
    assert len({*twins.keys.tolist()}) == 2


def test_several_threads_put_the_same_queries_in_order():
    queries = make_queries(200, seed=3)
    want = canonical_order(make_queries(200, seed=3))
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: canonical_order(queries), range(40)):
            assert np.array_equal(found, want)


def test_keys_of_other_kinds_of_whole_numbers():
    queries = make_queries(5, seed=2)
    for given in (queries.keys.tolist(), queries.keys.astype(">u8"), queries.keys.view(np.int64)):
        again = replace(queries, keys=given)
        assert again.keys.dtype == np.uint64
        assert np.array_equal(again.keys, queries.keys)
        assert ltr.LeastSquares().fit(again).digest == ltr.LeastSquares().fit(queries).digest
    with pytest.raises(ValueError, match=r"keys: .*, expected a whole number of 64 bits for each query"):
        replace(queries, keys=np.linspace(0, 1, 5))


def test_queries_with_pairs_are_those_that_have_some_alone():
    rng = np.random.default_rng(4)
    labels = np.where(rng.random(60) < 0.3, np.nan, rng.integers(0, 2, 60))
    labels[:3] = np.nan
    queries = Queries(np.zeros((60, 1), np.float32), labels, np.arange(0, 61, 3))
    alone = [has_pairs(select(queries, np.array([q]))) for q in range(20)]
    assert 0 < sum(alone) < 20
    assert with_pairs(queries).tolist() == alone
    assert has_pairs(queries)
    assert not has_pairs(select(queries, np.flatnonzero(~with_pairs(queries))))
