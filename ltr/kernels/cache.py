"""Where compiled kernels are cached: once a machine, in folders named after a digest of every source that they may be compiled from.

By itself numba checks only the file that a kernel is written in: after an edit of a callee, a constant or a record in another file it
would go on using the old one, or fail on an index that it cannot read. So a kernel's folder is named after the contents of its module
and of every module of the core that this one imports, directly or not; an edit anywhere else leaves the cache valid. And by itself numba
caches beside the source, so that every checkout and every environment compiles anew: here equal sources find each other's kernels, in the
user's cache folder, as Triton's and PyTorch's do. Importing this module registers the locators below. Functions outside the core are
cached as usual. Kernels lie below ``NUMBA_CACHE_DIR`` where it is set, else in the user's cache folder, or in ``__pycache__`` next to the
source where that cannot be written to; those of sources that nobody has imported for `KEPT` days are deleted when others come.

Processes may fill a cache at the same time. numba numbers the files of a function by its index (one for each signature and, of a
closure, for each set of its values), so that two processes which start from the same index give one number to two kernels, and the
index of the later names the kernel of the other: a histogram of wide columns was then built by the kernel for narrow ones. Here every
file that is saved is named after its bytes, and an index is read and written again by one process at a time: otherwise the later would drop
what the earlier had entered. What was damaged since is compiled again; by itself numba goes on with whatever its reading comes to.
"""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numba
from numba.core import caching
from numba.core.caching import CacheImpl, CompileResultCacheImpl, IndexDataCacheFile, _CacheLocator

from ltr.kernels.locks import locked

CORE = Path(__file__).parents[1]
"""The folder of the package ``ltr``."""
KEPT = 90
"""Days that kernels are kept after their sources were last imported."""
_IMPORT = re.compile(r"^\s*(?:from ltr(?:\.([\w.]+))? import (?:\(([^)]*)\)|([\w, ]+))|import ltr\.([\w.]+))", re.M)


@cache
def imports_of(path: Path) -> frozenset[Path]:
    """Files of the core that one of them imports directly; ``ltr/__init__.py``, which imports everything, is left out."""
    found = set()
    for module, bracketed, names, plain in _IMPORT.findall(path.read_text(encoding="utf-8")):
        base = CORE.joinpath(*(module or plain).split(".")) if module or plain else CORE
        inner = [base / name.split()[0] for name in (bracketed or names).split(",") if name.strip()]
        for place in (base, *inner):
            found |= {file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()}
    return frozenset(found - {CORE / "__init__.py"})


@cache
def sources_of(path: Path) -> tuple[Path, ...]:
    """A file of the core and all that it imports, directly or not, sorted."""
    seen, waiting = {path}, [path]
    while waiting:
        new = imports_of(waiting.pop()) - seen
        seen |= new
        waiting += new
    return tuple(sorted(seen))


@cache
def digest_of_sources(path: Path) -> str:
    """The first 16 hex digits of the sha256 of `sources_of` and of this file, which says how they are cached, names and contents."""
    hasher = sha256()
    for source in (Path(__file__), *sources_of(path)):
        hasher.update(str(source.relative_to(CORE)).encode() + b"\0" + source.read_bytes())
    return hasher.hexdigest()[:16]


def user_folder() -> Path | None:
    """The user's cache folder for kernels; None for a user without a home."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    return caches / "lambdaflow" / "kernels" if caches.is_absolute() else None


class _BySources(_CacheLocator):
    """A cache locator of numba's, for kernels of the core only, with one folder for each digest below the `base` of a module."""

    def __init__(self, base: Path, py_func: Callable[..., object], py_file: str) -> None:
        self._digest = digest_of_sources(Path(py_file))
        self._folder = base / self._digest
        self._line = py_func.__code__.co_firstlineno

    @staticmethod
    def base(module: Path) -> Path | None:
        """The folder of a module's digests; None where kernels are not kept in this way."""
        raise NotImplementedError

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """The digest: a file that was only touched, or copied with its cache, is not compiled again."""
        return self._digest

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., object], py_file: str) -> Self | None:
        """The locator of a kernel of the core; None for other functions, which numba then offers to its own locators, and where the
        folder cannot be written to."""
        if not Path(py_file).is_file() or CORE not in Path(py_file).parents:
            return None
        base = cls.base(Path(py_file))
        locator = cls(base, py_func, py_file) if base else None
        return locator if locator and is_open(locator._folder) else None


@cache
def is_open(folder: Path) -> bool:
    """Whether a folder of kernels can be written to; it is made, noted as used, and those beside it that nobody uses are deleted."""
    try:
        new = not folder.is_dir()
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        os.utime(folder)
    except OSError:
        return False
    for other in folder.parent.iterdir() if new else ():
        with suppress(OSError):
            if re.fullmatch("[0-9a-f]{16}", other.name) and other.stat().st_mtime < time.time() - KEPT * 86_400:
                shutil.rmtree(other)
    return True


def _named(folder: Path | None, module: Path) -> Path | None:
    """The folder of a module below one that all modules, and all versions of numba, have in common."""
    name = ".".join(module.relative_to(CORE.parent).with_suffix("").parts)
    return folder / f"numba-{numba.__version__}" / name if folder else None


class GivenFolder(_BySources):
    """Below ``NUMBA_CACHE_DIR``."""

    @staticmethod
    def base(module: Path) -> Path | None:
        return _named(Path(numba.config.CACHE_DIR) if numba.config.CACHE_DIR else None, module)


class UserFolder(_BySources):
    """Below the user's cache folder."""

    @staticmethod
    def base(module: Path) -> Path | None:
        return _named(user_folder(), module)


class BesideSource(_BySources):
    """Below ``__pycache__`` next to the source."""

    @staticmethod
    def base(module: Path) -> Path:
        return module.parent / "__pycache__"


OURS = (GivenFolder, UserFolder, BesideSource)
"""The locators of the core's kernels."""
# Not numba.config.CACHE_LOCATOR_CLASSES alone: numba forgets what is set there when a variable NUMBA_… of the environment changes.
CacheImpl._locator_classes = [*OURS, *CacheImpl._locator_classes]
if numba.config.CACHE_LOCATOR_CLASSES:
    numba.config.CACHE_LOCATOR_CLASSES = ",".join(
        [*(f"{__name__}.{locator.__name__}" for locator in OURS), numba.config.CACHE_LOCATOR_CLASSES]
    )


class FileOfItsOwn(IndexDataCacheFile):
    """numba's index and files of one function, safe where processes save at the same time: the worst is a kernel compiled twice. So it is where a
    file was damaged since, by a power loss or a disk: a file of data is named after its bytes."""

    def save(self, key: object, data: object) -> None:
        """The data, and then their name in the index."""
        written = self._dump(data)
        name = f"{self._index_name.removesuffix('.nbi')}.{_digest(written)}.nbc"
        self._save_data(name, written)
        with ExitStack() as held:
            with suppress(OSError):  # a folder that cannot be written to
                held.enter_context(locked(Path(self._index_path).with_suffix(".lock")))
            self._save_index({**self._load_index(), key: name})

    def _save_data(self, name: str, data: bytes) -> None:
        with self._open_for_write(self._data_path(name)) as file:
            file.write(data)

    def _load_data(self, name: str) -> Any:
        """Raises OSError, as for a file that is gone, where its bytes are others than it is named after; names that numba gave say nothing."""
        named = re.search(r"\.([0-9a-f]{32})\.nbc$", name)
        if named and named[1] != _digest(Path(self._data_path(name)).read_bytes()):
            raise OSError(f"{name} has other bytes than were written")
        return super()._load_data(name)

    def _load_index(self) -> dict[object, str]:
        try:
            found: dict[object, str] = super()._load_index()
        except OSError:
            raise
        except Exception:  # whatever reading other bytes than were written comes to
            return {}
        return found


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:32]


caching.IndexDataCacheFile = FileOfItsOwn
_rebuild = CompileResultCacheImpl.rebuild


def _with_what_it_needs(self: CompileResultCacheImpl, context: object, payload: object) -> Any:
    """A kernel that was read, and on it what has to be done before it may run. numba does that for the kernel itself, and forgets it for those that
    are compiled on top of it: a process that reads one of these before it has run anything in parallel is ended by LLVM."""
    found = _rebuild(self, context, payload)
    if found is not None:
        found.library._reload_init.update(found.reload_init)
    return found


CompileResultCacheImpl.rebuild = _with_what_it_needs
