"""The attributes of a list of queries, and changes to a stated one: more queries, as the schema is.

None of these changes the list it is given; each returns another one.
"""

import math
from collections.abc import Iterable

import numpy as np

from rpexplore.common.exact_numbers import shown
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.queries.condition_tokens import NAME, tokens_of
from rpexplore.queries.condition_writer import condition_of_cells
from rpexplore.queries.conditions import attributes_of_condition, cells_of_condition
from rpexplore.queries.definitions import StatedQueries, conditions_of_text
from rpexplore.queries.query_list import MAX_CELLS, QueryList, check_list_size, checked_n_cells
from rpexplore.workload.targets import Target

_MOST_SHOWN = 4


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


def with_queries(stated: StatedQueries | None, added: QueryList, target: Target) -> StatedQueries:
    """The list with further queries behind it, all with this target.

    What counts the same cells as a query of the list is left out; a name that is taken gets a
    number behind it. Raises `WorkloadError` if nothing is left to add, or for too many queries.
    """
    present = set() if stated is None else {row.tobytes() for row in stated.queries.coefficients}
    new = [place for place, row in enumerate(added.coefficients) if row.tobytes() not in present]
    if not new:
        raise WorkloadError("The list has all of these queries already; add others.")
    taken = set() if stated is None else set(stated.queries.names)
    names = []
    for place in new:
        names.append(_free(added.names[place], taken))
        taken.add(names[-1])
    targets, rows = (target,) * len(new), added.coefficients[new]
    conditions: tuple[str | None, ...] = (None,) * len(new)
    if stated is not None:
        check_list_size(len(stated) + len(new), stated.queries.n_cells)
        targets, conditions = stated.targets + targets, stated.conditions + conditions
        names, rows = (
            [*stated.queries.names, *names],
            np.vstack([stated.queries.coefficients, rows]),
        )
    errors = np.array([each.standard_error for each in targets])
    return StatedQueries(QueryList(added.domain, rows, tuple(names), errors), conditions, targets)


def about_attributes(stated: StatedQueries, domain: Domain) -> StatedQueries:
    """The same queries over the cells of another domain, whose common attributes are the same.

    Raises `WorkloadError` for a query that needs an attribute the domain does not have, and for too
    many cells.
    """
    old, cells = stated.queries.domain, stated.queries.coefficients
    check_list_size(len(stated), checked_n_cells(domain))
    table = cells.reshape(len(stated), *old.sizes.tolist())
    for axis, attribute in reversed(list(enumerate(old, start=1))):
        if attribute.name in domain:
            continue
        differing = np.any(table != np.take(table, [0], axis), axis=tuple(range(1, table.ndim)))
        if differing.any():
            query = stated.queries.names[int(np.argmax(differing))]
            raise WorkloadError(
                f"The query {shown(query)!r} is about the attribute {attribute.name!r}, which "
                "cannot be left out then; change or remove the query first."
            )
        table = np.take(table, 0, axis)
    kept = [attribute.name for attribute in old if attribute.name in domain]
    # The axes in the new order, those of new attributes with length 1.
    table = np.transpose(table, [0, *(1 + kept.index(n) for n in domain.names if n in kept)])
    sizes = [each.size if each.name in kept else 1 for each in domain]
    wide = np.broadcast_to(table.reshape(len(stated), *sizes), (len(stated), *domain.sizes))
    queries = QueryList(
        domain, wide.reshape(len(stated), -1), stated.queries.names, stated.queries.targets
    )
    rows = zip(stated.conditions, queries.coefficients, strict=True)
    conditions = tuple(each if _counts(domain, each, row) else None for each, row in rows)
    return StatedQueries(queries, conditions, stated.targets)


def domain_of_text(schema: Domain, text: str, chosen: Domain | None) -> Domain:
    """The domain of a typed list: the chosen attributes, and those of the schema that it names.

    chosen: None for none. Lines that cannot be taken apart name nothing; reading them tells why.

    Raises `WorkloadError` for no attribute or too many cells.
    """
    if chosen is not None and not are_of_schema(chosen, schema):
        return chosen
    named = set() if chosen is None else set(chosen.names)
    for line in text.split("\n"):
        try:
            tokens = [token for each in conditions_of_text(line) for token in tokens_of(each)]
        except RpexploreError:
            continue
        named.update(str(token.meaning) for token in tokens if token.kind == NAME)
    about = [name for name in schema.names if name in named]
    if not about:
        raise WorkloadError(
            "None of the lines names an attribute of the schema; choose what the queries are "
            "about, or compare an attribute with a value, as in age >= 18."
        )
    return chosen_domain(schema, about)


def are_of_schema(domain: Domain, schema: Domain) -> bool:
    """Whether the schema has all attributes of the domain, with the same values."""
    return not differences_from_schema(domain, schema)


def differences_from_schema(domain: Domain, schema: Domain) -> list[str]:
    """A sentence for each kind of attribute that the schema does not have as the queries do."""
    missing = [attribute.name for attribute in domain if attribute.name not in schema]
    changed = [
        attribute
        for attribute in domain
        if attribute.name in schema and attribute.values != schema[attribute.name].values
    ]
    sentences = []
    if missing:
        sentences.append(f"The schema has no attribute {_listed(missing)}.")
    sentences.extend(_change(attribute, schema[attribute.name]) for attribute in changed)
    return sentences


def example_text(domain: Domain) -> str:
    """Two lines that could be typed, to show how they are written."""
    everybody = np.ones(checked_n_cells(domain), dtype=bool)
    some = everybody & (np.arange(len(everybody)) < len(everybody) // domain.attributes[0].size)
    named = {"everybody": (everybody, 50), "some of them": (some, 30)}
    lines = [
        f"{name}: {condition} ± {target}"
        for name, (cells, target) in named.items()
        if (condition := condition_of_cells(domain, cells)) is not None
    ]
    return "\n".join(lines if not some.all() else lines[:1])


def _change(attribute: Attribute, now: Attribute) -> str:
    """What is different of an attribute in the schema now."""
    theirs, ours = attribute.labels(), now.labels()
    gone = [label for label in theirs if label not in ours]
    if gone:
        return f"In the schema {attribute.name!r} no longer has {_listed(gone)}."
    new = [label for label in ours if label not in theirs]
    if new:
        return f"In the schema {attribute.name!r} has values that are new: {_listed(new)}."
    return f"In the schema the values of {attribute.name!r} are described otherwise."


def _counts(domain: Domain, condition: str | None, row: np.ndarray) -> bool:
    """Whether a condition can still be read, and counts these cells."""
    try:
        return condition is not None and bool(
            np.array_equal(cells_of_condition(domain, condition), row)
        )
    except RpexploreError:
        return False


def _listed(names: list[str]) -> str:
    shown_names = ", ".join(repr(shown(name)) for name in names[:_MOST_SHOWN])
    more = len(names) - _MOST_SHOWN
    return shown_names + (f" and {more:,} more" if more > 0 else "")


def _free(name: str, taken: set[str]) -> str:
    found, number = name, 2
    while found in taken:
        found, number = f"{name} ({number})", number + 1
    return found
