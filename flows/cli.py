"""``lambdaflow …``: one command from its arguments to its exit code, and its errors as its user needs them."""

import atexit
import errno
import gc
import os
import shutil
import sys
import traceback
from collections.abc import Sequence
from io import TextIOWrapper

from flows.arguments import parser


def entry() -> None:
    """The command as a process of its own. Most of what it imports stays to the end: it is looked through for rubbish rarely, which is a
    quarter of the time that importing takes, and not taken apart at the end, which takes more than a second."""
    codes: list[int] = []
    streams = [stream for stream in (sys.stdout, sys.stderr) if stream is not None]  # one that was closed is None
    for stream in streams:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what a terminal has no letter for ends no run

    def leave() -> None:
        if codes:
            try:
                for stream in streams:
                    stream.flush()
            except (OSError, ValueError):
                os._exit(codes[0] or 1)
            os._exit(codes[0])

    atexit.register(leave)
    gc.set_threshold(100_000, 50, 100)
    codes.append(main())
    sys.exit(codes[0])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; its exit code: 0 done, 1 failed or refused by the data, 2 wrong usage."""
    given = parser().parse_args(arguments)
    if progress := sys.modules.get("flows.progress"):
        progress.Steps.last_word = None  # that was an earlier command of this process
    try:
        return given.command(given)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 1
    except Exception as error:
        from tasks.tracking.secrets import masked

        if given.debug:
            print(masked(traceback.format_exc()), file=sys.stderr)
            return 1
        from tasks.records import printable

        text = printable(masked(_describe_error(error)))
        for line in text.splitlines() or [type(error).__name__]:
            print(f"error: {line}", file=sys.stderr)
        return 1


def _describe_error(error: Exception) -> str:
    """An error as its user needs it."""
    if _of_a_server(error):
        print(file=sys.stderr)  # behind what Prefect says of its logs without ending its line
    if (full := _full_disk(error)) is not None:
        return f"no space left on the device{full and ' for '}{full}: what was trained is kept, make room and run the same command again"
    if isinstance(error, ValueError | OSError):
        return str(error).strip()
    if type(error).__module__.startswith("httpx"):
        where = os.environ.get("PREFECT_API_URL", "its own address")
        return f"Prefect at {where} does not answer: {error}; what was trained is kept, run the same command again"
    return f"{type(error).__name__}: {error} (--debug shows where)"


def _full_disk(error: Exception) -> str | None:
    """The file that a full disk had no room for, empty where that is not known; None where an error comes from something else."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            return str(cause.filename2 or cause.filename or "")
        if "database or disk is full" in str(cause):
            return ""
        cause = cause.__cause__ or cause.__context__
    return "" if _of_a_server(error) and shutil.disk_usage(".").free < _NO_ROOM else None


def _of_a_server(error: Exception) -> bool:
    """Whether it is Prefect's client that failed: of what its server failed by it knows a number."""
    return type(error).__module__.split(".")[0] in ("prefect", "httpx")


_NO_ROOM = 2**18
"""Bytes that are left where a database found no room."""


if __name__ == "__main__":
    entry()
