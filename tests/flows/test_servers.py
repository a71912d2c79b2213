"""`lambdaflow ui` starts both pages on loopback and ends with its servers; `lambdaflow serve` says what runs when."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

from flows import servers
from tasks.config.reading import parse
from tasks.records import ConfigError


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def answers(url, seconds=90):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=5) as page:
                return page.status == 200
        except OSError:
            time.sleep(0.5)
    return False


@pytest.mark.parametrize("ending", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_both_pages_answer_and_a_signal_ends_them(workplace, ending):
    """In the long suite by the other signal too, which `test_either_signal_ends_the_servers` sees with processes that serve nothing."""
    ports = free_port(), free_port()
    environment = {**os.environ, "PREFECT_HOME": str(workplace / "prefect")}
    command = [sys.executable, "-m", "flows.cli", "ui", "--mlflow-port", str(ports[0]), "--prefect-port", str(ports[1])]
    ui = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    try:
        assert f"127.0.0.1:{ports[0]}" in ui.stdout.readline()
        assert answers(f"http://127.0.0.1:{ports[0]}/health")
        assert answers(f"http://127.0.0.1:{ports[1]}/api/health")
    finally:
        ui.send_signal(ending)
        assert ui.wait(60) == 0
    for port in ports:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.fixture
def signals():
    """Handlers of this process, put back afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_either_signal_ends_the_servers(workplace, signals, monkeypatch, capsys, ending):
    started = []
    popen = subprocess.Popen

    def idle(command, **how):
        started.append((command, popen([sys.executable, "-c", "import time; time.sleep(60)"], **how)))
        return started[-1][1]

    monkeypatch.setattr(subprocess, "Popen", idle)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), ending))
    timer.start()
    assert servers.serve_pages(5001, 4201) == 0
    (mlflow, first), (prefect, second) = started
    assert mlflow[mlflow.index("--host") :][:4] == ["--host", "127.0.0.1", "--port", "5001"]
    assert not any("mlflow.db" in argument for argument in mlflow), (
        "an address may hold a password, and arguments are for all to read"
    )
    assert prefect[prefect.index("--host") :] == ["--host", "127.0.0.1", "--port", "4201", "--no-services"]
    assert first.returncode == second.returncode == -signal.SIGTERM
    out = capsys.readouterr().out
    assert "MLflow   http://127.0.0.1:5001" in out
    assert "Prefect  http://127.0.0.1:4201" in out


def test_a_server_that_ends_by_itself_ends_the_other(workplace, signals, monkeypatch):
    started = []
    popen = subprocess.Popen

    def one_fails(command, **how):
        code = "raise SystemExit(3)" if "mlflow" in command else "import time; time.sleep(60)"
        started.append(popen([sys.executable, "-c", code], **how))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", one_fails)
    assert servers.serve_pages(5001, 4201) == 3
    assert started[1].returncode == -signal.SIGTERM


def test_models_in_parts_are_not_served():
    with pytest.raises(ConfigError, match="parts: 2 need Dask workers"):
        servers.serve_schedule(parse({"data": {"files": "x"}, "parts": 2}), "* * * * *", 4200)
