"""The recipe of a plan: the request that gives its tables, and its custom bases as files."""

import json
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.scenarios.basis_choices import BasisChoice
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.bases import Basis, CustomBasis, to_json
from rpexplore.workload.custom_basis_file import csv_from_custom_basis, read_custom_basis
from rpexplore.workload.table_text import Table
from rpexplore.workload.workload import Workload

# What else stands in the folder, as lower-case stems.
_TAKEN = {
    "plan", "report", "tables", "codebook", "scenario", "commands", "expected", "board", "made",
    "records",
}  # fmt: skip
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]{0,59}(?<! )")

CustomBasisFiles = dict[tuple[int, Basis], tuple[str, str]]

# A list of more tables, or of more weights and targets, is read from tables.csv.
MOST_LINES = 200


@dataclass(frozen=True, eq=False)
class Recipe:
    """A plan, and a request that gives exactly its tables, weights, targets and bases.

    uniform_reference: as in the scenario
    """

    plan: Any
    request: WorkloadRequest
    uniform_reference: bool = False

    @classmethod
    def of(cls, plan: Any, scenario: Scenario) -> "Recipe":
        """By the scenario's request if it gives the plan's workload, else by one read off that."""
        request, uniform_reference = scenario.request, scenario.uniform_reference
        # A script has no word for weights that a formula gives.
        if request.smooth_weights is not None or not _gives(request, plan.workload):
            request = WorkloadRequest.of(plan.workload)
        if plan.workload.is_marginals:
            uniform_reference = getattr(plan, "has_uniform_reference", False)
        return cls(plan, request, uniform_reference)

    @property
    def domain(self) -> Domain:
        return self.plan.workload.domain

    @property
    def order(self) -> int:
        """The order of the request, which is at most the number of attributes."""
        return min(self.request.order, len(self.domain))

    @property
    def settings(self) -> list[TableSetting]:
        """The settings of single tables that are in the plan."""
        return [setting for setting in self.request.settings if self._has(setting.attributes)]

    @property
    def basis_choices(self) -> list[BasisChoice]:
        """The bases of attributes that are in the plan; in some tables: those in the plan."""
        choices = []
        for choice in self.request.basis_choices:
            tables = tuple(table for table in choice.tables if self._has(table))
            used = self.domain.position(choice.attribute) in self.plan.workload.used
            if tables or (used and not choice.tables):
                choices.append(replace(choice, tables=tables))
        return choices

    @cached_property
    def custom_basis_files(self) -> CustomBasisFiles:
        """The files that hold custom bases."""
        return custom_basis_files(self.plan.workload)

    @property
    def needs_tables_csv(self) -> bool:
        """Whether a script reads its tables from tables.csv, being too many to write down."""
        listed = len(self.request.listed) if self.request.kind == "listed" else 0
        return listed + len(self.settings) > MOST_LINES

    def file_of(self, choice: BasisChoice) -> str:
        """The name of the file with a custom basis; "" for every other basis."""
        attribute_index = self.domain.position(choice.attribute)
        name, _ = self.custom_basis_files.get((attribute_index, choice.basis), ("", ""))
        return name

    def _has(self, table: Table) -> bool:
        return self.plan.workload.find(self.domain.positions(table)) is not None


def _gives(request: WorkloadRequest, workload: Workload) -> bool:
    try:
        requested = request.workload(workload.domain)
    except RpexploreError:
        return False
    return (
        requested.has_tables_of(workload)
        and np.array_equal(requested.weights, workload.weights)
        and np.array_equal(requested.targets, workload.targets, equal_nan=True)
        and np.array_equal(requested.required, workload.required)
    )


def custom_basis_files(workload: Workload) -> CustomBasisFiles:
    """(index of the attribute, its custom basis) -> (name of a file, its text), `{}` without any.

    As CSV under their name where that says all, otherwise as JSON.
    """
    files: CustomBasisFiles = {}
    taken = set(_TAKEN)
    for index, basis in workload.attribute_bases:
        if isinstance(basis, CustomBasis):
            attribute = workload.domain.attributes[index]
            name, text = _file(basis, attribute, taken)
            taken.add(name.rpartition(".")[0].lower())
            files[index, basis] = name, text
    return files


def _file(basis: CustomBasis, attribute: Attribute, taken: set[str]) -> tuple[str, str]:
    if _PLAIN.fullmatch(basis.name) and basis.name.lower() not in taken:
        name, text = f"{basis.name}.csv", csv_from_custom_basis(basis, attribute)
        try:
            if read_custom_basis(text.encode(), name, attribute) == basis:
                return name, text
        except WorkloadError:  # labels that CSV cannot tell from something else
            pass
    number = 1
    while f"custom-basis-{number}" in taken:
        number += 1
    return f"custom-basis-{number}.json", json.dumps(to_json(basis), ensure_ascii=False) + "\n"
