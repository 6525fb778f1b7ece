"""The verbs that read plan files of every kind: show, verify, rewrite."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rpexplore.cli import area_options, options
from rpexplore.cli.console import progress, refuse_existing, say, say_json, say_result, write_new
from rpexplore.errors import ContradictionError, RpexploreError

if TYPE_CHECKING:
    from rpexplore.planning.release_plan import ReleasePlan

# Each verb imports what it needs itself, so that none waits for what it does not use.


def show(
    plan_file: options.PlanFile,
    tables: options.HowMany = None,
    areas: area_options.ListsOfAreas = None,
    csv: options.CsvOut = None,
    escape_formulas: options.EscapeFormulas = False,
    expected_count: options.ExpectedCount = None,
    expected: options.ExpectedFile = None,
    expected_areas: area_options.ExpectedAreas = None,
    cv_limit: options.CvLimit = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Show what a plan promises, table by table or query by query.

    Of a plan for areas with --areas how accurate sums over lists of areas will be, each table for
    each list. Refuses a plan that `verify` finds wrong.
    """
    from rpexplore.analysis.accuracy import csv_of_tables
    from rpexplore.cli.area_facts import in_text
    from rpexplore.cli.area_releases import planned_sum_table, planned_sums
    from rpexplore.cli.facts import plan_facts, plan_text, row_facts, rows_of
    from rpexplore.cli.publishable import (
        expected_from_options,
        totals_from_option,
        usefulness_facts,
        usefulness_of,
        usefulness_text,
    )
    from rpexplore.common.csv_text import csv_of_frame
    from rpexplore.planning.plan import Plan

    if csv is not None:
        refuse_existing(csv, force)
    with progress("Reading the plan"):
        loaded = _load_verified(plan_file)
    with progress("Listing the tables"):
        totals = totals_from_option(loaded, expected_areas)
        wanted = expected_from_options(loaded.domain, expected_count, expected, cv_limit, totals)
        useful = usefulness_of(loaded, wanted, totals)
        rows = rows_of(loaded) if areas is None else planned_sums(loaded, areas)
        if csv is not None:
            if isinstance(loaded, Plan):
                text = csv_of_tables(loaded, escape_formulas=escape_formulas)
            else:
                text = csv_of_frame(in_text(rows), escape_formulas=escape_formulas)
            write_new(csv, text, force)
    items = "tables" if loaded.item == "table" else "queries"
    items = items if areas is None else "sums"
    if as_json:
        first_rows = row_facts(rows if tables is None else rows.head(tables))
        facts = {**plan_facts(loaded), **usefulness_facts(loaded, useful)}
        say_json({**facts, items: first_rows, "csv": csv and str(csv)})
        return
    count = min(len(rows), 20 if tables is None else tables)
    if areas is None:
        shown = plan_text(loaded, rows, count)
    else:
        shown = planned_sum_table(rows.head(count))
        if count < len(rows):
            shown += f"\n… and {len(rows) - count:,} more: --tables {len(rows)} shows all."
    say("\n\n".join(filter(None, (shown, usefulness_text(loaded, useful)))))
    if csv is not None:
        say(f"All {len(rows):,} {items} are in {csv}.")


def _load_verified(plan_file: Path, *, canonical: bool = True) -> "ReleasePlan":
    """The plan of a file; refused if it does not hold what it claims."""
    from rpexplore.queries.plan_kinds import load_plan, verify

    loaded = load_plan(plan_file, canonical=canonical)
    if not verify(loaded).holds:
        raise RpexploreError(
            f"The plan {str(plan_file)!r} does not hold what it claims; see `rpexplore verify` for "
            "what is wrong, and make it again."
        )
    return loaded


def verify(
    plan_file: options.PlanFile,
    approval: options.Approvals = None,
    allowed_signers: options.AllowedSigners = None,
    as_json: options.AsJson = False,
) -> None:
    """Check that a plan holds what it claims. Exit code 0 if it does, 1 if not.

    Privacy cost, variances and optimality are computed again, from the file alone. With --approval
    it is also checked that this plan was approved; with --allowed-signers by people of that list.
    """
    from rpexplore.planning.approval import describe_approval, describe_checks
    from rpexplore.planning.verification import Check, Verification
    from rpexplore.queries.plan_kinds import load_plan
    from rpexplore.queries.plan_kinds import verify as verification_of
    from rpexplore.releases.approval import ApprovalDemand, check_approvals, load_approvals

    sha256 = None
    with progress("Checking the plan"):
        try:
            loaded = load_plan(plan_file)
            sha256, verification = loaded.sha256, verification_of(loaded)
        except ContradictionError as error:
            verification = Verification((Check("contents", False, str(error)),), "")
    said, given = [str(verification)], load_approvals(approval or [])
    if allowed_signers is not None and not given:
        raise RpexploreError("--allowed-signers goes with --approval FILE; name what to check.")
    if given and sha256 is not None:
        demand = None if allowed_signers is None else ApprovalDemand.load(allowed_signers)
        check_approvals(demand, sha256, given)
        checks = describe_checks(0) if demand is None else "Approved, by people of the list:"
        said += ["", checks, *map(describe_approval, given)]
    facts = {
        "holds": verification.holds,
        "guarantee": verification.guarantee if verification.holds else None,
        "sha256": sha256,
        "checks": [asdict(check) for check in verification.checks],
        **({"approvals": [asdict(one) for one in given]} if given else {}),
    }
    say_result(as_json, facts, "\n".join(said))
    raise click.exceptions.Exit(0 if verification.holds else 1)


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
    refuse_existing(out, force)
    with progress("Reading the plan"):
        loaded = _load_verified(plan_file, canonical=False)
        loaded.save(out)
    facts = {"plan": str(out), "sha256": loaded.sha256}
    say_result(as_json, facts, f"Saved to {out}\nSHA-256 {loaded.sha256}")
