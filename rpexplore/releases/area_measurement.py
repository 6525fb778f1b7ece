"""Measurement in areas, and least-squares answers of all areas, a part after another."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np

from rpexplore.common.processes import in_order
from rpexplore.data.areas import AreaShare, AreaShares
from rpexplore.data.source import Counts
from rpexplore.domain.area_tree import AreaRange
from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import ReleaseError
from rpexplore.planning.areas.area_design import AreaDesign
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.tree_passes import LeastSquares
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.reconstruction import (
    answers,
    contribution,
    marginal,
    residuals_within,
)
from rpexplore.planning.part_plan import noise_too_large, or_fewer_steps
from rpexplore.releases.area_parts import AreaParts, Columns
from rpexplore.releases.large_tables import MAX_TABLE_CELLS
from rpexplore.releases.measurement import (
    largest_sums,
    measured_shape,
    residual_answers,
)
from rpexplore.releases.measurement_file import Measured
from rpexplore.releases.noise.discrete_gaussian import discrete_gaussian

# ---- Measurement in areas: exact residuals of every area, with discrete Gaussian noise.


def measure_areas(parts: AreaParts, part: int, counts: Counts) -> Generator[np.ndarray, None, None]:
    """Ξ x + noise of a part, a profile after another: int64[n_measured areas, n_columns] each.

    Independent discrete Gaussian noise of variance parameter σ̄² ∏ n_i², with σ̄² of the residual in
    the area as the plan has it; what neighbours keep has none. What has the same gets its noise
    from one call of the sampler: samples of a call are independent.

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
                assert isinstance(numbers, np.ndarray)  # only tables without areas may be sparse
                own = self._areas[cut] = parts.areas[part].down_to(len(larger.slices))
                of_levels = [numbers[..., rows] for rows in _rows_within(own, larger)]
                tables[table] = np.concatenate(of_levels, axis=-1)
        self._counts = Counts(tables, 0, ranges=counts.ranges)

    def exact(self, residual: int, areas: AreaRange, rows: np.ndarray) -> np.ndarray:
        """Ξ x of a residual in some areas: int64[n_rows, n_cells]."""
        attributes, columns = self._closure.attributes(residual), self._closure.columns_of(residual)
        cut = self._pass.cut(self._part, columns)
        marginals = self._counts.counts((*columns, self._first + cut))
        # Counts have an axis a column, in their order, those of levels by single values.
        own = self._closure.columns[list(attributes)]
        order = [len(columns), *np.argsort(np.argsort(own)).tolist()]
        marginals = marginals.transpose(order)
        for axis, index in enumerate(attributes, start=1):
            if (block := self._closure.blocks.get(index)) is not None:
                marginals = block.sums(marginals, axis)
        marginals = np.ascontiguousarray(marginals)
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

    multiples: of each area; 0 where what neighbours keep is counted, which has no noise
    """
    order = np.argsort(multiples, kind="stable")
    order = order[multiples[order] > 0]
    begins = np.flatnonzero(np.diff(multiples[order], prepend=0))
    for rows in np.split(order, begins[1:]) if len(order) else ():
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
    plan = parts.plan
    if reason := noise_too_large(plan.closure, plan.domain, plan.gamma_squared):
        raise ReleaseError(reason)


def check_countable(plan: AreaPlan, counts: Counts) -> None:
    """Raise `ReleaseError` if Ξ x, or a sum on the way to it, could leave 64-bit integers.

    All of them are at most ∏ m_i · records, as those of one area are (docs/mathematics.md §7.4).
    """
    products = largest_sums(plan.closure)
    largest = int(np.argmax(products))
    if products[largest] * max(counts.n_records, 1) >= 2.0**61:
        raise ReleaseError(
            f"There are too many records to count {_name(plan, largest)} in 64-bit integers; "
            "group its attributes into fewer values"
            f"{or_fewer_steps(plan.closure, plan.domain, largest)}."
        )


def _name(plan: AreaDesign, residual: int) -> str:
    return plan.domain.describe(plan.closure.attributes(residual))


# ---- Area answers: least-squares answers of all areas from what was measured, a part after
# another.


@dataclass(frozen=True, eq=False)
class PartAnswers:
    """Least-squares answers to the residuals in the areas of a part.

    areas    down to the lowest level with an answer
    answers  of each profile float64[n_rows, n_columns], of the first of the areas' rows: what each
             residual adds to its own marginal, or as measured where an attribute has a strategy;
             an area that is neither measured nor known from its parts has none
    """

    parts: AreaParts
    areas: AreaRange
    answers: list[np.ndarray]

    def marginals(self, attributes: AttributeIndices, rows: np.ndarray) -> np.ndarray:
        """Unbiased marginals of areas by their rows, of single values: float64[n_rows, …]."""
        closure = self.parts.plan.closure
        contributions = {
            subset: self.contribution(residual, rows)
            for subset, residual in residuals_within(closure, attributes).items()
        }
        return marginal(attributes, closure.sizes, contributions, closure.strategies, closure.trees)

    def tables(self, table: int, rows: np.ndarray) -> np.ndarray:
        """A table of `plan.workload.tables` in areas by their rows: float64[n_rows, …], unbiased.

        One axis an attribute, of the queries of its basis; sums are in the unit of the amounts.
        """
        values = self.marginals(self.parts.plan.workload.tables.attribute_indices(table), rows)
        return answers(values, self.parts.queries_of(table)) * self.parts.units_of(table)

    def contribution(self, residual: int, rows: np.ndarray | slice) -> np.ndarray:
        """What a residual adds to its own marginal in areas by their rows: float64[n_rows, …]."""
        closure = self.parts.plan.closure
        profile, columns = self.parts.of_residuals[residual]
        own = self.answers[profile][rows, columns]
        own = own.reshape(len(own), *measured_shape(closure, residual))
        if has_strategy(closure, residual):
            own = contribution(own, closure.attributes(residual), closure.strategies)
        return own


@dataclass(frozen=True, eq=False)
class AreaAnswers(ABC):
    """The answers in areas, from what was measured: `numbers` says where that is."""

    parts: AreaParts

    @property
    def home(self) -> Path | None:
        """The release whose files workers of a cluster can read; None for none."""
        return None

    def for_workers(self) -> "AreaAnswers":
        """The same, as it is sent to workers."""
        return self

    def of_part(self, part: int) -> PartAnswers:
        """Those of a part."""
        areas = self.parts.areas[part]
        if part == 0 and self.parts.level:
            found = [each[: len(areas)].copy() for each in self._above]
            for profile, own in enumerate(found):
                self._contribute(profile, own)
            return PartAnswers(self.parts, areas, found)
        found = []
        for profile, solution in enumerate(self._solutions):
            own = self.parts.of_profile(part, profile)
            if own is None:
                found.append(np.empty((0, self.parts.widths[profile])))
                continue
            estimates = self._from_within(part, profile, own)
            if self.parts.level:
                # Rows of the areas from the top on are their numbers.
                estimates[own.rows(0)] = self._above[profile][own.slices[0]]
            solution.downwards(estimates, own)
            self._contribute(profile, estimates)
            found.append(estimates)
        return PartAnswers(self.parts, areas, found)

    @cached_property
    def of_top(self) -> PartAnswers:
        """Those from the top down to the highest areas of the subtrees, together."""
        if not self.parts.level:
            return self.of_part(0)
        answers = [own.copy() for own in self._above]
        for profile, own in enumerate(answers):
            self._contribute(profile, own)
        tree = self.parts.plan.workload.tree
        areas = AreaRange.within(tree, 0, 0, 1, self.parts.level)
        return PartAnswers(self.parts, areas, answers)

    @cached_property
    def _solutions(self) -> list[LeastSquares]:
        """Of each profile."""
        plan = self.parts.plan
        pairs = zip(plan.precisions, plan.exact_levels.tolist(), strict=True)
        return [LeastSquares.of(plan.groups, *pair) for pair in pairs]

    @cached_property
    def _above(self) -> list[np.ndarray]:
        """The answers above the subtrees and of the highest areas in these, of each profile.

        As measured: residuals are contributed to tables when all is known.
        """
        parts, tree = self.parts, self.parts.plan.workload.tree
        found = []
        for profile, solution in enumerate(self._solutions):
            within = int(parts.depths[profile]) >= parts.level
            areas = parts.of_profile(0, profile)
            assert areas is not None
            estimates = self._measured(0, profile, areas)
            if within:
                estimates = [estimates]
                for part in range(1, len(parts.areas)):
                    own = parts.of_profile(part, profile)
                    assert own is not None
                    estimates.append(self._from_within(part, profile, own)[own.rows(0)].copy())
                estimates = np.concatenate(estimates)
                areas = AreaRange.within(tree, 0, 0, 1, parts.level)
            solution.upwards(estimates, areas)
            solution.downwards(estimates, areas)
            found.append(estimates)
        return found

    def _from_within(self, part: int, profile: int, areas: AreaRange) -> np.ndarray:
        """Estimates of a profile from what a part has measured: float64[n_rows, n_columns]."""
        estimates = self._measured(part, profile, areas)
        self._solutions[profile].upwards(estimates, areas)
        return estimates

    def _measured(self, part: int, profile: int, areas: AreaRange) -> np.ndarray:
        """What was measured of a profile, 0 where nothing was: float64[n_rows, n_columns]."""
        rows, width = self.parts.measured_rows(profile, areas), int(self.parts.widths[profile])
        numbers = self.numbers(part, profile)
        if len(rows) == len(areas):
            return numbers.reshape(-1, width).astype(float)
        found = np.zeros((len(areas), width))
        found[rows] = numbers.reshape(-1, width)
        return found

    @abstractmethod
    def numbers(self, part: int, profile: int) -> np.ndarray:
        """What was measured in a part for a profile, in the order of the file: int64[·]."""

    def _contribute(self, profile: int, estimates: np.ndarray) -> None:
        """Make estimates, float64[n_rows, n_columns], what each residual adds to its own marginal.

        Where no attribute has a strategy.
        """
        closure = self.parts.plan.closure
        for columns in self.parts.columns[profile]:
            for residual in columns.residuals:
                if has_strategy(closure, residual):
                    continue  # decoded it would have more columns, and is when it is needed
                within, shape = (
                    self.parts.of_residuals[residual][1],
                    measured_shape(closure, residual),
                )
                own = estimates[:, within].reshape(len(estimates), *shape)
                own = contribution(own, closure.attributes(residual), closure.strategies)
                estimates[:, within] = own.reshape(len(estimates), within.stop - within.start)


@dataclass(frozen=True, eq=False)
class MeasuredAnswers(AreaAnswers):
    """The answers of a release that is not finished yet."""

    measured: Measured

    def numbers(self, part: int, profile: int) -> np.ndarray:
        return self.measured.read(*self.parts.bounds(part, profile))


def has_strategy(closure: Closure, residual: int) -> bool:
    """Whether some attribute of a residual is measured by a strategy."""
    return any(attribute in closure.strategies for attribute in closure.attributes(residual))


# ---- Measurement where the records lie: each part of areas is a task of a cluster.
#
# The run is booked before. Noise is drawn by the worker that has the counts of a part, from the
# entropy of its operating system, and only what is measured leaves it. Where a worker is lost,
# another one counts the part again and draws its noise anew: one of them is taken, and the other
# has been read by nobody (docs/stopped-runs.md).


@dataclass(frozen=True, eq=False)
class PartWork:
    """Measures parts of a plan by their exact counts: a `Work`, as workers have it.

    first  the part that is the first share
    """

    plan: AreaDesign
    first: int

    def __call__(self, share: int, counts: Counts) -> Iterator[np.ndarray]:
        parts = AreaParts(self.plan, alone=True)
        return measure_areas(parts, self.first + share, counts)


def tasks_from(parts: AreaParts, first: int) -> tuple[AreaShares, PartWork]:
    """What is worked on in tasks from a part on, a subtree, and how. parts: each counted alone."""
    shares = [AreaShare(each.areas, each.cuts, each.tables) for each in parts.passes[first:]]
    plan = parts.plan.bare
    return AreaShares(plan.workload.tree, tuple(shares)), PartWork(plan, first)
