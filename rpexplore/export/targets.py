"""What a report tells about targets: which are met, and what it would take to meet all."""

import numpy as np
import pandas as pd

from rpexplore.analysis import standard_errors
from rpexplore.analysis.sufficient_budgets import sufficient
from rpexplore.errors import BudgetError
from rpexplore.export.section import Numbers, Section
from rpexplore.losses import MaxVariance
from rpexplore.plan import Plan

MOST_MISSED = 20
_OF_WORST_CELLS = "A target is met when the least accurate cell of its table meets it."


def targets(plan: Plan) -> Section:
    """Which targets are met, and the budget that would meet all of them."""
    wanted = plan.workload.targets
    errors = plan.worst_standard_errors
    ratios = errors / wanted
    asked = np.flatnonzero(~np.isnan(ratios))
    if not len(asked):
        return Section("Targets", ("No table was given a target for its standard error.",))
    top = standard_errors.headline(plan)
    missed = asked[ratios[asked] > standard_errors.MET]
    missed = missed[np.argsort(-ratios[missed], kind="stable")]
    sentences = [
        standard_errors.targets_met_in_words(top.targets_met, top.targets),
        *([_OF_WORST_CELLS] if top.cells_differ else []),
        *_what_it_takes(plan, float(np.max(ratios[asked])) ** 2, top.targets),
    ]
    if not len(missed):
        return Section("Targets", sentences)
    shown = missed[:MOST_MISSED]
    frame = pd.DataFrame(
        {
            "table": standard_errors.titles(plan.workload, shown),
            "target": [f"{target:g}" for target in wanted[shown].tolist()],
            "standard_error": errors[shown],
            "ratio": ratios[shown],
        }
    )
    words = {
        "table": "table",
        "target": "target σ",
        "standard_error": "least accurate cell σ" if top.cells_differ else "standard error σ",
        "ratio": "times the target",
    }
    note = ""
    if len(shown) < len(missed):
        note = f"And {len(missed) - len(shown):,} more; tables.csv has all."
    numbers = Numbers(frame, words, "Targets that are not met, the furthest off first", note)
    return Section("Targets", sentences, (numbers,))


def _what_it_takes(plan: Plan, factor: float, targets: int) -> list[str]:
    """The budget that would just meet all targets; factor: how many times the plan's own it is."""
    them = "it" if targets == 1 else "all of them"
    if 1 / standard_errors.MET**2 <= factor <= standard_errors.MET**2:
        return []
    try:
        enough = sufficient(float(plan.rho) * factor, plan.budget)
    except BudgetError:
        return [f"No budget that can be planned with would meet {them}."]
    if factor < 1:
        return [f"With the same aim, {enough.words} would be enough for {them}."]
    sentences = [
        f"To meet {them} with the same aim takes {enough.words}: {enough.compared}, because "
        "standard errors fall with the square root of ρ."
    ]
    if not (isinstance(plan.loss, MaxVariance) and plan.loss.relative_to == "target"):
        which = "target itself" if targets == 1 else "targets themselves"
        sentences.append(f"A plan that aims at the {which} may need less.")
    return sentences
