"""The privacy label: the first page of a report, what is promised to whom and what is not."""

import math
from fractions import Fraction

import pandas as pd

from rpexplore.analysis.budget_units import typed_text
from rpexplore.common.formatting import capitalised, plural, rounded, small
from rpexplore.domain.provenance import describe_attributes_from_records
from rpexplore.export.report.section import Beside, Facts, Numbers, Points, Section
from rpexplore.planning.mechanism.table_variances import cells_differ
from rpexplore.planning.plan import Plan
from rpexplore.privacy.conversions import max_true_positive_rate

DELTAS = (Fraction(1, 10**5), Fraction(1, 10**6), Fraction(1, 10**9), Fraction(1, 10**12))
FALSE_ALARMS = Fraction(1, 20)

# Where the standard error is below this, the noise's whole steps show in its quantiles.
COARSE = 2.0

_EXACT = (
    "The privacy cost: computed in rational numbers, never above the budget.",
    "The standard errors of the noise, as upper bounds: known in advance, and never larger than "
    "stated, whatever the records hold.",
    "Noisy counts are right on average.",
    "How close the plan is to the best one: a proven bound.",
    "Cost, standard errors and bound were recomputed for this report.",
)


def label(plan: Plan) -> Section:
    """The privacy label of a plan."""
    limits = (
        Points(_EXACT, "Exact"),
        Points(_approximate(plan), "Approximate"),
        Points(_not_covered(plan), "Not covered"),
    )
    parts = (_promise(plan), epsilons(plan), Points(_meaning(plan), "What that means"))
    return Section("Privacy label", parts=(*parts, Beside(limits)))


def epsilons(plan: Plan) -> Numbers:
    """ε at several δ, with what it means."""
    stated = plan.budget.stated_delta
    deltas = sorted({*DELTAS, stated or DELTAS[0]}, reverse=True)
    rows = [
        {
            "delta": small(delta),
            "epsilon": rounded(plan.epsilon(delta), 4, "up", zeros=True),
            "factor": _factor(plan.epsilon(delta)),
        }
        for delta in deltas
    ]
    return Numbers(
        pd.DataFrame(rows),
        {
            "delta": "δ",
            "epsilon": "ε, proven",
            "factor": "a result is at most … times as likely, plus δ",
        },
        title="The promise as (ε, δ)",
        note=(
            "The promise is ρ; every ε follows from it, is rounded up, and holds for the noise as "
            "it is drawn, which is discrete. The smaller ε that are quoted for continuous Gaussian "
            "noise do not hold for it."
        ),
    )


def _promise(plan: Plan) -> Facts:
    budget = plan.budget
    most = budget.max_records_per_person
    if most is None:
        neighbours = "Two sets of records are neighbours if one has one record more."
        several = (
            "The promise is made for each record. For a person with k records, the ρ below is k² "
            "times as large."
        )
    else:
        neighbours = (
            "Two sets of records are neighbours if one has one person more, with all records of "
            "that person."
        )
        several = (
            f"The promise holds as long as nobody has more than {plural(most, 'record')}. The "
            "program cannot check that: it does not know whose record is whose."
        )
    rows = {
        "Who is protected": (f"{capitalised(budget.unit)}.", several),
        "Neighbouring data": (neighbours,),
        "The promise": (
            f"ρ = {rounded(plan.rho, 6, 'up')} of zero-concentrated differential privacy (ρ-zCDP).",
            f"The budget was set as {_stated(plan)}; smaller is more private.",
        ),
        "What it covers": (
            "Everything that one run of this plan writes, taken together: all tables and the "
            "measurements they are made from.",
            "Every further run, of this or any other plan, on the same records adds its own ρ.",
        ),
        "Mechanism": (
            f"{mechanism(plan)}, a Gaussian mechanism for sets of tables. Whoever holds the "
            "records adds the noise (central model).",
        ),
        "Noise": (
            "Discrete Gaussian noise on whole numbers, drawn exactly from the operating system's "
            "source of randomness. There is no seed that could be known.",
        ),
        "Which plan": (
            f"SHA-256 {plan.sha256}, made by rpexplore {plan.version}. Author and date are not "
            "recorded: this report follows from the plan alone.",
        ),
    }
    return Facts(tuple(rows.items()))


def mechanism(plan: Plan) -> str:
    """The mechanism's name: that of marginals, or that of other aggregations as well."""
    return "ResidualPlanner" if plan.workload.is_marginals else "ResidualPlanner+"


def _stated(plan: Plan) -> str:
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


def _meaning(plan: Plan) -> list[str]:
    delta = plan.budget.stated_delta or DELTAS[1]
    one = "one record" if plan.budget.max_records_per_person is None else "one person"
    detected = max_true_positive_rate(plan.rho, float(FALSE_ALARMS))
    return [
        f"Whatever the tables show, the chance of it with {one} in the data is at most "
        f"{_factor(plan.epsilon(delta))} times the chance without, plus {small(delta)}; and the "
        "other way round. That holds for every such case, against anybody, whatever they know.",
        f"Somebody who tries to tell from the tables whether {one} was in the data, and is wrong "
        f"about {rounded(FALSE_ALARMS * 100)} % of those who were not, is right about at most "
        f"{rounded(100 * detected, 2, 'up')} % of those who were. Guessing gives "
        f"{rounded(FALSE_ALARMS * 100)} %.",
    ]


def _approximate(plan: Plan) -> list[str]:
    """What the intervals are worth."""
    sentences = ["The 95 % intervals: 1.96 standard errors to each side, as for normal noise."]
    best = plan.table_variances.standard_errors("best")
    coarse = int((best < COARSE).sum())
    if coarse:
        some = "cells of " if cells_differ(plan.table_variances) else ""
        sentences.append(
            f"Where the standard error is below {COARSE:g} ({some}{coarse:,} of "
            f"{plural(len(best), 'table')}), noise in whole steps makes 95 % a "
            "rough figure, and the true standard error may be smaller than stated."
        )
    return sentences


def _not_covered(plan: Plan) -> list[str]:
    names = describe_attributes_from_records(plan.workload.domain)
    sentences = []
    if names:
        sentences.append(
            f"That the values of {names} are listed: they were taken from the records. A rare "
            "value tells that somebody has it, one that is not listed that nobody has."
        )
    return [
        *sentences,
        "Errors the records have already: sampling, non-response, coverage, editing.",
        "What leaves the records by other ways: categories or tables chosen by looking at them, "
        "other publications, access to the records.",
        "What the tables teach about people in general.",
        "Later changes: rounded or non-negative tables are biased, and the intervals no longer "
        "hold.",
    ]
