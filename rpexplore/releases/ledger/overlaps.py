"""One account for the same records in several ledgers, and what a ledger holds, as tidy tables."""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from rpexplore.common.files import home_folder, may_write
from rpexplore.common.installation import is_sample_data
from rpexplore.common.text import rounded
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.files.source import FileSource
from rpexplore.data.frames import FrameSource
from rpexplore.data.source import Source
from rpexplore.errors import LedgerError, ReleaseError
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.privacy.budget import Budget
from rpexplore.releases.ledger.account import (
    Account,
    Elsewhere,
    Places,
    account_of_names,
    closed_into,
)
from rpexplore.releases.ledger.chain import End, LostEntriesError, not_noted, seen_ends
from rpexplore.releases.ledger.events import Event, ledger_id, ledger_ids, merged_digests
from rpexplore.releases.ledger.ledger import FILENAME, Ledger, elsewhere_text
from rpexplore.releases.ledger.spent import Neighbours, Reading

# ---- One account for the same records: nobody adds up what is charged in two ledgers, or in
# parts.
#
# Records are known by names that do not depend on what they hold (`Source.names`). If a ledger that
# this user knows of has an account of one of them, that account is meant, and no other is begun.
# Known are the ledger that is named; those in folders around the records and in them; those that
# the user has used, which are remembered; and those that any of these notes as the one in which the
# records are charged. A ledger is what its first entry makes it (`Ledger.id`): one that is noted or
# remembered, and is gone or another one, is no empty one.


MOST_LOOKED_INTO = 100  # of the ledgers that are remembered, the last ones
_SECONDS_PASSED_OVER = 60  # a ledger on a server that did not answer
_ROOT = Path("/")  # what names of records are seen from in the user's memory
_passed_over: dict[Ledger, float] = {}  # until when, by the monotonic clock


@dataclass(frozen=True)
class _Found:
    """What a ledger holds of some records; `problem` if it cannot be read.

    ids      its own, and those of ledgers that were merged into it
    digests  of its events
    merged   of those of its copies that were merged into it
    into     the ledger that it was merged into
    """

    id: str = ""
    ids: frozenset[str] = frozenset()
    digests: tuple[str, ...] = ()
    merged: frozenset[str] = frozenset()
    account: Account | None = None
    problem: LedgerError | None = None
    into: Elsewhere | None = None

    def goes_on_from(self, end: End | None) -> bool:
        """Whether it has all that a ledger had that ended there, if it is that or took it over."""
        if end is None or end.ledger_id != self.id or end.digest in self.merged:
            return True
        return self.digests[end.number - 1 : end.number] == (end.digest,)


def ledger_of(source: Source, place: str | Path | None = None) -> Ledger:
    """The ledger that the account of some records is in; the one beside them if they have none.

    Args:
        place: The ledger that is named, if one is.

    Raises:
        LedgerError: If they have their account in another ledger than the one that is named, or in
            several; if that ledger is gone, or is another one than it was; and if they lie in no
            folder, have no account, and none is named.
        ReleaseError: If the one that is named would be taken for records.
    """
    if place is not None:
        refuse_among_records(source, Ledger(place).path)
    return known_ledger(source, place) or in_place_of(Ledger.beside(source))


def in_place_of(ledger: Ledger) -> Ledger:
    """The ledger itself, or the one that it was merged into."""
    into = closed_into(ledger.store.read_events())
    return ledger if into is None else Ledger(into.name)


@dataclass(frozen=True)
class Search:
    """The ledgers that may have the account of some records.

    found       what each holds of them
    noted       the ledgers in which they are charged, as others note it
    remembered  all that the user has used
    of_these    the remembered ones that were used for these records
    needed      names of those that are noted or remembered for these records
    """

    found: Mapping[Ledger, _Found]
    noted: Sequence[Elsewhere]
    remembered: Sequence["Remembered"]
    of_these: Sequence["Remembered"]
    needed: frozenset[str]


def search(source: Source, named: Ledger | None, others: Sequence[Ledger] = ()) -> Search:
    """Look into all ledgers that may have the account of some records.

    Raises `LedgerError` if the one that is named cannot be read, or one around the records lacks
    what this user has added, or if this user has no right to read the one beside them: it may have
    their account, whichever is named.
    """
    remembered = remembered_ledgers()
    places = Places(_ROOT, source.names(_ROOT))
    of_these = [one for one in remembered if places.meet(Places(_ROOT, one.names))]
    found: dict[Ledger, _Found] = {}
    noted: list[Elsewhere] = []
    around = _ledgers_around(source)
    beside = {Ledger(home / FILENAME) for home in homes(source)} & {*around}
    to_look = [*([] if named is None else [named]), *around, *others]
    to_look += [
        ledger
        for one in dict.fromkeys([*of_these, *remembered[:MOST_LOOKED_INTO]])
        if (ledger := _ledger_named(one.name)) is not None
    ]
    needed = {one.name for one in of_these}
    for ledger in to_look:  # which grows
        if ledger in found:
            continue
        is_needed = ledger == named or ledger.name in needed
        if not is_needed and _passed_over.get(ledger, 0) > time.monotonic():
            continue
        found[ledger] = _look(ledger, source)
        account, problem = found[ledger].account, found[ledger].problem
        if problem is not None and (
            ledger == named
            or (ledger in around and isinstance(problem, LostEntriesError))
            or (ledger in beside and _is_closed_to_us(ledger, source))
        ):
            raise problem
        for one in () if account is None else account.elsewhere:
            noted.append(one)
            needed.add(one.name)
            if (other := _ledger_named(one.name)) is not None:
                to_look.append(other)
        if (into := found[ledger].into) and (other := _ledger_named(into.name)):
            to_look.append(other)
    return Search(found, noted, remembered, of_these, frozenset(needed))


def known_ledger(
    source: Source,
    place: str | Path | None = None,
    others: Sequence[Ledger] = (),
    given_up: Sequence[Elsewhere] = (),
) -> Ledger | None:
    """As `ledger_of`, but None if the records have no account and no ledger is named.

    others: further ledgers to look into. given_up: ledgers that are not missed, as are those that
    were given up before (`merging.forget`)
    """
    named = None if place is None else Ledger(place)
    other_name = ""
    if isinstance(source, FrameSource):
        other_name = " If these are other records, give them another name."
    looked = search(source, named, others)
    found, remembered, needed = looked.found, looked.remembered, looked.needed
    # A ledger that lost entries, which were given up, is not lost itself.
    lost = [
        one
        for there in found.values()
        for one in (there.account.forgotten if there.account else ())
        if one.ledger.ledger_id not in there.ids
    ]

    def is_given_up(one: Elsewhere) -> bool:
        return one in given_up or any(other.is_noted_as(one) for other in lost)

    noted, of_these = (
        [one for one in notes if not is_given_up(one)] for notes in (looked.noted, looked.of_these)
    )
    used = [ledger for ledger, one in found.items() if one.account and one.account.is_used]
    used.sort(key=lambda ledger: (ledger.name not in needed, ledger == named))
    holders = [
        ledger
        for number, ledger in enumerate(used)
        if not any(
            _is_copy(found[ledger], found[other], or_equal=other_number < number)
            for other_number, other in enumerate(used)
            if other != ledger and not _are_one(ledger, other, found, source)
        )
    ]
    meant = [_ledger_meant(source, one, found, named, is_given_up, "") for one in noted]
    holders += [
        ledger
        for ledger in meant
        if ledger is not None and not _is_left_behind(ledger, holders, found, source)
    ]
    for one in of_these:
        remedy = other_name or _forgetting(one.name)
        _ledger_meant(source, one, found, named, is_given_up, remedy)
    charged: list[Ledger] = []
    for ledger in sorted(holders, key=lambda ledger: ledger != named):
        if not any(_are_one(ledger, other, found, source) for other in charged):
            charged.append(ledger)
    apart = [ledger for ledger in charged if named and not _are_one(ledger, named, found, source)]
    if apart:
        raise LedgerError(elsewhere_text(source.name, apart[0].name) + other_name)
    if len(charged) > 1:
        raise LedgerError(
            f"The records {source.name!r} have accounts in two ledgers, {charged[0].name!r} and "
            f"{charged[1].name!r}, and nobody adds up what they cost; release apart the parts that "
            "have their account in one of them, or, if a ledger was copied, keep one of the two."
        )
    ledger = named or next(iter(charged), None)
    to_use = Ledger.beside(source) if ledger is None and source.home is not None else ledger
    for one in remembered:
        is_this = to_use is not None and one.name == to_use.name
        if is_this and one.ledger_id and not is_given_up(one):
            _ledger_meant(source, one, found, named, is_given_up, _forgetting(one.name))
    if named is None and source.home is not None and ledger in (None, Ledger.beside(source)):
        beside_unasked(source)
    elif named is None and ledger is not None and _is_of_others(ledger):
        raise LedgerError(elsewhere_text(source.name, ledger.name))
    return ledger


def beside_unasked(source: Source) -> Ledger:
    """The ledger beside the records; raises `LedgerError` if it has to be named.

    As it has for records in no folder, and where a stranger has put it.
    """
    ledger = Ledger.beside(source)
    if _is_laid_by_a_stranger(ledger, source):
        raise LedgerError(
            f"The ledger {ledger.name!r}, beside the records, belongs to another user, to whom "
            "neither the records nor their folder belong: what is booked in it could be taken "
            "back. If they keep the ledger of these records, name it (“Ledger” in the app, "
            "--ledger on the command line), else name another one."
        )
    return ledger


def _is_of_others(ledger: Ledger) -> bool:
    """Whether a ledger is a file of another user's, so that nobody is led to it unasked."""
    if ledger.path is None or not hasattr(os, "geteuid") or not ledger.path.exists():
        return False
    return ledger.path.stat().st_uid != os.geteuid()


def _is_laid_by_a_stranger(ledger: Ledger, source: Source) -> bool:
    """Whether a ledger beside records is of a user who was given no right to folder or records.

    Anybody can put one into a folder that everybody may write to, and everybody looks there.
    """
    if not _is_of_others(ledger):
        return False
    assert ledger.path is not None
    owner, of_records = ledger.path.stat().st_uid, None
    with suppress(OSError):
        if isinstance(source, FileSource):
            of_records = source.path.stat().st_uid
        elif isinstance(source, DatabaseSource) and source.home is not None:
            of_records = Path(source.connection.location).stat().st_uid
    folder = ledger.path.parent.stat()
    return owner != of_records and not may_write(owner, folder, as_anybody=False)


def _is_closed_to_us(ledger: Ledger, source: Source) -> bool:
    """Whether a ledger beside records may not be read by this user, and is no stranger's."""
    assert ledger.path is not None
    return not (os.access(ledger.path, os.R_OK) or _is_laid_by_a_stranger(ledger, source))


def _ledgers_around(source: Source) -> list[Ledger]:
    """Those of the usual name in a folder around the records, or in them."""
    if source.home is None:
        return []
    location = source.path if isinstance(source, FileSource) else source.home
    around = [
        folder / FILENAME
        for path in (location / "any", *_files_below(source))
        for folder in path.parents
    ]
    inside = location.rglob(FILENAME) if location.is_dir() else ()
    return [Ledger(file) for file in dict.fromkeys((*around, *inside)) if file.is_file()]


def _look(ledger: Ledger, source: Source) -> _Found:
    """What a ledger holds of the records.

    Others than the one in use may be somebody else's, and closed to us. One on a server that does
    not answer is not tried again for a minute, so that nobody waits for it at every look.
    """
    try:
        events = ledger.store.read_events()
        names = source.names(ledger.store.folder)
        account = account_of_names(events, names, ledger.store.folder)
        digests = tuple(event.digest for event in events)
        ids, merged = ledger_ids(events), merged_digests(events)
        return _Found(ledger_id(events), ids, digests, merged, account, into=closed_into(events))
    except (LedgerError, OSError) as error:
        if ledger.path is None and not isinstance(error, LostEntriesError):
            _passed_over[ledger] = time.monotonic() + _SECONDS_PASSED_OVER
        problem = (
            error
            if isinstance(error, LedgerError)
            else LedgerError(
                f"The ledger {ledger.name!r} cannot be read ({error.strerror}); check its path."
            )
        )
        return _Found(problem=problem)


def _are_one(ledger: Ledger, other: Ledger, found: Mapping[Ledger, _Found], source: Source) -> bool:
    """Whether two names are of one ledger: in a database, one for each role that uses it.

    A database may have been copied, so that the first entry is the same and others may differ.
    """
    if ledger == other or ledger.path is not None or other.path is not None:
        return ledger == other
    looked = [
        (len(there.digests), one, there) for one in (ledger, other) if (there := found.get(one))
    ]
    if len(looked) < 2 or looked[0][2].id != looked[1][2].id or not looked[0][2].id:
        return False
    (_, shorter, there), (n_longer, _, longer) = sorted(looked, key=lambda one: one[0])
    if _is_copy(there, longer, or_equal=False):
        # Which a copy still is if it is looked at once more; the same one has grown meanwhile.
        there = _look(shorter, source)
    return there.digests[:n_longer] == longer.digests


def _is_left_behind(
    ledger: Ledger, others: Sequence[Ledger], found: Mapping[Ledger, _Found], source: Source
) -> bool:
    """Whether a ledger in a database is one of these as it was earlier: a copy of it went on."""
    there = found.get(ledger, _Found())
    return bool(ledger.path is None and there.id) and any(
        _is_copy(there, found[other], or_equal=False) and not _are_one(ledger, other, found, source)
        for other in others
        if other in found
    )


def _is_copy(found: _Found, other: _Found, *, or_equal: bool) -> bool:
    """Whether a ledger is the other one as it was earlier; or_equal: or as it is."""
    n_events = len(found.digests)
    is_earlier = found.digests == other.digests[:n_events]
    return is_earlier and (or_equal or n_events < len(other.digests))


def _ledger_meant(
    source: Source,
    noted: Elsewhere,
    found: Mapping[Ledger, _Found],
    named: Ledger | None,
    is_given_up: Callable[[Elsewhere], bool],
    remedy: str,
) -> Ledger | None:
    """The ledger that a note means, wherever it is now; None if that was merged into a lost one.

    Raises `LedgerError` if it is gone. is_given_up: whether a ledger is not missed
    """
    ledger = _ledger_named(noted.name)
    there = found.get(ledger, _Found()) if ledger is not None else _Found()
    is_new = noted.ledger_id == ""  # when it was noted

    def is_meant(there: _Found) -> bool:
        is_same = noted.ledger_id is None or noted.ledger_id in there.ids
        return is_new or bool(there.id and is_same)

    if ledger is not None and there.problem is None and not is_meant(there):
        # Another run may have begun the ledger, and noted it, since it was looked into.
        there = _look(ledger, source)
    if ledger is not None and there.problem is None and is_meant(there):
        if there.into is not None:
            if is_given_up(there.into):
                return None
            return _ledger_meant(source, there.into, found, named, is_given_up, remedy)
        return ledger
    state = "is another one than it was" if there.id else "is gone, or empty"
    if noted.ledger_id:
        same = [other for other, one in found.items() if noted.ledger_id in one.ids]
        end = seen_ends(noted.name).get(noted.ledger_id)
        whole = [other for other in same if found[other].goes_on_from(end)]
        if whole:
            return named if named in whole else whole[0]
        if same:
            state += f" (that at {same[0].name!r} is an earlier copy, and lacks entries)"
    if there.problem is not None:
        raise there.problem
    raise LedgerError(
        f"The ledger {noted.name!r}, in which the records {source.name!r} are charged, {state}: "
        "what was spent is not known without it. Bring it back whole (mount its disk, correct the "
        "connection), or name the whole one where it is now (--ledger). If it is lost for good, "
        f"whoever answers for these records gives it up: rpexplore ledger --forget.{remedy}"
    )


def _ledger_named(name: str) -> Ledger | None:
    """The ledger of a name that was noted; None for what can be no name."""
    with suppress(LedgerError, ValueError):
        return Ledger(name)
    return None


def note_account(
    ledger: Ledger,
    source: Source,
    coming: Plan | None = None,
    reading: Reading | None = None,
) -> bool:
    """Note in which ledger some records are charged, where it is found from them afterwards.

    In the user's memory, and beside the records in folders that can be written to; there with what
    their account is, for the day on which that ledger is lost. Returns whether it is to be noted
    again when more is entered. Raises `LedgerError`, also if something is about to be charged and
    the user's memory cannot be written to.

    coming: the plan of a run that is about to be charged; reading: how it reads records
    """
    events = ledger.store.read_events()
    own_id = ledger_id(events)
    others = _ledgers_to_note_in(ledger, source)
    try:
        remember(ledger, own_id, frozenset(source.names(_ROOT)))
    except OSError as error:
        if coming is not None:
            raise not_noted(error.strerror or str(error)) from None
    if others:
        folder = ledger.store.folder
        names = source.names(folder)

        def note(other: Ledger, events: Sequence[Event]) -> None:
            known = account_of_names(events, names, folder).known
            if coming is not None:
                spent = (known.spent_record_rho or 0) + coming.record_rho
                neighbours = Neighbours.by(coming, reading)  # as those before, or it is refused
                known = replace(known, spent_record_rho=spent, neighbours=neighbours)
            other.note_elsewhere(source, ledger, events, known)

        for other in others:
            try:
                note(other, events)
            except LedgerError:
                # Another run may have begun the ledger, and noted it, since it was read.
                there = ledger.store.read_events()
                if ledger_id(there) == own_id:
                    raise
                note(other, there)
    return bool(others) or not own_id


def refuse_unnoted(ledger: Ledger, source: Source) -> bool:
    """Whether nothing but the user's memory would lead from some records to a ledger.

    Raises `LedgerError` if it is plain that `note_account` can note it nowhere: nobody who releases
    the records again would find their account then.
    """
    if _ledgers_to_note_in(ledger, source) or _is_led_to(ledger, source):
        return False
    memory = _file_of_ledgers()
    while not os.path.lexists(memory):  # it is made when it is needed
        memory = memory.parent
    if not os.access(memory, os.W_OK):
        raise _unnoted(ledger, source)
    return True


def remember_or_refuse(ledger: Ledger, own_id: str, source: Source) -> None:
    """Note a ledger in the user's memory, which alone leads to it; `LedgerError` if that fails.

    As on a full disk, which nobody knows beforehand. Reads no ledger: one may be locked.
    """
    try:
        remember(ledger, own_id, frozenset(source.names(_ROOT)))
    except OSError:
        raise _unnoted(ledger, source) from None


def _unnoted(ledger: Ledger, source: Source) -> LedgerError:
    return LedgerError(
        f"It can be noted nowhere that the records {source.name!r} have their account in the "
        f"ledger {ledger.name!r}, neither beside the records nor in {str(home_folder())!r}, so "
        "that other runs on them would not find it. Name a folder that you can write to, and "
        "that stays, in the environment variable RPEXPLORE_HOME."
    )


def _ledgers_to_note_in(ledger: Ledger, source: Source) -> list[Ledger]:
    """Those beside the records, in folders that can be written to, but for the one to be noted."""
    folders = [home for home in homes(source) if os.access(home, os.W_OK)]
    beside = [Ledger(home / FILENAME) for home in folders if not is_sample_data(home)]
    return [
        other
        for other in dict.fromkeys(beside)
        if other != ledger and not _is_laid_by_a_stranger(other, source)
    ]


def _is_led_to(ledger: Ledger, source: Source) -> bool:
    """Whether a ledger is found from the records as it is: it lies around them, or is noted."""
    beside = source.home is not None and ledger == Ledger.beside(source)  # also before it is made
    if beside or ledger in _ledgers_around(source):
        return True
    looked = search(source, ledger)
    return any(one.name == ledger.name for one in (*looked.noted, *looked.of_these))


def homes(source: Source) -> list[Path]:
    """The folders that records lie in, also those that a view in a file of a database reads."""
    below = _files_below(source)
    outermost = [path for path in below if not any(folder in path.parents for folder in below)]
    own = [] if source.home is None else [source.home]
    return list(dict.fromkeys([*own, *(path.parent for path in outermost)]))


def _files_below(source: Source) -> tuple[Path, ...]:
    return source.files_below() if isinstance(source, DatabaseSource) else ()


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


# ---- Ledgers that the user has used, and for which records: lines of JSON that are only added to,
# so that no run takes away what another one has just noted.


@dataclass(frozen=True)
class Remembered(Elsewhere):
    """A ledger that was used.

    names: those of the records that it was used for, seen from `_ROOT`. Records that are written
    anew at a path, without the ledger beside them, miss it by the path; moved ones by the others.
    """

    names: frozenset[str] = frozenset()


def remembered_ledgers() -> list[Remembered]:
    """The ledgers that the user has used, the last one first; none if that cannot be read."""
    remembered: dict[str, Remembered] = {}
    with suppress(OSError):
        for line in _file_of_ledgers().read_bytes().splitlines():
            with suppress(ValueError, TypeError, KeyError, RecursionError):
                content = json.loads(line)
                # Of an earlier version: names of ledgers alone, the last one first.
                notes = [content] if isinstance(content, dict) else content[::-1]
                for note in notes:
                    if isinstance(note, str):
                        note = {"ledger": note, "id": "", "names": []}
                    name, own_id, names = str(note["ledger"]), note["id"], {*note["names"]}
                    before = remembered.pop(name, Remembered(name, ""))
                    own_id = own_id or before.ledger_id
                    remembered[name] = Remembered(name, own_id, names=before.names | names)
    return list(remembered.values())[::-1]


def remember(ledger: Ledger, own_id: str, names: frozenset[str]) -> None:
    """Note that a ledger is used for records of these names, unless that is noted.

    Raises `OSError`.
    """
    known = [one for one in remembered_ledgers() if one.name == ledger.name]
    new_names = names.difference(*(one.names for one in known))
    if not new_names and known and known[0].ledger_id == own_id:
        return
    note = {"ledger": ledger.name, "id": own_id, "names": sorted(new_names)}
    home_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    with open(os.open(_file_of_ledgers(), flags, 0o600), "ab") as file:
        # The line that an earlier version, or a process that was killed, has left may have no end.
        file.write(b"\n" + json.dumps(note).encode() + b"\n")


def _forgetting(name: str) -> str:
    return (
        f" If other records are meant, take its lines ({name!r}) out of "
        f"{str(_file_of_ledgers())!r}."
    )


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
        amount = rounded(rho, 6, "up"), entry.spent.epsilon_text(budget)
        rows.append((number, started, *amount, entry.state, entry.plan_sha256, entry.output))
    return pd.DataFrame(rows[::-1], columns=columns)


def describe_earlier_run(plan: Plan | PartPlan, account: Account) -> str:
    """That the same plan was run to its end on these records before; "" if it was not."""
    finished = [entry for entry in account.entries if entry.state == "finished"]
    earlier = [entry for entry in finished if entry.plan_sha256 == plan.booked_sha256]
    if not earlier:
        return ""
    started = earlier[-1].started.replace("T", " ")[:16]
    return (
        f"This plan was run on these records before, at {started} UTC into {earlier[-1].output}. A "
        "further run is charged again."
    )


def datasets(ledger: Ledger, budget: Budget, *, without: Account) -> pd.DataFrame:
    """One row a dataset, but for those of one account: dataset, runs, rho, epsilon, limit.

    limit: "none" without one

    Raises `LedgerError` if the ledger cannot be read.
    """
    rows = []
    for account in ledger.accounts():
        limit, spent = account.limit_record_rho, account.spent_record_rho * budget.records_factor
        limit_text = "none"
        if limit is not None:
            limit_text = budget.amount_text(limit * budget.records_factor, digits=6)
        amount = rounded(spent, 6, "up"), account.spent.epsilon_text(budget)
        if without.names.isdisjoint(account.names):
            rows.append((account.dataset, len(account.entries), *amount, limit_text))
    return pd.DataFrame(rows, columns=["dataset", "runs", "rho", "epsilon", "limit"])
