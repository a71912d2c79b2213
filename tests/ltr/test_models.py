"""Models on disk: what was saved is what scores, and what was touched is refused."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import ltr
from tests.conftest import make_queries

FITTED = [
    ltr.LambdaMART(
        n_trees=4,
        n_leaves=4,
        min_docs_in_leaf=3,
        objective=(ltr.Term("ndcg"), ltr.Term("map", weight=ltr.Schedule(0.1, "linear", 0.1))),
    ),
    ltr.LambdaRank(epochs=2),
    ltr.LambdaRank(hidden=3, epochs=2),
    ltr.LeastSquares(ridge=0.5),
]


@pytest.mark.parametrize("model", FITTED, ids=lambda m: f"{m.kind}{getattr(m, 'hidden', '')}")
def test_saved_and_loaded_is_the_same_model(model, tmp_path):
    queries = make_queries(20)
    fitted = model.fit(queries)
    ltr.save(fitted, tmp_path / "m")
    loaded = ltr.load(tmp_path / "m")
    assert loaded.digest == fitted.digest
    assert loaded.parameters == fitted.parameters
    assert np.array_equal(loaded.predict(queries.features), fitted.predict(queries.features))
    assert replace(loaded).fit(queries).digest == fitted.digest


def test_a_touched_or_foreign_folder_is_refused(tmp_path):
    ltr.save(ltr.LeastSquares().fit(make_queries(20)), tmp_path)
    about = json.loads((tmp_path / "model.json").read_text())
    for change, rule in (
        ({"digest": "0" * 64}, "do not match the digest"),
        ({"format": 99}, "format 99"),
        ({"kind": "x"}, "unknown kind"),
    ):
        (tmp_path / "model.json").write_text(json.dumps(about | change))
        with pytest.raises(ValueError, match=rule):
            ltr.load(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(about))
    (tmp_path / "model.npz").write_bytes(b"not an archive")
    with pytest.raises(ValueError, match="no readable"):
        ltr.load(tmp_path)
    with pytest.raises(ValueError, match="no readable"):
        ltr.load(tmp_path / "nowhere")


def test_frames_are_read_by_feature_name():
    queries = make_queries(20)
    model = ltr.LeastSquares().fit(queries)
    frame = pl.DataFrame(queries.features, schema=list(queries.names))
    assert np.array_equal(model.predict(frame.select(reversed(frame.columns))), model.predict(queries.features))
    with pytest.raises(ValueError, match="features missing in the data: f2"):
        model.predict(frame.drop("f2"))


def test_least_squares_is_numpys(queries):
    design = np.column_stack((queries.features, np.ones(queries.n_documents)))
    weights = np.linalg.lstsq(design.astype(float), queries.labels, rcond=None)[0]
    assert ltr.LeastSquares().fit(queries).weights == pytest.approx(weights[:-1])
    assert np.abs(ltr.LeastSquares(ridge=1e6).fit(queries).weights).max() < 1e-3
