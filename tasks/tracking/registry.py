"""MLflow's model registry: versions of a named model, and who is its champion."""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mlflow
import numpy as np
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from numpy.typing import NDArray

import ltr
from tasks.records import Columns, DataError
from tasks.store.cells import read_columns
from tasks.store.state import alone
from tasks.tracking.store import PARENT, PASSING, fluent, opened, patient
from tasks.tracking.tracked import require_digest

_DESCRIPTION_HOLDS = 4000
"""Characters that are written of a version's description; MLflow's databases hold 5,000."""
_BEFORE = "\n\nBefore: "
CHAMPION, CHALLENGER = "champion", "challenger"
PROFILE, EVIDENCE, LEARNED = "profile.json", "champion.json", "learned-queries.json"

_NOT_THERE = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")
"""What MLflow says of a run or a version that is deleted, and of an id that is none."""


@dataclass(frozen=True)
class Version:
    """A version of a registered model."""

    name: str
    number: str
    run_id: str
    tags: Mapping[str, str]
    client: MlflowClient

    @property
    def digest(self) -> str:
        """Digest of its model, as it was registered."""
        return self.tags.get("digest", "")

    def model(self) -> tuple[ltr.Ranker, Columns]:
        """The ranker itself, and how the files were read that it learned from.

        Raises:
            DataError: where its files are gone, damaged, or of a release that this one cannot read.
        """
        with TemporaryDirectory() as temporary:
            address = f"models:/{self.name}/{self.number}"
            folder = download_version(address, Path(temporary))
            try:
                return ltr.load(folder), read_columns(folder) or Columns()
            except ValueError as error:
                raise DataError(f"{address}: {str(error).removeprefix(f'{folder}: ').replace(f'{folder}/', '')}") from None

    def is_whole(self, model: ltr.Ranker, categories: Mapping[str, tuple[str, ...]]) -> bool:
        """Whether its files and its run are still there, and it reads the features that the model reads, and these categories."""
        try:
            own, columns = self.model()
        except DataError:
            return False
        alike = own.names == model.names and _base_of(own) == _base_of(model)
        return alike and self._has_run() and (not categories or columns.categories == categories)

    @patient
    def _has_run(self) -> bool:
        try:
            return bool(self.client.get_run(self.run_id).info.lifecycle_stage == "active") if self.run_id else False
        except MlflowException as error:
            if error.error_code not in _NOT_THERE:
                raise
            return False

    def profile(self) -> str | None:
        """That of the data it was trained on, as text (`tasks.evidence.drift`); None where its run kept none, or is deleted."""
        parent = self._tags_of_run().get(PARENT, "")
        return self._text(parent, PROFILE) if parent else None

    def learned(self) -> NDArray[np.uint64] | None:
        """Marks of the queries that it learned from, or was chosen on (of an older release, their keys alone); None where its run does not say, or not legibly, or is deleted."""
        written = self._text(self.run_id, LEARNED)
        try:
            return None if written is None else np.frombuffer(b64decode(json.loads(written)["keys"], validate=True), np.uint64)
        except (ValueError, KeyError, TypeError):
            return None

    @patient
    def _tags_of_run(self) -> Mapping[str, str]:
        try:
            return dict(self.client.get_run(self.run_id).data.tags) if self.run_id else {}
        except MlflowException as error:
            if error.error_code not in _NOT_THERE:
                raise
            return {}

    @patient
    def _text(self, run_id: str, name: str) -> str | None:
        """An artifact of a run; None where it has no such, which a store that does not answer does not say."""
        try:
            if not run_id or not any(entry.path == name for entry in self.client.list_artifacts(run_id)):
                return None
        except MlflowException as error:
            if error.error_code not in _NOT_THERE:
                raise
            return None
        with TemporaryDirectory() as folder:
            return Path(self.client.download_artifacts(run_id, name, folder)).read_text(encoding="utf-8", errors="replace")

    @patient
    def set_alias(self, alias: str) -> None:
        """Makes the registry call this version by an alias."""
        self.client.set_registered_model_alias(self.name, alias, self.number)

    @patient
    def note(self, tags: Mapping[str, str], text: str) -> None:
        """Attaches evidence: tags, and the description people read; what was said before stands below."""
        before = (self.client.get_model_version(self.name, self.number).description or "").split(_BEFORE)
        for said in before:
            if said and said != text.partition(_BEFORE)[0] and len(text) + len(_BEFORE) + len(said) <= _DESCRIPTION_HOLDS:
                text += f"{_BEFORE}{said}"
        for key, value in tags.items():
            self.client.set_model_version_tag(self.name, self.number, key, value)
        self.client.update_model_version(self.name, self.number, text)


@patient
def registered(
    name: str, run_id: str, model: ltr.Ranker, categories: Mapping[str, tuple[str, ...]], learned: NDArray[np.uint64]
) -> Version:
    """The version of the model that a cell's run logged; made once for a digest, the names of its features and the categories of its data's
    columns, of whose places alone the digest knows, and found afterwards, also by commands of this folder that do the same at the same time. Its run says from then on which queries it learned from or was chosen on (`learned`, their
    `tasks.data.known_again.marks`), in this run and in later ones that came to the same model."""
    client, _ = opened()
    with alone(Path("mlruns/.registry.lock")):
        return _registered(client, name, run_id, model, categories, learned)


def _registered(
    client: MlflowClient,
    name: str,
    run_id: str,
    model: ltr.Ranker,
    categories: Mapping[str, tuple[str, ...]],
    learned: NDArray[np.uint64],
) -> Version:
    try:
        client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    for version in client.search_model_versions(f"name = '{name}'"):
        found = _version(version, client)
        if found.digest == model.digest and (found.run_id == run_id or found.is_whole(model, categories)):
            before = found.learned()
            if before is not None and not np.isin(learned, before).all():
                _note_learned(client, found.run_id, np.union1d(before, learned))
            return found
    outputs = client.get_run(run_id).outputs
    assert outputs is not None
    model_id = outputs.model_outputs[0].model_id
    _note_learned(client, run_id, np.sort(learned))
    with fluent():
        made = client.create_model_version(name, f"models:/{model_id}", run_id, tags={"digest": model.digest}, model_id=model_id)
    return _version(client.get_model_version(name, made.version), client)


def _note_learned(client: MlflowClient, run_id: str, marks: NDArray[np.uint64]) -> None:
    client.log_text(run_id, json.dumps({"marks": len(marks), "keys": b64encode(marks.tobytes()).decode()}), LEARNED)


@patient
def download_version(address: str, folder: Path) -> Path:
    """The folder of a registered model's own files, below `folder`.

    Raises:
        DataError: where the registry has none at the address, or another program's, or its files are gone, or another model's than was registered.
    """
    opened()
    version = _version_at(address)
    with fluent():
        try:
            # By its number, as an alias may be given to another version meanwhile.
            path = mlflow.artifacts.download_artifacts(
                f"models:/{version.name}/{version.number}" if version else address, dst_path=str(folder)
            )
        except MlflowException as error:
            if error.error_code in PASSING:
                raise
            raise DataError(f"{address}: {error.message}") from None
    model = Path(path) / "artifacts" / "model"
    if not (model / "model.json").is_file():
        if (Path(path) / "MLmodel").is_file() and not any((Path(path) / "code").glob("ltr*")):  # ours carry the core along
            raise DataError(f"{address}: this model was not written by lambdaflow; name a version that a run registered")
        raise DataError(
            f"{address}: it is in MLflow, but its files are no longer where they were written (was the folder of the run that wrote it moved?)"
        )
    require_digest(address, model, version.digest if version else None)
    return model


@patient
def numbered(address: str) -> str:
    """The address of the version that an alias points to now, by its number; any other address as it is."""
    version = _version_at(address)
    return f"models:/{version.name}/{version.number}" if version else address


def _version_at(address: str) -> Version | None:
    """The version that an address names by its alias or its number, or as the latest; None for other addresses, and where there is none."""
    named = re.fullmatch(r"models:/([^/@]+)(?:@(.+)|/([0-9]+|latest))", address)
    if named is None:
        return None
    name, alias, number = named.groups()
    if number == "latest":
        return _found(
            lambda client: max(client.search_model_versions(f"name = '{name}'"), key=lambda one: int(one.version), default=None)
        )
    return _found(
        lambda client: client.get_model_version_by_alias(name, alias) if alias else client.get_model_version(name, number)
    )


@patient
def version_of(name: str, alias: str) -> Version | None:
    """The version an alias points to."""
    return _found(lambda client: client.get_model_version_by_alias(name, alias))


@patient
def version_numbered(name: str, number: str) -> Version | None:
    """The version of this number; None where it was deleted."""
    return _found(lambda client: client.get_model_version(name, number))


def _found(ask: Callable[[MlflowClient], Any]) -> Version | None:
    client, _ = opened()
    try:
        found = ask(client)
        return None if found is None else _version(found, client)
    except MlflowException as error:
        if error.error_code not in _NOT_THERE:
            raise  # a registry that does not answer is not one without such a version
        return None


@patient
def remove_alias(name: str, alias: str) -> None:
    """Takes an alias away from whatever version has it."""
    client, _ = opened()
    client.delete_registered_model_alias(name, alias)


def _base_of(model: ltr.Ranker) -> str | None:
    """The feature that holds the scores it starts from, where it is of trees and has one."""
    return getattr(model, "base_feature", None)


def _version(found: Any, client: MlflowClient) -> Version:
    return Version(found.name, str(found.version), found.run_id, dict(found.tags), client)
