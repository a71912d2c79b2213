"""An error as the user of a command needs it, or of a run that began by the clock: one line and what to do."""

import errno
import os
import shutil
import sys

from tasks.records import printable
from tasks.tracking.secrets import masked

_NO_ROOM = 2**18
"""Bytes that are left where a database found no room."""


def tell(error: Exception) -> None:
    """Prints it on standard error."""
    text = printable(masked(_described(error)))
    for line in text.splitlines() or [type(error).__name__]:
        print(f"error: {line}", file=sys.stderr, flush=True)


def _described(error: Exception) -> str:
    """An error as its user needs it."""
    if _of_a_server(error):
        print(file=sys.stderr)  # behind what Prefect says of its logs without ending its line
    if (full := _full_disk(error)) is not None:
        return f"no space left on the device{full and ' for '}{full}: what is finished is kept, make room and run the same command again"
    if isinstance(error, ValueError | OSError):
        return str(error).strip()
    for one in (error, error.__cause__):
        if type(one).__module__.startswith("httpx"):
            where = os.environ.get("PREFECT_API_URL", "its own address")
            return f"Prefect at {where} does not answer: {one}; what was trained is kept, run the same command again"
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
