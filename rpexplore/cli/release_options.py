"""Options that say where records are, and how many of them one person may have."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rpexplore.errors import RpexploreError

if TYPE_CHECKING:
    from rpexplore.data.source import PersonRule, Source

_DATA = (
    "The records, one row a record: a .csv or .parquet file, or a folder of such, in parts such as "
    "year=2026/ where these are columns."
)
_DATABASE = (
    "Instead of DATA: the name of a connection to a database, which an environment variable of "
    "that name holds, or [connections] in the file of secrets."
)
_PERSON_ID = (
    "The column that says whose a record is, for a plan that protects a person with at most M "
    "records: that nobody has more is then seen to, not taken for granted."
)
_EXCESS = (
    "What to do about persons with more records: refuse (the default) or keep-first, which counts "
    "their first M."
)
_PERSON_ORDER = (
    "With keep-first: the column whose smallest values come first; else the order of the file. A "
    "database needs it."
)


class WhatToDo(StrEnum):
    REFUSE = "refuse"
    KEEP_FIRST = "keep-first"


def _option(metavar: str, text: str, *names: str):
    return typer.Option(*names, metavar=metavar, help=text)


PlanToRun = Annotated[Path | None, typer.Argument(metavar="PLAN", help="A plan file.")]
MaybeData = Annotated[Path | None, typer.Argument(metavar="DATA", help=_DATA)]
FolderToFill = Annotated[Path | None, _option("FOLDER", "A new folder for the tables. Required.")]
Database = Annotated[str | None, _option("NAME", _DATABASE)]
TableOfDatabase = Annotated[
    str | None, _option("TABLE", "The table or view with the records: TABLE or SCHEMA.TABLE.")
]
PersonId = Annotated[str | None, _option("COLUMN", _PERSON_ID)]
Excess = Annotated[WhatToDo | None, typer.Option(help=_EXCESS)]
PersonOrder = Annotated[str | None, _option("COLUMN", _PERSON_ORDER)]
OnlyCheck = Annotated[
    bool, typer.Option("--dry-run", help="Check everything, the records too; spend nothing.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Finish a stopped run into --out, without drawing again.")
]


def source_from_options(data: Path | None, database: str | None, table: str | None) -> "Source":
    """The records: those of a path, or of a table in a database."""
    from rpexplore.data.databases.connections import connection_named
    from rpexplore.data.databases.source import DatabaseSource
    from rpexplore.data.files.source import FileSource

    if (data is None) == (database is None):
        got = "neither" if data is None else "both"
        raise RpexploreError(
            f"Say where the records are in one way: DATA, or --database NAME; got {got}."
        )
    if (table is None) != (database is None):
        raise RpexploreError("--database NAME and --table TABLE go together; give both.")
    if data is not None:
        return FileSource(data)
    assert database is not None
    assert table is not None
    return DatabaseSource(connection_named(database), table)


def person_rule_from_options(
    column: str | None, excess: WhatToDo | None, order: str | None, most: int | None
) -> "PersonRule | None":
    """How many records of one person are counted; most: what the plan allows, None for a record."""
    from rpexplore.data.source import PersonRule

    if column is None:
        for name, value in (("--excess", excess), ("--person-order", order)):
            if value is not None:
                raise RpexploreError(f"{name} goes with --person-id COLUMN; give both, or neither.")
        return None
    if most is None:
        raise RpexploreError(
            "The plan protects one record, whoever it belongs to, so --person-id has nothing to "
            "see to; leave it out, or plan with --records-per-person M."
        )
    if order is not None and excess is not WhatToDo.KEEP_FIRST:
        raise RpexploreError("--person-order goes with --excess keep-first; give both, or neither.")
    kept = excess is WhatToDo.KEEP_FIRST
    return PersonRule(column, most, "keep first" if kept else "refuse", order)
