"""What trains on the command line: codes, messages, JSON."""

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from flows.cli import main
from tasks.config import fuse
from tasks.tracking.lookup import find_model


def lambdaflow(*arguments, cwd):
    return subprocess.run([sys.executable, "-m", "flows.cli", *arguments], cwd=cwd, capture_output=True, text=True, timeout=300)


def test_a_wrong_configuration_is_one_line_and_leaves_nothing(tmp_path, monkeypatch, capsys):
    (tmp_path / "c.yaml").write_text("data: {files: a.txt}\nranker: 1\n")
    done = lambdaflow("run", "c.yaml", cwd=tmp_path)
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if not line.strip().startswith("starting")]
    assert said == ["error: c.yaml: unknown key 'ranker'; did you mean rankers?"]
    assert [p.name for p in tmp_path.iterdir()] == ["c.yaml"]
    monkeypatch.chdir(tmp_path)
    assert main(["run", "c.yaml", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_configuration_that_is_not_there(workplace, capsys):
    assert main(["run", "c2.yaml"]) == 1
    assert "c2.yaml: no such file" in capsys.readouterr().err


def test_runner_forms(workplace, capsys, monkeypatch):
    monkeypatch.setattr("flows.commands.training._compile", lambda: pytest.fail("kernels were compiled first"))
    monkeypatch.setattr("ltr.trees.grower.is_cold", lambda: True)
    monkeypatch.setattr("tasks.tracking.store.opened", lambda: pytest.fail("MLflow was opened first"))
    (workplace / "c.yaml").write_text("data: {files: a.txt}\n")
    (workplace / "a.txt").touch()
    assert main(["run", "c.yaml", "--runner", "rocket"]) == 1
    assert "--runner rocket: threads[=N], processes[=N]" in capsys.readouterr().err
    assert main(["run", "c.yaml", "--runner", "threads=²"]) == 1
    assert "--runner threads=²: threads[=N]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (["fuse", "a.run", "b.run", "--qrels", "none.txt"], "none.txt"),
        (["fuse", "a.run", "none.run", "--qrels", "q"], "none.run"),
        (["run", "c.yaml"], "none.parquet"),
        (["optimality", "--model", "q", "--data", "none.txt"], "none.txt"),
    ],
)
def test_a_file_is_missed_before_a_server_is_asked_for(workplace, capsys, monkeypatch, arguments, missing):
    (workplace / "c.yaml").write_text("data: {files: q, clicks: {log: none.parquet}}")
    for name in ("a.run", "b.run", "q"):
        (workplace / name).write_text("")
    monkeypatch.setattr("flows.own_server.use_own_server", lambda begun: pytest.fail("a server was asked for"))
    assert main(arguments) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"error: {missing}: no such file"


@pytest.mark.usefixtures("prefect_server")
def test_json_is_the_last_line_of_standard_output(workplace, capsys):
    (workplace / "a.txt").write_text("".join(f"{(k * 7) % 3} qid:{k // 6} 1:{(k * 7) % 3 + k % 2} 2:{k % 5}\n" for k in range(240)))
    (workplace / "c.yaml").write_text("data: {files: a.txt}\nrankers: {linear: {kind: lambdarank, epochs: 2}}\n")
    assert main(["run", "c.yaml", "--json"]) == 0
    out, err = capsys.readouterr()
    written = json.loads(out)
    assert set(written) == {"run_id", "models", "names"}
    assert written["names"]["linear"] == [f"{written['run_id'][:8]}:linear:1"]
    assert find_model(written["names"]["linear"][0]).digest == written["models"]["linear"]["digest"]
    assert set(written["models"]["linear"]) == {"digest", "metrics"}
    assert "test_ndcg_10" in written["models"]["linear"]["metrics"]
    assert "lambdaflow ui" in err


@pytest.mark.usefixtures("prefect_server")
def test_the_table_is_on_standard_output_and_the_record_is_kept_where_nobody_reads_it(workplace, capsys, monkeypatch):
    (workplace / "a.txt").write_text("".join(f"{(k * 7) % 3} qid:{k // 6} 1:{(k * 7) % 3 + k % 2} 2:{k % 5}\n" for k in range(240)))
    (workplace / "c.yaml").write_text("name: small\ndata: {files: a.txt}\nrankers: {linear: {kind: lambdarank, epochs: 2}}\n")
    assert main(["run", "c.yaml"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("small: test queries")
    assert "Report: " in out
    assert "test queries" not in err

    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Closed())
    assert main(["run", "c.yaml", "--record", "r.json"]) == 1
    assert list(json.loads((workplace / "r.json").read_text())) == ["small"]


@pytest.mark.usefixtures("prefect_server")
def test_a_record_that_cannot_be_written_is_told_before_training_and_takes_no_table_with_it(workplace, capsys, monkeypatch):
    (workplace / "a.txt").write_text("".join(f"{(k * 7) % 3} qid:{k // 6} 1:{(k * 7) % 3 + k % 2} 2:{k % 5}\n" for k in range(240)))
    (workplace / "c.yaml").write_text("name: small\ndata: {files: a.txt}\nrankers: {linear: {kind: lambdarank, epochs: 2}}\n")
    (workplace / "kept").mkdir()
    may = os.access
    with monkeypatch.context() as patched:
        patched.setattr(
            os, "access", lambda path, mode: Path(path).name != "kept" and may(path, mode)
        )  # root may, whatever the mode
        assert main(["run", "c.yaml", "--record", "kept/r.json"]) == 1
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[-1]) == ("", "error: kept/r.json: the folder kept cannot be written to")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "kept/r.json")

    monkeypatch.setattr("tasks.report.results_file.keep_results", full)
    assert main(["run", "c.yaml", "--record", "kept/r.json"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("small: test queries")
    assert "error: no space left on the device for kept/r.json" in err


@pytest.mark.usefixtures("prefect_server")
def test_fuse_writes_the_fusion_that_is_best_on_queries_its_models_have_not_seen(workplace, capsys, monkeypatch):
    """It ended with a KeyError below its table, and wrote nothing, unless `--with` said which."""
    monkeypatch.setattr(fuse, "WAYS", {name: fuse.WAYS[name] for name in ("rrf", "combsum-borda")})
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, (12, 8))
    judged = [f"q{q} 0 d{d} {labels[q, d]}" for q in range(12) for d in range(8)]
    (workplace / "qrels").write_text("\n".join(judged) + "\n")
    for name, noise in (("a", 0.5), ("b", 1.5)):
        scores = labels + rng.normal(size=labels.shape) * noise
        lines = [f"q{q} Q0 d{d} 1 {scores[q, d]:.4f} {name}" for q in range(12) for d in range(8)]
        (workplace / f"{name}.run").write_text("\n".join(lines) + "\n")
    assert main(["fuse", "a.run", "b.run", "--qrels", "qrels", "--folds", "3", "-o", "fused.run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    metrics = {name: found["models"][name]["metrics"]["test_ndcg_10"] for name in fuse.WAYS}
    assert found["written"] == {"run": "fused.run", "ranker": max(metrics, key=metrics.__getitem__)}
    assert len((workplace / "fused.run").read_text().splitlines()) == 96
