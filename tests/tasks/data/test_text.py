"""Blocks of a text are the text: whatever their size, the same data set, and the same line is wrong."""

import numpy as np
import pytest

from tasks.data.text import text_blocks
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
    with pytest.raises(DataError, match="every line has a qid, or none has"):
        read(["c.txt"])


@pytest.mark.parametrize("size", [10, 40, 1 << 20])
def test_a_wrong_line_has_its_number_in_the_file(workplace, size):
    path = workplace / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf# head\n1 qid:1 1:2\r\n\n0 qid:1 1:x\n")
    with pytest.raises(DataError, match=r"a\.txt, line 4: '0 qid:1 1:x': a field reads FEATURE:VALUE"):
        list(text_blocks(path, 1, size))
    path.write_text("# nothing\n\n# at all\n")
    with pytest.raises(DataError, match=r"a\.txt: no document in it"):
        list(text_blocks(path, 1, size))
