"""What callers give to functions of arrays: taken as it is meant, or refused before a kernel reads it."""

import warnings

import numpy as np
import pandas as pd
import pytest

import ltr
from ltr.data.arrays import floats_of, ints_of, offsets_of, rows_of, scores_of
from tests.conftest import make_queries


def test_numbers_of_many_kinds():
    for given in ([1, 0, 2], np.array([1, 0, 2], ">i4"), np.arange(6)[::2] % 3, pd.array([1, 0, 2], "Int64")[[0, 1, 2]]):
        taken = floats_of("x", given)
        assert (taken.dtype, taken.flags.c_contiguous, taken.flags.writeable, len(taken)) == (np.float64, True, True, 3)
    masked = np.ma.masked_array([1.0, 7.0], [False, True])
    assert np.isnan(floats_of("x", masked)[1])
    frozen = np.arange(3)
    frozen.flags.writeable = False
    assert ints_of("x", frozen).flags.writeable


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["1"], r"x: \['1'\] is not an array of numbers"),
        ([[1.0]], r"x: shape \(1, 1\), expected one dimension"),
        ([1.0, np.nan], "x: nan of document 1 is not finite"),
        ([1.0], r"x: shape \(1,\), expected \(2,\), one number per document"),
    ],
)
def test_what_are_no_scores(given, said):
    with pytest.raises(ValueError, match=said):
        scores_of("x", given, 2)


@pytest.mark.parametrize("given", [[0, 1.5, 3], [0, 4], [1, 3], [0, 2, 1, 3], []])
def test_what_are_no_offsets(given):
    with pytest.raises(ValueError, match=r"offsets"):
        offsets_of(given, 3)
    assert offsets_of([0.0, 0, 3], 3).tolist() == [0, 0, 3]


def test_public_functions_read_nothing_beside_what_they_were_given():
    """Each of these gave a number, or ended the process."""
    queries = make_queries(4, seed=1)
    n, labels, offsets = queries.n_documents, queries.labels, queries.offsets
    scores = np.linspace(0, 1, n)
    broken = scores.copy()
    broken[3] = np.nan
    for wrong in (broken, scores[:-1], np.append(scores, 1)):
        for asked in (
            lambda wrong=wrong: ltr.ledger(queries, [ltr.Term()], wrong),
            lambda wrong=wrong: ltr.Objective(queries)(wrong, 0),
            lambda wrong=wrong: ltr.Objective(queries).effective_pairs(wrong),
            lambda wrong=wrong: ltr.combine(labels, wrong, scores, offsets, "ndcg"),
        ):
            with pytest.raises(ValueError, match=r"score|shape"):
                asked()
    as32 = np.ascontiguousarray(scores[::-1], np.float32)[::-1]
    assert np.array_equal(ltr.Objective(queries)(as32, 0)[0], ltr.Objective(queries)(as32.astype(np.float64), 0)[0])
    for beside in ({"position": np.arange(3)}, {"documents": np.array([b"a"] * 3)}):
        for ties in ("stable", "docid"):
            with pytest.raises(ValueError, match=rf"{next(iter(beside))} has 3 entries; .*{n}"):
                ltr.evaluate(labels, scores, offsets, "ndcg", ltr.Conventions(ties=ties), **beside)
    tied, rules = np.zeros(3), ltr.Conventions(ties="docid")
    for ids in ([9, 10, 11], ["9", "10", "11"], np.array(["9", "10", "11"], object), pd.Series(["9", "10", "11"])):
        values = ltr.evaluate([0.0, 0, 2], tied, [0, 3], "mrr", rules, documents=ids)["mrr"]
        assert (
            values[0] == ltr.evaluate([0.0, 0, 2], tied, [0, 3], "mrr", rules, documents=np.array([b"9", b"10", b"11"]))["mrr"][0]
        )
    for wrong in ([0, n // 2], [0, n + 3], [0, 1.5, n]):
        with pytest.raises(ValueError, match="offsets"):
            ltr.combine(labels, scores, scores, wrong, "ndcg")
        with pytest.raises(ValueError, match="offsets"):
            ltr.evaluate(labels, scores, wrong, "ndcg")


def test_what_is_masked_was_not_judged():
    rng = np.random.default_rng(1)
    machine = rng.integers(0, 3, 200).astype(float)
    people = np.where(rng.random(200) < 0.8, machine, 2 - machine)
    without = rng.random(200) < 0.4
    missing, masked = np.where(without, np.nan, people), np.ma.masked_array(np.where(without, 9.0, people), without)
    weights = rng.random(200)
    assert ltr.corrected(weights, masked, machine) == ltr.corrected(weights, missing, machine)
    by_nan, by_mask = (ltr.calibrate(people, machine) for people in (missing, masked))
    assert np.array_equal(by_nan.shares, by_mask.shares)
    assert by_mask.judged == (~without).sum()


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 40])
def test_columns_beside_each_other_are_rows(n):
    rng = np.random.default_rng(n)
    columns = [rng.normal(size=9).astype(kind) for kind in (np.float64, np.float32, np.int64) for _ in range(14)][:n]
    asked = []
    rows = rows_of((asked.append(k) or column for k, column in enumerate(columns)), 9, n)
    expected = np.array([column.astype(np.float32) for column in columns]).reshape(n, 9).T
    assert rows.dtype == np.float32
    assert rows.flags.c_contiguous
    np.testing.assert_array_equal(rows, expected)
    assert asked == list(range(n))


def test_numbers_beyond_float32_become_infinite_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows_of([np.array([1e300, -1e300, np.nan])], 3, 1)[:2, 0].tolist() == [np.inf, -np.inf]
