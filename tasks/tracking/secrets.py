"""Passwords in addresses (``postgresql://user:password@host/mlflow``) are for the server, and for nobody to read in an error or a log."""

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from tasks.records import TrackingError

_USER = re.compile(r"//[^/\s'\"]*@")
_KEY = re.compile(r"(?i)\b(password|passwd|pwd|token)=[^&\s'\"]+")


def require_escaped(address: str, name: str) -> str:
    """The address, whose password ends at its first @.

    Raises:
        TrackingError: where it has an @, /, ?, #, quote or space: what reads such an address takes the rest of it for the server, and says it.
    """
    scheme, _, beyond = address.partition("://")
    server = re.split(r"[/?#]", beyond)[0]
    user, at, _ = server.rpartition("@")
    password = user.partition(":")[2] if at else server.partition(":")[2]
    of_a_database = re.match(r"(postgresql|mysql|mssql)\b", scheme) and "@" in beyond.partition("?")[0]
    cut = not at and "@" in beyond and (of_a_database or not re.fullmatch(r"\d*", password))
    if beyond and not beyond.startswith("/") and (cut or (at and re.search(r"[@'\"\s]", user.partition(":")[2]))):
        raise TrackingError(f"{name}: the password contains one of @ / ? # ' \", which must be written as %40 %2F %3F %23 %27 %22")
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
