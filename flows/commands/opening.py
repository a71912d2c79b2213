"""What commands begin with: a word about what they are at, and the model, data set and configuration that they are given.

Heavy imports live inside the commands, so that help is instant and the first word comes before them.
"""

import argparse
import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from flows import make_state_folder

if TYPE_CHECKING:
    from flows.progress import Steps
    from ltr import Queries, Ranker
    from tasks.config.run_config import RunConfig


@contextmanager
def working(stage: str = "starting") -> Iterator["Steps"]:
    """Shows on standard error that a command works, and at what (`flows.progress`)."""
    from flows.progress import steps, tell_training

    with steps(stage) as shown:
        tell_training()
        yield shown


def print_json(said: object) -> None:
    """What ``--json`` asks for, on standard output: null for what no JSON holds, NaN and infinity."""
    import json

    from tasks.records import finite_or_none

    print(json.dumps(finite_or_none(said)))


def words_of(given: argparse.Namespace) -> TextIO:
    """Where a command's words go: to standard error where ``--json`` has standard output to itself."""
    return sys.stderr if given.json else sys.stdout


@contextmanager
def importing() -> Iterator[None]:
    """Nearly everything that is imported stays to the end, and is not looked through for rubbish."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def config_of(model: str, files: Sequence[str], overrides: Sequence[str]) -> "RunConfig":
    """Configuration of a command that works on a model and files, which are read as those that it learned from: categories of columns that
    ``--set`` does not list are the model's."""
    from dataclasses import asdict

    from tasks.config.reading import override_data, parse
    from tasks.tracking.lookup import find_columns

    make_state_folder()
    written: dict[str, Any] = {"data": {"files": list(files), **asdict(find_columns(model))}}
    known = written["data"]["categories"]
    override_data(written, overrides)
    if isinstance(written["data"], dict) and isinstance(listed := written["data"].get("categories"), dict) and listed:
        written["data"]["categories"] = {**known, **listed}
    return parse(written, "--set")


def say_remarks(given: argparse.Namespace, model: "Ranker") -> None:
    """What there is to know of a model of another tool, to standard error."""
    from pathlib import Path

    from tasks.records import printable

    for remark in model.remarks[1:] if Path(given.model).is_file() else ():
        print(printable(remark), file=sys.stderr)


def say_notes(notes: Sequence[str]) -> None:
    """What there is to know of files that were read, to standard error."""
    from tasks.records import printable

    for note in notes:
        print(printable(note), file=sys.stderr)


@working("reading")
def opened(given: argparse.Namespace) -> "tuple[Ranker, Queries, RunConfig]":
    """Model, data set and configuration of a command that works on a model and files."""
    from functools import partial
    from pathlib import Path

    make_state_folder()
    from tasks.data.calibrated import calibrated
    from tasks.data.ingest import ingest, read_for, require_scores, without_unread
    from tasks.data.prepare import prepare
    from tasks.store.datasets import open_queries
    from tasks.tracking.lookup import find_model, named_features, settled

    given.model = settled(given.model)
    config = config_of(given.model, given.data, given.set)
    files = [Path(file) for file in given.data]
    data, unread = without_unread(config.data, partial(named_features, given.model))
    read = ingest.fn(files, data)
    say_notes([*unread, *read.sentences])
    prepared = prepare.fn(read.data, data).data
    queries = open_queries(calibrated({"data": prepared}, data, config.core_conventions)[0]["data"])
    model = find_model(given.model, queries.names, named_only=True)
    say_remarks(given, model)
    read_by = read_for(model.names, queries, files)
    require_scores(model, read_by, files)
    return model, read_by, config
