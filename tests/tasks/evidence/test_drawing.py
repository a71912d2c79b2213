"""Drawing: titles as people write them, and the same bytes for the same figure."""

from tasks.evidence.drawing import colour, svg, title_of


def test_titles_as_people_write_them():
    keys = ("ndcg_10", "map", "cndcg_3", "jk_ndcg_3", "map_binary")
    assert [title_of(key) for key in keys] == ["NDCG@10", "MAP", "CNDCG@3", "JK_NDCG@3", "MAP_BINARY"]


def test_a_figure_is_inline_and_the_same_bytes_twice():
    def draw(axes):
        axes.plot([0, 1], [1, 0], label="a <b>")
        axes.legend()

    first = svg(draw)
    assert first.startswith("<svg")
    assert "a &lt;b&gt;" in first
    assert svg(draw) == first


def test_colours_begin_again():
    assert colour(0) == colour(6) != colour(1)
