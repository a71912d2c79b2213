"""Data sets that go wrong somewhere: forty small ones, each by its name. What a ranker cannot learn from, it refuses in a sentence."""

from collections.abc import Callable

import numpy as np

from ltr.data.queries import Queries

SIZES = (1, 4, 7, 12, 3, 20)


def _queries(features=None, labels=None, sizes=SIZES, **more) -> Queries:
    rng, n = np.random.default_rng(11), int(np.sum(sizes))
    features = rng.normal(size=(n, 4)) if features is None else features
    graded = np.clip(np.round(1.5 * features[:, 0] + 1), 0, 4) if labels is None else labels
    sources = {"click": (rng.random(n) < 0.2).astype(float), "two": (np.nan_to_num(graded) >= 2).astype(float)}
    return Queries(features.astype(np.float32), graded, np.append(0, np.cumsum(sizes)), **{"sources": sources} | more)


def _n(sizes=SIZES) -> int:
    return int(np.sum(sizes))


def _normal(*shape) -> np.ndarray:
    return np.random.default_rng(5).normal(size=shape)


def _with(value, rows=slice(None), columns=slice(None), **more) -> Queries:
    """Some features replaced."""
    features = _normal(_n(), 4)
    labels = np.clip(np.round(1.5 * features[:, 0] + 1), 0, 4)
    with np.errstate(over="ignore"):
        features[rows, columns] = value
    return _queries(features, labels, **more)


def _copies(values) -> Queries:
    """The same row everywhere, of labels that contradict each other."""
    return _queries(np.tile(np.array(values, float), (_n(), 1)), np.arange(_n()) % 3.0)


DATA: dict[str, Callable[[], Queries]] = {
    "plain": _queries,
    "one document": lambda: _queries(sizes=(1,)),
    "two documents": lambda: _queries(sizes=(2,), labels=np.array([1.0, 0.0])),
    "two equal documents": lambda: _queries(np.ones((2, 3)), np.array([1.0, 0.0]), (2,)),
    "queries of one document": lambda: _queries(sizes=(1,) * 30),
    "one long query": lambda: _queries(sizes=(1100,)),
    "a long query among short ones": lambda: _queries(sizes=(1, 2, 1050, 2, 1)),
    "no relevant document": lambda: _queries(labels=np.zeros(_n())),
    "all relevant": lambda: _queries(labels=np.full(_n(), 4.0)),
    "one relevant document": lambda: _queries(labels=(np.arange(_n()) == 9) * 1.0),
    "one query with pairs": lambda: _queries(labels=np.repeat(np.arange(6) == 3, SIZES) * (np.arange(_n()) % 2.0)),
    "labels of halves": lambda: _queries(labels=np.arange(_n()) % 5 / 2),
    "labels of thousands": lambda: _queries(labels=np.arange(_n()) % 3 * 500.0),
    "two labels": lambda: _queries(labels=np.arange(_n()) % 2.0),
    "labels against the features": lambda: _queries(labels=np.clip(np.round(2 - 2 * _normal(_n(), 4)[:, 0]), 0, 4)),
    "half without a label": lambda: _queries(labels=np.where(np.arange(_n()) % 2, np.nan, np.arange(_n()) % 3)),
    "no label at all": lambda: _queries(labels=np.full(_n(), np.nan)),
    "a query without a label": lambda: _queries(labels=np.where(np.repeat(np.arange(6) == 5, SIZES), np.nan, np.arange(_n()) % 3)),
    "constant features": lambda: _copies([0, 0, 0, 0]),
    "the same row everywhere": lambda: _copies([1.5, -2, 0, 7]),
    "one constant feature": lambda: _with(3.0, columns=1),
    "the same column twice": lambda: _with(_normal(_n(), 4)[:, :1], columns=slice(0, 2)),
    "one feature": lambda: _queries(_normal(_n(), 1)),
    "more features than documents": lambda: _queries(_normal(_n(), 90)),
    "feature of the row's number": lambda: _with(np.arange(_n()), columns=2),
    "ids above 2^24": lambda: _with(2.0**24 + np.arange(_n()), columns=2),
    "two values": lambda: _queries((_normal(_n(), 4) > 0) * 1.0),
    "mostly zeros": lambda: _queries(np.where(_normal(_n(), 4) > 1.5, 1.0, 0.0)),
    "zero of both signs": lambda: _queries(np.where(_normal(_n(), 4) > 0, 0.0, -0.0), np.arange(_n()) % 3.0),
    "tiny features": lambda: _queries(_normal(_n(), 4) * 1e-40),
    "huge features": lambda: _queries(_normal(_n(), 4) * 1e37),
    "scales apart": lambda: _queries(_normal(_n(), 4) * np.array([1e-30, 1.0, 1e6, 1e30])),
    "far from zero": lambda: _queries(1e7 + np.round(_normal(_n(), 4))),
    "heavy tails": lambda: _queries(np.exp(8 * _normal(_n(), 4))),
    "missing here and there": lambda: _with(np.nan, rows=slice(0, None, 3), columns=1),
    "a column that is missing": lambda: _with(np.nan, columns=3),
    "a document that is missing": lambda: _with(np.nan, rows=5),
    "an infinite feature": lambda: _with(np.inf, rows=5, columns=2),
    "one query weighs all": lambda: _queries(weights=np.array([1e-15, 1e-15, 1e-15, 1e15, 1e-15, 1e-15])),
    "weights apart": lambda: _queries(weights=np.array([1e-15, 1, 1e15, 3, 1e9, 1])),
}
