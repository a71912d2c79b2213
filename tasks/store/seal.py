"""Whether a folder of the store is as it was written: its ``seal.json`` has the folder's name, and the size of every file, a digest of blocks
taken from all over it, which is read in no time, and one of all its bytes. Folders of earlier releases have none and are taken as they are.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from tasks.records import DataError

SEAL = "seal.json"
_BLOCK, _BLOCKS = 4096, 16


def write_seal(folder: Path, name: str) -> None:
    """Seals everything in a folder that is to have this name, and has it all on the disk."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    seal = {
        str(path.relative_to(folder)): {"size": path.stat().st_size, "sample": _sample(path), "digest": digest_of_file(path)}
        for path in files
    }
    (folder / SEAL).write_text(json.dumps({"folder": name, "files": seal}, indent=1) + "\n", encoding="utf-8")
    for path in (*files, folder / SEAL, *(path for path in folder.rglob("*") if path.is_dir()), folder):
        sync(path)


def is_whole(folder: Path) -> bool:
    """Whether a folder is there and, as far as blocks of its files tell, as it was written."""
    return folder.is_dir() and not faults(folder)


def faults(folder: Path, fully: bool = False) -> list[str]:
    """What is damaged in a folder, a sentence a file; nothing where it has no seal.

    Args:
        folder: of the store.
        fully: read every byte, and not only blocks.
    """
    file = folder / SEAL
    if not file.is_file():
        return []
    try:
        seal = json.loads(file.read_text(encoding="utf-8"))
        if (named := seal.get("folder", folder.name)) != folder.name:
            return [f"{folder} holds what was written as {named}"]
        files = seal["files"] if "folder" in seal else seal
        return [f"{folder / name} {fault}" for name, said in files.items() if (fault := _fault(folder / name, said, fully))]
    except (ValueError, AttributeError, KeyError, TypeError):
        return [f"{file} cannot be read"]


def digest_of_file(path: Path) -> str:
    """sha256 of a file's bytes."""
    with open(path, "rb") as file:
        hasher = sha256()
        while block := file.read(1 << 22):
            hasher.update(block)
    return hasher.hexdigest()


@contextmanager
def unchanged(digests: Mapping[Path, str]) -> Iterator[None]:
    """Around the reading of files that are known by these digests: what came of another file would be kept under their names.

    Raises:
        DataError: at the end, where a file is another one by then, whatever was wrong with what was read of it.
    """
    wrong: Exception | None = None
    try:
        yield
    except (DataError, OSError) as error:
        wrong = error
    for path, digest in digests.items():
        try:
            same = digest_of_file(path) == digest
        except OSError:
            same = False
        if not same:
            raise DataError(f"{path}: the file was changed while it was read; run the same command again") from None
    if wrong is not None:
        raise wrong


def sync(path: Path) -> None:
    """Returns when a file, or the names in a folder, are on the disk, and not only in the system's memory."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _fault(path: Path, said: dict[str, int | str], fully: bool) -> str:
    if not path.is_file():
        return "is missing"
    if (size := path.stat().st_size) != said["size"]:
        return f"has {size:,} bytes and was written with {said['size']:,}"
    same = digest_of_file(path) == said["digest"] if fully else _sample(path) == said["sample"]
    return "" if same else "has other bytes than were written"


def _sample(path: Path) -> str:
    """sha256 of the first block of a file, its last and some between, evenly spaced."""
    last = max(0, path.stat().st_size - _BLOCK)
    hasher = sha256()
    with open(path, "rb", buffering=0) as file:
        for k in range(_BLOCKS):
            file.seek(last * k // (_BLOCKS - 1))
            hasher.update(file.read(_BLOCK))
    return hasher.hexdigest()
