"""A command's own Prefect server: ended with its owner, however that ends, and none where settings name one."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from flows.own_server import use_own_server
from tests.conftest import own_environment

OWNER = """
import os, time
from flows import make_state_folder
make_state_folder()
from flows.own_server import use_own_server
use_own_server()
print(os.environ["PREFECT_API_URL"], flush=True)
time.sleep(300)
"""


def owner_in(folder):
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-c", OWNER], cwd=folder, env=own_environment(), stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def answers(address):
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5):
            return True
    except OSError:
        return False


@pytest.mark.usefixtures("prefect_server")
def test_where_settings_name_a_server_no_other_is_started(workplace, monkeypatch):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    use_own_server()
    assert "PREFECT_API_URL" not in os.environ


def test_two_at_once_in_an_empty_folder_both_answer_and_each_ends_with_its_owner(tmp_path):
    with ThreadPoolExecutor() as pool:
        owners = list(pool.map(owner_in, [tmp_path / "project"] * 2))
    addresses = [owner.stdout.readline().strip() for owner in owners]
    assert len(set(addresses)) == 2
    assert all(answers(address) for address in addresses)
    os.killpg(owners[0].pid, signal.SIGKILL)
    owners[0].wait()
    until = time.monotonic() + 10
    while answers(addresses[0]) and time.monotonic() < until:
        time.sleep(0.1)
    assert not answers(addresses[0])
    assert answers(addresses[1])
    owners[1].kill()
    owners[1].wait()
