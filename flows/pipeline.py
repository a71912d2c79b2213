"""The main flow: files → data → sweep → the best of each ranker → evidence → report, all of it in MLflow.

    prepare ─┬─ train cell ─┐
             ├─ train cell ─┼─ select on validation ─ compare and gather evidence on test ─ publish
             └─ train cell ─┘

Running it again with the same configuration, data and code finds what is finished and does the rest.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

import httpx
from prefect import flow
from prefect.runtime import flow_run
from prefect.settings import get_current_settings

import ltr
import tasks.evidence  # noqa: F401  (registers the kinds of evidence, which are part of the schema)
from flows.access import require_allowed
from flows.errors import tell
from flows.leftovers import clear, signed
from flows.owners import is_elsewhere
from flows.progress import LEVELS, Steps, steps
from flows.runners import is_deployed, require_workers
from flows.sweep import expect_numbers, select, sweep
from tasks.config.run_config import RunConfig
from tasks.data.check import refuse
from tasks.data.ready import Ready, ready_data, require_sources, require_weighing
from tasks.evidence.protocol import Found, Gathering, asked_for
from tasks.evidence.significance import Standings, standings
from tasks.records import Failure
from tasks.report.outcome import PartlyFailedError, RunOutcome
from tasks.report.publish import publish
from tasks.store.state import core_digest, digest_of
from tasks.tracking.description import describe_run
from tasks.tracking.pages import run_page, shown_at
from tasks.tracking.secrets import without_passwords
from tasks.tracking.tracker import Tracker
from tasks.training.cell import STOP


@dataclass(frozen=True)
class Run:
    """A run under way."""

    config: RunConfig
    fresh: bool
    owner: str
    progress: Steps


@flow(name="lambdaflow", flow_run_name="{config.name}", validate_parameters=True)
def run(config: RunConfig, fresh: bool = False) -> RunOutcome:
    """One run of a configuration; `fresh` trains every cell again.

    Raises:
        PartlyFailedError: with the outcome, where something could not be trained or found.
    """
    with started(config, fresh) as under_way:
        data = prepare(under_way)
        config = config.model_copy(update={"data": data.data})
        with tracked(under_way, data) as tracker:
            swept = sweep(config, data.folds, tracker, fresh, under_way.progress)
            gathering = select(Gathering(swept.config, data.folds, swept.cells, (), tracker, under_way.progress))
            table = compare(gathering)
            found, came_to_nothing = gather(gathering)
            outcome = RunOutcome(
                swept.config,
                tracker.run_id,
                data.folds,
                data.findings,
                swept.cells,
                gathering.chosen,
                table,
                found,
                (*swept.failures, *came_to_nothing),
                config,
                swept.searches,
                swept.budget,
                run_page(shown_at(), tracker.experiment_id, tracker.run_id),
            )
            under_way.progress.begin("report")
            publish(outcome, tracker)
            if outcome.failures:
                raise PartlyFailedError(outcome)
    return outcome


@contextmanager
def started(config: RunConfig, fresh: bool) -> Iterator[Run]:
    """A run that is signed, so that it can be cleared away, and shown; what earlier ones left behind is gone."""
    with _told_by_the_clock(config.name), without_passwords(), _asking_in_vain_once():
        require_workers(config)
        if is_deployed():
            require_allowed(config)
        with signed() as owner:
            clear()
            with steps() as progress:
                yield Run(config, fresh, owner, progress)


@contextmanager
def _asking_in_vain_once() -> Iterator[None]:
    """Once Prefect's client has asked a server that is not there for half a minute, nothing asks it for as long again: neither the end of the flow nor
    the last of its logs."""
    try:
        yield
    except httpx.TransportError:
        get_current_settings().client.max_retries = 0
        raise


@contextmanager
def _told_by_the_clock(name: str) -> Iterator[None]:
    """A run that began by the clock says itself when and how it ended, and why it failed, where `serve` was started, and gives up its cells where it is
    cancelled; a command does both of its own."""

    def say(what: str, why: Exception | None = None) -> None:
        if is_deployed():
            with suppress(BrokenPipeError):  # whoever started it, a worker for instance, may be gone: that is no failure of the run
                print(
                    f"{datetime.now():%Y-%m-%d %H:%M} {name}, run {flow_run.name or flow_run.id}: {what}",
                    file=sys.stderr,
                    flush=True,
                )
                if why:
                    tell(why)

    try:
        yield
    except Exception as error:
        say("failed", error)
        raise
    except BaseException:
        # Cancelled or ended: the process is this run's own, and cells under way are given up, as those of a command are (`flows.interruption`).
        if is_deployed():
            STOP.set()
        say("ended before it was done")
        raise
    say("finished")


def prepare(under_way: Run) -> Ready:
    """Data that can be trained on, and what was found in them.

    Raises:
        DataError: for data that cannot be used, before anything is trained.
    """
    config, progress = under_way.config, under_way.progress
    progress.begin("data")
    require_weighing(config)
    data = ready_data(config)
    for finding in data.findings:
        progress.say(f"{finding.subject}: {finding.text}", LEVELS[finding.level])
    refuse(data.findings)
    require_sources(config, data.folds)
    for evidence in asked_for(config):
        evidence.check_data(config, data.folds)
    return data


@contextmanager
def tracked(under_way: Run, data: Ready) -> Iterator[Tracker]:
    """The run in MLflow, described; whatever happens inside, it does not stay RUNNING."""
    config = under_way.config
    run_key = digest_of([config.digest, [fold.roles for fold in data.folds], core_digest()])
    tracker = Tracker(config.name, run_key, under_way.fresh, under_way.owner, is_elsewhere)
    with tracker.running():
        tracker.describe(*describe_run(config, data.folds))
        yield tracker


def compare(gathering: Gathering) -> Standings:
    """Standings of the chosen cells' rankers on the test queries.

    Raises:
        ExpectationError: where a number is not what the configuration expects.
    """
    gathering.progress.begin("significance")
    paths = {name: gathering.values_of(name) for name in gathering.config.rankers}
    table = standings(paths, list(dict.fromkeys(ltr.Measure.of(measure).key for measure in gathering.config.measures)))
    expect_numbers(gathering.config, table)
    return table


def gather(gathering: Gathering) -> tuple[tuple[Found, ...], tuple[Failure, ...]]:
    """What the evidence finds that the configuration asks for, in the order in which it is shown, and what came to nothing, which takes
    nothing of the rest with it.

    Raises:
        ValueError, ArithmeticError: of the first evidence that comes to nothing in a run that was finished before, whose report stays.
    """
    found: list[Found] = []
    failures: list[Failure] = []
    for evidence in asked_for(gathering.config):
        try:
            found.append(evidence.gather(gathering))
        except (ValueError, ArithmeticError) as error:
            if STOP.is_set():  # a library may make an error of its own of the interruption
                raise KeyboardInterrupt from error
            if gathering.tracker.was_finished:
                raise
            why = str(error).removeprefix(f"{evidence.key}: ") or type(error).__name__
            failures.append(Failure(evidence.key, why))
            gathering.progress.say(str(failures[-1]), LEVELS["error"])
    return tuple(sorted(found, key=lambda one: one.place)), tuple(failures)
