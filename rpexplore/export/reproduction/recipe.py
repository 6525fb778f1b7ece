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
from rpexplore.scenarios.scenario import has_uniform_reference
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
            uniform_reference = has_uniform_reference(plan)
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
        workload, choices = self.plan.workload, []
        for choice in self.request.basis_choices:
            tables = tuple(
                table
                for table in choice.tables
                if workload.find(self.domain.positions(table)) is not None
            )
            if tables or (not choice.tables and self._attribute_index(choice) in workload.used):
                choices.append(replace(choice, tables=tables))
        return choices

    @cached_property
    def custom_basis_files(self) -> CustomBasisFiles:
        """The files that hold custom bases."""
        return custom_basis_files(self.plan.workload)

    def file_of(self, choice: BasisChoice) -> str:
        """The name of the file with a custom basis; "" for every other basis."""
        name, _ = self.custom_basis_files.get(
            (self._attribute_index(choice), choice.basis), ("", "")
        )
        return name

    def _attribute_index(self, choice: BasisChoice) -> int:
        return self.domain.position(choice.attribute)


def _gives(request: WorkloadRequest, workload: Workload) -> bool:
    try:
        requested = request.workload(workload.domain)
    except RpexploreError:
        return False
    return (
        np.array_equal(requested.members, workload.members)
        and np.array_equal(requested.weights, workload.weights)
        and np.array_equal(requested.targets, workload.targets, equal_nan=True)
        and np.array_equal(requested.required, workload.required)
        and requested.bases == workload.bases
        and np.array_equal(requested.basis_index, workload.basis_index)
    )


def budget_texts(budget: Budget) -> dict[str, str]:
    """The budget as it was stated, in exact texts: {"epsilon": "1", "delta": "1e-9"}."""
    return {name: plain(value) for name, value in budget.stated}
