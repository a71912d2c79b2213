"""What a process that has ended left half-written goes; what others may still be writing stays."""

import os
import platform
import subprocess
import sys

import pytest

from tasks.records import Finding, Fold
from tasks.store import state


def test_only_what_a_process_that_has_ended_left_is_cleared(workplace):
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    names = {
        f"a.{platform.node()}-{ended.stdout.strip()}-00000000.partial": False,
        f"b.{platform.node()}-{os.getpid()}-00000000.partial": True,
        f"c.elsewhere-{ended.stdout.strip()}-00000000.partial": True,
        "d.0123abcd.partial": True,
    }
    folder = workplace / state.STATE / "cells"
    for name in names:
        (folder / name).mkdir(parents=True)
    state.clear_partials()
    assert {name: (folder / name).exists() for name in names} == names


def test_a_file_that_is_not_finished_is_none(workplace):
    try:
        with state.written_whole(workplace / "a.txt") as partial:
            partial.write_text("half")
            raise KeyError
    except KeyError:
        pass
    assert list(workplace.iterdir()) == []


def test_folders_are_whole_or_absent(workplace):
    target = workplace / "a" / "b"

    def fail_halfway():
        with state.made_whole(target) as partial:
            (partial / "half").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert not target.exists()
    assert not list(target.parent.iterdir())
    with state.made_whole(target) as partial:
        (partial / "all").write_text("1")
    with state.made_whole(target) as partial:
        (partial / "all").write_text("2")
    assert (target / "all").read_text() == "1"
    with state.made_whole(target, replace=True) as partial:
        (partial / "all").write_text("3")
    assert (target / "all").read_text() == "3"


def test_what_was_made_is_remembered_while_its_data_are_there(workplace):
    recipe = {"of": "x", "n": 1}
    noted = state.Noted(("a",), 2, ("a note",), (Fold("a", "a", "a"),), (Finding("note", "log", "fine"),))
    state.remember(recipe, noted)
    assert state.remembered(recipe) is None
    (state.STATE / "data" / "a").mkdir(parents=True)
    assert state.remembered({"n": 1, "of": "x"}) == noted
    assert state.remembered({"of": "x", "n": 2}) is None


def test_notes_of_an_earlier_release_are_read(workplace):
    (state.STATE / "data" / "a").mkdir(parents=True)
    recipe = {"reader": 2}
    state.write_json(state.STATE / "recipes" / f"{state.digest_of(recipe)[:32]}.json", {"data": ["a"], "split_queries": 3})
    assert state.remembered(recipe) == state.Noted(("a",), split_queries=3)
