"""Certificates: what they say in words and pages, and how they are kept beside their cells."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import ltr
from tasks.config.ranker_section import SECTIONS, Conventions
from tasks.evidence import optimality
from tasks.evidence.optimality import (
    CertificateRecord,
    Certificates,
    Escape,
    Optimality,
    certify,
    examine,
    optimality_figure,
    write_certificates,
)
from tasks.records import Cell, Fold, Trained
from tasks.store.cells import CellFolder
from tasks.store.datasets import keep_queries
from tasks.training.cell import train
from tasks.training.how_far import how_far
from tests.conftest import make_queries
from tests.tasks.evidence.samples import CERTIFICATE, CERTIFICATES


def test_what_a_certificate_says():
    assert "no direction rises: with confidence 99% fewer than 1% do" in CERTIFICATE.text()
    assert "1 direction rises" in replace(CERTIFICATE, verdict="not", rising=1).text()
    assert "2 steps from 0.1 to 0.2 of ‖w‖; " in CERTIFICATE.text()
    assert "2 steps from 0.1 to 0.2, absolute (‖w‖ = 2); " in replace(CERTIFICATE, relative=False).text()
    withheld = replace(CERTIFICATE, verdict="inconclusive", why="all weights are 0", rising=3)
    assert withheld.text().startswith("all weights are 0; 3 directions rise. ")
    assert withheld.brief == f"{CERTIFICATE.ranker}: inconclusive (all weights are 0)"
    assert CERTIFICATE.brief == f"{CERTIFICATE.ranker}: {CERTIFICATE.verdict}"
    escaped = replace(CERTIFICATE, escape=Escape(10, 0.001, 0.81))
    assert escaped.text().endswith("Trained for 10 more epochs, it rises: 0.8100 at best (learning rate 0.001).")
    as_it_was = replace(CERTIFICATE, escape=Escape(10, 0.001, float(np.nextafter(CERTIFICATE.value, 1))))
    assert "it does not rise: " in as_it_was.text(), "a mean summed in another order"


def test_weights_moved_alone_are_no_sample_of_directions():
    alone = replace(CERTIFICATE, one_at_a_time=True, directions=4)
    assert alone.text().startswith(
        "none of the 4 ways to move one weight raises it; that says nothing about moving several at once. "
    )
    assert replace(alone, verdict="not", rising=3).text().startswith("3 of the 4 ways to move one weight raise it. ")
    assert "confidence" not in alone.text() + replace(alone, verdict="not", rising=1).text()
    bounds = [c["upper_bound"] for c in Certificates((CERTIFICATE, alone), ("x",)).numbers()["optimality"]]
    assert bounds == [CERTIFICATE.upper_bound, None]


def test_a_certificate_is_read_as_it_was_written():
    for certificate in (CERTIFICATE, replace(CERTIFICATE, escape=Escape(10, 0.001, 0.81), key="k")):
        assert CertificateRecord.read(certificate.as_json()) == certificate


def test_how_much_of_a_certificate_is_done_is_known_while_it_is_made(monkeypatch):
    queries, told = make_queries(20), []

    def watched(*given, tick, **options):
        def both(share):
            tick(share)
            told.append(how_far())

        return made(*given, tick=both, **options)

    made = ltr.certify
    monkeypatch.setattr(ltr, "certify", watched)
    model = ltr.LambdaRank(epochs=2).fit(queries)
    list(examine(model, queries, Optimality(measure="ndcg", absolute=True), ltr.Conventions(), 1, "net"))
    assert "100% of net" in told
    assert told[-1] == "100% of net, absolute steps"
    assert how_far() == ""


def test_only_certificates_of_a_rankers_own_weights_are_tags():
    early = replace(CERTIFICATE, ranker="linear, epoch 7", verdict="not")
    found = replace(CERTIFICATES, found=(CERTIFICATE, early))
    assert found.tags() == {"optimality.linear": "optimum"}
    assert set(found.figures) == {"optimality-linear", "optimality-linear-epoch-7"}


def test_the_figure_and_the_page_alone(tmp_path):
    assert optimality_figure(CERTIFICATE).count("<path") > 5
    text = write_certificates([CERTIFICATE], "m on <a>", tmp_path / "p" / "page.html").read_text()
    assert "<h2>linear: optimum</h2>" in text
    assert "m on &lt;a&gt;" in text


def unheard(found: str) -> None:
    """Nobody looks at the progress."""


@pytest.fixture
def cell(workplace):
    fold = Fold(*(keep_queries(make_queries(30, seed=seed)) for seed in range(3)))
    section = SECTIONS["lambdarank"](kind="lambdarank", epochs=3).model_dump(mode="json", exclude={"sweep"})
    return Cell("x", "x", 0, {}, section, fold, ("ndcg@10",), Conventions().model_dump(mode="json"))


def test_certificates_are_kept_and_look_at_early_epochs_too(cell):
    result = train.fn(replace(cell, section={**cell.section, "keep_epochs": [1]}))
    config = Optimality(
        measure="ndcg", epsilon=0.1, delta=0.1, absolute=True, fine=True, one_at_a_time=True, early_epochs=(1,), escape=2
    )
    found = certify.fn(Trained(cell, result), config, 1, unheard)
    ways = ["", ", absolute steps", ", steps from 0.001", ", absolute steps from 0.001", ", one weight at a time"]
    assert [c.ranker for c in found] == [*(f"x{way}" for way in ways), "x, epoch 1"]
    assert [c.relative for c in found] == [True, False, True, False, True, True]
    assert [c.one_at_a_time for c in found] == [False] * 4 + [True, False]
    assert found[0].directions == 22
    assert len(found[0].envelope[0]) == 10
    assert found[0].escape.epochs == found[5].escape.epochs == 2
    assert found[5].value != found[0].value
    for certificate in (found[0], found[5]):
        assert certificate.escape.best > certificate.value - 0.01, "by the same rules"
    assert certify.fn(Trained(cell, result), config, 1, unheard) == found


@pytest.mark.parametrize("after", [1, 3, 5])
def test_certificates_that_were_found_before_an_interruption_are_not_looked_for_again(cell, monkeypatch, after):
    trained = Trained(cell, train.fn(replace(cell, section={**cell.section, "keep_epochs": [1]})))
    config = Optimality(epsilon=0.3, delta=0.3, absolute=True, fine=True, one_at_a_time=True, early_epochs=(1,), escape=1)
    looked, certify_one = [], ltr.certify

    def interrupted_once(*given, **how):
        if len(looked) == after:
            looked.append(None)
            raise KeyboardInterrupt
        looked.append(certify_one(*given, **how))
        return looked[-1]

    monkeypatch.setattr(ltr, "certify", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        certify.fn(trained, config, 1, unheard)
    told: list[str] = []
    found = certify.fn(trained, config, 1, told.append)
    assert len(looked) == 7, "six, and the one that broke off"
    assert told == [certificate.brief for certificate in found]
    assert certify.fn(trained, config, 1, unheard) == found
    assert len(looked) == 7
    (kept,) = CellFolder.of(trained.result.key).path.glob("optimality-*.json")
    kept.unlink()
    assert certify.fn(trained, config, 1, unheard) == found


def test_no_two_questions_have_one_file(monkeypatch, workplace):
    """Of data, model, conventions, seed and what is asked each."""
    monkeypatch.setattr(optimality, "kept_one_by_one", lambda path, others, done: path)
    queries, silent = make_queries(8), SimpleNamespace(begin=lambda text, steps: None, done=unheard)
    model = ltr.LeastSquares().fit(queries)
    asked = {"name": "a", "model": model, "config": Optimality(), "conventions": ltr.Conventions(), "seed": 1}
    others = [
        {"name": "b"},
        {"model": replace(model, names=tuple(reversed(model.names)))},
        {"model": replace(model, standardise=not model.standardise)},
        {"model": replace(model, weights=model.weights + 1)},
        {"config": Optimality(escape=2)},
        {"config": Optimality(measure="map")},
        {"conventions": ltr.Conventions(threshold=1)},
        {"seed": 2},
    ]
    paths = [optimality.certify_on(queries, progress=silent, **{**asked, **other}) for other in [{}, *others]]
    assert len(set(paths)) == len(paths)
    assert optimality.certify_on(queries, progress=silent, **asked) == paths[0]


def test_trees_have_a_certificate_over_their_leaves(cell):
    config = Optimality(measure="ndcg", epsilon=0.1, delta=0.1)
    section = SECTIONS["lambdamart"](kind="lambdamart", n_trees=2, min_docs_in_leaf=3).model_dump(mode="json", exclude={"sweep"})
    trees = train.fn(replace(cell, section=section))
    (found,) = certify.fn(Trained(cell, trees), config, 1, unheard)
    assert found.directions == 22
    assert found.escape is None
    split = json.loads(CellFolder.of(trees.key).importance.read_text())
    assert sum(split["splits"]) > 0
    assert [s > 0 for s in split["splits"]] == [g > 0 for g in split["gain"]]


def test_a_net_whose_training_had_not_come_to_rest_gets_no_verdict(cell):
    """Three epochs say nothing of an optimum; states of early epochs are what they are."""
    result = train.fn(replace(cell, section={**cell.section, "keep_epochs": [1]}))
    own, early = certify.fn(Trained(cell, result), Optimality(epsilon=0.1, delta=0.1, early_epochs=(1,)), 1, unheard)
    assert own.verdict == "inconclusive"
    assert own.why.startswith("training may not have converged: it ran for 3 epochs")
    assert early.verdict == "not"
