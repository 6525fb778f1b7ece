"""Measurement: a residual's exact counts with discrete Gaussian noise (docs/mathematics.md §7)."""

from collections.abc import Generator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.numbers import distinct_rows, matrix_along
from rpexplore.common.processes import in_order
from rpexplore.data.source import Counts
from rpexplore.domain.atoms import Atoms
from rpexplore.domain.domain import Domain
from rpexplore.errors import ReleaseError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.part_plan import noise_too_large, or_fewer_steps
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases import large_tables
from rpexplore.releases.noise.discrete_gaussian import discrete_gaussian
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:
    from rpexplore.data.areas import AreaCuts

PART_CELLS = 200_000_000
"""Cells that are counted at a time: 4 bytes each."""

_BATCH = 1 << 17  # cells measured together, which stay in the cache
_NOISE_AT_ONCE = 1 << 20
LARGE = 1 << 22
"""Cells of a residual, or a table, that is worked on while no other large one is."""


@dataclass(frozen=True)
class Part:
    """What is counted and measured at a time: items that follow each other in the plan's order.

    tables      the sets of attribute indices whose exact counts are needed
    items       the residuals; of a plan of queries, the rows of its strategy
    n_measured  how many numbers are measured
    areas       by which areas the tables are counted, which stand in them behind the attributes;
                None for none
    atoms       by which groups of cells, which stand in tables as one attribute behind the others
    is_needed_again
                whether its counts are looked at once more when it is measured

    Parts that follow each other with the same tables are counted once.
    """

    tables: Sequence[Sequence[int]]
    items: range
    n_measured: int
    areas: "AreaCuts | None" = None
    atoms: Atoms | None = None
    is_needed_again: bool = False


def parts_of(plan: TablePlan) -> list[Part]:
    """All residuals, in parts of at most `PART_CELLS` cells, or of one residual that has more.

    Every part counts all attributes. So every column is seen before a run is booked, and parts are
    known to be of the same records; and of a person who has more records than are counted, the same
    ones are in every part, as ties are broken by all that is counted.
    """
    closure, workload = plan.closure, plan.workload
    every = [(index,) for index in plan.attribute_indices]
    measured, parts = measured_cells(closure), []
    for items in ranges_of(closure.residual_cells, PART_CELLS):
        tables = [*every, *(closure.columns_of(residual) for residual in items)]
        if len(items) == len(closure):
            columns = workload.domain.columns
            tables = [
                tuple(sorted(columns[list(workload.attribute_indices(position))].tolist()))
                for position in range(len(workload))
            ]
        parts.append(Part(tables, items, int(measured[items.start : items.stop].sum())))
    return parts


def ranges_of(sizes: np.ndarray, most: int) -> list[range]:
    """Items that follow each other, as many as have this size together; a larger one alone."""
    ends, starts = np.cumsum(sizes), [0]
    while (start := starts[-1]) < len(sizes):
        stop = np.searchsorted(ends, ends[start] - sizes[start] + most, side="right")
        starts.append(max(int(stop), start + 1))
    return [range(*start_and_stop) for start_and_stop in pairwise(starts)]


def measure_part(plan: TablePlan, part: Part, counts: Counts) -> Generator[np.ndarray, None, None]:
    """The measurements of a part in the plan's order, flat, some of them together: int64[·].

    Worked out on all processors, with a few million numbers in memory at a time, or what one large
    residual takes; one that would take too much is measured slice by slice.
    """
    sizes = plan.closure.residual_cells[part.items.start : part.items.stop]
    start = part.items.start
    for residual in (start + np.flatnonzero(sizes > large_tables.MAX_TABLE_CELLS)).tolist():
        yield from _measure_small(plan, range(start, residual), counts)
        yield from _measure_slices(plan, residual, counts)
        start = residual + 1
    yield from _measure_small(plan, range(start, part.items.stop), counts)


def _measure_small(
    plan: TablePlan, items: range, counts: Counts
) -> Generator[np.ndarray, None, None]:
    """The measurements of residuals that follow each other, some of them together."""
    # Residuals one after another, as many as have about `_BATCH` cells together.
    cells = measured_cells(plan.closure, np.arange(items.start, items.stop))
    starts = np.flatnonzero(np.diff(np.cumsum(cells) // _BATCH, prepend=-1)).tolist()
    ends = pairwise([*(items[start] for start in starts), items.stop])
    large = Lock()

    def measured(residuals: np.ndarray) -> np.ndarray:
        with large if np.any(cells[residuals - items.start] > LARGE) else nullcontext():
            return measure_together(plan, residuals, counts)

    return in_order(measured, (np.arange(*begin_and_end) for begin_and_end in ends))


def _measure_slices(
    plan: TablePlan, residual: int, counts: Counts
) -> Generator[np.ndarray, None, None]:
    """The measurement of a residual slice by slice along its first attribute, flat.

    As in `measure_together`: Ξ x of all slices is that of the whole, and samples of several calls
    of the sampler are as independent as those of one.
    """
    closure = plan.closure
    attributes = closure.attributes(residual)
    scale = closure.integer_scale(residual)
    gamma_squared = plan.sigma_squared.fraction(residual) * scale**2
    along_others = partial(residual_answers, attribute_indices=attributes[1:], closure=closure)
    for exact in large_tables.exact_slices(counts, attributes, along_others):
        numbers = exact.reshape(-1)
        _add_noise(numbers, gamma_squared)
        yield numbers


def measure_together(plan: TablePlan, residuals: np.ndarray, counts: Counts) -> np.ndarray:
    """Ξ x + noise of some residuals, int64[m], one after another, row-major: int64[·].

    Independent discrete Gaussian noise of variance parameter σ² ∏ n_i² ∏ 4^b. Each residual costs
    ρ = p_A / (2σ²), the same as continuous noise of the plan would.

    Residuals of one σ² and one form get their noise from one call of the sampler, the first of them
    its first samples, and so on: samples of a call are independent.
    """
    closure, sigma_squared = plan.closure, plan.sigma_squared
    cells = measured_cells(closure, residuals)
    starts = np.cumsum(cells) - cells
    together = np.empty(int(cells.sum()) if len(residuals) > 1 else 0, dtype=np.int64)
    digits, exponents = sigma_squared.digits[residuals], sigma_squared.exponents[residuals]
    members = closure.members[residuals]
    orders = np.count_nonzero(members >= 0, axis=1)
    forms = closure.attribute_forms[members].T
    for alike in _equal_rows([orders, closure.residual_forms[residuals], *forms]):
        attributes = members[alike, : orders[alike[0]]].tolist()
        # Without a name for the counts: there may be no room for both.
        exact = residual_answers(_marginals(counts, attributes, closure), attributes[0], closure)
        noisy = exact.reshape(len(alike), -1)
        scale = closure.integer_scale(int(residuals[alike[0]]))
        for same in _equal_rows([digits[alike], exponents[alike]]):
            of_one = sigma_squared.fraction(int(residuals[alike[same[0]]]))
            if len(same) == 1:
                _add_noise(noisy[same[0]], of_one * scale**2)
                continue
            noise = discrete_gaussian(len(same) * noisy.shape[1], of_one * scale**2)
            noisy[same if len(same) < len(alike) else slice(None)] += noise.reshape(len(same), -1)
        if len(residuals) == 1:
            return noisy.reshape(-1)
        for start, row in zip(starts[alike].tolist(), noisy, strict=True):
            together[start : start + len(row)] = row
    return together


def _marginals(
    counts: Counts, of_residuals: Sequence[Sequence[int]], closure: Closure
) -> np.ndarray:
    """Exact marginals of one shape: int64[m, …], an array of the caller's own."""
    first = _marginal(counts, of_residuals[0], closure)[np.newaxis]
    if len(of_residuals) == 1:
        return first
    marginals = np.empty((len(of_residuals), *first.shape[1:]), dtype=np.int64)
    for row, indices in enumerate(of_residuals):
        marginals[row] = _marginal(counts, indices, closure)
    return marginals


def _marginal(counts: Counts, attributes: Sequence[int], closure: Closure) -> np.ndarray:
    """The exact marginal of a residual: int64, one axis an attribute, or a block of its groups."""
    columns = [int(closure.columns[index]) for index in attributes]
    exact = counts.counts(sorted(columns))
    if not closure.blocks:
        return exact
    exact = exact.transpose(np.argsort(np.argsort(columns)).tolist())
    for axis, index in enumerate(attributes):
        if (block := closure.blocks.get(index)) is not None:
            exact = block.sums(exact, axis)
    return exact


def _add_noise(exact: np.ndarray, gamma_squared: Fraction) -> None:
    """Add noise to numbers, int64[n], a piece after another: the noise of all takes no memory."""
    for start in range(0, len(exact), _NOISE_AT_ONCE):
        piece = exact[start : start + _NOISE_AT_ONCE]
        piece += discrete_gaussian(len(piece), gamma_squared)


def measure_residual(plan: TablePlan, residual: int, counts: Counts) -> np.ndarray:
    """`measure_together` of one residual: int64, one axis an attribute of the residual."""
    measured = measure_together(plan, np.array([residual]), counts)
    return measured.reshape(measured_shape(plan.closure, residual))


def exact_residual(plan: TablePlan, residual: int, counts: Counts) -> np.ndarray:
    """Ξ x for one residual: int64, one axis an attribute of the residual. As private as counts."""
    indices = plan.closure.attributes(residual)
    return residual_answers(_marginal(counts, indices, plan.closure), indices, plan.closure)


def residual_answers(
    answers: np.ndarray, attribute_indices: Sequence[int], closure: Closure
) -> np.ndarray:
    """Ξ applied to the last axes of counts, one an attribute; there may be others before: int64.

    Works in the array that it is given, where it can.

    Ξ = ⊗ (n_i I − 11ᵀ) on the exact marginal, with the integer matrix 2^b R_i for attributes that
    have a strategy (their axis then has n_i − 1 entries).
    """
    for axis, attribute in enumerate(attribute_indices, start=-len(attribute_indices)):
        strategy = closure.strategies.get(attribute)
        if strategy is None:
            sums = answers.sum(axis=axis, keepdims=True)
            answers *= answers.shape[axis]
            answers -= sums
        else:
            # In int64, partial sums as well: `check_countable` has made sure that all of them fit.
            own = strategy.within(attribute_indices)
            answers = matrix_along(own.integers, answers, axis)
    return answers


def _equal_rows(columns: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The indices of rows that are the same in all columns, ascending in each group."""
    _, groups = distinct_rows(columns)
    return np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])


def measured_shape(closure: Closure, residual: int) -> tuple[int, ...]:
    """The shape of a residual's measurement: n_i for each attribute, n_i − 1 with a strategy."""
    attribute_indices = closure.attributes(residual)
    return tuple(int(closure.sizes[i]) - (i in closure.strategies) for i in attribute_indices)


def measured_cells(closure: Closure, residuals: np.ndarray | slice = slice(None)) -> np.ndarray:
    """How many numbers the measurement of each residual has, of all or these: int64[·]."""
    sizes = closure.sizes.astype(np.int64)
    sizes[list(closure.strategies)] -= 1
    return np.prod(np.append(sizes, 1)[closure.members[residuals]], axis=1)


def check_measurable(plan: TablePlan) -> None:
    """Raise `ReleaseError` if a table or a noise scale is too large to be measured."""
    workload, closure = plan.workload, plan.closure
    others = large_tables.measured_otherwise(workload) | set(closure.strategies)
    for table in np.flatnonzero(large_tables.are_large(workload)).tolist():
        reason = large_tables.why_not_sliced(workload, table, others)
        if not reason and (plan.has_pilot or closure.trees):
            reason = (
                f"a table of a plan with a pilot, or with attributes at several levels, can have "
                f"{large_tables.MAX_TABLE_CELLS:,}"
            )
        if reason:
            cells = max(workload.cells[table], workload.counted_cells[table])
            raise ReleaseError(
                f"The table {workload.describe(table)} has {cells:,.0f} cells, and {reason}; plan "
                "without it, or group its attributes into fewer values."
            )
    gamma_squared = plan.sigma_squared.floats * closure.squared_scales
    if reason := noise_too_large(closure, workload.domain, gamma_squared):
        raise ReleaseError(reason)


def check_ranges(workload: "Workload", closure: Closure, counts: Counts) -> None:
    """Raise `ReleaseError` unless counts with amounts are multiplied by their range.

    A source of one's own may not know of amounts; its sums would be too small by that much.
    """
    for index in workload.amounts:
        if counts.ranges.get(index) != closure.strategies[index].range_in_steps:
            raise ReleaseError(no_amounts_text(workload.domain.names[index]))
    check_product_units(workload.domain, workload.products, counts)


def check_product_units(
    domain: Domain, products: Sequence[tuple[int, int]], counts: Counts
) -> None:
    """Raise `ReleaseError` unless counts round products of amounts and weights as plans do."""
    for pair in products:
        if counts.ranges.product_unit(tuple(sorted(pair))) != domain.product_unit(pair):
            raise ReleaseError(no_amounts_text(domain.names[pair[0]]))


def no_amounts_text(name: str) -> str:
    """What to say of a source that does not count the amounts of an attribute."""
    return (
        f"The source of the records does not count the amounts of {name!r}; take a file, a frame "
        "or a database instead, or plan without them."
    )


def check_countable(plan: TablePlan, counts: Counts) -> None:
    """Raise `ReleaseError` if Ξ x, or a sum on the way to it, could leave 64-bit integers.

    All of them are at most ∏ m_i · records, with m_i the largest entry of an attribute's integer
    matrix in absolute value, and n_i where there is none (docs/mathematics.md §7.4). Below 2^61 all
    fit, with noise (below 2^61) as well, however floating point has rounded the product.
    """
    sizes = largest_sums(plan.closure)
    largest = int(np.argmax(sizes))
    if sizes[largest] * max(counts.n_records, 1) >= 2.0**61:
        raise ReleaseError(
            f"There are too many records to count {_name(plan, largest)} in 64-bit integers; "
            "group its attributes into fewer values"
            f"{or_fewer_steps(plan.closure, plan.workload.domain, largest)}."
        )


def largest_sums(closure: Closure) -> np.ndarray:
    """∏ m_i of each residual, over its unit of products (docs/mathematics.md §7.4): float64[·]."""
    entries = closure.sizes.astype(float)
    for attribute, strategy in closure.strategies.items():
        largest = max(
            int(np.max(np.abs(own.integers))) for own in (strategy, *strategy.of_residuals.values())
        )
        entries[attribute] = float(largest) * strategy.steps_in(())
    return np.prod(np.append(entries, 1.0)[closure.members], axis=1) / closure.product_units


def _name(plan: TablePlan, residual: int) -> str:
    return plan.workload.domain.describe(plan.closure.columns_of(residual))
