"""Artificial data as files, so that a run on them goes through the same door as a user's own: tables and a session log."""

from pathlib import Path

import numpy as np
import polars as pl
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.data.synthetic import World, simulate_sessions
from tasks.config.click_labels import ClickLog
from tasks.config.data_section import Data, Generate
from tasks.store import state
from tasks.store.seal import is_whole
from tasks.store.state import core_digest, digest_of, made_whole


@task(cache_policy=NO_CACHE, name="generate", task_run_name="generate")
def generate(config: Generate, scale: float = 1.0) -> Data:
    """Writes training, validation and test tables and the session log; the ``data`` section that reads them."""
    sizes = tuple(max(2, round(n * scale)) for n in config.queries)
    written = {"generator": 2, "core": core_digest(), **config.model_dump(mode="json", exclude={"more"}), "queries": sizes}
    folder = state.STATE / "generated" / digest_of(written)[:32]
    if not is_whole(folder):
        with made_whole(folder) as partial:
            _write(partial, config, sizes)
    log = ClickLog(log=folder / "sessions.parquet", text="text", more=config.more)
    tables = {role: [folder / f"{role}.parquet"] for role in ("train", "valid", "test")}
    return Data(**tables, clicks=log)


def _write(folder: Path, config: Generate, sizes: tuple[int, ...]) -> None:
    world = World(n_features=config.features, noise=config.noise, seed=config.seed)
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
        features = pl.DataFrame(queries.features, schema=list(queries.names))
        names.hstack(features).write_parquet(folder / f"{role}.parquet", compression="uncompressed")
        for k, (sessions, suffix, word) in enumerate(((config.sessions, "", ""), (config.similar, "-similar", " more"))):
            if sessions:
                seed = config.seed + stream + 3 * k
                shown = simulate_sessions(queries.offsets, queries.labels, users, sessions, seed=seed)
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
