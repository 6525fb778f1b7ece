"""Counts: exact marginals of the records, which is all that a release ever asks of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """Exact marginals on some sets of attribute places. Private; never written anywhere.

    tables     ascending places -> integers of any width, one axis an attribute; where the key is
               (), an array of no axes. Those on a subset of a key's places follow by summing.
    n_records  how many records were counted

    Neither repr nor errors show anything of it.
    """

    tables: Mapping[tuple[int, ...], np.ndarray] = field(repr=False)
    n_records: int = field(repr=False)

    def counts(self, places: Sequence[int]) -> np.ndarray:
        """The exact marginal on these ascending attribute places: int64, one axis an attribute.

        Summed from the smallest table that holds them. Raises `KeyError` if none does.
        """
        wanted = tuple(places)
        if not wanted:
            return np.array(self.n_records, dtype=np.int64)
        if wanted in self.tables:
            return self.tables[wanted].astype(np.int64)
        # Of the attribute that the fewest tables have, only these tables can hold all.
        candidates = min((self._with.get(place, []) for place in wanted), key=len)
        holding = [held for held in candidates if set(wanted) <= set(held)]
        if not holding:
            raise KeyError(wanted)
        chosen = min(holding, key=lambda held: self.tables[held].size)
        left = tuple(axis for axis, place in enumerate(chosen) if place not in wanted)
        return self.tables[chosen].sum(axis=left, dtype=np.int64)

    @cached_property
    def _with(self) -> dict[int, list[tuple[int, ...]]]:
        """The tables that each place is in."""
        found: dict[int, list[tuple[int, ...]]] = {}
        for held in self.tables:
            for place in held:
                found.setdefault(place, []).append(held)
        return found
