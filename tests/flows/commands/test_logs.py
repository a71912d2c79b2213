"""Session logs on the command line."""

import json

import numpy as np
import polars as pl

from flows.cli import main
from ltr.clicks.interleaving import sessions_needed
from tests.click_logs import layout, shuffled_pages, users


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
    found = json.loads(told.out)
    assert found["winner"] in found["models"]
    assert found["sessions"] + found["held_out"] == 400
    assert f"{found['winner']} predicts clicks best" in told.err
    assert pl.read_csv("a.csv").columns == ["query", "document", "impressions", "clicks", "looks", "attraction", "deviation"]
    rows = pl.read_csv("log.csv").sample(fraction=1.0, shuffle=True, seed=1)
    rows.write_csv("shuffled.csv")
    assert main(["clicks", "shuffled.csv", *named, "-o", "b.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert (workplace / "a.csv").read_bytes() == (workplace / "b.csv").read_bytes()
    whole = pl.read_csv("a.csv")
    often = int(whole["impressions"].median()) + 1
    assert main(["clicks", "log.csv", *named, "--set", f"min_impressions={often}", "-o", "c.csv"]) == 0
    assert pl.read_csv("c.csv").equals(whole.filter(pl.col("impressions") >= often))


def test_attractiveness_joins_what_the_log_calls_its_queries(workplace, capsys):
    rows = [f"s{s},Action {s % 2},d{d},{int((s + d) % 3 == 0)},{1 + (s + d) % 3}" for s in range(30) for d in range(3)]
    (workplace / "log.csv").write_text("session,query,document,click,rank\n" + "\n".join(rows) + "\n")
    assert main(["clicks", "log.csv", "--model", "dctr", "-o", "a.csv"]) == 0
    shown = pl.read_csv("log.csv").select("query", "document").unique()
    assert shown.join(pl.read_csv("a.csv"), on=["query", "document"]).height == shown.height == 6


def test_what_was_left_out_of_a_log_of_ubi_is_told_where_it_is_used(workplace, capsys):
    """`check` alone told it."""
    lines: list[dict] = []
    for s in range(40):
        about = {"query_id": f"q{s}", "session_id": f"s{s}", "timestamp": s, "application": "shop"}
        lines.append({"query_id": f"q{s}", "user_query": f"text {s % 2}", "query_response_hit_ids": ["a", "b", "c"]})
        for action in ("click", "hover"):
            attributes = {"object": {"object_id": "abc"[s % 3]}, "position": {"ordinal": s % 3}}
            lines.append({**about, "action_name": action, "event_attributes": attributes})
    lines.append({"action_name": "click", "event_attributes": {"object": {"object_id": "a"}}})
    (workplace / "ubi.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (workplace / "new.csv").write_text(
        "query,document,score\n" + "".join(f"text {q},{d},{k}\n" for q in (0, 1) for k, d in enumerate("cba"))
    )
    for command in (["clicks", "ubi.ndjson"], ["offpolicy", "ubi.ndjson", "new.csv", "--estimator", "position-based"]):
        assert main([*command, "--json"]) in (0, 1)
        told = capsys.readouterr()
        for note in ("other actions, not read: hover 40", "1 event without a query_id: left out", "ranks count from 0 in 'shop'"):
            assert note in told.err
            assert note in json.loads(told.out)["notes"]


def test_what_is_infinite_is_null_in_json(workplace, capsys):
    rows = [f"s{s},q{s % 2},d{d},{int((s + d) % 3 == 0)},{d + 1}" for s in range(10) for d in range(3)]
    (workplace / "log.csv").write_text("session,query,document,click,rank\n" + "\n".join(rows) + "\n")
    assert main(["clicks", "log.csv", "--held-out", "0.1", "--json"]) == 0

    def refuse(constant):
        raise AssertionError(constant)

    found = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert found["held_out"] == 1
    assert None in [one["error"] for one in found["models"].values()]


def test_clicks_refuses_in_a_line(workplace, capsys):
    (workplace / "log.csv").write_text("session,query,document,click,rank\ns,q,a,1,0\n")
    for arguments, said in (
        (["log.csv"], "log.csv, line 2: rank '0'"),
        (["log.csv", "--model", "pmb"], "model: 'pmb' is unknown; choose from: best, dctr"),
        (["log.csv", "--set", "ranks=r"], "unknown key 'ranks'; did you mean rank"),
        (["log.csv", "--held-out", "1"], "--held-out 1.0: must be a share of the sessions between 0 and 1"),
        (["log.csv", "-o", "a.txt"], "a.txt: tables can be written as .csv, .parquet, .tsv"),
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
    best, worst = json.loads(told.out)["rankers"]
    assert [one["estimator"] for one in best["estimates"]] == ["item-position", "position-based", "cascade", "doubly-robust"]
    assert best["estimates"][0]["low"] > worst["estimates"][0]["high"]
    assert "clicks per page" in told.err
    assert json.loads(told.out)["notes"] == []
    log = pl.read_parquet("log.parquet")
    pl.concat((log, log.head(1).with_columns(document=None))).write_parquet("more.parquet")
    assert main(["offpolicy", "more.parquet", "best.csv", "--top", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == ["1 result without query or document left out"]
    pl.DataFrame({"query": pages.query, "document": np.arange(12) + 100, "score": model.attraction}).write_csv("fresh.csv")
    assert main(["offpolicy", "log.parquet", "fresh.csv", "--estimator", "cascade"]) == 1
    assert "fresh: cascade: only 0.0%" in capsys.readouterr().out
    assert main(["offpolicy", "log.parquet", "best.csv", "--estimator", "ips"]) == 1
    assert "--estimator ips: choose from: item-position" in capsys.readouterr().err


def test_interleaving_is_planned_and_analysed(workplace, capsys):
    assert main(["interleave", "plan", "--preference", "0.1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"pages": sessions_needed(0.1)}
    assert main(["interleave", "plan", "--preference", "0.9"]) == 1
    assert "preference: 0.9; must be above 0 and at most 0.5" in capsys.readouterr().err
    rows = [(f"s{k}", "q", d, r, click, team) for k in range(30) for d, r, click, team in (("a", 1, 1, "new"), ("b", 2, 0, "old"))]
    pl.DataFrame(rows, schema=["session", "query", "document", "rank", "click", "by"], orient="row").write_csv("pages.csv")
    assert main(["interleave", "analyse", "pages.csv", "--team", "by", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["duels"][0]["wins"] == 30
    assert "new is preferred to old" in told.err
    assert main(["interleave", "analyse", "pages.csv"]) == 1
    assert "no column 'team'" in capsys.readouterr().err
    assert main(["interleave", "analyse", "pages.csv", "--method", "lottery"]) == 1
    assert "--method lottery: choose from: team-draft" in capsys.readouterr().err
