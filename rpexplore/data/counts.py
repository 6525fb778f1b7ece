"""Counts: exact marginals of the records, which is all that a release needs of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """Exact marginals on some sets of attributes. Private; never written anywhere.

    tables     ascending attribute indices -> integers of any width, one axis an attribute; where
               the key is (), an array of no axes. Those on a subset of a key follow by summing.
    n_records  how many records were counted

    Neither repr nor errors show anything of it.
    """

    tables: Mapping[tuple[int, ...], np.ndarray] = field(repr=False)
    n_records: int = field(repr=False)

    def counts(self, attribute_indices: Sequence[int]) -> np.ndarray:
        """The exact marginal on these ascending attribute indices: int64, one axis an attribute.

        An array of the caller's own, summed from the smallest table that holds them. Raises
        `KeyError` if none does.
        """
        wanted = tuple(attribute_indices)
        if not wanted:
            return np.array(self.n_records, dtype=np.int64)
        if wanted in self.tables:
            return self.tables[wanted].astype(np.int64)
        holding = reduce(int.__and__, (self._tables_with.get(index, 0) for index in wanted))
        if not holding:
            raise KeyError(wanted)
        table = self._by_size[(holding & -holding).bit_length() - 1]
        left = tuple(axis for axis, index in enumerate(table) if index not in wanted)
        return self.tables[table].sum(axis=left, dtype=np.int64)

    @property
    def n_cells(self) -> int:
        """How many numbers are in memory."""
        return sum(table.size for table in self.tables.values())

    @cached_property
    def _by_size(self) -> list[tuple[int, ...]]:
        """The tables, the smallest first."""
        return sorted(self.tables, key=lambda table: self.tables[table].size)

    @cached_property
    def _tables_with(self) -> Mapping[int, int]:
        return holding_sets(self._by_size)


def holding_sets(sets: Sequence[Sequence[int]]) -> dict[int, int]:
    """For each attribute, which of some sets it is in: bit i of a number tells of the i-th."""
    bits: dict[int, bytearray] = {}
    for position, attribute_indices in enumerate(sets):
        for index in attribute_indices:
            of_attribute = bits.setdefault(index, bytearray(len(sets) // 8 + 1))
            of_attribute[position // 8] |= 1 << position % 8
    return {index: int.from_bytes(of_sets, "little") for index, of_sets in bits.items()}
