"""How figures are drawn: as inline SVG, the same bytes for the same numbers; matplotlib is imported when the first one is drawn.

Text is shown as it is written: a ``$`` in a name begins no formula, and a control character is shown by its number.
"""

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ltr.metrics.measure import MEASURES, Measure
from tasks.records import printable

COLOURS = ("#22577a", "#d1603d", "#38a3a5", "#8d6a9f", "#6b705c", "#c9a227", "#4f86c6", "#a63d40", "#7fb069", "#3d348b")
INK = "#1b2430"
_STYLES = ("-", "--", ":", "-.")

Draw = Callable[[Any], None]
"""``draw(axes)`` on matplotlib's axes."""


def title_of(key: str) -> str:
    """``ndcg_10`` → ``NDCG@10``, ``map_binary`` → ``MAP:binary``: a measure by its key, in short."""
    name, cutoff, source = _parts(key)
    return f"{name.upper()}{cutoff}{source}"


def heading_of(key: str) -> str:
    """``err_10`` → ``Expected reciprocal rank@10``: a measure by its key, under the title that it is registered with."""
    name, cutoff, source = _parts(key)
    return f"{MEASURES[name].title if name in MEASURES else name.upper()}{cutoff}{source}"


def _parts(key: str) -> tuple[str, str, str]:
    """Name, ``@cutoff`` and ``:source`` of a measure's key; the latter two are empty where there is none."""
    if not any(f"{key}_".startswith(f"{name}_") for name in MEASURES):
        name, _, rest = key.rpartition("_") if key[-1].isdigit() else (key, "", "")
        return name, f"@{rest}" if rest else "", ""
    read = Measure.of_key(key)
    return read.name, f"@{read.cutoff}" if read.cutoff else "", f":{read.other_source}" if read.other_source else ""


def colour(k: int) -> str:
    """The colour of the k-th line."""
    return COLOURS[k % len(COLOURS)]


def line(k: int) -> dict[str, str]:
    """The colour and the style of the k-th line: where colours begin again, the style is another one."""
    return {"color": colour(k), "linestyle": _STYLES[k // len(COLOURS) % len(_STYLES)]}


def log_ticks(axis: Any, low: float, high: float) -> None:
    """Ticks of a logarithmic axis from `low` to `high`: at powers of ten, and where these are too few to read by, at round numbers between them."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    few = MaxNLocator(6, steps=(1, 2, 5, 10)) if high < 10 * low else LogLocator(subs=(1, 2, 5))
    axis.set_major_locator(LogLocator() if high >= 1000 * low else few)
    axis.set_major_formatter("{x:,.12g}")
    axis.set_minor_formatter("")


def whole_ticks(axis: Any) -> None:
    """Ticks at whole numbers only, for an axis that counts."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def titled(axes: Any, text: str) -> None:
    """Writes a title above the axes, across the figure, and on several lines where it is long; the figure grows by them."""
    lines = textwrap.wrap(text, 54, max_lines=4, placeholder=" …")
    figure = axes.figure
    figure.set_figheight(figure.get_figheight() + 0.17 * max(0, len(lines) - 1))
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontweight="bold", fontsize=10)


def name_bars(axes: Any, names: Sequence[str]) -> None:
    """Writes names beside horizontal bars, from the lowest; long ones on two lines, for which the figure grows."""
    wrapped = [textwrap.fill(name, 36, max_lines=2, placeholder=" …") for name in names]
    axes.set_yticks(range(len(names)), wrapped)
    if any("\n" in name for name in wrapped):
        axes.figure.set_figheight(axes.figure.get_figheight() + 0.15 * len(names))


def legend(axes: Any, lines: Mapping[str, Mapping[str, Any]] | None = None) -> None:
    """A legend below the axes, where it covers nothing; the figure grows by it. `lines`: labels with the looks of a line, in place of
    those of what was drawn."""
    from matplotlib.lines import Line2D

    # matplotlib's own list leaves out names that begin with "_"; what nobody has named is "_child0", "_child1", …
    drawn = (*axes.lines, *axes.patches, *axes.collections)
    handles = [one for one in drawn if not re.fullmatch(r"|_nolegend_|_child\d+", str(one.get_label()))]
    labels = [str(one.get_label()) for one in handles]
    if lines is not None:
        handles, labels = [Line2D([], [], **look) for look in lines.values()], list(lines)
    if not labels:
        return
    columns = max(1, min(len(labels), 84 // (max(map(len, labels)) + 8)))
    wrapped = [textwrap.fill(label, 76) for label in labels]
    rows = -(-len(labels) // columns) + sum(label.count("\n") for label in wrapped)
    figure = axes.figure
    figure.set_figheight(figure.get_figheight() + 0.19 * rows)
    figure.legend(handles, wrapped, loc="outside lower left", ncols=columns, frameon=False, fontsize=8)


def svg(draw: Draw) -> str:
    """A figure as inline SVG."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "lambdaflow",
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "text.parse_math": False,
        }
    ):
        figure = Figure(figsize=(5.6, 3.1), layout="constrained")
        draw(figure.add_subplot())
        out = io.StringIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # whoever shows the page has fonts of their own
            # `savefig` draws twice where there is a layout.
            FigureCanvasSVG(figure).print_svg(out, metadata={"Date": None, "Creator": None})
    return printable(out.getvalue()[out.getvalue().index("<svg") :])
