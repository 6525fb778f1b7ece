"""Verification of adaptive plans: does one hold what it claims? From the plan alone, exactly."""

from dataclasses import replace
from fractions import Fraction

from rpexplore.common.formatting import plural
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.planning.adaptive.candidates import subsets_within
from rpexplore.planning.verification import Check, privacy_check, table_checks


def adaptive_checks(plan: AdaptivePlan, *, strategies: bool) -> tuple[Check, ...]:
    """The claims of an adaptive plan, for `verify`; those of its first plan among them.

    That rounds select from the candidates and cost something was checked when it was read.
    """
    rounds_rho = sum((step.rho for step in plan.rounds), Fraction())
    # What the first plan states is booked; that it costs no more is one of its own checks.
    cost = plan.first.exact_privacy_cost / plan.budget.records_factor + 2 * rounds_rho
    of_first = table_checks(plan.first, strategies=strategies)
    return (
        privacy_check(plan, cost),
        _check_measured(plan),
        *(replace(check, name=f"first plan, {check.name}") for check in of_first),
    )


def _check_measured(plan: AdaptivePlan) -> Check:
    """Whether the first plan measures what the fit of every round starts from."""
    sets = {tuple(row) for order in (1, 2) for row in subsets_within(plan.workload, order).tolist()}
    measured = {
        tuple(index for index in row if index >= 0) for row in plan.first.closure.members.tolist()
    }
    # Further residuals would spend budget on what no table needs.
    holds = measured == sets | {()} and not plan.first.closure.strategies
    if holds:
        finding = (
            f"the first plan measures all {len(sets):,} sets of 1 and 2 attributes within tables; "
            f"the rounds select {plural(plan.n_selected, 'time')} from "
            f"{plural(len(plan.candidates), 'candidate')}"
        )
        return Check("measured", True, finding)
    finding = "the first plan must measure all sets of 1 and 2 attributes within tables, and only "
    return Check("measured", False, finding + "those")
