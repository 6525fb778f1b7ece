"""The recipe of a plan: how its tables were asked for, for programs that make it again."""

from dataclasses import dataclass

import numpy as np

from rpexplore.analysis.budgets import plain
from rpexplore.budget import Budget
from rpexplore.domain import Domain
from rpexplore.errors import RpexploreError
from rpexplore.plan import Plan
from rpexplore.request import WorkloadRequest
from rpexplore.settings import TableSetting
from rpexplore.workload import Workload


@dataclass(frozen=True, eq=False)
class Recipe:
    """A plan, and a request that gives exactly its tables, importances and targets."""

    plan: Plan
    request: WorkloadRequest

    @classmethod
    def of(cls, plan: Plan, request: WorkloadRequest | None = None) -> "Recipe":
        """By this request if it gives the plan's workload, else by one read off the workload."""
        if request is None or not _gives(request, plan.workload):
            request = WorkloadRequest.of(plan.workload)
        return cls(plan, request)

    @property
    def domain(self) -> Domain:
        return self.plan.workload.domain

    @property
    def order(self) -> int:
        """The order asked for, which is at most that of the schema."""
        return min(self.request.order, len(self.domain))

    @property
    def settings(self) -> list[TableSetting]:
        """What is asked of single tables that are in the plan."""
        workload = self.plan.workload
        return [
            setting
            for setting in self.request.settings
            if workload.find(self.domain.positions(setting.attributes)) is not None
        ]


def _gives(request: WorkloadRequest, workload: Workload) -> bool:
    try:
        made = request.workload(workload.domain)
    except RpexploreError:
        return False
    return (
        np.array_equal(made.members, workload.members)
        and np.array_equal(made.weights, workload.weights)
        and np.array_equal(made.targets, workload.targets, equal_nan=True)
    )


def budget_texts(budget: Budget) -> dict[str, str]:
    """The budget as it was stated, in exact texts: {"epsilon": "1", "delta": "1e-9"}."""
    return {name: plain(value) for name, value in budget.stated}
