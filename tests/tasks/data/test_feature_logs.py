"""Features that engines log: the same documents of every engine, and what is wrong in words."""

import json

import numpy as np
import pytest

from tasks.config.data_section import Data
from tasks.data.feature_logs import read_feature_logs
from tasks.data.ingest import ingest
from tasks.data.pool import pool
from tasks.records import DataError
from tasks.store.datasets import open_queries


def hit(document, *entries, more=()):
    logs = [{"log_entry1": [dict(zip(("name", "value"), entry, strict=False)) for entry in entries]}]
    return {"_id": document, "_source": {"title": "x"}, "fields": {"_ltrlog": [*logs, *more]}}


ANSWER = {
    "took": 1,
    "hits": {"total": 2, "hits": [hit("7555", ("title", 12.5), ("overview", 0.0)), hit("1370", ("title",), ("overview", 3))]},
}
SOLR = {"responseHeader": {"params": {"q": "rambo"}}, "response": {"numFound": 2, "docs": [
    {"id": "7555", "[features]": "title=12.5,overview=0.0"}, {"id": "1370", "[features]": "overview=3.0"},
]}}  # fmt: skip
OLD_SOLR = {
    "query": "rambo",
    "response": {"docs": [{"id": "7555", "[features]": "title:12.5;overview:0.0"}, {"id": "1370", "[features]": "overview:3"}]},
}
FORMS = {
    "wrapped.ndjson": [{"query": "rambo", "response": ANSWER}],
    "beside.ndjson": [{"query": "rambo", **ANSWER}],
    "rambo.json": [ANSWER],
    "solr.json": [SOLR],
    "wrapped-solr.ndjson": [{"query": "rambo", "response": {**SOLR, "responseHeader": {}}}],
    "old.json": [OLD_SOLR],
}


@pytest.mark.parametrize("name", FORMS)
def test_every_engine_says_the_same(workplace, name):
    (workplace / name).write_text("".join(json.dumps(line) + "\n" for line in FORMS[name]))
    table = read_feature_logs([workplace / name])
    assert table.columns == ["query", "document", "overview", "title"]
    assert table.rows() == [("rambo", "7555", 0.0, 12.5), ("rambo", "1370", 3.0, None)]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"query": "a", "hits": {"hits": [hit("1", ("t", 1), ("t", 2))]}}, "document '1': {\"name\": \"t\", \"value\": 2}: feature 't' is logged twice"),
        ({"query": "a", "hits": {"hits": [hit("1", ("t", "high"))]}}, "document '1': t \"high\": a feature must be a finite number"),
        ({"query": "a", "hits": {"hits": [hit("1", ("t", 10**400))]}}, f"t 1{'0' * 39}: a feature must be a finite number"),
        ({"query": "a", "hits": {"hits": [{"_id": "1"}]}}, "document '1': no fields._ltrlog: ask for ext.ltr_log in the search"),
        ({"query": "a", "hits": {"hits": [{}]}}, "{}: a hit must have an _id"),
        ({"query": "a", "docs": []}, "an answer must have hits.hits (Elasticsearch, OpenSearch) or response.docs (Solr)"),
        ({"query": "a", "response": {"docs": [{"id": "1"}]}}, "document '1': no [features]: ask for fl=id,[features]"),
        ({"query": "a", "response": {"docs": [{"id": "1", "[features]": "t"}]}}, "[features] 't': features must be written name=value"),
        ({"query": "a", "response": {"docs": [{"id": "1", "[features]": "t=NaN"}]}}, "t \"NaN\": a feature must be a finite number"),
        ({"query": "rambo", **ANSWER}, "query 'rambo', document '7555': it was logged before"),
        ({"query": "a", "hits": {"hits": [hit("1", ("query", 1))]}}, "a feature is named 'query'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(workplace, line, says):
    (workplace / "x.ndjson").write_text(json.dumps({"query": "rambo", **ANSWER}) + "\n" + json.dumps(line) + "\n")
    with pytest.raises(DataError) as caught:
        read_feature_logs([workplace / "x.ndjson"])
    assert says in str(caught.value)
    assert "x.ndjson, line" in str(caught.value)


def test_judgments_and_logged_features_are_a_data_set(workplace):
    (workplace / "f.ndjson").write_text(json.dumps({"query": "rambo", **ANSWER}) + "\n")
    (workplace / "q.csv").write_text("query,docid,rating\nrambo,7555,3\nrambo,9,1\nrocky,1,1\n")
    (workplace / "r").write_text("rambo Q0 1370 1 4 t\n")
    section, notes = pool.fn(Data(qrels=["q.csv"], feature_logs=["f.ndjson"], runs={"dense": "r"}))
    assert notes == [
        "q.csv: 2 queries, 3 judgments",
        "1 query judged but in no run: left out",
        "1 document judged but in no run: unranked, as in trec_eval, and not learned from",
        "1 document retrieved but not judged: kept, without a label",
        "2 documents not in run 'dense'",
        "1 document not in the feature logs",
    ]
    queries = open_queries(ingest.fn(section.files, section).data)
    assert queries.names == ("dense", "overview", "title")
    row = queries.documents.tolist().index(b"7555")
    assert queries.labels[row] == 3
    assert queries.features[row].tolist() == [pytest.approx(np.nan, nan_ok=True), 0.0, 12.5]
    (workplace / "r").write_text("rambo Q0 1370 1 4 t\n")
    with pytest.raises(DataError, match=r"data\.feature_logs: 'title' is the name of a run"):
        pool.fn(Data(qrels=["q.csv"], feature_logs=["f.ndjson"], runs={"title": "r"}))
    (workplace / "q.csv").write_text("query,docid,rating\nx,7555,3\n")
    with pytest.raises(DataError, match="no judged query is in a feature log; queries there: rambo; judged: x"):
        pool.fn(Data(qrels=["q.csv"], feature_logs=["f.ndjson"]))


@pytest.mark.parametrize("log", [{"log_entry1": None}, {"log_entry1": 3}, None, "text"])
def test_a_log_is_a_list(workplace, log):
    (workplace / "f.json").write_text(
        json.dumps({"query": "a", "response": {"hits": {"hits": [{"_id": "d", "fields": {"_ltrlog": [log]}}]}}})
    )
    with pytest.raises(DataError, match=r"f.json.*document 'd': .*: a log must be a list of names and values"):
        read_feature_logs([workplace / "f.json"])
