"""What numba does when it starts, left until a kernel needs it: kernels that are read from their cache need none of it.

It imports all of ``scipy.linalg``, only to see whether it is there, and where a kernel calls BLAS or LAPACK it looks again; it compiles the functions
that count references to arrays, which every compiled kernel has in itself; and it keeps each kernel's code in LLVM's own language, parsed, beside its
machine code, to compile others on top of it. It also learns all of Python and numpy that it can compile, before it reads the first kernel from the cache,
and imports its modules that a kernel took code from. Together 45 MB and a third of a second of each process. After importing this module all of
it waits until something is compiled, and the code is parsed again then.
"""

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

from numba.core import environment
from numba.core.caching import Cache
from numba.core.codegen import CPUCodeLibrary, ll
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext
from numba.core.environment import Environment, lookup_environment
from numba.core.runtime import nrtdynmod, rtsys

from ltr.kernels.cache import OURS
from ltr.kernels.signals import HandlersWait

_load_registries = CPUContext.load_additional_registries


def _without_looking_for_blas(self: CPUContext) -> None:
    from numba.np import linalg

    look = getattr(linalg, "ensure_blas", None)
    if look is None:
        _load_registries(self)
        return
    linalg.ensure_blas = lambda: None
    try:
        from numba.np import arraymath
    finally:
        linalg.ensure_blas = look
    arraymath.ensure_blas = look
    _load_registries(self)


CPUContext.load_additional_registries = _without_looking_for_blas

_compile_references = nrtdynmod.compile_nrt_functions


def _references(self: Any) -> CPUCodeLibrary:
    """The functions that count references, compiled when first asked for."""
    self._init_guard()
    with global_compiler_lock:
        if isinstance(self._library, partial):
            self._library = self._library()
    return self._library


nrtdynmod.compile_nrt_functions = lambda context: partial(_compile_references, context)
type(rtsys).library = property(_references)

_read_library: Callable[..., CPUCodeLibrary] = CPUCodeLibrary._unserialize.__func__
_to_link = CPUCodeLibrary._get_module_for_linking


def _read_without_its_code(cls: type[CPUCodeLibrary], codegen: object, state: tuple[str, str, Any]) -> CPUCodeLibrary:
    """A library from the cache; the code that it is linked by is kept as bytes."""
    library, (_, kind, data) = _read_library(cls, codegen, state), state
    if kind == "object":
        library._shared_module, library.code_to_link = None, data[1]
    return library


def _read_its_code(self: CPUCodeLibrary) -> object:
    if self._shared_module is None and (code := getattr(self, "code_to_link", None)):
        self._shared_module, self.code_to_link = ll.parse_bitcode(code), None
    return _to_link(self)


_read_kernel = Cache.load_overload


def _read_kernel_alone(self: Cache, signature: object, context: CPUContext) -> Any:
    """A kernel from the cache; of the core's, which hash no text, without what it would take to compile one."""
    if not isinstance(self._impl.locator, OURS):
        return _read_kernel(self, signature, context)
    rtsys.initialize(context)
    with self._guard_against_spurious_io_errors(), HandlersWait():
        return self._load_overload(signature, context)


Cache.load_overload = _read_kernel_alone


def _environment_without_its_module(module: str, constants: list[object], name: str) -> Environment:
    """What compiled code has of Python. That of numba's own functions is never asked for globals, so that the name of their module is enough."""
    if found := lookup_environment(name):
        return found
    made = Environment({"__name__": module} if module.startswith("numba.") else vars(importlib.import_module(module)))
    made.consts[:], made.env_name = constants, name
    Environment._memo[name] = made
    return made


environment._rebuild_env = _environment_without_its_module
CPUCodeLibrary._unserialize = classmethod(_read_without_its_code)
CPUCodeLibrary._get_module_for_linking = _read_its_code
