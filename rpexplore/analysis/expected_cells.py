"""The expected counts of all cells, and standard errors compared with them (RP+ Remark 2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import pandas as pd

from rpexplore.analysis.cell_accuracy import Axis, label_columns, query_matrices
from rpexplore.analysis.fairness import all_titles
from rpexplore.analysis.measures import (
    COEFFICIENT_OF_VARIATION,
    Accuracy,
    Measure,
    group_name,
    order_groups,
)
from rpexplore.common.text import describe_count, describe_share, plural
from rpexplore.domain.expected_counts import CV_LIMIT, ExpectedCounts
from rpexplore.domain.readings import coefficients_of_variation
from rpexplore.domain.survey import SurveyDesign, counts_without_sampling, least_good_counts
from rpexplore.errors import WorkloadError
from rpexplore.workload.table_text import query_matrix, titles
from rpexplore.workload.workload import Workload

# ---- The expected counts of all cells of a workload's tables, and which are publishable.
#
# Every cell of a marginal has one standard error, and its expected count is a cell of the margin
# summed over the attributes that the table does not have, divided evenly over the values of those
# that the margin does not have. So tables with the same attributes of the margin share one sorted
# list of counts, and a binary search in it tells how many cells of a table are publishable: exact
# for any number of tables and cells. Tables with an attribute whose basis is not single values are
# gone through cell by cell: the expected answers are its queries put to the expected marginal, and
# each cell has its own standard error.


MOST_GONE_THROUGH = 1_000_000  # cells of all tables whose cells are not equally accurate


@dataclass(frozen=True, eq=False)
class _Group:
    """Tables with the same attributes of the margin.

    tables  int64[n]: their indices in the workload
    spread  float64[n]: over how many cells of the table each count of the margin is spread
    counts  float64[n_counts]: of the margin of these attributes, ascending
    """

    tables: np.ndarray
    spread: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True, eq=False)
class ExpectedCells:
    """The expected counts of all cells of all tables of a workload.

    groups    tables whose cells are equally accurate
    unequal   indices of the tables whose cells are gone through one by one, ascending
    left_out  indices of those that have too many cells for that, or amounts
    survey    whose sampling error counts beside the noise, if it does: which cells are publishable
              is then known for one limit only, that of the total error, at any budget
    cv_limit  that limit
    """

    workload: Workload
    expected: ExpectedCounts
    groups: tuple[_Group, ...]
    unequal: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()
    survey: SurveyDesign | None = None
    cv_limit: float = CV_LIMIT

    @classmethod
    def of(
        cls,
        expected: ExpectedCounts,
        workload: Workload,
        survey: SurveyDesign | None = None,
        cv_limit: float = CV_LIMIT,
    ) -> "ExpectedCells":
        """Raises `WorkloadError` if the counts do not fit the workload's domain."""
        domain, expected = workload.domain, expected.fitted(workload.domain)
        bits = np.zeros(len(domain) + 1, dtype=np.int64)  # the last for the −1 of the padding
        for axis, name in enumerate(expected.attributes):
            bits[domain.position(name)] = 1 << axis
        unequal, left_out = split_by_accuracy(workload, MOST_GONE_THROUGH)
        alike = np.ones(len(workload), dtype=bool)
        alike[[*unequal, *left_out]] = False
        masks = bits[workload.members].sum(axis=1)
        groups = []
        for mask in np.unique(masks[alike]).tolist():
            tables = np.flatnonzero(alike & (masks == mask))
            axes = range(len(expected.attributes))
            missing = tuple(axis for axis in axes if not mask >> axis & 1)
            counts = np.sort(expected.margin.sum(axis=missing), axis=None)
            groups.append(_Group(tables, workload.cells[tables] / counts.size, counts))
        return cls(workload, expected, tuple(groups), unequal, left_out, survey, cv_limit)

    @property
    def held(self) -> np.ndarray:
        """Which tables are looked at: all but those left out, bool[n_tables]."""
        held = np.ones(len(self.workload), dtype=bool)
        held[list(self.left_out)] = False
        return held

    @cached_property
    def has_coefficients(self) -> bool:
        """Whether the median cell of some table is expected to hold any records."""
        return bool(np.any(self.medians() > 0))

    @property
    def left_out_text(self) -> str:
        """Which tables are not looked at, in a sentence or two; "" if all are."""
        reasons = {
            False: "the cells are not equally accurate, and with more than "
            f"{MOST_GONE_THROUGH:,} in all too many to go through one by one.",
            True: f"of {self.workload.sums_noun} nothing is expected.",
        }
        said = []
        for of_amounts, reason in reasons.items():
            left = [row for row in self.left_out if self.workload.has_amounts[row] == of_amounts]
            if not left:
                continue
            first = titles(self.workload, np.array(left[:1]))[0]
            such = f", such as {first}," if len(left) > 1 else f" ({first})"
            are = "is" if len(left) == 1 else "are"
            said.append(f"{plural(len(left), 'table')}{such} {are} left out here: {reason}")
        return " ".join(said)

    def answers(self, table: int) -> np.ndarray:
        """The expected answer to each cell of a table, one axis an attribute."""
        workload = self.workload
        attributes = [workload.domain.attributes[i] for i in workload.attribute_indices(table)]
        answers = self.expected.counts_of(attributes)
        for axis, index in enumerate(workload.attribute_indices(table)):
            matrix = query_matrix(workload.basis_of(table, index), attributes[axis])
            answers = matrix.of(answers, axis)
        return answers

    def medians(self) -> np.ndarray:
        """Median expected count of the cells of each table, float64[n_tables].

        NaN for tables that are left out.
        """
        medians = np.full(len(self.workload), np.nan)
        for group in self.groups:
            medians[group.tables] = np.median(group.counts) / group.spread
        for table in self.unequal:
            medians[table] = np.median(np.abs(self.answers(table)))
        return medians

    def median_count(self, tables: np.ndarray) -> float:
        """The least count that half of the cells of these tables are expected not to exceed.

        tables: bool[n_tables]; those left out are not looked at. NaN if there are no others.
        """
        parts = []  # (sorted counts; how many cells each is spread over; how often that occurs)
        for group in self.groups:
            spreads = np.unique(group.spread[tables[group.tables]], return_counts=True)
            parts.append((group.counts, *spreads))
        for table in self.unequal:
            if tables[table]:
                counts = np.sort(np.abs(self.answers(table)), axis=None)
                parts.append((counts, np.ones(1), np.ones(1)))
        parts = [part for part in parts if len(part[1])]
        if not parts:
            return np.nan
        half = sum(len(counts) * float(spread @ times) for counts, spread, times in parts) / 2

        def at_most(count: float) -> float:
            """How many cells are expected to hold at most so much."""
            return sum(
                float(np.searchsorted(counts, count * spread, "right") @ (spread * times))
                for counts, spread, times in parts
            )

        if at_most(0.0) >= half:
            return 0.0
        least = min(counts[counts > 0][0] / spread[-1] for counts, spread, _ in parts if counts[-1])
        low = math.log(least) - 1
        high = math.log(max(counts[-1] / spread[0] for counts, spread, _ in parts)) + 1
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if at_most(math.exp(middle)) >= half else (middle, high)
        return math.exp(high)

    def median_relative_errors(self, accuracy: Accuracy) -> np.ndarray:
        """Median relative error of the cells of each table, float64[n_tables]."""
        with np.errstate(divide="ignore"):
            relative = accuracy.standard_errors / self.medians()
        for table, ratios in zip(self.unequal, _ratios(self, accuracy, True), strict=True):
            relative[table] = np.median(ratios)
        return relative

    # With a survey a cell of standard error σ and count c is publishable if σ is at most κ ρ(c),
    # ρ the count without sampling, or c at least L(σ), the smallest good count. Where a coefficient
    # of variation is asked for, it is κ over what the standard errors are to be multiplied by.

    @cached_property
    def factors(self) -> np.ndarray:
        """d (1 − f) of each table, 0 without a survey: float64[n_tables]."""
        if self.survey is None:
            return np.zeros(len(self.workload))
        return self.survey.factors(self.workload.tables)

    def least_counts(self, ratios: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """The smallest publishable counts; ratios: standard errors over the wanted coefficient."""
        if self.survey is None:
            return ratios
        errors = self.cv_limit * ratios
        return least_good_counts(errors, self.cv_limit, self.expected.total, factors)

    def counts_for_noise(self, counts: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Counts that leave noise as much room without a survey as these do with it."""
        if self.survey is None:
            return counts
        return counts_without_sampling(counts, self.cv_limit, self.expected.total, factors)

    def shares(self, accuracy: Accuracy, coefficient: float) -> np.ndarray:
        """Share of each table's cells that are publishable, float64[n_tables].

        NaN for tables that are left out.
        """
        errors, shares = accuracy.standard_errors, np.full(len(self.workload), np.nan)
        for group in self.groups:
            # The smallest count of the margin whose cells are publishable.
            ratios, factors = errors[group.tables] / coefficient, self.factors[group.tables]
            least = self.least_counts(ratios, factors) * group.spread
            below = np.searchsorted(group.counts, least)
            shares[group.tables] = 1 - below / len(group.counts)
        for table, ratios in zip(self.unequal, _ratios(self, accuracy), strict=True):
            shares[table] = np.searchsorted(ratios, coefficient, side="right") / len(ratios)
        return shares


def in_measure(accuracy: Accuracy, measure: Measure, cells: ExpectedCells | None) -> Accuracy:
    """The same tables in another measure; cells: theirs, where it needs them."""
    coefficients = None
    if measure == COEFFICIENT_OF_VARIATION:
        assert cells is not None
        coefficients = cells.median_relative_errors(accuracy)
    return replace(accuracy, measure=measure, coefficients=coefficients)


def split_by_accuracy(workload: Workload, most: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(tables whose cells differ in accuracy and are gone through, those that are too many).

    Cells differ in tables with an attribute that has another basis than single values somewhere,
    or is in tables at several levels. most: cells of all that are gone through
    """
    columns = workload.domain.columns
    levels = np.bincount(columns[list(workload.used)], minlength=len(columns))
    measured = [
        any(not basis.is_identity for basis in bases) or levels[columns[index]] > 1
        for index, bases in enumerate(workload.bases)
    ]
    measured.append(False)  # for the −1 of the padding
    is_measured = np.any(np.array(measured)[workload.members], axis=1)
    tables = np.flatnonzero(is_measured & ~workload.has_amounts)
    work = np.maximum(workload.cells, workload.counted_cells)[tables]
    smallest = np.argsort(work, kind="stable")
    few = np.cumsum(work[smallest]) <= most
    through, left = (np.sort(tables[smallest[which]]).tolist() for which in (few, ~few))
    # What is summed is not known beforehand.
    return tuple(through), tuple(sorted([*left, *np.flatnonzero(workload.has_amounts).tolist()]))


@lru_cache(maxsize=6)
def _ratios(cells: ExpectedCells, accuracy: Accuracy, of_noise: bool = False) -> list[np.ndarray]:
    """Of each of `cells.unequal`, the relative errors of its cells, ascending.

    of_noise: over the counts; else over what a survey leaves of them for noise
    """
    ratios = []
    for table in cells.unequal:
        counts = np.abs(cells.answers(table))
        if not of_noise:
            counts = cells.counts_for_noise(counts, cells.factors[table])
        errors = accuracy.cell_standard_errors(table)
        ratios.append(np.sort(coefficients_of_variation(errors, counts), axis=None))
    return ratios


# ---- Standard errors compared with the counts that are expected (RP+ Remark 2).
#
# The coefficient of variation of a cell is the standard error of its noise over its expected count.
# A cell is publishable at a wanted coefficient if it has no larger one.


# The coefficients of variation of a curve.
CURVE = np.geomspace(0.01, 2, 40)

MOST_LISTED = 100_000  # cells of one table
OF_CELLS = ("expected", "standard_error", "relative_error", "accurate")


def of_tables(accuracy: Accuracy, cells: ExpectedCells, coefficient: float) -> pd.DataFrame:
    """One row a table, the largest share of publishable cells first, then the smallest error.

    Columns, indexed by the table's index in the workload: table, order, cells, publishable (cells),
    share, median_count (expected), median_relative_error and standard_error.
    """
    workload, errors = accuracy.workload, accuracy.standard_errors
    shares, medians = cells.shares(accuracy, coefficient), cells.medians()
    relative = cells.median_relative_errors(accuracy)
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


def by_order(accuracy: Accuracy, cells: ExpectedCells, coefficient: float) -> pd.DataFrame:
    """One row a group of orders, and one for all: attributes, tables, whole (tables with every
    cell publishable), none (tables without one), cells, publishable, share (of the cells)."""
    workload = accuracy.workload
    shares, held = cells.shares(accuracy, coefficient), cells.held
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
    accuracies: Sequence[Accuracy], cells: ExpectedCells, coefficient: float
) -> pd.DataFrame:
    """One row a plan: plan, and what `by_order` has for all tables."""
    parts = []
    for accuracy in accuracies:
        row = by_order(accuracy, cells, coefficient).iloc[[-1]].drop(columns="attributes")
        parts.append(row.assign(plan=accuracy.name))
    return pd.concat(parts, ignore_index=True)


def curves(accuracy: Accuracy, cells: ExpectedCells) -> pd.DataFrame:
    """Share of publishable cells against the wanted coefficient of variation, by group of orders.

    Columns: series, group, coefficient, share.
    """
    workload, held = accuracy.workload, cells.held
    groups, counts = order_groups(workload)[held], workload.cells[held]
    used = np.unique(groups)
    names = [group_name(group, workload) for group in used.tolist()]
    publishable = np.array(
        [
            np.bincount(groups, cells.shares(accuracy, coefficient)[held] * counts)[used]
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
    accuracy: Accuracy, cells: ExpectedCells, table: int, coefficient: float
) -> pd.DataFrame:
    """One row a cell of one table, row-major: a column for each attribute (its label), expected,
    standard_error, relative_error, accurate ("yes" or "no": whether it is publishable).

    table: its index in the workload. Raises `WorkloadError` for a table of too many cells.
    """
    workload = accuracy.workload
    if workload.cells[table] > MOST_LISTED:
        raise WorkloadError(
            f"The table {workload.describe(table)} has "
            f"{describe_count(int(workload.exact_cells[table]))} cells; at most {MOST_LISTED:,} "
            "are listed."
        )
    answers = cells.answers(table)
    errors = np.full(answers.shape, accuracy.standard_errors[table])
    if table in cells.unequal or table in cells.left_out:
        errors = accuracy.cell_standard_errors(table)
    expected, errors = answers.ravel(), errors.ravel()
    relative = coefficients_of_variation(errors, expected)
    indices = np.indices(answers.shape).reshape(answers.ndim, answers.size)
    axes = [
        Axis(matrix.attribute.name, tuple(matrix.labels()))
        for matrix in query_matrices(accuracy, table)
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
