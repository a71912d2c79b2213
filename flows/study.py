"""Rankers × data sets: the same configuration run on each, and one table of them all (Dubey 2009 figure 3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact

import ltr
from flows.owners import is_elsewhere, owner
from flows.pipeline import run
from flows.runners import runner_of
from tasks.config.run_config import StudyConfig
from tasks.records import Failure, ModelSummary, WorkerError
from tasks.report.outcome import PartlyFailedError, RunOutcome
from tasks.report.study import StudyTable, gather, markdown, write_study
from tasks.store import state
from tasks.store.state import core_digest, digest_of
from tasks.tracking.store import FOUND
from tasks.tracking.tracker import Tracker


@dataclass(frozen=True)
class StudyOutcome:
    """What came of a study: its run in MLflow, models by ``dataset/ranker``, the table and its page, and what came of each run."""

    run_id: str
    models: dict[str, ModelSummary]
    table: StudyTable
    report: Path
    runs: tuple[RunOutcome, ...]
    failures: tuple[Failure, ...] = ()

    def as_json(self) -> Mapping[str, Any]:
        """What ``--json`` prints; of each run, by its name, what it prints by itself."""
        failed = {"failed": [vars(failure) for failure in self.failures]} if self.failures else {}
        models = {name: vars(model) for name, model in self.models.items()}
        return {"run_id": self.run_id, "models": models, "runs": {run.config.name: run.as_json() for run in self.runs}, **failed}


class StudyPartlyFailedError(ValueError):
    """A study of which something came to nothing; everything else is in its outcome, MLflow and the table."""

    def __init__(self, outcome: StudyOutcome) -> None:
        super().__init__("\n".join(map(str, outcome.failures)))
        self.outcome = outcome


@flow(name="study", flow_run_name="{config.name}", validate_parameters=False)
def study(config: StudyConfig, fresh: bool = False, runner: str | None = None) -> StudyOutcome:
    """Runs every data set's configuration where `flows.runners` says, and puts the outcomes into one table.

    Raises:
        StudyPartlyFailedError: with the outcome, where a run, or something in one, came to nothing.
        Exception: of the first run, where none came to anything.
    """
    outcomes, failures = _outcomes(config, fresh, runner)
    values = {
        label: [
            {ranker: [str(folder.values) for folder in folders] for ranker, folders in outcomes[name].folders.items()}
            for name in names
            if name in outcomes
        ]
        for label, names in config.datasets.items()
    }
    measures = next(iter(config.runs.values())).measures
    table = gather(
        {label: own for label, own in values.items() if own}, [ltr.Measure.of(m).key for m in measures], config.baselines
    )
    runs = {f"run.{name}": outcome.run_id for name, outcome in outcomes.items()}
    run_key = digest_of([{name: each.digest for name, each in config.runs.items()}, runs, core_digest()])
    tracker = Tracker(config.name, run_key, fresh, owner(), is_elsewhere)
    with tracker.running():
        page = write_study(
            table,
            config.title,
            state.root() / "reports" / f"{config.name}-{tracker.run_id[:8]}" / "study.html",
            tuple(outcomes.values()),
        )
        said = {FOUND: digest_of(markdown(table))}
        if not (tracker.was_finished and tracker.says(said, page.name)):
            tracker.summary(table.micro_averages(), [(page, page.name)])
            tracker.note(f"{config.title}\n\n{markdown(table)}\nReport: `{page}`")
            tracker.say(runs | said)
        models = {f"{name}/{ranker}": model for name, outcome in outcomes.items() for ranker, model in outcome.models.items()}
        done = StudyOutcome(tracker.run_id, models, table, page, tuple(outcomes.values()), failures)
        create_markdown_artifact(
            key="study", markdown=f"# {config.title}\n\n{markdown(table)}\n", description="Rankers on all data sets"
        )
        if failures:
            raise StudyPartlyFailedError(done)
    return done


def _outcomes(config: StudyConfig, fresh: bool, runner: str | None) -> tuple[dict[str, RunOutcome], tuple[Failure, ...]]:
    """What came of each run by its name, and what came to nothing while the others went on."""
    outcomes: dict[str, RunOutcome] = {}
    failures: list[Failure] = []
    errors: list[Exception] = []
    for name, each in config.runs.items():
        try:
            outcomes[name] = runner_of(runner).start(run, each, fresh)
        except PartlyFailedError as partly:
            outcomes[name] = partly.outcome
            failures += [Failure(f"{name}: {one.what}", one.why) for one in partly.outcome.failures]
        except (ValueError, ArithmeticError, WorkerError) as error:
            errors.append(error)
            failures.append(Failure(name, str(error)))
    if not outcomes:
        raise errors[0]
    return outcomes, tuple(failures)
