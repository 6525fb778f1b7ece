"""How much budget a list of queries needs for its targets."""

import numpy as np

from rpexplore.analysis.sufficient_budgets import SufficientBudget, sufficient
from rpexplore.privacy.budget import Budget
from rpexplore.queries.planner import QueryOptimum


def smallest_query_budget(optimum: QueryOptimum, like: Budget) -> SufficientBudget:
    """The smallest budget at which all queries meet their targets, rounded up.

    No mechanism with Gaussian noise does with less, up to the solver's tolerance. like: the present
    budget, for the privacy unit, the unit it is stated in, and the comparison.

    Raises `BudgetError` if none is large, or small, enough.
    """
    most = int(np.argmax(optimum.needed_costs))
    queries = optimum.queries
    what = f"The target {queries.targets[most]:g} of the query {queries.names[most]!r}"
    return sufficient(optimum.cost * (like.records_factor / 2), like, what)


def rho_below_no_queries_are_met(optimum: QueryOptimum, like: Budget) -> float:
    """ρ of the privacy unit below which no mechanism with Gaussian noise meets all targets."""
    return optimum.lower_bound * (like.records_factor / 2)
