"""What the rows of exported tables are about: values of an attribute, times among them, units."""

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rpexplore.common.numbers import shown_few
from rpexplore.domain.result_schema import NUMBER, RECORDS, Schema
from rpexplore.errors import ReleaseError
from rpexplore.results.formats.amount_texts import amounts_in
from rpexplore.results.formats.export import Export, ExportedTable
from rpexplore.results.formats.export_columns import Column, frequency_of

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

Value: TypeAlias = tuple[str, str]
"""Code and label of what a row counts; "" for no label."""


def values_of(
    rows: pa.Table, table: ExportedTable, attribute: str
) -> tuple[list[Value], np.ndarray, Column]:
    """The different values of an attribute in a table, the index of each row's, and the column
    whose texts tell them apart.
    """
    columns = [column for column in table.columns if column.attribute == attribute]
    codes, *labels = (rows[column.name].combine_chunks() for column in columns)
    texts = codes.dictionary.to_pylist()
    if not labels:
        return [(text, "") for text in texts], codes.indices.to_numpy(), columns[-1]
    label_texts = labels[0].dictionary.to_pylist()
    both = codes.indices.to_numpy().astype(np.int64) * len(label_texts)
    found, indices = np.unique(both + labels[0].indices.to_numpy(), return_inverse=True)
    pairs = (divmod(index, len(label_texts)) for index in found.tolist())
    return [(texts[code], label_texts[label]) for code, label in pairs], indices, columns[-1]


def is_whole(value: Value, column: Column) -> bool:
    """Whether a value is that of all values of the attribute; column: the last of the attribute."""
    return bool(column.whole) and (value[1] or value[0]) == column.whole


def frequency_of_times(export: Export, *, is_needed: bool = False) -> str:
    """The frequency of the times of all figures; "" where they have none.

    is_needed: whether figures of all periods together need a period of their own

    Raises `ReleaseError` for an attribute of time that is in no table or whose values are no
    periods of one length, and for a period that is one of these.
    """
    time, period = export.imprint.time, export.imprint.period
    if not time:
        return frequency_of([period]) if period else ""
    if time not in export.attributes:
        raise ReleaseError(
            f"The attribute of time {time!r} is in no table; name one of "
            f"{', '.join(export.attributes)}."
        )
    texts: dict[str, None] = {}
    of_all = ""  # a table with figures of all periods together
    for table in export.tables:
        is_of_all = time not in table.attributes
        if not is_of_all:
            values, _, column = values_of(export.rows(table), table, time)
            texts |= dict.fromkeys(one[0] for one in values if not is_whole(one, column))
            is_of_all = any(is_whole(one, column) for one in values)
        of_all = table.title if is_of_all else of_all
    frequency = frequency_of(texts)
    if not frequency:
        raise ReleaseError(
            f"The values of {time!r} must be periods of one length, such as 2026, 2026-Q1 or "
            f"2026-03, got {shown_few(list(texts))}; name another attribute of time, or none."
        )
    if of_all and is_needed and not period:
        raise ReleaseError(
            f"The table ({of_all}) has figures of all {time!r} together; say when these are of "
            "(--period), such as 2026."
        )
    if of_all and period in texts:  # two figures would be of one time
        raise ReleaseError(
            f"The table ({of_all}) has figures of all {time!r} together, and the period {period!r} "
            f"is one of the values of {time!r}; say when these figures are of by another one "
            "(--period), or plan only tables with this attribute."
        )
    return frequency


def period_of(export: Export, table: ExportedTable) -> str:
    """When the figures of a table are of, all of them; "" where that is not known."""
    return "" if export.imprint.time in table.attributes else export.imprint.period


def units_of(export: Export, table: ExportedTable, rows: pa.Table) -> tuple[np.ndarray, list[str]]:
    """The unit of each row's figure, as its place in a list of units, int32, and that list.

    Amounts have theirs in the rows of sums, and records in the others. Own counts with amounts have
    a column of units.
    """
    schema = Schema.of(rows)
    if schema.has("unit"):
        texts = rows[schema.name("unit")].combine_chunks()
        return texts.indices.to_numpy(), texts.dictionary.to_pylist()
    (value,) = (one for one in schema.columns if one.role == "value")
    amounts = amounts_in(export.results.domain, table.item)
    is_weighted = any(values.are_weights for values in amounts.values())
    units = [value.unit or (RECORDS if amounts and not is_weighted else NUMBER)]
    places = np.zeros(rows.num_rows, dtype=np.int32)
    for name, values in amounts.items():
        if values.are_weights:
            continue
        units.append(values.unit or NUMBER)
        (column,) = (one for one in table.columns if one.attribute == name and one.role == "code")
        is_sum = pc.equal(rows[column.name].cast(pa.string()), values.sum_label)
        places[np.asarray(is_sum)] = len(units) - 1
    return places, units
