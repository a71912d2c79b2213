"""How `make docs` makes the site: the pages of this folder and of the root, and the reference from the docstrings."""

import inspect
import os
import re
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes

DOCS = Path(__file__).parent
ROOT = DOCS.parent
REFERENCE = DOCS / "api"
PACKAGES = ("ltr", "tasks", "flows")

# Without compilation a kernel is the Python function it was, with its signature and docstring.
os.environ["NUMBA_DISABLE_JIT"] = "1"
sys.path.insert(0, str(ROOT))

import flows  # noqa: E402

flows.make_state_folder()  # Prefect looks for its home when it is imported
import mlflow.pyfunc  # noqa: E402, F401  (autodoc imports with TYPE_CHECKING set first, under which it fails)
from pydantic import BaseModel  # noqa: E402

project = "lambdaflow"
author = "The lambdaflow developers"
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["api/.*"]
default_role = "py:obj"
smartquotes_action = "D"  # dashes only
highlight_language = "none"
suppress_warnings = ["ref.python"]
"""A bare name that several classes have is linked to one of them."""
myst_heading_anchors = 4
napoleon_use_ivar = True
napoleon_attr_annotations = False
toc_object_entries_show_parents = "hide"
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_mock_imports = [name for name in ("dask", "distributed") if find_spec(name) is None]
"""Libraries of extras that a module imports at its top; they need not be here."""

html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False


def modules() -> dict[str, list[str]]:
    """Every module of the package tree, a package before what is in it, with the modules right below it."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).glob("**/*.py"), key=lambda path: (path.parent, path.name != "__init__.py", path.name)):
            found[".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")] = []
    for name in found:
        above = name.rpartition(".")[0]
        if above:
            found[above].append(name)
    return found


def page(module: str, below: list[str]) -> str:
    text = f"# {module}\n\n```{{eval-rst}}\n.. automodule:: {module}\n```\n"
    if below:
        entries = "\n".join(f"{name.rpartition('.')[2]} <{name}>" for name in below)
        text += f"\n```{{toctree}}\n:caption: Modules\n:maxdepth: 1\n\n{entries}\n```\n"
    return text


def write_reference(app: Any) -> None:
    """A page a module; pages of modules that are gone go too, and those that have not changed stay untouched. Other folders than this
    one, such as a test's, get none."""
    if Path(app.srcdir) != DOCS:
        return
    tops = "\n".join(PACKAGES)
    pages = {"index": f"# Reference\n\nEvery module, from its docstrings.\n\n```{{toctree}}\n:maxdepth: 2\n\n{tops}\n```\n"}
    pages |= {module: page(module, below) for module, below in modules().items()}
    REFERENCE.mkdir(exist_ok=True)
    for path in REFERENCE.glob("*.md"):
        if path.stem not in pages:
            path.unlink()
    for name, text in pages.items():
        path = REFERENCE / f"{name}.md"
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)


def as_restructured(_app: Any, what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with two habits of their own: an indented paragraph is a drawing, ``|x|`` an absolute value."""
    if lines and lines[0].startswith("Alias for field number"):  # what Python says of the fields of a NamedTuple
        lines.clear()
    text, drawing, after_blank = [], False, False
    for line in lines:
        indented = line.startswith("  ")
        if after_blank and indented and not drawing:
            text += ["::", ""]
            drawing = True
        elif line and not indented:
            drawing = False
        text.append(line if drawing else re.sub(r"(``.*?``|`.*?`)|\|", lambda found: found[1] or r"\|", line))
        after_blank = not line
    if what in ("attribute", "data", "property"):  # napoleon would take the words before a colon for a type
        text.insert(0, "\\ ")
    lines[:] = text


def keep_undescribed(_app: Any, _what: str, name: str, thing: Any, skip: bool, _options: Any) -> bool | None:
    """Functions and classes are listed without a docstring too; fields and constants are not, a class shows its fields anyway."""
    return False if skip and not name.startswith("_") and (inspect.isfunction(thing) or inspect.isclass(thing)) else None


def short(text: str) -> str:
    """NDArray as it was written, where Python has made the whole of it; no value that would fill the page."""
    array = r"~?(?:numpy\.)?ndarray\[tuple\[~?(?:typing\.)?Any, \.\.\.\], ~?(?:numpy\.)?dtype\[~?(?:numpy\.)?(\w+)\]\]"
    return re.sub(array, r"NDArray[\1]", text) if not text.startswith(" = ") or len(text) < 80 else " = …"


def fields_of(model: type[BaseModel]) -> str:
    """A section of the configuration as it is called: its keys and their defaults."""
    parts = []
    for name, field in model.model_fields.items():
        default = "..." if field.default_factory or len(repr(field.default)) > 40 else repr(field.default)
        parts.append(name if field.is_required() else f"{name}={default}")
    return f"(*, {', '.join(parts)})" if parts else "()"


def shorten(_app: Any, _what: str, _name: str, thing: Any, _options: Any, signature: str | None, answer: str | None) -> Any:
    if inspect.isclass(thing) and issubclass(thing, BaseModel):
        return fields_of(thing), None
    return tuple(text and short(text) for text in (signature, answer))


def shorten_annotations(_: Any, doctree: nodes.document) -> None:
    for node in doctree.findall(addnodes.desc_annotation):
        if (text := node.astext()) != short(text):
            node.children = []
            node += nodes.Text(short(text))


def setup(app: Any) -> None:
    app.connect("builder-inited", write_reference)
    app.connect("autodoc-skip-member", keep_undescribed)
    app.connect("autodoc-process-docstring", as_restructured, priority=100)
    app.connect("autodoc-process-signature", shorten)
    app.connect("doctree-read", shorten_annotations)
