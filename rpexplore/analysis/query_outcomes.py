"""What a query plan gives: each query against its target, and all of them in a few words."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import MET, describe_targets_met
from rpexplore.analysis.targets_met import describe_now, describe_outcome
from rpexplore.common.formatting import rounded
from rpexplore.queries.definitions import StatedQueries
from rpexplore.queries.plan import QueryPlan

_MOST_CONDITIONS = 1000  # that are made for queries given by coefficients; each takes a moment


def describe_queries(count: int) -> str:
    """ "1 query", "1,200 queries"."""
    return f"{count:,} quer{'y' if count == 1 else 'ies'}"


@dataclass(frozen=True)
class QueryHeadline:
    """A query plan in a few numbers.

    met     how many queries are as accurate as wanted
    factor  the largest standard error over its target: every target times this could be met
    text    how many targets are met, and what is between that and all, or beyond
    """

    queries: int
    met: int
    factor: float
    text: str


def query_headline(plan: QueryPlan, stated: StatedQueries) -> QueryHeadline:
    """How many targets are met, and the common factor between what is wanted and what is given.

    The plan has the smallest such factor that its budget allows, so one number says how far off
    the list is as a whole.
    """
    met, factor = int(np.count_nonzero(_met(plan))), float(np.max(_ratios(plan)))
    text = describe_targets_met(met, len(stated))
    if met < len(stated):
        worst = int(np.argmax(_ratios(plan)))
        target, name = stated.targets[worst], stated.queries.names[worst]
        now = describe_now(target, float(plan.standard_errors[worst]))
        text += (
            f" Furthest off is {name}: {now} for a target of {target.description}. Meeting all "
            f"takes {rounded(factor**2, 3, 'up')} times the budget, or targets "
            f"{rounded(factor, 3, 'up')} times as wide."
        )
    elif factor < 0.995:
        spare = rounded(1 / factor, 3, "down")
        text += f" With this budget every target could be {spare} times as narrow."
    return QueryHeadline(len(stated), met, factor, text)


def of_queries(plan: QueryPlan, stated: StatedQueries) -> pd.DataFrame:
    """One row a query, in the order of the list.

    query, condition ("" where there is none), wanted (the target as typed), standard_error,
    margin_95, outcome ("met: ±38", "short by ±12"), ratio (of the standard error to the wanted
    one) and share (of the smallest budget for all targets).
    """
    conditions = stated.conditions
    if len(stated) <= _MOST_CONDITIONS:
        conditions = [stated.condition(query) for query in range(len(stated))]
    errors = plan.standard_errors.tolist()
    return pd.DataFrame(
        {
            "query": stated.queries.names,
            "condition": [condition or "" for condition in conditions],
            "wanted": [target.text for target in stated.targets],
            "standard_error": errors,
            "margin_95": plan.margins_of_error(),
            "outcome": [
                describe_outcome(target, error)
                for target, error in zip(stated.targets, errors, strict=True)
            ],
            "ratio": _ratios(plan),
            "share": plan.certificate.shadow_prices,
        }
    )


def _ratios(plan: QueryPlan) -> np.ndarray:
    """Standard error of each query over its target, float64[n_queries]."""
    return plan.standard_errors / plan.targets


def _met(plan: QueryPlan) -> np.ndarray:
    """Whether each query meets its target, up to the rounding of noise scales, bool[n_queries]."""
    return plan.standard_errors <= plan.targets * MET
