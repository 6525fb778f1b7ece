"""The expected counts of all cells of a workload's tables, and which are publishable.

Every cell of a marginal has one standard error, and its expected count is a cell of the margin
summed over the attributes that the table does not have, divided evenly over the values of those
that the margin does not have. So tables with the same attributes of the margin share one sorted
list of counts, and a binary search in it tells how many cells of a table are publishable: exact
for any number of tables and cells. Tables with an attribute whose basis is not single values are
gone through cell by cell: the expected answers are its queries put to the expected marginal, and
each cell has its own standard error.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.measures import COEFFICIENT_OF_VARIATION, Measure
from rpexplore.common.formatting import plural
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.publishable import coefficients_of_variation
from rpexplore.workload.query_matrix import query_matrix
from rpexplore.workload.table_text import titles
from rpexplore.workload.workload import Workload

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
    left_out  indices of those that have too many cells for that
    """

    workload: Workload
    expected: ExpectedCounts
    groups: tuple[_Group, ...]
    unequal: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()

    @classmethod
    def of(cls, expected: ExpectedCounts, workload: Workload) -> "ExpectedCells":
        """Raises `WorkloadError` if the counts do not fit the workload's domain."""
        domain, expected = workload.domain, expected.fitted(workload.domain)
        bits = np.zeros(len(domain) + 1, dtype=np.int64)  # the last for the −1 of the padding
        for axis, name in enumerate(expected.attributes):
            bits[domain.position(name)] = 1 << axis
        unequal, left_out = _gone_through(workload)
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
        return cls(workload, expected, tuple(groups), unequal, left_out)

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
        """Which tables are not looked at, in a sentence; "" if all are."""
        if not self.left_out:
            return ""
        first = titles(self.workload, np.array(self.left_out[:1]))[0]
        such = f", such as {first}," if len(self.left_out) > 1 else f" ({first})"
        are = "is" if len(self.left_out) == 1 else "are"
        return (
            f"{plural(len(self.left_out), 'table')}{such} {are} left out here: the cells are not "
            f"equally accurate, and with more than {MOST_GONE_THROUGH:,} in all too many to go "
            "through one by one."
        )

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

    def median_relative_errors(self, forecast: Forecast) -> np.ndarray:
        """Median relative error of the cells of each table, float64[n_tables]."""
        with np.errstate(divide="ignore"):
            relative = forecast.standard_errors / self.medians()
        for table, ratios in zip(self.unequal, _ratios(self, forecast), strict=True):
            relative[table] = np.median(ratios)
        return relative

    def share_curve(self, forecast: Forecast) -> "ShareCurve":
        """The publishable share of all cells that are looked at, by the wanted coefficient."""
        errors = forecast.standard_errors
        total = float(np.sum(self.workload.cells[self.held])) or 1.0
        parts = []
        for group in self.groups:
            spread_errors = errors[group.tables] * group.spread
            order = np.argsort(spread_errors)
            weights = self.workload.cells[group.tables[order]] / (len(group.counts) * total)
            parts.append((group.counts, spread_errors[order], weights))
        ratios = np.concatenate([np.empty(0), *_ratios(self, forecast)])
        return ShareCurve(tuple(parts), np.sort(ratios[np.isfinite(ratios)]), total)

    def shares(self, forecast: Forecast, coefficient: float) -> np.ndarray:
        """Share of each table's cells that are publishable, float64[n_tables].

        NaN for tables that are left out.
        """
        errors, shares = forecast.standard_errors, np.full(len(self.workload), np.nan)
        for group in self.groups:
            # The smallest count of the margin whose cells are publishable.
            least = errors[group.tables] * group.spread / coefficient
            below = np.searchsorted(group.counts, least)
            shares[group.tables] = 1 - below / len(group.counts)
        for table, ratios in zip(self.unequal, _ratios(self, forecast), strict=True):
            shares[table] = np.searchsorted(ratios, coefficient, side="right") / len(ratios)
        return shares


@dataclass(frozen=True, eq=False)
class ShareCurve:
    """The publishable share of all cells as a function of the wanted coefficient of variation.

    parts   of tables whose cells are equally accurate: counts float64[n] of a margin, ascending;
            float64[m] standard errors of the tables times the number of cells that each count is
            spread over, ascending; float64[m] share of one count's cells in all cells
    ratios  coefficients of variation of the cells of other tables, ascending, where finite
    cells   how many there are of all tables
    certain share of all cells that are publishable at every coefficient that is asked for
    """

    parts: tuple[tuple[np.ndarray, np.ndarray, np.ndarray], ...]
    ratios: np.ndarray
    cells: float
    certain: float = 0.0

    def __call__(self, coefficient: float) -> float:
        share = self.certain + np.searchsorted(self.ratios, coefficient, "right") / self.cells
        for counts, errors, weights in self.parts:
            accurate = len(counts) - np.searchsorted(counts, errors / coefficient)
            share += float(weights @ accurate)
        return float(share)

    def between(self, low: float, high: float) -> "ShareCurve":
        """The same from one coefficient to another: of the tables only those that change there."""
        parts, certain = [], self.certain
        for counts, errors, weights in self.parts:
            at_low, at_high = np.searchsorted(counts, [errors / low, errors / high])
            same, changing = at_low == at_high, at_low != at_high
            certain += float(weights[same] @ (len(counts) - at_low[same]))
            parts.append((counts, errors[changing], weights[changing]))
        return replace(self, parts=tuple(parts), certain=certain)

    @property
    def range(self) -> tuple[float, float]:
        """Coefficients between which the share rises from 0 to the largest there is."""
        ends = [*self.ratios[:1].tolist(), *self.ratios[-1:].tolist()]
        for counts, errors, _ in self.parts:
            positive = counts[counts > 0]
            if len(positive):
                ends += [float(errors[0] / positive[-1]), float(errors[-1] / positive[0])]
        return (min(ends) / 2, max(ends) * 2) if ends else (1.0, 1.0)


def in_measure(forecast: Forecast, measure: Measure, cells: ExpectedCells | None) -> Forecast:
    """The same tables in another measure; cells: theirs, where it needs them."""
    coefficients = None
    if measure == COEFFICIENT_OF_VARIATION:
        assert cells is not None
        coefficients = cells.median_relative_errors(forecast)
    return replace(forecast, measure=measure, coefficients=coefficients)


def _gone_through(workload: Workload) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(tables whose cells differ in accuracy and are gone through, those that are too many).

    Cells differ in tables with an attribute that has another basis than single values somewhere.
    """
    measured = [any(not basis.is_identity for basis in bases) for bases in (*workload.bases, ())]
    tables = np.flatnonzero(np.any(np.array(measured)[workload.members], axis=1))
    work = np.maximum(workload.cells, workload.counted_cells)[tables]
    smallest = np.argsort(work, kind="stable")
    few = np.cumsum(work[smallest]) <= MOST_GONE_THROUGH
    through, left = (np.sort(tables[smallest[which]]).tolist() for which in (few, ~few))
    return tuple(through), tuple(left)


@lru_cache(maxsize=6)
def _ratios(cells: ExpectedCells, forecast: Forecast) -> list[np.ndarray]:
    """Of each of `cells.unequal`, the relative errors of its cells, ascending."""
    return [
        np.sort(
            coefficients_of_variation(forecast.cell_standard_errors(table), cells.answers(table)),
            axis=None,
        )
        for table in cells.unequal
    ]
