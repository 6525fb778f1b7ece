"""CSV files of expected counts: some attributes as columns, and the count of each cell.

Read and written; a table of a release can be read as it is. A public table has lines with its name,
date and source before the header, and may have shares instead of counts.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, product
from unicodedata import normalize

import numpy as np

from rpexplore.common.files import utf8_text
from rpexplore.common.json_fields import refusing
from rpexplore.common.numbers import shown, shown_few
from rpexplore.common.text import (
    csv_rows,
    csv_text,
    plural,
    refuse_unclear,
    shown_header,
    with_decimal_point,
)
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import (
    MAX_COUNT,
    ExpectedCounts,
    check_margin_size,
    checked_count,
    checked_number,
)
from rpexplore.domain.public_tables import PublicTable
from rpexplore.domain.result_schema import RELEASED
from rpexplore.domain.values import index_by_value
from rpexplore.errors import WorkloadError

COUNT_COLUMNS = ("count", "value")  # the second is what a release's tables call it
SHARE_COLUMNS = ("share", "percent")  # of public tables; what they add up to is all
_FACT = re.compile(r'"?#\s*(name|date|source)\s*:(.*)', re.IGNORECASE)
# What else a release's tables have for each cell, and what an attribute of that name is called.
_FIGURES = {column.name for column in RELEASED}
_ATTRIBUTE, _LABEL = " (attribute)", " label"


def expected_counts_from_csv(domain: Domain, content: bytes, source: str) -> ExpectedCounts:
    """The counts of a CSV file: some attributes as columns, and the column count.

    One row a cell, none missing; a value is written as it stands in the data or as its label.
    A table of a release can be read as it is: its noisy counts may be negative, and such ones
    are read as 0. `source` is named in errors.

    Raises `WorkloadError` naming the line that cannot be used.
    """
    text = utf8_text(content, source, WorkloadError)
    rows = csv_rows(text, source, WorkloadError, delimiter=None)
    with refusing(WorkloadError, source):
        return _from_rows(domain, rows)


def public_table_from_csv(domain: Domain, content: bytes, source: str) -> PublicTable:
    """The public table of a CSV file, in the form of expected counts.

    Before the header there may be lines such as `# name: Census`, `# date: 2021` and `# source:
    Statistics Office`; without a name it is the file's. In place of count there may be a column
    share or percent, whose sum is all. domain: with the levels that tables may be by.

    Raises `WorkloadError` naming the line that cannot be used.
    """
    lines = utf8_text(content, source, WorkloadError).split("\n")
    facts: dict[str, str] = {}
    with refusing(WorkloadError, source):
        while len(facts) < len(lines) and (match := _FACT.match(lines[len(facts)])):
            key, fact = match[1].lower(), match[2].strip()
            if key in facts:
                raise WorkloadError(f"There are two lines with its {key}; keep one.")
            # Spreadsheets fill lines up with separators, and put quotes around commas.
            fact = fact.rstrip(",;").rstrip()
            if match[0].startswith('"'):
                fact = fact.removesuffix('"').replace('""', '"')
            facts[key] = fact
        rows = csv_rows("\n".join(lines[len(facts) :]), source, WorkloadError, delimiter=None)
        _, header = next(rows, (1, []))
        titles = [name.strip().lower() for name in header]
        shares = [column for column, name in enumerate(titles) if name in SHARE_COLUMNS]
        is_shares = len(shares) == 1 and not {*titles} & {*COUNT_COLUMNS}
        is_shares &= all(titles[column] not in domain for column in shares)
        if is_shares:
            header[shares[0]] = COUNT_COLUMNS[0]
        numbered = ((number + len(facts), row) for number, row in rows)
        counts = _from_rows(domain, chain([(1, header)], numbered), are_shares=is_shares)
        name, date, of = facts.get("name", source), facts.get("date", ""), facts.get("source", "")
        return PublicTable(counts, name, date, of, is_shares=is_shares)


def csv_of_public_table(table: PublicTable) -> str:
    """A public table as CSV with its name, date and source, for `public_table_from_csv`."""
    facts = {"name": table.name, "date": table.date, "source": table.source}
    lines = [f"# {key}: {text}\r\n" for key, text in facts.items() if text]
    column = SHARE_COLUMNS[0] if table.is_shares else COUNT_COLUMNS[0]
    return "".join(lines) + csv_of_expected_counts(table.counts, column)


def csv_of_expected_counts(expected: ExpectedCounts, column: str = COUNT_COLUMNS[0]) -> str:
    """Counts by attributes as CSV, one row a cell, for `expected_counts_from_csv`."""
    cells = zip(product(*expected.values), map(_written, expected.counts), strict=True)
    return csv_text(
        [(*expected.attributes, column), *((*values, count) for values, count in cells)]
    )


def _written(count: float) -> str:
    """A count as text, never in a form that might be one with thousands marked."""
    text = str(int(count)) if count.is_integer() else repr(count)
    return f"{text}0" if re.fullmatch(r"[0-9]{1,3}\.[0-9]{3}", text) else text


def _from_rows(
    domain: Domain, rows: Iterator[tuple[int, list[str]]], *, are_shares: bool = False
) -> ExpectedCounts:
    """The counts in rows with the numbers of their lines, the header first.

    No row is read before the header, and none behind the first that is wrong.
    """
    _, header = next(rows, (1, []))
    columns, count_column = _columns(domain, header)
    attributes = [domain.attributes[index] for index in columns]
    shape = tuple(attribute.size for attribute in attributes)
    check_margin_size(shape)
    counts, negative, written = np.full(shape, np.nan), 0, list[str]()
    is_release = header[count_column] == "value" and "standard_error" in header
    for number, row in rows:
        if not any(text.strip() for text in row):
            continue
        with refusing(WorkloadError, f"Line {number}"):
            if len(row) != len(header):
                raise WorkloadError(
                    f"There are {plural(len(row), 'value')} for {plural(len(header), 'column')}; "
                    "put texts that hold a comma in quotes."
                )
            texts = [row[column] for column in columns.values()]
            cell = tuple(map(_value_index, attributes, texts))
            if not np.isnan(counts[cell]):
                raise WorkloadError(
                    f"{_describe_cell(attributes, cell)} is there twice; keep one row for it."
                )
            written.append(row[count_column])
            count = with_decimal_point(row[count_column])
            if is_release and -MAX_COUNT <= checked_number(count) < 0:
                counts[cell], negative = 0, negative + 1
            else:
                counts[cell] = checked_count(count)
    if not is_release and not are_shares:
        refuse_unclear(written)
    missing = np.argwhere(np.isnan(counts)).tolist()
    if missing:
        raise WorkloadError(
            f"{plural(len(missing), 'row')} of {counts.size:,} missing, the first for "
            f"{_describe_cell(attributes, missing[0])}; give every combination of values a row, "
            "with a count of 0 where there is nobody."
        )
    return ExpectedCounts(
        tuple(attribute.name for attribute in attributes),
        tuple(tuple(attribute.stored_values()) for attribute in attributes),
        tuple(counts.ravel().tolist()),
        negative,
    )


def _value_index(attribute: Attribute, text: str) -> int:
    index_of = index_by_value(attribute)
    text = normalize("NFC", text)
    index = index_of.get(text, index_of.get(text.strip()))
    if index is None:
        raise WorkloadError(
            f"{attribute.name!r} has no value {shown(text)!r} in the codebook; it has "
            f"{shown_few(attribute.stored_values())}."
        )
    return index


def _columns(domain: Domain, header: Sequence[str]) -> tuple[dict[int, int], int]:
    """({index of an attribute: its column}, ascending; column of the counts) of a header.

    The counts are in the last column that is called so: an attribute may have that name too.
    """
    titles = [name.strip().lower() for name in header]
    called = next((name for name in COUNT_COLUMNS if name in titles), None)
    if called is None:
        raise WorkloadError(
            "There must be a column called count, got "
            f"{shown_header(header, (*SHARE_COLUMNS, *(one.name for one in domain.attributes)))}."
        )
    if titles.count(called) > 1 and called not in domain:
        raise WorkloadError(f"There are two columns called {called}; keep one of them.")
    count_column = len(titles) - 1 - titles[::-1].index(called)
    columns: dict[int, int] = {}
    for column, title in enumerate(header):
        if column == count_column or _is_passed_over(title, header, domain):
            continue
        candidates = (title, title.strip(), title.removesuffix(_ATTRIBUTE))
        name = next((name for name in candidates if name in domain), None)
        if name is None:
            raise WorkloadError(
                f"The column {shown(title)!r} is no attribute of the codebook; rename it, or take "
                "it out after summing over it."
            )
        index = domain.position(name)
        if index in columns:
            raise WorkloadError(f"There are two columns {name!r}; keep one.")
        columns[index] = column
    return dict(sorted(columns.items())), count_column


def _is_passed_over(title: str, header: Sequence[str], domain: Domain) -> bool:
    """Whether a release's tables have this column beside their attributes and counts."""
    if f"{title}{_ATTRIBUTE}" in header:
        return True
    labels = title.endswith(_LABEL) and title.removesuffix(_LABEL) in header
    return (labels or title in _FIGURES) and title not in domain


def _describe_cell(attributes: Sequence[Attribute], cell: Sequence[int]) -> str:
    pairs = zip(attributes, cell, strict=True)
    texts = [f"{attribute.name} = {attribute.stored_values(i + 1)[i]}" for attribute, i in pairs]
    return ", ".join(texts) or "the total"
