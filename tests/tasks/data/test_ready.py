"""From a configuration to folds, and what is refused before anything is trained."""

import importlib
import shutil
import weakref
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tasks.evidence  # noqa: F401  (its kinds are keys of a configuration)
from flows.cli import main
from flows.pipeline import run
from tasks.config.reading import parse
from tasks.data.ready import ready_data, require_sources
from tasks.records import DataError
from tasks.store.datasets import open_queries

pytestmark = pytest.mark.usefixtures("prefect_server")


def letor(queries, labels=(0, 1, 2), missing=False):
    rows = [(label, q) for q in queries for label in labels]
    return "".join(f"{label} qid:{q} 1:{label + q}" + ("" if missing else f" 2:{q}") + "\n" for label, q in rows)


def table(path, queries, labels=(0, 1, 2), hole=False):
    lines = [
        "query,label,a,b",
        *(f"q{q},{label},{label * 2 + q},{'' if hole and label else q}" for q in queries for label in labels),
    ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_files_are_read_checked_and_cut(workplace):
    (workplace / "a.txt").write_text(letor(range(20)))
    data = ready_data(parse({"data": {"files": "a.txt"}}))
    (fold,) = data.folds
    assert [open_queries(name).n_queries for name in fold.roles.values()] == [12, 4, 4]
    assert data.findings[0].text.startswith("20 queries, 60 documents, 2 features")


def test_categories_that_hardly_occur_twice_in_all_files_are_told(workplace, capsys):
    """Amounts that were named as categories by mistake are text in a CSV, and as such cannot be told from versions or codes. A small file has
    most of its categories once, however frequent they are in the others."""
    for file, first, n in (("a.csv", 0, 240), ("b.csv", 240, 60), ("c.csv", 300, 60)):
        rows = [f"q{k // 5},{k % 3},{k / 7:.2f},s{k % 60}" for k in range(first, first + n)]
        Path(file).write_text("\n".join(("query,label,price,site", *rows)) + "\n")
    files = {"train": "a.csv", "valid": "b.csv", "test": "c.csv"}
    ready = ready_data(parse({"data": {**files, "categorical": ["price", "site"]}, "rankers": {"t": {"kind": "lambdamart"}}}))
    told = (
        "'price' has 360 categories in 360 documents, so little can be learned from any of them; if they are amounts or ids, take the column out of "
        "data.categorical"
    )
    assert [finding.text for finding in ready.findings if "little can be learned" in finding.text] == [told]
    assert main(["check", *files.values(), "--set", "categorical=[price, site]"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if "little" in line] == [f"warning  categorical: {told}"]


def test_parts_are_rotated_and_shared_queries_refused(workplace):
    for k in range(3):
        (workplace / f"S{k}.txt").write_text(letor(range(10 * k, 10 * k + 5)))
    files = [f"S{k}.txt" for k in range(3)]
    assert len(ready_data(parse({"data": {"parts": files}})).folds) == 3
    (workplace / "S2.txt").write_text(letor(range(3, 8)))
    with pytest.raises(DataError, match="part 3: 2 queries also in part 1, so that results on them would be too good"):
        ready_data(parse({"data": {"parts": files}}))


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"measures": ["cndcg_3"]}, "cndcg_3 reads the label source 'click', but the data have: label"),
        ({"conventions": {"max_label": 1}, "measures": ["err"]}, r"^query 'q\d+': ERR: label 2 is above max_label 1"),
        ({"rankers": {"c": {"kind": "column", "feature": "z"}}}, r"rankers.c: no feature 'z' in the data; choose from: a, b"),
        ({"rankers": {"c": {"kind": "lambdamart", "base": "z"}}}, r"rankers.c: no feature 'z' in the data; choose from: a, b$"),
        ({"rankers": {"c": {"kind": "lambdamart", "monotone": {"a": 1, "z": -1}}}}, r"rankers.c: no feature 'z' in the data"),
        ({"rankers": {"c": {"kind": "ranksvm"}}}, "rankers.c needs complete features; 'b' is missing for"),
        (
            {"rankers": {"c": {"kind": "average", "of": [{"kind": "ranksvm"}]}}},
            r"rankers.c needs complete features; 'b' is missing .* \(impute: median",
        ),
        (
            {"rankers": {"c": {"kind": "average", "of": [{"kind": "column", "feature": "b"}]}}},
            r"rankers.c: average: 'b' is missing for \d+ of 36 documents",
        ),
        (
            {
                "rankers": {
                    "b": {"kind": "column", "feature": "b"},
                    "a": {"kind": "column", "feature": "a"},
                    "c": {"kind": "ranksvm", "on": ["a", "b"]},
                }
            },
            r"rankers.c.on: 'b' is missing for \d+ \w+ documents, and b ranks these last without a score, so there is nothing for ranksvm to learn from",
        ),
        *(
            (
                {
                    "rankers": {
                        "b": {"kind": "column", "feature": "b"},
                        "a": {"kind": "column", "feature": "a"},
                        "c": {**kind, "on": ["a", "b"]},
                    }
                },
                rf"rankers.c.on: 'b' is missing for \d+ \w+ documents, and b ranks these last without a score, so there is nothing for {kind['kind']} to learn from",
            )
            for kind in ({"kind": "lambdarank"}, {"kind": "least_squares", "impute": "median"}, {"kind": "average"})
        ),
        ({"select": "map", "conventions": {"threshold": 3}}, r"train: map is undefined on every query: no label reaches .*=3"),
        (
            {"rankers": {"t": {"kind": "lambdamart", "min_docs_in_leaf": 20}}},
            r"rankers\.t: 36 documents cannot make two leaves of min_docs_in_leaf=20",
        ),
        (
            {"rankers": {"t": {"kind": "lambdamart", "min_docs_in_leaf": 10, "train_share": 0.5}}},
            r"rankers\.t: 18 documents cannot make two leaves of min_docs_in_leaf=10",
        ),
        (
            {"data": {"files": "a.csv", "drop": ["b"]}, "rankers": {"c": {"kind": "conditional"}}},
            r"rankers\.c: labels of 'label' have 3 levels, and conditional models need two: give 0 and 1",
        ),
        *(
            (
                {"rankers": {"c": {"kind": kind, "unbiased": {"kind": "pairwise", "positions": "rank"}}}},
                "rankers.c: no label source 'rank' in this data set; choose from: label",
            )
            for kind in ("lambdamart", "lambdarank")
        ),
        ({"parts": 99}, "parts: 99 of 12 training queries"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(workplace, more, rule):
    table(workplace / "a.csv", range(20), hole=True)
    config = parse({"data": {"files": "a.csv"}, **more})
    with pytest.raises((DataError, ValueError), match=rule):
        require_sources(config, ready_data(config).folds)


CALIBRATED = {"sources": ["grade"], "calibrate": {"source": "grade", "weights": True}}


@pytest.mark.parametrize(
    ("data", "rankers", "rule"),
    [
        (
            {"weight": "a"},
            {"t": {"kind": "lambdamart"}, "r": {"kind": "rankboost"}},
            r"data\.weight: rankers\.r \(rankboost\) does not support weights of queries; choose from: lambdamart, lambdarank, column",
        ),
        (
            CALIBRATED,
            {"a": {"kind": "column", "feature": "a"}, "net": {"kind": "lambdarank"}},
            r"data\.calibrate\.weights: rankers\.net \(lambdarank\) does not support weights of documents; choose from: lambdamart, ",
        ),
        (
            CALIBRATED,
            {"both": {"kind": "average", "of": [{"kind": "lambdamart"}, {"kind": "lambdarank"}]}},
            r"rankers\.both\.of \(lambdarank\) does not support weights of documents",
        ),
        (CALIBRATED, "auto", r"rankers\.linear \(lambdarank\) does not support weights of documents"),
    ],
)
@pytest.mark.usefixtures("prefect_server", "workplace")
def test_rankers_that_do_not_weigh_are_told_before_data_are_read(data, rankers, rule):
    """There is no file here to be read."""
    with pytest.raises(DataError, match=rule):
        run(parse({"data": {"files": "a.csv", **data}, "rankers": rankers}))


def test_a_ranker_that_imputes_takes_missing_features_at_every_point_of_its_grid(workplace):
    table(workplace / "a.csv", range(20), hole=True)
    written = {"data": {"files": "a.csv"}, "rankers": {"r": {"kind": "ranksvm", "impute": "median"}}}
    data = ready_data(parse(written))
    require_sources(parse(written), data.folds)
    written["rankers"]["r"]["sweep"] = {"impute": ["zero", "none"]}
    with pytest.raises(DataError, match=r"rankers.r needs complete features; 'b' .* \(impute: median, zero or query-mean"):
        require_sources(parse(written), data.folds)


def test_what_can_be_trained_on_is_not(workplace):
    table(workplace / "a.csv", range(20))
    rankers = {"trees": {"kind": "lambdamart", "min_docs_in_leaf": 5}, "net": {"kind": "lambdarank"}}
    config = parse({"data": {"files": "a.csv"}, "rankers": rankers, "optimality": {"measure": "ndcg_3"}})
    data = ready_data(config)
    require_sources(config, data.folds)
    assert np.isfinite(open_queries(data.folds[0].train).features).all()


def test_many_folds_are_looked_at_one_by_one(workplace, monkeypatch):
    """Every array of a data set is a file that stays open: 25 folds were more than the 256 of a process on macOS, 85 than the 1,024 of Linux."""
    table(workplace / "a.csv", range(20))
    config = parse(
        {"data": {"files": "a.csv", "folds": 10}, "rankers": {"l": {"kind": "least_squares"}, "t": {"kind": "lambdamart"}}}
    )
    folds = ready_data(config).folds
    opened, most = [], []

    def counted(name):
        queries = open_queries(name)
        opened.append(weakref.ref(queries))
        most.append(sum(one() is not None for one in opened))
        return queries

    monkeypatch.setattr("tasks.data.ready.open_queries", counted)
    require_sources(config, folds)
    assert len(opened) >= 20
    assert max(most) <= 3


def test_rankers_on_scores_need_a_query_in_each_half(workplace):
    """Before training: they were told at its end that validation had no documents."""
    rankers = {"a": {"kind": "column", "feature": "f1"}, "both": {"kind": "average", "on": ["a"]}}
    for count, valid in ((5, 1), (10, 2)):
        (workplace / f"{count}.txt").write_text(letor(range(count)))
        config = parse({"data": {"files": f"{count}.txt"}, "rankers": rankers, "measures": ["ndcg"], "select": "ndcg"})
        folds = ready_data(config).folds
        assert open_queries(folds[0].valid).n_queries == valid
        if valid == 2:
            require_sources(config, folds)
            continue
        with pytest.raises(
            DataError, match=r"both: learns from one half of the validation queries .* there is 1 validation query: give more"
        ):
            require_sources(config, folds)


def test_without_validation_files_some_training_queries_validate(workplace):
    (workplace / "train.txt").write_text(letor(range(20)))
    (workplace / "test.txt").write_text(letor(range(30, 40)))
    config = parse({"data": {"train": "train.txt", "test": "test.txt"}})
    for _ in range(2):
        data = ready_data(config)
        (fold,) = data.folds
        assert [open_queries(name).n_queries for name in fold.roles.values()] == [15, 5, 10]
        assert "valid: no files; 5 of the 20 training queries are used for validation" in [
            f"{f.subject}: {f.text}" for f in data.findings
        ]
    own, held = (set(open_queries(name).keys.tolist()) for name in (fold.train, fold.valid))
    assert not own & held
    (workplace / "train.txt").write_text(letor(range(1)))
    with pytest.raises(DataError, match="train: 1 query cannot be cut into training and validation queries"):
        ready_data(config)


def test_generated_data_are_cleaned_and_labelled_as_files_are(workplace):
    made = {"generate": {"queries": [8, 4, 4], "documents": 6, "features": 6}, "clean": True, "binarise": 2, "drop": ["f1"]}
    ready = ready_data(parse({"data": made, "rankers": {"t": {"kind": "least_squares"}}}))
    train = open_queries(ready.folds[0].train)
    assert set(train.sources) == {"click", "binary"}
    assert "f1" not in train.names
    assert any("cleaning dropped" in finding.text for finding in ready.findings)


def shops(workplace, **more):
    """A table of sixty queries in which the shop decides, as a configuration."""
    rng = np.random.default_rng(0)
    shop, number = rng.integers(0, 9, 600), rng.normal(size=600)
    label = np.clip(np.round(number + (shop % 3 == 0) * 2), 0, 4)
    frame = pl.DataFrame(
        {"query": [f"q{k // 10}" for k in range(600)], "label": label, "number": number, "shop": [f"{k}.com" for k in shop]}
    )
    frame.write_csv(workplace / "shops.csv")
    return parse({"data": {"files": "shops.csv", "categorical": ["shop"]}, "rankers": {"trees": {"kind": "lambdamart"}}, **more})


def test_categories_are_places_in_the_list_of_all_files(workplace):
    config = shops(workplace)
    ready = ready_data(config)
    assert ready.data.categories == {"shop": [f"{k}.com" for k in range(9)]}
    assert config.point("trees", {}).section.categorical == ("shop",)
    train = open_queries(ready.folds[0].train)
    assert set(train.features[:, train.names.index("shop")]) == set(range(9))
    few = shops(workplace, data={"files": "shops.csv", "categories": {"shop": ["8.com", "1.com"]}})
    column = open_queries(ready_data(few).folds[0].train).features[:, 1]
    assert set(column[~np.isnan(column)]) == {0, 1}
    require_sources(config, ready.folds)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"rankers": {"linear": {"kind": "lambdarank"}}}, "rankers.linear: lambdarank reads numbers, and 'shop' holds categories"),
        (
            {"rankers": {"mean": {"kind": "average", "of": [{"kind": "lambdamart"}, {"kind": "ranksvm"}]}}},
            "rankers.mean: ranksvm reads numbers",
        ),
    ],
)
def test_rankers_of_numbers_do_not_take_categories(workplace, more, says):
    config = shops(workplace, **more)
    with pytest.raises(DataError, match=says):
        require_sources(config, ready_data(config).folds)


def test_a_column_of_ids_that_is_named_is_there(workplace):
    """Left out in silence, the real one became a feature."""
    rows = [f"{q},{label},{10 * q + label},{q / 7 + label}" for q in range(20) for label in (0, 1)]
    (workplace / "d.csv").write_text("\n".join(["query,label,doc_id,x", *rows, ""]))
    with pytest.raises(DataError, match=r"d.csv: no column 'dok_id'; did you mean doc_id\?"):
        ready_data(parse({"data": {"files": ["d.csv"], "document": "dok_id"}}))
    config = parse({"data": {"files": ["d.csv"]}})
    ready_data(config)
    ready_data(parse(config.resolved()))  # as a refit or the clock reads it, with all defaults written


def test_training_labels_do_not_depend_on_clicks_of_other_queries(workplace):
    """Also where these are similar: of what is clicked on test queries a model knows nothing."""

    def folds(clicked):
        lines = [
            f"s{q},{q},d{d},{d + 1},{int(clicked(q, d))},word{q // 2} and more words{' now' * (q % 2)}"
            for q in range(30)
            for d in range(3)
        ]
        (workplace / "log.csv").write_text("\n".join(["session,query,document,rank,click,typed", *lines]) + "\n")
        log = {"log": "log.csv", "text": "typed", "more": {"similar": {"queries": "similar"}}}
        ready = ready_data(parse({"data": {"files": "a.txt", "clicks": log}}))
        return ready, {role: open_queries(name) for role, name in ready.folds[0].roles.items()}

    (workplace / "a.txt").write_text(TEXT)
    ready, before = folds(lambda q, d: d == q % 3)
    assert any("of similar queries in different parts" in finding.text for finding in ready.findings)
    tests = {int(name) for name in before["test"].ids}
    assert any((q ^ 1) not in tests for q in tests), "some test query has its similar one elsewhere"
    _, after = folds(lambda q, d: d == (q + (q in tests)) % 3)
    for role in ("train", "valid"):
        assert np.array_equal(before[role].sources["similar"], after[role].sources["similar"], equal_nan=True), role
    assert not np.array_equal(before["test"].sources["similar"], after["test"].sources["similar"], equal_nan=True)


RETRIEVED = (
    "".join(f"{q} Q0 {d} 1 {d == f'd{q % 3}'} t\n" for q in range(30) for d in ("d0", "d1", "d2"))
    .replace("True", "1")
    .replace("False", "0")
)
JUDGMENTS = "".join(f"{q} 0 d{d} {(q + d) % 3}\n" for q in range(30) for d in range(3))
LOG = "session,query,document,rank,click\n" + "".join(
    f"s{q},{q},d{d},{d + 1},{int(d == q % 3)}\n" for q in range(30) for d in range(3)
)
TEXT = "".join(f"{(q + d) % 3} qid:{q} 1:{q + d} # docid = d{d}\n" for q in range(30) for d in range(3))


@pytest.mark.parametrize(
    ("name", "section", "reader"),
    [
        ("b.run", {"files": "a.txt", "runs": {"b": "b.run"}}, "tasks.data.prepare.attach_runs"),
        ("log.csv", {"files": "a.txt", "clicks": {"log": "log.csv"}}, "tasks.data.clicks.attach_all"),
        ("log.csv", {"files": "a.txt", "clicks": {"log": "log.csv"}}, "tasks.data.check_log.log_findings"),
        ("j.qrels", {"qrels": "j.qrels", "runs": {"b": "b.run"}}, "tasks.data.pool.read_judgments"),
        ("b.run", {"qrels": "j.qrels", "runs": {"b": "b.run"}}, "tasks.data.pool.read_trec"),
        ("j.qrels", {"files": "a.txt", "calibrate": {"judgments": "j.qrels"}}, "tasks.data.calibrated.read_judgments"),
    ],
)
def test_a_file_that_is_another_one_when_it_is_read_is_kept_under_no_name(workplace, monkeypatch, name, section, reader):
    for file, text in (("b.run", RETRIEVED), ("j.qrels", JUDGMENTS), ("log.csv", LOG), ("a.txt", TEXT)):
        (workplace / file).write_text(text)
    right, (module, _, function) = (workplace / name).read_bytes(), reader.rpartition(".")
    read = getattr(importlib.import_module(module), function)

    def later(*given, **named):
        (workplace / name).write_bytes(right.replace(b"1", b"0"))
        return read(*given, **named)

    config = parse({"data": section})
    monkeypatch.setattr(reader, later)
    with pytest.raises(DataError, match=f"{name}: the file was changed while it was read; run the same command again"):
        ready_data(config)
    monkeypatch.undo()
    monkeypatch.chdir(workplace)
    (workplace / name).write_bytes(right)
    found = [open_queries(fold.test).labels for fold in ready_data(config).folds]
    shutil.rmtree(".lambdaflow")
    assert np.array_equal(found, [open_queries(fold.test).labels for fold in ready_data(config).folds], equal_nan=True)
