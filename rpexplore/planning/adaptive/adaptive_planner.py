"""Adaptive planner: (workload, budget, expected records) → adaptive plan. Never sees a record."""

from importlib.metadata import version

from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan, checked_records
from rpexplore.planning.adaptive.candidates import (
    candidates_of,
    refuse_unsuitable,
    subsets_within,
)
from rpexplore.planning.adaptive.schedule import schedule
from rpexplore.planning.losses.base import SumOfVariances
from rpexplore.planning.planner import plan_tables, refuse_type
from rpexplore.privacy.budget import Budget
from rpexplore.workload.smooth_weights import SmoothWeights
from rpexplore.workload.workload import Workload


def adaptive_plan(workload: Workload, *, budget: Budget, expected_records: int) -> AdaptivePlan:
    """A plan whose release selects, while it runs, which tables are measured more accurately.

    Its tables are biased estimates, of whose accuracy nothing is promised beforehand. Consider it
    where the budget is too small for the unbiased tables of `plan`; smooth tables of a release by
    such a plan are biased as well, are often as accurate, and the release has the unbiased ones
    beside them.

    Args:
        workload: The tables that are estimated: of single values, of one weight, without targets.
            At least one must have two attributes with more than one value.
        budget: The most that the first plan and all rounds cost together.
        expected_records: About how many records there will be, a public number. How the budget is
            divided depends on it, and on no record.

    Returns:
        The plan. Its guarantee holds whatever is selected, and whatever number of records there is.

    Raises:
        WorkloadError: If an adaptive release cannot estimate such tables.
        PlanError: If the tables are too many to plan, or the number of records is none.

    Example:
        >>> import rpexplore as rp
        >>> domain = rp.Domain.from_sizes({"age": 100, "sex": 2, "region": 16})
        >>> tables = rp.Workload.all_of_order(domain, 3)
        >>> planned = adaptive_plan(tables, budget=rp.Budget(rho="0.1"), expected_records=50_000)
        >>> planned.rho <= planned.budget.rho, rp.verify(planned).holds
        (True, True)
    """
    refuse_type(workload, {Workload}, "workload", "Workload.all_of_order(domain, 3)")
    refuse_type(budget, {Budget}, "budget", "Budget(rho=0.5)")
    records = checked_records(expected_records)
    refuse_unsuitable(workload)
    steps = schedule(budget, len(candidates_of(workload)), records)
    # The first round measures all residuals of up to two attributes, which smooth tables need.
    names = workload.domain.names
    sets = [row for order in (1, 2) for row in subsets_within(workload, order).tolist()]
    tables = Workload.of(workload.domain, [tuple(names[index] for index in row) for row in sets])
    weights = SmoothWeights(float(steps.first_rho), records)
    own_budget = Budget(
        rho=steps.first_rho * budget.records_factor,
        max_records_per_person=budget.max_records_per_person,
    )
    first = plan_tables(weights.weighted(tables), loss=SumOfVariances(), budget=own_budget)
    rounds_rho = steps.rho - steps.first_rho
    return AdaptivePlan(
        workload=workload,
        budget=budget,
        first=first,
        rounds=steps.rounds,
        expected_records=records,
        exact_privacy_cost=first.exact_privacy_cost + 2 * budget.records_factor * rounds_rho,
        version=version("rpexplore"),
    )
