"""Area plan: exact precisions for the tables of every area, and what follows from them."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from rpexplore.common.numerics import read_only
from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.areas.estimation import Estimation
from rpexplore.planning.areas.profiles import Profiles
from rpexplore.planning.areas.solvers import AreaMaximum, AreaProblem, AreaState, AreaSum
from rpexplore.planning.losses.base import Loss, SumOfVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.privacy.budget import Budget

# Precisions are whole multiples of a unit: the largest has so many bits.
_PRECISION_BITS, _FACTOR_BITS, _UNIT_BITS = 40, 20, 40


@dataclass(frozen=True, eq=False, repr=False)
class AreaPlan:
    """Noise for the residuals of the tables in every area of a tree. No records.

    In one area of group v, residual S of the closure is measured with independent discrete Gaussian
    noise of precision t = unit · factor_S · multiple_{k(S), v}, exactly (σ̄² = 1/t), or not at all
    where that is 0.

    workload      what is asked
    loss          what is minimised: `SumOfVariances`, where areas asked for the same count by their
                  mean, or `MaxVariance` over all areas
    budget        the most that the plan may cost
    uniform       whether all areas of a level have one precision
    groups        areas that are alike
    closure       residuals of the tables of the other attributes
    of_residual   int64[n_residuals]: the profile k(S) of each
    factors       int64[n_residuals], above 0
    precisions    float64[n_profiles, n_groups], as of `AreaState`; a multiple is the number of
                  times 2^−40 that it holds of the largest one
    unit          exact
    prices, table_prices   as of `AreaState`; they prove the bound
    """

    workload: AreaWorkload
    loss: Loss
    budget: Budget
    uniform: bool
    groups: AreaGroups
    closure: Closure
    of_residual: np.ndarray
    factors: np.ndarray
    precisions: np.ndarray
    unit: Fraction
    prices: np.ndarray
    table_prices: np.ndarray | None

    def __post_init__(self) -> None:
        for array in (self.of_residual, self.factors, self.precisions, self.prices):
            read_only(array)

    @cached_property
    def multiples(self) -> np.ndarray:
        """Of the unit and a residual's factor, int64[n_profiles, n_groups]; 0: not measured."""
        return whole_multiples(self.precisions, _PRECISION_BITS)

    # ---- what it guarantees

    @cached_property
    def exact_record_cost(self) -> Fraction:
        """Privacy cost of one record, the largest over areas, exact."""
        costs = profile_costs(self.closure, self.of_residual, self.factors)
        return self.unit * largest_record_cost(self.groups, self.multiples, costs)

    @property
    def exact_privacy_cost(self) -> Fraction:
        """Privacy cost of the privacy unit, exact."""
        return self.exact_record_cost * self.budget.records_factor

    # ---- what it is worth

    @cached_property
    def _value_and_bound(self) -> tuple[float, float]:
        """The loss, and what no plan within the budget goes below."""
        profiles = Profiles.of(*_matrix_and_costs(self.workload, self.closure, self.loss))
        problem = area_problem(
            self.workload, self.groups, self.closure, self.loss, profiles, self.uniform
        )
        state = AreaState(self.precisions, self.prices, self.table_prices)
        at_one = problem.visit(state).bound
        return area_loss(self), float(at_one / float(self.budget.record_privacy_cost))

    @property
    def loss_value(self) -> float:
        """The loss of the plan's own precisions."""
        return self._value_and_bound[0]

    @property
    def lower_bound(self) -> float:
        """No plan within the budget (with one precision a level, if uniform) has a smaller loss."""
        return self._value_and_bound[1]

    @property
    def gap(self) -> float:
        """How far the plan's loss can be above the smallest possible one, relative, ≥ 0."""
        return max(self.loss_value / self.lower_bound - 1, 0.0)

    # ---- noise and accuracy

    def exact_variance(self, residual: int, group: int) -> Fraction | None:
        """σ̄² of a residual's noise in an area of a group; None where it is not measured."""
        multiple = int(self.multiples[self.of_residual[residual], group])
        return 1 / (self.unit * int(self.factors[residual]) * multiple) if multiple else None

    @cached_property
    def residual_variances(self) -> np.ndarray:
        """Of the least-squares answers to residuals, float64[n_residuals, n_groups].

        0 where no table that is asked for has the residual.
        """
        found = np.empty((len(self.closure), len(self.groups)))
        for profile, multiples in enumerate(self.multiples):
            variances = Estimation.of(self.groups, multiples.astype(float)).variances
            of_profile = np.flatnonzero(self.of_residual == profile)
            scales = [float(self.unit * factor) for factor in self.factors[of_profile].tolist()]
            found[of_profile] = variances / np.array(scales)[:, None]
        return read_only(found)

    def table_variances(self, kind: int) -> np.ndarray:
        """Variance of a cell of each table of a workload in the groups that are asked for it.

        float64[n_tables, n_groups of this kind], the groups ascending
        """
        matrix = self.closure.variance_matrix[self.workload.rows[kind]]
        return matrix @ self.residual_variances[:, self.groups.kinds == kind]


def area_loss(plan: AreaPlan) -> float:
    """The loss of a plan, from its variances."""
    total, largest = 0.0, 0.0
    for kind, asked in enumerate(plan.workload.workloads):
        weighted = plan.loss.table_weights(asked)[:, None] * plan.table_variances(kind)
        sizes = plan.groups.multiplicity[plan.groups.kinds == kind]
        total += float(np.sum(weighted @ sizes)) / float(plan.workload.areas_asked[kind])
        largest = max(largest, float(np.max(weighted)))
    return total if isinstance(plan.loss, SumOfVariances) else largest


def profiles_of(workload: AreaWorkload, closure: Closure, loss: Loss) -> Profiles:
    """Which residuals are planned as one for a loss."""
    return Profiles.of(*_matrix_and_costs(workload, closure, loss))


def area_problem(
    workload: AreaWorkload,
    groups: AreaGroups,
    closure: Closure,
    loss: Loss,
    profiles: Profiles,
    uniform: bool,
) -> AreaProblem:
    """What the search for the best precisions is given."""
    if isinstance(loss, SumOfVariances):
        weights = _of_groups(profiles.columns, groups)
        return AreaSum(groups, profiles.costs, uniform, weights)
    weights = _of_groups(_table_weights(workload, closure, loss), groups)
    return AreaMaximum(groups, profiles.costs, uniform, profiles.columns, weights)


def profile_costs(closure: Closure, of_residual: np.ndarray, factors: np.ndarray) -> list[Fraction]:
    """Σ p_S factor_S over the residuals of each profile, exact."""
    sizes = closure.sizes.tolist()
    all_of_them = np.arange(len(closure))
    above = closure.exact_product([n - 1 for n in sizes], all_of_them)
    below = closure.exact_product(sizes, all_of_them)
    costs = [Fraction(0)] * (int(np.max(of_residual)) + 1)
    for residual, profile in enumerate(of_residual.tolist()):
        costs[profile] += Fraction(above[residual], below[residual]) * int(factors[residual])
    return costs


def largest_record_cost(
    groups: AreaGroups, multiples: np.ndarray, costs: list[Fraction]
) -> Fraction:
    """The largest sum of multiples times costs on the way down to an area, exact."""
    sums = np.stack([groups.summed_downwards(row)[groups.undivided] for row in multiples])
    rough = np.array([float(cost) for cost in costs]) @ sums
    # A float sum of a few positive terms is within some units in the last place of what it is.
    candidates = np.flatnonzero(rough >= np.max(rough) * (1 - 1e-12))
    columns = {tuple(column) for column in sums[:, candidates].T.tolist()}
    return max(
        sum((cost * n for cost, n in zip(costs, column, strict=True)), Fraction(0))
        for column in columns
    )


def whole_multiples(values: np.ndarray, bits: int) -> np.ndarray:
    """Values over the largest as whole numbers of so many bits, rounded down; above 0 at least 1.

    An area's own measurement may say next to nothing where it is known as the rest of another.
    """
    whole = np.floor(values / np.max(values) * 2.0**bits).astype(np.int64)
    return read_only(np.where(values > 0, np.maximum(whole, 1), 0))


def exact_plan(
    workload: AreaWorkload,
    loss: Loss,
    budget: Budget,
    problem: AreaProblem,
    closure: Closure,
    profiles: Profiles,
    state: AreaState,
) -> AreaPlan:
    """The plan of a state: precisions as whole multiples of a unit that uses up the budget."""
    multiples = whole_multiples(state.precisions, _PRECISION_BITS)
    factors = whole_multiples(profiles.factors, _FACTOR_BITS)
    costs = profile_costs(closure, profiles.of_residual, factors)
    at_one = largest_record_cost(problem.groups, multiples, costs)
    return AreaPlan(
        workload=workload,
        loss=loss,
        budget=budget,
        uniform=problem.uniform,
        groups=problem.groups,
        closure=closure,
        of_residual=profiles.of_residual,
        factors=factors,
        precisions=state.precisions,
        unit=_rounded_down(budget.record_privacy_cost / at_one),
        prices=state.prices,
        table_prices=state.table_prices,
    )


def _rounded_down(value: Fraction) -> Fraction:
    """The largest number of few bits that is not above a value."""
    exponent = value.denominator.bit_length() - value.numerator.bit_length() + _UNIT_BITS
    scale = Fraction(2) ** exponent
    return Fraction(int(value * scale)) / scale


def _matrix_and_costs(
    workload: AreaWorkload, closure: Closure, loss: Loss
) -> tuple[np.ndarray, np.ndarray]:
    """How residuals count in what the loss looks at, [n_rows, n_residuals], and what they cost."""
    matrix = closure.variance_matrix
    if isinstance(loss, SumOfVariances):
        of_kinds = _table_weights(workload, closure, loss) / workload.areas_asked[:, None]
        matrix = of_kinds @ matrix
    return matrix, closure.privacy_cost_factor


def _table_weights(workload: AreaWorkload, closure: Closure, loss: Loss) -> np.ndarray:
    """Weight of each table where a workload is asked for, float64[n_workloads, n_tables]."""
    weights = np.zeros((len(workload.workloads), len(closure.cells)))
    for kind, asked in enumerate(workload.workloads):
        weights[kind, workload.rows[kind]] = loss.table_weights(asked)
    return weights


def _of_groups(of_kinds: np.ndarray, groups: AreaGroups) -> np.ndarray:
    """Rows of kinds as columns of groups, [n_columns, n_groups]; 0 where nothing is asked."""
    nothing = np.zeros((1, of_kinds.shape[1]))
    return np.ascontiguousarray(np.append(of_kinds, nothing, axis=0)[groups.kinds].T)
