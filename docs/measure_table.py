"""The table of measures in docs/measures.md, from what is registered: ``python docs/measure_table.py`` writes it anew."""

import re
import sys
from pathlib import Path

PAGE = Path(__file__).parent / "measures.md"
sys.path.insert(0, str(PAGE.parents[1]))

from ltr.metrics.measure import MEASURES, Definition  # noqa: E402  (from this checkout)

BLOCK = re.compile(r"(<!-- measures -->\n).*?(<!-- end -->\n)", re.S)
HEAD = "| name | what | formula | from | labels |\n|---|---|---|---|---|\n"


def written(definition: Definition) -> str:
    """Its name with the cutoffs that it takes."""
    if definition.whole:
        return f"`{definition.name}`"
    return f"`{definition.name}@k`" if definition.needs_cutoff else f"`{definition.name}`, `{definition.name}@k`"


def row(definition: Definition) -> str:
    """The line of one measure."""
    cells = (written(definition), definition.title, definition.formula, definition.paper, definition.labels)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def render(page: str) -> str:
    """The page with the table of the measures that there are now."""
    table = HEAD + "".join(row(definition) for definition in MEASURES.values())
    return BLOCK.sub(lambda found: found[1] + table + found[2], page)


if __name__ == "__main__":
    old = PAGE.read_text(encoding="utf-8")
    new = render(old)
    PAGE.write_text(new, encoding="utf-8")
    unchanged = "unchanged; is a new file imported in ltr/metrics/__init__.py?"
    print(f"docs/measures.md: {len(MEASURES)} measures, {unchanged if new == old else 'written'}")
