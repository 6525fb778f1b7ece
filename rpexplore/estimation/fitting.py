"""Iterative proportional fitting of one table to tables of one attribute less."""

from collections.abc import Sequence

import numpy as np

_SMALLEST = 1e-20  # a sum below this is 0: its cells stay so


def fitted(table: np.ndarray, margins: Sequence[np.ndarray], rounds: int) -> np.ndarray:
    """The table, changed in place, scaled in turn along each axis.

    margins: of each axis, the wanted table without it
    """
    # Of `sum` and of indices made anew, small tables take as long as of adding.
    axes = [(axis, margin, (slice(None),) * axis + (None,)) for axis, margin in enumerate(margins)]
    for _ in range(rounds):
        for axis, margin, spread in axes:
            table *= (margin / np.maximum(np.add.reduce(table, axis), _SMALLEST))[spread]
    return table
