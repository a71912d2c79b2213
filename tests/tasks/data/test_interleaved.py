"""Interleaved pages from logs: by hand, and as a simulation wrote them."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from ltr.clicks.interleaving import Duel, duels, preferences
from tasks.config.click_labels import ClickLog
from tasks.data.interleaved import Duels, analyse
from tasks.records import DataError
from tests.ltr.clicks.test_interleaving import shown

ROWS = [
    ("s1", "a", 1, 1, "old", 1, 2), ("s1", "b", 2, 0, "new", 2, 1), ("s1", "c", 3, 2, "new", 4, 3),
    ("s2", "b", 1, 1, "new", 2, 1), ("s2", "a", 2, 0, "old", 1, 2),
    ("s3", "b", 1, 0, "new", 2, 1), ("s3", "a", 2, 0, "old", 1, 2),
]  # fmt: skip
COLUMNS = ["session", "document", "rank", "click", "team", "rank_old", "rank_new"]


@pytest.fixture
def of(tmp_path):
    def read(frame, method="team-draft", team="team", **keys):
        path = tmp_path / "log.csv"
        frame.write_csv(path)
        return analyse(ClickLog(log=path, **keys), team, method, 0.95)

    return read


def frame(rows=ROWS):
    return pl.DataFrame(rows, schema=COLUMNS, orient="row").with_columns(query=pl.lit("q"))


def test_teams_by_hand(of):
    found = of(frame())
    assert (found.rankers, found.pages, found.clicked) == (("new", "old"), 3, 2)
    (duel,) = found.duels
    assert (duel.wins, duel.losses, duel.ties) == (1, 0, 2)
    assert found.sentences() == ["new and old do not differ significantly on these pages"]
    assert of(frame(ROWS[::-1])) == found
    named = of(frame().rename({"team": "ranker", "document": "doc"}), team="ranker", document="doc")
    assert named.duels == found.duels


@pytest.mark.parametrize("method", ["team-draft", "balanced", "probabilistic"])
def test_a_result_that_its_page_repeats_without_a_rank_is_where_it_first_stood(of, method):
    again = frame().filter(pl.col("click") > 0).with_columns(rank=None, click=0, rank_old=None, rank_new=None, team=None)
    repeated = of(pl.concat([frame(), again], how="vertical_relaxed"), method)
    assert repeated.duels == of(frame(), method).duels


@pytest.mark.parametrize("method", ["team-draft", "balanced", "probabilistic"])
def test_rows_of_a_click_that_say_no_more_do_not_count_by_where_they_stand(of, method):
    """Logs of events have a row for what was shown and another for the click, which need not repeat the ranker and its ranks."""
    shown, clicked = frame().with_columns(click=0), frame().filter(pl.col("click") > 0)
    again = clicked.with_columns(rank_old=None, rank_new=None, team=None)
    for rows in ([shown, again], [again, shown]):
        assert of(pl.concat(rows, how="vertical_relaxed"), method).duels == of(frame(), method).duels


def test_a_result_is_of_the_ranker_that_is_named_at_its_first_rank(of):
    other = {"old": "new", "new": "old"}
    unnamed = frame().with_columns(rank=1, click=0, team=None)
    unplaced = frame().with_columns(rank=None, click=0, team=pl.col("team").replace(other))
    for more in (unnamed, unplaced):
        for rows in ([frame(), more], [more, frame()]):
            assert of(pl.concat(rows, how="vertical_relaxed")).duels == of(frame()).duels


def test_of_rankers_at_the_same_rank_of_a_page_none_is_preferred_for_its_name(of):
    """A page that is shown twice, and nothing tells the two apart: given to the first by name, equal rankers won 268 to 48."""
    rng, names = np.random.default_rng(1), pl.Series(["new", "old"])
    rows = [(f"s{s}", d, k, int(rng.random() < 0.3)) for s in range(200) for _ in range(2) for k, d in enumerate("abcd", 1)]
    log = pl.DataFrame(rows, schema=["session", "document", "rank", "click"], orient="row")
    log = log.with_columns(query=pl.lit("q"), team=names.sample(len(rows), with_replacement=True, seed=2))
    (duel,) = of(log).duels
    (again,) = of(log.with_columns(team=pl.col("team").replace({"new": "old", "old": "new"}))).duels
    assert (duel.wins, duel.losses, duel.ties) == (again.losses, again.wins, again.ties)


def test_places_by_hand(of):
    found = of(frame(), "balanced")
    assert found.rankers == ("old", "new")
    (duel,) = found.duels
    assert (duel.wins, duel.losses, duel.ties) == (
        0,
        2,
        1,
    )  # new is read to its third, which holds a and c; old's first three hold a alone
    assert any("at random" in note for note in found.notes)
    (duel,) = of(frame(), "probabilistic").duels
    assert (duel.wins, duel.losses, duel.ties) == (0, 1, 2), "s1: a is old's by 8 to 1, c new's by as much"
    assert duel.preference == pytest.approx(-7 / 9 / 3)


@pytest.mark.parametrize("value", ["x", "0", "-2", "1.5", "1e3", "1000000"])
def test_a_rank_that_is_none_is_refused_and_not_taken_for_nowhere(of, value):
    rows = [(*row[:6], value if k == 3 else str(row[6])) for k, row in enumerate(ROWS)]
    with pytest.raises(
        DataError,
        match=rf"log.csv, line 5: rank_new '{value}': must be the rank of the result in the ranker's list, 1 to 999999, or empty",
    ):
        of(frame(rows), "balanced")


def test_ranks_with_gaps_are_read_as_numbers_with_decimals_are(of):
    rows = [(*row[:6], None if k == 3 else row[6]) for k, row in enumerate(ROWS)]
    decimals = [(*row[:6], None if row[6] is None else float(row[6])) for row in rows]
    assert of(frame(decimals), "balanced") == of(frame(rows), "balanced")


@pytest.mark.parametrize("method", ["balanced", "probabilistic"])
def test_pages_on_which_a_ranker_has_two_documents_at_one_rank_are_left_out_and_counted(of, method):
    """Such a column, of ones for example, made one ranker win; documents that a list does not have share no rank."""
    rows = [*ROWS, ("s4", "b", 1, 1, "new", 1, 1), ("s4", "a", 2, 0, "old", 1, 2)]
    found = of(frame(rows), method)
    assert found.duels == of(frame(), method).duels
    assert found.notes[0] == (
        "1 page of 4 left out, on which a ranker has several documents at one rank of its list: check rank_old, rank_new, and that "
        "clicks.interaction tells the pages of a session apart"
    )
    nowhere = [("s4", "b", 1, 1, "new", None, 1), ("s4", "a", 2, 0, "old", None, 2)]
    assert of(frame([*ROWS, *nowhere]), method).pages == 4
    with pytest.raises(
        DataError, match="0 pages to compare rankers on; two or more are needed; 3 pages of 3 left out, on which a ranker"
    ):
        of(frame().with_columns(rank_old=pl.lit(1)), method)
    assert of(frame(rows)).pages == 4


@pytest.mark.parametrize("method", ["balanced", "probabilistic"])
def test_the_rank_on_the_page_is_no_rankers_whatever_its_column_is_named(of, method):
    assert of(frame().rename({"rank": "rank_shown"}), method, rank="rank_shown") == of(frame(), method)
    assert of(frame().rename({"click": "rank_of_click"}), method, click="rank_of_click") == of(frame(), method)


def test_teams_need_no_ranks_of_rankers(of):
    """A column of this name may hold anything else."""
    assert of(frame().with_columns(rank_old=pl.lit("bm25"))) == of(frame())


def test_columns_that_are_not_of_the_file_are_not_named(of):
    with pytest.raises(DataError, match=r"choose from: session, document, rank, click, team, rank_old, rank_new, query$"):
        of(frame(), team="whose")


def test_a_simulated_comparison(of):
    rankings = [np.arange(6), np.array([3, 2, 5, 4, 0, 1])]
    made = shown(rankings, 600, np.linspace(0.6, 0.05, 6), 4, "team-draft", np.random.default_rng(1))
    rank = np.arange(len(made.session)) % 4 + 1
    table = pl.DataFrame({
        "session": made.session, "query": "q", "document": made.rank[:, 0], "rank": rank, "click": made.click.astype(int),
        "team": [("old", "new")[k] for k in 1 - made.team],
    })  # fmt: skip
    found = of(table)
    (want,) = duels(preferences(made, "team-draft"))
    assert found.duels[0].preference == pytest.approx(want.preference)
    assert found.sentences() == ["new is preferred to old"]


@pytest.mark.parametrize("method", ["balanced", "probabilistic"])
def test_ranks_that_count_documents_which_could_not_be_shown_are_told(of, method):
    """The first ranker has what is out of stock at its top: of users who click at random nearly all prefer the second."""
    rng = np.random.default_rng(1)
    rankings = [np.arange(6), np.array([3, 2, 5, 4, 0, 1])]
    made = shown(rankings, 600, np.full(6, 0.3), 4, method, rng)
    table = pl.DataFrame({
        "session": made.session, "query": "q", "document": made.rank[:, 0], "rank": np.arange(len(made.session)) % 4 + 1,
        "click": made.click.astype(int), "rank_old": made.rank[:, 0], "rank_new": made.rank[:, 1],
    })  # fmt: skip
    told = "begin with a result that is first in no list"
    assert not any(told in note for note in of(table, method).notes)
    gaps = table.with_columns(pl.col("rank_old", "rank_new") + 3)
    assert any(told in note for note in of(gaps, method).notes)
    one = of(table.with_columns(pl.col("rank_old") + 3), method)
    late = table.filter(rank=1).filter(pl.col("rank_new") > 1).height
    assert [note.startswith(f"{late:,} pages of 600 {told}") for note in one.notes if told in note] == [True]
    assert one.duels[0].high < 0
    advertised = pl.when(rank=1).then(None)
    nowhere = gaps.with_columns(rank_old=advertised.otherwise("rank_old"), rank_new=advertised.otherwise("rank_new"))
    assert not any(told in note for note in of(nowhere, method).notes)


def test_of_several_rankers_those_that_differ_after_holms_correction_are_told_apart():
    duel = Duel(0, 1, 30, 14, 0, 0.36, 0.15, 0.07, 0.65, 0.02, 0.2)
    sentences = ["old and new do not differ significantly on these pages", "old is preferred to new"]
    for holm_p, said in zip((0.2, 0.02), sentences, strict=True):
        found = Duels(("old", "new", "other"), 300, 44, (replace(duel, holm_p=holm_p),), ())
        assert found.sentences() == [said]


@pytest.mark.parametrize(
    ("change", "method", "said"),
    [
        (
            lambda t: t.drop("team"),
            "team-draft",
            r"no column 'team' \(it must name the ranker of each result; --team COLUMN names another\)",
        ),
        (lambda t: t.drop("rank_old"), "balanced", "balanced needs where each ranker had a result: columns rank_A and rank_B"),
        (
            lambda t: t.with_columns(team=pl.lit("old")),
            "team-draft",
            "column 'team' names 1 ranker; two or more are needed",
        ),
        (
            lambda t: t.with_columns(team=pl.when(pl.col("rank") > 1).then("team")),
            "team-draft",
            r"session 's1', document 'a': column 'team' is empty: a clicked result must name the ranker it was taken from \(2 of 3 clicked results do not\)",
        ),
        (
            lambda t: t.filter(pl.col("session") == "s1"),
            "team-draft",
            "1 page to compare rankers on; two or more are needed",
        ),
        (lambda t: t.with_columns(rank_other="rank_old"), "balanced", "balanced: 3 rankings; two are needed"),
    ],
)
def test_what_cannot_be_compared(of, change, method, said):
    with pytest.raises(DataError, match=said):
        of(change(frame()), method)


@pytest.mark.parametrize("blank", [None, "", " "])
def test_a_result_of_no_team_is_no_rankers(of, blank):
    """polars writes an empty text in quotes, which is not a missing one."""
    rows = frame([*ROWS, ("s1", "z", 4, 0, blank, 3, 4)])
    assert of(rows) == of(frame())


def test_teams_that_pandas_made_floats_are_whole_numbers(tmp_path):
    rows = frame([*ROWS, ("s1", "z", 4, 0, None, 3, 4)])
    rows.with_columns(team=(rows["team"] == "old").cast(pl.Float64)).write_parquet(tmp_path / "log.parquet")
    assert analyse(ClickLog(log=tmp_path / "log.parquet"), "team", "team-draft", 0.95).rankers == ("0", "1")


def test_sessions_of_several_pages_are_what_differs_at_random(of):
    """A session that is shown ten times alike says as much as one."""
    many = pl.concat([frame().with_columns(query=pl.lit(f"q{k}")) for k in range(10)])
    found = of(many)
    assert found.pages == 30
    assert found.duels[0].error > of(frame()).duels[0].error / 2
    assert "some of the 3 sessions have several pages, so intervals and p-values are by Student's t over sessions" in found.notes
    assert not any("several pages" in note for note in of(frame()).notes)


def test_lengths_of_lists_are_read_and_missed_where_results_are_in_one_alone(of):
    rows = [
        (f"s{k}", d, place, int(k % 3 == place), "", place, 2 - place if place < 2 else None)
        for k in range(9)
        for place, d in ((1, "a"), (2, "b"))
    ]
    log = frame(rows)
    found = of(log, "probabilistic")
    assert any(
        "in one ranker's list only: with short lists, probabilistic pages prefer the longer one" in note for note in found.notes
    )
    told = of(log.with_columns(length_old=pl.lit(2), length_new=pl.lit(1)), "probabilistic")
    assert not any("longer list" in note for note in told.notes)
    assert told.duels[0].preference < found.duels[0].preference, "the short list draws its document more often"
    with pytest.raises(DataError, match="no column 'length_new' \(documents in the list\), which the other rankers have"):
        of(log.with_columns(length_old=pl.lit(2)), "probabilistic")
    with pytest.raises(DataError, match="must be the number of documents in the ranker's list"):
        of(log.with_columns(length_old=pl.lit(0), length_new=pl.lit(1)), "probabilistic")
