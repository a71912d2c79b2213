"""How figures are drawn: as inline SVG, the same bytes for the same numbers; matplotlib is imported when the first one is drawn."""

import io
from collections.abc import Callable
from typing import Any

COLOURS = ("#22577a", "#d1603d", "#38a3a5", "#8d6a9f", "#6b705c", "#c9a227")
INK = "#1b2430"

Draw = Callable[[Any], None]
"""``draw(axes)`` on matplotlib's axes."""


def title_of(key: str) -> str:
    """``ndcg_10`` → ``NDCG@10``, as people write it."""
    name, _, rest = key.rpartition("_") if key[-1].isdigit() else (key, "", "")
    return f"{name.upper()}@{rest}" if rest else key.upper()


def colour(k: int) -> str:
    """The colour of the k-th line."""
    return COLOURS[k % len(COLOURS)]


def svg(draw: Draw) -> str:
    """A figure as inline SVG."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib.figure import Figure

    with matplotlib.rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "lambdaflow", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    ):
        figure = Figure(figsize=(5.6, 3.3), layout="constrained")
        draw(figure.add_subplot())
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()[out.getvalue().index("<svg") :]
