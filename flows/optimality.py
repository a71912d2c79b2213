"""Is this model at a local optimum of the measure I care about? Model and files → certificates → page."""

from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact

from tasks import store
from tasks.config import RunConfig
from tasks.ingest import ingest
from tasks.labels import prepare
from tasks.lookup import find_model
from tasks.optimality import everything, examine
from tasks.report import certificate_text, write_certificates


@flow(name="optimality", flow_run_name="optimality of {model} for {measure}")
def certify_model(
    model: str, config: RunConfig, measure: str, epsilon: float = 0.01, delta: float = 0.01, seed: int = 1, escape: int = 0
) -> dict[str, Any]:
    """Certificates of a model (a folder, an MLflow run, or a file of linear weights) on the files of ``config.data``.

    Returns:
        ``certificates`` and the ``page`` with their figures.
    """
    read = ingest(config.data.files, config.data)
    queries = store.open_queries(prepare(read["data"][0], config.data)["data"][0])
    found = find_model(model, queries.names)
    certificates = list(
        examine(found, queries, everything(measure, epsilon, delta, escape), config.core_conventions, seed, found.kind)
    )
    files = " ".join(str(file) for file in config.data.files)
    page = store.STATE / "reports" / f"optimality-{found.digest[:12]}-{measure}.html"
    write_certificates(certificates, f"{model} on {files}", page)
    lines = [f"- **{c['ranker']}**: {c['verdict']}. {certificate_text(c)}" for c in certificates]
    create_markdown_artifact(
        key="optimality", markdown="\n".join((f"# {model}, {measure}", *lines, "", f"Figures: `{Path(page)}`"))
    )
    return {"certificates": certificates, "page": str(page)}
