"""The evidence in a report: proof, checklist, budgets and methods beside it, codebook, glossary."""

import hashlib
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version

import numpy as np
import pandas as pd

from rpexplore.analysis.baselines import BASELINE_HEADINGS, compare, describe_missing
from rpexplore.analysis.budget_units import HIGH_EPSILON
from rpexplore.analysis.glossary import GLOSSARY
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain, describe_attributes_from_records, except_from_records
from rpexplore.domain.ordered_values import Bins, Dates, Integers
from rpexplore.domain.values import describe_combinations
from rpexplore.figures.chart import Column
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.planning.verification import Check
from rpexplore.privacy.deployments import deployments_near, describe_context
from rpexplore.reports.kinds import PlanWords, Words
from rpexplore.reports.section import Checklist, Facts, Numbers, Points, Section, template_blocks
from rpexplore.workload.table_text import query_matrix
from rpexplore.workload.workload import Workload

# ---- What a report gives as evidence: the certificate, what was recomputed, versions and hashes.


PRIVACY_ALONE = (
    "Proven is the guarantee, whatever is selected. Of the accuracy of its tables nothing is "
    "claimed before they are released."
)


def proof(words: Words, checks: Sequence[Check]) -> Section:
    """The certificate of a part in words and numbers, and what was recomputed."""
    certificate = getattr(words.part, "certificate", None)
    if certificate is None:
        sentences, parts = [PRIVACY_ALONE], []
    else:
        asked = PlanWords((words,)).asked
        sentences, *rows = template_blocks(
            "proof.txt.j2", plan=words.part, certificate=certificate, words=words, asked=asked
        )
        parts = [Facts(rows)]
    recomputed = Facts(
        [(f"✓ {check.name}", f"{check.finding}.") for check in checks],
        title="Recomputed for this report, from the plan alone (privacy cost: 2ρ)",
    )
    return Section("Proof", sentences, (*parts, recomputed))


def versions(plan: Plan | PartPlan, words: PlanWords) -> Section:
    """What made the plan and this report, and how to tell the plan from any other."""
    codebook = plan.domain.text("codebook.json")
    programs = [f"{name} {version(name)}" for name in ("rpexplore", "numpy", "scipy")]
    facts = template_blocks(
        "versions.txt.j2",
        plan=plan,
        kind=words,
        companions=", ".join(plan.companions),
        codebook_sha256=hashlib.sha256(codebook.encode()).hexdigest(),
        programs=[*programs, f"Python {platform.python_version()}"],
    )
    return Section("Versions and hashes", (), (Facts(facts),))


# ---- The points of NIST SP 800-226 as a checklist for one plan.
#
# NIST Special Publication 800-226, Guidelines for Evaluating Differential Privacy Guarantees (March
# 2025), orders what a guarantee rests on as a pyramid: the parameters and the unit of privacy on
# top, algorithms with their utility and bias in the middle, trust, side channels, access control
# and data collection at the bottom. The points in templates/nist_checklist.txt.j2 follow that order
# in this project's own words.


SUSPICIOUS_DELTA = "1e-5"


def nist_checklist(plan: Plan | PartPlan, record_noun: str) -> Section:
    """What this plan settles of each point, and what the organisation still has to do."""
    domain = plan.domain
    (heading, introduction), *points = template_blocks(
        "nist_checklist.txt.j2",
        plan=plan,
        budget=plan.budget,
        most=plan.budget.max_records_per_person,
        delta=SUSPICIOUS_DELTA,
        epsilon=plan.epsilon(SUSPICIOUS_DELTA),
        high_epsilon=HIGH_EPSILON,
        kind=PlanWords.of(plan),
        record_noun=record_noun,
        from_records=describe_attributes_from_records(domain),
        exception=except_from_records(domain),
    )
    return Section(heading, (introduction,), (Checklist(points),))


# ---- The section that puts a plan's budget beside those of published releases.


COLUMNS = {
    "product": Column("release", "text"),
    "curators": Column("by", "text"),
    "year": Column("year", "text"),
    "stated": Column("stated", "text"),
    "privacy_unit": Column("privacy unit", "text"),
    "neighbours": Column("neighbours", "text"),
    "rho": Column("put at ρ"),
    "derivation": Column("because", "text"),
    "ratio": Column("over this plan's ρ"),
}


def context(plan: Plan | PartPlan) -> Section:
    """The published releases nearest to a plan's budget, and what can be compared."""
    frame = deployments_near(plan.budget).astype({"year": str})
    return Section(
        "Budget in context",
        describe_context(plan.budget),
        (Numbers(frame, COLUMNS, "Published releases with a similar budget"),),
    )


# ---- What a report tells of plainer mechanisms: what they would need for the errors of the plan.


def baselines_section(plan: TablePlan) -> Section:
    """Sentences, and one row a mechanism that there is for the plan's tables."""
    comparison = compare(plan)
    columns = {name: Column(heading, "text") for name, heading in BASELINE_HEADINGS.items()}
    return Section(
        "Baselines",
        (
            "Other mechanisms for the same tables, compared with this plan by its objective. All "
            "figures are computed; none of them was run.",
        ),
        (
            Points(comparison.sentences),
            Numbers(
                comparison.frame(missing=False),
                columns,
                "Privacy cost for the same errors",
                describe_missing(comparison),
            ),
        ),
    )


# ---- What a report tells about the codebook: attributes, aggregations, and all values.


FIRST_VALUES = 4
MOST_VALUES = 5_000  # in the appendix, over all attributes
_EVEN = 0.01  # relative: what rounding the matrix may change of a uniform reference


def codebook(domain: Domain) -> Section:
    """The attributes, each with its values in short."""
    frame = pd.DataFrame(
        {
            "attribute": [attribute.name for attribute in domain],
            "label": [attribute.label for attribute in domain],
            "values": [attribute.size for attribute in domain],
            "which": [_values_in_short(attribute) for attribute in domain],
        }
    )
    if not any(attribute.label for attribute in domain):
        del frame["label"]
    (sentences,) = template_blocks(
        "codebook.txt.j2",
        n_attributes=len(domain),
        from_records=describe_attributes_from_records(domain),
        impossible=describe_combinations(domain.impossible) if domain.impossible else "",
    )
    return Section("Codebook", sentences, (Numbers(frame),))


def aggregations(workload: Workload, strategies: Mapping[int, Strategy]) -> list[Section]:
    """The query bases of the attributes and how each is measured; nothing for marginals."""
    if workload.is_marginals:
        return []
    rows = []
    for pair, (attribute_index, basis) in enumerate(workload.attribute_bases):
        attribute = workload.domain.attributes[attribute_index]
        queries = query_matrix(basis, attribute)
        labels = dict.fromkeys([queries.label(0), queries.label(queries.n_rows - 1)])
        rows.append(
            {
                "attribute": attribute.name,
                "aggregation": basis.describe(attribute),
                "queries": queries.n_rows,
                "from … to": " … ".join(labels),
                "tables": np.count_nonzero(workload.attribute_basis_index == pair),
                "measured": _measured(strategies.get(attribute_index)),
            }
        )
    (sentences,) = template_blocks("aggregation.txt.j2")
    return [Section("Aggregation", sentences, (Numbers(pd.DataFrame(rows)),))]


def _measured(strategy: Strategy | None) -> str:
    """How an attribute is measured."""
    if strategy is None:
        return "value by value"
    # But for the rounding of the matrix, which is made of whole numbers.
    uniform = np.allclose(strategy.reference, 1 / strategy.size, rtol=_EVEN)
    measured = "optimised matrix"
    if strategy.of_residuals:
        measured = "optimised matrices, for each set of attributes its own"
    return f"{measured}; totals spread {'evenly' if uniform else 'by optimised weights'}"


def all_values(domain: Domain) -> Section:
    """The values of every attribute in full, as far as a document can hold them."""
    rows, left = [], MOST_VALUES
    for attribute in domain:
        values = attribute.values
        is_range = isinstance(values, Integers | Amounts)
        if is_range or (isinstance(values, Dates) and values.steps):
            text = _values_in_short(attribute)
        elif attribute.size <= left:
            left -= attribute.size
            pairs = zip(attribute.stored_values(), attribute.labels(), strict=True)
            text = "; ".join(
                value if label == value else f"{value} ({label})" for value, label in pairs
            )
        else:
            text = (
                f"{attribute.size:,} values, too many to list here; they are in codebook.json and "
                "in plan.json."
            )
        rows.append((attribute.name, text))
    return Section("Appendix: all values", (), (Facts(rows),), folded=True)


def _values_in_short(attribute: Attribute) -> str:
    values = attribute.values
    if isinstance(values, Integers):
        text = f"whole numbers {values.minimum:,} to {values.maximum:,}"
        text += f", in groups of {values.step:,}" if values.step > 1 else ""
        return "; ".join([text, *values.missing_labels])
    if isinstance(values, Dates) and values.steps:
        text = f"days {values.first} to {values.last}"
        text += f", by {values.step}" if values.step != "day" else ""
        return "; ".join([text, *values.missing_labels])
    if isinstance(values, Bins | Dates) and values.size > FIRST_VALUES:
        text = f"intervals from “{values.label(0)}” up to “{values.label(values.n_ordered - 1)}”"
        return "; ".join([text, *values.missing_labels])
    if isinstance(values, Amounts):
        return values.description
    labels = attribute.labels(FIRST_VALUES)
    if values.size > FIRST_VALUES:
        labels.append(f"and {values.size - FIRST_VALUES:,} more")
    return "; ".join(labels)


# ---- The last page of a report: what its terms mean.


def glossary() -> Section:
    """Every term of the app and of reports."""
    lists = [Facts(tuple(terms.items()), title=group) for group, terms in GLOSSARY.items()]
    return Section("Glossary", (), lists)
