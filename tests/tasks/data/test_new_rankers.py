"""New rankers against a log: joined by query and document, estimated, refused."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from ltr.clicks.off_policy import Estimate, Rules
from ltr.clicks.pages import Pages
from tasks.config.click_labels import ClickLog
from tasks.data.log_pages import log_pages
from tasks.data.new_rankers import _models, at_odds, at_times_missing, expect, read_scores, to_go_by, turned_to
from tasks.records import DataError
from tests.click_logs import shuffled_pages, three_a_page, users, worth
from tests.tasks.data.test_click_models import written

PAGES = shuffled_pages(5, 4, 4000, 2, np.random.default_rng(1))
USERS = users("pbm", PAGES)


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    return log_pages(ClickLog(log=written(tmp_path_factory.mktemp("log") / "log.parquet", USERS.simulate(PAGES, 1))))


def scored(values):
    return pl.DataFrame({"query": [f"q{q}" for q in PAGES.query], "document": [f"d{p:04}" for p in range(20)], "score": values})


def test_rankers_are_worth_what_their_users_give_them(read):
    scores = {"best": USERS.attraction, "worst": -USERS.attraction}
    found, advice = expect(
        read, {name: scored(values) for name, values in scores.items()}, Rules(top=2), ("item-position", "position-based")
    )
    for one in found:
        rank = np.argsort(np.argsort(-scores[one.ranker].reshape(5, 4), axis=1), axis=1).ravel() + 1
        for e in one.estimates:
            assert abs(e.value - worth(USERS, rank, PAGES.query, 2)) < 4 * e.error
    best, worst = (one.estimates for one in found)
    assert all(a.low > b.high for a, b in zip(best, worst, strict=True))
    assert best[0].gain > 0 > worst[0].gain
    assert "item-position can be relied on, and so can position-based if a rank scales the clicks on every document" in advice
    assert not any(one.notes for one in found)


def test_pages_that_users_turned_to_do_not_show_first_results(tmp_path):
    """The ranker that made the log gains nothing by it; each second page would have had it all over again."""
    pages = shuffled_pages(5, 8, 3000, 8, np.random.default_rng(3), spread=8.0)
    clicked = users("pbm", pages).simulate(pages, 1)
    written(tmp_path / "log.parquet", clicked)
    log = pl.read_parquet(tmp_path / "log.parquet").with_columns(part=(pl.col("rank") - 1) // 4)
    log.write_parquet(tmp_path / "log.parquet")
    turned = log_pages(ClickLog(log=tmp_path / "log.parquet", interaction="part"))
    log.filter(part=0).write_parquet(tmp_path / "first.parquet")
    first = log_pages(ClickLog(log=tmp_path / "first.parquet", interaction="part"))
    usual = log.group_by("query", "document").agg(score=-pl.col("rank").mean())
    (found,), _ = expect(turned, {"usual": usual}, Rules(top=4), ("item-position",))
    (alone,), _ = expect(first, {"usual": usual}, Rules(top=4), ("item-position",))
    assert found.estimates == alone.estimates
    assert abs(found.estimates[0].gain) < 4 * found.estimates[0].gain_error
    assert "usual: left out: 3,000 pages of 6,000 below the end of another page" in found.notes[0]
    assert not turned_to(first.pages, first.session).any()
    apart = log.with_columns(session=pl.concat_str("session", "part", separator="/"))
    apart.write_parquet(tmp_path / "apart.parquet")
    read = log_pages(ClickLog(log=tmp_path / "apart.parquet", interaction="part"))
    assert expect(read, {"usual": usual}, Rules(top=4), ("item-position",))[0][0].notes == found.notes
    assert (turned_to(read.pages, read.session) == (read.pages.depth() > 4)).all()


def test_every_estimator_has_its_models(read):
    (found,), _ = expect(read, {"best": scored(USERS.attraction)}, Rules(top=2))
    assert [e.estimator for e in found.estimates] == ["item-position", "position-based", "cascade", "doubly-robust"]
    assert found.refused == ()


def test_a_half_without_a_click_is_not_called_the_log(read):
    half = np.zeros(read.pages.n_pages, bool)
    half[:10] = True
    pages = read.pages.clicked(read.pages.click & ~np.repeat(half, np.diff(read.pages.offsets)))
    with pytest.raises(ValueError, match="doubly-robust: dcm is fitted to each half of the sessions, and in one of them: no click"):
        _models("doubly-robust", pages, half, "dcm")


def test_which_estimators_to_go_by():
    assert to_go_by("pbm").startswith("pbm predicts clicks best here: the results above a result matter little")
    assert to_go_by("dcm").endswith("rely on cascade and doubly-robust")
    assert to_go_by("dcm", ["ubm"]) == to_go_by("dcm")
    assert to_go_by("pbm", ["dctr"]) == to_go_by("pbm")


def test_a_model_by_positions_that_is_as_good_as_the_best_is_enough():
    """With another seed it would have won, and the opposite been said."""
    assert to_go_by("ubm", ["dcm", "pbm"]) == (
        "ubm predicts clicks best here, and pbm does not differ significantly from it: the results above a result are not shown to matter, so item-position "
        "can be relied on, and so can position-based if a rank scales the clicks on every document by the same factor (trust bias does not); cascade and "
        "doubly-robust hold either way"
    )
    assert to_go_by("pbm", ["ubm", "dctr", "dcm"]) == to_go_by("ubm", ["pbm"]).replace("ubm", "pbm", 1).replace(
        "and pbm does", "and ubm and dcm do"
    )


def test_estimates_that_contradict_each_other_are_told(tmp_path):
    """Users who trust the first rank click there on what does not attract them: pbm predicts their clicks best, and position-based is wrong."""
    clicked, rng = USERS.simulate(PAGES, 1), np.random.default_rng(2)
    trusting = clicked.clicked(clicked.click | ((PAGES.rank == 1) & (rng.random(len(PAGES.rank)) < 0.5)))
    read = log_pages(ClickLog(log=written(tmp_path / "log.parquet", trusting)))
    (found,), advice = expect(read, {"worst": scored(-USERS.attraction)}, Rules(top=2), ("item-position", "position-based"))
    rank = np.argsort(np.argsort(USERS.attraction.reshape(5, 4), axis=1), axis=1).ravel() + 1
    first = USERS.attraction[rank == 1][PAGES.query[PAGES.pair[::2]]].mean()
    truth = worth(USERS, rank, PAGES.query, 2) + 0.5 * (1 - first)
    item, positional = found.estimates
    assert item.low < truth < item.high
    assert abs(positional.value - truth) > 3 * positional.error
    assert "so item-position can be relied on, and so can position-based if a rank scales the clicks" in advice
    assert found.notes[0].startswith(f"worst: position-based is {positional.value - item.value:+.4f} ±")
    assert found.notes[0].endswith("clicks are not those of the position-based model here, so rely on item-position")


def test_what_chance_or_the_log_may_explain_is_no_contradiction():
    def one(name, value, error, supported=1.0, clipped=0.0):
        return Estimate(name, value, error, 0.0, 1.0, 0.0, 0.1, 99.0, supported, clipped, (), value, value)

    item, positional = one("item-position", 1.0, 0.05), one("position-based", 1.13, 0.03)
    assert at_odds("a", [item, positional])[0].startswith(
        "a: position-based is +0.1300 ±0.0400 from item-position, which assumes less"
    )
    assert at_odds("a", [item, replace(positional, value=0.87)])
    assert not at_odds("a", [item, replace(positional, value=1.11)])
    assert not at_odds("a", [item])
    assert not at_odds("a", [item, replace(positional, error=0.05)])
    assert not at_odds("a", [replace(item, supported=0.98), positional])
    assert not at_odds("a", [item, replace(positional, clipped=0.01)])
    assert not at_odds("a", [item, replace(positional, value=1.1, error=0.0499)])  # ±0.0354, not ±0.003


def stocked(share: float, seed: int) -> Pages:
    """Pages of ten, by a ranker with noise, of two queries of 14 documents, which are out of stock in a `share` of the pages."""
    rng = np.random.default_rng(seed)
    shown = [
        14 * (k % 2) + (np.arange(14) + rng.normal(size=14) * 3 + 100 * (rng.random(14) < share)).argsort()[:10]
        for k in range(2000)
    ]
    offsets, places = np.arange(0, 20001, 10), np.tile(np.arange(1, 11), 2000)
    return Pages(offsets, np.concatenate(shown), places, np.zeros(20000, bool), np.repeat([0, 1], 14))


def test_documents_that_are_out_of_stock_at_times_are_told(tmp_path):
    """Their share of the places is what is counted page by page of those that are first in stock; noise alone says nothing."""
    rank = np.tile(np.arange(1, 15), 2)
    for seed in range(5):
        pages = stocked(0.3, seed)
        (told,) = at_times_missing("new", pages, rank, 5)
        places = [np.flatnonzero(pages.pair == d) % 10 + 1 for q in (0, 14) for d in range(q, q + 5)]
        missing = sum(1000 - len(of) for of in places if np.median(of) <= 2.5)
        assert told.startswith(
            f"new: {missing / 10000:.1%} of its first 5 places are of documents that head pages of the log and are not on these: "
        )
        assert at_times_missing("new", stocked(0, seed), rank, 5) == ()
        assert at_times_missing("new", pages, np.where(rank > 5, rank - 5, 0), 5) == ()
    clicked = pages.clicked(np.random.default_rng(1).random(20000) < 0.3)
    read = log_pages(ClickLog(log=written(tmp_path / "log.parquet", clicked)))
    scores = pl.DataFrame({"query": [f"q{q}" for q in pages.query], "document": [f"d{p:04}" for p in range(28)], "score": -rank})
    (found,), _ = expect(read, {"new": scores}, Rules(top=5), ["position-based"])
    assert found.notes == (told,)


def test_pages_of_two_rankers_look_as_if_documents_were_missing_and_are_told_as_another_reason():
    """Nothing is out of stock: the rankers take turns, and each has its own first documents."""
    first, second = np.arange(30), np.random.default_rng(1).permutation(30)
    shown = [(first if k % 2 else second)[:10] for k in range(200)]
    pages = Pages(
        np.arange(0, 2001, 10), np.concatenate(shown), np.tile(np.arange(1, 11), 200), np.zeros(2000, bool), np.zeros(30, int)
    )
    (told,) = at_times_missing("new", pages, first + 1, 5)
    heads = [d for d in first[:2] if d not in second[:10]]
    assert told.startswith(f"new: {100 * len(heads) / 1000:.1%} of its first 5 places")
    assert told.endswith("; where another ranker made the page and ranked them lower, it is not")
    short = Pages(
        np.arange(0, 601, 3),
        np.concatenate([page[:3] for page in shown]),
        np.tile([1, 2, 3], 200),
        np.zeros(600, bool),
        np.zeros(30, int),
    )
    assert at_times_missing("new", short, first + 1, 3) == ()


def test_documents_that_the_log_has_not_shown_have_no_support(read):
    fresh = scored(np.zeros(20)).with_columns(document=pl.col("document") + "x", score=pl.lit(9.0))
    (found,), _ = expect(read, {"fresh": pl.concat((scored(USERS.attraction), fresh))}, Rules(top=2), ("item-position",))
    assert found.estimates == ()
    assert found.refused[0].startswith("fresh: item-position: only 0.0% of the new ranker's top-2 results")


def test_queries_without_a_score_are_left_out_and_counted(read):
    part = scored(USERS.attraction).filter(pl.col("query") != "q4")
    (found,), _ = expect(read, {"part": part}, Rules(top=2), ("item-position",))
    n = int((PAGES.query[PAGES.pair[::2]] == 4).sum())
    assert found.notes == (f"part: {n:,} pages of 4,000 are of queries without a score, and are left out",)
    with pytest.raises(DataError, match="other: no query of the log has a score; queries there: q0, q1, q2; here: z"):
        expect(read, {"other": pl.DataFrame({"query": ["z"], "document": ["a"], "score": [1.0]})}, Rules())


def test_places_that_the_lot_decides_are_counted(read):
    """A ranker that says nothing is worth what a random order is, whatever its documents are called."""
    (found,), _ = expect(read, {"same": scored(np.ones(20))}, Rules(top=2), ("position-based",))
    assert found.notes == (
        "same: 10 of 10 results among the first 2 tie with others of their query: their order is random, and "
        "another order gives another estimate",
    )


def test_scores_from_files(tmp_path):
    (tmp_path / "a.run").write_text("Q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 0.25 t\n")
    assert read_scores(tmp_path / "a.run").rows() == [("q1", "d1", 0.5), ("q1", "d2", 0.25)]
    (tmp_path / "a.csv").write_text("row,query,document,score\n1,Q 1,d0,\n2,Q 1,d1,0.5\n")
    assert read_scores(tmp_path / "a.csv").rows() == [("q 1", "d1", 0.5)]
    floats = {"query": [1.0, 1.0], "document": ["d", "e"], "score": [float("nan"), 0.5]}
    pl.DataFrame(floats).write_parquet(tmp_path / "a.parquet")  # pandas writes what is missing as NaN
    assert read_scores(tmp_path / "a.parquet").rows() == [("1", "e", 0.5)]
    for text, said in (
        ("query,document\nq,d\n", "no column 'score'; there are: query, document"),
        ("query,document,score\nq,d,1\nq,e,high\n", "row 2: score 'high': the score must be a finite number"),
        ("query,document,score\nq,c,\nq,d,nan\n", "row 2: score 'nan': the score must be a finite number"),
        ("query,document,score\nq,c,\nq,d,\n", "b.csv: no row has a score"),
        ("query,document,score\nq,d,1\nQ,d,2\n", "query 'q' has document 'd' twice"),
        ("query,document,score\nq,d,1\nQ,d,2\n", "twice: 'Q' and 'q' are one query to a log"),
        ("query,document,score\nQ,d,1\nQ,d,2\n", "query 'Q' has document 'd' twice$"),
        ("query,document,score\nq,c,\n,d,1\n", "row 2: column 'query' is empty: a score must name its query and document"),
    ):
        (tmp_path / "b.csv").write_text(text)
        with pytest.raises(DataError, match=said):
            read_scores(tmp_path / "b.csv")


def test_the_half_that_is_foretold_is_not_the_one_that_is_learned():
    pages = three_a_page(400)
    half = np.arange(400) < 100
    first, second = _models("doubly-robust", pages, half, "dctr")
    assert (first.looks.sum(), second.looks.sum()) == (900, 300)
