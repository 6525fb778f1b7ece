"""What to call tables with the bases of their attributes: "age (cumulative) × sex"."""

import numpy as np

from rpexplore.domain.attribute import Attribute
from rpexplore.workload.bases import Basis
from rpexplore.workload.table_text import title
from rpexplore.workload.workload import Workload


def titles(workload: Workload, tables: np.ndarray) -> list[str]:
    """What to call the tables at these indices, int64[n]."""
    attribute_titles = [
        attribute_title(workload.domain.attributes[index], basis)
        for index, basis in workload.attribute_bases
    ]
    return [
        title(tuple(attribute_titles[index] for index in row if index >= 0))
        for row in workload.attribute_basis_index[tables].tolist()
    ]


def title_of(workload: Workload, table: int) -> str:
    """What to call the table at this index."""
    return titles(workload, np.array([table]))[0]


def attribute_title(attribute: Attribute, basis: Basis) -> str:
    """ "sex", "age (cumulative)", "region (hierarchy)"."""
    suffix = basis.suffix(attribute)
    return f"{attribute.name} ({suffix})" if suffix else attribute.name
