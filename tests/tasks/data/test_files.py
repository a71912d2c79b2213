"""Where files are."""

from pathlib import Path

import pytest

from tasks.data.files import expanded, located
from tasks.records import DataError


def test_a_missing_file_says_where_public_data_are_looked_for(workplace, monkeypatch):
    monkeypatch.delenv("LAMBDAFLOW_DATA", raising=False)
    with pytest.raises(DataError, match=r"none\.txt: no such file$"):
        located(workplace / "none.txt")
    assert str(expanded("$LAMBDAFLOW_DATA/none.txt")) == "../shared/data/none.txt"
    with pytest.raises(DataError, match="set LAMBDAFLOW_DATA"):
        located("$LAMBDAFLOW_DATA/none.txt")
    (workplace / "a.txt").write_text("1 qid:1 1:1")
    monkeypatch.setenv("LAMBDAFLOW_DATA", str(workplace))
    assert located("$LAMBDAFLOW_DATA/a.txt") == workplace / "a.txt"


def test_a_folder_is_no_file(workplace):
    with pytest.raises(DataError, match=r"\.: this is a folder; name the files in it"):
        located(Path("."))
