"""Canaries in addresses."""

import traceback

import pytest

from tasks.records import TrackingError
from tasks.tracking.secrets import masked, require_escaped, without_passwords


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://user:canary@host:5432/mlflow", "postgresql://***@host:5432/mlflow"),
        (
            "no parse of 'mysql+pymysql://user:ca@n:ry@host/x' (http://user@host)",
            "no parse of 'mysql+pymysql://***@host/x' (http://***@host)",
        ),
        ("postgresql://host/x?user=u&password=canary&sslmode=on", "postgresql://host/x?user=u&password=***&sslmode=on"),
        ("sqlite:////tmp/a@b/mlflow.db and https://host/a@b", "sqlite:////tmp/a@b/mlflow.db and https://host/a@b"),
    ],
)
def test_only_users_and_passwords_are_hidden(text, shown):
    assert masked(text) == shown


def test_an_error_that_shows_a_password_is_raised_without():
    with pytest.raises(TrackingError, match=r"no answer of postgresql://\*\*\*@host/x") as raised, without_passwords():
        raise KeyError("no answer of postgresql://user:canary@host/x")
    assert "canary" not in "".join(traceback.format_exception(raised.value))
    with pytest.raises(KeyError), without_passwords():
        raise KeyError("a")


@pytest.mark.parametrize(
    "password", ["x@canary", "canary/x", "x?canary", "canary#x", "x canary", "12/canary", "x'canary", 'canary"x']
)
def test_a_password_that_ends_its_address_is_told_without_being_shown(password):
    """libpq took what stood behind the first @ for the server, and said that it cannot find it."""
    address = f"postgresql://user:{password}@host:5432/mlflow"
    with pytest.raises(TrackingError, match=r"MLFLOW_TRACKING_URI: the password contains one of @ / \? # ' \", which") as raised:
        require_escaped(address, "MLFLOW_TRACKING_URI")
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:x%40y@host/x",
        "http://host:5000/team@a",
        "mysql+pymysql://u:p@/db?unix_socket=/x@y",
        "//tmp/x/y@z",
        "postgresql://me@azure:pw@h/db",
        "sqlite:////a/b@c.db",
        "http://127.0.0.1:5000",
        "mlruns",
        "postgresql://h/x?user=u",
    ],
)
def test_other_addresses_are_taken_as_they_are(address):
    assert require_escaped(address, "MLFLOW_TRACKING_URI") == address
