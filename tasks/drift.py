"""Whether data have moved between two runs: a profile is kept of each run's training data, and the next one's is held against it.

By the population stability index Σ (p − q)·ln(p/q) over deciles of the older data and one more bin for missing values, as credit
scoring has it (Siddiqi 2006): below 0.1 nothing, from 0.25 a shift. Shares are those of half a document more in every bin, so that
an empty one counts and is not infinite.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data.queries import Queries

SHIFTED = 0.25
_BINS = 10


def profile(queries: Queries) -> dict[str, Any]:
    """Deciles and counts of every feature, and of every label source: what `drift` needs of the older data."""
    columns = {name: queries.features[:, k] for k, name in enumerate(queries.names)}
    labels = {"label": queries.labels, **queries.sources}
    return {
        "documents": queries.n_documents,
        "queries": queries.n_queries,
        "features": {name: _counted(values, _edges(values)) for name, values in columns.items()},
        "labels": {name: _counted(values, np.unique(values[~np.isnan(values)])[:-1][:50]) for name, values in labels.items()},
    }


def drift(older: Mapping[str, Any], queries: Queries) -> list[dict[str, Any]]:
    """The index of every feature and label source that both have, the largest first, and those that only one has.

    Returns:
        ``kind`` (``features`` or ``labels``), ``name``, ``index`` (None where it is new or gone), ``text``.
    """
    found = []
    for kind, columns in (
        ("features", {name: queries.features[:, k] for k, name in enumerate(queries.names)}),
        ("labels", {"label": queries.labels, **queries.sources}),
    ):
        known = older[kind]
        for name in (name for name in {**known, **columns} if (name in known) != (name in columns)):
            text = "new" if name in columns else "gone"
            found.append({"kind": kind, "name": name, "index": None, "text": f"{name} is {text}"})
        for name, values in columns.items():
            if name in known:
                edges, before = np.array(known[name]["edges"]), np.array(known[name]["counts"])
                index = _stability(before, np.array(_counted(values, edges)["counts"]))
                found.append({"kind": kind, "name": name, "index": index, "text": f"{name}: stability index {index:.2f}"})
    return sorted(found, key=lambda entry: -np.inf if entry["index"] is None else -entry["index"])


def shifted(found: list[dict[str, Any]]) -> list[str]:
    """What has moved, in words."""
    return [entry["text"] for entry in found if entry["index"] is None or entry["index"] >= SHIFTED]


def _edges(values: NDArray[Any]) -> NDArray[Any]:
    present = values[~np.isnan(values)]
    return np.unique(np.quantile(present, np.arange(1, _BINS) / _BINS)) if len(present) else np.empty(0)


def _counted(values: NDArray[Any], edges: NDArray[Any]) -> dict[str, Any]:
    """Documents of each bin (edge k − 1, edge k], those above the last edge, and those without a value."""
    missing = np.isnan(values)
    counts = np.bincount(np.searchsorted(edges, values[~missing]), minlength=len(edges) + 1)
    return {"edges": edges.astype(float).tolist(), "counts": [*counts.tolist(), int(missing.sum())]}


def _stability(before: NDArray[Any], now: NDArray[Any]) -> float:
    q, p = ((counts + 0.5) / (counts + 0.5).sum() for counts in (before, now))
    return float(((p - q) * np.log(p / q)).sum())
