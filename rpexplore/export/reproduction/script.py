"""A Python script that makes a plan again outside the app, checks it, and can run the release."""

import textwrap
from dataclasses import fields
from importlib.resources import files
from typing import Any

import jinja2

from rpexplore.analysis.budget_units import typed_text
from rpexplore.common.formatting import rounded
from rpexplore.domain.attribute import Attribute, Bins, Categories, Integers
from rpexplore.domain.provenance import except_from_records
from rpexplore.export.reproduction.literals import call, literal, wrapped
from rpexplore.export.reproduction.recipe import Recipe
from rpexplore.export.reproduction.script_tables import needs_tables_csv, workload_source
from rpexplore.planning.loss_serialization import options_of_loss
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.plan import Plan
from rpexplore.scenarios.scenario import Scenario

FILENAME = "plan.py"


def python_script(plan: Plan, scenario: Scenario) -> str:
    """A runnable script for a scenario's plan, in the folder of the bundle.

    There is tables.csv, which it reads if `needs_tables_csv`, and custom bases as
    `Recipe.custom_basis_files` has them.
    """
    recipe = Recipe.of(plan, scenario)
    reads_csv = needs_tables_csv(recipe)
    exception = except_from_records(plan.workload.domain)
    remark = f"Nothing here was made from records{exception}." if exception else ""
    attributes = [f"{_attribute(attribute)}," for attribute in recipe.domain]
    template = files("rpexplore.export.reproduction") / "templates" / "plan.py.j2"
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(template.read_text(encoding="utf-8")).render(
        recipe=recipe,
        reads_csv=reads_csv,
        reads_files=reads_csv or recipe.custom_basis_files,
        exception=exception,
        cost=f"ρ = {rounded(plan.rho, 6, 'up')}",
        unit=plan.budget.unit,
        remark=_comment(scenario.name, scenario.note, remark),
        sha256=literal(plan.sha256),
        version=literal(plan.version),
        loss=_loss(plan.loss),
        budget=_budget(plan),
        workload=textwrap.indent(workload_source(recipe), "    "),
        attributes=textwrap.indent("\n".join(attributes), " " * 12),
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
    groups = [f"groups={wrapped(attribute.groups)}"] if attribute.groups else []
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
        return call("rp.Bins", [wrapped(edges)])
    assert isinstance(values, Categories)
    labels = [f"labels={wrapped(values.labels)}"] if values.labels != values.values else []
    return call("rp.Categories", [wrapped(values.values), *labels])


def _loss(loss: Loss) -> str:
    """The constructor of a loss; raises `PlanError` for a custom one."""
    options_of_loss(loss)  # refuses what cannot be written down
    parameters: Any = loss  # a dataclass, as all losses are
    names = [field.name for field in fields(parameters)]
    arguments = [f"{name}={literal(getattr(loss, name))}" for name in names]
    return f"rp.{type(loss).__name__}({', '.join(arguments)})"


def _budget(plan: Plan) -> str:
    arguments = [f"{name}={literal(typed_text(value))}" for name, value in plan.budget.stated]
    if plan.budget.max_records_per_person is not None:
        arguments.append(f"max_records_per_person={plan.budget.max_records_per_person}")
    return f"rp.Budget({', '.join(arguments)})"
