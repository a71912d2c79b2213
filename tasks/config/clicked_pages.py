"""Judged training queries as users would have clicked them: the section ``data.clicked_pages`` of a configuration."""

from typing import Annotated

from pydantic import Field, model_validator

from tasks.config.section import Strict

LOOKS = (0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06)
"""How often the first ten results are looked at, from eye tracking (Joachims et al. 2005)."""
Share = Annotated[float, Field(gt=0, le=1)]


class ClickedPages(Strict):
    """The field's protocol for learning from clicks (Ai et al. 2018, ULTRA): what rankers learn from are pages that simulated users of the
    position-based model clicked; validation and test queries stay judged.

    A linear RankSVM that learned from a `share` of the training queries orders `per_query` pages of each, as long as there are `looks`, plus a
    normal draw of standard deviation `jitter` for each page. Users look at rank r with ``looks[r] ** eta`` and click what they look at with
    `noise` + (1 − `noise`)(2^y − 1)/(2^y_max − 1). Every page is a query then: a click is its label, and ``position`` the label source that
    holds the ranks, from 1.
    """

    per_query: int = Field(32, ge=1)
    looks: tuple[Share, ...] = Field(LOOKS, min_length=1)
    eta: float = Field(1.0, ge=0)
    noise: float = Field(0.1, ge=0, lt=1)
    jitter: float = Field(0.0, ge=0)
    share: Share = 0.01
    seed: int = Field(1, ge=0, lt=1 << 53)

    @model_validator(mode="after")
    def _check(self) -> "ClickedPages":
        if any(later > earlier for earlier, later in zip(self.looks[:-1], self.looks[1:], strict=True)):
            raise ValueError(f"looks {list(self.looks)}: a rank cannot be examined more often than the one before it")
        return self
