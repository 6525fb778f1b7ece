"""What a ledger holds, as tidy tables to look at."""

import pandas as pd

from rpexplore.common.formatting import rounded
from rpexplore.releases.ledger import Account, Ledger


def runs(account: Account, records_factor: int) -> pd.DataFrame:
    """One row a run, the latest first: run, started, rho, state, plan, output.

    records_factor: how many times the ρ of one record is shown, as text, rounded upwards
    """
    columns = ["run", "started", "rho", "state", "plan", "output"]
    rows = []
    for entry in reversed(account.entries):
        started = entry.started.replace("T", " ").removesuffix("+00:00")
        rho = rounded(entry.record_rho * records_factor, 6, "up")
        rows.append((entry.id, started, rho, entry.state, entry.plan_sha256, entry.output))
    return pd.DataFrame(rows, columns=columns)


def datasets(ledger: Ledger, records_factor: int, *, without: str) -> pd.DataFrame:
    """One row a dataset, but for one: dataset, runs, rho, limit ("none" without one).

    Raises `LedgerError` if the ledger cannot be read.
    """
    rows = []
    for account in ledger.accounts():
        limit = account.limit_record_rho
        limit_text = "none" if limit is None else rounded(limit * records_factor, 6, "down")
        spent = rounded(account.spent_record_rho * records_factor, 6, "up")
        if account.dataset != without:
            rows.append((account.dataset, len(account.entries), spent, limit_text))
    return pd.DataFrame(rows, columns=["dataset", "runs", "rho", "limit"])
