"""The privacy label: the first page of a report, what is promised to whom and what is not."""

import math
from fractions import Fraction

import pandas as pd

from rpexplore.analysis.budget_units import USUAL_DELTA, typed_text
from rpexplore.common.formatting import rounded, small
from rpexplore.domain.provenance import describe_attributes_from_records
from rpexplore.export.report.kinds import COARSE, PlanWords
from rpexplore.export.report.section import (
    Beside,
    Facts,
    Numbers,
    Points,
    Section,
    template_blocks,
)
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.privacy.conversions import USUAL_DELTAS, max_true_positive_rate

DELTAS = tuple(map(Fraction, ("1e-5", *USUAL_DELTAS)))
FALSE_ALARMS = Fraction(1, 20)


def label(plan: Plan | PartPlan) -> Section:
    """The privacy label of a plan."""
    most = plan.budget.max_records_per_person
    delta = plan.budget.stated_delta or Fraction(USUAL_DELTA)
    blocks = template_blocks(
        "privacy_label.txt.j2",
        plan=plan,
        budget=plan.budget,
        most=most,
        stated=_stated(plan),
        kind=PlanWords.of(plan),
        one="one record" if most is None else "one person",
        delta=delta,
        factor=_factor(plan.epsilon(delta)),
        false_alarms=FALSE_ALARMS,
        detected=max_true_positive_rate(plan.rho, float(FALSE_ALARMS)),
        coarse=COARSE,
        from_records=describe_attributes_from_records(plan.domain),
    )
    meaning, *limits = (Points(sentences, title) for title, *sentences in blocks[-4:])
    return Section(
        "Privacy label", (), (Facts(blocks[:-4]), epsilons(plan), meaning, Beside(limits))
    )


def epsilons(plan: Plan | PartPlan) -> Numbers:
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


def _stated(plan: Plan | PartPlan) -> str:
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
