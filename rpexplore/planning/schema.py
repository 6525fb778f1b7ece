"""The JSON Schema of plan files, made of the fields that the parts declare.

`python -m rpexplore.planning.schema` writes it anew after a declaration was changed.
"""

import json
from importlib.resources import files
from pathlib import Path

from rpexplore.planning import adaptive, counts_plan_file, stated_forecast, table_plan_file
from rpexplore.planning.areas import area_fields
from rpexplore.planning.plan import FORMAT, FORMAT_VERSION, PARTS
from rpexplore.planning.plan_fields import (
    DEFINITIONS,
    Schema,
    const,
    exact,
    name,
    of_type,
    one_of,
    record,
    ref,
    rows,
    sha256,
)

FILE = f"schemas/plan-{FORMAT_VERSION}.json"

_OF_PARTS = {
    "tables": table_plan_file.FIELDS,
    "areas": area_fields.FIELDS,
    "counts": counts_plan_file.FIELDS,
    "rounds": adaptive.FIELDS,
}
_MEANING = (
    "What a release publishes, with how much noise, what it costs and what it is worth. A plan "
    "holds nothing that was read from records. It has parts, each at most once and in this order: "
    "tables (ResidualPlanner, ResidualPlanner+), areas (tables in the areas of a tree), counts "
    "(own counts, by fitness for use: Xiao, Ding, Wang, Zhang, Kifer, VLDB 2021) and rounds "
    "(adaptive tables). The budgets of the parts sum to at most that of the plan, and all protect "
    "the same unit; attributes of one name have the same values in all parts. Numbers that must be "
    "exact are texts: the text is the number. Other numbers are the shortest decimals that give "
    "the same 64-bit float. A plan file is canonical: UTF-8 without a byte order mark, LF line "
    "ends and one at the end, keys in the order in which they are required below, each once, no "
    "spaces between tokens; of the file and of each part one key a line, and where the value is a "
    "list, one item a line, as well as one row of a strategy's matrix (the part of what is "
    "measured first in adaptive tables is on one line). The SHA-256 of the file is the plan's "
    "name; any other text is refused, and `rpexplore rewrite` makes it canonical.\n"
    "Beyond this schema, of tables: every set of attributes is listed once, sets stand by number "
    "of attributes and then in the order of the domain, and attributes within a set stand in the "
    "order of the domain; the residuals are exactly the subsets of the tables without attributes "
    "of a single value, in this order of sets; classes and noise scales are listed once, in the "
    "order in which tables and residuals first use them; bases lists exactly the bases of each "
    "attribute that some table uses, single values first; strategies has one entry for each "
    "attribute of more than one value that some table has in another basis than single values, in "
    "the order of the domain; dual weights are null with the losses sum_of_variances and "
    "max_variance and numbers with any other, and the certificate's limit is a number with "
    "sum_with_bounded_max and null with any other loss; where all bases are single values, the "
    "three variances of a table are one number and there are no cells.\n"
    "Of own counts: the cells are all combinations of the attributes' values, numbered from 0, the "
    "last attribute's values changing fastest; where there are atoms, these stand for the cells. "
    "With x the counts of the cells and R the strategy, "
    "R x is measured with independent discrete Gaussian noise of variance parameter gamma_squared; "
    "the answers are D (R x), with D the matrix with the shortest rows for which D R is the matrix "
    "of the queries."
)


def plan_schema() -> Schema:
    """The schema of whole plan files."""
    fields = {
        "format": const(FORMAT, "What kind of file this is."),
        "format_version": {
            **const(FORMAT_VERSION, "Version of this description."),
            "type": "integer",
        },
        "library_version": name("Version of rpexplore that made the plan."),
        "budget": ref("budget", "The most that all parts may cost together, and whom it protects."),
        "privacy_cost": exact("Privacy cost of the plan: the exact sum of that of its parts."),
        "product_units": rows(
            record(
                amounts=name("The attribute of amounts."),
                weights=name("That of weights."),
                unit=of_type(
                    "integer",
                    "How many products of their smallest steps one of what is counted is.",
                    minimum=2,
                ),
            ),
            "Amounts and weights that a table or an own count multiplies, by name: each product "
            "is rounded to the unit, halves up. Not there where none is rounded.",
            minItems=1,
        ),
        "universe": name(
            "Which records are counted, by a condition on their own values; not there for all."
        ),
        "forecast": stated_forecast.FIELDS,
        "parts": rows(
            one_of(*map(ref, PARTS), meaning="One part; its kind says which."),
            "What is planned, each kind at most once, in the order of their definitions.",
            minItems=1,
            maxItems=len(PARTS),
        ),
        "sha256": sha256(
            "SHA-256, in hexadecimal, of the file without this line and the comma before it."
        ),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:rpexplore:schema:plan:{FORMAT_VERSION}",
        "title": f"rpexplore plan, format version {FORMAT_VERSION}",
        **record(_MEANING, **fields),
        "required": [key for key in fields if key not in ("forecast", "universe", "product_units")],
        "$defs": {**{kind: _OF_PARTS[kind] for kind in PARTS}, **DEFINITIONS},
    }


def schema_text() -> str:
    """The text of the published file."""
    return json.dumps(plan_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    path = Path(str(files("rpexplore.planning").joinpath(FILE)))
    path.write_text(schema_text(), encoding="utf-8", newline="\n")
