"""Stated queries as plain values, as a scenario's file has them.

Each query has its name, its target as it was typed, and its condition; or, where it was given by
coefficients, terms as those of `QueryList.to_json`: as JSON within a text, which is read and
written many times as fast as numbers that a file has on lines of their own. Standard errors and
cells follow from these when the file is read, so that they cannot disagree with what is shown.
"""

import json
from typing import Any

import numpy as np

from rpexplore.common.exact_numbers import shown
from rpexplore.common.json_fields import FieldError, check_keys, loads
from rpexplore.domain import codebook
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.queries.definitions import StatedLines, StatedQueries
from rpexplore.queries.query_list import QueryList, check_list_size, checked_n_cells

_KEYS = ({"name", "target", "condition"}, {"name", "target", "terms"})


def stated_to_json(stated: StatedQueries) -> dict[str, Any]:
    """Plain values for a file; `stated_from_json` undoes it exactly."""
    content = stated.queries.to_json()
    rows = zip(content["queries"], stated.targets, stated.conditions, strict=True)
    return {
        "domain": content["domain"],
        "queries": [
            {
                "name": query["name"],
                "target": target.text,
                **(
                    {"terms": json.dumps(query["terms"], separators=(",", ":"))}
                    if condition is None
                    else {"condition": condition}
                ),
            }
            for query, target, condition in rows
        ],
    }


def stated_from_json(content: Any) -> StatedQueries:
    """The queries of a file; `RpexploreError` naming the query that cannot be used."""
    check_keys(content, ("domain", "queries"), "a list of queries")
    domain = Domain(tuple(codebook.attributes_from_schema(content["domain"])))
    n_cells, queries = checked_n_cells(domain), content["queries"]
    if not isinstance(queries, list) or not all(map(_is_query, queries)):
        raise WorkloadError(
            "Every query must hold name, target and either condition or terms, no more; all of "
            "them must be texts."
        )
    check_list_size(len(queries), n_cells)
    by_terms = [query for query in queries if "terms" in query]
    rows = iter(_coefficients(content["domain"], by_terms))
    lines = StatedLines(domain, default=None)
    for place, query in enumerate(queries, start=1):
        where, name, target = f"Query {place:,}", query["name"], query["target"]
        if "terms" in query:
            lines.add_coefficients(where, name, next(rows).tolist(), target)
        else:
            lines.add_condition(where, name, query["condition"], target)
    return lines.stated()


def _is_query(query: Any) -> bool:
    if not isinstance(query, dict) or set(query) not in _KEYS:
        return False
    return all(isinstance(text, str) for text in query.values())


def _coefficients(schema: Any, by_terms: list[dict[str, Any]]) -> np.ndarray:
    """The coefficients of queries with terms, float64[n_by_terms, n_cells]."""
    if not by_terms:
        return np.empty((0, 0))
    queries = [query | {"target": 1.0, "terms": _terms(query)} for query in by_terms]
    return QueryList.from_json({"domain": schema, "queries": queries}).coefficients


def _terms(query: dict[str, Any]) -> Any:
    try:
        return loads(query["terms"])
    except FieldError:
        raise WorkloadError(
            f"The terms of query {shown(query['name'])!r} must be JSON such as [[0, 9, 1]]."
        ) from None
