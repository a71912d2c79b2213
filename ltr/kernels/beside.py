"""Compiling in a second process, which shares numba's cache, what this process will need after what it compiles itself.

numba holds Python's lock while it compiles, so threads gain nothing. joblib and multiprocessing start processes that import the user's
script again; this one runs one statement and reads neither a script nor anything from its standard input. What it does not finish,
because it was not allowed to start or was killed, is compiled here.
"""

import atexit
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numba

LONGEST = 120.0
"""Seconds that are waited at most: several times what it takes on a busy machine."""
_RUNNING: list[subprocess.Popen[bytes]] = []


def begin_beside(statement: str) -> None:
    """Runs a statement of Python in a process of its own, which imports from where this one does, and is ended where this one ends by itself.

    Nothing happens where this process may take one thread only, and where what runs is not Python's own program: an application that has
    Python within it would be started again.
    """
    python = sys.executable or ""
    if numba.get_num_threads() < 2 or getattr(sys, "frozen", False) or not Path(python).name.lower().startswith("python"):
        return
    paths, environment = [path for path in sys.path if isinstance(path, str)], dict(os.environ)
    if numba.config.CACHE_DIR:
        environment["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR
    nowhere = subprocess.DEVNULL
    alone = [python, "-I", "-c"]  # nothing comes from the folder that it runs in
    command = [*alone, f"import sys; sys.path[:] = {paths!r}; {statement}"]
    with suppress(OSError, ValueError):
        begun = subprocess.Popen(command, env=environment, stdin=nowhere, stdout=nowhere, stderr=nowhere)
        atexit.register(begun.kill)
        _RUNNING.append(begun)


def wait_beside() -> None:
    """Until all that was begun has ended, well or not, or has taken too long."""
    for begun in list(_RUNNING):
        try:
            begun.wait(LONGEST)
        except subprocess.TimeoutExpired:
            begun.kill()
            begun.wait()
        with suppress(ValueError):  # another thread has waited too
            _RUNNING.remove(begun)
