"""A misspelt argument of anything that users make is told with what may have been meant."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import ltr
from tests.conftest import make_queries


@pytest.mark.parametrize(
    ("cls", "wrong", "meant"),
    [
        (ltr.Term, "mesure", "did you mean measure"),
        (ltr.Term, "zzz", "there are measure, weight, pairs, cost, construction"),
        (ltr.Schedule, "eat", "did you mean eta"),
        (ltr.Conventions, "tie", "did you mean ties"),
        (ltr.Conventions, "treshold", "did you mean threshold"),
        (ltr.Queries, "offset", "did you mean offsets"),
        (ltr.Queries, "feature", "did you mean features"),
        (ltr.Estimator, "mesure", "did you mean measure"),
        (ltr.RankSVM, "weigths", "there are conventions, standardise, impute, stop_on, C"),
    ],
)
def test_a_misspelt_argument_brings_the_likeliest_ones(cls, wrong, meant):
    with pytest.raises(TypeError, match=rf"^{cls.__name__}: no parameter '{wrong}'; {meant}"):
        cls(**{wrong: 1})


def test_what_is_spelt_right_is_made_copied_and_inspected_as_before():
    term = ltr.Term("map", weight=0.5)
    assert copy.copy(term) == copy.deepcopy(term) == pickle.loads(pickle.dumps(term)) == term
    assert list(inspect.signature(ltr.Conventions).parameters)[:2] == ["ties", "empty"]
    queries = make_queries(3)
    assert np.array_equal(copy.copy(queries).features, queries.features)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'offsets'"):
        ltr.Queries(queries.features, queries.labels)
