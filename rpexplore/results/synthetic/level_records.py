"""Synthetic records of tables with an attribute at several levels: the whole counts of their cells.

No model of pairs fits tables at several levels. Instead, the nonnegative whole counts of all cells
that the tables are margins of (`estimates.level_counts`) are taken apart into records. So the
records have every whole table, at every level, and beyond the tables no more structure than these
say.
"""

from collections.abc import Sequence

import numpy as np

from rpexplore.common.processes import Progress
from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import ReleaseError
from rpexplore.estimation.nonnegative import GAP
from rpexplore.results.estimates.level_counts import CountsAtLevels, counts_at_levels
from rpexplore.results.unbiased import Estimates, refuse_open_values


def whole_counts(estimates: Estimates, most: int, on_progress: Progress) -> CountsAtLevels:
    """The counts that records are made of.

    Raises `ReleaseError` where there is nobody, more than `most`, or `counts_at_levels` refuses.
    """
    refuse_open_values(estimates.domain, estimates.open_attributes)
    counts = counts_at_levels(estimates, gap=GAP, on_progress=on_progress)
    if not 1 <= (total := int(counts.whole_cells.sum())) <= most:
        raise ReleaseError(
            f"The whole counts have {total:,} records, and synthetic records can be 1 to {most:,}; "
            "use the counts (`rpexplore postprocess RELEASE --nonnegative --round`)."
        )
    return counts


def records_of_cells(counts: CountsAtLevels, attributes: Sequence[int]) -> np.ndarray:
    """The value of each attribute of tables in each record: int16[n_records, n_attributes]."""
    places = np.flatnonzero(counts.whole_cells)
    several = tuple(index for index in attributes if counts.domain.sizes[index] > 1)
    codes = np.zeros((len(places), len(attributes)), dtype=np.int16)
    codes[:, [attributes.index(index) for index in several]] = np.stack(
        counts.cells.values_of(0, places, several), axis=1
    )
    return np.repeat(codes, counts.whole_cells[places], axis=0)


def rounding_misfit(counts: CountsAtLevels, tables: Sequence[AttributeIndices]) -> float:
    """Share of records in another cell than the nonnegative table says, mean over tables."""
    total = float(counts.whole_cells.sum())
    off = [np.abs(counts.whole(table) - counts.of(table)).sum() / 2 for table in tables if table]
    return float(np.mean(off)) / total if off else 0.0
