"""What the command line says about adaptive plans: values, texts."""

from typing import Any

from rpexplore.common.exact_numbers import exact_text
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan


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
