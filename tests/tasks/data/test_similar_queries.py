"""Similar queries against all pairs compared one by one."""

import itertools
import time

import numpy as np
import polars as pl
import pytest

from tasks.data import similar_queries
from tasks.data.similar_queries import normalised, similar_clicks, similar_words


def test_normalised():
    assert pl.DataFrame({"q": ["  C++\t Primer ", "ﬁne", 7]}, strict=False).select(normalised("q"))["q"].to_list() == [
        "c++ primer",
        "fine",
        "7",
    ]
    for text in ("übergröße", "οδός", "straße ﬁn", "İzmir", "ﬃ"):
        found = pl.DataFrame({"q": [text, text.upper(), text.swapcase()]}).select(normalised("q"))["q"]
        assert found.n_unique() == 1, found.to_list()


@pytest.mark.parametrize("threshold", [0.34, 0.5, 0.6, 0.75, 1.0])
def test_words_as_by_all_pairs(threshold):
    rng = np.random.default_rng(5)
    texts = [" ".join(f"w{w}" for w in rng.choice(9, rng.integers(1, 7), replace=False)) for _ in range(60)]
    frame = pl.DataFrame({"query": [str(k // 2) for k in range(60)], "text": texts})
    known = pl.Series([str(k) for k in range(10)])
    want = set()
    for (a, one), (b, two) in itertools.product(frame.rows(), repeat=2):
        s, t = set(one.split()), set(two.split())
        if a != b and int(a) < 10 and len(s & t) / len(s | t) >= threshold - 1e-12:
            want.add((a, b))
    assert len(want) > 3
    assert set(similar_words(frame, known, threshold).rows()) == want


def test_queries_without_a_text_are_like_none():
    texts = pl.DataFrame({"query": ["a", "b", "c", "d"], "text": ["", "", None, "red"]})
    assert similar_words(texts, texts["query"], 0.5).rows() == []


@pytest.mark.parametrize("at_once", [1, 30, 100, 10**6])
def test_clicks_as_by_all_pairs(at_once, monkeypatch):
    monkeypatch.setattr(similar_queries, "_AT_ONCE", at_once)
    rng = np.random.default_rng(6)
    counts = rng.poisson(0.7, (12, 6))
    query, document = np.nonzero(counts >= 0)
    frame = pl.DataFrame({"query": query.astype(str), "document": document.astype(str), "clicks": counts.ravel()})
    want = {
        (str(a), str(b))
        for a, b in itertools.permutations(range(12), 2)
        if a < 5 and counts[a] @ counts[b] >= 0.6 * np.linalg.norm(counts[a]) * np.linalg.norm(counts[b]) > 0
    }
    assert len(want) > 3
    assert set(similar_clicks(frame, pl.Series([str(k) for k in range(5)]), 0.6).rows()) == want


def test_clicks_of_queries_that_share_a_popular_document():
    """All pairs of such queries were joined as rows of a table, which took 5 GB of 20,000 queries."""
    n = 3000
    own = pl.DataFrame({"query": [f"q{k}" for k in range(n)], "document": [f"d{k // 2}" for k in range(n)], "clicks": [3] * n})
    frame = pl.concat((own, own.with_columns(document=pl.lit("home"), clicks=pl.lit(1, pl.Int64))))
    began = time.process_time()
    found = similar_clicks(frame, own["query"], 0.75)
    assert time.process_time() - began < 3
    assert found.height == n
    assert set(found.head(4).rows()) == {("q0", "q1"), ("q1", "q0"), ("q10", "q11"), ("q100", "q101")}


def test_clicks_of_many_queries_that_hardly_share_documents():
    """Each block was as many queries as all pairs of them allow, and each looked through the whole log again: 400,000 queries had no end."""
    n = 200_000
    frame = pl.DataFrame({"query": [f"q{k:06}" for k in range(n)], "document": [k // 2 for k in range(n)], "clicks": [3] * n})
    began = time.process_time()
    found = similar_clicks(frame, frame["query"], 0.75)
    assert time.process_time() - began < 2
    assert found["other"].equals(frame["query"][np.arange(n) ^ 1].alias("other"))


def test_clicks_of_queries_none_of_which_is_known():
    frame = pl.DataFrame({"query": ["a", "b"], "document": ["d", "d"], "clicks": [1, 1]})
    assert similar_clicks(frame, pl.Series(["c"]), 0.5).rows() == []


def test_clicks_that_nobody_made():
    none = pl.DataFrame({"query": ["a", "b"], "document": ["d", "d"], "clicks": [0, 0]})
    assert similar_clicks(none, none["query"], 0.5).schema == {"query": pl.String, "other": pl.String}
