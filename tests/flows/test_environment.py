"""What importing `flows` finds out about where it runs."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows import kernels_folder, make_state_folder
from flows.cli import main
from tasks.store.templates import version_of
from tests.conftest import own_environment


@pytest.fixture
def read_only(monkeypatch):
    """Folders that cannot be written to; also for root, whom modes do not keep out."""
    folders = set()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) not in folders)
    return folders


def test_kernels_have_a_folder_where_neither_installation_nor_home_can_be_written_to(tmp_path, read_only):
    installed, home = tmp_path / "kernels", tmp_path / "home"
    (installed / "__pycache__").mkdir(parents=True)
    home.mkdir()
    cache = home / ".cache"
    assert kernels_folder(installed, cache) is None
    read_only.add(installed / "__pycache__")
    assert kernels_folder(installed, cache) is None
    read_only.add(home)
    assert kernels_folder(installed, cache) == Path(".lambdaflow/kernels").absolute()
    cache.mkdir()
    assert kernels_folder(installed, cache) is None


def test_a_home_that_may_not_be_entered_is_none(tmp_path, read_only, monkeypatch):
    """As of ``sudo -u other``: every command ended with a stack trace."""
    installed, cache = tmp_path / "kernels", tmp_path / "home" / ".cache"
    installed.mkdir()
    cache.parent.mkdir()
    read_only |= {installed, cache.parent}
    stat = os.stat

    def locked(path, *arguments, **named):
        if str(path).startswith(f"{cache.parent}/"):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *arguments, **named)

    monkeypatch.setattr(os, "stat", locked)
    assert kernels_folder(installed, cache) == Path(".lambdaflow/kernels").absolute()
    assert version_of(cache / "lambdaflow" / "prefect.db") is None


def test_a_user_whom_the_system_does_not_know_has_a_home_in_the_folder(tmp_path):
    code = (
        "import os, pwd\n"
        "def unknown(number): raise KeyError(number)\n"
        "pwd.getpwuid = unknown\n"
        "import flows, mlflow\n"
        "print(os.environ['HOME'])"
    )
    environment = {name: value for name, value in own_environment().items() if name != "HOME"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(tmp_path / ".lambdaflow")
    assert not list(tmp_path.iterdir())


def test_the_folder_that_the_environment_names_stays(tmp_path):
    code = "import os, flows; print(os.environ['NUMBA_CACHE_DIR'])"
    environment = own_environment() | {"NUMBA_CACHE_DIR": "/given"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "/given"


@pytest.mark.parametrize("given", [{}, {"NO_PROXY": "corp.example"}, {"no_proxy": " corp.example,", "NO_PROXY": "other.example"}])
def test_servers_of_this_machine_are_asked_directly_where_there_is_a_proxy(tmp_path, given):
    code = (
        "import os, flows, urllib.request as r, httpx; client = httpx.Client(); direct = httpx.URL('http://127.0.0.1:9/');"
        "print(os.environ.get('no_proxy'), r.proxy_bypass('127.0.0.1'), r.proxy_bypass('localhost'), bool(r.proxy_bypass('pypi.org')),"
        " client._transport_for_url(direct) is client._transport)"
    )
    environment = {name: value for name, value in own_environment().items() if name.lower() != "no_proxy"} | given
    for proxy in ({"http_proxy": "http://127.0.0.1:1"}, {"ALL_PROXY": "http://127.0.0.1:1"}):
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment | proxy, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        own = "corp.example," if given else ""
        assert done.stdout.strip() == f"{own}127.0.0.1,localhost True True False True"


@pytest.mark.parametrize("given", ["*", "127.0.0.1,localhost"])
def test_what_is_asked_directly_already_stays(tmp_path, given):
    code = "import os, flows; print(os.environ['no_proxy'])"
    environment = own_environment() | {"http_proxy": "http://127.0.0.1:1", "no_proxy": given}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == given


def test_mlflow_writes_no_address_to_standard_output(tmp_path):
    """Beside a server it would print one as each run ends, and what `--json` writes would not be JSON alone."""
    code = (
        "import flows; from mlflow.environment_variables import MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT as quiet; print(quiet.get())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=own_environment(), cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "True"


def test_a_folder_that_cannot_be_written_to_is_told_as_such(tmp_path, monkeypatch):
    def refused(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(
        PermissionError, match=r"prefect: this folder cannot be written to; lambdaflow keeps what it makes in the folder"
    ):
        make_state_folder()


def test_a_state_that_another_user_has_closed_is_told_before_prefect_looks_into_it(tmp_path, monkeypatch, capsys):
    """A user with a umask of 077 made it in a folder that a group works in."""
    home, look = tmp_path / "prefect", os.stat

    def closed(path, *given, **named):
        if str(path).startswith(str(home)):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return look(path, *given, **named)

    monkeypatch.setenv("PREFECT_HOME", str(home))
    monkeypatch.setattr(os, "stat", closed)
    assert main(["run", "none.yaml"]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"error: {home}: you have no permission to read or write this; ")
    assert "chmod -R g+rwX" in told
    assert main(["interleave", "plan", "--preference", "0.05"]) == 0, "this needs nothing of it"


def test_a_home_of_prefect_that_cannot_be_made_is_named(monkeypatch):
    """As below ``/proc``, or on a network drive that is gone."""

    def lost(path, *_, **__):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))

    monkeypatch.setenv("PREFECT_HOME", "/gone/home")
    monkeypatch.setattr(Path, "mkdir", lost)
    with pytest.raises(OSError, match=r"^PREFECT_HOME=/gone/home: this folder cannot be made: no such file or directory$"):
        make_state_folder()


def test_warnings_of_mlflow_at_its_import_end_nothing(tmp_path):
    environment = own_environment() | {"PYTHONWARNINGS": "error::UserWarning"}
    subprocess.run([sys.executable, "-c", "import flows, mlflow.pyfunc.model"], env=environment, cwd=tmp_path, check=True)


@pytest.mark.parametrize(("kind", "said"), [("link", "a link to a folder that is not there"), ("file", "no folder")])
def test_a_state_folder_that_is_none_is_told(tmp_path, monkeypatch, kind, said):
    state = tmp_path / ".lambdaflow"
    state.symlink_to("/nowhere/disk") if kind == "link" else state.write_text("")
    monkeypatch.setenv("PREFECT_HOME", str(state / "prefect"))
    with pytest.raises(OSError, match=rf"\.lambdaflow: this is {said}, and lambdaflow keeps what it makes there"):
        make_state_folder()
