"""Account: what a ledger's chain of events says of a dataset, and what its limit allows."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from rpexplore.common.text import joined, plural
from rpexplore.data.source import own_names, place_in_name
from rpexplore.errors import LedgerError
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.privacy.budget import REPLACE, exact_totals_text
from rpexplore.privacy.conversions import rho_text
from rpexplore.privacy.discrete_noise import GaussianClaim
from rpexplore.releases.approvals import ApprovalDemand, demand_as_noted
from rpexplore.releases.ledger.events import (
    MOST_KEPT,
    Event,
    amount_of,
    claim_of,
    ledger_id,
    ledger_ids,
    noted_amount,
)
from rpexplore.releases.ledger.spent import ADDED_OR_REMOVED, Neighbours, Reading, Spent

_HOW_TO_CHANGE = (
    "Whoever answers for these records can change the limit, with the command “rpexplore ledger”."
)

GIVEN_UP = "given up"
"""Of a run that had not finished when a ledger of its records was given up, which may tell that it
has: nobody goes on with it."""

# What an entry has as its event holds it.
_IN_ENTRY = ("started", "plan_sha256", "output", "data_bytes", "data_modified", "user")


@dataclass(frozen=True)
class NotedApproval:
    """An approval that a run was booked with: SHA-256 of its file, who, with which key, when."""

    sha256: str
    name: str
    key: str
    approved: str


@dataclass(frozen=True)
class LedgerEntry:
    """One entry: a run that was started, and is charged whether or not it finished."""

    id: int
    started: str
    plan_sha256: str
    record_rho: Fraction
    state: str  # "started", "finished", or GIVEN_UP
    output: str
    data_bytes: int = 0
    data_modified: str = ""
    user: str = ""
    manifest_sha256: str = ""
    pilot_sha256: str = ""  # of the figures of its pilot, if that was or is about to be shown
    approvals: tuple[NotedApproval, ...] = ()
    n_demanded: int = 0  # approvals, when it was booked
    kind: Neighbours = ADDED_OR_REMOVED  # the neighbours that its ρ is for
    claim: GaussianClaim | None = None  # of its noise, for one record; None: ρ alone is known

    @property
    def spent(self) -> Spent:
        """What it spent."""
        return Spent(self.record_rho, self.claim, 1, int(self.claim is None))


@dataclass(frozen=True)
class Elsewhere:
    """The ledger that some records are charged in, as another one notes it.

    name       what it is found by
    ledger_id  as `ledger_id` tells it; "" if it had no entries yet, None in notes that do not tell
    known      what their account there was when it was noted last
    """

    name: str
    ledger_id: str | None = None
    known: "KnownBounds" = field(default_factory=lambda: KnownBounds(), compare=False)

    def means(self, name: str, ledger_ids: Collection[str]) -> bool:
        """Whether this is the ledger of this name and these identities, which may have moved."""
        return name == self.name if not self.ledger_id else self.ledger_id in ledger_ids


@dataclass(frozen=True)
class KnownBounds:
    """What was spent on some records, and what binds further runs on them; None: not known.

    neighbours  of whose change the spent ρ is
    """

    spent_record_rho: Fraction | None = None
    limit_record_rho: Fraction | None = None
    demands: tuple[ApprovalDemand, ...] = ()
    neighbours: Neighbours = ADDED_OR_REMOVED

    def noted(self, before: "KnownBounds") -> dict[str, Any]:
        """What a note of them holds behind one of `before`: no unchanged list once more."""
        content: dict[str, Any] = {"record_rho": noted_amount(self.spent_record_rho)}
        if self.limit_record_rho != before.limit_record_rho:
            content["limit"] = noted_amount(self.limit_record_rho)
        if self.demands != before.demands:
            content["demands"] = [asdict(demand) for demand in self.demands]
        if self.neighbours != before.neighbours:
            content["unit"] = self.neighbours.unit
        return content

    @classmethod
    def read(cls, content: Mapping[str, Any], before: "KnownBounds") -> "KnownBounds":
        """What a note tells, behind one of `before`."""

        def amount(key: str, otherwise: Fraction | None) -> Fraction | None:
            text = content.get(key, otherwise)
            return amount_of(text) if isinstance(text, str) else text

        demands = before.demands
        if "demands" in content:
            demands = tuple(demand_as_noted(**demand) for demand in content["demands"])
        return cls(
            amount("record_rho", before.spent_record_rho),
            amount("limit", before.limit_record_rho),
            demands,
            Neighbours.of(content["unit"]) if "unit" in content else before.neighbours,
        )


def closed_into(events: Sequence[Event]) -> Elsewhere | None:
    """The ledger that these events were merged into, which goes on in their place."""
    for event in reversed(events):
        if event.kind == "closed":
            return Elsewhere(event.content["ledger"], event.content["ledger_id"])
    return None


@dataclass(frozen=True)
class Forgotten:
    """A ledger that some records were charged in, and that is lost and given up.

    record_rho  what is known to have been spent in it, for one record
    kind        the neighbours that this is for
    """

    ledger: Elsewhere
    record_rho: Fraction
    user: str
    noted: str
    kind: Neighbours = ADDED_OR_REMOVED

    @property
    def spent(self) -> Spent:
        """What is known to have been spent in it."""
        return Spent(self.record_rho, None, 1, 1)

    def is_noted_as(self, noted: Elsewhere) -> bool:
        """Whether a note means this ledger, and not a later one of the same name."""
        lost = self.ledger
        return noted.name == lost.name and (noted.ledger_id or lost.ledger_id) == lost.ledger_id


@dataclass(frozen=True)
class Account:
    """What a dataset's records have been charged so far, and what binds further runs.

    Records that are charged apart and later together, as files and then as their folder, have one
    account from then on, in which every limit and every demand of theirs holds.

    limits     budget limits for one record, each behind the names of what it was set for
    demands    what approvals a plan needs, likewise
    elsewhere  other ledgers that it is charged in
    forgotten  other ledgers that it was charged in, and that are given up
    given_up   when a ledger of its records was given up last; "" for never
    is_closed  whether the ledger was merged into another one, so that nothing is charged here
    """

    dataset: str
    names: frozenset[str]
    limits: tuple[tuple[tuple[str, ...], Fraction], ...] = ()
    entries: tuple[LedgerEntry, ...] = ()
    elsewhere: tuple[Elsewhere, ...] = ()
    demands: tuple[tuple[tuple[str, ...], ApprovalDemand], ...] = ()
    forgotten: tuple[Forgotten, ...] = ()
    given_up: str = ""
    is_closed: bool = False

    @property
    def neighbours(self) -> Neighbours:
        """What all runs together promise something about: the neighbours of the last one, or,
        where runs of several kinds came together, changes that are small for each of them."""
        return Neighbours.common(self._kinds)

    @property
    def is_mixed(self) -> bool:
        """Whether runs for several kinds of neighbours came together, so that none may follow."""
        return len(self._kinds) > 1

    @property
    def spent_record_rho(self) -> Fraction:
        """What all runs cost together, for one change of `neighbours`."""
        runs = (*self.entries, *self.forgotten)
        return self.neighbours.total_of((one.kind, one.record_rho) for one in runs)

    @property
    def spent(self) -> Spent:
        """What all runs spent together, with what they prove, for one change of `neighbours`."""
        common = self.neighbours
        return Spent.together(
            one.spent.of_records(common.n_changes_of(one.kind))
            for one in (*self.entries, *self.forgotten)
            if one.record_rho
        )

    def spent_after(self, plan: Plan, reading: Reading) -> Spent:
        """What all runs and one of this plan spend together, for neighbours of all of them."""
        own = Neighbours.by(plan, reading)
        common = Neighbours.common([own, *self._kinds])
        before = self.spent.of_records(common.n_changes_of(self.neighbours))
        return Spent.together([before, Spent.by(plan).of_records(common.n_changes_of(own))])

    @property
    def _kinds(self) -> tuple[Neighbours, ...]:
        """Each kind of neighbours that something was spent for, the last run's first."""
        spent = (one.kind for one in (*self.forgotten, *self.entries)[::-1] if one.record_rho)
        return tuple(dict.fromkeys(spent))

    @property
    def limit_record_rho(self) -> Fraction | None:
        """The strictest of the limits; None without one."""
        return min((limit for _, limit in self.limits), default=None)

    @property
    def limit_source(self) -> str:
        """Whose the strictest limit is, in brackets, if it was set for other records than these."""
        whose, _ = min(self.limits, key=lambda bound: bound[1], default=((self.dataset,), None))
        return "" if self.dataset in whose else f" (set for {whose[0]!r})"

    @property
    def approval_demands(self) -> tuple[ApprovalDemand, ...]:
        """Each demand once; all of them have to be met."""
        return tuple(dict.fromkeys(demand for _, demand in self.demands))

    @property
    def is_used(self) -> bool:
        """Whether it holds what binds further runs: earlier ones, a limit, a demand."""
        binds = self.spent_record_rho or self.limits or self.demands
        return bool(binds) and not self.is_closed

    @property
    def known(self) -> KnownBounds:
        """What another ledger notes of it."""
        return KnownBounds(
            self.spent_record_rho, self.limit_record_rho, self.approval_demands, self.neighbours
        )


def account_of_names(
    events: Sequence[Event], names: Sequence[str], folder: Path | None = None
) -> Account:
    """The account of whatever shares one of these names, or a name with what does.

    Files share it with a folder around them that was named as records by itself.

    folder: what names are seen from; None if they say of which machine they are
    """
    known = _connected(events, names, folder)
    account, entries = Account(names[0], known), {}
    own_id, ids = ledger_id(events), ledger_ids(events)
    given_up = ""  # when something was given up last
    # All names of an event are known, or none is. Notes on a run name no records.
    own = {
        event.id
        for event in events
        if "names" in event.content and event.content["names"][0] in known
    }
    counted = _Counted([event for event in events if event.id in own], names)
    limits, demands = bounds_of([event for event in events if event.id in own])
    for event in events:
        content = event.content
        if event.kind == "finished" and content["run"] in entries:
            entry = entries[content["run"]]
            entries[entry.id] = replace(
                entry, state="finished", manifest_sha256=content["manifest_sha256"]
            )
        if event.kind == "pilot" and content["run"] in entries:
            entry = entries[content["run"]]
            entries[entry.id] = replace(entry, pilot_sha256=content["pilot_sha256"])
        if event.kind == "approved" and content["run"] in entries:
            noted = tuple(NotedApproval(**approval) for approval in content["approvals"])
            entry = entries[content["run"]]
            entries[entry.id] = replace(entry, approvals=noted, n_demanded=content["n"])
        # What a ledger itself has lost is given up for all records in it.
        if event.kind == "forgotten" and (event.id in own or content["ledger_id"] in ids):
            moment, is_ours = content["noted"].partition("+")[0], content["ledger_id"] == own_id
            given_up = max(given_up, moment)
            for entry in list(entries.values()):
                is_over = is_ours or _is_before(entry.started, moment)
                if entry.state == "started" and is_over:
                    entries[entry.id] = replace(entry, state=GIVEN_UP)
        if event.id not in own:
            continue
        if event.kind == "run":
            facts = {key: content[key] for key in _IN_ENTRY}
            rho, noise = amount_of(content["record_rho"]), content.get("noise")
            claim = None if noise is None else claim_of(*noise)
            # Behind it in this ledger, but earlier: taken over from one that was merged into it.
            is_over = _is_before(content["started"], given_up)
            entries[event.id] = LedgerEntry(
                event.id,
                record_rho=rho,
                state=GIVEN_UP if is_over else "started",
                claim=claim,
                kind=counted.kind_of(event),
                **facts,
            )
        elif event.kind == "elsewhere":
            noted = Elsewhere(content["ledger"], content.get("ledger_id"))
            before = [one.known for one in account.elsewhere if one == noted] or [KnownBounds()]
            known_there = KnownBounds.read(content, before[-1])
            if "unit" in content:
                known_there = replace(known_there, neighbours=counted.kind_of(event))
            noted = replace(noted, known=known_there)
            # It is noted before its first entry, and again when it is known by that.
            others = [
                one
                for one in account.elsewhere
                if one != noted and (one.ledger_id or one.name != noted.name)
            ]
            account = replace(account, elsewhere=(*others, noted))
        elif event.kind == "forgotten":
            lost = Forgotten(
                Elsewhere(content["ledger"], content["ledger_id"]),
                amount_of(content["record_rho"] or "0"),
                content["user"],
                content["noted"],
                counted.kind_of(event),
            )
            account = replace(
                account,
                elsewhere=tuple(one for one in account.elsewhere if not lost.is_noted_as(one)),
                forgotten=(*account.forgotten, lost),
            )
    into, held = closed_into(events), {"limits": tuple(limits), "demands": tuple(demands)}
    account = replace(account, entries=tuple(entries.values()), given_up=given_up, **held)
    if into is not None and account.is_used:
        is_lost = any(lost.is_noted_as(into) for lost in account.forgotten)
        elsewhere = account.elsewhere if is_lost else (*account.elsewhere, into)
        account = replace(account, elsewhere=elsewhere, is_closed=True)
    return account


def _is_before(started: str, moment: str) -> bool:
    """Whether a run was started before a moment in UTC, to the second or finer; not before ""."""
    return bool(moment) and started[: len(moment)] <= moment


def check_clock(account: Account, started: str) -> None:
    """Raise `LedgerError` for a run that would be given up as soon as it is booked.

    As it is by a clock that is behind the one by which a ledger of its records was given up.
    """
    if _is_before(started, account.given_up):
        raise LedgerError(
            f"By the clock of this machine it is {started[:19]} in UTC, and a ledger of the "
            f"records {account.dataset!r} was given up at {account.given_up[:19]}: runs from "
            "before that moment do not go on. Set the clock right, or, if it is right, run the "
            "plan after that moment."
        )


def given_up_text(entry: LedgerEntry, ledger: str) -> str:
    """Why nobody goes on with a run, and what to do instead."""
    return (
        f"The run into {entry.output!r} cannot go on: a ledger of its records, or what the ledger "
        f"{ledger!r} has lost, was given up after it had been booked, so that a copy of it may "
        "have been released. Remove its unfinished folder and run the plan again, which is charged "
        "as a further run."
    )


def _connected(
    events: Sequence[Event], names: Sequence[str], folder: Path | None
) -> frozenset[str]:
    """These names, and those of all events that are about the same records, in part or whole."""
    sets = {tuple(event.content.get("names", ())) for event in events}  # few, of many runs
    known, n_known = set(names), 0
    while n_known < len(known):
        n_known, places = len(known), Places(folder, known)
        for others in sets:
            if places.meet(_places_of_event(folder, others)):
                known.update(others)
    return frozenset(known)


class _Counted:
    """What the runs of an account have counted: its records themselves, or others around or within.

    How many records are in each is public where records are replaced, so that their kinds differ.
    """

    def __init__(self, events: Sequence[Event], names: Sequence[str]) -> None:
        """Of the events of the account of these names."""
        self._own, n_known = set(own_names(names)), 0
        sets = [own_names(event.content["names"]) for event in events]
        while n_known < len(self._own):  # a file has another name after a move
            n_known = len(self._own)
            self._own.update(*(others for others in sets if not self._own.isdisjoint(others)))

    def kind_of(self, event: Event) -> Neighbours:
        """The neighbours that the ρ of an event is for, as seen from the account's records."""
        kind, others = (
            Neighbours.of(event.content.get("unit", "")),
            own_names(event.content["names"]),
        )
        if kind.kind != REPLACE or not self._own.isdisjoint(others):
            return kind
        return replace(kind, counted=tuple(sorted({*kind.counted, others[0]})))


class Places:
    """Where records of some names lie: they themselves, and the folders around them.

    folder: what names are seen from; None if they say of which machine they are
    """

    def __init__(self, folder: Path | None, names: Iterable[str]) -> None:
        places = [place_in_name(folder, name) for name in names]
        self._own = {own for own, _ in places}
        self._around = {outer for _, around in places for outer in around}

    def meet(self, other: "Places") -> bool:
        """Whether they are the same, or one lies in the other."""
        return not (
            self._own.isdisjoint(other._own)
            and self._own.isdisjoint(other._around)
            and self._around.isdisjoint(other._own)
        )


@lru_cache(maxsize=MOST_KEPT)
def _places_of_event(folder: Path | None, names: tuple[str, ...]) -> Places:
    return Places(folder, names)


_Term = TypeVar("_Term", Fraction, ApprovalDemand)


def bounds_of(
    events: Sequence[Event],
) -> tuple[list[tuple[tuple[str, ...], Fraction]], list[tuple[tuple[str, ...], ApprovalDemand]]]:
    """The limits and the demands that these events leave in force, with whose they are."""
    limits: list[tuple[tuple[str, ...], Fraction]] = []
    demands: list[tuple[tuple[str, ...], ApprovalDemand]] = []
    for event in events:
        if event.kind not in ("limit", "approvals", "bound"):
            continue
        names, text = event.content["names"], event.content.get("record_rho")
        limit = None if text is None else amount_of(text)
        n = event.content.get("n", 0)
        demand = demand_as_noted(n, event.content["allowed_signers"]) if n else None
        if event.kind == "limit":
            _set(limits, names, limit)
        elif event.kind == "approvals":
            _set(demands, names, demand)
        else:  # beside what was set before, which it does not replace
            own = own_names(names)
            limits += [] if limit is None else [(own, limit)]
            demands += [] if demand is None else [(own, demand)]
    return limits, demands


def _set(
    terms: list[tuple[tuple[str, ...], _Term]], names: Sequence[str], term: _Term | None
) -> None:
    """Replace what was set for the same records, and not what was for others of their account."""
    own = own_names(names)
    terms[:] = [(others, other) for others, other in terms if set(own).isdisjoint(others)]
    if term is not None:
        terms.append((own, term))


def check_neighbours(
    account: Account, plan: Plan | PartPlan, reading: Reading | None = None
) -> None:
    """Raise `LedgerError` for a run for other neighbours than those of the runs before.

    Their ρ does not add up. One that adds or removes a record says of a replaced one, which is
    removed and another added, that it is 4ρ; one for replaced records says nothing of added ones.
    What changes so that exact totals stay is two replaced records at most, and keeps fewer totals,
    too.
    """
    own = Neighbours.by(plan, reading)
    spent = [(one.kind, one.record_rho) for one in (*account.entries, *account.forgotten)]
    others = list(dict.fromkeys(kind for kind, rho in spent if rho and kind != own))
    if not others:
        return
    common = Neighbours.common([own, *others])
    together = common.total_of([*spent, (own, plan.record_rho)])
    texts = (
        f"The dataset {account.dataset!r} has runs for neighbours that "
        f"{joined([kind.does for kind in others])}, and those of this "
        f"plan {own.does}; the {'two ' if len(others) == 1 else ''}kinds are not added up. "
        "Together they would promise "
    )
    if account.is_mixed:
        remedy = (
            "Accounts of several kinds came together here, so that no run can follow; release "
            "records apart that have runs of one kind."
        )
    elif others[0].counted:
        names = joined(list(map(repr, others[0].counted)))
        remedy = f"Release {names} as before, whose number of records is public."
    elif others[0].within != own.within:
        remedy = (
            "Plan with the same condition (--where), or none, and neighbours as before, of the "
            "same codebook, and release with the same encoding, positions and rule for persons."
        )
        if own.exact:
            remedy += (
                " With exact totals the first records of persons are the same ones only if tables "
                "of the same attributes are counted."
            )
    elif others[0].exact or own.exact:
        remedy = (
            "Plan with the same exact totals (--exact) of the same codebook and areas, and "
            "neighbours as before, and release with the same encoding, positions, and categories "
            "for missing and unknown values."
        )
    else:
        remedy = f"Plan with --neighbours {others[0].kind}."
    if common.exact:
        raise LedgerError(
            f"{texts}{rho_text(together, 4, 'up')} for changes that keep all totals of "
            f"{exact_totals_text(common.exact)}{common.where} (a run for replaced records counts "
            "four times, one for added or removed records sixteen times), and nothing about "
            f"others. {remedy}"
        )
    raise LedgerError(
        f"{texts}{rho_text(together, 4, 'up')} {common.change} (a run for added or "
        "removed records counts four times), and nothing about one that is added or removed. "
        f"{remedy}"
    )


def check_limit(
    account: Account, plan: Plan | PartPlan, wanted_limit: Fraction | None = None
) -> None:
    """Raise `LedgerError` for another limit than the noted one, or a run beyond it.

    Of a panel it counts what people with as many records in any periods cost, as the ledger does:
    other runs of these records may count two of theirs in one period.
    """
    unit, limit, in_panel = plan.budget.unit, account.limit_record_rho, ""
    if plan.budget.period is not None:
        most = plural(plan.budget.max_records_per_person or 1, "record")
        unit = f"{plan.budget.nouns} with any {most}"
        in_panel = (
            " (limits are for them, as other runs may count several records of a period; in the "
            f"panel it costs {rho_text(plan.rho)})"
        )

    def for_unit(rho: Fraction, mode: str) -> str:
        return plan.budget.amount_text(rho * plan.budget.records_factor, mode, 9)

    if limit is not None and wanted_limit not in (None, limit):
        raise LedgerError(
            f"The ledger has another budget limit for the dataset {account.dataset!r}, "
            f"{for_unit(limit, 'down')} for {unit}{account.limit_source}; leave the limit "
            f"out here. {_HOW_TO_CHANGE}"
        )
    limit = wanted_limit if limit is None else limit
    if limit is not None and account.spent_record_rho + plan.record_rho > limit:
        left = max(limit - account.spent_record_rho, Fraction(0))
        raise LedgerError(
            f"This run costs {for_unit(plan.record_rho, 'up')} for {unit}{in_panel}, and "
            f"the dataset {account.dataset!r} has only {for_unit(left, 'down')} left of "
            f"its budget limit of {for_unit(limit, 'down')}{account.limit_source}; plan with "
            f"a smaller budget. {_HOW_TO_CHANGE}"
        )
