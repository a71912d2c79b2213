"""Where compiled kernels are cached: in folders named after a digest of every source that they may be compiled from.

By itself numba checks only the file that a kernel is written in: after an edit of a callee, a constant or a record in another file it
would go on using the old one, or fail on an index that it cannot read. So a kernel's folder is named after the contents of its module
and of every module of the core that this one imports, directly or not; an edit anywhere else leaves the cache valid. Importing this
module registers the locators below. Functions outside the core are cached as usual. The base folders are numba's own:
``NUMBA_CACHE_DIR`` where it is set, ``__pycache__`` next to the source, or the user's cache folder.
"""

import re
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Self

import numba
from numba.core.caching import InTreeCacheLocator, UserProvidedCacheLocator, UserWideCacheLocator, _CacheLocator

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
    """The first 16 hex digits of the sha256 of `sources_of`, names and contents."""
    hasher = sha256()
    for source in sources_of(path):
        hasher.update(str(source.relative_to(CORE)).encode() + b"\0" + source.read_bytes())
    return hasher.hexdigest()[:16]


class _BySources(_CacheLocator):
    """A cache locator of numba's, for kernels of the core only, with one folder for each digest."""

    _cache_path: str

    def __init__(self, py_func: Callable[..., object], py_file: str) -> None:
        super().__init__(py_func, py_file)
        self._cache_path = str(Path(self._cache_path) / digest_of_sources(Path(py_file)))

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
