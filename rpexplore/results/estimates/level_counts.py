"""Counts of tables with an attribute at several levels: nonnegative, whole, and consistent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import prod, sqrt
from typing import ClassVar

import numpy as np

from rpexplore.common.numbers import matrix_along, read_only
from rpexplore.common.processes import Progress, no_progress, one_thread
from rpexplore.domain.count_rows import describe_cell
from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.errors import ReleaseError
from rpexplore.estimation.nonnegative import check_gap
from rpexplore.estimation.table_map import largest
from rpexplore.estimation.whole_numbers import parts_of
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.results.estimates.area_cells import AreaCells, check_cells, possible_cells
from rpexplore.results.estimates.family_tables import nearest_parts
from rpexplore.results.estimates.level_axes import LevelAxes
from rpexplore.results.estimates.nearer_tables import with_nearer_tables
from rpexplore.results.estimates.whole_areas import whole_top
from rpexplore.results.known_release import KnownTable
from rpexplore.results.unbiased import Estimates

# All tables are margins of one table of cells, in which an attribute stands by the groups that all
# its levels together tell apart. So they agree, also one level with another, and in whole numbers.
# Of everything that such cells hold only residuals of tables were measured: where those leave
# cells open, whole cells depend on each other no more than the tables say.


_MOST_ROUNDS = 20_000
_ROUNDS_BETWEEN_CHECKS = 20
_POWER_ROUNDS = 100
_NO_DISTANCE = 1e-12  # squared, in standard errors
_NO_RECORDS = 1e-3  # by which tables may be off where these are small
_ABOVE_LENGTH = 1.05  # of the largest curvature that was found, which is a little too small


@dataclass(frozen=True, eq=False)
class CountsAtLevels:
    """Cells that are nowhere negative, and as near to what was measured as such cells can be.

    Near is measured in standard errors, Σ_S |R_S (x − y)|²/σ²_S over residuals S; the total stays.

    cells   of which all tables are margins: one "area", with one level
    values  float64[n_cells]
    tables  the released tables of counts, without attributes of one value, each once
    gap     which share of the squared distance to what was measured may be avoidable
    rounds  how long the search took
    base    the number whose multiples are counted in `whole`
    kept    the counts that cells keep the sums of
    """

    domain: Domain
    cells: AreaCells
    values: np.ndarray
    tables: Sequence[AttributeIndices]
    gap: float
    rounds: int
    base: int = 1
    kept: "KeptSums | None" = None
    disagreeing: ClassVar[frozenset[AttributeIndices]] = frozenset()  # as of `ProcessedCounts`

    def of(self, attributes: AttributeIndices) -> np.ndarray:
        """A table of counts, one axis an attribute."""
        return self._margin(self.values, attributes)

    def whole(self, attributes: AttributeIndices) -> np.ndarray:
        """A table over `base` in whole numbers; all such tables agree."""
        return self._margin(self.whole_cells, attributes).astype(float)

    def _margin(self, values: np.ndarray, attributes: AttributeIndices) -> np.ndarray:
        margin = self.cells.margin_on(values[None], 0, attributes)
        return margin.reshape(self._shape(attributes))

    def _shape(self, attributes: AttributeIndices) -> list[int]:
        return [int(self.domain.sizes[index]) for index in attributes]

    @cached_property
    def whole_cells(self) -> np.ndarray:
        """The cells over `base`, int64[n_cells] ≥ 0, that all whole tables are margins of."""
        if self.kept is not None:
            cells, whole = self.values, self.kept.whole(self.values)
        else:
            cells = self.cells.with_least_structure(self.values / self.base)
            total = np.array([round(float(self.values.sum()) / self.base)])
            whole = whole_top(self.cells, cells, total, self.cells.stages[0])[0]
        places = np.flatnonzero((cells > 0) | (whole > 0))
        within = np.stack(
            [
                np.ravel_multi_index(self.cells.values_of(0, places, table), self._shape(table))
                for table in self.tables
                if table
            ]
            or [places]
        )
        wanted = [self.of(table).ravel() / self.base for table in self.tables if table]
        found = np.zeros_like(whole)
        kept = None if self.kept is None else self.kept.sum_of_cells[places]
        found[places] = with_nearer_tables(whole[places], within, wanted or [cells], kept)
        return found


@dataclass(frozen=True, eq=False)
class KeptSums:
    """Sums that cells must have: the counts of one table, of which each cell is in one.

    sum_of_cells  int64[n_cells]: which sum each cell is part of
    sums          float64[n_sums] ≥ 0
    """

    sum_of_cells: np.ndarray
    sums: np.ndarray

    def nearest(self, values: np.ndarray, places: np.ndarray) -> np.ndarray:
        """The nearest cells ≥ 0 with these sums, 0 but at some places: float64[n_cells]."""
        order = places[np.argsort(self.sum_of_cells[places], kind="stable")]
        groups, first = np.unique(self.sum_of_cells[order], return_index=True)
        found = np.zeros_like(values)
        found[order] = nearest_parts(values[order], first, self.sums[groups])
        return found

    def least_product(self, gradient: np.ndarray, places: np.ndarray) -> float:
        """The least gᵀx of all cells x ≥ 0 with these sums, 0 but at some places."""
        least = np.full(len(self.sums), np.inf)
        np.minimum.at(least, self.sum_of_cells[places], gradient[places])
        positive = self.sums > 0
        return float(self.sums[positive] @ least[positive])

    def whole(self, values: np.ndarray) -> np.ndarray:
        """The values in whole numbers that have these sums: int64[n_cells]."""
        order = np.argsort(self.sum_of_cells, kind="stable")
        groups, first = np.unique(self.sum_of_cells[order], return_index=True)
        found = np.zeros(len(values), dtype=np.int64)
        for group, own in zip(groups.tolist(), np.split(order, first[1:]), strict=True):
            found[own] = parts_of(np.array(self.sums[group]), values[own])
        return found


def _kept_sums(estimates: Estimates, given: Sequence[KnownTable], cells: AreaCells) -> KeptSums:
    """The publicly known counts that cells keep.

    Raises `ReleaseError` for totals of several tables of which none contains the others, of a table
    that cells do not tell, and for records where no record can be.
    """
    tables = {table.attributes: table for table in given}
    first, *others = largest(tables)
    if others:
        raise ReleaseError(
            "Nonnegative tables with an attribute at several levels meet the known totals of one "
            f"table, and there are those of {1 + len(others):,}, of which none has the others "
            "within; give one of them, or take the unbiased tables."
        )
    table = tables[first]
    domain = estimates.domain
    several = tuple(index for index in table.attributes if domain.sizes[index] > 1)
    told = set(chain.from_iterable((*estimates.tables, *estimates.known_marginals)))
    if not set(several) <= told:
        raise ReleaseError(
            f"The known totals are by {domain.describe(table.attributes)}, and no table has all of "
            "these; nonnegative tables need totals by the levels that tables have."
        )
    counts = table.summed(several)
    places = np.arange(prod(cells.shape(0)))
    # Where a branch of an uneven tree ends, cells stand for no group; no record is in these.
    values = [np.maximum(each, 0) for each in cells.values_of(0, places, several)]
    shape = [int(domain.sizes[index]) for index in several]
    sum_of_cells = np.ravel_multi_index(values, shape) if several else np.zeros_like(places)
    sums = counts.ravel()
    can_have = np.zeros(len(sums), dtype=bool)
    can_have[sum_of_cells[np.flatnonzero(cells.possible)]] = True
    wrong = np.flatnonzero(~can_have & (sums > 0))
    if len(wrong):
        cell = np.unravel_index(wrong[0], counts.shape)
        raise ReleaseError(
            f"The known total of {describe_cell(domain, several, cell)} is {sums[wrong[0]]:,.0f}, "
            "and the codebook leaves no record possible there; correct one of them."
        )
    return KeptSums(sum_of_cells, sums)


def cells_of_tables(estimates: Estimates) -> AreaCells:
    """The cells of which all tables are margins, as one area's.

    Raises `ReleaseError` if these are too many.
    """
    sizes = estimates.domain.sizes.tolist()
    sizes += [estimates.blocks[number].size for tree in estimates.trees for number in tree.numbers]
    levels_of: dict[int, LevelAxes] = {}
    for tree in estimates.trees:
        axes = LevelAxes(tree, len(sizes), estimates.strategies)
        sizes += axes.sizes
        levels_of |= dict.fromkeys(tree.of_tables, axes)
    needed: set[int] = set()
    for table in estimates.tables:
        for index in table:
            if index in levels_of:
                levels = levels_of[index]
                needed |= set(levels.numbers[: levels.depth_of(index)])
            elif sizes[index] > 1:
                needed.add(index)
    attributes = tuple(sorted(needed))
    check_cells([sizes[index] for index in attributes])
    known, levels = frozenset(estimates.contributions), tuple(dict.fromkeys(levels_of.values()))
    cells = AreaCells(tuple(sizes), (attributes,), (known,), np.empty(0), levels=levels)
    return replace(cells, possible=possible_cells(estimates.domain, estimates.blocks, cells))


@one_thread()
def counts_at_levels(
    estimates: Estimates,
    *,
    gap: float,
    base: int = 1,
    given: Sequence[KnownTable] = (),
    on_progress: Progress = no_progress,
) -> CountsAtLevels:
    """Nonnegative counts of tables with attributes at several levels.

    given  publicly known totals, which the estimates meet and the counts keep

    Raises `ReleaseError` if there are too many cells, or if the gap is not between 0 and 1, or out
    of reach.
    """
    check_gap(gap)
    cells, strategies = cells_of_tables(estimates), estimates.strategies
    contributions, precisions = {}, {}
    for subset in cells.residuals_of(cells.attributes[0]):
        if subset in estimates.contributions:
            contributions[subset] = estimates.contributions[subset][None]
            if subset and subset not in estimates.known:  # the total is kept
                precisions[subset] = 1 / float(estimates.variances[subset])
        else:
            contributions[subset] = np.zeros((1, *(cells.sizes[index] for index in subset)))
    answers = cells.from_contributions(0, contributions, strategies)[0]
    distance = _Distance(cells, strategies, precisions)
    kept = _kept_sums(estimates, given, cells) if given else None
    total = np.array([max(float(answers.sum()), 0.0)])
    sums = kept or KeptSums(np.zeros(answers.size, np.int64), total)
    # Cells that tables leave open begin with no dependence beyond these: with as little as answers
    # have they would be negative, and tables far from what was measured where the noise is small.
    first = cells.with_least_structure(answers)
    sizes = estimates.domain.sizes
    tables = {tuple(index for index in table if sizes[index] > 1) for table in estimates.tables}

    def records_off(values: np.ndarray) -> float:
        margins = [cells.margin_on((values - answers)[None], 0, table) for table in tables]
        return max(float(np.max(np.abs(margin))) for margin in margins)

    values, reached, rounds = _nearest(
        answers, first, cells.possible, distance, sums, gap, records_off, on_progress
    )
    return CountsAtLevels(
        estimates.domain, cells, read_only(values), sorted(tables), reached, rounds, base, kept
    )


# ---- The nearest cells ≥ 0 with a total, by accelerated projected gradients (FISTA, Beck and
# Teboulle 2009), begun anew where they turn uphill (O'Donoghue and Candès 2015). With gradient g at
# cells x no cells of the same sums N_k have less of f than f(x) − (gᵀx − Σ N_k min g), the minimum
# over the cells of each sum; the gap is from that.


class _Distance:
    """Half the squared distance of cells, Σ_S |R_S x|²/(2 σ²_S), by its gradient.

    precisions: 1/σ² of each residual with a measurement, but for the total, which is kept
    """

    def __init__(
        self,
        cells: AreaCells,
        strategies: Mapping[int, Strategy],
        precisions: Mapping[AttributeIndices, float],
    ) -> None:
        axes = cells.attributes[0]
        self._shape: list[int] = []
        # Of each axis what is measured along it: (residual's attribute or block, rows).
        self._directions: list[Sequence[tuple[int | None, np.ndarray]]] = []
        for index in cells.plain(axes):
            n, strategy = cells.sizes[index], strategies.get(index)
            rows = np.eye(n) - 1 / n if strategy is None else strategy.matrix
            self._directions.append([(None, np.ones((1, n))), (index, rows)])
            self._shape.append(n)
        for levels, depth in cells.levels_in(axes):
            self._directions.append([(one, rows) for one, rows, _ in levels.directions(depth)])
            self._shape.append(levels.n_cells(depth))
        self._precisions = {frozenset(subset): each for subset, each in precisions.items()}
        self._begun: list[set[frozenset[int]]] = [set(self._precisions)]
        for directions in reversed(self._directions):
            last = {one for one, _ in directions}
            self._begun.insert(0, {subset - last for subset in self._begun[0]})

    def gradient(self, cells: np.ndarray) -> np.ndarray:
        """Σ_S R_SᵀR_S x/σ²_S: float64[n_cells]."""
        found = self._within(cells.reshape(self._shape), 0, frozenset())
        return np.zeros_like(cells) if found is None else found.ravel()

    def _within(self, values: np.ndarray, axis: int, begun: frozenset[int]) -> np.ndarray | None:
        """The gradient by residuals that begin with these, of values measured along axes before."""
        if begun not in self._begun[axis]:
            return None
        if axis == len(self._shape):
            return self._precisions[begun] * values
        total = None
        for one, rows in self._directions[axis]:
            measured = matrix_along(rows, values, axis)
            below = self._within(measured, axis + 1, begun if one is None else begun | {one})
            if below is not None:
                part = matrix_along(rows.T, below, axis)
                total = part if total is None else total + part
        return total

    def steepest(self) -> float:
        """The largest curvature, by the power method."""
        direction = np.cos(np.arange(prod(self._shape)))  # like no direction that is measured
        length = 1.0
        for _ in range(_POWER_ROUNDS):
            direction = self.gradient(direction / np.linalg.norm(direction))
            length = float(np.linalg.norm(direction))
            if not length:
                break
        return _ABOVE_LENGTH * length


def _nearest(
    answers: np.ndarray,
    first: np.ndarray,
    possible: np.ndarray,
    distance: _Distance,
    kept: KeptSums,
    gap: float,
    records_off: Callable[[np.ndarray], float],
    on_progress: Progress,
) -> tuple[np.ndarray, float, int]:
    """The nearest cells ≥ 0, 0 where nobody can be, with the sums that are kept.

    first: cells to begin with, float64[n_cells]
    records_off: by how many records any cell of a table is off

    Returns them, float64[n_cells], with the gap and the number of rounds.
    """
    places = np.flatnonzero(possible)

    def projected(values: np.ndarray) -> np.ndarray:
        return kept.nearest(values, places)

    if not kept.sums.any():
        return np.zeros_like(answers), 0.0, 0
    steepest, reached = distance.steepest(), 1.0
    cells = ahead = projected(first)
    speed = 1.0
    for rounds in range(_MOST_ROUNDS):
        if rounds % _ROUNDS_BETWEEN_CHECKS == 0:
            gradient = distance.gradient(cells - answers)
            squared = float(gradient @ (cells - answers))
            avoidable = 2 * (float(gradient @ cells) - kept.least_product(gradient, places))
            # Whatever is nearer than a millionth of a standard error, or a thousandth of a record,
            # is no distance.
            is_near = squared <= _NO_DISTANCE or records_off(cells) <= _NO_RECORDS
            reached = 0.0 if is_near else min(avoidable / squared, 1.0)
            on_progress(f"Making the tables nonnegative (gap {max(reached, gap):.1g})", 0.0)
            if reached <= gap:
                return cells, max(reached, 0.0), rounds
        gradient = distance.gradient(ahead - answers)
        following = projected(ahead - gradient / steepest)
        if gradient @ (following - cells) > 0:
            speed = 1.0
        faster = (1 + sqrt(1 + 4 * speed**2)) / 2
        ahead = following + (speed - 1) / faster * (following - cells)
        cells, speed = following, faster
    raise ReleaseError(
        f"After {_MOST_ROUNDS:,} rounds the gap is {reached:.2g}, above {gap:.2g}; ask for a "
        "larger gap."
    )
