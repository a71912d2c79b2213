"""How a conditional model's sample and its fit went: kept beside its cell."""

import json
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

import ltr
from ltr.linear.conditional import ConditionalModel, trace
from tasks import store
from tasks.train import folder_of


@task(cache_policy=NO_CACHE, name="trace", task_run_name="trace {label}")
def traced(key: str, train: str, label: str) -> dict[str, Any]:
    """`ltr.linear.conditional.Trace` of the model of a cell as plain values, with its ``ranker``."""
    path = folder_of(key) / f"trace-{store.digest_of([store.core_digest(), train, label])[:16]}.json"
    if not path.is_file():
        model = ltr.load(folder_of(key) / "model")
        assert isinstance(model, ConditionalModel)
        seen = trace(model, store.open_queries(train))
        plain = {name: getattr(seen, name).tolist() for name in ("sampled", "closed", "products", "losses")}
        smear = {f"{begin:g}": losses.tolist() for begin, losses in seen.smear.items()}
        store.write_json(path, {**plain, "smear": smear, "ranker": label})
    return dict(json.loads(path.read_text()))
