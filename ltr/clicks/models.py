"""The click models by name, and which of them a log bears."""

from collections.abc import Callable

from ltr.clicks import chains, looks
from ltr.clicks.click_model import ClickModel, Settings
from ltr.clicks.pages import Pages

Fit = Callable[[Pages, str, Settings, int], ClickModel]
MODELS: dict[str, Fit] = {
    "rctr": looks.fit, "dctr": looks.fit, "cascade": chains.fit, "pbm": looks.fit,
    "dcm": chains.fit, "sdbn": chains.fit, "ubm": looks.fit, "ccm": chains.fit,
}  # fmt: skip
"""How each is fitted."""
NEED_TIES = ("pbm", "ubm")
"""Models that tell positions from documents by documents that were shown at several ranks, and by nothing else."""


def fit(pages: Pages, name: str, settings: Settings | None = None, n_ranks: int = 0) -> ClickModel:
    """The model `name` of these pages.

    Args:
        pages: what was shown and clicked.
        name: one of `MODELS`.
        settings: those of `Settings()` where none are given.
        n_ranks: the deepest rank that the model is to know, where pages that it is asked of later go deeper than these.

    Raises:
        ValueError: for an unknown name, pages without a click, and where the log cannot tell positions from documents, which `NEED_TIES`.
    """
    if name not in MODELS:
        raise ValueError(f"{name!r} is unknown; choose from: {', '.join(MODELS)}")
    if not pages.click.any():
        raise ValueError("no click in the log: there is nothing to fit a click model to")
    if name in NEED_TIES and looks.tied_ranks(pages).sum() < 2:
        raise ValueError(
            f"{name}: no two ranks are tied by documents clicked at one and shown at the other, so position bias cannot be separated from relevance"
        )
    return MODELS[name](pages, name, settings or Settings(), max(n_ranks, pages.n_ranks))
