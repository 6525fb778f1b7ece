"""The smallest budgets for shares of publishable cells, against the needs of all cells in order."""

import math

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis import expected_cells
from rpexplore.analysis.expected_cells import ExpectedCells
from rpexplore.analysis.sufficient_budgets import budgets_for_shares
from rpexplore.analysis.usefulness import Usefulness
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.errors import PlanError
from rpexplore.planning.planner import optimum
from rpexplore.workload.targets import Target
from tests.analysis import bases
from tests.analysis.dense_counts import answers_by_brute_force, margin

DOMAIN = rp.Domain.from_sizes({"a": 4, "b": 3, "c": 5})
LIMIT = 0.25
SHARES = (0.2, 0.5, 0.8, 0.95)


def in_bases():
    return bases.scenario().workload


def marginals():
    tables = rp.Workload.all_up_to(DOMAIN, 2)
    return rp.Workload(DOMAIN, tables.members, np.linspace(1, 4, len(tables)), tables.targets)


def expected_of(workload, empty=0):
    first = workload.domain.names[0]
    counts = np.random.default_rng(3).uniform(1, 40, workload.domain[first].size)
    counts[:empty] = 0
    return margin(workload.domain, (first,), counts.tolist())


def needed_rhos(plan, expected):
    """The ρ from which on each cell is publishable, ascending; every cell by dense matrices."""
    needs = []
    for table in range(len(plan.workload)):
        counts = answers_by_brute_force(expected, plan.workload, table)
        with np.errstate(divide="ignore"):
            variances = bases.dense_cell_variances(plan, table) / (LIMIT * counts) ** 2
        needs.append(variances * float(plan.budget.rho))
    return np.sort(np.concatenate(needs))


@pytest.mark.parametrize(
    ("workload", "loss", "budget"),
    [
        (in_bases, rp.SumOfVariances(), rp.Budget(rho="0.2")),
        (in_bases, rp.MaxVariance(), rp.Budget(epsilon=1, delta="1e-7", max_records_per_person=3)),
        (marginals, rp.SumOfVariances("cells"), rp.Budget(mu="0.4", max_records_per_person=2)),
        (marginals, rp.SumWithBoundedMax(slack=0.05), rp.Budget(epsilon="0.1", delta="1e-6")),
        (marginals, rp.PNorm(p=4), rp.Budget(rho="7")),
    ],
)
def test_the_smallest_budget_for_each_share(workload, loss, budget):
    workload = workload()
    expected, solution = expected_of(workload), optimum(workload, loss=loss)
    cells, needs = ExpectedCells.of(expected, workload), needed_rhos(solution.at(budget), expected)
    result = budgets_for_shares(solution, budget, cells, LIMIT, SHARES)
    assert list(result) == list(SHARES)
    for share, sufficient in result.items():
        needed = needs[math.ceil(share * len(needs) - 1e-9) - 1]
        assert sufficient.needed == pytest.approx(needed, rel=1e-5)
        assert needed <= float(sufficient.rho) <= needed * 1.0002
        assert sufficient.budget.stated[0][0] == budget.stated[0][0]
        assert sufficient.budget.max_records_per_person == budget.max_records_per_person
        made = Usefulness.of_plan(solution.at(sufficient.budget), cells, LIMIT)
        assert made.share >= share * (1 - 1e-12)
        less = rp.Budget(
            rho=sufficient.needed * (1 - 1e-4), max_records_per_person=budget.max_records_per_person
        )
        assert Usefulness.of_optimum(solution, less, cells, LIMIT).share < share


def test_no_budget_where_cells_are_expected_empty():
    workload = marginals()
    solution = optimum(workload, loss=rp.SumOfVariances())
    cells = ExpectedCells.of(expected_of(workload, empty=2), workload)
    # 60 cells of 1 + 4 + 3 + 5 + 12 + 20 + 15; half of those with a are empty: 18
    result = budgets_for_shares(solution, rp.Budget(rho="0.1"), cells, 0.2, (0.5, 0.7, 0.71))
    assert [sufficient is None for sufficient in result.values()] == [False, False, True]


def test_no_budget_where_no_table_is_looked_at(monkeypatch):
    monkeypatch.setattr(expected_cells, "MOST_GONE_THROUGH", 0)
    domain = rp.Domain.from_sizes({"a": 5})
    workload = rp.Workload.all_of_order(domain, 1).with_bases({"a": rp.Prefix()})
    solution = optimum(workload, loss=rp.SumOfVariances())
    cells = ExpectedCells.of(ExpectedCounts.of_total(100), workload)
    assert set(budgets_for_shares(solution, rp.Budget(rho=1), cells, 0.2).values()) == {None}


def test_with_required_targets_a_share_can_fall_and_no_budget_is_stated():
    targets = {(): 2.788267, ("a",): 10.37258, ("c",): 10.04351, ("a", "b"): 5.304231}
    targets |= {("a", "c"): 6.134619}
    workload = rp.Workload.all_up_to(DOMAIN, 2).with_targets(
        {table: Target(error, required=True) for table, error in targets.items()}
    )
    # CV limit times counts: a 8.4, which lies between its standard errors 8.17 and 8.62
    cells = ExpectedCells.of(ExpectedCounts.of_total(33.6), workload)
    shares = []
    for rho in ("0.0896288", "0.0976156"):
        budget = rp.Budget(rho=rho)
        solution = optimum(workload, loss=rp.SumWithinTargets(), budget=budget)
        shares.append(Usefulness.of_optimum(solution, budget, cells, 1.0).share)
        with pytest.raises(PlanError, match="can make some tables less accurate"):
            budgets_for_shares(solution, budget, cells, 1.0)
    assert shares == pytest.approx([8 / 60, 4 / 60])
