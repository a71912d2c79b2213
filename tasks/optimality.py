"""The certificate of local optimality for a trained net, kept beside its cell."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE

import ltr
from ltr.optimality import COARSE, FINE
from ltr.queries import Queries
from tasks import store
from tasks.config import Conventions, Optimality
from tasks.train import folder_of


@task(cache_policy=NO_CACHE, name="optimality", task_run_name="optimality {label}")
def certify(key: str, train: str, config: Optimality, conventions: dict[str, Any], seed: int, label: str = "") -> dict[str, Any]:
    """Tests the net of a cell on its training queries.

    Returns:
        The certificate as plain values: ``verdict``, ``rising``, ``upper_bound``, …, ``curves`` (four directions) and
        ``envelope`` (lowest and highest of all directions by step).

    Raises:
        ValueError: for a cell that is not a net.
    """
    about = {"certificate": 1, "core": store.core_digest(), "train": train, "conventions": conventions, "seed": seed}
    path = (
        folder_of(key) / f"optimality-{store.digest_of({**about, **config.model_dump(mode='json', exclude={'rankers'})})[:16]}.json"
    )
    if path.is_file():
        return json.loads(path.read_text())
    model = ltr.load(folder_of(key) / "model")
    queries = store.open_queries(train)
    core = Conventions(**conventions).build()
    found = ltr.certify(
        model.surface(queries.features), queries, config.measure, core, config.steps, config.epsilon, config.delta, seed=seed
    )
    result = plain(found)
    store.write_json(path, result)
    return result


def plain(found: ltr.Certificate) -> dict[str, Any]:
    """A certificate as plain values: four curves, and the envelope of all."""
    return {
        **asdict(found),
        "curves": found.curves[:4].tolist(),
        "envelope": [np.min(found.curves, axis=0).tolist(), np.max(found.curves, axis=0).tolist()],
        "directions": len(found.curves),
    }


def examine(
    model: ltr.Model, queries: Queries, measure: str, conventions: ltr.Conventions, epsilon: float, delta: float, seed: int
) -> list[dict[str, Any]]:
    """Three certificates of one model: random directions with coarse and with fine steps, and one weight at a time."""
    surface = model.surface(queries.features)
    ways: dict[str, dict[str, Any]] = {
        "random directions, η from 0.1": {"steps": COARSE},
        "random directions, η from 0.001": {"steps": FINE},
        "one weight at a time": {"steps": COARSE, "one_at_a_time": True},
    }
    options: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "seed": seed}
    return [
        {"ranker": way, **plain(ltr.certify(surface, queries, measure, conventions, **how, **options))} for way, how in ways.items()
    ]
