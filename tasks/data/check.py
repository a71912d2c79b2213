"""The data doctor: what is wrong, or worth knowing, about a data set before anything is trained on it."""

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.data.queries import Queries
from ltr.metrics.conventions import Conventions
from tasks.data.known_again import marks
from tasks.data.prepare import alike, identities, in_conflict
from tasks.records import RETRIEVED, DataError, Finding, Level, brought_together, number_of
from tasks.store.datasets import open_queries

ALIKE = 0.999
"""A feature whose correlation with a label is at least this encodes it."""
FEWEST, SAMPLE = 30, 20_000
"""Documents that a correlation needs, and at most looks at."""
_FEW_KNOWN, _OF_OWN = 50, 0.8
"""Documents, and categories a document, from which on a column of categories is told to be amounts or ids perhaps."""
_ROWS = 1 << 16
"""That are looked at together, where all would fill the memory."""
VANISHING_LABEL = 30
"""2^label − 1 of larger labels leaves nothing of the others in a sum."""
FORMULA = re.compile(rb"[=+@\t\r]|-(?![\d.]+$)")
Say = Callable[[Level, str], None]


@task(cache_policy=NO_CACHE, name="check", task_run_name="check {label}")
def check(name: str, split_queries: int = 0, label: str = "data", conventions: Conventions | None = None) -> list[Finding]:
    """Findings about a stored data set."""
    rules = conventions or Conventions()
    return findings(open_queries(name), split_queries, label, rules)


def findings(
    queries: Queries, split_queries: int = 0, subject: str = "data", conventions: Conventions | None = None
) -> list[Finding]:
    """Everything the doctor has to say about one data set."""
    found: list[Finding] = []
    rules = conventions or Conventions()

    def say(level: Level, text: str) -> None:
        found.append(Finding(level, subject, text))

    labels, sizes = queries.labels, np.diff(queries.offsets)
    say(
        "note",
        f"{number_of(queries.n_queries, 'query')}, {number_of(queries.n_documents, 'document')}, "
        f"{number_of(queries.n_features, 'feature')}; labels {_counts(labels)}",
    )
    if split_queries:
        say("warning", brought_together(split_queries))
    if not (np.nan_to_num(labels) > 0).any():
        say("error", "no document anywhere has a label above 0: there is nothing to learn or to measure")
    else:
        say(*_relevance(queries, rules))
    if rules.gain == "exp2" and (labels > VANISHING_LABEL).any():
        where = _query_of(queries, int(np.flatnonzero(labels > VANISHING_LABEL)[0]))
        say(
            "error",
            f"label {np.nanmax(labels):g} (query {where}): for labels above {VANISHING_LABEL}, gains of 2^label − 1 make small labels negligible; rescale the labels or set conventions.gain: linear",
        )
    single = int((sizes == 1).sum())
    if single:
        say(
            "warning",
            f"{number_of(single, 'query')} with one document: nothing to rank, and the same value for every model ({_examples(queries, sizes == 1)})",
        )
    sources = [labels, *(values for name, values in queries.sources.items() if name != RETRIEVED)]
    counted = sources if rules.unlabelled == "condensed" else [np.nan_to_num(values) for values in sources]
    flat = _with_one_label(queries, labels) & (sizes > 1)
    if (labels > 0).any() and all(_with_one_label(queries, values).all() for values in counted):
        say("error", "in every query all documents have the same label: no ranking is better than another")
    elif all(_with_one_label(queries, values).all() for values in sources):
        say(
            "warning",
            "within each query all judged documents have the same label, so pairwise training has no pairs; label the non-relevant documents 0",
        )
    elif flat.any():
        say(
            "note", f"{number_of(int(flat.sum()), 'query')} with one label only: no pair to learn from ({_examples(queries, flat)})"
        )
    if np.isnan(labels).any():
        say("note", f"{number_of(int(np.isnan(labels).sum()), 'document')} without a label")
    _look_at_features(queries, say)
    _look_at_duplicates(queries, say)
    _look_at_ids(queries, say)
    return found


def seldom_twice(names: Sequence[str], categorical: Sequence[str]) -> list[Finding]:
    """A warning for each column of categories that hardly ever occur twice in stored data sets, counted in all of them together: few rows of one
    have many categories that are frequent in another."""
    found: list[Finding] = []
    sets = [open_queries(name) for name in names] if categorical else []
    for column in categorical:
        values = np.concatenate(
            [np.empty(0, np.float32), *(one.features[:, one.names.index(column)] for one in sets if column in one.names)]
        )
        known = values[~np.isnan(values)]
        several = len(np.unique(known))
        if len(known) >= _FEW_KNOWN and several >= _OF_OWN * len(known):
            told = f"{column!r} has {several:,} categories in {len(known):,} documents, so little can be learned from any of them"
            way = "if they are amounts or ids, take the column out of data.categorical"
            found.append(Finding("warning", "categorical", f"{told}; {way}"))
    return found


def _relevance(queries: Queries, rules: Conventions) -> tuple[Level, str]:
    """Which labels binary measures call relevant, and a warning where that is none, all, or only the largest of several."""
    threshold, given = rules.threshold, queries.labels[~np.isnan(queries.labels)]
    relevant, values = given >= threshold, np.unique(given)
    above, below = values[values >= threshold], values[(values < threshold) & (values > 0)]
    if not len(above):
        binary = f"the largest label is {values[-1]:g}, but binary measures (MAP, MRR, …) count only labels of {threshold:g} or more as relevant"
        return "warning", f"{binary}; set conventions.threshold: {below[0]:g} unless other sets of the run have such labels"
    with_one = int(np.logical_or.reduceat(queries.labels >= threshold, queries.offsets[:-1]).sum())
    told = (
        f"binary measures (MAP, MRR, …) count a label of {threshold:g} or more as relevant (conventions.threshold): {'label' if len(above) == 1 else 'labels'} {_listed(above)}: "
        f"{relevant.sum():,} of {number_of(len(given), 'judged document')}, in {with_one:,} of {number_of(queries.n_queries, 'query')}"
    )
    if relevant.all() and (len(given) == queries.n_documents or rules.unlabelled == "condensed"):
        return (
            "warning",
            f"{told}; that is all of them, so all rankings have the same value: set a larger conventions.threshold",
        )
    if len(above) == 1 and len(below):
        which = f"label {_listed(below)} is" if len(below) == 1 else f"labels {_listed(below)} are"
        return (
            "warning",
            f"{told}; that is the largest label alone: set conventions.threshold: {below[0]:g} if {which} relevant too",
        )
    return "note", told


def _listed(values: NDArray[np.float64]) -> str:
    return ", ".join(f"{value:g}" for value in values) if len(values) <= 8 else f"{values[0]:g} to {values[-1]:g}"


def leaking_features(queries: Queries) -> dict[str, NDArray[np.bool_]]:
    """Of each label source that some features encode, which do, ``bool [features]``: |correlation| of at least `ALIKE`."""
    found = {
        source: _correlations(queries.features, labels) >= ALIKE
        for source, labels in (("label", queries.labels), *queries.sources.items())
    }
    return {source: which for source, which in found.items() if which.any()}


def shared_queries(one: Queries, other: Queries, subject: str, among: str) -> list[Finding]:
    """An error where a query is in both: the test would be on what was learned. A warning where it is under another id, as far as features tell."""
    shared, twins = np.isin(marks(other), marks(one)).T
    twins = twins & ~shared
    found = []
    if n := int(shared.sum()):
        text = f"{number_of(n, 'query')} also in {among}, so that results on them would be too good ({_examples(other, shared)})"
        found.append(Finding("error", subject, text))
    if n := int(twins.sum()):
        who = f"{number_of(n, 'query')} with the same features as {'one' if n == 1 else 'some'} of {among}, under {'another id' if n == 1 else 'other ids'}"
        text = f"{who}: {'if it is the same, results on it are' if n == 1 else 'if they are the same, results on them are'} too good ({_examples(other, twins)})"
        found.append(Finding("warning", subject, text))
    return found


def refuse(found: Sequence[Finding]) -> None:
    """Raises the errors among the findings, if any, in one."""
    errors = [f"{finding.subject}: {finding.text}" for finding in found if finding.level == "error"]
    if errors:
        raise DataError("\n".join(errors))


def _look_at_features(queries: Queries, say: Say) -> None:
    features = queries.features
    if queries.n_features == 0:
        say("error", "there are no features")
        return
    low, high = np.fmin.reduce(features, axis=0), np.fmax.reduce(features, axis=0)
    infinite = np.isinf(low) | np.isinf(high)
    if infinite.any():
        row = int(np.flatnonzero(np.isinf(features[:, np.argmax(infinite)]))[0])
        say(
            "error",
            f"feature {queries.names[int(np.argmax(infinite))]} is infinite, or beyond 3.4e38 (float32) (query {_query_of(queries, row)}); "
            f"{number_of(int(infinite.sum()), 'feature')} in all",
        )
    missing = sum(np.isnan(features[first : first + _ROWS]).sum(axis=0) for first in range(0, len(features), _ROWS))
    if missing.any():
        share = missing.sum() / features.size
        say("note", f"{share:.1%} of the feature values are missing, in {number_of(int((missing > 0).sum()), 'feature')}")
    constant = ~(low < high)
    if constant.any():
        say("note", f"{number_of(int(constant.sum()), 'constant feature')}: {_names(queries, constant)}")
    for source, which in leaking_features(queries).items():
        say(
            "warning",
            f"features that (nearly) equal the {source}: {_names(queries, which)}; a run drops what does so on the training queries, unless data.drop_telling is false",
        )


def _look_at_duplicates(queries: Queries, say: Say) -> None:
    for what, content in identities(queries).items():
        order, starts = alike(queries, content)
        again = np.delete(order, starts)
        if not len(again):
            continue
        conflicting = int(in_conflict(queries, content).sum())
        first = _query_of(queries, int(again[0]))
        duplicate = "duplicates" if len(again) == 1 else "duplicate"
        more = f"; data.clean drops {number_of(conflicting, 'document')} whose labels differ" if conflicting else ""
        say(
            "warning",
            f"{number_of(len(again), 'document')} {duplicate} the {what} of another document of the same query (e.g. query {first}){more}",
        )


def _look_at_ids(queries: Queries, say: Say) -> None:
    """Ids that a spreadsheet would take for formulas: they are kept as they are, and so is every file that they are written into."""
    for kind, ids in (("query", queries.ids), ("document", queries.documents)):
        if ids is not None and len(found := [one for one in np.unique(ids).tolist() if FORMULA.match(one)]):
            say(
                "note",
                f"{number_of(len(found), f'{kind} id')} that a spreadsheet takes for a formula (e.g. {found[0].decode('utf-8', 'replace')[:40]!r}); "
                "ids are written into CSV files as they are: import such a column as text",
            )


def _correlations(features: NDArray[np.float32], labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """How closely each feature follows the labels, ``float64 [features]``: the larger of |Pearson's| and |Spearman's| correlation over
    documents that have both, `SAMPLE` of them at most, evenly taken; 0 for fewer than `FEWEST`, or where it is undefined."""
    judged = np.flatnonzero(~np.isnan(labels))
    judged = judged[:: max(1, -(-len(judged) // SAMPLE))]
    correlations = np.zeros(features.shape[1])
    for k in range(features.shape[1]):
        x = features[judged, k].astype(np.float64)
        both = np.isfinite(x)
        x, y = x[both], labels[judged][both]
        if both.sum() >= FEWEST and x.min() < x.max() and y.min() < y.max():
            ranks = _ranks(x), _ranks(y)
            correlations[k] = max(abs(np.corrcoef(x, y)[0, 1]), abs(np.corrcoef(*ranks)[0, 1]))
    return correlations


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1, equal values share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks


def _with_one_label(queries: Queries, labels: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which queries have no two documents with different labels, ``bool [queries]``."""
    least, most = (_per_query(queries, labels, per) for per in (np.fmin.reduceat, np.fmax.reduceat))
    same: NDArray[np.bool_] = (least == most) | np.isnan(least)
    return same


def _per_query(queries: Queries, values: NDArray[np.float64], reduceat: Callable[..., NDArray[np.float64]]) -> NDArray[np.float64]:
    return reduceat(values, queries.offsets[:-1])


def _counts(labels: NDArray[np.float64]) -> str:
    values, counts = np.unique(labels[~np.isnan(labels)], return_counts=True)
    if len(values) > 8:
        return f"from {values[0]:g} to {values[-1]:g}"
    return ", ".join(f"{value:g}: {count:,}" for value, count in zip(values, counts, strict=True))


def _query_of(queries: Queries, row: int) -> str:
    q = int(np.searchsorted(queries.offsets, row, side="right")) - 1
    return str(q + 1) if queries.ids is None else queries.ids[q].decode("utf-8", "backslashreplace")


def _examples(queries: Queries, which: NDArray[np.bool_]) -> str:
    picked = np.flatnonzero(which)[:3]
    names = [_query_of(queries, int(queries.offsets[q])) for q in picked]
    return "query " + ", ".join(names) + (" …" if which.sum() > 3 else "")


def _names(queries: Queries, which: NDArray[np.bool_]) -> str:
    picked = [queries.names[k] for k in np.flatnonzero(which)]
    return ", ".join(picked[:6]) + (f" and {len(picked) - 6} more" if len(picked) > 6 else "")
