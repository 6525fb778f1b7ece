"""Events of a ledger: their kinds, and what the content of each kind holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rpexplore.common.exact_numbers import exact_fraction
from rpexplore.common.json_fields import check_keys
from rpexplore.releases.approval import ApprovalDemand

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
}
IN_APPROVAL = ("sha256", "name", "key", "approved")


@dataclass(frozen=True)
class Event:
    """One event; `id` counts from 1."""

    id: int
    kind: str
    content: Mapping[str, Any]


def checked(event: Event) -> Event:
    """The event; raises `ValueError` or the like if its content is not that of its kind."""
    kinds = KINDS[event.kind]
    check_keys(event.content, kinds, f"an entry of the kind {event.kind!r}")
    for key, kind in kinds.items():
        value = event.content[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(key)
        if key == "names" and not (value and all(isinstance(name, str) for name in value)):
            raise ValueError(key)
        if key == "allowed_signers" and event.content["n"] != 0:
            ApprovalDemand(event.content["n"], value)
        if key == "n" and value < 0:
            raise ValueError(key)
        if key == "approvals":
            for approval in value:
                check_keys(approval, IN_APPROVAL, "an approval")
                if not all(isinstance(text, str) for text in approval.values()):
                    raise ValueError(key)
        if key == "record_rho" and value is not None and amount_of(value) <= 0:
            raise ValueError(key)
    return event


def amount_of(text: str) -> Fraction:
    """An amount in an event; raises `BudgetError` for a text that is none."""
    return exact_fraction(text, "the amount in the ledger")
