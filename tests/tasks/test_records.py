"""Records: plain, frozen, and the same after Prefect's serializer."""

from dataclasses import FrozenInstanceError

import pytest
from prefect.serializers import JSONSerializer

from tasks.records import (
    Cell,
    CellResult,
    Finding,
    Fold,
    Ingested,
    Prepared,
    Trained,
    number_of,
    percent,
    point_title,
    printable,
    time_of,
)

FOLD = Fold("a", "b", "c")
CELL = Cell("x", "net", 1, {"objective.1.weight": 0.1}, {"kind": "lambdarank"}, FOLD, ("map",), {"ties": "expected"})
RESULT = CellResult("k", "d", {"valid_map": 0.5}, 1.5, ("a remark",))


@pytest.mark.parametrize(
    "record",
    [FOLD, CELL, RESULT, Trained(CELL, RESULT), Finding("note", "train", "fine"), Ingested("a", 2, True), Prepared("a", ("n",))],
)
def test_a_record_passes_prefects_serializer(record):
    serializer = JSONSerializer()
    again = serializer.loads(serializer.dumps(record))
    assert type(again) is type(record)
    assert again == record


def test_records_are_frozen():
    with pytest.raises(FrozenInstanceError):
        FOLD.train = "z"


def test_roles_and_places():
    assert FOLD.roles == {"train": "a", "valid": "b", "test": "c"}
    assert (Trained(CELL, RESULT).ranker, Trained(CELL, RESULT).fold) == ("net", 1)
    assert CellResult("k", "d", {}, 0.0, ["listed"]).remarks == ("listed",), "as JSON gives them"


def test_points_as_people_write_them():
    assert point_title({"learning_rate": 0.1, "objective.1.weight": 0.3}) == "learning_rate=0.1, objective.1.weight=0.3"
    assert point_title({}) == ""


def test_numbers_and_what_they_count():
    assert [number_of(n, "query") for n in (0, 1, 2, 1204)] == ["0 queries", "1 query", "2 queries", "1,204 queries"]
    assert [number_of(n, "feature value") for n in (1, 3)] == ["1 feature value", "3 feature values"]


def test_shares_keep_their_digits():
    assert [percent(share) for share in (0.95, 0.975, 1 - 0.001, 0.005, 0.29)] == ["95%", "97.5%", "99.9%", "0.5%", "29%"]


def test_control_characters_by_their_numbers():
    assert printable("a\x1b[31mb\r\x85") == r"a\x1b[31mb\x0d\x85"
    assert printable("two\nlines\tand ünïcode\u200c") == "two\nlines\tand ünïcode\u200c"


def test_times_are_written_as_people_do():
    assert [time_of(seconds) for seconds in (0, 59.6, 600, 3725)] == ["0s", "1m", "10m", "1h 2m 5s"]
