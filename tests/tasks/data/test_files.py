"""Where files are."""

import os
from pathlib import Path

import pytest

from tasks.config.data_section import Data
from tasks.data.files import expanded, located, named_files, require_files
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


def test_a_pipe_is_no_file(workplace):
    os.mkfifo("pipe.csv")
    with pytest.raises(DataError, match=r"^pipe\.csv: this is a pipe or a device, and files are read more than once"):
        located(Path("pipe.csv"))


def test_all_files_of_a_section_are_there(workplace):
    (workplace / "a.txt").write_text("1 qid:1 1:1")
    data = Data(files="a.txt", runs={"bm25": ["a.txt", "b.run"]}, clicks={"log": "c.csv"})
    assert [str(path) for path in named_files(data)] == ["a.txt", "a.txt", "b.run", "c.csv"]
    with pytest.raises(DataError, match=r"^b\.run: no such file$"):
        require_files(data)
    require_files(Data(files="a.txt"))


def test_a_file_that_may_not_be_read_is_told_before_anything_begins(workplace, monkeypatch):
    (workplace / "a.csv").write_text("query,label\n")
    monkeypatch.setattr("tasks.data.files.os.access", lambda path, mode: False)
    with pytest.raises(DataError, match=r"^a\.csv: no permission to read this file$"):
        located(Path("a.csv"))
