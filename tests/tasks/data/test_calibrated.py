"""A machine's labels as people's gains have them: what becomes of labels, sources and weights, and what is refused."""

import numpy as np
import polars as pl
import pytest

import ltr
from flows.cli import main
from ltr.metrics.calibration import calibrate, expected_gains
from ltr.metrics.gains import graded, label_worth
from tasks.config.reading import parse
from tasks.data.calibrated import calibrated
from tasks.data.ready import ready_data
from tasks.records import DataError
from tasks.store.datasets import open_queries

pytestmark = pytest.mark.usefixtures("prefect_server")


@pytest.fixture
def folder(workplace):
    """Sixty queries of ten documents in two languages; a machine that is too kind in one of them, and people for a third of it all."""
    rng = np.random.default_rng(0)
    people = rng.choice(3, 600, p=[0.6, 0.3, 0.1])
    query = np.repeat(np.arange(60), 10)
    machine = np.clip(people + (rng.random(600) < np.where(query % 2, 0.8, 0.1)), 0, 2)
    judged = rng.random(600) < 0.3
    table = pl.DataFrame({
        "query": [f"q{q}" for q in query], "document": [f"d{k}" for k in range(600)], "label": machine,
        "language": np.array(["de", "fr"])[query % 2], "grade": [int(y) if some else None for y, some in zip(people, judged, strict=True)],
        "a": people + rng.normal(size=600), "b": rng.normal(size=600),
    })  # fmt: skip
    table.write_csv(workplace / "judged.csv")
    few = table.filter(pl.col("grade").is_not_null())
    (workplace / "people.qrels").write_text(
        "".join(f"{q} 0 {d} {y}\n" for q, d, y in few.select("query", "document", "grade").iter_rows())
    )
    return workplace


BY_COLUMN = {"files": "judged.csv", "sources": ["grade"], "attributes": ["language"], "calibrate": {"source": "grade"}}
BY_FILE = {"files": "judged.csv", "ignore": ["grade"], "attributes": ["language"], "calibrate": {"judgments": "people.qrels"}}


def whole(data, **more):
    """The data set of a configuration before it is cut."""
    config = parse({"data": data, **more})
    ready = ready_data(config)
    parts = [open_queries(name) for name in ready.folds[0].roles.values()]
    return ready, {name: np.concatenate([get(part) for part in parts]) for name, get in {
        "label": lambda q: q.labels, "machine": lambda q: q.sources["machine"],
        "people": lambda q: q.sources[config.data.calibrate.people],
        "weight": lambda q: np.ones(q.n_documents) if q.document_weights is None else q.document_weights,
    }.items()}  # fmt: skip


@pytest.mark.parametrize("gain", ["exp2", "linear"])
def test_labels_are_worth_the_expected_gain_and_peoples_own_stay(folder, gain):
    ready, found = whole(BY_COLUMN, conventions={"gain": gain})
    judged = ~np.isnan(found["people"])
    assert judged.sum() > 100
    np.testing.assert_array_equal(found["label"][judged], found["people"][judged])
    confusion, rules = calibrate(found["people"], found["machine"]), ltr.Conventions(gain=gain)
    mean, _ = expected_gains(confusion.shares[0], graded(confusion.people, rules))
    worth = label_worth(mean, rules)
    np.testing.assert_allclose(found["label"][~judged], worth[found["machine"][~judged].astype(int)])
    np.testing.assert_array_equal(found["weight"], 1)
    said = [one.text for one in ready.findings if one.subject == "calibrate"]
    assert said[0].startswith(f"people judged {judged.sum()} documents of the 600 documents that the machine labelled, ")
    assert f"0 → {worth[0]:.2f}, 1 → {worth[1]:.2f}, 2 → {worth[2]:.2f}" in said[0]


def test_a_file_says_what_a_column_says(folder):
    column, file = (whole(data)[1] for data in (BY_COLUMN, BY_FILE))
    for name in column:
        np.testing.assert_array_equal(np.sort(column[name]), np.sort(file[name]))


def test_groups_that_differ_are_taken_and_sure_labels_count_more(folder):
    ready, found = whole({**BY_COLUMN, "calibrate": {"source": "grade", "by": ["language", "query"], "weights": True}})
    said = [one.text for one in ready.findings if one.subject == "calibrate"]
    assert said[1].startswith("calibrated by language: log-likelihood of held-out labels +0.")
    assert said[2].startswith("not calibrated by ")
    judged = ~np.isnan(found["people"])
    assert len(np.unique(found["label"][~judged])) == 6
    assert (found["weight"][judged] == 1).all()
    assert (found["weight"][~judged] < 1).all()


def test_labels_of_the_machine_that_nobody_judged_are_named(folder):
    table = pl.read_csv("judged.csv").with_columns(grade=pl.when(pl.col("label") < 2).then(pl.col("grade")))
    table.write_csv("judged.csv")
    ready, _ = whole(BY_COLUMN)
    told = f"people judged no document that the machine labels 2, {(table['label'] == 2).sum()} documents: these get the label worth the average gain of all documents that people judged"
    assert any(one.text.startswith(told) for one in ready.findings if one.subject == "calibrate")


def test_labels_of_the_machine_that_few_judged_are_named(folder):
    table = pl.read_csv("judged.csv")
    rare = table.with_row_index().filter(pl.col("label") == 2, pl.col("grade").is_not_null())["index"]
    told = "people judged fewer than 5 of the documents that the machine labels 2 (4): what that label is worth is very uncertain"
    for kept in (4, 5):
        dropped = pl.int_range(pl.len()).is_in(rare[kept:].to_list())
        table.with_columns(grade=pl.when(~dropped).then(pl.col("grade"))).write_csv("judged.csv")
        said = [one.text for one in whole(BY_COLUMN)[0].findings if one.subject == "calibrate"]
        assert [text.startswith(told) for text in said[1:]] == [True] * (kept < 5)


def test_several_sets_share_one_confusion_and_are_found_again(folder):
    table = pl.read_csv("judged.csv", schema_overrides={"grade": pl.Float64})
    for k in range(3):
        table.filter(pl.col("query").str.slice(1).cast(pl.Int64) % 3 == k).write_csv(f"part{k}.csv")
    data = {**BY_COLUMN, "train": "part0.csv", "valid": "part1.csv", "test": "part2.csv"}
    del data["files"]
    first, again = (whole(data)[0] for _ in range(2))
    assert first.folds == again.folds
    worth = [{round(one, 9) for one in open_queries(name).labels if one % 1} for name in first.folds[0].roles.values()]
    assert worth[0] == worth[1] == worth[2]
    assert len(worth[0]) == 3


def test_nothing_is_done_where_nothing_is_asked():
    assert calibrated({"a": "b"}, parse({"data": {"files": "x"}}).data, ltr.Conventions()) == ({"a": "b"}, ())


def test_commands_know_it(folder, capsys):
    asked = ["check", "judged.csv", "--set", "sources=[grade]", "--set", "attributes=[language]"]
    assert main([*asked, "--set", "calibrate={source: grade, by: language}"]) == 0
    assert "people judged" in capsys.readouterr().out


def test_what_was_judged_by_nobody_is_refused(folder):
    (folder / "people.qrels").write_text("q1 0 unknown 2\n")
    with pytest.raises(
        DataError, match=r"data\.calibrate: calibration: people judged 0 documents that the machine labelled; two are needed"
    ):
        whole(BY_FILE)
    (folder / "judged.txt").write_text("1 qid:1 1:0\n0 qid:1 1:1\n")
    with pytest.raises(DataError, match="judgments are joined by query and document id, and the documents have no id"):
        whole({"files": "judged.txt", "calibrate": {"judgments": "people.qrels"}})
