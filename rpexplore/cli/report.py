"""The verbs around a plan: schema, report, approve."""

from pathlib import Path
from typing import Annotated

import click

from rpexplore.cli import area_options, forecast_options, inputs, options
from rpexplore.cli.commands import Option
from rpexplore.cli.console import (
    agreed,
    interactive,
    progress,
    refuse_existing,
    say,
    say_result,
    write_new,
)
from rpexplore.common.text import describe_count, plural
from rpexplore.errors import RpexploreError

# Each verb imports what it needs itself, so that none waits for what it does not use.


def schema(
    codebook: options.Codebook,
    resource: options.Resource = None,
    columns: options.Columns = None,
    groups: options.Groups = None,
    recode: options.Recode = None,
    public_values: options.PublicValues = None,
    not_stated: options.NotStated = None,
    encoding: options.EncodingOfCodebook = None,
    language: options.LanguageOfCodebook = "",
    areas: area_options.Areas = None,
    level_names: area_options.LevelNames = None,
    separator: area_options.Separator = None,
    lengths: area_options.Lengths = None,
    recode_areas: area_options.RecodeAreas = None,
    out: options.Converted = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Show or convert a codebook: its attributes and areas."""
    from rpexplore.cli import codebooks
    from rpexplore.domain.codebook_remarks import layout_of_codebook, remarks_on_codebook
    from rpexplore.domain.domain import describe_attributes_from_records
    from rpexplore.domain.values import describe_combinations

    roles = codebooks.roles_of_columns(columns)
    filled = inputs.attributes_to_fill(public_values or [])
    with progress("Reading the codebook"):
        tree, domain = codebooks.codebook_from_options(
            codebook, areas, level_names, separator, lengths, recode_areas,
            resource=resource, columns=roles, encoding=encoding, language=language, pending=filled,
        )  # fmt: skip
    layout, remark_on_layout = layout_of_codebook(codebook)
    domain = inputs.with_public_values(domain, public_values or [], encoding, layout)
    domain = inputs.with_not_stated(domain, not_stated or [])
    domain = inputs.with_groups(domain, groups or [], encoding)
    domain = inputs.with_recodes(domain, recode or [], encoding)
    remarks = []
    if tree is None or areas is not None:
        remarks = remarks_on_codebook(codebook, resource, roles, encoding, filled)
    remarks += [remark_on_layout] if remark_on_layout else []
    if tree is not None and out is not None:
        remarks = [f"The areas are not in {out}; name their file to plan, by --areas."]
    if names := describe_attributes_from_records(domain):
        remarks.append(
            f"The values of {names} were found in the records. No privacy mechanism protects them: "
            "a value that only one person has would tell of that person."
        )
    of_areas, text_of_areas = codebooks.levels_shown(tree)
    if out is not None:
        write_new(out, domain.text(out.name), force)
    cells = domain.n_combinations
    count, cell_count = plural(len(domain), "attribute"), describe_count(cells)
    text = (
        f"{codebooks.attribute_table(domain, layout)}\n\n"
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
        "attributes": codebooks.attribute_facts(domain, layout),
        # Python neither writes nor reads integers of more than 4,300 digits.
        "cells": cells if cells < _LARGEST_IN_JSON else cell_count,
        "impossible": [dict(combination.selections) for combination in domain.impossible],
        "remarks": remarks,
        "areas": of_areas,
        "out": out and str(out),
    }
    say_result(as_json, facts, text)


def report(
    plan_file: options.PlanOrRelease,
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
    public: forecast_options.NamedPublic = None,
    design_effect: forecast_options.DesignEffect = None,
    weight_cv: forecast_options.WeightCv = None,
    sampling_fraction: forecast_options.SamplingFraction = None,
    simulate: options.Simulate = False,
    approval: options.Approvals = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a report on a plan, for whoever has to approve it.

    What it promises, how accurate each table is, what is proven, and what is left to do: one HTML
    file that needs nothing else, or a PDF that a browser on this machine prints. No records are
    needed. Of a release (its folder) the report also has what came out beside the forecast, if its
    plan keeps one.
    """
    from rpexplore.analysis.forecast import public_tables_of
    from rpexplore.cli.look import released_plan
    from rpexplore.cli.publishable import (
        design_from_options,
        expected_from_options,
        guesses_of,
        totals_from_option,
    )
    from rpexplore.cli.synthesize import rehearsed
    from rpexplore.planning.approval import Approval
    from rpexplore.planning.plan import load_plan
    from rpexplore.reports import report as printing
    from rpexplore.reports.first_pages import other_plan_text
    from rpexplore.reports.report import html
    from rpexplore.reports.report import report as contents_of
    from rpexplore.scenarios.board_notes import BoardNotes

    ending = out.suffix.lower()
    if ending not in (".html", ".pdf"):
        raise RpexploreError(f"A report must end in .html or .pdf, got {out.name!r}.")
    refuse_existing(out, force)
    if ending == ".pdf" and printing.find_browser() is None:
        raise RpexploreError(f"{printing.NO_BROWSER}.")
    notes = None if board is None else BoardNotes.load(board)
    with progress("Writing the report") as on_progress:
        outcome = None
        if plan_file.is_dir():
            loaded, outcome = released_plan(plan_file)
        else:
            loaded = load_plan(plan_file)
        tables = loaded.part("tables")
        if simulate and tables is None:
            raise RpexploreError(
                f"--simulate is for smooth tables of a plan of tables, and {plan_file.name} is "
                f"{loaded.kind_text}; leave it out."
            )
        totals = totals_from_option(loaded, expected_areas)
        wanted = expected_from_options(loaded.domain, expected_count, expected, cv_limit, totals)
        counts = {} if wanted is None else {"expected": wanted[0], "cv_limit": wanted[1]}
        design = design_from_options(
            loaded.domain, design_effect, weight_cv, sampling_fraction, wanted
        )
        named = None
        if public:
            number = wanted[0].total if wanted and not wanted[0].attributes else None
            sources = forecast_options.public_sources(public)
            named = public_tables_of(loaded.domain, sources, number)
        made = contents_of(
            loaded,
            name=name,
            survey=survey,
            note=note,
            record_noun=record_noun,
            rehearsal=rehearsed(tables, wanted, on_progress) if simulate else None,
            board=notes,
            area_totals=totals,
            approvals=[Approval.load(path) for path in approval or []],
            design=design,
            outcome=outcome,
            public=named,
            area_guesses=guesses_of(loaded, wanted, totals),
            **counts,
        )
        write_new(out, html(made) if ending == ".html" else printing.pdf(made), force)
    warning = None if notes is None else other_plan_text(notes, loaded) or None
    if warning:
        click.echo(warning, err=True)
    facts = {"report": str(out), "sha256": loaded.sha256, "warning": warning}
    say_result(as_json, facts, f"Written to {out}")


# ---- The verb that signs plans: approve.


# It imports what it needs itself, so that no other verb waits for it.

Key = Annotated[
    Path,
    Option(
        "--key",
        metavar="FILE",
        help="The SSH key that signs: a private key, or the public one (.pub) of a key that an "
        "agent or a security key holds.",
    ),
]
Name = Annotated[
    str | None,
    Option(
        "--as",
        metavar="NAME",
        help="Who approves, as lists of allowed signers name the key, such as "
        "alice@agency.example; else the key's comment.",
    ),
]
Remarks = Annotated[str, Option(metavar="TEXT", help="One line that goes with it.")]
ApprovalOut = Annotated[
    Path | None,
    Option("--out", metavar="FILE", help="Where the approval goes; else beside the plan, by NAME."),
]
AgreedBefore = Annotated[bool, Option("--yes", help="Do not ask before it is signed.")]

_MOST_ROWS = 20
_LARGEST_IN_JSON = 10**300


def approve(
    plan_file: options.PlanFile,
    key: Key,
    name: Name = None,
    remarks: Remarks = "",
    out: ApprovalOut = None,
    force: options.Force = False,
    yes: AgreedBefore = False,
    as_json: options.AsJson = False,
) -> None:
    """Approve a plan: sign it with your SSH key, as git does.

    Shows what is approved, and refuses a plan that `verify` finds wrong. Needs the plan and
    ssh-keygen, and no records. The file that is written goes to who runs the release (`release
    --approval FILE`).
    """
    from rpexplore.cli.facts import plan_text
    from rpexplore.planning.approval import describe_approval, signed_approval, verified, who_signs
    from rpexplore.planning.plan import load_plan

    name, _ = who_signs(key, name)
    if out is None:
        by = name.replace("/", "-").replace(":", "-")
        out = plan_file.with_name(f"{plan_file.stem}-approval-{by}.json")
    refuse_existing(out, force)
    with progress("Checking the plan"):
        loaded = load_plan(plan_file)
        verification = verified(loaded)
    if not as_json:
        shown = plan_text(loaded, _MOST_ROWS)
        say(f"{shown}\n\n{verification}\n\nSHA-256 {loaded.sha256}\n")
    if interactive() and not yes and not agreed("Approve it?"):
        raise RpexploreError("Not approved: nothing was signed, nothing was written.")
    approval = signed_approval(loaded, key, name=name, remarks=remarks)
    write_new(out, approval.text, force)
    facts = {
        "approval": str(out),
        "plan_sha256": approval.plan_sha256,
        "name": approval.name,
        "key": approval.key,
        "approved": approval.approved,
        "remarks": approval.remarks,
    }
    say_result(as_json, facts, f"Approved: {describe_approval(approval)}\nWritten to {out}")
