"""The same sweep on any engine: the same models and numbers from threads, processes and a Dask cluster that loses a worker."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from types import SimpleNamespace

import dask
import pytest
import yaml
from distributed import Client
from distributed.batched import BatchedSend
from tornado.ioloop import IOLoop

from flows import runners
from flows.cli import main
from flows.pipeline import run
from flows.progress import Steps
from flows.runners import KINDS, runner_of
from tasks.config.reading import parse
from tasks.records import ConfigError
from tests.flows.test_kill import rows

CONFIG = {
    "name": "anywhere",
    "data": {"generate": {"queries": [40, 20, 30], "documents": 12, "features": 12, "sessions": 20}},
    "rankers": {
        "linear": {"kind": "lambdarank", "epochs": 3, "sweep": {"learning_rate": [0.001, 0.002, 0.003, 0.004]}},
        "trees": {"kind": "lambdamart", "n_trees": 5, "n_leaves": 4, "sweep": {"learning_rate": [0.05, 0.1]}},
    },
    "measures": ["ndcg_10", "map"],
}


def prepared(folder):
    folder.mkdir()
    (folder / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    return folder


def models(done):
    return json.loads(done)["models"]


@pytest.fixture(scope="module")
def expected(prefect_server, tmp_path_factory):
    """What two threads of this process give."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("threads"))
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        outcome = runner_of("threads=2").start(run, parse(CONFIG), False)
    return json.loads(json.dumps(outcome.as_json()))["models"]


def test_processes_give_what_threads_give(workplace, expected, monkeypatch, capsys):
    monkeypatch.chdir(prepared(workplace / "run"))
    assert main(["run", "c.yaml", "--json", "--runner", "processes=2"]) == 0
    assert models(capsys.readouterr().out) == expected


def test_pythons_tracker_says_nothing_of_a_pool_that_lost_a_worker(monkeypatch):
    """It said now and then, below the error of a run, that there appear to be leaked semaphores."""
    seen = []
    monkeypatch.setattr(runners, "_pool", lambda: True)
    monkeypatch.setattr(runners, "ensure_running", lambda: seen.extend(sys.warnoptions))
    with runners.unheard_by_workers():
        assert sys.warnoptions == [one for one in seen if one != runners._TRACKED], "for the tracker alone"
    leaving = "import os, sys, multiprocessing; {}; lock = multiprocessing.get_context('spawn').Lock(); os._exit(0)"
    for before, said in (("", True), (f"sys.warnoptions += {seen}", False)):
        done = subprocess.run([sys.executable, "-c", leaving.format(before or "0")], capture_output=True, text=True, timeout=60)
        assert ("leaked semaphore" in done.stderr) is said, done.stderr


def test_of_messages_between_dask_and_its_workers_few_are_kept():
    """They hold a cell's whole context, and of a thousand that Dask keeps a sweep's process grew by 0.7 MB a cell."""
    KINDS["dask"](2)
    assert BatchedSend(interval="2ms", loop=IOLoop(make_current=False)).recent_message_log.maxlen == 20
    with dask.config.set({"distributed.admin.low-level-log-length": 300}):
        KINDS["dask"](2)
        assert dask.config.get("distributed.admin.low-level-log-length") == 300, "a user's own"


@pytest.mark.long
def test_a_cluster_that_loses_a_worker_gives_what_threads_give(workplace, expected, monkeypatch, capsys):
    """A real scheduler and two workers that were started in another folder; one is killed while cells are being trained."""
    elsewhere = workplace / "elsewhere"
    elsewhere.mkdir()
    quiet = {"cwd": elsewhere, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [sys.executable, "-m", "dask", "scheduler"]
    scheduler = subprocess.Popen(
        [*dask, "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", "cluster.json"], **quiet
    )
    workers = []
    try:
        for _ in range(200):
            if (elsewhere / "cluster.json").is_file():
                break
            time.sleep(0.1)
        address = json.loads((elsewhere / "cluster.json").read_text())["address"]
        arguments = ["worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny"]
        environment = {**os.environ, "NUMBA_NUM_THREADS": "1"}
        for _ in range(2):
            workers.append(subprocess.Popen([sys.executable, "-m", "dask", *arguments], env=environment, **quiet))
        with Client(address) as client:
            client.wait_for_workers(2, timeout=60)
        done = Steps.done
        monkeypatch.setattr(Steps, "done", lambda self, text: (workers[0].send_signal(signal.SIGKILL), done(self, text))[1])
        monkeypatch.chdir(prepared(workplace / "run"))
        assert main(["run", "c.yaml", "--json", "--runner", f"dask={address}"]) == 0
        assert workers[0].wait(30) == -signal.SIGKILL
        assert models(capsys.readouterr().out) == expected
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


@pytest.mark.long
def test_models_in_parts_are_the_models_of_one_machine(workplace, expected, capsys):
    (workplace / "c.yaml").write_text(yaml.safe_dump({**CONFIG, "parts": 3}))
    assert main(["run", "c.yaml", "--json", "--runner", "dask=2"]) == 0
    out, err = capsys.readouterr()
    assert models(out) == expected
    assert err.count("each tree cost") == 2
    assert rows(workplace, "mlflow", "select count(*) from tags where key = 'remarks' and value like '%each tree cost%'") == [(2,)]
    assert main(["run", "c.yaml", "--runner", "threads"]) == 1
    assert "parts: 3 need Dask workers to hold them: add --runner dask=3" in capsys.readouterr().err


def under_way(monkeypatch, deployment_id=None, parent_task_run_id=None):
    """Such a run, of whose deployment Prefect's server is not asked unless it is another flow's."""
    run = SimpleNamespace(deployment_id=deployment_id, parent_task_run_id=parent_task_run_id)
    monkeypatch.setattr(runners, "FlowRunContext", SimpleNamespace(get=lambda: SimpleNamespace(task_runner=None, flow_run=run)))
    monkeypatch.setattr(runners, "deployment", SimpleNamespace(id="of the other flow") if parent_task_run_id else None)


def test_a_run_is_a_deployments_as_the_flow_is_that_began_it(monkeypatch):
    for given, expected in (({}, False), ({"deployment_id": "d"}, True), ({"parent_task_run_id": "p"}, True)):
        under_way(monkeypatch, **given)
        assert runners.is_deployed() is expected


@pytest.mark.parametrize(
    ("deployed", "way"), [(None, "add --runner dask=2"), ("d", "which a deployment does not have; schedule `lambdaflow run`")]
)
def test_who_has_no_workers_to_hold_parts_is_told_how_to_have_some(monkeypatch, deployed, way):
    under_way(monkeypatch, deployment_id=deployed)
    with pytest.raises(ConfigError, match=way):
        runners.require_workers(parse({"data": {"files": "x"}, "parts": 2}))


def test_what_is_no_runner_is_refused(monkeypatch):
    monkeypatch.setattr("distributed.Client", lambda address, timeout: Client(address, timeout=0.5))
    for text in ("fibres", "threads=0", "processes=x", "dask=two"):
        with pytest.raises(ConfigError, match=r"threads\[=N\], processes"):
            runner_of(text)
    with pytest.raises(ConfigError, match="no scheduler there"):
        runner_of("dask=tcp://127.0.0.1:1")


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        (None, {"workers": 3}, 3),
        ("threads", {}, 1),
        ("processes", {}, 2),
        ("processes", {"workers": 3}, 3),
        ("processes=1", {"workers": 3}, 1),
        ("dask", {"parts": 4}, 4),
    ],
)
def test_without_a_number_there_are_as_many_as_the_configuration_says(monkeypatch, text, given, expected):
    made = []
    for kind in runners.KINDS:
        monkeypatch.setitem(runners.KINDS, kind, made.append)
    runner_of(text).start(lambda config, fresh: None, parse({**CONFIG, **given}), False)
    assert made == [expected]


NOT_HEARD = partial(signal.pthread_sigmask, signal.SIG_BLOCK, ())
"""What a process does not hear."""


def test_workers_do_not_hear_ctrl_c(monkeypatch):
    """They printed pages of what they were importing."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        monkeypatch.setattr(runners, "_pool", lambda: pool)
        with runners.unheard_by_workers():
            found = pool.submit(NOT_HEARD)
        assert signal.SIGINT not in NOT_HEARD()
        assert signal.SIGINT in found.result()
    monkeypatch.setattr(runners, "_pool", lambda: None)
    with runners.unheard_by_workers():
        assert signal.SIGINT not in NOT_HEARD()
