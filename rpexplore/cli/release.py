"""The verbs that read records: release, and the ledger of what releases have cost."""

from collections import Counter
from dataclasses import asdict, replace
from shlex import quote
from typing import TYPE_CHECKING, Any

from rpexplore.cli import inputs, options
from rpexplore.cli.console import agreed, interactive, progress, say, say_privately, say_result
from rpexplore.common.numbers import exact_fraction, exact_text
from rpexplore.common.text import plural
from rpexplore.errors import DataError, RpexploreError

if TYPE_CHECKING:
    from rpexplore.releases.finished_release import Release

# Each verb imports what it needs itself, so that none waits for what it does not use.


def release(
    plan_file: options.PlanToRun = None,
    data: options.Data = None,
    out: options.FolderToFill = None,
    database: options.Database = None,
    table: options.DatabaseTable = None,
    stream: options.Stream = False,
    encoding: options.Encoding = None,
    positions: options.Positions = None,
    missing_values: options.MissingValues = None,
    unknown_values: options.UnknownValues = None,
    person_id: options.PersonId = None,
    excess: options.Excess = None,
    person_order: options.PersonOrder = None,
    ledger: options.Ledger = None,
    limit_rho: options.LimitForUnit = None,
    empty: options.Empty = False,
    count_impossible: options.CountImpossible = False,
    escape_formulas: options.EscapeFormulas = False,
    parquet_only: options.ParquetOnly = False,
    file_per_table: options.FilePerTable = False,
    approval: options.Approvals = None,
    dry_run: options.DryRun = False,
    resume: options.Resume = False,
    pilot_only: options.PilotOnly = False,
    yes: options.Yes = False,
    as_json: options.AsJson = False,
) -> None:
    """Spend a plan's budget on records; write noisy tables.

    The run is booked in the ledger before any noise is drawn, and stays charged if it is stopped.
    --dry-run does everything before the booking, for nothing. A run that was stopped after its
    noise was drawn is finished by --resume, from PLAN and DATA no more: `release --resume --out
    FOLDER`. With --pilot-only the run stops behind the pilot of its plan, whose tables are then in
    FOLDER-pilot; `release PLAN DATA --resume --out FOLDER` goes on, at no further cost. If the plan
    says that the rest is planned anew, PLAN is then what `forecast FOLDER --rest` has made.
    """
    from rpexplore.cli.facts import account_facts, announcement, booked_since
    from rpexplore.data.coding import EVERY
    from rpexplore.data.source import weight_note
    from rpexplore.domain.domain import formulas_warning
    from rpexplore.planning.plan import load_plan
    from rpexplore.privacy.conversions import rho_text
    from rpexplore.releases import release as releases
    from rpexplore.releases.approvals import load_approvals
    from rpexplore.releases.atomic_folder import MANIFEST, check_new
    from rpexplore.releases.booked_run import as_shown, booked_run
    from rpexplore.releases.ledger.ledger import Ledger
    from rpexplore.releases.ledger.overlaps import describe_earlier_run, ledger_of
    from rpexplore.releases.measurement_file import NOTE
    from rpexplore.releases.pilot import refuse_pilot_of_rest, refuse_without_pilot

    if out is None:
        raise RpexploreError("Name the folder for the tables: --out FOLDER.")
    # Behind its pilot a run still needs the records.
    goes_on = False
    if resume and not releases.can_be_resumed(out):  # where all is drawn, `resume` finds the ledger
        goes_on = booked_run(out, None if ledger is None else Ledger(ledger)) is not None
    if goes_on and (plan_file is None or (data is None and database is None)):
        raise RpexploreError(
            f"The run into {str(out)!r} has not drawn all of its noise yet, and needs the records "
            f"for that: rpexplore release PLAN DATA --resume --out {quote(str(out))}, which costs "
            "nothing further."
        )
    if resume and not goes_on:
        given = {"DATA": data, "--database": database, "PLAN": plan_file, "--limit-rho": limit_rho}
        given |= {"--approval": approval, "--encoding": encoding, "--positions": positions}
        flags = {
            "--dry-run": dry_run,
            "--escape-formulas": escape_formulas,
            "--parquet-only": parquet_only,
            "--file-per-table": file_per_table,
            "--stream": stream,
        }
        # Whoever names the plan as well may mean a run that is not there; `resume` says so.
        has_run = releases.can_be_resumed(out) or (out / MANIFEST).is_file()
        refuses = has_run or plan_file is None
        for name, value in (given | flags).items():
            if value and refuses:
                raise RpexploreError(
                    f"--resume finishes a run from what it has drawn, and takes no {name}; leave "
                    "it out."
                )
        was_complete = (out / MANIFEST).is_file()
        with progress("Finishing the run") as on_progress:
            done = releases.resume(out, ledger=ledger, on_progress=on_progress)
        finding = "The run had been charged before; finishing it cost nothing."
        if was_complete:
            finding = "The release was complete, and nothing is left of its run; this cost nothing."
        _say_finished(as_json, done, {"charged_rho": "0"}, finding)
        return
    if plan_file is None:
        raise RpexploreError("Name the plan to run: rpexplore release PLAN DATA --out FOLDER.")
    with progress("Reading the plan"):
        loaded = load_plan(plan_file)
    check_new(out, drawn=NOTE)  # before anything is announced
    if pilot_only:
        refuse_without_pilot(loaded, out)
    else:
        refuse_pilot_of_rest(loaded, out)
    source = inputs.source_from_options(
        data, database, table, stream=stream, encoding=encoding, positions=positions
    )
    run_options = {
        **{
            option: inputs.texts_by_attribute(
                loaded.domain,
                given or [],
                f"--{option.replace('_', '-')}",
                "the value that takes them, such as region=R12",
                every=EVERY,
            )
            for option, given in (
                ("missing_values", missing_values),
                ("unknown_values", unknown_values),
            )
        },
        "person_rule": inputs.person_rule_from_options(
            person_id, excess, person_order, loaded.budget.max_records_per_person
        ),
        "ledger": ledger,
        "limit_rho": limit_rho,
        "may_be_empty": empty,
        "count_impossible": count_impossible,
        "escape_formulas": escape_formulas,
        "parquet_only": parquet_only,
        "file_per_table": file_per_table,
        "approvals": load_approvals(approval or []),
    }
    is_escaped = escape_formulas or parquet_only or not loaded.has_labels_in_csv
    warning = None if is_escaped else formulas_warning(loaded.domain)
    book = ledger_of(source, ledger)
    before = book.account(source)
    if dry_run:
        with progress("Starting") as on_progress:
            checked = releases.dry_run(
                loaded, source, out, pilot_only=pilot_only, on_progress=on_progress, **run_options
            )
        findings = list(checked.findings)
        say_privately(checked.taken)
        text = "\n".join([*findings, "\nA dry run: nothing was charged, nothing was written."])
        say_result(as_json, {"findings": findings, "charged_rho": "0"}, text)
        return
    if not as_json:
        weight = weight_note(source, loaded.domain)
        stopped = booked_run(out, book)
        is_booked = (
            stopped is not None
            and stopped.plan_sha256 == loaded.booked_sha256
            and stopped in as_shown(before.entries)
        )
        earlier = None if is_booked else describe_earlier_run(loaded, before)
        remarks = filter(None, [earlier, *source.remarks(), weight, warning])
        facts = announcement(loaded, book.name, before, limit_rho, goes_on=is_booked)
        say("\n".join([facts, *remarks, ""]))
    if interactive() and not yes and not agreed("Run it?"):
        raise RpexploreError("Not run: nothing was charged, nothing was written.")
    try:
        with progress("Starting") as on_progress:
            done = releases.release(
                loaded, source, out, pilot_only=pilot_only, on_progress=on_progress, **run_options
            )
    except BaseException as error:
        note, charged, stopped = "Nothing was charged, nothing was written.", None, None
        try:
            charged = booked_since(before, book.account(source), loaded, out)
            stopped = booked_run(out, book)
        except RpexploreError:
            note = "Once the ledger can be read, it tells whether the run is charged."
        if charged or stopped or releases.can_be_resumed(out):
            note = f"The run was booked before: {rho_text(loaded.rho)} stays charged."
            if releases.can_be_resumed(out):
                note += (
                    " Its noise is drawn: finish it without further cost with "
                    f"rpexplore release --resume --out {quote(str(out))}"
                )
            elif stopped:
                note += " Run it again, into the same folder: that costs nothing further."
        if not (isinstance(error, RpexploreError) and error.says_charge):
            error.add_note(note)
        raise
    after, factor = book.account(source), loaded.budget.records_factor
    charged = booked_since(before, after, loaded, out)
    spent = rho_text(after.spent_record_rho * factor)
    facts = {"unit": loaded.budget.unit, "charged_rho": exact_text(charged), "warning": warning}
    say_privately(done.taken)
    finding = f"Charged {rho_text(charged)}; spent on this data so far: {spent}"
    if loaded.budget.period is not None:
        finding = (
            f"Charged {rho_text(loaded.rho)} in the panel; for {loaded.budget.nouns} with any "
            f"records the ledger counts {rho_text(charged)}, and so far on this data: {spent}"
        )
    if pilot_only:
        is_planned_anew = loaded.part("tables").then is not None
        plan_of_rest = "rest.json" if is_planned_anew else ""
        of_rest = f" --rest {plan_of_rest}" if is_planned_anew else ""
        finding += (
            "\nThis is the pilot alone. See what it tells of all tables:\n"
            f"  rpexplore forecast {quote(str(out))}{of_rest}\n"
            "Then go on, at no further cost, or stop here: the charge stays as it is either way.\n"
            f"  rpexplore release {quote(plan_of_rest or str(plan_file))} "
            f"{quote(str(data or 'DATA'))} --resume --out {quote(str(out))}"
        )
    _say_finished(as_json, done, facts | account_facts(after, factor), finding)


def _say_finished(as_json: bool, done: "Release", facts: dict[str, Any], finding: str) -> None:
    """Say where the results are, and a finding in the end."""
    from rpexplore.cli.facts import count_key

    plan, folder = done.plan, str(done.folder)
    counts = Counter[str]()
    for part in plan.parts:
        counts[count_key(part)] += part.n_items
    facts = {
        "folder": folder,
        **counts,
        "plan_sha256": plan.sha256,
        **({"remark": done.remark} if done.remark else {}),
        **facts,
    }
    are = "is" if plan.n_items == 1 else "are"
    remark = f"\n{done.remark}" if done.remark else ""
    say_result(as_json, facts, f"The {plan.contents} {are} in {folder}{remark}\n{finding}")


def ledger(
    data: options.Data = None,
    database: options.Database = None,
    table: options.DatabaseTable = None,
    ledger: options.Ledger = None,
    limit_record_rho: options.LimitForRecord = None,
    forget: options.ForgetLedger = None,
    merge: options.MergeLedger = None,
    create: options.CreateLedger = False,
    grant: options.GrantLedger = None,
    grant_limits: options.GrantLimits = None,
    require_approvals: options.RequireApprovals = None,
    approvals: options.NeededApprovals = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what some data cost; set a limit, or demand approvals.

    All in ρ for one record; for a person with at most m records it is m² times that. A ledger in
    PostgreSQL is made first: `ledger --create --ledger postgresql:NAME --grant ROLE`, where ROLE
    may book runs; a role of --grant-limits may set limits and demand approvals.
    """
    from rpexplore.cli.facts import account_facts, account_text
    from rpexplore.releases.approvals import ApprovalDemand
    from rpexplore.releases.ledger.events import IN_NOISE
    from rpexplore.releases.ledger.ledger import Ledger
    from rpexplore.releases.ledger.overlaps import beside_unasked, ledger_of, refuse_among_records

    given = {
        "DATA": data,
        "--database": database,
        "--limit-record-rho": limit_record_rho,
        "--require-approvals": require_approvals,
        "--forget": forget,
    }
    if merge is not None:
        others = {"--create": create, "--grant": grant, "--grant-limits": grant_limits}
        _merge_ledgers(ledger, merge, given | others, as_json)
        return
    if create or grant or grant_limits:
        roles = tuple(grant or ()), tuple(grant_limits or ())
        _create_ledger(ledger, create, roles, given, as_json)
        return
    demand = None
    if require_approvals is not None and require_approvals.strip().lower() != "none":
        demand = ApprovalDemand.load(require_approvals, approvals or 1)
    elif approvals is not None:
        raise RpexploreError("--approvals N goes with --require-approvals FILE; name the list.")
    source = inputs.source_from_options(data, database, table)
    if forget is None:
        book = ledger_of(source, ledger)
    else:
        refuse_among_records(source, None if ledger is None else Ledger(ledger).path)
        book = beside_unasked(source) if ledger is None else Ledger(ledger)
        book.forget(source, forget)
    if not book.account(source).is_used:
        try:
            source.fingerprint()
        except DataError as error:
            raise DataError(
                f"{error} (A ledger itself is named by --ledger.)", private=error.private
            ) from None
    if limit_record_rho is not None:
        lifted = limit_record_rho.strip().lower() == "none"
        book.set_limit(
            source, None if lifted else exact_fraction(limit_record_rho, "--limit-record-rho")
        )
    if require_approvals is not None:
        book.require_approvals(source, demand)
    account = book.account(source)
    runs = []
    for run in account.entries:
        claim = run.claim and dict(zip(IN_NOISE, run.claim.to_texts(), strict=True))
        exact = {"record_rho": exact_text(run.record_rho), "claim": claim}
        runs.append(asdict(replace(run, claim=None)) | exact)
    facts = {
        "dataset": account.dataset,
        "ledger": book.name,
        **account_facts(account, 1),
        "runs": runs,
    }
    say_result(as_json, facts, account_text(account, book.name))


def _merge_ledgers(ledger: str | None, other: str, given: dict[str, Any], as_json: bool) -> None:
    """Merge a ledger into another one. given: what does not go with that"""
    from rpexplore.releases.ledger.ledger import Ledger

    for name, value in given.items():
        if value:
            raise RpexploreError(f"--merge takes whole ledgers, and no {name}; leave it out.")
    if ledger is None:
        raise RpexploreError("--merge OTHER needs --ledger LEDGER, into which it is merged.")
    into, merged = Ledger(ledger), Ledger(other)
    n_runs = into.merge(merged)
    text = (
        f"The ledger {merged.name} is merged into {into.name}, and closed: "
        f"{plural(n_runs, 'run')} taken over."
    )
    say_result(as_json, {"ledger": into.name, "merged": merged.name, "runs": n_runs}, text)


def _create_ledger(
    ledger: str | None,
    create: bool,
    roles: tuple[tuple[str, ...], tuple[str, ...]],
    given: dict[str, Any],
    as_json: bool,
) -> None:
    """Make or renew a ledger in a database.

    roles: those that may book, and those that may set limits. given: what does not go with that
    """
    from rpexplore.releases.ledger.ledger import store_of
    from rpexplore.releases.ledger.ledger_database import LedgerDatabase

    for name, value in given.items():
        if value is not None:
            raise RpexploreError(f"--create makes a ledger, and takes no {name}; leave it out.")
    store = None if ledger is None else store_of(ledger)
    if not (create and isinstance(store, LedgerDatabase)):
        raise RpexploreError(
            "A ledger is made by --create --ledger postgresql:NAME, with --grant ROLE and "
            "--grant-limits ROLE if wanted; one in a file is made at its first entry."
        )
    state, (bookers, limiters) = store.create(*roles), roles
    done = {"new": "is made", "renewed": "is renewed", "there": "was there already"}[state]
    text = f"The ledger {store.name} {done}."
    if bookers:
        text += f" Runs can be booked by {', '.join(bookers)}."
    if limiters:
        text += f" Limits and demands can be set by {', '.join(limiters)}."
    facts = {"roles": list(bookers), "roles_of_limits": list(limiters)}
    say_result(as_json, {"ledger": store.name, "is_new": state == "new", **facts}, text)
