"""Tables are read as they are named; files that are something else are refused with the rule."""

import csv
import errno
import gzip
import os
import random
import sys
import time
import tracemalloc
from datetime import datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import polars as pl
import pytest

import ltr
from tasks.data import tables
from tasks.data.tables import (
    Table,
    as_numbers,
    categories_in,
    codes,
    id_texts,
    is_table,
    known_codes,
    quote_of,
    read_table,
    recoded,
    require_plain,
    scan,
    unknown_categories,
)
from tasks.records import DataError

ROWS = "query,label,a\n1,2,0.5\n1,0,\n"


@pytest.fixture(params=["whole", "by column"])
def large(request, workplace, monkeypatch):
    """A text is read in both ways, whatever its size: whether it is in the one for large ones."""
    monkeypatch.setattr(tables, "_LARGE", 1 << 28 if request.param == "whole" else -1)
    return request.param != "whole"


def test_a_name_is_a_name_and_no_pattern(tmp_path):
    folder = tmp_path / "some [of] them*"
    folder.mkdir()
    for name, value in (("data[1].csv", 1), ("data1.csv", 2), ("q?.csv", 3), ("qz.csv", 4)):
        (folder / name).write_text(f"query,a\n1,{value}\n")
        pl.DataFrame({"a": [value]}).write_parquet((folder / name).with_suffix(".parquet"), mkdir=False)
    for name, value in (("data[1].csv", 1), ("q?.csv", 3)):
        assert read_table(folder / name)["a"].to_list() == [str(value)]
        assert read_table((folder / name).with_suffix(".parquet"))["a"].to_list() == [value]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("name", "written", "said"),
    [
        ("a.csv", b"", "a.csv: the file is empty"),
        ("a.csv.gz", gzip.compress(ROWS.encode(), mtime=0), "a.csv.gz: compressed with gzip; unpack it first"),
        ("a.txt", b"PK\x03\x04....", "a.txt: compressed with zip"),
        ("a.txt", b"PAR1....", "a.txt: this is Parquet; rename it to a.txt.parquet"),
        ("a.arrow", b"ARROW1\0\0....", "a.arrow: this is an Arrow file; save it as Parquet, CSV or TSV"),
        ("a.csv", ROWS.replace("\n", "\r").encode(), "a.csv: its lines end with CR alone; convert them to LF or CR LF"),
        (
            "a.csv",
            b"query,label,a\rq,1,2\nq,0,3\n",
            r"a.csv, line 1: 'query,label,a\rq,1,2': a CR alone; lines must end with LF or CR LF",
        ),
        ("a.tsv", b"query\tlabel\ta\rq\t1\t2\r\nq\t0\t3\r\n", "a.tsv, line 1: "),
        ("a.csv", b"query,label,label\n1,2,3\n", "a.csv, line 1: column 'label' is named twice"),
        ("a.csv", b'query,"label, or so","label, or so"\n1,2,3\n', "a.csv, line 1: column 'label, or so' is named twice"),
        ("a.csv", b"query,label,a\n1,2,3\n1,2\n", "a.csv, line 3: 2 fields; the header has 3"),
        ("a.csv", b'query,label,a\n"1,\n0",2,3\n1,2,3,4\n', "a.csv, line 4: 4 fields; the header has 3"),
        (
            "a.csv",
            b"query;label;a\n1;2;3,5\n",
            "a.csv, line 1: 'query;label;a' is one column: fields of .csv are separated by ',', not ';'",
        ),
        (
            "a.tsv",
            b"query,label,a\n1,2,3\n",
            r"a.tsv, line 1: 'query,label,a' is one column: fields of .tsv are separated by '\t', not ','",
        ),
        (
            "a.csv",
            b'query,label,a\n1,2,3\n1,"2,4\n1,2,5\n',
            """a.csv, line 3: '1,"2,4': the quote that begins here never ends""",
        ),
        ("a.csv", b'query,label,a\n1,"0",3\n7" tv,2,4\n', """a.csv, line 3: '7" tv,2,4': this quote is neither"""),
        ("a.tsv", b'query\tlabel\ta\n1\t"0"\t3\n7" tv\t2\t4\n', "a.tsv, line 3: '7\" tv\\t2\\t4': this quote is neither"),
        ("a.csv", b"query,label,a\n1,2,3\n\n1,2,4\n", "a.csv, line 3: the line is empty"),
        ("a.csv", b"query,label,a\n1,2,3\n\n", "a.csv, line 3: the line is empty"),
        ("a.csv", "query,label,a\n1,2,3\n".encode("utf-16"), "a.csv: this file is UTF-16; convert it to UTF-8"),
        ("a.csv", "query,label,a\n1,2,3\n".encode("utf-16-be"), "a.csv: this file is UTF-16; convert it to UTF-8"),
        ("a.csv", "query,label,a\n1,2,3\n".encode("utf-16-le"), "a.csv: this file is UTF-16; convert it to UTF-8"),
        ("a.xlsx", b"PK\x03\x04...", "a.xlsx: this is a spreadsheet; save it as CSV or Parquet"),
        ("a.csv", bytes(range(256)), "a.csv: not a text file: it begins with a zero byte"),
        ("a.tsv", b"query\tlabel\ta\n1\t2\t\n1\n", "a.tsv, line 3: 1 field; the header has 3"),
        ("a.csv", b"query,label,a\n\xff\xfe,2,3\n", "a.csv, line 2: "),
        ("a.csv", b"query,label,a\n", "a.csv: no document in it"),
        ("a.parquet", b"PAR1 and nothing else", "a.parquet: cannot be read as parquet: "),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, name, written, said):
    path = tmp_path / name
    path.write_bytes(written)
    with pytest.raises(DataError) as caught:
        read_table(path) if is_table(path) else require_plain(path)
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(said)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_name_that_is_not_utf_8_is_told(tmp_path, suffix):
    frame, path = pl.DataFrame({"query": ["1"], "label": ["2"]}), tmp_path / os.fsdecode(b"d\xe9." + suffix.encode())
    with open(path, "wb") as file:
        frame.write_csv(file) if suffix == "csv" else frame.write_parquet(file)
    with pytest.raises(DataError, match=rf"d\udce9\.{suffix}: the name of this file or folder is not UTF-8 text; rename it"):
        read_table(path)


def test_a_panic_of_the_reader_is_an_error_that_names_the_file(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"a": range(1000), "b": [f"x{k}" for k in range(1000)]}).write_parquet(path)
    whole = path.read_bytes()
    for cut in (10, 100, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:cut] + whole[-4:])
        with pytest.raises(DataError, match=r"a\.parquet: cannot be read as parquet: "):
            read_table(path)


@pytest.mark.usefixtures("large")
def test_an_empty_field_is_missing_and_a_quoted_line_break_is_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('query,label,text,a\n1,2,"two\nlines",\n1,0,"a, b",0.5\n')
    frame = read_table(path)
    assert frame["a"].to_list() == [None, "0.5"]
    assert frame["text"].to_list() == ["two\nlines", "a, b"]
    assert scan(path).collect_schema().names() == ["query", "label", "text", "a"]


@pytest.mark.parametrize(("suffix", "mark"), [("csv", ","), ("tsv", "\t")])
def test_text_is_what_was_written_whatever_its_quotes(tmp_path, large, suffix, mark):
    """Random texts of quotes, separators and line breaks, written as Python's csv, pandas and polars write them."""
    rng, path = random.Random(suffix), tmp_path / f"a.{suffix}"
    for _ in range(100 if large else 300):
        letters = 'ab" ' + (mark + "\n" if mark == "," else rng.choice((mark, "\n")))
        rows = [["".join(rng.choices(letters, k=rng.randint(0, 4))) for _ in range(2)] for _ in range(4)]
        with open(path, "w", newline="") as file:
            csv.writer(file, delimiter=mark, lineterminator=rng.choice(("\n", "\r\n"))).writerows([["x", "y"], *rows])
        assert [[text or "" for text in row] for row in read_table(path).rows()] == rows, path.read_text()


@pytest.mark.usefixtures("large")
def test_quotes_that_are_around_no_field_are_letters(tmp_path):
    (tmp_path / "a.csv").write_text('x,y\n7" tv,1\n5" by 3",2\n')
    assert read_table(tmp_path / "a.csv")["x"].to_list() == ['7" tv', '5" by 3"']
    (tmp_path / "a.tsv").write_text('x\ty\n"tv\t1\n"a" b\t2\n')
    assert read_table(tmp_path / "a.tsv")["x"].to_list() == ['"tv', '"a" b']


@pytest.mark.usefixtures("large")
def test_a_byte_that_is_no_text_is_named_by_its_line(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"query,label,a\n1,2,0.5\nM\xfcller,0,1\n")
    with pytest.raises(DataError, match=r"a\.csv, line 3: 'M\ufffdller,0,1': not UTF-8; convert the file to UTF-8"):
        read_table(tmp_path / "a.csv")


def test_categories_are_called_alike_whatever_column_they_are_in(tmp_path):
    pl.DataFrame({"site": [" b.com", "a.com", None, "NA"], "shop": [7, 10, 7, None]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"site": ["c.com", "a.com"], "shop": [7.0, 2.5]}).write_csv(tmp_path / "b.csv")
    files = [tmp_path / "a.parquet", tmp_path / "b.csv"]
    assert categories_in(files, "site") == ["NA", "a.com", "b.com", "c.com"], "North America"
    assert categories_in(files[:1], "shop") == ["10", "7"]
    frame = read_table(files[0]).with_columns(kind=pl.Series(["b.com", "x", "a.com", None], dtype=pl.Categorical))
    assert codes(frame, "site", ["a.com", "b.com"]).tolist()[:2] == [1, 0]
    assert np.isnan(codes(frame, "site", ["a.com", "b.com"])[2:]).all()
    assert codes(frame, "kind", ["a.com", "b.com"])[[0, 2]].tolist() == [1, 0]
    assert np.isnan(codes(frame, "kind", ["a.com", "b.com"])[[1, 3]]).all()
    with pytest.raises(DataError, match=r"a\.parquet: no column 'place' \(data\.categorical\)"):
        categories_in(files, "place")
    pl.DataFrame({"site": [["a"], ["b"]]}).write_parquet(tmp_path / "c.parquet")
    with pytest.raises(
        DataError, match=r"c\.parquet: column 'site' holds List\(String\): a category must be a text or a whole number"
    ):
        categories_in([tmp_path / "c.parquet"], "site")


def test_what_is_listed_is_a_category_even_where_it_could_be_missing():
    frame = pl.DataFrame({"region": ["NA", "NULL", "nan", "EU", "", None]})
    assert codes(frame, "region", ["EU", "NULL", "NA"]).tolist()[:2] == [2, 1]
    assert np.isnan(codes(frame, "region", ["EU", "NULL", "NA"])[[2, 4, 5]]).all()
    assert unknown_categories(frame["region"], codes(frame, "region", ["EU"])).to_list() == ["NA"]


def test_fractions_keep_their_digits_as_categories():
    numbers = [1234567.5, 1234568.25, 0.1, 1e20]
    for kind in (pl.Float64, pl.String):
        frame = pl.DataFrame({"x": pl.Series(numbers).cast(kind)})
        assert codes(frame, "x", ["1234568.25", "0.1", "1234567.5"]).tolist()[:3] == [2, 0, 1]
    assert codes(pl.DataFrame({"x": pl.Series([0.1], dtype=pl.Float32)}), "x", ["0.1"]).tolist() == [0]


def test_whole_numbers_are_the_same_category_with_a_point(tmp_path):
    """pandas writes a column of whole numbers as 1.0, 2.0, … where one is missing."""
    (tmp_path / "a.csv").write_text("site\n3.0\n\n10.0\n3\n-1.00\n1.5\nv1.0\n")
    pl.DataFrame({"site": [3.0, None, 10.0, 3.0, -1.0, 1.5, 8.0]}).write_parquet(tmp_path / "b.parquet")
    pl.DataFrame({"site": [3, None, 10, 3, -1, 2, 8]}).write_parquet(tmp_path / "c.parquet")
    assert categories_in([tmp_path / "a.csv"], "site") == ["-1", "1.5", "10", "3", "v1.0"]
    for known in (["10", "3", "-1"], ["10.0", "3.0", "-1.0"]):
        for name in ("a.csv", "b.parquet", "c.parquet"):
            assert codes(read_table(tmp_path / name), "site", known)[[0, 2, 3, 4]].tolist() == [1, 0, 1, 2]


def test_numbers_are_not_taken_for_text_of_which_none_is_known():
    frame = pl.DataFrame({"site": [3, None, 4], "name": ["a", None, "b"], "empty": [None, None, None]})
    for column, known, says in (
        (
            "site",
            ["x", "y"],
            r"column 'site' holds numbers, such as '3', and its categories are text, such as 'x' \(data\.categories\)",
        ),
        ("name", ["1", "2"], "column 'name' holds text, such as 'a', and its categories are numbers, such as '1'"),
    ):
        with pytest.raises(DataError, match=rf"a\.csv: {says}"):
            known_codes(Path("a.csv"), frame, column, known)
    for column, known in (("site", ["1", "2"]), ("site", ["x", "2"]), ("name", ["x", "y"]), ("empty", ["x"])):
        assert np.isnan(known_codes(Path("a.csv"), frame, column, known)).all()


def test_true_and_false_are_one_and_zero_in_text_too():
    column = pl.Series("x", ["True", "", "false", "TRUE"])
    assert as_numbers(Path("a.csv"), column, "rule").to_list() == [1.0, None, 0.0, 1.0]
    assert as_numbers(Path("a.csv"), pl.Series("x", [True, None, False]), "rule").to_list() == [1.0, None, 0.0]
    with pytest.raises(DataError, match=r"a\.csv, row 2: column 'x' has 'true': rule"):
        as_numbers(Path("a.csv"), pl.Series("x", ["1", "true"]), "rule")


def test_rows_between_two_quotes_of_a_log_are_rows(tmp_path):
    """The first begins a field and the last ends one: of pandas these would be the ends of one text of many lines."""
    rows = ['s1\t"quoted start\td1\t0', "s2\tbar\td2\t1", 's3\tscreen 7"\td3\t0', "s4\tfoo\td4\t1"]
    path = tmp_path / "a.tsv"
    path.write_text("\n".join(["session\tquery\tdocument\tclick", *rows]) + "\n")
    assert ["\t".join(row) for row in read_table(path).rows()] == rows
    path.write_text(path.read_text() + '"s5"\tbaz\td5\t0\n')
    with pytest.raises(DataError, match=r"a\.tsv, line 2: .*this quote is neither around a whole field"):
        read_table(path)


def test_long_fields_in_quotes_are_looked_at_in_one_pass(tmp_path):
    """A record that is looked at again with each of its lines took 13 seconds for 4,000 of them, and a long field 120 bytes a letter."""
    path, began = tmp_path / "a.csv", time.process_time()
    path.write_text(
        'x,y\n"' + 'say ""no""\n' * 20_000 + '",1\n"' + "a" * 5_000_000 + '",2\n"open\n' + 'say ""no""\n' * 20_000 + '",3\n'
    )
    tracemalloc.start()
    assert quote_of(path) == '"'
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40_000_000
    assert time.process_time() - began < 10


def test_ids_of_halves_and_of_times(tmp_path):
    halves = pl.Series("query", [1.5, 1.25, 2.0, None], dtype=pl.Float16)
    assert id_texts(tmp_path / "a", halves).to_list() == ["1.5", "1.25", "2", None]
    with pytest.raises(DataError, match=r"column 'query' holds Duration.*: an id must be a text or a number"):
        id_texts(tmp_path / "a", pl.Series("query", [1], dtype=pl.Duration))


def test_a_line_break_within_a_quoted_name_is_part_of_it(tmp_path):
    for mark in ("\r", "\r\n", "\n"):
        (tmp_path / "a.csv").write_bytes(f'query,label,"fea{mark}ture"\n1,2,3\n'.encode())
        assert read_table(tmp_path / "a.csv").columns == ["query", "label", f"fea{mark}ture"]


@pytest.mark.usefixtures("large")
def test_quotes_in_the_names_of_columns_are_as_in_their_cells(tmp_path):
    frame = pl.DataFrame({"query": ["a"], '7" wide': ["1"], 'a,"b"': ['"x"']})
    for name, separator in (("t.csv", ","), ("t.tsv", "\t")):
        frame.write_csv(tmp_path / name, separator=separator)
        assert read_table(tmp_path / name).equals(frame)
    (tmp_path / "bytes.csv").write_bytes(b"query,caf\xe9\n1,2\n")
    with pytest.raises(DataError, match=r"line 1: the name of column 'caf.' is not UTF-8 text"):
        read_table(tmp_path / "bytes.csv")


def test_moments_are_ids_in_the_digits_that_they_need():
    column = pl.Series("q", [datetime(2020, 1, 2), datetime(2020, 1, 2, 3, 4, 5, 670000), datetime(2020, 1, 2, 3)])
    wanted = ["2020-01-02", "2020-01-02 03:04:05.67", "2020-01-02 03:00:00"]
    for unit in ("ms", "us", "ns"):
        assert id_texts(Path("x"), column.cast(pl.Datetime(unit))).to_list() == wanted
    assert id_texts(Path("x"), column.cast(pl.Date)).to_list() == ["2020-01-02"] * 3


def test_truth_is_the_same_category_in_every_form():
    """pandas writes True into text, where a table of types has true."""
    typed, text = pl.DataFrame({"new": [True, False, None]}), pl.DataFrame({"new": ["True", "False", ""]})
    for listed in (["false", "true"], ["False", "True"]):
        for frame in (typed, text):
            assert codes(frame, "new", listed)[:2].tolist() == [1, 0]
    assert np.isnan(codes(text, "new", ["true", "other"])).all(), "a name among others is that name"


def test_moments_are_categories_in_the_digits_that_they_need_also_where_a_list_has_more():
    """Lists of models before had polars' form."""
    frame = pl.DataFrame({"day": [datetime(2024, 1, 1), datetime(2024, 1, 2, 3)]})
    for listed in (["2024-01-02 03:00:00.000000", "2024-01-01 00:00:00.000000"], ["2024-01-02 03:00:00", "2024-01-01"]):
        assert codes(frame, "day", listed).tolist() == [1, 0]
        assert codes(frame.cast(pl.String), "day", listed).tolist() == [1, 0]


def test_ids_that_are_uuids_are_told(tmp_path):
    with pytest.raises(
        DataError, match=r"row 1: column 'q' is not UTF-8 text \(16 bytes per value, as UUIDs are: write them as text\)"
    ):
        id_texts(tmp_path, pl.Series("q", [uuid5(NAMESPACE_URL, str(k)).bytes for k in range(9)]))


def test_lists_of_the_same_categories_in_another_order_are_others():
    q = ltr.Queries(np.array([[0], [1], [np.nan]], np.float32), [1, 0, 0], [0, 3], names=("c",))
    found = recoded(q, {"c": ["a", "b"]}, {"c": ["b", "a"]}).features[:, 0]
    np.testing.assert_array_equal(found, [1, 0, np.nan])


@pytest.mark.parametrize("name", ["*", "^f.$", "[]", ""])
def test_a_column_may_have_any_name(tmp_path, name):
    """polars reads some as patterns."""
    frame = pl.DataFrame({"query": ["a", "b"], "f0": [1.0, 2.0], name: [3.0, 4.0]})
    frame.write_parquet(tmp_path / "a.parquet")
    table = Table(tmp_path / "a.parquet")
    assert table.columns == frame.columns
    assert table.read([name, "query"]).equals(frame.select(pl.col("query")).insert_column(0, frame[name]))
    assert [(column, own[column].to_list()) for column, own in table.each(["f0", name], frame.select("query"))] == [
        ("f0", [1.0, 2.0]),
        (name, [3.0, 4.0]),
    ]


def test_a_table_without_rows_is_told_before_what_its_columns_are(tmp_path):
    for frame in (pl.DataFrame(), pl.DataFrame({"x": pl.Series([], dtype=pl.Float64)})):
        frame.write_parquet(tmp_path / "a.parquet")
        with pytest.raises(DataError, match="no document in it"):
            Table(tmp_path / "a.parquet")


def test_a_large_text_is_taken_apart_in_a_file_that_ends_with_it(workplace, monkeypatch):
    frame = pl.DataFrame({f"f{k}": [str(k + 20 * row) for row in range(5000)] for k in range(20)})
    frame.write_csv("a.csv")
    monkeypatch.setattr(tables, "_LARGE", 1000)
    monkeypatch.setattr(tables, "_FIELDS_AT_A_TIME", 3000)
    table = Table(Path("a.csv"))
    assert table.columns == frame.columns
    assert pl.DataFrame([own[name] for name, own in table.each(frame.columns, table.read(["f0"]))]).equals(frame)
    assert list(Path(".lambdaflow").iterdir()) == []


def test_a_full_disk_is_no_fault_of_the_text(workplace, monkeypatch):
    """polars 2.1 says so of its own writing."""

    def full(*_, **__):
        raise pl.exceptions.ComputeError(
            "parquet: File out of specification: underlying IO error: No space left on device (os error 28)"
        )

    monkeypatch.setattr(tables, "_LARGE", -1)
    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", full)
    Path("a.csv").write_text(ROWS)
    with pytest.raises(OSError, match="No space left") as caught:
        Table(Path("a.csv"))
    assert caught.value.errno == errno.ENOSPC
