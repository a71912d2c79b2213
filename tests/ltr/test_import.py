"""What `import ltr` brings along: it is the first thing that anybody waits for."""

import inspect
import subprocess
import sys
from pathlib import Path

import ltr


def test_importing_the_core_imports_nothing_that_takes_long():
    code = "import sys, ltr; print(*sorted(name for name in sys.modules if name.split('.')[0] in ('scipy', 'sklearn', 'prefect')))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(ltr.__file__).parents[1], capture_output=True, text=True, check=True
    )
    heavy = ("scipy.stats", "scipy.optimize", "scipy.sparse", "sklearn", "prefect")
    assert not [name for name in done.stdout.split() if name.startswith(heavy)]


def test_signatures_name_types_as_their_sources_do():
    """numpy's ArrayLike is a page of unions where it is spelt out, in the middle of what `help` shows."""
    public = {name: getattr(ltr, name) for name in ltr.__all__}
    methods = {
        f"{name}.{method}": value
        for name, owner in public.items()
        if inspect.isclass(owner)
        for method, value in vars(owner).items()
        if inspect.isfunction(value) and not method.startswith("_")
    }
    functions = {name: value for name, value in {**public, **methods}.items() if inspect.isfunction(value)}
    assert len(functions) > 100
    assert not [name for name, value in functions.items() if "numpy._typing" in str(inspect.signature(value))]
