"""The first round beside all features."""

import numpy as np
import pytest

import ltr
from tests.conftest import make_queries


def test_adarank_begins_with_the_best_feature():
    queries = make_queries(30, seed=7)
    model = ltr.AdaRank(rounds=1, measure="ndcg_5", standardise=False).fit(queries)
    alone = {
        (k, sign): np.nanmean(
            ltr.evaluate(queries.labels, sign * queries.features[:, k].astype(float), queries.offsets, ["ndcg_5"])["ndcg_5"]
        )
        for k in range(4)
        for sign in (1, -1)
    }
    (k, sign), value = max(alone.items(), key=lambda pair: pair[1])
    assert np.flatnonzero(model.weights).tolist() == [k]
    assert model.weights[k] == pytest.approx(sign * 0.5 * np.log((1 + value) / (1 - value)))
