"""Neighbours in a ledger: how runs note them, and what runs for several kinds promise together."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rpexplore.common.text import joined
from rpexplore.errors import LedgerError
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.privacy.budget import ADD_REMOVE, REPLACE, Budget, exact_totals_text
from rpexplore.privacy.conversions import rho_text

if TYPE_CHECKING:
    from rpexplore.releases.ledger.account import Account

# Behind the privacy unit of runs whose neighbours replace records: units of older runs have none.
_REPLACED = "; neighbours replace records"
_KEEPING = "; neighbours keep the exact totals "  # behind it these, as JSON


_ADDED: "_Kind" = (ADD_REMOVE, ())


def noted_unit(budget: Budget) -> str:
    """The privacy unit of a run as its event holds it, with the neighbours that are not usual."""
    if budget.exact:
        return f"{budget.unit}{_KEEPING}{json.dumps(budget.exact, ensure_ascii=False)}"
    return budget.unit + (_REPLACED if budget.replaces else "")


def neighbours_noted(unit: str) -> dict[str, Any]:
    """The neighbours of a run, of a unit that `noted_unit` wrote."""
    _, keeping, totals = unit.partition(_KEEPING)
    if keeping:
        return {"neighbours": REPLACE, "exact": tuple(map(tuple, json.loads(totals)))}
    return {"neighbours": REPLACE if unit.endswith(_REPLACED) else ADD_REMOVE}


_Kind = tuple[str, tuple[tuple[str, ...], ...]]


@dataclass(frozen=True)
class Mixture:
    """ρ of one record by the kind of neighbours, and what all of it promises together.

    A run that adds or removes a record says of a replaced one, which is removed and another added,
    that it is 4ρ; one for replaced records says nothing of added ones. What changes so that exact
    totals stay is two replaced records at most, and keeps fewer totals, too. What was spent in a
    ledger that is lost is taken to be for added or removed records.
    """

    spent: Mapping[_Kind, Fraction]

    @classmethod
    def of(cls, account: "Account") -> "Mixture":
        """That of all runs of an account."""
        from rpexplore.releases.ledger.account import total_of  # which needs this module

        spent: dict[_Kind, Fraction] = {}
        for entry in account.entries:
            kind = (entry.neighbours, entry.exact)
            spent[kind] = spent.get(kind, Fraction(0)) + entry.record_rho
        if lost := total_of(lost.record_rho for lost in account.forgotten):
            spent[_ADDED] = spent.get(_ADDED, Fraction(0)) + lost
        return cls({kind: rho for kind, rho in spent.items() if rho})

    def and_plan(self, plan: Plan | PartPlan) -> "Mixture":
        """With a run of a plan."""
        own: _Kind = (plan.budget.neighbours, plan.budget.exact)
        return Mixture({**self.spent, own: self.spent.get(own, Fraction(0)) + plan.record_rho})

    @property
    def is_mixed(self) -> bool:
        """Whether there are several kinds, whose ρ does not add up."""
        return len(self.spent) > 1

    @property
    def whose(self) -> str:
        """For whom the ρ of one kind is: "one record, replaced"; "one record" for none."""
        kinds = [*self.spent, _ADDED]
        neighbours, exact = kinds[0]
        if exact:
            return f"one record, around the exact totals of {exact_totals_text(exact)}"
        return "one record, replaced" if neighbours == REPLACE else "one record"

    @property
    def promise(self) -> str:
        """What several kinds promise together, in words behind a verb."""
        totals = {total for _, exact in self.spent for total in exact}
        added, replaced = (
            self.spent.get((kind, ()), Fraction(0)) for kind in (ADD_REMOVE, REPLACE)
        )
        if totals:
            # An exchange between two records replaces both: 2² ρ, or as added and removed 4² ρ.
            together = sum(self.spent.values()) + 3 * replaced + 15 * added
            return (
                f"{rho_text(together, 4, 'up')} for changes that keep all totals of "
                f"{exact_totals_text(sorted(totals))} (a run for replaced records counts four "
                "times, one for added or removed records sixteen times), and nothing about others"
            )
        return (
            f"{rho_text(4 * added + replaced, 4, 'up')} for one replaced record (a run for added "
            "or removed records counts four times), and nothing about one that is added or removed"
        )

    @property
    def sentences(self) -> str:
        """That several kinds do not add up, and what they promise; "" for one kind."""
        if not self.is_mixed:
            return ""
        return (
            f"There are runs for several kinds of neighbours here ({self}), whose ρ does not add "
            f"up. Together they promise {self.promise}."
        )

    def __str__(self) -> str:
        """ρ of each kind, one after another."""
        return "; ".join(
            f"{rho_text(rho)} for neighbours that {_does(kind)}" for kind, rho in self.spent.items()
        )


def check_neighbours(account: "Account", plan: Plan | PartPlan) -> None:
    """Raise `LedgerError` for a run for other neighbours than those of the runs before.

    Their ρ does not add up.
    """
    own: _Kind = (plan.budget.neighbours, plan.budget.exact)
    before = Mixture.of(account)
    others = [kind for kind in before.spent if kind != own]
    if not others:
        return
    remedy = f"Plan with --neighbours {others[0][0]}."
    if own[1] or any(exact for _, exact in others):
        remedy = "Plan with the same exact totals (--exact) and neighbours as before."
    raise LedgerError(
        f"The dataset {account.dataset!r} has runs for neighbours that "
        f"{joined([_does(kind) for kind in others])}, and those of this plan {_does(own)}; the "
        f"{'two ' if len(others) == 1 else ''}kinds are not added up. Together they would promise "
        f"{before.and_plan(plan).promise}. {remedy}"
    )


def _does(kind: _Kind) -> str:
    """What neighbours of a kind do, behind "that"."""
    neighbours, exact = kind
    if exact:
        return f"keep the exact totals of {exact_totals_text(exact)}"
    return "replace a record" if neighbours == REPLACE else "add or remove a record"
