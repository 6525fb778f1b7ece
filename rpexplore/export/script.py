"""A Python script that makes a plan again outside the app, checks it, and can run the release."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rpexplore.analysis.provenance import except_found
from rpexplore.attribute import Attribute, Bins, Categories, Integers
from rpexplore.export.recipe import Recipe, budget_texts
from rpexplore.losses import Loss, SumOfVariances
from rpexplore.plan import Plan
from rpexplore.request import WorkloadRequest
from rpexplore.table_lists import Table
from rpexplore.words import rounded

FILENAME = "plan.py"

# A list of more tables, or of more importances and targets, is read from tables.csv.
MOST_LINES = 200

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
{imports}
# The plan as it was exported: its SHA-256 and the version of rpexplore that made it.
SHA256 = {sha256}
VERSION = {version}


def plan() -> rp.Plan:
    """The tables with the best noise within the budget."""
    return rp.plan(
        workload(domain()),
        loss={loss},
        budget={budget},
    )


def workload(domain: rp.Domain) -> rp.Workload:
    """The tables, their importance and their targets."""
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
    options.add_argument("--cap-rho", help="cap on what all releases of these records may cost")
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
        from rpexplore.release import release

        done = release(made, given.records, given.release, cap_rho=given.cap_rho)
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


_IMPORTS = """
import rpexplore as rp
"""
_IMPORTS_FOR_CSV = """from pathlib import Path

import rpexplore as rp
from rpexplore.table_lists import workload_from_csv
"""


def python_script(
    plan: Plan, request: WorkloadRequest | None = None, *, name: str = "", note: str = ""
) -> str:
    """A runnable script for this plan; ready beside tables.csv if `needs_tables_csv`.

    request: how the tables were asked for, where that is known
    name, note: of the scenario, as a comment
    """
    recipe = Recipe.of(plan, request)
    but = except_found(plan.workload.domain)
    return _SCRIPT.format(
        cost=f"ρ = {rounded(plan.rho, 6, 'up')}",
        unit=plan.budget.unit,
        remark=_comment(name, note, f"Nothing here was made from records{but}." if but else ""),
        imports=_IMPORTS_FOR_CSV if needs_tables_csv(recipe) else _IMPORTS,
        sha256=_literal(plan.sha256),
        version=_literal(plan.version),
        # No user text, which could end the docstring.
        taken=" but for those named above" if but else "",
        loss=_loss(plan.loss),
        budget=_budget(plan),
        workload=textwrap.indent(_workload(recipe), "    "),
        attributes=textwrap.indent(
            "\n".join(f"{_attribute(each)}," for each in recipe.domain.attributes), " " * 12
        ),
    )


def needs_tables_csv(recipe: Recipe) -> bool:
    """Whether the script reads its tables from tables.csv, being too many to write down."""
    listed = len(recipe.request.listed) if recipe.request.kind == "listed" else 0
    return listed + len(recipe.settings) > MOST_LINES


def printable(text: str) -> str:
    """Text of a user for one line of a comment, which nothing in it can end."""
    return "".join(c if c.isprintable() else "�" for c in text)


def _comment(*texts: str) -> str:
    """Texts of a user as comment lines."""
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    return "".join(f"\n# {printable(line)}" for line in lines) + ("\n" if lines else "")


# ---- the tables


def _workload(recipe: Recipe) -> str:
    if needs_tables_csv(recipe):
        return (
            'file = Path(__file__).with_name("tables.csv")  # exported along with this script\n'
            'return workload_from_csv(domain, file.read_text(encoding="utf-8"), file.name)'
        )
    lines = [*_tables(recipe), *_groups(recipe.request), *_singles(recipe)]
    return "\n".join([*lines, "return asked"])


def _tables(recipe: Recipe) -> list[str]:
    request = recipe.request
    if request.kind == "listed":
        listed = [f"    {_literal(table)}," for table in request.listed]
        return ["tables = [", *listed, "]", "asked = rp.Workload.of(domain, tables)"]
    builder = {
        "up_to": f"all_up_to(domain, {recipe.order}",
        "of_order": f"all_of_order(domain, {recipe.order}",
        "at_most_cells": f"all_with_at_most(domain, cells={request.cells}",
    }[request.kind]
    narrowed = {
        "only": request.only or None,
        "containing": request.containing or None,
        "cells": request.most_cells if request.kind != "at_most_cells" else None,
    }
    more = [f", {key}={_literal(value)}" for key, value in narrowed.items() if value is not None]
    return [f"asked = rp.Workload.{builder}{''.join(more)})"]


def _groups(request: WorkloadRequest) -> list[str]:
    """Importances and targets of all tables that have certain attributes."""
    lines = []
    for group in request.groups:
        rows = f"asked.containing({_literal(group.containing)}).tolist()"
        lines.append(f"tables = [asked.tables[row] for row in {rows}]")
        if group.weight is not None:
            weights = f"dict.fromkeys(tables, {_literal(group.weight)})"
            lines.append(f"asked = asked.with_weights({weights})")
        if group.factor is not None:
            rows = "weights = dict(zip(asked.tables, asked.weights.tolist()))"
            product = f"{{table: {_literal(group.factor)} * weights[table] for table in tables}}"
            lines += [rows, f"asked = asked.with_weights({product})"]
        if group.target is not None:
            wanted = f"dict.fromkeys(tables, {_literal(group.target)})"
            lines.append(f"asked = asked.with_targets({wanted})")
    return lines


def _singles(recipe: Recipe) -> list[str]:
    """Importances and targets of single tables."""
    weights = {each.attributes: each.weight for each in recipe.settings if each.weight is not None}
    targets = {each.attributes: each.target for each in recipe.settings if each.target is not None}
    return [*_given("weights", weights), *_given("targets", targets)]


def _given(noun: str, values: Mapping[Table, float]) -> list[str]:
    if not values:
        return []
    rows = [f"        {_literal(table)}: {value!r}," for table, value in values.items()]
    return [f"asked = asked.with_{noun}(", "    {", *rows, "    }", ")"]


# ---- the other inputs


def _attribute(attribute: Attribute) -> str:
    label = [f"label={_literal(attribute.label)}"] if attribute.label else []
    return _call("rp.Attribute", [_literal(attribute.name), _values(attribute), *label])


def _values(attribute: Attribute) -> str:
    values = attribute.values
    if isinstance(values, Integers):
        step = [f"step={values.step}"] if values.step != 1 else []
        return _call("rp.Integers", [str(values.minimum), str(values.maximum), *step])
    if isinstance(values, Bins):
        whole = [edge.is_integer() and abs(edge) < 1e15 for edge in values.edges]
        edges = [
            int(edge) if short else edge for edge, short in zip(values.edges, whole, strict=True)
        ]
        return _call("rp.Bins", [_wrapped(edges)])
    assert isinstance(values, Categories)
    labels = [f"labels={_wrapped(values.labels)}"] if values.labels != values.values else []
    return _call("rp.Categories", [_wrapped(values.values), *labels])


def _loss(loss: Loss) -> str:
    if isinstance(loss, SumOfVariances):
        return f"rp.SumOfVariances(weighting={_literal(loss.weighting)})"
    return f"rp.MaxVariance(relative_to={_literal(loss.relative_to)})"


def _budget(plan: Plan) -> str:
    given: dict[str, Any] = dict(budget_texts(plan.budget))
    if plan.budget.max_records_per_person is not None:
        given["max_records_per_person"] = plan.budget.max_records_per_person
    return f"rp.Budget({', '.join(f'{key}={_literal(value)}' for key, value in given.items())})"


# ---- literals


def _literal(value: Any) -> str:
    """A value as Python source, in double quotation marks where that needs no escapes."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    text = repr(value)
    plain = isinstance(value, str) and text.startswith("'") and '"' not in text
    return f'"{text[1:-1]}"' if plain else text


def _call(function: str, arguments: Sequence[str]) -> str:
    """A call as source, an argument on each line if it is long."""
    short = f"{function}({', '.join(arguments)})"
    if len(short) <= 76 and "\n" not in short:
        return short
    lines = "".join(textwrap.indent(f"{argument},\n", "    ") for argument in arguments)
    return f"{function}(\n{lines})"


def _wrapped(values: Iterable[Any]) -> str:
    """A tuple as source, over several lines if it is long."""
    literals = [_literal(value) for value in values]
    short = f"({', '.join(literals)}{',' if len(literals) == 1 else ''})"
    if len(short) <= 60:
        return short
    lines, line = [], ""
    for literal in literals:
        if line and len(line) + len(literal) > 70:
            lines.append(line.rstrip())
            line = ""
        line += f"{literal}, "
    lines.append(line.rstrip())
    return "(\n" + textwrap.indent("\n".join(lines), "    ") + "\n)"
