"""Who may ask Prefect's servers of ours, and which files a run reads that was asked for through one.

Any page in a browser can send requests to a port of this machine. So a server of ours answers under the names of loopback only, to no page
of another origin, and nobody without its password; and what is filled into a form names files below allowed folders.
"""

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.records import ConfigError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from tasks.config.run_config import RunConfig

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
"""Under which a browser of this machine reaches a server."""
ALLOW = "LAMBDAFLOW_ALLOW"
"""Variable with further folders that may be read, as ``PATH`` has them."""


def origins(port: int) -> tuple[str, ...]:
    """Origins of the pages of a server at a port."""
    return tuple(f"http://{name}:{port}" for name in NAMES)


def new_password() -> str:
    """User and password, as Prefect's settings have them: ``user:password``."""
    return f"lambdaflow:{secrets.token_urlsafe(24)}"


def kept_password() -> tuple[str, str]:
    """Password of the servers that people look at, and where it is read: ``PREFECT_SERVER_API_AUTH_STRING``, or a file in Prefect's home that
    nobody else can read, made where there is none."""
    name = "PREFECT_SERVER_API_AUTH_STRING"
    if given := os.environ.get(name):
        return given, name
    path = Path(os.environ["PREFECT_HOME"]) / "password"
    if path.is_file() and os.geteuid() not in (0, path.stat().st_uid):
        raise PermissionError(
            f"{path}: this is the password of another user, who serves in this folder; {name}=user:password sets one for you"
        )
    beside = path.with_name(f"{path.name}.{secrets.token_hex(8)}.partial")
    with open(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as new:
        new.write(f"{new_password()}\n")
        new.flush()
        os.fsync(new.fileno())
    try:
        if path.is_file() and not path.read_text(encoding="utf-8").strip():
            path.unlink(missing_ok=True)
        with suppress(FileExistsError):
            os.link(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    path.chmod(0o600)
    return path.read_text(encoding="utf-8").strip(), str(path)


class OwnPagesOnly:
    """Refuses requests and websockets that a page of another origin sends; what is no page names no origin."""

    def __init__(self, app: "ASGIApp", allowed: Sequence[str]) -> None:
        self.app, self.allowed = app, allowed

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """One request, as a server of the kind ASGI hands it on."""
        from starlette.responses import PlainTextResponse

        named = {value.decode("latin-1") for key, value in scope.get("headers", ()) if key == b"origin"}
        answer = self.app if named <= set(self.allowed) else PlainTextResponse("requests of foreign pages are refused", 403)
        await answer(scope, receive, send)


def require_allowed(config: "RunConfig") -> None:
    """Of a configuration that somebody else may have written: the files that it names are below allowed folders. Nothing is opened.

    Raises:
        ConfigError: naming the first file that is not.
    """
    from tasks.data.files import expanded, named_files

    roots = [Path.cwd(), expanded(Path("$LAMBDAFLOW_DATA")), *map(Path, filter(None, os.environ.get(ALLOW, "").split(os.pathsep)))]
    for path in named_files(config):
        if "$" in str(path).replace("$LAMBDAFLOW_DATA", ""):
            raise ConfigError(f"{path}: runs that Prefect starts support no variable in a file's name but $LAMBDAFLOW_DATA")
        if not any(expanded(path).resolve().is_relative_to(root.resolve()) for root in roots):
            raise ConfigError(
                f"{path}: runs that Prefect starts read files below {', '.join(map(str, roots))} only; lambdaflow serve --allow FOLDER, "
                f"or {ALLOW} in the environment of a worker, allows another folder"
            )
