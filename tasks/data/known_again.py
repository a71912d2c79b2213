"""By what a query is known again in another night's data: by its id, and by the features of its documents. Ids may be running numbers, as those
are of a file whose queries have only sizes (``FILE:7``): one more query in front, or another date in the name of the file, and all are new."""

import numpy as np
from numpy.typing import NDArray

from ltr.data.digests import mix
from ltr.data.queries import Queries


def marks(queries: Queries) -> NDArray[np.uint64]:
    """``uint64 [queries, 2]``: the key of each query's id, and a digest of its documents' features in the order of `queries.names`, whatever
    the order of the documents. Where these do not tell documents apart they tell no queries apart, and the key stands for both."""
    rows, starts = queries.row_digests, queries.offsets[:-1]
    if not len(rows):
        return np.repeat(queries.keys[:, None], 2, axis=1)
    alike = np.minimum.reduceat(rows, starts) == np.maximum.reduceat(rows, starts)
    return np.column_stack((queries.keys, np.where(alike, queries.keys, mix(np.add.reduceat(rows, starts)))))
