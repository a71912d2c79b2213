"""The ensemble behind a ranker, and a base that not every format can say."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.rankers.stacked import Stacked
from tasks.export.ensembles import base_of, grown_score, trees_of, whole_score
from tests.conftest import make_queries


def test_trees_are_the_whole_score_where_there_is_no_base():
    queries = make_queries(30)
    trees = ltr.LambdaMART(n_trees=3, min_docs_in_leaf=3).fit(queries)
    assert whole_score(trees, "solr") is trees_of(trees) is trees.trees
    assert base_of(ltr.KINDS["rankboost"](rounds=3).fit(queries)) is None
    based = replace(trees, base="f1")
    assert base_of(based) == "f1"
    with pytest.raises(ValueError, match="the scores of base 'f1' are added to the trees', which solr cannot say; onnx can"):
        whole_score(based, "solr")


def test_a_model_without_trees_is_refused_where_its_readers_would_refuse_it():
    """Elasticsearch wants ``trained_models`` and OpenSearch ``splits`` that are not empty, Vespa an expression."""
    queries = make_queries(30)
    trees = ltr.LambdaMART(n_trees=3, min_docs_in_leaf=3).fit(queries)
    assert grown_score(trees, "elastic") is trees.trees
    none = replace(trees, trees=trees.trees.first(0))
    assert whole_score(none, "solr").n_trees == 0
    with pytest.raises(ValueError, match=r"the model has no trees .*what reads elastic does not support an empty ensemble"):
        grown_score(none, "elastic")


def test_trees_below_an_average_of_their_scores_are_its_whole_score():
    queries = make_queries(30)
    bases = tuple(ltr.LambdaMART(n_trees=3, min_docs_in_leaf=3, seed=seed).fit(queries) for seed in (1, 2))
    scores = np.column_stack([base.predict(queries.features) for base in bases]).astype(np.float32)
    of_scores = replace(queries, features=scores, names=("a", "b"))
    stacked = Stacked(bases, ltr.Average((ltr.Column("b"), ltr.Column("a"))).fit(of_scores))
    assert base_of(stacked) is None
    assert whole_score(stacked, "solr").scores(queries.features) == pytest.approx(stacked.predict(queries.features), abs=1e-6)
