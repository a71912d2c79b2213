"""What the page's script is given: values as they are stored, rankings as models order them, and no more than fits."""

import html
import json
import re
import time
from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import Queries
from tasks.config.reading import parse
from tasks.evidence.significance import standings
from tasks.records import Cell, CellResult, Fold, Trained
from tasks.report.explore import QUERIES, RANKED, TOP, QueryValues, Ranking, explored, most_changed, page_script
from tasks.report.outcome import RunOutcome
from tasks.report.page import Figures, write_report
from tasks.store.cells import CellFolder
from tasks.store.datasets import keep_queries, open_queries
from tasks.store.values import table
from tasks.training.scoring import evaluate
from tests.conftest import make_queries

MEASURES = ("ndcg_10", "map")
CONFIG = parse({"data": {"files": "x"}, "rankers": {"one": {"kind": "least_squares"}, "two": {"kind": "least_squares"}}})


def named(n, seed, prefix):
    """Queries with ids, texts and document ids, each of up to 30 documents, some not judged."""
    made = make_queries(n, seed=seed, largest=30, clicks=False)
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(made.n_documents) < 0.1, np.nan, made.labels)
    ids = np.array([f"{prefix}<{k}>" for k in range(n)], "S")
    documents = np.array([f"d{k}" for k in range(made.n_documents)], "S")
    texts = {"text": np.array([f"what {k}" if k % 2 else "" for k in range(n)])}
    return Queries(
        made.features, labels, made.offsets, ids=ids, documents=documents, attributes=texts, position=np.arange(len(labels))
    )


def with_scores(queries, seed):
    """The same queries with one more feature, and so in another order in the store."""
    more = np.random.default_rng(seed).normal(size=(queries.n_documents, 1)).astype(np.float32)
    return replace(queries, features=np.hstack((more, queries.features)), names=("more", *queries.names))


def cell(name, fold, weights, test):
    key = f"{name}{fold}"
    queries = open_queries(test)
    folder = CellFolder.of(key)
    model = ltr.LeastSquares.of_weights(weights, queries.names)
    ltr.save(model, folder.model)
    values = evaluate(model, queries, MEASURES, ltr.Conventions())
    table(values, queries, "test").write_parquet(folder.values)
    curve = {"measure": "ndcg_10", "iteration": [1, 2, 3], "train": [0.1, None, 0.3], "valid": [None, 0.25, 0.26]}
    folder.curve.write_text(json.dumps(curve))
    point = {"l2": 0.1 * fold, "loss": "a<b"}
    metrics = {f"valid_{m}": 0.5 - 0.1 * (name == "two") for m in MEASURES}
    return Trained(Cell(key, name, fold, point, {}, Fold("", "", test), MEASURES, {}), CellResult(key, key, metrics, 1.0))


@pytest.fixture
def outcome(workplace):
    """Two rankers on two folds, the second with a feature more."""
    tests = [named(9, 1, "q"), named(7, 2, "r")]
    folds = tuple(Fold("", "", keep_queries(one)) for one in tests)
    cells = [cell("one", k, {"f1": 1.0}, fold.test) for k, fold in enumerate(folds)]
    cells += [cell("two", k, {"f1": 1.0, "more": 0.7}, keep_queries(with_scores(one, k))) for k, one in enumerate(tests)]
    files = {name: [str(CellFolder.of(f"{name}{k}").values) for k in range(2)] for name in ("one", "two")}
    return RunOutcome(CONFIG, "id", folds, (), tuple(cells), tuple(cells), standings.fn(files, MEASURES))


def test_values_and_rankings_are_those_of_the_models(outcome):
    found = explored(outcome)
    told = json.loads(found.json())
    assert told["rankers"] == ["one", "two"]
    assert (told["measures"][told["measure"]]["title"], told["best"]) == ("NDCG@10", 0)
    names = told["queries"]["names"]
    assert (
        sorted(names)
        == names
        == [f"q<{k}> · what {k}" if k % 2 else f"q<{k}>" for k in range(9)]
        + [f"r<{k}> · what {k}" if k % 2 else f"r<{k}>" for k in range(7)]
    )
    for ranking in found.rankings:
        fold = int(ranking.query >= 9)
        assert ranking.name == names[ranking.query]
        for at, trained in enumerate((outcome.cells[fold], outcome.cells[2 + fold])):
            queries = open_queries(trained.cell.data.test)
            k = queries.ids.tolist().index(ranking.name.split(" ")[0].encode())
            rows = slice(*queries.offsets[k : k + 2])
            model = ltr.load(CellFolder.of(trained.result.key).model)
            order = np.argsort(-model.predict(queries.features[rows]), kind="stable")
            documents = [queries.documents[rows][row].decode() for row in order]
            assert [ranking.documents[one] for one in ranking.top(at)] == documents[:TOP]
            assert [documents[rank - 1] for rank in ranking.ranks[at]] == list(ranking.documents)
            labels = {queries.documents[row].decode(): queries.labels[row] for row in range(rows.start, rows.stop)}
            assert all(
                np.isnan(labels[d]) if v is None else labels[d] == v for d, v in zip(ranking.documents, ranking.labels, strict=True)
            )
            stored = ltr.evaluate(
                queries.labels[rows], model.predict(queries.features[rows]), [0, rows.stop - rows.start], ["ndcg_10"],
                ltr.Conventions(),
            )["ndcg_10"][0]  # fmt: skip
            value = told["queries"]["values"][at][0][ranking.query]
            assert value == (None if np.isnan(stored) else pytest.approx(stored, abs=6e-5))


def test_what_the_best_ranker_loses_is_told_with_documents(outcome):
    (lost,) = explored(outcome).lost()
    values = json.loads(explored(outcome).json())["queries"]["values"]
    worse = [k for k in range(16) if None not in (a := values[0][0][k], b := values[1][0][k]) and a < b]
    assert lost.text == f"Where one is worse than two by NDCG@10: {len(worse)} of 16 queries"
    shown = [(ranking.query, own, theirs) for ranking, own, theirs in lost.rankings]
    assert {k for k, _, _ in shown} <= set(worse)
    differences = [own - theirs for _, own, theirs in shown]
    assert differences == sorted(differences)
    assert shown[0][0] == min(worse, key=lambda k: values[0][0][k] - values[1][0][k])


def test_cells_curves_and_settings(outcome):
    told = json.loads(explored(outcome).json())
    assert [cell["chosen"] for cell in told["cells"]] == [True] * 4
    same = replace(outcome.cells[0], cell=replace(outcome.cells[0].cell, ranker="two", label="two, as one has it"))
    beside = json.loads(explored(replace(outcome, cells=(*outcome.cells, same))).json())
    assert [cell["chosen"] for cell in beside["cells"]] == [True] * 4 + [False], "another ranker chose it"
    failed = replace(outcome.cells[0], cell=replace(outcome.cells[0].cell, ranker="failed"))
    with_failed = json.loads(explored(replace(outcome, cells=(failed, *outcome.cells))).json())
    assert [cell["row"] for cell in with_failed["cells"]] == [1, 2, 3, 4], "places in the table of the page"
    assert [curve["cell"] for curve in with_failed["curves"]] == [0, 1, 2, 3], "places among the cells here"
    assert told["cells"][1]["point"] == {"l2": 0.1, "loss": "a<b"}
    assert told["cells"][2]["valid"] == [0.4, 0.4]
    assert told["cells"][2]["test"] == [None, None]
    CellFolder.of("two1").curve.write_text('{"measure": null, "iteration": [], "train": [], "valid": []}')
    assert [curve["cell"] for curve in json.loads(explored(outcome).json())["curves"]] == [0, 1, 2]
    assert told["curves"][0] == {"cell": 0, "measure": "NDCG@10", "train": [[1, 0.1], [3, 0.3]], "valid": [[2, 0.25], [3, 0.26]]}


def test_whole_numbers_that_a_browser_would_round_keep_their_digits(outcome):
    point = {"seed": 2**53 + 1, "other": 2**53, "third": -(2**60) - 1}
    first = outcome.cells[0]
    seen = replace(outcome, cells=(replace(first, cell=replace(first.cell, point=point)), *outcome.cells[1:]))
    told = json.loads(explored(seen).json())
    assert told["cells"][0]["point"] == {"seed": "9007199254740993", "other": 2**53, "third": "-1152921504606846977"}


def test_nothing_in_the_data_ends_the_element_and_the_same_run_gives_the_same_bytes(outcome):
    first = explored(outcome).json()
    assert "<" not in first
    assert first == explored(outcome).json()
    assert "</script" not in page_script()


def test_the_page_says_it_without_scripts_too(outcome, tmp_path):
    text = write_report.fn(outcome, Figures.of(outcome), tmp_path / "a.html").read_text()
    assert text.count("</script>") == 2
    static = re.sub("<script.*?</script>", "", text, flags=re.S)
    (lost,) = explored(outcome).lost()
    assert f"<summary>{lost.text}</summary>" in static
    ranking, own, theirs = lost.rankings[0]
    assert f"<b>{html.escape(ranking.name)}</b>: one {own:.4f}, two {theirs:.4f}" in static
    table = static[static.index(html.escape(ranking.name)) :]
    rows = re.findall(r"<tr><td>\d+</td>(.*?)</tr>", table[: table.index("</table>")], re.S)
    shown = [re.findall(r">([^<> ]+) <small>label", row) for row in rows]
    assert shown == [[ranking.documents[a], ranking.documents[b]] for a, b in ranking.beside(0, 1)]
    assert static.count("<svg") >= 2, "curves"


def test_without_values_or_models_the_rest_is_there(outcome):
    CellFolder.of("two1").model.joinpath("model.json").unlink()
    CellFolder.of("two1").model.joinpath("model.npz").unlink()
    CellFolder.of("two1").model.rmdir()
    found = explored(outcome)
    assert found.rankings == ()
    assert [lost.rankings for lost in found.lost()] == [()]
    assert len(json.loads(found.json())["queries"]["names"]) == 16
    CellFolder.of("one0").values.unlink()
    told = json.loads(explored(outcome).json())
    assert told["queries"] is None
    assert len(told["cells"]) == 4


def test_the_queries_of_many_pairs_are_found_in_time():
    """1,770 pairs of 60 rankers on 20,000 queries took 53 processor seconds, as each sorted all queries."""
    values = np.random.default_rng(0).random((60, 1, 20_000))
    taken = QueryValues(tuple(f"r{k}" for k in range(60)), ("ndcg_10",), tuple(map(str, range(20_000))), values)
    began = time.process_time()
    assert len(most_changed(taken, "ndcg_10", "r0")) == RANKED
    assert time.process_time() - began < 15


def test_every_pair_has_its_most_changed_queries_and_the_best_ranker_its_own_first():
    n = 300
    values = np.random.default_rng(0).random((4, 1, n))
    taken = QueryValues(("a", "b", "c", "best"), ("ndcg_10",), tuple(map(str, range(n))), values)
    found = most_changed(taken, "ndcg_10", "best")
    assert len(found) == len(set(found)) == RANKED
    for other in range(3):
        for sign in (1, -1):
            assert int(np.argmax(sign * (values[other, 0] - values[3, 0]))) in found[:6]


def test_a_side_by_side_has_as_many_ranks_as_documents():
    short = Ranking(0, "q", ("x", "y"), (None, 2.0), ((1, 2), (2, 1)))
    assert short.beside(0, 1) == [(0, 1), (1, 0)]
    assert [short.shown_label(k) for k in range(2)] == ["–", "2"]
    assert [short.share(k) for k in range(2)] == [0.0, 1.0]


def test_a_hundred_cells_and_thirty_thousand_queries_fit(outcome):
    """Names and values of queries are thinned evenly, and those with documents stay."""
    found = explored(outcome)
    n, curve = 30_000, CellFolder.of("one0").curve
    points = {"measure": "ndcg_10", "iteration": list(range(5000)), "train": [0.12345] * 5000, "valid": [0.54321] * 5000}
    curve.write_text(json.dumps(points))
    values = np.random.default_rng(0).random((2, 2, n))
    many = replace(found.values, names=tuple(f"{k} {'問' * 50}" for k in range(n)), values=values)
    written = replace(found, outcome=replace(outcome, cells=outcome.cells[:1] * 100), values=many).json()
    assert len(written.encode()) < 1_500_000
    told = json.loads(written)
    queries = told["queries"]
    assert queries["n"] == n
    assert {ranking.query for ranking in found.rankings} <= set(queries["at"])
    assert len(queries["at"]) == len(queries["names"]) == len(queries["values"][1][1]) <= QUERIES + RANKED
    even = set(np.linspace(0, n - 1, QUERIES).astype(int).tolist())
    assert set(queries["at"]) - set(queries["beside"]) == even, "what is counted"
    assert not set(queries["beside"]) & even
    assert queries["values"][1][0] == [round(v, 9) for v in values[1, 0, queries["at"]].tolist()]
    assert len(told["curves"][0]["train"]) == 100
    assert told["curves"][0]["train"][-1] == [4999, 0.1235]
