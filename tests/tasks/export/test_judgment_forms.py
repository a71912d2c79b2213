"""Judgments in every form, read again: the same judgments."""

import json

import polars as pl
import pytest

from flows.cli import main
from tasks.data.judgments import read_judgments
from tasks.export.judgment_forms import FORMS, convert_judgments
from tasks.records import DataError

ENDINGS = {"trec": "txt", "quepid": "csv", "workbench": "json", "hello-ltr": "txt"}
ODD = [("star wars, *3", "a,b", 4.0), ("star wars, *3", 'ü"x', 0.0), ("Ärger qid:2: x", "7", 2.5), ("Ärger qid:2: x", "#8", 1 / 3)]
PLAIN = [("7", "d2", 0.0), ("q1", "d1", 3.0), ("q1", "d2", 1.0)]


def written(path, rows):
    queries = {query: [] for query, _, _ in rows}
    for query, document, label in rows:
        queries[query].append({"docId": document, "rating": label})
    path.write_text(json.dumps({"judgmentRatings": [{"query": query, "ratings": own} for query, own in queries.items()]}))
    return path


@pytest.mark.parametrize("form", FORMS)
def test_what_was_written_is_read_again(tmp_path, form):
    source = written(tmp_path / "in.json", PLAIN if form == "trec" else ODD)
    output = tmp_path / f"out.{ENDINGS[form]}"
    number, notes = convert_judgments([source], form, output)
    assert number == len(PLAIN if form == "trec" else ODD)
    assert notes
    again, _ = read_judgments([output])
    before, _ = read_judgments([source])
    assert again.sort("query", "document").equals(before.sort("query", "document"))


def test_a_carriage_return_is_a_letter_in_quepids_csv(tmp_path):
    convert_judgments([written(tmp_path / "in.json", [("a\rb", "d", 1.0)])], "quepid", tmp_path / "o.csv")
    assert read_judgments([tmp_path / "o.csv"])[0].rows() == [("a\rb", "d", 1.0)]


@pytest.mark.parametrize(
    ("form", "name"), [("quepid", "o.tsv"), ("trec", "o.csv"), ("hello-ltr", "o.json"), ("workbench", "o.parquet")]
)
def test_a_name_that_says_another_form_is_refused(tmp_path, form, name):
    source = written(tmp_path / "in.json", PLAIN)
    with pytest.raises(DataError, match=rf"{name}: judgments in the form {form} would be read as something else by that name"):
        convert_judgments([source], form, tmp_path / name)


@pytest.mark.parametrize("form", sorted(set(FORMS) - {"trec"}))
def test_labels_below_0_are_trecs_alone(tmp_path, form):
    """It reads its own rating of −1 as little as any other tool does."""
    (tmp_path / "q.txt").write_text("1 0 d1 2\n1 0 d2 -1\n")
    with pytest.raises(DataError, match=f"query '1', document 'd2': label -1: {form} holds ratings of 0 and more"):
        convert_judgments([tmp_path / "q.txt"], form, tmp_path / f"o.{ENDINGS[form]}")
    assert [path.name for path in tmp_path.iterdir()] == ["q.txt"]
    convert_judgments([tmp_path / "q.txt"], "trec", tmp_path / "o.txt")
    assert read_judgments([tmp_path / "o.txt"])[0]["label"].to_list() == [2, -1]


def test_several_files_of_several_forms_are_one(tmp_path):
    (tmp_path / "a.txt").write_text("q1 0 d1 2\n")
    (tmp_path / "b.csv").write_text("query,docid,rating\nrambo,7555,4\n")
    assert convert_judgments([tmp_path / "a.txt", tmp_path / "b.csv"], "quepid", tmp_path / "o.csv")[0] == 2
    assert pl.read_csv(tmp_path / "o.csv").rows() == [("q1", "d1", 2), ("rambo", "7555", 4)]


@pytest.mark.parametrize(
    ("form", "rows", "told"),
    [
        (
            "trec",
            ODD,
            r"query '.*': a query's name is one word in TREC's qrels; workbench takes any text, and quepid what is one line",
        ),
        ("trec", [("q", "d 1", 1.0)], r"document 'd 1': a document's id is one word in TREC's qrels"),
        ("trec", [("q", "d", 2.5)], r"query 'q', document 'd': label 2.5: TREC's qrels hold whole numbers"),
        ("hello-ltr", [("q", "d 1", 1.0)], r"document 'd 1': a document's id is one word in hello-ltr's judgments"),
        ("hello-ltr", [("q", "docid=5", 1.0)], r"document 'docid=5': after # that is an id as LETOR writes it"),
        ("hello-ltr", [("a\nb", "d", 1.0)], r"query 'a\\nb': hello-ltr's judgments have a line for each"),
        ("trec", [("q", "d\x1c1", 1.0)], r"document 'd\\x1c1': a document's id is one word"),
        ("quepid", [("a\nb", "d", 1.0)], r"query 'a\\nb': a query of Quepid's CSV is one line; workbench takes any text"),
        ("excel", PLAIN, r"--to excel: there is no such form; choose from: trec, quepid, workbench, hello-ltr"),
    ],
)
def test_what_a_form_cannot_say_is_refused_and_nothing_is_written(tmp_path, form, rows, told):
    source = written(tmp_path / "in.json", rows)
    with pytest.raises(DataError, match=told):
        convert_judgments([source], form, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in.json"]


def test_the_command_says_what_it_wrote(workplace, capsys):
    written(workplace / "in.json", PLAIN)
    assert main(["judgments", "in.json", "--to", "trec", "-o", "q.txt"]) == 0
    told = capsys.readouterr()
    assert told.out == "wrote 3 judgments to q.txt\n"
    assert "in.json: 2 queries, 3 judgments" in told.err
    assert (workplace / "q.txt").read_text() == "7 0 d2 0\nq1 0 d1 3\nq1 0 d2 1\n"
    assert main(["judgments", "in.json", "--to", "trec", "-o", "in.json"]) == 1
    assert "which would be overwritten" in capsys.readouterr().err


def test_judgments_are_written_by_query_and_document(tmp_path):
    source = written(tmp_path / "in.json", PLAIN[::-1])
    convert_judgments([source], "trec", tmp_path / "o.txt")
    assert (tmp_path / "o.txt").read_text() == "7 0 d2 0\nq1 0 d1 3\nq1 0 d2 1\n"
