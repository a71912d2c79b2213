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


@pytest.mark.parametrize("ties", ["stable", "docid", "expected"])
def test_ties_are_those_of_the_convention(ties):
    """Of features that tie much, by file order and by document id too: what it says of its training is the value of its model."""
    drawn = make_queries(30, seed=3)
    rng = np.random.default_rng(0)
    queries = ltr.Queries(
        rng.integers(0, 3, drawn.features.shape), drawn.labels, drawn.offsets,
        position=rng.permutation(drawn.n_documents), documents=np.array([b"d%05d" % k for k in rng.permutation(drawn.n_documents)]),
    )  # fmt: skip
    rules = ltr.Conventions(ties=ties)
    model = ltr.AdaRank(rounds=20, measure="ndcg_5", conventions=rules).fit(queries)
    scores = model.predict(queries.features)
    values = ltr.evaluate(queries.labels, scores, queries.offsets, ["ndcg_5"], rules, queries.position, queries.documents)["ndcg_5"]
    assert f"training ndcg_5 {np.nanmean(values):.4f}" in model.remarks[-1]
