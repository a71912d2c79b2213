"""An error as the user of a command needs it, or of a run that began by the clock: one line and what to do."""

import errno
import os
import re
import shutil
import sys
from pathlib import Path

from flows import refused
from tasks.records import printable
from tasks.tracking.secrets import masked

unanswered = False
"""Whether an error was that Prefect's server does not answer."""
_NO_ROOM = 2**18
"""Bytes that are left where a database found no room."""
_FULL = re.compile(r"database or disk is full|No space left on device \(os error 28\)|^\d+ requested and \d+ written$")
"""What SQLite, polars and numpy, whose error has no number, say of a full disk."""
_REFUSED = re.compile(r"\b40[13]\b")
"""What a server answers who wants another password, or one at all."""
_FORBIDDEN = re.compile(r"endpoint (\S+) failed with error code 403.*?Response body: '\s*([^<\s].*)'", re.DOTALL)
"""What MLflow, and no page of a server before it, answers to a user whom it knows, or to a request by a name that is not on its list of hosts, and what was asked of it."""
_OF_DATABASE = re.compile(r"\((?:psycopg2?|pymysql|MySQLdb|pyodbc)(?:\.\w+)*\.(\w+)\) (.+)")
"""How a database server's refusal begins in what SQLAlchemy, and so MLflow, says of it, before statement and parameters: its kind, and its own words."""
_NO_RIGHT = ("InsufficientPrivilege", "ReadOnlySqlTransaction")
_ANOTHER_PAGE = re.compile(r"error code 404.*Response body: '\s*<", re.DOTALL)


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
        return f"no space left on the device{full and ' for '}{full}: what is finished is kept; free some space and run the same command again"
    if isinstance(error, UnicodeEncodeError) and error.encoding == "utf-8":
        return f"{error.object.encode('utf-8', 'backslashreplace').decode()}: the name of this file or folder is not UTF-8 text; rename it"
    if isinstance(error, PermissionError) and error.filename and _is_kept(str(error.filename)):
        return str(refused(Path(error.filename)))
    if isinstance(error, ValueError | OSError):
        return str(error).strip()
    if _of_a_server(error) and _REFUSED.search(str(error).split(" for url")[0]):
        given = (
            "the password in PREFECT_API_AUTH_STRING is not the server's"
            if os.environ.get("PREFECT_API_AUTH_STRING")
            else ("it requires a password: PREFECT_API_AUTH_STRING=user:password")
        )
        return f"Prefect at {os.environ.get('PREFECT_API_URL', 'its own address')} refuses to answer: {given}"
    if type(error).__name__ == "MlflowException" and (forbidden := _FORBIDDEN.search(str(error))):
        address, answer = os.environ.get("MLFLOW_TRACKING_URI", "its address"), forbidden[2].strip()
        if "Host header" in answer:
            return f"MLflow at {address} refuses to answer (403): {answer}; start it with --allowed-hosts"
        asked = forbidden[1].partition("/mlflow/")[2] or forbidden[1]
        return f"MLflow at {address} does not allow this user {asked} (403: {answer}); ask its administrator for that permission"
    if type(error).__name__ == "MlflowException" and _REFUSED.search(str(error).split("Response body")[0]):
        return (
            f"MLflow at {os.environ.get('MLFLOW_TRACKING_URI', 'its address')} refuses to answer: set MLFLOW_TRACKING_USERNAME and "
            "MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, to what it accepts"
        )
    if type(error).__name__ == "MlflowException" and _ANOTHER_PAGE.search(str(error)):
        return f"{os.environ.get('MLFLOW_TRACKING_URI', 'its address')} is not an MLflow server: it answers with a web page; set MLFLOW_TRACKING_URI to the server's host, port and path"
    if type(error).__module__.split(".")[0] == "mlflow" and (refusal := _OF_DATABASE.search(str(error))):
        way = "ask its administrator for the right to read and write" if refusal[1] in _NO_RIGHT else "--debug shows the statement"
        return f"the database of MLflow at {os.environ.get('MLFLOW_TRACKING_URI', 'its address')} refuses this: {refusal[2]}; {way}"
    for one in (error, error.__cause__):
        if type(one).__module__.startswith("httpx"):
            global unanswered
            unanswered = True
            where = os.environ.get("PREFECT_API_URL", "its own address")
            return f"Prefect at {where} does not answer: {one}; what is finished is kept, run the same command again"
    if isinstance(error, RuntimeError) and str(error).startswith("Failed to reach API at"):
        return f"{os.environ.get('PREFECT_API_URL', 'its own address')}: no Prefect server answers; PREFECT_API_URL must be its address followed by /api"
    return f"{type(error).__name__}: {error} (--debug shows where)"


def _is_kept(file: str) -> bool:
    """Whether a file is of what is kept in this folder, which other users of a group may have made."""
    return any(Path(file).absolute().is_relative_to(Path(kept).absolute()) for kept in (".lambdaflow", "mlruns"))


def _full_disk(error: Exception) -> str | None:
    """The file that a full disk had no room for, empty where that is not known; None where an error comes from something else."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            return str(cause.filename2 or cause.filename or "")
        if _FULL.search(str(cause)):
            return ""
        cause = cause.__cause__ or cause.__context__
    return "" if _of_a_server(error) and no_room() else None


def no_room(folder: str = ".") -> bool:
    """Whether a folder's disk has no room for what a database writes."""
    return shutil.disk_usage(folder).free < _NO_ROOM


def _of_a_server(error: Exception) -> bool:
    """Whether it is Prefect's client that failed: of what its server failed by it knows a number."""
    return type(error).__module__.split(".")[0] in ("prefect", "httpx")
