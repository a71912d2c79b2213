"""Artificial data as files, so that a run on them goes through the same door as a user's own: tables and a session log."""

from pathlib import Path

import numpy as np
import polars as pl
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.data.synthetic import HISTORY, World, attraction, history, simulate_sessions
from tasks.config.click_labels import ClickLog
from tasks.config.data_section import Data, Generate
from tasks.store import state
from tasks.store.seal import is_whole
from tasks.store.state import core_digest, digest_of, made_whole

ATTRACTION = "attraction"
EARLIER = 1000
"""By which the seed of an earlier time's sessions is ahead."""


@task(cache_policy=NO_CACHE, name="generate", task_run_name="generate")
def generate(config: Generate, scale: float = 1.0) -> Data:
    """Writes training, validation and test tables and the session log; the ``data`` section that reads them."""
    sizes = tuple(max(2, round(n * scale)) for n in config.queries)
    written = {"generator": 3, "core": core_digest(), **config.model_dump(mode="json", exclude={"more"}), "queries": sizes}
    folder = state.root() / "generated" / digest_of(written)[:32]
    if not is_whole(folder):
        with made_whole(folder) as partial:
            _write(partial, config, sizes)
    log = ClickLog(log=folder / "sessions.parquet", text="text", more=config.more)
    tables = {role: [folder / f"{role}.parquet"] for role in ("train", "valid", "test")}
    return Data(**tables, clicks=log, sources=[ATTRACTION] if config.attraction else [])


def _write(folder: Path, config: Generate, sizes: tuple[int, ...]) -> None:
    world = World(
        n_features=config.features, active=config.active, mixed=config.mixed, noise=config.noise, shares=config.shares, seed=config.seed
    )  # fmt: skip
    logs, sessions_before = [], 0
    for stream, (role, size) in enumerate(zip(("train", "valid", "test"), sizes, strict=True)):
        queries, users = world.queries(size, config.documents, stream)
        of_query = np.repeat(np.arange(size), config.documents)
        query_ids = [f"{role}-{q + 1}" for q in range(size)]
        names = pl.DataFrame({
            "query": pl.Series([query_ids[q] for q in of_query]),
            "document": pl.Series([f"{query_ids[q]}-{k}" for q in range(size) for k in range(config.documents)]),
            "label": pl.Series(queries.labels.astype(np.int8)),
        })  # fmt: skip
        if config.attraction:
            names = names.with_columns(pl.Series(ATTRACTION, attraction(users)))
        features = pl.DataFrame(queries.features, schema=list(queries.names))
        if config.earlier:
            before = simulate_sessions(queries.offsets, queries.labels, users, config.earlier, seed=config.seed + stream + EARLIER)
            features = features.hstack(pl.DataFrame(history(before, queries.n_documents), schema=list(HISTORY)))
        names.hstack(features).write_parquet(folder / f"{role}.parquet", compression="uncompressed")
        kinds = ((config.sessions, users, "", ""), (config.similar, world.similar(queries.features, users), "-similar", " more"))
        for k, (sessions, valued, suffix, word) in enumerate(kinds):
            if sessions:
                seed = config.seed + stream + 3 * k
                shown = simulate_sessions(queries.offsets, queries.labels, valued, sessions, seed=seed)
                query = names["query"].gather(shown.document)
                logs.append(pl.DataFrame({
                    "session": shown.session + sessions_before,
                    "query": query + suffix,
                    "text": query + " " + query + "-b " + query + "-c" + word,
                    "rank": shown.rank,
                    "document": names["document"].gather(shown.document),
                    "click": shown.click,
                }))  # fmt: skip
                sessions_before += int(shown.session.max()) + 1
    pl.concat(logs).write_parquet(folder / "sessions.parquet")
