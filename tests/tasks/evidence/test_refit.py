"""What is trained on all data: settings, iterations, queries; what cannot be is refused. Whole runs are in tests/flows."""

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

import ltr
from tasks.config.ranker_section import read_ranker
from tasks.config.reading import parse
from tasks.evidence.guarantee import Promise
from tasks.evidence.refit import (
    Refit,
    Refitted,
    _promised,
    all_queries,
    as_long_as,
    best_point,
    most_taken,
    on_every_fold,
    refit_cell,
)
from tasks.records import Cell, CellResult, ConfigError, DataError, Fold, Trained, point_title
from tasks.store.cells import CellFolder, CurveFile, write_record
from tasks.store.datasets import keep_queries, open_queries
from tasks.tracking.store import CELL_KEY
from tests.conftest import make_queries
from tests.ltr.objectives.test_unbiased import pages


def trained(rate, fold, value, **section) -> Trained:
    written = {"kind": "lambdamart", "n_trees": 50, "stop_on": "ndcg_10", "learning_rate": rate, **section}
    cell = Cell("x", "trees", fold, {"learning_rate": rate}, written, Fold("a", "b", "c"), ("map",), {})
    return Trained(cell, CellResult(f"{rate}-{fold}", "", {"valid_map": value}, 0.0))


def test_refitting_is_asked_for_in_a_configuration_too():
    written = {
        "data": {"files": "a.csv"},
        "rankers": {"ridge": {"kind": "least_squares"}, "mix": {"kind": "lambdarank", "on": ["ridge"]}},
    }
    assert parse(written | {"refit": True}).refit == Refit()
    for refit, said in (
        ({"rankers": ["mix"]}, "'mix' learns from the scores of others"),
        ({"rankers": ["x"]}, "no ranker 'x'"),
        ({"rankers": ["ridge", "ridge"], "name": "one"}, "'one' is one model, and refit.rankers names 2"),
    ):
        with pytest.raises(ConfigError, match=said):
            parse(written | {"refit": refit})


def test_clicked_pages_and_judged_queries_are_not_trained_on_together():
    generated = {"generate": {"queries": [30, 15, 20]}, "clicked_pages": {"per_query": 2}}
    with pytest.raises(
        ConfigError, match=r"refit: data.clicked_pages makes clicks of training queries and leaves the others judged"
    ):
        parse({"data": generated, "rankers": {"ridge": {"kind": "least_squares"}}, "refit": True})


def test_pages_and_judged_queries_of_files_are_not_trained_on_together(workplace):
    pages = make_queries(20, seed=1)
    shown = replace(pages, sources={**pages.sources, "position": np.ones(pages.n_documents)})
    train, other = (
        keep_queries(one)
        for one in (shown, replace(pages, sources={**pages.sources, "position": np.full(pages.n_documents, np.nan)}))
    )
    rankers = {"plain": {"kind": "lambdamart"}, "ipw": {"kind": "lambdamart", "unbiased": "ipw"}}
    config = parse({"data": {"files": "a.csv"}, "rankers": rankers, "refit": {"rankers": ["plain"]}})
    refit = config.refit
    refit.check_data(config, (Fold(train, train, train),))
    graded, clicked = (
        keep_queries(replace(shown, labels=labels)) for labels in (shown.labels * 2, (shown.labels > 0).astype(float))
    )
    refit.check_data(config, (Fold(clicked, clicked, clicked),))
    for training, last in ((train, other), (clicked, graded)):
        with pytest.raises(
            DataError, match=r"refit: training queries are pages with clicks, and test queries are judged: no model"
        ):
            refit.check_data(config, (Fold(training, training, last),))
    plain = parse({"data": {"files": "a.csv"}, "rankers": {"plain": {"kind": "lambdamart"}}, "refit": True})
    with pytest.raises(DataError, match="and validation queries are judged"):
        refit.check_data(plain, (Fold(train, other, other),))


def test_a_resolved_configuration_can_be_run_again():
    for refit in ({"name": "shop"}, {"of": "1234abcd"}):
        config = parse({"data": {"files": "a.csv"}, "refit": refit})
        assert parse(config.model_dump(mode="json")) == config


def test_a_run_that_refits_its_own_choice_is_known_by_what_it_was_known_by():
    """Its digest finds the runs of before there was `of`."""
    config = parse({"data": {"files": "a.csv"}, "refit": True})
    assert config.model_dump(mode="json")["refit"] == {"rankers": [], "name": None}


def test_the_point_with_the_best_mean_over_the_folds():
    cells = [trained(0.1, 0, 0.5), trained(0.2, 0, 0.9), trained(0.1, 1, 0.6), trained(0.2, 1, 0.1)]
    assert best_point(cells, "valid_map") == [cells[0], cells[2]]
    lucky = trained(0.3, 0, 0.99)
    assert best_point([*cells, lucky], "valid_map") == [cells[0], cells[2]], (
        "a point that failed on the other fold has no mean over both"
    )
    often = [cells[1], cells[3], cells[1], cells[3]]
    assert best_point([*often, cells[0], cells[2]], "valid_map") == [cells[0], cells[2]], "two folds chose it, which is no merit"


def test_beside_a_guarantee_the_points_that_most_folds_took():
    cells = [trained(rate, fold, 0.5) for rate in (0.1, 0.2, 0.3) for fold in range(3)]
    titles = [point_title(cell.cell.point) for cell in (cells[0], cells[4], cells[5])]
    assert most_taken(cells, titles) == cells[3:6]
    assert most_taken(cells, titles[:2]) == cells[:6], "as many folds took either"


def test_beside_a_guarantee_a_promised_setting_is_trained_even_if_most_folds_took_another(monkeypatch):
    cells = [trained(rate, fold, 0.5) for rate in (0.1, 0.2) for fold in range(4)]
    chosen = [cells[0], cells[1], cells[2], cells[7]]
    run = SimpleNamespace(
        config=SimpleNamespace(searched=(), select_of=lambda _: "map"), cells=cells, chosen=chosen, tracker=MagicMock(), folds=()
    )
    monkeypatch.setattr("tasks.evidence.refit.refit_cell", lambda folds, data: folds[0].cell)
    monkeypatch.setattr("tasks.evidence.refit.train", lambda cell: None)
    monkeypatch.setattr("tasks.evidence.refit.result_of", lambda cell: CellResult("", "", {}, 0.0))
    monkeypatch.setattr("tasks.evidence.refit.describe_fold", lambda data: [])
    for promised, rate, said in (
        ((False, False, False, True), 0.2, "promised in 1 of 4 folds"),
        ((False,) * 4, 0.1, "promised in none of 4 folds"),
        ((True, True, False, True), 0.1, "promised in 2 of 4 folds"),
    ):
        promises = {fold: Promise("", yes, ()) for fold, yes in enumerate(promised)}
        model = Refit()._refit(run, cells[0].ranker, Fold("all"), promises)
        assert model.cell.point == {"learning_rate": rate}
        found = Refitted("0123456789", {"a": model}, 10, {}, {"a": _promised(run, model, promises)})
        assert f"a (learning_rate={rate}; {said}) trained on all 10 queries" in found.sentences()[0]
        assert found.printed()["refit"]["a"]["promised_folds"] == int(said.split()[2].replace("none", "0"))


def test_what_the_folds_chose_is_trained_on_every_fold(monkeypatch):
    """Searches draw other points on other folds, so that none has a mean over them."""
    chosen = [trained(0.1, 0, 0.9, train_share=0.5), trained(0.2, 1, 0.8, train_share=1.0)]
    chosen = [replace(one, cell=replace(one.cell, data=Fold(f"t{one.fold}/.5"), start="k")) for one in chosen]
    values = {(0.1, "t0/0.5"): 0.9, (0.1, "t1/0.5"): 0.1, (0.2, "t0/1.0"): 0.7, (0.2, "t1/1.0"): 0.8}

    def train(cell):
        assert not cell.start, "that of another fold is none"
        return CellResult("", "", {"valid_map": values[cell.section["learning_rate"], cell.data.train]}, 0.0)

    monkeypatch.setattr("tasks.evidence.refit.train", lambda cell: None)
    monkeypatch.setattr("tasks.evidence.refit.result_of", train)
    monkeypatch.setattr("tasks.evidence.refit.share", lambda train, part, seed: f"{train}/{part}")
    folds = best_point(on_every_fold(chosen, [Fold("t0"), Fold("t1")], 1), "valid_map")
    assert [(one.cell.section["learning_rate"], one.fold, one.cell.data.train) for one in folds] == [
        (0.2, 0, "t0/1.0"),
        (0.2, 1, "t1/1.0"),
    ]


def test_what_is_printed_is_what_commands_take():
    one = trained(0.1, 0, 0.9)
    found = Refitted("0123456789", {"a": one, "b": one}, 10, {"b": "3"})
    assert found.printed() == {
        "refit": {
            "a": {"name": "01234567:a", "digest": one.result.digest},
            "b": {"name": "01234567:b", "digest": one.result.digest, "version": "3"},
        }
    }


SMALL = {"n_leaves": 4, "learning_rate": 0.5, "min_docs_in_leaf": 5}
TREES = ltr.LambdaMART(n_trees=20, **SMALL)


@pytest.mark.parametrize(
    ("ranker", "section"),
    [
        (TREES, {"n_trees": 20}),
        (replace(TREES, stop_on=("ndcg_10", "mrr"), patience=3), {"n_trees": 20}),
        (ltr.LambdaRank(epochs=12, keep="train", learning_rate=0.05), {"epochs": 12}),
        (ltr.RankBoost(rounds=30), {"rounds": 30}),
    ],
)
def test_as_many_iterations_as_the_folds_kept_on_average(workplace, ranker, section):
    folds, kept = [trained(0.1, fold, 0.5, kind=ranker.kind, **section) for fold in range(2)], []
    for seed, one in enumerate(folds):
        fitted = ranker.fit(make_queries(30, seed=seed), make_queries(15, seed=seed + 5))
        ltr.save(fitted, CellFolder.of(one.result.key).model)
        kept.append(fitted.best_iteration)
    (counted,) = section
    assert len(set(kept)) == 2, "or their mean would be no mean"
    cell = refit_cell(folds, Fold("all"))
    assert cell.section == {**folds[0].cell.section, counted: round(np.mean(kept))}
    assert (cell.data, cell.label) == (Fold("all"), "trees · all data")


def test_members_of_an_average_go_on_as_long_as_their_copies_did(workplace):
    folds, fitted = [trained(0.1, fold, 0.5) for fold in range(2)], []
    of = [{"kind": "lambdamart", "n_trees": 20, **SMALL}, {"kind": "ranksvm"}, {"kind": "lambdamart", "n_trees": 15, **SMALL}]
    folds = [replace(one, cell=replace(one.cell, section={"kind": "average", "copies": 2, "of": of})) for one in folds]
    ranker = ltr.Average((TREES, ltr.RankSVM(), replace(TREES, n_trees=15)), copies=2)
    for seed, one in enumerate(folds):
        fitted.append(ranker.fit(make_queries(30, seed=seed), make_queries(15, seed=seed + 5)))
        ltr.save(fitted[-1], CellFolder.of(one.result.key).model)
    means = [round(np.mean([one.members[k + copy].best_iteration for one in fitted for copy in (0, 3)])) for k in (0, 2)]
    made = refit_cell(folds, Fold("all")).section["of"]
    assert made == [{**of[0], "n_trees": means[0]}, of[1], {**of[2], "n_trees": means[1]}]
    assert means[0] < 20


def test_a_way_that_the_folds_chose_is_the_way_on_all_data(workplace):
    """`auto` has no validation queries there to choose on: every refit of it failed, after training."""
    folds = [trained(0.1, fold, 0.5) for fold in range(3)]
    of = {"kind": "lambdamart", "n_trees": 6, **SMALL, "unbiased": {"kind": "auto"}}
    for section, average in ((of, False), ({"kind": "average", "of": [of]}, True)):
        folds = [replace(one, cell=replace(one.cell, section=section)) for one in folds]
        for one, way in zip(folds, ("pairwise", None, "pairwise"), strict=True):
            fitted = replace(TREES, n_trees=6, stop_on=None, unbiased=way).fit(pages(n_queries=20, per_query=3))
            if average:
                alike = ltr.Average(replace(fitted, unbiased="auto"))
                fitted = replace(alike, members=(fitted,), deviations=np.ones(1), names=fitted.names)
            ltr.save(fitted, CellFolder.of(one.result.key).model)
        made = refit_cell(folds, Fold("all")).section
        assert (made["of"][0] if average else made)["unbiased"]["kind"] == "pairwise"
        assert read_ranker(made).build().fit(pages(n_queries=20, per_query=3)).names


def test_a_choice_that_another_fold_cannot_train_is_left_out(monkeypatch):
    """It ended the run, without a report."""
    chosen = [trained(0.1, 0, 0.9, train_share=0.5), trained(0.2, 1, 0.8, train_share=0.5)]

    def train(cell):
        if (cell.section["learning_rate"], cell.fold) == (0.1, 1):
            raise ValueError("no query has documents of different labels")

    monkeypatch.setattr("tasks.evidence.refit.train", train)
    monkeypatch.setattr("tasks.evidence.refit.result_of", lambda cell: CellResult("", "", {"valid_map": 0.5}, 0.0))
    monkeypatch.setattr("tasks.evidence.refit.share", lambda train, part, seed: train)
    on_both = on_every_fold(chosen, [Fold("t0"), Fold("t1")], 1)
    assert [(one.cell.section["learning_rate"], one.fold) for one in on_both] == [(0.1, 0), (0.2, 0), (0.2, 1)]
    assert {one.cell.section["learning_rate"] for one in best_point(on_both, "valid_map")} == {0.2}


def test_what_selection_counted_on_the_folds_is_the_weight_on_all_data(workplace):
    """All data leave no validation queries to select on."""
    folds, counts = [trained(0.1, fold, 0.5) for fold in range(2)], []
    of = [{"kind": "lambdamart", "n_trees": 20, **SMALL}, {"kind": "ranksvm"}]
    folds = [replace(one, cell=replace(one.cell, section={"kind": "average", "selection": 4, "of": of})) for one in folds]
    for seed, one in enumerate(folds):
        fitted = ltr.Average((TREES, ltr.RankSVM()), selection=4).fit(make_queries(30, seed=seed), make_queries(15, seed=seed + 5))
        counts.append(fitted.counts / 6)
        ltr.save(fitted, CellFolder.of(one.result.key).model)
    made = refit_cell(folds, Fold("all")).section
    assert made["weights"] == np.mean(counts, axis=0).tolist()
    assert made["selection"] == 0
    assert not np.array_equal(*counts)
    assert read_ranker(made).build().weights == tuple(made["weights"])


def test_an_average_of_folds_stops_and_selects_on_all_data_too():
    section = {
        "kind": "average",
        "selection": 4,
        "folds": 3,
        "of": [{"kind": "lambdamart", "n_trees": 20, **SMALL}, {"kind": "ranksvm"}],
    }
    fitted = read_ranker(section).build().fit(make_queries(30, seed=1))
    assert as_long_as([fitted], section) == section


@pytest.mark.parametrize(("keep", "kept"), [("valid", 2), ("train", 3)])
def test_a_polished_net_is_trained_as_long_as_it_was_before(workplace, keep, kept):
    one = trained(0.1, 0, 0.5, kind="lambdarank", epochs=4, keep=keep, polish={"measure": "ndcg_10"})
    net = ltr.LambdaRank(epochs=4, keep=keep, learning_rate=0.05).fit(make_queries(30, seed=1), make_queries(15, seed=2))
    ltr.save(net.moved(net.weights.flat), CellFolder.of(one.result.key).model)
    curve = CurveFile("ndcg_10", [1, 2, 3, 4], [0.1, 0.2, 0.9, 0.3], [0.1, 0.4, 0.2, 0.4])
    write_record(CellFolder.of(one.result.key).curve, curve)
    assert refit_cell([one], Fold("all")).section == {**one.cell.section, "epochs": kept}


def test_of_folds_where_a_polish_was_taken_and_where_not_both_count(workplace):
    net = ltr.LambdaRank(epochs=4, learning_rate=0.05).fit(make_queries(30, seed=1), make_queries(15, seed=2))
    before = 1 if net.best_iteration == 4 else 4
    values = [0.9 if epoch == before else 0.1 for epoch in (1, 2, 3, 4)]
    folds = []
    for fold, kept in enumerate((net.moved(net.weights.flat), net)):
        folds.append(trained(0.1, fold, 0.5, kind="lambdarank", epochs=4, polish={"measure": "ndcg_10"}))
        ltr.save(kept, CellFolder.of(folds[-1].result.key).model)
        write_record(CellFolder.of(folds[-1].result.key).curve, CurveFile("ndcg_10", [1, 2, 3, 4], [0.1] * 4, values))
    assert net.best_iteration != before
    for order in (folds, folds[::-1]):
        assert refit_cell(order, Fold("all")).section["epochs"] == round((before + net.best_iteration) / 2)


@pytest.mark.parametrize(
    ("taken", "polished"), [("lll", False), ("llt", False), ("ltt", True), ("lt", True), ("l", False), ("t", True)]
)
def test_what_validation_refused_on_most_folds_is_not_polished(workplace, taken, polished):
    """All data have no validation queries to refuse it."""
    ridge, how, folds = ltr.LeastSquares().fit(make_queries(20, seed=1)), {"measure": "ndcg_10"}, []
    for fold, letter in enumerate(taken):
        one = trained(0.1, fold, 0.5, kind="least_squares", polish=how)
        said = (
            f"polished, ndcg_10 0.5000 → 0.6000 in 3 steps: optimum; validation 0.5 → 0.4: {'left' if letter == 'l' else 'taken'}"
        )
        folds.append(replace(one, result=replace(one.result, remarks=("another", said))))
        ltr.save(ridge, CellFolder.of(one.result.key).model)
    assert refit_cell(folds, Fold("all")).section == {**folds[0].cell.section, "polish": how if polished else None}


def test_a_polished_net_of_clicks_that_kept_its_last_epoch_is_trained_for_as_many(workplace):
    one = trained(0.1, 0, 0.5, kind="lambdarank", epochs=4, keep="train", unbiased="dla", polish={"measure": "ndcg_10"})
    net = ltr.LambdaRank(epochs=4, keep="train").fit(make_queries(30, seed=1), make_queries(15, seed=2))
    ltr.save(net.moved(net.weights.flat), CellFolder.of(one.result.key).model)
    write_record(
        CellFolder.of(one.result.key).curve, CurveFile("ndcg_10", [1, 2, 3, 4], [0.1, 0.9, 0.2, 0.3], [0.1, 0.4, 0.2, 0.4])
    )
    assert refit_cell([one], Fold("all")).section["epochs"] == 4


def test_what_did_not_stop_by_a_measure_goes_on_as_it_was_asked(workplace):
    for kind, ranker in (("lambdamart", replace(TREES, stop_on=None)), ("ranksvm", ltr.RankSVM())):
        one = trained(0.1, 0, 0.5, kind=kind)
        ltr.save(ranker.fit(make_queries(20, seed=1)), CellFolder.of(one.result.key).model)
        assert refit_cell([one], Fold("all")).section == one.cell.section


def test_all_queries_of_a_fold_once(workplace):
    names = [keep_queries(make_queries(n, seed=n)) for n in (5, 6, 7)]
    made = open_queries(all_queries.fn(Fold(*names)))
    assert made.n_queries == 18
    assert all_queries.fn(Fold(*names)) == all_queries.fn(Fold(*names))


def test_what_a_search_did_not_choose_is_not_refitted_in_its_name(monkeypatch):
    """One within a time finds more where what it had noted of it is gone. Names say nothing: two of one ranker are one cell."""
    cells = {"a": trained(0.1, 0, 0.4), "b": trained(0.1, 1, 0.4)}
    config = SimpleNamespace(budget=6.0, searched=["trees"])
    run = SimpleNamespace(chosen=list(cells.values()), config=config)
    monkeypatch.setattr("tasks.tracking.runs.find_run", lambda of: of)

    def child(key, **params):
        return SimpleNamespace(tags={CELL_KEY: key}, params={"ranker": "other name", **params})

    same = [child("0.1-0", learning_rate="9"), child("another version's", learning_rate="0.1", kind="lambdamart")]
    other = [same[0], child("x", learning_rate="0.2", kind="lambdamart")]
    monkeypatch.setattr("tasks.tracking.runs.chosen_cells", lambda run: {"trees": same})
    Refit(of="1234abcd")._require_choice(run, ["trees"])
    monkeypatch.setattr("tasks.tracking.runs.chosen_cells", lambda run: {"trees": other})
    with pytest.raises(
        DataError,
        match=r"refit: trees: run 1234abcd chose learning_rate 0\.2, but 0\.1 is chosen now: its search had a time budget",
    ):
        Refit(of="1234abcd")._require_choice(run, ["trees"])
    for by_code in (SimpleNamespace(budget=None, searched=["trees"]), SimpleNamespace(budget=6.0, searched=[])):
        with pytest.raises(
            DataError,
            match=r"run 1234abcd chose learning_rate 0\.2, but .* is chosen now: it was trained by another version; write the settings out",
        ):
            Refit(of="1234abcd")._require_choice(SimpleNamespace(chosen=run.chosen, config=by_code), ["trees"])
    Refit()._require_choice(run, ["trees"])


def test_all_data_are_learned_by_the_pair_cost_of_the_folds(workplace):
    """All data may be so many that `auto` is another one."""
    section = parse({"data": {"files": "x"}, "rankers": {"t": {"kind": "lambdamart"}}}).rankers["t"].written()
    trees = ltr.LambdaMART(n_trees=1).fit(make_queries(10)).trees
    assert section["objective"][0]["cost"] == "auto"
    fitted = [
        ltr.LambdaMART(objective=(ltr.Term(cost=cost),), trees=trees) for cost in ("logistic_near", "logistic", "logistic_near")
    ]
    assert [as_long_as(some, section)["objective"][0]["cost"] for some in (fitted, fitted[1:2])] == ["logistic_near", "logistic"]
