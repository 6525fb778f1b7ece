"""Account: what a ledger's chain of events says of a dataset, and what its limit allows."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from rpexplore.common.json_fields import check_keys, loads
from rpexplore.common.numbers import Exact, exact_fraction, exact_text
from rpexplore.common.text import rounded
from rpexplore.data.source import own_names, place_in_name
from rpexplore.errors import LedgerError
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.privacy import conversions
from rpexplore.privacy.budget import ADD_REMOVE, Budget
from rpexplore.privacy.discrete_noise import GaussianClaim
from rpexplore.releases.approvals import ApprovalDemand, demand_as_noted
from rpexplore.releases.ledger.neighbours import neighbours_noted

# ---- Events of a ledger: their kinds, and what the content of each kind holds.


# What the content of each kind of event holds. Amounts are texts, the names of a dataset a list.
KINDS: dict[str, dict[str, Any]] = {
    "run": {
        "names": list,
        "data_bytes": int,
        "data_modified": str,
        "started": str,
        "user": str,
        "plan_sha256": str,
        "record_rho": str,
        "unit": str,
        "output": str,
    },
    "finished": {"run": int, "finished": str, "manifest_sha256": str},
    "limit": {"names": list, "noted": str, "user": str, "record_rho": str | None},
    "elsewhere": {"names": list, "noted": str, "user": str, "ledger": str},
    "approvals": {"names": list, "noted": str, "user": str, "n": int, "allowed_signers": str},
    "approved": {"run": int, "n": int, "approvals": list},
    "bound": {
        "names": list,
        "noted": str,
        "user": str,
        "record_rho": str | None,
        "n": int,
        "allowed_signers": str,
    },
    "forgotten": {
        "names": list,
        "noted": str,
        "user": str,
        "ledger": str,
        "ledger_id": str,
        "record_rho": str | None,
    },
    "merged": {"noted": str, "user": str, "ledger": str, "ledger_id": str},
    "closed": {"noted": str, "user": str, "ledger": str, "ledger_id": str},
}
# What it may hold as well.
_OPTIONAL = {
    "run": {"noise": list},
    "elsewhere": {"ledger_id": str, "record_rho": str | None, "limit": str | None, "demands": list},
    "merged": {"digests": list},
}
_MOST_KEPT = 1 << 14  # events that were read, for the next look
FINEST, MOST_AMOUNT = 10**400, 10**100
"""Amounts that texts hold: `exact_fraction` reads 1e-400, and a ρ is below 5e99."""
IN_APPROVAL = ("sha256", "name", "key", "approved")
IN_NOISE = ("mu_squared", "shift", "factor")
"""(μ², Λ, U) of a run whose noise is all Gaussian and of scales that its plan states."""
_CLAIMED_AT = "1e-6"  # the δ near which such a claim is about the best


@dataclass(frozen=True)
class Event:
    """One event; `id` counts from 1. digest: of it and of all before; "" before it is read."""

    id: int
    kind: str
    content: Mapping[str, Any]
    digest: str = ""


def ledger_id(events: Sequence[Event]) -> str:
    """What tells a ledger from every other, wherever it is moved: the digest of its first event.

    "" for one without events.
    """
    return events[0].digest if events else ""


def ledger_ids(events: Sequence[Event]) -> frozenset[str]:
    """Its own identity, and those of all ledgers that were merged into it; none without events."""
    return frozenset(filter(None, {ledger_id(events), *merged_ids(events)}))


def merged_ids(events: Sequence[Event]) -> frozenset[str]:
    """The identities of ledgers that were merged into it; its own where one was a copy of it."""
    return frozenset(event.content["ledger_id"] for event in events if event.kind == "merged")


def merged_digests(events: Sequence[Event]) -> frozenset[str]:
    """The digests of events of its copies that went on by themselves and were merged into it."""
    merged = (event.content.get("digests", ()) for event in events if event.kind == "merged")
    return frozenset(digest for digests in merged for digest in digests)


def closed_into(events: Sequence[Event]) -> "Elsewhere | None":
    """The ledger that these events were merged into, which goes on in their place."""
    for event in reversed(events):
        if event.kind == "closed":
            return Elsewhere(event.content["ledger"], event.content["ledger_id"])
    return None


def checked(event: Event) -> Event:
    """The event; raises `ValueError` or the like if its content is not that of its kind."""
    optional = _OPTIONAL.get(event.kind, {})
    kinds = KINDS[event.kind] | {key: optional[key] for key in optional if key in event.content}
    check_keys(event.content, kinds, f"an entry of the kind {event.kind!r}")
    for key, kind in kinds.items():
        value = event.content[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(key)
        if key == "names" and not (value and all(isinstance(name, str) for name in value)):
            raise ValueError(key)
        if key == "demands":
            for demand in value:
                check_keys(demand, ("n", "allowed_signers"), "a demand")
                if not (type(demand["n"]) is int and demand["n"] > 0):
                    raise ValueError(key)
                if not isinstance(demand["allowed_signers"], str):
                    raise ValueError(key)
        if key == "digests" and not all(isinstance(digest, str) for digest in value):
            raise ValueError(key)
        if key == "noise" and not (
            len(value) == len(IN_NOISE) and all(isinstance(text, str) for text in value)
        ):
            raise ValueError(key)
        if key == "n" and value < 0:
            raise ValueError(key)
        if key == "approvals":
            for approval in value:
                check_keys(approval, IN_APPROVAL, "an approval")
                if not all(isinstance(text, str) for text in approval.values()):
                    raise ValueError(key)
        if key in ("record_rho", "limit") and value is not None and amount_of(value) <= 0:
            raise ValueError(key)
    if "noise" in kinds:
        claim = GaussianClaim.from_texts(event.content["noise"])
        if claim.mu_squared < 2 * amount_of(event.content["record_rho"]):
            raise ValueError("noise")
    return event


@lru_cache(maxsize=_MOST_KEPT)
def checked_content(kind: str, text: str) -> Mapping[str, Any]:
    """What an event of this kind holds by its text; a release reads a ledger several times."""
    return checked(Event(0, kind, loads(text))).content


@lru_cache(maxsize=_MOST_KEPT)
def amount_of(text: str) -> Fraction:
    """An amount in an event; raises `BudgetError` for a text that is none."""
    return exact_fraction(text, "the amount in the ledger")


def total_of(amounts: Iterable[Fraction]) -> Fraction:
    """The sum; exact, but rounded up to 400 decimals where it would be of longer numbers.

    No plan costs such amounts, but whoever books on a server may enter them, and sums of a few
    would have more digits than Python reads.
    """
    total = Fraction(0)
    for amount in amounts:
        total += amount
        if total.denominator > FINEST:
            total = Fraction(math.ceil(total * FINEST), FINEST)
    return total


def noted_amount(amount: Fraction | None) -> str | None:
    """An amount as an event holds it, which holds none for nothing.

    Rounded as `total_of` does, a limit too: no plan costs as little as that may add to one.
    """
    return exact_text(total_of([amount])) if amount else None


# ---- Account: what a ledger holds on a dataset, read from its events; and what its limit allows.


_HOW_TO_CHANGE = (
    "Whoever answers for these records can change the limit, with the command “rpexplore ledger”."
)

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
class Spent:
    """What some runs on the same records spent together, for one record.

    claim        of the noise of all of them; None where some run has none that is known
    n_runs, n_without
                 how many there are, and how many of them have no claim
    """

    record_rho: Fraction
    claim: GaussianClaim | None
    n_runs: int = 1
    n_without: int = 0

    @classmethod
    def by(cls, plan: Plan | PartPlan) -> "Spent":
        """What a run of a plan spends."""
        claim = None
        # In a panel a person costs less than m² times a record: what one costs is known by ρ.
        if plan.noise is not None and plan.budget.period is None:
            of_record = plan.noise.for_one_record(plan.budget.records_factor)
            claim = of_record.claim_at(_CLAIMED_AT)
            if claim is not None:  # as an entry has it
                claim = GaussianClaim.from_texts(claim.to_texts())
        return cls(plan.record_rho, claim, 1, int(claim is None))

    @classmethod
    def together(cls, runs: Iterable["Spent"]) -> "Spent":
        """The sum. Runs that have no claim leave ρ alone for all (docs/guarantees.md)."""
        runs = [run for run in runs if run.record_rho]
        claims = [run.claim for run in runs if run.claim is not None]
        is_known = 0 < len(claims) == len(runs)
        return cls(
            total_of(run.record_rho for run in runs),
            GaussianClaim.composed(claims) if is_known else None,
            sum(run.n_runs for run in runs),
            sum(run.n_without for run in runs),
        )

    def epsilon(self, delta: Exact, n_records: int = 1) -> float:
        """The smallest proven ε for somebody with so many records, rounded up."""
        of_zcdp = conversions.epsilon_from_rho(self.record_rho * n_records**2, delta)
        if self.claim is None or not of_zcdp:
            return of_zcdp
        return self.claim.of_records(n_records).epsilon(delta, of_zcdp)

    def epsilon_text(self, budget: Budget) -> str:
        """ε for the privacy unit of a budget, at its δ or the usual one; "" for nothing."""
        rho = self.record_rho * budget.records_factor
        if not 0 < rho < conversions.MOST_RHO:
            return ""
        delta = budget.stated_delta or conversions.USUAL_DELTAS[0]
        epsilon = self.epsilon(delta, budget.max_records_per_person or 1)
        return conversions.epsilon_at_delta(epsilon, delta)

    def proof_for(self, budget: Budget) -> str:
        """`proof` of `epsilon_text`."""
        delta = budget.stated_delta or conversions.USUAL_DELTAS[0]
        return self.proof(delta, budget.max_records_per_person or 1)

    def proof(self, delta: Exact, n_records: int = 1) -> str:
        """Which of the two proofs `epsilon` is from, to go behind it."""
        of_zcdp = conversions.epsilon_from_rho(self.record_rho * n_records**2, delta)
        if self.claim is not None and self.epsilon(delta, n_records) < of_zcdp:
            mu = rounded(self.claim.of_records(n_records).mu, 4, "up")
            return f"by the noise itself, with μ = {mu}"
        if self.n_without and self.n_runs > 1:
            return (
                f"by the sum of ρ, as {self.n_without} of {self.n_runs} runs state no claim of "
                "their noise"
            )
        return "by ρ alone"


@dataclass(frozen=True)
class LedgerEntry:
    """One entry: a run that was started, and is charged whether or not it finished."""

    id: int
    started: str
    plan_sha256: str
    record_rho: Fraction
    state: str  # "started" or "finished"
    output: str
    data_bytes: int = 0
    data_modified: str = ""
    user: str = ""
    manifest_sha256: str = ""
    approvals: tuple[NotedApproval, ...] = ()
    n_demanded: int = 0  # approvals, when it was booked
    neighbours: str = ADD_REMOVE  # that its ρ is for, as in a `Budget`
    exact: tuple[tuple[str, ...], ...] = ()  # the totals that these neighbours keep, likewise
    claim: GaussianClaim | None = None  # of its noise, for one record; None: ρ alone is known

    @property
    def spent(self) -> "Spent":
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
    """What was spent on some records, and what binds further runs on them; None: not known."""

    spent_record_rho: Fraction | None = None
    limit_record_rho: Fraction | None = None
    demands: tuple[ApprovalDemand, ...] = ()

    def noted(self, before: "KnownBounds") -> dict[str, Any]:
        """What a note of them holds behind one of `before`: no unchanged list once more."""
        content: dict[str, Any] = {"record_rho": noted_amount(self.spent_record_rho)}
        if self.limit_record_rho != before.limit_record_rho:
            content["limit"] = noted_amount(self.limit_record_rho)
        if self.demands != before.demands:
            content["demands"] = [asdict(demand) for demand in self.demands]
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
        )


@dataclass(frozen=True)
class Forgotten:
    """A ledger that some records were charged in, and that is lost and given up.

    record_rho  what is known to have been spent in it, for one record
    """

    ledger: Elsewhere
    record_rho: Fraction
    user: str
    noted: str

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
    is_closed  whether the ledger was merged into another one, so that nothing is charged here
    """

    dataset: str
    names: frozenset[str]
    limits: tuple[tuple[tuple[str, ...], Fraction], ...] = ()
    entries: tuple[LedgerEntry, ...] = ()
    elsewhere: tuple[Elsewhere, ...] = ()
    demands: tuple[tuple[tuple[str, ...], ApprovalDemand], ...] = ()
    forgotten: tuple[Forgotten, ...] = ()
    is_closed: bool = False

    @property
    def spent_record_rho(self) -> Fraction:
        return total_of(entry.record_rho for entry in (*self.entries, *self.forgotten))

    @property
    def spent(self) -> Spent:
        """What all runs spent together, with what they prove."""
        gone = [Spent(lost.record_rho, None, 1, 1) for lost in self.forgotten]
        return Spent.together([*(entry.spent for entry in self.entries), *gone])

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
        return KnownBounds(self.spent_record_rho, self.limit_record_rho, self.approval_demands)


def account_of_names(
    events: Sequence[Event], names: Sequence[str], folder: Path | None = None
) -> Account:
    """The account of whatever shares one of these names, or a name with what does.

    Files share it with a folder around them that was named as records by itself.

    folder: what names are seen from; None if they say of which machine they are
    """
    known = _connected(events, names, folder)
    account, entries = Account(names[0], known), {}
    # All names of an event are known, or none is.
    own = {event.id for event in events if event.content.get("names", ("",))[0] in known}
    limits, demands = bounds_of([event for event in events if event.id in own])
    for event in events:
        content = event.content
        if event.kind == "finished" and content["run"] in entries:
            entry = entries[content["run"]]
            entries[entry.id] = replace(
                entry, state="finished", manifest_sha256=content["manifest_sha256"]
            )
        if event.kind == "approved" and content["run"] in entries:
            noted = tuple(NotedApproval(**approval) for approval in content["approvals"])
            entry = entries[content["run"]]
            entries[entry.id] = replace(entry, approvals=noted, n_demanded=content["n"])
        if event.id not in own:
            continue
        if event.kind == "run":
            facts = {key: content[key] for key in _IN_ENTRY}
            rho, noise = amount_of(content["record_rho"]), content.get("noise")
            claim = None if noise is None else GaussianClaim.from_texts(noise)
            entries[event.id] = LedgerEntry(
                event.id,
                record_rho=rho,
                state="started",
                claim=claim,
                **neighbours_noted(content["unit"]),
                **facts,
            )
        elif event.kind == "elsewhere":
            noted = Elsewhere(content["ledger"], content.get("ledger_id"))
            before = [one.known for one in account.elsewhere if one == noted] or [KnownBounds()]
            noted = replace(noted, known=KnownBounds.read(content, before[-1]))
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
            )
            account = replace(
                account,
                elsewhere=tuple(one for one in account.elsewhere if not lost.is_noted_as(one)),
                forgotten=(*account.forgotten, lost),
            )
    into, held = closed_into(events), {"limits": tuple(limits), "demands": tuple(demands)}
    account = replace(account, entries=tuple(entries.values()), **held)
    if into is not None and account.is_used:
        is_lost = any(lost.is_noted_as(into) for lost in account.forgotten)
        elsewhere = account.elsewhere if is_lost else (*account.elsewhere, into)
        account = replace(account, elsewhere=elsewhere, is_closed=True)
    return account


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


@lru_cache(maxsize=_MOST_KEPT)
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


def check_limit(
    account: Account, plan: Plan | PartPlan, wanted_limit: Fraction | None = None
) -> None:
    """Raise `LedgerError` for another limit than the noted one, or a run beyond it."""
    unit, limit = plan.budget.unit, account.limit_record_rho

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
            f"This run costs {for_unit(plan.record_rho, 'up')} for {unit}, and the dataset "
            f"{account.dataset!r} has only {for_unit(left, 'down')} left of its budget limit of "
            f"{for_unit(limit, 'down')}{account.limit_source}; plan with a smaller "
            f"budget. {_HOW_TO_CHANGE}"
        )
