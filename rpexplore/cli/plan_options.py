"""The options of the command line, one name each for all verbs that have them."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rpexplore.workload.bases import BASES

_ONE_TABLE = (
    "One table by its attributes; total is the total. A name with a comma in it stands in double "
    "quotation marks."
)
_TABLES = (
    "A CSV file of tables, with a column attributes (written as for --table, in quotation marks; "
    "or separated by ×) and, if wanted, weight, target (written as for --target) and required "
    "(yes or "
    "no)."
)
_TARGET = (
    "Wanted accuracy of the cells of a table: a standard error (age,sex=20), a margin of error "
    "(age,sex=±50 at 95 %; +-50 does as well), or a share of an expected count (age,sex=5 % of "
    "1000). With required behind it, it has to be met: age,sex=20 required."
)
_LOSS = (
    "The objective. sum: minimise the average error (the default). max: minimise the largest "
    "error, or with --relative-to target the largest shortfall from targets. required: meet "
    "required targets, then minimise the average error of the other tables; required-then-targets: "
    "then the largest shortfall from their targets. bounded:0.1: minimise the average error, with "
    "the largest one at most 10 % above the smallest possible. p-norm:3: a compromise between "
    "average and largest; the larger the number, the nearer to the largest."
)
_WEIGHTING = (
    "Of averages (--loss sum, required, bounded): equal weight per table (equal, the default), per "
    "cell (cells), or between the two (sqrt)."
)
_RELATIVE_TO = (
    "With --loss max, p-norm: variances count by weight (the default), or relative to each "
    "table's target."
)
_MINIMUM_BUDGET = (
    "Instead of a budget: the smallest one that meets all targets (targets), or those that must be "
    "met (required), stated as ε where there is a --delta, else as ρ. Tables without such a target "
    "get a little more; the loss is max --relative-to target where every table has a target, else "
    "required, with all these targets as required ones."
)
_BASIS = (
    "The basis of an attribute, other than single values: "
    + ", ".join(basis.option_help for basis in BASES.values())
    + ". With @ and a table, in that table only: age=prefix@age,sex. Repeat it for more."
)
_UNIFORM_REFERENCE = (
    "Measure attributes with another basis as classical ResidualPlanner+ does: totals are "
    "spread evenly over the values, which is less accurate."
)
_PERSON = (
    "Protect a person with at most M records, rather than one record. Larger M = less accurate "
    "for the same budget."
)
_DIRECTION = "Smaller = more private, less accurate."


class Weighting(StrEnum):
    EQUAL = "equal"
    CELLS = "cells"
    SQRT = "sqrt"


class RelativeTo(StrEnum):
    WEIGHT = "weight"
    TARGET = "target"


class MinimumBudgetFor(StrEnum):
    TARGETS = "targets"
    REQUIRED = "required"


def _option(metavar: str, text: str, *names: str):
    return typer.Option(*names, metavar=metavar, help=text)


def _argument(metavar: str, text: str):
    return typer.Argument(metavar=metavar, help=text)


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")]

Codebook = Annotated[
    Path, _argument("CODEBOOK", "Table Schema (.json), or attribute,value,label (.csv).")
]
Converted = Annotated[Path | None, _option("FILE", "Also write it there, as .json or .csv.")]

PlanOut = Annotated[Path, _option("FILE", "Where the plan goes.")]
UpTo = Annotated[int | None, _option("K", "The total and all tables of up to K attributes.")]
OfOrder = Annotated[list[int] | None, _option("K", "All tables of exactly K attributes.")]
AtMostCells = Annotated[int | None, _option("N", "All tables with at most N cells.")]
Table = Annotated[list[str] | None, _option("A,B", _ONE_TABLE)]
TablesFile = Annotated[Path | None, _option("FILE", _TABLES)]
Weight = Annotated[
    list[str] | None, _option("A,B=W", "Weight of a table (else 1); larger = more accurate.")
]
Target = Annotated[list[str] | None, _option("A,B=T", _TARGET)]
Basis = Annotated[list[str] | None, _option("A=BASIS", _BASIS)]
UniformReference = Annotated[bool, typer.Option("--uniform-reference", help=_UNIFORM_REFERENCE)]
TheLoss = Annotated[str | None, _option("LOSS", _LOSS)]
TheWeighting = Annotated[Weighting | None, typer.Option(help=_WEIGHTING)]
TheRelativeTo = Annotated[RelativeTo | None, typer.Option(help=_RELATIVE_TO)]
Rho = Annotated[str | None, _option("R", f"Budget as ρ of zCDP. {_DIRECTION}")]
Epsilon = Annotated[str | None, _option("E", f"Budget as ε, with --delta. {_DIRECTION}")]
Delta = Annotated[str | None, _option("D", f"The δ that goes with ε. {_DIRECTION}")]
Mu = Annotated[str | None, _option("M", f"Budget as μ = √(2ρ). {_DIRECTION}")]
PrivacyCost = Annotated[str | None, _option("C", f"Budget as 2ρ. {_DIRECTION}")]
TheMinimumBudget = Annotated[MinimumBudgetFor | None, typer.Option(help=_MINIMUM_BUDGET)]
RecordsPerPerson = Annotated[int | None, _option("M", _PERSON)]

PlanFile = Annotated[Path, _argument("PLAN", "A plan file.")]
HowMany = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="How many tables or queries, worst first (else 20)."),
]
CsvOut = Annotated[Path | None, _option("FILE", "Write all of them to a CSV file.")]

ReportOut = Annotated[
    Path,
    _option("FILE", "Where the report goes: .html, or .pdf (printed by Chromium, Chrome or Edge)."),
]
ReportName = Annotated[str, _option("TEXT", "What to call the plan in the report.")]
ReportNote = Annotated[str, _option("TEXT", "A remark to print in the report.")]
RecordNoun = Annotated[
    str, _option("WORD", "What one record stands for, in the plural: people, say.")
]

ReleaseFolder = Annotated[
    Path, _argument("RELEASE", "The folder of a release, or of combined tables.")
]
Chosen = Annotated[
    list[str] | None,
    _argument(
        "A=VALUES",
        "The values of an attribute that count: one by its label (sex=Female), a range "
        "(age=18..24, age=65..), a group of values, or several of these separated by commas.",
    ),
]
Folder = Annotated[Path, _option("FOLDER", "A new folder for the tables.")]
Other = Annotated[
    list[str] | None,
    _option("A=V", "Count what is missing or unknown in attribute A as its value V."),
]
LedgerFile = Annotated[
    Path | None, _option("FILE", "The ledger; else the one in the folder of the data.", "--ledger")
]
CapForUnit = Annotated[
    str | None,
    _option("X", "Cap on ρ over all releases of this data, for whom the plan protects."),
]
CapForRecord = Annotated[
    str | None, _option("X", "Set the cap on ρ over all releases, for one record; none lifts it.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before the run.")]

Port = Annotated[int, typer.Option(min=1, max=65535, help="Where the app listens.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the address.")]
