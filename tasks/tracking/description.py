"""How runs, cells and data sets are described in MLflow."""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from prefect.runtime import flow_run
from prefect.settings import get_current_settings

from tasks.config.run_config import RunConfig
from tasks.records import OWN_PREFECT, Fold, LoggedDataset
from tasks.store.datasets import about_queries
from tasks.store.state import core_digest

PREFECT_UI = "http://127.0.0.1:4200"
"""Where `lambdaflow ui` shows Prefect."""


def describe_run(config: RunConfig, folds: tuple[Fold, ...]) -> tuple[Mapping[str, object], dict[str, str], list[LoggedDataset]]:
    """Parameters, tags and data sets of a run."""
    params = {
        "name": config.name,
        "rankers": ", ".join(sorted(config.rankers)),
        "select": config.select,
        "seed": config.seed,
        "scale": config.scale,
        "length": config.length,
        "folds": len(folds),
        **{f"conventions.{k}": v for k, v in config.conventions.model_dump(mode="json").items()},
    }
    tags = {"lambdaflow.config": config.digest, "lambdaflow.core": core_digest(), **prefect_tags()}
    if source := commit():
        tags["mlflow.source.git.commit"] = source
    numbered = len(folds) > 1
    data = [entry for k, fold in enumerate(folds) for entry in describe_fold(fold, f" {k + 1}" if numbered else "")]
    return params, tags, data


def describe_fold(fold: Fold, suffix: str = "") -> Iterable[LoggedDataset]:
    """The three data sets of a fold, named by role and `suffix`."""
    for role, name in fold.roles.items():
        about = about_queries(name)
        profile = {"queries": about.queries, "documents": about.documents, "features": len(about.names)}
        yield LoggedDataset(f"{role}{suffix}", role, about.content, json.dumps({"store": name}), json.dumps(profile))


def logged_digests(data: Iterable[LoggedDataset]) -> dict[str, str]:
    """The digests of data sets by name, as MLflow keeps them: their field holds 36 characters."""
    return {entry.name: entry.digest[:36] for entry in data}


def prefect_tags() -> dict[str, str]:
    """Page of the Prefect run that is under way; none outside of one."""
    if not flow_run.id:
        return {}
    return {"prefect.flow_run_url": f"{_prefects_pages()}/runs/flow-run/{flow_run.id}"}


def _prefects_pages() -> str:
    """The pages of the server that keeps the run: of one that others use too, where Prefect's settings say, without user and password."""
    settings = get_current_settings()
    if not settings.ui_url or settings.api.url == os.environ.get(OWN_PREFECT):
        return PREFECT_UI
    address = urlsplit(settings.ui_url)
    return address._replace(netloc=address.netloc.rpartition("@")[2]).geturl().rstrip("/")


def commit() -> str | None:
    """Commit of the checkout this code runs from, where it is one."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=10, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() or None
