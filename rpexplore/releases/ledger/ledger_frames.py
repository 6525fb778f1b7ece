"""What a ledger holds, as tidy tables to look at."""

import pandas as pd

from rpexplore.common.formatting import rounded
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.privacy.budget import Budget
from rpexplore.releases.ledger.account import Account
from rpexplore.releases.ledger.ledger import Ledger


def runs(account: Account, budget: Budget) -> pd.DataFrame:
    """One row a run, the latest first: number, started, rho, epsilon, state, plan, output.

    number: 1 for the first run on these records. budget: whose privacy unit ρ and ε are for, as
    text, rounded upwards
    """
    columns = ["number", "started", "rho", "epsilon", "state", "plan", "output"]
    rows = []
    for number, entry in enumerate(account.entries, start=1):
        started = entry.started.replace("T", " ")[:19]
        rho = entry.record_rho * budget.records_factor
        amount = rounded(rho, 6, "up"), budget.epsilon_text(rho)
        rows.append((number, started, *amount, entry.state, entry.plan_sha256, entry.output))
    return pd.DataFrame(rows[::-1], columns=columns)


def describe_earlier_run(plan: Plan | PartPlan, account: Account) -> str:
    """That the same plan was run to its end on these records before; "" if it was not."""
    finished = [entry for entry in account.entries if entry.state == "finished"]
    earlier = [entry for entry in finished if entry.plan_sha256 == plan.sha256]
    if not earlier:
        return ""
    started = earlier[-1].started.replace("T", " ")[:16]
    return (
        f"This plan was run on these records before, at {started} UTC into {earlier[-1].output}. A "
        "further run is charged again."
    )


def datasets(ledger: Ledger, budget: Budget, *, without: str) -> pd.DataFrame:
    """One row a dataset, but for one: dataset, runs, rho, epsilon, limit ("none" without one).

    Raises `LedgerError` if the ledger cannot be read.
    """
    rows = []
    for account in ledger.accounts():
        limit, spent = account.limit_record_rho, account.spent_record_rho * budget.records_factor
        limit_text = "none"
        if limit is not None:
            limit_text = budget.amount_text(limit * budget.records_factor, digits=6)
        amount = rounded(spent, 6, "up"), budget.epsilon_text(spent)
        if account.dataset != without:
            rows.append((account.dataset, len(account.entries), *amount, limit_text))
    return pd.DataFrame(rows, columns=["dataset", "runs", "rho", "epsilon", "limit"])
