"""The options of the command line, and what they are turned into."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rpexplore.errors import BudgetError, DomainError, RpexploreError, WorkloadError

if TYPE_CHECKING:
    from rpexplore.domain.attribute import Attribute
    from rpexplore.domain.domain import Domain
    from rpexplore.privacy.budget import Budget
    from rpexplore.workload.custom_basis import CustomBasis
    from rpexplore.workload.workload import AttributeSet, Workload

_ONE_TABLE = (
    "One table by its attributes; total is the total. A name with a comma in it stands in double "
    "quotation marks."
)
_TABLES = (
    "A CSV file of tables, with a column attributes (written as for --table, in quotation marks; "
    "or separated by ×) and, if wanted, weight, target (written as for --target) and must (yes or "
    "no)."
)
_TARGET = (
    "Wanted accuracy of the cells of a table: a standard error (age,sex=20), a margin of error "
    "(age,sex=±50 at 95 %; +-50 does as well), or a share of an expected count (age,sex=5 % of "
    "1000). With must behind it, it has to be met: age,sex=20 required."
)
_LOSS = (
    "What the plan should give. sum: small errors on average (the default). max: a small largest "
    "error, or with --relative-to target: targets met as well as can be. musts: the targets that "
    "must be met are, then small errors of the other tables on average; required-then-targets: "
    "then their targets met as well as can be. bounded:0.1: small errors on average, the largest "
    "one at most 10 % above the smallest possible. p-norm:3: between average and largest; the "
    "larger the number, the more large errors count."
)
_WEIGHTING = (
    "Of averages (--loss sum, musts, bounded): every table counts alike (equal, the default), "
    "every cell does (cells), or between the two (sqrt)."
)
_RELATIVE_TO = (
    "With --loss max, p-norm: variances count by importance (the default), or relative to each "
    "table's target."
)
_ENOUGH_FOR = (
    "Instead of a budget: the smallest one that meets all targets (targets), or those that must be "
    "met (musts), stated as ε where there is a --delta, else as ρ. Tables without such a target "
    "get a little more; the loss is max --relative-to target where every table has a target, else "
    "musts, with all these targets as musts."
)
_ASK = (
    "How an attribute is asked, other than by each value: prefix (all up to each value), ranges "
    "(every range of values), windows:5 (rolling sums of 5 values), hierarchy (the groups of its "
    "values), hierarchy:5,20 (groups of 5 and of 20 values), custom:FILE (a matrix, .csv or .npy, "
    "one row a question), identity (each value). With @ and a table, in that table only: "
    "age=prefix@age,sex. Repeat it for more."
)
_EVEN_TOTALS = (
    "Measure attributes that are asked otherwise as classical ResidualPlanner+ does: totals are "
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
    IMPORTANCE = "importance"
    TARGET = "target"


class EnoughFor(StrEnum):
    TARGETS = "targets"
    MUSTS = "required"


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
    list[str] | None, _option("A,B=W", "Importance of a table (else 1); larger = more accurate.")
]
Target = Annotated[list[str] | None, _option("A,B=T", _TARGET)]
Ask = Annotated[list[str] | None, _option("A=WAY", _ASK)]
EvenTotals = Annotated[bool, typer.Option("--even-totals", help=_EVEN_TOTALS)]
TheLoss = Annotated[str | None, _option("LOSS", _LOSS)]
TheWeighting = Annotated[Weighting | None, typer.Option(help=_WEIGHTING)]
TheRelativeTo = Annotated[RelativeTo | None, typer.Option(help=_RELATIVE_TO)]
Rho = Annotated[str | None, _option("R", f"Budget as ρ of zCDP. {_DIRECTION}")]
Epsilon = Annotated[str | None, _option("E", f"Budget as ε, with --delta. {_DIRECTION}")]
Delta = Annotated[str | None, _option("D", f"The δ that goes with ε. {_DIRECTION}")]
Mu = Annotated[str | None, _option("M", f"Budget as μ = √(2ρ). {_DIRECTION}")]
PrivacyCost = Annotated[str | None, _option("C", f"Budget as 2ρ. {_DIRECTION}")]
TheEnoughFor = Annotated[EnoughFor | None, typer.Option(help=_ENOUGH_FOR)]
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


def budget_from_options(
    records_per_person: int | None, instead: str, **parameters: str | None
) -> "Budget":
    """The budget, from parameters still in text, so that they are exact.

    instead: the option that finds one
    """
    from rpexplore.privacy.budget import Budget

    given = {name: text for name, text in parameters.items() if text is not None}
    if set(given) not in ({"rho"}, {"epsilon", "delta"}, {"mu"}, {"privacy_cost"}):
        options = " and ".join("--" + name.replace("_", "-") for name in given)
        raise BudgetError(
            "Give the budget in one way: --rho R, or --epsilon E with --delta D, or --mu M, or "
            f"--privacy-cost C, or have it found with {instead}; got {options or 'none of them'}."
        )
    return Budget(**given, max_records_per_person=records_per_person)


def unit_from_options(
    option: str, records_per_person: int | None, delta: str | None, **parameters: str | None
) -> "Budget":
    """A budget in the unit in which one that is looked for is stated: ε with a δ, else ρ.

    option: the one that asks to look for it, with which other parameters do not go
    """
    from rpexplore.privacy.budget import Budget

    given = [name for name, text in parameters.items() if text is not None]
    if given:
        raise BudgetError(f"{option} finds the budget; leave --{given[0].replace('_', '-')} out.")
    stated = {"rho": 1} if delta is None else {"epsilon": 1, "delta": delta}
    return Budget(**stated, max_records_per_person=records_per_person)


def workload_from_options(
    domain: "Domain",
    *,
    up_to: int | None,
    of_order: Sequence[int],
    at_most_cells: int | None,
    table: Sequence[str],
    tables: Path | None,
    weight: Sequence[str],
    target: Sequence[str],
    ask: Sequence[str],
) -> "Workload":
    """The union of all tables that are asked for in any way, with weights, targets and bases."""
    from rpexplore.scenarios.basis_choice_text import (
        basis_choice_from_text,
        with_listed_basis_choices,
    )
    from rpexplore.workload.table_text import number_from_text, table_from_text, workload_from_csv
    from rpexplore.workload.targets import parse_target
    from rpexplore.workload.workload import Workload

    parts = [Workload.all_of_order(domain, order) for order in of_order]
    if up_to is not None:
        parts.append(Workload.all_up_to(domain, up_to))
    if at_most_cells is not None:
        parts.append(Workload.all_with_at_most(domain, cells=at_most_cells))
    if table:
        parts.append(Workload.of(domain, [table_from_text(domain, text) for text in table]))
    if tables is not None:
        parts.append(workload_from_csv(domain, text_of(tables), tables.name))
    if not parts:
        raise WorkloadError(
            "Say which tables: --up-to K, --of-order K, --at-most-cells N, --table A,B or "
            "--tables FILE."
        )
    united = parts[0]
    for part in parts[1:]:
        united |= part
    weights, targets = (
        _by_table(domain, options, name, example)
        for options, name, example in (
            (weight, "weight", "a number, such as age,sex=5"),
            (target, "target", "a target, such as age,sex=20 or age,sex=±50 at 95 %"),
        )
    )
    united = united.with_weights(
        {table: number_from_text(text, "weight") for table, text in weights.items()}
    )
    united = united.with_targets({table: parse_target(text) for table, text in targets.items()})
    return with_listed_basis_choices(
        united, [basis_choice_from_text(domain, text, _custom_basis_of) for text in ask]
    )


def chosen_from_options(domain: "Domain", options: Sequence[str]) -> "dict[str, list[float]]":
    """{attribute: question} of options such as age=18..24; either may hold an equals sign."""
    from rpexplore.domain.value_selection import product_query

    texts = _by_attribute(
        domain, options, "A question", "the values that count, such as age=18..24"
    )
    return product_query(domain, texts)


def other_from_options(domain: "Domain", options: Sequence[str]) -> Mapping[str, str]:
    """{attribute: value} of options such as region=R12; either may hold an equals sign."""
    return _by_attribute(
        domain, options, "--other", "the value that takes the rest, such as region=R12"
    )


def _by_attribute(
    domain: "Domain", options: Sequence[str], option: str, what: str
) -> dict[str, str]:
    """{attribute: text} of options such as region=R12; either may hold an equals sign."""
    found: dict[str, str] = {}
    for text in options:
        parts = text.split("=")
        splits = [("=".join(parts[:i]), "=".join(parts[i:])) for i in range(1, len(parts))]
        known = [(name, value) for name, value in splits if name in domain.names]
        if not known:
            raise DomainError(f"{option} {text!r} must be an attribute of the plan, =, and {what}.")
        name, value = known[0]
        if name in found:
            raise DomainError(f"{option} names {name!r} twice; name it once.")
        found[name] = value
    return found


def _by_table(
    domain: "Domain", options: Sequence[str], name: str, example: str
) -> "dict[AttributeSet, str]":
    """{table: text} of options such as age,sex=5."""
    from rpexplore.workload.table_text import table_from_text

    found: dict[AttributeSet, str] = {}
    for option in options:
        text, equals, wanted = option.rpartition("=")
        if not equals:
            raise WorkloadError(f"--{name} {option!r} must be a table, =, and {example}.")
        table = table_from_text(domain, text)
        if table in found:
            raise WorkloadError(f"--{name} names the table {text!r} twice; keep one of them.")
        found[table] = wanted
    return found


def _custom_basis_of(path: Path, attribute: "Attribute") -> "CustomBasis":
    """The own questions of a file."""
    from rpexplore.workload.custom_basis_file import read_custom_basis

    return read_custom_basis(bytes_of(path), path.name, attribute)


def text_of(path: Path) -> str:
    """The text of a file; `RpexploreError` if it cannot be read."""
    try:
        return bytes_of(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RpexploreError(f"{path.name} is not UTF-8 text; save it as UTF-8.") from None


def bytes_of(path: Path) -> bytes:
    """What a file holds; `RpexploreError` if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise RpexploreError(
            f"The file {str(path)!r} cannot be read ({error.strerror}); check the path."
        ) from None
