"""The doctor sees each fault it names, and nothing in good data."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.letor import key_of
from ltr.data.queries import Queries
from ltr.metrics.conventions import Conventions
from tasks.data.check import findings, refuse, shared_queries
from tasks.records import RETRIEVED, DataError
from tests.conftest import make_queries


def says(queries, level, text, **options):
    return any(f.level == level and text in f.text for f in findings(queries, **options))


@pytest.fixture
def good():
    return make_queries(30, seed=1, clicks=False)


def test_good_data_have_no_error(good):
    assert not [f for f in findings(good) if f.level == "error"]
    refuse(findings(good))


def test_labels(good):
    assert says(replace(good, labels=np.zeros(good.n_documents)), "error", "no document anywhere")
    big = good.labels.copy()
    big[5] = 31
    assert says(replace(good, labels=big), "error", "label 31")
    assert not says(replace(good, labels=big), "error", "label 31", conventions=Conventions(gain="linear"))
    missing = good.labels.copy()
    missing[3] = np.nan
    assert says(replace(good, labels=missing), "note", "1 document without a label")


def test_labels_below_the_threshold_are_warned_of(good):
    low = replace(good, labels=np.minimum(good.labels, 1))
    assert says(
        low, "warning", "the largest label is 1, but binary measures (MAP, MRR, …) count only labels of 2 or more as relevant"
    )
    assert says(low, "warning", "as relevant; set conventions.threshold: 1 unless other sets of the run have such labels")
    assert not says(low, "warning", "the largest label is", conventions=Conventions(threshold=1))


def test_what_counts_as_relevant_is_told():
    labels = np.array([0.0, 1, 2, 2, 0, 1, 1, 0])
    queries = Queries(np.arange(16).reshape(8, 2), labels, np.array([0, 4, 8]))
    largest = "count a label of 2 or more as relevant (conventions.threshold): label 2: 2 of 8 judged documents, in 1 of 2 queries"
    assert says(queries, "warning", largest)
    assert says(queries, "warning", "the largest label alone: set conventions.threshold: 1 if label 1 is relevant too")
    assert says(queries, "note", "labels 1, 2: 5 of 8 judged documents", conventions=Conventions(threshold=1))
    assert says(replace(queries, labels=labels + 2), "warning", "that is all of them, so all rankings have the same value")
    positives = replace(queries, labels=np.where(labels >= 2, labels, np.nan))
    assert says(positives, "note", "label 2: 2 of 2 judged documents, in 1 of 2 queries"), "others count as not relevant"
    assert says(positives, "warning", "that is all of them", conventions=Conventions(unlabelled="condensed"))
    two = replace(queries, labels=np.minimum(labels, 1))
    assert says(two, "note", "label 1: 5 of 8 judged documents, in 2 of 2 queries", conventions=Conventions(threshold=1))
    graded = replace(queries, labels=np.array([0.0, 1, 2, 3, 4, np.nan, 1, 0]))
    assert says(graded, "note", "labels 2, 3, 4: 3 of 7 judged documents, in 2 of 2 queries")


def test_queries_that_teach_nothing():
    labels = np.array([1.0, 2, 2, 0, 3])
    queries = Queries(np.arange(10).reshape(5, 2), labels, np.array([0, 1, 3, 5]))
    assert says(queries, "warning", "1 query with one document")
    assert says(queries, "note", "1 query with one label only")
    assert says(queries, "warning", "2 queries in several places", split_queries=2)


def test_labels_that_put_no_document_above_another(good):
    same, two_labels = "the same label: no ranking is better", "within each query all judged documents have the same label"
    flat = replace(good, labels=np.full(good.n_documents, 3.0), sources={})
    assert says(flat, "error", same)
    assert not says(good, "error", same)
    assert not says(good, "warning", two_labels)
    clicks = {"click": np.tile([0.0, 0.5], good.n_documents)[: good.n_documents]}
    assert not says(replace(flat, sources=clicks), "error", same)
    assert says(replace(flat, sources={RETRIEVED: clicks["click"]}), "error", same)
    labels = flat.labels.copy()
    labels[::2] = np.nan  # as where only relevant documents are listed
    assert says(replace(flat, labels=labels), "warning", two_labels)
    assert not says(replace(flat, labels=labels), "error", same)
    assert says(replace(flat, labels=labels), "error", same, conventions=Conventions(unlabelled="condensed"))


def test_features(good):
    features = good.features.copy()
    features[:, 1] = 7
    features[3, 2] = np.nan
    changed = replace(good, features=features)
    assert says(changed, "note", "1 constant feature: f2")
    assert says(changed, "note", "feature values are missing")
    features = good.features.copy()
    features[4, 0] = np.inf
    assert says(replace(good, features=features), "error", "feature f1 is infinite")
    assert says(Queries(np.zeros((2, 0)), np.array([1.0, 0]), np.array([0, 2])), "error", "no feature")


def test_features_that_encode_a_label(good):
    features = good.features.copy()
    features[:, 3] = 2 * good.labels + 1e-4 * features[:, 3]
    assert says(replace(good, features=features), "warning", "(nearly) equal the label: f4")
    clicks = np.random.default_rng(0).random(good.n_documents)
    features[:, 3] = clicks
    assert says(replace(good, features=features, sources={"click": clicks}), "warning", "(nearly) equal the click: f4")


def test_duplicates_and_conflicts():
    features = np.array([[1.0], [1.0], [2.0], [1.0]])
    queries = Queries(features, np.array([1.0, 2, 0, 1]), np.array([0, 3, 4]))
    assert says(queries, "warning", "1 document duplicates the feature vector of another document of the same query")
    assert says(queries, "warning", "data.clean drops 2 documents whose labels differ")
    with_ids = replace(queries, documents=np.array([b"x", b"y", b"y", b"x"]))
    assert says(with_ids, "warning", "1 document duplicates the document id of another document of the same query")
    assert says(with_ids, "warning", "1 document duplicates the feature vector of another document of the same query")


def test_shared_queries_stop_a_run(good):
    found = shared_queries(good, good, "test", "train")
    assert found[0].level == "error"
    with pytest.raises(DataError, match="test: 30 queries also in train, so that results on them would be too good"):
        refuse(found)
    assert not shared_queries(good, make_queries(5, seed=9, clicks=False), "test", "train")


def called(queries, names):
    """The queries under these ids, as files have them."""
    return replace(queries, ids=np.array(names, "S20"), keys=np.array([key_of(name) for name in names], np.uint64))


def test_queries_that_are_shared_under_other_ids_are_told(good):
    """As those of files with sizes, which are called by their file; documents may stand in another order."""
    train = called(good, [b"train:%d" % (k + 1) for k in range(good.n_queries)])
    sizes = np.diff(good.offsets)
    some = np.flatnonzero(sizes > 1)[:3]
    rows = np.concatenate([np.arange(good.offsets[k], good.offsets[k + 1])[::-1] for k in some])
    test = ltr.Queries(good.features[rows], good.labels[rows], np.append(0, np.cumsum(sizes[some])))
    names = [b"test:1", b"test:2", b"test:3"]
    (found,) = shared_queries(train, called(test, names), "test", "train")
    said = "3 queries with the same features as some of train, under other ids: if they are the same, results on them are too good (query test:1, test:2, test:3)"
    assert (found.level, found.subject, found.text) == ("warning", "test", said)
    names[1] = train.ids[some[1]]
    error, warning = shared_queries(train, called(test, names), "test", "train")
    assert (error.level, warning.level) == ("error", "warning")
    assert warning.text.startswith("2 queries with the same features as some of train, under other ids")


def test_ids_that_a_spreadsheet_takes_for_formulas_are_told(good):
    ids = np.array([b"=1+1", b"-5", b"-x", *(b"q%d" % k for k in range(good.n_queries - 3))])
    found = replace(good, ids=ids)
    assert says(
        found,
        "note",
        "2 query ids that a spreadsheet takes for a formula (e.g. '-x'); ids are written into CSV files as they are",
    )
    assert not says(good, "note", "formula")


def test_the_largest_label_that_has_a_gain_is_none_too_many():
    q = ltr.Queries(np.random.default_rng(0).normal(size=(4, 2)), [30, 0, 1, 0], [0, 2, 4])
    assert not [one.text for one in findings(q) if one.level == "error"]
