"""Runs that begin by the clock, on a real Prefect server: what is deployed, and in the long suite, that it runs when its minute comes,
served by the command line and by a worker of a process work pool."""

import asyncio
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterDeploymentId
from prefect.client.schemas.objects import ConcurrencyLimitStrategy
from prefect.client.schemas.schedules import CronSchedule
from prefect.exceptions import TerminationSignal
from prefect.flows import load_flow_from_entrypoint
from prefect.runner import Runner
from prefect.settings import PREFECT_API_URL
from prefect.states import AwaitingConcurrencySlot, Scheduled

import flows.leftovers
import flows.pipeline
from flows.cli import main
from flows.schedule import _ending_without, _is_due, _only_one, _zone, serve_schedule
from tasks.config.reading import parse
from tasks.config.run_config import RunConfig
from tasks.records import ConfigError, DataError
from tasks.report.outcome import RunOutcome
from tests.conftest import own_environment

SMALL = {
    "name": "every-minute",
    "data": {"generate": {"queries": [40, 20, 30], "documents": 12, "features": 12, "sessions": 20}},
    "rankers": {"linear": {"kind": "lambdarank", "epochs": 3}},
    "measures": ["ndcg_10"],
}
ROOT = Path(__file__).parents[2]
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def prefect(*arguments, **how):
    return subprocess.run(
        [sys.executable, "-m", "prefect", *arguments], capture_output=True, text=True, timeout=120, check=True, **how
    )


def scheduled(folder, name):
    """Flow runs of a deployment that the server made by its schedule: state and message."""
    query = (
        "select r.state_type, s.message from flow_run r join deployment d on r.deployment_id = d.id "
        "left join flow_run_state s on r.state_id = s.id where d.name = ? and r.auto_scheduled = 1"
    )
    with sqlite3.connect(folder / ".lambdaflow" / "prefect" / "prefect.db", timeout=30) as store:
        return store.execute(query, (name,)).fetchall()


@pytest.fixture
def address(prefect_server, workplace, monkeypatch):
    """The session's server in the environment, where `serve` looks for it; what it writes there is taken back."""
    known = PREFECT_API_URL.value()
    monkeypatch.setenv("PREFECT_API_URL", known)
    monkeypatch.setenv("PREFECT_SERVER_UI_API_URL", known)
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    yield known
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_what_is_served_is_a_deployment_that_runs_the_configuration(address, workplace, monkeypatch, capsys):
    """Deployed as `serve` asks for it, read back from the server, and run with the parameters and the entry point that stand there."""

    async def at_once(self):
        """The clock is not waited for."""

    monkeypatch.setattr(Runner, "start", at_once)
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    (workplace / "c.yaml").write_text(yaml.safe_dump(SMALL | {"seed": 7, "select": "map"}))
    assert main(["serve", "c.yaml", "--cron", "15 3 * * *"]) == 0
    said = capsys.readouterr().out
    assert f"every-minute: 15 3 * * *, at {address.removesuffix('/api')}" in said
    assert re.search(r"next run 20\d\d-\d\d-\d\d 03:15 \(Asia/Kolkata\)", said)
    with get_client(sync_client=True) as client:
        stored = client.read_deployment_by_name(f"{flows.pipeline.run.name}/every-minute")
    ((cron, zone),) = [(schedule.schedule.cron, schedule.schedule.timezone) for schedule in stored.schedules]
    assert (cron, zone) == ("15 3 * * *", "Asia/Kolkata")
    assert stored.global_concurrency_limit.limit == 1
    assert stored.concurrency_options.collision_strategy == ConcurrencyLimitStrategy.ENQUEUE
    assert stored.parameter_openapi_schema["definitions"]["RunConfig"]["properties"]["scale"]["maximum"] == 1
    outcome = load_flow_from_entrypoint(stored.entrypoint)(**stored.parameters)
    assert isinstance(outcome, RunOutcome)
    with sqlite3.connect(workplace / "mlruns" / "mlflow.db") as store:
        statuses = store.execute("select name, status from runs").fetchall()
        params = store.execute(
            "select p.key, p.value from params p join runs r on p.run_uuid = r.run_uuid where r.name = 'linear'"
        ).fetchall()
    assert sorted(statuses) == [("every-minute", "FINISHED"), ("linear", "FINISHED")]
    assert {("seed", "7"), ("stop_on", "map")} <= set(params), "a ranker has these from the run, however it was begun"


def test_what_waits_with_an_older_configuration_or_schedule_is_forgotten(address, workplace, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")

    async def at_once(self):
        """The clock is not waited for."""

    monkeypatch.setattr(Runner, "start", at_once)
    (workplace / "c.yaml").write_text(yaml.safe_dump(SMALL | {"name": "edited"}))
    assert main(["serve", "c.yaml", "--cron", "15 3 * * *"]) == 0
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(f"{flows.pipeline.run.name}/edited").id
        by_hand, by_the_clock, as_edited, by_another = (client.create_flow_run_from_deployment(deployment).id for _ in range(4))
        edited = {**SMALL, "name": "edited", "measures": ["map"]}
        with sqlite3.connect(Path(os.environ["PREFECT_HOME"]) / "prefect.db", timeout=30) as store:
            scheduled = "update flow_run set auto_scheduled = 1, expected_start_time = ? where id = ?"
            for one, clock in ((by_the_clock, "03:15"), (as_edited, "03:15"), (by_another, "02:00")):
                store.execute(scheduled, (f"2026-01-05 {clock}:00.000000", str(one)))
            config = json.dumps({"config": parse(edited).model_dump(mode="json")})
            for one in (as_edited, by_another):
                store.execute("update flow_run set parameters = ? where id = ?", (config, str(one)))
        (workplace / "c.yaml").write_text(yaml.safe_dump(edited))
        of = FlowRunFilter(deployment_id=FlowRunFilterDeploymentId(any_=[deployment]))
        left = set()

        async def look(self):
            left.update(run.id for run in client.read_flow_runs(flow_run_filter=of))

        monkeypatch.setattr(Runner, "start", look)
        assert main(["serve", "c.yaml", "--cron", "15 3 * * *"]) == 0
    assert left >= {by_hand, as_edited}
    assert not left & {by_the_clock, by_another}


def set_by_the_clock(client, deployment, state):
    """A run of a deployment as Prefect's scheduler makes it."""
    run = client.create_flow_run_from_deployment(deployment, state=state).id
    with sqlite3.connect(Path(os.environ["PREFECT_HOME"]) / "prefect.db", timeout=30) as store:
        store.execute("update flow_run set auto_scheduled = 1 where id = ?", (str(run),))


def waiting_by_the_clock(client, deployment):
    of = FlowRunFilter(deployment_id=FlowRunFilterDeploymentId(any_=[deployment]))
    return [run for run in client.read_flow_runs(flow_run_filter=of) if run.auto_scheduled]


def test_a_schedule_that_was_ended_runs_nothing_until_it_is_served_again(address, workplace, monkeypatch):
    """Prefect pauses a deployment itself, but not where a run was under way: other servers of its database went on setting down runs."""
    name, paused = f"{flows.pipeline.run.name}/every-minute", []

    async def ended(self):
        with get_client(sync_client=True) as client:
            found = client.read_deployment_by_name(name)
            paused.append(found.paused)
            set_by_the_clock(client, found.id, AwaitingConcurrencySlot())
        raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "start", ended)
    (workplace / "c.yaml").write_text(yaml.safe_dump(SMALL))
    for _ in range(2):
        assert main(["serve", "c.yaml", "--cron", "15 3 * * *"]) == 0
        with get_client(sync_client=True) as client:
            found = client.read_deployment_by_name(name)
            assert not waiting_by_the_clock(client, found.id)
        paused.append(found.paused)
    assert paused == [False, True, False, True]


def test_a_schedule_whose_process_was_killed_is_paused_by_the_next_run_of_the_folder(address, workplace, monkeypatch):
    """Another server in the folder went on setting down its runs for as long as it was dead, and all of them began at the next start."""
    name, versions = f"{flows.pipeline.run.name}/every-minute", []

    async def killed(self):
        with get_client(sync_client=True) as client:
            versions.append(client.read_deployment_by_name(name).version)
        raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "start", killed)
    (workplace / "c.yaml").write_text(yaml.safe_dump(SMALL))
    with monkeypatch.context() as patch:
        patch.setattr(flows.leftovers, "pause", lambda deployment: None)
        assert main(["serve", "c.yaml", "--cron", "15 3 * * *"]) == 0
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(name)
        client.resume_deployment(deployment.id)
        set_by_the_clock(client, deployment.id, Scheduled())
        flows.leftovers.clear()
        assert not client.read_deployment_by_name(name).paused, "whoever serves it is at work"
        monkeypatch.setattr(flows.leftovers, "has_ended", lambda who: who == versions[0])
        flows.leftovers.clear()
        assert client.read_deployment_by_name(name).paused
        assert not waiting_by_the_clock(client, deployment.id)


def test_the_nightly_deployment_is_of_the_flow_and_a_configuration():
    (deployed,) = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    assert load_flow_from_entrypoint(deployed["entrypoint"]).fn is flows.pipeline.run.fn
    assert isinstance(parse(deployed["parameters"]["config"]), RunConfig)
    assert deployed["concurrency_limit"] == {"limit": 1, "collision_strategy": "ENQUEUE"}
    (schedule,) = deployed["schedules"]
    assert CronSchedule(cron=schedule["cron"]).cron == "0 3 * * *"


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_scheduled_run_completes_served_and_in_a_work_pool(tmp_path):
    """The two tests above stay in the normal suite: what `serve` deploys is run from what the server stores, without waiting for a
    minute to come."""
    port = free_port()
    environment = own_environment() | {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api", "PWD": str(tmp_path)}
    environment["PREFECT_HOME"] = str(tmp_path / ".lambdaflow" / "prefect")
    environment["PYTHONPATH"] = str(ROOT)
    Path(environment["PREFECT_HOME"]).mkdir(parents=True)
    how = {"cwd": tmp_path, "env": environment}
    deployed = yaml.safe_load((ROOT / "prefect.yaml").read_text())
    deployed["deployments"][0]["schedules"] = [{"cron": "* * * * *"}]
    deployed["deployments"][0]["parameters"]["config"]["rankers"]["trees"]["objective"] = "ndcg"
    (tmp_path / "prefect.yaml").write_text(yaml.safe_dump(deployed))
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(SMALL))
    python = [sys.executable, "-m"]
    processes = [subprocess.Popen([*python, "prefect", "server", "start", "--port", str(port)], **how, **QUIET)]
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.3)
        processes.append(subprocess.Popen([*python, "flows.cli", "serve", "c.yaml", "--cron", "* * * * *"], **how, **QUIET))
        prefect("work-pool", "create", "--type", "process", "lambdaflow", **how)
        prefect("--no-prompt", "deploy", "--all", **how)
        processes.append(subprocess.Popen([*python, "prefect", "worker", "start", "--pool", "lambdaflow"], **how, **QUIET))
        for name in ("every-minute", "nightly"):
            deadline, seen = time.monotonic() + 150, []
            while not any(state == "COMPLETED" for state, _ in seen):
                assert time.monotonic() < deadline, seen
                assert not [message for state, message in seen if state in ("FAILED", "CRASHED")]
                time.sleep(1)
                seen = scheduled(tmp_path, name)
        with sqlite3.connect(tmp_path / ".lambdaflow" / "prefect" / "prefect.db") as store:
            limits = store.execute("select name, concurrency_limit, concurrency_options from deployment order by name").fetchall()
            forms = store.execute("select parameter_openapi_schema from deployment").fetchall()
        assert [(name, limit) for name, limit, _ in limits] == [("every-minute", 1), ("nightly", 1)]
        assert all("ENQUEUE" in options for *_, options in limits)
        assert all(json.loads(form)["definitions"]["RunConfig"]["properties"]["scale"]["maximum"] == 1 for (form,) in forms)
        with sqlite3.connect(tmp_path / "mlruns" / "mlflow.db") as store:
            assert {"every-minute", "nightly"} <= {
                name for (name,) in store.execute("select name from runs where status = 'FINISHED'")
            }
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("ending", [*SIGNALS, signal.SIGKILL])
def test_a_schedule_ended_in_the_middle_of_a_run_goes_on(tmp_path, ending):
    """The run under way is closed within seconds, or by the next `serve` where the server was killed, and the next minute's completes.
    The normal suite's `test_leftovers` closes runs of owners that are gone."""
    endless = SMALL | {"rankers": {"trees": {"kind": "lambdamart", "n_trees": 100_000, "patience": 0}}}
    environment = own_environment() | {"PYTHONPATH": str(ROOT), "PWD": str(tmp_path)}
    command = [sys.executable, "-m", "flows.cli", "serve", "c.yaml", "--cron", "* * * * *", "--prefect-port", str(free_port())]

    def served(config, state):
        (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
        serving = subprocess.Popen(command, cwd=tmp_path, env=environment, **QUIET)
        deadline = time.monotonic() + 200
        while not (tmp_path / "mlruns" / "mlflow.db").is_file() or state not in dict(scheduled(tmp_path, "every-minute")):
            assert serving.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.5)
        return serving

    serving = served(endless, "RUNNING")
    time.sleep(5)
    serving.send_signal(ending)
    began = time.monotonic()
    assert serving.wait(20) == (-signal.SIGKILL if ending == signal.SIGKILL else 0)
    if ending != signal.SIGKILL:
        assert time.monotonic() - began < 8
        assert "RUNNING" not in dict(scheduled(tmp_path, "every-minute"))
    serving = served(SMALL, "COMPLETED")
    serving.send_signal(signal.SIGTERM)
    assert serving.wait(20) == 0
    assert not {"RUNNING", "PENDING"} & set(dict(scheduled(tmp_path, "every-minute")))
    with sqlite3.connect(tmp_path / "mlruns" / "mlflow.db") as store:
        statuses = {status for (status,) in store.execute("select status from runs")}
    assert "RUNNING" not in statuses
    assert "FINISHED" in statuses


def test_a_name_is_served_once_in_a_folder(workplace):
    """To Prefect two would be one deployment, which has the later schedule and is paused when either ends."""
    with (
        _only_one("nightly"),
        _only_one("hourly"),
        pytest.raises(ConfigError, match=f"nightly is served here already, by process {os.getpid()}: end it first"),
        _only_one("nightly"),
    ):
        pass
    with _only_one("nightly"):
        pass


def test_a_name_that_another_folder_serves_on_a_teams_server_is_refused(address, workplace, monkeypatch, capsys):
    async def at_once(self):
        """The clock is not waited for."""

    monkeypatch.setattr(Runner, "start", at_once)
    (workplace / "c.yaml").write_text(yaml.safe_dump({**SMALL, "name": "of-two-folders"}))
    command = ["serve", "c.yaml", "--cron", "15 3 * * *"]
    assert [main(command), main(command)] == [0, 0], "what was here before is this folder's own"
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(f"{flows.pipeline.run.name}/of-two-folders")
        client.resume_deployment(deployment.id)  # as where its process is at work, or was killed
    monkeypatch.setattr("flows.owners.owner", lambda: "machine-1-ab@another")
    assert main(command) == 1
    assert re.search(
        r"error: of-two-folders is served on this Prefect server already, by .+@.+: give",
        capsys.readouterr().err,
    )
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(f"{flows.pipeline.run.name}/of-two-folders")
        client.pause_deployment(deployment.id)
    assert main(command) == 0


@pytest.mark.parametrize(
    ("given", "zone"),
    [
        ("America/New_York", "America/New_York"),
        (":Europe/Berlin", "Europe/Berlin"),
        ("/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"),
    ],
)
def test_the_zone_is_that_of_the_environment(monkeypatch, given, zone):
    monkeypatch.setenv(
        "TZ", given if Path(given).is_file() or given[0] != "/" else zone
    )  # some machines have their zones elsewhere
    assert _zone() == zone


def test_a_zone_by_its_file_is_that_file(monkeypatch, tmp_path):
    (tmp_path / "zones/Asia").mkdir(parents=True)
    (tmp_path / "zones/Asia/Tokyo").write_bytes(b"TZif")
    (tmp_path / "localtime").symlink_to("zones/Asia/Tokyo")
    monkeypatch.setattr("flows.schedule.TZPATH", ("/nowhere", f"{tmp_path}/zones"))
    for given in (f":{tmp_path}/localtime", f"{tmp_path}/zones/Asia/Tokyo"):
        monkeypatch.setenv("TZ", given)
        assert _zone() == "Asia/Tokyo"


def test_a_file_that_is_no_zone_by_its_name_is_refused(monkeypatch, tmp_path):
    (tmp_path / "zone").write_bytes(b"TZif")
    monkeypatch.setenv("TZ", f"{tmp_path}/zone")
    with pytest.raises(ConfigError, match="zone is not the name of a time zone"):
        _zone()


@pytest.mark.parametrize("given", ["UTC-3", "<+03>-3", "EST5EDT,M3.2.0,M11.1.0", "europe/berlin", "Europe/Nowhere"])
def test_a_zone_that_is_known_to_the_c_library_alone_or_to_nobody_is_refused(monkeypatch, given):
    monkeypatch.setenv("TZ", given)
    with pytest.raises(
        ConfigError, match=f"TZ={re.escape(given)} is not the name of a time zone; set one such as TZ=Europe/Berlin"
    ):
        _zone()


def test_files_that_are_not_there_are_told_before_the_first_run(address, workplace, monkeypatch, capsys):
    async def at_once(self):
        """The clock is not waited for."""

    monkeypatch.setattr(Runner, "start", at_once)
    (workplace / "c.yaml").write_text(yaml.safe_dump({"name": "nightly", "data": {"files": "tonight.csv"}}))
    assert main(["serve", "c.yaml", "--cron", "0 3 * * *"]) == 0
    assert "warning: tonight.csv: no such file; scheduled runs will fail until it exists\n" in capsys.readouterr().err
    (workplace / "tonight.csv").write_text("")
    assert main(["serve", "c.yaml", "--cron", "0 3 * * *"]) == 0
    assert "warning" not in capsys.readouterr().err


def test_what_is_no_time_is_refused(address, workplace, capsys):
    (workplace / "c.yaml").write_text(yaml.safe_dump(SMALL))
    form = "expected five fields, minute hour day month weekday, such as '0 3 * * *'"
    ranges = ": minutes 0-59, hours 0-23, days 1-31, months 1-12, weekdays 0-7 or mon-sun, or @daily"
    for cron, more in {"at noon": "", "0 0 3 * * *": "", "0 25 * * *": ranges, "0 3 * * 1-9": ranges, "@reboot": ranges}.items():
        assert main(["serve", "c.yaml", "--cron", cron]) == 1
        assert capsys.readouterr().err == f"error: --cron {cron!r}: {form}{more}\n"


@pytest.mark.parametrize("cron", ["0 * * * *", "*/20 * * * *", "30 2 * * *", "0 3 * * *", "* * * * *"])
def test_what_is_due_is_known_when_clocks_are_put_forward_and_back(cron):
    """The run at 3 on the day of summer time was taken for one that is not due any more, and deleted."""
    from prefect.server.schemas.schedules import CronSchedule

    clock = CronSchedule(cron=cron, timezone="Europe/Berlin")
    for evening in (datetime(2027, 3, 27, 23, tzinfo=UTC), datetime(2026, 10, 24, 23, tzinfo=UTC)):
        struck = asyncio.run(clock.get_dates(7, start=evening))
        assert all(_is_due(clock, at) for at in struck)
        assert not any(_is_due(clock, at + timedelta(seconds=30)) for at in struck)


def test_a_day_that_never_comes_is_refused(address, workplace, capsys):
    (workplace / "c.yaml").write_text(yaml.safe_dump(SMALL))
    assert main(["serve", "c.yaml", "--cron", "0 3 31 2 *"]) == 1
    assert capsys.readouterr().err.endswith("error: --cron '0 3 31 2 *': there is no such day\n")


def test_the_next_time_is_one_to_come(address, workplace, monkeypatch, capsys):
    """Where the clock is put forward within the hour, Prefect's first dates have passed."""

    async def dates(self, n):
        now = datetime.now(UTC)
        return [now - timedelta(hours=1), now - timedelta(minutes=58), now.replace(year=now.year + 1, day=1)][:n]

    async def at_once(self):
        """The clock is not waited for."""

    monkeypatch.setattr(Runner, "start", at_once)
    monkeypatch.setattr("prefect.server.schemas.schedules.CronSchedule.get_dates", dates)
    (workplace / "c.yaml").write_text(yaml.safe_dump(SMALL | {"name": "next-year"}))
    assert main(["serve", "c.yaml", "--cron", "15 3 * * *"]) == 0
    assert f"next run {datetime.now(UTC).year + 1}-" in capsys.readouterr().out


def test_without_its_folder_a_schedule_ends(tmp_path, capsys):
    heard = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: heard.set())
    try:
        folder = tmp_path / "here"
        folder.mkdir()
        with _ending_without(folder):
            folder.rmdir()
            assert heard.wait(30)
        heard.clear()
        with _ending_without(tmp_path):
            pass
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not heard.is_set()
    assert capsys.readouterr().err == f"error: {folder}: this folder no longer exists; serve stops\n"


def test_without_its_server_a_schedule_ends(tmp_path, capsys):
    heard = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: heard.set())
    server = subprocess.Popen(["sleep", "60"])
    try:
        with _ending_without(tmp_path, [server]):
            assert not heard.wait(3)
            server.kill()
            assert heard.wait(30)
    finally:
        signal.signal(signal.SIGTERM, before)
        server.wait()
    said = "Prefect's server has exited (code -9), so no more runs start; start lambdaflow serve again"
    assert capsys.readouterr().err == f"error: {said}\n"


def test_a_run_by_the_clock_says_why_it_failed(address, workplace, monkeypatch, capsys):
    """In the terminal where `serve` runs; a command says it once, of its own."""
    (workplace / "judged.csv").write_text("query,document,label,color\nq,a,1,red\nq,b,0,blue\n")
    config = parse({"data": {"files": "judged.csv"}})
    for by_the_clock in (True, False):
        monkeypatch.setattr(flows.pipeline, "is_deployed", lambda here=by_the_clock: here)
        with pytest.raises(DataError):
            flows.pipeline.run(config)
        told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
        assert len(told) == by_the_clock
        assert all("'color'" in line for line in told)


def test_a_run_by_the_clock_that_nobody_hears_ends_as_it_would(monkeypatch):
    """Its worker is gone: neither a run that is finished fails by that, nor is the reason of one that failed lost."""
    reader, writer = os.pipe()
    os.close(reader)
    monkeypatch.setattr(flows.pipeline, "is_deployed", lambda: True)
    with suppress(BrokenPipeError), open(writer, "w", encoding="utf-8", buffering=1) as broken:
        monkeypatch.setattr(sys, "stderr", broken)
        with flows.pipeline._told_by_the_clock("small"):
            pass
        with pytest.raises(DataError, match="no such file"), flows.pipeline._told_by_the_clock("small"):
            raise DataError("judged.txt: no such file")


def test_a_run_by_the_clock_that_is_ended_says_so_and_gives_up_the_cells_under_way(monkeypatch, capsys):
    """Prefect raises this in the flow where a run is cancelled; threads that train hear of it by `STOP`. A run of Python's own is in a process
    that goes on."""
    for by_the_clock in (False, True):
        monkeypatch.setattr(flows.pipeline, "is_deployed", lambda here=by_the_clock: here)
        monkeypatch.setattr(flows.pipeline, "STOP", stop := threading.Event())
        with pytest.raises(TerminationSignal), flows.pipeline._told_by_the_clock("small"):
            raise TerminationSignal(signal.SIGTERM)
        assert stop.is_set() == by_the_clock
        told = capsys.readouterr().err
        assert told.endswith(": ended before it was done\n") if by_the_clock else not told


def test_models_in_parts_are_not_served():
    with pytest.raises(ConfigError, match="parts: 2 need Dask workers"):
        serve_schedule(parse({"data": {"files": "x"}, "parts": 2}), "* * * * *", 4200)
