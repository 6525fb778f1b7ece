"""The recipe of a plan: the request that gives its tables, and how Python writes it."""

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from rpexplore.analysis.budget_units import typed_text
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.planning.losses.losses import Loss
from rpexplore.planning.serialization import options_of_loss
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.bases import BasisChoice
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.bases import Basis, CustomBasis, to_json
from rpexplore.workload.bases.custom import csv_from_custom_basis
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
        # A script has no word for weights that a formula gives, nor for several lines; a list has
        # survey weights in it.
        is_plain = not (request.smooth_weights or request.weighted_by or request.more)
        if not is_plain or not _gives(request, plan.workload):
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
            if CustomBasis.read(text.encode(), name, attribute) == basis:
                return name, text
        except WorkloadError:  # labels that CSV cannot tell from something else
            pass
    number = 1
    while f"custom-basis-{number}" in taken:
        number += 1
    return f"custom-basis-{number}.json", json.dumps(to_json(basis), ensure_ascii=False) + "\n"


# ---- Values as Python source, for scripts that make a plan again.


def printable(text: str) -> str:
    """Text of a user for one line of a comment, which nothing in it can end."""
    return "".join(c if c.isprintable() else "�" for c in text)


def source_of_loss(loss: Loss) -> str:
    """The constructor of a loss; raises `PlanError` for a custom one."""
    options_of_loss(loss)  # refuses what cannot be written down
    parameters: Any = loss  # a dataclass, as all losses are
    names = [field.name for field in fields(parameters)]
    arguments = [f"{name}={literal(getattr(loss, name))}" for name in names]
    return f"rp.{type(loss).__name__}({', '.join(arguments)})"


def source_of_budget(budget: Budget) -> str:
    """The constructor of a budget, as it was stated."""
    arguments = [f"{name}={literal(typed_text(value))}" for name, value in budget.stated]
    if budget.distinct is not None:
        arguments.append(f"distinct={literal(budget.distinct)}")
    elif budget.max_records_per_person is not None:
        arguments.append(f"max_records_per_person={budget.max_records_per_person}")
    if budget.unit_noun is not None:
        arguments.append(f"unit_noun={literal(budget.unit_noun)}")
    if budget.period is not None:
        arguments.append(f"period={literal(budget.period)}")
    if budget.exact:
        totals = [total[0] if len(total) == 1 else list(total) for total in budget.exact]
        arguments.append(f"exact={literal(totals)}")
    elif budget.replaces:
        arguments.append(f"neighbours={literal(budget.neighbours)}")
    return f"rp.Budget({', '.join(arguments)})"


def literal(value: Any) -> str:
    """A value as Python source, in double quotation marks where that needs no escapes."""
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    text = repr(value)
    plain = isinstance(value, str) and text.startswith("'") and '"' not in text
    return f'"{text[1:-1]}"' if plain else text


def call(function: str, arguments: Sequence[str]) -> str:
    """A call as source, an argument on each line if it is long."""
    short = f"{function}({', '.join(arguments)})"
    if len(short) <= 76 and "\n" not in short:
        return short
    lines = "".join(textwrap.indent(f"{argument},\n", "    ") for argument in arguments)
    return f"{function}(\n{lines})"


def lines_of_call(function: str, arguments: Sequence[str]) -> str:
    """A call as source, an argument on each line."""
    return f"{function}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"


def wrapped(values: Sequence[Any]) -> str:
    """A tuple as source, over several lines if it is long."""
    short = literal(tuple(values))
    if len(short) <= 60:
        return short
    lines, line = [], ""
    for source in map(literal, values):
        if line and len(line) + len(source) > 70:
            lines.append(line.rstrip())
            line = ""
        line += f"{source}, "
    lines.append(line.rstrip())
    return "(\n" + textwrap.indent("\n".join(lines), "    ") + "\n)"


# ---- How one part of a plan is made again: what its kind has to say, for a script and a command.


@dataclass(frozen=True)
class PartFile:
    """A file of the bundle: its text, and what it holds, in a few words."""

    text: str
    purpose: str


@dataclass(frozen=True)
class Reproduction:
    """How a part is made again.

    asked        Python expression of what is asked for
    settings     of the request, beside `asked`: names -> Python expressions
    definitions  Python functions that `asked` calls
    imports      lines that these need, beside rpexplore; needs_path: whether they need pathlib
    verb         the command and what stands behind it; empty where options cannot say it all
    options      of the command, each with its value, without the budget
    files        that script, command and people read, by name
    after        a command for what comes after the release, with a comment; "" for none
    """

    asked: str
    definitions: str
    verb: Sequence[str]
    options: Sequence[Sequence[str]]
    settings: Mapping[str, str] = field(default_factory=dict)
    imports: Sequence[str] = ()
    needs_path: bool = False
    files: Mapping[str, PartFile] = field(default_factory=dict)
    after: str = ""
