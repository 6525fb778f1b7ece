"""The accuracy of a plan for areas, by level and table; and a few lines of it, for a terminal."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.common.formatting import plural
from rpexplore.planning.accuracy_frame import accuracy_frame
from rpexplore.planning.areas.area_cells import extreme_variances, mean_variances
from rpexplore.planning.areas.area_loss import row_caps, table_weights
from rpexplore.planning.losses.base import WeightedSum
from rpexplore.planning.losses.constrained import WithinTargets
from rpexplore.planning.plan_summary import targets_lines
from rpexplore.workload.table_text import titles

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.planning.areas.area_plan import AreaPlan


def area_accuracy(plan: "AreaPlan") -> "pd.DataFrame":
    """The frame of `AreaPlan.accuracy`."""
    import pandas as pd

    rows = pd.DataFrame(_rows(plan))
    rows["shadow_price"] /= rows["shadow_price"].sum()
    return accuracy_frame(plan.kind, rows.pop("item"), **{name: rows[name] for name in rows})


def _rows(plan: "AreaPlan") -> Iterator[dict[str, Any]]:
    groups, tree = plan.groups, plan.workload.tree
    level_of = np.repeat(np.arange(len(tree.levels)), np.diff(groups.starts))
    for level, name in enumerate(tree.levels):
        for kind in np.unique(groups.kinds[level_of == level]).tolist():
            if kind < 0:
                continue
            asked = plan.workload.workloads[kind]
            of_level = (groups.kinds == kind) & (level_of == level)
            sizes, residuals = groups.multiplicity[of_level], plan.residual_variances[:, of_level]
            given = plan.workload, plan.closure, kind, residuals
            smallest = largest = variances = mean_variances(*given)
            if not plan.workload.tables.is_marginals:
                smallest = extreme_variances(*given, largest=False)
                largest = extreme_variances(*given, largest=True)
            shares = _shares(plan, kind, of_level, residuals, variances)
            names = titles(asked, np.arange(len(asked)))
            for row in range(len(asked)):
                mean = float(variances[row] @ sizes / np.sum(sizes))
                yield {
                    "level": name,
                    "item": names[row],
                    "attributes": asked.tables[row],
                    "areas": int(np.sum(sizes)),
                    "cells": int(asked.exact_cells[row]),
                    "standard_error": float(np.sqrt(mean)),
                    "largest_standard_error": float(np.sqrt(np.max(largest[row]))),
                    "smallest_standard_error": float(np.sqrt(np.min(smallest[row]))),
                    "weight": float(asked.weights[row]),
                    "target": float(asked.targets[row]),
                    "required": bool(asked.required[row]),
                    "shadow_price": float(shares[row] @ sizes),
                }


def _shares(
    plan: "AreaPlan", kind: int, groups: np.ndarray, residuals: np.ndarray, means: np.ndarray
) -> np.ndarray:
    """What each table of a workload has of the sum that proves the bound, in an area of each group.

    groups: bool[n_groups]; residuals, means: variances of residuals and mean ones of the tables in
    these groups, float64[n_residuals, ·] and [n_tables, ·]
    """
    workload, prices = plan.workload, plan.table_prices
    weights, rows = table_weights(workload, plan.loss)[kind], plan.loss_rows
    shares = np.zeros_like(means)
    if isinstance(plan.loss, WeightedSum):
        shares += weights[:, None] * means / workload.areas_asked[kind]
    if prices is not None:
        on_rows = np.zeros(len(rows))
        if isinstance(plan.loss, WithinTargets):
            on_rows += 1 / row_caps(workload, plan.loss, rows)[kind]
        if not isinstance(plan.loss, WeightedSum):
            on_rows += np.where(rows.single, rows.of_tables(weights, workload.rows[kind], 0.0), 0.0)
        for row in np.flatnonzero(on_rows).tolist():
            table = np.flatnonzero(workload.rows[kind] == rows.tables[row])
            of_row = on_rows[row] * prices[row, groups] * (rows.matrix[row] @ residuals)
            shares[table] += of_row
    return shares


def area_summary(plan: "AreaPlan") -> str:
    """Its size, guarantee, proof, targets and accuracy by level; one target a table and level."""
    tree, tables = plan.workload.tree, plan.accuracy()
    names = (tables["item"] + " on the level " + tables["level"]).tolist()
    errors, targets = tables["largest_standard_error"].to_numpy(), tables["target"].to_numpy()
    rows = [
        f"Plan for {plural(plan.n_items, 'table')} in {plural(tree.n_areas, 'area')} on "
        f"{plural(len(tree.levels), 'level')}",
        *plan.privacy_lines,
        f"  Objective  {plan.loss.description}: {plan.loss_value:.6g}",
        f"  Proven     {plan.proven}",
        *targets_lines(errors, targets, tables["required"].to_numpy(dtype=bool), names.__getitem__),
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
