"""The accuracy of a plan for areas, by level and table; and a few lines of it, for a terminal."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.common.formatting import plural
from rpexplore.planning.areas.area_cells import extreme_variances
from rpexplore.planning.areas.area_loss import caps_of, table_weights
from rpexplore.planning.losses.base import WeightedSum
from rpexplore.planning.losses.constrained import WithinTargets

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.planning.areas.area_plan import AreaPlan


def area_tables(plan: "AreaPlan") -> "pd.DataFrame":
    """One row a table and level where it is asked for, the levels from the top.

    level, attributes, areas (that are asked for the table), cells (in one area), mean_variance and
    max_variance (over areas and cells), standard_error (root of the mean variance),
    largest_standard_error, smallest_standard_error (of any cell), weight, target, required, and
    shadow_price: by how many per cent the smallest possible loss grows when the weights of the
    table in these areas grow by one per cent; with required targets, its share of all that the
    plan's proof weighs.
    """
    import pandas as pd

    table = pd.DataFrame(_rows(plan))
    table["shadow_price"] /= table["shadow_price"].sum()
    return table


def _rows(plan: "AreaPlan") -> Iterator[dict[str, Any]]:
    groups, tree = plan.groups, plan.workload.tree
    weights = table_weights(plan.workload, plan.loss)
    caps = [np.full(len(asked), np.inf) for asked in plan.workload.workloads]
    if isinstance(plan.loss, WithinTargets):
        caps = caps_of(plan.workload, plan.loss)
    extremes: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    level_of = np.repeat(np.arange(len(tree.levels)), np.diff(groups.starts))
    for level, name in enumerate(tree.levels):
        for kind in np.unique(groups.kinds[level_of == level]).tolist():
            if kind < 0:
                continue
            if kind not in extremes:
                extremes[kind] = extreme_variances(plan, kind)
            asked = plan.workload.workloads[kind]
            here = level_of[groups.kinds == kind] == level
            of_level = (groups.kinds == kind) & (level_of == level)
            sizes, variances = groups.multiplicity[of_level], plan.table_variances(kind)[:, here]
            smallest, largest = (of_kind[:, here] for of_kind in extremes[kind])
            shares = weights[kind][:, None] * variances
            if isinstance(plan.loss, WeightedSum):
                shares /= plan.workload.areas_asked[kind]
            if plan.table_prices is not None:
                prices = plan.table_prices[plan.workload.rows[kind]][:, of_level]
                of_caps = prices * variances / caps[kind][:, None]
                if isinstance(plan.loss, WeightedSum):
                    shares += of_caps
                else:
                    shares = shares * prices + of_caps
            for row in range(len(asked)):
                mean = float(variances[row] @ sizes / np.sum(sizes))
                yield {
                    "level": name,
                    "attributes": asked.tables[row],
                    "areas": int(np.sum(sizes)),
                    "cells": int(asked.exact_cells[row]),
                    "mean_variance": mean,
                    "max_variance": float(np.max(largest[row])),
                    "standard_error": float(np.sqrt(mean)),
                    "largest_standard_error": float(np.sqrt(np.max(largest[row]))),
                    "smallest_standard_error": float(np.sqrt(np.min(smallest[row]))),
                    "weight": float(asked.weights[row]),
                    "target": float(asked.targets[row]),
                    "required": bool(asked.required[row]),
                    "shadow_price": float(shares[row] @ sizes),
                }


def area_summary(plan: "AreaPlan") -> str:
    """Its size, guarantee, proof, and accuracy by level."""
    tree, tables = plan.workload.tree, plan.tables
    rows = [
        f"Plan for {plural(plan.n_items, 'table')} in {plural(tree.n_areas, 'area')} on "
        f"{plural(len(tree.levels), 'level')}",
        *plan.privacy_lines,
        f"  Objective  {plan.loss.description}: {plan.loss_value:.6g}",
        f"  Proven     {plan.proven}",
        "  Accuracy   standard error of a cell",
        f"    {'level':<16} {'areas':>10} {'tables':>9} {'smallest':>10} {'largest':>10}",
    ]
    for level, of_level in tables.groupby("level", sort=False):
        rows.append(
            f"    {level:<16} {of_level['areas'].max():>10,} {len(of_level):>9,} "
            f"{of_level['smallest_standard_error'].min():>10.4g} "
            f"{of_level['largest_standard_error'].max():>10.4g}"
        )
    return "\n".join(rows)
