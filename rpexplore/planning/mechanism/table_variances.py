"""Table variances: how accurate the cells of each table are, on the whole and at the extremes."""

from dataclasses import dataclass

import numpy as np

from rpexplore.common.numerics import read_only
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.workload.workload import Workload

# Standard errors that differ by no more than this factor are the same, as far as anybody notices.
SAME = 1.005
# What is shown of a table's cells.
CELLS = {
    "mean": "the root mean square of its cells",
    "largest": "its least accurate cell",
    "smallest": "its most accurate cell",
}


@dataclass(frozen=True, eq=False)
class TableVariances:
    """Variance of the cells of each table, float64[n_tables] each, read-only; alike for a marginal.

    mean over the cells of the table; largest, smallest: of its least and most accurate cell
    """

    mean: np.ndarray
    largest: np.ndarray
    smallest: np.ndarray

    def __post_init__(self) -> None:
        for array in (self.mean, self.largest, self.smallest):
            read_only(array)

    @classmethod
    def of(
        cls, workload: Workload, closure: Closure, sigma_squared: np.ndarray
    ) -> "TableVariances":
        """From the noise scales, float64[n_residuals]."""
        mean = closure.variances(sigma_squared)
        if workload.is_marginals:
            return cls(mean, mean, mean)
        cells = CellVariances(workload, closure)
        largest = cells.least_accurate(sigma_squared).variances
        smallest = cells.most_accurate(sigma_squared).variances
        # Rounding must not put a mean outside its extremes where all cells are alike.
        return cls(mean, np.maximum(largest, mean), np.minimum(smallest, mean))

    def at(self, cell: str) -> np.ndarray:
        """The variances of one of `CELLS`."""
        return getattr(self, cell)

    def of_loss(self, loss: Loss) -> np.ndarray:
        """Those that a loss looks at."""
        return self.largest if loss.looks_at_least_accurate_cells else self.mean

    def standard_errors(self, cell: str) -> np.ndarray:
        """The roots of the variances of one of `CELLS`."""
        return read_only(np.sqrt(self.at(cell)))

    def extreme_columns(self, tables: np.ndarray) -> dict[str, np.ndarray]:
        """Columns for these tables: σ of their most and least accurate cell, where cells differ."""
        cells = ("smallest", "largest") if cells_differ(self) else ()
        return {f"{cell}_standard_error": np.sqrt(self.at(cell)[tables]) for cell in cells}


def is_negligible_difference(low: float, high: float) -> bool:
    """Whether nobody would notice how much larger the second standard error is."""
    return high <= low * SAME


def cells_differ(variances: TableVariances) -> bool:
    """Whether some table's cells differ noticeably in accuracy."""
    return bool(np.any(variances.largest > variances.smallest * SAME**2))
