"""Models and values are found by folder, by run and by the beginning of a run's id; what is not there is said."""

import pytest

import ltr
from tasks.ingest import DataError
from tasks.lookup import find_model, find_run, find_values
from tasks.tracking import Tracker
from tests.conftest import make_queries


def test_a_folder_is_a_model(workplace):
    fitted = ltr.LeastSquares().fit(make_queries(10))
    ltr.save(fitted, "m")
    assert find_model("m").digest == fitted.digest


def test_nothing_several_and_unfinished(workplace):
    with pytest.raises(DataError, match="nowhere: no folder with a model and no run of that name"):
        find_model("nowhere")
    runs = [Tracker("x", str(k)).run_id for k in range(20)]
    first = next(r[0] for r in runs if sum(s[0] == r[0] for s in runs) > 1)
    with pytest.raises(DataError, match="runs of that name"):
        find_run(first)
    assert find_run(runs[0]).id == runs[0]
    with pytest.raises(DataError, match="has no finished ranker 'x'; it has: none"):
        find_values(f"{runs[0]}:x")
