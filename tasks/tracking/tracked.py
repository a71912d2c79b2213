"""Runs as they stand in the store: found, read, and closed where whoever wrote them is gone."""

import atexit
import itertools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import isclose
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import mlflow
from mlflow.entities import (
    RunStatus,
    ViewType,
)
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from tasks.records import DataError
from tasks.store.values import means, read_values
from tasks.tracking.store import CELL_KEY, DIGEST, OWNER, PARENT, fluent, is_there, opened, patient


@dataclass(frozen=True)
class Tracked:
    """A run as it stands in the store."""

    id: str
    name: str
    tags: Mapping[str, str]
    params: Mapping[str, str]
    client: MlflowClient

    def noted(self, tag: str) -> str | None:
        """The value of one of our tags, of all its pieces, also where 0.1.0 wrote it: by its bare name."""
        if tag not in self.tags:
            return self.tags.get(tag.removeprefix("lambdaflow."))
        more = itertools.takewhile(self.tags.__contains__, (f"{tag}.{k}" for k in itertools.count(2)))
        return "".join((self.tags[tag], *(self.tags[name] for name in more)))

    def children(self) -> list["Tracked"]:
        """The cells of this run."""
        return tracked(f"tags.`{PARENT}` = '{self.id}'")

    @patient
    def data_digests(self) -> dict[str, str]:
        """The digests of its data sets by name (`tasks.tracking.description.logged_digests`)."""
        inputs = self.client.get_run(self.id).inputs
        return {one.dataset.name: one.dataset.digest for one in inputs.dataset_inputs} if inputs else {}

    @patient
    def download(self, path: str) -> Path:
        """An artifact as a local file, for as long as this process lives.

        Raises:
            ValueError: where it is gone.
        """
        if not any(entry.path == path for entry in self.client.list_artifacts(self.id, path.rpartition("/")[0] or None)):
            again = (
                "run the same configuration again, which writes it again"
                if self.tags.get(CELL_KEY) is None
                else "--fresh creates it again"
            )
            raise ValueError(f"run {self.id[:8]} no longer has {path} in MLflow; {again}")
        return Path(self.client.download_artifacts(self.id, path, mkdtemp(dir=_downloads())))

    @patient
    def download_model(self, folder: Path) -> Path:
        """The folder of the logged model's own files.

        Raises:
            ValueError: where the run has no model, or it or its files are gone.
        """
        outputs = self.client.get_run(self.id).outputs
        if outputs is None or len(outputs.model_outputs) != 1:
            raise ValueError(f"run {self.id[:8]} has no model")
        try:
            with fluent():
                path = mlflow.artifacts.download_artifacts(f"models:/{outputs.model_outputs[0].model_id}", dst_path=str(folder))
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            raise ValueError(
                f"the model of run {self.id[:8]} was deleted in MLflow; run the same configuration again, which creates it again"
            ) from None
        found = Path(path) / "artifacts" / "model"
        if not (found / "model.json").is_file():
            raise ValueError(
                f"the files of the model of run {self.id[:8]} are no longer where MLflow says; run the same configuration again, which "
                "creates them again (in another folder than the run's, with --fresh)"
            )
        require_digest(f"run {self.id[:8]}", found, self.tags.get(DIGEST))
        return found

    @patient
    def download_values(self) -> Path:
        """Its per-query values as a local file.

        Raises:
            ValueError: where they are gone, or another run's: their means are not those that it noted.
        """
        path = self.download("values.parquet")
        logged, found = self.client.get_run(self.id).data.metrics, means(read_values(path, "test"))
        if other := [
            name for name in found if name in logged and not isclose(found[name], logged[name], rel_tol=1e-9, abs_tol=1e-12)
        ]:
            raise DataError(
                f"run {self.id[:8]}: the mean of {other[0]} in its values.parquet is {found[other[0]]:.6g}, but the run logged {logged[other[0]]:.6g}: the file "
                "was replaced; --fresh creates it again"
            )
        return path


@cache
def _downloads() -> str:
    """The folder that this process downloads into, which is removed at its end: those that MLflow makes stay."""
    folder = mkdtemp(prefix="lambdaflow-")
    atexit.register(rmtree, folder, ignore_errors=True)
    return folder


def require_digest(whose: str, folder: Path, digest: str | None) -> None:
    """Raises DataError where a model's folder is not of the digest that was noted when it was written there; releases before 0.2 noted none."""
    try:
        found = json.loads((folder / "model.json").read_bytes())["digest"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return  # `ltr.load` says what is wrong with it
    if digest and found != digest:
        raise DataError(
            f"{whose}: the files of its model are another model's (digest {str(found)[:8]}, and {digest[:8]} was noted): they were replaced; restore "
            "them, or run the same configuration again with --fresh"
        )


@patient
def close_abandoned(is_gone: Callable[[str], bool]) -> None:
    """Marks as KILLED what stands as RUNNING though its owner is gone: runs, and their half-made cells; looking for them makes nothing."""
    if not is_there():
        return
    client, experiment = opened()
    running = client.search_runs([experiment], "attributes.status = 'RUNNING'", max_results=1000)
    abandoned = {run.info.run_id for run in running if is_gone(run.data.tags.get(OWNER, ""))}
    for run in running:
        if run.info.run_id in abandoned or run.data.tags.get(PARENT) in abandoned:
            client.set_terminated(run.info.run_id, RunStatus.to_string(RunStatus.KILLED))


def tracked_by_id(beginning: str, deleted: bool = False) -> list[Tracked]:
    """The runs whose ids begin so, as `tracked` finds them."""
    return tracked(f"attributes.run_id LIKE '{beginning}%'", deleted) if re.fullmatch(r"[0-9a-f]{1,32}", beginning) else []


@patient
def other_experiment(run: str) -> str | None:
    """The name of an experiment other than the project's that has a run whose id begins so, where there is one."""
    if not (is_there() and re.fullmatch(r"[0-9a-f]{1,32}", run)):
        return None
    client, ours = opened()
    names = {one.experiment_id: one.name for one in client.search_experiments() if one.experiment_id != ours}
    found = client.search_runs(list(names), f"attributes.run_id LIKE '{run}%'", max_results=1) if names else []
    return names[found[0].info.experiment_id] if found else None


@patient
def tracked(where: str = "", deleted: bool = False) -> list[Tracked]:
    """The runs of the project that MLflow's filter `where` takes, newest first, or those of them that were deleted; looking for them makes
    nothing. A store of many nights has thousands, which take minutes to read."""
    if not is_there():
        return []
    client, experiment = opened()
    runs, token = [], None
    while True:
        kind = ViewType.DELETED_ONLY if deleted else ViewType.ACTIVE_ONLY
        page = client.search_runs([experiment], where, kind, max_results=1000, page_token=token)
        runs += [Tracked(run.info.run_id, run.info.run_name or "", run.data.tags, run.data.params, client) for run in page]
        token = page.token
        if not token:
            return runs
