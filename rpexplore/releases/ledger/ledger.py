"""Ledger: what has been spent on each dataset. A run is entered before its noise is drawn."""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from rpexplore.common.numbers import exact_text
from rpexplore.common.text import joined, rounded, text_of_path
from rpexplore.data.engines.connections import ENGINES
from rpexplore.data.files.record_files import LEDGER
from rpexplore.data.files.source import AnySource, source_of
from rpexplore.data.source import Fingerprint, Source, own_names
from rpexplore.errors import DataError, LedgerError
from rpexplore.planning.approval import Approval
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.releases.approvals import ApprovalDemand, check_approvals, most_demanded
from rpexplore.releases.ledger.account import (
    GIVEN_UP,
    Account,
    Elsewhere,
    KnownBounds,
    LedgerEntry,
    account_of_names,
    check_clock,
    check_limit,
    check_neighbours,
    given_up_text,
)
from rpexplore.releases.ledger.chain import LedgerTransaction, note_shown, shown_figures
from rpexplore.releases.ledger.events import IN_APPROVAL, Event, ledger_id, ledger_ids
from rpexplore.releases.ledger.ledger_database import ENGINE, LedgerDatabase
from rpexplore.releases.ledger.ledger_file import LedgerFile
from rpexplore.releases.ledger.spent import Reading, Spent, noted_unit
from rpexplore.releases.manifest import now

# ---- Where a ledger is kept, and how that is named: the path of a file, or postgresql:NAME.
#
# NAME is that of a connection (an environment variable, or an entry in the file of secrets), never
# an address. So a name can be noted, shown and passed on.


class LedgerStore(Protocol):
    """Where the events of a ledger are kept, each chained to the one before."""

    @property
    def name(self) -> str:
        """What `store_of` finds it by: holds no address of a server, and no password."""
        ...

    @property
    def path(self) -> Path | None:
        """The file; None for a database."""
        ...

    @property
    def folder(self) -> Path | None:
        """What names of records in files are seen from; None where several machines share it."""
        ...

    def read_events(self) -> list[Event]:
        """All events in their order. Raises `LedgerError` if they cannot be read, or were changed
        by something else."""
        ...

    def settled_events(self) -> list[Event]:
        """As `read_events`, when whoever was adding some is done, or has failed."""
        ...

    def transaction(self, *, merging: bool = False) -> AbstractContextManager[LedgerTransaction]:
        """What is added in the block is on disk when it ends, and not there if it ends badly.

        Nobody else can add events meanwhile. Raises `LedgerError`; if it does so at the end, only
        `settled_events` tell what is there. merging: entries of another ledger are added as they
        are, in whoever's name
        """
        ...

    def check_bookable(self, *, sets_limit: bool = False) -> None:
        """Raise `LedgerError` where it is plain that nothing can be added.

        sets_limit: whether the first budget limit is set by the run
        """
        ...


def store_of(place: str | Path) -> LedgerStore:
    """Where the ledger of this name is kept: a path (a `Path` always is one), or postgresql:NAME.

    Raises `LedgerError` for an address, and for what could be meant either way.
    """
    if isinstance(place, str) and place.strip().startswith((":memory:", "file:")):
        raise LedgerError(
            f"A ledger is a file that stays, and {place!r} is an address of SQLite's; give the "
            "path of the file, as ./NAME if that is what it is called."
        )
    if not is_database(place):
        return LedgerFile(Path(os.path.realpath(place)))
    connection = str(place).strip().partition(":")[2]
    if "/" in connection or "@" in connection:  # it may hold a password, so it is not said again
        raise LedgerError(
            "A ledger in PostgreSQL must be given by the name of a connection, as postgresql:NAME, "
            "not by its address; keep the address in an environment variable, or in the file of "
            "secrets, and give the name of that."
        )
    database = LedgerDatabase(connection)
    if isinstance(place, Path) or os.path.lexists(place):
        raise LedgerError(
            f"{str(place)!r} can be a file, or a ledger in PostgreSQL; name the file with its "
            "folder, as a whole path, or the ledger as a text where no file has its name."
        )
    return database


def is_database(place: str | Path) -> bool:
    """Whether this names no file: it begins with postgresql: (or postgres:)."""
    scheme, colon, _ = str(place).strip().partition(":")
    return bool(colon) and scheme.lower() in ENGINES[ENGINE].schemes


# ---- Ledger: what has been spent on each dataset. A run is entered before its noise is drawn.
#
# A file, beside the data unless told otherwise, or a database that several machines share. A
# dataset has several names: a file its path as seen from the ledger's folder, so that data and
# ledger can move together, and its number on the disk, so that a renamed file, or another link to
# it, is the same; in a database both say of which machine. A folder has those of its files as well.
# Whatever shares a name is one account, which `overlaps` finds in whichever ledger has it.
# Size and time of change are noted, a row count is not. All amounts are ρ for one record, as exact
# rationals in text; a plan that protects a person with at most m records shows them times m².
#
#     run        a run of a plan on a dataset; charged whether or not it finished
#     finished   a run has been written, and is about to be shown
#     pilot      the pilot of a run is about to be shown, or the run with it
#     limit      the most that may be spent on a dataset; null lifts it
#     elsewhere  a dataset is charged in another ledger
#     approvals  how many people of which list must have approved the plan of a run; 0 lifts it
#     approved   who had approved the plan of a run when it was booked, and how many it needed
#     bound      a limit or a demand of a ledger that was merged, or is lost; replaces none
#     forgotten  another ledger that is lost and given up, and what is known to be spent there
#     merged     another ledger whose entries were taken over
#     closed     this ledger was merged into another one, which goes on in its place


FILENAME = LEDGER


class OtherFiguresError(LedgerError):
    """Of a run that a ledger holds others may be shown than these figures, which may not then."""


@dataclass(frozen=True)
class Ledger:
    """A ledger: in a file, which is made at the first entry, or in a PostgreSQL database.

    Args:
        place: The path of the file; or postgresql:NAME, by the name of a connection, which is an
            environment variable or stands in the file of secrets. A `Path` is always a file.

    Example:
        >>> import tempfile, pandas, rpexplore as rp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     records = f"{folder}/survey.csv"
        ...     pandas.DataFrame({"sex": ["f", "m"]}).to_csv(records, index=False)
        ...     ledger = rp.Ledger.of(records)
        ...     ledger.set_limit(records, Fraction(1, 2))
        ...     account = ledger.account(records)
        >>> account.dataset, account.spent_record_rho, account.limit_record_rho
        ('survey.csv', Fraction(0, 1), Fraction(1, 2))
    """

    store: LedgerStore

    def __init__(self, place: str | Path) -> None:
        object.__setattr__(self, "store", store_of(place))

    @property
    def name(self) -> str:
        """What it is found by again: the path of its file, or postgresql:NAME."""
        return self.store.name

    @property
    def path(self) -> Path | None:
        """Its file; None for a database."""
        return self.store.path

    @classmethod
    def beside(cls, data: AnySource) -> "Ledger":
        """The ledger in the folder that a file or folder of records lies in.

        Raises `LedgerError` for records without a folder, those of a database.
        """
        source = source_of(data)
        if source.home is None:
            raise LedgerError(
                f"The records {source.name!r} lie in no folder that could hold their ledger; name "
                "one (the option --ledger), the same for every release of them."
            )
        return cls(source.home / FILENAME)

    @classmethod
    def of(cls, data: AnySource, place: str | Path | None = None) -> "Ledger":
        """The ledger that has the account of some records, wherever that is.

        If they have none the one that is named, else the one beside them. Raises `LedgerError` as a
        release of them would: if their account is in another ledger than the one that is named, or
        in one that is gone.

        Args:
            place: As for `Ledger`.
        """
        from rpexplore.releases.ledger.overlaps import ledger_of

        return ledger_of(source_of(data), place)

    @property
    def id(self) -> str:
        """What tells it from every other ledger; "" for one that is empty, or not there."""
        return ledger_id(self.store.read_events())

    def account(self, data: AnySource) -> Account:
        """What the ledger holds on a data file; nothing spent if it does not know it."""
        return self.account_of(source_of(data))

    def account_of(self, source: Source) -> Account:
        """What the ledger holds on a source."""
        return self._account(self.store.read_events(), self._names(source))

    def accounts(self, *, settled: bool = False) -> tuple[Account, ...]:
        """What the ledger holds on every dataset, by name; none if its file is not there yet.

        settled: when whoever is adding entries is done
        """
        events = self.store.settled_events() if settled else self.store.read_events()
        accounts: list[Account] = []
        for event in reversed(events):  # a dataset is called what it was called last
            names = event.content.get("names", [])
            if names and not any(names[0] in account.names for account in accounts):
                accounts.append(self._account(events, names))
        return tuple(sorted(accounts, key=lambda account: account.dataset))

    def n_entries(self) -> int:
        """How many entries of any kind there are; later ones have larger numbers."""
        return len(self.store.read_events())

    def entry(self, entry_id: int) -> LedgerEntry | None:
        """An entry by its number; None if the ledger has none."""
        entries = (entry for account in self.accounts() for entry in account.entries)
        return next((entry for entry in entries if entry.id == entry_id), None)

    def set_limit(self, data: AnySource, record_rho: Fraction | None) -> None:
        """Set or (with None) lift the limit on the total ρ for one record of a dataset.

        Raises `LedgerError` for a limit below what is spent already, one that changes nothing as
        another limit of the same account is stricter, and records that have their account in
        another ledger, and `DataError` if there are no records.
        """
        with self._setting(data) as (ledger, account, names):
            spent = account.spent_record_rho
            if record_rho is not None and (record_rho <= 0 or record_rho < spent):
                raise LedgerError(
                    "The budget limit for one record must be positive and not below what is spent, "
                    f"{rounded(spent, 9, 'up')}; got {rounded(record_rho, 9)}."
                )
            strictest = account.limit_record_rho
            if strictest is not None and (record_rho is None or record_rho > strictest):
                _refuse_loosening(account.limits, names, "budget limit")
            amount = None if record_rho is None else exact_text(record_rho)
            ledger.add("limit", note_of(names, record_rho=amount))

    def require_approvals(self, data: AnySource, demand: ApprovalDemand | None) -> None:
        """Demand that people of a list approve the plan of each run, or (with None) of none.

        Raises as `set_limit` does.

        Args:
            demand: How many, and the text of the list, which is noted whole: whoever changes its
                file changes nothing.
        """
        n, allowed_signers = (0, "") if demand is None else (demand.n, demand.allowed_signers)
        with self._setting(data) as (ledger, account, names):
            if demand is None:
                _refuse_loosening(account.demands, names, "demand for approvals")
            ledger.add("approvals", note_of(names, n=n, allowed_signers=allowed_signers))

    @contextmanager
    def _setting(
        self, data: AnySource
    ) -> Iterator[tuple[LedgerTransaction, Account, tuple[str, ...]]]:
        """A transaction that sets what binds runs on these records, and what it binds so far.

        What is set here has to be found from the records, wherever they are released.
        """
        from rpexplore.releases.ledger.overlaps import (
            ledger_of,
            note_account,
            refuse_unnoted,
            remember_or_refuse,
        )

        source = source_of(data)
        ledger_of(source, self.name)
        needs_memory = refuse_unnoted(self, source)
        if not self.account_of(source).is_used:
            source.fingerprint()  # refuses what is no data
        names = self._names(source)
        with self.store.transaction() as ledger:
            account = self._account(ledger.events, names)
            self.refuse_elsewhere(account, text_of_path(self.name), ledger_ids(ledger.events))
            own_id = ledger_id(ledger.events)
            yield ledger, account, names
            if needs_memory:  # before it is set: what nobody finds would bind nobody
                remember_or_refuse(self, own_id, source)
        note_account(self, source)

    def book(
        self,
        data: AnySource,
        plan: Plan | PartPlan,
        output: str | Path,
        limit_record_rho: Fraction | None = None,
        counted: Fingerprint | None = None,
        approvals: Sequence[Approval] = (),
        started: str | None = None,
        reading: Reading | None = None,
    ) -> int:
        """Charge a run of a plan, and return its number; it is on disk when this returns.

        limit_record_rho: noted as the dataset's limit if it has none yet. counted: what the records
        looked like when they were counted. approvals: noted with the run. started: when it was, to
        the microsecond; else now. reading: how the run reads and counts records.

        Raises `LedgerError`, and enters nothing, if it has another
        limit, or if the run would go beyond it, `ApprovalError` if the approvals are not what it
        demands now, and `DataError` if these are other records.
        """
        source = source_of(data)
        # In this order: what looks as it did after it was named is what has these names.
        names, fingerprint = self._names(source), source.fingerprint()
        if counted not in (None, fingerprint):
            raise DataError(
                f"The records {source.name!r} have changed since they were counted; run "
                "it again when nobody writes to them."
            )
        with self.store.transaction() as ledger:
            account = self._account(ledger.events, names)
            self.refuse_elsewhere(account, text_of_path(self.name), ledger_ids(ledger.events))
            check_neighbours(account, plan, reading)
            check_limit(account, plan, limit_record_rho)
            check_approvals(account.approval_demands, plan.sha256, approvals)
            started = started or now("microseconds")
            check_clock(account, started)
            runs = [event.content for event in ledger.events if event.kind == "run"]
            if (started, plan.sha256) in [(one["started"], one["plan_sha256"]) for one in runs]:
                raise LedgerError(
                    "Another run of this plan was booked in the same microsecond, by which runs "
                    "are told apart; run it again."
                )
            if limit_record_rho is not None and account.limit_record_rho is None:
                ledger.add("limit", note_of(names, record_rho=exact_text(limit_record_rho)))
            claim = Spent.by(plan).claim
            entry_id = ledger.add(
                "run",
                {
                    "names": names,
                    "data_bytes": fingerprint.size,
                    "data_modified": fingerprint.modified,
                    "started": started,
                    "user": user_name(),
                    "plan_sha256": plan.sha256,
                    "record_rho": exact_text(plan.record_rho),
                    "unit": noted_unit(plan, reading),
                    "output": text_of_path(os.path.realpath(output)),
                    **({} if claim is None else {"noise": claim.to_texts()}),
                },
            )
            if approvals:
                noted = [
                    {key: getattr(approval, key) for key in IN_APPROVAL} for approval in approvals
                ]
                n = most_demanded(account.approval_demands)
                ledger.add("approved", {"run": entry_id, "n": n, "approvals": noted})
            return entry_id

    def finish(self, entry_id: int, manifest_sha256: str = "", pilot_sha256: str = "") -> None:
        """Note that a run has been written, unless that is noted; its cost was booked before.

        Raises `LedgerError` if the ledger has no such run, and `OtherFiguresError` if it has
        another release of it, or another pilot.

        Args:
            pilot_sha256: Of the figures of the run's pilot, as in `note_pilot`; "" if it has none.
        """
        content = {"run": entry_id, "finished": now(), "manifest_sha256": manifest_sha256}
        with self._noting(entry_id, manifest_sha256, pilot_sha256) as ledger:
            # A run that was killed right behind the note is finished a second time.
            noted = [event.content for event in ledger.events if event.kind == "finished"]
            others = {one["manifest_sha256"] for one in noted if one["run"] == entry_id}
            if manifest_sha256 and others - {"", manifest_sha256}:
                raise OtherFiguresError(
                    f"The ledger {self.name!r} has another release of this run, from a copy of its "
                    "unfinished folder, and one charge is for one release; use that one."
                )
            if any({**one, "finished": content["finished"]} == content for one in noted):
                return
            if pilot_sha256:
                self._add_pilot(ledger, entry_id, pilot_sha256)
            ledger.add("finished", content)

    def note_pilot(self, entry_id: int, sha256: str) -> None:
        """Note that the pilot of a run is about to be shown, unless that is noted.

        Raises as `finish` does: no other pilot of the run, nor a release with another one, may
        have been shown.

        Args:
            sha256: Of the pilot's figures: its measurements, in the form in which runs keep them.
        """
        with self._noting(entry_id, pilot_sha256=sha256) as ledger:
            self._add_pilot(ledger, entry_id, sha256)

    def _add_pilot(self, ledger: LedgerTransaction, entry_id: int, sha256: str) -> None:
        of_run = [event for event in ledger.events if event.content.get("run") == entry_id]
        shown = [event.content["pilot_sha256"] for event in of_run if event.kind == "pilot"]
        if sha256 in shown:
            return
        if shown or any(event.kind == "finished" for event in of_run):
            raise OtherFiguresError(
                f"The ledger {self.name!r} has another pilot of this run, from a copy of its "
                "unfinished folder, and one charge is for one pilot; use that one."
            )
        ledger.add("pilot", {"run": entry_id, "noted": now(), "pilot_sha256": sha256})

    @contextmanager
    def _noting(
        self, entry_id: int, manifest_sha256: str = "", pilot_sha256: str = ""
    ) -> Iterator[LedgerTransaction]:
        """A transaction that notes what is shown of a run.

        Raises `LedgerError` if there is none, and `OtherFiguresError` if others were, or may have
        been, shown in a ledger that this one does not know of.
        """
        missing = LedgerError(
            f"The ledger {self.name!r} has no run {entry_id}: it is gone, or another one than the "
            "run was booked in; restore it, or name the ledger that has the run."
        )
        if self.path is not None and not self.path.exists():  # a transaction would begin it anew
            raise missing
        with self.store.transaction() as ledger:
            runs = [event for event in ledger.events if (event.id, event.kind) == (entry_id, "run")]
            if not runs:
                raise missing
            account = self._account(ledger.events, runs[0].content["names"])
            entry = next(entry for entry in account.entries if entry.id == entry_id)
            if entry.state == GIVEN_UP:
                raise OtherFiguresError(given_up_text(entry, self.name))
            yield ledger
            figures = {"manifest_sha256": manifest_sha256, "pilot_sha256": pilot_sha256}
            shown = shown_figures(entry.started, entry.plan_sha256)
            # Where ledgers were merged, others can be those of another charge.
            here = {event.content.get(key) for event in ledger.events for key in figures}
            others = {shown[key] for key, sha256 in figures.items() if sha256 and key in shown}
            if others - here - {*figures.values()}:
                raise OtherFiguresError(
                    "You have shown other figures of this run, of which the ledger "
                    f"{self.name!r} does not know, and one charge is for one release and one "
                    "pilot; use those."
                )
        note_shown(entry.started, entry.plan_sha256, **figures)

    def note_elsewhere(
        self, source: Source, other: "Ledger", events: Sequence[Event], known: KnownBounds
    ) -> None:
        """Note that a dataset is charged in another ledger, and what its account there is.

        Raises `LedgerError` if it has runs, a limit or a demand in this one, or is charged in a
        third one. events: of the other one
        """
        names, charged = self._names(source), text_of_path(other.name)
        noted = Elsewhere(charged, ledger_id(events))
        with self.store.transaction() as ledger:
            account = self._account(ledger.events, names)
            self.refuse_elsewhere(account, charged, ledger_ids(events))
            if account.is_used:
                raise LedgerError(elsewhere_text(account.dataset, self.name))
            before = [one.known for one in account.elsewhere if one == noted]
            if before != [known]:
                bounds = known.noted(before[0] if before else KnownBounds())
                facts = {"ledger": charged, "ledger_id": noted.ledger_id, **bounds}
                ledger.add("elsewhere", note_of(names, **facts))

    @staticmethod
    def refuse_elsewhere(account: Account, charged: str, charged_ids: frozenset[str]) -> None:
        """Raise `LedgerError` if the account is noted to be in another ledger than this one."""
        for noted in account.elsewhere:
            if not noted.means(charged, charged_ids):
                raise LedgerError(elsewhere_text(account.dataset, noted.name))

    def forget(self, data: AnySource, lost: str | Path) -> Account:
        """Give up a ledger that some records were charged in and that is lost, for this one.

        What is known of it, from the notes beside the records, is kept: what was spent, the
        strictest limit and every demand for approvals. The entry says who has given it up.

        Args:
            lost: The name of the lost ledger, as it is noted.

        Returns:
            The account that goes on here.

        Raises:
            LedgerError: If no note names that ledger for these records, or if it is there.
        """
        from rpexplore.releases.ledger.merging import forget

        return forget(self, source_of(data), lost)

    def merge(self, other: "Ledger") -> int:
        """Take over all that another ledger holds, which is closed then.

        Each run once, also if one ledger is a copy of the other that went on by itself; of limits
        the strictest, and every demand for approvals. Notes that name the other ledger lead here.

        Returns:
            How many runs were taken over.

        Raises:
            LedgerError: If the role of a connection may not do that (into PostgreSQL only the
                owner may), and for a ledger in PostgreSQL that would be merged into a file.
        """
        from rpexplore.releases.ledger.merging import merge

        return merge(self, other)

    def _names(self, source: Source) -> tuple[str, ...]:
        return source.names(self.store.folder)

    def _account(self, events: Sequence[Event], names: Sequence[str]) -> Account:
        return account_of_names(events, names, self.store.folder)


def elsewhere_text(dataset: str, ledger: str) -> str:
    """That records have their account in a ledger, which is not the one to be used."""
    return (
        f"The dataset {dataset!r} has its account in the ledger {ledger!r}; use that one "
        "(“Ledger” in the app, --ledger on the command line), so that all it costs stands in one "
        "place."
    )


def _refuse_loosening(
    bounds: Sequence[tuple[tuple[str, ...], Any]], names: Sequence[str], what: str
) -> None:
    """Raise `LedgerError` if none of these bounds was set for the records of these names."""
    own = set(own_names(names))
    if bounds and all(own.isdisjoint(others) for others, _ in bounds):
        whose = joined(list(dict.fromkeys(repr(others[0]) for others, _ in bounds)))
        raise LedgerError(
            f"The {what} of the dataset {names[0]!r} was set for {whose}, with which it has one "
            f"account; name {whose} to loosen it."
        )


def note_of(names: Sequence[str], **content: Any) -> dict[str, Any]:
    """What is noted of a dataset now, and by whom."""
    return {"names": names, "noted": now(), "user": user_name(), **content}


def user_name() -> str:
    """Who runs this program: the name of its user id, or the number where it has no name.

    Not what LOGNAME or USER say, which anybody can set to anything.
    """
    try:
        from pwd import getpwuid
    except ImportError:  # Windows
        return text_of_path(os.getlogin())
    try:
        return text_of_path(getpwuid(os.getuid()).pw_name)
    except KeyError:  # in a container, say
        return str(os.getuid())
