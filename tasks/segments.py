"""A ranker against a baseline among queries of one kind (a language, long or short, head or tail), and the queries it changes most.

A mean over all queries hides who pays for it. Queries are told apart by attributes: columns of the data, and

- ``documents``, how many a query has;
- ``length``, words of its text: the attribute ``text``, otherwise what was typed for it most often in the click log;
- ``popularity``, its result pages in the click log; a column of this name takes its place.

Numbers of more than `MOST_VALUES` different values, and ``documents`` and ``popularity`` always, are cut into terciles of the test
queries. Nothing is scored again: values are those stored with the cells.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.data.queries import Queries
from ltr.metrics import significance
from ltr.metrics.measure import fewer_is_better
from tasks import store
from tasks.clicks import asked
from tasks.config import ClickLog, Segments
from tasks.evaluate import names_of, read_values
from tasks.ingest import DataError
from tasks.lookup import Stored
from tasks.similar import normalised

MOST_VALUES = 12
"""Different numbers that are segments of their own."""
BANDED = ("documents", "popularity")
"""Attributes that are always cut."""
_NAMED: Mapping[int, tuple[str, ...]] = {1: ("",), 2: ("tail", "head"), 3: ("tail", "torso", "head")}
"""Bands of popularity, by how many there are."""
NONE = "(none)"
"""The segment of the queries whose attribute is not known."""
SEGMENT = (
    "attribute", "value", "measure", "baseline", "ranker", "queries", "n", "mean", "baseline_mean", "difference", "se", "p", "holm_p",
)  # fmt: skip
CHANGED = ("measure", "baseline", "ranker", "effect", "query", "text", "value", "baseline_value", "difference")
"""Columns of the two tables."""
BUILT_IN: Mapping[str, Callable[[pl.DataFrame], pl.Series]] = {
    "documents": lambda queries: queries["documents"],
    "length": lambda queries: queries["text"].str.extract_all(r"\S+").list.len(),
    "popularity": lambda queries: queries["pages"],
}
"""Attributes that need no column, of a table with ``documents``, ``text`` and ``pages`` of each query."""


@task(cache_policy=NO_CACHE, name="segments", task_run_name="segments")
def segmented(
    values: Mapping[str, Sequence[str]], tests: Sequence[str], rule: Segments, measure: str, by: Sequence[str], log: ClickLog | None
) -> dict[str, Any]:
    """Every segment and the most changed queries of some rankers against a baseline, on the test queries of all folds together.

    Args:
        values: for the baseline (`rule`) and each ranker the per-query value files of its chosen cells, one a fold.
        tests: names in the store of the folds' test queries.
        measure: its key.
        by: attributes.
        log: where texts and result pages are found.

    Returns:
        ``measure``, ``baseline``, ``fewest``; ``segments``: one entry a segment and ranker (`contrast`) with its ``attribute``; ``changed``:
        one entry a ranker (`changes`), its queries with their ``attributes`` and, where one is known, ``text``.
    """
    about = pl.concat([described(store.open_queries(name), by, log) for name in tests])
    taken = {name: _taken(paths, measure) for name, paths in values.items()}
    if any(frame["query"].to_list() != about["query"].to_list() for frame in taken.values()):
        raise DataError("segments: the rankers were not tested on the same queries")
    pooled = {name: frame["value"].to_numpy() for name, frame in taken.items()}
    baseline = pooled.pop(rule.baseline)
    segments, changed = [], []
    for attribute in by:
        masks = segments_of(about[f"attribute.{attribute}"], attribute)
        segments += [{"attribute": attribute, **row} for row in contrast(masks, pooled, baseline, rule.fewest)]
    place = {query: k for k, query in enumerate(about["query"].to_list())}
    for ranker, own in pooled.items():
        found = changes(about["query"].to_list(), own, baseline, rule.queries, fewer_is_better(measure))
        for row in (*found["harmed"], *found["helped"]):
            known = about.row(place[row["query"]], named=True)
            row |= {"attributes": {name: known[f"attribute.{name}"] or NONE for name in by}}
            row |= {"text": known["text"]} if known["text"] else {}
        changed.append({"ranker": ranker, "baseline": rule.baseline, "measure": measure, **found})
    return {"measure": measure, "baseline": rule.baseline, "fewest": rule.fewest, "segments": segments, "changed": changed}


def _taken(paths: Sequence[str], measure: str) -> pl.DataFrame:
    """``query`` and ``value`` of the test queries, fold behind fold; NaN where undefined."""
    value = pl.col(measure).cast(pl.Float64).fill_null(float("nan")).alias("value")
    return pl.concat([read_values(path, "test").select("query", value) for path in paths])


def described(queries: Queries, by: Sequence[str], log: ClickLog | None = None) -> pl.DataFrame:
    """One row a query, by its name as stored values are: ``query``, ``text`` (null where not known, or no other than the name) and ``attribute.NAME`` of each
    attribute, all text; null where not known."""
    frame = pl.DataFrame({"query": names_of(queries), "documents": np.diff(queries.offsets)})
    if log:
        typed = frame.select(normalised("query")).join(asked(log), on="query", how="left", maintain_order="left")
        frame = frame.with_columns(typed["text"], typed["pages"].fill_null(0))
    kept = {
        name: pl.Series(name, [value or None for value in said.tolist()], pl.String) for name, said in queries.attributes.items()
    }
    frame = frame.with_columns(kept.get("text", frame.get_column("text", default=pl.lit(None, pl.String).alias("text"))))
    attributes = {f"attribute.{name}": (kept[name] if name in kept else BUILT_IN[name](frame)).cast(pl.String) for name in by}
    told = frame.select("query", text=pl.when(pl.col("text") != pl.col("query")).then("text"))
    return told.with_columns(**attributes).sort("query")


def segments_of(values: pl.Series, name: str) -> list[tuple[str, NDArray[np.bool_]]]:
    """The segments of an attribute: what each is called, and its queries ``bool [queries]``.

    Numbers stand in their order, many of them cut into terciles where equal ones stay together, so that fewer than three may be
    left; other values stand by falling number of queries. Queries without the attribute come last.
    """
    given = values.is_not_null().to_numpy()
    numbers = values.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    found: list[tuple[str, NDArray[np.bool_]]]
    if not np.isfinite(numbers[given]).all():
        counts = Counter(values.drop_nulls().to_list())
        ordered = sorted(counts, key=lambda value: (-counts[value], value))
        found = [(value, (values == value).fill_null(False).to_numpy()) for value in ordered]
    elif given.any() and (name in BANDED or len(np.unique(numbers[given])) > MOST_VALUES):
        cuts = np.quantile(numbers[given], [1 / 3, 2 / 3], method="inverted_cdf")
        band = np.where(given, np.searchsorted(cuts, numbers), -1)
        masks = [band == k for k in range(3) if (band == k).any()]
        words = _NAMED[len(masks)] if name == "popularity" else ("",) * len(masks)
        found = [(f"{word} {_range(numbers[mask])}".strip(), mask) for word, mask in zip(words, masks, strict=True)]
    else:
        found = [(_range(np.array([number])), numbers == number) for number in np.unique(numbers[given])]
    return found if given.all() else [*found, (NONE, ~given)]


def _range(numbers: NDArray[np.float64]) -> str:
    low, high = f"{numbers.min():.10g}", f"{numbers.max():.10g}"
    return low if low == high else f"{low}–{high}"


def contrast(
    masks: Sequence[tuple[str, NDArray[np.bool_]]],
    values: Mapping[str, NDArray[np.float64]],
    baseline: NDArray[np.float64],
    fewest: int,
) -> list[dict[str, Any]]:
    """Rankers against a baseline in each segment of one attribute.

    Args:
        masks: the segments (`segments_of`).
        values, baseline: per-query values ``float64 [queries]``, NaN where undefined.
        fewest: queries below which there is no test.

    Returns:
        One entry a segment and ranker: ``value`` (of the attribute), ``ranker``, ``queries`` of the segment, ``n`` of them where both are
        defined and, over these, ``mean``, ``baseline_mean`` and ``difference`` (None where n is 0); ``se``, ``p`` (paired t) and ``holm_p``
        over all tests of the attribute, None without a test.
    """
    rows: list[dict[str, Any]] = []
    for value, mask in masks:
        for ranker, own in values.items():
            both = mask & ~np.isnan(own - baseline)
            n = int(both.sum())
            means = (float(own[both].mean()), float(baseline[both].mean())) if n else (None, None)
            row: dict[str, Any] = {"value": value, "ranker": ranker, "queries": int(mask.sum()), "n": n}
            row |= {"mean": means[0], "baseline_mean": means[1], "difference": float((own - baseline)[both].mean()) if n else None}
            tested = significance.paired_t(own[both], baseline[both]) if n >= fewest else None
            row |= {"se": tested and tested.standard_error, "p": tested and tested.p_value, "holm_p": None}
            rows.append(row)
    tested_rows = [row for row in rows if row["p"] is not None]
    if tested_rows:
        for row, adjusted in zip(tested_rows, significance.holm([row["p"] for row in tested_rows]), strict=True):
            row["holm_p"] = float(adjusted)
    return rows


def changes(
    names: Sequence[str], values: NDArray[np.float64], baseline: NDArray[np.float64], most: int, fewer_better: bool = False
) -> dict[str, Any]:
    """The queries that a ranker harms and helps most, equal ones by name.

    Returns:
        ``harmed`` and ``helped``: `most` of each at most, with their ``query``, ``value``, ``baseline`` and ``difference``;
        ``n_harmed``, ``n_helped`` and ``n_same``: how many there are of each.
    """
    difference = np.round(values - baseline, 12)
    """Sums in another order differ by some 1e-16, which harms nobody."""
    gain = -difference if fewer_better else difference

    def listed(rows: NDArray[np.intp]) -> list[dict[str, Any]]:
        order = sorted(rows.tolist(), key=lambda row: (-abs(gain[row]), names[row]))[:most]
        shown = (("value", values), ("baseline", baseline), ("difference", difference))
        return [{"query": names[row], **{key: float(array[row]) for key, array in shown}} for row in order]

    return {
        "harmed": listed(np.flatnonzero(gain < 0)),
        "helped": listed(np.flatnonzero(gain > 0)),
        "n_harmed": int((gain < 0).sum()),
        "n_helped": int((gain > 0).sum()),
        "n_same": int((gain == 0).sum()),
    }


def changed_queries(stored: Sequence[Stored], measure: str, most: int) -> list[dict[str, Any]]:
    """`changes` of every pair of finished runs, the later one against the earlier, from stored values of the same test queries.

    Raises:
        DataError: for fewer than one query.
    """
    if most < 1:
        raise DataError(f"--queries {most}: the number of queries to list, 1 or more")
    taken = {run.name: _taken(run.paths, measure) for run in stored}
    found = []
    for k, baseline in enumerate(taken):
        for ranker in list(taken)[k + 1 :]:
            own, base = taken[ranker], taken[baseline]["value"].to_numpy()
            changed = changes(own["query"].to_list(), own["value"].to_numpy(), base, most, fewer_is_better(measure))
            found.append({"ranker": ranker, "baseline": baseline, "measure": measure, **changed})
    return found


def write_tables(found: Mapping[str, Any], folder: Path) -> list[Path]:
    """``segments.csv`` and ``changed-queries.csv`` of what `segmented` found."""
    folder.mkdir(parents=True, exist_ok=True)
    segments = [{"measure": found["measure"], "baseline": found["baseline"], **row} for row in found["segments"]]
    queries = [
        {
            **row,
            **{key: entry[key] for key in ("measure", "baseline", "ranker")},
            "effect": effect,
            "baseline_value": row["baseline"],
            **{f"attribute.{name}": value for name, value in row["attributes"].items()},
        }
        for entry in found["changed"]
        for effect in ("harmed", "helped")
        for row in entry[effect]
    ]
    columns = [*CHANGED, *(f"attribute.{name}" for name in dict.fromkeys(row["attribute"] for row in found["segments"]))]
    paths = [folder / "segments.csv", folder / "changed-queries.csv"]
    for path, rows, names in zip(paths, (segments, queries), (SEGMENT, columns), strict=True):
        pl.DataFrame({name: [row.get(name) for row in rows] for name in names}, strict=False).write_csv(path)
    return paths
