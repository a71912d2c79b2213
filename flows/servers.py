"""MLflow's and Prefect's own servers on loopback, over the working directory's state, and runs that begin by the clock."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import flows  # noqa: F401
from flows.own_server import HOST, wait_for
from tasks.config.run_config import RunConfig
from tasks.records import ConfigError
from tasks.tracking.secrets import masked
from tasks.tracking.tracker import tracking_uri


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _prefect(port: int, *more: str) -> list[str]:
    return [sys.executable, "-m", "prefect", "server", "start", "--host", HOST, "--port", str(port), *more]


@contextmanager
def _running(commands: Sequence[list[str]], environment: Mapping[str, str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Servers as processes, ended at the end; an interruption or a termination of this process ends it with code 0."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    servers = [
        subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True) for command in commands
    ]
    try:
        yield servers
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait()


def serve_pages(mlflow_port: int, prefect_port: int) -> int:
    """Starts both, prints their addresses and stays until interrupted, or until one of them ends."""
    mlflow = [
        sys.executable, "-m", "mlflow", "server", "--host", HOST, "--port", str(mlflow_port), "--workers", "1",
    ]  # fmt: skip
    # An address may hold a password: in the environment nobody else reads it, among the arguments everybody does.
    environment = {
        **os.environ,
        "MLFLOW_BACKEND_STORE_URI": tracking_uri(),
        "PREFECT_SERVER_UI_API_URL": f"http://{HOST}:{prefect_port}/api",
    }
    try:
        with _running([mlflow, _prefect(prefect_port, "--no-services")], environment) as servers:
            print(f"MLflow   http://{HOST}:{mlflow_port}")
            print(f"Prefect  http://{HOST}:{prefect_port}")
            print("Ctrl-C ends them.", flush=True)
            while all(server.poll() is None for server in servers):
                time.sleep(0.5)
            return max(server.poll() or 0 for server in servers)
    except KeyboardInterrupt:
        return 0


def serve_schedule(config: RunConfig, cron: str, prefect_port: int) -> int:
    """Runs a configuration whenever `cron` says, until interrupted. A run that is due while another is under way waits for it.

    The schedule lives in Prefect's server at ``PREFECT_API_URL``; where that is not set, one is started on loopback.

    Raises:
        ConfigError: for what is no cron expression, or models in parts, which need `run`'s --runner.
        OSError: where the server does not come up.
    """
    if config.parts > 1:
        raise ConfigError(
            f"parts: {config.parts} need Dask workers to hold them, and serve trains in this process; schedule `lambdaflow run`"
        )
    given = os.environ.get("PREFECT_API_URL")
    address = given or f"http://{HOST}:{prefect_port}/api"
    os.environ |= {"PREFECT_API_URL": address, "PREFECT_SERVER_UI_API_URL": address}
    from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
    from prefect.client.schemas.schedules import CronSchedule
    from prefect.deployments.runner import EntrypointType

    from flows.pipeline import run

    try:
        CronSchedule(cron=cron)
    except ValueError:
        raise ConfigError(f"--cron {cron!r}: five fields, minute hour day month weekday, such as '0 3 * * *'") from None
    one_at_a_time: Any = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.ENQUEUE)
    try:
        with _running([] if given else [_prefect(prefect_port)], os.environ) as servers:
            try:
                wait_for(address, servers)
            except OSError as error:
                raise OSError(f"{error}; is the port in use? (--prefect-port)") from None
            print(f"{config.name}: {cron}, at {masked(address).removesuffix('/api')}\nCtrl-C ends it.", flush=True)
            run.serve(
                name=config.name, cron=cron, parameters={"config": config.model_dump(mode="json")}, global_limit=one_at_a_time,
                print_starting_message=False, entrypoint_type=EntrypointType.MODULE_PATH,
            )  # fmt: skip
    except KeyboardInterrupt:
        pass
    return 0
