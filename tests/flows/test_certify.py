"""Certificates of a model on files, from the command's configuration to the page."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.states import Running

import ltr
from flows.certify import Certified, certify_model
from tasks.config.reading import parse
from tasks.evidence.optimality import CertificateRecord
from tasks.records import DataError
from tests.conftest import make_queries

pytestmark = pytest.mark.usefixtures("prefect_server")


@pytest.fixture
def config(workplace):
    """Judged documents in a file, and a net that was trained on others of their kind."""
    queries = make_queries(30, seed=1)
    lines = [
        f"{queries.labels[row]:g} qid:{query} " + " ".join(f"{f + 1}:{value}" for f, value in enumerate(queries.features[row]))
        for query, (first, last) in enumerate(zip(queries.offsets[:-1], queries.offsets[1:], strict=True))
        for row in range(first, last)
    ]
    Path("judged.txt").write_text("\n".join(lines))
    ltr.save(ltr.LambdaRank(epochs=8, keep_epochs=(7,)).fit(make_queries(30)), Path("net"))
    return parse({"data": {"files": "judged.txt"}})


def certified(config, **more):
    return certify_model("net", config, "ndcg", epsilon=0.1, delta=0.1, **more)


def test_columns_of_text_that_the_model_does_not_read_are_left_out(workplace):
    queries = make_queries(12)
    names = tuple(f"f{k + 1}" for k in range(queries.n_features))
    ids = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))
    columns = {"query": ids, "label": queries.labels, "title": [f"t{k}" for k in range(len(ids))]}
    pl.DataFrame({**columns, **dict(zip(names, queries.features.T, strict=True))}).write_parquet("judged.parquet")
    ltr.save(replace(ltr.LeastSquares().fit(queries), names=names), Path("net"))
    found = certified(parse({"data": {"files": "judged.parquet"}}))
    assert found.notes == ("judged.parquet: column 'title' holds no numbers and the model does not read it, so it is left out",)
    assert found.certificates[0].directions == 22


def test_every_way_to_look_at_a_model_is_a_certificate_and_a_figure(config):
    found = certified(config, escape=2)
    assert isinstance(found, Certified)
    assert all(isinstance(certificate, CertificateRecord) for certificate in found.certificates)
    names = [certificate.ranker for certificate in found.certificates]
    ways = ("", ", absolute steps", ", steps from 0.001", ", absolute steps from 0.001", ", one weight at a time", ", epoch 7")
    assert names == [f"lambdarank{way}" for way in ways]
    assert [certificate.directions for certificate in found.certificates] == [22, 22, 22, 22, 8, 22]
    assert {certificate.measure for certificate in found.certificates} == {"ndcg"}
    assert [bool(certificate.escape) for certificate in found.certificates] == [True, False, False, False, False, True]
    assert found.certificates[0].escape.epochs == 2
    page = found.page.read_text()
    assert re.fullmatch(rf"optimality-{ltr.load('net').digest[:12]}-[0-9a-f]{{8}}-ndcg.html", found.page.name), (
        "of model, data and measure"
    )
    assert page.count("<svg") == 6
    assert "net on judged.txt" in page
    assert all(f"<h2>{certificate.ranker}: {certificate.verdict}</h2>" in page for certificate in found.certificates)


def test_the_seed_and_nothing_else_draws_the_directions(config):
    first = certified(config)
    (kept,) = Path(".lambdaflow/certificates").iterdir()
    kept.unlink()
    assert certified(config) == first
    other = certified(config, seed=2).certificates
    assert other[0].value == first.certificates[0].value
    assert other[0].curves != first.certificates[0].curves


def test_an_interrupted_one_goes_on_where_it_was_and_says_what_it_has_found(config, monkeypatch, capsys):
    certify_one, looked = ltr.certify, []

    def interrupted_once(*given, **how):
        looked.append(given)
        if len(looked) == 3:
            raise KeyboardInterrupt
        return certify_one(*given, **how)

    monkeypatch.setattr(ltr, "certify", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        certified(config)
    found = certified(config).certificates
    assert len(looked) == 7, "six, and the one that broke off"
    told = [certificate.brief for certificate in found]
    assert [line.strip() for line in capsys.readouterr().err.splitlines()][-7:] == ["optimality (6)", *told]


@pytest.mark.parametrize("damage", [lambda text: text.replace('"digest"', '"digesu"'), lambda text: "[1]", lambda text: text[:-9]])
def test_a_damaged_one_is_made_again(config, damage):
    found = certified(config)
    (kept,) = Path(".lambdaflow/certificates").iterdir()
    whole = kept.read_text(encoding="utf-8")
    kept.write_text(damage(whole), encoding="utf-8")
    assert certified(config) == found
    assert kept.read_text(encoding="utf-8") == whole


def test_a_model_with_the_same_weights_and_another_history_is_looked_at_anew(config):
    found = certified(config).certificates
    net = ltr.load(Path("net"))
    ltr.save(replace(net, states={}), Path("net"))
    assert [certificate.ranker for certificate in certified(config).certificates] == [
        certificate.ranker for certificate in found if not certificate.ranker.endswith("epoch 7")
    ]


def test_verdicts_are_an_artifact_in_prefect(config):
    found = certified(config)
    with get_client(sync_client=True) as client:
        artifacts = client.read_artifacts(artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=["optimality"])))
    written = max(artifacts, key=lambda artifact: artifact.created).data
    assert written.startswith("# net, ndcg\n")
    assert f"- **lambdarank**: {found.certificates[0].verdict}. " in written
    assert f"Figures: `{found.page}`" in written


def test_what_a_killed_one_left_running_is_closed(config):
    owners = Path(".lambdaflow/owners")
    owners.mkdir(parents=True)
    (owners / "killed").touch()
    with get_client(sync_client=True) as client:
        left = client.create_flow_run(flow(lambda: None, name="left"), state=Running(), tags=["owner:killed"])
        certified(config)
        assert client.read_flow_run(left.id).state.name == "Crashed"
    assert not (owners / "killed").exists()
    assert not Path("mlruns").exists()


def test_what_has_no_weights_or_is_nowhere_is_refused(config):
    ltr.save(ltr.Column("f1").fit(make_queries(30)), Path("column"))
    with pytest.raises(ValueError, match="weights"):
        certify_model("column", config, "ndcg")
    with pytest.raises(DataError, match=r"nothing: not a model folder, and no run id starts with 'nothing'$"):
        certify_model("nothing", config, "ndcg")


def test_a_document_without_a_score_is_named_as_it_is_in_the_file(config):
    text = Path("judged.txt").read_text()
    Path("judged.txt").write_text(re.sub(r"(qid:3 1:)\S+", r"\1inf", text, count=1))
    with pytest.raises(DataError, match=r"judged.txt, query '3': feature 'f1' is inf, and lambdarank has no score for that"):
        certified(config)
