"""The recipe of a plan: how its tables were asked for, for programs that make it again."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rpexplore.analysis.budget_units import plain
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError
from rpexplore.export.reproduction.custom_basis_files import CustomBasisFiles, custom_basis_files
from rpexplore.planning.plan import Plan
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.basis_choices import BasisChoice
from rpexplore.scenarios.scenario import has_even_totals
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.workload import Workload


@dataclass(frozen=True, eq=False)
class Recipe:
    """A plan, and a request that gives exactly its tables, and what is asked of them.

    uniform_reference: whether it was made with totals spread evenly, as
    `Scenario.uniform_reference` says
    """

    plan: Plan
    request: WorkloadRequest
    uniform_reference: bool = False

    @classmethod
    def of(
        cls,
        plan: Plan,
        request: WorkloadRequest | None = None,
        uniform_reference: bool | None = None,
    ) -> "Recipe":
        """By this request if it gives the plan's workload, else by one read off the workload.

        Where it is not known how totals are spread, the plan's strategies tell.
        """
        if request is None or not _gives(request, plan.workload):
            request = WorkloadRequest.of(plan.workload)
        if uniform_reference is None or plan.workload.is_marginals:
            uniform_reference = has_even_totals(plan)
        return cls(plan, request, uniform_reference)

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

    @property
    def basis_choices(self) -> list[BasisChoice]:
        """How attributes are asked that are in the plan; in some tables: those in the plan."""
        workload, found = self.plan.workload, []
        for basis_choice in self.request.basis_choices:
            there = tuple(
                table
                for table in basis_choice.tables
                if workload.find(self.domain.positions(table)) is not None
            )
            if there or (not basis_choice.tables and self._place(basis_choice) in workload.used):
                found.append(replace(basis_choice, tables=there))
        return found

    @cached_property
    def custom_basis_files(self) -> CustomBasisFiles:
        """The files that hold own questions."""
        return custom_basis_files(self.plan.workload)

    def file_of(self, basis_choice: BasisChoice) -> str:
        """The name of the file with what is asked, if that is own questions; else ""."""
        return self.custom_basis_files.get(
            (self._place(basis_choice), basis_choice.basis), ("", "")
        )[0]

    def _place(self, basis_choice: BasisChoice) -> int:
        return self.domain.position(basis_choice.attribute)


def _gives(request: WorkloadRequest, workload: Workload) -> bool:
    try:
        made = request.workload(workload.domain)
    except RpexploreError:
        return False
    return (
        np.array_equal(made.members, workload.members)
        and np.array_equal(made.weights, workload.weights)
        and np.array_equal(made.targets, workload.targets, equal_nan=True)
        and np.array_equal(made.required, workload.required)
        and made.bases == workload.bases
        and np.array_equal(made.basis_index, workload.basis_index)
    )


def budget_texts(budget: Budget) -> dict[str, str]:
    """The budget as it was stated, in exact texts: {"epsilon": "1", "delta": "1e-9"}."""
    return {name: plain(value) for name, value in budget.stated}
