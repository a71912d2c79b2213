"""Drawing: titles as people write them, and the same bytes for the same figure."""

import sys
from types import ModuleType

import pytest

from ltr.metrics.measure import MEASURES
from tasks.evidence import drawing
from tasks.evidence.drawing import colour, heading_of, legend, line, log_ticks, name_bars, svg, title_of, titled, whole_ticks
from tests.conftest import undrawing


def test_titles_as_people_write_them():
    keys = ("ndcg_10", "map", "cndcg_3", "jk_ndcg_3", "map_binary")
    assert [title_of(key) for key in keys] == ["NDCG@10", "MAP", "CNDCG@3", "JK_NDCG@3", "MAP:binary"]
    assert [title_of(key) for key in ("ndcg_10_click", "seen_3", "seen", "ndcg_click_2")] == [
        "NDCG@10:click",
        "SEEN@3",
        "SEEN",
        "NDCG:click_2",
    ]


def test_headings_are_the_titles_of_the_measures():
    keys = ("ndcg_10", "map", "err_10", "p_3_binary")
    titles = [MEASURES[name].title for name in ("ndcg", "map", "err", "p")]
    assert [heading_of(key) for key in keys] == [f"{titles[0]}@10", titles[1], f"{titles[2]}@10", f"{titles[3]}@3:binary"]
    assert heading_of("seen_3") == "SEEN@3"


def test_a_figure_is_inline_and_the_same_bytes_twice():
    def draw(axes):
        axes.plot([0, 1], [1, 0], label="a <b>")
        axes.legend()

    first = svg(draw)
    assert first.startswith("<svg")
    assert "a &lt;b&gt;" in first
    assert svg(draw) == first


def test_what_is_imported_while_figures_are_not_drawn_draws_afterwards(monkeypatch):
    late = ModuleType("late")
    with undrawing():
        monkeypatch.setitem(sys.modules, "tasks.late", late)
        late.svg = drawing.svg
        assert late.svg(None) == "<svg></svg>"
    assert late.svg is drawing.svg is svg


def test_colours_begin_again_and_lines_do_not():
    assert colour(0) == colour(10) != colour(6)
    assert len({tuple(line(k).values()) for k in range(40)}) == 40


@pytest.mark.parametrize("values", [(12.0, 15.0), (900.0, 1100.0), (1500.0, 8000.0), (9e-7, 3e-5), (50.0, 4900.0), (1e-8, 1e6)])
def test_a_logarithmic_axis_has_numbers_to_read_by(values):
    def draw(axes):
        axes.plot(values, values)
        axes.set(xscale="log")
        log_ticks(axes.xaxis, *values)
        low, high = axes.get_xlim()
        found.extend(
            float(one.get_text().replace(",", "").replace("−", "-"))
            for one in axes.get_xticklabels()
            if low <= one.get_position()[0] <= high
        )

    found = []
    svg(draw)
    assert 2 <= len(set(found)) <= 12
    assert found == sorted(found)


def test_text_is_no_formula_and_control_characters_are_shown():
    def draw(axes):
        axes.barh(["$x^{$", "$a$", "b\x1b[31m"], [1, 2, 3])
        axes.set_title("50 $ and $x_{$")

    figure = svg(draw)
    for text in ("$x^{$", "$a$", r"b\x1b[31m", "50 $ and $x_{$"):
        assert text in figure
    assert "\x1b" not in figure


@pytest.mark.parametrize("name", ["a name of many words " * 12, "n" * 200])
def test_long_titles_and_names_leave_room_for_the_bars(name):
    def draw(axes):
        axes.barh(range(3), [1, 2, 3])
        axes.figure.set_figheight(1.2)
        name_bars(axes, ["short", name, name])
        titled(axes, f"{name}: features")
        shown.append(axes)

    def title_is_inside(figure, axes):
        box = figure._suptitle.get_window_extent()
        return axes.bbox.width > 100 and axes.bbox.y1 < box.y0 and box.x1 <= figure.bbox.x1

    shown = []
    svg(draw)
    (axes,) = shown
    axes.figure.draw_without_rendering()
    assert title_is_inside(axes.figure, axes)
    below, middle, above = (one.get_window_extent() for one in axes.get_yticklabels())
    assert below.x0 >= 0 <= middle.x0
    assert below.y1 < middle.y0 < middle.y1 < above.y0 < above.y1 <= axes.bbox.y1


def test_a_legend_is_below_the_axes_and_the_figure_grows():
    def drawn(n):
        def draw(axes):
            for k in range(n):
                axes.plot([0, 10], [k, k], label=f"a label that is rather long, number {k}")
            legend(axes)
            seen.append((axes.figure.get_figheight(), len(axes.figure.legends)))

        seen = []
        svg(draw)
        return seen[0]

    assert drawn(0)[1] == 0
    assert drawn(6)[0] > drawn(1)[0] > drawn(0)[0]
    assert drawn(6)[1] == 1


@pytest.mark.parametrize("counts", [[1, 2], [12]])
def test_counts_have_whole_ticks(counts):
    def draw(axes):
        axes.plot(counts, counts)
        whole_ticks(axes.xaxis)
        found.extend(axes.get_xticks())

    found = []
    svg(draw)
    assert all(tick == round(tick) for tick in found)


def test_names_that_begin_with_a_line_below_are_in_the_legend():
    def draw(axes):
        for name in ("_base", "y"):
            axes.plot([0, 1], [0, 1], label=name)
        axes.plot([0, 1], [1, 0])
        legend(axes)

    figure = svg(draw)
    assert "_base" in figure
    assert "_child" not in figure
