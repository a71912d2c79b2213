"""`lambdaflow ui` starts both pages on loopback and ends with its servers; `lambdaflow serve` says what runs when."""

import base64
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import httpx
import psutil
import pytest

from flows import servers


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


def only_their_own_page_is_answered(mlflow, prefect, password):
    """Neither server answers a page of another origin, or one that found its way here by a name of its own; Prefect's nobody without
    the password."""
    foreign, ours = {"Origin": "http://evil.example"}, {"Origin": f"http://localhost:{prefect}"}
    known = {"Authorization": f"Basic {base64.b64encode(password.encode()).decode()}"}
    filtered, search = f"http://127.0.0.1:{prefect}/api/flow_runs/filter", "/ajax-api/2.0/mlflow/experiments/search"
    found = httpx.post(filtered, headers=known | ours, json={})
    assert found.status_code == 200
    assert found.headers["access-control-allow-origin"] == ours["Origin"]
    assert httpx.get(f"http://127.0.0.1:{prefect}/ui-settings").json()["auth"] == "BASIC"
    assert httpx.post(filtered, headers=ours, json={}).status_code == 401
    for origin in (foreign["Origin"], "null", f"http://127.0.0.1:{mlflow}"):
        refused = httpx.post(filtered, headers=known | {"Origin": origin}, json={})
        assert refused.status_code == 403
        assert "access-control-allow-origin" not in refused.headers
    assert httpx.post(filtered, headers=known | {"Host": f"evil.example:{prefect}"}, json={}).status_code == 400
    page = f"http://127.0.0.1:{mlflow}"
    own = {"Origin": page}
    assert httpx.post(page + search, headers=own, json={"max_results": 5}).status_code == 200
    assert httpx.post(page + search, headers=foreign, json={"max_results": 5}).status_code == 403
    assert httpx.post(page + search, headers={"Host": f"evil.example:{mlflow}"}, json={"max_results": 5}).status_code == 403


@pytest.mark.parametrize("ending", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_both_pages_answer_and_a_signal_ends_them(workplace, ending):
    """In the long suite by the other signal too, which `test_either_signal_ends_the_servers` sees with processes that serve nothing."""
    ports = free_port(), free_port()
    environment = {**os.environ, "PREFECT_HOME": str(workplace / "prefect")}
    (workplace / "secrets.py").write_text("open('ran', 'w')")  # as a module of Python's own is called that both import
    command = [sys.executable, "-P", "-m", "flows.cli", "ui", "--mlflow-port", str(ports[0]), "--prefect-port", str(ports[1])]
    ui = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    try:
        assert f"127.0.0.1:{ports[0]}/#/experiments/1/runs?workflowType=machine_learning" in ui.stdout.readline()
        assert str(workplace / "prefect" / "password") in ui.stdout.readline()
        assert httpx.get(f"http://127.0.0.1:{ports[0]}/health").status_code == 200, "whoever reads the address may go there"
        assert httpx.get(f"http://127.0.0.1:{ports[1]}/api/health").status_code == 200
        only_their_own_page_is_answered(*ports, (workplace / "prefect" / "password").read_text().strip())
        (mlflow,) = [child for child in psutil.Process(ui.pid).children() if "mlflow" in child.cmdline()]
        assert len(mlflow.children(recursive=True)) == 1, "its worker, and nothing for jobs that no ranker has"
        assert not (workplace / "ran").exists()
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
        if len(started) == 2:
            threading.Timer(0.5, os.kill, (os.getpid(), ending)).start()
        return started[-1][1]

    monkeypatch.setattr(subprocess, "Popen", idle)
    monkeypatch.setattr(servers, "wait_for", lambda *_: None)
    assert servers.serve_pages(5001, 4201) == 0
    (prefect, second), (mlflow, first) = started
    assert mlflow[mlflow.index("--host") :][:4] == ["--host", "127.0.0.1", "--port", "5001"]
    assert not any("mlflow.db" in argument for argument in mlflow), (
        "an address may hold a password, and arguments are for all to read"
    )
    password = Path(os.environ["PREFECT_HOME"], "password").read_text().strip()
    assert not any(password in argument for argument in prefect)
    assert first.returncode == second.returncode == -signal.SIGTERM
    out = capsys.readouterr().out
    assert "MLflow   http://127.0.0.1:5001" in out
    assert "Prefect  http://127.0.0.1:4201" in out


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize(
    ("ends", "name", "code", "returned"),
    [
        ("raise SystemExit(3)", "MLflow", 3, 3),
        ("raise SystemExit(3)", "Prefect", 3, 3),
        ("import os; os.kill(os.getpid(), 9)", "MLflow", -9, 1),
    ],
)
def test_a_server_that_ends_by_itself_ends_the_other_and_is_told(
    workplace, signals, monkeypatch, capsys, ends, name, code, returned, answered
):
    """One that was killed ended the command with code 0, and of none was there a word."""
    started = []
    popen = subprocess.Popen

    def one_fails(command, **how):
        is_mlflow = "mlflow" in command
        started.append(
            popen([sys.executable, "-c", ends if is_mlflow == (name == "MLflow") else "import time; time.sleep(60)"], **how)
        )
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", one_fails)
    if answered:
        monkeypatch.setattr(servers, "wait_for", lambda *_: None)
    assert servers.serve_pages(5001, 4201) == returned
    assert started[name == "Prefect"].returncode == -signal.SIGTERM
    told = capsys.readouterr()
    assert told.err.splitlines()[-1] == f"error: {name}'s server has exited (code {code})"
    assert ("MLflow   http" in told.out) == answered


def test_a_port_that_is_taken_is_named(workplace, signals):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"port {number} \(--prefect-port\): Address already in use"):
            servers.serve_pages(5001, number)
        with pytest.raises(OSError, match=rf"port {number} \(--mlflow-port\): Address already in use"):
            servers.serve_pages(number, free_port())
