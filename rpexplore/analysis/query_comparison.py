"""What plainer ways of asking the same queries would cost, for people: budgets and words."""

import pandas as pd

from rpexplore.analysis.query_baselines import OPTIMUM
from rpexplore.common.formatting import rounded
from rpexplore.privacy.budget import Budget

TITLES = {
    OPTIMUM: "this plan",
    "input perturbation": "noise on every cell",
    "hierarchy": "a tree of subtotals",
    "sum of variances": "the best on average",
}


def budgets_needed(baselines: pd.DataFrame, like: Budget) -> pd.DataFrame:
    """The rows of `query_baselines`, the cheapest way first, with title and rho.

    rho: the budget at which all targets are met, for the privacy unit of the budget `like`
    """
    needed = baselines.copy()
    needed["title"] = [TITLES[way] for way in baselines["way"]]
    needed["rho"] = baselines["privacy_cost"] * float(like.records_factor / 2)
    # Stable: a way that happens to be as good as the plan stays behind it.
    return needed.sort_values(by="rho", kind="stable", ignore_index=True)


def budgets_in_words(needed: pd.DataFrame) -> str:
    """How much more budget each other way takes, in a sentence or two."""
    rows = needed.to_dict("records")
    told = [
        f"{row['title']} {_times(row['largest_ratio'])}"
        for row in reversed(rows)
        if row["way"] != OPTIMUM
    ]
    mine = next(row["rho"] for row in rows if row["way"] == OPTIMUM)
    return (
        f"To meet all targets this plan needs ρ = {rounded(mine, 3, 'up')}; "
        f"{', '.join(told[:-1])} and {told[-1]}."
    )


def _times(times: float) -> str:
    text = rounded(times, 3)
    return "needs as much" if text == "1" else f"needs {text} times as much"
