"""Measurement in areas: exact residuals of every area, with discrete Gaussian noise."""

from collections.abc import Generator
from contextlib import closing
from fractions import Fraction

import numpy as np

from rpexplore.common.concurrency import in_order
from rpexplore.data.counts import Counts
from rpexplore.domain.area_range import AreaRange
from rpexplore.errors import ReleaseError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.releases.areas.area_parts import AreaParts, Columns
from rpexplore.releases.measurement import MAX_TABLE_CELLS, largest_entries, residual_answers
from rpexplore.releases.noise.discrete_gaussian import LARGEST_GAMMA, discrete_gaussian


def measure_areas(parts: AreaParts, part: int, counts: Counts) -> Generator[np.ndarray, None, None]:
    """Ξ x + noise of a part, a profile after another: int64[n_measured areas, n_columns] each.

    Independent discrete Gaussian noise of variance parameter σ̄² ∏ n_i², with σ̄² of the residual in
    the area as the plan has it. What has the same gets its noise from one call of the sampler:
    samples of a call are independent.

    counts: of the pass that the part is in
    """
    within = _PartCounts(parts, part, counts)
    for profile in range(len(parts.widths)):
        areas = parts.of_profile(part, profile)
        if areas is not None and len(rows := parts.measured_rows(profile, areas)):
            yield _measured(within, profile, areas, rows).reshape(-1)


def _measured(
    within: "_PartCounts", profile: int, areas: AreaRange, rows: np.ndarray
) -> np.ndarray:
    """Ξ x + noise of a profile in some areas, by their rows: int64[n_rows, n_columns]."""
    parts = within.parts
    multiples = parts.plan.multiples[profile, parts.plan.groups.of_area[areas.areas[rows]]]
    noisy = np.empty((len(rows), parts.widths[profile]), dtype=np.int64)

    def measure(columns: Columns) -> None:
        for residual in columns.residuals:
            noisy[:, parts.of_residuals[residual][1]] = within.exact(residual, areas, rows)
        _add_noise(noisy, multiples, columns, parts.plan.unit)

    with closing(in_order(measure, parts.columns[profile])) as done:
        for _ in done:
            pass
    return noisy


class _PartCounts:
    """Exact counts in the areas of a part. Private; never written anywhere."""

    def __init__(self, parts: AreaParts, part: int, counts: Counts) -> None:
        self.parts, self._part = parts, part
        self._closure, self._first = parts.plan.closure, len(parts.plan.domain)
        self._pass = next(each for each in parts.passes if part in each.parts)
        self._areas: dict[int, AreaRange] = {}
        tables = {}
        for table, numbers in counts.tables.items():
            cut = table[-1] - self._first
            if cut in self._pass.cuts_of(part):
                larger = self._pass.cuts.cuts[cut].areas
                own = self._areas[cut] = parts.areas[part].down_to(len(larger.slices))
                of_levels = [numbers[..., rows] for rows in _rows_within(own, larger)]
                tables[table] = np.concatenate(of_levels, axis=-1)
        self._counts = Counts(tables, 0)

    def exact(self, residual: int, areas: AreaRange, rows: np.ndarray) -> np.ndarray:
        """Ξ x of a residual in some areas: int64[n_rows, n_cells]."""
        attributes = self._closure.attributes(residual)
        cut = self._pass.cut(self._part, attributes)
        marginals = self._counts.counts((*attributes, self._first + cut))
        marginals = np.ascontiguousarray(np.moveaxis(marginals, -1, 0))
        self._areas[cut].add_parts(marginals)
        exact = residual_answers(marginals[: len(areas)][rows], attributes, self._closure)
        return exact.reshape(len(rows), -1)


def _rows_within(areas: AreaRange, larger: AreaRange) -> list[slice]:
    """The rows of a range's levels in a larger range of the same levels."""
    return [
        slice(start + own.start - all_of_level.start, start + own.stop - all_of_level.start)
        for own, all_of_level, start in zip(
            areas.slices, larger.slices, larger.starts[:-1].tolist(), strict=False
        )
    ]


def _add_noise(noisy: np.ndarray, multiples: np.ndarray, columns: Columns, unit: Fraction) -> None:
    """Add noise to some columns of exact numbers, int64[n_areas, n_columns].

    multiples: of each area, above 0
    """
    order = np.argsort(multiples, kind="stable")
    begins = np.flatnonzero(np.diff(multiples[order], prepend=0))
    for rows in np.split(order, begins[1:]):
        multiple = int(multiples[rows[0]])
        gamma_squared = columns.scale_squared / (unit * columns.factor * multiple)
        n_columns = columns.within.stop - columns.within.start
        noise = discrete_gaussian(len(rows) * n_columns, gamma_squared)
        noisy[rows, columns.within] += noise.reshape(len(rows), n_columns)


def check_measurable(parts: AreaParts) -> None:
    """Raise `ReleaseError` if a table or a noise scale is too large to be measured."""
    tables = parts.plan.workload.tables
    largest = int(np.argmax(tables.cells))
    if tables.cells[largest] > MAX_TABLE_CELLS:
        raise ReleaseError(
            f"The table {tables.describe(largest)} has {tables.cells[largest]:,.0f} cells in an "
            f"area, and a table of a release can have {MAX_TABLE_CELLS:,}; plan without it, or "
            "group its attributes into fewer values."
        )
    for profile, columns in enumerate(parts.columns):
        multiples = parts.plan.multiples[profile]
        multiple = int(np.min(multiples[multiples > 0]))
        for each in columns:
            gamma_squared = each.scale_squared / (parts.plan.unit * each.factor * multiple)
            if gamma_squared >= LARGEST_GAMMA**2:
                raise ReleaseError(
                    "The noise that the budget needs on "
                    f"{_name(parts.plan, each.residuals[0])} in some areas is too large for "
                    "64-bit integers; use a larger budget or smaller tables."
                )


def check_countable(plan: AreaPlan, counts: Counts) -> None:
    """Raise `ReleaseError` if Ξ x, or a sum on the way to it, could leave 64-bit integers.

    All of them are at most ∏ m_i · records, as those of one area are (docs/mathematics.md §7.4).
    """
    entries = np.append(largest_entries(plan.closure), 1.0)
    products = np.prod(entries[plan.closure.members], axis=1)
    largest = int(np.argmax(products))
    if products[largest] * max(counts.n_records, 1) >= 2.0**61:
        raise ReleaseError(
            f"There are too many records to count {_name(plan, largest)} in 64-bit integers; "
            "group its attributes into fewer values."
        )


def _name(plan: AreaPlan, residual: int) -> str:
    return plan.domain.describe(plan.closure.attributes(residual))
