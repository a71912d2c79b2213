"""Where a file is that a configuration or a command names."""

import os
from pathlib import Path

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
        DataError: where there is no such file, or a folder; as `collection_file`.
    """
    if str(path).startswith(PREFIX):
        return collection_file(str(path))
    found = expanded(path)
    if found.is_dir():
        raise DataError(f"{found}: this is a folder; name the files in it")
    if not found.is_file():
        hint = "; set LAMBDAFLOW_DATA to the folder where the data sets are" if "$LAMBDAFLOW_DATA" in str(path) else ""
        raise DataError(f"{found}: no such file{hint}")
    return found
