"""Judgments and scored documents of collections that the package ``ir_datasets`` has on this machine, by their names there:
``ir_datasets:NAME`` are the qrels, ``ir_datasets:NAME:scoreddocs`` is the run.

They are written once as TREC's files, and whatever reads those reads them. Nothing is downloaded: what is not here is refused with the command
that brings it. PyTerrier's ``irds:`` and ir_measures take such names too, and download.
"""

import difflib
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from tasks.records import DataError
from tasks.store import state
from tasks.store.seal import is_whole
from tasks.store.state import digest_of, made_whole

PREFIX, SCORED = "ir_datasets:", ":scoreddocs"
"""By which a collection is told from a file, and its run from its qrels."""


class _NotHereError(Exception):
    """Something would have to be downloaded."""


def collection_file(written: str) -> Path:
    """The file with the qrels or the run of a collection, ``ir_datasets:NAME`` as it is written.

    Raises:
        DataError: without the package, for a collection that it does not know, one without what is asked for, or not on this machine, and
            for an id with a space in it.
    """
    name, what = written.removeprefix(PREFIX), "qrels"
    if name.endswith(SCORED):
        name, what = name.removesuffix(SCORED), "scoreddocs"
    folder = state.root() / "collections" / digest_of({"collection": name, "what": what})[:32]
    file = folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '-', name)}.{'qrels' if what == 'qrels' else 'run'}"
    if not is_whole(folder):
        with made_whole(folder) as partial, open(partial / file.name, "w", encoding="utf-8") as out:
            out.writelines(_lines(written, name, what))
    return file


def _lines(written: str, name: str, what: str) -> Iterator[str]:
    """A collection's lines as TREC has them; a run's ranks are the places where its documents stand."""
    try:
        package = import_module("ir_datasets")
    except ImportError:
        raise DataError(f"{written}: the package ir_datasets is not installed (pip install ir_datasets)") from None
    try:
        collection = package.load(name)
    except KeyError:
        near = difflib.get_close_matches(name, list(package.registry), 3)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise DataError(f"{written}: ir_datasets has no collection {name!r}{hint}") from None
    if not getattr(collection, f"has_{what}")():
        raise DataError(f"{written}: this collection has no {what}")
    refused: list[str] = []
    try:
        with _offline(package, refused):
            yield from _rows(written, collection, what)
    except DataError:
        raise
    except (_NotHereError, OSError, RuntimeError, ValueError) as error:
        if refused or isinstance(error, FileNotFoundError):
            raise DataError(
                f"{written}: its {what} are not on this machine, and nothing is downloaded automatically; ir_datasets export {name} {what} downloads them"
            ) from None
        raise DataError(f"{written}: ir_datasets cannot read it: {(str(error) or type(error).__name__).splitlines()[0]}") from None


def _rows(written: str, collection: Any, what: str) -> Iterator[str]:
    places: dict[str, int] = {}
    for row in getattr(collection, f"{what}_iter")():
        query, document = str(row.query_id), str(row.doc_id)
        for one in (query, document):
            if not re.fullmatch(r"\S+", one):
                raise DataError(f"{written}: id {one[:40]!r}: TREC's files hold ids without spaces")
        if what == "qrels":
            yield f"{query} 0 {document} {row.relevance}\n"
        else:
            places[query] = places.get(query, 0) + 1
            yield f"{query} Q0 {document} {places[query]} {float(row.score)!r} ir_datasets\n"


@contextmanager
def _offline(package: Any, refused: list[str]) -> Iterator[None]:
    """The package downloads nothing, and does not speak of that; what it would have to is noted in `refused`."""
    before = {
        kind: kind.__dict__["stream"] for kind in package.util.BaseDownload.__subclasses__() if kind.__name__ != "LocalDownload"
    }
    level = logging.root.manager.disable

    def refuse(source: Any) -> Any:
        refused.append(str(source))
        raise _NotHereError

    try:
        logging.disable(logging.WARNING)
        for kind in before:
            kind.stream = refuse
        yield
    finally:
        logging.disable(level)
        for kind, stream in before.items():
            kind.stream = stream
