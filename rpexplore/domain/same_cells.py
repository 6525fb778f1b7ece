"""Whether tables of two domains count the same, whatever values are called."""

from rpexplore.common.exact_numbers import shown_few
from rpexplore.domain.attribute import Attribute, Categories
from rpexplore.domain.domain import Domain


def difference_of_cells(left: Domain, right: Domain) -> str:
    """The difference of two domains, "have different attributes (…)"; "" if cells count the same.

    They do if both have the same attributes with the same values, in the same order.
    """
    if left.names != right.names:
        return f"have different attributes ({shown_few(left.names)}; {shown_few(right.names)})"
    for left_attribute, right_attribute in zip(left, right, strict=True):
        if _values(left_attribute) != _values(right_attribute):
            return (
                f"have different values of {left_attribute.name!r}, so that their cells do not "
                "count the same"
            )
    return ""


def _values(attribute: Attribute) -> object:
    values = attribute.values
    return values.values if isinstance(values, Categories) else values
