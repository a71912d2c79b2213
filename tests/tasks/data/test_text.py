"""Blocks of a text are the text: whatever their size, the same data set, and the same line is wrong."""

import numpy as np
import pytest

from ltr.data import letor
from tasks.data.text import read_names, sidecar, text_blocks
from tasks.records import DataError
from tests.tasks.data.test_ingest import read


@pytest.mark.parametrize("size", [30, 100, 1 << 20])
def test_blocks_of_a_text_do_not_change_the_outcome(workplace, monkeypatch, size):
    lines = [f"{k % 3} qid:{k // 4} {k % 7 + 1}:{k} # docid = d{10**k}\n" for k in range(23)]
    (workplace / "a.txt").write_text("# head\n" * 9 + "".join(lines))
    whole = read(["a.txt"])[0]
    (workplace / "b.txt").write_text("".join(lines))
    monkeypatch.setattr(text_blocks, "__defaults__", (size,))
    cut = read(["b.txt"])[0]
    for name in ("features", "labels", "offsets", "keys", "ids", "documents", "position"):
        assert np.array_equal(getattr(cut, name), getattr(whole, name)), name
    (workplace / "c.txt").write_text("".join(lines) + "1 1:2\n")
    with pytest.raises(DataError, match="every line must have a qid, or none"):
        read(["c.txt"])


@pytest.mark.parametrize("size", [10, 40, 1 << 20])
def test_a_wrong_line_has_its_number_in_the_file(workplace, size):
    path = workplace / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf# head\n1 qid:1 1:2\r\n\n0 qid:1 1:x\n")
    with pytest.raises(DataError, match=r"a\.txt, line 4: '0 qid:1 1:x': a field must be FEATURE:VALUE"):
        list(text_blocks(path, 1, size))
    path.write_text("# nothing\n\n# at all\n")
    with pytest.raises(DataError, match=r"a\.txt: no document in it"):
        list(text_blocks(path, 1, size))


def test_a_text_that_is_too_wide_for_the_memory_says_what_to_do(workplace, monkeypatch):
    (workplace / "a.txt").write_text("1 qid:1 1:2 90000:1\n")

    def full(*_):
        raise MemoryError("Unable to allocate 40.2 GiB for an array with shape (120000, 90000) and data type float32")

    monkeypatch.setattr(letor, "parse", full)
    with pytest.raises(
        DataError, match=r"a\.txt: Unable to allocate 40\.2 GiB .*: each document takes as many numbers as the largest feature's"
    ):
        list(text_blocks(workplace / "a.txt", 1))


def test_features_of_text_have_the_names_of_a_file(workplace):
    (workplace / "a.txt").write_text("1 qid:1 1:2 3:4\n0 qid:1 2:1\n")
    (workplace / "names.txt").write_text("bm25\npage rank\nlength\n")
    queries, noted = read(["a.txt"], names="names.txt")
    assert queries.names == ("bm25", "page rank", "length")
    assert noted.notes == ()
    assert read(["a.txt"])[0].names == ("f1", "f2", "f3")
    assert read(["a.txt"], names="names.txt", drop=["page rank"])[0].names == ("bm25", "length")
    (workplace / "names.txt").write_text("bm25\npage rank\nlength\nage\r\n")
    queries, noted = read(["a.txt"], names="names.txt")
    assert queries.names == ("bm25", "page rank", "length", "age")
    assert not queries.features[:, 3].any()
    assert noted.notes == ("no line has a feature above 3; the last name of names.txt is a feature that is always 0",)
    (workplace / "names.txt").write_text("bm25\nage\n")
    with pytest.raises(DataError, match=r"a\.txt: feature 3, and data\.names names\.txt names 2 features"):
        read(["a.txt"], names="names.txt")
    (workplace / "a.csv").write_text("query,label,x\n1,1,1\n")
    with pytest.raises(DataError, match=r"a\.csv: data\.names names the features of LETOR text"):
        read(["a.csv"], names="names.txt")


def test_many_names_are_each_looked_up_once(workplace):
    names = [f"feature {k}" for k in range(100_000)]
    (workplace / "names.txt").write_text("\n".join(names))
    assert read_names(workplace / "names.txt") == tuple(names)
    (workplace / "names.txt").write_text("\n".join([*names, names[7]]))
    with pytest.raises(DataError, match="line 100001: 'feature 7': each line must be the name of another feature"):
        read_names(workplace / "names.txt")


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        (b"", "the file is empty"),
        (b"a\n\nb\n", "line 2: '': each line must be the name of another feature"),
        (b"a\nb\na\n", "line 3: 'a': each line must be the name of another feature"),
        (b"a\n\xff\n", "byte 2 is not UTF-8"),
    ],
)
def test_wrong_names_are_refused(workplace, written, rule):
    (workplace / "names.txt").write_bytes(written)
    with pytest.raises(DataError, match=rf"names\.txt.*{rule}"):
        read_names(workplace / "names.txt")


def test_a_file_whose_name_leaves_no_room_for_another_has_none_beside_it(tmp_path):
    path = tmp_path / f"{'x' * 251}.txt"
    path.write_text("1 qid:1 1:2\n")
    assert sidecar(path) is None
    (tmp_path / "a.txt.group").write_text("1\n")
    assert sidecar(tmp_path / "a.txt") == tmp_path / "a.txt.group"
