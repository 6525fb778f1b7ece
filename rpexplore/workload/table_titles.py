"""What to call tables whose attributes are asked in certain ways: "age (cumulative) × sex"."""

import numpy as np

from rpexplore.domain.attribute import Attribute
from rpexplore.workload.bases import Basis, CustomBasis, Hierarchy, Identity, Prefix, Windows
from rpexplore.workload.table_text import title
from rpexplore.workload.workload import Workload


def titles(workload: Workload, places: np.ndarray) -> list[str]:
    """What to call the tables at these places."""
    names = workload.domain.names
    rows = workload.members[places].tolist()
    if workload.is_marginals:
        return [title(tuple(names[i] for i in row if i >= 0)) for row in rows]
    asked = [
        name_as_asked(names[place], basis, workload.domain.attributes[place])
        for place, basis in workload.attribute_bases
    ]
    return [
        title(tuple(asked[question] for question in row if question >= 0))
        for row in workload.attribute_basis_index[places].tolist()
    ]


def name_as_asked(name: str, basis: Basis, attribute: Attribute) -> str:
    """ "sex", "age (cumulative)", "region (groups)"."""
    words = in_short(basis, attribute)
    return f"{name} ({words})" if words else name


def in_short(basis: Basis, attribute: Attribute) -> str:
    """How an attribute is asked, for a title; "" if by its single values."""
    match basis:
        case Identity():
            return ""
        case Prefix():
            return "cumulative"
        case Windows():
            if basis.width >= attribute.size:
                return "cumulative"
            return f"rolling sums of {basis.width:,}"
        case Hierarchy():
            return f"groups of {_widths(basis)}" if basis.widths else "groups"
        case CustomBasis():
            return basis.name or "own questions"
    return "ranges"


def _widths(basis: Hierarchy) -> str:
    return _listed([f"{width:,}" for width in basis.widths])


def _listed(parts: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
