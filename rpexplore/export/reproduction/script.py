"""A Python script that makes a plan again outside the app, checks it, and can run the release."""

import textwrap
from dataclasses import fields
from typing import Any

from rpexplore.analysis.budget_units import typed_text
from rpexplore.common.formatting import rounded
from rpexplore.domain.attribute import Attribute, Bins, Categories, Integers
from rpexplore.domain.provenance import except_found
from rpexplore.export.reproduction.literals import call, literal, wrapped
from rpexplore.export.reproduction.recipe import Recipe
from rpexplore.export.reproduction.script_tables import needs_tables_csv, workload_source
from rpexplore.planning.loss_serialization import options_of_loss
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.plan import Plan
from rpexplore.scenarios.scenario import Scenario

FILENAME = "plan.py"

_SCRIPT = '''\
#!/usr/bin/env python3
"""The plan of a release of noisy tables, made again and checked.

    python plan.py                                     makes the plan and checks it
    python plan.py --save made.json                    ... and saves it
    python plan.py records.csv --release FOLDER        ... and runs it on records, once

Only the last one reads records. It costs {cost},
for {unit}; that is booked in the ledger beside the
records before any noise is drawn.
"""
{remark}
import argparse
import sys
{import_path}
import rpexplore as rp
{import_csv}
# The plan as it was exported: its SHA-256 and the version of rpexplore that made it.
SHA256 = {sha256}
VERSION = {version}


def plan() -> rp.Plan:
    """The tables with the best noise within the budget."""
    return rp.plan(
        workload(domain()),
        loss={loss},
        budget={budget},{uniform_reference}
    )


def workload(domain: rp.Domain) -> rp.Workload:
    """The tables, {bases}their weights and their targets."""
{workload}


def domain() -> rp.Domain:
    """The attributes and their values, which are public knowledge{taken}."""
    return rp.Domain(
        (
{attributes}
        )
    )


def main() -> None:
    options = argparse.ArgumentParser(description="Make the plan, check it, run it on records.")
    options.add_argument("records", nargs="?", help="the records, .csv or .parquet")
    options.add_argument("--release", metavar="FOLDER", help="a new folder for the noisy tables")
    options.add_argument("--save", metavar="FILE", help="where the plan goes")
    options.add_argument("--cap-rho", help="budget limit of all releases of these records")
    given = options.parse_args()
    if bool(given.records) != bool(given.release):
        options.error("to run the release, give both the records and --release FOLDER")

    made = plan()
    if made.sha256 != SHA256:
        sys.exit(difference(made))
    print(made)
    print(f"This is the exported plan (SHA-256 {{SHA256}}).")
    if given.save:
        made.save(given.save)
        print(f"Saved to {{given.save}}")
    if given.records:
        from rpexplore.releases.release import release

        done = release(made, given.records, given.release, limit_rho=given.cap_rho)
        print(f"The noisy tables are in {{done.folder}}")


def difference(made: rp.Plan) -> str:
    """Why this is not the exported plan, as far as that can be told."""
    if rp.__version__ == VERSION:
        why = "this script was changed, or numbers come out differently on this machine"
    else:
        why = f"this is rpexplore {{rp.__version__}}, and the plan was exported by {{VERSION}}"
    return (
        f"Not the exported plan: {{why}}. Nothing was saved or released.\\n"
        f"made here  {{made.sha256}}\\n"
        f"exported   {{SHA256}}\\n"
        "The exported plan.json can be used as it is: rpexplore verify plan.json"
    )


if __name__ == "__main__":
    try:
        main()
    except rp.RpexploreError as error:
        sys.exit(f"error: {{error.on_screen() if sys.stderr.isatty() else error}}")
'''


_IMPORT_PATH = "from pathlib import Path\n"
_IMPORT_CSV = "from rpexplore.workload.table_text import workload_from_csv\n"


def python_script(plan: Plan, scenario: Scenario) -> str:
    """A runnable script for a scenario's plan, in the folder of the bundle.

    There is tables.csv, which it reads if `needs_tables_csv`, and custom bases as
    `Recipe.custom_basis_files` has them.
    """
    recipe = Recipe.of(plan, scenario)
    reads_csv = needs_tables_csv(recipe)
    but = except_found(plan.workload.domain)
    remark = f"Nothing here was made from records{but}." if but else ""
    attributes = [f"{_attribute(attribute)}," for attribute in recipe.domain]
    return _SCRIPT.format(
        cost=f"ρ = {rounded(plan.rho, 6, 'up')}",
        unit=plan.budget.unit,
        remark=_comment(scenario.name, scenario.note, remark),
        import_path=_IMPORT_PATH if reads_csv or recipe.custom_basis_files else "",
        import_csv=_IMPORT_CSV if reads_csv else "",
        sha256=literal(plan.sha256),
        version=literal(plan.version),
        # No user text, which could end the docstring.
        taken=" but for those named above" if but else "",
        loss=_loss(plan.loss),
        budget=_budget(plan),
        uniform_reference="\n        uniform_reference=True," if recipe.uniform_reference else "",
        bases="the bases of their attributes, " if recipe.basis_choices else "",
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
