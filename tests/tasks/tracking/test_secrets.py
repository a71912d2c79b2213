"""Canaries in addresses."""

import traceback

import pytest

from tasks.records import TrackingError
from tasks.tracking.secrets import masked, without_passwords


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
