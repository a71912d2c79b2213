"""Certificates of local optimality for trained models: kept beside their cells, or made for any model on any data."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE

import ltr
from ltr.data.queries import Queries
from ltr.diagnostics.optimality import COARSE, FINE
from tasks import store
from tasks.config import Conventions, Optimality
from tasks.train import folder_of

Certificates = list[dict[str, Any]]


@task(cache_policy=NO_CACHE, name="optimality", task_run_name="optimality {label}")
def certify(key: str, train: str, config: Optimality, conventions: dict[str, Any], seed: int, label: str) -> Certificates:
    """Tests the model of a cell on its training queries, in every way that `config` asks for.

    Returns:
        One entry a certificate, as plain values (`plain`), the model's own first.
    """
    about = {
        "certificate": 3,
        "core": store.core_digest(),
        "train": train,
        "conventions": conventions,
        "seed": seed,
        "label": label,
    }
    written = config.model_dump(mode="json", exclude={"rankers"})
    path = folder_of(key) / f"optimality-{store.digest_of({**about, **written})[:16]}.json"
    if path.is_file():
        return json.loads(path.read_text())
    model = ltr.load(folder_of(key) / "model")
    found = list(examine(model, store.open_queries(train), config, Conventions(**conventions).build(), seed, label))
    store.write_json(path, found)
    return found


def examine(
    model: ltr.Ranker, queries: Queries, config: Optimality, conventions: ltr.Conventions, seed: int, label: str
) -> Iterator[dict[str, Any]]:
    """Certificates of a model: at its weights, and where asked for with fine steps, one weight at a time, and at its early epochs.

    With `config.escape`, training for the measure goes on from each place, and the entry tells how far it got.
    """
    options: dict[str, Any] = {"epsilon": config.epsilon, "delta": config.delta, "seed": seed}
    ways: dict[str, dict[str, Any]] = {"": {"steps": config.steps}}
    if config.fine:
        ways[", η from 0.001"] = {"steps": FINE}
    if config.one_at_a_time:
        ways[", one weight at a time"] = {"steps": config.steps, "one_at_a_time": True}
    for place, site in {label: model, **dict(_early(model, config.early_epochs, label))}.items():
        surface = site.surface(queries.features)
        escape = _escaped(site, queries, config, conventions) if config.escape else None
        for way, how in ways.items() if place == label else [("", ways[""])]:
            found = ltr.certify(surface, queries, config.measure, conventions, **how, **options)
            yield {"ranker": f"{place}{way}", "escape": escape if not way else None, **plain(found)}


def _early(model: ltr.Ranker, epochs: Sequence[int], label: str) -> Iterator[tuple[str, ltr.Ranker]]:
    for epoch in epochs:
        if isinstance(model, ltr.LambdaRank) and epoch in model.states:
            yield f"{label}, epoch {epoch}", replace(model, weights=model.states[epoch].weights)


def _escaped(model: ltr.Ranker, queries: Queries, config: Optimality, conventions: ltr.Conventions) -> dict[str, float] | None:
    """The best training measure within some epochs of training for it from a net's weights (D section 8), as the certificate takes it.

    At the net's learning rate, a tenth and a hundredth of it: near an optimum the first only jumps away.
    """
    if not isinstance(model, ltr.LambdaRank):
        return None
    onwards = replace(
        model, objective=(ltr.Term(config.measure),), stop_on=config.measure, epochs=config.escape, keep="train",
        flat_epochs=0, keep_epochs=(), conventions=replace(conventions, ties="expected", empty="skip"),
    )  # fmt: skip
    rates = [model.learning_rate * share for share in (1.0, 0.1, 0.01)]
    curves = [replace(onwards, learning_rate=rate).fit(queries, start=model.weights).curve for rate in rates]
    best = [float(curve.train.max()) for curve in curves if curve is not None]
    return {"epochs": config.escape, "rate": rates[int(np.argmax(best))], "best": max(best)}


def plain(found: ltr.Certificate) -> dict[str, Any]:
    """A certificate as plain values: four curves, and the envelope of all."""
    return {
        **asdict(found),
        "curves": found.curves[:4].tolist(),
        "envelope": [np.min(found.curves, axis=0).tolist(), np.max(found.curves, axis=0).tolist()],
        "directions": len(found.curves),
    }


def everything(measure: str, epsilon: float, delta: float, escape: int = 0) -> Optimality:
    """Every way to look at one model."""
    kept = (7, 12)
    return Optimality(
        measure=measure, epsilon=epsilon, delta=delta, steps=COARSE, fine=True, one_at_a_time=True, early_epochs=kept, escape=escape
    )
