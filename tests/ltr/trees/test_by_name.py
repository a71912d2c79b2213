"""What is said of features by name; trainings with it are in `test_lambdamart` and `test_binned`."""

import tracemalloc

import numpy as np
import pytest

import ltr
from ltr.trees.by_name import groups_of, read_by, require_features

NAMES = ("bm25", "length", "age", "site")
ASKED = ltr.LambdaMART(
    monotone={"bm25": 1}, categorical=["site"], max_bins_by_feature={"age": 9}, interactions=[["bm25", "length"], ["site", "bm25"]]
)


def test_groups_are_those_named_and_each_other_feature():
    assert groups_of(ASKED, NAMES).tolist() == [[True, True, False, False], [True, False, False, True], [False, False, True, False]]
    assert groups_of(ltr.LambdaMART(), NAMES).shape == (0, 0)


def test_groups_of_many_features_take_a_byte_for_each_two():
    names = tuple(f"f{k}" for k in range(1500))
    tracemalloc.start()
    groups = groups_of(ltr.LambdaMART(interactions=[["f3", "f7"], ["f3", "not there"]]), names)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert groups.shape == (1500, 1500)
    assert np.flatnonzero(groups[0]).tolist() == [3, 7]
    assert np.flatnonzero(groups[1]).tolist() == [3]
    assert (groups[2:].sum(axis=1) == 1).all()
    assert np.flatnonzero(groups[2:].any(axis=0)).tolist() == [k for k in range(1500) if k not in (3, 7)]
    assert most < 4e6  # lists of them are 18 MB


def test_every_name_is_one_of_the_data():
    assert read_by(ASKED) == ("bm25", "site", "age")
    require_features(ASKED, NAMES)
    for missing in NAMES:
        with pytest.raises(ValueError, match=f"no feature '{missing}' in this data set; it has "):
            require_features(ASKED, tuple(name for name in NAMES if name != missing))


def test_a_base_is_a_name():
    for base in (0, 1, ["f1"]):
        with pytest.raises(ValueError, match="give the name of the feature that holds the scores to start from"):
            ltr.LambdaMART(base=base)
    with pytest.raises(ValueError, match="no feature '' in this data set"):
        require_features(ltr.LambdaMART(base=""), NAMES)


def test_the_score_cannot_fall_with_the_base_which_is_added_to_it():
    for falls in (-1, np.int8(-1)):
        with pytest.raises(ValueError, match="monotone: the score cannot fall with the base 'bm25', whose value is added to it"):
            require_features(ltr.LambdaMART(base="bm25", monotone={"bm25": falls}), NAMES)
    for rises in (0, 1):
        require_features(ltr.LambdaMART(base="bm25", monotone={"bm25": rises, "age": -1}), NAMES)


def test_what_is_given_by_name_stays_what_it_was_when_its_mapping_is_gone_on_with():
    """A ranker in a list of them had the monotone features of the last one, a fitted one let its leaves move, and was saved without any."""
    rules, bins = {"bm25": 1}, {"age": 9}
    model = ltr.LambdaMART(monotone=rules, max_bins_by_feature=bins)
    rules.clear()
    bins["length"] = 3
    assert (model.monotone, model.max_bins_by_feature) == ({"bm25": 1}, {"age": 9})
    assert model.why_fixed
