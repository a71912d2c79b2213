"""Which queries are alike: by the words they have in common, or by the documents that were clicked for them."""

import numpy as np
import polars as pl

_NEARLY = 1e-9
"""Similarities are ratios of whole numbers: what is short of the threshold by rounding is not short of it."""
_AT_ONCE = 5_000_000
"""Clicked documents that pairs of queries have in common, as many as are looked through at once: of queries that share a popular document there may be
very many."""


def normalised(column: str) -> pl.Expr:
    """A query as far as equal ones are concerned: Unicode's compatibility form, lower case (with ß as ss, which is its capital), single spaces."""
    lower = pl.col(column).cast(pl.String).str.normalize("NFKC").str.to_lowercase().str.replace_all("ß", "ss", literal=True)
    return lower.str.strip_chars().str.replace_all(r"\s+", " ")


def counted(written: pl.Series) -> pl.DataFrame:
    """How many ``times`` an id is ``written`` in each way."""
    return written.cast(pl.String).drop_nulls().to_frame("written").group_by("written").len("times")


def spellings(written: pl.DataFrame) -> pl.DataFrame:
    """Of `counted`: how each (normalised) ``query`` is ``written``, a list, most often first, and alphabetical where that is the same."""
    ordered = written.with_columns(query=normalised("written")).sort("times", "written", descending=[True, False])
    return ordered.group_by("query", maintain_order=True).agg("written").sort("query")


def written_alike(found: pl.DataFrame) -> tuple[int, str]:
    """Of `spellings`: how many ids count as the same query as another, and two of them; 0 where each is one query."""
    several = found.filter(pl.col("written").list.len() > 1)
    if not several.height:
        return 0, ""
    one, other = sorted(several["written"][0].head(2))
    return int(several["written"].list.len().sum()), f"{one[:40]!r} and {other[:40]!r}"


def similar_words(texts: pl.DataFrame, known: pl.Series, threshold: float) -> pl.DataFrame:
    """Pairs ``query`` (one of those known), ``other`` of which two texts have a Jaccard similarity of their sets of words of at
    least `threshold`.

    Two sets that are so similar share one of their rarest words: of a set of n, one of the first n − ⌈threshold·n⌉ + 1 by
    rarity. Only pairs that do are counted (prefix filtering; Bayardo et al. 2007).

    Args:
        texts: ``query`` and ``text``, one row a text of a query. One that is empty is like no other.
    """
    words = (
        texts.filter(pl.col("text") != "")
        .with_row_index("id")
        .with_columns(word=pl.col("text").str.split(" ").list.unique())
        .explode("word")
        .with_columns(often=pl.len().over("word"), size=pl.len().over("id"))
        .sort("id", "often", "word")
        .with_columns(place=pl.int_range(pl.len()).over("id"))
    )
    first = words.filter(pl.col("place") <= pl.col("size") - (threshold * pl.col("size") - _NEARLY).ceil())
    ours = first.join(known.to_frame("query"), on="query", how="semi")
    candidates = (
        ours.join(first, on="word", suffix="_other")
        .filter(
            (pl.col("query") != pl.col("query_other"))
            & (pl.min_horizontal("size", "size_other") >= threshold * pl.max_horizontal("size", "size_other") - _NEARLY)
        )
        .select("id", "id_other", "query", "query_other", "size", "size_other")
        .unique()
    )
    shared = (
        candidates.join(words.select("id", "word"), on="id")
        .join(words.select(pl.col("id").alias("id_other"), "word"), on=["id_other", "word"])
        .group_by("query", "query_other", "id", "id_other", "size", "size_other")
        .len("shared")
    )
    jaccard = pl.col("shared") / (pl.col("size").cast(pl.Int64) + pl.col("size_other").cast(pl.Int64) - pl.col("shared"))
    return shared.filter(jaccard >= threshold - _NEARLY).select("query", other="query_other").unique().sort("query", "other")


def similar_clicks(clicks: pl.DataFrame, known: pl.Series, threshold: float) -> pl.DataFrame:
    """Pairs ``query`` (one of those known), ``other`` whose counts of clicks on documents have a cosine of at least `threshold`.

    Args:
        clicks: ``query``, ``document``, ``clicks``, one row a pair.
    """
    from scipy.sparse import csr_array

    unit = clicks.filter(pl.col("clicks").cast(pl.Int64) > 0)
    names = unit["query"].unique().sort()
    if not len(names):
        return pl.DataFrame(schema={"query": pl.String, "other": pl.String})
    row, column = ((unit[name].rank("dense").cast(pl.Int64) - 1).to_numpy() for name in ("query", "document"))
    counts = csr_array((unit["clicks"].cast(pl.Int64).to_numpy(), (row, column)))
    length = np.sqrt((counts * counts).sum(axis=1).astype(np.float64))
    asked = names.is_in(known.cast(pl.String).to_list()).arg_true().to_numpy().astype(np.int64)
    firsts, seconds = [asked[:0]], [asked[:0]]
    by_document = counts.T.tocsr()
    in_common = np.bincount(row, np.diff(by_document.indptr)[column])[asked].cumsum()
    for own in np.split(asked, np.flatnonzero(np.diff(in_common // _AT_ONCE)) + 1):
        shared = (counts[own] @ by_document).tocoo()
        one, other = own[shared.row], shared.col.astype(np.int64)
        alike = (one != other) & (shared.data / (length[one] * length[other]) >= threshold - _NEARLY)
        firsts.append(one[alike])
        seconds.append(other[alike])
    first, second = np.concatenate(firsts), np.concatenate(seconds)
    order = np.lexsort((second, first))
    return pl.DataFrame({"query": names.gather(first[order]), "other": names.gather(second[order])})
