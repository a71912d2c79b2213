"""An error is one line of what to do, without control characters and passwords."""

import errno
from types import SimpleNamespace

import httpx
import pytest

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
            OSError(errno.ENOSPC, "No space left on device", "m.npz"),
            "error: no space left on the device for m.npz: what is finished is kept, make room and run the same command again\n",
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


def test_a_server_that_does_not_answer(capsys, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    error = RuntimeError("Failed to reach API at http://127.0.0.1:9/api")
    error.__cause__ = httpx.ConnectError("refused")
    for one in (error, error.__cause__):
        errors.tell(one)
        assert capsys.readouterr().err.strip() == (
            "error: Prefect at http://127.0.0.1:9/api does not answer: refused; what was trained is kept, run the same command again"
        )
