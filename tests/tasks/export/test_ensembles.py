"""The ensemble behind a ranker, and a base that not every format can say."""

from dataclasses import replace

import pytest

import ltr
from tasks.export.ensembles import base_of, trees_of, whole_score
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
