"""What the command line says about ledgers, and what a run is charged: values, texts."""

import os
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

from rpexplore.cli.console import one_line, text_table
from rpexplore.common.exact_numbers import exact_text
from rpexplore.common.formatting import plural, text_of_path
from rpexplore.planning.plan import Plan
from rpexplore.privacy.conversions import rho_text
from rpexplore.releases.ledger.account import Account


def announcement(plan: Plan, account: Account, limit_rho: str | None) -> str:
    """What a run of the plan will be charged, and what was spent on the data before."""
    factor, limit = plan.budget.records_factor, account.limit_record_rho
    limit_text = "none in the ledger" if limit is None else rho_text(limit * factor, mode="down")
    return "\n".join(
        [
            f"Plan      SHA-256 {plan.sha256}",
            f"Protects  {plan.budget.unit}; each ρ below is for that",
            f"Cost      {rho_text(plan.rho)} for this run, charged when it starts",
            f"Spent     {rho_text(account.spent_record_rho * factor)} on this data so far",
            f"Limit     {limit_text if limit_rho is None else f'ρ = {limit_rho}, as given'}",
        ]
    )


def booked_since(before: Account, after: Account, plan: Plan, output: Path) -> Fraction:
    """ρ for the plan's unit that its run into this folder has been charged between two looks."""
    written = text_of_path(os.path.realpath(output))
    charged = [
        run.record_rho
        for run in after.entries[len(before.entries) :]
        if (run.plan_sha256, run.output) == (plan.sha256, written)
    ]
    return sum(charged, Fraction(0)) * plan.budget.records_factor


def account_facts(account: Account, factor: int) -> dict[str, Any]:
    """The totals of a ledger, exact, for a unit that counts `factor` times a record."""
    limit, demand = account.limit_record_rho, account.approval_demand
    return {
        "spent_rho": exact_text(account.spent_record_rho * factor),
        "limit_rho": None if limit is None else exact_text(limit * factor),
        "approval_demand": None if demand is None else asdict(demand),
    }


def account_text(account: Account) -> str:
    """What a ledger holds on a dataset, for reading."""
    limit, runs = account.limit_record_rho, account.entries
    limit_text = "none" if limit is None else f"{rho_text(limit, mode='down')} for one record"
    text = (
        f"Data   {one_line(account.dataset)}\n"
        f"Spent  {rho_text(account.spent_record_rho)} for one record\n"
        f"Limit  {limit_text}"
    )
    if (demand := account.approval_demand) is not None:
        listed = "; ".join(map(one_line, demand.names))
        text += f"\nNeeds  approvals of the plan by {plural(demand.n, 'person')} of: {listed}"
    if not runs:
        return text
    columns = {
        "run": [str(number) for number in range(1, len(runs) + 1)],
        "started": [f"{run.started[:19]}+00:00" for run in runs],
        "charged": [rho_text(run.record_rho) for run in runs],
        "state": [run.state for run in runs],
        "plan SHA-256": [run.plan_sha256[:12] + "…" for run in runs],
        "output": [run.output for run in runs],
    }
    if any(run.approvals for run in runs):
        columns["approved by"] = [", ".join(one.name for one in run.approvals) for run in runs]
    return f"{text}\n\n{text_table(columns, '>' + '<' * (len(columns) - 1))}"
