"""What a command imports before it works."""

import subprocess
import sys

import ltr
from tests.conftest import make_queries, own_environment


def imported_by(code, cwd):
    """Libraries among those that take long which a process of its own has imported, having run some code."""
    slow = ("prefect", "mlflow", "scipy.stats", "scipy.optimize", "matplotlib", "optuna", "sklearn", "distributed")
    told = f"{code}; import sys; print(*[name for name in {slow} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", told], cwd=cwd, env=own_environment(), capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_commands_import_what_they_use(tmp_path):
    """Importing is most of what a small model's prediction and the beginning of a run take."""
    ltr.save(ltr.LeastSquares().fit(make_queries(10)), tmp_path / "m")
    (tmp_path / "d.txt").write_text("".join(f"{k % 3} qid:{k // 4} 1:{k} 2:{-k} 3:1 4:{k % 2}\n" for k in range(40)))
    before = "from flows.cli import main; main"
    assert not imported_by(f"{before}(['predict', '--model', 'm', '--data', 'd.txt', '-o', 's.csv'])", tmp_path)
    assert not imported_by(f"{before}(['export', '--model', 'm', '--to', 'linear', '-o', 'w.json'])", tmp_path)
    assert imported_by("import flows, tasks.evidence, tasks.config.reading", tmp_path) == {"prefect"}
    whole = "import flows; flows.make_state_folder(); import tasks.evidence, flows.pipeline, flows.interruption, flows.terminal"
    assert imported_by(whole, tmp_path) == {"prefect", "mlflow"}
