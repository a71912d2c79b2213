"""How runs and data sets are described in MLflow."""

import json
from types import SimpleNamespace

from prefect.settings import PREFECT_API_URL, temporary_settings

from tasks.config.reading import parse
from tasks.records import OWN_PREFECT, Fold
from tasks.store.datasets import about_queries, keep_queries
from tasks.tracking import description
from tasks.tracking.description import describe_fold, describe_run, prefect_tags
from tests.conftest import make_queries


def test_data_sets_by_role_and_fold(workplace):
    name = keep_queries(make_queries(7))
    fold = Fold(name, name, name)
    entries = list(describe_fold(fold, " 2"))
    assert [(entry.name, entry.role) for entry in entries] == [("train 2", "train"), ("valid 2", "valid"), ("test 2", "test")]
    assert entries[0].digest == about_queries(name).content
    assert json.loads(entries[0].profile)["queries"] == 7
    assert json.loads(entries[0].source) == {"store": name}
    params, tags, data = describe_run(parse({"data": {"files": "x"}, "conventions": {"threshold": 1}}), (fold, fold))
    assert (params["folds"], params["conventions.threshold"], params["rankers"]) == (2, 1.0, "lambdamart, linear")
    assert {"lambdaflow.config", "lambdaflow.core"} <= set(tags)
    assert [entry.name for entry in data][:4] == ["train 1", "valid 1", "test 1", "train 2"]
    assert [entry.name for entry in describe_run(parse({"data": {"files": "x"}}), (fold,))[2]] == ["train", "valid", "test"]


def test_a_run_with_its_keys_in_another_order_is_the_same_run_and_has_the_same_parameters(workplace):
    name = keep_queries(make_queries(7))
    fold = Fold(name, name, name)
    rankers = {"a": {"kind": "least_squares"}, "b": {"kind": "lambdamart", "n_trees": 3}}
    one, other = (parse({"data": {"files": "x"}, "rankers": dict(items)}) for items in (rankers.items(), [*rankers.items()][::-1]))
    assert one.digest == other.digest
    assert describe_run(one, (fold,))[0] == describe_run(other, (fold,))[0]


def test_the_page_of_a_run_is_that_of_the_server_that_keeps_it(monkeypatch):
    """Of a server of others it is where Prefect says, of our own where `lambdaflow ui` shows it."""
    monkeypatch.setattr(description, "flow_run", SimpleNamespace(id="r"))
    for given, own, page in (
        ("https://prefect.example/api", None, "https://prefect.example"),
        ("http://someone:secret@10.1.2.3:14200/api", None, "http://10.1.2.3:14200"),
        ("http://127.0.0.1:35001/api", "http://127.0.0.1:35001/api", "http://127.0.0.1:4200"),
    ):
        monkeypatch.delenv(OWN_PREFECT, raising=False)
        if own:
            monkeypatch.setenv(OWN_PREFECT, own)
        with temporary_settings({PREFECT_API_URL: given}):
            assert prefect_tags() == {"prefect.flow_run_url": f"{page}/runs/flow-run/r"}


def test_outside_of_a_flow_there_is_no_run_to_name():
    assert prefect_tags() == {}
