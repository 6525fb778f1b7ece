"""The verbs that read records: release, and the ledger of what releases have cost."""

from pathlib import Path
from typing import TYPE_CHECKING

from rpexplore.cli import plan_inputs
from rpexplore.cli import plan_options as options
from rpexplore.cli import release_options as source_options
from rpexplore.cli.console import agreed, interactive, progress, say, say_json
from rpexplore.errors import RpexploreError

if TYPE_CHECKING:
    from rpexplore.planning.release_plan import ReleasePlan

# Each verb imports what it needs itself, so that none waits for what it does not use.


def release(
    plan_file: source_options.PlanToRun = None,
    data: source_options.MaybeData = None,
    out: source_options.FolderToFill = None,
    database: source_options.Database = None,
    table: source_options.TableOfDatabase = None,
    other: options.Other = None,
    person_id: source_options.PersonId = None,
    excess: source_options.Excess = None,
    person_order: source_options.PersonOrder = None,
    ledger: options.LedgerFile = None,
    cap_rho: options.CapForUnit = None,
    dry_run: source_options.OnlyCheck = False,
    resume: source_options.Resume = False,
    yes: options.Yes = False,
    as_json: options.AsJson = False,
) -> None:
    """Spend a plan's budget on records; write noisy tables.

    The run is booked in the ledger before any noise is drawn, and stays charged if it is stopped.
    --dry-run does everything before the booking, for nothing. A run that was stopped after its
    noise was drawn is finished by --resume, from PLAN and DATA no more: `release --resume --out
    FOLDER`.
    """
    from rpexplore.cli.plan_facts import account_facts, amount, announcement, booked_since
    from rpexplore.common.exact_numbers import exact_text
    from rpexplore.queries.plan_kinds import load_plan
    from rpexplore.releases import release as releases
    from rpexplore.releases.ledger import Ledger

    if out is None:
        raise RpexploreError("Name the folder for the tables: --out FOLDER.")
    if resume:
        given = {"DATA": data, "--database": database, "PLAN": plan_file, "--cap-rho": cap_rho}
        _finish(out, ledger, [name for name, value in given.items() if value], dry_run, as_json)
        return
    if plan_file is None:
        raise RpexploreError("Name the plan to run: rpexplore release PLAN DATA --out FOLDER.")
    with progress("Reading the plan"):
        loaded = load_plan(plan_file)
    unit, factor = loaded.budget.unit, loaded.budget.records_factor
    source = source_options.source_from_options(data, database, table)
    more = {
        "unknown_values": plan_inputs.other_from_options(loaded.domain, other or []),
        "person_rule": source_options.person_rule_from_options(
            person_id, excess, person_order, loaded.budget.max_records_per_person
        ),
        "ledger": ledger,
        "cap_rho": cap_rho,
    }
    book = Ledger(ledger) if ledger is not None else Ledger.beside(source)
    before = book.account(source)
    if dry_run:
        with progress("Starting") as tell:
            found = releases.dry_run(loaded, source, out, on_progress=tell, **more)
        if as_json:
            say_json({"findings": list(found.findings), "charged_rho": "0"})
            return
        say("\n".join(found.findings))
        say("\nA dry run: nothing was charged, nothing was written.")
        return
    if not as_json:
        say(announcement(loaded, before, cap_rho))
    if interactive() and not yes and not agreed("Run it?"):
        raise RpexploreError("Not run: nothing was charged, nothing was written.")
    try:
        with progress("Starting") as tell:
            done = releases.release(loaded, source, out, on_progress=tell, **more)
    except BaseException as error:
        charged = booked_since(before, book.account(source), loaded, out)
        if not charged:
            error.add_note("Nothing was charged, nothing was written.")
        elif releases.can_be_resumed(out):
            error.add_note(
                f"The run was booked before: {amount(charged)} stays charged. Its noise is drawn: "
                f"finish it without further cost with rpexplore release --resume --out {out}"
            )
        else:
            error.add_note(f"The run was booked before: {amount(charged)} stays charged.")
        raise
    after = book.account(source)
    charged = booked_since(before, after, loaded, out)
    if as_json:
        facts = {"folder": str(done.folder), f"{loaded.item}_count": loaded.n_items}
        facts |= {"plan_sha256": loaded.sha256, "unit": unit, "charged_rho": exact_text(charged)}
        say_json({**facts, **account_facts(after, factor)})
        return
    say(f"\nThe {_contents(loaded)} in {done.folder}")
    spent = amount(after.spent_record_rho * factor)
    say(f"Charged {amount(charged)}; spent on this data so far: {spent}")


def _finish(
    out: Path, ledger: Path | None, superfluous: list[str], dry_run: bool, as_json: bool
) -> None:
    """Finish a run that was stopped after its noise was drawn."""
    from rpexplore.releases.release import resume

    if superfluous or dry_run:
        named = superfluous[0] if superfluous else "--dry-run"
        raise RpexploreError(
            f"--resume finishes a run from what it has drawn, and takes no {named}; leave it out."
        )
    with progress("Finishing the run") as tell:
        done = resume(out, ledger=ledger, on_progress=tell)
    if as_json:
        facts = {"folder": str(done.folder), f"{done.plan.item}_count": done.plan.n_items}
        say_json({**facts, "plan_sha256": done.plan.sha256, "charged_rho": "0"})
        return
    say(f"The {_contents(done.plan)} in {done.folder}")
    say("The run had been charged before; finishing it cost nothing.")


def _contents(plan: "ReleasePlan") -> str:
    """ "7 noisy tables are", "1 noisy answer is"."""
    return f"{plan.contents} {'is' if plan.n_items == 1 else 'are'}"


def ledger(
    data: source_options.MaybeData = None,
    database: source_options.Database = None,
    table: source_options.TableOfDatabase = None,
    ledger: options.LedgerFile = None,
    cap_rho: options.CapForRecord = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what was spent on some data, or set its cap.

    All in ρ for one record; for a person with at most m records it is m² times that.
    """
    from rpexplore.cli.plan_facts import account_facts, account_text, run_facts
    from rpexplore.common.exact_numbers import exact_fraction
    from rpexplore.releases.ledger import Ledger

    source = source_options.source_from_options(data, database, table)
    book = Ledger(ledger) if ledger is not None else Ledger.beside(source)
    if data is not None and not data.exists() and not book.account(source).runs:
        raise RpexploreError(f"There are no records at {str(data)!r}; check the path.")
    if cap_rho is not None:
        lifted = cap_rho.strip().lower() == "none"
        book.set_cap(source, None if lifted else exact_fraction(cap_rho, "--cap-rho"))
    account = book.account(source)
    if as_json:
        facts = {"dataset": account.dataset, **account_facts(account, 1)}
        say_json({**facts, "runs": run_facts(account.runs)})
        return
    say(account_text(account))
