"""The section of simulated clicks."""

import pytest

from tasks.config.reading import parse
from tasks.records import ConfigError


def data(**more):
    return {"data": {"files": "a.csv", "clicked_pages": {}, **more}}


def test_its_defaults_are_the_fields_protocol():
    section = parse(data()).data.clicked_pages
    assert (section.per_query, section.eta, section.noise, section.share, len(section.looks)) == (32, 1.0, 0.1, 0.01, 10)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"clicked_pages": {"looks": [0.5, 0.6]}}, "a rank cannot be examined more often than the one before it"),
        ({"clicked_pages": {"looks": []}}, "clicked_pages.looks"),
        ({"clicked_pages": {"noise": 1}}, "clicked_pages.noise"),
        ({"clicked_pages": {"share": 0}}, "clicked_pages.share"),
        ({"weight": "w"}, "pages have neither weights of queries nor labels of people"),
        ({"sources": ["position"]}, "two label sources are named 'position'"),
    ],
)
def test_what_is_wrong_is_said(more, says):
    with pytest.raises(ConfigError, match=says):
        parse(data(**more))
