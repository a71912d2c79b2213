"""A run in MLflow: one parent run, a child for each cell, the best cell's numbers on the parent.

Runs are found again by tags (`RUN_KEY` on the parent, `CELL_KEY` on a child), so a command that is run again continues where it
was: finished children are left alone, half-made ones are made anew, nothing appears twice. Curves go in one batch, models as
code-based pyfuncs without pickle.
"""

import itertools
import json
import tempfile
import time
from asyncio import CancelledError
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from getpass import getuser
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from urllib.parse import unquote, urlparse
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import mlflow
from mlflow.entities import (
    Dataset,
    DatasetInput,
    InputTag,
    LoggedModel,
    LoggedModelOutput,
    LoggedModelStatus,
    Metric,
    Param,
    RunStatus,
    RunTag,
)
from mlflow.exceptions import MlflowException
from mlflow.models import Model
from pydantic import TypeAdapter
from sqlalchemy.exc import OperationalError

import ltr
from tasks.records import Budget, Cell, CellResult, LoggedDataset, short_name
from tasks.store.cells import CellFolder, PairsEntry, read_curve, read_pairs, read_position_bias
from tasks.store.state import alone
from tasks.tracking.secrets import masked
from tasks.tracking.store import BELOW, BUDGET, CELL_KEY, DIGEST, ERROR, OWNER, PARENT, RUN_KEY, SEARCHED, opened, patient

NOTE = "mlflow.note.content"
"""What MLflow shows as a run's description."""
_NOTE_HOLDS = 8000
NO_TAGS: Mapping[str, str] = {}
_SERVED = Path(__file__).with_name("served_model.py")


@cache
def _source() -> dict[str, str]:
    """What MLflow shows of where a run or a model comes from: the program and the user, where the system knows a name."""
    source = {"mlflow.source.name": "lambdaflow", "mlflow.source.type": "LOCAL"}
    with suppress(KeyError, OSError, ImportError):
        source["mlflow.user"] = getuser()
    return source


Item = TypeVar("Item")
_AT_A_TIME = 1000
"""Metrics that MLflow takes at once."""
_TAG_HOLDS = 5000
"""Characters of a tag; MLflow cuts what is above 8,000 without a word."""


def _pieces(name: str, text: str) -> Iterator[tuple[str, str]]:
    """A tag, and further ones for what it does not hold: ``NAME``, ``NAME.2``, …."""
    yield name, text[:_TAG_HOLDS]
    for k, first in enumerate(range(_TAG_HOLDS, len(text), _TAG_HOLDS), 2):
        yield f"{name}.{k}", text[first : first + _TAG_HOLDS]


def _batched(items: Iterable[Item], n: int) -> Iterator[list[Item]]:
    """Items so many at a time, in lists; ``itertools.batched`` is of Python 3.12."""
    rest = iter(items)
    while some := list(itertools.islice(rest, n)):
        yield some


class Tracker:
    """Writes one run and its cells."""

    @patient
    def __init__(
        self, name: str, run_key: str, fresh: bool = False, owner: str = "", is_elsewhere: Callable[[str], bool] = lambda who: False
    ) -> None:
        """The run of this key, or a new one: where it is new, `fresh`, or going on in another folder (`is_elsewhere`), whose half-made cells
        nobody here can tell from wreckage."""
        again = "client" in vars(self)  # the run may have been made, and the answer was lost
        self.client, self.experiment_id = opened()
        self._owner, self._is_elsewhere, self._now = owner, is_elsewhere, int(time.time() * 1000)
        with _alone_with(run_key):
            found = self._find(RUN_KEY, run_key) if again or not fresh else None
            if fresh and found and (found.data.tags.get(OWNER), found.info.status) != (owner, "RUNNING"):
                found = None
            self.run_id = found.info.run_id if found else self._create(name, {RUN_KEY: run_key, OWNER: owner})
        self.resumed = found is not None
        self.client.set_tag(self.run_id, OWNER, owner)
        self._failed_before = bool(found and ERROR in found.data.tags)
        self.was_finished = bool(found and found.info.status == "FINISHED")
        self._ended_at = found.info.end_time if found and self.was_finished else None
        if self.resumed and not self.was_finished:
            self.client.update_run(self.run_id, RunStatus.to_string(RunStatus.RUNNING))

    def _find(self, tag: str, value: str, parent: str | None = None) -> Any:
        """The latest run with this tag; not one that another folder is writing."""
        also = f" and tags.`{PARENT}` = '{parent}'" if parent else ""
        runs = self.client.search_runs(
            [self.experiment_id], f"tags.`{tag}` = '{value}'{also}", order_by=["attributes.start_time DESC"]
        )
        return next(
            (run for run in runs if run.info.status != "RUNNING" or not self._is_elsewhere(run.data.tags.get(OWNER, ""))), None
        )

    def _create(self, name: str, tags: Mapping[str, str]) -> str:
        return self.client.create_run(self.experiment_id, run_name=short_name(name), tags={**_source(), **tags}).info.run_id

    @contextmanager
    def running(self) -> Iterator[None]:
        """Whatever happens inside, no run is left RUNNING, and one that was finished before stays so."""
        try:
            yield
        except BaseException as error:
            if self.was_finished:
                raise
            with suppress(MlflowException, OSError, OperationalError):  # what went wrong first is told
                self._end(self.run_id, RunStatus.KILLED if _is_interruption(error) else RunStatus.FAILED)
                self.client.set_tag(self.run_id, ERROR, masked(_in_words(error))[:500])
            raise
        patient(self._end)(self.run_id, RunStatus.FINISHED, self._ended_at)
        if self._failed_before:
            with suppress(MlflowException):  # somebody has taken it away
                patient(self.client.delete_tag)(self.run_id, ERROR)

    @patient
    def says(self, tags: Mapping[str, str], file: str) -> bool:
        """Whether the parent run has these tags and the file still: people edit the one, and lose the other."""
        run = self.client.get_run(self.run_id)
        kept = all(run.data.tags.get(k) == v for name, text in tags.items() for k, v in _pieces(name, text))
        return kept and any(entry.path == file for entry in self.client.list_artifacts(self.run_id))

    def _end(self, run_id: str, status: int, at: int | None = None) -> None:
        """`at` in milliseconds since 1970, or now: a finished run that is repeated ended when it did."""
        self.client.set_terminated(run_id, RunStatus.to_string(status), at)

    @patient
    def describe(self, params: Mapping[str, Any], tags: Mapping[str, str], data: Sequence[LoggedDataset]) -> None:
        """Parameters, tags and data sets of the parent run."""
        self.client.log_batch(self.run_id, params=_params(params), tags=[RunTag(k, v) for k, v in tags.items()])
        self.client.log_inputs(self.run_id, [_dataset(entry) for entry in data])

    @patient
    def cell(
        self,
        cell: Cell,
        result: CellResult,
        data: Sequence[LoggedDataset],
        tags: Mapping[str, str] = NO_TAGS,
        model: bool = True,
        below: Sequence[str] = (),
    ) -> str:
        """The child run of a finished cell, with its model or without; made once, found afterwards, and given its model where that is asked for
        later. One whose model was deleted is made anew.

        Args:
            below: keys of the cells whose scores it reads, in the order of its features.
        """
        with _alone_with(result.key):
            found = self._find(CELL_KEY, result.key, self.run_id)
            if found and found.info.status == "FINISHED" and (not model or self._has_model(found.info.run_id, result, below)):
                return found.info.run_id
            if found:
                self._discard(found.info.run_id)
            own = {
                OWNER: self._owner,
                DIGEST: result.digest,
                **dict(_pieces(BELOW, json.dumps(list(below))) if below else ()),
                **({"remarks": "; ".join(result.remarks)[:5000]} if result.remarks else {}),
            }
            run_id = self._create(cell.label, {PARENT: self.run_id, CELL_KEY: result.key, **own, **tags})
            try:
                params = _params({"ranker": cell.ranker, "fold": cell.fold + 1, **cell.section})
                self.client.log_batch(run_id, params=params)
                model_id = self._log_model(run_id, params, CellFolder.of(result.key).model, below) if model else None
                self._log_cell(run_id, result, data, model_id)
                if model_id:
                    self.client.finalize_logged_model(model_id, LoggedModelStatus.READY)
            except BaseException as error:
                with suppress(MlflowException, OSError, OperationalError):
                    self._end(run_id, RunStatus.KILLED if _is_interruption(error) else RunStatus.FAILED)
                raise
            self._end(run_id, RunStatus.FINISHED)
            return run_id

    def _log_cell(self, run_id: str, result: CellResult, data: Sequence[LoggedDataset], model_id: str | None) -> None:
        """A finished cell's numbers, which are those of its model too, data sets and files."""
        folder, now = CellFolder.of(result.key), int(time.time() * 1000)
        lines = _position_bias(folder, now) + _curve(folder, now) + _pairs(folder, now)
        for some in _batched((*_numbers(result, now, model_id), *lines), _AT_A_TIME):
            self.client.log_batch(run_id, metrics=some)
        self.client.log_inputs(run_id, [_dataset(entry) for entry in data])
        for path in (folder.pairs, folder.importance, folder.position_bias, folder.values):
            if path.is_file():
                self.client.log_artifact(run_id, str(path))

    @patient
    def failed_cell(self, cell: Cell, key: str, why: str) -> None:
        """The child run of a cell that could not be trained, with the reason; a later one takes its place."""
        with _alone_with(key):
            found = self._find(CELL_KEY, key, self.run_id)
            if found:
                self._discard(found.info.run_id)
            run_id = self._create(cell.label, {PARENT: self.run_id, CELL_KEY: key, OWNER: self._owner, ERROR: masked(why)[:500]})
            self.client.log_batch(run_id, params=_params({"ranker": cell.ranker, "fold": cell.fold + 1, **cell.section}))
            self._end(run_id, RunStatus.FAILED)

    def run_of(self, key: str) -> str:
        """The run of a cell."""
        return str(self._find(CELL_KEY, key, self.run_id).info.run_id)

    def _discard(self, run_id: str) -> None:
        """Deletes a half-made child run with the models it logged."""
        for model in self._models_of(run_id):
            self.client.delete_logged_model(model.model_id)
        self.client.delete_run(run_id)

    def _has_model(self, run_id: str, result: CellResult, below: Sequence[str]) -> bool:
        """Whether a finished child run has its model, which it is given where it was noted without; not where the model was deleted, or its
        files."""
        logged = self._models_of(run_id)
        half = [model for model in logged if model.status in (LoggedModelStatus.PENDING, LoggedModelStatus.FAILED)]
        for model in half:
            self.client.delete_logged_model(model.model_id)
        if found := [model for model in logged if model not in half]:
            return any(map(self._has_files, found))
        run = self.client.get_run(run_id)
        if run.outputs is not None and run.outputs.model_outputs:
            return False
        model_id = self._log_model(run_id, _params(run.data.params), CellFolder.of(result.key).model, below)
        moments = [noted.timestamp for noted in self.client.get_metric_history(run_id, "train_seconds")] or [
            int(time.time() * 1000)
        ]
        numbers = _numbers(result, moments[-1], model_id)  # which MLflow keeps once for the run, as they are of one moment
        again = RunTag(DIGEST, result.digest)  # the cell may have been trained again since it was noted
        self.client.log_batch(run_id, metrics=numbers, tags=[again])
        self.client.finalize_logged_model(model_id, LoggedModelStatus.READY)
        return True

    def _has_files(self, model: LoggedModel) -> bool:
        """Whether there are files of a model, as far as can be seen from here: another folder may be out of sight."""
        place = urlparse(model.artifact_location)
        if place.scheme in ("", "file") and not Path(unquote(place.path)).is_relative_to(Path("mlruns").absolute()):
            return True
        try:
            return any(self.client.list_logged_model_artifacts(model.model_id))
        except Exception:  # each store has errors of its own, and one that does not answer says nothing
            return True

    def _models_of(self, run_id: str) -> Sequence[LoggedModel]:
        return self.client.search_logged_models([self.experiment_id], f"source_run_id = '{run_id}'")

    def _log_model(self, run_id: str, params: Sequence[Param], folder: Path, below: Sequence[str]) -> str:
        """The model as a pyfunc made of code and arrays: it carries the core along, which knows the insides of one version of numba, and the models
        below it, and needs no pickle. What follows a version's + says who built it, and no index has it. The model is half-made (PENDING) until its
        numbers are there too and it is finalized; MLflow's own ``log_model`` reads the run and sets its state six times more.

        Args:
            params: of the run, which are the model's too.

        Returns:
            The model's id.
        """
        begun = self.client.create_logged_model(
            self.experiment_id, "model", run_id, _source(), {param.key: param.value for param in params}
        )
        with TemporaryDirectory() as temporary:
            bases, whole = Path(temporary) / "below", Path(temporary) / "model"
            for k, base in enumerate(below):
                copytree(CellFolder.of(base).model, bases / str(k))
            core = Path(temporary) / "ltr.zip"
            core.write_bytes(_packed_core())
            mlflow.pyfunc.save_model(
                path=str(whole),
                mlflow_model=Model(begun.artifact_location, run_id, model_uuid=begun.model_id, model_id=begun.model_id),
                python_model=str(_SERVED),
                artifacts={"model": str(folder), **({"below": str(bases)} if below else {})},
                code_paths=[str(core)],
                pip_requirements=[f"{name}=={version(name).partition('+')[0]}" for name in ("numba", "numpy", "scipy")],
            )
            self.client.log_model_artifacts(begun.model_id, str(whole))
        self.client.log_outputs(run_id, [LoggedModelOutput(begun.model_id, 0)])
        model_id: str = begun.model_id
        return model_id

    @patient
    def summary(self, metrics: Mapping[str, float], files: Sequence[tuple[Path, str]]) -> None:
        """The best cell's numbers and files, on the parent run; files by the name that they have there."""
        for some in _batched(metrics.items(), _AT_A_TIME):
            self.client.log_batch(self.run_id, metrics=[Metric(k, v, self._now, 0) for k, v in some])
        for path, name in files:
            folder, _, base = name.rpartition("/")
            if base == path.name:
                self.client.log_artifact(self.run_id, str(path), folder or None)
            else:
                self.text(path.read_text(encoding="utf-8"), name)

    @patient
    def say(self, tags: Mapping[str, str]) -> None:
        """Tags of the parent run. Those by which `says` knows that everything else of it is there are written last."""
        self.client.log_batch(self.run_id, tags=[RunTag(k, v) for name, text in tags.items() for k, v in _pieces(name, text)])

    @patient
    def budget(self, key: str, of_this_run: bool) -> Budget | None:
        """How far this run, or else the latest that searched the same, got within its time; None where it did not come to the end."""
        found = self.client.get_run(self.run_id) if of_this_run else self._find(SEARCHED, key)
        if found is None or found.data.tags.get(SEARCHED) != key:
            return None
        try:
            return TypeAdapter(Budget).validate_json(found.data.tags.get(BUDGET, ""))
        except ValueError:  # somebody has edited it
            return None

    @patient
    def note(self, text: str) -> None:
        """The description of the parent run, Markdown; of a text that is too long for it the lines that fit."""
        if len(text) > _NOTE_HOLDS:
            text = f"{text[: _NOTE_HOLDS - 10].rpartition(chr(10))[0]}\n\n…"
        self.client.set_tag(self.run_id, NOTE, text)

    @patient
    def show_models(self, keys: Sequence[str]) -> None:
        """Makes the models of these cells logged models of the parent run too."""
        noted = {output.model_id for output in self._models(self.run_id)}
        found = [output.model_id for key in keys for output in self._models(self.run_of(key))]
        if new := [LoggedModelOutput(model_id, 0) for model_id in dict.fromkeys(found) if model_id not in noted]:
            self.client.log_outputs(self.run_id, new)

    def _models(self, run_id: str) -> Sequence[LoggedModelOutput]:
        outputs = self.client.get_run(run_id).outputs
        return outputs.model_outputs if outputs else ()

    @patient
    def lines(self, lines: Mapping[str, Sequence[float]]) -> None:
        """Metrics of the parent run that have a value a step, from step 1 on; NaN where there is none."""
        points = [Metric(key, v, self._now, step) for key, values in lines.items() for step, v in enumerate(values, 1) if v == v]
        for some in _batched(points, 1000):
            self.client.log_batch(self.run_id, metrics=some)

    @patient
    def text(self, text: str, name: str) -> None:
        """A text artifact of the parent run."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_text(text, encoding="utf-8")
            self.client.log_artifact(self.run_id, str(path))


@cache
def _packed_core() -> bytes:
    """The core that models carry along, in one file (`tasks.tracking.served_model`), the same bytes each time."""
    core, packed = Path(ltr.__file__).parent, BytesIO()
    with ZipFile(packed, "w") as file:
        for path in sorted((*core.rglob("*.py"), core / "py.typed")):
            file.writestr(ZipInfo(path.relative_to(core.parent).as_posix()), path.read_bytes(), ZIP_DEFLATED)
    return packed.getvalue()


def _alone_with(key: str) -> AbstractContextManager[None]:
    """Commands that go on with the same run at the same time write a cell one after another: the second finds what the first wrote, and does
    not take it for something half-made."""
    return alone(Path(f"mlruns/.cells-{key[0]}.lock"))


def _is_interruption(error: BaseException) -> bool:
    """Ctrl-C, Prefect's signal that a run is to end, or a cell that has heard of one of them."""
    return not isinstance(error, Exception) or isinstance(error, InterruptedError)


def _in_words(error: BaseException) -> str:
    """Prefect cancels without a word, also a run that lost its place (a server that was started anew knows of none)."""
    if isinstance(error, CancelledError) and not str(error):
        return "Prefect cancelled the run, or it lost its place among those that may be under way at once"
    if type(error).__name__ == "TerminationSignal":  # Prefect's own of SIGTERM in a flow
        return "the run was cancelled in Prefect, or whatever had started it was ended"
    return str(error) or type(error).__name__


def _params(params: Mapping[str, Any]) -> list[Param]:
    return [Param(key, str(value)[:6000]) for key, value in params.items()]


def _dataset(entry: LoggedDataset) -> DatasetInput:
    """MLflow's form of a data set; its digest field holds 36 characters."""
    dataset = Dataset(entry.name, entry.digest[:36], "local", entry.source, profile=entry.profile)
    return DatasetInput(dataset, [InputTag("mlflow.data.context", entry.role)])


def _numbers(result: CellResult, at: int, model_id: str | None) -> list[Metric]:
    """A finished cell's numbers, of its run and of its model."""
    numbers = {**result.metrics, "train_seconds": result.seconds}
    return [Metric(key, value, at, 0, model_id=model_id) for key, value in numbers.items()]


def _curve(folder: CellFolder, now: int) -> list[Metric]:
    """Points of a training curve, ``curve_train_ndcg_10`` and ``curve_valid_ndcg_10``, thinned to 200 a line."""
    curve = read_curve(folder.curve)
    if curve is None:
        return []
    step = max(1, len(curve.iteration) // 200)
    points = []
    for split, values in (("train", curve.train), ("valid", curve.valid)):
        taken = [(i, v) for i, v in zip(curve.iteration, values, strict=True) if v is not None]
        points += [
            Metric(f"curve_{split}_{curve.measure}", v, now, i)
            for k, (i, v) in enumerate(taken)
            if k % step == 0 or k == len(taken) - 1
        ]
    return points


def _position_bias(folder: CellFolder, now: int) -> list[Metric]:
    """What was learned of the first ranks, a step each, ``position_bias_propensity``; the rest is in the file."""
    found = read_position_bias(folder.position_bias)
    lines = found.by_rank if found else {}
    return [Metric(f"position_bias_{name}", v, now, rank) for name, line in lines.items() for rank, v in enumerate(line[:30], 1)]


def _pairs(folder: CellFolder, now: int) -> list[Metric]:
    """Effective pairs along training, ``effective_pairs_ndcg_10``, thinned to 80 points a term; of a later term of the same measure
    ``effective_pairs_ndcg_10_term_2``."""
    entries, lines = read_pairs(folder.pairs), dict[str, list[PairsEntry]]()
    for _, terms in itertools.groupby(entries, key=lambda entry: entry.iteration):
        seen = Counter[str]()
        for entry in terms:
            seen[entry.measure] += 1
            again = f"_term_{seen[entry.measure]}" if seen[entry.measure] > 1 else ""
            lines.setdefault(f"effective_pairs_{entry.measure}{again}", []).append(entry)
    return [
        Metric(name, entry.total, now, entry.iteration)
        for name, line in lines.items()
        for entry in line[:: max(1, len(line) // 80)]
    ]
