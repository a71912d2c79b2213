"""What `lambdaflow warm` compiles is all that the demo and ordinary training ask for: afterwards nothing is compiled any more."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.training import warming
from tests.conftest import JIT, own_environment

pytestmark = pytest.mark.skipif(not JIT, reason="nothing is compiled")
ROOT = Path(__file__).parents[3]

COUNT = """
import atexit
from numba.core import event
compiled = []
class Compiled(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event):
        pass
event.register("numba:compile", Compiled())
"""
TRAIN = """
from tempfile import TemporaryDirectory
import ltr
from ltr.data.synthetic import World
from tasks.training.warming import GRADED
made, users = World(n_features=33).queries(50, 15, 2)
queries = ltr.Queries(made.features, made.labels, made.offsets, sources={"click": (users > 0.3) / 1.0})
for model in (
    ltr.LambdaMART(n_trees=12, n_leaves=31),
    ltr.LambdaMART(n_trees=4, n_leaves=8, objective=GRADED),
    ltr.LambdaRank(epochs=3, stop_on="ndcg", keep="train"),
    ltr.LambdaRank(hidden=10, epochs=3),
):
    fitted = model.fit(queries, queries)
    labels = {"label": queries.labels, **queries.sources}
    ltr.evaluate(labels, fitted.predict(queries.features), queries.offsets, ["ndcg_1", "ndcg_3", "map", "mrr", "cndcg_10"])
    with TemporaryDirectory() as folder:
        ltr.save(fitted, folder + "/model")
        ltr.load(folder + "/model").predict(queries.features)
print(compiled)
"""
DEMO = """
import sys
from flows.cli import main
assert main(["run", sys.argv[1], "--set", "scale=0.05", "--set", "length=0.05"]) == 0
print(compiled)
"""


def compiled(code, *arguments, cwd, **environment):
    """What a process of its own compiles while it runs the code, by name."""
    environment = own_environment() | {"PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-c", COUNT + code, *map(str, arguments)]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=True).stdout.splitlines()[-1]


def test_each_recipe_runs_and_then_training_compiles_nothing(tmp_path):
    for name in warming.RECIPES:
        assert warming.compile_for(name) == name
    assert compiled(TRAIN, cwd=tmp_path) == "[]"


@pytest.mark.long  # from an empty cache
def test_a_cold_machine_is_warmed_by_two_processes_and_the_demo_then_compiles_nothing(tmp_path):
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    cold = "from ltr.trees.grower import is_cold\nprint(is_cold())"
    assert compiled(cold, cwd=tmp_path, **environment) == "True"
    subprocess.run(
        [sys.executable, "-m", "flows.cli", "warm"],
        env=own_environment() | {"PYTHONPATH": str(ROOT)} | environment, cwd=tmp_path, check=True,
    )  # fmt: skip
    assert compiled(cold, cwd=tmp_path, **environment) == "False"
    assert compiled(DEMO, ROOT / "conf" / "demo.yaml", cwd=tmp_path, **environment) == "[]"


@pytest.mark.long  # from an empty cache
def test_the_first_training_of_all_leaves_the_growing_of_trees_to_a_second_process(tmp_path):
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    fit = TRAIN.replace("print(compiled)", "print('best_first' in compiled, 'split_leaf' in compiled, 'rank' in compiled)")
    assert compiled(fit, cwd=tmp_path, **environment) == "False False True"


def test_a_killed_process_leaves_none_that_compiles(tmp_path):
    """Those that it began have its standard output too, which ends with the last of them."""
    killed = "import os, signal\nfrom tasks.training.warming import warm\nwarm(lambda name: os.kill(os.getpid(), signal.SIGKILL))"
    environment = own_environment() | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", killed], env=environment, cwd=tmp_path, capture_output=True, timeout=100)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_each_recipe_is_told_once(monkeypatch):
    class HereAndNow:
        def __init__(self, *how):
            pass

        __enter__, __exit__ = (lambda self: self), (lambda self, *error: None)

        def submit(self, work, name):
            from concurrent.futures import Future

            future = Future()
            future.set_result(name)
            return future

    monkeypatch.setattr(warming, "ProcessPoolExecutor", HereAndNow)
    told = []
    warming.warm(told.append)
    assert sorted(told) == sorted(warming.RECIPES)
    assert set(told[: len(warming.PARTS)]) == set(warming.PARTS), "the parts come first"


def test_without_compilation_nothing_is_cold():
    code = "from ltr.trees.grower import is_cold\nprint(is_cold())"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True).stdout == "False\n"
