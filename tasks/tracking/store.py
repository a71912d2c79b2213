"""The store of runs: where it is, how it is opened, how often it is asked, and the tags by which runs and cells are found in it."""

import configparser
import errno
import fcntl
import os
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from textwrap import shorten
from typing import Any, TextIO, TypeVar

import mlflow
from mlflow.environment_variables import MLFLOW_ALLOW_FILE_STORE
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from mlflow.utils.uri import get_uri_scheme
from requests import RequestException
from sqlalchemy import NullPool, create_engine
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError

from tasks.records import TrackingError
from tasks.store.state import written_whole
from tasks.store.templates import clear_journals, keep, take
from tasks.tracking.moved import follow_move, follow_template
from tasks.tracking.secrets import masked, require_escaped

RUN_KEY, CELL_KEY, OWNER, PARENT = "lambdaflow.run_key", "lambdaflow.cell_key", "lambdaflow.owner", "mlflow.parentRunId"
ERROR = "lambdaflow.error"
CHOSEN, REFIT = "lambdaflow.chosen", "lambdaflow.refit"
"""Tags of a run, by ranker: keys of the chosen cells, one a fold, and of the cell that was trained on all data."""
FOUND = "lambdaflow.found"
"""Tag of a run or a study: a digest of what its evidence or its table says, which may change with a click log or with baselines while every
model stays."""
BELOW = "lambdaflow.below"
"""Tag of a cell: keys of those whose scores it learned from, in the order of its features."""
DIGEST = "lambdaflow.digest"
SEARCHED, BUDGET = "lambdaflow.searched", "lambdaflow.budget"
"""Tags of a run: what it searched (a digest), and how far it got within its time (JSON)."""
_KIND = {"mlflow.experimentKind": "custom_model_development"}
EXPERIMENT = "lambdaflow"
_STORE = Path("mlruns/mlflow.db")
_DATABASE_SERVER = re.compile(r"(postgresql|mysql|mssql)\b")
_PLACE_HOLDS = 157
"""Characters of an experiment's place of artifacts: of a run's, which is longer by 43, a database server's column holds 200, and SQLite's all."""
_TEMPLATE = f"mlflow-{mlflow.__version__}.db"


def tracking_uri() -> str:
    """``MLFLOW_TRACKING_URI`` where set, otherwise SQLite below ``mlruns/`` in the working directory.

    Raises:
        TrackingError: for an address whose password would be taken for a part of its server.
    """
    given = os.environ.get("MLFLOW_TRACKING_URI")
    if given:
        return require_escaped(given, "MLFLOW_TRACKING_URI")
    Path("mlruns").mkdir(exist_ok=True)
    return _database(_STORE)


def _database(path: Path) -> str:
    return f"sqlite:///{path.absolute()}"


def opened() -> tuple[MlflowClient, str]:
    """The store and the id of the project's experiment in it, made where missing.

    MLflow makes a database's tables at its first use: one process of this folder at a time gets there, and our own database is made beside
    its place until it has them all, or copied from this machine's template. Artifacts go to ``LAMBDAFLOW_ARTIFACTS``
    (such as ``s3://bucket/folder``) where set, otherwise where MLflow's server says, or below ``mlruns/`` where
    there is only a database.

    Raises:
        PermissionError: where the folder's own database is another user's, who has not let this one read it.
    """
    with _lock() as lock, _readable_store():
        fcntl.flock(lock, fcntl.LOCK_EX)
        own = None if tracking_uri().startswith("http") else Path("mlruns/artifacts").absolute().as_uri()
        if tracking_uri() == _database(_STORE) and not _STORE.exists():
            clear_journals(_STORE)
            with written_whole(_STORE) as partial:
                if take(_TEMPLATE, partial):
                    follow_template(partial)
                else:
                    MlflowClient(_database(partial)).get_experiment_by_name(EXPERIMENT)
                    keep(partial, _TEMPLATE)
        elif tracking_uri() == _database(_STORE) and not os.access(_STORE, os.R_OK):
            raise _closed(_STORE)
        elif tracking_uri() == _database(_STORE) and (was := _moved_from()):
            print(f"mlruns/ was in {was.parent}: the addresses in {_STORE} are those of {Path.cwd()} now", file=sys.stderr)
        _require_database()
        asked = os.environ.get("LAMBDAFLOW_ARTIFACTS")
        client, number = _opened(asked or own)
        if asked and (place := client.get_experiment(number).artifact_location) not in (asked, str(Path(asked).absolute())):
            _tell_once(
                f"LAMBDAFLOW_ARTIFACTS={masked(asked)} is for a new store: artifacts of this one go to {masked(place)}, as when it was made"
            )
        return client, number


@cache
def _tell_once(text: str) -> None:
    print(text, file=sys.stderr)


def _moved_from() -> Path | None:
    """`follow_move` of the folder's own database.

    Raises:
        TrackingError: where another program holds it for longer than half a minute.
    """
    try:
        return follow_move(_STORE)
    except sqlite3.OperationalError as error:
        raise TrackingError(f"{_STORE}: {error}; what is finished is kept, run the same command again") from None


def _lock() -> TextIO:
    """The file by which processes of this folder are one after another.

    Raises:
        TrackingError: where nothing can be written here, or ``mlruns`` is no folder.
    """
    try:
        Path("mlruns").mkdir(exist_ok=True)
        return open("mlruns/.lock", "w", encoding="utf-8")
    except FileExistsError:
        kind = "a link to a folder that is not there" if os.path.islink("mlruns") else "no folder"
        raise TrackingError(f"{Path('mlruns').absolute()}: this is {kind}, and runs and models are kept there") from None
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise TrackingError(
            f"{error.filename}: {error.strerror}: runs and models are kept in mlruns/ and .lambdaflow/ of the folder where the command is "
            "given, which must be writable; use another folder, or a copy of this one"
        ) from None


@contextmanager
def _readable_store() -> Iterator[None]:
    """
    Raises:
        TrackingError: where the folder's own database is damaged, or the file of MLflow's credentials cannot be read.
    """
    try:
        yield
    except configparser.Error as error:
        raise _unread_credentials(error) from None
    except (sqlite3.DatabaseError, DatabaseError) as error:
        said = str(getattr(error, "orig", error))
        if not _is_of_damage(said, "disk I/O"):
            raise
        raise _damage(said) from None


def _unread_credentials(error: configparser.Error) -> TrackingError:
    """What is wrong with the file that MLflow takes user and password from. The error itself quotes the line, and so the password."""
    line = getattr(error, "lineno", None)
    return TrackingError(
        f"~/.mlflow/credentials{f', line {line}' if line else ''}: MLflow cannot read it ({type(error).__name__}): below a line [mlflow] it has "
        "mlflow_tracking_username = … and mlflow_tracking_password = …, in which % is written as %%"
    )


def _closed(file: str | Path) -> PermissionError:
    """A file of the store that this user may not read or write, as the system would say it."""
    return PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))


def _is_of_damage(said: str, *also: str) -> bool:
    """Whether an error says that the folder's own database is damaged; `also`: what else says so, such as at its opening a disk that cannot be read."""
    return not is_shared() and any(sign in said for sign in ("malformed", "not a database", *also))


def _damage(said: str) -> TrackingError:
    return TrackingError(
        f"{_STORE}: {said}: it is damaged. Restore a backup, or try `sqlite3 {_STORE} .recover`; otherwise move the file away and run again. "
        f"Before another file takes its place, remove {_STORE.name}-journal, {_STORE.name}-wal and {_STORE.name}-shm: SQLite would play them into it"
    )


def _require_database() -> None:
    """Connects once to a database server, whose faults MLflow would go on with in silence for minutes.

    Raises:
        OperationalError: where it cannot be reached, or does not let us in.
        TrackingError: for an address that is none, of a database whose driver is not there, or of a folder, which MLflow opens no more.
    """
    address = tracking_uri()
    if _is_folder(address) and not MLFLOW_ALLOW_FILE_STORE.get():
        raise TrackingError(
            f"MLFLOW_TRACKING_URI={address}: MLflow keeps runs in databases, no longer in folders: name one (sqlite:///FILE), or a server; "
            "MLFLOW_ALLOW_FILE_STORE=true opens a folder of an older MLflow"
        )
    if not _DATABASE_SERVER.match(address):
        return
    waits = {} if address.startswith("mssql") else {"connect_timeout": 2}
    try:
        create_engine(address, poolclass=NullPool, connect_args=waits).connect().close()
    except (ArgumentError, ImportError, ValueError) as error:
        raise TrackingError(masked(f"MLFLOW_TRACKING_URI {address}: {error}")) from None


def _is_folder(address: str) -> bool:
    """Whether MLflow takes an address for a folder: a path, whatever colons are in it, but not one of the names without a colon that are stores."""
    return address not in ("databricks", "databricks-uc", "uc") and get_uri_scheme(address) in ("", "file")


def _opened(artifacts: str | None) -> tuple[MlflowClient, str]:
    client = MlflowClient(tracking_uri())
    found = client.get_experiment_by_name(EXPERIMENT)
    if found and found.lifecycle_stage == "deleted":
        number, address = found.experiment_id, masked(tracking_uri())
        raise TrackingError(
            f"the experiment {EXPERIMENT!r} was deleted in MLflow: restore it (MLFLOW_TRACKING_URI={address} mlflow experiments restore "
            f"-x {number}), or delete it for good with its runs (mlflow gc --experiment-ids {number}, with the store's address)"
        )
    if found and found.artifact_location.startswith("mlflow-artifacts:") and not tracking_uri().startswith("http"):
        raise TrackingError(
            f"the artifacts of {masked(tracking_uri())} are with an MLflow server (mlflow server --serve-artifacts), and only there: set "
            "MLFLOW_TRACKING_URI to that server's address, http://…, not to its database"
        )
    if found:
        for key in _KIND.keys() - found.tags.keys():
            client.set_experiment_tag(found.experiment_id, key, _KIND[key])
        return client, found.experiment_id
    place = artifacts if not artifacts or get_uri_scheme(artifacts) else str(Path(artifacts).absolute())
    if place and len(place) > _PLACE_HOLDS and _DATABASE_SERVER.match(tracking_uri()):
        raise TrackingError(
            f"{masked(place)}: in MLflow's database at {masked(tracking_uri())} the place of artifacts may have {_PLACE_HOLDS} characters, and this one has "
            f"{len(place)}: set LAMBDAFLOW_ARTIFACTS to a folder with a shorter path, or to s3://…"
        )
    try:
        return client, client.create_experiment(EXPERIMENT, artifacts, tags=_KIND)
    except MlflowException:
        found = client.get_experiment_by_name(EXPERIMENT)
        if found is None:
            raise
        return client, found.experiment_id  # another machine was faster


@contextmanager
def fluent() -> Iterator[None]:
    """MLflow's fluent calls go to `tracking_uri` inside, and nothing of it stays: MLflow keeps the address in the environment."""
    given = os.environ.get("MLFLOW_TRACKING_URI")
    mlflow.set_tracking_uri(tracking_uri())
    try:
        yield
    finally:
        mlflow.set_tracking_uri(given or "")


_PAUSES = (1.0, 2.0, 4.0, 8.0)
_AT_MOST = 15.0
"""Seconds after which nothing is tried again, also where each time takes long."""
_LATER = (8.0,) * 5
"""And then, of a server that has answered this process before: it may be restarted, which takes half a minute on a busy machine."""
_answered: set[str] = set()
PASSING = ("TEMPORARILY_UNAVAILABLE", "INTERNAL_ERROR", "REQUEST_LIMIT_EXCEEDED")
_AT_ONCE = re.compile("IntegrityError|UniqueViolation")
"""Two runs have entered the same data set at once: MLflow looks first and finds it the next time."""
Written = TypeVar("Written")
_CLOSED = re.compile(r"""\[Errno 13\] [^:]*: (?:'([^']*)'|"([^"]*)")""")
"""In what MLflow says of artifacts in a folder: a file that this user may not read or write, which waiting does not change."""
_CAUSE = re.compile(
    r"""(?:\(Caused by \w+|failed with exception )\((?:['"][^'"]*['"], )?(?:\w+\((?:\d+, )?)?['"]"""
    r"""(?:HTTPS?Connection(?:Pool)?\([^)]*\): )?(.*?)['"](?:, \w+\([^'"]*)?\)+$"""
)
"""In what urllib3 and requests say of a request that came to nothing."""
_AUTOFLUSH = re.compile(r"\(raised as a result of Query-invoked autoflush[^)]*\)")
"""SQLAlchemy's advice to programmers, in front of what is wrong."""


def patient(write: Callable[..., Written], pauses: Sequence[float] | None = None) -> Callable[..., Written]:
    """`write`, tried again after a while when the server does not answer or the database is locked by another. Everything that is
    decorated may be done twice."""

    @wraps(write)
    def tried(*given: Any, **named: Any) -> Written:
        began, server = time.monotonic(), os.environ.get("MLFLOW_TRACKING_URI", "")
        later = _LATER if server in _answered and pauses is None else ()
        for pause in (*(_PAUSES if pauses is None else pauses), *later, None):
            try:
                done = write(*given, **named)
                if server.startswith("http"):
                    _answered.add(server)
                return done
            except configparser.Error as error:
                raise _unread_credentials(error) from None
            except (MlflowException, ConnectionError, RequestException, OperationalError) as error:
                if not tracking_uri().startswith("http") and (closed := _CLOSED.search(str(error))):
                    raise _closed(closed[1] or closed[2]) from None
                if "readonly database" in str(error) and not is_shared() and not os.access(_STORE, os.W_OK):
                    raise _closed(_STORE) from None
                if _is_of_damage(str(error)):
                    raise _damage(str(getattr(error, "orig", error)).strip().splitlines()[0]) from None
                if isinstance(error, MlflowException) and error.error_code not in PASSING and not _AT_ONCE.search(str(error)):
                    raise
                if pause is None or time.monotonic() - began >= _AT_MOST + sum(later):
                    raise TrackingError(
                        masked(f"MLflow at {tracking_uri()} {_how(error)}; what is finished is kept, run the same command again")
                    ) from None
                time.sleep(pause)
        raise AssertionError

    return tried


def _how(error: Exception) -> str:
    """How a server fails that was asked for a while: what the requests themselves met, where a library says that it gave up."""
    said = _AUTOFLUSH.sub("", str(error)).strip().splitlines()[0]
    of_artifacts = "/mlflow-artifacts/" in said
    if cause := _CAUSE.search(said):
        said = cause[1]
    if status := re.fullmatch(r"too many (\d+) error responses", said):
        hint = ""
        if status[1] == "429":
            hint = " (too many requests at a time; where MLFLOW_HTTP_REQUEST_MAX_RETRIES is 3, each is repeated by itself)"
        elif status[1] == "503" and of_artifacts:
            hint = " to a request for artifacts (if it runs with --no-serve-artifacts, start it with --serve-artifacts)"
        return f"answers with error {status[1]}{hint}"
    return f"does not answer: {shorten(said, 300, placeholder=' …')}"


def is_shared() -> bool:
    """Whether other folders may have runs in the store; asking makes nothing."""
    return (os.environ.get("MLFLOW_TRACKING_URI") or _database(_STORE)) != _database(_STORE)


def is_there() -> bool:
    """Whether there is a store in which runs could be."""
    return bool(os.environ.get("MLFLOW_TRACKING_URI")) or _STORE.exists()
