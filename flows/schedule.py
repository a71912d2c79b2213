"""Runs that begin by the clock: a configuration is served until it is interrupted, or its folder or Prefect's server is gone."""

import asyncio
import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID
from zoneinfo import TZPATH, available_timezones

import flows  # noqa: F401
from flows.access import ALLOW, HOST, kept_password, require_allowed
from flows.own_server import ask_at, start, wait_for
from flows.progress import steps
from flows.servers import SIGNALS, open_port, running_servers
from tasks.config.run_config import RunConfig
from tasks.data.files import require_files
from tasks.records import ConfigError, DataError
from tasks.store import state
from tasks.tracking.secrets import masked

if TYPE_CHECKING:
    from prefect.runner import Runner
    from prefect.server.schemas.schedules import CronSchedule

_PATIENCE = 3.0
"""Seconds that a run has to close itself."""


def _end_runs(*_: Any) -> None:
    """Ends the runs that are under way, which close themselves, and then this process; those that take too long are killed."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    runs = multiprocessing.active_children()
    for one in runs:
        one.terminate()
    deadline = time.monotonic() + _PATIENCE
    for one in runs:
        one.join(max(0.0, deadline - time.monotonic()))
        one.kill()
    raise KeyboardInterrupt


def _runner(name: str) -> "Runner":
    """Prefect's, ended by every signal as by an interruption: its own way with SIGTERM starts to stop the runner and does not wait."""
    from prefect.runner import Runner

    class Interruptible(Runner):
        def handle_sigterm(self, *_: Any, **__: Any) -> None:
            _end_runs()

    return Interruptible(name=name)


def _lost(folder: Path, servers: Sequence[subprocess.Popen[bytes]]) -> str:
    """Which of the things is gone without which no run can begin; nothing where all are there."""
    if not folder.is_dir():
        return f"{folder}: this folder no longer exists; serve stops"
    if ended := next((server for server in servers if server.poll() is not None), None):
        return f"Prefect's server has exited (code {ended.returncode}), so no more runs start; start lambdaflow serve again"
    return ""


@contextmanager
def _ending_without(folder: Path, servers: Sequence[subprocess.Popen[bytes]] = ()) -> Iterator[None]:
    """Meanwhile this process ends when its folder or a server of its own is not there any more: no run could begin, and Prefect would not
    end. Without a server Prefect asks for a minute whether it is back, which is not waited for."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(2):
            if said := _lost(folder, servers):
                print(f"error: {said}", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGTERM)
                if over.wait(2 * _PATIENCE):
                    return
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


@contextmanager
def _only_one(name: str) -> Iterator[None]:
    """Meanwhile no other process of this folder serves a configuration of that name: to Prefect both would be one deployment, which has the
    schedule of the later, and is paused when one of them ends.

    Raises:
        ConfigError: where one does.
    """
    folder = state.root() / "served"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{state.digest_of(name)[:16]}.lock", "a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise ConfigError(
                f"{name} is served here already, by process {lock.read().partition(' ')[0]}: end it first, or give this configuration another name"
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()} {name}\n")  # by the name what a killed one served is found (`flows.leftovers`)
        lock.flush()
        yield


def _require_own(name: str) -> None:
    """Of a server that others use too: nobody else serves a configuration of that name.

    Raises:
        ConfigError: where a deployment of it is active whose version is another owner, which is not known to have ended.
    """
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    from flows.owners import has_ended, owner
    from flows.pipeline import run

    with get_client(sync_client=True) as client, suppress(ObjectNotFound):
        found = client.read_deployment_by_name(f"{run.name}/{name}")
        by, mine = found.version or "", owner()
        ours = by.rpartition("@")[2] == mine.rpartition("@")[2]  # of a copied folder, files of owners say nothing
        if "@" in by and not found.paused and by != mine and not (ours and has_ended(by)):
            raise ConfigError(
                f"{name} is served on this Prefect server already, by {by}: give this configuration another name, or pause that deployment in "
                "Prefect where its process was killed elsewhere"
            )


def _zone() -> str:
    """The time zone of this process: what ``TZ`` names, or this machine's.

    Raises:
        ConfigError: where ``TZ`` names none that is known by its name, or the machine's is not known.
    """
    import tzlocal

    if given := os.environ.get("TZ"):
        file = Path(given.removeprefix(":"))
        is_file = file.is_absolute() and file.is_file()
        folders = [Path(folder).resolve() for folder in TZPATH] if is_file else []
        below = [file.resolve().relative_to(folder) for folder in folders if file.resolve().is_relative_to(folder)]
        if (name := str(below[0] if below else file)) in available_timezones():
            return name
        if not (is_file and Path("/etc/localtime").is_file() and file.samefile("/etc/localtime")):
            raise ConfigError(f"--cron: TZ={given} is not the name of a time zone; set one such as TZ=Europe/Berlin")
    try:
        return tzlocal.get_localzone_name() or "UTC"
    except LookupError as error:
        raise ConfigError(f"--cron: the time zone of this machine is unknown ({error}); set TZ, such as TZ=Europe/Berlin") from None


def _tell_missing_files(config: RunConfig) -> None:
    """Of a configuration whose files are not there yet: runs that begin before they are will fail."""
    try:
        require_files(config)
    except DataError as error:
        print(f"warning: {error}; scheduled runs will fail until it exists", file=sys.stderr)


def _clock(cron: str, zone: str) -> "tuple[CronSchedule, datetime]":
    """A cron expression as Prefect reads it, and when it strikes next.

    Raises:
        ConfigError: where it is none, or of a day that there is not.
    """
    from prefect.server.schemas.schedules import CronSchedule

    form = "expected five fields, minute hour day month weekday, such as '0 3 * * *'"
    if len(cron.split()) != 5 and not cron.startswith("@"):
        raise ConfigError(f"--cron {cron!r}: {form}")
    try:
        clock = CronSchedule(cron=cron, timezone=zone)
    except ValueError:
        raise ConfigError(
            f"--cron {cron!r}: {form}: minutes 0-59, hours 0-23, days 1-31, months 1-12, weekdays 0-7 or mon-sun, or @daily"
        ) from None
    try:
        dates = asyncio.run(clock.get_dates(100))  # the first of them have passed where the clock is put forward within the hour
        return clock, next((date for date in dates if date > datetime.now(UTC)), dates[-1])
    except ValueError:
        raise ConfigError(f"--cron {cron!r}: there is no such day") from None


def _is_due(clock: "CronSchedule", at: datetime) -> bool:
    """Whether a clock strikes at this time. It is asked from hours before: in the hour that summer time leaves out it skips its own beginning."""
    return at in asyncio.run(clock.get_dates(4 * 60, start=at - timedelta(hours=3)))


def serve_schedule(config: RunConfig, cron: str, prefect_port: int, allow: Sequence[str] = ()) -> int:
    """Runs a configuration whenever `cron` says, until interrupted. A run that is due while another is under way waits for it.

    The schedule lives in Prefect's server at ``PREFECT_API_URL``; where that is not set, one is started on loopback. What it runs reads
    files below the working directory, ``LAMBDAFLOW_DATA`` and the folders `allow`.

    Returns 0 where it was interrupted, 1 where its folder or server is gone.

    Raises:
        ConfigError: for what is no cron expression, a file outside those folders, a name that is served already, or models in parts, which
            need `run`'s --runner.
        OSError: where the server does not come up.
    """
    if config.parts > 1:
        raise ConfigError(
            f"parts: {config.parts} need Dask workers to hold them, and serve trains in this process; schedule `lambdaflow run`"
        )
    folders = [str(Path(folder).absolute()) for folder in allow]
    os.environ[ALLOW] = os.pathsep.join(filter(None, [os.environ.get(ALLOW), *folders]))
    require_allowed(config)
    given = os.environ.get("PREFECT_API_URL")
    address = given or f"http://{HOST}:{prefect_port}/api"
    with steps("starting Prefect's server"):
        from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
        from prefect.deployments.runner import EntrypointType
        from prefect.schedules import Cron

        from flows.leftovers import clear, clear_deployment, forget_outdated, pause
        from flows.owners import owner
        from flows.pipeline import run

    zone = _zone()
    clock, first = _clock(cron, zone)
    one_at_a_time: Any = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.ENQUEUE)
    told, here, lost = "", Path.cwd(), ""
    served_by = owner()
    try:
        with _only_one(config.name), running_servers() as servers:
            if not given:
                password, where = kept_password()
                with open_port(prefect_port, "--prefect-port") as port:
                    servers.append(start(port, password, {"PREFECT_SERVER_UI_API_URL": address}))
                ask_at(address, password)
                told = f"   (password: see {where})"
            with steps("starting Prefect's server"):
                wait_for(address, servers)
            if given:
                _require_own(config.name)
            runner = _runner(config.name)
            parameters = {"config": config.resolved()}
            deployment = runner.add_flow(
                run, name=config.name, schedule=Cron(cron, timezone=zone), parameters=parameters,
                concurrency_limit=one_at_a_time, entrypoint_type=EntrypointType.MODULE_PATH, version=served_by,
            )  # fmt: skip
            assert isinstance(deployment, UUID)
            print(
                f"{config.name}: {cron}, at {masked(address).removesuffix('/api')}{told}\n"
                f"next run {first:%Y-%m-%d %H:%M} ({zone}). Ctrl-C stops serving; later edits of the configuration have no effect.",
                flush=True,
            )
            _tell_missing_files(config)
            for number in SIGNALS:
                signal.signal(number, _end_runs)
            clear_away = partial(clear_deployment, deployment) if not given else clear
            clear_away()
            forget_outdated(deployment, parameters, partial(_is_due, clock))
            try:
                with _ending_without(here, servers):
                    asyncio.run(runner.start())
            finally:
                if not (lost := _lost(here, servers)):
                    clear_away()
                    pause(deployment)
    except KeyboardInterrupt:
        pass
    return 1 if lost else 0
