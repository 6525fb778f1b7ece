"""Lists of queries from CSV files, and lists made from a domain."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import reduce
from itertools import combinations, product

import numpy as np

from rpexplore.common.files import utf8_text
from rpexplore.common.numbers import shown, shown_few, whole_number
from rpexplore.common.text import csv_rows, csv_text, plural, refuse_twice, shown_header
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.workload.bases import Basis, Identity
from rpexplore.workload.conditions import TOTAL
from rpexplore.workload.query_definitions import (
    Line,
    StatedQueries,
    stated_from_lines,
    with_conditions,
)
from rpexplore.workload.query_list import (
    MAX_CELLS,
    MOST_CELLS,
    QueryList,
    cell_labels,
    check_list_size,
    checked_n_cells,
    free_name,
)
from rpexplore.workload.table_text import QueryMatrix, query_matrix
from rpexplore.workload.targets import Target

# ---- Files with lists of queries, as CSV of one of two kinds.
#
# By conditions: the columns condition and, if wanted, name, by (other attributes) and target; one
# query a row. By coefficients: the columns name and, if wanted, target, and behind them a column
# for each cell, which its label heads ("Female, 18 to 24": the labels of its values, in the order
# of the attributes). The columns of cells may stand in any order.


NAME, CONDITION, BY, TARGET = _COLUMNS = ("name", "condition", "by", "target")


def stated_from_csv(
    domain: Domain, content: bytes, source: str, default: Target | None = None
) -> StatedQueries:
    """The queries of a CSV file about the cells of the domain.

    default: the target of queries that have none of their own. `source` is named in errors.

    Raises `WorkloadError` naming the line that cannot be used.
    """
    lines = with_conditions(domain, _csv_lines(domain, content, source))
    return stated_from_lines(domain, lines, default)


def _csv_lines(domain: Domain, content: bytes, source: str) -> Iterator[Line]:
    """Each query of a file about the cells of the domain."""
    header, rows = _rows(content, source)
    by_condition = CONDITION in map(str.lower, header)
    labels: Sequence[str] = ()
    if not by_condition or math.prod(domain.sizes.tolist()) <= MAX_CELLS:
        checked_n_cells(domain, MOST_CELLS)
        labels = cell_labels(domain)
        by_condition = by_condition and CONDITION not in labels
    columns = (_condition_columns if by_condition else _first_columns)(header, source)
    cells = [] if by_condition else _columns_of_cells(labels, header, len(columns), source)
    is_empty = True
    for number, row in rows:
        if not any(text.strip() for text in row):
            continue
        where, is_empty = f"{source}, line {number:,}", False
        if len(row) != len(header):
            raise WorkloadError(
                f"{where}: There are {plural(len(row), 'value')} for "
                f"{plural(len(header), 'column')}; put texts that hold a comma in quotes."
            )
        name = row[columns[NAME]] if NAME in columns else ""
        target = row[columns[TARGET]] if TARGET in columns else ""
        if by_condition:
            yield where, name, _with_by(row, columns), target
        else:
            coefficients = [_coefficient(row[column], where, header[column]) for column in cells]
            yield where, name, np.array(coefficients), target
    if is_empty:
        raise WorkloadError(f"{source} has no counts; write one a row, below a header.")


def conditions_of_csv(content: bytes, source: str) -> list[str]:
    """The conditions of a CSV file by conditions; [] for one with coefficients."""
    header, rows = _rows(content, source)
    titles = [title.lower() for title in header]
    if CONDITION not in titles:
        return []
    columns = _condition_columns(header, source)
    whole = (row for _, row in rows if len(row) == len(header))
    return [text for row in whole if (text := _with_by(row, columns).strip())]


def _with_by(row: Sequence[str], columns: Mapping[str, int]) -> str:
    """The condition of a row, with what stands in the column by."""
    condition = row[columns[CONDITION]]
    by = row[columns[BY]].strip() if BY in columns else ""
    return f"{condition} by {by}" if by else condition


def _rows(content: bytes, source: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The header, and of each row behind it the number of its last line and its texts.

    Raises `WorkloadError` for what is no CSV.
    """
    text = utf8_text(content, source, WorkloadError)
    # The first column is no cell; the labels of cells hold commas.
    first = re.search("[,;]", text.partition("\n")[0])
    rows = csv_rows(text, source, WorkloadError, first[0] if first else ",")
    return [title.strip() for title in next(rows, (0, []))[1]], rows


def csv_of_conditions(stated: StatedQueries) -> str:
    """The list as CSV by conditions; `stated_from_csv` undoes it.

    Raises `WorkloadError` for a query that has no condition.
    """
    names = stated.queries.names
    conditions = [stated.condition(query) for query in range(len(stated))]
    if None in conditions:
        raise WorkloadError(
            f"The count {shown(names[conditions.index(None)])!r} cannot be written as a condition; "
            "save the coefficients of every cell."
        )
    targets = [target.text for target in stated.targets]
    return csv_text([[NAME, CONDITION, TARGET], *zip(names, conditions, targets, strict=True)])


def csv_of_coefficients(stated: StatedQueries) -> str:
    """The list as CSV by coefficients; `stated_from_csv` undoes it, but knows no conditions."""
    queries = stated.queries
    rows = zip(queries.names, stated.targets, queries.cell_coefficients.tolist(), strict=True)
    lines = (
        [name, target.text, *(int(number) if number.is_integer() else number for number in row)]
        for name, target, row in rows
    )
    return csv_text([[NAME, TARGET, *cell_labels(queries.domain)], *lines])


def csv_template(domain: Domain) -> str:
    """A file by coefficients to start from, usable as it is: the total, and all single values.

    Raises `WorkloadError` for a domain with too many cells.
    """
    return csv_of_coefficients(StatedQueries.of(marginal_queries(domain, 1)))


def _condition_columns(header: Sequence[str], source: str) -> dict[str, int]:
    """The positions of the columns of a file by conditions; it must have no others."""
    titles = [title.lower() for title in header]
    for title in titles:
        if title not in _COLUMNS:
            raise WorkloadError(
                f"{source} must have the columns condition and, if wanted, name, by and target, "
                f"got {shown(title)!r} as well; remove it."
            )
    refuse_twice(titles, titles, source, WorkloadError)
    return {title: column for column, title in enumerate(titles)}


def _first_columns(header: Sequence[str], source: str) -> dict[str, int]:
    """The positions of name and target, before the cells: a cell may be called so too."""
    first = [title.lower() for title in header[:2]]
    if first in ([NAME, TARGET], [TARGET, NAME]):
        return {title: column for column, title in enumerate(first)}
    if first[:1] == [NAME]:
        return {NAME: 0}
    raise WorkloadError(
        f"{source} must have a header with the columns name, condition and target, or with "
        f"name, target and a column for each cell, got {shown_header(header, _COLUMNS)}."
    )


def _columns_of_cells(
    labels: Sequence[str], header: Sequence[str], before: int, source: str
) -> list[int]:
    """The column of each cell, [n_cells]; each must have one."""
    titles, labels = list(header[before:]), [label.strip() for label in labels]
    if titles == labels:
        return list(range(before, len(header)))
    if len(set(labels)) < len(labels):
        raise WorkloadError(
            f"{source} must have its columns as a template has them, since different cells have "
            "the same label; start from a template, or give the values other labels."
        )
    column_of: dict[str, int] = {}
    for column, title in enumerate(titles, start=before):
        where = f"{source}, column {column + 1:,}"
        if title in column_of:
            raise WorkloadError(
                f"{where}: The cell {shown(title)!r} has a column already; keep one of them."
            )
        if title not in labels:
            close = get_close_matches(title, labels, n=1)
            advice = f"the cells are {shown_few(labels)}."
            if close:
                advice = f"did you mean {close[0]!r}?"
            raise WorkloadError(f"{where}: There is no cell {shown(title)!r}; {advice}")
        column_of[title] = column
    missing = [label for label in labels if label not in column_of]
    if missing:
        raise WorkloadError(
            f"{source} must have a column for each of the {len(labels):,} cells, and "
            f"{len(missing):,} have none: {shown_few(missing)}; add them, with 0 where a count "
            "does not count them."
        )
    return [column_of[label] for label in labels]


def _coefficient(text: str, where: str, label: str) -> float:
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise WorkloadError(
            f"{where}: The coefficient of cell {shown(label)!r} must be a number such as 1 or 0.5, "
            f"got {shown(text)!r}; write 0 where the count leaves the cell out."
        )
    return value


# ---- Lists of queries made from a domain: all small tables, cumulative counts, every range.
#
# A query that counts the same cells as an earlier one of its list is left out.


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
    return QueryList.of_cells(
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
