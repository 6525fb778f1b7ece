"""Subtotals of a released table: which cells are added up, and what they come to, in words."""

from collections.abc import Mapping, Sequence

from rpexplore.common.formatting import joined, rounded
from rpexplore.domain.attribute import Attribute, Categories
from rpexplore.domain.domain import Domain
from rpexplore.planning.accuracy_frame import Z_95


def vector_of(attribute: Attribute, values: Sequence[int]) -> list[float]:
    """1 at these values and 0 elsewhere: their sum; none: that of all."""
    wanted = set(values) or range(attribute.size)
    return [float(value in wanted) for value in range(attribute.size)]


def describe_sum(
    domain: Domain,
    chosen: Mapping[str, Sequence[int]],
    value: float,
    error: float,
    record_noun: str,
) -> str:
    """ "people with age 18 to 24 and sex Female: 1,234 ±56, 95 % of the time (σ = 28.6)"."""
    parts = [_sum_of(domain[name], values) for name, values in chosen.items()]
    limits = joined([part for part in parts if part])
    who = f"{record_noun} with {limits}" if limits else f"{record_noun} in all"
    margin = rounded(Z_95 * error, 3)
    return f"{who}: {value:,.0f} ±{margin}, 95 % of the time (σ = {rounded(error, 3)})"


def _sum_of(attribute: Attribute, values: Sequence[int]) -> str:
    """ "age 18 to 24", "region Northshore or Eastport"; "" for all values."""
    if len(values) in (0, attribute.size):
        return ""
    if not isinstance(attribute.values, Categories):
        return f"{attribute.name} {attribute.values.range_label(values[0], values[-1])}"
    labels = [attribute.values.label(value) for value in values]
    return f"{attribute.name} " + joined(labels, " or ")
