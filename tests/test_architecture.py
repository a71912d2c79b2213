"""The laws of the house: who may see whom, who may know which library, what signatures say, and where a module's test is.

Laws are read off the sources: imports wherever they stand in a file, also inside functions and for type checkers.
"""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOPS = ("ltr", "tasks", "flows")
FLOORS = {
    "ltr": (
        {"data", "kernels"}, {"metrics"}, {"clicks"}, {"objectives"}, {"rankers"}, {"trees", "nets", "linear", "diagnostics"},
    ),
    "tasks": (
        {"records", "config", "store"}, {"data"}, {"training", "export"}, {"tracking"}, {"evidence"}, {"report"},
    ),
}  # fmt: skip
"""Packages (and modules) of each top, lowest first: each sees the floors below, and itself."""
NEIGHBOURS = {("tasks", "records"): set(), ("tasks", "config"): {"records"}, ("tasks", "store"): {"records"}}
"""Within the lowest floor of `tasks`."""
CORE_LIBRARIES = {"numpy", "numba", "scipy"}
ASKED_BY = {"ltr/rankers/estimator.py": {"sklearn"}}
"""Libraries that a module imports only inside functions, which those libraries call; without them the module works."""
NOT_IN_CORE = {"logging", "os", "sys", "subprocess", "socket", "pickle", "shutil", "tempfile"}
KNOWS_THE_ENVIRONMENT = {
    "ltr/kernels/locks.py": {"os"},
    "ltr/kernels/signals.py": {"os"},
    "ltr/kernels/threads.py": {"os"},
    "ltr/kernels/workqueue.py": {"os"},
    "ltr/kernels/cache.py": {"os", "shutil", "tempfile"},
    "ltr/kernels/beside.py": {"os", "subprocess", "sys"},
}
"""How threads wait can be said in no other way; compiled kernels are files in the user's cache folder; two of them are compiled at once by
two processes only; a process that another forked is known by its number; and a folder, in which a model is saved, is opened by nothing else, to be locked."""
OPENS_FILES = {"ltr/rankers/saved.py"}
KNOW_MLFLOW = {f"tasks/tracking/{name}.py" for name in ("store", "tracker", "tracked", "registry", "served_model")}
MOST_PARAMETERS = 7
LONG_SIGNATURES = {
    "ltr/diagnostics/optimality.py certify": "public as `ltr.certify` since 0.1.0, its settings given by name",
    "ltr/rankers/estimator.py fit": "what LGBMRanker's and XGBRanker's take, by their names",
    "ltr/kernels/lanes.py _walk_by_numpy": "the twin of a compiled function, whose signature it has",
}
FILES = [path for top in TOPS for path in sorted((ROOT / top).glob("**/*.py"))]


@cache
def tree_of(path):
    return ast.parse(path.read_text())


def name_of(path):
    return str(path.relative_to(ROOT))


@cache
def imports(path):
    """Modules that a file imports, each with its node; names imported from a package that are modules themselves count as such."""
    found = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found += [(alias.name, node) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}: relative import"
            inner = [f"{node.module}.{alias.name}" for alias in node.names if file_of(f"{node.module}.{alias.name}")]
            found += [(module, node) for module in inner or [node.module]]
    return found


@cache
def file_of(module):
    """The file of a module of ours, None for others."""
    base = ROOT.joinpath(*module.split("."))
    return next((file for file in (base.with_suffix(".py"), base / "__init__.py") if file.is_file()), None)


def room_of(path):
    """The package of a top that a file is in, or the module's own name where it is in none; None for the top itself."""
    _, *inner = path.relative_to(ROOT).with_suffix("").parts
    return None if inner == ["__init__"] else inner[0]


def floor_of(top, room):
    return next(k for k, rooms in enumerate(FLOORS[top]) if room in rooms)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_go_down_and_never_up_or_across(path):
    top, room = path.relative_to(ROOT).parts[0], room_of(path)
    for module, node in imports(path):
        other = module.split(".")[0]
        where = f"{name_of(path)}:{node.lineno} imports {module}"
        assert other != "pickle", where
        assert other not in TOPS or TOPS.index(other) <= TOPS.index(top), where
        if other != top or top not in FLOORS or room is None or file_of(module) is None:
            continue
        seen = room_of(file_of(module))
        assert seen is not None, f"{where}: name the module, the top imports everything"
        if seen == room:
            continue
        if (top, room) in NEIGHBOURS and floor_of(top, seen) == 0:
            assert seen in NEIGHBOURS[top, room], where
        else:
            assert floor_of(top, seen) < floor_of(top, room), where


@pytest.mark.parametrize("path", [path for path in FILES if path.relative_to(ROOT).parts[0] == "ltr"], ids=name_of)
def test_the_core_knows_numbers_only(path):
    for module, node in imports(path):
        top = module.split(".")[0]
        if not (top in ASKED_BY.get(name_of(path), ()) and node.col_offset > 0):
            allowed = top in CORE_LIBRARIES or top == "ltr" or (top in sys.stdlib_module_names and top not in NOT_IN_CORE)
            allowed |= top in KNOWS_THE_ENVIRONMENT.get(name_of(path), ())
            assert allowed, f"{name_of(path)}:{node.lineno}: the core must not import {module}"
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"{name_of(path)}:{node.lineno}"
            assert node.func.id != "open" or name_of(path) in OPENS_FILES, f"{name_of(path)}:{node.lineno}"


def reached(path):
    """Every file of ours that importing one runs, the packages' own included."""
    seen, waiting = {path}, [path]
    while waiting:
        for module, _ in imports(waiting.pop()):
            parts = module.split(".")
            for depth in range(1, len(parts) + 1):
                file = file_of(".".join(parts[:depth]))
                if file is not None and file not in seen:
                    seen.add(file)
                    waiting.append(file)
    return seen


def test_mlflow_lives_in_its_rooms_and_nothing_below_them_reaches_it():
    knows = {path for path in FILES for module, _ in imports(path) if module.split(".")[0] == "mlflow"}
    assert {name_of(path) for path in knows} == KNOW_MLFLOW
    below = [path for path in FILES if path.relative_to(ROOT).parts[0] == "tasks" and room_of(path)]
    for path in (path for path in below if floor_of("tasks", room_of(path)) < floor_of("tasks", "tracking")):
        assert not reached(path) & knows, name_of(path)


def test_only_tasks_know_tables_and_only_flows_wire():
    for path in FILES:
        if path.relative_to(ROOT).parts[0] == "flows":
            assert not {module.split(".")[0] for module, _ in imports(path)} & {"polars", "mlflow"}, name_of(path)


def test_there_is_no_circle():
    """A module is never reached from what it imports (packages' own files apart, which bring their modules together)."""

    @cache
    def below(path):
        direct = {file_of(module) for module, _ in imports(path) if file_of(module)} - {path}
        return frozenset(file for file in direct if file.name != "__init__.py")

    for start in FILES:
        seen, waiting = set(), list(below(start))
        while waiting:
            path = waiting.pop()
            assert path != start, f"{name_of(start)} is in a circle of imports"
            if path not in seen:
                seen.add(path)
                waiting += below(path)


def functions(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef):
            yield node


def is_compiled(node):
    return any(
        any(name in ast.unparse(d) for name in ("njit", "inner(", "overload", "jitable", "intrinsic")) for d in node.decorator_list
    )


def parameters(node):
    named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [argument.arg for argument in named if argument.arg not in ("self", "cls")]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_signatures_name_what_travels(path):
    """No mapping of anything in a public signature outside the reading of configurations, where plain values are what is read."""
    if room_of(path) == "config":
        return
    for node in functions(path):
        if node.name.startswith("_") or is_compiled(node) or node.name == "as_json":
            continue
        hints = [argument.annotation for argument in (*node.args.args, *node.args.kwonlyargs)] + [node.returns]
        for hint in (ast.unparse(hint) for hint in hints if hint is not None):
            assert "dict[str, Any]" not in hint, f"{name_of(path)}:{node.lineno} {node.name}: {hint}"


def test_signatures_are_short():
    """Compiled functions take arrays one by one and are none of these."""
    long = {
        f"{name_of(path)} {node.name}"
        for path in FILES
        for node in functions(path)
        if not is_compiled(node) and len(parameters(node)) > MOST_PARAMETERS
    }
    assert long == set(LONG_SIGNATURES)


def test_what_python_calls_returns_no_arrays():
    """To hand an array or a record over to Python, and to look at a function that it is given, numba calls Python, which acts on a signal that came
    meanwhile (Ctrl-C); the exception that this raises is not looked at, and the process ends with SIGSEGV or goes on. Kernels write into
    arrays that they are given, and take functions by their addresses."""
    scalars = {"int", "float", "bool", "None", "tuple", "np", "int64"}

    def hands_over(node):
        named = {
            one.id if isinstance(one, ast.Name) else one.attr for one in ast.walk(node) if isinstance(one, ast.Name | ast.Attribute)
        }
        texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        return bool(texts) or not named <= scalars

    def outside_kernels(node):
        for child in ast.iter_child_nodes(node):
            if not (isinstance(child, ast.FunctionDef) and is_compiled(child)):
                yield child
                yield from outside_kernels(child)

    core = [path for path in FILES if name_of(path).startswith("ltr/")]
    kernels = [one for path in core for one in functions(path) if any("njit" in ast.unparse(d) for d in one.decorator_list)]
    handing_over = {one.name for one in kernels if one.returns is not None and hands_over(one.returns)}
    assert "by_score" in handing_over, "which compiled code calls"
    found = {
        f"{name_of(path)}: {name}"
        for path in core
        for one in outside_kernels(tree_of(path))
        for name in [one.id if isinstance(one, ast.Name) else one.attr if isinstance(one, ast.Attribute) else ""]
        if name in handing_over and not any(own.name == name and own not in kernels for own in functions(path))
    }
    assert not found
    assert [name_of(path) for path in core if "types.FunctionType" in path.read_text(encoding="utf-8")] == ["ltr/kernels/kernel.py"]


def test_every_silenced_type_error_says_why():
    """Few of them, each with its rule and a reason in words behind it or above."""
    found = []
    for path in FILES:
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            if "# type: ignore" in line:
                found.append(f"{name_of(path)}:{number + 1}")
                assert "# type: ignore[" in line, found[-1]
                assert "# " in line.partition("# type: ignore[")[2] or lines[number - 1].strip().startswith("#"), found[-1]
    assert len(found) <= 5, found


def test_module_names_are_unique_within_each_top_and_none_is_a_catch_all():
    for top in TOPS:
        names = [path.stem for path in FILES if path.relative_to(ROOT).parts[0] == top and path.stem != "__init__"]
        assert sorted(names) == sorted(set(names))
    assert not [path for path in FILES if path.stem in ("utils", "helpers", "misc", "common")]


def test_tests_mirror_modules_by_path():
    wanted = {ROOT / "tests" / path.relative_to(ROOT).with_name(f"test_{path.name}") for path in FILES if path.stem != "__init__"}
    missing = sorted(name_of(path) for path in wanted if not path.is_file())
    assert not missing, missing


@cache
def documented_methods():
    """Names of methods that some class documents: a subclass that overrides one need not say it again."""
    classes = (node for tree in map(tree_of, FILES) for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {f.name for c in classes for f in c.body if isinstance(f, ast.FunctionDef) and ast.get_docstring(f)}


def silent(body, overridden, prefix=""):
    """Public functions, classes and methods without a docstring; functions within functions are nobody's but their own."""
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node) and node.name not in overridden:
            yield f"{node.lineno} {prefix}{node.name}"
        if isinstance(node, ast.ClassDef):
            yield from silent(node.body, documented_methods() if node.bases else (), f"{node.name}.")


def test_everything_public_says_what_it_is():
    found = [f"{name_of(path)}:{entry}" for path in FILES for entry in silent(tree_of(path).body, ())]
    assert not found, "\n".join(found)


def test_text_is_utf_8_wherever_the_machine_is():
    """What is not said is the locale's, in which a report cannot be written."""
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and (name := getattr(node.func, "attr", getattr(node.func, "id", ""))):
                said = {keyword.arg for keyword in node.keywords} | (
                    {"encoding"} if len(node.args) > (name == "write_text") else set()
                )
                where = f"{name_of(path)}:{node.lineno}"
                assert name not in ("read_text", "write_text") or "encoding" in said, where
                if name == "open" and ast.unparse(node.func) not in ("os.open", "archive.open"):
                    modes = node.args[isinstance(node.func, ast.Name) :]  # `path.open(mode)`, and `open(path, mode)`
                    mode = modes[0].value if modes and isinstance(modes[0], ast.Constant) else "r"
                    assert "b" in mode or "encoding" in {keyword.arg for keyword in node.keywords}, where
