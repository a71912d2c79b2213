"""Where people's labels may be, and what does not go together."""

import pytest

from tasks.config.calibrate import Calibrate
from tasks.config.reading import parse
from tasks.records import ConfigError

BY_COLUMN = {"files": "judged.csv", "sources": ["grade"], "attributes": ["language"], "calibrate": {"source": "grade"}}


def test_sources_that_come_of_it():
    assert (Calibrate(source="grade").people, Calibrate(source="grade").made) == ("grade", ("machine",))
    file = Calibrate(judgments="people.qrels", by="query")
    assert (file.people, file.made, file.by) == ("people", ("machine", "people"), ["query"])


@pytest.mark.parametrize(
    ("calibrate", "more", "rule"),
    [
        ({}, {}, "people's labels are in judgments .* or are a source"),
        ({"judgments": "a", "source": "grade"}, {}, "give one of them"),
        ({"source": "other"}, {}, "calibrate.source: 'other' must be listed in data.sources"),
        ({"source": "grade", "by": "market"}, {}, "calibrate.by: 'market' is not query, nor one of data.attributes: language"),
        ({"source": "grade"}, {"binarise": 1}, "calibrate: clean and binarise need human labels"),
        ({"source": "grade"}, {"sources": ["grade", "machine"]}, "two label sources are named 'machine'"),
    ],
)
def test_what_does_not_fit_is_refused(calibrate, more, rule):
    with pytest.raises(ConfigError, match=rule):
        parse({"data": {**BY_COLUMN, **more, "calibrate": calibrate}})
