"""Parallel regions one after another where numba has no OpenMP: on a Mac without its library, in a slim image without ``libgomp.so.1``.

numba's own pool of threads, its ``workqueue``, ends the process when two threads of Python compute at once, as servers do. Here a mutex is
taken before a region and given back after it, by compiled code: nothing of Python runs in between that a signal could break off, and numba has
let go of the interpreter's lock. A region inside another, which the pool's own threads come to, does not wait: numba ends the process and says
why. OpenMP and TBB take regions of several threads by themselves, and have nothing in front of them. What other packages had compiled before
this module was imported does not take turns.
"""

import ctypes
import os
from functools import partial
from importlib import import_module
from typing import Any

from numba.core.codegen import ll as binding
from numba.np.ufunc import parallel

_REGION = """
define void @part(ptr %arrays, ptr %lengths, ptr %steps, ptr %call) {{
  %function = load ptr, ptr %call
  %place = getelementptr ptr, ptr %call, i64 1
  %data = load ptr, ptr %place
  %begun = call i32 inttoptr (i64 {setspecific} to ptr)(i64 {key}, ptr %call)
  call void %function(ptr %arrays, ptr %lengths, ptr %steps, ptr %data)
  %ended = call i32 inttoptr (i64 {setspecific} to ptr)(i64 {key}, ptr null)
  ret void
}}
define void @one_at_a_time(ptr %function, ptr %arrays, ptr %lengths, ptr %steps, ptr %data, i64 %inner, i64 %count, i32 %threads) {{
  %around = call ptr inttoptr (i64 {getspecific} to ptr)(i64 {key})
  %within = icmp ne ptr %around, null
  br i1 %within, label %at_once, label %in_turn
at_once:
  call void inttoptr (i64 {region} to ptr)(ptr %function, ptr %arrays, ptr %lengths, ptr %steps, ptr %data, i64 %inner, i64 %count, i32 %threads)
  ret void
in_turn:
  %call = alloca [2 x ptr]
  store ptr %function, ptr %call
  %place = getelementptr ptr, ptr %call, i64 1
  store ptr %data, ptr %place
  %taken = call i32 inttoptr (i64 {mutex_lock} to ptr)(ptr inttoptr (i64 {mutex} to ptr))
  call void inttoptr (i64 {region} to ptr)(ptr @part, ptr %arrays, ptr %lengths, ptr %steps, ptr %call, i64 %inner, i64 %count, i32 %threads)
  %given = call i32 inttoptr (i64 {mutex_unlock} to ptr)(ptr inttoptr (i64 {mutex} to ptr))
  ret void
}}
"""
"""numba's ``parallel_for`` with the mutex around it. The pool's threads work on parts of a region, and while they do one it is noted for them, by
which a region inside it is known."""
_KEPT: list[object] = []
"""The mutex and the compiled code, for as long as the process lasts."""


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def one_at_a_time(region: int) -> int:
    """The address of a function that calls the one at the address `region`, numba's ``parallel_for``, for one thread of Python at a time. A forked
    process has a mutex that nobody holds."""
    threads, mutex, key = ctypes.CDLL(None), ctypes.create_string_buffer(256), ctypes.c_uint64()
    threads.pthread_key_create(ctypes.byref(key), None)
    fresh = partial(threads.pthread_mutex_init, mutex, None)
    fresh()
    os.register_at_fork(after_in_child=fresh)
    names = ("mutex_lock", "mutex_unlock", "getspecific", "setspecific")
    addresses = {name: _address(getattr(threads, f"pthread_{name}")) for name in names} | {"key": key.value}
    module = binding.parse_assembly(_REGION.format(mutex=ctypes.addressof(mutex), region=region, **addresses))
    engine = binding.create_mcjit_compiler(module, binding.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    _KEPT.extend((mutex, engine))
    return int(engine.get_function_address("one_at_a_time"))


def _take_turns(library: Any) -> None:
    if library.__name__.endswith("workqueue"):
        binding.add_symbol("numba_parallel_for", one_at_a_time(library.parallel_for))


def _load(load: Any, library: Any) -> None:
    load(library)
    _take_turns(library)


parallel._load_threading_functions = partial(_load, parallel._load_threading_functions)
if parallel._is_initialized and parallel._threading_layer == "workqueue":
    _take_turns(import_module("numba.np.ufunc.workqueue"))
