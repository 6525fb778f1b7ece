"""What the command line says about adaptive plans: values, texts."""

from typing import Any

import pandas as pd

from rpexplore.cli.console import text_table
from rpexplore.common.exact_numbers import exact_text
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.workload.table_text import title


def adaptive_facts(plan: AdaptivePlan) -> dict[str, Any]:
    """What an adaptive plan measures, and when, in plain values; each ρ is for one record."""
    return {
        "expected_records": plan.expected_records,
        "candidate_count": len(plan.candidates),
        "first_plan": {
            "sha256": plan.first.sha256,
            "residual_count": len(plan.first.closure),
            "record_rho": exact_text(plan.first.record_rho),
        },
        "rounds": [
            {
                "tables": step.n_tables,
                "selection_rho": exact_text(step.selection_rho),
                "measurement_rho": exact_text(step.measurement_rho),
            }
            for step in plan.rounds
        ],
    }


def estimated_tables(rows: pd.DataFrame) -> str:
    """Rows of `AdaptivePlan.tables` as a text table."""
    columns = {
        "estimated table": list(map(title, rows["attributes"])),
        "cells": [f"{cells:,}" for cells in rows["cells"]],
    }
    if set(rows["weight"]) != {1.0}:
        columns["weight"] = [f"{weight:g}" for weight in rows["weight"]]
    return text_table(columns)
