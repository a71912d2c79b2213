"""Click labels by hand, of simulated users whose truth is known, and their join with judged documents."""

import numpy as np
import polars as pl
import pytest

from ltr.data.queries import Queries
from ltr.data.synthetic import World, simulate_sessions
from tasks.config.click_labels import ClickLabel, ClickLog
from tasks.config.data_section import Data
from tasks.data.clicks import attach, attach_all, attach_apart, click_tables
from tasks.records import DataError

LOG = """session	topic	interaction	doc	click_orders
1	7	1	a	1
1	7	1	b	2,3
1	7	1	c	
1	7	2	a	
1	7	2	b	1
2	7	1	a	1
2	7	1	d	
3	8	1	x	2
3	8	1	y	1
"""
COLUMNS = {"query": "topic", "document": "doc", "interaction": "interaction", "click": "click_orders"}


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log.tsv").write_text(LOG)
    return ClickLog(log=tmp_path / "log.tsv", **COLUMNS)


def click_table(log):
    return click_tables(log)[0]["click"]


def judged():
    return Queries(
        np.arange(10).reshape(5, 2), np.array([1.0, 1, 1, 0, 2]), np.array([0, 4, 5]),
        ids=np.array([b"7", b"8"]), documents=np.array([b"a", b"b", b"c", b"z", b"x"]),
    )  # fmt: skip


def test_last_click_over_impressions(log):
    table = {(q, d): (n, k, rate) for q, d, n, k, rate in click_table(log).rows()}
    assert table == {
        ("7", "a"): (3, 1, 1 / 3),  # clicked twice, the last of its page once
        ("7", "b"): (2, 2, 1.0),
        ("7", "c"): (1, 0, 0.0),
        ("7", "d"): (1, 0, 0.0),
        ("8", "x"): (1, 1, 1.0),
        ("8", "y"): (1, 0, 0.0),
    }


def test_a_whole_session_as_one_page_and_fewest_impressions(log):
    whole = click_table(log.model_copy(update={"interaction": None}))
    assert whole.filter(pl.col("document") == "a")["impressions"].item() == 2
    assert click_table(log.model_copy(update={"min_impressions": 2})).height == 2


def test_a_prior_draws_rare_pairs_to_the_mean(log):
    plain, drawn = (click_table(log.model_copy(update={"prior": prior})) for prior in (0.0, 3.0))
    mean = plain["clicks"].sum() / plain["impressions"].sum()
    want = (plain["clicks"] + 3 * mean) / (plain["impressions"] + 3)
    assert drawn["rate"].to_list() == pytest.approx(want.to_list())
    assert (drawn["rate"] - mean).abs().max() < (plain["rate"] - mean).abs().max()


def test_numbers_as_clicks(tmp_path):
    pl.DataFrame({"session": [1, 1], "query": [7, 7], "document": ["a", "b"], "click": [1, 2]}).write_parquet(
        tmp_path / "l.parquet"
    )
    assert click_table(ClickLog(log=tmp_path / "l.parquet"))["rate"].to_list() == [0.0, 1.0]


def test_never_shown_is_missing_and_shown_without_click_is_zero(log):
    queries, facts = attach(judged(), click_table(log))
    assert queries.sources["click"][[0, 1, 2, 4]].tolist() == pytest.approx([1 / 3, 1, 0, 1])
    assert np.isnan(queries.sources["click"][3])
    assert (facts.labelled, facts.above_zero, facts.pairs, facts.impressions, facts.clicks) == (4, 3, 1, 7, 4)


def test_nothing_matches(log):
    table = click_table(log).with_columns(pl.lit("elsewhere").alias("query"))
    with pytest.raises(DataError, match=r"no document of the click log is in the data.*there: elsewhere/a.*here: 7/a, 7/b, 7/c"):
        attach(judged(), table)
    rare = click_table(log.model_copy(update={"min_impressions": 99}))
    with pytest.raises(
        DataError,
        match=r"the data: the click label 'few': no document of the log has as many impressions as min_impressions requires",
    ):
        attach(judged(), rare, "few")
    with pytest.raises(DataError, match="have no id"):
        attach(Queries(np.zeros((1, 1)), np.ones(1), np.array([0, 1])), table)


def test_wrong_logs(log, tmp_path):
    with pytest.raises(DataError, match="no column 'interacton'; did you mean interaction"):
        click_table(log.model_copy(update={"interaction": "interacton"}))
    with pytest.raises(DataError, match="no such file"):
        click_table(log.model_copy(update={"log": tmp_path / "none.tsv"}))
    (tmp_path / "bad.tsv").write_text(LOG.replace("2,3", "yes"))
    with pytest.raises(DataError, match=r"bad.tsv, line 3: click_orders 'yes'"):
        click_table(log.model_copy(update={"log": tmp_path / "bad.tsv"}))


def test_missing_boolean_and_quoted_clicks(tmp_path):
    def rates(frame, name="l.parquet"):
        (frame.write_csv if name.endswith("csv") else frame.write_parquet)(tmp_path / name)
        return click_table(ClickLog(log=tmp_path / name))["rate"].to_list()

    page = {"session": [1, 1], "query": ["q, x", "q, x"], "document": ["a", "b"]}
    assert rates(pl.DataFrame({**page, "click": [float("nan"), float("nan")]})) == [0.0, 0.0]
    assert rates(pl.DataFrame({**page, "click": [True, False]})) == [1.0, 0.0]
    assert rates(pl.DataFrame({**page, "click": [0, 1]}), "l.csv") == [0.0, 1.0]
    for said in (["True", "False"], [" true", "FALSE"]):
        assert rates(pl.DataFrame({**page, "click": said}), "l.csv") == [1.0, 0.0]


def test_two_queries_of_a_session_are_two_pages(tmp_path):
    pl.DataFrame({"session": [1, 1], "query": ["p", "q"], "document": ["a", "a"], "click": [1, 2]}).write_parquet(
        tmp_path / "l.parquet"
    )
    assert click_table(ClickLog(log=tmp_path / "l.parquet"))["rate"].to_list() == [1.0, 1.0]


def test_ids_in_any_script_join():
    data = Queries(
        np.zeros((1, 1)), np.ones(1), np.array([0, 1]), ids=np.array(["q é".encode()]), documents=np.array(["д".encode()])
    )
    table = pl.DataFrame({"query": ["q é"], "document": ["д"], "impressions": [2], "clicks": [1], "rate": [0.5]})
    assert attach(data, table)[0].sources["click"].tolist() == [0.5]


def test_equal_queries_are_one_whatever_their_letters_and_spaces(tmp_path):
    pl.DataFrame({
        "session": [1, 2, 3], "query": ["Blue  Shoes", "blue shoes ", "ｂlue shoes"], "document": ["a", "a", "a"], "click": [1, 0, 0],
    }).write_parquet(tmp_path / "l.parquet")  # fmt: skip
    assert click_table(ClickLog(log=tmp_path / "l.parquet")).rows() == [("blue shoes", "a", 3, 1, 1 / 3)]


def test_labels_of_similar_queries_pool_their_clicks(tmp_path):
    pl.DataFrame({
        "session": [1, 2, 3, 4], "number": [1, 2, 3, 3], "document": ["a"] * 4, "click": [1, 0, 1, 1],
        "typed": ["blue suede shoes size", "suede shoes blue", "shoes", "red shoes"],
    }).write_parquet(tmp_path / "l.parquet")  # fmt: skip
    similar = ClickLabel(queries="similar")
    log = ClickLog(log=tmp_path / "l.parquet", query="number", text="typed", more={"similar": similar})
    tables, notes = click_tables(log)
    assert {q: (n, k) for q, _, n, k, _ in tables["similar"].rows()} == {"1": (2, 1), "2": (2, 1), "3": (2, 2)}
    assert {q: (n, k) for q, _, n, k, _ in tables["click"].rows()} == {"1": (1, 1), "2": (1, 0), "3": (2, 2)}
    assert notes == ["label 'similar': 2 pairs of similar queries"]
    stricter = log.model_copy(update={"more": {"similar": similar.model_copy(update={"similarity": 0.8})}})
    assert click_tables(stricter)[0]["similar"].equals(tables["click"])


def test_sessions_of_similar_queries_count_in_one_part_only(tmp_path):
    """A model learned from the clicks on test queries that it is measured by, wherever these were similar to training queries."""
    pl.DataFrame({
        "session": [1, 2, 3, 4], "number": ["p", "q", "u", "v"], "document": ["a"] * 4, "click": [1, 0, 1, 0],
        "typed": ["blue suede shoes", "suede shoes blue", "shoes suede blue", "red hat"],
    }).write_parquet(tmp_path / "l.parquet")  # fmt: skip
    log = ClickLog(log=tmp_path / "l.parquet", query="number", text="typed", more={"similar": ClickLabel(queries="similar")})
    p, q, v = (
        Queries(np.ones((1, 1)), np.ones(1), np.array([0, 1]), ids=np.array([name]), documents=np.array([b"a"]))
        for name in (b"p", b"q", b"v")
    )
    together = [attach_all(one, log)[0].sources["similar"] for one in (p, q)]
    assert [rates.tolist() for rates in together] == [[2 / 3], [2 / 3]]
    (first, second, third), notes = attach_apart((p, q, v), log)
    assert [one.sources["similar"].tolist() for one in (first, second, third)] == [[1.0], [0.0], [0.0]], (
        "what was typed as u counts in p's part"
    )
    assert notes == [
        "label 'similar': 3 pairs of similar queries in different parts (training, validation, test): their clicks are not pooled"
    ]
    assert attach_apart((p, v), log)[1] == []


def test_queries_with_clicks_on_the_same_documents_are_similar_too(tmp_path):
    pl.DataFrame({
        "session": [1, 2, 3, 4], "query": ["p", "q", "q", "r"], "document": ["a", "a", "b", "b"], "click": [1, 1, 0, 1],
    }).write_parquet(tmp_path / "l.parquet")  # fmt: skip
    log = ClickLog(log=tmp_path / "l.parquet", more={"similar": ClickLabel(queries="similar", by="clicks", similarity=0.9)})
    table = {(q, d): (n, k) for q, d, n, k, _ in click_tables(log)[0]["similar"].rows()}
    assert table == {("p", "a"): (2, 2), ("p", "b"): (1, 0), ("q", "a"): (2, 2), ("q", "b"): (1, 0), ("r", "b"): (1, 1)}


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """Judged queries, what users value in each document, and the log of their sessions."""
    queries, users = World(n_features=40, seed=3).queries(60, 30, 0)
    shown = simulate_sessions(queries.offsets, queries.labels, users, 80, seed=3)
    of_query = np.repeat(np.arange(60), 30)
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    pl.DataFrame({
        "session": shown.session, "query": of_query[shown.document], "rank": shown.rank, "document": shown.document, "click": shown.click,
    }).write_parquet(path)  # fmt: skip
    ids, documents = (np.array([str(k).encode() for k in range(n)]) for n in (60, 1800))
    data = Queries(queries.features, queries.labels, queries.offsets, ids=ids, documents=documents)
    return data, users, ClickLog(log=path, more={"unbiased": ClickLabel(debias=True, clicks="all")})


def test_debiased_rates_are_closer_to_what_users_value(simulated):
    data, users, log = simulated
    labelled, notes = attach_all(data, log)
    raw, unbiased = labelled.sources["click"], labelled.sources["unbiased"]
    shown = ~np.isnan(raw)
    assert [bool(shown.any()), np.isnan(unbiased[~shown]).all()] == [True, True]
    attraction = 1 / (1 + np.exp(-3 * (users[shown] - 1)))
    correlation = [np.corrcoef(label[shown], attraction)[0, 1] for label in (raw, unbiased)]
    assert correlation[1] > correlation[0] + 0.05, correlation
    looks = [float(look) for look in notes[0].removeprefix("examination probability at ranks 1, 2, … (all clicks): ").split()]
    assert looks == pytest.approx(1 / np.arange(1, 11), abs=0.04)
    assert notes[1].startswith("label 'click': ")
    assert "τ with judgments" in notes[2]


def sessions(*pages):
    """A log of pages, each a string of documents by rank, clicked ones in capitals, in their order from the top."""
    rows = []
    for k, shown in enumerate(pages):
        for rank, letter in enumerate(shown, 1):
            if letter != " ":
                rows.append(
                    {"session": k, "query": "q", "rank": rank, "document": letter.lower(), "click": rank * letter.isupper()}
                )
    return pl.DataFrame(rows)


def test_looks_are_those_of_the_clicks_that_a_label_counts(tmp_path):
    sessions(*["ABc"] * 6, *["Acb"] * 2, *["Bac"] * 4).write_parquet(tmp_path / "l.parquet")
    of_last, of_all = ({"clicks": "last"}, {})
    log = ClickLog(log=tmp_path / "l.parquet", debias=True, clicks="last", more={"every": ClickLabel(debias=True)})
    notes = click_tables(log)[1]
    assert [note.split(":")[0] for note in notes if note.startswith("examination")] == [
        "examination probability at ranks 1, 2, … (last clicks)",
        "examination probability at ranks 1, 2, … (all clicks)",
    ]
    assert notes[0].split(": ")[1] != notes[-1].split(": ")[1]
    for more in (of_last, of_all):
        alone = ClickLog(log=tmp_path / "l.parquet", debias=True, **more)
        name = "click" if more else "every"
        assert click_tables(alone)[0]["click"].equals(click_tables(log)[0][name])


def test_a_rank_that_drew_clicks_keeps_its_labels(tmp_path):
    """Rank 4 drew clicks, all on a document shown nowhere else; a and b, shown there too, were not clicked there. Nobody clicked at 5."""
    pages = ["aBc e", "Abc e", "bAc f", "Bacb", "Abca", "   D ", "   D ", "   d "]
    sessions(*pages * 5).write_parquet(tmp_path / "l.parquet")
    tables, notes = click_tables(ClickLog(log=tmp_path / "l.parquet", debias=True, clicks="all"))
    rates = {document: rate for _, document, _, _, rate in tables["click"].rows()}
    assert 0 < rates["d"] <= 1
    assert set(rates) == {"a", "b", "d"}
    tied = [note for note in notes if note.startswith("rank 4 had clicks but no tie to the others")]
    assert "without it, 1 document shown only there would get no label" in tied[0]
    dark = [note for note in notes if note.startswith("ranks 3, 5 had no counted click")]
    assert dark[0].endswith("examination is taken to be 0, which leaves 3 documents shown only there without a label")


def test_a_log_that_cannot_tell_positions(simulated, tmp_path):
    log = simulated[2]
    frame = pl.read_parquet(log.log)
    frame.filter(pl.col("rank") == 1).write_parquet(tmp_path / "first.parquet")
    with pytest.raises(DataError, match=r"no clicked document was shown at two ranks.*debias needs"):
        click_tables(log.model_copy(update={"log": tmp_path / "first.parquet"}))
    frame.drop("rank").write_parquet(tmp_path / "none.parquet")
    with pytest.raises(DataError, match="no column 'rank'"):
        click_tables(log.model_copy(update={"log": tmp_path / "none.parquet"}))
    frame.with_columns(rank=pl.col("rank") - 1).write_parquet(tmp_path / "zero.parquet")
    with pytest.raises(DataError, match=r"zero.parquet, row 1: rank '0': must be the rank a result was shown at, 1 to 999999"):
        click_tables(log.model_copy(update={"log": tmp_path / "zero.parquet"}))


def test_two_labels_of_one_name():
    with pytest.raises(ValueError, match="two label sources are named 'click'"):
        Data(files=["a.parquet"], sources=["click"], clicks={"log": "l.parquet"})


def test_labels_are_the_same_bits_in_any_order_of_the_log(tmp_path):
    """Of documents that were shown as often at each rank and clicked as often, the labels are equal."""
    rng = np.random.default_rng(0)
    pages, query, rank = (axis.ravel() for axis in np.meshgrid(np.arange(6), np.arange(300), np.arange(6), indexing="ij"))
    shown = pl.DataFrame(
        {"session": query * 6 + pages, "query": query, "document": (rank + pages) % 6, "rank": rank + 1,
         "click": (rng.random(len(rank)) < 0.5 / (rank + 1)).astype(int)}
    )  # fmt: skip
    found = []
    for seed in range(4):
        shown.sample(fraction=1, shuffle=True, seed=seed).write_parquet(tmp_path / "log.parquet")
        labels = {"unbiased": {"debias": True, "clicks": "all"}, "alike": {"debias": True, "queries": "similar", "by": "clicks"}}
        found.append(click_tables(ClickLog(log=tmp_path / "log.parquet", more=labels))[0])
    for name in ("unbiased", "alike"):
        assert all(one[name].equals(found[0][name]) for one in found)
    rates = found[0]["unbiased"].group_by("clicks").agg(pl.col("rate").n_unique())
    assert rates["rate"].to_list() == [1] * rates.height
