import numpy as np
import pytest

import ltr
from ltr.data.masked import unmasked


def test_masked_numbers_are_missing_ones():
    given = np.ma.masked_array([[1, 2], [3, 4]], [[0, 1], [0, 0]])
    assert np.array_equal(unmasked(given), [[1, np.nan], [3, 4]], equal_nan=True)
    assert type(unmasked(np.ma.masked_array([1, 2]))) is np.ndarray
    assert unmasked("text") == "text"


def test_wherever_they_are_given():
    """As features to learn from and to predict, as labels, and as scores, which nobody may leave out."""
    rng = np.random.default_rng(1)
    holes = rng.random((300, 3)) < 0.2
    features = rng.normal(size=(300, 3)).astype(np.float32)
    masked, missing = np.ma.masked_array(features, holes), np.where(holes, np.float32(np.nan), features)
    labels, offsets = rng.integers(0, 3, 300).astype(float), np.arange(0, 301, 10)
    model = ltr.LambdaMART(n_trees=5)
    fitted = model.fit(ltr.Queries(missing, labels, offsets))
    assert model.fit(ltr.Queries(masked, labels, offsets)).digest == fitted.digest
    assert fitted.predict(masked).tolist() == fitted.predict(missing).tolist()
    estimator = ltr.Estimator(model).fit(masked, labels, group=np.diff(offsets))
    assert estimator.predict(masked).tolist() == estimator.predict(missing).tolist()
    unjudged = holes[:, 0]
    known = ltr.evaluate(np.where(unjudged, np.nan, labels), fitted.predict(missing), offsets, ["map"])["map"]
    found = ltr.evaluate(np.ma.masked_array(labels, unjudged), fitted.predict(missing), offsets, ["map"])["map"]
    assert np.array_equal(found, known, equal_nan=True)
    with pytest.raises(ValueError, match="score"):
        ltr.evaluate(labels, np.ma.masked_array(fitted.predict(missing), unjudged), offsets, ["map"])
