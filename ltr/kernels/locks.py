"""One after another where models are saved and kernels are cached."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path


@contextmanager
def locked(path: Path, alone: bool = True) -> Iterator[None]:
    """Others that lock this folder meanwhile wait, or this file whose name ends with ``.lock``, which is made. Those that are not `alone` wait for
    those that are, and not for each other. Nothing is locked where the system or the file system has no locks, or it may not be opened.

    Raises:
        OSError: where there is no such folder.
    """
    makes = path.suffix == ".lock" and not path.is_dir()
    with ExitStack() as held:
        with suppress(ImportError, PermissionError):
            import fcntl

            opened = os.open(path, os.O_RDWR | os.O_CREAT if makes else os.O_RDONLY, 0o666)
            held.callback(os.close, opened)
            with suppress(OSError):
                fcntl.flock(opened, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
                # A process that was forked meanwhile has it open too: closing it here would leave it locked for as long as that one lives.
                held.callback(_unlock, opened)
        yield


def _unlock(opened: int) -> None:
    import fcntl

    with suppress(OSError):
        fcntl.flock(opened, fcntl.LOCK_UN)
