"""The project's state on disk, below ``.lambdaflow/``: data sets by digest, what they were made from, trained cells.

Everything is written beside its place and moved there whole, so whoever finds a folder finds all of it, and what a killed
process leaves behind is only a ``.partial`` that the next one ignores. Arrays are memory-mapped: all cells of a sweep, and all
processes of a machine, share one copy.
"""

import json
import os
import platform
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import ltr
from ltr.data.queries import Queries, canonical

STATE = Path(".lambdaflow")


def settle(home: str) -> None:
    """Looks for the state below the folder `home`, wherever this process was started and whomever it served before."""
    global STATE
    STATE = Path(".lambdaflow") if Path(home) == Path.cwd() else Path(home) / ".lambdaflow"


def digest_of(written: Any) -> str:
    """sha256 of a plain value, independent of the order of keys."""
    return sha256(json.dumps(written, sort_keys=True, default=str).encode()).hexdigest()


def digest_of_file(path: Path) -> str:
    with open(path, "rb") as file:
        hasher = sha256()
        while block := file.read(1 << 22):
            hasher.update(block)
    return hasher.hexdigest()


def core_digest() -> str:
    """sha256 of the sources of ``ltr/``: a result made by other mathematics is another result."""
    root = Path(ltr.__file__).parent
    hasher = sha256()
    for path in sorted(root.glob("**/*.py")):
        hasher.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return hasher.hexdigest()


def _partial_of(path: Path) -> Path:
    """Where `path` is written before it is whole; the name says by which process."""
    return path.with_name(f"{path.name}.{platform.node()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.partial")


def clear_partials() -> None:
    """Removes what processes of this machine that have ended left half-written."""
    for partial in (*STATE.glob("**/*.partial"), *Path("mlruns").glob("*.partial")):
        named = re.fullmatch(rf".*\.{re.escape(platform.node())}-(\d+)-[0-9a-f]{{8}}\.partial", partial.name)
        if named and not _is_alive(int(named[1])):
            shutil.rmtree(partial) if partial.is_dir() else partial.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's
    return True


@contextmanager
def made_whole(folder: Path, replace: bool = False) -> Iterator[Path]:
    """A folder to write into that becomes `folder` at the end, or nothing at all; an existing one stays unless `replace`."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = _partial_of(folder)
    partial.mkdir()
    try:
        yield partial
        if replace:
            shutil.rmtree(folder, ignore_errors=True)
        try:
            os.rename(partial, folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A file to write that becomes `path` at the end, or nothing at all."""
    partial = _partial_of(path)
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: Path, written: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as partial:
        partial.write_text(json.dumps(written, indent=1, sort_keys=True) + "\n")


def keep_queries(queries: Queries) -> str:
    """Stores a data set in canonical order; its name in the store.

    The name covers the original positions too: two files with the same rows in another order have one content digest and two
    names, because the ``stable`` tie rule tells them apart.
    """
    queries = canonical(queries)
    content = queries.digest
    name = sha256(content.encode() + queries.position.tobytes()).hexdigest()[:32]
    folder = STATE / "data" / name
    if not folder.is_dir():
        with made_whole(folder) as partial:
            arrays: dict[str, Any] = {
                "features": queries.features,
                "labels": queries.labels,
                "offsets": queries.offsets,
                "keys": queries.keys,
            }
            arrays |= {"position": queries.position}
            arrays |= {"ids": queries.ids} if queries.ids is not None else {}
            arrays |= {"documents": queries.documents} if queries.documents is not None else {}
            arrays |= {"weights": queries.weights} if queries.weights is not None else {}
            arrays |= {f"source.{source}": values for source, values in queries.sources.items()}
            arrays |= {f"attribute.{attribute}": values for attribute, values in queries.attributes.items()}
            for key, array in arrays.items():
                np.save(partial / f"{key}.npy", array, allow_pickle=False)
            about = {"content": content, "names": queries.names, "queries": queries.n_queries, "documents": queries.n_documents}
            write_json(partial / "about.json", about)
    return name


def about_queries(name: str) -> Mapping[str, Any]:
    """Content digest, feature names and counts of a stored data set."""
    return json.loads((STATE / "data" / name / "about.json").read_text())


def open_queries(name: str) -> Queries:
    """A stored data set, memory-mapped (copy on write, so the files cannot be changed through it)."""
    folder = STATE / "data" / name
    arrays = {path.stem: np.load(path, mmap_mode="c", allow_pickle=False) for path in sorted(folder.glob("*.npy"))}
    named: dict[str, dict[str, Any]] = {
        kind: {key.removeprefix(f"{kind}."): arrays.pop(key) for key in list(arrays) if key.startswith(f"{kind}.")}
        for kind in ("source", "attribute")
    }
    return Queries(**arrays, sources=named["source"], attributes=named["attribute"], names=tuple(about_queries(name)["names"]))


def remembered(recipe: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What was noted for a recipe (a plain description of how something is made), where what it names still exists."""
    path = STATE / "recipes" / f"{digest_of(recipe)[:32]}.json"
    if not path.is_file():
        return None
    noted = json.loads(path.read_text())
    return noted if all((STATE / "data" / name).is_dir() for name in noted.get("data", [])) else None


def remember(recipe: Mapping[str, Any], noted: Mapping[str, Any]) -> None:
    write_json(STATE / "recipes" / f"{digest_of(recipe)[:32]}.json", noted)
