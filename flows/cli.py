"""``lambdaflow …``: one command from its arguments to its exit code, and its errors as its user needs them."""

import atexit
import fcntl
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from types import FrameType

from flows import require_open_state
from flows.arguments import parser

_ENDED: list[int] = []
"""The code of a signal that ends the process, which libraries make an error of their own of where it comes while they call back."""


def entry() -> None:
    """The command as a process of its own. Most of what it imports stays to the end: it is looked through for rubbish rarely, which is a
    quarter of the time that importing takes, and not taken apart at the end, which takes more than a second."""
    codes: list[int] = []
    _hold_standard_streams()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)
    sys.unraisablehook = _send_again
    streams = [stream for stream in (sys.stdout, sys.stderr) if stream is not None]  # one that was closed is None
    for stream in streams:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what a terminal has no letter for ends no run

    def leave() -> None:
        if codes:
            try:
                for stream in streams:
                    stream.flush()
            except (OSError, ValueError):
                os._exit(codes[0] or 1)
            os._exit(codes[0])

    atexit.register(leave)
    gc.set_threshold(100_000, 50, 100)
    codes.append(main())
    if (errors := sys.modules.get("flows.errors")) and errors.unanswered:
        leave()  # Prefect would ask for minutes where it can leave the last logs
    sys.exit(codes[0])


def _end(number: int, _: FrameType | None) -> None:
    """Ends the process as an error would, so that what is half-written is cleared away."""
    _ENDED.append(128 + number)
    sys.exit(_ENDED[0])


def _send_again(lost: "sys.UnraisableHookArgs") -> None:
    """Sends a signal again that came while Python called back, where its exception is lost and the command would go on; a run is ended by other
    means (`flows.interruption`)."""
    ended = isinstance(lost.exc_value, SystemExit) and _ENDED
    if not ended and not isinstance(lost.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
    elif not ((training := sys.modules.get("tasks.training.cell")) and training.STOP.is_set()):
        number = _ENDED[0] - 128 if ended else signal.SIGINT
        threading.Timer(0.05, os.kill, (os.getpid(), number)).start()


def _hold_standard_streams() -> None:
    """Opens what of standard input, output and error was closed, or cannot be written to, to nothing: what is opened next would get its number otherwise, and a
    process that is handed it on lose it to its own stream."""
    for number in range(3):
        try:
            mode = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free
            continue
        if number and mode == os.O_RDONLY:  # a script that its shell has left open there
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, number)
            os.close(nothing)
    sys.stderr = sys.stderr or os.fdopen(2, "w")  # print() writes to standard output what is for None


def _still_in(folder: Path) -> bool:
    """Whether this process is in the folder of this name; where that cannot be seen, nothing speaks against it."""
    try:
        return folder.samefile(".")
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _gone() -> str:
    """What became of the folder that a command was started in, and is not at its place any more."""
    try:
        return f"this folder was moved to {Path.cwd()} while the command ran; run the same command again there to continue"
    except FileNotFoundError:
        return "this folder was deleted while the command ran, with all that was finished in it"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; its exit code: 0 done, 1 failed or refused by the data, 2 wrong usage."""
    given = parser().parse_args(arguments)
    if progress := sys.modules.get("flows.progress"):
        progress.Steps.last_word = None  # that was an earlier command of this process
    here = Path.cwd()
    if sys.stdout is None and getattr(given, "json", False):
        print("error: --json: standard output is closed", file=sys.stderr)
        return 2
    try:
        if getattr(given, "needs_folder", True):
            require_open_state()
        return given.command(given)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 1
    except Exception as error:
        if _ENDED:
            return _ENDED[0]
        if (training := sys.modules.get("tasks.training.cell")) and training.STOP.is_set():
            return 130
        from flows.errors import tell
        from tasks.tracking.secrets import masked

        if given.debug:
            print(masked(traceback.format_exc()), file=sys.stderr)
        elif _still_in(here):
            tell(error)
        else:
            tell(FileNotFoundError(f"{here}: {_gone()}"))
        return 1


if __name__ == "__main__":
    entry()
