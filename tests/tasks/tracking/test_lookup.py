"""Models and values are found by folder, by run and by the beginning of a run's id; what is not there is said."""

import pytest

import ltr
from tasks.records import DataError
from tasks.tracking.lookup import find_model, find_run, find_values
from tasks.tracking.tracker import Tracker
from tests.conftest import make_queries


def test_a_folder_is_a_model(workplace):
    fitted = ltr.LeastSquares().fit(make_queries(10))
    ltr.save(fitted, "m")
    assert find_model("m", fitted.names).digest == fitted.digest


def test_nothing_several_and_unfinished(workplace):
    with pytest.raises(DataError, match="nowhere: no folder with a model and no run of that name"):
        find_model("nowhere", ())
    runs = [Tracker("x", str(k)).run_id for k in range(20)]
    first = next(r[0] for r in runs if sum(s[0] == r[0] for s in runs) > 1)
    with pytest.raises(DataError, match="runs of that name"):
        find_run(first)
    assert find_run(runs[0]).id == runs[0]
    with pytest.raises(DataError, match="has no finished ranker 'x'; it has: none"):
        find_values(f"{runs[0]}:x")


def test_linear_weights_of_a_file(workplace):
    queries = make_queries(10)
    for text in ('{"f2": -1, "f3": 0.5}', "f2,-1\n# nothing\nf3,0.5\n", "## Coordinate Ascent\n2:-1.0 3:0.5 # end\n"):
        (workplace / "w").write_text(text)
        model = find_model("w", queries.names)
        assert model.predict(queries.features) == pytest.approx(-queries.features[:, 1] + 0.5 * queries.features[:, 2])
    for text, rule in (
        ("f9,1", "do not have: f9"),
        ("f1", "line 1: 'f1' is no weight"),
        ("1:nan", "the weight of 'f1' is nan, which is not finite"),
    ):
        (workplace / "w").write_text(text)
        with pytest.raises(DataError, match=f"w: .*{rule}"):
            find_model("w", queries.names)
