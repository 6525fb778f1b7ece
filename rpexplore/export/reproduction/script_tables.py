"""The part of a script that makes a plan's workload."""

from collections.abc import Mapping
from dataclasses import fields

from rpexplore.export.reproduction.literals import call, literal
from rpexplore.export.reproduction.recipe import Recipe
from rpexplore.scenarios.basis_choices import BasisChoice
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.table_text import Table
from rpexplore.workload.targets import Target

# A list of more tables, or of more weights and targets, is read from tables.csv.
MOST_LINES = 200


def needs_tables_csv(recipe: Recipe) -> bool:
    """Whether the script reads its tables from tables.csv, being too many to write down."""
    listed = len(recipe.request.listed) if recipe.request.kind == "listed" else 0
    return listed + len(recipe.settings) > MOST_LINES


def workload_source(recipe: Recipe) -> str:
    """The body of a function of a domain that returns the workload."""
    if needs_tables_csv(recipe):
        lines = [
            'file = Path(__file__).with_name("tables.csv")  # exported along with this script',
            'workload = workload_from_csv(domain, file.read_text(encoding="utf-8"), file.name)',
        ]
    else:
        lines = [*_tables(recipe), *_groups(recipe.request), *_singles(recipe)]
    return "\n".join([*lines, *_basis_choices(recipe), "return workload"])


def _tables(recipe: Recipe) -> list[str]:
    request = recipe.request
    if request.kind == "listed":
        listed = [f"    {literal(table)}," for table in request.listed]
        return ["tables = [", *listed, "]", "workload = rp.Workload.of(domain, tables)"]
    builder = {
        "up_to": f"all_up_to(domain, {recipe.order}",
        "of_order": f"all_of_order(domain, {recipe.order}",
        "at_most_cells": f"all_with_at_most(domain, cells={request.cells}",
    }[request.kind]
    if request.only:
        builder += f", only={literal(request.only)}"
    if request.containing:
        builder += f", containing={literal(request.containing)}"
    if request.most_cells is not None and request.kind != "at_most_cells":
        builder += f", cells={request.most_cells}"
    return [f"workload = rp.Workload.{builder})"]


def _groups(request: WorkloadRequest) -> list[str]:
    """Weights and targets of all tables that have certain attributes."""
    lines, with_required = [], _has_required(request)
    for group in request.groups:
        rows = f"workload.containing({literal(group.containing)}).tolist()"
        lines.append(f"tables = [workload.tables[row] for row in {rows}]")
        if group.weight is not None:
            weights = f"dict.fromkeys(tables, {literal(group.weight)})"
            lines.append(f"workload = workload.with_weights({weights})")
        if group.factor is not None:
            lines.append("weights = dict(zip(workload.tables, workload.weights.tolist()))")
            products = f"{{table: {literal(group.factor)} * weights[table] for table in tables}}"
            lines.append(f"workload = workload.with_weights({products})")
        if group.target is not None:
            targets = f"dict.fromkeys(tables, {_target(group.target, with_required)})"
            lines.append(f"workload = workload.with_targets({targets})")
    return lines


def _singles(recipe: Recipe) -> list[str]:
    """Weights and targets of single tables."""
    weights, targets, with_required = {}, {}, _has_required(recipe.request)
    for setting in recipe.settings:
        if setting.weight is not None:
            weights[setting.attributes] = repr(setting.weight)
        if setting.target is not None:
            targets[setting.attributes] = _target(setting.target, with_required)
    return [*_call_with_tables("weights", weights), *_call_with_tables("targets", targets)]


def _has_required(request: WorkloadRequest) -> bool:
    """Whether some target is required."""
    targets = [setting.target for setting in (*request.groups, *request.settings)]
    return any(target is not None and target.required for target in targets)


def _target(target: Target, with_required: bool) -> str:
    """The source of a target: a number for a standard error, or what was typed."""
    number = target.to_json()
    # A number leaves it as it was whether the target is required.
    if with_required or isinstance(number, str):
        return f"rp.parse_target({literal(str(target))})"
    return repr(number)


def _call_with_tables(noun: str, sources: Mapping[Table, str]) -> list[str]:
    if not sources:
        return []
    rows = [f"        {literal(table)}: {source}," for table, source in sources.items()]
    return [f"workload = workload.with_{noun}(", "    {", *rows, "    }", ")"]


def _basis_choices(recipe: Recipe) -> list[str]:
    """Bases other than single values: first those of all tables, then those of some."""
    lines = []
    for choice in sorted(recipe.basis_choices, key=lambda choice: bool(choice.tables)):
        file = recipe.file_of(choice)
        if file:
            lines.append(f"file = Path(__file__).with_name({literal(file)})")
        basis = _basis(choice, file)
        tables = [f"tables=[{', '.join(map(literal, choice.tables))}]"] if choice.tables else []
        bases = f"{{{literal(choice.attribute)}: {basis}}}"
        lines.append(f"workload = {call('workload.with_bases', [bases, *tables])}")
    return lines


def _basis(choice: BasisChoice, file: str) -> str:
    if file:
        attribute = f"domain[{literal(choice.attribute)}]"
        return f"rp.read_custom_basis(file.read_bytes(), file.name, {attribute})"
    values = [(getattr(choice.basis, field.name), field.default) for field in fields(choice.basis)]
    arguments = [literal(value) for value, default in values if value != default]
    return f"rp.{type(choice.basis).__name__}({', '.join(arguments)})"
