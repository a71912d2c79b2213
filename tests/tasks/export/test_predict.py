"""Scores of files, part by part, are those of the model on all of it."""

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ltr
from flows.cli import main
from ltr.data.queries import Queries
from tasks.config.data_section import Data
from tasks.data.ingest import ingest, read_for
from tasks.export import predict as module
from tasks.export.predict import predict, trec_run
from tasks.records import DataError
from tasks.store.datasets import open_queries
from tests.conftest import make_queries


@pytest.fixture
def fitted():
    queries = replace(make_queries(40, n_features=3, seed=1), names=("f1", "f2", "f3"))
    return ltr.LambdaMART(n_trees=5, n_leaves=4, min_docs_in_leaf=5).fit(queries), queries


def frame_of(queries: Queries) -> pl.DataFrame:
    of_query = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))
    columns = {name: queries.features[:, k] for k, name in enumerate(queries.names)}
    return pl.DataFrame({"query": [f"q{q}" for q in of_query], "document": [f"d{k}" for k in range(len(of_query))], **columns})


@pytest.mark.parametrize("suffix", ["parquet", "csv", "tsv"])
def test_tables_in_parts_score_as_in_one(workplace, fitted, monkeypatch, suffix):
    model, queries = fitted
    frame = frame_of(queries).select(pl.all().reverse()).select("f3", "document", "f1", "query", "f2")
    if suffix == "parquet":
        frame.write_parquet("a.parquet")
    else:
        frame.write_csv(f"a.{suffix}", separator="\t" if suffix == "tsv" else ",")
    monkeypatch.setattr(module, "ROWS", 7)
    assert predict(model, workplace / f"a.{suffix}", workplace / f"s.{suffix}", Data(files=["a"])).rows == queries.n_documents
    reader = {"parquet": pl.read_parquet, "csv": pl.read_csv, "tsv": lambda path: pl.read_csv(path, separator="\t")}[suffix]
    scores = reader(workplace / f"s.{suffix}")
    assert scores.columns == ["query", "document", "score"]
    assert np.array_equal(scores["score"].to_numpy(), model.predict(queries.features)[::-1])
    assert scores["document"].to_list() == frame["document"].to_list()


def test_text_in_parts_and_a_trec_run(workplace, fitted, monkeypatch):
    model, queries = fitted
    lines = [
        f'0 qid:{q} 1:{a:.9g} 2:{b:.9g} 3:{c:.9g} # docid = d{k}"'
        for k, (q, (a, b, c)) in enumerate(
            zip(np.repeat(np.arange(40), np.diff(queries.offsets)), queries.features.tolist(), strict=True)
        )
    ]
    (workplace / "a.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(module, "BYTES", 500)
    ltr.save(model, workplace / "m")
    assert main(["predict", "--model", "m", "--data", "a.txt", "-o", "run.trec"]) == 0
    run = [line.split() for line in (workplace / "run.trec").read_text().splitlines()]
    assert {len(line) for line in run} == {6}
    scores = dict(zip([f'd{k}"' for k in range(queries.n_documents)], model.predict(queries.features), strict=True))
    assert {line[2]: float(line[4]) for line in run} == scores, "an id is written as it is, quotes and all"
    for query in {line[0] for line in run}:
        own = [line for line in run if line[0] == query]
        assert [int(line[3]) for line in own] == list(range(1, len(own) + 1))
        assert [float(line[4]) for line in own] == sorted((float(line[4]) for line in own), reverse=True)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_is_at_no_rank_has_no_score_and_is_in_no_run(workplace, suffix):
    queries = make_queries(8, n_features=2, seed=3)
    queries.features[::3, 0] = np.nan
    frame = frame_of(queries)
    model = ltr.Column("f1").fit(queries)
    frame.fill_nan(None).write_csv("a.csv")
    for output in (f"scores.{suffix}", "run.trec"):
        assert predict(model, Path("a.csv"), Path(output), Data(files="a.csv")).rows == queries.n_documents
    scores = (pl.read_csv if suffix == "csv" else pl.read_parquet)(f"scores.{suffix}")["score"]
    assert scores.is_null().to_list() == np.isnan(queries.features[:, 0]).tolist()
    run = [line.split()[2] for line in Path("run.trec").read_text().splitlines()]
    assert sorted(run) == sorted(frame.filter(scores.is_not_null())["document"].to_list())


def test_what_is_no_number_is_not_to_be_left_out_where_a_model_reads_it(workplace, fitted):
    model, queries = fitted
    frame = frame_of(queries).with_columns(f2=pl.lit("n/a"))
    frame.write_csv("a.csv")
    with pytest.raises(DataError) as refused:
        predict(model, workplace / "a.csv", workplace / "s.csv", Data(files=["a"]))
    assert str(refused.value).endswith(
        "row 1: column 'f2' has 'n/a': labels and features must be numbers (the model reads numbers here; an empty cell is a missing one)"
    )


def test_a_model_on_named_features_reads_text_with_the_same_names(workplace, capsys):
    lines = [f"{k % 2} qid:{k // 5} 1:{k % 7} 2:{k % 3} 3:{k % 2}\n" for k in range(60)]
    (workplace / "a.txt").write_text("".join(lines))
    (workplace / "names.txt").write_text("age\nbm25\nclicks\n")
    named = ["--set", "names=names.txt"]
    queries = make_queries(20, n_features=3)
    model = ltr.LeastSquares().fit(replace(queries, names=("clicks", "age", "bm25")))
    ltr.save(model, workplace / "m")
    assert main(["predict", "--model", "m", "--data", "a.txt", "-o", "s.csv"]) == 1
    assert "the model reads 'clicks' (data.names: FILE gives other names)" in capsys.readouterr().err
    assert main(["evaluate", "--model", "m", "--data", "a.txt"]) == 1
    assert "which the model reads; there are: f1, f2, f3; data.names: FILE gives other names" in capsys.readouterr().err
    assert main(["predict", "--model", "m", "--data", "a.txt", "-o", "s.csv", *named]) == 0
    rows = np.array([[k % 2, k % 7, k % 3] for k in range(60)], np.float32)
    assert pl.read_csv("s.csv")["score"].to_numpy() == pytest.approx(model.predict(rows))
    assert main(["evaluate", "--model", "m", "--data", "a.txt", "--measure", "map:binary", *named, "--set", "binarise=1"]) == 0


def test_values_that_are_no_known_category_are_told(workplace, fitted, monkeypatch, capsys):
    model, queries = fitted
    monkeypatch.setattr(module, "ROWS", 7)
    frame = frame_of(queries).with_columns(
        f2=pl.when(pl.int_range(pl.len()) % 10 == 3).then(pl.lit("LATAM")).otherwise(pl.lit("0"))
    )
    frame.write_csv("a.csv")
    done = predict(model, workplace / "a.csv", workplace / "s.csv", Data(files=["a"], categories={"f2": ["0", "1"]}))
    strange = (frame["f2"] == "LATAM").sum()
    told = f"a.csv: {strange} rows of {frame.height} with a 'f2' that is not a known category, such as 'LATAM': read as missing"
    assert (strange > 1, done.notes) == (True, (told,))
    ltr.save(model, workplace / "m")
    assert main(["predict", "--model", "m", "--data", "a.csv", "-o", "t.csv", "--set", "categories={f2: ['0', '1']}"]) == 0
    assert told in capsys.readouterr().err


def test_scores_of_runs_are_features_by_query_and_document(workplace, fitted, monkeypatch):
    model, queries = fitted
    frame = frame_of(queries)
    kept = frame.filter(pl.int_range(pl.len()) % 3 != 0)
    lines = [f"{q} Q0 {d} 0 {score!r} r" for q, d, score in kept.select("query", "document", "f2").rows()]
    (workplace / "r.trec").write_text("\n".join(reversed(lines)))
    frame.drop("f2").write_parquet("a.parquet")
    monkeypatch.setattr(module, "ROWS", 7)
    data = Data(files=["a"], runs={"f2": [workplace / "r.trec"], "unread": [workplace / "r.trec"]})
    predict(model, workplace / "a.parquet", workplace / "s.parquet", data)
    features = queries.features.copy()
    features[::3, 1] = np.nan
    assert np.array_equal(pl.read_parquet("s.parquet")["score"].to_numpy(), model.predict(features))
    with pytest.raises(DataError, match=r"r\.trec: this is r\.trec itself, which would be overwritten"):
        predict(model, Path("a.parquet"), Path("r.trec"), Data(files=["a"], runs={"f2": [Path("r.trec")]}))
    frame.drop("f2", "document").write_parquet("anonymous.parquet")
    frame.drop("f2").with_columns(document=pl.lit("x")).write_parquet("others.parquet")
    frame.write_parquet("twice.parquet")
    frame.drop("f2").head(0).write_parquet("empty.parquet")
    for name, says in (
        ("anonymous", "joined by query and document id"),
        ("others", "no document of run 'f2' is in it"),
        ("twice", "the data have a feature 'f2'; rename the run"),
        ("empty", "no rows"),
    ):
        with pytest.raises(DataError, match=says):
            predict(model, workplace / f"{name}.parquet", workplace / f"{name}.csv", data)
        assert not (workplace / f"{name}.csv").exists()


def test_what_is_wrong_is_said_and_nothing_written(workplace, fitted, monkeypatch):
    model, queries = fitted
    frame = frame_of(queries)
    frame.rename({"f2": "f_2"}).write_parquet("renamed.parquet")
    frame.with_columns(f1=pl.when(pl.int_range(pl.len()) == 9).then(pl.lit("x")).otherwise(pl.lit("1"))).write_csv("text.csv")
    frame.drop("document").write_parquet("anonymous.parquet")
    frame.with_columns(query=pl.lit("q0"), document=pl.lit("d3")).write_parquet("twice.parquet")
    frame.with_columns(query=pl.col("query").str.replace("q", "q ")).sort("query").write_parquet("spaced.parquet")
    frame.with_columns(f1=pl.lit(float("inf"))).write_parquet("infinite.parquet")
    lines = frame.with_columns(title=pl.lit("")).write_csv().split("\n")
    for name, line in (("short.csv", lines[9][:8]), ("long.csv", f"a,{lines[9]}"), ("blank.csv", "")):
        (workplace / name).write_text("\n".join([*lines[:9], line, *lines[10:]]))
    (workplace / "bad.txt").write_text("0 qid:1 1:2\n" * 60 + "0 qid:1 1:x\n")
    monkeypatch.setattr(module, "ROWS", 4)
    monkeypatch.setattr(module, "BYTES", 100)
    (workplace / "s.dir.csv").mkdir()
    (workplace / "a.csv.gz").write_bytes(gzip.compress(b"x"))
    from_0 = replace(model, names=("f0", "f1", "f2"))
    named = replace(model, names=("slope", "f2", "f3"))
    for one, data, output, says in (
        (model, "renamed.parquet", "s.parquet", r"the model's feature 'f2' is not a column; did you mean f_2.*1 of 3 are missing"),
        (model, "text.csv", "s.csv", "text.csv, row 10: column 'f1' has 'x'"),
        (model, "short.csv", "s.csv", r"short.csv, line 10: \d fields?; the header has 6"),
        (model, "long.csv", "s.csv", "long.csv, line 10: 7 fields; the header has 6"),
        (model, "blank.csv", "s.csv", "blank.csv, line 10: the line is empty"),
        (model, "anonymous.parquet", "s.trec", "there is no document id here"),
        (model, "spaced.parquet", "s.trec", "separated by spaces, and the query id 'q 0' has one"),
        (
            model,
            "twice.parquet",
            "s.trec",
            "a TREC run names each document once, and document 'd3' of query 'q0' is in several rows",
        ),
        (model, "infinite.parquet", "s.csv", "infinite"),
        (model, "bad.txt", "s.csv", "bad.txt, line 61"),
        (named, "bad.txt", "s.csv", "text has the features f1, f2, …, and the model reads 'slope'"),
        (from_0, "a.csv.gz", "s.csv", "a.csv.gz: compressed with gzip; unpack it first"),
        (model, "text.csv", "s.dir.csv", "s.dir.csv: this is a folder; name a file in it"),
        (model, "text.csv", "s.json", "scores can be written as .parquet, .csv, .tsv, .trec"),
    ):
        with pytest.raises(DataError, match=says):
            predict(one, workplace / data, workplace / output, Data(files=["a"]))
    assert not [path for path in workplace.iterdir() if path.name.startswith("s.") and path.is_file()]


def test_scores_are_not_written_over_the_model(workplace, fitted, capsys):
    frame_of(fitted[1]).write_parquet("a.parquet")
    (workplace / "w.csv").write_text("f1,1\nf2,0.5\n")
    assert main(["predict", "--model", "w.csv", "--data", "a.parquet", "-o", "w.csv"]) == 1
    assert "w.csv: this is w.csv itself, which would be overwritten" in capsys.readouterr().err
    assert (workplace / "w.csv").read_text() == "f1,1\nf2,0.5\n"


KINDS = {
    "ridge": ltr.LeastSquares(),
    "ranksvm": ltr.RankSVM(),
    "svmmap": ltr.SVMmap(),
    "adarank": ltr.AdaRank(),
    "listwise": ltr.Listwise(iterations=3),
    "net": ltr.LambdaRank(epochs=2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_document_without_a_score_is_named_and_nothing_written(workplace, kind):
    queries = replace(make_queries(40, n_features=3, seed=1), names=("a", "b", "c"))
    model = KINDS[kind].fit(queries)
    frame = frame_of(queries).with_columns(b=pl.when(pl.int_range(pl.len()) == 11).then(float("nan")).otherwise(pl.col("b")))
    if kind == "net":
        frame = frame.with_columns(b=pl.col("b").fill_nan(float("inf")))
    frame.write_parquet("a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet, row 12: feature 'b' is (missing|inf), and \w+ has no score for that"):
        predict(model, workplace / "a.parquet", workplace / "s.csv", Data(files=["a"]))
    assert not (workplace / "s.csv").exists()


def test_text_from_feature_0_is_read_so_again(workplace, fitted):
    _, queries = fitted
    queries = replace(queries, names=("f0", "f1", "f2"))
    model = ltr.LeastSquares().fit(queries)
    lines = [f"0 qid:1 0:{a:.9g} 1:{b:.9g} 2:{c:.9g}" for a, b, c in queries.features.tolist()]
    (workplace / "a.txt").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match="the model's features start at f0, the text's at f1"):
        predict(model, workplace / "a.txt", workplace / "s.csv", Data(files=["a"]))
    assert predict(model, workplace / "a.txt", workplace / "s.csv", Data(files=["a"], first_feature=0)).rows == queries.n_documents
    assert pl.read_csv("s.csv")["score"].to_numpy() == pytest.approx(model.predict(queries.features))
    (workplace / "b.txt").write_text("\n".join(lines).replace(" 2:", " 3:").replace(" 1:", " 2:").replace(" 0:", " 1:") + "\n")
    with pytest.raises(
        DataError,
        match=r"b\.txt: no line has feature 0, there is a feature 3, and the model reads f0 to f2: this text seems to number features",
    ):
        predict(model, workplace / "b.txt", workplace / "t.csv", Data(files=["b"], first_feature=0))
    assert not (workplace / "t.csv").exists()
    read = ingest.fn([workplace / "b.txt"], Data(files=["b"], first_feature=0))
    with pytest.raises(DataError, match="number features from 1, and the model's from 0"):
        read_for(model.names, open_queries(read.data), [workplace / "b.txt"])
    model = ltr.LeastSquares().fit(replace(queries, names=("f1", "f2", "f3")))
    with pytest.raises(
        DataError,
        match=r"a\.txt: there is a feature 0, which the model does not read, and no feature 3, which it does: this text seems to number features",
    ):
        predict(model, workplace / "a.txt", workplace / "t.csv", Data(files=["a"], first_feature=0))
    assert not (workplace / "t.csv").exists()
    read = ingest.fn([workplace / "a.txt"], Data(files=["a"], first_feature=0))
    with pytest.raises(DataError, match="number features from 0, and the model's from 1"):
        read_for(model.names, open_queries(read.data), [workplace / "a.txt"])


def test_a_block_without_ids_and_a_mark_of_byte_order(workplace, fitted, monkeypatch):
    model, _ = fitted
    lines = [f"0 qid:1 1:{k} # docid = d{k}" for k in range(50)] + ["0 qid:1 1:3"]
    (workplace / "a.txt").write_bytes(b"\xef\xbb\xbf" + "\n".join(lines).encode())
    monkeypatch.setattr(module, "BYTES", 200)
    assert predict(model, workplace / "a.txt", workplace / "s.csv", Data(files=["a"])).rows == 51
    assert pl.read_csv("s.csv").columns == ["query", "score"]


def test_a_table_without_ids_has_scores_alone(workplace, fitted):
    model, queries = fitted
    frame_of(queries).drop("query", "document").write_csv("a.csv")
    done = predict(model, Path("a.csv"), workplace / "s.csv", Data(files=["a"]))
    said = "a.csv: no column 'query', so scores are written without query ids; --set query=NAME names the column"
    assert (done.rows, done.notes) == (queries.n_documents, (said,))
    scores = pl.read_csv("s.csv")
    assert scores.columns == ["score"]
    assert np.array_equal(scores["score"].to_numpy(), model.predict(queries.features))
    with pytest.raises(DataError, match="there is no query id here"):
        predict(model, workplace / "a.csv", workplace / "s.trec", Data(files=["a"]))


def test_a_text_without_ids_has_scores_alone(workplace, fitted):
    model, _ = fitted
    (workplace / "a.txt").write_text("0 1:1 2:2 3:3\n1 1:0 3:1\n")
    assert predict(model, workplace / "a.txt", workplace / "s.csv", Data(files=["a"])).rows == 2
    assert pl.read_csv("s.csv").columns == ["score"]


def test_an_infinite_feature_is_named_by_its_row_of_the_file(workplace, fitted, monkeypatch):
    model, queries = fitted
    wrong = frame_of(queries).with_columns(f2=pl.when(pl.int_range(pl.len()) == 9).then(float("-inf")).otherwise("f2"))
    wrong.write_parquet("a.parquet")
    monkeypatch.setattr(module, "ROWS", 4)
    with pytest.raises(
        DataError, match=r"a\.parquet, row 10: feature 'f2' is infinite \(-inf\), or beyond 3\.4e38 \(float32\); trees"
    ):
        predict(model, workplace / "a.parquet", workplace / "s.csv", Data(files=["a"]))
    assert not Path("s.csv").exists()


def test_a_feature_beyond_float32_is_named_without_numpys_warning(workplace, fitted, recwarn):
    model, queries = fitted
    frame_of(queries).with_columns(f2=pl.lit(1e39)).write_csv("a.csv")
    with pytest.raises(DataError, match=r"a\.csv, row 1: feature 'f2' is infinite \(inf\), or beyond 3\.4e38"):
        predict(model, workplace / "a.csv", workplace / "s.csv", Data(files=["a"]))
    assert not recwarn


@pytest.mark.parametrize("kind", ["query", "group"])
def test_queries_of_a_text_by_their_sizes(workplace, fitted, kind, monkeypatch):
    monkeypatch.setattr("tasks.export.predict.BYTES", 20)
    Path("d.txt").write_text("".join(f"0 1:{k} 2:1 3:2 # docid = D{k}\n" for k in range(5)))
    sizes = Path(f"d.txt.{kind}")
    sizes.write_text("2\n3\n")
    predict(fitted[0], Path("d.txt"), Path("o.csv"), Data(files=["d.txt"]))
    written = pl.read_csv("o.csv")
    assert written["query"].to_list() == ["d.txt:1"] * 2 + ["d.txt:2"] * 3
    predict(fitted[0], Path("d.txt"), Path("o.trec"), Data(files=["d.txt"]))
    assert len(Path("o.trec").read_text().splitlines()) == 5
    for wrong, said in (
        ("2\n", "sizes sum to 2, and d.txt has more documents"),
        ("2\n4\n", "sizes sum to 6, but d.txt has 5 documents"),
    ):
        sizes.write_text(wrong)
        with pytest.raises(DataError, match=rf"d.txt.{kind}: the {said}"):
            predict(fitted[0], Path("d.txt"), Path("o2.csv"), Data(files=["d.txt"]))
        assert not Path("o2.csv").exists()


def test_a_model_without_names_reads_a_text_by_place(workplace, capsys):
    """As evaluate does: XGBoost counts the features of a text from 0, whatever its lines begin with."""
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    features = np.column_stack((np.zeros(400), rng.normal(size=(400, 4)).round(3)))
    labels = (features[:, 1] > 0) * 1 + (features[:, 2] > 0)
    data = xgboost.DMatrix(features, labels, qid=np.repeat(np.arange(20), 20))
    booster = xgboost.train({"objective": "rank:ndcg", "nthread": 1, "max_depth": 3}, data, 5)
    booster.save_model("m.json")
    lines = [
        f"{labels[k]} qid:{k // 20 + 1} " + " ".join(f"{j}:{features[k, j]:g}" for j in range(1, 5)) + f" # docid = d{k}"
        for k in range(400)
    ]
    Path("d.txt").write_text("\n".join(lines))
    assert main(["predict", "--model", "m.json", "--data", "d.txt", "-o", "o.csv"]) == 1
    assert "the model names no features and has 5 of them; the data have 4" in capsys.readouterr().err
    assert not Path("o.csv").exists()
    assert main(["predict", "--model", "m.json", "--data", "d.txt", "-o", "o.csv", "--set", "first_feature=0"]) == 0
    theirs = booster.predict(data, output_margin=True)
    assert np.abs(pl.read_csv("o.csv")["score"].to_numpy() - theirs).max() < 1e-5


def test_equal_scores_of_a_run_stay_as_they_stand():
    """Equal scores as they stand."""
    scores = pl.DataFrame({"query": ["q", "q", "q"], "document": ["b", "a", "c"], "score": [1.0, 1.0, 2.0]})
    assert trec_run(scores, Path("x"))["document"].to_list() == ["c", "b", "a"]


@pytest.mark.parametrize("kind", ["query", "document"])
def test_an_empty_id_is_named_by_its_row_of_the_file(workplace, fitted, monkeypatch, kind):
    model, queries = fitted
    frame_of(queries).with_columns(
        pl.when(pl.int_range(pl.len()) == 9).then(pl.lit("")).otherwise(pl.col(kind)).alias(kind)
    ).write_parquet("a.parquet")
    monkeypatch.setattr(module, "ROWS", 4)
    with pytest.raises(DataError, match=rf"a\.parquet, row 10: column '{kind}' is empty: every row must name its {kind}"):
        predict(model, workplace / "a.parquet", workplace / "s.csv", Data(files=["a"]))
    assert not Path("s.csv").exists()
