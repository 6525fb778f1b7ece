"""The summary of a plan of tables: a few lines, for a terminal."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.formatting import plural
from rpexplore.workload.targets import MET_FACTOR

if TYPE_CHECKING:
    from rpexplore.planning.table_plan import TablePlan


def plan_summary(plan: "TablePlan") -> str:
    """Its size, guarantee, proof, targets and accuracy by order."""
    workload, domain = plan.workload, plan.workload.domain
    rows = [
        f"Plan for {plural(len(workload), 'table')} over {plural(len(domain), 'attribute')} "
        f"({plural(len(plan.closure), 'residual')} to measure)",
        *plan.privacy_lines,
        f"  Objective  {plan.loss.description}: {plan.loss_value:.6g}",
        f"  Proven     {plan.proven}",
        *targets_lines(
            plan.largest_standard_errors, workload.targets, workload.required, workload.describe
        ),
        "  Accuracy   standard error of a cell",
        f"    {'attributes':>10} {'tables':>9} {'smallest':>10} {'median':>10} {'largest':>10}",
    ]
    best = plan.table_variances.standard_errors("smallest")
    for order in np.unique(workload.orders):
        tables = workload.orders == order
        rows.append(
            f"    {order:>10} {np.count_nonzero(tables):>9,} {best[tables].min():>10.4g} "
            f"{np.median(plan.standard_errors[tables]):>10.4g} "
            f"{plan.largest_standard_errors[tables].max():>10.4g}"
        )
    return "\n".join(rows)


def targets_lines(
    errors: np.ndarray, targets: np.ndarray, required: np.ndarray, describe: Callable[[int], str]
) -> list[str]:
    """Which targets are met, where there are any.

    errors    float64[n]: standard errors of the least accurate cells, with which targets are met
    targets   float64[n]: NaN where there is none
    required  bool[n]
    describe  the text of the table at a position
    """
    ratios = errors / targets
    wanted = np.count_nonzero(~np.isnan(ratios))
    if wanted == 0:
        return []
    furthest, met = int(np.nanargmax(ratios)), ratios <= MET_FACTOR
    which = "tightest" if np.count_nonzero(met) == wanted else "furthest off"
    lines = [
        f"  Targets    {np.count_nonzero(met):,} of {wanted:,} met; {which}: "
        f"{describe(furthest)}, {errors[furthest]:.4g} for a target of {targets[furthest]:.4g}"
    ]
    if np.any(required):
        missed = np.count_nonzero(required & ~met)
        note = "; this objective does not require them, --loss required does" if missed else ""
        count = np.count_nonzero(required)
        lines.append(f"  Required   {count - missed:,} of {count:,} met{note}")
    return lines
