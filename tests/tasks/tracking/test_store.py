"""The store of runs: found by the environment, made, waited for, and told of where it is damaged, locked or gone."""

import errno
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INTERNAL_ERROR, TEMPORARILY_UNAVAILABLE
from mlflow.tracking import MlflowClient

from tasks.records import TrackingError
from tasks.tracking import store
from tasks.tracking.store import EXPERIMENT, opened, tracking_uri
from tasks.tracking.tracker import Tracker


def test_an_experiment_that_was_there_before_is_of_the_training_kind_too(workplace):
    first = MlflowClient(tracking_uri())
    experiment = first.create_experiment("lambdaflow")
    Tracker("x", "key")
    assert first.get_experiment(experiment).tags["mlflow.experimentKind"] == "custom_model_development"


@pytest.mark.long
def test_a_deleted_experiment_is_told_with_the_ways_out(workplace):
    tracker = Tracker("x", "key")
    tracker.client.delete_experiment(tracker.experiment_id)
    with pytest.raises(
        TrackingError, match=r"'lambdaflow' was deleted in MLflow: restore it \(MLFLOW_TRACKING_URI=(\S+) mlflow (.*)\), or"
    ) as told:
        Tracker("x", "key")
    address, command = re.search(r"\(MLFLOW_TRACKING_URI=(\S+) mlflow ([^)]*)\)", str(told.value)).groups()
    environment = {**os.environ, "MLFLOW_TRACKING_URI": address}
    subprocess.run([sys.executable, "-m", "mlflow", *command.split()], env=environment, check=True, capture_output=True)
    assert Tracker("x", "key").run_id == tracker.run_id


def test_the_environment_chooses_the_server(workplace, monkeypatch):
    assert tracking_uri().startswith("sqlite:///")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")
    assert tracking_uri() == "http://127.0.0.1:1"


def test_a_folder_of_runs_that_is_none_is_told(workplace):
    """As `.lambdaflow` is: ``[Errno 17] File exists: 'mlruns'`` stood there."""
    place = workplace / "mlruns"
    place.touch()
    with pytest.raises(TrackingError, match=rf"^{re.escape(str(place))}: this is no folder, and runs and models are kept there$"):
        opened()
    place.unlink()
    place.symlink_to("nowhere")
    with pytest.raises(TrackingError, match="/mlruns: this is a link to a folder that is not there, and runs"):
        opened()


@pytest.mark.parametrize("address", ["file:runs", "runs", "./a:b/runs"])
def test_a_store_of_folders_is_told_with_the_ways_out(workplace, monkeypatch, address):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    with pytest.raises(TrackingError, match=rf"^MLFLOW_TRACKING_URI={address}: MLflow keeps runs in databases, .*sqlite:///FILE"):
        opened()
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    client, number = opened()
    assert client.get_experiment(number).name == EXPERIMENT


@pytest.mark.parametrize("address", ["databricks", "databricks-uc", "uc"])
def test_stores_that_mlflow_knows_by_a_name_are_no_folders(workplace, monkeypatch, address):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    store._require_database()


def test_a_store_that_another_writer_has_locked_is_waited_for(workplace):
    Tracker("first", "1")
    other = sqlite3.connect("mlruns/mlflow.db", isolation_level=None, check_same_thread=False)
    other.execute("begin exclusive")
    threading.Timer(8, lambda: other.execute("rollback")).start()
    started = time.monotonic()
    tracker = Tracker("second", "2")
    assert time.monotonic() - started > 5
    tracker.describe({"a": 1}, {}, [])
    assert tracker.client.get_run(tracker.run_id).data.params == {"a": "1"}


def test_what_stays_locked_is_told_in_one_line_without_the_password(workplace, monkeypatch):
    tracker = Tracker("first", "1")
    monkeypatch.setattr("tasks.tracking.store._PAUSES", ())
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql://me:secret@db/mlflow")

    def locked(*_, **__):
        raise MlflowException("database is locked\nmore", TEMPORARILY_UNAVAILABLE)

    monkeypatch.setattr(tracker.client, "log_batch", locked)
    with pytest.raises(TrackingError) as caught:
        tracker.describe({"a": 1}, {}, [])
    assert str(caught.value) == (
        "MLflow at postgresql://***@db/mlflow does not answer: database is locked; what is finished is kept, run the same command again"
    )


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("postgresql://user:canary@127.0.0.1:1/mlflow", "does not answer: .*(refused|failed)"),
        ("postgresql+nodriver://user:canary@127.0.0.1:1/mlflow", "nodriver"),
        ("postgresql://user:canary@127.0.0.1:port/mlflow", "port"),
    ],
)
def test_a_database_that_cannot_be_reached_is_told_soon_and_without_its_password(workplace, monkeypatch, address, why):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    monkeypatch.setattr("tasks.tracking.store._PAUSES", (0.01,) * 4)
    began = time.monotonic()
    with pytest.raises(TrackingError, match=why) as raised:
        Tracker("x", "key")
    assert time.monotonic() - began < 5
    assert "canary" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    ("answers", "how"), [(True, "answers with error 500;"), (False, r"does not answer: [^;]*\[Errno \d+\] Connection refused;")]
)
def test_how_a_server_fails_is_told_and_not_that_a_library_gave_up(workplace, monkeypatch, answers, how):
    class Failing(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_error(500)

        do_GET = do_POST

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Failing) as server:
        port = server.server_port
        if answers:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        else:
            server.socket.close()
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
        monkeypatch.setattr(store, "_PAUSES", ())
        with pytest.raises(TrackingError, match=f"MLflow at http://127.0.0.1:{port} {how} what is finished is kept"):
            Tracker("x", "key")
        if answers:
            server.shutdown()


def test_a_server_that_has_answered_before_is_waited_for_longer_as_it_may_be_restarted(monkeypatch):
    monkeypatch.setattr(store, "_PAUSES", (0.0,))
    monkeypatch.setattr(store, "_LATER", (0.0,) * 3)
    monkeypatch.setattr(store, "_answered", set())
    answers = iter([False, False, True, False, False, False, False, True, *[False] * 5])

    @store.patient
    def asked():
        if not next(answers):
            raise ConnectionError("refused")

    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    with pytest.raises(TrackingError, match="does not answer: refused"):
        asked()
    asked()
    asked()
    with pytest.raises(TrackingError, match="does not answer: refused"):
        asked()
    assert not list(answers)


def test_a_server_that_was_started_without_artifacts_is_told_how_to_start_it(monkeypatch):
    """It answers 503, as one that is busy; what it says of it is lost on the way."""
    monkeypatch.setattr(store, "_PAUSES", ())
    said = (
        "API request to http://127.0.0.1:1/api/2.0/mlflow-artifacts/artifacts failed with exception HTTPConnectionPool(host='127.0.0.1', port=1): Max "
        "retries exceeded with url: /api/2.0/mlflow-artifacts/artifacts?path=1 (Caused by ResponseError('too many 503 error responses'))"
    )

    def listed(text):
        raise MlflowException(text)

    with pytest.raises(TrackingError, match=r"error 503 to a request for artifacts .*start it with --serve-artifacts"):
        store.patient(listed)(said)
    with pytest.raises(TrackingError, match="answers with error 503; what"):
        store.patient(listed)(said.replace("/mlflow-artifacts/artifacts", "/mlflow/runs/search"))


@pytest.mark.parametrize(
    ("said", "how"),
    [
        (
            "(Caused by ProtocolError('Connection aborted.', RemoteDisconnected('Remote end closed connection without response')))",
            "does not answer: Remote end closed connection without response; what",
        ),
        (
            "(Caused by ProtocolError('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer')))",
            "does not answer: Connection reset by peer; what",
        ),
        (
            "API request to http://127.0.0.1:1/api failed with exception ('Connection broken: IncompleteRead(9 bytes read, 8 more expected)', "
            "IncompleteRead(9 bytes read, 8 more expected))",
            "does not answer: Connection broken: IncompleteRead(9 bytes read, 8 more expected); what",
        ),
        (
            "(Caused by ResponseError('too many 429 error responses'))",
            "error 429 (too many requests at a time; where MLFLOW_HTTP_REQUEST_MAX",
        ),
    ],
)
def test_a_connection_that_is_cut_and_requests_that_are_too_many_are_told_in_words(monkeypatch, said, how):
    monkeypatch.setattr(store, "_PAUSES", ())

    def failing():
        raise MlflowException(said)

    with pytest.raises(TrackingError, match=re.escape(how)):
        store.patient(failing)()


@pytest.mark.parametrize("damage", [b"no database", None])
def test_a_damaged_database_is_named_with_the_ways_out(workplace, damage):
    Tracker("x", "key")
    store = workplace / "mlruns/mlflow.db"
    store.write_bytes(damage or store.read_bytes()[:100] + b"\xff" * 5000 + store.read_bytes()[5100:])
    with pytest.raises(TrackingError, match=r"mlruns/mlflow\.db: .*: it is damaged\. Restore a backup"):
        Tracker("x", "key")


def test_damage_that_is_met_later_is_named_too(workplace, monkeypatch):
    said = "(sqlite3.DatabaseError) database disk image is malformed\n[SQL: INSERT INTO tags]"

    @store.patient
    def write():
        raise MlflowException(said, error_code=INTERNAL_ERROR)

    with pytest.raises(
        TrackingError, match=r"mlflow\.db: .*is malformed: it is damaged\. Restore a backup.* remove mlflow\.db-journal"
    ) as told:
        write()
    assert "\n" not in str(told.value)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setattr(store, "_PAUSES", ())
    with pytest.raises(TrackingError, match="does not answer"):
        write()


def test_what_an_earlier_database_left_is_not_played_into_a_new_one(workplace):
    """A command that was killed leaves a journal; the database beside it was moved away because it was damaged."""
    database = workplace / "mlruns/mlflow.db"
    Tracker("x", "key")
    code = f"""import os, sqlite3; opened = sqlite3.connect({str(database)!r}, isolation_level=None); opened.executescript("pragma cache_size = 5")
opened.execute("begin immediate"); opened.execute("update experiments set name = hex(randomblob(90000))"); opened.execute("create table x as select randomblob(500000)")
os.kill(os.getpid(), 9)"""
    subprocess.run([sys.executable, "-c", code])
    assert (workplace / "mlruns/mlflow.db-journal").stat().st_size > 10_000
    database.rename(workplace / "mlflow.bad")
    store.opened()
    with closing(sqlite3.connect(database)) as made:
        assert made.execute("pragma integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("refused", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_to_is_told_with_the_way_out(workplace, monkeypatch, refused):
    def mkdir(path, **_):
        raise OSError(refused, os.strerror(refused), str(path))

    monkeypatch.setattr("pathlib.Path.mkdir", mkdir)
    with pytest.raises(TrackingError, match=r"^mlruns: .*must be writable; use another folder"):
        Tracker("x", "key")


def test_artifacts_that_are_with_a_server_are_not_looked_for_by_its_database(workplace):
    MlflowClient(tracking_uri()).create_experiment(EXPERIMENT, "mlflow-artifacts:/1")
    with pytest.raises(TrackingError, match="only there: set MLFLOW_TRACKING_URI to that server's address"):
        opened()


@pytest.mark.parametrize("written", ["/{}", "file:///{}", "{}"])
def test_a_place_of_artifacts_that_a_database_server_does_not_hold_makes_no_experiment(workplace, monkeypatch, written):
    """It would stand there without taking a run, and keep its place for good."""
    client = SimpleNamespace(get_experiment_by_name=lambda name: None, create_experiment=lambda *_, **__: "1")
    monkeypatch.setattr(store, "MlflowClient", lambda address: client)
    long = written.format("x" * 157)
    assert store._opened(long) == (client, "1")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql://me:secret@db/mlflow")
    with pytest.raises(
        TrackingError,
        match=r"^\S+x: in MLflow's database at postgresql://\*\*\*@db/mlflow .* may have 157 .* set LAMBDAFLOW_ARTIFACTS",
    ):
        store._opened(long)
    monkeypatch.chdir("/")
    assert store._opened(f"/{'x' * 156}") == store._opened("x" * 156) == (client, "1")


def test_a_database_that_another_program_holds_is_named(workplace, monkeypatch):
    def held(*_):
        raise sqlite3.OperationalError("database is locked")

    Tracker("x", "key")
    monkeypatch.setattr("tasks.tracking.store.follow_move", held)
    with pytest.raises(
        TrackingError, match=r"^mlruns/mlflow.db: database is locked; what is finished is kept, run the same command again"
    ):
        Tracker("x", "another")


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("[mlflow]\n{} = a%secret\n", r": MLflow .*InterpolationSyntaxError.* % is written as %%"),
        ("{} = asecret\n", ", line 1: MLflow"),
    ],
)
def test_credentials_that_mlflow_cannot_read_are_told_without_the_password(workplace, monkeypatch, file, why):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("HOME", str(workplace))
    (workplace / ".mlflow").mkdir()
    (workplace / ".mlflow/credentials").write_text(file.format("mlflow_tracking_password"))
    later = store.patient(lambda: MlflowClient(tracking_uri()).get_experiment("1"))
    for ask in (opened, later):
        with pytest.raises(TrackingError, match=rf"^~/\.mlflow/credentials{why}") as raised:
            ask()
        assert "secret" not in "".join(traceback.format_exception(raised.value)), "Prefect keeps it in its database"


@pytest.mark.parametrize("file", ["/m/a", "/Anna's/a"])
def test_an_artifact_that_this_user_may_not_read_is_named_and_not_waited_for(monkeypatch, file):
    """What MLflow says of a folder of artifacts, two of which are another user's."""
    said = f"The following failures occurred while downloading one or more artifacts from file:///m:\n##### File a #####\n{PermissionError(13, 'Permission denied', file)}"

    def closed():
        raise MlflowException(said, error_code=INTERNAL_ERROR)

    with pytest.raises(PermissionError) as raised:
        store.patient(closed, [60.0])()
    assert raised.value.filename == file
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    with pytest.raises(TrackingError, match="MLflow at http"):
        store.patient(closed, [])()  # the file is the server's


@pytest.mark.parametrize(("right", "said"), [(os.R_OK, "x"), (os.W_OK, "attempt to write a readonly database")])
def test_a_database_that_this_user_may_not_read_or_write_is_named(workplace, monkeypatch, right, said):
    """Also for root, whom modes do not keep out."""

    def write():
        raise MlflowException(said, error_code=INTERNAL_ERROR)

    opened()
    with pytest.raises(TrackingError, match="does not answer"):
        store.patient(write, [])()  # as of a database that was moved away
    monkeypatch.setattr(os, "access", lambda path, asked: not asked & right)
    with pytest.raises(PermissionError) as raised:
        (opened if right == os.R_OK else store.patient(write, [60.0]))()
    assert raised.value.filename == "mlruns/mlflow.db"
