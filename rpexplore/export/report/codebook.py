"""What a report tells about the codebook: attributes, aggregations, and all values."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from rpexplore.domain.attribute import Attribute, Bins, Integers
from rpexplore.domain.domain import Domain
from rpexplore.domain.impossible import describe_combinations
from rpexplore.domain.provenance import describe_attributes_from_records
from rpexplore.export.report.section import Facts, Numbers, Section, template_blocks
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.workload.query_matrix import query_matrix
from rpexplore.workload.workload import Workload

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
    return f"optimised matrix; totals spread {'evenly' if uniform else 'by optimised weights'}"


def all_values(domain: Domain) -> Section:
    """The values of every attribute in full, as far as a document can hold them."""
    rows, left = [], MOST_VALUES
    for attribute in domain:
        if isinstance(attribute.values, Integers):
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
        whole = f"whole numbers {values.minimum:,} to {values.maximum:,}"
        return whole if values.step == 1 else f"{whole}, in groups of {values.step:,}"
    if isinstance(values, Bins) and values.size > FIRST_VALUES:
        return f"intervals from “{values.label(0)}” up to “{values.label(values.size - 1)}”"
    labels = attribute.labels(FIRST_VALUES)
    if values.size > FIRST_VALUES:
        labels.append(f"and {values.size - FIRST_VALUES:,} more")
    return "; ".join(labels)
