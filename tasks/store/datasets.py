"""Data sets on disk, by content: each array a file, memory-mapped, so that all cells of a sweep and all processes of a machine share one copy."""

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data.queries import Queries, canonical_order, reordered, rows_within, select, without_features
from tasks.records import DataError
from tasks.store import state
from tasks.store.large import taken
from tasks.store.seal import faults, is_whole
from tasks.store.state import made_whole, write_json


def keep_queries(queries: Queries) -> str:
    """Stores a data set in canonical order; its name in the store.

    The name covers the original positions and the ids too: two files with the same rows in another order, or of other documents, have
    one content digest and two names, because the ``stable`` tie rule, runs and click logs tell them apart.
    """
    order = canonical_order(queries)
    if order is not None:
        features = taken(queries.features, order)
        queries = replace(reordered(without_features(queries), order), features=features, names=queries.names)
    content = queries.digest
    hasher = sha256(content.encode() + queries.position.tobytes())
    for ids in (queries.ids, queries.documents):
        hasher.update(b"none" if ids is None else f"{ids.dtype.str}{ids.shape}".encode() + np.ascontiguousarray(ids).tobytes())
    name = hasher.hexdigest()[:32]
    folder = state.root() / "data" / name
    if not is_whole(folder):
        with made_whole(folder) as partial:
            arrays: dict[str, Any] = {
                "features": queries.features,
                "labels": queries.labels,
                "offsets": queries.offsets,
                "keys": queries.keys,
            }
            arrays |= {"position": queries.position}
            arrays |= {"ids": queries.ids} if queries.ids is not None else {}
            arrays |= {"documents": queries.documents} if queries.documents is not None else {}
            for kind in ("weights", "document_weights"):
                arrays |= {kind: given} if (given := getattr(queries, kind)) is not None else {}
            arrays |= {f"source.{source}": values for source, values in queries.sources.items()}
            arrays |= {f"attribute.{attribute}": values for attribute, values in queries.attributes.items()}
            for key, array in arrays.items():
                np.save(partial / f"{key}.npy", array, allow_pickle=False)
            about = {"content": content, "names": queries.names, "queries": queries.n_queries, "documents": queries.n_documents}
            write_json(partial / "about.json", about)
    return name


def keep_part(name: str, selected: NDArray[np.intp]) -> str:
    """Stores some queries (indices) of a stored data set, as they lie there."""
    return keep_queries(_part(open_queries(name), np.sort(selected)))


def _part(queries: Queries, selected: NDArray[np.intp]) -> Queries:
    """`select`, with the features in a file where they are large."""
    features = taken(queries.features, rows_within(queries, selected))
    return replace(select(without_features(queries), selected), features=features, names=queries.names)


@dataclass(frozen=True)
class StoredDataset:
    """A stored data set without its arrays: content digest, feature names and counts."""

    content: str
    names: tuple[str, ...]
    queries: int
    documents: int


def about_queries(name: str) -> StoredDataset:
    """What is known of a stored data set without opening its arrays.

    Raises:
        DataError: where the file that says it was damaged since it was written.
    """
    file = state.root() / "data" / name / "about.json"
    try:
        written = json.loads(file.read_text(encoding="utf-8"))
        return StoredDataset(**{**written, "names": tuple(written["names"])})
    except (ValueError, KeyError, TypeError):
        raise _damaged(file.parent, f"{file} has other bytes than were written") from None


def _damaged(folder: Path, wrong: str) -> DataError:
    return DataError(f"{wrong}: remove {folder} and run the same command again, which creates it again")


def open_queries(name: str) -> Queries:
    """A stored data set, memory-mapped (copy on write, so the files cannot be changed through it).

    Raises:
        DataError: where its files were damaged since they were written, as far as blocks of them tell.
    """
    folder = state.root() / "data" / name
    if wrong := faults(folder):
        raise _damaged(folder, "; ".join(wrong))
    arrays = {path.stem: np.load(path, mmap_mode="c", allow_pickle=False) for path in sorted(folder.glob("*.npy"))}
    named: dict[str, dict[str, Any]] = {
        kind: {key.removeprefix(f"{kind}."): arrays.pop(key) for key in list(arrays) if key.startswith(f"{kind}.")}
        for kind in ("source", "attribute")
    }
    return Queries(**arrays, sources=named["source"], attributes=named["attribute"], names=about_queries(name).names)
