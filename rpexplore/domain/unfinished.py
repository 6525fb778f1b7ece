"""Attributes of which only the name is known so far."""

from rpexplore.domain.attribute import Attribute, Categories
from rpexplore.domain.domain import Domain

# A single value stands in for those that are to come: an attribute of one value changes no plan.
TO_COMPLETE = Categories(("(to be completed)",))


def is_unfinished(attribute: Attribute) -> bool:
    """Whether the attribute still waits for its values."""
    return attribute.values == TO_COMPLETE


def unfinished(domain: Domain) -> list[str]:
    """The names of the attributes that still wait for their values."""
    return [attribute.name for attribute in domain if is_unfinished(attribute)]
