"""What the λ's of a trained model did while it learned, and the documents that stayed lost: kept beside its cell."""

import json
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

import ltr
from ltr.data.queries import Queries
from ltr.diagnostics.microscope import Looks, look
from ltr.rankers.training import mean_measure
from tasks import store
from tasks.config import Conventions, Microscope
from tasks.train import folder_of

LOST = "lost-causes.csv"


@task(cache_policy=NO_CACHE, name="microscope", task_run_name="microscope {label}")
def magnify(
    key: str, train: str, test: str, config: Microscope, measure: str, conventions: dict[str, Any], label: str
) -> dict[str, Any]:
    """Looks at the model of a cell along its training.

    Returns:
        `ltr.diagnostics.microscope.Looks` as plain values without the arrays of documents, with ``ranker``, ``measure`` and its mean at each look on
        training (``train``) and test queries (``test``), and ``lost``: the hardest pushed documents, whose table lies in ``folder``.
    """
    about = {
        "microscope": 1,
        "core": store.core_digest(),
        "train": train,
        "test": test,
        "conventions": conventions,
        "measure": measure,
    }
    written = config.model_dump(mode="json", exclude={"rankers"})
    folder = folder_of(key) / f"microscope-{store.digest_of({**about, **written, 'label': label})[:16]}"
    if not (folder / "looks.json").is_file():
        with store.made_whole(folder) as partial:
            model: Any = ltr.load(folder_of(key) / "model")
            found, lost = _seen(model, store.open_queries(train), store.open_queries(test), config, measure, conventions)
            lost.write_csv(partial / LOST)
            store.write_json(partial / "looks.json", {**found, "ranker": label, "lost": lost.rows(named=True)})
    return {**json.loads((folder / "looks.json").read_text()), "folder": str(folder)}


def _seen(
    model: Any, train: Queries, test: Queries, config: Microscope, measure: str, conventions: dict[str, Any]
) -> tuple[dict[str, Any], pl.DataFrame]:
    rules = Conventions(**conventions).build()
    stages = list(model.stages(train.features, config.every))
    seen = look(stages, train, ltr.Term(config.first), config.second, config.top, rules)
    means = {
        "train": [mean_measure(measure, train, scores, rules) for _, scores in stages],
        "test": [mean_measure(measure, test, scores, rules) for _, scores in model.stages(test.features, config.every)],
    }
    arrays = {name: _plain(getattr(seen, name)) for name in ("iteration", "labels", "partners", "top_labels", "moved", "moved_top")}
    agreement = {name: _plain(shares) for name, shares in seen.agreement.items()}
    return {**arrays, "agreement": agreement, "measure": measure, "top": config.top, **means}, _lost(seen, train, config.lost)


def _plain(values: NDArray[Any]) -> list[Any]:
    """An array as lists, None for NaN."""
    return np.where(np.isnan(values), None, values.astype(object)).tolist()  # type: ignore[call-overload]


def _lost(seen: Looks, train: Queries, n: int) -> pl.DataFrame:
    """The hardest pushed documents: query, document, label, rank, λ at the end, and the smallest |λ| of the later looks."""
    rows = seen.lost_causes(n)
    of_query = np.repeat(np.arange(train.n_queries), np.diff(train.offsets))[rows]
    ids = train.ids[of_query] if train.ids is not None else np.array([f"{key:016x}".encode() for key in train.keys[of_query]])
    documents = (
        train.documents[rows] if train.documents is not None else np.array([str(p + 1).encode() for p in train.position[rows]])
    )
    return pl.DataFrame({
        "query": np.char.decode(ids, "utf-8", "replace"),
        "document": np.char.decode(documents, "utf-8", "replace"),
        "label": train.labels[rows],
        "rank": seen.rank[rows],
        "force": seen.gradient[rows],
        "smallest": seen.lost[rows],
    })  # fmt: skip
