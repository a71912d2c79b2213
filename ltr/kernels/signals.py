"""Ctrl-C while a kernel is read from its cache or compiled: it is linked whole, and then whoever is interrupted hears of it.

LLVM asks Python for a kernel's machine code (llvmlite's object cache) through a callback that no exception leaves. What the handler of a signal
raised in there was printed and forgotten, and LLVM went on without the code: at the kernel's first call the process ended with SIGSEGV. What
was raised in one of llvmlite's destructors, which reading a kernel calls dozens of, was forgotten too. So handlers wait while a kernel is read, for
some milliseconds, and while LLVM links one that was compiled, for up to a second or so.
"""

import os
import signal
import threading
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any

from numba.core.codegen import JitEngine

HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2)
"""Signals by which programs are interrupted; of others handlers do not wait."""


class HandlersWait:
    """Inside, handlers of these signals that are written in Python wait; they run at the end, in the order in which the signals came. Only a
    main thread hears signals: in others nothing changes. Inside another one, that goes on."""

    _are_waiting = False

    def __init__(self) -> None:
        self._over, self._process = False, os.getpid()
        self._came: list[tuple[int, FrameType | None]] = []
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread() and not HandlersWait._are_waiting:
            self._handlers = {number: handler for number in HEARD if callable(handler := signal.getsignal(number))}
            try:
                for number in self._handlers:
                    signal.signal(number, self._note)
                HandlersWait._are_waiting = bool(self._handlers)
            except BaseException:  # of a handler that was still to be exchanged
                self.__exit__()
                raise

    def __exit__(self, *_: object) -> None:
        if not self._handlers:
            return
        self._over, HandlersWait._are_waiting = True, False
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for number, frame in self._came:
            self._handlers[number](number, frame)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._over or os.getpid() != self._process:  # about to be taken away, and in what another thread forked meanwhile
            self._handlers[number](number, frame)
        else:
            self._came.append((number, frame))


def _while_handlers_wait(link: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(link)
    def linked(*given: Any) -> Any:
        with HandlersWait():
            return link(*given)

    return linked


for _link in ("finalize_object", "get_function_address", "get_global_value_address"):
    setattr(JitEngine, _link, _while_handlers_wait(getattr(JitEngine, _link)))
