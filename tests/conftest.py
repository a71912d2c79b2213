"""Shared fixtures: where real data are, small data sets, a clean working directory, one Prefect server a session."""

import fcntl
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

os.environ["PREFECT_HOME"] = tempfile.mkdtemp(prefix="prefect-")
os.environ["PREFECT_LOCAL_STORAGE_PATH"] = tempfile.mkdtemp(prefix="results-")

import numba
import numpy as np
import pytest

os.environ["PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW"] = "ignore"
import flows  # noqa: F401  (quiet settings, before Prefect is imported)
from ltr.data.queries import Queries, canonical
from ltr.metrics.evaluation import evaluate
from tasks.evidence.drawing import svg as drawn

SERVER = ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING")
"""By which the environment would name a server that is not the tests' own."""
for name in SERVER:
    os.environ.pop(name, None)

JIT = not numba.config.DISABLE_JIT
LONGEST = (
    "test_runners.py",
    "test_pipeline.py",
    "test_kernel.py",
    "test_one_place.py",
    "test_champion.py",
    "test_conf.py",
    "test_interruption.py",
    "test_cluster.py",
    "test_kill.py",
    "test_cli.py",
    "test_cache.py",
    "test_servers.py",
    "test_models_of_runs.py",
    "test_real_data.py",
    "test_access.py",
    "test_shards.py",
    "test_readers.py",
    "test_opening.py",
    "test_lambdamart.py",
    "test_neighbours.py",
    "test_study.py",
    "test_docs.py",
)


def own_environment() -> dict[str, str]:
    """For a command run as a process of its own: its state is in its working directory, as a user's is."""
    ours = {"PREFECT_HOME", "PREFECT_LOCAL_STORAGE_PATH", "PREFECT_API_URL", "MLFLOW_TRACKING_URI"}
    return {name: value for name, value in os.environ.items() if name not in ours}


def server_of_the_session() -> dict[str, str]:
    """By which a command finds the tests' server (`prefect_server`), where it is not to start one of its own."""
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL

    return dict(zip(SERVER, (PREFECT_API_URL.value(), PREFECT_API_AUTH_STRING.value()), strict=True))


FORKS = """
import json, os, sys
sys.dont_write_bytecode = True
imports, scripts = json.load(sys.stdin)
exec(imports)
for script in scripts:
    if os.fork() == 0:
        exec(script, {})
        sys.stdout.flush()
        os._exit(0)
    if os.wait()[1]:
        sys.exit(script)
"""


def printed_by_each(imports: str, scripts: Sequence[str], folder: Path) -> list[str]:
    """Lines that scripts print, each in a process of its own in which what takes long is imported already."""
    done = subprocess.run(
        [sys.executable, "-c", FORKS], input=json.dumps([imports, scripts]), cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def data_folder() -> Path | None:
    """``LAMBDAFLOW_DATA``, or ``../shared/data`` beside the checkout; None where neither is there."""
    for candidate in (os.environ.get("LAMBDAFLOW_DATA"), Path(__file__).parents[2] / "shared" / "data"):
        if candidate and Path(candidate).is_dir():
            return Path(candidate)
    return None


@pytest.fixture(scope="session")
def real_data() -> Path:
    folder = data_folder()
    if folder is None:
        pytest.skip("no real data: set LAMBDAFLOW_DATA to their folder (README, *Real data*)")
    return folder


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """An empty working directory: state, runs and reports of a test go there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path


def _blank(draw):
    return "<svg></svg>"


def _exchange(there, other):
    for name, module in list(sys.modules.items()):
        if name.startswith("tasks.") and getattr(module, "svg", None) is there:
            module.svg = other


@contextmanager
def undrawing():
    """No figure is drawn. A module that is imported meanwhile has the blank ones too, and draws afterwards as all others do."""
    _exchange(drawn, _blank)
    try:
        yield
    finally:
        _exchange(_blank, drawn)


@pytest.fixture
def undrawn():
    """Drawing takes a quarter of the time of small runs; reports that are drawn have tests of their own."""
    with undrawing():
        yield


@pytest.fixture(autouse=True)
def _one_thread():
    """The tests' data are small: on them kernels gain nothing by several threads, which wait for each other where processes of tests share the
    processors. Tests of what threads must not change have all of them (`all_threads`), and so has what runs as a process of its own."""
    numba.set_num_threads(1)


@pytest.fixture
def all_threads(_one_thread):
    """Kernels run on as many threads as a user's would."""
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)


@pytest.fixture
def twins(monkeypatch):
    """What is opened is open once more, as in a process that another thread forks meanwhile: the copies."""
    opening, copies = os.open, []

    def as_in_a_fork(*given):
        opened = opening(*given)
        copies.append(os.dup(opened))
        return opened

    monkeypatch.setattr(os, "open", as_in_a_fork)
    yield copies
    for one in copies:
        os.close(one)


def require_free(folder: Path) -> None:
    """Raises BlockingIOError where a lock of the folder is held."""
    place = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(place, fcntl.LOCK_UN)
    finally:
        os.close(place)


@pytest.fixture(scope="session")
def prefect_server():
    """A server as commands have one, which Prefect's settings name and the environment does not. Prefect's own harness starts one too, with
    all its services and migrations."""
    from flows.own_server import use_own_server

    use_own_server()
    for name in SERVER:
        del os.environ[name]


def pytest_collection_modifyitems(items):
    """The files that take longest begin, so that no process is left alone with one at the end; within a file the order stays."""
    last = len(LONGEST)
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else last)


def pytest_collection_finish():
    """What is imported by now stays: no full collection of garbage looks through it again, half a second each time."""
    gc.collect()
    gc.freeze()


def make_queries(n_queries=12, n_features=4, seed=0, largest=9, levels=5, clicks=True) -> Queries:
    """Random queries of 1 to `largest` documents in canonical order, with labels that the features explain a little."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, largest + 1, n_queries)
    n = int(sizes.sum())
    features = rng.normal(size=(n, n_features)).astype(np.float32)
    value = features[:, 0] + 0.5 * rng.normal(size=n)
    labels = np.searchsorted(np.quantile(value, np.linspace(0, 1, levels + 1)[1:-1]), value).astype(float)
    sources = {"click": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 4, n) / 4)} if clicks else {}
    return canonical(Queries(features, labels, np.concatenate(([0], np.cumsum(sizes))), sources=sources))


def share_of_random_weights(queries: Queries, value: float, n: int = 300) -> float:
    """Of random linear rankers, the share that reaches this NDCG@10: what a ranker has to beat before it has learned anything."""
    weights = np.random.default_rng(0).normal(size=(n, queries.n_features))
    scores = queries.features.astype(np.float64) @ weights.T
    found = [evaluate(queries.labels, np.ascontiguousarray(own), queries.offsets, "ndcg_10")["ndcg_10"] for own in scores.T]
    return float((np.nanmean(found, axis=1) >= value).mean())


@pytest.fixture
def queries() -> Queries:
    return make_queries()
