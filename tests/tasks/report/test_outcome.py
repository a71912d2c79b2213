"""What came of a run: means over folds, one digest for the models of several, and the shapes of objectives."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tasks.config.reading import from_stored, from_yaml, parse
from tasks.evidence.significance import Standings
from tasks.records import Cell, CellResult, Fold, Trained
from tasks.report.outcome import RunOutcome, objective_shapes
from tasks.store.cells import CellFolder
from tasks.store.datasets import keep_queries, open_queries
from tasks.store.state import digest_of
from tasks.store.values import write_values
from tests.conftest import make_queries
from tests.ltr.objectives.test_unbiased import judged, pages

CONFIG = parse(
    {"name": "r", "data": {"files": "x"}, "rankers": {"a": {"kind": "ranksvm"}, "b": {"kind": "least_squares"}}, "select": "map"}
)


@pytest.fixture
def outcome(workplace):
    folds = tuple(Fold(*(keep_queries(make_queries(n, seed=n)) for n in (k + 6, k + 3, k + 4))) for k in range(2))

    def trained(ranker, fold, value, **more):
        result = CellResult(f"{ranker}{fold}", f"d{ranker}{fold}", {"valid_map": value, **more}, 1.0)
        return Trained(Cell(ranker, ranker, fold, {}, {}, folds[fold], (), {}), result)

    chosen = (trained("a", 0, 0.2), trained("a", 1, 0.4, test_err=0.5), trained("b", 0, 0.1), trained("b", 1, 0.2))
    return RunOutcome(CONFIG, "0123456789", folds, (), chosen, chosen, Standings(("map",), {}, ()))


def test_models_of_folds_are_one_summary(outcome):
    models = outcome.models
    assert models["a"].metrics == {"valid_map": pytest.approx(0.3), "test_err": 0.5}
    assert models["a"].digest == digest_of(["da0", "da1"])
    assert outcome.best == "a"
    assert outcome.keys == {"a": ["a0", "a1"], "b": ["b0", "b1"]}
    assert outcome.summary == "Best on validation MAP: a."
    assert not outcome.by_clicks
    assert outcome.facts == [
        "2 folds",
        "training / validation / test queries by fold: 6 / 3 / 4, 7 / 4 / 5",
        "4 cells",
        "run 01234567",
        "models 01234567:a:1 … :2, 01234567:b:1 … :2",
    ]
    assert replace(outcome, folds=outcome.folds[:1], chosen=outcome.chosen[::2]).called == "01234567:a, 01234567:b"
    alone = replace(outcome, folds=outcome.folds[:1], cells=outcome.cells[:1])
    assert alone.facts[:3] == ["1 fold", "6 / 3 / 4 training / validation / test queries", "1 cell"]
    assert outcome.as_json() == {
        "run_id": "0123456789",
        "models": {n: {"digest": m.digest, "metrics": m.metrics} for n, m in models.items()},
        "names": {"a": ["01234567:a:1", "01234567:a:2"], "b": ["01234567:b:1", "01234567:b:2"]},
    }


def test_the_configuration_is_read_back_as_it_was(outcome):
    import yaml

    again = parse(yaml.safe_load(outcome.config_text))
    assert (again.resolved(), again.digest) == (CONFIG.resolved(), CONFIG.digest)


def test_text_that_looks_like_a_number_is_read_back_as_text_by_both_versions_of_yaml(outcome):
    """0018 and 1e5 are text to YAML 1.1 and numbers to 1.2, which configurations are read by; y and 1e-3 differ as well."""
    import yaml

    names = ["08540", "0018", "018.5", "1e5", "+1.5e3", ".5e3", "0o17", "-_", "y", "no", "1_000", "12:30", "a.com", "01234"]
    data = {"files": "x", "categorical": ["zip"], "categories": {"zip": names}}
    rankers = {"1e5": {"kind": "lambdamart", "learning_rate": 1e-05, "n_trees": 10}}
    config = parse({"data": data, "rankers": rankers})
    text = replace(outcome, config=config).config_text
    for read in (yaml.safe_load, lambda text: from_yaml(text, "x"), lambda text: from_stored(text, "x")):
        assert parse(read(text)).resolved() == config.resolved()


def test_objectives_have_weights_where_one_is_scheduled():
    graded = {
        "kind": "lambdamart", "n_trees": 3,
        "objective": [{"measure": "ndcg"}, {"measure": "cndcg", "cost": "logistic_near", "weight": {"start": 0.2, "kind": "linear", "eta": 0.1}}],
        "sweep": {"objective.1.weight.eta": [0.1, 0.2]},
    }  # fmt: skip
    shapes = objective_shapes(parse({"data": {"files": "x"}, "rankers": {"g": graded, "s": {"kind": "ranksvm"}}}), ())
    assert list(shapes) == ["g, objective.1.weight.eta=0.1", "g, objective.1.weight.eta=0.2", "s"]
    assert shapes["g, objective.1.weight.eta=0.1"].weights == tuple(pytest.approx((1 - w, w)) for w in (0.2, 0.3, 0.4))
    assert shapes["g, objective.1.weight.eta=0.1"].costs == ("logistic", "logistic_near")
    assert shapes["s"].costs == ()


def test_rankers_on_others_scores_and_these_are_compared_on_the_queries_that_no_ranker_learned_from(outcome):
    """`a` owes its mean to the queries that `b` learned from."""
    config = parse(
        {
            "data": {"files": "x"},
            "rankers": {"a": {"kind": "ranksvm"}, "b": {"kind": "least_squares", "on": ["a"]}},
            "select": "map",
        }
    )
    easy, hard = [0.9, 0.9, 0.1, 0.1], [0.2, 0.2]
    for fold in range(2):
        queries = open_queries(outcome.folds[fold].valid)
        for name, values in (("a", easy), ("b", hard)):
            frame = pl.DataFrame({"split": "valid", "query": ["p", "q", "r", "s"][-len(values) :], "map": values})
            path = CellFolder.of(f"{name}{fold}").values
            path.parent.mkdir(parents=True)
            write_values(path, [frame], {}, queries)
    on_others = replace(outcome, config=config)
    assert on_others.models["a"].metrics["valid_map"] > on_others.models["b"].metrics["valid_map"]
    assert on_others.best == "b"
    assert on_others.summary == "Best on validation MAP, on the half of the queries that no ranker learned from: b."


def test_it_is_said_where_the_best_is_so_by_clicks_as_they_are(outcome):
    config = parse(
        {"data": {"files": "a"}, "rankers": {"a": {"kind": "lambdamart"}, "b": {"kind": "lambdamart", "unbiased": "additive"}}}
    )
    clicked = replace(
        outcome.folds[0], train=keep_queries(pages(n_queries=5, per_query=2)), valid=keep_queries(pages(n_queries=4, per_query=2))
    )
    judging = keep_queries(replace(judged(2, 4), sources={"position": np.full(48, np.nan)}))
    by_judgments = replace(outcome, config=config, folds=(replace(clicked, valid=judging),))
    assert not by_judgments.by_clicks
    assert replace(by_judgments, folds=(clicked,)).by_clicks
    graded = replace(judged(2, 4), sources={"position": np.arange(48) % 12 + 1.0})
    assert not replace(by_judgments, folds=(replace(clicked, valid=keep_queries(graded)),)).by_clicks, "judgments beside ranks"
    for rankers in (
        {"a": {"kind": "lambdamart", "sweep": {"unbiased": [None, "pairwise"]}}},
        {"a": {"kind": "average", "of": {"kind": "lambdamart", "unbiased": "auto"}}},
        {"a": {"kind": "lambdamart", "search": {"trials": 2, "space": {"unbiased": [None, "pairwise"]}}}},
        {
            "a": {
                "kind": "lambdamart",
                "normalise": "query",
                "search": {
                    "trials": 2,
                    "space": {
                        "normalise": ["query", "none"],
                        "unbiased": {"choice": ["pairwise", "ipw"], "when": {"normalise": "none"}},
                    },
                },
            }
        },
    ):
        elsewhere = parse({"data": {"files": "a"}, "rankers": rankers})
        assert replace(by_judgments, config=elsewhere, folds=(clicked,)).by_clicks
        assert elsewhere.ways
    told = replace(by_judgments, folds=(clicked,), config=config.model_copy(update={"select": "map"})).summary
    assert told == "Best on validation MAP, of clicks as they are, which favour the order they were shown in: a."
