"""MLflow's and Prefect's own servers on loopback, over the working directory's state."""

import os
import shlex
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import flows  # noqa: F401
from flows.access import HOST, NAMES, kept_password, origins
from flows.own_server import start, wait_for, why_ended
from flows.progress import steps
from tasks.tracking.pages import runs_page
from tasks.tracking.store import opened, tracking_uri

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Those that end a server."""
_LONGEST = 600
"""Seconds that servers may take until they answer: they import for some, and a busy machine makes many of them."""


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@contextmanager
def open_port(number: int, option: str) -> Iterator[socket.socket]:
    """A port of this machine, open.

    Raises:
        OSError: where somebody else has it.
    """
    try:
        port = socket.create_server((HOST, number))
    except OSError as error:
        raise OSError(f"port {number} ({option}): {error.strerror}") from None
    with port:
        yield port


@contextmanager
def running_servers() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that are put into the list are ended at the end; an interruption or a termination of this process ends it with code 0."""
    for number in SIGNALS:
        signal.signal(number, _interrupt)
    servers: list[subprocess.Popen[bytes]] = []
    try:
        yield servers
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait()


def _all_answer(servers: Sequence[subprocess.Popen[bytes]], addresses: Sequence[str]) -> bool:
    """Waits until these servers answer at these addresses; not where one of them ends before that.

    Raises:
        OSError: where there is no answer.
    """
    try:
        for address in addresses:
            wait_for(address, servers, _LONGEST)
    except OSError:
        if all(server.poll() is None for server in servers):
            raise
        return False
    return True


def serve_pages(mlflow_port: int, prefect_port: int) -> int:
    """Starts both, prints their addresses once they answer there and stays until interrupted, or until one of them ends: it says which, and
    the code is not 0.

    Raises:
        OSError: where a port is taken, and where no server answers.
    """
    mlflow = [
        sys.executable, "-m", "mlflow", "server", "--host", HOST, "--port", str(mlflow_port), "--workers", "1",
        "--uvicorn-opts", shlex.join(["--app-dir", sysconfig.get_path("purelib")]),  # otherwise it imports from where the user works
    ]  # fmt: skip
    # An address may hold a password: in the environment nobody else reads it, among the arguments everybody does.
    # MLflow's jobs judge answers of language models: eight processes that no ranker needs.
    environment = {
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_SERVER_ALLOWED_HOSTS": ",".join(f"{name},{name}:*" for name in NAMES),
        "MLFLOW_SERVER_CORS_ALLOWED_ORIGINS": ",".join(origins(mlflow_port)),
        **os.environ,
        "PYTHONSAFEPATH": "1",
        "MLFLOW_BACKEND_STORE_URI": tracking_uri(),
    }
    with steps("opening MLflow"):
        _, experiment = opened()
    password, where = kept_password()
    began = time.time()
    pages = {"PREFECT_SERVER_UI_API_URL": f"http://{HOST}:{prefect_port}/api", "PREFECT__SERVER_WEBSERVER_ONLY": "1"}
    try:
        with running_servers() as servers:
            # MLflow opens its port itself, seconds later, and another's page might answer there meanwhile.
            with open_port(prefect_port, "--prefect-port") as port, open_port(mlflow_port, "--mlflow-port"):
                servers.append(start(port, password, pages))
            servers.append(subprocess.Popen(mlflow, env=environment, stdout=subprocess.DEVNULL, start_new_session=True))
            with steps("starting MLflow's and Prefect's servers"):
                answer = _all_answer(servers, [f"http://{HOST}:{mlflow_port}", f"http://{HOST}:{prefect_port}/api"])
            if answer:
                print(f"MLflow   {runs_page(f'http://{HOST}:{mlflow_port}', experiment)}")
                print(f"Prefect  http://{HOST}:{prefect_port}   (password: see {where})")
                print("Ctrl-C ends them.", flush=True)
            while all(server.poll() is None for server in servers):
                time.sleep(0.5)
            ended = zip(("Prefect", "MLflow"), servers, strict=True)
            name, code = next((name, server.returncode) for name, server in ended if server.returncode is not None)
            why = why_ended(began) if name == "Prefect" else ""
            print(f"error: {name}'s server has exited (code {code}){why}", file=sys.stderr)
            return code if code > 0 else 1
    except KeyboardInterrupt:
        return 0
