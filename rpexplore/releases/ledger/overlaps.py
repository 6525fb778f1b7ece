"""One account for the same records in several ledgers, and what a ledger holds, as tidy tables."""

import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pandas as pd

from rpexplore.common.files import home_folder, write_whole
from rpexplore.common.text import rounded
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.files.source import FileSource
from rpexplore.data.source import Source, path_in_name
from rpexplore.errors import LedgerError, ReleaseError
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.privacy.budget import Budget
from rpexplore.releases.ledger.account import Account
from rpexplore.releases.ledger.ledger import FILENAME, Ledger

# ---- One account for the same records: nobody adds up what is charged in two ledgers, or in
# parts.
#
# What lies beside the records binds every run. Where nothing can (a database, records in a folder
# that cannot be written to), the app remembers the ledgers it has used, and says what they hold.


MOST_REMEMBERED = 100  # ledgers
_SECONDS_PASSED_OVER = 60  # a ledger on a server that did not answer
_passed_over: dict[Ledger, float] = {}  # until when, by the monotonic clock


def refuse_overlaps(ledger: Ledger, source: Source) -> None:
    """Raise `LedgerError` if these records, or records in or around them, are charged apart.

    That is: if another ledger, in a folder around the records or in them, has runs, a limit or a
    demand of theirs, or says that they are charged elsewhere; or if any of these ledgers has such
    of a folder around the records, or of files in them.
    """
    if source.home is None:
        return
    location = source.path if isinstance(source, FileSource) else source.home
    around = [
        folder / FILENAME
        for path in (location / "any", *_files_below(source))
        for folder in path.parents
    ]
    inside = list(location.rglob(FILENAME)) if location.is_dir() else []
    further = [file for file in {*around, *inside} if file != ledger.path and file.is_file()]
    for book in (ledger, *map(Ledger, further)):
        used_in_book = _used_paths(book)
        if book == ledger or used_in_book is not None:
            book.refuse_elsewhere(book.account_of(source), ledger)
        for used, has in (used_in_book or {}).items() if isinstance(source, FileSource) else ():
            if used in location.parents or location in used.parents:
                how = "which they lie in" if used in location.parents else "which lies in them"
                raise LedgerError(
                    f"The ledger {book.name!r} has {has} {str(used)!r}, {how}: what the "
                    f"records {source.name!r} cost would be counted apart. Name the records "
                    "as there."
                )


def homes(source: Source) -> list[Path]:
    """The folders that records lie in, also those that a view in a file of a database reads."""
    below = _files_below(source)
    outermost = [path for path in below if not any(folder in path.parents for folder in below)]
    own = [] if source.home is None else [source.home]
    return list(dict.fromkeys([*own, *(path.parent for path in outermost)]))


def _files_below(source: Source) -> tuple[Path, ...]:
    return source.files_below() if isinstance(source, DatabaseSource) else ()


def _used_paths(ledger: Ledger) -> dict[Path, str] | None:
    """The files and folders that bind runs in the ledger, and how; None if it cannot be read.

    Others than the one in use may be somebody else's, and closed to us.
    """
    with suppress(LedgerError, OSError):
        return {
            path.resolve(): "runs on" if account.entries else "a limit or a demand for"
            for account in ledger.accounts()
            if account.is_used
            for name in account.names
            if (path := path_in_name(ledger.store.folder, name)) is not None
        }
    return None


def refuse_among_records(source: Source, *paths: Path | None) -> None:
    """Raise `ReleaseError` for what would be written where the next count takes it for records."""
    for path in filter(None, paths):
        is_inside = isinstance(source, FileSource) and Path(os.path.realpath(path)).is_relative_to(
            source.path
        )
        if is_inside and not path.name.startswith(FILENAME):
            raise ReleaseError(
                f"Nothing can be written to {str(path)!r}: it lies in the folder of the records "
                f"{source.name!r}; choose a folder elsewhere."
            )


# ---- ledgers elsewhere


def remember_ledger(ledger: Ledger) -> None:
    """Note that a ledger is used, for `remembered_ledgers`. Raises `OSError`."""
    others = [other for other in remembered_ledgers() if other != ledger]
    names = [one.name for one in (ledger, *others)][:MOST_REMEMBERED]
    home_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(_file_of_ledgers(), json.dumps(names), mode=0o600)


def remembered_ledgers() -> list[Ledger]:
    """The ledgers that the user's app has used, the last one first; none if it cannot be read."""
    with suppress(OSError, ValueError, TypeError, LedgerError):
        return [Ledger(name) for name in json.loads(_file_of_ledgers().read_bytes())]
    return []


def charged_elsewhere(
    source: Source, ledger: Ledger, others: Iterable[Ledger]
) -> dict[Ledger, Account]:
    """What other ledgers than this one hold on a source, where they can be read.

    One in a database that cannot is not tried again for a minute, so that nobody waits for it at
    every look.
    """
    charged = {}
    for other in dict.fromkeys(others):
        if other == ledger or _passed_over.get(other, 0) > time.monotonic():
            continue
        try:
            account = other.account_of(source)
        except (LedgerError, OSError):
            if other.path is None:
                _passed_over[other] = time.monotonic() + _SECONDS_PASSED_OVER
            continue
        if account.is_used:
            charged[other] = account
    return charged


def describe_charge(ledger: Ledger, account: Account, budget: Budget) -> str:
    """What a ledger that is not the one in use holds on some records, in words.

    budget: whose privacy unit the amounts are for
    """
    spent, limit = account.spent_record_rho, account.limit_record_rho
    limit_text, where = "no budget limit", f"in the ledger {ledger.name!r}"
    if limit is not None:
        limit_text = f"a budget limit of {budget.amount_text(limit * budget.records_factor)}"
    if account.approval_demand is not None:
        limit_text += " and a demand for approvals"
    if not account.entries:
        return f"{limit_text}, and no runs yet, {where}"
    return f"{budget.amount_text(spent * budget.records_factor)} {where}, which has {limit_text}"


def _file_of_ledgers() -> Path:
    return home_folder() / "ledgers.json"


# ---- What a ledger holds, as tidy tables to look at.


def runs(account: Account, budget: Budget) -> pd.DataFrame:
    """One row a run, the latest first: number, started, rho, epsilon, state, plan, output.

    number: 1 for the first run on these records. budget: whose privacy unit ρ and ε are for, as
    text, rounded upwards
    """
    columns = ["number", "started", "rho", "epsilon", "state", "plan", "output"]
    rows = []
    for number, entry in enumerate(account.entries, start=1):
        started = entry.started.replace("T", " ")[:19]
        rho = entry.record_rho * budget.records_factor
        amount = rounded(rho, 6, "up"), budget.epsilon_text(rho)
        rows.append((number, started, *amount, entry.state, entry.plan_sha256, entry.output))
    return pd.DataFrame(rows[::-1], columns=columns)


def describe_earlier_run(plan: Plan | PartPlan, account: Account) -> str:
    """That the same plan was run to its end on these records before; "" if it was not."""
    finished = [entry for entry in account.entries if entry.state == "finished"]
    earlier = [entry for entry in finished if entry.plan_sha256 == plan.sha256]
    if not earlier:
        return ""
    started = earlier[-1].started.replace("T", " ")[:16]
    return (
        f"This plan was run on these records before, at {started} UTC into {earlier[-1].output}. A "
        "further run is charged again."
    )


def datasets(ledger: Ledger, budget: Budget, *, without: str) -> pd.DataFrame:
    """One row a dataset, but for one: dataset, runs, rho, epsilon, limit ("none" without one).

    Raises `LedgerError` if the ledger cannot be read.
    """
    rows = []
    for account in ledger.accounts():
        limit, spent = account.limit_record_rho, account.spent_record_rho * budget.records_factor
        limit_text = "none"
        if limit is not None:
            limit_text = budget.amount_text(limit * budget.records_factor, digits=6)
        amount = rounded(spent, 6, "up"), budget.epsilon_text(spent)
        if account.dataset != without:
            rows.append((account.dataset, len(account.entries), *amount, limit_text))
    return pd.DataFrame(rows, columns=["dataset", "runs", "rho", "epsilon", "limit"])
