"""Is this model at a local optimum of the measure I care about? Model and files → certificates → page."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from prefect import flow
from prefect.artifacts import create_markdown_artifact

from flows.leftovers import clear
from flows.progress import steps
from ltr.rankers.base import Ranker
from tasks.config.run_config import RunConfig
from tasks.data.calibrated import calibrated
from tasks.data.ingest import ingest, read_for, require_scores, without_unread
from tasks.data.prepare import prepare
from tasks.evidence.optimality import CertificateRecord, certify_on, everything, write_certificates
from tasks.store import state
from tasks.store.datasets import open_queries
from tasks.tracking.lookup import find_model, named_features


@dataclass(frozen=True)
class Certified:
    """Certificates of a model, and the page with their figures; the model, and what there was to say of the files, in sentences."""

    certificates: tuple[CertificateRecord, ...]
    page: Path
    model: Ranker
    notes: tuple[str, ...]


@flow(name="optimality", flow_run_name="optimality of {model} for {measure}")
def certify_model(
    model: str, config: RunConfig, measure: str, epsilon: float = 0.01, delta: float = 0.01, seed: int = 1, escape: int = 0
) -> Certified:
    """Certificates of a model (a folder, an MLflow run, or a file of linear weights) on the files of ``config.data``, each kept as soon as it is found.
    What killed runs and commands of its kind left behind is cleared away first."""
    clear()
    data, unread = without_unread(config.data, partial(named_features, model))
    read = ingest(data.files, data)
    prepared = prepare(read.data, data).data
    name = calibrated({"data": prepared}, data, config.core_conventions)[0]["data"]
    queries = open_queries(name)
    found = find_model(model, queries.names)
    queries = read_for(found.names, queries, config.data.files)
    require_scores(found, queries, config.data.files)
    ways = everything(measure, epsilon, delta, escape)
    with steps("optimality") as progress:
        certificates = tuple(certify_on(queries, name, found, ways, config.core_conventions, seed, progress))
    files = " ".join(str(file) for file in config.data.files)
    page = state.root() / "reports" / f"optimality-{found.digest[:12]}-{prepared[:8]}-{measure}.html"
    write_certificates(certificates, f"{model} on {files}", page)
    lines = [f"- **{c.ranker}**: {c.verdict}. {c.text()}" for c in certificates]
    create_markdown_artifact(key="optimality", markdown="\n".join((f"# {model}, {measure}", *lines, "", f"Figures: `{page}`")))
    return Certified(certificates, page, found, (*unread, *read.sentences))
