"""What a ledger holds, as tidy tables to look at."""

from fractions import Fraction

import pandas as pd

from rpexplore.common.formatting import rounded
from rpexplore.releases.ledger import Account, Ledger


def runs(account: Account, records_factor: int) -> pd.DataFrame:
    """One row a run, the latest first: run, started, rho, state, plan, output.

    records_factor: how many times the ρ of one record is shown, as text, rounded upwards
    """
    rows = [
        {
            "run": run.id,
            "started": run.started.replace("T", " ").removesuffix("+00:00"),
            "rho": _shown(run.record_rho, records_factor),
            "state": run.state,
            "plan": run.plan_sha256,
            "output": run.output,
        }
        for run in reversed(account.runs)
    ]
    return pd.DataFrame(rows, columns=["run", "started", "rho", "state", "plan", "output"])


def datasets(ledger: Ledger, records_factor: int, *, without: str) -> pd.DataFrame:
    """One row a dataset, but for one: dataset, runs, rho, cap ("none" without one).

    Raises `LedgerError` if the ledger cannot be read.
    """
    rows = [
        {
            "dataset": account.dataset,
            "runs": len(account.runs),
            "rho": _shown(account.spent_record_rho, records_factor),
            "cap": "none"
            if account.cap_record_rho is None
            else _shown(account.cap_record_rho, records_factor, "down"),
        }
        for account in ledger.accounts()
        if account.dataset != without
    ]
    return pd.DataFrame(rows, columns=["dataset", "runs", "rho", "cap"])


def _shown(record_rho: Fraction, records_factor: int, mode: str = "up") -> str:
    return rounded(record_rho * records_factor, 6, mode)
