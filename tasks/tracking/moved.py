"""A project's folder that was moved or copied: MLflow writes down where artifacts are as whole addresses, which then lead to the old place.

The addresses in the folder's own database are put right when it is opened, before anything is read from or written to the old place.
"""

import sqlite3
import time
from collections.abc import Sequence
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


def follow_move(database: Path) -> Path | None:
    """Puts the addresses in a folder's own database right, where it was made in another folder.

    Args:
        database: MLflow's, in ``mlruns/``.

    Returns:
        The folder that was ``mlruns/``; None where nothing has moved.
    """
    here = database.parent.absolute()
    with closing(sqlite3.connect(database, timeout=30)) as store, store:
        located = [location for (location,) in store.execute("select artifact_location from experiments")]
        was = next((folder for folder in _made_in(located) if not _is_same(folder, here)), None)
        if was is None:
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


def _made_in(located: Sequence[str]) -> list[Path]:
    """The ``mlruns/`` in which the database was made: there MLflow has put its own experiment, ``0``, and we have put ours, whatever it is called
    by now. Artifacts that were sent elsewhere lie in another folder than MLflow's; where that experiment was deleted for good, ours alone tells."""
    paths = [Path(unquote(url.path)) for address in located if (url := urlsplit(address)).scheme in ("", "file")]
    of_mlflow, ours = ([path.parent for path in paths if path.parts[-2:] == ("mlruns", name)] for name in ("0", "artifacts"))
    return [folder for folder in of_mlflow if folder in ours] if of_mlflow else ours


def _is_same(one: Path, other: Path) -> bool:
    """Also by two names of one folder, as of a link."""
    return one == other or (one.is_dir() and one.samefile(other))
