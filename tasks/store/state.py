"""The folder of a project's state, ``.lambdaflow/``: files that are whole or not there, digests, and what was made from what.

Everything is written beside its place, brought to the disk and moved there whole, so whoever finds a folder finds all of it, also after
the power was gone, and what a killed process leaves behind is only a ``.partial`` that the next one ignores. What was damaged since
(`tasks.store.seal`) is as if it were not there, and is made again.
"""

import errno
import fcntl
import json
import os
import platform
import re
import shutil
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from tasks.records import DataError, Finding, Fold
from tasks.store.seal import SEAL, faults, is_whole, sync, write_seal

_ROOT = ContextVar("root", default=Path(".lambdaflow"))
_ROOMS = ("data", "cells", "generated", "pooled", "collections", "binned")
"""Whose folders are sealed, but for those that earlier releases made; others that are sealed may lie anywhere below."""


def use_folder(home: str) -> None:
    """The state is below the folder `home` from now on, wherever this process was started and whoever it worked for before, for this thread alone:
    others may be at work for runs of other folders, as those of a Dask worker are."""
    _ROOT.set(Path(".lambdaflow") if Path(home) == Path.cwd() else Path(home) / ".lambdaflow")


def root() -> Path:
    """The folder with all that is kept."""
    return _ROOT.get()


def digest_of(written: Any) -> str:
    """sha256 of a plain value, independent of the order of keys."""
    return sha256(json.dumps(written, sort_keys=True, default=str).encode()).hexdigest()


def core_digest() -> str:
    """sha256 of the sources of ``ltr/`` and of the files that define rankers and measures from outside, which this process imports once: a result
    made by other mathematics is another result."""
    import ltr

    core, own = _sources_digest(Path(ltr.__file__).parent), _digests_outside(_outside())
    return digest_of([core, *own]) if own else core


def _outside() -> set[str]:
    """Modules that define or register rankers and measures."""
    import ltr
    from ltr.metrics.measure import MEASURES, REGISTERED_BY

    functions = [_function_of(one) for made in MEASURES.values() for one in vars(made).values() if callable(one)]
    return {*(one.__module__ for one in (*ltr.KINDS.values(), *functions)), *REGISTERED_BY.values()}


def _function_of(called: Any) -> Any:
    """What a kernel was compiled from, and of a `functools.partial` its function."""
    inner = getattr(called, "py_func", getattr(called, "func", None))
    return called if inner is None else _function_of(inner)


def _digests_outside(modules: Iterable[str]) -> list[str]:
    """sha256 of the files of those modules that are outside ``ltr/``, sorted; what was typed into a notebook has none."""
    files = {getattr(sys.modules.get(module), "__file__", None) for module in modules if not module.startswith("ltr.")}
    return sorted({_sources_digest(Path(file)) for file in files if file})


@cache
def _sources_digest(root: Path) -> str:
    """sha256 of a file, or of all Python files below a folder, as they were when this was first asked."""
    hasher = sha256()
    for path in sorted(root.glob("**/*.py")) if root.is_dir() else [root]:
        hasher.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return hasher.hexdigest()


def _partial_of(path: Path) -> Path:
    """Where `path` is written before it is whole; the name says by which process."""
    return path.with_name(f"{path.name}.{platform.node()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.partial")


def clear_partials() -> None:
    """Removes what processes of this machine that have ended left half-written."""
    for partial in (*_partials(root()), *Path("mlruns").glob("*.partial")):
        named = re.fullmatch(rf".*\.{re.escape(platform.node())}-(\d+)-[0-9a-f]{{8}}\.partial", partial.name)
        if named and not _is_alive(int(named[1])) and not _is_held(partial):
            shutil.rmtree(partial, ignore_errors=True) if partial.is_dir() else partial.unlink(missing_ok=True)


def _partials(folder: Path) -> Iterator[Path]:
    """What is half-written below a folder, the outermost; others may be removing it too."""
    for root, folders, files in os.walk(folder):
        found = [name for name in (*folders, *files) if name.endswith(".partial")]
        yield from (Path(root, name) for name in found)
        folders[:] = [name for name in folders if name not in found]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's
    return True


def _is_held(folder: Path) -> bool:
    """Whether somebody is writing into a folder (`made_whole`), perhaps in another container, where numbers of processes are others."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return False  # somebody else removed it meanwhile
    try:
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    finally:
        os.close(opened)
    return False


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Others that do something with this folder meanwhile wait, or with this file whose name ends with ``.lock``, which is made; where the file
    system has locks."""
    held = os.open(path, os.O_RDWR | os.O_CREAT if path.suffix == ".lock" and not path.is_dir() else os.O_RDONLY, 0o666)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        with suppress(OSError):  # a process that was forked meanwhile has it open too
            fcntl.flock(held, fcntl.LOCK_UN)
        os.close(held)


@contextmanager
def made_whole(folder: Path, replace: bool = False) -> Iterator[Path]:
    """A folder to write into that becomes `folder` at the end, or nothing at all; an existing one stays unless `replace`, or where it is
    damaged: then it is moved away and not deleted in its place, as others may be looking for it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial, older = _partial_of(folder), _partial_of(folder)
    partial.mkdir()
    try:
        with alone(partial):
            yield partial
            write_seal(partial, folder.name)
            if folder.is_dir() and (replace or not is_whole(folder)):
                with suppress(FileNotFoundError):
                    os.rename(folder, older)
            try:
                _move(partial, folder)
                sync(folder.parent)
            except OSError:
                if not folder.is_dir():
                    raise
    finally:
        if older.is_dir() and not folder.is_dir():
            _move(older, folder)  # nothing took its place
        for left in (partial, older):
            shutil.rmtree(left, ignore_errors=True)


def _move(made: Path, folder: Path) -> None:
    """Moves a folder to its place, unless there is one at that moment: somebody else's, who may have moved it away again since."""
    try:
        os.rename(made, folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def remove(folder: Path) -> None:
    """Removes a folder, which is not there half at any time."""
    partial = _partial_of(folder)
    with suppress(FileNotFoundError):
        os.rename(folder, partial)
        shutil.rmtree(partial, ignore_errors=True)


def require_output(output: Path, *inputs: Path) -> None:
    """Raises DataError where a file that is to be written is one of those that are read, under whatever name, or is in a folder that is read
    whole, as a model is, or is a folder, a pipe or a device, or its own folder is missing."""
    if not output.parent.is_dir():
        raise DataError(f"{output}: there is no folder {output.parent}")
    if output.is_dir():
        raise DataError(f"{output}: this is a folder; name a file in it")
    if output.exists() and not output.is_file():
        raise DataError(f"{output}: this is a pipe or a device; name a file")
    try:
        folder = (output.resolve(strict=output.exists()) if output.is_symlink() else output).parent
    except (OSError, RuntimeError):  # by the version of Python
        raise DataError(f"{output}: this is a link that leads back to itself") from None
    if not folder.is_dir():
        raise DataError(f"{output}: this is a link into {folder}, and there is no such folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DataError(f"{output}: the folder {folder} cannot be written to")
    for path in inputs:
        if output.exists() and path.exists() and output.samefile(path):
            raise DataError(f"{output}: this is {path} itself, which would be overwritten; name another file")
        if output.exists() and path.is_dir() and output.parent.samefile(path):
            raise DataError(f"{output}: this is a part of {path}, which would be damaged; name another file")


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A file to write that becomes `path` at the end, or nothing at all. Of a symbolic link it becomes what that points to, and a file that
    was there leaves it its permissions."""
    path = path.resolve() if path.is_symlink() else path
    partial = _partial_of(path)
    try:
        yield partial
        with suppress(OSError):
            partial.chmod(path.stat().st_mode)
        sync(partial)
        os.replace(partial, path)
        sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: Path, written: Any) -> None:
    """Writes a plain value as JSON, whole, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as partial:
        partial.write_text(json.dumps(written, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """A plain value that `write_json` wrote; None where there is no file, or a damaged one, which is to be made again."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def keep_json(path: Path, written: Any) -> None:
    """`write_json`, with a digest of the value and of where it is: what stands in no sealed folder."""
    plain = json.loads(json.dumps(written))
    write_json(path, {"digest": _digest_at(path, plain), "kept": plain})


def kept_json(path: Path) -> Any:
    """A plain value that `keep_json` wrote; None where there is none, or a damaged one, or another file's. Of earlier releases a file is the value."""
    found = read_json(path)
    if not isinstance(found, dict) or not {"digest", "kept"} & found.keys():
        return found
    return found.get("kept") if found.get("digest") == _digest_at(path, found.get("kept")) else None


def _digest_at(path: Path, written: Any) -> str:
    return digest_of([path.parent.name, path.name, written])


Recipe = Mapping[str, Any]
"""A plain description of how something is made: its digest finds what was made."""


@dataclass(frozen=True)
class Noted:
    """What was made by a recipe.

    Attributes:
        data: names of data sets in the store, all that were made.
        split_queries: see `tasks.records.Ingested`.
        notes: sentences about what was done.
        findings: of the data doctor.
        folds: where the data sets are cut into folds.
    """

    data: tuple[str, ...] = ()
    split_queries: int = 0
    notes: tuple[str, ...] = ()
    folds: tuple[Fold, ...] = ()
    findings: tuple[Finding, ...] = ()


def remembered(recipe: Recipe) -> Noted | None:
    """What was noted for a recipe, where all the data sets that it names still exist and are whole."""
    written = kept_json(_recipe_file(recipe))
    if not isinstance(written, dict) or not all(is_whole(root() / "data" / name) for name in written.get("data", [])):
        return None
    folds = tuple(Fold(**fold) for fold in written.get("folds", []))
    findings = tuple(Finding(**finding) for finding in written.get("findings", []))
    return Noted(tuple(written.get("data", [])), written.get("split_queries", 0), tuple(written.get("notes", [])), folds, findings)


def remember(recipe: Recipe, noted: Noted) -> None:
    """Notes what was made by a recipe."""
    keep_json(_recipe_file(recipe), asdict(noted))


def made_once(recipe: Recipe, make: Callable[[], Noted]) -> Noted:
    """What was noted for a recipe, or what `make` makes of it, noted from now on."""
    if (known := remembered(recipe)) is not None:
        return known
    noted = make()
    remember(recipe, noted)
    return noted


def _recipe_file(recipe: Recipe) -> Path:
    return root() / "recipes" / f"{digest_of(recipe)[:32]}.json"


def damaged() -> tuple[list[str], int]:
    """Looks at every byte of the store: a sentence for each folder or file that is damaged, with what to do; and how many folders there
    are without a seal, which earlier releases made."""
    told, unsealed = [], 0
    folders = {path for room in _ROOMS for path in (root() / room).glob("*") if path.is_dir()}
    folders |= {seal.parent for seal in root().rglob(SEAL)}
    for folder in sorted(path for path in folders if not any(part.endswith(".partial") for part in path.parts)):
        unsealed += not (folder / SEAL).is_file()
        told += [f"{fault}; remove {folder}, the next run makes it again" for fault in faults(folder, fully=True)]
    for path in sorted((*(root() / "recipes").glob("*.json"), *(root() / "certificates").glob("*.json"))):
        if kept_json(path) is None:
            told.append(f"{path} cannot be read; the next run makes it again")
    return told, unsealed
