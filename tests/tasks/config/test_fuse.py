"""What `lambdaflow fuse` runs."""

import pytest

import tasks.evidence  # noqa: F401  (its kinds are keys of a configuration)
from tasks.config.fuse import BY_QUERY, WAYS, fuse_config, fused_runs, named_runs
from tasks.config.reading import parse
from tasks.records import ConfigError


def test_runs_are_named_by_themselves_or_by_their_files():
    assert fused_runs(["dense=a/b.run", "x/BM25+RM3.run", ".hidden.run"]) == {
        "dense": "a/b.run",
        "BM25-RM3": "x/BM25+RM3.run",
        "hidden": ".hidden.run",
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["a.run"], "fuse: 1 run; give two or more"),
        (["a.run", "b/a.txt"], "fuse: b/a.txt: the name 'a' is taken; write NAME=FILE to give it another name"),
        (["a.run", "rrf.run"], "fuse: rrf.run: the name 'rrf' is taken"),
    ],
)
def test_runs_that_cannot_be_named_are_refused(given, says):
    with pytest.raises(ConfigError, match=says):
        fused_runs(given)


def test_the_configuration_is_one():
    config = parse(fuse_config({"a": "a.run", "b": "b.run"}, "q", "map", 5))
    assert list(config.rankers) == ["a", "b", *WAYS]
    assert (config.conventions.gain, config.conventions.ties) == ("linear", "docid")
    assert {config.rankers[name].measure for name in WAYS if name.startswith("weighted")} == {"map"}
    assert config.select_key == "map"


def test_what_is_known_of_queries_is_one_ranker_more():
    config = parse(fuse_config({"a": "a.run", "b": "b.run"}, "q", "map", 5, "queries.csv", ("words", "brand")))
    assert list(config.rankers) == ["a", "b", *WAYS, BY_QUERY]
    assert config.rankers[BY_QUERY].by == ("words", "brand")
    assert [str(path) for path in config.data.query_features] == ["queries.csv"]
    with pytest.raises(ConfigError, match="the name 'by-query' is taken"):
        fused_runs(["a.run", "by-query.run"])


def test_where_nothing_is_fused_runs_may_be_called_as_the_ways_to_fuse_are():
    assert named_runs(["rrf.run", "trees.run"], "correct") == {"rrf": "rrf.run", "trees": "trees.run"}
    with pytest.raises(ConfigError, match=r"correct: b/rrf.txt: the name 'rrf' is taken"):
        named_runs(["rrf.run", "b/rrf.txt"], "correct")
