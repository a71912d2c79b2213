"""How clicks become labels: what counts as a click, whose clicks count, and how few of them are made up for.

What counts is an expression over the results of a log, one row a result that a page showed: a new one is one line in `CLICKS`, or a call
of `register_clicks` from outside.
"""

import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import AfterValidator, Field, model_validator

from ltr.clicks.models import MODELS
from tasks.config.section import Strict

CLICKS: dict[str, pl.Expr] = {}
"""What counts as a click, by name: an expression that is true where it does, over ``order`` (of the last click on the result within its
page, 0 for none) and ``last_of_page`` (the largest order of the page)."""
_FILES: dict[str, str] = {}
"""sha256 of the file that registered each of them, empty for a notebook's."""


def register_clicks(name: str, counts: pl.Expr) -> None:
    """Makes a way of counting clicks known to configurations (``clicks: {log: …, clicks: NAME}``).

    Raises:
        ValueError: for a name that is taken, or one that the tables of a log use.
    """
    if name in CLICKS or name in ("query", "document", "rank", "impressions", "looks"):
        raise ValueError(f"a way of counting clicks, or a column, is named {name!r} already")
    CLICKS[name] = counts
    file = Path(sys._getframe(1).f_globals.get("__file__", ""))
    _FILES[name] = sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


register_clicks("last", (pl.col("order") > 0) & (pl.col("order") == pl.col("last_of_page")))
register_clicks("all", pl.col("order") > 0)
_BUILT_IN = frozenset(CLICKS)


def _known(name: str) -> str:
    if name not in CLICKS:
        raise ValueError(f"{name!r} is unknown; choose from: {', '.join(CLICKS)}")
    return name


def _listed(schema: dict[str, Any]) -> None:
    schema["enum"] = list(CLICKS)


Counted = Annotated[str, AfterValidator(_known), Field(json_schema_extra=_listed)]
BEST = "best"
"""In place of a click model's name: the one that foretells held-out clicks best."""
OF_MODELS = (BEST, *(name for name in MODELS if name != "rctr"))
"""What a label may be the attractiveness by; RCTR knows of none."""


def _model_known(name: str | None) -> str | None:
    if name is not None and name not in OF_MODELS:
        raise ValueError(f"{name!r} is unknown; choose from: {', '.join(OF_MODELS)}")
    return name


class ClickLabel(Strict):
    """How a click label is derived from a log: (clicks + prior · the log's mean rate) / (impressions + prior).

    `clicks` counts the last click of each page, or all of them. `queries` says whose clicks count for a query: those of ``equal``
    ones (letter case, spaces and Unicode's variants apart; S section 6's "="), or of ``similar`` ones too ("~"): with a similarity
    of at least `similarity` `by` their sets of words (Jaccard), or the documents clicked for them (cosine). With `debias` an
    impression counts as much as its rank is looked at (`ltr.data.propensities`), so that the rate is not that of the position; then all
    clicks count unless `clicks` says otherwise, as whether a click is the last one of its page depends on more than its own rank.

    With `model` the label is what a click model (`ltr.clicks`) takes for the attractiveness of the document, drawn to its query's mean as
    if it had been looked at `prior` times more (0: as many as the log says); ``best`` is the model that foretells held-out clicks best.
    All clicks count then.
    """

    clicks: Counted = "last"
    queries: Literal["equal", "similar"] = "equal"
    by: Literal["words", "clicks"] = "words"
    similarity: float = Field(0.75, gt=0, le=1)
    debias: bool = False
    min_impressions: int = Field(1, ge=1)
    prior: float = Field(0.0, ge=0)
    model: Annotated[str | None, AfterValidator(_model_known), Field(json_schema_extra={"enum": [*OF_MODELS, None]})] = None

    @model_validator(mode="before")
    @classmethod
    def _looks_explain_all_clicks(cls, written: Any) -> Any:
        if isinstance(written, Mapping) and written.get("model"):
            return {"clicks": "all", **written}
        if isinstance(written, Mapping) and written.get("debias") and "clicks" not in written:
            return {**written, "clicks": "all"}
        return written

    @model_validator(mode="after")
    def _models_explain_all_clicks(self) -> "ClickLabel":
        if self.model and (self.debias or self.queries == "similar" or self.clicks != "all"):
            raise ValueError(f"model: {self.model} explains all clicks by itself; leave out debias, queries: similar and clicks")
        return self

    @model_validator(mode="after")
    def _equal_queries_need_no_similarity(self) -> "ClickLabel":
        for key in ("by", "similarity") if self.queries == "equal" else ():
            if getattr(self, key) != ClickLabel.model_fields[key].default:
                raise ValueError(f"{key}: {getattr(self, key)} says which queries are similar; it needs queries: similar")
        return self


class ClickLog(ClickLabel):
    """A session log, one row a shown result, as CSV, TSV or Parquet, and the labels it gives.

    `session` and `interaction` name the columns whose values together are one result page; `click` the order of clicks on a
    result (``2`` or ``1,3``; empty or 0: not clicked); `rank` the place it was shown at, from 1; `text` what was typed, where
    `query` holds a number. What a label is made of, said here, is the label ``click``; `more` names further ones.
    """

    log: Path
    query: str = "query"
    document: str = "document"
    session: str = "session"
    interaction: str | None = None
    click: str = "click"
    rank: str = "rank"
    text: str | None = None
    more: dict[str, ClickLabel] = {}

    @model_validator(mode="after")
    def _check_more(self) -> "ClickLog":
        if "click" in self.more:
            raise ValueError("more: 'click' is the label that the log itself gives; choose another name")
        return self

    @property
    def pooled(self) -> tuple[str, ...]:
        """Names of the labels that pool the clicks of similar queries."""
        return tuple(name for name, label in self.labels.items() if label.queries == "similar")

    @property
    def labels(self) -> dict[str, ClickLabel]:
        """Every label of the log by its source's name."""
        return {"click": self, **self.more}

    def decides(self, digest: str) -> dict[str, Any]:
        """What its labels depend on, of a file with this digest, as plain values: of a way of counting from outside not only the name, but its
        expression, and the file that registers it, as an expression has of a Python function of that file no more than the name."""
        ways = {label.clicks for label in self.labels.values()} - _BUILT_IN
        counts = {way: sha256(CLICKS[way].meta.serialize()).hexdigest() for way in sorted(ways)}
        files = sorted({_FILES[way] for way in ways if way in _FILES})
        outside = {"counts": counts, "files": files} if ways else {}
        return {**self.model_dump(mode="json"), "log": digest, **outside}
