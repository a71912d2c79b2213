"""A Prefect server of a command's own, for as long as the command lives.

It is in a session of its own, so that a signal to the command's group (Ctrl-C) leaves it there until the command has told it how the run
ended; and it reads from a pipe that the command holds, so that it ends with the command, however that ends. The command opens the port,
and hands it on open: two commands cannot take the same, and the first request waits until somebody answers.

A server imports for two seconds and the command for three. So it is begun before the command imports anything that takes long
(`begin_own_server`), and touches nothing until it is told to serve: of a command that is refused nothing is seen. It bears the command's
signature from the beginning (`flows.owners`), by which the second Ctrl-C finds what is to be ended at once.
"""

import atexit
import errno
import fcntl
import gc
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flows.access import HOST, NAMES, OwnPagesOnly, new_password, origins
from flows.errors import no_room
from flows.owners import SIGNATURE, signature
from tasks.records import OWN_PREFECT
from tasks.store.templates import clear_journals, is_as_kept, keep, take

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

_LAST_WORDS, _INTERRUPTED = 5.0, 0.5
"""Seconds that a server has to write down the last events; of a command that is interrupted, which has told it the end already."""
_RECORDER = {
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "256",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
}
"""Task runs are written many at a time, within a second, where the user's settings say nothing of it. One at a time, as Prefect's server comes, it
falls behind a flow of short tasks, and what it has not written when the command ends is lost."""
_LOG_HOLDS = 2**20
"""Bytes of what servers said, beyond which a new one begins anew."""
_ERROR = re.compile(r"[\w.]+(Error|Exception)\b.*: ")
"""How a line begins by which Python says what went wrong."""


@dataclass(frozen=True)
class OwnServer:
    """A server that is begun: its process, its address and who may ask it."""

    process: subprocess.Popen[bytes]
    address: str
    password: str


def begin_own_server() -> OwnServer | None:
    """Starts the process of a server that may be used (`use_own_server`), so that both import at the same time; it ends when nobody holds
    it any more. None where settings that are known by now name another."""
    given = {}
    if "prefect" in sys.modules:
        from prefect.settings import PREFECT_API_URL, get_current_settings

        if PREFECT_API_URL.value():
            return None
        given = get_current_settings().to_environment_variables(exclude_unset=True)
    elif os.environ.get("PREFECT_API_URL"):
        return None
    # What kinds of blocks there are is known once pages show them (`lambdaflow ui`); finding it out imports Dask, among others.
    ours = dict.fromkeys(
        ("PREFECT_UI_ENABLED", "PREFECT_SERVER_REGISTER_BLOCKS_ON_START", "PREFECT_SERVER_MEMOIZE_BLOCK_AUTO_REGISTRATION"), "0"
    )
    password = new_password()
    with socket.create_server((HOST, 0)) as port:
        address = f"http://{HOST}:{port.getsockname()[1]}/api"
        return OwnServer(_begin(port, password, {**given, **ours, "PREFECT__SERVER_EPHEMERAL": "1"}), address, password)


def use_own_server(begun: OwnServer | None = None) -> None:
    """Has Prefect talk to a server of this process's own, here and in processes that it starts, unless its settings name one. Flows send
    it no heartbeats: nobody waits for them, and the end of a flow would wait for the thread that sends them, up to a second.

    Raises:
        OSError: where it does not come up.
    """
    from prefect.settings import PREFECT_API_URL, get_current_settings

    if PREFECT_API_URL.value():
        if begun:
            _end(begun.process)
        return
    own = begun or begin_own_server()
    assert own is not None
    _have_it_serve(own.process)
    atexit.register(_end, own.process)
    try:
        wait_for(own.address, [own.process])
    except OSError as error:
        home = os.environ["PREFECT_HOME"]
        if no_room(home):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), home) from None
        database = os.environ.get("PREFECT_SERVER_DATABASE_CONNECTION_URL", home)
        raise OSError(f"Prefect's own server does not start, with its database at {database}: {error}") from None
    ask_at(own.address, own.password)
    get_current_settings().flows.heartbeat_frequency = None


def why_ended(since: float) -> str:
    """Why a server over this folder's own database has ended since, behind a semicolon; nothing where that is not known."""
    return f"; {why}" if (why := _damage() or _last_word(since)) else ""


def _damage() -> str:
    """What is wrong with the folder's own database, with the way out, where SQLite cannot read it."""
    path = Path(os.environ["PREFECT_HOME"]) / "prefect.db"
    if "PREFECT_SERVER_DATABASE_CONNECTION_URL" in os.environ or not path.is_file():
        return ""
    try:
        with closing(sqlite3.connect(path, timeout=1)) as opened:
            if opened.execute("pragma quick_check(1)").fetchone() == ("ok",):
                return ""
        said = "its pages contradict each other"
    except sqlite3.OperationalError:  # locked, or not to be opened
        return ""
    except sqlite3.DatabaseError as error:
        said = str(error)
    return (
        f"{path}: {said}: it is damaged. Runs, models and values are not in it, only what Prefect's pages show of earlier runs: move it away, with "
        f"{path.name}-wal and {path.name}-shm, and the next command makes a new one"
    )


def _last_word(since: float) -> str:
    """The last line of what servers said, if they said anything since: the last that names an error, as their very last only says that they end."""
    with suppress(OSError):
        if _log().stat().st_mtime >= since and (said := _log().read_text(errors="replace", encoding="utf-8").strip().splitlines()):
            return f"{_log()} ends: {next(filter(_ERROR.match, reversed(said)), said[-1])}"
    return ""


def asks_own_server() -> bool:
    """Whether the server that Prefect talks to was started by this process, or by the one that started it, for this folder alone."""
    return os.environ.get("PREFECT_API_URL", "") == os.environ.get(OWN_PREFECT)


def ask_at(address: str, password: str) -> None:
    """Has Prefect talk to a server of ours, here and in processes that this one starts."""
    from prefect.context import refresh_global_settings_context

    os.environ |= {"PREFECT_API_URL": address, "PREFECT_API_AUTH_STRING": password, OWN_PREFECT: address}
    os.environ.pop("PREFECT_API_KEY", None)  # it is for Prefect's cloud, and would be sent in place of the password
    refresh_global_settings_context()


def start(port: socket.socket, password: str, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A server at an open port, for those who know the password (``user:password``) and for its own pages (`flows.access`)."""
    server = _begin(port, password, settings)
    _have_it_serve(server)
    return server


def _begin(port: socket.socket, password: str, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    ours = {
        "PREFECT_SERVER_API_AUTH_STRING": password,
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": ",".join(origins(port.getsockname()[1])),
        SIGNATURE: signature(),
        "PYTHONSAFEPATH": "1",  # a file tokenize.py where the user works is none of its modules
    }
    checkout = Path(__file__).parents[1]
    if (checkout / "pyproject.toml").is_file():
        ours["PYTHONPATH"] = os.pathsep.join(filter(None, (str(checkout), os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", "flows.own_server", str(port.fileno())],
        env={**os.environ, **settings, **ours}, stdin=subprocess.PIPE, pass_fds=[port.fileno()], start_new_session=True,
    )  # fmt: skip


def _have_it_serve(server: subprocess.Popen[bytes]) -> None:
    assert server.stdin is not None
    with suppress(BrokenPipeError):  # it has ended, as whoever waits for it will see
        server.stdin.write(b"!")
        server.stdin.flush()


def _end(server: subprocess.Popen[bytes]) -> None:
    from tasks.training.cell import STOP

    assert server.stdin is not None
    with suppress(BrokenPipeError):  # it has ended before it was told to serve
        server.stdin.close()
    try:
        server.wait(_INTERRUPTED if STOP.is_set() else _LAST_WORDS)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):  # interrupted once all is said, when there is nothing left to give up
        server.kill()
        server.wait()


def wait_for(address: str, servers: Sequence[subprocess.Popen[bytes]], seconds: int = 120) -> None:
    """Returns when Prefect's API at an address answers.

    Raises:
        OSError: where it does not within so many seconds, or one of the servers that were started for it ends.
    """
    began, deadline, said = time.time(), time.monotonic() + seconds, ""
    while time.monotonic() < deadline:
        if any(server.poll() is not None for server in servers):
            raise OSError(f"{address}: the server started for this address has exited{why_ended(began)}")
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5):
                return
        except OSError as error:
            said = str(error)
            time.sleep(0.1)
    raise OSError(f"{address}: no answer within {seconds} s ({said})")


class _Owner:
    """What the owner of a server says through its standard input: a byte, that it is to serve; its end, that it is to end."""

    def __init__(self) -> None:
        self.server: uvicorn.Server | None = None
        self._wants_it = threading.Event()
        threading.Thread(target=self._hear, daemon=True).start()

    def wait(self) -> None:
        """Returns when it is to serve."""
        self._wants_it.wait()

    def _hear(self) -> None:
        while os.read(0, 1):
            self._wants_it.set()
        if self.server is not None:
            self.server.should_exit = True
            time.sleep(_LAST_WORDS)
        os._exit(0)


def _serve(descriptor: int) -> None:
    """Serves at an open port until standard input ends. Servers of one folder make its database one after another."""
    owner = _Owner()
    gc.disable()  # nearly everything that is imported stays: looking through it again and again is a quarter of the time
    import asyncio

    import uvicorn
    from prefect.server.api.server import create_app
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            with open(Path(os.environ["PREFECT_HOME"]) / ".starting", "w", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                new = _prepare_database()
                await super().startup(sockets)
                if new:
                    keep(new, _template())

    port = socket.socket(fileno=descriptor)
    _write_task_runs_together()
    app = create_app()
    app.add_middleware(OwnPagesOnly, allowed=origins(port.getsockname()[1]))
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=NAMES, www_redirect=False)
    asyncio.run(_find_routes(app))
    gc.freeze()
    gc.enable()
    owner.wait()
    _speak_to_a_file()
    owner.server = Server(uvicorn.Config(app, log_level="error", lifespan="on"))
    owner.server.run(sockets=[port])
    os._exit(0)  # everything is written; taking apart what was imported takes longer than a second


def _write_task_runs_together() -> None:
    """What the user says of it, in the environment, a profile or a file of the folder, comes first: Prefect knows by now."""
    from prefect.context import refresh_global_settings_context
    from prefect.settings import get_current_settings

    given = get_current_settings().server.services.task_run_recorder.to_environment_variables(exclude_unset=True)
    os.environ |= {**_RECORDER, **given}
    refresh_global_settings_context()


def _speak_to_a_file() -> None:
    """What a server says of its faults, whole stack traces, is kept in Prefect's home: to the command it answers that there was one. Only its owner reads
    it."""
    with suppress(OSError), open(_log(), "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as log:
        if log.tell() > _LOG_HOLDS:
            log.truncate(0)
        os.dup2(log.fileno(), 2)


def _log() -> Path:
    return Path(os.environ["PREFECT_HOME"]) / "server.log"


async def _find_routes(app: "FastAPI") -> None:
    """Has FastAPI put its table of routes together, as the first request otherwise does while somebody waits for the answer."""
    import httpx

    user, _, secret = os.environ["PREFECT_SERVER_API_AUTH_STRING"].partition(":")
    here = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=here, base_url=f"http://{HOST}") as client:
        await client.get("/api/admin/version", auth=(user, secret))


def _template() -> str:
    import prefect

    return f"prefect-{prefect.__version__}.db"


def _prepare_database() -> Path | None:
    """Where Prefect's database is the folder's own: no migrations where it is as this release of Prefect makes it, as a new one is that is
    copied from the machine's template. Returns the one that is to be such a template."""
    from prefect.context import refresh_global_settings_context
    from prefect.settings import get_current_settings

    settings = get_current_settings()
    path = settings.home / "prefect.db"
    address = settings.server.database.connection_url
    if address is None or address.get_secret_value() != f"sqlite+aiosqlite:///{path}":
        return None
    new = not path.exists()
    if new:
        clear_journals(path)
    if (new and take(_template(), path)) or is_as_kept(path, _template()):
        os.environ["PREFECT_SERVER_DATABASE_MIGRATE_ON_START"] = "0"
        refresh_global_settings_context()
        return None
    return path if new else None


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
