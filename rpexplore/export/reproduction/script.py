"""A Python script that makes a plan again outside the app, checks it, and can run the release."""

import textwrap
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from rpexplore.analysis.budget_units import typed_text
from rpexplore.common.template_text import text_from_template
from rpexplore.domain.attribute import Attribute, Bins, Categories, Integers
from rpexplore.domain.provenance import except_from_records
from rpexplore.export.reproduction.recipe import Recipe
from rpexplore.planning.loss_serialization import options_of_loss
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.conversions import rho_text
from rpexplore.scenarios.basis_choices import BasisChoice
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.targets import Target

FILENAME = "plan.py"


def python_script(plan: TablePlan, scenario: Scenario) -> str:
    """A runnable script for a scenario's plan, in the folder of the bundle.

    There is tables.csv, which it reads if `Recipe.needs_tables_csv`, and custom bases as
    `Recipe.custom_basis_files` has them.
    """
    recipe = Recipe.of(plan, scenario)
    exception = except_from_records(plan.workload.domain)
    remark = f"Nothing here was made from records{exception}." if exception else ""
    targets = [setting.target for setting in (*recipe.request.groups, *recipe.request.settings)]
    with_required = any(target is not None and target.required for target in targets)

    def source_of_target(target: Target) -> str:
        """A number for a standard error, or what was typed."""
        number = target.to_json()
        # A number leaves it as it was whether the target is required.
        if with_required or isinstance(number, str):
            return f"rp.parse_target({literal(str(target))})"
        return repr(number)

    return text_from_template(
        "rpexplore.export.reproduction",
        "plan.py.j2",
        plan=plan,
        recipe=recipe,
        request=recipe.request,
        exception=exception,
        cost=rho_text(plan.rho),
        remark=_comment(scenario.name, scenario.note, remark),
        loss=source_of_loss(plan.loss),
        budget=source_of_budget(plan.budget),
        tables=_tables(recipe),
        weights={
            setting.attributes: repr(setting.weight)
            for setting in recipe.settings
            if setting.weight is not None
        },
        targets={
            setting.attributes: source_of_target(setting.target)
            for setting in recipe.settings
            if setting.target is not None
        },
        # Bases of all tables before those of some.
        basis_choices=sorted(recipe.basis_choices, key=lambda choice: bool(choice.tables)),
        literal=literal,
        target=source_of_target,
        source_of_attribute=_attribute,
        impossible=[dict(one.selections) for one in recipe.domain.impossible],
        with_basis=lambda choice: _with_basis(choice, recipe.file_of(choice)),
    )


def printable(text: str) -> str:
    """Text of a user for one line of a comment, which nothing in it can end."""
    return "".join(c if c.isprintable() else "�" for c in text)


def _comment(*texts: str) -> str:
    """Texts of a user as comment lines."""
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    return "".join(f"\n# {printable(line)}" for line in lines) + ("\n" if lines else "")


def _attribute(attribute: Attribute) -> str:
    label = [f"label={literal(attribute.label)}"] if attribute.label else []
    groups = [f"groups={_wrapped(attribute.groups)}"] if attribute.groups else []
    return call("rp.Attribute", [literal(attribute.name), _values(attribute), *label, *groups])


def _values(attribute: Attribute) -> str:
    values = attribute.values
    if isinstance(values, Integers):
        step = [f"step={values.step}"] if values.step != 1 else []
        return call("rp.Integers", [str(values.minimum), str(values.maximum), *step])
    if isinstance(values, Bins):
        edges = [
            int(edge) if edge.is_integer() and abs(edge) < 1e15 else edge for edge in values.edges
        ]
        return call("rp.Bins", [_wrapped(edges)])
    assert isinstance(values, Categories)
    labels = [f"labels={_wrapped(values.labels)}"] if values.labels != values.values else []
    return call("rp.Categories", [_wrapped(values.values), *labels])


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
    if budget.max_records_per_person is not None:
        arguments.append(f"max_records_per_person={budget.max_records_per_person}")
    return f"rp.Budget({', '.join(arguments)})"


def _tables(recipe: Recipe) -> str:
    """The call that makes the tables, unless they are listed."""
    request = recipe.request
    if request.kind == "listed":
        return ""
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
    return f"{builder})"


def _with_basis(choice: BasisChoice, file: str) -> str:
    """The call that gives a workload a basis; file: that of a custom one, else ""."""
    bases = f"{{{literal(choice.attribute)}: {_basis(choice, file)}}}"
    tables = [f"tables=[{', '.join(map(literal, choice.tables))}]"] if choice.tables else []
    return call("workload.with_bases", [bases, *tables])


def _basis(choice: BasisChoice, file: str) -> str:
    if file:
        attribute = f"domain[{literal(choice.attribute)}]"
        return f"rp.read_custom_basis(file.read_bytes(), file.name, {attribute})"
    values = [(getattr(choice.basis, field.name), field.default) for field in fields(choice.basis)]
    arguments = [literal(value) for value, default in values if value != default]
    return f"rp.{type(choice.basis).__name__}({', '.join(arguments)})"


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


def _wrapped(values: Sequence[Any]) -> str:
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
