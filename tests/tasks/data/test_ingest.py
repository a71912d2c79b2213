"""Files of every kind become the same data set, once; a wrong one is named with file, place, value and rule."""

import os
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ltr
from tasks.config.data_section import Data
from tasks.data import ingest as module
from tasks.data.ingest import ingest, require_scores, without_unread
from tasks.data.text import text_blocks
from tasks.records import DataError
from tasks.store import large, state
from tasks.store.datasets import open_queries

ROWS = [
    ("1", "a", 2, 0.5, 0.0),
    ("1", "b", 0, 0.25, 1.0),
    ("2", "c", 1, -1.0, 2.0),
    ("2", "d", 0, 0.0, 0.0),
    ("2", "e", 0, 3.0, 0.5),
]


def letor(rows=ROWS, end="\n"):
    return end.join(f"{label} qid:{q} 1:{x} 2:{y} #docid = {d}" for q, d, label, x, y in rows) + end


def read(paths, **options):
    data = Data(files=list(paths), **options)
    noted = ingest.fn(data.files, data)
    return open_queries(noted.data), noted


def frame():
    return pl.DataFrame(ROWS, schema=["query", "document", "label", "f1", "f2"], orient="row")


def test_text_parquet_csv_and_tsv_are_one_data_set(workplace):
    frame().write_parquet("a.parquet")
    frame().write_csv("a.csv")
    frame().write_csv("a.tsv", separator="\t")
    (workplace / "a.txt").write_text(letor())
    (workplace / "b.txt").write_text(letor(end="\r\n"))
    digests = {read([name])[0].digest for name in ("a.txt", "b.txt", "a.parquet", "a.csv", "a.tsv")}
    assert len(digests) == 1
    queries, _ = read(["a.txt"])
    assert sorted(queries.ids.tolist()) == [b"1", b"2"]
    assert sorted(queries.documents.tolist()) == [b"a", b"b", b"c", b"d", b"e"]


def test_what_lightgbm_would_read_beside_a_text_is_told(workplace):
    (workplace / "a.txt").write_text(letor())
    assert read(["a.txt"])[1].notes == ()
    (workplace / "a.txt.weight").write_text("1\n" * 5)
    for _ in range(2):
        assert read(["a.txt"])[1].notes == (
            "a.txt.weight beside a.txt is not read; weights of queries are a column of a table (data.weight)",
        )


def test_a_value_that_is_no_known_category_is_told(workplace):
    rows = pl.DataFrame({"query": [1, 1, 2, 2], "label": [0, 1, 1, 0], "site": ["x", "new", None, "y"]})
    rows.write_csv("a.csv")
    queries, noted = read(["a.csv"], categories={"site": ["y", "x"]})
    assert sorted(queries.features[:, 0].tolist(), key=str) == pytest.approx([0.0, 1.0, np.nan, np.nan], nan_ok=True)
    assert noted.notes == ("a.csv: 1 row of 4 with a 'site' that is not a known category, such as 'new': read as missing",)


def test_the_order_of_rows_changes_nothing_and_split_queries_are_told(workplace):
    (workplace / "a.txt").write_text(letor())
    (workplace / "b.txt").write_text(letor([ROWS[k] for k in (4, 0, 2, 1, 3)]))
    a, noted_a = read(["a.txt"])
    b, noted_b = read(["b.txt"])
    assert a.digest == b.digest
    assert (noted_a.split_queries, noted_b.split_queries) == (0, 2)
    assert a.position.tolist() != b.position.tolist()


def test_the_same_bytes_are_read_once(workplace, monkeypatch):
    (workplace / "a.txt").write_text(letor())
    assert read(["a.txt"])[1].read
    monkeypatch.setattr("tasks.data.ingest._read", lambda *_: pytest.fail("read again"))
    assert not read(["a.txt"])[1].read


def test_several_files_are_one_data_set_of_the_widest(workplace):
    (workplace / "a.txt").write_text("1 qid:1 1:1\n0 qid:1 2:1\n")
    (workplace / "b.txt").write_text("1 qid:2 4:1\n0 qid:2 1:1\n")
    queries, _ = read(["a.txt", "b.txt"])
    assert (queries.n_queries, queries.n_features) == (2, 4)
    (workplace / "c.txt").write_text("1 qid:1 4:1\n0 qid:1 1:1\n")
    with pytest.raises(DataError, match=r"^c\.txt: query '1' is also in a\.txt; all rows of a query must be in one file$"):
        read(["a.txt", "c.txt"])


def test_a_file_without_ids_of_documents_beside_one_with_them_is_told(workplace):
    rows = pl.DataFrame({"query": [1, 1], "document": ["a", "b"], "label": [0, 1], "f": [0.5, 1.0]})
    rows.write_csv("a.csv")
    rows.drop("document").with_columns(query=2).write_csv("b.csv")
    queries, noted = read(["a.csv", "b.csv"])
    assert queries.documents is None
    assert noted.notes == ("b.csv has no document ids, so ids are dropped for all files",)
    assert read(["b.csv"])[1].notes == ()


def test_tables_of_one_data_set_name_the_same_features_in_any_order(workplace):
    (workplace / "a.csv").write_text("query,label,f,g\n1,1,2,3\n1,0,4,5\n")
    (workplace / "b.csv").write_text("g,query,f,label\n6,2,7,1\n8,2,9,0\n")
    queries, _ = read(["a.csv", "b.csv"])
    assert queries.names == ("f", "g")
    assert sorted(queries.features.tolist()) == [[2, 3], [4, 5], [7, 6], [9, 8]]
    (workplace / "c.csv").write_text("query,label,f,h\n3,1,2,3\n")
    with pytest.raises(DataError, match=r"^c\.csv: no column 'g', which a\.csv has \(1 such column\); all tables of a data set"):
        read(["a.csv", "b.csv", "c.csv"])
    (workplace / "d.csv").write_text("query,label,f,g,h\n3,1,2,3,4\n")
    with pytest.raises(DataError, match=r"^a\.csv: no column 'h', which d\.csv has"):
        read(["a.csv", "d.csv"])


def test_group_sizes_beside_a_text_without_qid(workplace):
    (workplace / "rank.train").write_text("1 1:1\n0 1:2\n2 1:3\n0 1:4\n0 1:5\n")
    with pytest.raises(DataError, match=r"no line has a qid and there is no rank.train.query"):
        read(["rank.train"])
    sizes = workplace / "rank.train.query"
    sizes.write_text("2\n3\n")
    assert sorted(np.diff(read(["rank.train"])[0].offsets).tolist()) == [2, 3]
    sizes.write_text("2\n2\n")
    with pytest.raises(DataError, match=r"sum to 4, but rank\.train has 5"):
        read(["rank.train"])
    sizes.write_text("2\nx\n")
    with pytest.raises(DataError, match=r"line 2: 'x'"):
        read(["rank.train"])
    sizes.write_bytes(b"2\n\xff3\n")
    with pytest.raises(DataError, match=r"rank\.train\.query, line 2: '\ufffd3': each line must be the number"):
        read(["rank.train"])


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", "1 qid:1 1:1\n1 qid:1 1:abc\n", r"a.txt, line 2: '1 qid:1 1:abc': a field must be FEATURE:VALUE"),
        ("a.txt", "good qid:1 1:1\n", "a line must start with the label"),
        ("a.txt", "-2 qid:1 1:1\n", "must not be negative"),
        ("a.txt", "", "a.txt: the file is empty"),
        ("a.txt", "# nothing\n", "no document in it"),
        ("a.csv", "query,label,f\n1,good,2\n", "row 1: column 'label' has 'good': labels and features must be numbers"),
        (
            "a.csv",
            'query,label,f\n1,1,2\n1,0,"$1,299.00"\n',
            "row 2: column 'f' has '.1,299.00': write it as 1234.5 \\(decimal point, no thousands separator, currency sign or %\\): labels",
        ),
        ("a.csv", "query,label,f\n1,1,2\n1,0,x\n", "row 2: column 'f' has 'x'"),
        ("a.csv", "query,label,f\n1,-1,2\n", "row 1: label -1"),
        (
            "a.csv",
            "qid,label,f\n1,1,2\n",
            "no column 'query'.*data.query, data.label, data.document, data.weight, data.sources and data.attributes name the columns",
        ),
        ("a.csv", "query,label,f\n", "no document"),
        ("a.parquet", "not parquet", "cannot be read as parquet"),
    ],
)
def test_a_wrong_file_is_named(workplace, name, content, says):
    (workplace / name).write_text(content)
    with pytest.raises(DataError, match=says):
        read([name])
    assert not list((workplace / ".lambdaflow").glob("data/*")), "nothing half-written"


def test_dropped_features_are_gone_and_unknown_ones_an_error(workplace):
    (workplace / "a.txt").write_text(letor())
    queries, _ = read(["a.txt"], drop=["f1"])
    assert queries.names == ("f2",)
    with pytest.raises(DataError, match="no feature 'f9'"):
        read(["a.txt"], drop=["f9"])


def test_missing_values_stay_missing(workplace):
    (workplace / "a.csv").write_text("query,label,f,g\n1,1,NULL,2\n1,,3,\n")
    queries, _ = read(["a.csv"])
    assert np.isnan(queries.features).sum() == 2
    assert np.isnan(queries.labels).sum() == 1


def test_ids_are_text_and_never_empty(workplace):
    (workplace / "a.csv").write_text("query,label,f\n001,1,2\n1,0,3\nNA,1,1\n")
    assert sorted(read(["a.csv"])[0].ids.tolist()) == [b"001", b"1", b"NA"]
    (workplace / "b.csv").write_text("query,label,f\n1,1,2\n,0,3\n")
    with pytest.raises(DataError, match="row 2: column 'query' is empty"):
        read(["b.csv"])


def test_ids_of_whole_numbers_are_the_same_where_pandas_made_floats_of_them(workplace):
    """It does where one value of the column is missing; queries of a training file were not found in a test file so."""
    rows = {"label": [1, 0, 1], "f": [1.0, 2, 3]}
    pl.DataFrame({"query": [7, 7, 10**6], **rows}).write_parquet("a.parquet")
    pl.DataFrame({"query": [7.0, 7.0, 1e6], **rows}).write_parquet("b.parquet")
    one, other = read(["a.parquet"])[0], read(["b.parquet"])[0]
    assert one.ids.tolist() == other.ids.tolist() == [b"1000000", b"7"]
    assert np.array_equal(one.keys, other.keys)
    for missing in (float("nan"), None):
        pl.DataFrame({"query": [7.0, missing, 8.0], **rows}).write_parquet("c.parquet")
        with pytest.raises(DataError, match=r"c\.parquet, row 2: column 'query' is empty"):
            read(["c.parquet"])
    pl.DataFrame({"query": [b"7", b"M\xfc", b"8"], **rows}).write_parquet("d.parquet")
    with pytest.raises(DataError, match=r"d\.parquet, row 2: column 'query' is not UTF-8 text"):
        read(["d.parquet"])


def test_late_floats_text_numbers_capital_suffixes_and_byte_order_marks(workplace):
    (workplace / "a.CSV").write_text("query,label,f\n" + "1,1,2\n" * 11_000 + "1,0,0.5\n")
    assert read(["a.CSV"])[0].features.min() == 0.5
    pl.DataFrame({"query": ["a", "b"], "label": ["1", "2"], "f": [True, False]}).write_parquet("b.parquet")
    assert sorted(read(["b.parquet"])[0].labels.tolist()) == [1, 2]
    (workplace / "c.txt").write_bytes(b"\xef\xbb\xbf" + letor().encode())
    assert read(["c.txt"])[0].n_queries == 2


def test_a_text_column_that_may_be_the_document_id_is_named(workplace):
    (workplace / "a.csv").write_text("query,label,doc_id,f\n1,1,x7,2\n")
    with pytest.raises(DataError, match=r"set data.document: doc_id"):
        read(["a.csv"])
    (workplace / "b.csv").write_text("query,label,f\n2,1,2\n")
    (workplace / "c.csv").write_text("query,label,g\n1,1,2\n")
    with pytest.raises(DataError, match=r"c\.csv: no column 'f', which b\.csv has"):
        read(["b.csv", "c.csv"])


TABLE = """query,document,label,weight,freshness,f
7,a,1,2,0.5,1
7,b,0,2,,2
8,c,2,1,1,3
8,d,0,1,0,5
"""


def test_weights_and_further_labels_are_columns(workplace):
    (workplace / "a.csv").write_text(TABLE)
    queries = read(["a.csv"], weight="weight", sources=["freshness"])[0]
    assert queries.names == ("f",)
    of = {query: k for k, query in enumerate(queries.ids.tolist())}
    assert queries.weights[[of[b"7"], of[b"8"]]].tolist() == [2.0, 1.0]
    fresh = dict(zip(queries.documents.tolist(), queries.sources["freshness"].tolist(), strict=True))
    assert np.isnan(fresh.pop(b"b"))
    assert fresh == {b"a": 0.5, b"c": 1.0, b"d": 0.0}
    assert read(["a.csv"])[0].names == ("weight", "freshness", "f")
    assert set(read(["a.csv"], sources=["weight"])[0].sources) == {"weight"}
    assert read(["a.csv"], weight="weight")[0].weights is not None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("7,b,0,2,", "7,b,0,3,"), "^a.csv: query 7: weight 3: all rows of a query must have the same weight"),
        (("7,b,0,2,", "7,b,0,,"), "query 7: weight nan"),
        (("8,d,0,1,0,", "8,d,0,1,-1,"), "row 4: freshness -1: a label must be a finite number"),
        (("freshness", "fresh"), "no column 'freshness'; did you mean fresh"),
    ],
)
def test_wrong_weights_and_labels_are_named(workplace, change, says):
    (workplace / "a.csv").write_text(TABLE.replace(*change))
    with pytest.raises(DataError, match=says):
        read(["a.csv"], weight="weight", sources=["freshness"])
    (workplace / "a.txt").write_text(letor())
    with pytest.raises(DataError, match="name columns, and LETOR text has none"):
        read(["a.txt"], sources=["freshness"])


ASKED = """query,document,label,language,year,f
7,a,1,de,2001,1
8,c,2,,2002,3
7,b,0, de,2001,2
8,d,0,,2002,5
"""


def test_attributes_are_columns_of_a_query_and_no_features(workplace):
    (workplace / "a.csv").write_text(ASKED)
    queries = read(["a.csv"], attributes=["language", "year"])[0]
    assert queries.names == ("f",)
    known = {name: dict(zip(queries.ids.tolist(), values.tolist(), strict=True)) for name, values in queries.attributes.items()}
    assert known == {"language": {b"7": "de", b"8": ""}, "year": {b"7": "2001", b"8": "2002"}}
    assert read(["a.csv"], attributes=["language"], drop=["year"])[0].names == ("f",)


def test_attributes_of_parquet_are_written_as_text(workplace):
    from datetime import date

    rows = {"query": [1, 1, 2], "label": [1, 0, 1], "f": [0.5, 1.5, 2.5], "share": [0.5, 0.5, float("nan")]}
    pl.DataFrame({**rows, "head": [True, True, None], "day": [date(2024, 5, 1)] * 3}).write_parquet("a.parquet")
    queries = read(["a.parquet"], attributes=["share", "head", "day"])[0]
    at = queries.ids.tolist().index(b"1")
    assert {name: (values[at], values[1 - at]) for name, values in queries.attributes.items()} == {
        "share": ("0.5", ""), "head": ("true", ""), "day": ("2024-05-01", "2024-05-01"),
    }  # fmt: skip


def test_attributes_that_pandas_made_floats_are_those_of_other_files(workplace):
    for name, query, market in (("a", [1, 2], pl.Series([1, 2])), ("b", [3.0, 4.0], pl.Series([1.0, None]))):
        pl.DataFrame({"query": query, "label": [1, 0], "f": [0.5, 1.5], "market": market}).write_parquet(f"{name}.parquet")
    queries = read(["a.parquet", "b.parquet"], attributes=["market"])[0]
    assert (sorted(queries.attributes["market"].tolist()), sorted(queries.ids.tolist())) == (
        ["", "1", "1", "2"],
        [b"1", b"2", b"3", b"4"],
    )


def test_ids_that_pandas_wrote_with_points_are_told(workplace):
    (workplace / "a.csv").write_text("query,document,label,f\n7.0,d1,1,0.5\n7.0,d2,0,1\n8.0,1.5,1,1\n")
    notes = read(["a.csv"])[1].notes
    assert [note for note in notes if "written like" in note] == [
        "a.csv: every 'query' is written like 7.0, as pandas writes whole numbers where one of a column is missing; "
        "7 in another file is another query"
    ]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            ("7,b,0, de", "7,b,0,en"),
            r"a\.csv: query 7: language 'de' and 'en': all rows of a query must have the same value of an attribute \(data\.attributes\)",
        ),
        (("8,d,0,,", "8,d,0,cs,"), "query 8: language '' and 'cs'"),
        (("language", "langage"), "no column 'language'; did you mean langage"),
    ],
)
def test_wrong_attributes_are_named(workplace, change, says):
    (workplace / "a.csv").write_text(ASKED.replace(*change))
    with pytest.raises(DataError, match=says):
        read(["a.csv"], attributes=["language"])
    (workplace / "a.txt").write_text(letor())
    with pytest.raises(DataError, match=r"a\.txt: .*data\.attributes and data\.categorical name columns, and LETOR text has none"):
        read(["a.txt"], attributes=["language"])
    pl.DataFrame({"query": [1], "label": [1], "f": [0.5], "tags": [["a"]]}).write_parquet("a.parquet")
    with pytest.raises(DataError, match="column 'tags' holds List"):
        read(["a.parquet"], attributes=["tags"])


def test_columns_that_are_no_features_are_left_out_by_name(workplace):
    (workplace / "a.csv").write_text("query,label,f,site,shop_url,shop_name\n1,2,0.5,de,http://a,A\n1,0,0.1,fr,http://b,B\n")
    with pytest.raises(DataError, match=r"column 'site' has 'de': .*data\.ignore: \[site\] leaves the column out"):
        ingest.fn([workplace / "a.csv"], Data(files=["a.csv"]))
    read = ingest.fn([workplace / "a.csv"], Data(files=["a.csv"], ignore=["site", "shop_*"]))
    assert open_queries(read.data).names == ("f",)
    frame = pl.read_csv("a.csv").with_columns(pl.col("site").cast(pl.Categorical), day=pl.date(2026, 1, 1))
    frame.write_parquet("a.parquet")
    with pytest.raises(DataError, match=r"column 'site' holds Categorical: .*data\.ignore: \[site\]"):
        ingest.fn([workplace / "a.parquet"], Data(files=["a.parquet"]))
    read = ingest.fn([workplace / "a.parquet"], Data(files=["a.parquet"], ignore=["site", "shop_*", "day"]))
    assert open_queries(read.data).names == ("f",)


@pytest.mark.parametrize("read_before", [True, False])
def test_a_file_that_is_listed_twice_is_refused(workplace, read_before):
    """Where it had been read alone before, it counted once."""
    (workplace / "a.txt").write_text("2 qid:1 1:0.5\n0 qid:1 1:1\n")
    if read_before:
        ingest.fn([workplace / "a.txt"], Data(files=["a.txt"]))
    with pytest.raises(DataError, match=r"a\.txt: the file is listed twice$"):
        ingest.fn([workplace / "a.txt", workplace / "a.txt"], Data(files=["a.txt", "a.txt"]))


def test_ids_that_lose_digits_are_told_every_time(workplace):
    (workplace / "a.csv").write_text("query,label,uid,time\n1,2,16777217,1\n1,0,16777216,16777216\n")
    for _ in range(2):
        (note,) = ingest.fn([workplace / "a.csv"], Data(files=["a.csv"])).notes
        assert note == (
            "a.csv: 'uid' has whole numbers above 16,777,216 that lose digits in float32, such as 16777217; if they are ids, leave the column out "
            "(data.ignore: [uid])"
        )
    (workplace / "c.csv").write_text("query,label,uid,time,f\n1,2,16777217,16777219,1\n1,0,16777216,16777216,2\n")
    (note,) = ingest.fn([workplace / "c.csv"], Data(files=["c.csv"])).notes
    assert "2 features (uid, time) have whole numbers" in note, "one line, however many there are"
    assert note.endswith("such as 16777217 in 'uid'; if they are ids, leave the columns out (data.ignore)")

    (workplace / "b.txt").write_text("2 qid:1 1:0.5 2:16777216 3:16777217\n0 qid:1 1:16777216.5 2:-1e9 3:16777218\n")
    (note,) = ingest.fn([workplace / "b.txt"], Data(files=["b.txt"])).notes
    assert "'f3' has whole numbers above 16,777,216 that lose digits in float32; " in note


def test_numbers_too_large_for_a_feature_are_infinite_and_that_is_all(workplace, recwarn):
    (workplace / "a.csv").write_text("query,label,a\n1,2,1e39\n1,0,0.1\n")
    read = ingest.fn([workplace / "a.csv"], Data(files=["a.csv"]))
    assert not recwarn.list
    assert not read.notes
    assert np.isinf(open_queries(read.data).features).sum() == 1


def test_a_file_that_was_changed_in_place_is_another_one(workplace):
    """Of the same size, and with the time that it had."""
    path = workplace / "a.csv"
    path.write_text("query,label,f\n1,2,0.5\n1,0,0.1\n")
    before = path.stat()
    first = ingest.fn([path], Data(files=["a.csv"]))
    path.write_text("query,label,f\n1,1,0.5\n1,0,0.1\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    second = ingest.fn([path], Data(files=["a.csv"]))
    assert [sorted(open_queries(read.data).labels) for read in (first, second)] == [[0, 2], [0, 1]]


def test_a_file_that_changes_while_it_is_read_is_not_kept(workplace, monkeypatch):
    path = workplace / "a.csv"
    path.write_text("query,label,f\n1,2,0.5\n1,0,0.1\n")
    read = module._of_table
    monkeypatch.setattr(module, "_of_table", lambda *given: (read(*given), path.write_text("query,label,f\n1,2,7\n"))[0])
    with pytest.raises(DataError, match=r"a\.csv: the file was changed while it was read"):
        ingest.fn([path], Data(files=["a.csv"]))
    assert not list(workplace.glob(".lambdaflow/data/*"))
    monkeypatch.setattr(module, "_of_table", read)
    assert open_queries(ingest.fn([path], Data(files=["a.csv"])).data).features.tolist() == [[7.0]]


@pytest.mark.parametrize("kind", ["query", "group"])
def test_sizes_of_queries_are_read_by_either_name(workplace, kind):
    (workplace / "a.txt").write_text("".join(f"{k % 2} 1:{k}\n" for k in range(5)))
    (workplace / f"a.txt.{kind}").write_text("2\n3\n")
    assert np.diff(read(["a.txt"])[0].offsets).tolist() in ([2, 3], [3, 2])
    for wrong in ("²", "9" * 5000, "0", "2.5", "-1"):
        (workplace / f"a.txt.{kind}").write_text(f"2\n{wrong}\n")
        with pytest.raises(
            DataError, match=rf"a\.txt\.{kind}, line 2: .*each line must be the number of documents of a query, 1 or more"
        ):
            read(["a.txt"])


def test_ids_that_cannot_be_told_apart_are_refused(workplace):
    for ids, said in (
        (["a", ""], "row 2: column 'query' is empty"),
        (["a", "a\0"], "row 2: column 'query' has a NUL character"),
        (["a", "b" * 3000], "row 2: column 'query' holds 'bbb.* of 3,000 bytes: ids .* at most 2,048 bytes"),
    ):
        pl.DataFrame({"query": ids, "label": [1, 0], "f": [1.0, 2.0]}).write_parquet("a.parquet")
        with pytest.raises(DataError, match=said):
            read(["a.parquet"])


def test_a_text_cut_short_while_it_is_read_is_told(workplace, monkeypatch):
    """As a file that somebody writes anew: a mapped one would end the process (SIGBUS)."""
    path = workplace / "a.txt"
    line = f"1 qid:1 {' '.join(f'{k}:0.123456' for k in range(1, 200))}\n"
    path.write_text(line * 4000)
    parse = module.letor.parse

    def cut_short(text, first_feature):
        os.truncate(path, 1000)
        return parse(text, first_feature)

    monkeypatch.setattr(module.letor, "parse", cut_short)
    monkeypatch.setattr(text_blocks, "__defaults__", (1 << 20,))
    with pytest.raises(DataError, match=r"a\.txt: the file was changed while it was read"):
        ingest.fn([path], Data(files=["a.txt"]))


def test_equal_names_in_two_folders_are_other_queries(workplace):
    """Where queries have no id but their place in a file; a name that no other file has stays as it was."""
    for place in ("x/one", "y/one", "y/two"):
        (workplace / place).mkdir(parents=True)
        (workplace / place / "rank.txt").write_text("1 1:1\n0 1:2\n")
        (workplace / place / "rank.txt.query").write_text("2\n")
    data = Data(train=["x/one/rank.txt"], valid=["y/one/rank.txt"], test=["y/two/rank.txt"])
    read_as = [open_queries(ingest.fn([path], data).data).ids[0] for path in (*data.train, *data.valid, *data.test)]
    assert read_as == [b"x/one/rank.txt:1", b"y/one/rank.txt:1", b"two/rank.txt:1"]
    assert read(["x/one/rank.txt"])[0].ids[0] == b"rank.txt:1"
    assert read(["x/one/rank.txt", "y/one/rank.txt"])[0].n_queries == 2


def test_a_text_is_read_in_less_memory_than_its_features_take(workplace, monkeypatch):
    """Queries of which half stand apart, so that rows are brought together, and then in canonical order."""
    monkeypatch.setattr(large, "SMALL", 1 << 16)
    monkeypatch.setattr(large, "_BYTES_AT_A_TIME", 1 << 18)
    monkeypatch.setattr(module, "text_blocks", partial(text_blocks, size=1 << 18))
    line = " ".join(f"{feature}:{feature % 10}" for feature in range(1, 501))
    with open("long.txt", "w") as file:
        for row in range(6_000):
            file.write(f"{row % 3} qid:{row % 3_000 // 10} {line} 501:{row}\n")
    read(["long.txt"])  # which compiles what there is to compile
    (state.root() / "recipes").rename("forgotten")
    tracemalloc.start()
    try:
        found, _ = read(["long.txt"])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.features.shape == (6_000, 501)
    assert np.array_equal(np.sort(found.features[:, 500]), np.arange(6_000))
    assert peak < found.features.nbytes


def test_a_click_label_is_a_share(workplace):
    for name, clicks in (("a.csv", (0.25, 1)), ("b.csv", (0, 2)), ("c.csv", (0, -1))):
        rows = "".join(f"1,{k},2,{click}\n" for k, click in enumerate(clicks))
        (workplace / name).write_text(f"query,label,f,click\n{rows}")
    assert sorted(read(["a.csv"], sources=["click"])[0].sources["click"].tolist()) == [0.25, 1]
    with pytest.raises(DataError, match=r"^b\.csv, row 2: click 2: a click label must be a share from 0 to 1"):
        read(["b.csv"], sources=["click"])
    with pytest.raises(DataError, match=r"^c\.csv, row 2: click -1: a label must be a finite number, 0 or more"):
        read(["c.csv"], sources=["click"])
    assert read(["b.csv"], label="click")[0].labels.max() == 2


def test_a_column_is_ignored_by_its_name_though_it_could_be_a_pattern(workplace):
    columns = {"query": ["q", "q"], "label": [0, 1], "price[eur]": [1, 2], "price": [3, 4], "all*": [5, 6], "allowed": [7, 8]}
    pl.DataFrame(columns).write_csv("a.csv")
    read = ingest.fn([Path("a.csv")], Data(files=["a.csv"], ignore=["price[eur]", "all*"]))
    assert (open_queries(read.data).names, read.notes) == (("price", "allowed"), ())
    read = ingest.fn([Path("a.csv")], Data(files=["a.csv"], ignore=["pri*[[]eur]", "all?*"]))
    assert open_queries(read.data).names == ("price",)


def test_a_column_to_be_ignored_that_is_not_there_is_told(workplace):
    (workplace / "a.csv").write_text("query,label,shop_id,f\n1,1,7,2\n1,0,8,3\n")
    read_now = ingest.fn([Path("a.csv")], Data(files=["a.csv"], ignore=["shop_*", "sit"]))
    assert read_now.notes == ("a.csv: data.ignore: no column is named 'sit'",)
    assert open_queries(read_now.data).names == ("f",)


def test_columns_that_a_model_does_not_read_are_left_out_by_their_own_names(workplace, monkeypatch):
    """`*` is a pattern in a table that has no such column; and a table of which the model reads all is not read for it."""
    (workplace / "a.csv").write_text("query,label,f,*,t[1],date\nq1,1,7,x,y,z\nq1,0,8,x,y,z\n")
    (workplace / "b.csv").write_text("query,label,f,date\nq2,1,7,z\nq2,0,8,z\n")
    files = [workplace / "a.csv", workplace / "b.csv"]
    data, said = without_unread(Data(files=files, ignore=["d*"], drop=["*"]), lambda: ("f",))
    assert said == [
        f"a.csv: column {name!r} holds no numbers and the model does not read it, so it is left out" for name in ("*", "t[1]")
    ]
    assert open_queries(ingest.fn(files, data).data).names == ("f",)
    monkeypatch.setattr(module, "Table", None)
    assert without_unread(Data(files=files[1:], ignore=["d*"]), lambda: ("f",))[1] == []


def test_a_feature_of_text_is_not_left_out_by_ignore_and_that_is_told(workplace):
    Path("a.txt").write_text("1 qid:1 1:3 2:4\n0 qid:1 1:2 2:5\n", encoding="utf-8")
    read = ingest.fn([Path("a.txt")], Data(files=["a.txt"], ignore=["f2"]))
    assert open_queries(read.data).names == ("f1", "f2")
    assert read.notes == (
        "a.txt: data.ignore: 'f2': LETOR text has no columns, so nothing is left out; data.drop leaves out features by name",
    )


def test_a_document_without_a_score_is_named_by_its_ids(workplace):
    (workplace / "a.csv").write_text("query,document,label,f,g\nx,d1,1,1,2\nx,d2,0,3,4\ny,d3,2,5,6\ny,d4,0,7,\n")
    queries, _ = read(["a.csv"])
    trees = ltr.LambdaMART(n_trees=2, n_leaves=2, min_docs_in_leaf=1).fit(queries)
    require_scores(trees, queries, [Path("a.csv")])
    weights = ltr.LeastSquares.of_weights({"f": 1.0, "g": 2.0}, ("f", "g"))
    with pytest.raises(
        DataError, match=r"^a\.csv, query 'y', document 'd4': feature 'g' is missing, and least_squares has no score"
    ):
        require_scores(weights, queries, [Path("a.csv")])


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__", "index"])
def test_row_numbers_of_pandas_are_no_feature(workplace, name):
    pl.DataFrame({name: [0, 1], "query": ["a", "a"], "label": [0, 1], "x": [0.5, 1.5]}).write_csv("x.csv")
    with pytest.raises(
        DataError, match=r"x\.csv: a column is named .*, as data frames name their row numbers, which are not a feature"
    ):
        ingest.fn([Path("x.csv")], Data(files=["x.csv"]))
    assert open_queries(ingest.fn([Path("x.csv")], Data(files=["x.csv"], ignore=[name])).data).names == ("x",)


def test_an_index_that_does_not_count_is_a_feature(workplace):
    pl.DataFrame({"index": [0, 3], "query": ["a", "a"], "label": [0, 1]}).write_csv("x.csv")
    assert open_queries(ingest.fn([Path("x.csv")], Data(files=["x.csv"])).data).names == ("index",)


def test_lines_that_lost_their_ids_are_told(workplace):
    """As the last line of a file that was cut."""
    lines = [f"{k % 2} qid:q 1:{k} # docid = d{k}\n" for k in range(5)]
    (workplace / "whole.txt").write_text("".join(lines))
    (workplace / "cut.txt").write_text("".join(lines)[:-8])
    assert ingest.fn([workplace / "whole.txt"], Data(files=["whole.txt"])).notes == ()
    (note,) = ingest.fn([workplace / "cut.txt"], Data(files=["cut.txt"])).notes
    assert note == "cut.txt: 1 of 5 lines have no docid, so that no document has an id"
