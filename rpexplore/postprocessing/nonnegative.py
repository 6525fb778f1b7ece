"""Nonnegative tables: the nearest contributions whose tables have no cell below 0.

GReM-LNN (ReM §3.1): minimise Σ_A ‖c_A − z_A‖², measured as in `table_map`, over the contributions
of a release's closure such that every maximal table is nonnegative; the total is kept.

Solved by the alternating direction method of multipliers on M c = y, y ≥ 0, which
docs/mathematics.md §11 explains, with the lower and upper bound that the gap is between. One number
x for each cell holds y = max(x, 0) and the multiplier λ = −ρ min(x, 0). The contributions returned
are those of the upper bound: their tables are nonnegative and agree, whenever the search stops.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress, one_thread
from rpexplore.common.numerics import read_only
from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import ReleaseError
from rpexplore.estimation.table_map import (
    ContributionArrays,
    TableMap,
    subsets,
    without_rounding,
)
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.planning.solvers.solution import share_done
from rpexplore.postprocessing.cell_coupling import CellCoupling

GAP = 1e-3
"""Where the search stops unless told otherwise; finer is lost in the noise."""

# The first of these is the weight of the constraints, as a multiple of the objective's; tried from
# 1 to 64 on tables of Adult and of single figures. The second is usual, 1 to 2.
_PENALTY, _RELAXATION = 12.0, 1.6
# Once a check raises the lower bound by less than this part of what is left to the upper one, the
# penalty is multiplied by this, once: the multipliers are as good as found, tables are not.
_SETTLED, _PENALTY_FACTOR = 0.05, 4.0
_ROUNDS_BETWEEN_CHECKS = 20
_MOST_ENTRIES = 16_000_000  # of a coupling: 12 bytes each, and three times that while it is made
_MOST_ROUNDS = 20_000
_FIRST_EVENLY = 0.03
_ROUNDING = 1e-24  # of the squared length of what is given: whatever is below is no distance


@dataclass(frozen=True, eq=False)
class Nonnegative:
    """Contributions whose maximal tables have no negative cell.

    contributions  like those given, read-only; `reconstruction.marginal` makes tables of them
    distance       Σ_A ‖c_A − z_A‖² to those given
    gap            by how much of it, at most, this is more than the smallest possible
    rounds         how long the search took
    """

    contributions: ContributionArrays
    distance: float
    gap: float
    rounds: int


@one_thread()
def nonnegative(
    contributions: ContributionArrays,
    sizes: np.ndarray,
    strategies: Mapping[int, Strategy],
    *,
    gap: float = GAP,
    on_progress: Progress = no_progress,
) -> Nonnegative:
    """The nearest contributions whose tables are nonnegative, up to a gap.

    The total stays as it is, or becomes 0 where it is negative.

    Args:
        contributions: Of a downward closed family of attribute sets, as
            `reconstruction.contribution` returns them.
        sizes: int64[d], of all attributes.
        strategies: Of attributes that are not measured by single values.

    Raises:
        ReleaseError: If the gap is not between 0 and 1, or out of reach.
    """
    if not 0 < gap < 1:
        raise ReleaseError(
            f"The gap must be above 0 and below 1, got {gap}; {GAP} is enough for most purposes."
        )
    search = _Search(TableMap(contributions, sizes, strategies), contributions)
    _report(on_progress, 0.0, 1.0)
    solution = search.trivial_solution()
    if solution is None:
        search.begin()
    while solution is None and search.rounds < _MOST_ROUNDS:
        search.step()
        if search.rounds % _ROUNDS_BETWEEN_CHECKS == 0:
            solution = search.solution(gap)
        _report(on_progress, share_done(search.gap, gap), search.gap)
    if solution is None:
        raise ReleaseError(
            f"After {_MOST_ROUNDS:,} rounds the gap is {search.gap:.2g}, above {gap:.2g}; ask for "
            "a larger gap."
        )
    _report(on_progress, 1.0, solution.gap)
    return solution


def _report(on_progress: Progress, share: float, gap: float) -> None:
    on_progress(f"Making the tables nonnegative (gap {gap:.1g})", share)


class _Search:
    """The state of the method: one number x a cell of the maximal tables."""

    def __init__(self, tables: TableMap, given: ContributionArrays) -> None:
        given = {**given, (): np.maximum(given[()], 0.0)}
        self._map, self._given, self._contributions = tables, given, dict(given)
        self._length = tables.product(given, given)
        self._cells = self._tables(given)
        # M c of the last round; needed only where the step in c is not exact.
        self._values = dict(self._cells) if tables.strategies else None
        # All cells as one array, where the step is a product with sparse matrices.
        self._all_cells: np.ndarray | None = None
        self._lower, self._evenly = 0.0, _FIRST_EVENLY
        self.rounds, self.gap = 0, 1.0

    def begin(self) -> None:
        """To be called before the first step."""
        if not self._map.strategies and CellCoupling.entries(self._map) <= _MOST_ENTRIES:
            self._all_cells = np.concatenate([cells.ravel() for cells in self._cells.values()])
            ends = np.cumsum([cells.size for cells in self._cells.values()])
            parts = np.split(self._all_cells, ends[:-1])
            for (table, cells), part in zip(list(self._cells.items()), parts, strict=True):
                self._cells[table] = part.reshape(cells.shape)
        self._weigh(_PENALTY)

    def _weigh(self, penalty: float) -> None:
        """Set the penalty and what follows from it, in units in which H(T, T) is 1."""
        self._weight = penalty
        self._penalty = {
            table: penalty / self._map.bound(table, table) for table in self._map.tables
        }
        self._curvature = dict.fromkeys(self._map.family, 0.0)
        for table in self._map.tables:
            for subset in subsets(table):
                self._curvature[subset] += self._penalty[table] * self._map.bound(table, subset)
        if self._all_cells is None:
            return
        factors = {subset: 1 / (2 + curvature) for subset, curvature in self._curvature.items()}
        start = {subset: 2 * factors[subset] * values for subset, values in self._given.items()}
        factors[()], start[()] = 0.0, self._given[()]
        self._start = np.concatenate([cells.ravel() for cells in self._tables(start).values()])
        self._coupling = CellCoupling(
            self._map, {subset: penalty * factor for subset, factor in factors.items()}
        )

    def _raise_penalty(self) -> None:
        """Multiply the penalty, with the multipliers as they are."""
        for cells in self._cells.values():
            np.divide(cells, _PENALTY_FACTOR, out=cells, where=cells < 0)
        self._weigh(_PENALTY * _PENALTY_FACTOR)

    def trivial_solution(self) -> Nonnegative | None:
        """What needs no search: tables without negative cells, or of nothing at all."""
        if not any(np.any(cells < 0) for cells in self._cells.values()):
            return Nonnegative(_read_only(self._given), 0.0, 0.0, 0)
        if self._given[()] == 0:  # then all cells can only be 0
            nothing = {subset: np.zeros_like(values) for subset, values in self._given.items()}
            return Nonnegative(_read_only(nothing), self._length, 0.0, 0)
        return None

    def step(self) -> None:
        """One round: the contributions nearest to what the tables should be, then x."""
        self.rounds += 1
        if self._all_cells is not None:
            values = self._start + self._coupling.of(np.abs(self._all_cells))
            self._all_cells += _RELAXATION * (values - np.maximum(self._all_cells, 0))
            return
        pull = self._pulled_back(self._wanted)
        for subset, values in pull.items():
            curvature = self._curvature[subset]
            minimum = 2 * self._given[subset] + self._map.shaped(subset, values)
            if self._values is not None:
                minimum += curvature * self._contributions[subset]
            self._contributions[subset] = minimum / (2 + curvature)
        self._contributions[()] = self._given[()]
        for table, values in self._map.of_tables(
            lambda subset: self._map.table(subset, self._contributions)
        ):
            # x ← r M c + (1 − r) y + u with y and u the two sides of x, r the relaxation.
            cells = self._cells[table]
            cells += _RELAXATION * (values - np.maximum(cells, 0))
            if self._values is not None:
                self._values[table] = values

    def _wanted(self, table: AttributeIndices) -> np.ndarray:
        """ρ (y − u), less ρ M c where the step in c is not exact."""
        wanted = np.abs(self._cells[table])
        if self._values is not None:
            wanted -= self._values[table]
        return self._penalty[table] * wanted

    def solution(self, goal: float) -> Nonnegative | None:
        """The result, if its gap is not above the goal."""
        pull = self._pulled_back(
            lambda table: self._penalty[table] * np.maximum(-self._cells[table], 0)
        )
        near = {
            subset: self._given[subset] + self._map.shaped(subset, values) / 2
            for subset, values in pull.items()
        }
        near[()] = self._given[()]
        twice = sum(
            np.vdot(values, near[subset] + self._given[subset]) for subset, values in pull.items()
        )
        lower = self._lower
        self._lower = max(lower, -float(twice) / 2)
        del pull
        raised = self._raised(near)
        result = self._result(raised)
        if result.gap <= goal:
            # The same again, with no cell below 0 by rounding either.
            result = self._result(without_rounding(self._map, raised, self._given[()]))
        self.gap = min(self.gap, result.gap)
        if result.gap <= goal:
            return result
        is_settled = self._lower - lower < _SETTLED * (result.distance - self._lower)
        if is_settled and lower > 0 and self._weight == _PENALTY:
            self._raise_penalty()
        return None

    def _raised(self, near: ContributionArrays) -> dict[AttributeIndices, np.ndarray]:
        """Contributions near to these, with the total as given and no negative cell.

        Every cell is raised evenly by a part of what the lowest one lacks; what others still lack
        is added to each, spread evenly over the other attributes. Which part is chosen for the
        distance.
        """
        tables = self._tables(near)
        total = max(
            max(-float(cells.min()), 0.0) * self._map.cells(table)
            for table, cells in tables.items()
        )
        best, nearest = dict(near), np.inf
        for evenly in (self._evenly / 3, self._evenly, min(3 * self._evenly, 1.0)):
            lacking = {
                table: np.maximum(-cells - evenly * total / self._map.cells(table), 0)
                for table, cells in tables.items()
            }
            raised = self._map.spread_evenly({**lacking, (): np.array(evenly * total)})
            for subset, values in near.items():
                raised[subset] += values
            raised = self._scaled(raised)
            distance = self._distance(raised)
            if distance < nearest:
                best, nearest = raised, distance
                self._evenly = max(evenly, _FIRST_EVENLY / 100)
        return best

    def _scaled(self, contributions: ContributionArrays) -> dict[AttributeIndices, np.ndarray]:
        """All multiplied by one number, to the total as given."""
        scale = float(self._given[()] / contributions[()])
        return {subset: scale * values for subset, values in contributions.items()}

    def _distance(self, contributions: ContributionArrays) -> float:
        moved = {subset: values - self._given[subset] for subset, values in contributions.items()}
        return self._map.product(moved, moved)

    def _result(self, contributions: ContributionArrays) -> Nonnegative:
        distance = self._distance(contributions)
        exact = distance <= _ROUNDING * self._length
        gap = 0.0 if exact else max(1 - self._lower / distance, 0.0)
        return Nonnegative(_read_only(contributions), distance, gap, self.rounds)

    # ---- all tables, in threads; sums in the same order whatever the computer

    def _tables(self, contributions: ContributionArrays) -> dict[AttributeIndices, np.ndarray]:
        return dict(self._map.of_tables(lambda table: self._map.table(table, contributions)))

    def _pulled_back(
        self, values: Callable[[AttributeIndices], np.ndarray]
    ) -> dict[AttributeIndices, np.ndarray]:
        """Σ_T M_Tᵀ of these values, one array of each table."""
        sums: dict[AttributeIndices, np.ndarray] = {}
        for _, parts in self._map.of_tables(
            lambda table: self._map.pulled_back(table, values(table))
        ):
            for subset, part in parts.items():
                sums[subset] = sums[subset] + part if subset in sums else part
        return sums


def _read_only(contributions: ContributionArrays) -> ContributionArrays:
    return MappingProxyType(
        {subset: read_only(values.view()) for subset, values in contributions.items()}
    )
