"""Lists of queries made from a domain: all small tables, cumulative counts, every range.

A query that counts the same cells as an earlier one of its list is left out.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import combinations, product

import numpy as np

from rpexplore.common.exact_numbers import whole_number
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.queries.conditions import TOTAL
from rpexplore.queries.query_list import QueryList, check_list_size, checked_n_cells, free_name
from rpexplore.workload.bases import Basis, Identity
from rpexplore.workload.query_matrix import QueryMatrix, query_matrix

USUAL_TARGET = 10.0  # standard error: about ±20 in 95 of 100 cases


def marginal_queries(domain: Domain, up_to: int, target: float = USUAL_TARGET) -> QueryList:
    """Every cell of every table of at most `up_to` attributes, the total first.

    target: the standard error wanted for each, as in all functions here

    Raises `WorkloadError` for too many queries or cells, or a number that is none of attributes.
    """
    order = whole_number(up_to)
    if order is None or not 0 <= order <= len(domain):
        raise WorkloadError(
            f"The tables must be of at most 0 to {len(domain)} attributes, got {up_to!r}."
        )
    tables = [
        dict.fromkeys(names, Identity())
        for size in range(order + 1)
        for names in combinations(domain.names, size)
    ]
    return table_queries(domain, tables, target)


def crossed_queries(
    domain: Domain, name: str, basis: Basis, by: Iterable[str] = (), target: float = USUAL_TARGET
) -> QueryList:
    """The queries of an attribute's basis for each combination of the attributes `by`."""
    crossed: dict[str, Basis] = dict.fromkeys(by, Identity())
    if name in crossed:
        raise WorkloadError(
            f"The attribute {name!r} cannot be crossed with itself; leave it out of the others."
        )
    return table_queries(domain, [{**crossed, name: basis}], target)


def table_queries(
    domain: Domain, tables: Sequence[Mapping[str, Basis]], target: float = USUAL_TARGET
) -> QueryList:
    """Every cell of tables whose attributes have given bases (⊗ W_i ⊗ 1ᵀ).

    tables: the basis of each attribute of each table, {name: basis}

    Raises `WorkloadError` for too many queries or cells, and for a basis that an attribute cannot
    have, `DomainError` for an unknown attribute.
    """
    n_cells = checked_n_cells(domain)
    for name in {name for table in tables for name in table}:
        domain.position(name)
    matrices = [
        {name: query_matrix(basis, domain[name]) for name, basis in table.items()}
        for table in tables
    ]
    n_queries = (math.prod(matrix.n_rows for matrix in table.values()) for table in matrices)
    check_list_size(sum(n_queries), n_cells)
    lines = ((name, row, target) for table in matrices for name, row in _cells(domain, table))
    return query_list(domain, lines)


def query_list(domain: Domain, lines: Iterable[tuple[str, np.ndarray, float]]) -> QueryList:
    """The list of queries given by name, coefficients [n_cells] and target, each query once.

    Of names that are given twice, later ones get a number behind them.
    """
    rows: dict[bytes, np.ndarray] = {}
    targets: dict[str, float] = {}
    for name, coefficients, target in lines:
        row = np.asarray(coefficients, dtype=np.float64)
        if row.tobytes() not in rows:
            rows[row.tobytes()] = row
            targets[free_name(name, targets)] = target
    return QueryList(
        domain, np.array(list(rows.values())), tuple(targets), np.array(list(targets.values()))
    )


def _cells(domain: Domain, matrices: Mapping[str, QueryMatrix]) -> Iterable[tuple[str, np.ndarray]]:
    """The name and the coefficients of each cell of a table, the last attribute fastest."""
    factors, labels = [], []
    for attribute in domain:
        matrix = matrices.get(attribute.name)
        if matrix is None:
            factors.append(np.ones((1, attribute.size)))
            continue
        factors.append(matrix.of(np.eye(attribute.size), 0))
        labels.append([f"{attribute.name} {label}" for label in matrix.labels()])
        if matrix.basis.starts_with_total and matrix.n_rows > 1:
            labels[-1][0] = ""  # all values
    names = (" × ".join(filter(None, parts)) or TOTAL for parts in product(*labels))
    return zip(names, reduce(np.kron, factors), strict=True)
