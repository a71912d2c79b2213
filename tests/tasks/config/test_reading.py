"""Configurations: short ones work, wrong ones are told apart in one line each."""

import os
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

import ltr
import tasks.evidence  # noqa: F401  (its kinds are keys of a configuration)
from tasks.config.reading import from_stored, from_yaml, override_all, parse, parse_click_log, read, read_any
from tasks.config.run_config import RunConfig, StudyConfig
from tasks.records import ConfigError

SHORT = {"data": {"files": "judged.txt"}}


def test_a_first_configuration_names_data_and_nothing_else():
    config = parse(SHORT)
    assert set(config.rankers) == {"lambdamart", "linear"}
    assert config.cells("linear")[0].section.build() == ltr.LambdaRank()
    assert config.cells("lambdamart")[0].section.build() == ltr.LambdaMART()


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ({"data": {"fils": "a"}}, "unknown key 'data.fils'; did you mean files"),
        ({**SHORT, "search": "auto"}, r"unknown key 'search'; did you mean rankers\.NAME\.search\?"),
        ({**SHORT, "train": "a"}, r"unknown key 'train'; did you mean data\.train\?"),
        ({"data": {"files": "a", "measures": ["map"]}}, r"unknown key 'data\.measures'; did you mean measures\?"),
        ({**SHORT, "rankers": {"m": {"kind": "lambdamart", "folds": 3}}}, r"'rankers\.m\.folds'; did you mean data\.folds\?"),
        ({"data": {"files": {"train": "a"}}}, "data.files: a list of files; those of .* are data.train, data.valid and data.test"),
        ({**SHORT, "rankers": {"m": {"kind": "lambdamart", "n_tree": 3}}}, "unknown key 'rankers.m.n_tree'; did you mean n_trees"),
        (
            {**SHORT, "rankers": {"lambdamart": {"kind": "lambdamart", "n_tree": 3}}},
            "unknown key 'rankers.lambdamart.n_tree'; did you mean n_trees",
        ),
        (
            {**SHORT, "rankers": {"m": {"kind": "lambdamort"}}},
            r"rankers.m: unknown kind 'lambdamort'; did you mean lambdamart\? choose from: lambdamart, lambdarank",
        ),
        ({**SHORT, "rankers": {"m": {"n_trees": 3}}}, "rankers.m: a section names its kind: lambdamart, lambdarank"),
        (
            {**SHORT, "rankers": {"m": {"kind": "average", "of": [{"kind": "average", "of": []}]}}},
            r"rankers.m.of.0: unknown kind 'average'; choose from: lambdamart.*weighted_fusion$",
        ),
        ({**SHORT, "rankers": {"m": {"kind": "lambdamart", "n_trees": "many"}}}, r'n_trees: .*valid integer.*given: "many"'),
        (
            {**SHORT, "rankers": {"m": {"kind": "lambdamart", "n_trees": 0}}},
            "n_trees=0 is out of range; it is a whole number from 1 to 1,000,000",
        ),
        (
            {**SHORT, "rankers": {"m": {"kind": "lambdamart", "objective": [{"measure": "ndgc"}]}}},
            "objective.0: unknown measure 'ndgc'",
        ),
        ({**SHORT, "rankers": {"m": {"kind": "lambdamart", "objective": [{"weight": 2}]}}}, "weight"),
        (
            {**SHORT, "rankers": {"m": {"kind": "lambdamart", "objective": [{"weight": [0.1, 0.3]}]}}},
            r"objective\.0\.weight: input should be a valid number \(given: \[0\.1, 0\.3\]\)\nx.*weight: input should be a valid dictionary \(",
        ),
        ({"data": {"files": "a", "query": 5, "query_features": 3}}, r"data\.query: input should be a valid string \(given: 5\)"),
        ({**SHORT, "sweep": {"learnin_rate": [1]}}, "no ranker has a parameter 'learnin_rate'; did you mean learning_rate"),
        (
            {**SHORT, "sweep": {"cost": ["sigmoid"]}},
            r"sweep.cost: no ranker has a parameter 'cost'; did you mean objective.0.cost\?",
        ),
        ({**SHORT, "sweep": {"learning_rate": [0.1, -1]}}, "learning_rate=-1"),
        (
            {**SHORT, "rankers": {"m": {"kind": "lambdamart", "sweep": {"objective.3.weight": [0.1]}}}},
            "objective.3.weight: there is no",
        ),
        (
            {**SHORT, "rankers": "auto", "sweep": {"learning_rate": ["x1", "x2"]}},
            "sweep.learning_rate: every ranker that has it is searched, .*; set rankers.NAME.search.space.learning_rate",
        ),
        ({"data": {"generate": {"seed": -1}}}, r"data.generate.seed: input should be greater than or equal to 0 \(given: -1\)"),
        (
            {"data": {"files": "a", "clicks": {"log": "l", "similarity": 0.5}}},
            "data.clicks: similarity: 0.5 says which queries are similar; it needs queries: similar",
        ),
        ({**SHORT, "select": "ndgc"}, "unknown measure 'ndgc'"),
        ({**SHORT, "measures": []}, r"measures: list should have at least 1 item"),
        ({**SHORT, "rankers": "auto", "budget": float("inf")}, r"budget: input should be a finite number \(given: Infinity\)"),
        ({"data": {"files": "a", "binarise": float("nan")}}, r"data.binarise: input should be a finite number \(given: NaN\)"),
        ({"data": {"generate": {"queries": 20}}}, "data.generate.queries: input should be a valid list .given: 20."),
        ({"data": {"generate": {"queries": [0, 1, 1]}}}, "data.generate.queries.0: input should be greater than or equal to 1"),
        ({"data": {"files": "a", "label": "query"}}, "two of query, document, label and weight are the column 'query'"),
        (
            {"data": {"files": "a", "clicks": {"log": "l", "more": {"click": {}}}}},
            "more: 'click' is the label that the log itself gives",
        ),
        ({**SHORT, "optimality": {"steps": []}}, "optimality.steps: list should have at least 1 item"),
        ({**SHORT, "conventions": {"ties": "random"}}, "conventions.ties"),
        ({"data": {}}, "exactly one of train, parts, files, qrels, generate; given: none"),
        ({"data": {"files": "a", "parts": ["b", "c", "d"]}}, "given: parts, files"),
        ({"data": {"train": "a"}}, "train needs test \(or use files"),
        ({"data": {"parts": ["a", "b"]}}, "at least 3"),
        ({"data": {"files": "a", "folds": 2}}, "folds: 2 leaves nothing"),
        ({"data": {"files": "a", "shares": [0.5, 0.2, 0.2]}}, "sum to 1"),
        ({"data": {"files": "a", "test": "b"}}, "test needs train, and the data are named by files"),
        ({"data": {"parts": ["a", "b", "c"], "folds": 5}}, "folds needs files or qrels"),
        ({**SHORT, "rankers": {"a@b": {"kind": "least_squares"}}}, "ranker name 'a@b'"),
        ({**SHORT, "sweep": {"learning_rate": []}}, "sweep.learning_rate"),
        ({**SHORT, "sweep": {"n_leaves": [3.5]}}, "sweep at {'n_leaves': 3.5}"),
        ({**SHORT, "seed": -1}, "seed"),
        ({**SHORT, "workers": 10**30}, "workers: a whole number has at most 64 bits"),
        ({**SHORT, "microscope": {"top": str(1 << 63)}}, "microscope: top: a whole number has at most 64 bits"),
        ({"data": {"generate": {"queries": [10**400, 1, 1]}}}, "generate: queries: a whole number has at most 64 bits"),
        ({**SHORT, "rankers": {"m": {"kind": "lambdamart", "normalise": "foo"}}}, "normalise"),
        ({**SHORT, "rankers": {"m": {"kind": "lambdamart", "stop_on": "foo"}}}, "unknown measure 'foo'"),
        ({**SHORT, "rankers": {"m": {"kind": "lambdamart", "sigma": 0}}}, "sigma=0"),
        ({**SHORT, "expect": {"values": {"linear": {"test_err": 1}}}}, "'test_err' is not reported"),
        ({**SHORT, "optimality": {"rankers": ["nobody"]}}, "no ranker 'nobody'"),
        ({**SHORT, "segments": {"baseline": "nobody"}}, "segments.baseline: no ranker 'nobody'; choose from: lambdamart, linear"),
        ({**SHORT, "segments": {"baseline": "linear", "rankers": ["lin"]}}, "segments.rankers: no ranker 'lin'"),
        ({**SHORT, "segments": {"baseline": "linear", "rankers": ["linear"]}}, "segments: no ranker besides the baseline 'linear'"),
        (
            {"data": {"files": "a.csv", "attributes": ["language"]}, "segments": {"baseline": "linear", "by": ["langage"]}},
            "segments.by: no attribute 'langage'; choose from: language, documents",
        ),
        ({**SHORT, "segments": {"baseline": "linear", "by": ["popularity"]}}, "no attribute 'popularity'.*data.clicks gives"),
        ({**SHORT, "segments": {"baseline": "linear", "measure": "ndgc"}}, "unknown measure 'ndgc'"),
        ({**SHORT, "segments": {"baseline": "linear", "fewest": 1}}, r"segments.fewest: .*greater than or equal to 2 \(given: 1\)"),
        ({"data": {"files": "a.csv", "attributes": ["label"]}}, "attributes: the column 'label' is named twice"),
        ({"data": {"files": "a.csv", "attributes": ["a", "a"]}}, "attributes: the column 'a' is named twice"),
        ({"data": {"files": "a.csv", "attributes": ["a/b"]}}, "attributes: 'a/b': rename the column"),
        ({"data": {"generate": {}, "attributes": ["a"]}}, "attributes: generated data have no columns besides features"),
        ({**SHORT, "expect": {"values": {"nobody": {}}}}, "no ranker 'nobody'"),
        ({**SHORT, "champion": {"name": "Search/Hotels"}}, r"champion.name: string should match pattern '\^\[A-Za-z0-9_-\]"),
    ],
)
def test_what_is_wrong_is_said(written, says):
    with pytest.raises(ConfigError, match=says) as caught:
        parse(written, "x.yaml")
    assert all(line.startswith("x.yaml: ") for line in str(caught.value).splitlines())


def test_several_faults_are_said_at_once():
    with pytest.raises(ConfigError) as caught:
        parse({"data": {"files": "a"}, "nam": "x", "sede": 3})
    assert len(str(caught.value).splitlines()) == 2


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        read(tmp_path / "none.yaml")
    path = tmp_path / "c.yaml"
    path.write_text("data: {files: [a\n")
    with pytest.raises(ConfigError, match="line 2: not YAML"):
        read(path)
    path.write_text("- a\n")
    with pytest.raises(ConfigError, match="mapping of keys, not list"):
        read(path)


def test_overrides(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(SHORT))
    config = read(path, ["sweep.learning_rate=[0.1,0.2]", "scale=0.5", "rankers.m={kind: lambdamart, n_trees: 10}"])
    assert [point.section.n_trees for point in config.cells("m")] == [10, 10]
    assert [point.settings for point in config.cells("m")] == [{"learning_rate": 0.1}, {"learning_rate": 0.2}]
    with pytest.raises(ConfigError, match=r"key.path=value"):
        read(path, ["scale"])
    with pytest.raises(ConfigError, match=r"--set name=\[: '\[' is not YAML"):
        read(path, ["name=["])
    with pytest.raises(ConfigError, match="not a section"):
        read(path, ["data.files.x=1"])


ANCHORED = """
data: {files: a.txt}
rankers:
  a: &trees {kind: lambdamart, sweep: {n_leaves: [3, 4]}}
  b: *trees
  c: {<<: *trees, n_trees: 7}
"""


def test_what_is_set_of_an_anchored_section_is_not_set_of_its_aliases(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(ANCHORED)
    found = read(path, ["rankers.a.n_trees=5", "rankers.a.sweep.n_leaves=[9]"]).rankers
    assert {name: one.n_trees for name, one in found.items()} == {"a": 5, "b": 500, "c": 7}
    assert {name: one.sweep["n_leaves"] for name, one in found.items()} == {"a": [9], "b": [3, 4], "c": [3, 4]}
    path.write_text("datasets: {A: {data: {generate: &g {seed: 1}}}, B: {data: {generate: *g}}}")
    seeds = {label: run.data.generate.seed for label, run in read_any(path, ["datasets.A.data.generate.seed=2"]).runs.items()}
    assert seeds == {"A": 2, "B": 1}
    path.write_text(
        f"repeat: {{rankers.a.n_trees: [5, 6]}}\ndatasets: {{A: {{data: {{files: a.txt}}}}}}\n{ANCHORED.split('txt}')[1]}"
    )
    runs = read_any(path).runs.values()
    assert [(run.rankers["a"].n_trees, run.rankers["b"].n_trees) for run in runs] == [(5, 500), (6, 500)]


def test_set_reaches_names_with_dots_places_of_lists_and_a_rankers_own_sweep(tmp_path):
    path = tmp_path / "c.yaml"
    graded = {"kind": "lambdamart", "objective": ["ndcg", {"measure": "map"}], "sweep": {"objective.1.weight": [0.5]}}
    path.write_text(yaml.safe_dump({**SHORT, "rankers": {"v1.2": graded, "plain": {"kind": "lambdamart"}}}))
    found = read(path, [
        "rankers.v1.2.n_trees=3", "rankers.v1.2.objective.1.weight=0.2", "rankers.v1.2.sweep.objective.1.weight=[0.1]",
        "rankers.plain.sweep.objective.0.cost=[logistic]",
    ]).rankers  # fmt: skip
    assert (found["v1.2"].n_trees, found["v1.2"].objective[1].weight) == (3, 0.2)
    assert found["v1.2"].sweep == {"objective.1.weight": [0.1]}
    assert found["plain"].sweep == {"objective.0.cost": ["logistic"]}
    with pytest.raises(ConfigError, match=r"objective.2.weight=1: '2' is not a place of a list of 2, counted from 0"):
        read(path, ["rankers.v1.2.objective.2.weight=1"])


def test_what_is_set_of_a_ranker_that_no_data_set_has_is_refused(tmp_path):
    path = tmp_path / "s.yaml"
    rankers = {"A": {"x": {"kind": "lambdamart"}}, "B": {"v1.2": {"kind": "lambdamart"}}}
    path.write_text(
        yaml.safe_dump({"datasets": {label: {"data": {"files": "a.txt"}, "rankers": own} for label, own in rankers.items()}})
    )
    runs = read_any(path, ["rankers.v1.2.n_trees=3", "rankers.x.n_trees=4"]).runs
    assert (runs["A"].rankers["x"].n_trees, runs["B"].rankers["v1.2"].n_trees) == (4, 3)
    for said in ("rankers.typo.n_trees=3", "rankers=auto"):
        with pytest.raises(ConfigError, match=f"--set {said}: every data set has rankers of its own; name one of them: x, v1.2"):
            read_any(path, [said])
    path.write_text(yaml.safe_dump({"datasets": {"A": {"data": {"files": "a.txt"}, "rankers": "auto"}}}))
    with pytest.raises(
        ConfigError, match=r"rankers\.x\.n_trees=4: every data set has rankers of its own; write them down in place of auto"
    ):
        read_any(path, ["rankers.x.n_trees=4"])


def test_sweeps_reach_into_terms_and_the_rankers_own_wins():
    graded = {
        "kind": "lambdamart",
        "objective": [{}, {"measure": "cndcg"}],
        "sweep": {"objective.1.weight": [0.1, 0.5], "n_leaves": [4]},
    }
    config = parse(
        {**SHORT, "rankers": {"g": graded, "ls": {"kind": "least_squares"}}, "sweep": {"n_leaves": [8, 16], "learning_rate": [0.3]}}
    )
    built = [point.section.build() for point in config.cells("g")]
    assert [(m.objective[1].weight, m.n_leaves, m.learning_rate) for m in built] == [(0.1, 4, 0.3), (0.5, 4, 0.3)]
    assert len(config.cells("ls")) == 1


def test_a_schedule_can_be_swept():
    term = {"measure": "ndcg", "cost": "sigmoid", "weight": {"start": 0.1, "kind": "linear", "eta": 0.01}}
    ranker = {
        "kind": "lambdamart",
        "gain": "least_squares",
        "leaf": "gradient",
        "objective": [{}, term],
        "sweep": {"objective.1.weight.eta": [0.1, 0.01]},
    }
    config = parse({**SHORT, "rankers": {"s": ranker}})
    assert [point.section.build().objective[1].weight.eta for point in config.cells("s")] == [0.1, 0.01]


def test_digest_sees_what_matters_and_not_the_workers():
    a = parse(SHORT)
    assert a.digest == parse({**SHORT, "workers": 3}).digest
    assert a.digest != parse({**SHORT, "seed": 2}).digest


def test_segments_by_every_column_and_against_all_other_rankers_unless_named():
    config = parse(
        {"data": {"files": "a.csv", "attributes": ["language", "text"]}, "segments": {"baseline": "linear", "measure": "err"}}
    )
    assert (config.segments.attributes(config), config.segments.contrasted(config)) == (["language", "documents"], ["lambdamart"])
    assert config.data.known == ["language", "documents", "length"]
    assert "err" in config.all_measures
    config = parse({"data": {"files": "a", "clicks": {"log": "b"}}, "segments": {"baseline": "linear", "by": ["popularity"]}})
    assert (config.segments.attributes(config), config.data.known) == (["popularity"], ["documents", "length", "popularity"])


def test_run_seed_and_measure_reach_the_rankers_that_name_none():
    config = parse(
        {
            **SHORT,
            "seed": 7,
            "select": "map",
            "rankers": {"a": {"kind": "lambdarank"}, "b": {"kind": "lambdarank", "seed": 2, "stop_on": "mrr"}},
        }
    )
    a, b = config.cells("a")[0].section, config.cells("b")[0].section
    assert (a.seed, a.stop_on, b.seed, b.stop_on) == (7, "map", 2, "mrr")


def test_data_and_conventions_of_another_configuration(tmp_path):
    (tmp_path / "table.yaml").write_text("name: table\ndata: {files: a.txt}\nselect: map\n")
    (tmp_path / "own.yaml").write_text("name: own\ndata: {files: b.txt}\nconventions: {threshold: 1}\nselect: mrr\n")
    config = read(tmp_path / "table.yaml", ["seed=3"], tmp_path / "own.yaml")
    assert (config.name, config.select, config.seed, config.conventions.threshold) == ("table-own", "map", 3, 1)
    assert [str(file) for file in config.data.files] == ["b.txt"]
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: no such file"):
        read(tmp_path / "table.yaml", data_of=tmp_path / "nowhere.yaml")


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[3] / "conf").glob("**/*.yaml")), ids=lambda p: p.stem)
def test_every_configuration_of_the_project_can_be_read(path):
    found = read_any(path)
    for config in found.runs.values() if isinstance(found, StudyConfig) else [found]:
        assert all(config.cells(ranker) for ranker in config.rankers)


@pytest.mark.parametrize(
    "text", ["data: {files: a.txt}\nselect: map\n", "name: s\ndatasets: {A: {data: {files: a.txt}}}\nselect: map\n"]
)
def test_a_configuration_is_read_once_and_may_come_through_a_pipe(text, tmp_path):
    path = tmp_path / "pipe.yaml"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(text,))
    writer.start()
    found = read_any(path)
    writer.join()
    run = found.runs["A"] if isinstance(found, StudyConfig) else found
    assert run.select == "map"


def test_a_study_is_one_run_a_data_set(tmp_path):
    def study(text, *overrides):
        (tmp_path / "s.yaml").write_text(text)
        return read_any(tmp_path / "s.yaml", overrides)

    text = "name: s\ndatasets: {A: {data: {files: a.txt}}, B: {data: {files: b.txt}, conventions: {threshold: 1}}}\nbaselines: [linear]\n"
    found = study(text, "scale=0.5")
    assert (found.name, found.baselines, list(found.runs)) == ("s", ("linear",), ["A", "B"])
    assert [run.name for run in found.runs.values()] == ["s-A", "s-B"]
    assert [run.scale for run in found.runs.values()] == [0.5, 0.5]
    assert found.runs["B"].conventions.threshold == 1
    assert isinstance(study("data: {files: a.txt}\n"), RunConfig)
    assert study(text.replace("[linear]", "linear")).baselines == ("linear",)
    assert study(text.replace("[linear]", "")).baselines == ()
    for wrong, says in (
        ("datasets: {micro-average: {data: {files: a.txt}}}", "datasets.micro-average: that is the name of the column over all"),
        ("datasets: []", "name each data set, with its data and conventions"),
        ("datasets: {A: {1: 2, foo: 3}}", "datasets.A: a data set has data, conventions and rankers, not 1"),
        ("datasets: {A: {files: a.txt}}", "datasets.A: a data set has data, conventions and rankers, not 'files'"),
        (text.replace("[linear]", "[lineal]"), "baselines: no ranker 'lineal'; choose from: lambdamart, linear"),
        (text.replace("{files: a.txt}", "{}"), "datasets.A: data: name the data by exactly one of"),
    ):
        with pytest.raises(ConfigError, match=says):
            study(wrong)


REPEATED = """
name: s
repeat: {data.generate.seed: [3, 5]}
datasets:
  drawn: {data: {generate: {}}}
  files: {data: {files: a.txt}, rankers: {alone: {kind: ranksvm}}}
"""


def test_what_is_repeated_is_a_run_a_value(tmp_path):
    def study(text):
        (tmp_path / "s.yaml").write_text(text)
        return read_any(tmp_path / "s.yaml")

    found = study(REPEATED)
    assert found.datasets == {"drawn": ("drawn-3", "drawn-5"), "files": ("files",)}
    assert [(run.name, run.data.generate and run.data.generate.seed) for run in found.runs.values()] == [
        ("s-drawn-3", 3), ("s-drawn-5", 5), ("s-files", None),
    ]  # fmt: skip
    assert [list(run.rankers) for run in found.runs.values()] == [["lambdamart", "linear"]] * 2 + [["alone"]]
    assert set(study(REPEATED.replace("data.generate.seed", "seed")).runs) == {"drawn-3", "drawn-5", "files-3", "files-5"}
    for wrong, says in (
        (REPEATED.replace("[3, 5]", "3"), "repeat: one key with the values that it takes"),
        (REPEATED.replace("[3, 5]", "[3, 3]"), "repeat.data.generate.seed: a value occurs twice"),
        (
            REPEATED.replace("data.generate.seed", "data.clicked_pages.seed"),
            "no data set has the section of data.clicked_pages.seed",
        ),
        (
            REPEATED.replace("files: {data", "drawn-3: {data"),
            "datasets.drawn-3: its run drawn-3 has the name of another data set's",
        ),
        (REPEATED.replace("generate.seed", "generate.sed"), "unknown key 'data.generate.sed'; did you mean seed"),
    ):
        with pytest.raises(ConfigError, match=says):
            study(wrong)


@pytest.mark.parametrize(
    ("ranker", "says"),
    [
        (
            {"objective": [{}, {"weight": 1.5}]},
            "rankers.a.objective.1.weight: input should be less than or equal to 1 (given: 1.5)",
        ),
        (
            {"objective": [{}, {"weight": {"start": 2, "kind": "linear", "eta": 1}}]},
            "objective.1.weight: schedule start 2 is outside [0, 1]",
        ),
        ({"objective": [{}, {"weight": {"kind": "linear", "eta": 1}}]}, "rankers.a.objective.1.weight.start: field required"),
        (
            {"sweep": {"objective.3.weight.start": [0.1]}},
            "rankers.a.sweep.objective.3.weight.start: there is no rankers.a.objective.3; rankers.a.objective has 1, counted from 0",
        ),
        ({"sweep": {"objective.0.weight.start": [0.1]}}, "objective.0.weight.start: rankers.a.objective.0.weight is null"),
        (
            {"sweep": {"learing_rate": [0.1]}},
            "rankers.a.sweep.learing_rate: there is no such parameter; did you mean learning_rate?",
        ),
    ],
)
def test_weights_and_schedules_that_cannot_be(ranker, says):
    with pytest.raises(ConfigError) as raised:
        parse({**SHORT, "rankers": {"a": {"kind": "lambdamart", **ranker}}}, "c.yaml")
    assert str(raised.value).count("\n") == 0
    assert says in str(raised.value)


def test_a_configuration_cannot_run_code_or_name_a_way_out_of_its_folder(tmp_path):
    touched = tmp_path / "touched"
    code = f'!!python/object/apply:os.system ["touch {touched}"]'
    (tmp_path / "c.yaml").write_text(f"name: x\ndata: {code}\n")
    with pytest.raises(ConfigError, match="line 2: not YAML: could not determine a constructor for the tag"):
        read(tmp_path / "c.yaml")
    (tmp_path / "c.yaml").write_text("data: {files: a.txt}\n")
    with pytest.raises(ConfigError, match="is not YAML"):
        read(tmp_path / "c.yaml", [f"data={code}"])
    for name in ("../../x", "/x", "..", "a/b", "n" * 101):
        with pytest.raises(ConfigError, match="letters, digits"):
            read(tmp_path / "c.yaml", [f"name={name}"])
    assert not touched.exists()


def test_a_key_of_the_data_may_leave_out_its_section():
    written = {"data": {"files": "a.txt"}}
    override_all(written, ["label=grade", "data.query=q", "clicks.log=l.csv", "parts=2", "seed=3"])
    assert written == {
        "data": {"files": "a.txt", "label": "grade", "query": "q", "clicks": {"log": "l.csv"}},
        "parts": 2,
        "seed": 3,
    }


def test_words_that_older_yaml_reads_as_yes_and_no_are_words():
    assert from_yaml("{on: [a, b], x: no, rate: 1e-3, t: true}", "c") == {"on": ["a", "b"], "x": "no", "rate": 0.001, "t": True}


def test_what_a_run_of_an_earlier_version_keeps_is_read_as_it_was_written():
    """It wrote 0018 without quotes, which is 18 to YAML 1.2."""
    kept = {"zip": ["08540", "0018", "1e5", "y"], "rate": 1e-05}
    text = yaml.safe_dump(kept)
    assert from_stored(text, "c") == kept != from_yaml(text, "c")
    with pytest.raises(ConfigError, match=r"^0123abcd, line 2: not YAML: "):
        from_stored("a: [1,\n", "0123abcd")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rankers:\n  a: 1\n  a: 2\n", "c.yaml, line 3: not YAML: found duplicate key "),
        ("a: [1,\n", "c.yaml, line 2: not YAML: expected the node content"),
        ("[" * 5000, "c.yaml: not YAML: it is nested too deeply"),
        ("a: &a [x, x, x, x, x, x, x, x]\n" + "".join(f"{n}: &{n} [{', '.join([f'*{m}'] * 8)}]\n" for m, n in pairwise("abcdefghij")),
         "c.yaml: its aliases unfold to more than 100,000 values"),
        ("a: 1\0", "c.yaml: not YAML: "),
    ],
)  # fmt: skip
def test_what_is_no_configuration_is_told_at_once(text, said):
    began = time.process_time()
    with pytest.raises(ConfigError) as caught:
        from_yaml(text, "c.yaml")
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)
    assert time.process_time() - began < 5


def test_a_file_of_another_encoding_is_refused(tmp_path):
    (tmp_path / "c.yaml").write_bytes("name: Käse\n".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"c\.yaml, byte 8: not UTF-8"):
        read(tmp_path / "c.yaml")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PAR1\x15\x04\x15\xff", "byte 8: not UTF-8"),
        (b"query,label,f\n1,0,2\n", "mapping of keys, not str"),
        (b"1 qid:1 1:0.5 #docid = 7\n0 qid:1 1:0.2 #docid = 8\n", "line 2: not YAML: .*"),
        (b"query\tlabel\n", "line 1: not YAML: .*"),
        (b"1,2,3\n" * 700_000, "4,200,000 bytes, and a configuration has 4,000,000 at most"),
    ],
    ids=["parquet", "csv", "letor", "tsv", "large"],
)
def test_data_in_place_of_a_configuration_are_told_where_they_are_named(tmp_path, content, said):
    (tmp_path / "d").write_bytes(content)
    with pytest.raises(ConfigError, match=rf"{said}; a configuration is YAML, and data are named in it \(data\.files\)"):
        read(tmp_path / "d")


def test_a_grid_of_a_million_cells_is_refused_with_its_size_at_once():
    grid = {"learning_rate": list(range(1, 101)), "n_leaves": list(range(2, 102)), "n_trees": list(range(1, 101))}
    began = time.perf_counter()
    with pytest.raises(ConfigError, match=r"sweep: 1,000,000 cells per fold \(trees 1,000,000\); at most 10,000"):
        parse({"data": {"files": "a"}, "rankers": {"trees": {"kind": "lambdamart", "sweep": grid}}})
    assert time.perf_counter() - began < 2


def test_an_empty_kind_of_evidence_is_refused_and_null_is_none(tmp_path):
    path = tmp_path / "c.yaml"
    for empty in ("microscope:\n", "microscope:   # later\n", "microscope :\nseed: 2\n"):
        path.write_text(f"data: {{files: a.txt}}\n{empty}")
        with pytest.raises(ConfigError, match=r"c.yaml: microscope: is empty; write microscope: \{\} \(or its keys\) to enable it"):
            read(path)
    path.write_text("data: {files: a.txt}\nmicroscope: null\noptimality:\n  epsilon: 0.1\n")
    config = read(path)
    assert [type(one).key for one in config.evidence] == ["optimality"]
    with pytest.raises(ConfigError, match="--set optimality=: optimality: is empty; write optimality:"):
        read(path, ["optimality="])
    assert not read(path, ["optimality=null"]).evidence


def test_a_misspelt_ranker_is_told_from_a_new_one_without_a_kind():
    written = {"data": {"files": "a.csv"}, "rankers": {"trees": {"kind": "lambdamart"}, "tres": {"n_trees": 3}}}
    with pytest.raises(ConfigError, match=r"rankers\.tres: did you mean trees\? a section names its kind: lambdamart, "):
        parse(written)
    with pytest.raises(ConfigError, match=r"rankers\.net: a section names its kind: lambdamart, "):
        parse({**written, "rankers": {"trees": {"kind": "lambdamart"}, "net": {"epochs": 3}}})


def test_a_table_on_other_data_goes_by_their_conventions_and_not_its_own(tmp_path):
    (tmp_path / "table.yaml").write_text(
        "name: table\ndatasets: {a: {data: {files: a.txt}, conventions: {threshold: 3}}}\nbaselines: [l]\nrepeat: {data.seed: [1]}\n"
        "conventions: {threshold: 2, empty: zero}\nrankers: {l: {kind: least_squares}}\n"
    )
    (tmp_path / "other.yaml").write_text("name: other\ndata: {files: o.txt}\n")
    config = read_any(tmp_path / "table.yaml", (), tmp_path / "other.yaml")
    assert (config.name, config.data.files, list(config.rankers)) == ("table-other", [Path("o.txt")], ["l"])
    assert config.core_conventions == ltr.Conventions()
    with pytest.raises(
        ConfigError, match=r"--data .*table.yaml: it has no section data; it is a study, and a run has one data set"
    ):
        read_any(tmp_path / "other.yaml", (), tmp_path / "table.yaml")


def test_what_is_set_reaches_every_data_set_of_a_study(tmp_path):
    (tmp_path / "study.yaml").write_text(
        "datasets: {a: {data: {files: a.txt}, conventions: {threshold: 1, empty: one}}, b: {data: {files: b.txt}}}\n"
        "rankers: {l: {kind: least_squares}}\n"
    )
    config = read_any(
        tmp_path / "study.yaml", ["conventions.threshold=3", "folds=4", "data.clean=true", "datasets.b.conventions.empty=one"]
    )
    a, b = config.runs.values()
    assert a.core_conventions == b.core_conventions == ltr.Conventions(threshold=3, empty="one")
    assert [(run.data.folds, run.data.clean) for run in (a, b)] == [(4, True), (4, True)]
    assert [run.data.files for run in (a, b)] == [[Path("a.txt")], [Path("b.txt")]]
    (tmp_path / "own.yaml").write_text(
        "datasets: {a: {data: {files: a.txt}}, b: {data: {files: b.txt}, rankers: {l: {kind: lambdarank, epochs: 9}}}}\n"
        "rankers: {t: {kind: lambdamart, n_trees: 8}, l: {kind: lambdarank, epochs: 5}}\n"
    )
    a, b = read_any(
        tmp_path / "own.yaml", ["rankers.t.n_trees=3", "rankers.l.epochs=2", "datasets.b.rankers.l.epochs=7"]
    ).runs.values()
    assert (a.rankers["t"].n_trees, a.rankers["l"].epochs) == (3, 2)
    assert (list(b.rankers), b.rankers["l"].epochs) == (["l"], 7)


def test_what_a_study_leaves_out_stands_in_its_title(tmp_path):
    (tmp_path / "s.yaml").write_text(
        "name: s\ndatasets: {a: {data: {files: a.txt}}, b: {data: {files: b.txt}}}\nrankers: {l: {kind: least_squares}}\n"
    )
    assert read_any(tmp_path / "s.yaml").title == "s"
    cut = read_any(tmp_path / "s.yaml", ["scale=0.5", "length=0.1"])
    assert cut.title == "s, cut to 0.5 of the queries and 0.1 of the trees and epochs"


def test_a_click_log_s_keys_that_nothing_reads_are_refused():
    with pytest.raises(
        ConfigError,
        match=r"--set min_impressions=50: nothing here reads min_impressions; this reads query, document, session",
    ):
        parse_click_log("log.csv", None, ["clicks.min_impressions=50"])
    for said in ("similarity=0.5", "by=clicks", "more={a: {}}", "log=other.csv"):
        with pytest.raises(ConfigError, match="nothing here reads"):
            parse_click_log("log.csv", "pbm", [said], ("model", "prior", "min_impressions"))
    known = parse_click_log("log.csv", "pbm", ["data.clicks.query=q", "min_impressions=50"], ("model", "prior", "min_impressions"))
    assert (known.query, known.min_impressions) == ("q", 50)
