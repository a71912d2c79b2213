"""The site of `make docs`: docstrings as they are read there, and (long) all of it, without a warning."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed: make test or make docs brings it")

ROOT = Path(__file__).parents[1]
KERNELS = '''"""Kernels of a test, for the site.

They add:

    sum   =   a + b          exact

and say |a|, all of it.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray


class Pair(NamedTuple):
    """Two arrays."""

    a: NDArray[np.float64]
    b: NDArray[np.float64]


@njit(cache=True)
def added(a, b):
    """a + b, compiled.

    Args:
        a: ``float64 [n]``.
        b: as long as |a|.
    """
    return a + b


@njit
def silent(a):
    return a


def _hidden(a):
    """Nobody sees this."""
'''


def build(source, site):
    """The settings are those of docs/conf.py, the pages those of `source`."""
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "--fail-on-warning",
        "--quiet",
        "-c",
        ROOT / "docs",
        "-d",
        site / ".doctrees",
        source,
        site,
    ]
    path = os.pathsep.join([str(source), str(ROOT)])
    done = subprocess.run(
        command, cwd=site.parent, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def words(page):
    """What a reader sees of a page, runs of spaces outside drawings as one."""
    article = page.read_text().partition("<article")[2].partition("</article>")[0]
    return html.unescape(re.sub(r"<[^>]+>", "", article))


def test_kernels_show_signatures_docstrings_and_drawings(tmp_path):
    source, site = tmp_path / "pages", tmp_path / "site"
    source.mkdir()
    (source / "kernels_of_a_test.py").write_text(KERNELS)
    (source / "index.md").write_text("# Pages\n\n```{eval-rst}\n.. automodule:: kernels_of_a_test\n```\n")
    build(source, site)
    page = words(site / "index.html")
    assert "sum   =   a + b          exact" in page
    assert "and say |a|, all of it." in page
    assert "Pair(a: NDArray[float64], b: NDArray[float64])" in page
    assert "Alias for field number" not in page
    assert "added(a, b)" in page
    assert "a + b, compiled." in page
    assert "b – as long as |a|." in page
    assert "silent(a)" in page
    assert "hidden" not in page


@pytest.mark.long
def test_every_module_and_every_page_is_on_the_site(tmp_path):
    docs, site = ROOT / "docs", tmp_path / "site"
    build(docs, site)
    for package in ("ltr", "tasks", "flows"):
        for path in (ROOT / package).glob("**/*.py"):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            assert f"<h1>{module}<" in (site / "api" / f"{module}.html").read_text()
    for page in [*docs.glob("*.md"), *docs.glob("guide/*.md")]:
        assert (site / page.relative_to(docs)).with_suffix(".html").is_file()
    front = (site / "index.html").read_text()
    assert 'href="guide/own-data.html"' in front
    assert '<img alt="The report of the demo" src="_images/report.png"' in front
