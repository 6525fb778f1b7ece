"""A Frictionless Data Package: datapackage.json beside the tables.

https://datapackage.org/standard/data-package/. The standard leaves room for properties of one's
own: `privacy`, and of each table `dimensions`, the columns that say what a row counts.
"""

import json
from pathlib import Path
from typing import Any

from rpexplore.results.formats.export import MOST_LISTED, Export, ExportedTable, Format
from rpexplore.results.formats.export_columns import Column

FILE = "datapackage.json"


def write_frictionless(export: Export, folder: Path) -> None:
    """Write the description of the tables of an export."""
    text = json.dumps(data_package(export), ensure_ascii=False, indent=1)
    (folder / FILE).write_text(f"{text}\n", encoding="utf-8", newline="\n")


def data_package(export: Export) -> dict[str, Any]:
    """The description of an export, as a JSON object."""
    imprint = export.imprint
    package: dict[str, Any] = {
        "name": export.name,
        "title": export.title,
        "description": export.description,
        "created": export.created,
        "keywords": ["differential privacy", *export.attributes],
        "privacy": export.privacy,
    }
    if imprint.license:
        package["licenses"] = [{"path": imprint.license}]
    if imprint.publisher:
        package["contributors"] = [{"title": imprint.publisher, "role": "publisher"}]
    return package | {"resources": [_resource(table) for table in export.tables]}


def _resource(table: ExportedTable) -> dict[str, Any]:
    schema: dict[str, Any] = {"fields": [_field(column) for column in table.columns]}
    if table.key:
        schema["primaryKey"] = list(table.key)
    described = {"description": table.note} if table.note else {}
    return {
        "name": table.name,
        "title": table.title,
        **described,
        "path": table.path,
        "profile": "tabular-data-resource",
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "bytes": table.n_bytes,
        "hash": f"sha256:{table.sha256}",
        "dimensions": [column.name for column in table.columns if column.role == "code"],
        "schema": schema,
    }


def _field(column: Column) -> dict[str, Any]:
    kind = "number" if column.is_number else "string"
    described: dict[str, Any] = {
        "name": column.name,
        "title": column.title,
        "type": kind,
        "description": column.meaning,
    }
    if 0 < len(column.texts) <= MOST_LISTED:
        described["constraints"] = constraints = dict[str, Any](required=column.is_required)
        if listed := [text for text in column.texts if text]:
            constraints["enum"] = listed
    return described


FORMAT = Format(
    "Frictionless Data Package",
    "`datapackage.json` describes all files",
    write_frictionless,
)
