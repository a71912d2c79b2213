"""The doctor knows what a file is, and says what is in it."""

import json

import polars as pl
import pytest

from flows.cli import main
from tasks.data.about_file import about_file
from tests.tasks.data.test_feature_logs import ANSWER, FORMS
from tests.tasks.data.test_judgments import FORMS as JUDGMENTS
from tests.tasks.data.test_ubi import LINES

FILES = {
    "q.csv": (JUDGMENTS["q.csv"], ["q.csv: 2 queries, 3 judgments", "judgments by rating: 0: 1, 1: 1, 3: 1"]),
    "w.json": (JUDGMENTS["w.json"], ["w.json: 2 queries, 3 judgments", "judgments by rating: 0: 1, 1: 1, 3: 1"]),
    "h.txt": (JUDGMENTS["h.txt"], ["h.txt: 2 queries, 3 judgments"]),
    "f.ndjson": (json.dumps({"query": "rambo", **ANSWER}), ["feature log: 1 query, 2 documents, 2 features", "not logged for some documents: title 1"]),
    "solr.json": (json.dumps(FORMS["solr.json"][0]), ["feature log: 1 query, 2 documents, 2 features"]),
    "qrels.txt": ("q1 0 a 2\nq1 0 b -1\n", ["judgments by rating: -1: 1, 2: 1"]),
    "bm25.run": ("q1 Q0 a 1 3.5 t\nq1 Q0 b 2 1e-3 t\nq2 Q0 b 1 1e-3 t\n", ["run of TREC: 2 queries, 3 documents, 1.5 a query, 0 of equal scores"]),
    "u.ndjson": ("\n".join(map(json.dumps, LINES)), ["UBI: 3 queries, 9 events; read: click 5, impression 2, add_to_cart 1"]),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_every_kind_is_known_and_told(workplace, name):
    text, said = FILES[name]
    (workplace / name).write_text(text)
    found = about_file(workplace / name)
    assert [finding.text for finding in found][: len(said)] == said
    assert {finding.level for finding in found} == {"note"}


def test_data_to_learn_from_are_not_of_these_kinds(workplace):
    (workplace / "a.txt").write_text("# a comment\n1 qid:q1 1:5 #docid = a\n")
    (workplace / "b.txt").write_text("1 qid:q1 1:5 #docid = a\n")
    pl.DataFrame({"query": ["a"], "document": ["b"], "label": [1]}).write_parquet(workplace / "c.parquet")
    (workplace / "d.csv").write_text("query,document,label,f\na,b,1,2\n")
    (workplace / "sparse.txt").write_text("0 qid:1 # 12\n1 qid:1 2:1 # 13\n")
    (workplace / "com.txt").write_text("# made in 2024\n0 qid:2 2:1\n")
    (workplace / "six.txt").write_text("# a b c 1 2.5 x\n0 qid:2 2:1\n")
    for name in ("sparse.txt", "com.txt", "six.txt"):
        assert about_file(workplace / name) is None
    assert about_file(workplace / "b.txt") is None
    assert about_file(workplace / "c.parquet") is None
    assert about_file(workplace / "d.csv") is None
    (workplace / "e.csv").write_text("query,docid,rating,f\na,b,1,2\n")
    assert about_file(workplace / "e.csv", "rating") is None
    assert about_file(workplace / "a.txt") is None


def test_check_takes_them_and_what_is_wrong_is_an_error(workplace, capsys):
    (workplace / "u.ndjson").write_text('{"action_name": "click", "timestamp": "x"}\n')
    (workplace / "w.json").write_text(JUDGMENTS["w.json"])
    assert main(["check", "u.ndjson", "w.json"]) == 1
    said = capsys.readouterr().out
    assert 'error    u.ndjson: line 1: timestamp "x": a time must be ISO 8601' in said
    assert "note     w.json: judgments by rating" in said


def test_data_files_of_json_are_refused(workplace, capsys):
    (workplace / "w.json").write_text(JUDGMENTS["w.json"])
    (workplace / "c.yaml").write_text("data: {files: w.json}\n")
    assert main(["run", "c.yaml"]) == 1
    assert "w.json: JSON holds no rows to learn from: judgments are named by data.qrels" in capsys.readouterr().err
