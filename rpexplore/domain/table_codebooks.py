"""Codebooks in tables: sheets of a spreadsheet, one row a value or an attribute, and PX files."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rpexplore.common.numbers import shown, shown_few
from rpexplore.common.spreadsheets import Row, numbered, sheets_of
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.codebook_rows import (
    VARIABLES,
    attributes_of_rows,
    attributes_of_variables,
    below_title,
    is_header,
    labels_of_variables,
)
from rpexplore.domain.domain import Domain
from rpexplore.errors import DomainError

# ---- Spreadsheets: one sheet or several, each told by the names of its columns.


@dataclass(frozen=True)
class TableDraft:
    """The codebook in a file, the attributes that list no values, and what to look at."""

    domain: Domain
    without_values: Mapping[str, str]
    remarks: tuple[str, ...]


# The columns of a sheet that holds the values of the attribute it is called as. With another one,
# such as "variable", the values may be of several attributes.
_OF_ONE_ATTRIBUTE = {"value", "code", "label", "group", "description", "note", ""}


def _is_of_one_attribute(header: Sequence[str], named: Mapping[str, str] | None = None) -> bool:
    if named is not None and named.keys() >= VARIABLES:
        return False
    if named is not None:  # nothing else than the columns that have been named
        columns = {column.strip() for column in header} - {""}
        return named["value"] in columns and columns <= set(named.values()) - {named["attribute"]}
    columns = {column.strip().lower() for column in header}
    return bool(columns & {"value", "code"}) and columns <= _OF_ONE_ATTRIBUTE


class NoCodebookSheet(DomainError):
    """No sheet has columns that are known: they may have other names."""


def codebook_of_sheets(
    content: bytes, filename: str, named: Mapping[str, str] | None = None
) -> TableDraft:
    """The codebook in a spreadsheet, of all of its sheets.

    A sheet has one row a value (attribute, value, label, group), one row an attribute (name, type,
    values), the values of the attribute that it is called as (value or code, label), or the labels
    of attributes (name, label). Others are passed over, and so are rows above the names of columns.

    named: as of `attributes_from_csv`
    """
    attributes: list[Attribute] = []
    labels: dict[str, str] = {}
    passed_over: list[str] = []

    def of_codebook(rows: list[Row]) -> list[tuple[int, Sequence[str]]]:
        """The rows from the names of columns on."""
        return list(
            below_title(
                numbered(rows),
                lambda row: is_header(row, named) or _is_of_one_attribute(row, named),
            )
        )

    def may_be_codebook(rows: list[Row]) -> bool:
        ((_, header), *_) = of_codebook(rows)
        columns = {column.strip().lower() for column in header}
        return (
            is_header(header, named)
            or _is_of_one_attribute(header, named)
            or (named is None and bool(columns & {"value", "code"} or "name" in columns))
        )

    sheets = sheets_of(content, filename, DomainError, is_wanted=may_be_codebook)
    for name, rows in sheets.items():
        source = f"{filename}, sheet {shown(name)!r}"
        below = of_codebook(rows)
        header = below[0][1] if below else []
        columns = {column.strip().lower() for column in header}
        if named is not None:
            if is_header(header, named):
                of_rows = (
                    attributes_of_variables if named.keys() >= VARIABLES else attributes_of_rows
                )
                attributes += of_rows(iter(below), source, named)
            elif _is_of_one_attribute(header, named):
                roles = {column.lower(): role for role, column in named.items()}
                of_sheet = _with_attribute(below, name.strip(), roles)
                attributes += attributes_of_rows(of_sheet, source)
            else:
                passed_over.append(name)
        elif {"attribute", "value"} <= columns:
            attributes += attributes_of_rows(iter(below), source)
        elif columns >= VARIABLES:
            attributes += attributes_of_variables(iter(below), source)
            labels |= labels_of_variables(iter(below))
        elif _is_of_one_attribute(header):
            roles = {} if "value" in columns else {"code": "value"}
            of_sheet = _with_attribute(below, name.strip(), roles)
            attributes += attributes_of_rows(of_sheet, source)
        elif "name" in columns and columns & {"label", "title", "type"}:
            labels |= labels_of_variables(iter(below))
        elif header:
            passed_over.append(name)
    if not attributes:
        raise NoCodebookSheet(
            f"{filename} has no sheet with the columns attribute and value, name and values, or "
            f"value (then the sheet is called as its attribute); its sheets are "
            f"{shown_few(passed_over) or 'empty'}. Name the columns so, or say which is which "
            "(--map)."
        )
    titled = [replace(one, label=one.label or labels.get(one.name, "")) for one in attributes]
    known = {attribute.name for attribute in titled}
    without_values = {name: "any" for name in labels if name not in known}
    remarks = ()
    if passed_over:
        remarks = (f"Sheets that hold no codebook were passed over: {shown_few(passed_over)}.",)
    return TableDraft(Domain(tuple(titled)), without_values, remarks)


def _with_attribute(
    rows: Iterable[tuple[int, Sequence[str]]], name: str, roles: Mapping[str, str]
) -> Iterator[tuple[int, Row]]:
    """The rows of one attribute's values, with a column for its name.

    roles: what columns are, where their names do not say it: {name: role}
    """
    for position, (number, row) in enumerate(rows):
        if position == 0:
            heads = [text.strip().lower() for text in row]
            kept = [roles.get(head, head) for head in heads]
            yield number, ["attribute", *kept]
        else:
            yield number, [name, *row]


# ---- PX files (PC-Axis): their variables are attributes.


_STATEMENT = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)(?:\[([^\]]*)\])?(?:\((.*?)\))?\s*=", re.DOTALL)
_TEXT = re.compile(r'"([^"]*)"')


def codebook_of_px(content: bytes, filename: str, language: str = "") -> TableDraft:
    """The codebook in a PX file: its variables by their codes, but for the one of the contents.

    language: of labels, of those that the file has; else its main one. Its figures are not read.

    Raises `DomainError` for a file without variables.
    """
    head = content.partition(b"DATA=")[0]
    said = re.search(rb'CODEPAGE="([^"]*)"', head)
    try:
        text = head.decode("utf-8-sig" if said is None else said[1].decode("ascii"))
    except (LookupError, UnicodeDecodeError):
        text = head.decode("cp1252", "replace")
    keywords = dict(_statements(text))
    variables = [*keywords.get(("STUB", ""), ()), *keywords.get(("HEADING", ""), ())]
    translated = dict(_statements(text, language)) if language else {}
    own = [*translated.get(("STUB", ""), ()), *translated.get(("HEADING", ""), ())]
    titles = dict(zip(variables, own if len(own) == len(variables) else variables, strict=True))
    contents = keywords.get(("CONTVARIABLE", ""), ())
    attributes, without_values = [], {}
    for variable in variables:
        if variable in contents:
            continue
        labels = keywords.get(("VALUES", variable), ())
        codes = keywords.get(("CODES", variable), labels)
        said = translated.get(("VALUES", titles[variable]), ())
        labels = said if len(said) == len(labels) else labels
        (name, *_) = keywords.get(("VARIABLECODE", variable), (variable,))
        if not codes:
            without_values[name] = "any"
            continue
        if len(codes) != len(labels):
            raise DomainError(
                f"{filename} has {len(codes):,} codes and {len(labels):,} values of {variable!r}; "
                "export it anew."
            )
        values, title = Categories(tuple(codes), _apart(labels, codes)), titles[variable]
        attributes.append(Attribute(name, values, title if title != name else ""))
    if not attributes:
        raise DomainError(
            f"{filename} has no variables with values (STUB, HEADING, VALUES); export it anew."
        )
    return TableDraft(Domain(tuple(attributes)), without_values, ())


def _apart(labels: Sequence[str], codes: Sequence[str]) -> tuple[str, ...]:
    """The labels, those that several values have with their codes behind."""
    counts = Counter(labels)
    return tuple(
        f"{label} ({code})" if counts[label] > 1 else label
        for label, code in zip(labels, codes, strict=True)
    )


def _statements(text: str, language: str = "") -> Iterator[tuple[tuple[str, str], tuple[str, ...]]]:
    """((keyword, variable), texts) of those in the main language, or in another one."""
    # Semicolons outside of texts end statements.
    for statement in re.findall(r'(?:"[^"]*"|[^";])+', text):
        match = _STATEMENT.match(statement)
        if match is None or (match[2] or "").lower() != language.lower():
            continue
        (variable, *_) = [*_TEXT.findall(match[3] or ""), ""]
        # Texts that follow one another without a comma are one, over several lines.
        texts: list[str] = []
        ends_text = False
        for part in re.finditer(r'"([^"]*)"|,', statement[match.end() :]):
            if part[0] == ",":
                ends_text = False
            elif ends_text:
                texts[-1] += part[1]
            else:
                texts.append(part[1])
                ends_text = True
        yield (match[1].upper(), variable), tuple(texts)
