"""Data files, judgments and a machine's labels on the command line."""

import json

from flows.cli import main


def test_check_prints_findings_and_its_code_tells_errors(workplace, capsys):
    (workplace / "good.txt").write_text("".join(f"{k % 3} qid:{k // 4} 1:{k} 2:{-k}\n" for k in range(40)))
    (workplace / "bad.txt").write_text("0 qid:1 1:1\n0 qid:1 1:2\n")
    assert main(["check", "good.txt"]) == 0
    assert "10 queries, 40 documents, 2 features" in capsys.readouterr().out
    assert main(["check", "bad.txt", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {"error"} <= {f["level"] for f in found}
    assert main(["check", "none.txt"]) == 1
    assert capsys.readouterr().err.endswith("error: none.txt: no such file\n")


def test_check_looks_at_the_store(workplace, capsys):
    assert main(["check", "--store"]) == 0
    assert capsys.readouterr().out == "nothing is stored in .lambdaflow/ of this folder\n"
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
    assert capsys.readouterr().err.count("give either files to check or --store") == 2


def test_check_takes_column_names(workplace, capsys):
    (workplace / "a.csv").write_text("q,grade,f\n1,2,0.5\n1,0,0.1\n")
    assert main(["check", "a.csv"]) == 1
    assert "no column 'query'" in capsys.readouterr().err
    assert main(["check", "a.csv", "--set", "query=q", "--set", "label=grade"]) == 0


def test_check_refuses_keys_that_it_does_not_read(workplace, capsys):
    (workplace / "a.csv").write_text("query,label,f\n1,2,0.5\n1,0,0.1\n")
    for said, section in (("scale=0.5", "scale"), ("seed=2", "seed"), ("rankers={}", "rankers")):
        assert main(["check", "a.csv", "--set", said]) == 1
        told = f"error: --set {said}: nothing here reads {section}; this reads the keys of data and of conventions"
        assert told in capsys.readouterr().err


def test_check_names_a_file_once_a_line(workplace, capsys):
    (workplace / "a.csv").write_text(
        "query,label,uid,f\n" + "".join(f"q{k // 3},{k % 2},{16777217 + 2 * k},{k}\n" for k in range(9))
    )
    assert main(["check", "a.csv"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "lose digits" in line]
    assert line.startswith("warning  a.csv: 'uid' has whole numbers")


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
    assert "l.csv: click-through rate by rank, 1: 66.7%, 2: 50.0%" in told
    assert "a.csv: examination probability at ranks 1, 2, … (all clicks): 1.00 1.00" in told
    assert "a.csv: label 'click': 4 impressions" in told
    assert main(["check", "a.csv", "--set", "clicks={log: l.csv, click: clicked}"]) == 1
    assert "error    l.csv: no column 'clicked'; did you mean click?" in capsys.readouterr().out
    (workplace / "other.csv").write_text("session,query,document,click\n1,7,a,1\n")
    assert main(["check", "a.csv", "--set", "clicks.log=other.csv"]) == 1
    assert "error    a.csv: no document of the click log is in the data" in capsys.readouterr().out


def test_corrections_need_a_level(workplace, capsys):
    for name, lines in (("a.run", "q Q0 d{k} 1 {k} a"), ("m", "q 0 d{k} {b}"), ("p", "q 0 d{k} {b}")):
        (workplace / name).write_text("".join(lines.format(k=k, b=k % 2) + "\n" for k in range(1, 9)))
    assert main(["correct", "a.run", "--machine", "m", "--people", "p"]) == 0
    capsys.readouterr()
    for level in ("2", "0", "nan"):
        assert main(["correct", "a.run", "--machine", "m", "--people", "p", "--level", level]) == 1
        said = capsys.readouterr()
        assert (said.out, said.err.splitlines()[-1]) == (
            "",
            f"error: correct: --level {float(level):g}: must be between 0 and 1, such as 0.95",
        )


def test_check_takes_conventions(workplace, capsys):
    (workplace / "a.txt").write_text("".join(f"{k % 2} qid:{k // 4} 1:{k}\n" for k in range(40)))
    main(["check", "a.txt"])
    assert "the largest label is 1, but" in capsys.readouterr().out
    assert main(["check", "a.txt", "--set", "conventions.threshold=1"]) == 0
    assert "the largest label is" not in capsys.readouterr().out
