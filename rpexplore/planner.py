"""Planner: (workload, loss, budget) → plan. Never sees a record."""

from fractions import Fraction
from importlib.metadata import version

import numpy as np

from rpexplore.accounting import privacy_cost_upper_bound
from rpexplore.budget import Budget
from rpexplore.certificate import Certificate
from rpexplore.closure import Closure
from rpexplore.decimals import Decimals
from rpexplore.errors import PlanError
from rpexplore.losses import Loss, MaxVariance, SumOfVariances
from rpexplore.plan import Plan
from rpexplore.solvers.max_variance import minimise_maximum
from rpexplore.solvers.solution import TOLERANCE
from rpexplore.solvers.sum_of_variances import minimise_sum
from rpexplore.workload import Workload

TOLERANCE_LEAST = 1e-10

_SOLVERS = {SumOfVariances: minimise_sum, MaxVariance: minimise_maximum}
_EXAMPLES = {
    "workload": "Workload.all_up_to(domain, 2)",
    "loss": "SumOfVariances() or MaxVariance()",
    "budget": "Budget(rho=0.5)",
}


def plan(workload: Workload, *, loss: Loss, budget: Budget, tolerance: float = TOLERANCE) -> Plan:
    """The plan with the smallest loss within the budget, with its certificate.

    tolerance: how far (relative) a plan may be from the optimum; a larger one is faster for
    MaxVariance on very many tables, and means nothing for SumOfVariances, which is exact.

    Raises `PlanError` if the workload is too large to plan, `WorkloadError` if the loss needs
    targets that are missing.
    """
    for value, kinds, noun in (
        (workload, {Workload}, "workload"),
        (loss, _SOLVERS.keys(), "loss"),
        (budget, {Budget}, "budget"),
    ):
        if type(value) not in kinds:
            raise PlanError(
                f"The {noun} of a plan must be one of the library's, such as {_EXAMPLES[noun]}, "
                f"got {type(value).__name__}."
            )
    if not TOLERANCE_LEAST <= tolerance < 1:
        raise PlanError(f"The tolerance must be {TOLERANCE_LEAST} to 1, got {tolerance}.")
    if not np.all(workload.cells < 1e150):
        place = int(np.argmax(workload.cells))
        raise PlanError(
            f"The table {workload.describe(place)} has {workload.cells[place]:.3g} cells, too many "
            "to plan; leave it out."
        )
    record_cost = float(budget.record_privacy_cost)
    if not 1e-120 < record_cost < 1e120:
        raise PlanError(
            f"The budget leaves a privacy cost of {record_cost:.3g} for one record, which cannot "
            "be planned with; use a budget between 1e-120 and 1e120."
        )
    table_weights = loss.table_weights(workload)
    if not np.all((table_weights > 1e-100) & (table_weights < 1e200)):
        place = int(np.argmax(np.abs(np.log(table_weights))))
        raise PlanError(
            f"The weight of table {workload.describe(place)} in the loss is "
            f"{table_weights[place]:.3g}, which cannot be planned with; bring importance weights "
            "and targets closer to 1."
        )
    solve = _SOLVERS[type(loss)]
    closure = Closure.of(workload)
    solution = solve(closure, table_weights, record_cost, tolerance)
    sigma_squared, exact_cost = _within_budget(
        closure, solution.sigma_squared, budget.record_privacy_cost
    )
    variances = closure.variances(sigma_squared.floats)
    return Plan(
        workload=workload,
        loss=loss,
        budget=budget,
        closure=closure,
        sigma_squared=sigma_squared,
        variances=variances,
        exact_privacy_cost=exact_cost * budget.records_factor,
        certificate=Certificate(
            loss_value=loss.value(variances, workload),
            lower_bound=solution.lower_bound,
            shadow_prices=solution.shadow_prices,
        ),
        version=version("rpexplore"),
    )


def _within_budget(
    closure: Closure, sigma_squared: np.ndarray, record_budget: Fraction
) -> tuple[Decimals, Fraction]:
    """The noise scales as decimals, raised as little as needed until their exact cost fits."""
    raised = 1.0
    for _ in range(20):
        rounded = Decimals.rounded_up(sigma_squared * raised)
        cost = privacy_cost_upper_bound(closure, rounded)
        if cost <= record_budget:
            return rounded, cost
        # What is over is rounding: far below a millionth of the budget.
        raised *= 1.0 + max(2.0 * float(cost / record_budget - 1), 1e-15)
    raise PlanError(
        "The noise scales could not be brought within the budget; please report this workload."
    )
