"""Any convex, nondecreasing loss, by a conic solver, with tables that are alike merged."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from rpexplore.common.numbers import scattered_bits, smallest_value
from rpexplore.common.processes import Progress, no_progress
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.losses.custom import CustomLoss, scattered
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.solvers.largest_variance import minimise_maximum
from rpexplore.planning.solvers.solution import (
    TOLERANCE,
    Solution,
    best_response,
    dual_bound,
    report_gap,
    rounding_allowance,
)
from rpexplore.workload.workload import Workload

# ---- Symmetry: tables that no loss can tell apart, and residuals alike, merged into classes.
#
# Colour refinement splits the classes of tables and of residuals by how many entries of B lead into
# each class of the other side, until nothing splits any more (docs/mathematics.md §6.8; Grohe,
# Kersting, Mladenov, Selman 2014, for linear programs). One σ² per class of residuals is then
# enough for a convex loss that does not change when tables of a class swap their variances.


_SAME = 1e-12  # relative: what differs by less does so by rounding


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of tables and of residuals, and the map between them.

    tables           int64[n_tables]: the class of each table
    residuals        int64[n_residuals]: the class of each residual
    table_counts     float64[n_table_classes]: tables in each
    matrix           csr float64[n_table_classes, n_residual_classes]: weighted variance of a table
                     of each class, when all residuals of a class have the same σ²
    costs            float64[n_residual_classes]: privacy cost of a class at σ² = 1
    """

    tables: np.ndarray
    residuals: np.ndarray
    table_counts: np.ndarray
    matrix: sparse.csr_array
    costs: np.ndarray

    @property
    def are_single(self) -> bool:
        """Whether no two tables and no two residuals are merged."""
        return len(self.table_counts) == len(self.tables) and len(self.costs) == len(self.residuals)


def symmetric_classes(
    closure: Closure, table_weights: np.ndarray, distinctions: Sequence[np.ndarray] = ()
) -> Classes:
    """The coarsest classes for a loss of the weighted variances, table_weights · Var.

    distinctions: numbers for each table, [n_tables]; tables that differ in one are kept apart.
    """
    incidence = closure.incidence
    mirrored = sparse.csr_array(incidence.T)
    scale = closure.per_cell(table_weights)
    # First colours: what B's rows and columns are scaled by, and what tells tables apart by itself.
    tables = _joint(
        [_alike(scale), *(np.unique(numbers, return_inverse=True)[1] for numbers in distinctions)]
    )
    residuals = _joint([_alike(closure.pairs), _alike(closure.privacy_cost_factor)])
    while True:
        before = tables.max(), residuals.max()
        tables = _split(tables, incidence, residuals)
        residuals = _split(residuals, mirrored, tables)
        # Colours only ever split: an unchanged number of them is the end.
        if (tables.max(), residuals.max()) == before:
            return _classes(closure, scale, tables, residuals)


def single_classes(closure: Closure, table_weights: np.ndarray) -> Classes:
    """Every table and every residual in a class of its own."""
    scale = closure.per_cell(table_weights)
    return _classes(closure, scale, np.arange(len(scale)), np.arange(len(closure)))


def is_same_when_swapped(
    value: Callable[[np.ndarray], float], variances: np.ndarray, classes: np.ndarray
) -> bool:
    """Whether a loss was never seen to change when tables of one class swap variances.

    Tried near these variances, float64[n_tables], where all differ: with each class turned round,
    and shifted by one.
    """
    # All different, as equal variances would swap without a trace.
    different = variances * (1 + scattered(len(variances), 1))
    present = value(different)
    order = np.argsort(classes, kind="stable")
    first = np.flatnonzero(np.diff(classes[order], prepend=-1))
    turned_round = np.lexsort((-np.arange(len(classes)), classes))
    shifted = np.roll(order, -1)
    shifted[np.append(first[1:], len(order)) - 1] = order[first]
    for moved in (turned_round, shifted):
        swapped = different.copy()
        swapped[order] = different[moved]
        if not abs(value(swapped) - present) <= 1e-9 * abs(present):
            return False
    return True


def _classes(
    closure: Closure, scale: np.ndarray, tables: np.ndarray, residuals: np.ndarray
) -> Classes:
    _, first, counts = np.unique(tables, return_index=True, return_counts=True)
    into = sparse.csr_array(
        (np.ones(len(residuals)), (np.arange(len(residuals)), residuals)),
        shape=(len(residuals), residuals.max() + 1),
    )
    # A table of a class stands for all: same sums of B by classes of residuals.
    rows = closure.incidence[first] @ sparse.diags_array(closure.pairs) @ into
    return Classes(
        tables=tables,
        residuals=residuals,
        table_counts=counts.astype(float),
        matrix=sparse.csr_array(sparse.diags_array(scale[first]) @ rows),
        costs=np.bincount(residuals, closure.privacy_cost_factor),
    )


def _split(colours: np.ndarray, neighbours: sparse.csr_array, theirs: np.ndarray) -> np.ndarray:
    """Colours split by how many neighbours of each of their colours there are, from 0.

    Neighbours are compared by a sum of 64-bit hashes. Should two sums ever agree by accident, the
    plan's certificate would show it.
    """
    edges = scattered_bits(theirs)[neighbours.indices]
    if np.any(neighbours.data != 1):
        edges = scattered_bits(edges + scattered_bits(_alike(neighbours.data)))
    sums = np.add.reduceat(edges, neighbours.indptr[:-1].astype(np.int64))
    return np.unique(scattered_bits(colours) + scattered_bits(sums), return_inverse=True)[1]


def _joint(colourings: Sequence[np.ndarray]) -> np.ndarray:
    """Colours that tell apart what any of the colourings does, from 0."""
    joint = np.zeros(len(colourings[0]), dtype=np.uint64)
    for colours in colourings:
        joint = scattered_bits(joint + scattered_bits(colours))
    return np.unique(joint, return_inverse=True)[1]


def _alike(values: np.ndarray) -> np.ndarray:
    """A colour for each value, from 0; those that differ by rounding alone share one."""
    order = np.argsort(values)
    ascending = values[order]
    colours = np.empty(len(values), dtype=np.int64)
    colours[order] = np.cumsum(np.diff(ascending, prepend=ascending[0]) > _SAME * ascending)
    return colours


# ---- Any convex, nondecreasing loss, by a conic solver (docs/mathematics.md §6.8).
#
# What the solver returns is only a proposal: its noise scales are brought to exactly the budget,
# and the dual variables d of "each variance is at least what the noise makes it" give the bound.
# For all variances V the loss is at least f · Σ d V − o (the loss's `minorant`), and for all plans
# within the budget Σ d V is at least (Σ√(p Bᵀd))² / c (RP+ Lemma 2).


_ACCURACY = 1e-6  # of the conic solver, at least; what it gives is judged by its certificate
_LARGEST_GAP = 1e-3  # a plan proven to no more than this is refused
_NO_INFLUENCE = 1e-13  # a smaller shadow price is noise of the solver
_TRIES = 3  # in other units, for each way of merging
_RUN_AWAY = 1e3  # a table this much noisier than in the best average may be one the loss leaves out


def minimise_conic(
    closure: Closure,
    workload: Workload,
    loss: CustomLoss,
    privacy_cost: float,
    tolerance: float = TOLERANCE,
    *,
    on_progress: Progress = no_progress,
) -> Solution:
    """The σ² with the smallest loss at this privacy cost: the best of some tries, with its bound.

    Raises `WorkloadError` if the loss cannot be used with the workload, and `PlanError` if the best
    gap is above 1/1000, if the loss is 0 whatever the noise within reach, or leaves a table out.
    """
    problem = _Problem(closure, workload, loss, loss.table_weights(workload), privacy_cost)
    value = problem.value(problem.average)
    # Outside its domain an expression may have a number all the same, below that at 0.
    if not np.isfinite(value) or value < loss.value(np.zeros(len(workload)), workload):
        raise WorkloadError(
            f"There must be a value of {loss.description} for any variances, but there is none "
            "where they are those of the smallest sum at this budget; use an expression that is "
            "finite everywhere, or a larger budget."
        )
    best: Solution | None = None
    best_gap = np.inf
    for classes, number in problem.tries():
        solution = problem.solution(classes, problem.unit(best, number))
        gap = problem.gap(solution)
        if gap < best_gap:
            best, best_gap = solution, gap
        report_gap(on_progress, best_gap)
        if best_gap <= tolerance:
            break
    if best_gap > max(_LARGEST_GAP, tolerance):
        best = None
    problem.refuse_faults(best)
    if best is None:
        raise PlanError(
            f"No plan could be proven good for {loss.description}: the solver came no nearer than "
            f"{best_gap:.2g} (relative) to the smallest loss. Use weights or targets that "
            "differ less between tables, or a plainer loss."
        )
    return best


@dataclass(frozen=True, eq=False)
class _Problem:
    """The conic problem; weights: float64[n_tables], that of each variance in the loss."""

    closure: Closure
    workload: Workload
    loss: CustomLoss
    weights: np.ndarray
    privacy_cost: float

    @cached_property
    def average(self) -> np.ndarray:
        """σ² of the smallest sum of the weighted variances, float64[n_residuals]."""
        in_sum = self.closure.residual_weights(self.weights)
        return best_response(self.closure.privacy_cost_factor, in_sum, self.privacy_cost)[0]

    def value(self, sigma_squared: np.ndarray) -> float:
        return self.loss.value(self.closure.variances(sigma_squared), self.workload)

    def gap(self, solution: Solution | None) -> float:
        """How far from the smallest loss a solution may be, relative; inf: it proves nothing."""
        if solution is None:
            return np.inf
        value = self.value(solution.sigma_squared)
        # A bound above a loss that is reached, by more than rounding, is none.
        if not 0 < solution.lower_bound <= value * (1 + 1e-9):
            return np.inf
        return max(value / solution.lower_bound - 1, 0.0)

    def tries(self) -> Iterator[tuple[Classes, int]]:
        """Merged, where the loss was not seen to tell tables apart; then single; with a number."""
        apart = (self.workload.weights, self.workload.planned_targets)
        merged = symmetric_classes(self.closure, self.weights, apart)
        variances = self.closure.variances(self.average)
        value = self.loss.function(len(variances))
        if not merged.are_single and is_same_when_swapped(value, variances, merged.tables):
            yield from product([merged], range(_TRIES))
        yield from product([single_classes(self.closure, self.weights)], range(_TRIES))

    def unit(self, best: Solution | None, number: int) -> np.ndarray:
        """σ² near those of the solution, float64[n_residuals], for a try of this number."""
        if best is not None:
            return best.sigma_squared
        if number == 0:
            return self.average
        return minimise_maximum(
            self.closure, self.weights, self.privacy_cost, 1e-2, max_rounds=200 * number
        ).sigma_squared

    def solution(self, classes: Classes, unit: np.ndarray) -> Solution | None:
        """The solver's solution at exactly the budget; None if it fails."""
        proposal = self._proposal(classes, unit)
        if proposal is None:
            return None
        costs = self.closure.privacy_cost_factor
        proposed, dual_weights = proposal
        # Scaled to exactly the budget: the solver keeps it to its accuracy only.
        proposed = proposed * (np.sum(costs / proposed) / self.privacy_cost)
        in_sum = self.closure.residual_weights(dual_weights)
        if not np.all(in_sum > 0):
            return None
        # The plan that is best for the dual weights is often the better one: it has them exact.
        response, _ = best_response(costs, in_sum, self.privacy_cost)
        sigma_squared = min(proposed, response, key=self.value)
        solution = None
        # Where the loss is smooth, its gradient is more exact than the solver's dual variables.
        gradient = self.loss.gradient(self.closure.variances(sigma_squared))
        if gradient is not None and np.any(gradient > 0):
            solution = self._certified(sigma_squared, gradient)
        if self.gap(solution) <= TOLERANCE:
            return solution
        return min(solution, self._certified(sigma_squared, dual_weights), key=self.gap)

    def _certified(self, sigma_squared: np.ndarray, dual_weights: np.ndarray) -> Solution | None:
        """The noise scales with the bound that the dual weights prove; None if that is unknown."""
        variances = self.closure.variances(sigma_squared)
        prices = dual_weights * variances
        # Any d ≥ 0 proves a bound, so that noise may be cut off.
        prices = np.where(prices > _NO_INFLUENCE * np.sum(prices), prices, 0)
        prices /= np.sum(prices)
        dual_weights = prices / variances
        try:
            factor, offset = self.loss.minorant(dual_weights, self.workload, near=variances)
        except PlanError:  # another try may have better dual weights
            return None
        costs = self.closure.privacy_cost_factor
        least = dual_bound(costs, self.closure.residual_weights(dual_weights), self.privacy_cost)
        allowance = rounding_allowance(len(variances)) * (factor * least + abs(offset))
        return Solution(
            sigma_squared=sigma_squared,
            lower_bound=factor * least - offset - allowance,
            shadow_prices=prices,
            dual_weights=dual_weights,
        )

    def _proposal(self, classes: Classes, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """σ² [n_residuals] and dual weights [n_tables] by the conic solver; None if it fails."""
        import cvxpy

        unit = np.bincount(classes.residuals, unit) / np.bincount(classes.residuals)
        table_unit = classes.matrix @ unit
        scale = self.value(unit[classes.residuals])
        if scale <= 0:
            raise PlanError(
                f"{self.loss.description.capitalize()} is 0 at this budget for many plans, so none "
                "is the best; add a little of the sum of variances to it, such as "
                "1e-3 * cvxpy.sum(V), or use a smaller budget."
            )
        # All unknowns near 1: noise in units of a good plan's, variances in units of its tables'.
        relative = sparse.diags_array(1 / table_unit) @ classes.matrix @ sparse.diags_array(unit)
        noise = cvxpy.Variable(len(unit))
        variances = cvxpy.Variable(len(table_unit), nonneg=True)
        weighted = cvxpy.multiply(table_unit, variances)
        loss = self.loss.expression(weighted[classes.tables])
        reached: Any = variances >= sparse.csr_array(relative) @ noise
        # The privacy cost Σ p/σ², convex in σ²; in the same units.
        within: Any = (classes.costs / unit / self.privacy_cost) @ cvxpy.inv_pos(noise) <= 1
        problem = cvxpy.Problem(cvxpy.Minimize(loss / scale), [reached, within])
        if smallest_value(problem, within=_ACCURACY) is None:
            return None
        # Back to the variances' own units, and shared by the tables of a class.
        dual = np.maximum(np.asarray(reached.dual_value), 0) / table_unit / classes.table_counts
        proposed = np.asarray(noise.value)
        if not (np.all(proposed > 0) and np.any(dual > 0)):
            return None
        return (proposed * unit)[classes.residuals], dual[classes.tables] * self.weights

    def refuse_faults(self, solution: Solution | None) -> None:
        """Raise if the loss takes no notice of a table, whose noise would then be without limit.

        solution: whose noisiest tables are tried; None: all tables
        """
        average = self.closure.variances(self.average)
        tables = np.arange(len(average))
        if solution is not None:
            variances = self.closure.variances(solution.sigma_squared)
            tables = np.flatnonzero(variances > _RUN_AWAY * average)
        left_out = self.loss.left_out(average, tables)
        if left_out is not None:
            raise PlanError(
                f"{self.loss.description.capitalize()} takes no notice of the variance of the "
                f"table {self.workload.describe(left_out)}, whose noise would have no limit; add a "
                "little of it, such as 1e-3 * cvxpy.sum(V), or leave the table out."
            )
