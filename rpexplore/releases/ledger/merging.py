"""Ledgers that end: one that is merged into another one, and one that is lost and given up.

What they demand goes on: an account can become stricter by this, and not looser.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

from rpexplore.common.files import FILE_PREFIX, machine_names
from rpexplore.common.json_fields import dumps
from rpexplore.common.numbers import exact_text
from rpexplore.common.text import joined, text_of_path
from rpexplore.data.source import (
    AT_MACHINE,
    NO_PATH,
    Source,
    names_with_parts,
    own_names,
    path_name,
)
from rpexplore.errors import LedgerError
from rpexplore.releases.approvals import demand_as_noted
from rpexplore.releases.ledger.account import (
    Account,
    KnownBounds,
    account_of_names,
    bounds_of,
    closed_into,
)
from rpexplore.releases.ledger.chain import (
    End,
    LedgerTransaction,
    LostEntriesError,
    digest_of,
    forget_end,
    note_end,
)
from rpexplore.releases.ledger.events import (
    Event,
    ledger_id,
    ledger_ids,
    merged_digests,
    merged_ids,
    noted_amount,
)
from rpexplore.releases.ledger.ledger import FILENAME, Ledger, note_of, user_name
from rpexplore.releases.ledger.overlaps import (
    homes,
    known_ledger,
    note_account,
    remember,
    search,
)
from rpexplore.releases.ledger.spent import Neighbours, total_of
from rpexplore.releases.manifest import now

# ---- A ledger that is lost for good. What the notes tell of it is all that is known.


def forget(ledger: Ledger, source: Source, lost: str | Path) -> Account:
    """As `Ledger.forget` tells."""
    lost_name = Ledger(lost).name
    try:
        if lost_name == ledger.name:
            ledger.store.read_events()
    except LostEntriesError as error:
        return _forget_lost_entries(ledger, source, error.end)
    into = closed_into(ledger.store.read_events())
    if into is not None:
        raise LedgerError(
            f"The ledger {ledger.name!r} was merged into {into.name!r}, so that nothing is booked "
            "in it any more; name another one, in which the account goes on (--ledger)."
        )
    looked = search(source, ledger)
    notes = [one for one in (*looked.noted, *looked.of_these) if one.name == lost_name]
    accounts = [found.account for found in looked.found.values() if found.account]
    gone = [one for account in accounts for one in account.forgotten]
    notes = [one for one in notes if not any(other.is_noted_as(one) for other in gone)]
    if not notes:
        others = [one.name for one in (*looked.noted, *looked.of_these)]
        noted = f"is {joined([repr(name) for name in dict.fromkeys(others)])}" if others else "none"
        raise LedgerError(
            f"No note says that the records {source.name!r} are charged in the ledger "
            f"{lost_name!r}, so that there is nothing to forget; what is noted {noted}."
        )
    path = Ledger(lost).path
    there = [
        other.name
        for other, found in looked.found.items()
        if any(one.ledger_id in found.ids for one in notes if one.ledger_id)
        or (other.name == lost_name and found.id and not any(one.ledger_id for one in notes))
    ]
    if there or (path is not None and path.exists() and Ledger(lost) != ledger):
        raise LedgerError(
            f"The ledger {lost_name!r} is not lost: it is at {(there or [lost_name])[0]!r}; use "
            "it (--ledger), merge it (rpexplore ledger --merge), or, if it is damaged and no copy "
            "is left, move its file away first."
        )
    known_ledger(source, ledger.name, given_up=notes)  # refuses what is charged in a third one
    known = [one.known for one in looked.noted if one.name == lost_name]
    # What was merged into the lost ledger is known, and was spent there.
    merged = [
        found.account
        for found in looked.found.values()
        if found.account and found.into is not None and found.into.name == lost_name
    ]
    known += [
        KnownBounds(
            Neighbours.common([one.neighbours for one in merged]).total_of(
                (one.neighbours, one.spent_record_rho) for one in merged
            ),
            account.limit_record_rho,
            account.approval_demands,
            Neighbours.common([account.neighbours for account in merged]),
        )
        for account in merged
    ]
    lost_id = next((one.ledger_id for one in notes if one.ledger_id), "")
    names = source.names(ledger.store.folder)
    about = {"ledger": lost_name, "ledger_id": lost_id}
    if not ledger.account_of(source).is_used:
        source.fingerprint()  # refuses what is no data
    with ledger.store.transaction() as events:
        _note_known(events, names, about, known)
    for home in homes(source):
        beside = Ledger(home / FILENAME)
        if beside != ledger and any(
            one.name == lost_name for one in beside.account_of(source).elsewhere
        ):
            with beside.store.transaction() as events:
                names_there = source.names(beside.store.folder)
                events.add("forgotten", note_of(names_there, **about, record_rho=None))
    note_account(ledger, source)
    return ledger.account_of(source)


def _forget_lost_entries(ledger: Ledger, source: Source, end: End) -> Account:
    """Give up the entries that a ledger lacks, which goes on without them.

    end: where it ended with them
    """
    forget_end(ledger.name, end)
    try:
        looked = search(source, ledger)
        known_ledger(source, ledger.name)  # refuses what is charged in another one
        source.fingerprint()  # refuses what is no data
        known = [one.known for one in looked.noted if one.name == ledger.name]
        names, about = source.names(ledger.store.folder), {"ledger": ledger.name}
        with ledger.store.transaction() as events:
            left = account_of_names(events.events, names, ledger.store.folder).known
            about["ledger_id"] = ledger_id(events.events)
            _note_known(events, names, about, known, left)
    except BaseException:
        note_end(ledger.name, end)
        raise
    note_account(ledger, source)
    return ledger.account_of(source)


def _note_known(
    events: LedgerTransaction,
    names: Sequence[str],
    about: Mapping[str, str],
    known: Sequence[KnownBounds],
    left: KnownBounds | None = None,
) -> None:
    """Add that a ledger, or some of its entries, is given up, and what notes tell of it.

    left: what was spent by entries that are there
    """
    left = left or KnownBounds()
    common = Neighbours.common([one.neighbours for one in (*known, left) if one.spent_record_rho])

    def spent_in(one: KnownBounds) -> Fraction:
        return common.total_of([(one.neighbours, one.spent_record_rho or Fraction(0))])

    spent = max(map(spent_in, known), default=Fraction(0))
    limits = [one.limit_record_rho for one in known if one.limit_record_rho is not None]
    amount = noted_amount(max(spent - spent_in(left), Fraction(0)))
    unit = {"unit": common.unit} if common.suffix else {}
    # Runs are noted to the microsecond as well: those before this moment are over.
    about = {**about, "noted": now("microseconds")}
    events.add("forgotten", note_of(names, **about, record_rho=amount, **unit))
    _bind(events, names, min(limits, default=None))
    for demand in dict.fromkeys(demand for one in known for demand in one.demands):
        _bind(events, names, None, demand.n, demand.allowed_signers)


def _bind(
    events: LedgerTransaction,
    names: Sequence[str],
    limit: Fraction | None,
    n: int = 0,
    allowed_signers: str = "",
) -> None:
    """Add a limit or a demand beside those that are there, unless there is neither, or it is."""
    if limit is None and not n:
        return
    limits, demands = bounds_of(events.events)
    own, demand = own_names(names), demand_as_noted(n, allowed_signers) if n else None
    if (own, limit) not in limits and (own, demand) not in demands:
        # A limit of 0, which a server takes from whoever sets limits, binds as well.
        amount = None if limit is None else exact_text(total_of([limit]))
        bound = {"record_rho": amount, "n": n, "allowed_signers": allowed_signers}
        events.add("bound", note_of(names, **bound))


# ---- A ledger that is merged into another one, which has all its entries then.
#
# A run that both have is taken over once, unless copies of its folder had their noise apart, in
# copies of a ledger: of two releases of it, or two pilots, each is charged.
#
# Both are locked meanwhile. What is taken over is on disk before the other one is closed: a merge
# that was stopped between the two is made again, and takes over nothing twice.


def merge(ledger: Ledger, other: Ledger) -> int:
    """As `Ledger.merge` tells."""
    if ledger == other or (ledger.path is None and _is_one_database(ledger, other)):
        raise LedgerError(f"The ledger {other.name!r} cannot be merged into itself; name another.")
    if other.path is not None and not other.path.exists():
        raise LedgerError(f"There is no ledger {other.name!r} to be merged; correct its name.")
    if other.path is None and ledger.path is not None:
        raise LedgerError(
            f"The ledger {other.name!r} serves several machines, and a file serves one; merge the "
            f"file {ledger.name!r} into it instead."
        )
    into = closed_into(ledger.store.read_events())
    if into is not None:
        raise LedgerError(
            f"The ledger {ledger.name!r} was merged into {into.name!r} itself; name that one."
        )
    with other.store.transaction() as theirs:
        into = closed_into(theirs.events)
        if into is not None and not into.means(text_of_path(ledger.name), ledger_ids_of(ledger)):
            raise LedgerError(
                f"The ledger {other.name!r} was merged into {into.name!r} already; merge that one."
            )
        if not theirs.events:
            raise LedgerError(f"The ledger {other.name!r} has no entries; there is nothing to do.")
        about = {"noted": now(), "user": user_name(), "ledger": text_of_path(ledger.name)}
        with ledger.store.transaction(merging=True) as ours:
            own_id, digests = ledger_id(ours.events), list[str]()
            # Of a copy, which went on by itself. A server takes no such list: there a copy that is
            # removed afterwards is missed by whoever has booked in it.
            if own_id == ledger_id(theirs.events) and ledger.path is not None:
                known = {event.digest for event in ours.events}
                digests = [event.digest for event in theirs.events if event.digest not in known]
                if into is None:  # its last one will be that it is closed
                    closing = dumps({**about, "ledger_id": own_id})
                    digests.append(digest_of(theirs.end.digest, "closed", closing))
            n_taken = _take_over(ours, theirs.events, ledger, other, digests)
        own_id = ledger_id(ours.events)
        with suppress(OSError):  # a home that cannot be written to
            remember(ledger, own_id, frozenset())
        if into is None:
            theirs.add("closed", {**about, "ledger_id": own_id})
    return n_taken


def _is_one_database(ledger: Ledger, other: Ledger) -> bool:
    """Whether two names are of one ledger in a database, or of a copy that did not go on apart."""
    if other.path is not None:
        return False
    chains = [[event.digest for event in one.store.read_events()] for one in (ledger, other)]
    shortest = min(map(len, chains))
    return shortest > 0 and chains[0][:shortest] == chains[1][:shortest]


def ledger_ids_of(ledger: Ledger) -> frozenset[str]:
    """All identities of a ledger."""
    return ledger_ids(ledger.store.read_events())


def _take_over(
    ours: LedgerTransaction,
    theirs: Sequence[Event],
    ledger: Ledger,
    other: Ledger,
    digests: Sequence[str],
) -> int:
    """Add what the other ledger has and this one lacks; returns how many runs that are.

    digests: those that users may remember as the end of this ledger, if the other one is its copy,
        in a file
    """
    folders = other.store.folder, ledger.store.folder
    numbers: dict[int, int] = {}  # of runs, there -> here
    n_taken = 0
    own: dict[str, list[int]] = {}
    for event in ours.events:
        if event.kind == "run":
            own.setdefault(_run_key(event), []).append(event.id)
    own_figures, their_figures = _figures_of_runs(ours.events), _figures_of_runs(theirs)
    ends = Counter(_end_key(event) for event in ours.events if "run" in event.content)
    known_ids, known_digests = merged_ids(ours.events), merged_digests(ours.events)
    merged = [(other.name, ledger_id(theirs), digests)]
    for event in theirs:
        content = dict(event.content)
        if "names" in content:
            content["names"] = list(_names_seen_from(content["names"], *folders))
        if event.kind == "run":
            same, figures = own.get(_run_key(event), []), their_figures[event.id]
            alike = [one for one in same if _may_be_one(own_figures[one], figures)]
            if alike:
                number = next((one for one in alike if own_figures[one] == figures), alike[0])
                same.remove(number)
                numbers[event.id] = number
            else:
                numbers[event.id] = ours.add("run", content)
                n_taken += 1
        elif event.kind in ("finished", "approved", "pilot"):
            content["run"] = numbers[content["run"]]
            key = _end_key(Event(0, event.kind, content))
            if ends[key]:
                ends[key] -= 1
            else:
                ours.add(event.kind, content)
        elif event.kind == "forgotten":
            if not any(one.kind == event.kind and one.content == content for one in ours.events):
                ours.add("forgotten", content)
        elif event.kind == "merged":
            merged.append((content["ledger"], content["ledger_id"], content.get("digests", ())))
    limits, demands = bounds_of(theirs)
    for names, limit in limits:
        _bind(ours, _names_seen_from(names, *folders), limit)
    for names, demand in demands:
        seen = _names_seen_from(names, *folders)
        _bind(ours, seen, None, demand.n, demand.allowed_signers)
    for name, one_id, digests in merged:
        if one_id not in known_ids or not known_digests.issuperset(digests):
            about = {"noted": now(), "user": user_name(), "ledger": text_of_path(name)}
            of_copy = {"digests": list(digests)} if digests else {}
            ours.add("merged", {**about, "ledger_id": one_id, **of_copy})
    return n_taken


def _figures_of_runs(events: Sequence[Event]) -> dict[int, dict[str, str]]:
    """Of each run, by its number, what was shown: the SHA-256 of its release and of its pilot."""
    figures: dict[int, dict[str, str]] = {event.id: {} for event in events if event.kind == "run"}
    for event in events:
        for key in ("manifest_sha256", "pilot_sha256"):
            if event.content.get(key):
                figures[event.content["run"]][key] = event.content[key]
    return figures


def _may_be_one(figures: Mapping[str, str], others: Mapping[str, str]) -> bool:
    """Whether what two ledgers have of a run can be of the same noise."""
    return all(others.get(key, sha256) == sha256 for key, sha256 in figures.items())


def _run_key(event: Event) -> str:
    """What two ledgers call the same of one run, which see its records from different folders."""
    return dumps({key: value for key, value in event.content.items() if key != "names"})


def _end_key(event: Event) -> str:
    return dumps([event.kind, event.content])


def _names_seen_from(
    names: Sequence[str], folder: Path | None, new_folder: Path | None
) -> tuple[str, ...]:
    """Names of records in a ledger as another one has them."""
    if folder == new_folder:
        return tuple(names)
    own = own_names(names)
    if folder is None or not any(FILE_PREFIX in name for name in own):
        return tuple(names)  # no file: what it is called is the same everywhere
    machines: Sequence[str] = ("",)
    if new_folder is None:
        machines = machine_names(_parts_of(own[0], folder)[1] or folder)

    def seen(name: str) -> list[str]:
        engine, path, table = _parts_of(name, folder)
        if path is None and FILE_PREFIX not in name:
            return [name]
        if path is None:  # what a file is, and what a folder around it is
            n = -1 if name.startswith(FILE_PREFIX) else 1
            starts = [f"{FILE_PREFIX}{one}:" if one else FILE_PREFIX for one in machines]
            return [name.replace(FILE_PREFIX, start, n) for start in starts]
        if new_folder is not None:
            return [f"{engine}{path_name(new_folder, path)}{table}"]
        return [f"{engine}{text_of_path(path)}{AT_MACHINE}{one}{table}" for one in machines]

    parts = names[len(own) + 1 :]  # the mark between the two is made anew
    return names_with_parts(
        [new for name in own for new in seen(name)], [new for name in parts for new in seen(name)]
    )


def _parts_of(name: str, folder: Path) -> tuple[str, Path | None, str]:
    """Engine with a colon, file and table with a slash of a name in the ledger of a folder.

    Engine and table are "" of a file of records, and the file is None of names that are no paths.
    """
    engine, rest, table = "", name, ""
    if name.startswith(("duckdb:", "sqlite:")):
        engine, rest = name[:7], name[7:]
        rest, _, table = rest.rpartition("/")
        table = f"/{table}"
    if NO_PATH.match(rest):
        return engine, None, table
    return engine, Path(os.path.normpath(folder / rest)), table
