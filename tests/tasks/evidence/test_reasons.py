"""Why one document of a query ranks above another, for people."""

import json
from itertools import combinations

import numpy as np
import pytest

import ltr
from ltr.data.queries import Queries
from tasks.evidence.reasons import pair_of, worst_pair
from tasks.records import DataError
from tasks.store.values import names_of

LABELS = np.array([0.0, 2.0, np.nan, 1.0, 0.0])
QUERIES = Queries(
    np.array([[5, 0], [1, 1], [3, 0], [4, 0], [2, 0], [1, 0], [1, 0]], np.float32),
    np.append(LABELS, [1.0, 1.0]),
    np.array([0, 5, 7]),
    ids=np.array([b"wine", b"flat"]),
    documents=np.array([b"a", b"b", b"c", b"d", b"3", b"x", b"y"]),
    names=("bm25", "fresh"),
)
MODEL = ltr.LeastSquares().fit(QUERIES)
MODEL = MODEL.moved(np.array([1.0, 0.5]))


def brute(labels, scores, gain_of):
    """The pair whose swap raises DCG most, by swapping."""
    order = np.argsort(-scores, kind="stable")
    gains = gain_of(labels[order])

    def dcg(gains):
        return (gains / np.log2(np.arange(len(gains)) + 2)).sum()

    def swapped(i, j):
        changed = gains.copy()
        changed[[i, j]] = changed[[j, i]]
        return dcg(changed) - dcg(gains)

    return max(combinations(range(len(gains)), 2), key=lambda pair: swapped(*pair))


def test_the_worst_pair_is_the_one_whose_swap_raises_dcg_most():
    rng = np.random.default_rng(0)
    for k in range(60):
        labels, scores = rng.integers(0, 4, 7).astype(float), rng.permutation(7).astype(float)
        rule, gain = (("exp2", lambda own: 2**own - 1), ("linear", lambda own: own))[k % 2]
        found = worst_pair(labels, scores, ltr.Conventions(gain=rule))
        if found is not None:
            assert found == brute(labels, scores, gain)
    assert worst_pair(np.array([2.0, 1.0]), np.array([0.3, 0.1]), ltr.Conventions()) is None, "in order"
    assert worst_pair(np.array([0.0, 1.0]), np.array([0.3, 0.3]), ltr.Conventions()) is None, "neither ranks above the other"


@pytest.mark.parametrize("unlabelled", ["zero", "condensed"])
def test_the_worst_pair_of_long_lists_with_ties_and_unjudged_documents(unlabelled):
    """Against all pairs of which one ranks above the other, by the ranks that the rules count."""
    rng = np.random.default_rng(1)
    for k in range(80):
        n = int(rng.integers(1, 400))
        labels = np.where(
            rng.random(n) < 0.3, np.nan, rng.integers(0, 4, n).astype(float) if k % 3 else np.floor(rng.random(n) * 50) / 20
        )
        scores = rng.integers(0, 30, n).astype(float) if k % 2 else rng.permutation(n).astype(float)
        order = np.argsort(-scores, kind="stable")
        counted = [i for i in range(n) if unlabelled == "zero" or not np.isnan(labels[order[i]])]
        gains = 2 ** np.nan_to_num(labels[order]) - 1
        place = {i: 1 / np.log2(2 + at) for at, i in enumerate(counted)}
        rises = {
            (i, j): (gains[j] - gains[i]) * (place[i] - place[j])
            for i, j in combinations(counted, 2)
            if scores[order[i]] > scores[order[j]] and gains[j] > gains[i]
        }
        found = worst_pair(labels, scores, ltr.Conventions(unlabelled=unlabelled))
        assert (found is None) == (not rises)
        if found:
            assert rises[found] == pytest.approx(max(rises.values()))


def test_two_that_nobody_named_and_nothing_is_wrong_with_are_told_as_such():
    queries = Queries(
        QUERIES.features[:5], np.array([4.0, 0, 0, 0, 0]), [0, 5], documents=QUERIES.documents[:5], names=QUERIES.names
    )
    (name,) = names_of(queries)
    pair = pair_of(MODEL, queries, name)
    assert pair.note == "no document ranks above one of a higher label; these are the first two"
    assert pair.text().startswith(f"{pair.note}: a (rank 1, label 4) ranks above d (rank 2, label 0)")
    assert pair_of(MODEL, queries, name, "a", "d").note == ""
    assert pair_of(MODEL, QUERIES, "wine").note == ""


def test_a_pair_is_wrong_by_the_rules_asked_for():
    """The second case of a stranger: by linear gains another pair is the worst one."""
    queries = Queries(np.arange(9.0, 4, -1)[:, None], np.array([3.0, 2, 0, 3, 2]), [0, 5])
    model = ltr.Column("f1").fit(queries)
    (name,) = names_of(queries)
    ranks = [
        (pair.above.rank, pair.below.rank)
        for pair in (pair_of(model, queries, name, conventions=ltr.Conventions(gain=rule)) for rule in ("exp2", "linear"))
    ]
    assert ranks == [(2, 4), (3, 5)]


def test_documents_at_no_rank_are_in_no_pair():
    queries = Queries(np.array([[3], [np.nan], [1]]), np.array([0.0, 2, 1]), [0, 3], documents=np.array([b"a", b"b", b"c"]))
    model = ltr.Column("f1").fit(queries)
    (name,) = names_of(queries)
    pair = pair_of(model, queries, name)
    assert (pair.above.name, pair.below.name) == ("a", "c")
    with pytest.raises(DataError, match=f"query {name}: b is unranked \\(not retrieved\\)"):
        pair_of(model, queries, name, "a", "b")


def test_a_pair_in_words_and_values():
    pair = pair_of(MODEL, QUERIES, "wine")
    assert (pair.above.name, pair.above.rank, pair.above.label) == ("a", 1, 0.0)
    assert (pair.below.name, pair.below.rank, pair.below.label) == ("b", 5, 2.0)
    assert pair.text() == (
        "a (rank 1, label 0) ranks above b (rank 5, label 2) by 3.5: bm25 +4, fresh -0.5; "
        "they would swap if bm25 of a were 1 instead of 5 (2.7 standard deviations)"
    )
    written = json.loads(json.dumps(pair.as_json(), allow_nan=False))
    assert written["difference"] == pytest.approx(3.5)
    assert written["why"]["reasons"][0] == {"feature": "bm25", "above": 5.0, "below": 1.0, "contribution": 4.0, "error": 0.0}


def test_documents_are_named_by_id_or_rank():
    assert pair_of(MODEL, QUERIES, "wine", "d", "c").above.rank == 2
    assert pair_of(MODEL, QUERIES, "wine", "2").below.name == "c", "the next one"
    assert pair_of(MODEL, QUERIES, "wine", None, "3").below.rank == 4, "an id before a rank"
    assert pair_of(MODEL, QUERIES, "wine", None, "c").above.name == "a"
    nameless = Queries(QUERIES.features, QUERIES.labels, QUERIES.offsets, ids=QUERIES.ids, names=QUERIES.names)
    assert pair_of(MODEL, nameless, "wine").above.name == "document 1"


@pytest.mark.parametrize(
    ("query", "names", "said"),
    [
        ("beer", (None, None), "no query 'beer' in the data; choose from: flat, wine"),
        ("wine", ("q", None), "query wine: no document 'q'; it has 5, by id or by rank from 1 to 5"),
        ("wine", ("b", "a"), "query wine: b (1.5) ranks below a (5); swap --above and --below"),
        ("wine", ("a", "a"), "query wine: --above and --below name the same document, a"),
        ("wine", ("a", "1"), "query wine: --above and --below name the same document, a"),
        ("flat", (None, None), "query flat: all its documents have the same score"),
    ],
)
def test_what_cannot_be_explained_is_told(query, names, said):
    with pytest.raises(DataError) as error:
        pair_of(MODEL, QUERIES, query, *names)
    assert str(error.value).startswith(said)


def test_the_drawing_has_a_bar_a_feature():
    drawing = pair_of(MODEL, QUERIES, "wine").drawing()
    for text in ("bm25", "fresh", "wine: a (rank 1, label 0) above b (rank 5, label 2)"):
        assert text in drawing
    assert drawing == pair_of(MODEL, QUERIES, "wine").drawing()
