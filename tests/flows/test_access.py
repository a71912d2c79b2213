"""Who may ask Prefect's servers of ours, seen with the requests of a hostile page; and what files a run reads that comes through one."""

import base64
import os
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
import websockets.sync.client
import yaml
from prefect.client.base import PrefectHttpxSyncClient

from flows.access import kept_password, require_allowed
from flows.cli import main
from tasks.config.reading import parse
from tasks.records import ConfigError
from tests.conftest import own_environment
from tests.flows.test_schedule import SMALL, free_port
from tests.flows.test_servers import answers


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.delenv("PREFECT_SERVER_API_AUTH_STRING", raising=False)
    return tmp_path


def test_the_password_is_kept_for_its_owner_alone(home, monkeypatch):
    with ThreadPoolExecutor(8) as pool:
        passwords = set(pool.map(lambda _: kept_password(), range(32)))
    ((password, where),) = passwords
    assert len(password) > 30
    assert password.startswith("lambdaflow:")
    assert where == str(home / "password")
    assert stat.S_IMODE(os.stat(where).st_mode) == 0o600
    assert list(home.iterdir()) == [home / "password"]
    (home / "password").write_text("")
    assert kept_password()[0] not in ("", password)
    monkeypatch.setattr(os, "geteuid", lambda: 12345 + os.getuid())
    with pytest.raises(
        PermissionError, match=r"password: this is the password of another user, .*_AUTH_STRING=user:password sets one for you"
    ):
        kept_password()
    monkeypatch.setenv("PREFECT_SERVER_API_AUTH_STRING", "me:mine")
    assert kept_password() == ("me:mine", "PREFECT_SERVER_API_AUTH_STRING")


def test_files_outside_the_allowed_folders_are_not_opened(workplace, monkeypatch):
    monkeypatch.setenv("LAMBDAFLOW_DATA", str(workplace / "public"))
    monkeypatch.setenv("SECRET", "shown")
    here = workplace / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    (here / "link.txt").symlink_to("/etc/passwd")
    for data in (
        {"files": "a.txt"},
        {"files": str(here / "sub" / "a.txt")},
        {"files": "$LAMBDAFLOW_DATA/x/a.txt"},
        {"generate": {}},
    ):
        require_allowed(parse({"data": data}))
    for outside in ("/etc/passwd", "../a.txt", "link.txt", "$LAMBDAFLOW_DATA/../a.txt", "/dev/stdin", f"{here}x/a.txt"):
        for data in (
            {"files": ["a.txt", outside]},
            {"train": "a.txt", "test": outside},
            {"files": "a.txt", "runs": {"bm25": outside}},
            {"files": "a.txt", "clicks": {"log": outside}},
        ):
            with pytest.raises(ConfigError, match="--allow FOLDER") as refused:
                require_allowed(parse({"data": data}))
            assert str(refused.value).startswith(f"{outside}: ")
    with pytest.raises(ConfigError, match=r"^\$SECRET/a.txt: runs that Prefect starts support no variable"):
        require_allowed(parse({"data": {"files": "$SECRET/a.txt"}}))
    monkeypatch.setenv("LAMBDAFLOW_ALLOW", f"/srv:{workplace}")
    require_allowed(parse({"data": {"files": "../a.txt"}}))


def test_serve_refuses_at_once_what_its_runs_would_not_read(workplace, monkeypatch, capsys):
    monkeypatch.setenv("LAMBDAFLOW_ALLOW", "")
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    (workplace / "c.yaml").write_text(yaml.safe_dump(SMALL | {"data": {"files": "/srv/judged.txt"}}))
    assert main(["serve", "c.yaml", "--cron", "0 3 * * *"]) == 1
    assert "error: /srv/judged.txt: runs that Prefect starts read files below" in capsys.readouterr().err
    assert main(["serve", "c.yaml", "--cron", "at noon", "--allow", "/srv"]) == 1
    assert "error: --cron 'at noon'" in capsys.readouterr().err


@pytest.mark.timeout(240)
def test_a_hostile_page_starts_nothing_and_a_form_reads_no_file_outside(tmp_path):
    """Requests as a page of another origin sends them, with and without what it cannot know; then the form, filled in by somebody who
    does know the password."""
    port = free_port()
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(SMALL))
    command = [sys.executable, "-m", "flows.cli", "serve", "c.yaml", "--cron", "0 0 1 1 *", "--prefect-port", str(port)]
    serving = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=own_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert f"http://127.0.0.1:{port}" in serving.stdout.readline()
        password = (tmp_path / ".lambdaflow" / "prefect" / "password").read_text().strip()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                assert password.encode() not in (process / "cmdline").read_bytes()
        api = f"http://127.0.0.1:{port}/api"
        assert answers(f"{api}/health")
        known = {"Authorization": f"Basic {base64.b64encode(password.encode()).decode()}"}
        # As Prefect's own clients do, it asks again where SQLite is busy: the server answers 503 then.
        with PrefectHttpxSyncClient(base_url=api, headers=known, timeout=20) as friend:
            until = time.monotonic() + 60
            while not (found := friend.post("/deployments/filter", json={}).json()) and time.monotonic() < until:
                time.sleep(0.2)
            (served,) = found
            form = {"parameters": {"config": SMALL | {"data": {"files": ["/etc/passwd"]}}}, "state": {"type": "SCHEDULED"}}
            begin = f"/deployments/{served['id']}/create_flow_run"
            evil = {"Origin": "http://evil.example"}
            for headers, code in (
                ({}, 401),
                ({"Authorization": "Basic bGFtYmRhZmxvdzpndWVzc2Vk"}, 401),
                (evil, 403),
                (known | evil, 403),
                (known | {"Origin": "null"}, 403),
                (known | {"Host": f"evil.example:{port}"}, 400),
                (known | {"Host": f"127.0.0.1.evil.example:{port}"}, 400),
            ):
                refused = httpx.post(api + begin, headers=headers, json=form)
                assert (refused.status_code, "access-control-allow-origin" in refused.headers) == (code, False), headers
            asked = {**evil, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
            assert httpx.options(api + begin, headers=asked).status_code == 403
            for page in ("http://evil.example", "null"):
                with pytest.raises(websockets.exceptions.InvalidStatus):
                    websockets.sync.client.connect(f"ws://127.0.0.1:{port}/api/events/in", origin=page)
            assert friend.post("/flow_runs/filter", json={"flow_runs": {"state": {"type": {"any_": ["PENDING"]}}}}).json() == []
            number = friend.post(begin, json=form).json()["id"]
            until = time.monotonic() + 120
            while (state := friend.get(f"/flow_runs/{number}").json()["state"])["type"] not in ("FAILED", "CRASHED", "COMPLETED"):
                assert time.monotonic() < until, state
                time.sleep(0.5)
            assert state["type"] == "FAILED"
            assert "/etc/passwd: runs that Prefect starts read files below" in state["message"]
            said = str(friend.post("/logs/filter", json={}).json()) + str(state)
            assert not any(line in said for line in Path("/etc/passwd").read_text().splitlines())
    finally:
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(60) == 0
