"""The privacy label: the first page of a report, what is promised to whom and what is not."""

import math
from fractions import Fraction
from typing import TypeAlias

import pandas as pd

from rpexplore.analysis.areas.distributions import n_tables_below
from rpexplore.analysis.budget_units import USUAL_DELTA, typed_text
from rpexplore.common.formatting import rounded, small
from rpexplore.domain.provenance import describe_attributes_from_records
from rpexplore.export.report.section import (
    Beside,
    Facts,
    Numbers,
    Points,
    Section,
    template_blocks,
)
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.mechanism.table_variances import cells_differ
from rpexplore.planning.plan import Plan
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.privacy.conversions import USUAL_DELTAS, max_true_positive_rate

ReportedPlan: TypeAlias = Plan | AreaPlan
DELTAS = tuple(map(Fraction, ("1e-5", *USUAL_DELTAS)))
FALSE_ALARMS = Fraction(1, 20)

# Where the standard error is below this, the noise's whole steps show in its quantiles.
COARSE = 2.0


def label(plan: ReportedPlan) -> Section:
    """The privacy label of a plan."""
    most = plan.budget.max_records_per_person
    delta = plan.budget.stated_delta or Fraction(USUAL_DELTA)
    blocks = template_blocks(
        "privacy_label.txt.j2",
        plan=plan,
        budget=plan.budget,
        most=most,
        stated=_stated(plan),
        mechanism=mechanism(plan),
        one="one record" if most is None else "one person",
        delta=delta,
        factor=_factor(plan.epsilon(delta)),
        false_alarms=FALSE_ALARMS,
        detected=max_true_positive_rate(plan.rho, float(FALSE_ALARMS)),
        coarse=COARSE,
        n_coarse=_n_coarse(plan),
        cells_differ=not plan.workload.tables.is_marginals
        if isinstance(plan, AreaPlan)
        else cells_differ(plan.table_variances),
        from_records=describe_attributes_from_records(plan.domain),
    )
    meaning, *limits = (Points(sentences, title) for title, *sentences in blocks[-4:])
    return Section(
        "Privacy label", (), (Facts(blocks[:-4]), epsilons(plan), meaning, Beside(limits))
    )


def _n_coarse(plan: ReportedPlan) -> int:
    """How many tables have a cell whose noise shows its whole steps."""
    if isinstance(plan, AreaPlan):
        return n_tables_below(plan, COARSE)
    return int((plan.table_variances.standard_errors("smallest") < COARSE).sum())


def epsilons(plan: ReleasePlan) -> Numbers:
    """ε at several δ, with what it means."""
    stated = plan.budget.stated_delta
    deltas = sorted({*DELTAS, stated or DELTAS[0]}, reverse=True)
    rows = [
        {
            "δ": small(delta),
            "ε, proven": rounded(plan.epsilon(delta), 4, "up", zeros=True),
            "a result is at most … times as likely, plus δ": _factor(plan.epsilon(delta)),
        }
        for delta in deltas
    ]
    return Numbers(
        pd.DataFrame(rows),
        title="The promise as (ε, δ)",
        note=(
            "The promise is ρ; every ε follows from it, is rounded up, and holds for the noise as "
            "it is drawn, which is discrete. The smaller ε that are quoted for continuous Gaussian "
            "noise do not hold for it."
        ),
    )


def mechanism(plan: ReportedPlan) -> str:
    """The mechanism's name: that of marginals, or that of other aggregations as well."""
    if isinstance(plan, AreaPlan):
        plus = "" if plan.workload.tables.is_marginals else "+"
        return f"ResidualPlanner{plus} in every area of a tree"
    return "ResidualPlanner" if plan.workload.is_marginals else "ResidualPlanner+"


def _stated(plan: ReleasePlan) -> str:
    """The budget as it was stated: "ε = 1 at δ = 1e-9"."""
    stated = dict(plan.budget.stated)
    if "epsilon" in stated:
        return f"ε = {typed_text(stated['epsilon'])} at δ = {typed_text(stated['delta'])}"
    letters = {"rho": "ρ", "mu": "μ", "privacy_cost": "2ρ"}
    ((name, value),) = stated.items()
    return f"{letters[name]} = {typed_text(value)}"


def _factor(epsilon: float) -> str:
    """e^ε, rounded up."""
    return "over 10^300" if epsilon > 690 else rounded(math.exp(epsilon), 3, "up", zeros=True)
