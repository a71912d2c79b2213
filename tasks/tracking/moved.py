"""A project's folder that was moved or copied: MLflow writes down where artifacts are as whole addresses, which then lead to the old place.

The addresses in the folder's own database are put right when it is opened, before anything is read from or written to the old place.
"""

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

_ADDRESSES = {
    "experiments": ("artifact_location",),
    "runs": ("artifact_uri",),
    "logged_models": ("artifact_location",),
    "model_versions": ("source", "storage_location"),
}
"""Where MLflow's tables hold addresses."""


def follow_move(database: Path, experiment: str) -> Path | None:
    """Puts the addresses in a folder's own database right, where its experiment was made in another folder.

    Args:
        database: MLflow's, in ``mlruns/``.
        experiment: the project's, whose artifacts lie beside the database unless it was told otherwise.

    Returns:
        The folder that was ``mlruns/``; None where nothing has moved.
    """
    here = database.parent.absolute()
    with closing(sqlite3.connect(database, timeout=30)) as store, store:
        found = store.execute("select artifact_location from experiments where name = ?", (experiment,)).fetchone()
        was = _folder_of(found[0]) if found else None
        if was is None or _is_same(was, here):
            return None
        for table, columns in _ADDRESSES.items():
            for column in columns:
                for old, new in ((was.as_uri(), here.as_uri()), (str(was), str(here))):
                    store.execute(
                        f"update {table} set {column} = ? || substr({column}, ?) where substr({column}, 1, ?) = ?",
                        (new, len(old) + 1, len(old) + 1, f"{old}/"),
                    )
    return was


def follow_template(database: Path) -> None:
    """Makes a copy of a template (`tasks.store.templates`), which knows no experiment but MLflow's own, what MLflow makes in this folder."""
    now = int(time.time() * 1000)
    with closing(sqlite3.connect(database)) as store, store:
        store.execute(
            "update experiments set artifact_location = ?, creation_time = ?, last_update_time = ?",
            (str(database.parent.absolute() / "0"), now, now),
        )


def _folder_of(address: str) -> Path | None:
    """``mlruns/`` of artifacts that lie in it; None for those that were sent elsewhere."""
    url = urlsplit(address)
    path = Path(unquote(url.path))
    return path.parent if url.scheme == "file" and path.parts[-2:] == ("mlruns", "artifacts") else None


def _is_same(one: Path, other: Path) -> bool:
    """Also by two names of one folder, as of a link."""
    return one == other or (one.is_dir() and one.samefile(other))
