"""The verbs around a plan: schema, report."""

import click

from rpexplore.cli import area_options, inputs, options
from rpexplore.cli.console import progress, refuse_existing, say_result, write_new
from rpexplore.errors import RpexploreError

# Each verb imports what it needs itself, so that none waits for what it does not use.


def schema(
    codebook: options.Codebook,
    resource: options.Resource = None,
    groups: options.Groups = None,
    areas: area_options.Areas = None,
    level_names: area_options.LevelNames = None,
    separator: area_options.Separator = None,
    lengths: area_options.Lengths = None,
    out: options.Converted = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Show or convert a codebook: its attributes and areas."""
    from rpexplore.cli import plan_inputs
    from rpexplore.cli.facts import attribute_facts, attribute_table
    from rpexplore.common.formatting import describe_count, plural
    from rpexplore.domain.impossible import describe_combinations
    from rpexplore.scenarios.codebook_import import remarks_on_codebook

    with progress("Reading the codebook"):
        tree, domain = plan_inputs.codebook_from_options(
            codebook, areas, level_names, separator, lengths, resource=resource
        )
    domain = inputs.with_groups(domain, groups or [])
    remarks = [] if tree is not None else remarks_on_codebook(codebook, resource)
    of_areas, text_of_areas = plan_inputs.levels_shown(tree)
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
    if text_of_areas:
        text += f"\n\n{text_of_areas}"
    if out is not None:
        text += f"\nWritten to {out}"
    facts = {
        "attributes": attribute_facts(domain),
        "cells": cells,
        "impossible": [dict(combination.selections) for combination in domain.impossible],
        "remarks": remarks,
        "areas": of_areas,
        "out": out and str(out),
    }
    say_result(as_json, facts, text)


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
