"""The logged model behind MLflow's own server: what `mlflow models serve` answers is what the model says, bit for bit."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import mlflow
import numpy as np
import pandas as pd
import polars as pl
import pytest

import ltr
from tasks.data.tables import categories_in, known_codes
from tasks.records import Cell, CellResult, Columns, Fold, LoggedDataset
from tasks.store.cells import CellFolder, write_columns
from tasks.store.values import table
from tasks.tracking.served_model import ServedRanker
from tasks.tracking.store import fluent, tracking_uri
from tasks.tracking.tracker import Tracker
from tests.conftest import make_queries


@pytest.fixture
def logged(workplace):
    """A tree model of features f1–f3 in MLflow, and the address of its logged model."""
    queries = make_queries(20, n_features=3, seed=3)
    model = ltr.LambdaMART(n_trees=4, n_leaves=5, min_docs_in_leaf=4, stop_on=None).fit(queries)
    folder = CellFolder.of("k")
    ltr.save(model, folder.model)
    table({"map": queries.labels[: queries.n_queries]}, queries, "test").write_parquet(folder.values)
    cell = Cell("cell", "trees", 0, {}, {}, Fold("", "", ""), ("map",), {})
    data = [LoggedDataset("train", "train", "ab" * 32, "{}", "{}")]
    tracker = Tracker("x", "key")
    run = tracker.cell(cell, CellResult("k", model.digest, {"test_map": 0.5}, 1.0), data, {})
    (output,) = tracker.client.get_run(run).outputs.model_outputs
    return model, queries, f"models:/{output.model_id}"


def needed_by(address: str) -> set[str]:
    """Lines of a logged model's requirements."""
    with fluent():
        return {*Path(mlflow.pyfunc.get_model_dependencies(address)).read_text().split()}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def asked(port, body):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/invocations", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())["predictions"]


def test_an_environment_made_for_the_model_has_the_versions_that_it_was_trained_with(logged):
    """Without them a later numba would be installed, whose insides the core does not know."""
    assert {f"{name}=={version(name)}" for name in ("mlflow", "numba", "numpy", "scipy")} <= needed_by(logged[2])


def test_the_label_of_who_built_a_package_is_not_asked_for(monkeypatch, request):
    """pip finds no ``numpy==2.4.6+mkl``, and takes such a package for 2.4.6 where it is installed."""
    monkeypatch.setattr("tasks.tracking.tracker.version", lambda name: "2.4.6+mkl")
    needed = needed_by(request.getfixturevalue("logged")[2])
    assert {"numba==2.4.6", "numpy==2.4.6", "scipy==2.4.6"} <= needed


@pytest.mark.long
def test_mlflows_server_answers_the_same_scores(logged):
    model, queries, address = logged
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", address, "--env-manager", "local", "--host", "127.0.0.1"]
    server = subprocess.Popen(
        [*command, "--port", str(port)],
        env={**os.environ, "MLFLOW_TRACKING_URI": tracking_uri(), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for _ in range(240):
            assert server.poll() is None
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/ping", timeout=5)
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.25)
        expected = model.predict(queries.features)
        rows = queries.features.tolist()
        assert np.array_equal(asked(port, {"inputs": rows}), expected)
        by_name = {"columns": list(queries.names)[::-1], "data": [row[::-1] for row in rows]}
        assert np.array_equal(asked(port, {"dataframe_split": by_name}), expected)
        with pytest.raises(urllib.error.HTTPError):
            asked(port, {"dataframe_split": {"columns": ["f1"], "data": [[1.0]]}})
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


LOADED = """
import gc
import sys
import mlflow
import numpy as np
model = mlflow.pyfunc.load_model(sys.argv[1])
import ltr
print(ltr.__file__, *model.predict(np.load(sys.argv[2])))
del model
gc.collect()
model = mlflow.pyfunc.load_model(sys.argv[1])
from ltr.clicks import interleaving  # which nothing had imported
print(*model.predict(np.load(sys.argv[2])))
"""


@pytest.mark.long
def test_a_model_brings_its_core_along(logged, workplace):
    model, queries, address = logged
    np.save("features.npy", queries.features)
    command = [sys.executable, "-c", LOADED, address, "features.npy"]
    environment = {**os.environ, "MLFLOW_TRACKING_URI": tracking_uri(), "XDG_CACHE_HOME": str(workplace)}
    core, *scores = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
    assert Path(core).parents[2] == workplace / "lambdaflow" / "core", "not the one that is installed"
    assert len(list((workplace / "lambdaflow" / "core").iterdir())) == 1
    assert list(map(float, scores)) == 2 * model.predict(queries.features).tolist()
    (Path(core).parent / "data" / "queries.py").unlink()
    (Path(core).parent / "trees" / "lambdamart.py").write_text("")
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
    assert again == [core, *scores], "files that a cleaner took from the cache are there again"


def of_four_categories(listed):
    """A model whose second feature is one of four categories, the features that it learned from, and the model as it is served with these lists."""
    queries = make_queries(30, n_features=2, seed=4)
    features = queries.features.copy()
    features[:, 1] = np.arange(len(features)) % 4
    queries = replace(queries, features=features, labels=np.where(features[:, 1] == 2, 2.0, 0.0))
    model = ltr.LambdaMART(n_trees=4, n_leaves=4, min_docs_in_leaf=4, categorical=["f2"], feature_share=1.0, stop_on=None).fit(
        queries
    )
    ltr.save(model, "model")
    Path("model/columns.json").write_text(json.dumps({"categories": listed}))
    served = ServedRanker()
    served.load_context(SimpleNamespace(artifacts={"model": "model"}))
    return model, features, served


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
@pytest.mark.parametrize("known", [["3", "2", "1", "0"], ["17", "30", "all", "4"], ["1.5", "2.5", "-3.5", "0.25"]], ids=str)
def test_categories_that_are_numbers_are_read_by_name_however_they_are_written(workplace, frame, known):
    model, features, served = of_four_categories({"f2": known})
    expected = model.predict(features)
    assert len(set(expected)) > 1
    names = [known[int(place)] for place in features[:, 1]]
    ways = [names, [f" {name} " for name in names], [f"{name}.0" if name.isdigit() else name for name in names]]
    if "all" not in known:
        ways += [list(map(float, names)), *([list(map(int, names))] if known[0].isdigit() else [])]
    for column in ways:
        assert np.array_equal(served.predict(None, frame({"f2": column, "f1": features[:, 0]})), expected)
        there = known_codes(Path("x.csv"), pl.DataFrame({"f2": column}), "f2", known)
        assert np.array_equal(there, features[:, 1]), "as predict reads a file's"


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_categories_are_read_by_name(workplace, frame):
    """As `predict` reads them, from the list that lies beside the model; by number as well, and others as missing."""
    shops = ["amber", "birch", "cedar", "dune"]
    model, features, served = of_four_categories({"f2": shops, "f9": ["x"]})
    names = [shops[int(place)] for place in features[:, 1]]
    by_name = frame(
        {"f2": [*names[:-1], "elm"], "more": 0, "f1": features[:, 0]}
        if frame is pd.DataFrame
        else {"f2": [*names[:-1], "elm"], "f1": features[:, 0]}
    )
    expected = features.copy()
    expected[-1, 1] = np.nan
    if frame is pd.DataFrame:
        nullable = pd.DataFrame({"f1": features[:, 0], "f2": pd.array([*names[:-1], None], "string")})
        places = pd.DataFrame({"f1": features[:, 0], "f2": pd.array([*features[:-1, 1].astype(int), None], "Int64")})
        for given in (nullable, places):
            assert np.array_equal(served.predict(None, given), model.predict(expected))
        with pytest.raises(ValueError, match="f2"):
            served.predict(None, pd.concat([nullable, nullable[["f2"]]], axis=1))
    with pytest.warns(UserWarning, match="1 of .* values are not a category of the model, such as 'elm'; they count as missing"):
        assert np.array_equal(served.predict(None, by_name), model.predict(expected))
    assert np.array_equal(served.predict(None, frame({"f1": features[:, 0], "f2": features[:, 1]})), model.predict(features))
    assert np.array_equal(served.predict(None, features), model.predict(features))


def test_columns_that_were_changed_are_refused(workplace):
    of_four_categories({})
    write_columns(Path("model"), Columns(categories={"f2": ("amber", "birch", "cedar", "dune")}))
    served = ServedRanker()
    context = SimpleNamespace(artifacts={"model": "model"})
    served.load_context(context)
    assert served.categories["f2"][0] == "amber"
    path = Path("model/columns.json")
    path.write_text(path.read_text().replace("amber", "umber"))
    with pytest.raises(
        ValueError, match=r"columns.json: does not match this model's digest: the file was changed or belongs to another model"
    ):
        served.load_context(context)


def test_a_number_is_one_category_whatever_else_is_asked_about(workplace):
    """Alone it was a place in the list, and beside a document with text it was missing."""
    model, _, served = of_four_categories({"f2": ["amber", "birch", "cedar", "dune"]})
    *by_place, missing = model.predict(np.array([[0, 0], [0, 1], [0, 2], [0, 3], [0, np.nan]], np.float32)).tolist()
    assert any(score != missing for score in by_place)
    for place, (name, score) in enumerate(zip(["amber", "birch", "cedar", "dune"], by_place, strict=True)):
        assert served.predict(None, pd.DataFrame({"f1": [0.0], "f2": [place]})) == [score]
        assert served.predict(None, pd.DataFrame({"f1": [0.0, 0.0], "f2": [place, name]})).tolist() == [score, score]


@pytest.mark.parametrize("binary", [bytes, bytearray])
def test_bytes_are_the_text_that_they_hold(workplace, binary):
    """As files have them: a parquet file's binary column is read as text."""
    shops = ["amber", "süß", "17", "dune"]
    model, features, served = of_four_categories({"f2": shops})
    column = [binary(shops[int(place)].encode()) for place in features[:, 1]]
    assert np.array_equal(served.predict(None, pd.DataFrame({"f1": features[:, 0], "f2": column})), model.predict(features))
    if binary is bytes:
        assert np.array_equal(served.predict(None, pl.DataFrame({"f1": features[:, 0], "f2": column})), model.predict(features))


@pytest.mark.parametrize(
    "column",
    [
        pd.array([None, None], "string"), pd.array([pd.NA, pd.NA], object), pd.array([pd.NaT, pd.NaT]), pd.array([None, None], object),
        pl.Series([None, None], dtype=pl.String), pl.Series([None, None]), pd.array([], "string"), pl.Series([], dtype=pl.String),
    ],
    ids=repr,
)  # fmt: skip
def test_a_request_in_which_no_document_has_the_category_is_answered(workplace, column):
    """The same documents were answered beside others that have it, and refused alone."""
    model, _, served = of_four_categories({"f2": ["amber", "birch", "cedar", "dune"]})
    frame = (pl if isinstance(column, pl.Series) else pd).DataFrame({"f1": np.arange(float(len(column))), "f2": column})
    missing = np.array([[0, np.nan], [1, np.nan]], np.float32)[: len(column)]
    assert np.array_equal(served.predict(None, frame), model.predict(missing))


@pytest.mark.long
def test_a_core_that_no_cache_takes_is_gone_with_its_process(logged, workplace):
    where = workplace / "unpacked"
    where.mkdir()
    changed = {"MLFLOW_TRACKING_URI": tracking_uri(), "XDG_CACHE_HOME": "/dev/null", "TMPDIR": str(where)}
    code = f"import mlflow; mlflow.pyfunc.load_model({logged[2]!r}); import ltr; print(ltr.__file__)"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | changed, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{where}/lambdaflow-")
    assert not [path for path in where.iterdir() if path.name.startswith("lambdaflow-")]


def test_numbers_that_no_category_is_called_by_are_missing_where_some_are(workplace):
    model, _, served = of_four_categories({"f2": ["1.5", "2.5", "3.5", "4.5"]})
    with pytest.warns(UserWarning, match="2 of 2 values are not a category of the model, such as '1'"):
        scores = served.predict(None, pd.DataFrame({"f1": [0.0, 0.0], "f2": [1.0, 2.0]}))
    assert np.array_equal(scores, model.predict(np.array([[0.0, np.nan], [0.0, np.nan]], np.float32)))


def test_columns_in_a_dictionary_are_features_by_name(workplace):
    model, features, served = of_four_categories({"f2": ["amber", "birch", "cedar", "dune"]})
    names = [["amber", "birch", "cedar", "dune"][int(place)] for place in features[:, 1]]
    for columns in ({"f2": names, "f1": features[:, 0].tolist()}, {"f2": np.array(names), "f1": features[:, :1]}):
        assert np.array_equal(served.predict(None, columns), model.predict(features))
    with pytest.raises(ValueError, match=r"columns of different lengths: f2 1, f1 3"):
        served.predict(None, {"f2": ["amber"], "f1": [0.0, 1.0, 2.0]})
    mixed = {"f2": ["amber", 2, np.int64(3), None], "f1": [0.0, 0.0, 0.0, 0.0]}
    assert np.array_equal(served.predict(None, mixed), model.predict(np.array([[0, 0], [0, 2], [0, 3], [0, np.nan]], np.float32)))


@pytest.mark.parametrize("frame", [pl.DataFrame, pl.DataFrame.to_pandas])
@pytest.mark.parametrize(
    "values",
    [
        pl.Series([1e-7, 0.1, 1e20, 1e-5]),
        pl.Series([1e-7, 0.1, 3.3, 2.0], dtype=pl.Float32),
        pl.Series([date(2020, 1, 1), date(2021, 5, 5), date(2022, 1, 1), date(1999, 9, 9)]),
        pl.Series([datetime(2020, 1, 1), datetime(2021, 5, 5, 3, 4, 5, 600), datetime(2022, 1, 1), datetime(1999, 9, 9, 1)]),
        pl.Series(["2020-01-01 00:00:00", "2020-01-01 01:00:00.500", "a", "b"]),
    ],
    ids=lambda values: str(values.dtype),
)
def test_categories_of_every_type_are_those_of_files(workplace, frame, values):
    pl.DataFrame({"f2": values}).write_parquet("c.parquet")
    known = categories_in([Path("c.parquet")], "f2")
    model, features, served = of_four_categories({"f2": list(known)})
    column = values.gather(features[:, 1].astype(int))
    given = pl.DataFrame({"f2": column, "f1": features[:, 0]})
    places = np.column_stack((features[:, 0], known_codes(Path("c.parquet"), given, "f2", known)))
    assert not np.isnan(places).any()
    assert np.array_equal(served.predict(None, frame(given)), model.predict(places.astype(np.float32)))


def test_models_that_are_in_mlflow_find_what_they_import_from_the_core_of_now():
    from ltr.rankers.base import columns_of
    from ltr.rankers.features import columns_of as of_now

    assert columns_of is of_now
