"""A Prefect server of a command's own, for as long as the command lives.

It is in a session of its own, so that a signal to the command's group (Ctrl-C) leaves it there until the command has told it how the run
ended; and it reads from a pipe that the command holds, so that it ends with the command, however that ends. The command opens the port,
and hands it on open: two commands cannot take the same, and the first request waits until somebody answers.
"""

import atexit
import fcntl
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flows.access import HOST, NAMES, OwnPagesOnly, new_password, origins

if TYPE_CHECKING:
    import uvicorn

_LAST_WORDS, _INTERRUPTED = 5.0, 0.5
"""Seconds that a server has to write down the last events; of a command that is interrupted, which has told it the end already."""


def use_own_server() -> None:
    """Has Prefect talk to a server of this process's own, here and in processes that it starts, unless its settings name one.

    Raises:
        OSError: where it does not come up.
    """
    from prefect.settings import PREFECT_API_URL, get_current_settings

    if PREFECT_API_URL.value():
        return
    password = new_password()
    with socket.create_server((HOST, 0)) as port:
        address = f"http://{HOST}:{port.getsockname()[1]}/api"
        given = get_current_settings().to_environment_variables(exclude_unset=True)
        server = start(port, password, {**given, "PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1"})
    atexit.register(_end, server)
    try:
        wait_for(address, [server])
    except OSError as error:
        database = os.environ.get("PREFECT_SERVER_DATABASE_CONNECTION_URL", os.environ.get("PREFECT_HOME"))
        raise OSError(f"Prefect's own server does not start, with its database at {database}: {error}") from None
    ask_at(address, password)


def ask_at(address: str, password: str) -> None:
    """Has Prefect talk to a server of ours, here and in processes that this one starts."""
    from prefect.context import refresh_global_settings_context

    os.environ |= {"PREFECT_API_URL": address, "PREFECT_API_AUTH_STRING": password}
    os.environ.pop("PREFECT_API_KEY", None)  # it is for Prefect's cloud, and would be sent in place of the password
    refresh_global_settings_context()


def start(port: socket.socket, password: str, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A server at an open port, for those who know the password (``user:password``) and for its own pages (`flows.access`)."""
    ours = {
        "PREFECT_SERVER_API_AUTH_STRING": password,
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": ",".join(origins(port.getsockname()[1])),
        "PREFECT__SERVER_FINAL": "1",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "flows.own_server", str(port.fileno())],
        env={**os.environ, **settings, **ours}, stdin=subprocess.PIPE, pass_fds=[port.fileno()], start_new_session=True,
    )  # fmt: skip


def _end(server: subprocess.Popen[bytes]) -> None:
    from tasks.training.cell import STOP

    assert server.stdin is not None
    server.stdin.close()
    try:
        server.wait(_INTERRUPTED if STOP.is_set() else _LAST_WORDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def wait_for(address: str, servers: Sequence[subprocess.Popen[bytes]], seconds: int = 120) -> None:
    """Returns when Prefect's API at an address answers.

    Raises:
        OSError: where it does not within so many seconds, or one of the servers that were started for it ends.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if any(server.poll() is not None for server in servers):
            raise OSError(f"{address}: the server that was to answer there has ended")
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise OSError(f"{address}: no answer within {seconds} s")


def _serve(descriptor: int) -> None:
    """Serves at an open port until standard input ends. Servers of one folder make its database one after another."""
    import uvicorn
    from prefect.server.api.server import create_app
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            with open(Path(os.environ["PREFECT_HOME"]) / ".starting", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                await super().startup(sockets)

    port = socket.socket(fileno=descriptor)
    app = create_app()
    app.add_middleware(OwnPagesOnly, allowed=origins(port.getsockname()[1]))
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=NAMES, www_redirect=False)
    server = Server(uvicorn.Config(app, log_level="error", lifespan="on"))
    threading.Thread(target=_end_with_owner, args=(server,), daemon=True).start()
    server.run(sockets=[port])


def _end_with_owner(server: "uvicorn.Server") -> None:
    while os.read(0, 1):
        pass
    server.should_exit = True
    time.sleep(_LAST_WORDS)
    os._exit(0)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
