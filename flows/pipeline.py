"""The main flow: files → data → sweep → the best of each ranker → optimality → significance → report, all of it in MLflow.

    ingest ─ labels ─ check ─ split ─┬─ train cell ─┐
                                     ├─ train cell ─┼─ choose on validation ─ certify ─ compare ─ report
                                     └─ train cell ─┘

Running it again with the same configuration, data and code finds what is finished and does the rest.
"""

import json
import subprocess
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.runtime import flow_run

import ltr
from flows.leftovers import clear, signed
from flows.progress import Steps, steps
from flows.runners import require_workers
from flows.sweep import Cell, cells_of, choose, point_label, train_all
from ltr.metrics.measure import why_undefined
from ltr.objectives.terms import weights_at
from tasks import store
from tasks.champion import challenge, champion_text, moved
from tasks.check import check, refuse, shared_queries
from tasks.config import CERTIFIED, COMPLETE, Data, RunConfig
from tasks.drift import profile
from tasks.figures import label_of
from tasks.generate import generate
from tasks.guarantee import frontier, kept, promise
from tasks.ingest import DataError, ingest, is_table
from tasks.labels import fit_together, prepare, rotate, split
from tasks.microscope import LOST, magnify
from tasks.optimality import certify
from tasks.registry import EVIDENCE, PROFILE
from tasks.report import write_plots, write_report
from tasks.runs import pool
from tasks.sampling import traced
from tasks.segments import segmented, write_tables
from tasks.significance import standings
from tasks.tracking import Tracker
from tasks.train import folder_of, stack

MLFLOW_UI, PREFECT_UI = "http://127.0.0.1:5000", "http://127.0.0.1:4200"
"""Where `lambdaflow ui` shows them."""


class ExpectationError(ValueError):
    """A number that the configuration expects did not come out."""


@flow(name="lambdaflow", flow_run_name="{config.name}", validate_parameters=True)
def run(config: RunConfig, fresh: bool = False) -> dict[str, Any]:
    """One run of a configuration; `fresh` trains every cell again."""
    require_workers(config)
    clear()
    with signed() as owner, steps() as progress:
        progress.begin("data")
        folds, findings = ready_data(config)
        for finding in findings:
            progress.say(
                f"{finding['subject']}: {finding['text']}", {"warning": "yellow", "error": "red"}.get(finding["level"], "dim")
            )
        refuse(findings)
        require_sources(config, folds)
        data = [
            _about(f"{role}{f' {k + 1}' if len(folds) > 1 else ''}", role, name)
            for k, fold in enumerate(folds)
            for role, name in fold.items()
        ]
        if config.champion and len(folds) > 1:
            raise DataError(f"champion: a champion is one model, and these data make {len(folds)} folds")
        run_key = store.digest_of([config.digest, folds, store.core_digest()])
        tracker = Tracker(config.name, run_key, fresh, owner)
        with tracker.running():
            tracker.describe(*_description(config, run_key, folds), data)
            results = sweep(config, folds, tracker, fresh, progress)
            chosen, promises = guaranteed(config, results, list(choose(results, ltr.Measure.of(config.select).key)))
            certificates = optimality(config, chosen, progress)
            looks = magnified(config, chosen, progress)
            traces = [traced(r["key"], cell["train"], name) for name, fold, cell, r in chosen if name in config.trace and fold == 0]
            progress.begin("significance")
            table = compare(config, chosen)
            segments = segments_of(config, folds, chosen)
            outcome = _outcome(
                config, tracker, folds, findings, results, chosen, certificates, table, promises, looks, traces, segments
            )
            outcome["champion"] = challenged(config, tracker, chosen, outcome, progress)
            progress.begin("report")
            publish(config, tracker, outcome)
    shown = ("run_id", "models", "standings", "certificates", "promises", "champion", "segments", "chosen", "report", "summary")
    return {name: outcome[name] for name in shown}


def ready_data(config: RunConfig) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Folds of data set names, and what the doctor found in them."""
    data = Data(**generate(config.data.generate, config.scale)) if config.data.generate else config.data
    told = []
    if data.qrels:
        alone = pool(data)
        data, told = Data(**alone["data"]), alone["notes"]
    roles = {"train": data.train, "valid": data.valid, "test": data.test} if data.train else {}
    groups = roles or ({f"part {k + 1}": [part] for k, part in enumerate(data.parts)} if data.parts else {"data": data.files})
    sets, findings = {}, [{"level": "note", "subject": "runs", "text": note} for note in told]
    for label, paths in groups.items():
        read = ingest(paths, data, label)
        prepared = prepare(read["data"][0], data, label)
        sets[label] = prepared["data"][0]
        findings += check(sets[label], read["split_queries"], label, config.conventions.model_dump())  # type: ignore[attr-defined]
        findings += [{"level": "note", "subject": label, "text": note} for note in prepared["notes"]]
    names = list(sets.values())
    for k, name in enumerate(names):
        for other in list(sets)[k + 1 :]:
            findings += [
                vars(f) for f in shared_queries(store.open_queries(name), store.open_queries(sets[other]), other, list(sets)[k])
            ]
    refuse(findings)
    folds = [sets] if roles else rotate(names) if data.parts else split(names[0], data, config.seed)
    scale = 1.0 if config.data.generate else config.scale
    sparse = not any(is_table(path) for path in chain(*groups.values()))
    fitted = [fit_together(fold, scale, config.seed, sparse, data.drop_telling) for fold in folds]
    dropped = dict.fromkeys(note for _, notes in fitted for note in notes)
    findings += [{"level": "warning", "subject": "train", "text": note} for note in dropped]
    return [fold for fold, _ in fitted], findings


def require_sources(config: RunConfig, folds: list[dict[str, str]]) -> None:
    """What rankers and measures read is there: label sources, labels within ERR's scale, columns, no missing feature for least squares.

    Raises:
        DataError: before anything is trained.
    """
    if config.parts > (fewest := min(store.open_queries(fold["train"]).n_queries for fold in folds)):
        raise DataError(f"parts: {config.parts} of {fewest} training queries")
    train = store.open_queries(folds[0]["train"])
    sources = {"label", *train.sources}
    sections = list(config.rankers.values())
    trained = [str(term.measure) for section in sections for term in getattr(section, "objective", ())]
    trained += [section.measure for section in sections if hasattr(section, "measure")]  # type: ignore[attr-defined]
    stops = [section.stop_on for section in sections if getattr(section, "stop_on", None)]  # type: ignore[attr-defined]
    certified = [config.optimality.measure] if config.optimality else []
    everything = [store.open_queries(name) for name in {name for fold in folds for name in fold.values()}]
    for measure in sorted({ltr.Measure.of(read) for read in (*config.all_measures, *trained, *stops, *certified)}, key=str):
        if measure.source not in sources:
            raise DataError(
                f"{measure.key} reads the label source {measure.source!r}, but the data have: {', '.join(sorted(sources))} (data.clicks makes click labels)"
            )
        highest = max(float(np.nan_to_num(queries.source(measure.source)).max(initial=0.0)) for queries in everything)
        measure.definition.gain(np.array([highest]), config.core_conventions)
    decisive = {ltr.Measure.of(read) for read in (config.select, *stops, *certified)}
    for role, queries in [(role, store.open_queries(name)) for fold in folds for role, name in fold.items()]:
        for measure in sorted(decisive, key=str):
            labels, nothing = {"label": queries.labels, **queries.sources}, np.zeros(queries.n_documents)
            rules = replace(config.core_conventions, ties="expected", empty="skip")
            values = ltr.evaluate(labels, nothing, queries.offsets, [measure], rules)[measure.key]
            if np.isnan(values).all():
                raise DataError(f"{role}: {why_undefined(measure, queries.source(measure.source), rules)}")
    for name in (name for name, section in config.rankers.items() if section.kind == "column" and not section.on):  # type: ignore[attr-defined]
        for feature in (section.feature for _, section in config.cells(name)):  # type: ignore[attr-defined]
            if feature not in train.names:
                raise DataError(f"rankers.{name}: no feature {feature!r} in the data; there are: {', '.join(train.names[:8])} …")
    complete = [section.kind for section in sections if section.kind in COMPLETE]  # type: ignore[attr-defined]
    missing = np.isnan(train.features).any(axis=0)
    if complete and missing.any():
        raise DataError(f"{complete[0]} needs complete features; {train.names[int(np.argmax(missing))]!r} has missing values")


def sweep(
    config: RunConfig, folds: list[dict[str, str]], tracker: Tracker, fresh: bool, progress: Steps
) -> list[tuple[Cell, dict[str, Any]]]:
    """Trains all cells and notes each in MLflow; results in the order of the grid. Rankers with expected numbers come first, and
    nothing else is trained where those do not come out; rankers on the scores of others come last."""
    alone = [name for name, ranker in config.rankers.items() if not ranker.on]  # type: ignore[attr-defined]
    cells = cells_of(config, alone, folds)
    progress.begin("training", len(cells))
    results: dict[int, dict[str, Any]] = {}
    select = ltr.Measure.of(config.select).key

    def finished(cell: Cell, result: dict[str, Any]) -> None:
        results[id(cell)] = result
        data = [_about(role, role, cell[role]) for role in ("train", "valid", "test")]
        params = {"ranker": cell["ranker"], "fold": cell["fold"] + 1, **cell["section"]}
        tags = {
            "ranker": cell["ranker"],
            "digest": result["digest"],
            "remarks": "; ".join(result["remarks"])[:5000],
            **_prefect_tags(),
        }
        tracker.cell(result, cell["label"], params, tags, folder_of(result["key"]), data)
        value = result["metrics"].get(f"valid_{select}")
        seconds = f"{result['seconds']:.1f} s"
        shown = "undefined" if value is None else f"{value:.4f}"
        progress.done(f"{cell['label']}: validation {label_of(select)} {shown} ({'; '.join((seconds, *result['remarks']))})")

    expected = config.expect.values if config.expect else {}
    first = [cell for cell in cells if cell["ranker"] in expected]
    if first:
        train_all(config, first, fresh, finished)
        meet_expectations(config, compare(config, list(choose([(cell, results[id(cell)]) for cell in first], select))))
    train_all(config, [cell for cell in cells if cell["ranker"] not in expected], fresh, finished)
    chosen = {(name, fold): result["key"] for name, fold, _, result in choose([(c, results[id(c)]) for c in cells], select)}
    stacked = []
    for name in (name for name in config.rankers if name not in alone):
        bases = config.rankers[name].on  # type: ignore[attr-defined]
        scored = [stack(fold, {base: chosen[base, k] for base in bases}, config.seed) for k, fold in enumerate(folds)]
        stacked += cells_of(config, [name], scored)
    if stacked:
        progress.begin("training on scores", len(stacked))
        train_all(config.model_copy(update={"parts": 1}), stacked, fresh, finished)
    return [(cell, results[id(cell)]) for cell in (*cells, *stacked)]


def guaranteed(
    config: RunConfig, results: list[tuple[Cell, dict[str, Any]]], chosen: list[Any]
) -> tuple[list[Any], list[dict[str, Any]]]:
    """The chosen cells with those of the guarantee's rankers chosen by its rule, and what came of each promise."""
    rule = config.guarantee
    if rule is None:
        return chosen, []
    baseline = {fold: str(folder_of(result["key"]) / "values.parquet") for name, fold, _, result in chosen if name == rule.baseline}
    entries = []
    for name in config.guaranteed:
        own = [(cell, result) for cell, result in results if cell["ranker"] == name]
        files = {cell["label"]: str(folder_of(result["key"]) / "values.parquet") for cell, result in own}
        promises = []
        for fold, path in baseline.items():
            promises.append(promise({c["label"]: files[c["label"]] for c, _ in own if c["fold"] == fold}, path, rule))
        labels = [p["chosen"] for p in promises]
        chosen = [entry for entry in chosen if entry[0] != name]
        taken = [(cell, result) for cell, result in own if cell["label"] in labels]
        chosen += [(name, cell["fold"], cell, result) for cell, result in taken]
        points: dict[str, list[str]] = {}
        for cell, _ in own:
            points.setdefault(point_label(cell["point"]), []).append(files[cell["label"]])
        entries.append({
            "ranker": name, "baseline": rule.baseline, "margin": rule.margin, "level": rule.level, "promises": promises,
            **kept([files[label] for label in labels], list(baseline.values()), rule),
            "frontier": frontier(points, {point_label(cell["point"]) for cell, _ in taken}, list(baseline.values()), rule),
        })  # fmt: skip
    order = {name: k for k, name in enumerate(config.rankers)}
    return sorted(chosen, key=lambda entry: (order[entry[0]], entry[1])), entries


def optimality(config: RunConfig, chosen: list[Any], progress: Steps) -> list[dict[str, Any]]:
    """Certificates of each model asked for, of its first fold."""
    if config.optimality is None:
        return []
    nets = [name for name, ranker in config.rankers.items() if ranker.kind in CERTIFIED]  # type: ignore[attr-defined]
    wanted = config.optimality.rankers or nets
    progress.begin("optimality", len(wanted))
    certificates = []
    for ranker, fold, cell, result in chosen:
        if ranker in wanted and fold == 0:
            found = certify(result["key"], cell["train"], config.optimality, cell["conventions"], config.seed, ranker)
            certificates += [{**entry, "key": result["key"]} for entry in found]
            progress.done("; ".join(f"{entry['ranker']}: {entry['verdict']}" for entry in found))
    return certificates


def magnified(config: RunConfig, chosen: list[Any], progress: Steps) -> list[dict[str, Any]]:
    """What the microscope sees of each model asked for, of its first fold."""
    if config.microscope is None:
        return []
    progress.begin("microscope", len(config.magnified))
    select, looks = ltr.Measure.of(config.select), []
    for ranker, fold, cell, result in chosen:
        if ranker in config.magnified and fold == 0:
            seen = magnify(result["key"], cell["train"], cell["test"], config.microscope, str(select), cell["conventions"], ranker)
            looks.append(seen)
            progress.done(f"{ranker}: {len(seen['iteration'])} looks; {len(seen['lost'])} lost causes in {seen['folder']}/{LOST}")
    return looks


def compare(config: RunConfig, chosen: list[Any]) -> dict[str, Any]:
    """Standings of the chosen cells' rankers on the test queries."""
    return standings(_values_of(chosen), list(dict.fromkeys(ltr.Measure.of(m).key for m in config.measures)))


def segments_of(config: RunConfig, folds: list[dict[str, str]], chosen: list[Any]) -> dict[str, Any] | None:
    """Rankers against the segments' baseline by query attributes, and the queries they change most."""
    rule = config.segments
    if rule is None:
        return None
    paths = _values_of(chosen)
    values = {name: paths[name] for name in (rule.baseline, *config.contrasted)}
    measure = ltr.Measure.of(rule.measure or config.select).key
    return segmented(values, [fold["test"] for fold in folds], rule, measure, config.segmented, config.data.clicks)


def _values_of(chosen: list[Any]) -> dict[str, list[str]]:
    """For each ranker the per-query values of its chosen cells, fold by fold."""
    paths: dict[str, list[str]] = {}
    for ranker, _, _, result in chosen:
        paths.setdefault(ranker, []).append(str(folder_of(result["key"]) / "values.parquet"))
    return paths


def challenged(
    config: RunConfig, tracker: Tracker, chosen: list[Any], outcome: dict[str, Any], progress: Steps
) -> dict[str, Any] | None:
    """The best ranker on the data's own features, held against the champion."""
    if config.champion is None:
        return None
    progress.begin("champion")
    select = f"valid_{outcome['select']}"
    own = [(cell, result) for name, _, cell, result in chosen if not config.rankers[name].on]  # type: ignore[attr-defined]
    cell, result = max(own, key=lambda entry: entry[1]["metrics"][select])
    tracker.text(json.dumps(profile(store.open_queries(cell["train"]))), PROFILE)
    values = str(folder_of(result["key"]) / "values.parquet")
    data = {role: cell[role] for role in ("train", "test")}
    found = challenge(config.champion, tracker.run_of(result["key"]), result["digest"], values, data, config.core_conventions)
    tracker.text(json.dumps(found, indent=1), EVIDENCE)
    progress.done(champion_text(found, cell["ranker"]))
    for text in moved(found):
        progress.say(f"since the champion was trained, {text}", "yellow")
    return {**found, "ranker": cell["ranker"]}


def meet_expectations(config: RunConfig, table: dict[str, Any]) -> None:
    """Raises where a mean is not what the configuration expects."""
    if config.expect is None:
        return
    wrong = []
    for ranker, values in config.expect.values.items():
        for metric, value in values.items():
            cell = table["rows"][ranker]["cells"].get(metric.removeprefix("test_"))
            if cell is None or cell["mean"] is None or not abs(cell["mean"] - value) <= config.expect.tolerance + 1e-12:
                came = (
                    "was not measured" if cell is None else f"is {cell['mean']:.5f}" if cell["mean"] is not None else "is undefined"
                )
                wrong.append(f"{ranker}: {metric} {came}, expected {value:g} ± {config.expect.tolerance:g}")
    if wrong:
        raise ExpectationError("\n".join(wrong))


def _outcome(
    config: RunConfig, tracker: Tracker, folds: list[Any], findings: list[Any], results: list[Any], chosen: list[Any],
    certificates: list[Any], table: dict[str, Any],
    promises: list[dict[str, Any]], looks: list[dict[str, Any]], traces: list[dict[str, Any]], segments: dict[str, Any] | None,
) -> dict[str, Any]:  # fmt: skip
    """Everything the report, MLflow and the terminal show of a run."""
    select = ltr.Measure.of(config.select).key
    keys = {(ranker, fold, result["key"]) for ranker, fold, _, result in chosen}
    models: dict[str, dict[str, Any]] = {}
    for name in config.rankers:
        own = [result for ranker, _, _, result in chosen if ranker == name]
        digest = own[0]["digest"] if len(own) == 1 else store.digest_of([result["digest"] for result in own])
        names = sorted({metric for result in own for metric in result["metrics"]})
        metrics = {metric: float(np.mean([r["metrics"][metric] for r in own if metric in r["metrics"]])) for metric in names}
        models[name] = {"digest": digest, "metrics": metrics}
    best = max(models, key=lambda name: models[name]["metrics"][f"valid_{select}"])
    sizes = [store.about_queries(folds[0][role]) for role in ("train", "valid", "test")]
    return {
        "name": config.name,
        "run_id": tracker.run_id,
        "models": models,
        "best": best,
        "standings": table,
        "certificates": certificates,
        "promises": promises,
        "looks": looks,
        "traces": traces,
        "segments": segments,
        "facts": [
            f"{len(folds)} fold{'s' if len(folds) > 1 else ''}",
            " / ".join(f"{about['queries']:,}" for about in sizes) + " training / validation / test queries",
            f"{len(results)} cells",
            f"run {tracker.run_id[:8]}",
        ],
        "summary": f"Best on validation {label_of(select)}: {best}.",
        "n_folds": len(folds),
        "conventions": config.conventions.model_dump(mode="json"),  # type: ignore[attr-defined]
        "curves": {
            name: [str(folder_of(r["key"]) / "curve.json") for ranker, _, _, r in chosen if ranker == name]
            for name in config.rankers
        },
        "cells": [
            {
                "label": cell["label"],
                "ranker": cell["ranker"],
                "point": cell["point"],
                "fold": cell["fold"],
                "chosen": (cell["ranker"], cell["fold"], r["key"]) in keys,
                **r,
            }
            for cell, r in results
        ],
        "chosen": {name: [r["key"] for ranker, _, _, r in chosen if ranker == name] for name in config.rankers},
        "select": select,
        "plot_by": config.plot_by,
        "findings": findings,
        "objectives": _objectives(config),
        "config": yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False),
    }


def _objectives(config: RunConfig) -> dict[str, Any]:
    """Of each ranker that learns by terms, at every weight of its grid: the weights along its iterations, and its pair costs."""
    found: dict[str, Any] = {}
    for name in config.rankers:
        for point, section in config.cells(name):
            label = f"{name}, {point_label({p: v for p, v in point.items() if 'weight' in p})}".rstrip(", ")
            if label in found:
                continue
            terms = section.build().objective if hasattr(section, "objective") else ()
            length = getattr(section, "n_trees", getattr(section, "epochs", 0))
            if any(isinstance(term.weight, ltr.Schedule) for term in terms):
                weights = [weights_at(terms, m).tolist() for m in range(length)]
            else:
                weights = []
            found[label] = {
                "terms": [f"{ltr.Measure.of(t.measure).key}, {t.cost}" for t in terms],
                "costs": [t.cost for t in terms],
                "weights": weights,
            }
    return found


def publish(config: RunConfig, tracker: Tracker, outcome: dict[str, Any]) -> None:
    """The report, the parent run's numbers and the Prefect artifact that links them."""
    path = write_report(outcome, store.STATE / "reports" / f"{config.name}-{tracker.run_id[:8]}" / "report.html")
    outcome["report"] = str(path)
    metrics = dict(outcome["models"][outcome["best"]]["metrics"])
    for name, row in outcome["standings"]["rows"].items():
        metrics |= {f"{name}/test_{m}": cell["mean"] for m, cell in row["cells"].items() if cell["mean"] is not None}
    tags = {
        "best": outcome["best"],
        "digest": outcome["models"][outcome["best"]]["digest"],
        "chosen": json.dumps(outcome["chosen"]),
    }
    tags |= {f"optimality.{c['ranker']}": c["verdict"] for c in outcome["certificates"] if c["ranker"] in config.rankers}
    if found := outcome["champion"]:
        tags |= {"champion": f"{found['name']} {found['version']}: {found['verdict']}"}
    tags |= {
        f"guarantee.{p['ranker']}": p["held"] if any(q["promised"] for q in p["promises"]) else "not promised"
        for p in outcome["promises"]
    }
    tables = write_tables(outcome["segments"], path.parent) if outcome["segments"] else []
    if not tracker.was_finished:
        tracker.summary(metrics, tags, [path, *write_plots(outcome, path.parent / "plots"), *tables])
        for seen in outcome["looks"]:
            tracker.text((Path(seen["folder"]) / LOST).read_text(), f"lost-causes-{seen['ranker']}.csv")
        tracker.text(outcome["config"], "config.yaml")
    link = f"{MLFLOW_UI}/#/experiments/{tracker.experiment_id}/runs/{tracker.run_id}"
    create_markdown_artifact(
        key="report",
        description=f"Report of {config.name}",
        markdown=f"# {config.name}\n\n{outcome['summary']}\n\n{_markdown(outcome['standings'])}\n\n[Run in MLflow]({link}) · [report]({link}/artifacts/report.html), also in `{path}`\n",
    )


def _markdown(table: dict[str, Any]) -> str:
    head = "| ranker | " + " | ".join(label_of(m) for m in table["measures"]) + " |\n|---|" + "---|" * len(table["measures"])
    rows = [
        f"| {name} | "
        + " | ".join("–" if (c := row["cells"][m])["mean"] is None else f"{c['mean']:.4f}" for m in table["measures"])
        + " |"
        for name, row in table["rows"].items()
    ]
    return "\n".join([head, *rows])


def _about(name: str, role: str, stored: str) -> dict[str, str]:
    about = store.about_queries(stored)
    profile = f'{{"queries": {about["queries"]}, "documents": {about["documents"]}, "features": {len(about["names"])}}}'
    return {"name": name, "role": role, "digest": about["content"], "source": f'{{"store": "{stored}"}}', "profile": profile}


def _description(config: RunConfig, run_key: str, folds: list[dict[str, str]]) -> tuple[dict[str, Any], dict[str, str]]:
    params = {
        "name": config.name,
        "rankers": ", ".join(config.rankers),
        "select": config.select,
        "seed": config.seed,
        "scale": config.scale,
        "folds": len(folds),
        **{f"conventions.{k}": v for k, v in config.conventions.model_dump(mode="json").items()},  # type: ignore[attr-defined]
    }
    tags = {"config_digest": config.digest, "core_digest": store.core_digest(), **_prefect_tags()}
    if commit := _commit():
        tags["mlflow.source.git.commit"] = commit
    return params, tags


def _prefect_tags() -> dict[str, str]:
    return (
        {"prefect.flow_run_id": str(flow_run.id), "prefect.flow_run_url": f"{PREFECT_UI}/runs/flow-run/{flow_run.id}"}
        if flow_run.id
        else {}
    )


def _commit() -> str | None:
    """Commit of the checkout this code runs from, where it is one."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=10, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() or None
