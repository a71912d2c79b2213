"""What a person sees in a browser: MLflow's runs, a comparison of cells, the registered model, Prefect's run, and our report.

What stays in the normal suite: test_pipeline reads the same runs, artifacts and report where they are stored, test_servers sees that both
pages answer.
"""

import html
import json
import re
import shutil
import signal
import subprocess
import sys
from urllib.parse import quote

import pytest
import yaml

from tasks.tracking.pages import run_page
from tests.conftest import own_environment
from tests.flows.test_kill import rows
from tests.flows.test_neighbours import answering
from tests.flows.test_schedule import QUIET, free_port

pytestmark = pytest.mark.long

CONFIG = {
    "name": "seen",
    "data": {"generate": {"queries": [60, 30, 30], "documents": 12, "features": 12, "sessions": 20}},
    "rankers": {
        "trees": {"kind": "lambdamart", "n_trees": 10, "n_leaves": 4, "sweep": {"learning_rate": [0.05, 0.1]}},
        "linear": {"kind": "lambdarank", "epochs": 5},
    },
    "measures": ["ndcg_10", "map"],
    "optimality": {"epsilon": 0.1, "delta": 0.1},
    "champion": {"name": "search"},
}


@pytest.fixture(scope="module")
def chromium():
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("no chromium here: the Debian package chromium has it")
    return found


@pytest.fixture(scope="module")
def place(chromium, tmp_path_factory):
    """A finished run with MLflow's and Prefect's pages up: folder, outcome and the two addresses."""
    folder = tmp_path_factory.mktemp("seen")
    (folder / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    python = [sys.executable, "-m", "flows.cli"]
    done = subprocess.run(
        [*python, "run", "c.yaml", "--json"], cwd=folder, env=own_environment(), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    mlflow, prefect, free = free_port(), free_port(), free_port()
    command = [*python, "ui", "--mlflow-port", str(mlflow), "--prefect-port", str(prefect)]
    # Headless, nobody can fill in a password: the pages of the run are those of a server without one, over the same database.
    bare = [sys.executable, "-m", "prefect", "server", "start", "--no-services", "--port", str(free)]
    home = {
        "PREFECT_HOME": str(folder / ".lambdaflow" / "prefect"),
        "PREFECT_SERVER_UI_API_URL": f"http://127.0.0.1:{free}/api",
    }
    started = [
        subprocess.Popen(command, cwd=folder, env=own_environment(), **QUIET),
        subprocess.Popen(bare, cwd=folder, env=own_environment() | home, **QUIET),
    ]
    try:
        answering(f"http://127.0.0.1:{mlflow}/health")
        answering(f"http://127.0.0.1:{prefect}/api/health")
        answering(f"http://127.0.0.1:{free}/api/health")
        yield folder, json.loads(done.stdout), f"http://127.0.0.1:{mlflow}/#", f"http://127.0.0.1:{free}"
    finally:
        for pages in started:
            pages.send_signal(signal.SIGTERM)
            pages.wait(30)


@pytest.fixture
def seen(chromium, tmp_path):
    """The page at an address once its scripts have run: its words, and its source."""

    def look(address):
        command = [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1600,1200", "--virtual-time-budget=25000", "--allow-file-access-from-files",
            f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", address,
        ]  # fmt: skip
        source = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
        bare = re.sub(r"<(script|style).*?</\1>", " ", source, flags=re.S)
        return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", bare))), source

    return look


def one(folder, database, query):
    ((value,),) = rows(folder, database, query)
    return value


def test_runs_their_comparison_and_the_model_in_mlflow(place, seen):
    folder, outcome, mlflow, _ = place
    experiment = one(folder, "mlflow", "select experiment_id from experiments where name = 'lambdaflow'")
    words, _ = seen(f"{mlflow}/experiments/{experiment}/runs")
    assert "lambdaflow" in words
    assert " seen " in words
    cells = [key for (key,) in rows(folder, "mlflow", "select run_uuid from runs where name like 'trees · %'")]
    words, source = seen(
        f"{mlflow}/compare-runs?runs={quote(json.dumps(cells))}&experiments={quote(json.dumps([str(experiment)]))}"
    )
    assert "Comparing 2 Runs from 1 Experiment" in words
    assert "trees · learning_rate=0.05" in words
    assert "trees · learning_rate=0.1" in words
    assert "<svg" in source
    words, _ = seen(run_page(mlflow.removesuffix("/#"), str(experiment), outcome["run_id"]))
    assert "test_ndcg_10" in words
    assert "Best on validation NDCG@10" in words
    assert "Model registry" in words
    assert "Evaluation runs" not in words, "the view of GenAI applications"
    assert "prefect.flow_run_url" in words
    words, _ = seen(f"{mlflow}/models/search")
    assert "champion" in words
    words, _ = seen(f"{mlflow}/models/search/versions/1")
    assert "there was no champion" in words


def test_the_run_and_its_report_in_prefect(place, seen):
    folder, outcome, _, prefect = place
    flow_run = one(folder, "prefect", "select id from flow_run where name = 'seen'")
    words, _ = seen(f"{prefect}/runs/flow-run/{flow_run}")
    assert "Completed" in words
    assert "train trees · learning_rate=0.05" in words
    artifact = one(folder, "prefect", "select id from artifact where key = 'report'")
    words, source = seen(f"{prefect}/artifacts/artifact/{artifact}")
    assert "NDCG@10" in words
    assert "Run in MLflow" in words
    assert outcome["run_id"] in source


CLICKS = """
const log = [], say = (...words) => log.push(words.join(" "));
addEventListener("error", (event) => say("ERROR", event.message));
const all = (selector) => [...document.querySelectorAll(selector)];
const first = (table) => [...document.getElementById(table).rows].slice(1).map((row) => row.cells[0].textContent.trim().replace(/\\s+/g, " "));
const press = (text, k = 0) => all("button").filter((one) => one.textContent === text)[k].click();
const choose = (select, value) => { select.value = value; select.dispatchEvent(new Event("change")); };
document.querySelector("#standings th:nth-child(3)").click(); say("falling", first("standings"));
document.querySelector("#standings th:nth-child(3)").click(); say("rising", first("standings"));
press("NDCG@10"); say("hidden", all("#standings th").filter((one) => one.hidden).length);
say("points", all("#queries circle").length, "ringed", all("#queries circle.known").length, "picked", all("#queries circle.picked").length);
say("ranks", all("#queries table.side tr").length - 1);
const [across, up, measure] = all("#queries select");
choose(across, up.value); say("the same", all("#queries p")[1].textContent);
choose(measure, 1); say("labelled", all("#queries svg text").at(-2).textContent);
say("curves", all("#curves path.valid").length);
press("all"); say("all", all("#curves path.valid").length);
press("none"); say("none", all("#curves path.valid").length);
document.querySelector("#curves .boxes input").click(); say("one", all("#curves path.valid").length);
say("cells", all("#sweep path.cell").length, "chosen", all("#sweep path.chosen").length);
const plot = document.querySelector("#sweep svg"), box = plot.getBoundingClientRect();
const line = document.querySelector("#sweep path.chosen"), at = line.getPointAtLength(1).matrixTransform(plot.getScreenCTM());
plot.dispatchEvent(new PointerEvent("pointermove", { clientX: at.x, clientY: at.y }));
say("tip", document.querySelector(".tip").textContent, "row", all("#cells tr.same").length);
say("wide", document.documentElement.scrollWidth - document.documentElement.clientWidth);
const listed = all("#queries figure .tools button").map((one) => parseFloat(one.textContent.split(" ").at(-1)));
say("listed", listed.filter((gain) => gain < 0).length, listed.filter((gain) => gain > 0).length);
choose(across, "0"); choose(up, "1");
const [harmed, helped] = all("#queries figure .tools p").map((one) => [...one.querySelectorAll("button")].length);
const [better, worse] = all("#queries p")[1].textContent.match(/\\d+/g).map(Number);
say("most", harmed === Math.min(6, worse), helped === Math.min(6, better));
document.querySelector("#cells th:nth-child(5)").click();
const models = [...document.querySelectorAll("#cells code")].map((one) => one.textContent);
say("models", models.join() === models.toSorted((a, b) => b.localeCompare(a, undefined, { numeric: true })).join());
document.querySelector("#cells th").dispatchEvent(new KeyboardEvent("keydown", { key: " " })); say("first", first("cells"));
say("apart", all("#queries figure .tools bdi").length === all("#queries figure .tools button").length);
say("static", getComputedStyle(document.querySelector(".static")).display);
document.body.append(Object.assign(document.createElement("pre"), { id: "seen", textContent: log.join("\\n") }));
"""


def test_our_report_is_a_page_to_explore(place, seen, tmp_path):
    folder, outcome, *_ = place
    (page,) = folder.glob(".lambdaflow/reports/*/report.html")
    copy = tmp_path / "clicked.html"
    copy.write_text(page.read_text().replace("</body>", f"<script>{CLICKS}</script></body>"))
    _, source = seen(copy.as_uri())
    told = html.unescape(re.search(r'<pre id="seen">(.*?)</pre>', source, re.S)[1]).splitlines()
    means = {name: model["metrics"]["test_map"] for name, model in outcome["models"].items()}
    rows = [f"{'ab'[name == 'trees']} {name}" for name in sorted(means, key=means.get)]
    assert told[:2] == [f"falling {','.join(rows[::-1])}", f"rising {','.join(rows)}"]
    assert told[2] == "hidden 1"
    assert re.fullmatch(r"points 30 ringed ([1-9]|10) picked 1", told[3])
    assert told[4] == "ranks 10"
    assert re.fullmatch("the same .* is better on 0, worse on 0 and equal on 30 of 30 queries.", told[5])
    assert told[6] == "labelled trees, MAP"
    assert told[7:12] == ["curves 2", "all 3", "none 0", "one 1", "cells 2 chosen 1"]
    assert re.fullmatch(r"tip trees · learning_rate=0\.\d+, chosen: validation 0\.\d{4}, test 0\.\d{4} row 1", told[12])
    assert told[13:] == ["wide 0", "listed 0 0", "most true true", "models true", told[17], "apart true", "static none"]
    assert told[17] == "first linear,trees · learning_rate=0.05,trees · learning_rate=0.1"


FRAME = """<body style="margin: 0"><iframe src="{page}" style="width: 360px; height: 2000px; border: 0"></iframe><pre id="seen"></pre>
<script>addEventListener("load", () => setTimeout(() => {
const { documentElement: inside } = document.querySelector("iframe").contentDocument;
const names = [...inside.querySelectorAll("#sweep text.name")].map((one) => one.getBoundingClientRect());
const over = names.slice(1).filter((one, k) => one.left < names[k].right);
document.querySelector("pre").textContent = `${inside.clientWidth} ${inside.scrollWidth} ${names.length} ${over.length}`; }, 1000));</script>"""


def test_our_report_fits_a_telephone(place, seen, tmp_path):
    folder, *_ = place
    (page,) = folder.glob(".lambdaflow/reports/*/report.html")
    (tmp_path / "frame.html").write_text(FRAME.replace("{page}", page.as_uri()))
    _, source = seen((tmp_path / "frame.html").as_uri())
    wide, words, names, over = re.search(r'<pre id="seen">(\d+) (\d+) (\d+) (\d+)</pre>', source).groups()
    assert wide == words
    assert (names, over) == ("3", "0"), "names of axes, and those that stand over the one before"


def test_our_report_has_its_tables_and_figures(place, seen):
    folder, *_ = place
    (page,) = folder.glob(".lambdaflow/reports/*/report.html")
    words, source = seen(page.as_uri())
    for text in ("trees", "linear", "NDCG@10", "Local optimality", "Champion", "there was no champion"):
        assert text in words
    figures = re.findall(r"<svg.*?</svg>", source, re.S)
    assert figures
    assert all("<path" in figure for figure in figures)
