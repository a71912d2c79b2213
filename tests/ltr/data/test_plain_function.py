"""A function is known by its name, called as it is, and missed where only its name was kept."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array

from ltr.data.plain_function import PlainFunction, numbers_from
from tests.conftest import make_queries


def shifted(scores, queries, by=1.0):
    return scores + by


class Smooth:
    def __call__(self, scores, queries):
        return scores


def test_a_function_is_named_by_its_module_and_its_own_name():
    for function, name in ((shifted, "shifted"), (partial(shifted, by=2.0), "shifted"), (Smooth(), "Smooth")):
        assert str(PlainFunction.of(function)) == f"tests.ltr.data.test_plain_function.{name}"
    assert PlainFunction.of(np.tanh).name.endswith("tanh")


def test_it_is_called_with_scores_that_it_cannot_change():
    queries, scores = make_queries(3), np.zeros(4)
    assert PlainFunction.of(partial(shifted, by=2.0))(scores, queries).tolist() == [2.0] * 4

    def careless(scores, queries):
        scores += 1

    with pytest.raises(ValueError, match="read-only"):
        PlainFunction.of(careless)(scores, queries)


@pytest.mark.parametrize("what", ["labels", "features", "source", "sparse"])
def test_it_is_shown_queries_that_it_cannot_change(what):
    queries = replace(make_queries(3), sources={"click": np.zeros(make_queries(3).n_documents)})
    if what == "sparse":
        queries = replace(queries, features=csr_array(queries.features))
    arrays = {"labels": lambda q: q.labels, "source": lambda q: q.sources["click"], "sparse": lambda q: q.features.data}

    def careless(scores, queries):
        arrays.get(what, lambda q: q.features)(queries)[:] = 1
        return scores

    with pytest.raises(ValueError, match="read-only"):
        PlainFunction.of(careless)(np.zeros(4), queries)
    queries.labels[:] = 2  # they stay the caller's

    def looks(scores, queries):
        return queries.n_queries, queries.labels.sum()

    assert PlainFunction.of(looks)(np.zeros(4), queries) == (3, 2 * queries.n_documents)


def test_a_name_alone_asks_for_the_function():
    with pytest.raises(ValueError, match=r"mine\.loss is a function, of which a model's file keeps the name; to train on, give"):
        PlainFunction("mine.loss")(np.zeros(1), make_queries(1))


def test_what_are_no_numbers_is_told():
    assert numbers_from("mine", [1, 2], "two").tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="mine gave str; expected two numbers"):
        numbers_from("mine", "few", "two numbers")
    for given in (np.array([1 + 1j, 2]), np.array(["1", "2"])):
        with pytest.raises(ValueError, match="mine gave ndarray; expected two numbers"):
            numbers_from("mine", given, "two numbers")


def test_what_is_masked_is_missing():
    assert np.isnan(numbers_from("mine", np.ma.array([1.0, 2.0], mask=[True, False]), "two numbers")).tolist() == [True, False]


def test_what_a_function_raises_says_what_it_was_given():
    """Functions for other tools take labels and predictions."""
    queries = make_queries(3)
    with pytest.raises(TypeError) as caught:
        PlainFunction.of(lambda y_true, y_pred: y_pred - y_true)(np.zeros(queries.n_documents), queries)
    (note,) = caught.value.__notes__
    assert note.endswith(f"<lambda> was called with the scores, float64 ({queries.n_documents},), and {queries!r}")
