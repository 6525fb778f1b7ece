"""What the command line tells about plans of queries: plain values and texts."""

import math
from typing import Any

import numpy as np
import pandas as pd

from rpexplore.analysis.query_profile import spare_cells
from rpexplore.cli.console import text_table
from rpexplore.cli.plan_facts import DELTAS
from rpexplore.common.exact_numbers import exact_text
from rpexplore.common.formatting import describe_share, rounded
from rpexplore.queries.plan import QueryPlan

_MOST_CELLS = 10  # with unused budget, that a text lists


def query_plan_facts(plan: QueryPlan) -> dict[str, Any]:
    """A plan of queries in a few plain values; exact numbers are texts, as in its file."""
    certificate = plan.certificate
    return {
        "sha256": plan.sha256,
        "query_count": len(plan.queries),
        "cell_count": plan.queries.n_cells,
        "unit": plan.budget.unit,
        "rho": exact_text(plan.rho),
        "privacy_cost": exact_text(plan.exact_privacy_cost),
        "epsilon_by_delta": {delta: plan.epsilon(delta) for delta in DELTAS},
        "targets_met": int(np.count_nonzero(plan.met)),
        "largest_ratio": plan.ratio,
        "lower_bound": certificate.lower_bound,
        "gap": certificate.gap,
        "spare_cells": row_facts(spare_cells(plan)),
    }


def row_facts(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows in plain values; what is not known is None."""
    return [
        {name: None if value != value else value for name, value in row.items()}
        for row in rows.to_dict("records")
    ]


def queries_against_targets(plan: QueryPlan) -> pd.DataFrame:
    """One row a query, the furthest off its target first.

    name, standard_error, margin_95, target, ratio (of the standard error to the target), met ("yes"
    or "no") and shadow_price (share of the budget that this target holds up).
    """
    errors = plan.standard_errors
    rows = pd.DataFrame(
        {
            "name": plan.queries.names,
            "standard_error": errors,
            "margin_95": plan.margins_of_error(),
            "target": plan.targets,
            "ratio": errors / plan.targets,
            "met": np.where(plan.met, "yes", "no"),
            "shadow_price": plan.certificate.shadow_prices,
        }
    )
    return rows.sort_values("ratio", ascending=False, kind="stable", ignore_index=True)


def query_table(rows: pd.DataFrame) -> str:
    """Rows of `queries_against_targets` as a text table."""
    columns = {
        "query": rows["name"].tolist(),
        "standard error": [rounded(error, 4, zeros=True) for error in rows["standard_error"]],
        "95 % within ±": [rounded(margin, 4, zeros=True) for margin in rows["margin_95"]],
        "target": [f"{target:g}" for target in rows["target"]],
        "of target": [describe_share(ratio, 3) for ratio in rows["ratio"]],
        "met": rows["met"].tolist(),
    }
    return text_table([tuple(columns), *zip(*columns.values(), strict=True)], "<>>>>>")


def baseline_table(needed: pd.DataFrame) -> str:
    """Rows of `budgets_needed` as a text table."""
    columns = {
        "way to answer them": needed["title"].tolist(),
        "measured": [f"{count:,}" for count in needed["measured"]],
        "ρ for all targets": [rounded(rho, 4, "up", zeros=True) for rho in needed["rho"]],
        "times the least": [rounded(times, 3, zeros=True) for times in needed["largest_ratio"]],
    }
    return text_table([tuple(columns), *zip(*columns.values(), strict=True)], "<>>>")


def spare_text(plan: QueryPlan) -> str:
    """The cells whose records leave some of the budget unused, most of it first; for reading."""
    rows = spare_cells(plan).sort_values("profile", kind="stable")
    if not len(rows):
        return "The records of every cell use the whole budget."
    shown = rows.head(_MOST_CELLS)
    columns = {
        "cell with unused budget": shown["cell"].tolist(),
        "in use": [describe_share(share) for share in shown["profile"]],
        "standard error of its count, free if added now": [
            rounded(error, 4, zeros=True) for error in shown["standard_error"]
        ],
        "now": [
            "not known" if math.isnan(error) else rounded(error, 4, zeros=True)
            for error in shown["present_standard_error"]
        ],
    }
    text = text_table([tuple(columns), *zip(*columns.values(), strict=True)], "<>>>")
    more = len(rows) - len(shown)
    return f"{text}\n… and {more:,} more such cells." if more else text
