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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE
from pydantic import Field, model_validator

import ltr
from ltr.data.queries import Queries
from ltr.diagnostics.why_above import Tried, values_to_try
from ltr.metrics import significance
from ltr.metrics.measure import Measure, fewer_is_better, lowest_of
from tasks.config.click_labels import ClickLog
from tasks.config.run_config import RunConfig, register_evidence
from tasks.data.click_log import typed_queries
from tasks.data.similar_queries import normalised
from tasks.evidence.drawing import heading_of, title_of
from tasks.evidence.protocol import Artifact, Evidence, Found, Gathering, render, require_pairs
from tasks.evidence.reasons import pair_of
from tasks.records import DataError, Fold, Trained, number_of
from tasks.store.cells import CellFolder
from tasks.store.datasets import open_queries
from tasks.store.values import names_of, read_values

if TYPE_CHECKING:
    from tasks.tracking.runs import Stored

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


@dataclass(frozen=True)
class SegmentRow:
    """A ranker against the baseline in one segment.

    Attributes:
        attribute, value: of the segment; empty where it has none.
        queries: of the segment; `n`: of them where both are defined.
        mean, baseline_mean, difference: over these, None where there is none.
        se, p, holm_p: paired t, and corrected over all tests of the attribute; None without a test.
    """

    attribute: str
    value: str
    ranker: str
    queries: int
    n: int
    mean: float | None
    baseline_mean: float | None
    difference: float | None
    se: float | None
    p: float | None
    holm_p: float | None = None

    @property
    def is_sure(self) -> bool:
        """Whether the difference is significant at 95 % after the correction."""
        return self.holm_p is not None and self.holm_p < 0.05


@dataclass(frozen=True)
class ChangedQuery:
    """A query that a ranker changes; `text` and `attributes` where they are known, `why` where its worst pair was looked into."""

    query: str
    value: float
    baseline: float
    difference: float
    attributes: dict[str, str] | None = None
    text: str | None = None
    why: str | None = None


@dataclass(frozen=True)
class Changes:
    """The queries that a ranker harms and helps most against a baseline, and how many there are of each."""

    ranker: str
    baseline: str
    measure: str
    harmed: tuple[ChangedQuery, ...]
    helped: tuple[ChangedQuery, ...]
    n_harmed: int
    n_helped: int
    n_same: int

    def text(self) -> str:
        """How many queries it harms and helps, in words."""
        return (
            f"{self.ranker} against {self.baseline}, {title_of(self.measure)}: {number_of(self.n_helped, 'query')} helped, "
            f"{self.n_harmed} harmed, {self.n_same} unchanged."
        )

    def as_json(self) -> dict[str, Any]:
        """Plain values, without what is not known of a query."""
        lists = {
            effect: [{k: v for k, v in asdict(row).items() if v is not None} for row in rows]
            for effect, rows in (("harmed", self.harmed), ("helped", self.helped))
        }
        return {**asdict(self), **lists}


TEMPLATE = """<h2>Segments</h2>
<p>{{ found.text() }}</p>
<div class="scroll"><table>
  <tr><th>segment</th><th>queries</th><th>ranker</th><th>{{ measure }}</th><th>{{ measure }} of {{ found.baseline }}</th><th>difference</th><th>SE</th><th>p</th><th>Holm p</th></tr>
  {% for attribute, rows in attributes.items() %}<tr><td colspan="9"><b>{{ attribute }}</b></td></tr>
  {% for r in rows[:most] %}<tr><td>{{ r.value }}</td><td>{{ r.queries }}{% if r.n != r.queries %} <small>({{ r.n }} defined)</small>{% endif %}</td><td>{{ r.ranker }}</td>
    {% if r.n %}<td>{{ "%.4f" | format(r.mean) }}</td><td>{{ "%.4f" | format(r.baseline_mean) }}</td><td class="{{ mark(r) }}">{{ "%+.4f" | format(r.difference) }}</td>{% else %}<td>–</td><td>–</td><td>–</td>{% endif %}
    {% if r.p is not none %}<td>{{ "%.4f" | format(r.se) }}</td><td>{{ "%.2g" | format(r.p) }}</td><td>{{ "%.2g" | format(r.holm_p) }}</td>{% else %}<td>–</td><td>–</td><td>–</td>{% endif %}</tr>
  {% endfor %}{% if rows | length > most %}<tr><td colspan="9" class="soft">{{ rows | length - most }} more in segments.csv</td></tr>{% endif %}{% endfor %}
</table></div>
<p class="soft">Paired t-tests on per-query differences from {{ found.baseline }}, Holm-corrected over all tests of an attribute. Segments of fewer than
{{ found.fewest }} queries are not tested. Shaded: significant at 95 % after the correction. Sizes, popularity and numeric attributes with many values are cut into terciles of the queries.</p>
{% for entry in found.changed %}<details><summary>{{ entry.text() }} Show the most changed</summary>
{% for effect, changed in (("harmed", entry.harmed), ("helped", entry.helped)) %}{% if changed %}<h3>Most {{ effect }}</h3><div class="scroll"><table>
  <tr><th>query</th><th>{{ entry.ranker }}</th><th>{{ entry.baseline }}</th><th>difference</th>{% for name in changed[0].attributes %}<th>{{ name }}</th>{% endfor %}</tr>
  {% for r in changed %}<tr><td>{{ r.query }}{% if r.text %}&ensp;<small>{{ r.text }}</small>{% endif %}</td><td>{{ "%.4f" | format(r.value) }}</td><td>{{ "%.4f" | format(r.baseline) }}</td><td>{{ "%+.4f" | format(r.difference) }}</td>{% for value in r.attributes.values() %}<td>{{ value }}</td>{% endfor %}</tr>
  {% if r.why %}<tr><td colspan="9" class="text"><small>{{ r.why }}</small></td></tr>{% endif %}
  {% endfor %}</table></div>{% endif %}{% endfor %}</details>{% endfor %}
"""
EXPLAINED = 5
"""Of the most harmed queries, those whose worst pair is looked into."""
SEGMENTS_SHOWN = 30
"""Segments of an attribute on the page; the largest ones stand first, and all are in the table beside it."""


@dataclass(frozen=True)
class SegmentsFound(Found):
    """Every segment, and the most changed queries, of rankers against a baseline."""

    place: ClassVar[int] = 30
    measure: str
    baseline: str
    fewest: int
    segments: tuple[SegmentRow, ...]
    changed: tuple[Changes, ...]

    def text(self) -> str:
        """Which segments differ after Holm's correction, in words."""
        tested = [row for row in self.segments if row.holm_p is not None]
        sure = sorted((row for row in tested if row.is_sure), key=lambda row: row.holm_p or 0.0)
        named = [f"{row.ranker} on {row.attribute}={row.value} {row.difference:+.4f}" for row in sure[:5]]
        named += [f"{len(sure) - 5} more"] if len(sure) > 5 else []
        listed = f": {', '.join(named)}" if named else ""
        against = f"{title_of(self.measure)} against {self.baseline}"
        are = "is" if len(sure) == 1 else "are"
        if not tested:
            return f"{against}: no segment has enough queries for a test."
        if not sure:
            return f"{against}: none of {number_of(len(tested), 'segment test')} is significant at 95 % (Holm)."
        return f"{against}: {len(sure)} of {number_of(len(tested), 'segment test')} {are} significant at 95 % (Holm){listed}."

    def sentences(self) -> list[str]:
        return [self.text(), *(entry.text() for entry in self.changed)]

    def printed(self) -> Mapping[str, Any]:
        """All segments; the most changed queries are in a table of their own."""
        return {
            "segments": {
                "measure": self.measure,
                "baseline": self.baseline,
                "rows": [asdict(row) for row in self.segments],
                "changed": [
                    {name: getattr(entry, name) for name in ("ranker", "n_harmed", "n_helped", "n_same")} for entry in self.changed
                ],
            }
        }

    def artifacts(self, folder: Path) -> list[Artifact]:
        return [Artifact(path, path.name) for path in write_tables(self, folder)]

    def section(self) -> str:
        by: dict[str, list[SegmentRow]] = {}
        for row in self.segments:
            by.setdefault(row.attribute, []).append(row)

        def mark(row: SegmentRow) -> str:
            better = row.difference is not None and (row.difference > 0) != fewer_is_better(self.measure)
            return ("better" if better else "worse") if row.is_sure else ""

        return render(TEMPLATE, found=self, measure=heading_of(self.measure), attributes=by, most=SEGMENTS_SHOWN, mark=mark)


class Segments(Evidence):
    """How rankers stand against a `baseline` among queries of one kind, and the queries that they change most; `rankers` empty: all
    others.

    `by` names attributes of queries: columns (`data.attributes`), ``documents``, ``length`` and ``popularity`` (`tasks.evidence.segments`);
    empty: every column, and ``documents``. Segments of fewer than `fewest` queries get no test. So many `queries` are listed as most
    harmed, and as most helped. `measure` left out is `select`.
    """

    key: ClassVar[str] = "segments"
    baseline: str
    rankers: list[str] = []
    by: list[str] = []
    measure: str | None = None
    fewest: int = Field(30, ge=2)
    queries: int = Field(10, ge=0)

    @model_validator(mode="after")
    def _check_measure(self) -> "Segments":
        if self.measure is not None:
            Measure.of(self.measure)
        return self

    def check(self, config: RunConfig) -> None:
        config.require_ranker("segments.baseline", self.baseline)
        config.require_ranker("segments.rankers", *self.rankers)
        if not self.contrasted(config):
            raise ValueError(f"segments: no ranker besides the baseline {self.baseline!r}")
        for name in self.by:
            if name not in config.data.known:
                raise ValueError(
                    f"segments.by: no attribute {name!r}; choose from: {', '.join(config.data.known)} (data.attributes names columns, and data.clicks gives length and popularity)"
                )

    def measures(self) -> list[str]:
        return [self.measure] if self.measure else []

    def check_data(self, config: RunConfig, folds: tuple[Fold, ...]) -> None:
        require_pairs(self.key, [self.measure or config.select], "test", [fold.test for fold in folds], config.core_conventions)

    def contrasted(self, config: RunConfig) -> list[str]:
        """Rankers that are held against the baseline."""
        return [name for name in dict.fromkeys(self.rankers or config.rankers) if name != self.baseline]

    def attributes(self, config: RunConfig) -> list[str]:
        """Attributes that the segments are made by."""
        columns = [name for name in config.data.attributes if name in config.data.known]
        return list(dict.fromkeys(self.by or [*columns, "documents"]))

    def gather(self, run: Gathering) -> SegmentsFound:
        values = {name: run.values_of(name) for name in (self.baseline, *self.contrasted(run.config))}
        measure = Measure.of(self.measure or run.config.select).key
        tests = [fold.test for fold in run.folds]
        found = segmented(values, tests, self, measure, self.attributes(run.config), run.config.data.clicks)
        tried: _TriedOf = {}
        return replace(found, changed=tuple(_looked_into(entry, run.chosen, tried) for entry in found.changed))


register_evidence(Segments)


@task(cache_policy=NO_CACHE, name="segments", task_run_name="segments")
def segmented(
    values: Mapping[str, Sequence[str]], tests: Sequence[str], rule: Segments, measure: str, by: Sequence[str], log: ClickLog | None
) -> SegmentsFound:
    """Every segment and the most changed queries of some rankers against a baseline, on the test queries of all folds together.

    Args:
        values: for the baseline (`rule`) and each ranker the per-query value files of its chosen cells, one a fold.
        tests: names in the store of the folds' test queries.
        measure: its key.
        by: attributes.
        log: where texts and result pages are found.

    Raises:
        DataError: where the rankers were not tested on the same queries.
    """
    about = pl.concat([described(open_queries(name), by, log) for name in tests])
    names = about["query"].to_list()
    taken = {name: _taken(paths, measure) for name, paths in values.items()}
    if any(frame["query"].to_list() != names for frame in taken.values()):
        raise DataError("segments: the rankers were not tested on the same queries")
    of_rankers = {name: frame["value"].to_numpy() for name, frame in taken.items()}
    baseline = of_rankers.pop(rule.baseline)
    segments: list[SegmentRow] = []
    for attribute in by:
        rows = contrast(
            segments_of(about[f"attribute.{attribute}"], attribute), of_rankers, baseline, (rule.fewest, lowest_of(measure))
        )
        segments += [replace(row, attribute=attribute) for row in rows]
    known = {row["query"]: row for row in about.iter_rows(named=True)}

    def annotated(row: ChangedQuery) -> ChangedQuery:
        own = known[row.query]
        return replace(row, attributes={name: own[f"attribute.{name}"] or NONE for name in by}, text=own["text"])

    changed = []
    for ranker, own in of_rankers.items():
        found = changes((ranker, rule.baseline, measure), names, own, baseline, rule.queries)
        changed.append(replace(found, harmed=tuple(map(annotated, found.harmed)), helped=tuple(map(annotated, found.helped))))
    return SegmentsFound(measure, rule.baseline, rule.fewest, tuple(segments), tuple(changed))


_TriedOf = dict[tuple[str, tuple[str, ...], bool], tuple[Tried, ...]]
"""Values of features to try, which are found by looking through a whole data set: by its name, the features that a model reads, and whether it needs
all of them."""


def _looked_into(found: Changes, chosen: Sequence[Trained], tried: _TriedOf) -> Changes:
    """With the reasons for the worst pair of each of the queries that were harmed most, by the model that ranked it."""
    harmed = {row.query: row for row in found.harmed[:EXPLAINED]}
    for one in chosen:
        queries = open_queries(one.cell.data.test)
        own = [name for name in names_of(queries) if name in harmed] if one.ranker == found.ranker else []
        if own:
            model = ltr.load(CellFolder.of(one.result.key).model)
            if (key := (one.cell.data.test, model.names, model.needs_complete)) not in tried:
                tried[key] = values_to_try(model, queries)
            for name in own:
                try:
                    harmed[name] = replace(harmed[name], why=pair_of(model, queries, name, tried=tried[key]).text())
                except DataError:
                    continue  # all its documents have one score
    return replace(found, harmed=tuple(harmed.get(row.query, row) for row in found.harmed))


def _taken(paths: Sequence[str], measure: str) -> pl.DataFrame:
    """``query`` and ``value`` of the test queries, fold behind fold; NaN where undefined."""
    value = pl.col(measure).cast(pl.Float64).fill_null(float("nan")).alias("value")
    return pl.concat([read_values(path, "test").select("query", value) for path in paths])


def described(queries: Queries, by: Sequence[str], log: ClickLog | None = None) -> pl.DataFrame:
    """One row a query, by its name as stored values are: ``query``, ``text`` (null where not known, or no other than the name) and ``attribute.NAME`` of each
    attribute, all text; null where not known."""
    frame = pl.DataFrame({"query": names_of(queries), "documents": np.diff(queries.offsets)})
    if log:
        typed = frame.select(normalised("query")).join(typed_queries(log), on="query", how="left", maintain_order="left")
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
    left; other values stand by falling number of queries, among them codes that a number would not hold: with leading zeros, of many digits,
    or versions such as 1.10 beside 1.1. Queries without the attribute come last.
    """
    given = values.is_not_null().to_numpy()
    numbers = values.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    found: list[tuple[str, NDArray[np.bool_]]]
    texts = values.drop_nulls().cast(pl.String).str.replace(r"\.0*$", "")
    codes = texts.str.contains(r"^[+-]?0\d").any() or texts.n_unique() > len(np.unique(numbers[given]))
    long = (np.abs(numbers[given]) >= 2**53).any() and len(np.unique(numbers[given])) <= MOST_VALUES
    if codes or long or not np.isfinite(numbers[given]).all():
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


def _shown(number: float) -> str:
    """A number as people write it; ids of shops have more digits than measures."""
    return f"{number:.0f}" if number == np.floor(number) and abs(number) < 1e21 else f"{number:.10g}"


def _range(numbers: NDArray[np.float64]) -> str:
    low, high = map(_shown, (numbers.min(), numbers.max()))
    return low if low == high else f"{low}–{high}"


def contrast(
    masks: Sequence[tuple[str, NDArray[np.bool_]]],
    values: Mapping[str, NDArray[np.float64]],
    baseline: NDArray[np.float64],
    rules: tuple[int, float],
) -> list[SegmentRow]:
    """Rankers against a baseline in each segment of one attribute, which the rows do not name.

    Args:
        masks: the segments (`segments_of`).
        values, baseline: per-query values ``float64 [queries]``, NaN where undefined.
        rules: queries below which there is no test, and the lowest value that there can be.
    """
    rows = [_row(value, mask, ranker, own, baseline, rules) for value, mask in masks for ranker, own in values.items()]
    p_values = [row.p for row in rows if row.p is not None]
    adjusted = iter(significance.holm(p_values) if p_values else ())
    return [row if row.p is None else replace(row, holm_p=float(next(adjusted))) for row in rows]


def _row(
    value: str,
    mask: NDArray[np.bool_],
    ranker: str,
    own: NDArray[np.float64],
    baseline: NDArray[np.float64],
    rules: tuple[int, float],
) -> SegmentRow:
    both, (fewest, lowest) = mask & ~np.isnan(own - baseline), rules
    n = int(both.sum())
    mean, of_baseline, difference = (float(array[both].mean()) if n else None for array in (own, baseline, own - baseline))
    tested = significance.paired_t(own[both], baseline[both], lowest) if n >= fewest else None
    error, p = (tested.standard_error, tested.p_value) if tested else (None, None)
    return SegmentRow("", value, ranker, int(mask.sum()), n, mean, of_baseline, difference, error, p)


def changes(
    about: tuple[str, str, str], names: Sequence[str], values: NDArray[np.float64], baseline: NDArray[np.float64], most: int
) -> Changes:
    """The queries that a ranker harms and helps most, equal ones by name, `most` of each at most.

    Args:
        about: the ranker, the baseline and the key of the measure.
        names: of the queries; `values`, `baseline`: ``float64 [queries]``, NaN where undefined.
    """
    difference = np.round(values - baseline, 12)  # sums in another order differ by some 1e-16, which harms nobody
    gain = -difference if fewer_is_better(about[2]) else difference

    def listed(rows: NDArray[np.intp]) -> tuple[ChangedQuery, ...]:
        if len(rows) > most:  # of many queries few are sorted, with all that are as much changed as the last of these
            size = np.abs(gain[rows])
            rows = rows[size >= np.partition(size, -most)[-most]]
        order = sorted(rows.tolist(), key=lambda row: (-abs(gain[row]), names[row]))[:most]
        return tuple(ChangedQuery(names[k], float(values[k]), float(baseline[k]), float(difference[k])) for k in order)

    harmed, helped = np.flatnonzero(gain < 0), np.flatnonzero(gain > 0)
    return Changes(*about, listed(harmed), listed(helped), len(harmed), len(helped), int((gain == 0).sum()))


def changed_queries(stored: Sequence["Stored"], measure: str, most: int) -> list[Changes]:
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
            found.append(changes((ranker, baseline, measure), own["query"].to_list(), own["value"].to_numpy(), base, most))
    return found


def write_tables(found: SegmentsFound, folder: Path) -> list[Path]:
    """``segments.csv`` and ``changed-queries.csv``."""
    folder.mkdir(parents=True, exist_ok=True)
    segments = [{"measure": found.measure, "baseline": found.baseline, **asdict(row)} for row in found.segments]
    queries = [
        {
            **asdict(row),
            **{key: getattr(entry, key) for key in ("measure", "baseline", "ranker")},
            "effect": effect,
            "baseline_value": row.baseline,
            **{f"attribute.{name}": value for name, value in (row.attributes or {}).items()},
        }
        for entry in found.changed
        for effect, rows in (("harmed", entry.harmed), ("helped", entry.helped))
        for row in rows
    ]
    columns = [*CHANGED, *(f"attribute.{name}" for name in dict.fromkeys(row.attribute for row in found.segments))]
    paths = [folder / "segments.csv", folder / "changed-queries.csv"]
    for path, rows, names in zip(paths, (segments, queries), (SEGMENT, columns), strict=True):
        pl.DataFrame({name: [row.get(name) for row in rows] for name in names}, strict=False).write_csv(path)
    return paths
