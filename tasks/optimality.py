"""The certificate of local optimality for a trained net, kept beside its cell."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE

import ltr
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
    if not isinstance(model, ltr.LambdaRank) or model.weights is None:
        raise ValueError(f"{label}: the certificate is for nets, this is a {model.kind}")
    queries = store.open_queries(train)
    found = ltr.certify(
        model.weights,
        model.standardised(queries.features),
        queries,
        config.measure,
        Conventions(**conventions).build(),
        steps=config.steps,
        epsilon=config.epsilon,
        delta=config.delta,
        seed=seed,
    )
    result = {
        **asdict(found),
        "curves": found.curves[:4].tolist(),
        "envelope": [np.min(found.curves, axis=0).tolist(), np.max(found.curves, axis=0).tolist()],
        "directions": len(found.curves),
    }
    store.write_json(path, result)
    return result
