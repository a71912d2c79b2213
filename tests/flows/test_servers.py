"""`lambdaflow ui` starts both pages on loopback and ends with its servers."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest


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


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_both_pages_answer_and_a_signal_ends_them(workplace, ending):
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
