"""Law 1 of the house: flows → tasks → ltr, never back; who may know which library."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("ltr", "tasks", "flows")
MAY_SEE = {"ltr": {"ltr"}, "tasks": {"tasks", "ltr"}, "flows": {"flows", "tasks", "ltr"}}
CORE_LIBRARIES = {"numpy", "numba", "scipy"}
ASKED_BY = {"estimator.py": {"sklearn"}}
"""Libraries that a module imports only inside functions, which those libraries call; without them the module works."""
NOT_IN_CORE = {"logging", "os", "sys", "subprocess", "socket", "pickle", "shutil", "tempfile"}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module, node


FILES = [path for room in ROOMS for path in sorted((ROOT / room).glob("**/*.py"))]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_one_way(path):
    room = path.relative_to(ROOT).parts[0]
    for module, node in imports(path):
        top = module.split(".")[0]
        assert top not in ROOMS or top in MAY_SEE[room], f"{path}: {room} must not import {module}"
        assert top != "pickle", f"{path}: no pickle anywhere"
        if room == "ltr" and not (top in ASKED_BY.get(path.name, ()) and node.col_offset > 0):
            allowed = top in CORE_LIBRARIES or top == "ltr" or (top in sys.stdlib_module_names and top not in NOT_IN_CORE)
            assert allowed, f"{path}: the core must not import {module}"
        if room == "flows":
            assert top not in ("polars", "mlflow"), f"{path}: only tasks know {top}"


@pytest.mark.parametrize("path", [p for p in FILES if "ltr" in p.parts], ids=lambda p: p.name)
def test_the_core_neither_prints_nor_opens_files_but_models(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"{path}:{node.lineno}"
            assert node.func.id != "open" or path.name == "base.py", f"{path}:{node.lineno}"


def test_mlflow_lives_in_its_rooms_only():
    knows = {path.name for path in FILES for module, _ in imports(path) if module.split(".")[0] == "mlflow"}
    assert knows == {"tracking.py", "registry.py", "served_model.py"}


def test_no_catch_all_module():
    assert not [path for path in FILES if path.stem in ("utils", "helpers", "misc", "common")]


def test_tests_mirror_modules():
    tested = {path.stem.removeprefix("test_") for path in (ROOT / "tests").glob("**/test_*.py")}
    small = {
        "__init__",
        "ranking",
        "jit",
        "binning",
        "least_squares",
        "store",
        "evaluate",
        "progress",
        "terminal",
        "optimality",
        *(
            "kernel",
            "conventions",
            "gains",
            "dcg",
            "average_precision",
            "reciprocal_rank",
            "err",
            "precision",
            "auc",
            "pair_errors",
        ),
        *("pair_costs", "constructions", "terms", "surface", "network"),
    }
    missing = {path.stem for path in FILES} - tested - small
    assert not missing, f"modules without a test of their own: {sorted(missing)}"
