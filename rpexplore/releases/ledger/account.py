"""Account: what a ledger holds on a dataset, read from its events; and what its limit allows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from rpexplore.errors import LedgerError
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.releases.approval import ApprovalDemand
from rpexplore.releases.ledger.events import Event, amount_of

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


@dataclass(frozen=True)
class Account:
    """What a dataset's records have been charged so far, and its budget limit if there is one.

    elsewhere: other ledgers that it is charged in. approval_demand: what approvals a plan needs;
    None for none
    """

    dataset: str
    names: frozenset[str]
    limit_record_rho: Fraction | None = None
    entries: tuple[LedgerEntry, ...] = ()
    elsewhere: tuple[str, ...] = ()
    approval_demand: ApprovalDemand | None = None

    @property
    def spent_record_rho(self) -> Fraction:
        return sum((entry.record_rho for entry in self.entries), Fraction(0))

    @property
    def is_used(self) -> bool:
        """Whether it holds what binds further runs: earlier ones, a limit, a demand."""
        demands = self.limit_record_rho, self.approval_demand
        return bool(self.entries) or demands != (None, None)


def account_of_names(events: Sequence[Event], names: Iterable[str]) -> Account:
    """The account of whatever shares one of these names, or a name with what does."""
    dataset, known, n_known = next(iter(names)), set(names), 0
    while n_known < len(known):
        n_known = len(known)
        for event in events:
            if not known.isdisjoint(event.content.get("names", ())):
                known.update(event.content["names"])
    account, entries = Account(dataset, frozenset(known)), {}
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
        if known.isdisjoint(content.get("names", ())):
            continue
        if event.kind == "run":
            facts = {key: content[key] for key in _IN_ENTRY}
            rho = amount_of(content["record_rho"])
            entries[event.id] = LedgerEntry(event.id, record_rho=rho, state="started", **facts)
        elif event.kind == "limit":
            text = content["record_rho"]
            account = replace(account, limit_record_rho=None if text is None else amount_of(text))
        elif event.kind == "elsewhere":
            account = replace(account, elsewhere=(*account.elsewhere, content["ledger"]))
        elif event.kind == "approvals":
            n, allowed_signers = content["n"], content["allowed_signers"]
            demand = ApprovalDemand(n, allowed_signers) if n else None
            account = replace(account, approval_demand=demand)
    return replace(account, entries=tuple(entries.values()))


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
            f"{for_unit(limit, 'down')} for {unit}; leave the limit out here. {_HOW_TO_CHANGE}"
        )
    limit = wanted_limit if limit is None else limit
    if limit is not None and account.spent_record_rho + plan.record_rho > limit:
        left = max(limit - account.spent_record_rho, Fraction(0))
        raise LedgerError(
            f"This run costs {for_unit(plan.record_rho, 'up')} for {unit}, and the dataset "
            f"{account.dataset!r} has only {for_unit(left, 'down')} left of its budget limit of "
            f"{for_unit(limit, 'down')}; plan with a smaller budget. {_HOW_TO_CHANGE}"
        )
