"""Standard errors compared with the counts that are expected (RP+ Remark 2).

The coefficient of variation of a cell is the standard error of its noise over its expected count.
A cell is publishable at a wanted coefficient if it has no larger one.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rpexplore.analysis.cell_accuracy import Axis, label_columns, query_matrices
from rpexplore.analysis.expected_cells import ExpectedCells
from rpexplore.analysis.fairness import all_titles
from rpexplore.analysis.forecast import Forecast, group_name, order_groups
from rpexplore.common.formatting import describe_count, describe_share, plural
from rpexplore.domain.publishable import coefficients_of_variation
from rpexplore.errors import WorkloadError

# The coefficients of variation of a curve.
CURVE = np.geomspace(0.01, 2, 40)

MOST_LISTED = 100_000  # cells of one table
OF_CELLS = ("expected", "standard_error", "relative_error", "accurate")


def of_tables(forecast: Forecast, cells: ExpectedCells, coefficient: float) -> pd.DataFrame:
    """One row a table, the largest share of publishable cells first, then the smallest error.

    Columns, indexed by the table's index in the workload: table, order, cells, publishable (cells),
    share, median_count (expected), median_relative_error and standard_error.
    """
    workload, errors = forecast.workload, forecast.standard_errors
    shares, medians = cells.shares(forecast, coefficient), cells.medians()
    relative = cells.median_relative_errors(forecast)
    tables = np.lexsort((relative, -shares))
    tables = tables[cells.held[tables]]
    return pd.DataFrame(
        {
            "table": all_titles(workload)[tables],
            "order": workload.orders[tables],
            "cells": workload.cells[tables],
            "publishable": np.round(shares * workload.cells)[tables],
            "share": shares[tables],
            "median_count": medians[tables],
            "median_relative_error": relative[tables],
            "standard_error": errors[tables],
        },
        index=pd.Index(tables, name="table_index"),
    )


def by_order(forecast: Forecast, cells: ExpectedCells, coefficient: float) -> pd.DataFrame:
    """One row a group of orders, and one for all: attributes, tables, whole (tables with every
    cell publishable), none (tables without one), cells, publishable, share (of the cells)."""
    workload = forecast.workload
    shares, held = cells.shares(forecast, coefficient), cells.held
    groups = order_groups(workload)
    kinds = {
        group_name(group, workload): held & (groups == group)
        for group in np.unique(groups[held]).tolist()
    }
    rows = []
    for name, chosen in (kinds | {"all tables": held}).items():
        counts = workload.cells[chosen]
        publishable = float(np.sum(shares[chosen] * counts))  # all cells if all shares are 1
        rows.append(
            {
                "attributes": name,
                "tables": int(chosen.sum()),
                "whole": int(np.sum(shares[chosen] == 1)),
                "none": int(np.sum(shares[chosen] == 0)),
                "cells": float(counts.sum()),
                "publishable": publishable,
                "share": publishable / float(counts.sum()),
            }
        )
    return pd.DataFrame(rows)


def by_plan(
    forecasts: Sequence[Forecast], cells: ExpectedCells, coefficient: float
) -> pd.DataFrame:
    """One row a plan: plan, and what `by_order` has for all tables."""
    parts = []
    for forecast in forecasts:
        row = by_order(forecast, cells, coefficient).iloc[[-1]].drop(columns="attributes")
        parts.append(row.assign(plan=forecast.name))
    return pd.concat(parts, ignore_index=True)


def curves(forecast: Forecast, cells: ExpectedCells) -> pd.DataFrame:
    """Share of publishable cells against the wanted coefficient of variation, by group of orders.

    Columns: series, group, coefficient, share.
    """
    workload, held = forecast.workload, cells.held
    groups, counts = order_groups(workload)[held], workload.cells[held]
    used = np.unique(groups)
    names = [group_name(group, workload) for group in used.tolist()]
    publishable = np.array(
        [
            np.bincount(groups, cells.shares(forecast, coefficient)[held] * counts)[used]
            for coefficient in CURVE.tolist()
        ]
    )
    return pd.DataFrame(
        {
            "series": np.repeat(np.array(names, dtype=object), len(CURVE)),
            "group": np.repeat(used, len(CURVE)),
            "coefficient": np.tile(CURVE, len(used)),
            "share": (publishable / np.bincount(groups, counts)[used]).T.ravel(),
        }
    )


def of_cells(
    forecast: Forecast, cells: ExpectedCells, table: int, coefficient: float
) -> pd.DataFrame:
    """One row a cell of one table, row-major: a column for each attribute (its label), expected,
    standard_error, relative_error, accurate ("yes" or "no": whether it is publishable).

    table: its index in the workload. Raises `WorkloadError` for a table of too many cells.
    """
    workload = forecast.workload
    if workload.cells[table] > MOST_LISTED:
        raise WorkloadError(
            f"The table {workload.describe(table)} has "
            f"{describe_count(int(workload.exact_cells[table]))} cells; at most {MOST_LISTED:,} "
            "are listed."
        )
    answers = cells.answers(table)
    errors = np.full(answers.shape, forecast.standard_errors[table])
    if table in cells.unequal or table in cells.left_out:
        errors = forecast.cell_standard_errors(table)
    expected, errors = answers.ravel(), errors.ravel()
    relative = coefficients_of_variation(errors, expected)
    indices = np.indices(answers.shape).reshape(answers.ndim, answers.size)
    axes = [
        Axis(matrix.attribute.name, tuple(matrix.labels()))
        for matrix in query_matrices(forecast, table)
    ]
    columns = label_columns(axes, indices, OF_CELLS)
    accurate = np.where(relative <= coefficient, "yes", "no")
    columns |= dict(zip(OF_CELLS, (expected, errors, relative, accurate), strict=True))
    return pd.DataFrame(columns, index=range(answers.size))


def describe_by_order(frame: pd.DataFrame, coefficient: float) -> str:
    """How much of `by_order` is publishable."""
    row = frame.to_dict("records")[-1]
    start, count = f"At a coefficient of variation of {100 * coefficient:g} %,", int(row["cells"])
    if count == 1:
        return f"{start} the one cell is{'' if row['whole'] else ' not'} publishable."
    # A few cells of very many are lost in the rounding of the share, not in the text.
    share = row["share"] if row["whole"] == row["tables"] else min(row["share"], 1 - 1e-15)
    return (
        f"{start} {describe_share(share, 3)} of the {describe_count(count)} cells are "
        f"publishable: all cells of {row['whole']:,} of {plural(row['tables'], 'table')}, some of "
        f"{row['tables'] - row['whole'] - row['none']:,}, none of {row['none']:,}."
    )


def describe_cells(frame: pd.DataFrame, coefficient: float) -> str:
    """How many cells of `of_cells` are accurate enough."""
    count = frame["accurate"].tolist().count("yes")
    return (
        f"Accurate enough, with a coefficient of variation of at most {100 * coefficient:g} %: "
        f"{count:,} of {plural(len(frame), 'cell')}."
    )
