import numpy as np
import pytest

import ltr
from ltr.data.masked import unmasked


def test_masked_numbers_are_missing_ones():
    given = np.ma.masked_array([[1, 2], [3, 4]], [[0, 1], [0, 0]])
    assert np.array_equal(unmasked(given), [[1, np.nan], [3, 4]], equal_nan=True)
    assert type(unmasked(np.ma.masked_array([1, 2]))) is np.ndarray
    assert unmasked("text") == "text"


def test_pandas_columns_that_are_numbered():
    """One type makes objects of all of them where one may be missing."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    plain = np.column_stack([rng.integers(0, 9, 60), rng.normal(size=60), rng.integers(0, 2, 60)]).astype(np.float32)
    plain[[3, 7], [0, 2]] = np.nan
    frame = pd.DataFrame(plain).astype({0: "Int64", 2: "boolean"})
    assert unmasked(frame).dtype == np.float64
    assert np.array_equal(unmasked(frame).astype(np.float32), plain, equal_nan=True)
    labels, groups = rng.integers(0, 3, 60), [10] * 6
    model = ltr.Estimator(ltr.LambdaMART(n_trees=3, min_docs_in_leaf=2))
    fitted, expected = (model.fit(given, labels, group=groups).model_ for given in (frame, plain))
    assert fitted.digest == expected.digest
    assert fitted.predict(frame).tolist() == model.predict(frame).tolist() == expected.predict(plain).tolist()
    frame[0] = pd.array([2**40 + 1, None, *range(58)], dtype="Int64")
    with pytest.warns(UserWarning, match="column 0: whole numbers above 16,777,216 lose their last digits in float32, 1 here"):
        model.fit(frame, labels, group=groups)
    frame[1] = "text"
    with pytest.raises(ValueError, match=r"column 1: (object|str|string); features are numbers"):
        model.fit(frame, labels, group=groups)
    with pytest.raises(ValueError, match="features: column 1 holds no numbers"):
        fitted.predict(frame)
    with pytest.raises(ValueError, match="X: rows of different lengths; features are a table of numbers"):
        model.fit([[1, 2], [3]], [0, 1], group=[2])


@pytest.mark.parametrize("kind", ["float32", "Int64"])
def test_dates_of_pandas_are_no_numbers(kind):
    """Of numbered columns `predict` scored days as thousands of millions, which `fit` had refused."""
    pd = pytest.importorskip("pandas")
    plain = np.arange(40).reshape(20, 2).astype(np.float32)
    model = ltr.LeastSquares().fit(ltr.queries_from(plain, np.arange(20) % 3, group=[20]))
    frame = pd.DataFrame(plain).astype({0: kind})
    assert model.predict(frame).tolist() == model.predict(plain).tolist()
    frame[1] = pd.date_range("2020", periods=20)
    with pytest.raises(ValueError, match="features: column 1 holds no numbers"):
        model.predict(frame)
    with pytest.raises(ValueError, match=r"features: .* is not an array of numbers"):
        ltr.Queries(frame, np.arange(20) % 3, [0, 20])


def test_missing_values_of_pandas_among_objects_are_missing_ones():
    """A column has objects where NA was set into whole numbers, or the frame was made row by row."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    plain = rng.integers(0, 9, (60, 2)).astype(np.float32)
    plain[[3, 7], [0, 1]] = np.nan
    labels, groups = rng.integers(0, 3, 60).astype(np.float64), [10] * 6
    labels[5] = np.nan
    frame = pd.DataFrame(plain).astype(object)
    frame = frame.mask(frame.isna(), pd.NA)
    assert sum(value is pd.NA for value in frame.to_numpy().flat) == 2
    marks = pd.Series([pd.NA if label != label else label for label in labels], dtype=object)
    expected = ltr.queries_from(plain, labels, group=groups)
    rows = frame.to_numpy().tolist()
    assert np.array_equal(ltr.queries_from(rows, marks.to_list(), group=groups).features, expected.features, equal_nan=True)
    for given in (frame, frame.to_numpy()):
        for found in (ltr.queries_from(given, marks, group=groups), ltr.Queries(given, marks, [0, *np.cumsum(groups)])):
            assert np.array_equal(found.features, expected.features, equal_nan=True)
            assert np.array_equal(found.labels, expected.labels, equal_nan=True)
    model = ltr.LambdaMART(n_trees=3, min_docs_in_leaf=2).fit(expected)
    assert model.predict(frame).tolist() == model.predict(frame.to_numpy()).tolist() == model.predict(plain).tolist()
    frame.loc[0, 1] = "text"
    with pytest.raises(ValueError, match="column 1: object; features are numbers"):
        ltr.queries_from(frame, labels, group=groups)


def test_whole_numbers_among_objects_lose_digits_too():
    """Ids are objects where one of them is missing."""
    pd = pytest.importorskip("pandas")
    ids = pd.Series([16_777_217, pd.NA, 3, 16_777_218], dtype=object)
    with pytest.warns(UserWarning, match="column 'id': whole numbers above .* 1 here, such as 16777217"):
        ltr.queries_from(ids.to_frame("id"), np.zeros(4), group=[4])
    with pytest.warns(UserWarning, match="features: whole numbers above .* 1 here, such as 16777217"):
        ltr.Queries(ids.to_frame().to_numpy(), np.zeros(4), [0, 4])


def test_frames_without_a_mask_stay_what_they_are():
    """Types of numpy have the names of pandas' in small letters: whole numbers lost digits, and a float32 took twice its memory."""
    pd = pytest.importorskip("pandas")
    for plain in (np.array([[2**53 + 1, 1]]), np.zeros((2, 2), np.float32)):
        assert unmasked(frame := pd.DataFrame(plain)) is frame
    with pytest.warns(UserWarning, match="whole numbers above 16,777,216 lose their last digits"):
        ltr.Queries(pd.DataFrame([[2**40 + 1]]), [1], [0, 1])


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
