"""Every configuration that the repository ships is read, and runs from its data to its report, on a few generated queries."""

from pathlib import Path
from typing import Any

import pytest

import tasks.evidence  # noqa: F401  (its kinds are keys of a configuration)
from flows.pipeline import run
from tasks.config.reading import from_yaml, parse, read_any

CONF = Path(__file__).parents[1] / "conf"
FILES = sorted(CONF.rglob("*.yaml"))
WITH_FIGURES = {
    "conf/trec-session", "donmez2009/figure2", "donmez2009/figure5", "dubey2009/figure4", "dubey2009/figure7", "svore2011/figure7",
    "svore2011/table1", "svore2011/trees", "unbiased/mq2008",
}  # fmt: skip
"""Configurations that together ask for every kind of ranker, data and evidence; the figures of the others are not drawn."""
QUICK = {
    "epochs": 2, "n_trees": 3, "min_docs_in_leaf": 2, "n_leaves": 3, "iterations": 3, "samples": 5, "length": 5, "rounds": 3, "planes": 5,
    "starts": 1, "patience": 2, "count_pairs": 1, "keep_epochs": [],
}  # fmt: skip
UNSWEPT = {*QUICK, "train_share"}
FEW: dict[str, Any] = {"queries": [12, 8, 10], "documents": 12, "features": 8, "mixed": 1}


def few(data: dict[str, Any]) -> dict[str, Any]:
    """The data of a configuration with few queries, generated where they are files."""
    kept = {key: data[key] for key in ("clean", "binarise", "binarise_into") if key in data}
    more = data.get("clicks", {}).get("more", {})
    if "clicked_pages" in data:
        kept["clicked_pages"] = {**data["clicked_pages"], "per_query": 2}
    return {**kept, "generate": {"more": more, "similar": 20 if more else 0, **data.get("generate", {}), **FEW}}


def tiny(written: dict[str, Any]) -> dict[str, Any]:
    """A configuration that takes seconds: few queries, short training, one point of every grid."""
    rankers = {}
    for name, section in written.get("rankers", {}).items():
        grid = {path: values[:1] for path, values in section.get("sweep", {}).items() if path.split(".")[0] not in UNSWEPT}
        rankers[name] = {**section, **{key: value for key, value in QUICK.items() if key in section}, "sweep": grid}
    grid = {path: values[:1] for path, values in written.get("sweep", {}).items() if path not in UNSWEPT}
    small = {**written, "rankers": rankers, "sweep": grid, "scale": 1, "length": 0.02, "data": few(written["data"])}
    if small.get("plot_by") not in {*grid, *(path for section in rankers.values() for path in section["sweep"])}:
        small.pop("plot_by", None)
    if "optimality" in small:
        small["optimality"] = {**small["optimality"], "epsilon": 0.3, "delta": 0.3, "early_epochs": [1]}
    if "segments" in small:
        small["segments"] = {**small["segments"], "by": ["documents"]}
    small.pop("expect", None)
    return small


def written_in(path: Path) -> list[dict[str, Any]]:
    """The configuration of a file, or those of a study's data sets."""
    written = from_yaml(path.read_text(), str(path))
    if "datasets" not in written:
        return [written]
    shared = {key: value for key, value in written.items() if key not in ("datasets", "baselines", "repeat")}
    return [{**shared, **about} for about in written["datasets"].values()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_is_read(path, monkeypatch):
    monkeypatch.setenv("LAMBDAFLOW_DATA", "data")
    assert read_any(path)


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.usefixtures("prefect_server", "workplace")
@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_it_runs_to_its_report(path, monkeypatch, request):
    monkeypatch.setenv("LAMBDAFLOW_DATA", "data")
    if name_of(path) not in WITH_FIGURES:
        request.getfixturevalue("undrawn")
    outcome = run(parse(tiny(written_in(path)[0]), str(path)))
    assert set(outcome.standings.rows) == set(outcome.config.rankers)
    assert list(Path(".lambdaflow/reports").rglob("report.html"))
