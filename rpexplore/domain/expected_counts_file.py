"""CSV files of expected counts: some attributes as columns, and the count of each cell.

A table of a release can be read as it is.
"""

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from rpexplore.common.exact_numbers import shown
from rpexplore.common.formatting import plural
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import (
    MAX_COUNT,
    ExpectedCounts,
    check_margin_size,
    checked_count,
    checked_number,
    values_of,
)
from rpexplore.errors import WorkloadError

COUNT_COLUMNS = ("count", "value")  # the second is what a release's tables call it
# What else a release's tables have for each cell, and what an attribute of that name is called.
_ESTIMATES = {"value", "standard_error", "lower_95", "upper_95"}
_ATTRIBUTE, _LABEL = " (attribute)", " label"


def expected_counts_from_csv(domain: Domain, content: bytes, source: str) -> ExpectedCounts:
    """The counts of a CSV file: some attributes as columns, and the column count.

    One row a cell, none missing; a value is written as it stands in the data or as its label.
    A table of a release can be read as it is: its noisy counts may be negative, and such ones
    are read as 0. `source` is named in errors.

    Raises `WorkloadError` naming the line that cannot be used.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise WorkloadError(f"{source} is not UTF-8 text; save it as UTF-8.") from None
    header = text.partition("\n")[0]
    delimiter = ";" if ";" in header and "," not in header else ","
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return _from_rows(domain, rows)
    except csv.Error as error:
        raise WorkloadError(
            f"{source} is no usable CSV ({error}); check that every quote is closed."
        ) from None
    except WorkloadError as error:
        raise WorkloadError(f"{source}: {error}") from None


def _from_rows(domain: Domain, rows: Any) -> ExpectedCounts:
    """The counts that the rows of a CSV reader hold, the header first."""
    header = next(rows, [])
    columns, count_column = _columns(domain, header)
    attributes = [domain.attributes[place] for place in columns]
    shape = tuple(attribute.size for attribute in attributes)
    check_margin_size(shape)
    coders = [_Coder(domain.attributes[place], columns[place]) for place in columns]
    counts, negative = np.full(shape, np.nan), 0
    is_release = header[count_column] == "value" and "standard_error" in header
    for row in rows:
        if not any(text.strip() for text in row):
            continue
        try:
            if len(row) != len(header):
                raise WorkloadError(
                    f"There are {plural(len(row), 'value')} for {plural(len(header), 'column')}; "
                    "put texts that hold a comma in quotes."
                )
            cell = tuple(coder.place(row) for coder in coders)
            if not np.isnan(counts[cell]):
                raise WorkloadError(
                    f"{_describe_cell(attributes, cell)} is there twice; keep one row for it."
                )
            if is_release and -MAX_COUNT <= checked_number(row[count_column]) < 0:
                counts[cell], negative = 0, negative + 1
            else:
                counts[cell] = checked_count(row[count_column])
        except WorkloadError as error:
            raise WorkloadError(f"Line {rows.line_num}: {error}") from None
    missing = np.argwhere(np.isnan(counts)).tolist()
    if missing:
        raise WorkloadError(
            f"{plural(len(missing), 'row')} of {counts.size:,} missing, the first for "
            f"{_describe_cell(attributes, missing[0])}; give every combination of values a row, "
            "with a count of 0 where there is nobody."
        )
    return ExpectedCounts(
        tuple(attribute.name for attribute in attributes),
        tuple(tuple(values_of(attribute)) for attribute in attributes),
        tuple(counts.ravel().tolist()),
        negative,
    )


class _Coder:
    """Turns the texts of one column into places of an attribute's values, or refuses them."""

    def __init__(self, attribute: Attribute, column: int) -> None:
        self._attribute, self._column = attribute, column
        by_label = {label: place for place, label in enumerate(attribute.labels())}
        self._places = by_label | {text: place for place, text in enumerate(values_of(attribute))}

    def place(self, row: Sequence[str]) -> int:
        text = row[self._column]
        found = self._places.get(text, self._places.get(text.strip()))
        if found is None:
            raise WorkloadError(
                f"{self._attribute.name!r} has no value {shown(text)!r} in the schema; it has "
                f"{_some(values_of(self._attribute, 4))}."
            )
        return found


def _columns(domain: Domain, header: Sequence[str]) -> tuple[dict[int, int], int]:
    """({place of an attribute: its column}, ascending; column of the counts) of a header.

    The counts are in the last column that is called so: an attribute may have that name too.
    """
    titles = [name.strip().lower() for name in header]
    called = next((name for name in COUNT_COLUMNS if name in titles), None)
    if called is None:
        raise WorkloadError(
            f"There must be a column called count, got {_some(header) or 'no header'}."
        )
    count_column = len(titles) - 1 - titles[::-1].index(called)
    columns: dict[int, int] = {}
    for column, title in enumerate(header):
        if column == count_column or _is_passed_over(title, header, domain):
            continue
        name = _attribute_name(title, domain)
        if name is None:
            raise WorkloadError(
                f"The column {shown(title)!r} is no attribute of the schema; rename it, or take it "
                "out after summing over it."
            )
        if domain.places[name] in columns:
            raise WorkloadError(f"There are two columns {name!r}; keep one.")
        columns[domain.places[name]] = column
    return dict(sorted(columns.items())), count_column


def _is_passed_over(title: str, header: Sequence[str], domain: Domain) -> bool:
    """Whether a release's tables have this column beside their attributes and counts."""
    if f"{title}{_ATTRIBUTE}" in header:
        return True
    labels = title.endswith(_LABEL) and title.removesuffix(_LABEL) in header
    return (labels or title in _ESTIMATES) and title not in domain


def _attribute_name(title: str, domain: Domain) -> str | None:
    """The attribute that a column is called after, if there is one."""
    candidates = (title, title.strip(), title.removesuffix(_ATTRIBUTE))
    return next((name for name in candidates if name in domain), None)


def _describe_cell(attributes: Sequence[Attribute], cell: Sequence[int]) -> str:
    if not attributes:
        return "the total"
    pairs = zip(attributes, cell, strict=True)
    return ", ".join(f"{each.name} = {values_of(each, i + 1)[i]}" for each, i in pairs)


def _some(texts: Sequence[str], most: int = 3) -> str:
    """The first few texts for a sentence."""
    return ", ".join(map(shown, texts[:most])) + (", …" if len(texts) > most else "")
