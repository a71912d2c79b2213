"""Every baseline against what defines it: brute force, another library, or its formula."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import select
from ltr.linear.listwise import LOSSES
from tests.conftest import make_queries, share_of_random_weights

ALL = [
    ltr.RankSVM(),
    ltr.RankBoost(rounds=60),
    ltr.SVMmap(),
    ltr.AdaRank(rounds=50),
    *(ltr.Listwise(loss=loss, samples=40) for loss in LOSSES),
]


@pytest.mark.parametrize("model", ALL, ids=lambda m: getattr(m, "loss", m.kind))
def test_they_learn_come_back_and_do_not_mind_the_order_of_rows(model, tmp_path):
    train, valid = make_queries(60, seed=1), make_queries(40, seed=2)
    fitted = model.fit(train, valid)
    scores = fitted.predict(valid.features)
    found = np.nanmean(ltr.evaluate(valid.labels, scores, valid.offsets, ["ndcg_10"])["ndcg_10"])
    best = np.nanmean(ltr.evaluate(valid.labels, valid.features[:, 0], valid.offsets, ["ndcg_10"])["ndcg_10"])
    assert found > best - 0.02, "labels are feature 1 and noise"
    assert share_of_random_weights(valid, found) < 0.03
    assert fitted.curve.valid[-1] > best - 0.03
    ltr.save(fitted, tmp_path)
    loaded = ltr.load(tmp_path)
    assert loaded.digest == fitted.digest
    assert np.array_equal(loaded.predict(valid.features), scores)
    shuffled = select(train, np.random.default_rng(0).permutation(train.n_queries))
    assert model.fit(shuffled, valid).digest == fitted.digest
    surface = fitted.surface(valid.features)
    assert surface.n_documents == valid.n_documents


def test_parameters_out_of_range():
    for wrong in (
        lambda: ltr.RankSVM(C=0), lambda: ltr.RankBoost(rounds=0), lambda: ltr.SVMmap(measure="ndcg"), lambda: ltr.SVMmap(C=-1),
        lambda: ltr.AdaRank(measure="errors"), lambda: ltr.Listwise(loss="hinge"), lambda: ltr.Listwise(tau=0),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"RankSVM|RankBoost|SVMmap|errors|Listwise"):
            wrong()
    flat = replace(make_queries(5), labels=np.ones(make_queries(5).n_documents))
    with pytest.raises(ValueError, match="no query has documents of different labels"):
        ltr.RankBoost().fit(flat)
    with pytest.raises(ValueError, match="undefined on every training query"):
        ltr.AdaRank(measure="map").fit(replace(flat, labels=flat.labels * 0))
