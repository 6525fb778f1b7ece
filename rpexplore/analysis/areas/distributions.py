"""How accurate the tables of all areas are, taken together: least, median and largest errors."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import Headline
from rpexplore.domain.area_titles import area_title
from rpexplore.planning.accuracy_frame import worst_first
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.workload.table_text import Table, title


def area_headline(plan: AreaPlan) -> Headline:
    """The median over all tables of all areas, and the least accurate one of these.

    Of tables in other bases, root mean squares over their cells and the least accurate cell.
    """
    pieces = [(errors, sizes) for *_, errors, sizes, _ in _errors_by_level(plan)]
    errors, sizes = (np.concatenate(each) for each in zip(*pieces, strict=True))
    if not plan.workload.tables.is_marginals:
        worst_row = worst_first(plan.accuracy()).iloc[0]
        return Headline(
            median_error=weighted_median(errors, sizes),
            largest_error=float(worst_row["largest_standard_error"]),
            least_accurate_table=f"{worst_row['item']} on the level {worst_row['level']}",
            cells_differ=True,
            is_one=plan.n_items == 1,
        )
    worst, area, table = max(
        (float(errors.max()), int(groups[errors.argmax()]), table)
        for _, table, errors, _, groups in _errors_by_level(plan)
    )
    first = int(np.flatnonzero(plan.groups.of_area == area)[0])
    return Headline(
        median_error=weighted_median(errors, sizes),
        largest_error=worst,
        least_accurate_table=f"{title(table)} in {area_title(plan.workload.tree, first)}",
        cells_differ=False,
        is_one=plan.n_items == 1,
    )


def errors_by_level(plan: AreaPlan) -> pd.DataFrame:
    """One row a table and level, the levels from the top: standard errors over the level's areas.

    Of tables in other bases each area's is the root mean square over its cells.

    level, table, areas, cells (in one area), smallest, median, largest
    """
    tables = plan.workload.tables
    rows = [
        {
            "level": level,
            "table": title(table),
            "areas": int(sizes.sum()),
            "cells": int(tables.exact_cells[tables.position(table)]),
            "smallest": float(errors.min()),
            "median": weighted_median(errors, sizes),
            "largest": float(errors.max()),
        }
        for level, table, errors, sizes, _ in _errors_by_level(plan)
    ]
    return pd.DataFrame(rows)


def n_tables_below(plan: AreaPlan, error: float) -> int:
    """How many tables of areas have a standard error below this one.

    Of tables in other bases, how many may have such a cell: all on a level where one area has.
    """
    if not plan.workload.tables.is_marginals:
        rows = plan.accuracy()
        return int(rows.loc[rows["smallest_standard_error"] < error, "areas"].sum())
    return sum(int(sizes[errors < error].sum()) for *_, errors, sizes, _ in _errors_by_level(plan))


def weighted_median(values: np.ndarray, counts: np.ndarray) -> float:
    """The median of values of which each is there so many times."""
    order = np.argsort(values)
    ends, total = np.cumsum(counts[order]), int(np.sum(counts))
    middle = np.searchsorted(ends, [(total - 1) // 2, total // 2], side="right")
    return float(np.mean(values[order][middle]))


def _errors_by_level(
    plan: AreaPlan,
) -> Iterator[tuple[str, Table, np.ndarray, np.ndarray, np.ndarray]]:
    """Of each level and table: standard errors, numbers of areas that have them, their groups."""
    groups, tree = plan.groups, plan.workload.tree
    for number, level in enumerate(tree.levels):
        here = np.arange(*groups.starts[number : number + 2])
        asked = {
            table: None
            for kind in np.unique(groups.kinds[here]).tolist()
            if kind >= 0
            for table in plan.workload.rows[kind].tolist()
        }
        for table in sorted(asked):
            kinds = [kind for kind, rows in enumerate(plan.workload.rows) if table in rows]
            own = here[np.isin(groups.kinds[here], kinds)]
            variances = plan.closure.variance_matrix[table] @ plan.residual_variances[:, own]
            table_name = plan.workload.tables.tables[table]
            yield level, table_name, np.sqrt(variances), groups.multiplicity[own], own
