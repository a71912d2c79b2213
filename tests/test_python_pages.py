"""The pages about Python, run as they stand there, each in one folder on small data of the reader's; what their tables name exists."""

import re
from dataclasses import fields
from pathlib import Path

import polars as pl
import pytest

import ltr
from ltr.data.synthetic import World

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("python", "coming-from")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.S | re.M)


@pytest.fixture
def judged(workplace):
    """``judged.parquet`` with 60 queries of 12 documents."""
    queries, _ = World(n_features=8).queries(60, 12, 1)
    of_row = [f"q{q:02}" for q in range(60) for _ in range(12)]
    frame = pl.DataFrame(queries.features, schema=list(queries.names)).with_columns(
        query=pl.Series(of_row),
        document=pl.Series([f"d{k}" for k in range(queries.n_documents)]),
        label=pl.Series(queries.labels),
    )
    frame.write_parquet("judged.parquet")


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, judged):
    text = (DOCS / f"{page}.md").read_text()
    namespace = {"__name__": "__main__"}
    for found in BLOCK.finditer(text):
        lines_before = text[: found.start(1)].count("\n")
        exec(compile("\n" * lines_before + found[1], f"{page}.md", "exec"), namespace)


def test_every_own_name_in_the_tables_is_one():
    """What stands in the second column as ``ltr.Name``, as a call's arguments, or as ``name=`` and ``name: `` of a ranker."""
    parameters = {field.name for kind in ltr.KINDS.values() for field in fields(kind)}
    for row in re.findall(r"^\|.*\|$", (DOCS / "coming-from.md").read_text(), re.M):
        own = row.replace("\\|", "").split("|")[2]
        for code in re.findall(r"`([^`]+)`", own):
            for name in re.findall(r"ltr\.(\w+)", code):
                assert hasattr(ltr, name), f"{row}: no ltr.{name}"
            if re.fullmatch(r"(\w+)=[^=].*", code) and not code.startswith("cross"):
                assert code.split("=")[0] in parameters, f"{row}: no parameter {code}"
                eval(f"ltr.LambdaMART({code})", {"ltr": ltr, "f": lambda scores, queries: (scores, scores)})
            elif re.fullmatch(r"ltr\.\w+\(.*\)", code) and "…" not in code:
                eval(code, {"ltr": ltr})


def test_the_pages_are_linked_and_in_the_site():
    readme, index = (DOCS.parent / "README.md").read_text(), (DOCS / "index.md").read_text()
    for page in PAGES:
        assert f"docs/{page}.md" in readme
        assert re.search(rf"^{page}$", index, re.M)
