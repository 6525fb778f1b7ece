"""Nonnegative tables: the nearest ones that agree and have no cell below 0."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import log, sqrt
from types import MappingProxyType

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.common.processes import Progress, no_progress, one_thread
from rpexplore.domain.domain import AttributeIndices, subsets
from rpexplore.domain.structural_zeros import StructuralZeros
from rpexplore.errors import DomainError, ReleaseError
from rpexplore.estimation.active_cells import sets_above_zero
from rpexplore.estimation.cell_coupling import CellCoupling
from rpexplore.estimation.exact_totals import inner_point
from rpexplore.estimation.table_map import ContributionArrays, TableMap, without_rounding
from rpexplore.planning.mechanism.strategy import Strategy

# GReM-LNN (ReM §3.1): minimise Σ_A ‖c_A − z_A‖², measured as in `table_map`, over the contributions
# of a release's closure such that every maximal table is nonnegative; the total is kept.
#
# Solved by the alternating direction method of multipliers on M c = y, y ≥ 0, which
# docs/mathematics.md §11 explains, with the lower and upper bound that the gap is between. One
# number x for each cell holds y = max(x, 0) and the multiplier λ = −ρ min(x, 0). It is extrapolated
# from the rounds before (`_Extrapolation`), unless tables have too many cells, or strategies. The
# contributions returned are those of the upper bound: their tables are nonnegative and agree,
# whenever the search stops.
#
# In cells that impossible combinations leave without a record y is 0 and λ = −ρ x of either sign.
# The search begins with the nearest contributions that are 0 there (`with_zeros`): of these and of
# those given, the nearest nonnegative ones are the same.
#
# Exact totals are kept: their contributions are no variables. With impossible combinations they
# leave cells without a record, which are 0, too. What is found is made nonnegative by mixing it
# with tables of possible records that have the totals, `inner_point`, which are above 0 elsewhere.


GAP = 1e-3
"""Where the search stops unless told otherwise; finer is lost in the noise."""

# The first of these is the weight of the constraints, as a multiple of the objective's; tried from
# 1 to 64 on tables of Adult and of single figures. The second is usual, 1 to 2.
_PENALTY, _RELAXATION = 12.0, 1.6
# Once a check raises the lower bound by less than this part of what is left to the upper one, the
# penalty is multiplied by this, once: the multipliers are as good as found, tables are not.
_SETTLED, _PENALTY_FACTOR = 0.05, 4.0
# At the first check it is raised to the balance of multipliers and cells, if that is so many times
# as much: tables of many cells and few records are mostly 0, and their multipliers long.
_UNBALANCED = 2.0
_ROUNDS_BETWEEN_CHECKS = 20
# How many steps are extrapolated from, and the part of their squared lengths that keeps this
# well-conditioned: 3 to 10 were tried on tables of 10^4 to 10^6 cells. After so many rounds nothing
# is extrapolated, so that the method is the one that is known to end.
_REMEMBERED, _REGULARISED, _ROUNDS_EXTRAPOLATED = 5, 1e-7, 4_000
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
    zeros: StructuralZeros | None = None,
    kept: Collection[AttributeIndices] = (),
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
        zeros: Where no record is possible: tables are 0 there, up to rounding errors.
        kept: The attributes of exact totals, and of all that is within them: these are true counts
            and stay as they are. There are none where attributes have strategies.

    Raises:
        ReleaseError: If the gap is not between 0 and 1, or out of reach; if too many impossible
            combinations hang together; if no possible counts from 0 on have the exact totals.
    """
    check_gap(gap)
    search = _Search(TableMap(contributions, sizes, strategies), contributions, zeros, kept)
    _report(on_progress, 0.0, 1.0)
    solution = search.trivial_solution()
    if solution is None:
        search.begin()
    while solution is None and search.rounds < _MOST_ROUNDS:
        search.step()
        if search.rounds % _ROUNDS_BETWEEN_CHECKS == 0:
            solution = search.solution(gap) or search.solution_by_sets(gap)
        # Each decade of the gap counts the same.
        done = log(max(search.gap, gap)) / log(gap)
        _report(on_progress, min(max(done, 0.0), 1.0), search.gap)
    if solution is None:
        raise ReleaseError(
            f"After {_MOST_ROUNDS:,} rounds the gap is {search.gap:.2g}, above {gap:.2g}; ask for "
            "a larger gap."
        )
    _report(on_progress, 1.0, solution.gap)
    return solution


def check_gap(gap: float) -> None:
    """Raise `ReleaseError` unless a gap is between 0 and 1."""
    if not 0 < gap < 1:
        raise ReleaseError(
            f"The gap must be above 0 and below 1, got {gap}; {GAP} is enough for most purposes."
        )


def _report(on_progress: Progress, share: float, gap: float) -> None:
    on_progress(f"Making the tables nonnegative (gap {gap:.1g})", share)


class _Search:
    """The state of the method: one number x a cell of the maximal tables."""

    def __init__(
        self,
        tables: TableMap,
        given: ContributionArrays,
        zeros: StructuralZeros | None,
        kept: Collection[AttributeIndices],
    ) -> None:
        self._map = tables
        self._kept = frozenset({(), *kept})
        self._has_totals = len(self._kept) > 1
        self._fixed = {} if zeros is None else impossible_cells(tables, zeros)
        given = {**given, (): np.maximum(given[()], 0.0)}
        # Contributions of all possible records, each counted alike; of exact totals, of possible
        # records that have them.
        self._even: dict[AttributeIndices, np.ndarray] = {}
        if self._has_totals:
            limits = zeros if self._fixed else None
            self._even, self._fixed = inner_point(tables, given, self._kept, limits)
        elif zeros is not None and self._fixed:
            try:
                for subset in tables.family:
                    shares = zeros.even_shares(subset)
                    self._even[subset] = tables.decomposed(subset, shares)
            except DomainError as error:
                raise ReleaseError(str(error)) from None
        self._given = {**given, **with_zeros(tables, given, self._fixed, self._kept)}
        self._contributions = dict(self._given)
        self._length = tables.product(given, given)
        # How far those given are from what the search begins with.
        self._distance_before = self._distance(given)
        self._cells = self._tables(self._given)
        # M c of the last round; needed only where the step in c is not exact.
        self._values = dict(self._cells) if tables.strategies else None
        # All cells as one array, where the step is a product with sparse matrices.
        self._all_cells: np.ndarray | None = None
        self._coupling: CellCoupling | None = None
        self._extrapolation: _Extrapolation | None = None
        self._all_fixed: np.ndarray | None = None
        self._lower, self._evenly, self._is_raised = 0.0, _FIRST_EVENLY, False
        self.rounds, self.gap = 0, 1.0

    def begin(self) -> None:
        """To be called before the first step."""
        if not self._map.strategies and CellCoupling.entries(self._map) <= _MOST_ENTRIES:
            self._all_cells = np.concatenate([cells.ravel() for cells in self._cells.values()])
            ends = np.cumsum([cells.size for cells in self._cells.values()])
            parts = np.split(self._all_cells, ends[:-1])
            for (table, cells), part in zip(list(self._cells.items()), parts, strict=True):
                self._cells[table] = part.reshape(cells.shape)
            if self._fixed:
                nowhere = np.zeros(1, dtype=bool)
                self._all_fixed = np.concatenate(
                    [
                        np.broadcast_to(self._fixed.get(table, nowhere), cells.shape).ravel()
                        for table, cells in self._cells.items()
                    ]
                )
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
        for subset in self._kept:
            factors[subset], start[subset] = 0.0, self._given[subset]
        self._start = np.concatenate([cells.ravel() for cells in self._tables(start).values()])
        coupled = {subset: penalty * factor for subset, factor in factors.items()}
        if self._coupling is None:
            self._coupling = CellCoupling(self._map, coupled)
        self._coupling.weigh(coupled)

    def _raise_penalty(self, factor: float) -> None:
        """Multiply the penalty, with the multipliers as they are."""
        for table, cells in self._cells.items():
            multipliers = cells < 0
            if table in self._fixed:
                multipliers |= self._fixed[table]
            np.divide(cells, factor, out=cells, where=multipliers)
        self._weigh(self._weight * factor)
        if self._extrapolation is not None:
            self._extrapolation.forget()

    def trivial_solution(self) -> Nonnegative | None:
        """What needs no search: tables without negative cells, or of nothing at all."""
        lowest = (
            self._possible(table, cells).min(initial=0.0) for table, cells in self._cells.items()
        )
        if not any(least < 0 for least in lowest):
            return Nonnegative(_read_only(self._given), self._distance_before, 0.0, 0)
        if self._given[()] == 0:  # then all cells can only be 0
            nothing = {subset: np.zeros_like(values) for subset, values in self._given.items()}
            return Nonnegative(_read_only(nothing), self._length, 0.0, 0)
        return None

    def step(self) -> None:
        """One round: the contributions nearest to what the tables should be, then x."""
        self.rounds += 1
        if self._all_cells is not None and self._coupling is not None:
            wanted, cells = _sides(self._all_cells, self._all_fixed)
            values = self._start + self._coupling.of(wanted)
            self._all_cells += _RELAXATION * (values - cells)
            if self.rounds <= _ROUNDS_EXTRAPOLATED:
                if self._extrapolation is None:
                    self._extrapolation = _Extrapolation(self._all_cells)
                self._extrapolation.of(self._all_cells)
            return
        self._contributions = self._nearest()
        for table, values in self._map.of_tables(
            lambda subset: self._map.table(subset, self._contributions)
        ):
            # x ← r M c + (1 − r) y + u with y and u the two sides of x, r the relaxation.
            cells = self._cells[table]
            cells += _RELAXATION * (values - _sides(cells, self._fixed.get(table))[1])
            if self._values is not None:
                self._values[table] = values

    def _nearest(self) -> dict[AttributeIndices, np.ndarray]:
        """The contributions nearest to those given and to what the tables should be."""
        nearest = dict(self._unchanged)
        for subset, values in self._pulled_back(self._wanted).items():
            if subset not in self._kept:
                curvature = self._curvature[subset]
                minimum = 2 * self._given[subset] + self._map.shaped(subset, values)
                if self._values is not None:
                    minimum += curvature * self._contributions[subset]
                nearest[subset] = minimum / (2 + curvature)
        return nearest

    @property
    def _unchanged(self) -> ContributionArrays:
        return {subset: self._given[subset] for subset in self._kept}

    def _wanted(self, table: AttributeIndices) -> np.ndarray:
        """ρ (y − u), less ρ M c where the step in c is not exact."""
        wanted, _ = _sides(self._cells[table], self._fixed.get(table))
        if self._values is not None:
            wanted -= self._values[table]
        return self._penalty[table] * wanted

    def solution(self, goal: float) -> Nonnegative | None:
        """The result, if its gap is not above the goal."""
        is_limited = bool(self._fixed) or self._has_totals
        if self._all_cells is not None and len(self._map.tables) > 1 and not is_limited:
            lower, evenly = self._lower, self._evenly
            distance = self._bounds_by_coupling()
            is_near = self._lower >= (1 - goal) * distance
            if not is_near and distance > _ROUNDING * self._length:
                self.gap = min(self.gap, 1 - self._lower / distance)
                self._adapt_penalty(lower, distance)
                return None
            self._lower, self._evenly = lower, evenly  # found again, with the contributions

        def multipliers(table: AttributeIndices) -> np.ndarray:
            wanted, cells = _sides(self._cells[table], self._fixed.get(table))
            return self._penalty[table] * (wanted - cells)

        pull = self._pulled_back(multipliers)
        near = {
            subset: self._given[subset] + self._map.shaped(subset, values) / 2
            for subset, values in pull.items()
        }
        near |= self._unchanged
        twice = sum(
            np.vdot(values, near[subset] + self._given[subset]) for subset, values in pull.items()
        )
        lower = self._lower
        self._lower = max(lower, -float(twice) / 2)
        del pull, near
        feasible = self._feasible()
        result = self._result(feasible)
        if result.gap <= goal and not is_limited:
            # The same again, with no cell below 0 by rounding either.
            result = self._result(without_rounding(self._map, feasible, self._given[()]))
        self.gap = min(self.gap, result.gap)
        if result.gap <= goal:
            return result
        self._adapt_penalty(lower, result.distance - self._distance_before)
        return None

    def _adapt_penalty(self, lower: float, distance: float) -> None:
        """After a check that raised the lower bound from this one; distance: the upper bound."""
        is_settled = self._lower - lower < _SETTLED * (distance - self._lower)
        if self.rounds == _ROUNDS_BETWEEN_CHECKS:
            balanced = self._balanced_penalty()
            if balanced > _UNBALANCED * self._weight:
                self._raise_penalty(balanced / self._weight)
        elif is_settled and lower > 0 and not self._is_raised:
            self._is_raised = True
            self._raise_penalty(_PENALTY_FACTOR)

    def _bounds_by_coupling(self) -> float:
        """The upper bound of `solution`; the lower one is raised.

        The same as there, and as in `_raised`, for all contributions at once, in two arrays: of
        many small tables one by one, a check would take many times as long as the rounds before.
        """
        assert self._coupling is not None
        assert self._all_cells is not None
        coupling, n_cells = self._coupling, list(map(self._map.cells, self._map.tables))
        penalty = np.repeat([self._penalty[table] for table in self._map.tables], n_cells)
        sizes = {subset: float(self._map.cells(subset)) for subset in self._map.family}
        of_table, of_shared = coupling.for_contributions(sizes)
        given, given_shared = coupling.contributions(self._given)
        wanted, cells = _sides(self._all_cells, None)

        pull, shared_pull = coupling.pulled_back(penalty * (wanted - cells))
        change, shared_change = pull / 2, shared_pull / 2
        shared_change[0] = 0.0  # the total, the first of all sets, stays
        twice = pull @ (2 * given + change) + shared_pull @ (2 * given_shared + shared_change)
        self._lower = max(self._lower, -float(twice) / 2)

        near, near_shared = coupling.pulled_back(penalty * wanted)
        curvature, shared_curvature = coupling.for_contributions(self._curvature)
        near = (2 * given + near) / (2 + curvature)
        near_shared = (2 * given_shared + near_shared) / (2 + shared_curvature)
        near_shared[0] = given_shared[0]
        cells = coupling.tables(near, near_shared)
        total = max(float(np.max(-cells * of_table)), 0.0)
        best, evenly_before = np.inf, self._evenly
        for evenly in (evenly_before / 3, evenly_before, min(3 * evenly_before, 1.0)):
            lacking = np.maximum(-cells - evenly * total / of_table, 0)
            raised, raised_shared = coupling.pulled_back(of_table * lacking)
            raised = near + raised / of_table
            raised_shared = near_shared + raised_shared / of_shared
            raised_shared[0] += evenly * total
            scale = given_shared[0] / raised_shared[0]
            raised, raised_shared = scale * raised - given, scale * raised_shared - given_shared
            distance = float(raised @ raised + raised_shared @ raised_shared)
            if distance < best:
                best, self._evenly = distance, max(evenly, _FIRST_EVENLY / 100)
        return best

    def solution_by_sets(self, goal: float) -> Nonnegative | None:
        """The result of the cells above 0 of one table that is nearly all 0; None without one.

        Its rounds come nearer the more slowly, the more cells there are for the records.
        """
        if len(self._map.tables) > 1 or self._map.strategies or self._fixed or self._has_totals:
            return None
        (table,) = self._map.tables
        given = self._map.table(table, self._given)
        for cells, multipliers in sets_above_zero(given, self._cells[table]):
            # In units of the squared distance, and not of its half.
            np.subtract(cells, 2 / self._penalty[table] * multipliers, out=self._cells[table])
            if self._extrapolation is not None:
                self._extrapolation.forget()
            if (solution := self.solution(goal)) is not None:
                return solution
        return None

    def _balanced_penalty(self) -> float:
        """The penalty with which multipliers are as long as the cells they go with."""
        lengths = np.zeros(2)  # squared, of the cells y and of the multipliers
        for table, cells in self._cells.items():
            wanted, values = _sides(cells, self._fixed.get(table))
            multipliers = (values - wanted) * sqrt(self._penalty[table] / self._weight)
            lengths += float(np.vdot(values, values)), float(np.vdot(multipliers, multipliers))
        return self._weight * sqrt(lengths[1] / lengths[0]) if lengths[0] else 0.0

    def _feasible(self) -> dict[AttributeIndices, np.ndarray]:
        """Contributions near to the optimum with no negative cell, and the total as given."""
        if len(self._map.tables) == 1 and not self._has_totals:
            # The cells y of one table need not agree with others, and only be scaled to the total.
            (table,) = self._map.tables
            _, cells = _sides(self._cells[table], self._fixed.get(table))
            n_records = float(cells.sum())
            if n_records > 0:
                cells *= float(self._given[()]) / n_records
                found = {
                    subset: self._map.decomposed(subset, self._totals(table, subset, cells))
                    for subset in self._map.family
                }
                found.update(self._unchanged)  # the total, without rounding
                return found
        near = self._nearest()
        is_limited = bool(self._fixed) or self._has_totals
        return self._raised_where_possible(near) if is_limited else self._raised(near)

    @staticmethod
    def _totals(table: AttributeIndices, subset: AttributeIndices, cells: np.ndarray) -> np.ndarray:
        """The cells of a table added up over all attributes that a subset does not have."""
        others = tuple(axis for axis, index in enumerate(table) if index not in subset)
        return cells.sum(axis=others)

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

    def _raised_where_possible(
        self, near: ContributionArrays
    ) -> dict[AttributeIndices, np.ndarray]:
        """Contributions near to these, with zeros, the total as given and no negative cell.

        All possible records are added, each as often as the cell that lacks most needs it; of
        exact totals, those that have them.
        """
        near = {**near, **with_zeros(self._map, near, self._fixed, self._kept)}
        lacking = 0.0
        for table, cells in self._tables(near).items():
            even = self._map.table(table, self._even)
            shares = self._possible(table, -cells) / self._possible(table, even)
            lacking = max(lacking, float(shares.max(initial=0.0)))
        if self._has_totals:
            part = lacking / (1 + lacking)
            mixed = {
                subset: (1 - part) * values + part * self._even[subset]
                for subset, values in near.items()
            }
            return {**mixed, **self._unchanged}
        return self._scaled(
            {subset: values + lacking * self._even[subset] for subset, values in near.items()}
        )

    def _possible(self, table: AttributeIndices, cells: np.ndarray) -> np.ndarray:
        """The cells of a table that can have records."""
        return cells[~self._fixed[table]] if table in self._fixed else cells

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
        distance += self._distance_before
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


class _Extrapolation:
    """Anderson's extrapolation of the cells x after every second round, in place.

    Of two rounds F(x) = x + f(x): the cells go to where, for the last few x together, f would be
    least if it were linear (type II; memory 5). It is left out where f has become longer than twice
    the shortest before, and what was seen is forgotten then: rounds alone come nearer each time.
    """

    def __init__(self, cells: np.ndarray) -> None:
        """cells: after the first round"""
        # In single precision, as what they give is only a proposal: half of the time.
        self._changes_of_f, self._changes = np.zeros((2, _REMEMBERED, cells.size), np.float32)
        self._products = np.zeros((_REMEMBERED, _REMEMBERED))
        self._n_rounds = self._n_seen = 0
        self._shortest = np.inf
        self._before = cells
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def forget(self) -> None:
        """Forget all that was seen: the cells were changed otherwise."""
        self._n_rounds = self._n_seen = 0
        self._shortest, self._last = np.inf, None

    def of(self, cells: np.ndarray) -> None:
        """Move the cells after a round; every second time, and not the first."""
        self._n_rounds += 1
        if self._n_rounds % 2:
            self._before = cells.copy()
            return
        length = float(np.linalg.norm(step := cells - self._before))
        if length > 2 * self._shortest:
            self._n_seen, self._last = 0, None
            return
        self._shortest = min(self._shortest, length)
        f = step.astype(np.float32)
        if self._last is not None:
            self._remember(self._before, f, *self._last)
        self._last = self._before, f
        n = min(self._n_seen, _REMEMBERED)
        products, changes_of_f = self._products[:n, :n], self._changes_of_f[:n]
        slack = _REGULARISED * np.trace(products)
        if not slack > 0:
            return
        parts = np.linalg.solve(products + slack * np.eye(n), changes_of_f @ f)
        cells -= parts.astype(np.float32) @ self._changes[:n]

    def _remember(
        self, x: np.ndarray, f: np.ndarray, x_before: np.ndarray, f_before: np.ndarray
    ) -> None:
        place = self._n_seen % _REMEMBERED
        np.subtract(f, f_before, out=self._changes_of_f[place])
        np.subtract(x, x_before, out=self._changes[place], casting="same_kind")
        self._changes[place] += self._changes_of_f[place]
        self._n_seen += 1
        products = self._changes_of_f @ self._changes_of_f[place]
        self._products[place], self._products[:, place] = products, products


def _sides(cells: np.ndarray, fixed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """y − u and y, the two sides of x: y = max(x, 0), or 0 in cells that are fixed at 0."""
    if fixed is None:
        return np.abs(cells), np.maximum(cells, 0)
    return np.where(fixed, -cells, np.abs(cells)), np.where(fixed, 0.0, np.maximum(cells, 0))


def _read_only(contributions: ContributionArrays) -> ContributionArrays:
    return MappingProxyType(
        {subset: read_only(values.view()) for subset, values in contributions.items()}
    )


# ---- The nearest contributions whose tables are 0 where no record is possible, by projection.
#
# c = z − K Mᵀ λ, with λ in the cells F without records such that (M c)_F = 0: the normal equations
# (M K Mᵀ)_FF λ = (M z)_F, by conjugate gradients. The total stays. As true counts are 0 there, what
# is unbiased stays so.


# Of the length of what is in these cells, and of the total for each cell: rounding errors. Tables
# share cells, so that the equations have many solutions, and errors that no step takes out.
_ZERO, _ZERO_OF_TOTAL = 1e-13, 1e-14
_MOST_STEPS = 2_000


def impossible_cells(
    tables: TableMap, zeros: StructuralZeros
) -> dict[AttributeIndices, np.ndarray]:
    """Where no record is possible in the maximal tables: bool, for those that have such cells."""
    possible = {table: zeros.possible(table) for table in tables.tables}
    return {table: ~cells for table, cells in possible.items() if cells is not None}


def with_zeros(
    tables: TableMap,
    given: ContributionArrays,
    fixed: Mapping[AttributeIndices, np.ndarray],
    kept: Collection[AttributeIndices] = ((),),
) -> dict[AttributeIndices, np.ndarray]:
    """The nearest contributions whose tables are 0 in fixed cells: those that are not as given.

    kept: those that stay as given, the total among them; what they are alone must be 0 there
    """
    if not fixed:
        return {}

    def pulled_back(multipliers: np.ndarray) -> dict[AttributeIndices, np.ndarray]:
        """K Mᵀ λ, but for what is kept."""
        sums: dict[AttributeIndices, np.ndarray] = {}
        for (table, cells), own in zip(
            fixed.items(), np.split(multipliers, ends[:-1]), strict=True
        ):
            values = np.zeros(cells.shape)
            values[cells] = own
            for subset, part in tables.pulled_back(table, values).items():
                if subset not in kept:
                    sums[subset] = sums[subset] + part if subset in sums else part
        return {subset: tables.shaped(subset, part) for subset, part in sums.items()}

    def in_cells(contributions: ContributionArrays) -> np.ndarray:
        found = [tables.table(table, contributions)[cells] for table, cells in fixed.items()]
        return np.concatenate(found)

    ends = np.cumsum([np.count_nonzero(cells) for cells in fixed.values()])
    nothing = {subset: np.zeros_like(given[subset]) for subset in kept}
    residual = in_cells(given)
    multipliers, direction = np.zeros_like(residual), residual.copy()
    length = float(residual @ residual)
    of_total = abs(float(given[()])) * _ZERO_OF_TOTAL * sqrt(len(residual))
    goal = max(_ZERO * sqrt(length), of_total) ** 2
    for _ in range(_MOST_STEPS):
        if length <= goal:
            break
        pulled = pulled_back(direction)
        image = in_cells({**nothing, **pulled})
        if not (curvature := float(direction @ image)) > 0:
            break  # what is left are rounding errors in cells of what is kept
        step = length / curvature
        multipliers += step * direction
        residual -= step * image
        shorter = float(residual @ residual)
        direction = residual + shorter / length * direction
        length = shorter
    return {subset: given[subset] - part for subset, part in pulled_back(multipliers).items()}
