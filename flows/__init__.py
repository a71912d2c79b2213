"""What can be run. Importing this package points Prefect and MLflow at the working directory, unless the environment says
otherwise, and keeps them quiet. Kernels are cached there too where neither the installation nor the home can be written to."""

import logging
import os
import sys
from pathlib import Path
from warnings import filterwarnings

# It is made when there is something to put into it (`make_state_folder`).
filterwarnings("ignore", message="Failed to create the Prefect home directory")
filterwarnings("ignore", message=".*Any type hint is inferred as AnyType")
try:
    _STATE = Path(".lambdaflow").absolute()
except FileNotFoundError:
    sys.exit("error: the folder that this was started in no longer exists; change to one that does")

for _name, _value in {
    "PREFECT_HOME": str(_STATE / "prefect"),
    "PREFECT_LOCAL_STORAGE_PATH": str(_STATE / "results"),
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_CLIENT_MAX_RETRIES": "4",  # half a minute; its own five are a minute, at each of several calls
    "DO_NOT_TRACK": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",  # it would make runs twice; `tasks.tracking.tracker.patient` looks whether there is one
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "NUMBA_THREADING_LAYER_PRIORITY": "omp tbb workqueue",
    "OPENBLAS_NUM_THREADS": "1",
}.items():
    os.environ.setdefault(_name, _value)

if os.path.expanduser("~") == "~":  # a user whom the system does not know, as in a container: MLflow and Prefect end without a home
    os.environ["HOME"] = str(_STATE)

# Requests to servers of this machine's own, and their password, never go to a proxy.
if any(os.environ.get(_name) for _name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")):
    _direct = [name.strip() for name in (os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or "").split(",") if name.strip()]
    if _direct != ["*"]:
        _direct += [name for name in ("127.0.0.1", "localhost") if name not in _direct]
        os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(_direct)

# What Prefect's logs could not be sent for is told once, by the command that ends with it.
logging.raiseExceptions = False


def kernels_folder(installed: Path, cache: Path) -> Path | None:
    """Where compiled kernels are kept if numba has no place of its own; None where it has.

    Args:
        installed: a folder of the core.
        cache: the user's cache folder, which may have to be made.
    """
    existing = next(
        folder for folder in (cache, *cache.parents) if os.path.exists(folder)
    )  # a home that may not be entered is none
    beside = installed / "__pycache__"
    if os.access(beside if beside.is_dir() else installed, os.W_OK) or os.access(existing, os.W_OK):
        return None
    return _STATE / "kernels"


_kernels = None
if "NUMBA_CACHE_DIR" not in os.environ:
    _cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()).absolute()
    _kernels = kernels_folder(Path(__file__).parents[1] / "ltr" / "kernels", _cache)
    if _kernels:
        os.environ["NUMBA_CACHE_DIR"] = str(_kernels)


def refused(place: Path) -> PermissionError:
    """What a user is told who may not read or write what another user made in a folder of both."""
    return PermissionError(
        f"{place}: you have no permission to read or write this; in a folder that several users work in, it must be readable and writable for their "
        "group (chmod -R g+rwX .lambdaflow mlruns, and umask 002 for each), or use another folder"
    )


def require_open_state() -> None:
    """Prefect looks into its home as soon as it is imported; call this before.

    Raises:
        PermissionError: where this user may not look there.
    """
    home = Path(os.environ["PREFECT_HOME"])
    try:
        os.stat(home / "profiles.toml")
    except PermissionError:
        raise refused(home) from None
    except OSError:
        pass  # there is none, or not yet a home: `make_state_folder` tells the rest


def make_state_folder() -> None:
    """Prefect makes its home but not the folders above it; call this before Prefect is imported.

    Raises:
        PermissionError: where the working directory cannot be written to.
        FileExistsError: where the folder is a file, or a link that leads nowhere.
        OSError: where it cannot be made for another reason.
        ValueError: where addresses of databases cannot name it.
    """
    if "?" in str(_STATE):
        raise ValueError(f"{_STATE.parent}: SQLite's addresses end at a ?; run lambdaflow in a folder without one in its name")
    if _kernels and not _kernels.is_dir():
        _kernels.mkdir(parents=True)
        print(f"compiled kernels are kept in {_kernels} (NUMBA_CACHE_DIR): installation and home are read-only", file=sys.stderr)
    try:
        Path(os.environ["PREFECT_HOME"]).mkdir(parents=True, exist_ok=True)
    except PermissionError as error:
        raise PermissionError(
            f"{error.filename}: this folder cannot be written to; lambdaflow keeps what it makes in the folder that it is run in"
        ) from None
    except (FileExistsError, NotADirectoryError) as error:
        place = next(one for one in (Path(error.filename), *Path(error.filename).parents) if os.path.lexists(one))
        kind = "a link to a folder that is not there" if place.is_symlink() else "no folder"
        raise FileExistsError(f"{place}: this is {kind}, and lambdaflow keeps what it makes there") from None
    except OSError as error:
        raise OSError(
            f"PREFECT_HOME={os.environ['PREFECT_HOME']}: this folder cannot be made: {os.strerror(error.errno or 0).lower()}"
        ) from None
