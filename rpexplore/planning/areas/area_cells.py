"""Cells of tables in areas: the most and the least accurate of each table.

In other bases than single values cells differ. Which can be extreme does not depend on the noise,
so that only these are looked at (docs/mathematics.md §4.3).
"""

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.planning.mechanism.cell_variances import CellVariances

if TYPE_CHECKING:
    from rpexplore.planning.areas.area_plan import AreaPlan

_AT_ONCE = 1 << 22  # variances worked on together


def extreme_variances(plan: "AreaPlan", kind: int) -> tuple[np.ndarray, np.ndarray]:
    """Variance of the most and of the least accurate cell of each table of a workload.

    float64[n_tables, n_groups of this kind] each, the groups ascending
    """
    mean = plan.table_variances(kind)
    if plan.workload.tables.is_marginals:
        return mean, mean
    cells = CellVariances(plan.workload.tables, plan.closure)
    variances = plan.residual_variances[:, plan.groups.kinds == kind]
    smallest, largest = mean.copy(), mean.copy()
    for row, table in enumerate(plan.workload.rows[kind].tolist()):
        for of_table, is_largest, further in (
            (smallest[row], False, np.minimum),
            (largest[row], True, np.maximum),
        ):
            factors = _candidates(cells, table, largest=is_largest)
            step = max(_AT_ONCE // len(factors), 1)
            for start in range(0, len(of_table), step):
                some = slice(start, start + step)
                # Rounding must not put a mean outside its extremes where all cells are alike.
                extreme = further.reduce(factors @ variances[:, some], axis=0)
                further(of_table[some], extreme, out=of_table[some])
    return smallest, largest


def _candidates(cells: CellVariances, table: int, *, largest: bool) -> np.ndarray:
    """How the variances of residuals get into the cells that can be extreme.

    float64[n_candidates, n_residuals]
    """
    tables = cells.workload
    bases = tables.attribute_basis_index[table]
    of_bases = [cells.moments[basis] for basis in bases.tolist() if basis >= 0]
    listed = [
        (basis.least_accurate_rows if largest else basis.most_accurate_rows).tolist()
        for basis in of_bases
    ]
    rows = np.zeros((int(np.prod([len(each) for each in listed])), len(bases)), dtype=np.int64)
    for number, cell in enumerate(product(*listed)):
        rows[number, : len(cell)] = cell
    return cells.map(np.full(len(rows), table), rows).matrix.toarray()
