"""Rankers × data sets: the same configuration run on each, and one table of them all (Dubey 2009 figure 3)."""

from typing import Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact

import ltr
from flows import leftovers
from flows.pipeline import run
from flows.runners import runner_of
from tasks import store
from tasks.config import StudyConfig
from tasks.study import gather, markdown, write_study
from tasks.tracking import Tracker
from tasks.train import folder_of


@flow(name="study", flow_run_name="{config.name}", validate_parameters=False)
def study(config: StudyConfig, fresh: bool = False, runner: str | None = None) -> dict[str, Any]:
    """Runs every data set's configuration where `flows.runners` says, and puts the outcomes into one table.

    Returns:
        ``run_id`` of the study in MLflow, ``models`` by ``dataset/ranker``, the ``table`` (`tasks.study.gather`) and its ``report``.
    """
    owner = leftovers.owner()
    outcomes: dict[str, dict[str, Any]] = {}
    for name, each in config.runs.items():
        outcomes[name] = runner_of(runner).start(run, each, fresh)
    values = {
        name: {ranker: [str(folder_of(key) / "values.parquet") for key in keys] for ranker, keys in outcome["chosen"].items()}
        for name, outcome in outcomes.items()
    }
    measures = next(iter(config.runs.values())).measures
    table = gather(values, [ltr.Measure.of(m).key for m in measures], config.baselines)
    tracker = Tracker(
        config.name, store.digest_of([each.digest for each in config.runs.values()] + [store.core_digest()]), fresh, owner
    )
    with tracker.running():
        page = write_study(table, config.name, store.STATE / "reports" / f"{config.name}-{tracker.run_id[:8]}" / "study.html")
        metrics = {f"{ranker}/{m}": row["micro"][m] for ranker, row in table["rows"].items() for m in table["measures"]}
        if not tracker.was_finished:
            runs = {f"run.{name}": outcome["run_id"] for name, outcome in outcomes.items()}
            tracker.summary({name: value for name, value in metrics.items() if value is not None}, runs, [page])
        create_markdown_artifact(
            key="study", markdown=f"# {config.name}\n\n{markdown(table)}\n", description="Rankers on all data sets"
        )
    models = {f"{name}/{ranker}": model for name, outcome in outcomes.items() for ranker, model in outcome["models"].items()}
    return {"run_id": tracker.run_id, "models": models, "table": table, "report": str(page)}
