"""The same three judgments in every form, and what is wrong in words."""

import json

import pytest

from tasks.data.judgments import is_judgments, read_judgments
from tasks.records import DataError

WORKBENCH = {"name": "x", "judgmentRatings": [
    {"query": "rambo", "ratings": [{"docId": "7555", "rating": "3.000"}, {"docId": 1370, "rating": 0}]},
    {"query": "rocky 2", "ratings": [{"docId": "7555", "rating": 1}]},
]}  # fmt: skip
FORMS = {
    "w.json": json.dumps(WORKBENCH, indent=1),
    "hit.json": json.dumps({"_id": "j", "_source": WORKBENCH}),
    "q.csv": 'query,docid,rating\nrambo,7555,3\nrambo,1370,0.0\n"rocky 2",7555,1\n',
    "detailed.csv": "Team Name,Query Text,Doc ID,Title,Rating\nt,rambo,7555,x,3\nt,rambo,1370,,0\nt,rocky 2,7555,y,1\n",
    "h.txt": "# qid:1: rambo*1\n# qid:2: rocky 2\n#\n3\tqid:1 #\t7555\tRambo\n0\tqid:1 #\t1370\tFirst Blood\n1 qid:2 # 7555 Rambo\n",
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_says_the_same(workplace, name):
    (workplace / name).write_text(FORMS[name])
    table, notes = read_judgments([workplace / name])
    assert table.rows() == [("rambo", "7555", 3.0), ("rambo", "1370", 0.0), ("rocky 2", "7555", 1.0)]
    assert notes == [f"{name}: 2 queries, 3 judgments"]
    assert is_judgments(workplace / name)


def test_trec_judgments_are_read_as_before(workplace):
    (workplace / "qrels").write_text("1 0 a 2\n1 0 b -1\n")
    assert not is_judgments(workplace / "qrels")
    (workplace / "data.parquet").write_bytes(b"PAR1")
    assert not is_judgments(workplace / "data.parquet")
    assert read_judgments([workplace / "qrels"])[0].rows() == [("1", "a", 2.0), ("1", "b", -1.0)]


def test_trec_judgments_that_are_called_a_table_are_read(workplace):
    """As MS MARCO's."""
    (workplace / "qrels.dev.tsv").write_text("1185869\t0\t0\t1\n1185868\t0\t16\t-1\n")
    assert read_judgments([workplace / "qrels.dev.tsv"])[0].rows() == [("1185869", "0", 1.0), ("1185868", "16", -1.0)]


def test_the_number_of_a_row_is_no_document(workplace):
    (workplace / "q.csv").write_text("id,score,query,docid,rating\n7555,9,rambo,1370,3\n1370,8,rambo,7555,0\n")
    assert read_judgments([workplace / "q.csv"])[0].rows() == [("rambo", "1370", 3.0), ("rambo", "7555", 0.0)]


def test_missing_and_repeated_ratings_are_counted(workplace):
    (workplace / "q.csv").write_text("query,docid,rating\na,1,2\na,2,\na,1,2\n")
    table, notes = read_judgments([workplace / "q.csv"])
    assert table.rows() == [("a", "1", 2.0)]
    assert notes[1:] == ["q.csv: 1 document with an empty rating: not judged", "q.csv: 1 rating given before: left out"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("q.csv", "query,docid,rating\na,1,good\n", "q.csv, line 2: query 'a', document '1': rating 'good': a rating must be a number, 0 or more"),
        ("q.csv", "query,docid,rating\na,1,1_0\n", "q.csv, line 2: query 'a', document '1': rating '1_0': a rating must be a number, 0 or more"),
        ("q.csv", "query,docid,rating\na,1,1\na,1,2\n", "q.csv, line 3: query 'a', document '1': rated 2 here and 1 above"),
        ("q.csv", "query,docid,rating\na,,1\n", "q.csv, line 2: the document id is empty"),
        ("q.csv", "query,docid,rating\na,1\n", "q.csv, line 2: 2 fields; the header has 3"),
        ("q.csv", "query,docid,rating\nrocky, 2,7555,3\n", "q.csv, line 2: 4 fields; the header has 3"),
        ("q.csv", "query,url,rating\n", "q.csv, line 1: no column for the document; there are: query, url, rating"),
        ("q.csv", "query,docid,rating\n", "q.csv: no judgment in it"),
        ("q.csv", 'query,docid,rating\n"foo,d1,3\nbar",d2,1\n', "q.csv, line 3: a quoted field begins on a line above and ends here"),
        ("q.csv", 'query,docid,rating\n"exact" shoes,d1,3\n', "q.csv, line 2: '\"exact\" shoes,d1,3': this quote is neither around a whole field"),
        ("q.csv", "query,docid,rating,rating\na,b,1,2\n", "q.csv, line 1: two columns are called 'rating'; which is the rating?"),
        ("w.json", '{"judgmentRatings": [{"query": "\\ud83d"}]}', "w.json, line 1: not JSON: half of a surrogate pair is not a character"),
        ("w.json", '{"judgments": []}', "w.json: no judgmentRatings"),
        ("w.json", '{"judgmentRatings": [{"query": "a"}]}', "w.json: judgmentRatings[0]: {\"query\": \"a\"}: it must have a query and ratings"),
        ("w.json", '{"judgmentRatings": [{"query": "a", "ratings": [{"docId": 1}]}]}', "judgmentRatings[0].ratings[0]: {\"docId\": 1}: it must have"),
        ("w.json", '{"judgmentRatings": [{"query": "a", "ratings": [{"docId": 1, "rating": -1}]}]}', "query 'a', document '1': rating '-1'"),
        ("w.json", '{"judgmentRatings": [{"query": "a", "ratings": [{"docId": 1, "rating": true}]}]}', "query 'a', document '1': rating 'true'"),
        ("w.json", '{"judgmentRatings": [{"query": "a", "query": "b"}]}', "w.json, line 1: not JSON: the key 'query' is given twice"),
        ("h.txt", "# qid:1: a\n# qid:1: b\n", "h.txt, line 2: '# qid:1: b': qid 1 was 'a' before"),
        ("h.txt", "# qid:1: a\n4 qid:2 # 1\n", "h.txt, line 2: '4 qid:2 # 1': missing header line '# qid:2: TEXT' above"),
        ("h.txt", "# qid:1: a\n4 qid:1 1\n", "h.txt, line 2: '4 qid:1 1': a judgment must be 'GRADE qid:N # DOCUMENT'"),
        ("q.parquet", "x", "judgments are TREC qrels, JSON of the workbench, CSV of Quepid"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(workplace, name, text, says):
    (workplace / name).write_text(text)
    with pytest.raises(DataError) as caught:
        read_judgments([workplace / name])
    assert says in str(caught.value)


def test_a_document_judged_in_two_files_is_named(workplace):
    (workplace / "q.csv").write_text(FORMS["q.csv"])
    (workplace / "h.txt").write_text(FORMS["h.txt"])
    with pytest.raises(DataError, match="query 'rambo', document '7555': it is judged in two places"):
        read_judgments([workplace / "q.csv", workplace / "h.txt"])


def test_real_judgments(real_data):
    file = real_data / "esci-ubi" / "esci_us_judgments.json"
    if not file.is_file():
        pytest.skip("no esci-ubi/esci_us_judgments.json")
    table, _ = read_judgments([file])
    assert (table.height, table["query"].n_unique(), sorted(table["label"].unique())) == (6678, 150, [0, 1, 10, 100])


@pytest.mark.parametrize(
    "text",
    [
        "0 qid:q0 # docid = z0\n1 qid:q0 1:0.5 # docid = z1\n",
        "0 qid:q0 # docid = z0\n1 qid:q0 # docid = z1\n",
        "# qid:1: rambo*1\n\n0 qid:1 1:0.1 2:1.1 # 751 Rambo\n",
        "0 qid:1 # a\n1 qid:1 1:0.5 # b\n",
    ],
)
def test_lines_with_features_or_ids_are_a_data_set(workplace, text):
    (workplace / "data.txt").write_text(text)
    assert not is_judgments(workplace / "data.txt")
