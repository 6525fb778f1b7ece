"""Files with lists of queries, as CSV of one of two kinds.

By conditions: the columns condition and, if wanted, name and target; one query a row. By
coefficients: the columns name and, if wanted, target, and behind them a column for each cell, which
its label heads ("Female, 18 to 24": the labels of its values, in the order of the attributes). The
columns of cells may stand in any order.
"""

import math
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from rpexplore.common.csv_text import csv_rows, csv_text
from rpexplore.common.exact_numbers import shown, shown_few
from rpexplore.common.files import utf8_text
from rpexplore.common.formatting import plural
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.queries.builders import marginal_queries
from rpexplore.queries.definitions import (
    Line,
    StatedQueries,
    stated_from_lines,
    with_conditions,
)
from rpexplore.queries.query_list import cell_labels, checked_n_cells
from rpexplore.workload.targets import Target

NAME, CONDITION, TARGET = "name", "condition", "target"


def stated_from_csv(
    domain: Domain, content: bytes, source: str, default: Target | None = None
) -> StatedQueries:
    """The queries of a CSV file about the cells of the domain.

    default: the target of queries that have none of their own. `source` is named in errors.

    Raises `WorkloadError` naming the line that cannot be used.
    """
    checked_n_cells(domain)
    lines = with_conditions(domain, _lines(cell_labels(domain), content, source))
    return stated_from_lines(domain, lines, default)


def _lines(labels: Sequence[str], content: bytes, source: str) -> Iterator[Line]:
    """Each query of a file about the cells with these labels."""
    header, rows = _rows(content, source)
    by_condition = CONDITION in map(str.lower, header) and CONDITION not in labels
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
            yield where, name, row[columns[CONDITION]], target
        else:
            coefficients = [_coefficient(row[column], where, header[column]) for column in cells]
            yield where, name, coefficients, target
    if is_empty:
        raise WorkloadError(f"{source} has no queries; write one a row, below a header.")


def conditions_of_csv(content: bytes, source: str) -> list[str]:
    """The conditions of a CSV file by conditions; [] for one with coefficients."""
    header, rows = _rows(content, source)
    titles = [title.lower() for title in header]
    if CONDITION not in titles:
        return []
    column = titles.index(CONDITION)
    return [row[column] for _, row in rows if len(row) > column and row[column].strip()]


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
            f"The query {shown(names[conditions.index(None)])!r} cannot be written as a condition; "
            "save the coefficients of every cell."
        )
    targets = [target.text for target in stated.targets]
    return csv_text([[NAME, CONDITION, TARGET], *zip(names, conditions, targets, strict=True)])


def csv_of_coefficients(stated: StatedQueries) -> str:
    """The list as CSV by coefficients; `stated_from_csv` undoes it, but knows no conditions."""
    queries = stated.queries
    rows = zip(queries.names, stated.targets, queries.coefficients.tolist(), strict=True)
    lines = (
        [name, target.text, *(int(number) if number.is_integer() else number for number in row)]
        for name, target, row in rows
    )
    return csv_text([[NAME, TARGET, *queries.cell_labels], *lines])


def csv_template(domain: Domain) -> str:
    """A file by coefficients to start from, usable as it is: the total, and all single values.

    Raises `WorkloadError` for a domain with too many cells.
    """
    return csv_of_coefficients(StatedQueries.of(marginal_queries(domain, 1)))


def _condition_columns(header: Sequence[str], source: str) -> dict[str, int]:
    """The positions of the columns of a file by conditions; it must have no others."""
    titles = [title.lower() for title in header]
    for title in titles:
        if title not in (NAME, CONDITION, TARGET):
            raise WorkloadError(
                f"{source} must have the columns condition and, if wanted, name and target, got "
                f"{shown(title)!r} as well; remove it."
            )
        if titles.count(title) > 1:
            raise WorkloadError(f"{source} has the column {title} twice; keep one of them.")
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
        f"name, target and a column for each cell, got {shown_few(header) or 'no header'}."
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
            f"{len(missing):,} have none: {shown_few(missing)}; add them, with 0 where a query "
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
            f"got {shown(text)!r}; write 0 where the query does not count the cell."
        )
    return value
