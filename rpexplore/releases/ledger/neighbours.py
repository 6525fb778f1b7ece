"""Neighbours in a ledger: how runs note them, and what runs for several kinds promise together."""

import json
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


def check_neighbours(account: "Account", plan: Plan | PartPlan) -> None:
    """Raise `LedgerError` for a run for other neighbours than those of the runs before.

    Their ρ does not add up. One that adds or removes a record says of a replaced one, which is
    removed and another added, that it is 4ρ; one for replaced records says nothing of added ones.
    What changes so that exact totals stay is two replaced records at most, and keeps fewer totals,
    too. What was spent in a ledger that is lost is taken to be for added or removed ones.
    """
    own: _Kind = (plan.budget.neighbours, plan.budget.exact)
    spent: dict[_Kind, Fraction] = {}
    for entry in account.entries:
        kind = (entry.neighbours, entry.exact)
        spent[kind] = spent.get(kind, Fraction(0)) + entry.record_rho
    from rpexplore.releases.ledger.account import total_of  # which needs this module

    lost = total_of(lost.record_rho for lost in account.forgotten)
    if lost:
        spent[ADD_REMOVE, ()] = spent.get((ADD_REMOVE, ()), Fraction(0)) + lost
    others = [kind for kind, rho in spent.items() if rho and kind != own]
    if not others:
        return
    spent[own] = spent.get(own, Fraction(0)) + plan.record_rho
    does = joined([_does(kind) for kind in others])
    texts = (
        f"The dataset {account.dataset!r} has runs for neighbours that {does}, and those of this "
        f"plan {_does(own)}; the {'two ' if len(others) == 1 else ''}kinds are not added up. "
        "Together they would promise "
    )
    totals = {total for _, exact in spent for total in exact}
    added, replaced = (spent.get((kind, ()), Fraction(0)) for kind in (ADD_REMOVE, REPLACE))
    if totals:
        # An exchange between two records replaces both: 2² ρ, or as added and removed ones 4² ρ.
        together = sum(spent.values()) + 3 * replaced + 15 * added
        raise LedgerError(
            f"{texts}{rho_text(together, 4, 'up')} for changes that keep all totals of "
            f"{exact_totals_text(sorted(totals))} (a run for replaced records counts four times, "
            "one for added or removed records sixteen times), and nothing about others. Plan with "
            "the same exact totals (--exact) and neighbours as before."
        )
    together = 4 * added + replaced
    raise LedgerError(
        f"{texts}{rho_text(together, 4, 'up')} for one replaced record (a run for added or "
        "removed records counts four times), and nothing about one that is added or removed. Plan "
        f"with --neighbours {others[0][0]}."
    )


def _does(kind: _Kind) -> str:
    """What neighbours of a kind do, behind "that"."""
    neighbours, exact = kind
    if exact:
        return f"keep the exact totals of {exact_totals_text(exact)}"
    return "replace a record" if neighbours == REPLACE else "add or remove a record"
