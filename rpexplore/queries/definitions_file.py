"""Stated queries as plain values, as a scenario's file has them.

Each query has its name, its target as it was typed, and its condition; or, where it was given by
coefficients, their terms (`query_list.terms_from_row`): as JSON within a text, which is read and
written many times as fast as numbers that a file has on lines of their own. Standard errors and
cells follow from these when the file is read, so that they cannot disagree with what is shown.
"""

from typing import Any

from rpexplore.common.exact_numbers import shown
from rpexplore.common.json_fields import FieldError, check_keys, dumps, loads
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.queries.definitions import Line, StatedQueries, stated_from_lines
from rpexplore.queries.query_list import (
    check_list_size,
    checked_n_cells,
    row_from_terms,
    terms_from_row,
)

_KEYS = ({"name", "target", "condition"}, {"name", "target", "terms"})


def stated_to_json(stated: StatedQueries) -> dict[str, Any]:
    """Plain values for a file; `stated_from_json` undoes it exactly."""
    queries = []
    for name, target, condition, row in zip(
        stated.queries.names,
        stated.targets,
        stated.conditions,
        stated.queries.coefficients,
        strict=True,
    ):
        definition = {"condition": condition}
        if condition is None:
            definition = {"terms": dumps(terms_from_row(row))}
        queries.append({"name": name, "target": target.text, **definition})
    schema = stated.queries.domain.to_schema()
    return {"domain": schema, "queries": queries}


def stated_from_json(content: Any) -> StatedQueries:
    """The queries of a file; `RpexploreError` naming the query that cannot be used."""
    check_keys(content, ("domain", "queries"), "a list of queries")
    domain = Domain.from_schema(content["domain"])
    n_cells, queries = checked_n_cells(domain), content["queries"]
    if not isinstance(queries, list) or not all(map(_is_query, queries)):
        raise WorkloadError(
            "Every query must hold name, target and either condition or terms, no more; all of "
            "them must be texts."
        )
    check_list_size(len(queries), n_cells)
    lines = (_line(number, query, n_cells) for number, query in enumerate(queries, start=1))
    return stated_from_lines(domain, lines)


def _line(number: int, query: dict[str, str], n_cells: int) -> Line:
    name, definition = query["name"], query.get("condition")
    if definition is None:
        try:
            terms = loads(query["terms"])
        except FieldError:
            raise WorkloadError(
                f"The terms of query {shown(name)!r} must be JSON such as [[0, 9, 1]]."
            ) from None
        definition = row_from_terms(terms, n_cells, name)
    return f"Query {number:,}", name, definition, query["target"]


def _is_query(query: Any) -> bool:
    if not isinstance(query, dict) or set(query) not in _KEYS:
        return False
    return all(isinstance(text, str) for text in query.values())
