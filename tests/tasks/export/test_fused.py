"""A fused run: each query by the model of the fold that has not seen it, the others by all of them."""

import numpy as np
import polars as pl
import pytest

import ltr
from tasks.export.fused import retrieved, write_fused
from tasks.records import Cell, CellResult, DataError, Fold, Trained
from tasks.store.cells import CellFolder
from tasks.store.datasets import keep_queries
from tasks.store.seal import digest_of_file

NAMES = ("rank of a", "rank of b", "borda of a", "borda of b")


def kept(query):
    features = np.array([[1, 2, 1, 0.5], [2, 1, 0.5, 1]], np.float32)
    return keep_queries(ltr.Queries(features, np.array([1.0, 0.0]), np.array([0, 2]), names=NAMES, ids=np.array([query.encode()])))


@pytest.fixture
def folds(workplace):
    """Two folds: the first's model trusts the run a, the second's the run b."""
    chosen = []
    for k, (query, weights) in enumerate((("q1", [1.0, 0.0]), ("q2", [0.0, 1.0]))):
        model = ltr.WeightedFusion(form="borda", weights=np.array(weights), names=NAMES)
        ltr.save(model, CellFolder.of(f"key{k}").model)
        fold = Fold("", "", kept(query))
        chosen.append(Trained(Cell("w", "w", k, {}, {}, fold, (), {}), CellResult(f"key{k}", model.digest, {}, 0.0)))
    for name, best in (("a", "x"), ("b", "y")):
        lines = [f"{q} Q0 {d} 0 {2 if d == best else 1} t\n" for q in ("q1", "q2", "q3") for d in "xy"]
        (workplace / name).write_text("".join(lines) + f"q3 Q0 only-{name} 0 0.5 t\n")
    return chosen


def test_a_query_is_ranked_by_the_model_that_has_not_seen_it(folds, workplace):
    runs = {"a": [workplace / "a"], "b": [workplace / "b"]}
    assert write_fused(folds, runs, workplace / "out.run") == 3
    rows = [line.split() for line in (workplace / "out.run").read_text().splitlines()]
    ranked = {q: [row[2] for row in rows if row[0] == q] for q in ("q1", "q2", "q3")}
    assert (ranked["q1"], ranked["q2"]) == (["x", "y"], ["y", "x"])
    for query in ("q1", "q2"):
        assert [float(row[4]) for row in rows if row[0] == query] == [1.0, 0.5], "of one model, not of both"
    assert set(ranked["q3"]) == {"x", "y", "only-a", "only-b"}
    scores = {row[2]: float(row[4]) for row in rows if row[0] == "q3"}
    assert scores == pytest.approx({"x": (1 + 2 / 3) / 2, "y": (1 + 2 / 3) / 2, "only-a": 1 / 6, "only-b": 1 / 6})
    assert pl.Series([row[3] for row in rows]).to_list() == ["1", "2", "1", "2", "1", "2", "3", "4"]


def test_an_id_with_quotes_is_written_as_it_is(folds, workplace):
    for name in ("a", "b"):
        (workplace / name).write_text('"q" Q0 12"-vinyl 1 2 t\n"q" Q0 "x" 2 1 t\n')
    write_fused(folds, {"a": [workplace / "a"], "b": [workplace / "b"]}, workplace / "out.run")
    rows = [line.split()[:3] for line in (workplace / "out.run").read_text().splitlines()]
    assert rows == [['"q"', "Q0", '12"-vinyl'], ['"q"', "Q0", '"x"']]


def test_a_run_is_not_written_over(folds, workplace):
    with pytest.raises(DataError, match="a"):
        write_fused(folds, {"a": [workplace / "a"], "b": [workplace / "b"]}, workplace / "a")


def test_what_is_written_is_of_the_lists_that_were_measured(folds, workplace):
    """A run that was replaced while `fuse` trained was fused and written, below a table of the one before."""
    runs = {"a": [workplace / "a"], "b": [workplace / "b"]}
    digests = {path: digest_of_file(path) for (path,) in runs.values()}
    assert write_fused(folds, runs, workplace / "out.run", digests=digests) == 3
    before = (workplace / "out.run").read_text()
    (workplace / "a").write_text((workplace / "b").read_text())
    with pytest.raises(DataError, match="a: the file was changed while it was read; run the same command again"):
        write_fused(folds, runs, workplace / "out.run", digests=digests)
    assert (workplace / "out.run").read_text() == before


def test_what_is_known_of_queries_is_a_feature_of_all_their_documents(workplace):
    lists = {
        name: pl.DataFrame({"query": ["1", "1", "2"], "document": ["x", "y", "x"], "score": [2.0, 1.0, 1.0], "rank": [1, 2, 1]})
        for name in "ab"
    }
    about = pl.DataFrame({"query": ["1"], "words": [3.0]})
    table = retrieved(lists, ("rank of a", "words"), about)
    assert table.sort("query", "document").rows() == [("1", "x", 1.0, 3.0), ("1", "y", 2.0, 3.0), ("2", "x", 1.0, None)]


def test_documents_that_a_row_has_not_are_not_written(workplace):
    """Those of other runs are at no rank of the row that is written, as in the table."""
    lines = {"a": ["q Q0 x 0 2 t\n", "q Q0 y 0 1 t\n"], "b": ["q Q0 y 0 2 t\n", "q Q0 z 0 1 t\n"], "c": ["q Q0 u 0 1 t\n"]}
    for name, own in lines.items():
        (workplace / name).write_text("".join(own))
    runs = {name: [workplace / name] for name in lines}
    names = tuple(f"rank of {name}" for name in lines)
    alone = ltr.Column("rank of a", descending=False)
    for model, expected in ((alone, ["x", "y"]), (ltr.Fusion(runs=("a", "b")), ["y", "x", "z"])):
        features = np.ones((2, 3), np.float32)
        queries = ltr.Queries(features, np.array([1.0, 0.0]), np.array([0, 2]), names=names, ids=np.array([b"q"]))
        fitted = model.fit(queries)
        ltr.save(fitted, CellFolder.of("one").model)
        fold = Fold("", "", keep_queries(queries))
        chosen = Trained(Cell("w", "w", 0, {}, {}, fold, (), {}), CellResult("one", fitted.digest, {}, 0.0))
        assert write_fused([chosen], runs, workplace / "out.run") == 1
        assert [line.split()[2] for line in (workplace / "out.run").read_text().splitlines()] == expected
