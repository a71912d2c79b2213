"""The byte parser against a naive one, and one clear error for each rule."""

import random
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltr.data import letor
from tests import naive_letor
from tests.conftest import JIT
from tests.mutations import mutations


def parse(text, **options):
    return letor.parse(np.frombuffer(text.encode(), np.uint8), **options)


def test_a_line_with_everything():
    lines = parse("2 qid:q7 1:0.5 3:-1e-3 # docid = GX-1 inc = 1\r\n\n# a comment\n0 qid:8 2:NULL 4:nan #docid=x\n")
    assert lines.labels.tolist() == [2, 0]
    assert lines.features.shape == (2, 4)
    assert lines.features[0].tolist() == [0.5, 0, np.float32(-1e-3), 0]
    assert np.isnan(lines.features[1, [1, 3]]).all()
    text = np.frombuffer(
        b"2 qid:q7 1:0.5 3:-1e-3 # docid = GX-1 inc = 1\r\n\n# a comment\n0 qid:8 2:NULL 4:nan #docid=x\n", np.uint8
    )
    assert letor.cut(text, lines.query_spans).tolist() == [b"q7", b"8"]
    assert letor.cut(text, lines.document_spans).tolist() == [b"GX-1", b"x"]
    assert lines.query_keys[0] == letor.key_of(b"q7")


def test_whole_numbers_that_lose_digits_are_marked():
    lines = parse("1 qid:1 1:16777217 2:16777216 3:-20000001 4:16777216.5 6:1e9\n0 qid:1 5:99999999 6:1e39 7:-inf\n")
    assert np.flatnonzero(lines.digits_lost).tolist() == [0, 2, 4]


def test_a_feature_beyond_all_takes_no_memory_before_it_is_refused():
    """Every line would be as wide: of a block of 64 MB some 100 GB, which no machine has."""
    text = "1 qid:1 1:0.5 2:0.3\n" * 2_000 + "1 qid:1 1:0.5 20240101:1\n"
    tracemalloc.start()
    with pytest.raises(letor.LineError, match=r"line 2001: '1 qid:1 1:0.5 20240101:1': feature indices must be at most 100,000"):
        parse(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000_000
    with pytest.raises(letor.LineError, match=r"line 2: .* feature indices must rise within a line"):
        parse(f"1 qid:1 1:1\n1 qid:1 2:1 1:1\n{text}")


def test_no_newline_at_the_end_no_features_and_feature_zero():
    assert parse("1 qid:1 2:3").features.tolist() == [[0, 3]]
    assert parse("1 qid:1\n0 qid:1").features.shape == (2, 0)
    assert parse("1 qid:1 0:5 1:6", first_feature=0).features.tolist() == [[5, 6]]
    assert parse("1 2:3\n0 1:1").query_keys is None


def test_every_id_would_take_as_much_room_as_the_longest():
    longest = "x" * letor.LONGEST_ID
    assert len(parse(f"0 qid:{longest} 1:1 # docid = {longest}\n").labels) == 1
    for line in (f"0 qid:{longest}y 1:1", f"0 qid:1 1:1 # docid = {longest}y"):
        with pytest.raises(letor.LineError, match="have at most 2,048 bytes") as caught:
            parse(f"0 qid:1 1:1\n{line}\n")
        assert caught.value.line == 2


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("x qid:1 1:2", "must start with the label"),
        ("-1 qid:1 1:2", "must not be negative"),
        ("inf qid:1 1:2", "must be finite"),
        ("1 qid:1 1:abc", "FEATURE:VALUE"),
        ("1 qid:1 1=2", "FEATURE:VALUE"),
        ("1 qid:1 1:2x", "FEATURE:VALUE"),
        ("1 qid:1 1:.NULL", "FEATURE:VALUE"),
        ("1 qid:1 1:-.inf", "FEATURE:VALUE"),
        ("1 qid:1 1:", "FEATURE:VALUE"),
        ("1 qid:1 0:2", "start at 1"),
        ("1 qid:1 2:1 2:3", "rise"),
        ("1 qid:1 9:1 2:3", "rise"),
        ("1 qid:1 999999999:1", "must be at most 100,000"),
        ("1 qid:1 1:1 qid:2", "FEATURE:VALUE"),
        ("1 qid:1 9:1 x2:3", "FEATURE:VALUE"),
        ("1 1:2", "every line must have a qid"),
        ("1 qid: 1:2", "every line must have a qid"),
    ],
)
def test_a_wrong_line_is_named_with_its_number_text_and_rule(line, rule):
    with pytest.raises(letor.LineError, match=rule) as caught:
        parse("0 qid:1 1:1\n\n" + line + "\n1 qid:2 1:1\n")
    assert caught.value.line == 3
    assert caught.value.text == line


@pytest.mark.parametrize(
    ("field", "rule"),
    [
        ("700:abc", "FEATURE:VALUE"),
        ("700=1", "FEATURE:VALUE"),
        ("3:5", "rise"),
        ("0:1", "start at 1"),
        ("100001:1", "must be at most 100,000"),
    ],
)
def test_a_long_line_is_shown_with_the_field_that_is_wrong(field, rule):
    fields = [f"{k}:{k / 7:.4f}" for k in range(1, 1200)]
    fields[600] = field
    with pytest.raises(letor.LineError, match=rule) as caught:
        parse("0 qid:1 1:1\n2 qid:1 " + " ".join(fields) + " # docid = a\n")
    assert caught.value.line == 2
    assert caught.value.text.startswith("2 qid:1 1:0.1429")
    assert caught.value.text.endswith(f" … {field} …")


def test_a_long_line_whose_label_is_wrong_is_shown_by_its_beginning():
    with pytest.raises(letor.LineError, match="must not be negative") as caught:
        parse("-1 qid:1 " + " ".join(f"{k}:1" for k in range(1, 300)))
    assert caught.value.text.startswith("-1 qid:1 1:1")
    assert caught.value.text.endswith("...")


def test_the_first_wrong_line_of_several_pieces_is_reported(monkeypatch):
    monkeypatch.setattr(letor, "_PIECE", 64)
    rows = [f"1 qid:{k} 1:{k}" for k in range(100)]
    rows[41], rows[90] = "1 qid:41 1:a", "1 qid:90 1:b"
    with pytest.raises(letor.LineError, match="FEATURE:VALUE") as caught:
        parse("\n".join(rows))
    assert caught.value.line == 42


def test_nothing_in_it():
    for text in ("", "\n\n", "# only a comment\n"):
        with pytest.raises(ValueError, match="no document"):
            parse(text)


def test_a_return_inside_a_comment_hides_no_row():
    assert parse("1 qid:1 1:2 # docid = a\r\n# a\r\r\n0 qid:1 1:1 # b \r \n").labels.tolist() == [1, 0]
    for text in ("0 qid:1 1:1\n1 qid:1 1:2 # docid = a\r0 qid:1 1:3\n", "0 qid:1 1:1\n# head\r1 qid:1 1:2\n"):
        with pytest.raises(letor.LineError, match="after a CR inside a comment") as caught:
            parse(text)
        assert caught.value.line == 2


def test_digits_that_an_exponent_makes_up_for():
    for zeros in (0, 17, 18, 300, 390, 399, 400, 401, 500, 5000):
        small, large = f"0.{'0' * zeros}25e{zeros + 1}", f"25{'0' * zeros}e-{zeros + 1}"
        assert parse(f"1 qid:1 1:{small} 2:{large}").features.tolist() == [[2.5, 2.5]]
    assert parse("1 qid:1 1:1e-99999999999999999999 2:0e99999999999999999999").features.tolist() == [[0, 0]]
    assert parse("1 qid:1 1:1e99999999999999999999").features.tolist() == [[np.inf]]


def test_pieces_do_not_change_the_outcome(monkeypatch):
    rng = random.Random(1)
    text = "".join(
        f"{rng.randrange(5)} qid:{k // 7} "
        + " ".join(f"{f}:{rng.uniform(-9, 9):.6f}" for f in sorted(rng.sample(range(1, 30), 5)))
        + "\n"
        for k in range(300)
    )
    whole = parse(text)
    monkeypatch.setattr(letor, "_PIECE", 100)
    cut = parse(text)
    for name in ("features", "labels", "query_keys", "query_spans"):
        assert np.array_equal(getattr(whole, name), getattr(cut, name))
    naive = np.zeros((300, 29), np.float32)
    for row, line in enumerate(text.splitlines()):
        for pair in line.split()[2:]:
            index, number = pair.split(":")
            naive[row, int(index) - 1] = np.float32(float(number))
    assert np.array_equal(whole.features, naive[:, : whole.features.shape[1]])


@settings(max_examples=200, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, width=32), st.sampled_from(["{:r}", "{:.6f}", "{:.9g}", "{:e}"]))
def test_numbers_are_read_exactly(value, form):
    text = repr(value) if form == "{:r}" else form.format(value)
    if text.startswith("-") and float(text) == 0:
        text = text[1:]
    got, want = parse(f"1 qid:1 1:{text}").features[0, 0], np.float32(float(text))
    steps = abs(struct.unpack("i", struct.pack("f", got))[0] - struct.unpack("i", struct.pack("f", want))[0])
    digits = len(text.split("e")[0].replace(".", "").replace("-", "").strip("0"))
    assert steps <= (0 if digits <= 15 and 1e-22 < abs(value) < 1e22 else 1)


LINES = (
    b"2 qid:q7 1:0.5 3:-1e-3 7:12 # docid = GX-1 inc = 1",
    b"0 qid:12 1:0 2:0.000 3:1.250000 4:NULL 136:-7.5e+10#docid=x",
    b"1.0\tqid:a-b  2:.5\t9:nan 10:+inf\r",
    b"NaN qid:1",
    b"4 qid:10032 1:0.056537 2:0.000000 3:0.666667 4:1.000000 5:0.067138 #docid = GX029-35-5894638 inc = 0.0119881192468859 prob = 0.139842",
)


def check_reading(text):
    """Read as the naive twin reads it: the same rows, or the same line is wrong."""
    wanted, wrong = naive_letor.read(text), None
    try:
        lines = letor.parse(np.frombuffer(text, np.uint8))
    except letor.LineError as error:
        wrong = error.line
    if wrong is not None or isinstance(wanted, int):
        assert wanted == wrong, text
        return False
    assert len(lines.labels) == len(wanted), text
    letters = np.frombuffer(text, np.uint8)
    queries, documents = (letor.cut(letters, spans) for spans in (lines.query_spans, lines.document_spans))
    for k, row in enumerate(wanted):
        assert (queries[k], documents[k]) == (row.query.rstrip(b"\0"), row.document.rstrip(b"\0")), text
        values = np.zeros(lines.features.shape[1])
        values[[index - 1 for index in row.values]] = list(row.values.values())
        with np.errstate(over="ignore"):
            assert np.allclose(lines.features[k], values.astype(np.float32), rtol=3e-7, atol=1e-44, equal_nan=True), text
        assert lines.labels[k] == pytest.approx(row.label, rel=1e-14, nan_ok=True), text
    return True


@pytest.mark.skipif(not JIT, reason="thousands of texts")
@pytest.mark.parametrize("n", [400, pytest.param(200_000, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_changed_lines_are_read_as_a_strict_reader_reads_them(line, n):
    assert check_reading(line)
    first, last = b"0 qid:1 1:1\n", b"\n1 qid:2 2:1\n"
    read = sum(check_reading(first + changed + last) for changed in mutations(line, n, 5))
    print(f"{n:,} changed lines, {read:,} of them read")
    assert 0.02 * n < read < 0.98 * n


def test_an_id_with_a_colon_is_no_feature():
    """The last colon of a line tells how many features there are; in a line without any it may be the id's."""
    lines = parse("1 qid:500:0 1:2 3:4\n0 qid:500:70\n2 qid:20240101:9:8 # x:9\n0 qid:a 2:1\n")
    assert lines.features.tolist() == [[2, 0, 4], [0, 0, 0], [0, 0, 0], [0, 1, 0]]


def test_docid_is_a_word_and_found_behind_others():
    for comment, wanted in (
        ("# mydocid = 4", b""), ("# olddocid = 4 docid = A", b"A"), ("# docid_v2 docid = e", b"e"), ("#docid=x", b"x"), ("# docid x docid = y", b"y"),
        ("# inc=1,docid=7", b"7"), ("# [docid = 8]", b"8]"), ("# x-docid = 1", b""),
    ):  # fmt: skip
        text = np.frombuffer(f"1 qid:1 1:2 {comment}\n".encode(), np.uint8)
        begin, end = letor.parse(text).document_spans[0]
        assert text[begin:end].tobytes() == wanted, comment


@pytest.mark.parametrize("line", ["1 qid:a\0 1:2", "1 qid:\0 1:2", "1 qid:a 1:2 # docid = d\0"])
def test_an_id_that_would_be_cut_is_refused(line):
    with pytest.raises(letor.LineError, match="ids of queries and documents must not contain a NUL byte"):
        letor.parse(np.frombuffer(f"{line}\n".encode(), np.uint8))


def test_blanks_in_a_comment_are_passed_over_once():
    """A million take a moment; looked at again from each, they took minutes."""
    assert len(parse("1 qid:1 1:2 #" + " " * 1_000_000 + "docid = a\n").labels) == 1
