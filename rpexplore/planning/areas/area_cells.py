"""Cells of tables in areas: the extreme ones of each table, and those that a loss looks at.

In other bases than single values cells differ. Which can be extreme does not depend on the noise,
so that only these are looked at (docs/mathematics.md §4.3).
"""

from dataclasses import dataclass

import numpy as np

from rpexplore.common.numerics import read_only
from rpexplore.errors import PlanError
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.workload.workload import Workload

_AT_ONCE = 1 << 22  # variances worked on together
_MOST_CELLS = 100_000  # that may be the extreme one of a table


@dataclass(frozen=True, eq=False)
class LossRows:
    """The rows that a loss looks at, of the tables of all levels: means of cells, or single cells.

    tables  int64[n_rows]: of `AreaWorkload.tables`
    cells   int64[n_rows, max_order]: which cell of the table, by the rows of its attributes' bases,
            0 behind; of a mean 0 as well
    means   bool[n_rows]: whether it stands for the mean of the table's cells
    single  bool[n_rows]: whether it stands for a single cell; of single values all are like the
            mean
    matrix  float64[n_rows, n_residuals]: how the variances of residuals get into it
    """

    tables: np.ndarray
    cells: np.ndarray
    means: np.ndarray
    single: np.ndarray
    matrix: np.ndarray

    @classmethod
    def of(
        cls,
        tables: Workload,
        closure: Closure,
        loss: Loss,
        cells: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> "LossRows":
        """Those that a loss needs.

        cells: tables and cells that are looked at one by one; None: all that can be the least
            accurate of their tables
        """
        n_tables = len(tables)
        every, first = np.arange(n_tables), np.zeros(tables.members.shape, dtype=np.int64)
        yes, no = np.ones(n_tables, dtype=bool), np.zeros(n_tables, dtype=bool)
        one_by_one = loss.looks_at_least_accurate_cells or loss.meets_required_targets
        if tables.is_marginals or not one_by_one:
            single = yes if tables.is_marginals else no
            return cls(every, first, yes, single, closure.variance_matrix)
        of_cells = CellVariances(tables, closure)
        if cells is None:
            found = [_candidates(of_cells, table, largest=True) for table in every.tolist()]
            cells = np.repeat(every, [len(rows) for rows in found]), np.concatenate(found)
        own, rows = cells
        matrix = of_cells.map(own, rows).matrix.toarray()
        if loss.looks_at_least_accurate_cells:
            no, yes = np.zeros(len(own), dtype=bool), np.ones(len(own), dtype=bool)
            return cls(own, rows, no, yes, matrix)
        return cls(
            np.append(every, own),
            np.concatenate([first, rows]),
            np.append(yes, np.zeros(len(own), dtype=bool)),
            np.append(no, np.ones(len(own), dtype=bool)),
            np.concatenate([closure.variance_matrix, matrix]),
        )

    def __post_init__(self) -> None:
        for array in (self.tables, self.cells, self.means, self.single):
            read_only(array)

    def __len__(self) -> int:
        return len(self.tables)

    def of_tables(self, of_kind: np.ndarray, rows: np.ndarray, otherwise: float) -> np.ndarray:
        """Numbers of the tables `rows`, float64[n], for all rows here: float64[n_rows].

        otherwise: for the rows of other tables
        """
        of_every = np.full(int(max(np.max(self.tables), np.max(rows))) + 1, otherwise)
        of_every[rows] = of_kind
        return of_every[self.tables]


def mean_variances(
    workload: AreaWorkload, closure: Closure, kind: int, variances: np.ndarray
) -> np.ndarray:
    """Mean variance of the cells of each table of a workload: float64[n_tables, n_groups].

    variances: of the answers to residuals in some groups, float64[n_residuals, n_groups]
    """
    return closure.variance_matrix[workload.rows[kind]] @ variances


def extreme_variances(
    workload: AreaWorkload, closure: Closure, kind: int, variances: np.ndarray, *, largest: bool
) -> np.ndarray:
    """As `mean_variances`, of the least accurate cell of each table, or of the most accurate."""
    extreme = mean_variances(workload, closure, kind, variances)
    if workload.tables.is_marginals:
        return extreme
    cells, further = CellVariances(workload.tables, closure), np.maximum if largest else np.minimum
    for row, table in enumerate(workload.rows[kind].tolist()):
        candidates = _candidates(cells, table, largest=largest)
        factors = cells.map(np.full(len(candidates), table), candidates).matrix.toarray()
        # In blocks of groups: all candidates × all groups would not fit in memory.
        step = max(_AT_ONCE // len(factors), 1)
        for start in range(0, variances.shape[1], step):
            some = slice(start, start + step)
            # Rounding must not put a mean outside its extremes where all cells are alike.
            own = further.reduce(factors @ variances[:, some], axis=0)
            extreme[row, some] = further(extreme[row, some], own)
    return extreme


def _candidates(cells: CellVariances, table: int, *, largest: bool) -> np.ndarray:
    """The cells of a table that can be its extreme one: int64[n_candidates, max_order]."""
    tables = cells.workload
    bases = tables.attribute_basis_index[table]
    of_bases = [cells.moments[basis] for basis in bases.tolist() if basis >= 0]
    listed = [
        basis.least_accurate_rows if largest else basis.most_accurate_rows for basis in of_bases
    ]
    # As a float: the product can exceed 64 bits before it is refused.
    count = np.prod([float(len(each)) for each in listed])
    if count > _MOST_CELLS:
        raise PlanError(
            f"The table {tables.describe(table)} has so many of its attributes in other bases than "
            "single values that its least accurate cell cannot be computed; use fewer of them."
        )
    rows = np.zeros((int(count), len(bases)), dtype=np.int64)
    if listed:
        combined = np.meshgrid(*listed, indexing="ij")
        rows[:, : len(listed)] = np.stack([each.ravel() for each in combined], axis=1)
    return rows
