"""The verbs of planning: schema, plan, show, verify, report."""

import math

import typer

from rpexplore.cli import plan_inputs
from rpexplore.cli import plan_options as options
from rpexplore.cli.console import progress, refuse_existing, say, say_json, write_new
from rpexplore.errors import RpexploreError

# Each verb imports what it needs itself, so that none waits for what it does not use.


def schema(
    codebook: options.Codebook,
    out: options.Converted = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Show the attributes of a codebook, or convert it."""
    from rpexplore.cli.plan_facts import attribute_facts, attribute_table
    from rpexplore.common.formatting import describe_count, plural
    from rpexplore.domain.domain import Domain

    domain = Domain.load(codebook)
    if out is not None:
        write_new(out, domain.text(out.name), force)
    cells = math.prod(domain.sizes.tolist())
    if as_json:
        facts = {"attributes": attribute_facts(domain), "cells": cells}
        say_json({**facts, "out": out and str(out)})
        return
    say(attribute_table(domain))
    count = plural(len(domain), "attribute")
    say(f"\n{count}; one table of all together would have {describe_count(cells)} cells.")
    if out is not None:
        say(f"Written to {out}")


def plan(
    codebook: options.Codebook,
    out: options.PlanOut,
    loss: options.TheLoss = None,
    up_to: options.UpTo = None,
    of_order: options.OfOrder = None,
    at_most_cells: options.AtMostCells = None,
    table: options.Table = None,
    tables: options.TablesFile = None,
    weight: options.Weight = None,
    target: options.Target = None,
    basis: options.Basis = None,
    uniform_reference: options.UniformReference = False,
    weighting: options.TheWeighting = None,
    relative_to: options.TheRelativeTo = None,
    rho: options.Rho = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    mu: options.Mu = None,
    privacy_cost: options.PrivacyCost = None,
    minimum_budget: options.TheMinimumBudget = None,
    records_per_person: options.RecordsPerPerson = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Find the most accurate plan within a privacy budget.

    Say which tables in one way or several; a table that is asked for twice is an error. Their
    attributes are asked by each value, or as --basis says; limits by cells count single values.
    Give
    the budget in one way, or have it found with --minimum-budget; its numbers are exact: 0.1 and
    1/3
    mean just that. No records are needed.
    """
    from rpexplore.cli import smallest_budget as enough
    from rpexplore.cli.plan_facts import plan_facts
    from rpexplore.domain.domain import Domain
    from rpexplore.planning import planner
    from rpexplore.planning.loss_serialization import loss_from_text

    refuse_existing(out, force)
    domain = Domain.load(codebook)
    stated = {"rho": rho, "epsilon": epsilon, "mu": mu, "privacy_cost": privacy_cost}
    if minimum_budget is None:
        budget = plan_inputs.budget_from_options(
            records_per_person, "--minimum-budget targets", delta=delta, **stated
        )
    else:
        budget = plan_inputs.unit_from_options(
            "--minimum-budget", records_per_person, delta, **stated
        )
    with progress("Listing the tables"):
        workload = plan_inputs.workload_from_options(
            domain,
            up_to=up_to,
            of_order=of_order or [],
            at_most_cells=at_most_cells,
            table=table or [],
            tables=tables,
            weight=weight or [],
            target=target or [],
            basis=basis or [],
        )
    why = None
    with progress(f"Planning {len(workload):,} tables") as tell:
        search = {"uniform_reference": uniform_reference, "on_progress": tell}
        if minimum_budget is None:
            objective = loss_from_text(loss or "sum", weighting=weighting, relative_to=relative_to)
            found = planner.optimum(workload, loss=objective, budget=budget, **search)
        else:
            objective = enough.loss_that_meets(
                minimum_budget, workload, loss, weighting, relative_to
            )
            smallest = enough.enough_for(minimum_budget, workload, objective, budget, **search)
            found, budget, why = smallest.optimum, smallest.budget, smallest.why
        made = found.at(budget)
        refuse_existing(out, force)
        made.save(out)
    if as_json:
        say_json({"plan": str(out), **plan_facts(made), "why": why})
        return
    if why is not None:
        say(f"{why}\n")
    say(str(made))
    say(f"\nSaved to {out}")
    say(f"SHA-256 {made.sha256}")


def show(
    plan_file: options.PlanFile,
    tables: options.HowMany = None,
    csv: options.CsvOut = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Show what a plan promises, table by table or query by query.

    Refuses a plan that `verify` finds wrong.
    """
    from rpexplore.cli.plan_facts import (
        accuracy_table,
        asked_text,
        csv_of_tables,
        plan_facts,
        table_facts,
    )
    from rpexplore.cli.queries import show_queries
    from rpexplore.planning.plan import Plan
    from rpexplore.planning.verification import verify
    from rpexplore.queries.plan import QueryPlan
    from rpexplore.queries.plan_kinds import load_plan

    if csv is not None:
        refuse_existing(csv, force)
    with progress("Reading the plan"):
        loaded = load_plan(plan_file)
        if not verify(loaded).holds:
            raise RpexploreError(
                f"The plan {str(plan_file)!r} does not hold what it claims; see "
                "`rpexplore verify` for what is wrong, and make it again."
            )
    if isinstance(loaded, QueryPlan):
        show_queries(loaded, tables, csv, force, as_json)
        return
    assert isinstance(loaded, Plan)
    with progress("Listing the tables"):
        rows = loaded.tables.sort_values("worst_standard_error", ascending=False, kind="stable")
        if csv is not None:
            write_new(csv, csv_of_tables(loaded, rows), force)
    if as_json:
        listed = table_facts(rows if tables is None else rows.head(tables))
        say_json({**plan_facts(loaded), "tables": listed, "csv": csv and str(csv)})
        return
    say(str(loaded))
    if not loaded.workload.is_marginals:
        say(f"\n{asked_text(loaded)}")
    shown = min(len(rows), 20 if tables is None else tables)
    if shown:
        say(f"\n{accuracy_table(loaded, shown)}")
    if shown < len(rows):
        say(
            f"… and {len(rows) - shown:,} more tables: --tables {len(rows)} shows all, "
            "--csv FILE writes all."
        )
    if csv is not None:
        say(f"All {len(rows):,} tables are in {csv}.")


def verify(plan_file: options.PlanFile, as_json: options.AsJson = False) -> None:
    """Check that a plan holds what it claims. Exit code 0 if it does, 1 if not.

    Privacy cost, variances and optimality are computed again, from the file alone.
    """
    from rpexplore.planning.verification import verify as verification_of
    from rpexplore.queries.plan_kinds import load_plan

    with progress("Checking the plan"):
        loaded = load_plan(plan_file)
        found = verification_of(loaded)
    if as_json:
        checks = [
            {"name": check.name, "holds": check.holds, "finding": check.finding}
            for check in found.checks
        ]
        guarantee = found.guarantee if found.holds else None
        facts = {"holds": found.holds, "guarantee": guarantee, "sha256": loaded.sha256}
        say_json({**facts, "checks": checks})
    else:
        say(str(found))
    raise typer.Exit(0 if found.holds else 1)


def rewrite(
    plan_file: options.PlanFile,
    out: options.PlanOut,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a plan file anew, in its canonical form.

    For a file that was reformatted on its way: other spaces or line ends, keys in another order,
    numbers spelled otherwise. Its SHA-256 is then the plan's name. Refuses a plan that `verify`
    finds wrong.
    """
    from rpexplore.planning.verification import verify
    from rpexplore.queries.plan_kinds import load_plan

    refuse_existing(out, force)
    with progress("Reading the plan"):
        loaded = load_plan(plan_file, canonical=False)
        if not verify(loaded).holds:
            raise RpexploreError(
                f"The plan {str(plan_file)!r} does not hold what it claims; make it again."
            )
        loaded.save(out)
    if as_json:
        say_json({"plan": str(out), "sha256": loaded.sha256})
        return
    say(f"Saved to {out}")
    say(f"SHA-256 {loaded.sha256}")


def report(
    plan_file: options.PlanFile,
    out: options.ReportOut,
    name: options.ReportName = "",
    note: options.ReportNote = "",
    record_noun: options.RecordNoun = "records",
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a report on a plan, for whoever has to approve it.

    What it promises, how accurate each table is, what is proven, and what is left to do: one HTML
    file that needs nothing else, or a PDF that a browser on this machine prints. No records are
    needed.
    """
    from rpexplore.export.report import pdf as printing
    from rpexplore.export.report.report import html
    from rpexplore.export.report.report import report as contents_of
    from rpexplore.planning.plan import Plan
    from rpexplore.queries.plan_kinds import load_plan

    ending = out.suffix.lower()
    if ending not in (".html", ".pdf"):
        raise RpexploreError(f"A report must end in .html or .pdf, got {out.name!r}.")
    refuse_existing(out, force)
    if ending == ".pdf" and printing.find_browser() is None:
        raise RpexploreError(f"{printing.NO_BROWSER}.")
    with progress("Writing the report"):
        loaded = load_plan(plan_file)
        if not isinstance(loaded, Plan):
            raise RpexploreError(
                f"{plan_file.name} is a {loaded.noun}, and reports are made on plans of tables; "
                "`rpexplore show` tells what it promises."
            )
        made = contents_of(loaded, name=name, note=note, record_noun=record_noun)
        write_new(out, html(made) if ending == ".html" else printing.pdf(made), force)
    if as_json:
        say_json({"report": str(out), "sha256": loaded.sha256})
        return
    say(f"Written to {out}")
