"""Runs are signed by their owner; what becomes of what an owner that is gone leaves behind is seen in test_kill."""

import platform
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect import flow, tags, task
from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound
from prefect.runtime import flow_run, task_run
from prefect.states import Crashed

from flows import leftovers
from flows.leftovers import clear, close_in_prefect, forget_outdated, owned, pause, signed
from flows.owners import has_ended, is_elsewhere, owner
from flows.pipeline import started
from flows.schedule import _only_one
from tasks.config.reading import parse
from tasks.tracking.tracker import Tracker
from tests.conftest import own_environment
from tests.flows.test_owners import HOLDS

ROOT = Path(__file__).parents[2]


@pytest.mark.usefixtures("prefect_server")
def test_runs_of_an_owner_are_closed_and_others_left(workplace):
    @flow
    def under_way():
        with signed() as mine:
            assert mine == owner()
        close_in_prefect(lambda who: False, "not theirs")
        with get_client(sync_client=True) as client:
            assert client.read_flow_run(flow_run.id).state_type == "RUNNING"
            close_in_prefect(lambda who: who == mine, "it was interrupted")
            return client.read_flow_run(flow_run.id).state.name

    with owned():
        assert under_way() == "Crashed"
    assert under_way() == "Crashed"


@pytest.mark.usefixtures("prefect_server")
def test_a_run_under_way_in_a_folder_that_was_copied_is_left_alone_on_a_shared_server(workplace, monkeypatch):
    """A hot backup that is restored beside the folder at work declared its run killed, and wrote into it."""
    for folder in ("a", "b"):
        (workplace / folder).mkdir()
    command = [sys.executable, "-c", HOLDS]
    with subprocess.Popen(
        command,
        cwd=workplace / "a",
        env={**own_environment(), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        theirs = holder.stdout.readline().strip()
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{workplace}/shared.db")
        monkeypatch.chdir(workplace / "a")
        run = Tracker("x", "key", owner=theirs)
        shutil.copytree(workplace / "a/.lambdaflow", workplace / "b/.lambdaflow")
        monkeypatch.chdir(workplace / "b")
        clear()
        assert run.client.get_run(run.run_id).info.status == "RUNNING"
        assert Tracker("x", "key", owner=owner(), is_elsewhere=is_elsewhere).run_id != run.run_id
        holder.stdin.close()
    monkeypatch.chdir(workplace / "a")
    clear()
    assert run.client.get_run(run.run_id).info.status == "KILLED"


def wait_until_running(client, task_run):
    """Prefect's server hears of a task, and then that it runs, a moment later."""
    until = time.monotonic() + 30
    while True:
        with suppress(ObjectNotFound):
            if (state := client.read_task_run(task_run).state) and state.type == "RUNNING":
                return
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.usefixtures("prefect_server")
def test_a_task_that_its_flow_has_left_behind_is_closed_too(workplace):
    """Prefect ends a flow whose process was told to end, and its task went on as RUNNING for good."""
    seen = {}

    @task
    def training():
        seen["task"] = task_run.id
        with get_client(sync_client=True) as client:
            client.set_flow_run_state(flow_run.id, Crashed(message="by Prefect"), force=True)
            close_in_prefect(lambda who: False, "not theirs")
            wait_until_running(client, seen["task"])
            close_in_prefect(lambda who: who == owner(), "it was interrupted")
            return client.read_task_run(seen["task"]).state.name

    @flow
    def under_way():
        with signed():
            return training()

    with owned():
        assert under_way() == "Crashed"


@pytest.mark.usefixtures("prefect_server")
def test_unfinished_runs_behind_the_first_page_are_seen():
    """Prefect gives 200 at a time: of a server with more that are under way, ours could be among the others for good."""
    runs = [SimpleNamespace(id=k) for k in range(450)]

    def read(flow_run_filter, limit, offset):
        return runs[offset : offset + min(limit, 200)]

    assert leftovers._unfinished(SimpleNamespace(read_flow_runs=read)) == runs


def test_what_is_outdated_behind_the_first_page_is_forgotten(monkeypatch):
    """Prefect gives 200 at a time; an older configuration was run by those behind them."""
    waiting = {k: SimpleNamespace(parameters={"seed": k % 2}, auto_scheduled=True, expected_start_time=None) for k in range(450)}

    @contextmanager
    def client(**_):
        yield SimpleNamespace(
            read_flow_runs=lambda limit, offset, **_: [SimpleNamespace(id=k, **vars(one)) for k, one in waiting.items()][
                offset : offset + min(limit, 200)
            ],
            delete_flow_run=waiting.pop,
        )

    monkeypatch.setattr(leftovers, "get_client", client)
    forget_outdated(uuid4(), {"seed": 1}, lambda at: True)
    assert sorted(waiting) == list(range(1, 450, 2))


@pytest.fixture
def deployed(monkeypatch, workplace):
    """A stand-in for a server of whose deployments this folder served "mine"; what it was asked for, and its deployments by name."""
    asked, known = [], {}

    def read_deployments(deployment_filter, limit, offset):
        asked.append(deployment_filter.name.any_)
        return [one for name, one in known.items() if name in deployment_filter.name.any_][offset : offset + limit]

    @contextmanager
    def client(**_):
        yield SimpleNamespace(
            read_deployments=read_deployments,
            read_deployment=known.__getitem__,
            resume_deployment=lambda name: setattr(known[name], "paused", False),
        )

    monkeypatch.setattr(leftovers, "get_client", client)
    monkeypatch.setattr(leftovers, "pause", lambda name: setattr(known[name], "paused", True))
    return asked, known


def test_a_server_is_asked_for_what_this_folder_served_and_nothing_else(deployed):
    asked, known = deployed
    dead = "machine-7-0123abcd@0123456789ab"
    known |= {name: SimpleNamespace(id=name, paused=False, version=dead) for name in ("mine", "theirs")}
    leftovers.pause_unserved(lambda who: True)
    assert not asked
    with _only_one("mine"):
        (Path(".lambdaflow/served") / "closed.lock").mkdir()
        (Path(".lambdaflow/served") / "damaged.lock").write_bytes(b"7 \xff\n")
        leftovers.pause_unserved(lambda who: who == dead)
    assert asked == [["mine"]] * 2, "a page, and none behind it"
    assert [name for name, one in known.items() if one.paused] == ["mine"]


@pytest.mark.parametrize("version", [None, "", "1.0", "v" * 300])
def test_a_version_that_is_no_owner_is_nobodys(deployed, version):
    """Nobody's file has a name of 300 characters: asking for it ended the run."""
    known = deployed[1]
    known["mine"] = SimpleNamespace(id="mine", paused=False, version=version)
    with _only_one("mine"):
        leftovers.pause_unserved(has_ended)
        leftovers.pause_unserved(lambda who: True)
    assert not known["mine"].paused


def test_what_is_served_again_while_it_is_paused_goes_on(deployed, monkeypatch):
    known = deployed[1]
    known["mine"] = SimpleNamespace(id="mine", paused=False, version="machine-7-0123abcd@0123456789ab")

    def served_and_paused(name):
        known[name] = SimpleNamespace(id=name, paused=True, version=owner())

    monkeypatch.setattr(leftovers, "pause", served_and_paused)
    with _only_one("mine"):
        leftovers.pause_unserved(lambda who: who != owner())
    assert not known["mine"].paused


def test_a_run_that_prefect_tries_again_is_its_new_owners(workplace):
    """It keeps the tags of the process that ended, and closed itself as killed."""
    config = parse({"name": "again", "data": {"generate": {}}, "rankers": {"a": {"kind": "least_squares"}}})
    ended = f"owner:{platform.node()}-1-00000000@{owner().rpartition('@')[2]}"

    @flow
    def again():
        with started(config, fresh=False), get_client(sync_client=True) as client:
            run = client.read_flow_run(flow_run.id)
            return run.state_type, set(run.tags)

    with tags(ended, "team", "owner:search-team"):
        assert again() == ("RUNNING", {"team", "owner:search-team", f"owner:{owner()}"})


def test_runs_that_somebody_else_takes_back_meanwhile_keep_no_others_waiting(monkeypatch):
    """Prefect's own runner may take back the same runs, and people delete deployments in its pages."""
    waiting = {uuid4(): SimpleNamespace(auto_scheduled=by_the_clock) for by_the_clock in (True, True, False, True)}
    lost, first = [], next(iter(waiting))

    def gone(*_):
        raise ObjectNotFound(Exception("404"))

    def delete(run):
        waiting.pop(run)
        if run == first:
            lost.append(run)
            gone()

    @contextmanager
    def client(**_):
        yield SimpleNamespace(
            pause_deployment=gone,
            read_flow_runs=lambda **_: [SimpleNamespace(id=run, **vars(about)) for run, about in waiting.items()],
            delete_flow_run=delete,
        )

    monkeypatch.setattr(leftovers, "get_client", client)
    pause(uuid4())
    assert lost == [first]
    assert [about.auto_scheduled for about in waiting.values()] == [False]
