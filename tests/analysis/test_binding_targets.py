"""Why this budget, in numbers and words."""

from dataclasses import replace

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis import binding_targets
from rpexplore.common.text import rounded
from rpexplore.planning import planner
from rpexplore.planning.losses.constrained import SumWithinTargets
from rpexplore.planning.planner import plan_tables
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.targets import Target

BUDGET = rp.Budget(rho="0.01")


@pytest.fixture(scope="module")
def workload():
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5})
    tables = rp.Workload.all_up_to(domain, 2)
    return tables.with_targets({("age", "sex"): rp.Target("3", required=True), ("region",): 500})


def explained(workload, required_only):
    minimum_budget = rp.minimum_budget(workload, required_only=required_only)
    return minimum_budget, binding_targets.budget_explanation(
        minimum_budget, BUDGET, required_only=required_only
    )


def test_a_single_required_target(workload):
    minimum_budget, reason = explained(workload, True)
    assert not reason.is_within
    # One target alone: its budget falls with the square of the standard error.
    saved = binding_targets.binding_targets_frame(minimum_budget, BUDGET)["saved"]
    assert saved.tolist() == pytest.approx([1 - 1.1**-2])
    assert binding_targets.describe_binding(reason) == (
        f"The required target of age × sex takes {reason.enough.text}, "
        f"{reason.enough.compared}. No plan of these tables can do with noticeably less. If "
        f"it were 10 % wider, about ρ = {rounded(reason.enough.needed / 1.21, 3)} would be enough, "
        "17 % less."
    )
    assert "nothing is left for tables without a required target" in (
        binding_targets.describe_advice(reason)
    )
    assert float(reason.advised.budget.rho) == pytest.approx(
        1.1 * minimum_budget.record_privacy_cost / 2, rel=1e-4
    )


def test_of_all_targets_only_some_are_binding(workload):
    minimum_budget, reason = explained(workload, False)
    assert "1 of 2 targets is binding: age × sex." in binding_targets.describe_binding(reason)
    request = WorkloadRequest(
        settings=(TableSetting(("age", "sex"), target=Target("3", required=True)),)
    )
    frame = binding_targets.binding_targets_frame(minimum_budget, BUDGET, request)
    assert frame["table"].tolist() == ["age × sex"]
    assert frame["wanted"].tolist() == ["σ = 3"]
    assert frame["required"].tolist() == ["required"]
    assert frame["rho"].tolist() == [
        pytest.approx(minimum_budget.record_privacy_cost / 2 / 1.21, rel=1e-4)
    ]


def test_where_every_table_has_a_target_the_smallest_budget_is_advised(workload):
    everywhere = replace(workload, targets=np.full(len(workload), 5.0), required=workload.required)
    _, reason = explained(everywhere, False)
    assert reason.advised is reason.enough
    assert binding_targets.describe_advice(reason) == ""
    plan = plan_tables(everywhere, loss=rp.MaxVariance("target"), budget=reason.enough.budget)
    assert np.all(plan.largest_standard_errors <= 5 * (1 + 1e-9))
    assert f"{len(workload)} of {len(workload)} targets are binding: " in (
        binding_targets.describe_binding(reason)
    )


def test_for_persons_the_budget_is_theirs(workload):
    minimum_budget = rp.minimum_budget(workload, required_only=True)
    persons = rp.Budget(rho="0.1", max_records_per_person=3)
    reason = binding_targets.budget_explanation(minimum_budget, persons, required_only=True)
    assert reason.enough.needed == pytest.approx(9 * minimum_budget.record_privacy_cost / 2)
    plan = plan_tables(workload, loss=rp.SumWithinTargets(), budget=reason.advised.budget)
    assert plan.largest_standard_errors[workload.required][0] <= 3 * (1 + 1e-9)


def test_an_epsilon_is_enough_where_rho_alone_proves_it(workload):
    """Of a rest that is planned behind a pilot: that of one plan's noise is not."""
    minimum_budget = rp.minimum_budget(workload, required_only=True)
    budget = rp.Budget(epsilon=1, delta="1e-6")
    by_noise, by_rho = (
        binding_targets.budget_explanation(
            minimum_budget, budget, required_only=True, by_rho=alone
        ).enough
        for alone in (False, True)
    )
    least = 2 * by_rho.needed
    assert by_rho.budget.least_cost >= least > by_noise.budget.least_cost


def test_what_required_targets_cost_the_others():
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5})
    tables = rp.Workload.all_up_to(domain, 2)
    workload = tables.with_targets({("age", "sex"): rp.Target("6", required=True)})
    loss, budget = SumWithinTargets("cells"), rp.Budget(rho="0.02")
    plan = plan_tables(workload, loss=loss, budget=budget)
    free = plan_tables(tables, loss=rp.SumOfVariances("cells"), budget=budget)
    objective = binding_targets.objective_without_required(loss, workload)
    assert objective == rp.SumOfVariances("cells")
    without = planner.optimum(workload, loss=objective)
    cost = binding_targets.cost_to_others(plan, without)

    others = np.array([table != ("age", "sex") for table in workload.tables])
    now, then = plan.standard_errors[others], free.standard_errors[others]
    assert cost.per_cent == pytest.approx(100 * (now / then - 1), abs=1e-3)
    assert cost.text == (
        "Compared with no target being required, the margins of error of the other 6 tables are "
        "26 % larger (median; −14 % to +32 %)."
    )
    twice = binding_targets.CostToOthers(np.array([150.0, 150.0]))
    assert twice.text.endswith("of the other 2 tables are 2.5 times as large.")


def test_what_is_taken_from_tables_that_met_their_target_anyway():
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5})
    tables, budget = rp.Workload.all_up_to(domain, 2), rp.Budget(rho="0.02")
    free = planner.optimum(tables, loss=rp.SumOfVariances())
    margins = 1.96 * free.standard_errors(budget)
    row = tables.tables.index(("age", "sex"))

    def taken(margin: float) -> str:
        target = rp.Target.parse(f"±{margin:.6g} required")
        workload = tables.with_targets({("age", "sex"): target})
        plan = plan_tables(workload, loss=SumWithinTargets(), budget=budget)
        return binding_targets.describe_taken(
            plan, planner.optimum(workload, loss=rp.SumOfVariances())
        )

    assert taken(margins[row] / 1.3) == ""
    assert taken(margins[row] * 1.3).startswith(
        f"age × sex would be at σ = {rounded(margins[row] / 1.96, 3)} if no target were required, "
        f"and is at σ = {rounded(1.3 * margins[row] / 1.96, 3)}. This objective takes"
    )
