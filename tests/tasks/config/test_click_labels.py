"""Ways of counting clicks: the known ones are listed, and another is one call."""

import polars as pl
import pytest
from pydantic import ValidationError

from tasks.config.click_labels import CLICKS, ClickLabel, ClickLog, register_clicks
from tests.conftest import printed_by_each


def test_unknown_ways_are_refused_with_the_known_ones():
    with pytest.raises(ValidationError, match="'frist' is unknown; choose from: last, all"):
        ClickLabel(clicks="frist")


def test_names_that_are_taken(monkeypatch):
    for name in ("last", "impressions"):
        with pytest.raises(ValueError, match=f"named '{name}' already"):
            register_clicks(name, pl.col("order") > 0)


def test_every_label_of_a_log_by_its_name():
    log = ClickLog(log="a.csv", clicks="all", more={"debiased": {"debias": True}})
    assert {name: (label.clicks, label.debias) for name, label in log.labels.items()} == {
        "click": ("all", False), "debiased": ("all", True),
    }  # fmt: skip
    assert ClickLabel(debias=True, clicks="last").clicks == "last"
    assert set(CLICKS) >= {"last", "all"}


def test_labels_of_click_models():
    label = ClickLabel(model="pbm")
    assert (label.clicks, label.prior) == ("all", 0.0)
    assert ClickLabel(model="best", prior=10).prior == 10
    with pytest.raises(ValidationError, match="'pmb' is unknown; choose from: best, dctr, cascade, pbm"):
        ClickLabel(model="pmb")
    for beside in ({"debias": True}, {"queries": "similar"}, {"clicks": "last"}):
        with pytest.raises(
            ValidationError, match="model: pbm explains all clicks by itself; leave out debias, queries: similar and clicks"
        ):
            ClickLabel(model="pbm", **beside)


def test_labels_depend_on_how_a_way_from_outside_counts_and_not_on_its_name_only(monkeypatch):
    log = ClickLog(log="log.csv", more={"own": ClickLabel(clicks="all")})
    assert log.decides("d") == {**log.model_dump(mode="json"), "log": "d"}
    found = []
    for order in (1, 2, 1):
        monkeypatch.setitem(CLICKS, "first", pl.col("order") == order)
        found.append(ClickLog(log="log.csv", more={"own": ClickLabel(clicks="first")}).decides("d"))
    assert found[0] == found[2] != found[1]


OWN = """
import polars as pl
from tasks.config.click_labels import ClickLog, register_clicks

def counts(order):
    return order == 1

register_clicks("own", pl.col("order").map_batches(counts, return_dtype=pl.Boolean))
"""


def test_labels_depend_on_the_function_that_counts_and_not_on_its_name_only(tmp_path):
    """An expression has the name of a module's function, and not what is in it."""

    def decided(order):
        written = f"import pathlib; pathlib.Path('own.py').write_text({OWN.replace('== 1', f'== {order}')!r})"
        return f"{written}; import sys; sys.path.insert(0, '.'); import own; print(own.ClickLog(log='log.csv', clicks='own').decides('d'))"

    first, again, other = printed_by_each("import tasks.config.click_labels", [decided(1), decided(1), decided(2)], tmp_path)
    assert first == again != other
