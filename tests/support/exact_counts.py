"""Exact counts of small mock records, counted one by one: the truth that tests compare with."""

from collections.abc import Mapping, Sequence

import numpy as np

from rpexplore.data.source import Counts


def counts_of(
    codes: Mapping[int, np.ndarray], n_records: int, sizes: Sequence[int] | np.ndarray
) -> Counts:
    """The table of all attributes together; codes: by attribute, the value of every record."""
    table = np.zeros([int(size) for size in sizes], dtype=np.int64)
    for row in range(n_records):
        table[tuple(int(codes[attribute][row]) for attribute in range(len(sizes)))] += 1
    return Counts({tuple(range(len(sizes))): table}, n_records)
