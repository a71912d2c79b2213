"""A column ranks as its feature does, whatever is missing in it, and is kept like any other ranker."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import ltr
from ltr.rankers.column import LAST
from tests.conftest import make_queries


@pytest.mark.parametrize(("descending", "sign"), [(True, 1), (False, -1)])
def test_the_score_is_the_feature(descending, sign, tmp_path):
    queries = make_queries(20)
    model = ltr.Column("f2", descending).fit(queries)
    assert np.array_equal(model.predict(queries.features), sign * queries.features[:, 1].astype(float))
    assert np.array_equal(
        model.predict(pl.DataFrame(queries.features, schema=list(queries.names))), model.predict(queries.features)
    )
    ltr.save(model, tmp_path / "m")
    opened = ltr.load(tmp_path / "m")
    assert opened == model
    assert opened.digest == model.digest != ltr.Column("f2", not descending).fit(queries).digest
    assert model.digest != ltr.Column("f1", descending).fit(queries).digest


def test_what_is_missing_ranks_last_and_is_counted():
    queries = make_queries(20)
    features = queries.features.copy()
    features[:4, 0] = [np.nan, np.inf, -np.inf, -3e38]
    for descending in (True, False):
        model = ltr.Column("f1", descending).fit(replace(queries, features=features))
        scores = model.predict(features)
        assert np.isfinite(scores).all()
        assert scores[0] == LAST == scores.min()
        assert np.argmax(scores) == (1 if descending else 2)
        assert np.flatnonzero(model.ranking_scores(features) == -np.inf).tolist() == [0]
    assert model.remarks == (f"1 of {queries.n_documents} training documents have no f1 and are unranked (not retrieved)",)


def test_what_a_column_is_not_is_said():
    queries = make_queries(5)
    with pytest.raises(ValueError, match=r"no feature 'bm25' in this data set; it has f1, f2, f3, f4$"):
        ltr.Column("bm25").fit(queries)
    for ask in (lambda m: m.predict(queries.features), lambda m: m.digest):
        with pytest.raises(ValueError, match="not fitted"):
            ask(ltr.Column("f1"))
    with pytest.raises(ValueError, match=r"a column \(f1\) has no weights, and so no certificate"):
        ltr.Column("f1").fit(queries).surface(queries.features)
