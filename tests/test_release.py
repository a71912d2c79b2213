"""What a release says of itself: one version everywhere, metadata that is whole, CI that knows every Python that is promised."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    newest = re.search(r"^## (\S+) \(", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == newest[1] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]


def test_ci_runs_every_python_that_is_promised():
    lowest, above = (int(minor) for minor in re.findall(r"3\.(\d+)", PROJECT["requires-python"]))
    promised = [f"3.{minor}" for minor in range(lowest, above)]
    ci = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert ci["jobs"]["test"]["strategy"]["matrix"]["python"] == promised
    assert [name for name in promised if f"Programming Language :: Python :: {name}" not in PROJECT["classifiers"]] == []


def test_hooks_and_ci_call_what_is_there():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    ci = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    called = [step["run"] for job in ci["jobs"].values() for step in job["steps"] if "run" in step]
    assert [command for command in called if command.removeprefix("make ") not in targets] == []
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert {repository["repo"] for repository in hooks} == {"local"}
    named = re.findall(r"tests/\w+\.py", " ".join(hook["entry"] for hook in hooks[0]["hooks"]))
    assert named
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_every_extra_is_pinned():
    pins = {line.partition("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines()}
    asked = [*PROJECT["dependencies"], *(name for extra in PROJECT["optional-dependencies"].values() for name in extra)]
    names = {re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-") for requirement in asked}
    assert names - pins == set()
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert lines == sorted(lines, key=lambda line: line.lower().replace("_", "-"))
