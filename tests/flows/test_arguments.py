"""What the command line takes, and what it refuses at once."""

import argparse
import subprocess
import sys
import time
from importlib.metadata import version

import pytest

from flows.arguments import parser
from flows.cli import main


def lambdaflow(*arguments, cwd):
    return subprocess.run([sys.executable, "-m", "flows.cli", *arguments], cwd=cwd, capture_output=True, text=True, timeout=300)


def test_help_is_instant_and_wrong_usage_is_2(tmp_path):
    started = time.perf_counter()
    done = lambdaflow("--help", cwd=tmp_path)
    assert time.perf_counter() - started < 2
    assert done.returncode == 0
    assert {"run", "check", "ui"} <= set(done.stdout.split())
    assert lambdaflow("--version", cwd=tmp_path).stdout == f"lambdaflow {version('lambdaflow')}\n"
    assert lambdaflow("fly", cwd=tmp_path).returncode == 2
    assert not list(tmp_path.iterdir())


def test_every_argument_says_what_it_is():
    def silent(of):
        for action in of._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from (one for inner in action.choices.values() for one in silent(inner))
            elif not action.help:
                yield f"{of.prog} {action.metavar or action.dest}"

    assert not list(silent(parser()))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ["fuse", "a.run", "b.run", "--qrels", "q", "--with", "rrf"],
            1,
            "fuse: --with rrf needs -o, the file to write that ranking to",
        ),
        (["fuse", "a.run", "b.run", "--qrels", "q", "-o", "no/f.run"], 1, "no/f.run: there is no folder no"),
        (
            ["explain", "--model", "m", "--data", "d", "--query", "q", "-o", "why.png"],
            1,
            "-o why.png: a drawing must be a .svg file",
        ),
        (["correct", "a.run", "b/a.run", "--machine", "m", "--people", "p"], 1, "error: correct: b/a.run: the name 'a' is taken"),
        (["clicks", "log.csv", "--seed", "-1"], 2, "--seed: '-1': must be a whole number, 0 or more"),
        (["offpolicy", "log.csv", "new.csv", "--seed", "x"], 2, "--seed: 'x': must be a whole number, 0 or more"),
        (["refit", "RUN", "--register", ""], 2, "--register: must not be empty"),
        (["refit", ""], 2, "RUN[:RANKER]: must not be empty"),
        (["compare", "RUN", ""], 2, "RUN[:RANKER]: must not be empty"),
        (["ui", "--mlflow-port", "65536"], 2, "--mlflow-port: '65536': a port must be a whole number from 1 to 65,535"),
        (
            ["serve", "c.yaml", "--cron", "* * * * *", "--prefect-port", "-1"],
            2,
            "--prefect-port: '-1': a port must be a whole number",
        ),
        (["compare", "a", "b", "--level", "0.9"], 1, "compare: --level 0.9 applies only with --tier"),
    ],
)
def test_contradictions_and_nonsense_are_refused_at_once(workplace, capsys, arguments, code, said):
    for name in ("a.run", "b.run", "q"):
        (workplace / name).write_text("")
    try:
        found = main(arguments)
    except SystemExit as ended:
        found = ended.code
    assert found == code
    assert said in capsys.readouterr().err
