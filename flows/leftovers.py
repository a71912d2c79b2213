"""What a killed run leaves behind, and clearing it away: the next run ends servers and workers whose owner is gone, closes what
stands as RUNNING in Prefect and MLflow, and removes half-written files. What an owner is: `flows.owners`.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from prefect import tags
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterName,
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterId,
    FlowRunFilterState,
    FlowRunFilterStateType,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType, TaskRun
from prefect.client.schemas.responses import DeploymentResponse
from prefect.context import TagsContext
from prefect.exceptions import ObjectNotFound
from prefect.runtime import flow_run
from prefect.states import Crashed, State

from flows.own_server import asks_own_server
from flows.owners import gone, has_ended, is_copied, is_gone, is_signature, owner, started_by
from tasks.store import state
from tasks.store.state import clear_partials
from tasks.tracking.store import is_shared
from tasks.tracking.tracked import close_abandoned

_TAG = "owner:"
_PAGE = 200
"""Runs that Prefect gives at a time."""
Kind = TypeVar("Kind")
_UNFINISHED = [StateType.RUNNING, StateType.PENDING]


def owned() -> AbstractContextManager[Any]:
    """Prefect runs that begin inside are born with their owner's tag."""
    return tags(_TAG + owner())


@contextmanager
def signed() -> Iterator[str]:
    """The owner of the Prefect run that is under way, which is tagged with it where it was not born so (by the clock, for instance), and with no
    other: a run that Prefect tries again was another's, who has ended. Its tasks are not tagged: Prefect asks for a slot for every tag of
    every task."""
    mine = owner()
    others = [tag for tag in flow_run.tags if not (tag.startswith(_TAG) and is_signature(tag.removeprefix(_TAG)))]
    if flow_run.id and {*others, _TAG + mine} != set(flow_run.tags):
        with get_client(sync_client=True) as client:
            client.update_flow_run(UUID(flow_run.id), tags=[*others, _TAG + mine])
    with TagsContext(current_tags=set()):
        yield mine


def clear() -> None:
    """Clears away what owners that are gone left behind."""
    files = gone()
    for process in started_by(is_gone):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    clear_partials()
    close_abandoned(_has_ended_here if is_shared() else has_ended)
    theirs = has_ended if asks_own_server() else _has_ended_here
    close_in_prefect(theirs, "its process was killed")
    pause_unserved(theirs)
    for file in files:
        file.unlink(missing_ok=True)


def _has_ended_here(who: str) -> bool:
    """`has_ended`, on a server of several folders: not of an owner whose file came with a copy of another folder."""
    return has_ended(who) and not is_copied(who)


def clear_deployment(deployment: UUID) -> None:
    """Clears away what is gone, and closes the runs of a deployment that nobody signed: those that were killed before they could. Until
    they are closed they hold the slot of the deployment, and no other run of it begins. For a server of one's own, which knows that
    nothing of the deployment is under way.
    """
    clear()
    with get_client(sync_client=True) as client:
        for run in _unfinished(client, deployment_id=FlowRunFilterDeploymentId(any_=[deployment])):
            if not any(mark.startswith(_TAG) for mark in run.tags):
                _crash(client, run.id, "its process was killed")


def forget_outdated(deployment: UUID, parameters: Mapping[str, Any], is_due: Callable[[datetime], bool]) -> None:
    """Deletes what the clock has set a deployment to run and has not begun, where it is with other parameters than these, or at a time that
    is not due by the schedule of now: the configuration or the schedule was edited since."""
    waiting = FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED]))
    of = FlowRunFilterDeploymentId(any_=[deployment])
    with get_client(sync_client=True) as client:
        for run in _all(client.read_flow_runs, flow_run_filter=FlowRunFilter(state=waiting, deployment_id=of)):
            at = run.expected_start_time
            if run.auto_scheduled and (run.parameters != parameters or (at is not None and not is_due(at))):
                client.delete_flow_run(run.id)


def pause(deployment: UUID) -> None:
    """Sets a deployment to run nothing by the clock any more, and takes back what it was to run: a server that goes on, as that of a team or of
    another `serve` in this folder, would set down its runs for ever, and all of them would begin at the next start. Prefect does that itself
    where no run is under way, but for runs that wait for another one."""
    waiting = FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED]))
    which = FlowRunFilter(state=waiting, deployment_id=FlowRunFilterDeploymentId(any_=[deployment]))
    with get_client(sync_client=True) as client:
        with suppress(ObjectNotFound):  # deleted in Prefect's pages
            client.pause_deployment(deployment)
        while due := [run for run in client.read_flow_runs(flow_run_filter=which) if run.auto_scheduled]:
            for run in due:
                with suppress(ObjectNotFound):  # taken back by somebody else meanwhile
                    client.delete_flow_run(run.id)


def pause_unserved(is_theirs: Callable[[str], bool]) -> None:
    """`pause`s what one of theirs served and could not pause itself, as it was killed; a deployment's version is the owner who serves it. Asked for
    are the names that were served in this folder alone: a team's server may have thousands of others, each with its configuration and its form."""
    if not (names := _served_here()):
        return
    which = DeploymentFilter(name=DeploymentFilterName(any_=names))
    with get_client(sync_client=True) as client:
        for one in _all(client.read_deployments, deployment_filter=which):
            if not one.paused and _is_unserved(one, is_theirs):
                pause(one.id)
                with suppress(ObjectNotFound):
                    if not _is_unserved(client.read_deployment(one.id), is_theirs):  # served again just now
                        client.resume_deployment(one.id)


def _is_unserved(deployment: DeploymentResponse, is_theirs: Callable[[str], bool]) -> bool:
    by = deployment.version or ""
    return is_signature(by) and is_theirs(by)


def _served_here() -> list[str]:
    """Names of the configurations that are, or were, served in this folder (`flows.schedule`)."""
    kept = []
    for file in (state.root() / "served").glob("*.lock"):
        with suppress(OSError, ValueError):  # another user's, who keeps it closed, or damaged
            kept.append(file.read_text(encoding="utf-8").rstrip("\n").partition(" ")[2])
    return sorted(name for name in kept if name)


def close_in_prefect(is_theirs: Callable[[str], bool], why: str) -> None:
    """Marks as CRASHED what stands as running in Prefect and is one of theirs."""
    with get_client(sync_client=True) as client:
        for run in _unfinished(client):
            if _signed_by(run, is_theirs):
                _crash(client, run.id, why)
        for run in _with_tasks_under_way(client):
            if _signed_by(run, is_theirs):
                _crash_tasks(client, run.id, why)


def _signed_by(run: FlowRun, is_theirs: Callable[[str], bool]) -> bool:
    return any(is_theirs(mark.removeprefix(_TAG)) for mark in run.tags if mark.startswith(_TAG))


def _with_tasks_under_way(client: SyncPrefectClient) -> list[FlowRun]:
    """Runs of flows, whatever became of them, of which a task stands as running: Prefect may end a flow itself, and leaves its tasks."""
    found = sorted({task.flow_run_id for task in _tasks_under_way(client) if task.flow_run_id})
    pages = [found[at : at + _PAGE] for at in range(0, len(found), _PAGE)]
    return [run for page in pages for run in client.read_flow_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=page)))]


def _tasks_under_way(client: SyncPrefectClient, **which: Any) -> list[TaskRun]:
    state = TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=_UNFINISHED)))
    return _all(client.read_task_runs, task_run_filter=state, **which)


def _unfinished(client: SyncPrefectClient, **which: Any) -> list[FlowRun]:
    state = FlowRunFilterState(type=FlowRunFilterStateType(any_=_UNFINISHED))
    return _all(client.read_flow_runs, flow_run_filter=FlowRunFilter(state=state, **which))


def _all(read: Callable[..., list[Kind]], **which: Any) -> list[Kind]:
    """What Prefect reads, from its first page to its last."""
    found: list[Kind] = []
    while page := read(**which, limit=_PAGE, offset=len(found)):
        found += page
    return found


def _crash(client: SyncPrefectClient, run: UUID, why: str) -> None:
    crashed: State[Any] = Crashed(message=why)
    client.set_flow_run_state(run, crashed, force=True)
    _crash_tasks(client, run, why)


def _crash_tasks(client: SyncPrefectClient, run: UUID, why: str) -> None:
    crashed: State[Any] = Crashed(message=why)
    for task in _tasks_under_way(client, flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run]))):
        client.set_task_run_state(task.id, crashed, force=True)
