"""Standard errors compared with the counts that are expected (RP+ Remark 2).

The coefficient of variation of a cell is the standard error of its noise over its expected count.
A cell is publishable at a wanted coefficient if it has no larger one.

Every cell of a table has one standard error, and its expected count is a cell of the margin
summed over the attributes that the table does not have, divided evenly over the values of those
that the margin does not have. So tables with the same attributes of the margin share one sorted
list of counts, and a binary search in it tells how many cells of a table are publishable: exact
for any number of tables and cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.analysis.forecasts import Forecast
from rpexplore.analysis.orders import group_name, order_groups
from rpexplore.errors import WorkloadError
from rpexplore.expected import ExpectedCounts
from rpexplore.words import count_in_words, plural, share_in_words
from rpexplore.workload import Workload

# The coefficients of variation of a curve.
CURVE = np.geomspace(0.01, 2, 40)

MOST_LISTED = 100_000  # cells of one table


@dataclass(frozen=True, eq=False)
class _Group:
    """Tables with the same attributes of the margin.

    tables  int64[n]: their places in the workload
    spread  float64[n]: over how many cells of the table each count of the margin is spread
    counts  float64[n_counts]: of the margin of these attributes, ascending
    """

    tables: np.ndarray
    spread: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True, eq=False)
class ExpectedCells:
    """The expected counts of all cells of all tables of a workload."""

    workload: Workload
    expected: ExpectedCounts
    groups: tuple[_Group, ...]

    @classmethod
    def of(cls, expected: ExpectedCounts, workload: Workload) -> "ExpectedCells":
        """Raises `WorkloadError` if the counts do not fit the workload's schema."""
        domain, expected = workload.domain, expected.fitted(workload.domain)
        bits = np.zeros(len(domain) + 1, dtype=np.int64)  # the last for the −1 of the padding
        for axis, name in enumerate(expected.attributes):
            bits[domain.position(name)] = 1 << axis
        masks, group_of = np.unique(bits[workload.members].sum(axis=1), return_inverse=True)
        order = np.argsort(group_of, kind="stable")
        groups = []
        for mask, tables in zip(
            masks.tolist(), np.split(order, np.cumsum(np.bincount(group_of))[:-1]), strict=True
        ):
            axes = range(len(expected.attributes))
            missing = tuple(axis for axis in axes if not mask >> axis & 1)
            counts = np.sort(expected.margin.sum(axis=missing), axis=None)
            groups.append(_Group(tables, workload.cells[tables] / counts.size, counts))
        return cls(workload, expected, tuple(groups))

    def medians(self) -> np.ndarray:
        """Expected count of a typical cell (the median) of each table, float64[n_tables]."""
        medians = np.empty(len(self.workload))
        for group in self.groups:
            medians[group.tables] = np.median(group.counts) / group.spread
        return medians

    def shares(self, errors: np.ndarray, coefficient: float) -> np.ndarray:
        """Share of each table's cells that are publishable, float64[n_tables].

        errors: standard error of a cell of each table
        """
        shares = np.empty(len(self.workload))
        for group in self.groups:
            least = _least_count(errors[group.tables], group.spread, coefficient)
            below = np.searchsorted(group.counts, least)
            shares[group.tables] = 1 - below / len(group.counts)
        return shares


def _least_count(
    errors: np.ndarray | float, spread: np.ndarray | float, coefficient: float
) -> np.ndarray | float:
    """The smallest count of the margin whose cells are publishable."""
    return errors * spread / coefficient


def of_tables(
    forecast: Forecast, cells: ExpectedCells, coefficient: float, names: np.ndarray
) -> pd.DataFrame:
    """One row a table, the largest share of publishable cells first, then the smallest error.

    Columns: table, order, cells, publishable (cells), share, typical_count (expected, of the
    median cell), typical_relative_error (of that cell) and standard_error.
    names: `rankings.all_titles` of the workload
    """
    workload, errors = forecast.workload, forecast.standard_errors
    shares, medians = cells.shares(errors, coefficient), cells.medians()
    with np.errstate(divide="ignore"):
        relative = errors / medians
    places = np.lexsort((relative, -shares))
    return pd.DataFrame(
        {
            "table": names[places],
            "order": workload.orders[places],
            "cells": workload.cells[places],
            "publishable": np.round(shares * workload.cells)[places],
            "share": shares[places],
            "typical_count": medians[places],
            "typical_relative_error": relative[places],
            "standard_error": errors[places],
        }
    )


def by_order(forecast: Forecast, cells: ExpectedCells, coefficient: float) -> pd.DataFrame:
    """One row a group of orders, and one for all: attributes, tables, whole (tables with every
    cell publishable), none (tables without one), cells, publishable, share (of the cells)."""
    workload = forecast.workload
    shares = cells.shares(forecast.standard_errors, coefficient)
    groups = order_groups(workload)
    kinds = [(group_name(g, workload), groups == g) for g in np.unique(groups).tolist()]
    rows = []
    for name, chosen in [*kinds, ("all tables", np.ones(len(workload), dtype=bool))]:
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
    workload, errors = forecast.workload, forecast.standard_errors
    groups = order_groups(workload)
    totals = np.bincount(groups, workload.cells)
    held = np.array(
        [
            np.bincount(groups, cells.shares(errors, coefficient) * workload.cells)
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
    workload, error = forecast.workload, float(forecast.standard_errors[table])
    domain, places = workload.domain, workload.places(table)
    sizes = tuple(domain.sizes[list(places)].tolist())
    if workload.cells[table] > MOST_LISTED:
        raise WorkloadError(
            f"The table {workload.describe(table)} has "
            f"{count_in_words(int(workload.exact_cells[table]))} cells; at most {MOST_LISTED:,} "
            "are listed."
        )
    names = [domain.names[place] for place in places]
    kept = [name for name in names if name in cells.expected.attributes]
    missing = tuple(axis for axis, name in enumerate(cells.expected.attributes) if name not in kept)
    margin = cells.expected.margin.sum(axis=missing)
    shape = tuple(size if name in kept else 1 for name, size in zip(names, sizes, strict=True))
    margin = np.broadcast_to(margin.reshape(shape), sizes).ravel()
    spread = float(workload.cells[table]) / np.prod(shape)
    expected = margin / spread
    with np.errstate(divide="ignore"):
        relative = error / expected
    indices = np.indices(sizes).reshape(len(places), margin.size)
    columns: dict[str, object] = {}
    for name, index in zip(names, indices, strict=True):
        labels = np.array(domain[name].labels(), dtype=object)
        columns[name if name not in OF_CELLS else f"{name} (attribute)"] = labels[index]
    least = _least_count(error, spread, coefficient)
    columns |= {
        "expected": expected,
        "standard_error": error,
        "relative_error": relative,
        "accurate": np.where(margin >= least, "yes", "no"),
    }
    return pd.DataFrame(columns, index=range(margin.size))


OF_CELLS = ("expected", "standard_error", "relative_error", "accurate")


def by_order_in_words(frame: pd.DataFrame, coefficient: float) -> str:
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
        f"At a wanted coefficient of variation of {wanted}, {share_in_words(share, 3)} of the "
        f"{count_in_words(count)} cells are publishable"
    )
    if row["whole"] == row["tables"]:
        return f"{words}: every cell of every table."
    if row["none"] == row["tables"]:
        return f"{words}: not one."
    return (
        f"{words}: all cells of {row['whole']:,} of {plural(row['tables'], 'table')}, some of "
        f"{row['tables'] - row['whole'] - row['none']:,}, none of {row['none']:,}."
    )


def of_cells_in_words(frame: pd.DataFrame, coefficient: float) -> str:
    """How many cells of `of_cells` are accurate enough."""
    count = frame["accurate"].tolist().count("yes")
    return (
        f"Accurate enough, with a coefficient of variation of at most {100 * coefficient:g} %: "
        f"{count:,} of {plural(len(frame), 'cell')}."
    )
