"""Click models of a log: which one foretells held-out clicks best, and what it takes each document's attractiveness for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ltr.clicks.click_model import ClickModel, Settings
from ltr.clicks.held_out import Foretold, foretell
from ltr.clicks.looks import PARTS, looks_errors, tied_ranks
from ltr.clicks.models import MODELS, NEED_TIES, fit
from ltr.clicks.pages import Pages
from tasks.config.click_labels import BEST, OF_MODELS, ClickLog
from tasks.data.click_log import ranks_in_words
from tasks.data.log_pages import LogPages, log_pages
from tasks.records import DataError, number_of

JsonObject = dict[str, object]
"""What JSON calls an object."""
RANKS_TOLD = 10
"""Ranks whose looks are named."""
UNSURE = 0.1
"""A standard error of looks from which on they are called so."""


@dataclass(frozen=True)
class Compared:
    """Click models of a log beside each other.

    Attributes:
        models: on held-out sessions, the best first.
        left_out: models that the log does not bear, and why.
        sessions, held_out: how many the models were fitted to, and judged on.
    """

    models: tuple[Foretold, ...]
    left_out: tuple[str, ...]
    sessions: int
    held_out: int

    @property
    def winner(self) -> str:
        """The best model's name."""
        return self.models[0].name

    @property
    def attracting(self) -> str:
        """The best model's name among those that know of attractiveness."""
        return next(one.name for one in self.models if one.name in OF_MODELS)

    @property
    def near(self) -> list[str]:
        """Models that do not differ significantly from the winner."""
        return [one.name for one in self.models[1:] if not one.worse]

    def sentence(self) -> str:
        """Who won, and who does not differ significantly from the winner."""
        do = "does" if len(self.near) == 1 else "do"
        apart = f"; {', '.join(self.near)} {do} not differ significantly from it on these sessions" if self.near else ""
        return f"{self.winner} predicts clicks best: log-likelihood {self.models[0].likelihood:.5f} per result, perplexity {self.models[0].perplexity:.4f}{apart}"


@dataclass(frozen=True)
class Fitted:
    """A click model of all pages of a log.

    Attributes:
        name: the model's.
        looks: at ranks 1, 2, …; `errors`: their standard errors, of pbm, none of other models.
        prior: how many looks at their query's mean pairs were given beside their own.
        table: ``query``, ``document``, ``impressions``, ``clicks``, ``looks`` (impressions as far as they were examined), ``attraction`` and its
            standard ``deviation``.
    """

    name: str
    looks: tuple[float, ...]
    errors: tuple[float, ...]
    prior: float
    table: pl.DataFrame

    def sentence(self) -> str:
        """How often ranks are looked at, and how strongly pairs are drawn to their query's mean."""
        errors = [f" ±{error:.2f}" for error in self.errors] or [""] * len(self.looks)
        each = [("–" if np.isnan(look) else f"{look:.2f}") + error for look, error in zip(self.looks, errors, strict=True)]
        told = (", " if self.errors else " ").join(each[:RANKS_TOLD])
        more = " …" if len(self.looks) > RANKS_TOLD else ""
        unsure = max(self.errors[:RANKS_TOLD], default=0.0) > UNSURE
        doubt = (
            " (few documents changed rank, so these values and everything derived from them are very uncertain)" if unsure else ""
        )
        return f"{self.name}, examination probability at ranks 1, 2, …: {told}{more}{doubt}; attractiveness is shrunk to the query's mean (prior worth {self.prior:.1f} examinations)"


def compare_models(read: LogPages, prior: float | None, share: float, seed: int) -> Compared:
    """Every click model that the log bears, fitted to all but a share of the sessions and judged on those.

    Raises:
        DataError: where either side has no click, or no session.
    """
    held = read.held_out(share, seed)
    n_held = len(np.unique(read.session[held]))
    n_rest = len(read.keys) - n_held
    if not n_held or not n_rest:
        raise DataError(
            f"{number_of(len(read.keys), 'session')} cannot be split into a held-out share of {share:g} and others to fit to"
        )
    known, asked = read.pages.select(~held), read.pages.select(held)
    if not known.click.any():
        raise DataError(f"no click in the {number_of(n_rest, 'session')} to fit to")
    models: dict[str, ClickModel] = {}
    left_out = []
    for name in MODELS:
        try:
            models[name] = fit(known, name, Settings(prior=prior), read.pages.n_ranks)
        except ValueError as error:
            left_out.append(str(error))
    return Compared(tuple(foretell(models, asked, read.session[held])), tuple(left_out), n_rest, n_held)


def fit_model(read: LogPages, name: str, prior: float | None, min_impressions: int = 1) -> Fitted:
    """A click model of all pages, with a table of the pairs that were shown so often.

    Raises:
        DataError: where the log does not bear it.
    """
    try:
        model = fit(read.pages, name, Settings(prior=prior))
    except ValueError as error:
        raise DataError(str(error)) from None
    n = len(read.pages.query)
    table = read.pairs.with_columns(
        impressions=np.bincount(read.pages.pair, minlength=n),
        clicks=np.bincount(read.pages.pair, read.pages.click, n).astype(np.int64),
        looks=model.looks,
        attraction=model.attraction,
        deviation=model.deviation,
    ).filter(pl.col("impressions") >= min_impressions)
    errors = looks_errors(read.pages, read.parts(PARTS, SEED)).tolist() if name == "pbm" else ()
    return Fitted(name, tuple(model.examination(read.pages).tolist()), tuple(errors), model.prior, table)


def position_notes(pages: Pages) -> list[str]:
    """What is to be said of ranks that are not tied to the others by documents shown at both."""
    tied = tied_ranks(pages)
    if tied.sum() < 2:
        return []
    shown = np.bincount(pages.rank - 1, minlength=len(tied)) > 0
    apart = np.flatnonzero(shown & ~tied) + 1
    if not len(apart):
        return []
    return [
        f"no tie between {ranks_in_words(apart)} and the others (documents clicked at one and shown at the other, in both directions); there, "
        f"{' and '.join(NEED_TIES)} estimate examination probabilities from the click-through rate"
    ]


def model_tables(log: ClickLog) -> tuple[dict[str, pl.DataFrame], list[str]]:
    """For each label of a log that a click model gives one row a pair: ``query``, ``document``, ``impressions``, ``clicks`` and the label,
    ``rate``; and sentences about models and what was left out.

    Raises:
        DataError: for a log that cannot be read, or does not bear a model that is asked for.
    """
    asked = {name: label for name, label in log.labels.items() if label.model}
    if not asked:
        return {}, []
    read = log_pages(log)
    notes = [*(f"click models: {note}" for note in read.notes), *position_notes(read.pages)]
    tables, fitted = {}, {}
    for name, label in asked.items():
        model = str(label.model)
        if (model, label.prior) not in fitted:
            winner = model
            if model == BEST:
                compared = compare_models(read, label.prior or None, HELD_OUT, SEED)
                winner = compared.attracting
                notes += [*compared.left_out, compared.sentence()]
            try:
                fitted[model, label.prior] = fit_model(read, winner, label.prior or None)
            except DataError as error:
                raise DataError(f"{log.log}: {error}") from None
            notes.append(fitted[model, label.prior].sentence())
        tables[name] = (
            fitted[model, label.prior]
            .table.filter(pl.col("impressions") >= label.min_impressions)
            .select("query", "document", "impressions", "clicks", rate="attraction")
        )
    return tables, notes


HELD_OUT, SEED = 0.2, 1
"""The share of sessions that models are judged on, and what draws them, where nobody says otherwise."""


def written_models(compared: Compared, chosen: Fitted, notes: Sequence[str]) -> JsonObject:
    """What is to be said of a log's click models, in plain values."""
    return {
        "winner": compared.winner,
        "sessions": compared.sessions,
        "held_out": compared.held_out,
        "models": {one.name: _plain(one) for one in compared.models},
        "left_out": list(compared.left_out),
        "notes": list(notes),
        "attraction": {"model": chosen.name, "pairs": chosen.table.height, "prior": chosen.prior, "looks": _numbers(chosen.looks)},
    }


def _plain(one: Foretold) -> JsonObject:
    return {
        "log_likelihood": one.likelihood,
        "behind": one.behind,
        "error": one.error,
        "worse": one.worse,
        "perplexity": one.perplexity,
        "perplexity_by_rank": _numbers(one.by_rank),
    }


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
