"""A scenario whose plan is to be smoothed: its weights, and the small tables that it needs."""

from dataclasses import replace

from rpexplore.common.formatting import plural
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.errors import WorkloadError
from rpexplore.planning.losses.base import SumOfVariances
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_changes import refuse_long
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.smooth_weights import SmoothWeights, missing_small_tables
from rpexplore.workload.workload import Workload


def for_smooth_tables(scenario: Scenario, weights: SmoothWeights | None = None) -> Scenario:
    """A copy with the weights for smooth tables, in place of those of groups and single tables.

    weights: those of a first release; None: those of the expected counts

    Tables of 1 and 2 attributes within the others are added, and the objective is the average
    error with equal weight per table, which the weights are made for. Targets stay.

    Raises `WorkloadError` without expected counts, or if so many tables cannot be named.
    """
    weights = weights or smooth_weights(scenario)
    request = _with_small_tables(scenario.request, scenario.workload)
    groups = (replace(group, weight=None, factor=None) for group in request.groups)
    settings = (replace(setting, weight=None) for setting in request.settings)
    request = replace(
        request,
        smooth_weights=weights,
        groups=tuple(group for group in groups if not group.is_plain),
        settings=tuple(setting for setting in settings if not setting.is_plain),
    )
    return scenario.replaced(request=request, loss=SumOfVariances())


def smooth_weights(scenario: Scenario, budget: Budget | None = None) -> SmoothWeights:
    """The weights for smooth tables at a scenario's budget and expected number of records.

    budget: of its tables, if they have a share of it only
    """
    if scenario.expected is None:
        raise WorkloadError(
            "Weights for smooth tables depend on how many records there will be, about; type an "
            "expected number."
        )
    return smooth_weights_for(budget or scenario.budget, scenario.expected)


def weights_are_outdated(scenario: Scenario) -> bool:
    """Whether the budget or the expected number of records has changed since the weights were set.

    Those of a first release have their number of records from there. Best shares of several
    sections follow from the weights themselves, so that the budget says nothing then.
    """
    weights = scenario.request.smooth_weights
    if weights is None or "tables" not in scenario.kinds:
        return False
    if len(scenario.kinds) > 1 and scenario.stated_shares is None:
        expected = scenario.expected
        return weights.pairs is None and expected is not None and weights.records != expected.total
    budget = scenario.budget_to_solve("tables")
    if weights.pairs is not None:
        return weights.rho != float(budget.record_privacy_cost) / 2
    return scenario.expected is not None and smooth_weights(scenario, budget) != weights


def smooth_weights_for(budget: Budget, expected: ExpectedCounts) -> SmoothWeights:
    """The weights for smooth tables at a budget and an expected number of records."""
    # Noise is that of the budget for a record, whoever it belongs to.
    return SmoothWeights(float(budget.record_privacy_cost) / 2, expected.total)


def describe_added(before: Workload, after: Workload) -> str:
    """Which tables smooth tables need beside those there were, in a sentence; "" if none."""
    added = len(after) - len(before)
    if added == 0:
        return ""
    are, they = ("is", "It is") if added == 1 else ("are", "They are")
    return (
        f"{plural(added, 'smaller table')} {are} added. {they} measured in any case, within the "
        "larger tables."
    )


def _with_small_tables(request: WorkloadRequest, workload: Workload) -> WorkloadRequest:
    """The request with all tables of 1 and 2 attributes within its tables."""
    missing = missing_small_tables(workload)
    if not missing:
        return request
    if request.kind == "of_order" and not request.containing:
        return replace(request, kind="up_to")
    refuse_long(len(workload) + len(missing))
    return replace(request, kind="listed", listed=(*workload.tables, *missing))
