"""The pages: every relative link and image leads to a file, every anchor to a heading, and paths in backticks are there."""

import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "guide").glob("*.md"))
METRIC = "test_ndcg_10"
"""A metric in MLflow, which begins like a test."""
FENCE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1`*[ \t]*$\n?", re.S | re.M)
CODE = re.compile(r"(`+)(.+?)\1", re.S)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(<?([^()\s>]+)>?(?:\s+\"[^\"]*\")?\)")
INCLUDE = re.compile(r"^```\{include\} (\S+)$", re.M)
PATH = re.compile(r"(?<![\w./-])(?:(?:ltr|tasks|flows|benchmarks)/[\w./-]+\.py|conf/[\w./-]+\.yaml)")


def prose(page):
    """The text without blocks of code and comments."""
    return re.sub(r"<!--.*?-->", "", FENCE.sub("", page), flags=re.S)


def links(page):
    """Where links and images lead; code in backticks is none."""
    return [found[1] for found in LINK.finditer(CODE.sub("code", prose(page)))]


def paths(page):
    """Files of the project that are named in code, in a line or in a block."""
    code = [found[0] for pattern, text in ((FENCE, page), (CODE, prose(page))) for found in pattern.finditer(text)]
    return [path for text in code for path in PATH.findall(text)]


def anchors(page):
    """What GitHub and the site call the headings: lower case, without punctuation, hyphens for spaces; numbered where they repeat."""
    seen, found = {}, set()
    for title in re.findall(r"^#{1,6} +(.+?) *#*$", prose(page), re.M):
        words = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
        count = seen.setdefault(slug, itertools.count())
        again = next(count)
        found.add(f"{slug}-{again}" if again else slug)
    return found


def broken(page, text):
    """What is wrong with the links of a page."""
    targets = links(text) + INCLUDE.findall(text)
    for target in targets:
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.is_relative_to(ROOT) or not file.exists():
            yield f"{page.relative_to(ROOT)}: {target} is not there"
        elif anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
            yield f"{page.relative_to(ROOT)}: {target} has no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert list(broken(page, page.read_text(encoding="utf-8"))) == []


def test_paths_in_backticks_exist():
    """But for the changelog, which tells of the past."""
    missing = [
        f"{page.relative_to(ROOT)}: {path}"
        for page in PAGES
        if page.name != "CHANGELOG.md"
        for path in paths(page.read_text(encoding="utf-8"))
        if not (ROOT / path).is_file()
    ]
    assert not missing, "no such files:\n" + "\n".join(missing)


def test_tests_in_backticks_exist():
    """Where a page says what asserts a statement, it is there."""
    written = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/*.py"))
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in PAGES
        if page.name != "CHANGELOG.md"
        for name in re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8"))
        if not re.search(rf"def {name}\b", written) and name != METRIC
    ]
    assert not missing, "no such tests:\n" + "\n".join(missing)


def test_what_counts_as_a_link():
    text = (
        '[a](b.md) and ![c [d]](e.png), [f](g.md#h-i "title"), `[no](code.md)`, <!-- [no](comment.md) -->\n'
        "```md\n[no](fenced.md)\n```\n[j](https://k.l)\n"
    )
    assert paths("`ltr/a.py` ltr/b.py `see tests/ltr/c.py`\n```\nrun conf/d/e.yaml\n```\n") == ["conf/d/e.yaml", "ltr/a.py"]
    assert links(text) == ["b.md", "e.png", "g.md#h-i", "https://k.l"]
    assert anchors("# One `two`: *three*, 4.5\n## A\n## A\n```\n# no\n```\n### λ's [x](y.md)\n") == {
        "one-two-three-45",
        "a",
        "a-1",
        "λs-x",
    }


def test_what_is_broken_is_named():
    page = ROOT / "README.md"
    assert list(broken(page, "[a](no.md) [b](LICENSE) [c](#state) [d](#none) [e](docs/data.md#files) [f](../outside.md)")) == [
        "README.md: no.md is not there",
        "README.md: #none has no such heading",
        "README.md: ../outside.md is not there",
    ]
