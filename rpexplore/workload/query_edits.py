"""The attributes of a list of queries, as the codebook has them, and more queries for a list.

None of these changes the list it is given; each returns another one.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress

import numpy as np

from rpexplore.common.numbers import shown, shown_few
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.workload.conditions import (
    MAX_LENGTH,
    TOTAL,
    attributes_of_condition,
    condition_of_values,
)
from rpexplore.workload.counts_by import names_in_condition, split_by
from rpexplore.workload.own_sums import checked_measure, split_definition
from rpexplore.workload.query_definitions import (
    Line,
    StatedQueries,
    conditions_of_text,
    row_of_definition,
    stated_from_lines,
)
from rpexplore.workload.query_list import (
    MAX_CELLS,
    MOST_CELLS,
    QueryList,
    check_attributes,
    check_list_size,
    checked_n_cells,
    free_name,
)


def chosen_domain(domain: Domain, names: Iterable[str]) -> Domain:
    """The domain of just these attributes, in domain order.

    Raises `WorkloadError` if there are none, `DomainError` for an attribute that is unknown or
    named twice.
    """
    chosen = Domain(tuple(domain.attributes[index] for index in domain.positions(names)))
    check_attributes(chosen)
    return chosen


def domain_of_conditions(domain: Domain, conditions: Iterable[str]) -> Domain:
    """The domain of just the attributes that any of the conditions names; of one if none does.

    Raises `WorkloadError` for a name that is no attribute's.
    """
    names = set[str]()
    for text in conditions:
        definition, by = split_by(domain, text)
        measure, condition = split_definition(definition)
        names.update(() if measure is None else checked_measure(domain, measure).names)
        names.update(attributes_of_condition(domain, condition))
        names.update(each.attribute.name for each in by)
    return chosen_domain(domain, names or _fewest_values(domain))


def _fewest_values(domain: Domain) -> list[str]:
    """The attribute by which a total alone is counted: that with the fewest cells, if any."""
    counted = [one for index, one in enumerate(domain) if index not in domain.amounts]
    smallest = min(counted, key=lambda attribute: attribute.size, default=None)
    return [] if smallest is None else [smallest.name]


def with_queries(stated: StatedQueries | None, added: StatedQueries) -> StatedQueries:
    """The list with further queries behind it, about the attributes of both.

    What counts the same cells as a query of the list is left out; a name that is taken gets a
    number behind it. Raises `WorkloadError` if nothing is left to add, for too many queries or
    cells, and for attributes that are not the same in both.
    """
    if stated is None:
        return added
    # The attributes of the first domain, then those that only the second has.
    some, others = stated.queries.domain, added.queries.domain
    for attribute in others:
        if attribute.name in some and attribute.values != some[attribute.name].values:
            raise WorkloadError(
                f"The attribute {attribute.name!r} has other values in the list than in these "
                "counts; start a list from them instead."
            )
    domain = Domain((*some, *(attribute for attribute in others if attribute.name not in some)))
    all_conditions = *stated.all_conditions, *added.all_conditions
    if math.prod(domain.sizes.tolist()) > MAX_CELLS and None not in all_conditions:
        return _joined(stated, added, domain)
    stated, added = about_attributes(stated, domain), about_attributes(added, domain)
    before, rows = stated.queries.cell_coefficients, added.queries.cell_coefficients
    known = {row.tobytes() for row in before}
    new = [query for query, row in enumerate(rows) if row.tobytes() not in known]
    if not new:
        raise WorkloadError("The list has all of these counts already; add others.")
    check_list_size(len(stated) + len(new), domain.n_cells, given=True)
    names = dict.fromkeys(stated.queries.names)
    for query in new:
        names[free_name(added.queries.names[query], names)] = None
    targets = (*stated.targets, *(added.targets[query] for query in new))
    queries = QueryList.of_cells(
        domain,
        np.vstack([before, rows[new]]),
        tuple(names),
        [target.standard_error for target in targets],
    )
    conditions = (*stated.conditions, *(added.conditions[query] for query in new))
    return StatedQueries(queries, conditions, targets)


def _joined(stated: StatedQueries, added: StatedQueries, domain: Domain) -> StatedQueries:
    """`with_queries` for too many cells for coefficients: by what the conditions tell apart."""
    lines = [*_lines_of(stated), *_lines_of(added)]
    names = dict.fromkeys(stated.queries.names)
    for place, (_, name, condition, target) in enumerate(lines[len(stated) :], len(stated)):
        own = free_name(name, names)
        names[own] = None
        lines[place] = "", own, condition, target
    joint = stated_from_lines(domain, lines)
    rows = [row.tobytes() for row in joint.queries.coefficients]
    known = set(rows[: len(stated)])
    kept = [
        line
        for place, (line, row) in enumerate(zip(lines, rows, strict=True))
        if place < len(stated) or row not in known
    ]
    if len(kept) == len(stated):
        raise WorkloadError("The list has all of these counts already; add others.")
    return stated_from_lines(domain, kept) if len(kept) < len(lines) else joint


def _lines_of(stated: StatedQueries) -> Iterator[Line]:
    """Each query as a line; all of them have conditions."""
    for name, condition, target in zip(
        stated.queries.names, stated.all_conditions, stated.targets, strict=True
    ):
        assert condition is not None
        yield "", name, condition, target.text


def about_attributes(stated: StatedQueries, domain: Domain) -> StatedQueries:
    """The same queries over the cells of another domain, whose common attributes are the same.

    Raises `WorkloadError` for a query that needs an attribute the domain does not have, and for too
    many cells.
    """
    old = stated.queries.domain
    if domain == old:
        return stated
    is_large = stated.queries.atoms is not None or math.prod(domain.sizes.tolist()) > MAX_CELLS
    if is_large and None not in stated.all_conditions:
        return stated_from_lines(domain, _lines_of(stated))
    check_list_size(len(stated), checked_n_cells(domain, MOST_CELLS), given=True)
    table = stated.queries.cell_coefficients.reshape(len(stated), *old.sizes.tolist())
    for axis, attribute in reversed(list(enumerate(old, start=1))):
        if attribute.name in domain:
            continue
        differing = np.any(table != np.take(table, [0], axis), axis=tuple(range(1, table.ndim)))
        if differing.any():
            query = stated.queries.names[int(np.argmax(differing))]
            raise WorkloadError(
                f"The count {shown(query)!r} is about the attribute {attribute.name!r}, which "
                "cannot be left out then; change or remove the count first."
            )
        table = np.take(table, 0, axis)
    kept = [attribute.name for attribute in old if attribute.name in domain]
    # The axes in the new order, those of new attributes with length 1.
    table = np.transpose(table, [0, *(1 + kept.index(n) for n in domain.names if n in kept)])
    sizes = [attribute.size if attribute.name in kept else 1 for attribute in domain]
    wide = np.broadcast_to(table.reshape(len(stated), *sizes), (len(stated), *domain.sizes))
    rows = wide.reshape(len(stated), -1)
    queries = QueryList.of_cells(domain, rows, stated.queries.names, stated.queries.targets)
    conditions = tuple(
        condition if _counts(domain, condition, row) else None
        for condition, row in zip(stated.conditions, rows, strict=True)
    )
    return StatedQueries(queries, conditions, stated.targets)


def domain_of_text(codebook: Domain, text: str, chosen: Domain | None) -> Domain:
    """The domain of a typed list: the chosen attributes, and those of the codebook that it names.

    chosen: None for none. Lines that cannot be taken apart name nothing; reading them says why.

    Raises `WorkloadError` for no attribute.
    """
    if chosen is not None and differences_from_codebook(chosen, codebook):
        return chosen
    named = set() if chosen is None else set(chosen.names)
    for line in text.split("\n"):
        with suppress(RpexploreError):
            for condition in conditions_of_text(line):
                named |= names_in_condition(condition, codebook)
    about = [name for name in codebook.names if name in named]
    if not about and {name.lower() for name in named} == {TOTAL}:
        about = _fewest_values(codebook)
    if not about:
        raise WorkloadError(
            "None of the lines names an attribute of the codebook; choose what the counts are "
            "about, or compare an attribute with a value, as in age >= 18."
        )
    return chosen_domain(codebook, about)


def differences_from_codebook(domain: Domain, codebook: Domain) -> list[str]:
    """A sentence for each kind of attribute that the codebook does not have as the queries do."""
    missing = [attribute.name for attribute in domain if attribute.name not in codebook]
    sentences = [f"The codebook has no attribute {shown_few(missing)}."] if missing else []
    for attribute in domain:
        if attribute.name in codebook and attribute.values != codebook[attribute.name].values:
            sentences.append(_change(attribute, codebook[attribute.name]))
    return sentences


def example_text(domain: Domain) -> str:
    """Two lines that could be typed, to show how they are written."""
    check_attributes(domain)
    lines = {"everybody: {} ± 50": TOTAL if TOTAL not in domain else ""}
    first = domain.attributes[0]
    if first.size > 1:
        lines["one group: {} ± 30"] = condition_of_values(first, np.arange(first.size) == 0)
    return "\n".join(line.format(text) for line, text in lines.items() if len(text) <= MAX_LENGTH)


def _change(attribute: Attribute, now: Attribute) -> str:
    """The change of an attribute in the codebook since."""
    before, after = attribute.labels(), now.labels()
    gone = [label for label in before if label not in after]
    new = [label for label in after if label not in before]
    if gone:
        return f"In the codebook {attribute.name!r} no longer has {shown_few(gone)}."
    if new:
        return f"In the codebook {attribute.name!r} has values that are new: {shown_few(new)}."
    return f"In the codebook the values of {attribute.name!r} are described otherwise."


def _counts(domain: Domain, condition: str | None, row: np.ndarray) -> bool:
    """Whether a condition can still be read, and counts these cells."""
    try:
        return condition is not None and np.array_equal(row_of_definition(domain, condition), row)
    except RpexploreError:
        return False
