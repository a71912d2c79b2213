"""A command's errors as its user reads them."""

import signal
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest

from flows import cli
from flows.cli import main
from tests.conftest import own_environment


def test_control_characters_in_names_do_not_reach_the_terminal(workplace, capsys):
    (workplace / "a.csv").write_text("query,document,label,f\x1b[2J\n1,a,2,0.5\n1,b,0,0.5\n2,c,3,0.5\n2,d,0,0.5\n")
    main(["check", "a.csv"])
    told = capsys.readouterr().out
    assert r"1 constant feature: f\x1b[2J" in told
    assert "\x1b" not in told
    (workplace / "a.csv").write_text("query,document,label,f\x1b[2J\n1,a,2,x\n")
    assert main(["check", "a.csv"]) == 1
    assert r"f\x1b[2J" in capsys.readouterr().err


@pytest.mark.long
def test_no_password_of_an_address_is_shown_or_kept(tmp_path):
    environment = own_environment() | {"MLFLOW_TRACKING_URI": "postgresql://user:canary@127.0.0.1:1/mlflow"}
    began, runs = time.monotonic(), []
    for more in ([], ["--debug"]):
        folder = tmp_path / str(len(more))
        folder.mkdir()
        (folder / "c.yaml").write_text("data: {generate: {queries: [4, 4, 4]}}\n")
        command = [sys.executable, "-m", "flows.cli", "run", "c.yaml", *more]
        runs.append(
            subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
    for run in runs:
        out, err = run.communicate(timeout=120)
        assert time.monotonic() - began < 40
        assert run.returncode == 1
        assert "MLflow at postgresql://***@127.0.0.1:1/mlflow does not answer" in err
        assert "canary" not in out + err
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]


def test_a_folder_that_is_gone_is_told(tmp_path):
    command = f"cd {tmp_path} && mkdir gone && cd gone && rmdir ../gone && {sys.executable} -c 'import flows.cli'"
    done = subprocess.run(command, shell=True, env=own_environment(), capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (
        1,
        b"error: the folder that this was started in no longer exists; change to one that does\n",
    )


def test_a_folder_that_no_database_can_be_in_is_told(tmp_path):
    folder = tmp_path / "q?m=1"
    folder.mkdir()
    (tmp_path / "c.yaml").write_text("data: {generate: {queries: [4, 4, 4]}}\n")
    command = [sys.executable, "-m", "flows.cli", "run", "../c.yaml"]
    done = subprocess.run(command, cwd=folder, env=own_environment(), capture_output=True, timeout=120, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith(
        f"error: {folder}: SQLite's addresses end at a ?; run lambdaflow in a folder without one in its name\n"
    )
    assert not list(folder.iterdir()) + [path for path in tmp_path.iterdir() if path not in (folder, tmp_path / "c.yaml")]


@pytest.mark.long
def test_closed_standard_streams_take_nothing_from_a_server(tmp_path):
    """The port that it is handed on was standard input, which the server's own then took the place of."""
    code = (
        "import flows; from flows import cli, own_server; "
        "cli.main = lambda: flows.make_state_folder() or own_server.use_own_server() or 0; cli.entry()"
    )
    command = f"{sys.executable} -c '{code}' <&- >&-"
    done = subprocess.run(command, shell=True, cwd=tmp_path, env=own_environment(), capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_standard_stream_that_cannot_be_written_to_is_as_a_closed_one(tmp_path):
    """A shell that was told to close it may have left its script there."""
    code = (
        "import sys; from flows import cli; cli.main = lambda: print(1, file=sys.stderr, flush=True) or print(2) or 0; cli.entry()"
    )
    (tmp_path / "c.sh").write_text(f"exec {sys.executable} -c '{code}' 2<c.sh\n")
    done = subprocess.run(["bash", "c.sh"], cwd=tmp_path, env=own_environment(), capture_output=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"2\n", b"")


@pytest.mark.parametrize("becomes", ["moved", "deleted", "made anew"])
def test_a_folder_that_is_moved_while_a_command_runs_is_told(tmp_path, monkeypatch, capsys, becomes):
    folder = tmp_path / "a"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def command(given):
        folder.rmdir() if becomes == "deleted" else folder.rename(tmp_path / "b")
        if becomes == "made anew":
            folder.mkdir()
        raise OSError("no such file")

    monkeypatch.setattr("flows.cli.parser", lambda: SimpleNamespace(parse_args=lambda _: Namespace(command=command, debug=False)))
    assert main([]) == 1
    said = (
        "deleted while the command ran, with all that was finished in it"
        if becomes == "deleted"
        else f"moved to {tmp_path / 'b'} while the command ran; run the same command again there to continue"
    )
    assert capsys.readouterr().err == f"error: {folder}: this folder was {said}\n"


def test_a_folder_that_cannot_be_seen_hides_no_error(tmp_path, monkeypatch, capsys):
    def command(given):
        monkeypatch.setattr(Path, "samefile", refused)
        raise OSError("the real reason")

    def refused(*_):
        raise PermissionError("/home")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("flows.cli.parser", lambda: SimpleNamespace(parse_args=lambda _: Namespace(command=command, debug=False)))
    assert main([]) == 1
    assert "the real reason" in capsys.readouterr().err


def test_a_terminal_of_few_letters_and_one_that_is_closed_end_no_command(tmp_path):
    (tmp_path / "Łódź.csv").write_text("query,docid,rating\na,1,2\n")
    command = f"{sys.executable} -m flows.cli judgments Łódź.csv --to trec -o out.qrels"
    environment = own_environment() | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(f"{command} >&-", shell=True, cwd=tmp_path, env=environment, capture_output=True, timeout=120)
    assert done.returncode == 0
    assert done.stderr.removeprefix(b"reading\n") == b"\\u0141\\xf3d\\u017a.csv: 1 query, 1 judgment\n"
    asked = f"{sys.executable} -m flows.cli compare a b --json >&-"
    done = subprocess.run(asked, shell=True, cwd=tmp_path, env=environment, capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (2, b"error: --json: standard output is closed\n")
    command = command.replace("out.qrels", "Łódź.qrels")
    done = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, b"wrote 1 judgment to \\u0141\\xf3d\\u017a.qrels\n")


def test_a_signal_that_a_library_makes_an_error_of_is_none(monkeypatch, capsys):
    """As pydantic does of what is raised while it serialises."""

    def serialise(_):
        try:
            cli._end(signal.SIGTERM, None)
        except SystemExit as ended:
            raise ValueError(f"Error calling function: {ended!r}") from ended

    monkeypatch.setattr(cli, "_ENDED", [])
    monkeypatch.setattr(
        cli, "parser", lambda: SimpleNamespace(parse_args=lambda _: SimpleNamespace(command=serialise, debug=False))
    )
    assert main(["check"]) == 128 + signal.SIGTERM
    assert not capsys.readouterr().err


IN_A_CALLBACK = """
import os, signal, sys, time, weakref
from types import SimpleNamespace
from flows import cli

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

def command(_):
    thing = type("Thing", (), {})()
    def callback(_):
        os.kill(os.getpid(), int(sys.argv[1]))
        time.sleep(1)
    kept = weakref.ref(thing, callback)
    del thing
    time.sleep(30)
    return 0

cli.parser = lambda: SimpleNamespace(parse_args=lambda _: SimpleNamespace(command=command, debug=False, needs_folder=False))
cli.entry()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_that_comes_while_python_calls_back_ends_the_command(number, code):
    command = [sys.executable, "-c", IN_A_CALLBACK, str(int(number))]
    done = subprocess.run(command, env=own_environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    assert not done.stderr
