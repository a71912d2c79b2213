"""The command line from outside: codes, messages, JSON."""

import json
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ltr
from flows.cli import main
from ltr.clicks.interleaving import sessions_needed
from tests.click_logs import layout, shuffled_pages, users
from tests.conftest import make_queries, own_environment


def lambdaflow(*arguments, cwd):
    return subprocess.run([sys.executable, "-m", "flows.cli", *arguments], cwd=cwd, capture_output=True, text=True, timeout=300)


def test_help_is_instant_and_wrong_usage_is_2(tmp_path):
    started = time.perf_counter()
    done = lambdaflow("--help", cwd=tmp_path)
    assert time.perf_counter() - started < 2
    assert done.returncode == 0
    assert {"run", "check", "ui"} <= set(done.stdout.split())
    assert lambdaflow("fly", cwd=tmp_path).returncode == 2
    assert not list(tmp_path.iterdir())


def test_a_wrong_configuration_is_one_line_and_leaves_nothing(tmp_path):
    (tmp_path / "c.yaml").write_text("data: {files: a.txt}\nranker: 1\n")
    done = lambdaflow("run", "c.yaml", cwd=tmp_path)
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if not line.strip().startswith("starting")]
    assert said == ["error: c.yaml: unknown key 'ranker'; did you mean rankers?"]
    assert [p.name for p in tmp_path.iterdir()] == ["c.yaml"]
    assert "Traceback" in lambdaflow("run", "c.yaml", "--debug", cwd=tmp_path).stderr
    assert "c2.yaml: no such file" in lambdaflow("run", "c2.yaml", cwd=tmp_path).stderr


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


def test_runner_forms(workplace, capsys):
    (workplace / "c.yaml").write_text("data: {files: a.txt}\n")
    (workplace / "a.txt").touch()
    assert main(["run", "c.yaml", "--runner", "rocket"]) == 1
    assert "--runner rocket: threads[=N], processes[=N]" in capsys.readouterr().err


def test_check_prints_findings_and_its_code_tells_errors(workplace, capsys):
    (workplace / "good.txt").write_text("".join(f"{k % 3} qid:{k // 4} 1:{k} 2:{-k}\n" for k in range(40)))
    (workplace / "bad.txt").write_text("0 qid:1 1:1\n0 qid:1 1:2\n")
    assert main(["check", "good.txt"]) == 0
    assert "10 queries, 40 documents, 2 features" in capsys.readouterr().out
    assert main(["check", "bad.txt", "--json"]) == 1
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {"error"} <= {f["level"] for f in found}
    assert main(["check", "none.txt"]) == 1
    assert capsys.readouterr().err.endswith("error: none.txt: no such file\n")


def test_check_looks_at_the_store(workplace, capsys):
    (workplace / "good.txt").write_text("".join(f"{k % 3} qid:{k // 4} 1:{k} 2:{-k}\n" for k in range(40)))
    assert main(["check", "good.txt"]) == 0
    capsys.readouterr()
    assert main(["check", "--store"]) == 0
    assert capsys.readouterr().out == "nothing is damaged\n"
    (features,) = workplace.glob(".lambdaflow/data/*/features.npy")
    features.write_bytes(b"")
    assert main(["check", "--store"]) == 1
    assert "features.npy has 0 bytes and was written with" in capsys.readouterr().out
    assert main(["check"]) == main(["check", "good.txt", "--store"]) == 1
    assert capsys.readouterr().err.count("files to look at, or --store") == 2


def test_check_takes_column_names(workplace, capsys):
    (workplace / "a.csv").write_text("q,grade,f\n1,2,0.5\n1,0,0.1\n")
    assert main(["check", "a.csv"]) == 1
    assert "no column 'query'" in capsys.readouterr().err
    assert main(["check", "a.csv", "--set", "query=q", "--set", "label=grade"]) == 0


def test_check_joins_runs(workplace, capsys):
    (workplace / "a.csv").write_text("query,document,label,f\n1,a,2,0.5\n1,b,0,0.1\n2,c,1,3\n2,d,0,1\n")
    (workplace / "r.trec").write_text("1 Q0 a 1 9 x\n2 Q0 c 1 8 x\n2 Q0 z 2 7 x\n")
    assert main(["check", "a.csv", "--set", "runs.bm25=r.trec"]) == 0
    told = capsys.readouterr().out
    assert "run 'bm25': 2 of 4 documents with a score; not in these data: 1 document of the run, of 1 query here" in told
    assert "4 documents, 2 features" in told
    (workplace / "r.trec").write_text("7 Q0 a 1 9 x\n")
    assert main(["check", "a.csv", "--set", "runs.bm25=r.trec"]) == 1
    assert "no document of run 'bm25' is in the data" in capsys.readouterr().out


def test_check_looks_at_clicks(workplace, capsys):
    (workplace / "a.csv").write_text("query,document,label,f\n1,a,2,0.5\n1,b,0,0.1\n2,c,3,3\n2,d,0,1\n")
    assert main(["check", "a.csv", "--set", "clicks.log=none.tsv"]) == 1
    assert "error    none.tsv: no such file" in capsys.readouterr().out
    (workplace / "l.csv").write_text("session,query,document,click,rank\n1,1,a,1,1\n1,1,b,,2\n2,1,b,,1\n2,1,a,1,2\n3,9,z,1,1\n")
    assert main(["check", "a.csv", "--set", "clicks={log: l.csv, debias: true}"]) == 0
    told = capsys.readouterr().out
    assert "note     l.csv: 3 sessions, 3 pages, 5 impressions, 3 clicks (3 the last of their page), ranks 1–2" in told
    assert "l.csv: clicks by rank, 1: 66.7%, 2: 50.0%" in told
    assert "a.csv: looks at ranks 1, 2, … (all clicks): 1.00 1.00" in told
    assert "a.csv: label 'click': 4 impressions" in told
    assert main(["check", "a.csv", "--set", "clicks={log: l.csv, click: clicked}"]) == 1
    assert "error    l.csv: no column 'clicked'; did you mean click?" in capsys.readouterr().out
    (workplace / "other.csv").write_text("session,query,document,click\n1,7,a,1\n")
    assert main(["check", "a.csv", "--set", "clicks.log=other.csv"]) == 1
    assert "error    a.csv: no document of the click log is in the data" in capsys.readouterr().out


def test_clicks_compares_models_and_writes_attractiveness(workplace, capsys):
    pages = layout(4, 6, 400, 4)
    clicked = users("pbm", pages).simulate(pages, 1)
    columns = {
        "visit": pages.of_page(),
        "query": pages.query[pages.pair],
        "doc": pages.pair,
        "pos": pages.rank,
        "click": clicked.click.astype(int),
    }
    pl.DataFrame(columns).write_csv("log.csv")
    named = [f"--set={key}" for key in ("session=visit", "data.clicks.document=doc", "clicks.rank=pos", "prior=2")]
    assert main(["clicks", "log.csv", *named, "-o", "a.csv", "--json"]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out.splitlines()[-1])
    assert found["winner"] in found["models"]
    assert found["sessions"] + found["held_out"] == 400
    assert f"{found['winner']} foretells clicks best" in told.err
    assert pl.read_csv("a.csv").columns == ["query", "document", "impressions", "clicks", "looks", "attraction", "deviation"]
    rows = pl.read_csv("log.csv").sample(fraction=1.0, shuffle=True, seed=1)
    rows.write_csv("shuffled.csv")
    assert main(["clicks", "shuffled.csv", *named, "-o", "b.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == found
    assert (workplace / "a.csv").read_bytes() == (workplace / "b.csv").read_bytes()


def test_clicks_refuses_in_a_line(workplace, capsys):
    (workplace / "log.csv").write_text("session,query,document,click,rank\ns,q,a,1,0\n")
    for arguments, said in (
        (["log.csv"], "log.csv, line 2: rank '0'"),
        (["log.csv", "--model", "pmb"], "model: 'pmb' is not one of best, dctr"),
        (["log.csv", "--set", "ranks=r"], "unknown key 'ranks'; did you mean rank"),
        (["log.csv", "--held-out", "1"], "--held-out 1.0: a share of the sessions between 0 and 1"),
        (["log.csv", "-o", "a.txt"], "a.txt: tables are written as .csv, .parquet, .tsv"),
        (["log.csv", "-o", "log.csv"], "log.csv: this is log.csv itself"),
        (["none.csv"], "none.csv: no such file"),
    ):
        assert main(["clicks", *arguments]) == 1
        assert said in capsys.readouterr().err.splitlines()[-1]


def test_new_rankers_are_estimated_from_a_log(workplace, capsys):
    pages = shuffled_pages(4, 3, 2000, 2, np.random.default_rng(1))
    model = users("pbm", pages)
    clicked = model.simulate(pages, 1)
    columns = {
        "session": pages.of_page(),
        "query": pages.query[pages.pair],
        "document": pages.pair,
        "rank": pages.rank,
        "click": clicked.click.astype(int),
    }
    pl.DataFrame(columns).write_parquet("log.parquet")
    for name, sign in (("best", 1), ("worst", -1)):
        pl.DataFrame({"query": pages.query, "document": np.arange(12), "score": sign * model.attraction}).write_csv(f"{name}.csv")
    assert main(["offpolicy", "log.parquet", "best.csv", "worst.csv", "--top", "2", "--json"]) == 0
    told = capsys.readouterr()
    best, worst = json.loads(told.out.splitlines()[-1])["rankers"]
    assert [one["estimator"] for one in best["estimates"]] == ["item-position", "position-based", "cascade", "doubly-robust"]
    assert best["estimates"][0]["low"] > worst["estimates"][0]["high"]
    assert "clicks a page" in told.err
    pl.DataFrame({"query": pages.query, "document": np.arange(12) + 100, "score": model.attraction}).write_csv("fresh.csv")
    assert main(["offpolicy", "log.parquet", "fresh.csv", "--estimator", "cascade"]) == 1
    assert "fresh: cascade: the log shows 0.0%" in capsys.readouterr().err
    assert main(["offpolicy", "log.parquet", "best.csv", "--estimator", "ips"]) == 1
    assert "--estimator ips: one of item-position" in capsys.readouterr().err


def test_interleaving_is_planned_and_analysed(workplace, capsys):
    assert main(["interleave", "plan", "--preference", "0.1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"pages": sessions_needed(0.1)}
    assert main(["interleave", "plan", "--preference", "0.9"]) == 1
    assert "preference: 0.9; above 0 and at most 0.5" in capsys.readouterr().err
    rows = [(f"s{k}", "q", d, r, click, team) for k in range(30) for d, r, click, team in (("a", 1, 1, "new"), ("b", 2, 0, "old"))]
    pl.DataFrame(rows, schema=["session", "query", "document", "rank", "click", "by"], orient="row").write_csv("pages.csv")
    assert main(["interleave", "analyse", "pages.csv", "--team", "by", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out.splitlines()[-1])["duels"][0]["wins"] == 30
    assert "new is preferred to old" in told.err
    assert main(["interleave", "analyse", "pages.csv"]) == 1
    assert "no column 'team'" in capsys.readouterr().err
    assert main(["interleave", "analyse", "pages.csv", "--method", "lottery"]) == 1
    assert "--method lottery: one of team-draft" in capsys.readouterr().err


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


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ["fuse", "a.run", "b.run", "--qrels", "q", "--with", "rrf"],
            1,
            "fuse: --with rrf says which ranking is written, and -o where",
        ),
        (["fuse", "a.run", "b.run", "--qrels", "q", "-o", "no/f.run"], 1, "no/f.run: there is no folder no"),
        (
            ["explain", "--model", "m", "--data", "d", "--query", "q", "-o", "why.png"],
            1,
            "-o why.png: a drawing is written as .svg",
        ),
        (["correct", "a.run", "b/a.run", "--machine", "m", "--people", "p"], 1, "error: correct: b/a.run: the name 'a' is taken"),
        (["clicks", "log.csv", "--seed", "-1"], 2, "--seed: '-1': a whole number, 0 or more"),
        (["offpolicy", "log.csv", "new.csv", "--seed", "x"], 2, "--seed: 'x': a whole number, 0 or more"),
        (["refit", "RUN", "--register", ""], 2, "--register: it is empty"),
        (["ui", "--mlflow-port", "65536"], 2, "--mlflow-port: '65536': a port is a whole number from 1 to 65,535"),
        (["serve", "c.yaml", "--cron", "* * * * *", "--prefect-port", "-1"], 2, "--prefect-port: '-1': a port is a whole number"),
        (["compare", "a", "b", "--level", "0.9"], 1, "compare: --level 0.9 is of the scorecard's bounds; --tier MEASURE asks"),
    ],
)
def test_contradictions_and_nonsense_are_refused_at_once(workplace, capsys, arguments, code, said):
    for name in ("a.run", "b.run", "q"):
        (workplace / name).write_text("")
    try:
        found = main(arguments)
    except SystemExit as ended:
        found = ended.code
    assert found == code
    assert said in capsys.readouterr().err


def test_corrections_need_a_level(workplace, capsys):
    for name, lines in (("a.run", "q Q0 d{k} 1 {k} a"), ("m", "q 0 d{k} {b}"), ("p", "q 0 d{k} {b}")):
        (workplace / name).write_text("".join(lines.format(k=k, b=k % 2) + "\n" for k in range(1, 9)))
    assert main(["correct", "a.run", "--machine", "m", "--people", "p"]) == 0
    capsys.readouterr()
    for level in ("2", "0", "nan"):
        assert main(["correct", "a.run", "--machine", "m", "--people", "p", "--level", level]) == 1
        said = capsys.readouterr()
        assert (said.out, said.err.splitlines()[-1]) == ("", f"error: level: {float(level)}; between 0 and 1")


def test_control_characters_in_names_do_not_reach_the_terminal(workplace, capsys):
    (workplace / "a.csv").write_text("query,document,label,f\x1b[2J\n1,a,2,0.5\n1,b,0,0.5\n2,c,3,0.5\n2,d,0,0.5\n")
    main(["check", "a.csv"])
    told = capsys.readouterr().out
    assert r"1 constant feature: f\x1b[2J" in told
    assert "\x1b" not in told
    (workplace / "a.csv").write_text("query,document,label,f\x1b[2J\n1,a,2,x\n")
    assert main(["check", "a.csv"]) == 1
    assert r"f\x1b[2J" in capsys.readouterr().err


def test_check_takes_conventions(workplace, capsys):
    (workplace / "a.txt").write_text("".join(f"{k % 2} qid:{k // 4} 1:{k}\n" for k in range(40)))
    main(["check", "a.txt"])
    assert "no label reaches 2" in capsys.readouterr().out
    assert main(["check", "a.txt", "--set", "conventions.threshold=1"]) == 0
    assert "no label reaches" not in capsys.readouterr().out


@pytest.mark.usefixtures("prefect_server")
def test_json_is_the_last_line_of_standard_output(workplace, capsys):
    (workplace / "a.txt").write_text("".join(f"{(k * 7) % 3} qid:{k // 6} 1:{(k * 7) % 3 + k % 2} 2:{k % 5}\n" for k in range(240)))
    (workplace / "c.yaml").write_text("data: {files: a.txt}\nrankers: {linear: {kind: lambdarank, epochs: 2}}\n")
    assert main(["run", "c.yaml", "--json"]) == 0
    out, err = capsys.readouterr()
    written = json.loads(out.splitlines()[-1])
    assert set(written) == {"run_id", "models"}
    assert set(written["models"]["linear"]) == {"digest", "metrics"}
    assert "test_ndcg_10" in written["models"]["linear"]["metrics"]
    assert "lambdaflow ui" in err


def test_no_password_of_an_address_is_shown_or_kept(tmp_path):
    (tmp_path / "c.yaml").write_text("data: {generate: {queries: [4, 4, 4]}}\n")
    environment = own_environment() | {"MLFLOW_TRACKING_URI": "postgresql://user:canary@127.0.0.1:1/mlflow"}
    began = time.monotonic()
    for more in ([], ["--debug"]):
        command = [sys.executable, "-m", "flows.cli", "run", "c.yaml", *more]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 1
        assert "MLflow at postgresql://***@127.0.0.1:1/mlflow does not answer" in done.stderr
        assert "canary" not in done.stdout + done.stderr
    assert time.monotonic() - began < 40
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]


def test_explain_says_why_a_document_stands_above_another(workplace, capsys):
    queries = make_queries(20, seed=4)
    rows = [
        ",".join(map(str, (q, f"d{k}", int(queries.labels[k]), *queries.features[k])))
        for q, (a, b) in enumerate(pairwise(queries.offsets))
        for k in range(a, b)
    ]
    Path("d.csv").write_text("\n".join(["query,document,label,f1,f2,f3,f4", *rows]) + "\n")
    ltr.save(ltr.LambdaMART(n_trees=5, min_docs_in_leaf=5).fit(queries), "m")
    common = ["explain", "--model", "m", "--data", "d.csv"]
    assert main([*common, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert summary["queries"] == 20
    names = [str(q) for q in range(20) if np.diff(queries.offsets)[q] > 3]
    assert main([*common, "--query", names[0], "--above", "1", "-o", "why.svg", "--json"]) == 0
    pair = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert pair["above"]["rank"] == 1
    assert sum(reason["contribution"] for reason in pair["why"]["reasons"]) == pytest.approx(pair["difference"])
    assert Path("why.svg").read_text().startswith("<svg")
    assert main([*common, "--above", "1"]) == 1
    assert "--above, --below and -o are of one --query" in capsys.readouterr().err
    assert main([*common, "--query", "1", "--segment", "a=b"]) == 1
