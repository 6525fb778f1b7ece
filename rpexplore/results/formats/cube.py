"""Tables as cubes, which have all combinations of the values of their variables."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rpexplore.domain.ordered_values import Dates
from rpexplore.domain.result_schema import NUMBER, Schema
from rpexplore.results.formats.export import Export, ExportedTable
from rpexplore.results.formats.export_columns import Column
from rpexplore.results.formats.row_values import Value, units_of


def is_time(export: Export, attribute: str) -> bool:
    """Whether the values of an attribute are times: dates, or those that the imprint names."""
    domain = export.results.domain
    if domain is None or attribute not in domain.names:
        return attribute == export.imprint.time
    return attribute == export.imprint.time or isinstance(domain[attribute].values, Dates)


def units_of_columns(export: Export, table: ExportedTable, rows: pa.Table) -> dict[str, str]:
    """What the unit of each column is called: of figures in several units, all of these."""
    places, units = units_of(export, table, rows)
    used = [export.unit_of(units[place]) for place in dict.fromkeys(places.tolist())]
    schema = Schema.of(rows)
    in_rows = len(used) > 1 or schema.has("unit")  # the columns do not say it
    return {
        column.name: " / ".join(used)
        if in_rows and column.unit in ("", NUMBER)
        else export.unit_of(column.unit)
        for column in schema.columns
    }


def cube_of(
    rows: pa.Table, table: ExportedTable
) -> tuple[list[tuple[tuple[str, ...], list[Value]]], np.ndarray]:
    """The variables of a table, each with its attributes and values, and the order of its rows.

    Attributes are joined from the left, until all values of all variables occur together.
    """
    parts = []
    for attribute in table.attributes:
        columns = [column for column in table.columns if column.attribute == attribute]
        parts.append(((attribute,), *_values(rows, columns)))
    while len(parts) > 1 and np.prod([len(values) for _, values, _ in parts]) > rows.num_rows:
        (left, first, high), (right, second, low), *others = parts
        both, indices = _numbered(high * len(second) + low)
        pairs = [divmod(index, len(second)) for index in both]
        values = []
        for (code, path), (own, title) in ((first[one], second[two]) for one, two in pairs):
            values.append((f"{code}/{own}", title or f"{path or code}/{own}"))
        parts = [((*left, *right), values, indices), *others]
    place = np.zeros(rows.num_rows, dtype=np.int64)
    for _, values, indices in parts:
        place = place * len(values) + indices
    return [(attributes, values) for attributes, values, _ in parts], np.argsort(place)


def _values(rows: pa.Table, columns: Sequence[Column]) -> tuple[list[Value], np.ndarray]:
    """The values of an attribute in the order in which they first come, and each row's index."""
    codes, *labels = (rows[column.name].combine_chunks() for column in columns)
    texts = codes.dictionary.to_pylist()
    label_texts = labels[0].dictionary.to_pylist() if labels else [""]
    numbers = codes.indices.to_numpy().astype(np.int64) * len(label_texts)
    if labels:
        numbers += labels[0].indices.to_numpy()
    found, indices = _numbered(numbers)
    pairs = (divmod(index, len(label_texts)) for index in found)
    return [(texts[code], label_texts[label]) for code, label in pairs], indices


def _numbered(numbers: np.ndarray) -> tuple[list[int], np.ndarray]:
    """The different numbers in the order in which they first come, and the index of each."""
    found, first, indices = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return found[order].tolist(), rank[indices]
