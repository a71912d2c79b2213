"""From a configuration to folds that can be trained on: everything is read, labelled, looked at and cut; and what cannot be trained on is
refused before anything is trained."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations
from pathlib import Path

import numpy as np

import ltr
from ltr.data.queries import Queries
from ltr.linear.linear_ranker import IMPUTE
from ltr.metrics.measure import why_undefined
from ltr.trees.tree_ranker import TreeRanker
from tasks.config.data_section import Data
from tasks.config.run_config import RunConfig
from tasks.data.calibrated import calibrated
from tasks.data.check import check, refuse, seldom_twice, shared_queries
from tasks.data.check_log import check_log
from tasks.data.clicked import clicked
from tasks.data.folds import fit_together, rotate, share, split, validation_cut
from tasks.data.generate import generate
from tasks.data.ingest import ingest, require_documents, with_categories
from tasks.data.pool import pool
from tasks.data.prepare import pooled_apart, prepare
from tasks.data.tables import is_table
from tasks.records import DataError, Finding, Fold, number_of
from tasks.store.datasets import about_queries, open_queries


@dataclass(frozen=True)
class Ready:
    """Folds to train on, what the doctor found, and the section of the data with all their categories."""

    folds: tuple[Fold, ...]
    findings: tuple[Finding, ...]
    data: Data


def ready_data(config: RunConfig) -> Ready:
    """Reads, prepares, checks and cuts the data of a configuration.

    Raises:
        DataError: for whatever is wrong in the files, or between them.
    """
    data, findings = _sources(config)
    groups = _groups(data)
    files = [path for paths in groups.values() for path in paths]
    require_documents(data, files)
    data = with_categories(data, files)
    read = {label: ingest(paths, data, label) for label, paths in groups.items()}
    prepared = {label: prepare(one.data, data, label) for label, one in read.items()}
    sets, said = calibrated({label: one.data for label, one in prepared.items()}, data, config.core_conventions)
    findings += [Finding("note", "calibrate", note) for note in said]
    for label, name in sets.items():
        findings += check(name, read[label].split_queries, label, config.core_conventions)
        findings += [Finding("warning", label, note) for note in read[label].notes]
        findings += [Finding("note", label, note) for note in prepared[label].notes]
    findings += seldom_twice(list(sets.values()), data.of_categories)
    if data.clicks:
        findings += check_log(data.clicks, list(sets.values()))
    opened = {label: open_queries(name) for label, name in sets.items()} if len(sets) > 1 else {}
    for (earlier, one), (later, other) in combinations(opened.items(), 2):
        findings += shared_queries(one, other, later, earlier)
    refuse(findings)
    sparse = not any(is_table(path) for path in chain(*groups.values()))
    folds = _folds(data, list(sets.values()), config.seed, sparse)
    if data.clicks and data.clicks.pooled:
        apart = [pooled_apart(fold, data.clicks) for fold in folds]
        folds = [fold for fold, _ in apart]
        findings += [Finding("note", "clicks", note) for note in dict.fromkeys(note for _, notes in apart for note in notes)]
    if data.train and not data.valid:
        sizes = [about_queries(name).queries for name in (folds[0].valid, folds[0].train)]
        findings.append(
            Finding("note", "valid", f"no files; {sizes[0]:,} of the {sum(sizes):,} training queries are used for validation")
        )
    scale = 1.0 if config.data.generate else config.scale
    fitted = [fit_together(fold, scale, config.seed, sparse, data.drop_telling) for fold in folds]
    dropped = dict.fromkeys(note for _, notes in fitted for note in notes)
    findings += [Finding("warning", "train", note) for note in dropped]
    ready = tuple(fold for fold, _ in fitted)
    if pages := data.clicked_pages:
        clicks = [clicked(fold, k, pages, config.core_conventions) for k, fold in enumerate(ready)]
        ready = tuple(fold for fold, _ in clicks)
        findings += [Finding("note", "train", note) for _, note in clicks]
    return Ready(ready, tuple(findings), config.data.model_copy(update={"categories": data.categories}))


def _sources(config: RunConfig) -> tuple[Data, list[Finding]]:
    """The data as files, generated or pooled where they are not, and what there is to say of that."""
    data = config.data
    if data.generate:
        made = generate(data.generate, config.scale)
        data = data.model_copy(update={"generate": None, **{key: getattr(made, key) for key in made.model_fields_set}})
    if not data.qrels:
        return data, []
    alone, notes = pool(data)
    return alone, [Finding("note", "runs", note) for note in notes]


def _groups(data: Data) -> dict[str, list[Path]]:
    """The files by the data set that they make."""
    if data.train:
        return {role: files for role in ("train", "valid", "test") if (files := getattr(data, role))}
    return {f"part {k + 1}": [part] for k, part in enumerate(data.parts)} if data.parts else {"data": data.files}


def _folds(data: Data, names: list[str], seed: int, sparse: bool) -> list[Fold]:
    if data.train:
        return [Fold(*names) if data.valid else validation_cut(names[0], names[1], data, seed)]
    return rotate(names, sparse) if data.parts else split(names[0], data, seed)


def require_weighing(config: RunConfig) -> None:
    """Checks that rankers weigh what the data give weights to, which is known before data are read.

    Raises:
        DataError: naming the first that does not.
    """
    weighed = {
        "data.weight": ("queries", "query_weights", config.data.weight is not None),
        "data.calibrate.weights": (
            "documents",
            "document_weights",
            config.data.calibrate is not None and config.data.calibrate.weights,
        ),
    }
    for key, (what, trait, asked) in weighed.items():
        deaf = [
            (name if one is section else f"{name}.of", one.kind)
            for name, section in config.rankers.items()
            for one in (section, *(getattr(section, "of", None) or ()))
            if asked and not getattr(one.core, trait)
        ]
        if deaf:
            where, kind = deaf[0]
            able = [kind for kind, core in ltr.KINDS.items() if getattr(core, trait)]
            raise DataError(f"{key}: rankers.{where} ({kind}) does not support weights of {what}; choose from: {', '.join(able)}")


def require_sources(config: RunConfig, folds: tuple[Fold, ...]) -> None:
    """Checks that what rankers and measures read is there: label sources, labels within ERR's scale, columns, complete features.

    Raises:
        DataError: before anything is trained.
    """
    if config.parts > (fewest := min(about_queries(fold.train).queries for fold in folds)):
        raise DataError(f"parts: {config.parts} of {number_of(fewest, 'training query')}")
    for name, section in config.rankers.items():
        if section.on and (fewest := min(about_queries(fold.valid).queries for fold in folds)) < 2:
            raise DataError(
                f"{name}: learns from one half of the validation queries and is chosen on the other, and there is {number_of(fewest, 'validation query')}: give "
                "more queries, or leave out rankers on the scores of others ('on')"
            )
    _require_measures(config, folds)
    _require_features(config, folds)


def _require_measures(config: RunConfig, folds: tuple[Fold, ...]) -> None:
    rankers: list[ltr.Ranker] = [section.build() for section in config.rankers.values()]
    trained = [measure for ranker in rankers for measure in ranker.trained_for]
    trained += [
        ltr.Measure.of(section.polish.measure) for section in config.rankers.values() if section.polish and section.polish.measure
    ]
    watched = [ranker.watched for ranker in rankers if ranker.watched is not None]
    named = [*config.selecting, *(measure for evidence in config.evidence for measure in evidence.decisive())]
    decisive: set[ltr.Measure] = {*map(ltr.Measure.of, named), *watched}
    read: set[ltr.Measure] = {*map(ltr.Measure.of, config.all_measures), *trained, *decisive}
    sources = {"label", *open_queries(folds[0].train).sources}
    for measure in sorted(read, key=str):
        if measure.source not in sources:
            raise DataError(
                f"{measure.key} reads the label source {measure.source!r}, but the data have: {', '.join(sorted(sources))} (data.clicks makes click labels)"
            )
    rules = replace(config.core_conventions, ties="expected", empty="skip")
    first_as: dict[str, str] = {}
    for role, name in chain.from_iterable(fold.roles.items() for fold in folds):
        first_as.setdefault(name, role)
    for name, role in first_as.items():
        queries = open_queries(name)  # one at a time: of each array a file stays open, of which a process may have so many
        for measure in sorted(read, key=str):
            _require_gain(measure, queries, config.core_conventions)
        for why in _undefined(queries, sorted(decisive, key=str), rules):
            raise DataError(f"{role}: {why}")


def _require_gain(measure: ltr.Measure, queries: Queries, rules: ltr.Conventions) -> None:
    """Raises DataError for a largest label that a measure has no gain for, naming its query."""
    labels = np.nan_to_num(queries.source(measure.source))
    row = int(labels.argmax())
    try:
        measure.definition.gain(labels[[row]], rules)
    except ValueError as error:
        at = int(np.searchsorted(queries.offsets, row, side="right")) - 1
        query = "" if queries.ids is None else f"query {queries.ids[at].decode('utf-8', 'replace')!r}: "
        raise DataError(f"{query}{error}") from None


def _undefined(queries: Queries, measures: list[ltr.Measure], rules: ltr.Conventions) -> Iterator[str]:
    """Why measures are undefined on every query."""
    labels, nothing = {"label": queries.labels, **queries.sources}, np.zeros(queries.n_documents)
    for measure in measures:
        values = ltr.evaluate(labels, nothing, queries.offsets, [measure], rules)[measure.key]
        if np.isnan(values).all():
            yield why_undefined(measure, queries.source(measure.source), rules)


def _require_features(config: RunConfig, folds: tuple[Fold, ...]) -> None:
    names = about_queries(folds[0].train).names
    for name in config.alone:
        for point in config.cells(name):
            absent = [feature for feature in point.section.build().features_read if feature not in names]
            if absent:
                few = ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
                raise DataError(f"rankers.{name}: no feature {absent[0]!r} in the data; choose from: {few}")
    _require_reading_categories(config)
    complete = [name for name in config.alone if any(point.section.build().needs_complete for point in config.cells(name))]
    for role, dataset in sorted({(role, name) for fold in folds for role, name in fold.roles.items()} if complete else ()):
        queries = open_queries(dataset)
        missing = np.isnan(queries.features)
        if missing.any():
            which = int(missing.any(axis=0).argmax())
            section = config.rankers[complete[0]]
            imputing = [one for one in (section, *getattr(section, "of", ())) if "impute" in type(one).model_fields]
            way_out = f" ({IMPUTE})" if imputing else ""
            raise DataError(
                f"rankers.{complete[0]} needs complete features; {queries.names[which]!r} is missing for "
                f"{int(missing[:, which].sum()):,} {role} documents{way_out}"
            )
    _require_scores(config, folds)

    rankers = [
        (name, point.section.train_share, point.section.model(config.core_conventions))
        for name in config.alone
        for point in config.cells(name)
    ]
    for fold in folds:
        parts = {part: open_queries(share(fold.train, part, config.seed)) for part in dict.fromkeys(part for _, part, _ in rankers)}
        for name, part, ranker in rankers:
            try:
                ranker.check(parts[part])
            except ValueError as error:
                raise DataError(f"rankers.{name}: {error}") from None


def _require_reading_categories(config: RunConfig) -> None:
    """Rankers of numbers would take the places of categories for amounts."""
    for name in config.alone if config.data.of_categories else ():
        section = config.rankers[name]
        for one in getattr(section, "of", None) or (section,):
            if "categorical" not in type(one).model_fields and one.kind != ltr.Column.kind:
                raise DataError(
                    f"rankers.{name}: {one.kind} reads numbers, and {config.data.of_categories[0]!r} holds categories (data.categorical); "
                    "lambdamart splits by them; leave the ranker or the column (data.ignore) out"
                )


def _require_scores(config: RunConfig, folds: tuple[Fold, ...]) -> None:
    """Columns below a ranker that takes scores for amounts have one for every document; for trees, which split them, and in a mixture of two
    last is last."""
    for name, section in config.rankers.items():
        amounts = section.core.n_inputs is None and not issubclass(section.core, TreeRanker | ltr.Column)
        bases = [(base, config.rankers[base].build()) for base in section.on if amounts]
        columns = [(base, ranker) for base, ranker in bases if isinstance(ranker, ltr.Column)]
        for role, dataset in sorted({(role, one) for fold in folds for role, one in fold.roles.items()} if columns else ()):
            queries = open_queries(dataset)
            for base, column in columns:
                if missing := column.n_missing(queries):
                    raise DataError(
                        f"rankers.{name}.on: {column.feature!r} is missing for {missing:,} {role} documents, and {base} ranks these last "
                        f"without a score, so there is nothing for {section.kind} to learn from; data.run_forms: [min-max] gives such documents of a run 0"
                    )
