"""Released cells made up for tests of figures."""

import numpy as np

from rpexplore.analysis.cell_accuracy import Axis
from rpexplore.analysis.released_cells import ReleasedCells


def made(value, margin, *names, unbiased=None) -> ReleasedCells:
    value, margin = np.array(value, dtype=float), np.array(margin, dtype=float)
    middle = value if unbiased is None else np.array(unbiased, dtype=float)
    axes = tuple(
        Axis(name, tuple(f"{name} {place}" for place in range(size)))
        for name, size in zip(names, value.shape, strict=True)
    )
    ends = middle - margin, middle + margin
    return ReleasedCells(
        axes, value, middle, margin / 1.96, *ends, what="" if unbiased is None else "rounded"
    )
