"""The verbs of planning: schema, plan, report."""

import click

from rpexplore.cli import area_options, inputs, options
from rpexplore.cli.adaptive_plans import (
    AdaptiveFlag,
    refuse_beside_adaptive,
    save_adaptive_plan,
)
from rpexplore.cli.console import progress, refuse_existing, say_result, write_new
from rpexplore.cli.smooth_weights import FromRelease, SmoothWeightsFlag, next_steps, smooth_for
from rpexplore.errors import ReleaseError, RpexploreError

# Each verb imports what it needs itself, so that none waits for what it does not use.


def schema(
    codebook: options.Codebook,
    resource: options.Resource = None,
    groups: options.Groups = None,
    out: options.Converted = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Show the attributes of a codebook, or convert it."""
    from rpexplore.cli.facts import attribute_facts, attribute_table
    from rpexplore.common.formatting import describe_count, plural
    from rpexplore.domain.domain import Domain
    from rpexplore.domain.impossible import describe_combinations
    from rpexplore.scenarios.codebook_import import remarks_on_codebook

    domain = inputs.with_groups(Domain.load(codebook, resource), groups or [])
    remarks = remarks_on_codebook(codebook, resource)
    if out is not None:
        write_new(out, domain.text(out.name), force)
    cells = domain.n_cells
    count, cell_count = plural(len(domain), "attribute"), describe_count(cells)
    text = (
        f"{attribute_table(domain)}\n\n"
        f"{count}; one table of all together would have {cell_count} cells."
    )
    if domain.impossible:
        text += f"\nThe codebook states {describe_combinations(domain.impossible)}"
    for remark in remarks:
        text += f"\n{remark}"
    if out is not None:
        text += f"\nWritten to {out}"
    facts = {
        "attributes": attribute_facts(domain),
        "cells": cells,
        "impossible": [dict(combination.selections) for combination in domain.impossible],
        "remarks": remarks,
        "out": out and str(out),
    }
    say_result(as_json, facts, text)


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
    smooth_weights: SmoothWeightsFlag = False,
    from_release: FromRelease = None,
    adaptive: AdaptiveFlag = False,
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
    expected_count: options.ExpectedCount = None,
    expected: options.ExpectedFile = None,
    cv_limit: options.CvLimit = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Find the most accurate plan within a privacy budget.

    Say which tables in one way or several; the same table twice is an error. Attributes count
    single values, or as --basis says; limits by cells count single values. Give the budget in one
    way, or have it found with --minimum-budget; its numbers are exact: 0.1 and 1/3 mean just that.
    No records are needed. With --adaptive it promises privacy, and no accuracy.
    """
    from rpexplore.cli.facts import plan_facts
    from rpexplore.cli.publishable import (
        expected_from_options,
        publishable_facts,
        publishable_text,
        usefulness_of,
    )
    from rpexplore.cli.smallest_budget import loss_that_meets, optimum_at_smallest_budget
    from rpexplore.domain.domain import Domain
    from rpexplore.planning import planner
    from rpexplore.planning.loss_serialization import loss_from_text
    from rpexplore.releases.measurement import check_measurable

    refuse_existing(out, force)
    domain = Domain.load(codebook)
    budget = inputs.budget_from_options(
        {"rho": rho, "epsilon": epsilon, "mu": mu, "privacy_cost": privacy_cost},
        delta,
        records_per_person,
        find_smallest=minimum_budget is not None,
    )
    wanted = expected_from_options(domain, expected_count, expected, cv_limit)
    if adaptive:
        others = {
            "--loss": loss, "--weighting": weighting, "--relative-to": relative_to,
            "--weight": weight, "--smooth-weights": smooth_weights, "--from-release": from_release,
            "--target": target, "--basis": basis, "--uniform-reference": uniform_reference,
            "--minimum-budget": minimum_budget,
        }  # fmt: skip
        refuse_beside_adaptive(wanted, others)
    weights = smooth_for(
        smooth_weights,
        from_release,
        domain,
        minimum_budget,
        budget,
        wanted,
        loss,
        weighting,
    )
    with progress("Listing the tables"):
        workload = inputs.workload_from_options(
            domain,
            up_to=up_to,
            of_order=of_order or [],
            at_most_cells=at_most_cells,
            table=table or [],
            tables=tables,
            weight=weight or [],
            smooth_for=weights,
            target=target or [],
            basis=basis or [],
        )
    if adaptive and wanted is not None:
        save_adaptive_plan(workload, budget, wanted, out, force=force, as_json=as_json)
        return
    reason = None
    with progress(f"Planning {len(workload):,} tables") as on_progress:
        search = {"uniform_reference": uniform_reference, "on_progress": on_progress}
        if minimum_budget is None:
            objective = loss_from_text(loss or "sum", weighting=weighting, relative_to=relative_to)
            optimum = planner.optimum(workload, loss=objective, budget=budget, **search)
        else:
            objective = loss_that_meets(minimum_budget, workload, loss, weighting, relative_to)
            optimum, budget, reason = optimum_at_smallest_budget(
                minimum_budget, workload, objective, budget, **search
            )
        made = optimum.at(budget)
        refuse_existing(out, force)
        made.save(out)
    warning = None
    try:
        check_measurable(made)
    except ReleaseError as error:
        warning = f"This plan cannot be released: {error}"
    useful = usefulness_of(made, wanted)
    facts = {
        "plan": str(out),
        **plan_facts(made),
        "publishable": publishable_facts(useful),
        "why": reason,
        "weights": None if weights is None else weights.text,
        "warning": warning,
    }
    saved = f"Saved to {out}\nSHA-256 {made.sha256}"
    parts = (
        reason,
        str(made),
        publishable_text(useful),
        saved,
        next_steps(weights, from_release),
        warning,
    )
    say_result(as_json, facts, "\n\n".join(filter(None, parts)))


def report(
    plan_file: options.PlanFile,
    out: options.ReportOut,
    survey: options.ReportSurvey = "",
    name: options.ReportName = "",
    note: options.ReportNote = "",
    record_noun: options.RecordNoun = "records",
    board: options.Board = None,
    expected_count: options.ExpectedCount = None,
    expected: options.ExpectedFile = None,
    expected_areas: area_options.ExpectedAreas = None,
    cv_limit: options.CvLimit = None,
    rehearse: options.Rehearse = False,
    approval: options.Approvals = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a report on a plan, for whoever has to approve it.

    What it promises, how accurate each table is, what is proven, and what is left to do: one HTML
    file that needs nothing else, or a PDF that a browser on this machine prints. No records are
    needed.
    """
    from rpexplore.cli.publishable import expected_from_options, totals_from_option
    from rpexplore.cli.rehearse import rehearsed
    from rpexplore.export.report import pdf as printing
    from rpexplore.export.report.board import other_plan_text
    from rpexplore.export.report.report import html
    from rpexplore.export.report.report import report as contents_of
    from rpexplore.planning.approval import Approval
    from rpexplore.planning.plan import load_plan
    from rpexplore.scenarios.board_notes import BoardNotes

    ending = out.suffix.lower()
    if ending not in (".html", ".pdf"):
        raise RpexploreError(f"A report must end in .html or .pdf, got {out.name!r}.")
    refuse_existing(out, force)
    if ending == ".pdf" and printing.find_browser() is None:
        raise RpexploreError(f"{printing.NO_BROWSER}.")
    notes = None if board is None else BoardNotes.load(board)
    with progress("Writing the report") as on_progress:
        loaded = load_plan(plan_file)
        tables = loaded.part("tables")
        if rehearse and tables is None:
            raise RpexploreError(
                f"--rehearse is for smooth tables of a plan of tables, and {plan_file.name} is "
                f"{loaded.kind_text}; leave it out."
            )
        totals = totals_from_option(loaded, expected_areas)
        wanted = expected_from_options(loaded.domain, expected_count, expected, cv_limit, totals)
        counts = {} if wanted is None else {"expected": wanted[0], "cv_limit": wanted[1]}
        made = contents_of(
            loaded,
            name=name,
            survey=survey,
            note=note,
            record_noun=record_noun,
            rehearsal=rehearsed(tables, wanted, on_progress) if rehearse else None,
            board=notes,
            area_totals=totals,
            approvals=[Approval.load(path) for path in approval or []],
            **counts,
        )
        write_new(out, html(made) if ending == ".html" else printing.pdf(made), force)
    warning = None if notes is None else other_plan_text(notes, loaded) or None
    if warning:
        click.echo(warning, err=True)
    facts = {"report": str(out), "sha256": loaded.sha256, "warning": warning}
    say_result(as_json, facts, f"Written to {out}")
