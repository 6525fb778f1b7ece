"""What a report tells about the schema: the attributes, and all of their values."""

import numpy as np
import pandas as pd

from rpexplore.common.formatting import plural
from rpexplore.domain.attribute import Attribute, Bins, Categories, Integers
from rpexplore.domain.domain import Domain
from rpexplore.domain.provenance import describe_attributes_from_records
from rpexplore.export.report.section import Facts, Numbers, Section
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.planning.plan import Plan
from rpexplore.workload.bases import Basis
from rpexplore.workload.query_matrix import QueryMatrix, query_matrix
from rpexplore.workload.workload import Workload

FIRST_VALUES = 4
_EVEN = 0.01  # relative: what rounding the matrix may change of a uniform reference
MOST_VALUES = 5_000  # in the appendix, over all attributes


def schema(domain: Domain) -> Section:
    """The attributes, each with its values in short."""
    rows = [
        {
            "name": attribute.name,
            "label": attribute.label,
            "values": attribute.size,
            "listed": _values_in_short(attribute),
        }
        for attribute in domain.attributes
    ]
    columns = {"name": "attribute", "label": "label", "values": "values", "listed": "which"}
    if not any(attribute.label for attribute in domain.attributes):
        del columns["label"]
    names = describe_attributes_from_records(domain)
    return Section(
        "Schema",
        (
            f"The plan knows {plural(len(domain), 'attribute')} of a record. The promise takes "
            "these values to be public knowledge: what is taken from the records themselves is "
            "not protected. The appendix lists values that are cut short here.",
            *([f"Taken from the records were the values of {names}."] if names else []),
        ),
        (Numbers(pd.DataFrame(rows), columns),),
    )


def query_bases(plan: Plan) -> list[Section]:
    """The query bases of the attributes and how each is measured; nothing for marginals."""
    workload, strategies = plan.workload, plan.closure.strategies
    if workload.is_marginals:
        return []
    rows = []
    for index, bases in enumerate(workload.bases):
        attribute = workload.domain.attributes[index]
        for basis in bases:
            rows.append(
                {
                    "name": attribute.name,
                    "asked": basis.describe(attribute),
                    "questions": basis.n_rows(attribute),
                    "such": _first_and_last(query_matrix(basis, attribute)),
                    "tables": _tables_with_basis(workload, index, basis),
                    "measured": _measured(strategies.get(index)),
                }
            )
    columns = {
        "name": "attribute",
        "asked": "is asked by",
        "questions": "questions",
        "such": "from … to",
        "tables": "in tables",
        "measured": "and measured",
    }
    return [
        Section(
            "How attributes are asked",
            (
                "A table answers every combination of the questions about its attributes.",
                "What is measured of an attribute decides which questions are answered how "
                "accurately. It was chosen for the tables and the aim of this plan, from the "
                "schema alone. “Spread evenly” means that where nothing else is measured, a total "
                "is divided evenly over the values (classical ResidualPlanner+); “spread as suits "
                "the tables best” that it is divided by weights that were optimised as well. "
                "Neither makes any answer wrong on average.",
            ),
            (Numbers(pd.DataFrame(rows), columns),),
        )
    ]


def _tables_with_basis(workload: Workload, attribute_index: int, basis: Basis) -> int:
    """How many tables ask an attribute by this basis."""
    pair = workload.attribute_bases.index((attribute_index, basis))
    return int(np.count_nonzero(workload.attribute_basis_index == pair))


def _first_and_last(queries: QueryMatrix) -> str:
    first, last = queries.label(0), queries.label(queries.n_rows - 1)
    return first if queries.n_rows == 1 else f"{first} … {last}"


def _measured(strategy: Strategy | None) -> str:
    """How an attribute is measured, in words."""
    if strategy is None:
        return "value by value"
    # But for the rounding of the matrix, which is made of whole numbers.
    even = np.allclose(strategy.reference, 1 / strategy.size, rtol=_EVEN)
    how = "evenly" if even else "as suits the tables best"
    return f"by an optimised matrix; totals spread {how}"


def all_values(domain: Domain) -> Section:
    """The values of every attribute in full, as far as a document can hold them."""
    rows, left = [], MOST_VALUES
    for attribute in domain.attributes:
        texts, values = (), attribute.values
        if isinstance(values, Integers):
            texts = (_values_in_short(attribute),)
        elif attribute.size <= left:
            left -= attribute.size
            texts = ("; ".join(_values(attribute)),)
        else:
            texts = (
                f"{attribute.size:,} values, too many to list here; they are in codebook.json and "
                "in plan.json.",
            )
        rows.append((attribute.name, texts))
    return Section("Appendix: all values", (), (Facts(rows),), folded=True)


def _values(attribute: Attribute) -> list[str]:
    """Each value as it stands in the records, with its label where that says more."""
    values = attribute.values
    if not isinstance(values, Categories):
        return attribute.labels()
    return [
        value if label == value else f"{value} ({label})"
        for value, label in zip(values.values, values.labels, strict=True)
    ]


def _values_in_short(attribute: Attribute) -> str:
    values = attribute.values
    if isinstance(values, Integers):
        whole = f"whole numbers {values.minimum:,} to {values.maximum:,}"
        return whole if values.step == 1 else f"{whole}, in groups of {values.step:,}"
    if isinstance(values, Bins) and values.size > FIRST_VALUES:
        first, last = values.label(0), values.label(values.size - 1)
        return f"intervals from “{first}” up to “{last}”"
    labels = [values.label(index) for index in range(min(values.size, FIRST_VALUES))]
    if values.size > FIRST_VALUES:
        labels.append(f"and {values.size - FIRST_VALUES:,} more")
    return "; ".join(labels)
