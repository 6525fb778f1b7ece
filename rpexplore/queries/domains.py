"""The domain of a list of queries: a few attributes of a larger schema, chosen or named."""

import math
from collections.abc import Iterable

from rpexplore.domain.domain import Domain
from rpexplore.queries.conditions import attributes_of_condition
from rpexplore.queries.query_list import MAX_CELLS, checked_n_cells


def choosable(domain: Domain, chosen: Iterable[str] = ()) -> tuple[str, ...]:
    """The attributes that queries can be about beside the chosen ones, in domain order.

    Raises `DomainError` for a chosen attribute that the domain does not have.
    """
    places = domain.positions(chosen)
    cells = math.prod(domain.attributes[place].size for place in places)
    return tuple(
        attribute.name
        for place, attribute in enumerate(domain)
        if place not in places and cells * attribute.size <= MAX_CELLS
    )


def chosen_domain(domain: Domain, names: Iterable[str]) -> Domain:
    """The domain of just these attributes, in domain order.

    Raises `WorkloadError` if there are none, or too many cells for a list of queries, `DomainError`
    for an attribute that is unknown or named twice.
    """
    chosen = Domain(tuple(domain.attributes[place] for place in domain.positions(names)))
    checked_n_cells(chosen)
    return chosen


def domain_of_conditions(domain: Domain, conditions: Iterable[str]) -> Domain:
    """The domain of just the attributes that any of the conditions names.

    Raises `WorkloadError` as `chosen_domain` does, and for a name that is no attribute's.
    """
    named = {
        name for condition in conditions for name in attributes_of_condition(domain, condition)
    }
    return chosen_domain(domain, named)
