"""Areas: the levels of a tree, and a plan beside the shares of the budget that agencies choose."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.numbers import shown
from rpexplore.common.processes import Progress, no_progress, part_of_progress
from rpexplore.common.text import joined
from rpexplore.domain.area_tree import AreaTree
from rpexplore.errors import BudgetError, WorkloadError
from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.areas.area_loss import area_problem, loss_of_variances, profiles_of
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_plan_file import profile_costs
from rpexplore.planning.areas.area_planner import best_precisions, plan_areas
from rpexplore.planning.areas.tree_passes import Estimation

if TYPE_CHECKING:
    import pandas as pd


_OF_BEST_SHARES = 0.9  # of the time that a comparison takes
_TOLERANCE = 1e-4  # relative, of the loss of a level alone

Shares = Mapping[str, float]
"""Level -> its part of the budget, relative to the others."""


def level_sizes(tree: AreaTree) -> "pd.DataFrame":
    """One row a level, from the top: areas, undivided ones, and numbers of parts of the others.

    level, areas, undivided, fewest_parts, median_parts, most_parts (NaN where none is divided)
    """
    import pandas as pd

    rows = []
    for number, level in enumerate(tree.levels):
        parts = tree.n_parts[tree.level_slice(number)]
        divided = parts[parts > 0]
        few, middle, many = np.percentile(divided, (0, 50, 100)) if len(divided) else (np.nan,) * 3
        rows.append((level, len(parts), len(parts) - len(divided), few, middle, many))
    names = ["level", "areas", "undivided", "fewest_parts", "median_parts", "most_parts"]
    return pd.DataFrame(rows, columns=pd.Index(names))


def beside_shares_by_level(
    plan: AreaPlan,
    stated: Mapping[str, Shares] | None = None,
    on_progress: Progress = no_progress,
) -> "pd.DataFrame":
    """The loss of a plan beside that of shares of its budget by level, all by least squares.

    Args:
        plan: Any plan whose tables are the same in all areas of a level.
        stated: Shares by level, by what they are called.
        on_progress: Called with what is being done and the share that is done; what it raises ends
            the work.

    Returns:
        One row for the best shares by level, for equal ones and for each of those stated: title,
        loss, ratio (of the plan's loss to it), and the share of each level. All areas of a level
        have the same noise there: with the best shares it is planned for all levels together, with
        others for the tables of each level alone.

    Raises:
        WorkloadError: If areas of one level are asked for different tables; and for a plan within
            required targets, which such shares would miss.
        BudgetError: For shares of other levels than those with tables, or not above 0.

    Example:
        >>> import rpexplore as rp
        >>> tree = rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"121"]})
        >>> sexes = rp.Workload.all_up_to(rp.Domain.from_sizes({"sex": 2}), 1)
        >>> plan = rp.plan(
        ...     rp.AreaWorkload.of_levels(tree, {"region": sexes, "town": sexes}),
        ...     loss=rp.SumOfVariances(),
        ...     budget=rp.Budget(rho=1),
        ... ).part("areas")
        >>> frame = beside_shares_by_level(plan, {"mostly towns": {"region": 1, "town": 4}})
        >>> frame["title"].tolist()
        ['best shares by level', 'equal shares', 'mostly towns']
    """
    import pandas as pd

    if plan.loss.meets_required_targets:
        raise WorkloadError(
            "Shares of the budget by level are compared by their loss, and here some would miss "
            "required targets; compare them for another objective."
        )
    levels = _levels_with_tables(plan)
    by_level = plan
    if not plan.uniform:
        by_level = plan_areas(
            plan.workload,
            loss=plan.loss,
            budget=plan.budget,
            uniform_levels=True,
            on_progress=part_of_progress(on_progress, 0, _OF_BEST_SHARES),
        )
    rows = [("best shares by level", by_level.loss_value, _shares_of(by_level))]
    of_titles = {"equal shares": dict.fromkeys(levels, 1.0), **(stated or {})}
    for number, (title, shares) in enumerate(of_titles.items()):
        done = _OF_BEST_SHARES + (1 - _OF_BEST_SHARES) * number / len(of_titles)
        on_progress(f"Working out {title}", done)
        part = _checked(title, shares, list(levels))
        rows.append((title, loss_of_shares(plan, part), part))
    return pd.DataFrame(
        [
            {"title": title, "loss": loss, "ratio": plan.loss_value / loss, **shares}
            for title, loss, shares in rows
        ]
    )


def loss_of_shares(plan: AreaPlan, shares: Shares) -> float:
    """The loss where each level has its share of a plan's budget; shares sum to 1."""
    groups, closure = plan.groups, plan.closure
    precisions, exact_levels = np.zeros((len(closure), len(groups))), closure.exact_levels
    levels, rows = plan.workload.tree.levels, plan.loss_rows
    profiles = profiles_of(plan.workload, closure, plan.loss, rows, exact_levels)
    for level, kind in _levels_with_tables(plan).items():
        number = levels.index(level)
        cost = float(plan.budget.record_privacy_cost) * shares[level]
        alone = replace(AreaGroups.single(), kinds=np.array([kind]))
        known = replace(profiles, exact_levels=(profiles.exact_levels > number).astype(np.int64))
        problem = area_problem(plan.workload, alone, plan.loss, rows, known, False, 1.0)
        if not np.any(problem.measured):
            continue
        best, _ = problem.normalised(best_precisions(problem, _TOLERANCE))
        best = np.where(problem.measured, best * cost, 0.0)[profiles.of_residual, 0]
        areas = slice(*groups.starts[number : number + 2].tolist())
        precisions[:, areas] = (best * profiles.factors)[:, None]
    pairs = zip(precisions, exact_levels.tolist(), strict=True)
    variances = np.stack([Estimation.of(groups, *pair).variances for pair in pairs])
    return loss_of_variances(plan.workload, groups, closure, plan.loss, variances)


def _levels_with_tables(plan: AreaPlan) -> dict[str, int]:
    """Level -> what its areas are asked for, from the top; levels without tables are left out."""
    tree, kinds = plan.workload.tree, plan.workload.kinds
    found = {}
    for number, level in enumerate(tree.levels):
        of_level = np.unique(kinds[tree.level_slice(number)]).tolist()
        if len(of_level) > 1:
            raise WorkloadError(
                f"The areas of the level {level} are asked for different tables; shares of the "
                "budget by level are compared where they are asked for the same."
            )
        if of_level[0] >= 0:
            found[level] = of_level[0]
    return found


def _checked(title: str, shares: Shares, levels: list[str]) -> Shares:
    if set(shares) != set(levels) or not all(share > 0 for share in shares.values()):
        stated = ", ".join(f"{level}: {share}" for level, share in shares.items())
        raise BudgetError(
            f"The shares {title!r} must be above 0 for each of the levels with tables, "
            f"{joined(levels)}, and for no other; got {shown(stated) or 'none'}."
        )
    total = sum(shares.values())
    return {level: shares[level] / total for level in levels}


def _shares_of(plan: AreaPlan) -> Shares:
    """The cost of each level of a plan with one precision a level, as parts of 1."""
    of_kinds = profile_costs(plan.closure, plan.of_residual, plan.factors)
    costs = np.array([[float(cost) for cost in of_kind] for of_kind in of_kinds])
    starts = plan.groups.starts[:-1]
    of_levels = costs @ np.maximum.reduceat(plan.precisions, starts, axis=1)
    of_levels = of_levels[np.argmax(np.sum(of_levels, axis=1))]  # of the dearest kind of record
    shares = (of_levels / np.sum(of_levels)).tolist()
    return {
        level: share
        for level, share in zip(plan.workload.tree.levels, shares, strict=True)
        if share > 0
    }
