"""Result pages as columns: what was shown at which rank, and what was clicked."""

from dataclasses import dataclass, replace

import numpy as np

from ltr.data.brief import Brief
from ltr.data.offsets import group_of_rows, offsets_from_sizes
from ltr.kernels.kernel import Array, Bools, Ints

DEEPEST = 100
"""Ranks below are no result page's; tables by rank and rank of the last click would grow with the square of it."""


@dataclass(frozen=True)
class Pages(Brief):
    """Result pages, one after the other.

    Attributes:
        offsets: ``int64 [pages + 1]``, where each page begins.
        pair: ``int64 [results]`` from 0: what was shown, one number for each pair of query and document.
        rank: ``int64 [results]`` from 1, rising within a page; a rank may be left out.
        click: ``bool [results]``.
        query: ``int64 [pairs]`` from 0, whose the pair is.

    Raises:
        ValueError: naming the array, the value and the rule, where these do not fit.
    """

    offsets: Ints
    pair: Ints
    rank: Ints
    click: Bools
    query: Ints

    def __post_init__(self) -> None:
        for name in ("offsets", "pair", "rank", "query"):
            given = np.ascontiguousarray(getattr(self, name))
            if given.ndim != 1 or given.dtype.kind not in "iu":
                raise ValueError(f"{name}: whole numbers in one dimension, not {given.dtype} {given.shape}")
            object.__setattr__(self, name, given.astype(np.int64, copy=False))
        object.__setattr__(self, "click", np.ascontiguousarray(self.click).astype(np.bool_, copy=False))
        n = len(self.pair)
        for name in ("rank", "click"):
            if getattr(self, name).shape != (n,):
                raise ValueError(f"{name}: shape {getattr(self, name).shape}, but pair has {n} results")
        sizes = np.diff(self.offsets)
        if len(self.offsets) < 2 or self.offsets[0] != 0 or self.offsets[-1] != n or (sizes <= 0).any():
            raise ValueError(f"offsets: must rise from 0 to the {n} results, and a page must have at least one")
        self._within("pair", self.pair, 0, len(self.query) - 1)
        self._within("rank", self.rank, 1, DEEPEST)
        if len(self.query) and self.query.min() < 0:
            raise ValueError(f"query: {self.query.min()}; numbers must count from 0")
        rises = np.diff(self.rank) > 0
        rises[self.offsets[1:-1] - 1] = True
        if not rises.all():
            at = int(np.argmin(rises))
            raise ValueError(f"rank: {self.rank[at + 1]} follows {self.rank[at]} in one page; ranks must rise")

    def _within(self, name: str, values: Array, lowest: int, highest: int) -> None:
        wrong = (values < lowest) | (values > highest)
        if wrong.any():
            raise ValueError(f"{name}: {values[np.argmax(wrong)]}, expected {lowest} to {highest}")

    @property
    def n_pages(self) -> int:
        """How many pages there are, one less than `offsets`."""
        return len(self.offsets) - 1

    @property
    def n_ranks(self) -> int:
        """The deepest rank of any page."""
        return int(self.rank.max())

    @property
    def n_queries(self) -> int:
        """How many queries the pairs are of."""
        return int(self.query.max()) + 1

    def of_page(self) -> Ints:
        """Which page each result is of, ``int64 [results]``."""
        return group_of_rows(self.offsets)

    def depth(self) -> Ints:
        """The deepest rank of each page, ``int64 [pages]``; ranks rise within one."""
        return self.rank[self.offsets[1:] - 1]

    def query_of_page(self) -> Ints:
        """Which query each page is of, ``int64 [pages]``."""
        return self.query[self.pair[self.offsets[:-1]]]

    def clicked(self, click: Bools) -> "Pages":
        """The same pages with other clicks."""
        return replace(self, click=click)

    def select(self, kept: Bools) -> "Pages":
        """The pages where ``kept [pages]`` is true; pairs and queries keep their numbers.

        Raises:
            ValueError: where none is.
        """
        if not kept.any():
            raise ValueError("no page is left")
        rows = np.repeat(kept, np.diff(self.offsets))
        offsets = offsets_from_sizes(np.diff(self.offsets)[kept])
        return Pages(offsets, self.pair[rows], self.rank[rows], self.click[rows], self.query)
