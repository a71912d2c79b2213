"""Where a file is that a configuration or a command names."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tasks.data.ir_collections import PREFIX, collection_file
from tasks.records import DataError


def expanded(path: Path) -> Path:
    """A path as it can be opened: environment variables filled in. ``LAMBDAFLOW_DATA``, where public data sets lie, falls
    back to ``../shared/data``."""
    text = str(path)
    if "LAMBDAFLOW_DATA" not in os.environ:
        text = text.replace("$LAMBDAFLOW_DATA", "../shared/data")
    return Path(os.path.expandvars(text))


def located(path: Path) -> Path:
    """A path that can be opened (`expanded`); of ``ir_datasets:NAME`` the file that the collection was written to.

    Raises:
        DataError: where there is no such file, one that may not be read, or a folder, a pipe or a device; as `collection_file`.
    """
    if str(path).startswith(PREFIX):
        return collection_file(str(path))
    found = expanded(path)
    if found.is_dir():
        raise DataError(f"{found}: this is a folder; name the files in it")
    if found.exists() and not found.is_file():
        raise DataError(f"{found}: this is a pipe or a device, and files are read more than once; write it to a file first")
    if not found.is_file():
        hint = "; set LAMBDAFLOW_DATA to the folder where the data sets are" if "$LAMBDAFLOW_DATA" in str(path) else ""
        raise DataError(f"{found}: no such file{hint}")
    if not os.access(found, os.R_OK):
        raise DataError(f"{found}: no permission to read this file")
    return found


def named_files(section: Any) -> Iterator[Path]:
    """Every path in a section of a configuration, as it is written there."""
    if isinstance(section, Path):
        yield section
    elif isinstance(section, BaseModel):
        yield from named_files(dict(section))
    elif isinstance(section, Mapping):
        yield from named_files(list(section.values()))
    elif isinstance(section, list | tuple):
        for one in section:
            yield from named_files(one)


def require_files(section: Any) -> None:
    """Raises DataError (`located`) for the first file that a section names and that is not there."""
    for path in named_files(section):
        located(path)
