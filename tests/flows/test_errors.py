"""An error is one line of what to do, without control characters and passwords."""

import errno
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import polars as pl
import pytest
from mlflow.exceptions import MlflowException
from prefect.exceptions import PrefectHTTPStatusError

from flows import errors


class Unknown(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("line 3: a label of -1"), "error: line 3: a label of -1\n"),
        (ValueError("one\ntwo"), "error: one\nerror: two\n"),
        (OSError("b\x1b[31m at postgresql://me:canary@host/db"), "error: b\\x1b[31m at postgresql://***@host/db\n"),
        (Unknown("x"), "error: Unknown: x (--debug shows where)\n"),
        (ValueError(), "error: ValueError\n"),
        (
            UnicodeEncodeError("utf-8", "/f\udce9/mlruns", 2, 3, "surrogates not allowed"),
            "error: /f\\udce9/mlruns: the name of this file or folder is not UTF-8 text; rename it\n",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", "m.npz"),
            "error: no space left on the device for m.npz: what is finished is kept; free some space and run the same command again\n",
        ),
    ],
)
def test_what_is_told(capsys, error, told):
    errors.tell(error)
    assert capsys.readouterr().err == told


def test_a_server_that_fails_where_the_disk_is_full(capsys, monkeypatch):
    monkeypatch.setattr(errors.shutil, "disk_usage", lambda folder: SimpleNamespace(free=0))
    errors.tell(httpx.ConnectError("500"))
    assert "no space left on the device: what is finished is kept" in capsys.readouterr().err


def test_what_polars_says_of_a_full_disk(capsys):
    """In a table's own words it would read as a fault of the table."""
    error = pl.exceptions.ComputeError(
        "parquet: File out of specification: underlying IO error: No space left on device (os error 28)"
    )
    errors.tell(error)
    assert "no space left on the device: what is finished is kept" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is of Linux")
def test_what_numpy_says_of_a_full_disk(capsys):
    """That it wrote less than was asked for, without the system's number."""
    with pytest.raises(OSError, match=r"requested and|No space") as failed, open("/dev/full", "wb") as full:
        np.zeros(100_000).tofile(full)
    for error in (failed.value, OSError("80000 requested and 12272 written")):
        errors.tell(error)
        assert "error: no space left on the device: what is finished is kept" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "it requires a password: PREFECT_API_AUTH_STRING=user:password"),
        ("bob:x", "the password in PREFECT_API_AUTH_STRING is not the server's"),
    ],
)
def test_a_server_that_wants_a_password(capsys, monkeypatch, given, said):
    address = "http://127.0.0.1:9/api"
    monkeypatch.setenv("PREFECT_API_URL", address)
    monkeypatch.delenv("PREFECT_API_AUTH_STRING", raising=False)
    if given:
        monkeypatch.setenv("PREFECT_API_AUTH_STRING", given)
    request = httpx.Request("GET", f"{address}/admin/version")
    errors.tell(
        PrefectHTTPStatusError.from_httpx_error(
            httpx.HTTPStatusError(
                "Client error '401 Unauthorized' for url 'x'", request=request, response=httpx.Response(401, request=request)
            )
        )
    )
    assert capsys.readouterr().err.strip() == f"error: Prefect at {address} refuses to answer: {said}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://bob:secret@127.0.0.1:9")
    errors.tell(MlflowException("API request to endpoint /api/2.0/x failed with error code 401 != 200. Response body: 'y'"))
    told = capsys.readouterr().err
    assert (
        told.strip()
        == "error: MLflow at http://***@127.0.0.1:9 refuses to answer: set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, to what it accepts"
    )
    answer = "Invalid Host header - possible DNS rebinding attack detected"
    errors.tell(MlflowException(f"API request to endpoint /api/2.0/x failed with error code 403 != 200. Response body: '{answer}'"))
    told = capsys.readouterr().err
    assert told == f"error: MLflow at http://***@127.0.0.1:9 refuses to answer (403): {answer}; start it with --allowed-hosts\n", (
        "no password helps there"
    )
    errors.tell(
        MlflowException(
            "API request to endpoint /api/2.0/mlflow/model-versions/create failed with error code 403 != 200. Response body: 'Permission denied'"
        )
    )
    told = capsys.readouterr().err
    assert told == (
        "error: MLflow at http://***@127.0.0.1:9 does not allow this user model-versions/create (403: Permission denied); "
        "ask its administrator for that permission\n"
    ), "which right is missing"
    page = "\r\n<html>\r\n<h1>403 Forbidden</h1>\r\n</html>"
    errors.tell(MlflowException(f"API request to endpoint /api/2.0/x failed with error code 403 != 200. Response body: '{page}'"))
    told = capsys.readouterr().err
    assert told.startswith("error: MLflow at http://***@127.0.0.1:9 refuses to answer: set MLFLOW_TRACKING_USERNAME and")
    assert told.count("\n") == 1, "the page of a server before MLflow is not quoted"


@pytest.mark.parametrize(
    ("begins", "kind", "said", "way"),
    [
        ("", "InsufficientPrivilege", "permission denied for table runs", "ask its administrator for the right to read and write"),
        (
            "BAD_REQUEST: ",
            "ReadOnlySqlTransaction",
            "cannot execute INSERT in a read-only transaction",
            "ask its administrator for the right to read and write",
        ),
        (
            "BAD_REQUEST: ",
            "StringDataRightTruncation",
            "value too long for type character varying(250)",
            "--debug shows the statement",
        ),
    ],
)
def test_a_database_that_refuses_is_told_without_the_statement(capsys, monkeypatch, begins, kind, said, way):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql://bob:secret@db/mlflow")
    advice = "(raised as a result of Query-invoked autoflush; consider using a session.no_autoflush block)\n"
    errors.tell(
        MlflowException(
            f"{begins}{advice}(psycopg2.errors.{kind}) {said}\n\n[SQL: INSERT INTO runs …]\n[parameters: {{'name': 'x'}}]"
        )
    )
    told = capsys.readouterr().err
    assert told == f"error: the database of MLflow at postgresql://***@db/mlflow refuses this: {said}; {way}\n"


def test_a_file_of_the_store_that_another_user_keeps_closed(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file in (".lambdaflow/cells/x/seal.json", str(tmp_path / "mlruns/artifacts/m-1/model.npz")):
        errors.tell(PermissionError(13, "Permission denied", file))
        told = capsys.readouterr().err
        assert told.startswith(f"error: {file}: you have no permission to read or write this; ")
        assert "chmod -R g+rwX" in told
    errors.tell(PermissionError(13, "Permission denied", "judged.txt"))
    assert capsys.readouterr().err == "error: [Errno 13] Permission denied: 'judged.txt'\n", "a file of the user's own"


def test_a_server_that_does_not_answer(capsys, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    error = RuntimeError("Failed to reach API at http://127.0.0.1:9/api")
    error.__cause__ = httpx.ConnectError("refused")
    for one in (error, error.__cause__):
        errors.tell(one)
        assert capsys.readouterr().err.strip() == (
            "error: Prefect at http://127.0.0.1:9/api does not answer: refused; what is finished is kept, run the same command again"
        )


def test_an_address_of_something_else_is_told(capsys, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://host/wrong")
    monkeypatch.setenv("PREFECT_API_URL", "http://host/elsewhere")
    page = "API request to endpoint /api/2.0/x failed with error code 404 != 200. Response body: '<html>\n<h1>404</h1>\n</html>'"
    errors.tell(MlflowException(page))
    errors.tell(RuntimeError("Failed to reach API at http://host/elsewhere/"))
    assert capsys.readouterr().err == (
        "error: http://host/wrong is not an MLflow server: it answers with a web page; set MLFLOW_TRACKING_URI to the server's host, port and path\n"
        "error: http://host/elsewhere: no Prefect server answers; PREFECT_API_URL must be its address followed by /api\n"
    )
