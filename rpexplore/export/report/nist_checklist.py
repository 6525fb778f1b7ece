"""The points of NIST SP 800-226 as a checklist for one plan.

NIST Special Publication 800-226, Guidelines for Evaluating Differential Privacy Guarantees (March
2025), orders what a guarantee rests on as a pyramid: the parameters and the unit of privacy on
top, algorithms with their utility and bias in the middle, trust, side channels, access control and
data collection at the bottom. The points below follow that order in this project's own words.
"""

from rpexplore.analysis.accuracy import headline
from rpexplore.analysis.budget_units import HIGH_EPSILON
from rpexplore.common.formatting import plural, rounded, small
from rpexplore.domain.provenance import describe_attributes_from_records, except_from_records
from rpexplore.export.report.privacy_label import mechanism
from rpexplore.export.report.section import Checklist, Section
from rpexplore.planning.plan import Plan

SUSPICIOUS_DELTA = "1e-5"


Row = tuple[str, str, str]  # point, what the plan settles, what is left to do


def nist_checklist(plan: Plan, record_noun: str) -> Section:
    """What this plan settles of each point, and what the organisation still has to do."""
    rows = (
        _parameters(plan),
        _unit(plan),
        *_SEVERAL_RELEASES,
        *_algorithm(plan),
        *_use(plan, record_noun),
        *_deployment(plan),
    )
    return Section(
        "Checklist: the points of NIST SP 800-226",
        (
            "The guidelines of the US National Institute of Standards and Technology name what a "
            "claim of differential privacy rests on. For each point: what this plan settles, and "
            "what is left to the organisation that runs it. A box is ticked by people, not by a "
            "program.",
        ),
        (Checklist(rows),),
    )


def _parameters(plan: Plan) -> Row:
    delta, epsilon = plan.budget.stated_delta, plan.epsilon(SUSPICIOUS_DELTA)
    stated = "" if delta is None else f" (the budget states δ = {small(delta)})"
    todo = (
        "Decide whether this is enough, and write down why. Publish ρ and the unit, and with any "
        f"ε its δ; δ should be far below one in the number of records{stated}."
    )
    if epsilon > HIGH_EPSILON:
        todo += f" With ε above {HIGH_EPSILON}, hardly anything is promised to a single case."
    return (
        "Privacy parameters",
        f"ρ = {rounded(plan.rho, 6, 'up')} is stated as it was planned, with ε at several δ "
        f"derived from it and rounded up (ε = {rounded(epsilon, 4, 'up')} at "
        f"δ = {SUSPICIOUS_DELTA}). No smaller figure from another variant is claimed.",
        todo,
    )


def _unit(plan: Plan) -> Row:
    most = plan.budget.max_records_per_person
    if most is None:
        return (
            "Unit of privacy",
            "Protected is one record. Adding or removing it is what neighbours differ by "
            "(unbounded), so the number of records is protected, too.",
            "Make sure that a person has one record, or accept that people with k records are "
            "protected by k² times this ρ; otherwise plan for a person with at most m records.",
        )
    return (
        "Unit of privacy",
        f"Protected is {plan.budget.unit}, with all of them together. Adding or removing a person "
        "is what neighbours differ by (unbounded), so the number of people is protected, too.",
        f"Make sure that nobody has more than {plural(most, 'record')} before the run, by a rule "
        "that does not itself give away who has.",
    )


_SEVERAL_RELEASES: list[Row] = [
    (
        "Budget over several releases",
        "Every run is booked in a ledger before its noise is drawn, and stays charged if it is "
        "stopped. Costs add up exactly. A budget limit can be set, and a run beyond it is refused.",
        "Set the budget limit for these records, keep one ledger and one copy of them, and count "
        "releases made by other means.",
    ),
    (
        "Mixing with other releases",
        "The tables are made from the noisy measurements only; no exact figure is kept.",
        "List what else was published from these records without noise, exact totals included, "
        "and do not adjust the noisy tables to it with the help of the records.",
    ),
]


def _algorithm(plan: Plan) -> list[Row]:
    if plan.workload.is_marginals:
        source = "Xiao, He, Zhang, Kifer, NeurIPS 2023"
        sensitivity = (
            "Counts only: a record changes one cell of each table by one. What is measured are "
            "whole numbers"
        )
    else:
        source = "He, Xiao, Toksoz, Ding, Zhang, Kifer, VLDB Journal"
        sensitivity = (
            "Counts only: a record changes one count of single values by one, and each answer is a "
            "sum of such counts. What is measured are whole numbers, by matrices of whole numbers"
        )
    confirm = (
        "the codebook, the tables, the weights and the targets come from public knowledge or "
        "needs, and not from the records."
    )
    names = describe_attributes_from_records(plan.workload.domain)
    if names:
        confirm = (
            f"Take the values of {names} from a public list instead, or decide, and write down, "
            f"that they may be known. Confirm that all else in {confirm}"
        )
    else:
        confirm = f"Confirm that {confirm}"
    return [
        (
            "Mechanism and its correctness",
            f"{mechanism(plan)} ({source}), open source, tested against published results and "
            "other libraries. Privacy cost and accuracy of this plan were recomputed for this "
            "report; “rpexplore verify” repeats that anywhere.",
            "Have somebody verify plan.json on another machine, and keep its SHA-256 with the "
            "approval.",
        ),
        (
            "Sensitivity",
            f"{sensitivity}, so their sensitivity is exact; nothing has to be clipped.",
            "None, as long as each row of the data is one record.",
        ),
        (
            "Floating point and randomness",
            "Noise is discrete Gaussian on whole numbers, from the operating system's randomness. "
            "Where floating-point numbers are too coarse to decide, exact arithmetic does: no "
            "probability is rounded.",
            "Run it on a machine whose operating system you trust, and never publish several "
            "runs of which only one was meant.",
        ),
        (
            "Choices that depend on data",
            "Attributes, values, tables and noise are fixed in the plan before the records are "
            f"read{except_from_records(plan.workload.domain)}. A value that is not in the codebook "
            "is refused, or counted where you say.",
            confirm,
        ),
    ]


def _use(plan: Plan, record_noun: str) -> list[Row]:
    top = headline(plan)
    if top.cells_differ:
        worst, noise = top.worst_text, "The noise of a cell does not depend on its count"
    else:
        worst = "of the least accurate one"
        noise = "Every cell of a table gets noise of the same size"
    return [
        (
            "Utility",
            f"The accuracy of every table is known before the run: {top.median_text} is "
            f"within ±{rounded(top.median_margin)} {record_noun} 95 % of the time, {worst} within "
            f"±{rounded(top.worst_margin)}. The plan is proven to be the best for its objective, "
            "up to the gap given with it.",
            "Compare these figures with the counts you expect, and decide which tables are worth "
            "publishing. Publish the standard errors with the tables.",
        ),
        (
            "Systemic bias",
            f"{noise}, so small groups have the larger relative error.",
            "Look at the tables of small groups and at the least accurate tables; give them more "
            "weight or a target, or coarser categories.",
        ),
        (
            "Human bias",
            "Noisy counts can be negative and are not whole numbers. They are published as they "
            "are, each with its interval, and larger tables add up to smaller ones.",
            "Explain that to readers, rather than repairing figures by hand.",
        ),
        (
            "Statistical bias",
            "None is added: noisy counts are right on average.",
            "If counts are rounded or negative ones removed afterwards, say so; the intervals "
            "then no longer hold.",
        ),
    ]


def _deployment(plan: Plan) -> list[Row]:
    return [
        (
            "Query model",
            "A data release: all tables are named in advance, measured once, and nobody can ask "
            "for more.",
            "Put the records away, or lock them up, after the run.",
        ),
        (
            "Trust model",
            "Central: whoever runs the release sees the records, everybody else sees noisy tables "
            "only. Planning, this report included, was done without the records"
            f"{except_from_records(plan.workload.domain)}.",
            "Name who holds the records and runs the release, and why they can be trusted with it.",
        ),
        (
            "Side channels",
            "The run is not interactive. Error messages that go into files name no values of "
            "records. The time a run takes is not hidden.",
            "Do not publish how long the run took, its screen output, or what failed attempts "
            "said.",
        ),
        (
            "Data security and access control",
            "The program works on one machine and sends nothing anywhere. It protects neither the "
            "records nor the machine.",
            "Control access to records, backups and the ledger; a leak of the records undoes any "
            "guarantee for those in it.",
        ),
        (
            "Exposure by data collection",
            "Only the columns of the attributes that tables use are read.",
            "Collect no more than is needed, and delete what is not needed any more: noise in "
            "publications does not protect what lies in a database.",
        ),
    ]
