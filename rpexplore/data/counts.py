"""Counts: exact marginals of the records, which is all that a release needs of them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

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

        Summed from the smallest table that holds them. Raises `KeyError` if none does.
        """
        wanted = tuple(attribute_indices)
        if not wanted:
            return np.array(self.n_records, dtype=np.int64)
        if wanted in self.tables:
            return self.tables[wanted].astype(np.int64)
        # Of the attribute that the fewest tables have, only these tables can hold all.
        candidates = min((self._tables_with[index] for index in wanted), key=len)
        holding = [table for table in candidates if set(wanted) <= set(table)]
        if not holding:
            raise KeyError(wanted)
        table = min(holding, key=lambda table: self.tables[table].size)
        left = tuple(axis for axis, index in enumerate(table) if index not in wanted)
        return self.tables[table].sum(axis=left, dtype=np.int64)

    @cached_property
    def _tables_with(self) -> Mapping[int, list[tuple[int, ...]]]:
        """The tables that each attribute is in."""
        tables_with = defaultdict(list)
        for table in self.tables:
            for index in table:
                tables_with[index].append(table)
        return tables_with
