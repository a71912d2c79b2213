"""Forty data sets that go wrong somewhere × every kind: a model that is the same for any threads and order of rows, with finite scores, or
a refusal in a sentence, the same one each time."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest

import ltr
from ltr.data.runs import column_of
from tests.conftest import JIT
from tests.hostile import DATA
from tests.ltr.data.test_queries import shuffled
from tests.mutations import check_sentence

pytestmark = pytest.mark.usefixtures("all_threads")
ROOT = Path(__file__).parents[2]
MODELS = {
    "lambdamart": ltr.LambdaMART(n_trees=3, n_leaves=4, min_docs_in_leaf=2),
    "two terms": ltr.LambdaMART(n_trees=2, n_leaves=4, objective=("ndcg", ltr.Term("map", weight=0.2)), normalise="query"),
    "least squares trees": ltr.LambdaMART(n_trees=2, gain="least_squares", leaf="gradient", query_share=1.0, feature_share=1.0),
    "linear net": ltr.LambdaRank(epochs=2),
    "two layers": ltr.LambdaRank(hidden=3, epochs=2, objective="map"),
    "rankboost": ltr.RankBoost(rounds=4),
    "ranksvm": ltr.RankSVM(),
    "svmmap": ltr.SVMmap(),
    "adarank": ltr.AdaRank(rounds=4),
    "least_squares": ltr.LeastSquares(),
    **{
        loss: ltr.Listwise(loss=loss, samples=5, starts=1, iterations=3)
        for loss in ("listnet", "listmle", "rankcosine", "softrank", "boltzrank")
    },
    "conditional": ltr.ConditionalModel(measure="map:two", samples=10),
    "average": ltr.Average(ltr.LeastSquares(), copies=2, query_share=0.8),
    "fusion": ltr.Fusion(form="min-max"),
    "weighted_fusion": ltr.WeightedFusion(form="min-max"),
    "query_fusion": ltr.QueryFusion(form="min-max"),
    "combination": ltr.Combination(),
    "column": ltr.Column("f1"),
}


REFUSED = {
    "lambdamart": {"one document", "two documents", "two equal documents", "an infinite feature"},
    "linear net": {"no relevant document", "no label at all", "an infinite feature"},
}
"""Of some models, all that they learn nothing from."""


def outcome(model, queries):
    """The digest of a fitted model whose scores are finite, or the sentence that refuses the data."""
    if isinstance(model, ltr.Fusion | ltr.WeightedFusion | ltr.QueryFusion) and queries.n_features > 1:
        names = (column_of("min-max", "a"), column_of("min-max", "b"), *queries.names[2:])
        queries = replace(queries, names=names)
    if isinstance(model, ltr.Combination) and queries.n_features > 2:
        queries = replace(queries, features=queries.features[:, :2], names=queries.names[:2])
    try:
        fitted = model.fit(queries)
        assert np.isfinite(fitted.predict(queries.features)).all()
    except ValueError as error:
        check_sentence(error)
        return re.sub(r"^row \d+", "row", str(error))  # which row that is depends on the order
    return fitted.digest


def is_digest(found):
    return re.fullmatch("[0-9a-f]{64}", found) is not None


def outcomes(models, data):
    return {f"{model}, {name}": outcome(MODELS[model], DATA[name]()) for model in models for name in data}


ELSEWHERE = """
import json, sys
from tests.ltr.test_hostile_data import outcomes
print(json.dumps(outcomes(*json.loads(sys.argv[1]))))
"""


@pytest.mark.skipif(not JIT, reason="hundreds of trainings")
@pytest.mark.parametrize("data", [list(DATA)[k::8] for k in range(8)], ids=lambda names: names[0])
def test_trees_and_nets_learn_or_say_why_not(data):
    check(["lambdamart", "linear net"], data)


@pytest.mark.skipif(not JIT, reason="hundreds of trainings")
@pytest.mark.parametrize("model", MODELS)
def test_every_kind_is_the_same_on_any_threads(model):
    check([model], ["plain"])


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("model", MODELS)
def test_every_kind_learns_or_says_why_not(model, tmp_path):
    check([model], DATA)
    command = [sys.executable, "-c", ELSEWHERE, json.dumps([[model], list(DATA)])]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == outcomes([model], DATA), "in a new process, with an empty cache"


def check(models, data):
    for model in models:
        for name in data:
            queries = DATA[name]()
            found = []
            for n in (1, 2):
                with ltr.threads(n) as taken:
                    assert taken == min(n, numba.config.NUMBA_NUM_THREADS)
                    found += [outcome(MODELS[model], queries), outcome(MODELS[model], shuffled(queries))]
            assert len(set(found)) == 1, f"{model} on {name}: {found}"
            assert name != "plain" or is_digest(found[0]), f"{model}: {found[0]}"
            assert model not in REFUSED or is_digest(found[0]) != (name in REFUSED[model]), f"{model} on {name}: {found[0]}"
