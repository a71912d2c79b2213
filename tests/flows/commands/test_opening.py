"""What a command imports before it works, and what it reads."""

import json
import subprocess
import sys
from pathlib import Path

import ltr
from flows.cli import main
from tests.conftest import make_queries, own_environment


def imported_by(cwd, *steps):
    """Libraries among those that take long which a process of its own has imported after each step of some code."""
    slow = ("prefect", "mlflow", "scipy.stats", "scipy.optimize", "matplotlib", "optuna", "sklearn", "distributed")
    told = f"import sys; print('imported', *[name for name in {slow} if name in sys.modules])"
    code = "\n".join(line for step in steps for line in (step, told))
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, env=own_environment(), capture_output=True, text=True, check=True)
    return [set(line.split()[1:]) for line in done.stdout.splitlines() if line.startswith("imported")]


def test_commands_import_what_they_use(tmp_path):
    """Importing is most of what a small model's prediction and the beginning of a run take."""
    ltr.save(ltr.LeastSquares().fit(make_queries(10)), tmp_path / "m")
    (tmp_path / "d.txt").write_text("".join(f"{k % 3} qid:{k // 4} 1:{k} 2:{-k} 3:1 4:{k % 2}\n" for k in range(40)))
    predict = "from flows.cli import main; assert main(['predict', '--model', 'm', '--data', 'd.txt', '-o', 's.csv']) == 0"
    export = "assert main(['export', '--model', 'm', '--to', 'linear', '-o', 'w.json']) == 0"
    assert imported_by(tmp_path, predict, export) == [set(), set()]
    read = "import flows, tasks.evidence, tasks.config.reading"
    whole = "flows.make_state_folder(); import flows.pipeline, flows.interruption, flows.terminal"
    assert imported_by(tmp_path, read, whole) == [{"prefect"}, {"prefect", "mlflow"}]


def test_features_that_a_file_of_weights_does_not_name_are_not_read(workplace, capsys):
    """`predict` scored documents that lacked one, and the others refused them."""
    rows = [f"{k % 4},q{k // 8},d{k},{k % 5},{'' if k % 3 else k}" for k in range(40)]
    Path("judged.csv").write_text("\n".join(("label,query,document,bm25,rare", *rows)) + "\n")
    Path("weights.txt").write_text("bm25,2\n")
    given = ["--model", "weights.txt", "--data", "judged.csv", "--json"]
    assert main(["evaluate", *given, "--measure", "ndcg"]) == 0
    capsys.readouterr()
    assert main(["explain", *given, "--query", "q0"]) == 0
    (reason,) = json.loads(capsys.readouterr().out)["why"]["reasons"]
    assert (reason["feature"], reason["contribution"]) == ("bm25", 2 * (reason["above"] - reason["below"]))
