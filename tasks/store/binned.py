"""Features of stored data sets as bytes, binned once for all cells that ask for the same bins and memory-mapped like the features themselves.

LightGBM keeps a `.bin` file beside the data for this, which a user has to ask for and to remove when the data change. Here the key has the
data's name, the binning and the core's sources. A training gives the bytes that it gives without (`ltr.Binned`).
"""

from contextlib import suppress
from pathlib import Path

import numpy as np

import ltr
from ltr.data.queries import Queries
from ltr.data.sparse import is_sparse
from ltr.trees.binned import BINNING, Binned
from ltr.trees.binning import Bins
from tasks.store import state
from tasks.store.datasets import open_queries
from tasks.store.seal import SEAL, is_whole
from tasks.store.state import alone, core_digest, digest_of, made_whole

LEAST_VALUES = 5_000_000
"""Values that are binned in less time than their files take to be written, sealed and opened are binned in every cell."""


def open_for(ranker: ltr.Ranker, name: str) -> Queries | Binned:
    """A stored data set as `ranker` learns from it: with binned features, where it grows trees on many values.

    Raises:
        DataError: where the data set's files were damaged.
        ValueError: as `ltr.Binned` does.
    """
    queries = open_queries(name)
    if not isinstance(ranker, ltr.LambdaMART) or is_sparse(queries.features) or queries.features.size < LEAST_VALUES:
        return queries
    asked = {one: getattr(ranker, one) for one in BINNING}
    folder = state.root() / "binned" / digest_of({"data": name, "core": core_digest(), **asked})[:32]
    if not _is_kept(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with alone(folder.parent):  # so that cells which begin together bin once
            if not _is_kept(folder):
                made = Binned(queries, **asked)
                with suppress(OSError):  # a full disk: this training needs none of it
                    _keep(made, folder)
                return made
    kept = {path.stem: np.load(path, mmap_mode="c", allow_pickle=False) for path in folder.glob("*.npy")}
    bins = Bins(*(np.array(kept[key]) for key in ("edges", "starts", "categorical")))
    return Binned.kept(queries, ranker, bins, np.asarray(kept["binned"]))


def _is_kept(folder: Path) -> bool:
    return (folder / SEAL).is_file() and is_whole(folder)


def _keep(made: Binned, folder: Path) -> None:
    with made_whole(folder, replace=folder.is_dir()) as partial:
        for key in ("edges", "starts", "categorical"):
            np.save(partial / f"{key}.npy", getattr(made.bins, key), allow_pickle=False)
        np.save(partial / "binned.npy", made.binned, allow_pickle=False)
