"""Weights by feature name: of rankers, and read from three ways to write them."""

import numpy as np
import pytest

import ltr
from tasks.export.weights import read_weights, weights_of
from tests.conftest import make_queries


@pytest.mark.parametrize("text", ['{"f1": 0.5, "f3": -1}', "f1,0.5\nf3,-1\n", "# a comment\n1:0.5 3:-1 # more\n"])
def test_three_ways_to_write_weights(tmp_path, text):
    (tmp_path / "w.txt").write_text(text)
    assert read_weights(tmp_path / "w.txt") == {"f1": 0.5, "f3": -1.0}


def test_a_wrong_line_is_named(tmp_path):
    (tmp_path / "w.txt").write_text("f1,0.5\nf2,many\n")
    with pytest.raises(
        ValueError, match=r"line 2: 'f2,many' is not a weight; write name,weight or number:weight .*LightGBM and XGBoost"
    ):
        read_weights(tmp_path / "w.txt")


def test_a_linear_nets_weights_rank_as_it_does():
    queries = make_queries(30)
    net = ltr.LambdaRank(epochs=3).fit(queries)
    weights = np.array(list(weights_of(net).values()))
    difference = net.predict(queries.features) - queries.features @ weights
    assert np.ptp(difference) < 1e-5
    with pytest.raises(ValueError, match="a ranker of the kind lambdamart has no weights"):
        weights_of(ltr.LambdaMART(n_trees=2, min_docs_in_leaf=3).fit(queries))


def test_a_mark_of_the_order_of_bytes_is_no_part_of_a_name(tmp_path):
    for text in ("x,0.5\ny,1\n", '{"x": 0.5, "y": 1}'):
        (tmp_path / "w").write_text(text, encoding="utf-8-sig")
        assert read_weights(tmp_path / "w") == {"x": 0.5, "y": 1}


@pytest.mark.parametrize("weight", ["inf", "-inf", "nan"])
def test_a_weight_that_is_not_finite_is_named(tmp_path, weight):
    (tmp_path / "w.txt").write_text(f"f1,0.5\nf2,{weight}\n")
    with pytest.raises(ValueError, match=f"line 2: the weight of 'f2' is {weight}, which is not finite"):
        read_weights(tmp_path / "w.txt")


@pytest.mark.parametrize("value", ["true", "null", '"1"', "1" + "0" * 400, "[1]", "{}"])
def test_what_is_no_weight_in_json_is_named(tmp_path, value):
    (tmp_path / "w.json").write_text(f'{{"f1": 0.5, "f2": {value}}}')
    with pytest.raises(ValueError, match=r"'f2': .* is not a weight; write \{name: weight, …\}"):
        read_weights(tmp_path / "w.json")


def test_a_feature_has_one_weight_and_a_file_has_some(tmp_path):
    for text, says in (
        ('{"f1": 1, "f1": 2}', "JSON object: feature 'f1' has a weight already"),
        ("1:0.5 1:0.25\n", "line 1: feature 'f1' has a weight already"),
        ("# nothing\n", "no weights in it"),
        ("{}", "no weights in it"),
    ):
        (tmp_path / "w").write_text(text)
        with pytest.raises(ValueError, match=says):
            read_weights(tmp_path / "w")
