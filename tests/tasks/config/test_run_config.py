"""Runs: what is registered is known, grids, and what evidence adds to a ranker's parameters."""

import pytest
import yaml

import ltr
import tasks.evidence  # noqa: F401  (its kinds are keys of a configuration)
from tasks.config.reading import from_yaml, parse
from tasks.config.run_config import EVIDENCE, RunConfig, register_evidence, register_ranker
from tasks.evidence import Segments
from tasks.records import ConfigError

NETS = {"data": {"files": "x"}, "rankers": {"net": {"kind": "lambdarank", "epochs": 30}, "ridge": {"kind": "least_squares"}}}


def test_every_kind_of_evidence_and_of_ranker_is_in_the_schema():
    schema = RunConfig.model_json_schema()
    kinds = {"guarantee", "champion", "segments", "optimality", "refit", "microscope", "trace", "best_single", "corrected"}
    assert set(EVIDENCE) == kinds <= set(schema["properties"])
    assert {f"{core.__name__}Section" for core in ltr.KINDS.values()} <= set(schema["$defs"])


def test_what_is_registered_already_is_refused():
    with pytest.raises(ValueError, match="a run has a key 'segments' already"):
        register_evidence(Segments)
    with pytest.raises(ValueError, match="a kind of ranker 'lambdamart' already"):
        register_ranker(ltr.LambdaMART)


def test_a_grid_is_every_combination_and_only_length_cuts_training():
    written = {**NETS, "sweep": {"learning_rate": [0.1, 0.2], "seed": [1, 2]}, "length": 0.5}
    config = parse(written)
    assert [dict(point.settings) for point in config.cells("net")] == [
        {"learning_rate": rate, "seed": seed} for rate in (0.1, 0.2) for seed in (1, 2)
    ]
    assert config.cells("net")[0].section.epochs == 15
    assert len(config.cells("ridge")) == 1
    assert config.cut == "cut to 0.5 of the trees and epochs"
    whole = parse({**written, "length": 1, "scale": 0.05})
    assert whole.cells("net")[0].section.epochs == 30
    assert whole.cut == "cut to 0.05 of the queries"
    assert parse(NETS).cut == ""


def test_evidence_has_what_it_needs_kept_while_a_ranker_is_trained():
    config = parse({**NETS, "optimality": {"early_epochs": [3]}, "microscope": {"every": 10, "rankers": ["net"]}})
    assert config.cells("net")[0].section.keep_epochs == (3, 10, 20)
    assert config.evidence == (config.optimality, config.microscope)
    tiers = parse(
        {**NETS, "guarantee": {"baseline": "ridge", "tiers": ["err", "mrr"]}, "champion": {"name": "m", "tiers": ["p@7"]}}
    )
    assert tiers.all_measures[-2:] == ["err", "p@7"]


def test_a_configuration_of_before_a_kind_was_registered_has_none_of_it(monkeypatch):
    config = parse(NETS)
    monkeypatch.setitem(EVIDENCE, "later", Segments)
    assert config.evidence == ()


def test_one_measure_is_written_without_a_list_and_in_either_form():
    config = RunConfig(data={"files": "d.txt"}, measures="ndcg@3", select="ndcg@10")
    assert config.all_measures == ["ndcg@3", "ndcg@10"]


def test_a_shared_sweep_suits_every_ranker_or_is_refused():
    rankers = {"trees": {"kind": "lambdamart"}, "net": {"kind": "lambdarank"}, "svm": {"kind": "ranksvm"}}
    shared = RunConfig(
        **{**NETS, "rankers": rankers, "sweep": {"learning_rate": ["x0.5", "x2"], "n_trees": ["x0.1"], "epochs": [3, "x.5"]}}
    )
    own = {name: ltr.KINDS[section["kind"]]() for name, section in rankers.items()}
    assert [point.section.learning_rate for point in shared.cells("trees")] == [
        0.5 * own["trees"].learning_rate,
        2 * own["trees"].learning_rate,
    ]
    assert {point.section.n_trees for point in shared.cells("trees")} == {own["trees"].n_trees // 10}
    assert {(p.section.learning_rate, p.section.epochs) for p in shared.cells("net")} == {
        (r, e) for r in (0.0005, 0.002) for e in (3, 50)
    }
    assert len(shared.cells("svm")) == 1
    said = "sweep.learning_rate: trees has .* and net 0.001, and no number suits both"
    with pytest.raises(ValueError, match=said):
        RunConfig(**{**NETS, "rankers": rankers, "sweep": {"learning_rate": [0.1, 0.2]}})
    told = {**rankers, "net": {"kind": "lambdarank", "sweep": {"learning_rate": [0.001]}}}
    assert (
        RunConfig(**{**NETS, "rankers": told, "sweep": {"learning_rate": [0.1, 0.2]}}).cells("net")[0].section.learning_rate
        == 0.001
    )
    with pytest.raises(ValueError, match="x2 is a multiple of the parameter's own number, and it has none"):
        RunConfig(**{**NETS, "rankers": rankers, "sweep": {"objective.0.weight": ["x2"]}})


def test_members_of_an_average_stop_by_what_selects_unless_they_say_otherwise():
    members = [{"kind": "lambdamart"}, {"kind": "lambdarank", "stop_on": "mrr"}, {"kind": "least_squares"}]
    config = RunConfig(**{**NETS, "rankers": {"mean": {"kind": "average", "of": members}}, "select": "map", "seed": 7})
    (point,) = config.cells("mean")
    first, second, _ = point.section.of
    assert (first.stop_on, first.seed, second.stop_on, point.section.seed) == ("map", 7, "mrr", 7)


@pytest.mark.parametrize("unbiased", ["additive", "auto", {"kind": "ipw", "estimate": "regression_em"}])
def test_what_learns_of_ranks_is_trained_in_parts(unbiased):
    written = {"data": {"files": "x"}, "parts": 2, "rankers": {"fair": {"kind": "lambdamart", "unbiased": unbiased}}}
    assert parse(written).parts == 2


def test_what_rankers_have_from_the_run_stays_when_its_plain_values_are_read_again():
    """`serve` hands the configuration on as plain values, and a run keeps them: what was left out is then no longer told from what was written."""
    written = {
        "seed": 7, "select": "map", "data": {"files": "a.csv", "categorical": ["site"]},
        "rankers": {
            "trees": {"kind": "lambdamart", "sweep": {"learning_rate": [0.1, 0.2]}},
            "own": {"kind": "lambdamart", "seed": 1, "stop_on": "ndcg_10", "categorical": [], "polish": True},
            "mean": {"kind": "average", "copies": 2, "of": [{"kind": "lambdamart"}, {"kind": "lambdamart", "seed": 3}]},
            "searched": {"kind": "lambdamart", "select": "ndcg_3", "search": "auto"},
            "top": {"kind": "lambdamart", "on": ["own", "mean"]},
        },
    }  # fmt: skip
    config = parse(written)
    again = parse(config.resolved())
    trees, mean, searched = (again.point(name, {}).section for name in ("trees", "mean", "searched"))
    assert (trees.seed, trees.stop_on, list(trees.categorical)) == (7, "map", ["site"])
    assert (searched.seed, searched.stop_on) == (7, "ndcg_3")
    assert [(one.seed, list(one.categorical)) for one in mean.of] == [(7, ["site"]), (3, ["site"])]
    own = again.point("own", {}).section
    assert (own.seed, own.stop_on, list(own.categorical), own.polish.measure) == (1, "ndcg_10", [], "map")
    assert list(again.point("top", {}).section.categorical) == [], "its features are scores, and it has no column of the data"
    assert again.digest == config.digest
    for name in config.rankers:
        assert [one.section.written() for one in again.cells(name)] == [one.section.written() for one in config.cells(name)]
        assert again.rankers[name].search == config.rankers[name].search
    del written["rankers"]["own"]["seed"]
    assert parse(written).digest != config.digest, "another model is another configuration"


def test_evidence_that_is_false_is_not_asked_for():
    assert not parse({**NETS, "refit": False, "champion": False}).evidence
    assert len(parse({**NETS, "refit": True}).evidence) == 1
    for wrong in ("no", 1, ["net"]):
        with pytest.raises(ValueError, match="refit: true or false, or a section with rankers and a name"):
            parse({**NETS, "refit": wrong})


def test_points_that_come_to_the_same_are_one():
    def labels(written, **run):
        config = parse({"data": {"files": "x"}, "rankers": {"t": {"kind": "lambdamart", **written}}, **run})
        return [dict(point.settings) for point in config.cells("t")]

    assert labels({"n_leaves": 4, "sweep": {"n_leaves": ["x1", "x1.1", "x2"]}}) == [{"n_leaves": 4}, {"n_leaves": 8}]
    assert labels({"sweep": {"n_trees": [1, 2, 30]}}, length=0.1) == [{"n_trees": 1}, {"n_trees": 30}]


def test_multiples_of_nothing_are_nothing():
    config = parse({"data": {"files": "x"}, "rankers": {"t": {"kind": "lambdarank", "sweep": {"hidden": ["x1", "x2"]}}}})
    assert [point.section.hidden for point in config.cells("t")] == [0]


def test_length_reaches_the_members_of_an_average():
    members = [{"kind": "lambdamart", "n_trees": 60}, {"kind": "least_squares"}, {"kind": "lambdarank", "epochs": 50}]
    config = parse({"data": {"files": "x"}, "length": 0.1, "rankers": {"m": {"kind": "average", "of": members}}})
    (point,) = config.cells("m")
    assert (point.section.of[0].n_trees, point.section.of[2].epochs) == (6, 5)


@pytest.mark.parametrize(("path", "values"), [("best", [1, 3]), ("on", [["a"]]), ("select", ["map"]), ("kind", ["x"])])
@pytest.mark.parametrize("shared", [False, True])
def test_what_is_no_parameter_is_not_swept(path, values, shared):
    mean = {"kind": "average", "on": ["a"]}
    rankers = {"a": {"kind": "lambdamart"}, "m": mean if shared else {**mean, "sweep": {path: values}}}
    where = "" if shared else "rankers.m."
    with pytest.raises(ConfigError, match=rf"{where}sweep.{path}: {path} cannot be swept; define a separate ranker for each value"):
        parse({"data": {"files": "x"}, "rankers": rankers, **({"sweep": {path: values}} if shared else {})})


@pytest.mark.parametrize(
    "ranker",
    [
        {"kind": "lambdamart", "search": {"space": {"leaf": ["newton", "gradient"], "largest_leaf": {"low": 1, "high": 20, "when": {"leaf": "gradient"}}}}},
        {"kind": "least_squares", "search": "auto"},
        {"kind": "lambdarank", "polish": True, "search": "auto"},
        {"kind": "lambdamart", "search": "auto"},
        {"kind": "ranksvm", "search": {"halving": 0}},
    ],
)  # fmt: skip
def test_what_a_run_writes_down_of_a_search_is_read_again(ranker):
    """`serve` and `refit` begin with it."""
    config = parse({"data": {"files": "x"}, "rankers": {"t": ranker}})
    again = parse(from_yaml(yaml.safe_dump(config.resolved(), sort_keys=False), "x"))
    assert (again.digest, again.training_digest) == (config.digest, config.training_digest)
    assert again.rankers["t"].space == config.rankers["t"].space
    assert again.lengths("t") == config.lengths("t")


def test_members_of_an_average_begin_with_its_seed_unless_they_have_one():
    members = [{"kind": "lambdamart"}, {"kind": "lambdamart", "seed": 9}]
    config = parse({"data": {"files": "x"}, "seed": 5, "rankers": {"m": {"kind": "average", "of": members, "seed": 3}}})
    (point,) = config.cells("m")
    assert [own.seed for own in point.section.of] == [3, 9]
    plain = parse({"data": {"files": "x"}, "seed": 5, "rankers": {"m": {"kind": "average", "of": members[:1]}}})
    assert (plain.cells("m")[0].section.seed, plain.cells("m")[0].section.of[0].seed) == (5, 5)


def test_a_ranker_may_select_by_a_measure_of_its_own():
    config = RunConfig.model_validate(
        {"data": {"files": ["x.txt"]}, "rankers": {"a": {"kind": "lambdamart", "select": "map"}, "b": {"kind": "lambdamart"}}}
    )
    assert [config.select_of(name) for name in "ab"] == ["map", config.select_key]


def _config(**rankers):
    return RunConfig.model_validate({"data": {"files": ["x.txt"]}, "sweep": {"learning_rate": [0.1, 0.2]}, "rankers": rankers})


def test_a_rankers_own_sweep_stands_beside_the_runs():
    config = _config(a={"kind": "lambdamart", "sweep": {"n_leaves": [7, 15]}})
    assert len(config.cells("a")) == 4


def test_the_length_of_a_draw_is_the_averages_and_not_its_members():
    config = _config(a={"kind": "lambdamart"}, b={"kind": "average", "of": [{"kind": "lambdamart", "n_trees": 60}]})
    assert config.point("b", {}, length=7).section.of[0].n_trees == 60


def test_polishing_climbs_the_measure_that_the_ranker_selects_by():
    config = RunConfig.model_validate(
        {"data": {"files": ["x.txt"]}, "rankers": {"a": {"kind": "least_squares", "select": "map", "polish": {}}}}
    )
    assert config.point("a", {}).section.polish.measure == "map"


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("n_trees", 2.5, "valid integer, got a number with a fractional part"),
        ("n_trees", "ten", "valid integer"),
        ("n_trees", None, "valid integer"),
        ("n_trees", [3], "valid integer"),
        ("n_trees", "x1e400", "sweep.n_trees: x1e400 is beyond any number"),
        ("of", 3, "valid tuple"),
        ("of.0", 3, "valid dictionary"),
        ("of.0.kind", "foo", "'foo'"),
        ("of.0.n_trees", "ten", "valid integer"),
    ],
)
def test_a_swept_count_that_is_no_whole_number_is_refused_by_name(path, value, said):
    of = {"of": [{"kind": "lambdamart"}]} if path.startswith("of") else {}
    written = {"kind": "average" if of else "lambdamart", **of, "sweep": {path: [value]}}
    with pytest.raises(ConfigError, match=said):
        parse({"data": {"files": "x"}, "rankers": {"a": written}})


def test_members_that_are_swept_are_cut_once_however_often_cells_are_asked_for():
    of = [[{"kind": "lambdamart", "n_trees": 80}], [{"kind": "lambdamart"}]]
    written = {"a": {"kind": "average", "of": {"kind": "lambdamart"}, "sweep": {"of": of}}}
    config = parse({"data": {"files": "x"}, "rankers": written, "length": 0.5})
    for _ in range(2):
        assert [point.section.of[0].n_trees for point in config.cells("a")] == [40, 250]
