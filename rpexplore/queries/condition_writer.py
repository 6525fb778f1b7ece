"""Condition texts: the condition that counts given cells, as a curator would write it."""

import numpy as np

from rpexplore.domain.attribute import Attribute, Categories
from rpexplore.domain.domain import Domain
from rpexplore.queries.condition_tokens import MAX_LENGTH, text_of_name
from rpexplore.queries.conditions import TOTAL
from rpexplore.queries.value_comparisons import bounds, decimal_text, value_names
from rpexplore.workload.table_text import in_quotes


def condition_of_cells(domain: Domain, counted: np.ndarray) -> str | None:
    """The condition that holds for just these cells; `cells_of_condition` undoes it.

    counted: bool[n_cells]; ValueError if it counts no cell

    None where the condition would be longer than one may be.
    """
    counted = np.asarray(counted, dtype=bool)
    if not counted.any():
        raise ValueError("no condition is made for a query that counts no cell")
    attributes = [attribute for attribute in domain if attribute.size > 1]
    table = counted.reshape([attribute.size for attribute in attributes])
    text = _condition(attributes, table) or (TOTAL if TOTAL not in domain else "")
    return text if len(text) <= MAX_LENGTH else None


def _condition(attributes: list[Attribute], table: np.ndarray) -> str:
    """The condition of a table bool[n_1, n_2, …]; "" where it holds everywhere."""
    if table.all():
        return ""
    first, rest = attributes[0], attributes[1:]
    # Values of the first attribute with the same cells behind them share one condition.
    values_by_cells: dict[bytes, list[int]] = {}
    for value, cells in enumerate(table):
        if cells.any():
            values_by_cells.setdefault(cells.tobytes(), []).append(value)
    parts = []
    for values in values_by_cells.values():
        one_of = _one_of(first, np.isin(np.arange(first.size), values))
        behind = _condition(rest, table[values[0]])
        if one_of and " | " in behind:
            behind = f"({behind})"
        parts.append(" & ".join(filter(None, (one_of, behind))))
    return " | ".join(parts)


def _one_of(attribute: Attribute, where: np.ndarray) -> str:
    """The condition that the attribute has one of these values; "" for all of them."""
    if where.all():
        return ""
    if isinstance(attribute.values, Categories):
        name, texts = text_of_name(attribute.name), [*map(in_quotes, value_names(attribute))]
        left_out = 2 * np.count_nonzero(where) > len(where)
        names = [texts[index] for index in np.flatnonzero(where != left_out).tolist()]
        if len(names) == 1:
            return f"{name} {'!=' if left_out else '=='} {names[0]}"
        return f"{name} {'not in' if left_out else 'in'} ({', '.join(names)})"
    edges = np.flatnonzero(np.diff(where, prepend=False, append=False)).reshape(-1, 2)
    runs = [_run(attribute, first, after - 1) for first, after in edges.tolist()]
    return runs[0] if len(runs) == 1 else f"({' | '.join(runs)})"


def _run(attribute: Attribute, first: int, last: int) -> str:
    """The condition of the values first … last of whole numbers or intervals."""
    lows, highs, closed = bounds(attribute)
    name = text_of_name(attribute.name)
    low, high = decimal_text(lows[first]), decimal_text(highs[last])
    up_to = "<=" if closed[last] else "<"
    if lows[first] == highs[last]:
        return f"{name} == {low}"
    if last == attribute.size - 1:
        return f"{name} >= {low}"
    return f"{name} {up_to} {high}" if first == 0 else f"{low} <= {name} {up_to} {high}"
