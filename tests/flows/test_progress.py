"""What a person sees while a flow runs: lines where nobody watches a terminal, a bar with counts where somebody does."""

import io
import os
import re
import subprocess
import sys
import time

import pytest
from rich.console import Console

from flows import progress
from flows.progress import LEVELS, Steps, steps


def test_off_a_terminal_every_stage_and_step_is_a_line(capsys):
    with steps() as shown:
        shown.begin("data")
        shown.say("train: 40 queries, [12] documents each", LEVELS["note"])
        shown.begin("training", 2)
        shown.done("trees · learning_rate=0.1: validation NDCG@10 0.7000 (0.1 s)")
        shown.done("trees · learning_rate=0.3: validation NDCG@10 0.7100 (0.1 s)")
        shown.begin("report")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "data",
        "  train: 40 queries, [12] documents each",
        "training (2)",
        "  trees · learning_rate=0.1: validation NDCG@10 0.7000 (0.1 s)",
        "  trees · learning_rate=0.3: validation NDCG@10 0.7100 (0.1 s)",
        "report",
    ]


def test_a_long_line_is_not_wrapped_off_a_terminal(capsys):
    with steps() as shown:
        shown.say("word " * 100)
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("opened", [os.pipe, os.openpty])
@pytest.mark.parametrize("earlier", [False, True])
def test_a_run_whose_reader_is_gone_goes_on_in_silence(monkeypatch, opened, earlier):
    """As that of a worker which was killed, and of one in the background of a shell whose window was closed, before the run said anything
    or later. By itself rich ends the process with code 1, or fails with EIO."""
    reader, writer = opened()
    gone = [] if earlier else [reader]
    if earlier:
        os.close(reader)
    with open(writer, "w", encoding="utf-8", buffering=1) as broken:
        monkeypatch.setattr(progress, "console", type(progress.console)(file=broken))
        done = []
        with steps() as shown:
            for end in gone:
                os.close(end)
            for k in range(3):
                shown.done(f"cell {k}")
                done.append(k)
        assert done == [0, 1, 2]


def test_what_a_run_prints_at_its_end_needs_no_terminal_that_was_closed():
    """Standard output is the same terminal, and the exit code is that of the run."""
    window, terminal = os.openpty()
    code = "import sys; from flows.progress import console; sys.stdin.readline(); console.print('line'); print('table', flush=True)"
    run = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=terminal, stderr=terminal)
    os.close(terminal)
    os.close(window)
    run.communicate(b"\n", timeout=60)
    assert run.returncode == 0


def test_control_characters_are_shown_by_their_numbers(capsys):
    with steps() as shown:
        shown.say("feature \x1b[2J")
    assert capsys.readouterr().err == "  feature \\x1b[2J\n"


@pytest.fixture
def terminal(monkeypatch):
    """What is written to a terminal of 80 columns."""
    written = io.StringIO()
    monkeypatch.setattr(written, "isatty", lambda: True)
    console = Console(file=written, force_terminal=True, width=80, color_system=None, _environ={"TERM": "xterm"})
    monkeypatch.setattr(progress, "console", console)
    return written


@pytest.mark.parametrize(("on_a_terminal", "variables"), [(True, {"TERM": "dumb"}), (False, {"FORCE_COLOR": "1"})])
def test_what_cannot_be_drawn_anew_has_a_line_a_stage(monkeypatch, on_a_terminal, variables):
    """Emacs' shell, whose terminal is dumb, saw nothing at all, and a log of CI that asks for colours had a bar ten times a second."""
    written = io.StringIO()
    monkeypatch.setattr(written, "isatty", lambda: on_a_terminal)
    monkeypatch.setattr(progress, "console", Console(file=written, width=20, color_system=None, _environ=variables))
    assert progress.console.is_terminal
    with steps() as shown:
        shown.begin("training", 3)
        time.sleep(0.3)
        shown.done("linear 0.7000 (0.1 s)")
    assert written.getvalue().splitlines() == ["training (3)", "  linear 0.7000 (0.1 s)"]


def test_a_terminal_has_a_bar_that_counts_the_steps_of_a_stage(terminal):
    with steps() as shown:
        shown.begin("training", 3)
        shown.done("first cell")
        shown.done("second cell")
        (bar,) = shown._progress.tasks
        assert (bar.description, bar.completed, bar.total) == ("training", 2, 3)
        shown._progress.refresh()
        shown.begin("significance")
        (bar,) = shown._progress.tasks
        assert (bar.description, bar.completed, bar.total) == ("significance", 0, None)
    said = terminal.getvalue()
    assert "first cell" in said
    assert "second cell" in said
    assert "2/3" in said


def test_a_silence_is_broken_and_says_what_it_is_about(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_FIRST", 0.3)
    monkeypatch.setattr(progress, "_SILENT", 0.6)
    monkeypatch.setattr(Steps, "is_compiling", None)
    with steps("reading") as shown:
        time.sleep(0.7)
        with steps("ignored"):
            shown.begin("optimality", 2)
        time.sleep(1.1)
        monkeypatch.setattr(Steps, "how_far", lambda _: "net, 3 of 700")
        time.sleep(0.6)
        monkeypatch.setattr(Steps, "is_compiling", lambda _: True)
        time.sleep(0.9)
    time.sleep(0.8)
    said = capsys.readouterr().err.splitlines()
    assert said[:2] == ["reading", "optimality (2)"]
    assert re.match(r"  optimality, \d s", said[2])
    assert re.fullmatch(r"  optimality, \d s: net, 3 of 700", said[3])
    assert re.match(r"  optimality, \d s: compiling kernels", said[4])
    assert len(said) == 5


def test_silence_goes_on_from_one_part_of_a_command_to_the_next(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_FIRST", 0.8)
    monkeypatch.setattr(progress, "_SILENT", 1.2)
    monkeypatch.setattr(Steps, "last_word", time.monotonic() - 0.5)
    with steps("opening"):
        time.sleep(0.4)
    with steps("serving"):
        time.sleep(0.65)
    assert capsys.readouterr().err == "serving\n"


def test_nothing_is_said_of_what_is_done_at_once(capsys, monkeypatch):
    monkeypatch.setattr(Steps, "last_word", None)
    with steps():
        pass
    assert capsys.readouterr().err == ""


def test_a_terminal_is_told_how_far_trainings_are_and_that_kernels_are_compiled(terminal, monkeypatch):
    monkeypatch.setattr(Steps, "is_compiling", lambda _: False)
    monkeypatch.setattr(Steps, "how_far", lambda _: "net, 3 of 700")
    with steps() as shown:
        shown.begin("training", 3)
        time.sleep(0.6)
        (bar,) = shown._progress.tasks
        assert bar.description == "training: net, 3 of 700"
        monkeypatch.setattr(Steps, "is_compiling", lambda _: True)
        time.sleep(0.6)
        (bar,) = shown._progress.tasks
        assert bar.description.startswith("training: compiling kernels")


def test_a_long_word_about_what_is_under_way_leaves_room_for_bar_count_and_time(terminal, monkeypatch):
    """Two cells of a sweep, as they are, pushed all of them off the line; and what a cell is called is no markup."""
    monkeypatch.setattr(Steps, "is_compiling", lambda _: False)
    monkeypatch.setattr(
        Steps, "how_far", lambda _: "iteration 3 of 70 of a:b:c · x=[b], learning_rate=0.05, n_leaves=31; 4 of 70 of d"
    )
    with steps() as shown:
        shown.begin("training", 12)
        time.sleep(0.6)
        terminal.truncate(0)
        shown._progress.refresh()
        (line,) = re.findall(r"training.*", terminal.getvalue())
    assert re.fullmatch(r"training: iteration 3 of 70 of a:b:c · x=\[b\], lea… .* 0/12 0:00:0\d\s*", line)
