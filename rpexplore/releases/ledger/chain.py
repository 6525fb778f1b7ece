"""The chain of a ledger's events, which shows what was edited or lost; and where it ended."""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rpexplore.common.files import home_folder, write_whole
from rpexplore.common.json_fields import dumps, loads, refusing
from rpexplore.common.text import text_of_path
from rpexplore.errors import LedgerError
from rpexplore.releases.ledger.account import closed_into
from rpexplore.releases.ledger.events import Event, checked_content, ledger_id, merged_digests

# ---- The notes on ledgers and runs in the user's home.


_ENDS, _RUNS = "ledgers", "runs"  # their folders


def refuse_forgetful_home() -> None:
    """Raise `LedgerError` if it is plain that nothing can be noted in the user's home."""
    home = home_folder()
    for folder in (home, home / _ENDS, home / _RUNS):
        while not os.path.lexists(folder):  # it is made when it is needed
            folder = folder.parent
        if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
            raise not_noted(f"{str(folder)!r} cannot be written to")


def not_noted(problem: str) -> LedgerError:
    """What is raised where a run cannot be noted in the user's home."""
    return LedgerError(
        f"It cannot be noted in {str(home_folder())!r} what you charge and show ({problem}), so "
        "that an older copy of the ledger, or of a run's folder, would not be noticed. Name a "
        "folder that you can write to, and that stays, in the environment variable RPEXPLORE_HOME."
    )


@contextmanager
def _reading_note(file: Path, noticed: str) -> Iterator[None]:
    """Raise `LedgerError` if the block cannot read a note; it is left where there is none.

    noticed: what nobody would notice without the note
    """
    try:
        with refusing(LedgerError, f"The note {str(file)!r} cannot be read"):
            yield
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, LedgerError) as error:
        problem = str(error)
        if isinstance(error, OSError):
            problem = f"The note {str(file)!r} cannot be read: {error.strerror}."
        raise LedgerError(
            f"{problem} Without it {noticed} would not be noticed; restore it from a copy, or "
            "remove it if there is none."
        ) from None


# ---- Where a ledger ended when this user last added to it. A ledger that was cut back, as an old
# copy is, has a chain that is whole; whoever added what is missing knows better.


@dataclass(frozen=True)
class End:
    """The last event of a ledger: which ledger it is, the event's number, and its digest."""

    ledger_id: str
    number: int
    digest: str


class LostEntriesError(LedgerError):
    """A ledger lacks entries that it had when this user last added to it.

    end  where it ended then
    """

    def __init__(self, message: str, end: End) -> None:
        super().__init__(message)
        self.end = end


def seen_ends(name: str) -> dict[str, End]:
    """Where each ledger of this name ended when this user last added to it, by its identity.

    There are several where one that was lost has a successor, or others were brought to its place.
    """
    return _ends_in(_file_of_ends(name))[1]


def seen_names(one_id: str) -> dict[str, End]:
    """Where the ledger of this identity, and its copies, ended so, by the names of them."""
    ends = {}
    for file in sorted((home_folder() / _ENDS).glob("*.json")):
        name, of_name = _ends_in(file)
        if one_id in of_name:
            ends[name] = of_name[one_id]
    return ends


def _ends_in(file: Path) -> tuple[str, dict[str, End]]:
    """A ledger's name and `seen_ends`; none if there is no such file."""
    with _reading_note(file, "an older copy of a ledger"):
        noted = loads(file.read_text("utf-8"))
        # Of an earlier version: one end alone.
        ends = [End(**end) for end in [*noted.get("earlier", ()), noted["end"]]]
        return noted["ledger"], {end.ledger_id: end for end in ends}
    return "", {}


def note_end(name: str, end: End) -> None:
    """Remember where the ledger of this name ends; one of the same identity ends nowhere else."""
    _note_ends(name, {**_without(name, end), end.ledger_id: end})


def forget_end(name: str, end: End) -> None:
    """Remember no longer where the ledger of this name and identity ends."""
    _note_ends(name, _without(name, end))


def _without(name: str, end: End) -> dict[str, End]:
    return {one_id: other for one_id, other in seen_ends(name).items() if one_id != end.ledger_id}


def _note_ends(name: str, ends: Mapping[str, End]) -> None:
    with suppress(OSError):  # a home that cannot be written to
        file = _file_of_ends(name)
        if not ends:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        *earlier, last = map(asdict, ends.values())
        others = {"earlier": earlier} if earlier else {}
        content = {"ledger": text_of_path(name), "end": last, **others}
        write_whole(file, dumps(content), mode=0o600)


def _file_of_ends(ledger: str) -> Path:
    # A path need not be UTF-8.
    name = hashlib.sha256(ledger.encode(errors="surrogateescape")).hexdigest()[:32]
    return home_folder() / _ENDS / f"{name}.json"


# ---- What this user has shown of runs, in whichever ledger: each has one release, and one pilot,
# also where an older copy of its ledger goes on, or was merged into another one.


def shown_figures(started: str, plan_sha256: str) -> dict[str, str]:
    """The SHA-256 that ledgers hold of what was shown of a run, by their key; none if not known."""
    file = _file_of_run(started, plan_sha256)
    with _reading_note(file, "a second release of one run"):
        noted = loads(file.read_text("utf-8"))
        figures = {key: noted.get(key) for key in ("manifest_sha256", "pilot_sha256")}
        return {key: sha256 for key, sha256 in figures.items() if isinstance(sha256, str)}
    return {}


def note_shown(started: str, plan_sha256: str, **figures: str) -> None:
    """Remember what is shown of a run from now on: `manifest_sha256`, `pilot_sha256`, or both.

    Raises `LedgerError` if that cannot be noted.
    """
    known = shown_figures(started, plan_sha256)
    shown = known | {key: sha256 for key, sha256 in figures.items() if sha256}
    if shown == known:
        return
    file = _file_of_run(started, plan_sha256)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(file, dumps(shown), mode=0o600)
    except OSError as error:
        raise not_noted(error.strerror or str(error)) from None


def _file_of_run(started: str, plan_sha256: str) -> Path:
    name = hashlib.sha256(f"{started} {plan_sha256}".encode(errors="surrogateescape")).hexdigest()
    return home_folder() / _RUNS / f"{name[:32]}.json"


# ---- The chain of a ledger's events: each has a digest of itself and of the digest before.
#
# One more row holds how many there are, and the last digest. An event that was edited, removed or
# added otherwise is noticed at the next look: nothing is read from such a ledger. (Who means to
# forge can compute digests. The chain is against damage and mending by hand.)


START = hashlib.sha256(b"rpexplore ledger").hexdigest()


class EventChain:
    """The events of a ledger, and the last digest.

    Raises `LedgerError` if the chain is broken, or if an event is none of this program's, and
    `LostEntriesError` if it lacks what this user has added.
    """

    def __init__(
        self,
        ledger: str,
        rows: Iterable[Sequence[Any]],
        last: Sequence[Sequence[Any]],
        seen: Mapping[str, End],
    ) -> None:
        """Check all rows.

        Args:
            ledger: What it is called in errors.
            rows: Number, kind, content and digest of each event, in their order.
            last: The row with the number of events and the last digest; there must be one.
            seen: `seen_ends`, as it was before the rows were looked at: others may add some.
        """
        self.events: list[Event] = []
        self.digest = START
        for number, kind, text, stated in rows:
            digest = digest_of(self.digest, str(kind), str(text))
            if number != len(self.events) + 1 or digest != stated:
                break
            with refusing(LedgerError, f"Entry {number} of the ledger {ledger!r} cannot be read"):
                self.events.append(Event(number, kind, checked_content(kind, text), digest))
            self.digest = digest
        else:
            if [tuple(row) for row in last] == [(len(self.events), self.digest)]:
                self._refuse_cut_back(ledger, seen)
                return
        raise LedgerError(
            f"The ledger {ledger!r} cannot be used: entry {len(self.events) + 1} is missing or "
            "damaged, or was changed by something else than this program. Restore it from a copy; "
            "what was spent is not known without it."
        )

    def _refuse_cut_back(self, ledger: str, seen: Mapping[str, End]) -> None:
        end = seen.get(ledger_id(self.events))
        if end is None:  # or it is another ledger
            return
        # What the user has added to a copy of it is there once that was merged into it.
        has_end = self.has(end.number, end.digest) or end.digest in merged_digests(self.events)
        if not has_end:
            raise LostEntriesError(
                f"The ledger {ledger!r} cannot be used: it lacks entries that it had when you last "
                f"added to it, as an old copy does (there were {end.number} entries). Bring it "
                "back whole, or remove this copy and name the whole one where it is now "
                "(--ledger). If that is lost for good, whoever answers for all records that are "
                "charged in it gives the missing entries up: rpexplore ledger DATA --forget LEDGER "
                "--ledger LEDGER, with its name for both.",
                end,
            )

    def has(self, number: int, digest: str) -> bool:
        """Whether the event of this number is there, with all before it, as it was."""
        return number == 0 or (
            number <= len(self.events) and self.events[number - 1].digest == digest
        )


Row = tuple[int, str, str, str]
"""An event as it is kept: number, kind, content, digest."""


class LedgerTransaction(ABC):
    """The events of a ledger while nobody else can add one; what is added is there afterwards.

    added  the rows of what was added so far
    """

    def __init__(self, chain: EventChain) -> None:
        self.events, self._digest = chain.events, chain.digest
        self.added: list[Row] = []

    def add(self, kind: str, content: Mapping[str, Any]) -> int:
        """Add an event, and return its number; raises `LedgerError` if the ledger is closed."""
        into = closed_into(self.events)
        if into is not None and kind not in ("elsewhere", "forgotten"):  # where to look instead
            raise LedgerError(
                f"Nothing is booked in this ledger any more, because it was merged into "
                f"{into.name!r}; use that one (--ledger)."
            )
        text = dumps(content)
        with refusing(LedgerError, "The entry cannot be added to the ledger"):
            checked_content(kind, text)  # nobody could read the ledger with it
        self._digest = digest_of(self._digest, kind, text)
        event = Event(len(self.events) + 1, kind, content, self._digest)
        self.added.append((event.id, kind, text, self._digest))
        self._append(*self.added[-1])
        self.events.append(event)
        return event.id

    @property
    def end(self) -> End:
        """The last event."""
        return End(ledger_id(self.events), len(self.events), self._digest)

    @abstractmethod
    def _append(self, number: int, kind: str, text: str, digest: str) -> None:
        """Write a row behind the others, and the last one's number and digest."""


def refuse_unkept(ledger: str, added: Sequence[Row], found: Sequence[Row]) -> None:
    """Raise `LedgerError` unless a ledger holds what was added, as it was written.

    A trigger or a rule can swallow or change what is entered, and another file can have taken the
    place of the ledger: a commit that succeeds says nothing of that.
    """
    if list(added) != list(found):
        raise LedgerError(
            f"The ledger {ledger!r} has not kept what was entered: something else than this "
            "program changes or removes its entries. Restore it from a copy, or have whoever "
            "looks after it find out what that is."
        )


def digest_of(before: str, kind: str, text: str) -> str:
    """The digest of an event behind one with the digest `before`."""
    return hashlib.sha256(f"{before}\n{kind}\n{text}".encode()).hexdigest()
