"""The wheel has every room and every file that is read, and runs (long) a configuration from there."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import own_environment

ROOT = Path(__file__).parents[1]
PACKAGES = ("ltr", "tasks", "flows")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with what is in the wheel and nothing else, built from a copy of the sources."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", built, source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(built / "site")
    return built / "site"


def test_every_module_page_and_marker_is_packed(installed):
    ours = {path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).glob("**/*") if path.is_file()}
    ours = {path for path in ours if "__pycache__" not in path.parts}
    packed = {path.relative_to(installed) for path in installed.glob("**/*") if path.is_file()}
    assert {path for path in packed if path.parts[0] in PACKAGES} == ours
    assert Path("ltr/py.typed") in packed
    assert {Path("tasks/report/page.html"), Path("tasks/report/page.js")} <= set(packed)


@pytest.mark.long
def test_a_configuration_runs_from_it(installed, tmp_path):
    code = "import sys, flows, ltr, tasks; print(ltr.__file__); from flows.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "run", str(ROOT / "conf" / "demo.yaml"), "--set", "scale=0.05", "--set", "length=0.05"]
    environment = {**own_environment(), "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == os.fspath(installed / "ltr" / "__init__.py")
    assert list(tmp_path.glob(".lambdaflow/reports/*/report.html"))
