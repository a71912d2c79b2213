"""What `import ltr` brings along: it is the first thing that anybody waits for."""

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
