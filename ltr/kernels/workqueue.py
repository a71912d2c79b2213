"""Parallel regions one after another where numba has no OpenMP: on a Mac without its library, in a slim image without ``libgomp.so.1``.

numba's own pool of threads, its ``workqueue``, ends the process when two threads of Python compute at once, as servers do. Here a mutex is
taken before a region and given back after it, by compiled code: nothing of Python runs in between that a signal could break off, and numba has
let go of the interpreter's lock. OpenMP and TBB take regions of several threads by themselves, and have nothing in front of them.
"""

import ctypes
from functools import partial
from typing import Any

from numba.core.codegen import ll as binding
from numba.np.ufunc import parallel

_REGION = """
define void @one_at_a_time(ptr %function, ptr %arrays, ptr %lengths, ptr %steps, ptr %data, i64 %inner, i64 %count, i32 %threads) {{
  %taken = call i32 inttoptr (i64 {lock} to ptr)(ptr inttoptr (i64 {mutex} to ptr))
  call void inttoptr (i64 {region} to ptr)(ptr %function, ptr %arrays, ptr %lengths, ptr %steps, ptr %data, i64 %inner, i64 %count, i32 %threads)
  %given = call i32 inttoptr (i64 {unlock} to ptr)(ptr inttoptr (i64 {mutex} to ptr))
  ret void
}}
"""
"""numba's ``parallel_for`` with the mutex around it."""
_KEPT: list[object] = []
"""The mutex and the compiled code, for as long as the process lasts."""


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def one_at_a_time(region: int) -> int:
    """The address of a function that calls the one at the address `region`, numba's ``parallel_for``, for one thread of Python at a time."""
    threads, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(256)
    threads.pthread_mutex_init(mutex, None)
    addresses = {name: _address(getattr(threads, f"pthread_mutex_{name}")) for name in ("lock", "unlock")}
    module = binding.parse_assembly(_REGION.format(mutex=ctypes.addressof(mutex), region=region, **addresses))
    engine = binding.create_mcjit_compiler(module, binding.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    _KEPT.extend((mutex, engine))
    return int(engine.get_function_address("one_at_a_time"))


def _load(load: Any, library: Any) -> None:
    load(library)
    if library.__name__.endswith("workqueue"):
        binding.add_symbol("numba_parallel_for", one_at_a_time(library.parallel_for))


parallel._load_threading_functions = partial(_load, parallel._load_threading_functions)
