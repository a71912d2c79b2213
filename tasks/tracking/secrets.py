"""Passwords in addresses (``postgresql://user:password@host/mlflow``) are for the server, and for nobody to read in an error or a log."""

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from tasks.records import TrackingError

_USER = re.compile(r"//[^/\s'\"]*@")
_KEY = re.compile(r"(?i)\b(password|passwd|pwd|token)=[^&\s'\"]+")


def require_escaped(address: str, name: str) -> str:
    """The address, whose user and password end at its only @.

    Raises:
        TrackingError: for another @, or a /, ? or # before it: what reads such an address takes part of the password for the server, and says it.
    """
    beyond = address.partition("//")[2]
    user, at, _ = beyond.rpartition("@")
    if at and not beyond.startswith("/") and re.search(r"[@/?#\s]", user):
        raise TrackingError(f"{name}: its user or password has one of @ / ? #, which addresses write as %40 %2F %3F %23")
    return address


def masked(text: str) -> str:
    """A text with ``***`` in place of the user and password of every address in it."""
    return _KEY.sub(r"\1=***", _USER.sub("//***@", text))


@contextmanager
def without_passwords() -> Iterator[None]:
    """An error that would show a password, in its text or in that of what caused it, is raised anew without: Prefect keeps both in its
    database.

    Raises:
        TrackingError: in place of such an error.
    """
    try:
        yield
    except Exception as error:
        shown = "".join(traceback.format_exception(error))
        if masked(shown) == shown:
            raise
        raise TrackingError(masked(str(error))) from None
