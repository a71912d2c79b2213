"""Tables become the queries that they say, whatever form they have; the estimator's tests hold the rest."""

import warnings
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

import ltr
from ltr.data.sparse import is_sparse
from ltr.rankers.tables import Reading, are_numbers, weighed
from tests.ltr.rankers.test_estimator import TREES, framed, rows


def test_arrays_and_frames_are_the_same_queries():
    X, y, qid, queries, _ = rows()
    frame = framed(X, qid, queries.names)
    for given in (ltr.queries_from(X, y, qid), ltr.queries_from(frame, y), ltr.queries_from(frame.to_pandas(), pl.Series(y))):
        assert given.digest == queries.digest
        assert np.array_equal(given.labels[np.argsort(given.position)], y)
    renamed = ltr.queries_from(frame.rename({"qid": "query"}), y, query="query")
    assert renamed.digest == queries.digest
    plain = ltr.Queries(queries.features, queries.labels, queries.offsets)
    by_group = ltr.queries_from(queries.features, queries.labels, group=np.diff(queries.offsets))
    assert by_group.digest == plain.digest


def test_they_train_as_the_estimator_does():
    X, y, qid, *_ = rows()
    weights = np.random.default_rng(0).uniform(0, 2, len(y))
    queries = ltr.queries_from(X, y, qid, sample_weight=weights)
    assert np.array_equal(queries.document_weights, weights[queries.position])
    assert TREES.fit(queries).digest == ltr.Estimator(TREES).fit(X, y, qid, sample_weight=weights).model_.digest


def test_rows_that_weigh_alike_within_queries_are_weights_of_queries():
    queries = ltr.queries_from(np.zeros((5, 1)), np.arange(5), qid=[7, 8, 7, 8, 8])
    assert weighed(queries, [2, 3, 2, 3, 3]).weights.tolist() == [2, 3]
    assert weighed(queries, [2, 3]).weights.tolist() == [2, 3]
    assert weighed(queries, [2, 3, 1, 3, 3]).document_weights.tolist() == [2, 1, 3, 3, 3]
    assert weighed(queries, [2, 0, 2, 0, 0]).document_weights.tolist() == [2, 2, 0, 0, 0]


def test_alike_queries_of_other_weights_may_come_in_any_order():
    rng = np.random.default_rng(0)
    features, labels, weights = (
        np.tile(rng.integers(0, 3, (12, 2)), (6, 1)),
        np.tile(rng.integers(0, 3, 12), 6),
        np.arange(1.0, 7.0),
    )
    for of_rows in (False, True):
        digests, keys = set(), []
        for order in (np.arange(6), np.arange(6)[::-1], rng.permutation(6)):
            rows = np.concatenate([np.arange(12 * q, 12 * q + 12) for q in order])
            own = weights[order] if not of_rows else (weights[:, None] + np.arange(12) / 12)[order].ravel()
            queries = ltr.queries_from(features[rows], labels[rows], group=[12] * 6, sample_weight=own)
            digests.add(ltr.LambdaMART(n_trees=5, min_docs_in_leaf=2, query_share=0.5).fit(queries).digest)
            keys.append(queries.keys[np.argsort(order)].tolist())
        assert len(digests) == 1
        assert keys[0] == keys[1] == keys[2]


def test_what_is_read_later_is_read_by_name_and_by_category():
    reading = Reading("qid", ("b", "a"), {"a": ["low", "high"]})
    features, names = reading.features(pl.DataFrame({"a": ["high", "huge"], "c": [1, 2], "b": [0.5, None]}))
    assert names == ("b", "a")
    assert np.array_equal(features, np.array([[0.5, 1], [np.nan, np.nan]], np.float32), equal_nan=True)
    with pytest.raises(ValueError, match=r"X: a LazyFrame holds no rows yet; collect\(\) it first"):
        ltr.queries_from(pl.DataFrame({"a": [1], "qid": [1]}).lazy(), [1])
    with pytest.raises(ValueError, match="features missing in the data: b"):
        reading.features(pl.DataFrame({"a": ["low"]}))


@pytest.mark.parametrize("library", [pd, pl])
def test_columns_that_hold_numbers_only_as_their_own_code(library):
    """A ranker knows nothing of a column's categories, and numbers in their place would be read as other ones."""
    rng = np.random.default_rng(1)
    numbers = {name: rng.integers(1, 5, 120).astype(float) for name in "ab"}
    model = ltr.LambdaMART(n_trees=2).fit(ltr.queries_from(library.DataFrame(numbers), rng.integers(0, 3, 120), group=[10] * 12))
    sites = [f"{site:g}" for site in numbers["b"]]
    times = [datetime(2026, 1, int(day)) for day in numbers["b"]]
    kinds = (pd.Categorical(numbers["b"]), times) if library is pd else (pl.Series(sites, dtype=pl.Categorical), times)
    for column in kinds:
        with pytest.raises(ValueError, match="column 'b' holds no numbers"):
            model.predict(library.DataFrame(numbers | {"b": column}))


def test_nullable_columns_hold_missing_numbers():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({name: rng.integers(1, 5, 120).astype(float) for name in "ab"})
    model = ltr.LambdaMART(n_trees=2).fit(ltr.queries_from(frame, rng.integers(0, 3, 120), group=[10] * 12))
    frame.loc[3, "b"] = np.nan
    nullable = frame.astype({"b": "Int64"})
    nullable.loc[3, "b"] = pd.NA
    assert np.array_equal(model.predict(nullable), model.predict(frame))
    with pytest.raises(ValueError, match="column 'a' holds no numbers"):
        model.predict(nullable.assign(a="shop"))


def test_two_columns_of_one_name_are_refused():
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(20, 3)), columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="two columns are called 'a'"):
        ltr.queries_from(frame, np.arange(20) % 2, group=[10, 10])
    model = ltr.LeastSquares().fit(ltr.queries_from(frame.iloc[:, :2], np.arange(20) % 2, group=[10, 10]))
    with pytest.raises(ValueError, match="two columns are called 'a'"):
        model.predict(frame)


def test_numbers_are_not_categories_of_text_nor_text_those_of_numbers():
    text, numbers = Reading("qid", ("site",), {"site": ("a", "b")}), Reading("qid", ("site",), {"site": (1, 2)})
    with pytest.raises(ValueError, match=r"column 'site': Int64; its categories are text, such as 'a', 'b'"):
        text.features(pl.DataFrame({"site": [0, 1]}))
    with pytest.raises(ValueError, match=r"column 'site': str.*; its categories are no text, such as 1, 2"):
        numbers.features(pd.DataFrame({"site": ["1", "2"]}))
    for unknown in (["c", None], [None, None], ["c", "a"]):
        features, _ = text.features(pl.DataFrame({"site": unknown}, schema={"site": pl.String}))
        assert np.isnan(features[:, 0]).tolist() == [value != "a" for value in unknown]
    assert np.isnan(numbers.features(pd.DataFrame({"site": [3.0, np.nan]}))[0]).all()
    assert np.isnan(text.features(pd.DataFrame({"site": pd.array(["c", None], "string")}))[0]).all()


def test_what_is_no_category_of_fit_is_told_whatever_it_is():
    day, moment = date(2024, 1, 1), pd.Timestamp("2024-01-01")
    intervals = pd.cut([1.0, 2, 3, 4], 2).categories
    for known, unknown in (
        ([day], date(2025, 1, 1)), ([moment], pd.Timestamp("2025-01-01")), ([(1, 2)], (3, 4)), ([b"a"], b"b"),
        ([*intervals], pd.Interval(0, 9)),
    ):  # fmt: skip
        reading = Reading("qid", ("site",), {"site": known})
        column = pd.Series([known[0], unknown, None], dtype=object)
        with pytest.warns(UserWarning, match="column 'site': 1 of 3 values are not categories of fit"):
            features, _ = reading.features(pd.DataFrame({"site": column}))
        assert features[:, 0].tolist()[:1] == [0]
        assert np.isnan(features[1:, 0]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        missing = pd.Series([pd.NA, pd.NaT, None, np.nan], dtype=object)
        assert np.isnan(Reading("qid", ("site",), {"site": [day]}).features(pd.DataFrame({"site": missing}))[0]).all()
    with pytest.raises(ValueError, match=r"column 'site': datetime64.*; its categories are text, such as '2024-01-01'"):
        Reading("qid", ("site",), {"site": ["2024-01-01"]}).features(pd.DataFrame({"site": [moment]}))


def test_whole_numbers_that_are_categories_are_themselves_also_without_the_estimator(tmp_path):
    """A saved model knows nothing of an estimator's lists: 7, 10 and 20 were places 0, 1 and 2 to it, and other categories to whoever gave it numbers."""
    rng = np.random.default_rng(3)
    sites = rng.choice([7, 10, 20, 30], 300)
    a, y, qid = rng.normal(size=300), rng.integers(0, 3, 300), np.repeat(np.arange(30), 10)
    frame = pd.DataFrame({"a": a, "site": pd.Categorical(sites), "qid": qid})
    estimator = ltr.Estimator(ltr.LambdaMART(n_trees=5, feature_share=1)).fit(frame, y)
    ltr.save(estimator.model_, tmp_path / "m")
    scores = estimator.predict(frame)
    assert len(np.unique(scores)) > 5
    assert np.array_equal(ltr.load(tmp_path / "m").predict(frame.assign(site=sites)), scores)
    with pytest.warns(
        UserWarning, match=r"column 'site': 300 of 300 values are not categories of fit, such as 11; they count as missing"
    ):
        unknown = estimator.predict(frame.assign(site=11))
    assert np.array_equal(unknown, estimator.predict(frame.assign(site=np.nan)))
    nullable = frame.assign(site=pd.Series(sites, dtype="Int64").astype("category"))
    assert ltr.Estimator(ltr.LambdaMART(n_trees=5, feature_share=1)).fit(nullable, y).model_.digest == estimator.model_.digest


def test_what_training_goes_on_from_keeps_its_way_to_read_categories():
    rng = np.random.default_rng(3)
    y, sites = rng.integers(0, 3, 300), rng.choice([10, 20, 30], 300)
    frame = pd.DataFrame({"a": rng.normal(size=300), "site": pd.Categorical(sites), "qid": np.repeat(np.arange(30), 10)})
    trees = ltr.LambdaMART(n_trees=5, feature_share=1)
    first, more = ltr.Estimator(trees).fit(frame, y), ltr.Estimator(replace(trees, n_trees=8))
    assert first.themselves_ == ("site",)
    goes_on = more.fit(frame.assign(site=pd.Categorical(sites, categories=[10, 20, 30, 40])), y, init_model=first)
    assert np.array_equal(goes_on.predict(frame, n_trees=5), first.predict(frame))
    empty = ltr.Estimator(trees).fit(frame.assign(site=pd.Categorical([None] * 300, categories=[])), y)
    text = more.fit(frame.assign(site=pd.Categorical(sites.astype(str))), y, init_model=empty)
    assert (empty.themselves_, text.themselves_) == ((), ())
    with pytest.raises(ValueError, match="it learned categories of 'site' that are whole numbers up to 65,535, and -1 is not one"):
        more.fit(frame.assign(site=pd.Categorical(sites, categories=[10, 20, 30, -1])), y, init_model=first)
    del first.themselves_  # as in 0.1.0, whose trees know places
    old = ltr.Estimator(trees).fit(frame.assign(site=pd.Categorical(sites.astype(str))), y)
    old.categories_ = {"site": [10, 20, 30]}
    del old.themselves_
    places = frame.assign(site=pd.Categorical(np.searchsorted([10, 20, 30], sites).astype(int)))
    assert np.array_equal(old.predict(frame), ltr.Estimator(trees).fit(places, y).predict(places))


def test_which_categories_count_as_themselves():
    assert are_numbers([7, 10, 0, 65_535])
    assert are_numbers([True, False, 2.0])
    for other in ([], [-1, 5], [0.5], ["1"], [65_536], [float("nan")], [float("inf")], [10**400]):
        assert not are_numbers(other)
    features, _ = Reading("qid", ("site",), {"site": ["b", "a"]}).features(pl.DataFrame({"site": ["b", "a"]}))
    assert features[:, 0].tolist() == [0, 1]


def test_categories_that_depend_on_the_rows_are_refused():
    frame = pl.DataFrame({"a": [1.0, 2.0], "site": pl.Series(["x", "y"], dtype=pl.Categorical)})
    with pytest.raises(ValueError, match=r"column 'site': Categorical numbers only the categories in its own rows.*polars\.Enum"):
        ltr.queries_from(frame, [0, 1], group=[2])
    known = frame.with_columns(pl.col("site").cast(pl.Enum(["w", "x", "y"])))
    assert ltr.queries_from(known, [0, 1], group=[2]).features[:, 1].tolist() == [1, 2]


def test_what_would_be_read_otherwise_than_meant_is_told():
    with pytest.raises(ValueError, match=r"X: a Table of Arrow; give polars\.from_arrow\(X\), or its to_pandas\(\)"):
        ltr.queries_from(pl.DataFrame({"a": [1.0], "qid": [1]}).to_arrow(), [1])
    with pytest.raises(ValueError, match="X: 1 of 2 columns are named by text, and one is 0"):
        ltr.queries_from(pd.DataFrame({0: [1.0], "qid": [1]}), [1])
    with pytest.warns(
        UserWarning,
        match="column 'id': whole numbers above 16,777,216 lose their last digits in float32, 2 here, such as 10995116277",
    ):
        ltr.queries_from(pl.DataFrame({"id": [2**40 + 1, 2**40 + 3, 2**24], "qid": [1, 1, 1]}), [0, 1, 2])
    large = np.array([2**40 + 1, 2**40 + 3, 2**24])
    for column in (
        pd.array([2**40 + 1, 2**40 + 3, None], dtype="Int64"),
        pd.array([2**40 + 1, 2**40 + 3, None], dtype="int64[pyarrow]"),
    ):
        with pytest.warns(UserWarning, match="column 'id': whole numbers .* 2 here"):
            ltr.queries_from(pd.DataFrame({"id": column}), [0, 1, 2], group=[3])
    with pytest.warns(UserWarning, match="column 'id': whole numbers .* 2 here"):
        ltr.queries_from(pl.DataFrame({"id": [2**40 + 1, 2**40 + 3, None]}), [0, 1, 2], group=[3])
    for table in (csr_array(large[:, None]), np.ma.array(large[:, None], mask=[[False], [False], [True]])):
        with pytest.warns(UserWarning, match="X: whole numbers .* 2 here"):
            ltr.queries_from(table, [0, 1, 2], group=[3])
    with pytest.warns(UserWarning, match="features: whole numbers .* 1 here"):
        ltr.Queries(np.array([[2**24 + 1], [2**25]]), [0, 1], [0, 2])


def test_whole_numbers_that_are_floats_lose_digits_too():
    """As pandas keeps those of which one is missing; what is no whole number is rounded, as all features are."""
    seconds = pd.DataFrame({"time": pd.Series([1_700_000_001, 1_700_000_003, None]), "price": [2.0e7 + 0.3, 2**25, 1e-9]})
    with pytest.warns(UserWarning, match="column 'time': whole numbers .* 2 here, such as 1700000001") as told:
        ltr.Estimator(ltr.LambdaMART(n_trees=1)).fit(seconds, [0, 1, 2], group=[3])
    assert len(told) == 1
    held = seconds.to_numpy()
    for table in (held, held.tolist(), np.asfortranarray(held), csr_array(held)):
        with pytest.warns(UserWarning, match="X: whole numbers .* 2 here, such as 1700000001"):
            ltr.queries_from(table, [0, 1, 2], group=[3])
        with pytest.warns(UserWarning, match="features: whole numbers .* 2 here"):
            ltr.Queries(table, [0, 1, 2], [0, 3])
    with warnings.catch_warnings(action="error"):
        ltr.Queries(held.astype(np.float32).astype(np.float64), [0, 1, 2], [0, 3])
        ltr.Queries(np.full((2, 1), np.nan), [0, 1], [0, 2])


@pytest.mark.parametrize("kind", [float, np.float32, np.longdouble, np.int8, np.uint64, object, str, bytes])
def test_ids_are_the_text_that_a_file_of_them_is_read_as(kind):
    """A merge makes floats of whole numbers: in files (`tasks.data.tables.id_text`) 7.0 is 7."""
    X, y, qid, _, _ = rows()
    whole = np.unique(np.asarray(qid), return_inverse=True)[1]
    queries = ltr.queries_from(X, y, qid=whole.astype(kind))
    assert queries.digest == ltr.queries_from(X, y, qid=whole).digest
    assert set(queries.ids.tolist()) == {b"%d" % number for number in whole}


def test_other_ids_are_as_files_have_them_too():
    queries = ltr.queries_from([[1.0], [2], [3], [4]], [0, 1, 0, 1], qid=[1.5, 1.5, -0.0, -0.0])
    assert set(queries.ids.tolist()) == {b"1.5", b"0"}
    assert set(ltr.queries_from([[1.0], [2]], [0, 1], qid=[True, False]).ids.tolist()) == {b"true", b"false"}
    of_both = ltr.queries_from([[1.0], [2], [3], [4]], [0, 1, 0, 1], qid=[1, True, 0, False])
    assert set(of_both.ids.tolist()) == {b"1", b"true", b"0", b"false"}


@pytest.mark.parametrize("kind", ["Int64", "Float64", "int64[pyarrow]", float])
def test_sizes_of_queries_are_whole_numbers_of_any_type(kind):
    X, y = np.arange(10.0)[:, None], np.arange(10.0) % 2
    assert ltr.queries_from(X, y, group=pd.Series([4, 6], dtype=kind)).offsets.tolist() == [0, 4, 10]
    for wrong in ([4.5, 5.5], [2**62] * 4 + [10], [np.nan, 10]):
        with pytest.raises(ValueError, match="group: sizes of the queries, whole numbers from 1 that sum to 10"):
            ltr.queries_from(X, y, group=wrong)


def test_a_column_of_columns_is_told_by_name():
    frame = pl.DataFrame({"qid": [1, 1], "a": [1.0, 2.0]})
    for nested in (pl.struct("a", c=pl.col("a")), pl.concat_list("a", "a"), pl.concat_arr("a", "a")):
        with pytest.raises(ValueError, match=r"column 'b': .*; features are numbers"):
            ltr.queries_from(frame.with_columns(b=nested), [0, 1])


@pytest.mark.parametrize("far", [1e39, -1e300])
@pytest.mark.parametrize("kind", [float, object, np.longdouble])
@pytest.mark.filterwarnings(
    "error", "ignore:overflow encountered in scalar multiply"
)  # digests overflow, which numpy tells without the JIT
def test_a_number_that_float32_does_not_reach_is_told_with_its_place(far, kind):
    """It was called infinite, after a warning of numpy's."""
    X = np.arange(12.0).reshape(6, 2)
    y, qid = [0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1]
    fitted, by_name = (ltr.Estimator(TREES).fit(X, y, qid=qid), ltr.Estimator(TREES).fit(framed(X, qid, ("a", "b")), y))
    beyond = X.astype(kind)
    beyond[3, 1] = far
    frame = framed(beyond.astype(float), qid, ("a", "b"))
    place = f"{far:g} at [3, 1]".replace("[", r"\[").replace("+", r"\+")
    rule = r"; features must be float32 numbers, up to 3\.4e38"
    for whose, do in {
        "features": lambda: ltr.Queries(beyond, y, [0, 3, 6]),
        "X": lambda: ltr.queries_from(beyond, y, qid=qid),
        "X: ": lambda: fitted.predict(beyond),
        "features: ": lambda: fitted.model_.predict(beyond),
        "features:": lambda: by_name.model_.predict(frame),
    }.items():
        with pytest.raises(ValueError, match=whose + ".*" + place + rule):
            do()
    for do in (lambda: ltr.queries_from(frame, y), lambda: by_name.predict(frame)):
        with pytest.raises(ValueError, match="column 'b': " + place.replace("3, 1", "3") + rule):
            do()
    beyond[3, 1] = np.finfo(np.float32).max
    assert np.isfinite(ltr.Queries(beyond, y, [0, 3, 6]).features).all()


def test_sparse_features_stay_sparse():
    features = csr_array(np.eye(4, dtype=np.float32))
    queries = ltr.queries_from(features, [0, 1, 0, 2], qid=["b", "a", "b", "a"])
    assert is_sparse(queries.features)
    assert np.array_equal(queries.features.toarray(), np.eye(4)[[0, 2, 1, 3]])


def test_what_lies_below_a_mask_is_not_there():
    X, y, qid = np.ones((4, 1)), [0, 1, 0, 1], np.ma.masked_array([1, 1, 2, 2], mask=[0, 0, 1, 0])
    with pytest.raises(ValueError, match="qid: row 2 is missing"):
        ltr.queries_from(X, y, qid)
    for masked in ({"group": np.ma.masked_array([2, 2], mask=[0, 1])}, {"qid": [1, 1, 2, 2], "sample_weight": qid}):
        with pytest.raises(ValueError, match=f"{[*masked][-1]}: "):
            ltr.queries_from(X, y, **masked)


def test_a_day_is_one_id_whatever_its_type():
    days = np.array(["2020-01-02", "2020-01-02", "2020-01-03"], "datetime64[D]")
    forms = [days.astype(f"datetime64[{unit}]") for unit in ("D", "s", "ms", "us", "ns")]
    forms += [
        pd.Series(days),
        pd.Series(days).astype(object),
        pl.Series(days),
        pl.Series(days).cast(pl.Datetime("us")),
        days.tolist(),
    ]
    for form in forms:
        queries = ltr.queries_from(np.ones((3, 1)), [0, 1, 0], form)
        assert queries.ids.tolist() == [b"2020-01-02", b"2020-01-03"]
    hours = pl.Series(["2020-10-25 00:30", "2020-10-25 01:30"]).str.to_datetime(time_unit="ns").dt.replace_time_zone("UTC")
    for zoned in (hours.dt.convert_time_zone("Europe/Berlin"), pl.Series([1, 2]).cast(pl.Datetime("ns", "UTC"))):
        assert ltr.queries_from(np.ones((2, 1)), [0, 1], zoned).n_queries == 2, "the hour that comes twice, and nanoseconds"
    moment = np.array(["2020-01-02T03:04:05.670"], "datetime64[ns]")
    assert ltr.queries_from(np.ones((1, 1)), [0], moment).ids.tolist() == [b"2020-01-02 03:04:05.67"]
    with pytest.raises(ValueError, match="qid: row 1 is missing"):
        ltr.queries_from(np.ones((2, 1)), [0, 1], np.array(["2020-01-02", "NaT"], "datetime64[ns]"))


def test_columns_of_arrow_are_read_as_pandas_own():
    pyarrow = pytest.importorskip("pyarrow")
    plain = pd.DataFrame({"a": [1.0, np.nan, 0.0, 1.0], "b": [1.5, 2.5, 3.5, 4.5]})
    arrow = plain.astype({"a": "bool[pyarrow]", "b": "double[pyarrow]"})
    assert ltr.queries_from(arrow, [0, 1, 0, 1], [1, 1, 2, 2]).digest == ltr.queries_from(plain, [0, 1, 0, 1], [1, 1, 2, 2]).digest
    model = ltr.LambdaMART(n_trees=2, min_docs_in_leaf=1).fit(ltr.queries_from(plain, [0, 1, 0, 1], [1, 1, 2, 2]))
    assert np.array_equal(model.predict(arrow), model.predict(plain))
    words = pd.DataFrame({"c": pd.Categorical(list("abab"))})
    kind = pd.ArrowDtype(pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))
    coded = words.assign(c=words["c"].astype(str).astype(kind))
    with pytest.raises(ValueError, match="column 'c': Dictionary numbers only the categories in its own rows"):
        ltr.queries_from(coded, [0, 1, 0, 1], [1, 1, 2, 2])
    trees = ltr.Estimator(ltr.LambdaMART(n_trees=2, min_docs_in_leaf=1, cat_smooth=0.0))
    digests = {trees.fit(frame, [0, 1, 0, 1], [1, 1, 2, 2]).model_.digest for frame in (words, coded)}
    assert len(digests) == 1


def keys(qid):
    X = np.arange(2.0 * len(qid)).reshape(-1, 2)
    return ltr.queries_from(X, np.arange(len(qid)) % 2, qid=qid).keys


def test_ids_in_a_list_are_what_they_are():
    """NumPy makes a list floats where some of it is beyond 2⁶³, and text where some of it is text."""
    large = [2**63 + k // 2 for k in range(8)]
    assert len(keys(large)) == 4
    assert np.array_equal(keys(large), keys(np.array(large, np.uint64)))
    with pytest.raises(ValueError, match="qid: row 1 is missing"):
        keys(["q", float("nan")])
    with pytest.raises(ValueError, match="qid: 1 and '1' are written alike, and would be one query"):
        keys([1, "1", 1])
    with pytest.raises(ValueError, match="qid: row 0 is missing"):
        keys(pd.Series([pd.NA, "q"], dtype="string"))
    with pytest.raises(ValueError, match="qid: row 0 has a list; an id is a text or a number"):
        keys([["a"], ["b"]])
    with pytest.raises(ValueError, match="is not text"):
        keys(["a", "\ud800"])
    assert len(keys([1.0, float("inf"), Decimal("Infinity"), 2**70, 1e30])) == 4
    assert np.array_equal(keys([np.True_, np.float16(2.334)]), keys(np.array(["true", "2.333984375"], object)))


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (pl.Series([Decimal("1.00"), Decimal("1.00"), Decimal("2.50"), Decimal("2.50")]), ["1", "2.50"]),
        (
            pl.Series([Decimal("9007199254740993.00")] * 2 + [Decimal("92233720368547758080.00")] * 2),
            ["9007199254740993", "92233720368547758080"],
        ),
        (pl.Series([0.1, 0.1, 7, 7], dtype=pl.Float32), ["0.1", "7"]),
        (pl.Series([1e-6, 1e-6, 2.21263e-6, 2.21263e-6], dtype=pl.Float32), ["0.000001", "0.00000221263"]),
        (pl.Series([1728041.4, 1728041.4, 2.21263e-6, 2.21263e-6], dtype=pl.Float32), ["1728041.4", "0.00000221263"]),
        (pl.Series([1728041.4, 1728041.4, 2.21263e-6, 2.21263e-6]), ["1728041.4", "2.21263e-6"]),
        (pl.Series([1e-7, 1e-7, 1.5e300, 1.5e300]), ["1e-7", "1.5e+300"]),
        (pl.Series([1.5e-5, 1.5e-5, -2.5e-9, -2.5e-9]), ["0.000015", "-2.5e-9"]),
        (pl.Series([time(1, 0, 0, 500), time(1, 0, 0, 500), time(2), time(2)]), ["01:00:00.0005", "02:00:00"]),
    ],
)
def test_ids_are_written_as_in_a_file(kind, written, tmp_path):
    from tasks.data.tables import id_texts

    expected = keys(np.repeat(np.array(written, object), 2))
    assert np.array_equal(keys(kind), expected)
    assert id_texts(tmp_path, kind).unique(maintain_order=True).to_list() == written


@pytest.mark.parametrize(
    "labels", [np.array(["2026-01-01", "2026-01-02"], "M8[D]"), np.array([1, 2], "m8[s]"), np.array([b"1", b"2"])]
)
def test_moments_and_bytes_are_no_labels(labels):
    with pytest.raises(ValueError, match="labels are numbers, 0 and up"):
        ltr.queries_from(np.ones((2, 2)), labels, group=[2])
