"""``--runner``: where the cells of a sweep are trained. Threads of this process, processes of this machine, or Dask workers.

A cell is a plain description with names in the store, so wherever it is trained it reads the same memory-mapped files and gives
the same bytes. Workers on other machines need the working directory at the same path, as on a shared file system, and
``PREFECT_API_URL`` where they can reach it.
"""

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from multiprocessing.resource_tracker import ensure_running
from queue import Empty, SimpleQueue
from typing import Any

from prefect.context import FlowRunContext
from prefect.futures import as_completed
from prefect.runtime import deployment
from prefect.settings import get_current_settings
from prefect.task_runners import ProcessPoolTaskRunner, ThreadPoolTaskRunner

from tasks.config.run_config import RunConfig
from tasks.records import ConfigError

_WAKE_EVERY = 2.0
"""Seconds after which a worker that is gone is noticed."""
_TRACKED = "ignore:resource_tracker:UserWarning"
"""For Python's tracker of semaphores: that it clears away those of a pool that has lost a worker is nothing to say below the error."""
_MESSAGES = 20
"""That each end of Dask's connections keeps for whoever looks for faults in Dask: every cell's has all settings of Prefect in it, half a megabyte in memory. Where
a configuration of Dask's says how many, it is obeyed."""
USAGE = "threads[=N], processes[=N], dask[=N] or dask=tcp://HOST:PORT"


@dataclass(frozen=True)
class Runner:
    """`make` gives Prefect's task runner for so many cells at a time."""

    make: Callable[[int], Any]
    workers: int | None = None
    """Cells at a time; None for what the configuration says, and no fewer than `least`."""
    least: int = 1

    def start(self, flow: Any, config: RunConfig, fresh: bool) -> Any:
        """What comes of ``flow(config, fresh)`` here."""
        workers = self.workers or max(self.least, config.workers, config.parts)
        at_a_time = 1 if config.parts > 1 else workers
        here = copy(flow)  # `with_options` draws up the form of a whole configuration once more
        here.task_runner = self.make(workers)
        asking = get_current_settings().client
        retries = asking.max_retries
        try:
            return here(config.model_copy(update={"workers": at_a_time}), fresh)
        finally:
            asking.max_retries = retries  # which a run that asked in vain has lowered


def is_deployed() -> bool:
    """Whether the run under way is a deployment's. Prefect's own `deployment.id` asks the server for it in every run that is none's, at a tenth of
    a second each time; a run of another flow's is what that one is."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None or context.flow_run.parent_task_run_id:
        return deployment.id is not None
    return context.flow_run.deployment_id is not None


def require_workers(config: RunConfig) -> None:
    """Of a run under way: where models are trained in parts, Dask workers are there to hold them.

    Raises:
        ConfigError: before anything is done.
    """
    context = FlowRunContext.get()
    if config.parts > 1 and context and type(context.task_runner).__name__ != "DaskTaskRunner":
        engine = f"--runner dask={config.parts} or dask=tcp://HOST:PORT"
        ways = f"which a deployment does not have; schedule `lambdaflow run` with {engine}" if is_deployed() else f"add {engine}"
        raise ConfigError(f"parts: {config.parts} need Dask workers to hold them: {ways}")


def first_done(futures: Sequence[Any]) -> Any:
    """The first of these futures that is done.

    A pool of processes waits for the end of those workers that it had when it last woke. That one which has started since is gone it would
    notice only once another cell is done, so that it is woken every few seconds.
    """
    pool = _pool()
    if pool is None:
        return next(as_completed(list(futures)))
    done: SimpleQueue[Any] = SimpleQueue()
    for future in futures:
        future.add_done_callback(done.put)
    while True:
        try:
            return done.get(timeout=_WAKE_EVERY)
        except Empty:
            with pool._shutdown_lock:
                pool._executor_manager_thread_wakeup.wakeup()


@contextmanager
def unheard_by_workers() -> Iterator[None]:
    """Processes of a pool that are started inside do not hear Ctrl-C, which a terminal sends to all of them: they would answer with pages of what
    they were importing, and whoever started them ends them."""
    if _pool() is None:
        yield
        return
    sys.warnoptions.append(_TRACKED)
    try:
        ensure_running()  # Python's own tracker of semaphores, which takes the block away again when it starts
    finally:
        sys.warnoptions.remove(_TRACKED)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def let_go_of_broken_pool() -> None:
    """Closes the end of the pool's queue that dead workers do not read any more, as Python does itself since 3.11.5: before, it waits
    forever for what is being written there (https://github.com/python/cpython/issues/94777)."""
    if sys.version_info >= (3, 11, 5):
        return
    pool = _pool()
    if getattr(pool, "_call_queue", None) is not None:
        pool._call_queue._reader.close()  # type: ignore[union-attr]  # typeshed: it may be None, which was asked above


def _pool() -> ProcessPoolExecutor | None:
    """That of Prefect's task runner, where cells are trained in processes of this machine."""
    context = FlowRunContext.get()
    pool = getattr(context.task_runner, "_executor", None) if context else None
    return pool if isinstance(pool, ProcessPoolExecutor) else None


def _dask(address: str | None) -> Callable[[int], Any]:
    def make(workers: int) -> Any:
        try:
            from prefect_dask import DaskTaskRunner
        except ImportError:
            raise ConfigError("--runner dask needs Dask: pip install 'lambdaflow[cluster]'") from None
        from dask.config import update_defaults

        update_defaults({"distributed": {"admin": {"low-level-log-length": _MESSAGES}}})  # before what keeps them is made
        local = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        return DaskTaskRunner(address=address) if address else DaskTaskRunner(cluster_kwargs=local)

    return make


def _threads_of(address: str) -> int:
    try:
        from distributed import Client
    except ImportError:
        raise ConfigError("--runner dask needs Dask: pip install 'lambdaflow[cluster]'") from None
    try:
        with Client(address, timeout=10) as client:
            return sum(client.nthreads().values())
    except (OSError, ValueError) as error:
        raise ConfigError(f"--runner dask={address}: no scheduler there ({error})") from None


KINDS: dict[str, Callable[[int], Any]] = {
    "threads": lambda workers: ThreadPoolTaskRunner(max_workers=workers),
    "processes": lambda workers: ProcessPoolTaskRunner(max_workers=workers),
    "dask": _dask(None),
}


def runner_of(text: str | None) -> Runner:
    """Reads ``--runner``.

    Raises:
        ConfigError: for what is none of `USAGE`, a scheduler that does not answer, or Dask where it is not installed.
    """
    if text is None:
        return Runner(KINDS["threads"])
    kind, _, rest = text.partition("=")
    if kind == "dask" and "://" in rest:
        workers = _threads_of(rest)
        if workers == 0:
            raise ConfigError(f"--runner {text}: the scheduler has no workers")
        return Runner(_dask(rest), workers)
    if kind not in KINDS or not (rest or "2").isdecimal() or int(rest or 2) < 1:
        raise ConfigError(f"--runner {text}: {USAGE}")
    return Runner(KINDS[kind], int(rest) if rest else None, least=1 if kind == "threads" else 2)
