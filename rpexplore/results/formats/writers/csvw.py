"""Metadata of CSV on the Web: csv-metadata.json beside the tables.

https://www.w3.org/TR/tabular-metadata/. What it says of privacy stands in terms of Dublin Core, as
the standard has none of its own for it.
"""

import json
from pathlib import Path
from typing import Any

from rpexplore.results.formats.export import Column, Export, ExportedTable, Format

FILE = "csv-metadata.json"


def write_csvw(export: Export, folder: Path) -> None:
    """Write the description of the tables of an export."""
    text = json.dumps(csvw_metadata(export), ensure_ascii=False, indent=1)
    (folder / FILE).write_text(f"{text}\n", encoding="utf-8", newline="\n")


def csvw_metadata(export: Export) -> dict[str, Any]:
    """The description of an export, as a JSON object."""
    imprint = export.imprint
    group: dict[str, Any] = {
        "@context": ["http://www.w3.org/ns/csvw", {"@language": "en"}],
        "dc:title": export.title,
        "dc:description": export.kind,
        "dc:provenance": export.guarantee,
        "dc:created": export.created,
    }
    if imprint.license:
        group["dc:license"] = {"@id": imprint.license}
    if imprint.publisher:
        group["dc:publisher"] = imprint.publisher
    return group | {"tables": [_table(table) for table in export.tables]}


def _table(table: ExportedTable) -> dict[str, Any]:
    schema: dict[str, Any] = {"columns": [_column(column) for column in table.columns]}
    if table.key:
        schema["primaryKey"] = list(table.key)
    described = {"dc:description": table.note} if table.note else {}
    return {"url": table.path, "dc:title": table.title, **described, "tableSchema": schema}


def _column(column: Column) -> dict[str, Any]:
    # The head of the column is the first title; what the release calls it is another one.
    titles = [column.name] if column.title == column.name else [column.name, column.title]
    return {
        "name": column.name,
        "titles": titles,
        "datatype": "double" if column.is_number else "string",
        "required": column.is_required,
        "dc:description": column.meaning,
    }


FORMAT = Format(
    "CSV on the Web (CSVW)",
    "`csv-metadata.json` describes all files",
    write_csvw,
)
