"""What a process that has ended left half-written goes; what others may still be writing stays."""

import os
import platform
import subprocess
import sys

from tasks import store


def test_only_what_a_process_that_has_ended_left_is_cleared(workplace):
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    names = {
        f"a.{platform.node()}-{ended.stdout.strip()}-00000000.partial": False,
        f"b.{platform.node()}-{os.getpid()}-00000000.partial": True,
        f"c.elsewhere-{ended.stdout.strip()}-00000000.partial": True,
        "d.0123abcd.partial": True,
    }
    folder = workplace / store.STATE / "cells"
    for name in names:
        (folder / name).mkdir(parents=True)
    store.clear_partials()
    assert {name: (folder / name).exists() for name in names} == names


def test_a_file_that_is_not_finished_is_none(workplace):
    try:
        with store.written_whole(workplace / "a.txt") as partial:
            partial.write_text("half")
            raise KeyError
    except KeyError:
        pass
    assert list(workplace.iterdir()) == []
