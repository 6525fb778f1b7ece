"""Events: the entries of a ledger, what each kind of them holds, and what tells ledgers apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from rpexplore.common.json_fields import check_keys, loads
from rpexplore.common.numbers import exact_fraction, exact_text
from rpexplore.privacy.discrete_noise import GaussianClaim
from rpexplore.releases.ledger.spent import total_of

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
    "pilot": {"run": int, "noted": str, "pilot_sha256": str},
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
    "elsewhere": {
        "ledger_id": str,
        "record_rho": str | None,
        "limit": str | None,
        "demands": list,
        "unit": str,
    },
    "forgotten": {"unit": str},
    "merged": {"digests": list},
}
MOST_KEPT = 1 << 14  # events that were read, for the next look
IN_APPROVAL = ("sha256", "name", "key", "approved")
IN_NOISE = ("mu_squared", "shift", "factor")
"""(μ², Λ, U) of a run whose noise is all Gaussian and of scales that its plan states."""


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
        claim = claim_of(*event.content["noise"])
        if claim.mu_squared < 2 * amount_of(event.content["record_rho"]):
            raise ValueError("noise")
    return event


@lru_cache(maxsize=MOST_KEPT)
def checked_content(kind: str, text: str) -> Mapping[str, Any]:
    """What an event of this kind holds by its text; a release reads a ledger several times."""
    return checked(Event(0, kind, loads(text))).content


@lru_cache(maxsize=MOST_KEPT)
def amount_of(text: str) -> Fraction:
    """An amount in an event; raises `BudgetError` for a text that is none."""
    return exact_fraction(text, "the amount in the ledger")


@lru_cache(maxsize=MOST_KEPT)
def claim_of(*texts: str) -> GaussianClaim:
    """The noise in an event; raises `ValueError` for texts of no claim."""
    return GaussianClaim.from_texts(texts)


def noted_amount(amount: Fraction | None) -> str | None:
    """An amount as an event holds it, which holds none for nothing.

    Rounded as `total_of` does, a limit too: no plan costs as little as that may add to one.
    """
    return exact_text(total_of([amount])) if amount else None
