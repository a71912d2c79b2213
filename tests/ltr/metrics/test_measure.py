"""Names of measures, and that the file of each one checks it by brute force."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import ltr
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import MEASURES, Definition, Measure, curve_of, fewer_is_better, gains_of, register, why_undefined
from tests.ltr.metrics.brute_force import cases

HERE = Path(__file__).parent
FILES = [
    import_module(f"tests.ltr.metrics.{path.stem}") for path in sorted(HERE.glob("test_*.py")) if "\nNAMES = " in path.read_text()
]


def test_every_measure_is_held_against_its_formula_its_ties_and_its_swaps():
    assert sorted(name for file in FILES for name in file.NAMES) == sorted(MEASURES)
    for file in FILES:
        for check in (file.test_values, file.test_swaps):
            (mark,) = check.pytestmark
            assert mark.args == (("name", "cutoff"), cases(*file.NAMES)), f"{file.__name__}.{check.__name__}"


def test_names():
    assert Measure.of("NDCG@10").key == Measure.of("ndcg_10").key == "ndcg_10"
    assert str(Measure.of("ndcg@3:freshness")) == "ndcg@3:freshness"
    assert Measure.of("ndcg@3:freshness").key == "ndcg_3_freshness"
    for wrong, rule in (
        ("ndgc_3", r"'ndgc_3'; did you mean (ndcg or cndcg|ndcg|cndcg or ndcg)\? choose from: "),
        ("zzz@3", "'zzz@3'; choose from: ndcg"),
    ):
        with pytest.raises(ValueError, match=rule):
            Measure.of(wrong)
    unknown = "; choose from: ndcg, .*; @K or _K for a cutoff can follow ndcg, (?!.*auc)(?!.*tau)"
    for wrong, rule in (
        ("ndcg@", "expected ndcg, ndcg@10 for a cutoff, or ndcg:SOURCE"),
        ("auc@x", "expected auc, or auc:SOURCE"),
        ("p@", "expected p@10, or p@10:SOURCE"),
        ("err@-1", "expected err, err@10"),
        ("x", unknown),
    ):
        with pytest.raises(ValueError, match=rule):
            Measure.of(wrong)
    for wrong, rule in (("ndgc", "unknown measure"), ("ndcg@0", "at least 1"), ("p", "needs a cutoff"), ("auc@3", "no cutoff")):
        with pytest.raises(ValueError, match=rule):
            Measure.of(wrong)
    with pytest.raises(ValueError, match="lower 'errors' is better, but this measure must be maximised"):
        Measure.maximised("errors")


def test_a_measure_reads_its_own_source_or_the_one_it_names():
    assert Measure.of("ndcg@3").source == "label"
    assert Measure.of("cndcg").source == "click"
    assert Measure.of("ndcg@3:freshness").source == "freshness"
    assert Measure.of(Measure("map")) == Measure("map")


def test_which_keys_are_better_when_they_fall():
    assert fewer_is_better("errors")
    assert fewer_is_better("errors_click")
    assert not fewer_is_better("ndcg_10")
    assert not fewer_is_better("err_5")


def test_a_name_is_registered_once_and_is_a_word():
    taken = MEASURES["map"]
    with pytest.raises(ValueError, match="a measure 'map' already"):
        register(taken)
    for wrong in ("ndcg10", "Ndcg", "a__b", ""):
        definition = Definition(wrong, "", "", "", taken.gain, taken.curve, taken.value, taken.prepare, taken.row)
        with pytest.raises(ValueError, match="a name is lower-case letters and underscores"):
            register(definition)
    assert "ndcg10" not in MEASURES


def test_gains_of_missing_labels_are_nothing_and_other_sources_are_relevant_above_zero():
    labels = np.array([np.nan, 1.0, 2.0])
    assert gains_of(Measure.of("ndcg"), labels, Conventions()).tolist() == [0, 1, 3]
    assert gains_of(Measure.of("map"), labels, Conventions()).tolist() == [0, 0, 1]
    assert gains_of(Measure.of("map:clicks"), labels, Conventions()).tolist() == [0, 1, 1]
    curve, cutoff = curve_of(Measure.of("ndcg"), 4, Conventions())
    assert (len(curve), cutoff) == (4, 4)
    curve, cutoff = curve_of(Measure.of("ndcg@2"), 4, Conventions())
    assert (np.count_nonzero(curve), cutoff) == (2, 2)


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ([np.nan, np.nan], "no document has a label"),
        ([1.0, 1.0], "all labels are 1: there is nothing to rank"),
        ([0.0, 1.0, np.nan], "no label reaches conventions.threshold=2; the labels are 0, 1"),
        ([1.0, np.nan], "no label reaches conventions.threshold=2; the labels are 1"),
        ([0.0, np.nan], "all labels are 0: there is nothing to rank"),
        ([0.0, 3.0], "within each query all documents are alike to it; the labels are 0, 3"),
        ([0.0, 1, 2, 3, 4, 5, 6], "the labels are 0, 1, 2, 3, 4, 5, …"),
    ],
)
def test_why_a_measure_is_undefined(labels, why):
    found = why_undefined(Measure.of("map"), np.array(labels), Conventions())
    assert found.startswith("map is undefined on every query: ")
    assert found.endswith(why)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("ndcg_99999999999999999999", "the cutoff must be at least 1, and at most 1,000,000,000"),
        ("ndcg@" + "9" * 5000, "the cutoff must be at least 1"),
        ("ndgc@10", "unknown measure 'ndgc@10'; did you mean ndcg"),
        (10, "measure 10: a measure is named in text, such as 'ndcg@10'"),
        (None, "measure None: a measure is named in text"),
    ],
)
def test_what_is_no_measure_says_what_would_be(given, says):
    with pytest.raises(ValueError, match=says):
        Measure.of(given)


@pytest.mark.parametrize(
    ("text", "other"),
    [("ndcg:10", "ndcg@10"), ("ndcg:10_x", "ndcg@10:x"), ("mrr:exact", "mrr_exact"), ("mrr:exact_x", "mrr_exact:x")],
)
def test_no_measure_is_called_as_another(text, other):
    with pytest.raises(
        ValueError, match=f"measure {text!r}: its name in results, .*, is that of {other}; give the source another name"
    ):
        Measure.of(text)


def test_every_key_is_of_its_measure():
    for name, definition in MEASURES.items():
        for cutoff in (None,) * (not definition.needs_cutoff) + (7,) * (not definition.whole):
            for source in (None, "x", "x_7", "machine_labels", "exact_" * (name != "mrr") or "y"):
                measure = Measure.of(str(Measure(name, cutoff, source)))
                assert Measure.of_key(measure.key) == measure


def test_a_key_of_nothing_is_told():
    with pytest.raises(ValueError, match="'foo_10' is not the key of a measure; choose from: ndcg"):
        Measure.of_key("foo_10")
    assert not fewer_is_better("foo_10")


def test_fewer_is_better_by_the_whole_name(monkeypatch):
    monkeypatch.setitem(MEASURES, "errors_saved", replace(MEASURES["tau"], name="errors_saved"))
    assert [fewer_is_better(key) for key in ("errors", "errors_10", "errors_click", "errors_saved", "errors_saved_10", "ndcg_10")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip
    assert ltr.combine([2, 1, 0.0], [3, 2, 1.0], [-3, -2, -1.0], [0, 3], "errors_saved").best[2] == 1
