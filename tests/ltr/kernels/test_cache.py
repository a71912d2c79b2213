"""Compiled kernels on disk: found again by the next process, and never out of date.

A copy of the core is edited as a developer would, with a cache of its own, and one small kernel asked for its numbers:
`logistic` of the pair costs, which calls `exp` of another module.
"""

import ast
import os
import shutil
import subprocess
import sys
import time
from math import exp

import pytest
from numba import njit

from ltr.kernels.cache import CORE, KEPT, FileOfItsOwn, digest_of_sources, imports_of, is_open, sources_of
from tests.conftest import JIT

compiled_only = pytest.mark.skipif(not JIT, reason="there is no cache without compilation")

TRAIN = """
import numpy as np
from scipy.sparse import csr_matrix
import ltr
from ltr.data.synthetic import World, clicked_pages
queries, _ = World(n_features=20).queries(60, 20, 1)
sparse = ltr.Queries(csr_matrix(queries.features), queries.labels, queries.offsets)
shown = clicked_pages(queries, queries.features[:, 0].astype(float), 1, 0.7 ** np.arange(8))
near = ltr.Term("ndcg_10", cost="logistic_near")
for model in (
    ltr.LambdaMART(n_trees=5, stop_on=None),
    ltr.LambdaMART(n_trees=5, stop_on=None, objective=(near,)),
    ltr.LambdaRank(epochs=5),
    ltr.LambdaRank(hidden=3, epochs=5),
    ltr.RankSVM(),
    ltr.Listwise(iterations=10),
):
    print(model.kind, model.fit(queries).digest)
print(ltr.LambdaMART(n_trees=5, stop_on=None).fit(sparse).digest)
for update, kind in (("query", "pairwise"), ("full", "pairwise"), ("query", "dla"), ("full", "dla")):
    print(ltr.LambdaRank(epochs=2, update=update, unbiased=kind).fit(shown).digest)
"""
ONCE = ("sparse_dataset.build", "splits.search_feature", "unbiased.page_gradients", "dual.look_gradients")
"""Kernels that are called from several others: numba compiles another one where an argument is a constant there, or has no sign."""

SLOPE = """
import numpy as np
from ltr.objectives.pair_costs import logistic
slope, bend = np.empty(1), np.empty(1)
logistic(0, 1.0, 0.0, np.ones(1), slope, bend)
print(slope[0])
"""


def printed(code, core, cache):
    """What a new process prints, with the package ``ltr`` of the folder `core` and compiled kernels below `cache`."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(core)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, cwd=core
    ).stdout


@compiled_only
@pytest.mark.long  # everything is compiled; in a fresh clone every other test runs on a cold cache too
def test_a_cold_cache_and_a_warm_one_give_the_same_models_and_compile_each_kernel_once(tmp_path):
    cold = printed(TRAIN, CORE.parent, tmp_path)
    assert cold.count("\n") == 11
    assert {name: len(list(tmp_path.glob(f"**/{name}-*.nbc"))) for name in ONCE} == dict.fromkeys(ONCE, 1)
    assert printed(TRAIN, CORE.parent, tmp_path) == cold


@compiled_only
def test_an_edit_is_noticed_where_it_matters_and_only_there(tmp_path):
    cache, core = tmp_path / "cache", tmp_path / "core"
    shutil.copytree(CORE, core / "ltr", ignore=shutil.ignore_patterns("__pycache__"))

    def slope():
        return float(printed(SLOPE, core, cache))

    def edit(module, before, after):
        path = core / "ltr" / module
        text = path.read_text()
        assert text.count(before) == 1
        path.write_text(text.replace(before, after))

    def kept():
        return {path: path.stat().st_mtime_ns for path in cache.glob("**/*.nb[ic]")}

    e = exp(-1.0)
    assert slope() == pytest.approx(e / (1 + e))
    first = kept()
    assert {path.name.split(".")[0] for path in first} == {"pair_costs", "exponential"}
    assert not list(core.glob("**/*.nb[ic]")), "NUMBA_CACHE_DIR is obeyed"

    edit("trees/binning.py", "MISSING = 255", "MISSING = 254")
    assert slope() == pytest.approx(e / (1 + e))
    assert kept() == first, "what is not imported is compiled in nowhere"

    edit("kernels/exponential.py", "return power\n\n", "return 2.0 * power\n\n")
    assert slope() == pytest.approx(2 * e / (1 + 2 * e))
    second = kept()
    assert len(second) == 2 * len(first)

    edit("kernels/exponential.py", "return 2.0 * power\n\n", "return power\n\n")
    assert slope() == pytest.approx(e / (1 + e))
    assert kept() == second, "both are kept"


LAYERS = """
import sys
import numpy as np
from numba import njit, prange
import ltr.kernels.cache

@njit(cache=True, parallel=True)
def below(values):
    for k in prange(len(values)):
        values[k] *= 2

@njit(cache=True)
def above(values):
    below(values)

values = np.ones(3)
(below if sys.argv[1] == "below" else above)(values)
print(values.sum())
"""


@compiled_only
def test_a_kernel_on_top_of_one_that_was_read_is_read_by_a_process_that_runs_nothing_in_parallel_yet(tmp_path):
    """numba forgot that the lower one needs its parallel runtime, and LLVM ended the third process: Symbol not found: allocate_sched."""
    (tmp_path / "layers.py").write_text(LAYERS)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(CORE.parent)}
    for name in ("below", "above", "above"):
        done = subprocess.run([sys.executable, "layers.py", name], env=environment, capture_output=True, text=True, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "6.0\n"), done.stderr


@compiled_only
def test_equal_sources_are_compiled_once_a_machine_and_beside_themselves_where_there_is_no_cache_folder(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}

    def slope(core, caches):
        if not core.exists():
            shutil.copytree(CORE, core / "ltr", ignore=shutil.ignore_patterns("__pycache__"))
        own = environment | {"PYTHONPATH": str(core), "XDG_CACHE_HOME": str(caches)}
        subprocess.run([sys.executable, "-c", SLOPE], env=own, capture_output=True, check=True, cwd=core)
        return {path: path.stat().st_mtime_ns for path in tmp_path.glob("**/*.nb[ic]")}

    caches = tmp_path / "caches"
    first = slope(tmp_path / "one", caches)
    assert first.keys() == set(caches.glob("lambdaflow/kernels/numba-*/ltr.*/*/*.nb[ic]"))
    assert slope(tmp_path / "another", caches) == first
    (tmp_path / "file").touch()
    beside = slope(tmp_path / "another", tmp_path / "file").keys() - first.keys()
    assert beside == set((tmp_path / "another").glob("ltr/**/__pycache__/*/*.nb[ic]"))
    assert len(beside) == len(first)


@compiled_only
@pytest.mark.parametrize("named", [None, "InTreeCacheLocator"])
def test_a_change_of_the_environment_or_locators_of_its_own_take_no_kernel_elsewhere(tmp_path, named):
    """numba reads its settings again, and forgets what programs have set, when a variable of the environment has changed."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(CORE.parent)}
    environment |= {"NUMBA_CACHE_LOCATOR_CLASSES": named} if named else {}
    changed = 'import os, numba, ltr\nos.environ["NUMBA_FULL_TRACEBACKS"] = "0"\nnumba.njit(lambda: 1)()\n'
    code = SLOPE if named else changed + SLOPE
    subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True, cwd=tmp_path)
    found = set(tmp_path.glob("**/*.nb[ic]"))
    assert found
    assert found == set(tmp_path.glob("numba-*/ltr.*/*/*.nb[ic]"))


@compiled_only
def test_kernels_of_sources_that_nobody_imports_any_more_are_deleted_when_others_come(tmp_path):
    old, lately, kept = tmp_path / "0123456789abcdef", tmp_path / "123456789abcdef0", tmp_path / "notes"
    for days, folder in ((KEPT + 1, old), (KEPT - 1, lately), (KEPT + 1, kept)):
        folder.mkdir()
        os.utime(folder, (time.time() - days * 86_400,) * 2)
    assert is_open(tmp_path / "23456789abcdef01")
    assert {path.name for path in tmp_path.iterdir()} == {lately.name, kept.name, "23456789abcdef01"}
    assert is_open(lately)
    assert lately.stat().st_mtime > time.time() - 60, "used again"
    (tmp_path / "file").touch()
    assert not is_open(tmp_path / "file" / "0123456789abcdef")


@njit(cache=True)
def kernel_of_a_cache(x):
    return x


@compiled_only
@pytest.mark.parametrize("second_ends_first", [False, True])
def test_processes_that_save_at_the_same_time_never_get_each_others_kernels(tmp_path, monkeypatch, second_ends_first):
    """Both read the same index, which is empty, before either has saved."""
    opened = type(kernel_of_a_cache._cache._cache_file)
    first, second = (opened(str(tmp_path), "kernel", "stamp") for _ in range(2))
    with monkeypatch.context() as patch:
        patch.setattr(second, "_load_index", dict)
        if second_ends_first:
            first_saves = first._save_data
            patch.setattr(first, "_save_data", lambda name, data: (second.save("b", "kernel of b"), first_saves(name, data)))
            first.save("a", "kernel of a")
        else:
            first.save("a", "kernel of a")
            second.save("b", "kernel of b")
    third = opened(str(tmp_path), "kernel", "stamp")
    assert third.load("b") == "kernel of b"
    assert third.load("a") in ("kernel of a", None)
    third.save("a", "kernel of a again")
    assert (first.load("a"), first.load("b")) == ("kernel of a again", "kernel of b")


@compiled_only
def test_what_processes_save_at_the_same_time_is_all_in_the_index(tmp_path):
    """Each enters twenty kernels into one index."""
    code = """
import sys
import ltr
from ltr.kernels.cache import FileOfItsOwn
file = FileOfItsOwn(sys.argv[1], "kernel", "stamp")
for k in range(20):
    file.save(f"{sys.argv[2]} {k}", k)
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(CORE.parent)}
    processes = [subprocess.Popen([*command, name], env=environment) for name in "ab"]
    assert [process.wait() for process in processes] == [0, 0]
    whole = FileOfItsOwn(str(tmp_path), "kernel", "stamp")
    assert [whole.load(f"{name} {k}") for name in "ab" for k in range(20)] == 2 * list(range(20))


@compiled_only
@pytest.mark.parametrize(
    "harm", [lambda data: b"", lambda data: data[: len(data) // 2], lambda data: data[:-40] + b"?" + data[-39:]]
)
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_what_was_damaged_since_is_compiled_again(tmp_path, ending, harm):
    def opened():
        return FileOfItsOwn(str(tmp_path), "kernel", "stamp")

    opened().save("a", "a kernel of some length" * 9)
    (file,) = tmp_path.glob(f"*.{ending}")
    file.write_bytes(harm(file.read_bytes()))
    assert opened().load("a") is None
    opened().save("a", "a kernel of some length" * 9)
    assert opened().load("a") == "a kernel of some length" * 9


FILES = sorted(CORE.glob("**/*.py"))


def imported(path):
    """Files of the core that Python would read an import in this file from, by its grammar."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for module in modules:
            base = CORE.parent.joinpath(*module.split("."))
            found |= {file for file in (base.with_suffix(".py"), base / "__init__.py") if file in FILES}
    return found - {CORE / "__init__.py"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CORE)))
def test_imports_are_read_as_python_reads_them(path):
    assert imports_of(path) == imported(path)


def test_imports_in_brackets_with_other_names_and_of_whole_modules(tmp_path):
    path = tmp_path / "made_up.py"
    path.write_text(
        "import numpy, ltr\n"
        "import ltr.trees.splits\n"
        "from ltr import nets\n"
        "from ltr.kernels.kernel import (\n    F8,\n    ready,\n)\n"
        "from ltr.trees import (\n    binning as b,\n    shards,\n)\n"
        "def late():\n    from ltr.metrics.dcg import steady as s\n"
    )
    assert imports_of(path) == imported(path)
    names = {str(file.relative_to(CORE)) for file in imports_of(path)}
    assert names == {
        "trees/__init__.py", "trees/splits.py", "trees/binning.py", "trees/shards.py", "nets/__init__.py", "kernels/kernel.py",
        "metrics/dcg.py",
    }  # fmt: skip


def test_sources_are_all_that_is_imported_directly_or_not():
    def below(path, seen):
        return set() if path in seen else set().union({path}, *(below(one, {*seen, path}) for one in imported(path)))

    costs = CORE / "objectives" / "pair_costs.py"
    assert set(sources_of(costs)) == below(costs, set())
    assert CORE / "kernels" / "exponential.py" in sources_of(costs)
    assert CORE / "trees" / "binning.py" not in sources_of(costs)
    assert len({digest_of_sources(path) for path in FILES if path.parent.name == "metrics"}) > 5
