"""The options of the command line, and what they are turned into."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rpexplore.errors import BudgetError, DomainError, RpexploreError, WorkloadError

if TYPE_CHECKING:
    from rpexplore.attribute import Attribute
    from rpexplore.budget import Budget
    from rpexplore.domain import Domain
    from rpexplore.losses import Loss
    from rpexplore.own_questions import Own
    from rpexplore.workload import AttributeSet, Workload

_ONE_TABLE = (
    "One table by its attributes; total is the total. A name with a comma in it stands in double "
    "quotation marks."
)
_TABLES = (
    "A CSV file of tables, with a column attributes (written as for --table, in quotation marks; "
    "or separated by ×) and, if wanted, weight and target."
)
_WEIGHTING = (
    "With --loss sum: every table counts alike (equal, the default), every cell does (cells), or "
    "between the two (sqrt)."
)
_RELATIVE_TO = (
    "With --loss max: variances count by importance (the default), or relative to each table's "
    "target."
)
_ASK = (
    "How an attribute is asked, other than by each value: prefix (all up to each value), ranges "
    "(every range of values), windows:5 (rolling sums of 5 values), hierarchy (the groups of its "
    "values), hierarchy:5,20 (groups of 5 and of 20 values), own:FILE (a matrix, .csv or .npy, one "
    "row a question), identity (each value). With @ and a table, in that table only: "
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


class LossKind(StrEnum):
    SUM = "sum"
    MAX = "max"


class Weighting(StrEnum):
    EQUAL = "equal"
    CELLS = "cells"
    SQRT = "sqrt"


class RelativeTo(StrEnum):
    IMPORTANCE = "importance"
    TARGET = "target"


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
Target = Annotated[
    list[str] | None, _option("A,B=S", "Wanted standard error of the cells of a table.")
]
Ask = Annotated[list[str] | None, _option("A=WAY", _ASK)]
EvenTotals = Annotated[bool, typer.Option("--even-totals", help=_EVEN_TOTALS)]
TheLoss = Annotated[
    LossKind, typer.Option(help="What to make small: the sum of all variances, or the largest.")
]
TheWeighting = Annotated[Weighting | None, typer.Option(help=_WEIGHTING)]
TheRelativeTo = Annotated[RelativeTo | None, typer.Option(help=_RELATIVE_TO)]
Rho = Annotated[str | None, _option("R", f"Budget as ρ of zCDP. {_DIRECTION}")]
Epsilon = Annotated[str | None, _option("E", f"Budget as ε, with --delta. {_DIRECTION}")]
Delta = Annotated[str | None, _option("D", f"The δ for --epsilon. {_DIRECTION}")]
Mu = Annotated[str | None, _option("M", f"Budget as μ = √(2ρ). {_DIRECTION}")]
PrivacyCost = Annotated[str | None, _option("C", f"Budget as 2ρ. {_DIRECTION}")]
RecordsPerPerson = Annotated[int | None, _option("M", _PERSON)]

PlanFile = Annotated[Path, _argument("PLAN", "A plan file.")]
HowMany = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="How many tables, worst first (else 20).")
]
CsvOut = Annotated[Path | None, _option("FILE", "Write all tables to a CSV file.")]

ReportOut = Annotated[
    Path, _option("FILE", "Where the report goes: .html, or .pdf (with the extra rpexplore[pdf]).")
]
ReportName = Annotated[str, _option("TEXT", "What to call the plan in the report.")]
ReportNote = Annotated[str, _option("TEXT", "A remark to print in the report.")]
Counted = Annotated[str, _option("WORD", "What one record stands for, in the plural: people, say.")]

Data = Annotated[Path, _argument("DATA", "The records, .csv or .parquet, one row a record.")]
ReleaseFolder = Annotated[Path, _argument("RELEASE", "The folder of a release.")]
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


def loss_from_options(
    kind: LossKind, weighting: Weighting | None, relative_to: RelativeTo | None
) -> "Loss":
    """The loss; an option that belongs to the other one is refused, not passed over."""
    from rpexplore.losses import MaxVariance, SumOfVariances

    if kind is LossKind.SUM:
        if relative_to is not None:
            raise WorkloadError("--relative-to belongs to --loss max; leave it out.")
        return SumOfVariances(weighting=weighting or "equal")
    if weighting is not None:
        raise WorkloadError(
            "--weighting belongs to --loss sum; with --loss max give tables a --weight."
        )
    return MaxVariance(relative_to=relative_to or "importance")


def budget_from_options(records_per_person: int | None, **parameters: str | None) -> "Budget":
    """The budget, from parameters still in text, so that they are exact."""
    from rpexplore.budget import Budget

    given = {name: text for name, text in parameters.items() if text is not None}
    if set(given) not in ({"rho"}, {"epsilon", "delta"}, {"mu"}, {"privacy_cost"}):
        options = " and ".join("--" + name.replace("_", "-") for name in given)
        raise BudgetError(
            "Give the budget in one way: --rho R, or --epsilon E with --delta D, or --mu M, or "
            f"--privacy-cost C; got {options or 'none of them'}."
        )
    return Budget(**given, max_records_per_person=records_per_person)


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
    """The union of all tables that are asked for in any way, with weights, targets and askings."""
    from rpexplore.asking_text import asked_as_listed, asking_from_text
    from rpexplore.table_lists import table_from_text, workload_from_csv
    from rpexplore.workload import Workload

    parts = [Workload.all_of_order(domain, order) for order in of_order]
    if up_to is not None:
        parts.append(Workload.all_up_to(domain, up_to))
    if at_most_cells is not None:
        parts.append(Workload.all_with_at_most(domain, cells=at_most_cells))
    if table:
        parts.append(Workload.of(domain, [table_from_text(domain, text) for text in table]))
    if tables is not None:
        parts.append(workload_from_csv(domain, _text_of(tables), tables.name))
    if not parts:
        raise WorkloadError(
            "Say which tables: --up-to K, --of-order K, --at-most-cells N, --table A,B or "
            "--tables FILE."
        )
    united = parts[0]
    for part in parts[1:]:
        united |= part
    united = united.with_weights(_numbers_by_table(domain, weight, "weight"))
    united = united.with_targets(_numbers_by_table(domain, target, "target"))
    return asked_as_listed(united, [asking_from_text(domain, text, _own_of) for text in ask])


def chosen_from_options(domain: "Domain", options: Sequence[str]) -> "dict[str, list[float]]":
    """{attribute: question} of options such as age=18..24; either may hold an equals sign."""
    from rpexplore.selection import chosen

    texts = _by_attribute(
        domain, options, "A question", "the values that count, such as age=18..24"
    )
    return {name: chosen(domain[name], text) for name, text in texts.items()}


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


def _numbers_by_table(
    domain: "Domain", options: Sequence[str], name: str
) -> "dict[AttributeSet, float]":
    """{table: number} of options such as age,sex=5."""
    from rpexplore.table_lists import number_from_text, table_from_text

    found: dict[AttributeSet, float] = {}
    for option in options:
        text, equals, number = option.rpartition("=")
        if not equals:
            raise WorkloadError(
                f"--{name} {option!r} must be a table, =, and a number, such as age,sex=5."
            )
        table = table_from_text(domain, text)
        if table in found:
            raise WorkloadError(f"--{name} names the table {text!r} twice; keep one of them.")
        found[table] = number_from_text(number, name)
    return found


def _own_of(path: Path, attribute: "Attribute") -> "Own":
    """The own questions of a file."""
    from rpexplore.basis_file import own_from_bytes

    return own_from_bytes(_bytes_of(path), path.name, attribute)


def _text_of(path: Path) -> str:
    try:
        return _bytes_of(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RpexploreError(f"{path.name} is not UTF-8 text; save it as UTF-8.") from None


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RpexploreError(
            f"The file {str(path)!r} cannot be read ({error.strerror}); check the path."
        ) from None
