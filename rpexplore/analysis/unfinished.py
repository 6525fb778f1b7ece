"""Attributes of which only the name is known so far, and those whose values came from records."""

from rpexplore.attribute import Attribute, Categories
from rpexplore.domain import Domain

# A single value stands in for those that are to come: an attribute of one value changes no plan.
TO_COMPLETE = Categories(("(to be completed)",))

FOUND_IN_RECORDS = "values found in the records"  # a label, so that every file and report says it


def is_unfinished(attribute: Attribute) -> bool:
    """Whether the attribute still waits for its values."""
    return attribute.values == TO_COMPLETE


def unfinished(domain: Domain) -> list[str]:
    """The names of the attributes that still wait for their values."""
    return [attribute.name for attribute in domain if is_unfinished(attribute)]


def found_in_records(domain: Domain) -> list[str]:
    """The names of the attributes whose labels say that their values came from records."""
    return [attribute.name for attribute in domain if FOUND_IN_RECORDS in attribute.label]
