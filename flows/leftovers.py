"""What a killed run leaves behind, and clearing it away: the next run ends servers and workers whose owner is gone, closes what
stands as RUNNING in Prefect and MLflow, and removes half-written files.

A run signs what it starts with its owner: processes inherit it in the environment, runs carry it as a tag. An owner is a process on
a machine, told by its number and the moment it was started, so that a number used again is somebody else. Elsewhere than on Linux
processes cannot be looked into and are left alone.
"""

import os
import platform
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect import tags
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, FlowRunFilterState, FlowRunFilterStateType
from prefect.client.schemas.objects import StateType
from prefect.context import TagsContext
from prefect.runtime import flow_run
from prefect.states import Crashed, State

from tasks.store.state import clear_partials
from tasks.tracking.tracker import close_abandoned

_SIGNATURE, _TAG = "LAMBDAFLOW_OWNER", "owner:"
_PROCESSES = Path("/proc")
_UNFINISHED = [StateType.RUNNING, StateType.PENDING]


def owner() -> str:
    """This process as an owner; what it starts from now on inherits it."""
    os.environ[_SIGNATURE] = f"{platform.node()}/{os.getpid()}/{_begun(os.getpid())}"
    return os.environ[_SIGNATURE]


def owned() -> AbstractContextManager[Any]:
    """Prefect runs that begin inside are born with their owner's tag."""
    return tags(_TAG + owner())


@contextmanager
def signed() -> Iterator[str]:
    """The owner of the Prefect run that is under way, which is tagged with it where it was not born so (by the clock, for instance). Its
    tasks are not tagged: Prefect asks for a slot for every tag of every task."""
    mine = owner()
    if flow_run.id and _TAG + mine not in flow_run.tags:
        with get_client(sync_client=True) as client:
            client.update_flow_run(UUID(flow_run.id), tags=[*flow_run.tags, _TAG + mine])
    with TagsContext(current_tags=set()):
        yield mine


def is_gone(who: str) -> bool:
    """Whether an owner is known to have ended: on this machine, no such process or another one of its number."""
    machine, _, rest = who.partition("/")
    number, _, begun = rest.partition("/")
    return machine == platform.node() and _PROCESSES.is_dir() and number.isdigit() and _begun(int(number)) != begun


def clear() -> None:
    """Clears away what owners that are gone left behind."""
    for process in _orphans():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    clear_partials()
    close_abandoned(is_gone)
    running = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=_UNFINISHED)))
    with get_client(sync_client=True) as client:
        for run in client.read_flow_runs(flow_run_filter=running):
            if any(is_gone(mark.removeprefix(_TAG)) for mark in run.tags if mark.startswith(_TAG)):
                crashed: State[Any] = Crashed(message="its process was killed")
                client.set_flow_run_state(run.id, crashed, force=True)
                for task in client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))):
                    if task.state_type in _UNFINISHED:
                        client.set_task_run_state(task.id, crashed, force=True)


def _begun(process: int) -> str:
    """When a process was started, in ticks of the machine; nothing where there is none."""
    try:
        return (_PROCESSES / str(process) / "stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _orphans() -> Iterator[int]:
    """Processes in this folder whose owner is gone."""
    home = f"PREFECT_HOME={os.environ.get('PREFECT_HOME', '')}".encode()
    for folder in _PROCESSES.glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        signed = [entry for entry in environment if entry.startswith(_SIGNATURE.encode() + b"=")]
        if signed and home in environment and is_gone(signed[0].decode().partition("=")[2]):
            yield int(folder.name)
