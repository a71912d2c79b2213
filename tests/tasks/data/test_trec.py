"""TREC runs and judgments: scores find their documents, what does not match is counted, a wrong line is named."""

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ltr
import tasks.evidence  # noqa: F401  (its kinds are keys of a configuration)
from ltr.data.queries import concatenate
from tasks.config.data_section import Data
from tasks.config.reading import parse
from tasks.data.ingest import ingest
from tasks.data.prepare import prepare
from tasks.data.trec import QRELS, RUN, read_trec, with_run
from tasks.records import ConfigError, DataError, Prepared
from tasks.store.datasets import open_queries

JUDGED = "1 qid:q1 1:5 #docid = a\n0 qid:q1 1:6 2:1 #docid = b\n2 qid:q2 1:7 #docid = a\n0 qid:q2 1:8 #docid = c\n"
BM25 = "q1 Q0 b 1 9.5 bm25\nq1 Q0 x 2 9.25 bm25\nq2\tQ0\ta  7 -1.5 bm25\n\nq3 Q0 a 1 2e0 bm25\nq3 Q0 b 2 1 bm25\n"


def prepared(**options):
    data = Data(files=["a.txt"], **options)
    noted = prepare.fn(ingest.fn(data.files, data).data, data)
    return open_queries(noted.data), list(noted.notes)


def by_document(queries, name):
    ids = np.repeat(queries.ids, np.diff(queries.offsets))
    values = queries.features[:, queries.names.index(name)].tolist()
    return {f"{q.decode()}/{d.decode()}": v for q, d, v in zip(ids, queries.documents, values, strict=True)}


@pytest.fixture
def folder(workplace):
    (workplace / "a.txt").write_text(JUDGED)
    (workplace / "bm25.run").write_text(BM25)
    return workplace


def test_a_run_is_a_feature_and_what_does_not_match_is_counted(folder):
    queries, notes = prepared(runs={"bm25": "bm25.run"})
    assert queries.names == ("bm25", "f1", "f2")
    found = by_document(queries, "bm25")
    assert (found["q1/b"], found["q2/a"]) == (9.5, -1.5)
    assert np.isnan([found["q1/a"], found["q2/c"]]).all()
    assert by_document(queries, "f1") == {"q1/a": 5, "q1/b": 6, "q2/a": 7, "q2/c": 8}
    assert notes == [
        "run 'bm25': 2 of 4 documents with a score; not in these data: 1 document of the run, of 1 query here; "
        "not in these data: 2 documents of the run, of 1 other query"
    ]
    scores = ltr.Column("bm25").fit(queries).predict(queries.features)
    assert sorted(scores.tolist())[2:] == [-1.5, 9.5]


def test_several_runs_and_several_files_of_one(folder):
    (folder / "q1.run").write_text("q1 Q0 a 1 3 t\n")
    (folder / "q2.run").write_text("q2 Q0 a 1 4 t\n")
    queries, notes = prepared(runs={"bm25": "bm25.run", "dense": ["q1.run", "q2.run"]})
    assert queries.names == ("bm25", "dense", "f1", "f2")
    assert by_document(queries, "dense")["q2/a"] == 4
    assert notes[1] == "run 'dense': 2 of 4 documents with a score"


def test_data_without_runs_are_what_they_were(folder):
    data = Data(files=["a.txt"])
    name = ingest.fn(data.files, data).data
    assert prepare.fn(name, data) == Prepared(name)


def test_a_changed_run_is_read_again(folder):
    first, _ = prepared(runs={"bm25": "bm25.run"})
    (folder / "bm25.run").write_text(BM25.replace("9.5", "8.5"))
    assert by_document(prepared(runs={"bm25": "bm25.run"})[0], "bm25")["q1/b"] == 8.5
    assert by_document(first, "bm25")["q1/b"] == 9.5


def test_parts_of_different_widths_still_fit_together(folder):
    wide = prepared(runs={"bm25": "bm25.run"})[0]
    (folder / "a.txt").write_text("1 qid:q3 1:1 #docid = a\n0 qid:q3 1:2 #docid = b\n")
    narrow = prepared(runs={"bm25": "bm25.run"})[0]
    joined = concatenate([wide, narrow])
    assert joined.names == ("bm25", "f1", "f2")
    assert by_document(joined, "bm25")["q3/a"] == 2


def test_scores_that_a_feature_cannot_tell_apart_are_counted(folder):
    (folder / "bm25.run").write_text("q1 Q0 a 1 1000.00002 t\nq1 Q0 b 2 1000.00001 t\n")
    assert prepared(runs={"bm25": "bm25.run"})[1][0].endswith("1 score too close to another of the query for float32: tied")


@pytest.mark.parametrize(
    ("text", "form", "says"),
    [
        ("q1 Q0 a 1 2 t\nq1 Q0 b 2 1\n", RUN, r"x, line 2: 'q1 Q0 b 2 1': a line must be 'query Q0 document rank score tag'"),
        ("\nq1 Q0 a 1 high t\n", RUN, "x, line 2: 'q1 Q0 a 1 high t': the score must be a finite number"),
        ("q1 Q0 a 1 nan t\n", RUN, "line 1: .*the score must be a finite number"),
        ("q1 Q0 a 1 2 t\nq1 Q0 a 2 1 t\n", RUN, "line 2: .*was named before"),
        ("\n", RUN, "x: no document in it"),
        ("q1 0 a 1\nq1 0 b\n", QRELS, "x, line 2: 'q1 0 b': a line must be 'query 0 document label'"),
        ("q1 0 a good\n", QRELS, "line 1: 'q1 0 a good': the label must be a finite number"),
    ],
)
def test_a_wrong_line_is_named(workplace, text, form, says):
    (workplace / "x").write_text(text)
    with pytest.raises(DataError, match=says):
        read_trec([workplace / "x"], form)


def test_runs_that_do_not_fit_the_data_are_refused(folder):
    with pytest.raises(DataError, match="the data have a feature 'f1'; rename the run"):
        prepared(runs={"f1": "bm25.run"})
    (folder / "bm25.run").write_text("Q1 Q0 a 1 2 t\n")
    with pytest.raises(DataError, match=r"no document of run 'bm25' is in the data; query/document there: Q1/a; here: q"):
        prepared(runs={"bm25": "bm25.run"})
    with pytest.raises(DataError, match=r"none\.run: no such file"):
        prepared(runs={"bm25": "none.run"})
    (folder / "a.txt").write_text("1 qid:q1 1:5\n")
    with pytest.raises(DataError, match="the documents have no id"):
        prepared(runs={"bm25": "bm25.run"})


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"qrels": "q"}, "qrels needs runs: TREC runs"),
        ({"generate": {}, "runs": {"bm25": "r"}}, "runs cannot be combined with generated data"),
        ({"files": "a", "runs": {"label": "r"}}, "runs.label: .*a name that is not"),
        ({"files": "a", "runs": {"bm25": []}}, "runs.bm25: a run has at least one file"),
        ({"files": "a", "qrels": "q", "runs": {"bm25": "r"}}, "given: files, qrels"),
    ],
)
def test_what_does_not_go_together_is_said(data, says):
    with pytest.raises(ConfigError, match=says):
        parse({"data": data})


def test_a_column_gets_no_certificate():
    rankers = {"bm25": {"kind": "column", "feature": "bm25"}, "linear": {"kind": "lambdarank"}}
    with pytest.raises(ConfigError, match=r"'bm25' \(column\) has no weights"):
        parse({"data": {"files": "a"}, "rankers": rankers, "optimality": {"rankers": ["bm25"]}})


def test_forms_of_a_run_are_features(folder):
    (folder / "bm25.run").write_text(
        "q1 Q0 b 2 4 t\nq1 Q0 x 9 4 t\nq1 Q0 y 1 10 t\nq1 Q0 z 4 0 t\nq2 Q0 a 1 3 t\nq2 Q0 c two 3 t\n"
    )
    queries, _ = prepared(runs={"bm25": "bm25.run"}, run_forms=["score", "rank", "min-max", "z-score", "borda"])
    assert queries.names[:5] == ("bm25", "rank of bm25", "min-max of bm25", "z-score of bm25", "borda of bm25")
    found = {form: by_document(queries, f"{form} of bm25") for form in ("rank", "min-max", "z-score", "borda")}
    assert found["rank"] == {"q1/a": pytest.approx(np.nan, nan_ok=True), "q1/b": 2, "q2/a": 1, "q2/c": 2}
    assert found["min-max"] == pytest.approx({"q1/a": 0, "q1/b": 0.4, "q2/a": 1, "q2/c": 1})
    assert found["borda"] == pytest.approx({"q1/a": 0, "q1/b": 0.75, "q2/a": 1, "q2/c": 0.5})
    deviation = np.std([4, 4, 10, 0])
    assert found["z-score"] == pytest.approx({"q1/a": -4.5 / deviation, "q1/b": -0.5 / deviation, "q2/a": 0, "q2/c": 0})


def test_the_order_of_a_runs_lines_decides_nothing(folder):
    read = read_trec([folder / "bm25.run"], RUN)
    (folder / "bm25.run").write_text("\n".join(reversed(BM25.splitlines())))
    assert read_trec([folder / "bm25.run"], RUN).equals(read)


def test_forms_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="run_forms: two features would be named 'rank of a'"):
        parse({"data": {"files": "a", "runs": {"a": "r", "rank of a": "s"}, "run_forms": ["score", "rank"]}})


def test_a_byte_order_mark_is_no_part_of_a_query_and_what_is_compressed_says_so(workplace):
    (workplace / "marked.run").write_bytes(b"\xef\xbb\xbf" + BM25.encode())
    assert read_trec(["marked.run"], RUN)["query"].unique().sort().to_list() == ["q1", "q2", "q3"]
    (workplace / "packed.run").write_bytes(gzip.compress(BM25.encode()))
    with pytest.raises(DataError, match=r"^packed\.run: compressed with gzip; unpack it first$"):
        read_trec(["packed.run"], RUN)


def test_ids_that_are_no_text_stay_apart(workplace):
    """Bytes that are no UTF-8 are not all one character, by which other documents would get a document's score."""
    (workplace / "a.txt").write_bytes(
        b"1 qid:q\xe8 1:5 # docid = caf\xe9\n0 qid:q\xe8 1:6 # docid = caf\xe8\n0 qid:q\xe9 1:6 # docid = caf\xe9\n"
    )
    (workplace / "b.run").write_bytes(b"q\xe8 Q0 caf\xe8 1 2.5 b\nq\xe9 Q0 caf\xe9 1 1.5 b\n")
    queries, notes = prepared(runs={"b": "b.run"})
    found = {(d, f): s for d, f, s in zip(queries.documents, queries.features[:, 1], queries.features[:, 0], strict=True)}
    assert found[b"caf\xe8", 6] == 2.5
    assert found[b"caf\xe9", 6] == 1.5
    assert np.isnan(found[b"caf\xe9", 5])
    assert notes == ["run 'b': 2 of 3 documents with a score"]


def test_a_run_may_be_called_lowest(workplace):
    run = pl.DataFrame({"query": ["a", "a"], "document": ["x", "y"], "score": [3.0, 1.0], "rank": [1, 2]})
    table = pl.DataFrame({"query": ["a", "a", "b"], "document": ["x", "z", "x"]})
    found = with_run(table, run, "lowest", ("score", "z-score"))
    assert found.columns == ["query", "document", "lowest", "z-score of lowest"]
    assert found["lowest"].to_list() == [3.0, None, None]
    assert found["z-score of lowest"].to_list() == [1.0, -1.0, 0.0]


def test_a_run_is_by_score_whatever_its_ranks_say(workplace):
    """By score, as trec_eval has it, whatever the rank column says."""
    path = Path("a.run")
    path.write_text("q Q0 a 1 1.0 t\nq Q0 b 2 2.0 t\n")
    assert read_trec([path], RUN)["document"].to_list() == ["b", "a"]
