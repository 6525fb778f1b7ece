"""The command line: the same verbs as the app."""

import math
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rpexplore.cli_output import (
    Stopped,
    Verbs,
    amount,
    number,
    progress,
    refuse_existing,
    say,
    say_json,
    text_table,
    write_whole,
)
from rpexplore.errors import RpexploreError

if TYPE_CHECKING:  # the verbs import what they need themselves, so that --help answers at once
    from rpexplore.budget import Budget
    from rpexplore.domain import Domain
    from rpexplore.ledger import Account
    from rpexplore.losses import Loss
    from rpexplore.plan import Plan
    from rpexplore.workload import Workload

cli = typer.Typer(
    cls=Verbs,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

SHOWN_TABLES = 20
DELTAS = ("1e-6", "1e-9", "1e-12")


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


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")]
PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan file.")]
Codebook = Annotated[
    Path,
    typer.Argument(
        metavar="CODEBOOK", help="Table Schema (.json), or attribute,value,label (.csv)."
    ),
]
Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="The records, .csv or .parquet, one row a record.")
]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", metavar="FILE", help="The ledger; else the one beside the data."),
]


def main() -> None:
    """What the `rpexplore` command runs."""
    cli()


@cli.callback(invoke_without_command=True)
def program(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Plan, inspect and run the release of noisy tables under differential privacy.

    The way: schema, plan, show, verify, release. Only release reads records.
    """
    if version:
        from importlib.metadata import version as installed_version

        say(f"rpexplore {installed_version('rpexplore')}")
    elif context.invoked_subcommand is None:
        say(context.get_help())


@cli.command()
def schema(
    codebook: Codebook,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write it there, as .json or .csv.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Show the attributes of a codebook, or convert it."""
    from rpexplore.domain import Domain

    domain = Domain.load(codebook)
    if out is not None:
        write_whole(out, domain.text(out.name), force)
    kinds = {"Categories": "categories", "Integers": "whole numbers", "Bins": "bins"}
    rows = [
        {
            "name": attribute.name,
            "label": attribute.label,
            "kind": kinds[type(attribute.values).__name__],
            "values": attribute.size,
            "first_values": [attribute.values.label(i) for i in range(min(attribute.size, 4))],
        }
        for attribute in domain.attributes
    ]
    cells = math.prod(domain.sizes.tolist())
    if as_json:
        say_json({"attributes": rows, "cells": cells, "out": out and str(out)})
        return
    header = ("name", "label", "kind", "values", "first values")
    shown = [
        (row["name"], row["label"], row["kind"], f"{row['values']:,}", _first_values(row))
        for row in rows
    ]
    say(text_table([header, *shown], "<<<><"))
    say(f"\n{len(domain)} attributes; all of them together have {_large(cells)} cells.")
    if out is not None:
        say(f"Written to {out}.")


@cli.command()
def plan(
    codebook: Codebook,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the plan goes.")],
    loss: Annotated[
        LossKind,
        typer.Option(help="What to make small: the sum of all variances, or the largest one."),
    ],
    up_to: Annotated[
        int | None, typer.Option(metavar="K", help="The total and all tables of up to K attributes.")
    ] = None,
    of_order: Annotated[
        list[int] | None, typer.Option(metavar="K", help="All tables of exactly K attributes.")
    ] = None,
    at_most_cells: Annotated[
        int | None, typer.Option(metavar="N", help="All tables with at most N cells.")
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="One table by its attributes; 'total' is the total. A name with a comma in it "
            "stands in double quotation marks.",
        ),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A CSV file of tables: a column attributes (names as for --table) and, if "
            "wanted, weight and target.",
        ),
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B=W", help="Importance of a table; larger = more accurate. Else 1."
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B=S", help="Wanted standard error of a table's cells."),
    ] = None,
    weighting: Annotated[
        Weighting | None,
        typer.Option(
            help="With --loss sum: every table counts alike (equal, the default), every cell does "
            "(cells), or between the two (sqrt)."
        ),
    ] = None,
    relative_to: Annotated[
        RelativeTo | None,
        typer.Option(help="With --loss max: variances count by importance (the default), or "
                     "relative to each table's target."),
    ] = None,
    rho: Annotated[
        str | None,
        typer.Option(metavar="R", help="Budget as ρ (zCDP). Smaller = more private, less accurate."),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(
            metavar="E", help="Budget as ε, with --delta. Smaller = more private, less accurate."
        ),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(metavar="D", help="δ for --epsilon. Smaller = more private, less accurate."),
    ] = None,
    mu: Annotated[
        str | None,
        typer.Option(metavar="M", help="Budget as μ = √(2ρ). Smaller = more private, less accurate."),
    ] = None,
    privacy_cost: Annotated[
        str | None,
        typer.Option(metavar="C", help="Budget as 2ρ. Smaller = more private, less accurate."),
    ] = None,
    records_per_person: Annotated[
        int | None,
        typer.Option(
            metavar="M",
            help="Protect a person with at most M records, not only one record. Larger M = less "
            "accurate for the same budget.",
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Find the most accurate plan within a privacy budget, and save it.

    Say which tables in one or several ways; a table that is named twice is an error. Give the
    budget in one way. Numbers are exact: 0.1 and 1/3 mean just that. No records are needed.
    """
    from rpexplore import planner
    from rpexplore.domain import Domain

    refuse_existing(out, force)
    domain = Domain.load(codebook)
    objective = _loss(loss, weighting, relative_to)
    budget = _budget(
        records_per_person, rho=rho, epsilon=epsilon, delta=delta, mu=mu, privacy_cost=privacy_cost
    )
    with progress("Listing the tables"):
        workload = _workload(domain, up_to, of_order or [], at_most_cells, table or [], tables)
        workload = workload.with_weights(_numbers_by_table(domain, weight or [], "weight"))
        workload = workload.with_targets(_numbers_by_table(domain, target or [], "target"))
    with progress(f"Planning {len(workload):,} tables"):
        made = planner.plan(workload, loss=objective, budget=budget)
        refuse_existing(out, force)
        made.save(out)
    if as_json:
        say_json({"plan": str(out), **_facts(made)})
    else:
        say(str(made))
        say(f"\nSaved to {out}, SHA-256 {made.sha256}")


@cli.command()
def show(
    plan_file: PlanFile,
    tables: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help=f"How many tables (else {SHOWN_TABLES}), worst first."),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all tables to a CSV file.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Show what a plan promises, table by table."""
    from rpexplore.table_lists import text_from_table

    if csv is not None:
        refuse_existing(csv, force)
    with progress("Reading the plan"):
        loaded = _loaded(plan_file)
        rows = loaded.tables.sort_values("standard_error", ascending=False, kind="stable")
    if csv is not None:
        as_text = rows.assign(attributes=rows["attributes"].map(text_from_table))
        write_whole(csv, as_text.to_csv(index=False, lineterminator="\n"), force)
    if as_json:
        listed = rows if tables is None else rows.head(tables)
        records = [
            {name: None if value != value else value for name, value in row.items()}
            for row in listed.to_dict("records")
        ]
        say_json({**_facts(loaded), "tables": records, "csv": csv and str(csv)})
        return
    say(str(loaded))
    shown = rows.head(SHOWN_TABLES if tables is None else tables)
    if len(shown):
        say(f"\n{_accuracy_table(shown)}")
    if len(shown) < len(rows):
        say(
            f"… and {len(rows) - len(shown):,} more tables; --tables {len(rows)} shows all, "
            "--csv FILE writes all."
        )
    if csv is not None:
        say(f"All {len(rows):,} tables are in {csv}.")


@cli.command()
def verify(plan_file: PlanFile, as_json: AsJson = False) -> None:
    """Check that a plan holds what it claims; exit code 0 if it does, 1 if not.

    Privacy cost, variances and optimality are computed again from the file alone.
    """
    from rpexplore import verification

    with progress("Checking the plan"):
        loaded = _loaded(plan_file)
        found = verification.verify(loaded)
    if as_json:
        checks = [{"name": c.name, "holds": c.holds, "finding": c.finding} for c in found.checks]
        guarantee = found.guarantee if found.holds else None
        say_json({"holds": found.holds, "sha256": loaded.sha256, "checks": checks,
                  "guarantee": guarantee})
    else:
        say(str(found))
    raise typer.Exit(0 if found.holds else 1)


@cli.command()
def release(
    plan_file: PlanFile,
    data: Data,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="A new folder for the tables.")],
    other: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A=V", help="Count what is missing or unknown in attribute A as its value V."
        ),
    ] = None,
    ledger: LedgerFile = None,
    cap_rho: Annotated[
        str | None,
        typer.Option(
            metavar="X",
            help="Cap on the data's total ρ over all releases, for whom the plan protects; kept "
            "in the ledger.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before running.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a plan on records: spend its budget once, and write noisy tables.

    The run is booked in the ledger before any noise is drawn, and stays charged if it is stopped.
    """
    import sys

    from rpexplore.ledger import Ledger
    from rpexplore.privacy import exact_fraction
    from rpexplore.release import release as run

    loaded = _loaded(plan_file)
    factor = loaded.budget.records_factor
    book = Ledger(ledger) if ledger is not None else Ledger.beside(data)
    before = book.account(data)
    cap = before.cap_record_rho
    if cap_rho is not None:
        cap = exact_fraction(cap_rho, "--cap-rho") / factor
    if not as_json:
        say(f"Plan      {plan_file}, SHA-256 {loaded.sha256}")
        say(f"Protects  {loaded.budget.unit}; all ρ below are for that")
        say(f"Charges   ρ = {amount(loaded.rho)}, once the records have been read")
        say(f"Spent     ρ = {amount(before.spent_record_rho * factor)} so far on this data")
        say(f"Cap       {'none' if cap is None else f'ρ = {amount(cap * factor)}'}")
    if sys.stdin.isatty() and not yes and not typer.confirm("Run it?", err=True):
        raise RpexploreError("Not run: nothing was charged and nothing written.")
    others = dict(_other(loaded, text) for text in other or [])
    try:
        with progress("Starting") as tell:
            done = run(
                loaded, data, out, other=others, ledger=ledger, cap_rho=cap_rho, progress=tell
            )
    except KeyboardInterrupt:
        raise Stopped(_after_stop(before, book.account(data), factor)) from None
    after = book.account(data)
    charged = after.spent_record_rho - before.spent_record_rho
    if as_json:
        say_json(
            {
                "folder": str(done.folder),
                "tables": len(loaded.workload),
                "plan_sha256": loaded.sha256,
                "unit": loaded.budget.unit,
                "charged_rho": _exact(charged * factor),
                **_account_facts(after, factor),
            }
        )
    else:
        say(f"\nThe {len(loaded.workload):,} tables are in {done.folder}.")
        say(f"Charged ρ = {amount(charged * factor)}; spent on this data so far: "
            f"ρ = {amount(after.spent_record_rho * factor)}.")


@cli.command()
def ledger(
    data: Data,
    ledger: LedgerFile = None,
    cap_rho: Annotated[
        str | None,
        typer.Option(metavar="X", help="Set the cap on the data's total ρ for one record."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what has been spent on some data, in ρ for one record, and set its cap."""
    from rpexplore.ledger import Ledger
    from rpexplore.privacy import exact_fraction

    book = Ledger(ledger) if ledger is not None else Ledger.beside(data)
    if not data.exists() and not book.account(data).runs:
        raise RpexploreError(f"There are no records at {str(data)!r}; check the path.")
    if cap_rho is not None:
        book.set_cap(data, exact_fraction(cap_rho, "--cap-rho"))
    account = book.account(data)
    if as_json:
        runs = [
            {
                "id": run.id,
                "started": run.started,
                "plan_sha256": run.plan_sha256,
                "record_rho": _exact(run.record_rho),
                "state": run.state,
                "output": run.output,
            }
            for run in account.runs
        ]
        say_json({"dataset": account.dataset, **_account_facts(account, 1), "runs": runs})
        return
    cap = account.cap_record_rho
    say(f"{account.dataset}: ρ = {amount(account.spent_record_rho)} spent for one record; "
        + ("no cap" if cap is None else f"cap {amount(cap)}"))
    if account.runs:
        header = ("run", "started", "ρ", "state", "plan", "output")
        shown = [
            (str(r.id), r.started, amount(r.record_rho), r.state, r.plan_sha256[:12], r.output)
            for r in account.runs
        ]
        say(f"\n{text_table([header, *shown], '><><<<')}")


@cli.command()
def app(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where it listens.")] = 8501,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address.")
    ] = False,
) -> None:
    """Open the app in the browser. It can be reached from this machine only."""
    from rpexplore.webapp_process import serve

    serve(port, open_browser=not no_browser)
