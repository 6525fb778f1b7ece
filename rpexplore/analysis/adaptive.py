"""Adaptive plans: when to choose one, and what it measures when. No records."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from rpexplore.analysis.forecast import GOOD_SHARE, Forecast
from rpexplore.common.text import describe_share, plural
from rpexplore.domain.expected_counts import CV_LIMIT
from rpexplore.domain.public_tables import PublicTables
from rpexplore.domain.survey import SurveyDesign
from rpexplore.planning.adaptive import AdaptivePlan
from rpexplore.planning.losses.losses import SumOfVariances
from rpexplore.planning.mixed_weights import FEWEST_OF_THREE, NOT_SIMULATED, mixed_smooth_weights
from rpexplore.planning.planner import plan_tables as fixed_plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.workload.smooth_weights import SmoothWeights
from rpexplore.workload.workload import Workload

NOTHING_PROMISED = (
    "Adaptive, biased: the tables are estimates, and nothing is promised of their accuracy "
    "beforehand. The release states a bound on the error of a table where one is known."
)
_TRIALS = {
    "Adult, 15 attributes": (("0.1", 0.282, 0.279), ("1", 0.0989, 0.0979), ("10", 0.0451, 0.0457)),
    "Adult, its first 8": (("0.1", 0.338, 0.327), ("1", 0.122, 0.120), ("10", 0.0613, 0.0582)),
    "household survey": (("0.1", 0.279, 0.285), ("1", 0.109, 0.112), ("10", 0.0531, 0.0537)),
}
"""Mean L1 error per record of all 3-way tables: (ε at δ = 1e-9, fixed plan, adaptive plan)."""
TRIED = (
    "In trials (three sets of tables; ε = 0.1, 1 and 10), model-based estimates of a fixed plan "
    "with weights for them and the same budget came as near to the truth, within 6 % either way, "
    "and a fixed plan has unbiased tables with exact intervals beside them. Which comes nearer "
    "depends on how attributes depend on each other: simulate both with expected counts "
    "before you choose."
)
"""How adaptive releases did beside fixed plans; the one place that says so."""


def trials() -> pd.DataFrame:
    """One row a trial: data, epsilon, fixed and adaptive, their errors as shares of the records.

    The error of a table is that of all its cells, without signs; mean over all 3-way tables.
    """
    rows = [(data, *trial) for data, of_data in _TRIALS.items() for trial in of_data]
    return pd.DataFrame(rows, columns=["data", "epsilon", "fixed", "adaptive"])


def tables_of(workload: Workload) -> tuple[Workload, str]:
    """The tables that an adaptive plan can have of a workload: without targets.

    And a sentence on what was left out; "" for nothing. Other aggregations stay: a plan refuses
    them.
    """
    if np.all(np.isnan(workload.targets)):
        return workload, ""
    n_tables = len(workload)
    plain = replace(
        workload,
        targets=np.full(n_tables, np.nan),
        required=np.zeros(n_tables, dtype=bool),
    )
    return plain, ("The targets of the tables are left out: an adaptive plan has none.")


def unbiased_alternative(plan: AdaptivePlan) -> TablePlan:
    """The plan of the same tables at the same budget, with the smallest average error."""
    return fixed_plan(plan.workload, loss=SumOfVariances(), budget=plan.budget)


def smooth_alternative(plan: AdaptivePlan) -> TablePlan:
    """The plan of the same tables at the same budget that is made to be smoothed.

    With half mixed weights, as adaptive plans are not at the mercy of what pairs show either.
    """
    budget = plan.budget
    by_pairs = SmoothWeights(float(budget.record_privacy_cost / 2), plan.expected_records)
    workload = by_pairs.weighted(plan.workload)
    share = NOT_SIMULATED if int(workload.orders.max()) >= FEWEST_OF_THREE else 1.0
    weights = mixed_smooth_weights(by_pairs, workload, budget, (share,))[share]
    return fixed_plan(weights.weighted(workload), loss=SumOfVariances(), budget=budget)


@dataclass(frozen=True, eq=False)
class RoundsForecast:
    """What is known before the run of how good the tables of an adaptive plan will be.

    unbiased  of `unbiased_alternative`
    first     of what is measured before the first round alone: all tables of one and two attributes
    """

    unbiased: Forecast
    first: Forecast

    @classmethod
    def of(
        cls,
        plan: AdaptivePlan,
        public: PublicTables,
        limit: float = CV_LIMIT,
        survey: SurveyDesign | None = None,
        share: float = GOOD_SHARE,
        noun: str | None = None,
    ) -> "RoundsForecast":
        """survey: effects of other tables than the plan's are left out; noun: as of `Forecast`"""
        unbiased, first = (
            Forecast(
                tables,
                public.tables,
                public.expected,
                limit,
                share,
                survey=survey and survey.among(tables.workload.tables),
                noun=noun,
            )
            for tables in (unbiased_alternative(plan), plan.first)
        )
        return cls(unbiased, first)

    def describe(self) -> str:
        """What is certain, and what is not, in sentences."""
        people = self.first.people.text(describe_share)
        return (
            f"Unbiased tables at the same budget: {self.unbiased.describe()} The plan measures all "
            f"tables of one and two attributes before its first round; by that alone {people} of "
            f"{self.first.whom} are in good cells of these, mean over tables. What rounds add, and "
            "how good larger tables become, depends on the records, and is not forecast."
        )

    def to_json(self) -> dict[str, Any]:
        """The figures as plain values: those of unbiased tables, and `first_step`."""
        return self.unbiased.to_json() | {"first_step": self.first.to_json()}


def when_to_choose(known: RoundsForecast | None) -> list[str]:
    """When an adaptive plan is worth choosing, in sentences; known: None without public counts."""
    beside = (
        "Consider it only where too few cells of unbiased tables are accurate enough to publish; "
        "expected counts tell how many people are in these."
        if known is None
        else f"{known.describe()} Consider an adaptive plan only where unbiased tables are not "
        "enough."
    )
    return [NOTHING_PROMISED, beside, TRIED]


def measured_when(plan: AdaptivePlan) -> pd.DataFrame:
    """One row a step of a run, in its order.

    Columns: step ("first plan", "round 1"), measured (how many residuals), selection_rho and
    measurement_rho (of all of them together, for the privacy unit), share (of the plan's ρ).
    """
    factor = plan.budget.records_factor
    steps = [("first plan", len(plan.first.closure), Fraction(), plan.first.rho / factor)]
    steps += [
        (
            f"round {number}",
            step.n_tables,
            step.n_tables * step.selection_rho,
            step.n_tables * step.measurement_rho,
        )
        for number, step in enumerate(plan.rounds, 1)
    ]
    return pd.DataFrame(
        [
            {
                "step": name,
                "measured": count,
                "selection_rho": float(selection * factor),
                "measurement_rho": float(measurement * factor),
                "share": float((selection + measurement) * factor / plan.rho),
            }
            for name, count, selection, measurement in steps
        ]
    )


def describe_measured(plan: AdaptivePlan) -> list[str]:
    """A description of what a run measures, in sentences."""
    pairs = sum(len(candidate) == 2 for candidate in plan.candidates)
    triples = len(plan.candidates) - pairs
    among = plural(pairs, "pair") + (f" and {plural(triples, 'triple')}" if triples else "")
    n_rounds = plural(len(plan.rounds), "round")
    return [
        "First, every table of one and two attributes within the tables is measured, as by an "
        "ordinary plan.",
        f"Then, in {n_rounds}, all tables are estimated from what is measured so far, and the "
        f"estimates are compared with the records. Of the {among} of attributes those that are "
        "most wrong are selected, by the exponential mechanism, and measured, maybe again: "
        f"{plural(plan.n_selected, 'selection')} in all.",
        f"How the budget is divided follows from {plural(plan.expected_records, 'expected record')}"
        ", the tables and the codebook alone. The guarantee holds whatever is selected.",
    ]
