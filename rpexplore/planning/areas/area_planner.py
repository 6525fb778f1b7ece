"""Area planner: (tables in areas, loss, budget) → plan, and the smallest budget. No records."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from rpexplore.common.processes import Progress, no_progress, one_thread
from rpexplore.common.text import joined, rounded
from rpexplore.errors import OutOfReachError, PlanError, WorkloadError
from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.areas.area_loss import (
    AREA_LOSSES,
    LossRows,
    area_problem,
    profiles_of,
    table_weights,
)
from rpexplore.planning.areas.area_plan import AreaPlan, charged_closure, exact_plan, with_budget
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.areas.exact_in_areas import kept_in_areas, refuse_unprotected_in_areas
from rpexplore.planning.areas.solvers import (
    AreaCapped,
    AreaMaximum,
    AreaProblem,
    AreaRound,
    AreaState,
)
from rpexplore.planning.losses.losses import Loss, MaxVariance, SumOfVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.minimum_budget import rho_with_allowance, typed_above
from rpexplore.planning.optimal_strategies import with_best_strategies
from rpexplore.planning.planner import refuse_weights
from rpexplore.planning.solvers.solution import report_gap
from rpexplore.privacy.budget import ADD_REMOVE, Budget

# Relative gaps at which the searches end.
_SUM_TOLERANCE, _TOLERANCE = 1e-4, 3e-3
_MOST_NUMBERS = 30_000_000  # 8 bytes each, of which there are some arrays
_MOST_NAMED = 3  # tables and levels in an error message


def plan_areas(
    workload: AreaWorkload,
    *,
    loss: Loss,
    budget: Budget,
    tolerance: float | None = None,
    uniform_levels: bool = False,
    on_progress: Progress = no_progress,
) -> AreaPlan:
    """The plan for tables in areas with the smallest loss within the budget, with its proof.

    Args:
        workload: The tables of each area, with weights and targets, in any bases.
        loss: `SumOfVariances`, where the areas that are asked for the same count by their mean, or
            `MaxVariance`, over all areas and tables; `SumWithinTargets` or `MaxWithinTargets`: the
            same of tables without a required target, while all required ones are met.
        budget: The most that the plan may cost.
        tolerance: Relative gap to the best possible at which the search may end; if left out 1e-4
            for `SumOfVariances`, else 3e-3.
        uniform_levels: Whether all areas of a level get the same noise, which costs accuracy.
        on_progress: Called with what is being done and the share that is done; what it raises ends
            the search.

    Returns:
        The plan. Of all plans with independent noise on every area none within the budget is better
        by more than its `gap`.

    Raises:
        PlanError: For another loss, too many cells, or if the search ends outside the tolerance.
        OutOfReachError: If the required targets cannot all be met.
        WorkloadError: If the loss needs targets that are missing.

    Example:
        >>> import rpexplore as rp
        >>> tree = rp.AreaTree.from_columns({"region": ["N", "N", "S"], "town": ["1", "2", "1"]})
        >>> sexes = rp.Workload.all_up_to(rp.Domain.from_sizes({"sex": 2}), 1)
        >>> everywhere = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, sexes))
        >>> best = plan_areas(
        ...     everywhere, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5")
        ... )
        >>> best.gap < 1e-4
        True
    """
    if not isinstance(loss, AREA_LOSSES):
        raise PlanError(
            "Tables in areas can be planned for the average error (SumOfVariances), the largest "
            "one (MaxVariance), or either within required targets (SumWithinTargets, "
            f"MaxWithinTargets), got {type(loss).__name__}."
        )
    for asked, weights in zip(workload.workloads, table_weights(workload, loss), strict=True):
        refuse_weights(weights, asked)
    if tolerance is None:
        tolerance = _SUM_TOLERANCE if isinstance(loss, SumOfVariances) else _TOLERANCE
    with one_thread():
        groups = AreaGroups.of(workload.tree, workload.kinds)
        kept = kept_in_areas(workload, budget)
        closure = charged_closure(_measured_closure(workload, loss, on_progress), kept)
        refuse_unprotected_in_areas(workload, closure)
        if closure.n_kinds * max(len(groups), len(closure)) > _MOST_NUMBERS:
            raise PlanError(
                f"The levels of attributes tell {closure.n_kinds:,} kinds of records apart, which "
                f"are too many in {len(groups):,} different areas; ask for fewer levels, or for "
                "levels of fewer groups."
            )
        rows = LossRows.of(workload.tables, closure, loss)
        if not workload.tables.is_marginals and len(rows) * len(groups) > _MOST_NUMBERS:
            raise PlanError(
                f"The loss looks at {len(rows):,} cells of tables in {len(groups):,} different "
                "areas, which are too many; use single values, or the average error "
                "(SumOfVariances)."
            )
        profiles = profiles_of(workload, closure, loss, rows, closure.exact_levels)
        # Precisions that are the best for any budget are found to the last digit for all of them.
        cost = 1.0 if loss.is_homogeneous else float(budget.record_privacy_cost)
        problem = area_problem(workload, groups, loss, rows, profiles, uniform_levels, cost)
        if isinstance(problem, AreaCapped):
            problem, inside, largest = problem_with_room(problem, tolerance, on_progress)
            if largest >= 1:
                raise _out_of_reach(workload, groups, rows, inside, largest)
        state = best_precisions(problem, tolerance, on_progress)
        found = exact_plan(workload, loss, budget, problem, closure, rows, profiles, state)
    all_required = loss.meets_required_targets and not isinstance(problem, AreaCapped)
    if all_required and found.loss_value > 1:
        raise _out_of_reach(workload, groups, rows, state, found.loss_value)
    return found


def _measured_closure(workload: AreaWorkload, loss: Loss, on_progress: Progress) -> Closure:
    """The closure of all tables, with the strategies that are best for all levels together."""
    weights, largest = np.zeros(len(workload.tables)), loss.looks_at_least_accurate_cells
    add = np.maximum if largest else np.add
    for rows, of_kind in zip(workload.rows, table_weights(workload, loss), strict=True):
        weights[rows] = add(weights[rows], of_kind)
    # The loss may leave a table with a required target without weight.
    weights[weights == 0] = np.mean(weights)
    closure = Closure.of(workload.tables)
    return with_best_strategies(
        workload.tables,
        closure,
        weights,
        largest=largest,
        on_progress=on_progress,
    )


def _out_of_reach(
    workload: AreaWorkload,
    groups: AreaGroups,
    rows: LossRows,
    inside: AreaState,
    largest: float,
) -> OutOfReachError:
    """Which targets bind most, and what budget would do.

    inside, largest: what comes as far inside as can be, with its largest variance over its cap
    """
    prices, names = inside.table_prices, []
    assert prices is not None
    in_groups = prices * groups.multiplicity
    while len(names) < _MOST_NAMED and np.any(in_groups > 0):
        by_level = np.add.reduceat(in_groups, groups.starts[:-1], axis=1)
        row, level = np.unravel_index(np.argmax(by_level), by_level.shape)
        table = int(rows.tables[row])
        names.append(f"{workload.tables.describe(table)} on {workload.tree.levels[level]}")
        in_groups[rows.tables == table, groups.starts[level] : groups.starts[level + 1]] = 0
    return OutOfReachError(
        "The required targets cannot all be met at this budget; among those that bind are "
        f"{joined(names)}. Use {rounded(largest, 4, 'up')} times the budget and a little more, "
        "make some of these targets wider, or do not require them.",
        needed=largest,
    )


# ---- The search for the best precisions: rounds, until one is proven to be near enough.


_MOST_ROUNDS = 20_000
_PATIENCE, _LESS = 150, 0.9  # rounds within which the gap has to shrink to this share
# Much smaller steps leave prices where they are, also wrong ones: where levels were asked for
# different tables, searches took twice the rounds with 1/10, and ended nowhere without a limit.
_LEAST_STEP = 0.5
_AVERAGED = 16  # rounds, where numbers are known exactly
_ROOM = 0.9  # largest variance over its cap that leaves room enough to mix with


def best_precisions(
    problem: AreaProblem,
    tolerance: float,
    on_progress: Progress = no_progress,
    *,
    is_enough: Callable[[AreaRound], bool] = lambda found: False,
) -> AreaState:
    """The state of a round whose value is within the tolerance of its bound, or that is enough.

    Raises:
        PlanError: If none is found.
    """
    factors = problem.factors if isinstance(problem, AreaMaximum) else None
    # Where it falls apart, the product of two small solutions is within their gaps of the best
    # already.
    state = problem.start() if factors is None else _product(*factors, tolerance, on_progress)
    best, improved = np.inf, 0
    average: AreaState | None = None
    for number in range(_MOST_ROUNDS):
        if average is not None and number % _AVERAGED == 0:
            # Where numbers are known exactly, precisions and prices go around where they belong.
            state = min(state, average, key=lambda one: problem.visit(one).gap)
            average = None
        found = problem.visit(state)
        report_gap(on_progress, found.gap)
        if is_enough(found):
            return state
        if found.gap <= tolerance:
            if found.mended is None:
                return state
            # Mixed with the room all caps hold, at some cost: the mix must prove its gap by itself.
            mended = found.mended()
            if problem.visit(mended).value <= problem.proven(mended) * (1 + tolerance):
                return mended
        state = found.follow()
        if any(problem.exact_levels):
            average = _mean(average, state, number % _AVERAGED)
        if found.gap < best * _LESS:
            best, improved = found.gap, number
        elif number - improved >= _PATIENCE:  # prices swing around where they belong
            state, improved = replace(state, step=max(state.step / 2, _LEAST_STEP)), number
    raise PlanError(
        f"The search came within {best:.2g} of the best possible, and not within "
        f"{tolerance:g}; ask for a larger tolerance."
    )


def _mean(total: AreaState | None, state: AreaState, n_before: int) -> AreaState:
    """The mean of states, of which `total` is that of so many before; else as the last one."""
    if total is None:
        return state

    def of_both(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return (one * n_before + other) / (n_before + 1)

    prices = state.table_prices
    if prices is not None and total.table_prices is not None:
        prices = of_both(total.table_prices, prices)
    return replace(
        state,
        precisions=of_both(total.precisions, state.precisions),
        prices=of_both(total.prices, state.prices),
        table_prices=prices,
    )


def problem_with_room(
    problem: AreaCapped, tolerance: float, on_progress: Progress = no_progress
) -> tuple[AreaCapped, AreaState, float]:
    """The problem with precisions inside its caps, as far as that is possible.

    Returns:
        The problem, with room if there is any; the state that comes as far inside as the tolerance
        asks for; and its largest variance over its cap, below 1 where there is room.
    """
    inside = best_precisions(
        problem.relative, tolerance, on_progress, is_enough=lambda found: found.value <= _ROOM
    )
    largest = problem.relative.visit(inside).value
    return (problem.with_room(inside) if largest < 1 else problem), inside, largest


def _product(
    of_tables: AreaMaximum, of_areas: AreaMaximum, tolerance: float, on_progress: Progress
) -> AreaState:
    """The product of the states that are best for two factors: its gaps multiply."""
    tables = best_precisions(of_tables, tolerance / 10)
    # (1 + a)(1 + b) = 1 + tolerance: the small problem gets a tenth, as it is cheap.
    areas = best_precisions(of_areas, (1 + tolerance) / (1 + tolerance / 10) - 1, on_progress)
    assert tables.table_prices is not None
    assert areas.table_prices is not None
    return AreaState(
        tables.precisions * areas.precisions,
        tables.prices * areas.prices,
        tables.table_prices * areas.table_prices,
    )


# ---- The smallest budget at which the targets of all areas can be met.


def minimum_area_budget(
    workload: AreaWorkload,
    *,
    max_records_per_person: int | None = None,
    unit_noun: str | None = None,
    neighbours: str = ADD_REMOVE,
    exact: Sequence[Sequence[str]] = (),
    tolerance: float | None = None,
    uniform_levels: bool = False,
    on_progress: Progress = no_progress,
) -> AreaPlan:
    """The plan that meets the targets of all tables in all areas at the smallest budget.

    Args:
        workload: The tables of each area, each with a target: its largest standard error.
        max_records_per_person: Most records of a person, who then is the privacy unit.
        unit_noun: The word for that unit, as in `Budget`.
        neighbours, exact: As of a `Budget`.
        tolerance: Relative gap to the smallest possible budget at which the search may end; 3e-3
            if left out.
        uniform_levels: Whether all areas of a level get the same noise, which takes more budget.
        on_progress: Called with what is being done and the share that is done; what it raises ends
            the search.

    Returns:
        The plan. Its budget, ρ rounded up to five digits, is enough; no budget below that times
        the plan's `lower_bound` is.

    Raises:
        WorkloadError: If a table has no target.
        PlanError: As `plan_areas`.

    Example:
        >>> import rpexplore as rp
        >>> tree = rp.AreaTree.from_columns({"region": ["N", "N", "S"], "town": ["1", "2", "1"]})
        >>> sexes = rp.Workload.of(rp.Domain.from_sizes({"sex": 2}), [("sex",)], targets=[20])
        >>> everywhere = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, sexes))
        >>> best = minimum_area_budget(everywhere)
        >>> best.loss_value <= 1
        True
    """
    for asked in workload.workloads:
        if np.any(np.isnan(asked.targets)):
            table = asked.describe(int(np.argmax(np.isnan(asked.targets))))
            raise WorkloadError(
                "The smallest budget is the one for the targets of all tables, and the table "
                f"{table} has none; give it a target, such as 20."
            )
    unit = Budget(
        rho=1,
        max_records_per_person=max_records_per_person,
        neighbours=neighbours,
        exact=exact,
        unit_noun=unit_noun,
    )
    at_one = plan_areas(
        workload,
        loss=MaxVariance(relative_to="target"),
        budget=unit,
        tolerance=tolerance,
        uniform_levels=uniform_levels,
        on_progress=on_progress,
    )
    # Variances are inversely proportional to the budget.
    rho = Fraction(rho_with_allowance(at_one.loss_value))
    return with_budget(at_one, unit.of_unit(rho=typed_above(rho)))
