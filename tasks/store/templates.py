"""Empty databases of other libraries, kept once a machine: their migrations take seconds, a copy of what comes of them milliseconds.

PostgreSQL makes every database as a copy of a template, and test suites of Django copy one for each of their processes. Templates lie in
the user's cache folder, where nothing is missed; one is taken when a release of the library is first met in a new folder.
"""

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from tasks.store.state import written_whole


def folder() -> Path:
    """Where the templates of this machine's user are."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "lambdaflow"


def keep(database: Path, name: str) -> None:
    """Makes a copy of a database the template of that name; where the cache folder cannot be written to, nothing."""
    with suppress(OSError, sqlite3.Error):
        folder().mkdir(parents=True, exist_ok=True)
        with (
            written_whole(folder() / name) as partial,
            closing(sqlite3.connect(database)) as source,
            closing(sqlite3.connect(partial)) as copy,
        ):
            source.backup(copy)
            copy.execute("pragma journal_mode = delete")  # all of it in one file


def clear_journals(database: Path) -> None:
    """Removes what an earlier database left beside the place of one that is to be made: SQLite would play it into the new one."""
    for ending in ("-journal", "-wal", "-shm"):
        database.with_name(database.name + ending).unlink(missing_ok=True)


def take(name: str, database: Path) -> bool:
    """Makes a database that is not there as a copy of a template; False where there is none that can be read."""
    if version_of(folder() / name) is None:
        return False
    with written_whole(database) as partial:
        shutil.copyfile(folder() / name, partial)
    return True


def is_as_kept(database: Path, name: str) -> bool:
    """Whether the tables of a database are those of a template, by the number of the last migration."""
    version = version_of(database)
    return version is not None and version == version_of(folder() / name)


def version_of(database: Path) -> str | None:
    """The number of a database's last migration, as Alembic writes it down; None where it cannot be read."""
    if not os.path.isfile(database):  # nor is one in a home that may not be entered
        return None
    with suppress(sqlite3.Error), closing(sqlite3.connect(database)) as opened:
        found = opened.execute("select version_num from alembic_version").fetchall()
        return str(found[0][0]) if len(found) == 1 else None
    return None
