"""By what a query is known again in another night's data: by its id, and by the features of its documents. Ids may be running numbers, as those
are of a file whose queries have only sizes (``FILE:7``): one more query in front, or another date in the name of the file, and all are new."""

import numpy as np
from numpy.typing import NDArray

from ltr.data.digests import mix
from ltr.data.queries import Queries

_REPEATED = 0.02
"""Share of the queries whose features are another's, above which features tell no queries apart: those of pages, or of few values."""


def marks(*sets: Queries) -> NDArray[np.uint64]:
    """``uint64 [queries, 2]``: the key of each query's id, and a digest of its documents' features in the order of `names`, whatever the order
    of the documents. The key stands for both where features do not tell the documents of a query apart, or queries of these sets."""
    keys = np.concatenate([queries.keys for queries in sets])
    digests = np.concatenate([_digests(queries) for queries in sets])
    _, inverse, counts = np.unique(digests, return_inverse=True, return_counts=True)
    repeated = counts[inverse] > 1
    if repeated.mean() > _REPEATED:
        repeated[:] = True
    return np.column_stack((keys, np.where(repeated, keys, digests)))


def _digests(queries: Queries) -> NDArray[np.uint64]:
    """Of the features of each query's documents; the key where these are all alike."""
    rows, starts = queries.row_digests, queries.offsets[:-1]
    if not len(rows):
        return queries.keys
    alike = np.minimum.reduceat(rows, starts) == np.maximum.reduceat(rows, starts)
    return np.where(alike, queries.keys, mix(np.add.reduceat(rows, starts)))
