"""MLflow's and Prefect's own servers on loopback, over the working directory's state."""

import os
import signal
import subprocess
import sys
import time

import flows  # noqa: F401
from tasks.tracking import tracking_uri

_HOST = "127.0.0.1"


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def serve_pages(mlflow_port: int, prefect_port: int) -> int:
    """Starts both, prints their addresses and stays until interrupted, or until one of them ends."""
    commands = {
        f"MLflow   http://{_HOST}:{mlflow_port}": [
            sys.executable, "-m", "mlflow", "server", "--backend-store-uri", tracking_uri(), "--host", _HOST, "--port", str(mlflow_port), "--workers", "1",
        ],
        f"Prefect  http://{_HOST}:{prefect_port}": [
            sys.executable, "-m", "prefect", "server", "start", "--host", _HOST, "--port", str(prefect_port), "--no-services",
        ],
    }  # fmt: skip
    environment = {**os.environ, "PREFECT_SERVER_UI_API_URL": f"http://{_HOST}:{prefect_port}/api"}
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    servers = [subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) for command in commands.values()]
    try:
        for address in commands:
            print(address)
        print("Ctrl-C ends them.", flush=True)
        while all(server.poll() is None for server in servers):
            time.sleep(0.5)
        return max(server.poll() or 0 for server in servers)
    except KeyboardInterrupt:
        return 0
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait()
