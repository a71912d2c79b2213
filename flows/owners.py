"""Who a run belongs to. A run signs what it starts with its owner: processes inherit it in the environment, runs carry it as a tag.

An owner is a process with a locked file in the project's folder, ``.lambdaflow/owners/``. The system lets go of the lock when the process
ends, however it ends, so that whoever sees the folder can tell: another container or machine, and after a restart, where numbers of
processes mean nothing. An owner's name ends with that of its folder (``.lambdaflow/folder``): on a server that several folders use, those of
others are left alone, and those of this one whose file was cleared away have ended.
"""

import fcntl
import os
import platform
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

from flows import refused
from tasks.store import state

SIGNATURE = "LAMBDAFLOW_OWNER"
"""Variable by which processes inherit their owner."""
_SIGNATURE = re.compile(r".+-\d+-[0-9a-f]{8}@[0-9a-f]{12}|[^/]+/\d+/\d*")
_PROCESSES = Path("/proc")
_names: dict[Path, str] = {}
"""What this process is called as an owner, by folder."""
_held: dict[Path, int] = {}
"""Descriptors that hold the locks of this process's files."""


def is_signature(text: str) -> bool:
    """Whether a text is an owner's name, of this release or an older one."""
    return _SIGNATURE.fullmatch(text) is not None


def signature() -> str:
    """The name that `owner` will give this process in this folder, where nothing is written yet."""
    return _names.setdefault(_folder(), f"{platform.node()}-{os.getpid()}-{uuid4().hex[:8]}@{_folders_name() or uuid4().hex[:12]}")


def owner() -> str:
    """This process as an owner; what it starts from now on inherits it.

    Raises:
        PermissionError: where the folder's state is another user's, who has not let this one write.
    """
    file = _folder() / signature()
    if not file.is_file():
        try:
            _hold(file)
        except PermissionError:
            raise refused(state.root().absolute()) from None
    os.environ[SIGNATURE] = file.name
    return file.name


def _hold(file: Path) -> None:
    """Makes the file of this process as an owner, locked for as long as the process lives."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not _folders_name():
        with state.written_whole(state.root() / "folder") as partial:
            partial.write_text(f"{file.name.rpartition('@')[2]} {state.root().stat().st_ino}\n", encoding="utf-8")
    beside = state.root() / f"{file.name}.new"
    held = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    fcntl.flock(held, fcntl.LOCK_EX)
    os.rename(beside, file)  # from now on others see it, and that it is held
    _held[file] = held


def is_this_process(who: str) -> bool:
    """Whether an owner is this process in this folder, or in any where this one has been deleted."""
    try:
        return who == _names.get(_folder())
    except FileNotFoundError:
        return who in _names.values()


def is_gone(who: str) -> bool:
    """Whether an owner is known to have ended: its file is here, and nobody holds it."""
    file = _folder() / who
    if not who or "/" in who or not file.is_file():
        return _is_gone_by_number(who)
    try:
        held = os.open(file, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(held)
    return True


def has_ended(who: str) -> bool:
    """Whether an owner that has signed a run is gone, by its file, or because this folder has none of it any more and it was one of this machine: an
    image of a machine has a folder of the same name. A process may be older than its owner's file."""
    of_here = who.startswith(f"{platform.node()}-") and who.rpartition("@")[2] == _folders_name()
    return is_gone(who) or (of_here and not (_folder() / who).is_file())


def is_elsewhere(who: str) -> bool:
    """Whether an owner has another folder, from which nobody here can tell how it is."""
    return bool(who) and not (_folder() / who).is_file() and not has_ended(who)


def is_copied(who: str) -> bool:
    """Whether an owner's file came here with a copy of its folder: the folder that it is of may be at work, and its locks are not seen here."""
    return "@" in who and (_folder() / who).is_file() and who.rpartition("@")[2] != _folders_name()


def gone() -> list[Path]:
    """Files of the owners in this folder that have ended."""
    return [file for file in _folder().glob("*") if is_gone(file.name)]


def started_by(is_theirs: Callable[[str], bool]) -> Iterator[int]:
    """Processes in this folder, without this one, whose owner is one of theirs. Elsewhere than on Linux none can be found."""
    home = f"PREFECT_HOME={os.environ.get('PREFECT_HOME', '')}".encode()
    for folder in _PROCESSES.glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        signed = [entry for entry in environment if entry.startswith(SIGNATURE.encode() + b"=")]
        if signed and home in environment and int(folder.name) != os.getpid() and is_theirs(signed[0].decode().partition("=")[2]):
            yield int(folder.name)


def _folder() -> Path:
    return (state.root() / "owners").absolute()


def _folders_name() -> str:
    """What this folder is called; nothing where it has no name yet, or is a copy, which has that of the other."""
    try:
        name, inode = (state.root() / "folder").read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return ""
    return name if inode == str(state.root().stat().st_ino) else ""


def _is_gone_by_number(who: str) -> bool:
    """Of an owner as releases before 0.2 wrote it, MACHINE/NUMBER/BEGUN: on this machine, no such process or another one of its number."""
    machine, _, rest = who.partition("/")
    number, _, begun = rest.partition("/")
    return machine == platform.node() and _PROCESSES.is_dir() and number.isdigit() and _begun(int(number)) != begun


def _begun(process: int) -> str:
    """When a process was started, in ticks of the machine; nothing where there is none."""
    try:
        return (_PROCESSES / str(process) / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
