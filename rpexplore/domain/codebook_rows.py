"""Codebooks in rows: plain CSV, one row a value or an attribute, to and from attributes."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from rpexplore.common.json_fields import refusing
from rpexplore.common.numbers import shown_few
from rpexplore.common.text import csv_rows, csv_text, refuse_twice, refuse_unclear, shown_header
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.codebook import DATES, attribute_from_field, check_number
from rpexplore.domain.codebook_properties import CSV, refuse_what_is_said
from rpexplore.domain.levels import LEVELS
from rpexplore.domain.ordered_values import Dates, Integers
from rpexplore.errors import DomainError

# The CSV codebook has the columns attribute, value, label and group (the last two may be left out),
# one row a category; it describes categories only. The column group holds the path of groups that
# the value lies in: "South > East". A row whose value is empty is refused.


def attributes_from_csv(
    text: str, source: str, named: Mapping[str, str] | None = None
) -> list[Attribute]:
    """The attributes of a CSV codebook text; `source` is named in errors.

    named: "attribute", "value", "label", "group" -> the column that is that, where columns have
    other names; of one row an attribute "name", "values", "type", "label", "missing". Others are
    then passed over.
    """
    all_rows = csv_rows(text, source, DomainError, delimiter=None)
    rows = below_title(all_rows, lambda row: is_header(row, named))
    _, header = first = next(rows, (1, []))
    heads = {column.strip().lower() for column in header}
    is_named_so = named is None and heads >= VARIABLES and not {"attribute", "value"} <= heads
    if is_named_so or (named is not None and named.keys() >= VARIABLES):
        return attributes_of_variables(chain([first], rows), source, named)
    return attributes_of_rows(chain([first], rows), source, named)


def below_title(
    rows: Iterable[tuple[int, Sequence[str]]], is_header: Callable[[Sequence[str]], bool]
) -> Iterator[tuple[int, Sequence[str]]]:
    """The rows from the one that names the columns on: titles above it are left out.

    All of them where none of the first rows is such a header.
    """
    rows = iter(rows)
    first = list(islice(rows, _MOST_TITLES + 1))
    start = next((place for place, (_, row) in enumerate(first) if is_header(row)), 0)
    return chain(first[start:], rows)


def is_header(row: Sequence[str], named: Mapping[str, str] | None = None) -> bool:
    """Whether a row names the columns of a codebook; named: as of `attributes_from_csv`."""
    if named is not None:
        return {column.strip() for column in named.values()} <= {cell.strip() for cell in row}
    heads = {cell.strip().lower() for cell in row}
    return heads >= {"attribute", "value"} or heads >= VARIABLES


def attributes_of_rows(
    rows: Iterator[tuple[int, Sequence[str]]], source: str, named: Mapping[str, str] | None = None
) -> list[Attribute]:
    """The attributes of rows with one value each, of which the first names the columns.

    The name of an attribute holds for the rows below it, as in merged cells; empty rows are left
    out. rows: each with the number of its line
    """
    _, header = next(rows, (1, []))
    columns = [column.strip().lower() for column in header]
    if named is not None:
        columns = _renamed(header, named, source)
    if "attribute" not in columns or "value" not in columns:
        raise DomainError(
            f"{source} must have a header with the columns attribute, value and (if wanted) "
            f"label, got {shown_header(columns, _KNOWN)}. Name them so, or say which is which: "
            "--map attribute=…,code=…,label=… (of one row an attribute name=…,values=…)"
        )
    refuse_twice(columns, ("attribute", "value", "label", "group"), source, DomainError)
    if named is None:
        with refusing(DomainError, f"{source}, header"):
            refuse_what_is_said(dict.fromkeys(columns, "column"), CSV)
    above = ""
    values: dict[str, list[tuple[str, str, list[str]]]] = {}  # value, label and groups
    n_columns = len(columns)
    of_name, of_value = columns.index("attribute"), columns.index("value")
    of_label, of_path = (
        columns.index(role) if role in columns else None for role in ("label", "group")
    )
    for number, cells in rows:
        if len(cells) < n_columns:
            cells = [*cells, *[""] * (n_columns - len(cells))]
        # Values are kept to the letter, blanks included: records must match them.
        name, value = cells[of_name], cells[of_value]
        if not value.strip() and not any(cell.strip() for cell in cells):
            continue
        if len(cells) > n_columns:
            raise DomainError(
                f"{source}, line {number}: there are more values than columns; put texts that hold "
                "a comma in quotes."
            )
        if named is not None:
            name = name.strip()
            if not value.strip():  # the row of the name itself
                above = name or above
                continue
        name = above = name if name.strip() else above
        if not name.strip() or not value.strip():
            raise DomainError(
                f"{source}, line {number}: every row needs an attribute and a value, got attribute "
                f"{name!r} and value {value!r}."
            )
        label = "" if of_label is None else cells[of_label]
        path = "" if of_path is None else cells[of_path]
        if (listed := values.get(name)) is None:
            listed = values[name] = []
            check_number(len(values))
        listed.append((value, label or value, path.split(LEVELS) if path.strip() else []))
    if not values:
        raise DomainError(f"{source} has a header but no rows; list one category a row.")
    attributes = []
    for name, listed in values.items():
        stored, labels, groups = zip(*listed, strict=True)
        with refusing(DomainError, f"Attribute {name!r}"):
            categories = Categories(stored, labels)
        attributes.append(Attribute(name, categories, groups=groups))
    return attributes


VARIABLES = frozenset({"name", "values"})
"""Columns of a table with one row an attribute."""

_KNOWN = VARIABLES | {"attribute", "value", "label", "group", "code"}
_MOST_TITLES = 20  # rows above the names of columns: a heading, a date, empty ones

_RANGE = re.compile(r"\s*(\S+?)\s*\.\.\s*(\S+?)\s*(?:step\s+(.+?)\s*)?")
_WITH_A_DASH = re.compile(r"([+-]?[0-9]+)\s*[-–]\s*([0-9]+)(\s+step\s.+)?")


def attributes_of_variables(
    rows: Iterator[tuple[int, Sequence[str]]], source: str, named: Mapping[str, str] | None = None
) -> list[Attribute]:
    """The attributes of rows with one attribute each, of which the first names the columns.

    The columns are name, values and, if wanted, type, label and missing. Values are a range (0..99,
    2026-01-01..2026-12-31 step month), edges of bins (type bins: 0; 500; 1000), limits of amounts
    (type amounts: 0..200000), or a list (F=Female; M=Male) with semicolons, or else with commas.

    named: as of `attributes_from_csv`
    """
    attributes = []
    for number, row in _variables(rows, source, named):
        name, values = row.get("name", "").strip(), row.get("values", "").strip()
        if not name and not values:
            continue
        with refusing(DomainError, f"{source}, line {number}"):
            if values:
                attributes.append(attribute_from_field(_field_of_variable(row), number, {}))
    return attributes


def labels_of_variables(rows: Iterator[tuple[int, Sequence[str]]]) -> dict[str, str]:
    """{name: label} of the same rows, "" for no label."""
    return {
        name: (row.get("label") or row.get("title") or "").strip()
        for _, row in _variables(rows)
        if (name := row.get("name", "").strip())
    }


def _variables(
    rows: Iterator[tuple[int, Sequence[str]]],
    source: str = "",
    named: Mapping[str, str] | None = None,
) -> Iterator[tuple[int, dict[str, str]]]:
    _, header = next(rows, (1, []))
    columns = [column.strip().lower() for column in header]
    if named is not None:
        columns = _renamed(header, named, source)
    for number, cells in rows:
        yield number, dict(zip(columns, cells, strict=False))


def _field_of_variable(row: Mapping[str, str]) -> dict[str, Any]:
    """The field of a Table Schema that a row stands for."""
    field: dict[str, Any] = {"name": row["name"].strip()}
    if label := (row.get("label") or row.get("title") or "").strip():
        field["title"] = label
    kind, text = row.get("type", "").strip().lower(), row["values"].strip()
    if missing := _listed_values(row.get("missing", "")):
        field["missingValues"] = [
            {"value": value, "label": label} if label != value else value
            for value, label in missing.items()
        ]
    if dashed := _WITH_A_DASH.fullmatch(text):  # alone, it is a range and no band among others
        numbers = f"{dashed[1]}..{dashed[2]}{dashed[3] or ''}"
        if not kind:
            raise DomainError(
                f"the values {text!r} can be whole numbers or one band; write "
                f"{numbers} for the numbers, or the type string for the band."
            )
        text = numbers if kind == "integer" else text
    span = _RANGE.fullmatch(text)
    if kind == "bins":
        edges = [*_listed_values(text)]
        refuse_unclear(edges)
        # Where something else separates the edges, a comma can only be a decimal one.
        return field | {"bins": [_number(edge.replace(",", ".")) for edge in edges]}
    if span is None:
        listed = _listed_values(text)
        field["constraints"] = {"enum": list(listed)}
        field["categories"] = [{"value": value, "label": label} for value, label in listed.items()]
        return field | {"type": "number" if kind == "number" else "string"}
    low, high, step = span.groups()
    refuse_unclear([low, high, step or ""])
    if kind == "amounts":
        return field | {"type": "number", "bounds": [low, high]}
    if kind in DATES or not re.fullmatch(r"[+-]?[0-9]+", low):
        constraints = {"minimum": low, "maximum": high} | ({"step": step} if step else {})
        return field | {"type": kind if kind in DATES else "date", "constraints": constraints}
    constraints = {"minimum": _number(low), "maximum": _number(high)}
    return field | {
        "type": "integer",
        "constraints": constraints | ({"step": _number(step)} if step else {}),
    }


def _listed_values(text: str) -> dict[str, str]:
    """{value: label} of a list such as "F=Female; M=Male"; the value itself for no label."""
    separator = next((sign for sign in ("\n", ";", "|") if sign in text), ",")
    listed: dict[str, str] = {}
    for item in filter(None, (item.strip() for item in text.split(separator))):
        value, _, label = item.partition("=")
        if value.strip() in listed:
            raise DomainError(f"the value {value.strip()!r} is listed twice; keep one of them.")
        listed[value.strip()] = label.strip() or value.strip()
    return listed


def _number(text: str) -> int | float | str:
    """A number as JSON has it; the text itself where it is none."""
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def _renamed(header: Sequence[str], named: Mapping[str, str], source: str) -> list[str]:
    """The columns by what they are; those that are nothing by names that no column has."""
    columns = [f"{number}" for number in range(len(header))]
    given = [column.strip() for column in header]
    for role, column in named.items():
        if given.count(column.strip()) != 1:
            raise DomainError(
                f"{source} must have the column {column!r} once, which is to be the {role}; it has "
                f"{shown_few(given)}."
            )
        columns[given.index(column.strip())] = role
    return columns


def why_not_in_csv(attribute: Attribute) -> str:
    """What of an attribute a CSV codebook cannot say: "has levels"; "" if it can say all."""
    values = attribute.values
    if isinstance(values, Integers) and values.step == 1:
        if values.missing:
            return "has a cell for missing numbers"
        if values.recode:
            return "has recodes"
    elif isinstance(values, Amounts):
        return f"has {values.noun}"
    elif isinstance(values, Dates):
        return "has dates"
    elif not isinstance(values, Categories):
        return "groups numbers"
    elif values.spellings or values.are_numbers:
        return "says how records may write its values"
    return "has levels" if attribute.levels else ""


def csv_from_attributes(attributes: Sequence[Attribute]) -> str:
    """The CSV codebook of the attributes: values, labels and groups, no titles.

    Raises `DomainError` for what it cannot say.
    """
    grouped = ["group"] if any(attribute.groups for attribute in attributes) else []
    rows = [["attribute", "value", "label", *grouped]]
    for attribute in attributes:
        if reason := why_not_in_csv(attribute):
            raise DomainError(
                f"Attribute {attribute.name!r} {reason}, which a CSV codebook cannot say; save "
                "the domain as .json."
            )
        values = attribute.values
        if not isinstance(values, Categories):
            values = Categories(tuple(attribute.labels()))
        paths = attribute.groups or ((),) * attribute.size
        for value, label, path in zip(values.values, values.labels, paths, strict=True):
            group = [LEVELS.join(path)] if grouped else []
            rows.append([attribute.name, value, "" if label == value else label, *group])
    return csv_text(rows)
