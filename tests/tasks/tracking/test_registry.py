"""Addresses of the registry that lead nowhere; what leads somewhere is in test_champion."""

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INTERNAL_ERROR
from mlflow.tracking import MlflowClient

import ltr
from tasks.records import DataError, TrackingError
from tasks.tracking import registry, store
from tasks.tracking.lookup import find_model
from tasks.tracking.registry import CHAMPION, Version, version_of
from tests.conftest import make_queries


def test_what_is_not_registered_is_one_line(workplace):
    assert version_of("nobody", CHAMPION) is None
    for address in ("models:/nobody@champion", "models:/nobody/3"):
        with pytest.raises(DataError, match=f"^{address}: ") as caught:
            find_model(address)
        assert "\n" not in str(caught.value)


def test_a_registry_that_does_not_answer_is_not_one_without_a_champion(workplace, monkeypatch):
    def down(*_):
        raise MlflowException("connection refused", INTERNAL_ERROR)

    monkeypatch.setattr(store, "_PAUSES", ())
    monkeypatch.setattr(MlflowClient, "get_model_version_by_alias", down)
    with pytest.raises(TrackingError, match="does not answer: connection refused"):
        version_of("search", CHAMPION)


def test_files_that_are_gone_are_told_with_the_address(workplace, monkeypatch, tmp_path):
    monkeypatch.setattr("mlflow.artifacts.download_artifacts", lambda address, dst_path: dst_path)
    with pytest.raises(DataError, match=r"^models:/search@champion: it is in MLflow, but its files are no longer where they were"):
        find_model("models:/search@champion")


def test_a_version_that_another_program_registered_is_told_as_such(workplace, monkeypatch, tmp_path):
    """Its files were said to be no longer where they had been written."""
    monkeypatch.setattr("mlflow.artifacts.download_artifacts", lambda address, dst_path: str(tmp_path))
    (tmp_path / "MLmodel").write_text("flavors: {}")
    with pytest.raises(DataError, match=r"^models:/search@champion: this model was not written by lambdaflow"):
        find_model("models:/search@champion")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "ltr.zip").touch()
    with pytest.raises(DataError, match=r"^models:/search@champion: it is in MLflow, but its files are no longer"):
        find_model("models:/search@champion")


def test_files_of_another_model_are_no_version(workplace, monkeypatch, tmp_path):
    """A champion whose folder was exchanged for another model's was served, and challengers were held against that one."""
    queries, place = make_queries(10), tmp_path / "artifacts" / "model"
    registered, other = (ltr.LeastSquares(ridge=ridge).fit(queries) for ridge in (0.0, 5.0))
    version = SimpleNamespace(name="search", version="3", run_id="run", tags={"digest": registered.digest})
    first = SimpleNamespace(name="search", version="2", run_id="run", tags={})
    client = SimpleNamespace(
        get_model_version_by_alias=lambda *_: version,
        get_model_version=lambda *_: version,
        search_model_versions=lambda _: [first, version],
    )
    asked = []
    monkeypatch.setattr(registry, "opened", lambda: (client, None))
    monkeypatch.setattr("mlflow.artifacts.download_artifacts", lambda address, dst_path: asked.append(address) or str(tmp_path))
    for address in ("models:/search@champion", "models:/search/3", "models:/search/latest"):
        ltr.save(registered, place)
        assert find_model(address).digest == registered.digest
        ltr.save(other, place)
        with pytest.raises(DataError, match=rf"^{address}: the files of its model are another model's \(digest {other.digest[:8]}"):
            find_model(address)
    with pytest.raises(DataError, match="they were replaced"):
        registry.version_of("search", CHAMPION).model()
    assert {*asked} == {"models:/search/3"}, "of an alias too: it may be another's by the next question"


@pytest.mark.parametrize("kept", ["", "{", "[]", "{}", '{"keys": 3}', '{"keys": "AAA"}', '{"keys": "ä"}'])
def test_what_a_version_learned_from_is_not_known_where_its_file_is_damaged(monkeypatch, kept):
    version = Version("search", 1, "run", {}, None)
    monkeypatch.setattr(Version, "_text", lambda *_: kept)
    assert version.learned() is None


def test_a_server_that_does_not_answer_is_told_in_one_line_of_a_download_too(workplace, monkeypatch):
    def down(*_, **__):
        raise MlflowException("Max retries exceeded", INTERNAL_ERROR)

    monkeypatch.setattr(store, "_PAUSES", ())
    for place in ("mlflow.artifacts.download_artifacts", "tasks.tracking.registry.opened"):
        with monkeypatch.context() as patch:
            patch.setattr(place, down)
            with pytest.raises(TrackingError, match="does not answer: Max retries exceeded; what is finished is kept"):
                find_model("models:/search@champion")


def test_commands_that_register_one_model_at_the_same_time_make_one_version(workplace, monkeypatch):
    """Three terminals with one command each made a version of their own."""
    (workplace / "mlruns").mkdir()
    versions = []

    def make(name, source, run_id, tags, model_id):
        time.sleep(0.05)
        versions.append(SimpleNamespace(name=name, version=str(len(versions) + 1), run_id=run_id, tags=tags))
        return versions[-1]

    run = SimpleNamespace(outputs=SimpleNamespace(model_outputs=[SimpleNamespace(model_id="m")]))
    client = SimpleNamespace(
        create_registered_model=lambda name: None,
        search_model_versions=lambda query: [*versions],
        log_text=lambda *_: None,
        get_run=lambda run_id: run,
        create_model_version=make,
        get_model_version=lambda name, number: versions[int(number) - 1],
    )
    monkeypatch.setattr(registry, "opened", lambda: (client, None))
    monkeypatch.setattr(Version, "_text", lambda *_: None)
    with ThreadPoolExecutor(3) as terminals:
        asked = [
            terminals.submit(registry.registered, "search", "run", SimpleNamespace(digest="d"), {}, np.array([1], np.uint64))
            for _ in range(3)
        ]
    assert [one.result().number for one in asked] == ["1", "1", "1"]


def test_a_version_that_a_later_run_comes_to_again_learned_from_both_runs_queries(workplace, monkeypatch):
    (workplace / "mlruns").mkdir()
    noted = {}
    known = SimpleNamespace(name="search", version="1", run_id="first", tags={"digest": "d"})
    client = SimpleNamespace(
        create_registered_model=lambda name: None,
        search_model_versions=lambda query: [known],
        log_text=lambda run_id, text, name: noted.update({run_id: text}),
    )
    monkeypatch.setattr(registry, "opened", lambda: (client, None))
    monkeypatch.setattr(Version, "_text", lambda self, run_id, name: noted.get(run_id))
    monkeypatch.setattr(Version, "is_whole", lambda *_: True)
    registry._note_learned(client, "first", np.array([2, 5], np.uint64))
    for run_id, learned in (("first", [5, 2]), ("second", [9, 2]), ("third", [2])):
        version = registry.registered("search", run_id, SimpleNamespace(digest="d"), {}, np.array(learned, np.uint64))
        assert version.run_id == "first"
        assert version.learned().tolist() == ([2, 5] if run_id == "first" else [2, 5, 9])
    assert [*noted] == ["first"]
