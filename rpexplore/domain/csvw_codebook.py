"""Metadata of CSV on the Web as codebooks: the columns of its tables as fields of a Table Schema.

https://www.w3.org/TR/tabular-metadata/. A column lists its values by a format that is a choice of
texts (A|B|C), a type of two values, or limits.
"""

import re
from collections.abc import Mapping
from typing import Any

CONTEXT = "http://www.w3.org/ns/csvw"
_WHOLE = {
    "integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger",
    "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte", "nonPositiveInteger",
    "negativeInteger", "gYear",
}  # fmt: skip
_CHOICE = re.compile(r"\^?\(?(?:\?:)?([^()\[\]{}*+?.\\^$|]+(?:\|[^()\[\]{}*+?.\\^$|]+)+)\)?\$?")
_LIMITS = {
    "minimum": "minimum", "minInclusive": "minimum", "maximum": "maximum",
    "maxInclusive": "maximum", "minExclusive": "exclusiveMinimum",
    "maxExclusive": "exclusiveMaximum",
}  # fmt: skip


def is_csvw(content: Any) -> bool:
    """Whether a JSON content is such metadata."""
    if not isinstance(content, dict):
        return False
    context = content.get("@context")
    return CONTEXT in (context if isinstance(context, list) else [context])


def schemas_of_csvw(content: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The Table Schema of each table by its address; that of a single one by ""."""
    tables = content.get("tables")
    listed = tables if isinstance(tables, list) else [content]
    schemas = {
        str(table.get("url", f"table {number}")): _schema(table["tableSchema"])
        for number, table in enumerate(listed, start=1)
        if isinstance(table, dict) and isinstance(table.get("tableSchema"), dict)
    }
    return schemas if len(schemas) != 1 else {"": next(iter(schemas.values()))}


def _schema(stated: Mapping[str, Any]) -> dict[str, Any]:
    columns = stated.get("columns")
    return {
        "fields": [
            _field(column)
            for column in (columns if isinstance(columns, list) else [])
            if isinstance(column, dict) and not column.get("virtual")
        ]
    }


def _field(column: Mapping[str, Any]) -> dict[str, Any]:
    titles = _texts(column.get("titles"))
    name = column.get("name") or next(iter(titles), "")
    # Records have the title of a column, if it has one.
    field: dict[str, Any] = {"name": titles[0] if titles else name}
    label = _texts(column.get("dc:title")) or titles[1:]
    if label:
        field["title"] = label[0]
    datatype = column.get("datatype", "string")
    facts = datatype if isinstance(datatype, dict) else {"base": datatype}
    base, form = facts.get("base", "string"), facts.get("format")
    missing = column.get("null", [])
    missing = [missing] if isinstance(missing, str) else missing
    if named := [text for text in missing if isinstance(text, str) and text]:
        field["missingValues"] = named
    limits = {ours: facts[theirs] for theirs, ours in _LIMITS.items() if theirs in facts}
    if base == "boolean":
        field["type"] = "boolean"
        if isinstance(form, str) and form.count("|") == 1:
            yes, no = form.split("|")
            field |= {"trueValues": [yes], "falseValues": [no]}
    elif base in _WHOLE or base == "date":
        field["type"] = "date" if base == "date" else "integer"
        numbers = {key: _whole(value) if base != "date" else value for key, value in limits.items()}
        field["constraints"] = numbers
    elif base == "string" and isinstance(form, str) and (choice := _CHOICE.fullmatch(form)):
        field |= {"type": "string", "constraints": {"enum": choice[1].split("|")}}
    else:
        field["type"] = "string" if base == "string" else "number"
    return field


def _whole(value: Any) -> Any:
    is_whole = isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]+", value)
    return int(value) if is_whole else value


def _texts(stated: Any) -> list[str]:
    """Texts that stand alone, in a list, or by language."""
    if isinstance(stated, dict):
        stated = next(iter(stated.values()), [])
    listed = stated if isinstance(stated, list) else [stated]
    return [text for text in listed if isinstance(text, str) and text.strip()]
