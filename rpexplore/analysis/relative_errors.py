"""Standard errors compared with the counts that are expected (RP+ Remark 2).

The coefficient of variation of a cell is the standard error of its noise over its expected count.
A cell is publishable at a wanted coefficient if it has no larger one.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rpexplore.analysis.expected_cells import ExpectedCells
from rpexplore.analysis.forecast import Forecast, group_name, order_groups
from rpexplore.common.formatting import describe_count, describe_share, plural
from rpexplore.errors import WorkloadError
from rpexplore.workload.query_matrix import query_matrix

# The coefficients of variation of a curve.
CURVE = np.geomspace(0.01, 2, 40)

MOST_LISTED = 100_000  # cells of one table


def of_tables(
    forecast: Forecast, cells: ExpectedCells, coefficient: float, names: np.ndarray
) -> pd.DataFrame:
    """One row a table, the largest share of publishable cells first, then the smallest error.

    Columns: table, order, cells, publishable (cells), share, median_count
    (expected), median_relative_error and standard_error.
    names: `fairness.all_titles` of the workload
    """
    workload, errors = forecast.workload, forecast.standard_errors
    shares, medians = cells.shares(forecast, coefficient), cells.medians()
    relative = cells.median_relative_errors(forecast)
    places = np.lexsort((relative, -shares))
    places = places[cells.held[places]]
    return pd.DataFrame(
        {
            "table": names[places],
            "order": workload.orders[places],
            "cells": workload.cells[places],
            "publishable": np.round(shares * workload.cells)[places],
            "share": shares[places],
            "median_count": medians[places],
            "median_relative_error": relative[places],
            "standard_error": errors[places],
        }
    )


def by_order(forecast: Forecast, cells: ExpectedCells, coefficient: float) -> pd.DataFrame:
    """One row a group of orders, and one for all: attributes, tables, whole (tables with every
    cell publishable), none (tables without one), cells, publishable, share (of the cells)."""
    workload = forecast.workload
    shares, held = cells.shares(forecast, coefficient), cells.held
    groups = order_groups(workload)
    found = np.unique(groups[held]).tolist()
    kinds = [(group_name(g, workload), held & (groups == g)) for g in found]
    rows = []
    for name, chosen in [*kinds, ("all tables", held)]:
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
    workload, looked_at = forecast.workload, cells.held
    groups, counts = order_groups(workload)[looked_at], workload.cells[looked_at]
    totals = np.bincount(groups, counts)
    held = np.array(
        [
            np.bincount(groups, cells.shares(forecast, coefficient)[looked_at] * counts)
            for coefficient in CURVE.tolist()
        ]
    )
    parts = [
        pd.DataFrame(
            {
                "series": group_name(group, workload),
                "group": group,
                "coefficient": CURVE,
                "share": held[:, group] / totals[group],
            }
        )
        for group in np.unique(groups).tolist()
    ]
    return pd.concat(parts, ignore_index=True)


def of_cells(
    forecast: Forecast, cells: ExpectedCells, table: int, coefficient: float
) -> pd.DataFrame:
    """One row a cell of one table, row-major: a column for each attribute (its label), expected,
    standard_error, relative_error, accurate ("yes" or "no": whether it is publishable).

    table: its place in the workload. Raises `WorkloadError` for a table of too many cells.
    """
    workload, domain = forecast.workload, forecast.workload.domain
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
    with np.errstate(divide="ignore"):
        relative = errors / np.abs(expected)
    places = workload.attribute_indices(table)
    indices = np.indices(answers.shape).reshape(len(places), answers.size)
    columns: dict[str, object] = {}
    for place, index in zip(places, indices, strict=True):
        name = domain.names[place]
        asked = query_matrix(workload.basis_of(table, place), domain.attributes[place])
        labels = np.array(asked.labels(), dtype=object)
        columns[name if name not in OF_CELLS else f"{name} (attribute)"] = labels[index]
    columns |= {
        "expected": expected,
        "standard_error": errors,
        "relative_error": relative,
        "accurate": np.where(relative <= coefficient, "yes", "no"),
    }
    return pd.DataFrame(columns, index=range(answers.size))


OF_CELLS = ("expected", "standard_error", "relative_error", "accurate")


def describe_by_order(frame: pd.DataFrame, coefficient: float) -> str:
    """How much of `by_order` is publishable."""
    row = frame.to_dict("records")[-1]
    wanted = f"{100 * coefficient:g} %"
    count = int(row["cells"])
    if count == 1:
        negation = "" if row["whole"] else " not"
        return (
            f"At a wanted coefficient of variation of {wanted}, the one cell is{negation} "
            "publishable."
        )
    # A few cells of very many are lost in the rounding of the share, not in the words.
    share = row["share"] if row["whole"] == row["tables"] else min(row["share"], 1 - 1e-15)
    words = (
        f"At a wanted coefficient of variation of {wanted}, {describe_share(share, 3)} of the "
        f"{describe_count(count)} cells are publishable"
    )
    if row["whole"] == row["tables"]:
        return f"{words}: every cell of every table."
    if row["none"] == row["tables"]:
        return f"{words}: not one."
    return (
        f"{words}: all cells of {row['whole']:,} of {plural(row['tables'], 'table')}, some of "
        f"{row['tables'] - row['whole'] - row['none']:,}, none of {row['none']:,}."
    )


def describe_cells(frame: pd.DataFrame, coefficient: float) -> str:
    """How many cells of `of_cells` are accurate enough."""
    count = frame["accurate"].tolist().count("yes")
    return (
        f"Accurate enough, with a coefficient of variation of at most {100 * coefficient:g} %: "
        f"{count:,} of {plural(len(frame), 'cell')}."
    )
