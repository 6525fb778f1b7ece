"""Records: one person or thing a row, coded by the domain. Private; never written anywhere."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """Category indices of every record, one array for each attribute place that was read.

    codes  place -> unsigned integers [n_records]
    sizes  int64[d]: attribute sizes of the domain

    Neither repr nor errors show anything of it.
    """

    codes: dict[int, np.ndarray] = field(repr=False)
    n_records: int = field(repr=False)
    sizes: np.ndarray = field(repr=False)

    def counts(self, places: Sequence[int]) -> np.ndarray:
        """The exact marginal on these attribute places: int64, one axis an attribute."""
        shape = tuple(int(self.sizes[place]) for place in places)
        if not places:
            return np.array(self.n_records, dtype=np.int64)
        flat = self.codes[places[0]].astype(np.int64)
        for place, size in zip(places[1:], shape[1:], strict=True):
            flat *= size
            flat += self.codes[place]
        return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)
