"""Features as search engines log them: what Elasticsearch's and OpenSearch's learning-to-rank plugins put beside each hit (``_ltrlog``),
and Solr's ``[features]``, as a table by query and document.

A log is what the engine answered, several answers as lines of JSON, or one a file. The answer of Elasticsearch and OpenSearch does not say
what was asked, so a line wraps it, ``{"query": "rambo", "response": …}``, or names the query beside its hits; of a file with one answer that
says nothing, the file's name without its suffix is the query. Solr's answer echoes the query (``responseHeader.params.q``).
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from tasks.data.files import located
from tasks.data.json_lines import Json, object_at, objects, text_of
from tasks.data.plain_number import plain_number
from tasks.data.trec import PAIR
from tasks.records import DataError

Row = tuple[str, str, dict[str, float | None]]
"""Query, document and its features by name, None where one is missing."""


def read_feature_logs(paths: Sequence[Path]) -> pl.DataFrame:
    """Columns ``query``, ``document`` and a number for each feature that any document has, null where one has none.

    Raises:
        DataError: naming file, line, document and rule, for an answer of another form, a value that is no number, a feature that is logged
            twice for a document, and a document that a query has twice.
    """
    rows, lines = [], []
    for path in paths:
        for number, answer in objects(located(path)):
            where = f"{path}, line {number}"
            found = list(_of_answer(where, answer, located(path).stem))
            rows += found
            lines += [where] * len(found)
    if not rows:
        raise DataError(f"{', '.join(map(str, paths))}: no document in it")
    names = sorted({name for _, _, features in rows for name in features})
    if not names:
        raise DataError(f"{', '.join(map(str, paths))}: no document has a feature")
    columns: dict[str, Any] = {"query": [query for query, *_ in rows], "document": [document for _, document, _ in rows]}
    for name in names:
        if name in columns:
            raise DataError(f"{lines[0]}: a feature is named {name!r}; rename it in the engine's feature set")
        columns[name] = pl.Series([features.get(name) for *_, features in rows], dtype=pl.Float64)
    table = pl.DataFrame(columns)
    twice = table.select(~pl.struct(PAIR).is_first_distinct()).to_series().arg_true()
    if len(twice):
        query, document, _ = rows[twice[0]]
        raise DataError(
            f"{lines[twice[0]]}: query {query[:40]!r}, document {document[:40]!r}: it was logged before; each pair must have one line of features"
        )
    return table


def _of_answer(where: str, line: Json, stem: str) -> Iterator[Row]:
    """The documents of one answer, or of all in an answer to ``_msearch``."""
    asked = next((text for key in ("query", "user_query", "keywords") if (text := text_of(line.get(key)))), "")
    answer = object_at(line, "response") if "response" in line and "docs" not in object_at(line, "response") else line
    if isinstance(hits := object_at(answer, "hits").get("hits"), list):
        for hit in hits:
            yield asked or stem, *_of_hit(where, hit)
    elif isinstance(documents := object_at(answer, "response").get("docs"), list):
        echoed = text_of(object_at(object_at(answer, "responseHeader"), "params").get("q"))
        for document in documents:
            yield asked or echoed or stem, *_of_solr(where, document)
    else:
        shown = json.dumps(line)[:60]
        raise DataError(f"{where}: {shown}: an answer must have hits.hits (Elasticsearch, OpenSearch) or response.docs (Solr)")


def _of_hit(where: str, hit: Any) -> tuple[str, dict[str, float | None]]:
    document = text_of(hit.get("_id")) if isinstance(hit, dict) else ""
    if not document:
        raise DataError(f"{where}: {json.dumps(hit)[:60]}: a hit must have an _id")
    logged = object_at(hit, "fields").get("_ltrlog")
    if not isinstance(logged, list):
        raise DataError(f"{where}: document {document[:40]!r}: no fields._ltrlog: ask for ext.ltr_log in the search")
    features: dict[str, float | None] = {}
    for log in logged:
        lists = list(log.values()) if isinstance(log, dict) else [log]
        if wrong := [entries for entries in lists if not isinstance(entries, list)]:
            raise DataError(
                f"{where}: document {document[:40]!r}: {json.dumps(wrong[0])[:60]}: a log must be a list of names and values"
            )
        for entry in [one for entries in lists for one in entries]:
            name = text_of(entry.get("name")) if isinstance(entry, dict) else ""
            if not name or name in features:
                why = f"feature {name!r} is logged twice" if name else "an entry of the log must have a name"
                raise DataError(f"{where}: document {document[:40]!r}: {json.dumps(entry)[:60]}: {why}")
            features[name] = _number(where, document, name, entry.get("value"))
    return document, features


def _of_solr(where: str, document: Any) -> tuple[str, dict[str, float | None]]:
    own = document if isinstance(document, dict) else {}
    name = next((text for key in ("id", "docid", "document") if (text := text_of(own.get(key)))), "")
    if not name:
        raise DataError(f"{where}: {json.dumps(document)[:60]}: a document must have an id (ask for fl=id,[features])")
    logged = own.get("[features]", own.get("features"))
    if not isinstance(logged, str):
        raise DataError(f"{where}: document {name[:40]!r}: no [features]: ask for fl=id,[features]")
    features: dict[str, float | None] = {}
    for part in filter(None, re.split(r"[,;]", logged)):
        feature, separator, value = (piece.strip() for piece in part.rpartition("=" if "=" in part else ":"))
        if not separator or feature in features:
            why = "each feature once" if feature in features else "features must be written name=value,name=value"
            raise DataError(f"{where}: document {name[:40]!r}: [features] {part[:40]!r}: {why}")
        features[feature] = _number(where, name, feature, value)
    return name, features


def _number(where: str, document: str, name: str, value: Any) -> float | None:
    """A value; None for one that was not logged, as for a document that a feature's query does not match."""
    if value is None or value == "":
        return None
    try:
        return plain_number(value)
    except ValueError:
        raise DataError(
            f"{where}: document {document[:40]!r}: {name} {json.dumps(value)[:40]}: a feature must be a finite number"
        ) from None
