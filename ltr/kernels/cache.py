"""Where compiled kernels are cached: in folders named after a digest of every source that they may be compiled from.

By itself numba checks only the file that a kernel is written in: after an edit of a callee, a constant or a record in another file it
would go on using the old one, or fail on an index that it cannot read. So a kernel's folder is named after the contents of its module
and of every module of the core that this one imports, directly or not; an edit anywhere else leaves the cache valid. Importing this
module registers the locators below. Functions outside the core are cached as usual. The base folders are numba's own:
``NUMBA_CACHE_DIR`` where it is set, ``__pycache__`` next to the source, or the user's cache folder.

Processes may fill a cache at the same time. numba numbers the files of a function by its index (one for each signature and, of a
closure, for each set of its values), so that two processes which start from the same index give one number to two kernels, and the
index of the later names the kernel of the other: a histogram of wide columns was then built by the kernel for narrow ones. Here every
file that is saved has a name of its own, and an index is read and written again by one process at a time: otherwise the later would drop
what the earlier had entered.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Self
from uuid import uuid4

import numba
from numba.core import caching
from numba.core.caching import (
    IndexDataCacheFile,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
    _CacheLocator,
)

CORE = Path(__file__).parents[1]
"""The folder of the package ``ltr``."""
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


class _BySources(_CacheLocator):
    """A cache locator of numba's, for kernels of the core only, with one folder for each digest."""

    _cache_path: str

    def __init__(self, py_func: Callable[..., object], py_file: str) -> None:
        super().__init__(py_func, py_file)
        self._digest = digest_of_sources(Path(py_file))
        self._cache_path = str(Path(self._cache_path) / self._digest)

    def get_source_stamp(self) -> str:
        """The digest: a file that was only touched, or copied with its cache, is not compiled again."""
        return self._digest

    @classmethod
    def from_function(cls, py_func: Callable[..., object], py_file: str) -> Self | None:
        """The locator of a kernel of the core; None for other functions, which numba then offers to its own locators."""
        inside = Path(py_file).is_file() and CORE in Path(py_file).parents
        locator: Self | None = super().from_function(py_func, py_file) if inside else None
        return locator


class GivenFolder(_BySources, UserProvidedCacheLocator):
    """Below ``NUMBA_CACHE_DIR``."""


class BesideSource(_BySources, InTreeCacheLocator):
    """Below ``__pycache__`` next to the source."""


class UserFolder(_BySources, UserWideCacheLocator):
    """Below the user's cache folder."""


_OURS = [f"{__name__}.{locator.__name__}" for locator in (GivenFolder, BesideSource, UserFolder)]
_NUMBAS = ["UserProvidedCacheLocator", "InTreeCacheLocator", "UserWideCacheLocator", "IPythonCacheLocator", "ZipCacheLocator"]
numba.config.CACHE_LOCATOR_CLASSES = ",".join(
    [*_OURS, *(numba.config.CACHE_LOCATOR_CLASSES.split(",") if numba.config.CACHE_LOCATOR_CLASSES else _NUMBAS)]
)


class FileOfItsOwn(IndexDataCacheFile):
    """numba's index and files of one function, safe where processes save at the same time: the worst is a kernel compiled twice."""

    def _data_name(self, number: int) -> str:
        return f"{self._index_name.removesuffix('.nbi')}.{uuid4().hex[:16]}.nbc"

    def save(self, key: object, data: object) -> None:
        """The data, and then their name in the index."""
        name = self._data_name(0)
        self._save_data(name, data)
        with _alone_with(Path(self._index_path)):
            self._save_index({**self._load_index(), key: name})


@contextmanager
def _alone_with(index: Path) -> Iterator[None]:
    """No other process writes to this index meanwhile, where the system has locks."""
    with ExitStack() as held:
        with suppress(OSError, ImportError):
            import fcntl

            fcntl.flock(held.enter_context(index.with_suffix(".lock").open("w")), fcntl.LOCK_EX)
        yield


caching.IndexDataCacheFile = FileOfItsOwn
