"""Codes that share a number on their way from a server, and the form that they come in."""

import struct

import numpy as np
import pytest

from rpexplore import Domain
from rpexplore.data.coding import Takers
from rpexplore.data.engines.packing import numbers_of, unpacked, words_of
from rpexplore.data.engines.session import STATE, Request
from rpexplore.data.source import PersonRule
from rpexplore.errors import DataError

HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)


def copied(rows: list[list[int]]) -> bytes:
    """A binary COPY, as PostgreSQL's documentation tells."""
    fields = [[struct.pack(">iq", 8, number) for number in row] for row in rows]
    return b"".join(
        [HEAD, *(struct.pack(">h", len(row)) + b"".join(row) for row in fields), b"\xff\xff"]
    )


@pytest.mark.parametrize("n_rows", [0, 1, 250])
def test_every_code_comes_back(n_rows):
    sizes = [1, 2, 3, 6, 7, 10, 999_999, 999_998, 5, 30, 1000, 2**19]
    domain = Domain.from_sizes({f"a{index}": size for index, size in enumerate(sizes)})
    tables = tuple((index,) for index in range(len(sizes)))
    request = Request("x", domain, tables, Takers(), PersonRule("who", 1))
    words = words_of(request)
    assert len(words) > 1
    rng = np.random.default_rng(0)
    codes = {f"c{index}": rng.integers(-2, size, n_rows) for index, size in enumerate(sizes)}
    codes[STATE] = rng.integers(0, 3, n_rows)
    for column, size in zip(codes.values(), [*sizes, 3], strict=True):
        column[:2] = [-2 if size != 3 else 0, size - 1][:n_rows]  # the ends of what there is
    rows = [
        [sum(int(codes[name][row]) << bit for name, bit in word.items()) for word in words]
        for row in range(n_rows)
    ]
    content = copied(rows)
    messages = [content[:30], *(content[at : at + 37] for at in range(30, len(content), 37))]
    batches = [unpacked(numbers, words) for numbers in numbers_of(messages, len(words), 100)]
    for name, column in codes.items():
        came = [batch.column(name).to_numpy() for batch in batches]
        assert np.array_equal(np.concatenate(came), column), name


@pytest.mark.parametrize(
    "content",
    [
        b"",
        HEAD,  # cut off
        copied([[1, 2]])[:-1],
        b"x" + copied([[1, 2]]),
        copied([[1]]),
        HEAD + struct.pack(">hiiqi", 2, -1, 8, 1, 0) + b"\xff\xff",  # a null
    ],
)
def test_another_form_is_refused(content):
    with pytest.raises(DataError, match="leave streaming out"):
        list(numbers_of([content], 2, 100))
