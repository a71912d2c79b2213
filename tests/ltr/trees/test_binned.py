"""Queries binned once give the models that they give without."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.objectives.preferences import Preferences
from tests.conftest import make_queries
from tests.ltr.data.test_queries import shuffled

SMALL = ltr.LambdaMART(n_trees=6, n_leaves=5, min_docs_in_leaf=3)


def test_many_trainings_on_binned_queries_give_the_same_bytes(monkeypatch):
    queries, valid = shuffled(make_queries(60, seed=1)), make_queries(30, seed=2)
    models = [replace(SMALL, **change) for change in ({}, {"seed": 7}, {"n_leaves": 9, "objective": "map"}, {"loss": "balanced"})]
    expected = [model.fit(queries, valid).digest for model in models]
    binned = ltr.Binned(queries)
    monkeypatch.setattr("ltr.trees.partition.apply_bins", None)  # nothing is binned again
    assert [model.fit(binned, valid).digest for model in models] == expected
    assert [model.fit(binned, valid).digest for model in models] == expected, "a training left something behind"
    assert repr(binned) == f"Binned(queries={queries!r}, max_bins=255, max_bins_by_feature={{}}, categorical=())"


def test_preferences_are_rows_of_the_queries_given():
    queries = shuffled(make_queries(40, seed=1))
    first = queries.offsets[:-1][np.diff(queries.offsets) > 1]
    preferences = Preferences(first + 1, first)
    assert SMALL.fit(ltr.Binned(queries), preferences=preferences).digest == SMALL.fit(queries, preferences=preferences).digest


def test_other_bins_and_other_things_are_refused():
    queries = make_queries(20)
    with pytest.raises(
        ValueError, match=r"max_bins=63, but the queries were binned with 255; use ltr.Binned\(queries, max_bins=63\)"
    ):
        replace(SMALL, max_bins=63).fit(ltr.Binned(queries))
    assert (
        replace(SMALL, max_bins=63).fit(ltr.Binned(queries, max_bins=63)).digest == replace(SMALL, max_bins=63).fit(queries).digest
    )
    with pytest.raises(ValueError, match=r"Binned: queries is a ndarray; give ltr\.Queries"):
        ltr.Binned(queries.features)
    with pytest.raises(ValueError, match="max_bins 1 is outside 2–255"):
        ltr.Binned(queries, max_bins=1)
    with pytest.raises(TypeError, match="no parameter 'max_bin'; did you mean max_bins"):
        ltr.Binned(queries, max_bin=3)


def test_bins_of_single_features():
    """A feature of few bins splits as its values, cut at these edges, would in a training of as many for all."""
    queries = make_queries(60, seed=1)
    name, other = queries.names[:2]
    model = replace(SMALL, max_bins_by_feature={name: 4, other: 2}, feature_share=1.0)
    fitted = model.fit(queries)
    assert model.fit(ltr.Binned(queries, max_bins_by_feature={other: 2, name: 4})).digest == fitted.digest
    for feature, most in ((0, 3), (1, 1), (2, 254)):
        assert len(np.unique(fitted.trees.threshold[fitted.trees.feature == feature])) <= most
    assert fitted.digest != replace(SMALL, feature_share=1.0).fit(queries).digest
    with pytest.raises(ValueError, match=r"max_bins_by_feature=\{.*\}, but the queries were binned with \{\}"):
        model.fit(ltr.Binned(queries))
    for wrong in ({name: 1}, {name: 256}, {name: 2.5}, {1: 4}, [4], {name: True}):
        with pytest.raises(ValueError, match="give a number of bins, 2 to 255, by feature name"):
            replace(SMALL, max_bins_by_feature=wrong)
    with pytest.raises(ValueError, match="no feature 'price'"):
        replace(SMALL, max_bins_by_feature={"price": 4}).fit(queries)
