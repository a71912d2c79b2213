"""What a command imports before it works, and what it reads."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import ltr
from flows.cli import main
from tasks.export.formats import export
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


def test_columns_of_text_that_a_model_does_not_read_are_left_out(workplace, capsys):
    """`predict` read such a file, and the others refused it; a model that names no features counts columns, so that none may be left out."""
    rows = [f"{k % 4},q{k // 8},d{k},{k % 5},title {k}" for k in range(40)]
    Path("judged.csv").write_text("\n".join(("label,query,document,bm25,title", *rows)) + "\n")
    queries = ltr.queries_from(np.array([[k % 5] for k in range(40)]), [k % 4 for k in range(40)], group=[8] * 5)
    ltr.save(replace(ltr.LeastSquares().fit(queries), names=("bm25",)), "m")
    given = ["--data", "judged.csv", "--json"]
    said = "judged.csv: column 'title' holds no numbers and the model does not read it, so it is left out"
    for command in (["evaluate"], ["explain"], ["export", "--to", "linear", "-o", "w.json"]):
        assert main([*command, "--model", "m", *given]) == 0
        assert said in capsys.readouterr().err
    Path("weights.txt").write_text("title,2\n")
    assert main(["evaluate", "--model", "weights.txt", *given]) == 1
    assert "column 'title' has 'title 0': labels and features must be numbers" in capsys.readouterr().err
    tree = ltr.LambdaMART(n_trees=2, min_docs_in_leaf=1).fit(queries)
    export(tree, "nameless.json", "xgboost")
    written = json.loads(Path("nameless.json").read_text())
    written["learner"]["feature_names"] = written["learner"]["feature_types"] = []
    Path("nameless.json").write_text(json.dumps(written))
    assert main(["evaluate", "--model", "nameless.json", *given]) == 1
    assert "column 'title' has 'title 0': labels and features must be numbers" in capsys.readouterr().err


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
