"""Every numeric parameter of every ranker at numbers that make no sense: refused in words, or a training that ends with finite scores."""

import warnings
from dataclasses import replace
from typing import get_type_hints

import numpy as np
import pytest

import ltr
from ltr.rankers.base import parameters_of
from ltr.rankers.parameters import Span, whole
from tests.conftest import make_queries

SMALL = {
    "lambdamart": {"n_trees": 3, "n_leaves": 4, "min_docs_in_leaf": 3, "query_share": 0.8, "feature_share": 0.8},
    "lambdarank": {"epochs": 2, "hidden": 2},
    "rankboost": {"rounds": 3},
    "adarank": {"rounds": 3},
    "svmmap": {"planes": 5},
    "ranksvm": {"iterations": 5},
    "listwise": {"iterations": 3, "samples": 5, "loss": "boltzrank"},
    "conditional": {"iterations": 3, "samples": 5, "loss": "l2", "measure": "map", "skew": 1.0},
    "column": {"feature": "f1"},
    "weighted_fusion": {"restarts": 1, "directions": 3},
    "query_fusion": {"iterations": 3},
    "average": {"of": (ltr.LambdaMART(n_trees=2, min_docs_in_leaf=3), ltr.LeastSquares())},
}
ODD = (0, -1, 1e300, np.inf, -np.inf, np.nan, 1 << 63, 1 << 70, 1e-300, True, "3", None, [1])


def numeric(kind):
    hints = get_type_hints(ltr.KINDS[kind])
    return [name for name in parameters_of(ltr.KINDS[kind]) if hints[name] in (int, float, float | None)]


CASES = [(kind, name) for kind in ltr.KINDS for name in numeric(kind)]


def trained(kind, **changed):
    queries = make_queries(20, n_features=2 if kind == "combination" else 4)
    queries = replace(queries, labels=(queries.labels > 2) * 2.0) if kind == "conditional" else queries
    queries = replace(queries, names=tuple(f"rank of {name}" for name in queries.names)) if "fusion" in kind else queries
    model = ltr.KINDS[kind](**SMALL.get(kind, {}) | changed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of sums that overflow on the way to a refusal
        return model.fit(queries).predict(queries.features)


def refused(kind, name, value):
    """Whether a value is refused, in words that name the parameter."""
    try:
        trained(kind, **{name: value})
    except ValueError as error:
        return f"{name}=" in str(error)
    return False


@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda one: one)
def test_odd_numbers_are_refused_or_train(kind, name):
    for odd in ODD:
        assert refused(kind, name, odd) or np.isfinite(trained(kind, **{name: odd})).all(), odd


@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda one: one)
def test_every_number_has_its_span_and_its_ends_train(kind, name):
    core = ltr.KINDS[kind]
    if name == "skew":
        return
    span = core.spans[name]
    for end in (span.least, span.most):
        if end in span and not (span.whole and end > 1000 and name != "seed"):
            assert np.isfinite(trained(kind, **{name: end})).all(), end
        elif end not in span:
            with pytest.raises(ValueError, match=f"{core.__name__}: {name}=.* is out of range; it is a number"):
                trained(kind, **{name: end})


def test_a_span_in_words():
    assert str(whole(1, 5000)) == "a whole number from 1 to 5,000"
    assert str(Span(0, 1, above=True, below=True)) == "a number above 0 and below 1"
    assert [one in whole(1, 3) for one in (1, 3, 0, 4, 2.0, True, "2")] == [True, True] + 5 * [False]
    assert [one in Span(0, 1, above=True) for one in (0, 1e-9, 1, np.nan)] == [False, True, True, False]


def test_numbers_of_numpy_become_pythons(tmp_path):
    model = ltr.LambdaMART(n_trees=np.int64(2), learning_rate=np.float32(0.5), min_docs_in_leaf=np.int32(3)).fit(make_queries())
    assert (type(model.n_trees), type(model.learning_rate)) == (int, float)
    ltr.save(model, tmp_path)
    assert ltr.load(tmp_path).parameters == model.parameters


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ltr.LambdaMART(gain="newtons"), "LambdaMART: gain='newtons' is out of range; choose from: newton, least_squares"),
        (lambda: ltr.LambdaRank(update="all"), "LambdaRank: update='all' is out of range; choose from: query, full"),
        (lambda: ltr.RankSVM(standardise="no"), "RankSVM: standardise='no' is out of range; choose from: False, True"),
        (lambda: ltr.LambdaRank(keep_epochs=(0,)), r"keep_epochs=\(0,\) is out of range; each is a whole number from 1"),
        (lambda: ltr.LambdaMART(monotone={"f1": 2}), "is not a mapping of feature names to 1"),
        (lambda: ltr.RankSVM(stop_on="ndgc"), "unknown measure 'ndgc'; did you mean ndcg"),
        (lambda: ltr.RankSVM(conventions={}), r"RankSVM: conventions=\{\} is not an ltr.Conventions"),
        (lambda: ltr.Conventions(threshold=np.inf), "conventions: threshold inf must be a label: a number from 0 to 1,000"),
        (lambda: ltr.Conventions(max_label=np.nan), "conventions: max_label nan must be a label"),
        (lambda: ltr.Schedule(0.1, "linear", np.nan), r"schedule eta nan is outside \[-700, 1e6\]"),
    ],
)
def test_what_is_no_number_is_refused_in_words_too(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_tolerance_that_no_plane_exceeds_is_said_and_not_a_constant():
    with pytest.raises(ValueError, match=r"SVMmap: all weights are 0; no plane is violated by more than tolerance=0\.99"):
        ltr.SVMmap(tolerance=0.99).fit(make_queries(20))


@pytest.mark.parametrize("kind", ltr.KINDS)
def test_labels_and_data_that_cannot_be_learned_from(kind):
    queries = make_queries(20, n_features=2 if kind == "combination" else 4)
    model = ltr.KINDS[kind](**SMALL.get(kind, {}))
    bare = ltr.Queries(np.empty((3, 0)), np.ones(3), [0, 3], keys=np.array([1], np.uint64))
    empty = ltr.Queries(np.empty((0, 4)), np.empty(0), [0])
    for data, says in ((bare, "3 documents and 0 features"), (empty, "0 documents and 4 features")):
        with pytest.raises(ValueError, match=f"fit: queries has {says}; both are needed"):
            model.fit(data)
    with pytest.raises(ValueError, match=r"fit: valid has the features f1, and queries f1, f2"):
        model.fit(queries, ltr.Queries(queries.features[:, :1], queries.labels, queries.offsets))
    huge = replace(queries, labels=np.where(queries.labels > 3, 2000.0, queries.labels > 1))
    if kind in ("lambdamart", "lambdarank", "listwise", "combination"):
        with pytest.raises(ValueError, match=r"label 2000: .* up to 1,000"):
            model.fit(huge)
    if kind == "lambdamart":
        linear = replace(model, conventions=ltr.Conventions(gain="linear"))
        assert np.isfinite(linear.fit(huge).predict(huge.features)).all()
        largest = replace(queries, labels=np.where(queries.labels > 3, 1000.0, queries.labels))
        assert np.isfinite(model.fit(largest).predict(largest.features)).all()


def test_words_of_numpy_are_words(tmp_path):
    """scikit-learn's searches take them out of arrays: `standardise=np.True_` was refused, as it is neither True nor False."""
    ranker = ltr.Listwise(loss=np.str_("listmle"), standardise=np.False_, iterations=2)
    assert ranker.standardise is False
    assert type(ranker.loss) is str
    ltr.save(ranker.fit(make_queries(5)), tmp_path)
    assert ltr.load(tmp_path).standardise is False


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: ltr.Fusion(runs=5), r"Fusion: runs=5; give names, such as \['bm25', 'dense'\]"),
        (lambda: ltr.WeightedFusion(runs=["a", 1]), r"WeightedFusion: runs=\['a', 1\]; give names"),
        (lambda: ltr.QueryFusion(by=None), "QueryFusion: by=None; give names"),
        (lambda: ltr.LambdaRank(keep_epochs=None), r"LambdaRank: keep_epochs=\(None,\) is out of range"),
    ],
)
def test_what_is_no_list_is_refused_in_words(build, said):
    with pytest.raises(ValueError, match=said):
        build()


def test_one_name_or_number_is_a_list_of_one():
    assert ltr.QueryFusion(by="length").by == ("length",)
    assert ltr.LambdaRank(keep_epochs=np.int64(3)).keep_epochs == (3,)
