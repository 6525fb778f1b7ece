"""The verbs that look at plans: show, verify, rewrite, compare."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from rpexplore.cli import area_options, forecast_options, options
from rpexplore.cli.console import (
    message_of,
    one_line,
    progress,
    refuse_existing,
    say,
    say_json,
    say_result,
    text_table,
    write_new,
)
from rpexplore.common.processes import Progress
from rpexplore.common.text import describe_numbers
from rpexplore.errors import ContradictionError, RpexploreError

if TYPE_CHECKING:
    from rpexplore.analysis.outcome import Outcome
    from rpexplore.planning.approval import Approval
    from rpexplore.planning.plan import Plan
    from rpexplore.planning.verification import Verification


# ---- The verbs that read plan files of every kind: show, verify, rewrite.


# Each verb imports what it needs itself, so that none waits for what it does not use.


def show(
    plan_file: options.PlanOrRelease,
    tables: options.HowMany = None,
    areas: area_options.ListsOfAreas = None,
    csv: options.CsvOut = None,
    escape_formulas: options.EscapeFormulas = False,
    expected_count: options.ExpectedCount = None,
    expected: options.ExpectedFile = None,
    expected_areas: area_options.ExpectedAreas = None,
    cv_limit: options.CvLimit = None,
    design_effect: forecast_options.DesignEffect = None,
    weight_cv: forecast_options.WeightCv = None,
    sampling_fraction: forecast_options.SamplingFraction = None,
    record_noun: options.RecordNoun = "records",
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Show what a plan promises, table by table or query by query.

    Of a release (its folder) also what came out beside the forecast, if its plan keeps one. Of a
    plan for areas with --areas how accurate sums over lists of areas will be, each table for each
    list. Refuses a plan that `verify` finds wrong.
    """
    from rpexplore.cli.answers import planned_sum_table, planned_sums
    from rpexplore.cli.facts import csv_of_sums, items_of, plan_facts, plan_text, row_facts
    from rpexplore.cli.publishable import (
        design_from_options,
        expected_from_options,
        guesses_of,
        guesses_text,
        totals_from_option,
        usefulness_facts,
        usefulness_of,
        usefulness_text,
    )

    if csv is not None:
        refuse_existing(csv, force)
    outcome = None
    with progress("Reading the plan"):
        if plan_file.is_dir():
            loaded, outcome = released_plan(plan_file)
        else:
            loaded = load_verified(plan_file)
    with progress("Listing the tables"):
        totals = totals_from_option(loaded, expected_areas)
        wanted = expected_from_options(loaded.domain, expected_count, expected, cv_limit, totals)
        design = design_from_options(
            loaded.domain, design_effect, weight_cv, sampling_fraction, wanted
        )
        noun = loaded.budget.counted_as(record_noun)
        outcome = outcome and replace(outcome, whom=noun)
        useful = usefulness_of(loaded, wanted, totals, design, noun)
        guesses = guesses_of(loaded, wanted, totals)
        rows: Any = None  # text alone needs no frame: pandas would take half of the time
        items = items_of(loaded) if areas is None else "sums"
        if areas is not None:
            rows = planned_sums(loaded, areas)
        elif csv is not None or as_json:
            from rpexplore.analysis.accuracy import accuracy_of

            rows = accuracy_of(loaded)
        if csv is not None:
            if areas is None:
                from rpexplore.analysis.accuracy import csv_of_accuracy

                text = csv_of_accuracy(loaded, escape_formulas=escape_formulas)
            else:
                text = csv_of_sums(rows, escape_formulas=escape_formulas)
            write_new(csv, text, force)
    if as_json:
        first_rows = row_facts(rows if tables is None else rows.head(tables))
        facts = {**plan_facts(loaded), **usefulness_facts(useful)}
        if loaded.forecast is not None and wanted is None:
            facts["forecast"] = loaded.forecast.to_json()
        facts |= {} if guesses is None else {"best_guesses_in_areas": row_facts(guesses)}
        facts |= {} if outcome is None else {"outcome": outcome.to_json()}
        key = {"own counts": "queries"}.get(items, items)  # the name that programs know
        say_json({**facts, key: first_rows, "csv": csv and str(csv)})
        return
    shown = plan_text(loaded, tables) if areas is None else planned_sum_table(rows, tables)
    kept = "" if wanted is not None and outcome is None else _forecast_text(loaded, outcome, noun)
    texts = shown, usefulness_text(useful), guesses_text(guesses), kept
    say("\n\n".join(filter(None, texts)))
    if csv is not None:
        say(f"All {len(rows):,} {items} are in {csv}.")


def _forecast_text(plan: "Plan", outcome: "Outcome | None", noun: str) -> str:
    """The forecast that a plan keeps, and the outcome beside it; "" if it keeps none.

    noun: for those whom tables count
    """
    if plan.forecast is None:
        return ""
    from rpexplore.analysis.outcome import describe_forecast, forecast_by_order, outcome_columns

    if outcome is None:
        frame = forecast_by_order(plan.forecast, plan.part("tables").workload)
        sentences = [describe_forecast(plan.forecast)]
    else:
        frame, sentences = outcome.by_order(), list(outcome.sentences)
    columns = outcome_columns(frame, "attributes", noun)
    table = text_table({str(name): column.tolist() for name, column in columns.items()})
    return "\n".join([table, "", *sentences])


def released_plan(folder: Path) -> "tuple[Plan, Outcome | None]":
    """The plan of a release, and what came out beside the forecast that the plan keeps."""
    from rpexplore.analysis.outcome import Outcome
    from rpexplore.planning.verification import verify
    from rpexplore.releases.finished_release import Release

    release = Release.load(folder)
    if not verify(release.plan).holds:
        raise RpexploreError(f"The plan of {str(folder)!r} does not hold what it claims.")
    return release.plan, Outcome.of(release.plan, release.part("tables"))


def load_verified(plan_file: Path, *, canonical: bool = True) -> "Plan":
    """The plan of a file; refused if it does not hold what it claims."""
    from rpexplore.planning.plan import load_plan
    from rpexplore.planning.verification import verify

    loaded = load_plan(plan_file, canonical=canonical)
    if not verify(loaded).holds:
        raise RpexploreError(
            f"The plan {str(plan_file)!r} does not hold what it claims; see `rpexplore verify` for "
            "what is wrong, and make it again."
        )
    return loaded


def verify(
    plan_files: options.PlanFiles,
    approval: options.Approvals = None,
    allowed_signers: options.AllowedSigners = None,
    skip_others: options.SkipOthers = False,
    as_json: options.AsJson = False,
) -> None:
    """Check that plans hold what they claim. Exit code 0 if all do, 1 if one does not.

    Privacy cost, variances and optimality are computed again, from the file alone. Of several plans
    each is told in a line, those that cannot be read as well; the exit code is then 2. With
    --approval it is also checked that the plan was approved; with --allowed-signers by people of
    that list.
    """
    from rpexplore.planning.approval import describe_approval

    if allowed_signers is not None and not approval:
        raise RpexploreError("--allowed-signers goes with --approval FILE; name what to check.")
    if len(plan_files) > 1 or skip_others:
        if approval:
            raise RpexploreError("--approval is of one plan; name that plan alone.")
        _verify_each(plan_files, skip_others, as_json)
    with progress("Checking the plan"):
        loaded, verification = _verification(plan_files[0])
    facts, said = _facts(loaded, verification), [str(verification)]
    if approval and loaded is not None:
        checks, given = _checked_approvals(loaded.booked_sha256, approval, allowed_signers)
        facts["approvals"] = [asdict(one) for one in given]
        said += ["", checks, *map(describe_approval, given)]
    say_result(as_json, facts, "\n".join(said))
    raise click.exceptions.Exit(0 if verification.holds else 1)


def _checked_approvals(
    plan_sha256: str, files: Sequence[Path], allowed_signers: Path | None
) -> "tuple[str, tuple[Approval, ...]]":
    """What was checked of approvals of a plan, as a sentence, and the approvals.

    Raises `ApprovalError` for one that is not of this plan, or not by who may approve.
    """
    from rpexplore.planning.approval import describe_checks
    from rpexplore.releases.approvals import ApprovalDemand, check_approvals, load_approvals

    given = load_approvals(files)
    demands = [] if allowed_signers is None else [ApprovalDemand.load(allowed_signers)]
    check_approvals(demands, plan_sha256, given)
    by = "Approved, by people of the list:" if demands else describe_checks(0)
    return by, given


def _verify_each(plan_files: Sequence[Path], skip_others: bool, as_json: bool) -> NoReturn:
    """Check plans, say in a line of each whether it holds, and end the program."""
    from rpexplore.planning.plan import is_plan_file

    rows, lines, code = [], [], 0
    for plan_file in plan_files:
        try:
            if skip_others and not is_plan_file(plan_file):
                continue
            with progress(f"Checking {plan_file.name}"):
                loaded, verification = _verification(plan_file)
            facts = _facts(loaded, verification)
            failed = [check for check in verification.checks if not check.holds]
            line = "; ".join(f"{check.name}: {check.finding}" for check in failed) or "holds"
            code = max(code, 1 if failed else 0)
        except (RpexploreError, OSError) as error:
            line, code = message_of(error), 2
            facts = {"error": line}
        rows.append({"plan": str(plan_file), **facts})
        lines.append(one_line(f"{plan_file}: {line}"))
    say_result(as_json, {"holds": code == 0, "plans": rows}, "\n".join(lines or ["No plans."]))
    raise click.exceptions.Exit(code)


def _verification(plan_file: Path) -> "tuple[Plan | None, Verification]":
    """A plan, unless its file contradicts itself, and what checking it found."""
    from rpexplore.planning.plan import load_plan
    from rpexplore.planning.verification import Check, Verification
    from rpexplore.planning.verification import verify as verification_of

    try:
        loaded = load_plan(plan_file)
        return loaded, verification_of(loaded)
    except ContradictionError as error:
        return None, Verification((Check("contents", False, str(error)),), "")


def _facts(plan: "Plan | None", verification: "Verification") -> dict[str, Any]:
    return {
        "holds": verification.holds,
        "guarantee": verification.guarantee if verification.holds else None,
        "sha256": plan and plan.sha256,
        "checks": [asdict(check) for check in verification.checks],
    }


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
        loaded = load_verified(plan_file, canonical=False)
        loaded.save(out)
    facts = {"plan": str(out), "sha256": loaded.sha256}
    say_result(as_json, facts, f"Saved to {out}\nSHA-256 {loaded.sha256}")


# ---- The verb that compares a plan with plainer mechanisms.


_USUAL_TABLES = 20

# Each function imports what it needs itself, so that no other verb waits for it.


def compare(
    plan_file: options.PlanFile,
    tables: options.HowMany = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare a plan with plainer mechanisms at equal cost.

    Tables: how many times the privacy cost noise in every cell, hierarchies, wavelets, Fourier
    coefficients or the strategies of HDMM would need for the errors of the plan, by its objective;
    and what no mechanism can go below. With --tables also the standard errors that they have in
    tables. Tables in areas: shares of the budget by level. Own counts: what plainer mechanisms need
    for the same targets. All from formulas: no record is read.
    """
    from rpexplore.cli.publishable import texts_of_parts
    from rpexplore.planning.plan import load_plan

    with progress("Reading the plan") as on_progress:
        found, parts = {}, load_plan(plan_file).parts
        for part in parts:
            try:
                found[part.kind] = _COMPARED[part.kind](part, tables, on_progress)
            except RpexploreError as error:
                if len(parts) == 1:
                    raise
                found[part.kind] = {"sentences": [str(error)]}, str(error)
    facts = {kind: facts for kind, (facts, _) in found.items()}
    if len(facts) == 1:
        (facts,) = facts.values()
    say_result(as_json, facts, texts_of_parts({kind: text for kind, (_, text) in found.items()}))


def _tables(part: Any, count: int | None, on_progress: Progress) -> tuple[dict[str, Any], str]:
    from rpexplore.analysis.baselines import PLAN, describe_missing
    from rpexplore.analysis.baselines import compare as compared
    from rpexplore.cli.facts import row_facts

    comparison = compared(part, on_progress=on_progress)
    there = comparison.there
    errors = comparison.of_tables().head(_USUAL_TABLES if count is None else count)
    texts = [
        "\n".join(comparison.sentences),
        text_table(
            {
                "name": [row.baseline.name for row in there],
                "baseline": [row.baseline.title for row in there],
                "known as": [row.baseline.source for row in there],
                "privacy cost for the same": [row.budget_text for row in there],
            },
            alignment="<<<>",
        ),
        describe_missing(comparison),
    ]
    if count:
        columns = {"table": errors["table"].tolist(), PLAN: describe_numbers(errors[PLAN])}
        columns |= {
            row.baseline.name: describe_numbers(errors[row.baseline.title]) for row in there
        }
        texts += ["Standard errors at the plan's privacy cost:", text_table(columns)]
    share = comparison.least_share
    facts = {
        "baselines": row_facts(comparison.frame().replace(math.inf, math.nan)),
        "least_share_of_budget": None if math.isnan(share) else share,
        "laplace_epsilon": comparison.laplace_epsilon if comparison.laplace_sentence else None,
        "sentences": comparison.sentences,
        "tables": row_facts(errors.replace(math.inf, math.nan)),
    }
    return facts, "\n\n".join(filter(None, texts))


def _areas(part: Any, count: int | None, on_progress: Progress) -> tuple[dict[str, Any], str]:
    from rpexplore.analysis.area_accuracy import describe_shares
    from rpexplore.analysis.area_levels import beside_shares_by_level
    from rpexplore.cli.facts import row_facts, share_table

    beside = beside_shares_by_level(part, on_progress=on_progress)
    sentence = describe_shares(beside)
    facts = {"beside_shares_by_level": row_facts(beside), "sentences": [sentence]}
    return facts, f"{sentence}\n\n{share_table(beside)}"


def _counts(part: Any, count: int | None, on_progress: Progress) -> tuple[dict[str, Any], str]:
    from rpexplore.analysis.queries import (
        budgets_needed,
        describe_budgets,
        optimum_of,
        query_baselines,
    )
    from rpexplore.cli.facts import baseline_table, row_facts

    baselines = query_baselines(optimum_of(part), on_progress=on_progress)
    needed = budgets_needed(baselines, part.budget)
    sentence = describe_budgets(needed)
    facts = {"baselines": row_facts(needed), "sentences": [sentence]}
    return facts, f"{sentence}\n\n{baseline_table(needed)}"


def _rounds(part: Any, count: int | None, on_progress: Progress) -> NoReturn:
    raise RpexploreError(
        "Nothing is promised of the accuracy of an adaptive plan beforehand, so there is nothing "
        "to compare; `rpexplore simulate` sets made-up tables beside those of a fixed plan."
    )


_COMPARED: dict[str, Callable[[Any, int | None, Progress], tuple[dict[str, Any], str]]] = {
    "tables": _tables,
    "areas": _areas,
    "counts": _counts,
    "rounds": _rounds,
}
