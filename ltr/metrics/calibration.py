"""What people would say of documents that a machine labelled: the confusion between the two, learned where both judged.

P(people say y | the machine says m) is the share of y among the documents of m that people judged, smoothed twice: a group of queries is drawn
to all queries as if it had `group` such documents more, and those to what people say at large, whatever the machine does, as if there were
`plain` more (a Dirichlet prior each). Both numbers, and whether the groups count at all, are chosen by the likelihood of people's labels that
were held out; where it is gains that are wanted, `plain` by the squared error of gains held out instead. A likelihood shuns labels that were
not seen yet, and draws what it has few of to what is common so strongly that their gains come out far too low: where 3 in 100 documents
are relevant and people judged 1,000, a machine's highest label, worth 3.4, came out at 1.1 in the mean of 60 draws. Dawid & Skene (1979) have the confusion of judges whose truth nobody knows, and crowd-kit and cleanlab compute that; here people
are the truth where they judged.

What a document that people did not judge is worth is the mean of the gain over this confusion, Σ P(y | m) · gain(y), which is not the gain of
the mean label where gains rise faster than labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.data.arrays import floats_of, ints_of, shown
from ltr.data.brief import Brief
from ltr.kernels.kernel import Floats, Ints
from ltr.metrics.conventions import Conventions
from ltr.metrics.gains import graded, label_worth

PARTS = 10
"""Into which the judged documents are cut to choose by."""
MOST_KINDS = 50
"""Different labels of a machine, beyond which they are no scale."""
ROUNDING = 1e-9
"""A likelihood is no higher than another by less than such a share of it."""
STRENGTHS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Documents that either drawing is worth."""


@dataclass(frozen=True)
class Confusion(Brief):
    """What people say where a machine says something.

    Attributes:
        machine, people: their labels, rising, ``float64 [kinds]`` and ``[levels]``.
        shares: P(people say y | the machine says m) ``float64 [1 + groups, kinds, levels]``; the first table is that of all queries.
        at_large: what people say, whatever the machine does, ``float64 [levels]``.
        by: by which attribute queries are grouped; none where the groups do not pay.
        groups: their values, by the table that is theirs.
        plain, group: documents that a machine's label is drawn by to people's labels at large, and a group to all queries.
        judged: documents that both judged.
        likelihood: mean log-likelihood of people's labels held out, in nats a label: of the machine's labels calibrated by each attribute
            that was tried, ``""`` for all queries alike.
    """

    machine: Floats
    people: Floats
    shares: Floats
    at_large: Floats
    by: str
    groups: Mapping[str, int]
    plain: float
    group: float
    judged: int
    likelihood: Mapping[str, float]

    def of(self, machine: ArrayLike, attributes: Mapping[str, NDArray[np.str_]]) -> Floats:
        """What people would say of documents ``float64 [documents, levels]``: each row sums to 1.

        Args:
            machine: its labels ``[documents]``, none of them missing.
            attributes: of each document's query, ``str [documents]`` by name; `by` among them.

        Raises:
            ValueError: for a label that the machine had not given before, and attributes without `by`, or of another number of documents.
        """
        labels = floats_of("machine", machine)
        kinds = np.searchsorted(self.machine, labels).clip(max=len(self.machine) - 1)
        if (strange := self.machine[kinds] != labels).any():
            raise ValueError(
                f"calibration: the machine's label {labels[strange][0]:g} was not among those that it was calibrated on"
            )
        if not self.by:
            return np.asarray(self.shares[0][kinds])
        if self.by not in attributes or len(attributes[self.by]) != len(labels):
            given = f"that of {len(attributes[self.by])}" if self.by in attributes else "none"
            raise ValueError(
                f"calibration: shares differ by {self.by!r}: attributes says that of each of {len(labels)} documents' queries; given: {given}"
            )
        tables = np.array([self.groups.get(name, 0) for name in attributes[self.by].tolist()], np.int64)
        return np.asarray(self.shares[tables, kinds])


def calibrate(
    people: ArrayLike,
    machine: ArrayLike,
    attributes: Mapping[str, NDArray[np.str_]] | None = None,
    query: ArrayLike | None = None,
    seed: int = 1,
    gain: Callable[[Floats], Floats] | None = None,
) -> Confusion:
    """The confusion between people and a machine, from all documents that the machine labelled.

    Documents are held out as people's labels are missing: by whole queries, where most documents without one are of queries without any, and
    one by one otherwise.

    Args:
        people: labels ``[documents]``, NaN where they did not judge.
        machine: labels ``[documents]``, none missing.
        attributes: by which queries may be grouped, of each document's query, ``str [documents]`` by name; empty is "not known", and in no group.
        query: of each document, whole numbers ``[documents]``; needed to hold out whole queries.
        seed: of the parts.
        gain: of people's labels ``[levels]``, where their mean is what is wanted: `plain` is then the one whose mean gains are nearest to those
            held out. Left out, labels held out are to be likely.

    Raises:
        ValueError: for shapes that differ, labels or gains that are not finite, fewer than two judged documents, or more than `MOST_KINDS` labels.
    """
    y, m = floats_of("people", people), floats_of("machine", machine)
    groupings = {name: np.asarray(values, np.str_) for name, values in (attributes or {}).items()}
    if any(array.shape != y.shape for array in (m, *groupings.values())):
        raise ValueError(f"calibration: people, machine and attributes of shapes {y.shape} and {m.shape}; all are [documents]")
    queries = None if query is None else ints_of("query", query)
    if queries is not None and queries.shape != y.shape:
        raise ValueError(f"calibration: query of shape {queries.shape} for {len(y)} documents")
    if not np.isfinite(m).all() or np.isinf(y).any():
        raise ValueError("calibration: a label of the machine's is missing, or a label is infinite")
    judged = ~np.isnan(y)
    n = int(judged.sum())
    if n < 2:
        raise ValueError(
            f"calibration: people judged {n} document{'' if n == 1 else 's'} that the machine labelled; two are needed"
        )
    labels = [np.unique(values) for values in (m, y[judged])]
    if max(map(len, labels)) > MOST_KINDS:
        raise ValueError(f"calibration: {max(map(len, labels)):,} different labels; up to {MOST_KINDS} are a scale: round them")
    kinds, levels = (np.searchsorted(known, values[judged]) for known, values in zip(labels, (m, y), strict=True))
    sizes = (len(labels[0]), len(labels[1]))
    gains = None if gain is None else np.asarray(gain(labels[1]), np.float64)
    if gains is not None and (gains.shape != labels[1].shape or not np.isfinite(gains).all()):
        raise ValueError(f"calibration: gain gave {shown(gains)}; expected a finite number for each of {len(labels[1])} labels")
    part = _parts(judged, queries, seed)
    counts = np.array([_counted(kinds[part == k], levels[part == k], sizes) for k in range(part.max() + 1)])
    plain, best = _best_plain(counts, gains)
    chosen = _Choice("", {}, np.inf, best)
    likelihood = {"": best / n}
    for name, values in groupings.items():
        tried = _grouped(name, values[judged], (kinds, levels, part), sizes, plain)
        likelihood[name] = tried.likelihood / n
        if tried.likelihood > chosen.likelihood + ROUNDING * abs(chosen.likelihood):
            chosen = tried
    whole = counts.sum(axis=0)
    shares = smoothed(whole, plain)[None]
    if chosen.by:
        of_group = np.array([chosen.groups.get(name, 0) for name in groupings[chosen.by][judged].tolist()])
        own = _counted(kinds + of_group * sizes[0], levels, ((len(chosen.groups) + 1) * sizes[0], sizes[1])).reshape(-1, *sizes)
        shares = np.concatenate((shares, drawn_to(own[1:], shares[0], chosen.group)))
    return Confusion(labels[0], labels[1], shares, _at_large(whole), chosen.by, chosen.groups, plain, chosen.group, n, likelihood)


def expected_gains(shares: Floats, gains: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the gain of documents, ``float64 [documents]`` each.

    Args:
        shares: what people would say, ``float64 [documents, levels]`` (`Confusion.of`).
        gains: of each level ``float64 [levels]``.
    """
    mean = shares @ gains
    return mean, np.maximum(shares @ gains**2 - mean**2, 0.0)


def confidence(variance: Floats, confusion: Confusion, gains: Floats) -> Floats:
    """How much documents whose gains have this variance count, ``float64 [documents]`` in (0, 1]: 1 where the gain is sure, and 1/2 where it varies
    as much as people's gains do at large; `gains` as of `expected_gains`."""
    overall = expected_gains(confusion.at_large[None], gains)[1][0]
    weights: Floats = 1.0 / (1.0 + variance / overall) if overall > 0 else np.ones(len(variance))
    return weights


def expected_labels(confusion: Confusion, shares: Floats, conventions: Conventions) -> tuple[Floats, Floats]:
    """The labels that are worth the expected gain, and how much each document counts (`confidence`); ``float64 [documents]`` each.

    Args:
        shares: what people would say of the documents (`Confusion.of`).
        conventions: which say what a label gains.
    """
    gains = graded(confusion.people, conventions)
    mean, variance = expected_gains(shares, gains)
    return label_worth(mean, conventions), confidence(variance, confusion, gains)


def smoothed(counts: Floats, plain: float) -> Floats:
    """Shares of people's labels by the machine's, ``float64 [kinds, levels]``, from counts of the same shape."""
    return drawn_to(counts, _at_large(counts), plain)


def _at_large(counts: Floats) -> Floats:
    """Shares of people's labels, ``float64 [levels]``, of which none is 0."""
    shares: Floats = (counts.sum(axis=0) + 1 / counts.shape[1]) / (counts.sum() + 1)
    return shares


def drawn_to(counts: Floats, shares: Floats, strength: float) -> Floats:
    """Shares of counts ``[…, levels]`` that are drawn to others as if there were `strength` documents of those more."""
    drawn: Floats = (counts + strength * shares) / (counts.sum(axis=-1, keepdims=True) + strength)
    return drawn


@dataclass(frozen=True)
class _Choice:
    by: str
    groups: Mapping[str, int]
    group: float
    likelihood: float


def _counted(kinds: Ints, levels: Ints, sizes: tuple[int, int]) -> Floats:
    """How often a kind has a level, ``float64 [kinds, levels]``."""
    return np.bincount(kinds * sizes[1] + levels, minlength=sizes[0] * sizes[1]).reshape(sizes).astype(np.float64)


def _parts(judged: NDArray[np.bool_], query: Ints | None, seed: int) -> Ints:
    """Of each judged document the part that it is held out with."""
    unit = np.arange(int(judged.sum()))
    if query is not None and not judged.all():
        known, of_query = np.unique(query[judged], return_inverse=True)
        if len(known) > 1 and np.isin(query[~judged], known).mean() < 0.5:
            unit = of_query
    n = int(unit.max()) + 1
    return (np.random.default_rng(seed).permutation(n) % min(PARTS, n))[unit]


def _best_plain(counts: Floats, gains: Floats | None) -> tuple[float, float]:
    """The best drawing to people's labels at large, and the log-likelihood of the parts held out with it; `counts` ``[parts, kinds, levels]``. Best is
    what comes nearest to the `gains` of the levels, where they are given, and what is likeliest otherwise."""
    whole = counts.sum(axis=0)

    def likelihood(plain: float) -> float:
        return sum(float((part * np.log(smoothed(whole - part, plain))).sum()) for part in counts)

    if gains is None:
        best = max(STRENGTHS, key=likelihood)
    else:
        shares = gains / gains.max() if gains.max() > 0 else gains
        best = min(STRENGTHS, key=lambda plain: _squared_error(counts, plain, shares))
    return best, likelihood(best)


def _squared_error(counts: Floats, plain: float, gains: Floats) -> float:
    """Of the gains of the parts held out, less those expected of their documents; `counts` as of `_best_plain`."""
    whole = counts.sum(axis=0)
    return sum(float((part * (gains - (smoothed(whole - part, plain) @ gains)[:, None]) ** 2).sum()) for part in counts)


def _grouped(name: str, values: NDArray[np.str_], table: tuple[Ints, Ints, Ints], sizes: tuple[int, int], plain: float) -> _Choice:
    """The best drawing of the groups of one attribute to all queries; `table` holds kinds, levels and parts of the judged documents."""
    kinds, levels, part = table
    names = [value for value in np.unique(values).tolist() if value]
    groups = {value: k for k, value in enumerate(names, 1)}
    of_group = np.array([groups.get(value, 0) for value in values.tolist()])
    row, flat = of_group * sizes[0] + kinds, ((len(names) + 1) * sizes[0], sizes[1])
    whole = _counted(row, levels, flat)
    found = dict.fromkeys(STRENGTHS, 0.0)
    for k in range(part.max() + 1):
        held = part == k
        left = (whole - _counted(row[held], levels[held], flat)).reshape(-1, *sizes)
        everyone = smoothed(left.sum(axis=0), plain)
        left[0] = 0.0  # of queries whose group is not known all are asked
        for strength in STRENGTHS:
            shares = drawn_to(left, everyone, strength)
            found[strength] += float(np.log(shares[of_group[held], kinds[held], levels[held]]).sum())
    best = max(found, key=lambda strength: found[strength])
    return _Choice(name, groups, best, found[best])
