"""Ctrl-C and its kin: within seconds a run is ended, closed in MLflow and Prefect, and leaves no process.

The first signal interrupts the main thread, which closes what it opened on its way out. Where that takes too long (a tree over many
documents, workers that know nothing of it) a thread closes it from outside and ends the process. A second Ctrl-C ends it at once; the
next run clears up.
"""

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from flows.leftovers import close_in_prefect
from flows.owners import is_this_process, started_by
from tasks.tracking.tracked import close_abandoned
from tasks.training.cell import STOP

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CODE = 130
_PATIENCE, _AT_MOST = 2.5, 1.5
"""Seconds until a run that is interrupted is closed from outside, and those that this may take."""


@contextmanager
def ends_in_time() -> Iterator[None]:
    """Signals that end a process end what is done inside; those that are ignored (as by ``nohup``) stay so. Only a main thread hears."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _interrupt) for number in heard}
    atexit.register(_leave)
    ear, mouth = os.pipe()
    os.set_blocking(mouth, False)
    # Prefect puts a handler of its own in the place of ours while a flow runs: this way signals are heard all the same.
    former = signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
    threading.Thread(target=_listen, args=(ear, heard), daemon=True).start()
    try:
        yield
    finally:
        if STOP.is_set():
            atexit.register(_fall_silent)
        else:
            atexit.unregister(_leave)
            signal.set_wakeup_fd(former)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(mouth)


def _leave() -> None:
    """Ends an interrupted process when everything that was registered later is done; taking apart what was imported takes seconds."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    _end_processes()
    os._exit(_CODE)


def _interrupt(*_: int | FrameType | None) -> None:
    STOP.set()
    raise KeyboardInterrupt


def _listen(ear: int, heard: Sequence[int]) -> None:
    terminals = [stream for stream in (1, 2) if os.isatty(stream)]
    ending = False
    while told := os.read(ear, 1):
        if told[0] not in heard:
            continue
        if not ending:
            ending = True
            STOP.set()
            _say("interrupted: ending the current tree or epoch; run the same command again to continue", told[0], terminals)
            timer = threading.Timer(_PATIENCE, _end_from_outside)
            timer.daemon = True
            try:
                timer.start()
            except RuntimeError:  # no more threads may be started, which is what others wait for too
                _end_from_outside()
        elif told[0] == signal.SIGINT:
            _end_processes()
            os._exit(_CODE)
    os.close(ear)


def _say(text: str, number: int, terminals: Sequence[int]) -> None:
    """Where a terminal is gone (SIGHUP), whatever is still to be said on it goes nowhere."""
    if number == signal.SIGHUP:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in terminals:
            os.dup2(nowhere, stream)
    with suppress(OSError, ValueError):
        print(f"\n{text}", file=sys.stderr, flush=True)


def _end_from_outside() -> None:
    closing = [
        threading.Thread(target=close_abandoned, args=(is_this_process,), daemon=True),
        threading.Thread(target=close_in_prefect, args=(is_this_process, "it was interrupted"), daemon=True),
    ]
    with suppress(RuntimeError):
        for one in closing:
            one.start()
    deadline = time.monotonic() + _AT_MOST
    for one in closing:
        if one.ident is not None:
            one.join(max(0.0, deadline - time.monotonic()))
    _end_processes()
    os._exit(_CODE)


def _fall_silent() -> None:
    """What is said from here on goes nowhere: by what libraries registered for a process's end, as Dask a cluster's that was still starting."""
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)


def _end_processes() -> None:
    """Nothing is said from here on by finalizers that miss one of them: this process ends with them."""
    _fall_silent()
    for process in started_by(is_this_process):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
