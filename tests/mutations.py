"""Files that were changed: bytes and tokens of a text or an archive, at random, keyed by a seed."""

import re
from collections.abc import Iterator

import numpy as np

ODD = (
    b"-1", b"0", b"1", b"2", b"-0", b"7", b"1e300", b"1e999", b"nan", b"NaN", b"inf", b"-Infinity", b"2147483648", b"4294967295",
    b"9223372036854775808", b"1" + b"0" * 400, b"0.5", b"1_0", b"", b"null", b"true", b'"x"', b"[]", b"{}", b"[[" * 3000, b"\n", b"=", b" ",
)  # fmt: skip
"""What a token is replaced by."""
_TOKEN = re.compile(rb'[\w.+-]+|"[^"]*"|[^\w\s]')


def _bit(content: bytearray, rng: np.random.Generator) -> None:
    content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))


def _byte(content: bytearray, rng: np.random.Generator) -> None:
    content[int(rng.integers(len(content)))] = int(rng.integers(256))


def _left_out(content: bytearray, rng: np.random.Generator) -> None:
    at = int(rng.integers(len(content)))
    del content[at : at + int(rng.integers(1, 30))]


def _again(content: bytearray, rng: np.random.Generator) -> None:
    at, to = (int(one) for one in rng.integers(len(content), size=2))
    content[to:to] = content[at : at + int(rng.integers(1, 30))]


def _cut(content: bytearray, rng: np.random.Generator) -> None:
    del content[int(rng.integers(len(content))) :]


def _token(content: bytearray, rng: np.random.Generator) -> None:
    tokens = list(_TOKEN.finditer(content))
    if tokens:
        first, last = tokens[int(rng.integers(len(tokens)))].span()
        content[first:last] = ODD[int(rng.integers(len(ODD)))]


def _digit(content: bytearray, rng: np.random.Generator) -> None:
    digits = [k for k, byte in enumerate(content) if byte in b"0123456789"]
    if digits:
        content[digits[int(rng.integers(len(digits)))]] = int(rng.choice(np.frombuffer(b"0123456789-", np.uint8)))


def _swap(content: bytearray, rng: np.random.Generator) -> None:
    tokens = [match.span() for match in _TOKEN.finditer(content)]
    if len(tokens) > 1:
        (a, b), (c, d) = sorted(tokens[k] for k in rng.choice(len(tokens), 2, replace=False))
        content[a:d] = content[c:d] + content[b:c] + content[a:b]


KINDS = (_bit, _byte, _left_out, _again, _cut, _token, _token, _digit, _digit, _swap)


def mutations(content: bytes, n: int, seed: int, most: int = 2) -> Iterator[bytes]:
    """`n` changed copies of `content`, each with 1 to `most` changes; the k-th depends on seed and k only."""
    for k in range(n):
        rng, changed = np.random.default_rng([seed, k]), bytearray(content)
        for _ in range(int(rng.integers(1, most + 1))):
            if changed:
                KINDS[int(rng.integers(len(KINDS)))](changed, rng)
        yield bytes(changed)


def check_sentence(error: Exception) -> None:
    """Checks that an error says in one line of words what is wrong."""
    said = str(error)
    assert "\n" not in said, said
    assert 10 < len(said) < 600, said
    assert len(said.split()) > 3, said
