"""The chain of a ledger's events, which shows what was edited or lost; and where it ended."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rpexplore.common.files import home_folder, write_whole
from rpexplore.common.json_fields import dumps, refusing
from rpexplore.common.text import text_of_path
from rpexplore.errors import LedgerError
from rpexplore.releases.ledger.account import (
    Event,
    checked_content,
    closed_into,
    ledger_id,
    merged_digests,
)

# ---- Where a ledger ended when this user last added to it. A ledger that was cut back, as an old
# copy is, has a chain that is whole; whoever added what is missing knows better.


@dataclass(frozen=True)
class End:
    """The last event of a ledger: which ledger it is, the event's number, and its digest."""

    ledger_id: str
    number: int
    digest: str


class LostEntriesError(LedgerError):
    """A ledger lacks entries that it had when this user last added to it."""


def seen_end(ledger: str) -> End | None:
    """Where the ledger of this name ended when this user last added to it; None if not known."""
    try:
        return End(**json.loads(_file_of_end(ledger).read_bytes())["end"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def seen_ends(one_id: str) -> dict[str, End]:
    """Where ledgers of this identity, under any name, ended when this user last added to them."""
    ends = {}
    for file in sorted((home_folder() / "ledgers").glob("*.json")):
        with suppress(OSError, ValueError, TypeError, KeyError):
            noted = json.loads(file.read_bytes())
            if (end := End(**noted["end"])).ledger_id == one_id:
                ends[noted["ledger"]] = end
    return ends


def note_end(ledger: str, end: End | None) -> None:
    """Remember where the ledger of this name ends; None: nothing of it."""
    with suppress(OSError):  # a home that cannot be written to
        file = _file_of_end(ledger)
        if end is None:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        content = {"ledger": text_of_path(ledger), "end": asdict(end)}
        write_whole(file, dumps(content), mode=0o600)


def _file_of_end(ledger: str) -> Path:
    # A path need not be UTF-8.
    name = hashlib.sha256(ledger.encode(errors="surrogateescape")).hexdigest()[:32]
    return home_folder() / "ledgers" / f"{name}.json"


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
        seen: End | None,
    ) -> None:
        """Check all rows.

        Args:
            ledger: What it is called in errors.
            rows: Number, kind, content and digest of each event, in their order.
            last: The row with the number of events and the last digest; there must be one.
            seen: `seen_end`, as it was before the rows were looked at: others may add some.
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

    def _refuse_cut_back(self, ledger: str, seen: End | None) -> None:
        if seen is None or seen.ledger_id != ledger_id(self.events):  # or it is another ledger
            return
        # What the user has added to a copy of it is there once that was merged into it.
        has_end = self.has(seen.number, seen.digest) or seen.digest in merged_digests(self.events)
        if not has_end:
            raise LostEntriesError(
                f"The ledger {ledger!r} cannot be used: it lacks entries that it had when you last "
                f"added to it, as an old copy does (there were {seen.number} entries). Bring it "
                "back as it was. If that is lost for good, whoever answers for all records that "
                "are charged in it gives the missing entries up: rpexplore ledger DATA --forget "
                "LEDGER --ledger LEDGER, with its name for both."
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
