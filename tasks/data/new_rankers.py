"""What new rankers would earn, from a click log and their scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ltr.clicks.click_model import ClickModel
from ltr.clicks.looks import PARTS
from ltr.clicks.models import fit
from ltr.clicks.off_policy import ESTIMATORS, Estimate, Rules, estimate, new_ranks, tied
from ltr.clicks.pages import Pages
from ltr.kernels.kernel import Bools, Ints
from tasks.data.click_models import HELD_OUT, compare_models
from tasks.data.files import located
from tasks.data.log_pages import LogPages
from tasks.data.similar_queries import normalised
from tasks.data.tables import id_texts, is_table, read_table, reading
from tasks.data.trec import RUN, read_trec
from tasks.records import DataError, number_of

HALF = 1000
"""Added to the seed that draws the half of the sessions which the other half's click model foretells."""
POSITIONAL = ("rctr", "dctr", "pbm")
"""Click models in which what stands above a result does not matter."""
_ALIKE = "so can position-based if a rank scales the clicks on every document by the same factor (trust bias does not)"
"""What click models do not tell apart: with trust in the first ranks, pbm predicts clicks best too."""
_AT_ODDS = 3.0
"""Standard errors that a difference of two estimates has to have; 2.58 were exceeded in 4 of 120 simulated logs of the position-based model."""
_COMPLETE = 0.99
"""Share of places that the log has to show for what it does not show to be no reason of a difference."""

_HEADS = 0.25
"""A document heads pages where it stands in this part of them, from the first rank, in half of the pages that show it."""
_MISSED = 0.02
"""Share of places whose documents head other pages. It was .009 at most for two rankers on nine simulated logs of all kinds of noise, and .025
at least on four where documents went out of stock. Where two rankers that differ make the pages by turns it is as large: .06 of 30 documents, ten
a page, by scores that correlate at .5."""


@dataclass(frozen=True)
class Expected:
    """What one new ranker would earn.

    Attributes:
        ranker: its name.
        estimates: one an estimator that the log bears.
        refused: why there is none by the others.
        notes: what was left out, and where estimates contradict each other.
    """

    ranker: str
    estimates: tuple[Estimate, ...]
    refused: tuple[str, ...]
    notes: tuple[str, ...]


def read_scores(path: Path) -> pl.DataFrame:
    """A ranker's scores: ``query`` (normalised), ``document``, ``score``, from a table with these columns or a TREC run; without what has no
    score, which is at no rank, as `predict` writes it.

    Raises:
        DataError: for a missing column, a score that is no number, and a document that a query has twice.
    """
    if not is_table(path):
        scores = read_trec([path], RUN).select("query", "document", "score")
    else:
        with reading(path):
            table = read_table(located(path))
        for column in ("query", "document", "score"):
            if column not in table.columns:
                raise DataError(f"{path}: no column {column!r}; there are: {', '.join(table.columns)}")
        table = table.select("query", "document", "score").with_row_index("row", offset=1)
        table = table.with_columns(pl.col("score").fill_nan(None)) if table["score"].dtype.is_float() else table
        table = table.filter(pl.col("score").is_not_null())
        if not table.height:
            raise DataError(f"{path}: no row has a score")
        ids = [id_texts(path, table[name]) for name in ("query", "document")]
        for own in ids:
            if own.null_count():
                row = table["row"][own.is_null().arg_max() or 0]
                raise DataError(f"{path}, row {row}: column {own.name!r} is empty: a score must name its query and document")
        scores = table.select("row", *ids, score=pl.col("score").cast(pl.Float64, strict=False))
        wrong = scores["score"].is_finite().fill_null(False).not_().arg_true()
        if len(wrong):
            row, said = table["row", "score"][wrong[0]].row(0)
            raise DataError(f"{path}, row {row}: score {str(said)[:40]!r}: the score must be a finite number")
        scores = scores.drop("row")
    scores = scores.with_columns(query=normalised("query"), written="query")
    twice = scores.filter(pl.struct("query", "document").is_duplicated())
    if twice.height:
        query, document = twice["query", "document"].row(0)
        ways = twice.filter(query=query, document=document)["written"].unique().sort().to_list()
        alike = f": {ways[0]!r} and {ways[1]!r} are one query to a log" if len(ways) > 1 else ""
        raise DataError(f"{path}: query {(query if alike else ways[0])!r} has document {document!r} twice{alike}")
    return scores.drop("written")


def expect(
    read: LogPages, scores: Mapping[str, pl.DataFrame], rules: Rules, estimators: Sequence[str] = ESTIMATORS, seed: int = 1
) -> tuple[list[Expected], str]:
    """Each ranker by each estimator, and which of them to go by.

    Raises:
        DataError: where a ranker has nothing of the log.
    """
    compared = compare_models(read, None, HELD_OUT, seed)
    best, found = compared.winner, []
    by_rank = any(model in POSITIONAL for model in (best, *compared.near))
    for name, table in scores.items():
        pages, rank, kept, notes = _beside(name, read, table, seed, rules.top)
        half, session = read.held_out(0.5, seed + HALF)[kept], read.session[kept]
        parts = {"doubly-robust": half, "position-based": read.parts(PARTS, seed + HALF)[kept]}
        estimates, refused = [], []
        for estimator in estimators:
            try:
                models = _models(estimator, pages, half, best)
                estimates.append(estimate(pages, rank, estimator, rules, models, parts.get(estimator), session))
            except ValueError as error:
                refused.append(f"{name}: {error}")
        differ = at_odds(name, estimates) if by_rank else ()
        missed = at_times_missing(name, pages, rank, rules.top) if estimates else ()
        found.append(Expected(name, tuple(estimates), tuple(refused), (*notes, *differ, *missed)))
    return found, to_go_by(best, compared.near)


def turned_to(pages: Pages, session: Ints) -> Bools:
    """Which pages are not the first ones of their results, ``bool [pages]``: those that begin below the end of another page of their session and
    query, and, as a session may be no more than a page, below where half of the pages end that begin where their query's results do.

    Args:
        session: ``int64 [pages]``, whose each page is.
    """
    begin, end = pl.col("begin"), pl.col("end")
    columns = {"session": session, "query": pages.query_of_page(), "begin": pages.rank[pages.offsets[:-1]], "end": pages.depth()}
    usual = end.filter(begin == begin.min()).median().over("query")
    later = (begin > end.min().over("session", "query")) | (begin > usual)
    return pl.DataFrame(columns).select(later.alias("later"))["later"].to_numpy()


def at_odds(name: str, estimates: Sequence[Estimate]) -> tuple[str, ...]:
    """A sentence where position-based says something else than item-position, which assumes less; none where they agree, or cannot be compared.

    Where clicks are those of the position-based model, the variance of the difference is that of the one less that of the other, which knows more
    (Hausman 1978). It counts as no less than half of the one.
    """
    by = {e.estimator: e for e in estimates}
    if not {"item-position", "position-based"} <= by.keys():
        return ()
    item, positional = by["item-position"], by["position-based"]
    if item.supported < _COMPLETE or max(item.clipped, positional.clipped) > 0 or positional.error >= item.error:
        return ()
    difference = positional.value - item.value
    error = float(np.sqrt(max(item.error**2 - positional.error**2, item.error**2 / 2)))
    if abs(difference) <= _AT_ODDS * error:
        return ()
    return (
        f"{name}: position-based is {difference:+.4f} ±{error:.4f} from item-position, which assumes less: clicks are not those of the "
        "position-based model here, so rely on item-position",
    )


def at_times_missing(name: str, pages: Pages, rank: Ints, top: int) -> tuple[str, ...]:
    """A sentence where documents that head pages of the log are on others not at all, as those are which go out of stock: the estimate is of a
    ranker that always has them. None where few are, and on pages of less than four results, whose first one is no quarter of them.

    Args:
        rank: ``int64 [pairs]``, the new ranker's, from 1; 0 for none.
        top: results of a page that count.
    """
    of_query = np.bincount(pages.query_of_page(), minlength=pages.n_queries)
    results = np.bincount(pages.query[pages.pair], minlength=pages.n_queries)
    order = np.lexsort((pages.rank, pages.pair))
    shown = np.bincount(pages.pair, minlength=len(rank))
    starts = np.cumsum(shown) - shown
    wanted = np.flatnonzero((rank > 0) & (rank <= top) & (shown > 0))
    middle = pages.rank[order][starts[wanted] + shown[wanted] // 2]
    query = pages.query[wanted]
    heads = middle * of_query[query] <= _HEADS * results[query]
    missing = int((of_query[query] - shown[wanted])[heads].sum())
    places = int(of_query[pages.query[(rank > 0) & (rank <= top)]].sum())
    if missing <= _MISSED * places:
        return ()
    return (
        f"{name}: {missing / places:.1%} of its first {top} places are of documents that head pages of the log and are not on these: where they "
        "could not be shown (out of stock) the estimate is too high, as it has every document on every page; where another ranker made the page "
        "and ranked them lower, it is not",
    )


def to_go_by(best: str, near: Sequence[str] = ()) -> str:
    """Which estimators' assumption the log bears out, by the click model that predicts its clicks best, and those that do not differ
    significantly from it."""
    if best in POSITIONAL and all(name in POSITIONAL for name in near):
        return f"{best} predicts clicks best here: the results above a result matter little, so item-position can be relied on, and {_ALIKE}"
    if others := [name for name in near if (name in POSITIONAL) != (best in POSITIONAL)]:
        named = " and ".join(filter(None, (", ".join(others[:-1]), others[-1])))
        do = "does" if len(others) == 1 else "do"
        return (
            f"{best} predicts clicks best here, and {named} {do} not differ significantly from it: the results above a result are not shown "
            f"to matter, so item-position can be relied on, and {_ALIKE}; cascade and doubly-robust hold either way"
        )
    return f"{best} predicts clicks best here: clicks depend on the results above, so rely on cascade and doubly-robust"


def _models(estimator: str, pages: Pages, half: Bools, best: str) -> list[ClickModel]:
    """The click models that an estimator needs."""
    if estimator != "doubly-robust":
        return []
    try:
        return [fit(pages.select(side), best, n_ranks=pages.n_ranks) for side in (~half, half)]
    except ValueError as error:
        raise ValueError(f"doubly-robust: {best} is fitted to each half of the sessions, and in one of them: {error}") from None


def _beside(name: str, read: LogPages, scores: pl.DataFrame, seed: int, top: int) -> tuple[Pages, Ints, Bools, tuple[str, ...]]:
    """The pages of queries that a ranker has scores of, its rank of each pair, which of the log's pages these are, and what was left out."""
    asked = scores.join(read.pairs.select("query").unique(), on="query", how="semi")
    if not asked.height:
        ours, theirs = (", ".join(table["query"].unique(maintain_order=True).head(3)) for table in (read.pairs, scores))
        raise DataError(f"{name}: no query of the log has a score; queries there: {ours}; here: {theirs}")
    pairs = pl.concat((read.pairs, asked.select("query", "document"))).unique().sort("query", "document").with_row_index("pair")
    number = read.pairs.join(pairs, on=["query", "document"], how="left", maintain_order="left")["pair"].cast(pl.Int64).to_numpy()
    query = (pairs["query"].rank("dense").cast(pl.Int64) - 1).to_numpy()
    values = (
        pairs.join(asked, on=["query", "document"], how="left", maintain_order="left")["score"].fill_null(float("nan")).to_numpy()
    )
    rank = new_ranks(values, query, seed)
    of_log = read.pages
    pages = Pages(of_log.offsets, number[of_log.pair], of_log.rank, of_log.click, query)
    known = np.bincount(query, rank > 0) > 0
    scored, later = known[pages.query_of_page()], turned_to(pages, read.session)
    kept = scored & ~later
    notes = []
    if by_lot := tied(values, query, rank, top):
        results = number_of(int(((rank > 0) & (rank <= top)).sum()), "result")
        notes.append(
            f"{name}: {by_lot:,} of {results} among the first {top} {'ties' if by_lot == 1 else 'tie'} with others of their query: their order is "
            f"random, and another order gives another estimate"
        )
    if not scored.all():
        left = number_of(int((~scored).sum()), "page")
        notes.append(f"{name}: {left} of {pages.n_pages:,} are of queries without a score, and are left out")
    if (later & scored).any():
        left = number_of(int((later & scored).sum()), "page")
        notes.append(
            f"{name}: left out: {left} of {pages.n_pages:,} below the end of another page of the same session and query, or of half of the query's first "
            "pages, as where users turn pages: the new ranker's first results would not be there; without clicks.interaction, it is all one page"
        )
    return pages.select(kept), rank, kept, tuple(notes)
