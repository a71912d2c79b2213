"""The guide's commands, run as they stand there, page by page in one folder on small data of the reader's."""

import re
import shlex
from pathlib import Path

import polars as pl
import pytest

import tasks.evidence  # noqa: F401  (keys of a configuration)
from flows.cli import main
from tasks.config.data_section import Generate
from tasks.config.run_config import RunConfig
from tasks.data.generate import generate

GUIDE = Path(__file__).parents[1] / "docs" / "guide"
PAGES = ("own-data", "clicks", "graded", "sweep", "certificate", "schedule", "cluster", "export", "fusion")


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (GUIDE / f"{page}.md").read_text(), re.S | re.M)


@pytest.fixture(scope="module")
def folder(prefect_server, tmp_path_factory):
    """``judged.parquet`` and ``sessions.parquet``, and judgments and runs of TREC, as the pages name them."""
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("reader")
        patch.chdir(place)
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        made = generate.fn(Generate(queries=(80, 40, 40), documents=12, features=8, sessions=20))
        tables = [pl.read_parquet(file) for file in (*made.train, *made.valid, *made.test)]
        judged = pl.concat(tables)
        judged.write_parquet("judged.parquet")
        Path("runs").mkdir()
        for name, feature in (("bm25", "f1"), ("dense", "f2")):
            lines = judged.select(
                "query", pl.lit("Q0").alias("q0"), "document", pl.lit(0).alias("rank"), feature, pl.lit("t").alias("tag")
            )
            lines.write_csv(f"runs/{name}.run", separator=" ", include_header=False)
        lines = judged.select("query", pl.lit(0).alias("0"), "document", "label")
        lines.write_csv("qrels.txt", separator=" ", include_header=False)
        Path("sessions.parquet").write_bytes(made.clicks.log.read_bytes())
        yield place


SLOW = {"fusion", "cluster", "sweep"}
"""Pages whose commands take a quarter of a minute and more: for `make test-long`."""


@pytest.mark.parametrize("page", [pytest.param(page, marks=[pytest.mark.long] * (page in SLOW)) for page in PAGES])
def test_the_commands_of_a_page_do_what_it_says(page, folder, capsys):
    for written in blocks(page, "yaml"):
        name = re.match(r"# (\S+\.yaml)\n", written)
        assert name, f"{page}: a configuration without its file's name"
        (folder / name[1]).write_text(written)
    for command in (line for block in blocks(page, "sh") for line in block.splitlines()):
        program, *arguments = shlex.split(command)
        assert program == "lambdaflow"
        assert main(arguments) == 0, f"{command}\n{capsys.readouterr().err}"


def test_every_page_of_the_guide_is_run_and_linked():
    assert {path.stem for path in GUIDE.glob("*.md")} == set(PAGES)
    readme = (GUIDE.parents[1] / "README.md").read_text()
    assert all(f"docs/guide/{page}.md" in readme for page in PAGES)


def test_every_key_of_a_configuration_has_its_row():
    rows = re.findall(r"^\| `(\w+)` \|", (GUIDE.parent / "configuration.md").read_text().split("\n## ")[0], re.M)
    assert sorted(rows) == sorted(RunConfig.model_fields)
