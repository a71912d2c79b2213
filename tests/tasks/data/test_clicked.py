"""Training queries as clicked pages: what becomes of them, and of what is only judged."""

import numpy as np
import pytest

import ltr
from ltr.data.queries import canonical, select
from ltr.data.synthetic import clicked_pages
from tasks.config.clicked_pages import LOOKS
from tasks.config.reading import parse
from tasks.data.clicked import some_with_pairs
from tasks.data.ready import ready_data, require_sources
from tasks.records import DataError
from tasks.store.datasets import open_queries

pytestmark = pytest.mark.usefixtures("prefect_server", "workplace", "undrawn")


@pytest.fixture
def parts(workplace):
    """Three files of forty queries with fifteen documents each."""
    rng = np.random.default_rng(0)
    for part in range(3):
        lines = []
        for q in range(40):
            for _ in range(15):
                x = rng.normal(size=3)
                label = int(np.clip(x[0] + 0.5 * x[1] + 0.3 * rng.normal(), 0, 2))
                lines.append(f"{label} qid:{part}{q:02d} 1:{x[0]:.4f} 2:{x[1]:.4f} 3:{x[2]:.4f}")
        (workplace / f"p{part}.txt").write_text("\n".join(lines) + "\n")
    return [f"p{part}.txt" for part in range(3)]


def test_every_fold_learns_from_pages_and_is_tested_on_judgments(parts):
    plain, config = (parse({"data": {"parts": parts, **more}}) for more in ({}, {"clicked_pages": {"per_query": 4, "seed": 3}}))
    judged, ready = ready_data(plain), ready_data(config)
    for k, (before, after) in enumerate(zip(judged.folds, ready.folds, strict=True)):
        assert (after.valid, after.test) == (before.valid, before.test)
        train, pages = open_queries(before.train), open_queries(after.train)
        assert pages.n_queries == 4 * train.n_queries
        assert set(np.unique(pages.labels)) == {0, 1}
        first = ltr.RankSVM().fit(select(train, some_with_pairs(train, 0.01, 30 + k)))
        again = canonical(clicked_pages(train, first.predict(train.features), 4, np.array(LOOKS), seed=30 + k))
        np.testing.assert_array_equal(again.features, pages.features)
        np.testing.assert_array_equal(again.labels, pages.labels)
        np.testing.assert_array_equal(again.sources["position"], pages.sources["position"])
    said = [one.text for one in ready.findings if "became" in one.text]
    assert len(said) == 3
    assert said[0].startswith("40 queries became 160 pages, ordered by a RankSVM of 1 query, with ")
    assert ready_data(config).folds == ready.folds


def test_users_click_by_what_labels_gain(workplace):
    """Ratings up to 1,500, of which 2^label is not a number."""
    rng, lines = np.random.default_rng(0), []
    for q in range(60):
        for rating in (0, 500, 1000, 1500):
            lines.append(f"{rating} qid:{q} 1:{rating / 1500 + rng.normal():.3f} 2:{rng.normal():.3f}")
    (workplace / "a.txt").write_text("\n".join(lines) + "\n")
    pages = {"clicked_pages": {"per_query": 60, "eta": 0, "noise": 0.1}}
    before, after = (
        open_queries(ready_data(parse({"data": {"files": "a.txt", **more}, "conventions": {"gain": "linear"}})).folds[0].train)
        for more in ({}, pages)
    )
    rating = {row.tobytes(): label for row, label in zip(before.features, before.labels, strict=True)}
    ratings = np.array([rating[row.tobytes()] for row in after.features])
    rates = [after.labels[ratings == label].mean() for label in (0, 500, 1000, 1500)]
    assert rates == pytest.approx([0.1, 0.4, 0.7, 1.0], abs=0.03)


@pytest.mark.parametrize("kind", ["lambdamart", "lambdarank"])
def test_propensities_that_end_above_the_deepest_rank_are_told_before_anything_is_trained(parts, kind):
    ipw = {"kind": kind, "unbiased": {"kind": "ipw", "propensities": [1.0, 0.5]}}
    config = parse({"data": {"parts": parts, "clicked_pages": {"per_query": 2}}, "rankers": {"own": ipw}})
    with pytest.raises(DataError, match=r"rankers.own: unbiased: a document was shown at rank 10, and propensities end at rank 2"):
        require_sources(config, ready_data(config).folds)


def test_rankers_can_take_the_position_out(parts):
    config = parse({
        "data": {"parts": parts, "clicked_pages": {"per_query": 2}},
        "rankers": {"additive": {"kind": "lambdamart", "unbiased": "additive"}, "dla": {"kind": "lambdarank", "unbiased": "dla"}},
    })  # fmt: skip
    require_sources(config, ready_data(config).folds)


def test_eta_0_looks_at_every_rank_alike(parts):
    clicks = {}
    for eta in (0, 1):
        fold = ready_data(parse({"data": {"parts": parts, "clicked_pages": {"eta": eta, "per_query": 50}}})).folds[0]
        pages = open_queries(fold.train)
        last = pages.sources["position"] == 10
        clicks[eta] = pages.labels[last].mean()
    assert clicks[0] > 5 * clicks[1]


def test_a_share_of_all_queries_is_drawn_from_those_with_pairs():
    labels = np.repeat([0.0, 1.0] * 20, 2)
    labels[::4] += 1.0
    queries = ltr.Queries(np.zeros((80, 1), np.float32), labels, np.arange(0, 81, 2))
    drawn = some_with_pairs(queries, 0.25, 1)
    assert len(drawn) == 10
    assert (drawn % 2 == 0).all()
    assert len(some_with_pairs(queries, 1.0, 1)) == 20


def test_what_a_first_ranker_cannot_learn_from_is_refused(parts, workplace):
    flat = "".join(f"{q % 3} qid:{q} 1:{k}\n" for q in range(9) for k in range(3))
    (workplace / "flat.txt").write_text(flat)
    (workplace / "holes.csv").write_text(
        "query,label,a\n" + "".join(f"{q},{k},{'' if k else 1}\n" for q in range(9) for k in range(3))
    )
    (workplace / "relevant.csv").write_text(
        "query,label,a\n" + "".join(f"{q},{'' if k else 1},{k}\n" for q in range(9) for k in range(3))
    )
    with pytest.raises(DataError, match="in every query all documents have the same label"):
        ready_data(parse({"data": {"train": "flat.txt", "test": parts[0], "clicked_pages": {}}}))
    with pytest.raises(DataError, match="no training query has documents with different labels, so the first ranker cannot learn"):
        ready_data(parse({"data": {"files": "relevant.csv", "clicked_pages": {}}}))
    with pytest.raises(DataError, match=r"data\.clicked_pages: the first ranker cannot learn: .*missing"):
        ready_data(parse({"data": {"files": "holes.csv", "clicked_pages": {}}}))
