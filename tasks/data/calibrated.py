"""A machine's labels turned into what people would say, from those documents that people judged too (`ltr.metrics.calibration`)."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

import ltr
from ltr.data.queries import Queries
from ltr.metrics.calibration import Confusion, calibrate, expected_labels
from ltr.metrics.gains import graded
from tasks.config.calibrate import Calibrate
from tasks.config.data_section import Data
from tasks.data.files import located
from tasks.data.judgments import read_judgments
from tasks.data.trec import PAIR
from tasks.records import DataError, number_of
from tasks.store.datasets import keep_queries, open_queries
from tasks.store.seal import digest_of_file, unchanged
from tasks.store.state import Noted, remember, remembered

_SHOWN = 10
"""Labels of a machine whose worth is told."""
_FEW = 5
"""Judged documents below which what a label is worth is mostly chance."""


def calibrated(sets: Mapping[str, str], data: Data, conventions: ltr.Conventions) -> tuple[dict[str, str], tuple[str, ...]]:
    """The data sets with expected labels in place of a machine's where `data.calibrate` asks for them, and what there is to say of that; as
    they are otherwise. One confusion is learned from all sets together.

    Args:
        sets: names in the store, by what they are called.

    Raises:
        DataError: where nothing was judged by both, or the labels are no scale.
    """
    asked = data.calibrate
    if asked is None or not sets:
        return dict(sets), ()
    digests = {path: digest_of_file(path) for path in map(located, asked.judgments)}
    recipe = {
        "calibrate": 7,
        "data": list(sets.values()),
        "asked": {**asked.model_dump(mode="json"), "judgments": [digests[located(path)] for path in asked.judgments]},
        "gain": conventions.gain,
    }
    if noted := remembered(recipe):
        return dict(zip(sets, noted.data, strict=True)), noted.notes
    with unchanged(digests):
        of_people = read_judgments(asked.judgments)[0] if asked.judgments else None
    named = [_with_people(open_queries(name), asked, of_people, label) for label, name in sets.items()]
    try:
        confusion = _learned(named, asked, conventions)
    except ValueError as error:
        raise DataError(f"data.calibrate: {error}") from None
    made = tuple(keep_queries(_expected(queries, asked, confusion, conventions)) for queries in named)
    notes = tuple(_told(confusion, named, asked, conventions))
    remember(recipe, Noted(made, notes=notes))
    return dict(zip(sets, made, strict=True)), notes


def _learned(sets: list[Queries], asked: Calibrate, conventions: ltr.Conventions) -> Confusion:
    """The confusion between people and machine over the documents of all sets that the machine labelled."""
    known = [~np.isnan(queries.labels) for queries in sets]
    first = np.cumsum([0, *(queries.n_queries for queries in sets)])
    people = [queries.sources[asked.people][has] for queries, has in zip(sets, known, strict=True)]
    machine = [queries.labels[has] for queries, has in zip(sets, known, strict=True)]
    query = [start + queries.of_query[has] for start, queries, has in zip(first, sets, known, strict=False)]
    attributes = {
        name: np.concatenate([_attribute(queries, name)[has] for queries, has in zip(sets, known, strict=True)])
        for name in asked.by
    }
    return calibrate(
        np.concatenate(people),
        np.concatenate(machine),
        attributes,
        np.concatenate(query),
        gain=lambda labels: graded(labels, conventions),
    )


def _attribute(queries: Queries, name: str) -> NDArray[np.str_]:
    """An attribute of each document's query, or the query itself, ``str [documents]``."""
    if name != "query":
        return queries.attributes[name][queries.of_query]
    known = queries.keys.astype(np.str_) if queries.ids is None else np.char.decode(queries.ids, "utf-8", "backslashreplace")
    return known[queries.of_query]


def _with_people(queries: Queries, asked: Calibrate, of_people: pl.DataFrame | None, label: str) -> Queries:
    """The data set with people's labels as a source."""
    if of_people is None:
        return queries
    if queries.documents is None or queries.ids is None:
        raise DataError(f"{label}: data.calibrate.judgments are joined by query and document id, and the documents have no id")
    known = pl.DataFrame({
        "query": np.char.decode(queries.ids, "utf-8", "backslashreplace")[queries.of_query],
        "document": np.char.decode(queries.documents, "utf-8", "backslashreplace"),
    })  # fmt: skip
    joined = known.join(of_people, on=PAIR, how="left", maintain_order="left")["label"].clip(lower_bound=0)
    return replace(queries, sources={**queries.sources, asked.people: joined.fill_null(float("nan")).to_numpy().copy()})


def _expected(queries: Queries, asked: Calibrate, confusion: Confusion, conventions: ltr.Conventions) -> Queries:
    """The data set with the labels that are worth the expected gain, what people said where they judged."""
    people, has = queries.sources[asked.people], ~np.isnan(queries.labels)
    shares = confusion.of(queries.labels[has], {name: _attribute(queries, name)[has] for name in asked.by})
    labels, weights = np.full(queries.n_documents, np.nan), np.ones(queries.n_documents)
    labels[has], weights[has] = expected_labels(confusion, shares, conventions)
    judged = ~np.isnan(people)
    labels[judged] = people[judged]
    made = replace(queries, labels=labels, sources={**queries.sources, "machine": queries.labels})
    if not asked.weights:
        return made
    weights[judged] = 1.0
    return replace(made, document_weights=weights)


def _told(confusion: Confusion, sets: list[Queries], asked: Calibrate, conventions: ltr.Conventions) -> list[str]:
    """Sentences about how far the two agree, what the machine's labels are worth, and by which groups."""
    people, machine = (
        np.concatenate([getter(queries) for queries in sets]) for getter in (lambda q: q.sources[asked.people], lambda q: q.labels)
    )
    both = ~np.isnan(people) & ~np.isnan(machine)
    alike = float((people == machine)[both].mean())
    worth = expected_labels(confusion, confusion.shares[0], conventions)[0]
    shown = ", ".join(f"{m:g} → {w:.2f}" for m, w in zip(confusion.machine[:_SHOWN], worth, strict=False))
    told = [
        f"people judged {number_of(confusion.judged, 'document')} of the {number_of(int((~np.isnan(machine)).sum()), 'document')} that the machine labelled, "
        f"{100 * alike:.0f} % with the same label; human label with the expected gain, for each machine label: {shown}{' …' if len(worth) > _SHOWN else ''}"
    ]
    if unseen := [m for m in confusion.machine if m not in machine[both]]:
        told.append(
            f"people judged no document that the machine labels {', '.join(f'{m:g}' for m in unseen[:_SHOWN])}, "
            f"{number_of(int(np.isin(machine, unseen).sum()), 'document')}: these get the label worth the average gain of all documents that people judged; have people judge some"
        )
    counts = {m: int((machine[both] == m).sum()) for m in confusion.machine}
    if few := [f"{m:g} ({n})" for m, n in counts.items() if 0 < n < _FEW]:
        told.append(
            f"people judged fewer than {_FEW} of the documents that the machine labels {', '.join(few[:_SHOWN])}{' …' if len(few) > _SHOWN else ''}: what "
            f"{'that label is' if len(few) == 1 else 'those labels are'} worth is very uncertain; have people judge more"
        )
    for name, likelihood in confusion.likelihood.items():
        if name:
            gained = likelihood - confusion.likelihood[""]
            done = "calibrated" if name == confusion.by else "not calibrated"
            told.append(
                f"{done} by {name}: log-likelihood of held-out labels {gained:+.4f} nats each against one calibration for all queries"
            )
    return told
