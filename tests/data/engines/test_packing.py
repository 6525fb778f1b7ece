"""Codes that share a number on their way from a server."""

import numpy as np
import pytest

from rpexplore import Domain
from rpexplore.data.coding import Takers
from rpexplore.data.engines.packing import unpacked, words_of
from rpexplore.data.engines.session import STATE, Request
from rpexplore.data.source import PersonRule


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
    batch = unpacked(np.array(rows, dtype=np.int64).reshape(n_rows, len(words)), words)
    for name, column in codes.items():
        assert np.array_equal(batch.column(name).to_numpy(), column), name
